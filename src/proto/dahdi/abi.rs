//! The interface of the driver in octets: its requests (ioctl), the structures they take and give, and what it tells. Facts of its public
//! header, for machines of 64 bits; numbers are in the machine's own order of octets.

/// A request: its number says how many octets its argument has, and which way they go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request(pub u32);

impl Request {
    /// Octets of its argument.
    pub const fn octets(self) -> usize {
        (self.0 >> 16 & 0x3FFF) as usize
    }
}

/// A span's state.
pub const SPANSTAT: Request = Request(0xC13A_DA0A);
/// The same in the form of old drivers, which is not read here: only to tell why the other one is refused.
pub const SPANSTAT_V1: Request = Request(0xC128_DA0A);
/// What a channel is; on the control device of the one that the argument names.
pub const GET_PARAMS: Request = Request(0xC088_DA05);
/// Loops of a span.
pub const MAINT: Request = Request(0x4008_DA0B);
/// The version of the driver.
pub const GETVERSION: Request = Request(0x80A0_DA39);
/// Which channel a file is from now on; nothing else is allowed before.
pub const SPECIFY: Request = Request(0x4004_DA26);
/// Buffers of a channel; those that hold something are emptied.
pub const SET_BUFINFO: Request = Request(0x4018_DA1B);
/// Whether a clear channel carries a voice: without data it sends silence then.
pub const AUDIOMODE: Request = Request(0x4004_DA20);
/// Echo cancellation; 0 is none.
pub const ECHOCANCEL: Request = Request(0x4004_DA21);
/// The law in which silence is written.
pub const SETLAW: Request = Request(0x4004_DA27);
/// The next event of a channel; 0 is none.
pub const GETEVENT: Request = Request(0x8004_DA08);
/// The ABCD bits that come.
pub const GETRXBITS: Request = Request(0x8004_DA2B);
/// The ABCD bits to send; for channels with raw bits only.
pub const SETTXBITS: Request = Request(0x4004_DA2B);
/// Whether buffers that overrun or run empty are events.
pub const BUFFER_EVENTS: Request = Request(0x4004_DA69);

/// The error number of a read or a write while an event waits.
pub const EVENT_WAITS: i32 = 500;
/// Spans and channels that a driver has at the most.
pub const SPANS_MAX: u16 = 128;
/// See [`SPANS_MAX`].
pub const CHANNELS_MAX: u16 = 1024;
/// Octets in a millisecond of a channel: what the driver moves at a time.
pub const CHUNK: usize = 8;
/// Buffers of a channel each way. The far end hears nothing of a connection before half of them are full.
pub const BUFFERS: i32 = 4;
/// Sending begins when half of the buffers are full, so a core that is late for a moment leaves no hole.
const HALF_FULL: i32 = 2;
/// What came is given at once.
const IMMEDIATE: i32 = 0;

/// MAINT: no loop.
pub const NO_LOOP: i32 = 0;
/// MAINT: what the span receives goes back, framed anew.
pub const PAYLOAD_LOOP: i32 = 13;

/// Signalling of a channel that is not configured.
pub const SIG_NONE: u32 = 0;
/// A clear channel.
pub const SIG_CLEAR: u32 = 0x80;
/// A channel whose bits are given and taken as they are.
pub const SIG_CAS: u32 = 0x8000;

/// The word of the driver's configuration for a kind of signalling.
pub fn signalling_word(signalling: u32) -> &'static str {
    match signalling {
        SIG_NONE => "not configured",
        SIG_CLEAR => "clear",
        SIG_CAS => "cas",
        0x40 => "e&m",
        0x2_0000 => "e&me1",
        0x2001 => "fxsls",
        0x2002 => "fxsgs",
        0x2004 => "fxsks",
        0x1008 => "fxols",
        0x1010 => "fxogs",
        0x1020 => "fxoks",
        0x4000 => "sf",
        0x180 => "rawhdlc",
        0x380 => "dchan or fcshdlc",
        0x780 => "nethdlc",
        0x8_0080 => "hardhdlc",
        0x10_0380 => "mtp2",
        0x1_0080 => "dacs",
        0x5_0000 => "dacsrbs",
        _ => "of a kind that is not known here",
    }
}

/// An argument that is a number.
pub fn number(value: i32) -> [u8; 4] {
    value.to_ne_bytes()
}

/// An argument of two numbers: a span and what is ordered of it.
pub fn pair(first: i32, second: i32) -> [u8; 8] {
    let mut octets = [0; 8];
    octets[..4].copy_from_slice(&first.to_ne_bytes());
    octets[4..].copy_from_slice(&second.to_ne_bytes());
    octets
}

fn word(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_ne_bytes(*four))
}

/// The text of a field that ends with a zero octet.
pub fn text(octets: &[u8], at: usize, length: usize) -> String {
    let field = octets.get(at..at + length).unwrap_or_default();
    let end = field.iter().position(|&octet| octet == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

/// A span's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpanInfo {
    /// Bits of [`alarm`].
    pub alarms: u32,
    /// What was counted since the driver began, modulo 2^32.
    pub counts: Counts,
    /// Channels that are configured, and all.
    pub configured: u32,
    /// See `configured`.
    pub channels: u32,
    /// Spans of the driver.
    pub spans: u32,
    /// Bits of [`mod@line`].
    pub line: u32,
}

/// What a span counted, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Bipolar violations.
    pub bipolar: u32,
    /// Errors of the CRC.
    pub crc: u32,
    /// Errors of the frame alignment signal of an E1.
    pub alignment: u32,
    /// Framing errors.
    pub framing: u32,
    /// Coding violations.
    pub coding: u32,
}

