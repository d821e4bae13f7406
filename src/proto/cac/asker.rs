//! The part of a core in a cluster: which of its connections count as which call, and the questions that are on their way to the node.
//!
//! The [`Node`](super::node::Node) of a gateway runs on a thread of its own; cores and it talk by rings, and this is the core's end. A
//! call that counts nowhere, an emergency call, and one that finds a place of the core's quotas ([`Lessee`]) wherever it counts wait
//! for nobody. Every other new call, and every change to more than a call has, is asked for, and the command waits. Whatever was admitted and is not used, or is not used any more, is
//! told, so both ends know the same calls. Bounded: a core has so many questions on their way at most, and one place for each connection.

use super::charge::{Charge, Class, Direction, Leg};
use super::limits::Denial;
use super::quota::Lessee;
use super::scope::ScopeId;
use super::share::Ticket;
use crate::proto::base::Time;
use std::collections::VecDeque;

/// One call of one core: the number of its GUID, unique in this life of the gateway. The first eight bits are the core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Call {
    number: u64,
    leg: Leg,
}

impl Call {
    /// No call.
    pub const NONE: Call = Call { number: 0, leg: Leg::Ingress };

    /// The number in its GUID.
    pub fn number(self) -> u64 {
        self.number
    }

    /// Which leg.
    pub fn leg(self) -> Leg {
        self.leg
    }

    /// The call with this number.
    pub fn new(number: u64, leg: Leg) -> Call {
        Call { number, leg }
    }

    /// The call with this number that is charged this.
    pub fn of(number: u64, charge: &Charge) -> Call {
        let leg = match charge.direction {
            Direction::Inbound => Leg::Ingress,
            Direction::Outbound => Leg::Egress,
        };
        Call { number, leg }
    }

    /// Whose core it is: the place among the cores.
    pub fn core(self) -> usize {
        (self.number >> 56) as usize
    }
}

/// From a core to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToLink {
    /// May this call begin?
    Ask(Call, Charge),
    /// May both legs of a pair begin? The answer is about the first. The second one's core is another one, perhaps, which numbered it.
    AskBoth((Call, Charge), (Call, Charge)),
    /// May it be charged so?
    Change(Call, Charge),
    /// It is charged so from now on, whatever anybody says: it was so before, or needs less.
    Fact(Call, Charge),
    /// It begins, with places of the core's quotas.
    Took(Call, Charge),
    /// It begins, because nobody said in time whether it may.
    Alone(Call, Charge),
    /// It is over, or was never begun.
    End(Call),
    /// The core goes by the change of this number of its quota.
    Keeps(ScopeId, u32),
}

impl ToLink {
    /// The call that begins by this.
    fn begins(&self) -> Option<Call> {
        match *self {
            ToLink::Ask(call, _) | ToLink::Took(call, _) | ToLink::Alone(call, _) => Some(call),
            _ => None,
        }
    }

    fn is_about(&self, call: Call) -> bool {
        match *self {
            ToLink::Change(about, _) | ToLink::Fact(about, _) | ToLink::End(about) => about == call,
            _ => self.begins() == Some(call),
        }
    }
}

/// From the node to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FromLink {
    /// The answer to [`ToLink::Ask`].
    Decided(Call, Result<(), Denial>),
    /// It may, with these places of quotas, of which the core gets those more that it did not have.
    Lent(Call, Charge),
    /// The answer to [`ToLink::Change`].
    Changed(Call, Result<(), Denial>),
    /// The quota of the core from now on, and the number of this change.
    Quota(ScopeId, u32, u32),
    /// The quotas hold up to then.
    Lease(Time),
}

/// So much waits for the node only when it stands still.
const CROWDED: usize = 256;

/// A question on its way.
#[derive(Clone, Copy, Debug)]
struct Question {
    ticket: Ticket,
    call: Call,
    /// What it is to be charged; places of quotas among it are taken.
    charge: Charge,
    /// Of a change: what the call has.
    has: Option<Charge>,
    /// The other leg of a pair, which is asked for with it.
    with: Option<(Call, Charge)>,
}

