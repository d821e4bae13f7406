//! The verbs of MGCP on one core's endpoints: one file per verb, each with a `validate` that changes nothing and an `apply` that
//! cannot fail (RFC 3435 2.3, 4.4.2). What a command came in by, repeats and other cores are not seen here.

pub mod admit;
pub mod audit_connection;
pub mod audit_endpoint;
pub mod bulk;
pub mod configure;
pub mod create;
pub mod delete;
mod describe;
pub mod event;
pub mod meetings;
pub mod modify;
mod options;
pub mod request;
mod room;
pub mod secure;
mod write;

pub use create::CreatePlan;
pub use modify::ModifyPlan;
pub use room::Room;
pub use write::{
    Restart, acknowledgement, reason_text, write_acknowledgement, write_audit, write_gateway_delete, write_outcome, write_provisional,
    write_refusal, write_restart, write_under,
};

use crate::proto::base::{Counter, Counters, EndpointIndex, Memo, Time};
use crate::proto::cac::Cause;
use crate::proto::cac::desk::Desk;
use crate::proto::codec::mgcp::{Command, CommandLine, EndpointName, Refusal, Verb};
use crate::proto::codec::sdp::Media;
use crate::proto::endpoint::{
    Announcement, Connection, ConnectionId, ConnectionSlot, Encoding, Encodings, Endpoint, Endpoints, LocalMedia, Options, RemoteTypes,
    Secrets,
};
use crate::proto::package::{ChannelKind, PackageId, find_package};
use crate::proto::plan::{Manners, Plan, Settings};
use crate::proto::trunk::{Card, Coding, MediaAddress, MediaReport, Srtp, TelephoneEvents};
use std::cell::RefCell;
use std::sync::Arc;

/// One core's endpoints with all that the verbs need.
pub struct Calls {
    /// The endpoints and their connections.
    pub endpoints: Endpoints,
    /// Their requests, events and signals.
    pub watches: event::Watches,
    /// The card that carries them.
    pub card: Box<dyn Card + Send>,
    /// The plan of the gateway.
    pub plan: Arc<Plan>,
    /// Settings.
    pub settings: Arc<Settings>,
    /// How the agent whose command is in hand wants to be spoken to.
    pub manners: Manners,
    /// Where to count.
    pub counters: Arc<Counters>,
    /// Admission; `None` where nothing is limited.
    pub desk: Option<Box<Desk>>,
    /// Connections that were told of another one inside the gateway, which is to learn of them; each once.
    pub meetings: meetings::Meetings,
    /// What parts of commands meant.
    readings: RefCell<Readings>,
}

/// What texts meant that agents write over and over.
#[derive(Default)]
struct Readings {
    /// Values of `L:`, and those from agents whose options are read leniently.
    options: Memo<Options>,
    lenient_options: Memo<Options>,
    /// What follows the port in descriptions.
    media: Memo<(Media, Encodings, RemoteTypes, TelephoneEvents)>,
}

impl Calls {
    /// The calls of a core, none up.
    pub fn new(
        now: Time,
        endpoints: Endpoints,
        card: Box<dyn Card + Send>,
        plan: Arc<Plan>,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
    ) -> Calls {
        let watches = event::Watches::new(endpoints.count(), now);
        let (cores, connections) = (plan.owners.len(), plan.limits.connections);
        let desk = plan.admission.is_some().then(|| Box::new(Desk::new(&settings.admission, cores, connections)));
        let (meetings, readings) = (meetings::Meetings::new(connections), RefCell::default());
        let mut endpoints = endpoints;
        let protects = |endpoint| card.srtp(endpoint) != Srtp::Off;
        if endpoints.ranges().flat_map(|range| range.iter()).any(protects) {
            endpoints.secrets = Secrets::new(endpoints.connections.limit());
        }
        Calls { endpoints, watches, card, plan, settings, manners: Manners::default(), counters, desk, meetings, readings }
    }

    /// Where the event machine has `endpoint`; `None` when it is as after a restart.
    #[inline]
    pub fn watch_slot(&self, endpoint: EndpointIndex) -> Option<event::WatchSlot> {
        self.endpoints.get(endpoint)?.watch
    }

