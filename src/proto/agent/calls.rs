//! The calls: which endpoint carries what, which command is next, what a response means for its call.
//!
//! An endpoint carries at most one call and has at most one command outstanding, so that every response can be checked against
//! what must be true. A call is CreateConnection (recvonly), ModifyConnection (remote description, sendrecv), a hold, and
//! DeleteConnection. After a failure the endpoint is cleaned by a DeleteConnection that names only the endpoint.
//!
//! Invariants: an endpoint stands in at most one queue, and in none while a command for it is outstanding; `held` is in the order
//! of its deadlines because every hold is equally long.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::check::{self, Failure};
use super::rules::{Broken, Rule};
use super::text::Text;
use super::transactions::Request;
use crate::proto::base::{HexId, Rng, Time};
use crate::proto::codec::mgcp::{Response, Verb};

/// An endpoint that could not be cleaned this often in a row is left alone.
const CLEANINGS_MAX: u8 = 5;

/// What the agent does with its endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Calls.
    Call,
    /// Audits of endpoints, and of the connections of standing calls.
    Audit,
    /// One audit to three commands of calls.
    Mixed,
}

/// A command for an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// CreateConnection.
    Create(u32),
    /// ModifyConnection.
    Modify(u32),
    /// DeleteConnection of the call's connection.
    Delete(u32),
    /// DeleteConnection of whatever is on the endpoint.
    Clean(u32),
    /// AuditEndpoint.
    AuditEndpoint(u32),
    /// AuditConnection.
    AuditConnection(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Creating,
    Created,
    Modifying,
    Up,
    Deleting,
    Dirty,
    Cleaning,
    Auditing,
    AuditingConnection,
    /// Could not be cleaned; not used any more.
    Down,
}

struct Line {
    name_at: usize,
    name_length: usize,
    state: State,
    standing: bool,
    cleanings: u8,
    call: HexId,
    connection: HexId,
    /// The connection before, whose identifier must not come again.
    previous: HexId,
    /// The connection named by a provisional response.
    provisional: HexId,
    due: Time,
    /// The number of the latest request for events; 0 for none.
    request: u32,
    /// Whether a NotificationRequest is outstanding, and whether another is to follow it.
    requesting: bool,
    owes_request: bool,
}

/// All endpoints of the agent.
pub struct Calls {
    lines: Vec<Line>,
    names: Vec<u8>,
    hold: Duration,
    call_prefix: u32,
    calls_started: u32,
    audits: u32,
    rng: Rng,
    free: VecDeque<u32>,
    created: VecDeque<u32>,
    held: VecDeque<u32>,
    standing: VecDeque<u32>,
    dirty: VecDeque<u32>,
    down: usize,
    /// The events each call asks for; empty for none.
    events: Vec<u8>,
    requests: u32,
    /// Places by local name in lower case, when events are asked for.
    by_name: BTreeMap<Vec<u8>, u32>,
    broken: Broken,
}

