//! Who of a pair of central nodes leads: a lease in a store that both can reach, whose revision is the epoch (R42, I9).
//!
//! The store (etcd) gives a lease to one at a time and forgets it when it is not renewed. This machine asks for it, renews it, and says
//! when it is over: the holder counts from the moment it sent what was answered, the store from when it received it, so the holder is
//! always the first to know (R37). Nothing here knows what the store is; every answer may be lost, late or come twice.

use crate::proto::base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The lease is this one's since that attempt, with this revision.
    Acquired {
        /// That of the action.
        attempt: u64,
        /// The revision.
        epoch: u64,
    },
    /// Another holds it.
    Held {
        /// That of the action.
        attempt: u64,
    },
    /// It is renewed.
    Renewed {
        /// That of the action.
        attempt: u64,
    },
    /// The store knows no such lease any more.
    Gone {
        /// That of the action.
        attempt: u64,
    },
    /// The store does not answer, or with something else.
    Failed {
        /// That of the action.
        attempt: u64,
    },
    /// A gateway has seen a higher epoch: another one leads, or led.
    Deposed,
    /// The process ends: the other one need not wait.
    Resign,
    /// Nothing but time.
    Time,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Ask the store for the lease.
    Acquire {
        /// The answer repeats it.
        attempt: u64,
    },
    /// Ask it to let the lease go on.
    Renew {
        /// The answer repeats it.
        attempt: u64,
    },
    /// Give the lease back.
    Release,
    /// Lead in this epoch, up to then.
    Lead {
        /// The epoch.
        epoch: u64,
        /// The end, unless it is extended.
        until: Time,
    },
    /// Lead up to then.
    Extend {
        /// The end, unless it is extended again.
        until: Time,
    },
    /// Lead no more.
    StepDown,
    /// Operators should know: whether the store answers.
    Store {
        /// Whether it does.
        answers: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next attempt comes then.
    Waiting(Time),
    /// An attempt is under way, sent then.
    Acquiring(Time),
    /// It leads up to then; what comes next comes then; when the renewal under way was sent.
    Leading { until: Time, next: Time, sent: Option<Time> },
}

/// One of the two.
#[derive(Debug)]
pub struct Lease {
    length: Duration,
    state: State,
    attempt: u64,
    answers: Option<bool>,
    actions: VecDeque<Action>,
}

impl Lease {
    /// One that does not lead, for leases of this length.
    pub fn new(now: Time, length: Duration) -> Lease {
        Lease { length, state: State::Waiting(now), attempt: 0, answers: None, actions: VecDeque::new() }
    }

    /// Whether it leads, as far as it knows.
    pub fn leads(&self) -> bool {
        matches!(self.state, State::Leading { .. })
    }

