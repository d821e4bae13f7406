//! `tollgate far-end`: plays the far end of a T1 or E1 in a pseudowire (CESoPSN, RFC 5086), as a switch or a CES box on the other side would:
//! it has the trunk's clock, sends tones, patterns and CAS bits on its channels, and measures what comes back.

mod channel;

use self::channel::{Channel, Part, Task};
use crate::host::card::wire::{Paced, WireSocket};
use crate::host::clock::{Clock, WallClock};
use crate::host::transport::burst::Burst;
use crate::proto::base::Time;
use crate::proto::circuit::{Channels, Circuit, CircuitSettings, Coding};
use crate::proto::package::parameters::Digits;
use crate::proto::pseudowire::{Layout, RtpSettings, State, Structure};
use crate::proto::trunk::DigitKind;
use crate::proto::voice::Law;
use anyhow::{Context, Result, anyhow, bail};
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// Arguments of `tollgate far-end`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where packets come to.
    #[arg(long, value_name = "A:P")]
    pub listen: SocketAddr,
    /// The gateway: the `local` of the span.
    #[arg(long, value_name = "A:P")]
    pub peer: SocketAddr,
    /// Play an E1 with A law; else a T1 with mu law.
    #[arg(long)]
    pub e1: bool,
    /// With channel associated signalling: E&M, ABCD bits behind each multiframe.
    #[arg(long)]
    pub cas: bool,
    /// Frames in a packet; without, as the gateway's `frames = "auto"`.
    #[arg(long, value_name = "N")]
    pub frames: Option<u8>,
    /// The RTP payload type, when packets have RTP headers.
    #[arg(long, value_name = "PT")]
    pub rtp: Option<u8>,
    /// The shortest mean wait of packets in the jitter buffer, in milliseconds; it grows to ten times that, 200 at the most.
    #[arg(long, value_name = "MS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub jitter: u64,
    /// How much faster than this machine's clock the trunk's is, in parts per million.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, allow_negative_numbers = true)]
    pub ppm: f64,
    /// Packets lost on purpose on the way to the gateway, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub loss: f64,
    /// Channels that send a tone of 1004 Hz at -10 dBm0.
    #[arg(long, value_name = "CHANNEL")]
    pub tone: Vec<u8>,
    /// Channels that send back what comes.
    #[arg(long = "loop", value_name = "CHANNEL")]
    pub loops: Vec<u8>,
    /// Channels that send a pattern of 2^15-1 bits and count the bit errors of the one that comes.
    #[arg(long, value_name = "CHANNEL")]
    pub pattern: Vec<u8>,
    /// Channels that seize after a second and stay off-hook until two seconds before the end.
    #[arg(long, value_name = "CHANNEL", requires = "cas")]
    pub seize: Vec<u8>,
    /// Channels wink when the gateway seizes them, and answer two seconds later.
    #[arg(long, requires = "cas")]
    pub answer: bool,
    /// Digits that a channel sends as DTMF, `CHANNEL=DIGITS`: after the gateway's wink when it seizes, else after two seconds.
    #[arg(long, value_name = "CHANNEL=DIGITS")]
    pub dtmf: Vec<Dialled>,
    /// The same as MF: `k` is KP, `s` ST, such as `5=k5551234s`.
    #[arg(long, value_name = "CHANNEL=DIGITS")]
    pub mf: Vec<Dialled>,
    /// Channels listen for MF digits and tell which came; else for DTMF.
    #[arg(long)]
    pub hear_mf: bool,
    /// Seconds to play.
    #[arg(long, value_name = "S")]
    pub duration: f64,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// Digits of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Dialled {
    channel: u8,
    digits: Digits,
}

impl FromStr for Dialled {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Dialled, &'static str> {
        let (channel, symbols) = text.split_once('=').ok_or("a channel, =, and digits")?;
        let mut digits = Digits::NONE;
        let fits = |symbol: u8| matches!(symbol, b'0'..=b'9' | b'A'..=b'D' | b'*' | b'#' | b'k'..=b'm' | b's'..=b'v');
        if !symbols.bytes().all(|symbol| fits(symbol) && digits.push(symbol)) {
            return Err("40 digits at most: 0 to 9, A to D, * and #, or with MF k to m (KP) and s to v (ST)");
        }
        Ok(Dialled { channel: channel.parse().map_err(|_| "a channel, =, and digits")?, digits })
    }
}

