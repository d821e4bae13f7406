//! The cores of a gateway, as far as quotas go: what ships is [`Lessee`]; the rest is what a core does with it.

use super::*;

/// Cores of each gateway.
pub(super) const COUNT: u8 = 2;
/// From a core to the node, or back.
const RING: Duration = Duration::from_micros(30);

/// A core.
pub(super) struct Core {
    lessee: Lessee,
    /// Calls that are up, and those that are asked for, with places of quotas.
    up: BTreeMap<(Guid, Leg), Charge>,
    asked: BTreeMap<(Guid, Leg), Charge>,
    changing: BTreeMap<(Guid, Leg), Charge>,
    /// Those that ended before they were decided.
    ended: BTreeMap<(Guid, Leg), Charge>,
}

/// The number of a gateway's call: it comes to any core.
pub(super) fn number(calls: u64) -> u64 {
    let any = calls.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    ((any % u64::from(COUNT)) << 56) | calls
}

fn core_of(guid: Guid) -> usize {
    (guid.number >> 56) as usize
}

impl Core {
    /// The cores of a life that begins with these calls, which sit on no quota.
    pub fn all(scopes: usize, saved: &[Told]) -> Vec<Core> {
        let core = |place: usize| {
            let mine = saved.iter().filter(|told| core_of(told.guid) == place);
            let up = mine.map(|told| ((told.guid, told.leg), told.charge.unleased())).collect();
            Core { lessee: Lessee::new(scopes), up, asked: BTreeMap::new(), changing: BTreeMap::new(), ended: BTreeMap::new() }
        };
        (0..COUNT.into()).map(core).collect()
    }

    /// Normal calls that are up.
    pub fn normal(&self) -> u32 {
        self.up.values().filter(|charge| charge.class == Class::Normal).count() as u32
    }
}

/// Whether an end of the version before quotas cannot read it, or not as it is meant.
pub(super) fn is_new(message: &ToCentral) -> bool {
    let leased = |told: &Told| told.admission == Admission::Lease || told.charge != told.charge.unleased();
    match message {
        ToCentral::QuotaReport { .. } => true,
        ToCentral::Report { report: Report::Fact(told), .. } => leased(told),
        ToCentral::SyncChunk { calls, .. } | ToCentral::Bucket { calls, .. } => calls.iter().any(leased),
        _ => false,
    }
}

impl Gateway {
    /// Whether its node does nothing.
    pub fn is_still(&self) -> bool {
        self.paused || self.node_paused
    }
}

impl World {
    fn ring(&mut self, place: usize, event: node::Event) {
        let life = self.gateways[place].incarnation;
        self.push(RING, Packet::FromCore(place, life, event));
    }

    pub(super) fn tell_core(&mut self, place: usize, action: node::Action) {
        if self.kind.giving != Giving::Never {
            let life = self.gateways[place].incarnation;
            self.push(RING, Packet::ToCore(place, life, action));
        }
    }

    /// What waits in the rings goes on, in its order; what is for a node that stands still waits, and so does all behind it.
    pub(super) fn drain_rings(&mut self, place: usize) {
        let waiting = std::mem::take(&mut self.gateways[place].rings);
        for packet in waiting {
            let gateway = &mut self.gateways[place];
            match packet {
                _ if gateway.paused => gateway.rings.push_back(packet),
                Packet::FromCore(_, _, _) if gateway.node_paused => gateway.rings.push_back(packet),
                Packet::FromCore(_, life, event) if life == gateway.incarnation => {
                    match &event {
                        node::Event::Ask(guid, leg, _) => drop(gateway.asked.insert((*guid, *leg), self.now)),
                        node::Event::End(guid, leg) => drop(gateway.asked.remove(&(*guid, *leg))),
                        _ => {}
                    }
                    self.step_node(place, event);
                }
                Packet::ToCore(_, life, action) if life == gateway.incarnation => self.at_core(place, action),
                _ => {}
            }
        }
    }

    fn core(&mut self, place: usize, core: usize) -> Option<&mut Core> {
        self.gateways[place].cores.get_mut(core)
    }

    /// A call comes to a core: it admits it, or asks.
    pub(super) fn ask_core(&mut self, place: usize, guid: Guid, leg: Leg, charge: Charge) {
        let (now, seed, over) = (self.now, self.seed, self.gateways[place].lease_over);
        let Some(core) = self.core(place, core_of(guid)) else { return };
        let leased = core.lessee.lease(now, &charge, &Charge::EMPTY);
        // I6, I15: nothing is admitted on a lease that is over at the one who gave it.
        assert!(leased == charge.unleased() || now < over, "seed {seed}: I6: {guid} is admitted on a lease that is over");
        if leased.is_all_leased() {
            core.up.insert((guid, leg), leased);
            *self.decided.entry("leased").or_default() += 1;
            return self.ring(place, node::Event::Took(guid, leg, leased));
        }
        core.asked.insert((guid, leg), leased);
        self.ring(place, node::Event::Ask(guid, leg, leased));
    }

