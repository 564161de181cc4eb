//! Colours. Nothing is said by colour alone: what matters is also bold, marked with a sign, or in words.
//!
//! Where the terminal has 256 colours, those of middle brightness, which can be read on a dark and on a light background
//! alike: nobody can ask every terminal which it has. Elsewhere the sixteen of its own palette, without those that vanish on
//! white if `COLORFGBG` says that the background is light. Blue against orange is what people with any of the common colour
//! deficiencies tell apart; red and green never stand for two ends.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Whether colours may be used; modifiers always are.
    pub colour: bool,
    /// Which there are.
    pub palette: Palette,
    /// Which signs there are.
    pub signs: Signs,
}

/// The signs of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// All that are used.
    All,
    /// Those of the Linux console, whose fonts have few.
    Console,
    /// Letters, digits and what else a typewriter has.
    Ascii,
}

impl Signs {
    /// By `TERM` and the locale; a locale that is not set says nothing.
    fn of(term: &str, locale: &str) -> Self {
        if term.starts_with("vt") || matches!(locale, "C" | "POSIX") {
            Self::Ascii
        } else if term == "linux" {
            Self::Console
        } else {
            Self::All
        }
    }

    /// What stands for a sign that there is not; `None` if there is.
    pub fn instead(self, sign: &str) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Console => Some(match sign {
                "▁" | "▂" => "_",
                "▃" | "▅" => "▄",
                "▆" | "▇" => "█",
                "▞" => "%",
                "╭" => "┌",
                "╮" => "┐",
                "╰" => "└",
                "╯" => "┘",
                "…" => "~",
                "✗" => "x",
                _ => return None,
            }),
            Self::Ascii if sign.is_ascii() => None,
            Self::Ascii => Some(match sign {
                "▁" | "▂" => "_",
                "▃" | "▄" => ".",
                "▅" | "▆" => ":",
                "▇" | "█" => "#",
                "▓" => "=",
                "▒" | "╭" | "╮" | "╰" | "╯" => "+",
                "░" | "─" | "·" => "-",
                "▞" => "%",
                "│" | "▌" => "|",
                "▲" | "↑" => "^",
                "▼" | "↓" => "v",
                "→" => ">",
                "←" => "<",
                "…" => "~",
                "✗" => "x",
                _ => "?",
            }),
        }
    }
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// 256, of which the sixteenth and those after it look the same everywhere.
    Many,
    /// Sixteen, on a dark background.
    Dark,
    /// Sixteen, on a light background.
    Light,
}

/// A colour of 256, one of sixteen for a dark background, one for a light background.
type Shade = (u8, Color, Color);

const DIM: Shade = (244, Color::DarkGray, Color::DarkGray);
const ACCENT: Shade = (31, Color::Cyan, Color::Blue);
const WARN: Shade = (130, Color::Yellow, Color::Magenta);
const BAD: Shade = (197, Color::LightRed, Color::Red);

impl Palette {
    /// By `TERM`, `COLORTERM` and `COLORFGBG` (text and background, numbers of colours).
    fn of(term: &str, colorterm: &str, colorfgbg: &str) -> Self {
        let many = ["256color", "kitty", "alacritty", "foot", "ghostty", "direct"];
        if !colorterm.is_empty() || many.iter().any(|t| term.contains(t)) {
            return Self::Many;
        }
        match colorfgbg.rsplit(';').next() {
            Some("7" | "15") => Self::Light,
            _ => Self::Dark,
        }
    }

    const fn shade(self, (many, dark, light): Shade) -> Color {
        match self {
            Self::Many => Color::Indexed(many),
            Self::Dark => dark,
            Self::Light => light,
        }
    }
}

impl Theme {
    /// With colours, on any terminal but the console.
    pub const COLOUR: Self = Self { colour: true, palette: Palette::Many, signs: Signs::All };

    /// By `NO_COLOR` (set and not empty means none), `TERM` and what terminals say of their colours.
    pub fn from_environment() -> Self {
        let var = |name: &str| std::env::var(name).unwrap_or_default();
        let term = var("TERM");
        // the first that is set holds
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(var).into_iter().find(|l| !l.is_empty()).unwrap_or_default();
        Self {
            // terminals of old have none
            colour: var("NO_COLOR").is_empty() && !term.starts_with("vt"),
            palette: Palette::of(&term, &var("COLORTERM"), &var("COLORFGBG")),
            signs: Signs::of(&term, &locale),
        }
    }

