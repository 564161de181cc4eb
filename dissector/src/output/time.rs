//! Times as text.

use std::io::Write as _;
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const SECOND: u64 = 1_000_000_000;

/// Appends seconds with so many decimals (at most nine; the rest is cut, not rounded).
pub fn seconds(ns: i64, decimals: usize, out: &mut Vec<u8>) {
    if ns < 0 {
        out.push(b'-');
    }
    let v = ns.unsigned_abs();
    super::value::decimal(v / SECOND, out);
    fraction(v % SECOND, decimals, out);
}

fn fraction(ns: u64, decimals: usize, out: &mut Vec<u8>) {
    if decimals == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = SECOND / 10;
    for _ in 0..decimals.min(9) {
        out.push(b'0' + ((ns / unit) % 10) as u8);
        unit = (unit / 10).max(1);
    }
}

fn local() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(TimeZone::system)
}

fn at(ns: i64) -> Timestamp {
    // an i64 of nanoseconds spans the years 1677 to 2262, all of which exist
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn below_second(ns: i64) -> u64 {
    ns.rem_euclid(1_000_000_000).unsigned_abs()
}

/// `Nov 30, 2026 20:26:14.456499000 UTC`, in local time.
pub fn wireshark(ns: i64, out: &mut Vec<u8>) {
    let t = at(ns.div_euclid(1_000_000_000).saturating_mul(1_000_000_000)).to_zoned_datetime(local().clone());
    // writing to a Vec cannot fail
    let _ = write!(out, "{}", t.strftime("%b %e, %Y %H:%M:%S"));
    fraction(below_second(ns), 9, out);
    let _ = write!(out, "{}", t.strftime(" %Z"));
}

/// `2026-11-30T20:26:14.456499000Z`.
pub fn iso(ns: i64, out: &mut Vec<u8>) {
    let t = at(ns.div_euclid(1_000_000_000).saturating_mul(1_000_000_000)).to_zoned_datetime(TimeZone::UTC);
    let _ = write!(out, "{}", t.strftime("%Y-%m-%dT%H:%M:%S"));
    fraction(below_second(ns), 9, out);
    out.push(b'Z');
}

/// `2026-11-30 ` if `date`, then `20:26:14.456499`, local or UTC.
pub fn clock(ns: i64, date: bool, utc: bool, decimals: usize, out: &mut Vec<u8>) {
    let zone = if utc { TimeZone::UTC } else { local().clone() };
    let t = at(ns.div_euclid(1_000_000_000).saturating_mul(1_000_000_000)).to_zoned_datetime(zone);
    let _ = write!(out, "{}", t.strftime(if date { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" }));
    fraction(below_second(ns), decimals, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms() {
        // as tshark prints frame 19 of a capture
        let ns = 1_796_070_374_456_499_000;
        assert_eq!(text(|o| iso(ns, o)), "2026-11-30T20:26:14.456499000Z");
        assert_eq!(text(|o| clock(ns, true, true, 6, o)), "2026-11-30 20:26:14.456499");
        assert_eq!(text(|o| seconds(ns, 9, o)), "1796070374.456499000");
        assert_eq!(text(|o| seconds(-1_500_000_000, 6, o)), "-1.500000");
        assert_eq!(text(|o| seconds(i64::MIN, 9, o)), "-9223372036.854775808");
        assert_eq!(text(|o| iso(-1, o)), "1969-12-31T23:59:59.999999999Z");
    }
}
