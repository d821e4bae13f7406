//! What a trunk card does for the core that owns its spans: orders to it, indications from it.
//!
//! Media belongs to the card: it hands out the local address and port of a connection, moves audio as the mode says, counts, and sees
//! the line. Every order may be answered at once or later by an [`Indication`]; a connection is named by the slot of its core.

use super::apart::Apart;
use super::circuit_view::CarrierView;
use super::{Defect, Facility, Sounds, TelephoneEvents, Violations};
use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{EndpointIndex, Mode, Time};
use crate::proto::package::EventId;
use crate::proto::package::parameters::Digits;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A card driver, as one core sees it. It never blocks: what takes time is answered later by an indication.
pub trait Card {
    /// Takes a media resource for a connection of `endpoint` and says where it receives.
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress>;

    /// Changes what an open connection does, and says where it receives: one that was inside the gateway and leaves it gets a port.
    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress>;

    /// Takes a connection to another endpoint, with its port, its streams and what it counted. False: it stays where it was.
    fn transfer(&mut self, _: Time, _from: EndpointIndex, _to: EndpointIndex, _connection: u32) -> bool {
        false
    }

    /// The other half of a connection inside the gateway, which received there, has gone: nothing is sent there any more. A connection that
    /// sends to another half by now goes on.
    fn half_gone(&mut self, _: Time, _: EndpointIndex, _connection: u32, _at: SocketAddr) {}

    /// Ends a connection, open or still opening (its late answer is then dropped by the card), and says what it counted.
    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport;

    /// What a connection has counted so far.
    fn report(&self, now: Time, connection: u32) -> MediaReport;

    /// Whether it protects the media of connections of `endpoint`.
    fn srtp(&self, _: EndpointIndex) -> Srtp {
        Srtp::Off
    }

    /// A fresh key for what a connection sends, that nobody can guess; `None` when there is none to be had now.
    fn draw_key(&mut self) -> Option<MasterKey> {
        None
    }

    /// What protects the media of an open connection from now on; no local key: nothing does. Only for a card with [`Card::srtp`].
    fn protect(&mut self, _: EndpointIndex, _connection: u32, _: &MediaKeys) {}

    /// Begins a signal on `endpoint`, or on one of its connections: an on/off signal is turned on, a brief one played once. What times
    /// out is ended by [`Card::stop_signal`]; a signal that ends with its work is ended by [`Indication::SignalEnded`]. `parameters` is
    /// the text in its parentheses, which the catalogue accepts. The signal may run already when the card was ordered so before.
    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault>;