impl Question {
    fn has(&self) -> Charge {
        self.has.unwrap_or(Charge::EMPTY)
    }

    fn wants(&self, charge: &Charge) -> bool {
        self.charge.unleased() == charge.unleased()
    }
}

/// What a connection's change is to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The node knows already.
    Told,
    /// It has less than before; the node hears of it when it is made.
    Less,
    /// It counts now and did not before.
    Begins(Call),
    /// It counts nowhere any more.
    Ends,
    /// Nothing that the node knows of.
    Nothing,
}

/// The core's end.
#[derive(Debug)]
pub struct Asker {
    core: u8,
    last: u64,
    /// The call of each connection, by slot.
    calls: Vec<Call>,
    questions: Vec<Question>,
    limit: usize,
    /// What was granted and is to be used at once.
    granted: Option<Question>,
    quotas: Lessee,
    out: VecDeque<ToLink>,
    /// The node has not been heard of since a question was not answered in time.
    silent: bool,
}

impl Asker {
    /// That of this core, for so many connections and scopes, with so many questions at a time.
    pub fn new(core: u8, connections: u32, scopes: usize, questions: u16) -> Asker {
        Asker {
            core,
            last: 0,
            calls: vec![Call::NONE; connections as usize],
            questions: Vec::with_capacity(questions.into()),
            limit: questions.into(),
            granted: None,
            quotas: Lessee::new(scopes),
            out: VecDeque::new(),
            silent: false,
        }
    }

    /// What the connection in `slot` counts as.
    pub fn call(&self, slot: u32) -> Call {
        self.calls.get(slot as usize).copied().unwrap_or(Call::NONE)
    }

    /// The connection in `slot` counts as this from now on.
    pub fn keep(&mut self, slot: u32, call: Call) {
        if let Some(place) = self.calls.get_mut(slot as usize) {
            *place = call;
        }
    }

    /// A call that may be charged this: its number is taken.
    pub fn next(&mut self, charge: &Charge) -> Call {
        self.last += 1;
        Call::of(u64::from(self.core) << 56 | self.last, charge)
    }

    /// The quotas of this core.
    pub fn quotas(&self) -> &Lessee {
        &self.quotas
    }

    /// A new call of `charge`: it counts as this, with these places of quotas in its charge; or must be asked for.
    #[inline]
    pub fn begin(&mut self, now: Time, charge: &Charge) -> Option<(Call, Charge)> {
        if charge.is_empty() {
            return Some((Call::NONE, *charge));
        }
        if let Some(granted) = self.granted.take_if(|granted| granted.has.is_none() && granted.wants(charge)) {
            return Some((granted.call, granted.charge));
        }
        if charge.class == Class::Emergency {
            let call = self.next(charge);
            self.out.push_back(ToLink::Ask(call, *charge));
            return Some((call, *charge));
        }
        let leased = self.quotas.lease(now, charge, &Charge::EMPTY);
        if leased.is_all_leased() {
            let call = self.next(charge);
            self.out.push_back(ToLink::Took(call, leased));
            return Some((call, leased));
        }
        self.quotas.give_back(&leased, &Charge::EMPTY);
        None
    }

    /// The connection in `slot` is to be charged this instead of `has`: it may, what that is to the node, and with which places of quotas
    /// in its charge; or must be asked for.
    pub fn change(&mut self, now: Time, slot: u32, charge: &Charge, has: &Charge) -> Option<(Step, Charge)> {
        let call = self.call(slot);
        if call == Call::NONE {
            let (call, charge) = self.begin(now, charge)?;
            return Some((if call == Call::NONE { Step::Nothing } else { Step::Begins(call) }, charge));
        }
        if charge.is_empty() {
            return Some((Step::Ends, *charge));
        }
        if let Some(granted) = self.granted.take_if(|granted| granted.call == call && granted.wants(charge)) {
            return Some((Step::Told, granted.charge));
        }
        let leased = self.quotas.lease(now, charge, has);
        let is_less = |scope: ScopeId| has.contains(scope) && charge.kbits <= has.kbits;
        if charge.class == Class::Emergency || leased.scopes().all(|scope| leased.is_leased(scope) || is_less(scope)) {
            return Some((Step::Less, leased));
        }
        self.quotas.give_back(&leased, has);
        None
    }