impl SpanInfo {
    /// Octets of the structure, which is packed.
    pub const OCTETS: usize = 314;
    /// Where the name is, and its length; the description; the device's type.
    pub const NAME: (usize, usize) = (4, 20);
    /// See `NAME`.
    pub const DESCRIPTION: (usize, usize) = (24, 40);

    /// The argument that asks for a span.
    pub fn of(span: u16) -> [u8; SpanInfo::OCTETS] {
        let mut octets = [0; SpanInfo::OCTETS];
        octets[..4].copy_from_slice(&i32::from(span).to_ne_bytes());
        octets
    }

    /// The answer.
    pub fn read(octets: &[u8; SpanInfo::OCTETS]) -> SpanInfo {
        let word = |at| word(octets, at);
        let counts = Counts { bipolar: word(76), crc: word(80), alignment: word(88), framing: word(92), coding: word(96) };
        let [configured, channels, spans] = [120, 124, 128].map(word);
        SpanInfo { alarms: word(64), counts, configured, channels, spans, line: word(136) }
    }
}

/// Bits of a span's alarms.
pub mod alarm {
    /// An alarm is over, and has to stay so for a while.
    pub const RECOVER: u32 = 1;
    /// The span is looped.
    pub const LOOPBACK: u32 = 2;
    /// RAI comes.
    pub const YELLOW: u32 = 4;
    /// No signal or no frames, for some time.
    pub const RED: u32 = 8;
    /// AIS comes.
    pub const BLUE: u32 = 16;
    /// The span is not plugged in, or not started.
    pub const NOT_OPEN: u32 = 32;
    /// No signal now.
    pub const LOS: u32 = 0x100;
    /// No frame alignment now.
    pub const LFA: u32 = 0x200;
    /// No multiframe alignment now.
    pub const LMFA: u32 = 0x400;

    /// All of them, with their words.
    pub const NAMES: [(u32, &str); 9] = [
        (RED, "red"),
        (BLUE, "blue"),
        (YELLOW, "yellow"),
        (LOOPBACK, "loopback"),
        (RECOVER, "recovering"),
        (NOT_OPEN, "not open"),
        (LOS, "los"),
        (LFA, "lfa"),
        (LMFA, "lmfa"),
    ];
}

/// The words of a span's alarms.
pub fn alarm_words(alarms: u32) -> String {
    let words: Vec<&str> = alarm::NAMES.iter().filter(|(bit, _)| alarms & bit != 0).map(|(_, word)| *word).collect();
    if words.is_empty() { "none".into() } else { words.join(" ") }
}

/// Bits of a line's configuration.
pub mod line {
    /// Superframe.
    pub const D4: u32 = 0x10;
    /// Extended superframe.
    pub const ESF: u32 = 0x20;
}

/// What a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// Its number among all.
    pub channel: u32,
    /// Its span, and its place there, from 1.
    pub span: u32,
    /// See `span`.
    pub position: u32,
    /// How it signals.
    pub signalling: u32,
}

impl Params {
    /// Octets of the structure.
    pub const OCTETS: usize = 136;

    /// The argument that asks for a channel.
    pub fn of(channel: u16) -> [u8; Params::OCTETS] {
        let mut octets = [0; Params::OCTETS];
        octets[..4].copy_from_slice(&i32::from(channel).to_ne_bytes());
        octets
    }

    /// The answer.
    pub fn read(octets: &[u8; Params::OCTETS]) -> Params {
        let [channel, span, position, signalling] = [0, 4, 8, 12].map(|at| word(octets, at));
        Params { channel, span, position, signalling }
    }
}

/// The argument of [`SET_BUFINFO`] for blocks of so many octets.
pub fn buffers(block: usize) -> [u8; 24] {
    let mut octets = [0; 24];
    let fields = [HALF_FULL, IMMEDIATE, BUFFERS, i32::try_from(block).unwrap_or(i32::MAX), 0, 0];
    for (place, field) in octets.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
        *place = field.to_ne_bytes();
    }
    octets
}

/// What the driver tells of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The alarms of its span began or ended; both are told of all its channels.
    Alarms,
    /// The bits that come changed.
    Bits,
    /// The device is gone.
    Removed,
    /// Octets that came were lost: nobody took them in time.
    Overrun,
    /// There was nothing to send.
    Underrun,
    /// Something that matters to nobody here, because the gateway does it itself or it is of another kind of channel.
    Other,
}

impl Event {
    /// What a number means; `None`: there is none.
    pub fn of(number: i32) -> Option<Event> {
        Some(match number {
            0 => return None,
            4 | 5 => Event::Alarms,
            13 => Event::Bits,
            20 => Event::Removed,
            29 => Event::Overrun,
            30 => Event::Underrun,
            _ => Event::Other,
        })
    }
}
