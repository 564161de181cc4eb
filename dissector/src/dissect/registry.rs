//! Every dissected field, declared once: filter name, title, type, display, meaning of values, help.
//!
//! Names are Wireshark's where it has the field. The tree, `-e`, `-Y`, JSON keys, CSV columns, completion and
//! `roce-dissect fields` read this registry. A room that dissects a protocol declares its fields with
//! [`fields!`](crate::fields) and is listed in [`GROUPS`]; each declaration makes a `static` of type [`Field`], and
//! that static is how code speaks of the field.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A protocol or a header without a value of its own.
    None,
    /// Yes or no.
    Bool,
    /// Unsigned, 8 bits or fewer.
    U8,
    /// Unsigned, 16 bits or fewer.
    U16,
    /// Unsigned, 24 bits or fewer.
    U24,
    /// Unsigned, 32 bits or fewer.
    U32,
    /// Unsigned, 64 bits or fewer.
    U64,
    /// Signed.
    I64,
    /// Ethernet address.
    Ether,
    /// IPv4 address.
    Ipv4,
    /// IPv6 address or GID.
    Ipv6,
    /// Bytes.
    Bytes,
    /// Text.
    Str,
    /// Time since the epoch, nanoseconds.
    Time,
    /// Span of time, nanoseconds.
    Duration,
}

impl Type {
    /// As `roce-dissect fields` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bool => "boolean",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U24 => "uint24",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::Ether => "ether",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Bytes => "bytes",
            Self::Str => "string",
            Self::Time => "time",
            Self::Duration => "duration",
        }
    }

    /// Hexadecimal digits that a value of this type takes.
    pub const fn hex_digits(self) -> usize {
        match self {
            Self::U8 => 2,
            Self::U16 => 4,
            Self::U24 => 6,
            Self::U32 => 8,
            _ => 16,
        }
    }

    /// Whether values are numbers that have an order and can be masked.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U24 | Self::U32 | Self::U64 | Self::I64)
    }
}

/// How integers print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Decimal.
    Dec,
    /// Hexadecimal with leading zeros to the width of the type.
    Hex,
}

/// Words for a value.
pub type Names = fn(u64) -> Option<Cow<'static, str>>;

/// One field.
#[derive(Debug)]
pub struct Field {
    /// Place in [`Wanted`]: group times 256 and place in the group.
    pub id: u16,
    /// Filter name.
    pub name: &'static str,
    /// Title in the tree.
    pub title: &'static str,
    /// Type of the value.
    pub ty: Type,
    /// How an integer prints.
    pub base: Base,
    /// Which bits of its bytes it takes, for the picture in the tree; 0: all of them.
    pub mask: u64,
    /// Words for values; shown in the tree and accepted in filters.
    pub names: Option<Names>,
    /// Other words that filters accept for a value.
    pub aliases: Option<Names>,
    /// Repeats another field for the sake of filters (source *or* destination): not shown in the tree.
    pub hidden: bool,
    /// One sentence.
    pub help: &'static str,
}

impl Field {
    /// A field without mask and value names.
    pub const fn plain(
        id: u16,
        name: &'static str,
        title: &'static str,
        ty: Type,
        base: Base,
        help: &'static str,
    ) -> Self {
        Self { id, name, title, ty, base, mask: 0, names: None, aliases: None, hidden: false, help }
    }

    /// Whether it is the same declaration.
    pub const fn is(&self, other: &Field) -> bool {
        self.id == other.id
    }

