//! What is kept for an endpoint that has had a request, or has seen an event before its first one: lists, events, signals, timers.
//!
//! A [`Watch`] is taken when it is first needed and given back when the endpoint restarts; an endpoint without one is in the state
//! after a restart. Everything is sized at boot: watches for as many endpoints as the core owns, events in one pool shared by all, lists
//! as text among the blobs of the core. Each watch always has room for the event that triggers a notification and for three others, whatever
//! happens elsewhere: lines that flood take no more than what nobody has a share of.

use super::dial::Dials;
use super::hold::Held;
use super::playing::{Ending, Member, Signal, Signals};
use crate::proto::base::{EndpointIndex, HexId, Queue, QueuePool, Slab, Time, TransactionId};
use crate::proto::endpoint::{Blob, ConnectionId, EntityId};
use crate::proto::package::EventId;
use crate::proto::timer::{Expired, TimerWheel};
use crate::proto::trunk::{EventText, Sounds};
use std::collections::VecDeque;
use std::time::Duration;

/// Events that are accumulated, beside the one that triggers the notification.
pub const OBSERVED_MAX: u8 = 32;
/// Events in quarantine.
pub const QUARANTINED_MAX: u8 = 32;
/// Events that each endpoint has room for, beside the one that triggers.
const SHARE: usize = 3;
/// Events that those share who have more.
const SHARED: usize = 256;
/// Notifications of one endpoint that are out at a time: the latest, and older ones that are repeated in front of it.
pub const NOTIFIES_MAX: usize = 4;

const TICK: Duration = Duration::from_millis(10);

/// The place of a watch in the table of its core.
pub type WatchSlot = u32;

/// How to treat events that arrive while a notification is out (RFC 3435 3.2.2.14); not sticky (G-QUA-10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quarantine {
    /// `loop`: several notifications for one request; default `step`.
    pub looping: bool,
    /// `discard` what was quarantined; default `process`.
    pub discard: bool,
}

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// What.
    pub event: EventId,
    /// On which connection; `None`: on the endpoint.
    pub connection: Option<ConnectionId>,
    /// Its parameters as a report writes them, without parentheses.
    pub parameters: EventText,
}

/// What becomes of events that are to be detected (RFC 3435 4.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// They are quarantined: a request is awaited, the first one or, in step mode, the next.
    #[default]
    Lockstep,
    /// They are processed as they come.
    Normal,
    /// They are quarantined: a notification was triggered, and is out or about to be sent.
    Notification,
}

/// Where an event or signal is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// On the endpoint.
    #[default]
    Endpoint,
    /// On this connection.
    Connection(ConnectionId),
    /// On all connections, present and future.
    All,
}

/// Who waits for a connection to have been up for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ages {
    /// One bit for each list that has G/ld.
    lists: u8,
    /// When the next connection that is asked for will have been.
    pub due: Time,
}

impl Ages {
    const NOBODY: Ages = Ages { lists: 0, due: Time::NEVER };

    /// Whether list number `n` has G/ld.
    fn list(&mut self, n: usize, has: bool) {
        self.lists = self.lists & !(1 << n) | u8::from(has) << n;
    }

    /// Whether any has.
    pub fn are_asked(&self) -> bool {
        self.lists != 0
    }
}

