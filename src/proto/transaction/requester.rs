//! Requests of ours to H.248 controllers: Notify and ServiceChange, repeated until they are answered (RFC 3525 D.1.3 to D.1.5).
//!
//! Ids, copies, back-off from the measured delay, T-MAX and the move to another address are [`super::outgoing`]'s, the same as for MGCP;
//! here are the words of H.248 for what comes back. TransactionPending is MGCP's provisional response: repeats wait the longer timer
//! from then on (PND-06). The reply that follows it is acknowledged at once, as is one that asks for it (PND-04).

use super::Timers;
use super::outgoing::{Answer, Due, Limits, Outgoing, Outstanding, SendError};
use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use std::net::SocketAddr;

/// What came of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// It ends a request of ours.
    Ends {
        /// The caller's word for the request.
        user: u64,
        /// The controller that was asked.
        agent: AgentId,
        /// Send `TransactionResponseAck` with this identifier to the source of the reply, at once.
        acknowledge: bool,
    },
    /// No request of ours waits for it.
    Stray {
        /// All the same acknowledge it: it is a copy of a reply whose acknowledgement was lost.
        acknowledge: bool,
    },
}

/// One core's requests to controllers. See the module's page.
pub struct Requester {
    outgoing: Outgoing,
}

impl Requester {
    /// Nothing outstanding; memory is claimed here. [`Timers::longtran`] is the timer after a TransactionPending.
    pub fn new(now: Time, limits: &Limits, timers: Timers, rng: Rng) -> Requester {
        Requester { outgoing: Outgoing::new(now, limits, timers, rng) }
    }

    /// Takes a request; [`Requester::poll`] gives its first copy. `write` writes the whole message for the identifier and returns its
    /// length, or `None` when it does not fit.
    pub fn send(
        &mut self,
        now: Time,
        agent: AgentId,
        addresses: &[SocketAddr],
        user: u64,
        write: impl FnOnce(TransactionId, &mut [u8]) -> Option<usize>,
    ) -> Result<TransactionId, SendError> {
        self.outgoing.send(now, agent, addresses, user, write)
    }

    /// The next copy to send, or a request that nobody answered within T-MAX: its controller has failed (ASC-16).
    pub fn poll(&mut self, now: Time) -> Option<Due<'_>> {
        self.outgoing.poll(now)
    }

    /// When to call [`Requester::poll`] again.
    pub fn deadline(&self) -> Time {
        self.outgoing.deadline()
    }

    /// TransactionPending has come in; whether a request of ours waits. One behind the reply means nothing (PND-05).
    pub fn handle_pending(&mut self, now: Time, id: TransactionId) -> bool {
        matches!(self.outgoing.handle_response(now, PENDING, id, false), Answer::Provisional { .. })
    }

    /// A reply has come in, from wherever; `immediate_ack` says whether it asks for an acknowledgement at once.
    pub fn handle_reply(&mut self, now: Time, id: TransactionId, immediate_ack: bool) -> Reply {
        let was_pending = self.outgoing.is_provisional(id);
        match self.outgoing.handle_response(now, FINAL, id, immediate_ack || was_pending) {
            Answer::Done(done) => Reply::Ends { user: done.user, agent: done.agent, acknowledge: done.acknowledge },
            Answer::Stray { acknowledge } => Reply::Stray { acknowledge },
            Answer::Provisional { .. } => Reply::Stray { acknowledge: false },
        }
    }

    /// Another controller is in charge after a failover: the request goes there from now on (UDP-07).
    pub fn redirect(&mut self, id: TransactionId, agent: AgentId, addresses: &[SocketAddr]) -> bool {
        self.outgoing.redirect(id, agent, addresses)
    }

    /// The same for everything that is outstanding.
    pub fn redirect_all(&mut self, agent: AgentId, addresses: &[SocketAddr]) {
        let mut list = [0; REDIRECTED];
        let mut count = 0;
        for (place, command) in list.iter_mut().zip(self.outgoing.iter().filter(|command| command.agent != agent)) {
            *place = command.id;
            count += 1;
        }
        list.iter().take(count).for_each(|id| {
            self.outgoing.redirect(*id, agent, addresses);
        });
    }

    /// Drops a request; the caller's word when it was outstanding.
    pub fn cancel(&mut self, now: Time, id: TransactionId) -> Option<u64> {
        self.outgoing.cancel(now, id)
    }

    /// New timers, from the next timer of each request on.
    pub fn set_timers(&mut self, timers: Timers) {
        self.outgoing.set_timers(timers);
    }

    /// How many requests are outstanding.
    pub fn len(&self) -> u32 {
        self.outgoing.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Every request that is outstanding.
    pub fn iter(&self) -> impl Iterator<Item = Outstanding> {
        self.outgoing.iter()
    }

    /// How many requests to a controller are outstanding.
    pub fn outstanding(&self, agent: AgentId) -> u32 {
        self.outgoing.outstanding(agent)
    }
}

