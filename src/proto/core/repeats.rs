//! Responses that must not come before an announcement which is still to be sent (RFC 3435 4.4.6, 4.4.7; G-RST-03, G-RST-05, G-DIS-09):
//! they are held until it stands in front of them.
//!
//! What waits to be announced of an endpoint its owner knows. Before the response to a command about many, or about one that another core
//! owns, is given again, the owners are asked to have announced what waits there. None is held for long: what cannot be sent at all
//! cannot go in front.

use super::envelope::{KEPT, SINGLE};
use super::outside::{Frames, Outside, Turn};
use super::preface::{Preface, Standing};
use super::receive::Received;
use super::respond::Way;
use super::{Core, Envelope, Message};
use crate::proto::base::{CoreId, EndpointIndex, EndpointRange, Time};
use crate::proto::endpoint::Announcement as Told;
use crate::proto::transaction::history;
use crate::proto::trunk::Facility;

/// Responses held at a time.
const REPEATS: usize = 64;

/// Questions of other cores that are not answered yet; more are not answered at all.
const QUESTIONS: usize = 256;

/// The responses that are held, in the order in which they came, and what other cores wait for.
pub(super) struct Repeats {
    list: Vec<Repeat>,
    questions: Vec<Question>,
    last_key: u32,
}

struct Repeat {
    received: Received,
    answered: history::Handle,
    preface: Preface,
    awaits: Awaits,
    until: Time,
    /// What stands behind the message in its datagram waits for the response.
    gives_back: bool,
}

enum Awaits {
    /// The announcement of this endpoint.
    Endpoint(EndpointIndex),
    /// So many owners to say that what they were asked with this key is announced.
    Owners(u32, u8),
}

/// Another core, or this one, wants to hear when nothing of these endpoints waits to be announced.
struct Question {
    from: CoreId,
    key: u32,
    left: EndpointRange,
    until: Time,
    /// The first of `left` waits.
    blocked: bool,
}

impl Repeats {
    pub fn new() -> Repeats {
        Repeats { list: Vec::with_capacity(REPEATS), questions: Vec::with_capacity(QUESTIONS), last_key: 0 }
    }

    /// When to call [`Core::answer_repeats`] at the latest.
    pub fn deadline(&self) -> Time {
        let question = self.questions.iter().map(|question| question.until).min().unwrap_or(Time::NEVER);
        self.list.first().map_or(Time::NEVER, |repeat| repeat.until).min(question)
    }

    /// Whether there are endpoints to look at for a question.
    pub fn working(&self) -> bool {
        self.questions.iter().any(|question| !question.blocked)
    }

    /// An announcement is out: what waited for one looks again.
    pub fn unblock(&mut self) {
        self.questions.iter_mut().for_each(|question| question.blocked = false);
    }

    fn has_room(&self) -> bool {
        self.list.len() < REPEATS
    }
}

