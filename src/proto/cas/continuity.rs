//! Continuity tests at the near end (RFC 3660 2.3; COT rows 7.2): the return tone is only reported when it ends with the tone that was
//! sent.

use crate::proto::base::{EndpointIndex, Time};
use crate::proto::package::{EventId, PackageId, find_item};
use crate::proto::trunk::{Card, CheckTone, EventText, Indication};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How long the return tone may last after the tone that was sent.
const TAIL: Duration = Duration::from_millis(500);

/// The tests that run.
#[derive(Default)]
pub(super) struct Continuity {
    tests: BTreeMap<EndpointIndex, Test>,
    /// When return tones must have ended, in order, for every tone lasts as long; of some tests nothing is left.
    due: VecDeque<(Time, EndpointIndex)>,
}

/// One test.
#[derive(Clone, Copy)]
struct Test {
    /// The signal.
    sent: EventId,
    /// The tone that came back; the one that was sent has been stopped then.
    heard: Option<CheckTone>,
    /// When it must have ended.
    deadline: Time,
}

impl CheckTone {
    fn event(self) -> Option<EventId> {
        find_item(PackageId::T, if self == CheckTone::Co1 { b"co1" } else { b"co2" })
    }
}

impl Continuity {
    /// A tone is being sent; nothing if it is no check tone.
    pub fn begin(&mut self, endpoint: EndpointIndex, signal: EventId) {
        if signal.package() == PackageId::T && matches!(signal.item().name, "co1" | "co2") {
            self.tests.insert(endpoint, Test { sent: signal, heard: None, deadline: Time::NEVER });
        }
    }

    /// The signal was stopped or has timed out.
    pub fn end(&mut self, endpoint: EndpointIndex, signal: EventId) {
        if self.tests.get(&endpoint).is_some_and(|test| test.sent == signal) {
            self.tests.remove(&endpoint);
        }
    }

    /// Nothing is tested there any more.
    pub fn forget(&mut self, endpoint: EndpointIndex) {
        self.tests.remove(&endpoint);
    }

    /// A check tone begins or ends on the line.
    pub fn handle_tone(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        tone: CheckTone,
        on: bool,
        card: &mut dyn Card,
        queue: &mut VecDeque<Indication>,
    ) {
        let Some(test) = self.tests.get_mut(&endpoint) else {
            // Nobody waits for an echo: the tone itself is the event, when it is over (COT-01).
            if let (false, Some(event)) = (on, tone.event()) {
                queue.push_back(Indication::Event { endpoint, connection: None, event, parameters: EventText::NONE });
            }
            return;
        };
        match (on, test.heard) {
            (true, None) => {
                (test.heard, test.deadline) = (Some(tone), now + TAIL);
                self.due.push_back((test.deadline, endpoint));
                card.stop_signal(now, endpoint, None, test.sent);
            }
            (false, Some(heard)) if heard == tone => {
                self.tests.remove(&endpoint);
                if let Some(event) = tone.event() {
                    queue.push_back(Indication::Event { endpoint, connection: None, event, parameters: EventText::NONE });
                }
            }
            _ => {}
        }
    }

    /// Tests whose return tone did not end have failed.
    pub fn handle_time(&mut self, now: Time, queue: &mut VecDeque<Indication>) {
        while let Some(&(due, endpoint)) = self.due.front()
            && due <= now
        {
            self.due.pop_front();
            if self.tests.get(&endpoint).is_some_and(|test| test.deadline == due)
                && let Some(test) = self.tests.remove(&endpoint)
            {
                queue.push_back(Indication::SignalEnded { endpoint, connection: None, signal: test.sent, failed: true });
            }
        }
    }

    /// When to call [`Continuity::handle_time`].
    pub fn deadline(&self) -> Time {
        self.due.front().map_or(Time::NEVER, |&(due, _)| due)
    }
}
