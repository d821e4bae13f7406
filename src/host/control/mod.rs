//! The control loop: everything around the cores that is not call control. Operator socket, reload, signals, the watch over the
//! cores, metrics.
//!
//! Owns the running configuration and the threads that serve operators. It holds no call state: what it shows it asks the cores for,
//! with a bounded wait, and a core that is silent is said to be so and left out. Every guest has its own thread, bounded in number and
//! time, so that a slow one holds up nobody.
//!
//! To drive it: [`Control::new`] binds what operators and collectors connect to; `Control::run` returns when the process is to end.

mod admission;
mod conditions;
mod gateways;
mod guests;
pub mod hosts;
mod journal;
mod lead;
pub(in crate::host) mod lists;
pub mod log;
pub mod metrics;
mod names;
pub mod orders;
mod performance;
pub mod protocol;
mod reload;
pub(in crate::host) mod server;
mod shutdown;
pub mod socket;
mod span_view;
mod stall;
#[cfg(test)]
pub(in crate::host) mod tests;
pub mod trace;
pub mod view;

use crate::config::{self, Config, CpuFacts};
use crate::host::boot;
use crate::host::clock::Clock;
use crate::host::cluster::gateway::Cluster;
use crate::host::cores::{Cores, Silent};
use crate::host::cpu;
use crate::host::detour::Detour;
use crate::host::dns::table::{Known, Table};
use crate::host::transport::xdp::Bypass;
use crate::proto::base::{CoreId, Time};
use crate::proto::core::{Answer, Ask, FacilitiesView};
use crate::proto::plan::Settings;
use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, Sender, bounded};
use protocol::GatewayView;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stall::{News, Sign, Watch};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the control loop is made of.
pub struct Setup {
    /// The running cores.
    pub cores: Arc<Cores>,
    /// The configuration they were started from.
    pub config: Config,
    /// The file it came from; `None`: the built-in one.
    pub config_path: Option<PathBuf>,
    /// Where the operator socket is to be; `None`: where the configuration says.
    pub socket: Option<PathBuf>,
    /// The CPUs of the machine, and the plan made for them.
    pub facts: CpuFacts,
    /// See `facts`.
    pub layout: config::Plan,
    /// What a configuration means to the cores, with what is known of the names of agents.
    pub settings: fn(&Config, &Known) -> Settings,
    /// The names of agents, and what was found at the start.
    pub names: Table,
    /// With AF_XDP: what must know who the agents are.
    pub bypass: Option<Arc<Bypass>>,
    /// In a cluster: the link to the central node.
    pub cluster: Option<Arc<Cluster>>,
    /// The process clock.
    pub clock: Clock,
}

/// The gateway, as the threads of the control loop share it.
struct Gateway {
    cores: Arc<Cores>,
    /// Replaced as a whole by a reload, which holds the lock meanwhile.
    config: Mutex<Arc<Config>>,
    config_path: Option<PathBuf>,
    facts: CpuFacts,
    layout: config::Plan,
    settings: fn(&Config, &Known) -> Settings,
    /// The names of agents in the DNS.
    names: hosts::Names,
    /// What the lead core said last of facilities and alarms.
    last_known: Mutex<Option<FacilitiesView>>,
    /// Conditions that began and ended.
    history: journal::History,
    bypass: Option<Arc<Bypass>>,
    /// In a cluster: the link to the central node.
    cluster: Option<Arc<Cluster>>,
    clock: Clock,
    started: Time,
    /// The user who may change things.
    owner: u32,
}

/// Why the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A signal asked for it, and everything was said.
    Asked,
    /// A signal asked for it, and the lead core did not say everything in time.
    Untold,
    /// A core was silent for too long.
    Stalled(CoreId),
    /// A core ended by itself.
    CoreEnded(CoreId),
}

impl End {
    /// The status of the process: 0 for an orderly end, 70 (EX_SOFTWARE) after a fault of ours, as when cores did not end when told to.
    pub fn exit_code(self, hanging: &[CoreId]) -> ExitCode {
        match self {
            End::Asked if hanging.is_empty() => ExitCode::SUCCESS,
            End::Asked | End::Untold | End::Stalled(_) | End::CoreEnded(_) => ExitCode::from(70),
        }
    }
}

/// The control loop.
pub struct Control {
    gateway: Arc<Gateway>,
    server: server::Server,
    metrics: Option<metrics::Server>,
}

