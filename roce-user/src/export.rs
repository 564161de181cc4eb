//! Metrics for Prometheus at `/metrics`, and `/healthz`.
//!
//! Names follow Prometheus' conventions: base units, `_total` for counters, one prefix. Labels are bounded: so
//! many flows have series of their own (the busiest when there was room, and they keep them until they have
//! been silent for long), all others are summed in one series whose labels say `other`. Flow series count from
//! when the flow got its series, so that nothing is counted twice and every counter only grows.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dissector::flow::row::{OpcodeCounts, Totals};
use dissector::wire::Op;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use crate::aggregate::{Counts, FlowKey, Metric, Phase, Report};
use crate::source::Tap;

/// A flow that was silent for so long gives its series to another, seconds.
const SILENT_S: f64 = 300.0;
/// Connections that are served at the same time.
const CONNECTIONS: usize = 128;
/// A client has so long to ask and to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to ask: one that never does must not keep others out for long.
const ASKING: Duration = Duration::from_secs(2);
/// Longest head of a request.
const REQUEST: usize = 8192;
/// A report older than so many intervals (and a minute) means that sampling has stopped.
const STALE_INTERVALS: f64 = 10.0;

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Series {
    labels: Labels,
    counts: Counts,
    active: f64,
}

/// What is exported, as of the latest report.
#[derive(Debug, Default)]
struct State {
    limit: usize,
    taps: Vec<Tap>,
    reports: u64,
    at: f64,
    interval_s: f64,
    /// Wall clock of the latest report.
    seen: Option<std::time::Instant>,
    totals: Totals,
    counts: Counts,
    opcodes: OpcodeCounts,
    flows: usize,
    active: usize,
    series: HashMap<FlowKey, Series>,
    rest: Counts,
}

/// Keeps the metrics; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Exporter(Arc<RwLock<State>>);

/// Metrics of a flow and of everything: name without prefix, help, which counter.
const COUNTERS: &[(&str, &str, Metric)] = &[
    ("packets", "RoCE packets", Metric::Packets),
    ("bytes", "Bytes of RoCE packets, link header included", Metric::Bytes),
    ("messages", "Completed messages", Metric::Messages),
    ("ce_packets", "RoCE packets marked congestion experienced", Metric::Ce),
    ("not_ect_packets", "RoCE packets that cannot take part in ECN", Metric::NotEct),
    ("cnps", "Congestion notification packets", Metric::Cnps),
    ("naks", "Negative acknowledges of any reason but receiver not ready", Metric::Naks),
    ("rnr_naks", "Receiver-not-ready NAKs", Metric::RnrNaks),
    ("repeated_packets", "Packets whose PSN came before: sent again, or copied by the network", Metric::Repeats),
    ("missing_packets", "Gaps noticed in the sequence of PSNs, in packets", Metric::Missing),
    ("reordered_packets", "First arrivals out of order", Metric::Reordered),
];

impl Exporter {
    /// At most `limit` flows with series of their own.
    pub fn new(limit: usize, taps: Vec<Tap>) -> Self {
        Self(Arc::new(RwLock::new(State { limit, taps, ..State::default() })))
    }

    /// Takes a report; each one once, in order.
    pub fn observe(&self, report: &Report) {
        let mut s = self.0.write().unwrap_or_else(PoisonError::into_inner);
        s.observe(report);
    }

