//! What the screen knows, and what each action does to it. Draws nothing, reads nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use dissector::flow::row::Endpoint;
use jiff::tz::TimeZone;
use ratatui::layout::Rect;
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler as _;

use super::event::Told;
use super::keys::{self, Action, Context, Page, Step};
use super::theme::Theme;
use super::view::{self, Hit};
use crate::aggregate::{self, Flow, FlowKey, HostPair, Metric, Phase, Report};
use crate::columns::{self, Column, Line, Mode, Style};
use crate::matcher::Matcher;
use crate::source::{Event, State, Whom};
use crate::units::Throughput;

/// Events that are kept for the flow page.
const EVENTS: usize = 4096;

/// Intervals to choose from.
const INTERVALS: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_mins(1),
];

/// What the cursor is on, kept by identity so that it stays on its flow when lines move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// A flow.
    Flow(FlowKey),
    /// A host pair.
    Pair(Endpoint, Endpoint),
}

/// What keys go to.
#[derive(Clone, Debug, Default)]
pub enum Popup {
    /// Nothing is in front of the page.
    #[default]
    None,
    /// The list of keys, scrolled by so many lines.
    Help(usize),
    /// The list of columns, with the cursor on one.
    Sort(usize),
    /// The filter's input line and what is wrong with it.
    Filter(Input, Option<String>),
}

/// All state of the screen.
#[derive(Debug)]
pub struct App {
    /// Colours.
    pub theme: Theme,
    /// The page in front.
    pub page: Page,
    /// What is in front of the page.
    pub popup: Popup,
    /// What is shown.
    pub report: Arc<Report>,
    /// What there is to say about the source.
    pub state: State,
    /// Latest events, oldest first.
    pub events: VecDeque<Told>,
    /// UDP port of RoCEv2, to decode events.
    pub port: u16,
    /// For times of day.
    pub zone: TimeZone,
    /// The picture is held.
    pub frozen: bool,
    /// Rates or totals, units.
    pub style: Style,
    /// Sorted by.
    pub sort: Column,
    /// Largest first.
    pub descending: bool,
    /// Idle and ended flows are not listed.
    pub hide_idle: bool,
    /// The filter in force, as typed.
    pub filter: String,
    /// Time between reports.
    pub interval: Duration,
    /// Seconds since the first report.
    pub elapsed_s: f64,
    /// The cursor; `None` until it is moved.
    pub selected: Option<Selected>,
    /// First line of the table that is shown.
    pub offset: usize,
    /// First line of a findings, faults or flow page that is shown.
    pub scroll: usize,
    /// The flow on the flow page.
    pub opened: Option<FlowKey>,
    /// The end was asked for.
    pub quit: bool,
    /// The shell is to have the terminal for a while.
    pub suspend: bool,
    latest: Arc<Report>,
    matcher: Option<Matcher>,
    pairs: Vec<HostPair>,
    /// Indices of flows, or of pairs when grouped.
    order: Vec<usize>,
    /// Line of the cursor.
    cursor: Option<usize>,
    rows: usize,
    /// Lines of the screen.
    height: usize,
    /// Finding under the cursor of its page.
    pub finding: Option<usize>,
    started: Option<f64>,
}

impl App {
    /// Before anything was seen.
    pub fn new(theme: Theme, interval: Duration, throughput: Throughput) -> Self {
        Self {
            theme,
            page: Page::Overview,
            popup: Popup::None,
            report: Arc::default(),
            state: State::default(),
            events: VecDeque::new(),
            port: dissector::wire::ROCE_UDP_PORT,
            zone: TimeZone::system(),
            frozen: false,
            style: Style { throughput, compact: true, ..Style::default() },
            sort: Column::Metric(Metric::Packets),
            descending: true,
            hide_idle: false,
            filter: String::new(),
            interval,
            elapsed_s: 0.0,
            selected: None,
            offset: 0,
            scroll: 0,
            opened: None,
            quit: false,
            suspend: false,
            latest: Arc::default(),
            matcher: None,
            pairs: Vec::new(),
            order: Vec::new(),
            cursor: None,
            rows: 1,
            height: 1,
            finding: None,
            started: None,
        }
    }

