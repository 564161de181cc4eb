//! roce-top as people and scripts use it: in a terminal, with metrics and a recording, without root's powers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dissector::capture::Reader;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roce_tests::netns::Pair;
use roce_tests::raw::RawSocket;
use roce_tests::traffic::Recording;
use roce_tests::{captures, is_root};
use serde_json::Value;

fn roce_top() -> PathBuf {
    let mut p = std::env::current_exe().expect("a test has a path");
    p.pop();
    if p.ends_with("deps") {
        p.pop();
    }
    p.join("roce-top")
}

/// A test without what it compares with would say nothing and pass.
fn needs(program: &str) {
    let there = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(there, "{program} is not installed: `cargo xtask setup` brings it");
}

/// A terminal of its own, closed when dropped.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn start(width: u16, height: u16, command: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let socket = format!("roce-top-test-{}-{n}", std::process::id());
        let t = Self { socket };
        t.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width.to_string(), "-y", &height.to_string(), command]);
        t
    }

    fn tmux(&self, args: &[&str]) -> String {
        let out = Command::new("tmux").args(["-L", &self.socket]).args(args).output().expect("tmux runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Whether a program has a screen of its own, whether the cursor is shown, and whether the mouse is told.
    fn modes(&self) -> String {
        self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]).trim().to_owned()
    }

    fn is_given_back(&self, screen: &str) {
        assert_eq!(self.modes(), "0 1 0", "the first screen and the cursor are back: {screen}");
        assert!(!screen.contains("DESTINATION"), "{screen}");
    }

    fn keys(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        self.tmux(&args);
    }

    /// The first screen of which this holds.
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "{what}: not within a minute; the screen is\n{screen}");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_person_sorts_filters_opens_a_flow_and_quits() {
    needs("tmux");
    let file = captures().join("ecn_ce_write.pcap");
    let file = if file.exists() { file } else { captures().join("many_qps.pcap") };
    // the shell reports the exit code and whether the line is sane again, and stays to be looked at
    let command = format!(
        "{} -r {} --speed max -d 0.05; echo \"exit=$?\"; stty -a | grep -o ' icanon'; cat",
        roce_top().display(),
        file.display()
    );
    let t = Terminal::start(100, 30, &command);
    let screen = t.until("the table", |s| s.contains("DESTINATION") && s.contains("RC "));
    assert!(screen.contains("roce-top") && screen.contains("? help"), "{screen}");
    t.keys(&["?"]);
    t.until("the help", |s| s.contains("this help") && s.contains("turn the order round"));
    t.keys(&["Escape"]);
    t.until("no help", |s| !s.contains("this help"));
    t.keys(&["s"]);
    t.until("the list of columns", |s| s.contains("sort by") && s.contains("source address"));
    t.keys(&["Home", "Enter"]);
    t.until("sorted by source", |s| s.contains("SOURCE▲"));
    t.keys(&["r"]);
    t.until("the other way round", |s| s.contains("SOURCE▼"));
    t.keys(&["/"]);
    t.until("the input line", |s| s.contains("filter:"));
    t.keys(&["-l", "qp ==="]);
    t.keys(&["Enter"]);
    t.until("what is wrong with it", |s| s.contains('✗'));
    t.keys(&["C-u"]);
    t.keys(&["-l", "transport == ud and transport == rc"]);
    t.keys(&["Enter"]);
    t.until("nothing passes", |s| s.contains("No flow passes the filter"));
    t.keys(&["Escape"]);
    t.until("all again", |s| !s.contains("No flow passes") && s.contains("RC "));
    t.tmux(&["resize-window", "-x", "60", "-y", "15"]);
    t.until("a small window", |s| s.lines().count() <= 15 && s.contains("SOURCE"));
    t.tmux(&["resize-window", "-x", "140", "-y", "40"]);
    t.until("a large window", |s| s.contains("DSCP"));
    t.keys(&["Down", "Enter"]);
    t.until("the flow", |s| s.contains("packets by opcode") && s.contains("latest events"));
    t.keys(&["Tab"]);
    t.until("findings", |s| s.contains("Findings"));
    t.keys(&["q"]);
    let screen = t.until("the end", |s| s.contains("exit=") && s.contains("icanon"));
    assert!(screen.contains("exit=0"), "{screen}");
    assert!(!screen.contains("DESTINATION"), "the first screen is back: {screen}");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    needs("tmux");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        ended_by(signal);
    }
}

