//! The controller's half of H.248 (RFC 3525), for the load generator: plays a media gateway controller towards one gateway.
//!
//! [`Controller`] takes the gateway's registration, or finds it registered; clears its contexts, asks ROOT for `ocp/mg_overload` when it
//! has a throttle, then sets up one call for each [`Controller::start`]: Add of a channel and of an RTP stream, Modify with the far end's
//! description, after its hold a Subtract of all. It repeats what is not answered, answers Notify and ServiceChange, holds calls back by
//! H.248.11, checks what it gets, and audits at the end that no context is left.
//!
//! Not here: sockets, clocks, when calls are due. Drive it as [`super::Agent`].

mod answers;
mod write;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Failure, Observer, Phase, Started, Tally};
use crate::proto::base::{AgentId, Rng, Time, TransactionId};
use crate::proto::codec::h248::{Content, Message, Shape, Transaction};
use crate::proto::overload::throttle::{self, Throttle, Verdict};
use crate::proto::transaction::Timers;
use crate::proto::transaction::outgoing::{Due, Limits};
use crate::proto::transaction::requester::{Reply, Requester};
use answers::{Answers, Outcome};

/// Requests outstanding at the most.
const WINDOW: u32 = 16_384;
/// A gateway that is not registered yet is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// There is one gateway.
const GATEWAY: AgentId = AgentId(0);

/// What a controller is told at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's address.
    pub gateway: SocketAddr,
    /// How the controller names itself: its address in brackets, with its port.
    pub message_id: String,
    /// Channels to make calls on, by their H.248 names.
    pub channels: Vec<String>,
    /// How long a call is held, at least.
    pub hold: Duration,
    /// How long at most: each call something between, at random.
    pub hold_max: Duration,
    /// Whether to check replies and to audit at the end.
    pub verify: bool,
    /// How calls are held back when the gateway says that it is overloaded; `None`: they are not, and the event is not asked for.
    pub throttle: Option<throttle::Parameters>,
}

/// What a request is for; with the place of its channel it is the word that comes back with its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Probe,
    Clear,
    Events,
    Add,
    Modify,
    Subtract,
    Audit,
}

impl Purpose {
    const ALL: [Purpose; 7] =
        [Purpose::Probe, Purpose::Clear, Purpose::Events, Purpose::Add, Purpose::Modify, Purpose::Subtract, Purpose::Audit];

    /// The command, as the report names it.
    fn name(self) -> &'static str {
        match self {
            Purpose::Probe | Purpose::Audit => "AuditValue",
            Purpose::Clear | Purpose::Subtract => "Subtract",
            Purpose::Events | Purpose::Modify => "Modify",
            Purpose::Add => "Add",
        }
    }

    fn pack(self, channel: u32) -> u64 {
        u64::from(channel) << 8 | self as u64
    }

    fn unpack(word: u64) -> (Purpose, u32) {
        (Purpose::ALL.get((word & 0xff) as usize).copied().unwrap_or(Purpose::Probe), (word >> 8) as u32)
    }
}

/// A channel and its call.
#[derive(Clone, Debug)]
struct Channel {
    name: String,
    context: u32,
    rtp: String,
    /// A request about it is out.
    busy: bool,
    /// When what is measured was wanted.
    intended: Time,
}

/// A controller.
pub struct Controller {
    settings: Settings,
    phase: Phase,
    requester: Requester,
    throttle: Option<Throttle>,
    channels: Vec<Channel>,
    /// Channels without a call, longest idle first.
    idle: VecDeque<u32>,
    /// Calls to end, by when.
    held: VecDeque<(Time, u32)>,
    /// Calls that are up or being set up.
    calls: usize,
    calls_started: u32,
    /// When to ask again whether it is registered.
    ask_at: Time,
    heard: Time,
    /// The gateway took terminations away.
    disturbed: bool,
    /// Of the calls, whether one was refused, whether one was set up.
    outcomes: (bool, bool),
    shape: Option<Box<Shape>>,
    answers: Answers,
    repeats: u64,
    tally: Tally,
    rng: Rng,
}

impl Controller {
    /// How long the next call is held.
    fn hold(&mut self) -> Duration {
        let spread = self.settings.hold_max.saturating_sub(self.settings.hold).as_micros() as u64;
        self.settings.hold + Duration::from_micros(if spread == 0 { 0 } else { self.rng.below(spread + 1) })
    }

