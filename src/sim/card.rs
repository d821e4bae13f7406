//! A card that is watched: the simulated card, and how many connections it has open.

use crate::proto::base::srtp::{MasterKey, MediaKeys};
use crate::proto::base::{CoreId, EndpointIndex, Rng, Time};
use crate::proto::package::EventId;
use crate::proto::plan::Plan;
use crate::proto::trunk::{
    Answer, Card, CardFault, CardOrder, Facility, Hook, Indication, LineOrder, Measure, Media, MediaAddress, MediaReport,
};
use crate::proto::trunk::{SimCard, SimulatedPlan, Srtp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

/// What a watched card has open, opening ones included, and what it is made to tell.
#[derive(Clone, Default)]
pub struct CardWatch(Arc<Mutex<Watched>>);

#[derive(Default)]
struct Watched {
    /// The endpoints of the slots of its connections.
    slots: BTreeMap<u32, EndpointIndex>,
    told: VecDeque<Indication>,
    /// Signals that were begun and not ended by order, and where.
    playing: BTreeSet<(EndpointIndex, Option<u32>, String)>,
    /// What was to be measured of connections, since somebody looked.
    measured: Vec<(u32, Measure)>,
}

impl CardWatch {
    /// Connections open or opening.
    pub fn open(&self) -> usize {
        self.watched().slots.len()
    }

    /// Makes the card tell of all it has open that nothing comes from the far ends.
    pub fn lose_media(&self) {
        let Watched { slots, told, .. } = &mut *self.watched();
        told.extend(slots.iter().map(|(&connection, &endpoint)| Indication::MediaLost { endpoint, connection, again: false }));
    }

    /// What it plays on an endpoint and its connections, brief signals as long as no others of that name were ended.
    pub fn playing(&self, endpoint: EndpointIndex) -> Vec<(Option<u32>, String)> {
        let all = &self.watched().playing;
        all.iter().filter(|(at, ..)| *at == endpoint).map(|(_, connection, signal)| (*connection, signal.clone())).collect()
    }

    /// What was to be measured of connections, since this was asked last.
    pub fn take_measured(&self) -> Vec<(u32, Measure)> {
        std::mem::take(&mut self.watched().measured)
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.0.lock().expect("nothing panics while it is locked")
    }
}

/// The card.
pub(super) struct WatchedCard {
    card: SimCard,
    watch: CardWatch,
}

impl WatchedCard {
    pub fn new(card: SimCard) -> (WatchedCard, CardWatch) {
        let watch = CardWatch::default();
        (WatchedCard { card, watch: watch.clone() }, watch)
    }
}

impl Card for WatchedCard {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        let answer = self.card.open(now, endpoint, connection, media);
        if !matches!(answer, Answer::Refused(_)) {
            assert!(self.watch.watched().slots.insert(connection, endpoint).is_none(), "connection {connection} opened twice");
        }
        answer
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        assert!(self.watch.watched().slots.contains_key(&connection), "connection {connection} modified while it is not open");
        self.card.modify(now, endpoint, connection, media)
    }

    fn transfer(&mut self, now: Time, from: EndpointIndex, to: EndpointIndex, connection: u32) -> bool {
        let done = self.card.transfer(now, from, to, connection);
        if done {
            let before = self.watch.watched().slots.insert(connection, to);
            assert_eq!(before, Some(from), "connection {connection} taken from where it is not");
        }
        done
    }

    fn half_gone(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, at: SocketAddr) {
        assert!(self.watch.watched().slots.contains_key(&connection), "connection {connection} told of its half while it is not open");
        self.card.half_gone(now, endpoint, connection, at);
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        let watched = &mut *self.watch.watched();
        watched.slots.remove(&connection);
        watched.playing.retain(|(_, on, _)| *on != Some(connection));
        self.card.close(now, endpoint, connection)
    }

    fn report(&self, now: Time, connection: u32) -> MediaReport {
        self.card.report(now, connection)
    }

    fn measure(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, what: Measure) {
        self.watch.watched().measured.push((connection, what));
        self.card.measure(now, endpoint, connection, what);
    }

    fn srtp(&self, endpoint: EndpointIndex) -> Srtp {
        self.card.srtp(endpoint)
    }

    fn draw_key(&mut self) -> Option<MasterKey> {
        self.card.draw_key()
    }

    fn protect(&mut self, endpoint: EndpointIndex, connection: u32, keys: &MediaKeys) {
        self.card.protect(endpoint, connection, keys);
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        let told = self.watch.watched().told.pop_front();
        let indication = told.or_else(|| self.card.poll(now));
        if let Some(Indication::Opened { connection, result: Err(_), .. }) = indication {
            self.watch.watched().slots.remove(&connection);
        }
        indication
    }

    fn start_signal(
        &mut self,
        now: Time,
        endpoint: EndpointIndex,
        connection: Option<u32>,
        signal: EventId,
        parameters: &[u8],
    ) -> Result<(), CardFault> {
        let begun = self.card.start_signal(now, endpoint, connection, signal, parameters);
        if begun.is_ok() {
            self.watch.watched().playing.insert((endpoint, connection, format!("{signal:?}")));
        }
        begun
    }

    fn stop_signal(&mut self, now: Time, endpoint: EndpointIndex, connection: Option<u32>, signal: EventId) {
        self.watch.watched().playing.remove(&(endpoint, connection, format!("{signal:?}")));
        self.card.stop_signal(now, endpoint, connection, signal);
    }

    fn order_line(&mut self, now: Time, endpoint: EndpointIndex, order: &LineOrder) {
        self.card.order_line(now, endpoint, order);
    }

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.card.hook(endpoint)
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        self.card.holds(endpoint, event)
    }

    fn deadline(&self) -> Time {
        if self.watch.watched().told.is_empty() { self.card.deadline() } else { Time::ZERO }
    }

    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        self.card.operate(now, order)
    }
}

