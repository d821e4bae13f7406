//! The controller's half of overload control (H.248.11): how fast a controller sets up calls at a gateway that says it is overloaded.
//!
//! The gateway answers a call set-up while it is overloaded with one notification: `ocp/mg_overload` for each Add, in MGCP a 409 or 101. The
//! throttle brings the rate of these notifications to a goal, and so the gateway to its full capacity, without knowing the capacity or
//! how many other controllers there are. One instance for each gateway; they share nothing.
//!
//! * **Initiation.** Some notifications within a second start it, at a low rate that is the same for every controller whatever it asks,
//!   so that all begin equal; the rate doubles quickly until notifications come again.
//! * **Restrictor.** A leaky bucket: each call fills it by one, it leaks at the rate; a call is refused when it would overflow.
//!   Priority calls may fill it further.
//! * **Adaptation.** Every notification takes a share off the rate, and time puts it back so fast that at the goal rate both balance:
//!   in the mean the notifications of each controller come at its goal, and since they come in proportion to its calls, controllers with
//!   one goal are admitted at one rate. Beside that, while notifications come, calls are held back for as long as they come: the
//!   gateway's queue then shrinks while it still works at full capacity.
//! * **No wind-up.** The rate never exceeds a multiple of what is asked.
//! * **Termination.** No notification and no refusal for some time.
//!
//! To drive it: [`Throttle::step`] with each call that is offered and each notification that comes in. It has no timers: time passes in
//! the steps. Every parameter can be changed at any time.

use crate::proto::base::Time;
use std::time::Duration;

/// The parameters, each of which an operator may set for each gateway and change while it works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// Notifications a second that the control aims at, above 0. The sum over all controllers must stay well below the gateway's capacity.
    pub goal: f64,
    /// Notifications within a second that start the control, at least 1.
    pub start_after: u32,
    /// Calls a second at the start and at least, above 0; the same for all controllers of a gateway.
    pub start_rate: f64,
    /// How long the rate takes to double after the start, until notifications come again.
    pub doubling: Duration,
    /// What is left of the rate when they do, 0..1.
    pub first_cut: f64,
    /// Growth of the rate a second, as a share of it, 0..1; divided by the goal it is what each notification takes off.
    pub growth: f64,
    /// Of the rate, the share held back while notifications come, 0..1.
    pub hold_back: f64,
    /// Calls that the bucket takes beyond its leak, at least 1.
    pub bucket: f64,
    /// The same for priority calls; at least `bucket`.
    pub priority_bucket: f64,
    /// The rate is at most so many times what is asked, above 1.
    pub headroom: f64,
    /// The rate counts as binding for so long after a refusal; notifications take nothing off one that does not bind.
    pub binding: Duration,
    /// The time over which the notifications are averaged that say how far the goal is.
    pub average: Duration,
    /// Growth is up to so many times faster while the average is below [`Parameters::haste_below`].
    pub haste: f64,
    /// Of the goal, the share below which growth is faster, 0..1.
    pub haste_below: f64,
    /// After so long without a notification growth becomes faster, after twice as long it is fastest.
    pub silence: Duration,
    /// Of the rate, the most that notifications take off at once, 0..1, and a second on end after that.
    pub cut_at_once: f64,
    /// See `cut_at_once`.
    pub cut_a_second: f64,
    /// The control ends when there was no notification for so long, and no refusal for a quarter of it.
    pub end_after: Duration,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            goal: 10.0,
            start_after: 3,
            start_rate: 20.0,
            doubling: Duration::from_millis(500),
            first_cut: 0.7,
            growth: 0.01,
            hold_back: 0.7,
            bucket: 5.0,
            priority_bucket: 40.0,
            headroom: 3.0,
            binding: Duration::from_millis(200),
            average: Duration::from_secs(15),
            haste: 30.0,
            haste_below: 0.8,
            silence: Duration::from_secs(7),
            cut_at_once: 0.04,
            cut_a_second: 0.3,
            end_after: Duration::from_secs(20),
        }
    }
}