    fn fg(self, c: Shade) -> Style {
        if self.colour { Style::new().fg(self.palette.shade(c)) } else { Style::new() }
    }

    /// Ordinary text.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// Less important text, and idle flows.
    pub fn dim(self) -> Style {
        if self.colour { self.fg(DIM) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// The bar on top.
    pub fn bar(self) -> Style {
        if self.colour {
            match self.palette {
                Palette::Many => Style::new().bg(Color::Indexed(24)).fg(Color::Indexed(231)),
                Palette::Dark | Palette::Light => Style::new().bg(Color::Blue).fg(Color::White),
            }
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    /// Values worth reading first.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Titles, plots, keys.
    pub fn accent(self) -> Style {
        self.fg(ACCENT)
    }

    /// Column heads.
    pub fn head(self) -> Style {
        self.accent().add_modifier(Modifier::BOLD)
    }

    /// The column that the table is sorted by.
    pub fn sorted(self) -> Style {
        self.accent().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Line under the cursor.
    pub fn cursor(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Congestion: CE, CNP.
    pub fn warn(self) -> Style {
        self.fg(WARN)
    }

    /// Loss and refusal: NAK, RNR, repeats, missing.
    pub fn bad(self) -> Style {
        self.fg(BAD).add_modifier(Modifier::BOLD)
    }

    /// Parts of the opcode mix: sign and style.
    pub fn part(self, i: usize) -> (&'static str, Style) {
        const PARTS: [(&str, Shade); 6] = [
            ("█", ACCENT),
            ("▓", WARN),
            ("▒", (67, Color::Blue, Color::Cyan)),
            ("░", DIM),
            ("▞", (133, Color::Magenta, Color::Red)),
            ("·", (66, Color::Gray, Color::Black)),
        ];
        let (sign, colour) = PARTS[i % PARTS.len()];
        (sign, self.fg(colour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of a colour of 256 (WCAG 2).
    fn luminance(n: u8) -> f64 {
        let rgb = match n {
            232.. => [8 + 10 * (n - 232); 3],
            _ => [(n - 16) / 36, (n - 16) / 6 % 6, (n - 16) % 6].map(|c| if c == 0 { 0 } else { 55 + 40 * c }),
        };
        let [r, g, b] = rgb.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn colours_can_be_read_on_black_and_on_white() {
        let parts = (0..6).map(|i| Theme::COLOUR.part(i).1);
        let all = [Theme::COLOUR.dim(), Theme::COLOUR.accent(), Theme::COLOUR.warn(), Theme::COLOUR.bad()];
        for style in all.into_iter().chain(parts) {
            let Some(Color::Indexed(n)) = style.fg else { panic!("{style:?}") };
            let l = luminance(n);
            let (on_black, on_white) = ((l + 0.05) / 0.05, 1.05 / (l + 0.05));
            assert!(on_black >= 3.0 && on_white >= 3.0, "{n}: {on_black:.1} on black, {on_white:.1} on white");
        }
    }

    #[test]
    fn what_terminals_say_of_their_signs() {
        assert_eq!(Signs::of("xterm", ""), Signs::All);
        assert_eq!(Signs::of("xterm", "C.UTF-8"), Signs::All);
        assert_eq!(Signs::of("xterm", "C"), Signs::Ascii);
        assert_eq!(Signs::of("vt220", "de_DE.UTF-8"), Signs::Ascii);
        assert_eq!(Signs::of("linux", "en_US.UTF-8"), Signs::Console);
    }

    #[test]
    fn what_terminals_say_of_their_colours() {
        assert_eq!(Palette::of("tmux-256color", "", ""), Palette::Many);
        assert_eq!(Palette::of("xterm", "truecolor", "0;15"), Palette::Many);
        assert_eq!(Palette::of("xterm", "", "0;15"), Palette::Light);
        assert_eq!(Palette::of("xterm", "", "0;default;15"), Palette::Light);
        assert_eq!(Palette::of("xterm", "", "15;0"), Palette::Dark);
        assert_eq!(Palette::of("linux", "", ""), Palette::Dark);
    }
}
