//! roce-dissect as a person or a script meets it: exit codes, messages, formats, pipes, hostile input.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("tests").join(path)
}

fn capture(name: &str) -> String {
    here("captures").join(name).display().to_string()
}

fn program() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_roce-dissect"));
    c.env("TZ", "UTC").stdin(Stdio::null());
    c
}

fn run(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let o = run(args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    assert!(o.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).unwrap()
}

/// Exit 2 and a message that begins with one line; the whole of stderr.
fn refused(args: &[&str]) -> String {
    let o = run(args);
    assert_eq!(o.status.code(), Some(2), "{args:?}");
    let text = String::from_utf8(o.stderr).unwrap();
    assert!(text.starts_with("roce-dissect: "), "{args:?}: {text}");
    text
}

#[test]
fn wrong_arguments_are_one_line() {
    let f = capture("op_write.pcap");
    for (args, says) in [
        (&["-Z", &f] as &[&str], "-Z"),
        (&[], "FILE"),
        (&["/nowhere/x.pcap"], "/nowhere/x.pcap: No such file"),
        (&[&f, "-T", "fields"], "-e FIELD"),
        (&[&f, "-T", "frob"], "frob"),
        (&[&f, "-e", "frame.number"], "-T fields"),
        (&[&f, "-T", "fields", "-e", "infiniband.bth.pkey"], "did you mean infiniband.bth.p_key?"),
        (&[&f, "-T", "fields", "-e", "frame.number", "-E", "quote=x"], "quote=x"),
        (&[&f, "-T", "fields", "-e", "frame.number", "-E", "header"], "name=value"),
        (&[&f, "-E", "header=y"], "-T fields"),
        (&[&f, "-o", "roce.port:70000"], "65535"),
        (&[&f, "-o", "tcp.port:1"], "roce.port"),
        (&[&f, "-c", "x"], "-c"),
        (&[&f, "-w", "/nowhere/x.pcap"], "/nowhere/x.pcap"),
        (&[&f, "--decode-as", "frob"], "--decode-as"),
        (&["-r", &f, &f], "cannot be used with"),
    ] {
        let text = refused(args);
        assert!(text.contains(says), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    }
}

#[test]
fn a_wrong_filter_shows_where() {
    let text = refused(&[&capture("op_write.pcap"), "-Y", "frame.number == 1 && infiniband.bth.opcod == 4"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("did you mean infiniband.bth.opcode?"), "{text}");
    assert_eq!(lines[1].find("infiniband"), lines[2].find('^'), "{text}");
}

#[test]
fn files_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let p = dir.path().join(name);
        std::fs::write(&p, bytes).unwrap();
        p.display().to_string()
    };
    let whole = std::fs::read(capture("op_write.pcap")).unwrap();
    assert!(refused(&[&file("empty", b"")]).contains("empty"));
    assert!(refused(&[&file("text", b"hello, this is no capture\n")]).contains("not a capture"));
    assert!(refused(&[&file("head", &whole[..10])]).contains("header"));
    // what can be read is printed first, in every format, and a list is closed
    let cut = file("cut.pcap", &whole[..whole.len() - 5]);
    let all = stdout(&[&capture("op_write.pcap")]).lines().count();
    let o = run(&[&cut]);
    assert_eq!(o.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&o.stdout).lines().count(), all - 1);
    assert_eq!(String::from_utf8_lossy(&o.stderr).lines().count(), 1);
    let o = run(&[&cut, "-T", "json"]);
    assert_eq!(o.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(json.as_array().unwrap().len(), all - 1);
}

#[test]
fn a_file_named_like_a_subcommand() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(capture("op_write.pcap"), dir.path().join("flows")).unwrap();
    let o = program().current_dir(dir.path()).args(["-r", "flows", "-c", "1"]).output().unwrap();
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    assert_eq!(String::from_utf8_lossy(&o.stdout).lines().count(), 1);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [&[][..], &["-V"], &["-T", "json"], &["-T", "fields", "-e", "frame.number"], &["-x"]] {
        let f = capture("ulp_nvme_rdma.pcap");
        let mut c = program().arg(&f).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(c.stdout.take());
        let mut text = String::new();
        c.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(c.wait().unwrap().success(), "{args:?}: {text}");
        assert_eq!(text, "", "{args:?}");
    }
}

