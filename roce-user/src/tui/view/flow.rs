//! One flow and its other direction.
//!
//! ```text
//! RC  10.0.0.1 > 10.0.0.2  qp 0x11                                 idle 3.2s
//!                     ──▶ forward      ◀── back (qp 0x12)
//! packets/s            12.3k                 6.20k
//! …                                                      | opcodes
//! packets/s plot, bits/s plot
//! latest events: time, why, what the packet says
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;

use dissector::flow::row::Endpoint;
use dissector::wire::opcode::Op;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{plot, put, put_right, shorten, shorten_address};
use crate::aggregate::{Flow, Metric, Phase, per_second};
use crate::batch::clock;
use crate::tui::app::App;
use crate::units::{self, Throughput, grouped, si};

/// Draws the page.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let t = app.theme;
    let Some(flow) = app.opened_flow() else {
        put(buf, area, 1, 1, "No flow is open: put the cursor on one in the overview and press Enter.", t.text());
        return;
    };
    let back = app.reverse_of(flow);
    let r = &flow.row;
    let mut x = put(buf, area, 1, 0, r.transport, t.accent().patch(t.strong())) + 2;
    // room for both QPs and the state behind the addresses
    let each = usize::from(area.width.saturating_sub(52) / 2).max(9);
    let end = |e: Endpoint| shorten_address(&e.to_string(), each);
    x = put(buf, area, x, 0, &format!("{} → {}  qp {:#x}", end(r.src), end(r.dst), r.dest_qp), t.strong());
    if let Some(q) = r.src_qp {
        x = put(buf, area, x, 0, &format!("  from qp {q:#x}"), t.text());
    }
    let state = match flow.phase {
        Phase::Active => "active".to_owned(),
        Phase::Idle => format!("idle {}", units::span(app.report.at - r.last)),
        Phase::Ended { since } => format!("ended {} ago", units::span(app.report.at - since)),
    };
    if usize::from(area.width) > usize::from(x) + state.len() + 2 {
        put_right(buf, area, area.width.saturating_sub(1), 0, &state, t.dim());
    }
    let wide = area.width >= 100;
    let happened = app.events.iter().filter(|e| e.is_about(r)).count();
    // where there is little room, the counters come first
    let plots = match area.height {
        0..=13 => 0,
        14..=26 => 2,
        27..=40 => 3,
        _ => 6,
    };
    let mut all = facts(app, flow, back);
    if !wide {
        all.extend(by_opcode(app, flow, back));
    }
    // a title and what happened, which needs no more than it has
    let told = match (area.height, happened) {
        (0..=13, _) => 0,
        (_, 0) => 2,
        (14..=26, n) => 1 + n.min(4),
        (_, n) => 1 + n.min(8),
    };
    let room = area.height.saturating_sub(1 + plots + u16::try_from(told).unwrap_or(0));
    let left = Rect { y: area.y + 1, height: room, width: if wide { 64 } else { area.width }, ..area };
    let lines = usize::from(left.height.saturating_sub(1));
    let more = all.len() > lines;
    // the last line says that there is more
    let lines = lines.saturating_sub(usize::from(more));
    let first = app.scroll.min(all.len().saturating_sub(lines));
    put_right(buf, left, 38, 0, "→ forward", t.head());
    let title = match back {
        Some(b) => format!("← back, qp {:#x}", b.row.dest_qp),
        None => "← back: not known".to_owned(),
    };
    put_right(buf, left, 59, 0, &title, if back.is_some() { t.head() } else { t.dim() });
    for (y, f) in all.iter().skip(first).take(lines).enumerate() {
        let y = u16::try_from(y).unwrap_or(0) + 1;
        put(buf, left, 1, y, &shorten(&f.name, 26), t.dim());
        put_right(buf, left, 38, y, &f.forward.0, f.forward.1);
        if let Some(b) = &f.back {
            put_right(buf, left, 59, y, &b.0, b.1);
        }
    }
    if more {
        let below = all.len().saturating_sub(first + lines);
        let text = if below > 0 { format!("↓ {below} more lines") } else { "↑ the beginning".to_owned() };
        put(buf, left, 1, left.height.saturating_sub(1), &text, t.accent());
    }
    if wide {
        let right = Rect { x: left.right(), y: left.y, width: area.right() - left.right(), height: left.height };
        opcodes(app, flow, back, right, buf);
    }
    let y = left.bottom() - area.y;
    history(app, flow, Rect { y: area.y + y, height: plots, ..area }, buf);
    let y = y + plots;
    events(app, flow, Rect { y: area.y + y, height: area.height.saturating_sub(y), ..area }, buf);
}

