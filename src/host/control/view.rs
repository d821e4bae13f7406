//! What lists are made of: the shape of `--json`, and what the tables of `tollgate show` are drawn from. Plain values and words only.

use crate::host::cluster::view::{CcbRow, ClusterView, Page};
use serde::{Deserialize, Serialize};

pub use super::admission::{Admission, DenialRow, RefusedRow, ScopeRow};
pub use super::gateways::GatewayRow;
use super::protocol::Failure;
pub use super::span_view::{CircuitRow, DriverRow, PerformanceRow, SpanPage};
use crate::proto::cas::State;
use std::collections::BTreeMap;

/// The answer to a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// Cores.
    Cores(List<CoreRow>),
    /// Facilities: each T3 before its T1s.
    Spans(List<SpanRow>),
    /// One facility.
    Span(Box<SpanPage>),
    /// What is wrong.
    Alarms(List<AlarmRow>),
    /// Conditions that began and ended, the latest last.
    History(List<EventRow>),
    /// Endpoints.
    Endpoints(List<EndpointRow>),
    /// One endpoint.
    Endpoint(Box<EndpointRow>),
    /// Connections.
    Connections(List<ConnectionRow>),
    /// Agents.
    Agents(List<AgentRow>),
    /// H.248 gateways.
    Gateways(List<GatewayRow>),
    /// Transactions.
    Transactions(Transactions),
    /// Admission.
    Cac(Box<Admission>),
    /// The central node of a cluster.
    Cluster(Box<ClusterView>),
    /// Call control blocks.
    Ccbs(List<CcbRow>),
    /// Some of the calls of a gateway.
    Calls(Page),
    /// Counters.
    Counters(Counters),
    /// An order was carried out.
    Done(String),
    /// A reload: what changed, or would.
    Reload(Reload),
    /// It was not done.
    Error(Failure),
}

/// Rows of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct List<R> {
    /// The rows.
    pub rows: Vec<R>,
    /// How many more there are than a list may have.
    #[serde(default)]
    pub left_out: u32,
}

/// The most rows of one list.
pub const ROWS_MAX: usize = 100_000;

impl<R> List<R> {
    /// The first [`ROWS_MAX`] of `rows`.
    pub fn new(mut rows: Vec<R>) -> List<R> {
        let left_out = rows.len().saturating_sub(ROWS_MAX) as u32;
        rows.truncate(ROWS_MAX);
        List { rows, left_out }
    }
}

/// A row that can be picked by name and state.
pub trait Row {
    /// The words its state filter knows.
    const STATES: &'static [&'static str];

    /// The same, where other registers bring more of them.
    fn states() -> Vec<&'static str> {
        Self::STATES.to_vec()
    }

    /// The name a pattern is held against.
    fn name(&self) -> &str;

    /// Whether it is in the state with this word.
    fn is(&self, state: &str) -> bool;
}

/// A core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoreRow {
    /// Its number.
    pub core: String,
    /// `both`, `transport` or `shard`.
    pub role: String,
    /// The CPU it is pinned to.
    pub cpu: u16,
    /// The NUMA node of that CPU.
    pub node: u16,
    /// `up`, `silent` or `ended`.
    pub state: String,
    /// How datagrams find its socket: `by name`, `by hash`, or `-` when there is nothing to choose.
    #[serde(default)]
    pub steering: String,
    /// Since it last went round its loop, in ms.
    pub beat_age_ms: u64,
    /// Turns of its loop.
    pub turns: u64,
    /// What it said of itself; nothing when it is silent.
    pub load: Option<CoreLoad>,
    /// How long messages waited and took since the start, by kind of work.
    #[serde(default)]
    pub times: Vec<TimesRow>,
}

/// How long the messages of one kind waited and took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimesRow {
    /// A verb, `response`, or `forward` for handing a message to its core.
    pub work: String,
    /// From arrival to handling, of messages that came to this core; nothing when none did.
    pub waiting: Option<Quantiles>,
    /// The same, of messages that another core forwarded.
    pub hop: Option<Quantiles>,
    /// Handling.
    pub service: Option<Quantiles>,
}

