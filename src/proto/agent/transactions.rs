//! The agent's outgoing transactions: identifiers, the command kept for repeats, back-off, alternate addresses, end.
//!
//! RFC 3435 3.5.1 to 3.5.3, 3.5.6 and 4.3: a repeat carries the same identifier and the same bytes; the wait doubles; after Max1 repeats at one
//! address the next one is tried; nothing is repeated later than T-MAX after the first send; after a provisional response the wait
//! is LONGTRAN and the end 2 x T-HIST.
//!
//! Invariants: a transaction is in exactly one of `unsent` and one lane until it ends; all waits of a lane are equally long, so a
//! lane is in the order of its deadlines; memory is allotted in [`Transactions::new`].

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use super::confirm::{self, Confirmations};
use super::finals::{Finals, Repeat};
use super::text::Text;
use crate::proto::base::id::TRANSACTION_ID_MAX;
use crate::proto::base::{NameKey, Rng, Time, TransactionId};
use crate::proto::codec::mgcp::Verb;

/// The longest command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 1024;

const NONE: u32 = u32::MAX;

/// Waits double at most this often before they are all `rto_max`.
const DOUBLINGS: usize = 8;

/// The lane of transactions that got a provisional response.
const LANE_LONG: usize = DOUBLINGS;
const LANES: usize = DOUBLINGS + 1;

/// The timers of RFC 3435 3.5 and 4.3 on the agent's side.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// The wait before the first repeat.
    pub rto_initial: Duration,
    /// The longest wait before a repeat (RTO-MAX).
    pub rto_max: Duration,
    /// Nothing is repeated later than this after the first send.
    pub t_max: Duration,
    /// How long a gateway remembers a response.
    pub t_hist: Duration,
    /// The wait before a repeat after a provisional response (LONGTRAN).
    pub long_transaction: Duration,
    /// Repeats at an address before the next one is tried.
    pub max1: u8,
    /// Repeats at the last address before the transaction is lost.
    pub max2: u8,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            rto_initial: Duration::from_millis(200),
            rto_max: Duration::from_secs(4),
            t_max: Duration::from_secs(20),
            t_hist: Duration::from_secs(30),
            long_transaction: Duration::from_secs(5),
            max1: 5,
            max2: 7,
        }
    }
}

/// A command to send.
pub struct Request<'a> {
    /// Its verb.
    pub verb: Verb,
    /// Whom its end is reported to.
    pub token: u32,
    /// When it should be sent by the schedule; [`Time::NEVER`] when it is not to be measured.
    pub intended: Time,
    /// `local@domain`.
    pub endpoint: &'a [u8],
    /// Parameter lines and, behind an empty line, a session description; each part ends its lines itself.
    pub parameters: &'a [&'a [u8]],
}

/// A transaction that ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The verb of its command.
    pub verb: Verb,
    /// Whom to report to.
    pub token: u32,
    /// Its identifier.
    pub id: TransactionId,
    /// When it should have been sent; [`Time::NEVER`] when it is not measured.
    pub intended: Time,
    /// When it was sent first.
    pub sent: Time,
    /// How often it was repeated.
    pub repeats: u32,
}

/// What a response was.
#[derive(Clone, Copy, Debug)]
pub enum Matched {
    /// Provisional, for this transaction.
    Provisional(u32),
    /// The first final one.
    Final(Ended),
    /// A final one again, with the same bytes.
    Repeat,
    /// A final one again, with other bytes.
    RepeatDiffers,
    /// A provisional one after the final, or a response that belongs to no command we remember.
    Stray,
}

#[derive(Clone, Copy)]
struct Slot {
    /// 0: free.
    id: TransactionId,
    token: u32,
    intended: Time,
    sent: Time,
    due: Time,
    verb: Verb,
    body: u32,
    body_length: u16,
    next: u32,
    previous: u32,
    lane: u8,
    /// Place of the address in use.
    address: u8,
    /// Addresses given up.
    addresses_tried: u8,
    /// Repeats at this address.
    repeats: u8,
    repeats_all: u32,
    /// Waiting in `unsent`.
    unsent: bool,
}

