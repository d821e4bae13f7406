//! The protocol-neutral endpoint: its service state, its connections, whom it notifies.
//!
//! One core owns an [`Endpoints`]: the endpoints of its spans, their connections, and the pools behind them. It decides nothing about
//! protocol: the verbs in `mgcp` validate and apply. Invariants: a connection is in the slab exactly when its endpoint lists it; the
//! idle set holds exactly the endpoints that are in service and have no connection, pending ones included.

pub mod blobs;
pub mod connection;
pub mod encoding;
pub mod entity;
mod idle;
pub mod options;
mod secrets;

pub use blobs::{Blob, Blobs};
pub use connection::{
    Connection, ConnectionId, ConnectionSlot, Connections, LocalMedia, NO_CONNECTION, Remote, RemoteTypes, TELEPHONE_EVENTS,
};
pub use encoding::{Encoding, Encodings, negotiate};
pub use entity::{Entities, EntityId};
pub use options::{Gain, Network, Options};
pub use secrets::Secrets;

use crate::proto::base::{AgentId, EndpointIndex, EndpointRange, Time};
use idle::IdleSet;
use std::net::SocketAddr;

/// The most connections one endpoint can have (configuration may allow fewer).
pub const CONNECTIONS_PER_ENDPOINT: usize = 4;

/// Endpoints that share one entry of the index by endpoint.
const CHUNK: usize = 16;

/// The coding of a DS0 on the line (`B: e:`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Law {
    /// Mu-law.
    #[default]
    Mu,
    /// A-law.
    A,
}

/// Service state as the restart coordinator decided it (RFC 3435 4.4.5, table M-6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Whether commands other than audits are executed.
    pub in_service: bool,
    /// The code that refuses them when not: 501, or 531 while a failed facility has not been announced.
    pub refusal: u16,
    /// What an audit of RM says.
    pub method: RestartMethod,
    /// Why, as in `E:` (900..=905), 0 when normal.
    pub reason: u16,
}

impl Default for Service {
    fn default() -> Service {
        Service { in_service: true, refusal: 501, method: RestartMethod::Restart, reason: 0 }
    }
}

/// A restart method (RFC 3435 3.2.2.20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RestartMethod {
    /// Out of service later.
    Graceful,
    /// Out of service now.
    Forced,
    /// In service.
    #[default]
    Restart,
    /// Contact was lost and is back.
    Disconnected,
    /// A graceful one is revoked.
    CancelGraceful,
}

impl RestartMethod {
    /// The keyword in `RM:`.
    pub const fn keyword(self) -> &'static str {
        match self {
            RestartMethod::Graceful => "graceful",
            RestartMethod::Forced => "forced",
            RestartMethod::Restart => "restart",
            RestartMethod::Disconnected => "disconnected",
            RestartMethod::CancelGraceful => "cancel-graceful",
        }
    }
}

/// Whether the agent knows of the endpoint's present service state (RFC 3435 4.4.6: the restart is the first thing it sees).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Announcement {
    /// Not told yet, and no RestartInProgress was sent.
    #[default]
    Waiting,
    /// A RestartInProgress is out, unanswered: the one with this number among the announcements of the core.
    Outstanding(u32),
    /// Told and acknowledged.
    Done,
}

/// One endpoint; whole cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Endpoint {
    /// Its connections; [`NO_CONNECTION`] where there is none.
    pub connections: [ConnectionSlot; CONNECTIONS_PER_ENDPOINT],
    /// Service state.
    pub service: Service,
    /// When it leaves service, as the latest graceful RestartInProgress said; only meaningful while that is its method.
    pub leaves_at: Option<Time>,
    /// Whether the agent was told.
    pub announcement: Announcement,
    /// Whether it is disconnected (RFC 3435 4.3): its agent did not answer, and has not confirmed since that it knows.
    pub disconnected: bool,
    /// Since when; only meaningful while it is.
    pub disconnected_at: Time,
    /// Whom it notifies.
    pub entity: EntityId,
    /// The agent it notifies until told otherwise.
    pub provisioned: AgentId,
    /// Which of the gateway's domain names the latest command used (G-EPN-05).
    pub domain: u8,
    /// Line coding.
    pub law: Law,
    /// Whether an agent has set the line coding.
    pub law_given: bool,
    /// Where the event machine of the protocol keeps what it knows of it; `None`: as after a restart.
    pub watch: Option<u32>,
    /// Source of the latest successful command other than an audit (G-NET-03).
    pub source: Option<(AgentId, SocketAddr)>,
}

