//! Colours. Nothing is said by colour alone: what matters is also bold, marked with a sign, or in words.
//!
//! The sixteen colours of the terminal's own palette, so that its scheme holds. Blue against yellow is what
//! people with any of the common colour deficiencies tell apart; red and green never stand for two ends.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// Whether colours may be used; modifiers always are.
    pub colour: bool,
    /// The Linux console, whose fonts have few signs.
    pub console: bool,
}

impl Theme {
    /// With colours, on any terminal but the console.
    pub const COLOUR: Self = Self { colour: true, console: false };

    /// By `NO_COLOR` (set and not empty means none) and `TERM`.
    pub fn from_environment() -> Self {
        Self {
            colour: std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
            console: std::env::var_os("TERM").is_some_and(|t| t == "linux"),
        }
    }

    fn fg(self, c: Color) -> Style {
        if self.colour { Style::new().fg(c) } else { Style::new() }
    }

    /// Ordinary text.
    pub fn text(self) -> Style {
        Style::new()
    }

    /// Less important text, and idle flows.
    pub fn dim(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// The bar on top.
    pub fn bar(self) -> Style {
        if self.colour {
            Style::new().bg(Color::Blue).fg(Color::White)
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
        self.fg(Color::Cyan)
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
        self.fg(Color::Yellow)
    }

    /// Loss and refusal: NAK, RNR, repeats, missing.
    pub fn bad(self) -> Style {
        self.fg(Color::LightRed).add_modifier(Modifier::BOLD)
    }

    /// Parts of the opcode mix: sign and style.
    pub fn part(self, i: usize) -> (&'static str, Style) {
        const PARTS: [(&str, Color); 6] = [
            ("█", Color::Cyan),
            ("▓", Color::Yellow),
            ("▒", Color::Blue),
            ("░", Color::White),
            ("▞", Color::Magenta),
            ("·", Color::Gray),
        ];
        let (sign, colour) = PARTS[i % PARTS.len()];
        (sign, self.fg(colour))
    }
}