/// Requests that follow a failover; more are given up as if nobody had answered.
const REDIRECTED: usize = 256;

/// What [`Outgoing`] takes for "it is being worked on" and for "it has ended".
const PENDING: u16 = 100;
const FINAL: u16 = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const S: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);
    const MGC: AgentId = AgentId(3);

    fn requester() -> Requester {
        let limits = Limits { commands: 16, large: 2, ordinal: 0, owners: 1 };
        Requester::new(Time::ZERO, &limits, Timers { jitter: false, ..Timers::default() }, Rng::new(1))
    }

    fn send(machine: &mut Requester, now: Time) -> TransactionId {
        let write = |id, place: &mut [u8]| {
            let text = format!("T={id}{{}}");
            place.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
            Some(text.len())
        };
        machine.send(now, MGC, &[SocketAddr::from(([192, 0, 2, 1], 2944))], 42, write).unwrap()
    }

    /// When copies leave until `end`, in ms, and whether the request was given up.
    fn run(machine: &mut Requester, from: Time, end: Time) -> (Vec<u128>, bool) {
        let (mut copies, mut now) = (Vec::new(), from);
        loop {
            while let Some(due) = machine.poll(now) {
                match due {
                    Due::Transmit { .. } => copies.push(now.since(Time::ZERO).as_millis()),
                    Due::Unanswered { user, .. } => {
                        assert_eq!(user, 42);
                        return (copies, true);
                    }
                }
            }
            match machine.deadline() {
                next if next > end => return (copies, false),
                next => now = next.max(now),
            }
        }
    }

    #[test]
    fn repeats_grow_and_end_at_t_max() {
        // UDP-05, UDP-06: the fifth repeat is lost after some 6 s, and some 30 s are enough.
        let mut machine = requester();
        send(&mut machine, Time::ZERO);
        let (copies, given_up) = run(&mut machine, Time::ZERO, Time::ZERO + 120 * S);
        assert_eq!(&copies[..6], [0, 200, 600, 1400, 3000, 6200]);
        assert!(given_up && *copies.last().unwrap() <= 20_000, "{copies:?}");
        assert_eq!(machine.outstanding(MGC), 0);
    }

    #[test]
    fn a_pending_slows_the_repeats_and_the_reply_behind_it_is_acknowledged() {
        // PND-04, PND-05, PND-06
        let mut machine = requester();
        let id = send(&mut machine, Time::ZERO);
        assert_eq!(run(&mut machine, Time::ZERO, Time::from_millis(100)).0, [0]);
        assert!(machine.handle_pending(Time::from_millis(100), id));
        let (copies, _) = run(&mut machine, Time::from_millis(100), Time::ZERO + 12 * S);
        assert!(copies.iter().all(|at| *at >= 5000), "{copies:?}");
        let ends = Reply::Ends { user: 42, agent: MGC, acknowledge: true };
        assert_eq!(machine.handle_reply(Time::ZERO + 12 * S, id, false), ends);
        assert!(!machine.handle_pending(Time::ZERO + 12 * S, id));
        // A copy of that reply: our acknowledgement was lost.
        assert_eq!(machine.handle_reply(Time::ZERO + 13 * S, id, true), Reply::Stray { acknowledge: true });
    }

    #[test]
    fn an_ordinary_reply_needs_no_acknowledgement() {
        let mut machine = requester();
        let id = send(&mut machine, Time::ZERO);
        run(&mut machine, Time::ZERO, Time::from_millis(1));
        assert_eq!(machine.handle_reply(Time::ZERO + 10 * MS, id, false), Reply::Ends { user: 42, agent: MGC, acknowledge: false });
        assert_eq!(machine.handle_reply(Time::ZERO + 11 * MS, id, false), Reply::Stray { acknowledge: false });
        assert_eq!(machine.handle_reply(Time::ZERO + 11 * MS, 12_345, true), Reply::Stray { acknowledge: false });
        let id = send(&mut machine, Time::ZERO + S);
        run(&mut machine, Time::ZERO + S, Time::ZERO + S);
        assert_eq!(machine.handle_reply(Time::ZERO + S, id, true), Reply::Ends { user: 42, agent: MGC, acknowledge: true });
    }
}
