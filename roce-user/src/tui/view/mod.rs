//! Pictures of the state: pure functions of `(&App, Rect, &mut Buffer)`.
//!
//! ```text
//! bar       program, taps, interval, live or FROZEN, time
//! notice    one line when there is something to say
//! page      overview | flow | findings | faults
//! footer    keys, or the filter's input line
//! ```

pub mod faults;
pub mod findings;
pub mod flow;
pub mod help;
pub mod overview;
pub mod plot;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr as _;

use super::app::{App, Popup};
use super::keys::{self, Action, Context, Page};
use super::theme::Signs;
use crate::batch::clock;
use crate::columns::Column;
use crate::units::{printable, span};

/// Fewest columns and lines with which there is anything to show.
const SMALLEST: (u16, u16) = (40, 10);

/// Draws everything.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        put(buf, area, 0, 0, "roce-top needs a larger window", app.theme.text());
        return;
    }
    let parts = Parts::of(app, area);
    bar(app, parts.bar, buf);
    if let Some(text) = app.state.notices.first() {
        let text = shorten(&format!("! {}", printable(text)), usize::from(area.width) - 2);
        put(buf, parts.notice, 1, 0, &text, app.theme.warn());
    }
    match app.page {
        Page::Overview => overview::draw(app, parts.page, buf),
        Page::Flow => flow::draw(app, parts.page, buf),
        Page::Findings => findings::draw(app, parts.page, buf),
        Page::Faults => faults::draw(app, parts.page, buf),
    }
    footer(app, parts.footer, buf);
    match &app.popup {
        Popup::Help(at) => help::draw(app, *at, parts.page, buf),
        Popup::Sort(at) => overview::sort_menu(app, *at, parts.page, buf),
        Popup::None | Popup::Filter(..) => {}
    }
    if app.theme.signs != Signs::All {
        for cell in &mut buf.content {
            if let Some(plain) = app.theme.signs.instead(cell.symbol()) {
                cell.set_symbol(plain);
            }
        }
    }
}

/// Where the cursor of an input line stands, if there is one.
pub fn input_cursor(app: &App, area: Rect) -> Option<(u16, u16)> {
    let Popup::Filter(input, _) = &app.popup else { return None };
    let x = u16::try_from(input.visual_cursor()).unwrap_or(u16::MAX).saturating_add(FILTER_PROMPT_LEN);
    Some((area.x + x.min(area.width.saturating_sub(1)), area.bottom().saturating_sub(1)))
}

const FILTER_PROMPT: &str = " filter: ";
const FILTER_PROMPT_LEN: u16 = 9;

/// Lines of the flow table that a screen has room for.
pub fn table_rows(app: &App, area: Rect) -> usize {
    usize::from(overview::Parts::of(Parts::of(app, area).page).rows.height)
}

/// What is at a place of the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The title of a column.
    Title(Column),
    /// A line of the table.
    Line(usize),
}

/// What is at a column and line of the screen, if that can be clicked on.
pub fn hit(app: &App, area: Rect, (x, y): (u16, u16)) -> Option<Hit> {
    let parts = overview::Parts::of(Parts::of(app, area).page);
    if y == parts.titles.y && parts.titles.height > 0 {
        return overview::title_at(app, parts.titles, x).map(Hit::Title);
    }
    let line = app.offset + usize::from(y.checked_sub(parts.rows.y)?);
    (y < parts.rows.bottom() && line < app.lines()).then_some(Hit::Line(line))
}

struct Parts {
    bar: Rect,
    notice: Rect,
    page: Rect,
    footer: Rect,
}

impl Parts {
    fn of(app: &App, area: Rect) -> Self {
        let notice = u16::from(!app.state.notices.is_empty());
        Self {
            bar: Rect { height: 1, ..area },
            notice: Rect { y: area.y + 1, height: notice, ..area },
            page: Rect { y: area.y + 1 + notice, height: area.height.saturating_sub(2 + notice), ..area },
            footer: Rect { y: area.bottom().saturating_sub(1), height: 1, ..area },
        }
    }
}

fn bar(app: &App, area: Rect, buf: &mut Buffer) {
    buf.set_style(area, app.theme.bar());
    let clock = clock(app.report.at, &app.zone);
    let state = if app.frozen {
        "FROZEN"
    } else if app.state.finished {
        "END"
    } else {
        "live"
    };
    let right = format!("every {}  {state}  {} up {} ", every(app), clock, span(app.elapsed_s));
    let right = if app.report.at > 0.0 { right } else { format!("every {}  starting ", every(app)) };
    let taps: Vec<String> = app.state.taps.iter().map(|t| printable(&format!("{} ({})", t.name, t.how))).collect();
    let style = app.theme.bar();
    let mut x = put(buf, area, 0, 0, " roce-top  ", style.patch(app.theme.strong()));
    if app.page != Page::Overview {
        x = put(buf, area, x, 0, app.page.title(), style.patch(app.theme.strong())) + 2;
    }
    let room = usize::from(area.width).saturating_sub(usize::from(x) + right.width() + 1);
    let taps = shorten(&taps.join(", "), room);
    x = put(buf, area, x, 0, &taps, style);
    let at = area.width.saturating_sub(u16::try_from(right.width()).unwrap_or(u16::MAX));
    if at > x {
        put(buf, area, at, 0, &right, style);
    }
}

