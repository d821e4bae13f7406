//! What admission costs a call in the call path: finding its scopes, taking places, giving them back, alone and in a cluster by quota; and
//! one decision of the authority that a central node runs, with so many calls up.

#[path = "harness/scopes.rs"]
mod scopes;

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tollgate::proto::base::Time;
use tollgate::proto::cac::asker::{Asker, FromLink};
use tollgate::proto::cac::share::Holder;
use tollgate::proto::cac::{Authority, Charge, Class, Direction, Guid, Key, Limits, Tree};

fn charge(tree: &Tree) -> Charge {
    let remote = std::net::Ipv4Addr::new(192, 0, 200, 50).into();
    tree.charge(scopes::NORTH, Some(black_box(remote)), Charge::new(Direction::Outbound, Class::Normal, 80))
}

fn admission(c: &mut Criterion) {
    let tree = Arc::new(scopes::tree());
    let limits = vec![Limits::of_calls(1_000_000); tree.len()];
    let mut holder = Holder::new(&limits, 4);
    assert_eq!(charge(&tree).scopes().count(), 5);
    c.bench_function("admission/call in five scopes: charge, take, release", |b| {
        b.iter(|| {
            let charge = charge(&tree);
            black_box(holder.take(&charge, &Charge::EMPTY));
            holder.release(&charge, &Charge::EMPTY);
        });
    });
    // In a cluster, by quota: what the node hears of it is taken away as the link thread does.
    let mut asker = Asker::new(0, 8, tree.len(), 8);
    for scope in charge(&tree).scopes() {
        asker.handle(FromLink::Quota(scope, 1_000, 1));
    }
    asker.handle(FromLink::Lease(Time::NEVER));
    c.bench_function("admission/call in five scopes by quota: charge, begin, end", |b| {
        b.iter(|| {
            let charge = charge(&tree);
            let (call, charge) = asker.begin(Time::ZERO, &charge).expect("a place in each");
            black_box(holder.take(&charge, &Charge::EMPTY));
            asker.keep(0, call);
            holder.release(&charge, &Charge::EMPTY);
            asker.end(0, &charge);
            while asker.first().is_some() {
                asker.sent();
            }
        });
    });
    for calls in [1_000, 100_000] {
        let mut authority = Authority::new(tree.clone(), limits.clone(), 1_000_000);
        let key = |number| Key { guid: Guid { number, ..Guid::default() }, ..Key::default() };
        let charge = charge(&tree);
        for number in 0..calls {
            black_box(authority.ask(Time::ZERO, key(number), charge, 1));
        }
        let mut next = calls;
        c.bench_function(&format!("admission/authority: ask and release, {calls} up"), |b| {
            b.iter(|| {
                next += 1;
                black_box(authority.ask(Time::ZERO, key(next), charge, 1));
                black_box(authority.release(&key(next - calls)))
            });
        });
    }
}

criterion_group!(benches, admission);
criterion_main!(benches);
