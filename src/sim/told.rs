//! What RestartInProgress commands say against what the gateway does: the service states of RFC 3435 4.4.5 as an agent knows them.
//!
//! - An endpoint that was said to be out of service (forced) executes nothing that comes afterwards, until it is said to be back.
//! - As long as a restart or a disconnect is not confirmed, it goes in front of every response of the endpoint but those to audits and
//!   405, 501 and 520 (G-RST-03, G-RST-05, G-DIS-06, G-DIS-09), also when the command was for many or the endpoint was chosen, and no
//!   command of the endpoint's own leaves for the first time (4.4.4 rule 8).
//! - Names are exact and the fewest: what is said at one time of endpoints with one agent, method and reason needs no fewer (G-RSI-08).
//!
//! Two things are no faults. A core that stood still for longer than a RestartInProgress waits for its owners answers as if it had not
//! been told until it has read what it was told meanwhile (docs/decisions/lead-core.md). And an owner learns by an envelope that a
//! RestartInProgress was replaced, because an endpoint it names has another notified entity now: for that long the old one stands in
//! front, which says the same of the endpoint.

use super::reply::Reply;
use crate::proto::aggregate::{Cover, EndpointSet, Forms};
use crate::proto::base::{CoreId, EndpointIndex, Time};
use crate::proto::plan::Plan;
use crate::proto::trunk::{Cursor, Selection};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What the lead core tells an owner is known there within this: a turn of each, the way between them, and slices of the work.
const LEARNED_WITHIN: Duration = Duration::from_millis(20);

/// One RestartInProgress.
struct Rsip {
    method: String,
    /// The event in which it was sent first.
    sent: u64,
    /// And when.
    at: Time,
}

/// Those that were sent at one time.
struct Burst {
    at: Time,
    to: SocketAddr,
    method: String,
    reason: Option<String>,
    forms: Forms,
    names: Vec<(String, EndpointSet)>,
}

/// The RestartInProgress commands about one endpoint.
#[derive(Clone, Copy, Default)]
struct About {
    /// The last.
    last: Option<u32>,
    /// The one before it, and when that was replaced.
    replaced: Option<(u32, Time)>,
}

/// See the module page.
pub struct Told {
    plan: Arc<Plan>,
    rsips: HashMap<u32, Rsip>,
    confirmed: HashSet<u32>,
    /// By endpoint.
    about: Vec<About>,
    bursts: Vec<Burst>,
    /// For each core: until when it may not know what the lead core said, because it stood still.
    late: Vec<Time>,
}

impl Told {
    /// Nothing was said yet.
    pub fn new(plan: Arc<Plan>) -> Told {
        let about = vec![About::default(); plan.topology.len() as usize];
        let late = vec![Time::ZERO; usize::from(plan.cores)];
        Told { plan, rsips: HashMap::new(), confirmed: HashSet::new(), about, bursts: Vec::new(), late }
    }

    /// A core stands still until then, for longer than a RestartInProgress waits for it.
    pub fn stands_still(&mut self, core: CoreId, until: Time) {
        if let Some(late) = self.late.get_mut(usize::from(core.0)) {
            *late = (*late).max(until + LEARNED_WITHIN);
        }
    }

    /// The gateway takes in a success for its command `id`.
    pub fn confirmed(&mut self, id: u32) {
        if self.rsips.contains_key(&id) {
            self.confirmed.insert(id);
        }
    }

