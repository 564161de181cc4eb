//! The filter of the flow table: words that occur anywhere, or fields compared with values.
//!
//! `10.0.0.1` · `qp == 0x11` · `nak > 0 && src == 10.0.0.1` · `(ce > 0 or cnp > 0) and not transport == ud`.
//! Field names are the display filter's where it has them, and the columns' short ones.

use std::cmp::Ordering;
use std::net::IpAddr;

use dissector::flow::row::Endpoint;

use crate::aggregate::{Flow, Metric, per_second};

/// A filter that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Matcher(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Word(String),
    Compare(Field, Operator, Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    /// Address and how many of its leading bits count.
    Prefix(IpAddr, u8),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Source,
    Destination,
    Address,
    Qp,
    SourceQp,
    Transport,
    Dscp,
    Port,
    Vlan,
    Pps,
    Bps,
    Metric(Metric),
}

/// Names and what they mean; several names may mean the same.
const FIELDS: &[(&str, Field)] = &[
    ("src", Field::Source),
    ("ip.src", Field::Source),
    ("ipv6.src", Field::Source),
    ("dst", Field::Destination),
    ("ip.dst", Field::Destination),
    ("ipv6.dst", Field::Destination),
    ("addr", Field::Address),
    ("ip.addr", Field::Address),
    ("ipv6.addr", Field::Address),
    ("qp", Field::Qp),
    ("dest_qp", Field::Qp),
    ("infiniband.bth.destqp", Field::Qp),
    ("src_qp", Field::SourceQp),
    ("infiniband.deth.srcqp", Field::SourceQp),
    ("transport", Field::Transport),
    ("type", Field::Transport),
    ("dscp", Field::Dscp),
    ("ip.dsfield.dscp", Field::Dscp),
    ("sport", Field::Port),
    ("udp.srcport", Field::Port),
    ("vlan", Field::Vlan),
    ("vlan.id", Field::Vlan),
    ("pps", Field::Pps),
    ("bps", Field::Bps),
    ("packets", Field::Metric(Metric::Packets)),
    ("bytes", Field::Metric(Metric::Bytes)),
    ("messages", Field::Metric(Metric::Messages)),
    ("ce", Field::Metric(Metric::Ce)),
    ("cnp", Field::Metric(Metric::Cnps)),
    ("nak", Field::Metric(Metric::Naks)),
    ("rnr", Field::Metric(Metric::RnrNaks)),
    ("repeat", Field::Metric(Metric::Repeats)),
    ("missing", Field::Metric(Metric::Missing)),
    ("reordered", Field::Metric(Metric::Reordered)),
    ("acks", Field::Metric(Metric::Acks)),
    ("icrc_bad", Field::Metric(Metric::IcrcBad)),
];

/// Deepest nesting that is followed.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Operator(Operator),
    Word(String),
}

impl Matcher {
    /// Reads a filter; the error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        let mut p = Parser { tokens: &tokens, depth: 0 };
        let node = p.or()?;
        match p.tokens.first() {
            None => Ok(Self(node)),
            Some(t) => Err(format!("unexpected {} after the end of the filter", name(t))),
        }
    }

    /// Whether a flow passes; `interval_s` turns counts into rates.
    pub fn matches(&self, flow: &Flow, interval_s: f64) -> bool {
        self.0.matches(flow, interval_s)
    }
}

