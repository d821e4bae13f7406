//! What a core is told at boot ([`Plan`], never changes) and what a reload may change ([`Settings`]).

use crate::proto::aggregate::Forms;
use crate::proto::base::{AgentId, CoreId, EndpointIndex, EndpointRange, Time, TransactionId};
use crate::proto::cac;
use crate::proto::cas::{self, Signalling};
use crate::proto::codec::mgcp::Domain;
use crate::proto::codec::mgcp::NotifiedEntity;
use crate::proto::endpoint::{Encoding, Encodings, Law, OwnedSpan};
use crate::proto::overload::Levels;
use crate::proto::overload::telling::Manner;
use crate::proto::package::ChannelKind;
use crate::proto::transaction::pace::PaceSettings;
use crate::proto::transaction::{self, history, outgoing};
use crate::proto::trunk::{Topology, placement};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The smallest `max_response`, in bytes: MGCP datagrams of 4000 bytes must be supported (RFC 3435 3.5.4).
pub const SMALLEST_MAX_RESPONSE: usize = 4000;
/// The largest payload of a UDP datagram over IPv4, in bytes.
pub const LARGEST_DATAGRAM: u16 = 65_507;

/// Everything that is fixed while the gateway runs; the same for all cores.
#[derive(Debug)]
pub struct Plan {
    /// The endpoints and their names.
    pub topology: Arc<Topology>,
    /// Per span of the topology: how it starts.
    pub spans: Vec<SpanPlan>,
    /// The domain names the gateway answers to; the first is the one it uses of its own accord. Lower case.
    pub domains: Vec<Box<[u8]>>,
    /// The addresses it listens on.
    pub listen: Vec<SocketAddr>,
    /// How many cores there are.
    pub cores: u8,
    /// The cores that own endpoints, ascending. Never empty.
    pub owners: Vec<CoreId>,
    /// Sizes.
    pub limits: Limits,
    /// The times of channel associated signalling.
    pub times: cas::Times,
    /// What admission control counts in; `None`: it is off.
    pub admission: Option<Admission>,
    /// The gateways that H.248 controllers see, each with spans of its own.
    pub gateways: Vec<GatewayPlan>,
    /// The wall clock at [`Time::ZERO`], in milliseconds since 1970 (UTC).
    pub epoch_ms: u64,
}

/// Of the number of a listen address: what comes from there came on a stream, and what is sent from there leaves on one.
pub const STREAM: u8 = 0x80;

/// How messages of H.248 are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MessageEncoding {
    /// Text (RFC 3525 Annex B) with short keywords. Both forms of text are read.
    #[default]
    Compact,
    /// Text with long keywords and a line for each item.
    Pretty,
    /// BER (RFC 3525 Annex A); text is not read.
    Binary,
}

/// A gateway as H.248 controllers see it (RFC 3525 11.1): its own identifier, address, terminations and ROOT. One core runs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayPlan {
    /// Its name in configuration and displays.
    pub name: String,
    /// Its message identifier, as written in the header of its messages.
    pub message_id: String,
    /// Its place among [`Plan::listen`]: there it is served, and nothing else is.
    pub listen: u8,
    /// It speaks over streams (TCP) and takes no datagrams.
    pub streams: bool,
    /// The core that runs it.
    pub core: CoreId,
    /// Whether its channels lie on the cores that the numbers of their spans say; else they are on the core that runs it.
    pub spread: bool,
    /// Its controllers, in the order in which it registers with them (ASC-01).
    pub controllers: Vec<SocketAddr>,
    /// Whether it has spans of a T3: its maximum waiting delay is shorter then (RFC 3525 9.2).
    pub has_t3: bool,
    /// How it writes, and in binary also reads.
    pub encoding: MessageEncoding,
    /// The longest message it writes, in bytes of text; a longer reply is error 533. In binary it is sent in twice as many octets at most.
    pub max_message: u16,
    /// Connections it can have at a time.
    pub connections: u32,
}

impl GatewayPlan {
    /// The listen address it sends from, with [`STREAM`] where it speaks over streams.
    pub fn local(&self) -> u8 {
        if self.streams { self.listen | STREAM } else { self.listen }
    }
}