    /// A change from `has` is made.
    pub fn changed(&mut self, slot: u32, step: Step, charge: &Charge, has: &Charge) {
        match step {
            Step::Nothing => {}
            Step::Told => self.quotas.give_back(has, charge),
            Step::Less => {
                self.quotas.give_back(has, charge);
                self.out.push_back(ToLink::Fact(self.call(slot), *charge));
            }
            Step::Begins(call) => self.keep(slot, call),
            Step::Ends => self.end(slot, has),
        }
    }

    /// A change to `charge` is not made: the connection has what it had.
    pub fn unchanged(&mut self, slot: u32, step: Step, charge: &Charge, has: &Charge) {
        self.quotas.give_back(charge, has);
        match step {
            Step::Told => self.out.push_back(ToLink::Fact(self.call(slot), *has)),
            Step::Begins(call) => self.tell_end(call),
            Step::Less | Step::Ends | Step::Nothing => {}
        }
    }

    /// The connection in `slot`, which was charged this, is gone.
    pub fn end(&mut self, slot: u32, charge: &Charge) {
        let call = self.call(slot);
        self.keep(slot, Call::NONE);
        self.drop_call(call, charge);
    }

    /// A call of this charge did not come about.
    pub fn drop_call(&mut self, call: Call, charge: &Charge) {
        self.quotas.give_back(charge, &Charge::EMPTY);
        self.tell_end(call);
    }

    /// A node that stands still need not hear of calls that came and went meanwhile: so what waits for it is about calls that are up, or
    /// that it knows.
    fn tell_end(&mut self, call: Call) {
        if self.out.len() > CROWDED && self.out.iter().any(|message| message.begins() == Some(call)) {
            self.out.retain(|message| !message.is_about(call));
        } else if call != Call::NONE {
            self.out.push_back(ToLink::End(call));
        }
    }

    /// Asks whether a call of `charge` may begin, or, in a `slot` that counts already, be charged so instead of `has`: with the places of
    /// quotas that there are, which nobody need be asked about. With too many questions on their way it is not asked, and whoever waits
    /// is told when the time is over.
    pub fn ask(&mut self, now: Time, ticket: Ticket, charge: &Charge, has: &Charge, slot: Option<u32>) {
        self.ask_with(now, ticket, (charge, has), slot, None);
    }

    /// The same for a new call and the other leg of its pair, which has a number already ([`Asker::next`]): both or none.
    pub fn ask_both(&mut self, now: Time, ticket: Ticket, charge: &Charge, with: (Call, Charge)) {
        self.ask_with(now, ticket, (charge, &Charge::EMPTY), None, Some(with));
    }

    fn ask_with(&mut self, now: Time, ticket: Ticket, (charge, has): (&Charge, &Charge), slot: Option<u32>, with: Option<(Call, Charge)>) {
        if self.questions.len() >= self.limit {
            return;
        }
        let call = slot.map_or(Call::NONE, |slot| self.call(slot));
        let has = if call == Call::NONE { Charge::EMPTY } else { *has };
        let charge = self.quotas.lease(now, charge, &has);
        let question = match call {
            Call::NONE => Question { ticket, call: self.next(&charge), charge, has: None, with },
            call => Question { ticket, call, charge, has: Some(has), with: None },
        };
        self.questions.push(question);
        self.out.push_back(match (question.has, with) {
            (None, Some(with)) => ToLink::AskBoth((question.call, charge), with),
            (None, None) => ToLink::Ask(question.call, charge),
            (Some(_), _) => ToLink::Change(question.call, charge),
        });
    }

