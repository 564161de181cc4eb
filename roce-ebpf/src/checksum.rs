//! The Internet checksum, changed along with the word it covers (RFC 1624, equation 3).
#![expect(clippy::inline_always, reason = "the kernel program must not call: the verifier follows inlined code better")]

/// The checksum after a covered 16-bit word went from `old` to `new`. All three as big-endian numbers.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "both folds are done: the sum fits 16 bits")]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// As [`update`], for UDP: 0 means "no checksum" and stays, and a sum of 0 is sent as all ones (RFC 768).
#[inline(always)]
pub const fn update_udp(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 {
        return 0;
    }
    match update(checksum, old, new) {
        0 => 0xffff,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(words: &[u16]) -> u16 {
        let mut sum: u32 = words.iter().map(|w| u32::from(*w)).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    #[test]
    fn equals_a_checksum_from_scratch() {
        let mut header = [0x4500, 0x003c, 0x1c46, 0x4000, 0x4011, 0xac10, 0x0a63, 0xac10, 0x0a0c];
        for at in [0, 2] {
            for new in (0..=0xffff).step_by(7) {
                let before = whole(&header);
                let old = header[at];
                header[at] = new;
                assert_eq!(update(before, old, new), whole(&header), "word {at} to {new:#x}");
            }
        }
    }

    #[test]
    fn rfc_1624s_own_case() {
        // its section 4: with equation 2 this would give 0xffff
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(update_udp(0xdd2f, 0x5555, 0x3285), 0xffff);
        assert_eq!(update_udp(0, 1, 2), 0);
    }
}
