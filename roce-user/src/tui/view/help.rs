//! The list of keys, out of the same table that dispatches them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{frame, put};
use crate::tui::app::App;
use crate::tui::keys::{BINDINGS, Context};

/// Draws it over the page, scrolled by `at` lines.
pub fn draw(app: &App, at: usize, area: Rect, buf: &mut Buffer) {
    let width = 74.min(area.width);
    let height = u16::try_from(BINDINGS.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let area = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let inside = frame(app, area, "keys (Esc closes, ↑ ↓ scroll)", buf);
    let last = BINDINGS.len().saturating_sub(usize::from(inside.height));
    for (y, b) in BINDINGS.iter().skip(at.min(last)).take(usize::from(inside.height)).enumerate() {
        let y = u16::try_from(y).unwrap_or(0);
        put(buf, inside, 1, y, b.label, app.theme.accent().patch(app.theme.strong()));
        put(buf, inside, 9, y, b.help, app.theme.text());
        let place = match b.context {
            Context::Everywhere => "",
            Context::Overview => "overview",
            Context::Menu => "sort list",
        };
        put(buf, inside, inside.width.saturating_sub(10), y, place, app.theme.dim());
    }
}
