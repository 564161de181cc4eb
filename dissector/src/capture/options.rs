//! Options of a pcapng packet block, as they stand in the file.

/// Options of one packet; empty in classic files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketOptions<'a> {
    raw: &'a [u8],
    big_endian: bool,
}

/// pcapng option codes that are read here.
pub mod code {
    /// Ends the list.
    pub const END: u16 = 0;
    /// UTF-8 text, may come more than once.
    pub const COMMENT: u16 = 1;
    /// Direction and link-layer errors, 32 bits.
    pub const FLAGS: u16 = 2;
    /// Packets lost between the one before and this one, 64 bits.
    pub const DROP_COUNT: u16 = 4;
}

impl<'a> PacketOptions<'a> {
    /// Over the bytes that follow the packet data of a block.
    pub const fn new(raw: &'a [u8], big_endian: bool) -> Self {
        Self { raw, big_endian }
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Code and value of each, in file order; ends quietly where the list is cut.
    pub const fn iter(self) -> Options<'a> {
        Options { rest: self.raw, big_endian: self.big_endian }
    }

    /// Comments, with bytes that are no UTF-8 replaced. Not yet safe for a terminal.
    pub fn comments(self) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
        self.iter().filter(|(c, _)| *c == code::COMMENT).map(|(_, v)| String::from_utf8_lossy(v))
    }

    /// Direction and error flags (bits 0 and 1: 1 inbound, 2 outbound).
    pub fn flags(self) -> Option<u32> {
        let v: [u8; 4] = self.iter().find(|(c, _)| *c == code::FLAGS)?.1.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(v) } else { u32::from_le_bytes(v) })
    }

    /// Packets that were lost between the packet before and this one.
    pub fn drop_count(self) -> Option<u64> {
        let v: [u8; 8] = self.iter().find(|(c, _)| *c == code::DROP_COUNT)?.1.try_into().ok()?;
        Some(if self.big_endian { u64::from_be_bytes(v) } else { u64::from_le_bytes(v) })
    }
}

/// Iterator over options.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let [c0, c1, l0, l1] = *head;
        let word = |b| if self.big_endian { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) };
        let (code, len) = (word([c0, c1]), usize::from(word([l0, l1])));
        let value = rest.get(..len);
        if code == code::END || value.is_none() {
            self.rest = &[];
            return None;
        }
        self.rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        value.map(|v| (code, v))
    }
}
