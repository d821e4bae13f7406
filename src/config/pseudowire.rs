//! Spans in pseudowires: what one is, and what must fit.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::check::unfit;
use super::defaults::SpanEntry;
use super::file::{Findings, Raw};
use super::types::{Card, Codec, Signalling, SpanKind};
use super::valid::Span;
use super::value::duration_text;
use crate::proto::pseudowire::{Layout, RtpSettings, Structure};

/// The pseudowire of a T1 or E1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wire {
    /// Where its packets come to.
    pub local: SocketAddr,
    /// Where the far end is.
    pub peer: SocketAddr,
    /// What a packet carries.
    pub structure: Structure,
    /// The RTP payload type, when there are RTP headers.
    pub rtp: Option<u8>,
    /// The shortest mean wait in the jitter buffer.
    pub jitter: Duration,
    /// The longest.
    pub jitter_max: Duration,
}

impl Wire {
    /// That of the line so many places behind this one: the next ports.
    pub fn line(&self, place: usize) -> Wire {
        Wire { local: further(self.local, place), peer: further(self.peer, place), ..*self }
    }

    /// The layout of its packets. Any synchronization source may come.
    ///
    /// # Errors
    /// What cannot be; a checked configuration has none.
    pub fn layout(&self) -> Result<Layout, &'static str> {
        Layout::new(self.structure, self.rtp.map(|payload_type| RtpSettings { payload_type, ssrc: None }))
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wire { local, peer, structure, rtp, jitter, jitter_max } = self;
        let (jitter, jitter_max) = (duration_text(*jitter), duration_text(*jitter_max));
        let frames = match structure {
            Structure::Frames { frames, .. } => *frames,
            Structure::Signalled { frames, .. } => u16::from(*frames),
            Structure::Bits(octets) => *octets,
        };
        let rtp = rtp.map_or("off".to_owned(), |rtp| rtp.to_string());
        write!(f, "local = {local}, peer = {peer}, frames = {frames}, rtp = {rtp}, jitter = {jitter} to {jitter_max}")
    }
}

fn further(address: SocketAddr, places: usize) -> SocketAddr {
    let port = usize::from(address.port()) + places;
    SocketAddr::new(address.ip(), u16::try_from(port).unwrap_or(0))
}

/// The pseudowire of the first line of the span number `place` of `entry`; `None` unless it has one.
pub(super) fn wire(entry: &SpanEntry, place: usize) -> Option<Wire> {
    if entry.card != Card::Cesopsn {
        return None;
    }
    let lines = if entry.kind == SpanKind::T3 { 28 } else { 1 };
    let (local, peer) = (entry.local?, entry.peer?);
    let first = Wire { local, peer, structure: structure(entry), rtp: entry.rtp, jitter: entry.jitter, jitter_max: entry.jitter_max };
    Some(first.line(place * lines))
}

/// With signalling its nibbles follow each multiframe (RFC 5086 5.4); an E1's channel 16 is then no payload.
fn structure(entry: &SpanEntry) -> Structure {
    let (channels, multiframe) = if entry.kind == SpanKind::E1 { (30, 16) } else { (24, 24) };
    let frames = entry.frames.fixed().copied();
    match entry.signalling {
        Signalling::Clear => {
            let channels = if entry.kind == SpanKind::E1 { 31 } else { 24 };
            Structure::Frames { channels, frames: frames.unwrap_or(8).into() }
        }
        _ => Structure::Signalled { channels, multiframe, frames: frames.unwrap_or(multiframe) },
    }
}

/// Checks every `[[span]]` and the ports against each other.
pub(super) fn check(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    for (path, entry) in &raw.spans {
        check_entry(path, entry, findings);
    }
    if !raw.spans.iter().any(|(_, entry)| entry.card == Card::Cesopsn) {
        return;
    }
    check_ports(raw, spans, findings);
    check_media(raw, findings);
}

