//! What admission keeps on one core: the places it holds, and what each of its calls is charged, whatever protocol the call is of.
//!
//! Each call that may count has a slot here: a connection of MGCP its own, a termination of H.248 one behind those ([`Desk::grow`]). It
//! is charged from [`Desk::keep`] to [`Desk::ended`]. [`Desk::take_new`] and [`Desk::take_more`] either take places at once or say what
//! must be claimed first, and the caller waits for that ([`Desk::claim`]).

use super::asker::{Asker, Call, Step};
use super::charge::Charge;
use super::limits::Limits;
use super::share::{Holder, Taken, Ticket};
use crate::proto::base::Time;
use std::time::Duration;

/// In a cluster: how much later than in its time the node may decide, before the core takes it for dead.
const NODE_LATE: Duration = Duration::from_millis(50);

/// See the module's page.
#[derive(Debug)]
pub struct Desk {
    /// The places of this core. In a cluster they have no limit, and only count.
    pub holder: Holder,
    /// In a cluster: the way to the node, whose limits are those of all gateways.
    pub asker: Option<Asker>,
    /// What each call is charged, by slot.
    charges: Vec<Charge>,
    /// What calls are to be charged that are being changed; they hold both until then.
    changing: Vec<(u32, Charge, Step)>,
    /// What the call that is being made counts as in a cluster.
    making: Call,
}

impl Desk {
    /// The desk of one of so many cores that own endpoints, with so many slots.
    pub fn new(limits: &[Limits], cores: usize, slots: u32) -> Desk {
        let charges = vec![Charge::EMPTY; slots as usize];
        Desk { holder: Holder::new(limits, cores), asker: None, charges, changing: Vec::new(), making: Call::NONE }
    }

    /// So many more slots: the first of them. For the start, before there is any call.
    pub fn grow(&mut self, slots: u32) -> u32 {
        let first = self.charges.len() as u32;
        self.charges.resize(first.saturating_add(slots) as usize, Charge::EMPTY);
        first
    }

    /// How many slots there are.
    pub fn slots(&self) -> u32 {
        self.charges.len() as u32
    }

    /// What the call in `slot` is charged.
    pub fn charge(&self, slot: u32) -> Charge {
        self.charges.get(slot as usize).copied().unwrap_or(Charge::EMPTY)
    }

    /// How long a claim is waited for, `decide_within` at least. In a cluster the node decides within that, and the core only when the node
    /// stands still; as long as it does no other call waits.
    pub fn patience(&self, decide_within: Duration) -> Duration {
        match &self.asker {
            Some(asker) if asker.is_silent() => Duration::ZERO,
            Some(_) => decide_within + NODE_LATE,
            None => decide_within,
        }
    }

    /// Claims what [`Desk::take_new`] or, for the call in `slot`, [`Desk::take_more`] did not find.
    pub fn claim(&mut self, now: Time, ticket: Ticket, charge: &Charge, has: &Charge, slot: Option<u32>) {
        match &mut self.asker {
            Some(asker) => asker.ask(now, ticket, charge, has, slot),
            None => self.holder.claim(ticket, charge, has),
        }
    }

    /// Nobody has answered a claim in time. Whether what was claimed is to be used at once all the same, as when it was granted, for
    /// being alone means to admit where it counts (`open`); then [`Asker::settle`] is called.
    pub fn overdue(&mut self, ticket: Ticket, open: bool) -> bool {
        let Some(asker) = &mut self.asker else { return false };
        asker.overdue();
        open && asker.go_alone(ticket)
    }

    /// Takes the places of a new call: its charge, or what must be claimed first. [`Desk::keep`] or [`Desk::drop_new`] comes next.
    pub fn take_new(&mut self, now: Time, charge: Charge) -> Result<Charge, Charge> {
        let mut charge = charge;
        if let Some(asker) = &mut self.asker {
            (self.making, charge) = asker.begin(now, &charge).ok_or(charge)?;
        }
        match self.holder.take(&charge, &Charge::EMPTY) {
            Taken::Claim => {
                // Not in a cluster: there are places without end.
                self.drop_call(&charge);
                Err(charge)
            }
            Taken::Now => Ok(charge),
        }
    }

    fn drop_call(&mut self, charge: &Charge) {
        let call = std::mem::take(&mut self.making);
        if let Some(asker) = &mut self.asker {
            asker.drop_call(call, charge);
        }
    }

    /// The call in `slot` is charged this from now on.
    pub fn keep(&mut self, slot: u32, charge: Charge) {
        if let Some(place) = self.charges.get_mut(slot as usize) {
            *place = charge;
        }
        let call = std::mem::take(&mut self.making);
        if let Some(asker) = &mut self.asker {
            asker.keep(slot, call);
        }
    }

    /// A call did not come about.
    pub fn drop_new(&mut self, charge: &Charge) {
        self.holder.release(charge, &Charge::EMPTY);
        self.drop_call(charge);
    }

    /// The call in `slot` is over.
    pub fn ended(&mut self, slot: u32) {
        self.unchanged(slot);
        if let Some(place) = self.charges.get_mut(slot as usize) {
            let charge = std::mem::replace(place, Charge::EMPTY);
            self.holder.release(&charge, &Charge::EMPTY);
            if let Some(asker) = &mut self.asker {
                asker.end(slot, &charge);
            }
        }
    }

    /// Takes what the call in `slot` needs to be charged this beyond what it has, which it keeps too until [`Desk::changed`] or
    /// [`Desk::unchanged`]; or says what must be claimed first, and what there is.
    pub fn take_more(&mut self, now: Time, slot: u32, charge: Charge) -> Result<(), (Charge, Charge)> {
        // One change at a time: what an earlier one has taken is what there is.
        self.changed(slot);
        let has = self.charge(slot);
        if charge == has.unleased() {
            return Ok(());
        }
        let (step, charge) = match &mut self.asker {
            None => (Step::Nothing, charge),
            Some(asker) => asker.change(now, slot, &charge, &has).ok_or((charge, has))?,
        };
        match self.holder.take(&charge, &has) {
            Taken::Claim => {
                if let Some(asker) = &mut self.asker {
                    asker.unchanged(slot, step, &charge, &has);
                }
                Err((charge, has))
            }
            Taken::Now => {
                self.changing.push((slot, charge, step));
                Ok(())
            }
        }
    }

    /// The change is made: what the call had before and needs no more is free.
    pub fn changed(&mut self, slot: u32) {
        let Some(place) = self.changing.iter().position(|(changing, ..)| *changing == slot) else { return };
        let (_, charge, step) = self.changing.swap_remove(place);
        let before = self.charge(slot);
        self.holder.release(&before, &charge);
        if let Some(asker) = &mut self.asker {
            asker.changed(slot, step, &charge, &before);
        }
        if let Some(place) = self.charges.get_mut(slot as usize) {
            *place = charge;
        }
    }

    /// The change is not made: the call is what it was.
    pub fn unchanged(&mut self, slot: u32) {
        let Some(place) = self.changing.iter().position(|(changing, ..)| *changing == slot) else { return };
        let (_, charge, step) = self.changing.swap_remove(place);
        let before = self.charge(slot);
        self.holder.release(&charge, &before);
        if let Some(asker) = &mut self.asker {
            asker.unchanged(slot, step, &charge, &before);
        }
    }
}
