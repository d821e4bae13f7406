//! The thread that runs a gateway's node: rings from and to the cores on one side, a ZeroMQ socket on the other.
//!
//! It never blocks but in its poll, which a core's message, an order of operators, a message of the central node and the machine's
//! next deadline end. What finds no room in the socket is lost, and counted: the machines mend that.

use super::keys::Keys;
use super::said::Said;
use super::saved::{ENDS_PER_STEP, Restored};
use super::socket;
use super::view::{self, Cursor, LinkView, Page, QuotaRow, Which};
use crate::host::clock::Clock;
use crate::host::ring;
use crate::host::transport::Waker;
use crate::host::transport::wake::Sleeper;
use crate::proto::base::Time;
use crate::proto::cac::asker::{Call, FromLink, ToLink};
use crate::proto::cac::message::{Framed, Side, ToCentral};
use crate::proto::cac::node::{Action, Decision, Event, Node, Note};
use crate::proto::cac::wire;
use crate::proto::cac::{Guid, Leg, Limits};
use crossbeam::channel::{Receiver, Sender};
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tracing::Level;

/// Messages of one core taken per turn, and of the central node.
const PER_TURN: usize = 256;
/// The longest sleep, so that an end asked for is never far.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// A core, seen from the link.
pub struct CorePlace {
    /// From it.
    pub from: ring::Receiver<ToLink>,
    /// To it.
    pub to: ring::Sender<FromLink>,
    /// Ends its sleep.
    pub waker: Waker,
    /// What found no room in the ring.
    pub waiting: VecDeque<FromLink>,
}

/// What the control loop wants of the link.
pub enum Order {
    /// How it is.
    View(Sender<LinkView>),
    /// Some of the calls.
    Page(Which, Option<Cursor>, Sender<Page>),
    /// Calls of the last life, or one of them, are over: how many legs.
    Release(Option<Guid>, Sender<usize>),
    /// Other limits.
    Limits(Vec<Limits>),
    /// End, with a word to the central nodes; tell when it is said.
    Leave(Sender<()>),
    /// End.
    Stop,
}

/// What the link thread is made of.
pub struct Link {
    /// The machine.
    pub node: Node,
    /// Calls of the last life.
    pub restored: Restored,
    /// Node and life, as GUIDs have them.
    pub name: (u32, u32),
    /// The cores, by number.
    pub cores: Vec<CorePlace>,
    /// From the control loop.
    pub orders: Receiver<Order>,
    /// What it sleeps in.
    pub sleeper: Sleeper,
    /// The central nodes by [`Side`], and with keys their public key with the own pair.
    pub centrals: Vec<SocketAddr>,
    /// See `centrals`.
    pub keys: Option<(Keys, Vec<u8>)>,
    /// The process clock.
    pub clock: Clock,
    /// What is to be logged.
    pub said: Said,
    /// When contact was lost, in nanoseconds of the clock; 0 while there is contact.
    pub lost_since: Arc<AtomicU64>,
}

/// The connection to the central node.
enum Connection {
    None,
    /// It is being made.
    Pending(zmq::Socket),
    Up(zmq::Socket),
}

/// Queues a message for a core. Of all the leases that wait for one that stands still the last one counts.
fn queue(waiting: &mut VecDeque<FromLink>, message: FromLink) {
    if let FromLink::Lease(_) = message {
        waiting.retain(|message| !matches!(message, FromLink::Lease(_)));
    }
    waiting.push_back(message);
}

/// A link thread at work.
struct Run {
    link: Link,
    context: zmq::Context,
    /// By [`Side`].
    connections: Vec<Connection>,
    unreadable: u64,
    lost: u64,
    asked: BTreeMap<(u64, Leg), Time>,
    times: Histogram<u64>,
    /// All of them together, in microseconds.
    times_us: u64,
    octets: Vec<u8>,
    /// Told when the last word is said.
    done: Option<Sender<()>>,
}

