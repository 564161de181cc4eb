//! The fuzzer's corpus, replayed without a fuzzer.

#[path = "../fuzz/subjects/capture.rs"]
mod capture;
#[path = "../fuzz/subjects/filter.rs"]
mod filter;
#[path = "../fuzz/subjects/flow.rs"]
mod flow;
#[path = "../fuzz/subjects/frame.rs"]
mod frame;
#[path = "../fuzz/subjects/mad.rs"]
mod mad;
#[path = "../fuzz/subjects/packets.rs"]
mod packets;
#[path = "../fuzz/subjects/upper.rs"]
mod upper;

fn each(target: &str, f: impl Fn(&[u8])) -> usize {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        f(&std::fs::read(path).unwrap());
        files += 1;
    }
    files
}

#[test]
fn frames() {
    assert!(each("frame", frame::frame) >= 20);
}

#[test]
fn captures() {
    assert!(each("capture", capture::capture) >= 5);
}

#[test]
fn filters() {
    assert!(each("filter", filter::filter) >= 10);
}

#[test]
fn management_datagrams() {
    assert!(each("mad", mad::mad) >= 8);
}

#[test]
fn upper_protocols() {
    assert!(each("upper", upper::upper) >= 5);
}

#[test]
fn flows() {
    assert!(each("flow", flow::flow) >= 5);
}
