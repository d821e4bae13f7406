//! Notified entities that agents have named, each kept once per core with a count of the endpoints that use it (RFC 3435 2.1.4).

use super::blobs::{Blob, Blobs};
use crate::proto::base::AgentId;

/// A notified entity of this core's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EntityId(u16);

impl EntityId {
    /// The provisioned one.
    pub const PROVISIONED: EntityId = EntityId(0);
    /// Cleared by an empty `N:`: whoever sent the latest successful command (G-NET-03).
    pub const SOURCE: EntityId = EntityId(u16::MAX);
}

#[derive(Clone, Copy, Default)]
struct Entity {
    agent: AgentId,
    port: u16,
    text: Blob,
    users: u32,
}

/// The table.
pub struct Entities {
    list: Vec<Entity>,
}

impl Entities {
    /// Room for `limit` different entities at a time.
    pub fn new(limit: u16) -> Entities {
        Entities { list: vec![Entity::default(); usize::from(limit.min(u16::MAX - 2))] }
    }

    /// The entity `text` (as the agent wrote it), which means `port` of `agent`; one more endpoint uses it. `None`: no room.
    pub fn intern(&mut self, blobs: &mut Blobs, text: &[u8], agent: AgentId, port: u16) -> Option<EntityId> {
        let place = match self.place(blobs, text, agent, port) {
            Some(place) => place,
            None => {
                let place = self.list.iter().position(|e| e.users == 0)?;
                *self.list.get_mut(place)? = Entity { agent, port, text: blobs.store(text)?, users: 0 };
                place
            }
        };
        self.list.get_mut(place)?.users += 1;
        Some(EntityId(place as u16 + 1))
    }

    /// How many blocks [`Entities::intern`] would take; `None` when the table is full.
    pub fn blocks(&self, blobs: &Blobs, text: &[u8], agent: AgentId, port: u16) -> Option<u32> {
        match self.place(blobs, text, agent, port) {
            Some(_) => Some(0),
            None => self.list.iter().any(|entity| entity.users == 0).then(|| Blobs::blocks_for(text.len())),
        }
    }

    fn place(&self, blobs: &Blobs, text: &[u8], agent: AgentId, port: u16) -> Option<usize> {
        let same = |e: &Entity| e.users > 0 && e.agent == agent && e.port == port && equal(blobs, e.text, text);
        self.list.iter().position(same)
    }

    /// One endpoint less uses `id`.
    pub fn release(&mut self, blobs: &mut Blobs, id: EntityId) {
        if let Some(entity) = self.entry_mut(id) {
            entity.users = entity.users.saturating_sub(1);
            if entity.users == 0 {
                blobs.free(&mut entity.text);
            }
        }
    }

    /// Agent, port and text of `id`; `None` for the provisioned and the cleared one.
    pub fn get(&self, id: EntityId) -> Option<(AgentId, u16, Blob)> {
        let entity = self.list.get(usize::from(id.0).checked_sub(1)?)?;
        (entity.users > 0).then_some((entity.agent, entity.port, entity.text))
    }

    fn entry_mut(&mut self, id: EntityId) -> Option<&mut Entity> {
        self.list.get_mut(usize::from(id.0).checked_sub(1)?).filter(|e| e.users > 0)
    }
}

fn equal(blobs: &Blobs, blob: Blob, text: &[u8]) -> bool {
    blob.len() == text.len() && {
        let mut rest = text;
        blobs.pieces(blob).all(|piece| {
            let (head, tail) = rest.split_at(piece.len().min(rest.len()));
            rest = tail;
            head == piece
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_shared_counted_and_freed() {
        let (mut blobs, mut entities) = (Blobs::new(8), Entities::new(2));
        let a = entities.intern(&mut blobs, b"ca@a.example.net", AgentId(0), 2727).unwrap();
        assert_eq!(entities.intern(&mut blobs, b"ca@a.example.net", AgentId(0), 2727), Some(a));
        let b = entities.intern(&mut blobs, b"ca@b.example.net", AgentId(1), 2727).unwrap();
        assert!(a != b && entities.intern(&mut blobs, b"c", AgentId(1), 1).is_none());
        assert_eq!(entities.blocks(&blobs, b"c", AgentId(1), 1), None);
        assert_eq!(entities.blocks(&blobs, b"ca@b.example.net", AgentId(1), 2727), Some(0));
        entities.release(&mut blobs, a);
        assert!(entities.get(a).is_some());
        entities.release(&mut blobs, a);
        entities.release(&mut blobs, a);
        assert!(entities.get(a).is_none());
        assert!(entities.intern(&mut blobs, b"c", AgentId(1), 1).is_some());
        assert_eq!(entities.get(EntityId::PROVISIONED), None);
        assert_eq!(entities.get(EntityId::SOURCE), None);
    }
}
