//! Typed values out of a TOML document, each with its place for errors.

use std::ops::Range as Span;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Word;
use crate::fault::words::{self, Wrong, quoted};

/// An error with its place in the text.
pub(super) type At = (Span<usize>, Wrong);

/// A value with its place.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

pub(super) fn bad<T>(v: &Value<'_>, wrong: Wrong) -> Result<T, At> {
    Err((v.span(), wrong))
}

pub(super) fn want<T>(v: &Value<'_>, key: &str, what: &str) -> Result<T, At> {
    bad(v, Wrong::new(format!("`{key}` must be {what}, not {}", article(v.get_ref().type_str()))))
}

fn article(kind: &str) -> String {
    let an = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if an { "an" } else { "a" })
}

/// Checks that every key is known.
pub(super) fn known(table: &DeTable<'_>, section: &str, keys: &[Word]) -> Result<(), At> {
    for key in table.keys() {
        if !keys.iter().any(|k| k.word == key.get_ref().as_ref()) {
            let all = keys.iter().map(|k| k.word);
            return Err((key.span(), Wrong::unknown(&format!("key in {section}"), key.get_ref(), all)));
        }
    }
    Ok(())
}

pub(super) fn get<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t Value<'a>> {
    table.get(key)
}

/// A text, or a number as its digits: what the word parsers read.
pub(super) fn word(v: &Value<'_>, key: &str, what: &str) -> Result<String, At> {
    match v.get_ref() {
        DeValue::String(s) => Ok(s.to_string()),
        DeValue::Integer(_) => integer(v, key, what).map(|n| n.to_string()),
        DeValue::Float(f) => Ok(f.as_str().to_owned()),
        _ => want(v, key, what),
    }
}

pub(super) fn integer(v: &Value<'_>, key: &str, what: &str) -> Result<u64, At> {
    match v.get_ref() {
        DeValue::Integer(i) => match i128::from_str_radix(&i.as_str().replace('_', ""), i.radix()) {
            Ok(n) => u64::try_from(n).or_else(|_| bad(v, Wrong::new(format!("`{key}` must be {what}, not {n}")))),
            Err(_) => bad(v, Wrong::new(format!("`{key}` is too large a number"))),
        },
        // numbers in quotes are as good
        DeValue::String(s) => words::number(s).or_else(|w| bad(v, w)),
        _ => want(v, key, what),
    }
}

pub(super) fn positive(v: &Value<'_>, key: &str) -> Result<u64, At> {
    match integer(v, key, "a number from 1")? {
        0 => bad(v, Wrong::new(format!("`{key}` counts from 1"))),
        n => Ok(n),
    }
}

pub(super) fn boolean(v: &Value<'_>, key: &str) -> Result<bool, At> {
    v.get_ref().as_bool().map_or_else(|| want(v, key, "true or false"), Ok)
}

pub(super) fn text(v: &Value<'_>, key: &str) -> Result<String, At> {
    let Some(s) = v.get_ref().as_str() else { return want(v, key, "text") };
    if s.chars().any(char::is_control) && key != "command" {
        return bad(v, Wrong::new(format!("`{key}` holds control characters")));
    }
    if s.contains('\0') {
        return bad(v, Wrong::new(format!("`{key}` holds a NUL character")));
    }
    Ok(s.to_owned())
}

pub(super) fn parsed<T>(
    v: &Value<'_>,
    key: &str,
    what: &str,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<T, At> {
    parse(&word(v, key, what)?).or_else(|w| bad(v, Wrong { message: format!("`{key}`: {}", w.message), ..w }))
}

/// A duration in words, or seconds as a number.
pub(super) fn duration(v: &Value<'_>, key: &str) -> Result<Duration, At> {
    match v.get_ref() {
        DeValue::Integer(_) | DeValue::Float(_) => parsed(v, key, "a duration", |w| {
            words::seconds(
                w.replace('_', "").parse().map_err(|_| Wrong::new(format!("{} is not a duration", quoted(w))))?,
            )
        }),
        _ => parsed(v, key, "a duration such as \"200ms\"", words::duration),
    }
}

pub(super) fn table<'t, 'a>(v: &'t Value<'a>, key: &str) -> Result<&'t DeTable<'a>, At> {
    match v.get_ref().as_table() {
        Some(t) => Ok(t),
        None => want(v, key, "a table"),
    }
}
