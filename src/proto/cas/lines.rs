//! The machines of one core's CAS channels and continuity tests, in front of its card: a card to the rest of the core.

use super::continuity::Continuity;
use super::pbx::Pbx;
use super::trunk::{NO_CIRCUIT, PROTOCOL, Trunk};
use super::{Fault, Order, Output, Outputs, Signalling, State, Times};
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::codec::mgcp::ParameterList;
use crate::proto::package::parameters::{Digits, setup};
use crate::proto::package::{ChannelKind, EventId, HookRule, PackageId, find_item};
use crate::proto::timer::TimerWheel;
use crate::proto::trunk::CarrierView;
use crate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, DigitKind, EventText, Facility, Hook, Indication, LineInput, LineOrder, Measure, Media,
    MediaAddress, MediaReport, Seizer, Sounds, Srtp, Trouble,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The resolution of timers.
const TICK: Duration = Duration::from_millis(5);
/// What one call of [`Card::poll`] takes from the card below before it gives the core its turn.
const POLL_MAX: u32 = 256;

/// The machine of one channel.
enum Machine {
    Trunk(Trunk),
    Pbx(Pbx),
}

/// One channel.
struct Line {
    endpoint: EndpointIndex,
    signalling: Signalling,
    machine: Machine,
}

/// See the page of [`super`].
pub struct Lines {
    card: Box<dyn Card + Send>,
    /// In the order of their endpoints.
    lines: Box<[Line]>,
    wheel: TimerWheel,
    times: Times,
    continuity: Continuity,
    queue: VecDeque<Indication>,
}

impl Lines {
    /// In front of `card`; `channels` are those of the core in the order of their endpoints, with how they signal.
    pub fn new(card: Box<dyn Card + Send>, channels: impl Iterator<Item = (EndpointIndex, Signalling)>, times: Times, now: Time) -> Lines {
        let line = |(endpoint, signalling): (EndpointIndex, Signalling)| {
            let machine = match signalling.kind {
                ChannelKind::PbxFxs => Machine::Pbx(Pbx::new(signalling)),
                _ => Machine::Trunk(Trunk::new(signalling)),
            };
            Line { endpoint, signalling, machine }
        };
        let lines: Box<[Line]> = channels.filter(|(_, signalling)| signalling.kind.has_hook()).map(line).collect();
        let wheel = TimerWheel::new(lines.len() as u32, TICK, now);
        Lines { card, lines, wheel, times, continuity: Continuity::default(), queue: VecDeque::new() }
    }

    fn place(&self, endpoint: EndpointIndex) -> Option<usize> {
        self.lines.binary_search_by_key(&endpoint, |line| line.endpoint).ok()
    }

    fn line(&self, endpoint: EndpointIndex) -> Option<&Line> {
        self.lines.get(self.place(endpoint)?)
    }

