//! The far ends of spans in pseudowires, as `tollgate load` orders them: by ABCD bits, digits and tones on the channels they do what the far
//! ends of simulated channels do ([`FarEnds`] decides what that is), so the same calls run over both.

use super::trunk::{Bank, Trunk, TrunkSettings};
use crate::host::clock::{Clock, WallClock};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::circuit::{Channels, Coding, Wire};
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::package::{ChannelKind, EventId, PackageId, find_item};
use crate::proto::trunk::simulated::far::FarEnds;
use crate::proto::trunk::{CheckTone, DigitKind, FarOrder, Hook, Indication, LineInput, LineOrder, LineState};
use crate::proto::voice::{self, Ds0, Event, Law, SingleTone, SingleTones, Wanted};
use anyhow::{Context, Result, anyhow};
use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest sleep: orders are looked at that often.
const NAP: Duration = Duration::from_millis(1);
/// An order is carried out within this, or its thread is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer on-hook of the gateway is no dial pulse.
const PULSE_MAX: Duration = Duration::from_millis(150);
/// A check tone that the far end does not take off goes on for so long beyond the gateway's, so that the next test begins in silence.
const STUCK: Duration = Duration::from_millis(1_500);
/// A string of keys or pulses ends after so long without another one.
const STRING_END: Duration = Duration::from_millis(900);

/// A span whose far end is played.
#[derive(Clone, Debug)]
pub struct Span {
    /// The beginning of its endpoints' names: `ds/ds1-1`.
    pub name: String,
    /// Its pseudowire.
    pub trunk: TrunkSettings,
    /// What its channels are.
    pub kind: ChannelKind,
    /// How they send digits.
    pub digits: DigitKind,
    /// How its channels signal; none with [`ChannelKind::Clear`].
    pub coding: Option<Coding>,
    /// The numbers of its channels.
    pub channels: Vec<u8>,
}

/// An order, and where to say that it was carried out.
type Order = (String, FarOrder, Sender<Result<(), String>>);

/// Far ends that are played by a thread of their own until this is dropped.
pub struct Played {
    orders: Sender<Order>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    kinds: HashMap<String, DigitKind>,
}

