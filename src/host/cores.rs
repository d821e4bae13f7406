//! The handle of the control loop on the running cores: it asks and orders, and waits a bounded time for the answers.

use super::clock::Clock;
use super::inside::Inside;
use super::tap::Tap;
use super::transport::{Stray, Waker};
use crate::proto::base::{CoreId, Counters, Time};
use crate::proto::core::{Answer, Ask, Request};
use crate::proto::plan::{Plan, Settings};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a core may take to answer an operator.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How often one that waits for a core looks whether it lives.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Operators' requests a core keeps waiting.
pub const REQUESTS: usize = 64;

/// What the control loop hands to a core.
pub enum ToCore {
    /// A request and where its answer goes.
    Request(Box<Request>, Sender<Box<Request>>),
    /// New settings.
    Settings(Arc<Settings>),
    /// Datagrams from the socket of a core that stands still, to be treated as this core's own.
    Strays(Vec<Stray>),
    /// Stand still for so long, as a stuck core would: for tests.
    Hold(Duration),
    /// End.
    Stop,
}

/// What a core tells the control loop without being asked.
#[derive(Default)]
pub struct Pulse {
    /// When it last went round its loop, in nanoseconds of the process clock.
    pub beat: AtomicU64,
    /// Turns of its loop.
    pub turns: AtomicU64,
    /// Agents it cannot reach, whose names should be looked up again: by their bits, taken by who does that.
    pub lookups: AtomicU64,
    /// Whether it has ended.
    pub ended: AtomicBool,
}

/// One core, from outside.
pub struct CorePort {
    /// Which.
    pub core: CoreId,
    /// The CPU it is pinned to.
    pub cpu: Option<usize>,
    /// How datagrams find it, in one word.
    pub steering: &'static str,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// How long messages wait and take.
    pub inside: Arc<Inside>,
    /// Its signs of life.
    pub pulse: Arc<Pulse>,
    pub(super) inbox: Sender<ToCore>,
    pub(super) waker: Waker,
}

/// All cores.
pub struct Cores {
    /// One port per core, by its number.
    pub ports: Vec<CorePort>,
    /// The plan they run by.
    pub plan: Arc<Plan>,
    /// The process clock.
    pub clock: Clock,
    /// What they receive and send, for whoever traces.
    pub tap: Arc<Tap>,
}

/// A core did not answer in time, or its inbox is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent(pub CoreId);

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "core {} does not answer", self.0.0)
    }
}

impl Cores {
    /// Asks one core and waits for its answer. A core without a beat for longer than `limit` is not waited for.
    ///
    /// # Errors
    /// When it is silent, or the answer does not come within [`ANSWER_WITHIN`].
    pub fn ask(&self, core: CoreId, ask: Ask, limit: Duration) -> Result<Answer, Silent> {
        self.ask_each(&[core], &ask, limit).pop().map_or(Err(Silent(core)), |(_, answer)| answer)
    }

    /// Asks each of these cores, all at once, in their order; all together may take [`ANSWER_WITHIN`].
    pub fn ask_each(&self, cores: &[CoreId], ask: &Ask, limit: Duration) -> Vec<(CoreId, Result<Answer, Silent>)> {
        let until = self.clock.now() + ANSWER_WITHIN;
        let asked = cores.iter().map(|&core| {
            let (sender, receiver) = bounded(1);
            (core, self.send(core, ask.clone(), sender).map(|()| receiver))
        });
        let asked: Vec<_> = asked.collect();
        let answer = |(core, receiver): (CoreId, Result<Receiver<Box<Request>>, Silent>)| {
            (core, receiver.and_then(|receiver| self.wait(core, &receiver, until, limit)))
        };
        asked.into_iter().map(answer).collect()
    }

    fn wait(&self, core: CoreId, receiver: &Receiver<Box<Request>>, until: Time, limit: Duration) -> Result<Answer, Silent> {
        loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(request) => return Ok(request.answer),
                Err(RecvTimeoutError::Disconnected) => return Err(Silent(core)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.clock.now();
            if now >= until || self.stalled(now, limit).any(|(silent, _)| silent == core) {
                return Err(Silent(core));
            }
        }
    }

    /// Makes a core stand still for `time`, to see what the others do then.
    ///
    /// # Errors
    /// When its inbox is full, or there is no such core.
    pub fn hold(&self, core: CoreId, time: Duration) -> Result<(), Silent> {
        let port = self.ports.get(usize::from(core.0)).ok_or(Silent(core))?;
        port.inbox.try_send(ToCore::Hold(time)).map_err(|_| Silent(core))?;
        port.waker.wake();
        Ok(())
    }

    /// Whether a core's inbox has room for strays, and for what else there may be to say to it.
    pub fn takes_strays(&self, core: CoreId) -> bool {
        self.ports.get(usize::from(core.0)).is_some_and(|port| port.inbox.len() < REQUESTS / 2)
    }

    /// Gives a core datagrams that came for one that stands still. Without room they are lost, as on the way.
    pub fn hand_strays(&self, core: CoreId, strays: Vec<Stray>) {
        if let Some(port) = self.ports.get(usize::from(core.0)) {
            let _ = port.inbox.try_send(ToCore::Strays(strays));
            port.waker.wake();
        }
    }

    /// Tells every core to end.
    pub fn stop(&self) {
        for port in &self.ports {
            // A core whose inbox is full is stuck; the process ends without it.
            let _ = port.inbox.try_send(ToCore::Stop);
            port.waker.wake();
        }
    }

    /// Gives every core new settings. A core that is silent finds them when it goes on.
    ///
    /// # Errors
    /// The first core whose inbox is full; the others have them.
    pub fn set_settings(&self, settings: &Arc<Settings>) -> Result<(), Silent> {
        let mut result = Ok(());
        for port in &self.ports {
            if port.inbox.try_send(ToCore::Settings(settings.clone())).is_err() {
                result = result.and(Err(Silent(port.core)));
            }
            port.waker.wake();
        }
        result
    }

    /// Cores that have not gone round their loop for longer than `limit`.
    pub fn stalled(&self, now: Time, limit: Duration) -> impl Iterator<Item = (CoreId, Duration)> + '_ {
        self.ports.iter().filter_map(move |port| {
            let silent_for = now.since(Time(port.pulse.beat.load(Ordering::Relaxed)));
            (silent_for > limit).then_some((port.core, silent_for))
        })
    }

    fn send(&self, core: CoreId, ask: Ask, reply: Sender<Box<Request>>) -> Result<(), Silent> {
        let port = self.ports.get(usize::from(core.0)).ok_or(Silent(core))?;
        port.inbox.try_send(ToCore::Request(Box::new(Request::new(ask)), reply)).map_err(|_| Silent(core))?;
        port.waker.wake();
        Ok(())
    }
}