/// A distribution of times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    /// Messages.
    pub count: u64,
    /// The median, in ns.
    pub p50_ns: u64,
    /// What 99 of 100 did not exceed, in ns.
    pub p99_ns: u64,
    /// The longest, in ns.
    pub max_ns: u64,
}

/// What a core says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CoreLoad {
    /// Endpoints it owns.
    pub endpoints: u32,
    /// Connections up.
    pub connections: u32,
    /// Smoothed time from arrival to handling, in us.
    pub sojourn_us: u64,
    /// Thousandths of the latest `overload.busy_over` in which it had work.
    pub busy_per_mille: u16,
    /// New calls are refused because it is overloaded.
    pub overloaded: bool,
    /// New calls are refused because an operator says so.
    pub draining: bool,
    /// Commands that wait for something.
    pub waiting: usize,
    /// Datagrams of several messages in hand.
    pub datagrams: usize,
    /// Part of its memory for texts of agents (`limits.text_memory`) that is in use or kept for a command, in per mille.
    pub texts_per_mille: u32,
}

impl Row for CoreRow {
    const STATES: &'static [&'static str] = &["up", "silent", "ended", "overloaded", "draining"];

    fn name(&self) -> &str {
        &self.core
    }

    fn is(&self, state: &str) -> bool {
        match state {
            "overloaded" => self.load.is_some_and(|load| load.overloaded),
            "draining" => self.load.is_some_and(|load| load.draining),
            state => self.state == state,
        }
    }
}

/// A T3, T1 or E1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpanRow {
    /// Its local name.
    pub name: String,
    /// `t3`, `t1` or `e1`.
    pub kind: String,
    /// The core that owns it; nothing for a T3, whose T1s have one each.
    pub core: Option<u8>,
    /// What operators want: `unblocked`, `leaving`, `blocked`, or `mixed`; `unknown` when the lead core is silent.
    pub administrative: String,
    /// What the line does: `up` or `down`; `unknown` when the lead core is silent.
    pub operational: String,
    /// What failed, such as `los`, of the facility itself or of its T3.
    pub failure: Option<String>,
    /// The line status word (dsx1LineStatus, dsx3LineStatus); 0 when the lead core is silent.
    pub line_status: u32,
    /// Endpoints on it.
    pub endpoints: u32,
    /// What the owners of the endpoints say; nothing when one is silent.
    pub usage: Option<SpanUsage>,
}

/// How endpoints are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpanUsage {
    /// Endpoints in service, the leaving ones included.
    pub in_service: u32,
    /// Endpoints with a connection.
    pub busy: u32,
    /// Connections.
    pub connections: u32,
}

impl Row for SpanRow {
    const STATES: &'static [&'static str] = &["up", "down", "unknown", "unblocked", "leaving", "blocked", "mixed", "idle", "busy", "out"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        match state {
            "idle" => self.usage.is_some_and(|usage| usage.busy == 0),
            "busy" => self.usage.is_some_and(|usage| usage.busy > 0),
            "out" => self.usage.is_some_and(|usage| usage.in_service < self.endpoints),
            state => self.administrative == state || self.operational == state,
        }
    }
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AlarmRow {
    /// A facility, a name of endpoints, an agent, `core 2`, or `gateway`.
    pub name: String,
    /// `failure`, `agent-silent`, `unresolved`, `restart-refused`, `draining`, `blocked`, `locked-out` or `core-silent`.
    pub kind: String,
    /// `critical`, `major` or `minor`.
    pub severity: String,
    /// What, in words.
    pub what: String,
    /// For how long, in seconds, where that is known.
    pub age_s: Option<u64>,
}

impl Row for AlarmRow {
    const STATES: &'static [&'static str] = &["critical", "major", "minor"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        self.severity == state
    }
}

