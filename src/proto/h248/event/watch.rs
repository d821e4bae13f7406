//! What is kept for a termination that was asked to detect or to play something: lists, held and observed events, signals, timers.
//!
//! A [`Watch`] is taken when it is first needed and given back when its termination leaves its context; a termination without one detects
//! and plays nothing. Everything is sized at boot: lists are text among the gateway's blobs, events are in one pool.

use super::catalogue::{EventRef, SignalRef};
use crate::proto::base::{Queue, QueuePool, Slab, Time, TransactionId};
use crate::proto::codec::h248::{Completion, RequestId, Shape, SignalType};
use crate::proto::endpoint::Blob;
use crate::proto::h248::table::Termination;
use crate::proto::package::EventId;
use crate::proto::package::digits::{DigitMap, Matcher, Progress};
use crate::proto::timer::TimerWheel;
use crate::proto::trunk::EventText;
use std::collections::VecDeque;
use std::time::Duration;

/// Signals of a termination at a time.
pub const SIGNALS_MAX: usize = 8;
/// Events of a termination in its buffer (EB-01), and those that wait for a Notify: more are lost and counted.
pub const EVENTS_MAX: usize = 32;
/// Digits that a map collects at the most; the next one completes it.
pub const DIGITS_MAX: usize = 64;
/// Named digit maps of a gateway; the next is 519.
pub const MAPS_MAX: usize = 64;
/// The longest list that is kept, in bytes.
pub const LIST_MAX: usize = 4096;

const TICK: Duration = Duration::from_millis(10);

/// The place of a watch.
pub type WatchSlot = u32;

/// Something that happened on a termination.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Observed {
    /// What.
    pub event: EventRef,
    /// Its parameters as they are reported, `name=value` with commas between.
    pub parameters: EventText,
    /// When.
    pub at: Time,
    /// Which request asked for it; 0 as long as nobody looked.
    pub request: u32,
}

/// How a signal that is played ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By order.
    Order,
    /// Its time is over then.
    TimeOut(Time),
    /// By itself, then.
    Brief(Time),
    /// It has not begun: another one of its list is played.
    Waits,
}

/// A signal that is played.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Playing {
    pub signal: SignalRef,
    pub stream: u16,
    /// The list that it is a member of: those are played one after the other (SIG-06).
    pub list: Option<u16>,
    pub kind: SignalType,
    /// How long it lasts, unless by order.
    pub length: Duration,
    pub ending: Ending,
    /// As the command had it, in hundredths of a second.
    pub duration: Option<u16>,
    /// Which ends are told (SIG-11).
    pub told: Option<Completion>,
}

impl Playing {
    /// Whether it is played, by this signal of the card.
    pub fn is_played(&self, signal: EventId) -> bool {
        self.signal.plays == signal && self.ending != Ending::Waits
    }
}

/// A digit map that collects (DM-13).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dial {
    /// The map, as it was when the collection began (DM-02); none: nothing is collected.
    pub map: Blob,
    /// Timers in s; as provisioned when the map does not say.
    pub timers: (Option<u8>, Option<u8>),
    /// What came so far.
    pub digits: EventText,
    /// How far that is.
    pub progress: Option<Progress>,
    /// When the timer runs out.
    pub deadline: Time,
    /// Whether signals go on when a digit comes (DM-14).
    pub keep: bool,
}

impl Dial {
    /// Nothing is collected.
    pub const NONE: Dial =
        Dial { map: Blob::NONE, timers: (None, None), digits: EventText::NONE, progress: None, deadline: Time::NEVER, keep: false };
}

/// See the module's page.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pub termination: Termination,
    /// The identifier of the Events descriptor.
    pub request: u32,
    /// What is detected: the inside of the Events descriptor; none: nothing.
    pub events: Blob,
    /// What is held while events are: the inside of the EventBuffer descriptor.
    pub buffer: Blob,
    /// LockStep, and an event was recognised: the next ones are held (EB-01).
    pub paused: bool,
    /// Events that are held.
    pub held: Queue,
    /// The buffer was full: the next Notify says so (EB-07).
    pub overflowed: bool,
    /// Events to notify.
    pub observed: Queue,
    /// The Notify that nobody has answered yet (NTF-04).
    pub out: Option<TransactionId>,
    pub signals: [Option<Playing>; SIGNALS_MAX],
    pub dial: Dial,
    queued: bool,
    generation: u32,
}

impl Watch {
    /// When something is due next.
    fn deadline(&self) -> Time {
        let ends = self.signals.iter().flatten().map(|playing| match playing.ending {
            Ending::TimeOut(at) | Ending::Brief(at) => at,
            Ending::Order | Ending::Waits => Time::NEVER,
        });
        ends.min().unwrap_or(Time::NEVER).min(self.dial.deadline)
    }

    /// Tells this one from an earlier one in the same place; 24 bits of it.
    pub fn generation(&self) -> u32 {
        self.generation & 0xff_ffff
    }

    /// The identifier that events are reported with.
    pub fn request_id(&self) -> RequestId {
        RequestId::Number(self.request)
    }
}

/// A digit map with a name (DM-01, DM-03).
#[derive(Clone, Copy, Debug)]
pub struct NamedMap {
    /// Where it is known; ROOT: everywhere.
    pub termination: Termination,
    /// Its name, a blank, and the map.
    pub text: Blob,
    /// How long the name is.
    pub name: u8,
}

