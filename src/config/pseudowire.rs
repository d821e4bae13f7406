//! Spans in pseudowires: what one is, and what must fit.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::check::unfit;
use super::defaults::SpanEntry;
use super::file::{Findings, Raw};
use super::types::{Card, Codec, Signalling, SpanKind, T1Framing, Transponder};
use super::valid::Span;
use super::value::{Auto, duration_text};
use crate::proto::circuit::Framing;
use crate::proto::framer::Format;
use crate::proto::pseudowire::packet::GROUP;
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
    /// How its bits are framed, when it carries bits.
    pub framing: Option<Framing>,
    /// The RTP payload type, when there are RTP headers.
    pub rtp: Option<u8>,
    /// The shortest mean wait in the jitter buffer.
    pub jitter: Duration,
    /// The longest.
    pub jitter_max: Duration,
    /// The tone that its channels answer with the other one.
    pub transponder: Transponder,
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
        let Wire { local, peer, structure, framing, rtp, jitter, jitter_max, transponder } = self;
        let (jitter, jitter_max) = (duration_text(*jitter), duration_text(*jitter_max));
        write!(f, "local = {local}, peer = {peer}, ")?;
        match structure {
            Structure::Frames { frames, .. } => write!(f, "frames = {frames}")?,
            Structure::Signalled { frames, .. } => write!(f, "frames = {frames}")?,
            Structure::Bits(octets) => write!(f, "payload = {octets}")?,
            Structure::Groups(groups) => write!(f, "octet_aligned, payload = {}", usize::from(*groups) * GROUP)?,
        }
        if let Some(framing) = framing {
            write!(f, ", framing = {}", if framing.format == Format::D4 { T1Framing::D4 } else { T1Framing::Esf }.word())?;
        }
        let rtp = rtp.map_or("off".to_owned(), |rtp| rtp.to_string());
        write!(f, ", rtp = {rtp}, jitter = {jitter} to {jitter_max}, transponder = {}", transponder.word())
    }
}

fn further(address: SocketAddr, places: usize) -> SocketAddr {
    let port = usize::from(address.port()) + places;
    SocketAddr::new(address.ip(), u16::try_from(port).unwrap_or(0))
}

/// Whether it is in a pseudowire.
fn is_wired(entry: &SpanEntry) -> bool {
    matches!(entry.card, Card::Cesopsn | Card::Satop)
}

/// The pseudowire of the first line of the span number `place` of `entry`; `None` unless it has one.
pub(super) fn wire(entry: &SpanEntry, place: usize) -> Option<Wire> {
    if !is_wired(entry) {
        return None;
    }
    let lines = if entry.kind == SpanKind::T3 { 28 } else { 1 };
    let (local, peer) = (entry.local?, entry.peer?);
    let SpanEntry { rtp, jitter, jitter_max, transponder, .. } = *entry;
    let first = Wire { local, peer, structure: structure(entry), framing: framing(entry), rtp, jitter, jitter_max, transponder };
    Some(first.line(place * lines))
}

