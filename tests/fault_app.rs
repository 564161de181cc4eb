//! roce-fault around an application: the verdict is yes when the application lives with the faults, and no when it does
//! not. The application and its peer are those of `roce_tests::rc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use roce_tests::is_root;
use roce_tests::netns::Pair;
use roce_tests::raw::RawSocket;
use roce_tests::rc::{FIRST_PSN, Log, PACKETS, RESPONDER_QP, respond};
use serde_json::Value;

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to make namespaces and attach programs");
            return;
        }
    };
}

fn program(name: &str) -> PathBuf {
    let mut p = std::env::current_exe().expect("a test has a path");
    p.pop();
    if p.ends_with("deps") {
        p.pop();
    }
    p.join(name)
}

/// What came of a run.
struct Ran {
    code: Option<i32>,
    report: Value,
    log: Log,
}

impl Ran {
    /// Names of the expectations that did not hold.
    fn failed(&self) -> Vec<&str> {
        let checks = self.report["checks"].as_array().expect("checks");
        checks.iter().filter(|c| c["ok"] == false).filter_map(|c| c["name"].as_str()).collect()
    }

    fn injected(&self) -> Vec<u64> {
        self.report["rules"].as_array().expect("rules").iter().filter_map(|r| r["injected"].as_u64()).collect()
    }
}

/// Runs a scenario on the requester's interface, with the application as its command.
fn run(scenario: &str, app: &[&str]) -> Ran {
    let pair = Pair::new().expect("namespaces");
    let dir = tempfile::tempdir().expect("a folder");
    let (toml, json) = (dir.path().join("s.toml"), dir.path().join("r.json"));
    std::fs::write(&toml, scenario).expect("written");
    let socket = pair.b.run(|| RawSocket::open("b0")).expect("entered").expect("it opens");
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let peer = s.spawn(|| respond(&socket, &stop));
        let out = pair.a.run(|| {
            let mut c = Command::new(program("roce-fault"));
            c.arg("run").arg(&toml).args(["-i", "a0", "--json"]).arg(&json);
            c.arg("--").arg(program("roce-requester")).args(app).output()
        });
        stop.store(true, Ordering::Relaxed);
        let out = out.expect("entered").expect("it was built (cargo build --workspace --bins)");
        let said = String::from_utf8_lossy(&out.stderr);
        let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("no report ({e}): {said}"));
        let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("not JSON ({e}): {text} {said}"));
        Ran { code: out.status.code(), report, log: peer.join().expect("no panic").expect("the peer can answer") }
    })
}

/// "Drop the second retransmission of the last packet of the third WRITE on the second QP, and the application must
/// finish within 2 s." A packet is sent a third time only if the first two did not arrive, so they are lost as well.
const SENTENCE: &str = r#"
    name = "the issue's sentence"
    [[rule]]
    name = "so that it is sent again"
    type = "drop"
    direction = "out"
    opcode = "RC RDMA WRITE Last"
    flow = 2
    message = 3
    iter = "1-2"
    [[rule]]
    name = "second retransmission"
    type = "drop"
    direction = "out"
    opcode = "RC RDMA WRITE Last"
    flow = 2
    message = 3
    iter = 3
    [expect]
    injections = { "so that it is sent again" = 2, "second retransmission" = 1 }
    finish_within = "2s"
    exit = 0
"#;

/// PSN of the last packet of the third WRITE on the second queue pair, and that queue pair.
const HIT: (u32, u32) = (RESPONDER_QP + 1, FIRST_PSN * 2 + 3 * PACKETS - 1);

#[test]
fn the_sentence_is_true_of_an_application_that_tries_long_enough() {
    need_root!();
    let ran = run(SENTENCE, &["--timeout-ms", "100"]);
    assert_eq!((ran.code, ran.failed(), ran.injected()), (Some(0), vec![], vec![2, 1]), "{:#}", ran.report);
    // the receiver's own count: the packet came at last, and so did all others
    assert!(ran.log.requests.contains_key(&HIT));
    assert_eq!(ran.log.requests.len(), 3 * 10 * PACKETS as usize);
    let injections = ran.report["injections"].as_array().unwrap();
    let hits: Vec<_> = injections.iter().map(|i| (i["psn"].as_u64(), i["occurrence"].as_u64())).collect();
    let psn = Some(u64::from(HIT.1));
    assert_eq!(hits, [(psn, Some(1)), (psn, Some(2)), (psn, Some(3))]);
    assert!(injections.iter().all(|i| i["dest_qp"] == HIT.0 && i["opcode"] == "RC RDMA WRITE Last"));
}

#[test]
fn and_false_of_one_that_gives_up_or_takes_too_long_or_never_gets_there() {
    need_root!();
    // gives up after the second retransmission
    let ran = run(SENTENCE, &["--timeout-ms", "100", "--retries", "2"]);
    assert_eq!((ran.code, ran.failed(), ran.injected()), (Some(1), vec!["exit"], vec![2, 1]), "{:#}", ran.report);
    assert_eq!(ran.log.requests.get(&HIT), None);
    // waits too long before it sends again
    let ran = run(SENTENCE, &["--timeout-ms", "900"]);
    assert_eq!(
        (ran.code, ran.failed(), ran.injected()),
        (Some(1), vec!["finish-within"], vec![2, 1]),
        "{:#}",
        ran.report
    );
    assert_eq!(ran.log.requests.get(&HIT), Some(&1));
    // ends well, and never sent a third WRITE: nothing was proved
    let ran = run(SENTENCE, &["--writes", "2"]);
    assert_eq!((ran.code, ran.injected()), (Some(1), vec![0, 0]), "{:#}", ran.report);
    assert!(ran.failed().contains(&"something-injected"), "{:#}", ran.report);
}

#[test]
fn every_ready_scenario_runs_and_the_application_is_judged() {
    need_root!();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|x| x == "toml"));
    names.sort();
    assert!(names.len() >= 14, "{names:?}");
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // what must happen in milliseconds on a quiet machine may take longer beside other tests
        let text = std::fs::read_to_string(&path).unwrap().replace("cnp_within = \"10ms\"", "cnp_within = \"5s\"");
        let app: &[&str] = match name.as_str() {
            "blackhole-two-seconds" => &["--connect", "--timeout-ms", "500", "--at-least-ms", "3200"],
            "flap" => &["--timeout-ms", "60", "--at-least-ms", "1200"],
            _ => &["--connect", "--writes", "120", "--reads", "30", "--timeout-ms", "60"],
        };
        let ran = run(&text, app);
        if name == "ce-phantom-queue" {
            // this traffic does not fill a queue of 10 Gbit/s, and the verdict says so
            assert_eq!((ran.code, ran.failed()), (Some(1), vec!["something-injected"]), "{:#}", ran.report);
            assert!(ran.report["checks"][0]["detail"].as_str().unwrap().contains("none of them was chosen"));
            continue;
        }
        assert_eq!((ran.code, ran.failed()), (Some(0), vec![]), "{name}: {:#}", ran.report["checks"]);
        assert!(ran.injected().iter().all(|n| *n > 0), "{name}: {:?}", ran.injected());
        if name == "icrc-bit-error" {
            // the receiver's own word: so many packets had a wrong ICRC
            assert_eq!(ran.injected(), [ran.log.bad], "{name}");
        }
        if name.starts_with("ce-") {
            assert_eq!(ran.log.cnps, ran.injected()[0], "{name}");
        }
    }
}
