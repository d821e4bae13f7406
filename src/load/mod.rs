//! `tollgate load`: plays the call agent against a gateway and measures it.
//!
//! The agent itself is [`crate::proto::agent`]; here are its socket, its clock, its schedule and its report. One thread: it
//! receives, starts what is due, sends, and spins while answers are expected soon.
//!
//! * [`pace`]: open and closed loop. * [`sender`]: runs of datagrams, losses on purpose. * [`mod@line`]: by the kernel or past it.
//! * [`socket`]: system calls. * [`report`]: figures. * [`plot`]: pictures. * [`voice`]: calls that carry a voice. * [`far_end`]: T1s in pseudowires from the other side.
//! * [`mod@cluster`]: gateways of a cluster that ask its central node.

pub mod clock;
pub mod cluster;
pub mod far_end;
pub mod line;
mod outcomes;
pub mod pace;
mod player;
pub mod plot;
pub mod report;
mod run;
pub mod sender;
pub mod socket;
pub mod voice;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};

pub use self::player::FarEnds;

use self::pace::Loop;
use crate::proto::agent::rules::Rule;
use crate::proto::agent::{Scenario, Settings, Timers, controller, pattern, trunks};
use crate::proto::overload::throttle::Parameters;

/// Commands are filled with blanks to a multiple of this, so that those of a verb have equal lengths and leave in one run.
const PAD_TO: usize = 32;
/// Calls over trunks are held so long at least: a far end may take a shorter answer for a wink.
const TRUNK_HOLD_MIN: Duration = Duration::from_millis(500);
/// The longest list of events: a command has room for it.
const EVENTS_MAX: usize = 256;
/// The longest run and the longest call; more is a slip of the pen.
const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Arguments of `tollgate load`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to speak: as a call agent MGCP, as a media gateway controller H.248.1 (text).
    #[arg(long, value_enum, default_value = "mgcp")]
    pub protocol: Protocol,
    /// The gateway's addresses, the preferred one first; 127.0.0.1:2427, for H.248 127.0.0.1:2944.
    #[arg(long, value_name = "A:P[,A:P]", value_delimiter = ',')]
    pub target: Vec<SocketAddr>,
    /// The address to play the call agent at: 127.0.0.1:2727; for H.248, where the gateway has to know its controller, 127.0.0.1:3944.
    #[arg(long, value_name = "A:P")]
    pub listen: Option<SocketAddr>,
    /// Send and receive past the kernel's network stack (AF_XDP) by this interface, which has the
    /// --listen address.
    #[arg(long, value_name = "IF")]
    pub xdp: Option<String>,
    /// With --xdp: packet filters of this host may be passed by.
    #[arg(long, requires = "xdp")]
    pub bypass_firewall: bool,
    /// What to send: calls (CRCX, MDCX, hold, DLCX), audits (AUEP, AUCX), or both; or calls over trunks that signal, with events, signals
    /// and far ends that play their part.
    #[arg(long, value_enum, required = false, required_unless_present_any = ["voice", "cluster"], default_value_ifs([("voice", "true", "call"), ("cluster", "true", "call")]))]
    pub scenario: ScenarioName,
    /// Open loop: commands (calls, over trunks that signal and for H.248) per second by schedule, whatever the gateway does. With --voice: calls
    /// that begin in a second at most, while channels are free.
    #[arg(long, value_name = "N", conflicts_with = "window", required_unless_present_any = ["window", "voice"])]
    pub rate: Option<f64>,
    /// With --rate: how they come, at equal distances or at random (a Poisson process).
    #[arg(long, value_enum, default_value = "constant")]
    pub arrivals: Arrivals,
    /// Closed loop: commands outstanding (calls at a time, over trunks that signal).
    #[arg(long, value_name = "N")]
    pub window: Option<usize>,
    /// Seconds during which commands or calls are started.
    #[arg(long, value_name = "S")]
    pub duration: f64,
    /// The endpoints, without their domain.
    #[arg(long, value_name = "PATTERN", default_value = "ds/ds3-1/ds1-[1-28]/[1-24]")]
    pub endpoints: String,
    /// The domain of the endpoint names.
    #[arg(long, value_name = "NAME", default_value = "tgw.example.net")]
    pub domain: String,
    /// How long a call is held, in milliseconds; over trunks that signal at least 500, for a shorter answer is a wink.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub hold: u64,
    /// Calls that stay up beside the load; with --cluster, calls of each gateway that are up before it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub standing: usize,
    /// Probability that the far end of a call misbehaves; only over trunks that signal.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub misbehave: f64,
    /// Probability that a datagram is lost, each way.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub loss: f64,
    /// Probability that a datagram is doubled, each way.
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub duplicate: f64,
    /// Seed of everything random, transaction ids too; drawn when not given. The same one again within T-HIST (30 s) sends repeats of
    /// the first run, and confirmed ones get no answer.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Hold calls back when the gateway answers 409 or 101, or says `ocp/mg_overload` in H.248, so that it works at full capacity and
    /// few calls are refused.
    #[arg(long)]
    pub throttle: bool,
    /// With --throttle: refusals a second aimed at.
    #[arg(long, value_name = "N", default_value_t = 10.0, requires = "throttle")]
    pub throttle_goal: f64,
    /// Check responses, and audit at the end that nothing is left.
    #[arg(long, value_name = "YES", default_value_t = true, action = clap::ArgAction::Set)]
    pub verify: bool,
    /// Each call asks for these events, as `R:` writes them, and the answer to each Notify asks again. Such as `D/[0-9](N)`.
    #[arg(long, value_name = "EVENTS")]
    pub events: Option<String>,
    /// Rules of RFC 3435 the agent breaks on purpose (docs/conformance/agent.md): lockstep, one-command, one-request, wildcard-first,
    /// embedded, one-configuration, load-control, alternates; over trunks: lockstep, load-control, alternates.
    #[arg(long = "break", value_name = "RULE[,RULE]", value_delimiter = ',', value_parser = rule)]
    pub broken: Vec<Rule>,
    /// With --protocol h248: calls are held between --hold and so many milliseconds, at random.
    #[arg(long, value_name = "MS")]
    pub hold_max: Option<u64>,
    /// Write a picture (SVG) of the run, second by second: calls asked for, sent and set up, notifications of overload, set-up times.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Play the far ends of all spans in pseudowires of the gateway's --config here, and tell those what to do in calls over trunks that
    /// signal; else they are simulated ones of the gateway, told over its operator socket.
    #[arg(long)]
    pub far_ends: bool,
    /// Play the gateways of a cluster against its central node (`cac.cs` of --config, the file of a gateway), with --rate or --window,
    /// --duration, --hold and --standing.
    #[arg(long, conflicts_with = "voice")]
    pub cluster: bool,
    /// With --cluster: gateways 1 to N; those in `cac.nodes`.
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub gateways: Option<u32>,
    /// Calls that carry a voice.
    #[command(flatten)]
    pub voice: voice::Args,
}