/// The longest run: more is a slip of the pen.
const DURATION_MAX: f64 = 7.0 * 86_400.0;
/// Packets are not fragmented and sent as media is (SAT-17).
const DSCP: u8 = 46;
/// A turn plays so many periods at the most; there is nothing else to do.
const BUDGET: usize = 1000;

/// Plays it and prints what came.
///
/// # Errors
/// What the arguments or the machine do not allow.
pub fn run(args: &Args) -> Result<ExitCode> {
    if !(0.1..=DURATION_MAX).contains(&args.duration) || !(0.0..=100.0).contains(&args.loss) || args.ppm.abs() > 1_000.0 {
        bail!("--duration 0.1 to {DURATION_MAX}, --loss 0 to 100, --ppm -1000 to 1000");
    }
    let layout = layout(args)?;
    let socket = WireSocket::bind(args.listen, args.peer, DSCP)?;
    let clock = Clock::new();
    let settings = CircuitSettings {
        layout,
        jitter: Duration::from_millis(args.jitter),
        jitter_max: Duration::from_millis((args.jitter * 10).min(200)),
        own_clock: true,
        idle: if args.e1 { 0xD5 } else { 0xFF },
        sequence: 0,
    };
    let trunk = TrunkClock { rate: 1.0 + args.ppm * 1e-6 };
    let circuit = Circuit::new(trunk.of(clock.now()), &settings).map_err(|problem| anyhow!(problem))?;
    let mut far =
        FarEnd { circuit, channels: Bank { list: channels(args, &layout)?, now: Time::ZERO, end: end(args, &trunk, &clock) }, trunk };
    let mut burst = Burst::new(layout.packet_octets() + 1);
    let mut wall = WallClock::new(&clock);
    let loss = Loss { share: args.loss / 100.0, sum: 0.0 };
    let mut way = Lossy { far: &mut far, loss };
    while way.far.channels.now < way.far.channels.end {
        let now = clock.now();
        wall.refresh(now);
        socket.work(now, &mut way, &mut burst, &wall, &mut { BUDGET });
        std::thread::park_timeout(way.due().since(clock.now()));
    }
    let report = far.report(args);
    let mut out = std::io::stdout();
    if args.json { writeln!(out, "{report}") } else { write!(out, "{}", text(&report)) }.context("standard output")?;
    Ok(ExitCode::SUCCESS)
}

fn end(args: &Args, trunk: &TrunkClock, clock: &Clock) -> Time {
    trunk.of(clock.now()) + Duration::from_secs_f64(args.duration)
}

fn layout(args: &Args) -> Result<Layout> {
    let structure = match (args.e1, args.cas) {
        (false, false) => Structure::Frames { channels: 24, frames: args.frames.unwrap_or(8).into() },
        (true, false) => Structure::Frames { channels: 31, frames: args.frames.unwrap_or(8).into() },
        (false, true) => Structure::Signalled { channels: 24, multiframe: 24, frames: args.frames.unwrap_or(24) },
        (true, true) => Structure::Signalled { channels: 30, multiframe: 16, frames: args.frames.unwrap_or(16) },
    };
    let rtp = args.rtp.map(|payload_type| RtpSettings { payload_type, ssrc: None });
    Layout::new(structure, rtp).map_err(|problem| anyhow!("--frames or --rtp: {problem}"))
}

/// The channels by their numbers on the trunk: with CAS an E1 has no channel 16.
fn channels(args: &Args, layout: &Layout) -> Result<Vec<Channel>> {
    let law = if args.e1 { Law::A } else { Law::Mu };
    let coding = args.cas.then_some(if args.e1 { Coding::EarAndMouthE1 } else { Coding::EarAndMouth });
    let count = match layout.structure() {
        Structure::Frames { channels, .. } | Structure::Signalled { channels, .. } => channels,
        Structure::Bits(_) => 0,
    };
    let numbers: Vec<u8> = (1..=31).filter(|number| !(args.e1 && args.cas && *number == 16)).take(count.into()).collect();
    let dialled = args.dtmf.iter().chain(&args.mf).map(|dialled| &dialled.channel);
    for wanted in [&args.tone, &args.loops, &args.pattern, &args.seize].into_iter().flatten().chain(dialled) {
        if !numbers.contains(wanted) {
            bail!("there is no channel {wanted}");
        }
    }
    Ok(numbers
        .into_iter()
        .map(|number| {
            let task = match () {
                () if args.pattern.contains(&number) => Task::Pattern,
                () if args.loops.contains(&number) => Task::Loop,
                () if args.tone.contains(&number) => Task::Tone,
                () => Task::Idle,
            };
            let of = |list: &[Dialled], kind| list.iter().find(|d| d.channel == number).map(|d| (kind, d.digits));
            let digits = of(&args.mf, DigitKind::Mf).or(of(&args.dtmf, DigitKind::Dtmf));
            let hears = if args.hear_mf { DigitKind::Mf } else { DigitKind::Dtmf };
            Channel::new(&Part { number, law, task, coding, seizes: args.seize.contains(&number), answers: args.answer, digits, hears })
        })
        .collect())
}

