//! What went wrong, in the operator's words, with the packets that prove it. One file a rule; a rule is a
//! function and its line in [`RULES`].

use serde::Serialize;

use super::Analyzer;

pub mod capture;

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Costs performance, or looks wrong.
    Warning,
    /// Something failed.
    Error,
}

impl Severity {
    /// In small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name of the rule.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What happened, in one sentence.
    pub title: String,
    /// How it is known, and what to look at next.
    pub detail: String,
    /// The flow that it is about, as `roce-dissect flows` numbers them.
    pub flow: Option<u32>,
    /// Packets that prove it.
    pub packets: Vec<u64>,
}

/// A rule: looks at the whole analysis, adds what it finds.
pub type Rule = fn(&Analyzer, &mut Vec<Finding>);

/// All rules, in the order in which their findings are told: first how far the capture can be trusted.
pub const RULES: &[Rule] = &[capture::find];

/// All findings.
pub fn check(a: &Analyzer) -> Vec<Finding> {
    let mut out = Vec::new();
    for rule in RULES {
        rule(a, &mut out);
    }
    out
}

/// What is to be said about the capture itself, whoever asks.
pub fn about_the_capture(a: &Analyzer) -> Vec<Finding> {
    let mut out = Vec::new();
    capture::find(a, &mut out);
    out
}
