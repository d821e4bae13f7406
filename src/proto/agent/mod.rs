//! The call agent's half of MGCP (RFC 3435), for the load generator and the simulation.
//!
//! [`Agent`] plays a call agent towards one gateway: it clears its endpoints, sets up standing calls, then sends one command of its
//! [`Scenario`] for each [`Agent::start`], ends its calls at [`Agent::wind_down`] and audits that nothing is left. It repeats its commands,
//! goes on at an alternate address, confirms responses with `K:` and `000`, answers RSIP, NTFY and DLCX of the gateway, and checks what
//! it gets ([`Failure`]).
//!
//! Not here: sockets, clocks, when commands are due, what is done with latencies ([`Observer`]).
//!
//! Drive it with [`Agent::handle`] for each datagram, [`Agent::poll`] after anything happened and at [`Agent::deadline`]. All of its future is decided
//! by its inputs and the seed. Steady state allocates nothing.
//!
//! * [`transactions`]: identifiers, repeats, addresses. * [`calls`]: endpoints and calls. * [`check`]: what must be true.
//! * [`rules`]: what it may break. * [`controller`]: the same for H.248. * [`answers`]: what the gateway is answered. * [`confirm`]: `K:`. * [`pattern`]: names. * [`trunks`]: calls over trunks that signal.

pub mod answers;
pub mod calls;
pub mod check;
pub mod confirm;
pub mod controller;
pub mod finals;
pub mod pattern;
mod receive;
mod requests;
pub mod rules;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;
pub mod text;
pub mod transactions;
pub mod trunks;

use std::net::SocketAddr;
use std::time::Duration;

pub use calls::Scenario;
pub use check::Failure;
pub use transactions::{Ended, Timers};

use answers::Answers;
use calls::{Calls, REQUEST_TOKENS, Step};
use confirm::Confirmations;
use receive::Parts;
use rules::{Broken, Rule};
use transactions::{Matched, Request, Transactions};

use crate::proto::base::pace::{Pace, PaceSettings};
use crate::proto::base::{Rng, Time};
use crate::proto::codec::mgcp::{Command, Response, RestartMethod, Verb};
use crate::proto::codec::peek::{self, Peek};
use crate::proto::overload::throttle::{self, Throttle};

/// Commands outstanding at a time while the agent clears, sets up standing calls, and closes.
const SETUP_WINDOW: usize = 64;

/// Commands outstanding at a time while it clears: these may name whole spans, which gateways handle a few at a time.
const CLEARING_WINDOW: usize = 4;

/// A transient refusal to clear a name is met by another attempt at most this often for each name on average.
const CLEARING_ATTEMPTS: usize = 4;

/// The tokens from here up are of commands that break a rule: nothing depends on their ends.
const EXTRA_TOKENS: u32 = u32::MAX / 8;

/// How the agent adapts to a gateway that says 101 or 409 (RFC 3435 4.4.8). Response times are measured, not followed.
const PACE: PaceSettings = PaceSettings {
    rate_max: 1_000_000,
    rate_min: 10,
    average: 8,
    rise_percent: u32::MAX,
    rise_least: Duration::from_secs(3600),
    fall_percent: 50,
    step: 2_000,
};

/// The tokens from here up are of transactions that clear the name with this place.
const CLEARING_TOKENS: u32 = u32::MAX / 2;

/// What an agent is told at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's addresses, the preferred one first; at least one.
    pub gateway: Vec<SocketAddr>,
    /// The endpoints, each `local@domain`.
    pub endpoints: Vec<String>,
    /// Names whose DeleteConnection clears all endpoints, each `local@domain`; may hold `*`.
    pub clearing: Vec<String>,
    /// What to do.
    pub scenario: Scenario,
    /// How long a call is held.
    pub hold: Duration,
    /// Calls that stay up all the time.
    pub standing: usize,
    /// The most commands outstanding.
    pub transactions_max: usize,
    /// Commands are filled with blanks to a multiple of this; 1: not at all.
    pub pad_to: usize,
    /// Whether to check responses and to audit at the end.
    pub verify: bool,
    /// The events each call asks for, as `R:` writes them, and asks for again in the answer to each Notify; empty for none.
    pub events: String,
    /// The rules that are broken.
    pub broken: Broken,
    /// The timers.
    pub timers: Timers,
    /// How calls are held back when the gateway says that it is overloaded (409, 101); `None`: they are not.
    pub throttle: Option<throttle::Parameters>,
}