    /// All metrics as text, in OpenMetrics' format or in the older one of Prometheus.
    fn encode(&self, open_metrics: bool) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut out = String::new();
        if open_metrics {
            prometheus_client::encoding::text::encode(&mut out, &registry)?;
        } else {
            prometheus_client::encoding::prometheus_text::encode(&mut out, &registry)?;
        }
        Ok(out)
    }

    fn healthy(&self) -> Result<(), String> {
        let s = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let patience = (s.interval_s * STALE_INTERVALS).max(60.0);
        match s.seen {
            None => Err("no report yet".to_owned()),
            Some(t) if t.elapsed().as_secs_f64() > patience => {
                Err(format!("the latest report is {:.0} s old", t.elapsed().as_secs_f64()))
            }
            Some(_) => Ok(()),
        }
    }

    /// Serves on a thread of its own until the process ends.
    pub fn serve(&self, address: SocketAddr) -> Result<SocketAddr> {
        let listener = TcpListener::bind(address).with_context(|| format!("cannot serve metrics at {address}"))?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let exporter = self.clone();
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            runtime.block_on(async move {
                // the runtime is there: this cannot fail for want of one
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let room = Arc::new(Semaphore::new(CONNECTIONS));
                loop {
                    let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                    let Ok((stream, _)) = listener.accept().await else {
                        // out of descriptors: give others the time to end
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };
                    let exporter = exporter.clone();
                    tokio::spawn(async move {
                        let _permit = permit;
                        // a client that breaks off is no fault of ours
                        let _ = tokio::time::timeout(PATIENCE, exporter.answer(stream)).await;
                    });
                }
            });
        })?;
        Ok(bound)
    }

    async fn answer(&self, mut stream: tokio::net::TcpStream) -> io::Result<()> {
        let mut request = Vec::new();
        let mut part = [0u8; 1024];
        let until = tokio::time::Instant::now() + ASKING;
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            let n = tokio::time::timeout_at(until, stream.read(&mut part)).await??;
            if n == 0 || request.len() + n > REQUEST {
                return reply(&mut stream, "400 Bad Request", "text/plain", "the request has no end\n", true).await;
            }
            request.extend_from_slice(part.get(..n).unwrap_or(&[]));
        }
        let request = String::from_utf8_lossy(&request);
        let mut words = request.split_ascii_whitespace();
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = path.split('?').next().unwrap_or("");
        let head = method == "HEAD";
        if method != "GET" && !head {
            return reply(&mut stream, "405 Method Not Allowed", "text/plain", "GET only\n", true).await;
        }
        match path {
            "/metrics" => {
                let open = request.to_ascii_lowercase().contains("application/openmetrics-text");
                let kind = if open {
                    "application/openmetrics-text; version=1.0.0; charset=utf-8"
                } else {
                    "text/plain; version=0.0.4; charset=utf-8"
                };
                match self.encode(open) {
                    Ok(body) => reply(&mut stream, "200 OK", kind, &body, !head).await,
                    Err(_) => {
                        reply(&mut stream, "500 Internal Server Error", "text/plain", "cannot encode\n", !head).await
                    }
                }
            }
            "/healthz" => match self.healthy() {
                Ok(()) => reply(&mut stream, "200 OK", "text/plain", "ok\n", !head).await,
                Err(why) => {
                    reply(&mut stream, "503 Service Unavailable", "text/plain", &format!("{why}\n"), !head).await
                }
            },
            "/" => {
                let page = "<html><title>roce-top</title><a href=\"/metrics\">metrics</a> <a href=\"/healthz\">health</a></html>\n";
                reply(&mut stream, "200 OK", "text/html", page, !head).await
            }
            _ => reply(&mut stream, "404 Not Found", "text/plain", "/metrics and /healthz are here\n", !head).await,
        }
    }
}

async fn reply(
    stream: &mut tokio::net::TcpStream,
    status: &str,
    kind: &str,
    body: &str,
    with_body: bool,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if with_body {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

impl State {
    fn observe(&mut self, report: &Report) {
        let first = self.reports == 0;
        self.reports += 1;
        self.at = report.at;
        self.interval_s = report.interval_s;
        self.seen = Some(std::time::Instant::now());
        self.totals = report.totals;
        self.opcodes = report.opcodes.clone();
        self.counts.add(if first { &report.total } else { &report.delta });
        self.flows = report.flows.len();
        self.active = report.active;
        let mut candidates = Vec::new();
        for f in &report.flows {
            let all = first.then(|| Counts::of(&f.row));
            let Some(news) = all.as_ref().or(f.news()) else { continue };
            if let Some(s) = self.series.get_mut(&f.key) {
                s.counts.add(news);
                if f.phase == Phase::Active {
                    s.active = report.at;
                }
            } else if news.get(Metric::Packets) > 0 {
                candidates.push((news.get(Metric::Packets), f, *news));
            }
        }
        let now = report.at;
        self.series.retain(|_, s| now - s.active < SILENT_S);
        candidates.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.key.cmp(&b.1.key)));
        for (_, f, news) in candidates {
            if self.series.len() < self.limit {
                let row = &f.row;
                let labels = vec![
                    ("src", row.src.to_string()),
                    ("dst", row.dst.to_string()),
                    ("dest_qp", row.dest_qp.to_string()),
                    // part of a datagram flow's identity; a connection's may be learnt later and would make a new series
                    ("src_qp", f.key.datagram_src_qp.map(|q| q.to_string()).unwrap_or_default()),
                    ("transport", row.transport.to_owned()),
                    ("flow", f.key.generation.to_string()),
                ];
                self.series.insert(f.key, Series { labels, counts: news, active: now });
            } else {
                self.rest.add(&news);
            }
        }
    }
}

