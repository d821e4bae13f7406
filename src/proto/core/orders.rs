//! What the lead core orders over many endpoints, carried out in slices and in the order in which it came: an alarm of a whole gateway
//! must not keep a core from its calls. As long as an order is under way each of its endpoints is either as before or as ordered.
//!
//! A core begins an order at once and looks at no more than [`slice`](crate::proto::plan::Limits::slice) endpoints per turn of its loop,
//! all orders together. The lead core makes them in slices as well, so that no more than a few wait.

use super::Core;
use super::announce::Announcement;
use super::missed::Standing;
use super::outside::{Frames, Outside, Turn};
use crate::proto::aggregate::Pattern;
use crate::proto::base::{AgentId, EndpointRange};
use crate::proto::endpoint::Service;
use crate::proto::trunk::{Cursor, Selection, Topology};
use std::collections::VecDeque;

/// One order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// The service state of these endpoints.
    Service(EndpointRange, Service),
    /// These endpoints are disconnected.
    Disconnected(EndpointRange),
    /// A RestartInProgress is out, answered or withdrawn.
    Announce(Announcement),
    /// The agent named another notified entity.
    NotifiedEntity { pattern: Pattern, agent: AgentId, port: u16 },
    /// What these endpoints are, behind orders that did not come.
    Anew(EndpointRange, Standing),
    /// So many service states came before; it is confirmed when they are applied.
    Settle(u64),
}

/// Those that are not carried out yet.
pub(super) struct Orders {
    queue: VecDeque<Order>,
    /// What is left of the first, once it is begun.
    left: Option<Left>,
    /// Endpoints that may be looked at in this turn.
    budget: u32,
}

#[derive(Clone, Copy)]
enum Left {
    Range(EndpointRange),
    Selection(Selection, Cursor),
}

impl Left {
    fn next(&mut self, topology: &Topology, limit: u32) -> Option<EndpointRange> {
        match self {
            Left::Selection(selection, cursor) => selection.next(topology, cursor, limit),
            Left::Range(range) => {
                let piece = EndpointRange { count: range.count.min(limit), ..*range };
                (range.first, range.count) = (range.first + piece.count, range.count - piece.count);
                (piece.count > 0).then_some(piece)
            }
        }
    }
}

impl Orders {
    pub fn new(slice: u32) -> Orders {
        Orders { queue: VecDeque::with_capacity(64), left: None, budget: slice }
    }