    /// The gateway sends a command, in event `event` at `at`, to an agent that accepts these names.
    ///
    /// # Panics
    /// When it names no endpoint, or more names were used than needed.
    pub fn sent(&mut self, event: u64, at: Time, to: SocketAddr, forms: Forms, command: &Reply) {
        if !command.line.starts_with("RSIP ") || self.rsips.contains_key(&command.id) {
            return;
        }
        let name = command.line.split(' ').nth(2).and_then(|name| name.split('@').next()).unwrap_or_default();
        let topology = &self.plan.topology;
        let one = topology.lookup(name.as_bytes()).and_then(|endpoint| topology.selection_of(endpoint));
        let selection = one.unwrap_or_else(|| topology.resolve(name.as_bytes(), true).expect("a name with endpoints"));
        let (method, reason) = (command.get("RM").expect("a method").to_owned(), command.get("E").map(str::to_owned));
        let members = self.members(selection);
        assert!(!members.is_empty(), "{} names nothing", command.line);
        for endpoint in each(&members) {
            let about = &mut self.about[endpoint.0 as usize];
            *about = About { last: Some(command.id), replaced: about.last.map(|id| (id, at)) };
        }
        self.rsips.insert(command.id, Rsip { method: method.clone(), sent: event, at });
        self.check_bursts(at);
        let same = |burst: &&mut Burst| burst.to == to && burst.method == method && burst.reason == reason;
        let burst = match self.bursts.iter_mut().find(same) {
            Some(burst) => burst,
            None => {
                self.bursts.push(Burst { at, to, method, reason, forms, names: Vec::new() });
                self.bursts.last_mut().expect("it was added")
            }
        };
        burst.names.push((name.to_owned(), members));
    }

    /// Looks at what was said before `at`.
    fn check_bursts(&mut self, at: Time) {
        for burst in self.bursts.extract_if(.., |burst| burst.at < at) {
            let mut cover = Cover::new(burst.forms);
            let (names, endpoints) = burst.standing(&self.plan);
            let fewest = std::iter::from_fn(|| cover.next(&self.plan.topology, &endpoints)).count();
            assert!(names.len() <= fewest, "{} in {} names instead of {fewest}: {names:?}", burst.method, names.len());
        }
    }

    /// The gateway sends the final of a command for one endpoint, which is no audit, behind these messages of its datagram: for the
    /// first time after the command came in in event `executed`, or once more.
    ///
    /// # Panics
    /// When the agent was told something else, or must hear something else first.
    pub fn answered(&self, at: Time, endpoint: EndpointIndex, code: u16, executed: Option<u64>, front: &[Reply], text: &str) {
        let About { last: Some(id), replaced } = self.about.get(endpoint.0 as usize).copied().unwrap_or_default() else { return };
        let Some(rsip) = self.rsips.get(&id) else { return };
        if self.is_late(self.plan.owner(endpoint), at) {
            return;
        }
        match rsip.method.as_str() {
            "forced" => {
                let done = matches!(code, 200..=299) && executed.is_some_and(|received| received > rsip.sent);
                assert!(!done, "{code} for {text}, out of service since RSIP {id}");
            }
            "restart" | "disconnected" => {
                let exempt = matches!(code, 405 | 501 | 520) || self.confirmed.contains(&id);
                let replaced = replaced.filter(|&(id, since)| at <= since + LEARNED_WITHIN && !self.confirmed.contains(&id));
                let same = |(id, _): &(u32, Time)| self.rsips.get(id).is_some_and(|before| before.method == rsip.method);
                let one_of = [Some(id), replaced.filter(same).map(|(id, _)| id)];
                let is_told = front.iter().any(|message| one_of.contains(&Some(message.id)));
                assert!(exempt || is_told, "{code} without RSIP {id} in front, to {text}");
            }
            _ => {}
        }
    }

    /// The gateway sends the first success of a command for many endpoints, or for any of several, from `core`, behind these messages.
    ///
    /// # Panics
    /// When the agent must hear something of one of them first.
    pub fn answered_for_many(&self, at: Time, core: CoreId, selection: Selection, front: &[Reply], text: &str) {
        if self.is_late(core, at) {
            return;
        }
        for endpoint in each(&self.members(selection)) {
            if let Some(id) = self.unconfirmed(at, endpoint, front) {
                panic!("success without RSIP {id} in front, to {text}");
            }
        }
    }

    /// The gateway sends a command of `endpoint` for the first time, behind these messages of its datagram.
    ///
    /// # Panics
    /// When the agent must hear something else first.
    pub fn says(&self, at: Time, endpoint: EndpointIndex, front: &[Reply], command: &Reply) {
        if let Some(id) = self.unconfirmed(at, endpoint, front) {
            panic!("RSIP {id} is not confirmed: {}", command.line);
        }
    }