impl Collector for Exporter {
    fn encode(&self, mut e: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let s = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let none: Labels = Vec::new();
        let other: Labels =
            ["src", "dst", "dest_qp", "src_qp", "transport", "flow"].map(|l| (l, "other".to_owned())).into();
        counters(
            &mut e,
            "roce_top_build_info",
            "Version of roce-top, always 1",
            MetricType::Gauge,
            &[(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1)],
        )?;
        let taps: Vec<Labels> =
            s.taps.iter().map(|t| vec![("interface", t.name.clone()), ("how", t.how.clone())]).collect();
        let taps: Vec<(&Labels, u64)> = taps.iter().map(|l| (l, 1)).collect();
        counters(&mut e, "roce_top_interface_info", "Interfaces watched and how, always 1", MetricType::Gauge, &taps)?;
        let gauge = |e: &mut DescriptorEncoder<'_>, name: &str, help: &str, n: f64| {
            let m = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(n).encode(m)
        };
        gauge(&mut e, "roce_last_report_timestamp_seconds", "Time of the latest report", s.at)?;
        gauge(&mut e, "roce_report_interval_seconds", "Length of the latest interval", s.interval_s)?;
        gauge(&mut e, "roce_flows", "Flows known", s.flows as f64)?;
        gauge(&mut e, "roce_flows_active", "Flows with packets in the latest interval", s.active as f64)?;
        gauge(&mut e, "roce_flow_series", "Flows with series of their own", s.series.len() as f64)?;
        let c = MetricType::Counter;
        for (name, help, n) in [
            ("roce_top_reports", "Reports taken", s.reports),
            ("roce_seen_packets", "Packets of any kind that passed", s.totals.packets),
            ("roce_seen_bytes", "Bytes of any kind that passed", s.totals.bytes),
            ("roce_other_packets", "Packets that are not RoCE", s.totals.other_packets),
            ("roce_overflow_packets", "RoCE packets for which the flow table had no room", s.totals.overflow_packets),
            ("roce_events_lost", "Events that the ring could not take", s.totals.events_lost),
        ] {
            counters(&mut e, name, help, c, &[(&none, n)])?;
        }
        for (name, help, metric) in COUNTERS {
            let n = match metric {
                // with those that are in no flow
                Metric::Packets => s.totals.roce_packets,
                Metric::Bytes => s.totals.roce_bytes,
                m => s.counts.get(*m),
            };
            counters(&mut e, &format!("roce_{name}"), help, c, &[(&none, n)])?;
        }
        let opcodes: Vec<(Labels, u64)> = s
            .opcodes
            .iter()
            .map(|(o, n)| {
                let name = Op::of(o).map_or_else(|| format!("{o:#04x}"), |o| o.name.to_owned());
                (vec![("opcode", name)], n)
            })
            .chain((s.opcodes.other > 0).then(|| (vec![("opcode", "other".to_owned())], s.opcodes.other)))
            .collect();
        let opcodes: Vec<(&Labels, u64)> = opcodes.iter().map(|(l, n)| (l, *n)).collect();
        counters(&mut e, "roce_opcode_packets", "RoCE packets by opcode", c, &opcodes)?;
        let mut flows: Vec<&Series> = s.series.values().collect();
        flows.sort_by(|a, b| a.labels.cmp(&b.labels));
        for (name, help, metric) in COUNTERS {
            let values: Vec<(&Labels, u64)> = flows
                .iter()
                .map(|f| (&f.labels, f.counts.get(*metric)))
                .chain([(&other, s.rest.get(*metric))])
                .collect();
            counters(&mut e, &format!("roce_flow_{name}"), &format!("{help}, by flow"), c, &values)?;
        }
        Ok(())
    }
}