#[test]
fn standard_input() {
    let whole = std::fs::read(capture("op_write.pcap")).unwrap();
    let mut c = program().arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    c.stdin.take().unwrap().write_all(&whole).unwrap();
    let o = c.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(String::from_utf8(o.stdout).unwrap(), stdout(&[&capture("op_write.pcap")]));
}

#[test]
fn a_filter_writes_what_it_keeps() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["kept.pcap", "kept.pcapng"] {
        let out = dir.path().join(name).display().to_string();
        let f = capture("rnr_then_ok.pcap");
        assert_eq!(stdout(&[&f, "-Y", "roce.nak == RNR", "-w", &out]), "");
        let columns = ["-T", "fields", "-e", "infiniband.bth.psn", "-e", "frame.time_epoch", "-e", "frame.len"];
        let kept = stdout(&[&[out.as_str()], &columns[..]].concat());
        let expected = stdout(&[&[f.as_str(), "-Y", "roce.nak == RNR"], &columns[..]].concat());
        assert_eq!((kept.lines().count(), kept), (21, expected));
    }
    let f = capture("op_write.pcap");
    assert!(refused(&[&f, "-w", &f]).lines().count() == 1);
}

#[test]
fn counts_times_and_ports() {
    let f = capture("op_write.pcap");
    assert_eq!(stdout(&[&f, "-c", "3"]).lines().count(), 3);
    assert_eq!(stdout(&[&f, "-q"]), "");
    // so does tshark 4.0: a form of printing that is asked for is printed
    for asked in [&["-P"][..], &["-T", "text"], &["-T", "fields", "-e", "frame.number"]] {
        assert_eq!(stdout(&[&[&f, "-q", "-c", "1"], asked].concat()).lines().count(), 1, "{asked:?}");
    }
    // both at once would be neither
    let both = run(&[&f, "-w", "-", "-V"]);
    assert_eq!((both.status.code(), both.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&both.stderr).contains("name a file"));
    let written = tempfile::tempdir().unwrap();
    let w = written.path().join("w.pcap").display().to_string();
    assert_eq!(stdout(&[&f, "-c", "1", "-w", &w]), "");
    assert_eq!(stdout(&[&f, "-c", "1", "-w", &w, "-T", "fields", "-e", "frame.number"]), "1\n");
    assert_eq!(stdout(&[&w, "-T", "fields", "-e", "frame.number"]), "1\n");
    assert_eq!(stdout(&[&f, "-c", "1", "-u", "s", "-M", "100", "--color"]), stdout(&[&f, "-c", "1"]));
    let time = |t: &str| {
        let line = stdout(&[&f, "-t", t, "-c", "2"]).lines().nth(1).unwrap().to_owned();
        line.split("10.10").next().unwrap().split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    // as tshark prints the second packet
    let relative = time("r");
    assert_eq!(time("d"), relative);
    assert_eq!(relative, "0.008106");
    assert_eq!(time("e"), "1796070374.434888");
    assert_eq!(time("ad"), "2026-11-30 20:26:14.434888");
    assert_eq!(time("u"), "20:26:14.434888");
    assert_eq!(stdout(&[&f, "-o", "roce.port:4792", "-Y", "infiniband"]), "");
}

#[test]
fn columns_as_tshark_sets_them() {
    let f = capture("op_write.pcap");
    let fields = ["-T", "fields", "-e", "ip.addr", "-e", "infiniband.bth.psn", "-Y", "frame.number == 17"];
    let with = |options: &[&str]| stdout(&[&[f.as_str()], &fields[..], options].concat());
    assert_eq!(with(&[]), "10.10.0.2,10.10.0.1\t4232787\n");
    assert_eq!(
        with(&["-E", "header=y", "-E", "separator=;", "-E", "quote=d", "-E", "aggregator=/s"]),
        "ip.addr;infiniband.bth.psn\n\"10.10.0.2 10.10.0.1\";\"4232787\"\n"
    );
    assert_eq!(with(&["-E", "occurrence=f"]), "10.10.0.2\t4232787\n");
    assert_eq!(with(&["-E", "occurrence=l", "-E", "separator=/s"]), "10.10.0.1 4232787\n");
    let info =
        stdout(&[&f, "-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.col.Protocol", "-Y", "frame.number == 17"]);
    assert!(info.starts_with("RC Acknowledge QP=0x00001b") && info.ends_with("\tRRoCE\n"), "{info}");
    let csv = stdout(&[&f, "-T", "csv", "-e", "ip.addr", "-e", "frame.number", "-Y", "frame.number == 17"]);
    assert_eq!(csv, "ip.addr,frame.number\r\n\"10.10.0.2,10.10.0.1\",17\r\n");
}

#[test]
fn several_threads_print_what_one_does() {
    // large enough for several chunks
    let dir = tempfile::tempdir().unwrap();
    let one = std::fs::read(capture("rc_write_bw.pcap")).unwrap();
    let big = dir.path().join("big.pcap");
    let mut out = std::fs::File::create(&big).unwrap();
    out.write_all(&one[..24]).unwrap();
    for _ in 0..120 {
        out.write_all(&one[24..]).unwrap();
    }
    drop(out);
    let columns = ["-T", "fields", "-e", "frame.number", "-e", "infiniband.bth.psn", "-e", "frame.time_delta"];
    let many = stdout(&[&[big.to_str().unwrap()], &columns[..]].concat());
    let mut c = program().arg("-").args(columns).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = c.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || input.write_all(&std::fs::read(big).unwrap()));
    let alone = c.wait_with_output().unwrap().stdout;
    feeder.join().unwrap().unwrap();
    assert_eq!(many.lines().count(), 120 * 86);
    assert!(many == String::from_utf8(alone).unwrap());
}

