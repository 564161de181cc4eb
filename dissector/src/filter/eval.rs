//! A typed filter on the fields of a packet.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::check::{Arithmetic, Constant, Element, Function, Layer, Relation, Slice, Source, Test};
use crate::dissect::{Field, Node, Tree, Type, Value};

/// Whether a packet passes.
pub fn test(t: &Test, tree: &Tree<'_>, frame: &[u8]) -> bool {
    let p = Packet { tree, frame };
    match t {
        Test::And(all) => all.iter().all(|t| test(t, tree, frame)),
        Test::Or(all) => all.iter().any(|t| test(t, tree, frame)),
        Test::Xor(all) => all.iter().filter(|t| test(t, tree, frame)).count() % 2 == 1,
        Test::Not(a) => !test(a, tree, frame),
        Test::Present(s) => p.each(s, &mut |i| match s {
            // of what is calculated, whether it is anything
            Source::Arithmetic(..) | Source::Negative(_) => i.is_anything(),
            _ => true,
        }),
        Test::Compare { left, relation, all, right } => p.quantify(left, *all, |i| compare(i, *relation, right)),
        Test::CompareFields { left, relation, all, right } => p.quantify(left, *all, |l| {
            p.quantify(right, *all, |r| order(l, r).is_some_and(|o| relation_holds(*relation, o)))
        }),
        Test::In { left, set, all } => p.quantify(left, *all, |i| {
            set.iter().any(|e| match e {
                Element::One(c) => compare(i, Relation::Equal, c),
                Element::Range(low, high) => {
                    compare(i, Relation::GreaterEqual, low) && compare(i, Relation::LessEqual, high)
                }
            })
        }),
        Test::Contains { left, needle, all } => p.quantify_bytes(left, *all, |b| find(b, needle)),
        Test::Matches { left, regex, all } => p.quantify_bytes(left, *all, |b| regex.is_match(b)),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
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

    fn to_owned(&self) -> Item<'static> {
        match self {
            Self::Number(n) => Item::Number(*n),
            Self::Bytes(b) => Item::Bytes(Cow::Owned(b.to_vec())),
            Self::Text(t) => Item::Text(Cow::Owned(t.to_string())),
        }
    }

    fn is_anything(&self) -> bool {
        match self {
            Self::Number(n) => *n != 0,
            Self::Bytes(b) => b.iter().any(|b| *b != 0),
            Self::Text(t) => !t.is_empty(),
        }
    }

    /// As `string()` has it: numbers in decimal, addresses as they print, bytes with colons.
    fn text(&self, ty: Type) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(t) => t.clone().into_owned(),
            Self::Bytes(b) => match (ty, b.first_chunk::<4>(), b.first_chunk::<16>()) {
                (Type::Ipv4, Some(a), _) => std::net::Ipv4Addr::from(*a).to_string(),
                (Type::Ipv6, _, Some(a)) => std::net::Ipv6Addr::from(*a).to_string(),
                _ => b.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"),
            },
        }
    }
}

/// What is asked: the fields of a packet and its bytes.
#[derive(Clone, Copy)]
struct Packet<'v> {
    tree: &'v Tree<'v>,
    frame: &'v [u8],
}

