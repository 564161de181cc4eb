//! A minute at the highest rate that the machine gives: every packet counted, nothing grows. `ROCE_SOAK_SECONDS` makes it
//! another time; `cargo xtask bench soak` is the same in release.

use std::path::PathBuf;
use std::time::Duration;

use roce_tests::is_root;
use roce_tests::soak::{self, GROWTH};

fn roce_top() -> PathBuf {
    let mut p = std::env::current_exe().expect("a test has a path");
    p.pop();
    if p.ends_with("deps") {
        p.pop();
    }
    p.join("roce-top")
}

#[test]
fn a_minute_at_full_rate_is_counted_to_the_packet_and_memory_stays_flat() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces and attach programs");
        return;
    }
    let seconds = std::env::var("ROCE_SOAK_SECONDS").map_or(60, |s| s.parse().expect("a number of seconds"));
    let o = soak::run(&roce_top(), Duration::from_secs(seconds));
    let totals = &o.last["totals"];
    eprintln!("{} sent in {:.0} s, {} refused by veth, {totals}", o.sent, o.seconds, o.dropped);
    assert_eq!(o.counted + o.dropped, o.sent, "every packet that arrived was counted: {totals}");
    let overflow = totals["overflow_packets"].as_u64().expect("a count");
    assert_eq!(o.sum_of_flows() + overflow, o.counted, "the sum over flows and the overflow is the total");
    assert!(o.reports > 0 && o.flows > soak::TABLE, "{} reports, {} flows", o.reports, o.flows);
    assert!(overflow > 0, "more flows than the table holds: {totals}");
    assert!(o.growth() <= GROWTH.cast_signed(), "memory grows, KiB: {:?}", o.memory);
}
