//! What at-most-once costs per command with the history full of T-HIST's worth of responses: a new command, from look-up to stored
//! response and the removal of the one it pushes out in time; a repeat; a confirmation.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tollgate::proto::base::{AgentId, Rng, Time};
use tollgate::proto::transaction::history::{CONFIRM_BUDGET, Class, Command, History, Limits, Seen, Start};

const T_HIST: Duration = Duration::from_secs(30);
const AGENT: AgentId = AgentId(0);
const BODY: [u8; 180] = [b'x'; 180];

struct World {
    history: History,
    now: Time,
    step: Duration,
    id: u32,
    rng: Rng,
}

impl World {
    /// A history that runs at `rate` commands a second since T-HIST.
    fn at_rate(rate: u32) -> World {
        let entries = rate as usize * 31;
        let limits = Limits { entries, bytes: entries * 256, reserve_entries: 0, reserve_bytes: 0, largest: 4000 };
        let mut rng = Rng::new(1);
        let history = History::new(limits, T_HIST, Duration::from_secs(10), &mut rng);
        let mut world = World { history, now: Time::ZERO, step: Duration::from_secs(1) / rate, id: 0, rng };
        (0..rate * 30).for_each(|_| world.command());
        world
    }

    fn command_of(id: u32) -> Command {
        Command { id, name: u64::from(id % 672).wrapping_mul(0x9e37_79b9_7f4a_7c15), content: None }
    }

    fn command(&mut self) {
        self.now += self.step;
        self.id += 1;
        let command = World::command_of(self.id);
        assert!(matches!(self.history.lookup(self.now, &command), Seen::New { .. }));
        let start = Start { command, agent: AGENT, class: Class::Ordinary, room: 4000 };
        let handle = self.history.begin(self.now, &start).expect("room for T-HIST");
        self.history.finish(self.now, handle, &BODY).expect("it runs");
    }

    /// An id of the last 20 seconds.
    fn recent(&mut self) -> u32 {
        let kept = 20_000_000_000 / self.step.as_nanos() as u64;
        self.id - self.rng.below(kept) as u32
    }
}

fn history(c: &mut Criterion) {
    for rate in [1_000, 30_000] {
        let mut world = World::at_rate(rate);
        c.bench_function(&format!("history/new command/{rate} per s"), |b| b.iter(|| world.command()));
        c.bench_function(&format!("history/repeat/{rate} per s"), |b| {
            b.iter(|| {
                let command = World::command_of(world.recent());
                matches!(black_box(world.history.lookup(world.now, &command)), Seen::Finished { .. })
            });
        });
        c.bench_function(&format!("history/new command confirmed by the next/{rate} per s"), |b| {
            b.iter(|| {
                world.command();
                let mut budget = CONFIRM_BUDGET;
                black_box(world.history.confirm_range(world.now, AGENT, world.id, world.id, &mut budget))
            });
        });
    }
}

criterion_group!(benches, history);
criterion_main!(benches);