#[test]
fn every_capture_in_every_format() {
    let mut n = 0;
    for entry in std::fs::read_dir(here("captures")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "pcap") {
            continue;
        }
        n += 1;
        let f = path.display().to_string();
        let lines = stdout(&[&f]).lines().count();
        let json: serde_json::Value = serde_json::from_str(&stdout(&[&f, "-T", "json"])).unwrap();
        assert_eq!(json.as_array().unwrap().len(), lines, "{f}");
        if n % 4 > 0 {
            continue;
        }
        let ek = stdout(&[&f, "-T", "ek"]);
        let parsed: Result<Vec<serde_json::Value>, _> = ek.lines().map(serde_json::from_str).collect();
        assert_eq!(parsed.unwrap().len(), 2 * lines, "{f}");
    }
    assert!(n >= 88);
}

#[test]
fn golden_files() {
    let mut wrong = Vec::new();
    for (name, args) in [
        ("op_send_imm.txt", &["op_send_imm.pcap"] as &[&str]),
        ("nak_remote_access_write.txt", &["nak_remote_access_write.pcap"]),
        ("loss_in_one_by_one.txt", &["loss_in_one_by_one.pcap"]),
        ("cm_rping.txt", &["cm_rping.pcap"]),
        ("newer_flush_mr.V.txt", &["newer_flush_mr.pcap", "-V", "-Y", "infiniband.feth"]),
        ("rc_atomic_cas.V.txt", &["rc_atomic_cas.pcap", "-V", "-x", "-Y", "frame.number == 20 || frame.number == 22"]),
        ("ud_send_imm.x.txt", &["ud_send_imm.pcap", "-x", "-Y", "infiniband.deth"]),
        ("vlan_ud.json", &["vlan_ud.pcap", "-T", "json", "-Y", "infiniband"]),
        ("rnr_one_outstanding.ek", &["rnr_one_outstanding.pcap", "-T", "ek", "-Y", "roce.nak"]),
    ] {
        let file = capture(args[0]);
        let text = stdout(&[&[file.as_str()], &args[1..]].concat());
        let golden = here("golden").join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} differ from tests/golden (UPDATE=1 writes them anew)");
}

