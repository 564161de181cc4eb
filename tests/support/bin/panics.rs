//! roce-top's screen with a fault in it: `roce-panics view FILE` panics while it draws, `roce-panics source FILE` while it
//! counts. For the test that the terminal is given back all the same.

use std::time::Duration;

use roce_user::aggregate::Report;
use roce_user::cli::Speed;
use roce_user::replay::Replay;
use roce_user::stop::Stop;
use roce_user::tui::{self, Draw, Observer, Wake};
use roce_user::units::Throughput;

fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(place), Some(file)) = (words.next(), words.next()) else { panic!("view or source, and a capture") };
    let source = Replay::open(file.as_ref(), 4791, Speed::Max).expect("a capture");
    let in_view = place == "view";
    let draw: Draw = if in_view {
        |app, area, buf| {
            tui::view::draw(app, area, buf);
            assert!(app.report.number < 2, "a fault in the view");
        }
    } else {
        tui::view::draw
    };
    let observer: Observer = Box::new(move |r: &Report| assert!(in_view || r.number < 2, "a fault in the source"));
    let options = tui::Options {
        interval: Duration::from_millis(100),
        throughput: Throughput::Bits,
        filter: String::new(),
        port: 4791,
        draw,
    };
    if let Err(e) = tui::run(Box::new(source), &options, &Stop::default(), observer, &Wake::default()) {
        eprintln!("{e:#}");
        std::process::exit(2);
    }
}
