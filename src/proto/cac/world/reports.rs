//! Reports at high rates: what is lost of them is made up for faster than new ones come (R28).

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl World {
    fn node(&self, place: usize) -> &Node {
        self.gateways[place].node.as_ref().expect("a gateway")
    }

    /// Emergency calls, so many a second at the one gateway: each is told when it begins and when it ends.
    fn emergencies(&mut self, per_second: u32) {
        self.emergencies = 1_000_000;
        self.calls_last = Duration::from_millis(50);
        self.begin_calls(SECOND / per_second);
    }

    /// The most reports that waited at the gateway, looked at each millisecond of so long.
    fn most_waiting(&mut self, time: Duration) -> usize {
        let mut most = 0;
        for _ in 0..time.as_millis() {
            self.run(Duration::from_millis(1));
            most = most.max(self.node(0).queued().1);
        }
        most
    }
}

/// A message that is lost costs a busy gateway the time of one way there and back, not its session.
#[test]
fn one_lost_report_holds_up_the_next_ones_for_a_moment() {
    let mut world = World::new(1, 1, 100, Policy::Open);
    world.emergencies(2_000);
    world.run(SECOND / 2);
    for _ in 0..5 {
        world.weather.lost = 1_000_000;
        world.run(Duration::from_millis(2));
        world.weather.lost = 0;
        let most = world.most_waiting(SECOND / 4);
        assert!(most < 100, "{most} reports waited");
        assert!(world.node(0).queued().1 < 20, "{} reports wait", world.node(0).queued().1);
    }
    assert_eq!(world.node(0).counts().syncs, 1, "a session that lasts");
    world.settle();
}

/// Of a busy gateway's messages one in fifty is lost, each way, for ten seconds: the session lasts, and no report waits for long.
#[test]
fn reports_keep_pace_whatever_is_lost() {
    for seed in 0..3 {
        let mut world = World::new(seed, 1, 100, Policy::Open);
        world.emergencies(1_000);
        world.weather.lost = 20_000;
        let most = world.most_waiting(10 * SECOND);
        assert!(most < REPORTS_MAX, "seed {seed}: {most} reports waited");
        assert_eq!(world.node(0).counts().syncs, 1, "seed {seed}: a session that lasts");
        world.settle();
        assert_eq!(world.node(0).queued().1, 0, "seed {seed}");
    }
}
