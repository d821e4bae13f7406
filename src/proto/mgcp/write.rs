//! What the gateway writes: responses, and its own RestartInProgress and DeleteConnection (RFC 3435 3.2, 3.3; table M-2).

use super::{Calls, Created, Outcome, Refused, audit_connection, audit_endpoint};
use crate::proto::aggregate::Pattern;
use crate::proto::base::{EndpointIndex, Time, TransactionId};
use crate::proto::codec::mgcp::{Code, Command, ConnectionParameters, Verb, Writer};
use crate::proto::codec::sdp;
use crate::proto::endpoint::{Connection, Encoding, Encodings, LocalMedia, RestartMethod, TELEPHONE_EVENTS};
use crate::proto::package::{ChannelKind, packages};
use crate::proto::plan::{Manners, Plan};
use crate::proto::trunk::{MediaReport, TelephoneEvents};
use std::net::IpAddr;

/// Room for the local name of one endpoint.
const NAME: usize = 64;

/// The final response for `outcome`. `asks_ack`: a provisional response went before it, so it carries an empty `K:` (G-ACK-06).
/// `endpoint`: the one the command was for, when it was for one.
pub fn write_outcome(
    calls: &Calls,
    writer: &mut Writer<'_>,
    id: TransactionId,
    outcome: &Outcome,
    asks_ack: bool,
    endpoint: Option<EndpointIndex>,
) {
    match outcome {
        Outcome::Refused(refused) => {
            // Of the packages there are only BA has codes of its own (PKG-12).
            let package = (800..900).contains(&refused.code).then_some(&b"BA"[..]);
            writer.response(refused.code, id, package, refused.text);
            acknowledgement(writer, asks_ack);
            if refused.code == super::PACKAGE_UNKNOWN.code {
                package_list(writer, endpoint.map_or(ChannelKind::default(), |endpoint| calls.channel_kind(endpoint)));
            }
        }
        Outcome::Done => {
            writer.response(200, id, None, "OK");
            acknowledgement(writer, asks_ack);
        }
        Outcome::Deleted(report) => {
            writer.response(250, id, None, "OK");
            acknowledgement(writer, asks_ack);
            if let Some(report) = report {
                writer.parameter_counters(&counters(report));
            }
        }
        Outcome::Created { created, chosen, second } => {
            writer.response(200, id, None, "OK");
            acknowledgement(writer, asks_ack);
            writer.parameter_hex_id(Code::I, created.connection.hex());
            if let Some(domain) = *chosen {
                endpoint_at(calls, writer, Code::Z, created.endpoint, domain);
            }
            if let Some((other, connection, chosen)) = second {
                writer.parameter_hex_id(Code::I2, connection.hex());
                if let Some(domain) = *chosen {
                    endpoint_at(calls, writer, Code::Z2, *other, domain);
                }
            }
            local_description(calls, writer, created, second.is_some() || is_inside(calls, created));
        }
        Outcome::Modified(changed) => {
            writer.response(200, id, None, "OK");
            acknowledgement(writer, asks_ack);
            if let Some(created) = changed {
                local_description(calls, writer, created, is_inside(calls, created));
            }
        }
    }
}

/// `PL:`: the packages of a channel with their versions, its default package first (RFC 3435 3.2.2.13).
pub(super) fn package_list(writer: &mut Writer<'_>, kind: ChannelKind) {
    writer.begin(Code::PL);
    for (n, package) in packages(kind).iter().map(|id| id.package()).enumerate() {
        writer.text(if n == 0 { "" } else { "," });
        writer.text(package.name);
        writer.byte(b':');
        writer.number(package.version.into());
    }
    writer.end_line();
}

/// The empty `K:` of a final response behind a provisional one (G-ACK-06).
pub fn acknowledgement(writer: &mut Writer<'_>, asked: bool) {
    if asked {
        writer.parameter(Code::K, b"");
    }
}

/// The response to an audit of one endpoint or connection, which was checked.
pub fn write_audit(calls: &Calls, now: Time, writer: &mut Writer<'_>, command: &Command<'_>, endpoint: EndpointIndex) {
    match command.verb {
        Verb::Aucx => audit_connection::write(calls, now, writer, command, endpoint),
        _ => audit_endpoint::write(calls, now, writer, command, endpoint),
    }
}

