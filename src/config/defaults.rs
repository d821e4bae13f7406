//! The register: every setting, with its type, default, allowed values, whether `reload` may change it, and why.
//!
//! All a setting needs follows from its line: field, reading, range check, `docs/configuration.md`, the reload difference. `tuning/gateway.toml`
//! is checked against it by a test. Form: `key: type = default in allowed; reload` (or `restart`: takes effect at the next start only).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::file::{Section, Setting, Table};
use super::text::{CURVE_KEY, DOMAIN, IDENTIFIER, INTERFACE, LOG_FILTER, MEMBER, MESSAGE_ID, PREFIX};
use super::types::*;
use super::value::{Auto, Bytes, DefaultPort, Written};

macro_rules! default {
    (required) => {
        None
    };
    ($value:tt) => {
        Some($value)
    };
}

macro_rules! reloadable {
    (reload) => {
        true
    };
    (restart) => {
        false
    };
}

macro_rules! register {
    ($(
        $(#[doc = $about:literal])+
        $section:ident = $table:literal {
            $($(#[doc = $reason:literal])+ $field:ident: $type:ty = $default:tt in $allowed:expr; $when:tt)+
        }
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $section { $($(#[doc = $reason])+ pub $field: $type,)+ }

        impl Section for $section {
            const TABLE: &'static str = $table;
            const ABOUT: &'static str = concat!($($about,)+).trim_ascii();
            const SETTINGS: &'static [Setting] = &[$(Setting {
                key: stringify!($field),
                kind: <$type as Written>::KIND,
                allowed: || <$type as Written>::allowed(&$allowed),
                default: || { let default: Option<$type> = default!($default); default.map(|value| value.show()) },
                reloadable: reloadable!($when),
                reason: concat!($($reason,)+).trim_ascii(),
            },)+];

            fn read(table: &mut Table<'_, '_>) -> Option<$section> {
                $(let $field: Option<$type> = table.setting(stringify!($field), &$allowed, default!($default));)+
                Some($section { $($field: $field?,)+ })
            }

            fn show(&self) -> Vec<(&'static Setting, String)> {
                Self::SETTINGS.iter().zip([$(self.$field.show(),)+]).collect()
            }
        }
    )+};
}

/// Calls `$use!` with every section type, in the order of the file: the one list of tables.
macro_rules! sections {
    ($use:ident) => {
        $use! { Gateway Agent Dns Cores Transport Xdp SimCard CesopsnCard DahdiCard SpanEntry H248 Cas Timers Limits Overload LoadControl Cac ScopeEntry Operator Metrics Log }
    };
}
pub(super) use sections;

register! {
    /// Who the gateway is and where it listens.
    Gateway = "gateway" {
        /// The domain name of the gateway, the part of an endpoint name behind the `@`.
        domain: String = (text("tgw.example.net")) in &DOMAIN; restart
        /// Other domain names agents may use for it. The bracketed listen addresses, such as `[127.0.0.1]`, always work.
        aliases: Vec<String> = (Vec::new()) in (0..=16, &DOMAIN); restart
        /// The UDP addresses MGCP is served on, IPv4 and IPv6. 2427 is the gateway's port of RFC 3435 3.5. The wildcard
        /// addresses are refused: a response must leave from the address its command came to.
        listen: Vec<SocketAddr> = (vec![loopback(2427)]) in (1..=8, DefaultPort(2427)); restart
        /// The DiffServ code point of what the gateway sends. 40 is CS5, the telephony signalling class of RFC 4594 4.2.
        dscp: u8 = 40 in 0..=63; restart
    }

    /// A call agent: who may command the gateway, and how to treat it. One table for each agent; anybody else is dropped and counted.
    Agent = "agent" {
        /// A short name for logs and lists.
        name: String = required in &IDENTIFIER; reload
        /// The domain names the agent goes by in `N:` (notified entity) parameters. Any of them means its `notify` addresses.
        known_as: Vec<String> = (Vec::new()) in (0..=16, &DOMAIN); reload
        /// The addresses that may command, from any port; `"any"` lets everybody in and must be meant. Empty when `hosts` are all.
        addresses: Sources = required in 32; reload
        /// Where notifications and restarts go, best first; after Max1 repeats the next one is tried. 2727 is the call agent's
        /// port of RFC 3435 3.5. Responses come from here, so each must be among `addresses`. Empty when `hosts` are all.
        notify: Vec<SocketAddr> = required in (0..=8, DefaultPort(2727)); reload
        /// Names of the agent in the DNS. Every address one of them has may command, and notifications and restarts go there too,
        /// at this port, behind those of `notify`. Used in `N:`, each means this agent.
        hosts: Vec<Host> = (Vec::new()) in (0..=8, DefaultPort(2727)); reload
        /// Whether endpoint names may hold ranges such as `[1-12]` (RFC 3435 E.5): both sides must be set for it, so it is off.
        ranges: bool = false in (); reload
        /// How the agent wants to be spoken to: what the settings below that are `"auto"` mean (`docs/decisions/interop.md`). `"rfc3435"` is the
        /// RFC's way, `"tgcp"` the same with the profile's name, `"lenient"` for agents that are not to the letter.
        profile: Profile = (Profile::Rfc3435) in (); reload
        /// The profile behind `MGCP 1.0` in commands, both ways. `"auto"`: `"tgcp"` with that profile, `"any"` with `"lenient"`, else `"mgcp"`.
        version: Auto<Version> = (Auto::Auto) in (); reload
        /// Whether the gateway may put several messages into one datagram (RFC 3435 3.5.5). Without, they follow each other in datagrams of
        /// their own, the network may reorder them, and a Notify waits for the answer to the one before. `"auto"`: false with `"lenient"`, else true.
        piggyback: Auto<bool> = (Auto::Auto) in (); reload
        /// Whether a command that takes longer than `timers.provisional_after` is answered 100, and whether its final response asks for an
        /// acknowledgement (RFC 3435 3.5.6). `"auto"`: `"plain"` with `"lenient"`, else `"confirmed"`.
        provisional: Auto<Provisional> = (Auto::Auto) in (); reload
        /// The lines of session descriptions. `"auto"`: `"full"`, which RFC 3435 3.4 wants; `"short"` is for agents that know no more.
        descriptions: Auto<Descriptions> = (Auto::Auto) in (); reload
        /// What becomes of a command with options in `L:` that the gateway does not have. `"auto"`: `"ignore"` with `"lenient"`, else `"refuse"`.
        unknown_options: Auto<UnknownOptions> = (Auto::Auto) in (); reload
        /// What makes a repeat: the transaction id and the endpoint name, or the same content too, for agents that restart their
        /// ids when they restart. `"auto"`: `"same-content"` with `"lenient"`, else `"id-and-name"`.
        duplicates: Auto<Duplicates> = (Auto::Auto) in (); reload
        /// The answer to a command that comes before the restart was told: the response behind the RSIP in one datagram, or 405.
        restart_pending: RestartPending = (RestartPending::Piggyback) in (); reload
        /// The longest response in octets; a longer one becomes 533. 4000 is what every agent must take (RFC 3435 3.5.4).
        max_response: u32 = 4000 in 4000..=65507; reload
        /// Whether responses are filled up with blanks behind their comment to a multiple of 16 octets: more of them are then of equal
        /// length and leave in one send (`transport.coalesce`). The grammar allows it (RFC 3435 appendix A, responseString); off
        /// because an agent may not.
        pad_responses: bool = false in (); reload
        /// Whether the gateway deletes the connections of a failed span with DLCX of its own.
        dlcx_on_failure: bool = true in (); reload
        /// The return code of what admission control refuses (`[[scope]]`). `"off"`: 403, and 404 for want of bandwidth (RFC 3435 2.4). A
        /// code of 500 and more makes many agents take the endpoint out of use.
        admission_code: Option<u16> = (None) in 400..=599; reload
        /// The names a restart is told by. The fewest wildcard names suit every agent that follows RFC 3435; the others are for
        /// agents that only match what they provisioned.
        rsip_form: RsipForm = (RsipForm::Wildcard) in (); reload
    }

    /// How the `hosts` of agents are looked up. What was found stays until something of use is: a name server that is down, or answers
    /// with what no agent can have (a multicast address, the gateway's own, loopback when the gateway listens elsewhere), changes
    /// nothing but `show alarms`. Of the addresses of a name 8 are used, those in use already first.
    Dns = "dns" {
        /// The name servers. Empty: those of `/etc/resolv.conf`.
        servers: Vec<SocketAddr> = (Vec::new()) in (0..=4, DefaultPort(53)); reload
        /// How long an answer is waited for; at the start the gateway waits so long for the first ones.
        timeout: Duration = (seconds(2)) in millis(100)..=seconds(30); reload
        /// Whether the hosts of an agent are looked up again when Max1 repeats to its first address were not answered (RFC 3435 4.3),
        /// unless that was done within 5 s.
        query_at_max1: bool = true in (); reload
        /// The same when Max2 repeats to its last address were not: new addresses are tried before the endpoint counts as disconnected.
        query_at_max2: bool = true in (); reload
    }

    /// The pinned threads that do the work, and their CPUs.
    Cores = "cores" {
        /// How many cores receive, run endpoints and send. `"auto"`: one for each CPU but one, so that the machine stays usable;
        /// none when `transport` and `shard` are set.
        both: Auto<u8> = (Auto::Auto) in 1..=CORES_MAX; restart
        /// How many cores only receive and send: for network cards with fewer queues than cores. Needs `shard`.
        transport: u8 = 0 in 0..=CORES_MAX; restart
        /// How many cores only run endpoints, served by the `transport` cores.
        shard: u8 = 0 in 0..=CORES_MAX; restart
        /// The CPUs the cores are pinned to, in the order of the cores. `"auto"`: all the process may use, leaving the first one,
        /// which takes most interrupts, to everything else while there are enough.
        cpus: Auto<Vec<u16>> = (Auto::Auto) in (1..=usize::from(CORES_MAX), 0..=4095); restart
        /// The NUMA nodes CPUs are taken from. `"auto"`: all, filled one after the other as /sys tells them, so that cores which
        /// talk to each other share a node as long as they can.
        numa_nodes: Auto<Vec<u16>> = (Auto::Auto) in (1..=64, 0..=1023); restart
        /// The CPU of the control loop (operator socket, metrics, reload). It has little to do: `"off"` leaves it unpinned.
        housekeeping_cpu: Option<u16> = (None) in 0..=4095; restart
        /// How long an idle core looks for work before it sleeps: `"off"` sleeps at once, `"50us"` after that time without work,
        /// `"always"` never. Waking costs 20 us and more; spinning costs a CPU, which a laptop should not pay by default.
        busy_poll: BusyPoll = (BusyPoll::Off) in (micros(1)..=seconds(1)); restart
    }

    /// Sockets and datagram buffers, per core.
    Transport = "transport" {
        /// How datagrams move. `"auto"`: io_uring where the kernel allows it, else mio with recvmmsg; the choice is printed. `"xdp"`
        /// passes the kernel's network stack by: it needs privileges and a network card, and so is only taken by name.
        kind: TransportKind = (TransportKind::Auto) in (); restart
        /// Whether a small program in the kernel puts each datagram into the socket of the core it is for, by endpoint name or
        /// transaction id. `"off"`: the kernel chooses by addresses, so all from one port of an agent comes to one core, which
        /// forwards. Needs no privileges; where it is refused the gateway says so and forwards.
        steering: Steering = (Steering::Auto) in (); restart
        /// Whether responses of equal length to one agent leave in one send, which the kernel or the network card cuts into datagrams
        /// again (UDP_SEGMENT). Sending is most of what a transaction costs. The agent sees no difference; where a path refuses
        /// (IPsec, no checksum offload) they go one by one.
        coalesce: bool = true in (); restart
        /// io_uring only: CPUs for the kernel's submission threads (SQPOLL), one for each core that has sockets, none of them a core's.
        /// Empty: no such threads. They save the cores their system calls and cost a CPU each.
        sqpoll_cpus: Vec<u16> = (Vec::new()) in (0..=usize::from(CORES_MAX), 0..=4095); restart
        /// How long a core polls the network card's queue itself before it sleeps (NAPI). For real cards, see tuning/check; with mio CAP_NET_ADMIN.
        napi_busy_poll: Option<Duration> = (None) in (micros(1)..=millis(10)); restart
        /// The receive buffer of each socket: 4 MiB hold 5000 small datagrams. The kernel caps it at net.core.rmem_max (see tuning/check).
        receive_buffer: Bytes = (mib(4)) in kib(64)..=mib(1024); restart
        /// Frames of a core to receive into, a power of two. More than 256 cost 2 to 5 % in cache misses and win nothing. Beside them a core
        /// has 1536 for datagrams that other cores work on (a `transport` core with three shards or more 3072), of which one core has half to a
        /// quarter at the most, the less the more there are, and 4096 for commands that wait.
        receive_frames: u16 = 256 in 16..=32768; restart
        /// The longest datagram taken, in octets; a longer one is dropped and counted. RFC 3435 3.5.4 asks for 4000 at least.
        receive_frame_bytes: u32 = 4096 in 4096..=65536; restart
        /// Send frames of a core. When all are in flight the core stops taking datagrams until one is free.
        send_frames: u16 = 512 in 16..=32768; restart
        /// The longest datagram sent, in octets: at least the largest `max_response` of the agents.
        send_frame_bytes: u32 = 4096 in 4096..=65536; restart
    }

    /// AF_XDP, with `transport.kind = "xdp"`: what agents send is taken from the network card before the kernel looks at it.
    Xdp = "xdp" {
        /// The interface all listen addresses are served on. `"auto"`: for each the one that has the address, which may be a VLAN;
        /// bonds, bridges and other interfaces that are no card are refused.
        interface: Auto<String> = (Auto::Auto) in &INTERFACE; restart
        /// Receive queues used, counted from 0. `"auto"`: all. They go round the cores; what comes by another queue, or an answer of
        /// a core without one, goes by the kernel.
        queues: Auto<u8> = (Auto::Auto) in 1..=64; restart
        /// Where the XDP program is attached: `"native"` in the driver, `"generic"` behind it, `"auto"` in the driver if it can.
        mode: XdpMode = (XdpMode::Auto) in (); restart
        /// `"zero-copy"`: the card reads and writes the gateway's memory; `"copy"`: the kernel copies; `"auto"`: as the driver can.
        copy: XdpCopy = (XdpCopy::Auto) in (); restart
        /// The driver sleeps when it has nothing to do and is woken by a system call. Without, it spins in interrupt context.
        need_wakeup: bool = true in (); restart
        /// The core runs the driver's receive loop itself, so long per look. For real cards together with
        /// napi_defer_hard_irqs and gro_flush_timeout; over veth it was seen to lose datagrams.
        busy_poll: Option<Duration> = (None) in micros(1)..=millis(1); restart
        /// Receive frames of a core, of 4 KiB each; on huge pages when there are any. They hold a burst while the core is busy.
        frames: u16 = 2048 in 64..=32768; restart
        /// Whether packet filters (nftables, iptables) may be passed by. While it is off, any that could match is a reason to refuse.
        bypass_firewall: bool = false in (); restart
    }

    /// The simulated trunk card. It carries no voice.
    SimCard = "cards.sim" {
        /// Whether a gateway with simulated cards may listen beyond loopback, where somebody could take it for a real one.
        allow_network: bool = false in (); restart
        /// The address the card puts into session descriptions.
        media_address: IpAddr = (IpAddr::V4(Ipv4Addr::LOCALHOST)) in (); restart
        /// The ports the card puts into session descriptions, an even one for each connection. The default is the user range below
        /// what Linux hands out by itself (32768 and up).
        media_ports: PortRange = (PortRange { first: 16384, last: 32767 }) in (); restart
        /// The codecs all cards offer, best first. G.711 is what a trunk carries; data calls need CLEARMODE (RFC 4040).
        codecs: Vec<Codec> = (vec![Codec::Pcmu, Codec::Pcma]) in (1..=5, ()); restart
        /// How long a core works for each connection that is opened, beside what it needs anyhow: with it a gateway has a known capacity that
        /// tests of overload exceed. For tests only; 0: nothing.
        open_cost: Duration = (Duration::ZERO) in Duration::ZERO..=millis(100); restart
        /// Whether media is protected by SRTP (RFC 3711), with keys in descriptions (RFC 4568): `"off"` refuses RTP/SAVP (505), `"accept"` answers as the
        /// remote description has it, `"require"` offers RTP/SAVP and refuses all else (505). Descriptions are all that simulated cards have of it.
        srtp: Srtp = (Srtp::Off) in (); restart
    }

    /// Spans that come in pseudowires (CESoPSN, RFC 5086, and SAToP, RFC 4553), and the RTP ports of the connections of all spans that carry a voice.
    CesopsnCard = "cards.cesopsn" {
        /// The address connections send and receive RTP at.
        media_address: IpAddr = (IpAddr::V4(Ipv4Addr::LOCALHOST)) in (); restart
        /// The RTP ports, an even one for each connection and the next one for its RTCP. They are held while the connection is up; when none
        /// is left a connection is refused (403).
        media_ports: PortRange = (PortRange { first: 16384, last: 32767 }) in (); restart
        /// The DiffServ code point of pseudowires and RTP. 46 is expedited forwarding (RFC 4553 8, RFC 4594 4.1).
        dscp: u8 = 46 in 0..=63; restart
        /// A connection whose far end has sent, and is to send (sendrecv or confrnce), and of which nothing has come for so long, neither RTP nor
        /// RTCP, is deleted, and the agent told so (DLCX, reason 902). An H.248 controller is told where it asks for `nt/netfail`. 0: never.
        media_timeout: Duration = (Duration::ZERO) in Duration::ZERO..=seconds(3_600); restart
        /// Whether a connection sends to where packets come from, and takes them from wherever the first one came, whatever the remote
        /// description says: for far ends behind address translation. Else packets from elsewhere are dropped and counted, and only an agent
        /// changes an address.
        symmetric_rtp: bool = false in (); restart
        /// The quality alert of RTP (R/qa): more packets than so many of 1,000 are lost within five seconds. 0: loss is not looked at. At 5 % even
        /// concealed loss is heard in every sentence.
        quality_loss: u16 = 50 in 0..=1_000; restart
        /// The quality alert: the far end is further away than this, one way, as RTCP tells. 0: not looked at. 400 ms is the most that ITU-T G.114
        /// allows.
        quality_delay: Duration = (millis(400)) in Duration::ZERO..=seconds(10); restart
        /// The quality alert: the arrival of packets varies by more than this. 0: not looked at.
        quality_jitter: Duration = (millis(60)) in Duration::ZERO..=seconds(1); restart
        /// Whether media is protected by SRTP (RFC 3711), with keys in descriptions (RFC 4568): `"off"` refuses RTP/SAVP (505), `"accept"` answers as the
        /// remote description has it, `"require"` offers RTP/SAVP and refuses all else (505). Inside the gateway nothing is protected.
        srtp: Srtp = (Srtp::Off) in (); restart
    }

    /// Spans of the kernel's telephony driver (DAHDI), with RTP ports of `[cards.cesopsn]`. `tollgate probe` tells what this machine lacks of them.
    DahdiCard = "cards.dahdi" {
        /// So much of a channel is read and written at a time, in whole ms: a voice waits one of it on its way from the trunk, two to four on its way to it.
        block: Duration = (millis(10)) in millis(5)..=millis(30); restart
    }

    /// A trunk span, or several of a kind. One table for each.
    SpanEntry = "span" {
        /// `"t3"`: 28 T1 of 24 channels, `ds/ds3-1/ds1-5/17`. `"t1"`: 24 channels, `ds/ds1-5/17`. `"e1"`: 31 channels, `ds/e1-5/17`.
        kind: SpanKind = required in (); restart
        /// The number in its name: `1`, or `"1-16"` for sixteen alike.
        unit: Units = required in (); restart
        /// Its card: `"sim"`, `"cesopsn"` for a T1 or E1 in a pseudowire, `"satop"` for a T1 with its framing in one, `"dahdi"` for one of the kernel's driver.
        card: Card = (Card::Sim) in (); restart
        /// In a pseudowire: where its packets come to. Each T1 or E1 has a port of its own (RFC 5086 4.2); this is that of the first one, the others
        /// of the table have the next ones in order.
        local: Option<SocketAddr> = (None) in DefaultPort(49152); restart
        /// In a pseudowire: where the far end sends from and receives, ports as with `local`. Packets from elsewhere are dropped and counted.
        peer: Option<SocketAddr> = (None) in DefaultPort(49152); restart
        /// With `"cesopsn"`: frames of 125 us in a packet. `"auto"`: a whole multiframe with signalling, 24 for a T1 (3 ms) and 16 for an E1
        /// (2 ms), else 8 (1 ms). With signalling it divides the multiframe. Both ends must agree.
        frames: Auto<u8> = (Auto::Auto) in 1..=64; restart
        /// With `"satop"`, and with `"dahdi"`, where the driver must be configured so: how the T1 is framed.
        framing: T1Framing = (T1Framing::Esf) in (); restart
        /// With `"satop"`: whether each 193 bits come padded to 25 octets (octet-aligned T1, RFC 4553 5.2). Both ends must agree.
        octet_aligned: bool = false in (); restart
        /// With `"satop"`: octets of the trunk in a packet. `"auto"`: 192 (0.995 ms), or 200 (1 ms) with `octet_aligned`, where it is a multiple of
        /// 25. Both ends must agree.
        payload: Auto<u16> = (Auto::Auto) in 96..=1400; restart
        /// With `"dahdi"`: the driver's number of the first T1 or E1; the others have the next ones. Its channels are `clear` there, or `cas` with `signalling`.
        dahdi_span: Option<u16> = (None) in 1..=128; restart
        /// In a pseudowire: the RTP payload type when the packets have RTP headers. Both ends must agree.
        rtp: Option<u8> = (None) in 96..=127; restart
        /// In a pseudowire: the shortest mean wait of packets in the jitter buffer. It grows up to `jitter_max` when packets come late.
        jitter: Duration = (millis(6)) in millis(1)..=millis(200); restart
        /// See `jitter`.
        jitter_max: Duration = (millis(60)) in millis(1)..=millis(200); restart
        /// Whether a channel carries common-channel signalling and so is no endpoint: 24 of each T1 (RFC 4805), 16 of an E1.
        common_channel: bool = false in (); restart
        /// The companding law of its channels. `"auto"`: A-law for an E1, mu-law else (ITU-T G.711).
        law: Auto<Law> = (Auto::Auto) in (); restart
        /// The tone that a channel with a connection in mode `conttest` answers with the other one, and a connection in mode `netwtest`: `"co1"` is 2010 Hz, answered
        /// with 1780 Hz; `"co2"` the contrary, for a 4-wire near end (RFC 3660 2.3). The gateway at the other end sends it. Only on a real span.
        transponder: Transponder = (Transponder::Co1) in (); restart
        /// How its channels signal, and so which packages they have: `"clear"` T, G, D, R ...; `"mf-..."` MS; `"dtmf-..."` and
        /// `"pulse-..."` DT; `"feature-group-d"` MD; `"operator"` MO; `"pbx-..."` BL (RFC 3064). It holds for every channel of the span.
        signalling: Signalling = (Signalling::Clear) in (); restart
        /// Who may seize its trunks; a one-way trunk can be blocked by the other end (RFC 3064 3.4). `"operator"` is outgoing anyway.
        direction: Direction = (Direction::Both) in (); restart
        /// Whether the gateway gives way when both ends seize a trunk at once; the far end must be told the contrary (RFC 3064 4.1).
        yields: bool = false in (); restart
        /// The agent its endpoints belong to until told otherwise (their provisioned notified entity). `"auto"`: the first one.
        agent: Auto<String> = (Auto::Auto) in &IDENTIFIER; restart
        /// The `[[h248]]` gateway whose controllers have the span. `"auto"`: none, it is MGCP's.
        h248: Auto<String> = (Auto::Auto) in &IDENTIFIER; restart
    }

    /// A gateway as H.248 controllers (RFC 3525) see it, with spans of its own. One core runs one; several share the cores.
    H248 = "h248" {
        /// Its name, for lists, and for the spans that are its.
        name: String = required in &IDENTIFIER; restart
        /// How it names itself in its messages: `"[192.0.2.10]:2944"`, `"<gw.example.net>"` or a plain name. `"auto"`: its listen address.
        message_id: Auto<String> = (Auto::Auto) in &MESSAGE_ID; restart
        /// `"udp"`, or `"tcp"` with TPKT (RFC 3525 D.2): the gateway opens a stream to its controller, and takes those that controllers open.
        transport: Bearer = (Bearer::Udp) in (); restart
        /// The address it is served on; 2944 is the port of the text encoding, 2945 that of the binary one (RFC 3525 9).
        listen: SocketAddr = required in DefaultPort(2944); restart
        /// Its controllers, in the order in which it registers with them. They may command from any port; anybody else is dropped and counted.
        controllers: Vec<SocketAddr> = required in (1..=8, DefaultPort(2944)); restart
        /// How it writes: `"compact"`, or `"pretty"` with long keywords and a line for each item; both are read. `"binary"`: BER (RFC 3525 Annex
        /// A), and no text is read.
        encoding: Encoding = (Encoding::Compact) in (); restart
        /// The longest message it sends, in octets; a longer reply is error 533. In binary a reply is bounded by half as much of its text.
        max_message: u32 = 4000 in 1000..=65_507; restart
        /// Whether its channels, with their media, tones and digits, lie on the cores that the numbers of its spans say, as those of MGCP do.
        /// `false`: all are on the core that runs the gateway.
        spread: bool = false in (); restart
    }

    /// Times of channel associated signalling. The defaults are those of North American trunks; where an RFC says one, it is that.
    Cas = "cas" {
        /// A shorter off-hook does not count.
        hook_min: Duration = (millis(40)) in millis(10)..=millis(500); restart
        /// A shorter on-hook does not count.
        release_min: Duration = (millis(150)) in millis(10)..=seconds(2); restart
        /// The shortest wink (RFC 2705 6.1.3).
        wink_min: Duration = (millis(100)) in millis(10)..=seconds(1); restart
        /// The longest wink (RFC 2705 6.1.3); a longer off-hook is a seizure or an answer.
        wink_max: Duration = (millis(350)) in millis(50)..=seconds(2); restart
        /// How long our own wink is.
        wink: Duration = (millis(200)) in millis(50)..=seconds(1); restart
        /// From an incoming seizure to our wink.
        wink_delay: Duration = (millis(150)) in millis(10)..=seconds(5); restart
        /// From the far end's wink, or from our seizure on an immediate-start trunk, to the first digit.
        digit_delay: Duration = (millis(150)) in millis(50)..=seconds(5); restart
        /// From our seizure to the far end's wink; then the call fails.
        wink_limit: Duration = (seconds(5)) in millis(500)..=seconds(60); restart
        /// How long the controlling end waits when both have seized (RFC 3064 4.1).
        glare: Duration = (seconds(4)) in millis(500)..=seconds(60); restart
        /// How long it holds the trunk after that (RFC 3064 4.1).
        glare_hold: Duration = (seconds(16)) in seconds(1)..=seconds(120); restart
        /// From our wink to the first digit.
        first_digit: Duration = (seconds(10)) in seconds(1)..=seconds(120); restart
        /// Between MF digits (RFC 2705 6.1.3).
        between_digits: Duration = (seconds(4)) in millis(500)..=seconds(60); restart
        /// For sending one string of digits.
        sending: Duration = (seconds(30)) in seconds(5)..=seconds(300); restart
        /// How long a call may wait for the agent or for its answer, or be suspended.
        answer: Duration = (seconds(300)) in seconds(10)..=seconds(3600); restart
        /// How long the agent has to complete a release.
        release: Duration = (seconds(60)) in seconds(1)..=seconds(600); restart
        /// How long the far end has to go on-hook before the channel counts as locked out, which is an alarm.
        guard: Duration = (seconds(30)) in seconds(1)..=seconds(600); restart
        /// From the end of a call, when both ends are on-hook, to our next seizure: the far end is to see that it is another call.
        rest: Duration = (millis(400)) in millis(0)..=seconds(5); restart
        /// The shortest flash of a PBX.
        flash_min: Duration = (millis(300)) in millis(50)..=seconds(2); restart
        /// The longest flash of a PBX.
        flash_max: Duration = (seconds(1)) in millis(100)..=seconds(3); restart
        /// How long our own flash is.
        flash: Duration = (millis(500)) in millis(100)..=seconds(2); restart
    }

    /// Protocol timers. All in the words of RFC 3435 where it has one.
    Timers = "timers" {
        /// T-HIST: how long responses are kept for repeats; at least `t_max` + 10 s (RFC 3435 4.3). A reload does not change the
        /// memory set aside at the start, so a longer time then means fewer responses a second.
        t_hist: Duration = (seconds(30)) in seconds(11)..=seconds(300); reload
        /// T-MAX: no command is repeated later than this after its first sending (RFC 3435 4.3).
        t_max: Duration = (seconds(20)) in seconds(1)..=seconds(290); reload
        /// Max1: repeats to one address before the next one is tried (RFC 3435 4.3).
        max1: u8 = 5 in 1..=20; reload
        /// Max2: repeats to the last address before the endpoint counts as disconnected (RFC 3435 4.3).
        max2: u8 = 7 in 2..=30; reload
        /// Whether Max1 follows the loss to and from each agent, once 100 commands tell it: as many repeats as are lost in a row once in ten
        /// billion times (five at 1 %, RFC 3435 4.3), at least 3 and less than `max2`. `show agents` has the loss.
        max1_by_loss: bool = false in (); reload
        /// The first wait for a response while nothing is known about the agent (RFC 3435 4.3 illustrates with 200 ms).
        rto_initial: Duration = (millis(200)) in millis(10)..=seconds(4); reload
        /// The shortest wait, however fast the agent was so far: below it a pause of the agent's would already cause repeats.
        rto_min: Duration = (millis(100)) in millis(1)..=seconds(4); reload
        /// RTO-MAX: the longest wait between repeats (RFC 3435 3.5.3).
        rto_max: Duration = (seconds(4)) in millis(100)..=seconds(60); reload
        /// LONGTRAN: the wait between repeats once a provisional response came (RFC 3435 3.5.6).
        longtran: Duration = (seconds(5)) in seconds(1)..=seconds(60); reload
        /// Maximum waiting delay: the restart is told after a random time up to this (RFC 3435 4.4.6). `"auto"`: 60 ms with a T3,
        /// 2.5 s without, the RFC's examples.
        mwd: Auto<Duration> = (Auto::Auto) in Duration::ZERO..=seconds(600); restart
        /// A command that ran this long is undone and ends with 406 (RFC 3435 3.5.6: about T-HIST - T-MAX).
        transaction_limit: Duration = (seconds(10)) in millis(100)..=seconds(120); reload
        /// A command that ran this long is answered 100 for the time being. Sooner would double the datagrams of slow commands.
        provisional_after: Duration = (millis(200)) in millis(10)..=seconds(10); reload
        /// How long a core may stand still while a command over several cores waits for it; then the command is refused with 400 and
        /// undone. A core's turn takes microseconds; an idle core shows every 100 ms that it lives. A queue of such commands takes as
        /// long as it takes, up to `transaction_limit`.
        vote_deadline: Duration = (millis(500)) in millis(200)..=seconds(10); reload
        /// Tdinit: upper end of the random first wait of a disconnected endpoint (RFC 3435 4.4.7).
        tdinit: Duration = (seconds(15)) in seconds(1)..=seconds(600); reload
        /// Tdmin: local activity of a disconnected endpoint is told at most this often (RFC 3435 4.4.7).
        tdmin: Duration = (seconds(15)) in seconds(1)..=seconds(600); reload
        /// Tdmax: the wait of a disconnected endpoint doubles up to this (RFC 3435 4.4.7).
        tdmax: Duration = (seconds(600)) in seconds(1)..=seconds(3600); reload
        /// T-partial: how long a digit is waited for while the digit map needs more of them (RFC 3660 2.2).
        digit_partial: Duration = (seconds(16)) in millis(100)..=seconds(600); reload
        /// T-critical: the same when only the timer is missing for a match (RFC 3660 2.2).
        digit_critical: Duration = (seconds(4)) in millis(100)..=seconds(600); reload
        /// A connection that has been up for longer is the event G/ld (RFC 3660 2.1).
        long_duration: Duration = (seconds(3600)) in seconds(1)..=seconds(86_400); reload
        /// A defect becomes a failure after this long; RFC 4805 3.4.4 and RFC 3896 2.4.3 allow 2 to 10 s, 2.5 s is the custom. RAI has
        /// times of its own, which are fixed: on a T1 or E1 0.5 s, and 1 s without it; on a T3 none.
        alarm_declare: Duration = (millis(2500)) in seconds(2)..=seconds(10); reload
        /// A failure ends after this long without the defect; up to 20 s are allowed, and a T3 must take 10 s (RFC 3896 2.4.3).
        alarm_clear: Duration = (seconds(10)) in Duration::ZERO..=seconds(20); reload
        /// Spans that fail within this time of each other are told together, in fewer names.
        alarm_merge: Duration = (millis(200)) in Duration::ZERO..=seconds(1); reload
        /// On SIGTERM: the time between the graceful restart message and the forced one, shorter when no call is up.
        shutdown_grace: Duration = (seconds(5)) in Duration::ZERO..=seconds(600); reload
    }

    /// Bounds on memory and on work in one go.
    Limits = "limits" {
        /// Responses a second a core keeps through T-HIST. With `history_bytes` it sizes the history: rate x T-HIST x bytes. When it
        /// is full new commands get 409, deletions excepted.
        history_rate: u32 = 20_000 in 100..=2_000_000; restart
        /// Mean octets of a kept response. A call's three are 300, 30 and 60 octets long: 256 leaves room for long audits.
        history_bytes: u32 = 256 in 64..=65536; restart
        /// Connections an endpoint may have; one more gets 540.
        connections_per_endpoint: u8 = 4 in 1..=16; restart
        /// Connections a core can hold. `"auto"`: `connections_per_endpoint` for each of its endpoints, so that this never refuses.
        connections: Auto<u32> = (Auto::Auto) in 1..=4_000_000; restart
        /// Memory of a core for texts of agents: remote descriptions, lists of events, digit maps, names of notified entities. When it is
        /// used up what needs more gets 403. `"auto"`: two descriptions of 240 octets for each connection, and for each endpoint a digit
        /// map of 2,048 octets and three lists.
        text_memory: Auto<Bytes> = (Auto::Auto) in kib(64)..=mib(65_536); restart
        /// Messages read from one datagram; the rest is dropped and counted.
        messages_per_datagram: u16 = 32 in 1..=255; restart
        /// Endpoints a command or alarm over many works through in one turn of the loop, so that others wait microseconds only.
        endpoints_per_turn: u16 = 64 in 1..=4096; restart
        /// A core silent for this long raises an alarm. Virtual machines were seen to pause for 180 ms.
        stall_alarm: Duration = (millis(500)) in millis(250)..=seconds(60); reload
        /// A core silent for this long ends the process (exit status 70), so that it can be started afresh. After SIGTERM only the lead core's
        /// silence does: the end of the others is bounded anyway.
        stall_exit: Duration = (seconds(30)) in seconds(1)..=seconds(3600); reload
    }

    /// When new calls are turned away to keep the ones that are up.
    Overload = "overload" {
        /// New calls are refused (409) when commands waited this long before they were handled: a quarter of the agent's first repeat.
        /// Lower is no use on a machine that does other things too: there a core waits 20 ms for its CPU without any overload.
        enter: Duration = (millis(50)) in millis(1)..=seconds(2); reload
        /// New calls are taken again when the wait fell below this.
        leave: Duration = (millis(10)) in micros(100)..=seconds(2); reload
        /// Only when the wait was above `enter` for so long: what one interruption of a core left is no overload. 0: at once.
        enter_after: Duration = (millis(20)) in Duration::ZERO..=seconds(2); reload
        /// Also when a core had work for so much of the last `busy_over`, in percent, whatever waits: a core that comes to no rest is at its
        /// limit (where AF_XDP polls the network card the wait is not seen). What a turn of a core could do besides is not counted as work.
        /// 101: never.
        busy_enter: u8 = 100 in 1..=101; reload
        /// Only when that was so for so long: a wait that grows is seen sooner, and tells more exactly when it is over.
        busy_after: Duration = (seconds(5)) in Duration::ZERO..=seconds(60); reload
        /// New calls are taken again when the wait is below `leave` and work was at most so much, in percent.
        busy_leave: u8 = 99 in 0..=100; reload
        /// The time over which work is counted.
        busy_over: Duration = (seconds(1)) in millis(10)..=seconds(1); reload
        /// H.248: which Adds done while overloaded a controller that asked for `ocp/mg_overload` is told of (H.248.11): `"add"` each,
        /// `"context"` the first of a context (corrigendum of 2008), `"off"` none.
        notify: OverloadNotify = (OverloadNotify::Add) in (); reload
        /// H.248: such a notification is dropped when it is older, sent or not: late ones spoil the controller's measurement.
        notify_age: Duration = (seconds(1)) in millis(100)..=seconds(30); reload
        /// H.248: new contexts are refused at once (503) when messages waited this long; emergencies and contexts with priority pass. It is
        /// the last defence against controllers that hear nothing, so it is far above `enter`.
        refuse: Duration = (millis(200)) in millis(2)..=seconds(10); reload
        /// H.248: by how much percent of all calls the share to block (`chp/mgcon`, H.248.10) rises for each second of overload.
        reduction_rise: u8 = 20 in 1..=100; reload
        /// H.248: by how much it falls for each second without overload.
        reduction_fall: u8 = 5 in 1..=100; reload
    }

    /// What keeps both sides from being swamped (RFC 3435 4.4.8). Each core counts and paces by itself.
    LoadControl = "load_control" {
        /// New commands a second to one agent at first and at most; 0: no limit, and nothing is adapted.
        rate_max: u32 = 1000 in 0..=1_000_000; reload
        /// New commands a second to one agent at least, however it suffers.
        rate_min: u32 = 2 in 1..=1_000_000; reload
        /// A response weighs 1 in so many in the smoothed response time of an agent.
        average: u32 = 8 in 1..=1000; reload
        /// The rate falls when the smoothed response time is more than so many percent of the best one.
        rise_percent: u32 = 300 in 101..=10_000; reload
        /// A smoothed response time below this never makes the rate fall.
        rise_least: Duration = (millis(100)) in Duration::ZERO..=seconds(10); reload
        /// What is left of the rate, in percent, when the response time has risen or the agent says 101 or 409.
        fall_percent: u32 = 50 in 1..=99; reload
        /// What is added to the rate each second after that, in commands a second.
        step: u32 = 50 in 1..=1_000_000; reload
        /// Commands of agents that wait on a core (for a card, another core, an announcement) from which on agents are told so by 101.
        /// At 4096 nothing more is taken: 409.
        queue_high: u16 = 1024 in 1..=4096; reload
        /// Commands that wait down to which 101 is said.
        queue_low: u16 = 512 in 0..=4095; reload
    }

    /// Call admission control: whether there is room for a call before it takes a channel.
    Cac = "cac" {
        /// `"local"`: the gateway decides by the limits of its `[[scope]]` tables; without any nothing is limited and nothing is spent.
        /// `"off"`: the tables are there and do nothing. `"cluster"`: the central node at `cs` decides, for all its gateways together.
        /// `"central"`: this is the file of that node (`tollgate cac`).
        mode: CacMode = (CacMode::Local) in (); restart
        /// In a cluster: the number of this gateway node; each has its own. 0 is none.
        node: u32 = 0 in 0..=65535; restart
        /// In a cluster: where the central node listens; of a pair where each does.
        cs: Vec<SocketAddr> = (Vec::new()) in (0..=2, DefaultPort(2428)); restart
        /// Of the central node: where it listens (TCP, ZeroMQ).
        listen: Vec<SocketAddr> = (Vec::new()) in (0..=4, DefaultPort(2428)); restart
        /// The gateway nodes of the cluster. The central node grants nothing after its start until they have told what is up, or
        /// `learn_for` is over. A gateway only counts them, for `"share"` and `"hold-last"`: the same number at all nodes.
        nodes: Vec<u32> = (Vec::new()) in (0..=1024, 1..=65535); restart
        /// In a cluster: what a gateway does with new calls while the central node cannot be reached. `"open"` takes all and tells
        /// afterwards; `"hold-last"` replaces calls that end, one for one, and the central node keeps counting the calls of a node it
        /// lost, and a floor for each of `nodes`: a hundredth of each limit, at least one call, at most an equal part of half of it;
        /// `"share"` takes an equal part of each limit; `"closed"` none. Emergency calls pass. The same at all nodes, with the limits.
        disconnected: Disconnected = (Disconnected::Open) in (); restart
        /// How long a call waits for the decision about it: of the central node, or inside a gateway of the core that has the places. Then
        /// `disconnected` decides, or without a cluster it is refused.
        decide_within: Duration = (millis(250)) in millis(20)..=seconds(2); restart
        /// Of the central node: how long the calls of a gateway that was lost go on counting. With `"hold-last"` they do for ten minutes
        /// at least, or until an operator says the node is dead.
        forget_after: Duration = (seconds(30)) in seconds(1)..=seconds(600); restart
        /// Of the central node: how long after its start it waits for `nodes` to tell what is up, at most.
        learn_for: Duration = (seconds(10)) in seconds(1)..=seconds(60); restart
        /// Of a central node that is one of a pair: the etcd servers (v3, plain HTTP) that say which of both leads. Empty: it leads.
        etcd: Vec<SocketAddr> = (Vec::new()) in (0..=7, DefaultPort(2379)); restart
        /// Of a pair: the name of the cluster in etcd, where the leader holds the key `/tollgate/cac/NAME/leader`. Another one for each.
        cluster: String = (text("tollgate")) in &IDENTIFIER; restart
        /// Of a pair: how long after its last word the leader is taken for dead. Another one leads within twice that.
        lease: Duration = (seconds(3)) in seconds(2)..=seconds(60); restart
        /// In a cluster: the file with the secret key (CURVE, 40 characters, as `tollgate cac-key` prints it). `"off"`: nothing is encrypted
        /// and nobody proves who he is, which is refused beyond loopback unless `plain`.
        secret_key: Option<PathBuf> = (None) in (); restart
        /// Of a gateway with `secret_key`: the public key of the central node; a pair has one key.
        cs_key: Option<String> = (None) in &CURVE_KEY; restart
        /// Of the central node with `secret_key`: the public keys of `nodes`, in their order. A node is who its key says.
        node_keys: Vec<String> = (Vec::new()) in (0..=1024, &CURVE_KEY); restart
        /// Whether a cluster may talk without keys beyond loopback, or to etcd there: only on a network that nobody else can reach.
        plain: bool = false in (); restart
    }

    /// What calls count in, one table each: a trunk group (channels that lead to the same place), a pool that trunk groups share, a zone
    /// or a peer of the packet network. A call counts in its trunk group, in the pools above it, and in the zone and the peer with the
    /// longest prefix of its remote media address; it is admitted when all of them have room. `"off"`: not limited.
    ScopeEntry = "scope" {
        /// `"trunk-group"`, `"pool"`, `"zone"` or `"peer"`.
        kind: ScopeKind = required in (); restart
        /// Its name, for lists and alarms.
        name: String = required in &IDENTIFIER; restart
        /// The pool above a trunk group or a pool; at most two stand above a trunk group.
        pool: Option<String> = (None) in &IDENTIFIER; restart
        /// The channels of a trunk group: names of endpoints, or with wildcards, such as `ds/ds1-1/*`. No channel is in two.
        members: Vec<String> = (Vec::new()) in (0..=1024, &MEMBER); restart
        /// The addresses of a zone or a peer: `10.1.0.0/16`, `2001:db8::/32`, or one address.
        prefixes: Vec<String> = (Vec::new()) in (0..=1024, &PREFIX); restart
        /// Which way calls of a trunk group go, seen from the trunk. `"both"`: as the line was seized; on lines without such signalling
        /// a connection created with a remote description goes out, another one as `undescribed` says.
        direction: CallDirection = (CallDirection::Both) in (); restart
        /// Which way a call goes whose connection is created without a remote description: agents create that of the ingress side first.
        undescribed: CallSide = (CallSide::In) in (); restart
        /// What the calls of a trunk group are: `"emergency"` for trunks to emergency services.
        class: CallClass = (CallClass::Normal) in (); restart
        /// Calls, both ways together.
        calls: Option<u32> = (None) in 0..=2_147_483_646; reload
        /// Calls from the trunk.
        inbound: Option<u32> = (None) in 0..=2_147_483_646; reload
        /// Calls to the trunk.
        outbound: Option<u32> = (None) in 0..=2_147_483_646; reload
        /// Bandwidth in kbit/s, each call as its packets take it one way: G.711 at 20 ms 80 over IPv4, 88 over IPv6.
        kbits: Option<u32> = (None) in 0..=2_147_483_646; reload
        /// New calls a second from the trunk, for ever, and at once. With a rate every new call asks the lead core.
        inbound_rate: Option<u32> = (None) in 1..=100_000; reload
        /// See `inbound_rate`.
        inbound_burst: u32 = 10 in 1..=100_000; reload
        /// New calls a second to the trunk, for ever, and at once.
        outbound_rate: Option<u32> = (None) in 1..=100_000; reload
        /// See `outbound_rate`.
        outbound_burst: u32 = 10 in 1..=100_000; reload
        /// Places that calls to the trunk leave free for those from it.
        reserved_inbound: u32 = 0 in 0..=1_000_000; reload
        /// Places that calls from the trunk leave free for those to it.
        reserved_outbound: u32 = 0 in 0..=1_000_000; reload
        /// Places that normal calls leave free for others.
        reserved_priority: u32 = 0 in 0..=1_000_000; reload
        /// Priority calls may use so many percent more places.
        priority_percent: u32 = 10 in 0..=100; reload
        /// Emergency calls always pass; with `emergency_limited` they may use so many percent more places.
        emergency_percent: u32 = 10 in 0..=1000; reload
        /// And so many more on top.
        emergency_extra: u32 = 0 in 0..=40_000; reload
        /// Whether emergency calls are limited at all.
        emergency_limited: bool = false in (); reload
        /// In a cluster: `cac.disconnected` for this scope; `"auto"`: the same as there.
        disconnected: Auto<Disconnected> = (Auto::Auto) in (); restart
        /// At the central node: whether `calls` is given to the gateways in quotas, so that a call need not ask. `"auto"`: from 8 calls for each
        /// of `cac.nodes` on, where `calls` is all that is limited; `"always"`: however few; `"never"`: each call asks.
        quota: QuotaMode = (QuotaMode::Auto) in (); reload
        /// A warning stands from so many percent of a limit on, down to `clear_percent`.
        warn_percent: Option<u32> = (Some(80)) in 1..=100; reload
        /// See `warn_percent`.
        clear_percent: u32 = 70 in 0..=99; reload
    }

    /// The Unix socket behind `tollgate show`, `block`, `reload` and the like.
    Operator = "operator" {
        /// Its path. `"auto"`: `$XDG_RUNTIME_DIR/tollgate.sock`, or else `/tmp/tollgate-<uid>/tollgate.sock` in a directory only the user may enter.
        socket: Auto<PathBuf> = (Auto::Auto) in (); restart
    }

    /// OpenMetrics over HTTP.
    Metrics = "metrics" {
        /// Where they are served; `"off"` for nowhere. Loopback: the numbers say who calls how much.
        address: Option<SocketAddr> = (Some(loopback(9427))) in DefaultPort(9427); restart
    }

    /// The log, on standard error.
    Log = "log" {
        /// `error`, `warn`, `info`, `debug` or `trace`, also for a module, such as `info,tollgate::host=debug`. `--log` and RUST_LOG come first.
        level: String = (text("info")) in &LOG_FILTER; reload
    }
}

/// The most cores: each pair of them has a ring, and a steering program has room for so many sockets.
pub const CORES_MAX: u8 = 64;

fn text(value: &str) -> String {
    value.to_owned()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

const fn kib(n: u64) -> Bytes {
    Bytes(n << 10)
}

const fn mib(n: u64) -> Bytes {
    Bytes(n << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, EMBEDDED};

    /// Each table of the built-in file names each setting, in the order of the register, with the value the register defaults to.
    #[test]
    fn the_built_in_file_is_complete_and_says_the_defaults() {
        let mut settings = 0;
        macro_rules! every {
            ($($section:ident)+) => { $(settings += same_as_file::<$section>();)+ };
        }
        sections!(every);
        assert!(settings > 60, "{settings}");
    }

    fn same_as_file<S: Section>() -> usize {
        // Scopes stand only where something is limited, and few have H.248: the file shows one in a comment.
        if S::TABLE == ScopeEntry::TABLE || S::TABLE == H248::TABLE {
            let shown = |key: &str| EMBEDDED.lines().any(|line| line.trim_start_matches(['#', ' ']).starts_with(&format!("{key} = ")));
            assert!(S::SETTINGS.iter().all(|setting| shown(setting.key)));
            return S::SETTINGS.len();
        }
        let document = toml_edit::Document::parse(EMBEDDED).unwrap();
        let mut item = document.as_item();
        for key in S::TABLE.split('.') {
            item = item.get(key).unwrap();
        }
        let table = item.as_table().or_else(|| item.as_array_of_tables().and_then(|tables| tables.get(0))).unwrap();
        let keys: Vec<_> = table.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, S::SETTINGS.iter().map(|setting| setting.key).collect::<Vec<_>>(), "[{}]", S::TABLE);
        for setting in S::SETTINGS {
            if let Some(default) = (setting.default)() {
                let written = table.get(setting.key).unwrap().to_string();
                assert_eq!(written.trim(), default, "{}.{}", S::TABLE, setting.key);
            }
        }
        keys.len()
    }

    #[test]
    fn the_built_in_file_is_valid_and_defaults_fill_in() {
        let short = "[[agent]]\nname = \"ca\"\naddresses = [\"127.0.0.1\"]\nnotify = [\"127.0.0.1\"]\n[[span]]\nkind = \"t3\"\nunit = 1\n";
        assert_eq!(Config::parse(short, "short").unwrap(), Config::default_embedded());
    }

    /// The host script makes room for the default receive buffer, no more and no less.
    #[test]
    fn the_host_script_allows_the_receive_buffer() {
        let script = include_str!("../../tuning/host/settings.sh");
        let octets = Config::default_embedded().transport.receive_buffer.0;
        assert!(script.contains(&format!("rmem_max -ge {octets} ")), "{octets}");
    }
}
