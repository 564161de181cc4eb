//! Bars of eighths of a character: the latest value at the right edge.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws values (oldest first) as bars, scaled to the largest of those that fit. A value above zero is
/// always visible. Returns the value of a full bar.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "scaled to the area's height before")]
pub fn bars(values: impl DoubleEndedIterator<Item = f32>, area: Rect, buf: &mut Buffer, style: Style) -> f32 {
    let shown: Vec<f32> =
        values.rev().take(usize::from(area.width)).map(|v| if v.is_finite() { v } else { 0.0 }).collect();
    let top = shown.iter().copied().fold(0.0f32, f32::max);
    let levels = u32::from(area.height) * 8;
    for (i, v) in shown.iter().enumerate() {
        let Some(x) = area.right().checked_sub(1 + u16::try_from(i).unwrap_or(u16::MAX)) else { break };
        let mut height = if top > 0.0 { (v / top * levels as f32).round() as u32 } else { 0 };
        if *v > 0.0 {
            height = height.clamp(1, levels);
        }
        for row in 0..area.height {
            let eighths = height.saturating_sub(u32::from(row) * 8).min(8);
            // the base line shows that time passes, also when nothing happens
            let sign = match (eighths, row) {
                (0, 0) => "▁",
                (n, _) => EIGHTHS[n as usize],
            };
            if sign != " " {
                buf.set_string(x, area.bottom() - 1 - row, sign, style);
            }
        }
    }
    top
}

/// Draws parts of a whole as one bar: widths in characters that add up to the area's.
pub fn shares(parts: &[f64], width: u16) -> Vec<u16> {
    let sum: f64 = parts.iter().sum();
    if sum <= 0.0 {
        return vec![0; parts.len()];
    }
    let mut out = Vec::with_capacity(parts.len());
    let mut passed = 0.0;
    let mut used = 0u16;
    for p in parts {
        passed += p;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u16")]
        let end = (passed / sum * f64::from(width)).round() as u16;
        out.push(end - used);
        used = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_at_the_right_and_the_largest_is_full() {
        let area = Rect::new(0, 0, 4, 2);
        let mut buf = Buffer::empty(area);
        let top = bars([1.0, 8.0, 0.0, 16.0].into_iter(), area, &mut buf, Style::new());
        assert!((top - 16.0).abs() < f32::EPSILON);
        let line = |y| (0..4).map(|x| buf[(x, y)].symbol()).collect::<String>();
        assert_eq!(line(0), "   █");
        assert_eq!(line(1), "▁█▁█");
    }

    #[test]
    fn odd_values_do_no_harm() {
        let area = Rect::new(0, 0, 3, 1);
        let mut buf = Buffer::empty(area);
        assert!(bars([f32::NAN, f32::INFINITY, 0.0].into_iter(), area, &mut buf, Style::new()).abs() < f32::EPSILON);
        bars([1.0].into_iter(), Rect::new(0, 0, 0, 0), &mut buf, Style::new());
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(shares(&[1.0, 1.0, 1.0], 10).iter().sum::<u16>(), 10);
        assert_eq!(shares(&[0.0], 10), [0]);
    }
}