/// One endpoint's part of the event machine.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Whose it is.
    pub endpoint: EndpointIndex,
    /// The identifier of the latest request; [`HexId::NONE`] when there was none since the restart.
    pub request: HexId,
    /// The notified entity that the latest request named; its use is counted.
    pub named: Option<EntityId>,
    /// Quarantine handling of the latest request.
    pub quarantine: Quarantine,
    /// The digit map.
    pub digit_map: Blob,
    /// Requested events in canonical form.
    pub requested: Blob,
    /// DetectEvents in canonical form.
    pub detected: Blob,
    /// B/PR in canonical form.
    pub persistent: Blob,
    /// What becomes of events.
    pub state: State,
    /// Accumulated events.
    observed: Queue,
    /// The event that triggered the notification that is out or to be sent.
    trigger: Queue,
    /// Events to process later.
    quarantined: Queue,
    /// An event that should have been accumulated was lost: B/oef was generated.
    pub observed_full: bool,
    /// An event that should have been quarantined was lost: B/qbo follows the last one.
    pub overflowed: bool,
    /// When the timer of D/T runs out.
    pub digit_timer: Time,
    /// The key of the circuit that is down.
    pub held: Option<Held>,
    /// Who asks for G/ld, and when it is due.
    pub ages: Ages,
    /// The sounds each list waits for, and what the card listens for.
    pub sounds: [Sounds; 3],
    /// See `sounds`.
    pub listening: Sounds,
    /// Its signals.
    pub signals: Signals,
    /// The member of the signal list that is being played.
    pub member: Option<Member>,
    /// Notifications without response, oldest first; 0 where there is none.
    notifies: [TransactionId; NOTIFIES_MAX],
    /// So many of the oldest of them have one behind them that was answered: the agent is past them.
    overtaken: u8,
    /// The one whose response ends the notification state; `None` when it has not been sent yet, or was lost.
    pub awaited: Option<TransactionId>,
    /// The notification that was triggered has not been sent yet.
    pub unsent: bool,
    /// A notification was lost: nothing is sent before the agent knows that the endpoint was disconnected.
    pub cut_off: bool,
    /// It is in the queue of those to send.
    queued: bool,
    /// When to try again to send it.
    pub retry: Time,
    generation: u32,
}

impl Watch {
    /// List number `n` waits for these sounds, and for G/ld or not.
    pub(super) fn listens(&mut self, n: usize, sounds: Sounds, long_duration: bool) {
        self.ages.list(n, long_duration);
        if let Some(place) = self.sounds.get_mut(n) {
            *place = sounds;
        }
    }

    /// When something is due next.
    fn deadline(&self) -> Time {
        let ends = |signal: Signal| match signal.ending {
            Ending::TimeOut(at) | Ending::Brief(at) => at,
            Ending::Failed => Time::ZERO,
            Ending::Order | Ending::Pending => Time::NEVER,
        };
        let signals = self.signals.iter().map(ends).min().unwrap_or(Time::NEVER);
        let held = self.held.map_or(Time::NEVER, |held| held.due);
        signals.min(self.digit_timer).min(self.retry).min(self.ages.due).min(held)
    }

    /// A notification was sent.
    pub fn sent(&mut self, id: TransactionId) {
        if let Some(place) = self.notifies.iter_mut().find(|place| **place == 0) {
            *place = id;
        }
        self.awaited = Some(id);
        self.unsent = false;
    }

    /// A notification is sent anew, under another id and in the same place.
    pub fn renamed(&mut self, id: TransactionId, new: TransactionId) {
        self.notifies.iter_mut().filter(|sent| **sent == id).for_each(|sent| *sent = new);
        if self.awaited == Some(id) {
            self.awaited = Some(new);
        }
    }

    /// A notification is no longer out.
    pub fn ended(&mut self, id: TransactionId) {
        if self.is_overtaken(id) {
            self.overtaken -= 1;
        }
        let mut left = self.notifies.into_iter().filter(|&sent| sent != 0 && sent != id);
        self.notifies = std::array::from_fn(|_| left.next().unwrap_or(0));
    }

    /// A notification got its response.
    pub fn answered(&mut self, id: TransactionId) {
        if let Some(place) = self.outstanding().position(|sent| sent == id) {
            self.overtaken = self.overtaken.max(place as u8);
        }
        self.ended(id);
    }

    /// Whether a notification behind this one got its response, so that it must not be told after that.
    pub fn is_overtaken(&self, id: TransactionId) -> bool {
        self.outstanding().take(self.overtaken.into()).any(|sent| sent == id)
    }

    /// Notifications without response, oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = TransactionId> + use<> {
        self.notifies.into_iter().filter(|&id| id != 0)
    }

    /// Whether an on/off signal is on or a time-out signal is played.
    pub fn is_playing(&self) -> bool {
        self.signals.iter().any(|signal| matches!(signal.ending, Ending::Order | Ending::TimeOut(_)))
    }

    /// Events beside the one that triggers.
    fn held_events(&self) -> usize {
        self.observed.len() + self.quarantined.len()
    }
}

/// A list of events of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Those accumulated.
    Observed,
    /// The one that triggered a notification.
    Trigger,
    /// Those in quarantine.
    Quarantined,
}

