//! Screens as snapshots at three sizes, from a fixed state.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use super::app::App;
use super::keys::{Action, Page, Step};
use super::{fixture, view};
use crossterm::event::{KeyCode, KeyEvent};

fn screen(app: &mut App, (width, height): (u16, u16)) -> String {
    app.set_rows(view::table_rows(app, Rect::new(0, 0, width, height)), height);
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

/// What is wrong with a filter is readable in full, however narrow the screen.
#[test]
fn a_wrong_filter_is_explained_in_full() {
    snapshots("wrong_filter", |app| {
        app.on(Action::Filter);
        for c in "nack > 0 and src == 10.0.0.1".chars() {
            app.key(KeyEvent::from(KeyCode::Char(c)));
        }
        app.key(KeyEvent::from(KeyCode::Enter));
    });
}

/// A cursor goes over the findings, stays in view, and opens the flow that one is about.
#[test]
fn a_finding_opens_its_flow() {
    let mut app = fixture::app();
    app.on(Action::Page(Page::Findings));
    let notice = |(n, f): (usize, &crate::aggregate::Flow)| crate::source::Notice {
        code: format!("code-{n}"),
        severity: "warning",
        title: format!("something is wrong, number {n}"),
        detail: "What to look at next.".to_owned(),
        flow: Some(crate::source::Whom::of(&f.row)),
    };
    app.state.findings = app.report.flows.iter().cycle().take(8).enumerate().map(notice).collect();
    let all = app.state.findings.clone();
    assert!(all.len() > 4);
    for (n, f) in all.iter().enumerate() {
        app.on(Action::Move(Step::Down));
        let shown = screen(&mut app, (80, 24));
        assert_eq!(app.finding, Some(n));
        assert!(shown.contains(&f.code), "{shown}");
    }
    let at = 2;
    app.finding = Some(at);
    insta::assert_snapshot!("finding_chosen_80x24", screen(&mut app, (80, 24)));
    // it stays on its finding when others come before it
    let mut state = app.state.clone();
    state.findings.insert(0, crate::source::Notice { code: "another".to_owned(), flow: None, ..all[at].clone() });
    let report = std::sync::Arc::clone(&app.report);
    app.take(report, state, &[]);
    assert_eq!(app.finding, Some(at + 1));
    app.key(KeyEvent::from(KeyCode::Enter));
    assert_eq!(app.page, Page::Flow);
    let opened = app.opened_flow().expect("a flow is open");
    assert_eq!(Some(crate::source::Whom::of(&opened.row)), all[at].flow);
}

/// A page of the help is as long as the window shows.
#[test]
fn help_is_turned_by_pages() {
    let mut app = fixture::app();
    app.on(Action::Help);
    let first = screen(&mut app, (80, 24));
    app.on(Action::Move(Step::PageDown));
    let second = screen(&mut app, (80, 24));
    let inside = |s: &str| s.lines().filter(|l| l.contains('│')).map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (inside(&first), inside(&second));
    // the last line of the one is the first of the other
    assert!(first.len() > 15 && first.last() == second.first(), "{first:?} {second:?}");
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
