//! The part of a core in a cluster: which of its connections count as which call, and the questions that are on their way to the node.
//!
//! The [`Node`](super::node::Node) of a gateway runs on a thread of its own; cores and it talk by rings, and this is the core's end. It
//! decides nothing but this: a call that counts nowhere, and an emergency call, wait for nobody. Every other new call, and every change
//! to more than a call has, is asked for, and the command waits. Whatever was admitted and is not used, or is not used any more, is
//! told, so both ends know the same calls. Bounded: a core has so many questions on their way at most, and one place for each connection.

use super::charge::{Charge, Class, Direction, Leg};
use super::limits::Denial;
use super::share::Ticket;
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
    /// May it be charged so?
    Change(Call, Charge),
    /// It is charged so from now on, whatever anybody says: it was so before, or needs less.
    Fact(Call, Charge),
    /// It is over, or was never begun.
    End(Call),
}

/// From the node to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FromLink {
    /// The answer to [`ToLink::Ask`].
    Decided(Call, Result<(), Denial>),
    /// The answer to [`ToLink::Change`].
    Changed(Call, Result<(), Denial>),
}

/// A question on its way.
#[derive(Clone, Copy, Debug)]
struct Question {
    ticket: Ticket,
    call: Call,
    charge: Charge,
    /// Of a change: what the call has.
    has: Option<Charge>,
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
    out: VecDeque<ToLink>,
}