/// A classic capture of these Ethernet frames.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut b = [0xa1b2_c3d4u32.to_le_bytes(), [2, 0, 4, 0]].concat();
    b.extend([0u32, 0, 262_144, 1].into_iter().flat_map(u32::to_le_bytes));
    for f in frames {
        let len = u32::try_from(f.len()).unwrap();
        b.extend([1, 0, len, len].into_iter().flat_map(u32::to_le_bytes));
        b.extend(f);
    }
    b
}

/// Frames of the captures, cut and with bytes changed by a fixed sequence.
fn hostile() -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % (n as u64)).unwrap()
    };
    let mut out = Vec::new();
    for name in ["cm_rping.pcap", "op_mixed.pcap", "ulp_nvme_rdma.pcap", "ulp_nfs_rdma.pcap", "ipv6_cm_rping.pcap"] {
        let whole = std::fs::read(capture(name)).unwrap();
        let mut at = 24;
        while let Some(head) = whole.get(at..at + 16) {
            let len = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
            let frame = &whole[at + 16..at + 16 + len];
            at += 16 + len;
            for _ in 0..3 {
                let mut f = frame[..=random(frame.len())].to_vec();
                for _ in 0..random(8) {
                    let i = random(f.len());
                    // escape, bell, C1 introducer, anything
                    f[i] = [0x1b, 0x07, 0x9b, u8::try_from(random(256)).unwrap()][random(4)];
                }
                out.push(f);
            }
        }
    }
    out
}

#[test]
fn hostile_packets_neither_panic_nor_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hostile.pcap");
    let frames = hostile();
    std::fs::write(&file, pcap(&frames)).unwrap();
    let f = file.display().to_string();
    for args in
        [&[][..], &["-x"], &["-V"], &["-V", "-x"], &["-T", "json"], &["-T", "ek"], &["-T", "psml"], &["-T", "pdml"]]
    {
        let o = run(&[&[f.as_str()], args].concat());
        assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
        let text = String::from_utf8(o.stdout).unwrap();
        let odd = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(odd, None, "{args:?}");
    }
    assert_eq!(stdout(&[&f]).lines().count(), frames.len());
}

#[test]
fn fields_help_manual_and_completions_come_from_one_source() {
    let fields = stdout(&["fields"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&["fields", "--json"])).unwrap();
    assert_eq!(json.as_array().unwrap().len(), fields.lines().count());
    assert!(fields.lines().any(|l| l.starts_with("infiniband.bth.opcode ")));
    assert_eq!(stdout(&["fields", "bth.psn"]).lines().count(), 1);
    let help = stdout(&["--help"]);
    let man = stdout(&["man"]);
    let bash = stdout(&["completions", "bash"]);
    for word in ["-Y", "-T", "-e", "-E", "-w", "--decode-as", "flows", "check", "stats", "fields"] {
        assert!(help.contains(word), "help lacks {word}");
        assert!(man.replace('\\', "").contains(word), "the manual lacks {word}");
        assert!(bash.contains(word), "completion lacks {word}");
    }
    assert!(help.contains("Examples:"));
    assert!(stdout(&["--version"]).starts_with("roce-dissect "));
}

#[test]
fn standard_input_is_not_written_onto() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.pcap");
    std::fs::copy(capture("op_write.pcap"), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    let o = program().args(["-", "-w"]).arg(&file).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!(o.status.code(), Some(2), "{}", String::from_utf8_lossy(&o.stderr));
    assert!(String::from_utf8_lossy(&o.stderr).contains("also the file that is read"));
    assert!(std::fs::read(&file).unwrap() == before);
}