    /// Ends a signal that lasts: it timed out, is not wanted any more, or is turned off. It may have ended already.
    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId);

    /// What somebody waits for on `endpoint` and its connections from now on. What is not listened for need not be indicated; a card whose
    /// sounds cost nothing may indicate all.
    fn listen_for(&mut self, _: Time, _: EndpointIndex, _: Sounds) {}

    /// Somebody waits from now on for this of a connection; it is told of once.
    fn measure(&mut self, _now: Time, _: EndpointIndex, _connection: u32, _: Measure) {}

    /// Whether `event` can be asked for in the present state of the line (EVT-05).
    fn check_event(&self, _: EndpointIndex, _: EventId) -> Result<(), CardFault> {
        Ok(())
    }

    /// Whether [`Card::start_signal`] would be carried out in the present state of the line.
    fn check_signal(&self, _: EndpointIndex, _: Option<u32>, _: EventId, _: &[u8]) -> Result<(), CardFault> {
        Ok(())
    }

    /// What the line shows, sends and listens for; only for a channel with channel associated signalling. What comes of it is told by
    /// [`Indication::Line`].
    fn order_line(&mut self, _: Time, _: EndpointIndex, _: &LineOrder) {}

    /// What the signalling of a channel waits for, in words; `None`: it has none.
    fn line_state(&self, _: EndpointIndex) -> Option<&'static str> {
        None
    }

    /// When that has lasted too long, and what then happens begins; [`Time::NEVER`]: it may last.
    fn line_limit(&self, _: EndpointIndex) -> Time {
        Time::NEVER
    }

    /// Which end began the call that is on the line, as its signalling shows; `None`: none is, or it has no signalling.
    fn seized_by(&self, _: EndpointIndex) -> Option<Seizer> {
        None
    }

    /// Ends whatever the signalling of a channel does, without a report: it was taken out of service, comes back, or an operator says so.
    fn reset_line(&mut self, _: Time, _: EndpointIndex, _in_service: bool) {}

    /// The hook of the line as seen from the gateway; `None`: it has none.
    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook>;

    /// Whether the state that `event` reports the beginning of is the present one (`F: ES`).
    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool;

    /// Whether nothing can be ordered of `endpoint` now, because what carries it stands still.
    fn stands_still(&self, _: EndpointIndex) -> bool {
        false
    }

    /// The card as one whose spans lie on several cores; `None`: they do not.
    fn apart(&mut self) -> Option<&mut Apart> {
        None
    }

    /// How what carries a facility is, for a display; `None`: it is simulated, has no signal of its own, or is not on the card.
    fn carrier(&self, _: Facility) -> Option<CarrierView> {
        None
    }

    /// The next thing the card has to say.
    fn poll(&mut self, now: Time) -> Option<Indication>;

    /// When to poll again at the latest; [`Time::NEVER`] when nothing will come by itself.
    fn deadline(&self) -> Time;

    /// An operator's order that only some cards understand; the error is for the operator.
    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str>;
}

/// Whether media is protected (SRTP, RFC 3711, with keys in descriptions, RFC 4568).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Srtp {
    /// It is not, and what is to be is refused.
    #[default]
    Off,
    /// As the far end has it.
    Accept,
    /// It is, and what is not to be is refused. Inside the gateway nothing is.
    Require,
}

/// What a connection is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Media {
    /// Its mode.
    pub mode: Mode,
    /// Payload bytes per packet of the encoding in use.
    pub packet_bytes: u16,
    /// Packetization period in ms.
    pub period_ms: u16,
    /// Where it sends, when that is known.
    pub remote: Option<SocketAddr>,
    /// Whether the far end is another endpoint of this gateway: no RTP port is needed.
    pub inside: bool,
    /// The other half inside the gateway that it was told of: endpoint and connection id.
    pub other: Option<(EndpointIndex, u32)>,
    /// What is in its packets.
    pub payloads: Payloads,
    /// Added to audio towards the line and subtracted from audio of the line, in dB (RFC 3435 2.3.5).
    pub gain_db: i16,
    /// The type of service octet of what it sends; `None`: as the card is set.
    pub type_of_service: Option<u8>,
}

/// What a card for voice can put into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// G.711 mu law.
    Mu,
    /// G.711 A law.
    A,
    /// The octets of the channel as they are (CLEARMODE, RFC 4040).
    Clear,
}

/// Payload types of a connection, as they were agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payloads {
    /// What is sent, and as which type; `None`: an encoding that only simulated cards have.
    pub sent: Option<(Coding, u8)>,
    /// The types that are received as mu law, A law and CLEARMODE.
    pub received: [Option<u8>; 3],
    /// The type of telephone events (RFC 4733) that are sent; `None`: the far end wants none.
    pub events_sent: Option<u8>,
    /// The type of telephone events that are received; `None`: none was offered.
    pub events_received: Option<u8>,
    /// Which of them.
    pub events: TelephoneEvents,
}

impl Payloads {
    /// What a packet of this type holds.
    pub fn coding(&self, payload_type: u8) -> Option<Coding> {
        let known = self.received.iter().position(|known| *known == Some(payload_type))?;
        [Coding::Mu, Coding::A, Coding::Clear].get(known).copied()
    }
}

