//! What the machine of our own commands says: what is due, what a response meant, and what is outstanding.

use super::OLDER;
use crate::proto::base::{AgentId, Time, TransactionId};
use std::net::SocketAddr;

/// Commands that stand in front of another one in its datagram, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Older<'a>(pub(super) [Option<&'a [u8]>; OLDER]);

impl<'a> Older<'a> {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.0.into_iter().rev().flatten()
    }
}

/// What [`super::Outgoing::poll`] wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due<'a> {
    /// Send `body` to `to`.
    Transmit {
        /// The command's id.
        id: TransactionId,
        /// Where to.
        to: SocketAddr,
        /// Whose address that is.
        agent: AgentId,
        /// The command, byte for byte the same each time.
        body: &'a [u8],
        /// What is repeated in front of it, because it must not arrive before them.
        older: Older<'a>,
        /// Whether this is not the first copy.
        repeat: bool,
    },
    /// The command got no final response: whoever it spoke for is disconnected (G-RTX-06, G-RTX-12). It is no longer known here.
    Unanswered {
        /// The command's id.
        id: TransactionId,
        /// Who was asked.
        agent: AgentId,
        /// The caller's word for it.
        user: u64,
    },
}

/// What a response means to us: its class, with unknown codes taken as RFC 3435 2.4 says (G-RSL-04).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// 2xx.
    Success,
    /// 521, and all of 3xx: another agent is in charge.
    Redirected,
    /// 4xx.
    Transient,
    /// 5xx to 9xx.
    Permanent,
}

/// What [`super::Outgoing::handle_response`] made of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The final response: the command has ended.
    Done(Done),
    /// A provisional response: go on waiting.
    Provisional {
        /// The caller's word for the command.
        user: u64,
    },
    /// No outstanding command has this id: ignore it.
    Stray {
        /// All the same answer `000`: it is the final of a command that has just ended, and our `000` was lost (G-ACK-07).
        acknowledge: bool,
    },
}

/// A command that got its final response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The command's id.
    pub id: TransactionId,
    /// Who it was sent to.
    pub agent: AgentId,
    /// The caller's word for it.
    pub user: u64,
    /// What the response means.
    pub outcome: Outcome,
    /// Its return code; codes we do not know are replaced by those of their class (G-RSL-04).
    pub code: u16,
    /// Where the last copy had been sent: the address to prefer from now on.
    pub address: SocketAddr,
    /// Whether `000` must be sent to the source of the response (G-ACK-07).
    pub acknowledge: bool,
}

/// One outstanding command, for operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// Its id.
    pub id: TransactionId,
    /// Who it is sent to.
    pub agent: AgentId,
    /// The caller's word for it.
    pub user: u64,
    /// The address it is at.
    pub to: SocketAddr,
    /// Copies sent.
    pub copies: u32,
    /// When the first one was sent.
    pub first_sent: Option<Time>,
    /// Whether a provisional response came.
    pub provisional: bool,
}

/// The class of a final response, and its code if we know it, else that of its class (G-RSL-04, Table C-1).
pub(super) fn classify(code: u16) -> (Outcome, u16) {
    match code {
        200 | 250 => (Outcome::Success, code),
        201..=299 => (Outcome::Success, 200),
        300..=399 | 521 => (Outcome::Redirected, 521),
        400..=407 | 409 | 410 => (Outcome::Transient, code),
        408 | 411..=499 => (Outcome::Transient, 400),
        500..=541 => (Outcome::Permanent, code),
        _ => (Outcome::Permanent, 510),
    }
}