fn counters(
    e: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    kind: MetricType,
    values: &[(&Labels, u64)],
) -> Result<(), std::fmt::Error> {
    if values.is_empty() {
        return Ok(());
    }
    let mut m = e.encode_descriptor(name, help, None, kind)?;
    for (labels, n) in values {
        if labels.is_empty() {
            // without labels there is one value, and no braces
            return match kind {
                MetricType::Gauge => ConstGauge::new(*n as f64).encode(m),
                _ => ConstCounter::new(*n).encode(m),
            };
        }
        let one = m.encode_family(*labels)?;
        match kind {
            MetricType::Gauge => ConstGauge::new(*n as f64).encode(one)?,
            _ => ConstCounter::new(*n).encode(one)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Aggregate;
    use crate::tui::fixture;

    fn observed(limit: usize, moments: &[u64]) -> (Exporter, Arc<Report>) {
        let e = Exporter::new(limit, vec![Tap { name: "eth0".to_owned(), how: "XDP \"driver\"\nTC".to_owned() }]);
        let mut a = Aggregate::default();
        let mut last = Arc::default();
        for (i, n) in moments.iter().enumerate() {
            let rows = fixture::rows(*n);
            last = a.push(1000.0 + i as f64, fixture::totals(&rows), fixture::shared(rows));
            e.observe(&last);
        }
        (e, last)
    }

    fn value(text: &str, start: &str) -> u64 {
        text.lines()
            .filter(|l| l.starts_with(start) && l.as_bytes().get(start.len()).is_some_and(|b| b" {".contains(b)))
            .map(|l| l.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or_else(|| panic!("{l}")))
            .sum()
    }

    #[test]
    fn flow_series_and_the_rest_add_up() {
        for limit in [0, 1, 2, 100] {
            let (e, report) = observed(limit, &[1, 2, 5]);
            let text = e.encode(false).expect("encodes");
            assert_eq!(value(&text, "roce_packets_total"), report.totals.roce_packets, "{text}");
            assert_eq!(value(&text, "roce_flow_packets_total"), report.totals.roce_packets, "limit {limit}");
            assert_eq!(value(&text, "roce_opcode_packets_total"), report.totals.roce_packets);
            assert_eq!(value(&text, "roce_naks_total"), report.total.get(Metric::Naks));
            assert_eq!(text.lines().filter(|l| l.starts_with("roce_flow_packets_total{")).count(), limit.min(4) + 1);
        }
    }

    #[test]
    fn hostile_names_are_escaped() {
        let (e, _) = observed(1, &[1]);
        let text = e.encode(true).expect("encodes");
        assert!(text.contains(r#"how="XDP \"driver\"\nTC""#), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_exist() {
        let dashboard: serde_json::Value =
            serde_json::from_str(include_str!("../grafana/roce-top.json")).expect("the dashboard is JSON");
        let (e, _) = observed(2, &[1, 2]);
        let text = e.encode(false).expect("encodes");
        let there: std::collections::HashSet<&str> =
            text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split(['{', ' ']).next()).collect();
        let asked = dashboard["panels"]
            .as_array()
            .expect("panels")
            .iter()
            .flat_map(|p| p["targets"].as_array().into_iter().flatten().filter_map(|t| t["expr"].as_str()));
        let mut count = 0;
        for expr in asked {
            for word in expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.starts_with("roce_"))
            {
                assert!(there.contains(word), "{word} in {expr}");
                count += 1;
            }
        }
        assert!(count > 20, "{count} metrics asked for");
    }

    #[test]
    fn health_needs_a_report() {
        assert!(Exporter::default().healthy().is_err());
        assert!(observed(1, &[1]).0.healthy().is_ok());
    }
}
