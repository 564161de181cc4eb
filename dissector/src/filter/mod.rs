//! Display filters in Wireshark's syntax, over the fields of the registry.
//!
//! Text → tokens ([`lexer`]) → tree of tests ([`parser`]) → typed tests ([`check`]) → yes or no ([`eval`]). A field
//! that comes several times matches as Wireshark 4 has it: `==`, `<` and their like if any occurrence does, `!=` only
//! if none is equal; `===` asks for all, `!==` for any that differs, and `any` or `all` before a test decides it. Operands
//! may be calculated (`+ - * / % &`, braces), made by functions (`string(ip.src)`), cut (`frame[12:2]`) and taken from one
//! of several layers (`ip.src#2`).

mod check;
mod error;
mod eval;
mod lexer;
mod parser;

pub use error::Error;

use crate::dissect::{Field, Tree, Wanted, registry};

/// The names that a filter may use. A filter over something that is no packet brings its own fields, whose numbers are
/// its own too, and is asked with a [`Tree`] that holds their values.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    /// The field of a name.
    pub find: fn(&str) -> Option<&'static Field>,
    /// A field of the same name for values of another type: the literal that it is compared with decides.
    pub other: fn(&Field) -> Option<&'static Field>,
    /// What to say of a name that is no field's.
    pub unknown: fn(&str) -> String,
}

impl Vocabulary {
    /// The registry.
    pub const PACKETS: Self = Self {
        find: registry::find,
        other: |_| None,
        unknown: |name| match registry::nearest(name) {
            Some(near) => format!("no field is called {name}; did you mean {near}?"),
            None => format!("no field is called {name}; `roce-dissect fields` lists all"),
        },
    };
}

/// A compiled display filter.
#[derive(Debug)]
pub struct Filter {
    test: check::Test,
    wanted: Wanted,
}

impl Filter {
    /// Compiles a filter over the registry's fields. The error knows where in the text it is.
    pub fn compile(text: &str) -> Result<Self, Error> {
        Self::compile_for(text, &Vocabulary::PACKETS)
    }

    /// Compiles a filter over other things than packets.
    pub fn compile_for(text: &str, vocabulary: &Vocabulary) -> Result<Self, Error> {
        let located = |e: error::Fault| e.in_text(text);
        let tokens = lexer::tokens(text).map_err(located)?;
        let parsed = parser::parse(&tokens, text.len()).map_err(located)?;
        let mut names = check::Reading { vocabulary, wanted: Wanted::NONE };
        let test = check::check(&parsed, &mut names).map_err(located)?;
        Ok(Self { test, wanted: names.wanted })
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
