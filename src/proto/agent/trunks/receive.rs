//! What comes from the gateway: responses, and its own commands.

use super::line::{Input, Use};
use super::{Kind, PACE, Trunks};
use crate::proto::agent::check::{self, Failure};
use crate::proto::agent::receive::Parts;
use crate::proto::agent::rules::Rule;
use crate::proto::agent::transactions::{Ended, Matched};
use crate::proto::agent::{Observer, Phase};
use crate::proto::base::{HexId, Time};
use crate::proto::codec::mgcp::{Code, Command, Response, RestartMethod, Verb};
use std::net::SocketAddr;

impl Trunks {
    pub(super) fn handle_response(
        &mut self,
        now: Time,
        code: u16,
        id: u32,
        message: &[u8],
        from: SocketAddr,
        observer: &mut impl Observer,
    ) {
        let Trunks { transactions, confirmations, answers, tally, .. } = self;
        let parts = Parts { transactions, confirmations, answers, tally };
        if matches!(code, 101 | 409) {
            self.pace.slow_down(now, &PACE);
        }
        if let Some((response, Matched::Final(ended))) = parts.response(now, (code, id), message, from, observer) {
            self.handle_final(now, &ended, &response, message, observer);
        }
    }

    fn handle_final(&mut self, now: Time, ended: &Ended, response: &Response<'_>, message: &[u8], observer: &mut impl Observer) {
        let Some(line) = self.lines.get_mut(ended.token as usize) else { return };
        let code = response.code;
        let done = (200..300).contains(&code);
        let mut connection = None;
        match ended.verb {
            Verb::Crcx if done => match check::created(response, line.previous, HexId::NONE) {
                Ok(id) => connection = Some(id),
                Err(failure) => observer.failed(failure, message),
            },
            Verb::Dlcx if done => {
                if !line.values.connection.is_none() {
                    line.previous = line.values.connection;
                }
                connection = Some(HexId::NONE);
            }
            _ => {}
        }
        let idle = line.usage == Use::Audit || line.usage == Use::Reset;
        let input = match ended.verb {
            Verb::Auep if done && idle => Input::Audited(is_idle(response, self.settings.kind)),
            _ => Input::Final(code, connection),
        };
        self.input(now, ended.token, input, message, observer);
    }

    pub(super) fn handle_command(
        &mut self,
        now: Time,
        verb: Option<Verb>,
        id: u32,
        message: &[u8],
        from: SocketAddr,
        observer: &mut impl Observer,
    ) {
        let history = self.settings.timers.t_hist;
        if !self.answers.is_new(now, history, from, id) {
            self.answers.command(now, history, from, verb, id);
            self.tally.commands_repeated += 1;
            return;
        }
        match verb {
            Some(Verb::Rsip) => {
                self.tally.restarts += 1;
                let method = Command::parse_at_agent(message).ok().and_then(|command| command.restart_method().ok().flatten());
                self.disturbed |= self.phase > Phase::Clearing && !matches!(method, Some(RestartMethod::CancelGraceful));
            }
            Some(Verb::Ntfy) => {
                self.tally.notifies += 1;
                // The answer goes with what the script sends next, when that is now (4.4.1).
                let joins = !self.settings.broken.has(Rule::Lockstep) && self.transactions.current_address() == Some(from);
                let front = if joins { format!("200 {id} OK\r\n.\r\n").into_bytes() } else { Vec::new() };
                self.front = Some(front);
                self.handle_notify(now, message, observer);
                if self.front.take().is_none() && joins {
                    self.answers.note(now, history, from, id);
                    return;
                }
            }
            Some(Verb::Dlcx) => {
                self.tally.gateway_deletions += 1;
                self.disturbed = true;
            }
            _ => self.tally.commands_unknown += 1,
        }
        self.answers.command(now, history, from, verb, id);
    }

    fn handle_notify(&mut self, now: Time, message: &[u8], observer: &mut impl Observer) {
        let command = Command::parse_at_agent(message).ok();
        let observed = command.as_ref().and_then(|command| command.observed_events().ok().flatten());
        let (Some(command), Some(observed)) = (&command, observed) else {
            observer.failed(Failure::Unreadable, message);
            return;
        };
        let Some(index) = self.find(command.endpoint.local) else {
            observer.failed(Failure::CallWrong, message);
            return;
        };
        let Some(line) = self.lines.get_mut(index as usize) else { return };
        let mut waits = false;
        for event in observed.iter() {
            waits |= line.take_event(String::from_utf8_lossy(event.raw).into_owned());
        }
        if line.usage == Use::Rest && !self.disturbed {
            let name = line.name.clone();
            observer.failed(Failure::CallWrong, format!("{name} at rest: {}", String::from_utf8_lossy(observed.as_bytes())).as_bytes());
        }
        if waits {
            self.run(now, index, observer);
        }
    }

    fn find(&self, local: &[u8]) -> Option<u32> {
        self.names.get(&local.to_ascii_lowercase()).copied()
    }
}

/// Whether an audit shows no connection, and the state of an idle trunk.
fn is_idle(response: &Response<'_>, kind: Kind) -> bool {
    let rest = kind.idle().is_none_or(|idle| {
        let wanted = format!("{}/{idle}", kind.package());
        let events = response.values(Code::ES).flat_map(|list| list.split(|byte| *byte == b','));
        events.map(<[u8]>::trim_ascii).any(|event| event.eq_ignore_ascii_case(wanted.as_bytes()))
    });
    check::audited(response, HexId::NONE).is_ok() && rest
}
