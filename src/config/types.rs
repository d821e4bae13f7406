//! The types of settings that are particular to the gateway: words, port and unit ranges, busy polling, allowed sources.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml_edit::Value;

use super::text::is_domain;
use super::value::{DefaultPort, Fault, Written, duration_text, words};

words! {
    /// How H.248 messages are written.
    Encoding {
        /// Short keywords without white space.
        Compact = "compact",
        /// Long keywords, a line for each item.
        Pretty = "pretty",
        /// BER (RFC 3525 Annex A).
        Binary = "binary",
    }

    /// What carries H.248 messages.
    Bearer {
        /// Datagrams, with the framing of RFC 3525 D.1.
        Udp = "udp",
        /// Streams, each message in a TPKT (RFC 3525 D.2).
        Tcp = "tcp",
    }
    refused {
        /// Known, so that it is refused by name.
        Sctp = "sctp"
    }

    /// Which Adds an overloaded H.248 gateway tells its controller of.
    OverloadNotify {
        /// Each.
        Add = "add",
        /// The first one of a context.
        Context = "context",
        /// None.
        Off = "off",
    }

    /// Who decides whether there is room for a call.
    CacMode {
        /// Nobody.
        Off = "off",
        /// The gateway itself.
        Local = "local",
        /// A central node for several gateways.
        Cluster = "cluster",
        /// This is that node.
        Central = "central",
    }

    /// What becomes of new calls while the central node cannot be reached.
    Disconnected {
        /// All are taken.
        Open = "open",
        /// As many as there were.
        HoldLast = "hold-last",
        /// An equal part of the limit.
        Share = "share",
        /// None.
        Closed = "closed",
    }

    /// Whether the central node gives a limit out in parts.
    QuotaMode {
        /// If it is large enough.
        Auto = "auto",
        /// It does.
        Always = "always",
        /// Each call is asked for.
        Never = "never",
    }

    /// What calls count in.
    ScopeKind {
        /// Channels that lead to the same place.
        TrunkGroup = "trunk-group",
        /// What trunk groups share.
        Pool = "pool",
        /// Part of the packet network.
        Zone = "zone",
        /// A node of the packet network.
        Peer = "peer",
    }

    /// Which way the calls of a trunk group go.
    CallDirection {
        /// Either way.
        Both = "both",
        /// From the trunk only.
        In = "in",
        /// To the trunk only.
        Out = "out",
    }

    /// Which way a call goes.
    CallSide {
        /// From the trunk.
        In = "in",
        /// To the trunk.
        Out = "out",
    }

    /// How much calls matter.
    CallClass {
        /// As most do.
        Normal = "normal",
        /// They have head room above the limit.
        Priority = "priority",
        /// They pass.
        Emergency = "emergency",
    }

    /// What makes a command a repeat of an earlier one.
    Duplicates {
        /// The transaction id and the endpoint name as written.
        IdAndName = "id-and-name",
        /// The same content as well: a known id with other content is a new command.
        SameContent = "same-content",
    }

    /// A set of interop settings.
    Profile {
        /// RFC 3435 as it is.
        Rfc3435 = "rfc3435",
        /// The Trunking Gateway Control Protocol of PacketCable, which is MGCP 1.0 under another name.
        Tgcp = "tgcp",
        /// For agents that are not to the letter: simple datagrams, and little that is refused.
        Lenient = "lenient",
    }

    /// What stands behind `MGCP 1.0`.
    Version {
        /// Nothing; a command with a profile is refused with 528.
        Mgcp = "mgcp",
        /// `TGCP 1.0`, in the gateway's commands too; commands without are taken.
        Tgcp = "tgcp",
        /// Nothing from the gateway, whatever it is from the agent.
        Any = "any",
    }

    /// Whether a command that takes long is answered for the time being.
    Provisional {
        /// By 100, and the final response asks for an acknowledgement with an empty `K:`.
        Confirmed = "confirmed",
        /// By 100.
        Plain = "plain",
        /// Not at all.
        Off = "off",
    }

    /// The lines of the gateway's session descriptions.
    Descriptions {
        /// All of RFC 2327.
        Full = "full",
        /// `v=`, `c=`, `m=` and the payload types.
        Short = "short",
    }

    /// What becomes of options in `L:` that the gateway does not have.
    UnknownOptions {
        /// The command is refused, with 541 for an unknown one, 518 for a package's, 532 for a value.
        Refuse = "refuse",
        /// They are passed over.
        Ignore = "ignore",
    }

    /// The answer to a command that comes before the restart of its endpoint was told.
    RestartPending {
        /// The response rides behind the RSIP in one datagram.
        Piggyback = "piggyback",
        /// The command is refused with 405.
        Refuse = "405",
    }

    /// The endpoint names a restart is told by.
    RsipForm {
        /// The fewest wildcard names that cover the endpoints.
        Wildcard = "wildcard",
        /// One wildcard name for each T1 or E1.
        PerSpan = "per-span",
        /// Each endpoint by its own name.
        Each = "each",
        /// The fewest names, ranges allowed.
        Ranges = "ranges",
    }

    /// How datagrams move between kernel and cores.
    TransportKind {
        /// io_uring where possible, else mio.
        Auto = "auto",
        /// io_uring, or refuse to start.
        Uring = "uring",
        /// mio to sleep, recvmmsg and sendmmsg to move.
        Mio = "mio",
        /// AF_XDP past the kernel's network stack, or refuse to start.
        Xdp = "xdp",
    }

    /// Where the XDP program is attached.
    XdpMode {
        /// In the driver where it can, else behind it.
        Auto = "auto",
        /// In the driver.
        Native = "native",
        /// Behind the driver, in the kernel's receive path.
        Generic = "generic",
    }

    /// Whether frames are copied between the card and the gateway's memory.
    XdpCopy {
        /// Not where the driver can do without.
        Auto = "auto",
        /// They are.
        Copy = "copy",
        /// They are not.
        ZeroCopy = "zero-copy",
    }

    /// Which core's socket a datagram is put into.
    Steering {
        /// That of the core it is for, by a program in the kernel.
        Auto = "auto",
        /// One the kernel chooses by a hash of addresses and ports.
        Off = "off",
    }

    /// A kind of trunk card.
    Card {
        /// Simulated, without voice.
        Sim = "sim",
        /// A pseudowire over UDP, structure-aware (RFC 5086).
        Cesopsn = "cesopsn",
        /// A pseudowire over UDP, bit by bit (RFC 4553); the framing of the T1 is the gateway's.
        Satop = "satop",
        /// A card of the kernel's driver (DAHDI).
        Dahdi = "dahdi",
    }

    /// Whether media is protected (SRTP, RFC 3711; keys in descriptions, RFC 4568).
    Srtp {
        /// It is not; descriptions with RTP/SAVP are refused (505).
        Off = "off",
        /// As the remote description has it.
        Accept = "accept",
        /// It is; descriptions without RTP/SAVP are refused (505).
        Require = "require",
    }

    /// How a T1 is framed.
    T1Framing {
        /// Extended superframe: CRC-6 and a data link.
        Esf = "esf",
        /// Superframe.
        D4 = "d4",
    }

    /// A kind of span.
    SpanKind {
        /// 28 T1.
        T3 = "t3",
        /// 24 channels.
        T1 = "t1",
        /// 31 channels.
        E1 = "e1",
    }

    /// How the channels of a span signal.
    Signalling {
        /// Not at all: 64 kbit/s, signalled elsewhere (ISUP, PRI).
        Clear = "clear",
        /// MF digits after a wink.
        MfWink = "mf-wink",
        /// MF digits after the seizure.
        MfImmediate = "mf-immediate",
        /// DTMF digits after a wink.
        DtmfWink = "dtmf-wink",
        /// DTMF digits after the seizure.
        DtmfImmediate = "dtmf-immediate",
        /// Dial pulses after a wink.
        PulseWink = "pulse-wink",
        /// Dial pulses after the seizure.
        PulseImmediate = "pulse-immediate",
        /// Feature Group D, EANA and EAIN.
        FeatureGroupD = "feature-group-d",
        /// Operator services and 911, outgoing.
        Operator = "operator",
        /// Lines of a PBX with loop start.
        LoopStart = "pbx-loop-start",
        /// Lines of a PBX with ground start.
        GroundStart = "pbx-ground-start",
    }

    /// Who may seize the trunks of a span.
    Direction {
        /// Both ends.
        Both = "both",
        /// The far end.
        Incoming = "incoming",
        /// The gateway.
        Outgoing = "outgoing",
    }

    /// The tone that the transponder of a channel answers with the other one.
    Transponder {
        /// 2010 Hz, answered with 1780 Hz.
        Co1 = "co1",
        /// 1780 Hz, answered with 2010 Hz.
        Co2 = "co2",
    }

    /// A companding law (ITU-T G.711).
    Law {
        /// Mu-law.
        Mu = "mu",
        /// A-law.
        A = "A",
    }

    /// A codec that cards offer, named as in SDP.
    Codec {
        /// G.711 mu-law.
        Pcmu = "PCMU",
        /// G.711 A-law.
        Pcma = "PCMA",
        /// G.726 at 32 kbit/s.
        G726 = "G726-32",
        /// G.729.
        G729 = "G729",
        /// The octets of the channel as they are, for data (RFC 4040).
        Clearmode = "CLEARMODE",
    }
}

