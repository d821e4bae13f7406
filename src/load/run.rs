//! The loop: receive, start what is due, send, and wait.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};

use super::clock::{Clock, CpuTime};
use super::line::{BypassLine, Line};
use super::pace::Pace;
use super::player::{Caller, FarEnds, Player};
use super::report::{Facts, Recorder};
use super::sender::{Faults, Sender, is_unreachable};
use super::socket::LoadSocket;
use super::{Args, Plan, Played};
use crate::proto::agent::controller::Controller;
use crate::proto::agent::trunks::Trunks;
use crate::proto::agent::{Agent, Failure, Observer, Phase};
use crate::proto::base::{Rng, Time};

/// While the last command is younger than this its answer is waited for by spinning: waking up takes longer than the answer.
const SPIN: Duration = Duration::from_millis(1);
/// A sleep ends this much before it must, for the same reason.
const WAKE: Duration = Duration::from_micros(80);
/// Sleeps shorter than this are spun through.
const SLEEP_MIN: Duration = Duration::from_micros(50);
const PROGRESS: Duration = Duration::from_secs(1);
/// A gateway that says nothing for so long before the schedule begins is not there: each command has been repeated four times by then.
const OPENING_SILENCE: Duration = Duration::from_secs(4);
/// After a signal calls are ended as long as the gateway answers; so long it may be silent.
const STOP_SILENCE: Duration = Duration::from_secs(1);

/// Runs the plan to its end, or to SIGINT or SIGTERM, after which calls are ended as well.
pub(super) fn run(args: &Args, plan: &Plan, far: Arc<dyn FarEnds>) -> anyhow::Result<(Recorder, Facts)> {
    let mut rng = Rng::new(plan.seed);
    let nobody = "no endpoints or no gateway";
    match &plan.played {
        Played::Calls(settings) => play(args, plan, Agent::new(settings, &mut rng).context(nobody)?, rng),
        Played::Contexts(settings) => play(args, plan, Controller::new(settings, &mut rng).context(nobody)?, rng),
        Played::Trunks(settings) => play(args, plan, Caller::new(Trunks::new(settings, &mut rng).context(nobody)?, far), rng),
    }
}

fn play(args: &Args, plan: &Plan, agent: impl Player, mut rng: Rng) -> anyhow::Result<(Recorder, Facts)> {
    let line = open(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second signal ends the process at once.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop)).context("cannot watch signals")?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot watch signals")?;
    }
    let mut generator = Generator {
        line,
        agent,
        sender: Sender::new(Faults::new(args.loss, args.duplicate, rng.fork("send"))),
        arriving: Faults::new(args.loss, args.duplicate, rng.fork("receive")),
        recorder: Recorder::new(),
        clock: Clock::start(),
        stop,
        busy: Duration::ZERO,
        last_sent: Time::ZERO,
        unreachable: None,
        started: Time::ZERO,
        next_progress: Time::ZERO + PROGRESS,
    };
    let measured = generator.run(plan)?;
    let Generator { agent, sender, arriving, recorder, .. } = generator;
    let sending = sender.faults();
    let facts = Facts {
        scenario: args.scenario.name(),
        protocol: args.protocol,
        kind: plan.kind,
        endpoints: agent.endpoints(),
        standing_wanted: args.standing,
        standing: measured.standing,
        calls: agent.calls_started(),
        duration: measured.duration,
        sent: measured.sent,
        unsent: measured.unsent,
        starved: measured.starved,
        late: measured.late,
        late_max: measured.late_max,
        repeats: agent.repeats(),
        failovers: agent.failovers(),
        endpoints_down: agent.down(),
        simulated_losses: sending.lost + arriving.lost,
        simulated_duplicates: sending.duplicated + arriving.duplicated,
        send_drops: sender.dropped,
        datagrams_per_send: sender.sent as f64 / sender.calls.max(1) as f64,
        how: generator.line.how(),
        cpu: measured.cpu,
        busy: measured.busy,
        tally: *agent.tally(),
        disturbed: agent.is_disturbed(),
        outcomes: agent.outcomes(),
        seed: plan.seed,
    };
    Ok((recorder, facts))
}

