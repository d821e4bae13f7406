//! Quotas by themselves: whoever gives out, whoever has, and what lies between.

use super::super::charge::{Charge, Class, Direction};
use super::super::limits::Rate;
use super::super::message::QuotaUse;
use super::super::scope::ScopeId;
use super::*;
use crate::proto::base::{Rng, Time};

const SCOPE: ScopeId = ScopeId(0);

fn told(live: u32, bound: u32, want: u32) -> QuotaUse {
    QuotaUse { scope: SCOPE, live, bound, want }
}

fn quota(lessor: &Lessor<u8>, holder: u8) -> u32 {
    lessor.part(holder, SCOPE).quota
}

/// Three that are here and have told that they have nothing.
fn three() -> Lessor<u8> {
    let mut lessor = Lessor::new(1);
    for holder in 0..3 {
        lessor.join(holder, true);
        lessor.adopt(holder, &told(0, 0, 0));
        lessor.balance(SCOPE, 300, 3);
    }
    lessor
}

#[test]
fn only_what_a_number_of_calls_says_all_about_is_given_out() {
    let calls = Limits::of_calls(24);
    assert!(is_given(Giving::Auto, &calls, 3) && !is_given(Giving::Auto, &calls, 4) && is_given(Giving::Always, &calls, 4));
    assert!(!is_given(Giving::Never, &calls, 3) && !is_given(Giving::Always, &calls, 0));
    let rate = Some(Rate { per_second: 1, burst: 1 });
    for limits in [
        Limits { inbound: 5, ..calls },
        Limits { outbound: 5, ..calls },
        Limits { kbits: 5, ..calls },
        Limits { inbound_rate: rate, ..calls },
        Limits { outbound_rate: rate, ..calls },
        Limits { reserved_inbound: 1, ..calls },
        Limits { reserved_priority: 1, ..calls },
        Limits { emergency_limited: true, ..calls },
    ] {
        assert!(!is_given(Giving::Always, &limits, 1), "{limits:?}");
    }
    assert!(is_given(Giving::Auto, &Limits::default(), 1000));
}

/// Half of all at the start; who soon has no more gets more, before it lacks any.
#[test]
fn who_soon_has_no_place_left_gets_more() {
    let mut lessor = three();
    let before = quota(&lessor, 0);
    assert!((30..=50).contains(&before), "{before}");
    for (live, more) in [(before / 2, false), (before - 1, true)] {
        assert!(lessor.heard(0, &told(live, before, 0), true));
        lessor.balance(SCOPE, 300, 3);
        assert_eq!(quota(&lessor, 0) > before, more, "{live} of {before}");
    }
    assert!(quota(&lessor, 0) > before + 10);
}

/// I6: what others do not use is taken away from them when one wants it, and is given again only when they have said so.
#[test]
fn a_lowered_quota_counts_until_its_holder_keeps_to_it() {
    let mut lessor = three();
    while lessor.promised(SCOPE) < 300 {
        let all = quota(&lessor, 0);
        lessor.heard(0, &told(all, all, 50), true);
        lessor.balance(SCOPE, 300, 3);
    }
    let (all, idle) = (quota(&lessor, 0), quota(&lessor, 1));
    while lessor.next_changed().is_some() {}
    lessor.heard(0, &told(all, all, 10), true);
    lessor.balance(SCOPE, 300, 3);
    assert_eq!((lessor.next_changed(), quota(&lessor, 0)), (Some(1), all));
    assert_eq!((quota(&lessor, 1), lessor.part(1, SCOPE).bound), (idle - 10, idle));
    // It reports, and has not seen that yet.
    lessor.heard(1, &told(0, idle, 0), false);
    lessor.balance(SCOPE, 300, 3);
    assert_eq!((quota(&lessor, 0), lessor.promised(SCOPE)), (all, 300));
    lessor.heard(1, &told(0, idle - 10, 0), true);
    lessor.balance(SCOPE, 300, 3);
    assert_eq!((quota(&lessor, 0), lessor.promised(SCOPE)), (all + 10, 300));
}

/// What a holder has that is lost counts on, until it is forgotten.
#[test]
fn what_a_lost_holder_has_counts_on() {
    let mut lessor = three();
    let (promised, part) = (lessor.promised(SCOPE), lessor.part(2, SCOPE));
    lessor.lose(2);
    lessor.balance(SCOPE, promised - 40, 3);
    assert_eq!(lessor.part(2, SCOPE), part);
    assert_eq!(lessor.forget(2, |_| true), [(SCOPE, part.bound)]);
    assert!(!lessor.counts(2) && lessor.promised(SCOPE) <= promised - part.bound);
}