impl Link {
    /// Runs until told to end.
    pub fn run(self) {
        let times = Histogram::new_with_bounds(1, 10_000_000, 2).unwrap_or_else(|_| unreachable!("bounds that are right"));
        let (context, octets) = (zmq::Context::new(), Vec::new());
        let connections = self.centrals.iter().map(|_| Connection::None).collect();
        let mut run = Run {
            link: self,
            context,
            connections,
            unreadable: 0,
            lost: 0,
            asked: BTreeMap::new(),
            times,
            times_us: 0,
            octets,
            done: None,
        };
        while run.turn() {}
        // Closed first: what was said last is sent while the context ends.
        let done = run.done.take();
        drop(run);
        if let Some(done) = done {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }
}

impl Run {
    /// Once round; false at the end.
    fn turn(&mut self) -> bool {
        let now = self.link.clock.now();
        let mut worked = self.take_from_cores(now);
        (0..self.connections.len()).for_each(|side| worked |= self.receive(now, side));
        while let Ok(order) = self.link.orders.try_recv() {
            worked = true;
            match order {
                // Who asked may have gone.
                Order::View(reply) => drop(reply.send(self.view(now))),
                Order::Page(which, after, reply) => drop(reply.send(view::page(now, self.link.node.calls(), which, after))),
                Order::Release(only, reply) => drop(reply.send(self.release(now, only))),
                Order::Limits(limits) => self.link.node.set_limits(limits),
                Order::Leave(done) => {
                    self.step(now, Event::Leave);
                    self.done = Some(done);
                    return false;
                }
                Order::Stop => return false,
            }
        }
        if self.link.node.deadline() <= now {
            worked = true;
            self.step(now, Event::Time);
        }
        worked |= self.end_restored(now);
        worked |= self.give_to_cores();
        if !worked {
            self.sleep(now);
        }
        true
    }

    fn step(&mut self, now: Time, event: Event) {
        self.link.node.step(now, event);
        while let Some(action) = self.link.node.poll() {
            self.act(now, action);
        }
    }

    /// Ends some calls of the last life whose time is over.
    fn end_restored(&mut self, now: Time) -> bool {
        let ends: Vec<Event> = (0..ENDS_PER_STEP).map_while(|_| self.link.restored.next_end(now, &self.link.node)).collect();
        let worked = !ends.is_empty();
        ends.into_iter().for_each(|event| self.step(now, event));
        worked
    }

    fn release(&mut self, now: Time, only: Option<Guid>) -> usize {
        let Some(guid) = only else { return self.link.restored.end_all(now) };
        let legs = self.link.restored.take(guid);
        legs.iter().for_each(|&(guid, leg)| self.step(now, Event::End(guid, leg)));
        legs.len()
    }

    fn take_from_cores(&mut self, now: Time) -> bool {
        let mut worked = false;
        for place in 0..self.link.cores.len() {
            for _ in 0..PER_TURN {
                let Some(message) = self.link.cores.get_mut(place).and_then(|core| core.from.receive()) else { break };
                worked = true;
                let (sc, incarnation) = self.link.name;
                let guid = |call: Call| Guid { sc, incarnation, number: call.number() };
                match message {
                    ToLink::Ask(call, charge) => {
                        self.asked.insert((call.number(), call.leg()), now);
                        self.step(now, Event::Ask(guid(call), call.leg(), charge));
                    }
                    ToLink::AskBoth((call, charge), (other, with)) => {
                        self.asked.insert((call.number(), call.leg()), now);
                        self.step(now, Event::AskBoth((guid(call), call.leg(), charge), (guid(other), other.leg(), with)));
                    }
                    ToLink::Change(call, charge) => self.step(now, Event::Change(guid(call), call.leg(), charge)),
                    ToLink::Fact(call, charge) => self.step(now, Event::Fact(guid(call), call.leg(), charge)),
                    ToLink::Took(call, charge) => self.step(now, Event::Took(guid(call), call.leg(), charge)),
                    ToLink::Alone(call, charge) => self.step(now, Event::Alone(guid(call), call.leg(), charge)),
                    ToLink::Keeps(scope, number) => self.step(now, Event::Keeps(place as u8, scope, number)),
                    ToLink::End(call) => self.step(now, Event::End(guid(call), call.leg())),
                }
            }
        }
        worked
    }

    fn give_to_cores(&mut self) -> bool {
        let mut worked = false;
        for core in &mut self.link.cores {
            let mut given = false;
            while let Some(&message) = core.waiting.front() {
                if core.to.send(message).is_err() {
                    break;
                }
                core.waiting.pop_front();
                given = true;
            }
            if given {
                worked = true;
                core.waker.wake();
            }
        }
        worked
    }

    fn tell(&mut self, core: usize, message: FromLink) {
        if let Some(core) = self.link.cores.get_mut(core) {
            queue(&mut core.waiting, message);
        }
    }

