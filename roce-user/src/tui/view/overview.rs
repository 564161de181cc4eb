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
use crate::columns::{Align, Column, Line, Mode, Style};
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
        let head = (spark * 2 + 1).max(4).min(area.height);
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

/// Width of the rates' half at a width of screen.
fn rates_width(width: u16) -> u16 {
    match width {
        0..=99 => width * 45 / 100,
        _ => width / 2,
    }
}

fn head(app: &App, area: Rect, buf: &mut Buffer) {
    let r = &app.report;
    let t = app.theme;
    let left = Rect { width: rates_width(area.width), ..area };
    let spark = (area.height.saturating_sub(1)) / 2;
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
        if i == 0 {
            plot::bars(r.history.iter(r.number).map(|s| s.pps), room, buf, t.accent());
        } else {
            plot::bars(r.history.iter(r.number).map(|s| s.bps), room, buf, t.accent());
        }
    }
    let y = spark * 2;
    let active = r.active;
    put(buf, left, 1, y, "messages", t.dim());
    put_right(buf, left, 19, y, &format!("{}/s", si(r.rate(Metric::Messages))), t.strong());
    let x = put(buf, left, 20, y, "flows ", t.dim());
    let x = put(buf, left, x, y, &count(active as u64), t.strong());
    let x = put(buf, left, x, y, " of ", t.dim());
    put(buf, left, x, y, &count(r.flows.len() as u64), t.text());
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
        put(buf, room, 0, y, name, if total > 0 { app.theme.text() } else { app.theme.dim() });
        let x = 10 + room.width.saturating_sub(20) / 2;
        let rate = if new > 0 { format!("{}/s", si(per_second(new, r.interval_s))) } else { "·".to_owned() };
        // on a narrow screen: a blank before the rate, and one after the name
        let end = (x + 3).min(room.width.saturating_sub(wide(&rate).saturating_add(2)));
        let all = count(total);
        let fits = wide(&all).saturating_add(wide(name)) < end;
        put_right(buf, room, end, y, &if fits { all } else { si(total as f64) }, style);
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

/// Columns that fit, with their widths, from left to right.
fn layout(app: &App, width: u16) -> Vec<(Column, u16)> {
    let mut chosen: Vec<Column> = Vec::new();
    let mut used = 1;
    for c in Column::BY_IMPORTANCE {
        if app.style.grouped
            && matches!(c, Column::SourceQp | Column::Dscp | Column::Port | Column::Vlan | Column::Idle)
        {
            continue;
        }
        let need = c.width() + 1;
        if used + need > width {
            break;
        }
        used += need;
        chosen.push(c);
    }
    // the column that one sorts by is always there
    if !chosen.contains(&app.sort) {
        while used + app.sort.width() + 1 > width {
            let Some(c) = chosen.pop() else { break };
            used -= c.width() + 1;
        }
        used += app.sort.width() + 1;
        chosen.push(app.sort);
    }
    // an IPv6 address takes up to 39 characters
    let addresses = chosen.iter().filter(|c| matches!(c, Column::Source | Column::Destination)).count();
    let longest = (0..app.lines().min(app.offset + 200))
        .skip(app.offset)
        .filter_map(|i| app.line(i))
        .map(|l| Column::Source.cell(&l, &app.style).len().max(Column::Destination.cell(&l, &app.style).len()))
        .max()
        .unwrap_or(0);
    let more = u16::try_from(longest.saturating_sub(usize::from(Column::Source.width()))).unwrap_or(0);
    let extra = if addresses > 0 { ((width - used) / u16::try_from(addresses).unwrap_or(1)).min(more) } else { 0 };
    Column::IN_ORDER
        .iter()
        .filter(|c| chosen.contains(c))
        .map(|c| match c {
            Column::Source | Column::Destination => (*c, c.width() + extra),
            _ => (*c, c.width()),
        })
        .collect()
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
                let text = if sorted && title.len() < usize::from(*w) {
                    format!("{}{title}", arrow(app))
                } else {
                    title.to_owned()
                };
                put_right(buf, room, *w, 0, &text, style);
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

/// What restricts the list, above the titles at the right; over them where there is no line between. A
/// filter that one does not see is a trap.
fn status(app: &App, parts: &Parts, buf: &mut Buffer) {
    let mut words: Vec<String> = Vec::new();
    if !app.filter.is_empty() {
        words.push(format!("filter: {}", app.filter));
    }
    if app.hide_idle {
        words.push("active only".to_owned());
    }
    if app.style.mode == Mode::Totals {
        words.push("totals since the start".to_owned());
    }
    let rows = usize::from(parts.rows.height);
    if app.lines() > rows {
        let last = (app.offset + rows).min(app.lines());
        words.push(format!("{}-{} of {}", app.offset + 1, last, app.lines()));
    }
    if words.is_empty() {
        return;
    }
    let text = words.join(" · ");
    let gap = parts.titles.y - parts.mix.bottom();
    if gap > 0 {
        let area = Rect { y: parts.titles.y - 1, height: 1, ..parts.titles };
        put_right(
            buf,
            area,
            area.width.saturating_sub(1),
            0,
            &shorten(&text, usize::from(area.width) - 2),
            app.theme.warn(),
        );
    } else if !app.filter.is_empty() {
        let text = shorten(&text, usize::from(parts.mix.width) / 2);
        put_right(buf, parts.mix, parts.mix.width, 0, &format!(" {text} "), app.theme.bar());
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
                let text = if grew && text.len() < usize::from(*w) { format!("+{text}") } else { text };
                put_right(buf, room, *w, 0, &shorten(&text, usize::from(*w)), cell);
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
    let style =
        Style { mode: app.style.mode, throughput: app.style.throughput, grouped: app.style.grouped, ..app.style };
    let count = u16::try_from(Column::IN_ORDER.len()).unwrap_or(u16::MAX);
    let height = (count + 2).min(area.height);
    let width = 44.min(area.width);
    let area = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inside = frame(app, area, "sort by", buf);
    let first = (at + 1).saturating_sub(usize::from(inside.height));
    for (y, c) in Column::IN_ORDER.iter().enumerate().skip(first).take(usize::from(inside.height)) {
        let line = u16::try_from(y - first).unwrap_or(0);
        put(buf, inside, 1, line, c.title(&style), app.theme.strong());
        put(buf, inside, 13, line, c.meaning(), app.theme.text());
        if y == at {
            buf.set_style(Rect { y: inside.y + line, height: 1, ..inside }, app.theme.cursor());
        }
    }
}
