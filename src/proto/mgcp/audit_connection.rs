//! AuditConnection (RFC 3435 2.3.11).

use super::delete::find;
use super::options::EVENTS_NAME;
use super::write::{counters, local_description};
use super::{Calls, Created, Refused};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::codec::mgcp::{Code, Command, InfoCode, Writer};
use crate::proto::codec::sdp;
use crate::proto::endpoint::{Connection, Gain, Network, Options};
use crate::proto::trunk::TelephoneEvents;

/// Checks that the connection exists (G-AUC-01, G-AUC-06).
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex) -> Result<(), Refused> {
    find(calls, command, endpoint).map(|_| ())
}

/// The response: what `F:` asks for, descriptions last, local before remote (G-AUC-02..05).
pub fn write(calls: &Calls, now: Time, writer: &mut Writer<'_>, command: &Command<'_>, endpoint: EndpointIndex) {
    let Ok((slot, connection)) = find(calls, command, endpoint) else { return };
    writer.response(200, command.id, None, "OK");
    let (mut local, mut remote) = (false, false);
    for info in command.requested_info() {
        match info {
            InfoCode::Code(Code::C) => writer.parameter_hex_id(Code::C, connection.call),
            InfoCode::Code(Code::N) => super::audit_endpoint::entity(calls, writer, endpoint),
            InfoCode::Code(Code::L) => options(writer, &connection.options),
            InfoCode::Code(Code::M) => writer.parameter(Code::M, connection.mode.keyword().as_bytes()),
            InfoCode::Code(Code::P) => writer.parameter_counters(&counters(&calls.card.report(now, slot))),
            InfoCode::Code(Code::LC) => local = true,
            InfoCode::Code(Code::RC) => remote = true,
            _ => {}
        }
    }
    if local {
        let Connection { endpoint, id, local, .. } = *connection;
        let created = Created { endpoint, connection: id, local };
        local_description(calls, writer, &created, connection.is_inside());
    }
    if remote {
        if connection.remote_text.is_none() {
            sdp::write_absent(writer);
        } else {
            writer.begin_description();
            writer.description(calls.endpoints.blobs.pieces(connection.remote_text));
        }
    }
}

/// `L:` as it was given (G-AUC-03).
fn options(writer: &mut Writer<'_>, options: &Options) {
    if *options == Options::default() {
        return writer.parameter(Code::L, b"");
    }
    writer.begin(Code::L);
    let mut first = true;
    let mut next = |writer: &mut Writer<'_>, key: &str| {
        if !std::mem::take(&mut first) {
            writer.bytes(b", ");
        }
        writer.text(key);
        writer.byte(b':');
    };
    let range = |writer: &mut Writer<'_>, (low, high): (u16, u16)| {
        writer.number(u64::from(low));
        if high != low {
            writer.byte(b'-');
            writer.number(u64::from(high));
        }
    };
    if let Some(period) = options.period_ms {
        next(writer, "p");
        range(writer, period);
    }
    if let Some(encodings) = options.encodings {
        next(writer, "a");
        for (n, encoding) in encodings.iter().enumerate() {
            writer.text(if n == 0 { "" } else { ";" });
            writer.text(encoding.facts().name);
        }
        if options.telephone_events.is_some() {
            writer.text(if encodings.is_empty() { "" } else { ";" });
            writer.bytes(EVENTS_NAME);
        }
        if options.telephone_events > TelephoneEvents::Keys {
            next(writer, "fmtp");
            writer.byte(b'"');
            writer.bytes(EVENTS_NAME);
            writer.byte(b' ');
            writer.text(options.telephone_events.list());
            writer.byte(b'"');
        }
    }
    if let Some(bandwidth) = options.bandwidth_kbits {
        next(writer, "b");
        range(writer, bandwidth);
    }
    let on_off = |on| if on { "on" } else { "off" };
    if let Some(on) = options.echo_cancellation {
        next(writer, "e");
        writer.text(on_off(on));
    }
    match options.gain {
        None => {}
        Some(Gain::Auto) => {
            next(writer, "gc");
            writer.text("auto");
        }
        Some(Gain::Db(db)) => {
            next(writer, "gc");
            writer.text(if db < 0 { "-" } else { "" });
            writer.number(u64::from(db.unsigned_abs()));
        }
    }
    if let Some(on) = options.silence_suppression {
        next(writer, "s");
        writer.text(on_off(on));
    }
    if let Some(octet) = options.type_of_service {
        next(writer, "t");
        for nibble in [octet >> 4, octet & 15] {
            writer.byte(b"0123456789ABCDEF"[usize::from(nibble)]);
        }
    }
    if options.best_effort {
        next(writer, "r");
        writer.text("be");
    }
    if let Some(network) = options.network {
        next(writer, "nt");
        writer.text(match network {
            Network::Internet => "IN",
            Network::Local => "LOCAL",
        });
    }
    writer.end_line();
}
