//! What a T1 in a pseudowire costs a core: one packet period of 24 channels, idle and with a call on each, without the system calls of its
//! socket and of RTP. 1,000 such periods a second are one T1; 28 T1s are a T3.

#![allow(missing_docs, reason = "a program")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;
use tollgate::proto::base::{EndpointIndex, Mode, Time};
use tollgate::proto::circuit::{CircuitSettings, Digroup, DigroupSettings};
use tollgate::proto::pseudowire::{Layout, Structure};
use tollgate::proto::trunk::{Coding, Facility, Media, Payloads, SpanIndex};
use tollgate::proto::voice::{self, Kind};

const CHANNELS: u32 = 24;

/// A T1 whose packets and RTP come back to it.
struct Looped {
    digroup: Digroup,
    came: Vec<u8>,
    said: VecDeque<tollgate::proto::trunk::Indication>,
    rtp: Vec<(u32, Vec<u8>)>,
}

impl Looped {
    fn new(calls: bool) -> Looped {
        let layout = Layout::new(Structure::Frames { channels: CHANNELS as u8, frames: 8 }, None).expect("a layout");
        let (jitter, jitter_max) = (Duration::from_millis(6), Duration::from_millis(60));
        let circuit = CircuitSettings { layout, framing: None, jitter, jitter_max, own_clock: true, idle: 0xFF, sequence: 0 };
        let endpoints = (0..CHANNELS).map(|n| Some(EndpointIndex(n))).collect();
        let facility = Facility::Span(SpanIndex(0));
        let settings = DigroupSettings { circuit, facility, endpoints, coding: None, voice: voice::Settings::default() };
        let mut digroup = Digroup::new(Time::ZERO, &settings).expect("a circuit of frames");
        let remote: SocketAddr = ([127, 0, 0, 1], 16_384).into();
        let payloads = Payloads { sent: Some((Coding::Mu, 0)), received: [Some(0), None, None], ..Payloads::default() };
        let mode = Mode::SendRecv;
        let media = Media { mode, packet_bytes: 160, period_ms: 20, remote: Some(remote), payloads, ..Media::default() };
        for n in (0..CHANNELS).filter(|_| calls) {
            assert!(digroup.slots_mut().open(Time::ZERO, EndpointIndex(n), n, &media, u64::from(n)));
        }
        Looped { digroup, came: Vec::new(), said: VecDeque::new(), rtp: Vec::new() }
    }

    fn period(&mut self) {
        let Looped { digroup, came, said, rtp } = self;
        let now = digroup.due();
        digroup.receive(now, came);
        for (connection, octets) in rtp.drain(..) {
            if let Some(media) = digroup.slots_mut().media(EndpointIndex(connection)) {
                media.packet(now, connection, ([127, 0, 0, 1], 16_384).into(), Kind::Rtp, &octets);
            }
        }
        let sent = digroup.play(said, &mut |connection, _, kind, octets| {
            if kind == Kind::Rtp {
                rtp.push((connection, octets.to_vec()));
            }
        });
        came.clear();
        came.extend_from_slice(sent);
        said.clear();
    }
}

fn trunk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("t1_period_1ms");
    for (name, calls) in [("idle", false), ("24_calls_g711_20ms", true)] {
        let mut looped = Looped::new(calls);
        (0..200).for_each(|_| looped.period());
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&mut looped).period()));
    }
    group.finish();
}

criterion_group!(benches, trunk);
criterion_main!(benches);
