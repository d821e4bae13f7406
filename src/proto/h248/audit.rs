//! AuditValue and AuditCapability, and the descriptors of every reply that tells how a termination is (RFC 3525 7.2.5, 7.2.6).

use super::Gateway;
use super::error::*;
use super::event::{PACKAGES, packages, write_capability};
use super::table::{Row, TERMINATIONS_PER_CONTEXT, Termination};
use crate::proto::base::Time;
use crate::proto::codec::h248::{Audit, Command, Descriptor, PackagedName, ParameterValue, ServiceState, Token, Value, Verb, Writer};
use crate::proto::trunk::MediaReport;

/// Pieces of a reply that are compared, so that none comes twice.
const PIECES: usize = 32;

fn audited(command: &Command<'_>) -> Audit {
    let mut found = command.descriptors().filter_map(|descriptor| match descriptor {
        Ok((_, Descriptor::Audit(audit))) => Some(audit),
        _ => None,
    });
    found.next().unwrap_or_default()
}

impl Gateway {
    /// An audit of one termination.
    pub(super) fn audit(&mut self, now: Time, command: &Command<'_>, target: Termination, w: &mut Writer<'_>) -> Result<(), Failure> {
        let audit = audited(command);
        let capability = command.verb == Verb::AuditCapability;
        if capability && (audit.has(Token::Packages) || audit.has(Token::DigitMap)) {
            return Err(DESCRIPTOR_ILLEGAL);
        }
        self.write_name(w, command.verb, target);
        self.write_audit(now, w, target, audit, capability);
        w.end();
        Ok(())
    }

    /// The items of an audit.
    pub(super) fn write_items(&mut self, now: Time, w: &mut Writer<'_>, target: Termination, audit: Audit) {
        self.write_audit(now, w, target, audit, false);
    }

    fn write_audit(&mut self, now: Time, w: &mut Writer<'_>, target: Termination, audit: Audit, capability: bool) {
        for item in audit.iter() {
            self.write_item(now, w, target, item, capability);
        }
    }

    /// What all of them would have said, each thing once (TRM-06).
    pub(super) fn write_union(&mut self, now: Time, command: &Command<'_>, matches: &[Termination], w: &mut Writer<'_>) {
        let audit = audited(command);
        let capability = command.verb == Verb::AuditCapability;
        let mut pieces = [0u64; PIECES];
        let mut count = 0;
        if audit.has(Token::Packages) && !capability {
            w.begin(Token::Packages);
            // The first of each kind stands for all of it.
            let of = |kind: fn(&&Termination) -> bool| matches.iter().find(kind);
            let kinds = [of(|target| matches!(target, Termination::Physical(_))), of(|target| matches!(target, Termination::Ephemeral(_)))];
            let has = |name: &str, target: &Option<&Termination>| {
                target.is_some_and(|target| packages(*target).any(|package| package.name == name))
            };
            for package in PACKAGES.iter().filter(|package| kinds.iter().any(|kind| has(package.name, kind))) {
                w.package(package.name.as_bytes(), package.version);
            }
            w.end();
        }
        for target in matches {
            for item in audit.iter().filter(|item| *item != Token::Packages) {
                let mark = w.mark();
                self.write_item(now, w, *target, item, capability);
                // The comma in front of it is no part of it.
                let text = w.since(mark);
                let piece = self.names.exact(text.strip_prefix(b",").or(text.strip_prefix(b"{")).unwrap_or(text));
                if pieces.iter().take(count).any(|known| *known == piece) {
                    w.rewind(mark);
                } else if let Some(place) = pieces.get_mut(count) {
                    *place = piece;
                    count += 1;
                }
            }
            if w.failed() {
                return;
            }
        }
    }

    fn write_item(&mut self, now: Time, w: &mut Writer<'_>, target: Termination, item: Token, capability: bool) {
        match item {
            Token::Media => self.write_media(w, target),
            Token::Packages => {
                w.begin(Token::Packages);
                packages(target).for_each(|package| w.package(package.name.as_bytes(), package.version));
                w.end();
            }
            Token::Statistics if target != Termination::Root => self.write_statistics(now, w, target, capability),
            Token::Events | Token::EventBuffer | Token::ObservedEvents | Token::Signals if capability => {
                if !write_capability(w, target, item) {
                    w.flag(item);
                }
            }
            Token::Events | Token::EventBuffer | Token::ObservedEvents | Token::Signals | Token::DigitMap => {
                let Some(mut shape) = self.events.shape.take() else { return };
                if !self.write_events_item(w, target, item, &mut shape) {
                    w.flag(item);
                }
                self.events.shape = Some(shape);
            }
            // Empty ones are their keyword alone (PAR-04).
            other => w.flag(other),
        }
    }

