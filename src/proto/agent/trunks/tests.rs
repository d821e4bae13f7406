//! The rules of an agent, kept and broken, against a gateway that answers each command the same way.

use super::*;
use crate::proto::agent::Ended;

struct Nobody;

impl Observer for Nobody {
    fn ended(&mut self, _: Time, _: &Ended, _: Option<u16>) {}

    fn failed(&mut self, _: Failure, _: &[u8]) {}
}

fn trunks(gateway: &[SocketAddr], broken: &[Rule]) -> Trunks {
    let settings = Settings {
        gateway: gateway.to_vec(),
        endpoints: (1..=24).map(|channel| format!("ds/ds1-1/{channel}@gw")).collect(),
        kind: Kind::Cot,
        hold: Duration::from_millis(500),
        misbehave: 0,
        verify: false,
        broken: broken.iter().copied().collect(),
        timers: Timers::default(),
    };
    Trunks::new(&settings, &mut Rng::new(1)).unwrap()
}

/// The trunks are brought to rest; then a call is wanted each millisecond for `time`, and `code` answers what it creates or has signalled,
/// from `gateway` only. Gives how many began, and how many commands came there.
fn play(agent: &mut Trunks, gateway: SocketAddr, code: u16, time: Duration) -> (u32, usize) {
    let (mut now, mut came, mut until) = (Time::ZERO, 0, Time::NEVER);
    while now < until && now < Time::from_millis(60_000) {
        now += Duration::from_millis(1);
        if agent.phase() == Phase::Running {
            until = until.min(now + time);
            agent.start(now);
        }
        let (mut sent, mut orders) = (Vec::new(), Vec::new());
        while agent.deadline() <= now {
            agent.poll(now, &mut |to, bytes| sent.push((to, bytes.to_vec())), &mut |index, _, _| orders.push(index), &mut Nobody);
            orders.drain(..).for_each(|index| agent.handle_far(now, index, Ok(()), &mut Nobody));
        }
        for (_, bytes) in sent.iter().filter(|(to, _)| *to == gateway) {
            for (range, peek) in peek::split(bytes) {
                let Peek::Command(line) = peek else { continue };
                came += 1;
                let begins = line.verb == Some(Verb::Crcx) || bytes[range].windows(4).any(|octets| octets == b"\nS: ");
                let answer = format!("{} {} -\r\n", if until != Time::NEVER && begins { code } else { 200 }, line.id);
                agent.handle(now, answer.as_bytes(), gateway, &mut Nobody);
            }
        }
    }
    (agent.calls_begun(), came)
}

#[test]
fn a_gateway_that_is_busy_gets_fewer_calls() {
    // 4.4.8
    let gateway = SocketAddr::from(([127, 0, 0, 1], 2427));
    let begun = |broken: &[Rule]| play(&mut trunks(&[gateway], broken), gateway, 409, Duration::from_secs(3)).0;
    let (kept, broken) = (begun(&[]), begun(&[Rule::LoadControl]));
    assert!(kept > 20 && kept * 4 < broken, "{kept} against {broken}");
}

#[test]
fn only_who_breaks_the_rule_stays_with_a_dead_address() {
    // 4.2, 4.3
    let [dead, alive] = [2427, 2428].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    for (broken, served) in [(&[][..], true), (&[Rule::Alternates], false)] {
        let (begun, came) = play(&mut trunks(&[dead, alive], broken), alive, 200, Duration::from_secs(1));
        assert_eq!((begun > 0, came > 0), (served, served), "{broken:?}");
    }
}
