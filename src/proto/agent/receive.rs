//! What is the same in every agent when a response comes.

use std::net::SocketAddr;

use super::answers::Answers;
use super::check::Failure;
use super::confirm::Confirmations;
use super::transactions::{Matched, Transactions};
use super::{Observer, Tally};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::Response;

/// The parts of an agent that a response concerns.
pub(super) struct Parts<'a> {
    pub transactions: &'a mut Transactions,
    pub confirmations: &'a mut Confirmations,
    pub answers: &'a mut Answers,
    pub tally: &'a mut Tally,
}

impl Parts<'_> {
    /// Matches the response `code` to `id` that came as `message`, counts it, and acknowledges it when it asks for that; what it says, and to
    /// what. `None`: it is unreadable, or an acknowledgement, which no final response of an agent asks for.
    pub fn response<'m>(
        self,
        now: Time,
        (code, id): (u16, u32),
        message: &'m [u8],
        from: SocketAddr,
        observer: &mut impl Observer,
    ) -> Option<(Response<'m>, Matched)> {
        let Ok(response) = Response::parse(message) else {
            self.tally.unreadable += 1;
            observer.failed(Failure::Unreadable, message);
            return None;
        };
        if code < 100 {
            self.tally.stray += 1;
            return None;
        }
        if code >= 200 && response.asks_confirmation() {
            self.answers.acknowledge(from, id);
            self.tally.acknowledged += 1;
        }
        let matched = self.transactions.handle_response(now, code, id, message);
        match &matched {
            Matched::Provisional(_) => self.tally.provisional += 1,
            Matched::Final(ended) => {
                self.confirmations.add(now, id);
                observer.ended(now, ended, Some(code));
            }
            Matched::Repeat => self.tally.responses_repeated += 1,
            Matched::RepeatDiffers => observer.failed(Failure::RepeatDiffers, message),
            Matched::Stray => self.tally.stray += 1,
        }
        Some((response, matched))
    }
}