/// Ctrl-Z gives the terminal to the shell, also when it comes as a signal; `fg` brings the picture back.
#[test]
fn the_shell_can_have_the_terminal_for_a_while() {
    needs("tmux");
    let file = captures().join("many_qps.pcap");
    let t = Terminal::start(82, 24, "bash --norc --noprofile -i");
    t.keys(&["-l", &format!("{} -r {} --speed 0.001", roce_top().display(), file.display())]);
    t.keys(&["Enter"]);
    t.until("the table", |s| s.contains("? help"));
    t.keys(&["C-z"]);
    t.until("the shell", |s| s.contains("Stopped") && !s.contains("? help"));
    t.keys(&["-l", "stty -a | grep -o ' icanon'; fg"]);
    t.keys(&["Enter"]);
    t.until("the picture", |s| s.contains("? help"));
    let pane = t.tmux(&["display-message", "-p", "#{pane_pid}"]);
    kill(top_below(pane.trim()), Signal::SIGTSTP).expect("it is ours");
    t.until("the shell again", |s| s.contains(" icanon") && s.matches("Stopped").count() == 2);
    t.keys(&["-l", "fg"]);
    t.keys(&["Enter"]);
    t.until("the picture again", |s| s.contains("? help"));
    t.keys(&["q"]);
    t.until("the shell at the end", |s| !s.contains("? help"));
    t.keys(&["-l", "echo \"exit=$?\""]);
    t.keys(&["Enter"]);
    t.until("the end", |s| s.contains("exit=0"));
}

/// The roce-top that a process has started.
fn top_below(parent: &str) -> Pid {
    let child = Command::new("pgrep").args(["-P", parent, "roce-top"]).output().expect("pgrep runs");
    Pid::from_raw(String::from_utf8_lossy(&child.stdout).trim().parse().expect("roce-top runs in the terminal"))
}

fn ended_by(signal: Signal) {
    let file = captures().join("many_qps.pcap");
    let command = format!(
        "{} -r {} --speed 0.001 & echo \"pid=$!\" >&2; fg >/dev/null; echo \"exit=$?\"; cat",
        roce_top().display(),
        file.display()
    );
    let t = Terminal::start(80, 24, &format!("bash -mc '{command}'"));
    t.until("the table", |s| s.contains("? help"));
    assert_eq!(t.modes(), "1 0 1", "its own screen, without a cursor, with the mouse");
    let pane = t.tmux(&["display-message", "-p", "#{pane_pid}"]);
    kill(top_below(pane.trim()), signal).expect("it is ours");
    let screen = t.until("the end", |s| s.contains("exit="));
    assert!(screen.contains("exit=0"), "{signal}: {screen}");
    t.is_given_back(&screen);
}

/// A fault of ours must not cost the person the terminal, and must say what it was.
#[test]
fn a_panic_gives_the_terminal_back() {
    needs("tmux");
    let file = captures().join("many_qps.pcap");
    let program = roce_top().with_file_name("roce-panics");
    for (place, code) in [("view", 101), ("source", 2)] {
        let command = format!(
            "{} {place} {}; echo \"exit=$?\"; stty -a | grep -oE \" -?(icanon|echo)\\b\"; cat",
            program.display(),
            file.display()
        );
        let t = Terminal::start(100, 40, &format!("bash -c '{command}'"));
        let screen = t.until("the end", |s| s.contains("exit=") && s.contains(" echo"));
        assert!(screen.contains(&format!("a fault in the {place}")), "{screen}");
        assert!(screen.contains(&format!("exit={code}")) && screen.contains(" icanon"), "{screen}");
        t.is_given_back(&screen);
    }
}

