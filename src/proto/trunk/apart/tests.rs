use super::super::{FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, Topology};
use super::*;
use crate::proto::package::{ChannelKind, PackageId, find_item};

const NOW: Time = Time::from_millis(1);
const FAR: CoreId = CoreId(1);

/// A card of two T1s, the second of which is on another core, and that part of it.
fn apart() -> (Apart, Part, EndpointIndex) {
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
    (Apart::new(card(0, 0), [(range, FAR)].into_iter(), 4096), Part::new(card(1, 1), 4096), EndpointIndex(range.first))
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
