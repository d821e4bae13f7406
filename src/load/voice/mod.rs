//! `tollgate load --voice`: calls that carry a voice, from the far end of one trunk to the far end of another, checked end to end.
//!
//! It plays everything around one or two gateways: the call agent, which sets calls up over MGCP, and the far ends of T1s in pseudowires, which
//! say something and judge what arrives. Where it is told so, the RTP between the gateways passes through it and is lost or late.
//!
//! * `desk`: commands and answers.
//! * `call`: a call from set-up to end.
//! * `probe`, `ear`: what is said and heard.
//! * `relay`: the network between.
//! * `record`: what was heard, in files.
//! * `tally`, `quality`: figures.

mod call;
mod desk;
mod ear;
mod probe;
mod quality;
mod record;
mod relay;
mod tally;

use self::call::{PAIRS, Pace, Pair, Plan, Room, TOKENS};
use self::desk::{Desk, News};
use self::probe::{Places, Probe, Probes, Signal};
use self::record::Recorder;
use self::relay::Impairment;
use self::tally::Tally;
use super::far_end::trunk::{self, Satop, Trunk, TrunkSettings};
use crate::host::clock::{Clock, WallClock};
use crate::proto::base::{Rng, Time};
use crate::proto::package::parameters::Digits;
use crate::proto::voice::Law;
use anyhow::{Context, Result, bail, ensure};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Arguments of `tollgate load --voice`.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "voices")]
pub struct Args {
    /// Play the far ends of trunks as well and send a test tone through each call: --trunk and --to-trunk, between which the calls are.
    #[arg(long, requires = "trunk", requires = "to_trunk")]
    pub voice: bool,
    /// With --voice: a T1 of the first --target in a pseudowire, by the beginning of its endpoints' names, where its far end is played, and
    /// the `local` of the span: `ds/ds1-1=127.0.0.1:51000,127.0.0.1:50000`.
    #[arg(long, value_name = "SPAN=A:P,A:P", requires = "voice")]
    pub trunk: Vec<Wire>,
    /// With --voice: the T1 that the one of the same place in the list of --trunk calls; of the second --target when there is one.
    #[arg(long, value_name = "SPAN=A:P,A:P", requires = "voice")]
    pub to_trunk: Vec<Wire>,
    /// With --voice: trunks come bit by bit with their framing (SAToP, RFC 4553), an extended superframe; else without (CESoPSN).
    #[arg(long, requires = "voice")]
    pub satop: bool,
    /// With --satop: a superframe (D4).
    #[arg(long, requires = "satop")]
    pub d4: bool,
    /// With --satop: each 193 bits are padded to 25 octets.
    #[arg(long, requires = "satop")]
    pub octet_aligned: bool,
    /// With --voice: the coding of the calls; `clearmode` carries a pattern of bits in place of the tone.
    #[arg(long, value_enum, default_value = "pcmu")]
    pub coding: Coding,
    /// With --voice: the packet period of RTP in ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u8).range(10..=60))]
    pub period: u8,
    /// With --voice: channels of each trunk that make calls, from the first on.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u8).range(1..=24))]
    pub channels: u8,
    /// With --voice: each call begins with these digits both ways, which the gateways are to notify.
    #[arg(long, value_name = "DIGITS")]
    pub digits: Option<String>,
    /// With --voice: how much faster than this machine's clock that of each --trunk is, in parts per million.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, allow_negative_numbers = true)]
    pub ppm: f64,
    /// With --voice: the same of each --to-trunk.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, allow_negative_numbers = true)]
    pub to_ppm: f64,
    /// With --voice or --far-ends: packets of the trunks lost on purpose on the way to the gateways, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub trunk_loss: f64,
    /// With --voice: the shortest mean wait in the jitter buffers of the far ends, in ms.
    #[arg(long, value_name = "MS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub trunk_jitter: u64,
    /// With --voice: the gateways are to protect the media of calls (SRTP); a call whose descriptions do not say so is not well.
    #[arg(long, requires = "voice")]
    pub srtp: bool,
    /// With --voice: RTP packets lost on purpose between the gateways, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub rtp_loss: f64,
    /// With --voice: RTP packets come late by up to so much, in ms.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub rtp_jitter: u64,
    /// With --voice: write what each end of each call heard into this directory, which is made and must be empty: a WAV file each, 8 kHz, 16
    /// bits.
    #[arg(long, value_name = "DIR", requires = "voice")]
    pub record: Option<PathBuf>,
    /// With --record: all files together are no larger than this, in MiB; a second of one end has 16 kB.
    #[arg(long, value_name = "MIB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=4_000), requires = "record")]
    pub record_limit: u64,
}

