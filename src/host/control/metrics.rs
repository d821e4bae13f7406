//! Metrics: OpenMetrics text over HTTP.
//!
//! The text is written by `prometheus-client` from the counters of the cores and what they say of themselves at that moment. The HTTP
//! around it is small on purpose: one deadline for the request and one for the response, `GET /metrics` only; `guests` keeps idle
//! connections from holding up a collector. (A general server has a thread for every connection and no deadlines.)

use super::Gateway;
use super::conditions::Condition;
use super::guests::{self, Service};
use super::names::facility_name;
use super::protocol::is_retried;
use crate::host::clock::Clock;
use crate::host::cluster;
use crate::host::inside::{Part, Times};
use crate::host::transport::explain_bind;
use crate::proto::base::counters::RESPONSE_CODES;
use crate::proto::base::{Counter, Time};
use crate::proto::core::{PeerView, Tally, Work};
use crate::proto::trunk::performance::Counts;
use anyhow::{Context, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest request head, in bytes.
const HEAD_MAX: usize = 4096;
/// A request must be there so soon; the response taken so soon.
const WITHIN: Duration = Duration::from_secs(2);

/// The running server; it ends when dropped.
pub struct Server {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `address`.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub(super) fn start(gateway: Arc<Gateway>, address: SocketAddr) -> Result<Server> {
        Server::start_with(gateway.clock, Box::new(Metrics(gateway)), address)
    }

    /// Serves what `collector` has.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn start_with(clock: Clock, collector: Box<dyn Collector>, address: SocketAddr) -> Result<Server> {
        let about = || format!("metrics.address {address}");
        let listener = TcpListener::bind(address).map_err(explain_bind).with_context(about)?;
        let bound = listener.local_addr().with_context(about)?;
        let closing = Arc::new(AtomicBool::new(false));
        let mut registry = Registry::with_prefix("tollgate");
        registry.register_collector(collector);
        let listen = move || listener.accept().map(|(stream, _)| stream);
        let thread = guests::accept("metrics", listen, closing.clone(), Collectors { clock, registry })?;
        Ok(Server { address: bound, closing, thread: Some(thread) })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // The connection wakes the thread, which then sees that it is to end.
        if TcpStream::connect_timeout(&self.address, WITHIN).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// What collectors come for.
struct Collectors {
    clock: Clock,
    registry: Registry,
}

impl Service<TcpStream> for Collectors {
    fn serve(&self, stream: &TcpStream, asked: &dyn Fn()) {
        let Ok(head) = read_head(self.clock, stream) else { return };
        asked();
        // A collector that went away is no fault of ours.
        let _ = answer(self.clock, &self.registry, stream, &head);
    }

    /// The connection ends.
    fn refuse(&self, _stream: &TcpStream) {}
}

/// The response to a request with this head.
fn answer(clock: Clock, registry: &Registry, mut stream: &TcpStream, head: &[u8]) -> io::Result<()> {
    let (status, kind, body) = match route(head) {
        Ok(()) => {
            let mut body = String::new();
            match text::encode(&mut body, registry) {
                Ok(()) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", body),
                Err(_) => ("500 Internal Server Error", "text/plain", String::new()),
            }
        }
        Err(status) => (status, "text/plain", format!("{status}\n")),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let until = clock.now() + WITHIN;
    let message = [head.as_bytes(), body.as_bytes()].concat();
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(clock, until)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => rest = rest.get(length..).unwrap_or_default(),
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads up to the empty line that ends a request without a body.
fn read_head(clock: Clock, mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let until = clock.now() + WITHIN;
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < HEAD_MAX {
        stream.set_read_timeout(Some(left(clock, until)?))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => head.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

fn left(clock: Clock, until: Time) -> io::Result<Duration> {
    let left = until.since(clock.now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.max(Duration::from_millis(1))) }
}

/// Whether this asks for the metrics; otherwise the status that says why not.
fn route(head: &[u8]) -> Result<(), &'static str> {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if !version.is_some_and(|version| version.starts_with(b"HTTP/1.")) || words.next().is_some() {
        return Err("400 Bad Request");
    }
    match (method, target.and_then(|target| target.split(|&byte| byte == b'?').next())) {
        (Some(b"GET"), Some(b"/metrics")) => Ok(()),
        (Some(b"GET"), _) => Err("404 Not Found"),
        _ => Err("405 Method Not Allowed"),
    }
}

/// What is told on each request.
struct Metrics(Arc<Gateway>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let gateway = &self.0;
        let ports = &gateway.cores.ports;
        for counter in Counter::ALL {
            let help = counter.help().trim_end_matches('.');
            let values = ports.iter().map(|port| ([("core", port.core.0.to_string())], port.counters.get(*counter)));
            family(&mut encoder, counter.name(), help, values.map(|(labels, value)| (labels, ConstCounter::new(value))))?;
        }
        let mut responses = Vec::new();
        for port in ports {
            for code in 0..RESPONSE_CODES as u16 {
                let value = port.counters.responses(code);
                if value > 0 {
                    responses.push(([("core", port.core.0.to_string()), ("code", format!("{code:03}"))], ConstCounter::new(value)));
                }
            }
        }
        for (name, help, value) in gateway.names.counters.all() {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help.trim_end_matches('.'), None, MetricType::Counter)?)?;
        }
        family(&mut encoder, "responses", "Responses sent, by return code", responses.into_iter())?;
        self.encode_times(&mut encoder)?;
        self.encode_signs(&mut encoder)?;
        self.encode_loads(&mut encoder)?;
        self.encode_conditions(&mut encoder)?;
        self.encode_performance(&mut encoder)?;
        self.encode_admission(&mut encoder)?;
        self.encode_gateway(&mut encoder)
    }
}