/// Where an agent is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Deleting what an earlier agent left.
    Clearing,
    /// Setting up the standing calls.
    Standing,
    /// Waiting for [`Agent::start`].
    Running,
    /// Ending its calls.
    WindingDown,
    /// Auditing that nothing is left.
    Auditing,
    /// Deleting what was left against expectation.
    Sweeping,
    /// Nothing more to do.
    Done,
}

/// What became of [`Agent::start`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// A command will go out with the next poll.
    Sent,
    /// No endpoint is ready for a command.
    Starved,
    /// Too many commands are outstanding.
    Full,
    /// The throttle refused the call: its place in the schedule is used up.
    HeldBack,
}

/// Who is told about ends and failed checks.
pub trait Observer {
    /// A command ended, with this final response code or without any.
    fn ended(&mut self, now: Time, ended: &Ended, code: Option<u16>);

    /// A transaction with an H.248 gateway ended: the name of its command, when it was wanted ([`Time::NEVER`]: nobody measures it), and the
    /// first error in the reply, 0 for none; `None`: there was no reply.
    fn transaction(&mut self, _now: Time, _name: &'static str, _intended: Time, _code: Option<u16>) {}

    /// A check failed; `evidence` is the response, or the endpoint's name when there is none.
    fn failed(&mut self, failure: Failure, evidence: &[u8]);
}

macro_rules! tally {
    ($($(#[doc = $help:literal])+ $field:ident,)+) => {
        /// What an agent counts.
        #[derive(Clone, Copy, Default, Debug)]
        pub struct Tally { $($(#[doc = $help])+ pub $field: u64,)+ }
    };
}

tally! {
    /// Commands started.
    commands,
    /// Calls that the throttle refused.
    held_back,
    /// Commands answered with 409 or 101; of an H.248 gateway: notifications of overload.
    overloads,
    /// Calls that an H.248 gateway did not set up.
    refused,
    /// Final responses that came again, with the same bytes.
    responses_repeated,
    /// Provisional responses.
    provisional,
    /// Responses that belong to no command remembered.
    stray,
    /// Datagrams from addresses that are not the gateway's.
    foreign,
    /// Messages that cannot be read.
    unreadable,
    /// Finals acknowledged with 000.
    acknowledged,
    /// RestartInProgress commands, repeats not counted.
    restarts,
    /// Notify commands, repeats not counted.
    notifies,
    /// DeleteConnection commands of the gateway, repeats not counted.
    gateway_deletions,
    /// Repeats of the gateway's commands.
    commands_repeated,
    /// Commands of the gateway that an agent does not know.
    commands_unknown,
    /// NotificationRequests that followed a Notify.
    requests,
    /// Of these, in one datagram with the answer.
    requests_with_answer,
    /// Notify commands with a request identifier that is not the latest.
    notifies_stale,
    /// Commands sent to break a rule.
    commands_extra,
}

/// A call agent.
pub struct Agent {
    scenario: Scenario,
    timers: Timers,
    verify: bool,
    clearing: Vec<String>,
    standing_wanted: usize,
    standing_attempts: usize,
    phase: Phase,
    /// Place of the next name to clear or endpoint to audit.
    cursor: usize,
    /// Whether the gateway told us that endpoints changed under us, so that errors are expected.
    disturbed: bool,
    left: bool,
    cleared: bool,
    /// When anything came from the gateway last.
    heard: Time,
    /// Whether the gateway answered nothing since a command that was lost after the run.
    silent: bool,
    /// Places of names whose clearing was refused for the time being.
    uncleared: Vec<u32>,
    clearing_attempts: usize,
    /// Of the schedule's CRCX and AUEP: whether one was refused, whether one was carried out.
    outcomes: [(bool, bool); 2],
    broken: Broken,
    pace: Pace,
    /// No new command of the schedule before.
    held_until: Time,
    calls: Calls,
    transactions: Transactions,
    confirmations: Confirmations,
    answers: Answers,
    throttle: Option<Throttle>,
    tally: Tally,
}

impl Agent {
    /// An agent at the start of its life; its first commands are ready for [`Agent::poll`]. `None` when there is no gateway address
    /// or no endpoint.
    pub fn new(settings: &Settings, rng: &mut Rng) -> Option<Agent> {
        if settings.gateway.is_empty() || settings.endpoints.is_empty() {
            return None;
        }
        let transactions_max = settings.transactions_max.max(SETUP_WINDOW);
        let mut ids = rng.fork("transactions");
        let broken = settings.broken;
        let mut calls = Calls::new(&settings.endpoints, settings.hold, rng.fork("calls"));
        calls.break_rules(broken);
        if !settings.events.is_empty() {
            calls.ask_for(&settings.events);
        }
        let mut gateway = settings.gateway.clone();
        if broken.has(Rule::Alternates) {
            gateway.truncate(1);
        }
        Some(Agent {
            scenario: settings.scenario,
            timers: settings.timers,
            verify: settings.verify,
            clearing: settings.clearing.clone(),
            standing_wanted: settings.standing.min(settings.endpoints.len()),
            standing_attempts: 0,
            phase: Phase::Clearing,
            cursor: 0,
            disturbed: false,
            left: false,
            cleared: true,
            heard: Time::ZERO,
            silent: false,
            uncleared: Vec::new(),
            clearing_attempts: 0,
            outcomes: [(false, false); 2],
            broken,
            pace: Pace::default(),
            held_until: Time::ZERO,
            calls,
            transactions: Transactions::new(settings.timers, gateway, transactions_max, settings.pad_to, &mut ids),
            confirmations: Confirmations::new(),
            answers: Answers::new(),
            throttle: settings.throttle.map(Throttle::new),
            tally: Tally::default(),
        })
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When anything came from the gateway last; [`Time::ZERO`]: never.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Commands outstanding.
    pub fn in_flight(&self) -> usize {
        self.transactions.in_flight()
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Its calls.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Its transactions.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Whether the gateway took endpoints or connections away while the agent was running, so that error responses are no failure.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed
    }

    /// Starts one command of the scenario; `intended` is when the schedule wanted it, for [`Ended::intended`].
    pub fn start(&mut self, now: Time, intended: Time) -> Started {
        if self.phase != Phase::Running {
            return Started::Starved;
        }
        if !self.transactions.has_room() || now < self.held_until {
            return Started::Full;
        }
        self.held_until = Time::ZERO;
        match self.calls.take_step(now, self.scenario) {
            Some(Step::Create(index)) if self.holds_back(now) => {
                self.calls.give_back(index);
                self.tally.held_back += 1;
                Started::HeldBack
            }
            Some(step) => {
                // A throttle is a load control of its own.
                if !self.broken.has(Rule::LoadControl) && self.throttle.is_none() {
                    let (Ok(next) | Err(next)) = self.pace.reserve(now, &PACE);
                    self.held_until = if next > now { next } else { Time::ZERO };
                }
                self.break_before(now, step);
                self.issue(now, intended, step);
                self.break_behind(now, step);
                Started::Sent
            }
            None => Started::Starved,
        }
    }

    /// Whether the throttle refuses a call.
    fn holds_back(&mut self, now: Time) -> bool {
        let call = throttle::Event::Call { priority: false };
        self.throttle.as_mut().is_some_and(|throttle| throttle.step(now, call) == throttle::Verdict::Refuse)
    }

    /// The throttle, if calls are held back.
    pub fn throttle(&self) -> Option<&Throttle> {
        self.throttle.as_ref()
    }

    /// No new commands of the scenario; ends all calls and then audits.
    pub fn wind_down(&mut self) {
        if self.phase < Phase::WindingDown {
            self.enter(Phase::WindingDown);
        }
    }

    /// The network says that `address` cannot be reached.
    pub fn handle_unreachable(&mut self, address: SocketAddr) {
        self.transactions.handle_unreachable(address);
    }

    /// Takes a datagram that came `from`.
    pub fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, observer: &mut impl Observer) {
        if !self.transactions.is_gateway(from) {
            self.tally.foreign += 1;
            return;
        }
        self.transactions.heard(from);
        self.heard = now;
        for (range, peek) in peek::split(datagram) {
            let Some(message) = datagram.get(range) else { continue };
            match peek {
                Peek::Response { code, id } => self.handle_response(now, code, id, message, from, observer),
                Peek::Command(line) => self.handle_command(now, line.verb, line.id, message, from),
                Peek::Unreadable => {
                    self.tally.unreadable += 1;
                    observer.failed(Failure::Unreadable, message);
                }
            }
        }
        self.answers.close();
    }

    /// Sends what is to be sent now; call it until `deadline` lies ahead.
    pub fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), observer: &mut impl Observer) {
        self.answers.poll(out);
        self.advance(now);
        let Agent { transactions, calls, phase, cleared, heard, silent, .. } = self;
        transactions.poll(now, out, &mut |ended| {
            observer.ended(now, &ended, None);
            match ended.token {
                REQUEST_TOKENS..CLEARING_TOKENS => calls.request_ended(ended.token - REQUEST_TOKENS),
                EXTRA_TOKENS..REQUEST_TOKENS => {}
                token => drop(calls.handle_final(now, token, None)),
            }
            if *phase == Phase::Clearing {
                *cleared = false;
                observer.failed(Failure::NotCleared, b"no final response");
            } else {
                observer.failed(Failure::NoFinalResponse, calls.name(ended.token));
            }
            if *phase > Phase::Running && *heard < ended.sent && !*silent {
                *silent = true;
                observer.failed(Failure::Silent, b"");
            }
        });
        // A loss may have been the last thing the phase waited for.
        self.advance(now);
        if self.phase == Phase::Done && self.verify && std::mem::take(&mut self.outcomes).contains(&(true, false)) {
            observer.failed(Failure::NothingDone, b"");
        }
    }

    /// When [`Agent::poll`] has something to do.
    pub fn deadline(&self) -> Time {
        if self.answers.is_pending() { Time::ZERO } else { self.transactions.deadline() }
    }

    /// Until when load control holds commands back; [`Time::ZERO`] when it does not.
    pub fn held_until(&self) -> Time {
        self.held_until
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.cursor = 0;
        self.clearing_attempts = 0;
    }

    fn issue(&mut self, now: Time, intended: Time, step: Step) {
        let Agent { calls, transactions, confirmations, tally, .. } = self;
        let started = calls.with_request(step, intended, |request| transactions.start(now, request, confirmations));
        // Room was checked by the caller and commands are far shorter than the limit.
        debug_assert!(started);
        tally.commands += u64::from(started);
    }

    /// Goes on with the phase as far as the window allows.
    fn advance(&mut self, now: Time) {
        loop {
            let idle = self.transactions.in_flight() == 0;
            let window = if matches!(self.phase, Phase::Clearing | Phase::Sweeping) { CLEARING_WINDOW } else { SETUP_WINDOW };
            let may_send = self.transactions.in_flight() < window;
            let sent = match self.phase {
                Phase::Running | Phase::Done => return,
                _ if self.silent => false,
                _ if !may_send => return,
                Phase::Clearing | Phase::Sweeping => self.clear_next(now),
                Phase::Standing => self.stand_next(now),
                Phase::WindingDown => self.calls.take_closing_step().map(|step| self.issue(now, Time::NEVER, step)).is_some(),
                Phase::Auditing => self.audit_next(now),
            };
            if sent {
                continue;
            }
            let waits = self.phase > Phase::Standing || !self.broken.has(Rule::WildcardFirst);
            if !idle && waits {
                return;
            }
            match self.phase {
                _ if self.silent => self.enter(Phase::Done),
                Phase::Clearing if !self.cleared => self.enter(Phase::Done),
                Phase::Clearing => self.enter(Phase::Standing),
                Phase::Standing => self.enter(Phase::Running),
                Phase::WindingDown if self.verify => self.enter(Phase::Auditing),
                Phase::Auditing if self.left => self.enter(Phase::Sweeping),
                _ => self.enter(Phase::Done),
            }
        }
    }

    fn clear_next(&mut self, now: Time) -> bool {
        let place = match self.uncleared.pop() {
            Some(place) => place as usize,
            None => self.cursor,
        };
        let Some(name) = self.clearing.get(place) else { return false };
        self.cursor = self.cursor.max(place + 1);
        self.clearing_attempts += 1;
        let token = CLEARING_TOKENS + place as u32;
        let request = Request { verb: Verb::Dlcx, token, intended: Time::NEVER, endpoint: name.as_bytes(), parameters: &[] };
        self.tally.commands += u64::from(self.transactions.start(now, &request, &mut self.confirmations));
        true
    }

    fn handle_cleared(&mut self, token: u32, code: u16, message: &[u8], observer: &mut impl Observer) {
        match code {
            200..300 => {}
            400..500 if self.clearing_attempts < CLEARING_ATTEMPTS * self.clearing.len() => self.uncleared.push(token - CLEARING_TOKENS),
            _ => {
                self.cleared &= self.phase != Phase::Clearing;
                observer.failed(Failure::NotCleared, message);
            }
        }
    }

    fn stand_next(&mut self, now: Time) -> bool {
        // A refused set-up is tried again, but not for ever.
        let attempts_left = self.standing_attempts < 2 * self.standing_wanted;
        let missing = self.calls.standing() + self.transactions.in_flight() < self.standing_wanted;
        let Some(step) = self.calls.take_standing_step(attempts_left && missing) else { return false };
        if let Step::Create(_) = step {
            self.standing_attempts += 1;
        }
        self.issue(now, Time::NEVER, step);
        true
    }

    fn audit_next(&mut self, now: Time) -> bool {
        if self.cursor >= self.calls.endpoints() {
            return false;
        }
        let step = self.calls.take_final_audit(self.cursor as u32);
        self.cursor += 1;
        step.map(|step| self.issue(now, Time::NEVER, step)).is_some()
    }

    fn handle_response(&mut self, now: Time, code: u16, id: u32, message: &[u8], from: SocketAddr, observer: &mut impl Observer) {
        let Agent { transactions, confirmations, answers, tally, .. } = self;
        let parts = Parts { transactions, confirmations, answers, tally };
        let Some((response, matched)) = parts.response(now, (code, id), message, from, observer) else { return };
        if matches!(code, 101 | 409) {
            self.pace.slow_down(now, &PACE);
        }
        match matched {
            Matched::Provisional(token) => {
                self.note_overload(now, code);
                self.calls.handle_provisional(token, &response);
            }
            Matched::Final(ended) => {
                self.note_overload(now, code);
                self.handle_final(now, &ended, &response, message, observer);
            }
            Matched::Repeat | Matched::RepeatDiffers | Matched::Stray => {}
        }
    }

    /// 409 and 101 say that the gateway is overloaded (RFC 3435 2.4).
    fn note_overload(&mut self, now: Time, code: u16) {
        if matches!(code, 101 | 409) {
            self.tally.overloads += 1;
            if let Some(throttle) = &mut self.throttle {
                throttle.step(now, throttle::Event::Notification);
            }
        }
    }

    fn handle_final(&mut self, now: Time, ended: &Ended, response: &Response<'_>, message: &[u8], observer: &mut impl Observer) {
        if ended.token >= CLEARING_TOKENS {
            return self.handle_cleared(ended.token, response.code, message, observer);
        }
        if ended.token >= REQUEST_TOKENS {
            if response.code >= 500 && self.verify && !self.disturbed {
                observer.failed(Failure::UnexpectedCode, message);
            }
            self.calls.request_ended(ended.token - REQUEST_TOKENS);
            return self.request_owed(now, ended.token - REQUEST_TOKENS);
        }
        if ended.token >= EXTRA_TOKENS {
            return;
        }
        self.note_outcome(ended, response.code);
        let settled = self.calls.handle_final(now, ended.token, Some(response));
        self.request_owed(now, ended.token);
        let Err(failure) = settled else { return };
        let failure = match (failure, self.phase) {
            (Failure::AuditDiffers, Phase::Auditing) => {
                self.left = true;
                Failure::ConnectionLeft
            }
            _ => failure,
        };
        let expected = self.disturbed && failure != Failure::ConnectionLeft;
        if self.verify && !expected {
            observer.failed(failure, message);
        }
    }

    fn note_outcome(&mut self, ended: &Ended, code: u16) {
        let place = match ended.verb {
            Verb::Crcx => 0,
            Verb::Auep => 1,
            _ => return,
        };
        if ended.intended != Time::NEVER {
            let (refused, done) = &mut self.outcomes[place];
            *(if (200..300).contains(&code) { done } else { refused }) = true;
        }
    }

    fn handle_command(&mut self, now: Time, verb: Option<Verb>, id: u32, message: &[u8], from: SocketAddr) {
        if verb == Some(Verb::Ntfy) && self.handle_notify(now, id, message, from) {
            return;
        }
        if !self.answers.command(now, self.timers.t_hist, from, verb, id) {
            self.tally.commands_repeated += 1;
            return;
        }
        match verb {
            Some(Verb::Rsip) => {
                self.tally.restarts += 1;
                let method = Command::parse_at_agent(message).ok().and_then(|command| command.restart_method().ok().flatten());
                // A gateway that has just started says so before it answers the first command of ours.
                self.disturbed |= self.phase > Phase::Clearing && !matches!(method, Some(RestartMethod::CancelGraceful));
            }
            Some(Verb::Ntfy) => self.tally.notifies += 1,
            Some(Verb::Dlcx) => {
                self.tally.gateway_deletions += 1;
                self.disturbed = true;
            }
            _ => self.tally.commands_unknown += 1,
        }
    }
}