/// What admission control counts in.
#[derive(Debug)]
pub struct Admission {
    /// The scopes.
    pub tree: cac::Tree,
    /// By endpoint: its trunk group, [`cac::ScopeId::NONE`] where there is none.
    pub groups: Vec<cac::ScopeId>,
    /// How long a claim, or the node's decision, is waited for (R39).
    pub decide_within: std::time::Duration,
    /// Whether each call is asked for at the node of a cluster ([`cac::asker`]). [`Settings::admission`] then limits nothing.
    pub cluster: bool,
    /// In a cluster, by scope: whether calls are admitted when nobody says in time whether they may
    /// ([`Policy::Open`](cac::Policy::Open)).
    pub open: Vec<bool>,
}

impl Admission {
    /// Whether a call of this charge is admitted when nobody says in time whether it may.
    pub fn is_open_to(&self, charge: &cac::Charge) -> bool {
        self.cluster && charge.scopes().all(|scope| self.open.get(usize::from(scope.0)).copied().unwrap_or(false))
    }

    /// The trunk group of an endpoint; [`cac::ScopeId::NONE`] where there is none.
    pub fn group(&self, endpoint: EndpointIndex) -> cac::ScopeId {
        self.groups.get(endpoint.0 as usize).copied().unwrap_or(cac::ScopeId::NONE)
    }
}

/// How a span starts; by default one of clear channels with the mu law, of the first agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanPlan {
    /// Line coding.
    pub law: Law,
    /// The agent its endpoints notify until told otherwise.
    pub agent: AgentId,
    /// How its channels signal.
    pub signalling: Signalling,
    /// The gateway of [`Plan::gateways`] whose controllers have it; `None`: it is MGCP's.
    pub gateway: Option<u8>,
    /// Whether it is a T1 with superframes (D4), whose errored seconds are others (RFC 4805 3.4.3).
    pub superframe: bool,
    /// Whether signalling takes the lowest bit of each sixth octet of its channels: they carry no data bit by bit then.
    pub robbed: bool,
}

/// Sizes of the tables of one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: u32,
    /// Connections per endpoint, 1..=4 (more: 540).
    pub connections_per_endpoint: u8,
    /// Blocks of 240 bytes for remote descriptions, lists of events, digit maps and entity names.
    pub blob_blocks: u32,
    /// Notified entities in use at a time.
    pub entities: u16,
    /// Commands that wait for a card, another core or the restart.
    pub jobs: u16,
    /// Received frames that may stay in hand: datagrams of several messages, and those another core has. There are more of them to
    /// receive into.
    pub datagrams: u16,
    /// Messages per datagram; more are dropped.
    pub messages_per_datagram: u8,
    /// Endpoints handled per turn in work over many.
    pub slice: u32,
    /// The largest datagram accepted, in bytes.
    pub datagram: u16,
    /// Responses remembered.
    pub history_entries: u32,
    /// Bytes for remembered responses.
    pub history_bytes: u64,
    /// Commands of our own outstanding.
    pub own_commands: u32,
}

/// Everything a reload may change; the same for all cores.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Who may command. The place in the list is the [`AgentId`].
    pub agents: Vec<AgentSettings>,
    /// What the gateway offers, in its order of preference.
    pub encodings: Encodings,
    /// Timers.
    pub timers: Timers,
    /// When the names of an agent that does not answer are looked up again.
    pub lookups: Lookups,
    /// What is done so that neither side is swamped (RFC 3435 4.4.8).
    pub load_control: LoadControl,
    /// When new calls are refused.
    pub overload: Levels,
    /// What H.248 gateways tell of it.
    pub telling: Manner,
    /// What each scope of [`Plan::admission`] allows, in its order.
    pub admission: Vec<cac::Limits>,
}

/// When the names of an agent that does not answer are looked up again (RFC 3435 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookups {
    /// After Max1 repeats to its first address.
    pub at_max1: bool,
    /// After Max2 repeats to its last address.
    pub at_max2: bool,
    /// How long the answer to the latter is waited for.
    pub wait: Duration,
}

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups { at_max1: true, at_max2: true, wait: Duration::from_millis(2500) }
    }
}

/// What is done so that neither side is swamped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadControl {
    /// How new commands to an agent are paced.
    pub pace: PaceSettings,
    /// Commands that wait on a core from which on agents are told so by 101.
    pub queue_high: u16,
    /// Commands that wait on a core down to which they are told so; below `queue_high`.
    pub queue_low: u16,
}

impl LoadControl {
    /// Commands that wait from which on, and down to which, agents are told 101.
    pub fn marks(&self) -> (u16, u16) {
        (self.queue_high, self.queue_low)
    }
}

impl Default for LoadControl {
    fn default() -> LoadControl {
        LoadControl { pace: PaceSettings::default(), queue_high: 1024, queue_low: 512 }
    }
}

