//! What the media of one DS0 costs for 20 ms of a call, as a card with pseudowires of 1 ms drives it: 20 exchanges, and a packet each way.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::SocketAddr;
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

fn voice(c: &mut Criterion) {
    let mut measure = |name: &str, mut channel: Channel| {
        c.bench_function(&format!("voice/20 ms/{name}"), |b| b.iter(|| black_box(channel.frame())));
    };
    let mu = (Coding::Mu, 0);
    measure("idle", Channel::new(0, &media(Mode::SendRecv, mu)));
    measure("one call", Channel::new(1, &media(Mode::SendRecv, mu)));
    measure("one call, other law", Channel::new(1, &media(Mode::SendRecv, (Coding::A, 8))));
    let mut listening = Channel::new(1, &media(Mode::SendRecv, mu));
    listening.ds0.listen(Some(DigitKind::Dtmf));
    measure("one call, keys listened for", listening);
    measure("conference of three", Channel::new(3, &media(Mode::Conference, mu)));
}

criterion_group!(benches, voice);
criterion_main!(benches);