    /// Lets the machine at `place` do something, passes on what it says, and sets its timer.
    fn run<T>(&mut self, now: Time, place: usize, act: impl FnOnce(&mut Machine, &Times, Outputs<'_>) -> T) -> Option<T> {
        let Lines { card, lines, wheel, times, queue, .. } = self;
        let line = lines.get_mut(place)?;
        let (endpoint, signalling) = (line.endpoint, line.signalling);
        let before = line.machine.state() == State::Lockout;
        let result = act(&mut line.machine, times, &mut |output| carry_out(card.as_mut(), queue, now, (endpoint, signalling), output));
        let locked_out = line.machine.state() == State::Lockout;
        if locked_out != before {
            queue.push_back(Indication::Trouble { endpoint, trouble: Trouble::Lockout(locked_out) });
        }
        match line.machine.deadline() {
            Time::NEVER => {
                wheel.cancel(place as u32, 0);
            }
            at => {
                wheel.schedule(place as u32, 0, at);
            }
        }
        Some(result)
    }

    fn handle_line(&mut self, now: Time, endpoint: EndpointIndex, input: LineInput) {
        if let LineInput::Tone { tone, on } = input {
            return self.continuity.handle_tone(now, endpoint, tone, on, self.card.as_mut(), &mut self.queue);
        }
        if let LineInput::KeyUp(key) = input {
            return self.queue.push_back(Indication::KeyUp { endpoint, key });
        }
        if let LineInput::Digit(kind, symbol) = input
            && kind != DigitKind::Mf
            && let Some(event) = find_item(PackageId::D, &[symbol])
        {
            self.queue.push_back(Indication::Event { endpoint, connection: None, event, parameters: EventText::NONE });
            if kind == DigitKind::Pulse {
                // Nothing is held there.
                self.queue.push_back(Indication::KeyUp { endpoint, key: symbol });
            }
        }
        let Some(place) = self.place(endpoint) else { return };
        self.run(now, place, |machine, times, out| match machine {
            Machine::Trunk(trunk) => match input {
                LineInput::Hook(hook) => trunk.handle_hook(now, hook, times, out),
                LineInput::Digit(kind, symbol) => trunk.handle_digit(now, kind, symbol, times, out),
                LineInput::Sent { failed } => trunk.handle_sent(now, failed, times, out),
                LineInput::Tone { .. } | LineInput::KeyUp(_) => {}
            },
            Machine::Pbx(pbx) => {
                if let LineInput::Hook(hook) = input {
                    pbx.handle_hook(now, hook, times, out);
                }
            }
        });
    }

    /// Runs the timers that are due at `now`.
    fn handle_time(&mut self, now: Time) {
        let mut budget = POLL_MAX;
        while let Some(expired) = self.wheel.advance(now, &mut budget) {
            self.run(now, expired.key as usize, |machine, times, out| match machine {
                Machine::Trunk(trunk) => trunk.handle_time(now, times, out),
                Machine::Pbx(pbx) => pbx.handle_time(now, out),
            });
        }
        self.continuity.handle_time(now, &mut self.queue);
    }
}

/// Does what a machine says.
fn carry_out(
    card: &mut dyn Card,
    queue: &mut VecDeque<Indication>,
    now: Time,
    (endpoint, signalling): (EndpointIndex, Signalling),
    output: Output,
) {
    let kind = signalling.digits();
    match output {
        Output::Show(state) => card.order_line(now, endpoint, &LineOrder::Show(state)),
        Output::Pulse(state, length) => card.order_line(now, endpoint, &LineOrder::Pulse(state, length)),
        Output::Send(digits) => card.order_line(now, endpoint, &LineOrder::Send(kind, digits)),
        Output::StopSending => card.order_line(now, endpoint, &LineOrder::StopSending),
        Output::Listen(on) => card.order_line(now, endpoint, &LineOrder::Listen(on.then_some(kind))),
        Output::Event(name, parameters) => {
            let mut push = |package, name: &str, parameters| {
                if let Some(event) = find_item(package, name.as_bytes()) {
                    queue.push_back(Indication::Event { endpoint, connection: None, event, parameters });
                }
            };
            push(signalling.package(), name, parameters);
            if name == "ans" {
                // The old name of it, for agents that ask for that (T.01, CAS-19).
                push(PackageId::T, "as", EventText::NONE);
            }
            let trouble = match (name, parameters.as_bytes()) {
                ("rel", NO_CIRCUIT) => Some(Trouble::Glare),
                ("rel", PROTOCOL) => Some(Trouble::Fault),
                _ => None,
            };
            queue.extend(trouble.map(|trouble| Indication::Trouble { endpoint, trouble }));
        }
        Output::Ended { signal, failed } => {
            if let Some(signal) = find_item(signalling.package(), signal.as_bytes()) {
                queue.push_back(Indication::SignalEnded { endpoint, connection: None, signal, failed });
            }
        }
    }
}

/// What a signal tells the machine of its channel; `None`: a tone, which the card plays.
fn order(signalling: Signalling, signal: EventId, parameters: &[u8]) -> Option<Result<Order, CardFault>> {
    let name = signal.item().name;
    if signal.package() == PackageId::T {
        return match name {
            "as" => Some(Ok(Order::Answer)),
            "bl" => Some(Ok(if parameters.contains(&b'-') { Order::Release } else { Order::Block })),
            _ => None,
        };
    }
    if signal.package() != signalling.package() {
        return None;
    }
    let keys = signalling.kind == ChannelKind::CasDtmf;
    let list = || ParameterList::parse(parameters).map_err(|_| CardFault::Broken);
    Some(Ok(match name {
        "ans" => Order::Answer,
        "bl" => Order::Block,
        "rel" => Order::Release,
        "res" => Order::Resume,
        "rlc" => Order::ReleaseComplete,
        "sus" => Order::Suspend,
        "awk" => Order::AcknowledgeWink,
        "cwk" => Order::ContinueWink,
        "rcl" => Order::Recall,
        "rg" => Order::Ring,
        "sup" => match list().and_then(|list| setup(list, keys).map_err(|_| CardFault::Broken)) {
            Ok(setup) => Order::Setup(setup),
            Err(fault) => return Some(Err(fault)),
        },
        "inf" => match list().and_then(|list| Digits::mf(list).map_err(|_| CardFault::Broken)) {
            Ok(digits) => Order::Digits(digits),
            Err(fault) => return Some(Err(fault)),
        },
        _ => return None,
    }))
}

impl From<Fault> for CardFault {
    fn from(fault: Fault) -> CardFault {
        match fault {
            Fault::OffHook => CardFault::OffHook,
            Fault::State => CardFault::State,
        }
    }
}

impl Machine {
    fn deadline(&self) -> Time {
        match self {
            Machine::Trunk(trunk) => trunk.deadline(),
            Machine::Pbx(pbx) => pbx.deadline(),
        }
    }

