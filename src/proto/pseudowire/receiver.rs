//! From the packet network to the trunk: jitter buffer, lost packets, the state of packet loss (RFC 4553 6.2.2 and 6.3, RFC 5086 6.2.2;
//! SAT-09..14, CES-15..17).
//!
//! A [`Receiver`] takes packets as they come and gives one for each packet period of the trunk's clock, or says what to put in its
//! place. It orders by the sequence number of the control word. A packet that comes when its turn has passed is lost.
//!
//! Invariants: every played packet was received once; memory is that of [`ReceiverSettings::depth_max`] packets, taken at construction;
//! one packet in, or one period, costs the same however late, lost or wild the sequence is.

use super::packet::{Header, Layout, Packet};

/// How a receiver behaves; counts of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverSettings {
    /// Packets gathered before playing begins: usually half of `depth_max`. At least 1.
    pub depth: u16,
    /// The most packets kept. What does not fit is an overrun: it is dropped, and gathering begins anew. At least twice `depth`, at most
    /// 1024.
    pub depth_max: u16,
    /// So many lost in a row are the state of packet loss.
    pub loss_after: u16,
    /// So many good ones in a row end it.
    pub normal_after: u16,
}

impl ReceiverSettings {
    /// The same within the allowed ranges.
    fn bounded(self) -> ReceiverSettings {
        let depth_max = self.depth_max.clamp(2, 1024);
        ReceiverSettings {
            depth: self.depth.clamp(1, depth_max / 2),
            depth_max,
            loss_after: self.loss_after.max(1),
            normal_after: self.normal_after.max(1),
        }
    }
}

/// What a receiver does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Gathers for the first time, or after an overrun. The trunk gets filler.
    Filling,
    /// Plays.
    Normal,
    /// Too many were lost in a row. The trunk gets filler, and the far end is told (R).
    PacketLoss,
}

/// What the trunk gets for one packet period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Played<'a> {
    /// A packet.
    Packet(Kept<'a>),
    /// A packet whose trunk is bad at the far end (L): filler, or AIS (SAT-10, CES-17).
    Fault,
    /// Nothing has come for this period: filler.
    Lost,
    /// The state is that of packet loss: filler.
    Silent,
    /// Playing has not begun, or is put off: filler. What comes next is what would have come now.
    Held,
}

/// A packet out of the jitter buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept<'a> {
    /// Its control word.
    pub header: Header,
    /// Octets of the trunk.
    pub data: &'a [u8],
    /// Signalling; none but at the end of a multiframe.
    pub signalling: &'a [u8],
}

/// What was counted; saturating.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Packets played.
    pub played: u64,
    /// Periods for which no packet had come.
    pub lost: u64,
    /// Packets that came twice.
    pub duplicate: u64,
    /// Packets that came when their turn had passed.
    pub late: u64,
    /// Packets too far ahead of what is played to be kept.
    pub overrun: u64,
    /// Times the sequence began anew.
    pub restarted: u64,
}

/// The receiving half of one pseudowire.
#[derive(Debug)]
pub struct Receiver {
    settings: ReceiverSettings,
    state: State,
    /// Playing waits until there is enough.
    gathering: bool,
    /// Periods to let pass before the next one is played.
    held: u16,
    /// The sequence number to play next; none before the first packet.
    next: Option<u16>,
    slots: Box<[Slot]>,
    octets: Box<[u8]>,
    /// Octets of one slot.
    stride: usize,
    waiting: u16,
    /// In a row: periods of gathering while filling, lost packets while normal, good ones in the state of packet loss.
    run: u16,
    /// The packet that lies outside the window, and how many have followed it in order.
    elsewhere: (u16, u16),
    counted: Counted,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    filled: bool,
    header: Header,
    data: u16,
    signalling: u16,
}