/// One agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentSettings {
    /// Its name in configuration and displays.
    pub name: String,
    /// The notified entity it is provisioned as, as written in `N:`.
    pub entity: String,
    /// Names it is known under in `N:`, lower case, beside its addresses.
    pub domains: Vec<String>,
    /// Source addresses it commands from.
    pub addresses: Vec<IpAddr>,
    /// Whether it commands from any address.
    pub any_address: bool,
    /// Where its notifications and restarts go, in order.
    pub notify: Vec<SocketAddr>,
    /// When the names its addresses come from were last looked up; [`Time::ZERO`]: not yet; `None`: it has none, its addresses are
    /// provisioned.
    pub resolved: Option<Time>,
    /// Names it understands from us.
    pub forms: Forms,
    /// Whether `[1-12]` in its names is a range.
    pub ranges: bool,
    /// Whether a repeat must have the same content (for agents that restart their identifiers).
    pub same_content: bool,
    /// Before the restart is acknowledged: refuse with 405 instead of putting the restart in front of the response.
    pub refuse_while_restarting: bool,
    /// Largest response in bytes; a larger one is 533.
    pub max_response: usize,
    /// Final responses are filled up with blanks behind their comment to a multiple of [`PADDED_TO`](crate::proto::codec::mgcp::PADDED_TO).
    pub pad_responses: bool,
    /// Whether a span that dies sends a DeleteConnection for each of its connections.
    pub delete_on_failure: bool,
    /// The return code of what admission control refuses; `None`: 403, and 404 for want of bandwidth.
    pub admission_code: Option<u16>,
    /// How it wants to be spoken to.
    pub manners: Manners,
}

/// How an agent wants to be spoken to: what differs between agents though RFC 3435 leaves it no choice, or leaves it open. The default
/// is the RFC's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manners {
    /// The profile behind `MGCP 1.0` (RFC 3435 3.2.1.4).
    pub version: Version,
    /// Whether several messages may share a datagram (3.5.5); else they follow each other.
    pub piggyback: bool,
    /// Whether and how a command that takes long is answered for the time being (3.5.6).
    pub provisional: Provisional,
    /// Whether descriptions have all lines of RFC 2327, or only those MGCP needs (3.4).
    pub full_descriptions: bool,
    /// Whether options in `L:` that the gateway does not know, or does not have, are passed over; else 518, 532 or 541.
    pub ignores_options: bool,
}

/// The profile an agent speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// None: `MGCP 1.0`. Commands with a profile are refused with 528.
    Mgcp,
    /// `MGCP 1.0 TGCP 1.0`, in the gateway's commands too; commands without are taken.
    Tgcp,
    /// None; whatever an agent writes behind `MGCP 1.0` is passed over.
    Any,
}

/// Provisional responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provisional {
    /// 100, and the final one asks for an acknowledgement by an empty `K:`.
    Confirmed,
    /// 100, and the final one is repeated when the command is.
    Plain,
    /// None.
    Off,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners {
            version: Version::Mgcp,
            piggyback: true,
            provisional: Provisional::Confirmed,
            full_descriptions: true,
            ignores_options: false,
        }
    }
}

impl Manners {
    /// What stands behind `MGCP 1.0` in commands to the agent; empty for nothing.
    pub fn profile(&self) -> &'static str {
        if self.version == Version::Tgcp { "TGCP 1.0" } else { "" }
    }

    /// Whether a command with `profile` behind its version is taken, however it is spelled.
    pub fn takes_profile(&self, profile: &[u8]) -> bool {
        match self.version {
            Version::Mgcp => profile.is_empty(),
            Version::Tgcp => profile.is_empty() || profile.eq_ignore_ascii_case(self.profile().as_bytes()),
            Version::Any => true,
        }
    }
}

