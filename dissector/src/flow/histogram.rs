//! Times as a histogram of fixed size: four bins to the octave, from 64 ns to 8.6 s; 250 bytes a flow, where
//! an HDR histogram of two digits takes twenty times that. A bin that is full halves all of them: the shape stays.

const OCTAVES: usize = 27;
const BINS: usize = OCTAVES * 4;
const FIRST: u32 = 6;

/// Nanoseconds, counted in bins of a quarter octave.
#[derive(Clone, Debug)]
pub struct Histogram {
    bins: [u16; BINS],
    count: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: [0; BINS], count: 0, min: u64::MAX, max: 0 }
    }
}

fn bin(ns: u64) -> usize {
    let octave = ns.max(1).ilog2().max(FIRST);
    let quarter = (ns >> (octave - 2)) & 3;
    let i = (octave - FIRST) as usize * 4 + usize::try_from(quarter).unwrap_or(0);
    i.min(BINS - 1)
}

/// Lower edge of a bin.
fn edge(i: usize) -> u64 {
    let octave = u32::try_from(i / 4).unwrap_or(0) + FIRST;
    let quarter = (i % 4) as u64;
    (4 + quarter) << (octave - 2)
}

impl Histogram {
    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        let i = bin(ns);
        if self.bins.get(i) == Some(&u16::MAX) {
            for b in &mut self.bins {
                *b /= 2;
            }
        }
        if let Some(b) = self.bins.get_mut(i) {
            *b += 1;
        }
        self.count += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Shortest, exact.
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min) }
    }

    /// Longest, exact.
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// The time below which `percent` of all lie, within an eighth (interpolated inside its bin, never
    /// outside of what was seen).
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let target = percent / 100.0 * self.bins.iter().map(|n| f64::from(*n)).sum::<f64>();
        let mut before = 0.0;
        for (i, n) in self.bins.iter().enumerate() {
            let n = f64::from(*n);
            if n > 0.0 && before + n >= target {
                let (low, high) = (edge(i) as f64, edge(i + 1) as f64);
                let v = low + (high - low) * ((target - before) / n).clamp(0.0, 1.0);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two edges")]
                return Some((v as u64).clamp(self.min, self.max));
            }
            before += n;
        }
        Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_within_an_eighth() {
        let mut h = Histogram::default();
        for v in 1..=10_000u64 {
            h.add(v * 100);
        }
        for p in [1.0, 50.0, 90.0, 99.0] {
            let want = p / 100.0 * 1_000_000.0;
            let got = h.percentile(p).unwrap() as f64;
            assert!((got - want).abs() / want < 0.125, "p{p}: {got} for {want}");
        }
        assert_eq!((h.min(), h.max(), h.count()), (Some(100), Some(1_000_000), 10_000));
    }

    #[test]
    fn extremes_stay_inside() {
        let mut h = Histogram::default();
        h.add(0);
        h.add(u64::MAX);
        assert!(h.percentile(100.0).unwrap() > 7_000_000_000);
        assert_eq!((h.min(), h.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(Histogram::default().percentile(50.0), None);
    }
}
