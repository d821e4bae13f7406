//! What protects the media of a connection (SRTP; RFC 4568): chosen from the remote description and what the card does, drawn, and handed
//! to the card.
//!
//! The far end's line decides crypto-suite and tag, and our line follows it, as an answer does. Our key stays as long as its suite does: a
//! description may be the answer to ours as well as an offer, and then knows no other. Where nothing is described yet, a card that requires
//! protection offers it.

use super::{Calls, NO_MEDIA, PROTECTION_MISSING, PROTECTION_UNSUPPORTED, Refused};
use crate::proto::base::EndpointIndex;
use crate::proto::base::srtp::{Crypto, LIFETIME, MediaKeys, Suite};
use crate::proto::endpoint::{ConnectionSlot, Remote};
use crate::proto::trunk::Srtp;

/// What is to protect a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// What there is.
    #[default]
    Kept,
    /// Nothing.
    None,
    /// A key of ours, which the far end does not know yet; in a line with this tag and suite, or as it was.
    Offered(Option<(u32, Suite)>),
    /// Keys of both, by a line of the far end with this tag and suite.
    Agreed(u32, Suite),
}

impl Protection {
    /// Whether the connection is protected then; it was before, if `was`.
    pub fn holds(self, was: bool) -> bool {
        match self {
            Protection::Kept => was,
            Protection::None => false,
            Protection::Offered(_) | Protection::Agreed(..) => true,
        }
    }
}

/// The tag of a line that we offer.
const OFFERED: u32 = 1;

/// What is to protect a connection with this far end, which was described with tag and suite of a line, or without, by the command in hand
/// (`described`); `inside`: it is to be inside the gateway as long as nothing is known of it.
pub(super) fn choose(
    calls: &Calls,
    endpoint: EndpointIndex,
    remote: Remote,
    described: Option<Option<(u32, Suite)>>,
    inside: bool,
) -> Result<Protection, Refused> {
    let srtp = calls.card.srtp(endpoint);
    match (remote, described) {
        (Remote::Rtp(..), Some(Some(_))) if srtp == Srtp::Off => Err(PROTECTION_UNSUPPORTED),
        (Remote::Rtp(..), Some(Some((tag, suite)))) => Ok(Protection::Agreed(tag, suite)),
        (Remote::Rtp(..), Some(None)) if srtp == Srtp::Require => Err(PROTECTION_MISSING),
        (Remote::Unknown, None) if srtp == Srtp::Require && !inside => Ok(Protection::Offered(None)),
        (Remote::Rtp(..), None) => Ok(Protection::Kept),
        _ => Ok(Protection::None),
    }
}

/// Puts down the keys for `protection`, with what the far end's line says: whether our own line is another one then.
///
/// # Errors
/// The card has no key to give.
pub(super) fn prepare(
    calls: &mut Calls,
    slot: ConnectionSlot,
    protection: Protection,
    remote: impl FnOnce() -> Option<Crypto>,
) -> Result<bool, Refused> {
    let agreed = matches!(protection, Protection::Agreed(..));
    prepare_with(calls, slot, protection, if agreed { remote() } else { None }, None)
}

/// The same, with a key for us from outside, where H.248 gives one.
pub fn prepare_with(
    calls: &mut Calls,
    slot: ConnectionSlot,
    protection: Protection,
    remote: Option<Crypto>,
    given: Option<Crypto>,
) -> Result<bool, Refused> {
    let Calls { endpoints, card, .. } = calls;
    let secrets = &mut endpoints.secrets;
    // No room: no card here protects anything.
    let Some(keys) = secrets.get(slot) else { return Ok(false) };
    let (tag, suite, remote) = match protection {
        Protection::Kept => match (&given, &keys.local) {
            (Some(given), Some(_)) => (given.tag, given.suite, keys.remote.clone()),
            _ => {
                secrets.forget_next(slot);
                return Ok(false);
            }
        },
        Protection::None => {
            let changes = keys.local.is_some();
            secrets.prepare(slot, MediaKeys::default());
            return Ok(changes);
        }
        Protection::Offered(line) => {
            let had = keys.local.as_ref().map(|local| (local.tag, local.suite));
            let (tag, suite) = line.or(had).unwrap_or((OFFERED, Suite::default()));
            (tag, suite, None)
        }
        Protection::Agreed(tag, suite) => (tag, suite, remote),
    };
    let local = match (given, &keys.local) {
        (Some(given), _) => Crypto { tag, suite, ..given },
        (None, Some(local)) if local.suite == suite => Crypto { tag, ..local.clone() },
        (None, _) => Crypto { tag, suite, key: card.draw_key().ok_or(NO_MEDIA)?, lifetime: LIFETIME },
    };
    let changes = keys.local.as_ref() != Some(&local);
    secrets.prepare(slot, MediaKeys { local: Some(local), remote });
    Ok(changes)
}

/// The card agreed to what was prepared: it gets the keys.
pub fn commit(calls: &mut Calls, slot: ConnectionSlot, endpoint: EndpointIndex) {
    let Calls { endpoints, card, .. } = calls;
    if let Some(keys) = endpoints.secrets.commit(slot) {
        card.protect(endpoint, slot, keys);
    }
}