/// A condition that began or ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventRow {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// What it was about, as in [`AlarmRow`].
    pub name: String,
    /// Its kind, as in [`AlarmRow`].
    pub kind: String,
    /// `critical`, `major` or `minor`.
    pub severity: String,
    /// Whether it ended.
    pub over: bool,
    /// What, in words.
    pub what: String,
}

impl Row for EventRow {
    const STATES: &'static [&'static str] = &["begun", "over", "critical", "major", "minor"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        match state {
            "begun" => !self.over,
            "over" => self.over,
            state => self.severity == state,
        }
    }
}

/// An endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndpointRow {
    /// Its local name.
    pub name: String,
    /// Its number in the topology.
    pub index: u32,
    /// The card of its span; on its own page only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// The core that owns it.
    pub core: u8,
    /// What operators want: `unblocked`, `leaving` or `blocked`; `unknown` when the lead core is silent.
    pub administrative: String,
    /// What the line does: `up` or `down`; `unknown` when the lead core is silent.
    pub operational: String,
    /// What failed, such as `los`.
    pub failure: Option<String>,
    /// Whether commands are executed.
    pub in_service: bool,
    /// The return code that refuses commands when not.
    pub refusal: Option<u16>,
    /// The restart method an audit would tell (RM).
    pub method: String,
    /// The reason an audit would tell (E); 0 when normal.
    pub reason: u16,
    /// Whether the agent knows: `waiting`, `sent` or `told`; `disconnected` when it did not answer and does not know that yet.
    pub announcement: String,
    /// The restart message that last covered it.
    pub restart: Option<RestartRow>,
    /// The notified entity; empty for where commands come from.
    pub entity: String,
    /// The identifier of the latest request (X); empty for none.
    pub request: String,
    /// `mu` or `A`.
    pub law: String,
    /// What its signalling waits for; none without channel associated signalling.
    pub line: Option<String>,
    /// How long that may last; none where it may for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_left_ms: Option<u64>,
    /// Its events and signals, once something was asked of it; on its own page only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsRow>,
    /// Its connections.
    pub connections: Vec<ConnectionRow>,
}

/// How events and signals of an endpoint stand.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct EventsRow {
    /// What an audit would tell by each of R, S, T, D, O, ES and B/PR; empty ones are left out.
    pub audit: BTreeMap<String, String>,
    /// `detected` as they come; `quarantined` until the next request, or until the Notify that is out is answered; `held` until the agent knows
    /// that the endpoint was disconnected.
    pub state: String,
    /// Events in quarantine.
    pub quarantined: usize,
    /// Notify commands without a response.
    pub unanswered: usize,
}

impl EndpointRow {
    fn line(&self) -> Option<State> {
        self.line.as_deref().and_then(State::by_name)
    }
}

