//! The Media descriptor of a command: read whole and checked, then applied (RFC 3525 7.1.4 to 7.1.8).

use super::description::Offer;
use super::error::*;
use super::table::{JITTER_MS, Row, Termination};
use crate::proto::base::Mode;
use crate::proto::codec::h248::{
    Fault, LocalControl, LocalParameter, Media, MediaPart, Octets, Property, Refusal, ServiceState, StreamMode, StreamPart,
    TerminationState, TerminationStateParameter, Value,
};
use crate::proto::codec::sdp::crypto;
use crate::proto::endpoint::{Connection, Encoding, Encodings, Remote};
use crate::proto::mgcp::secure::Protection;
use crate::proto::trunk::Srtp;

/// The new LocalControl, with defaults for what it does not name (LC-07, PRP-08).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Control {
    pub mode: StreamMode,
    pub reserve: (bool, bool),
    pub echo_canceller: bool,
    pub gain: Option<i32>,
    pub jitter_ms: u16,
}

/// Local or Remote as a command gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Side<T> {
    /// Not in the command: as before (LR-02).
    #[default]
    Absent,
    /// Empty: given back (LR-02).
    Freed,
    /// Chosen of what is given.
    Chosen(T),
}

/// The part of Local that was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenLocal {
    pub encodings: Encodings,
    pub period_ms: u16,
}

/// The part of Remote that was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenRemote<'a> {
    pub remote: Remote,
    pub text: &'a [u8],
    /// What protects it: the value of its `a=crypto` line.
    pub line: Option<&'a [u8]>,
    /// More was given than this.
    pub surplus: bool,
}

/// Properties of ROOT (RFC 3525 E.2), in ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootTimes {
    pub execution: u32,
    pub controller_execution: u32,
    pub provisional: u32,
    pub controller_provisional: u32,
}

/// What a Media descriptor wants; everything is checked.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MediaPlan<'a> {
    /// The number of its stream, when it stands in a Stream descriptor.
    pub stream: Option<u16>,
    /// ServiceStates and EventBufferControl.
    pub state: Option<(ServiceState, bool)>,
    /// Properties of ROOT.
    pub root: Option<RootTimes>,
    pub control: Option<Control>,
    pub local: Side<ChosenLocal>,
    /// Local is in the command, so the reply says what was chosen of it (PAR-02).
    pub local_given: bool,
    pub remote: Side<ChosenRemote<'a>>,
    /// What is to protect it.
    pub protection: Protection,
    /// The line of Local about that, when it has one; its key may be left open.
    pub local_line: Option<&'a [u8]>,
}

impl MediaPlan<'_> {
    /// The bytes of the remote description to keep.
    pub fn remote_length(&self) -> usize {
        match &self.remote {
            Side::Chosen(chosen) => chosen.text.len(),
            _ => 0,
        }
    }

    /// Whether the card has to know.
    pub fn concerns_media(&self) -> bool {
        self.control.is_some() || self.local != Side::Absent || self.remote != Side::Absent
    }
}

/// What the termination is like before.
pub struct Before<'b> {
    pub termination: Termination,
    pub row: &'b Row,
    pub connection: Option<&'b Connection>,
    /// What the gateway offers.
    pub internal: &'b Encodings,
    pub root: RootTimes,
    /// What its card protects.
    pub srtp: Srtp,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure { code: refusal.code(), text: refusal.text() }
    }
}

/// Reads `media` for a termination.
pub fn read<'a>(media: &Media<'a>, before: &Before<'_>) -> Result<MediaPlan<'a>, Failure> {
    let mut plan = MediaPlan::default();
    let (mut local, mut remote) = (None, None);
    let mut streams = 0;
    let mut part = |plan: &mut MediaPlan<'a>, part: StreamPart<'a>| -> Result<(), Failure> {
        match part {
            StreamPart::Control(control) => plan.control = Some(read_control(&control, before)?),
            StreamPart::Local(octets) => local = Some(octets),
            StreamPart::Remote(octets) => remote = Some(octets),
        }
        Ok(())
    };
    for item in media.parts() {
        match item? {
            MediaPart::State(state) => read_state(&state, before, &mut plan)?,
            MediaPart::One(one) => part(&mut plan, one)?,
            MediaPart::Stream(stream) => {
                streams += 1;
                plan.stream = Some(stream.id);
                for item in stream.parts() {
                    part(&mut plan, item?)?;
                }
            }
        }
    }
    if before.termination == Termination::Root && plan.concerns_media() {
        return Err(DESCRIPTOR_ILLEGAL);
    }
    if streams > 1 {
        return Err(ONE_STREAM);
    }
    if let Termination::Ephemeral(_) = before.termination {
        choose(&mut plan, before, local, remote)?;
    } else if local.is_some_and(|octets| !octets.is_empty()) || remote.is_some_and(|octets| !octets.is_empty()) {
        // A DS0 carries what its span says.
        return Err(DESCRIPTOR_ILLEGAL);
    }
    Ok(plan)
}

