//! The screen: terminal in and out again, input, and the loop that joins them to the reports.
//!
//! One thread waits for keys, one samples the source, signals have their own; all of them send into one
//! channel, and only this loop draws. Nothing is polled: without a key or a report there is no work.

pub mod app;
pub mod event;
#[cfg(test)]
pub mod fixture;
pub mod keys;
#[cfg(test)]
mod screens;
pub mod theme;
pub mod view;

use std::cell::Cell;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use crossterm::cursor::{Hide, Show};
use crossterm::event::{Event as Input, KeyEventKind};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use nix::sys::signal::{self, SigSet, Signal};

use crate::aggregate::{Aggregate, Report};
use crate::source::{Event, Source, State};
use crate::stop::Stop;
use crate::units::Throughput;
use app::App;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use theme::Theme;

/// How to begin.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between reports.
    pub interval: Duration,
    /// Bits or bytes.
    pub throughput: Throughput,
    /// Filter in force from the start.
    pub filter: String,
    /// UDP port of RoCEv2, to decode events.
    pub port: u16,
    /// What draws the picture: [`view::draw`].
    pub draw: Draw,
}

/// Draws a state into a buffer.
pub type Draw = fn(&App, Rect, &mut Buffer);

enum Message {
    Input(Input),
    Report(Arc<Report>, State, Vec<Event>),
    Failed(anyhow::Error),
    Signal(Signal),
}

/// Signals of the shell's job control, which the screen has to know: it gives the terminal back before it stops, and
/// takes it again when it goes on.
pub const JOB_CONTROL: [Signal; 2] = [Signal::SIGTSTP, Signal::SIGCONT];

/// Somebody else who gets each report (the exporter).
pub type Observer = Box<dyn FnMut(&Report) + Send>;

/// The terminal, ours until it is dropped; a panic gives it back before its message is printed.
struct Screen(Terminal<CrosstermBackend<std::io::Stdout>>);

/// Buttons and the wheel are told, with places of any size; movements are not, each of which would cost a picture.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// The terminal is ours: given back once, since to leave the screen again would put the cursor over what was printed since.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Held while a picture is drawn, and while the terminal is given back because another thread panicked: neither may come
/// in the middle of the other, and the message of the panic stays readable.
static PICTURE: Mutex<()> = Mutex::new(());

thread_local! {
    /// This thread holds [`PICTURE`]: a panic while drawing must not wait for itself.
    static DRAWS: Cell<bool> = const { Cell::new(false) };
}

impl Screen {
    fn take() -> std::io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let _alone = (!DRAWS.get()).then(|| PICTURE.lock().unwrap_or_else(PoisonError::into_inner));
            give_back();
            before(info);
        }));
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Relaxed);
        // from here on it is given back on every way out
        let out = crossterm::execute!(std::io::stdout(), EnterAlternateScreen, Hide, Print(MOUSE_ON));
        match out.and_then(|()| Terminal::new(CrosstermBackend::new(std::io::stdout()))) {
            Ok(terminal) => Ok(Self(terminal)),
            Err(e) => {
                give_back();
                Err(e)
            }
        }
    }

    /// Takes it back, empty. Asks it nothing: the thread that reads keys would swallow the answer.
    fn again(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Relaxed);
        crossterm::execute!(std::io::stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide, Print(MOUSE_ON))?;
        // what was drawn last is gone: the next picture is drawn whole
        self.0.swap_buffers();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Leaves the terminal as it was found; nothing can be done where that fails.
fn give_back() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = crossterm::execute!(std::io::stdout(), EndSynchronizedUpdate, Print(MOUSE_OFF), LeaveAlternateScreen, Show);
}