impl Row for EndpointRow {
    const STATES: &'static [&'static str] =
        &["idle", "busy", "out", "up", "down", "unblocked", "leaving", "blocked", "unknown", "waiting", "sent", "disconnected", "told"];

    /// And what the signalling waits for; `idle` and `out` are more than that.
    fn states() -> Vec<&'static str> {
        let lines = State::ALL.iter().map(|state| state.name()).filter(|name| !Self::STATES.contains(name));
        Self::STATES.iter().copied().chain(lines).collect()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        match state {
            "idle" => self.in_service && self.connections.is_empty() && !self.line().is_some_and(|line| line.is_busy() || line.is_held()),
            "busy" => !self.connections.is_empty() || self.line().is_some_and(State::is_busy),
            "out" => !self.in_service,
            state => {
                let line = self.line.as_ref().is_some_and(|line| line == state);
                line || self.administrative == state || self.operational == state || self.announcement == state
            }
        }
    }
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// The endpoint's local name.
    pub endpoint: String,
    /// Its identifier (I).
    pub connection: String,
    /// Its call (C).
    pub call: String,
    /// Its mode (M).
    pub mode: String,
    /// Where it receives.
    pub local: String,
    /// The far end: an address, an endpoint with its connection, or `-`.
    pub remote: String,
    /// Encodings, the preferred first.
    pub encodings: Vec<String>,
    /// Packetization period in ms.
    pub period_ms: u16,
    /// Still being set up.
    pub pending: bool,
    /// Since it was created, in seconds.
    pub age_s: u64,
    /// PS.
    pub packets_sent: u32,
    /// OS.
    pub octets_sent: u32,
    /// PR.
    pub packets_received: u32,
    /// OR.
    pub octets_received: u32,
    /// PL.
    pub packets_lost: u32,
    /// JI, in ms.
    pub jitter_ms: u32,
    /// LA, in ms.
    pub latency_ms: u32,
    /// Packets received whose turn to be played had passed.
    pub late: u32,
    /// Octets made up in the place of what was not there.
    pub concealed_octets: u32,
    /// Times octets were left out or played again.
    pub slips: u32,
    /// Whether its media is protected (SRTP).
    pub protected: bool,
    /// Packets dropped because they came before.
    pub replayed: u32,
    /// Packets dropped because the far end did not make them as they came.
    pub unauthentic: u32,
}

impl Row for ConnectionRow {
    const STATES: &'static [&'static str] =
        &["pending", "sendonly", "recvonly", "sendrecv", "confrnce", "inactive", "loopback", "conttest", "netwloop", "netwtest"];

    fn name(&self) -> &str {
        &self.endpoint
    }

    fn is(&self, state: &str) -> bool {
        if state == "pending" { self.pending } else { self.mode == state }
    }
}

/// A call agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentRow {
    /// Its name.
    pub name: String,
    /// The addresses it may command from, `any` for all; empty while its names have none.
    pub addresses: Vec<String>,
    /// Where notifications and restarts go, best first.
    pub notify: Vec<String>,
    /// Its names in the DNS; their addresses are in both lists.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Average time to its first response, of the core that waits longest, in ms; nothing before there was one.
    #[serde(default)]
    pub response_ms: Option<u64>,
    /// Datagrams to and from it that were lost, in parts per million, as our repeats tell; nothing before there were 100.
    #[serde(default)]
    pub loss_ppm: Option<u32>,
    /// New commands a core may send it in a second, the slowest one; nothing without a limit.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Its commands that were done.
    #[serde(default)]
    pub commands_done: u64,
    /// Its commands that were refused.
    #[serde(default)]
    pub commands_refused: u64,
    /// Commands to it that it did.
    #[serde(default)]
    pub own_done: u64,
    /// Commands to it that it refused or sent elsewhere.
    #[serde(default)]
    pub own_refused: u64,
    /// Commands to it that it did not answer.
    #[serde(default)]
    pub own_lost: u64,
    /// Since a command or a response came from it last, in ms; nothing before there was one.
    #[serde(default)]
    pub heard_ms: Option<u64>,
    /// Its profile.
    #[serde(default)]
    pub profile: String,
    /// What the profile, and what is set beside it, mean.
    #[serde(default)]
    pub interop: InteropRow,
    /// What makes a repeat.
    pub duplicates: String,
    /// Whether ranges in names are used.
    pub ranges: bool,
    /// Commands of ours it has not answered.
    pub unanswered: u32,
    /// The most copies of one of them.
    pub copies_max: u32,
    /// Age of the oldest, in ms.
    pub oldest_ms: u64,
    /// What it was told, or is being told, about service.
    pub restarts: Vec<RestartRow>,
}

/// How an agent is spoken to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InteropRow {
    /// `mgcp`, `tgcp` or `any`.
    pub version: String,
    /// Whether several messages share a datagram.
    pub piggyback: bool,
    /// `confirmed`, `plain` or `off`.
    pub provisional: String,
    /// `full` or `short`.
    pub descriptions: String,
    /// `refuse` or `ignore`.
    pub unknown_options: String,
}