fn name(t: &Token) -> String {
    match t {
        Token::Open => "\"(\"".to_owned(),
        Token::Close => "\")\"".to_owned(),
        Token::And => "\"and\"".to_owned(),
        Token::Or => "\"or\"".to_owned(),
        Token::Not => "\"not\"".to_owned(),
        Token::Operator(_) => "a comparison".to_owned(),
        Token::Word(w) => format!("\"{w}\""),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: &[(&str, Token)] = &[
        ("&&", Token::And),
        ("||", Token::Or),
        ("==", Token::Operator(Operator::Equal)),
        ("!=", Token::Operator(Operator::NotEqual)),
        (">=", Token::Operator(Operator::GreaterOrEqual)),
        ("<=", Token::Operator(Operator::LessOrEqual)),
        (">", Token::Operator(Operator::Greater)),
        ("<", Token::Operator(Operator::Less)),
        ("=", Token::Operator(Operator::Equal)),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some((sign, token)) = SIGNS.iter().find(|(s, _)| rest.starts_with(s)) {
            out.push(token.clone());
            rest = rest.get(sign.len()..).unwrap_or("");
        } else if first == '"' {
            let body = rest.get(1..).unwrap_or("");
            let end = body.find('"').ok_or("the text that begins with \" does not end")?;
            out.push(Token::Word(body.get(..end).unwrap_or("").to_owned()));
            rest = body.get(end + 1..).unwrap_or("");
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "&|=!<>()\"".contains(c)).unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("\"{first}\" means nothing here"));
            }
            let word = rest.get(..end).unwrap_or("");
            out.push(match word.to_ascii_lowercase().as_str() {
                "and" => Token::And,
                "or" => Token::Or,
                "not" => Token::Not,
                "eq" => Token::Operator(Operator::Equal),
                "ne" => Token::Operator(Operator::NotEqual),
                "gt" => Token::Operator(Operator::Greater),
                "ge" => Token::Operator(Operator::GreaterOrEqual),
                "lt" => Token::Operator(Operator::Less),
                "le" => Token::Operator(Operator::LessOrEqual),
                "contains" => Token::Operator(Operator::Contains),
                _ => Token::Word(word.to_owned()),
            });
            rest = rest.get(end..).unwrap_or("");
        }
        rest = rest.trim_start();
    }
    Ok(out)
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn or(&mut self) -> Result<Node, String> {
        let mut left = self.and()?;
        while self.tokens.first() == Some(&Token::Or) {
            self.next();
            left = Node::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, String> {
        let mut left = self.not()?;
        loop {
            match self.tokens.first() {
                Some(Token::And) => {
                    self.next();
                }
                // words side by side mean both
                Some(Token::Word(_) | Token::Open | Token::Not) => {}
                _ => return Ok(left),
            }
            left = Node::And(Box::new(left), Box::new(self.not()?));
        }
    }

    fn not(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the filter is nested too deeply".to_owned());
        }
        let node = match self.next().cloned() {
            Some(Token::Not) => Node::Not(Box::new(self.not()?)),
            Some(Token::Open) => {
                let inner = self.or()?;
                match self.next() {
                    Some(Token::Close) => inner,
                    _ => return Err("a \"(\" is not closed".to_owned()),
                }
            }
            Some(Token::Word(word)) => {
                if let Some(Token::Operator(op)) = self.tokens.first().cloned() {
                    self.next();
                    compare(&word, op, self.next())?
                } else {
                    Node::Word(word.to_ascii_lowercase())
                }
            }
            Some(t) => return Err(format!("{} cannot stand here", name(&t))),
            None => return Err("the filter ends too early".to_owned()),
        };
        self.depth -= 1;
        Ok(node)
    }
}

fn compare(word: &str, op: Operator, value: Option<&Token>) -> Result<Node, String> {
    let lower = word.to_ascii_lowercase();
    let Some((_, field)) = FIELDS.iter().find(|(n, _)| *n == lower) else {
        return Err(format!(
            "no field is named {word:?}; for example src, dst, qp, transport, dscp, pps, ce, nak, repeat"
        ));
    };
    let Some(Token::Word(value)) = value else { return Err(format!("a value is missing behind {word}")) };
    let text = || Value::Text(value.to_ascii_lowercase());
    let value = match field {
        Field::Source | Field::Destination | Field::Address if op == Operator::Contains => text(),
        Field::Source | Field::Destination | Field::Address => {
            if !matches!(op, Operator::Equal | Operator::NotEqual) {
                return Err(format!("{word} is an address: compare with ==, != or contains"));
            }
            prefix(value).ok_or_else(|| format!("{value:?} is not an address or prefix"))?
        }
        Field::Transport => {
            if !matches!(op, Operator::Equal | Operator::NotEqual | Operator::Contains) {
                return Err(format!("{word} is text: compare with ==, != or contains"));
            }
            text()
        }
        _ if op == Operator::Contains => return Err(format!("{word} is a number: it contains nothing")),
        _ => Value::Number(number(value).ok_or_else(|| format!("{value:?} is not a number"))?),
    };
    Ok(Node::Compare(*field, op, value))
}

