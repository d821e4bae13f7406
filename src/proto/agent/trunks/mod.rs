//! The call agent's half of calls over trunks with channel associated signalling, and of continuity tests (RFC 3064, RFC 3660 2.3).
//!
//! [`Trunks`] makes calls of one [`Kind`] in and out over its trunks: it brings each of them to rest, then plays a script for each
//! [`Trunks::start`], and audits at the end that every trunk is idle. A script says what the far end is told, what is sent and what must be
//! notified; whatever else comes is a failed check. Far ends are told what to do by whoever drives this, in the words of `tollgate sim`
//! ([`Trunks::poll`] hands them out, [`Trunks::handle_far`] says that it was done); so the same scripts run against a gateway with simulated
//! cards and in the simulation. Like [`super::Agent`] it keeps the rules of an agent, of which [`BREAKABLE`] can be broken on purpose.
//!
//! Not here: sockets, clocks, when calls are due. * `scripts`: the calls. * `script`: steps and texts. * `line`: where a script stands.
//! * `receive`: what comes from the gateway. * `kind`: what differs by kind of trunk.

mod kind;
mod line;
mod receive;
mod script;
mod scripts;
#[cfg(test)]
mod tests;

pub use kind::Kind;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use self::line::{Act, Input, Line, Use};
use self::script::{Call, Script};
use super::answers::Answers;
use super::check::Failure;
use super::confirm::Confirmations;
use super::rules::{Broken, Rule};
use super::transactions::{Request, Timers, Transactions};
use super::{Observer, Phase, Started, Tally};
use crate::proto::base::pace::{Pace, PaceSettings};
use crate::proto::base::{HexId, Rng, Time};
use crate::proto::codec::mgcp::Verb;
use crate::proto::codec::peek::{self, Peek};

/// Trunks that are brought to rest, or audited, at a time.
const SETUP_WINDOW: usize = 64;
/// A trunk that could not be brought to rest this often in a row is left alone.
const RESETS_MAX: u8 = 3;

/// The rules it can break. Scripts wait for each response, so none of them can have two commands outstanding.
pub const BREAKABLE: [Rule; 3] = [Rule::Lockstep, Rule::LoadControl, Rule::Alternates];
/// How calls, of some ten commands each, adapt to a gateway that says 101 or 409 (RFC 3435 4.4.8).
const PACE: PaceSettings = PaceSettings { rate_max: 20_000, rate_min: 1, step: 100, ..super::PACE };

/// What an agent is told at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's addresses, the preferred one first; at least one.
    pub gateway: Vec<SocketAddr>,
    /// The trunks, each `local@domain`; at least one.
    pub endpoints: Vec<String>,
    /// What they are.
    pub kind: Kind,
    /// How long a call is held.
    pub hold: Duration,
    /// How many of a million calls have a far end that misbehaves.
    pub misbehave: u32,
    /// Whether to audit at the end.
    pub verify: bool,
    /// The rules that are broken, of [`BREAKABLE`].
    pub broken: Broken,
    /// The timers.
    pub timers: Timers,
}

/// What became of the calls of one name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcomes {
    /// Begun.
    pub begun: u64,
    /// Went as they should, to the end.
    pub well: u64,
    /// Given up because the gateway refused a command for the time being (4xx).
    pub refused: u64,
    /// Went otherwise.
    pub wrong: u64,
}

/// The agent.
pub struct Trunks {
    settings: Settings,
    phase: Phase,
    lines: Vec<Line>,
    /// Local names, in lower case.
    names: BTreeMap<Vec<u8>, u32>,
    outcomes: Vec<Outcomes>,
    /// Trunks at rest, the one longest at rest first.
    rest: VecDeque<u32>,
    /// Trunks to be brought to rest or audited.
    todo: VecDeque<u32>,
    /// Trunks whose script has something to do.
    ready: VecDeque<u32>,
    /// When scripts go on by themselves; of some nothing is left.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// Orders to far ends to hand out.
    far: VecDeque<(u32, String)>,
    running: usize,
    calls: usize,
    calls_begun: u32,
    call_prefix: u32,
    disturbed: bool,
    heard: Time,
    rng: Rng,
    pace: Pace,
    /// No new call before; [`Time::ZERO`]: whenever one is wanted.
    held_until: Time,
    /// While a Notify is handled, what is to stand in front of the command that follows it at once, if one does: the answer, or nothing.
    front: Option<Vec<u8>>,
    transactions: Transactions,
    confirmations: Confirmations,
    answers: Answers,
    tally: Tally,
}