/// I16: a limit that is lowered takes nothing from calls that are up, and leaves each a part of what there is.
#[test]
fn less_than_is_in_use_is_left_in_equal_parts() {
    let mut lessor = three();
    for holder in 0..3 {
        let all = quota(&lessor, holder);
        lessor.heard(holder, &told(all, all, 0), true);
    }
    lessor.balance(SCOPE, 30, 3);
    let quotas: Vec<u32> = (0..3).map(|holder| quota(&lessor, holder)).collect();
    assert!(quotas.iter().sum::<u32>() <= 30 && quotas.iter().all(|&quota| quota >= 8), "{quotas:?}");
}

fn charge(class: Class) -> Charge {
    let mut charge = Charge::new(Direction::Inbound, class, 80);
    charge.add(SCOPE);
    charge
}

/// I15, I6: to the moment its lease is over, and not later.
#[test]
fn a_core_admits_by_its_quota_while_the_lease_holds() {
    let mut lessee = Lessee::new(1);
    let (before, over) = (Time::from_millis(999), Time::from_millis(1_000));
    let normal = charge(Class::Normal);
    lessee.set_quota(SCOPE, 2);
    assert!(!lessee.lease(before, &normal, &Charge::EMPTY).is_all_leased());
    lessee.set_until(over);
    let first = lessee.lease(before, &normal, &Charge::EMPTY);
    assert!(first.is_all_leased() && !lessee.lease(over, &normal, &Charge::EMPTY).is_all_leased());
    assert!(!lessee.lease(before, &charge(Class::Emergency), &Charge::EMPTY).is_all_leased(), "it takes nobody's place");
    assert!(lessee.lease(before, &normal, &Charge::EMPTY).is_all_leased());
    assert!(!lessee.lease(before, &normal, &Charge::EMPTY).is_all_leased());
    // Lowered: a call that ends is not replaced.
    lessee.set_quota(SCOPE, 1);
    lessee.give_back(&first, &Charge::EMPTY);
    assert!(!lessee.lease(before, &normal, &Charge::EMPTY).is_all_leased());
    // A change keeps its place, whatever happened to the lease.
    assert!(lessee.lease(over, &normal.with_kbits(96), &first).is_all_leased());
}

/// I6: holders that begin and end calls, hear late of what they may have and tell late of what they have: never more than there is.
#[test]
fn whatever_comes_late_no_more_is_in_use_than_there_is() {
    for seed in 1..=40 {
        let mut rng = Rng::new(seed);
        let mut lessor: Lessor<u8> = Lessor::new(1);
        (0..3).for_each(|core| lessor.join(core, true));
        let (mut cores, mut up) = ([(0u32, 0u32); 3], 0u32);
        // On their way to a core, and from it; each in its order.
        let (mut down, mut back) = (vec![std::collections::VecDeque::new(); 3], vec![std::collections::VecDeque::new(); 3]);
        let capacity = 10 + rng.below(40) as u32;
        for step in 0..3_000 {
            let core = rng.below(3) as usize;
            match rng.below(6) {
                0 | 1 if cores[core].1 < cores[core].0 => {
                    cores[core].1 += 1;
                    up += 1;
                    back[core].push_back((true, false, 0));
                }
                0 | 1 => back[core].push_back((false, true, 0)),
                2 if cores[core].1 > 0 => {
                    cores[core].1 -= 1;
                    up -= 1;
                    back[core].push_back((false, false, 0));
                }
                3 | 4 => {
                    if let Some((quota, number)) = down[core].pop_front() {
                        cores[core].0 = quota;
                        back[core].push_back((true, true, number));
                    }
                }
                _ => {
                    let Some(message) = back[core].pop_front() else { continue };
                    match message {
                        (true, true, number) => lessor.keeps(core as u8, SCOPE, number),
                        (false, true, _) => lessor.wants(core as u8, SCOPE),
                        (began, false, _) => lessor.moved(core as u8, SCOPE, began),
                    }
                    lessor.balance(SCOPE, capacity, 3);
                    while let Some(changed) = lessor.next_changed() {
                        let part = lessor.part(changed, SCOPE);
                        down[usize::from(changed)].push_back((part.quota, part.number));
                    }
                }
            }
            assert!(up <= capacity && lessor.promised(SCOPE) <= capacity, "seed {seed} step {step}: {up} of {capacity}");
        }
        assert!(up > 0, "seed {seed}");
    }
}