/// The way to the gateway that the arguments ask for.
fn open(args: &Args) -> anyhow::Result<Box<dyn Line>> {
    let listen = args.listen();
    let cannot = || format!("cannot play the call agent at {listen} (--listen gives another one)");
    if let Some(interface) = &args.xdp {
        let line = BypassLine::open(interface, listen, &args.target(), args.bypass_firewall);
        return Ok(Box::new(line.map_err(|reason| anyhow::anyhow!("--xdp {interface}: {reason}")).with_context(cannot)?));
    }
    Ok(Box::new(LoadSocket::bind(listen).with_context(cannot)?))
}

/// Figures of the time in which commands were let out.
#[derive(Default)]
struct Measured {
    standing: usize,
    duration: Duration,
    sent: u64,
    unsent: u64,
    starved: u64,
    late: u64,
    late_max: Duration,
    cpu: Option<CpuTime>,
    busy: f64,
}

struct Generator<P> {
    line: Box<dyn Line>,
    agent: P,
    sender: Sender,
    arriving: Faults,
    recorder: Recorder,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// Time of turns that had something to do.
    busy: Duration,
    last_sent: Time,
    /// What the network said last of an address that cannot be reached.
    unreachable: Option<std::io::ErrorKind>,
    /// When the schedule began; the loop before that.
    started: Time,
    next_progress: Time,
}

/// How long somebody who is asked has said nothing.
#[derive(Default)]
struct Silence {
    /// When nothing was asked last.
    quiet: Time,
}

impl Silence {
    /// Of one who was heard last at `heard`, while so many commands wait for an answer: nothing is missed where nothing was asked, as when
    /// only far ends are told to release.
    fn so_far(&mut self, now: Time, heard: Time, in_flight: usize) -> Duration {
        if in_flight == 0 {
            self.quiet = now;
        }
        now.since(heard.max(self.quiet))
    }
}

impl<P: Player> Generator<P> {
    fn run(&mut self, plan: &Plan) -> anyhow::Result<Measured> {
        let mut silence = Silence::default();
        while self.agent.phase() < Phase::Running {
            let silent = silence.so_far(self.clock.now(), self.agent.heard(), self.agent.in_flight());
            if self.stop.load(Ordering::Relaxed) {
                if self.agent.heard() == Time::ZERO {
                    bail!("stopped before anything had answered at {}", addresses(plan));
                }
                self.agent.wind_down();
            } else if silent > OPENING_SILENCE {
                bail!("nothing answers at {}{}", addresses(plan), self.why_unreachable());
            }
            self.turn(None)?;
        }
        let mut measured = Measured { standing: self.agent.standing(), ..Measured::default() };
        if self.agent.phase() == Phase::Running {
            self.run_schedule(plan, &mut measured)?;
        }
        self.agent.wind_down();
        let mut stopped = None;
        while self.agent.phase() != Phase::Done {
            let now = self.clock.now();
            if self.stop.load(Ordering::Relaxed) {
                let stopped = *stopped.get_or_insert(now);
                if now.since(stopped.max(self.agent.heard())) > STOP_SILENCE {
                    self.recorder.failed(Failure::Silent, b"");
                    break;
                }
            }
            self.turn(None)?;
        }
        Ok(measured)
    }

