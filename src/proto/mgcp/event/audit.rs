//! What an audit says of events and signals, and the Notify itself (RFC 3435 2.3.4, 2.3.10, appendix B.2; G-NTF, G-PER-07, G-QUA-21).

use super::list::{self, ROOM};
use super::signals;
use super::watch::{Occurrence, State, Watch, Which};
use crate::proto::base::{EndpointIndex, TransactionId};
use crate::proto::codec::mgcp::{Code, ListKind, Verb, Writer};
use crate::proto::endpoint::{Blob, EntityId};
use crate::proto::mgcp::Calls;
use crate::proto::package::{EventId, packages};
use crate::proto::plan::Manners;
use crate::proto::trunk::EventText;

/// Room for the local name of one endpoint.
const NAME: usize = 64;

/// The line for one of R, S, T, O, ES, D, X, Q, B/PR and B/NS.
pub fn write(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex, code: Code) {
    let watch = calls.watch(endpoint);
    let start = writer.mark();
    writer.begin(code);
    let value = writer.mark();
    match code {
        Code::R => with_persistent(calls, writer, endpoint, watch.map(|watch| watch.requested), ListKind::Requested),
        Code::T => with_persistent(calls, writer, endpoint, watch.map(|watch| watch.detected), ListKind::Detected),
        Code::BPr => kept(calls, writer, watch.map(|watch| watch.persistent)),
        Code::D => kept(calls, writer, watch.map(|watch| watch.digit_map)),
        Code::S => {
            if let Some(slot) = calls.watch_slot(endpoint) {
                signals::audit(calls, writer, slot);
            }
        }
        Code::O => {
            if let Some(watch) = watch {
                observed(calls, writer, watch);
            }
        }
        Code::ES => states(calls, writer, endpoint),
        Code::X => match watch.filter(|watch| !watch.request.is_none()) {
            Some(watch) => writer.hex_id(watch.request),
            None => writer.byte(b'0'),
        },
        Code::Q => {
            let quarantine = watch.map(|watch| watch.quarantine).unwrap_or_default();
            writer.text(if quarantine.looping { "loop" } else { "step" });
            writer.text(if quarantine.discard { ",discard" } else { ",process" });
        }
        Code::BNs => writer.text(match watch.filter(|watch| !watch.request.is_none()).map(|watch| watch.state) {
            Some(State::Notification) => "ns",
            Some(State::Lockstep) => "ls",
            Some(State::Normal) | None => "o",
        }),
        _ => {}
    }
    if writer.mark() == value {
        writer.rewind(start);
        writer.parameter(code, b"");
    } else {
        writer.end_line();
    }
}

/// What operators see of an endpoint's events and signals.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventsView {
    /// The lines of an audit that say something: the code (R, S, T, D, O, B/PR, ES) and its value.
    pub lines: Vec<(String, String)>,
    /// Whether the machine of events waits for a request (`true`) or a Notify is out.
    pub state: State,
    /// Events in quarantine.
    pub quarantined: usize,
    /// Notify commands without a response.
    pub unanswered: usize,
    /// Whether one is held back until the agent knows that the endpoint was disconnected (4.4.7).
    pub cut_off: bool,
}

/// The longest line of a view, in octets; a longer one is left out.
const LINE_MAX: usize = 8192;

/// For operators: what an audit would tell of events and signals, and how they stand. `None`: nothing was asked for yet.
pub fn view(calls: &Calls, endpoint: EndpointIndex) -> Option<EventsView> {
    let watch = calls.watch(endpoint)?;
    let mut buffer = vec![0; LINE_MAX];
    let mut line = |code| {
        let mut writer = Writer::new(&mut buffer);
        write(calls, &mut writer, endpoint, code);
        let length = writer.finish()?;
        let text = String::from_utf8_lossy(buffer.get(..length)?).trim_end().to_owned();
        let (code, value) = text.split_once(": ")?;
        Some((code.to_owned(), value.to_owned()))
    };
    Some(EventsView {
        lines: [Code::R, Code::D, Code::T, Code::BPr, Code::S, Code::O, Code::ES].into_iter().filter_map(&mut line).collect(),
        state: watch.state,
        quarantined: calls.watches.events(watch, Which::Quarantined).count(),
        unanswered: watch.outstanding().count(),
        cut_off: watch.cut_off,
    })
}