    fn state(&self) -> State {
        match self {
            Machine::Trunk(trunk) => trunk.state(),
            Machine::Pbx(pbx) => pbx.state(),
        }
    }

    fn limit(&self) -> Time {
        match self {
            Machine::Trunk(trunk) => trunk.limit(),
            Machine::Pbx(pbx) => pbx.limit(),
        }
    }

    fn far_hook(&self) -> Hook {
        match self {
            Machine::Trunk(trunk) => trunk.far_hook(),
            Machine::Pbx(pbx) => pbx.far_hook(),
        }
    }

    /// Whether the hook is as an event or a signal needs it (EVT-05).
    fn check_hook(&self, rule: HookRule) -> Result<(), CardFault> {
        let on_hook = match self {
            Machine::Trunk(trunk) => trunk.is_on_hook(),
            Machine::Pbx(pbx) => pbx.is_on_hook(),
        };
        match rule {
            HookRule::OnHook if self.far_hook() == Hook::Off => Err(CardFault::OffHook),
            HookRule::OffHook if on_hook => Err(CardFault::OnHook),
            _ => Ok(()),
        }
    }

    fn check(&self, order: &Order) -> Result<(), CardFault> {
        let result = match self {
            Machine::Trunk(trunk) => trunk.check(order),
            Machine::Pbx(pbx) => pbx.check(order),
        };
        result.map_err(CardFault::from)
    }
}

impl Card for Lines {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        self.card.open(now, endpoint, connection, media)
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        self.card.modify(now, endpoint, connection, media)
    }

    fn transfer(&mut self, now: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        self.card.transfer(now, from, to, connection)
    }

    fn half_gone(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, at: SocketAddr) {
        self.card.half_gone(now, endpoint, connection, at);
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        self.card.close(now, endpoint, connection)
    }

    fn report(&self, now: Time, connection: u32) -> MediaReport {
        self.card.report(now, connection)
    }

    fn srtp(&self, endpoint: EndpointIndex) -> Srtp {
        self.card.srtp(endpoint)
    }

    fn draw_key(&mut self) -> Option<MasterKey> {
        self.card.draw_key()
    }

    fn protect(&mut self, endpoint: EndpointIndex, connection: u32, keys: &MediaKeys) {
        self.card.protect(endpoint, connection, keys);
    }

    fn listen_for(&mut self, now: Time, endpoint: EndpointIndex, sounds: Sounds) {
        self.card.listen_for(now, endpoint, sounds);
    }

    fn measure(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, what: Measure) {
        self.card.measure(now, endpoint, connection, what);
    }

    fn check_event(&self, endpoint: EndpointIndex, event: EventId) -> Result<(), CardFault> {
        match (self.line(endpoint), event.event()) {
            (Some(line), Some(traits)) => line.machine.check_hook(traits.hook),
            _ => self.card.check_event(endpoint, event),
        }
    }

