//! Every field that tshark has too, value for value, on the captures and on generated packets.
//!
//! What differs on purpose stands in `known-differences.toml`: which fields, in which packets (a display filter of
//! ours), and why. A difference that is not there fails, and so does an entry that nothing needs any more. Where
//! tshark is not installed the tests say so and have compared nothing.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dissector::capture::{Reader, Writer};
use dissector::cli::session::{Job, Session};
use dissector::dissect::{Field, registry, ulp};
use dissector::filter::Filter;
use dissector::output::Format;
use dissector::output::columns::Columns;
use dissector::service::DecodeAs;
use roce_tests::packets::{self, Way};

#[derive(serde::Deserialize)]
struct Known {
    difference: Vec<Difference>,
}

#[derive(serde::Deserialize)]
struct Difference {
    fields: Vec<String>,
    packets: String,
    reason: String,
}

impl Difference {
    /// Whether a field is meant; `rpc*` means all whose name begins so.
    fn covers(&self, name: &str) -> bool {
        self.fields.iter().any(|f| f.strip_suffix('*').map_or(f == name, |start| name.starts_with(start)))
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// tshark without anybody's configuration, in UTC.
fn tshark(home: &Path) -> Command {
    let mut c = Command::new("tshark");
    c.env("HOME", home).env("XDG_CONFIG_HOME", home).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
    c
}

/// Names of the fields that tshark knows; `None` if it is not installed.
fn tshark_fields(home: &Path) -> Option<HashSet<String>> {
    let out = match tshark(home).args(["-G", "fields"]).output() {
        Ok(out) if out.status.success() => out.stdout,
        _ => {
            eprintln!("tshark is not installed: nothing was compared with it (apt install tshark)");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&out).into_owned();
    Some(text.lines().filter_map(|l| l.split('\t').nth(2)).map(str::to_owned).collect())
}

/// Compares a file; adds what differs and is not known to `unknown`, and the numbers of used entries to `used`.
fn compare(
    file: &Path,
    home: &Path,
    fields: &[&'static Field],
    known: &[(&Difference, Filter)],
    used: &mut HashSet<usize>,
    unknown: &mut BTreeMap<&'static str, (usize, String)>,
) -> usize {
    let mut c = tshark(home);
    c.arg("-n").arg("-r").arg(file).args(["-T", "fields", "-E", "occurrence=a"]);
    for f in fields {
        c.args(["-e", f.name]);
    }
    let out = c.output().unwrap();
    let theirs = String::from_utf8_lossy(&out.stdout).into_owned();
    let theirs: Vec<&str> = theirs.lines().collect();
    let format = Format::Columns(Columns::new(fields.to_vec()));
    let mut session = Session::new(Job::new(format, None, 4791, false), DecodeAs::default());
    for (_, filter) in known {
        session.want(filter);
    }
    let mut reader = Reader::open(file).unwrap();
    let mut n = 0;
    while let Some(chunk) = reader.next_chunk().unwrap() {
        for record in chunk.records() {
            let mut ours = Vec::new();
            let mut passing = Vec::new();
            session.packet(&record, 6, &mut ours, |tree, frame| {
                passing = known.iter().map(|(_, f)| f.matches(tree, frame)).collect();
            });
            let ours = String::from_utf8(ours).unwrap();
            let theirs = theirs
                .get(n)
                .unwrap_or_else(|| panic!("tshark ends before packet {n}: {}", String::from_utf8_lossy(&out.stderr)));
            n += 1;
            for ((f, a), b) in fields.iter().zip(ours.trim_end_matches('\n').split('\t')).zip(theirs.split('\t')) {
                if a == b {
                    continue;
                }
                let entry = known.iter().zip(&passing).position(|((d, _), p)| *p && d.covers(f.name));
                if let Some(i) = entry {
                    used.insert(i);
                    continue;
                }
                let slot = unknown.entry(f.name).or_default();
                slot.0 += 1;
                if slot.0 <= 3 {
                    let short = |s: &str| s.chars().take(60).collect::<String>();
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    let _ = write!(slot.1, "\n    {name} {}: {:?}, tshark {:?}", record.number, short(a), short(b));
                }
            }
        }
    }
    assert_eq!(n, theirs.len(), "{}", file.display());
    n
}

/// All captures in one file, so that tshark starts once. Those of upper protocols stay alone: tshark mixes up
/// connections of several captures that have the same queue pairs.
fn merged(dir: &Path) -> (PathBuf, Vec<PathBuf>) {
    let names = roce_tests::all_captures();
    assert!(names.len() >= 88);
    let is_upper = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("ulp_"));
    let (upper, names): (Vec<_>, Vec<_>) = names.into_iter().partition(is_upper);
    let file = dir.join("captures.pcap");
    let mut writer = Writer::create(&file, None).unwrap();
    for name in names {
        let mut reader = Reader::open(name).unwrap();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            for r in chunk.records() {
                writer.write(&r, reader.interfaces()).unwrap();
            }
        }
    }
    writer.finish().unwrap();
    (file, upper)
}

/// The ERF records of the packets of that way, as a card writes them: times of their own, an extension header, and
/// padding between records.
fn native_erf(dir: &Path) -> PathBuf {
    let mut out = Vec::new();
    let mut reader = Reader::open(packets::file(dir, Way::Erf)).unwrap();
    while let Some(r) = reader.next().unwrap() {
        let time = 1_700_000_000 + r.number << 32 | r.number * 0x1357_9bdf;
        let mut record = r.bytes.to_vec();
        record[..8].copy_from_slice(&time.to_le_bytes());
        out.extend(&record);
        let mut extended = [&record[..16], &[5, 0, 0, 0, 0, 0, 0, 9], &record[16..]].concat();
        extended[8] |= 0x80;
        let len = u16::try_from(extended.len()).unwrap();
        extended[10..12].copy_from_slice(&len.to_be_bytes());
        out.extend(extended);
        out.extend(time.to_le_bytes());
        out.extend([48, 4, 0, 24, 0, 0, 0, 0]);
        out.extend([0; 8]);
    }
    let file = dir.join("native.erf");
    std::fs::write(&file, out).unwrap();
    file
}

#[test]
fn every_field_equals_tsharks() {
    let dir = tempfile::tempdir().unwrap();
    let Some(theirs) = tshark_fields(dir.path()) else { return };
    // those of upper protocols have a test of their own, `upper.rs`
    let fields: Vec<&'static Field> = registry::all()
        .filter(|f| theirs.contains(f.name) && !(ulp::GROUP..=ulp::rds::GROUP).contains(&(f.id >> 8)))
        .collect();
    assert!(fields.len() > 100, "{} fields in common", fields.len());
    let known: Known =
        toml::from_str(&std::fs::read_to_string(here().join("known-differences.toml")).unwrap()).unwrap();
    let known: Vec<(&Difference, Filter)> = known
        .difference
        .iter()
        .map(|d| (d, Filter::compile(&d.packets).unwrap_or_else(|e| panic!("known-differences.toml: {e}"))))
        .collect();
    let (together, mut files) = merged(dir.path());
    files.push(together);
    for way in Way::ALL {
        files.push(packets::file(dir.path(), *way));
    }
    files.push(native_erf(dir.path()));
    let (mut used, mut unknown, mut packets) = (HashSet::new(), BTreeMap::new(), 0);
    for f in &files {
        packets += compare(f, dir.path(), &fields, &known, &mut used, &mut unknown);
    }
    println!("{} fields of {packets} packets in {} files compared", fields.len(), files.len());
    let mut report = String::new();
    for (name, (count, samples)) in &unknown {
        let _ = write!(report, "\n  {name}: {count} packets differ{samples}");
    }
    for (i, (d, _)) in known.iter().enumerate() {
        if !used.contains(&i) {
            let _ = write!(
                report,
                "\n  known difference no longer there: {:?} in {:?} ({})",
                d.fields, d.packets, d.reason
            );
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// Output of a program, with its name in the head made ours.
fn printed(mut c: Command, file: &Path, args: &[&str]) -> String {
    let out = c.arg("-n").arg("-r").arg(file).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn ours() -> Command {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("roce-dissect");
    assert!(program.exists(), "roce-dissect is missing: cargo build --workspace --bins");
    let mut c = Command::new(program);
    c.env("TZ", "UTC");
    c
}

/// Captures for the formats: each kind of header, VLAN, IPv6 and what is not RoCE beside it.
const OF_FORMATS: &[&str] =
    &["op_write.pcap", "op_send_inv.pcap", "rc_atomic_cas.pcap", "nak_remote_access_write.pcap", "vlan_ipv6_ud.pcap"];

/// All columns but protocol and info, which say more here.
#[test]
fn tabs_and_psml_have_tsharks_columns() {
    let dir = tempfile::tempdir().unwrap();
    if tshark_fields(dir.path()).is_none() {
        return;
    }
    for name in OF_FORMATS {
        let file = here().join("captures").join(name);
        for time in ["r", "ad", "d", "dd", "e", "u", "ud"] {
            let args = ["-t", time, "-T", "tabs"];
            let [a, b] = [ours(), tshark(dir.path())].map(|c| printed(c, &file, &args));
            let columns = |s: &str| -> Vec<String> {
                s.lines().map(|l| l.split('\t').take(5).collect::<Vec<_>>().join("\t")).collect()
            };
            assert!(!a.is_empty());
            assert_eq!(columns(&a), columns(&b), "{name} {args:?}");
        }
        let filter = ["-Y", "infiniband", "-T", "psml"];
        let [a, b] = [ours(), tshark(dir.path())].map(|c| printed(c, &file, &filter));
        let plain = |s: &str| -> Vec<String> {
            // what tshark says behind the queue pair is less, and of an opcode in other words
            let info = |l: &str| l.starts_with("<section>") && l.contains("QP=");
            s.lines().filter(|l| !l.starts_with("<psml") && !info(l)).map(str::to_owned).collect()
        };
        assert!(a.contains("<section>RRoCE</section>"));
        assert_eq!(plain(&a), plain(&b), "{name}");
    }
}

/// Attributes of the elements with a name, a list for each packet.
fn elements(pdml: &str) -> Vec<Vec<(String, BTreeMap<String, String>)>> {
    let mut all = Vec::new();
    for line in pdml.lines().map(str::trim) {
        if line == "<packet>" {
            all.push(Vec::new());
        }
        let Some(rest) = line.strip_prefix("<field ").or(line.strip_prefix("<proto ")) else { continue };
        let mut attributes = BTreeMap::new();
        let mut parts = rest.split('"');
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            attributes.insert(key.trim_matches([' ', '=']).to_owned(), value.to_owned());
        }
        // words for people; ours are other ones
        attributes.remove("showname");
        let name = attributes.remove("name").unwrap_or_default();
        if let Some(packet) = all.last_mut() {
            packet.push((name, attributes));
        }
    }
    all
}

/// Places, bytes and values of the fields of Ethernet, IP, UDP and InfiniBand, in their order.
#[test]
fn pdml_has_tsharks_fields_places_and_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let Some(theirs) = tshark_fields(dir.path()) else { return };
    // what is calculated has no place here; the rest is in known-differences.toml, or a wider picture of the same bytes
    let calculated = |n: &str| n.ends_with(".status") || n.starts_with("udp.time_") || n == "udp.stream";
    let other = ["data.len", "infiniband.deth.q_key", "infiniband.immdt", "infiniband.ieth", "ip.version", "ipv6.flow"];
    let groups = ["geninfo", "num", "len", "caplen", "timestamp"];
    let compared = |n: &str| {
        let layer = n.split('.').next().unwrap_or(n);
        groups.contains(&n)
            || theirs.contains(n)
                && registry::find(n).is_some()
                && ["eth", "vlan", "ip", "ipv6", "udp", "infiniband", "data"].contains(&layer)
                && !calculated(n)
                && !other.contains(&n)
    };
    let mut fields = 0;
    for name in OF_FORMATS {
        let file = here().join("captures").join(name);
        let args = ["-Y", "infiniband.bth && !infiniband.mad", "-T", "pdml"];
        let [a, b] = [ours(), tshark(dir.path())].map(|c| elements(&printed(c, &file, &args)));
        assert_eq!(a.len(), b.len(), "{name}");
        assert!(!a.is_empty(), "{name}");
        for (n, (a, b)) in a.into_iter().zip(b).enumerate() {
            let by_name = |l: Vec<(String, BTreeMap<String, String>)>| {
                let mut m: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
                for (name, attributes) in l.into_iter().filter(|(n, _)| compared(n)) {
                    m.entry(name).or_default().push(attributes);
                }
                m
            };
            let (a, b) = (by_name(a), by_name(b));
            fields += a.len();
            for (field, a) in a {
                // hidden ones repeat others for the sake of filters
                if !b.contains_key(&field) && a.iter().all(|a| a.contains_key("hide")) {
                    continue;
                }
                assert_eq!(Some(&a), b.get(&field), "{name}: {field} of packet {n} of those shown");
            }
        }
    }
    assert!(fields > 1000, "{fields} fields compared");
}
