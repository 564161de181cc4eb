//! roce-top with 65,536 flows: a refresh (read the kernel's maps, make rows, rates and order), a drawn frame, and what
//! both cost of a core once a second.

use std::time::Duration;

use dissector::frame::{Frame, LinkType};
use dissector::wire::ROCE_UDP_PORT;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use roce_tests::bench::Bench;
use roce_tests::traffic::Recording;
use roce_tests::{captures, cost};
use roce_user::aggregate::Aggregate;
use roce_user::live_findings;
use roce_user::load::Options;
use roce_user::snapshot::Counts;
use roce_user::source::State;
use roce_user::tui::app::App;
use roce_user::tui::theme::Theme;
use roce_user::tui::view;
use roce_user::units::Throughput;
use serde_json::json;

const FLOWS: u32 = 65_536;
const ROUNDS: usize = 11;
/// One flow of so many moves in the first half of the rounds.
const PART: usize = 17;

fn main() {
    // a map that holds them with some air, as hash maps need
    let mut bench = Bench::new(&Options { max_flows: FLOWS * 2, ..Options::default() });
    let recording = Recording::open(&captures().join("many_qps.pcap")).expect("the capture is there");
    let frame = recording.frames.iter().map(|f| &f.bytes).find(|b| ipv4_rc(b)).expect("an IPv4 RC packet");
    eprintln!("filling the kernel's map with {FLOWS} flows");
    let mut frame = frame.clone();
    let qp_at = 14 + 20 + 8 + 5;
    let mut counts = Counts::default();
    let mut aggregate = Aggregate::default();
    let mut app = App::new(Theme::COLOUR, Duration::from_secs(1), Throughput::Bits);
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a terminal in memory");
    let area = Rect::new(0, 0, 200, 60);
    let mut some = Times::default();
    let mut all = Times::default();
    for round in 0..=ROUNDS * 2 {
        // the first round makes the flows; of the others the first half moves a part of them, the second half all
        let part = (1..=ROUNDS).contains(&round);
        for qp in (0..FLOWS).step_by(if part { PART } else { 1 }) {
            // many hosts, many QPs
            let [_, hi, mid, lo] = (qp + 16).to_be_bytes();
            if let Some(b) = frame.get_mut(qp_at..qp_at + 3) {
                b.copy_from_slice(&[hi, mid, lo]);
            }
            if let Some(b) = frame.get_mut(14 + 15) {
                *b = lo & 0x1f;
            }
            bench.xdp(&frame);
        }
        let begun = now();
        let s = counts.take(&[&bench.ebpf]).expect("the maps can be read");
        let read = since(begun);
        assert_eq!((s.flows.len(), s.unexplained), (FLOWS as usize, 0));
        // live runs the rules every other second; here each refresh pays for them, so that the figure is that of the dearer one
        let asked = now();
        let findings = live_findings::of(&s.flows);
        let rules = since(asked);
        let report = aggregate.push(s.at.seconds(), s.totals, s.flows);
        app.take(report, State { findings, ..State::default() }, &[]);
        let refresh = since(begun);
        let begun = now();
        app.set_rows(view::table_rows(&app, area), area.height);
        terminal.draw(|f| view::draw(&app, f.area(), f.buffer_mut())).expect("drawn");
        let draw = since(begun);
        eprintln!("round {round}: read {read:?}, rules {rules:?}, refresh {refresh:?}, draw {draw:?}");
        if round > 0 {
            if part { &mut some } else { &mut all }.push(read, rules, refresh, draw);
        }
    }
    let whole = [&some, &all].map(|t| {
        let n = t.refresh.len() as f64;
        (t.refresh.iter().sum::<f64>() + t.draw.iter().sum::<f64>()) / n * 100.0
    });
    let note = |name: &str, value: f64, unit: &str| json!({ "name": name, "value": round(value), "unit": unit, "target": null, "ok": null });
    let lines = json!([
        line("65,536 flows, 1 in 17 moved: refresh", median(&mut some.refresh) * 1e3, "ms of CPU", 100.0),
        note("  of it reading the kernel's maps into rows", median(&mut some.read) * 1e3, "ms of CPU"),
        note("  of it the rules of findings (live: every 2 s)", median(&mut some.rules) * 1e3, "ms of CPU"),
        line("65,536 flows, all moved: refresh", median(&mut all.refresh) * 1e3, "ms of CPU", 100.0),
        note("  of it reading the kernel's maps into rows", median(&mut all.read) * 1e3, "ms of CPU"),
        note("  of it the rules of findings (live: every 2 s)", median(&mut all.rules) * 1e3, "ms of CPU"),
        line("65,536 flows: a frame of 200x60", median(&mut all.draw) * 1e3, "ms of CPU", 16.0),
        line("65,536 flows, 1 in 17 moved: CPU at 1 Hz", whole[0], "% of a core", 10.0),
        note("65,536 flows, all moved: CPU at 1 Hz", whole[1], "% of a core"),
    ]);
    println!("{lines}");
}

/// Seconds of CPU time that rounds took: what others run at the same time does not count.
#[derive(Default)]
struct Times {
    read: Vec<f64>,
    rules: Vec<f64>,
    refresh: Vec<f64>,
    draw: Vec<f64>,
}

impl Times {
    fn push(&mut self, read: Duration, rules: Duration, refresh: Duration, draw: Duration) {
        self.read.push(read.as_secs_f64());
        self.rules.push(rules.as_secs_f64());
        self.refresh.push(refresh.as_secs_f64());
        self.draw.push(draw.as_secs_f64());
    }
}

fn since(begun: Duration) -> Duration {
    now().saturating_sub(begun)
}

fn now() -> Duration {
    cost::cpu().expect("a process has a clock of its CPU time")
}

fn line(name: &str, value: f64, unit: &str, target: f64) -> serde_json::Value {
    json!({ "name": name, "value": round(value), "unit": unit, "target": target, "ok": value <= target })
}

fn round(n: f64) -> f64 {
    (n * 1000.0).round() / 1000.0
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn ipv4_rc(bytes: &[u8]) -> bool {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    f.vlan_tci.is_none()
        && f.transport.is_some_and(|t| t.start == 14 + 20 + 8)
        && f.packet().is_some_and(|p| p.is_ok_and(|p| p.op.is_some_and(|o| o.name.starts_with("RC RDMA WRITE"))))
}