    /// The same, taken now when there is none; `None` for an endpoint of another core.
    fn watch_slot_or_new(&mut self, endpoint: EndpointIndex) -> Option<event::WatchSlot> {
        let state = self.endpoints.get_mut(endpoint)?;
        if state.watch.is_none() {
            state.watch = self.watches.take(endpoint);
        }
        state.watch
    }

    /// Takes a connection off its endpoint; its places are free.
    fn disconnect(&mut self, slot: ConnectionSlot) -> Option<Connection> {
        admit::ended(self, slot);
        let connection = self.endpoints.disconnect(slot)?;
        if !self.meetings.part(&connection) {
            self.counters.add(Counter::PartingsDropped);
        }
        Some(connection)
    }

    /// Ends the media of a connection: what the card counted.
    pub fn close_media(&mut self, now: Time, endpoint: EndpointIndex, slot: ConnectionSlot) -> MediaReport {
        let report = self.card.close(now, endpoint, slot);
        for (counter, count) in [
            (Counter::RtpLate, report.late),
            (Counter::RtpConcealedOctets, report.concealed_octets),
            (Counter::RtpSlips, report.slips),
            (Counter::SrtpReplayed, report.replayed),
            (Counter::SrtpUnauthentic, report.unauthentic),
        ] {
            if count > 0 {
                self.counters.add_many(counter, count.into());
            }
        }
        report
    }

    /// What the event machine knows of `endpoint`.
    #[inline]
    pub fn watch(&self, endpoint: EndpointIndex) -> Option<&event::Watch> {
        self.watches.get(self.watch_slot(endpoint)?)
    }

    /// What `endpoint` is provisioned as.
    pub fn channel_kind(&self, endpoint: EndpointIndex) -> ChannelKind {
        self.plan.channel_kind(endpoint)
    }

    /// What `endpoint` can be offered with: what the gateway has, without data where bits are robbed.
    pub fn encodings(&self, endpoint: EndpointIndex) -> Encodings {
        let all = self.settings.encodings;
        let is_voice = |encoding: &Encoding| encoding.coding() != Some(Coding::Clear);
        if self.plan.is_clear(endpoint) || all.iter().all(|encoding| is_voice(&encoding)) {
            all
        } else {
            all.iter().filter(is_voice).collect()
        }
    }

    /// Whether texts of so many blocks can be kept when others of `replaced` blocks are given up for them.
    fn room_for(&self, blocks: u32, replaced: u32) -> Result<(), Refused> {
        if self.endpoints.blobs.fits_instead(blocks, replaced) { Ok(()) } else { Err(self.no_room()) }
    }

    /// The memory for texts is used up: the refusal, counted.
    fn no_room(&self) -> Refused {
        self.counters.add(Counter::TextMemoryFull);
        NO_MEMORY_LEFT
    }

    /// The connections of `endpoint` that are there for everybody.
    pub fn connections_of(&self, endpoint: EndpointIndex) -> impl Iterator<Item = (ConnectionSlot, &Connection)> {
        let slots = self.endpoints.get(endpoint).into_iter().flat_map(Endpoint::connection_slots);
        let connection = |slot| self.endpoints.connections.get(slot).map(|connection| (slot, connection));
        slots.filter_map(connection).filter(|(_, connection)| !connection.pending)
    }
}

/// A refusal: the return code and the commentary (G-RSL-05).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The return code (RFC 3435 2.4).
    pub code: u16,
    /// What is wrong, in words.
    pub text: &'static str,
}

const fn refuse(code: u16, text: &'static str) -> Refused {
    Refused { code, text }
}

pub use crate::proto::plan::SMALLEST_MAX_RESPONSE;