/// Where a connection receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaAddress {
    /// The address.
    pub address: IpAddr,
    /// The RTP port, even; RTCP is the next one. 0 for a connection inside the gateway.
    pub port: u16,
}

/// The answer to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    /// Done.
    Now(T),
    /// An indication follows.
    Later,
    /// Not possible now.
    Refused(CardFault),
}

/// Why a card refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CardFault {
    /// No port or signal processor is free.
    Exhausted,
    /// The card, or this part of it, does not work.
    Broken,
    /// The far end is off-hook.
    OffHook,
    /// The line is on-hook.
    OnHook,
    /// Not possible in the present state of the line.
    State,
}

/// What a card says by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Indication {
    /// The answer to an open that came later.
    Opened {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// The connection.
        connection: u32,
        /// Where it receives.
        result: Result<MediaAddress, CardFault>,
    },
    /// The answer to a modify that came later.
    Modified {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// The connection.
        connection: u32,
        /// Where it receives.
        result: Result<MediaAddress, CardFault>,
    },
    /// A defect of the line began or ended.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Whether it is present now.
        present: bool,
        /// Whether to take it for a failure (or the end of one) at once, without integration.
        at_once: bool,
    },
    /// An event of the catalogue was seen, whether anybody asked for it or not.
    Event {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections; `None`: on the line.
        connection: Option<u32>,
        /// What.
        event: EventId,
        /// Its parameters as a report writes them.
        parameters: EventText,
    },
    /// Nothing has come from the far end of a connection for as long as is configured; told again after as long, until something comes.
    MediaLost {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: u32,
        /// Whether it was told before, and nothing has come since.
        again: bool,
    },
    /// What a framer has counted since it told last.
    Violations {
        /// Where.
        facility: Facility,
        /// What.
        violations: Violations,
    },
    /// A signal that was started has ended by itself.
    SignalEnded {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: Option<u32>,
        /// Which.
        signal: EventId,
        /// Whether it could not be played to its end.
        failed: bool,
    },
    /// A key of a telephone, told of by its event when it was heard first, is over.
    KeyUp {
        /// Where.
        endpoint: EndpointIndex,
        /// Which.
        key: u8,
    },
    /// The signalling of a channel met something that an operator should know of.
    Trouble {
        /// Where.
        endpoint: EndpointIndex,
        /// What.
        trouble: Trouble,
    },
    /// Something on a line, as it is.
    Line {
        /// Where.
        endpoint: EndpointIndex,
        /// What.
        input: LineInput,
        /// When, as the card saw it: durations of hooks are judged by this, so that a core that is late reads a wink as a wink.
        at: Time,
    },
}

/// What somebody waits for of the packets of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// R/rto: so many seconds without one, from now or, if so, from the next RTCP packet on.
    Silence {
        /// How many.
        seconds: u16,
        /// From when.
        after_report: bool,
    },
    /// R/pl: of 100,000 packets more than so many are lost.
    Loss(u32),
    /// R/iu: so many ICMP messages that what was sent cannot be delivered.
    Unreachable(u8),
}

/// What goes wrong with the signalling of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A call of ours was lost because the far end seized the trunk too (`rel(44)`, RFC 3064 table 12).
    Glare,
    /// A call could not go on: something did not come in time, or could not be sent (`rel(111)`).
    Fault,
    /// The far end holds the line off-hook though its call is over, and no call can be made there: it began (true), or is over.
    Lockout(bool),
}

/// An order to a line. Which ABCD bits a hook is (RFC 5244 2.4), and how long a digit is, is the driver's business, because it is that
/// which knows the framing and the country.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOrder {
    /// Show this.
    Show(LineState),
    /// Show this for so long, then again what was shown before, unless another one comes first. The card keeps the time: a wink is as
    /// long as it should be however late the core is that ordered it.
    Pulse(LineState, Duration),
    /// Send these digits; [`LineInput::Sent`] follows.
    Send(DigitKind, Digits),
    /// Stop sending, without [`LineInput::Sent`].
    StopSending,
    /// Listen for such digits, or not.
    Listen(Option<DigitKind>),
}

