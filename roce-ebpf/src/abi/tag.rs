//! A VLAN tag that the kernel keeps beside a packet and not in it: it is on the wire, and the bytes that a program at TC copies
//! lack it. Reports carry it as a number, and user space puts it back.

use dissector::wire::outer::VLAN_LEN;

/// Bytes of the two MAC addresses, behind which a tag stands.
const MACS: usize = 12;

/// A tag as a number: EtherType (`__sk_buff.vlan_proto`, network byte order) and TCI (host byte order).
#[expect(clippy::inline_always, reason = "the kernel program must not call: the verifier follows inlined code better")]
#[inline(always)]
pub const fn tag(proto: u16, tci: u16) -> u32 {
    (u16::from_be(proto) as u32) << 16 | tci as u32
}

/// Puts a tag back into the first bytes of a frame, of which `len` are there and no more than `bytes` has room for are kept; how
/// many there are then. Without a tag, or without both MAC addresses, nothing changes.
pub fn put_back(tag: u32, bytes: &mut [u8], len: usize) -> usize {
    let len = len.min(bytes.len());
    let end = len.saturating_add(VLAN_LEN).min(bytes.len());
    if tag == 0 || len < MACS || end < MACS + VLAN_LEN {
        return len;
    }
    bytes.copy_within(MACS..end - VLAN_LEN, MACS + VLAN_LEN);
    if let Some(place) = bytes.get_mut(MACS..MACS + VLAN_LEN) {
        place.copy_from_slice(&tag.to_be_bytes());
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_stands_behind_the_addresses() {
        let tag = tag(0x8100_u16.to_be(), 0x6064);
        let mut b: [u8; 20] = core::array::from_fn(|n| u8::try_from(n).unwrap_or(0));
        assert_eq!(put_back(tag, &mut b, 14), 18);
        assert_eq!(b, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x60, 0x64, 12, 13, 18, 19]);
        // what there is no room for is left out
        let mut b: [u8; 20] = core::array::from_fn(|n| u8::try_from(n).unwrap_or(0));
        assert_eq!(put_back(tag, &mut b, 20), 20);
        assert_eq!(b[12..], [0x81, 0, 0x60, 0x64, 12, 13, 14, 15]);
        for len in 0..12 {
            let before = b;
            assert_eq!(put_back(tag, &mut b, len), len);
            assert_eq!(b, before);
        }
        for room in 0..18 {
            let mut few = [0; 18];
            assert!(put_back(tag, &mut few[..room], 99) <= room);
        }
        assert_eq!(put_back(0, &mut b, 20), 20);
    }
}