    /// Words for a value.
    pub fn value_name(&self, v: u64) -> Option<Cow<'static, str>> {
        self.names.and_then(|f| f(v))
    }

    /// Values that have a name, as far as they are looked for: all of a byte, the lower ones of wider fields.
    fn named(&self) -> impl Iterator<Item = (u64, Cow<'static, str>)> {
        let last = match self.ty {
            Type::Bool => 1,
            Type::U8 => 0xff,
            _ => 0xffff,
        };
        let all = move |f: Names| (0..=last).chain([0xff_ffff]).filter_map(move |v| f(v).map(|n| (v, n)));
        self.names.into_iter().chain(self.aliases).flat_map(all)
    }

    /// The values that a word means, without regard to case: the one of exactly this name; else those whose name is
    /// this after its first word ("Acknowledge" of "RC Acknowledge"); else those whose name has these words in it.
    pub fn values_of_name(&self, word: &str) -> Vec<u64> {
        let word = word.trim().to_lowercase();
        if word.is_empty() {
            return Vec::new();
        }
        let padded = |s: &str| {
            let words = s.to_lowercase();
            format!(
                " {} ",
                words.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
            )
        };
        let inner = padded(&word);
        let pick = |f: &dyn Fn(&str) -> bool| {
            let mut v: Vec<u64> = self.named().filter(|(_, n)| f(n)).map(|(v, _)| v).collect();
            v.sort_unstable();
            v.dedup();
            v
        };
        let exact = pick(&|n| n.to_lowercase() == word);
        if !exact.is_empty() {
            return exact;
        }
        let tail = pick(&|n| n.split_once(' ').is_some_and(|(_, t)| t.to_lowercase() == word));
        if !tail.is_empty() || inner.trim().is_empty() {
            return tail;
        }
        pick(&|n| padded(n).contains(&inner))
    }

    /// Some of its names, for a message.
    pub fn some_names(&self, count: usize) -> Vec<String> {
        self.named().take(count).map(|(_, n)| format!("\"{n}\"")).collect()
    }
}

/// Declares the fields of one group.
///
/// `group` is a number of its own (0 to 31), registered in [`GROUPS`]. Each line is
/// `NAME "filter.name" "Title" Type Base { mask: 0xf0, names: Some(function) } "help";` where the braces may be empty.
#[macro_export]
macro_rules! fields {
    (group $group:literal; $($id:ident $name:literal $title:literal $ty:ident $base:ident { $($key:ident : $value:expr),* $(,)? } $help:literal;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "only counts the lines of the declaration")]
        #[repr(u16)]
        enum Slot { $($id),* }
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $id: $crate::dissect::Field = $crate::dissect::Field {
                $($key: $value,)*
                ..$crate::dissect::Field::plain(
                    $group * 256 + Slot::$id as u16, $name, $title,
                    $crate::dissect::Type::$ty, $crate::dissect::Base::$base, $help,
                )
            };
        )*
        /// All of this group, in the order of their declaration.
        pub static FIELDS: &[&$crate::dissect::Field] = &[$(&$id),*];
    };
}

/// The declarations of all rooms.
pub static GROUPS: &[&[&Field]] = &[
    super::record::FIELDS,       // 0
    super::link::FIELDS,         // 1
    super::ipv4::FIELDS,         // 2
    super::ipv6::FIELDS,         // 3
    super::udp::FIELDS,          // 4
    super::tunnel::FIELDS,       // 5
    super::transport::FIELDS,    // 6
    super::analysis::FIELDS,     // 7
    super::mad::FIELDS,          // 8
    super::cm::FIELDS,           // 9
    super::smp::FIELDS,          // 10
    super::sa::FIELDS,           // 11
    super::perf::FIELDS,         // 12
    super::ulp::FIELDS,          // 13
    super::ulp::nvme::FIELDS,    // 14
    super::ulp::rpcrdma::FIELDS, // 15
    super::ulp::iser::FIELDS,    // 16
    super::ulp::smbd::FIELDS,    // 17
    super::ulp::rds::FIELDS,     // 18
    super::beside::FIELDS,       // 19
    super::columns::FIELDS,      // 31
];

/// All fields, in the order in which headers follow each other.
pub fn all() -> impl Iterator<Item = &'static Field> {
    GROUPS.iter().flat_map(|g| g.iter().copied())
}

/// The field of a filter name.
pub fn find(name: &str) -> Option<&'static Field> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Field>> = OnceLock::new();
    let index = INDEX.get_or_init(|| all().map(|f| (f.name, f)).collect());
    // tshark spells its columns as they are titled: _ws.col.Info
    match name.strip_prefix("_ws.col.") {
        Some(column) => {
            let column = match column.to_ascii_lowercase().as_str() {
                "no." => "number".to_owned(),
                // later versions call these so
                "def_src" => "source".to_owned(),
                "def_dst" => "destination".to_owned(),
                "packet_length" => "length".to_owned(),
                other => other.to_owned(),
            };
            index.get(format!("_ws.col.{column}").as_str()).copied()
        }
        None => index.get(name).copied(),
    }
}