impl Parameters {
    /// Whether the values can work together, or what is wrong in words for an operator.
    pub fn validate(&self) -> Result<(), &'static str> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        let rates = [self.goal, self.start_rate];
        if rates.iter().any(|rate| !rate.is_finite() || *rate <= 0.0) {
            return Err("goal and start rate must be above 0");
        }
        if !share(self.first_cut) || !share(self.growth) || !share(self.hold_back) || self.growth == 0.0 {
            return Err("first cut, growth and hold back must be shares below 1, growth above 0");
        }
        if !(self.bucket >= 1.0 && self.priority_bucket >= self.bucket && self.priority_bucket.is_finite()) {
            return Err("the bucket must hold a call, and for priority calls no less");
        }
        if !(self.headroom > 1.0 && self.headroom.is_finite()) {
            return Err("the headroom must be above 1");
        }
        let cuts = [self.cut_at_once, self.cut_a_second];
        if cuts.iter().any(|cut| !share(*cut) || *cut == 0.0) || !(self.haste >= 0.0 && self.haste.is_finite()) {
            return Err("cuts must be shares between 0 and 1, haste a number");
        }
        if !share(self.haste_below) || self.haste_below == 0.0 {
            return Err("haste begins at a share of the goal");
        }
        if self.start_after == 0
            || self.silence.is_zero()
            || self.binding.is_zero()
            || self.doubling.is_zero()
            || self.average.is_zero()
            || self.end_after.is_zero()
        {
            return Err("counts and times must not be 0");
        }
        Ok(())
    }
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A call is to be set up.
    Call {
        /// Whether it goes before others.
        priority: bool,
    },
    /// The gateway says that it is overloaded.
    Notification,
}

/// What is to be done with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Set it up.
    Admit,
    /// Refuse it.
    Refuse,
}

/// Counts since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Calls offered.
    pub offered: u64,
    /// Calls refused that were no priority calls.
    pub refused: u64,
    /// Priority calls refused.
    pub refused_priority: u64,
    /// Notifications.
    pub notifications: u64,
    /// How often the control began.
    pub started: u64,
    /// How often it ended.
    pub ended: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// What was sent before the start is still being notified: the rate stays.
    Draining,
    /// The rate doubles until the first notification.
    Starting,
    /// The rate follows the notifications.
    Steady,
}

/// The control while it is on.
#[derive(Clone, Copy, Debug)]
struct Control {
    /// Calls a second.
    rate: f64,
    /// Calls in the bucket.
    fill: f64,
    /// 0..1: how surely the gateway is overloaded right now, by the latest calls and notifications.
    held: f64,
    phase: Phase,
    /// Notifications a second, averaged since `since`.
    noted: f64,
    since: Time,
    /// What notifications may still take off the rate at once.
    cut: f64,
    notified: Time,
    refused: Time,
}

impl Control {
    /// Calls a second that leak: less while notifications come, for those who get their goal of them.
    fn leak(&self, parameters: &Parameters) -> f64 {
        let part = (self.noted / parameters.goal).min(1.0);
        self.rate * (1.0 - parameters.hold_back * self.held * part)
    }
}

/// The throttle of one controller for one gateway. See the module's page.
#[derive(Clone, Debug)]
pub struct Throttle {
    parameters: Parameters,
    control: Option<Control>,
    /// Calls offered a second, smoothed.
    asked: f64,
    /// Notifications while the control is off, forgotten within a second.
    recent: f64,
    stepped: Time,
    statistics: Statistics,
}

/// The time over which what is asked is smoothed, in seconds.
const ASKED_OVER: f64 = 2.0;
/// A notification weighs so much, and each call admitted takes so much off, in how surely the gateway is overloaded.
const HELD_UP: f64 = 0.25;
const HELD_DOWN: f64 = 0.125;
/// The average of notifications counts at most so many times the goal: what was long ago must not slow what comes.
const NOTED_MAX: f64 = 1.25;
/// The shortest time over which notifications are averaged, in seconds.
const AVERAGE_MIN: f64 = 2.0;
/// Calls at the start rate without a notification after which the gateway has done with what was sent before the start.
const DRAINED: f64 = 6.0;
/// Longer gaps between two steps count as this long, in seconds.
const GAP_MAX: f64 = 60.0;

impl Throttle {
    /// Off.
    pub fn new(parameters: Parameters) -> Throttle {
        Throttle { parameters, control: None, asked: 0.0, recent: 0.0, stepped: Time::ZERO, statistics: Statistics::default() }
    }