impl Asker {
    /// That of this core, for so many connections, with so many questions at a time.
    pub fn new(core: u8, connections: u32, questions: u16) -> Asker {
        Asker {
            core,
            last: 0,
            calls: vec![Call::NONE; connections as usize],
            questions: Vec::with_capacity(questions.into()),
            limit: questions.into(),
            granted: None,
            out: VecDeque::new(),
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

    fn next(&mut self, charge: &Charge) -> Call {
        self.last += 1;
        let leg = match charge.direction {
            Direction::Inbound => Leg::Ingress,
            Direction::Outbound => Leg::Egress,
        };
        Call { number: u64::from(self.core) << 56 | self.last, leg }
    }

    /// A new call of `charge`: it counts as this, or must be asked for.
    pub fn begin(&mut self, charge: &Charge) -> Option<Call> {
        if charge.is_empty() {
            return Some(Call::NONE);
        }
        if let Some(granted) = self.granted.take_if(|granted| granted.has.is_none() && granted.charge == *charge) {
            return Some(granted.call);
        }
        if charge.class == Class::Emergency {
            let call = self.next(charge);
            self.out.push_back(ToLink::Ask(call, *charge));
            return Some(call);
        }
        None
    }

    /// The connection in `slot` is to be charged this instead of `has`: it may, and what that is to the node, or must be asked for.
    pub fn change(&mut self, slot: u32, charge: &Charge, has: &Charge) -> Option<Step> {
        let call = self.call(slot);
        if call == Call::NONE {
            return self.begin(charge).map(|call| if call == Call::NONE { Step::Nothing } else { Step::Begins(call) });
        }
        if charge.is_empty() {
            return Some(Step::Ends);
        }
        if self.granted.take_if(|granted| granted.call == call && granted.charge == *charge).is_some() {
            return Some(Step::Told);
        }
        let is_less = charge.kbits <= has.kbits && charge.scopes().all(|scope| has.contains(scope));
        (is_less || charge.class == Class::Emergency).then_some(Step::Less)
    }

    /// A change is made.
    pub fn changed(&mut self, slot: u32, step: Step, charge: &Charge) {
        match step {
            Step::Told | Step::Nothing => {}
            Step::Less => self.out.push_back(ToLink::Fact(self.call(slot), *charge)),
            Step::Begins(call) => self.keep(slot, call),
            Step::Ends => self.end(slot),
        }
    }

    /// A change is not made: the connection has what it had.
    pub fn unchanged(&mut self, slot: u32, step: Step, has: &Charge) {
        match step {
            Step::Told => self.out.push_back(ToLink::Fact(self.call(slot), *has)),
            Step::Begins(call) => self.drop_call(call),
            Step::Less | Step::Ends | Step::Nothing => {}
        }
    }

    /// The connection in `slot` is gone.
    pub fn end(&mut self, slot: u32) {
        let call = self.call(slot);
        self.keep(slot, Call::NONE);
        self.drop_call(call);
    }

    /// A call did not come about.
    pub fn drop_call(&mut self, call: Call) {
        if call != Call::NONE {
            self.out.push_back(ToLink::End(call));
        }
    }

    /// Asks whether a call of `charge` may begin, or, in a `slot` that counts already, be charged so instead of `has`. With too many
    /// questions on their way it is not asked, and whoever waits is told when the time is over.
    pub fn ask(&mut self, ticket: Ticket, charge: &Charge, has: &Charge, slot: Option<u32>) {
        if self.questions.len() >= self.limit {
            return;
        }
        let call = slot.map_or(Call::NONE, |slot| self.call(slot));
        let question = match call {
            Call::NONE => Question { ticket, call: self.next(charge), charge: *charge, has: None },
            call => Question { ticket, call, charge: *charge, has: Some(*has) },
        };
        self.questions.push(question);
        self.out.push_back(match question.has {
            None => ToLink::Ask(question.call, *charge),
            Some(_) => ToLink::Change(question.call, *charge),
        });
    }

    /// The node's answer: whose question it was, what was wanted, and the refusal if it is one. What was granted is to be used at once,
    /// and [`Asker::settle`] called in any case. `None`: nobody asked, as for an emergency call.
    pub fn handle(&mut self, message: FromLink) -> Option<(Ticket, Charge, Result<(), Denial>)> {
        let (call, is_change, result) = match message {
            FromLink::Decided(call, result) => (call, false, result),
            FromLink::Changed(call, result) => (call, true, result),
        };
        let fits = |question: &Question| question.call == call && question.has.is_some() == is_change;
        let question = self.questions.swap_remove(self.questions.iter().position(fits)?);
        if result.is_ok() {
            self.granted = Some(question);
        }
        Some((question.ticket, question.charge, result))
    }

    /// Whoever asked has been told: what was granted and not used is given back.
    pub fn settle(&mut self) {
        match self.granted.take() {
            Some(Question { call, has: None, .. }) => self.drop_call(call),
            // A connection that is gone meanwhile has ended its call.
            Some(Question { call, has: Some(has), .. }) if self.calls.contains(&call) => self.out.push_back(ToLink::Fact(call, has)),
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
        let mut asker = Asker::new(3, 8, 4);
        let wanted = charge(Class::Normal, 80);
        assert_eq!(asker.begin(&wanted), None);
        asker.ask(Ticket(1), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(call, _)] = sent(&mut asker)[..] else { panic!("not asked") };
        assert_eq!((call.core(), call.leg()), (3, Leg::Egress));
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), Some((Ticket(1), wanted, Ok(()))));
        assert_eq!(asker.begin(&wanted), Some(call));
        asker.keep(5, call);
        asker.settle();
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), None, "an answer counts once");
        asker.end(5);
        asker.end(5);
        assert_eq!(sent(&mut asker), [ToLink::End(call)]);
    }

    /// R27: a grant that nobody waits for any more goes back.
    #[test]
    fn what_is_granted_and_not_used_is_given_back() {
        let mut asker = Asker::new(0, 8, 1);
        let wanted = charge(Class::Normal, 80);
        asker.ask(Ticket(1), &wanted, &Charge::EMPTY, None);
        asker.ask(Ticket(2), &wanted, &Charge::EMPTY, None);
        let [ToLink::Ask(call, _)] = sent(&mut asker)[..] else { panic!("asked beyond the limit") };
        asker.handle(FromLink::Decided(call, Ok(())));
        assert_eq!(asker.begin(&charge(Class::Normal, 96)), None, "it was granted for another call");
        asker.settle();
        assert_eq!(sent(&mut asker), [ToLink::End(call)]);
    }

    /// R23: a refused change, and one that is granted and not made, leave the call with what it has.
    #[test]
    fn a_change_is_asked_for_when_it_needs_more() {
        let mut asker = Asker::new(0, 8, 4);
        let (has, more, less) = (charge(Class::Normal, 80), charge(Class::Normal, 96), charge(Class::Normal, 64));
        let call = Call::new(9, Leg::Egress);
        asker.keep(1, call);
        assert_eq!(asker.change(1, &less, &has), Some(Step::Less));
        asker.changed(1, Step::Less, &less);
        assert_eq!(sent(&mut asker), [ToLink::Fact(call, less)]);
        assert_eq!(asker.change(1, &more, &has), None);
        asker.ask(Ticket(1), &more, &has, Some(1));
        assert_eq!(sent(&mut asker), [ToLink::Change(call, more)]);
        let denial = Denial { scope: ScopeId(0), cause: Cause::Bandwidth, used: 1, limit: 1 };
        assert_eq!(asker.handle(FromLink::Changed(call, Err(denial))), Some((Ticket(1), more, Err(denial))));
        asker.settle();
        assert_eq!(sent(&mut asker), []);
        asker.ask(Ticket(2), &more, &has, Some(1));
        asker.handle(FromLink::Changed(call, Ok(())));
        assert_eq!(asker.change(1, &more, &has), Some(Step::Told));
        asker.settle();
        asker.unchanged(1, Step::Told, &has);
        assert_eq!(sent(&mut asker), [ToLink::Change(call, more), ToLink::Fact(call, has)]);
    }

    /// I11.
    #[test]
    fn an_emergency_call_waits_for_nobody_and_is_told() {
        let mut asker = Asker::new(0, 8, 4);
        let wanted = charge(Class::Emergency, 80);
        let call = asker.begin(&wanted).expect("at once");
        assert_eq!(sent(&mut asker), [ToLink::Ask(call, wanted)]);
        assert_eq!(asker.handle(FromLink::Decided(call, Ok(()))), None);
        assert_eq!(asker.begin(&Charge::EMPTY), Some(Call::NONE), "what counts nowhere is nobody's business");
    }
}