const ONE_STREAM: Failure = Failure { code: 501, text: "a termination has one stream" };

fn read_control(control: &LocalControl<'_>, before: &Before<'_>) -> Result<Control, Failure> {
    let mut new = default_control();
    let mut seen = 0u8;
    for parameter in control.parameters() {
        let bit = match parameter? {
            LocalParameter::Mode(mode) => {
                if mode == StreamMode::Loopback && !matches!(before.termination, Termination::Ephemeral(_)) {
                    return Err(MODE);
                }
                new.mode = mode;
                1
            }
            LocalParameter::ReserveValue(on) => {
                new.reserve.0 = on;
                2
            }
            LocalParameter::ReserveGroup(on) => {
                new.reserve.1 = on;
                4
            }
            LocalParameter::Property(property) => read_property(&property, before.termination, &mut new)?,
        };
        if seen & bit != 0 {
            return Err(PROPERTY_TWICE);
        }
        seen |= bit;
    }
    Ok(new)
}

/// The defaults of LocalControl.
pub fn default_control() -> Control {
    let Row { mode, reserve, echo_canceller, gain, .. } = Row::default();
    Control { mode, reserve, echo_canceller, gain, jitter_ms: JITTER_MS }
}

/// A property of `nt`, `tdmc` or `rtp`; the items of `nt` may be named by the packages that extend it (PRP-02).
fn read_property(property: &Property<'_>, termination: Termination, new: &mut Control) -> Result<u8, Failure> {
    let physical = matches!(termination, Termination::Physical(_));
    let package = |name: &str| property.name.package.eq_ignore_ascii_case(name.as_bytes());
    if !(package("nt") || package("tdmc") && physical || package("rtp") && !physical) {
        return Err(PACKAGE_UNKNOWN);
    }
    let item = |name: &str| property.name.item.eq_ignore_ascii_case(name.as_bytes());
    let chosen = |value: Value<'_>| value.text == b"$" && !value.quoted;
    let value = property.value.one().ok_or(PROPERTY_VALUE)?;
    if item("jit") {
        new.jitter_ms = match value.integer() {
            _ if chosen(value) => JITTER_MS,
            Some(ms) => u16::try_from(ms).map_err(|_| PROPERTY_VALUE)?,
            None => return Err(PROPERTY_VALUE),
        };
        return Ok(8);
    }
    if package("tdmc") && item("ec") {
        new.echo_canceller = if chosen(value) { true } else { value.boolean().ok_or(PROPERTY_VALUE)? };
        return Ok(16);
    }
    if package("tdmc") && item("gain") {
        new.gain = match value.integer() {
            _ if chosen(value) || value.is("automatic") => None,
            Some(0xffff_ffff) => None,
            Some(db @ -100..=100) => Some(db as i32),
            _ => return Err(PROPERTY_VALUE),
        };
        return Ok(32);
    }
    Err(NO_SUCH_PROPERTY)
}

fn read_state(state: &TerminationState<'_>, before: &Before<'_>, plan: &mut MediaPlan<'_>) -> Result<(), Failure> {
    let (mut service, mut lockstep) = (ServiceState::InService, false);
    let mut root = before.root;
    for parameter in state.parameters() {
        match parameter? {
            TerminationStateParameter::Service(new) => service = new,
            TerminationStateParameter::LockStep(on) => lockstep = on,
            TerminationStateParameter::Property(property) => read_root(&property, before.termination, &mut root)?,
        }
    }
    if before.termination == Termination::Root {
        if lockstep {
            return Err(LOCKSTEP);
        }
        plan.root = Some(root);
    } else {
        plan.state = Some((service, lockstep));
    }
    Ok(())
}

const LOCKSTEP: Failure = Failure { code: 501, text: "LockStep is not supported on ROOT" };