/// Who may command as one agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sources {
    /// Everybody.
    Any,
    /// These addresses, from any port.
    Only(Vec<IpAddr>),
}

impl Sources {
    /// Whether `address` is one of them.
    pub fn contain(&self, address: IpAddr) -> bool {
        match self {
            Sources::Any => true,
            Sources::Only(addresses) => addresses.contains(&address),
        }
    }
}

impl Written for Sources {
    /// The most addresses.
    type Allowed = usize;
    const KIND: &'static str = "list";

    fn allowed(most: &usize) -> String {
        format!("\"any\" or {}", Vec::<IpAddr>::allowed(&(0..=*most, ())))
    }

    fn accept(value: &Value, most: &usize) -> Option<Sources> {
        Self::read(value, most).ok()
    }

    fn show(&self) -> String {
        match self {
            Sources::Any => "\"any\"".into(),
            Sources::Only(addresses) => addresses.show(),
        }
    }

    fn read(value: &Value, most: &usize) -> Result<Sources, Vec<Fault>> {
        match value {
            Value::Array(_) => Vec::<IpAddr>::read(value, &(0..=*most, ())).map(Sources::Only),
            _ if value.as_str() == Some("any") => Ok(Sources::Any),
            _ => Err(vec![Fault { path: String::new(), span: value.span(), allowed: Self::allowed(most) }]),
        }
    }
}

