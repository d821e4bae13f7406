//! What a command that waits for the card, or for another core, will store when it goes on: kept free for it, so that it cannot lack room
//! then (RFC 3435 4.4.2: a transaction is done as a whole or not at all).

use super::request::{self, RequestPlan};
use super::{Calls, Refused};
use crate::proto::base::EndpointIndex;
use crate::proto::codec::mgcp::Command;
use crate::proto::endpoint::{Blobs, EntityId};

/// Room kept for one command; given back once, right before the command is applied or when it fails.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Room {
    /// Blocks for its description and lists.
    blocks: u32,
    /// Its notified entity, in use for as long.
    entity: EntityId,
}

impl Room {
    /// For `command`, which was found possible on `endpoint`. What it replaces is not counted on: that may be gone by then.
    pub(super) fn keep(
        calls: &mut Calls,
        endpoint: EndpointIndex,
        request: Option<&RequestPlan>,
        command: &Command<'_>,
    ) -> Result<Room, Refused> {
        let lists = request.filter(|plan| plan.requests()).map_or(0, |_| request::blocks(calls, command, endpoint));
        let blocks = lists + command.description.map_or(0, |text| Blobs::blocks_for(text.len()));
        let entity = match request {
            Some(plan) => request::hold_entity(calls, plan, command)?,
            None => EntityId::PROVISIONED,
        };
        let room = Room { blocks: 0, entity };
        if !calls.endpoints.blobs.reserve(blocks) {
            room.give_back(calls);
            return Err(calls.no_room());
        }
        Ok(Room { blocks, entity })
    }

    /// It is about to be used, or not needed any more.
    pub fn give_back(self, calls: &mut Calls) {
        let endpoints = &mut calls.endpoints;
        endpoints.blobs.unreserve(self.blocks);
        endpoints.entities.release(&mut endpoints.blobs, self.entity);
    }
}
