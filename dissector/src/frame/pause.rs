//! MAC control frames (EtherType 0x8808): PAUSE (IEEE 802.3x) and priority flow control (IEEE 802.1Qbb).

use std::fmt;

use super::aside::Aside;

/// Priority flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Class-enable vector: bit n says that the time of priority n counts.
    pub enabled: u8,
    /// Quanta of 512 bit times by priority; those not enabled mean nothing.
    pub quanta: [u16; 8],
}

impl Pfc {
    /// Priorities that are paused, with their quanta.
    pub fn paused(&self) -> impl Iterator<Item = (u8, u16)> {
        (0_u8..8).zip(self.quanta).filter(|(p, q)| self.enabled >> p & 1 == 1 && *q > 0)
    }

    /// Priorities that may send again.
    pub fn resumed(&self) -> impl Iterator<Item = u8> {
        (0_u8..8).zip(self.quanta).filter(|(p, q)| self.enabled >> p & 1 == 1 && *q == 0).map(|(p, _)| p)
    }
}

/// From what follows the EtherType; `None` if it is cut.
pub fn parse(bytes: &[u8]) -> Option<Aside> {
    let (opcode, rest) = bytes.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*opcode) {
        0x0001 => Some(Aside::Pause { quanta: u16::from_be_bytes(*rest.first_chunk()?) }),
        0x0101 => {
            let (vector, rest) = rest.split_first_chunk::<2>()?;
            let times = rest.first_chunk::<16>()?;
            let mut quanta = [0; 8];
            for (q, b) in quanta.iter_mut().zip(times.as_chunks::<2>().0) {
                *q = u16::from_be_bytes(*b);
            }
            // the vector's first byte is reserved
            Some(Aside::Pfc(Pfc { enabled: vector[1], quanta }))
        }
        opcode => Some(Aside::MacControl { opcode }),
    }
}

impl fmt::Display for Pfc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.enabled == 0 {
            return f.write_str("PFC: no priority enabled, no effect");
        }
        f.write_str("PFC:")?;
        let mut comma = "";
        for (p, q) in self.paused() {
            write!(f, "{comma} priority {p} stops for {q} quanta")?;
            comma = ",";
        }
        for p in self.resumed() {
            write!(f, "{comma} priority {p} may send again")?;
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pfc(vector: u16, quanta: [u16; 8]) -> Vec<u8> {
        [0x0101, vector].into_iter().chain(quanta).flat_map(u16::to_be_bytes).collect()
    }

    #[test]
    fn an_empty_vector_pauses_nothing() {
        let a = parse(&pfc(0, [0xffff; 8])).unwrap();
        let Aside::Pfc(p) = &a else { panic!("{a:?}") };
        assert_eq!(p.paused().count() + p.resumed().count(), 0);
        assert_eq!(a.to_string(), "PFC: no priority enabled, no effect");
    }

    #[test]
    fn priority_three() {
        let a = parse(&pfc(0x18, [0, 0, 0, 0xffff, 0, 7, 7, 7])).unwrap();
        assert_eq!(a.to_string(), "PFC: priority 3 stops for 65535 quanta, priority 4 may send again");
        for cut in 0..20 {
            assert_eq!(parse(&pfc(8, [1; 8])[..cut]), None);
        }
    }

    #[test]
    fn plain_pause() {
        assert_eq!(parse(&[0, 1, 0, 5]), Some(Aside::Pause { quanta: 5 }));
        assert_eq!(parse(&[0, 9]), Some(Aside::MacControl { opcode: 9 }));
    }
}
