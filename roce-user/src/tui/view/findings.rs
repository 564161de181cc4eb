//! What the rules found in what was seen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::put;
use crate::tui::app::App;
use crate::units::printable;

/// How far live findings go.
const LIVE: &str = "Counts are exact; what needs the order of all packets is not looked for here. For that, record with -w and run `roce-dissect check` on the file.";

/// How far those of a capture go.
const OF_A_CAPTURE: &str =
    "By every packet up to here, as `roce-dissect check` finds them; that shows the packets, too.";

/// Draws the page.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let of = |severity| app.state.findings.iter().filter(|f| f.severity == severity).count();
    let counts = format!("Findings: {} errors, {} warnings, {} notes", of("error"), of("warning"), of("note"));
    put(buf, area, 1, 0, &counts, app.theme.head());
    let limits = if app.state.every_packet { OF_A_CAPTURE } else { LIVE };
    if app.state.findings.is_empty() {
        put(buf, area, 1, 2, "Nothing found so far.", app.theme.text());
        for (line, y) in wrap(limits, usize::from(area.width.saturating_sub(2))).iter().zip(3..) {
            put(buf, area, 1, y, line, app.theme.dim());
        }
        return;
    }
    let mut lines: Vec<(String, ratatui::style::Style)> = Vec::new();
    let room = usize::from(area.width.saturating_sub(4));
    // lines of the finding under the cursor
    let mut chosen = 0..0;
    for (n, f) in app.state.findings.iter().enumerate() {
        let from = lines.len();
        let (sign, style) = match f.severity {
            "error" => ("✗", app.theme.bad()),
            "warning" => ("!", app.theme.warn()),
            _ => ("·", app.theme.text()),
        };
        let title = format!("{} [{}]", printable(&f.title), f.code);
        for (i, part) in wrap(&title, room).into_iter().enumerate() {
            lines.push((format!("{} {part}", if i == 0 { sign } else { " " }), style));
        }
        if let Some(flow) = &f.flow {
            let open = if app.finding == Some(n) { "   Enter opens it" } else { "" };
            lines.push((format!("  {flow}{open}"), app.theme.dim()));
        }
        for part in wrap(&printable(&f.detail), room) {
            lines.push((format!("  {part}"), app.theme.text()));
        }
        if app.finding == Some(n) {
            chosen = from..lines.len();
        }
        lines.push((String::new(), app.theme.text()));
    }
    lines.extend(wrap(limits, room).into_iter().map(|l| (l, app.theme.dim())));
    let height = usize::from(area.height.saturating_sub(2));
    let first = match app.finding {
        // the last one shows what follows it
        Some(n) if n + 1 == app.state.findings.len() => lines.len().saturating_sub(height).min(chosen.start),
        // in the middle of the window, whole if it fits
        Some(_) => (chosen.start + chosen.end).saturating_sub(height).div_euclid(2).min(chosen.start),
        None => 0,
    };
    let first = first.min(lines.len().saturating_sub(height));
    for (y, (at, (text, style))) in lines.iter().enumerate().skip(first).take(height).enumerate() {
        let y = 2 + u16::try_from(y).unwrap_or(0);
        if chosen.contains(&at) {
            buf.set_style(Rect { y: area.y + y, height: 1, ..area }.intersection(area), app.theme.cursor());
            put(buf, area, 1, y, text, style.patch(app.theme.cursor()));
        } else {
            put(buf, area, 1, y, text, *style);
        }
    }
}

/// Breaks text at blanks.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            out.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        out.push(line);
    }
    out
}
