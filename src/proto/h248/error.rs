//! Why a command is not done: the codes of the public registry (RFC 3525 7.1.19 and the list in the requirements), in one place.

/// An error descriptor to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The error code.
    pub code: u16,
    /// What is wrong, in words without double quotes.
    pub text: &'static str,
}

const fn failure(code: u16, text: &'static str) -> Failure {
    Failure { code, text }
}

/// ROOT, or a name with a wildcard, where it must not stand (PRP-11, TRM-09).
pub const IDENTIFIER: Failure = failure(410, "termination identifier is not allowed in this command");
/// No such context.
pub const CONTEXT_UNKNOWN: Failure = failure(411, "no such context");
/// The table of contexts is full.
pub const NO_CONTEXT_LEFT: Failure = failure(412, "no context is left");
/// A command that does not go with the context.
pub const ACTION_ILLEGAL: Failure = failure(421, "command is not possible in this context");
/// The name is none of ours.
pub const TERMINATION_UNKNOWN: Failure = failure(430, "no such termination");
/// Nothing matches.
pub const NOTHING_MATCHES: Failure = failure(431, "no termination matches the wildcard");
/// Nothing free for `$`.
pub const NOTHING_FREE: Failure = failure(432, "no termination is free");
/// It is in a context.
pub const IN_A_CONTEXT: Failure = failure(433, "termination is in a context already");
/// The context has as many terminations as it may.
pub const CONTEXT_FULL: Failure = failure(434, "context has the most terminations it can have");
/// It is not there.
pub const NOT_IN_CONTEXT: Failure = failure(435, "termination is not in this context");
/// A package the termination does not have.
pub const PACKAGE_UNKNOWN: Failure = failure(440, "package is not supported by this termination");
/// A command that a gateway does not take (CMD-01).
pub const COMMAND_UNSUPPORTED: Failure = failure(443, "command is not for a gateway");
/// Modem, Mux, Topology (TOP-01).
pub const DESCRIPTOR_UNSUPPORTED: Failure = failure(444, "descriptor is not supported");
/// Topology (TOP-01).
pub const TOPOLOGY_UNSUPPORTED: Failure = failure(444, "Topology is not supported");
/// A descriptor that does not go with the termination or the command.
pub const DESCRIPTOR_ILLEGAL: Failure = failure(447, "descriptor is not legal here");
/// An event that its package has not (EVT-13).
pub const NO_SUCH_EVENT: Failure = failure(451, "package has no such event");
/// A signal that its package has not (SIG-15).
pub const NO_SUCH_SIGNAL: Failure = failure(452, "package has no such signal");
/// An event that no card here detects (EVT-13).
pub const CANNOT_DETECT: Failure = failure(512, "not equipped to detect the event");
/// A signal that no card here generates (SIG-15).
pub const CANNOT_GENERATE: Failure = failure(513, "not equipped to generate the signal");
/// A property of a package that has no such.
pub const NO_SUCH_PROPERTY: Failure = failure(450, "package has no such property");
/// A property twice.
pub const PROPERTY_TWICE: Failure = failure(456, "property appears twice");
/// A value that a property cannot have.
pub const PROPERTY_VALUE: Failure = failure(449, "value of the property is not possible");
/// Something version 1 has and this gateway has not.
pub const NOT_IMPLEMENTED: Failure = failure(501, "not supported");
/// Out of service (TRM-15).
pub const OUT_OF_SERVICE: Failure = failure(502, "termination is out of service");
/// The gateway takes no new calls.
pub const DRAINING: Failure = failure(503, "gateway is being drained, no new contexts");
/// There is no time for new calls (OVL-07).
pub const OVERLOADED: Failure = failure(503, "overloaded, no new contexts now");
/// A listed controller that is not in charge.
pub const UNAUTHORIZED: Failure = failure(504, "another controller is in charge");
/// Before the registration is answered (ASC-04).
pub const NOT_REGISTERED: Failure = failure(505, "request before the reply to the registration");
/// No media resource, no memory, no codec in common (LC-06).
pub const NO_RESOURCES: Failure = failure(510, "insufficient resources");
/// Admission control: a limit is reached.
pub const NOT_ADMITTED: Failure = failure(510, "admission: limit reached");
/// Admission control: the limit of bandwidth.
pub const NO_BANDWIDTH: Failure = failure(510, "admission: bandwidth limit reached");
/// Admission control: nobody said in time.
pub const NOT_DECIDED: Failure = failure(510, "admission: nobody answers whether there is room");
/// The history is full.
pub const HISTORY_FULL: Failure = failure(510, "too many transactions");
/// Not audio over RTP.
pub const MEDIA_TYPE: Failure = failure(515, "media type is not supported");
/// A mode the termination cannot have.
pub const MODE: Failure = failure(517, "mode is not supported by this termination");
/// The reply does not fit.
pub const TOO_LARGE: Failure = failure(533, "response exceeds the maximum size");
/// A property that is only read (PRP-10).
pub const READ_ONLY: Failure = failure(534, "property is read-only");
/// The command was undone because the card did not answer in time.
pub const TIME_LIMIT: Failure = failure(510, "card did not answer in time, command was undone");
/// The core that carries it stands still, or has too much to do.
pub const CORE_SILENT: Failure = failure(510, "core that carries the termination does not answer");
/// A session description that cannot be read.
pub const DESCRIPTION: Failure = failure(442, "session description is malformed");
