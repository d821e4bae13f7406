//! The names of agents: looked up in a thread of its own, before their time to live has passed or when a core cannot reach an address,
//! and what was found handed to the cores as settings (RFC 3435 4.1, 4.3).

use super::Gateway;
use crate::config::{Config, Dns};
use crate::host::dns::Resolver;
use crate::host::dns::table::{Known, Table};
use crate::proto::base::Time;
use anyhow::{Context, Result};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether a core asks, or the configuration has changed.
const EVERY: Duration = Duration::from_millis(100);

/// The names of `config` with what is found for them now, within `dns.timeout`; what is not found is looked up again later.
///
/// # Errors
/// When the system gives no event queue.
pub fn first(config: &Config, now: Time) -> io::Result<Table> {
    let mut table = Table::default();
    table.want(now, names(config));
    let due = table.due(now);
    if !due.is_empty() {
        ask(&resolver(&config.dns)?, &mut table, now, &due);
    }
    Ok(table)
}

/// Every name in `config`.
fn names(config: &Config) -> impl Iterator<Item = String> + '_ {
    config.agents.iter().flat_map(|agent| &agent.hosts).map(|host| host.name.clone())
}

fn resolver(dns: &Dns) -> io::Result<Resolver> {
    Resolver::new(&dns.servers, dns.timeout)
}

/// Asks for these names: whether one has other addresses than before.
fn ask(resolver: &Resolver, table: &mut Table, now: Time, due: &[String]) -> bool {
    let mut changed = false;
    for (name, found) in resolver.look_up(due) {
        match found {
            Some((list, holds)) => {
                if table.answered(now, &name, list, holds) {
                    changed = true;
                    let list = table.known().get(&name).map(|known| known.list.iter().map(ToString::to_string).collect::<Vec<_>>());
                    tracing::info!("{name}: {}", list.unwrap_or_default().join(", "));
                }
            }
            None => {
                tracing::warn!("{name}: no name server has an address for it; what was known stays");
                table.failed(now, &name);
            }
        }
    }
    changed
}

/// Looks names up in a thread of its own until the process ends: name servers may take their time to answer.
pub(super) fn start(gateway: Arc<Gateway>, mut table: Table) -> Result<()> {
    let mut config = gateway.config();
    let mut asks = None;
    let keep = move || {
        // Something was found that the cores do not have yet.
        let mut pending = false;
        loop {
            let newest = gateway.config();
            if !Arc::ptr_eq(&config, &newest) {
                if config.dns != newest.dns {
                    asks = None;
                }
                config = newest;
                table.want(gateway.clock.now(), names(&config));
            }
            let lost = gateway.lost_agents();
            for (place, agent) in config.agents.iter().enumerate() {
                if lost.checked_shr(place as u32).unwrap_or(0) & 1 == 1 {
                    agent.hosts.iter().for_each(|host| table.ask(gateway.clock.now(), &host.name));
                }
            }
            let due = table.due(gateway.clock.now());
            if !due.is_empty() {
                if asks.is_none() {
                    asks = resolver(&config.dns).inspect_err(|error| tracing::error!("dns: {error}")).ok();
                }
                match &asks {
                    Some(asks) => pending |= ask(asks, &mut table, gateway.clock.now(), &due),
                    None => due.iter().for_each(|name| table.failed(gateway.clock.now(), name)),
                }
            }
            // A core that asked waits for the answer, also when nothing has changed.
            if pending || lost != 0 {
                pending = !gateway.hand_out_known(table.known());
            }
            std::thread::park_timeout(EVERY);
        }
    };
    std::thread::Builder::new().name("dns".into()).spawn(keep).context("no thread for name lookups")?;
    Ok(())
}

impl Gateway {
    /// What is known of the names of agents.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Agents that a core cannot reach, by their bits, since the last look.
    fn lost_agents(&self) -> u64 {
        self.cores.ports.iter().fold(0, |lost, port| lost | port.pulse.lookups.swap(0, Ordering::Relaxed))
    }

    /// Gives every core the addresses of agents as they are known now; false when one has no room for them.
    fn hand_out_known(&self, known: Known) -> bool {
        let config = self.locked_config();
        *self.known() = known;
        let settings = (self.settings)(&config, &self.known());
        self.set_settings(&Arc::new(settings)).is_ok()
    }
}