/// A rule by its name.
fn rule(name: &str) -> Result<Rule, String> {
    let names = || Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ");
    Rule::by_name(name).ok_or_else(|| format!("no such rule; there are {}", names()))
}

/// What is spoken with the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Protocol {
    /// MGCP 1.0.
    Mgcp,
    /// H.248.1, text.
    H248,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Mgcp => "mgcp",
            Protocol::H248 => "h248",
        }
    }
}

/// How commands or calls come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// At random.
    Poisson,
}

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ScenarioName {
    /// Calls.
    Call,
    /// Audits.
    Audit,
    /// One audit to three commands of calls.
    Mixed,
    /// Calls over MF trunks (package MS).
    CasMs,
    /// Calls over DTMF or dial-pulse trunks (package DT).
    CasDt,
    /// Calls over Feature Group D trunks (package MD).
    CasMd,
    /// Calls to operator services (package MO).
    CasMo,
    /// Calls from and to lines of a PBX (package BL).
    CasBl,
    /// Continuity tests and calls on channels signalled elsewhere (package T).
    Cot,
}

impl ScenarioName {
    fn name(self) -> &'static str {
        match self {
            ScenarioName::Call => "call",
            ScenarioName::Audit => "audit",
            ScenarioName::Mixed => "mixed",
            ScenarioName::CasMs => "cas-ms",
            ScenarioName::CasDt => "cas-dt",
            ScenarioName::CasMd => "cas-md",
            ScenarioName::CasMo => "cas-mo",
            ScenarioName::CasBl => "cas-bl",
            ScenarioName::Cot => "cot",
        }
    }

    fn meaning(self) -> Meaning {
        match self {
            ScenarioName::Call => Meaning::Calls(Scenario::Call),
            ScenarioName::Audit => Meaning::Calls(Scenario::Audit),
            ScenarioName::Mixed => Meaning::Calls(Scenario::Mixed),
            ScenarioName::CasMs => Meaning::Trunks(trunks::Kind::Ms),
            ScenarioName::CasDt => Meaning::Trunks(trunks::Kind::Dt),
            ScenarioName::CasMd => Meaning::Trunks(trunks::Kind::Md),
            ScenarioName::CasMo => Meaning::Trunks(trunks::Kind::Mo),
            ScenarioName::CasBl => Meaning::Trunks(trunks::Kind::Bl),
            ScenarioName::Cot => Meaning::Trunks(trunks::Kind::Cot),
        }
    }
}

