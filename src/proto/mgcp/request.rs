//! NotificationRequest, alone or encapsulated, and the notified entity that any command may name (RFC 3435 2.3.3, 2.1.4).
//!
//! What a request says is of two kinds: what is the same for every endpoint it is for ([`read`]), and its lists, which are checked
//! against each endpoint ([`check`]). What it makes of events is in [`super::event`].

use super::configure::{self, ConfigurePlan};
use super::event::{self, Carrier, Check, Lists, Quarantine};
use super::{Calls, ENTITY_REFUSED, NO_ENTITY_LEFT, PERSISTENT_ALONE, Refused};
use crate::proto::base::{AgentId, Counter, EndpointIndex, HexId, Time};
use crate::proto::codec::mgcp::{Code, CodeSet, Command};
use crate::proto::endpoint::{Blobs, ConnectionId, EntityId};
use crate::proto::package::ChannelKind;

/// What a request changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestPlan {
    /// The request identifier and quarantine handling; `None`: no request in this command.
    request: Option<(HexId, Quarantine)>,
    /// The notified entity.
    entity: EntityPlan,
    /// The line coding.
    configure: ConfigurePlan,
}

impl RequestPlan {
    /// Whether there is a request.
    pub fn requests(&self) -> bool {
        self.request.is_some()
    }
}

/// What `N:` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EntityPlan {
    /// Nothing.
    Keep,
    /// Whoever commands (G-NET-03).
    Clear,
    /// This port of this agent.
    Set(AgentId, u16),
}

/// Checks the request part of `command` for `endpoint`; it may be any command that can carry one.
pub fn validate(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex, carrier: Carrier) -> Result<RequestPlan, Refused> {
    let plan = read(calls, command)?;
    let mut blocks = entity_blocks(calls, &plan, command)?;
    let lists = if plan.requests() { lists(command)? } else { Lists::default() };
    if plan.requests() {
        blocks += check_lists(calls, &lists, endpoint, carrier)?;
    }
    blocks += command.description.map_or(0, |text| Blobs::blocks_for(text.len()));
    if blocks > 0 {
        let mut replaced = if plan.requests() { event::replaced(calls, endpoint, &lists) } else { 0 };
        if let (Some(_), Carrier::Known(id, _)) = (command.description, carrier) {
            replaced += calls.endpoints.find(endpoint, id).map_or(0, |(_, found)| Blobs::blocks(found.remote_text));
        }
        calls.room_for(blocks, replaced)?;
    }
    Ok(plan)
}

/// What is the same for every endpoint.
pub fn read(calls: &Calls, command: &Command<'_>) -> Result<RequestPlan, Refused> {
    let configure = configure::validate(calls, command)?;
    let request = match command.request()? {
        Some(id) => {
            let handling = command.quarantine()?;
            Some((id, Quarantine { looping: handling.looping, discard: handling.discard }))
        }
        None if command.get(Code::BPr).is_some() => return Err(PERSISTENT_ALONE),
        None => None,
    };
    let entity = match command.notified_entity()? {
        None => EntityPlan::Keep,
        Some(None) => EntityPlan::Clear,
        Some(Some(entity)) => {
            let Some(agent) = calls.settings.agent_named(&entity) else {
                calls.counters.add(Counter::RedirectRefused);
                return Err(ENTITY_REFUSED);
            };
            EntityPlan::Set(agent, entity.port)
        }
    };
    Ok(RequestPlan { request, entity, configure })
}

/// Checks the lists of a request on one endpoint: how many blocks of memory they will take there.
pub fn check(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex, carrier: Carrier) -> Result<u32, Refused> {
    check_lists(calls, &lists(command)?, endpoint, carrier)
}

fn check_lists(calls: &Calls, lists: &Lists<'_>, endpoint: EndpointIndex, carrier: Carrier) -> Result<u32, Refused> {
    if lists.is_empty() && !event::keeps_persistent(calls, endpoint) {
        return Ok(0);
    }
    Check::new(calls, endpoint, carrier).request(lists)?;
    event::blocks(calls.channel_kind(endpoint), lists)
}

/// Blocks for the name of the notified entity, when it is a new one; or the table of them is full.
fn entity_blocks(calls: &Calls, plan: &RequestPlan, command: &Command<'_>) -> Result<u32, Refused> {
    let EntityPlan::Set(agent, port) = plan.entity else { return Ok(0) };
    let text = command.notified_entity()?.flatten().map_or(&[][..], |entity| entity.raw);
    calls.endpoints.entities.blocks(&calls.endpoints.blobs, text, agent, port).ok_or_else(|| {
        calls.counters.add(Counter::EntitiesFull);
        NO_ENTITY_LEFT
    })
}

/// What is known of a request for many endpoints by the kind of their channels: how many blocks of memory its lists take, once they and
/// its digit maps were found good on one. So a long digit map is read once for each kind, not for each endpoint.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shapes([Option<u32>; ChannelKind::ALL.len()]);

impl Shapes {
    /// The blocks that the lists take on a channel of this kind; `None` before one was checked.
    fn blocks(&self, kind: ChannelKind) -> Option<u32> {
        self.0.get(kind as usize).copied().flatten()
    }