/// A running roce-top with its standard error read up to where it says that it watches.
struct Watch {
    child: Child,
    said: String,
}

impl Watch {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("roce-top was built");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        while !said.contains("watching") {
            let n = stderr.read_line(&mut said).expect("readable");
            assert!(n > 0, "roce-top ended before it was attached: {said}");
        }
        // the rest is for whoever reads a failed test, and a full pipe would stop it
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("{line}");
            }
        });
        Self { child, said }
    }

    /// Ends it with SIGINT; the reports that it wrote.
    fn interrupt(mut self) -> Vec<Value> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let mut out = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut out).expect("readable");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.said);
        out.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn get(path: &str) -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9879").expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn sum(metrics: &str, name: &str) -> usize {
    metrics
        .lines()
        .filter(|l| l.split(['{', ' ']).next() == Some(name))
        .filter_map(|l| l.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

/// Metrics, the recording and the last report all say what was sent.
#[test]
fn metrics_recording_and_report_agree_with_what_was_sent() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces and attach programs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen.pcapng");
    let pair = Pair::with_mtu(4500).unwrap();
    let watch = pair
        .b
        .run(|| {
            let mut c = Command::new(roce_top());
            c.args(["-i", "b0", "--batch", "--json", "-d", "0.1", "--prometheus", "127.0.0.1:9879", "-w"]).arg(&file);
            Watch::start(c)
        })
        .unwrap();
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let b = pair.b.run(|| RawSocket::open("b0")).unwrap().unwrap();
    let recording = Recording::open(&captures().join("many_qps.pcap")).unwrap();
    for f in &recording.frames {
        if f.from_client { a.send(&f.bytes).unwrap() } else { b.send(&f.bytes).unwrap() }
    }
    let sent = recording.frames.len();
    let metrics = pair
        .b
        .run(|| {
            let end = Instant::now() + Duration::from_mins(1);
            loop {
                let m = get("/metrics");
                if sum(&m, "roce_packets_total") >= sent || Instant::now() > end {
                    return m;
                }
            }
        })
        .unwrap();
    assert_eq!(sum(&metrics, "roce_packets_total"), sent, "{metrics}");
    assert_eq!(sum(&metrics, "roce_flow_packets_total"), sent);
    assert_eq!(sum(&metrics, "roce_opcode_packets_total"), sent);
    assert!(pair.b.run(|| get("/healthz")).unwrap().starts_with("HTTP/1.1 200"));
    assert!(pair.b.run(|| get("/nothing")).unwrap().starts_with("HTTP/1.1 404"));
    promtool(metrics.split("\r\n\r\n").nth(1).expect("a body"));

    // others can read what was recorded so far
    let mut so_far = Reader::open(&file).unwrap();
    let mut n = 0;
    while so_far.next().unwrap().is_some() {
        n += 1;
    }
    assert!(n > 0 && n <= sent, "{n} of {sent} packets are in the file");

    let reports = watch.interrupt();
    let last = reports.last().expect("reports");
    assert_eq!(last["totals"]["roce_packets"], sent);
    let names: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(names, ["at", "flows", "interval_s", "totals"]);
    recorded(&file, &recording);
}

/// A file that cannot be written is told in one line, whenever that is noticed.
#[test]
fn a_full_disk_is_told() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces and attach programs");
        return;
    }
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let full = dir.path().join("full.pcapng");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let run = |command: &mut Command| pair.b.run(|| command.output()).unwrap().expect("it runs");
    let out = run(Command::new(roce_top()).args(["-i", "b0", "--batch", "-n", "1", "-d", "0.1", "-w"]).arg(&full));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.trim_end().lines().count() == 1 && said.matches("No space left").count() == 1, "{said}");
    assert!(said.contains("full.pcapng"), "{said}");
}

