//! NotificationRequest, alone or encapsulated, and the notified entity that any command may name (RFC 3435 2.3.3, 2.1.4).
//!
//! No event package is supported, so a list with an event in it is refused with 518; empty lists, request identifier, quarantine
//! handling, digit map and notified entity are kept and audited.

use super::configure::{self, ConfigurePlan};
use super::{Calls, DIGIT_MAP_LETTER, ENTITY_REFUSED, NO_ENTITY_LEFT, NO_MEMORY_LEFT, PACKAGE_UNKNOWN, Refused};
use crate::proto::base::{AgentId, Counter, EndpointIndex, HexId};
use crate::proto::codec::mgcp::{Command, EventList, SymbolSet};
use crate::proto::endpoint::{EntityId, Quarantine};

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

/// Checks the request part of `command`, which may be any command that can carry one.
pub fn validate(calls: &Calls, command: &Command<'_>) -> Result<RequestPlan, Refused> {
    let configure = configure::validate(calls, command)?;
    let lists = [command.requested_events()?, command.signals()?, command.detect_events()?];
    if lists.into_iter().flatten().any(|list: EventList<'_>| !list.is_empty()) {
        return Err(PACKAGE_UNKNOWN);
    }
    let map = command.digit_map()?.flatten();
    if map.is_some_and(|map| !map.symbols().without(SymbolSet::BASE).is_empty()) {
        return Err(DIGIT_MAP_LETTER);
    }
    if map.is_some_and(|map| !calls.endpoints.blobs.fits(map.as_bytes().len())) {
        return Err(NO_MEMORY_LEFT);
    }
    let request = match command.request()? {
        Some(id) => {
            let handling = command.quarantine()?;
            Some((id, Quarantine { looping: handling.looping, discard: handling.discard }))
        }
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
            if !calls.endpoints.entities.takes(&calls.endpoints.blobs, entity.raw, agent, entity.port) {
                return Err(NO_ENTITY_LEFT);
            }
            EntityPlan::Set(agent, entity.port)
        }
    };
    Ok(RequestPlan { request, entity, configure })
}

/// Keeps the notified entity of `command` in its table until it is released: [`apply`] cannot lack room for it then.
pub fn hold_entity(calls: &mut Calls, plan: &RequestPlan, command: &Command<'_>) -> Result<EntityId, Refused> {
    let EntityPlan::Set(agent, port) = plan.entity else { return Ok(EntityId::PROVISIONED) };
    let text = command.notified_entity()?.flatten().map_or(&[][..], |entity| entity.raw);
    let endpoints = &mut calls.endpoints;
    endpoints.entities.intern(&mut endpoints.blobs, text, agent, port).ok_or(NO_ENTITY_LEFT)
}

/// Does it. `Some`: the notified entity is now this port of this agent; 0 stands for the provisioned addresses.
pub fn apply(calls: &mut Calls, endpoint: EndpointIndex, plan: &RequestPlan, command: &Command<'_>) -> Option<(AgentId, u16)> {
    configure::apply(calls, endpoint, plan.configure);
    if let Some((id, quarantine)) = plan.request {
        if let Ok(Some(map)) = command.digit_map() {
            calls.endpoints.set_digit_map(endpoint, map.map_or(&[][..], |map| map.as_bytes()));
        }
        let state = calls.endpoints.get_mut(endpoint)?;
        state.request = id;
        state.quarantine = quarantine;
    }
    match plan.entity {
        EntityPlan::Keep => None,
        EntityPlan::Clear => {
            calls.endpoints.set_entity(endpoint, EntityId::SOURCE);
            None
        }
        EntityPlan::Set(agent, port) => {
            let text = command.notified_entity().ok()??.map_or(&[][..], |entity| entity.raw);
            let before = calls.endpoints.get(endpoint)?.entity;
            let entities = &mut calls.endpoints.entities;
            let entity = entities.intern(&mut calls.endpoints.blobs, text, agent, port)?;
            calls.endpoints.set_entity(endpoint, entity);
            (entity != before).then_some((agent, port))
        }
    }
}