impl Which {
    fn of(self, watch: &Watch) -> Queue {
        match self {
            Which::Observed => watch.observed,
            Which::Trigger => watch.trigger,
            Which::Quarantined => watch.quarantined,
        }
    }

    fn of_mut(self, watch: &mut Watch) -> &mut Queue {
        match self {
            Which::Observed => &mut watch.observed,
            Which::Trigger => &mut watch.trigger,
            Which::Quarantined => &mut watch.quarantined,
        }
    }

    fn capacity(self) -> u8 {
        match self {
            Which::Observed => OBSERVED_MAX,
            Which::Trigger => 1,
            Which::Quarantined => QUARANTINED_MAX,
        }
    }
}

/// The watches of one core.
pub struct Watches {
    list: Slab<Watch>,
    pool: QueuePool<Occurrence>,
    /// What watches have not taken of their shares; there is as much room in the pool.
    reserved: usize,
    wheel: TimerWheel,
    dials: Dials,
    /// Endpoints with a notification to send, in the order in which they were triggered.
    due: VecDeque<EndpointIndex>,
    generation: u32,
}

impl Watches {
    /// The bytes that the watches of so many endpoints take, without the timers.
    pub fn memory(endpoints: u32) -> u64 {
        let limit = endpoints as usize;
        let each = size_of::<Watch>() + size_of::<WatchSlot>() + size_of::<EndpointIndex>();
        (limit * each) as u64 + QueuePool::<Occurrence>::memory(Watches::nodes(limit))
    }

    /// Events of all lists together.
    fn nodes(limit: usize) -> usize {
        limit * (SHARE + 1) + SHARED
    }

    /// Watches for `endpoints` endpoints.
    pub fn new(endpoints: u32, now: Time) -> Watches {
        let limit = endpoints as usize;
        let nodes = Watches::nodes(limit);
        Watches {
            list: Slab::new(limit),
            pool: QueuePool::new(nodes),
            reserved: limit * (SHARE + 1),
            wheel: TimerWheel::new(endpoints, TICK, now),
            dials: Dials::new(limit),
            due: VecDeque::with_capacity(limit),
            generation: 0,
        }
    }

    /// The watch in `slot`.
    pub fn get(&self, slot: WatchSlot) -> Option<&Watch> {
        self.list.get(slot)
    }

    /// The watch in `slot`, to change. [`Watches::reschedule`] follows when something is due at another time.
    pub fn get_mut(&mut self, slot: WatchSlot) -> Option<&mut Watch> {
        self.list.get_mut(slot)
    }

    /// The digits of the watches.
    pub(super) fn dials(&mut self) -> &mut Dials {
        &mut self.dials
    }

    /// A watch for `endpoint`; `None` only when more endpoints want one than the core owns.
    pub fn take(&mut self, endpoint: EndpointIndex) -> Option<WatchSlot> {
        self.generation = self.generation.wrapping_add(1);
        let watch = Watch {
            endpoint,
            request: HexId::NONE,
            named: None,
            quarantine: Quarantine::default(),
            digit_map: Blob::NONE,
            requested: Blob::NONE,
            detected: Blob::NONE,
            persistent: Blob::NONE,
            state: State::default(),
            observed: Queue::EMPTY,
            trigger: Queue::EMPTY,
            quarantined: Queue::EMPTY,
            observed_full: false,
            overflowed: false,
            digit_timer: Time::NEVER,
            held: None,
            ages: Ages::NOBODY,
            sounds: [Sounds::NONE; 3],
            listening: Sounds::NONE,
            signals: Signals::NONE,
            member: None,
            notifies: [0; NOTIFIES_MAX],
            overtaken: 0,
            awaited: None,
            unsent: false,
            cut_off: false,
            queued: false,
            retry: Time::NEVER,
            generation: self.generation,
        };
        self.list.take(watch)
    }

    /// Gives a watch back. Its blobs, signals and entity must be gone already.
    pub fn give_back(&mut self, slot: WatchSlot) {
        for which in [Which::Observed, Which::Trigger, Which::Quarantined] {
            self.clear(slot, which);
        }
        let Some(watch) = self.list.get(slot) else { return };
        let endpoint = watch.endpoint;
        if watch.queued {
            self.due.retain(|&due| due != endpoint);
        }
        self.wheel.cancel(slot, watch.generation);
        self.list.give_back(slot);
    }

