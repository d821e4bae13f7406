//! A gateway's part in a cluster: starts the link thread, and hands each core its end of the rings.

use super::keys;
use super::link::{CorePlace, Link, Order};
use super::said::Said;
use super::saved::Restored;
use super::staged::Staged;
use super::view::{Cursor, LinkView, Page, Which};
use crate::config::{self, CacMode, Config};
use crate::host::clock::{self, Clock};
use crate::host::cpu;
use crate::host::entropy;
use crate::host::ring;
use crate::host::transport::{Waker, wake};
use crate::proto::base::Time;
use crate::proto::cac::asker::{FromLink, ToLink};
use crate::proto::cac::message::Told;
use crate::proto::cac::node::{Node, Settings};
use crate::proto::cac::{Guid, KBITS_MAX, Limits, ScId};
use anyhow::{Context, Result};
use crossbeam::channel::{Sender, bounded};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Entries of a ring between a core and the link: what a core can ask for within the time of a decision.
const RING: usize = 4096;
/// Calls of one gateway: more than its cores can hold connections.
const CALLS_MAX: usize = 8_000_000;
const _: () = assert!(CALLS_MAX as u64 * KBITS_MAX as u64 <= u32::MAX as u64);
/// Orders that wait.
const ORDERS: usize = 64;
/// How long the link may take to answer an operator.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How long the last words may take.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A core's end.
pub struct CoreLink {
    /// To the node.
    pub to: ring::Sender<ToLink>,
    /// From it.
    pub from: ring::Receiver<FromLink>,
    /// Ends the link's sleep.
    pub waker: Waker,
}

/// The handle on the link thread.
pub struct Cluster {
    orders: Sender<Order>,
    waker: Waker,
    lost_since: Arc<AtomicU64>,
    centrals: Vec<std::net::SocketAddr>,
    staged: Staged,
}

impl Cluster {
    /// In a cluster: starts the link thread for cores with these wakers. The handle, and each core's end.
    ///
    /// # Errors
    /// What the machine refused, naming the setting it is about.
    pub fn start(config: &Config, wakers: &[Waker], clock: Clock) -> Result<Option<(Arc<Cluster>, Vec<CoreLink>)>> {
        if config.cac.mode != CacMode::Cluster {
            return Ok(None);
        }
        let tree = config::tree(config).context("cac.mode = \"cluster\": no scopes")?;
        let (staged, told, keep) = Staged::find(config, &tree, clock::wall_s(&clock))?;
        if !told.is_empty() {
            tracing::warn!("{} calls of the last life of this gateway count on, without a connection here", told.len());
        }
        Cluster::start_staged(config, wakers, clock, (staged, told, keep)).map(Some)
    }

