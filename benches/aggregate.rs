//! What do names cost? Looking one up, reading a pattern, and finding the fewest names for a set of endpoints, from one T1 to
//! 100,000 endpoints.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::proto::aggregate::{Cover, EndpointSet, Forms};
use tollgate::proto::base::{EndpointIndex, Rng};
use tollgate::proto::trunk::{FacilityKind, FacilityPlan, Topology};

fn gateway(t3s: u32) -> Topology {
    let plan = |kind, unit| FacilityPlan { kind, unit, common_channel: false };
    let plan: Vec<_> = match t3s {
        0 => vec![plan(FacilityKind::T1, 1)],
        _ => (1..=t3s).map(|unit| plan(FacilityKind::T3, unit)).collect(),
    };
    Topology::new(&plan).expect("a plan without duplicates")
}

fn names(c: &mut Criterion) {
    let topology = gateway(149);
    let mut rng = Rng::new(1);
    let written: Vec<Vec<u8>> = (0..4096)
        .map(|_| {
            let mut out = [0; 64];
            let length = topology.write_name(EndpointIndex(rng.below(u64::from(topology.len())) as u32), &mut out);
            out[..length].to_vec()
        })
        .collect();
    let mut next = written.iter().cycle();
    c.bench_function("lookup of a name", |b| b.iter(|| topology.lookup(black_box(next.next().expect("endless")))));
    let mut out = [0; 64];
    c.bench_function("writing a name", |b| b.iter(|| topology.write_name(EndpointIndex(black_box(77_777)), &mut out)));
    let hostile = vec!["*"; 127].join("/");
    for name in ["ds/ds3-7/*/*", "*", "ds/*/*/1", "ds/ds3-7/ds1-[1-2]/[1,3,20-24]", hostile.as_str()] {
        let label = name.get(..30).unwrap_or(name);
        c.bench_function(&format!("reading a pattern/{label}"), |b| b.iter(|| topology.resolve(black_box(name.as_bytes()), true)));
    }
}

fn covers(c: &mut Criterion) {
    for t3s in [0, 1, 10, 149] {
        let topology = gateway(t3s);
        let mut rng = Rng::new(2);
        let mut full = EndpointSet::new(topology.len());
        full.insert_range(topology.endpoints());
        let mut sparse = full.clone();
        (0..topology.len() / 500).for_each(|_| sparse.remove(EndpointIndex(rng.below(u64::from(topology.len())) as u32)));
        let mut alternating = EndpointSet::new(topology.len());
        (0..topology.len()).step_by(2).for_each(|e| alternating.insert(EndpointIndex(e)));
        for (shape, set) in [("all", &full), ("one in 500 missing", &sparse), ("every second", &alternating)] {
            for ranges in [false, true] {
                let forms = Forms { ranges, ..Forms::default() };
                let label = format!("{} endpoints, {shape}{}", topology.len(), if ranges { ", ranges" } else { "" });
                c.bench_function(&format!("cover/{label}"), |b| {
                    b.iter(|| {
                        let mut cover = Cover::new(forms);
                        std::iter::from_fn(|| cover.next(&topology, black_box(set))).count()
                    });
                });
            }
        }
    }
}

criterion_group!(benches, names, covers);
criterion_main!(benches);