/// What the gateway shows to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LineState {
    /// On-hook, or no ground on the tip.
    #[default]
    OnHook,
    /// Off-hook, or ground on the tip.
    OffHook,
    /// It rings.
    Ringing,
}

/// How digits travel in a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DigitKind {
    /// Multi-frequency; KP and ST are single symbols (see [`crate::proto::package::parameters::MfDigit`]).
    Mf,
    /// Dual tone.
    Dtmf,
    /// Dial pulses.
    Pulse,
}

/// A continuity check tone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckTone {
    /// 2010 Hz.
    Co1,
    /// 1780 Hz.
    Co2,
}

/// Something on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineInput {
    /// The far end shows this now.
    Hook(Hook),
    /// A digit came.
    Digit(DigitKind, u8),
    /// A key that came is over.
    KeyUp(u8),
    /// The digits that were ordered are sent, or could not be sent.
    Sent {
        /// Whether they could not.
        failed: bool,
    },
    /// A check tone is heard, or is not heard any more.
    Tone {
        /// Which.
        tone: CheckTone,
        /// Whether it is heard.
        on: bool,
    },
}

/// The state of a line's hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// Idle.
    On,
    /// Seized.
    Off,
}

/// The parameters of an event, without parentheses, such as `k0,1,2,3,s0`; what does not fit is cut.
#[derive(Clone, Copy)]
pub struct EventText {
    length: u8,
    bytes: [u8; EventText::MAX],
}

impl EventText {
    /// The longest, in bytes.
    pub const MAX: usize = 127;
    /// None.
    pub const NONE: EventText = EventText { length: 0, bytes: [0; EventText::MAX] };

    /// A copy of `text`, which is printable and fits.
    pub fn new(text: &[u8]) -> EventText {
        let mut copy = EventText::NONE;
        copy.push(text);
        copy
    }

    /// Adds `text`.
    pub fn push(&mut self, text: &[u8]) {
        let from = usize::from(self.length);
        for (place, byte) in self.bytes.iter_mut().skip(from).zip(text) {
            *place = *byte;
            self.length += 1;
        }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl PartialEq for EventText {
    fn eq(&self, other: &EventText) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for EventText {}

impl fmt::Debug for EventText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// What a connection has counted (RFC 3435 3.2.2.7); saturating at 999,999,999 when written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MediaReport {
    /// PS: packets sent.
    pub packets_sent: u32,
    /// OS: payload octets sent.
    pub octets_sent: u32,
    /// PR: packets received.
    pub packets_received: u32,
    /// OR: payload octets received.
    pub octets_received: u32,
    /// PL: packets lost.
    pub packets_lost: u32,
    /// JI: interarrival jitter in ms.
    pub jitter_ms: u32,
    /// LA: latency in ms.
    pub latency_ms: u32,
    /// Packets received whose turn to be played had passed; they are no lost ones (PL).
    pub late: u32,
    /// Octets made up in the place of what was not there in its turn.
    pub concealed_octets: u32,
    /// Times octets were left out or played again, because of jitter or of clocks that differ.
    pub slips: u32,
    /// Packets dropped because they came before (SRTP).
    pub replayed: u32,
    /// Packets dropped because the far end did not make them as they came (SRTP).
    pub unauthentic: u32,
}

/// In two parts, for a report does not fit into an envelope.
impl MediaReport {
    /// What `P:` has, in the order of the fields.
    pub fn traffic(&self) -> [u32; 7] {
        let MediaReport { packets_sent, octets_sent, packets_received, octets_received, packets_lost, jitter_ms, latency_ms, .. } = *self;
        [packets_sent, octets_sent, packets_received, octets_received, packets_lost, jitter_ms, latency_ms]
    }

    /// Takes what [`MediaReport::traffic`] gave.
    pub fn set_traffic(&mut self, counts: [u32; 7]) {
        let [packets_sent, octets_sent, packets_received, octets_received, packets_lost, jitter_ms, latency_ms] = counts;
        *self = MediaReport { packets_sent, octets_sent, packets_received, octets_received, packets_lost, jitter_ms, latency_ms, ..*self };
    }

    /// How what came was played: late, octets made up, slips.
    pub fn playout(&self) -> [u32; 3] {
        [self.late, self.concealed_octets, self.slips]
    }

    /// Takes what [`MediaReport::playout`] gave.
    pub fn set_playout(&mut self, [late, concealed_octets, slips]: [u32; 3]) {
        *self = MediaReport { late, concealed_octets, slips, ..*self };
    }
}

/// An end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seizer {
    /// This one.
    Gateway,
    /// The other one.
    FarEnd,
}

/// What the far end of a simulated channel is ordered to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FarOrder {
    /// Seize, and send these digits when the gateway winks, or after a moment when it does not.
    Seize(DigitKind, Digits),
    /// Show this hook.
    Show(Hook),
    /// Wink.
    Wink,
    /// Go on-hook for a moment.
    Flash,
    /// Send these digits.
    Digits(DigitKind, Digits),
    /// Hold a key down for so many ms.
    Hold(u8, u32),
    /// What it does of its own accord from now on.
    Behave(Behaviour),
    /// What it does with continuity tones from now on.
    Echo(Echo),
}

