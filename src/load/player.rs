//! Who plays the agent: the one of plain calls and audits, or the one of calls over trunks, whose far ends are told what to do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, unbounded};

use super::report::Recorder;
use crate::proto::agent::controller::Controller;
use crate::proto::agent::trunks::{Outcomes, Trunks};
use crate::proto::agent::{Agent, Phase, Started, Tally};
use crate::proto::base::Time;

/// Orders to far ends that are under way at a time.
const FAR_WINDOW: usize = 4;
/// How soon to look whether a far end was told.
const FAR_LOOK: Duration = Duration::from_millis(2);

/// What the generator asks of an agent.
pub(super) trait Player {
    fn start(&mut self, now: Time, intended: Time) -> Started;
    fn wind_down(&mut self);
    fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, recorder: &mut Recorder);
    fn handle_unreachable(&mut self, address: SocketAddr);
    fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), recorder: &mut Recorder);
    fn deadline(&self) -> Time;
    fn phase(&self) -> Phase;
    fn heard(&self) -> Time;
    fn tally(&self) -> &Tally;
    fn in_flight(&self) -> usize;
    fn repeats(&self) -> u64;
    fn failovers(&self) -> u64;
    /// Where commands go now.
    fn address(&self) -> Option<SocketAddr>;
    fn is_disturbed(&self) -> bool;
    /// What a closed loop counts.
    fn under_way(&self) -> usize;
    /// When an endpoint will be ready that is not now.
    fn next_due(&self) -> Time;
    /// Calls that are up or being set up, standing ones not counted.
    fn held(&self) -> usize;
    fn standing(&self) -> usize;
    fn calls_started(&self) -> u32;
    fn endpoints(&self) -> usize;
    fn down(&self) -> usize;
    /// What became of calls over trunks, by name, and whether their far ends misbehaved.
    fn outcomes(&self) -> Vec<(&'static str, bool, Outcomes)>;
}

impl Player for Agent {
    fn start(&mut self, now: Time, intended: Time) -> Started {
        Agent::start(self, now, intended)
    }

    fn wind_down(&mut self) {
        Agent::wind_down(self);
    }

    fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, recorder: &mut Recorder) {
        Agent::handle(self, now, datagram, from, recorder);
    }

    fn handle_unreachable(&mut self, address: SocketAddr) {
        Agent::handle_unreachable(self, address);
    }

    fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), recorder: &mut Recorder) {
        Agent::poll(self, now, out, recorder);
    }

    fn deadline(&self) -> Time {
        Agent::deadline(self)
    }

    fn phase(&self) -> Phase {
        Agent::phase(self)
    }

    fn heard(&self) -> Time {
        Agent::heard(self)
    }

    fn tally(&self) -> &Tally {
        Agent::tally(self)
    }

    fn in_flight(&self) -> usize {
        Agent::transactions(self).in_flight()
    }

    fn repeats(&self) -> u64 {
        Agent::transactions(self).repeats()
    }

    fn failovers(&self) -> u64 {
        Agent::transactions(self).failovers()
    }

    fn address(&self) -> Option<SocketAddr> {
        Agent::transactions(self).current_address()
    }

    fn is_disturbed(&self) -> bool {
        Agent::is_disturbed(self)
    }

    fn under_way(&self) -> usize {
        Agent::in_flight(self)
    }

    fn next_due(&self) -> Time {
        match self.held_until() {
            Time::ZERO => self.calls().next_due(),
            held => held,
        }
    }

    fn held(&self) -> usize {
        self.calls().held()
    }

    fn standing(&self) -> usize {
        self.calls().standing()
    }

    fn calls_started(&self) -> u32 {
        self.calls().calls_started()
    }

    fn endpoints(&self) -> usize {
        self.calls().endpoints()
    }

    fn down(&self) -> usize {
        self.calls().down()
    }

    fn outcomes(&self) -> Vec<(&'static str, bool, Outcomes)> {
        Vec::new()
    }
}

impl Player for Controller {
    fn start(&mut self, now: Time, intended: Time) -> Started {
        Controller::start(self, now, intended)
    }

    fn wind_down(&mut self) {
        Controller::wind_down(self);
    }

    fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, recorder: &mut Recorder) {
        Controller::handle(self, now, datagram, from, recorder);
    }

    /// It goes on asking: there is one address, and the gateway may come back.
    fn handle_unreachable(&mut self, _: SocketAddr) {}

    fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), recorder: &mut Recorder) {
        Controller::poll(self, now, out, recorder);
    }

    fn deadline(&self) -> Time {
        Controller::deadline(self)
    }

    fn phase(&self) -> Phase {
        Controller::phase(self)
    }

    fn heard(&self) -> Time {
        Controller::heard(self)
    }

    fn tally(&self) -> &Tally {
        Controller::tally(self)
    }

    fn in_flight(&self) -> usize {
        Controller::in_flight(self)
    }

    fn repeats(&self) -> u64 {
        Controller::repeats(self)
    }

    fn failovers(&self) -> u64 {
        0
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.gateway())
    }

    fn is_disturbed(&self) -> bool {
        Controller::is_disturbed(self)
    }

    fn under_way(&self) -> usize {
        self.calls()
    }

    fn next_due(&self) -> Time {
        Controller::next_due(self)
    }

    fn held(&self) -> usize {
        self.calls()
    }

    fn standing(&self) -> usize {
        0
    }

    fn calls_started(&self) -> u32 {
        Controller::calls_started(self)
    }

    fn endpoints(&self) -> usize {
        self.channels()
    }

    fn down(&self) -> usize {
        0
    }

    fn outcomes(&self) -> Vec<(&'static str, bool, Outcomes)> {
        Vec::new()
    }
}

