//! What the agent answers: commands of the gateway (RSIP, NTFY, DLCX) and finals that ask for an acknowledgement (`K:`, RFC 3435 3.5.6).
//!
//! A response is a function of verb and identifier, so a repeat gets identical bytes; the table of seen identifiers only tells
//! whether a command is new. All answers to one datagram go back in one datagram, in order.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::text::Text;
use crate::proto::base::{Time, TransactionId};
use crate::proto::codec::mgcp::Verb;
use crate::proto::codec::peek::MESSAGES_MAX;

/// Identifiers remembered.
const SEEN: usize = 4096;
/// Answer datagrams waiting to be sent; when there are more, they are dropped and the gateway repeats.
const QUEUE_MAX: usize = 256;
/// The longest answer of one message with its separator: `200 999999999 Unsupported verb`.
const ANSWER_MAX: usize = 40;

#[derive(Clone, Copy)]
struct Seen {
    id: TransactionId,
    at: Time,
    from: IpAddr,
}

struct Datagram {
    to: SocketAddr,
    length: usize,
    bytes: [u8; MESSAGES_MAX * ANSWER_MAX],
}

/// Commands seen, and answers to be sent.
pub struct Answers {
    seen: Box<[Option<Seen>]>,
    /// All datagrams there are; what moves is their place.
    datagrams: Box<[Datagram]>,
    queue: VecDeque<usize>,
    free: Vec<usize>,
    open: Option<usize>,
    dropped: u64,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers::new()
    }
}

impl Answers {
    /// Nothing seen, nothing to send.
    pub fn new() -> Answers {
        let empty = || Datagram { to: ([0, 0, 0, 0], 0).into(), length: 0, bytes: [0; MESSAGES_MAX * ANSWER_MAX] };
        Answers {
            seen: vec![None; SEEN].into(),
            datagrams: (0..QUEUE_MAX).map(|_| empty()).collect(),
            queue: VecDeque::with_capacity(QUEUE_MAX),
            free: (0..QUEUE_MAX).collect(),
            open: None,
            dropped: 0,
        }
    }

    /// Answers the command `verb` with `id` and says whether it is new.
    pub fn command(&mut self, now: Time, history: Duration, from: SocketAddr, verb: Option<Verb>, id: TransactionId) -> bool {
        let (code, comment): (_, &[u8]) = match verb {
            Some(Verb::Rsip | Verb::Ntfy) => (200, b" OK"),
            Some(Verb::Dlcx) => (250, b" OK"),
            _ => (504, b" Unsupported verb"),
        };
        self.write(from, code, id, comment);
        self.note(now, history, from, id)
    }

    /// Whether this command was not seen yet.
    pub fn is_new(&self, now: Time, history: Duration, from: SocketAddr, id: TransactionId) -> bool {
        let seen = self.seen.get(id as usize % SEEN).copied().flatten();
        !seen.is_some_and(|s| s.id == id && s.from == from.ip() && now.since(s.at) < history)
    }

    /// Notes a command that is answered elsewhere; whether it is new.
    pub fn note(&mut self, now: Time, history: Duration, from: SocketAddr, id: TransactionId) -> bool {
        let new = self.is_new(now, history, from, id);
        if new && let Some(seen) = self.seen.get_mut(id as usize % SEEN) {
            *seen = Some(Seen { id, at: now, from: from.ip() });
        }
        new
    }

    /// Acknowledges the final response of `id`, which carried `K:`.
    pub fn acknowledge(&mut self, from: SocketAddr, id: TransactionId) {
        self.write(from, 0, id, b"");
    }

    /// The datagram being answered ends here: its answers may be sent.
    pub fn close(&mut self) {
        self.queue.extend(self.open.take());
    }

    /// Whether answers wait to be sent.
    pub fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Answers not sent for want of room; the gateway repeats.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends what waits.
    pub fn poll(&mut self, out: &mut impl FnMut(SocketAddr, &[u8])) {
        while let Some(place) = self.queue.pop_front() {
            if let Some(datagram) = self.datagrams.get_mut(place) {
                out(datagram.to, datagram.bytes.get(..datagram.length).unwrap_or_default());
                datagram.length = 0;
            }
            self.free.push(place);
        }
    }

    fn write(&mut self, to: SocketAddr, code: u32, id: TransactionId, comment: &[u8]) {
        if self.open.is_none() {
            self.open = self.free.pop();
        }
        let Some(datagram) = self.open.and_then(|place| self.datagrams.get_mut(place)) else {
            self.dropped += 1;
            return;
        };
        datagram.to = to;
        let mut text = Text::new(datagram.bytes.get_mut(datagram.length..).unwrap_or_default());
        if datagram.length > 0 {
            text.push(b".\r\n");
        }
        let code = [100, 10, 1].map(|unit| b'0' + (code / unit % 10) as u8);
        text.push(&code);
        text.push(b" ");
        text.number(id);
        text.push(comment);
        text.push(b"\r\n");
        datagram.length += text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(answers: &mut Answers) -> Vec<(u16, String)> {
        let mut all = Vec::new();
        answers.poll(&mut |to, bytes| all.push((to.port(), String::from_utf8(bytes.to_vec()).unwrap())));
        all
    }

    #[test]
    fn repeats_get_identical_answers_and_are_not_new() {
        let mut answers = Answers::new();
        let history = Duration::from_secs(30);
        let from = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert!(answers.command(Time::ZERO, history, from(1), Some(Verb::Rsip), 5));
        answers.close();
        assert!(!answers.command(Time::from_millis(29_999), history, from(2), Some(Verb::Rsip), 5));
        answers.close();
        assert_eq!(sent(&mut answers), [(1, "200 5 OK\r\n".to_string()), (2, "200 5 OK\r\n".to_string())]);
        assert!(answers.command(Time::from_millis(30_000), history, from(2), Some(Verb::Rsip), 5));
    }

    #[test]
    fn one_datagram_is_answered_by_one() {
        // G-PIG-02
        let mut answers = Answers::new();
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        let history = Duration::from_secs(30);
        answers.command(Time::ZERO, history, from, Some(Verb::Dlcx), 7);
        answers.command(Time::ZERO, history, from, None, 999_999_999);
        answers.acknowledge(from, 3);
        assert!(!answers.is_pending());
        answers.close();
        assert!(answers.is_pending());
        assert_eq!(sent(&mut answers), [(9, "250 7 OK\r\n.\r\n504 999999999 Unsupported verb\r\n.\r\n000 3\r\n".to_string())]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut answers = Answers::new();
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        for id in 0..QUEUE_MAX as u32 + 3 {
            answers.acknowledge(from, id);
            answers.close();
        }
        assert_eq!((sent(&mut answers).len(), answers.dropped()), (QUEUE_MAX, 3));
        answers.acknowledge(from, 1);
        answers.close();
        assert_eq!(sent(&mut answers).len(), 1);
    }
}