impl Metrics {
    /// How long messages waited and took, by core, kind of work and part.
    fn encode_times(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let mut rows = Vec::new();
        for port in &self.0.cores.ports {
            for (work, part) in Work::all().flat_map(|work| Part::ALL.map(|part| (work, part))) {
                let times = port.inside.times(work, part);
                if times.count() > 0 {
                    rows.push((
                        [("core", port.core.0.to_string()), ("work", work.name().into()), ("part", part.name().into())],
                        Histogram(times),
                    ));
                }
            }
        }
        let help = "Time of messages: waiting (arrival to handling), hop (the same, forwarded by another core), service (handling)";
        family(encoder, "message_seconds", help, rows.into_iter())
    }

    /// Signs of life: known without asking.
    fn encode_signs(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let gateway = &self.0;
        let (now, alarm) = (gateway.clock.now(), gateway.config().limits.stall_alarm);
        let signs: Vec<_> = gateway.signs().map(|sign| (sign.core.0, now.since(sign.beat))).collect();
        let age = signs.iter().map(|(core, age)| (*core, age.as_secs_f64()));
        gauges(encoder, "core_beat_age_seconds", "Since the core last went round its loop", age)?;
        let silent = signs.iter().map(|(core, age)| (*core, f64::from(u8::from(*age > alarm))));
        gauges(encoder, "core_silent", "1 while the core is silent for longer than limits.stall_alarm", silent)
    }

    /// What the cores say of themselves; one that is silent says nothing.
    fn encode_loads(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let gateway = &self.0;
        let mut silent = Vec::new();
        let all: Vec<_> = gateway.cores.ports.iter().map(|port| port.core).collect();
        let loads = gateway.core_loads(&all, &mut silent);
        let each = |of: fn(&super::view::CoreLoad) -> f64| loads.iter().map(move |(core, load)| (core.0, of(load)));
        gauges(encoder, "core_endpoints", "Endpoints the core owns", each(|load| load.endpoints.into()))?;
        gauges(encoder, "core_connections", "Connections up", each(|load| load.connections.into()))?;
        let sojourn = each(|load| load.sojourn_us as f64 / 1e6);
        gauges(encoder, "core_sojourn_seconds", "Smoothed time from arrival of a command to its handling", sojourn)?;
        let busy = each(|load| f64::from(load.busy_per_mille) / 1000.0);
        gauges(encoder, "core_busy_ratio", "Part of the latest overload.busy_over in which the core had work", busy)?;
        gauges(encoder, "core_overloaded", "1 while new calls are refused for overload", each(|load| u8::from(load.overloaded).into()))?;
        gauges(encoder, "core_draining", "1 while new calls are refused by an operator", each(|load| u8::from(load.draining).into()))?;
        gauges(encoder, "core_waiting_commands", "Commands that wait for something", each(|load| load.waiting as f64))?;
        let texts = each(|load| f64::from(load.texts_per_mille) / 1000.0);
        gauges(encoder, "core_text_memory_ratio", "Part of limits.text_memory in use", texts)?;
        let (histories, own, peers) = gateway.own_and_history(&mut silent);
        self.encode_agents(encoder, &peers)?;
        let each = |of: fn(&super::view::HistoryRow) -> f64| histories.iter().map(move |row| (row.core, of(row)));
        gauges(encoder, "history_entries", "Transactions running or remembered", each(|row| row.entries as f64))?;
        gauges(encoder, "history_entries_limit", "The most transactions that can be", each(|row| row.entries_limit as f64))?;
        gauges(encoder, "history_bytes", "Bytes of remembered responses", each(|row| row.bytes as f64))?;
        gauges(encoder, "history_bytes_limit", "The most bytes that can be", each(|row| row.bytes_limit as f64))?;
        let unanswered = histories.iter().map(|row| (row.core, own.iter().filter(|own| own.core == row.core).count() as f64));
        gauges(encoder, "own_unanswered", "Commands of the gateway that wait for a response", unanswered)
    }