/// Whoever can tell the far ends of simulated channels what to do.
pub trait FarEnds: Send + Sync {
    /// An order to the far end of `endpoint`, a name without its domain, in the words of `tollgate sim`; returns when it is carried out.
    ///
    /// # Errors
    /// When nobody takes the order, or it is refused.
    fn order(&self, endpoint: &str, order: &str) -> anyhow::Result<()>;
}

/// The agent of calls over trunks, with what its far ends are told.
pub(super) struct Caller {
    trunks: Trunks,
    far: FarDesk,
    /// When to look whether a far end was told; [`Time::NEVER`] when no order is under way.
    look: Time,
}

impl Caller {
    pub fn new(trunks: Trunks, far: Arc<dyn FarEnds>) -> Caller {
        Caller { trunks, far: FarDesk::new(&far), look: Time::NEVER }
    }
}

impl Player for Caller {
    fn start(&mut self, now: Time, _: Time) -> Started {
        self.trunks.start(now)
    }

    fn wind_down(&mut self) {
        self.trunks.wind_down();
    }

    fn handle(&mut self, now: Time, datagram: &[u8], from: SocketAddr, recorder: &mut Recorder) {
        self.trunks.handle(now, datagram, from, recorder);
    }

    fn handle_unreachable(&mut self, address: SocketAddr) {
        self.trunks.handle_unreachable(address);
    }

    fn poll(&mut self, now: Time, out: &mut impl FnMut(SocketAddr, &[u8]), recorder: &mut Recorder) {
        let Caller { trunks, far, look } = self;
        while let Ok((line, done)) = far.done.try_recv() {
            far.under_way -= 1;
            trunks.handle_far(now, line, done.as_ref().copied().map_err(String::as_str), recorder);
        }
        trunks.poll(now, out, &mut |line, name, order| far.send(line, name, order), recorder);
        *look = if far.under_way > 0 { now + FAR_LOOK } else { Time::NEVER };
    }

    fn deadline(&self) -> Time {
        self.trunks.deadline().min(self.look)
    }

    fn phase(&self) -> Phase {
        self.trunks.phase()
    }

    fn heard(&self) -> Time {
        self.trunks.heard()
    }

    fn tally(&self) -> &Tally {
        self.trunks.tally()
    }

    fn in_flight(&self) -> usize {
        self.trunks.transactions().in_flight()
    }

    fn repeats(&self) -> u64 {
        self.trunks.transactions().repeats()
    }

    fn failovers(&self) -> u64 {
        self.trunks.transactions().failovers()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.trunks.transactions().current_address()
    }

    fn is_disturbed(&self) -> bool {
        self.trunks.is_disturbed()
    }

    fn under_way(&self) -> usize {
        self.trunks.calls()
    }

    fn next_due(&self) -> Time {
        match self.trunks.held_until() {
            Time::ZERO => Time::NEVER,
            held => held,
        }
    }

    fn held(&self) -> usize {
        self.trunks.calls()
    }

    fn standing(&self) -> usize {
        0
    }

    fn calls_started(&self) -> u32 {
        self.trunks.calls_begun()
    }

    fn endpoints(&self) -> usize {
        self.trunks.endpoints()
    }

    fn down(&self) -> usize {
        self.trunks.down()
    }

    fn outcomes(&self) -> Vec<(&'static str, bool, Outcomes)> {
        self.trunks.outcomes().collect()
    }
}

/// Tells far ends beside the loop, for whoever is told may take a while. Orders of different trunks may overtake one another.
struct FarDesk {
    /// `None` at the end, so that the threads see it.
    orders: Option<Sender<(u32, String, String)>>,
    done: Receiver<(u32, Result<(), String>)>,
    under_way: usize,
    threads: Vec<JoinHandle<()>>,
}

impl FarDesk {
    fn new(far: &Arc<dyn FarEnds>) -> FarDesk {
        let (orders, taken) = unbounded::<(u32, String, String)>();
        let (told, done) = unbounded();
        let threads = (0..FAR_WINDOW).map(|_| {
            let (taken, told, far) = (taken.clone(), told.clone(), Arc::clone(far));
            std::thread::spawn(move || {
                for (line, name, order) in taken {
                    let local = name.split('@').next().unwrap_or_default();
                    if told.send((line, far.order(local, &order).map_err(|error| format!("{error:#}")))).is_err() {
                        return;
                    }
                }
            })
        });
        let threads = threads.collect();
        FarDesk { orders: Some(orders), done, under_way: 0, threads }
    }

    fn send(&mut self, line: u32, name: &str, order: &str) {
        if let Some(orders) = &self.orders
            && orders.send((line, name.to_owned(), order.to_owned())).is_ok()
        {
            self.under_way += 1;
        }
    }
}

impl Drop for FarDesk {
    fn drop(&mut self) {
        self.orders = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