/// Timers (RFC 3435 3.5, 4.3, 4.4; section F of the requirements).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// T-HIST.
    pub history: Duration,
    /// T-MAX.
    pub max: Duration,
    /// Max1: repeats to an address before the next is tried.
    pub max1: u8,
    /// Whether Max1 follows the loss to and from each agent instead.
    pub max1_by_loss: bool,
    /// Max2: repeats to the last address.
    pub max2: u8,
    /// First retransmission time-out.
    pub rto_initial: Duration,
    /// Shortest one.
    pub rto_min: Duration,
    /// Longest one.
    pub rto_max: Duration,
    /// LONGTRAN.
    pub long_transaction: Duration,
    /// Longest time a command may take (406).
    pub transaction_limit: Duration,
    /// After this a running command is answered 100.
    pub provisional_after: Duration,
    /// How long a core may take to vote, and a command over many endpoints to wait for another.
    pub vote: Duration,
    /// A core that has not gone round its loop for longer is silent.
    pub stall: Duration,
    /// MWD: longest wait before the restart is announced; `None`: 2.5 s for one T1 or E1, 60 ms for more.
    pub max_waiting_delay: Option<Duration>,
    /// Tdinit.
    pub disconnected_initial: Duration,
    /// Tdmin.
    pub disconnected_min: Duration,
    /// Tdmax.
    pub disconnected_max: Duration,
    /// T-partial: between digits, while more are needed.
    pub digit_partial: Duration,
    /// T-critical: between digits, when only the timer is missing.
    pub digit_critical: Duration,
    /// A connection that has been up for longer is the event G/ld.
    pub long_duration: Duration,
    /// A defect that lasts so long is a failure.
    pub alarm_declare: Duration,
    /// A failure ends when the defect is gone for so long.
    pub alarm_clear: Duration,
    /// Changes of service within this time are announced together.
    pub alarm_merge: Duration,
}

impl Plan {
    /// The core that handles commands for the endpoint name `local`.
    pub fn home(&self, local: &[u8]) -> CoreId {
        match *self.owners {
            [only] => only,
            _ => self.owner_at(placement::home(local, self.owners.len())),
        }
    }

    /// The core that owns `endpoint`.
    pub fn owner(&self, endpoint: EndpointIndex) -> CoreId {
        if let Some(gateway) = self.gateway_of(endpoint).and_then(|gateway| self.gateways.get(usize::from(gateway))) {
            return gateway.core;
        }
        self.owner_at(placement::owner(&self.topology, endpoint, self.owners.len()).unwrap_or(0))
    }

    /// The core whose card carries `endpoint`: the one that owns it, unless its H.248 gateway is spread.
    pub fn carrier(&self, endpoint: EndpointIndex) -> CoreId {
        match self.gateway_of(endpoint).and_then(|gateway| self.gateways.get(usize::from(gateway))) {
            Some(gateway) if !gateway.spread => gateway.core,
            _ => self.owner_at(placement::owner(&self.topology, endpoint, self.owners.len()).unwrap_or(0)),
        }
    }

    /// The cards of H.248 gateways: whose, and on which core. The core that runs a gateway has one of it whether it carries spans or not.
    pub fn gateway_cards(&self) -> impl Iterator<Item = (u8, CoreId)> {
        let cores = |place: u8| self.owners.iter().map(move |core| (place, *core));
        (0..self.gateways.len() as u8).flat_map(cores).filter(|&(place, core)| {
            let runs = self.gateways.get(usize::from(place)).is_some_and(|gateway| gateway.core == core);
            runs || self.carried_spans(place, core).next().is_some()
        })
    }

    /// The spans of an H.248 gateway that the card of `core` carries, ascending.
    pub fn carried_spans(&self, gateway: u8, core: CoreId) -> impl Iterator<Item = EndpointRange> {
        let spans = self.gateway_spans(gateway).map(|span| span.range);
        spans.filter(move |range| self.carrier(EndpointIndex(range.first)) == core)
    }

    /// Which part of what cards share a card has, and how many parts there are: those of cores come first, then those of gateways.
    pub fn card_part(&self, core: CoreId, gateway: Option<u8>) -> (u32, u32) {
        let parts = self.owners.len() + self.gateway_cards().count();
        let place = match gateway {
            None => self.ordinal(core).unwrap_or(0),
            Some(gateway) => self.owners.len() + self.gateway_cards().position(|card| card == (gateway, core)).unwrap_or(0),
        };
        (place as u32, parts as u32)
    }

    /// The H.248 gateway that has `endpoint`; `None`: it is MGCP's.
    pub fn gateway_of(&self, endpoint: EndpointIndex) -> Option<u8> {
        if self.gateways.is_empty() {
            return None;
        }
        self.spans.get(usize::from(self.topology.span_of(endpoint)?.0))?.gateway
    }

    /// The H.248 gateway that is served at this listen address, whatever the transport.
    pub fn gateway_at(&self, listen: u8) -> Option<u8> {
        self.gateways.iter().position(|gateway| gateway.listen == listen & !STREAM).map(|place| place as u8)
    }