const FREE: Slot = Slot {
    id: 0,
    token: 0,
    intended: Time::NEVER,
    sent: Time::ZERO,
    due: Time::NEVER,
    verb: Verb::Auep,
    body: NONE,
    body_length: 0,
    next: NONE,
    previous: NONE,
    lane: 0,
    address: 0,
    addresses_tried: 0,
    repeats: 0,
    repeats_all: 0,
    unsent: false,
};

#[derive(Clone, Copy)]
struct Lane {
    first: u32,
    last: u32,
}

/// All outgoing transactions.
pub struct Transactions {
    timers: Timers,
    addresses: Vec<SocketAddr>,
    /// The address that new commands go to.
    current: u8,
    /// The address told to be unreachable, until something comes from it.
    unreachable: Option<u8>,
    pad_to: usize,
    next_id: TransactionId,
    /// By identifier modulo the length, a power of two: an identifier whose place is taken is skipped.
    slots: Box<[Slot]>,
    bodies: Box<[u8]>,
    free_bodies: Vec<u32>,
    unsent: VecDeque<u32>,
    lanes: [Lane; LANES],
    finals: Finals,
    in_flight: usize,
    repeats: u64,
    failovers: u64,
}

impl Transactions {
    /// No transactions; at most `limit` at a time. `addresses` must not be empty; `pad_to` is the multiple that commands are
    /// filled to with blanks (1: not at all), so that runs of equal length can be sent together.
    pub fn new(timers: Timers, addresses: Vec<SocketAddr>, limit: usize, pad_to: usize, rng: &mut Rng) -> Transactions {
        let limit = limit.clamp(1, 1 << 20);
        Transactions {
            timers,
            addresses,
            current: 0,
            unreachable: None,
            pad_to: pad_to.clamp(1, COMMAND_BYTES_MAX),
            next_id: 1 + rng.below(u64::from(TRANSACTION_ID_MAX)) as TransactionId,
            slots: vec![FREE; (2 * limit).next_power_of_two()].into(),
            bodies: vec![0; limit * COMMAND_BYTES_MAX].into(),
            free_bodies: (0..limit as u32).rev().collect(),
            unsent: VecDeque::with_capacity(limit),
            lanes: [Lane { first: NONE, last: NONE }; LANES],
            finals: Finals::new((4 * limit).max(1 << 14), NameKey::new([rng.next(), rng.next()])),
            in_flight: 0,
            repeats: 0,
            failovers: 0,
        }
    }

    /// How many have not ended.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether another one fits.
    pub fn has_room(&self) -> bool {
        !self.free_bodies.is_empty()
    }

    /// How many repeats were sent.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// How often a command went on at another address.
    pub fn failovers(&self) -> u64 {
        self.failovers
    }

    /// The address that new commands go to.
    pub fn current_address(&self) -> Option<SocketAddr> {
        self.address(self.current)
    }

    /// Whether `host` is one of the gateway's addresses, whatever the port.
    pub fn is_gateway(&self, from: SocketAddr) -> bool {
        self.addresses.iter().any(|a| a.ip() == from.ip())
    }

    /// Starts a transaction; [`Transactions::poll`] sends it. False when there is no room or the command is too long.
    pub fn start(&mut self, now: Time, request: &Request<'_>, confirmations: &mut Confirmations) -> bool {
        self.start_behind(now, b"", request, confirmations)
    }

    /// The same in one datagram with `front`, messages that are to be read before it; they stand in front of each repeat too, for that
    /// may be the first copy to arrive (RFC 3435 3.5.5, 4.4.1).
    pub fn start_behind(&mut self, now: Time, front: &[u8], request: &Request<'_>, confirmations: &mut Confirmations) -> bool {
        let Some(body) = self.free_bodies.pop() else { return false };
        let id = self.take_id();
        let at = body as usize * COMMAND_BYTES_MAX;
        let mut text = Text::new(&mut self.bodies[at..at + COMMAND_BYTES_MAX]);
        text.push(front);
        compose(&mut text, id, request, now, self.timers.t_hist, confirmations, self.pad_to);
        if text.overflowed() {
            self.free_bodies.push(body);
            return false;
        }
        let body_length = text.len() as u16;
        let place = self.place(id);
        let Request { verb, token, intended, .. } = *request;
        self.slots[place as usize] = Slot { id, token, intended, verb, body, body_length, address: self.current, unsent: true, ..FREE };
        self.unsent.push_back(place);
        self.in_flight += 1;
        true
    }

