//! One trunk as the agent sees it: where its script stands, and what has come meanwhile.

use super::script::{Script, Step, Values};
use crate::proto::base::{HexId, Time};
use crate::proto::codec::mgcp::Verb;
use std::collections::VecDeque;
use std::time::Duration;

/// The most events that wait for their step; more is a gateway that babbles.
const INBOX_MAX: usize = 64;
/// An event must come so soon: longer than any guard timer of a trunk at its default, but for those of calls that are up.
const EVENT_WITHIN: Duration = Duration::from_secs(50);

/// What a trunk is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// It is brought to rest.
    Reset,
    /// Nothing.
    Rest,
    /// A call; the number is its place in the list of the kind.
    Call(u16),
    /// It is audited at the end.
    Audit,
    /// It could not be brought to rest.
    Down,
}

/// What a script waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Nothing,
    /// The order to the far end.
    Far,
    /// The final response.
    Final,
    Event,
    Time,
}

/// What is to be done for a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Act {
    /// Order this of the far end.
    Far(String),
    /// Send a command with these parameters.
    Send(Verb, String),
    /// Nothing until something comes, or the line's time is over.
    Wait,
    /// The script is over.
    Done,
    /// The call went otherwise than it should.
    Wrong(String),
    /// The gateway refused a command with this code.
    Refused(u16),
}

/// What came for a line.
#[derive(Clone, Debug)]
pub(super) enum Input<'a> {
    /// The far end was told, or could not be told why.
    Far(Result<(), &'a str>),
    /// The final response: its code and the connection it names; 0 when there is none and never will be.
    Final(u16, Option<HexId>),
    /// The connections of an audit and the events of its `ES`.
    Audited(bool),
}

/// One trunk.
pub(super) struct Line {
    pub name: String,
    pub usage: Use,
    pub values: Values,
    pub previous: HexId,
    /// How often in a row it could not be brought to rest.
    pub resets: u8,
    /// When the script goes on by itself or has waited too long; [`Time::NEVER`] when it waits for a response or the far end.
    pub due: Time,
    /// When its call began.
    pub began: Time,
    script: Script,
    /// Digits of [`Step::Digits`] that came.
    digits: usize,
    wait: Wait,
    inbox: VecDeque<String>,
    /// What the far end was told last to do of its own accord.
    behaviour: &'static str,
}

impl Line {
    pub fn new(name: String, package: &'static str) -> Line {
        let values = Values { package, call: HexId::NONE, connection: HexId::NONE, request: 0, digits: *b"0000" };
        Line {
            name,
            usage: Use::Down,
            values,
            previous: HexId::NONE,
            resets: 0,
            due: Time::NEVER,
            began: Time::ZERO,
            script: &[],
            digits: 0,
            wait: Wait::Nothing,
            inbox: VecDeque::new(),
            behaviour: "",
        }
    }

    /// Begins a script.
    pub fn begin(&mut self, now: Time, usage: Use, script: Script) {
        (self.usage, self.script, self.wait, self.digits) = (usage, script, Wait::Nothing, 0);
        (self.began, self.due) = (now, Time::NEVER);
        if usage == Use::Reset {
            self.inbox.clear();
            self.behaviour = "";
        }
    }

    /// Events came that no script has asked for yet.
    pub fn take_event(&mut self, event: String) -> bool {
        if self.inbox.len() < INBOX_MAX {
            self.inbox.push_back(event);
        }
        self.wait == Wait::Event
    }

    /// Something came that the script waits for.
    pub fn take(&mut self, input: Input<'_>) -> Option<Act> {
        match (self.wait, self.script.first(), input) {
            (Wait::Far, _, Input::Far(Ok(()))) => self.advance(),
            (Wait::Far, _, Input::Far(Err(why))) => return Some(Act::Wrong(format!("the far end cannot be told: {why}"))),
            (Wait::Final, Some(Step::Idle), Input::Audited(true)) => self.advance(),
            (Wait::Final, Some(Step::Idle), Input::Audited(false)) => return Some(Act::Wrong("not idle".into())),
            (Wait::Final, Some(step), Input::Final(code, connection)) => match (step, code) {
                (_, 200..300) => {
                    self.values.connection = connection.unwrap_or(self.values.connection);
                    self.advance();
                }
                (_, 0) => return Some(Act::Wrong("no final response".into())),
                (Step::Try(_, _, others), code) => match others.iter().find(|(expected, _)| *expected == code) {
                    Some((_, script)) => self.go_on(script),
                    None => return Some(Act::Refused(code)),
                },
                (_, code) => return Some(Act::Refused(code)),
            },
            _ => return Some(Act::Wait),
        }
        None
    }

