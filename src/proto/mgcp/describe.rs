//! The remote connection descriptor of a command (RFC 3435 3.4).

use super::{Calls, DESCRIPTION_UNSUPPORTED, IRRECONCILABLE, Refused};
use crate::proto::codec::mgcp::Command;
use crate::proto::codec::sdp::{self, Session};
use crate::proto::endpoint::{Connection, ConnectionId, Encoding, Encodings, Network, Options, Remote};

/// A remote description: where media goes and what the far end can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Described {
    pub remote: Remote,
    pub encodings: Encodings,
}

/// Reads the description of `command`, if it has one: 509 malformed, 505 unsupported, 506 against `options`.
pub(super) fn remote(calls: &Calls, command: &Command<'_>, options: &Options) -> Result<Option<Described>, Refused> {
    let Some(text) = command.description else { return Ok(None) };
    let session = Session::parse(text).map_err(|error| Refused { code: error.code(), text: error.text() })?;
    let described = match session.media() {
        sdp::Media::Rtp { address, port } => {
            if options.network == Some(Network::Local) {
                return Err(IRRECONCILABLE);
            }
            let known = session.formats().filter_map(|format| match format.name {
                Some(name) => Encoding::by_name(name),
                None => Encoding::by_payload_type(format.payload_type),
            });
            Described { remote: Remote::Rtp((address, port).into()), encodings: known.collect() }
        }
        sdp::Media::Local { endpoint, connection } => {
            if options.network == Some(Network::Internet) {
                return Err(IRRECONCILABLE);
            }
            let endpoint = calls.plan.topology.lookup(endpoint).ok_or(DESCRIPTION_UNSUPPORTED)?;
            let connection = connection.and_then(|id| ConnectionId::from_hex(&id)).unwrap_or_default();
            Described { remote: Remote::Local(endpoint, connection), encodings: calls.settings.encodings }
        }
    };
    Ok(Some(described))
}

/// Keeps `described` and its text with `connection`; false when there is no room for the text (`fits` was not asked).
pub(super) fn keep(calls: &mut Calls, connection: &mut Connection, described: Described, command: &Command<'_>) -> bool {
    let Some(blob) = calls.endpoints.blobs.store(command.description.unwrap_or_default()) else { return false };
    calls.endpoints.blobs.free(&mut connection.remote_text);
    connection.remote_text = blob;
    connection.remote = described.remote;
    true
}