/// So many in order outside the window are a new sequence, not strays.
const ELSEWHERE: u16 = 8;

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new(layout: &Layout, settings: ReceiverSettings) -> Receiver {
        let settings = settings.bounded();
        // A power of two divides the 65,536 sequence numbers, so that a slot is a number's own over the wrap.
        let slots = usize::from(settings.depth_max).next_power_of_two();
        let stride = layout.data_octets() + layout.signalling_octets();
        Receiver {
            settings,
            state: State::Filling,
            gathering: true,
            held: 0,
            next: None,
            slots: vec![Slot::default(); slots].into(),
            octets: vec![0; slots * stride].into(),
            stride,
            waiting: 0,
            run: 0,
            elsewhere: (0, 0),
            counted: Counted::default(),
        }
    }

    /// What it does now. In [`State::PacketLoss`] the packets of the other direction carry R (SAT-13).
    pub fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Packets that wait to be played.
    pub fn waiting(&self) -> u16 {
        self.waiting
    }

    /// A packet has come. How many periods after the next one it is played, less than 0 when its turn has passed; `None` while nothing
    /// is played, and for a packet that belongs nowhere.
    pub fn receive(&mut self, packet: &Packet<'_>) -> Option<i32> {
        let sequence = packet.header.sequence;
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next);
        if ahead < self.settings.depth_max {
            self.elsewhere.1 = 0;
            self.keep(packet);
            return (!self.gathering).then(|| i32::from(ahead) + i32::from(self.held));
        }
        let late = next.wrapping_sub(sequence) <= self.settings.depth_max;
        if self.gathering && late && next.wrapping_sub(sequence) + self.span() <= self.settings.depth_max {
            // The first to come was not the first one sent: there is still time for this one.
            self.next = Some(sequence);
            self.keep(packet);
            return None;
        }
        if late {
            self.counted.late = self.counted.late.saturating_add(1);
        } else {
            self.counted.overrun = self.counted.overrun.saturating_add(1);
        }
        let gathering = self.gathering;
        self.follow(packet);
        (late && !gathering && !self.gathering).then(|| -i32::from(next.wrapping_sub(sequence)))
    }

    /// Lets everything be played so many periods later: a controlled slip. The trunk gets filler meanwhile.
    pub fn hold(&mut self, periods: u16) {
        if !self.gathering {
            let room = self.settings.depth_max.saturating_sub(self.span());
            self.held = self.held.saturating_add(periods).min(room);
        }
    }

    /// Leaves out so many periods: a controlled slip. What is left is no less than is gathered before playing begins.
    pub fn skip(&mut self, periods: u16) {
        for _ in 0..periods {
            let Some(next) = self.next.filter(|_| !self.gathering && self.waiting > self.settings.depth) else { return };
            let place = self.place(next);
            let slot = self.slots.get_mut(place).map(std::mem::take).unwrap_or_default();
            self.waiting -= u16::from(slot.filled);
            self.next = Some(next.wrapping_add(1));
        }
    }

    /// One packet period is over.
    pub fn play(&mut self) -> Played<'_> {
        let next = match self.next {
            Some(next) if !self.gathering || self.waiting >= self.settings.depth => next,
            _ => {
                self.wait();
                return Played::Held;
            }
        };
        if let Some(left) = self.held.checked_sub(1) {
            self.held = left;
            return Played::Held;
        }
        self.gathering = false;
        if self.state == State::Filling {
            self.enter(State::Normal);
        }
        self.next = Some(next.wrapping_add(1));
        let place = self.place(next);
        let slot = self.slots.get_mut(place).map(std::mem::take).unwrap_or_default();
        if !slot.filled {
            self.counted.lost = self.counted.lost.saturating_add(1);
            self.note(false);
            return if self.state == State::PacketLoss { Played::Silent } else { Played::Lost };
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.note(true);
        if self.state == State::PacketLoss {
            return Played::Silent;
        }
        self.counted.played = self.counted.played.saturating_add(1);
        if slot.header.local_fault {
            return Played::Fault;
        }
        let from = place * self.stride;
        let kept = self.octets.get(from..from + usize::from(slot.data + slot.signalling)).unwrap_or_default();
        let (data, signalling) = kept.split_at_checked(slot.data.into()).unwrap_or_default();
        Played::Packet(Kept { header: slot.header, data, signalling })
    }

    /// A period without enough to play: filling has its time (SAT-12).
    fn wait(&mut self) {
        if self.state == State::Filling {
            self.run = self.run.saturating_add(1);
            if self.run >= self.settings.depth_max.saturating_add(self.settings.loss_after) {
                self.enter(State::PacketLoss);
            }
        }
    }

    /// Counts a packet, played or lost, towards a change of state.
    fn note(&mut self, good: bool) {
        let (counts, after, then) = match self.state {
            State::Normal => (!good, self.settings.loss_after, State::PacketLoss),
            State::Filling | State::PacketLoss => (good, self.settings.normal_after, State::Normal),
        };
        self.run = if counts { self.run.saturating_add(1) } else { 0 };
        if self.run >= after {
            self.enter(then);
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.run = 0;
    }

    fn keep(&mut self, packet: &Packet<'_>) {
        let place = self.place(packet.header.sequence);
        let from = place * self.stride;
        let (Some(slot), Some(octets)) = (self.slots.get_mut(place), self.octets.get_mut(from..from + self.stride)) else { return };
        if slot.filled {
            self.counted.duplicate = self.counted.duplicate.saturating_add(1);
            return;
        }
        for (place, octet) in octets.iter_mut().zip(packet.data.iter().chain(packet.signalling)) {
            *place = *octet;
        }
        *slot = Slot { filled: true, header: packet.header, data: packet.data.len() as u16, signalling: packet.signalling.len() as u16 };
        self.waiting += 1;
    }

    /// A packet outside the window: the far end may have begun anew, with another number.
    fn follow(&mut self, packet: &Packet<'_>) {
        let sequence = packet.header.sequence;
        let (expected, count) = self.elsewhere;
        let count = if count > 0 && sequence == expected { count + 1 } else { 1 };
        self.elsewhere = (sequence.wrapping_add(1), count);
        if count < ELSEWHERE {
            return;
        }
        self.counted.restarted = self.counted.restarted.saturating_add(1);
        self.elsewhere = (0, 0);
        self.slots.fill(Slot::default());
        self.waiting = 0;
        self.held = 0;
        self.gathering = true;
        if self.state == State::Normal {
            self.enter(State::Filling);
        }
        self.next = Some(sequence);
        self.keep(packet);
    }

    /// From the first to the last packet that waits.
    fn span(&self) -> u16 {
        let Some(next) = self.next else { return 0 };
        (0..self.settings.depth_max)
            .rev()
            .find(|ahead| self.slots.get(self.place(next.wrapping_add(*ahead))).is_some_and(|slot| slot.filled))
            .map_or(0, |ahead| ahead + 1)
    }

    fn place(&self, sequence: u16) -> usize {
        usize::from(sequence) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Fragment, Structure};
    use super::*;
    use crate::proto::base::Rng;
    use std::collections::BTreeSet;

    const SETTINGS: ReceiverSettings = ReceiverSettings { depth: 4, depth_max: 10, loss_after: 5, normal_after: 3 };

    fn receiver() -> Receiver {
        Receiver::new(&Layout::new(Structure::Bits(2), None).unwrap(), SETTINGS)
    }

    fn send(receiver: &mut Receiver, sequence: u16) {
        let data = sequence.to_be_bytes();
        let header = Header { sequence, ..Header::default() };
        receiver.receive(&Packet { header, timestamp: None, fragment: Fragment::Whole, data: &data, signalling: &[] });
    }

    /// What is played, by the number in the data; -1 lost, -2 silent.
    fn play(receiver: &mut Receiver) -> i32 {
        match receiver.play() {
            Played::Packet(kept) => {
                let data = u16::from_be_bytes(kept.data.try_into().unwrap());
                assert_eq!(data, kept.header.sequence);
                data.into()
            }
            Played::Lost => -1,
            Played::Silent | Played::Held => -2,
            Played::Fault => -3,
        }
    }

    #[test]
    fn packets_are_played_in_their_order_over_the_wrap_of_the_sequence() {
        let mut receiver = receiver();
        for sequence in [65_534, 65_533, 0, 65_535] {
            assert_eq!(play(&mut receiver), -2, "gathers");
            send(&mut receiver, sequence);
        }
        assert_eq!((0..4).map(|_| play(&mut receiver)).collect::<Vec<_>>(), [65_533, 65_534, 65_535, 0]);
        assert_eq!(receiver.state(), State::Normal);
    }

    #[test]
    fn what_is_lost_late_or_doubled_is_filled_and_counted() {
        // SAT-09, SAT-10
        let mut receiver = receiver();
        [10, 11, 13, 14, 14].into_iter().for_each(|sequence| send(&mut receiver, sequence));
        assert_eq!((0..4).map(|_| play(&mut receiver)).collect::<Vec<_>>(), [10, 11, -1, 13]);
        send(&mut receiver, 12);
        assert_eq!(play(&mut receiver), 14);
        let expected = Counted { played: 4, lost: 1, duplicate: 1, late: 1, ..Counted::default() };
        assert_eq!(*receiver.counted(), expected);
    }

    #[test]
    fn what_is_skipped_is_not_played_and_never_all_of_it() {
        let mut receiver = receiver();
        (0..SETTINGS.depth + 3).for_each(|sequence| send(&mut receiver, sequence));
        receiver.skip(2);
        assert_eq!((receiver.waiting(), play(&mut receiver)), (SETTINGS.depth + 3, 0), "it gathers");
        receiver.skip(1);
        assert_eq!(play(&mut receiver), 2);
        receiver.skip(100);
        assert_eq!((receiver.waiting(), play(&mut receiver)), (SETTINGS.depth, 3));
    }

    #[test]
    fn many_lost_in_a_row_are_packet_loss_until_as_many_good_ones_came() {
        // SAT-12, SAT-13
        let mut receiver = receiver();
        (0..4).for_each(|sequence| send(&mut receiver, sequence));
        (0..4).for_each(|sequence| assert_eq!(play(&mut receiver), sequence));
        assert_eq!((0..5).map(|_| play(&mut receiver)).collect::<Vec<_>>(), [-1, -1, -1, -1, -2]);
        assert_eq!(receiver.state(), State::PacketLoss);
        for sequence in 9..11 {
            send(&mut receiver, sequence);
            assert_eq!(play(&mut receiver), -2);
        }
        send(&mut receiver, 11);
        assert_eq!((play(&mut receiver), receiver.state()), (11, State::Normal));
    }

    #[test]
    fn a_pseudowire_nothing_comes_from_is_in_packet_loss() {
        let mut receiver = receiver();
        assert!((0..14).all(|_| play(&mut receiver) == -2 && receiver.state() == State::Filling));
        play(&mut receiver);
        assert_eq!(receiver.state(), State::PacketLoss);
    }

    #[test]
    fn a_far_end_that_begins_anew_is_followed_and_a_stray_is_not() {
        let mut receiver = receiver();
        (0..8).for_each(|sequence| send(&mut receiver, sequence));
        send(&mut receiver, 30_000);
        (0..3).for_each(|sequence| assert_eq!(play(&mut receiver), sequence));
        (40_000..40_012).for_each(|sequence| send(&mut receiver, sequence));
        assert_eq!(receiver.counted().restarted, 1);
        assert_eq!((0..3).map(|_| play(&mut receiver)).collect::<Vec<_>>(), [40_007, 40_008, 40_009]);
    }

    #[test]
    fn packets_of_a_bad_trunk_are_told_apart_from_lost_ones() {
        // SAT-10, CES-17
        let mut receiver = receiver();
        for sequence in 0..4 {
            let header = Header { local_fault: true, sequence, ..Header::default() };
            receiver.receive(&Packet { header, timestamp: None, fragment: Fragment::Whole, data: &[], signalling: &[] });
        }
        assert_eq!(play(&mut receiver), -3);
    }

    #[test]
    fn under_loss_delay_and_repetition_each_packet_is_played_once_and_in_order() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut receiver = receiver();
            let first = rng.below(65_536) as u16;
            let mut on_the_way: BTreeSet<(u64, u64, u16)> = BTreeSet::new();
            let (mut played, mut sent) = (Vec::new(), 0);
            for tick in 0..2000u64 {
                if rng.below(50) > 0 {
                    for copy in 0..1 + u64::from(rng.below(30) == 0) {
                        on_the_way.insert((tick + rng.below(4), copy, first.wrapping_add(tick as u16)));
                        sent += 1;
                    }
                }
                while let Some(&arrival) = on_the_way.first().filter(|(at, ..)| *at <= tick) {
                    on_the_way.remove(&arrival);
                    send(&mut receiver, arrival.2);
                }
                let number = play(&mut receiver);
                if number >= 0 {
                    played.push((number as u16).wrapping_sub(first));
                }
            }
            assert!(played.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}");
            assert!(played.len() > 1800, "seed {seed}: {} of {sent}: {:?}", played.len(), receiver.counted());
        }
    }

    #[test]
    fn no_sequence_of_numbers_and_periods_does_harm() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut receiver = receiver();
            for _ in 0..3000 {
                match rng.below(3) {
                    0 => send(&mut receiver, rng.below(65_536) as u16),
                    1 => send(&mut receiver, rng.below(24) as u16),
                    _ => drop(play(&mut receiver)),
                }
                assert!(receiver.waiting() <= SETTINGS.depth_max);
            }
        }
    }
}