    /// Adds an event to a list; false when there is no room. There always is for a trigger, and for the share of the endpoint.
    pub fn push(&mut self, slot: WatchSlot, which: Which, occurrence: Occurrence) -> bool {
        let Some(watch) = self.list.get_mut(slot) else { return false };
        let own = which == Which::Trigger || watch.held_events() < SHARE;
        let room = own || self.pool.left() > self.reserved;
        let fits = which.of(watch).len() < usize::from(which.capacity()) && room && self.pool.push(which.of_mut(watch), occurrence);
        self.reserved -= usize::from(fits && own);
        fits
    }

    /// Takes the oldest event of a list.
    pub fn pop(&mut self, slot: WatchSlot, which: Which) -> Option<Occurrence> {
        let watch = self.list.get_mut(slot)?;
        let popped = self.pool.pop(which.of_mut(watch))?;
        self.reserved += usize::from(which == Which::Trigger || watch.held_events() < SHARE);
        Some(popped)
    }

    /// Forgets a list.
    pub fn clear(&mut self, slot: WatchSlot, which: Which) {
        while self.pop(slot, which).is_some() {}
    }

    /// Accumulated events are to be processed again, before those in quarantine.
    pub fn quarantine_observed(&mut self, slot: WatchSlot) {
        if let Some(watch) = self.list.get_mut(slot) {
            watch.quarantined = self.pool.join(std::mem::replace(&mut watch.observed, Queue::EMPTY), watch.quarantined);
        }
    }

    /// The events of a list in order.
    pub fn events(&self, watch: &Watch, which: Which) -> impl Iterator<Item = &Occurrence> {
        self.pool.iter(which.of(watch))
    }

    /// Sets the timer of a watch to what it says.
    pub fn reschedule(&mut self, slot: WatchSlot) {
        let Some(watch) = self.list.get(slot) else { return };
        match watch.deadline() {
            Time::NEVER => {
                self.wheel.cancel(slot, watch.generation);
            }
            at => {
                self.wheel.schedule(slot, watch.generation, at);
            }
        }
    }

    /// The endpoint of the next watch with something due.
    pub fn poll(&mut self, now: Time, budget: &mut u32) -> Option<EndpointIndex> {
        while let Some(Expired { key, generation, .. }) = self.wheel.advance(now, budget) {
            if let Some(watch) = self.list.get(key).filter(|watch| watch.generation == generation) {
                return Some(watch.endpoint);
            }
        }
        None
    }

    /// When there is something to do: a timer, or a notification to send.
    pub fn deadline(&self) -> Time {
        if self.due.is_empty() { self.wheel.deadline() } else { Time::ZERO }
    }

    /// The watch has a notification to send.
    pub fn queue(&mut self, slot: WatchSlot) {
        if let Some(watch) = self.list.get_mut(slot)
            && !std::mem::replace(&mut watch.queued, true)
        {
            self.due.push_back(watch.endpoint);
        }
    }

    /// The next endpoint with a notification to send; its watch is no longer queued.
    pub fn next_due(&mut self, slot_of: impl FnOnce(EndpointIndex) -> Option<WatchSlot>) -> Option<EndpointIndex> {
        let endpoint = self.due.pop_front()?;
        if let Some(watch) = slot_of(endpoint).and_then(|slot| self.list.get_mut(slot)) {
            watch.queued = false;
        }
        Some(endpoint)
    }

