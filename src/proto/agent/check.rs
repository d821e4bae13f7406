//! What the agent checks in what it gets, and how a failed check is named.

use crate::proto::base::HexId;
use crate::proto::codec::mgcp::{Code, Response};
use crate::proto::codec::scan::Lines;

macro_rules! failures {
    ($($(#[doc = $help:literal])+ $variant:ident = $text:literal,)+) => {
        /// A check that failed.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Failure { $($(#[doc = $help])+ $variant,)+ }

        impl Failure {
            /// Every check, in the order of the list.
            pub const ALL: &'static [Failure] = &[$(Failure::$variant,)+];

            /// What went wrong, in words.
            pub const fn text(self) -> &'static str {
                match self { $(Failure::$variant => $text,)+ }
            }
        }
    };
}

failures! {
    /// A command got no final response.
    NoFinalResponse = "command without final response",
    /// A final response came again with other bytes (G-TRX-03).
    RepeatDiffers = "repeated response differs from the first",
    /// The response cannot be read.
    Unreadable = "unreadable response",
    /// A permanent error where the command is right and nothing told us that the endpoint changed.
    UnexpectedCode = "unexpected response code",
    /// CRCX was executed but the response has no `I:` (G-CRX).
    ConnectionIdMissing = "CRCX response without connection identifier",
    /// CRCX got the identifier of the endpoint's previous connection (RFC 3435 2.1.3.2: not within 3 minutes).
    ConnectionIdReused = "CRCX response reuses a connection identifier",
    /// CRCX was executed but the response has no usable session description.
    DescriptionMissing = "CRCX response without usable session description",
    /// The final response names another connection than the provisional one (G-PRV-03).
    ProvisionalDiffers = "final response differs from the provisional one",
    /// DLCX of a connection was executed but the response has no complete `P:` (G-DLX-02).
    ParametersMissing = "DLCX response without connection parameters",
    /// AUEP names other connections than the call has.
    AuditDiffers = "audit names other connections than those up",
    /// AUCX names another call or mode than the call has.
    ConnectionAuditDiffers = "connection audit differs from the call",
    /// The pattern could not be cleared.
    NotCleared = "pattern could not be cleared",
    /// The gateway answered nothing any more while calls were being ended, so that the audit at the end was given up.
    Silent = "gateway fell silent; what is left is unknown",
    /// Calls, or audits, were sent by the schedule and every single one was refused.
    NothingDone = "every call or every audit was refused",
    /// An Add was executed but its reply lacks the context, the RTP termination or a usable description.
    AddIncomplete = "Add reply without context, termination or usable session description",
    /// A Subtract was executed but its reply has no statistics.
    StatisticsMissing = "Subtract reply without statistics",
    /// A context was left at the end.
    ContextLeft = "context left at the end",
    /// A connection was left at the end.
    ConnectionLeft = "connection left at the end",
    /// A call over a trunk went otherwise than its far end did.
    CallWrong = "call went otherwise than its far end did",
    /// A trunk was not idle at the end, or has a connection.
    LineLeft = "trunk not idle at the end",
}

/// The connection of the response to a CreateConnection, checked.
pub fn created(response: &Response<'_>, previous: HexId, provisional: HexId) -> Result<HexId, Failure> {
    let connection = response.connection().ok_or(Failure::ConnectionIdMissing)?;
    if connection == previous {
        return Err(Failure::ConnectionIdReused);
    }
    if !provisional.is_none() && provisional != connection {
        return Err(Failure::ProvisionalDiffers);
    }
    match response.descriptions[0] {
        Some(description) if is_usable(description) => Ok(connection),
        _ => Err(Failure::DescriptionMissing),
    }
}

/// Checks the response to a DeleteConnection of one connection.
pub fn deleted(response: &Response<'_>) -> Result<(), Failure> {
    let parameters = response.connection_parameters().ok_or(Failure::ParametersMissing)?;
    let basic = [
        parameters.packets_sent,
        parameters.octets_sent,
        parameters.packets_received,
        parameters.octets_received,
        parameters.packets_lost,
        parameters.jitter_ms,
        parameters.latency_ms,
    ];
    if basic.iter().all(Option::is_some) { Ok(()) } else { Err(Failure::ParametersMissing) }
}

/// Checks the `I:` of an AuditEndpoint against the one connection that should be up, or none.
pub fn audited(response: &Response<'_>, connection: HexId) -> Result<(), Failure> {
    let mut connections = response.connections();
    let (first, second) = (connections.next(), connections.next());
    let expected = if connection.is_none() { None } else { Some(connection) };
    if response.get(Code::I).is_some() && first == expected && second.is_none() { Ok(()) } else { Err(Failure::AuditDiffers) }
}

/// Checks `C:` and `M:` of an AuditConnection.
pub fn connection_audited(response: &Response<'_>, call: HexId) -> Result<(), Failure> {
    let same_call = response.get(Code::C).and_then(HexId::parse) == Some(call);
    let same_mode = response.get(Code::M).is_some_and(|mode| mode.eq_ignore_ascii_case(b"sendrecv"));
    if same_call && same_mode { Ok(()) } else { Err(Failure::ConnectionAuditDiffers) }
}

/// Whether media could be sent to `description`: it has an address, and audio with a port.
fn is_usable(description: &[u8]) -> bool {
    let (mut address, mut media) = (false, false);
    for line in Lines::new(description) {
        match line.get(..2) {
            Some(b"c=") => address |= line.starts_with(b"c=IN IP4 ") || line.starts_with(b"c=IN IP6 "),
            Some(b"m=") => media |= line.strip_prefix(b"m=audio ").and_then(|rest| rest.first()).is_some_and(|b| (b'1'..=b'9').contains(b)),
            _ => {}
        }
    }
    address && media
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDP: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";

    fn id(text: &str) -> HexId {
        HexId::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_created_connection_has_an_identifier_and_a_description() {
        let check = |text: String, previous, provisional| created(&Response::parse(text.as_bytes()).unwrap(), previous, provisional);
        let good = format!("200 1 OK\r\nI: A1\r\n\r\n{SDP}");
        assert_eq!(check(good.clone(), HexId::NONE, HexId::NONE), Ok(id("A1")));
        assert_eq!(check(good.clone(), id("A1"), HexId::NONE), Err(Failure::ConnectionIdReused));
        assert_eq!(check(good.clone(), HexId::NONE, id("A2")), Err(Failure::ProvisionalDiffers));
        assert_eq!(check(good.replace("I: A1\r\n", ""), HexId::NONE, HexId::NONE), Err(Failure::ConnectionIdMissing));
        assert_eq!(check("200 1 OK\r\nI: A1\r\n".into(), HexId::NONE, HexId::NONE), Err(Failure::DescriptionMissing));
        assert_eq!(check(good.replace("4000", "0"), HexId::NONE, HexId::NONE), Err(Failure::DescriptionMissing));
        assert_eq!(check(good.replace("c=IN", "x=IN"), HexId::NONE, HexId::NONE), Err(Failure::DescriptionMissing));
    }

    #[test]
    fn a_deleted_connection_has_all_counters() {
        let check = |text: &str| deleted(&Response::parse(text.as_bytes()).unwrap());
        assert_eq!(check("250 1 OK\r\nP: PS=1, OS=2, PR=3, OR=4, PL=5, JI=6, LA=7\r\n"), Ok(()));
        assert_eq!(check("250 1 OK\r\nP: PS=1, OS=2, PR=3, OR=4, PL=5, JI=6\r\n"), Err(Failure::ParametersMissing));
        assert_eq!(check("250 1 OK\r\n"), Err(Failure::ParametersMissing));
    }

    #[test]
    fn an_audit_lists_exactly_what_is_up() {
        let check = |text: &str, connection| audited(&Response::parse(text.as_bytes()).unwrap(), connection);
        assert_eq!(check("200 1 OK\r\nI:\r\n", HexId::NONE), Ok(()));
        assert_eq!(check("200 1 OK\r\nI: A1\r\n", id("a1")), Ok(()));
        assert_eq!(check("200 1 OK\r\nI: A1\r\n", HexId::NONE), Err(Failure::AuditDiffers));
        assert_eq!(check("200 1 OK\r\nI: A1, A2\r\n", id("A1")), Err(Failure::AuditDiffers));
        assert_eq!(check("200 1 OK\r\n", HexId::NONE), Err(Failure::AuditDiffers));
        let check = |text: &str| connection_audited(&Response::parse(text.as_bytes()).unwrap(), id("C1"));
        assert_eq!(check("200 1 OK\r\nC: C1\r\nM: sendrecv\r\n"), Ok(()));
        assert_eq!(check("200 1 OK\r\nC: C1\r\nM: recvonly\r\n"), Err(Failure::ConnectionAuditDiffers));
        assert_eq!(check("200 1 OK\r\nC: C2\r\nM: sendrecv\r\n"), Err(Failure::ConnectionAuditDiffers));
    }
}
