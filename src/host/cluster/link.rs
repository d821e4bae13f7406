//! The thread that runs a gateway's node: rings from and to the cores on one side, a ZeroMQ socket on the other.
//!
//! It never blocks but in its poll, which a core's message, an order of operators, a message of the central node and the machine's
//! next deadline end. What finds no room in the socket is lost, and counted: the machines mend that.

use super::keys::Keys;
use super::socket;
use super::view::{self, CcbRow, LinkView};
use crate::host::clock::Clock;
use crate::host::ring;
use crate::host::transport::Waker;
use crate::host::transport::wake::Sleeper;
use crate::proto::base::Time;
use crate::proto::cac::asker::{Call, FromLink, ToLink};
use crate::proto::cac::message::{Framed, ToCentral};
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
    /// The calls, or one of them.
    Ccbs(Option<Guid>, Sender<Vec<CcbRow>>),
    /// Other limits.
    Limits(Vec<Limits>),
    /// End.
    Stop,
}

/// What the link thread is made of.
pub struct Link {
    /// The machine.
    pub node: Node,
    /// Node and life, as GUIDs have them.
    pub name: (u32, u32),
    /// The cores, by number.
    pub cores: Vec<CorePlace>,
    /// From the control loop.
    pub orders: Receiver<Order>,
    /// What it sleeps in.
    pub sleeper: Sleeper,
    /// The central node, and with keys its public key with the own pair.
    pub central: SocketAddr,
    /// See `central`.
    pub keys: Option<(Keys, Vec<u8>)>,
    /// The process clock.
    pub clock: Clock,
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

/// A link thread at work.
struct Run {
    link: Link,
    context: zmq::Context,
    connection: Connection,
    unreadable: u64,
    lost: u64,
    asked: BTreeMap<(u64, Leg), Time>,
    times: Histogram<u64>,
    octets: Vec<u8>,
}

impl Link {
    /// Runs until told to end.
    pub fn run(self) {
        let times = Histogram::new_with_bounds(1, 10_000_000, 2).unwrap_or_else(|_| unreachable!("bounds that are right"));
        let (context, octets) = (zmq::Context::new(), Vec::new());
        let mut run =
            Run { link: self, context, connection: Connection::None, unreadable: 0, lost: 0, asked: BTreeMap::new(), times, octets };
        while run.turn() {}
    }
}

impl Run {
    /// Once round; false at the end.
    fn turn(&mut self) -> bool {
        let now = self.link.clock.now();
        let mut worked = self.take_from_cores(now);
        worked |= self.receive(now);
        while let Ok(order) = self.link.orders.try_recv() {
            worked = true;
            match order {
                // Who asked may have gone.
                Order::View(reply) => drop(reply.send(self.view())),
                Order::Ccbs(only, reply) => drop(reply.send(view::ccbs(now, self.link.node.calls(), only))),
                Order::Limits(limits) => self.link.node.set_limits(limits),
                Order::Stop => return false,
            }
        }
        if self.link.node.deadline() <= now {
            worked = true;
            self.step(now, Event::Time);
        }
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
                    ToLink::Change(call, charge) => self.step(now, Event::Change(guid(call), call.leg(), charge)),
                    ToLink::Fact(call, charge) => self.step(now, Event::Fact(guid(call), call.leg(), charge)),
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

    fn answer(&mut self, message: FromLink) {
        let (FromLink::Decided(call, _) | FromLink::Changed(call, _)) = message;
        if let Some(core) = self.link.cores.get_mut(call.core()) {
            core.waiting.push_back(message);
        }
    }

    fn act(&mut self, now: Time, action: Action) {
        let result = |decision| match decision {
            Decision::Admitted(_) => Ok(()),
            Decision::Refused(denial) => Err(denial),
        };
        match action {
            Action::Connect => {
                self.connection = match socket::dealer(&self.context, self.link.central, self.link.keys.as_ref()) {
                    Ok(socket) => Connection::Pending(socket),
                    Err(error) => {
                        tracing::error!("cluster: no socket to {}: {error}", self.link.central);
                        Connection::None
                    }
                };
            }
            Action::Disconnect => self.connection = Connection::None,
            Action::Send(framed) => self.send(&framed),
            Action::Decided(guid, leg, decision) => {
                if let Some(asked) = self.asked.remove(&(guid.number, leg)) {
                    self.times.saturating_record((now.since(asked).as_micros() as u64).max(1));
                }
                self.answer(FromLink::Decided(Call::new(guid.number, leg), result(decision)));
            }
            Action::Changed(guid, leg, decision) => self.answer(FromLink::Changed(Call::new(guid.number, leg), result(decision))),
            Action::Note(note) => self.note(now, note),
        }
    }

    fn note(&mut self, now: Time, note: Note) {
        let central = self.link.central;
        match note {
            Note::Connected(epoch) => {
                self.link.lost_since.store(0, Ordering::Release);
                tracing::info!("cluster: connected to the central node at {central}, epoch {epoch}");
            }
            Note::Disconnected => {
                self.link.lost_since.store(now.0.max(1), Ordering::Release);
                tracing::error!("cluster: the central node at {central} does not answer: calls are admitted by cac.disconnected");
            }
            Note::InSync => tracing::info!("cluster: the central node knows all calls"),
            Note::Refused(why) => tracing::error!("cluster: the central node at {central} refuses this node: {}", why.text()),
            Note::Overflow => tracing::error!("cluster: too much waits for the central node: the session begins anew"),
            Note::Mended(parts) => tracing::warn!("cluster: the central node had other calls in {parts} of 256 parts: told again"),
        }
    }

    fn send(&mut self, framed: &Framed<ToCentral>) {
        let Connection::Up(socket) = &self.connection else { return self.lost += 1 };
        self.octets.clear();
        wire::put_to_central(framed, &mut self.octets);
        if socket.send(&self.octets[..], zmq::DONTWAIT).is_err() {
            self.lost += 1;
        }
    }

    fn receive(&mut self, now: Time) -> bool {
        if let Connection::Pending(socket) = &self.connection {
            // With IMMEDIATE there is room to send only once the connection is there, its keys included.
            if !socket.get_events().is_ok_and(|events| events.contains(zmq::POLLOUT)) {
                return false;
            }
            if let Connection::Pending(socket) = std::mem::replace(&mut self.connection, Connection::None) {
                self.connection = Connection::Up(socket);
            }
            self.step(now, Event::LinkUp);
            return true;
        }
        let mut worked = false;
        for _ in 0..PER_TURN {
            let Connection::Up(socket) = &self.connection else { break };
            let Ok(message) = socket.recv_msg(zmq::DONTWAIT) else { break };
            worked = true;
            match wire::get_to_node(&message) {
                Ok(framed) => self.step(now, Event::Received(framed)),
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
            let until = self.link.node.deadline().since(now).min(SLEEP_MAX);
            // Rounded up: a poll that ends early would go round for nothing.
            let timeout = until.as_micros().div_ceil(1_000) as i64;
            let event = zmq::PollItem::from_fd(sleeper.event().as_raw_fd(), zmq::POLLIN);
            let polled = match &self.connection {
                Connection::None => zmq::poll(&mut [event], timeout),
                Connection::Pending(socket) => zmq::poll(&mut [event, socket.as_poll_item(zmq::POLLOUT)], timeout),
                Connection::Up(socket) => zmq::poll(&mut [event, socket.as_poll_item(zmq::POLLIN)], timeout),
            };
            // Interrupted: the next turn looks again.
            let _ = polled;
        }
        sleeper.awake();
        sleeper.drain();
    }

    fn view(&self) -> LinkView {
        let node = &self.link.node;
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
            calls: node.calls().ledger().len(),
            requests,
            reports,
            granted: counts.granted,
            denied: counts.denied,
            local: counts.local,
            refused: counts.refused,
            overdue: counts.overdue,
            late: counts.late,
            stale: counts.stale,
            unreadable: self.unreadable,
            lost: self.lost,
            syncs: counts.syncs,
            p50_us: self.times.value_at_quantile(0.5),
            p99_us: self.times.value_at_quantile(0.99),
        }
    }
}
