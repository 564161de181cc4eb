//! How far a long file has been read, on standard error.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::capture::Reader;

/// Files smaller than this are read before anybody wonders, bytes (as they lie on the disk, compressed or not).
const LONG: u64 = 64 << 20;

/// A bar on standard error, if that is a terminal, nothing else is drawn there (`free`), and the file is long.
pub fn bar(reader: &Reader, free: bool) -> ProgressBar {
    let (_, size) = reader.progress();
    let seen = free && io::stderr().is_terminal();
    let Some(size) = size.filter(|s| seen && *s > LONG) else { return ProgressBar::hidden() };
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes} {wide_bar} {eta} left") {
        bar.set_style(style);
    }
    bar
}