fn prefix(text: &str) -> Option<Value> {
    let (address, bits) = match text.split_once('/') {
        Some((a, b)) => (a, Some(b.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(all);
    (bits <= all).then_some(Value::Prefix(address, bits))
}

/// `17`, `0x11`, `1.5M`.
fn number(text: &str) -> Option<f64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok().map(|n| n as f64);
    }
    let (digits, times) = match text.char_indices().next_back()? {
        (i, 'k' | 'K') => (text.get(..i)?, 1e3),
        (i, 'M') => (text.get(..i)?, 1e6),
        (i, 'G') => (text.get(..i)?, 1e9),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n * times)
}

impl Node {
    fn matches(&self, f: &Flow, interval_s: f64) -> bool {
        match self {
            Self::And(a, b) => a.matches(f, interval_s) && b.matches(f, interval_s),
            Self::Or(a, b) => a.matches(f, interval_s) || b.matches(f, interval_s),
            Self::Not(a) => !a.matches(f, interval_s),
            Self::Word(w) => {
                let r = &f.row;
                r.src.to_string().contains(w)
                    || r.dst.to_string().contains(w)
                    || r.transport.to_ascii_lowercase() == *w
                    || format!("{:#x}", r.dest_qp).contains(w)
                    || r.dest_qp.to_string() == *w
                    || r.src_qp.is_some_and(|q| format!("{q:#x}").contains(w))
            }
            Self::Compare(field, op, value) => field.compare(*op, value, f, interval_s),
        }
    }
}

impl Field {
    fn compare(self, op: Operator, value: &Value, f: &Flow, interval_s: f64) -> bool {
        let r = &f.row;
        let address = |e: Endpoint| address(e, op, value);
        let number = |n: Option<f64>| n.is_some_and(|n| ordered(n.partial_cmp(&want(value)), op));
        match self {
            Self::Source => address(r.src),
            Self::Destination => address(r.dst),
            // either: "not equal" means neither
            Self::Address if op == Operator::NotEqual => address(r.src) && address(r.dst),
            Self::Address => address(r.src) || address(r.dst),
            Self::Transport => {
                let name = r.transport.to_ascii_lowercase();
                match (value, op) {
                    (Value::Text(t), Operator::Contains) => name.contains(t),
                    (Value::Text(t), Operator::NotEqual) => name != *t,
                    (Value::Text(t), _) => name == *t,
                    _ => false,
                }
            }
            Self::Qp => number(Some(f64::from(r.dest_qp))),
            Self::SourceQp => number(r.src_qp.map(f64::from)),
            Self::Dscp => number(r.dscp.map(f64::from)),
            Self::Port => number(r.udp_srcport.map(f64::from)),
            Self::Vlan => number(r.vlan.map(f64::from)),
            Self::Pps => number(Some(per_second(f.delta(Metric::Packets), interval_s))),
            Self::Bps => number(Some(per_second(f.delta(Metric::Bytes).saturating_mul(8), interval_s))),
            Self::Metric(m) => number(Some(f.total(m) as f64)),
        }
    }
}

fn want(value: &Value) -> f64 {
    match value {
        Value::Number(n) => *n,
        _ => f64::NAN,
    }
}

fn ordered(order: Option<Ordering>, op: Operator) -> bool {
    match op {
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order.is_some_and(|o| o != Ordering::Equal),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Contains => false,
    }
}

fn address(e: Endpoint, op: Operator, value: &Value) -> bool {
    match value {
        Value::Text(t) => e.to_string().contains(t),
        Value::Prefix(want, bits) => {
            let inside = match (e, want) {
                (Endpoint::Ip(IpAddr::V4(a)), IpAddr::V4(w)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
                    a.to_bits() & mask == w.to_bits() & mask
                }
                (Endpoint::Ip(IpAddr::V6(a)), IpAddr::V6(w)) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
                    a.to_bits() & mask == w.to_bits() & mask
                }
                _ => false,
            };
            inside == (op == Operator::Equal)
        }
        Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture;

    fn passes(filter: &str) -> Vec<u32> {
        let m = Matcher::parse(filter).unwrap_or_else(|e| panic!("{filter}: {e}"));
        let report = fixture::report();
        report.flows.iter().filter(|f| m.matches(f, report.interval_s)).map(|f| f.row.dest_qp).collect()
    }

    #[test]
    fn words_and_fields() {
        assert_eq!(passes("10.0.0.1 && qp == 0x11"), [0x11]);
        assert_eq!(passes("qp==17"), [0x11]);
        assert_eq!(passes("infiniband.bth.destqp == 0x11"), [0x11]);
        assert_eq!(passes("transport == ud"), passes("UD"));
        assert_eq!(passes("not ud").len() + passes("ud").len(), fixture::report().flows.len());
        assert_eq!(
            passes("src == 10.0.0.0/8 or src == fd00::/16").len()
                + passes("!(addr contains .)  src != fd00::/16").len(),
            fixture::report().flows.len()
        );
        assert!(passes("nak > 0").len() < fixture::report().flows.len());
        assert_eq!(passes("bps >= 1k").len(), passes("not bps < 1000").len());
    }

    #[test]
    fn mistakes_are_sentences() {
        for bad in [
            "qp ==",
            "(qp == 1",
            "foo == 1",
            "src > 1.1.1.1",
            "src == nonsense",
            "qp == x",
            "&&",
            "qp == 1 )",
            "\"open",
        ] {
            let e = Matcher::parse(bad).expect_err(bad);
            assert!(!e.is_empty(), "{bad}");
        }
        assert!(Matcher::parse(&"(".repeat(1000)).is_err());
        assert!(Matcher::parse(&"!".repeat(100_000)).is_err());
    }
}