/// The watches of one gateway, and what they share.
pub struct Watches {
    list: Slab<Watch>,
    pool: QueuePool<Observed>,
    wheel: TimerWheel,
    /// Watches with something to notify, in order.
    due: VecDeque<WatchSlot>,
    generation: u32,
    /// Digit maps with names.
    pub maps: Vec<NamedMap>,
    /// What happened and was not looked at yet; see [`super`].
    pub pending: VecDeque<(WatchSlot, Observed)>,
    /// Braces of a list in hand; taken while it is read.
    pub shape: Option<Box<Shape>>,
    /// A map in hand, and how far each watch is in its own.
    pub map: DigitMap,
    pub matchers: Vec<Matcher>,
    /// The watch of ROOT.
    pub root: Option<WatchSlot>,
    /// Nothing was sent because nothing could be: when to try again.
    pub retry: Time,
}

/// A list of events of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Held in its buffer.
    Held,
    /// To notify.
    Observed,
}

impl Which {
    fn of_mut(self, watch: &mut Watch) -> &mut Queue {
        match self {
            Which::Held => &mut watch.held,
            Which::Observed => &mut watch.observed,
        }
    }
}

impl Watches {
    /// Events of all watches together.
    fn nodes(terminations: usize) -> usize {
        2 * terminations + 256
    }

    /// The bytes that the watches of so many terminations take, without the timers and the digits of maps.
    pub fn memory(terminations: u32) -> u64 {
        let each = size_of::<Watch>() + 2 * size_of::<WatchSlot>();
        u64::from(terminations) * each as u64 + QueuePool::<Observed>::memory(Watches::nodes(terminations as usize))
    }

    /// Watches for so many terminations. All memory is claimed here, but for digits.
    pub fn new(now: Time, terminations: u32) -> Watches {
        let limit = terminations as usize;
        Watches {
            list: Slab::new(limit),
            pool: QueuePool::new(Watches::nodes(limit)),
            wheel: TimerWheel::new(terminations, TICK, now),
            due: VecDeque::with_capacity(limit),
            generation: 0,
            maps: Vec::with_capacity(MAPS_MAX),
            pending: VecDeque::with_capacity(4 * SIGNALS_MAX),
            shape: Some(Box::default()),
            map: DigitMap::default(),
            matchers: Vec::new(),
            root: None,
            retry: Time::NEVER,
        }
    }

    pub fn get(&self, slot: WatchSlot) -> Option<&Watch> {
        self.list.get(slot)
    }

    /// [`Watches::reschedule`] follows when something is due at another time.
    pub fn get_mut(&mut self, slot: WatchSlot) -> Option<&mut Watch> {
        self.list.get_mut(slot)
    }

    /// A watch for `termination`; `None` only when there are more terminations than the plan has.
    pub fn take(&mut self, termination: Termination) -> Option<WatchSlot> {
        self.generation = self.generation.wrapping_add(1);
        let watch = Watch {
            termination,
            request: 0,
            events: Blob::NONE,
            buffer: Blob::NONE,
            paused: false,
            held: Queue::EMPTY,
            overflowed: false,
            observed: Queue::EMPTY,
            out: None,
            signals: [None; SIGNALS_MAX],
            dial: Dial::NONE,
            queued: false,
            generation: self.generation,
        };
        self.list.take(watch)
    }

    /// Gives a watch back. Its blobs and signals must be gone already.
    pub fn give_back(&mut self, slot: WatchSlot) {
        self.clear(slot, Which::Held);
        self.clear(slot, Which::Observed);
        self.pending.retain(|(of, _)| *of != slot);
        let Some(watch) = self.list.get(slot) else { return };
        if watch.queued {
            self.due.retain(|due| *due != slot);
        }
        self.wheel.cancel(slot, watch.generation);
        self.list.give_back(slot);
    }

    /// Adds an event to a list; false when there is no room.
    pub fn push(&mut self, slot: WatchSlot, which: Which, observed: Observed) -> bool {
        let Some(watch) = self.list.get_mut(slot) else { return false };
        let queue = which.of_mut(watch);
        queue.len() < EVENTS_MAX && self.pool.push(queue, observed)
    }

    /// Takes the oldest event of a list.
    pub fn pop(&mut self, slot: WatchSlot, which: Which) -> Option<Observed> {
        self.pool.pop(which.of_mut(self.list.get_mut(slot)?))
    }

    /// Forgets a list.
    pub fn clear(&mut self, slot: WatchSlot, which: Which) {
        while self.pop(slot, which).is_some() {}
    }

    /// Events of a list, oldest first.
    pub fn iter(&self, queue: Queue) -> impl Iterator<Item = &Observed> {
        self.pool.iter(queue)
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

    /// The next watch with something due.
    pub fn expired(&mut self, now: Time, budget: &mut u32) -> Option<WatchSlot> {
        while let Some(expired) = self.wheel.advance(now, budget) {
            if self.list.get(expired.key).is_some_and(|watch| watch.generation == expired.generation) {
                return Some(expired.key);
            }
        }
        None
    }

    /// The watch has something to notify.
    pub fn queue(&mut self, slot: WatchSlot) {
        if let Some(watch) = self.list.get_mut(slot)
            && !std::mem::replace(&mut watch.queued, true)
        {
            self.due.push_back(slot);
        }
    }

    /// The next watch with something to notify.
    pub fn next_due(&mut self) -> Option<WatchSlot> {
        let slot = self.due.pop_front()?;
        if let Some(watch) = self.list.get_mut(slot) {
            watch.queued = false;
        }
        Some(slot)
    }

    /// Whether anything waits to be notified.
    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// When a timer runs out.
    pub fn deadline(&self) -> Time {
        self.wheel.deadline()
    }
}