    /// The restart or disconnect of `endpoint` that the agent may not have heard of, and its core knows of.
    fn unconfirmed(&self, at: Time, endpoint: EndpointIndex, front: &[Reply]) -> Option<u32> {
        let id = self.about.get(endpoint.0 as usize)?.last?;
        let rsip = self.rsips.get(&id)?;
        let goes_first = matches!(rsip.method.as_str(), "restart" | "disconnected") && !self.confirmed.contains(&id);
        let is_known = !self.is_late(self.plan.owner(endpoint), at) && at > rsip.at + LEARNED_WITHIN;
        let is_told = front.iter().any(|message| message.id == id);
        (goes_first && is_known && !is_told).then_some(id)
    }

    fn is_late(&self, core: CoreId, at: Time) -> bool {
        self.late.get(usize::from(core.0)).is_some_and(|&until| at < until)
    }

    fn members(&self, selection: Selection) -> EndpointSet {
        let (mut cursor, mut members) = (Cursor::default(), EndpointSet::new(self.plan.topology.len()));
        let pieces = std::iter::from_fn(|| selection.next(&self.plan.topology, &mut cursor, u32::MAX));
        pieces.flat_map(|piece| piece.iter()).for_each(|endpoint| members.insert(endpoint));
        members
    }
}

/// Its endpoints in order.
fn each(set: &EndpointSet) -> impl Iterator<Item = EndpointIndex> {
    std::iter::successors(set.next(0), |endpoint| set.next(endpoint.0 + 1))
}

impl Burst {
    /// The names that stand when all is said, and their endpoints. One that names an endpoint of an earlier one replaces that.
    ///
    /// # Panics
    /// When one was replaced by others that say the same of all its endpoints. (Of what is out of service an agent may be told again,
    /// in a wider name.)
    fn standing(&self, plan: &Plan) -> (Vec<&str>, EndpointSet) {
        let mut said = EndpointSet::new(plan.topology.len());
        let mut names = Vec::new();
        for (name, members) in self.names.iter().rev() {
            let again = each(members).filter(|endpoint| said.contains(*endpoint)).count();
            let all = each(members).count();
            assert!(again < all || self.method == "forced", "{} was said of {name}, and then of all in it again", self.method);
            if again == 0 {
                names.push(name.as_str());
                each(members).for_each(|endpoint| said.insert(endpoint));
            }
        }
        names.reverse();
        (names, said)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Layout, plan};
    use super::*;
    use crate::proto::trunk::{FacilityKind, FacilityPlan};

    struct Script {
        told: Told,
        event: u64,
        now: u64,
    }

    impl Script {
        fn new() -> Script {
            let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
            Script { told: Told::new(Arc::new(plan(Layout::One, &[t1(1), t1(2)]))), event: 0, now: 0 }
        }

        fn rsip(&mut self, id: u32, ms: u64, name: &str, method: &str) -> Reply {
            self.event += 1;
            self.now = ms;
            let text = format!("RSIP {id} {name}@tgw.example.net MGCP 1.0\r\nRM: {method}\r\n");
            let command = Reply::all(text.as_bytes()).remove(0);
            let to = SocketAddr::from(([192, 0, 2, 1], 2727));
            self.told.sent(self.event, Time::from_millis(ms), to, Forms::default(), &command);
            command
        }

        /// The answer to a command that comes now.
        fn answer(&mut self, code: u16, front: &[Reply]) {
            self.event += 1;
            let endpoint = self.told.plan.topology.lookup(b"ds/ds1-1/3").unwrap();
            let at = Time::from_millis(self.now);
            self.told.answered(at, endpoint, code, Some(self.event), front, "a command");
        }
    }

    #[test]
    fn what_is_right_passes() {
        let mut script = Script::new();
        let restart = script.rsip(1, 10, "*", "restart");
        script.answer(200, std::slice::from_ref(&restart));
        script.answer(405, &[]);
        script.told.confirmed(1);
        script.answer(200, &[]);
        script.rsip(2, 20, "ds/ds1-1/*", "forced");
        script.rsip(3, 20, "ds/ds1-2/4", "forced");
        script.answer(501, &[]);
        let back = script.rsip(4, 30, "ds/ds1-1/*", "restart");
        script.answer(200, &[back]);
    }