/// A card with these facilities, and its part of the ports.
fn simulated(plan: &Plan, facilities: &[Facility], part: (u32, u32), connections: u32, seed: u64) -> SimCard {
    SimCard::new(&SimulatedPlan {
        topology: &plan.topology,
        kinds: &plan.kinds(),
        facilities,
        address: IpAddr::from([192, 0, 2, 20]),
        ports: 16384..=49151,
        part,
        connections,
        seed,
    })
}

/// The simulated card of one core: the spans it owns; the lead core's sees the T3s.
pub(super) fn card(plan: &Plan, core: CoreId, seed: u64) -> SimCard {
    let owned: Vec<_> = plan.owned_spans(core).map(|span| span.range).collect();
    let carried = |facility: &Facility| match facility {
        Facility::T3(_) => core == plan.lead(),
        Facility::Span(_) => owned.contains(&plan.topology.endpoints_of(*facility)),
    };
    let facilities: Vec<Facility> = plan.topology.facilities().filter(carried).collect();
    simulated(plan, &facilities, plan.card_part(core, None), plan.limits.connections, seed)
}

/// What `core` carries of H.248 gateways.
pub(super) fn gateway_cards(plan: &Plan, core: CoreId, rng: &mut Rng) -> Vec<(u8, WatchedCard, CardWatch)> {
    let here = plan.gateway_cards().filter(|&(_, on)| on == core);
    here.map(|(gateway, _)| {
        let carried: Vec<_> = plan.carried_spans(gateway, core).collect();
        let mine = |facility: &Facility| matches!(facility, Facility::Span(_)) && carried.contains(&plan.topology.endpoints_of(*facility));
        let facilities: Vec<Facility> = plan.topology.facilities().filter(mine).collect();
        let connections = plan.gateways[usize::from(gateway)].connections;
        let card = simulated(plan, &facilities, plan.card_part(core, Some(gateway)), connections, rng.next());
        let (card, watch) = WatchedCard::new(card);
        (gateway, card, watch)
    })
    .collect()
}
