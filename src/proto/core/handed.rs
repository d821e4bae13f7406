//! Commands over many endpoints whose home core stands still: the core that received them answers 400, so that they fail cleanly instead of
//! waiting unseen (G-SHD-03). What becomes of one that comes to its home all the same is in `verdicts`.
//!
//! One that comes when this is known is refused at once. One that was handed to its home before is watched until that has taken it.

use super::Core;
use super::envelope::Message;
use super::outside::{Frames, Outside, Turn};
use super::receive::{Received, local_of, text};
use super::verdicts::Case;
use crate::proto::base::{CoreId, Counter, FrameRef, Time, TransactionId};
use crate::proto::codec::mgcp::CommandLine;
use crate::proto::codec::peek::Peek;
use crate::proto::mgcp;
use std::collections::VecDeque;
use std::time::Duration;

/// Commands watched at a time; of more than that the repeats are refused.
const WATCHED: usize = 64;
/// How soon to look again at one whose home is only slow.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Commands over many endpoints that other cores have not taken yet, oldest first.
pub(super) struct Handed {
    list: VecDeque<(CoreId, Message)>,
    /// When to look whether their homes stand still.
    look: Time,
}

impl Handed {
    pub fn new() -> Handed {
        Handed { list: VecDeque::with_capacity(WATCHED), look: Time::NEVER }
    }

    /// When to look.
    pub fn deadline(&self) -> Time {
        self.look
    }

    fn add(&mut self, home: CoreId, message: Message, look: Time) {
        if self.list.len() < WATCHED {
            self.list.push_back((home, message));
            self.look = self.look.min(look);
        }
    }

    /// The message in this frame is nobody's concern any more.
    pub fn taken(&mut self, frame: FrameRef) {
        self.list.retain(|(_, message)| message.frame != frame);
        if self.list.is_empty() {
            self.look = Time::NEVER;
        }
    }
}

impl Core {
    /// A command that came for the core `home`, before it is handed over. True: it was answered here.
    pub(super) fn refuse_for<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        home: CoreId,
        line: &CommandLine<'_>,
        bytes: &[u8],
    ) -> bool {
        let refuses = names_many(line.endpoint) && self.refuse_in_place_of(turn, received, home, line, bytes);
        if refuses {
            self.finish(received.message);
        }
        refuses
    }

    /// It was handed over.
    pub(super) fn watch_handed(&mut self, now: Time, home: CoreId, message: Message, name: &[u8]) {
        if names_many(name) {
            self.handed.add(home, message, now + self.settings.timers.stall + LOOK_AGAIN);
        }
    }

    /// Refuses what was handed to cores that stand still.
    pub(super) fn look_after_handed<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        if turn.now < self.handed.look {
            return;
        }
        self.handed.look = turn.now + LOOK_AGAIN;
        for _ in 0..self.handed.list.len() {
            let Some((home, message)) = self.handed.list.pop_front() else { break };
            // Its frame is held as long as the home may read it.
            let frames = turn.frames;
            let Some((datagram, origin)) = frames.read(message.frame) else { continue };
            let bytes = text(&datagram, message);
            let Peek::Command(line) = Peek::at(bytes) else { continue };
            if !self.refuse_in_place_of(turn, Received { message, origin }, home, &line, bytes) {
                self.handed.list.push_back((home, message));
            }
        }
        if self.handed.list.is_empty() {
            self.handed.look = Time::NEVER;
        }
    }

    fn refuse_in_place_of<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        home: CoreId,
        line: &CommandLine<'_>,
        bytes: &[u8],
    ) -> bool {
        let CommandLine { verb, id, endpoint: name, .. } = *line;
        // Before a restart was ever sent it would be the first thing the agent sees (G-RST-03).
        let refuses = turn.out.silence(home, turn.now) > self.settings.timers.stall
            && self.announcements.any_sent()
            && turn.out.refuse_for(home, &self.case(turn.now, received, id, name, bytes));
        if refuses {
            self.counters.add(Counter::HomeSilent);
            self.answer_unremembered(turn, received, (verb, id, name), mgcp::CORE_SILENT);
        }
        refuses
    }

    /// A command over many endpoints is about to begin here. True: it was refused while this core stood still, and is again.
    pub(super) fn was_refused<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        received: Received,
        line: &CommandLine<'_>,
        bytes: &[u8],
    ) -> bool {
        let CommandLine { verb, id, endpoint: name, .. } = *line;
        if self.plan.cores == 1 || !names_many(name) || turn.out.begin(&self.case(turn.now, received, id, name, bytes)) {
            return false;
        }
        self.counters.add(Counter::HomeSilent);
        self.refuse_unremembered(turn, received, (verb, id, name), mgcp::CORE_SILENT);
        true
    }

    fn case<'a>(&self, now: Time, received: Received, id: TransactionId, name: &'a [u8], bytes: &'a [u8]) -> Case<'a> {
        let same_content = self.settings.agent(received.message.agent).is_some_and(|agent| agent.same_content);
        Case { now, history: self.settings.timers.history, id, name, content: same_content.then_some(bytes) }
    }
}

/// Whether a name may mean all of several endpoints. One with `$` means one of them, and is such a common way to set up a call that the
/// book would be full of it: it waits as any command for one endpoint does.
fn names_many(name: &[u8]) -> bool {
    local_of(name).iter().any(|byte| matches!(byte, b'*' | b'['))
}