    /// What the network says, in words to go behind an address.
    fn why_unreachable(&self) -> &'static str {
        match self.unreachable {
            None => "",
            Some(std::io::ErrorKind::ConnectionRefused) => ": connection refused (ECONNREFUSED), no gateway listens there",
            Some(_) => ": the network says it cannot be reached",
        }
    }

    fn run_schedule(&mut self, plan: &Plan, measured: &mut Measured) -> anyhow::Result<()> {
        let cpu_before = CpuTime::now();
        self.started = self.clock.now();
        self.busy = Duration::ZERO;
        self.next_progress = self.started + PROGRESS;
        let mut pace = Pace::new(plan.kind, self.started, plan.duration);
        if plan.poisson {
            pace.arrive_at_random(Rng::new(plan.seed).fork("arrivals"));
        }
        while !pace.is_over(self.clock.now()) {
            if self.stop.load(Ordering::Relaxed) {
                pace.stop(self.clock.now());
            }
            self.turn(Some(&mut pace))?;
        }
        let now = self.clock.now();
        measured.duration = pace.duration();
        measured.sent = pace.sent();
        measured.unsent = pace.unsent(now);
        (measured.starved, measured.late, measured.late_max) = (pace.starved, pace.late, pace.late_max);
        measured.busy = self.busy.as_secs_f64() / now.since(self.started).as_secs_f64().max(1e-9);
        measured.cpu = CpuTime::now().zip(cpu_before).map(|(after, before)| after.since(before));
        Ok(())
    }

    /// Receives one batch, starts what is due, sends; sleeps when nothing is expected soon.
    fn turn(&mut self, mut pace: Option<&mut Pace>) -> anyhow::Result<()> {
        let begin = self.clock.now();
        let received = self.receive()?;
        let now = if received > 0 { self.clock.now() } else { begin };
        let started = pace.as_deref_mut().map_or(0, |pace| pace.start_due(now, &mut self.agent));
        let mut sent = 0;
        if started > 0 || self.agent.deadline() <= now || self.agent.phase() != Phase::Running {
            let Generator { agent, sender, line, recorder, .. } = self;
            let mut out = |to, bytes: &[u8]| {
                sent += 1;
                sender.push(&mut **line, to, bytes);
            };
            agent.poll(now, &mut out, recorder);
            self.sender.flush(&mut *self.line);
            if let Some((address, why)) = self.sender.unreachable.take() {
                self.unreachable = Some(why);
                self.agent.handle_unreachable(address);
            }
        }
        if sent > 0 {
            self.last_sent = now;
        }
        if now >= self.next_progress {
            self.print_progress(now);
        }
        if received > 0 || sent > 0 {
            self.busy += self.clock.now().since(begin);
        } else {
            self.sleep(now, pace.as_deref());
        }
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<usize> {
        let Generator { line, agent, arriving, recorder, clock, .. } = self;
        let mut now = None;
        let received = line.receive(&mut |from, datagram| {
            let now = *now.get_or_insert_with(|| clock.now());
            for _ in 0..arriving.copies() {
                agent.handle(now, datagram, from, recorder);
            }
        });
        match received {
            Ok(count) => Ok(count),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => Ok(0),
            Err(e) if is_unreachable(&e) => {
                self.unreachable = Some(e.kind());
                while let Some(address) = line.take_unreachable() {
                    agent.handle_unreachable(address);
                }
                Ok(0)
            }
            Err(e) => Err(e).context("cannot receive"),
        }
    }

    /// Sleeps until something is due or arrives, unless that will be so soon that waking up would be late.
    fn sleep(&mut self, now: Time, pace: Option<&Pace>) {
        if self.agent.in_flight() > 0 && now.since(self.last_sent) < SPIN {
            return;
        }
        let mut until = self.next_progress.min(self.agent.deadline());
        if let Some(pace) = pace {
            until = until.min(pace.deadline());
            if pace.is_starving() {
                until = until.min(self.agent.next_due());
            }
        }
        let wait = until.since(now).saturating_sub(WAKE);
        if wait >= SLEEP_MIN {
            self.line.wait(wait);
        }
    }

    fn print_progress(&mut self, now: Time) {
        self.next_progress = now + PROGRESS;
        let (agent, seconds) = (&self.agent, now.since(self.started));
        if agent.phase() == Phase::Running {
            let (held, repeats) = (agent.held(), agent.repeats());
            self.recorder.note_second(agent.calls_started().into(), agent.tally());
            tell(&self.recorder.progress(seconds, agent.tally(), agent.in_flight(), held, repeats));
        } else {
            let what = match agent.phase() {
                Phase::Clearing => "clearing the endpoints",
                Phase::Standing => "setting up standing calls",
                Phase::WindingDown => "ending calls",
                _ => "auditing what is left",
            };
            let to = agent.address().map(|a| a.to_string()).unwrap_or_default();
            let (in_flight, repeats) = (agent.in_flight(), agent.repeats());
            tell(&format!("{what} ({to}): {in_flight} commands outstanding, {repeats} repeated"));
        }
    }
}