    /// Whether everything is carried out.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Core {
    /// From the lead core: an order, to be carried out behind those before it.
    pub(super) fn order<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, order: Order) {
        self.orders.queue.push_back(order);
        self.work_on_orders(turn);
    }

    /// Goes on with what is ordered, in a new turn of the loop.
    pub(super) fn handle_orders<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        self.orders.budget = self.plan.limits.slice.max(1);
        self.work_on_orders(turn);
    }

    fn work_on_orders<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>) {
        while let Some(order) = self.orders.queue.front().copied() {
            let mut left = match self.orders.left {
                Some(left) => left,
                None => self.begin_order(turn, &order),
            };
            self.orders.left = Some(left);
            let budget = self.orders.budget;
            let none = matches!(left, Left::Range(range) if range.count == 0);
            if budget == 0 && !none {
                return;
            }
            match left.next(&self.plan.topology, budget) {
                Some(piece) => {
                    self.orders.left = Some(left);
                    self.orders.budget = budget.saturating_sub(piece.count);
                    self.apply_order(turn, &order, piece);
                }
                None => {
                    self.orders.queue.pop_front();
                    self.orders.left = None;
                    self.end_order(turn, &order);
                }
            }
        }
    }

    /// What is done before the first endpoint; gives the endpoints.
    fn begin_order<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, order: &Order) -> Left {
        let pattern = match order {
            Order::Service(range, _) | Order::Disconnected(range) | Order::Anew(range, _) => return Left::Range(*range),
            Order::NotifiedEntity { pattern, .. } => Some(*pattern),
            Order::Settle(_) => None,
            Order::Announce(announcement) => self.begin_announcement(turn.now, announcement).then_some(announcement.restart.pattern),
        };
        match pattern {
            Some(pattern) => Left::Selection(pattern.selection(&self.plan.topology), Cursor::default()),
            None => Left::Range(EndpointRange::default()),
        }
    }

    fn apply_order<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, order: &Order, piece: EndpointRange) {
        match order {
            Order::Service(_, service) => self.apply_service(turn, piece, *service),
            Order::Disconnected(_) => self.apply_disconnected(turn.now, piece),
            Order::NotifiedEntity { agent, port, .. } => self.apply_notified_entity(piece, *agent, *port),
            Order::Announce(announcement) => self.apply_announcement(turn.now, announcement, piece),
            Order::Anew(_, standing) => self.apply_anew(turn, piece, standing),
            Order::Settle(_) => {}
        }
    }

    /// What is done behind the last endpoint.
    fn end_order<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, order: &Order) {
        match order {
            Order::Settle(states) => self.confirm_states(*states),
            Order::Announce(announcement) => self.end_announcement(turn, announcement),
            Order::Anew(..) => self.resume_announced(turn),
            Order::Service(..) | Order::Disconnected(_) | Order::NotifiedEntity { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::announce::Stage;
    use super::super::second::{Ring, say, second_core};
    use super::super::{Core, Envelope};
    use super::*;
    use crate::proto::base::{EndpointIndex, Time};
    use crate::proto::endpoint::{Announcement as Told, RestartMethod};
    use std::time::Duration;

    /// In service, disconnected, and what was told of it.
    fn states(core: &Core) -> Vec<(bool, bool, Told)> {
        let range = core.calls.endpoints.ranges().next().unwrap();
        let state = |endpoint: EndpointIndex| core.calls.endpoints.get(endpoint).unwrap();
        range.iter().map(|e| (state(e).service.in_service, state(e).disconnected, state(e).announcement)).collect()
    }

    /// Orders over more endpoints than one turn may look at: each turn looks at a slice of them, the orders do not overtake each other,
    /// and the states are confirmed when they are applied.
    #[test]
    fn orders_over_many_endpoints_are_carried_out_in_slices_and_in_order() {
        let (slice, total) = (5, 48);
        let mut core = second_core(|plan| plan.limits.slice = slice);
        let mut ring = Ring { room: 100, ..Ring::default() };
        let range = core.plan.topology.endpoints();
        let service = |in_service, method| Service { in_service, refusal: 501, method, reason: 0 };
        let orders = [
            say(RestartMethod::Restart, Stage::Sent),
            say(RestartMethod::Restart, Stage::Acknowledged),
            Envelope::Disconnected { range },
            say(RestartMethod::Disconnected, Stage::Sent),
            say(RestartMethod::Disconnected, Stage::Acknowledged),
            Envelope::Disconnected { range },
            Envelope::Service { range, service: service(false, RestartMethod::Forced) },
            Envelope::Service { range, service: service(true, RestartMethod::Restart) },
            Envelope::Settle { states: 2 },
        ];
        let count = orders.len() as u32 - 1;
        orders.into_iter().for_each(|order| ring.tell(&mut core, order));
        let (mut turns, mut seen) = (0, vec![states(&core)]);
        while core.deadline() == Time::ZERO {
            assert!(!ring.told.iter().any(|envelope| matches!(envelope, Envelope::Settled { .. })));
            ring.turn(&mut core, Duration::from_millis(1));
            turns += 1;
            let now = states(&core);
            let changed = now.iter().zip(seen.last().unwrap()).filter(|(new, old)| new != old).count();
            assert!(changed <= slice as usize, "{changed} in one turn");
            seen.push(now);
        }
        assert!(turns >= count * total / slice && turns <= count * (total / slice + 2), "{turns}");
        assert_eq!(seen.pop().unwrap(), vec![(true, false, Told::Waiting); 24]);
        let (out, told) = (Told::Outstanding(0), Told::Done);
        let mut passed: Vec<_> = seen.iter().map(|states| states[7]).collect();
        passed.dedup();
        let expected = [
            (true, false, Told::Waiting),
            (true, false, out),
            (true, false, told),
            (true, true, Told::Waiting),
            (true, true, out),
            (true, false, told),
            (true, true, Told::Waiting),
            (false, true, Told::Waiting),
            (true, false, Told::Waiting),
        ];
        assert_eq!(passed, expected);
        assert!(ring.told.iter().any(|envelope| matches!(envelope, Envelope::Settled { states: 2 })));
    }
}
