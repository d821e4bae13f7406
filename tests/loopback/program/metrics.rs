//! Metrics over HTTP.

use super::agent::Agent;
use super::gateway::{Gateway, SOON, Tuning, Watch};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One request, the whole response: status, head, body.
fn http(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

pub fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    http(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

/// Every sample, by name with labels. The text must be what OpenMetrics allows: families that do not mix, a type and a help for each
/// before its samples, counters that end in `_total`, numbers, and `# EOF` at the end.
pub fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("# EOF"));
    assert!(text.ends_with("# EOF\n"));
    let (mut family, mut kind) = ("", "");
    let (mut families, mut samples) = (Vec::new(), BTreeMap::new());
    for line in lines {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            assert!(words.len() == 3 && ["HELP", "TYPE", "UNIT"].contains(&words[0]), "{line}");
            if words[1] != family {
                assert!(!families.contains(&words[1]), "{line}: a family in two pieces");
                families.push(words[1]);
                (family, kind) = (words[1], "");
            }
            if words[0] == "TYPE" {
                kind = words[2];
                assert!(["counter", "gauge", "info", "histogram"].contains(&kind), "{line}");
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (metric, labels) = name.split_once('{').map_or((name, ""), |(metric, labels)| (metric, labels.strip_suffix('}').unwrap()));
        let suffix = metric.strip_prefix(family).unwrap_or_else(|| panic!("{line}: under {family}"));
        let suffixes: &[&str] = match kind {
            "gauge" => &[""],
            "counter" => &["_total"],
            "info" => &["_info"],
            _ => &["_sum", "_count", "_bucket"],
        };
        assert!(suffixes.contains(&suffix), "{line}");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (key, value) = label.split_once('=').unwrap();
            assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
            assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{line}");
        }
        assert_eq!(samples.insert(name.to_owned(), value.parse().unwrap()), None, "{line}: twice");
    }
    samples
}

#[test]
fn metrics_are_what_openmetrics_allows_and_what_show_says() {
    let gateway = Gateway::start(Tuning::new().layout(2, 0, 0));
    let mut agent = Agent::of(&gateway);
    for n in 1..=8 {
        agent.create(&format!("ds/ds3-1/ds1-{n}/1"));
    }
    let (status, head, body) = get(gateway.tuning.addresses.metrics(), "/metrics");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    let samples = samples(&body);
    let sum = |metric: &str| samples.iter().filter(|(name, _)| name.split('{').next() == Some(metric)).map(|(_, value)| value).sum::<f64>();
    assert_eq!((sum("tollgate_crcx_done_total"), sum("tollgate_core_connections"), sum("tollgate_core_endpoints")), (8.0, 8.0, 672.0));
    assert_eq!((sum("tollgate_simulated"), sum("tollgate_core_silent")), (1.0, 0.0));
    for core in 0..2 {
        assert!(samples.contains_key(&format!("tollgate_datagrams_received_total{{core=\"{core}\"}}")));
    }
    // Each message was timed, where it was handled and by what it was.
    let sum_of = |metric: &str, labels: &[&str]| {
        let wanted = |name: &str| name.split('{').next() == Some(metric) && labels.iter().all(|label| name.contains(label));
        samples.iter().filter(|(name, _)| wanted(name)).map(|(_, value)| value).sum::<f64>()
    };
    let count = |part: &str| sum_of("tollgate_message_seconds_count", &["work=\"CRCX\"", &format!("part=\"{part}\"")]);
    assert_eq!((count("service"), count("waiting") + count("hop")), (8.0, 8.0));
    assert_eq!(sum_of("tollgate_message_seconds_bucket", &["work=\"CRCX\"", "part=\"service\"", "le=\"+Inf\""]), 8.0);
    for core in gateway.rows(&["cores"]) {
        let row = core["times"].as_array().unwrap().iter().find(|row| row["work"] == "CRCX").unwrap_or_else(|| panic!("{core}"));
        let service = &row["service"];
        let of = |key: &str| service[key].as_u64().unwrap();
        assert!(of("count") == 4 && of("p50_ns") > 0 && of("p50_ns") <= of("p99_ns") && of("p99_ns") <= of("max_ns"), "{row}");
    }
    assert!(gateway.order(&["show", "cores"]).contains("SERVICE p50"));
    // Every counter of `show counters` is there.
    for row in gateway.show(&["counters"])["counters"]["counters"].as_array().unwrap() {
        // What no core counts has no core.
        let core = if row["by_core"].as_array().unwrap().is_empty() { "" } else { "{core=\"0\"}" };
        let name = format!("tollgate_{}_total{core}", row["name"].as_str().unwrap());
        assert!(samples.contains_key(&name), "{name}");
    }
}

#[test]
fn other_requests_are_refused() {
    let gateway = Gateway::start(Tuning::new());
    let address = gateway.tuning.addresses.metrics();
    for path in ["/", "/metrics/", "/metric", "/../metrics"] {
        assert_eq!(get(address, path).0, 404, "{path}");
    }
    assert_eq!(http(address, "POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n").0, 405);
    assert_eq!(http(address, "nonsense\r\n\r\n").0, 400);
    assert_eq!(get(address, "/metrics?x=1").0, 200);
}

/// Collectors that say nothing, or do not read, hold up neither each other's next one nor a call.
#[test]
fn a_slow_collector_holds_up_nobody() {
    let gateway = Gateway::start(Tuning::new());
    let mut agent = Agent::of(&gateway);
    let address = gateway.tuning.addresses.metrics();
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut deaf = TcpStream::connect(address).unwrap();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let watch = Watch::start();
    assert_eq!(get(address, "/metrics").0, 200, "at once, although each of the others may take 2 s");
    agent.create("ds/ds3-1/ds1-1/1");
    // They are let go when their time is over.
    for mut stream in silent.into_iter().chain([deaf]) {
        stream.set_read_timeout(Some(SOON)).unwrap();
        assert!(matches!(stream.read(&mut [0; 16]), Ok(0) | Err(_)));
    }
    assert!(watch.elapsed() < SOON);
}
