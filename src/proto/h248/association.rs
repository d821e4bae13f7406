//! The association with a controller: registration, failover, handoff, back after a loss (RFC 3525 11.2 to 11.5, 9.2).

use super::event::catalogue::Seen;
use super::table::Termination;
use super::time::stamp;
use super::{Gateway, OWN, VERSION};
use crate::proto::base::{AgentId, Counter, Rng, Time, TransactionId};
use crate::proto::codec::h248::{
    ActionPart, ContextId, Descriptor, MessageId, ReplyPart, ServiceAddress, Services, TerminationId, Token, Verb, Writer,
};
use crate::proto::codec::h248::{Method, Reply};
use crate::proto::plan::{GatewayPlan, Settings};
use std::net::SocketAddr;
use std::time::Duration;

/// How the association stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits to register: after a start, so that not all gateways register at once, or because no controller took it.
    Waiting,
    /// A controller was asked.
    Registering,
    /// A controller is in charge.
    Active,
}

/// What a request of ours is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// To be taken by a controller.
    Register,
    /// To tell of terminations.
    Change,
    /// To tell of an Add while overloaded.
    Overload,
    /// To tell of events of this watch.
    Notify { slot: u32, generation: u32 },
}

impl Purpose {
    /// As one word: what it is in the lowest eight bits, then the generation in 24, then the slot.
    pub fn pack(self) -> u64 {
        match self {
            Purpose::Register => 0,
            Purpose::Change => 1,
            Purpose::Overload => 3,
            Purpose::Notify { slot, generation } => u64::from(slot) << 32 | u64::from(generation & 0xff_ffff) << 8 | 2,
        }
    }

    pub fn unpack(word: u64) -> Purpose {
        match word & 0xff {
            0 => Purpose::Register,
            1 => Purpose::Change,
            3 => Purpose::Overload,
            _ => Purpose::Notify { slot: (word >> 32) as u32, generation: (word >> 8) as u32 & 0xff_ffff },
        }
    }
}

/// What a service change says.
pub(super) struct Change<'a> {
    pub termination: TerminationId<'a>,
    pub method: Method<'static>,
    pub reason: (u16, &'static str),
    pub delay_s: u32,
}

/// See the module's page.
pub(super) struct Association {
    state: State,
    /// When to register, while it waits.
    at: Time,
    /// The controller in charge, or the one that is asked.
    controller: usize,
    /// How many were asked in vain in this round.
    tried: usize,
    /// How often one named another one.
    redirects: usize,
    /// The one that failed: it is asked last.
    dead: Option<usize>,
    /// Who was in charge last.
    last: Option<usize>,
    /// Who goes on being in charge until another one has taken the gateway (ASC-12).
    hands_off: Option<usize>,
    transaction: Option<TransactionId>,
    /// Where its requests go, when the controller has said so (SC-13).
    address: Option<SocketAddr>,
    spoken: bool,
    count: usize,
    /// Since when its state is as it is.
    since: Time,
    /// When anything came from a controller last.
    heard: Option<Time>,
    /// The controller in charge wants to hear when it has said nothing for so long (H.248.14).
    inactivity: Option<Duration>,
    /// When that will be.
    inactive_at: Time,
}

/// The longest wait before a registration, of gateways with a T3 and of smaller ones (ASC-14).
const WAIT_T3: Duration = Duration::from_millis(60);
const WAIT_T1: Duration = Duration::from_millis(2500);