// One place for every code the gateway gives that is not about syntax (the codec has its own table).
/// No endpoint has this name.
pub const ENDPOINT_UNKNOWN: Refused = refuse(500, "no such endpoint");
/// The domain part is not one of ours.
pub const DOMAIN_UNKNOWN: Refused = refuse(500, "domain is not this gateway's");
/// `$` where it must not stand (G-EPN-09).
pub const ANY_OF_REFUSED: Refused = refuse(500, "any-of wildcard is not allowed in this command");
/// `*` where it must not stand (G-EPN-09).
pub const ALL_OF_REFUSED: Refused = refuse(503, "all-of wildcard is not allowed in this command");
/// A verb the gateway does not receive (G-MSG-03).
pub const VERB_UNKNOWN: Refused = refuse(504, "verb is not received by a gateway");
/// Out of service (G-SVC-01).
pub const OUT_OF_SERVICE: Refused = refuse(501, "endpoint is out of service");
/// The facility failed and the restart has not been sent.
pub const FACILITY_FAILED: Refused = refuse(531, "trunk facility has failed");
/// The restart has not been acknowledged (G-RST-03).
pub const RESTARTING: Refused = refuse(405, "restart is not complete");
/// The core is overloaded.
pub const OVERLOADED: Refused = refuse(409, "overloaded, no new connections now");
/// The history is full (G-TRX-08).
pub const HISTORY_FULL: Refused = refuse(409, "overloaded, too many transactions");
/// The operator drains the gateway.
pub const DRAINING: Refused = refuse(403, "gateway is being drained, no new connections");
/// The table of waiting commands is full.
pub const TOO_MANY_WAITING: Refused = refuse(409, "overloaded, too many commands wait");
/// A response over the agent's limit (G-AUE-02).
pub const RESPONSE_TOO_LARGE: Refused = refuse(533, "response would be too large");
/// Its own time limit (G-PRV-05).
pub const TIME_LIMIT: Refused = refuse(406, "command took too long and was undone");
/// Aborted by another command (G-PRV-07).
pub const ABORTED: Refused = refuse(407, "aborted by another command");
/// Nothing free for `$` (G-CRX-04).
pub const NOTHING_FREE: Refused = refuse(410, "no endpoint is free");
/// Unknown connection.
pub const CONNECTION_UNKNOWN: Refused = refuse(515, "connection is unknown");
/// A known connection of another call.
pub const CALL_MISMATCH: Refused = refuse(516, "connection does not belong to this call");
/// The endpoint has as many connections as it may.
pub const TOO_MANY_CONNECTIONS: Refused = refuse(540, "endpoint has the most connections it can have");
/// The gateway has as many connections as it may.
pub const NO_CONNECTION_LEFT: Refused = refuse(403, "no room for another connection");
/// The memory for descriptions, lists of events, digit maps and names of notified entities is used up.
pub const NO_MEMORY_LEFT: Refused = refuse(403, "memory for descriptions, event lists and digit maps is used up");
/// The card could not give media.
pub const NO_MEDIA: Refused = refuse(403, "card has no media resource free");
/// A mode that needs a remote description (G-CRX-06).
pub const REMOTE_MISSING: Refused = refuse(527, "mode needs a remote connection descriptor");
/// Nothing in common (G-LCO-14).
pub const NO_COMMON_ENCODING: Refused = refuse(534, "no codec in common");
/// The agent does not speak the profile it names.
pub const PROFILE_UNSUPPORTED: Refused = refuse(528, "profile is not supported");
/// A package that the endpoint does not have (G-RTN-03).
pub const PACKAGE_UNKNOWN: Refused = refuse(518, "package is not supported");
/// A name that is none of the package's (G-EVT-14).
pub const EVENT_UNKNOWN: Refused = refuse(522, "no such event or signal");
/// An event or signal bound to a connection, or not, that cannot be there (G-EVT-06).
pub const NOT_ON_CONNECTIONS: Refused = refuse(538, "event or signal cannot be there");
/// `@$` without a connection it could mean (G-EVT-08).
pub const NO_CURRENT_CONNECTION: Refused = refuse(510, "@$ has no meaning in this command");
/// Parameters that an event or signal does not take (G-EVT-13, G-EVT-14).
pub const EVENT_PARAMETER: Refused = refuse(538, "event or signal parameter is not supported");
/// An event or a signal twice in a list (G-REQ-02, G-SIG-03, PKG-09).
pub const LISTED_TWICE: Refused = refuse(510, "an event or signal is listed twice");
/// A list with more events, or more text, than is kept.
pub const TOO_MANY_EVENTS: Refused = refuse(403, "a list of events is too long");
/// More signals than an endpoint has at a time.
pub const TOO_MANY_SIGNALS: Refused = refuse(403, "too many signals at a time");
/// An action that is not supported: swap audio, those of packages (G-REQ-04, G-REQ-06).
pub const ACTION_UNSUPPORTED: Refused = refuse(523, "action is not supported");
/// N with E needs `Q: loop` (G-REQ-05).
pub const NEEDS_LOOP: Refused = refuse(523, "N with E needs loop mode");
/// Persistent events without a request.
pub const PERSISTENT_ALONE: Refused = refuse(510, "B/PR: needs X:");
/// D without a digit map (G-REQ-08).
pub const NO_DIGIT_MAP: Refused = refuse(519, "endpoint has no digit map");
/// An event or signal that needs the line on-hook (G-QUA-22).
pub const OFF_HOOK: Refused = refuse(401, "line is off-hook already");
/// An event or signal that needs the line off-hook (G-QUA-22, G-SIG-14).
pub const ON_HOOK: Refused = refuse(402, "line is on-hook");
/// A signal that the signalling of the line does not allow now.
pub const LINE_STATE: Refused = refuse(530, "signalling of the line does not allow it now");
/// A letter in a digit map that belongs to a package the endpoint does not have (G-DMP-02).
pub const DIGIT_MAP_LETTER: Refused = refuse(537, "digit map has a letter of an unsupported package");
/// A digit map that cannot be followed.
pub const DIGIT_MAP_UNUSABLE: Refused = refuse(403, "digit map is too long");
/// An option whose value cannot be had (G-LCO-12).
pub const OPTION_VALUE: Refused = refuse(532, "value in L: is not supported");
/// `fmtp:` for an encoding, or an occurrence of it, that `a:` does not have (RFC 3660 2.9).
pub const FORMAT_OF_NOTHING: Refused = refuse(524, "fmtp: names what a: in L: does not have");
/// Options and remote description cannot be met together (G-LCO-18).
pub const IRRECONCILABLE: Refused = refuse(506, "L: and remote description cannot be met together");
/// A description we understand and cannot serve.
pub const DESCRIPTION_UNSUPPORTED: Refused = refuse(505, "remote description asks for what is not supported");
/// Protected media where the card has no protection, or its setting none.
pub const PROTECTION_UNSUPPORTED: Refused = refuse(505, "media is not protected here: RTP/SAVP is not supported");
/// Media without protection where the card's setting wants it.
pub const PROTECTION_MISSING: Refused = refuse(505, "media is to be protected here: only RTP/SAVP is supported");
/// A second endpoint and a remote description at once (G-CRX-08).
pub const SECOND_AND_REMOTE: Refused = refuse(510, "Z2: and a remote description exclude each other");
/// A second endpoint that is the first, or an any-of for both.
pub const SECOND_REFUSED: Refused = refuse(503, "this combination of endpoint and Z2: is not supported");
/// A notified entity that is no agent of this gateway.
pub const ENTITY_REFUSED: Refused = refuse(539, "N: names no call agent of this gateway");
/// No room for another notified entity.
pub const NO_ENTITY_LEFT: Refused = refuse(403, "too many different notified entities");
/// A core stands still.
pub const CORE_SILENT: Refused = refuse(400, "part of the gateway does not answer, nothing was changed");
/// A bulk audit without a list, with one twice, with names and states, or with what is none (BA-05).
pub const BULK_ITEM: Refused = refuse(802, "BA/F: is missing, or asks for what there is not or does not go together");
/// A parameter of the package that there is not, or twice.
pub const BULK_PARAMETER: Refused = refuse(802, "a BA parameter is unknown or given twice");
/// A state type that there is not (BA-09).
pub const BULK_STATE: Refused = refuse(803, "a state type of BA/S is unknown");
/// A first endpoint that is no local name of one endpoint.
pub const BULK_START: Refused = refuse(801, "BA/SE: is not the local name of an endpoint");
/// A first endpoint that there is not.
pub const BULK_START_UNKNOWN: Refused = refuse(806, "BA/SE: names no endpoint of this gateway");
/// A first endpoint that the name of the command does not cover.
pub const BULK_NOT_HERE: Refused = refuse(805, "BA/SE: is outside of the endpoint name");
/// A number of endpoints out of range.
pub const BULK_RANGE: Refused = refuse(805, "BA/NU: is not 1 to 65535");
/// Parameters of bulk audits in another command.
pub const BULK_ELSEWHERE: Refused = refuse(510, "parameters of package BA belong into AuditEndpoint");
/// Something only a command for one endpoint may carry.
pub const MANY_WITH_REQUEST: Refused = refuse(510, "a command over many endpoints cannot carry this parameter");
/// Admission control has no bandwidth left for it.
pub const NO_BANDWIDTH: Refused = refuse(404, "admission: bandwidth limit reached");

