//! The overview.
//!
//! ```text
//! packets   12.3k/s ▁▂▃▅▆▇▆▅▃▂▁    CE      12   3.00/s   NAK      2      0/s
//! bits      98.7Mb/s ▁▂▃▅▆▇▆▅▃▂▁   CNP      4   1.00/s   RNR      0      0/s
//! messages  1.20k/s  flows 3 of 12 active                repeats …  missing …
//! ████████████████▓▓▓▓▒▒░░ WRITE 62%  READ response 20%  ACK 8%
//! SOURCE          DESTINATION       DST QP TYPE   PKT/S▼  BIT/S …
//! ```

use dissector::wire::opcode::{Kind, Op, Transport};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{frame, plot, put, put_right, shorten, shorten_address};
use crate::aggregate::{Metric, Phase, Report, per_second};
use crate::columns::{Align, Column, Line, Mode};
use crate::tui::app::App;
use crate::units::{self, count, si};

/// Where things stand.
pub struct Parts {
    /// Rates and marks.
    pub head: Rect,
    /// Opcode mix.
    pub mix: Rect,
    /// Column titles.
    pub titles: Rect,
    /// Flows.
    pub rows: Rect,
}

impl Parts {
    /// By the room there is.
    pub fn of(area: Rect) -> Self {
        // plots grow with the screen
        let spark = match area.height {
            0..=30 => 1,
            31..=44 => 2,
            _ => 4,
        };
        let head = (spark * 2 + 2).min(area.height);
        let mix = 1.min(area.height - head);
        let gap = u16::from(area.height > 18);
        let titles_y = (head + mix + gap).min(area.height);
        let titles = 1.min(area.height - titles_y);
        let rows = area.height - titles_y - titles;
        Self {
            head: Rect { height: head, ..area },
            mix: Rect { y: area.y + head, height: mix, ..area },
            titles: Rect { y: area.y + titles_y, height: titles, ..area },
            rows: Rect { y: area.y + titles_y + titles, height: rows, ..area },
        }
    }
}

/// Draws the page.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let parts = Parts::of(area);
    head(app, parts.head, buf);
    mix(app, parts.mix, buf);
    status(app, &parts, buf);
    table(app, parts.titles, parts.rows, buf);
}

/// Screens narrower than this have no plots.
const PLOTS: u16 = 70;

/// Width of the rates' half at a width of screen.
fn rates_width(width: u16) -> u16 {
    match width {
        0..PLOTS => 20,
        PLOTS..=99 => width * 45 / 100,
        _ => width / 2,
    }
}

fn head(app: &App, area: Rect, buf: &mut Buffer) {
    let r = &app.report;
    let t = app.theme;
    let left = Rect { width: rates_width(area.width), ..area };
    let spark = (area.height.saturating_sub(2) / 2).max(1);
    let bytes = r.totals_delta.roce_bytes.saturating_mul(app.style.throughput.per_byte());
    let rates = [
        ("packets", format!("{}/s", si(r.pps()))),
        (
            match app.style.throughput {
                units::Throughput::Bits => "bits",
                units::Throughput::Bytes => "bytes",
            },
            format!("{}{}", si(per_second(bytes, r.interval_s)), app.style.throughput.unit()),
        ),
    ];
    for (i, (name, value)) in rates.iter().enumerate() {
        let y = u16::try_from(i).unwrap_or(0) * spark;
        put(buf, left, 1, y, name, t.dim());
        put_right(buf, left, 19, y, value, t.strong());
        let room = Rect { x: left.x + 20, y: left.y + y, width: left.width.saturating_sub(21), height: spark };
        if area.width < PLOTS {
            continue;
        }
        let top = if i == 0 {
            plot::bars(r.history.iter(r.number).map(|s| s.pps), room, buf, t.accent())
        } else {
            let per_bit = app.style.throughput.per_byte() as f32 / 8.0;
            plot::bars(r.history.iter(r.number).map(|s| s.bps * per_bit), room, buf, t.accent())
        };
        if spark > 1 && top > 0.0 {
            put_right(buf, left, 19, y + 1, &format!("peak {}", si(f64::from(top))), t.dim());
        }
    }
    let y = spark * 2;
    let active = r.active;
    put(buf, left, 1, y, "messages", t.dim());
    put_right(buf, left, 19, y, &format!("{}/s", si(r.rate(Metric::Messages))), t.strong());
    let flows = |buf: &mut Buffer, x: u16, y: u16| {
        let x = put(buf, left, x, y, "flows ", t.dim());
        let x = put(buf, left, x, y, &count(active as u64), t.strong());
        let x = put(buf, left, x, y, " of ", t.dim());
        put(buf, left, x, y, &count(r.flows.len() as u64), t.text());
    };
    if area.width < PLOTS {
        flows(buf, 1, y + 1);
        marks(app, Rect { x: area.x + left.width, width: area.width - left.width, ..area }, buf);
        return;
    }
    flows(buf, 20, y);
    if area.height > y + 1 {
        put(buf, left, 1, y + 1, "not RoCE", t.dim());
        put_right(
            buf,
            left,
            19,
            y + 1,
            &format!("{}/s", si(per_second(r.totals_delta.other_packets, r.interval_s))),
            t.text(),
        );
        let lost = r.totals.overflow_packets;
        if lost > 0 {
            put(buf, left, 20, y + 1, &format!("! in no flow: {}", count(lost)), t.bad());
        } else if r.totals.events_lost > 0 {
            put(buf, left, 20, y + 1, &format!("! events lost: {}", count(r.totals.events_lost)), t.warn());
        } else {
            let columns = r.history.iter(r.number).len().min(usize::from(left.width.saturating_sub(21)));
            if columns > 1 {
                // one column an interval
                let shown = units::span(columns as f64 * app.interval.as_secs_f64());
                put_right(buf, left, left.width.saturating_sub(1), y + 1, &format!("plots: last {shown}"), t.dim());
            }
        }
    }
    marks(app, Rect { x: area.x + left.width, width: area.width - left.width, ..area }, buf);
}

