//! `tollgate far-end`: plays the far end of a T1 or E1 in a pseudowire (CESoPSN, RFC 5086, or SAToP, RFC 4553), as a switch or a CES box on the other side would:
//! it has the trunk's clock, sends tones, patterns and CAS bits on its channels, and measures what comes back.

mod channel;
pub(super) mod pattern;
pub mod played;
pub mod trunk;

use self::channel::{Channel, Part, Task};
use self::trunk::{Satop, Trunk, TrunkSettings};
use crate::host::clock::{Clock, WallClock};
use crate::proto::base::Time;
use crate::proto::circuit::{Channels, Coding};
use crate::proto::package::parameters::Digits;
use crate::proto::trunk::DigitKind;
use crate::proto::voice::Law;
use anyhow::{Context, Result, bail};
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
    /// Whether it comes bit by bit.
    #[command(flatten)]
    pub satop: Satop,
    /// With channel associated signalling: E&M, ABCD bits behind each multiframe, or robbed from the octets with --satop.
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
/// Plays it and prints what came.
///
/// # Errors
/// What the arguments or the machine do not allow.
pub fn run(args: &Args) -> Result<ExitCode> {
    if !(0.1..=DURATION_MAX).contains(&args.duration) || !(0.0..=100.0).contains(&args.loss) || args.ppm.abs() > 1_000.0 {
        bail!("--duration 0.1 to {DURATION_MAX}, --loss 0 to 100, --ppm -1000 to 1000");
    }
    let clock = Clock::new();
    let (layout, framing) = trunk::layout(args.satop, args.e1, args.cas, args.frames, args.rtp)?;
    let settings = TrunkSettings {
        listen: args.listen,
        peer: args.peer,
        layout,
        framing,
        e1: args.e1,
        jitter: Duration::from_millis(args.jitter),
        ppm: args.ppm,
        loss: args.loss / 100.0,
    };
    let mut trunk = Trunk::new(&clock, &settings, Bank { list: channels(args)?, now: Time::ZERO, end: Time::NEVER })?;
    let end = trunk.time(clock.now()) + Duration::from_secs_f64(args.duration);
    trunk.bank_mut().end = end;
    let mut wall = WallClock::new(&clock);
    while trunk.bank().now < end {
        let now = clock.now();
        wall.refresh(now);
        trunk.work(now, &wall);
        std::thread::park_timeout(trunk.due().since(clock.now()));
    }
    let report = report(&trunk, args);
    let mut out = std::io::stdout();
    if args.json { writeln!(out, "{report}") } else { write!(out, "{}", text(&report)) }.context("standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// The channels by their numbers on the trunk.
fn channels(args: &Args) -> Result<Vec<Channel>> {
    let law = if args.e1 { Law::A } else { Law::Mu };
    let coding = args.cas.then_some(if args.e1 { Coding::EarAndMouthE1 } else { Coding::EarAndMouth });
    let numbers = trunk::channel_numbers(args.e1, args.cas);
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

impl trunk::Bank for Bank {
    fn begin(&mut self, trunk: Time, _: Time) {
        self.now = trunk;
    }
}

fn report(trunk: &Trunk<Bank>, args: &Args) -> serde_json::Value {
    let mut report = trunk.report();
    let asked = |channel: &&Channel| channel.is_worth_telling() || args.cas;
    report["channels"] = trunk.bank().list.iter().filter(asked).map(Channel::report).collect();
    report
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