fn every(app: &App) -> String {
    let ms = app.interval.as_millis();
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

fn footer(app: &App, area: Rect, buf: &mut Buffer) {
    if let Popup::Filter(input, wrong) = &app.popup {
        let mut x = put(buf, area, 0, 0, FILTER_PROMPT, app.theme.accent());
        let room = usize::from(area.width.saturating_sub(x + 1));
        let text: String = input.value().chars().skip(input.visual_scroll(room)).collect();
        x = put(buf, area, x, 0, &text, app.theme.strong());
        match wrong {
            Some(e) => wrong_filter(app, &printable(e), area, x + 2, buf),
            None => put(
                buf,
                area,
                x + 2,
                0,
                "Enter use  Esc cancel   e.g. 10.0.0.1   nak > 0 && dscp == 26   ? lists fields",
                app.theme.dim(),
            ),
        };
        return;
    }
    let context = match app.page {
        Page::Overview => Context::Overview,
        Page::Findings => Context::Findings,
        Page::Flow | Page::Faults => Context::Everywhere,
    };
    let mut x = 1;
    for b in keys::BINDINGS {
        let Some(word) = b.footer else { continue };
        let nowhere_to_go = b.action == Action::Back && app.page == Page::Overview && app.filter.is_empty();
        if nowhere_to_go || (b.context != context && b.context != Context::Everywhere) {
            continue;
        }
        let label = b.label.split(' ').next().unwrap_or(b.label);
        let need = u16::try_from(label.width() + word.width() + 3).unwrap_or(u16::MAX);
        if x + need > area.width {
            break;
        }
        x = put(buf, area, x, 0, label, app.theme.accent().patch(app.theme.strong()));
        x = put(buf, area, x + 1, 0, word, app.theme.dim()) + 2;
    }
}

/// What is wrong with a filter: behind it, or on lines of its own above it where that is too narrow. Where it ended.
fn wrong_filter(app: &App, text: &str, area: Rect, x: u16, buf: &mut Buffer) -> u16 {
    let text = format!("✗ {text}");
    if usize::from(x) + text.width() <= usize::from(area.width) {
        return put(buf, area, x, 0, &text, app.theme.bad());
    }
    let lines = findings::wrap(&text, usize::from(area.width.saturating_sub(2)));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.y);
    let above = Rect { y: area.y - height, height, ..area };
    ratatui::widgets::Widget::render(ratatui::widgets::Clear, above, buf);
    for (y, line) in (0..height).zip(&lines) {
        put(buf, above, 1, y, line, app.theme.bad());
    }
    x
}

/// Writes text and says where it ended; cut at the area's edge.
pub fn put(buf: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
    if x >= area.width || y >= area.height {
        return x;
    }
    let (end, _) = buf.set_stringn(area.x + x, area.y + y, text, usize::from(area.width - x), style);
    end - area.x
}

/// The same, ending before `x`.
pub fn put_right(buf: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) {
    let start = x.saturating_sub(u16::try_from(text.width()).unwrap_or(u16::MAX));
    put(buf, area, start, y, text, style);
}

/// Text that fits, with `…` where something is missing at the end.
pub fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// An address that fits: its end tells hosts of one network apart, so the middle goes.
pub fn shorten_address(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    if width < 5 {
        return shorten(text, width);
    }
    let head = (width - 1) / 3;
    let tail = width - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Clears a box and draws its frame; the inside is returned.
pub fn frame(app: &App, area: Rect, title: &str, buf: &mut Buffer) -> Rect {
    use ratatui::widgets::{Block, Clear, Widget as _};
    Clear.render(area, buf);
    let block = Block::bordered()
        .border_type(ratatui::widgets::BorderType::Rounded)
        .border_style(app.theme.accent())
        .title(format!(" {title} "))
        .title_style(app.theme.strong());
    let inside = block.inner(area);
    block.render(area, buf);
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_text_fits() {
        for w in 0..30 {
            assert!(shorten("an interface with a long name", w).width() <= w, "{w}");
            assert!(shorten_address("fe80::1234:5678:9abc:def0", w).chars().count() <= w, "{w}");
        }
        assert_eq!(shorten_address("fe80::1234:5678:9abc:def0", 12), "fe8…abc:def0");
    }
}