impl Association {
    /// Waits up to the maximum waiting delay.
    pub fn new(now: Time, own: &GatewayPlan, settings: &Settings, rng: &mut Rng) -> Association {
        let longest = settings.timers.max_waiting_delay.unwrap_or(if own.has_t3 { WAIT_T3 } else { WAIT_T1 });
        Association {
            state: State::Waiting,
            at: now + rng.duration(Duration::ZERO, longest),
            controller: 0,
            tried: 0,
            redirects: 0,
            dead: None,
            last: None,
            hands_off: None,
            transaction: None,
            address: None,
            spoken: false,
            count: own.controllers.len(),
            since: now,
            heard: None,
            inactivity: None,
            inactive_at: Time::NEVER,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn controller(&self) -> usize {
        self.controller
    }

    /// Since when a controller is in charge, or none is, and when anything came from one last.
    pub fn times(&self) -> (Time, Option<Time>) {
        (self.since, self.heard)
    }

    /// The version that is spoken (ASC-05): no lower one is there.
    pub fn version(&self) -> u8 {
        VERSION
    }

    /// Whether anything may be sent: not before the first registration (SC-19).
    pub fn may_speak(&self) -> bool {
        self.spoken
    }

    pub fn deadline(&self) -> Time {
        if self.state == State::Waiting { self.at } else { self.inactive_at }
    }

    /// From now on silence of so long is an event; `None`: it is none.
    pub fn expect_activity(&mut self, now: Time, limit: Option<Duration>) {
        self.inactivity = limit;
        self.inactive_at = limit.map_or(Time::NEVER, |limit| now + limit);
    }

    /// The controller in charge has said nothing for as long as it said; it is told once in each such time.
    fn is_inactive(&mut self, now: Time) -> bool {
        let due = now >= self.inactive_at;
        if due {
            self.expect_activity(now, self.inactivity);
        }
        due
    }

    /// Something came from a controller: what waits to register does it now (ASC-14).
    pub fn heard(&mut self, now: Time, controller: u8) {
        self.heard = Some(now);
        if !self.spoken {
            self.at = now;
        }
        if usize::from(controller) == self.controller {
            self.expect_activity(now, self.inactivity);
        }
    }

    /// Whether `controller` is in charge; else which error it gets. `None`: it gets nothing at all.
    pub fn admits(&self, controller: u8) -> Result<(), Option<super::Failure>> {
        let controller = usize::from(controller);
        match self.state {
            State::Active if controller == self.controller => Ok(()),
            State::Active => Err(Some(super::error::UNAUTHORIZED)),
            _ if self.hands_off == Some(controller) => Ok(()),
            _ if self.spoken => Err(Some(super::error::NOT_REGISTERED)),
            _ => Err(None),
        }
    }

    /// The controller to ask when so many were asked in vain: in order, the one that failed last of all (ASC-03, ASC-09).
    fn candidate(&self, tried: usize) -> Option<usize> {
        let others = (0..self.count).filter(|place| Some(*place) != self.dead);
        others.chain(self.dead).nth(tried)
    }

    /// The one that is asked does not take the gateway: the next, or all again after a wait.
    fn ask_next(&mut self, now: Time, wait: Duration) {
        self.tried += 1;
        (self.state, self.transaction, self.at) = (State::Waiting, None, now);
        match self.candidate(self.tried) {
            Some(next) => self.controller = next,
            None => {
                (self.tried, self.redirects) = (0, 0);
                self.controller = self.candidate(0).unwrap_or(0);
                self.at = now + wait;
            }
        }
    }

    /// Asks `controller` now.
    fn ask(&mut self, now: Time, controller: usize) {
        (self.state, self.transaction, self.at, self.controller) = (State::Waiting, None, now, controller);
    }

    fn method(&self) -> (Method<'static>, (u16, &'static str)) {
        match self.last {
            None => (Method::Restart, (901, "Cold Boot")),
            Some(_) if self.hands_off.is_some() => (Method::HandOff, (903, "MGC Directed Change")),
            Some(last) if last == self.controller => (Method::Disconnected, (900, "Service Restored")),
            Some(_) => (Method::Failover, (909, "MGC Impending Failure")),
        }
    }
}

impl Gateway {
    /// Registers when that is due.
    pub(super) fn associate(&mut self, now: Time) {
        if self.association.state != State::Waiting || now < self.association.at {
            return;
        }
        let (method, reason) = self.association.method();
        let controller = self.association.controller;
        let Some(&to) = self.own().controllers.get(controller) else { return };
        let change = Change { termination: TerminationId::Root, method, reason, delay_s: 0 };
        match self.send_change(now, controller, to, Purpose::Register, &change) {
            Some(id) => {
                self.association.transaction = Some(id);
                self.association.state = State::Registering;
                self.association.spoken = true;
                self.counters.add(Counter::H248Registrations);
            }
            None => self.association.at = now + Duration::from_secs(1),
        }
    }

