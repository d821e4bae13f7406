//! One call after another between a channel of one trunk and a channel of the other, each judged by what arrived.

use super::desk::{Answer, Desk, News};
use super::probe::{Places, Probe, Probes, Signal};
use super::record::Recorder;
use super::relay::{Impairment, Way};
use super::tally::{Direction, Tally};
use crate::load::far_end::trunk::Trunk;
use crate::proto::base::{Rng, Time};
use crate::proto::codec::mgcp::Verb;
use crate::proto::package::parameters::Digits;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// A refused attempt is followed by another one after so long: a trunk that has just come up is out of service a moment more.
const AGAIN: Duration = Duration::from_millis(500);
/// Attempts before a call counts as failed.
const ATTEMPTS: u32 = 60;
/// Silence between the set-up of a call and the voice in it, and between its voice and its end: what is on its way arrives.
const SETTLE: Duration = Duration::from_millis(500);
/// How often delays are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Beside the time digits take, so long may pass until the last one is notified.
const DIGITS_WITHIN: Duration = Duration::from_secs(4);
/// A voice that is ended sooner is not judged.
const JUDGED: Duration = Duration::from_secs(1);
/// A digit and the gap behind it.
const DIGIT: Duration = Duration::from_millis(200);

/// What all calls have in common.
pub struct Plan {
    pub coding: &'static str,
    pub signal: Signal,
    pub period_ms: u8,
    /// Whether media is to be protected.
    pub srtp: bool,
    pub hold: Duration,
    pub digits: Option<Digits>,
    pub impairment: Impairment,
    /// The addresses of this side that the gateways reach.
    pub addresses: [IpAddr; 2],
    /// No call begins after this.
    pub until: Time,
    /// Calls that are up end now.
    pub cut: bool,
}

/// What a call works with.
pub struct Room<'a> {
    pub plan: &'a Plan,
    pub desk: &'a mut Desk,
    pub trunks: &'a mut [Trunk<Probes>],
    pub places: &'a Places,
    pub tally: &'a mut Tally,
    pub rng: &'a mut Rng,
    pub pace: &'a mut Pace,
    pub recorder: Option<&'a mut Recorder>,
}

/// How often calls may begin.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval: Duration,
    next: Time,
}

impl Pace {
    /// One call after each `interval`; those that there was no free channel for are not made up for.
    pub fn new(interval: Duration) -> Pace {
        Pace { interval, next: Time::ZERO }
    }

    /// Whether a call may begin now; if not, when.
    fn begin(&mut self, now: Time) -> Result<(), Time> {
        if now < self.next {
            return Err(self.next);
        }
        // A look that comes a little late delays none of those behind it.
        let late = now.since(self.next).min(self.interval);
        self.next = now + self.interval.saturating_sub(late);
        Ok(())
    }
}

/// One end of a call.
struct End {
    gateway: usize,
    trunk: usize,
    channel: usize,
    /// With its domain.
    name: String,
    connection: String,
    description: String,
    /// Digits the other end sent that this end's gateway told of.
    notified: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Clearing,
    Offering,
    Answering,
    Accepting,
    Asking,
    Dialling,
    Settling,
    Talking,
    Hushing,
    Ending,
    Again,
    Over,
}

/// Two channels.
pub struct Pair {
    ends: [End; 2],
    /// Tokens of its commands begin here.
    token: u32,
    stage: Stage,
    /// Ordinal of the stage, below [`ROUNDS`]: what answers a command of an earlier one comes too late.
    round: u32,
    /// When the stage ends by itself, or its next look is due.
    due: Time,
    stage_until: Time,
    /// Commands of this stage not answered yet.
    waits: u8,
    attempts: u32,
    calls: u32,
    way: Option<Way>,
    directions: [Direction; 2],
    wrong: Option<String>,
    /// It was ended before there was anything to judge.
    cut: bool,
}

/// Stages that are told apart: more than there can be while a command is repeated.
const ROUNDS: u32 = 1 << 15;
/// Tokens of a pair: one for each side in each stage.
pub const TOKENS: u32 = 2 * ROUNDS;
/// As many pairs have tokens.
pub const PAIRS: usize = (u32::MAX / TOKENS) as usize;

impl Pair {
    /// The pair of this number, whose first call begins at `begins`: gateway, trunk, channel and name of each end.
    pub fn new(number: u32, begins: Time, ends: [(usize, usize, usize, String); 2]) -> Pair {
        let ends = ends.map(|(gateway, trunk, channel, name)| {
            let (connection, description, notified) = Default::default();
            End { gateway, trunk, channel, name, connection, description, notified }
        });
        Pair {
            ends,
            token: number * TOKENS,
            stage: Stage::Again,
            round: 0,
            due: begins,
            stage_until: Time::ZERO,
            waits: 0,
            attempts: 0,
            calls: 0,
            way: None,
            directions: [Direction::default(), Direction::default()],
            wrong: None,
            cut: false,
        }
    }

