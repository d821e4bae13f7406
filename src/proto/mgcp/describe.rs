//! The remote connection descriptor of a command (RFC 3435 3.4).

use super::options::is_events;
use super::{Calls, DESCRIPTION_UNSUPPORTED, IRRECONCILABLE, Refused};
use crate::proto::base::srtp::{Crypto, Suite};
use crate::proto::codec::mgcp::{Command, Refusal};
use crate::proto::codec::sdp::{Address, Format, Head, Media, is_protected};
use crate::proto::endpoint::{ConnectionId, ConnectionSlot, Encoding, Encodings, Endpoints, Network, Options, Remote, RemoteTypes};
use crate::proto::trunk::TelephoneEvents;
use std::net::IpAddr;
use std::num::NonZeroU8;

/// A remote description: where media goes and what the far end can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Described {
    pub remote: Remote,
    pub encodings: Encodings,
    pub types: RemoteTypes,
    /// The telephone events it has.
    pub events: TelephoneEvents,
    /// Tag and crypto-suite of the line that protects it.
    pub line: Option<(u32, Suite)>,
}

/// Reads the description of `command`, if it has one: 509 malformed, 505 unsupported, 506 against `options`.
pub(super) fn remote(calls: &Calls, command: &Command<'_>, options: &Options) -> Result<Option<Described>, Refused> {
    let Some(text) = command.description else { return Ok(None) };
    let head = Head::parse(text)?;
    let read = |tail| {
        let media = Media::parse(tail)?;
        let encodings: Encodings = media.formats(tail).filter_map(|format| Encoding::by_name(format.encoding?.name)).collect();
        let (types, events) = types(&media, tail);
        Ok::<_, Refusal>((media, encodings, types, events))
    };
    let mut readings = calls.readings.borrow_mut();
    let unremembered;
    let (media, encodings, types, events) = if is_protected(head.tail()) {
        unremembered = read(head.tail())?;
        &unremembered
    } else {
        readings.media.read(head.tail(), read)?
    };
    let (encodings, types, events) = (*encodings, *types, *events);
    let line = media.crypto(head.tail()).map(|crypto| (crypto.tag, crypto.suite));
    let rtp = |address: IpAddr| match options.network {
        Some(Network::Local) => Err(IRRECONCILABLE),
        _ => Ok(Described { remote: Remote::Rtp(address, head.port()), encodings, types, events, line }),
    };
    let described = match head.address(media)? {
        Address::Ip4(address) => rtp(address.into())?,
        Address::Ip6(address) => rtp(address.into())?,
        Address::Local(_) if options.network == Some(Network::Internet) => return Err(IRRECONCILABLE),
        Address::Local(name) => {
            let endpoint = calls.plan.topology.lookup(name).ok_or(DESCRIPTION_UNSUPPORTED)?;
            let connection = head.local_connection(media).and_then(|id| ConnectionId::from_hex(&id)).unwrap_or_default();
            let (types, events) = (RemoteTypes::default(), TelephoneEvents::None);
            Described { remote: Remote::Local(endpoint, connection), encodings, types, events, line: None }
        }
    };
    Ok(Some(described))
}

/// What protects what comes from who wrote the description of `command`.
pub(super) fn crypto(command: &Command<'_>) -> Option<Crypto> {
    let head = Head::parse(command.description?).ok().filter(|head| is_protected(head.tail()))?;
    Media::parse(head.tail()).ok()?.crypto(head.tail())
}

/// The payload types of the far end's own choice that matter here, and the telephone events it has.
fn types(media: &Media, tail: &[u8]) -> (RemoteTypes, TelephoneEvents) {
    let named = |is: fn(&[u8]) -> bool| {
        let mut formats = media.formats(tail);
        formats.find(|format| format.encoding.is_some_and(|encoding| encoding.clock_rate == 8000 && is(encoding.name)))
    };
    let number = |format: Format<'_>| NonZeroU8::new(format.payload_type);
    let events = named(is_events);
    let list = events.map_or(TelephoneEvents::None, |format| TelephoneEvents::named(format.parameters.unwrap_or_default()));
    (RemoteTypes { clear: named(|name| name.eq_ignore_ascii_case(b"CLEARMODE")).and_then(number), events: events.and_then(number) }, list)
}

/// Keeps `described` and its text with the connection in `slot`, in place of what it had; false when there is no room (nobody has asked).
pub(super) fn keep(calls: &mut Calls, slot: ConnectionSlot, described: Described, command: &Command<'_>) -> bool {
    let Endpoints { blobs, connections, .. } = &mut calls.endpoints;
    let Some(connection) = connections.get_mut(slot) else { return false };
    blobs.free(&mut connection.remote_text);
    let Some(blob) = blobs.store(command.description.unwrap_or_default()) else { return false };
    connection.remote_text = blob.keep_secret(described.line.is_some());
    connection.remote = described.remote;
    connection.remote_types = described.types;
    if matches!(described.remote, Remote::Local(..)) {
        calls.meetings.note(slot);
    }
    true
}