impl Trunks {
    /// An agent at the start of its life. `None` when there is no gateway address or no trunk.
    pub fn new(settings: &Settings, rng: &mut Rng) -> Option<Trunks> {
        if settings.gateway.is_empty() || settings.endpoints.is_empty() {
            return None;
        }
        let count = settings.endpoints.len();
        let package = settings.kind.package();
        let mut ids = rng.fork("transactions");
        let mut rng = rng.fork("trunks");
        let mut gateway = settings.gateway.clone();
        if settings.broken.has(Rule::Alternates) {
            gateway.truncate(1);
        }
        let local = |name: &String| name.split('@').next().unwrap_or_default().to_ascii_lowercase().into_bytes();
        Some(Trunks {
            names: settings.endpoints.iter().map(local).zip(0..).collect(),
            phase: Phase::Clearing,
            lines: settings.endpoints.iter().map(|name| Line::new(name.clone(), package)).collect(),
            outcomes: vec![Outcomes::default(); settings.kind.calls().len()],
            rest: VecDeque::with_capacity(count),
            todo: (0..count as u32).collect(),
            ready: VecDeque::new(),
            due: BinaryHeap::new(),
            far: VecDeque::new(),
            running: 0,
            calls: 0,
            calls_begun: 0,
            call_prefix: rng.next() as u32,
            disturbed: false,
            heard: Time::ZERO,
            pace: Pace::default(),
            held_until: Time::ZERO,
            front: None,
            transactions: Transactions::new(settings.timers, gateway, count, 1, &mut ids),
            confirmations: Confirmations::new(),
            answers: Answers::new(),
            tally: Tally::default(),
            settings: settings.clone(),
            rng,
        })
    }

    /// Where it is; never [`Phase::Standing`] or [`Phase::Sweeping`].
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When anything came from the gateway last; [`Time::ZERO`]: never.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Calls going on.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Calls begun in all.
    pub fn calls_begun(&self) -> u32 {
        self.calls_begun
    }

    /// Trunks.
    pub fn endpoints(&self) -> usize {
        self.lines.len()
    }

    /// Trunks that could not be brought to rest.
    pub fn down(&self) -> usize {
        self.lines.iter().filter(|line| line.usage == Use::Down && line.resets > 0).count()
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Its transactions.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Whether the gateway took endpoints or connections away while calls were made, so that calls may go wrong.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed
    }