impl Played {
    /// Begins to play them.
    ///
    /// # Errors
    /// What the machine refused.
    pub fn start(spans: &[Span]) -> Result<Played> {
        let clock = Clock::new();
        let mut ends = Ends { trunks: Vec::new(), places: HashMap::new() };
        for span in spans {
            for (place, number) in span.channels.iter().enumerate() {
                ends.places.insert(format!("{}/{number}", span.name).to_ascii_lowercase(), (ends.trunks.len(), place));
            }
            let trunk = Trunk::new(&clock, &span.trunk, Lines::new(span));
            ends.trunks.push(trunk.with_context(|| format!("the far end of {}", span.name))?);
        }
        let kind = |name: &String| ends.places.get(name).and_then(|(trunk, _)| spans.get(*trunk)).map(|span| span.digits);
        let kinds = ends.places.keys().filter_map(|name| Some((name.clone(), kind(name)?))).collect();
        let (orders, taken) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || ends.play(&clock, &taken, &stop)
        });
        Ok(Played { orders, stop, thread: Some(thread), kinds })
    }

    /// The digits of an endpoint, which its far end is ordered to send as text.
    pub fn digit_kind(&self, endpoint: &str) -> Option<DigitKind> {
        self.kinds.get(&endpoint.to_ascii_lowercase()).copied()
    }

    /// Orders something of the far end of `endpoint`, a name without its domain.
    ///
    /// # Errors
    /// There is no such endpoint, or the far end cannot.
    pub fn order(&self, endpoint: &str, order: FarOrder) -> Result<()> {
        let (told, done) = bounded(1);
        self.orders.send((endpoint.to_ascii_lowercase(), order, told)).map_err(|_| anyhow!("far ends are played no more"))?;
        done.recv_timeout(PATIENCE).context("the far end does not answer")?.map_err(|why| anyhow!(why))
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// All of them.
struct Ends {
    trunks: Vec<Trunk<Lines>>,
    /// By name: the trunk and the channel's place in it.
    places: HashMap<String, (usize, usize)>,
}

impl Ends {
    fn play(mut self, clock: &Clock, orders: &Receiver<Order>, stop: &AtomicBool) {
        let mut wall = WallClock::new(clock);
        while !stop.load(Ordering::Relaxed) {
            let now = clock.now();
            for (name, order, told) in orders.try_iter() {
                // Whoever asked may have gone.
                let _ = told.send(self.order(&name, now, &order));
            }
            wall.refresh(now);
            self.trunks.iter_mut().filter(|trunk| trunk.due() <= now).for_each(|trunk| trunk.work(now, &wall));
            let due = self.trunks.iter().map(Trunk::due).min().unwrap_or(Time::NEVER);
            std::thread::park_timeout(due.since(clock.now()).min(NAP));
        }
    }

    fn order(&mut self, name: &str, now: Time, order: &FarOrder) -> Result<(), String> {
        let Some((trunk, place)) = self.places.get(name) else { return Err(format!("{name}: its far end is not played here")) };
        let Some(trunk) = self.trunks.get_mut(*trunk) else { return Err("no such trunk".into()) };
        let now = trunk.time(now);
        trunk.bank_mut().order(now, *place, order).map_err(str::to_owned)
    }
}

/// The channels of a span.
struct Lines {
    list: Vec<Line>,
    ends: FarEnds,
    kind: ChannelKind,
    digits: DigitKind,
    now: Time,
}

/// One channel.
struct Line {
    media: Ds0,
    coding: Option<Coding>,
    /// What the gateway shows, what its last bits say, and what it showed on-hook since, that may be a dial pulse.
    shown: LineState,
    bits: u8,
    maybe_on_hook: Option<Time>,
    /// Reads the gateway's dial pulses, and sends the far end's.
    reads: Wire,
    sends: Wire,
    /// The last digit of a string that has not ended.
    heard: Option<Time>,
    /// When a check tone of the gateway ended; none has begun since.
    tone_ended: Option<Time>,
}

impl Lines {
    fn new(span: &Span) -> Lines {
        let law = if span.trunk.e1 { Law::A } else { Law::Mu };
        let mut ends = FarEnds::default();
        let line = |place: u32| {
            let mut media = Ds0::new(voice::Settings { law, connections: 0, ..voice::Settings::default() });
            media.listen((span.digits != DigitKind::Pulse && span.coding.is_some()).then_some(span.digits));
            if span.coding.is_none() {
                media.watch(Wanted { tones: SingleTones::CHECK, ..Wanted::default() });
            }
            // A real far end sends its digits whether anybody listens or not.
            ends.handle(Time::ZERO, EndpointIndex(place), span.kind, &LineOrder::Listen(Some(span.digits)));
            let mut reads = Wire::new(Coding::EarAndMouth);
            reads.listen(span.digits == DigitKind::Pulse);
            let (shown, bits, sends) = (LineState::OnHook, 0, Wire::new(Coding::EarAndMouth));
            Line { media, coding: span.coding, shown, bits, maybe_on_hook: None, reads, sends, heard: None, tone_ended: None }
        };
        let list = (0..span.channels.len() as u32).map(line).collect();
        Lines { list, ends, kind: span.kind, digits: span.digits, now: Time::ZERO }
    }

    fn order(&mut self, now: Time, place: usize, order: &FarOrder) -> Result<(), &'static str> {
        if self.list.get(place).is_some_and(|line| line.coding.is_none()) && !matches!(order, FarOrder::Echo(_) | FarOrder::Digits(..)) {
            return Err("it has no channel associated signalling");
        }
        self.ends.operate(now, EndpointIndex(place as u32), self.kind, order)
    }

    /// What far ends do of their own accord, or were ordered.
    fn act(&mut self) {
        while let Some(indication) = self.ends.poll(self.now) {
            let Indication::Line { endpoint, input, at } = indication else { continue };
            let Some(line) = self.list.get_mut(endpoint.0 as usize) else { continue };
            match input {
                LineInput::Hook(hook) => line.sends.show(if hook == Hook::Off { LineState::OffHook } else { LineState::OnHook }),
                LineInput::Digit(kind, symbol) => line.send(at, kind, symbol),
                LineInput::Tone { tone, on } => line.tone(tone, on),
                _ => {}
            }
        }
    }

    /// The gateway's string has ended where nothing in it says so.
    fn end_strings(&mut self) {
        let Lines { list, ends, now, .. } = self;
        for (line, place) in list.iter_mut().zip(0..) {
            if line.heard.take_if(|last| now.since(*last) >= STRING_END).is_some() {
                ends.hear_string(*now, EndpointIndex(place));
            }
            if line.tone_ended.take_if(|ended| now.since(*ended) >= STUCK).is_some() {
                [CheckTone::Co1, CheckTone::Co2].into_iter().for_each(|tone| line.tone(tone, false));
            }
            if let Some(since) = line.maybe_on_hook.take_if(|since| now.since(*since) > PULSE_MAX) {
                line.shown = LineState::OnHook;
                ends.handle(since, EndpointIndex(place), self.kind, &LineOrder::Show(LineState::OnHook));
            }
        }
    }

    fn hear(&mut self, place: u32, symbol: u8) {
        let Lines { list, ends, now, digits, .. } = self;
        let Some(line) = list.get_mut(place as usize) else { return };
        if line.heard.is_none() {
            ends.hear_digit(EndpointIndex(place));
        }
        line.heard = Some(*now);
        if *digits == DigitKind::Mf && MfDigit::is_st(symbol) {
            line.heard = None;
            ends.hear_string(*now, EndpointIndex(place));
        }
    }
}

