//! The part of a central node's process in a pair: the lease machine between etcd and the central node.

use super::central::Process;
use super::etcd::Store;
use crate::config::Config;
use crate::host::transport::Waker;
use crate::proto::base::{Time, fnv};
use crate::proto::cac::central;
use crate::proto::cac::lease::{Action, Event, Lease};
use anyhow::Result;

/// Tells the cluster of a pair from others by its name; 0 where there is no pair, and so no other.
pub(super) fn cluster(config: &Config) -> u64 {
    let hash = config.cac.cluster.bytes().fold(fnv::BEGIN, |hash, octet| fnv::mix(hash, octet.into()));
    if config.cac.etcd.is_empty() { 0 } else { hash.max(1) }
}

/// One of a pair.
pub(super) struct Pair {
    lease: Lease,
    store: Store,
}

impl Pair {
    /// With `cac.etcd`: one that asks to lead.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn of(config: &Config, now: Time, waker: Waker) -> Result<Option<Pair>> {
        let cac = &config.cac;
        if cac.etcd.is_empty() {
            return Ok(None);
        }
        let listen: Vec<String> = cac.listen.iter().map(ToString::to_string).collect();
        let store = Store::start(&cac.etcd, &cac.cluster, &listen.join(" "), cac.lease, waker)?;
        Ok(Some(Pair { lease: Lease::new(now, cac.lease), store }))
    }

    /// When it has something to do at the latest.
    pub fn deadline(&self) -> Time {
        self.lease.deadline()
    }

    /// Whether etcd answers.
    pub fn store_answers(&self) -> bool {
        self.lease.store_answers() == Some(true)
    }
}

impl Process {
    /// What etcd said, and what is due: before anything else, so that nothing is granted on a lease that is over.
    pub(super) fn keep_lease(&mut self, now: Time) -> bool {
        let Some(pair) = &self.pair else { return false };
        let due = pair.lease.deadline() <= now;
        let mut answer = pair.store.answer();
        let worked = answer.is_some() || due;
        if due {
            self.lease_event(now, Event::Time);
        }
        while let Some(event) = answer {
            self.lease_event(now, event);
            answer = self.pair.as_ref().and_then(|pair| pair.store.answer());
        }
        worked
    }

    /// One event for the lease, and all that comes of it.
    pub(super) fn lease_event(&mut self, now: Time, event: Event) {
        if let Some(pair) = &mut self.pair {
            pair.lease.step(now, event);
        }
        while let Some(action) = self.pair.as_mut().and_then(|pair| pair.lease.poll()) {
            match action {
                Action::Acquire { .. } | Action::Renew { .. } | Action::Release => {
                    if let Some(pair) = &self.pair {
                        pair.store.ask(action);
                    }
                }
                Action::Lead { epoch, until } => self.step(now, central::Event::Lead(epoch, until)),
                Action::Extend { until } => self.step(now, central::Event::Extend(until)),
                Action::StepDown => self.step(now, central::Event::StepDown),
                Action::Store { answers: true } => self.happened(now, "etcd answers".into(), false),
                Action::Store { answers: false } => self.happened(now, "etcd does not answer".into(), true),
            }
        }
    }

    /// The process ends: gateways hear of it, and of a pair the other one leads at once.
    pub(super) fn leave(&mut self, now: Time) {
        self.lease_event(now, Event::Resign);
        self.step(now, central::Event::Goodbye);
        if let Some(pair) = &mut self.pair {
            pair.store.finish();
        }
    }
}