    /// What became of the calls: the name, whether the far end misbehaves in it, and the counts.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, bool, Outcomes)> {
        self.settings.kind.calls().iter().zip(&self.outcomes).map(|(call, outcomes)| (call.name, call.odd, *outcomes))
    }

    /// Begins one call.
    pub fn start(&mut self, now: Time) -> Started {
        if self.phase != Phase::Running {
            return Started::Starved;
        }
        if now < self.held_until {
            return Started::Full;
        }
        self.held_until = Time::ZERO;
        let Some(index) = self.rest.pop_front() else { return Started::Starved };
        if !self.settings.broken.has(Rule::LoadControl) {
            let (Ok(next) | Err(next)) = self.pace.reserve(now, &PACE);
            self.held_until = if next > now { next } else { Time::ZERO };
        }
        let place = self.draw();
        let Some(call) = self.settings.kind.calls().get(place) else { return Started::Starved };
        self.calls_begun = self.calls_begun.wrapping_add(1);
        self.calls += 1;
        if let Some(outcomes) = self.outcomes.get_mut(place) {
            outcomes.begun += 1;
        }
        let digits = self.rng.below(10_000) as u32;
        let id = HexId::from_u64(u64::from(self.call_prefix) << 32 | u64::from(self.calls_begun), 16);
        if let Some(line) = self.lines.get_mut(index as usize) {
            line.values.call = id;
            line.values.digits = [1_000, 100, 10, 1].map(|unit| b'0' + (digits / unit % 10) as u8);
        }
        self.begin(now, index, Use::Call(place as u16), call.script);
        Started::Sent
    }

    /// Which call comes next: by weight among those with a far end that behaves, or does not.
    fn draw(&mut self) -> usize {
        let odd = self.rng.chance(self.settings.misbehave);
        let calls = self.settings.kind.calls();
        let weight = |call: &Call| if call.odd == odd { u64::from(call.weight) } else { 0 };
        let mut drawn = self.rng.below(calls.iter().map(weight).sum::<u64>().max(1));
        let place = calls.iter().position(|call| match drawn.checked_sub(weight(call)) {
            Some(left) => {
                drawn = left;
                false
            }
            None => true,
        });
        place.unwrap_or(0)
    }

    /// No new calls; waits until those there are have ended, and then audits.
    pub fn wind_down(&mut self) {
        if self.phase < Phase::WindingDown {
            self.phase = Phase::WindingDown;
            self.todo.clear();
        }
    }

    /// The network says that `address` cannot be reached.
    pub fn handle_unreachable(&mut self, address: SocketAddr) {
        self.transactions.handle_unreachable(address);
    }

    /// The far end of trunk `index` was told, or why it could not be.
    pub fn handle_far(&mut self, now: Time, index: u32, done: Result<(), &str>, observer: &mut impl Observer) {
        self.input(now, index, Input::Far(done), b"", observer);
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
                Peek::Command(line) => self.handle_command(now, line.verb, line.id, message, from, observer),
                Peek::Unreadable => {
                    self.tally.unreadable += 1;
                    observer.failed(Failure::Unreadable, message);
                }
            }
        }
        self.answers.close();
    }

    /// Goes on with what is due, and hands out what is to be sent and what far ends are to be told.
    pub fn poll(
        &mut self,
        now: Time,
        out: &mut impl FnMut(SocketAddr, &[u8]),
        far: &mut impl FnMut(u32, &str, &str),
        observer: &mut impl Observer,
    ) {
        while let Some(Reverse((at, index))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            if self.lines.get(index as usize).is_some_and(|line| line.due == at) {
                self.ready.push_back(index);
            }
        }
        self.advance(now, observer);
        self.answers.poll(out);
        let mut lost = Vec::new();
        self.transactions.poll(now, out, &mut |ended| lost.push(ended));
        for ended in lost {
            observer.ended(now, &ended, None);
            observer.failed(Failure::NoFinalResponse, self.lines.get(ended.token as usize).map_or(b"", |line| line.name.as_bytes()));
            self.input(now, ended.token, Input::Final(0, None), b"", observer);
        }
        while let Some((index, order)) = self.far.pop_front() {
            if let Some(line) = self.lines.get(index as usize) {
                far(index, &line.name, &order);
            }
        }
    }

    /// When [`Trunks::poll`] has something to do.
    pub fn deadline(&self) -> Time {
        if self.answers.is_pending() || !self.ready.is_empty() || !self.far.is_empty() {
            return Time::ZERO;
        }
        let may_begin = self.phase != Phase::Running && self.running < SETUP_WINDOW && !self.todo.is_empty();
        let phase_over = !matches!(self.phase, Phase::Running | Phase::Done) && self.running == 0;
        if may_begin || phase_over {
            return Time::ZERO;
        }
        self.transactions.deadline().min(self.due.peek().map_or(Time::NEVER, |Reverse((at, _))| *at))
    }

    /// Until when load control holds calls back; [`Time::ZERO`] when it does not.
    pub fn held_until(&self) -> Time {
        self.held_until
    }

    /// Runs scripts that can go on, and the phase.
    fn advance(&mut self, now: Time, observer: &mut impl Observer) {
        loop {
            while let Some(index) = self.ready.pop_front() {
                self.run(now, index, observer);
            }
            if matches!(self.phase, Phase::Running | Phase::Done) {
                return;
            }
            if self.running < SETUP_WINDOW
                && let Some(index) = self.todo.pop_front()
            {
                match self.phase {
                    Phase::Auditing => self.begin(now, index, Use::Audit, scripts::AUDIT),
                    _ => self.begin(now, index, Use::Reset, self.settings.kind.reset()),
                }
                continue;
            }
            if self.running > 0 {
                return;
            }
            self.phase = match self.phase {
                Phase::Clearing => Phase::Running,
                Phase::WindingDown if self.settings.verify => {
                    self.todo = (0..self.lines.len() as u32).collect();
                    Phase::Auditing
                }
                _ => Phase::Done,
            };
        }
    }

    fn begin(&mut self, now: Time, index: u32, usage: Use, script: Script) {
        if let Some(line) = self.lines.get_mut(index as usize) {
            line.begin(now, usage, script);
            self.running += 1;
            self.ready.push_back(index);
        }
    }

    /// Lets the script of a trunk go on as far as it can.
    fn run(&mut self, now: Time, index: u32, observer: &mut impl Observer) {
        let Some(line) = self.lines.get_mut(index as usize) else { return };
        let act = line.next(now, self.settings.hold);
        if line.due != Time::NEVER {
            self.due.push(Reverse((line.due, index)));
        }
        self.act(now, index, act, b"", observer);
    }

    fn input(&mut self, now: Time, index: u32, input: Input<'_>, message: &[u8], observer: &mut impl Observer) {
        let Some(line) = self.lines.get_mut(index as usize) else { return };
        match line.take(input) {
            None => self.run(now, index, observer),
            Some(act) => self.act(now, index, act, message, observer),
        }
    }

    fn act(&mut self, now: Time, index: u32, act: Act, message: &[u8], observer: &mut impl Observer) {
        match act {
            Act::Wait => {}
            Act::Far(order) => self.far.push_back((index, order)),
            Act::Send(verb, parameters) => self.send(now, index, verb, &parameters),
            Act::Done => self.finish(index, |outcomes| outcomes.well += 1),
            Act::Refused(400..500) => self.finish_badly(index, |outcomes| outcomes.refused += 1),
            Act::Refused(_) => {
                self.tell(index, &String::from_utf8_lossy(message), observer);
                self.finish_badly(index, |outcomes| outcomes.wrong += 1);
            }
            Act::Wrong(why) => {
                self.tell(index, &why, observer);
                self.finish_badly(index, |outcomes| outcomes.wrong += 1);
            }
        }
    }

    fn send(&mut self, now: Time, index: u32, verb: Verb, parameters: &str) {
        let Some(line) = self.lines.get(index as usize) else { return };
        let parameters: &[&[u8]] = &[parameters.as_bytes()];
        let request = Request { verb, token: index, intended: now, endpoint: line.name.as_bytes(), parameters };
        let front = self.front.take();
        self.tally.requests += u64::from(front.is_some());
        let front = front.unwrap_or_default();
        self.tally.requests_with_answer += u64::from(!front.is_empty());
        let started = self.transactions.start_behind(now, &front, &request, &mut self.confirmations);
        // There is room for a command of each trunk, and they are far shorter than the limit.
        debug_assert!(started);
        self.tally.commands += u64::from(started);
    }

    /// A failed check, with what is known of it.
    fn tell(&mut self, index: u32, why: &str, observer: &mut impl Observer) {
        let Some(line) = self.lines.get(index as usize) else { return };
        let (failure, what) = match line.usage {
            Use::Call(place) => (Failure::CallWrong, self.settings.kind.calls().get(usize::from(place)).map_or("", |call| call.name)),
            Use::Audit => (Failure::LineLeft, "audit"),
            _ => (Failure::NotCleared, "reset"),
        };
        // A trunk is tried again before it is given up.
        let again = line.usage == Use::Reset && line.resets + 1 < RESETS_MAX;
        if !(again || self.disturbed && failure == Failure::CallWrong) {
            observer.failed(failure, format!("{} ({what}): {why}", line.name).as_bytes());
        }
    }

    /// A script is over, and its trunk at rest.
    fn finish(&mut self, index: u32, count: impl FnOnce(&mut Outcomes)) {
        self.count(index, count);
        let Some(line) = self.lines.get_mut(index as usize) else { return };
        self.running -= 1;
        line.resets = 0;
        line.usage = Use::Rest;
        self.rest.push_back(index);
    }

    /// A script is over, and nobody knows what its trunk does.
    fn finish_badly(&mut self, index: u32, count: impl FnOnce(&mut Outcomes)) {
        self.count(index, count);
        let Some(line) = self.lines.get_mut(index as usize) else { return };
        self.running -= 1;
        let usage = std::mem::replace(&mut line.usage, Use::Down);
        if usage == Use::Reset {
            line.resets += 1;
        }
        if usage == Use::Audit || line.resets >= RESETS_MAX {
            return;
        }
        line.begin(Time::ZERO, Use::Reset, self.settings.kind.reset());
        self.running += 1;
        self.ready.push_back(index);
    }

    fn count(&mut self, index: u32, count: impl FnOnce(&mut Outcomes)) {
        if let Some(Use::Call(place)) = self.lines.get(index as usize).map(|line| line.usage) {
            self.calls -= 1;
            if let Some(outcomes) = self.outcomes.get_mut(usize::from(place)) {
                count(outcomes);
            }
        }
    }
}