    /// The next thing to do. `hold` is how long a call is held.
    pub fn next(&mut self, now: Time, hold: Duration) -> Act {
        loop {
            let Some(step) = self.script.first() else { return self.end() };
            match (*step, self.wait) {
                (Step::Far(text), Wait::Nothing) => {
                    let far = text.starts_with("far ") || text.starts_with("echo ");
                    if far && std::mem::replace(&mut self.behaviour, text) == text {
                        self.advance();
                        continue;
                    }
                    self.wait = Wait::Far;
                    return Act::Far(self.values.fill(text));
                }
                (Step::Send(verb, text) | Step::Try(verb, text, _), Wait::Nothing) => return self.send(verb, &[text]),
                (Step::SendAll(verb, texts), Wait::Nothing) => return self.send(verb, texts),
                (Step::Idle, Wait::Nothing) => return self.send(Verb::Auep, &["F: I, ES\n"]),
                (Step::Hold, Wait::Nothing) => return self.pause(now + hold),
                (Step::Pause(ms), Wait::Nothing) => return self.pause(now + Duration::from_millis(ms)),
                (Step::Hold | Step::Pause(_), Wait::Time) if self.due <= now => self.advance(),
                (Step::Forget, _) => {
                    self.inbox.clear();
                    self.advance();
                }
                (Step::Expect(_) | Step::Either(_) | Step::Digits(_) | Step::Until(_), _) => match self.inbox.pop_front() {
                    Some(event) => {
                        if let Some(wrong) = self.meet(step, &event) {
                            return wrong;
                        }
                    }
                    None if self.wait == Wait::Event && self.due <= now => {
                        return Act::Wrong(format!("stuck: {EVENT_WITHIN:?} without {}", self.wanted()));
                    }
                    None => {
                        if self.wait != Wait::Event {
                            (self.wait, self.due) = (Wait::Event, now + EVENT_WITHIN);
                        }
                        return Act::Wait;
                    }
                },
                _ => return Act::Wait,
            }
        }
    }

    fn send(&mut self, verb: Verb, texts: &[&str]) -> Act {
        self.wait = Wait::Final;
        if texts.iter().any(|text| text.contains("{x}")) {
            self.values.request = self.values.request.wrapping_add(1);
        }
        Act::Send(verb, texts.iter().map(|text| self.values.fill(text)).collect())
    }

    fn pause(&mut self, until: Time) -> Act {
        (self.wait, self.due) = (Wait::Time, until);
        Act::Wait
    }

    /// An event meets the step that waits for one.
    fn meet(&mut self, step: &'static Step, event: &str) -> Option<Act> {
        let fits = |text: &str, values: &Values| values.fill(text).eq_ignore_ascii_case(event);
        match step {
            Step::Expect(text) if fits(text, &self.values) => self.advance(),
            Step::Until(text) => {
                if fits(text, &self.values) {
                    self.advance();
                }
            }
            Step::Either(events) => match events.iter().find(|(text, _)| fits(text, &self.values)) {
                Some((_, script)) => self.go_on(script),
                None => return Some(self.unexpected(event)),
            },
            Step::Digits(text) => {
                let digits = self.values.fill(text);
                let digit = digits.get(self.digits..=self.digits);
                if digit.is_none_or(|digit| !event.eq_ignore_ascii_case(&format!("D/{digit}"))) {
                    return Some(self.unexpected(event));
                }
                self.digits += 1;
                if self.digits == digits.len() {
                    self.advance();
                }
            }
            _ => return Some(self.unexpected(event)),
        }
        None
    }

    fn unexpected(&self, event: &str) -> Act {
        Act::Wrong(format!("{event} where {} should be", self.wanted()))
    }

    /// What the script waits for, in words.
    fn wanted(&self) -> String {
        match self.script.first() {
            Some(Step::Expect(text) | Step::Until(text) | Step::Digits(text)) => self.values.fill(text),
            Some(Step::Either(events)) => events.iter().map(|(text, _)| self.values.fill(text)).collect::<Vec<_>>().join(" or "),
            _ => "nothing".into(),
        }
    }

    fn end(&mut self) -> Act {
        match self.inbox.pop_front() {
            Some(event) => Act::Wrong(format!("{event} behind the end of the call")),
            None => Act::Done,
        }
    }

    fn advance(&mut self) {
        self.go_on(self.script.get(1..).unwrap_or_default());
    }

    fn go_on(&mut self, script: Script) {
        (self.script, self.wait, self.due, self.digits) = (script, Wait::Nothing, Time::NEVER, 0);
    }
}
