//! AuditEndpoint (RFC 3435 2.3.10).

use super::write::{endpoint_at as write_endpoint, package_list, reason_text};
use super::{Calls, domain_of, event};
use crate::proto::base::{EndpointIndex, Mode, Time};
use crate::proto::codec::mgcp::{Code, Command, InfoCode, Writer};
use crate::proto::endpoint::{Endpoint, EntityId, Law};
use crate::proto::package::packages;
use crate::proto::trunk::{Cursor, Selection};

/// The names of the endpoints of a wildcard name, one `Z:` each, in any service state (G-AUE-01), with the domain name of the command,
/// which is the latest one for all of them (G-EPN-05). A list that is too long overflows the writer and becomes 533 (G-AUE-02).
pub fn write_names(calls: &Calls, writer: &mut Writer<'_>, command: &Command<'_>, selection: &Selection) {
    writer.response(200, command.id, None, "OK");
    let domain = domain_of(&calls.plan, &command.endpoint).unwrap_or_default();
    let mut cursor = Cursor::default();
    while let Some(range) = selection.next(&calls.plan.topology, &mut cursor, u32::MAX) {
        // What H.248 has is nothing of MGCP's.
        for endpoint in range.iter().filter(|endpoint| calls.plan.gateway_of(*endpoint).is_none()) {
            write_endpoint(calls, writer, Code::Z, endpoint, domain);
            if writer.overflowed() {
                return;
            }
        }
    }
}

/// What `F:` asks for, in its order; what is not understood is left out (G-AUE-03..12).
pub fn write(calls: &Calls, now: Time, writer: &mut Writer<'_>, command: &Command<'_>, endpoint: EndpointIndex) {
    writer.response(200, command.id, None, "OK");
    let Some(state) = calls.endpoints.get(endpoint) else { return };
    for info in command.requested_info() {
        let InfoCode::Code(code) = info else { continue };
        match code {
            Code::R | Code::S | Code::T | Code::O | Code::ES | Code::D | Code::X | Code::Q | Code::BPr | Code::BNs => {
                event::write(calls, writer, endpoint, code);
            }
            Code::N => entity(calls, writer, endpoint),
            Code::I => connections(calls, writer, state),
            Code::B => {
                writer.begin(Code::B);
                writer.text(match state.law {
                    Law::A => "e:A",
                    Law::Mu => "e:mu",
                });
                writer.end_line();
            }
            Code::RM => writer.parameter(Code::RM, state.method().keyword().as_bytes()),
            Code::RD => writer.parameter_number(Code::RD, u64::from(state.delay(now))),
            Code::E => writer.parameter_reason(state.service.reason, None, reason_text(state.service.reason)),
            Code::PL => package_list(writer, calls.channel_kind(endpoint)),
            Code::MD => writer.parameter_number(Code::MD, calls.plan.limits.datagram.into()),
            Code::A => capabilities(calls, writer, endpoint),
            _ => {}
        }
    }
}

fn connections(calls: &Calls, writer: &mut Writer<'_>, state: &Endpoint) {
    let ids = || state.connection_slots().filter_map(|slot| calls.endpoints.connections.get(slot)).filter(|c| !c.pending).map(|c| c.id);
    if ids().next().is_none() {
        return writer.parameter(Code::I, b"");
    }
    writer.begin(Code::I);
    for (n, id) in ids().enumerate() {
        writer.text(if n == 0 { "" } else { ", " });
        writer.hex_id(id.hex());
    }
    writer.end_line();
}

/// `N:` of `endpoint`: what an agent set, the source of the latest command after it was cleared, or the provisioned one.
pub(super) fn entity(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex) {
    let Some(state) = calls.endpoints.get(endpoint) else { return };
    match (calls.endpoints.entities.get(state.entity), state.entity) {
        (Some((_, _, text)), _) => {
            writer.begin(Code::N);
            for piece in calls.endpoints.blobs.pieces(text) {
                writer.bytes(piece);
            }
            writer.end_line();
        }
        (None, EntityId::SOURCE) => writer.parameter(Code::N, b""),
        (None, _) => {
            let provisioned = calls.settings.agent(state.provisioned).map_or("", |agent| &agent.entity);
            writer.parameter(Code::N, provisioned.as_bytes());
        }
    }
}

/// `A:`, one line for each encoding, because the packetization period differs; e, s, gc and t are stated (G-AUE-13..15, O-16).
/// The packages stand for their options and modes (G-AUE-15).
fn capabilities(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex) {
    let kind = calls.channel_kind(endpoint);
    for encoding in calls.encodings(endpoint).iter() {
        let facts = encoding.facts();
        writer.begin(Code::A);
        writer.text("a:");
        writer.text(facts.name);
        writer.text(", p:");
        writer.number(encoding.closest_period(0).into());
        writer.byte(b'-');
        writer.number(encoding.closest_period(u16::MAX).into());
        writer.text(", e:on, gc:0, s:off, t:00, r:be, nt:IN;LOCAL, v:");
        for (n, package) in packages(kind).iter().enumerate() {
            writer.text(if n == 0 { "" } else { ";" });
            writer.text(package.package().name);
        }
        writer.text(", m:");
        for (n, mode) in Mode::ALL.into_iter().enumerate() {
            writer.text(if n == 0 { "" } else { ";" });
            writer.text(mode.keyword());
        }
        writer.end_line();
    }
}
