//! The binary encoding of a gateway that is configured for it: octets become text in front of the machine, and text becomes octets behind it.

use super::error::{Failure, TOO_LARGE};
use super::{Gateway, Send};
use crate::proto::base::{Counter, Counters, Time};
use crate::proto::codec::h248::{Content, Fault, MESSAGE_MAX, Message, Refusal, Shape, Style, Transaction, Writer, binary};
use std::net::SocketAddr;

/// Memory for one message each way.
pub(super) struct Binary {
    /// The text of what came.
    text: Box<[u8]>,
    way: Way,
}

/// The way out.
struct Way {
    shape: Box<Shape>,
    octets: Box<[u8]>,
}

impl Binary {
    /// For messages whose text has so many bytes at most.
    pub fn new(max_message: u16) -> Binary {
        let octets = vec![0; 2 * usize::from(max_message)].into();
        Binary { text: vec![0; MESSAGE_MAX].into(), way: Way { shape: Box::default(), octets } }
    }

    /// Sends what the machine wrote. What has no place in the encoding, or is longer there than may be sent, is counted; in place of a reply
    /// stands error 533, so that nobody waits for it.
    /// [`GatewayPlan::max_message`](crate::proto::plan::GatewayPlan::max_message) leaves room for what tells of a change (`h248/room`).
    pub fn send(&mut self, counters: &Counters, to: SocketAddr, text: &[u8], send: Send<'_>) {
        self.way.send(counters, to, text, send);
    }
}

impl Way {
    fn send(&mut self, counters: &Counters, to: SocketAddr, text: &[u8], send: Send<'_>) {
        match binary::from_text(text, &mut self.shape, &mut self.octets) {
            Ok(length) => send(to, self.octets.get(..length).unwrap_or_default()),
            Err(_) => {
                counters.add(Counter::H248Unwritable);
                if let Some(length) = self.too_large(text) {
                    send(to, self.octets.get(..length).unwrap_or_default());
                }
            }
        }
    }

    /// The octets of error 533 for the transaction that `text` is the reply of.
    fn too_large(&mut self, text: &[u8]) -> Option<usize> {
        let mut short = [0; 320];
        let mut w = Writer::new(&mut short, Style::Compact);
        let message = Message::parse(text, &mut self.shape).ok()?;
        let Content::Transactions(mut transactions) = message.content().ok()? else { return None };
        let Some(Ok(Transaction::Reply(reply))) = transactions.next() else { return None };
        w.header(message.header.version, &message.header.from);
        w.reply(reply.id, reply.immediate_ack);
        w.error(TOO_LARGE.code, TOO_LARGE.text.as_bytes());
        w.end();
        let length = w.finish()?;
        binary::from_text(short.get(..length)?, &mut self.shape, &mut self.octets).ok()
    }
}

impl Gateway {
    /// A datagram of a controller, in octets. What is no message is answered by 400 when its header can be read.
    pub(super) fn handle_octets(&mut self, now: Time, source: (usize, SocketAddr), octets: &[u8], both: &mut Binary, send: Send<'_>) {
        let Binary { text, way } = both;
        let counters = self.counters.clone();
        let mut send = |to: SocketAddr, said: &[u8]| way.send(&counters, to, said, send);
        if let Some(text) = binary::to_text(octets, text).and_then(|length| text.get(..length)) {
            return self.handle_text(now, source, text, &mut send);
        }
        self.counters.add(Counter::H248Unreadable);
        if binary::header_to_text(octets, text).is_some() && self.association.may_speak() {
            self.send_error(source.1, Failure::from(Refusal::new(Fault::Body, 0)), &mut send);
        }
    }
}