    /// The same in a cluster, with calls of a last life, which count for so long; zero: until they are released.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_with(
        config: &Config,
        wakers: &[Waker],
        clock: Clock,
        told: Vec<Told>,
        keep: Duration,
    ) -> Result<(Arc<Cluster>, Vec<CoreLink>)> {
        Cluster::start_staged(config, wakers, clock, (Staged::default(), told, keep))
    }

    fn start_staged(
        config: &Config,
        wakers: &[Waker],
        clock: Clock,
        (staged, told, keep): (Staged, Vec<Told>, Duration),
    ) -> Result<(Arc<Cluster>, Vec<CoreLink>)> {
        let cac = &config.cac;
        let tree = Arc::new(config::tree(config).context("cac.mode = \"cluster\": no scopes")?);
        let keys = keys::of(config)?.zip(cac.cs_key.as_deref().and_then(keys::decode));
        let centrals = cac.cs.clone();
        // Drawn, so that two gateways of one number that start at the same moment are told apart.
        let incarnation = entropy::seed().context("no randomness from the kernel")?[0] as u32;
        let settings = Settings {
            nodes: cac.nodes.iter().copied().map(ScId).collect(),
            centrals: centrals.len() as u8,
            calls_max: CALLS_MAX,
            cores: wakers.len() as u8,
            ..Settings::new(ScId(cac.node), incarnation)
        };
        let mut node = Node::new(clock.now(), settings, tree, config::limits(config), config::policies(config));
        let restored = Restored::begin(clock.now(), &mut node, told, keep);
        let (waker, sleeper) = wake::pair().context("an event to wake the cluster's link")?;
        let (mut cores, mut links) = (Vec::new(), Vec::new());
        for core in wakers {
            let (to_link, from_core) = ring::pair(RING);
            let (to_core, from_link) = ring::pair(RING);
            cores.push(CorePlace { from: from_core, to: to_core, waker: core.clone(), waiting: VecDeque::new() });
            links.push(CoreLink { to: to_link, from: from_link, waker: waker.clone() });
        }
        let (orders, receiver) = bounded(ORDERS);
        let lost_since = Arc::new(AtomicU64::new(clock.now().0.max(1)));
        let link = Link {
            node,
            restored,
            name: (cac.node, incarnation),
            cores,
            orders: receiver,
            sleeper,
            centrals: centrals.clone(),
            keys,
            clock,
            said: Said::start()?,
            lost_since: lost_since.clone(),
        };
        let housekeeping = config.cores.housekeeping_cpu;
        let run = move || {
            if let Some(cpu) = housekeeping
                && !cpu::pin(cpu.into())
            {
                tracing::warn!("cores.housekeeping_cpu: the kernel does not pin the cluster's link to CPU {cpu}");
            }
            link.run();
        };
        std::thread::Builder::new().name("cluster".into()).spawn(run).context("no thread for the cluster's link")?;
        Ok((Arc::new(Cluster { orders, waker, lost_since, centrals, staged }), links))
    }

    /// Where the central nodes are.
    pub fn centrals(&self) -> &[std::net::SocketAddr] {
        &self.centrals
    }

    /// Since when there is no contact with it.
    pub fn lost_since(&self) -> Option<Time> {
        Some(self.lost_since.load(Ordering::Acquire)).filter(|since| *since != 0).map(Time)
    }

    fn order(&self, order: Order) -> bool {
        let taken = self.orders.try_send(order).is_ok();
        self.waker.wake();
        taken
    }

    /// How the link is; `None` when its thread does not answer.
    pub fn view(&self) -> Option<LinkView> {
        let (reply, answer) = bounded(1);
        self.order(Order::View(reply)).then(|| answer.recv_timeout(ANSWER_WITHIN).ok())?
    }

    /// Some of the calls of this gateway.
    pub fn page(&self, which: Which, after: Option<Cursor>) -> Option<Page> {
        let (reply, answer) = bounded(1);
        self.order(Order::Page(which, after, reply)).then(|| answer.recv_timeout(ANSWER_WITHIN).ok())?
    }

    /// Calls of the last life that count in this one, or one of them, are over: how many legs.
    pub fn release(&self, only: Option<Guid>) -> Option<usize> {
        let (reply, answer) = bounded(1);
        self.order(Order::Release(only, reply)).then(|| answer.recv_timeout(ANSWER_WITHIN).ok())?
    }

    /// The gateway is ready: nothing can go wrong any more with the calls that were put there for this start.
    pub fn ready(&self) {
        self.staged.taken();
    }

    /// The gateway begins to end. Where there are calls for its next start nothing is told of any more: the end of those that end with it
    /// would give their places back.
    pub fn keep_places(&self) {
        if self.staged.is_for_next() {
            self.order(Order::Stop);
        }
    }

    /// The process ends: the central node is told that its calls are over, unless there are some for the next start.
    pub fn leave(&self) {
        if self.staged.is_for_next() {
            tracing::info!("cluster: there are calls for the next start of this gateway: no place is given back");
            self.order(Order::Stop);
            return;
        }
        let (done, ended) = bounded(1);
        if self.order(Order::Leave(done)) {
            // One that stands still is found out by silence.
            let _ = ended.recv_timeout(LEAVE_WITHIN);
        }
    }

    /// Other limits, for the rules of being alone.
    pub fn set_limits(&self, limits: Vec<Limits>) {
        if self.orders.send_timeout(Order::Limits(limits), ANSWER_WITHIN).is_err() {
            tracing::error!("cluster: the link does not take the new limits for being alone: reload again");
        }
        self.waker.wake();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.order(Order::Stop);
    }
}
