//! roce-top under the highest rate that the machine can offer, for as long as wanted (`ROCE_SOAK_SECONDS`, 60 unless set):
//! the last report is what was sent, to the packet, and memory does not grow.

use std::time::Duration;

use roce_tests::soak::{self, GROWTH, TABLE};
use serde_json::json;

fn main() {
    let seconds: u64 =
        std::env::var("ROCE_SOAK_SECONDS").map_or(60, |s| s.parse().expect("ROCE_SOAK_SECONDS is a number"));
    let mut program = std::env::current_exe().expect("a program has a path");
    program.set_file_name("roce-top");
    let o = soak::run(&program, Duration::from_secs(seconds));
    let t = &o.last["totals"];
    eprintln!("{} sent, {} counted, {} refused by veth, {} reports, {t}", o.sent, o.counted, o.dropped, o.reports);
    let note = |name: &str, value: f64, unit: &str| json!({ "name": name, "value": value, "unit": unit, "target": null, "ok": null });
    let off = (o.counted + o.dropped).cast_signed() - o.sent.cast_signed();
    let growth = o.growth();
    println!(
        "{}",
        json!([
            note("soak: time at full rate", o.seconds, "s"),
            note("soak: packets", o.sent as f64, "packets"),
            note("soak: rate", o.sent as f64 / o.seconds, "packets/s"),
            note(&format!("soak: flows met, of which the table holds {TABLE}"), f64::from(o.flows), "flows"),
            note("soak: of the packets in no flow, for want of room", t["overflow_packets"].as_f64().unwrap_or(0.0), "packets"),
            { "name": "soak: counted - sent", "value": off as f64, "unit": "packets", "target": 0.0, "ok": off == 0 },
            note("soak: refused by veth before any program", o.dropped as f64, "packets"),
            { "name": "soak: growth of memory in the second half", "value": growth as f64, "unit": "KiB", "target": GROWTH, "ok": growth <= GROWTH.cast_signed() },
            note("soak: memory at the end", o.memory.last().map_or(0.0, |n| *n as f64), "KiB"),
        ])
    );
}