/// The trunk's clock beside that of the machine.
#[derive(Clone, Copy)]
struct TrunkClock {
    rate: f64,
}

impl TrunkClock {
    fn of(self, time: Time) -> Time {
        Time((time.0 as f64 * self.rate) as u64)
    }

    fn back(self, time: Time) -> Time {
        // Rounded up, so that what is due then is due by the trunk's clock as well.
        Time((time.0 as f64 / self.rate).ceil() as u64 + 1)
    }
}

/// The T1 or E1.
struct FarEnd {
    circuit: Circuit,
    channels: Bank,
    trunk: TrunkClock,
}

/// Its channels.
struct Bank {
    list: Vec<Channel>,
    now: Time,
    end: Time,
}

impl Channels for Bank {
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]) {
        if let Some(channel) = self.list.get_mut(usize::from(channel)) {
            channel.exchange(self.now, came, filler, send);
        }
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        if let Some(channel) = self.list.get_mut(usize::from(channel)) {
            channel.take_bits(self.now, bits);
        }
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        self.list.get_mut(usize::from(channel)).map_or(0, |channel| channel.give_bits(self.now, self.end))
    }
}

/// Packets lost on purpose, evenly.
struct Loss {
    share: f64,
    sum: f64,
}

/// The far end, and the way from it.
struct Lossy<'a> {
    far: &'a mut FarEnd,
    loss: Loss,
}

impl Paced for Lossy<'_> {
    fn due(&self) -> Time {
        self.far.trunk.back(self.far.circuit.due())
    }

    fn catch_up(&mut self, now: Time) {
        self.far.circuit.catch_up(self.far.trunk.of(now));
    }

    fn receive(&mut self, arrival: Time, octets: &[u8]) {
        self.far.circuit.receive(self.far.trunk.of(arrival), octets);
    }

    fn note_stray(&mut self) {
        self.far.circuit.note_stray();
    }

    fn play(&mut self) -> Option<&[u8]> {
        let FarEnd { circuit, channels, .. } = &mut *self.far;
        channels.now = circuit.due();
        self.loss.sum += self.loss.share;
        let is_lost = self.loss.sum >= 1.0;
        self.loss.sum -= f64::from(u8::from(is_lost));
        let packet = circuit.play(channels);
        (!is_lost).then_some(packet)
    }
}

impl FarEnd {
    fn report(&self, args: &Args) -> serde_json::Value {
        let view = self.circuit.view();
        let counts = view.counts;
        let asked = |channel: &&Channel| channel.is_worth_telling() || args.cas;
        serde_json::json!({
            "state": match view.state { State::Filling => "filling", State::Normal => "normal", State::PacketLoss => "packet-loss" },
            "alarms": { "packet_loss": view.alarms.packet_loss, "ais": view.alarms.ais, "rai": view.alarms.rai },
            "received": counts.received,
            "sent": counts.sent,
            "lost": counts.buffer.lost,
            "late": counts.buffer.late,
            "strays": counts.strays,
            "malformed": counts.malformed,
            "remote_losses": counts.remote_losses,
            "slips": counts.slips,
            "channels": self.channels.list.iter().filter(asked).map(Channel::report).collect::<Vec<_>>(),
        })
    }
}

/// The report for people.
fn text(report: &serde_json::Value) -> String {
    let mut text = String::new();
    for (key, value) in report.as_object().into_iter().flatten().filter(|(key, _)| *key != "channels") {
        text += &format!("{key:14} {value}\n");
    }
    for channel in report.get("channels").and_then(|channels| channels.as_array()).into_iter().flatten() {
        text += &format!("channel        {channel}\n");
    }
    text
}