/// Codings of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Coding {
    /// G.711 mu law.
    Pcmu,
    /// G.711 A law.
    Pcma,
    /// Octets as they are (RFC 4040).
    Clearmode,
}

/// A T1 and its far end.
#[derive(Clone, Debug)]
pub struct Wire {
    span: String,
    listen: SocketAddr,
    peer: SocketAddr,
}

impl FromStr for Wire {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Wire, &'static str> {
        let form = "the name of a span, =, the far end's address, a comma, and the gateway's";
        let (span, addresses) = text.split_once('=').ok_or(form)?;
        let (listen, peer) = addresses.split_once(',').ok_or(form)?;
        Ok(Wire { span: span.to_owned(), listen: listen.parse().map_err(|_| form)?, peer: peer.parse().map_err(|_| form)? })
    }
}

/// Where the agent is, the gateways, and how long it goes on.
pub struct Around {
    /// Where the agent is.
    pub listen: SocketAddr,
    /// One, or two that call each other.
    pub gateways: Vec<SocketAddr>,
    /// Of the endpoint names.
    pub domain: String,
    /// So long calls begin.
    pub duration: Duration,
    /// The length of a call's voice; zero: as long as calls are made.
    pub hold: Duration,
    /// Calls that may begin in a second; `None`: as soon as channels are free.
    pub rate: Option<f64>,
    /// Of everything random.
    pub seed: u64,
    /// Whether the report is one JSON object.
    pub json: bool,
}

/// The longest sleep: what the network brings is looked at that often.
const NAP: Duration = Duration::from_millis(1);
/// The first call begins so long after the trunks: until then their buffers fill, and what is said is not heard.
const WARM_UP: Duration = Duration::from_secs(1);
/// So long after the first command each gateway has said something, or there is none.
const SILENCE: Duration = Duration::from_secs(3);
/// The first call is set up within this, or none is.
const OPENING: Duration = Duration::from_secs(30);
/// Beyond the end of the schedule calls may take so long to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Calls that are cut may take so long to end: a gateway that has gone does not keep anybody here.
const CUT_PATIENCE: Duration = Duration::from_secs(3);
/// The most calls a second.
const RATE_MAX: f64 = 10_000.0;
/// Digits of a call.
const DIGITS: &str = "0123456789*#ABCD";