/// CE, CNP … in two columns: name, sum since the start, per second.
fn marks(app: &App, area: Rect, buf: &mut Buffer) {
    const MARKS: [(&str, Metric, bool); 8] = [
        ("CE", Metric::Ce, false),
        ("CNP", Metric::Cnps, false),
        ("not ECT", Metric::NotEct, false),
        ("reordered", Metric::Reordered, true),
        ("NAK", Metric::Naks, true),
        ("RNR NAK", Metric::RnrNaks, true),
        ("repeats", Metric::Repeats, true),
        ("missing", Metric::Missing, true),
    ];
    let r = &app.report;
    let wide = |s: &str| u16::try_from(s.chars().count()).unwrap_or(u16::MAX);
    let half = area.width / 2;
    if half < 16 {
        // no room for rates, nor for whole words
        let shown = MARKS.iter().filter(|(_, m, _)| m.is_trouble());
        for ((_, metric, bad), i) in shown.zip(0u16..) {
            let room = Rect { x: area.x + i / 4 * half, width: half, ..area };
            let (total, new) = (r.total.get(*metric), r.delta.get(*metric));
            let style = match (total, bad) {
                (0, _) => app.theme.dim(),
                (_, true) => app.theme.bad(),
                (_, false) => app.theme.warn(),
            };
            put(buf, room, 0, i % 4, Column::Metric(*metric).title(&app.style), app.theme.dim());
            let text = format!("{}{}", if new > 0 { "+" } else { "" }, units::compact(total));
            put_right(buf, room, room.width.saturating_sub(1), i % 4, &text, style);
        }
        return;
    }
    for (i, (name, metric, bad)) in MARKS.iter().enumerate() {
        let i = u16::try_from(i).unwrap_or(0);
        let room = Rect { x: area.x + i / 4 * half, width: half, ..area };
        let y = i % 4;
        let (total, new) = (r.total.get(*metric), r.delta.get(*metric));
        let style = match (*metric, total, bad) {
            (Metric::NotEct, ..) => app.theme.text(),
            (_, 0, _) => app.theme.dim(),
            (_, _, true) => app.theme.bad(),
            (_, _, false) => app.theme.warn(),
        };
        let x = 10 + room.width.saturating_sub(20) / 2;
        // on a narrow screen: a blank before the rate, and one after the name; the rate's unit is the first to go
        let place = |rate: &str| (x + 3).min(room.width.saturating_sub(wide(rate).saturating_add(2)));
        let (all, short) = (count(total), si(total as f64));
        let speed = si(per_second(new, r.interval_s));
        let mut rate = if new > 0 { format!("{speed}/s") } else { "·".to_owned() };
        if new > 0 && wide(&short).saturating_add(wide(name)) >= place(&rate) {
            rate = speed;
        }
        let end = place(&rate);
        let fits = wide(&all).saturating_add(wide(name)) < end;
        put(buf, room, 0, y, name, if total > 0 { app.theme.text() } else { app.theme.dim() });
        put_right(buf, room, end, y, if fits { &all } else { &short }, style);
        put_right(buf, room, room.width.saturating_sub(1), y, &rate, if new > 0 { style } else { app.theme.dim() });
    }
}

