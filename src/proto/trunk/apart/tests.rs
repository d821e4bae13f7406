use super::super::{FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Topology};
use super::*;
use crate::proto::package::{ChannelKind, PackageId, find_item};

const NOW: Time = Time::from_millis(1);
const FAR: CoreId = CoreId(1);

/// A card of two T1s, the second of which is on another core, and that part of it.
fn apart() -> (Apart, Part, EndpointIndex) {
    apart_of(|card| card)
}

/// The same, with what `of` makes of the card of that part.
fn apart_of(of: impl Fn(Box<dyn Card + Send>) -> Box<dyn Card + Send>) -> (Apart, Part, EndpointIndex) {
    let t1 = |unit| FacilityPlan { kind: FacilityKind::T1, unit, common_channel: false };
    let topology = Topology::new(&[t1(1), t1(2)]).unwrap();
    let card = |span, part| {
        Box::new(SimCard::new(&SimulatedPlan {
            topology: &topology,
            kinds: &[ChannelKind::default(); 2],
            facilities: &[Facility::Span(SpanIndex(span))],
            address: [192, 0, 2, 10].into(),
            ports: 16_384..=32_767,
            part: (part, 2),
            connections: 4096,
            seed: 1,
        }))
    };
    let range = topology.endpoints_of(Facility::Span(SpanIndex(1)));
    (Apart::new(card(0, 0), [(range, FAR)].into_iter(), 4096), Part::new(of(card(1, 1)), 4096), EndpointIndex(range.first))
}

/// Everything that was ordered is done, and everything that was said is heard.
fn run(apart: &mut Apart, part: &mut Part) -> Vec<Indication> {
    apart.send(|_, order| {
        part.handle(NOW, order);
        true
    });
    part.poll(NOW, |_| {});
    part.send(|answer| {
        apart.handle(FAR, false, answer);
        true
    });
    std::iter::from_fn(|| apart.poll(NOW)).collect()
}

#[test]
fn a_late_answer_is_never_taken_for_that_of_another_connection() {
    let (mut apart, mut part, endpoint) = apart();
    let media = Media { remote: Some(([192, 0, 2, 1], 5004).into()), ..Media::default() };
    let mut late = Vec::new();
    assert_eq!(apart.open(NOW, endpoint, 7, &media), Answer::Later);
    apart.send(|_, order| {
        part.handle(NOW, order);
        true
    });
    part.send(|answer| {
        late.push(answer);
        true
    });
    apart.close(NOW, endpoint, 7);
    // The same place, once here and once there again.
    assert!(matches!(apart.open(NOW, EndpointIndex(0), 7, &media), Answer::Now(_)));
    late.iter().for_each(|answer| apart.handle(FAR, false, *answer));
    assert_eq!(apart.poll(NOW), None);
    apart.close(NOW, EndpointIndex(0), 7);
    assert_eq!(apart.open(NOW, endpoint, 7, &media), Answer::Later);
    late.iter().for_each(|answer| apart.handle(FAR, false, *answer));
    assert_eq!(apart.poll(NOW), None);
    let said = run(&mut apart, &mut part);
    assert!(matches!(said[..], [Indication::Opened { connection: 7, result: Ok(_), .. }]), "{said:?}");
}

#[test]
fn a_part_that_takes_nothing_is_ordered_nothing_new_and_all_that_ends() {
    let (mut apart, mut part, endpoint) = apart();
    let opened = (0..4096).take_while(|&n| apart.open(NOW, endpoint, n, &Media::default()) == Answer::Later).count();
    assert_eq!(opened, BEHIND);
    assert!(apart.stands_still(endpoint) && !apart.stands_still(EndpointIndex(0)) && !apart.ask_report(0, 1));
    let ring = find_item(PackageId::G, b"rt").expect("a signal");
    assert!(apart.start_signal(NOW, endpoint, None, ring, b"").is_err());
    (0..opened as u32).for_each(|connection| {
        apart.close(NOW, endpoint, connection);
    });
    assert_eq!(run(&mut apart, &mut part), [], "nobody waits for them any more");
    assert!(!apart.stands_still(endpoint));
    assert!(part.connections.iter().all(|(_, open)| !open));
}