/// With signalling its nibbles follow each multiframe (RFC 5086 5.4); an E1's channel 16 is then no payload.
fn structure(entry: &SpanEntry) -> Structure {
    if entry.card == Card::Satop {
        let payload = entry.payload.fixed().copied();
        return if entry.octet_aligned {
            Structure::Groups(payload.unwrap_or(200) / GROUP as u16)
        } else {
            Structure::Bits(payload.unwrap_or(192))
        };
    }
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

/// How the bits of a T1 are framed, where they come with their framing.
fn framing(entry: &SpanEntry) -> Option<Framing> {
    let format = if entry.framing == T1Framing::D4 { Format::D4 } else { Format::Esf };
    (entry.card == Card::Satop).then_some(Framing { format, signalled: entry.signalling != Signalling::Clear })
}

/// Checks every `[[span]]` and the ports against each other.
pub(super) fn check(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    for (path, entry) in &raw.spans {
        check_entry(path, entry, findings);
    }
    check_ports(raw, spans, findings);
    if raw.spans.iter().any(|(_, entry)| entry.card != Card::Sim) {
        check_media(raw, findings);
    }
}

fn check_entry(path: &str, entry: &SpanEntry, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("{path}.{setting}");
    let card = key("card");
    check_bits(path, entry, findings);
    check_channels(path, entry, findings);
    if !is_wired(entry) {
        for (setting, address) in [("local", &entry.local), ("peer", &entry.peer)] {
            if address.is_some() {
                findings.cross(&key(setting), &[&card], address, "must be \"off\" unless card = \"cesopsn\" or \"satop\"");
            }
        }
        return;
    }
    let lines = if entry.kind == SpanKind::T3 { 28 } else { 1 } * (usize::from(entry.unit.last - entry.unit.first) + 1);
    for (setting, address) in [("local", &entry.local), ("peer", &entry.peer)] {
        let Some(given) = address else {
            let problem = format!("must be given with card = \"{}\"", entry.card.word());
            findings.cross(&key(setting), &[&card], address, problem);
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
    if entry.jitter > entry.jitter_max {
        let problem = format!("must be at most jitter_max = {}", duration_text(entry.jitter_max));
        findings.cross(&key("jitter"), &[&key("jitter_max")], &entry.jitter, problem);
    }
    if entry.card == Card::Cesopsn
        && let Err(problem) = Layout::new(structure(entry), None)
    {
        findings.cross(&key("frames"), &[&key("signalling")], &entry.frames, format!("must be another number: {problem}"));
    }
}

/// What signalling an E1 can have on a card that carries a voice.
fn check_channels(path: &str, entry: &SpanEntry, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("{path}.{setting}");
    if entry.card == Card::Sim || entry.kind != SpanKind::E1 || entry.signalling == Signalling::Clear {
        return;
    }
    if !entry.common_channel {
        let problem = "must be true: channel 16 of an E1 carries the signalling of the others";
        findings.cross(&key("common_channel"), &[&key("signalling")], &entry.common_channel, problem);
    }
    if matches!(entry.signalling, Signalling::LoopStart | Signalling::GroundStart) {
        let problem = "must be another one on an E1: there are no codes for lines of a PBX";
        findings.cross(&key("signalling"), &[&key("kind")], &entry.signalling, problem);
    }
}

/// What only a card of bits has, and what it has not.
fn check_bits(path: &str, entry: &SpanEntry, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("{path}.{setting}");
    let card = key("card");
    if entry.card != Card::Satop {
        let problem = "must be the default unless card = \"satop\"";
        if entry.framing != T1Framing::Esf && entry.card != Card::Dahdi {
            findings.cross(&key("framing"), &[&card], &entry.framing, "must be the default unless card = \"satop\" or \"dahdi\"");
        } else if entry.framing != T1Framing::Esf && entry.kind == SpanKind::E1 {
            findings.cross(&key("framing"), &[&key("kind")], &entry.framing, "must be the default on an E1");
        }
        if entry.octet_aligned {
            findings.cross(&key("octet_aligned"), &[&card], &entry.octet_aligned, problem);
        }
        if entry.payload != Auto::Auto {
            findings.cross(&key("payload"), &[&card], &entry.payload, problem);
        }
        return;
    }
    if entry.kind == SpanKind::E1 {
        findings.cross(&card, &[&key("kind")], &entry.card, "must be \"cesopsn\" for an E1: the framing of a T1 is all that is known here");
    }
    if entry.frames != Auto::Auto {
        findings.cross(&key("frames"), &[&card], &entry.frames, "must be \"auto\" with card = \"satop\": payload is what a packet holds");
    }
    if entry.octet_aligned && entry.payload.fixed().is_some_and(|octets| !usize::from(*octets).is_multiple_of(GROUP)) {
        findings.cross(&key("payload"), &[&key("octet_aligned")], &entry.payload, "must be a multiple of 25 with octet_aligned = true");
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
        let problem = "must be PCMU, PCMA and CLEARMODE at most with spans that carry a voice: no other is coded";
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
        let config = with(&(GOOD.to_owned() + "transponder = \"co2\"\n")).unwrap();
        let wires: Vec<String> = config.spans.iter().filter_map(|span| span.wire).map(|wire| wire.to_string()).collect();
        assert_eq!(wires.len(), 4);
        assert_eq!(
            wires[3],
            "local = 127.0.0.1:50003, peer = 127.0.0.2:50103, frames = 8, rtp = off, jitter = 6ms to 60ms, transponder = co2"
        );
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
            ("card = \"cesopsn\"\n", "", "span[2].peer = \"127.0.0.2:50100\": must be \"off\" unless card = \"cesopsn\" or \"satop\""),
            ("kind", "framing = \"d4\"\nkind", "span[2].framing = \"d4\": must be the default unless card = \"satop\" or \"dahdi\""),
            ("\"t1\"", "\"e1\"\noctet_aligned = true", "span[2].octet_aligned = true: must be the default unless"),
            ("kind", "payload = 300\nkind", "span[2].payload = 300: must be the default unless"),
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
    fn a_t1_bit_by_bit_has_its_framing_and_a_payload() {
        let satop = GOOD.replace("\"cesopsn\"", "\"satop\"");
        let wire = |more: &str| with(&format!("{satop}{more}")).map(|config| config.spans[1].wire.unwrap());
        let plain = wire("").unwrap();
        let (local, jitter) = ("local = 127.0.0.1:50000, peer = 127.0.0.2:50100", "jitter = 6ms to 60ms, transponder = co1");
        assert_eq!(plain.to_string(), format!("{local}, payload = 192, framing = esf, rtp = off, {jitter}"));
        assert_eq!(plain.layout().unwrap().packet_octets(), 4 + 192);
        let aligned = wire("framing = \"d4\"\noctet_aligned = true\nsignalling = \"mf-wink\"\nrtp = 97\n").unwrap();
        assert_eq!(aligned.to_string(), format!("{local}, octet_aligned, payload = 200, framing = d4, rtp = 97, {jitter}"));
        assert!(aligned.framing.unwrap().signalled && !plain.framing.unwrap().signalled);
        for (more, wanted) in [
            ("frames = 8\n", "span[2].frames = 8: must be \"auto\" with card = \"satop\""),
            ("octet_aligned = true\npayload = 192\n", "span[2].payload = 192: must be a multiple of 25"),
        ] {
            assert!(wire(more).unwrap_err().contains(wanted), "{more}");
        }
        let e1 = with(&satop.replace("\"t1\"", "\"e1\"")).unwrap_err();
        assert!(e1.contains("span[2].card = \"satop\": must be \"cesopsn\" for an E1"), "{e1}");
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