/// Progress is for whoever still reads it.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The gateway's addresses, for a message.
fn addresses(plan: &Plan) -> String {
    plan.gateway().iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use clap::Parser;

    use super::super::report;
    use super::*;
    use crate::proto::agent::scripted::{Gateway, Script};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn who_was_not_asked_is_not_silent() {
        let (mut silence, at) = (Silence::default(), |seconds: u64| Time::from_millis(seconds * 1000));
        assert_eq!(silence.so_far(at(9), at(2), 0), Duration::ZERO);
        assert_eq!(silence.so_far(at(10), at(2), 1), Duration::from_secs(1));
        assert_eq!(silence.so_far(at(12), at(2), 3), Duration::from_secs(3));
        assert_eq!(silence.so_far(at(13), at(12), 2), Duration::from_secs(1));
    }

    /// Serves `script` until dropped.
    struct Server {
        stop: Arc<AtomicBool>,
        address: SocketAddr,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    impl Server {
        fn start(script: Script) -> Server {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let address = socket.local_addr().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let thread = std::thread::spawn(move || {
                let mut gateway = Gateway::new(script);
                let mut buffer = [0; 65_536];
                while !stopped.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                    for (_, answer) in gateway.handle(&buffer[..length]) {
                        socket.send_to(answer.as_bytes(), from).unwrap();
                    }
                }
                assert_eq!(gateway.connections.values().map(Vec::len).sum::<usize>(), 0);
            });
            Server { stop, address, thread: Some(thread) }
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            if let Some(thread) = self.thread.take() {
                let ended = thread.join();
                assert!(std::thread::panicking() || ended.is_ok());
            }
        }
    }

    /// Calls without trunks tell far ends nothing.
    struct NoFarEnds;

    impl FarEnds for NoFarEnds {
        fn order(&self, endpoint: &str, order: &str) -> anyhow::Result<()> {
            bail!("{endpoint}: {order}")
        }
    }

    fn run_line(line: &str) -> (Recorder, Facts) {
        let words = std::iter::once("load").chain(line.split_whitespace());
        let args = Program::try_parse_from(words).unwrap().args;
        run(&args, &args.plan().unwrap(), Arc::new(NoFarEnds)).unwrap()
    }

    #[test]
    fn open_and_closed_loop_measure_and_leave_nothing() {
        let server = Server::start(Script::default());
        for how in ["--scenario call --rate 2000", "--scenario call --window 8", "--scenario mixed --rate 1000 --standing 9 --hold 20"] {
            let (recorder, facts) = run_line(&format!("{how} --duration 0.4 --target {} --listen 127.0.0.1:0", server.address));
            assert_eq!(recorder.failures(), 0, "{}", report::table(&recorder, &facts));
            assert!(recorder.measured() > 200 && recorder.measured() == facts.sent, "{}", report::table(&recorder, &facts));
            assert_eq!(facts.standing, facts.standing_wanted);
            let object = report::json(&recorder, &facts);
            assert_eq!(object["passed"], true);
            assert_eq!(object["verbs"]["CRCX"]["lost"], 0);
            assert!(object["verbs"]["CRCX"]["latency_us"]["p99.99"].as_f64().unwrap() > 0.0);
            assert_eq!(object["completed"], facts.sent);
        }
    }

    #[test]
    fn losses_both_ways_are_repaired_and_told() {
        let server = Server::start(Script::default());
        let line = "--scenario call --rate 500 --duration 0.6 --loss 0.02 --duplicate 0.05 --seed 7 --listen 127.0.0.1:0 --target";
        let (recorder, facts) = run_line(&format!("{line} {}", server.address));
        assert_eq!(recorder.failures(), 0, "{}", report::table(&recorder, &facts));
        assert!(facts.simulated_losses > 0 && facts.simulated_duplicates > 0 && facts.repeats > 0 && facts.tally.responses_repeated > 0);
        assert!(report::table(&recorder, &facts).contains("made on purpose"));
    }

    #[test]
    fn more_rate_than_endpoints_is_told() {
        let server = Server::start(Script::default());
        let line = "--scenario call --rate 1000 --duration 0.5 --hold 200 --endpoints a[1-4] --listen 127.0.0.1:0 --target";
        let (recorder, facts) = run_line(&format!("{line} {}", server.address));
        assert!(facts.starved > 0 && facts.unsent > 0, "{}", report::table(&recorder, &facts));
        assert!(report::table(&recorder, &facts).contains("starved"));
        assert_eq!(recorder.failures(), 0);
    }

    #[test]
    fn a_failed_check_is_told() {
        let server = Server::start(Script { no_parameters: true, ..Script::default() });
        let line = "--scenario call --rate 300 --duration 0.2 --listen 127.0.0.1:0 --target";
        let (recorder, facts) = run_line(&format!("{line} {}", server.address));
        assert!(recorder.failures() > 0 && report::table(&recorder, &facts).contains("DLCX response without connection parameters"));
        assert_eq!(report::json(&recorder, &facts)["passed"], false);
    }
}