#[test]
fn what_is_seen_there_is_told_whole() {
    let (mut apart, mut part, endpoint) = apart();
    let event = find_item(PackageId::D, b"5").expect("a digit");
    let parameters = EventText::new(&[b'x'; EventText::MAX]);
    part.card_mut().operate(NOW, &CardOrder::Event { endpoint, connection: None, event, parameters }).unwrap();
    let wanted = Indication::Event { endpoint, connection: None, event, parameters };
    assert_eq!(run(&mut apart, &mut part), [wanted]);
}

/// A card whose connections have been played like this.
struct Played(Box<dyn Card + Send>);

const PLAYED: MediaReport = MediaReport {
    packets_sent: 50,
    octets_sent: 8_000,
    packets_received: 49,
    octets_received: 7_840,
    packets_lost: 1,
    jitter_ms: 4,
    latency_ms: 30,
    late: 2,
    concealed_octets: 160,
    slips: 3,
    replayed: 0,
    unauthentic: 0,
};

impl Card for Played {
    fn open(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        self.0.open(now, endpoint, connection, media)
    }

    fn modify(&mut self, now: Time, endpoint: EndpointIndex, connection: u32, media: &Media) -> Answer<MediaAddress> {
        self.0.modify(now, endpoint, connection, media)
    }

    fn close(&mut self, now: Time, endpoint: EndpointIndex, connection: u32) -> MediaReport {
        self.0.close(now, endpoint, connection);
        PLAYED
    }

    fn report(&self, _: Time, _: u32) -> MediaReport {
        PLAYED
    }

    fn start_signal(&mut self, _: Time, _: EndpointIndex, _: Option<u32>, _: EventId, _: &[u8]) -> Result<(), CardFault> {
        Ok(())
    }

    fn stop_signal(&mut self, _: Time, _: EndpointIndex, _: Option<u32>, _: EventId) {}

    fn hook(&self, endpoint: EndpointIndex) -> Option<Hook> {
        self.0.hook(endpoint)
    }

    fn holds(&self, endpoint: EndpointIndex, event: EventId) -> bool {
        self.0.holds(endpoint, event)
    }

    fn poll(&mut self, now: Time) -> Option<Indication> {
        self.0.poll(now)
    }

    fn deadline(&self) -> Time {
        self.0.deadline()
    }

    fn operate(&mut self, now: Time, order: &CardOrder) -> Result<(), &'static str> {
        self.0.operate(now, order)
    }
}

/// What a card there counted of a connection is told whole, how it was played in front of what `P:` has, and is never a later connection's.
#[test]
fn what_was_counted_there_is_told_whole_and_of_that_connection() {
    let (mut apart, mut part, endpoint) = apart_of(|card| Box::new(Played(card)));
    let media = Media { remote: Some(([192, 0, 2, 1], 5004).into()), ..Media::default() };
    assert_eq!(apart.open(NOW, endpoint, 7, &media), Answer::Later);
    run(&mut apart, &mut part);
    assert!(apart.ask_report(7, 21));
    apart.send(|_, order| {
        part.handle(NOW, order);
        true
    });
    let mut said = Vec::new();
    part.send(|answer| {
        said.push(answer);
        true
    });
    assert!(matches!(said[..], [PartAnswer::Playout { counts: [2, 160, 3], .. }, PartAnswer::Report { ticket: 21, .. }]), "{said:?}");
    said.iter().for_each(|answer| apart.handle(FAR, false, *answer));
    assert_eq!((apart.take_ticket(), apart.report(NOW, 7)), (Some(21), PLAYED));
    apart.close(NOW, endpoint, 7);
    assert_eq!(apart.open(NOW, endpoint, 7, &media), Answer::Later);
    said.iter().for_each(|answer| apart.handle(FAR, false, *answer));
    assert_eq!(apart.report(NOW, 7), MediaReport::default());
}