    /// What became of the commands of and to each agent.
    fn encode_agents(&self, encoder: &mut DescriptorEncoder, peers: &[Vec<PeerView>]) -> fmt::Result {
        let (config, now) = (self.0.config(), self.0.clock.now());
        let tally =
            |place: usize| peers.iter().filter_map(|peers| peers.get(place)).fold(Tally::default(), |sum, peer| sum.plus(peer.tally));
        let tallies: Vec<_> = config.agents.iter().enumerate().map(|(place, agent)| (agent.name.clone(), tally(place))).collect();
        let counts = tallies.iter().flat_map(|(name, tally)| {
            let parts = [
                ("agent", "done", tally.done),
                ("agent", "refused", tally.refused),
                ("gateway", "done", tally.own_done),
                ("gateway", "refused", tally.own_refused),
                ("gateway", "lost", tally.own_lost),
            ];
            parts.map(|(from, result, count)| {
                let labels = [("agent", name.clone()), ("from", from.to_owned()), ("result", result.to_owned())];
                (labels, ConstCounter::new(count))
            })
        });
        family(encoder, "agent_commands", "Commands of each agent, and of the gateway to it, by what became of them", counts)?;
        let heard = tallies.iter().filter_map(|(name, tally)| Some((name, now.since(tally.heard?).as_secs_f64())));
        let ages = heard.map(|(name, age)| ([("agent", name.clone())], ConstGauge::new(age)));
        family(encoder, "agent_heard_age_seconds", "Since a command or a response came from the agent", ages)
    }

    /// What `show alarms` lists.
    fn encode_conditions(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let conditions = self.0.conditions(&mut Vec::new());
        let labels = |condition: &Condition| {
            [("name", condition.name.clone()), ("kind", condition.kind.to_owned()), ("severity", condition.severity_word().to_owned())]
        };
        let values = conditions.iter().map(|condition| (labels(condition), ConstGauge::new(1u64)));
        family(encoder, "alarm", "1 for each alarm there is", values)
    }

