//! The settings of a valid tuning file, as plain values, and what directly follows from them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dahdi::DriverSpan;
use super::defaults::*;
use super::pseudowire::Wire;
use super::types::{Card, Direction, Law, Signalling, SpanKind};
use super::value::Auto;
use crate::proto::base::AgentId;

/// Every setting. One that exists went through all checks.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Names and listen addresses.
    pub gateway: Gateway,
    /// The agents; their places are their [`AgentId`].
    pub agents: Vec<Agent>,
    /// How names of agents are looked up.
    pub dns: Dns,
    /// Cores and CPUs.
    pub cores: Cores,
    /// Sockets and frames.
    pub transport: Transport,
    /// AF_XDP.
    pub xdp: Xdp,
    /// The simulated card (`[cards.sim]`).
    pub sim: SimCard,
    /// Pseudowires (`[cards.cesopsn]`).
    pub cesopsn: CesopsnCard,
    /// Cards of the kernel's driver (`[cards.dahdi]`).
    pub dahdi: DahdiCard,
    /// The spans, one each, in the order of the file.
    pub spans: Vec<Span>,
    /// The gateways that H.248 controllers see.
    pub h248: Vec<H248>,
    /// Times of channel associated signalling.
    pub cas: Cas,
    /// Protocol timers.
    pub timers: Timers,
    /// Bounds on memory and work.
    pub limits: Limits,
    /// Overload levels.
    pub overload: Overload,
    /// Pacing and queues.
    pub load_control: LoadControl,
    /// Admission control.
    pub cac: Cac,
    /// What calls count in, in the order of the file.
    pub scopes: Vec<ScopeEntry>,
    /// Operator socket.
    pub operator: Operator,
    /// Metrics.
    pub metrics: Metrics,
    /// Log.
    pub log: Log,
}

impl Config {
    /// The maximum waiting delay: `timers.mwd`, or the examples of RFC 3435 4.4.6 by what spans there are.
    pub fn mwd(&self) -> Duration {
        let t3 = self.spans.iter().any(|span| span.kind == SpanKind::T3);
        self.timers.mwd.fixed().copied().unwrap_or(Duration::from_millis(if t3 { 60 } else { 2500 }))
    }

    /// The agent the endpoints of `span` belong to until told otherwise.
    pub fn agent_of(&self, span: &Span) -> AgentId {
        AgentId(self.agents.iter().position(|agent| agent.name == span.agent).unwrap_or(0) as u8)
    }

    /// Where the operator socket is. `runtime_dir` is `$XDG_RUNTIME_DIR`, ignored unless absolute; `uid` the user's number. Without
    /// a runtime directory it is in `/tmp/tollgate-<uid>`, which whoever binds there makes with mode 0700 and accepts only when it is
    /// a directory of that user and mode.
    pub fn operator_socket(&self, runtime_dir: Option<&Path>, uid: u32) -> PathBuf {
        match (&self.operator.socket, runtime_dir.filter(|dir| dir.is_absolute())) {
            (Auto::Fixed(path), _) => path.clone(),
            (Auto::Auto, Some(dir)) => dir.join("tollgate.sock"),
            (Auto::Auto, None) => PathBuf::from(format!("/tmp/tollgate-{uid}/tollgate.sock")),
        }
    }

    /// All T1 and E1 lines, in the order of the spans: the units a core owns.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.spans.iter().flat_map(|span| span.lines().map(|line| Line { gateway: self.gateway_of(span), ..line }))
    }

    /// The H.248 gateway that has `span`.
    pub fn gateway_of(&self, span: &Span) -> Option<u8> {
        let name = span.h248.as_ref()?;
        self.h248.iter().position(|gateway| gateway.name.eq_ignore_ascii_case(name)).map(|place| place as u8)
    }

    /// How an H.248 gateway names itself.
    pub fn message_id(&self, gateway: &H248) -> String {
        match gateway.message_id.fixed() {
            Some(id) => id.clone(),
            None => format!("[{}]:{}", gateway.listen.ip(), gateway.listen.port()),
        }
    }

    /// The UDP addresses served: those of MGCP, then those of H.248.
    pub fn listen(&self) -> Vec<SocketAddr> {
        self.gateway.listen.iter().copied().chain(self.h248.iter().map(|gateway| gateway.listen)).collect()
    }
}

/// How the work is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Every core does everything; `None`: as many as the CPUs allow.
    Both(Option<u8>),
    /// Some cores move datagrams, the others run endpoints.
    Split {
        /// Cores that move datagrams, at least 1.
        transport: u8,
        /// Cores that run endpoints, at least 1.
        shard: u8,
    },
}

impl Cores {
    /// The layout the three counts stand for.
    pub fn layout(&self) -> Layout {
        match (self.transport, self.shard) {
            (0, _) | (_, 0) => Layout::Both(self.both.fixed().copied()),
            (transport, shard) => Layout::Split { transport, shard },
        }
    }
}

