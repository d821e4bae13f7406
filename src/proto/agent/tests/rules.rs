//! The rules of RFC 3435 an agent keeps, and what is seen when each is broken on purpose (docs/conformance/agent.md).

use super::super::rules::{Broken, Rule};
use super::*;

/// Looks at what the agent sends and at the final responses it has.
#[derive(Default)]
pub(super) struct Watch {
    /// Commands without a final response: identifier, verb, endpoint, whether there is a request in it.
    outstanding: Vec<(u32, Verb, String, bool)>,
    seen: std::collections::HashSet<u32>,
    /// Two changes of a connection at once; two requests; two configurations; a call before its endpoint was cleared.
    pub changes: usize,
    pub requests: usize,
    pub configurations: usize,
    pub uncleared: usize,
    /// Requests behind the answer to a Notify in one datagram, and by themselves.
    pub joined: usize,
    pub alone: usize,
}

impl Watch {
    pub fn sent(&mut self, datagram: &[u8]) {
        let mut answered = false;
        for (range, peek) in peek::split(datagram) {
            let Peek::Command(line) = peek else {
                answered = true;
                continue;
            };
            let command = Command::parse(&datagram[range]).unwrap();
            if !self.seen.insert(line.id) {
                continue;
            }
            let name = String::from_utf8(command.endpoint.local.to_vec()).unwrap();
            let request = command.get(crate::proto::codec::mgcp::Code::X).is_some();
            let same = |other: &&(u32, Verb, String, bool)| other.2 == name;
            let others = || self.outstanding.iter().filter(same);
            match command.verb {
                Verb::Crcx | Verb::Mdcx => {
                    self.changes += others().filter(|other| matches!(other.1, Verb::Crcx | Verb::Mdcx)).count();
                    let over = |other: &&(u32, Verb, String, bool)| {
                        other.1 == Verb::Dlcx && other.2.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
                    };
                    self.uncleared += self.outstanding.iter().filter(over).count();
                }
                Verb::Epcf => self.configurations += others().filter(|other| other.1 == Verb::Epcf).count(),
                _ => {}
            }
            if request {
                self.requests += others().filter(|other| other.3).count();
            }
            if command.verb == Verb::Rqnt {
                *(if answered { &mut self.joined } else { &mut self.alone }) += 1;
            }
            self.outstanding.push((line.id, command.verb, name, request));
        }
    }

    pub fn received(&mut self, datagram: &[u8]) {
        for (_, peek) in peek::split(datagram) {
            if let Peek::Response { code: 200.., id } = peek {
                self.outstanding.retain(|(other, ..)| *other != id);
            }
        }
    }
}

/// A run with events, losses and reordering, with these rules broken.
fn run(broken: &[Rule], seed: u64) -> World {
    let script = Script { notifies: 3, ..Script::default() };
    let mut world = World::new(seed, script, |settings| {
        settings.events = "D/[0-9](N)".into();
        settings.broken = broken.iter().copied().collect();
        // Long enough for a Notify to come, and short enough for the next call to meet the request after it.
        settings.hold = Duration::from_millis(8);
        settings.scenario = Scenario::Call;
    });
    (world.loss, world.delay) = (20_000, Duration::from_millis(6));
    world.run(Duration::from_millis(1), END);
    world
}

#[test]
fn rules_are_kept_whatever_the_network_does() {
    // 4.4.4 rules 1, 3, 4, 5, 6 and 10.
    for seed in 0..10 {
        let world = run(&[], seed);
        let watch = &world.watch;
        assert_eq!((watch.changes, watch.requests, watch.configurations, watch.uncleared), (0, 0, 0, 0), "seed {seed}");
        assert!(watch.joined > 100 && world.agent.tally().requests > 100, "seed {seed}: {}", watch.joined);
        assert_eq!(world.seen.failures, [], "seed {seed}");
        assert!(world.gateway.most_outstanding > 1, "endpoints are handled in parallel");
    }
}

#[test]
fn the_next_request_follows_the_answer_in_one_datagram() {
    // 4.4.1; a request that had to wait for the one before goes alone.
    let world = run(&[], 1);
    assert!(world.watch.joined > 2 * world.watch.alone, "{} {}", world.watch.joined, world.watch.alone);
    assert_eq!(world.agent.tally().requests_with_answer as usize, world.watch.joined);
    let apart = run(&[Rule::Lockstep], 1);
    assert_eq!((apart.watch.joined, apart.watch.alone > 100), (0, true));
}

#[test]
fn each_rule_can_be_broken_and_only_that() {
    let seen = |world: &World| {
        let watch = &world.watch;
        [watch.changes > 0, watch.requests > 0, watch.configurations > 0, watch.uncleared > 0]
    };
    for (rule, expected) in [
        (Rule::OneCommand, [true, false, false, false]),
        (Rule::OneRequest, [false, true, false, false]),
        (Rule::Embedded, [false, true, false, false]),
        (Rule::OneConfiguration, [false, false, true, false]),
        (Rule::WildcardFirst, [false, false, false, true]),
    ] {
        let any = (0..5).any(|seed| seen(&run(&[rule], seed)) == expected);
        assert!(any, "{rule:?}: {:?}", seen(&run(&[rule], 0)));
    }
}

#[test]
fn a_gateway_that_is_busy_gets_fewer_commands() {
    // 4.4.8
    let sent = |broken: &[Rule]| {
        let script = Script { refuse: Some(409), ..Script::default() };
        let mut world = World::new(3, script, |settings| settings.broken = broken.iter().copied().collect());
        world.run(Duration::from_micros(200), END);
        (world.gateway.created_tried, world.agent.tally().overloads)
    };
    let (kept, told) = sent(&[]);
    let (broken, _) = sent(&[Rule::LoadControl]);
    assert!(told > 10 && kept * 2 < broken, "{kept} against {broken}");
}

#[test]
fn only_who_breaks_the_rule_stays_with_a_dead_address() {
    // 4.2, 4.3
    for (broken, served) in [(&[][..], true), (&[Rule::Alternates], false)] {
        let mut world = World::new(5, Script::default(), |settings| {
            settings.gateway.push(([127, 0, 0, 1], 2428).into());
            settings.broken = broken.iter().copied().collect();
        });
        world.dead = vec![2427];
        // Max1 repeats take their time.
        world.run(GAP, Time::from_millis(12_000));
        assert_eq!(world.gateway.created > 0, served, "{broken:?}");
    }
}

#[test]
fn rules_have_names() {
    for rule in Rule::ALL {
        assert_eq!(Rule::by_name(rule.name()), Some(*rule));
        let broken: Broken = [*rule].into_iter().collect();
        assert!(Rule::ALL.iter().all(|other| broken.has(*other) == (other == rule)));
    }
    assert_eq!(Rule::by_name("none"), None);
}
