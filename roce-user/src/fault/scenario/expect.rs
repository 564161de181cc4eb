//! What must be true at the end of a run.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::keys;
use super::value::{At, bad, boolean, duration, get, integer, known, parsed};
use crate::fault::rule::Rule;
use crate::fault::words::{self, Range, Wrong};

/// What must be true at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// Injections of all rules together.
    pub injections: Option<Range>,
    /// Injections of single rules.
    pub per_rule: Vec<(usize, Range)>,
    /// The command's exit status.
    pub exit: Option<u8>,
    /// The command ends within this time.
    pub finish_within: Option<Duration>,
    /// Each dropped or corrupted PSN comes again within this time.
    pub retransmission_within: Option<Duration>,
    /// Each dropped or corrupted request is answered by a sequence NAK within this time.
    pub nak_within: Option<Duration>,
    /// Each CE mark is answered by a CNP within this time.
    pub cnp_within: Option<Duration>,
    /// No PSN is missing at the end.
    pub no_message_lost: bool,
    /// After a sequence NAK the sender starts again exactly there.
    pub go_back_n: bool,
}

impl Expect {
    /// What must be true, a sentence each.
    pub(super) fn sentences(&self, name_of: impl Fn(usize) -> String) -> Vec<String> {
        let mut out = Vec::new();
        let time = words::show_duration;
        if self.injections.is_none() && self.per_rule.is_empty() {
            out.push("at least one packet was hit".to_owned());
        }
        if let Some(r) = self.injections {
            out.push(format!("packets hit by all rules together: {r}"));
        }
        for (rule, r) in &self.per_rule {
            out.push(format!("packets hit by rule {}: {r}", name_of(*rule)));
        }
        if let Some(c) = self.exit {
            out.push(format!("the command exits with status {c}"));
        }
        if let Some(t) = self.finish_within {
            out.push(format!("the command ends within {}", time(t)));
        }
        if let Some(t) = self.retransmission_within {
            out.push(format!("every packet that was lost to its receiver is sent again within {}", time(t)));
        }
        if let Some(t) = self.nak_within {
            out.push(format!("every lost request is answered by a sequence NAK within {}", time(t)));
        }
        if let Some(t) = self.cnp_within {
            out.push(format!("every CE mark is answered by a CNP within {}", time(t)));
        }
        if self.no_message_lost {
            out.push("no PSN is missing at the end".to_owned());
        }
        if self.go_back_n {
            out.push("after a sequence NAK the sender goes back to exactly the PSN that it names".to_owned());
        }
        out
    }
}

pub(super) fn expect(t: &DeTable<'_>, rules: &[Rule]) -> Result<Expect, At> {
    known(t, "[expect]", keys::EXPECT)?;
    let mut e = Expect::default();
    if let Some(v) = get(t, "injections") {
        match v.get_ref() {
            DeValue::Table(each) => {
                for (name, v) in each {
                    let Some(n) = rules.iter().position(|r| r.name == name.get_ref().as_ref()) else {
                        let names = rules.iter().map(|r| r.name.as_str());
                        return Err((name.span(), Wrong::unknown("rule", name.get_ref(), names)));
                    };
                    e.per_rule.push((n, parsed(v, "injections", "a number or a range such as \">=1\"", Range::parse)?));
                }
            }
            _ => e.injections = Some(parsed(v, "injections", "a number, a range or a table of rules", Range::parse)?),
        }
    }
    if let Some(v) = get(t, "exit") {
        let Ok(n) = u8::try_from(integer(v, "exit", "an exit status")?) else {
            return bad(v, Wrong::new("`exit` must be an exit status, 0 to 255"));
        };
        e.exit = Some(n);
    }
    let time = |key: &str| get(t, key).map(|v| duration(v, key)).transpose();
    e.finish_within = time("finish_within")?;
    e.retransmission_within = time("retransmission_within")?;
    e.nak_within = time("nak_within")?;
    e.cnp_within = time("cnp_within")?;
    let flag = |key: &str| get(t, key).map_or(Ok(false), |v| boolean(v, key));
    e.no_message_lost = flag("no_message_lost")?;
    e.go_back_n = flag("go_back_n")?;
    Ok(e)
}
