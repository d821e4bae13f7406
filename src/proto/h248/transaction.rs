//! A transaction of a controller: seen before, executed action by action and command by command, answered (RFC 3525 8).

use super::admit::is_described;
use super::error::*;
use super::media::concerns_action;
use super::name::{self, Room};
use super::parked::{Claimed, Until, Waiting};
use super::table::{NULL, Termination};
use super::{Gateway, Send};
use crate::proto::base::{Counter, Time, TransactionId};
use crate::proto::codec::h248::{
    Action, ActionPart, Command, ContextAudit, ContextId, Descriptor, NAME_MAX, Request, Side, TerminationId, Token, Verb, Writer,
};
use crate::proto::plan::MessageEncoding;
use crate::proto::transaction::history::{Class, Handle};
use crate::proto::transaction::responder::{Arrival, Arriving, Sender};
use std::net::SocketAddr;

/// A transaction that is executed, and how far it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub handle: Handle,
    pub sender: Sender,
    pub from: SocketAddr,
    pub id: TransactionId,
    /// Its place in its message.
    pub ordinal: usize,
    action: usize,
    part: usize,
    /// The context of the action in hand, once that was looked up.
    scope: Option<Scope>,
    /// The context whose reply is being written.
    open: Option<ContextId>,
    /// Properties of the context that are asked for and not written yet.
    asked: Option<ContextAudit>,
    /// Behind `P=id` in the reply.
    head: usize,
    /// What the command in hand tells of counts has been asked for.
    counted: bool,
    /// The command in hand goes on behind this termination, of several that it means; and whether it has failed for one of them.
    after: Option<(Termination, bool)>,
    /// The termination that it waited for went.
    pub abandoned: bool,
}

impl Run {
    /// The command in hand, which waits.
    pub fn command<'a>(&self, request: &Request<'a>) -> Option<Command<'a>> {
        let action = request.actions().nth(self.action)?.ok()?;
        match action.parts().nth(self.part.checked_sub(1)?)?.ok()? {
            ActionPart::Command(command) => Some(command),
            _ => None,
        }
    }

    /// The context of the action in hand; [`NULL`] where there is none.
    pub fn context(&self) -> u32 {
        self.scope.map_or(NULL, |scope| scope.id)
    }

    /// The command in hand, which waited for counts or for places, begins now.
    pub fn begin_counted(&mut self) {
        (self.part, self.counted) = (self.part.saturating_sub(1), true);
    }

    /// The command in hand, which waited for one of its terminations, goes on with the next.
    pub fn go_behind(&mut self, termination: Termination, failed: bool) {
        (self.part, self.after) = (self.part.saturating_sub(1), Some((termination, failed)));
    }
}

/// What an action is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scope {
    pub context: ContextId,
    /// The context; [`NULL`] also for all of them.
    pub id: u32,
    /// The action adds a termination whose far end is described.
    pub described: bool,
}

/// How it goes on.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub(super) enum Flow {
    /// With what comes next.
    Next,
    /// Not at all: the rest is not executed (TXN-02).
    Stop,
    /// When what it waits for has come.
    Park(Until),
}