impl Core {
    /// A repeat of an answered command, whose response must not come before an announcement that is still to be sent. True: it is held,
    /// and the announcement asked for.
    pub(super) fn hold_repeat<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        answered: history::Handle,
        preface: Preface,
    ) -> bool {
        let has_room = self.repeats.has_room() && self.may_wait(received.message);
        match self.standing(preface) {
            Standing::Owed => {}
            Standing::Elsewhere if has_room => {}
            _ => return false,
        }
        // Nobody reads it again; but what follows it in its datagram waits for it.
        let gives_back = has_room && received.message.datagram != SINGLE && self.set_aside(turn, received).is_some();
        if has_room {
            self.hold(turn, received, answered, preface, gives_back);
        }
        if !gives_back {
            self.finish(received.message);
        }
        true
    }

    /// A final that was just written and must not come before an announcement that is still to be sent: it is held like one that is
    /// asked for again. Without room it counts as lost: the command's repeat is held then.
    pub(super) fn hold_final<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        answered: history::Handle,
        preface: Preface,
    ) {
        if self.repeats.has_room() {
            self.hold(turn, received, answered, preface, false);
        }
    }

    /// Whoever handled the command of `message` is done with it. True: its response is held, and what stands behind it in its datagram
    /// must not be answered before.
    pub(super) fn waits_for_final<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, message: Message) -> bool {
        let is_its = |repeat: &&mut Repeat| {
            let of = repeat.received.message;
            !repeat.gives_back && (of.frame, of.start, of.datagram) == (message.frame, message.start, message.datagram)
        };
        if self.repeats.list.is_empty() || matches!(message.datagram, SINGLE | KEPT) || !self.may_wait(message) {
            return false;
        }
        let Some(repeat) = self.repeats.list.iter_mut().find(is_its) else { return false };
        repeat.gives_back = true;
        let received = repeat.received;
        self.set_aside(turn, received);
        true
    }

    /// Keeps a response, and asks for the announcement.
    fn hold<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        answered: history::Handle,
        preface: Preface,
        gives_back: bool,
    ) {
        let topology = &self.plan.topology;
        let (owned, range) = match preface {
            Preface::None => return,
            Preface::Endpoint(endpoint) if self.calls.endpoints.owns(endpoint) => (Some(endpoint), EndpointRange::default()),
            Preface::Endpoint(endpoint) => (None, EndpointRange { first: endpoint.0, count: 1 }),
            Preface::Spans(first, last) => {
                let [first, last] = [first, last].map(|span| topology.endpoints_of(Facility::Span(span)));
                (None, EndpointRange { first: first.first, count: (last.first + last.count).saturating_sub(first.first) })
            }
        };
        let until = turn.now + self.settings.timers.vote;
        let awaits = match owned {
            Some(endpoint) => {
                self.trigger_restart(turn, endpoint, received.source());
                Awaits::Endpoint(endpoint)
            }
            None => {
                self.repeats.last_key = self.repeats.last_key.wrapping_add(1);
                let key = self.repeats.last_key;
                for ordinal in 0..self.plan.owners.len() {
                    self.tell(turn, self.plan.owner_at(ordinal), Envelope::Announcing { key, range, until });
                }
                Awaits::Owners(key, self.plan.owners.len() as u8)
            }
        };
        self.repeats.list.push(Repeat { received, answered, preface, awaits, until, gives_back });
    }

    /// Another core holds a response until what waits there of these endpoints is announced.
    pub(super) fn ask_announced(&mut self, from: CoreId, key: u32, left: EndpointRange, until: Time) {
        if self.repeats.questions.len() < QUESTIONS {
            self.repeats.questions.push(Question { from, key, left, until, blocked: false });
        }
    }

    /// An owner says that nothing there waits to be announced.
    pub(super) fn note_announced<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, key: u32) {
        let asked = self.repeats.list.iter_mut().filter_map(|repeat| match &mut repeat.awaits {
            Awaits::Owners(asked, left) if *asked == key => Some(left),
            _ => None,
        });
        asked.for_each(|left| *left = left.saturating_sub(1));
        self.answer_repeats(turn);
    }

    /// Sends the responses whose announcement is out, and drops those that waited too long for that of their endpoint.
    pub(super) fn answer_repeats<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let mut place = 0;
        while let Some(repeat) = self.repeats.list.get(place) {
            let is_over = repeat.until <= turn.now;
            let announced = match repeat.awaits {
                Awaits::Endpoint(endpoint) => self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement != Told::Waiting),
                Awaits::Owners(_, left) => left == 0 || is_over,
            };
            if !announced && !is_over {
                place += 1;
                continue;
            }
            let Repeat { received, answered, preface, gives_back, .. } = self.repeats.list.remove(place);
            if announced {
                self.respond_again(turn, Way::back(&received), answered, preface);
            }
            if gives_back {
                self.finish(received.message);
            }
        }
    }

    /// Goes on with the questions of other cores, for at most a slice of endpoints.
    pub(super) fn answer_questions<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        let (mut place, mut budget) = (0, self.plan.limits.slice.max(1));
        while let Some(question) = self.repeats.questions.get_mut(place) {
            if question.until <= turn.now {
                self.repeats.questions.remove(place);
                continue;
            }
            if question.blocked {
                place += 1;
                continue;
            }
            if question.left.count == 0 {
                let Question { from, key, .. } = self.repeats.questions.remove(place);
                self.tell(turn, from, Envelope::Announced { key });
                continue;
            }
            if budget == 0 {
                return;
            }
            budget -= 1;
            let endpoint = EndpointIndex(question.left.first);
            let waits = self.calls.endpoints.get(endpoint).is_some_and(|state| state.announcement == Told::Waiting)
                // Of these their controller is told.
                && !self.gateways.iter().any(|gateway| gateway.has(endpoint));
            if waits {
                question.blocked = true;
                self.trigger_restart(turn, endpoint, None);
            } else {
                question.left = EndpointRange { first: endpoint.0 + 1, count: question.left.count - 1 };
            }
        }
    }
}