/// What the far end of a simulated channel does of its own accord.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Behaviour {
    /// It winks, takes digits, answers, and releases when the gateway does.
    #[default]
    Answers,
    /// The same without an answer.
    NoAnswer,
    /// It does nothing when it is seized.
    Silent,
    /// It seizes when it is seized, gives way after a second, then answers.
    Collides,
    /// It seizes when it is seized and stays off-hook for ever.
    Holds,
    /// It answers and never releases.
    Hangs,
    /// It does only what it is ordered.
    Manual,
}

/// What the far end of a simulated channel does with continuity tones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Echo {
    /// It returns them.
    #[default]
    Loop,
    /// It returns the other one.
    Transponder,
    /// It hears nothing.
    Open,
    /// It returns them and does not stop.
    Stuck,
}

/// What an operator can order a simulated card to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CardOrder {
    /// A defect begins or ends.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Whether it begins.
        present: bool,
        /// Without integration.
        at_once: bool,
    },
    /// All defects of a facility end.
    Clear {
        /// Where.
        facility: Facility,
        /// Without integration.
        at_once: bool,
    },
    /// What a span receives goes back to its far end, or does not any more (payload loopback, RFC 4805 3.2.5): [`Defect::Loopback`] tells of it.
    Loop {
        /// Where.
        facility: Facility,
        /// Whether it begins.
        on: bool,
    },
    /// AIS goes to the far end of a span, or does not any more (L in a pseudowire): [`Defect::AisSent`] tells of it.
    Ais {
        /// Where.
        facility: Facility,
        /// Whether it begins.
        on: bool,
    },
    /// Orders take so many milliseconds from now on; 0: at once, `u32::MAX`: they are never answered.
    Delay(u32),
    /// The next so many orders are refused.
    Refuse(u32),
    /// So many packets per million are lost on the way here from now on.
    Loss(u32),
    /// The far end of a channel does something.
    Far(EndpointIndex, FarOrder),
    /// What far ends that were not told by themselves do of their own accord from now on.
    Behave(Behaviour),
    /// The line, or one of its connections, shows an event.
    Event {
        /// Where.
        endpoint: EndpointIndex,
        /// On which of its connections.
        connection: Option<u32>,
        /// What.
        event: EventId,
        /// Its parameters as a report writes them.
        parameters: EventText,
    },
}