/// What is in the recording is what was sent, cut to headers, in both directions, and nothing is missing that the file does not say.
fn recorded(file: &Path, sent: &Recording) {
    let mut reader = Reader::open(file).unwrap();
    let mut ours: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut lost = 0;
    while let Some(r) = reader.next().unwrap() {
        assert!(r.bytes.len() <= 128 && r.bytes.len() <= r.wire_len as usize);
        lost += r.options.drop_count().unwrap_or(0);
        ours.push((r.options.flags().expect("a direction"), r.bytes.to_vec()));
    }
    assert_eq!(reader.interfaces().first().and_then(|i| i.name.as_deref()), Some("b0"));
    // the sums at the file's end say the same
    assert_eq!(reader.dropped(), Some(lost));
    let mut want: Vec<(u32, Vec<u8>)> = sent
        .frames
        .iter()
        .map(|f| (if f.from_client { 1 } else { 2 }, f.bytes[..f.bytes.len().min(128)].to_vec()))
        .collect();
    assert_eq!(ours.len() as u64 + lost, want.len() as u64);
    // CPUs write to the ring in no common order
    ours.sort();
    want.sort();
    if lost == 0 {
        assert_eq!(ours, want);
    }
}

fn promtool(body: &str) {
    let mut p = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed (apt: prometheus); `cargo xtask setup` brings it");
    p.stdin.take().expect("piped").write_all(body.as_bytes()).expect("it reads");
    let out = p.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "promtool: {said}\n{body}");
}

/// Three capabilities are enough, and none is left once everything is attached.
#[test]
fn three_capabilities_are_enough_and_none_is_kept() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces and attach programs");
        return;
    }
    needs("setpriv");
    let pair = Pair::new().unwrap();
    // another user may not be allowed to reach the build's directory
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("roce-top");
    std::fs::copy(roce_top(), &program).unwrap();
    for p in [dir.path(), &program] {
        std::fs::set_permissions(p, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let watch = pair
        .b
        .run(|| {
            let mut c = Command::new("setpriv");
            c.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            c.args(["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon", "--"]);
            c.arg(&program).args(["-i", "b0", "--batch", "--json", "-d", "0.1"]);
            Watch::start(c)
        })
        .unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", watch.child.id())).unwrap();
    for set in ["CapInh", "CapPrm", "CapEff"] {
        let line = status.lines().find(|l| l.starts_with(set)).unwrap();
        let value = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(value, 0, "{line}");
    }
    // and it goes on counting without them
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let recording = Recording::open(&captures().join("many_qps.pcap")).unwrap();
    let small: Vec<_> = recording.frames.iter().filter(|f| f.bytes.len() <= 1514).collect();
    for f in &small {
        a.send(&f.bytes).unwrap();
    }
    let reports = watch.interrupt();
    assert_eq!(
        reports.last().expect("the last part of an interval is reported")["totals"]["roce_packets"],
        small.len()
    );
}

/// On a veth, on the loopback, and without any privilege: an answer in one sentence a line, exit 0 or 3.
#[test]
fn doctor_answers_wherever_it_is_asked() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces");
        return;
    }
    needs("setpriv");
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("roce-top");
    std::fs::copy(roce_top(), &program).unwrap();
    for p in [dir.path(), &program] {
        std::fs::set_permissions(p, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let end = Instant::now() + Duration::from_secs(20);
    // a link takes its moment
    while !pair.b.ip(&["link", "show", "b0"]).unwrap().contains("LOWER_UP") {
        assert!(Instant::now() < end, "the link does not come up");
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--"];
    for (interface, privileged, seen) in [("b0", true, true), ("lo", true, true), ("b0", false, false)] {
        let ask = |json: bool| {
            let mut c = Command::new(if privileged { program.as_os_str() } else { "setpriv".as_ref() });
            if !privileged {
                c.args(nobody).arg(&program);
            }
            c.args(["doctor", "-i", interface]);
            if json {
                c.arg("--json");
            }
            pair.b.run(|| c.output()).unwrap().expect("it runs")
        };
        let out = ask(true);
        let checks: Vec<Value> = serde_json::from_slice(&out.stdout).expect("an array");
        let says = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(if seen { 0 } else { 3 }), "{interface} {privileged}: {says}");
        for c in &checks {
            for key in ["says", "advice"] {
                if let Some(text) = c[key].as_str() {
                    assert!(!text.is_empty() && !text.contains('\n') && !text.contains(". "), "one sentence: {text}");
                }
            }
            let known = ["ok", "note", "problem"].contains(&c["status"].as_str().unwrap_or(""));
            assert!(known && (c["status"] != "problem" || c["advice"].is_string()), "a problem without advice: {c}");
        }
        if !privileged {
            let caps = checks.iter().find(|c| c["check"] == "capabilities").expect("it is asked");
            let text = caps["says"].as_str().unwrap();
            assert!(
                text.contains("CAP_BPF") && text.contains("CAP_NET_ADMIN") && text.contains("CAP_PERFMON"),
                "{text}"
            );
        }
        let text = ask(false);
        assert_eq!(text.status.code(), out.status.code());
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let verdict = text.trim_end().lines().last().unwrap_or("").to_owned();
        assert_eq!(verdict.contains("can be seen"), seen, "{text}");
        assert!(text.is_ascii() || !text.contains('\u{1b}'), "no colours in a pipe");
    }
}

#[test]
fn doctor_answers_in_both_forms() {
    let out = Command::new(roce_top()).args(["doctor", "--json"]).output().expect("roce-top was built");
    let checks: Vec<Value> = serde_json::from_slice(&out.stdout).expect("an array");
    assert!(checks.iter().any(|c| c["check"] == "kernel") && checks.iter().any(|c| c["check"] == "capabilities"));
    assert!(matches!(out.status.code(), Some(0 | 3)));
    let out = Command::new(roce_top()).args(["doctor", "-i", "nosuch0"]).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("nosuch0") && said.trim_end().lines().count() == 1, "{said}");
}

