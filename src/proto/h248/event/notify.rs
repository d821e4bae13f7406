//! Notify: what was observed is told to the controller in charge, one command of a termination at a time (RFC 3525 7.2.7, 9.1).

use super::super::association::Purpose;
use super::super::time::stamp;
use super::super::{Failure, Gateway, VERSION, name};
use super::catalogue::{self, EventRef, Seen};
use super::watch::{EVENTS_MAX, Observed, WatchSlot, Watches, Which};
use crate::proto::base::{AgentId, Counter, Time, TransactionId};
use crate::proto::codec::h248::{ContextId, MessageId, NAME_MAX, ParameterValue, RequestId, TerminationId, Value, Verb, Writer};
use crate::proto::h248::table::NULL;
use crate::proto::transaction::outgoing::SendError;
use crate::proto::trunk::EventText;
use std::time::Duration;

/// Notify commands begun in one turn.
const BUDGET: usize = 256;
/// When nothing can be sent: after so long again.
const RETRY: Duration = Duration::from_millis(100);

impl Gateway {
    /// Sends what waits to be told.
    pub(in crate::proto::h248) fn notify(&mut self, now: Time) {
        if self.in_charge().is_none() || (self.events.retry != Time::NEVER && now < self.events.retry) {
            return;
        }
        self.events.retry = Time::NEVER;
        for _ in 0..BUDGET {
            let Some(slot) = self.events.next_due() else { return };
            // Answered, it comes back here.
            if self.events.get(slot).is_some_and(|watch| watch.out.is_none()) && !self.notify_one(now, slot) {
                self.events.queue(slot);
                self.events.retry = now + RETRY;
                return;
            }
        }
    }

    /// When to call [`Gateway::notify`].
    pub(in crate::proto::h248) fn notify_deadline(&self) -> Time {
        match self.events.retry {
            _ if !self.events.has_due() || self.in_charge().is_none() => Time::NEVER,
            Time::NEVER => Time::ZERO,
            retry => retry,
        }
    }