    fn at_core(&mut self, place: usize, action: node::Action) {
        match action {
            node::Action::Quota(number, scope, quota, change) => {
                let Some(core) = self.core(place, number.into()) else { return };
                core.lessee.set_quota(scope, quota);
                self.ring(place, node::Event::Keeps(number, scope, change));
            }
            node::Action::Lease(until) => self.gateways[place].cores.iter_mut().for_each(|core| core.lessee.set_until(until)),
            node::Action::Decided(guid, leg, decision) => {
                let Some(core) = self.core(place, core_of(guid)) else { return };
                // One that ended meanwhile has given its places back.
                let Some(charge) = core.asked.remove(&(guid, leg)) else { return };
                match decision {
                    Decision::Admitted(_) => drop(core.up.insert((guid, leg), charge)),
                    Decision::Refused(_) => core.lessee.give_back(&charge, &Charge::EMPTY),
                }
            }
            node::Action::Lent(guid, leg, charge) => {
                let Some(core) = self.core(place, core_of(guid)) else { return };
                if let Some(asked) = core.asked.remove(&(guid, leg)) {
                    core.lessee.lend(&charge, &asked);
                    core.up.insert((guid, leg), charge);
                } else if let Some(ended) = core.ended.remove(&(guid, leg)) {
                    // It has given back what it had, and the core has places more that are free.
                    core.lessee.lend(&charge, &ended);
                    core.lessee.give_back(&charge, &ended);
                }
            }
            node::Action::Changed(guid, leg, decision) => {
                let Some(core) = self.core(place, core_of(guid)) else { return };
                let Some(charge) = core.changing.remove(&(guid, leg)) else { return };
                if let (Decision::Admitted(_), Some(up)) = (decision, core.up.get_mut(&(guid, leg))) {
                    *up = charge;
                }
            }
            _ => {}
        }
    }

    pub(super) fn end_call(&mut self, place: usize, guid: Guid, leg: Leg) {
        if self.kind.giving == Giving::Never {
            self.gateways[place].asked.remove(&(guid, leg));
            return self.step_node(place, node::Event::End(guid, leg));
        }
        let Some(core) = self.core(place, core_of(guid)) else { return };
        if let Some(asked) = core.asked.remove(&(guid, leg)) {
            core.lessee.give_back(&asked, &Charge::EMPTY);
            core.ended.insert((guid, leg), asked);
        }
        let up = core.up.remove(&(guid, leg)).unwrap_or(Charge::EMPTY);
        core.lessee.give_back(&up, &Charge::EMPTY);
        self.ring(place, node::Event::End(guid, leg));
    }

    /// A call is to be charged otherwise: asked for, or only told.
    pub(super) fn change(&mut self, place: usize, guid: Guid, leg: Leg, charge: Charge, asks: bool) {
        if self.kind.giving == Giving::Never {
            let event = if asks { node::Event::Change(guid, leg, charge) } else { node::Event::Fact(guid, leg, charge) };
            return self.step_node(place, event);
        }
        let now = self.now;
        let Some(core) = self.core(place, core_of(guid)) else { return };
        let Some(has) = core.up.get(&(guid, leg)).copied() else { return };
        let leased = core.lessee.lease(now, &charge, &has);
        if asks && !leased.is_all_leased() {
            core.changing.insert((guid, leg), leased);
            return self.ring(place, node::Event::Change(guid, leg, leased));
        }
        core.up.insert((guid, leg), leased);
        core.changing.remove(&(guid, leg));
        self.ring(place, node::Event::Fact(guid, leg, leased));
    }

    /// The central node that leads answers a report: the lease it gives is over then, and nobody may count on it for longer.
    pub(super) fn note_lease(&mut self, sc: ScId) {
        let over = self.now + super::super::quota::LEASE;
        if let Some(gateway) = self.gateways.get_mut(sc.0 as usize - 1) {
            gateway.lease_over = gateway.lease_over.max(over);
        }
    }

    /// I6: what is given is never more than there is, and what is used never more than what is given.
    pub(super) fn check_quotas(&self) {
        let seed = self.seed;
        for (place, gateway) in self.gateways.iter().enumerate() {
            let Some(node) = &gateway.node else { continue };
            let (live, bound) = (node.calls().ledger().leased(POOL).get(Amount::Calls), node.quota_bound(POOL));
            assert!(live <= bound, "seed {seed}: I6: {live} calls on a quota of {bound} at {place}");
        }
    }

    /// I6: what was just given is not more than there is beside calls on no quota. A lost node that comes back, forgotten meanwhile, may
    /// have had more.
    pub(super) fn check_given(&self, side: usize, before: u32) {
        let Some(central) = self.offices[side].machine.as_ref().filter(|central| central.is_active()) else { return };
        let ledger = central.authority().ledger();
        let others = ledger.used(POOL).minus(&ledger.leased(POOL)).get(Amount::Calls);
        let (promised, limit) = (central.promised(POOL), self.limits[0].calls);
        let is_right = promised <= before || promised + others <= limit;
        assert!(is_right || self.policy != Policy::HoldLast, "seed {}: I6: {promised} given beside {others} of {limit}", self.seed);
    }
}