    /// Sends a service change; its identifier.
    pub(super) fn send_change(
        &mut self,
        now: Time,
        controller: usize,
        to: SocketAddr,
        purpose: Purpose,
        change: &Change<'_>,
    ) -> Option<TransactionId> {
        let stamp = stamp(self.plan.epoch_ms, now);
        let (style, own) = (self.style(), self.own().clone());
        let write = |id: TransactionId, buffer: &mut [u8]| {
            let mut w = Writer::new(buffer, style);
            w.header(VERSION, &MessageId::parse(own.message_id.as_bytes())?);
            w.request(id);
            w.context(ContextId::Null);
            w.command(Verb::ServiceChange, change.termination);
            w.begin(Token::Services);
            w.token_item(Token::Method, change.method.token()?);
            if change.termination == TerminationId::Root {
                w.number_item(Token::Version, VERSION.into());
            }
            w.reason(change.reason.0, change.reason.1.as_bytes());
            if change.delay_s > 0 {
                w.number_item(Token::Delay, change.delay_s);
            }
            if change.termination == TerminationId::Root {
                w.name(&stamp);
            }
            (0..4).for_each(|_| w.end());
            w.finish()
        };
        // What is kept for notifications of overload is theirs.
        let sent =
            if self.has_own_room() { self.requester.send(now, AgentId(controller as u8), &[to], purpose.pack(), write).ok() } else { None };
        if sent.is_none() {
            self.counters.add(Counter::OwnFull);
        }
        sent
    }

    /// Whether there is room for a request that is none about overload.
    pub(super) fn has_own_room(&self) -> bool {
        (self.requester.len() as usize).saturating_sub(self.overload.unanswered()) < OWN as usize
    }

    /// Where requests to the controller in charge go; `None`: nobody is.
    pub(super) fn in_charge(&self) -> Option<(usize, SocketAddr)> {
        let association = &self.association;
        let controller = association.hands_off.unwrap_or(association.controller);
        if association.state != State::Active && association.hands_off.is_none() {
            return None;
        }
        let listed = self.own().controllers.get(controller).copied()?;
        Some((controller, association.address.unwrap_or(listed)))
    }

    /// Tells the controller in charge that nothing came from it, when it wants to know (H.248.14).
    pub(super) fn watch_activity(&mut self, now: Time) {
        if self.association.is_inactive(now) {
            self.happened(now, Termination::Root, Seen::Inactivity, b"");
        }
    }

    /// A request of ours was answered.
    pub(super) fn answered(&mut self, now: Time, purpose: Purpose, controller: u8, reply: &Reply<'_>) {
        match purpose {
            Purpose::Notify { slot, generation } => return self.notified(slot, generation),
            Purpose::Overload => return self.overload.ended(),
            Purpose::Register | Purpose::Change => {}
        }
        let mine = self.association.state == State::Registering && self.association.transaction == Some(reply.id);
        if purpose != Purpose::Register || !mine || usize::from(controller) != self.association.controller {
            return;
        }
        match accepted(reply) {
            Some(services) => match services.mgc_id {
                Some(other) => self.redirected(now, &other),
                None => self.registered(now, &services),
            },
            None => {
                self.counters.add(Counter::H248RegistrationsRefused);
                self.ask_next_controller(now);
            }
        }
    }

    fn registered(&mut self, now: Time, services: &Services<'_>) {
        let controller = self.association.controller;
        let Some(&listed) = self.own().controllers.get(controller) else { return };
        // Only another port or address of a listed controller: anything else would let a reply send our requests anywhere.
        let address = match services.address {
            Some(ServiceAddress::Port(port)) => Some(SocketAddr::new(listed.ip(), port)),
            Some(ServiceAddress::Id(id)) => {
                address_of(&id, listed.port()).filter(|to| self.own().controllers.iter().any(|known| known.ip() == to.ip()))
            }
            None => None,
        };
        let association = &mut self.association;
        (association.state, association.tried, association.transaction, association.since) = (State::Active, 0, None, now);
        association.redirects = 0;
        (association.last, association.dead, association.hands_off) = (Some(controller), None, None);
        association.address = address.filter(|to| to.port() != 0);
        let to = association.address.unwrap_or(listed);
        // What is still out goes to the one that is in charge now (UDP-07, ASC-12).
        self.requester.redirect_all(AgentId(controller as u8), &[to]);
        self.tell_states(now);
    }