/// What wakes the control loop: signals from when this is made, and the end of a shutdown.
pub struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

enum Event {
    Signal(i32),
    /// Whether everything was said.
    ShutdownDone(bool),
}

impl Control {
    /// Binds the operator socket and the metrics address and serves them.
    ///
    /// # Errors
    /// What the machine refused, naming the setting it is about.
    pub fn new(setup: Setup) -> Result<Control> {
        let Setup { cores, config, config_path, socket, facts, layout, settings, names, bypass, cluster, clock } = setup;
        if let Some(cpu) = layout.housekeeping_cpu
            && !cpu::pin(cpu.into())
        {
            tracing::warn!("cores.housekeeping_cpu: the kernel does not pin the control loop to CPU {cpu}");
        }
        let bound = socket::Bound::new(&socket.unwrap_or_else(|| socket::path(&config)))?;
        let address = config.metrics.address;
        let started = clock.now();
        let config = Mutex::new(Arc::new(config));
        let owner = socket::user();
        let (names, table) = (hosts::Names::new(&names), names);
        let history = journal::History::default();
        let gateway = Arc::new(Gateway {
            last_known: Mutex::default(),
            history,
            cores,
            config,
            config_path,
            facts,
            layout,
            settings,
            names,
            bypass,
            cluster,
            clock,
            started,
            owner,
        });
        hosts::start(gateway.clone(), table)?;
        let metrics = address.map(|address| metrics::Server::start(gateway.clone(), address)).transpose()?;
        let server = server::Server::start(gateway.clone(), bound)?;
        Ok(Control { gateway, server, metrics })
    }

    /// Where operators connect.
    pub fn socket(&self) -> &Path {
        self.server.path()
    }

    /// Where metrics are served.
    pub fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.metrics.as_ref().map(metrics::Server::address)
    }

    /// Watches the cores and waits for signals: SIGHUP reloads, SIGTERM and SIGINT end the process with the restart messages of a
    /// shutdown. What comes for a core that stands still is led past it by `detour` meanwhile. Returns when the process is to end; the cores still run.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(in crate::host) fn run(self, events: Events, detour: &mut Detour) -> Result<End> {
        let gateway = &self.gateway;
        journal::start(gateway.clone())?;
        let mut watch = Watch::new(gateway.clock.now(), gateway.cores.ports.len());
        let (mut shutting_down, mut fault) = (false, None);
        loop {
            let config = gateway.config();
            let (alarm, exit) = (config.limits.stall_alarm, config.limits.stall_exit);
            match events.next(Watch::interval(alarm)) {
                Some(Event::Signal(SIGHUP)) => gateway.reload_by_signal(),
                Some(Event::Signal(_)) if shutting_down => {}
                Some(Event::Signal(signal)) => {
                    tracing::info!("signal {signal}: shutting down");
                    shutting_down = true;
                    self.begin_shutdown(events.sender.clone())?;
                }
                Some(Event::ShutdownDone(said)) => return Ok(fault.unwrap_or(if said { End::Asked } else { End::Untold })),
                None => {}
            }
            for news in watch.look(gateway.clock.now(), gateway.signs(), alarm, exit) {
                gateway.keep(&news);
                if let News::Silent(core, _) | News::Back(core, _) = news {
                    detour.set(core, matches!(news, News::Silent(..)), gateway.bypass.as_deref());
                }
                let Some(end) = tell(news) else { continue };
                // The end that was asked for is bounded, and agents are told of it as long as the lead core lives.
                if !shutting_down || news.core() == gateway.cores.plan.lead() {
                    tracing::error!("the process ends");
                    return Ok(end);
                }
                fault = Some(end);
            }
            detour.collect(&gateway.cores, &gateway.clock);
        }
    }

    /// The restart messages take their time; the watch goes on meanwhile.
    fn begin_shutdown(&self, done: Sender<Event>) -> Result<()> {
        let gateway = self.gateway.clone();
        let shutdown = move || {
            let said = gateway.shut_down();
            // The loop has ended for another reason when nobody takes it.
            let _ = done.send(Event::ShutdownDone(said));
        };
        std::thread::Builder::new().name("shutdown".into()).spawn(shutdown).context("no thread for the shutdown")?;
        Ok(())
    }
}

impl Gateway {
    /// The running configuration.
    fn config(&self) -> Arc<Config> {
        self.locked_config().clone()
    }

