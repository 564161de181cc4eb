//! What is wrong with a filter, and where.

use std::fmt;
use std::ops::Range;

use crate::output::value::printable;

/// Bytes of the filter that are shown before a fault, and half of those from there on.
const AROUND: usize = 200;

/// Bytes of the sentence that are shown: it may quote a word of the filter.
const LONGEST: usize = 600;

/// Something wrong at a place of the text.
#[derive(Debug)]
pub struct Fault {
    /// Bytes of the text.
    pub at: Range<usize>,
    /// What is wrong there, and what would be right.
    pub what: String,
}

impl Fault {
    pub fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    pub fn in_text(self, text: &str) -> Error {
        Error { text: text.to_owned(), at: self.at, what: self.what }
    }
}

/// A filter that does not compile. Displays as a sentence, then the filter with a mark below the place.
#[derive(Debug, PartialEq, Eq)]
pub struct Error {
    text: String,
    at: Range<usize>,
    what: String,
}

impl Error {
    /// The sentence alone.
    pub fn sentence(&self) -> &str {
        &self.what
    }

    /// Bytes of the filter that are wrong.
    pub const fn place(&self) -> &Range<usize> {
        &self.at
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // of a long filter, what is around the place
        let from = floor(&self.text, self.at.start.saturating_sub(AROUND));
        let to = floor(&self.text, self.at.start.saturating_add(2 * AROUND));
        let part = |r: Range<usize>| self.text.get(r).unwrap_or("");
        let shown = |r: Range<usize>| printable(part(r)).chars().count();
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < self.text.len() { "…" } else { "" });
        let marks = shown(self.at.start..self.at.end.min(to)).max(1);
        let what = self.what.get(..floor(&self.what, LONGEST)).unwrap_or("");
        let end = if what.len() < self.what.len() { "…" } else { "" };
        writeln!(f, "{}{end}", printable(what))?;
        writeln!(f, "  {before}{}{after}", printable(part(from..to)))?;
        let column = before.chars().count() + shown(from..self.at.start);
        write!(f, "  {:column$}^{}", "", "~".repeat(marks - 1))
    }
}

/// The last place not after `at` where a character starts, or the end.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}
