//! Codes `capture-…`: what the capture itself lacks. Everything else is read in this light.

use super::{Finding, Severity};
use crate::flow::Analyzer;

/// Looks at the capture.
pub fn find(a: &Analyzer, out: &mut Vec<Finding>) {
    let q = a.quality();
    if q.cut > 0 {
        out.push(Finding {
            code: "capture-cut-packets",
            severity: Severity::Note,
            title: format!("{} RoCE packets are cut by the capture, at up to {} bytes", q.cut, q.snap),
            detail: "Their ICRC cannot be checked, and headers behind the cut are unknown. Capture with a larger snap length (tcpdump -s 0).".to_owned(),
            flow: None,
            packets: vec![],
        });
    }
}