    fn note(&mut self, kind: ChannelKind, blocks: u32) {
        if let Some(place) = self.0.get_mut(kind as usize) {
            *place = Some(blocks);
        }
    }
}

/// Keeps room for the lists of a request on `endpoint`, which is one of many, until it is applied there; or it is impossible there.
pub fn hold(calls: &mut Calls, lists: &Lists<'_>, shapes: &mut Shapes, endpoint: EndpointIndex) -> Result<(), Refused> {
    let kind = calls.channel_kind(endpoint);
    let known = shapes.blocks(kind);
    Check::new(calls, endpoint, Carrier::None).with_good_maps(known.is_some()).request(lists)?;
    let needed = match known {
        Some(blocks) => blocks,
        None => event::blocks(kind, lists)?,
    };
    shapes.note(kind, needed);
    let replaced = event::replaced(calls, endpoint, lists);
    if calls.endpoints.blobs.hold(needed, replaced) { Ok(()) } else { Err(calls.no_room()) }
}

/// The room held for a request on `endpoint` is used next.
pub fn draw(calls: &mut Calls, lists: &Lists<'_>, shapes: &Shapes, endpoint: EndpointIndex) {
    if let Some(slot) = calls.watch_slot(endpoint) {
        event::make_room(calls, slot, lists);
    }
    let needed = shapes.blocks(calls.channel_kind(endpoint)).unwrap_or(0);
    calls.endpoints.blobs.draw(needed);
}

/// How many blocks of memory the lists of a request, which were checked, take on `endpoint`.
pub fn blocks(calls: &Calls, command: &Command<'_>, endpoint: EndpointIndex) -> u32 {
    lists(command).and_then(|lists| event::blocks(calls.channel_kind(endpoint), &lists)).unwrap_or(0)
}

/// The lists of a request, which are the same for every endpoint.
#[inline]
pub fn lists<'a>(command: &Command<'a>) -> Result<Lists<'a>, Refused> {
    const PARTS: CodeSet = CodeSet::of(&[Code::R, Code::S, Code::T, Code::BPr, Code::D, Code::Q]);
    if command.codes().meets(PARTS) { read_lists(command) } else { Ok(Lists::default()) }
}

fn read_lists<'a>(command: &Command<'a>) -> Result<Lists<'a>, Refused> {
    Ok(Lists {
        requested: command.requested_events()?,
        signals: command.signals()?,
        detected: command.detect_events()?,
        persistent: command.persistent_events()?,
        digit_map: command.digit_map()?,
        looping: command.quarantine()?.looping,
    })
}

/// Keeps the notified entity of `command` in its table until it is released: [`apply`] cannot lack room for it then.
pub fn hold_entity(calls: &mut Calls, plan: &RequestPlan, command: &Command<'_>) -> Result<EntityId, Refused> {
    match plan.entity {
        EntityPlan::Set(..) => {
            calls.room_for(entity_blocks(calls, plan, command)?, 0)?;
            intern(calls, plan, command).ok_or(NO_ENTITY_LEFT)
        }
        EntityPlan::Keep | EntityPlan::Clear => Ok(EntityId::PROVISIONED),
    }
}

/// The notified entity that `command` names, its use counted.
fn intern(calls: &mut Calls, plan: &RequestPlan, command: &Command<'_>) -> Option<EntityId> {
    let EntityPlan::Set(agent, port) = plan.entity else { return None };
    let text = command.notified_entity().ok()??.map_or(&[][..], |entity| entity.raw);
    calls.endpoints.entities.intern(&mut calls.endpoints.blobs, text, agent, port)
}

/// Does it; `current` is what `@$` means. True: the notified entity is another one now.
pub fn apply(
    calls: &mut Calls,
    now: Time,
    endpoint: EndpointIndex,
    plan: &RequestPlan,
    command: &Command<'_>,
    current: Option<ConnectionId>,
) -> bool {
    let lists = if plan.requests() { lists(command).unwrap_or_default() } else { Lists::default() };
    apply_lists(calls, now, endpoint, (plan, &lists), command, current)
}

/// The same with the lists of the command, as [`lists`] has read them.
pub fn apply_lists(
    calls: &mut Calls,
    now: Time,
    endpoint: EndpointIndex,
    (plan, lists): (&RequestPlan, &Lists<'_>),
    command: &Command<'_>,
    current: Option<ConnectionId>,
) -> bool {
    configure::apply(calls, endpoint, plan.configure);
    if let Some((id, quarantine)) = plan.request {
        let named = intern(calls, plan, command);
        event::request(calls, now, endpoint, &event::Request { id, quarantine, named, lists, current });
    }
    let named = match plan.entity {
        EntityPlan::Keep => return false,
        EntityPlan::Clear => Some(EntityId::SOURCE),
        EntityPlan::Set(..) => intern(calls, plan, command),
    };
    let (Some(named), Some(state)) = (named, calls.endpoints.get(endpoint)) else { return false };
    let before = state.entity;
    calls.endpoints.set_entity(endpoint, named);
    named != before
}
