//! Calls of a node that no longer count are taken out a slice a turn: whoever asks meanwhile waits for a slice, however many calls go.
//!
//! What goes is told from what stays by its stamp (R29). Every session begins above those before it, so the node may come back, tell and
//! ask while a sweep of it is under way: the outcome is that of a sweep in one step. What has not gone yet counts.

use super::super::charge::{Key, ScId};
use super::super::ledger::Ccb;
use super::nodes::Contact;
use super::{Central, Note};
use crate::proto::base::Time;

/// A sweep under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    why: Why,
    /// Calls that sessions from this one on spoke of stay.
    below: u64,
    /// What was looked at last.
    behind: Option<Key>,
    removed: u32,
}

/// Why calls go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// A sync of so many calls is complete: the others are gone (R12).
    Synced(u32),
    /// Their node, lost since then, is dead.
    Dead(Time),
    /// Their node is lost since then, for too long: for all its calls, or for those that no policy keeps (R9, R41).
    Overdue(Time, bool),
}

impl Sweep {
    /// Whether its node is known to be dead, so that whoever comes by this name is another one.
    pub fn is_of_dead(&self) -> bool {
        matches!(self.why, Why::Dead(_))
    }

    /// Whether it is of a node that was lost for too long.
    pub fn is_overdue(&self) -> bool {
        matches!(self.why, Why::Overdue(..))
    }

    pub fn removed(&self) -> u32 {
        self.removed
    }
}

impl Central {
    /// Begins a sweep with the calls that no session spoke of from `below` on, in place of one under way: for whichever reason that was,
    /// what it has not reached goes now.
    pub(super) fn begin_sweep(&mut self, now: Time, sc: ScId, below: u64, why: Why) {
        let Some(node) = self.nodes.get_mut(&sc) else { return };
        let removed = node.sweep.map_or(0, |before| before.removed);
        node.sweep = Some(Sweep { why, below, behind: None, removed });
        self.sweep(now, sc);
    }

    /// Goes on with sweeps, as far as a turn goes.
    pub(super) fn sweeps_due(&mut self, now: Time) {
        while self.turn > 0
            && let Some(sc) = self.nodes.iter().find(|(_, node)| node.sweep.is_some()).map(|(&sc, _)| sc)
        {
            self.sweep(now, sc);
        }
    }

    /// Whether there is a sweep to go on with.
    pub(super) fn is_sweeping(&self) -> bool {
        self.nodes.values().any(|node| node.sweep.is_some())
    }

    fn sweep(&mut self, now: Time, sc: ScId) {
        let Some(mut sweep) = self.nodes.get_mut(&sc).and_then(|node| node.sweep.take()) else { return };
        let keeps = matches!(sweep.why, Why::Overdue(_, false));
        let policies = &self.policies;
        let gone = |ccb: &Ccb| ccb.stamp < sweep.below && !(keeps && Central::keeps(policies, ccb));
        let slice = self.authority.sweep(sc, sweep.behind, self.turn, gone);
        self.turn -= slice.seen.min(self.turn);
        sweep.removed += slice.removed as u32;
        sweep.behind = slice.last.or(sweep.behind);
        if slice.is_last {
            self.swept(now, sc, sweep);
        } else if let Some(node) = self.nodes.get_mut(&sc) {
            node.sweep = Some(sweep);
        }
    }

    /// All that was to go is gone. Where the node was waited for anew meanwhile, or is back, it is not forgotten.
    fn swept(&mut self, now: Time, sc: ScId, Sweep { why, removed, .. }: Sweep) {
        let since = match self.nodes.get(&sc).map(|node| &node.contact) {
            Some(&Contact::Lost(since, _)) => Some(since),
            _ => None,
        };
        match why {
            Why::Synced(calls) => self.note(Note::InSync(sc, calls, removed)),
            Why::Dead(lost) if since == Some(lost) => {
                self.rest(now, sc, |_| true);
                self.drop_node(sc, removed);
            }
            Why::Overdue(lost, at_last) if since == Some(lost) => self.forget_overdue(now, sc, at_last, removed),
            Why::Dead(_) | Why::Overdue(..) => {
                self.note(Note::Forgotten(sc, removed));
                self.give_quotas();
            }
        }
    }
}
