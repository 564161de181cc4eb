//! What was found in a packet: fields in the order of their bytes, as a flat list with depths.
//!
//! Builders add every field they find; a tree that was made for a few fields ([`Tree::for_fields`]) drops the rest
//! at once, so one set of builders serves the full tree, filters and columns. Depth says what belongs under what:
//! a node's children are those after it that are deeper.

use std::borrow::Cow;
use std::ops::Range;

use super::registry::{Field, Wanted};

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A protocol or header; its bytes are the node's range.
    None,
    /// Yes or no.
    Bool(bool),
    /// Number, already shifted down if it is part of a byte.
    Uint(u64),
    /// Signed number.
    Int(i64),
    /// Ethernet address.
    Ether([u8; 6]),
    /// IPv4 address.
    Ipv4([u8; 4]),
    /// IPv6 address or GID.
    Ipv6([u8; 16]),
    /// Bytes as captured.
    Bytes(&'a [u8]),
    /// Text.
    Str(Cow<'a, str>),
    /// Nanoseconds since the epoch.
    Time(i64),
    /// Nanoseconds.
    Duration(i64),
}

macro_rules! from {
    ($($t:ty => $v:ident),*) => { $(impl From<$t> for Value<'_> {
        fn from(v: $t) -> Self { Self::$v(v.into()) }
    })* };
}
from!(bool => Bool, u8 => Uint, u16 => Uint, u32 => Uint, u64 => Uint, i64 => Int, [u8; 6] => Ether, [u8; 4] => Ipv4, [u8; 16] => Ipv6);

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(v: &'a [u8]) -> Self {
        Self::Bytes(v)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Self::Str(Cow::Borrowed(v))
    }
}
impl From<String> for Value<'_> {
    fn from(v: String) -> Self {
        Self::Str(Cow::Owned(v))
    }
}
impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(v: Cow<'a, str>) -> Self {
        Self::Str(v)
    }
}

/// One field that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// Which.
    pub field: &'static Field,
    /// Its value.
    pub value: Value<'a>,
    /// Its bytes, from the start of the frame; empty for what was derived.
    pub range: Range<u32>,
    /// How deep: 0 for protocols.
    pub depth: u8,
    /// The node's line in the tree, if it says more than title and value.
    pub label: Option<Cow<'a, str>>,
    /// Derived from other packets or by calculation, not read: shown in brackets.
    pub generated: bool,
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Fields found in one packet, in pre-order.
#[derive(Debug)]
pub struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    depth: u8,
    /// Where the bytes of a header end that the capture cut.
    end: Option<usize>,
    wanted: Cow<'a, Wanted>,
}

/// Room for nodes, empty.
#[derive(Debug, Default)]
pub struct Nodes(Vec<Node<'static>>);

/// An empty list for nodes of another packet in the same memory: collecting an iterator over a list into a list of
/// the same layout keeps its allocation.
fn relabel<'b>(mut nodes: Vec<Node<'_>>) -> Vec<Node<'b>> {
    nodes.clear();
    nodes.into_iter().map_while(|_| None).collect()
}

/// How deep a tree gets; deeper nodes stay at this depth.
pub const MAX_DEPTH: u8 = 32;

impl Default for Tree<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Tree<'a> {
    /// A tree that keeps everything.
    pub fn new() -> Self {
        Self { nodes: Vec::with_capacity(96), depth: 0, end: None, wanted: Cow::Borrowed(const { &Wanted::ALL }) }
    }

    /// A tree that keeps only what is wanted.
    pub fn for_fields(wanted: &'a Wanted) -> Self {
        Self { nodes: Vec::new(), depth: 0, end: None, wanted: Cow::Borrowed(wanted) }
    }

    /// The same in the memory of an earlier packet's nodes.
    pub fn reusing(wanted: &'a Wanted, nodes: Nodes) -> Self {
        Self { nodes: relabel(nodes.0), depth: 0, end: None, wanted: Cow::Borrowed(wanted) }
    }

    /// Gives the memory back for the next packet.
    pub fn into_nodes(self) -> Nodes {
        Nodes(relabel(self.nodes))
    }

    /// What was found.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// Whether anybody asks for this field: saves the work of making its value.
    #[inline]
    pub fn wants(&self, field: &Field) -> bool {
        self.wanted.has(field)
    }

    /// Whether anybody asks for a field of this group.
    #[inline]
    pub fn wants_group(&self, group: u16) -> bool {
        self.wanted.has_group(group)
    }

    /// Whether anybody asks for one of these.
    pub fn wants_any(&self, fields: &[&Field]) -> bool {
        self.wanted.has_any(fields)
    }

    /// Adds a field with its bytes (`range` counts from the start of the frame).
    #[inline]
    pub fn add(&mut self, field: &'static Field, range: Range<usize>, value: impl Into<Value<'a>>) {
        if self.wants(field) {
            self.push(field, range, value.into(), false);
        }
    }

    /// Adds a field that was derived, not read.
    #[inline]
    pub fn derive(&mut self, field: &'static Field, value: impl Into<Value<'a>>) {
        if self.wants(field) {
            self.push(field, 0..0, value.into(), true);
        }
    }

    /// Adds a field below which others follow until [`Tree::close`].
    pub fn open(&mut self, field: &'static Field, range: Range<usize>, value: impl Into<Value<'a>>) {
        self.add(field, range, value);
        self.depth = self.depth.saturating_add(1);
    }

    /// Adds a protocol or header that has no value of its own; others follow until [`Tree::close`].
    pub fn open_header(&mut self, field: &'static Field, range: Range<usize>) {
        self.open(field, range, Value::None);
    }

    /// Ends what [`Tree::open`] began.
    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Gives the newest node a line of its own in the tree, if that node is this field.
    pub fn label(&mut self, field: &'static Field, label: impl FnOnce() -> String) {
        if self.end.is_some() && field.ty == super::Type::None {
            return; // it would speak of what is not there
        }
        if let Some(n) = self.nodes.last_mut()
            && n.field.is(field)
        {
            n.label = Some(Cow::Owned(label()));
        }
    }

    /// Adds a remark of the dissector about these bytes.
    pub fn note(&mut self, range: Range<usize>, text: impl Fn() -> String) {
        use super::analysis::{EXPERT, EXPERT_MESSAGE, NOTE};
        if self.wants(&EXPERT) {
            self.push(&EXPERT, range.clone(), Value::None, true);
        }
        for field in [&NOTE, &EXPERT_MESSAGE] {
            if self.wants(field) {
                self.push(field, range.clone(), Value::Str(Cow::Owned(text())), true);
            }
        }
    }

    /// From here on the header is cut at this byte of the frame: what does not end before it is left out, but for
    /// headings.
    pub fn cut_at(&mut self, end: Option<usize>) {
        self.end = end;
    }

    fn push(&mut self, field: &'static Field, mut range: Range<usize>, value: Value<'a>, generated: bool) {
        if let Some(end) = self.end {
            if value == Value::None {
                range.end = range.end.min(end);
            }
            if range.is_empty() || range.end > end {
                return;
            }
        }
        // frames are bounded by the capture formats' 32-bit lengths
        let range = u32::try_from(range.start).unwrap_or(u32::MAX)..u32::try_from(range.end).unwrap_or(u32::MAX);
        self.nodes.push(Node { field, value, range, depth: self.depth.min(MAX_DEPTH), label: None, generated });
    }
}