fn check_entry(path: &str, entry: &SpanEntry, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("{path}.{setting}");
    let card = key("card");
    if entry.card != Card::Cesopsn {
        for (setting, address) in [("local", &entry.local), ("peer", &entry.peer)] {
            if address.is_some() {
                findings.cross(&key(setting), &[&card], address, "must be \"off\" unless card = \"cesopsn\"");
            }
        }
        return;
    }
    let lines = if entry.kind == SpanKind::T3 { 28 } else { 1 } * (usize::from(entry.unit.last - entry.unit.first) + 1);
    for (setting, address) in [("local", &entry.local), ("peer", &entry.peer)] {
        let Some(given) = address else {
            findings.cross(&key(setting), &[&card], address, "must be given with card = \"cesopsn\"");
            continue;
        };
        if let Some(problem) = unfit(given.ip()) {
            findings.cross(&key(setting), &[], given, problem);
        } else if usize::from(given.port()) + lines > 65_536 {
            let problem = format!("must leave room for a port for each of {lines} lines");
            findings.cross(&key(setting), &[], given, problem);
        }
    }
    if let (Some(local), Some(peer)) = (entry.local, entry.peer)
        && local.is_ipv4() != peer.is_ipv4()
    {
        findings.cross(&key("peer"), &[&key("local")], &peer, "must be of the same family as local");
    }
    if entry.local == entry.peer {
        findings.cross(&key("peer"), &[&key("local")], &entry.peer, "must be another one than local: it would hear itself");
    }
    if entry.kind == SpanKind::E1 && entry.signalling != Signalling::Clear {
        if !entry.common_channel {
            let problem = "must be true: channel 16 of an E1 carries the signalling of the others";
            findings.cross(&key("common_channel"), &[&key("signalling")], &entry.common_channel, problem);
        }
        if matches!(entry.signalling, Signalling::LoopStart | Signalling::GroundStart) {
            let problem = "must be another one on an E1: there are no codes for lines of a PBX";
            findings.cross(&key("signalling"), &[&key("kind")], &entry.signalling, problem);
        }
    }
    if entry.jitter > entry.jitter_max {
        let problem = format!("must be at most jitter_max = {}", duration_text(entry.jitter_max));
        findings.cross(&key("jitter"), &[&key("jitter_max")], &entry.jitter, problem);
    }
    if let Err(problem) = Layout::new(structure(entry), None) {
        findings.cross(&key("frames"), &[&key("signalling")], &entry.frames, format!("must be another number: {problem}"));
    }
}

/// No address and port is used twice.
fn check_ports(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    let mut taken: BTreeMap<SocketAddr, String> = BTreeMap::new();
    let listen = raw.gateway.listen.iter().map(|address| (*address, "gateway.listen".to_owned()));
    let h248 = raw.h248.iter().map(|(path, gateway)| (gateway.listen, format!("{path}.listen")));
    taken.extend(listen.chain(h248));
    for span in spans {
        let Some(wire) = span.wire else { continue };
        let entry =
            raw.spans.iter().find(|(_, entry)| entry.kind == span.kind && (entry.unit.first..=entry.unit.last).contains(&span.unit));
        let Some((path, entry)) = entry else { continue };
        let key = format!("{path}.local");
        for place in 0..span.lines().count() {
            let local = wire.line(place).local;
            if local.port() == 0 {
                // There is no room for it, which was said.
                break;
            }
            let other = taken.insert(local, key.clone());
            let media = local.ip() == raw.cesopsn.media_address && raw.cesopsn.media_ports.contains(local.port());
            let problem = match other {
                Some(other) => format!("must leave {local} to {other}"),
                None if media => format!("must not have {local}, one of cards.cesopsn.media_ports"),
                None => continue,
            };
            findings.cross(&key, &["gateway.listen", "cards.cesopsn.media_ports"], &entry.local, problem);
            break;
        }
    }
}