#[test]
fn a_closed_pipe_is_quiet_where_json_is_made_by_the_serialiser() {
    for args in [["fields", "--json"], ["stats", "--json"], ["flows", "--json"], ["check", "--json"]] {
        let f = capture("many_flows.pcap");
        let mut c = program();
        c.args(args);
        if args[0] != "fields" {
            c.arg(&f);
        }
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let o = c.stdout(write).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&o.stderr), "", "{args:?}");
        assert_ne!(o.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_long_filter_is_shown_around_its_fault() {
    let f = capture("op_write.pcap");
    let long = "frame.number == 1 or ".repeat(1400);
    for filter in [format!("{long}froob == 1 or {long}frame"), "a".repeat(60_000), format!("{}x", "é".repeat(30_000))]
    {
        let text = refused(&[&f, "-Y", &filter]);
        assert!(text.len() < 3000 && text.lines().count() == 3, "{} bytes: {text}", text.len());
    }
    let text = refused(&[&f, "-Y", &format!("{long}froob == 1 or {long}frame")]);
    let (shown, marks) = (text.lines().nth(1).unwrap(), text.lines().nth(2).unwrap());
    let column = marks.find('^').unwrap();
    assert!(shown.chars().skip(column).collect::<String>().starts_with("froob =="), "{text}");
}

#[test]
fn a_cut_file_is_one_line_on_stderr() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.pcap");
    let whole = std::fs::read(capture("op_write.pcap")).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 7]).unwrap();
    let file = file.display().to_string();
    for command in ["flows", "check", "stats"] {
        let text = refused(&[command, &file]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("the file is cut here"), "{text}");
    }
}

#[test]
fn letters_that_tshark_users_type_by_habit() {
    let f = capture("rc_write_bw.pcap");
    let number = ["-T", "fields", "-e", "frame.number"];
    let plain = stdout(&[&["-r", &f][..], &number].concat());
    for more in [&["-l"][..], &["-Q"], &["-n", "-N", "n"], &["-2"], &["-d", "udp.port==4791,infiniband"]] {
        assert_eq!(stdout(&[&["-r", &f][..], more, &number].concat()), plain, "{more:?}");
    }
    for (letter, instead) in [("-z", "stats"), ("-i", "roce-top"), ("-j", "-e FIELD"), ("-G", "fields")] {
        let says = refused(&["-r", &f, letter, "x"]);
        assert!(says.contains(letter) && says.contains(instead), "{says}");
    }
    assert_eq!(stdout(&[&["-r", &f, "--disable-heuristic", "rpcrdma_infiniband"][..], &number].concat()), plain);
    let dir = tempfile::tempdir().unwrap();
    for (kind, magic) in [("pcapng", [0x0a, 0x0d, 0x0d, 0x0a]), ("pcap", [0xd4, 0xc3, 0xb2, 0xa1])] {
        let out = dir.path().join("out").display().to_string();
        stdout(&["-r", &f, "-F", kind, "-w", &out]);
        assert_eq!(std::fs::read(&out).unwrap()[..4], magic);
        assert_eq!(stdout(&[&["-r", &out][..], &number].concat()), plain);
    }
    assert!(refused(&["-r", &f, "-F", "pcap"]).contains("-w"));
    // behind a read filter tshark counts from 1 again; better no number than another one
    assert!(refused(&["-r", &f, "-2", "-R", "infiniband"]).contains("-Y"));
    // another port: nothing is RoCE any more
    let other = stdout(&[&["-r", &f, "-d", "udp.port==4792,infiniband", "-Y", "infiniband"][..], &number].concat());
    assert_eq!(other, "");
    assert!(refused(&["-r", &f, "-d", "tcp.port==1,http"]).contains("--decode-as"));
    // the columns of the one-line text by name
    let columns = ["number", "time", "source", "destination", "protocol", "length"].map(|c| format!("_ws.col.{c}"));
    for t in ["r", "ad", "e", "dd"] {
        let mut args = vec!["-r", &f, "-t", t, "-T", "fields"];
        for c in &columns {
            args.extend(["-e", c.as_str()]);
        }
        let fields = stdout(&args);
        let text = stdout(&["-r", &f, "-t", t]);
        for (a, b) in fields.lines().zip(text.lines()) {
            let head: Vec<&str> = b.split_whitespace().filter(|w| *w != "→").collect();
            let cells: Vec<&str> = a.split(['\t', ' ']).filter(|w| !w.is_empty()).collect();
            assert!(head.starts_with(&cells), "{a} / {b}");
        }
    }
    // one protocol in full, the others in one line each
    let tree = stdout(&["-r", &f, "-O", "udp", "-Y", "infiniband", "-c", "20"]);
    assert!(tree.contains("\n    Source Port: ") && tree.contains("\nInfiniBand\n"), "{tree}");
    assert!(!tree.contains("Base Transport Header"), "{tree}");
    assert!(refused(&["-r", &f, "-O", "udq"]).contains("udp"));
}