/// The refusal of admission control for this cause.
pub const fn admission_refused(cause: Cause) -> Refused {
    match cause {
        Cause::Bandwidth => NO_BANDWIDTH,
        cause => refuse(403, cause.text()),
    }
}

/// A connection whose creation is still running (G-TXN-06).
pub const STILL_CREATING: Refused = refuse(400, "connection is still being created");

/// The codec's refusal as ours.
pub fn refused(refusal: Refusal) -> Refused {
    Refused { code: refusal.code(), text: refusal.text() }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        refused(refusal)
    }
}

/// Facts of a connection, enough to write the response; it may have been made on another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Created {
    /// The endpoint it is on.
    pub endpoint: EndpointIndex,
    /// Its identifier.
    pub connection: ConnectionId,
    /// Its local description.
    pub local: LocalMedia,
}

impl Created {
    /// Where it receives.
    pub fn media_address(&self) -> MediaAddress {
        MediaAddress { address: self.local.address, port: self.local.port }
    }
}

/// Whether a response with `code` may be seen before the restart (G-RST-03).
pub const fn before_restart(code: u16) -> bool {
    matches!(code, 405 | 501 | 520)
}

/// What came of a command.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    /// Nothing was done.
    Refused(Refused),
    /// Done; nothing to tell (200).
    Done,
    /// Connections deleted (250), with the counters of the one named.
    Deleted(Option<MediaReport>),
    /// A connection was created (200).
    Created {
        /// It.
        created: Created,
        /// The gateway chose the endpoint and says which: with this of its domain names.
        chosen: Option<u8>,
        /// The second connection of a pair, and the same for its endpoint.
        second: Option<(EndpointIndex, ConnectionId, Option<u8>)>,
    },
    /// A connection was modified (200); the local description when it changed.
    Modified(Option<Created>),
}

