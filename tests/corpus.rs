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