/// One span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// What it is.
    pub kind: SpanKind,
    /// The number in its name.
    pub unit: u16,
    /// The card it is on.
    pub card: Card,
    /// The pseudowire of its first line, when it is on such a card; those of the others have the next ports.
    pub wire: Option<Wire>,
    /// The driver's span of its first line, when it is on such a card; those of the others have the next numbers.
    pub dahdi: Option<DriverSpan>,
    /// Whether a channel of each line carries signalling and is no endpoint: 24 of a T1, 16 of an E1.
    pub common_channel: bool,
    /// The companding law of its channels.
    pub law: Law,
    /// How its channels signal.
    pub signalling: Signalling,
    /// Who may seize its trunks.
    pub direction: Direction,
    /// Whether the gateway gives way when both ends seize.
    pub yields: bool,
    /// The name of the agent its endpoints belong to at first.
    pub agent: String,
    /// The name of the H.248 gateway whose controllers have it.
    pub h248: Option<String>,
}

/// A T1 or E1, alone or inside a T3: the smallest thing a core owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its local name, such as `ds/ds3-1/ds1-5`.
    pub name: String,
    /// The last number in its name; it decides the home core.
    pub unit: u16,
    /// How many endpoints it has.
    pub endpoints: u32,
    /// The H.248 gateway that has it; its core has the line then.
    pub gateway: Option<u8>,
    /// Whether it is on a card that carries a voice.
    pub is_real: bool,
}

/// T1 in a T3 (RFC 3896 2.1).
const T1_PER_T3: u16 = 28;

impl Span {
    /// Its local name: `ds/ds3-1`, `ds/ds1-3` or `ds/e1-2` (RFC 3435 E.2).
    pub fn name(&self) -> String {
        let kind = match self.kind {
            SpanKind::T3 => "ds3",
            SpanKind::T1 => "ds1",
            SpanKind::E1 => "e1",
        };
        format!("ds/{kind}-{}", self.unit)
    }

    /// Whether it is on a card that carries a voice.
    pub fn is_real(&self) -> bool {
        self.wire.is_some() || self.dahdi.is_some()
    }

    /// Whether its signalling takes bits of the octets of its channels. In CESoPSN it comes beside them, and an E1 has channel 16 for it.
    pub fn robs_bits(&self) -> bool {
        let is_robbed = self.dahdi.is_some() || self.wire.is_some_and(|wire| wire.framing.is_some());
        is_robbed && self.kind != SpanKind::E1 && self.signalling != Signalling::Clear
    }

    /// The T1 or E1 it consists of.
    pub fn lines(&self) -> impl Iterator<Item = Line> + use<> {
        let (name, kind, own, is_real) = (self.name(), self.kind, self.unit, self.is_real());
        let channels = if kind == SpanKind::E1 { 31 } else { 24 };
        let endpoints = channels - u32::from(self.common_channel);
        let units = if kind == SpanKind::T3 { 1..=T1_PER_T3 } else { own..=own };
        units.map(move |unit| {
            let name = if kind == SpanKind::T3 { format!("{name}/ds1-{unit}") } else { name.clone() };
            Line { name, unit, endpoints, gateway: None, is_real }
        })
    }

    /// How many endpoints it has.
    pub fn endpoints(&self) -> u32 {
        self.lines().map(|line| line.endpoints).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(kind: SpanKind, common_channel: bool) -> Span {
        Span {
            kind,
            unit: 7,
            card: Card::Sim,
            wire: None,
            dahdi: None,
            common_channel,
            law: Law::Mu,
            signalling: Signalling::Clear,
            direction: Direction::Both,
            yields: false,
            agent: "ca".into(),
            h248: None,
        }
    }

    #[test]
    fn spans_have_the_names_and_channels_of_their_kind() {
        let t3 = span(SpanKind::T3, false);
        assert_eq!((t3.endpoints(), t3.lines().count()), (672, 28));
        assert_eq!(
            t3.lines().last().unwrap(),
            Line { name: "ds/ds3-7/ds1-28".into(), unit: 28, endpoints: 24, gateway: None, is_real: false }
        );
        let t1 = span(SpanKind::T1, true);
        assert_eq!(
            t1.lines().collect::<Vec<_>>(),
            [Line { name: "ds/ds1-7".into(), unit: 7, endpoints: 23, gateway: None, is_real: false }]
        );
        assert_eq!((span(SpanKind::E1, false).name().as_str(), span(SpanKind::E1, true).endpoints()), ("ds/e1-7", 30));
    }

    #[test]
    fn the_operator_socket_is_the_users_own() {
        let mut config = Config::default_embedded();
        let socket = |config: &Config, dir: Option<&str>| config.operator_socket(dir.map(Path::new), 1000);
        assert_eq!(socket(&config, Some("/run/user/1000")), Path::new("/run/user/1000/tollgate.sock"));
        for none in [None, Some(""), Some("run")] {
            assert_eq!(socket(&config, none), Path::new("/tmp/tollgate-1000/tollgate.sock"));
        }
        config.operator.socket = Auto::Fixed("/run/tg.sock".into());
        assert_eq!(socket(&config, Some("/run/user/1000")), Path::new("/run/tg.sock"));
    }
}
