//! Transactions of H.248 controllers, executed at most once over UDP (RFC 3525 D.1.1, D.1.2, D.1.4).
//!
//! What is the same as in MGCP is the same code: the [`super::history`] of commands and their responses. Here is what differs. A
//! transaction is known by its identifier and the message identifier of its sender, wherever it came from (UDP-09). Its identifier is
//! kept LONG-TIMER also after the reply was acknowledged (UDP-02). Acknowledged ranges discard what was never seen, too (UDP-03). A
//! transaction that takes long is told so without being asked, and its reply then asks for an acknowledgement at once (PND-01, PND-03).
//!
//! To drive it: [`Responder::arrive`] for each request; when it says so, execute and [`Responder::reply`]; every identifier in a
//! `TransactionResponseAck` goes to [`Responder::acknowledge`]. At [`Responder::deadline`], [`Responder::poll`] until it yields nothing.
//!
//! Invariants: those of the history; nothing is sent here, and every table is bounded at construction.

use super::Timers;
use super::history::{Class, Command, FinishError, Full, Handle, History, Limits, Seen, Start};
use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use std::collections::VecDeque;
use std::time::Duration;

/// Ranges of acknowledged identifiers that are remembered for each controller.
const RANGES: usize = 8;
const AGENTS: usize = 256;
/// Entries forgotten in one call.
const SWEEP: usize = 64;

/// Who sends a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    /// The controller: the only one whose acknowledgement counts.
    pub agent: AgentId,
    /// The folded hash of its message identifier ([`crate::proto::base::NameKey::fold`]): one space of identifiers.
    pub message_id: u64,
}

/// A request, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arriving {
    /// Who sends it.
    pub sender: Sender,
    /// Its identifier.
    pub id: TransactionId,
    /// A hash of all of it, for controllers that begin their identifiers anew when they restart; `None`: the identifier decides.
    pub content: Option<u64>,
    /// What it may use when the history is nearly full.
    pub class: Class,
    /// The longest reply it may get, in bytes.
    pub room: u16,
}

/// What to do with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival<'a> {
    /// Execute it, then [`Responder::reply`].
    Execute(Handle),
    /// It was executed: send this reply again, to where the repeat came from.
    Repeat(&'a [u8]),
    /// It is being executed: send TransactionPending to where the repeat came from (PND-01).
    Pending,
    /// Its reply was acknowledged: drop it silently (UDP-02, UDP-03).
    Discard,
    /// There is no room to remember it: refuse it with 510, execute nothing.
    Full(Full),
}

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// It takes longer than MGProvisionalResponseTimerValue: send TransactionPending to where it came from.
    Pending(Handle),
    /// It takes longer than any transaction may: undo it and reply with an error.
    Overdue(Handle),
}

#[derive(Clone, Copy, Default)]
struct Range {
    first: TransactionId,
    last: TransactionId,
    at: Time,
}

/// What one controller has acknowledged, and when it last got a reply.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    ranges: [Range; RANGES],
    count: usize,
    replied: Option<Time>,
}

/// One core's transactions of controllers. See the module's page.
pub struct Responder {
    history: History,
    acknowledged: Vec<Acknowledged>,
    /// Running transactions that have not been told to take long, in the order in which they began.
    quiet: VecDeque<(Time, Handle)>,
    long_timer: Duration,
    provisional_after: Duration,
    /// A range wider than this speaks of more transactions than there can have been: it discards nothing.
    widest: u32,
}

impl Responder {
    /// Nothing known. All memory is claimed here. `provisional_after`: MGProvisionalResponseTimerValue, how long a transaction runs
    /// before its sender is told (PND-01). [`Timers::t_hist`] is LONG-TIMER.
    pub fn new(limits: Limits, timers: &Timers, provisional_after: Duration, rng: &mut Rng) -> Responder {
        Responder {
            history: History::new(limits, timers.t_hist, timers.longest_run(), rng),
            acknowledged: vec![Acknowledged::default(); AGENTS],
            quiet: VecDeque::with_capacity(limits.entries),
            long_timer: timers.t_hist,
            provisional_after,
            widest: u32::try_from(limits.entries).unwrap_or(u32::MAX),
        }
    }