/// A name in the DNS, with the UDP port used at its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name, in lower case.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl Written for Host {
    /// The port when none is written.
    type Allowed = DefaultPort;
    const KIND: &'static str = "name and port";

    fn allowed(port: &DefaultPort) -> String {
        format!("a domain name with an optional port 1..=65535 (else {0}), such as \"ca.example.net\" or \"ca.example.net:{0}\"", port.0)
    }

    fn accept(value: &Value, port: &DefaultPort) -> Option<Host> {
        let text = value.as_str()?;
        let (name, port) = match text.split_once(':') {
            Some((name, digits)) if digits.bytes().all(|b| b.is_ascii_digit()) => (name, digits.parse().ok()?),
            Some(_) => return None,
            None => (text, port.0),
        };
        // A name whose last label is digits would be an address.
        let address = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
        (port != 0 && is_domain(name) && !name.starts_with('[') && !address).then(|| Host { name: name.to_ascii_lowercase(), port })
    }

    fn show(&self) -> String {
        format!("\"{}:{}\"", self.name, self.port)
    }
}

/// How an idle core waits for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BusyPoll {
    /// It sleeps at once.
    Off,
    /// It looks for work this long after the last, then sleeps.
    For(Duration),
    /// It never sleeps.
    Always,
}

impl Written for BusyPoll {
    type Allowed = RangeInclusive<Duration>;
    const KIND: &'static str = "duration";

    fn allowed(range: &Self::Allowed) -> String {
        format!("\"off\", \"always\" or {}", Duration::allowed(range))
    }

    fn accept(value: &Value, range: &Self::Allowed) -> Option<BusyPoll> {
        match value.as_str()? {
            "off" => Some(BusyPoll::Off),
            "always" => Some(BusyPoll::Always),
            _ => Duration::accept(value, range).map(BusyPoll::For),
        }
    }

    fn show(&self) -> String {
        match self {
            BusyPoll::Off => "\"off\"".into(),
            BusyPoll::For(duration) => format!("\"{}\"", duration_text(*duration)),
            BusyPoll::Always => "\"always\"".into(),
        }
    }
}

