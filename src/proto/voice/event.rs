//! What a DS0 tells, and what somebody may wait for.

use super::detect::{Progress, SingleTone, SingleTones};
use super::playout::Played;
use crate::proto::trunk::{DigitKind, Sounds};
use std::collections::VecDeque;

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Keys of telephones, on the circuit.
    pub keys: bool,
    /// What else: keys that do not go out on connections while they are heard ([`Sounds::suppresses`]), and what far ends do.
    pub others: Sounds,
    /// Single tones, on the circuit.
    pub tones: SingleTones,
    /// Single tones in what the far ends of connections say.
    pub far_tones: SingleTones,
}

/// What was heard, or has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A digit began on the circuit, or is over.
    Digit {
        /// What it is.
        kind: DigitKind,
        /// Which.
        symbol: u8,
        /// Whether it began.
        on: bool,
    },
    /// A single tone began or is over.
    Tone {
        /// On which connection; `None`: on the circuit.
        connection: Option<u32>,
        /// Which.
        tone: SingleTone,
        /// Whether it began.
        on: bool,
    },
    /// A tone that is known by how it goes on, or a digital pattern, on the circuit.
    Progress(Progress),
    /// The far end of a connection sent a telephone event.
    Key {
        /// The connection.
        connection: u32,
        /// The key.
        key: u8,
    },
    /// The digits that were to be sent are sent.
    Sent,
    /// The first packet of a connection came, or the first one since somebody asked.
    MediaArrived {
        /// The connection.
        connection: u32,
    },
    /// The far end of a connection sends another payload type than before.
    Codec {
        /// The connection.
        connection: u32,
        /// The type.
        payload_type: u8,
    },
    /// The far end of a connection sends longer or shorter packets than before.
    Period {
        /// The connection.
        connection: u32,
        /// Their length in ms.
        ms: u16,
    },
    /// The buffer of a connection was made deeper or shallower.
    Buffer {
        /// The connection.
        connection: u32,
        /// How deep it is, in ms.
        ms: u16,
    },
    /// More is lost than was asked for ([`super::Ds0::measure`]).
    Lossy {
        /// The connection.
        connection: u32,
        /// So many of 100,000.
        limit: u32,
    },
    /// The far end of a connection is heard worse than [`super::Quality`] allows; told again only after it was better.
    Poor {
        /// The connection.
        connection: u32,
    },
    /// Nothing came for as long as was asked for ([`super::Ds0::measure`]).
    Silent {
        /// The connection.
        connection: u32,
        /// For how long, in seconds.
        seconds: u16,
    },
    /// Nothing came for [`super::Settings::time_out`].
    TimedOut {
        /// The connection.
        connection: u32,
        /// Whether it was told before, as long ago, and nothing has come since.
        again: bool,
    },
}

/// What was counted of a DS0 since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// What was played to the circuit.
    pub played: Played,
    /// Packets from elsewhere than the remote description says.
    pub strangers: u64,
    /// Packets that are none, of a type that was not agreed, or for a connection that does not receive.
    pub unknown: u64,
    /// Events nobody polled for.
    pub dropped: u64,
    /// Octets of the circuit that did not come and were made up.
    pub mended: u64,
}

/// Events that wait to be polled.
#[derive(Debug)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
    /// Events there was no room for.
    pub dropped: u64,
}

/// The most of them.
const EVENTS_MAX: usize = 32;

impl Events {
    /// What they take elsewhere, in octets.
    pub const BEHIND: usize = EVENTS_MAX * size_of::<Event>();

    pub fn new() -> Events {
        Events { waiting: VecDeque::with_capacity(EVENTS_MAX), dropped: 0 }
    }

    pub fn push(&mut self, event: Event) {
        if self.waiting.len() < EVENTS_MAX {
            self.waiting.push_back(event);
        } else {
            self.dropped += 1;
        }
    }

    pub fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }
}