impl<'v> Packet<'v> {
    /// Hands the values of a source over, one after the other, until one is taken; whether one was.
    fn each(self, s: &Source, take: &mut dyn FnMut(&Item<'_>) -> bool) -> bool {
        match s {
            Source::Field(f) => self.nodes(f).any(|n| take(&self.value(n))),
            Source::Layer(f, which) => self.in_layers(f, which).any(|n| take(&self.value(n))),
            Source::Slice(inner, slices) => {
                self.each_whole(inner, &mut |whole| sliced(whole, slices).is_some_and(|part| take(&Item::Bytes(part))))
            }
            Source::Function(function, arguments) => self.call(*function, arguments, take),
            Source::Negative(inner) => self.each(inner, &mut |i| match i {
                Item::Number(n) => n.checked_neg().is_some_and(|n| take(&Item::Number(n))),
                _ => false,
            }),
            Source::Arithmetic(op, both) => {
                self.each(&both.0, &mut |a| self.each(&both.1, &mut |b| calculate(*op, a, b).is_some_and(|i| take(&i))))
            }
            Source::Constant(c, _) => match c {
                Constant::Number(n) => take(&Item::Number(*n)),
                Constant::Bytes(b) => take(&Item::Bytes(Cow::Owned(b.clone()))),
                Constant::Text(t) => take(&Item::Text(Cow::Owned(t.clone()))),
                Constant::OneOf(_) | Constant::Masked { .. } => false,
            },
        }
    }

    fn call(self, function: Function, arguments: &[Source], take: &mut dyn FnMut(&Item<'_>) -> bool) -> bool {
        let [first, ..] = arguments else { return false };
        match function {
            Function::Count => {
                let mut count = 0;
                self.each(first, &mut |_| {
                    count += 1;
                    false
                });
                // what is not there has no number of occurrences, as in Wireshark
                count > 0 && take(&Item::Number(count))
            }
            Function::Len => match first {
                Source::Field(f) => self.nodes(f).any(|n| take(&Item::Number(self.len(n)))),
                Source::Layer(f, which) => self.in_layers(f, which).any(|n| take(&Item::Number(self.len(n)))),
                _ => self.each(first, &mut |i| i.bytes().is_some_and(|b| take(&Item::Number(b.len() as i128)))),
            },
            Function::Upper | Function::Lower => self.each(first, &mut |i| match i {
                Item::Text(t) if function == Function::Upper => take(&Item::Text(Cow::Owned(t.to_uppercase()))),
                Item::Text(t) => take(&Item::Text(Cow::Owned(t.to_lowercase()))),
                _ => false,
            }),
            Function::Text => {
                let ty = match first {
                    Source::Field(f) | Source::Layer(f, _) => f.ty,
                    _ => Type::Bytes,
                };
                self.each(first, &mut |i| take(&Item::Text(Cow::Owned(i.text(ty)))))
            }
            Function::Abs => self.each(first, &mut |i| match i {
                Item::Number(n) => n.checked_abs().is_some_and(|n| take(&Item::Number(n))),
                _ => false,
            }),
            Function::Min | Function::Max => {
                let wanted = if function == Function::Min { Ordering::Less } else { Ordering::Greater };
                let mut best: Option<Item<'static>> = None;
                for a in arguments {
                    self.each(a, &mut |i| {
                        if best.as_ref().is_none_or(|b| order(i, b) == Some(wanted)) {
                            best = Some(i.to_owned());
                        }
                        false
                    });
                }
                best.is_some_and(|b| take(&b))
            }
        }
    }

    /// Any or all, but never without an occurrence.
    fn quantify(self, s: &Source, all: bool, holds: impl Fn(&Item<'_>) -> bool) -> bool {
        let mut any = false;
        let ended = self.each(s, &mut |i| {
            any = true;
            // the first that holds, or the first of all that does not, decides
            holds(i) != all
        });
        if all { any && !ended } else { ended }
    }

    /// The same for bytes; a protocol's are those from its header to the end of the frame.
    fn quantify_bytes(self, s: &Source, all: bool, holds: impl Fn(&[u8]) -> bool) -> bool {
        match s {
            Source::Field(f) if f.ty == Type::None && !f.name.contains('.') => {
                let mut any = false;
                let ended = self.nodes(f).any(|n| {
                    any = true;
                    holds(self.frame.get(n.range.start as usize..).unwrap_or(&[])) != all
                });
                if all { any && !ended } else { ended }
            }
            _ => self.quantify(s, all, |i| i.bytes().is_some_and(|b| holds(&b))),
        }
    }

    fn nodes(self, f: &'static Field) -> impl Iterator<Item = &'v Node<'v>> {
        self.tree.nodes().iter().filter(move |n| n.field.is(f))
    }

    /// Nodes of a field whose protocol's header, counted from 1, is one of those asked for.
    fn in_layers<'s>(self, f: &'static Field, which: &'s Layer) -> impl Iterator<Item = &'v Node<'v>> + 's
    where
        'v: 's,
    {
        let last = i64::try_from(self.nodes(which.header).count()).unwrap_or(i64::MAX);
        let mut layer = 0;
        self.tree.nodes().iter().filter(move |n| {
            layer += i64::from(n.field.is(which.header));
            n.field.is(f)
                && which.which.iter().any(|w| {
                    let place = |i: i64| if i < 0 { last + 1 + i } else { i };
                    layer >= place(w.from) && w.to.is_none_or(|to| layer < place(to))
                })
        })
    }

    fn bytes_of(self, n: &Node<'_>) -> Option<&'v [u8]> {
        self.frame.get(n.range.start as usize..n.range.end as usize)
    }

    fn value(self, n: &'v Node<'v>) -> Item<'v> {
        match &n.value {
            Value::None => Item::Bytes(Cow::Borrowed(self.bytes_of(n).unwrap_or(&[]))),
            Value::Bool(v) => Item::Number(i128::from(*v)),
            Value::Uint(v) => Item::Number(i128::from(*v)),
            Value::Int(v) | Value::Time(v) | Value::Duration(v) => Item::Number(i128::from(*v)),
            Value::Ether(a) => Item::Bytes(Cow::Borrowed(a)),
            Value::Ipv4(a) => Item::Bytes(Cow::Borrowed(a)),
            Value::Ipv6(a) => Item::Bytes(Cow::Borrowed(a)),
            Value::Bytes(b) => Item::Bytes(Cow::Borrowed(b)),
            Value::Str(t) => Item::Text(Cow::Borrowed(t)),
        }
    }

    fn len(self, n: &'v Node<'v>) -> i128 {
        match self.value(n).bytes() {
            Some(b) => b.len() as i128,
            None => (n.range.end - n.range.start).into(),
        }
    }

    /// The bytes that are sliced: text as it prints, everything else as it stands in the frame.
    fn each_whole(self, s: &Source, take: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let mut whole = |n: &'v Node<'v>| match &n.value {
            Value::Str(t) => take(t.as_bytes()),
            _ => self.bytes_of(n).is_some_and(&mut *take),
        };
        match s {
            Source::Field(f) => self.nodes(f).any(whole),
            Source::Layer(f, which) => self.in_layers(f, which).any(&mut whole),
            _ => self.each(s, &mut |i| i.bytes().is_some_and(|b| take(&b))),
        }
    }
}

/// Two values make one; `None` where they make none (division by zero, bytes of different length).
fn calculate(op: Arithmetic, a: &Item<'_>, b: &Item<'_>) -> Option<Item<'static>> {
    match (a, b) {
        (Item::Number(a), Item::Number(b)) => {
            let v = match op {
                Arithmetic::And => Some(a & b),
                Arithmetic::Add => a.checked_add(*b),
                Arithmetic::Subtract => a.checked_sub(*b),
                Arithmetic::Multiply => a.checked_mul(*b),
                Arithmetic::Divide => a.checked_div(*b),
                Arithmetic::Modulo => a.checked_rem(*b),
            };
            v.map(Item::Number)
        }
        (Item::Bytes(a), Item::Bytes(b)) if op == Arithmetic::And && a.len() == b.len() => {
            Some(Item::Bytes(Cow::Owned(a.iter().zip(b.iter()).map(|(a, b)| a & b).collect())))
        }
        _ => None,
    }
}

fn sliced<'w>(whole: &'w [u8], slices: &[Slice]) -> Option<Cow<'w, [u8]>> {
    match slices {
        [one] => cut(whole, *one).map(Cow::Borrowed),
        several => several.iter().map(|s| cut(whole, *s)).collect::<Option<Vec<_>>>().map(|p| Cow::Owned(p.concat())),
    }
}

fn cut(whole: &[u8], s: Slice) -> Option<&[u8]> {
    let place = |i: i64| {
        if i < 0 { whole.len().checked_sub(usize::try_from(i.unsigned_abs()).ok()?) } else { usize::try_from(i).ok() }
    };
    let from = place(s.from)?;
    // what is beyond the end does not exist, nor does a slice that would go there
    let to = s.to.map_or(Some(whole.len()), place)?;
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
