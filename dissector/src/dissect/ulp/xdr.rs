//! Reading XDR (RFC 4506): four-byte units, big-endian, opaque data padded to four. Total: the end is `None`.

/// A reader over the bytes that are there.
#[derive(Clone, Copy, Debug)]
pub struct Xdr<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Xdr<'a> {
    /// From the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        let b = self.bytes.get(self.at..)?.first_chunk::<4>()?;
        self.at += 4;
        Some(u32::from_be_bytes(*b))
    }

    /// A 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        let b = self.bytes.get(self.at..)?.first_chunk::<8>()?;
        self.at += 8;
        Some(u64::from_be_bytes(*b))
    }

    /// Passes over `len` bytes and their padding.
    pub fn skip(&mut self, len: usize) -> Option<()> {
        let end = self.at.checked_add(len.checked_next_multiple_of(4)?)?;
        if end > self.bytes.len() {
            return None;
        }
        self.at = end;
        Some(())
    }

    /// Opaque data with its length in front.
    pub fn opaque(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u32()?).ok()?;
        let start = self.at;
        self.skip(len)?;
        self.bytes.get(start..start + len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_and_bounded() {
        let b = [0, 0, 0, 5, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 0, 0, 0, 9];
        let mut x = Xdr::new(&b);
        assert_eq!(x.opaque(), Some(&b"hello"[..]));
        assert_eq!((x.position(), x.u32(), x.is_empty(), x.u32()), (12, Some(9), true, None));
        for n in 0..12 {
            assert_eq!(Xdr::new(&b[..n]).opaque(), None);
        }
        assert_eq!(Xdr::new(&[0xff; 8]).opaque(), None);
        assert_eq!(Xdr::new(&[0; 8]).skip(usize::MAX), None);
    }
}
