//! Numbers as people read them in a narrow column.

/// How throughput is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Throughput {
    /// Bits per second, powers of 1000, as links are rated.
    #[default]
    Bits,
    /// Bytes per second, powers of 1000.
    Bytes,
}

impl Throughput {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Bits => Self::Bytes,
            Self::Bytes => Self::Bits,
        }
    }

    /// What one byte counts.
    pub const fn per_byte(self) -> u64 {
        match self {
            Self::Bits => 8,
            Self::Bytes => 1,
        }
    }

    /// Column title of a rate.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Bits => "BIT/S",
            Self::Bytes => "BYTE/S",
        }
    }

    /// Unit behind a number with an SI prefix.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Bits => "b/s",
            Self::Bytes => "B/s",
        }
    }
}

/// A number in at most five characters and a prefix of 1000: `0`, `7.25`, `123`, `1.23k`, `45.6M`.
pub fn si(n: f64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    if !n.is_finite() || n <= 0.0 {
        return "0".to_owned();
    }
    let mut value = n;
    let mut prefixes = PREFIXES.iter().peekable();
    // 999.5 would be rounded to 1000, which is the next prefix's 1.00
    while value >= 999.5 && prefixes.len() > 1 {
        value /= 1000.0;
        prefixes.next();
    }
    let prefix = prefixes.next().copied().unwrap_or("");
    let whole = prefix.is_empty() && (value - value.round()).abs() < 1e-9;
    if whole || value >= 99.95 {
        format!("{value:.0}{prefix}")
    } else if value >= 9.995 {
        format!("{value:.1}{prefix}")
    } else if value >= 0.005 {
        format!("{value:.2}{prefix}")
    } else {
        "<.01".to_owned()
    }
}

/// A whole number: exact up to six digits, with a prefix beyond.
pub fn count(n: u64) -> String {
    if n < 1_000_000 { n.to_string() } else { si(n as f64) }
}

/// A whole number in at most four characters: exact up to four digits, with a prefix beyond.
pub fn compact(n: u64) -> String {
    if n < 10_000 {
        return n.to_string();
    }
    let short = si(n as f64);
    // 12.3k is one too many
    match short.split_once('.') {
        Some((whole, rest)) if short.len() > 4 => {
            format!("{whole}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => short,
    }
}

/// A whole number with thin groups of three, for places with room: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Seconds as a short span: `0.4s`, `59s`, `12m03s`, `5h07m`, `3d04h`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a u64 holds")]
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "0s".to_owned();
    }
    if seconds < 9.95 {
        return format!("{seconds:.1}s");
    }
    let s = seconds.min(1e15).round() as u64;
    match s {
        0..=59 => format!("{s}s"),
        60..=3599 => format!("{}m{:02}s", s / 60, s % 60),
        3600..=86_399 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

/// Text from outside with control characters replaced, so that none reaches the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_five_characters() {
        for (n, text) in [
            (0.0, "0"),
            (-3.0, "0"),
            (f64::NAN, "0"),
            (0.001, "<.01"),
            (0.25, "0.25"),
            (7.0, "7"),
            (9.996, "10.0"),
            (42.5, "42.5"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (1234.0, "1.23k"),
            (45_600_000.0, "45.6M"),
            (999_499.0, "999k"),
            (999_500.0, "1.00M"),
            (1e21, "1000E"),
        ] {
            assert_eq!(si(n), text, "{n}");
            assert!(si(n).len() <= 5);
        }
    }

    #[test]
    fn compact_numbers_take_four_characters() {
        for (n, text) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10k"),
            (12_345, "12k"),
            (123_456, "123k"),
            (1_234_567, "1M"),
            (45_600_000, "45M"),
            (u64::MAX, "18E"),
        ] {
            assert_eq!(compact(n), text);
        }
        assert!((0..64).all(|bits| compact(1 << bits).len() <= 4));
    }

    #[test]
    fn spans_and_groups() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123_456), "123,456");
        for (s, text) in
            [(0.0, "0.0s"), (9.94, "9.9s"), (59.0, "59s"), (723.0, "12m03s"), (18_420.0, "5h07m"), (273_600.0, "3d04h")]
        {
            assert_eq!(span(s), text);
        }
        assert_eq!(printable("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
    }
}