    /// Whether the store answered the last attempt; `None` before the first.
    pub fn store_answers(&self) -> Option<bool> {
        self.answers
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Lease::step`] at the latest.
    pub fn deadline(&self) -> Time {
        match self.state {
            State::Waiting(at) => at,
            State::Acquiring(sent) => sent + self.patience(),
            State::Leading { until, next, .. } => until.min(next),
        }
    }

    /// How long an answer is waited for.
    fn patience(&self) -> Duration {
        self.length / 3
    }

    /// Between two looks whether the lease is free, and between two renewals when one has failed.
    fn pause(&self) -> Duration {
        self.length / 8
    }

    /// The end of a lease asked for at `sent`: some of it is left out, as clocks do not run equally fast.
    fn end(&self, sent: Time) -> Time {
        sent + (self.length - self.length / 10)
    }

    /// One event.
    pub fn step(&mut self, now: Time, event: Event) {
        if let State::Leading { until, .. } = self.state
            && until <= now
        {
            self.over(now, self.pause());
        }
        match (event, self.state) {
            (Event::Acquired { attempt, epoch }, State::Acquiring(sent)) if attempt == self.attempt => {
                self.heard(true);
                let until = self.end(sent);
                if until <= now {
                    return self.over(now, self.pause());
                }
                self.state = State::Leading { until, next: sent + self.patience(), sent: None };
                self.actions.push_back(Action::Lead { epoch, until });
            }
            (Event::Held { attempt }, State::Acquiring(_)) if attempt == self.attempt => {
                self.heard(true);
                self.state = State::Waiting(now + self.pause());
            }
            (Event::Renewed { attempt }, State::Leading { until, sent: Some(sent), .. }) if attempt == self.attempt => {
                self.heard(true);
                let until = until.max(self.end(sent));
                self.state = State::Leading { until, next: sent + self.patience(), sent: None };
                self.actions.push_back(Action::Extend { until });
            }
            (Event::Gone { attempt }, State::Leading { sent: Some(_), .. }) if attempt == self.attempt => {
                self.heard(true);
                self.over(now, self.pause());
            }
            (Event::Failed { attempt }, State::Acquiring(_)) if attempt == self.attempt => {
                self.heard(false);
                self.state = State::Waiting(now + self.pause());
            }
            (Event::Failed { attempt }, State::Leading { until, sent: Some(_), .. }) if attempt == self.attempt => {
                self.heard(false);
                self.state = State::Leading { until, next: now + self.pause(), sent: None };
            }
            (Event::Deposed, State::Leading { .. }) => self.over(now, self.length),
            // Whatever it held or was about to hold it gives back; nothing is begun any more.
            (Event::Resign, _) => {
                self.over(now, self.pause());
                self.state = State::Waiting(Time::NEVER);
            }
            _ => {}
        }
        self.due(now);
    }

    fn due(&mut self, now: Time) {
        match self.state {
            State::Waiting(at) if at <= now => {
                self.attempt += 1;
                self.state = State::Acquiring(now);
                self.actions.push_back(Action::Acquire { attempt: self.attempt });
            }
            State::Acquiring(sent) if sent + self.patience() <= now => {
                self.heard(false);
                self.state = State::Waiting(now + self.pause());
            }
            State::Leading { until, next, sent } if next <= now => {
                if sent.is_some() {
                    self.heard(false);
                }
                self.attempt += 1;
                self.state = State::Leading { until, next: now + self.patience(), sent: Some(now) };
                self.actions.push_back(Action::Renew { attempt: self.attempt });
            }
            _ => {}
        }
    }

    fn heard(&mut self, answers: bool) {
        if self.answers != Some(answers) {
            self.answers = Some(answers);
            self.actions.push_back(Action::Store { answers });
        }
    }

    fn over(&mut self, now: Time, pause: Duration) {
        if self.leads() {
            self.actions.push_back(Action::StepDown);
        }
        self.actions.push_back(Action::Release);
        self.state = State::Waiting(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(3);

    fn actions(lease: &mut Lease) -> Vec<Action> {
        std::iter::from_fn(|| lease.poll()).filter(|action| !matches!(action, Action::Store { .. })).collect()
    }

    fn leading(now: Time) -> Lease {
        let mut lease = Lease::new(now, LENGTH);
        lease.step(now, Event::Time);
        assert_eq!(actions(&mut lease), [Action::Acquire { attempt: 1 }]);
        lease.step(now, Event::Acquired { attempt: 1, epoch: 7 });
        assert_eq!(actions(&mut lease), [Action::Lead { epoch: 7, until: now + Duration::from_millis(2_700) }]);
        lease
    }

    /// R37: the lease is counted from the moment its renewal was sent, however late the answer comes.
    #[test]
    fn a_lease_is_over_before_the_store_forgets_it() {
        let start = Time::from_millis(1_000);
        let mut lease = leading(start);
        let renew = lease.deadline();
        assert_eq!(renew, Time::from_millis(2_000));
        lease.step(renew, Event::Time);
        assert_eq!(actions(&mut lease), [Action::Renew { attempt: 2 }]);
        lease.step(renew + Duration::from_millis(900), Event::Renewed { attempt: 2 });
        assert_eq!(actions(&mut lease)[0], Action::Extend { until: Time::from_millis(4_700) });
        // Nothing answers any more: it steps down before the three seconds since then are over.
        let mut now = renew;
        while lease.leads() {
            now = lease.deadline();
            lease.step(now, Event::Time);
        }
        assert_eq!(now, Time::from_millis(4_700));
        assert!(actions(&mut lease).contains(&Action::StepDown));
    }

    /// Race 18: it stood still for longer than its lease, and the first thing that it does is to step down.
    #[test]
    fn whoever_stood_still_for_longer_than_its_lease_leads_no_more() {
        let start = Time::from_millis(1_000);
        let mut lease = leading(start);
        lease.step(start + Duration::from_secs(60), Event::Renewed { attempt: 1 });
        assert_eq!(actions(&mut lease), [Action::StepDown, Action::Release]);
    }

    /// An answer that comes after its time, or to another attempt, gives nothing.
    #[test]
    fn a_late_answer_gives_no_lease() {
        let start = Time::from_millis(1_000);
        let mut lease = Lease::new(start, LENGTH);
        lease.step(start, Event::Time);
        lease.step(start + Duration::from_secs(1), Event::Time);
        lease.step(start + Duration::from_millis(1_001), Event::Acquired { attempt: 1, epoch: 7 });
        assert!(!lease.leads());
        let mut lease = leading(start);
        lease.step(start, Event::Gone { attempt: 9 });
        assert!(lease.leads());
        lease.step(start, Event::Resign);
        assert_eq!(actions(&mut lease), [Action::StepDown, Action::Release]);
        assert_eq!(lease.deadline(), Time::NEVER);
    }
}
