//! The program roce-top.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Result;
use nix::sys::signal::Signal;
use roce_user::aggregate::Report;
use roce_user::cli::{Cli, Command, Doctor, Speed, Top};
use roce_user::error::chain;
use roce_user::matcher::Matcher;
use roce_user::say;
use roce_user::source::Source;
use roce_user::stop::Stop;
use roce_user::tui::{self, Wake};
use roce_user::{batch, doctor, export, iface, live, privileges, replay};

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let result = match &cli.command {
        Some(Command::Doctor(d)) => examine(d),
        None => watch(&cli.top).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|e| {
        say!("{}", chain(e.as_ref()));
        ExitCode::from(2)
    })
}

fn examine(d: &Doctor) -> Result<ExitCode> {
    let checks = doctor::examine(&d.interface)?;
    let out = std::io::stdout();
    let colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let written = if d.json {
        serde_json::to_writer_pretty(&out, &checks).map_err(std::io::Error::from)
    } else {
        doctor::text(&mut out.lock(), &checks, colour)
    };
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => return Err(e.into()),
        _ => {}
    }
    Ok(ExitCode::from(if doctor::can_see(&checks) { 0 } else { 3 }))
}

fn watch(top: &Top) -> Result<()> {
    if !top.batch {
        screen()?;
    }
    let stop = Stop::default();
    let wake = Wake::default();
    let mut source: Box<dyn Source> = match &top.read {
        Some(path) => {
            let usual = if top.batch { Speed::Max } else { Speed::Times(1.0) };
            Box::new(replay::Replay::open(path, top.port, top.speed.unwrap_or(usual))?)
        }
        None if top.interface.is_empty() => {
            let there: Vec<String> = iface::all()?.into_iter().map(|i| i.name).collect();
            anyhow::bail!("name an interface with -i (there are {}) or a capture with -r", there.join(", "));
        }
        None => {
            let live = live::Live::start(top, !top.batch)?;
            privileges::drop_unneeded()?;
            if top.batch {
                let taps: Vec<String> = live.describe().iter().map(|t| format!("{} ({})", t.name, t.how)).collect();
                say!("watching {}", taps.join(", "));
            }
            Box::new(live)
        }
    };
    // after the privileges went: capabilities are per thread, and this starts one
    {
        let wake = wake.clone();
        let others: &[Signal] = if top.batch { &[] } else { &tui::JOB_CONTROL };
        stop.on_signals(others, move |s| wake.wake(s))?;
    }
    let exporter = match top.prometheus {
        Some(address) => {
            let e = export::Exporter::new(top.prometheus_flows, source.state().taps);
            let bound = e.serve(address)?;
            if top.batch {
                say!("metrics at http://{bound}/metrics");
            }
            Some(e)
        }
        None => None,
    };
    let observer = move |r: &Report| {
        if let Some(e) = &exporter {
            e.observe(r);
        }
    };
    if top.batch {
        return report(top, source, &stop, observer);
    }
    let options = tui::Options {
        interval: top.delay,
        throughput: top.units,
        filter: top.filter.clone(),
        port: top.port,
        draw: tui::view::draw,
    };
    tui::run(source, &options, &stop, Box::new(observer), &wake)
}

/// Whether there is a screen to draw on.
fn screen() -> Result<()> {
    if !std::io::stdout().is_terminal() {
        anyhow::bail!("standard output is not a terminal: --batch writes reports to pipes and files");
    }
    if std::env::var_os("TERM").is_some_and(|t| t == "dumb") {
        anyhow::bail!("this terminal (TERM=dumb) has no screen to draw on: --batch writes reports as text");
    }
    Ok(())
}

fn report(top: &Top, mut source: Box<dyn Source>, stop: &Stop, observer: impl FnMut(&Report)) -> Result<()> {
    let out = std::io::stdout();
    let width = if out.is_terminal() { crossterm::terminal::size().map_or(120, |(w, _)| usize::from(w)) } else { 160 };
    let filter = match top.filter.trim() {
        "" => None,
        text => Some(Matcher::parse(text).map_err(|e| anyhow::anyhow!("filter: {e}"))?),
    };
    let options = batch::Options {
        interval: top.delay,
        reports: top.count,
        json: top.json,
        top: top.top,
        throughput: top.units,
        width,
        filter,
    };
    batch::run(source.as_mut(), &options, stop, out.lock(), observer)
}
