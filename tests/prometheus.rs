//! A real Prometheus scrapes roce-top: every series arrives, the sums are what was sent, and every expression of the
//! Grafana dashboard is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roce_tests::netns::Pair;
use roce_tests::raw::RawSocket;
use roce_tests::traffic::Recording;
use roce_tests::{captures, is_root};
use serde_json::Value;

/// Ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // a database wants to close its files
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The result of a query, by Prometheus' API.
fn query(expression: &str) -> Result<Vec<Value>, String> {
    let coded: Vec<String> = expression.bytes().map(|b| format!("%{b:02x}")).collect();
    let answer = get(9090, &format!("/api/v1/query?query={}", coded.concat())).map_err(|e| e.to_string())?;
    let body = answer.split_once("\r\n\r\n").ok_or("no body")?.1;
    let json: Value = serde_json::from_str(body).map_err(|e| format!("{e}: {answer}"))?;
    if json["status"] != "success" {
        return Err(json.to_string());
    }
    json["data"]["result"].as_array().cloned().ok_or_else(|| json.to_string())
}

fn number(result: &[Value]) -> f64 {
    result.iter().filter_map(|r| r["value"][1].as_str()?.parse::<f64>().ok()).sum()
}

#[test]
fn a_real_prometheus_has_every_series_and_answers_the_dashboard() {
    if !is_root() {
        eprintln!("skipped: needs root to make namespaces and attach programs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("prometheus.yml");
    std::fs::write(
        &config,
        "global: { scrape_interval: 200ms, scrape_timeout: 200ms }\n\
         scrape_configs: [ { job_name: roce, static_configs: [ { targets: ['127.0.0.1:9879'] } ] } ]\n",
    )
    .unwrap();
    let pair = Pair::with_mtu(4500).unwrap();
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    if program.ends_with("deps") {
        program.pop();
    }
    program.push("roce-top");
    let mut top = Command::new(program);
    top.args(["-i", "b0", "--batch", "-d", "0.1", "--prometheus", "127.0.0.1:9879", "--prometheus-flows", "5"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut top = Running(pair.b.run(|| top.spawn()).unwrap().expect("roce-top was built"));
    let mut stderr = BufReader::new(top.0.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains("metrics at") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "roce-top ended: {said}");
    }
    let mut server = Command::new("prometheus");
    server
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
        .arg("--web.listen-address=127.0.0.1:9090")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // not skipped without it: `cargo xtask setup` installs it
    let _server = Running(pair.b.run(|| server.spawn()).unwrap().expect("prometheus is installed (apt: prometheus)"));

    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let b = pair.b.run(|| RawSocket::open("b0")).unwrap().unwrap();
    let recording = Recording::open(&captures().join("many_qps.pcap")).unwrap();
    let mut sent = 0;
    let mut send = || {
        for f in &recording.frames {
            if f.from_client { a.send(&f.bytes).unwrap() } else { b.send(&f.bytes).unwrap() }
        }
        sent += recording.frames.len();
        sent as f64
    };
    pair.b
        .run(|| {
            let end = Instant::now() + Duration::from_mins(1);
            // rates want samples before and after
            let mut all = send();
            loop {
                let sum = query("sum(roce_packets_total)").map(|r| number(&r));
                if sum.as_ref().is_ok_and(|n| *n >= all) {
                    let rate = query("sum(rate(roce_packets_total[5s]))").map(|r| number(&r)).unwrap_or(0.0);
                    if rate > 0.0 {
                        break;
                    }
                    all = send();
                }
                assert!(Instant::now() < end, "prometheus has {sum:?} of {all}");
                std::thread::yield_now();
            }
            assert_eq!(query("sum(roce_packets_total)").map(|r| number(&r)), Ok(all));
            // flows with series of their own and the rest, opcodes: nothing is counted twice, nothing is left out
            assert_eq!(query("sum(roce_flow_packets_total)").map(|r| number(&r)), Ok(all));
            assert_eq!(query("sum(roce_opcode_packets_total)").map(|r| number(&r)), Ok(all));
            assert_eq!(query("count(roce_flow_packets_total)").map(|r| number(&r)), Ok(6.0));
            assert_eq!(query("roce_flow_packets_total{flow=\"other\"}").map(|r| r.len()), Ok(1));
            assert_eq!(query("up{job=\"roce\"}").map(|r| number(&r)), Ok(1.0));
            // every series of the text is there, with the type that it says
            let text = get(9879, "/metrics").unwrap();
            let names: std::collections::BTreeSet<&str> = text
                .lines()
                .skip_while(|l| !l.starts_with('#'))
                .filter(|l| !l.starts_with('#'))
                .filter_map(|l| l.split(['{', ' ']).next())
                .filter(|n| !n.is_empty())
                .collect();
            assert!(names.len() > 30, "{names:?}");
            for n in names {
                assert!(query(n).is_ok_and(|r| !r.is_empty()), "{n} did not arrive");
            }
            dashboard();
        })
        .unwrap();
}

/// Every expression of the dashboard, as Grafana would ask it.
fn dashboard() {
    let text = include_str!("../roce-user/grafana/roce-top.json");
    let dashboard: Value = serde_json::from_str(text).expect("the dashboard is JSON");
    let asked: Vec<(&str, &str)> = dashboard["panels"]
        .as_array()
        .expect("panels")
        .iter()
        .flat_map(|p| {
            let title = p["title"].as_str().unwrap_or("");
            p["targets"].as_array().into_iter().flatten().filter_map(move |t| Some((title, t["expr"].as_str()?)))
        })
        .collect();
    assert!(asked.len() > 20, "{}", asked.len());
    for (title, expression) in asked {
        let asked = expression.replace("$__rate_interval", "5s").replace("$instance", ".*");
        assert!(!asked.contains('$'), "{asked}");
        let r = query(&asked).unwrap_or_else(|e| panic!("{title}: {asked}: {e}"));
        // what compares may have no answer: nothing suffers
        assert!(!r.is_empty() || asked.contains("> 0"), "{title}: {asked} has no answer");
    }
}