struct Fact {
    name: Cow<'static, str>,
    forward: (String, Style),
    back: Option<(String, Style)>,
}

fn facts(app: &App, flow: &Flow, back: Option<&Flow>) -> Vec<Fact> {
    let t = app.theme;
    let interval = app.report.interval_s;
    let per_byte = app.style.throughput.per_byte();
    let unit = app.style.throughput.unit();
    let mut out: Vec<Fact> = Vec::new();
    let plain = t.text();
    let mut add = |name: &'static str, of: &dyn Fn(&Flow) -> (String, Style)| {
        out.push(Fact { name: name.into(), forward: of(flow), back: back.map(of) });
    };
    let rate = |f: &Flow, m: Metric| per_second(f.delta(m), interval);
    add("packets/s", &|f| (si(rate(f, Metric::Packets)), t.strong()));
    add(if app.style.throughput == Throughput::Bits { "bits/s" } else { "bytes/s" }, &|f| {
        (format!("{}{unit}", si(per_second(f.delta(Metric::Bytes).saturating_mul(per_byte), interval))), t.strong())
    });
    add("messages/s", &|f| (si(rate(f, Metric::Messages)), t.strong()));
    let mark = |f: &Flow, m: Metric, total: u64, style: Style| {
        let new = f.delta(m);
        match (total, new) {
            (0, _) => ("0".to_owned(), t.dim()),
            (n, 0) => (grouped(n), style),
            (n, new) => (format!("{} (+{new})", grouped(n)), style),
        }
    };
    let named = |n: u64, style: Style| if n == 0 { ("0".to_owned(), t.dim()) } else { (grouped(n), style) };
    add("sent again", &|f| mark(f, Metric::Repeats, f.row.retransmitted, t.bad()));
    add("duplicates", &|f| named(f.row.duplicates, t.warn()));
    add("missing", &|f| mark(f, Metric::Missing, f.row.missing, t.bad()));
    add("out of order", &|f| mark(f, Metric::Reordered, f.row.reordered, t.warn()));
    add("RNR NAK", &|f| mark(f, Metric::RnrNaks, f.row.rnr_naks, t.bad()));
    add("NAK", &|f| mark(f, Metric::Naks, f.row.naks.total(), t.bad()));
    if flow.row.naks.total() + back.map_or(0, |b| b.row.naks.total()) > 0 {
        add("  PSN sequence error", &|f| named(f.row.naks.psn_sequence_error, t.bad()));
        add("  invalid request", &|f| named(f.row.naks.invalid_request, t.bad()));
        add("  remote access error", &|f| named(f.row.naks.remote_access_error, t.bad()));
        add("  remote operational", &|f| named(f.row.naks.remote_operational_error, t.bad()));
        add("  invalid RD request", &|f| named(f.row.naks.invalid_rd_request, t.bad()));
    }
    add("CE marks", &|f| mark(f, Metric::Ce, f.row.ecn.ce, t.warn()));
    add("CNP", &|f| mark(f, Metric::Cnps, f.row.cnps, t.warn()));
    add("packets", &|f| (grouped(f.row.packets), plain));
    add("bytes", &|f| (grouped(f.row.bytes), plain));
    add("mean frame", &|f| {
        let mean = f.row.bytes.checked_div(f.row.packets).unwrap_or(0);
        (format!("{mean} B"), plain)
    });
    add("messages", &|f| (grouped(f.row.messages), plain));
    add("requests", &|f| (grouped(f.row.requests), plain));
    add("responses", &|f| (grouped(f.row.responses), plain));
    add("acknowledges", &|f| (grouped(f.row.acks), plain));
    add("ECT(0) / ECT(1)", &|f| (format!("{} / {}", grouped(f.row.ecn.ect0), grouped(f.row.ecn.ect1)), plain));
    add("not ECN capable", &|f| (grouped(f.row.ecn.not_ect), plain));
    let or_dash = |n: Option<u64>| (n.map_or_else(|| "-".to_owned(), |n| n.to_string()), plain);
    add("DSCP", &|f| or_dash(f.row.dscp.map(u64::from)));
    add("payload of a full packet", &|f| match f.row.full_payload {
        0 => ("-".to_owned(), plain),
        n => (format!("{n} B"), plain),
    });
    add("UDP source port", &|f| or_dash(f.row.udp_srcport.map(u64::from)));
    add("VLAN", &|f| or_dash(f.row.vlan.map(u64::from)));
    if flow.row.icrc.good + flow.row.icrc.bad > 0 {
        add("ICRC wrong", &|f| named(f.row.icrc.bad, t.bad()));
    }
    add("first seen", &|f| (clock(f.row.first, &app.zone), plain));
    add("last seen", &|f| (clock(f.row.last, &app.zone), plain));
    out
}