/// A pcapng file made by hand: blocks of a type with a body, and options.
fn pcapng(interface_options: &[u8], packet_options: &[u8], data: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = u32::try_from(body.len() + 12).unwrap().to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &body, &len].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let interface = [&[1, 0, 0, 0, 0, 0, 0, 0][..], interface_options].concat();
    let len = u32::try_from(data.len()).unwrap().to_le_bytes();
    let mut packet = [&[0; 12][..], &len, &len, data].concat();
    packet.resize(packet.len().next_multiple_of(4), 0);
    packet.extend(packet_options);
    [block(0x0a0d_0d0a, &section), block(1, &interface), block(6, &packet)].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap();
    let mut b = [code.to_le_bytes(), len.to_le_bytes()].concat();
    b.extend(value);
    b.resize(b.len().next_multiple_of(4), 0);
    b
}

#[test]
fn what_a_pcapng_file_says_is_shown_and_does_not_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("said.pcapng");
    let evil = b"\x1b]0;x\x07\x1b[2J \xc2\x9b31m \xe2\x80\xae \xff\r\n";
    let interface = [option(2, b"eth0"), option(3, evil)].concat();
    let packet = [option(1, b"first"), option(1, evil), option(2, &[1, 0, 0, 0]), option(4, &[7, 0, 0, 0, 0, 0, 0, 0])];
    let frame = hostile().swap_remove(0);
    std::fs::write(&file, pcapng(&interface, &packet.concat(), &frame)).unwrap();
    let f = file.to_str().unwrap();
    let names = ["interface_name", "interface_description", "comment", "packet_flags_direction", "drop_count"];
    let mut args = vec!["-r", f, "-T", "fields"];
    let names = names.map(|n| format!("frame.{n}"));
    for n in &names {
        args.extend(["-e", n.as_str()]);
    }
    let line = stdout(&args);
    assert!(line.starts_with("eth0\t\\x1b]0;x\\a\\x1b[2J"), "{line:?}");
    assert!(line.contains("\tfirst,\\x1b]0;x") && line.ends_with("\t0x00000001\t7\n"), "{line:?}");
    assert_eq!(
        stdout(&["-r", f, "-Y", "frame.comment contains \"first\"", "-T", "fields", "-e", "frame.number"]),
        "1\n"
    );
    for format in [
        &["-V"][..],
        &["-V", "-x"],
        &["-T", "json"],
        &["-T", "ek"],
        &["-T", "psml"],
        &["-T", "pdml"],
        &["-T", "csv", "-e", "frame.comment"],
    ] {
        let text = stdout(&[&["-r", f][..], format].concat());
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\r'), "{format:?}: {text:?}");
        assert!(!text.contains('\u{202e}'), "{format:?}: {text:?}");
    }
    // lengths that lie: an option longer than its block, and one without an end
    for options in [vec![1, 0, 0xff, 0xff, b'z', b'z', 0, 0], option(1, b"").repeat(10_000)] {
        std::fs::write(&file, pcapng(&options, &options, &frame)).unwrap();
        assert_eq!(stdout(&["-r", f, "-T", "fields", "-e", "frame.number"]), "1\n");
    }
}