/// Share of each kind of operation in the packets, largest first.
fn kinds(r: &Report, mode: Mode) -> Vec<(&'static str, f64)> {
    let counts = match mode {
        Mode::Rates => &r.opcodes_delta,
        Mode::Totals => &r.opcodes,
    };
    let mut sums: Vec<(&'static str, f64)> = Vec::new();
    let mut add = |name: &'static str, n: u64| {
        if n == 0 {
            return;
        }
        match sums.iter_mut().find(|s| s.0 == name) {
            Some(s) => s.1 += n as f64,
            None => sums.push((name, n as f64)),
        }
    };
    for (opcode, n) in counts.iter() {
        add(kind(opcode), n);
    }
    add("other", counts.other);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    sums
}

fn kind(opcode: u8) -> &'static str {
    let Some(op) = Op::of(opcode) else { return "unknown" };
    match op.kind {
        Kind::Send if op.transport == Transport::Ud => "UD SEND",
        Kind::Send => "SEND",
        Kind::Write => "WRITE",
        Kind::ReadRequest => "READ request",
        Kind::ReadResponse => "READ response",
        Kind::Ack => "ACK",
        Kind::AtomicAck => "ATOMIC ack",
        Kind::Atomic => "ATOMIC",
        Kind::Flush => "FLUSH",
        Kind::AtomicWrite => "ATOMIC WRITE",
        Kind::Resync => "RESYNC",
        Kind::Cnp => "CNP",
    }
}

fn mix(app: &App, area: Rect, buf: &mut Buffer) {
    let parts = kinds(&app.report, app.style.mode);
    if parts.is_empty() {
        put(buf, area, 1, 0, "no RoCE packet in this interval", app.theme.dim());
        return;
    }
    let sum: f64 = parts.iter().map(|p| p.1).sum();
    let width = rates_width(area.width).saturating_sub(2);
    let values: Vec<f64> = parts.iter().map(|p| p.1).collect();
    let mut x = 1;
    for (i, w) in plot::shares(&values, width).iter().enumerate() {
        let (sign, style) = app.theme.part(i);
        for _ in 0..*w {
            x = put(buf, area, x, 0, sign, style);
        }
    }
    let mut x = rates_width(area.width);
    for (i, (name, n)) in parts.iter().enumerate() {
        let (sign, style) = app.theme.part(i);
        let text = format!(" {name} {:.0}%", n / sum * 100.0);
        if usize::from(x) + text.len() + 2 > usize::from(area.width) {
            put(buf, area, x, 0, "…", app.theme.dim());
            break;
        }
        x = put(buf, area, x, 0, sign, style);
        x = put(buf, area, x, 0, &text, app.theme.text()) + 2;
    }
}

/// What has to be on every screen: who, how fast, and all that tells of trouble.
const CORE: [Column; 9] = [
    Column::Qp,
    Column::Metric(Metric::Packets),
    Column::Metric(Metric::Bytes),
    Column::Metric(Metric::Naks),
    Column::Metric(Metric::RnrNaks),
    Column::Metric(Metric::Repeats),
    Column::Metric(Metric::Missing),
    Column::Metric(Metric::Ce),
    Column::Metric(Metric::Cnps),
];
/// An address gets no less; what is cut out of it is marked.
const SHORTEST_ADDRESS: u16 = 9;
/// An address gets no more while there are other columns to show.
const LONG_ADDRESS: u16 = 24;

/// Columns that fit, with their widths, from left to right.
fn layout(app: &App, width: u16) -> Vec<(Column, u16)> {
    let cost = |c: &Column| c.width(&app.style) + 1;
    let is_address = |c: &Column| matches!(c, Column::Source | Column::Destination);
    let longest = (app.offset..app.lines().min(app.offset + 200))
        .filter_map(|i| app.line(i))
        .flat_map(|l| [Column::Source, Column::Destination].map(|c| c.cell(&l, &app.style).len()))
        .max()
        .unwrap_or(0);
    // as wide as its title at least
    let longest = u16::try_from(longest).unwrap_or(u16::MAX).max(11);
    let room = width.saturating_sub(1 + CORE.iter().map(cost).sum::<u16>()) / 2;
    let mut address = longest.min(LONG_ADDRESS).min(room.saturating_sub(1).max(SHORTEST_ADDRESS));
    let mut used = 1 + 2 * (address + 1);
    let mut chosen: Vec<Column> = vec![Column::Source, Column::Destination];
    for c in Column::BY_IMPORTANCE.iter().filter(|c| !is_address(c)) {
        let of_flows_only = matches!(c, Column::SourceQp | Column::Dscp | Column::Port | Column::Vlan | Column::Idle);
        if (app.style.grouped && of_flows_only) || used + cost(c) > width {
            continue;
        }
        used += cost(c);
        chosen.push(*c);
    }
    // the column that one sorts by is always there
    if !chosen.contains(&app.sort) {
        while used + cost(&app.sort) > width && chosen.len() > 2 {
            if let Some(c) = chosen.pop() {
                used -= cost(&c);
            }
        }
        used += cost(&app.sort);
        chosen.push(app.sort);
    }
    address += (width.saturating_sub(used) / 2).min(longest - address);
    Column::IN_ORDER
        .iter()
        .filter(|c| chosen.contains(c))
        .map(|c| (*c, if is_address(c) { address } else { c.width(&app.style) }))
        .collect()
}