    /// The running configuration, to be replaced.
    fn locked_config(&self) -> MutexGuard<'_, Arc<Config>> {
        // A panic of a holder leaves a whole one.
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives every core its settings, and then the bypass the addresses of agents: what it still takes from one that has gone is
    /// dropped by the cores, what it does not take yet from a new one comes by the kernel.
    fn set_settings(&self, settings: &Arc<Settings>) -> Result<(), Silent> {
        self.cores.set_settings(settings)?;
        if let Some(bypass) = &self.bypass
            && let Err(error) = bypass.set_sources(&boot::sources(settings))
        {
            tracing::error!("xdp: {error}; agents that are new are served by the kernel");
        }
        Ok(())
    }

    /// Asks these cores; those that are silent, known before or found now, go to `silent`.
    fn ask(&self, cores: &[CoreId], ask: &Ask, silent: &mut Vec<u8>) -> Vec<(CoreId, Answer)> {
        let alarm = self.config().limits.stall_alarm;
        let stalled: Vec<CoreId> = self.cores.stalled(self.clock.now(), alarm).map(|(core, _)| core).collect();
        let (quiet, live): (Vec<CoreId>, Vec<CoreId>) = cores.iter().partition(|core| stalled.contains(core));
        silent.extend(quiet.iter().map(|core| core.0));
        let mut answers = Vec::new();
        for (core, answer) in self.cores.ask_each(&live, ask, alarm) {
            match answer {
                Ok(answer) => answers.push((core, answer)),
                Err(_) => silent.push(core.0),
            }
        }
        silent.sort_unstable();
        silent.dedup();
        answers
    }

    /// Asks every core that owns endpoints.
    fn ask_owners(&self, ask: &Ask, silent: &mut Vec<u8>) -> Vec<(CoreId, Answer)> {
        self.ask(&self.cores.plan.owners, ask, silent)
    }

    /// The signs of life of the cores.
    fn signs(&self) -> impl Iterator<Item = Sign> + '_ {
        self.cores.ports.iter().map(|port| Sign {
            core: port.core,
            beat: Time(port.pulse.beat.load(Ordering::Relaxed)),
            ended: port.pulse.ended.load(Ordering::Acquire),
        })
    }

    /// Whether cards are simulated.
    fn simulated(&self) -> bool {
        self.config().spans.iter().any(|span| span.card == config::Card::Sim)
    }

    fn view(&self) -> GatewayView {
        GatewayView {
            domain: self.config().gateway.domain.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            simulated: self.simulated(),
            mixed: self.simulated() && self.config().spans.iter().any(|span| span.card != config::Card::Sim),
            uptime_s: self.clock.now().since(self.started).as_secs(),
        }
    }
}

impl Events {
    /// Catches SIGTERM, SIGINT and SIGHUP from now on. A second SIGTERM or SIGINT ends the process at once, whatever state it is in.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn catch() -> Result<Events> {
        let (sender, receiver) = bounded(16);
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, asked.clone())?;
            signal_hook::flag::register(signal, asked.clone())?;
        }
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let events = sender.clone();
        let forward = move || {
            for signal in signals.forever() {
                if events.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(forward)?;
        Ok(Events { sender, receiver })
    }

    /// A signal that has come, without waiting.
    pub(in crate::host) fn signal(&self) -> Option<i32> {
        match self.receiver.try_recv() {
            Ok(Event::Signal(signal)) => Some(signal),
            Ok(Event::ShutdownDone(_)) | Err(_) => None,
        }
    }

    /// The next event, or nothing after `within`.
    fn next(&self, within: Duration) -> Option<Event> {
        // It cannot be closed: this holds a sender itself.
        self.receiver.recv_timeout(within).ok()
    }
}

/// Logs what the watch saw; the reason when the process should end.
fn tell(news: News) -> Option<End> {
    match news {
        News::Silent(core, silence) => tracing::error!("core {}: silent for {} ms", core.0, silence.as_millis()),
        News::Back(core, silence) => tracing::warn!("core {}: goes on after {} ms of silence", core.0, silence.as_millis()),
        News::TooLong(core, silence) => {
            tracing::error!("core {}: silent for {} ms: too long", core.0, silence.as_millis());
            return Some(End::Stalled(core));
        }
        News::Ended(core) => {
            tracing::error!("core {}: ended by a fault", core.0);
            return Some(End::CoreEnded(core));
        }
    }
    None
}