    /// Watches in use, and events kept.
    pub fn usage(&self) -> (usize, usize) {
        (self.list.taken(), self.pool.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    fn occurrence(number: u32) -> Occurrence {
        let event = crate::proto::package::find_item(crate::proto::package::PackageId::T, b"co1").unwrap();
        Occurrence { event, connection: None, parameters: EventText::new(&number.to_be_bytes()) }
    }

    /// Lists of several watches in one pool, against plain lists; a trigger always finds room.
    #[test]
    fn lists_keep_their_order_and_their_bounds() {
        const WATCHES: usize = 20;
        let mut watches = Watches::new(WATCHES as u32, Time::ZERO);
        let slots: Vec<_> = (0..WATCHES as u32).map(|n| watches.take(EndpointIndex(n)).unwrap()).collect();
        assert_eq!(watches.take(EndpointIndex(99)), None);
        let mut model = vec![[const { Vec::<u32>::new() }; 3]; WATCHES];
        let mut rng = Rng::new(11);
        for number in 0..60_000 {
            let place = rng.below(WATCHES as u64) as usize;
            let (slot, lists) = (slots[place], &mut model[place]);
            let which = [Which::Observed, Which::Trigger, Which::Quarantined][rng.below(3) as usize];
            let settled = lists[2].is_empty();
            let held = lists[0].len() + lists[2].len();
            let list = &mut lists[which as usize];
            match rng.below(8) {
                0 => assert_eq!(watches.pop(slot, which), (!list.is_empty()).then(|| occurrence(list.remove(0)))),
                1 if rng.below(20) == 0 => {
                    watches.clear(slot, which);
                    list.clear();
                }
                // A watch has nothing in quarantine when it goes back to what it has accumulated.
                2 if settled => {
                    watches.quarantine_observed(slot);
                    lists[2] = std::mem::take(&mut lists[0]);
                }
                _ => {
                    let pushed = watches.push(slot, which, occurrence(number));
                    assert!(!pushed || list.len() < usize::from(which.capacity()));
                    assert!(pushed || which != Which::Trigger || !list.is_empty(), "no room for a trigger");
                    assert!(
                        pushed || which == Which::Trigger || held >= SHARE || list.len() >= usize::from(which.capacity()),
                        "no room for its share"
                    );
                    if pushed {
                        list.push(number);
                    }
                }
            }
            let watch = *watches.get(slot).unwrap();
            for which in [Which::Observed, Which::Trigger, Which::Quarantined] {
                let kept = watches.events(&watch, which).copied();
                assert!(kept.eq(model[place][which as usize].iter().map(|&number| occurrence(number))));
            }
        }
        let events: usize = model.iter().flatten().map(Vec::len).sum();
        assert_eq!(watches.usage(), (WATCHES, events));
        slots.iter().for_each(|&slot| watches.give_back(slot));
        assert_eq!(watches.usage(), (0, 0));
    }

    /// G-QUA-05's kind: lines that flood their quarantine take what is shared and nothing of what others have for sure.
    #[test]
    fn a_flood_takes_no_room_from_others() {
        const WATCHES: u32 = 40;
        let mut watches = Watches::new(WATCHES, Time::ZERO);
        let slots: Vec<_> = (0..WATCHES).map(|n| watches.take(EndpointIndex(n)).unwrap()).collect();
        let (floods, quiet) = slots.split_at(20);
        for round in 0..64 {
            for &slot in floods {
                let which = if round < 32 { Which::Observed } else { Which::Quarantined };
                watches.push(slot, which, occurrence(round));
            }
        }
        for &slot in floods.iter().chain(quiet) {
            assert!(watches.push(slot, Which::Trigger, occurrence(0)));
        }
        for &slot in quiet {
            assert!((0..SHARE as u32).all(|number| watches.push(slot, Which::Quarantined, occurrence(number))));
        }
        // All of it comes back.
        slots.iter().for_each(|&slot| watches.give_back(slot));
        assert_eq!((watches.usage(), watches.reserved), ((0, 0), WATCHES as usize * (SHARE + 1)));
    }

    #[test]
    fn notifies_end_in_any_order() {
        let mut watches = Watches::new(1, Time::ZERO);
        let slot = watches.take(EndpointIndex(0)).unwrap();
        let watch = watches.get_mut(slot).unwrap();
        [5, 6, 7].into_iter().for_each(|id| watch.sent(id));
        watch.ended(6);
        watch.ended(9);
        watch.sent(8);
        assert_eq!((watch.outstanding().collect::<Vec<_>>(), watch.awaited), (vec![5, 7, 8], Some(8)));
        watch.renamed(8, 9);
        assert_eq!((watch.outstanding().collect::<Vec<_>>(), watch.awaited), (vec![5, 7, 9], Some(9)));
        watch.answered(7);
        assert_eq!([5, 7, 9].map(|id| watch.is_overtaken(id)), [true, false, false]);
        watch.sent(10);
        watch.answered(10);
        assert_eq!([5, 9, 10].map(|id| watch.is_overtaken(id)), [true, true, false]);
        watch.ended(5);
        watch.sent(11);
        assert_eq!([5, 9, 11].map(|id| watch.is_overtaken(id)), [false, true, false]);
    }
}