/// The column whose title, or the gap before it, is there.
pub fn title_at(app: &App, titles: Rect, at: u16) -> Option<Column> {
    let mut end = titles.x;
    layout(app, titles.width).into_iter().find_map(|(c, width)| {
        end += width + 1;
        (at <= end).then_some(c)
    })
}

fn table(app: &App, titles: Rect, rows: Rect, buf: &mut Buffer) {
    let columns = layout(app, titles.width);
    let mut x = 1;
    for (c, w) in &columns {
        let sorted = *c == app.sort;
        let style = if sorted { app.theme.sorted() } else { app.theme.head() };
        let title = c.title(&app.style);
        let room = Rect { x: titles.x + x, width: (*w).min(titles.width.saturating_sub(x)), ..titles };
        match c.align() {
            Align::Left => {
                let end = put(buf, room, 0, 0, title, style);
                if sorted && end < room.width {
                    put(buf, room, end, 0, arrow(app), app.theme.head());
                }
            }
            Align::Right => {
                put_right(buf, room, *w, 0, title, style);
                if sorted {
                    let at = (x + w).saturating_sub(u16::try_from(title.len()).unwrap_or(*w) + 1);
                    put(buf, titles, at, 0, arrow(app), app.theme.head());
                }
            }
        }
        x += w + 1;
    }
    if app.lines() == 0 {
        nothing(app, rows, buf);
        return;
    }
    for y in 0..rows.height {
        let Some(line) = app.line(app.offset + usize::from(y)) else { break };
        row(app, &line, &columns, Rect { y: rows.y + y, height: 1, ..rows }, buf);
    }
}

fn arrow(app: &App) -> &'static str {
    if app.descending { "▼" } else { "▲" }
}

/// What the numbers mean and what restricts the list, above the titles; over the mix where there is no line between.
/// A filter that one does not see is a trap.
fn status(app: &App, parts: &Parts, buf: &mut Buffer) {
    let mut words: Vec<String> = Vec::new();
    if !app.filter.is_empty() {
        words.push(format!("filter: {} (sums above: all flows)", units::printable(&app.filter)));
    }
    if app.hide_idle {
        words.push("active only".to_owned());
    }
    let gap = parts.titles.y - parts.mix.bottom();
    let restricted = !words.is_empty();
    let rows = usize::from(parts.rows.height);
    if app.lines() > rows {
        let last = (app.offset + rows).min(app.lines());
        words.push(format!("{}-{} of {}", app.offset + 1, last, app.lines()));
    }
    let findings = app.state.findings.len();
    if findings > 0 {
        let s = if findings == 1 { "" } else { "s" };
        words.push(format!("{findings} finding{s}: press 3"));
    }
    let text = words.join(" · ");
    if gap == 0 {
        if restricted {
            let text = shorten(&text, usize::from(parts.mix.width) / 2);
            put_right(buf, parts.mix, parts.mix.width, 0, &format!(" {text} "), app.theme.bar());
        }
        return;
    }
    let area = Rect { y: parts.titles.y - 1, height: 1, ..parts.titles };
    let text = shorten(&text, usize::from(area.width) - 2);
    put_right(buf, area, area.width.saturating_sub(1), 0, &text, app.theme.warn());
    let mode = match (app.style.mode, app.style.grouped) {
        (Mode::Rates, false) => "rates /s, marks since the start",
        (Mode::Rates, true) => "by host pair: rates /s, marks since the start",
        (Mode::Totals, false) => "totals since the start",
        (Mode::Totals, true) => "by host pair: totals since the start",
    };
    let room = usize::from(area.width).saturating_sub(text.chars().count() + 4);
    if room >= 20 {
        put(buf, area, 1, 0, &shorten(mode, room), app.theme.dim());
    }
}