    /// The spans of an H.248 gateway, ascending.
    pub fn gateway_spans(&self, gateway: u8) -> impl Iterator<Item = OwnedSpan> {
        let spans = self.topology.spans().iter().zip(&self.spans).filter(move |(_, plan)| plan.gateway == Some(gateway));
        spans.map(|(span, plan)| OwnedSpan { range: span.endpoints, law: plan.law, agent: plan.agent })
    }

    /// The core that sent our command `id`: identifiers are drawn so that id mod owners tells.
    pub fn sender(&self, id: TransactionId) -> CoreId {
        self.owner_at(id as usize % self.owners.len().max(1))
    }

    /// The core that leads: it hosts the restart coordinator.
    pub fn lead(&self) -> CoreId {
        self.owner_at(0)
    }

    /// A domain name of the gateway, as `EndpointIndex`es of a core note it; the first for a place there is none at.
    pub fn domain(&self, place: u8) -> &[u8] {
        self.domains.get(usize::from(place)).or(self.domains.first()).map_or(&[], |domain| domain)
    }

    /// The listen address to send from towards `to`: the first of its family.
    pub fn listen_towards(&self, to: SocketAddr) -> u8 {
        self.listen.iter().position(|address| address.is_ipv4() == to.is_ipv4()).unwrap_or(0) as u8
    }

    /// The spans of MGCP that `core` owns, ascending.
    pub fn owned_spans(&self, core: CoreId) -> impl Iterator<Item = OwnedSpan> {
        let ordinal = self.ordinal(core);
        self.topology.spans().iter().zip(&self.spans).filter_map(move |(span, plan)| {
            let owner = placement::owner(&self.topology, EndpointIndex(span.endpoints.first), self.owners.len());
            let owned = ordinal.is_some() && owner == ordinal && plan.gateway.is_none();
            owned.then_some(OwnedSpan { range: span.endpoints, law: plan.law, agent: plan.agent })
        })
    }

    /// How `endpoint` signals.
    pub fn signalling(&self, endpoint: EndpointIndex) -> Signalling {
        let span = self.topology.span_of(endpoint).and_then(|span| self.spans.get(usize::from(span.0)));
        span.map_or(Signalling::default(), |span| span.signalling)
    }

    /// Whether what `endpoint` carries comes out as it went in, so that data can pass (RFC 4040).
    pub fn is_clear(&self, endpoint: EndpointIndex) -> bool {
        let span = self.topology.span_of(endpoint).and_then(|span| self.spans.get(usize::from(span.0)));
        !span.is_some_and(|span| span.robbed)
    }

    /// What `endpoint` is provisioned as.
    pub fn channel_kind(&self, endpoint: EndpointIndex) -> ChannelKind {
        self.signalling(endpoint).kind
    }

    /// What the channels of each span of the topology are.
    pub fn kinds(&self) -> Vec<ChannelKind> {
        self.spans.iter().map(|span| span.signalling.kind).collect()
    }

    /// The place of `core` among the owners; `None` for a core that only moves datagrams.
    pub fn ordinal(&self, core: CoreId) -> Option<usize> {
        self.owners.iter().position(|&owner| owner == core)
    }

    /// The core of this ordinal among the owners; core 0 beyond the last.
    pub fn owner_at(&self, ordinal: usize) -> CoreId {
        self.owners.get(ordinal).copied().unwrap_or_default()
    }
}

impl Limits {
    /// A part of the history, a sixteenth of it, only serves deletions.
    pub fn history(&self, largest: u16) -> history::Limits {
        history::Limits {
            entries: self.history_entries as usize,
            bytes: self.history_bytes as usize,
            reserve_entries: self.history_entries as usize / 16,
            reserve_bytes: self.history_bytes as usize / 16,
            largest,
        }
    }

    /// What one core's own commands may use.
    pub fn outgoing(&self, ordinal: u32, owners: u32) -> outgoing::Limits {
        outgoing::Limits { commands: self.own_commands, large: self.own_commands / 4, ordinal, owners }
    }
}

impl Default for Timers {
    /// Those of the built-in tuning file.
    fn default() -> Timers {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        Timers {
            history: s(30),
            max: s(20),
            max1: 5,
            max1_by_loss: false,
            max2: 7,
            rto_initial: ms(200),
            rto_min: ms(100),
            rto_max: s(4),
            long_transaction: s(5),
            transaction_limit: s(10),
            provisional_after: ms(200),
            vote: ms(500),
            stall: ms(500),
            max_waiting_delay: None,
            disconnected_initial: s(15),
            disconnected_min: s(15),
            disconnected_max: s(600),
            digit_partial: s(16),
            digit_critical: s(4),
            long_duration: s(3600),
            alarm_declare: ms(2500),
            alarm_clear: s(10),
            alarm_merge: ms(200),
        }
    }
}