    /// The response `code` for `id` has arrived as `message`.
    pub fn handle_response(&mut self, now: Time, code: u16, id: TransactionId, message: &[u8]) -> Matched {
        let place = self.place(id);
        let slot = self.slots[place as usize];
        let provisional = (100..200).contains(&code);
        if slot.id != id || id == 0 || slot.unsent {
            return match self.finals.compare(id, message) {
                Repeat::Same => Matched::Repeat,
                Repeat::Differs if !provisional => Matched::RepeatDiffers,
                _ => Matched::Stray,
            };
        }
        if provisional {
            self.leave_lane(place);
            self.enter_lane(now, place, LANE_LONG);
            return Matched::Provisional(slot.token);
        }
        self.leave_lane(place);
        self.finals.insert(id, message);
        Matched::Final(self.end(place))
    }

    /// Something came from `from`: it is reachable.
    pub fn heard(&mut self, from: SocketAddr) {
        if self.unreachable.and_then(|place| self.address(place)) == Some(from) {
            self.unreachable = None;
        }
    }

    /// The network says that `address` cannot be reached (RFC 3435 4.3): commands go on at another one. Only a hint, as it can
    /// be forged: what comes from there is still taken.
    pub fn handle_unreachable(&mut self, address: SocketAddr) {
        let Some(place) = self.addresses.iter().position(|a| *a == address) else { return };
        if self.addresses.len() > 1 {
            self.unreachable = Some(place as u8);
            if usize::from(self.current) == place {
                self.current = self.following(place as u8);
            }
        }
    }