    /// The node's answer: whose question it was, what was wanted, and the refusal if it is one. What was granted is to be used at once,
    /// and [`Asker::settle`] called in any case. `None`: nobody asked, as for an emergency call.
    pub fn handle(&mut self, message: FromLink) -> Option<(Ticket, Charge, Result<(), Denial>)> {
        self.silent = false;
        let (call, is_change, result, lent) = match message {
            FromLink::Decided(call, result) => (call, false, result, None),
            FromLink::Lent(call, charge) => (call, false, Ok(()), Some(charge)),
            FromLink::Changed(call, result) => (call, true, result, None),
            FromLink::Quota(scope, quota, number) => {
                self.quotas.set_quota(scope, quota);
                self.out.push_back(ToLink::Keeps(scope, number));
                return None;
            }
            FromLink::Lease(until) => {
                self.quotas.set_until(until);
                return None;
            }
        };
        let fits = |question: &Question| question.call == call && question.has.is_some() == is_change;
        let mut question = self.questions.swap_remove(self.questions.iter().position(fits)?);
        if let Some(charge) = lent {
            self.quotas.lend(&charge, &question.charge);
            question.charge = charge;
        }
        match result {
            Ok(()) => self.granted = Some(question),
            Err(_) => self.quotas.give_back(&question.charge, &question.has()),
        }
        Some((question.ticket, question.charge.unleased(), result))
    }

    /// No answer came in time: until the node is heard of again nobody need wait for it, though it is asked.
    pub fn overdue(&mut self) {
        self.silent = true;
    }

    /// See [`Asker::overdue`].
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// No answer came in time, for the node stands still: what was asked for is to be used at once all the same, as if it was granted, and
    /// the node is told. False: nothing was asked.
    pub fn go_alone(&mut self, ticket: Ticket) -> bool {
        let Some(place) = self.questions.iter().position(|question| question.ticket == ticket) else { return false };
        let question = self.questions.swap_remove(place);
        self.out.push_back(match question.has {
            None => ToLink::Alone(question.call, question.charge),
            Some(_) => ToLink::Fact(question.call, question.charge),
        });
        self.out.extend(question.with.map(|(call, charge)| ToLink::Alone(call, charge)));
        self.granted = Some(question);
        true
    }

    /// The other leg of the pair that was granted just now; whoever takes it sees to it that it begins ([`Asker::accept`]), or ends
    /// ([`Asker::decline`]).
    pub fn take_with(&mut self) -> Option<(Call, Charge)> {
        self.granted.as_mut()?.with.take()
    }

    /// This call of this core's, of a pair, was granted on another one: it is to be used at once, and [`Asker::settle`] called.
    pub fn accept(&mut self, call: Call, charge: Charge) {
        self.granted = Some(Question { ticket: Ticket::default(), call, charge, has: None, with: None });
    }

    /// It was granted, and does not begin.
    pub fn decline(&mut self, call: Call) {
        self.tell_end(call);
    }

    /// Whoever asked has been told: what was granted and not used is given back.
    pub fn settle(&mut self) {
        let Some(question) = self.granted.take() else { return };
        if let Some((call, _)) = question.with {
            self.tell_end(call);
        }
        self.quotas.give_back(&question.charge, &question.has());
        match question {
            Question { call, has: None, .. } => self.tell_end(call),
            // A connection that is gone meanwhile has ended its call.
            Question { call, has: Some(has), .. } if self.calls.contains(&call) => self.out.push_back(ToLink::Fact(call, has)),
            _ => {}
        }
    }

    /// The next message for the node, which [`Asker::sent`] takes away.
    pub fn first(&self) -> Option<ToLink> {
        self.out.front().copied()
    }