    /// A controller at the start of its life; `None` when there is no channel.
    pub fn new(settings: &Settings, rng: &mut Rng) -> Option<Controller> {
        if settings.channels.is_empty() {
            return None;
        }
        let limits = Limits { commands: WINDOW, large: WINDOW / 4, ordinal: 0, owners: 1 };
        let channel = |name: &String| Channel { name: name.clone(), context: 0, rtp: String::new(), busy: false, intended: Time::NEVER };
        Some(Controller {
            phase: Phase::Clearing,
            requester: Requester::new(Time::ZERO, &limits, Timers::default(), rng.fork("requests")),
            throttle: settings.throttle.map(Throttle::new),
            channels: settings.channels.iter().map(channel).collect(),
            idle: (0..settings.channels.len() as u32).collect(),
            held: VecDeque::new(),
            calls: 0,
            calls_started: 0,
            ask_at: Time::ZERO,
            heard: Time::ZERO,
            disturbed: false,
            outcomes: (false, false),
            shape: Some(Box::default()),
            answers: Answers::default(),
            repeats: 0,
            tally: Tally::default(),
            rng: rng.fork("holds"),
            settings: settings.clone(),
        })
    }

    /// Sets a call up, unless the throttle refuses it.
    pub fn start(&mut self, now: Time, intended: Time) -> Started {
        if self.idle.is_empty() {
            return Started::Starved;
        }
        if self.requester.len() + 64 >= WINDOW {
            return Started::Full;
        }
        if let Some(throttle) = &mut self.throttle
            && throttle.step(now, throttle::Event::Call { priority: false }) == Verdict::Refuse
        {
            self.tally.held_back += 1;
            return Started::HeldBack;
        }
        let Some(place) = self.idle.pop_front() else { return Started::Starved };
        self.calls += 1;
        self.calls_started = self.calls_started.wrapping_add(1);
        self.tally.commands += 1;
        self.send(now, Purpose::Add, place, intended);
        Started::Sent
    }

    /// No more calls are begun: those that are up end now.
    pub fn wind_down(&mut self) {
        if self.phase <= Phase::Running {
            self.phase = Phase::WindingDown;
            self.held.iter_mut().for_each(|(at, _)| *at = Time::ZERO);
        }
    }

    fn send(&mut self, now: Time, purpose: Purpose, place: u32, intended: Time) {
        if let Some(channel) = self.channels.get_mut(place as usize).filter(|_| purpose.is_about_a_call()) {
            (channel.busy, channel.intended) = (true, intended);
        }
        let (settings, channel) = (&self.settings, self.channels.get(place as usize));
        let write = |id: TransactionId, buffer: &mut [u8]| write::request(settings, id, purpose, channel, buffer);
        // The window has room, and what is written is short.
        let _ = self.requester.send(now, GATEWAY, &[settings.gateway], purpose.pack(place), write);
    }