    /// Scopes, and in a cluster the link to the central node (R44); nothing while that does not answer.
    fn encode_admission(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let Ok(admission) = self.0.admission(None, None, &mut Vec::new()) else { return Ok(()) };
        cluster::metrics::scopes(encoder, &admission.scopes.rows)?;
        let Some(view) = admission.link else { return Ok(()) };
        let counters = [
            ("cluster_granted", "Calls the central node admitted", view.granted),
            ("cluster_denied", "Calls the central node refused", view.denied),
            ("cluster_leased", "Calls admitted with quotas that the central node gave", view.leased),
            ("cluster_local", "Calls admitted without the central node", view.local),
            ("cluster_mended", "Parts of the calls in which both ends were found to differ", view.mended),
            ("cluster_refused", "Calls refused without the central node", view.refused),
            ("cluster_overdue", "Requests the central node did not answer in time", view.overdue),
            ("cluster_busy", "Calls decided here because the central node has too much to do", view.busy),
            ("cluster_late", "Answers of the central node to requests that were given up", view.late),
            ("cluster_stale", "Messages of an old session, or older than the last", view.stale),
            ("cluster_unreadable", "Messages of the central node that could not be read", view.unreadable),
            ("cluster_lost", "Messages to the central node for which there was no room or no connection", view.lost),
            ("cluster_syncs", "Times all calls were told to the central node", view.syncs),
        ];
        for (name, help, value) in counters {
            ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        let local = view.local_by.iter().map(|(by, count)| ([("by", by.clone())], ConstCounter::new(*count)));
        family(encoder, "cluster_local_by", "Calls admitted without the central node, by why", local)?;
        let gauges = [
            ("cluster_in_sync", "1 while the central node knows all calls of this gateway", u64::from(view.state == "in-sync")),
            ("cluster_calls", "Call legs of this gateway that count", view.calls as u64),
            ("cluster_restored", "Call legs of the last life among them, without a connection here", view.restored as u64),
            ("cluster_sync_calls", "Calls told in the last sync", view.synced),
            ("cluster_sync_microseconds", "How long the last sync took", view.sync_us),
            ("cluster_decision_p99_microseconds", "One decision in a hundred took longer, since the start", view.p99_us),
        ];
        for (name, help, value) in gauges {
            ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let decisions: Vec<(f64, u64)> =
            view.decisions.iter().map(|&(us, count)| (if us == u64::MAX { f64::INFINITY } else { us as f64 / 1e6 }, count)).collect();
        let (sum, count) = (view.decisions_us as f64 / 1e6, decisions.iter().map(|(_, count)| count).sum());
        let help = "How long calls that asked the central node waited for the decision";
        let mut metric = encoder.encode_descriptor("cluster_decision_seconds", help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(sum, count, &decisions, None)
    }

    /// Performance of facilities (RFC 4805, RFC 3896), as it adds up since the start.
    fn encode_performance(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let gateway = &self.0;
        let totals = gateway.performance_totals();
        let mut rows = |name, help, of: fn(&Counts) -> u32| {
            let label = |facility| [("facility", facility_name(&gateway.cores.plan.topology, facility))];
            let rows = totals.iter().map(|(facility, counts)| (label(*facility), ConstCounter::new(u64::from(of(counts)))));
            family(encoder, name, help, rows)
        };
        rows("facility_errored_seconds", "ES; PES of a T3", |counts| counts.es)?;
        rows("facility_severely_errored_seconds", "SES; PSES of a T3", |counts| counts.ses)?;
        rows("facility_unavailable_seconds", "UAS", |counts| counts.uas)?;
        rows("facility_slip_seconds", "CSS", |counts| counts.css)
    }

    fn encode_gateway(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let view = self.0.view();
        let mut info = |name: &str, help: &str, labels: &[(&str, &str)]| {
            encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
        };
        info("build", "The program", &[("version", &view.version)])?;
        info("gateway", "The gateway", &[("domain", &view.domain), ("simulated", if view.simulated { "1" } else { "0" })])?;
        let gauge = ConstGauge::new(i64::from(view.simulated));
        gauge.encode(encoder.encode_descriptor(
            "simulated",
            "1 when cards are simulated and carry no voice",
            None,
            MetricType::Gauge,
        )?)?;
        let uptime = ConstGauge::new(view.uptime_s);
        uptime.encode(encoder.encode_descriptor("uptime_seconds", "Since the start", None, MetricType::Gauge)?)
    }
}

/// Times as a histogram.
struct Histogram(Times);

/// Upper ends of its buckets: 2 to these powers ns, from 1 us to 1 s.
const BUCKETS: [u32; 13] = [10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30];

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let Histogram(times) = self;
        let counts = times.between(&BUCKETS);
        let rest = times.count().saturating_sub(counts.iter().sum());
        let ends = BUCKETS.iter().map(|&power| (1u64 << power) as f64 / 1e9);
        let buckets: Vec<(f64, u64)> = ends.zip(counts).chain([(f64::INFINITY, rest)]).collect();
        encoder.encode_histogram::<NoLabelSet>(times.sum_ns() as f64 / 1e9, times.count(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

/// One gauge of each core.
fn gauges(encoder: &mut DescriptorEncoder, name: &str, help: &str, values: impl Iterator<Item = (u8, f64)>) -> fmt::Result {
    family(encoder, name, help, values.map(|(core, value)| ([("core", core.to_string())], ConstGauge::new(value))))
}

/// One metric with labels; nothing when there are no values.
///
/// # Errors
/// When the text cannot be written.
pub fn family<M: EncodeMetric + TypedMetric, L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (L, M)>,
) -> fmt::Result {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for (labels, value) in values {
        value.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metrics_are_served() {
        assert_eq!(route(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Ok(()));
        assert_eq!(route(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Ok(()));
        assert_eq!(route(b"GET / HTTP/1.1\r\n\r\n"), Err("404 Not Found"));
        assert_eq!(route(b"POST /metrics HTTP/1.1\r\n\r\n"), Err("405 Method Not Allowed"));
        for bad in [&b""[..], b"\r\n\r\n", b"GET /metrics\r\n", b"GET /metrics HTTP/2 x", b"\xff\xfe", b"GET /metrics HTTP/1.1 more"] {
            assert_eq!(route(bad), Err("400 Bad Request"), "{bad:?}");
        }
    }
}