impl Endpoint {
    fn new(law: Law, provisioned: AgentId) -> Endpoint {
        Endpoint {
            connections: [NO_CONNECTION; CONNECTIONS_PER_ENDPOINT],
            service: Service::default(),
            leaves_at: None,
            announcement: Announcement::default(),
            disconnected: false,
            disconnected_at: Time::NEVER,
            entity: EntityId::PROVISIONED,
            provisioned,
            domain: 0,
            law,
            law_given: false,
            watch: None,
            source: None,
        }
    }

    /// Slots of its connections.
    pub fn connection_slots(&self) -> impl Iterator<Item = ConnectionSlot> + use<> {
        self.connections.into_iter().filter(|&slot| slot != NO_CONNECTION)
    }

    /// The method that describes it, as a RestartInProgress sent now would say.
    pub fn method(&self) -> RestartMethod {
        if self.disconnected && self.service.in_service { RestartMethod::Disconnected } else { self.service.method }
    }

    /// The delay such a RestartInProgress would carry at `now`, in seconds: after how many it leaves service, or for how many it was
    /// disconnected; 0 when it says neither, or the endpoint leaves with its last connection.
    pub fn delay(&self, now: Time) -> u32 {
        match (self.method(), self.leaves_at) {
            (RestartMethod::Disconnected, _) => now.since(self.disconnected_at).as_secs() as u32,
            (RestartMethod::Graceful, Some(at)) => at.since(now).as_secs_f64().round() as u32,
            _ => 0,
        }
    }

    /// Whether it is in service and has no connection.
    pub fn is_idle(&self) -> bool {
        self.service.in_service && self.connections == [NO_CONNECTION; CONNECTIONS_PER_ENDPOINT]
    }

    /// How many connections it has.
    pub fn connection_count(&self) -> usize {
        self.connection_slots().count()
    }
}

/// One run of endpoints of a core: a span it owns.
#[derive(Clone, Copy, Debug)]
pub struct OwnedSpan {
    /// The endpoints.
    pub range: EndpointRange,
    /// Line coding they start with.
    pub law: Law,
    /// The agent they notify until told otherwise.
    pub agent: AgentId,
}

/// Sizes of the pools of [`Endpoints`].
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Connections at a time.
    pub connections: u32,
    /// Blocks of 240 bytes for remote descriptions, lists of events, digit maps and entity names.
    pub blob_blocks: u32,
    /// Different notified entities at a time.
    pub entities: u16,
}

/// The endpoints one core owns.
pub struct Endpoints {
    /// Where each span's endpoints start in `list`, ordered by first endpoint.
    spans: Vec<(EndpointRange, u32)>,
    /// For each [`CHUNK`] of endpoints, the first of `spans` that ends behind its start: every command looks its endpoint up several
    /// times, and a search among thousands of spans would cost more each time than the endpoint itself.
    chunks: Vec<u32>,
    list: Vec<Endpoint>,
    idle: IdleSet,
    /// The connections of all of them.
    pub connections: Connections,
    /// Byte strings kept with endpoints and connections.
    pub blobs: Blobs,
    /// Notified entities in use.
    pub entities: Entities,
    /// Keys of connections, where there is a card that protects their media.
    pub secrets: Secrets,
}

impl Endpoints {
    /// The bytes that so many endpoints take with these pools, all of them set aside at the start.
    pub fn memory(endpoints: u32, limits: &PoolLimits) -> u64 {
        let each = |count: u32, size: usize| u64::from(count) * size as u64;
        let connections = each(limits.connections, size_of::<Connection>() + size_of::<ConnectionSlot>());
        each(endpoints, size_of::<Endpoint>()) + connections + Blobs::memory(limits.blob_blocks)
    }

