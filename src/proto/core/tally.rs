//! What became of the commands that passed between the gateway and each agent, as one core counts it, for operators.

use super::Core;
use crate::proto::base::{AgentId, Time};
use crate::proto::mgcp;

/// The tally of one agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Its commands that were done.
    pub done: u64,
    /// Its commands that were refused.
    pub refused: u64,
    /// Commands to it that it did.
    pub own_done: u64,
    /// Commands to it that it refused or sent elsewhere.
    pub own_refused: u64,
    /// Commands to it that it did not answer.
    pub own_lost: u64,
    /// When a command or a response came from it last.
    pub heard: Option<Time>,
}

impl Tally {
    /// What two cores counted.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            done: self.done + other.done,
            refused: self.refused + other.refused,
            own_done: self.own_done + other.own_done,
            own_refused: self.own_refused + other.own_refused,
            own_lost: self.own_lost + other.own_lost,
            heard: self.heard.max(other.heard),
        }
    }
}

/// Those of all agents there can be.
pub(super) struct Tallies(Box<[Tally]>);

impl Tallies {
    pub fn new() -> Tallies {
        Tallies(vec![Tally::default(); usize::from(u8::MAX) + 1].into())
    }

    pub fn of(&mut self, agent: AgentId) -> &mut Tally {
        &mut self.0[usize::from(agent.0)]
    }

    /// The same, to read.
    pub fn get(&self, agent: AgentId) -> Tally {
        self.0[usize::from(agent.0)]
    }
}

impl Core {
    /// Counts the final response `code` to a command of `agent`, or 533 in its place when it did not fit.
    pub(super) fn count_final(&mut self, agent: AgentId, code: u16, fitted: bool) {
        let code = if fitted { code } else { mgcp::RESPONSE_TOO_LARGE.code };
        self.counters.response(code);
        let tally = self.tallies.of(agent);
        *if code < 400 { &mut tally.done } else { &mut tally.refused } += 1;
    }
}