impl Outcome {
    /// The return code.
    pub fn code(&self) -> u16 {
        match self {
            Outcome::Refused(refused) => refused.code,
            Outcome::Deleted(_) => 250,
            Outcome::Done | Outcome::Created { .. } | Outcome::Modified(_) => 200,
        }
    }
}

/// Which of the gateway's domain names `name` uses (G-EPN-01, G-EPN-04).
#[inline]
pub fn domain_of(plan: &Plan, name: &EndpointName<'_>) -> Result<u8, Refused> {
    // As a rule it is written just so, and comparing bytes is a tenth of comparing letters.
    let same = |domain: &[u8]| domain == name.domain || domain.eq_ignore_ascii_case(name.domain);
    let place = plan.domains.iter().position(|domain| same(domain));
    place.map(|place| place as u8).ok_or(DOMAIN_UNKNOWN)
}

/// The endpoint name in a first line, when its domain is written as one of the gateway's; its local part is not looked at.
pub fn own_name<'a>(plan: &Plan, line: &CommandLine<'a>) -> Option<EndpointName<'a>> {
    let domain = line.domain().filter(|domain| plan.domains.iter().any(|own| **own == **domain))?;
    Some(EndpointName { raw: line.endpoint, local: line.local(), domain })
}

/// Whether every parameter of `command` that belongs to a package belongs to one that has it: BA, in an AuditEndpoint; those of B have codes
/// of their own (G-PAR-04, G-RTN-03).
#[inline]
pub fn packages_supported(command: &Command<'_>) -> Result<(), Refused> {
    for one in command.extensions() {
        match find_package(one.package) {
            Some(PackageId::BA) if command.verb == Verb::Auep => {}
            Some(PackageId::BA) => return Err(BULK_ELSEWHERE),
            _ => return Err(PACKAGE_UNKNOWN),
        }
    }
    Ok(())
}

/// Whether `endpoint` executes commands other than audits (G-SVC-01, G-RTN-02).
#[inline]
pub fn in_service(calls: &Calls, endpoint: EndpointIndex) -> Result<(), Refused> {
    let state = calls.endpoints.get(endpoint).ok_or(ENDPOINT_UNKNOWN)?;
    match (state.service.in_service, state.service.refusal) {
        (true, _) => Ok(()),
        // Before the agent has seen a restart only 501 may be seen (G-RST-03).
        (false, 531) if state.announcement == Announcement::Done => Err(FACILITY_FAILED),
        (false, _) => Err(OUT_OF_SERVICE),
    }
}
