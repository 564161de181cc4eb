//! Display filters in Wireshark's syntax, over the fields of the registry.
//!
//! Text → tokens ([`lexer`]) → tree of tests ([`parser`]) → typed tests ([`check`]) → yes or no ([`eval`]). A field
//! that comes several times matches as Wireshark 4 has it: `==`, `<` and their like if any occurrence does, `!=` only
//! if none is equal; `===` asks for all, `!==` for any that differs.

mod check;
mod error;
mod eval;
mod lexer;
mod parser;

pub use error::Error;

use crate::dissect::{Tree, Wanted};

/// A compiled display filter.
#[derive(Debug)]
pub struct Filter {
    test: check::Test,
    wanted: Wanted,
}

impl Filter {
    /// Compiles a filter. The error knows where in the text it is.
    pub fn compile(text: &str) -> Result<Self, Error> {
        let located = |e: error::Fault| e.in_text(text);
        let tokens = lexer::tokens(text).map_err(located)?;
        let parsed = parser::parse(&tokens, text.len()).map_err(located)?;
        let mut wanted = Wanted::NONE;
        let test = check::check(&parsed, &mut wanted).map_err(located)?;
        Ok(Self { test, wanted })
    }

    /// Fields that it reads.
    pub const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Whether a packet passes. `tree` holds at least the wanted fields, `frame` the captured bytes.
    pub fn matches(&self, tree: &Tree<'_>, frame: &[u8]) -> bool {
        eval::test(&self.test, tree, frame)
    }
}

#[cfg(test)]
mod tests;
