//! What roce-fault does on these interfaces.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::put;
use crate::tui::app::App;
use crate::units::printable;

/// Draws the page.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    put(buf, area, 1, 0, "Injected faults", app.theme.head());
    if app.state.faults.is_empty() {
        let live = app.state.taps.iter().any(|t| !t.how.starts_with("capture"));
        let why = if live {
            "roce-fault injects nothing on these interfaces."
        } else {
            "A capture: nothing can be injected."
        };
        put(buf, area, 1, 2, why, app.theme.text());
        return;
    }
    let height = usize::from(area.height.saturating_sub(2));
    let first = app.scroll.min(app.state.faults.len().saturating_sub(height));
    for (y, text) in app.state.faults.iter().skip(first).take(height).enumerate() {
        put(buf, area, 1, 2 + u16::try_from(y).unwrap_or(0), &printable(text), app.theme.warn());
    }
}