    /// A new interval is complete.
    pub fn take(&mut self, report: Arc<Report>, state: State, events: &[Event]) {
        let started = *self.started.get_or_insert(report.at);
        self.elapsed_s = (report.at - started).max(0.0);
        self.latest = report;
        // the cursor stays on its finding, wherever that is now
        self.finding = self.finding.and_then(|n| {
            let was = self.state.findings.get(n)?;
            let at = state.findings.iter().position(|f| (&f.code, f.flow) == (&was.code, was.flow));
            at.or_else(|| state.findings.len().checked_sub(1).map(|last| n.min(last)))
        });
        self.state = state;
        for e in events {
            if self.events.len() == EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Told::of(e, self.port, &self.zone));
        }
        if !self.frozen {
            self.show_latest();
        }
    }

    fn show_latest(&mut self) {
        self.report = Arc::clone(&self.latest);
        self.style.interval_s = self.report.interval_s;
        self.style.at = self.report.at;
        self.arrange();
    }

    /// Filters, groups and sorts anew.
    fn arrange(&mut self) {
        let report = Arc::clone(&self.report);
        let wanted = |f: &Flow| {
            (!self.hide_idle || f.phase == Phase::Active)
                && self.matcher.as_ref().is_none_or(|m| m.matches(f, report.interval_s))
        };
        self.pairs = if self.style.grouped {
            aggregate::by_host_pair(report.flows.iter().filter(|f| wanted(f)))
        } else {
            Vec::new()
        };
        self.order = if self.style.grouped {
            let lines = self.pairs.iter().enumerate().map(|(i, p)| (i, Line::Pair(p)));
            columns::order(lines, self.sort, self.descending, &self.style)
        } else {
            let lines = report.flows.iter().enumerate().filter(|(_, f)| wanted(f)).map(|(i, f)| (i, Line::Flow(f)));
            columns::order(lines, self.sort, self.descending, &self.style)
        };
        self.cursor = self
            .selected
            .and_then(|_| (0..self.order.len()).find(|i| self.line(*i).is_some_and(|l| self.is_selected(&l))));
        self.keep_cursor_in_view();
    }

    /// How many lines the table has.
    pub fn lines(&self) -> usize {
        self.order.len()
    }

    /// A line of the table.
    pub fn line(&self, i: usize) -> Option<Line<'_>> {
        let at = *self.order.get(i)?;
        if self.style.grouped { self.pairs.get(at).map(Line::Pair) } else { self.report.flows.get(at).map(Line::Flow) }
    }

    /// Whether the cursor is on a line.
    pub fn is_selected(&self, line: &Line<'_>) -> bool {
        match (self.selected, line) {
            (Some(Selected::Flow(k)), Line::Flow(f)) => f.key == k,
            (Some(Selected::Pair(src, dst)), Line::Pair(p)) => (p.src, p.dst) == (src, dst),
            _ => false,
        }
    }

    /// The flow on the flow page.
    pub fn opened_flow(&self) -> Option<&Flow> {
        let key = self.opened?;
        self.report.flows.iter().find(|f| f.key == key)
    }

    /// The same flow's other direction, if it is known.
    pub fn reverse_of(&self, flow: &Flow) -> Option<&Flow> {
        let pair = flow.row.pair?;
        self.report.flows.iter().find(|f| f.row.id == pair && f.phase_is_live())
    }

    /// Lines that the table has room for; told before drawing.
    pub fn set_rows(&mut self, rows: usize, height: u16) {
        self.height = usize::from(height);
        self.rows = rows.max(1);
        self.keep_cursor_in_view();
    }

    fn keep_cursor_in_view(&mut self) {
        if let Some(i) = self.cursor {
            self.offset = self.offset.clamp((i + 1).saturating_sub(self.rows), i);
        }
        self.offset = self.offset.min(self.order.len().saturating_sub(self.rows));
    }

    /// Where keys go now.
    fn context(&self) -> Context {
        match (&self.popup, self.page) {
            (Popup::Sort(_), _) => Context::Menu,
            (_, Page::Overview) => Context::Overview,
            (_, Page::Findings) => Context::Findings,
            _ => Context::Everywhere,
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) {
        if let Popup::Filter(input, wrong) = &mut self.popup {
            match (key.code, key.modifiers) {
                (KeyCode::Esc, _) | (KeyCode::Char('c'), KeyModifiers::CONTROL) => self.popup = Popup::None,
                (KeyCode::Enter, _) => {
                    let text = input.value().trim().to_owned();
                    match self.set_filter(&text) {
                        Ok(()) => self.popup = Popup::None,
                        Err(e) => {
                            if let Popup::Filter(_, wrong) = &mut self.popup {
                                *wrong = Some(e);
                            }
                        }
                    }
                }
                _ => {
                    *wrong = None;
                    input.handle_event(&crossterm::event::Event::Key(key));
                }
            }
            return;
        }
        if let Some(b) = keys::find(key, self.context()) {
            self.on(b.action);
        }
    }

    /// The mouse did something on a screen: the wheel moves, a click puts the cursor on a line and opens it if it was there,
    /// and sorts by a title.
    pub fn mouse(&mut self, m: MouseEvent, area: Rect) {
        match m.kind {
            MouseEventKind::ScrollUp => self.on(Action::Move(Step::Up)),
            MouseEventKind::ScrollDown => self.on(Action::Move(Step::Down)),
            MouseEventKind::Down(MouseButton::Left)
                if self.page == Page::Overview && matches!(self.popup, Popup::None) =>
            {
                match view::hit(self, area, (m.column, m.row)) {
                    Some(Hit::Title(c)) if c == self.sort => self.on(Action::Reverse),
                    Some(Hit::Title(c)) => self.sort_by(c),
                    Some(Hit::Line(at)) if self.cursor == Some(at) => self.open(),
                    Some(Hit::Line(at)) => {
                        self.selected = self.line(at).map(|l| identity(&l));
                        self.cursor = self.selected.map(|_| at);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// Puts a filter in force; an empty one lists everything.
    pub fn set_filter(&mut self, text: &str) -> Result<(), String> {
        self.matcher = if text.is_empty() { None } else { Some(Matcher::parse(text)?) };
        text.clone_into(&mut self.filter);
        self.offset = 0;
        self.arrange();
        Ok(())
    }

    /// Does what is wanted.
    pub fn on(&mut self, action: Action) {
        match (&mut self.popup, action) {
            (Popup::Help(_), Action::Back | Action::Help | Action::Open)
            | (Popup::Sort(_), Action::Back | Action::SortMenu) => {
                self.popup = Popup::None;
                return;
            }
            (Popup::Help(at), Action::Move(step)) => {
                *at = step.apply(*at, view::help::lines(), self.height.saturating_sub(5).max(1));
                return;
            }
            (Popup::Sort(at), Action::Move(step)) => {
                *at = step.apply(*at, Column::IN_ORDER.len(), 10);
                return;
            }
            (Popup::Sort(at), Action::Open) => {
                let column = Column::IN_ORDER.get(*at).copied().unwrap_or(self.sort);
                self.popup = Popup::None;
                self.sort_by(column);
                return;
            }
            _ => {}
        }
        match action {
            Action::Quit => self.quit = true,
            Action::Suspend => self.suspend = true,
            Action::Help => self.popup = Popup::Help(0),
            Action::Back => self.back(),
            Action::Page(page) => self.go(page),
            Action::NextPage => self.turn(1),
            Action::PreviousPage => self.turn(Page::ALL.len() - 1),
            Action::Move(step) => self.step(step),
            Action::Open => self.open(),
            Action::SortMenu => {
                self.popup = Popup::Sort(Column::IN_ORDER.iter().position(|c| *c == self.sort).unwrap_or(0));
            }
            Action::SortRight => self.sort_next(1),
            Action::SortLeft => self.sort_next(Column::IN_ORDER.len() - 1),
            Action::Reverse => {
                self.descending = !self.descending;
                self.arrange();
            }
            Action::Filter => self.popup = Popup::Filter(Input::new(self.filter.clone()), None),
            Action::Group => {
                self.style.grouped = !self.style.grouped;
                self.selected = None;
                self.offset = 0;
                self.arrange();
            }
            Action::Freeze => {
                self.frozen = !self.frozen;
                if !self.frozen {
                    self.show_latest();
                }
            }
            Action::Totals => {
                self.style.mode = match self.style.mode {
                    Mode::Rates => Mode::Totals,
                    Mode::Totals => Mode::Rates,
                };
                self.arrange();
            }
            Action::Units => self.style.throughput = self.style.throughput.other(),
            Action::HideIdle => {
                self.hide_idle = !self.hide_idle;
                self.arrange();
            }
            Action::Faster => {
                if let Some(d) = INTERVALS.iter().rev().find(|d| **d < self.interval) {
                    self.interval = *d;
                }
            }
            Action::Slower => {
                if let Some(d) = INTERVALS.iter().find(|d| **d > self.interval) {
                    self.interval = *d;
                }
            }
        }
    }

    fn back(&mut self) {
        if self.page != Page::Overview {
            self.go(Page::Overview);
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.matcher = None;
            self.arrange();
        } else {
            self.selected = None;
            self.cursor = None;
            self.offset = 0;
        }
    }

    fn go(&mut self, page: Page) {
        self.scroll = 0;
        if page == Page::Flow && self.page != Page::Flow {
            self.opened = match self.selected {
                Some(Selected::Flow(k)) => Some(k),
                _ => self.opened.or_else(|| self.line(0).and_then(|l| l.key())),
            };
        }
        self.page = page;
    }

    fn turn(&mut self, by: usize) {
        let at = Page::ALL.iter().position(|p| *p == self.page).unwrap_or(0);
        if let Some(page) = Page::ALL.get((at + by) % Page::ALL.len()) {
            self.go(*page);
        }
    }

    fn open(&mut self) {
        if self.page == Page::Findings {
            self.open_finding();
            return;
        }
        if self.page != Page::Overview {
            return;
        }
        match self.selected.or_else(|| self.line(0).map(|l| identity(&l))) {
            Some(Selected::Flow(k)) => {
                self.opened = Some(k);
                self.scroll = 0;
                self.page = Page::Flow;
            }
            Some(Selected::Pair(src, dst)) => {
                self.style.grouped = false;
                self.selected = None;
                // built of addresses that we print ourselves: always a filter
                if self.set_filter(&pair_filter(src, dst)).is_err() {
                    self.arrange();
                }
            }
            None => {}
        }
    }

    /// The flow that the finding under the cursor is about.
    fn open_finding(&mut self) {
        let about = self.finding.or(Some(0)).and_then(|n| self.state.findings.get(n)?.flow);
        let Some(about) = about else { return };
        let row = self.report.flows.iter().find(|f| Whom::of(&f.row) == about);
        if let Some(f) = row {
            self.opened = Some(f.key);
            self.scroll = 0;
            self.page = Page::Flow;
        }
    }

    fn step(&mut self, step: Step) {
        if self.page == Page::Findings {
            let last = self.state.findings.len();
            self.finding = match (self.finding, step) {
                _ if last == 0 => None,
                (None, Step::Up | Step::Down) => Some(0),
                // a finding takes four lines or so
                (at, step) => Some(step.apply(at.unwrap_or(0), last, self.rows.div_ceil(4))),
            };
            return;
        }
        if self.page != Page::Overview {
            self.scroll = step.apply(self.scroll, usize::from(u16::MAX), self.rows);
            return;
        }
        let at = match (self.cursor, step) {
            // the first press puts the cursor where the eye is
            (None, Step::Up | Step::Down) => self.offset,
            (at, step) => step.apply(at.unwrap_or(self.offset), self.order.len(), self.rows),
        };
        self.selected = self.line(at).map(|l| identity(&l));
        self.cursor = self.selected.map(|_| at);
        self.keep_cursor_in_view();
    }

    fn sort_by(&mut self, column: Column) {
        if column != self.sort {
            self.descending = column.descending_first();
        }
        self.sort = column;
        self.offset = 0;
        self.arrange();
    }

    fn sort_next(&mut self, by: usize) {
        let at = Column::IN_ORDER.iter().position(|c| *c == self.sort).unwrap_or(0);
        if let Some(c) = Column::IN_ORDER.get((at + by) % Column::IN_ORDER.len()) {
            self.sort_by(*c);
        }
    }
}

impl Flow {
    /// The source still knows it.
    fn phase_is_live(&self) -> bool {
        !matches!(self.phase, Phase::Ended { .. })
    }
}

impl Step {
    /// From line `at` of `count`, with screens of `screen` lines.
    fn apply(self, at: usize, count: usize, screen: usize) -> usize {
        let last = count.saturating_sub(1);
        match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at.saturating_add(1).min(last),
            Self::PageUp => at.saturating_sub(screen),
            Self::PageDown => at.saturating_add(screen).min(last),
            Self::First => 0,
            Self::Last => last,
        }
    }
}

fn identity(line: &Line<'_>) -> Selected {
    match line {
        Line::Flow(f) => Selected::Flow(f.key),
        Line::Pair(p) => Selected::Pair(p.src, p.dst),
    }
}

fn pair_filter(src: Endpoint, dst: Endpoint) -> String {
    let one = |name: &str, e: Endpoint| match e {
        Endpoint::Ip(a) => format!("{name} == {a}"),
        // a number, for which the filter has no field: the other end has to do
        Endpoint::Lid(_) => "packets".to_owned(),
    };
    format!("{} && {}", one("src", src), one("dst", dst))
}