/// Packets by opcode, as facts: where there is no room for them beside.
fn by_opcode(app: &App, flow: &Flow, back: Option<&Flow>) -> Vec<Fact> {
    let both = [Some(flow), back].into_iter().flatten();
    let met: BTreeSet<u8> = both.flat_map(|f| f.row.opcodes.iter().map(|(o, _)| o)).collect();
    let cell = |n: u64| if n == 0 { ("0".to_owned(), app.theme.dim()) } else { (grouped(n), app.theme.text()) };
    met.into_iter()
        .map(|o| Fact {
            name: Op::of(o).map_or_else(|| format!("{o:#04x}").into(), |o| o.name.into()),
            forward: cell(flow.row.opcodes.get(o)),
            back: back.map(|b| cell(b.row.opcodes.get(o))),
        })
        .collect()
}

fn opcodes(app: &App, flow: &Flow, back: Option<&Flow>, area: Rect, buf: &mut Buffer) {
    put(buf, area, 1, 0, "packets by opcode", app.theme.head());
    let mut lines: Vec<(bool, u8, u64)> = flow.row.opcodes.iter().map(|(o, n)| (true, o, n)).collect();
    if let Some(b) = back {
        lines.extend(b.row.opcodes.iter().map(|(o, n)| (false, o, n)));
    }
    for (y, (forward, opcode, n)) in lines.iter().take(usize::from(area.height.saturating_sub(1))).enumerate() {
        let y = u16::try_from(y).unwrap_or(0) + 1;
        let name = Op::of(*opcode).map_or_else(|| format!("{opcode:#04x}"), |o| o.name.to_owned());
        put(buf, area, 1, y, if *forward { "→" } else { "←" }, app.theme.accent());
        put(buf, area, 3, y, &shorten(&name, usize::from(area.width.saturating_sub(16))), app.theme.text());
        put_right(buf, area, area.width.saturating_sub(1), y, &grouped(*n), app.theme.text());
    }
}

fn history(app: &App, flow: &Flow, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let Some(h) = &flow.history else {
        let why = if flow.phase == Phase::Active {
            "too many flows to keep a history of this one"
        } else {
            "no packet in the intervals that are remembered"
        };
        put(buf, area, 1, 0, why, app.theme.dim());
        return;
    };
    let plot = Rect { x: area.x + 20, width: area.width.saturating_sub(21), ..area };
    let top = plot::bars(h.iter(app.report.number).map(|s| s.bps), plot, buf, app.theme.accent());
    let name = if app.style.throughput == Throughput::Bits { "bits/s" } else { "bytes/s" };
    let top = f64::from(top) * app.style.throughput.per_byte() as f64 / 8.0;
    put(buf, area, 1, 0, name, app.theme.dim());
    put_right(buf, area, 19, 0, &format!("max {}", si(top)), app.theme.text());
    let shown = h.iter(app.report.number).len().min(usize::from(plot.width));
    put(buf, area, 1, 1, &format!("last {}", units::span(shown as f64 * app.interval.as_secs_f64())), app.theme.dim());
}

fn events(app: &App, flow: &Flow, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    put(buf, area, 1, 0, "latest events", app.theme.head());
    let room = usize::from(area.height.saturating_sub(1));
    let about = |e: &&crate::tui::event::Told| e.is_about(&flow.row);
    let shown: Vec<_> = app.events.iter().rev().filter(about).take(room).collect();
    if shown.is_empty() {
        put(buf, area, 1, 1, "none: no NAK, RNR NAK, CNP, gap or repeat was reported for this flow", app.theme.dim());
        return;
    }
    for (y, e) in shown.iter().enumerate() {
        let y = u16::try_from(y).unwrap_or(0) + 1;
        let style = if e.kind == "CNP" { app.theme.warn() } else { app.theme.bad() };
        let forward = e.src == Some(flow.row.src);
        put(buf, area, 1, y, &e.time, app.theme.dim());
        put(buf, area, 17, y, if forward { "→" } else { "←" }, app.theme.accent());
        put(buf, area, 19, y, e.kind, style);
        put(buf, area, 27, y, &shorten(&e.text, usize::from(area.width.saturating_sub(28))), app.theme.text());
    }
}