impl Gateway {
    /// A transaction request.
    pub(super) fn request(
        &mut self,
        now: Time,
        (sender, from): (Sender, SocketAddr),
        bytes: &[u8],
        (ordinal, request): (usize, &Request<'_>),
        send: Send<'_>,
    ) {
        match self.association.admits(sender.agent.0) {
            Ok(()) => {}
            Err(Some(failure)) => return self.send_failure(from, request.id, failure, send),
            Err(None) => return,
        }
        let class = if releases(request) { Class::Release } else { Class::Ordinary };
        // A repeat is the same text: controllers that restart begin their identifiers anew.
        let content = Some(self.names.exact(request.text()));
        let arriving = Arriving { sender, id: request.id, content, class, room: self.own().max_message };
        let handle = match self.responder.arrive(now, &arriving) {
            Arrival::Execute(handle) => handle,
            Arrival::Repeat(body) => {
                self.counters.add(Counter::CommandsRepeated);
                return send(from, body);
            }
            Arrival::Pending => {
                self.counters.add(Counter::CommandsRepeatedRunning);
                return self.send_with(from, send, |w| w.pending(request.id));
            }
            Arrival::Discard => return self.counters.add(Counter::CommandsRepeatedConfirmed),
            Arrival::Full(_) => {
                self.counters.add(Counter::HistoryFull);
                return self.send_failure(from, request.id, HISTORY_FULL, send);
            }
        };
        self.counters.add(Counter::H248Transactions);
        let Some(mut buffer) = self.reply.take() else { return };
        let mut w = Writer::new(&mut buffer, self.style());
        self.header(&mut w);
        w.reply(request.id, false);
        let head = w.len();
        let mut run = Run {
            handle,
            sender,
            from,
            id: request.id,
            ordinal,
            action: 0,
            part: 0,
            scope: None,
            open: None,
            asked: None,
            head,
            counted: false,
            after: None,
            abandoned: false,
        };
        let flow = if self.refuses(request) {
            self.counters.add(Counter::H248OverloadRefused);
            self.stop(OVERLOADED, &mut w)
        } else {
            self.execute(now, request, &mut run, &mut w)
        };
        match flow {
            Flow::Park(until) => {
                let mark = w.mark();
                if let Err(mut buffer) = self.park(bytes, run, until, mark, buffer) {
                    let mut w = Writer::resume(&mut buffer, self.style(), mark);
                    // No room to wait: the command is undone, the transaction ends.
                    match until {
                        Until::Done(waiting) => {
                            self.undo(now, &waiting);
                            self.write_gone(&mut w, &waiting, NO_RESOURCES);
                        }
                        Until::Claimed(claimed) => {
                            if let Some(command) = run.command(request) {
                                self.end_claimed(&mut run, (&claimed, &command), NO_RESOURCES, &mut w);
                                self.tables.drop_if_empty(run.context());
                            }
                        }
                        Until::Counted { .. } => {}
                    }
                    let length = self.close(&run, w);
                    self.conclude(now, &run, &mut buffer, length, send);
                    self.reply = Some(buffer);
                }
            }
            Flow::Next | Flow::Stop => {
                let length = self.close(&run, w);
                self.conclude(now, &run, &mut buffer, length, send);
                self.reply = Some(buffer);
            }
        }
    }

    /// Ends what is open in a reply: its length, `None` when it does not fit.
    pub(super) fn close(&self, run: &Run, mut w: Writer<'_>) -> Option<usize> {
        if run.open.is_some() {
            w.end();
        }
        w.end();
        w.finish()
    }

    /// Remembers the reply and sends it.
    pub(super) fn conclude(&mut self, now: Time, run: &Run, buffer: &mut [u8], length: Option<usize>, send: Send<'_>) {
        let mut length = length;
        if self.responder.wants_immediate_ack(run.handle) {
            length = length.and_then(|length| self.insert_immediate_ack(buffer, run.head, length));
        }
        let length = length.or_else(|| {
            self.counters.add(Counter::H248Failed);
            let mut w = Writer::new(buffer, self.style());
            self.header(&mut w);
            w.reply(run.id, self.responder.wants_immediate_ack(run.handle));
            w.error(TOO_LARGE.code, TOO_LARGE.text.as_bytes());
            w.end();
            w.finish()
        });
        let Some(body) = length.and_then(|length| buffer.get(..length)) else { return };
        // Room was promised for any reply of this size.
        let _ = self.responder.reply(now, run.sender.agent, run.handle, body);
        self.counters.add(Counter::H248Replies);
        send(run.from, body);
    }

    /// A reply that was begun before the sender was told to wait asks for an acknowledgement after all (PND-03).
    fn insert_immediate_ack(&self, buffer: &mut [u8], head: usize, length: usize) -> Option<usize> {
        let flag: &[u8] = if self.own().encoding == MessageEncoding::Pretty { b"\n\tImmAckRequired," } else { b"IA," };
        let brace = head + buffer.get(head..length)?.iter().position(|byte| *byte == b'{')? + 1;
        let end = length + flag.len();
        buffer.get_mut(..end)?.copy_within(brace..length, brace + flag.len());
        buffer.get_mut(brace..brace + flag.len())?.copy_from_slice(flag);
        Some(end)
    }

    /// Executes a transaction from where it is.
    pub(super) fn execute(&mut self, now: Time, request: &Request<'_>, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        for (number, action) in request.actions().enumerate().skip(run.action) {
            run.action = number;
            let flow = match action {
                Ok(action) => self.action(now, &action, run, w),
                Err(refusal) => {
                    self.leave(run, w);
                    self.counters.add(Counter::H248Failed);
                    w.error(refusal.code(), refusal.text().as_bytes());
                    Flow::Stop
                }
            };
            match flow {
                Flow::Next => (run.part, run.scope) = (0, None),
                Flow::Stop | Flow::Park(_) => return flow,
            }
        }
        Flow::Next
    }