    /// Whether no call is up, and none begins any more.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether it is the endpoint of this name at this gateway that events were observed at.
    pub fn has(&self, gateway: usize, local: &str) -> bool {
        self.ends.iter().any(|end| end.gateway == gateway && end.is_named(local))
    }

    /// Moves the packets of the call.
    pub fn relay(&mut self, now: Time, room: &mut Room<'_>) {
        if let Some(way) = &mut self.way {
            way.work(now, &room.plan.impairment, room.rng);
        }
    }

    /// Goes on by itself, when it is time.
    pub fn step(&mut self, now: Time, room: &mut Room<'_>) {
        if now < self.due {
            return;
        }
        self.due = Time::NEVER;
        match self.stage {
            Stage::Again if now >= room.plan.until => self.stage = Stage::Over,
            Stage::Again => {
                if let Err(later) = room.pace.begin(now) {
                    self.due = later.min(now + LOOK);
                    return;
                }
                self.enter(Stage::Clearing);
                self.both(now, room, |_, _| (Verb::Dlcx, String::new()));
            }
            Stage::Dialling | Stage::Settling if room.plan.cut => self.cut(now, room),
            Stage::Dialling => self.look_at_digits(now, room),
            Stage::Settling => {
                self.each(room, Probe::talk);
                self.enter(Stage::Talking);
                (self.due, self.stage_until) = (now + LOOK, now + room.plan.hold);
            }
            Stage::Talking => {
                self.look_at_delays(room);
                self.due = now + LOOK;
                let talked = (now + room.plan.hold).since(self.stage_until);
                if room.plan.cut && talked < JUDGED {
                    self.cut(now, room);
                } else if now >= self.stage_until || room.plan.cut {
                    self.listen_for_the_last_time(room);
                    self.enter(Stage::Hushing);
                    self.due = now;
                }
            }
            Stage::Hushing => self.end(now, room),
            Stage::Over => {}
            // Nothing of it could be sent.
            _ if self.waits > 0 => {}
            Stage::Clearing => {
                self.enter(Stage::Again);
                self.due = now + AGAIN;
            }
            Stage::Offering | Stage::Answering | Stage::Accepting | Stage::Asking | Stage::Ending => {
                self.refused(now, &Answer::default(), room);
            }
        }
    }

    /// Something came for it.
    pub fn take(&mut self, now: Time, news: &News, room: &mut Room<'_>) {
        match news {
            News::Observed { gateway, name, events } => {
                let Some(end) = self.ends.iter_mut().find(|end| end.gateway == *gateway && end.is_named(name)) else { return };
                for event in events {
                    // `d/5@1a`: package, key, connection.
                    end.notified.extend(event.strip_prefix("d/").and_then(|key| key.chars().next()));
                }
            }
            News::Lost(token) => self.answered(now, *token, &Answer::default(), room),
            News::Final(token, answer) => self.answered(now, *token, answer, room),
        }
    }

    fn answered(&mut self, now: Time, token: u32, answer: &Answer, room: &mut Room<'_>) {
        let Some(side) = (0..2).find(|side| self.token_of(*side) == token) else { return };
        self.waits = self.waits.saturating_sub(1);
        let done = (200..300).contains(&answer.code);
        if answer.verb == Some(Verb::Dlcx)
            && self.stage == Stage::Ending
            && let Some(direction) = self.directions.get_mut(side)
        {
            direction.parameters = answer.parameters;
        }
        match self.stage {
            // An endpoint without connections has none to delete.
            Stage::Clearing if self.waits == 0 => self.begin(now, room),
            Stage::Offering | Stage::Answering | Stage::Accepting | Stage::Asking | Stage::Ending if !done => {
                self.refused(now, answer, room);
            }
            Stage::Offering => self.offered(now, answer, room),
            Stage::Answering => self.answer_came(now, answer, room),
            Stage::Accepting => self.accepted(now, room),
            Stage::Asking if self.waits == 0 => self.dial(now, room),
            Stage::Ending if self.waits == 0 => self.ended(now, room),
            _ => {}
        }
    }

    /// A command of the call was refused: the call is begun anew, unless that was tried often enough.
    fn refused(&mut self, now: Time, answer: &Answer, room: &mut Room<'_>) {
        let what = format!("{}: {:?} in {:?} answered {}", self.ends[0].name, answer.verb, self.stage, answer.code);
        let set_up = matches!(self.stage, Stage::Offering | Stage::Answering | Stage::Accepting);
        if set_up && self.attempts < ATTEMPTS && now < room.plan.until {
            self.attempts += 1;
            room.tally.last_refusal = what;
            self.enter(Stage::Again);
            self.due = now + AGAIN;
            return;
        }
        self.wrong.get_or_insert(what);
        if self.stage == Stage::Ending {
            if self.waits == 0 {
                self.ended(now, room);
            }
        } else if set_up {
            self.ended(now, room);
        } else {
            self.end(now, room);
        }
    }

