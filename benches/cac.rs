//! What one core of a central node does: requests with their octets read, decided and answered, and syncs of thousands to a million calls
//! from a gateway's node to it, in memory. `tollgate load --cluster` measures the same with sockets and threads between.

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use tollgate::proto::base::Time;
use tollgate::proto::cac::central::{self, Central, LinkId};
use tollgate::proto::cac::message::{Framed, Header, Report, Side, ToCentral, Told};
use tollgate::proto::cac::node::{self, Node};
use tollgate::proto::cac::{Admission, Charge, Class, Direction, Guid, Kind, Leg, Limits, Scope, ScopeId, Tree, wire};

const SC: tollgate::proto::cac::ScId = tollgate::proto::cac::ScId(1);
const LINK: LinkId = LinkId(1);

fn tree() -> Arc<Tree> {
    let scopes = vec![
        Scope::new(Kind::Pool, "carrier"),
        Scope::new(Kind::Pool, "city").under(ScopeId(0)),
        Scope::new(Kind::TrunkGroup, "north").under(ScopeId(1)),
    ];
    Arc::new(Tree::new(scopes).expect("a tree"))
}

fn told(tree: &Tree, number: u64) -> Told {
    let charge = tree.charge(ScopeId(2), None, Charge::new(Direction::Inbound, Class::Normal, 80));
    Told { guid: Guid { sc: 1, incarnation: 1, number }, leg: Leg::Ingress, charge, admission: Admission::Granted }
}

/// A central node and a gateway's node with these calls, and their messages as octets.
struct Both {
    central: Central,
    node: Node,
    octets: Vec<u8>,
    now: Time,
}

impl Both {
    fn new(calls: u64) -> Both {
        let tree = tree();
        let limits = vec![Limits::of_calls(4_000_000); tree.len()];
        let now = Time::from_millis(1_000);
        let mut node =
            Node::new(now, node::Settings { calls_max: 4_000_000, ..node::Settings::new(SC, 1) }, tree.clone(), limits.clone(), vec![]);
        node.restore(now, (0..calls).map(|number| told(&tree, number)));
        let mut central = Central::new(now, central::Settings::new(1, vec![SC]), tree, limits, vec![]);
        central.step(now, central::Event::LinkUp(LINK, SC));
        Both { central, node, octets: Vec::new(), now }
    }

    /// All that is said, until nothing is.
    fn talk(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(action) = self.node.poll() {
                quiet = false;
                match action {
                    node::Action::Connect(side) => self.node.step(self.now, node::Event::LinkUp(side)),
                    node::Action::Send(_, framed) => {
                        self.octets.clear();
                        wire::put_to_central(&framed, &mut self.octets);
                        let framed = wire::get_to_central(&self.octets).expect("what was written");
                        self.central.step(self.now, central::Event::Received(LINK, framed));
                    }
                    _ => {}
                }
            }
            while let Some(action) = self.central.poll() {
                quiet = false;
                if let central::Action::Send(_, framed) = action {
                    self.octets.clear();
                    wire::put_to_node(&framed, &mut self.octets);
                    let framed = wire::get_to_node(&self.octets).expect("what was written");
                    self.node.step(self.now, node::Event::Received(Side(0), framed));
                }
            }
            if quiet {
                return;
            }
        }
    }
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("cac");
    for calls in [1_000, 100_000] {
        let mut both = Both::new(calls);
        both.node.step(both.now, node::Event::Time);
        both.talk();
        assert!(both.node.is_in_sync() && both.central.is_active());
        // From here on what the gateway sends is written here, so that only the central node's work is measured.
        let (tree, mut number, mut reports) = (tree(), calls, 0);
        let mut sent = 1_000_000;
        let header = Header { sc: SC, incarnation: 1, epoch: 1, session: 1, number: 0 };
        let mut octets = Vec::new();
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("central: a call asked for, and its end", format!("{calls} up")), |b| {
            b.iter(|| {
                number += 1;
                reports += 1;
                let Told { guid, leg, charge, .. } = told(&tree, number);
                let handle = Default::default();
                let asked = ToCentral::Ask(tollgate::proto::cac::message::Request { handle, guid, leg, charge });
                let ended = ToCentral::Report { number: reports, report: Report::Release(guid, leg) };
                for message in [asked, ended] {
                    sent += 1;
                    octets.clear();
                    wire::put_to_central(&Framed { header: Header { number: sent, ..header }, message }, &mut octets);
                    let framed = wire::get_to_central(&octets).expect("what was written");
                    both.central.step(both.now, central::Event::Received(LINK, framed));
                    while let Some(action) = both.central.poll() {
                        if let central::Action::Send(_, framed) = action {
                            octets.clear();
                            wire::put_to_node(&framed, &mut octets);
                            black_box(&octets);
                        }
                    }
                }
            });
        });
        assert_eq!(both.central.counts().stale, 0);
    }
    group.finish();
}

fn syncs(c: &mut Criterion) {
    let mut group = c.benchmark_group("cac/sync");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_millis(1));
    for calls in [1_000, 10_000, 100_000, 1_000_000] {
        group.throughput(Throughput::Elements(calls));
        group.measurement_time(Duration::from_secs(1));
        group.bench_function(BenchmarkId::from_parameter(calls), |b| {
            b.iter_batched(
                || Both::new(calls),
                |mut both| {
                    both.node.step(both.now, node::Event::Time);
                    both.talk();
                    assert_eq!(both.central.authority().ledger().len() as u64, calls);
                    both
                },
                criterion::BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, decisions, syncs);
criterion_main!(benches);