impl Line {
    fn send(&mut self, now: Time, kind: DigitKind, symbol: u8) {
        let mut digits = Digits::NONE;
        digits.push(symbol);
        match kind {
            DigitKind::Pulse => self.sends.send(now, digits),
            kind => {
                self.media.send_digits(kind, digits);
            }
        }
    }

    fn tone(&mut self, tone: CheckTone, on: bool) {
        let Some(signal) = check_tone(tone) else { return };
        if on {
            // The tones of the package have a sound.
            let _ = self.media.start_signal(None, signal, b"");
        } else {
            self.media.stop_signal(None, signal);
        }
    }

    /// What the gateway's bits say, once they agree twice.
    fn take(&mut self, bits: u8) -> Option<LineState> {
        let coding = self.coding?;
        let agrees = std::mem::replace(&mut self.bits, bits) == bits;
        let all = [LineState::OnHook, LineState::OffHook, LineState::Ringing];
        let state = all.into_iter().find(|state| coding.bits(*state) == bits)?;
        (agrees && state != self.shown).then_some(state)
    }
}

fn check_tone(tone: CheckTone) -> Option<EventId> {
    find_item(PackageId::T, if tone == CheckTone::Co1 { b"co1" } else { b"co2" })
}

impl Bank for Lines {
    fn begin(&mut self, trunk: Time, _: Time) {
        self.now = trunk;
        self.act();
        self.end_strings();
    }
}

impl Channels for Lines {
    fn exchange(&mut self, channel: u8, came: &[u8], filler: bool, send: &mut [u8]) {
        let now = self.now;
        let Some(line) = self.list.get_mut(usize::from(channel)) else { return };
        send.copy_from_slice(came);
        line.media.mend(send, filler);
        line.media.exchange(now, send, &mut |_, _, _, _| {});
        while let Some(event) = self.list.get_mut(usize::from(channel)).and_then(|line| line.media.poll()) {
            let tone = match event {
                Event::Digit { symbol, on: true, .. } => {
                    self.hear(channel.into(), symbol);
                    continue;
                }
                Event::Tone { connection: None, tone: SingleTone::Co1, on } => (CheckTone::Co1, on),
                Event::Tone { connection: None, tone: SingleTone::Co2, on } => (CheckTone::Co2, on),
                _ => continue,
            };
            if let Some(line) = self.list.get_mut(usize::from(channel)) {
                line.tone_ended = (!tone.1).then_some(now);
            }
            self.ends.handle_tone(now, EndpointIndex(channel.into()), self.kind, tone.0, tone.1);
        }
    }

    fn take_bits(&mut self, channel: u8, bits: u8) {
        let (now, kind, pulses) = (self.now, self.kind, self.digits == DigitKind::Pulse);
        let Some(line) = self.list.get_mut(usize::from(channel)) else { return };
        let mut digit = None;
        line.reads.take(now, bits, &mut |input, _| {
            if let LineInput::Digit(_, symbol) = input {
                digit = Some(symbol);
            }
        });
        match line.take(bits) {
            // It may be the break of a dial pulse.
            Some(LineState::OnHook) if pulses => {
                line.maybe_on_hook.get_or_insert(now);
            }
            Some(state) => {
                line.shown = state;
                self.ends.handle(now, EndpointIndex(channel.into()), kind, &LineOrder::Show(state));
            }
            None => line.maybe_on_hook = line.maybe_on_hook.filter(|_| bits != 0b1111),
        }
        if let Some(symbol) = digit {
            self.hear(channel.into(), symbol);
        }
    }

    fn give_bits(&mut self, channel: u8) -> u8 {
        let now = self.now;
        let Some(Line { coding: Some(coding), sends, .. }) = self.list.get_mut(usize::from(channel)) else { return 0 };
        let bits = sends.give(now, &mut |_, _| {});
        coding.far_bits(if bits == 0 { Hook::On } else { Hook::Off })
    }
}
