//! What this gateway tells its controllers while its core is overloaded: `ocp/mg_overload` for each Add (H.248.11), `chp/mgcon` (H.248.10); and
//! its last defence, which refuses new contexts (OVL-01 to OVL-07).

use super::association::Purpose;
use super::event::catalogue::Seen;
use super::table::Termination;
use super::{Gateway, Send};
use crate::proto::base::{Counter, Time, TransactionId};
use crate::proto::codec::h248::{ActionPart, ContextId, Request};
use crate::proto::overload::telling::{Adds, Load, Manner, Reduction};
use std::collections::VecDeque;

/// Notifications of overload that nobody has answered yet, at a time: room that nothing else takes. What comes then is dropped.
pub(super) const ROOM: usize = 512;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Overload {
    load: Load,
    reduction: Reduction,
    /// Adds done while overloaded that are still to be told of, by when they came.
    due: VecDeque<Time>,
    /// Notifications that are out, oldest first; some have been answered.
    out: VecDeque<(Time, TransactionId)>,
    /// How many of them nobody has answered.
    unanswered: usize,
}

impl Overload {
    pub fn new() -> Overload {
        Overload {
            load: Load::default(),
            reduction: Reduction::default(),
            due: VecDeque::with_capacity(ROOM),
            out: VecDeque::with_capacity(2 * ROOM),
            unanswered: 0,
        }
    }

    /// Whether the core was overloaded when it was looked at last.
    pub fn is_overloaded(&self) -> bool {
        self.load.overloaded
    }

    /// Requests that are out beside those of the other kinds.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// One was answered, or given up.
    pub fn ended(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    fn deadline(&self, manner: &Manner) -> Time {
        let oldest = self.out.front().map_or(Time::NEVER, |(at, _)| *at + manner.age);
        let unsent = if self.due.is_empty() { Time::NEVER } else { Time::ZERO };
        oldest.min(unsent).min(self.reduction.deadline())
    }
}

impl Gateway {
    /// How the core is, before something is handled.
    pub fn set_load(&mut self, load: Load) {
        self.overload.load = load;
    }

    /// The share of calls that the controllers are asked to hold back now, in percent.
    pub fn reduction(&self) -> u8 {
        self.overload.reduction.percent()
    }

    /// An Add that waited for the card has ended. The cores that carry what it added have said how they are.
    pub(super) fn note_late_add(&mut self, now: Time, added: Termination) {
        let row = self.tables.row(added);
        let first = row.and_then(|row| self.tables.context(row.context)).is_some_and(|context| context.members().first() == Some(&added));
        let slots = match added {
            Termination::Ephemeral(slot) => [Some(slot), None],
            _ => row.and_then(|row| row.pair).map_or([None; 2], |(far, own)| [Some(far), Some(own)]),
        };
        let elsewhere = self.calls.card.apart().is_some_and(|apart| slots.into_iter().flatten().any(|slot| apart.is_overloaded(slot)));
        self.note_add(now, first, elsewhere);
    }

    /// An Add was executed; `first`: the first one of its context; `elsewhere`: another core that did a part of it is overloaded.
    pub(super) fn note_add(&mut self, now: Time, first: bool, elsewhere: bool) {
        let told = match self.calls.settings.telling.adds {
            Adds::Each => true,
            Adds::First => first,
            Adds::Off => false,
        };
        if !told || !(self.overload.load.overloaded || elsewhere) || self.request_for(Seen::Overload).is_none() {
            return;
        }
        if self.overload.due.len() < ROOM {
            self.overload.due.push_back(now);
        } else {
            self.counters.add(Counter::H248OverloadDropped);
        }
    }

    /// The last defence: whether this transaction sets up a call that there is no time for. Emergencies and contexts with priority pass.
    pub(super) fn refuses(&self, request: &Request<'_>) -> bool {
        if self.overload.load.sojourn <= self.calls.settings.telling.refuse {
            return false;
        }
        request.actions().flatten().any(|action| {
            let favoured = |part: &ActionPart<'_>| matches!(part, ActionPart::Emergency | ActionPart::Priority(1..));
            action.context == ContextId::Choose && !action.parts().flatten().any(|part| favoured(&part))
        })
    }

    /// Tells what is to be told, before anything else that waits to be sent.
    pub(super) fn tell_overload(&mut self, now: Time) {
        let manner = self.calls.settings.telling;
        while let Some((_, id)) = self.overload.out.front().copied().filter(|(at, _)| *at + manner.age <= now) {
            self.overload.out.pop_front();
            if self.requester.cancel(now, id).is_some() {
                self.overload.ended();
                self.counters.add(Counter::H248OverloadDropped);
            }
        }
        while let Some(at) = self.overload.due.front().copied() {
            let stale = at + manner.age <= now || self.request_for(Seen::Overload).is_none();
            if !stale && self.in_charge().is_some() && self.overload.unanswered < ROOM {
                let Some(id) = self.tell_add(now, at) else { return };
                self.counters.add(Counter::H248OverloadNotified);
                self.overload.unanswered += 1;
                self.overload.out.push_back((now, id));
            } else if stale || self.overload.unanswered >= ROOM {
                self.counters.add(Counter::H248OverloadDropped);
            } else {
                // Nobody is in charge: what is not too old may still be told.
                return;
            }
            self.overload.due.pop_front();
        }
        let overloaded = self.overload.load.overloaded;
        if let Some(percent) = self.overload.reduction.step(now, overloaded, &manner) {
            let text = [b"reduction=", decimal(percent, &mut [0; 3])].concat();
            self.happened(now, Termination::Root, Seen::Congestion, &text);
        }
    }

    /// One notification about overload, which is not held up by others.
    fn tell_add(&mut self, now: Time, at: Time) -> Option<TransactionId> {
        let request = self.request_for(Seen::Overload)?;
        self.send_event(now, Purpose::Overload, (Termination::Root, request), at, Seen::Overload)
    }

    /// When to call [`Gateway::tell_overload`] at the latest.
    pub(super) fn overload_deadline(&self) -> Time {
        self.overload.deadline(&self.calls.settings.telling)
    }

    /// Sends what Adds have given rise to, right behind their replies.
    pub(super) fn send_overload(&mut self, now: Time, send: Send<'_>) {
        if !self.overload.due.is_empty() {
            self.tell_overload(now);
            self.send_own(now, send);
        }
    }
}

fn decimal(percent: u8, room: &mut [u8; 3]) -> &[u8] {
    let digits = if percent >= 100 {
        3
    } else if percent >= 10 {
        2
    } else {
        1
    };
    let mut value = percent;
    for place in room.iter_mut().take(digits).rev() {
        *place = b'0' + value % 10;
        value /= 10;
    }
    room.get(..digits).unwrap_or_default()
}