    /// New parameters, from now on.
    pub fn set_parameters(&mut self, parameters: Parameters) {
        self.parameters = parameters;
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Something happened at `now`; a verdict for a call.
    pub fn step(&mut self, now: Time, event: Event) -> Verdict {
        self.pass(now);
        match event {
            Event::Call { priority } => self.call(now, priority),
            Event::Notification => {
                self.notification(now);
                Verdict::Admit
            }
        }
    }

    /// Calls a second that may be set up now; `None` while the control is off.
    pub fn rate(&self) -> Option<f64> {
        self.control.map(|control| control.leak(&self.parameters))
    }

    /// Counts since the beginning.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Time passes.
    fn pass(&mut self, now: Time) {
        let since = now.since(self.stepped).as_secs_f64().min(GAP_MAX);
        self.stepped = self.stepped.max(now);
        self.asked -= self.asked * share(since, ASKED_OVER);
        self.recent -= self.recent * share(since, 1.0);
        let parameters = &self.parameters;
        let Some(control) = &mut self.control else { return };
        // A young average is one of the time since its beginning.
        let over = now.since(control.since).as_secs_f64().clamp(AVERAGE_MIN, parameters.average.as_secs_f64().max(AVERAGE_MIN));
        control.noted -= control.noted * share(since, over);
        control.cut = (control.cut + parameters.cut_a_second * since).min(parameters.cut_at_once);
        let leak = control.leak(parameters);
        control.fill = (control.fill - leak * since).max(0.0);
        let doubling = 0.7 / parameters.doubling.as_secs_f64();
        // So many calls without a notification are no chance: all controllers see the end of the overload at nearly one time.
        if control.phase == Phase::Draining && now.since(control.notified).as_secs_f64() * parameters.start_rate >= DRAINED {
            control.phase = Phase::Starting;
        }
        let growth = match control.phase {
            Phase::Draining => 0.0,
            Phase::Starting => doubling * (1.0 - control.held),
            Phase::Steady => {
                // Below the goal: others take more than their share. Silent: the gateway has more to give.
                let silent = now.since(control.notified).as_secs_f64() / parameters.silence.as_secs_f64() - 1.0;
                let short = 1.0 - control.noted / (parameters.goal * parameters.haste_below);
                (parameters.growth * (1.0 + parameters.haste * short.max(silent).clamp(0.0, 1.0))).min(doubling)
            }
        };
        let most = (self.asked * parameters.headroom).max(parameters.start_rate);
        control.rate = (control.rate * (1.0 + growth * since.min(1.0))).min(most);
        let quiet = now.since(control.notified) >= parameters.end_after && now.since(control.refused) >= parameters.end_after / 4;
        if quiet {
            self.control = None;
            self.recent = 0.0;
            self.statistics.ended += 1;
        }
    }

    fn call(&mut self, now: Time, priority: bool) -> Verdict {
        self.statistics.offered += 1;
        self.asked += 1.0 / ASKED_OVER;
        let Some(control) = &mut self.control else { return Verdict::Admit };
        let limit = if priority { self.parameters.priority_bucket } else { self.parameters.bucket };
        if control.fill + 1.0 > limit {
            control.refused = now;
            *(if priority { &mut self.statistics.refused_priority } else { &mut self.statistics.refused }) += 1;
            return Verdict::Refuse;
        }
        control.fill += 1.0;
        control.held -= control.held * HELD_DOWN;
        Verdict::Admit
    }

    fn notification(&mut self, now: Time) {
        self.statistics.notifications += 1;
        let parameters = &self.parameters;
        let Some(control) = &mut self.control else {
            self.recent += 1.0;
            if self.recent > f64::from(parameters.start_after) - 0.5 {
                self.statistics.started += 1;
                let rate = parameters.start_rate;
                // The bucket starts full: what is set up already is more than enough.
                let fill = parameters.bucket;
                let (noted, cut) = (parameters.goal, parameters.cut_at_once);
                self.control =
                    Some(Control { rate, fill, held: 0.0, phase: Phase::Draining, noted, since: now, cut, notified: now, refused: now });
            }
            return;
        };
        match control.phase {
            Phase::Draining => {}
            Phase::Starting => {
                control.held += (1.0 - control.held) * HELD_UP;
                // One or two may have been meant for others, who ask more.
                if control.held > 0.5 {
                    control.rate *= parameters.first_cut;
                    control.phase = Phase::Steady;
                    (control.noted, control.since) = (parameters.goal * parameters.haste_below, now);
                }
            }
            Phase::Steady => {
                // Whoever refuses nothing asks less than its rate: a lower one would give the gateway no relief.
                let binds = now.since(control.refused) < parameters.binding;
                let cut = if binds { (parameters.growth / parameters.goal).min(control.cut) } else { 0.0 };
                control.cut -= cut;
                control.rate *= 1.0 - cut;
                let over = now.since(control.since).as_secs_f64().clamp(AVERAGE_MIN, parameters.average.as_secs_f64().max(AVERAGE_MIN));
                control.noted = (control.noted + 1.0 / over).min(parameters.goal * NOTED_MAX);
                control.held += (1.0 - control.held) * HELD_UP;
            }
        }
        control.rate = control.rate.max(parameters.start_rate);
        control.notified = now;
    }
}

/// Of something that decays over `time`, what has gone after `since`.
fn share(since: f64, time: f64) -> f64 {
    since / (since + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Offers calls at a rate for some time; how many are admitted.
    fn offer(throttle: &mut Throttle, now: &mut Time, rate: u32, seconds: u32) -> u32 {
        let admitted = |throttle: &mut Throttle, now| throttle.step(now, Event::Call { priority: false }) == Verdict::Admit;
        (0..rate * seconds)
            .map(|_| {
                *now += Duration::from_secs(1) / rate;
                u32::from(admitted(throttle, *now))
            })
            .sum()
    }

    fn notify(throttle: &mut Throttle, now: Time, times: u32) {
        (0..times).for_each(|_| {
            throttle.step(now, Event::Notification);
        });
    }

    #[test]
    fn it_starts_after_some_notifications_within_a_second_and_not_before() {
        let (mut throttle, mut now) = (Throttle::new(Parameters::default()), Time::from_millis(1));
        for _ in 0..10 {
            notify(&mut throttle, now, 1);
            now += Duration::from_secs(2);
        }
        assert_eq!(throttle.rate(), None);
        assert_eq!(offer(&mut throttle, &mut now, 100, 1), 100);
        notify(&mut throttle, now, 3);
        assert_eq!((throttle.rate(), throttle.statistics().started), (Some(20.0), 1));
        // The bucket is full at the start: only its leak is admitted.
        let admitted = (0..10).filter(|_| throttle.step(now, Event::Call { priority: false }) == Verdict::Admit).count();
        assert_eq!(admitted, 0);
        assert_eq!(throttle.step(now, Event::Call { priority: true }), Verdict::Admit);
    }

    #[test]
    fn it_does_not_wind_up_while_idle_and_ends_when_nothing_happens() {
        let (mut throttle, mut now) = (Throttle::new(Parameters::default()), Time::from_millis(1));
        offer(&mut throttle, &mut now, 1000, 2);
        notify(&mut throttle, now, 3);
        offer(&mut throttle, &mut now, 1000, 4);
        assert!(throttle.rate().unwrap() > 200.0);
        // Little is asked: the rate follows down to a small multiple of it, notifications or not.
        for _ in 0..16 {
            offer(&mut throttle, &mut now, 20, 1);
            notify(&mut throttle, now, 1);
        }
        assert!(throttle.rate().unwrap() < 20.0 * 3.0 * 1.3, "{:?}", throttle.rate());
        now += Duration::from_secs(3600);
        throttle.step(now, Event::Call { priority: false });
        assert_eq!((throttle.rate(), throttle.statistics().ended), (None, 1));
    }

    #[test]
    fn parameters_change_while_it_works_and_are_checked() {
        let (mut throttle, mut now) = (Throttle::new(Parameters::default()), Time::from_millis(1));
        notify(&mut throttle, now, 3);
        throttle.set_parameters(Parameters { start_rate: 500.0, ..*throttle.parameters() });
        now += MS;
        throttle.step(now, Event::Notification);
        assert!(throttle.rate().unwrap() >= 499.0);
        let good = Parameters::default();
        assert_eq!(good.validate(), Ok(()));
        for bad in [
            Parameters { goal: 0.0, ..good },
            Parameters { goal: f64::NAN, ..good },
            Parameters { start_rate: f64::INFINITY, ..good },
            Parameters { first_cut: 1.0, ..good },
            Parameters { growth: 0.0, ..good },
            Parameters { hold_back: -0.1, ..good },
            Parameters { bucket: 0.5, ..good },
            Parameters { priority_bucket: 1.0, ..good },
            Parameters { headroom: 1.0, ..good },
            Parameters { haste: f64::NAN, ..good },
            Parameters { haste_below: 0.0, ..good },
            Parameters { cut_at_once: 0.0, ..good },
            Parameters { start_after: 0, ..good },
            Parameters { doubling: Duration::ZERO, ..good },
            Parameters { end_after: Duration::ZERO, ..good },
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn extreme_times_do_no_harm() {
        let mut throttle = Throttle::new(Parameters::default());
        notify(&mut throttle, Time::NEVER, 5);
        throttle.step(Time::ZERO, Event::Call { priority: false });
        throttle.step(Time::NEVER, Event::Call { priority: true });
        assert!(throttle.rate().is_none_or(f64::is_finite));
    }
}