    fn write_media(&self, w: &mut Writer<'_>, target: Termination) {
        w.begin(Token::Media);
        match self.tables.row(target) {
            None => self.write_root(w),
            Some(row) => {
                w.begin(Token::TerminationState);
                w.token_item(Token::ServiceStates, self.service_state(target, row).token());
                w.token_item(Token::Buffer, if row.lockstep { Token::LockStep } else { Token::Off });
                w.end();
                w.begin_number(Token::Stream, row.stream.into());
                self.write_control(w, target, row);
                self.write_descriptions(w, target, row);
                w.end();
            }
        }
        w.end();
    }

    fn write_descriptions(&self, w: &mut Writer<'_>, target: Termination, row: &Row) {
        let Termination::Ephemeral(slot) = target else { return };
        let Some(connection) = self.calls.endpoints.connections.get(slot) else { return };
        if row.has_local {
            self.write_local(w, slot, connection);
        }
        if row.has_remote {
            self.write_remote(w, connection);
        }
    }

    /// What a termination is there for: the gateway's own state, and what the controller wants.
    fn service_state(&self, target: Termination, row: &Row) -> ServiceState {
        match target {
            Termination::Physical(endpoint) if row.service == ServiceState::InService && !self.is_in_service(endpoint) && !row.leaving => {
                ServiceState::OutOfService
            }
            _ => row.service,
        }
    }

    fn write_control(&self, w: &mut Writer<'_>, target: Termination, row: &Row) {
        let on = |on: bool| if on { Token::On } else { Token::Off };
        w.begin(Token::LocalControl);
        w.token_item(Token::Mode, row.mode.token());
        w.token_item(Token::ReservedValue, on(row.reserve.0));
        w.token_item(Token::ReservedGroup, on(row.reserve.1));
        let mut room = [0; 20];
        property(w, b"nt", b"jit", number(row.jitter_ms.into(), &mut room));
        if let Termination::Physical(_) = target {
            property(w, b"tdmc", b"ec", if row.echo_canceller { b"on" } else { b"off" });
            match row.gain {
                Some(db) => property(w, b"tdmc", b"gain", number(db.into(), &mut room)),
                None => property(w, b"tdmc", b"gain", b"0xffffffff"),
            }
        }
        w.end();
    }

    fn write_root(&self, w: &mut Writer<'_>) {
        w.begin(Token::TerminationState);
        let mut room = [0; 20];
        for (name, value) in [
            (&b"maxNumberOfContexts"[..], self.tables.contexts_max()),
            (b"maxTerminationsPerContext", TERMINATIONS_PER_CONTEXT as u32),
            (b"normalMGExecutionTime", self.root.execution),
            (b"normalMGCExecutionTime", self.root.controller_execution),
            (b"MGProvisionalResponseTimerValue", self.root.provisional),
            (b"MGCProvisionalResponseTimerValue", self.root.controller_provisional),
        ] {
            property(w, b"root", name, number(value.into(), &mut room));
        }
        w.end();
    }

    /// What is counted of a termination since it came into its context (STA-01, STA-02); names only for a capability (AC-01).
    fn write_statistics(&self, now: Time, w: &mut Writer<'_>, target: Termination, names_only: bool) {
        let Some(row) = self.tables.row(target) else { return };
        let ms = if row.context == super::table::NULL { 0 } else { now.since(row.since).as_millis() as u64 };
        let report = match target {
            Termination::Ephemeral(slot) => self.calls.card.report(now, slot),
            // A DS0 is an octet in each direction every 125 us.
            _ => MediaReport { octets_sent: (8 * ms) as u32, octets_received: (8 * ms) as u32, ..MediaReport::default() },
        };
        w.begin(Token::Statistics);
        let mut room = [0; 20];
        let mut write = |package: &[u8], item: &[u8], value: i64| {
            let text = number(value, &mut room);
            let value = (!names_only).then_some(Value { text, quoted: false });
            w.statistic(PackagedName { package, item }, value);
        };
        write(b"nt", b"dur", ms as i64);
        write(b"nt", b"os", report.octets_sent.into());
        write(b"nt", b"or", report.octets_received.into());
        if let Termination::Ephemeral(_) = target {
            // Percent with 32 binary digits behind the point (RFC 3525 E.12); times in timestamp units, eight in a millisecond.
            let lost = u64::from(report.packets_lost);
            let percent = ((100 * lost) << 32).checked_div(lost + u64::from(report.packets_received)).unwrap_or(0);
            write(b"rtp", b"ps", report.packets_sent.into());
            write(b"rtp", b"pr", report.packets_received.into());
            write(b"rtp", b"pl", percent as i64);
            write(b"rtp", b"jit", i64::from(report.jitter_ms) * 8);
            write(b"rtp", b"delay", i64::from(report.latency_ms) * 8);
        }
        w.end();
    }
}

fn property(w: &mut Writer<'_>, package: &[u8], item: &[u8], text: &[u8]) {
    w.property(PackagedName { package, item }, &ParameterValue::One(Value { text, quoted: false }));
}

fn number(value: i64, room: &mut [u8; 20]) -> &[u8] {
    use std::io::Write as _;
    let whole = room.len();
    let mut rest = &mut room[..];
    let _ = write!(rest, "{value}");
    let length = whole - rest.len();
    room.get(..length).unwrap_or_default()
}
