//! A typed filter on the fields of a packet.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::check::{Constant, Element, Function, Relation, Slice, Source, Test};
use crate::dissect::{Node, Tree, Value};

/// Whether a packet passes.
pub fn test(t: &Test, tree: &Tree<'_>, frame: &[u8]) -> bool {
    match t {
        Test::And(all) => all.iter().all(|t| test(t, tree, frame)),
        Test::Or(all) => all.iter().any(|t| test(t, tree, frame)),
        Test::Xor(all) => all.iter().filter(|t| test(t, tree, frame)).count() % 2 == 1,
        Test::Not(a) => !test(a, tree, frame),
        Test::Present(s) => match s.mask {
            Some(_) => items(s, tree, frame).any(|i| matches!(i, Item::Number(n) if n != 0)),
            None => items(s, tree, frame).next().is_some(),
        },
        Test::Compare { left, relation, all, right } => {
            quantify(items(left, tree, frame), *all, |i| compare(i, *relation, right))
        }
        Test::CompareFields { left, relation, all, right } => {
            let mut right = items(right, tree, frame).peekable();
            if right.peek().is_none() {
                return false;
            }
            let right: Vec<Item<'_>> = right.collect();
            quantify(items(left, tree, frame), *all, |l| {
                let holds = |r: &Item<'_>| order(l, r).is_some_and(|o| relation_holds(*relation, o));
                if *all { right.iter().all(holds) } else { right.iter().any(holds) }
            })
        }
        Test::In { left, set } => items(left, tree, frame).any(|i| {
            set.iter().any(|e| match e {
                Element::One(c) => compare(&i, Relation::Equal, c),
                Element::Range(low, high) => {
                    compare(&i, Relation::GreaterEqual, low) && compare(&i, Relation::LessEqual, high)
                }
            })
        }),
        Test::Contains { left, needle } => {
            items(left, tree, frame).any(|i| i.bytes().is_some_and(|b| find(&b, needle)))
        }
        Test::Matches { left, regex } => {
            items(left, tree, frame).any(|i| i.bytes().is_some_and(|b| regex.is_match(&b)))
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

/// Any or all, but never without an occurrence.
fn quantify<'v>(items: impl Iterator<Item = Item<'v>>, all: bool, holds: impl Fn(&Item<'v>) -> bool) -> bool {
    let mut any = false;
    for i in items {
        let h = holds(&i);
        if h && !all {
            return true;
        }
        if !h && all {
            return false;
        }
        any = true;
    }
    any && all
}

/// A value that can be compared.
#[derive(Debug)]
enum Item<'v> {
    Number(i128),
    Bytes(Cow<'v, [u8]>),
    Text(Cow<'v, str>),
}

impl Item<'_> {
    fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Number(_) => None,
            Self::Bytes(b) => Some(Cow::Borrowed(b)),
            Self::Text(t) => Some(Cow::Borrowed(t.as_bytes())),
        }
    }
}

/// The values of a source.
fn items<'v>(s: &'v Source, tree: &'v Tree<'_>, frame: &'v [u8]) -> impl Iterator<Item = Item<'v>> {
    let nodes = tree.nodes().iter().filter(|n| n.field.is(s.field));
    let count = (s.function == Some(Function::Count)).then(|| Item::Number(nodes.clone().count() as i128));
    let values = nodes.filter(|_| s.function != Some(Function::Count)).filter_map(|n| item(s, n, frame));
    count.into_iter().chain(values)
}

fn item<'v>(s: &'v Source, n: &'v Node<'_>, frame: &'v [u8]) -> Option<Item<'v>> {
    let range = n.range.start as usize..n.range.end as usize;
    if let Some(slices) = &s.slice {
        // text is sliced as it prints, everything else as it stands in the frame
        let whole: &[u8] = match &n.value {
            Value::Str(t) => t.as_bytes(),
            _ => frame.get(range)?,
        };
        let part = match slices.as_slice() {
            [one] => Cow::Borrowed(cut(whole, *one)?),
            several => Cow::Owned(several.iter().map(|s| cut(whole, *s)).collect::<Option<Vec<_>>>()?.concat()),
        };
        return Some(match s.function {
            Some(Function::Len) => Item::Number(part.len() as i128),
            _ => Item::Bytes(part),
        });
    }
    let value = match &n.value {
        Value::None => Item::Bytes(Cow::Borrowed(frame.get(range).unwrap_or(&[]))),
        Value::Bool(v) => Item::Number(i128::from(*v)),
        Value::Uint(v) => Item::Number(i128::from(*v)),
        Value::Int(v) | Value::Time(v) | Value::Duration(v) => Item::Number(i128::from(*v)),
        Value::Ether(a) => Item::Bytes(Cow::Borrowed(a)),
        Value::Ipv4(a) => Item::Bytes(Cow::Borrowed(a)),
        Value::Ipv6(a) => Item::Bytes(Cow::Borrowed(a)),
        Value::Bytes(b) => Item::Bytes(Cow::Borrowed(b)),
        Value::Str(t) => Item::Text(Cow::Borrowed(t)),
    };
    Some(match (s.function, value) {
        (Some(Function::Len), Item::Number(_)) => Item::Number((n.range.end - n.range.start).into()),
        (Some(Function::Len), v) => Item::Number(v.bytes().map_or(0, |b| b.len()) as i128),
        (Some(Function::Upper), Item::Text(t)) => Item::Text(Cow::Owned(t.to_uppercase())),
        (Some(Function::Lower), Item::Text(t)) => Item::Text(Cow::Owned(t.to_lowercase())),
        (_, Item::Number(v)) => Item::Number(s.mask.map_or(v, |m| v & i128::from(m))),
        (_, v) => v,
    })
}

fn cut(whole: &[u8], s: Slice) -> Option<&[u8]> {
    let place = |i: i64| {
        if i < 0 { whole.len().checked_sub(usize::try_from(i.unsigned_abs()).ok()?) } else { usize::try_from(i).ok() }
    };
    let from = place(s.from)?;
    // what is beyond the end does not exist; a length beyond it is cut
    let to = s.to.map_or(Some(whole.len()), place)?.min(whole.len());
    whole.get(from..to).filter(|b| !b.is_empty())
}

fn order(a: &Item<'_>, b: &Item<'_>) -> Option<Ordering> {
    match (a, b) {
        (Item::Number(a), Item::Number(b)) => Some(a.cmp(b)),
        (Item::Bytes(a), Item::Bytes(b)) => Some(a.cmp(b)),
        (Item::Text(a), Item::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare(i: &Item<'_>, relation: Relation, c: &Constant) -> bool {
    let ordering = match (i, c) {
        (Item::Number(n), Constant::Number(c)) => n.cmp(c),
        (Item::Number(n), Constant::OneOf(set)) => {
            let is = set.iter().any(|v| i128::from(*v) == *n);
            return is == (relation == Relation::Equal);
        }
        (Item::Bytes(b), Constant::Bytes(c)) => b.as_ref().cmp(c.as_slice()),
        (Item::Bytes(b), Constant::Masked { value, mask }) => {
            let is = b.len() == value.len() && b.iter().zip(value).zip(mask).all(|((a, b), m)| a & m == b & m);
            return is == (relation == Relation::Equal);
        }
        (Item::Text(t), Constant::Text(c)) => t.as_ref().cmp(c.as_str()),
        _ => return false,
    };
    relation_holds(relation, ordering)
}

fn relation_holds(relation: Relation, o: Ordering) -> bool {
    match relation {
        Relation::Equal => o.is_eq(),
        Relation::NotEqual => o.is_ne(),
        Relation::Greater => o.is_gt(),
        Relation::Less => o.is_lt(),
        Relation::GreaterEqual => o.is_ge(),
        Relation::LessEqual => o.is_le(),
    }
}