    /// The controller that was asked names another one (ASC-02, SC-15).
    fn redirected(&mut self, now: Time, other: &MessageId<'_>) {
        self.association.redirects += 1;
        let place = self.controller_named(other);
        match place.filter(|_| self.association.redirects <= self.association.count) {
            Some(place) => self.association.ask(now, place),
            None => {
                self.counters.add(Counter::H248RegistrationsRefused);
                self.ask_next_controller(now);
            }
        }
    }

    /// The listed controller that this identifier names.
    fn controller_named(&self, id: &MessageId<'_>) -> Option<usize> {
        let named = address_of(id, 0)?;
        let fits = |known: &SocketAddr| known.ip() == named.ip() && (named.port() == 0 || named.port() == known.port());
        self.own().controllers.iter().position(fits)
    }

    fn ask_next_controller(&mut self, now: Time) {
        let longest = self.calls.settings.timers.disconnected_initial.max(Duration::from_secs(1));
        let wait = self.rng.duration(longest / 2, longest);
        self.association.ask_next(now, wait);
    }

    /// Nobody answered a request of ours until T-MAX: that controller has failed (ASC-16).
    pub(super) fn unanswered(&mut self, now: Time, purpose: Purpose, controller: u8) {
        match purpose {
            Purpose::Notify { slot, generation } => self.notified(slot, generation),
            Purpose::Overload => self.overload.ended(),
            Purpose::Register | Purpose::Change => {}
        }
        let controller = usize::from(controller);
        match purpose {
            Purpose::Register if self.association.state == State::Registering && controller == self.association.controller => {
                self.ask_next_controller(now);
            }
            _ if self.association.state == State::Active && controller == self.association.controller => {
                self.counters.add(Counter::H248ControllersLost);
                let association = &mut self.association;
                (association.dead, association.tried, association.address, association.since) = (Some(controller), 0, None, now);
                let next = association.candidate(0).unwrap_or(0);
                association.ask(now, next);
            }
            _ => {}
        }
    }

    /// The last stream with a controller has ended. When that one is in charge, the association is lost, and asked for again with it first
    /// (Disconnected, 11.3); a little later, so that one which ends every stream is not asked all the time.
    pub(crate) fn stream_ended(&mut self, now: Time, peer: SocketAddr) {
        let controller = self.association.controller;
        let of_charge = self.own().controllers.get(controller).is_some_and(|known| known.ip() == peer.ip());
        if of_charge && self.association.state == State::Active {
            self.counters.add(Counter::H248ControllersLost);
            (self.association.address, self.association.since) = (None, now);
            let wait = self.rng.duration(Duration::from_millis(100), Duration::from_secs(1));
            self.association.ask(now + wait, controller);
        }
    }

    /// The controller in charge sends us to another one (ASC-11): false when that is none of ours.
    pub(super) fn hand_off(&mut self, now: Time, to: &MessageId<'_>) -> bool {
        let Some(place) = self.controller_named(to) else { return false };
        self.association.hands_off = Some(self.association.controller);
        (self.association.tried, self.association.dead) = (0, None);
        self.association.ask(now, place);
        true
    }
}

/// The service change parameters of the reply to a registration; `None`: it was refused.
fn accepted<'a>(reply: &Reply<'a>) -> Option<Services<'a>> {
    let mut services = None;
    for part in reply.actions() {
        let Ok(ReplyPart::Action(action)) = part else { return None };
        for part in action.parts() {
            let Ok(ActionPart::Command(command)) = part else { return None };
            if command.verb != Verb::ServiceChange {
                return None;
            }
            services.get_or_insert_with(Services::default);
            for descriptor in command.descriptors() {
                match descriptor {
                    Ok((_, Descriptor::Services(given))) => services = Some(given),
                    _ => return None,
                }
            }
        }
    }
    services
}

/// The address in a message identifier; the port is 0 or `port` when there is none.
fn address_of(id: &MessageId<'_>, otherwise: u16) -> Option<SocketAddr> {
    match id {
        MessageId::Ip4(address, port) => Some(SocketAddr::new((*address).into(), port.unwrap_or(otherwise))),
        MessageId::Ip6(address, port) => Some(SocketAddr::new((*address).into(), port.unwrap_or(otherwise))),
        _ => None,
    }
}