    /// The endpoints of `spans` (in ascending order, not overlapping).
    pub fn new(spans: &[OwnedSpan], limits: PoolLimits, seed: u64) -> Endpoints {
        let mut list = Vec::new();
        let mut starts = Vec::new();
        for span in spans {
            starts.push((span.range, list.len() as u32));
            list.extend(span.range.iter().map(|_| Endpoint::new(span.law, span.agent)));
        }
        let idle = IdleSet::new(list.len());
        let mut chunks = Vec::new();
        for (index, (range, _)) in starts.iter().enumerate() {
            chunks.resize(chunks.len().max((range.first.saturating_add(range.count) as usize).div_ceil(CHUNK)), index as u32);
        }
        Endpoints {
            spans: starts,
            chunks,
            list,
            idle,
            connections: Connections::new(limits.connections, seed),
            blobs: Blobs::new(limits.blob_blocks),
            entities: Entities::new(limits.entities),
            secrets: Secrets::default(),
        }
    }

    /// How many endpoints the core owns.
    pub fn count(&self) -> u32 {
        self.list.len() as u32
    }

    /// The runs of endpoints the core owns, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = EndpointRange> + '_ {
        self.spans.iter().map(|&(range, _)| range)
    }

    /// Whether the core owns `endpoint`.
    #[inline]
    pub fn owns(&self, endpoint: EndpointIndex) -> bool {
        self.place(endpoint).is_some()
    }

    /// One endpoint.
    #[inline]
    pub fn get(&self, endpoint: EndpointIndex) -> Option<&Endpoint> {
        self.list.get(self.place(endpoint)?)
    }

    /// One endpoint, to change. Call [`Endpoints::refresh_idle`] after a change of service state.
    #[inline]
    pub fn get_mut(&mut self, endpoint: EndpointIndex) -> Option<&mut Endpoint> {
        let place = self.place(endpoint)?;
        self.list.get_mut(place)
    }

    /// The connection `id` of `endpoint`, with its slot; not one that is pending.
    pub fn find(&self, endpoint: EndpointIndex, id: ConnectionId) -> Option<(ConnectionSlot, &Connection)> {
        let endpoint = self.get(endpoint)?;
        endpoint.connection_slots().find_map(|slot| self.connections.get(slot).filter(|c| c.id == id && !c.pending).map(|c| (slot, c)))
    }

    /// Whether `endpoint` has a connection `id` whose creation still runs.
    pub fn is_pending(&self, endpoint: EndpointIndex, id: ConnectionId) -> bool {
        let mut slots = self.get(endpoint).into_iter().flat_map(Endpoint::connection_slots);
        slots.any(|slot| self.connections.get(slot).is_some_and(|connection| connection.id == id && connection.pending))
    }

    /// Adds `connection` to its endpoint; `None` when the endpoint or the slab is full.
    pub fn connect(&mut self, connection: Connection) -> Option<ConnectionSlot> {
        let place = self.place(connection.endpoint)?;
        let free = self.list.get_mut(place)?.connections.iter_mut().find(|slot| **slot == NO_CONNECTION)?;
        *free = self.connections.insert(connection)?;
        let slot = *free;
        self.idle.set(place as u32, false);
        Some(slot)
    }

    /// Reads what commands for these endpoints will read, so that it is in the cache by then; the result means nothing. Loops as short as
    /// these let the processor wait for all of it at once.
    pub fn read_ahead(&self, endpoints: &[EndpointIndex]) -> u64 {
        let states = || endpoints.iter().filter_map(|&endpoint| self.get(endpoint));
        // The rows are two lines long; what is read of them is at both ends.
        let rows = states().fold(0, |sum: u64, state| sum + u64::from(state.connections[0]) + u64::from(state.domain));
        let connections = states().filter_map(|state| self.connections.get(state.connections[0]));
        let halves = connections.fold(0, |sum: u64, connection| sum + u64::from(connection.id.0) + u64::from(connection.pending));
        rows.wrapping_add(halves).wrapping_add(self.blobs.read_ahead(2 * endpoints.len()))
    }

    /// Takes a connection off its endpoint and frees what it kept.
    pub fn disconnect(&mut self, slot: ConnectionSlot) -> Option<Connection> {
        let mut connection = self.connections.remove(slot)?;
        self.blobs.free(&mut connection.remote_text);
        self.secrets.clear(slot);
        if let Some(place) = self.place(connection.endpoint)
            && let Some(state) = self.list.get_mut(place)
        {
            state.connections.iter_mut().filter(|s| **s == slot).for_each(|s| *s = NO_CONNECTION);
            self.idle.set(place as u32, state.is_idle());
        }
        Some(connection)
    }

    /// Has `endpoint` list the connection, with which it counts as busy, in place of whoever does; nobody when it has as many as it may,
    /// or for `None`. The connection stays as it is otherwise.
    pub fn relist(&mut self, slot: ConnectionSlot, endpoint: Option<EndpointIndex>) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let before = connection.endpoint;
        connection.endpoint = endpoint.unwrap_or(before);
        if let Some(place) = self.place(before)
            && let Some(state) = self.list.get_mut(place)
        {
            state.connections.iter_mut().filter(|listed| **listed == slot).for_each(|listed| *listed = NO_CONNECTION);
            self.idle.set(place as u32, state.is_idle());
        }
        if let Some(place) = endpoint.and_then(|endpoint| self.place(endpoint))
            && let Some(state) = self.list.get_mut(place)
            && let Some(free) = state.connections.iter_mut().find(|listed| **listed == NO_CONNECTION)
        {
            *free = slot;
            self.idle.set(place as u32, false);
        }
    }

    /// Back to the state after a restart: provisioned entity (G-RST-12). Connections and the watch must be gone already.
    pub fn reset(&mut self, endpoint: EndpointIndex) {
        let Some(place) = self.place(endpoint) else { return };
        let Some(state) = self.list.get_mut(place) else { return };
        self.entities.release(&mut self.blobs, std::mem::replace(&mut state.entity, EntityId::PROVISIONED));
        state.source = None;
    }

    /// Changes whom `endpoint` notifies; the entity must have been interned for it.
    pub fn set_entity(&mut self, endpoint: EndpointIndex, entity: EntityId) {
        let Some(place) = self.place(endpoint) else { return };
        let Some(state) = self.list.get_mut(place) else { return };
        self.entities.release(&mut self.blobs, std::mem::replace(&mut state.entity, entity));
    }

    /// An idle endpoint among `range` other than `except`, searching on from where the last search of this core ended.
    pub fn find_idle(&mut self, range: EndpointRange, except: Option<EndpointIndex>) -> Option<EndpointIndex> {
        let first = range.first;
        let last = range.first.checked_add(range.count)?;
        for &(span, start) in &self.spans {
            let low = span.first.max(first);
            let high = (span.first + span.count).min(last);
            if low < high {
                let local = start + (low - span.first)..start + (high - span.first);
                let mut next = || self.idle.next_in(local.clone()).map(|found| EndpointIndex(span.first + (found - start)));
                // The search goes round: behind the excepted one comes another, if there is another.
                let found = next().and_then(|found| if Some(found) == except { next() } else { Some(found) });
                if found.is_some() && found != except {
                    return found;
                }
            }
        }
        None
    }

    /// Recomputes whether `endpoint` is idle.
    pub fn refresh_idle(&mut self, endpoint: EndpointIndex) {
        if let Some(place) = self.place(endpoint)
            && let Some(state) = self.list.get(place)
        {
            self.idle.set(place as u32, state.is_idle());
        }
    }

    #[inline]
    fn place(&self, endpoint: EndpointIndex) -> Option<usize> {
        let from = *self.chunks.get(endpoint.0 as usize / CHUNK)?;
        // A span has at least as many endpoints as a chunk, so the second one is the last to ask.
        let (range, start) =
            self.spans.get(from as usize..)?.iter().find(|(range, _)| endpoint.0 < range.first.saturating_add(range.count))?;
        range.contains(endpoint).then(|| (start + (endpoint.0 - range.first)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints() -> Endpoints {
        let span = |first| OwnedSpan { range: EndpointRange { first, count: 24 }, law: Law::Mu, agent: AgentId(0) };
        Endpoints::new(&[span(0), span(48)], PoolLimits { connections: 64, blob_blocks: 8, entities: 4 }, 7)
    }

    #[test]
    fn a_core_knows_its_own_endpoints_only() {
        let endpoints = endpoints();
        assert!(endpoints.owns(EndpointIndex(0)) && endpoints.owns(EndpointIndex(71)));
        assert!(!endpoints.owns(EndpointIndex(24)) && !endpoints.owns(EndpointIndex(72)));
        for (first, count) in [(0, 1), (3, 40), (50, 1), (51, 5), (200, 33), (u32::MAX - 3, 3)] {
            let spans: Vec<OwnedSpan> = [(0, 1), (3, 40), (50, 1), (51, 5), (200, 33)]
                .map(|(first, count)| OwnedSpan { range: EndpointRange { first, count }, law: Law::Mu, agent: AgentId(0) })
                .into();
            let endpoints = Endpoints::new(&spans, PoolLimits { connections: 1, blob_blocks: 1, entities: 1 }, 7);
            let range = EndpointRange { first, count };
            for endpoint in range.iter() {
                let known = spans.iter().any(|span| span.range.contains(endpoint));
                assert_eq!(endpoints.owns(endpoint), known, "{endpoint:?}");
            }
        }
    }

    #[test]
    fn an_endpoint_is_idle_until_it_has_a_connection_or_leaves_service() {
        let mut endpoints = endpoints();
        let all = EndpointRange { first: 48, count: 24 };
        let mut found = Vec::new();
        while let Some(endpoint) = endpoints.find_idle(all, None) {
            endpoints.connect(Connection { endpoint, ..Connection::default() }).unwrap();
            found.push(endpoint);
        }
        found.sort_unstable();
        assert_eq!(found, all.iter().collect::<Vec<_>>());
        let slot = endpoints.get(EndpointIndex(50)).unwrap().connection_slots().next().unwrap();
        endpoints.disconnect(slot).unwrap();
        assert_eq!(endpoints.find_idle(all, None), Some(EndpointIndex(50)));
        endpoints.get_mut(EndpointIndex(50)).unwrap().service.in_service = false;
        endpoints.refresh_idle(EndpointIndex(50));
        assert_eq!(endpoints.find_idle(all, None), None);
    }

    /// The excepted endpoint is passed over, in its own span and in the search of several.
    #[test]
    fn the_excepted_endpoint_is_never_found() {
        let mut endpoints = endpoints();
        let all = EndpointRange { first: 0, count: 72 };
        for endpoint in (EndpointRange { first: 0, count: 24 }).iter().filter(|endpoint| endpoint.0 != 5) {
            endpoints.connect(Connection { endpoint, ..Connection::default() }).unwrap();
        }
        let except = Some(EndpointIndex(5));
        assert_eq!(endpoints.find_idle(EndpointRange { first: 0, count: 24 }, except), None);
        for _ in 0..30 {
            assert!(endpoints.find_idle(all, except).is_some_and(|found| found.0 >= 48));
        }
        assert_eq!(endpoints.find_idle(all, None), except);
    }

    #[test]
    fn an_endpoint_takes_four_connections() {
        let mut endpoints = endpoints();
        let connection = Connection { endpoint: EndpointIndex(3), ..Connection::default() };
        assert!((0..4).all(|_| endpoints.connect(connection).is_some()));
        assert!(endpoints.connect(connection).is_none());
        assert_eq!(endpoints.connections.count(), 4);
    }
}
