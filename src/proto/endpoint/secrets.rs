//! The keys of connections whose media is protected, beside the slab: most cards protect none, and then there is no room for them.
//!
//! A command first puts down what is to be (`prepare`), and when the card agrees that becomes what is (`commit`). MediaKeys are wiped when
//! others replace them, and when their connection ends.

use super::connection::{ConnectionId, ConnectionSlot};
use crate::proto::base::EndpointIndex;
use crate::proto::base::srtp::{Crypto, MediaKeys};

/// The keys of the connections of a core.
#[derive(Default)]
pub struct Secrets {
    slots: Box<[Secret]>,
    /// What protects connections of other cores, for commands that are answered here. Each goes with the answer.
    passed: Vec<(EndpointIndex, ConnectionId, Crypto)>,
}

/// The keys of a connection.
#[derive(Clone, Default)]
struct Secret {
    keys: MediaKeys,
    next: Option<MediaKeys>,
}

impl Secrets {
    /// With room for so many connections.
    pub fn new(connections: u32) -> Secrets {
        Secrets { slots: vec![Secret::default(); connections as usize].into(), passed: Vec::new() }
    }

    /// What protects the connection.
    pub fn get(&self, slot: ConnectionSlot) -> Option<&MediaKeys> {
        Some(&self.slots.get(slot as usize)?.keys)
    }

    /// Puts down what is to protect the connection when the card agrees; false where there is no room for keys.
    pub fn prepare(&mut self, slot: ConnectionSlot, keys: MediaKeys) -> bool {
        let secret = self.slots.get_mut(slot as usize);
        let found = secret.is_some();
        if let Some(secret) = secret {
            secret.next = Some(keys);
        }
        found
    }

    /// What was put down holds from now on; `None` when nothing was.
    pub fn commit(&mut self, slot: ConnectionSlot) -> Option<&MediaKeys> {
        let secret = self.slots.get_mut(slot as usize)?;
        secret.keys = secret.next.take()?;
        Some(&secret.keys)
    }

    /// What was put down will not be.
    pub fn forget_next(&mut self, slot: ConnectionSlot) {
        if let Some(secret) = self.slots.get_mut(slot as usize) {
            secret.next = None;
        }
    }

    /// The connection has ended.
    pub fn clear(&mut self, slot: ConnectionSlot) {
        if let Some(secret) = self.slots.get_mut(slot as usize) {
            *secret = Secret::default();
        }
    }

    /// A connection of another core is protected by this.
    pub fn take_in(&mut self, endpoint: EndpointIndex, connection: ConnectionId, crypto: Crypto) {
        self.passed.push((endpoint, connection, crypto));
    }

    /// What protects a connection of another core.
    pub fn of_other(&self, endpoint: EndpointIndex, connection: ConnectionId) -> Option<&Crypto> {
        self.passed.iter().find(|passed| (passed.0, passed.1) == (endpoint, connection)).map(|passed| &passed.2)
    }

    /// The command about it is answered.
    pub fn let_out(&mut self, endpoint: EndpointIndex, connection: ConnectionId) {
        self.passed.retain(|passed| (passed.0, passed.1) != (endpoint, connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::srtp::{LIFETIME, MasterKey, Suite};

    fn keys(octet: u8) -> MediaKeys {
        let crypto = Crypto { tag: 1, suite: Suite::Tag80, key: MasterKey::new([octet; 30]), lifetime: LIFETIME };
        MediaKeys { local: Some(crypto), remote: None }
    }

    #[test]
    fn keys_hold_when_they_are_committed_and_end_with_their_connection() {
        let mut secrets = Secrets::new(2);
        assert!(secrets.prepare(1, keys(1)) && !secrets.prepare(2, keys(1)));
        assert_eq!((secrets.get(1), secrets.get(2)), (Some(&MediaKeys::default()), None));
        assert_eq!(secrets.commit(1), Some(&keys(1)));
        assert!(secrets.prepare(1, keys(2)));
        secrets.forget_next(1);
        assert_eq!(secrets.commit(1), None);
        assert_eq!(secrets.get(1), Some(&keys(1)));
        secrets.clear(1);
        assert_eq!(secrets.get(1), Some(&MediaKeys::default()));
    }

    #[test]
    fn what_was_passed_goes_with_the_answer() {
        let mut secrets = Secrets::default();
        let crypto = keys(3).local.unwrap();
        secrets.take_in(EndpointIndex(4), ConnectionId(5), crypto.clone());
        assert_eq!(secrets.of_other(EndpointIndex(4), ConnectionId(5)), Some(&crypto));
        assert_eq!(secrets.of_other(EndpointIndex(5), ConnectionId(5)), None);
        secrets.let_out(EndpointIndex(4), ConnectionId(5));
        assert_eq!(secrets.of_other(EndpointIndex(4), ConnectionId(5)), None);
    }
}