fn kept(calls: &Calls, writer: &mut Writer<'_>, list: Option<Blob>) {
    for piece in calls.endpoints.blobs.pieces(list.unwrap_or_default()) {
        writer.bytes(piece);
    }
}

/// A list, and the persistent events of the endpoint's packages that it does not have (G-PER-07).
fn with_persistent(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex, list: Option<Blob>, kind: ListKind) {
    kept(calls, writer, list);
    let channel = calls.channel_kind(endpoint);
    let mut room = ROOM;
    let list = list.and_then(|blob| list::kept(&calls.endpoints.blobs, blob, &mut room, kind));
    let listed = |event: EventId| {
        let occurrence = Occurrence { event, connection: None, parameters: EventText::NONE };
        list.is_some_and(|list| list::find(list, channel, &occurrence).is_some())
    };
    let mut separator = if list.is_some() { "," } else { "" };
    let events = packages(channel).iter().flat_map(|package| package.items());
    for event in events.filter(|event| event.event().is_some_and(|traits| traits.persistent) && !listed(*event)) {
        writer.text(std::mem::replace(&mut separator, ","));
        event.write(writer);
        writer.text(if kind == ListKind::Requested { "(N)" } else { "" });
    }
}

/// The events whose state is the present one.
fn states(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex) {
    let events = packages(calls.channel_kind(endpoint)).iter().flat_map(|package| package.items());
    let has_state = |event: &EventId| event.event().is_some_and(|traits| traits.state) && calls.card.holds(endpoint, *event);
    for (n, event) in events.filter(has_state).enumerate() {
        writer.text(if n == 0 { "" } else { "," });
        event.write(writer);
    }
}

/// Everything accumulated, and the event that triggered the notification last (G-NTF-03, G-NTF-04).
fn observed(calls: &Calls, writer: &mut Writer<'_>, watch: &Watch) {
    let events = calls.watches.events(watch, Which::Observed).chain(calls.watches.events(watch, Which::Trigger));
    for (n, occurrence) in events.enumerate() {
        writer.text(if n == 0 { "" } else { "," });
        occurrence.event.write(writer);
        if let Some(id) = occurrence.connection {
            writer.byte(b'@');
            writer.hex_id(id.hex());
        }
        if !occurrence.parameters.is_empty() {
            writer.byte(b'(');
            writer.bytes(occurrence.parameters.as_bytes());
            writer.byte(b')');
        }
    }
}

/// The Notify of an endpoint that has one to send, into `buffer`: its length (G-NTF-01, G-NTF-02).
pub fn write_notify(calls: &Calls, endpoint: EndpointIndex, id: TransactionId, buffer: &mut [u8], manners: Manners) -> Option<usize> {
    let watch = calls.watch(endpoint)?;
    let domain = calls.endpoints.get(endpoint)?.domain;
    let mut name = [0; NAME];
    let length = calls.plan.topology.write_name(endpoint, &mut name);
    let mut writer = Writer::new(buffer);
    writer.command_of(Verb::Ntfy, id, (name.get(..length)?, calls.plan.domain(domain)), manners.profile());
    if let Some(named) = watch.named {
        writer.begin(Code::N);
        entity(calls, &mut writer, named);
        writer.end_line();
    }
    writer.parameter_hex_id(Code::X, watch.request);
    writer.begin(Code::O);
    observed(calls, &mut writer, watch);
    writer.end_line();
    writer.finish()
}

fn entity(calls: &Calls, writer: &mut Writer<'_>, named: EntityId) {
    if let Some((_, _, text)) = calls.endpoints.entities.get(named) {
        kept(calls, writer, Some(text));
    }
}