    /// A datagram.
    pub fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, observer: &mut impl Observer) {
        if from.ip() != self.settings.gateway.ip() {
            self.tally.foreign += 1;
            return;
        }
        self.heard = now;
        let Some(mut shape) = self.shape.take() else { return };
        match Message::parse(datagram, &mut shape).and_then(|message| message.content()) {
            Ok(Content::Transactions(transactions)) => transactions.for_each(|transaction| match transaction {
                Ok(transaction) => self.transaction(now, &transaction, from, datagram, observer),
                Err(_) => self.unreadable(datagram, observer),
            }),
            Ok(Content::Error(_)) => observer.failed(Failure::UnexpectedCode, datagram),
            Err(_) => self.unreadable(datagram, observer),
        }
        self.shape = Some(shape);
    }

    fn unreadable(&mut self, datagram: &[u8], observer: &mut impl Observer) {
        self.tally.unreadable += 1;
        observer.failed(Failure::Unreadable, datagram);
    }

    fn transaction(&mut self, now: Time, transaction: &Transaction<'_>, from: SocketAddr, datagram: &[u8], observer: &mut impl Observer) {
        match transaction {
            Transaction::Request(request) => {
                let seen = self.answers.request(&self.settings, request, from);
                match seen {
                    answers::Seen::Repeat => self.tally.commands_repeated += 1,
                    answers::Seen::New { restarts, notifies, overloads, taken_away } => {
                        self.tally.restarts += u64::from(restarts);
                        self.tally.notifies += u64::from(notifies);
                        self.tally.overloads += u64::from(overloads);
                        self.disturbed |= taken_away || (restarts > 0 && self.phase >= Phase::Running);
                        if restarts > 0 {
                            self.ask_at = self.ask_at.min(now);
                        }
                        for _ in 0..overloads {
                            if let Some(throttle) = &mut self.throttle {
                                throttle.step(now, throttle::Event::Notification);
                            }
                        }
                    }
                }
            }
            Transaction::Pending(id) => {
                self.tally.provisional += 1;
                self.requester.handle_pending(now, *id);
            }
            Transaction::Reply(reply) => match self.requester.handle_reply(now, reply.id, reply.immediate_ack) {
                Reply::Ends { user, acknowledge, .. } => {
                    if acknowledge {
                        self.tally.acknowledged += 1;
                        self.answers.acknowledge(&self.settings, reply.id, from);
                    }
                    let (purpose, place) = Purpose::unpack(user);
                    let outcome = answers::outcome(reply);
                    self.ended(now, purpose, place, &outcome, datagram, observer);
                }
                Reply::Stray { acknowledge } => {
                    if acknowledge {
                        self.answers.acknowledge(&self.settings, reply.id, from);
                    }
                    self.tally.responses_repeated += 1;
                }
            },
            Transaction::Acknowledgement(_) => {}
        }
    }

    fn ended(&mut self, now: Time, purpose: Purpose, place: u32, outcome: &Outcome, evidence: &[u8], observer: &mut impl Observer) {
        let intended = self.channels.get_mut(place as usize).filter(|_| purpose.is_about_a_call()).map_or(Time::NEVER, |channel| {
            channel.busy = false;
            channel.intended
        });
        observer.transaction(now, purpose.name(), intended, Some(outcome.error.unwrap_or(0)));
        match (purpose, outcome.error) {
            // Not registered yet: the registration is on its way.
            (Purpose::Probe, Some(505)) => self.ask_at = now + ASK_AGAIN,
            (Purpose::Probe, _) => self.send(now, Purpose::Clear, 0, Time::NEVER),
            // 431: there was nothing to clear.
            (Purpose::Clear, None | Some(431)) if self.throttle.is_some() => self.send(now, Purpose::Events, 0, Time::NEVER),
            (Purpose::Clear | Purpose::Events, None | Some(431)) => self.begin(),
            (Purpose::Clear | Purpose::Events, Some(_)) => {
                observer.failed(Failure::NotCleared, evidence);
                self.phase = Phase::Done;
            }
            (Purpose::Add, _) => self.added(now, place, outcome, evidence, observer),
            (Purpose::Modify, error) => {
                if error.is_some() && !self.disturbed {
                    observer.failed(Failure::UnexpectedCode, evidence);
                }
                let until = if self.phase == Phase::Running { now + self.hold() } else { now };
                let behind = self.held.partition_point(|(at, _)| *at <= until);
                self.held.insert(behind, (until, place));
            }
            (Purpose::Subtract, error) => {
                let complete = outcome.statistics || !self.settings.verify;
                match error {
                    Some(_) if !self.disturbed => observer.failed(Failure::UnexpectedCode, evidence),
                    None if !complete && !self.disturbed => observer.failed(Failure::StatisticsMissing, evidence),
                    _ => {}
                }
                self.free(place);
            }
            (Purpose::Audit, error) => {
                if error.is_none() && outcome.context != 0 {
                    observer.failed(Failure::ContextLeft, evidence);
                }
                self.finish(observer);
            }
        }
    }

    /// Everything is ready for calls.
    fn begin(&mut self) {
        if self.phase == Phase::Clearing {
            self.phase = Phase::Running;
        }
    }

    fn added(&mut self, now: Time, place: u32, outcome: &Outcome, evidence: &[u8], observer: &mut impl Observer) {
        match outcome.error {
            None => {
                self.outcomes.1 = true;
                if self.settings.verify && !(outcome.context != 0 && !outcome.rtp.is_empty() && outcome.description) {
                    observer.failed(Failure::AddIncomplete, evidence);
                }
                if let Some(channel) = self.channels.get_mut(place as usize) {
                    channel.context = outcome.context;
                    channel.rtp.clear();
                    channel.rtp.push_str(&outcome.rtp);
                }
                self.send(now, Purpose::Modify, place, now);
            }
            Some(code) => {
                self.outcomes.0 = true;
                self.tally.refused += 1;
                // No resources, overload, or what the gateway took away; else the call was right.
                let transient = matches!(code, 412 | 432 | 434 | 502 | 503 | 510 | 526);
                if !transient && !self.disturbed {
                    observer.failed(Failure::UnexpectedCode, evidence);
                }
                if outcome.context == 0 {
                    return self.free(place);
                }
                if let Some(channel) = self.channels.get_mut(place as usize) {
                    channel.context = outcome.context;
                }
                self.send(now, Purpose::Subtract, place, Time::NEVER);
            }
        }
    }

    fn free(&mut self, place: u32) {
        self.calls = self.calls.saturating_sub(1);
        if let Some(channel) = self.channels.get_mut(place as usize) {
            channel.context = 0;
        }
        self.idle.push_back(place);
    }

    fn finish(&mut self, observer: &mut impl Observer) {
        if self.outcomes == (true, false) {
            observer.failed(Failure::NothingDone, b"");
        }
        self.phase = Phase::Done;
    }

    /// Nobody answered.
    fn lost(&mut self, now: Time, purpose: Purpose, place: u32, observer: &mut impl Observer) {
        observer.transaction(now, purpose.name(), Time::NEVER, None);
        match purpose {
            // The gateway may come later.
            Purpose::Probe => self.ask_at = now,
            Purpose::Clear | Purpose::Events | Purpose::Audit => {
                observer.failed(Failure::Silent, b"");
                self.phase = Phase::Done;
            }
            Purpose::Add | Purpose::Modify | Purpose::Subtract => {
                let name = self.channels.get(place as usize).map(|channel| channel.name.clone()).unwrap_or_default();
                observer.failed(Failure::NoFinalResponse, name.as_bytes());
                self.free(place);
            }
        }
    }

    /// Everything that is due; `out` sends.
    pub fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), observer: &mut impl Observer) {
        if self.phase == Phase::Clearing && self.ask_at <= now && self.requester.is_empty() {
            self.ask_at = Time::NEVER;
            self.send(now, Purpose::Probe, 0, Time::NEVER);
        }
        while let Some((_, place)) = self.held.front().copied().filter(|(at, _)| *at <= now) {
            self.held.pop_front();
            self.send(now, Purpose::Subtract, place, now);
        }
        if self.phase == Phase::WindingDown && self.calls == 0 && self.requester.is_empty() {
            if self.settings.verify {
                self.phase = Phase::Auditing;
                self.send(now, Purpose::Audit, 0, Time::NEVER);
            } else {
                self.finish(observer);
            }
        }
        loop {
            let lost = match self.requester.poll(now) {
                Some(Due::Transmit { to, body, repeat, .. }) => {
                    self.repeats += u64::from(repeat);
                    out(to, body);
                    continue;
                }
                Some(Due::Unanswered { user, .. }) => user,
                None => break,
            };
            let (purpose, place) = Purpose::unpack(lost);
            self.lost(now, purpose, place, observer);
        }
        self.answers.flush(out);
    }

    /// When to call [`Controller::poll`] at the latest.
    pub fn deadline(&self) -> Time {
        let held = self.held.front().map_or(Time::NEVER, |(at, _)| *at);
        let asked = if self.phase == Phase::Clearing && self.requester.is_empty() { self.ask_at } else { Time::NEVER };
        let answers = if self.answers.is_empty() { Time::NEVER } else { Time::ZERO };
        self.requester.deadline().min(held).min(asked).min(answers)
    }

    /// Where it is in its life.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When anything came from the gateway last.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Its counters.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Requests outstanding.
    pub fn in_flight(&self) -> usize {
        self.requester.len() as usize
    }

    /// Copies sent again.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The gateway's address.
    pub fn gateway(&self) -> SocketAddr {
        self.settings.gateway
    }

    /// Whether the gateway took terminations away.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed
    }

    /// Calls that are up or being set up.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Calls begun.
    pub fn calls_started(&self) -> u32 {
        self.calls_started
    }

    /// Channels it makes calls on.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// When the next call ends and its channel is free.
    pub fn next_due(&self) -> Time {
        self.held.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Calls a second that the throttle lets through; `None`: it holds nothing back.
    pub fn rate(&self) -> Option<f64> {
        self.throttle.as_ref().and_then(Throttle::rate)
    }
}

impl Purpose {
    fn is_about_a_call(self) -> bool {
        matches!(self, Purpose::Add | Purpose::Modify | Purpose::Subtract)
    }
}
