//! Two DS0s joined by a network that delays, loses and reorders, in virtual time. Each is driven by a clock of its own.

use super::*;
use crate::proto::base::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Octets of one exchange, as a rule: a packet of a pseudowire with a period of 1 ms.
pub const STEP: usize = 8;

/// What the network does to packets.
#[derive(Clone, Copy, Default)]
pub struct Network {
    pub loss_per_million: u32,
    pub jitter_ms: u64,
}

/// A DS0 and its clock.
pub struct Side {
    pub ds0: Ds0,
    /// Nanoseconds of one exchange.
    step_ns: u64,
    due: u64,
    /// What is put on the trunk, by the number of the octet.
    source: Box<dyn FnMut(u64) -> u8>,
    fed: u64,
    /// What came out of it.
    pub heard: Vec<u8>,
    pub keep: bool,
    /// RTP and RTCP packets it sent.
    pub sent: Vec<(Kind, Vec<u8>)>,
}

/// A packet on its way: when it arrives, its ordinal, the side, whether it is RTCP, its octets.
type Flying = (u64, u64, usize, bool, Vec<u8>);

pub struct World {
    pub sides: [Side; 2],
    pub network: Network,
    rng: Rng,
    flying: BinaryHeap<Reverse<Flying>>,
    sequence: u64,
    /// Octets of one exchange.
    step: usize,
    pub now: u64,
}

impl World {
    /// Both with connection 0 to the other; the second clock is so many parts per million fast.
    pub fn new(seed: u64, network: Network, settings: [Settings; 2], media: [Media; 2], ppm: i64) -> World {
        let side = |at: usize, ppm: i64| {
            let mut ds0 = Ds0::new(settings[at]);
            assert!(ds0.open(Time::ZERO, 0, &media[at], seed * 2 + at as u64));
            let step_ns = (1_000_000 - ppm) as u64;
            let idle = settings[at].law.idle();
            Side {
                ds0,
                step_ns,
                due: at as u64 * 300_000,
                source: Box::new(move |_| idle),
                fed: 0,
                heard: Vec::new(),
                keep: true,
                sent: Vec::new(),
            }
        };
        World {
            sides: [side(0, 0), side(1, ppm)],
            network,
            rng: Rng::new(seed),
            flying: BinaryHeap::new(),
            sequence: 0,
            step: STEP,
            now: 0,
        }
    }

    /// Exchanges so many ms at once.
    pub fn step(&mut self, ms: usize) {
        self.step = STEP * ms;
        self.sides.iter_mut().for_each(|side| side.step_ns *= ms as u64);
    }

    pub fn feed(&mut self, side: usize, source: impl FnMut(u64) -> u8 + 'static) {
        self.sides[side].source = Box::new(source);
        self.sides[side].fed = 0;
    }

    /// Lets so much time pass.
    pub fn run(&mut self, millis: u64) {
        let end = self.now + millis * 1_000_000;
        loop {
            let packet = self.flying.peek().map_or(u64::MAX, |Reverse(packet)| packet.0);
            let side = usize::from(self.sides[1].due < self.sides[0].due);
            let next = packet.min(self.sides[side].due);
            if next >= end {
                break;
            }
            self.now = next;
            if packet == next {
                if let Some(Reverse((_, _, to, rtcp, octets))) = self.flying.pop() {
                    let kind = if rtcp { Kind::Rtcp } else { Kind::Rtp };
                    self.sides[to].ds0.packet(Time(next), 0, remote(0), kind, &octets);
                }
            } else {
                self.exchange(side);
            }
        }
        self.now = end;
    }

    fn exchange(&mut self, at: usize) {
        let now = self.now;
        let side = &mut self.sides[at];
        side.due += side.step_ns;
        let mut octets: Vec<u8> = (side.fed..).take(self.step).map(&mut side.source).collect();
        side.fed += self.step as u64;
        let mut packets = Vec::new();
        side.ds0.exchange(Time(now), &mut octets, &mut |_, _, kind, packet| packets.push((kind, packet.to_vec())));
        if side.keep {
            side.heard.extend(octets);
            side.sent.extend(packets.iter().cloned());
        }
        for (kind, packet) in packets {
            let delay = 5_000_000 + self.rng.below(self.network.jitter_ms * 1_000_000 + 1);
            if !self.rng.chance(self.network.loss_per_million) {
                self.sequence += 1;
                self.flying.push(Reverse((now + delay, self.sequence, 1 - at, kind == Kind::Rtcp, packet)));
            }
        }
    }
}

/// A sine of 1004 Hz and -10 dBm0.
pub fn tone(law: Law) -> impl FnMut(u64) -> u8 {
    sine(law, 1004.0, -10.0)
}

pub fn sine(law: Law, hz: f64, dbm0: f32) -> impl FnMut(u64) -> u8 {
    let amplitude = f64::from(law.amplitude(dbm0));
    move |n| law.encode(((n as f64 * hz / 8_000.0 * std::f64::consts::TAU).sin() * amplitude).round() as i32)
}