/// A property of package `root`.
fn read_root(property: &Property<'_>, termination: Termination, root: &mut RootTimes) -> Result<(), Failure> {
    if termination != Termination::Root || !property.name.package.eq_ignore_ascii_case(b"root") {
        return Err(PACKAGE_UNKNOWN);
    }
    let is = |name: &str| property.name.item.eq_ignore_ascii_case(name.as_bytes());
    let place = match () {
        () if is("maxNumberOfContexts") || is("maxTerminationsPerContext") => return Err(READ_ONLY),
        () if is("normalMGExecutionTime") => &mut root.execution,
        () if is("normalMGCExecutionTime") => &mut root.controller_execution,
        () if is("MGProvisionalResponseTimerValue") => &mut root.provisional,
        () if is("MGCProvisionalResponseTimerValue") => &mut root.controller_provisional,
        () => return Err(NO_SUCH_PROPERTY),
    };
    let value = property.value.one().and_then(|value| value.integer()).filter(|ms| (0..=600_000).contains(ms)).ok_or(PROPERTY_VALUE)?;
    *place = value as u32;
    Ok(())
}

/// Chooses of the alternatives in Local and Remote (PAR-01, LC-04 to LC-06).
fn choose<'a>(plan: &mut MediaPlan<'a>, before: &Before<'_>, local: Option<Octets<'a>>, remote: Option<Octets<'a>>) -> Result<(), Failure> {
    let (reserve_value, reserve_group) = plan.control.map_or(before.row.reserve, |control| control.reserve);
    if let Some(octets) = remote {
        plan.remote = Side::Freed;
        let had = before.connection.filter(|_| before.row.has_local && local.is_none()).map(|connection| connection.local.encodings);
        let usable = had.unwrap_or(*before.internal);
        let (mut fitting, mut mismatch) = (None, false);
        let mut given = 0;
        for text in octets.descriptions() {
            let offer = Offer::read(text)?;
            given += 1;
            let (Some(address), Some(port)) = (offer.address, offer.port) else { return Err(REMOTE_OPEN) };
            // In Remote nothing is left open, the key neither.
            let line = offer.line.filter(|line| offer.protected == Some(true) && crypto::read(line).is_some());
            let is_protected = offer.protected == Some(true);
            let fits = match before.srtp {
                Srtp::Off => !is_protected,
                Srtp::Accept => line.is_some() == is_protected,
                Srtp::Require => line.is_some(),
            };
            mismatch |= !fits;
            if fitting.is_none() && fits && !offer.common(&usable).is_empty() {
                fitting = Some((offer, ChosenRemote { remote: Remote::Rtp(address, port), text, line, surplus: false }));
            }
        }
        match fitting {
            Some((offer, mut chosen)) => {
                let known = offer.encodings.iter().count();
                chosen.surplus = given > 1 || usize::from(offer.formats) > known.max(1);
                plan.remote = Side::Chosen(chosen);
                plan.protection = match chosen.line.and_then(crypto::read) {
                    Some(line) => Protection::Agreed(line.tag, line.suite),
                    None => Protection::None,
                };
                choose_local(plan, before, local, Some(&offer), (reserve_value, reserve_group))?;
                return Ok(());
            }
            None if mismatch => return Err(PROTECTION),
            None if given > 0 && !reserve_value && !reserve_group => return Err(NO_RESOURCES),
            None => {}
        }
    }
    if remote.is_some() || !has_remote(before) {
        // There is no far end: what is protected is offered.
        let offers = before.srtp == Srtp::Require || remote.is_some() && is_protected(before);
        plan.protection = if offers { Protection::Offered(None) } else { Protection::Kept };
    }
    choose_local(plan, before, local, None, (reserve_value, reserve_group))
}

/// What is done without a Media descriptor: what is new is protected all the same where that is required.
pub fn unasked<'a>(before: &Before<'_>) -> MediaPlan<'a> {
    let offers = before.srtp == Srtp::Require && before.connection.is_some() && !has_remote(before);
    MediaPlan { protection: if offers { Protection::Offered(None) } else { Protection::Kept }, ..MediaPlan::default() }
}

/// Whether the far end of the connection is known.
fn has_remote(before: &Before<'_>) -> bool {
    before.connection.is_some_and(|connection| connection.remote != Remote::Unknown)
}

/// Whether the connection is protected now.
fn is_protected(before: &Before<'_>) -> bool {
    before.connection.is_some_and(|connection| connection.local.protected)
}

/// Takes what a chosen alternative of Local says of protection.
fn protect<'a>(plan: &mut MediaPlan<'a>, before: &Before<'_>, offer: &Offer<'a>) {
    let has_remote = match plan.remote {
        Side::Chosen(_) => true,
        Side::Freed => false,
        Side::Absent => has_remote(before),
    };
    plan.local_line = offer.line.filter(|_| offer.protected == Some(true));
    if !has_remote {
        plan.protection = match offer.protected {
            Some(true) => Protection::Offered(plan.local_line.and_then(crypto::read_open).map(|line| (line.tag, line.suite))),
            Some(false) => Protection::None,
            None => plan.protection,
        };
    }
}