/// A refusal by itself, into `buffer`: its length, 0 when it does not fit.
pub fn write_refusal(buffer: &mut [u8], id: TransactionId, refused: Refused) -> usize {
    let mut writer = Writer::new(buffer);
    writer.response(refused.code, id, None, refused.text);
    writer.finish().unwrap_or(0)
}

/// `100`, or `101` when the command waits behind many others, into `buffer`.
pub fn write_provisional(buffer: &mut [u8], id: TransactionId, queued: bool) -> usize {
    let mut writer = Writer::new(buffer);
    let (code, text) = if queued { (101, "queued") } else { (100, "in progress") };
    writer.response(code, id, None, text);
    writer.finish().unwrap_or(0)
}

/// `000`, into `buffer`.
pub fn write_acknowledgement(buffer: &mut [u8], id: TransactionId) -> usize {
    let mut writer = Writer::new(buffer);
    writer.response(0, id, None, "");
    writer.finish().unwrap_or(0)
}

/// What a RestartInProgress says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart {
    /// Of which endpoints.
    pub pattern: Pattern,
    /// What happens.
    pub method: RestartMethod,
    /// In how many seconds; not written when 0 (G-RSI-02).
    pub delay_s: u32,
    /// Why, 900..=905; not written when 0.
    pub reason: u16,
}

/// A RestartInProgress, into `buffer`.
pub fn write_restart(plan: &Plan, buffer: &mut [u8], id: TransactionId, restart: &Restart, manners: Manners) -> Option<usize> {
    let mut name = [0; crate::proto::aggregate::PATTERN_NAME_MAX];
    let length = restart.pattern.write_name(&plan.topology, &mut name);
    let mut writer = Writer::new(buffer);
    writer.command_of(Verb::Rsip, id, (name.get(..length)?, plan.domain(0)), manners.profile());
    writer.parameter(Code::RM, restart.method.keyword().as_bytes());
    if restart.delay_s > 0 {
        writer.parameter_number(Code::RD, u64::from(restart.delay_s.min(999_999)));
    }
    if restart.reason != 0 {
        writer.parameter_reason(restart.reason, None, reason_text(restart.reason));
    }
    writer.finish()
}

/// The gateway's own DeleteConnection (G-DLX-06), into `buffer`.
pub fn write_gateway_delete(
    plan: &Plan,
    domain: u8,
    buffer: &mut [u8],
    id: TransactionId,
    connection: &Connection,
    (report, reason): (&MediaReport, u16),
    manners: Manners,
) -> Option<usize> {
    let mut name = [0; NAME];
    let length = plan.topology.write_name(connection.endpoint, &mut name);
    let mut writer = Writer::new(buffer);
    writer.command_of(Verb::Dlcx, id, (name.get(..length)?, plan.domain(domain)), manners.profile());
    writer.parameter_hex_id(Code::C, connection.call);
    writer.parameter_hex_id(Code::I, connection.id.hex());
    writer.parameter_reason(reason, None, reason_text(reason));
    writer.parameter_counters(&counters(report));
    writer.finish()
}

/// A command that was written before, under another transaction id, into `buffer`.
pub fn write_under(command: &[u8], id: TransactionId, buffer: &mut [u8]) -> Option<usize> {
    let mut words = command.splitn(3, |&byte| byte == b' ');
    let (verb, _, rest) = (words.next()?, words.next()?, words.next()?);
    let mut writer = Writer::new(buffer);
    writer.bytes(verb);
    writer.byte(b' ');
    writer.number(u64::from(id));
    writer.byte(b' ');
    writer.bytes(rest);
    writer.finish()
}

/// The words for a reason code (RFC 3435 2.5, table C-2).
pub const fn reason_text(code: u16) -> &'static str {
    match code {
        900 => "Endpoint malfunctioning",
        901 => "Endpoint taken out-of-service",
        902 => "Loss of lower layer connectivity",
        903 => "QoS resource reservation was lost",
        904 => "Manual intervention",
        905 => "Facility failure",
        _ => "",
    }
}