    /// The first message is on its way.
    pub fn sent(&mut self) {
        self.out.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Cause;
    use super::super::scope::ScopeId;
    use super::*;

    const NOW: Time = Time::from_millis(1_000);

    fn charge(class: Class, kbits: u32) -> Charge {
        let mut charge = Charge::new(Direction::Outbound, class, kbits);
        charge.add(ScopeId(0));
        charge
    }

    fn sent(asker: &mut Asker) -> Vec<ToLink> {
        std::iter::from_fn(|| {
            let first = asker.first()?;
            asker.sent();
            Some(first)
        })
        .collect()
    }

    #[test]
    fn a_call_is_asked_for_used_and_ended_once() {
        let mut asker = Asker::new(3, 8, 1, 4);
        let wanted = charge(Class::Normal, 80);
        assert_eq!(asker.begin(NOW, &wanted), None);
        asker.ask(NOW, Ticket(1), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(call, _)] = sent(&mut asker)[..] else { panic!("not asked") };
        assert_eq!((call.core(), call.leg()), (3, Leg::Egress));
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), Some((Ticket(1), wanted, Ok(()))));
        assert_eq!(asker.begin(NOW, &wanted), Some((call, wanted)));
        asker.keep(5, call);
        asker.settle();
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), None, "an answer counts once");
        asker.end(5, &wanted);
        asker.end(5, &wanted);
        assert_eq!(sent(&mut asker), [ToLink::End(call)]);
    }

    /// R27: a grant that nobody waits for any more goes back.
    #[test]
    fn what_is_granted_and_not_used_is_given_back() {
        let mut asker = Asker::new(0, 8, 1, 1);
        let wanted = charge(Class::Normal, 80);
        asker.ask(NOW, Ticket(1), &wanted, &Charge::EMPTY, None);
        asker.ask(NOW, Ticket(2), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(call, _)] = sent(&mut asker)[..] else { panic!("asked beyond the limit") };
        asker.handle(FromLink::Decided(call, Ok(())));
        assert_eq!(asker.begin(NOW, &charge(Class::Normal, 96)), None, "it was granted for another call");
        asker.settle();
        assert_eq!(sent(&mut asker), [ToLink::End(call)]);
    }

    /// R39: a node that stands still hears afterwards of what began without it, and nothing of what came and went.
    #[test]
    fn without_an_answer_a_call_begins_and_the_node_is_told() {
        let mut asker = Asker::new(0, 1_000, 1, 2);
        let (wanted, more) = (charge(Class::Normal, 80), charge(Class::Normal, 96));
        asker.ask(NOW, Ticket(1), &wanted, &Charge::EMPTY, None);
        assert!(asker.go_alone(Ticket(1)) && !asker.go_alone(Ticket(1)) && !asker.go_alone(Ticket(2)));
        let Some((call, _)) = asker.begin(NOW, &wanted) else { panic!("not admitted") };
        asker.keep(5, call);
        asker.settle();
        asker.ask(NOW, Ticket(2), &more, &wanted, Some(5));
        assert!(asker.go_alone(Ticket(2)));
        assert_eq!(asker.change(NOW, 5, &more, &wanted), Some((Step::Told, more)));
        asker.changed(5, Step::Told, &more, &wanted);
        asker.settle();
        let told = [ToLink::Ask(call, wanted), ToLink::Alone(call, wanted), ToLink::Change(call, more), ToLink::Fact(call, more)];
        // What it says then changes nothing any more.
        for late in [
            FromLink::Decided(call, Ok(())),
            FromLink::Changed(call, Err(Denial { scope: ScopeId(0), cause: Cause::Calls, used: 1, limit: 1 })),
        ] {
            assert_eq!(asker.handle(late), None);
        }
        // Thousands of calls while it stands still, those that are up among them.
        let ends = |asker: &mut Asker, slot: u32| {
            asker.ask(NOW, Ticket(9), &wanted, &Charge::EMPTY, None);
            assert!(asker.go_alone(Ticket(9)));
            let (call, _) = asker.begin(NOW, &wanted).expect("granted");
            asker.keep(slot, call);
            asker.settle();
            asker.end(slot, &wanted);
        };
        (0..10_000).for_each(|_| ends(&mut asker, 7));
        let all = sent(&mut asker);
        assert!(all.len() < 2 * CROWDED && all.starts_with(&told), "{}", all.len());
        asker.end(5, &more);
        assert_eq!(sent(&mut asker), [ToLink::End(call)]);
    }

    /// R23: a refused change, and one that is granted and not made, leave the call with what it has.
    #[test]
    fn a_change_is_asked_for_when_it_needs_more() {
        let mut asker = Asker::new(0, 8, 1, 4);
        let (has, more, less) = (charge(Class::Normal, 80), charge(Class::Normal, 96), charge(Class::Normal, 64));
        let call = Call::new(9, Leg::Egress);
        asker.keep(1, call);
        assert_eq!(asker.change(NOW, 1, &less, &has), Some((Step::Less, less)));
        asker.changed(1, Step::Less, &less, &has);
        assert_eq!(sent(&mut asker), [ToLink::Fact(call, less)]);
        assert_eq!(asker.change(NOW, 1, &more, &has), None);
        asker.ask(NOW, Ticket(1), &more, &has, Some(1));
        assert_eq!(sent(&mut asker), [ToLink::Change(call, more)]);
        let denial = Denial { scope: ScopeId(0), cause: Cause::Bandwidth, used: 1, limit: 1 };
        assert_eq!(asker.handle(FromLink::Changed(call, Err(denial))), Some((Ticket(1), more, Err(denial))));
        asker.settle();
        assert_eq!(sent(&mut asker), []);
        asker.ask(NOW, Ticket(2), &more, &has, Some(1));
        asker.handle(FromLink::Changed(call, Ok(())));
        assert_eq!(asker.change(NOW, 1, &more, &has), Some((Step::Told, more)));
        asker.settle();
        asker.unchanged(1, Step::Told, &more, &has);
        assert_eq!(sent(&mut asker), [ToLink::Change(call, more), ToLink::Fact(call, has)]);
    }

    /// R31: with a place of a quota wherever it counts a call asks nobody; what it lacks is asked for, or lent.
    #[test]
    fn a_call_with_places_of_quotas_asks_nobody() {
        let mut asker = Asker::new(0, 8, 2, 4);
        let mut wanted = charge(Class::Normal, 80);
        wanted.add(ScopeId(1));
        let live = |asker: &Asker| [0, 1].map(|scope| asker.quotas().place(ScopeId(scope)));
        asker.handle(FromLink::Lease(NOW + std::time::Duration::from_secs(9)));
        for scope in 0..2 {
            asker.handle(FromLink::Quota(ScopeId(scope), 1, 7));
        }
        assert_eq!(sent(&mut asker), [ToLink::Keeps(ScopeId(0), 7), ToLink::Keeps(ScopeId(1), 7)]);
        let (call, leased) = asker.begin(NOW, &wanted).expect("places");
        asker.keep(5, call);
        assert!(leased.is_all_leased() && live(&asker) == [(1, 1); 2]);
        assert_eq!(sent(&mut asker), [ToLink::Took(call, leased)]);
        // The next one finds none; asked for, it gets one more in each.
        assert_eq!(asker.begin(NOW, &wanted), None);
        asker.ask(NOW, Ticket(1), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(second, asked)] = sent(&mut asker)[..] else { panic!("not asked") };
        assert_eq!(asked, wanted);
        assert_eq!(asker.handle(FromLink::Lent(second, leased)), Some((Ticket(1), wanted, Ok(()))));
        assert_eq!((asker.begin(NOW, &wanted), live(&asker)), (Some((second, leased)), [(2, 2); 2]));
        asker.settle();
        asker.end(5, &leased);
        assert_eq!(live(&asker), [(2, 1); 2]);
        // With a place in one scope only, the other one is asked for, and the place is kept for it until it is refused.
        asker.handle(FromLink::Quota(ScopeId(1), 1, 8));
        sent(&mut asker);
        asker.ask(NOW, Ticket(2), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(third, asked)] = sent(&mut asker)[..] else { panic!("not asked") };
        assert!(asked.is_leased(ScopeId(0)) && !asked.is_leased(ScopeId(1)) && live(&asker) == [(2, 2), (1, 1)]);
        let denial = Denial { scope: ScopeId(1), cause: Cause::Calls, used: 1, limit: 1 };
        asker.handle(FromLink::Decided(third, Err(denial)));
        assert_eq!(live(&asker), [(2, 1), (1, 1)]);
    }

    /// R23: a change takes what it needs more of the quotas, keeps what the call has, and gives back what it needs no more.
    #[test]
    fn a_change_keeps_its_places_of_quotas() {
        let mut asker = Asker::new(0, 8, 2, 4);
        asker.handle(FromLink::Lease(NOW + std::time::Duration::from_secs(9)));
        for scope in 0..2 {
            asker.handle(FromLink::Quota(ScopeId(scope), 1, 7));
        }
        let (call, has) = asker.begin(NOW, &charge(Class::Normal, 80)).expect("a place");
        asker.keep(1, call);
        let mut more = charge(Class::Normal, 96);
        more.add(ScopeId(1));
        sent(&mut asker);
        let (step, leased) = asker.change(NOW, 1, &more, &has).expect("places");
        assert!(step == Step::Less && leased.is_all_leased());
        asker.unchanged(1, step, &leased, &has);
        assert_eq!((asker.quotas().place(ScopeId(0)), asker.quotas().place(ScopeId(1))), ((1, 1), (1, 0)));
        let (step, leased) = asker.change(NOW, 1, &more, &has).expect("places");
        asker.changed(1, step, &leased, &has);
        assert_eq!(sent(&mut asker), [ToLink::Fact(call, leased)]);
        let (step, less) = asker.change(NOW, 1, &charge(Class::Normal, 96), &leased).expect("less");
        asker.changed(1, step, &less, &leased);
        assert_eq!((asker.quotas().place(ScopeId(0)), asker.quotas().place(ScopeId(1))), ((1, 1), (1, 0)));
        asker.end(1, &less);
        assert_eq!(asker.quotas().place(ScopeId(0)), (1, 0));
    }

    /// I11.
    #[test]
    fn an_emergency_call_waits_for_nobody_and_is_told() {
        let mut asker = Asker::new(0, 8, 1, 4);
        let wanted = charge(Class::Emergency, 80);
        let (call, _) = asker.begin(NOW, &wanted).expect("at once");
        assert_eq!(sent(&mut asker), [ToLink::Ask(call, wanted)]);
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), None);
        assert_eq!(asker.begin(NOW, &Charge::EMPTY), Some((Call::NONE, Charge::EMPTY)), "what counts nowhere is nobody's business");
    }

    /// Both legs of a pair in one question; what is granted and not used is given back, each by itself.
    #[test]
    fn a_pair_is_one_question() {
        let mut asker = Asker::new(2, 4, 1, 4);
        let wanted = charge(Class::Normal, 0);
        let with = (asker.next(&wanted), wanted);
        for used in [true, false] {
            asker.ask_both(NOW, Ticket(7), &wanted, with);
            let [ToLink::AskBoth((call, _), asked)] = sent(&mut asker)[..] else { panic!("not asked") };
            assert_eq!(asked, with);
            assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), Some((Ticket(7), wanted, Ok(()))));
            if used {
                assert_eq!(asker.take_with(), Some(with));
                assert_eq!(asker.begin(NOW, &wanted), Some((call, wanted)));
            }
            asker.settle();
            assert_eq!(sent(&mut asker), if used { vec![] } else { vec![ToLink::End(with.0), ToLink::End(call)] });
        }
        asker.ask_both(NOW, Ticket(8), &wanted, with);
        let [ToLink::AskBoth((call, _), _)] = sent(&mut asker)[..] else { panic!("not asked") };
        assert!(asker.go_alone(Ticket(8)));
        assert_eq!(sent(&mut asker), [ToLink::Alone(call, wanted), ToLink::Alone(with.0, wanted)]);
        // At the core of the other leg.
        let mut other = Asker::new(0, 4, 1, 4);
        other.accept(with.0, wanted);
        assert_eq!(other.begin(NOW, &wanted), Some((with.0, wanted)));
        other.decline(with.0);
        assert_eq!(sent(&mut other), [ToLink::End(with.0)]);
    }
}
