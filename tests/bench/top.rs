//! roce-top with 65,536 flows: a refresh (read the kernel's maps, make rows, rates and order), a drawn frame, and what
//! both cost of a core once a second.

use std::time::{Duration, Instant};

use dissector::frame::{Frame, LinkType};
use dissector::wire::ROCE_UDP_PORT;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use roce_tests::bench::Bench;
use roce_tests::captures;
use roce_tests::traffic::Recording;
use roce_user::aggregate::Aggregate;
use roce_user::load::Options;
use roce_user::snapshot::Counts;
use roce_user::source::State;
use roce_user::tui::app::App;
use roce_user::tui::theme::Theme;
use roce_user::tui::view;
use roce_user::units::Throughput;
use serde_json::json;

const FLOWS: u32 = 65_536;
const ROUNDS: usize = 15;

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
    let mut app = App::new(Theme { colour: true }, Duration::from_secs(1), Throughput::Bits);
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).expect("a terminal in memory");
    let area = Rect::new(0, 0, 200, 60);
    let (mut read, mut arrange, mut draw) = (Vec::new(), Vec::new(), Vec::new());
    let mut wall = Duration::ZERO;
    for round in 0..ROUNDS {
        // the first round makes the flows, the others move a part of them
        let step = if round == 0 { 1 } else { 17 };
        for qp in (0..FLOWS).step_by(step) {
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
        let started = Instant::now();
        let s = counts.take(&[&bench.ebpf]).expect("the maps can be read");
        let t_read = started.elapsed();
        assert_eq!(s.flows.len(), FLOWS as usize, "all flows are there");
        let report = aggregate.push(s.at.seconds(), s.totals, s.flows);
        app.take(report, State::default(), &[]);
        let t_refresh = started.elapsed();
        let started = Instant::now();
        app.set_rows(view::table_rows(&app, area));
        terminal.draw(|f| view::draw(&app, f.area(), f.buffer_mut())).expect("drawn");
        let t_draw = started.elapsed();
        eprintln!("round {round}: read {t_read:?}, refresh {t_refresh:?}, draw {t_draw:?}");
        if round > 0 {
            read.push(t_read.as_secs_f64());
            arrange.push(t_refresh.as_secs_f64());
            draw.push(t_draw.as_secs_f64());
            wall += t_refresh + t_draw;
        }
    }
    let (read, refresh, draw) = (median(&mut read), median(&mut arrange), median(&mut draw));
    let core = wall.as_secs_f64() / (ROUNDS - 1) as f64 * 100.0;
    let lines = json!([
        line("65,536 flows: refresh", refresh * 1e3, "ms", 100.0),
        { "name": "65,536 flows: of it reading the kernel's maps into rows", "value": round(read * 1e3), "unit": "ms", "target": null, "ok": null },
        line("65,536 flows: a frame of 200x60", draw * 1e3, "ms", 16.0),
        line("65,536 flows: CPU at 1 Hz", core, "% of a core", 10.0),
    ]);
    println!("{lines}");
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