/// A RestartInProgress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RestartRow {
    /// The endpoints it names.
    pub name: String,
    /// How many of them nothing newer was said about.
    pub endpoints: u32,
    /// RM.
    pub method: String,
    /// E; 0 for none.
    pub reason: u16,
    /// `waiting`, `sent`, `told` or `refused`.
    pub state: String,
    /// The port a command named for it.
    pub port: Option<u16>,
    /// The code of the last answer.
    pub reply: Option<u16>,
    /// When it will be sent, in ms from now.
    pub due_ms: Option<u64>,
    /// When it was last sent, in seconds before now.
    pub sent_s: Option<u64>,
}

impl Row for AgentRow {
    const STATES: &'static [&'static str] = &["unanswered", "answered"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        (self.unanswered > 0) == (state == "unanswered")
    }
}

/// Transactions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transactions {
    /// Those of agents, per core.
    pub cores: Vec<HistoryRow>,
    /// Ours that are not answered.
    pub own: List<OwnRow>,
}

/// The history of one core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The core.
    pub core: u8,
    /// Commands running.
    pub running: usize,
    /// Of these, those that wait for a card, another core or the restart.
    pub waiting: usize,
    /// Commands running or remembered.
    pub entries: usize,
    /// The most there ever were.
    pub entries_max: usize,
    /// The most there can be.
    pub entries_limit: usize,
    /// Bytes of remembered responses.
    pub bytes: u64,
    /// The most there can be.
    pub bytes_limit: u64,
    /// Age of the oldest remembered response, in ms.
    pub oldest_ms: Option<u64>,
}

/// A command of ours that is not answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OwnRow {
    /// The core that sent it.
    pub core: u8,
    /// Its transaction identifier.
    pub id: u32,
    /// Its verb and what it is about, such as `NTFY ds/ds1-1/5`; empty for a request to an H.248 controller.
    pub command: String,
    /// The agent.
    pub agent: String,
    /// The address it is tried at.
    pub to: String,
    /// Copies sent.
    pub copies: u32,
    /// Since the first copy, in ms.
    pub age_ms: Option<u64>,
    /// Whether a provisional response came.
    pub provisional: bool,
}

impl Row for OwnRow {
    const STATES: &'static [&'static str] = &["provisional", "unanswered"];

    fn name(&self) -> &str {
        &self.agent
    }

    fn is(&self, state: &str) -> bool {
        self.provisional == (state == "provisional")
    }
}

/// Counters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Counters {
    /// The cores, in the order of each row's values.
    pub cores: Vec<u8>,
    /// Counters, in the order of the register.
    pub counters: Vec<CounterRow>,
    /// Responses sent by return code, those there were.
    pub responses: Vec<CounterRow>,
}

/// A counter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CounterRow {
    /// Its name, or a return code.
    pub name: String,
    /// What it counts; empty for a return code.
    pub help: String,
    /// Of all cores.
    pub total: u64,
    /// Of each core; empty for what no core counts.
    pub by_core: Vec<u64>,
}

impl Row for CounterRow {
    const STATES: &'static [&'static str] = &["zero", "nonzero"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        (self.total == 0) == (state == "zero")
    }
}

/// A reload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reload {
    /// Whether the changes are in force; otherwise this is what a reload would do.
    pub done: bool,
    /// The differences.
    pub changes: Vec<ChangeRow>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl Reload {
    /// Whether a reload would be refused, for something needs a restart.
    pub fn is_refused(&self) -> bool {
        !self.done && self.changes.iter().any(|change| change.needs_restart)
    }
}

/// A setting that changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangeRow {
    /// The key.
    pub key: String,
    /// The value so far, as written in a file; empty for what is new.
    pub old: String,
    /// The new one; empty for what is gone.
    pub new: String,
    /// Whether it needs a restart.
    pub needs_restart: bool,
}