/// Which agent plays a scenario, and what it is told of it.
enum Meaning {
    Calls(Scenario),
    Trunks(trunks::Kind),
}

/// What an agent is told.
#[derive(Debug)]
enum Played {
    Calls(Box<Settings>),
    Contexts(controller::Settings),
    Trunks(trunks::Settings),
}

/// What the arguments mean.
#[derive(Debug)]
struct Plan {
    played: Played,
    kind: Loop,
    poisson: bool,
    duration: Duration,
    seed: u64,
}

impl Plan {
    /// The gateway's addresses.
    fn gateway(&self) -> &[SocketAddr] {
        match &self.played {
            Played::Calls(settings) => &settings.gateway,
            Played::Contexts(settings) => std::slice::from_ref(&settings.gateway),
            Played::Trunks(settings) => &settings.gateway,
        }
    }
}

impl Args {
    /// The gateway's addresses.
    fn target(&self) -> Vec<SocketAddr> {
        if !self.target.is_empty() {
            return self.target.clone();
        }
        vec![([127, 0, 0, 1], if self.protocol == Protocol::H248 { 2944 } else { 2427 }).into()]
    }

    /// The address to play at.
    fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| ([127, 0, 0, 1], if self.protocol == Protocol::H248 { 3944 } else { 2727 }).into())
    }

    /// The run of [`voice::run`] that they ask for.
    fn around(&self) -> anyhow::Result<voice::Around> {
        if self.protocol != Protocol::Mgcp || self.xdp.is_some() || self.loss + self.duplicate + self.misbehave > 0.0 || self.standing > 0 {
            bail!("--protocol h248, --xdp, --loss, --duplicate, --misbehave and --standing: not with --voice");
        }
        if self.window.is_some() || self.throttle || self.events.is_some() || !self.broken.is_empty() || self.arrivals != Arrivals::Constant
        {
            bail!("--window, --throttle, --events, --break and --arrivals: not with --voice; --rate says how many calls begin in a second");
        }
        self.check_addresses()?;
        Ok(voice::Around {
            listen: self.listen(),
            gateways: self.target(),
            domain: self.domain.clone(),
            duration: self.duration()?,
            hold: Duration::from_millis(self.hold),
            rate: self.rate,
            seed: self.seed.unwrap_or_else(random_seed),
            json: self.json,
        })
    }

    fn duration(&self) -> anyhow::Result<Duration> {
        match Duration::try_from_secs_f64(self.duration).ok().filter(|d| !d.is_zero() && *d <= DURATION_MAX) {
            Some(duration) => Ok(duration),
            None => bail!("--duration {}: must be a number of seconds above 0 and at most {}", self.duration, DURATION_MAX.as_secs()),
        }
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        for (name, probability) in [("loss", self.loss), ("duplicate", self.duplicate), ("misbehave", self.misbehave)] {
            if !(0.0..=1.0).contains(&probability) {
                bail!("--{name} {probability}: must be from 0.0 to 1.0");
            }
        }
        let duration = self.duration()?;
        let hold = Duration::from_millis(self.hold);
        if hold > DURATION_MAX {
            bail!("--hold {}: must be at most {} ms", self.hold, DURATION_MAX.as_millis());
        }
        if let Some(most) = self.hold_max
            && (self.protocol != Protocol::H248 || most < self.hold || Duration::from_millis(most) > DURATION_MAX)
        {
            bail!("--hold-max {most}: only with --protocol h248, at least --hold and at most {} ms", DURATION_MAX.as_millis());
        }
        let kind = match (self.rate, self.window) {
            (Some(rate), None) if rate > 0.0 && rate <= 1e8 => Loop::Rate(rate),
            (None, Some(window)) if window > 0 => Loop::Window(window),
            (Some(rate), None) => bail!("--rate {rate}: must be above 0 and at most 100,000,000"),
            _ => bail!("either --rate or --window, above 0"),
        };
        let with_domain = |names: Vec<String>| names.into_iter().map(|name| format!("{name}@{}", self.domain)).collect::<Vec<_>>();
        let name_of_pattern = || format!("--endpoints {}", self.endpoints);
        let endpoints = with_domain(pattern::expand(&self.endpoints).with_context(name_of_pattern)?);
        let clearing = with_domain(pattern::clearing_names(&self.endpoints).with_context(name_of_pattern)?);
        if self.domain.is_empty() || self.domain.len() > 255 || !self.domain.bytes().all(|b| b.is_ascii_graphic()) {
            bail!("--domain {}: must be 1 to 255 characters without blanks", self.domain);
        }
        self.check_addresses()?;
        if matches!(self.scenario.meaning(), Meaning::Trunks(_)) {
            if self.events.is_some() {
                bail!("--events: only with the scenarios call, audit and mixed");
            }
            if let Some(rule) = self.broken.iter().find(|rule| !trunks::BREAKABLE.contains(rule)) {
                let names = trunks::BREAKABLE.map(Rule::name).join(", ");
                bail!("--break {}: only with the scenarios call, audit and mixed; over trunks: {names}", rule.name());
            }
        }
        if let Some(events) = &self.events
            && (events.is_empty() || events.len() > EVENTS_MAX || !events.bytes().all(|b| b.is_ascii_graphic() || b == b' '))
        {
            bail!("--events {events}: must be 1 to {EVENTS_MAX} characters");
        }
        if let Loop::Window(window) = kind
            && window > endpoints.len()
        {
            bail!("--window {window}: an endpoint has at most one command outstanding, and the pattern has {}", endpoints.len());
        }
        let usable = if self.scenario == ScenarioName::Audit { endpoints.len() } else { endpoints.len() - 1 };
        if self.standing > usable {
            bail!("--standing {}: the pattern has {} endpoints, and calls need one beside them", self.standing, endpoints.len());
        }
        if self.arrivals == Arrivals::Poisson && self.rate.is_none() {
            bail!("--arrivals: needs --rate, for in a closed loop commands come when others have ended");
        }
        if self.throttle && self.rate.is_none() {
            bail!("--throttle: needs --rate, for in a closed loop nothing is asked that could be held back");
        }
        if self.protocol == Protocol::H248 {
            let played = Played::Contexts(self.controller(hold)?);
            let poisson = self.arrivals == Arrivals::Poisson;
            return Ok(Plan { played, kind, poisson, duration, seed: self.seed.unwrap_or_else(random_seed) });
        }
        let gateway = self.target();
        let (verify, timers) = (self.verify, Timers::default());
        let played = match self.scenario.meaning() {
            Meaning::Calls(_) if self.misbehave > 0.0 => bail!("--misbehave: only calls over trunks that signal have far ends"),
            Meaning::Trunks(_) if self.throttle => bail!("--throttle: not over trunks that signal"),
            Meaning::Trunks(_) if self.standing > 0 => bail!("--standing: not over trunks that signal"),
            Meaning::Calls(scenario) => Played::Calls(Box::new(Settings {
                gateway,
                // An endpoint has at most one command outstanding.
                transactions_max: endpoints.len(),
                endpoints,
                clearing,
                scenario,
                hold,
                standing: self.standing,
                pad_to: PAD_TO,
                verify,
                timers,
                throttle: self.throttle.then(|| self.throttle_parameters()).transpose()?,
                events: self.events.clone().unwrap_or_default(),
                broken: self.broken.iter().copied().collect(),
            })),
            Meaning::Trunks(kind) => {
                let misbehave = (self.misbehave * 1e6).round() as u32;
                let (hold, broken) = (hold.max(TRUNK_HOLD_MIN), self.broken.iter().copied().collect());
                Played::Trunks(trunks::Settings { gateway, endpoints, kind, hold, misbehave, verify, broken, timers })
            }
        };
        let poisson = self.arrivals == Arrivals::Poisson;
        Ok(Plan { played, kind, poisson, duration, seed: self.seed.unwrap_or_else(random_seed) })
    }

    /// The controller of an H.248 gateway. Its names have no hyphens (RFC 3525 B.2).
    fn controller(&self, hold: Duration) -> anyhow::Result<controller::Settings> {
        let (targets, listen) = (self.target(), self.listen());
        let [gateway] = targets[..] else { bail!("--target: an H.248 gateway has one address") };
        if self.scenario != ScenarioName::Call {
            bail!("--scenario: with --protocol h248 there is call");
        }
        if self.standing > 0 || self.misbehave > 0.0 || self.events.is_some() || !self.broken.is_empty() || self.xdp.is_some() {
            bail!("--standing, --misbehave, --events, --break and --xdp: not with --protocol h248");
        }
        if listen.ip().is_unspecified() || listen.port() == 0 {
            bail!("--listen {listen}: a gateway knows its controller by its address, so one must be named");
        }
        let names = pattern::expand(&self.endpoints).with_context(|| format!("--endpoints {}", self.endpoints))?;
        let message_id = match listen {
            SocketAddr::V4(at) => format!("[{}]:{}", at.ip(), at.port()),
            SocketAddr::V6(at) => format!("[{}]:{}", at.ip(), at.port()),
        };
        let channels = names.into_iter().map(|name| name.replace('-', "_")).collect();
        let throttle = self.throttle.then(|| self.throttle_parameters()).transpose()?;
        let hold_max = self.hold_max.map_or(hold, Duration::from_millis);
        Ok(controller::Settings { gateway, message_id, channels, hold, hold_max, verify: self.verify, throttle })
    }

    fn throttle_parameters(&self) -> anyhow::Result<Parameters> {
        let parameters = Parameters { goal: self.throttle_goal, ..Parameters::default() };
        match parameters.validate() {
            Ok(()) => Ok(parameters),
            Err(why) => bail!("--throttle-goal {}: {why}", self.throttle_goal),
        }
    }

    fn check_addresses(&self) -> anyhow::Result<()> {
        let (targets, listen) = (self.target(), self.listen());
        let families = |v4: bool| targets.iter().filter(|target| target.is_ipv4() == v4).map(ToString::to_string).collect::<Vec<_>>();
        let (v4, v6) = (families(true).join(","), families(false).join(","));
        if !v4.is_empty() && !v6.is_empty() {
            bail!("--target: {v4} and {v6} are of two address families, and one agent plays at one address: name those of one family");
        }
        for (place, target) in targets.iter().enumerate() {
            if target.port() == 0 || target.ip().is_unspecified() || target.ip().is_multicast() {
                bail!("--target {target}: must be the address and port of one gateway");
            }
            if target.is_ipv4() != listen.is_ipv4() {
                let all = if target.is_ipv4() { "0.0.0.0:2727" } else { "[::]:2727" };
                bail!("--target {target} and --listen {} are of two address families; use, for example, --listen {all}", listen);
            }
            if targets[..place].contains(target) {
                bail!("--target {target}: named twice; the addresses must be different ones");
            }
            if *target == listen {
                bail!("--target {target}: is --listen itself");
            }
        }
        Ok(())
    }
}

