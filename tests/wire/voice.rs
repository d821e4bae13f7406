//! What a DS0 sends as RTP and RTCP: the octets of RFC 3550 and RFC 4733, and what a dissector that is not ours makes of them.

use std::net::SocketAddr;

use tollgate::proto::base::{Mode, Time};
use tollgate::proto::package::parameters::Digits;
use tollgate::proto::trunk::{Coding, DigitKind, Media, Payloads, TelephoneEvents};
use tollgate::proto::voice::{Ds0, Kind, Law, Settings};

use super::tshark::dissect;

/// Two connected DS0s for some seconds, one of which hears a key: what the first one sent, up to its goodbye.
fn sent(seconds: u64) -> Vec<(Kind, Vec<u8>)> {
    let far = SocketAddr::from(([192, 0, 2, 1], 6_000));
    let payloads = Payloads {
        sent: Some((Coding::Mu, 0)),
        received: [Some(0), None, None],
        events_sent: Some(101),
        events_received: Some(101),
        events: TelephoneEvents::Keys,
    };
    let media = Media { mode: Mode::SendRecv, packet_bytes: 160, period_ms: 20, remote: Some(far), payloads, ..Media::default() };
    let mut pair = [Ds0::new(Settings::default()), Ds0::new(Settings::default())];
    for (seed, ds0) in pair.iter_mut().enumerate() {
        assert!(ds0.open(Time::ZERO, 0, &media, 0x1234_5678_9abc_def0 + seed as u64));
    }
    let mut dialler = Ds0::new(Settings::default());
    let mut digits = Digits::NONE;
    digits.push(b'7');
    dialler.send_digits(DigitKind::Dtmf, digits);
    let mut all = Vec::new();
    for ms in 0..seconds * 1_000 {
        let now = Time::from_millis(ms);
        for from in 0..2 {
            let mut octets = [Law::Mu.idle(); 8];
            if from == 0 && ms >= 100 {
                dialler.exchange(now, &mut octets, &mut |_, _, _, _| {});
            }
            let mut packets = Vec::new();
            pair[from].exchange(now, &mut octets, &mut |_, _, kind, packet| packets.push((kind, packet.to_vec())));
            for (kind, packet) in packets {
                pair[1 - from].packet(now, 0, far, kind, &packet);
                if from == 0 {
                    all.push((kind, packet));
                }
            }
        }
    }
    pair[0].close(Time::from_millis(seconds * 1_000), 0, &mut |_, _, kind, packet| all.push((kind, packet.to_vec())));
    all
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The same seed, the same octets: the first packet, the packets of a key, and the last report with its goodbye.
#[test]
fn rtp_and_rtcp_are_written_as_ever() {
    let all = sent(20);
    let of = |kind: Kind| all.iter().filter(move |(is, _)| *is == kind).map(|(_, packet)| &packet[..]);
    let first = of(Kind::Rtp).next().unwrap();
    assert_eq!(hex(&first[..12]), "808056780da973299abcdef0");
    assert!(first.len() == 172 && first[12..].iter().all(|&octet| octet == 0xff));
    let second = of(Kind::Rtp).nth(1).unwrap();
    assert_eq!(hex(&second[..12]), "800056790da973c99abcdef0");
    let events: Vec<String> = of(Kind::Rtp).filter(|packet| packet[1] & 0x7f == 101).map(|packet| hex(&packet[12..])).collect();
    assert_eq!(events[..2], ["070a00a0", "070a0140"]);
    assert!(events.iter().rev().take(3).all(|event| event.starts_with("078a0")), "{events:?}");
    let goodbye = of(Kind::Rtcp).next_back().unwrap();
    assert_eq!(hex(&goodbye[..8]), "81c8000c9abcdef0", "a sender report with one block");
    assert_eq!(hex(&goodbye[52..62]), "81ca00089abcdef00118", "a description with a name of 24 octets");
    assert_eq!(hex(&goodbye[88..]), "81cb00019abcdef0", "goodbye");
}

#[test]
fn tshark_reads_rtp_and_rtcp() {
    let all = sent(20);
    let mut read = Vec::new();
    for (kind, port) in [(Kind::Rtp, 6_000), (Kind::Rtcp, 6_001)] {
        let packets: Vec<&Vec<u8>> = all.iter().filter(|(is, _)| *is == kind).map(|(_, packet)| packet).collect();
        let word = if kind == Kind::Rtp { "rtp" } else { "rtcp" };
        let rules = format!("udp.port=={port},{word}");
        let arguments = ["-d", &rules, "-V", "-d", "rtp.pt==101,rtpevent"];
        let payloads = packets.iter().map(|packet| packet.as_slice());
        let Some(text) = dissect(&format!("{port},{port}"), payloads, &arguments) else { return };
        let frames: Vec<String> = text.split("\nFrame ").map(str::to_owned).collect();
        assert_eq!(frames.len(), packets.len());
        for frame in &frames {
            let name = if kind == Kind::Rtp { "Real-Time Transport Protocol" } else { "Real-time Transport Control Protocol" };
            assert!(frame.contains(name), "{frame}");
            for mark in ["Malformed", "malformed", "[Expert Info (Error", "[Expert Info (Warning", "Dissector bug"] {
                assert!(!frame.contains(mark), "{mark}\n{frame}");
            }
        }
        read.extend(frames);
    }
    assert!(read.iter().any(|frame| frame.contains("Event ID: DTMF Seven 7 (7)") && frame.contains("End of Event: True")));
    assert!(read.iter().any(|frame| frame.contains("Goodbye (203)")) && read.iter().any(|frame| frame.contains("CNAME")));
}