    fn action(&mut self, now: Time, action: &Action<'_>, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        if run.scope.is_none() {
            match self.scope(action) {
                Ok(scope) => run.scope = Some(scope),
                Err(failure) => {
                    self.enter(action.context, run, w);
                    return self.stop(failure, w);
                }
            }
        }
        let Some(scope) = run.scope else { return Flow::Stop };
        let mut flow = Flow::Next;
        for (number, part) in action.parts().enumerate().skip(run.part) {
            run.part = number + 1;
            flow = match part {
                Ok(part) => self.part(now, &part, scope, run, w),
                Err(refusal) => {
                    self.enter_scope(scope, run, w);
                    self.stop(Failure::from(refusal), w)
                }
            };
            if !matches!(flow, Flow::Next) {
                break;
            }
        }
        if let Flow::Park(_) = flow {
            return flow;
        }
        // Nothing stands behind an error.
        match flow {
            Flow::Next => flow = self.write_asked(scope, run, w),
            _ => run.asked = None,
        }
        self.leave(run, w);
        if scope.context == ContextId::Choose {
            self.tables.drop_if_empty(scope.id);
        }
        flow
    }

    fn part(&mut self, now: Time, part: &ActionPart<'_>, scope: Scope, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        let context = self.tables.context_mut(scope.id);
        match (part, context) {
            (ActionPart::Command(command), _) => {
                return match self.write_asked(scope, run, w) {
                    Flow::Next => self.command(now, command, scope, run, w),
                    flow => flow,
                };
            }
            (ActionPart::Priority(priority), Some(context)) => context.priority = *priority,
            (ActionPart::Emergency, Some(context)) => context.emergency = true,
            (ActionPart::Audit(audit), Some(_)) if !audit.topology => run.asked = Some(*audit),
            (ActionPart::Topology(_) | ActionPart::Audit(_), Some(_)) => {
                self.enter_scope(scope, run, w);
                return self.stop(TOPOLOGY_UNSUPPORTED, w);
            }
            _ => {
                self.enter_scope(scope, run, w);
                return self.stop(ACTION_ILLEGAL, w);
            }
        }
        Flow::Next
    }

    /// Writes the properties of the context that were asked for (CA-01).
    fn write_asked(&mut self, scope: Scope, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        let Some(asked) = run.asked.take() else { return Flow::Next };
        let (mark, open) = (w.mark(), run.open);
        self.enter_scope(scope, run, w);
        let Some(context) = self.tables.context(scope.id) else { return Flow::Next };
        if asked.priority {
            w.number_item(Token::Priority, context.priority.into());
        }
        if asked.emergency && context.emergency {
            w.flag(Token::Emergency);
        }
        if self.is_within_room(w) {
            return Flow::Next;
        }
        w.rewind(mark);
        run.open = open;
        self.enter_scope(scope, run, w);
        self.stop(TOO_LARGE, w)
    }

    /// Which context an action means; a new one is made for `$`.
    fn scope(&mut self, action: &Action<'_>) -> Result<Scope, Failure> {
        let context = action.context;
        let id = match context {
            ContextId::Null | ContextId::All => NULL,
            ContextId::Number(number) => self.tables.context(number).map(|context| context.id).ok_or(CONTEXT_UNKNOWN)?,
            ContextId::Choose if self.draining => {
                self.counters.add(Counter::DrainRefused);
                return Err(DRAINING);
            }
            ContextId::Choose => self.tables.create().ok_or(NO_CONTEXT_LEFT)?,
        };
        let described = self.calls.desk.is_some() && is_described(action);
        Ok(Scope { context, id, described })
    }

    fn stop(&mut self, failure: Failure, w: &mut Writer<'_>) -> Flow {
        self.counters.add(Counter::H248Failed);
        w.error(failure.code, failure.text.as_bytes());
        Flow::Stop
    }

    /// Begins the reply of a context unless it is being written.
    fn enter(&self, context: ContextId, run: &mut Run, w: &mut Writer<'_>) {
        if run.open == Some(context) {
            return;
        }
        self.leave(run, w);
        w.context(context);
        run.open = Some(context);
    }

    fn enter_scope(&self, scope: Scope, run: &mut Run, w: &mut Writer<'_>) {
        let context = if scope.id == NULL { scope.context } else { ContextId::Number(scope.id) };
        self.enter(context, run, w);
    }

    fn leave(&self, run: &mut Run, w: &mut Writer<'_>) {
        if run.open.take().is_some() {
            w.end();
        }
    }

    fn command(&mut self, now: Time, command: &Command<'_>, scope: Scope, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        if let Err(refusal) = command.check(Side::Request) {
            let failure = Failure::from(refusal);
            if concerns_action(refusal.fault) {
                self.enter_scope(scope, run, w);
                return self.stop(failure, w);
            }
            return self.refuse(command, failure, scope, run, w);
        }
        let mut matches = std::mem::take(&mut self.matches);
        matches.clear();
        let audits = matches!(command.verb, Verb::AuditValue | Verb::AuditCapability);
        let (mark, open) = (w.mark(), run.open);
        let found = self.targets(command, scope, &mut matches);
        let before = run.after.take();
        if let Some((after, failed)) = before {
            matches.retain(|target| *target > after);
            if matches.is_empty() {
                self.matches = matches;
                return if failed && !command.optional { Flow::Stop } else { Flow::Next };
            }
        }
        // What changes something must be known to fit before it is done; what an audit says is seen when it is written.
        let fits = audits || self.has_reply_room(command, &matches, w);
        if found.is_ok()
            && fits
            && !std::mem::take(&mut run.counted)
            && tells_counts(command)
            && let Some(until) = self.ask_counts(&matches)
        {
            self.matches = matches;
            return Flow::Park(until);
        }
        let mut flow = match found.and(if fits { Ok(()) } else { Err(TOO_LARGE) }) {
            Err(failure) => self.refuse(command, failure, scope, run, w),
            Ok(()) if scope.context == ContextId::All && command.termination == TerminationId::Root => {
                self.list_contexts(command.verb, run, w);
                Flow::Next
            }
            Ok(()) if command.wildcarded && command.termination.is_wildcard() => {
                self.enter_scope(scope, run, w);
                self.all_as_one(now, command, scope, &matches, w)
            }
            Ok(()) => self.each(now, (command, scope), (&matches, before), run, w),
        };
        if audits && !self.is_within_room(w) {
            w.rewind(mark);
            run.open = open;
            flow = self.refuse(command, TOO_LARGE, scope, run, w);
        }
        self.matches = matches;
        flow
    }

    /// The reply to a command for which nothing was done. Where that takes the room which must stay free, error 533 stands in its place and
    /// the rest is not executed, be the command optional or not: what was done before is told whatever follows.
    fn refuse(&mut self, command: &Command<'_>, failure: Failure, scope: Scope, run: &mut Run, w: &mut Writer<'_>) -> Flow {
        let (mark, open) = (w.mark(), run.open);
        self.enter_scope(scope, run, w);
        self.write_error(w, command.verb, command.termination, failure);
        if self.is_within_room(w) {
            return if command.optional { Flow::Next } else { Flow::Stop };
        }
        w.rewind(mark);
        run.open = open;
        self.enter_scope(scope, run, w);
        self.write_error(w, command.verb, command.termination, TOO_LARGE);
        Flow::Stop
    }

    /// An audit of ROOT in all contexts: each has an action reply of its own (AV-04).
    fn list_contexts(&self, verb: Verb, run: &mut Run, w: &mut Writer<'_>) {
        for context in self.tables.contexts() {
            self.enter(ContextId::Number(context.id), run, w);
            w.command(verb, TerminationId::Root);
            w.end();
        }
    }

    /// One reply for each termination (TRM-07). All are tried (TXN-05). `before`: the command goes on, and whether it has failed for others.
    fn each(
        &mut self,
        now: Time,
        (command, scope): (&Command<'_>, Scope),
        (matches, before): (&[Termination], Option<(Termination, bool)>),
        run: &mut Run,
        w: &mut Writer<'_>,
    ) -> Flow {
        let mut failed = before.is_some_and(|(_, failed)| failed);
        let mut last = before.map(|(last, _)| last);
        // With `$` there is none yet.
        let targets = matches.iter().copied().map(Some).chain(matches.is_empty().then_some(None));
        for target in targets {
            let context = target.and_then(|target| self.tables.row(target)).map_or(NULL, |row| row.context);
            match (scope.context, context) {
                (ContextId::All, 1..) => self.enter(ContextId::Number(context), run, w),
                _ => self.enter_scope(scope, run, w),
            }
            let single = matches.len() < 2 && before.is_none();
            let waits = single || matches!(command.verb, Verb::Add | Verb::Move);
            match self.one(now, command, scope, (target, waits), w) {
                Ok(None) => {}
                Ok(Some(until)) => {
                    let more = (!single).then_some(failed);
                    return Flow::Park(match until {
                        Until::Done(waiting) => Until::Done(Waiting { more, ..waiting }),
                        Until::Claimed(claimed) => {
                            // It begins anew, behind those that are done.
                            run.after = last.map(|last| (last, failed));
                            Until::Claimed(Claimed { more, ..claimed })
                        }
                        counted @ Until::Counted { .. } => counted,
                    });
                }
                Err(failure) => {
                    failed = true;
                    match target {
                        Some(target) => self.write_failed(w, command.verb, target, failure),
                        None => self.write_error(w, command.verb, command.termination, failure),
                    }
                }
            }
            last = target.or(last);
        }
        if failed && !command.optional { Flow::Stop } else { Flow::Next }
    }

    /// One reply for all, with what each would have said, each thing once (TRM-06).
    fn all_as_one(&mut self, now: Time, command: &Command<'_>, scope: Scope, matches: &[Termination], w: &mut Writer<'_>) -> Flow {
        let mut first = None;
        let audits = matches!(command.verb, Verb::AuditValue | Verb::AuditCapability);
        if !audits {
            for target in matches {
                let mark = w.mark();
                if let Err(failure) = self.one(now, command, scope, (Some(*target), false), w) {
                    first.get_or_insert(failure);
                }
                w.rewind(mark);
            }
        }
        w.command(command.verb, command.termination);
        match first {
            Some(failure) => {
                self.counters.add(Counter::H248Failed);
                w.error(failure.code, failure.text.as_bytes());
            }
            None if audits => self.write_union(now, command, matches, w),
            None => {}
        }
        w.end();
        if first.is_some() && !command.optional { Flow::Stop } else { Flow::Next }
    }

    /// The terminations a command means; none for one that is still to be chosen.
    fn targets(&self, command: &Command<'_>, scope: Scope, matches: &mut Vec<Termination>) -> Result<(), Failure> {
        let Command { verb, termination, .. } = command;
        match (verb, scope.context) {
            (Verb::Notify, _) => return Err(COMMAND_UNSUPPORTED),
            (Verb::Add | Verb::Move, ContextId::Null | ContextId::All) => return Err(ACTION_ILLEGAL),
            (Verb::Add | Verb::Move, _) => {}
            (Verb::Subtract, ContextId::Null) => return Err(ACTION_ILLEGAL),
            // Behind an Add it is a context like any other.
            (_, ContextId::Choose) if self.tables.context(scope.id).is_none_or(|context| context.members().is_empty()) => {
                return Err(ACTION_ILLEGAL);
            }
            _ => {}
        }
        if termination.chooses() {
            return if *verb == Verb::Add && !termination.is_wildcard() { Ok(()) } else { Err(IDENTIFIER) };
        }
        let name = match termination {
            TerminationId::Root => return self.root(*verb, scope, matches),
            _ if termination.is_wildcard() => return self.matching(*verb, scope, termination.text(), matches),
            _ => termination.text(),
        };
        let found = name::find(&self.plan.topology, &self.tables, name).ok_or(TERMINATION_UNKNOWN)?;
        self.fits_scope(*verb, scope, found)?;
        matches.push(found);
        Ok(())
    }

    /// ROOT (PRP-11). With all contexts it stands for each of them (AV-04).
    fn root(&self, verb: Verb, scope: Scope, matches: &mut Vec<Termination>) -> Result<(), Failure> {
        if !matches!(verb, Verb::Modify | Verb::AuditValue | Verb::AuditCapability | Verb::ServiceChange) {
            return Err(IDENTIFIER);
        }
        match scope.context {
            ContextId::Null => {}
            ContextId::All if !matches!(verb, Verb::AuditValue | Verb::AuditCapability) => return Err(ACTION_ILLEGAL),
            ContextId::All if self.tables.contexts_up() == 0 => return Err(NOTHING_MATCHES),
            ContextId::All => {}
            _ => return Err(NOT_IN_CONTEXT),
        }
        matches.push(Termination::Root);
        Ok(())
    }

    /// Whether a command may be about this termination in this context.
    fn fits_scope(&self, verb: Verb, scope: Scope, termination: Termination) -> Result<(), Failure> {
        let context = self.tables.row(termination).ok_or(TERMINATION_UNKNOWN)?.context;
        match (verb, scope.context) {
            (Verb::ServiceChange, _) => Ok(()),
            (Verb::Add, _) if context != NULL => Err(IN_A_CONTEXT),
            (Verb::Add, _) => Ok(()),
            (Verb::Move, _) if context == NULL => Err(NOT_IN_CONTEXT),
            (Verb::Move, _) => Ok(()),
            (_, ContextId::All) if context != NULL => Ok(()),
            (_, ContextId::All) => Err(NOT_IN_CONTEXT),
            _ if context == scope.id => Ok(()),
            _ => Err(NOT_IN_CONTEXT),
        }
    }

    /// Those of a pattern that are where the command looks: in its context, in any, or in none.
    fn matching(&self, verb: Verb, scope: Scope, pattern: &[u8], matches: &mut Vec<Termination>) -> Result<(), Failure> {
        let mut room: Room = [0; NAME_MAX];
        let mut take = |termination: Termination| {
            let fits = self.fits_scope(verb, scope, termination).is_ok()
                && name::fits(pattern, name::write(&self.plan.topology, &self.tables, termination, &mut room));
            if fits {
                matches.push(termination);
            }
        };
        match self.tables.context(scope.id).filter(|_| !matches!(verb, Verb::Add | Verb::Move | Verb::ServiceChange)) {
            Some(context) => context.members().iter().copied().for_each(&mut take),
            None => {
                self.tables.physical().map(Termination::Physical).for_each(&mut take);
                if verb != Verb::Add {
                    self.tables.ephemerals().for_each(&mut take);
                }
            }
        }
        if scope.context == ContextId::All {
            // Replies of one context stand together.
            matches.sort_by_key(|termination| self.tables.row(*termination).map_or(NULL, |row| row.context));
        }
        if matches.is_empty() { Err(NOTHING_MATCHES) } else { Ok(()) }
    }

    /// The reply to a command that failed, under the name it was given.
    pub(super) fn write_error(&mut self, w: &mut Writer<'_>, verb: Verb, termination: TerminationId<'_>, failure: Failure) {
        self.counters.add(Counter::H248Failed);
        w.command(verb, termination);
        w.error(failure.code, failure.text.as_bytes());
        w.end();
    }

    /// The same for a command that waited, whose termination may be gone.
    pub(super) fn write_gone(&mut self, w: &mut Writer<'_>, waiting: &Waiting, failure: Failure) {
        if let physical @ Termination::Physical(_) = waiting.termination() {
            return self.write_failed(w, waiting.verb, physical, failure);
        }
        let mut room: Room = [0; NAME_MAX];
        let length = ephemeral_name(waiting.number, &mut room);
        let name = room.get(..length).unwrap_or_default();
        self.write_error(w, waiting.verb, TerminationId::parse(name).unwrap_or(TerminationId::Root), failure);
    }

    /// The same under the name of a termination.
    pub(super) fn write_failed(&mut self, w: &mut Writer<'_>, verb: Verb, termination: Termination, failure: Failure) {
        let mut room: Room = [0; NAME_MAX];
        let name = name::write(&self.plan.topology, &self.tables, termination, &mut room);
        self.write_error(w, verb, TerminationId::parse(name).unwrap_or(TerminationId::Root), failure);
    }
}

/// The name of an ephemeral termination by its number.
fn ephemeral_name(number: u32, room: &mut Room) -> usize {
    use std::io::Write as _;
    let whole = room.len();
    let mut rest = &mut room[..];
    let _ = write!(rest, "rtp/{number}");
    whole - rest.len()
}

/// Whether the reply of a command tells what its terminations have counted: a Subtract does unless it is told what to tell.
fn tells_counts(command: &Command<'_>) -> bool {
    let mut audits = command.descriptors().flatten().filter_map(|(_, descriptor)| match descriptor {
        Descriptor::Audit(audit) => Some(audit),
        _ => None,
    });
    match (command.verb, audits.next()) {
        (Verb::AuditCapability, _) => false,
        (Verb::Subtract, None) => !(command.wildcarded && command.termination.is_wildcard()),
        (_, audit) => audit.is_some_and(|audit| audit.has(Token::Statistics)),
    }
}

/// Whether a transaction begins by making room: it may use the reserve of the history.
fn releases(request: &Request<'_>) -> bool {
    let first = request.actions().next().and_then(Result::ok).and_then(|action| action.parts().next()?.ok());
    matches!(first, Some(ActionPart::Command(command)) if command.verb == Verb::Subtract)
}