/// Shows the source until the person quits or a signal comes. The terminal is as it was before, whatever
/// happens.
pub fn run(source: Box<dyn Source>, options: &Options, stop: &Stop, observer: Observer, wake: &Wake) -> Result<()> {
    let mut app = App::new(Theme::from_environment(), options.interval, options.throughput);
    app.port = options.port;
    app.set_filter(&options.filter).map_err(|e| anyhow::anyhow!("filter: {e}"))?;
    let (send, receive) = mpsc::channel();
    wake.set(send.clone());
    let interval_ms = Arc::new(AtomicU64::new(millis(options.interval)));
    let mut screen = Screen::take().context("cannot use this terminal; --batch needs none")?;
    let sampler = sampler(source, stop.clone(), Arc::clone(&interval_ms), observer, send.clone());
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if send.send(Message::Input(event)).is_err() {
                break;
            }
        }
    });
    let result = (|| -> Result<()> {
        loop {
            let terminal = &mut screen.0;
            let size = terminal.size().context("cannot ask the terminal for its size")?;
            app.set_rows(view::table_rows(&app, Rect::new(0, 0, size.width, size.height)), size.height);
            picture(terminal, &app, options.draw)?;
            // one picture for all that has come in the meantime
            let Ok(first) = receive.recv() else { return Ok(()) };
            for message in std::iter::once(first).chain(receive.try_iter()) {
                match message {
                    Message::Input(Input::Key(key)) if key.kind != KeyEventKind::Release => app.key(key),
                    Message::Input(Input::Mouse(m)) => app.mouse(m, Rect::new(0, 0, size.width, size.height)),
                    Message::Signal(Signal::SIGTSTP) => app.suspend = true,
                    // somebody may have drawn on the screen meanwhile
                    Message::Signal(Signal::SIGCONT) => screen.again().context("cannot use this terminal")?,
                    Message::Input(_) | Message::Signal(_) => {}
                    Message::Report(report, state, events) => app.take(report, state, &events),
                    Message::Failed(e) => return Err(e),
                }
            }
            interval_ms.store(millis(app.interval), Ordering::Relaxed);
            if app.quit || stop.is_set() {
                return Ok(());
            }
            if std::mem::take(&mut app.suspend) {
                give_back();
                pause().context("cannot stop")?;
                screen.again().context("cannot use this terminal")?;
            }
        }
    })();
    stop.now();
    drop(screen);
    // the source lives in that thread: when it has ended, everything is detached
    let Ok(finished) = sampler.join() else { anyhow::bail!("the sampling thread panicked; this is a bug") };
    // the shell's prompt starts on a line of its own
    let _ = std::io::stdout().flush();
    result.and(finished)
}

/// Draws, unless a panic has given the terminal back.
fn picture(terminal: &mut Terminal<CrosstermBackend<std::io::Stdout>>, app: &App, draw: Draw) -> Result<()> {
    let _alone = PICTURE.lock().unwrap_or_else(PoisonError::into_inner);
    if !TAKEN.load(Ordering::Relaxed) {
        anyhow::bail!("a thread panicked; this is a bug");
    }
    DRAWS.set(true);
    // a terminal that knows it shows the whole picture at once, others ignore it
    crossterm::execute!(std::io::stdout(), BeginSynchronizedUpdate).context("cannot draw")?;
    terminal
        .draw(|frame| {
            let area = frame.area();
            draw(app, area, frame.buffer_mut());
            if let Some(at) = view::input_cursor(app, area) {
                frame.set_cursor_position(at);
            }
        })
        .context("cannot draw")?;
    crossterm::execute!(std::io::stdout(), EndSynchronizedUpdate).context("cannot draw")?;
    DRAWS.set(false);
    Ok(())
}

/// Stops the whole process until SIGCONT comes, if there is a shell to send it.
fn pause() -> nix::Result<()> {
    let stop = SigSet::from(Signal::SIGTSTP);
    stop.thread_unblock()?;
    signal::raise(Signal::SIGTSTP)?;
    stop.thread_block()
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

fn sampler(
    mut source: Box<dyn Source>,
    stop: Stop,
    interval_ms: Arc<AtomicU64>,
    mut observer: Observer,
    send: Sender<Message>,
) -> std::thread::JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let _last_words = LastWords(send.clone());
        let mut aggregate = Aggregate::default();
        let mut sample = |source: &mut dyn Source, first: bool| -> Result<bool> {
            let counts = if first {
                Some(source.counts()?)
            } else {
                source.next(Duration::from_millis(interval_ms.load(Ordering::Relaxed)), &stop)?
            };
            let Some(c) = counts else { return Ok(false) };
            let report = aggregate.push(c.at, c.totals, c.flows);
            observer(&report);
            let events = source.events();
            Ok(send.send(Message::Report(report, source.state(), events)).is_ok() && !stop.is_set())
        };
        let mut first = true;
        loop {
            match sample(source.as_mut(), first) {
                Ok(true) => first = false,
                Ok(false) => break,
                Err(e) => {
                    let _ = send.send(Message::Failed(e));
                    break;
                }
            }
        }
        source.finish()
    })
}

/// Ends the loop when the sampling thread panics: the loop would wait for ever otherwise.
struct LastWords(Sender<Message>);

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Message::Failed(anyhow::anyhow!("the sampling thread panicked; this is a bug")));
        }
    }
}

/// Lets the signal thread wake the loop once it runs.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<RwLock<Option<Sender<Message>>>>);

impl Wake {
    fn set(&self, send: Sender<Message>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(send);
    }

    /// Wakes it with a signal that came.
    pub fn wake(&self, signal: Signal) {
        if let Some(send) = &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            let _ = send.send(Message::Signal(signal));
        }
    }
}