/// Consecutive ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The first one, even.
    pub first: u16,
    /// The last one, odd.
    pub last: u16,
}

impl PortRange {
    /// Pairs of an even port and the next: what a connection needs.
    pub fn pairs(self) -> u32 {
        (u32::from(self.last) + 1).saturating_sub(u32::from(self.first)) / 2
    }

    /// Whether `port` is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl Written for PortRange {
    type Allowed = ();
    const KIND: &'static str = "port range";

    fn allowed(_: &()) -> String {
        "an even and a larger odd port in 1024..=65535, such as \"16384-32767\"".into()
    }

    fn accept(value: &Value, _: &()) -> Option<PortRange> {
        let (first, last) = parse_range(value.as_str()?)?;
        (first >= 1024 && first < last && first % 2 == 0 && last % 2 == 1).then_some(PortRange { first, last })
    }

    fn show(&self) -> String {
        format!("\"{}-{}\"", self.first, self.last)
    }
}

/// The numbers of spans alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Units {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

/// The largest number of a span.
const UNIT_MAX: u16 = 999;

impl Written for Units {
    type Allowed = ();
    const KIND: &'static str = "count";

    fn allowed(_: &()) -> String {
        format!("1..={UNIT_MAX}, or a range of them such as \"1-16\"")
    }

    fn accept(value: &Value, _: &()) -> Option<Units> {
        let (first, last) = match value.as_integer() {
            Some(one) => u16::try_from(one).ok().map(|unit| (unit, unit))?,
            None => parse_range(value.as_str()?)?,
        };
        (first >= 1 && first <= last && last <= UNIT_MAX).then_some(Units { first, last })
    }

    fn show(&self) -> String {
        if self.first == self.last { self.first.to_string() } else { format!("\"{}-{}\"", self.first, self.last) }
    }
}

/// `first-last`, digits only.
fn parse_range(text: &str) -> Option<(u16, u16)> {
    let number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    let (first, last) = text.split_once('-')?;
    Some((number(first)?, number(last)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_of_ports_and_units() {
        let ports = PortRange::accept(&value("\"16384-32767\""), &()).unwrap();
        assert_eq!((ports.pairs(), ports.contains(16384), ports.contains(32768)), (8192, true, false));
        for bad in ["\"16385-32767\"", "\"16384-32766\"", "\"32767-16384\"", "\"0-3\"", "\"16384-65536\"", "\"+16384-32767\"", "16384"] {
            assert!(PortRange::accept(&value(bad), &()).is_none(), "{bad}");
        }
        assert_eq!(Units::accept(&value("7"), &()), Some(Units { first: 7, last: 7 }));
        assert_eq!(Units::accept(&value("\"1-16\""), &()).unwrap().show(), "\"1-16\"");
        for bad in ["0", "-1", "1000", "\"5-1\"", "\"7\"", "\"0-3\"", "\"1-1000\"", "1.0"] {
            assert!(Units::accept(&value(bad), &()).is_none(), "{bad}");
        }
    }

    #[test]
    fn hosts_are_names_with_a_port() {
        let read = |text: &str| Host::accept(&value(text), &DefaultPort(2727)).map(|host| host.show());
        assert_eq!(read("\"CA1.example.net\"").as_deref(), Some("\"ca1.example.net:2727\""));
        assert_eq!(read("\"ca:5000\"").as_deref(), Some("\"ca:5000\""));
        for bad in ["\"\"", "\"192.0.2.1\"", "\"ca.1\"", "\"[::1]\"", "\"ca:0\"", "\"ca:x\"", "\"ca:\"", "\"a b\"", "\"ca:70000\"", "7"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn any_source_only_by_the_word() {
        assert_eq!(Sources::read(&value("\"any\""), &2).ok(), Some(Sources::Any));
        for bad in ["\"\"", "\"127.0.0.1\"", "[\"any\"]", "[\"10.0.0.1\", \"10.0.0.2\", \"10.0.0.3\"]"] {
            assert!(Sources::read(&value(bad), &2).is_err(), "{bad}");
        }
        assert!(Sources::read(&value("[\"10.0.0.1\", \"::1\"]"), &2).is_ok_and(|s| s.contain([10, 0, 0, 1].into())));
    }
}