    /// Sends what is to be sent now; tells `lost` which transactions ended without a final response.
    pub fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), lost: &mut impl FnMut(Ended)) {
        for lane in 0..LANES {
            while let Some(place) = self.due(now, lane) {
                self.leave_lane(place);
                if !self.repeat(now, place, out) {
                    lost(self.end(place));
                }
            }
        }
        while let Some(place) = self.unsent.pop_front() {
            let current = self.current;
            let slot = &mut self.slots[place as usize];
            slot.unsent = false;
            slot.sent = now;
            slot.address = current;
            self.emit(place, out);
            self.enter_lane(now, place, 0);
        }
    }

    /// When [`Transactions::poll`] has something to do; [`Time::ZERO`] when at once.
    pub fn deadline(&self) -> Time {
        if !self.unsent.is_empty() {
            return Time::ZERO;
        }
        self.lanes.iter().filter_map(|lane| self.slots.get(lane.first as usize)).map(|slot| slot.due).min().unwrap_or(Time::NEVER)
    }

    fn address(&self, place: u8) -> Option<SocketAddr> {
        self.addresses.get(usize::from(place)).copied()
    }

    fn following(&self, place: u8) -> u8 {
        ((usize::from(place) + 1) % self.addresses.len().max(1)) as u8
    }

    fn place(&self, id: TransactionId) -> u32 {
        id & (self.slots.len() as u32 - 1)
    }

    /// The next identifier whose place is free; there is one, as at most half of the places are taken.
    fn take_id(&mut self) -> TransactionId {
        loop {
            let id = self.next_id;
            self.next_id = if id >= TRANSACTION_ID_MAX { 1 } else { id + 1 };
            if self.slots[self.place(id) as usize].id == 0 {
                return id;
            }
        }
    }

    /// Repeats the command whose wait is over, or false when it is lost.
    fn repeat(&mut self, now: Time, place: u32, out: &mut impl FnMut(SocketAddr, &[u8])) -> bool {
        let addresses_left = self.addresses.len() - 1;
        let following = self.following(self.slots[place as usize].address);
        let slot = &mut self.slots[place as usize];
        let age = now.since(slot.sent);
        let provisional = usize::from(slot.lane) == LANE_LONG;
        if provisional && age >= self.timers.t_max {
            // Nothing is repeated any more, but the final response may still come until 2 x T-HIST.
            self.enter_lane(now, place, LANE_LONG);
            return age < 2 * self.timers.t_hist;
        }
        let may_move = usize::from(slot.addresses_tried) < addresses_left;
        if age >= self.timers.t_max || (!may_move && !provisional && slot.repeats >= self.timers.max2) {
            return false;
        }
        let mut lane = if provisional { LANE_LONG } else { (usize::from(slot.lane) + 1).min(DOUBLINGS - 1) };
        if may_move && (slot.repeats >= self.timers.max1 || self.unreachable == Some(slot.address)) {
            let given_up = slot.address;
            slot.address = following;
            slot.addresses_tried += 1;
            slot.repeats = 0;
            lane = if provisional { LANE_LONG } else { 0 };
            self.failovers += 1;
            if self.current == given_up {
                self.current = following;
            }
        } else {
            slot.repeats = slot.repeats.saturating_add(1);
        }
        slot.repeats_all += 1;
        self.repeats += 1;
        self.emit(place, out);
        self.enter_lane(now, place, lane);
        true
    }

    fn emit(&self, place: u32, out: &mut impl FnMut(SocketAddr, &[u8])) {
        let slot = &self.slots[place as usize];
        let at = slot.body as usize * COMMAND_BYTES_MAX;
        if let Some(to) = self.address(slot.address) {
            out(to, &self.bodies[at..at + usize::from(slot.body_length)]);
        }
    }

    fn end(&mut self, place: u32) -> Ended {
        let slot = std::mem::replace(&mut self.slots[place as usize], FREE);
        self.free_bodies.push(slot.body);
        self.in_flight -= 1;
        let Slot { verb, token, id, intended, sent, repeats_all: repeats, .. } = slot;
        Ended { verb, token, id, intended, sent, repeats }
    }

    fn wait(&self, lane: usize) -> Duration {
        match lane {
            LANE_LONG => self.timers.long_transaction,
            doublings => (self.timers.rto_initial * (1 << doublings.min(DOUBLINGS))).min(self.timers.rto_max),
        }
    }

    fn due(&self, now: Time, lane: usize) -> Option<u32> {
        let first = self.lanes[lane].first;
        self.slots.get(first as usize).filter(|slot| slot.due <= now).map(|_| first)
    }

    fn enter_lane(&mut self, now: Time, place: u32, lane: usize) {
        let due = now + self.wait(lane);
        let last = std::mem::replace(&mut self.lanes[lane].last, place);
        match self.slots.get_mut(last as usize) {
            Some(slot) => slot.next = place,
            None => self.lanes[lane].first = place,
        }
        let slot = &mut self.slots[place as usize];
        slot.lane = lane as u8;
        slot.due = due;
        slot.previous = last;
        slot.next = NONE;
    }

    fn leave_lane(&mut self, place: u32) {
        let Slot { lane, previous, next, .. } = self.slots[place as usize];
        let lane = usize::from(lane);
        match self.slots.get_mut(previous as usize) {
            Some(slot) => slot.next = next,
            None => self.lanes[lane].first = next,
        }
        match self.slots.get_mut(next as usize) {
            Some(slot) => slot.previous = previous,
            None => self.lanes[lane].last = previous,
        }
    }
}

