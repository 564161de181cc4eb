//! The captures are what their index says, by a reading that shares nothing with the dissector.

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn python(script: &str, words: &[&str], paths: &[&Path]) -> (bool, String) {
    let out = Command::new("python3")
        .arg(here().join("lab").join(script))
        .args(words)
        .args(paths)
        .output()
        .expect("python3 runs: apt-get install python3");
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// roce-dissect, as it was built beside the tests.
fn program() -> PathBuf {
    // the program stands beside the tests' own folder
    let mut program = std::env::current_exe().expect("a test has a path");
    program.pop();
    if program.ends_with("deps") {
        program.pop();
    }
    program.push("roce-dissect");
    assert!(program.exists(), "roce-dissect is missing: cargo build --workspace --bins");
    program
}

#[test]
fn the_index_says_what_the_captures_hold() {
    let (good, said) = python("index.py", &["check"], &[&roce_tests::captures()]);
    assert!(good, "{said}");
}

/// The check is worth something: a packet less in a file makes it fail.
#[test]
fn the_index_check_notices_a_missing_packet() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for entry in std::fs::read_dir(roce_tests::captures()).expect("the captures are there") {
        let path = entry.expect("a readable folder").path();
        std::fs::copy(&path, folder.path().join(path.file_name().expect("a file has a name"))).expect("a copy");
    }
    let victim = folder.path().join("op_write.pcap");
    let whole = std::fs::read(&victim).expect("op_write.pcap is part of the captures");
    // the last record goes: follow the record headers (16 bytes, captured length at 8) from the file header of 24
    let (mut at, mut last) = (24, 24);
    while at + 16 <= whole.len() {
        last = at;
        let length = u32::from_le_bytes(whole[at + 8..at + 12].try_into().expect("four bytes"));
        at += 16 + length as usize;
    }
    std::fs::write(&victim, &whole[..last]).expect("a shorter file");
    let (good, said) = python("index.py", &["check"], &[folder.path()]);
    assert!(!good && said.contains("op_write.pcap"), "{said}");
}

/// Two readings of every capture that share no line: packets, bytes, opcodes, ECN, NAKs and every ICRC of each flow.
#[test]
fn the_analysis_counts_what_the_second_reading_counts() {
    let (good, said) = python("judge.py", &["--dissect"], &[&program(), &roce_tests::captures()]);
    assert!(good, "{said}");
}

/// The judge of the lab is worth something: it accepts a report that says what the capture says, and no other.
#[test]
fn the_judge_notices_a_wrong_count() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(roce_tests::captures().join("timeout_read.pcap"), folder.path().join("x.pcap")).expect("a copy");
    // one READ request, sent three times to a machine that does not answer; frames of 74 bytes
    let report = |packets: u64, missed: u64| {
        let roce = packets + missed;
        serde_json::json!({
            "at": 0, "interval_s": 1,
            "totals": {"packets": 22, "roce_packets": roce, "overflow_packets": missed, "events_lost": 0},
            "flows": [{
                "src": "10.10.0.1", "dst": "10.10.0.2", "dest_qp": 768, "src_qp": null, "transport": "RC", "ip_version": 4, "vlan": null,
                "packets": packets, "bytes": 74 * packets, "opcodes": {"RC RDMA READ Request": packets}, "rnr_naks": 0,
                "ecn": {"not_ect": packets, "ect0": 0, "ect1": 0, "ce": 0},
                "naks": {"psn_sequence_error": 0},
            }],
        })
    };
    for (report, right) in [(report(3, 0), true), (report(4, 0), false), (report(2, 0), false), (report(2, 1), false)] {
        std::fs::write(folder.path().join("x.top-a"), format!("{report}\n")).expect("a report");
        let (good, said) = python("judge.py", &[], &[folder.path()]);
        assert_eq!(good, right, "{report}: {said}");
    }
}

/// Results of real runs as they were, and each with one thing wrong: a count, a PSN, a mark, a packet, what a kernel counted.
/// The judge accepts the first and is red for each of the others, in the words for it.
#[test]
fn the_judge_is_red_when_one_thing_is_wrong() {
    let (good, said) = python("judge_test.py", &[], &[&program()]);
    assert!(good, "{said}");
    println!("{said}");
}