impl Calls {
    /// No calls on the endpoints `names`, each `local@domain`; calls last `hold`.
    pub fn new(names: &[String], hold: Duration, mut rng: Rng) -> Calls {
        let mut bytes = Vec::with_capacity(names.iter().map(String::len).sum());
        let mut lines = Vec::with_capacity(names.len());
        for name in names {
            lines.push(Line {
                name_at: bytes.len(),
                name_length: name.len(),
                state: State::Free,
                standing: false,
                cleanings: 0,
                call: HexId::NONE,
                connection: HexId::NONE,
                previous: HexId::NONE,
                provisional: HexId::NONE,
                due: Time::ZERO,
                request: 0,
                requesting: false,
                owes_request: false,
            });
            bytes.extend_from_slice(name.as_bytes());
        }
        let queue = || VecDeque::with_capacity(lines.len());
        let (created, held, standing, dirty) = (queue(), queue(), queue(), queue());
        let mut free: VecDeque<u32> = (0..lines.len() as u32).collect();
        for i in (1..free.len()).rev() {
            free.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let call_prefix = rng.next() as u32;
        let (events, by_name, broken) = (Vec::new(), BTreeMap::new(), Broken::default());
        let counters = (0, 0, 0, 0);
        let (calls_started, audits, down, requests) = counters;
        Calls {
            lines,
            names: bytes,
            hold,
            call_prefix,
            calls_started,
            audits,
            rng,
            free,
            created,
            held,
            standing,
            dirty,
            down,
            events,
            requests,
            by_name,
            broken,
        }
    }

    /// Each call asks for these events, as `R:` writes them, and after a Notify for them again.
    pub fn ask_for(&mut self, events: &str) {
        self.events = events.as_bytes().to_vec();
        let local = |index: u32| self.name(index).split(|&byte| byte == b'@').next().unwrap_or_default().to_ascii_lowercase();
        self.by_name = (0..self.lines.len() as u32).map(|index| (local(index), index)).collect();
    }

    /// Whether calls ask for events.
    pub fn asks(&self) -> bool {
        !self.events.is_empty()
    }

    /// Breaks these rules.
    pub fn break_rules(&mut self, broken: Broken) {
        self.broken = broken;
    }

    /// The endpoint with this local name, when `request` is the one it was last asked with: what a Notify is about (4.4.4 rule 4).
    pub fn notified(&self, local: &[u8], request: &[u8]) -> Option<u32> {
        let mut lower = [0; 256];
        let lower = lower.get_mut(..local.len())?;
        lower.copy_from_slice(local);
        lower.make_ascii_lowercase();
        let index = *self.by_name.get(&*lower)?;
        let line = self.lines.get(index as usize)?;
        let mut digits = [0; 10];
        (line.request != 0 && number(line.request, &mut digits) == request).then_some(index)
    }

    /// Hands the next NotificationRequest of endpoint `index` to `send`, unless one is outstanding: then it follows that (4.4.4 rule 4).
    pub fn with_next_request(&mut self, index: u32, again: bool, send: impl FnOnce(&Request<'_>) -> bool) -> bool {
        let Some(line) = self.lines.get_mut(index as usize) else { return false };
        if (line.requesting || line.state == State::Creating) && !again {
            line.owes_request = true;
            return false;
        }
        self.requests = self.requests.wrapping_add(1).max(1);
        (line.request, line.requesting, line.owes_request) = (self.requests, true, false);
        let mut digits = [0; 10];
        let parameters: [&[u8]; 5] = [b"X: ", number(self.requests, &mut digits), b"\r\nR: ", &self.events, b"\r\n"];
        let token = REQUEST_TOKENS + index;
        send(&Request { verb: Verb::Rqnt, token, intended: Time::NEVER, endpoint: self.name(index), parameters: &parameters })
    }

    /// The NotificationRequest of endpoint `index` has ended.
    pub fn request_ended(&mut self, index: u32) {
        if let Some(line) = self.lines.get_mut(index as usize) {
            line.requesting = false;
        }
    }

    /// Whether a request of endpoint `index` waited for a command with a request that has ended now.
    pub fn take_owed(&mut self, index: u32) -> bool {
        let Some(line) = self.lines.get_mut(index as usize) else { return false };
        let free = !line.requesting && line.state != State::Creating;
        free && std::mem::take(&mut line.owes_request)
    }

    /// An endpoint for a new call. With a request in it the call waits for the request before (4.4.4 rule 6).
    fn take_free(&mut self) -> Option<u32> {
        for _ in 0..self.free.len() {
            let index = self.free.pop_front()?;
            let waits = self.lines.get(index as usize).is_some_and(|line| line.requesting);
            if !waits || self.broken.has(Rule::Embedded) {
                return Some(index);
            }
            self.free.push_back(index);
        }
        None
    }

    /// How many endpoints.
    pub fn endpoints(&self) -> usize {
        self.lines.len()
    }

    /// How many standing calls are up and idle.
    pub fn standing(&self) -> usize {
        self.standing.len()
    }

    /// How many endpoints were given up.
    pub fn down(&self) -> usize {
        self.down
    }

    /// How many calls were begun.
    pub fn calls_started(&self) -> u32 {
        self.calls_started
    }

    /// How many calls are set up or being held now, standing ones not counted.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// When the next hold ends; [`Time::NEVER`] when nothing is held.
    pub fn next_due(&self) -> Time {
        self.held.front().and_then(|&i| self.lines.get(i as usize)).map_or(Time::NEVER, |line| line.due)
    }

    /// The name of endpoint `index`.
    pub fn name(&self, index: u32) -> &[u8] {
        let Some(line) = self.lines.get(index as usize) else { return &[] };
        self.names.get(line.name_at..line.name_at + line.name_length).unwrap_or_default()
    }

    /// Takes the next command of `scenario`; `None` when no endpoint is ready for one.
    pub fn take_step(&mut self, now: Time, scenario: Scenario) -> Option<Step> {
        match scenario {
            Scenario::Call => self.take_call_step(now),
            Scenario::Audit => self.take_cleaning().or_else(|| self.take_audit_step()),
            Scenario::Mixed if self.rng.below(4) == 0 => self.take_audit_step().or_else(|| self.take_call_step(now)),
            Scenario::Mixed => self.take_call_step(now).or_else(|| self.take_audit_step()),
        }
    }

    /// Takes the next command that sets up a standing call; `create` says whether another one may begin.
    pub fn take_standing_step(&mut self, create: bool) -> Option<Step> {
        if let Some(index) = self.created.pop_front() {
            return self.step(index, State::Modifying, Step::Modify);
        }
        let index = if create { self.take_free()? } else { return None };
        if let Some(line) = self.lines.get_mut(index as usize) {
            line.standing = true;
        }
        self.step(index, State::Creating, Step::Create)
    }

    /// Takes the next command that ends what is up.
    pub fn take_closing_step(&mut self) -> Option<Step> {
        let cleaning = self.take_cleaning();
        if cleaning.is_some() {
            return cleaning;
        }
        let index = self.created.pop_front().or_else(|| self.held.pop_front()).or_else(|| self.standing.pop_front())?;
        self.step(index, State::Deleting, Step::Delete)
    }

    /// Takes an audit of endpoint `index`, whatever it carries, at the end when nothing is outstanding.
    pub fn take_final_audit(&mut self, index: u32) -> Option<Step> {
        self.step(index, State::Auditing, Step::AuditEndpoint)
    }

    /// Hands the request of `step` to `send`.
    pub fn with_request(&mut self, step: Step, intended: Time, send: impl FnOnce(&Request<'_>) -> bool) -> bool {
        let (Step::Create(token)
        | Step::Modify(token)
        | Step::Delete(token)
        | Step::Clean(token)
        | Step::AuditEndpoint(token)
        | Step::AuditConnection(token)) = step;
        if let (Step::Create(_), Some(line)) = (step, self.lines.get_mut(token as usize)) {
            self.calls_started = self.calls_started.wrapping_add(1);
            line.call = HexId::from_u64(u64::from(self.call_prefix) << 32 | u64::from(self.calls_started), 16);
            line.provisional = HexId::NONE;
            if !self.events.is_empty() {
                self.requests = self.requests.wrapping_add(1).max(1);
                (line.request, line.owes_request) = (self.requests, false);
            }
        }
        let Some(line) = self.lines.get(token as usize) else { return false };
        let mut digits = [0; 10];
        let asked = number(line.request, &mut digits);
        let (mut call, mut connection) = ([0; HexId::MAX], [0; HexId::MAX]);
        let (call, connection, port) = (line.call.text(&mut call), line.connection.text(&mut connection), port(token));
        let endpoint = self.name(token);
        let request = |verb, parameters: &[&[u8]]| send(&Request { verb, token, intended, endpoint, parameters });
        match step {
            Step::Create(_) if !self.events.is_empty() => {
                request(Verb::Crcx, &[b"C: ", call, b"\r\nL: p:20, a:PCMU\r\nM: recvonly\r\nX: ", asked, b"\r\nR: ", &self.events, b"\r\n"])
            }
            Step::Create(_) => request(Verb::Crcx, &[b"C: ", call, b"\r\nL: p:20, a:PCMU\r\nM: recvonly\r\n"]),
            Step::Modify(_) => request(
                Verb::Mdcx,
                &[
                    b"C: ",
                    call,
                    b"\r\nI: ",
                    connection,
                    b"\r\nM: sendrecv\r\n\r\nv=0\r\no=- ",
                    &port,
                    b" 1 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\nt=0 0\r\nm=audio ",
                    &port,
                    b" RTP/AVP 0\r\na=ptime:20\r\n",
                ],
            ),
            Step::Delete(_) => request(Verb::Dlcx, &[b"C: ", call, b"\r\nI: ", connection, b"\r\n"]),
            Step::Clean(_) => request(Verb::Dlcx, &[]),
            Step::AuditEndpoint(_) if self.audits.is_multiple_of(4) => request(Verb::Auep, &[b"F: X, N, R, S, T, I, O, ES, RM, RD, E\r\n"]),
            Step::AuditEndpoint(_) => request(Verb::Auep, &[b"F: I\r\n"]),
            Step::AuditConnection(_) => request(Verb::Aucx, &[b"I: ", connection, b"\r\nF: C, M, P\r\n"]),
        }
    }

    /// A provisional response has arrived for endpoint `index`.
    pub fn handle_provisional(&mut self, index: u32, response: &Response<'_>) {
        match self.lines.get_mut(index as usize) {
            Some(line) if line.state == State::Creating => line.provisional = response.connection().unwrap_or(HexId::NONE),
            _ => {}
        }
    }

    /// The command outstanding for endpoint `index` has its final response, or none (`None`) and never will.
    pub fn handle_final(&mut self, now: Time, index: u32, response: Option<&Response<'_>>) -> Result<(), Failure> {
        let Some(line) = self.lines.get_mut(index as usize) else { return Ok(()) };
        let Some(response) = response else {
            match line.state {
                State::Auditing | State::AuditingConnection => self.settle_audit(index),
                _ => self.soil(index),
            }
            return Err(Failure::NoFinalResponse);
        };
        let done = (200..300).contains(&response.code);
        let refusal = if response.code >= 500 { Err(Failure::UnexpectedCode) } else { Ok(()) };
        match (line.state, done) {
            (State::Creating, true) => match check::created(response, line.previous, line.provisional) {
                Ok(connection) => {
                    line.connection = connection;
                    line.state = State::Created;
                    self.created.push_back(index);
                    Ok(())
                }
                Err(failure) => {
                    self.soil(index);
                    Err(failure)
                }
            },
            (State::Creating, false) => {
                self.release(index);
                refusal
            }
            (State::Modifying, true) => {
                line.state = State::Up;
                if line.standing {
                    self.standing.push_back(index);
                } else {
                    line.due = now + self.hold;
                    self.held.push_back(index);
                }
                Ok(())
            }
            (State::Modifying, false) => {
                line.state = State::Up;
                line.due = now;
                self.held.push_front(index);
                refusal
            }
            (State::Deleting, true) => {
                self.release(index);
                check::deleted(response)
            }
            (State::Cleaning, true) => {
                self.release(index);
                Ok(())
            }
            (State::Deleting | State::Cleaning, false) => {
                self.soil(index);
                refusal
            }
            (state @ (State::Auditing | State::AuditingConnection), done) => {
                let (call, connection) = (line.call, line.connection);
                self.settle_audit(index);
                match (done, state) {
                    (false, _) => refusal,
                    (true, State::Auditing) => check::audited(response, connection),
                    (true, _) => check::connection_audited(response, call),
                }
            }
            _ => Ok(()),
        }
    }

    fn take_call_step(&mut self, now: Time) -> Option<Step> {
        if let Some(step) = self.take_cleaning() {
            return Some(step);
        }
        if self.next_due() <= now {
            let index = self.held.pop_front()?;
            return self.step(index, State::Deleting, Step::Delete);
        }
        if let Some(index) = self.created.pop_front() {
            return self.step(index, State::Modifying, Step::Modify);
        }
        let index = self.take_free()?;
        self.step(index, State::Creating, Step::Create)
    }

    /// Gives back the CreateConnection that was taken and not sent; the call is not begun.
    pub fn give_back(&mut self, index: u32) {
        if let Some(line) = self.lines.get_mut(index as usize)
            && line.state == State::Creating
        {
            line.state = State::Free;
            self.free.push_back(index);
        }
    }

    fn take_cleaning(&mut self) -> Option<Step> {
        let index = self.dirty.pop_front()?;
        self.step(index, State::Cleaning, Step::Clean)
    }

    fn take_audit_step(&mut self) -> Option<Step> {
        self.audits = self.audits.wrapping_add(1);
        let of_standing = !self.audits.is_multiple_of(3);
        let index = match of_standing {
            true => self.standing.pop_front().or_else(|| self.free.pop_front())?,
            false => self.free.pop_front().or_else(|| self.standing.pop_front())?,
        };
        let is_up = self.lines.get(index as usize).is_some_and(|line| !line.connection.is_none());
        if is_up && self.audits % 3 == 1 {
            self.step(index, State::AuditingConnection, Step::AuditConnection)
        } else {
            self.step(index, State::Auditing, Step::AuditEndpoint)
        }
    }

    fn step(&mut self, index: u32, state: State, step: fn(u32) -> Step) -> Option<Step> {
        self.lines.get_mut(index as usize)?.state = state;
        Some(step(index))
    }

    /// The endpoint carries nothing any more.
    fn release(&mut self, index: u32) {
        if let Some(line) = self.lines.get_mut(index as usize) {
            if !line.connection.is_none() {
                line.previous = line.connection;
            }
            line.connection = HexId::NONE;
            line.standing = false;
            line.cleanings = 0;
            line.state = State::Free;
            self.free.push_back(index);
        }
    }

    /// Nobody knows what the endpoint carries.
    fn soil(&mut self, index: u32) {
        if let Some(line) = self.lines.get_mut(index as usize) {
            line.standing = false;
            if line.state == State::Cleaning {
                line.cleanings += 1;
            }
            if line.cleanings >= CLEANINGS_MAX {
                line.state = State::Down;
                line.connection = HexId::NONE;
                self.down += 1;
            } else {
                line.state = State::Dirty;
                self.dirty.push_back(index);
            }
        }
    }

    fn settle_audit(&mut self, index: u32) {
        if let Some(line) = self.lines.get_mut(index as usize) {
            if line.connection.is_none() {
                line.state = State::Free;
                self.free.push_back(index);
            } else {
                line.state = State::Up;
                self.standing.push_back(index);
            }
        }
    }
}

/// The tokens from here up are of NotificationRequests for the endpoint with this place.
pub const REQUEST_TOKENS: u32 = u32::MAX / 4;

/// A request identifier: decimal digits, which are hexadecimal too.
fn number(value: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut text = Text::new(digits);
    text.number(value);
    let length = text.len();
    digits.get(..length).unwrap_or_default()
}

/// The RTP port of the far end of the call on endpoint `index`: even, five digits.
fn port(index: u32) -> [u8; 5] {
    let port = 10_000 + 2 * (index % 20_000);
    [10_000, 1_000, 100, 10, 1].map(|unit| b'0' + (port / unit % 10) as u8)
}