/// Whether what an alternative of Local says of protection can be had: as the far end has it, or as the card does.
fn can_protect(plan: &MediaPlan<'_>, before: &Before<'_>, offer: &Offer<'_>) -> bool {
    let wanted = match (plan.protection, before.connection) {
        (Protection::Agreed(..), _) => Some(true),
        (Protection::None, _) => Some(false),
        (Protection::Kept, Some(connection)) if connection.remote != Remote::Unknown => Some(connection.local.protected),
        _ => match before.srtp {
            Srtp::Off => Some(false),
            Srtp::Accept => None,
            Srtp::Require => Some(true),
        },
    };
    offer.protected.is_none() || wanted.is_none() || offer.protected == wanted
}

const PROTECTION: Failure = Failure { code: 515, text: "protection of media (RTP/AVP, RTP/SAVP, a=crypto) is not possible as given" };

const REMOTE_OPEN: Failure = Failure { code: 441, text: "Remote has no address or no port" };

fn choose_local<'a>(
    plan: &mut MediaPlan<'a>,
    before: &Before<'_>,
    local: Option<Octets<'a>>,
    remote: Option<&Offer<'_>>,
    (reserve_value, reserve_group): (bool, bool),
) -> Result<(), Failure> {
    let Some(octets) = local else {
        if let (Some(remote), false, Some(connection)) = (remote, before.row.has_local, before.connection) {
            // Local was never given: what is received is what can be sent.
            let encodings = one_or_all(&remote.common(before.internal), reserve_value);
            let period_ms = period(&encodings, remote.period_ms, connection.local.period_ms);
            plan.local = Side::Chosen(ChosenLocal { encodings, period_ms });
        }
        return Ok(());
    };
    (plan.local, plan.local_given) = (Side::Freed, true);
    let mut all = Encodings::default();
    let mut period_ms = None;
    let (mut given, mut mismatch) = (0, false);
    for text in octets.descriptions() {
        let offer = Offer::read(text)?;
        given += 1;
        if !can_protect(plan, before, &offer) {
            mismatch = true;
            continue;
        }
        let mut list = offer.common(before.internal);
        if let Some(remote) = remote.filter(|_| !reserve_value) {
            let both: Encodings = list.iter().filter(|e| remote.common(&list).contains(*e)).collect();
            list = both;
        }
        if list.is_empty() || (!all.is_empty() && !reserve_group) {
            continue;
        }
        if all.is_empty() {
            protect(plan, before, &offer);
        }
        period_ms = period_ms.or(offer.period_ms);
        one_or_all(&list, reserve_value).iter().for_each(|encoding| all.push(encoding));
    }
    if given == 0 {
        return Ok(());
    }
    if all.is_empty() && mismatch {
        return Err(PROTECTION);
    }
    if all.is_empty() && !reserve_value && !reserve_group {
        return Err(NO_RESOURCES);
    }
    let period_ms = period(&all, period_ms.or(remote.and_then(|remote| remote.period_ms)), 20);
    plan.local = Side::Chosen(ChosenLocal { encodings: all, period_ms });
    Ok(())
}

/// One is picked unless resources for all are to be reserved.
fn one_or_all(list: &Encodings, all: bool) -> Encodings {
    list.iter().take(if all { Encodings::MAX } else { 1 }).collect()
}

fn period(encodings: &Encodings, wanted: Option<u16>, otherwise: u16) -> u16 {
    let closest = |encoding: Encoding| encoding.closest_period(wanted.unwrap_or(encoding.facts().default_ms));
    encodings.first().map_or(otherwise, closest)
}

/// What a connection does in this mode.
pub fn mode(mode: StreamMode) -> Mode {
    match mode {
        StreamMode::SendOnly => Mode::SendOnly,
        StreamMode::ReceiveOnly => Mode::RecvOnly,
        StreamMode::SendReceive => Mode::SendRecv,
        StreamMode::Inactive => Mode::Inactive,
        StreamMode::Loopback => Mode::Loopback,
    }
}

/// A fault of the codec that concerns the action, not the command.
pub fn concerns_action(fault: Fault) -> bool {
    fault.code() == 422 || matches!(fault, Fault::Command | Fault::TerminationId | Fault::CommandOpen)
}