    fn act(&mut self, now: Time, action: Action) {
        let result = |decision| match decision {
            Decision::Admitted(_) => Ok(()),
            Decision::Refused(denial) => Err(denial),
        };
        match action {
            Action::Connect(side) => {
                let Some(&to) = self.link.centrals.get(usize::from(side.0)) else { return };
                let connection = match socket::dealer(&self.context, to, self.link.keys.as_ref()) {
                    Ok(socket) => Connection::Pending(socket),
                    Err(error) => {
                        self.link.said.say(Level::ERROR, format!("cluster: no socket to {to}: {error}"));
                        Connection::None
                    }
                };
                self.connect(side, connection);
            }
            Action::Disconnect(side) => self.connect(side, Connection::None),
            Action::Send(side, framed) => self.send(side, &framed),
            Action::Lent(guid, leg, charge) => {
                let call = Call::new(guid.number, leg);
                self.asked.remove(&(guid.number, leg));
                self.tell(call.core(), FromLink::Lent(call, charge));
            }
            Action::Decided(guid, leg, decision) => {
                if let Some(asked) = self.asked.remove(&(guid.number, leg)) {
                    let took = (now.since(asked).as_micros() as u64).max(1);
                    self.times.saturating_record(took);
                    self.times_us += took;
                }
                let call = Call::new(guid.number, leg);
                self.tell(call.core(), FromLink::Decided(call, result(decision)));
            }
            Action::Changed(guid, leg, decision) => {
                let call = Call::new(guid.number, leg);
                self.tell(call.core(), FromLink::Changed(call, result(decision)));
            }
            Action::Quota(core, scope, quota, number) => self.tell(core.into(), FromLink::Quota(scope, quota, number)),
            Action::Lease(until) => (0..self.link.cores.len()).for_each(|core| self.tell(core, FromLink::Lease(until))),
            Action::Note(note) => self.note(now, note),
        }
    }

    fn connect(&mut self, side: Side, connection: Connection) {
        if let Some(place) = self.connections.get_mut(usize::from(side.0)) {
            *place = connection;
        }
    }

    fn note(&mut self, now: Time, note: Note) {
        let (Note::Connected(side, _)
        | Note::Disconnected(side)
        | Note::Copying(side)
        | Note::InSync(side)
        | Note::Refused(side, _)
        | Note::Overflow(side)
        | Note::OtherLeader(side)
        | Note::Mended(side, _)) = note;
        let at = self.link.centrals.get(usize::from(side.0)).map_or(String::new(), SocketAddr::to_string);
        let (level, words) = match note {
            Note::Connected(_, epoch) => {
                self.link.lost_since.store(0, Ordering::Release);
                (Level::INFO, format!("connected to the central node at {at}, epoch {epoch}"))
            }
            Note::Disconnected(_) => {
                self.link.lost_since.store(now.0.max(1), Ordering::Release);
                (Level::ERROR, format!("the central node at {at} does not answer: calls are admitted by cac.disconnected"))
            }
            Note::Copying(_) => (Level::INFO, format!("connected to the standby at {at}")),
            Note::InSync(_) => (Level::INFO, format!("the central node at {at} knows all calls")),
            Note::Refused(_, why) => (Level::ERROR, format!("the central node at {at} refuses this node: {}", why.text())),
            Note::Overflow(_) => (Level::ERROR, format!("too much waits for the central node at {at}: the session begins anew")),
            Note::OtherLeader(_) => (
                Level::ERROR,
                format!(
                    "the central node at {at} says it leads, in the epoch of another one or in another cac.cluster: it is not listened to"
                ),
            ),
            Note::Mended(_, parts) => {
                (Level::WARN, format!("the central node at {at} had other calls in {parts} of 256 parts: told again"))
            }
        };
        self.link.said.say(level, format!("cluster: {words}"));
    }

    fn send(&mut self, side: Side, framed: &Framed<ToCentral>) {
        let Some(Connection::Up(socket)) = self.connections.get(usize::from(side.0)) else { return self.lost += 1 };
        self.octets.clear();
        wire::put_to_central(framed, &mut self.octets);
        if socket.send(&self.octets[..], zmq::DONTWAIT).is_err() {
            self.lost += 1;
        }
    }