    #[test]
    #[should_panic(expected = "out of service since RSIP 2")]
    fn a_success_out_of_service_is_caught() {
        let mut script = Script::new();
        script.rsip(2, 20, "ds/ds1-1/*", "forced");
        script.answer(200, &[]);
    }

    #[test]
    #[should_panic(expected = "without RSIP 7 in front")]
    fn a_response_before_the_announcement_is_caught() {
        let mut script = Script::new();
        let before = script.rsip(6, 20, "*", "restart");
        script.rsip(7, 30, "ds/ds1-1/*", "disconnected");
        script.answer(250, &[before]);
    }

    #[test]
    #[should_panic(expected = "RSIP 7 is not confirmed")]
    fn a_notify_before_the_announcement_is_confirmed_is_caught() {
        let mut script = Script::new();
        script.rsip(7, 30, "ds/ds1-1/*", "disconnected");
        let notify = Reply::all(b"NTFY 9 ds/ds1-1/4@tgw.example.net MGCP 1.0\r\nX: 1\r\nO: T/co1\r\n").remove(0);
        let endpoint = script.told.plan.topology.lookup(b"ds/ds1-1/4").unwrap();
        script.told.says(Time::from_millis(100), endpoint, &[], &notify);
    }

    #[test]
    #[should_panic(expected = "without RSIP 7 in front")]
    fn a_success_for_many_before_an_announcement_is_caught() {
        let mut script = Script::new();
        let other = script.rsip(6, 30, "ds/ds1-2/*", "disconnected");
        script.rsip(7, 30, "ds/ds1-1/3", "disconnected");
        let all = script.told.plan.topology.select_all();
        script.told.answered_for_many(Time::from_millis(100), CoreId(0), all, &[other], "DLCX");
    }

    #[test]
    fn a_core_that_stood_still_is_judged_when_it_has_read_what_it_was_told() {
        let judged_at = |ms| {
            let mut script = Script::new();
            script.told.stands_still(CoreId(0), Time::from_millis(1000));
            script.rsip(2, 300, "ds/ds1-1/*", "forced");
            script.now = ms;
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| script.answer(200, &[]))).is_err()
        };
        assert!(!judged_at(1001));
        assert!(judged_at(1100));
    }

    #[test]
    fn what_was_replaced_at_the_same_time_is_counted_once() {
        // One endpoint notifies another agent now: 23 single names and a T1 are what is left of the gateway.
        let mut script = Script::new();
        let all = script.rsip(1, 20, "*", "restart");
        script.rsip(2, 20, "ds/ds1-2/*", "restart");
        for channel in 2..=24 {
            script.rsip(100 + channel, 20, &format!("ds/ds1-1/{channel}"), "restart");
        }
        // Its owner does not know yet.
        script.answer(200, std::slice::from_ref(&all));
        script.rsip(200, 21, "ds/ds1-1/1", "forced");
    }

    #[test]
    #[should_panic(expected = "without RSIP 103 in front")]
    fn what_was_replaced_long_ago_is_not_enough() {
        let mut script = Script::new();
        let all = script.rsip(1, 20, "*", "restart");
        script.rsip(103, 20, "ds/ds1-1/3", "restart");
        script.now = 60;
        script.answer(200, std::slice::from_ref(&all));
    }

    #[test]
    #[should_panic(expected = "restart was said of *, and then of all in it again")]
    fn what_is_replaced_for_nothing_is_caught() {
        let mut script = Script::new();
        script.rsip(1, 20, "*", "restart");
        script.rsip(2, 20, "ds/ds1-1/*", "restart");
        script.rsip(3, 20, "ds/ds1-2/*", "restart");
        script.rsip(4, 21, "*", "forced");
    }

    #[test]
    #[should_panic(expected = "forced in 2 names instead of 1")]
    fn a_name_too_many_is_caught() {
        let mut script = Script::new();
        script.rsip(1, 20, "ds/ds1-1/*", "forced");
        script.rsip(2, 20, "ds/ds1-2/*", "forced");
        script.rsip(3, 21, "*", "restart");
    }
}