impl AgentSettings {
    /// An agent at one address, without options, known as `name@[address]:port`.
    pub fn at(name: &str, address: SocketAddr) -> AgentSettings {
        AgentSettings {
            name: name.into(),
            entity: format!("{name}@[{}]:{}", address.ip(), address.port()),
            domains: Vec::new(),
            addresses: vec![address.ip()],
            any_address: false,
            notify: vec![address],
            resolved: None,
            forms: Forms::default(),
            ranges: false,
            same_content: false,
            refuse_while_restarting: false,
            pad_responses: false,
            max_response: SMALLEST_MAX_RESPONSE,
            delete_on_failure: true,
            admission_code: None,
            manners: Manners::default(),
        }
    }

    /// Its notified entity at `port`, as written in `N:`; at its provisioned port when that is 0.
    pub fn entity_at(&self, port: u16) -> String {
        match self.entity.rsplit_once(':') {
            Some((host, _)) if port != 0 => format!("{host}:{port}"),
            _ => self.entity.clone(),
        }
    }
}

impl Settings {
    /// G.711 for these agents, with the timers and levels of the built-in tuning file.
    pub fn new(agents: Vec<AgentSettings>) -> Settings {
        let encodings = [&b"PCMU"[..], b"PCMA"].into_iter().filter_map(Encoding::by_name).collect();
        Settings {
            agents,
            encodings,
            timers: Timers::default(),
            lookups: Lookups::default(),
            load_control: LoadControl::default(),
            overload: Levels::default(),
            telling: Manner::default(),
            admission: Vec::new(),
        }
    }

    /// The largest response any agent takes, in bytes.
    pub fn largest_response(&self) -> u16 {
        let largest = self.agents.iter().map(|agent| agent.max_response).max().unwrap_or(0);
        largest.clamp(SMALLEST_MAX_RESPONSE, usize::from(LARGEST_DATAGRAM)) as u16
    }

    /// The timers of transactions.
    pub fn transaction(&self) -> transaction::Timers {
        let Settings { timers, lookups, .. } = self;
        transaction::Timers {
            t_hist: timers.history,
            t_max: timers.max,
            max1: timers.max1,
            max1_by_loss: timers.max1_by_loss,
            max2: timers.max2,
            rto_initial: timers.rto_initial,
            rto_min: timers.rto_min,
            rto_max: timers.rto_max,
            longtran: timers.long_transaction,
            query_max1: lookups.at_max1,
            query_max2: lookups.at_max2,
            query_wait: lookups.wait,
            jitter: true,
        }
    }

    /// The agent that commands from `address`, if any may.
    pub fn agent_at(&self, address: IpAddr) -> Option<AgentId> {
        let listed = |agent: &AgentSettings| agent.addresses.contains(&address);
        let place = self.agents.iter().position(listed).or_else(|| self.agents.iter().position(|agent| agent.any_address))?;
        Some(AgentId(place as u8))
    }

    /// The agent that a notified entity names: by one of its domains, or by an address.
    pub fn agent_named(&self, entity: &NotifiedEntity<'_>) -> Option<AgentId> {
        let at = |agent: &AgentSettings, address: IpAddr| {
            agent.addresses.contains(&address) || agent.notify.iter().any(|notify| notify.ip() == address)
        };
        let named = |agent: &AgentSettings| match entity.domain {
            Domain::Ip4(address) => at(agent, address.into()),
            Domain::Ip6(address) => at(agent, address.into()),
            Domain::Name(name) => agent.domains.iter().any(|domain| domain.as_bytes().eq_ignore_ascii_case(name)),
            Domain::Number(_) => false,
        };
        self.agents.iter().position(named).map(|place| AgentId(place as u8))
    }

    /// One agent's settings; those of the first when `agent` is no longer in the list.
    pub fn agent(&self, agent: AgentId) -> Option<&AgentSettings> {
        self.agents.get(usize::from(agent.0)).or(self.agents.first())
    }

    /// How this agent wants to be spoken to; the RFC's way for one that is not known any more.
    pub fn manners(&self, agent: AgentId) -> Manners {
        self.agent(agent).map_or_else(Manners::default, |agent| agent.manners)
    }
}