/// Runs the load; `far` tells the far ends of trunks what to do. The exit code is 0 when no check failed, 1 when one did or no call was taken
/// at all, 2 when the arguments make no sense.
///
/// # Errors
/// When it cannot listen, or nothing answers at the beginning.
pub fn run(args: Args, far: Arc<dyn FarEnds>) -> anyhow::Result<ExitCode> {
    if args.voice.voice {
        return voice::run(&args.voice, &args.around()?);
    }
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(error) => {
            // Without anybody who reads it the exit code says enough.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    let (recorder, facts) = run::run(&args, &plan, far)?;
    if let Some(file) = &args.plot {
        let picture = plot::run(&title(&args), recorder.seconds());
        std::fs::write(file, picture).with_context(|| format!("--plot {}: cannot be written", file.display()))?;
    }
    let report = if args.json { format!("{}\n", report::json(&recorder, &facts)) } else { report::table(&recorder, &facts) };
    match std::io::stdout().lock().write_all(report.as_bytes()) {
        // Whoever reads may have seen enough (`| head`).
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => bail!("the report cannot be printed: {error}"),
        _ => {}
    }
    Ok(if recorder.failures() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a picture shows, in words.
fn title(args: &Args) -> String {
    let wanted = match (args.rate, args.window) {
        (Some(rate), _) => format!("{rate} calls a second"),
        (_, window) => format!("{} commands outstanding", window.unwrap_or_default()),
    };
    let arrivals = if args.arrivals == Arrivals::Poisson { ", at random" } else { "" };
    let held = if args.hold_max.is_some() { ", held at random" } else { "" };
    let throttle = if args.throttle { format!(", throttled to {} notifications a second", args.throttle_goal) } else { String::new() };
    format!("{} over {}: {wanted}{arrivals}{held}{throttle}", args.scenario.name(), args.protocol.name())
}

/// A seed from the standard library's per-process random keys.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("seed")
}

#[cfg(test)]
mod tests;
