//! What follows a Notify, and the commands by which the agent breaks a rule (RFC 3435 4.4.1, 4.4.4).

use std::net::SocketAddr;

use super::calls::Step;
use super::rules::Rule;
use super::text::Text;
use super::transactions::Request;
use super::{Agent, EXTRA_TOKENS, Phase};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::{Code, Command, Verb};

impl Agent {
    /// Two EndpointConfigurations at once in front of a call, where that rule is broken.
    pub(super) fn break_before(&mut self, now: Time, step: Step) {
        let Step::Create(index) = step else { return };
        if self.broken.has(Rule::OneConfiguration) {
            for law in [&b"B: e:mu\r\n"[..], b"B: e:A\r\n"] {
                let token = EXTRA_TOKENS + index;
                let (endpoint, parameters) = (self.calls.name(index), [law]);
                let request = Request { verb: Verb::Epcf, token, intended: Time::NEVER, endpoint, parameters: &parameters };
                self.tally.commands_extra += u64::from(self.transactions.start(now, &request, &mut self.confirmations));
            }
        }
    }

    /// The same ModifyConnection again, where that rule is broken.
    pub(super) fn break_behind(&mut self, now: Time, step: Step) {
        if let Step::Modify(_) = step
            && self.broken.has(Rule::OneCommand)
        {
            let Agent { calls, transactions, confirmations, tally, .. } = self;
            let again = calls.with_request(step, Time::NEVER, |request| {
                let token = EXTRA_TOKENS + request.token;
                transactions.start(now, &Request { token, ..*request }, confirmations)
            });
            tally.commands_extra += u64::from(again);
        }
    }

    /// A command with a request has ended: the request that waited for it may go.
    pub(super) fn request_owed(&mut self, now: Time, index: u32) {
        if self.phase <= Phase::Running && self.calls.take_owed(index) {
            self.request(now, index, b"", false);
        }
    }

    /// Asks for events again, in one datagram with what is in `front`; false when nothing was sent.
    fn request(&mut self, now: Time, index: u32, front: &[u8], again: bool) -> bool {
        let Agent { calls, transactions, confirmations, tally, .. } = self;
        let sent = calls.with_next_request(index, again, |request| transactions.start_behind(now, front, request, confirmations));
        tally.requests += u64::from(sent);
        sent
    }

    /// The endpoint that a Notify is about, when it answers our latest request.
    fn notified(&self, message: &[u8]) -> Option<u32> {
        let command = Command::parse_at_agent(message).ok()?;
        self.calls.notified(command.endpoint.local, command.get(Code::X)?)
    }

    /// Answers a Notify and asks for events again, both in one datagram (4.4.1). False when it is to be answered as ever.
    pub(super) fn handle_notify(&mut self, now: Time, id: u32, message: &[u8], from: SocketAddr) -> bool {
        if self.phase > Phase::Running || !self.calls.asks() || !self.answers.is_new(now, self.timers.t_hist, from, id) {
            return false;
        }
        let Some(index) = self.notified(message) else {
            self.tally.notifies_stale += 1;
            return false;
        };
        let joins = !self.broken.has(Rule::Lockstep) && self.transactions.current_address() == Some(from);
        let mut front = [0; 40];
        let mut text = Text::new(&mut front);
        if joins {
            text.push(b"200 ");
            text.number(id);
            text.push(b" OK\r\n.\r\n");
        }
        let length = text.len();
        let sent = self.request(now, index, front.get(..length).unwrap_or_default(), false);
        if sent && self.broken.has(Rule::OneRequest) {
            self.tally.commands_extra += u64::from(self.request(now, index, b"", true));
        }
        if sent && joins {
            self.tally.requests_with_answer += 1;
            self.tally.notifies += 1;
            self.answers.note(now, self.timers.t_hist, from, id);
        }
        sent && joins
    }
}