    fn begin(&mut self, now: Time, room: &mut Room<'_>) {
        self.calls += 1;
        self.wrong = None;
        self.directions = [Direction::default(), Direction::default()];
        for end in &mut self.ends {
            (end.connection, end.description, end.notified) = Default::default();
        }
        self.way = None;
        if !room.plan.impairment.is_none() {
            match Way::open(room.plan.addresses) {
                Ok(way) => self.way = Some(way),
                Err(error) => self.wrong = Some(format!("no ports for the way between the gateways: {error}")),
            }
        }
        self.enter(Stage::Offering);
        let parameters = format!("{}{}M: recvonly\r\n", self.call(), options(room.plan));
        self.send(now, room, 0, Verb::Crcx, &parameters);
    }

    fn offered(&mut self, now: Time, answer: &Answer, room: &mut Room<'_>) {
        self.keep(0, answer, room);
        self.enter(Stage::Answering);
        let parameters = format!("{}{}M: sendrecv\r\n\r\n{}", self.call(), options(room.plan), self.passed_on(0));
        self.send(now, room, 1, Verb::Crcx, &parameters);
    }

    fn answer_came(&mut self, now: Time, answer: &Answer, room: &mut Room<'_>) {
        self.keep(1, answer, room);
        self.enter(Stage::Accepting);
        let description = self.passed_on(1);
        let parameters = format!("{}I: {}\r\nM: sendrecv\r\n\r\n{description}", self.call(), self.ends[0].connection);
        self.send(now, room, 0, Verb::Mdcx, &parameters);
    }

    fn accepted(&mut self, now: Time, room: &mut Room<'_>) {
        room.tally.set_up += 1;
        self.record(room);
        if room.plan.cut {
            return self.cut(now, room);
        }
        if room.plan.digits.is_none() {
            self.settle(now);
            return;
        }
        self.enter(Stage::Asking);
        let request = self.token + self.calls;
        self.both(now, room, |_, end| {
            let list = format!("D/[0-9*#A-D]@{}(N)", end.connection);
            (Verb::Rqnt, format!("X: {request:x}\r\nQ: process,loop\r\nR: {list}\r\n"))
        });
    }

    /// Begins to record what both ends hear.
    fn record(&self, room: &mut Room<'_>) {
        let Some(recorder) = &mut room.recorder else { return };
        for (end, letter) in self.ends.iter().zip(['a', 'b']) {
            if let Some(probe) = probe(room.trunks, end) {
                probe.insert(recorder.begin(room.tally.set_up, letter, &end.name));
            }
        }
    }

    fn dial(&mut self, now: Time, room: &mut Room<'_>) {
        let Some(digits) = room.plan.digits else { return };
        self.each(room, |probe| probe.dial(digits));
        self.enter(Stage::Dialling);
        let length = DIGIT * digits.as_slice().len() as u32;
        (self.due, self.stage_until) = (now + LOOK, now + length + DIGITS_WITHIN);
    }

    /// Whether both gateways told of all digits.
    fn look_at_digits(&mut self, now: Time, room: &mut Room<'_>) {
        self.due = now + LOOK;
        let Some(digits) = room.plan.digits else { return };
        let wanted = String::from_utf8_lossy(digits.as_slice()).to_ascii_lowercase();
        let heard = self.ends.iter().all(|end| end.notified == wanted);
        if !heard && now < self.stage_until {
            return;
        }
        if heard {
            room.tally.digits += 2 * wanted.len() as u64;
        } else {
            let told = self.ends.each_ref().map(|end| end.notified.as_str());
            self.wrong.get_or_insert(format!("{}: digits {wanted} were notified as {told:?}", self.ends[0].name));
        }
        self.settle(now);
    }

    fn settle(&mut self, now: Time) {
        self.enter(Stage::Settling);
        self.due = now + SETTLE;
    }

    fn look_at_delays(&mut self, room: &mut Room<'_>) {
        for side in 0..2 {
            let (here, there) = (&self.ends[side], &self.ends[1 - side]);
            let Some((mine, other)) = two(room.trunks, (here.trunk, here.channel), (there.trunk, there.channel)) else { continue };
            while let Some(delay) = mine.delay_from(other, room.places) {
                self.directions[side].note_delay(delay);
                if room.plan.signal == Signal::Pattern {
                    break;
                }
            }
        }
    }