/// Writes a command. The blanks that fill it up stand in front of the version, where the grammar allows any number.
fn compose(
    text: &mut Text<'_>,
    id: TransactionId,
    request: &Request<'_>,
    now: Time,
    history: Duration,
    confirmations: &mut Confirmations,
    pad_to: usize,
) {
    const VERSION: &[u8] = b" MGCP 1.0\r\n";
    let mut line = [0; confirm::LINE_MAX];
    let mut confirmation = Text::new(&mut line);
    confirmations.write(now, history, &mut confirmation);
    text.push(request.verb.name().as_bytes());
    text.push(b" ");
    text.number(id);
    text.push(b" ");
    text.push(request.endpoint);
    let parameters: usize = request.parameters.iter().map(|part| part.len()).sum();
    let length = text.len() + VERSION.len() + confirmation.len() + parameters;
    text.blanks(length.next_multiple_of(pad_to) - length);
    text.push(VERSION);
    text.push(confirmation.as_bytes());
    request.parameters.iter().for_each(|part| text.push(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    /// Time in ms, port, bytes.
    type Sent = (u64, u16, Vec<u8>);

    fn addresses(count: u16) -> Vec<SocketAddr> {
        (0..count).map(|i| SocketAddr::from(([127, 0, 0, 1], 2427 + i))).collect()
    }

    fn transactions(addresses_count: u16, limit: usize) -> Transactions {
        Transactions::new(Timers::default(), addresses(addresses_count), limit, 1, &mut Rng::new(3))
    }

    fn start(all: &mut Transactions, now: Time, token: u32) -> bool {
        let request = Request { verb: Verb::Auep, token, intended: now, endpoint: b"a@b", parameters: &[b"F: I\r\n"] };
        all.start(now, &request, &mut Confirmations::new())
    }

    /// Polls at every deadline until `end`; gives what was sent, and the times of losses.
    fn run(all: &mut Transactions, end: Time) -> (Vec<Sent>, Vec<u64>) {
        let (mut sent, mut lost) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        while now <= end {
            let at = now.0 / MILLI;
            all.poll(now, &mut |to, bytes| sent.push((at, to.port(), bytes.to_vec())), &mut |_| lost.push(at));
            let next = all.deadline();
            assert!(next > now, "a deadline in the past after poll");
            now = next;
        }
        (sent, lost)
    }

    #[test]
    fn repeats_back_off_with_the_same_bytes_and_end_by_max2() {
        // G-RTX-01, G-RTX-08, G-RTX-15, G-TRX-07
        let mut all = transactions(1, 4);
        assert!(start(&mut all, Time::ZERO, 7));
        let (sent, lost) = run(&mut all, Time::from_millis(100_000));
        assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [0, 200, 600, 1400, 3000, 6200, 10_200, 14_200]);
        assert!(sent.iter().all(|s| s.2 == sent[0].2));
        assert_eq!((lost, all.in_flight(), all.repeats()), (vec![18_200], 0, 7));
    }

    #[test]
    fn the_next_address_is_tried_after_max1_and_kept_for_new_commands() {
        // G-RTX-05, G-RTX-08
        let mut all = transactions(2, 4);
        start(&mut all, Time::ZERO, 7);
        let (sent, lost) = run(&mut all, Time::from_millis(100_000));
        let first: Vec<u64> = sent.iter().filter(|s| s.1 == 2427).map(|s| s.0).collect();
        let second: Vec<u64> = sent.iter().filter(|s| s.1 == 2428).map(|s| s.0).collect();
        assert_eq!(first, [0, 200, 600, 1400, 3000, 6200]);
        assert_eq!(second, [10_200, 10_400, 10_800, 11_600, 13_200, 16_400]);
        assert!(lost == [20_400] && sent.iter().all(|s| s.0 <= 20_000));
        assert_eq!(all.current_address().unwrap().port(), 2428);
        start(&mut all, Time::from_millis(30_000), 8);
        let mut ports = Vec::new();
        all.poll(Time::from_millis(30_000), &mut |to, _| ports.push(to.port()), &mut |_| ());
        assert_eq!(ports, [2428]);
    }

    #[test]
    fn an_unreachable_address_is_left_at_the_next_repeat() {
        // G-RTX-13
        let mut all = transactions(2, 4);
        start(&mut all, Time::ZERO, 1);
        let mut ports = Vec::new();
        all.poll(Time::ZERO, &mut |to, _| ports.push(to.port()), &mut |_| ());
        all.handle_unreachable(addresses(1)[0]);
        all.poll(Time::from_millis(200), &mut |to, _| ports.push(to.port()), &mut |_| ());
        start(&mut all, Time::from_millis(200), 2);
        all.poll(Time::from_millis(200), &mut |to, _| ports.push(to.port()), &mut |_| ());
        assert_eq!(ports, [2427, 2428, 2428]);
        let mut only = transactions(1, 4);
        only.handle_unreachable(addresses(1)[0]);
        assert_eq!(only.current_address().unwrap().port(), 2427);
    }

    #[test]
    fn responses_are_matched_and_repeats_compared() {
        let mut all = transactions(1, 4);
        start(&mut all, Time::ZERO, 7);
        let mut bytes = Vec::new();
        all.poll(Time::ZERO, &mut |_, b| bytes = b.to_vec(), &mut |_| ());
        let id: u32 = String::from_utf8(bytes).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let response = format!("200 {id} OK\r\n");
        assert!(matches!(all.handle_response(Time::ZERO, 200, id + 1, b"200 x"), Matched::Stray));
        let Matched::Final(ended) = all.handle_response(Time::ZERO, 200, id, response.as_bytes()) else { panic!() };
        assert_eq!((ended.token, ended.id, all.in_flight(), all.deadline()), (7, id, 0, Time::NEVER));
        assert!(matches!(all.handle_response(Time::ZERO, 200, id, response.as_bytes()), Matched::Repeat));
        assert!(matches!(all.handle_response(Time::ZERO, 250, id, b"250"), Matched::RepeatDiffers));
        assert!(matches!(all.handle_response(Time::ZERO, 100, id, b"100"), Matched::Stray));
    }

    #[test]
    fn a_provisional_response_slows_repeats_and_the_end_is_twice_t_hist() {
        // G-PRV-04, G-RTX-06
        let mut all = transactions(1, 4);
        start(&mut all, Time::ZERO, 7);
        all.poll(Time::ZERO, &mut |_, _| (), &mut |_| ());
        let id = all.next_id - 1;
        assert!(matches!(all.handle_response(Time::ZERO, 100, id, b"100"), Matched::Provisional(7)));
        let (mut sent, mut lost) = (Vec::new(), Vec::new());
        while all.deadline() != Time::NEVER {
            let now = all.deadline();
            all.poll(now, &mut |_, _| sent.push(now.0 / MILLI), &mut |_| lost.push(now.0 / MILLI));
        }
        assert_eq!((sent, lost), (vec![5_000, 10_000, 15_000], vec![60_000]));
    }

    #[test]
    fn room_is_bounded_and_a_taken_place_is_skipped() {
        let mut all = transactions(1, 2);
        all.next_id = TRANSACTION_ID_MAX;
        assert!(start(&mut all, Time::ZERO, 1) && start(&mut all, Time::ZERO, 2) && !start(&mut all, Time::ZERO, 3));
        assert!(!all.has_room());
        all.poll(Time::ZERO, &mut |_, _| (), &mut |_| ());
        assert!(matches!(all.handle_response(Time::ZERO, 200, 1, b"200 1"), Matched::Final(Ended { token: 2, .. })));
        all.next_id = TRANSACTION_ID_MAX - 4;
        assert!(start(&mut all, Time::ZERO, 4));
        assert_eq!(all.next_id, TRANSACTION_ID_MAX - 2, "the place of 999,999,999 is skipped");
    }

    #[test]
    fn padding_makes_equal_lengths_in_front_of_the_version() {
        let mut all = Transactions::new(Timers::default(), addresses(1), 4, 32, &mut Rng::new(3));
        start(&mut all, Time::ZERO, 1);
        all.poll(Time::ZERO, &mut |_, b| assert!(b.len() % 32 == 0 && b.ends_with(b" MGCP 1.0\r\nF: I\r\n")), &mut |_| ());
        let parameters = [&[b'x'; COMMAND_BYTES_MAX][..]];
        let request = Request { verb: Verb::Auep, token: 0, intended: Time::ZERO, endpoint: b"a@b", parameters: &parameters };
        assert!(!all.start(Time::ZERO, &request, &mut Confirmations::new()));
        assert!(start(&mut all, Time::ZERO, 1) && start(&mut all, Time::ZERO, 1) && start(&mut all, Time::ZERO, 1));
    }
}