    /// New timers, for what comes and for what is remembered.
    pub fn set_timers(&mut self, timers: &Timers) {
        self.history.set_timers(timers.t_hist, timers.longest_run());
        self.long_timer = timers.t_hist;
    }

    /// MGProvisionalResponseTimerValue from the next transaction on; the controller may set it (PND-02).
    pub fn set_provisional_after(&mut self, after: Duration) {
        self.provisional_after = after;
    }

    /// A request has come in.
    pub fn arrive(&mut self, now: Time, arriving: &Arriving) -> Arrival<'_> {
        let Arriving { sender, id, content, class, room } = *arriving;
        let command = Command { id, name: sender.message_id, content };
        let running = match self.history.lookup(now, &command) {
            Seen::New { .. } => None,
            Seen::Running(handle) => Some(handle),
            Seen::Confirmed => return Arrival::Discard,
            Seen::Finished { handle, .. } => return self.history.body(handle).map_or(Arrival::Discard, Arrival::Repeat),
        };
        if let Some(handle) = running {
            self.history.note_provisional(handle);
            return Arrival::Pending;
        }
        if self.discards(now, sender.agent, id) {
            return Arrival::Discard;
        }
        match self.history.begin(now, &Start { command, agent: sender.agent, class, room }) {
            Ok(handle) => {
                if self.quiet.len() < self.quiet.capacity() {
                    self.quiet.push_back((now + self.provisional_after, handle));
                }
                Arrival::Execute(handle)
            }
            Err(full) => Arrival::Full(full),
        }
    }

    /// Whether an identifier never seen lies in a range that its sender acknowledged, and the range still counts: not when the sender
    /// has had no reply for LONG-TIMER (UDP-04).
    fn discards(&self, now: Time, agent: AgentId, id: TransactionId) -> bool {
        let Some(of_agent) = self.acknowledged.get(usize::from(agent.0)) else { return false };
        let recent = |at: Time| now.since(at) < self.long_timer;
        let lies_in = |range: &Range| range.first <= id && id <= range.last && recent(range.at);
        of_agent.replied.is_some_and(recent) && of_agent.ranges.iter().take(of_agent.count).any(lies_in)
    }

    /// Whether the reply must ask for an acknowledgement at once: a TransactionPending was sent for it (PND-03).
    pub fn wants_immediate_ack(&self, handle: Handle) -> bool {
        self.history.provisional_sent(handle)
    }

    /// The transaction has ended with this reply, which repeats get from now on.
    pub fn reply(&mut self, now: Time, agent: AgentId, handle: Handle, body: &[u8]) -> Result<(), FinishError> {
        self.history.finish(now, handle, body)?;
        if let Some(of_agent) = self.acknowledged.get_mut(usize::from(agent.0)) {
            of_agent.replied = Some(now);
        }
        Ok(())
    }

    /// The transaction was refused before anything was done for it: a repeat is new.
    pub fn forget(&mut self, handle: Handle) {
        self.history.forget(handle);
    }

    /// `agent` has received the replies `first..=last`. `budget` starts at [`super::history::CONFIRM_BUDGET`] for each message.
    pub fn acknowledge(&mut self, now: Time, agent: AgentId, first: TransactionId, last: TransactionId, budget: &mut u32) {
        if last < first {
            return;
        }
        self.history.confirm_range(now, agent, first, last, budget);
        if last - first >= self.widest {
            return;
        }
        let Some(of_agent) = self.acknowledged.get_mut(usize::from(agent.0)) else { return };
        let mut kept = 0;
        for at in 0..of_agent.count.min(RANGES) {
            let Some(&old) = of_agent.ranges.get(at) else { break };
            if now.since(old.at) < self.long_timer && !(first <= old.first && old.last <= last) {
                if let Some(place) = of_agent.ranges.get_mut(kept) {
                    *place = old;
                }
                kept += 1;
            }
        }
        if kept == RANGES {
            // The oldest gives way: it only means that a late copy may be looked up in the history.
            of_agent.ranges.copy_within(1.., 0);
            kept -= 1;
        }
        if let Some(place) = of_agent.ranges.get_mut(kept) {
            *place = Range { first, last, at: now };
        }
        of_agent.count = kept + 1;
    }

    /// The next thing that is due.
    pub fn poll(&mut self, now: Time) -> Option<Due> {
        self.history.expire(now, SWEEP);
        if let Some(handle) = self.history.overdue(now) {
            return Some(Due::Overdue(handle));
        }
        while let Some(&(at, handle)) = self.quiet.front() {
            let running = self.history.room(handle).is_some();
            if running && at > now {
                break;
            }
            self.quiet.pop_front();
            if running && !self.history.provisional_sent(handle) {
                self.history.note_provisional(handle);
                return Some(Due::Pending(handle));
            }
        }
        None
    }

    /// When to call [`Responder::poll`] again.
    pub fn deadline(&self) -> Time {
        self.quiet.front().map_or(Time::NEVER, |&(at, _)| at).min(self.history.deadline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);
    const LIMITS: Limits = Limits { entries: 1000, bytes: 100_000, reserve_entries: 10, reserve_bytes: 1000, largest: 1000 };
    const MGC: Sender = Sender { agent: AgentId(1), message_id: 11 };
    const OTHER: Sender = Sender { agent: AgentId(2), message_id: 22 };

    fn responder() -> Responder {
        Responder::new(LIMITS, &Timers::default(), 200 * MS, &mut Rng::new(1))
    }

    fn request(sender: Sender, id: TransactionId) -> Arriving {
        Arriving { sender, id, content: None, class: Class::Ordinary, room: 100 }
    }

    fn execute(machine: &mut Responder, now: Time, sender: Sender, id: TransactionId) -> Handle {
        match machine.arrive(now, &request(sender, id)) {
            Arrival::Execute(handle) => handle,
            other => panic!("{id}: {other:?}"),
        }
    }

    fn answer(machine: &mut Responder, now: Time, sender: Sender, id: TransactionId) {
        let handle = execute(machine, now, sender, id);
        machine.reply(now, sender.agent, handle, b"P").unwrap();
    }

    #[test]
    fn a_hundred_copies_are_executed_once() {
        // UDP-01, UDP-09: the key is the sender's name and the identifier, from whatever port.
        let (mut machine, now) = (responder(), Time::from_millis(1));
        let handle = execute(&mut machine, now, MGC, 7);
        for _ in 0..50 {
            assert_eq!(machine.arrive(now, &request(MGC, 7)), Arrival::Pending);
        }
        machine.reply(now, MGC.agent, handle, b"P=7{}").unwrap();
        for _ in 0..50 {
            assert_eq!(machine.arrive(now + S, &request(MGC, 7)), Arrival::Repeat(b"P=7{}"));
        }
        execute(&mut machine, now, OTHER, 7);
        // All 32 bits are identifiers.
        execute(&mut machine, now, MGC, u32::MAX);
    }

    #[test]
    fn an_identifier_is_kept_after_the_acknowledgement() {
        // UDP-02: where OTP executes a late copy anew
        let (mut machine, now) = (responder(), Time::from_millis(1));
        answer(&mut machine, now, MGC, 7);
        machine.acknowledge(now + S, MGC.agent, 7, 7, &mut 256);
        for late in [2, 10, 29] {
            assert_eq!(machine.arrive(now + late * S, &request(MGC, 7)), Arrival::Discard);
        }
        machine.poll(now + 40 * S);
        execute(&mut machine, now + 40 * S, MGC, 7);
    }

    #[test]
    fn another_controllers_acknowledgement_does_not_count() {
        let (mut machine, now) = (responder(), Time::from_millis(1));
        answer(&mut machine, now, MGC, 7);
        machine.acknowledge(now, OTHER.agent, 1, 100, &mut 256);
        assert_eq!(machine.arrive(now, &request(MGC, 7)), Arrival::Repeat(b"P"));
    }

    #[test]
    fn what_was_acknowledged_and_never_seen_is_discarded_for_a_while() {
        // UDP-03, UDP-04
        let (mut machine, now) = (responder(), Time::from_millis(1));
        machine.acknowledge(now, MGC.agent, 5, 9, &mut 256);
        // No reply went to it yet: after a restart acknowledged ranges mean nothing.
        execute(&mut machine, now, MGC, 6);
        answer(&mut machine, now, MGC, 1);
        assert_eq!(machine.arrive(now + S, &request(MGC, 7)), Arrival::Discard);
        execute(&mut machine, now + S, MGC, 10);
        execute(&mut machine, now + S, OTHER, 8);
        // LONG-TIMER after the acknowledgement, and after the latest reply, it is a new one.
        execute(&mut machine, now + 31 * S, MGC, 8);
    }

    #[test]
    fn a_range_of_everything_does_not_make_deaf() {
        let (mut machine, now) = (responder(), Time::from_millis(1));
        answer(&mut machine, now, MGC, 1);
        machine.acknowledge(now, MGC.agent, 0, u32::MAX, &mut 256);
        machine.acknowledge(now, MGC.agent, 9, 3, &mut 256);
        assert_eq!(machine.arrive(now, &request(MGC, 1)), Arrival::Discard);
        execute(&mut machine, now, MGC, 2);
        // Nor do many ranges grow without bound.
        (0..1000).for_each(|n| machine.acknowledge(now, MGC.agent, 10 + 10 * n, 11 + 10 * n, &mut 256));
        assert_eq!(machine.acknowledged[1].count, RANGES);
        assert_eq!(machine.arrive(now, &request(MGC, 10_001)), Arrival::Discard);
    }

    #[test]
    fn a_slow_transaction_is_pending_and_its_reply_asks_for_an_acknowledgement() {
        // PND-01, PND-03
        let (mut machine, now) = (responder(), Time::from_millis(1));
        let (slow, quick) = (execute(&mut machine, now, MGC, 1), execute(&mut machine, now + 10 * MS, MGC, 2));
        assert!(!machine.wants_immediate_ack(quick));
        machine.reply(now + 20 * MS, MGC.agent, quick, b"P").unwrap();
        assert_eq!((machine.poll(now + 199 * MS), machine.deadline()), (None, now + 200 * MS));
        assert_eq!(machine.poll(now + 200 * MS), Some(Due::Pending(slow)));
        assert_eq!(machine.poll(now + 300 * MS), None);
        assert!(machine.wants_immediate_ack(slow));
        // It ends before it could outlive what a copy of the request may take.
        assert_eq!(machine.poll(now + 10 * S), Some(Due::Overdue(slow)));
        machine.reply(now + 10 * S, MGC.agent, slow, b"P").unwrap();
        assert_eq!(machine.poll(now + 10 * S), None);
    }

    #[test]
    fn a_repeat_told_pending_is_not_told_again_by_the_clock() {
        let (mut machine, now) = (responder(), Time::from_millis(1));
        let handle = execute(&mut machine, now, MGC, 1);
        assert_eq!(machine.arrive(now + 100 * MS, &request(MGC, 1)), Arrival::Pending);
        assert_eq!(machine.poll(now + 200 * MS), None);
        assert!(machine.wants_immediate_ack(handle));
    }

    #[test]
    fn a_full_history_refuses_and_executes_nothing() {
        let (mut machine, now) = (responder(), Time::from_millis(1));
        let mut id = 0;
        let full = loop {
            id += 1;
            match machine.arrive(now, &request(MGC, id)) {
                Arrival::Execute(_) => assert!(id <= 1000),
                other => break other,
            }
        };
        assert!(matches!(full, Arrival::Full(_)));
        let release = Arriving { class: Class::Release, ..request(MGC, id) };
        assert!(matches!(machine.arrive(now, &release), Arrival::Execute(_)));
    }

    #[test]
    fn a_controller_that_begins_its_identifiers_anew_is_told_apart_by_content() {
        let (mut machine, now) = (responder(), Time::from_millis(1));
        let first = Arriving { content: Some(1), ..request(MGC, 1) };
        let Arrival::Execute(handle) = machine.arrive(now, &first) else { panic!() };
        machine.reply(now, MGC.agent, handle, b"P").unwrap();
        assert_eq!(machine.arrive(now, &first), Arrival::Repeat(b"P"));
        assert!(matches!(machine.arrive(now, &Arriving { content: Some(2), ..first }), Arrival::Execute(_)));
    }
}