    fn check_signal(&self, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId, parameters: &[u8]) -> Result<(), CardFault> {
        if let (Some(line), Some(traits), None) = (self.line(endpoint), signal.signal(), connection) {
            line.machine.check_hook(traits.hook)?;
            if let Some(order) = order(line.signalling, signal, parameters) {
                return line.machine.check(&order?);
            }
        }
        // A channel without signalling has no hook to answer or block with.
        if self.line(endpoint).is_none() && signal.package() == PackageId::T && matches!(signal.item().name, "as" | "bl") {
            return Err(CardFault::State);
        }
        self.card.check_signal(endpoint, connection, signal, parameters)
    }

    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        if let (Some(place), None) = (self.place(endpoint), connection)
            && let Some(order) = self.lines.get(place).and_then(|line| order(line.signalling, signal, parameters))
        {
            let order = order?;
            let done = self.run(now, place, |machine, times, out| match machine {
                Machine::Trunk(trunk) => trunk.handle_order(now, &order, times, out),
                Machine::Pbx(pbx) => pbx.handle_order(now, &order, times, out),
            });
            return Ok(done.unwrap_or(Err(Fault::State))?);
        }
        self.card.start_signal(now, endpoint, connection, signal, parameters)?;
        if connection.is_none() {
            self.continuity.begin(endpoint, signal);
        }
        Ok(())
    }

    /// A set-up is not broken off: half a number would leave the far end waiting for the rest, so its digits go on.
    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        if let (Some(place), None) = (self.place(endpoint), connection)
            && let Some(Ok(order)) = self.lines.get(place).and_then(|line| order(line.signalling, signal, b""))
        {
            if order == Order::Ring {
                self.run(now, place, |machine, _, out| {
                    if let Machine::Pbx(pbx) = machine {
                        pbx.stop_ringing(out);
                    }
                });
            }
            return;
        }
        if connection.is_none() {
            self.continuity.end(endpoint, signal);
        }
        self.card.stop_signal(now, endpoint, connection, signal);
    }

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.line(endpoint).map(|line| line.machine.far_hook())
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        match self.line(endpoint).filter(|line| line.signalling.package() == event.package()) {
            Some(Line { machine: Machine::Trunk(trunk), .. }) => trunk.holds(event.item().name),
            Some(Line { machine: Machine::Pbx(pbx), .. }) => pbx.holds(event.item().name),
            None => self.card.holds(endpoint, event),
        }
    }

    fn line_state(&self, endpoint: EndpointIndex) -> Option<&'static str> {
        self.line(endpoint).map(|line| line.machine.state().name())
    }

    fn line_limit(&self, endpoint: EndpointIndex) -> Time {
        self.line(endpoint).map_or(Time::NEVER, |line| line.machine.limit())
    }

    fn seized_by(&self, endpoint: EndpointIndex) -> Option<Seizer> {
        self.line(endpoint)?.machine.state().seized_by()
    }

    fn reset_line(&mut self, now: Time, endpoint: EndpointIndex, in_service: bool) {
        self.continuity.forget(endpoint);
        if let Some(place) = self.place(endpoint) {
            self.run(now, place, |machine, times, out| match machine {
                Machine::Trunk(trunk) => trunk.reset(now, in_service, times, out),
                Machine::Pbx(pbx) => pbx.reset(in_service, out),
            });
        }
        self.card.reset_line(now, endpoint, in_service);
    }

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        self.card.order_line(now, endpoint, order);
    }

    fn carrier(&self, facility: Facility) -> Option<CarrierView> {
        self.card.carrier(facility)
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        for _ in 0..POLL_MAX {
            if let Some(indication) = self.queue.pop_front() {
                return Some(indication);
            }
            match self.card.poll(now) {
                Some(Indication::Line { endpoint, input, at }) => {
                    // What was due before the line changed comes first.
                    let at = at.min(now);
                    self.handle_time(at);
                    self.handle_line(at, endpoint, input);
                }
                Some(indication) => return Some(indication),
                None => {
                    self.handle_time(now);
                    return self.queue.pop_front();
                }
            }
        }
        None
    }

    fn deadline(&self) -> Time {
        if !self.queue.is_empty() {
            return Time::ZERO;
        }
        self.wheel.deadline().min(self.continuity.deadline()).min(self.card.deadline())
    }

    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        self.card.operate(now, order)
    }
}

#[cfg(test)]
mod tests;
