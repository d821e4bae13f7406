//! The requests a controller sends.

use super::{Channel, Purpose, Settings};
use crate::proto::base::TransactionId;
use crate::proto::codec::h248::{ContextId, MessageId, PackagedName, RequestId, StreamMode, Style, TerminationId, Token, Verb, Writer};

/// What is asked of the gateway for an RTP stream: anything it likes, of G.711.
const LOCAL: &[u8] = b"v=0\r\nc=IN IP4 $\r\nm=audio $ RTP/AVP 0\r\n";
/// The far end of all calls: an address for documentation (RFC 5737).
const REMOTE: &[u8] = b"v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 0\r\n";
/// The request identifier of ROOT's events.
pub(super) const ROOT_EVENTS: u32 = 1;

/// One request; `None` when it does not fit.
pub(super) fn request(
    settings: &Settings,
    id: TransactionId,
    purpose: Purpose,
    channel: Option<&Channel>,
    buffer: &mut [u8],
) -> Option<usize> {
    let mut w = Writer::new(buffer, Style::Compact);
    w.header(1, &MessageId::parse(settings.message_id.as_bytes())?);
    w.request(id);
    match purpose {
        Purpose::Probe | Purpose::Audit => {
            w.context(if purpose == Purpose::Probe { ContextId::Null } else { ContextId::All });
            w.command(Verb::AuditValue, TerminationId::Root);
            w.begin_list(Token::Audit);
            w.end();
        }
        Purpose::Clear => {
            w.context(ContextId::All);
            w.marked_command(Verb::Subtract, TerminationId::All, false, true);
            w.begin_list(Token::Audit);
            w.end();
        }
        Purpose::Events => {
            w.context(ContextId::Null);
            w.command(Verb::Modify, TerminationId::Root);
            w.events(Some(RequestId::Number(ROOT_EVENTS)));
            w.begin_name(PackagedName { package: b"ocp", item: b"mg_overload" });
            w.end();
            w.end();
        }
        Purpose::Add => {
            w.context(ContextId::Choose);
            w.command(Verb::Add, TerminationId::parse(channel?.name.as_bytes())?);
            w.begin(Token::Media);
            mode(&mut w, StreamMode::SendReceive);
            w.end();
            w.end();
            w.command(Verb::Add, TerminationId::parse(b"$")?);
            w.begin(Token::Media);
            mode(&mut w, StreamMode::ReceiveOnly);
            w.octets(Token::Local, LOCAL);
            w.end();
        }
        Purpose::Modify => {
            w.context(ContextId::Number(channel?.context));
            w.command(Verb::Modify, TerminationId::parse(channel?.rtp.as_bytes())?);
            w.begin(Token::Media);
            mode(&mut w, StreamMode::SendReceive);
            w.octets(Token::Remote, REMOTE);
            w.end();
        }
        Purpose::Subtract => {
            w.context(ContextId::Number(channel?.context));
            w.command(Verb::Subtract, TerminationId::All);
        }
    }
    (0..3).for_each(|_| w.end());
    w.finish()
}

fn mode(w: &mut Writer<'_>, mode: StreamMode) {
    w.begin(Token::LocalControl);
    w.token_item(Token::Mode, mode.token());
    w.end();
}