    /// Tells the events of one request that a termination has observed; false when it cannot be sent now.
    fn notify_one(&mut self, now: Time, slot: WatchSlot) -> bool {
        let Some(watch) = self.events.get(slot).copied() else { return true };
        let Some(request) = self.events.iter(watch.observed).next().map(|observed| observed.request) else { return true };
        let count = self.events.iter(watch.observed).take_while(|observed| observed.request == request).count().min(EVENTS_MAX);
        let purpose = Purpose::Notify { slot, generation: watch.generation() };
        let overflow = watch.overflowed.then_some(BUFFER_FULL);
        let of = (watch.termination, request);
        // What does not fit into one message goes in several.
        let sizes = std::iter::successors(Some(count), |count| (*count > 1).then_some(count / 2));
        let sent = sizes.map(|count| {
            let events = |events: &Watches, epoch_ms: u64, w: &mut Writer<'_>| {
                events.iter(watch.observed).take(count).for_each(|observed| write_observed(w, epoch_ms, observed));
            };
            (count, if self.has_own_room() { self.send_notify(now, purpose, of, overflow, events) } else { Err(SendError::Full) })
        });
        let Some((count, result)) = sent.into_iter().find(|(_, result)| *result != Err(SendError::TooLong)) else {
            self.events.pop(slot, Which::Observed);
            self.counters.add(Counter::ObservedLost);
            return false;
        };
        let Ok(id) = result else { return false };
        (0..count).for_each(|_| {
            self.events.pop(slot, Which::Observed);
        });
        if let Some(watch) = self.events.get_mut(slot) {
            (watch.out, watch.overflowed) = (Some(id), false);
        }
        true
    }

    /// Sends a Notify with the events that `write` writes; its identifier.
    pub(in crate::proto::h248) fn send_notify(
        &mut self,
        now: Time,
        purpose: Purpose,
        (termination, request): (super::Termination, u32),
        failure: Option<Failure>,
        events: impl FnOnce(&Watches, u64, &mut Writer<'_>),
    ) -> Result<TransactionId, SendError> {
        let (controller, to) = self.in_charge().ok_or(SendError::NoAddress)?;
        let (style, own) = (self.style(), self.own().clone());
        let context = self.tables.row(termination).map_or(NULL, |row| row.context);
        let context = if context == NULL { ContextId::Null } else { ContextId::Number(context) };
        let mut room = [0; NAME_MAX];
        let name = name::write(&self.plan.topology, &self.tables, termination, &mut room);
        let Gateway { requester, events: watches, plan, .. } = self;
        let write = |id: TransactionId, buffer: &mut [u8]| {
            let mut w = Writer::new(buffer, style);
            w.header(VERSION, &MessageId::parse(own.message_id.as_bytes())?);
            w.request(id);
            w.context(context);
            w.command(Verb::Notify, TerminationId::parse(name)?);
            w.observed_events(RequestId::Number(request));
            events(watches, plan.epoch_ms, &mut w);
            w.end();
            if let Some(failure) = failure {
                w.error(failure.code, failure.text.as_bytes());
            }
            (0..3).for_each(|_| w.end());
            w.finish()
        };
        let sent = requester.send(now, AgentId(controller as u8), &[to], purpose.pack(), write);
        self.counters.add(if sent.is_ok() { Counter::H248Notifies } else { Counter::OwnFull });
        sent
    }

    /// The identifier of the Events descriptor of ROOT that asks for an event; `None`: it does not.
    pub(in crate::proto::h248) fn request_for(&mut self, how: Seen) -> Option<u32> {
        let event = catalogue::seen(how)?;
        let watch = self.events.get(self.events.root?)?;
        let (list, request) = (watch.events, watch.request);
        self.find(list, event, |_, _| {}).map(|_| request)
    }

    /// Sends a Notify with one event, beside what waits.
    pub(in crate::proto::h248) fn send_event(
        &mut self,
        now: Time,
        purpose: Purpose,
        of: (super::Termination, u32),
        at: Time,
        how: Seen,
    ) -> Option<TransactionId> {
        let observed = Observed { event: catalogue::seen(how)?, parameters: EventText::NONE, at, request: of.1 };
        self.send_notify(now, purpose, of, None, |_, epoch_ms, w| write_observed(w, epoch_ms, &observed)).ok()
    }

    /// A Notify was answered, with an error perhaps (NTF-05), or lost: the next one may go.
    pub(in crate::proto::h248) fn notified(&mut self, slot: WatchSlot, generation: u32) {
        let Some(watch) = self.events.get_mut(slot).filter(|watch| watch.generation() == generation) else { return };
        watch.out = None;
        if !watch.observed.is_empty() {
            self.events.queue(slot);
        }
    }
}

/// An event as it is told, with its time (OE-01).
pub(super) fn write_observed(w: &mut Writer<'_>, epoch_ms: u64, observed: &Observed) {
    write_event(w, Some(&stamp(epoch_ms, observed.at)), observed.event, observed.parameters.as_bytes());
}

/// `time:package/event{name=value,...}`
pub(super) fn write_event(w: &mut Writer<'_>, time: Option<&[u8]>, event: EventRef, parameters: &[u8]) {
    w.begin_observed(time, event.name());
    for parameter in parameters.split(|byte| *byte == b',').filter(|parameter| !parameter.is_empty()) {
        let equal = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
        let (name, value) = parameter.split_at(equal);
        let value = value.strip_prefix(b"=").unwrap_or(value);
        let text = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        let value = Value { text: text.unwrap_or(value), quoted: text.is_some() };
        w.parameter(name, &ParameterValue::One(value));
    }
    w.end();
}

const BUFFER_FULL: Failure = Failure { code: 518, text: "event buffer full" };