#[test]
fn a_closed_pipe_and_broken_files_end_as_they_should() {
    let file = captures().join("many_qps.pcap");
    let whole = std::fs::read(&file).unwrap();
    let run = |args: &[&str], input: &[u8]| {
        let mut c = Command::new(roce_top())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("roce-top was built");
        let mut stdin = c.stdin.take().expect("piped");
        // it may have gone before all is written
        let _ = stdin.write_all(input);
        drop(stdin);
        let out = c.wait_with_output().expect("it ends");
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let (code, out, err) = run(&["-r", "-", "--batch", "--json"], &whole);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let all: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let cut = &whole[..whole.len() - 5];
    let (code, out, err) = run(&["-r", "-", "--batch", "--json"], cut);
    assert_eq!(code, Some(2), "{err}");
    assert_eq!(err.trim_end().lines().count(), 1, "{err}");
    let most: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(most["totals"]["packets"].as_u64().unwrap() + 1, all["totals"]["packets"].as_u64().unwrap());
    for (args, input) in [
        (&["-r", "/nonexistent", "--batch"][..], &b""[..]),
        (&["-r", "-", "--batch"], b"no capture at all"),
        (&["--batch"], b""),
    ] {
        let (code, _, err) = run(args, input);
        assert_eq!(code, Some(2), "{args:?}: {err}");
        assert_eq!(err.trim_end().lines().count(), 1, "{args:?}: {err}");
    }
    let mut c = Command::new("sh")
        .args(["-c", "\"$0\" -r \"$1\" --batch -d 0.01 | head -n 1"])
        .arg(roce_top())
        .arg(&file)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("sh runs");
    let mut err = String::new();
    c.stderr.take().expect("piped").read_to_string(&mut err).unwrap();
    assert_eq!(err, "");
    assert!(c.wait().unwrap().success());
}