/// The filter name that looks most like `name`, if one does.
pub fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 100 {
        return None; // no field's name is nearly so long
    }
    let wanted = name.to_ascii_lowercase();
    let last = |s: &str| s.rsplit('.').next().unwrap_or(s).to_owned();
    all()
        .map(|f| {
            let whole = distance(&wanted, f.name);
            // `bth.psn`, `psn`: the end of the name is what people remember
            let tail = if f.name.ends_with(&format!(".{wanted}")) { 1 } else { usize::MAX };
            let leaf = 1 + distance(&last(&wanted), &last(f.name));
            let leaf = if wanted.contains('.') { usize::MAX } else { leaf };
            (whole.min(tail).min(leaf), f.name)
        })
        .min_by_key(|(d, n)| (*d, n.len()))
        .filter(|(d, _)| *d <= 2 + wanted.len() / 4)
        .map(|(_, n)| n)
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().take(128).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().take(128).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let best = (diagonal + usize::from(x != *y)).min(left + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Groups that [`Wanted`] has room for.
const MAX_GROUPS: usize = 32;

/// A set of fields: what a filter or a list of columns asks of the tree.
#[derive(Clone, Debug)]
pub struct Wanted {
    bits: [[u64; 4]; MAX_GROUPS],
    groups: u32,
}

impl Wanted {
    /// Every field, but for the columns of the one-line text, which repeat them all.
    pub const ALL: Self = {
        let mut bits = [[u64::MAX; 4]; MAX_GROUPS];
        if let Some(columns) = bits.last_mut() {
            *columns = [0; 4];
        }
        Self { bits, groups: u32::MAX >> 1 }
    };
    /// No field.
    pub const NONE: Self = Self { bits: [[0; 4]; MAX_GROUPS], groups: 0 };

    /// Adds one.
    pub fn insert(&mut self, field: &Field) {
        let group = usize::from(field.id >> 8);
        if let Some(word) = self.bits.get_mut(group).and_then(|g| g.get_mut(usize::from(field.id & 0xff) / 64)) {
            *word |= 1 << (field.id % 64);
            self.groups |= 1 << group;
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &Self) {
        for (mine, theirs) in self.bits.iter_mut().flatten().zip(other.bits.iter().flatten()) {
            *mine |= theirs;
        }
        self.groups |= other.groups;
    }

    /// Whether it has this field.
    #[inline]
    pub fn has(&self, field: &Field) -> bool {
        let word = self.bits.get(usize::from(field.id >> 8)).and_then(|g| g.get(usize::from(field.id & 0xff) / 64));
        word.is_some_and(|w| w & 1 << (field.id % 64) != 0)
    }

    /// Whether it has any field of the group (0 to 31).
    #[inline]
    pub fn has_group(&self, group: u16) -> bool {
        self.groups & 1 << (group & 31) != 0
    }

    /// Whether it has any of these fields.
    pub fn has_any(&self, fields: &[&Field]) -> bool {
        fields.iter().any(|f| self.has(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique_and_groups_are_in_place() {
        let mut seen = HashMap::new();
        let mut ids = HashMap::new();
        for (n, group) in GROUPS.iter().enumerate() {
            assert!(group.len() <= 256);
            for f in *group {
                assert_eq!(seen.insert(f.name, f.id), None, "{} is declared twice", f.name);
                assert_eq!(ids.insert(f.id, f.name), None, "{} and {:?} share a number", f.name, ids.get(&f.id));
                assert_eq!(usize::from(f.id >> 8), group[0].id as usize >> 8, "{}", f.name);
                assert!(!f.title.is_empty() && !f.help.is_empty(), "{} explains nothing", f.name);
                assert!(usize::from(f.id >> 8) < MAX_GROUPS, "{n}");
            }
        }
    }

    #[test]
    fn nearest_name() {
        assert_eq!(nearest("infiniband.bth.opcod"), Some("infiniband.bth.opcode"));
        assert_eq!(nearest("infiniband.bth.pkey"), Some("infiniband.bth.p_key"));
        assert_eq!(nearest("bth.psn"), Some("infiniband.bth.psn"));
        assert_eq!(nearest("destqp"), Some("infiniband.bth.destqp"));
        assert_eq!(nearest("zzzzzzzzzzzzzzzzz"), None);
        assert_eq!(nearest(&"infiniband.".repeat(10_000)), None);
    }

    #[test]
    fn sets() {
        let f = find("infiniband.bth.psn").unwrap();
        let mut w = Wanted::NONE;
        assert!(!w.has(f));
        w.insert(f);
        assert!(w.has(f) && !w.has(find("infiniband.bth.opcode").unwrap()) && Wanted::ALL.has(f));
        assert!(w.has_group(f.id >> 8));
    }
}
