//! A command that is refused has changed nothing (G-TXN-02): what a core holds of the endpoints it names is the same as before.
//!
//! Looked at for commands that get their final as soon as they come; what an older one is aborted for stays aborted (G-TXN-08), so
//! connections that are still being made do not count, and neither does what is said of service states meanwhile. What was aborted (407)
//! was so by another command, which has an effect of its own; and so has one that was held and is done in the same turn.

use super::frames::FrameTable;
use super::journal::Journal;
use super::wires::Out;
use crate::proto::codec::mgcp::CommandLine;
use crate::proto::codec::peek::{self, Peek};
use crate::proto::core::{Answer, Ask, Core, EndpointView, Request, StateFilter, Turn};
use crate::proto::plan::Plan;
use crate::proto::trunk::Selection;
use std::fmt::Write;
use std::net::IpAddr;

/// What a core held before it took in a command.
pub(super) struct Before {
    agent: IpAddr,
    id: u32,
    selection: Selection,
    state: String,
    done: u64,
}

impl Before {
    /// Of a datagram with one command that was not answered yet; `None` for all others.
    pub fn of(
        plan: &Plan,
        journal: &Journal,
        core: &mut Core,
        turn: &mut Turn<'_, FrameTable, Out<'_>>,
        from: IpAddr,
        bytes: &[u8],
    ) -> Option<Before> {
        let mut messages = peek::split(bytes);
        let (Some((_, Peek::Command(CommandLine { id, endpoint, .. }))), None) = (messages.next(), messages.next()) else { return None };
        let local = endpoint.split(|&byte| byte == b'@').next()?;
        let one = plan.topology.lookup(local).and_then(|endpoint| plan.topology.selection_of(endpoint));
        let selection = one.or_else(|| plan.topology.resolve(local, true).ok())?;
        if journal.code(from, id).is_some() {
            return None;
        }
        Some(Before { agent: from, id, selection, state: state(core, turn, selection), done: journal.done })
    }

    /// After the core has taken it in.
    ///
    /// # Panics
    /// When it was refused and something is not as before.
    pub fn check(&self, journal: &Journal, core: &mut Core, turn: &mut Turn<'_, FrameTable, Out<'_>>) {
        if let Some(code @ 400..) = journal.code(self.agent, self.id)
            && code != 407
            && journal.done == self.done
        {
            let after = state(core, turn, self.selection);
            assert!(self.state == after, "{code} for command {}, which changed\n{}to\n{after}", self.id, self.state);
        }
    }
}

/// What the core holds of its endpoints among these.
fn state(core: &mut Core, turn: &mut Turn<'_, FrameTable, Out<'_>>, selection: Selection) -> String {
    let mut request = Request::new(Ask::Endpoints(selection, StateFilter::All));
    while !core.handle_request(turn, &mut request) {}
    let Answer::Endpoints(views) = request.answer else { return String::new() };
    let mut text = String::new();
    for EndpointView { endpoint, entity, request, law, connections, .. } in views {
        let _ = write!(text, "{endpoint:?} {entity} {request} {law:?}");
        for view in connections.iter().filter(|view| !view.connection.pending) {
            let _ = write!(text, " {:?}", view.connection);
        }
        text.push('\n');
    }
    text
}