fn row(app: &App, line: &Line<'_>, columns: &[(Column, u16)], area: Rect, buf: &mut Buffer) {
    let style = &app.style;
    let active = match line {
        Line::Flow(f) => f.phase == Phase::Active,
        Line::Pair(p) => p.active,
    };
    let base = if active { app.theme.text() } else { app.theme.dim() };
    let mut x = 1;
    for (c, w) in columns {
        let room = Rect { x: area.x + x, width: (*w).min(area.width.saturating_sub(x)), ..area };
        let text = c.cell(line, style);
        let cell = cell_style(app, line, *c, base);
        match c.align() {
            Align::Left => {
                let text = match c {
                    Column::Source | Column::Destination => shorten_address(&text, usize::from(*w)),
                    _ => text,
                };
                put(buf, room, 0, 0, &text, cell);
            }
            Align::Right => {
                // what grew in the interval says so without colour
                let grew = matches!(c, Column::Metric(m) if m.is_trouble() && line.delta(*m) > 0);
                let none = matches!(c, Column::Metric(m) if m.is_trouble() && line.total(*m) == 0);
                let text = if none { "·".to_owned() } else { text };
                put_right(buf, room, *w, 0, &shorten(&text, usize::from(*w)), cell);
                if grew {
                    // in the gap before the column if the number fills it
                    let at = (x + w).saturating_sub(u16::try_from(text.len()).unwrap_or(*w) + 1);
                    put(buf, area, at, 0, "+", cell);
                }
            }
        }
        x += w + 1;
    }
    if app.is_selected(line) {
        put(buf, area, 0, 0, "▌", app.theme.accent());
        buf.set_style(area, app.theme.cursor());
    }
}

fn cell_style(app: &App, line: &Line<'_>, column: Column, base: ratatui::style::Style) -> ratatui::style::Style {
    let Column::Metric(m) = column else { return base };
    if !m.is_trouble() {
        return base;
    }
    match (line.total(m), line.delta(m)) {
        (0, _) => app.theme.dim(),
        (_, 0) => base,
        _ if matches!(m, Metric::Ce | Metric::Cnps | Metric::Reordered) => app.theme.warn(),
        _ => app.theme.bad(),
    }
}

/// Nothing to list: why, and what to do.
fn nothing(app: &App, area: Rect, buf: &mut Buffer) {
    let r = &app.report;
    let lines: Vec<String> = if !app.filter.is_empty() || app.hide_idle {
        vec!["No flow passes the filter.".to_owned(), "Esc drops the filter, i lists idle flows again.".to_owned()]
    } else if r.totals.packets == 0 {
        vec!["No packet seen yet.".to_owned()]
    } else if r.totals.roce_packets == 0 {
        vec![format!("{} packets seen, none of them RoCE.", units::grouped(r.totals.packets))]
    } else {
        Vec::new()
    };
    let mut lines = lines;
    if r.totals.roce_packets == 0 {
        // the line above may have been too short for them
        for notice in &app.state.notices {
            lines.push(String::new());
            lines.extend(super::findings::wrap(&units::printable(notice), usize::from(area.width.saturating_sub(4))));
        }
    }
    for (y, text) in lines.iter().enumerate() {
        put(buf, area, 2, u16::try_from(y).unwrap_or(u16::MAX).saturating_add(1), text, app.theme.text());
    }
}

/// The list of columns to sort by.
pub fn sort_menu(app: &App, at: usize, area: Rect, buf: &mut Buffer) {
    let style = app.style;
    let count = u16::try_from(Column::IN_ORDER.len()).unwrap_or(u16::MAX);
    let height = (count + 2).min(area.height);
    let width = 62.min(area.width);
    let area = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inside = frame(app, area, "sort by", buf);
    let first = (at + 1).saturating_sub(usize::from(inside.height));
    for (y, c) in Column::IN_ORDER.iter().enumerate().skip(first).take(usize::from(inside.height)) {
        let line = u16::try_from(y - first).unwrap_or(0);
        put(buf, inside, 1, line, c.title(&style), app.theme.strong());
        put(buf, inside, 13, line, c.meaning(), app.theme.text());
        if *c == app.sort {
            put(buf, inside, 0, line, arrow(app), app.theme.accent());
        }
        if y == at {
            buf.set_style(Rect { y: inside.y + line, height: 1, ..inside }, app.theme.cursor());
        }
    }
}
