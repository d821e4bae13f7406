//! What the media of one DS0 costs for 20 ms of a call, as a card with pseudowires of 1 ms drives it: 20 exchanges, and a packet each way.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::SocketAddr;
use tollgate::proto::base::srtp::{Crypto, LIFETIME, MasterKey, MediaKeys, Suite};
use tollgate::proto::base::{Mode, Time};
use tollgate::proto::trunk::{Coding, DigitKind, Media, Payloads};
use tollgate::proto::voice::{Ds0, Kind, Law, Settings};

fn remote() -> SocketAddr {
    ([192, 0, 2, 1], 6_000).into()
}

/// 20 ms of mu law both ways.
fn media(mode: Mode, sent: (Coding, u8)) -> Media {
    let payloads = Payloads { sent: Some(sent), received: [Some(0), Some(8), None], ..Payloads::default() };
    Media { mode, packet_bytes: 160, period_ms: 20, remote: Some(remote()), payloads, ..Media::default() }
}

/// A channel with so many connections, fed with something like voice.
struct Channel {
    ds0: Ds0,
    connections: u32,
    packet: [u8; 172],
    frame: u32,
}

impl Channel {
    fn new(connections: u32, media: &Media) -> Channel {
        let mut ds0 = Ds0::new(Settings::default());
        (0..connections).for_each(|n| assert!(ds0.open(Time::ZERO, n, media, u64::from(n))));
        let mut packet = [0; 172];
        packet[0] = 0x80;
        for (n, octet) in packet.iter_mut().enumerate().skip(12) {
            *octet = Law::Mu.encode(((n as f32 * 0.4).sin() * 4_000.0) as i32);
        }
        Channel { ds0, connections, packet, frame: 0 }
    }

    fn frame(&mut self) -> usize {
        self.frame += 1;
        self.packet[2..4].copy_from_slice(&(self.frame as u16).to_be_bytes());
        self.packet[4..8].copy_from_slice(&(self.frame * 160).to_be_bytes());
        let mut sent = 0;
        for n in 0..self.connections {
            self.ds0.packet(Time::from_millis(u64::from(self.frame) * 20), n, remote(), Kind::Rtp, &self.packet);
        }
        for step in 0..20u64 {
            let mut octets = [0x7a; 8];
            let now = Time::from_millis(u64::from(self.frame) * 20 + step);
            self.ds0.exchange(now, &mut octets, &mut |_, _, _, packet| sent += packet.len());
            black_box(octets);
        }
        while self.ds0.poll().is_some() {}
        sent
    }
}

/// Two channels with a connection between them: a packet each way, written, read and played.
struct Pair {
    sides: [Ds0; 2],
    frame: u64,
}

impl Pair {
    fn new(protection: Option<Suite>) -> Pair {
        let media = media(Mode::SendRecv, (Coding::Mu, 0));
        let crypto = |suite, octet| Some(Crypto { tag: 1, suite, key: MasterKey::new([octet; MasterKey::OCTETS]), lifetime: LIFETIME });
        let sides = [(1, 2), (2, 1)].map(|(local, remote)| {
            let mut ds0 = Ds0::new(Settings::default());
            assert!(ds0.open(Time::ZERO, 0, &media, local.into()));
            if let Some(suite) = protection {
                ds0.protect(0, &MediaKeys { local: crypto(suite, local), remote: crypto(suite, remote) });
            }
            ds0
        });
        Pair { sides, frame: 0 }
    }

    fn frame(&mut self) -> u32 {
        self.frame += 1;
        for ms in 0..20 {
            let now = Time::from_millis(self.frame * 20 + ms);
            for side in 0..2 {
                let [one, two] = &mut self.sides;
                let (from, to) = if side == 0 { (one, two) } else { (two, one) };
                from.exchange(now, &mut [0x7a; 8], &mut |_, _, kind, packet| to.packet(now, 0, remote(), kind, packet));
                while from.poll().is_some() {}
            }
        }
        self.sides[0].report(0).packets_received
    }
}

/// A channel with a connection to a modem that has answered.
fn modem(media: &Media) -> Channel {
    let mut channel = Channel::new(1, media);
    for step in 0..500u64 {
        let tone = |n: u64| Law::Mu.encode((((step * 8 + n) as f32 * 2_100.0 / 8_000.0 * std::f32::consts::TAU).sin() * 8_000.0) as i32);
        let mut octets: [u8; 8] = std::array::from_fn(|n| tone(n as u64));
        channel.ds0.exchange(Time::from_millis(step), &mut octets, &mut |_, _, _, _| {});
    }
    channel
}

fn voice(c: &mut Criterion) {
    let mut between = |name: &str, protection: Option<Suite>| {
        let mut pair = Pair::new(protection);
        c.bench_function(&format!("voice/20 ms/two calls joined, {name}"), |b| b.iter(|| black_box(pair.frame())));
    };
    between("RTP", None);
    between("SRTP, tags of 80 bits", Some(Suite::Tag80));
    between("SRTP, tags of 32 bits", Some(Suite::Tag32));

    let mut measure = |name: &str, mut channel: Channel| {
        c.bench_function(&format!("voice/20 ms/{name}"), |b| b.iter(|| black_box(channel.frame())));
    };
    let mu = (Coding::Mu, 0);
    measure("idle", Channel::new(0, &media(Mode::SendRecv, mu)));
    measure("one call", Channel::new(1, &media(Mode::SendRecv, mu)));
    measure("one call, of a modem", modem(&media(Mode::SendRecv, mu)));
    measure("one call, other law", Channel::new(1, &media(Mode::SendRecv, (Coding::A, 8))));
    let mut listening = Channel::new(1, &media(Mode::SendRecv, mu));
    listening.ds0.listen(Some(DigitKind::Dtmf));
    measure("one call, keys listened for", listening);
    measure("conference of three", Channel::new(3, &media(Mode::Conference, mu)));
}

criterion_group!(benches, voice);
criterion_main!(benches);
