//! What RestartInProgress commands say against what the gateway does: the service states of RFC 3435 4.4.5 as an agent knows them.
//!
//! - An endpoint that was said to be out of service (forced) executes nothing that comes afterwards, until it is said to be back.
//! - As long as a restart or a disconnect is not confirmed, it goes in front of every response of the endpoint but those to audits and
//!   405, 501 and 520 (G-RST-03, G-RST-05, G-DIS-06, G-DIS-09).
//! - Names are exact and the fewest: what is said at one time of endpoints with one agent, method and reason needs no fewer (G-RSI-08).

use super::reply::Reply;
use crate::proto::aggregate::{Cover, EndpointSet, Forms};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::plan::Plan;
use crate::proto::trunk::{Cursor, Selection};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// One RestartInProgress.
struct Rsip {
    method: String,
    /// The event in which it was sent first.
    sent: u64,
}

/// Those that were sent at one time.
struct Burst {
    at: Time,
    to: SocketAddr,
    method: String,
    reason: Option<String>,
    forms: Forms,
    names: Vec<String>,
    endpoints: EndpointSet,
}

/// See the module page.
pub struct Told {
    plan: Arc<Plan>,
    rsips: HashMap<u32, Rsip>,
    confirmed: HashSet<u32>,
    /// For each endpoint: the transaction that named it last.
    last: Vec<Option<u32>>,
    bursts: Vec<Burst>,
}

impl Told {
    /// Nothing was said yet.
    pub fn new(plan: Arc<Plan>) -> Told {
        let last = vec![None; plan.topology.len() as usize];
        Told { plan, rsips: HashMap::new(), confirmed: HashSet::new(), last, bursts: Vec::new() }
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
        members.iter().for_each(|endpoint| self.last[endpoint.0 as usize] = Some(command.id));
        self.rsips.insert(command.id, Rsip { method: method.clone(), sent: event });
        self.check_bursts(at);
        let same = |burst: &&mut Burst| burst.to == to && burst.method == method && burst.reason == reason;
        let burst = match self.bursts.iter_mut().find(same) {
            Some(burst) => burst,
            None => {
                let endpoints = EndpointSet::new(self.plan.topology.len());
                self.bursts.push(Burst { at, to, method, reason, forms, names: Vec::new(), endpoints });
                self.bursts.last_mut().expect("it was added")
            }
        };
        burst.names.push(name.to_owned());
        members.iter().for_each(|endpoint| burst.endpoints.insert(*endpoint));
    }

    /// Looks at what was said before `at`.
    fn check_bursts(&mut self, at: Time) {
        for burst in self.bursts.extract_if(.., |burst| burst.at < at) {
            let mut cover = Cover::new(burst.forms);
            let fewest = std::iter::from_fn(|| cover.next(&self.plan.topology, &burst.endpoints)).count();
            let Burst { method, names, .. } = &burst;
            assert!(names.len() <= fewest, "{method} in {} names instead of {fewest}: {names:?}", names.len());
        }
    }

    /// The gateway sends the first final of a command for one endpoint, which is no audit and came in in event `received`, behind
    /// these messages of its datagram.
    ///
    /// # Panics
    /// When the agent was told something else, or must hear something else first.
    pub fn answered(&self, endpoint: EndpointIndex, code: u16, received: u64, front: &[Reply], text: &str) {
        let Some(id) = self.last.get(endpoint.0 as usize).copied().flatten() else { return };
        let Some(rsip) = self.rsips.get(&id) else { return };
        match rsip.method.as_str() {
            "forced" => {
                let done = matches!(code, 200..=299) && received > rsip.sent;
                assert!(!done, "{code} for {text}, out of service since RSIP {id}");
            }
            "restart" | "disconnected" => {
                let exempt = matches!(code, 405 | 501 | 520) || self.confirmed.contains(&id);
                assert!(exempt || front.iter().any(|message| message.id == id), "{code} without RSIP {id} in front, to {text}");
            }
            _ => {}
        }
    }

    fn members(&self, selection: Selection) -> Vec<EndpointIndex> {
        let mut cursor = Cursor::default();
        let pieces = std::iter::from_fn(|| selection.next(&self.plan.topology, &mut cursor, u32::MAX));
        pieces.flat_map(|piece| piece.iter()).collect()
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
    }

    impl Script {
        fn new() -> Script {
            let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
            Script { told: Told::new(Arc::new(plan(Layout::One, &[t1(1), t1(2)]))), event: 0 }
        }

        fn rsip(&mut self, id: u32, ms: u64, name: &str, method: &str) -> Reply {
            self.event += 1;
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
            self.told.answered(endpoint, code, self.event, front, "a command");
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
    #[should_panic(expected = "forced in 2 names instead of 1")]
    fn a_name_too_many_is_caught() {
        let mut script = Script::new();
        script.rsip(1, 20, "ds/ds1-1/*", "forced");
        script.rsip(2, 20, "ds/ds1-2/*", "forced");
        script.rsip(3, 21, "*", "restart");
    }
}
