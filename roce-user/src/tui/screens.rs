//! Screens as snapshots at three sizes, from a fixed state.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use super::app::App;
use super::keys::{Action, Page, Step};
use super::{fixture, view};

fn screen(app: &mut App, (width, height): (u16, u16)) -> String {
    app.set_rows(view::table_rows(app, Rect::new(0, 0, width, height)));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
    terminal.draw(|f| view::draw(app, f.area(), f.buffer_mut())).expect("drawn");
    // a buffer without room cannot be shown as text
    if width == 0 { String::new() } else { terminal.backend().to_string() }
}

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn snapshots(name: &str, prepare: impl Fn(&mut App)) {
    for size in SIZES {
        let mut app = fixture::app();
        prepare(&mut app);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), screen(&mut app, size));
    }
}

#[test]
fn overview() {
    snapshots("overview", |_| {});
}

#[test]
fn overview_grouped_and_totals() {
    snapshots("grouped", |app| {
        app.on(Action::Group);
        app.on(Action::Totals);
        app.on(Action::Move(Step::Down));
    });
}

#[test]
fn flow() {
    snapshots("flow", |app| app.on(Action::Open));
}

#[test]
fn help_and_sort_menu() {
    snapshots("help", |app| app.on(Action::Help));
    snapshots("sort", |app| app.on(Action::SortMenu));
}

#[test]
fn nothing_to_see_says_why_in_full() {
    let mut app =
        App::new(super::theme::Theme::COLOUR, std::time::Duration::from_secs(1), crate::units::Throughput::Bits);
    let why = "no RoCE on eth0 for 7 s, 12 other packets; on a mirror port: ip link set eth0 promisc on, and more words than fit one line";
    let state = crate::source::State { notices: vec![why.to_owned()], ..crate::source::State::default() };
    app.take(std::sync::Arc::default(), state, &[]);
    let shown = screen(&mut app, (80, 24)).replace('"', " ");
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains(why), "{shown}");
}

#[test]
fn findings_and_faults() {
    snapshots("findings", |app| app.on(Action::Page(Page::Findings)));
    snapshots("faults", |app| app.on(Action::Page(Page::Faults)));
}

#[test]
fn no_size_is_too_small_to_draw() {
    for width in [0, 1, 2, 10, 39, 40, 41, 60, 79, 80, 131] {
        for height in [0, 1, 2, 5, 9, 10, 11, 15, 23] {
            for action in [
                Action::Help,
                Action::SortMenu,
                Action::Filter,
                Action::Open,
                Action::Group,
                Action::Page(Page::Findings),
            ] {
                let mut app = fixture::app();
                app.on(action);
                screen(&mut app, (width, height));
            }
        }
    }
}

#[test]
fn a_terminal_without_signs_gets_none() {
    for action in [Action::Help, Action::SortMenu, Action::Open, Action::Page(Page::Findings), Action::Move(Step::Down)]
    {
        for size in SIZES {
            let mut plain = fixture::app();
            plain.theme.signs = super::theme::Signs::Ascii;
            plain.on(action);
            let shown = screen(&mut plain, size);
            assert!(shown.is_ascii() && !shown.contains('?'.to_string().repeat(2).as_str()), "{action:?}: {shown}");
        }
    }
}

#[test]
fn the_mouse_moves_sorts_and_opens() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

    let size = (120, 40);
    let mut app = fixture::app();
    let lines: Vec<String> = screen(&mut app, size).lines().map(|l| l.trim_matches('"').to_owned()).collect();
    let titles = lines.iter().position(|l| l.contains("DESTINATION")).expect("titles");
    let column = |word: &str| lines[titles].split(word).next().expect("it is there").chars().count();
    let does = |app: &mut App, kind, x: usize, y: usize| {
        let place = |n: usize| u16::try_from(n).expect("small");
        let m = MouseEvent { kind, column: place(x), row: place(y), modifiers: KeyModifiers::NONE };
        app.mouse(m, Rect::new(0, 0, size.0, size.1));
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    does(&mut app, click, column("DESTINATION") + 2, titles);
    assert_eq!((app.sort, app.descending), (crate::columns::Column::Destination, false));
    does(&mut app, click, column("DESTINATION"), titles);
    assert!(app.descending, "again: the other way round");
    does(&mut app, click, column("BIT/S"), titles);
    assert_eq!(app.sort, crate::columns::Column::Metric(crate::aggregate::Metric::Bytes));
    does(&mut app, click, 5, titles + 2);
    let second = app.selected;
    assert!(second.is_some() && app.page == Page::Overview);
    does(&mut app, MouseEventKind::ScrollUp, 5, titles + 2);
    assert_ne!(app.selected, second);
    does(&mut app, MouseEventKind::ScrollDown, 0, 0);
    assert_eq!(app.selected, second);
    // behind the last line and outside the table: nothing
    does(&mut app, click, 5, 38);
    does(&mut app, click, 5, 0);
    assert_eq!((app.selected, app.page), (second, Page::Overview));
    does(&mut app, click, 5, titles + 2);
    assert_eq!(app.page, Page::Flow);
}

#[test]
fn without_colour_nothing_is_lost() {
    let mut plain = fixture::app();
    plain.theme.colour = false;
    assert_eq!(screen(&mut plain, (120, 40)), screen(&mut fixture::app(), (120, 40)));
}
