//! What all of it means: the keys, out of the same table that dispatches them, the columns, the filter's fields.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{frame, put};
use crate::columns::{Column, Style as Shown};
use crate::matcher;
use crate::tui::app::App;
use crate::tui::keys::{BINDINGS, Context};

/// A title, or a word and what it means.
enum Entry {
    Title(&'static str),
    Word(String, String),
    Text(&'static str),
}

fn entries(style: &Shown) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::new();
    for b in BINDINGS {
        let place = match b.context {
            Context::Everywhere => "",
            Context::Overview => " (overview)",
            Context::Findings => " (findings)",
            Context::Menu => " (list of columns)",
        };
        out.push(Entry::Word(b.label.to_owned(), format!("{}{place}", b.help)));
    }
    out.push(Entry::Word("wheel".to_owned(), "up and down".to_owned()));
    out.push(Entry::Word("click".to_owned(), "a line; again: open it; a title: sort by it (overview)".to_owned()));
    out.push(Entry::Word("Shift-drag".to_owned(), "select text".to_owned()));
    out.push(Entry::Title("Columns"));
    out.extend(Column::IN_ORDER.iter().map(|c| Entry::Word(c.title(style).to_owned(), c.meaning().to_owned())));
    out.push(Entry::Title("Signs"));
    for (sign, meaning) in [
        ("·", "none since the start"),
        ("+12", "grew in the last interval"),
        ("▼ ▲", "sorted by this column, largest or smallest first"),
        ("1.2k", "k M G T: thousand, million …; bits and bytes too, in powers of 1000"),
        ("dim", "no packet in the last interval"),
        ("▁▃█", "plots: a column an interval, the latest at the right, full is the peak of those shown"),
    ] {
        out.push(Entry::Word(sign.to_owned(), meaning.to_owned()));
    }
    out.push(Entry::Title("Filter: fields of a flow, in Wireshark's language"));
    for text in [
        "10.0.0.1                          a word: in addresses, QPs, transport",
        "nak > 0 or missing > 0            compare, combine with and or not",
        "ip.addr == 10.0.0.0/24            prefixes; also src, dst, ipv6.addr",
        "qp == 0x11 && bps > 1G            numbers with k M G T",
        "dscp in {26 46} and ce == 0       sets",
    ] {
        out.push(Entry::Text(text));
    }
    out.extend(matcher::fields().map(|(name, help)| Entry::Word(name.to_owned(), help.to_owned())));
    out
}

/// How many lines there are.
pub fn lines() -> usize {
    entries(&Shown::default()).len()
}

/// Draws it over the page, scrolled by `at` lines.
pub fn draw(app: &App, at: usize, area: Rect, buf: &mut Buffer) {
    let all = entries(&app.style);
    let width = 78.min(area.width);
    let height = u16::try_from(all.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let area = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let room = usize::from(height.saturating_sub(2));
    let first = at.min(all.len().saturating_sub(room));
    let below = all.len().saturating_sub(first + room);
    let title = if below > 0 {
        format!("help: Esc closes, ↓ {below} more lines: columns, signs, filter")
    } else {
        "help: Esc closes, ↑ ↓ scroll".to_owned()
    };
    let inside = frame(app, area, &title, buf);
    let word: Style = app.theme.accent().patch(app.theme.strong());
    for (e, y) in all.iter().skip(first).take(room).zip(0u16..) {
        match e {
            Entry::Title(t) => {
                put(buf, inside, 1, y, t, app.theme.head());
            }
            Entry::Word(w, meaning) => {
                put(buf, inside, 1, y, w, word);
                put(buf, inside, 14, y, meaning, app.theme.text());
            }
            Entry::Text(t) => {
                put(buf, inside, 1, y, t, app.theme.text());
            }
        }
    }
}