/// Makes the calls and prints what came of them. The exit code is 0 when all went well, 1 when one did not, or when there was none.
///
/// # Errors
/// What the arguments or the machine do not allow.
pub fn run(args: &Args, around: &Around) -> Result<ExitCode> {
    check(args, around)?;
    let clock = Clock::new();
    let mut rng = Rng::new(around.seed);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop)).context("cannot watch signals")?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot watch signals")?;
    }
    let mut stage = Stage::open(args, around, &clock, &mut rng)?;
    stage.play(&clock, &mut rng, &stop)?;
    let recordings = stage.end_recordings();
    let mut report = stage.tally.json();
    report["commands_repeated"] = stage.desk.repeats().into();
    report["restarts"] = stage.desk.restarts.into();
    report["recordings"] = recordings;
    report["trunks"] = stage.trunks.iter().map(Trunk::report).collect();
    let text = if around.json { format!("{report}\n") } else { tally::text(&report) };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")?;
    Ok(if stage.tally.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(args: &Args, around: &Around) -> Result<()> {
    ensure!(args.trunk.len() == args.to_trunk.len(), "--trunk and --to-trunk: as many of one as of the other");
    ensure!(args.trunk.len() * usize::from(args.channels) <= PAIRS, "--trunk, --channels: more than {PAIRS} calls");
    ensure!((1..=2).contains(&around.gateways.len()), "--target: with --voice one gateway, or two that call each other");
    for (name, percent) in [("trunk-loss", args.trunk_loss), ("rtp-loss", args.rtp_loss)] {
        ensure!((0.0..100.0).contains(&percent), "--{name} {percent}: must be from 0 to below 100");
    }
    ensure!(around.rate.is_none_or(|rate| rate > 0.001 && rate <= RATE_MAX), "--rate: with --voice calls a second, {RATE_MAX} at most");
    ensure!(args.ppm.abs() <= 1_000.0 && args.to_ppm.abs() <= 1_000.0, "--ppm, --to-ppm: -1000 to 1000");
    if args.digits.as_deref().is_some_and(|digits| args.coding == Coding::Clearmode || !digits.chars().all(|d| DIGITS.contains(d))) {
        bail!("--digits: of {DIGITS}, and not with clearmode");
    }
    ensure!(args.record.is_none() || args.coding != Coding::Clearmode, "--record: a voice, and not with clearmode");
    Ok(())
}

/// Everything that plays.
struct Stage {
    plan: Plan,
    desk: Desk,
    trunks: Vec<Trunk<Probes>>,
    pairs: Vec<Pair>,
    places: Places,
    tally: Tally,
    pace: Pace,
    recorder: Option<Recorder>,
    /// Calls begin for so long after the first one was set up.
    duration: Duration,
}

impl Stage {
    fn open(args: &Args, around: &Around, clock: &Clock, rng: &mut Rng) -> Result<Stage> {
        let signal = if args.coding == Coding::Clearmode { Signal::Pattern } else { Signal::Tone };
        let satop = Satop { satop: args.satop, d4: args.d4, octet_aligned: args.octet_aligned };
        let (layout, framing) = trunk::layout(satop, false, false, None, None)?;
        let channels = usize::from(args.channels);
        let open = |wire: &Wire, ppm: f64| {
            let (listen, peer, jitter) = (wire.listen, wire.peer, Duration::from_millis(args.trunk_jitter));
            let settings = TrunkSettings { listen, peer, layout, framing, e1: false, jitter, ppm, loss: args.trunk_loss / 100.0 };
            let probes = Probes::new((0..24).map(|_| Probe::new(Law::Mu, signal)).collect());
            Trunk::new(clock, &settings, probes).with_context(|| format!("the far end of {} at {listen}", wire.span))
        };
        let begins = clock.now() + WARM_UP;
        let mut trunks = Vec::new();
        let mut pairs = Vec::new();
        for (from, to) in args.trunk.iter().zip(&args.to_trunk) {
            let first = trunks.len();
            trunks.push(open(from, args.ppm)?);
            trunks.push(open(to, args.to_ppm)?);
            for channel in 0..channels {
                let name = |wire: &Wire| format!("{}/{}@{}", wire.span, channel + 1, around.domain);
                let last = around.gateways.len() - 1;
                pairs.push(Pair::new(pairs.len() as u32, begins, [(0, first, channel, name(from)), (last, first + 1, channel, name(to))]));
            }
        }
        let mut digits = Digits::NONE;
        if !args.digits.iter().flat_map(|text| text.bytes()).all(|symbol| digits.push(symbol)) {
            bail!("--digits: too many of them");
        }
        let hold = if around.hold.is_zero() { around.duration } else { around.hold };
        let side = |wires: &[Wire]| wires.first().map(|wire| wire.listen.ip()).context("--trunk and --to-trunk");
        let plan = Plan {
            coding: match args.coding {
                Coding::Pcmu => "PCMU",
                Coding::Pcma => "PCMA",
                Coding::Clearmode => "CLEARMODE",
            },
            signal,
            period_ms: args.period,
            srtp: args.srtp,
            hold,
            digits: args.digits.as_ref().map(|_| digits),
            impairment: Impairment { loss: args.rtp_loss / 100.0, jitter: Duration::from_millis(args.rtp_jitter) },
            addresses: [side(&args.trunk)?, side(&args.to_trunk)?],
            until: Time::NEVER,
            cut: false,
        };
        let cannot = || format!("cannot play the call agent at {} (--listen gives another one)", around.listen);
        let desk = Desk::open(around.listen, &around.gateways, 2 * pairs.len(), rng).with_context(cannot)?;
        let pace = Pace::new(around.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate)));
        let recorder = args.record.as_ref().map(|directory| Recorder::open(directory, args.record_limit << 20)).transpose()?;
        let (places, tally, duration) = (Places::new(), Tally::default(), around.duration);
        Ok(Stage { plan, desk, trunks, pairs, places, tally, pace, recorder, duration })
    }

    /// Ends the recordings of calls that did not end, and says what there is; null when nothing was to be recorded.
    fn end_recordings(&mut self) -> serde_json::Value {
        let Some(mut recorder) = self.recorder.take() else { return serde_json::Value::Null };
        let probes = self.trunks.iter_mut().flat_map(|trunk| trunk.bank_mut().list.iter_mut());
        probes.filter_map(Probe::eject).for_each(|tape| recorder.end(tape));
        if let Some(error) = &recorder.error {
            self.tally.complain(format!("recording: {error}"));
        }
        recorder.report()
    }

    fn play(&mut self, clock: &Clock, rng: &mut Rng, stop: &AtomicBool) -> Result<()> {
        let mut wall = WallClock::new(clock);
        let mut news = Vec::new();
        let mut end = Time::NEVER;
        let opened = clock.now();
        loop {
            let now = clock.now();
            if self.plan.until == Time::NEVER && self.tally.set_up > 0 {
                self.plan.until = now + self.duration;
            }
            if now.since(opened) > WARM_UP + SILENCE
                && let Some(silent) = self.desk.silent()
            {
                bail!("nothing answers at {silent}");
            }
            let stopped = stop.load(Ordering::Relaxed);
            if stopped && !self.plan.cut {
                self.plan.cut = true;
                end = end.min(now + CUT_PATIENCE);
            }
            if stopped || (self.tally.set_up == 0 && now.since(opened) > OPENING) {
                self.plan.until = self.plan.until.min(now);
            }
            if now >= self.plan.until {
                end = end.min(now + self.plan.hold + PATIENCE);
            }
            wall.refresh(now);
            self.trunks.iter_mut().filter(|trunk| trunk.due() <= now).for_each(|trunk| trunk.work(now, &wall));
            self.desk.work(now, &mut news).context("the agent's socket")?;
            let Stage { plan, desk, trunks, pairs, places, tally, pace, recorder, .. } = self;
            let mut room = Room { plan, desk, trunks, places, tally, rng, pace, recorder: recorder.as_mut() };
            for item in news.drain(..) {
                let pair = match &item {
                    News::Final(token, _) | News::Lost(token) => pairs.get_mut((token / TOKENS) as usize),
                    News::Observed { gateway, name, .. } => pairs.iter_mut().find(|pair| pair.has(*gateway, name)),
                };
                if let Some(pair) = pair {
                    pair.take(now, &item, &mut room);
                }
            }
            for pair in pairs.iter_mut() {
                pair.relay(now, &mut room);
                pair.step(now, &mut room);
            }
            if pairs.iter().all(Pair::is_over) {
                return Ok(());
            }
            if now >= end {
                let stuck = pairs.iter().filter(|pair| !pair.is_over()).count();
                tally.complain(format!("{stuck} calls did not end"));
                return Ok(());
            }
            let due = self.trunks.iter().map(Trunk::due).min().unwrap_or(Time::NEVER).min(self.desk.deadline());
            std::thread::park_timeout(due.since(clock.now()).min(NAP));
        }
    }
}