/// An endpoint's full name as the value of `code`, with this of the gateway's domain names; the endpoint may be another core's.
pub(super) fn endpoint_at(calls: &Calls, writer: &mut Writer<'_>, code: Code, endpoint: EndpointIndex, domain: u8) {
    let mut name = [0; NAME];
    let length = calls.plan.topology.write_name(endpoint, &mut name);
    writer.parameter_endpoint(code, name.get(..length).unwrap_or_default(), calls.plan.domain(domain));
}

fn is_inside(calls: &Calls, created: &Created) -> bool {
    calls.endpoints.find(created.endpoint, created.connection).is_some_and(|(_, connection)| connection.is_inside())
}

/// The session description of our half. `inside`: the other half is an endpoint of this gateway (G-SDP-05).
pub(super) fn local_description(calls: &Calls, writer: &mut Writer<'_>, created: &Created, inside: bool) {
    let Created { endpoint, connection, local } = created;
    let mut name = [0; NAME];
    let length = if inside { calls.plan.topology.write_name(*endpoint, &mut name) } else { 0 };
    let mut payloads = [payload(None); Encodings::MAX + 1];
    let mut count = 0;
    for (place, encoding) in payloads.iter_mut().zip(local.encodings.iter()) {
        *place = payload(Some(encoding));
        count += 1;
    }
    if let Some(place) = payloads.get_mut(count).filter(|_| local.events.is_some()) {
        *place = events(local.events);
        count += 1;
    }
    let address = match (inside, local.address) {
        (true, _) => sdp::Address::Local(name.get(..length).unwrap_or_default()),
        (false, IpAddr::V4(address)) => sdp::Address::Ip4(address),
        (false, IpAddr::V6(address)) => sdp::Address::Ip6(address),
    };
    let LocalMedia { port, period_ms, version, .. } = *local;
    let secrets = &calls.endpoints.secrets;
    let crypto = local.protected.then(|| match calls.endpoints.find(*endpoint, *connection) {
        Some((slot, _)) => secrets.get(slot).and_then(|keys| keys.local.as_ref()),
        None => secrets.of_other(*endpoint, *connection),
    });
    let description = sdp::Description {
        session_id: u64::from(connection.0),
        version: u64::from(version),
        address,
        port,
        payloads: payloads.get(..count).unwrap_or_default(),
        ptime_ms: Some(period_ms),
        connection: Some(connection.hex()),
        crypto: crypto.flatten(),
    };
    match calls.manners.full_descriptions {
        true => sdp::write(writer, &description),
        false => sdp::write_short(writer, &description),
    }
}

/// Telephone events, and which are understood: those of [`TelephoneEvents::list`].
fn events(events: TelephoneEvents) -> sdp::Payload<'static> {
    macro_rules! attributes {
        ($list:literal) => {
            concat!("a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 ", $list, "\r\n")
        };
    }
    let attributes = match events {
        TelephoneEvents::None => "",
        TelephoneEvents::Keys => attributes!("0-15"),
        TelephoneEvents::CheckTone => attributes!("0-15,121"),
        TelephoneEvents::CheckTones => attributes!("0-15,121,122"),
        TelephoneEvents::OldCheckTone => attributes!("0-15,167"),
    };
    sdp::Payload { payload_type: TELEPHONE_EVENTS, attributes }
}

const _: () = assert!(TELEPHONE_EVENTS == 101);

fn payload(encoding: Option<Encoding>) -> sdp::Payload<'static> {
    match encoding {
        Some(encoding) => sdp::Payload { payload_type: encoding.payload_type(), attributes: encoding.facts().attributes },
        None => sdp::Payload { payload_type: 0, attributes: "" },
    }
}

/// What a card counted, as `P:` says it.
pub(super) fn counters(report: &MediaReport) -> ConnectionParameters {
    ConnectionParameters {
        packets_sent: Some(report.packets_sent),
        octets_sent: Some(report.octets_sent),
        packets_received: Some(report.packets_received),
        octets_received: Some(report.octets_received),
        packets_lost: Some(report.packets_lost),
        jitter_ms: Some(report.jitter_ms),
        latency_ms: Some(report.latency_ms),
    }
}