    fn receive(&mut self, now: Time, side: usize) -> bool {
        let name = Side(side as u8);
        let Some(connection) = self.connections.get_mut(side) else { return false };
        if let Connection::Pending(socket) = connection {
            // With IMMEDIATE there is room to send only once the connection is there, its keys included.
            if !socket.get_events().is_ok_and(|events| events.contains(zmq::POLLOUT)) {
                return false;
            }
            if let Connection::Pending(socket) = std::mem::replace(connection, Connection::None) {
                *connection = Connection::Up(socket);
            }
            self.step(now, Event::LinkUp(name));
            return true;
        }
        let mut worked = false;
        for _ in 0..PER_TURN {
            let Some(Connection::Up(socket)) = self.connections.get(side) else { break };
            let Ok(message) = socket.recv_msg(zmq::DONTWAIT) else { break };
            worked = true;
            match wire::get_to_node(&message) {
                Ok(framed) => self.step(now, Event::Received(name, framed)),
                Err(_) => self.unreadable += 1,
            }
        }
        worked
    }

    fn sleep(&self, now: Time) {
        let sleeper = &self.link.sleeper;
        sleeper.announce();
        let idle = self.link.orders.is_empty() && self.link.cores.iter().all(|core| core.from.is_empty());
        if idle {
            let until = self.link.node.deadline().min(self.link.restored.deadline(&self.link.node)).since(now).min(SLEEP_MAX);
            // Rounded up: a poll that ends early would go round for nothing.
            let timeout = until.as_micros().div_ceil(1_000) as i64;
            let event = zmq::PollItem::from_fd(sleeper.event().as_raw_fd(), zmq::POLLIN);
            let mut items = vec![event];
            items.extend(self.connections.iter().filter_map(|connection| match connection {
                Connection::None => None,
                Connection::Pending(socket) => Some(socket.as_poll_item(zmq::POLLOUT)),
                Connection::Up(socket) => Some(socket.as_poll_item(zmq::POLLIN)),
            }));
            let polled = zmq::poll(&mut items, timeout);
            // Interrupted: the next turn looks again.
            let _ = polled;
        }
        sleeper.awake();
        sleeper.drain();
    }

    fn view(&self, now: Time) -> LinkView {
        let node = &self.link.node;
        let (until, quotas) = node.quotas();
        let (counts, (has_session, epoch), (requests, reports)) = (node.counts(), node.contact(), node.queued());
        LinkView {
            node: self.link.name.0,
            incarnation: self.link.name.1,
            state: match (node.is_in_sync(), has_session) {
                (true, _) => "in-sync",
                (false, true) => "syncing",
                (false, false) => "lost",
            }
            .into(),
            epoch,
            central: node.leads().and_then(|side| self.link.centrals.get(usize::from(side.0))).map(SocketAddr::to_string),
            standby: (self.link.centrals.len() > 1).then(|| if node.is_copied() { "in-sync" } else { "lost" }.into()),
            calls: node.calls().ledger().len(),
            restored: self.link.restored.left(),
            requests,
            reports,
            granted: counts.granted,
            denied: counts.denied,
            leased: counts.leased,
            local: counts.local,
            local_by: view::counts_by(&counts.local_by),
            refused: counts.refused,
            overdue: counts.overdue,
            late: counts.late,
            stale: counts.stale,
            unreadable: self.unreadable,
            lost: self.lost,
            syncs: counts.syncs,
            busy: counts.busy,
            mended: counts.mended,
            synced: counts.synced.0,
            sync_us: counts.synced.1.as_micros() as u64,
            p50_us: self.times.value_at_quantile(0.5),
            p99_us: self.times.value_at_quantile(0.99),
            decisions: view::histogram(&self.times),
            decisions_us: self.times_us,
            lease_ms: Some(until.since(now).as_millis() as u64).filter(|left| *left > 0),
            quotas: quotas.map(|view| QuotaRow::at(node.calls().tree(), &view)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::cac::ScopeId;

    /// A core that stands still asks for nothing, and its quotas are not changed without end: so leases are all that could pile up.
    #[test]
    fn what_waits_for_a_core_that_stands_still_does_not_grow() {
        let (mut waiting, quota) = (VecDeque::new(), FromLink::Quota(ScopeId(0), 3, 7));
        queue(&mut waiting, quota);
        (1..100).for_each(|second| queue(&mut waiting, FromLink::Lease(Time::from_millis(1_000 * second))));
        assert_eq!(waiting, [quota, FromLink::Lease(Time::from_millis(99_000))]);
    }
}