    fn listen_for_the_last_time(&mut self, room: &mut Room<'_>) {
        for (end, direction) in self.ends.iter().zip(&mut self.directions) {
            if let Some(probe) = probe(room.trunks, end) {
                direction.heard = probe.heard();
                direction.errors = probe.errors();
                probe.rest();
            }
        }
    }

    fn end(&mut self, now: Time, room: &mut Room<'_>) {
        self.each(room, Probe::rest);
        self.enter(Stage::Ending);
        let call = self.call();
        self.both(now, room, |_, end| (Verb::Dlcx, format!("{call}I: {}\r\n", end.connection)));
    }

    /// Ends the call before it was judged.
    fn cut(&mut self, now: Time, room: &mut Room<'_>) {
        self.cut = true;
        self.end(now, room);
    }

    fn ended(&mut self, now: Time, room: &mut Room<'_>) {
        let lost = self.way.take().map_or(0, |way| way.lost);
        if let Some(recorder) = &mut room.recorder {
            self.ends.iter().filter_map(|end| probe(room.trunks, end)?.eject()).for_each(|tape| recorder.end(tape));
        }
        if std::mem::take(&mut self.cut) && self.wrong.is_none() {
            room.tally.cut += 1;
            self.enter(Stage::Over);
            return;
        }
        room.tally.call(room.plan, &self.ends[0].name, &self.directions, self.wrong.take(), lost);
        self.attempts = 0;
        self.enter(Stage::Again);
        self.due = now + SETTLE;
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.due, self.waits) = (stage, Time::NEVER, 0);
        self.round = (self.round + 1) % ROUNDS;
    }

    /// The token of a command to a side in this stage.
    fn token_of(&self, side: usize) -> u32 {
        self.token + 2 * self.round + side as u32
    }

    fn keep(&mut self, side: usize, answer: &Answer, room: &Room<'_>) {
        let is_protected = answer.description.as_deref().is_some_and(|description| description.contains(" RTP/SAVP "));
        if room.plan.srtp && !is_protected {
            self.wrong.get_or_insert(format!("{}: its media is not protected", self.ends[side].name));
        }
        if let Some(end) = self.ends.get_mut(side) {
            end.connection = answer.connection.clone().unwrap_or_default();
            end.description = answer.description.clone().unwrap_or_default();
        }
    }

    /// The description of a side, as the other one is told it.
    fn passed_on(&mut self, side: usize) -> String {
        let description = &self.ends[side].description;
        match &mut self.way {
            Some(way) => way.through(side, description).unwrap_or_else(|| description.clone()),
            None => description.clone(),
        }
    }

    fn call(&self) -> String {
        format!("C: {:x}\r\n", u64::from(self.token + 1) << 32 | u64::from(self.calls))
    }

    fn send(&mut self, now: Time, room: &mut Room<'_>, side: usize, verb: Verb, parameters: &str) {
        let (end, token) = (&self.ends[side], self.token_of(side));
        if room.desk.send(now, end.gateway, token, verb, &end.name, parameters) {
            self.waits += 1;
        } else {
            self.wrong.get_or_insert(format!("{}: no room for a command", end.name));
            self.due = now + AGAIN;
        }
    }

    /// The same command to both ends.
    fn both(&mut self, now: Time, room: &mut Room<'_>, command: impl Fn(usize, &End) -> (Verb, String)) {
        for side in 0..2 {
            let (verb, parameters) = command(side, &self.ends[side]);
            self.send(now, room, side, verb, &parameters);
        }
    }

    fn each(&self, room: &mut Room<'_>, act: impl Fn(&mut Probe)) {
        for end in &self.ends {
            probe(room.trunks, end).into_iter().for_each(&act);
        }
    }
}

impl End {
    fn is_named(&self, local: &str) -> bool {
        self.name.split('@').next().is_some_and(|name| name.eq_ignore_ascii_case(local))
    }
}

/// The options of a connection.
fn options(plan: &Plan) -> String {
    let mut line = format!("L: p:{}, a:{}", plan.period_ms, plan.coding);
    let _ = line.write_str(if plan.digits.is_some() { ";telephone-event\r\n" } else { "\r\n" });
    line
}

fn probe<'t>(trunks: &'t mut [Trunk<Probes>], end: &End) -> Option<&'t mut Probe> {
    trunks.get_mut(end.trunk)?.bank_mut().list.get_mut(end.channel)
}

/// Two channels of different trunks.
fn two(trunks: &mut [Trunk<Probes>], one: (usize, usize), other: (usize, usize)) -> Option<(&mut Probe, &mut Probe)> {
    let [first, second] = trunks.get_disjoint_mut([one.0, other.0]).ok()?;
    Some((first.bank_mut().list.get_mut(one.1)?, second.bank_mut().list.get_mut(other.1)?))
}

#[cfg(test)]
mod tests;