fn check_media(raw: &Raw, findings: &mut Findings<'_>) {
    let card = &raw.cesopsn;
    if let Some(problem) = unfit(card.media_address) {
        findings.cross("cards.cesopsn.media_address", &[], &card.media_address, problem);
    }
    let listen = raw.gateway.listen.iter().enumerate().map(|(i, listen)| (*listen, format!("gateway.listen[{}]", i + 1)));
    let h248 = raw.h248.iter().map(|(path, gateway)| (gateway.listen, format!("{path}.listen")));
    for (listen, whose) in listen.chain(h248) {
        if listen.ip() == card.media_address && card.media_ports.contains(listen.port()) {
            let problem = format!("must not hold port {} of {whose}, {listen}", listen.port());
            findings.cross("cards.cesopsn.media_ports", &["gateway.listen", "cards.cesopsn.media_address"], &card.media_ports, problem);
        }
    }
    let simulated = raw.spans.iter().any(|(_, entry)| entry.card == Card::Sim);
    let (ours, theirs) = (card.media_ports, raw.sim.media_ports);
    if simulated && card.media_address == raw.sim.media_address && ours.first <= theirs.last && theirs.first <= ours.last {
        let problem = "must not overlap cards.sim.media_ports at the same address";
        findings.cross("cards.cesopsn.media_ports", &["cards.sim.media_ports", "cards.sim.media_address"], &ours, problem);
    }
    if raw.sim.codecs.iter().any(|codec| !matches!(codec, Codec::Pcmu | Codec::Pcma | Codec::Clearmode)) {
        let problem = "must be PCMU, PCMA and CLEARMODE at most with spans in pseudowires: they carry a voice, and no other is coded";
        findings.cross("cards.sim.codecs", &[], &raw.sim.codecs, problem);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    /// What is said of the built-in file with this table more.
    fn with(span: &str) -> Result<Config, String> {
        let text = EMBEDDED.replacen("media_ports = \"16384-32767\"", "media_ports = \"14000-16383\"", 1);
        Config::parse(&format!("{text}\n[[span]]\n{span}\n"), "f").map_err(|errors| errors.to_string())
    }

    const GOOD: &str = "kind = \"t1\"\nunit = \"1-4\"\ncard = \"cesopsn\"\nlocal = \"127.0.0.1:50000\"\npeer = \"127.0.0.2:50100\"\n";

    #[test]
    fn lines_of_a_table_have_consecutive_ports_and_their_layout() {
        let config = with(GOOD).unwrap();
        let wires: Vec<String> = config.spans.iter().filter_map(|span| span.wire).map(|wire| wire.to_string()).collect();
        assert_eq!(wires.len(), 4);
        assert_eq!(wires[3], "local = 127.0.0.1:50003, peer = 127.0.0.2:50103, frames = 8, rtp = off, jitter = 6ms to 60ms");
        let t3 = GOOD.replace("\"t1\"", "\"t3\"").replace("\"1-4\"", "\"2-3\"") + "rtp = 97\nsignalling = \"mf-wink\"\n";
        let config = with(&t3).unwrap();
        let wire = config.spans[2].wire.unwrap();
        assert_eq!(wire.line(27).local.to_string(), "127.0.0.1:50055");
        assert_eq!(wire.layout().unwrap().packet_octets(), 12 + 4 + 588);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_reason() {
        let cases = [
            ("local = \"127.0.0.1:50000\"\n", "", "span[2].local = \"off\" (the default): must be given with card = \"cesopsn\""),
            ("card = \"cesopsn\"\n", "", "span[2].peer = \"127.0.0.2:50100\": must be \"off\" unless card = \"cesopsn\""),
            ("127.0.0.2:50100", "[::1]:50100", "must be of the same family as local"),
            ("127.0.0.2:50100", "127.0.0.2:65533", "must leave room for a port for each of 4 lines"),
            ("127.0.0.1:50000", "127.0.0.1:2424", "must leave 127.0.0.1:2427 to gateway.listen"),
            ("127.0.0.1:50000", "127.0.0.1:16390", "must not have 127.0.0.1:16390, one of cards.cesopsn.media_ports"),
            ("127.0.0.1:50000", "0.0.0.0:50000", "must be the address of one interface"),
            ("127.0.0.2:50100", "127.0.0.1:50000", "span[2].peer = \"127.0.0.1:50000\": must be another one than local"),
            (
                "kind",
                "frames = 7\nsignalling = \"mf-wink\"\nkind",
                "span[2].frames = 7: must be another number: the frames of a packet divide",
            ),
            ("kind", "jitter = \"80ms\"\nkind", "must be at most jitter_max = 60ms"),
            ("\"t1\"", "\"e1\"\nsignalling = \"dtmf-wink\"", "must be true: channel 16 of an E1"),
            ("\"t1\"", "\"e1\"\ncommon_channel = true\nsignalling = \"pbx-loop-start\"", "must be another one on an E1"),
            ("kind", "rtp = 8\nkind", "span[2].rtp = 8: must be \"off\" or 96..=127"),
        ];
        for (old, new, wanted) in cases {
            let found = with(&GOOD.replacen(old, new, 1)).unwrap_err();
            assert!(found.contains(wanted), "{new}\n{found}");
        }
        let crowded = with(&GOOD.replacen("127.0.0.1:50000", "127.0.0.1:65530", 1).replace("\"1-4\"", "\"1-8\"")).unwrap_err();
        assert_eq!(crowded.matches("span[2].local").count(), 1, "said once: {crowded}");
        let twice = format!("{GOOD}[[span]]\n{}", GOOD.replace("\"1-4\"", "5").replace(":50000", ":50003"));
        assert!(with(&twice).unwrap_err().contains("span[3].local = \"127.0.0.1:50003\": must leave 127.0.0.1:50003 to span[2].local"));
    }

    #[test]
    fn ports_of_simulated_and_real_connections_do_not_overlap() {
        let found = Config::parse(&format!("{EMBEDDED}\n[[span]]\n{GOOD}"), "f").unwrap_err().to_string();
        assert!(found.contains("cards.cesopsn.media_ports = \"16384-32767\": must not overlap cards.sim.media_ports"), "{found}");
        let gateway = "[[h248]]\nname = \"north\"\nlisten = \"127.0.0.1:20002\"\ncontrollers = [\"127.0.0.1:3944\"]\n\
            [[span]]\nkind = \"t1\"\nunit = 9\nh248 = \"north\"\n";
        let found = with(&format!("{GOOD}{gateway}")).unwrap_err();
        assert!(found.contains("must not hold port 20002 of h248[1].listen, 127.0.0.1:20002"), "{found}");
    }
}
