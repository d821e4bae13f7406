//! The names of agents: looked up in a thread of its own, before their time to live has passed or when a core cannot reach an address,
//! and what was found handed to the cores as settings (RFC 3435 4.1, 4.3).

use super::Gateway;
use crate::config::{Agent, Config, Dns};
use crate::host::dns::table::{Known, Table, Trouble};
use crate::host::dns::{Resolver, fit};
use crate::proto::base::Time;
use anyhow::{Context, Result};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether a core asks, or the configuration has changed.
const EVERY: Duration = Duration::from_millis(100);

/// What is known of the names of agents, as the threads of the control loop share it.
pub(super) struct Names {
    /// What was found; changed with the lock on the configuration held.
    known: Mutex<Known>,
    /// What was not.
    troubles: Mutex<Vec<Trouble>>,
    pub(super) counters: LookupCounters,
}

impl Names {
    /// What `table` knows.
    pub(super) fn new(table: &Table) -> Names {
        Names { known: Mutex::new(table.known()), troubles: Mutex::new(table.troubles()), counters: LookupCounters::default() }
    }
}

macro_rules! lookup_counters {
    ($($field:ident = $help:literal,)+) => {
        /// What is counted of lookups since the gateway is ready.
        #[derive(Default)]
        pub(super) struct LookupCounters { $($field: AtomicU64,)+ }

        impl LookupCounters {
            /// Name, what is counted, value.
            pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((concat!("dns_", stringify!($field)), $help, self.$field.load(Ordering::Relaxed)),)+].into_iter()
            }
        }
    };
}

lookup_counters! {
    lookups = "Names of agents asked for in the DNS.",
    failures = "Lookups without an address of use; what was known stayed.",
    addresses_unfit = "Addresses in answers that no agent can be at.",
    addresses_left_out = "Addresses in answers beyond the most a name has here.",
}

/// The names of `config` with what is found for them now, within `dns.timeout`; what is not found is looked up again later.
///
/// # Errors
/// When the system gives no event queue.
pub fn first(config: &Config, now: Time) -> io::Result<Table> {
    let mut table = Table::default();
    table.want(now, names(config));
    let due = table.due(now);
    if !due.is_empty() {
        ask(&resolver(&config.dns)?, &mut table, config, now, &due, &LookupCounters::default());
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

/// Asks for these names: whether one has other addresses than before. Failures are told as alarms, not here.
fn ask(resolver: &Resolver, table: &mut Table, config: &Config, now: Time, due: &[String], counters: &LookupCounters) -> bool {
    let count = |counter: &AtomicU64, by: usize| counter.fetch_add(by as u64, Ordering::Relaxed);
    let mut any = false;
    for (name, found) in resolver.look_up(due) {
        count(&counters.lookups, 1);
        let Some((list, holds)) = found else {
            count(&counters.failures, 1);
            table.failed(now, &name);
            continue;
        };
        let owner = owner(config, &name);
        let outcome = table
            .answered(now, &name, list, holds, |ip| owner.and_then(|(agent, port)| fit::unfit(config, agent, SocketAddr::new(ip, port))));
        count(&counters.addresses_unfit, outcome.unfit);
        count(&counters.addresses_left_out, outcome.left_out);
        let known = table.known().get(&name).map(|known| known.list.clone()).unwrap_or_default();
        if table.troubles().iter().any(|trouble| trouble.name == name) {
            count(&counters.failures, 1);
        } else if outcome.changed {
            let list: Vec<_> = known.iter().map(ToString::to_string).collect();
            tracing::info!("{name}: {}", list.join(", "));
        }
        if let Some(remark) = outcome.remark {
            tracing::warn!("{name}: {remark}");
        }
        any |= outcome.changed;
    }
    any
}

/// Whose name this is, and the port used there.
fn owner<'a>(config: &'a Config, name: &str) -> Option<(&'a Agent, u16)> {
    config.agents.iter().find_map(|agent| agent.hosts.iter().find(|host| host.name == name).map(|host| (agent, host.port)))
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
                *gateway.troubles() = table.troubles();
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
                    Some(asks) => {
                        pending |= ask(asks, &mut table, &config, gateway.clock.now(), &due, &gateway.names.counters);
                    }
                    None => due.iter().for_each(|name| table.failed(gateway.clock.now(), name)),
                }
                *gateway.troubles() = table.troubles();
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
        self.names.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names without an answer of use.
    pub(super) fn troubles(&self) -> MutexGuard<'_, Vec<Trouble>> {
        self.names.troubles.lock().unwrap_or_else(PoisonError::into_inner)
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
