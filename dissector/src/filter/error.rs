//! What is wrong with a filter, and where.

use std::fmt;
use std::ops::Range;

use crate::output::value::printable;

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
        let shown = |r: Range<usize>| printable(self.text.get(r).unwrap_or("")).chars().count();
        let marks = shown(self.at.clone()).max(1);
        writeln!(f, "{}", printable(&self.what))?;
        writeln!(f, "  {}", printable(&self.text))?;
        write!(f, "  {:before$}^{}", "", "~".repeat(marks - 1), before = shown(0..self.at.start))
    }
}
