//! From a configuration to running cores: plan, settings, sockets, frames, rings, threads.

use super::books::Books;
use super::card;
use super::clock::{Clock, wall_us_at_zero};
use super::cluster::gateway::Cluster;
use super::core_loop::{CoreLoop, Exit, Outbox, Spin, guard};
use super::cores::{CorePort, Cores, Pulse, REQUESTS};
use super::detour::Detour;
use super::dns::fit;
use super::dns::table::Known;
use super::frame::{ChunkLayout, FrameLayout, FramePool, FrameTable, HEADROOM};
use super::gateways::plans as gateway_plans;
use super::lines::{signalling, times};
use super::steered::steer;
use super::tap::Tap;
use super::transport::steer::Steered;
use super::transport::streams::{self, StreamLine, Streams};
use super::transport::wake::{self, Sleeper};
use super::transport::xdp::{Bypass, BypassSettings, Seat, SourceList, umem};
use super::transport::{Choice, Kind, SocketSettings, Transport, TransportSettings, Wanted, bind, explain_bind};
use super::{cpu, entropy, ring};
use crate::config::{
    self, BusyPoll, CacMode, Config, CpuFacts, Descriptions, Duplicates, RestartPending, Role, RsipForm, Sources, SpanKind, TransportKind,
    UnknownOptions,
};
use crate::proto::aggregate::{Forms, Widest};
use crate::proto::base::{CoreId, Counters, Time};
use crate::proto::core::{Boot, Core};
use crate::proto::endpoint::{Encoding, Law};
use crate::proto::framer::Format;
use crate::proto::overload::Levels;
use crate::proto::overload::telling::{Adds, Manner};
use crate::proto::plan::{
    Admission, AgentSettings, Limits, LoadControl, Lookups, Manners, Plan, Provisional, Settings, SpanPlan, Timers, Version,
};
use crate::proto::transaction::pace::PaceSettings;
use crate::proto::trunk::{FacilityKind, FacilityPlan, Topology};
use anyhow::{Context, Result, anyhow, bail};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Commands of a core's own outstanding at a time.
const OWN_COMMANDS: u32 = 2048;
/// Cores that still go round have so long to end.
const CORES_END_WITHIN: Duration = Duration::from_secs(2);
/// Different notified entities at a time, per core.
const ENTITIES: u16 = 256;
/// Frames for messages that wait beyond the most commands that can: one that ends gives its frame back a little later.
const SPARE_KEPT: u32 = 64;
// What the plan says of memory shared with a card is what it is.
const _: () = assert!(config::XDP_CHUNK == super::frame::CHUNK && config::XDP_SLOT_HEAD == umem::SLOT_HEAD);

/// A running gateway.
pub struct Gateway {
    /// Its cores.
    pub cores: Arc<Cores>,
    /// The process clock.
    pub clock: Clock,
    /// The transport in use, and why not a preferred one.
    pub transport: Choice,
    /// How datagrams find their core.
    pub steered: Steered,
    /// The way past cores that stand still.
    pub detour: Detour,
    /// With `xdp`: what its cores share.
    pub bypass: Option<Arc<Bypass>>,
    /// In a cluster: the link to the central node.
    pub cluster: Option<Arc<Cluster>>,
    threads: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Starts every core; returns when all of them answer.
    ///
    /// # Errors
    /// What the machine refused, naming the setting it is about.
    pub fn start(config: &Config) -> Result<Gateway> {
        Gateway::start_knowing(config, &Known::new(), Clock::new())
    }

    /// The same with what is known of the names of agents, as of this clock.
    ///
    /// # Errors
    /// As [`Gateway::start`].
    pub fn start_knowing(config: &Config, known: &Known, clock: Clock) -> Result<Gateway> {
        let facts: CpuFacts = cpu::allowed().into_iter().map(|cpu| (cpu.id, cpu.node)).collect();
        let layout = config::plan(config, &facts).map_err(|errors| anyhow!("{errors}"))?;
        let mut plan = plan(config, &layout)?;
        plan.epoch_ms = wall_us_at_zero(&clock) / 1000;
        let plan = Arc::new(plan);
        let settings = Arc::new(settings(config, known));
        let transport = Choice::make(match config.transport.kind {
            TransportKind::Auto => Wanted::Auto,
            TransportKind::Uring => Wanted::Only(Kind::Uring),
            TransportKind::Mio => Wanted::Only(Kind::Mmsg),
            TransportKind::Xdp => Wanted::Only(Kind::Xdp),
        })
        .map_err(|reason| anyhow!(reason))?;
        if transport.kind != Kind::Uring && !config.transport.sqpoll_cpus.is_empty() {
            bail!("transport.sqpoll_cpus: needs io_uring: {transport}");
        }
        check_free(&plan.listen)?;
        card::reserve_files(config);
        let bypass = match transport.kind {
            Kind::Xdp => {
                let settings = bypass_settings(config, sources(&settings), with_sockets(&layout));
                Some(Bypass::start(&settings).map_err(|reason| anyhow!("transport.kind = \"xdp\": {reason}"))?)
            }
            _ => None,
        };
        let mut parts = Parts::new(config, &layout, &plan, bypass.as_ref())?;
        let steered = steer(config.transport.steering, &plan, &parts.sockets);
        if let Steered::Refused(reason) = &steered {
            tracing::warn!(reason, "datagrams are not steered to their cores: cores forward");
        }
        let detour = Detour::new(plan.clone(), steered.clone(), &parts.sockets).context("a second descriptor for each socket")?;
        let books = Books::new(layout.cores.len()).context("no randomness from the kernel")?;
        let (ready_sender, ready) = crossbeam::channel::bounded::<Result<CoreId>>(layout.cores.len());
        let (mut ports, mut threads) = (Vec::new(), Vec::new());
        let tap = Arc::new(Tap::default());
        let (cluster, links) = Cluster::start(config, &parts.wakers, clock)?.unzip();
        let mut links = links.into_iter().flatten();
        for core_plan in &layout.cores {
            let core = core_plan.core;
            let (inbox, control) = crossbeam::channel::bounded(REQUESTS);
            let port = CorePort {
                core,
                cpu: Some(usize::from(core_plan.cpu)),
                steering: if core_plan.role == Role::Shard { Steered::Single.word() } else { steered.word() },
                counters: Arc::new(Counters::new()),
                inside: Arc::default(),
                pulse: parts.pulses[usize::from(core.0)].clone(),
                inbox,
                waker: parts.waker(core),
            };
            let (counters, inside, pulse) = (port.counters.clone(), port.inside.clone(), port.pulse.clone());
            ports.push(port);
            let part = parts.take(core, core_plan.role);
            let link = links.next();
            let (plan, settings, ready, tap) = (plan.clone(), settings.clone(), ready_sender.clone(), tap.clone());
            // A shard has no sockets: its transport only sleeps, and io_uring has nothing to do without sockets.
            let kind = if core_plan.role == Role::Shard { Kind::Mmsg } else { transport.kind };
            let books = books.clone();
            let (longest, dscp) = (plan.limits.datagram.into(), config.gateway.dscp);
            let (cpu, spin) = (usize::from(core_plan.cpu), spin(config.cores.busy_poll));
            let card = card::of_core(config, &plan, core, &clock)?;
            let gateway_cards = card::of_gateways(config, &plan, core, &clock)?;
            let seed = entropy::seed().context("no randomness from the kernel")?[0];
            let thread = std::thread::Builder::new().name(format!("core-{}", core.0));
            let run = move || {
                guard(&pulse.clone(), &counters.clone(), move || {
                    if !cpu::pin(cpu) {
                        tracing::warn!(core = core.0, cpu, "core is not pinned: the kernel refused");
                    }
                    let Part { mut pool, kept, sleeper, sockets, streams, carrier, outboxes, inboxes, table, settings: transport_settings } =
                        part;
                    pool.touch();
                    let opened = kind.open(sockets, pool, sleeper, clock, &transport_settings);
                    let opened = opened.and_then(|inner| with_streams(inner, streams, (longest, dscp), &clock));
                    let transport = match opened {
                        Ok(transport) => transport,
                        Err(error) => {
                            // Whoever started the gateway waits for this and gives up.
                            let _ = ready.send(Err(anyhow!("core {}: transport {}: {error}", core.0, kind.name())));
                            return;
                        }
                    };
                    let now = clock.now();
                    let core = Core::new(Boot { core, plan, settings, counters: counters.clone(), card, gateway_cards, seed, now });
                    let exit = match carrier {
                        Some((carrier, pool)) => Exit::Carrier(carrier, pool),
                        None => Exit::Sockets,
                    };
                    let _ = ready.send(Ok(core.id()));
                    CoreLoop {
                        core,
                        transport,
                        table,
                        exit,
                        kept,
                        outboxes,
                        inboxes,
                        control,
                        pulse,
                        counters,
                        inside,
                        spin,
                        clock,
                        tap,
                        books,
                        link,
                    }
                    .run();
                });
            };
            threads.push(thread.spawn(run).context("no thread for a core")?);
        }
        drop(ready_sender);
        for _ in &layout.cores {
            ready.recv().map_err(|_| anyhow!("a core ended while it started"))??;
        }
        let bypass = bypass.map(Arc::new);
        Ok(Gateway { cores: Arc::new(Cores { ports, plan, clock, tap }), clock, transport, steered, detour, bypass, cluster, threads })
    }

    /// Ends every core that still goes round, and waits for them, but not for one that stands still: those that did not end in time,
    /// and end with the process.
    pub fn stop(self) -> Vec<CoreId> {
        self.cores.stop();
        let until = self.clock.now() + CORES_END_WITHIN;
        let running = || self.threads.iter().any(|thread| !thread.is_finished());
        while running() && self.clock.now() < until {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let cores = self.cores.ports.iter().map(|port| port.core);
        cores.zip(&self.threads).filter(|(_, thread)| !thread.is_finished()).map(|(core, _)| core).collect()
    }
}

/// Cores share their ports among each other (SO_REUSEPORT), but two gateways must not. A gateway that was killed may hold its ports
/// for some milliseconds while the kernel ends its rings.
#[allow(clippy::disallowed_methods)]
fn check_free(listen: &[SocketAddr]) -> Result<()> {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(50);
    for &address in listen {
        let mut tries = 0;
        while let Err(error) = UdpSocket::bind(address) {
            tries += 1;
            if error.kind() != std::io::ErrorKind::AddrInUse || tries == TRIES {
                return Err(explain_bind(error)).with_context(|| format!("gateway.listen {address}"));
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// What one core is made of before it starts.
struct Part {
    pool: FramePool,
    kept: Option<FramePool>,
    sleeper: Sleeper,
    sockets: Vec<UdpSocket>,
    streams: Bound,
    carrier: Option<(CoreId, FramePool)>,
    outboxes: Vec<Option<Outbox>>,
    inboxes: Vec<(CoreId, ring::Receiver<super::core_loop::Entry>)>,
    table: Arc<FrameTable>,
    settings: TransportSettings,
}

/// The parts of all cores.
struct Parts {
    pools: Vec<Option<FramePool>>,
    /// For the cores that run commands, whichever.
    kept: Vec<FramePool>,
    sleepers: Vec<Option<Sleeper>>,
    sockets: Vec<Vec<UdpSocket>>,
    streams: Vec<Bound>,
    outboxes: Vec<Vec<Option<Outbox>>>,
    inboxes: Vec<Vec<(CoreId, ring::Receiver<super::core_loop::Entry>)>>,
    wakers: Vec<super::transport::Waker>,
    pulses: Vec<Arc<Pulse>>,
    table: Arc<FrameTable>,
    settings: TransportSettings,
    /// By place among the cores with sockets, which come first.
    sqpoll_cpus: Vec<u16>,
    carriers: Vec<CoreId>,
    /// With `xdp`, for each core with sockets.
    seats: Vec<Option<Arc<Seat>>>,
}

impl Parts {
    fn new(config: &Config, layout: &config::Plan, plan: &Plan, bypass: Option<&Bypass>) -> Result<Parts> {
        let cores = layout.cores.len();
        let wide = &config.transport;
        let received = u32::from(wide.receive_frames) + u32::from(config::in_hand(config));
        let receive = FrameLayout { frames: received, size: wide.receive_frame_bytes + HEADROOM as u32 };
        let send = FrameLayout { frames: wide.send_frames.into(), size: wide.send_frame_bytes + HEADROOM as u32 };
        // A shard writes its datagrams into frames of its own number; what its transport without sockets wants comes behind.
        let own = layout.cores.iter().map(|core| if core.role == Role::Shard { send } else { receive });
        let spare = layout.cores.iter().filter(|core| core.role == Role::Shard).map(|_| FrameLayout { frames: 1, size: receive.size });
        // Behind those, what waits on each core that runs commands.
        let waiting = FrameLayout { frames: u32::from(config::WAITING) + SPARE_KEPT, size: wide.receive_frame_bytes };
        let kept = layout.cores.iter().filter(|core| core.role != Role::Transport).map(|_| waiting);
        let layouts: Vec<FrameLayout> = own.chain(spare).chain(kept).collect();
        let slot_size = config::send_slot_bytes(config);
        // Cores with sockets take a seat each, in order, and chunks to receive into and send from.
        let mut places = 0..;
        let mut seat = |role: Role| if role == Role::Shard { None } else { bypass?.seat(places.next()?) };
        let seats: Vec<Option<Arc<Seat>>> = layout.cores.iter().map(|core| seat(core.role)).collect();
        let lent = umem::layout(config.xdp.frames.into(), wide.send_frames.into(), slot_size);
        let chunks: Vec<_> = seats.iter().map(|seat| if seat.is_some() { lent } else { ChunkLayout::default() }).collect();
        let cpus: Vec<usize> = layout.cores.iter().map(|core| core.cpu.into()).collect();
        let (table, pools) = FrameTable::placed(&layouts, &chunks, &cpus).context("memory for frames")?;
        let (mut wakers, mut sleepers) = (Vec::new(), Vec::new());
        for _ in 0..cores {
            let (waker, sleeper) = wake::pair().context("an event to wake a core")?;
            wakers.push(waker);
            sleepers.push(Some(sleeper));
        }
        let socket_settings = SocketSettings {
            receive_buffer: wide.receive_buffer.0 as usize,
            dscp: config.gateway.dscp,
            shared: with_sockets(layout) > 1,
            ..SocketSettings::default()
        };
        let mut sockets = Vec::new();
        for core in &layout.cores {
            sockets.push(match core.role {
                Role::Shard => Vec::new(),
                Role::Both | Role::Transport => bind(&plan.listen, &socket_settings).context("gateway.listen")?,
            });
        }
        let streams = bind_streams(plan, layout, config.gateway.dscp)?;
        let pulses: Vec<Arc<Pulse>> = (0..cores).map(|_| Arc::default()).collect();
        let mut outboxes: Vec<Vec<Option<Outbox>>> = (0..cores).map(|_| (0..cores).map(|_| None).collect()).collect();
        let mut inboxes: Vec<Vec<_>> = (0..cores).map(|_| Vec::new()).collect();
        for (from, outboxes) in outboxes.iter_mut().enumerate() {
            for to in (0..cores).filter(|&to| to != from) {
                let (sender, receiver) = ring::pair(config::RING_ENTRIES);
                outboxes[to] = Some(Outbox { ring: sender, waker: wakers[to].clone(), pulse: pulses[to].clone() });
                inboxes[to].push((CoreId(from as u8), receiver));
            }
        }
        let carriers = layout.cores.iter().filter(|core| core.role == Role::Transport).map(|core| core.core).collect();
        let settings = TransportSettings {
            send_slots: wide.send_frames.into(),
            slot_size,
            provided_frames: u32::from(wide.receive_frames).min(256),
            coalesce: wide.coalesce,
            sqpoll_cpu: None,
            napi_busy_poll: wide.napi_busy_poll,
            bypass: None,
        };
        let sqpoll_cpus = wide.sqpoll_cpus.clone();
        let mut pools: Vec<Option<FramePool>> = pools.into_iter().map(Some).collect();
        let kept = pools.split_off(pools.len() - plan.owners.len()).into_iter().flatten().collect();
        Ok(Parts {
            pools,
            kept,
            sleepers,
            sockets,
            streams,
            outboxes,
            inboxes,
            wakers,
            pulses,
            table,
            settings,
            sqpoll_cpus,
            carriers,
            seats,
        })
    }

    fn waker(&self, core: CoreId) -> super::transport::Waker {
        self.wakers[usize::from(core.0)].clone()
    }

    fn take(&mut self, core: CoreId, role: Role) -> Part {
        let place = usize::from(core.0);
        let kept = if role == Role::Transport { None } else { self.kept.pop() };
        let own = self.pools[place].take().expect("each core is started once");
        let (pool, carrier) = match role {
            Role::Shard => {
                let carrier = self.carriers[place % self.carriers.len()];
                let spare = self.pools.pop().flatten().expect("one spare pool for each shard");
                (spare, Some((carrier, own)))
            }
            Role::Both | Role::Transport => (own, None),
        };
        Part {
            pool,
            kept,
            sleeper: self.sleepers[place].take().expect("each core is started once"),
            sockets: std::mem::take(&mut self.sockets[place]),
            carrier,
            streams: std::mem::take(&mut self.streams[place]),
            outboxes: std::mem::take(&mut self.outboxes[place]),
            inboxes: std::mem::take(&mut self.inboxes[place]),
            table: self.table.clone(),
            settings: TransportSettings {
                sqpoll_cpu: self.sqpoll_cpus.get(place).copied(),
                bypass: self.seats[place].take(),
                ..self.settings.clone()
            },
        }
    }
}

/// Listen addresses with streams, and their sockets.
type Bound = Vec<(StreamLine, TcpListener)>;

/// By core: the listen addresses whose streams it carries. Those of a core without sockets go through its transport core.
fn bind_streams(plan: &Plan, layout: &config::Plan, dscp: u8) -> Result<Vec<Bound>> {
    let carriers: Vec<CoreId> = layout.cores.iter().filter(|core| core.role == Role::Transport).map(|core| core.core).collect();
    let mut bound: Vec<Bound> = layout.cores.iter().map(|_| Vec::new()).collect();
    for gateway in plan.gateways.iter().filter(|gateway| gateway.streams) {
        let place = usize::from(gateway.core.0);
        let is_shard = layout.cores.get(place).is_some_and(|core| core.role == Role::Shard);
        let core = if is_shard { carriers[place % carriers.len()] } else { gateway.core };
        let listen = plan.listen[usize::from(gateway.listen)];
        let line = StreamLine { local: gateway.local(), listen, controllers: gateway.controllers.clone() };
        let listener = streams::listen(&line, dscp)?;
        bound[usize::from(core.0)].push((line, listener));
    }
    Ok(bound)
}

/// A transport, with streams around it where there are some.
fn with_streams(inner: Box<dyn Transport>, bound: Bound, settings: (usize, u8), clock: &Clock) -> io::Result<Box<dyn Transport>> {
    if bound.is_empty() { Ok(inner) } else { Ok(Box::new(Streams::open(inner, bound, settings, clock)?)) }
}

/// How many cores have sockets.
fn with_sockets(layout: &config::Plan) -> usize {
    layout.cores.iter().filter(|core| core.role != Role::Shard).count()
}

/// What is asked of the bypass.
fn bypass_settings(config: &Config, sources: SourceList, cores: usize) -> BypassSettings {
    let xdp = &config.xdp;
    BypassSettings {
        listen: config.gateway.listen.clone(),
        interface: xdp.interface.fixed().cloned(),
        queues: xdp.queues.fixed().copied(),
        mode: xdp.mode,
        copy: xdp.copy,
        need_wakeup: xdp.need_wakeup,
        busy_poll: xdp.busy_poll,
        bypass_firewall: xdp.bypass_firewall,
        traffic_class: config.gateway.dscp << 2,
        sources,
        cores,
    }
}

/// Whose datagrams may be taken past the kernel: those of the agents.
pub(super) fn sources(settings: &Settings) -> SourceList {
    let agents = &settings.agents;
    let addresses = agents.iter().flat_map(|agent| &agent.addresses).copied().collect();
    SourceList { anybody: agents.iter().any(|agent| agent.any_address), addresses }
}

fn spin(busy_poll: BusyPoll) -> Spin {
    match busy_poll {
        BusyPoll::Off => Spin::Off,
        BusyPoll::For(time) => Spin::For(time),
        BusyPoll::Always => Spin::Always,
    }
}

/// The plan of the machines, from the plan of the machine.
pub(super) fn plan(config: &Config, layout: &config::Plan) -> Result<Plan> {
    let kind = |kind| match kind {
        SpanKind::T3 => FacilityKind::T3,
        SpanKind::T1 => FacilityKind::T1,
        SpanKind::E1 => FacilityKind::E1,
    };
    let facilities: Vec<FacilityPlan> = config
        .spans
        .iter()
        .map(|span| FacilityPlan { kind: kind(span.kind), unit: span.unit.into(), common_channel: span.common_channel })
        .collect();
    let topology = Topology::new(&facilities).map_err(|error| anyhow!("span: {error:?}"))?;
    let mut spans = Vec::new();
    for span in topology.spans() {
        let Some(configured) = card::configured(config, &topology, span) else {
            bail!("span: no configuration for {:?} {}", span.kind, span.number);
        };
        let law = match configured.law {
            config::Law::Mu => Law::Mu,
            config::Law::A => Law::A,
        };
        spans.push(SpanPlan {
            law,
            agent: config.agent_of(configured),
            signalling: signalling(configured),
            gateway: config.gateway_of(configured),
            superframe: configured.wire.and_then(|wire| wire.framing).is_some_and(|framing| framing.format == Format::D4)
                || configured.dahdi.is_some_and(|span| span.superframe),
            robbed: configured.robs_bits(),
        });
    }
    let gateway = &config.gateway;
    let mut domains: Vec<Box<[u8]>> = Vec::new();
    domains.push(gateway.domain.to_ascii_lowercase().into_bytes().into());
    domains.extend(gateway.aliases.iter().map(|alias| alias.to_ascii_lowercase().into_bytes().into()));
    domains.extend(gateway.listen.iter().map(|address| format!("[{}]", address.ip()).into_bytes().into()));
    let owners: Vec<CoreId> = layout.cores.iter().filter(|core| core.role != Role::Transport).map(|core| core.core).collect();
    let connections = layout.cores.iter().map(|core| core.connections).max().unwrap_or(0);
    let limits = Limits {
        connections,
        connections_per_endpoint: config.limits.connections_per_endpoint,
        blob_blocks: layout.cores.iter().map(|core| core.text_blocks).max().unwrap_or(0),
        entities: ENTITIES,
        jobs: config::WAITING,
        datagrams: config::in_hand(config),
        messages_per_datagram: config.limits.messages_per_datagram.min(255) as u8,
        slice: config.limits.endpoints_per_turn.into(),
        datagram: config.transport.receive_frame_bytes.min(super::transport::DATAGRAM_MAX as u32) as u16,
        history_entries: u32::try_from(layout.history.responses()).unwrap_or(u32::MAX),
        history_bytes: layout.history.octets(),
        own_commands: OWN_COMMANDS,
    };
    let gateways = gateway_plans(config, &topology, &spans, &owners);
    let admission = match config::tree(config) {
        Some(tree) => {
            let groups = config::groups(&topology, &config.scopes)
                .map_err(|(scope, _, problem)| anyhow!("scope[{}].members: {problem}", scope + 1))?;
            let (decide_within, cluster) = (config.cac.decide_within, config.cac.mode == CacMode::Cluster);
            let open = config::policies(config).into_iter().map(|policy| policy == crate::proto::cac::Policy::Open).collect();
            Some(Admission { tree, groups, decide_within, cluster, open })
        }
        None => None,
    };
    Ok(Plan {
        topology: Arc::new(topology),
        spans,
        domains,
        listen: config.listen(),
        cores: layout.cores.len() as u8,
        owners,
        limits,
        times: times(&config.cas),
        admission,
        gateways,
        epoch_ms: 0,
    })
}

/// What may change by a reload, or when names of agents get other addresses.
pub fn settings(config: &Config, known: &Known) -> Settings {
    let timers = &config.timers;
    Settings {
        agents: config.agents.iter().map(|one| agent(config, one, known)).collect(),
        encodings: config.sim.codecs.iter().filter_map(|codec| Encoding::by_name(codec.word().as_bytes())).collect(),
        timers: Timers {
            history: timers.t_hist,
            max: timers.t_max,
            max1: timers.max1,
            max1_by_loss: timers.max1_by_loss,
            max2: timers.max2,
            rto_initial: timers.rto_initial,
            rto_min: timers.rto_min,
            rto_max: timers.rto_max,
            long_transaction: timers.longtran,
            transaction_limit: timers.transaction_limit,
            provisional_after: timers.provisional_after,
            vote: timers.vote_deadline,
            stall: config.limits.stall_alarm,
            max_waiting_delay: Some(config.mwd()),
            disconnected_initial: timers.tdinit,
            disconnected_min: timers.tdmin,
            disconnected_max: timers.tdmax,
            digit_partial: timers.digit_partial,
            digit_critical: timers.digit_critical,
            long_duration: timers.long_duration,
            alarm_declare: timers.alarm_declare,
            alarm_clear: timers.alarm_clear,
            alarm_merge: timers.alarm_merge,
        },
        lookups: Lookups {
            at_max1: config.dns.query_at_max1,
            at_max2: config.dns.query_at_max2,
            // What the name server may take, and the way there and back inside the gateway.
            wait: config.dns.timeout + Duration::from_millis(500),
        },
        load_control: load_control(&config.load_control),
        overload: levels(&config.overload),
        telling: telling(&config.overload),
        admission: config::limits_of_cores(config),
    }
}

fn levels(overload: &config::Overload) -> Levels {
    let config::Overload { enter, leave: exit, enter_after, busy_enter, busy_after, busy_leave: busy_exit, busy_over, .. } = *overload;
    Levels { enter, exit, enter_after, busy_enter, busy_after, busy_exit, busy_over }
}

fn telling(overload: &config::Overload) -> Manner {
    let adds = match overload.notify {
        config::OverloadNotify::Add => Adds::Each,
        config::OverloadNotify::Context => Adds::First,
        config::OverloadNotify::Off => Adds::Off,
    };
    let config::Overload { notify_age: age, refuse, reduction_rise: rise, reduction_fall: fall, .. } = *overload;
    Manner { adds, age, refuse, rise, fall }
}

fn load_control(control: &config::LoadControl) -> LoadControl {
    let pace = PaceSettings {
        rate_max: control.rate_max,
        rate_min: control.rate_min,
        average: control.average,
        rise_percent: control.rise_percent,
        rise_least: control.rise_least,
        fall_percent: control.fall_percent,
        step: control.step,
    };
    LoadControl { pace, queue_high: control.queue_high, queue_low: control.queue_low }
}

fn agent(config: &Config, agent: &config::Agent, known: &Known) -> AgentSettings {
    let (mut addresses, any_address) = match &agent.addresses {
        Sources::Any => (Vec::new(), true),
        Sources::Only(list) => (list.clone(), false),
    };
    let mut notify = agent.notify.clone();
    let mut resolved = None;
    for host in &agent.hosts {
        let found = known.get(&host.name);
        let at = found.map_or(Time::ZERO, |found| found.at);
        resolved = Some(resolved.map_or(at, |oldest: Time| oldest.min(at)));
        for ip in found.map_or(&[][..], |found| &found.list).iter() {
            let address = SocketAddr::new(*ip, host.port);
            // Looked at when it was answered too; the file may have changed since.
            if fit::unfit(config, agent, address).is_some() {
                continue;
            }
            if !addresses.contains(ip) {
                addresses.push(*ip);
            }
            if !notify.contains(&address) {
                notify.push(address);
            }
        }
    }
    let widest = match agent.rsip_form {
        RsipForm::Wildcard | RsipForm::Ranges => Widest::Gateway,
        RsipForm::PerSpan => Widest::Level,
        RsipForm::Each => Widest::Endpoint,
    };
    let name = agent.hosts.first().map(|host| (host.name.clone(), host.port));
    let first = agent.notify.first().map(|address| (format!("[{}]", address.ip()), address.port())).or(name);
    let entity = first.map_or(String::new(), |(host, port)| {
        let host = agent.known_as.first().cloned().unwrap_or(host);
        format!("{}@{host}:{port}", agent.name)
    });
    let interop = agent.interop();
    let names = agent.known_as.iter().chain(agent.hosts.iter().map(|host| &host.name));
    AgentSettings {
        name: agent.name.clone(),
        entity,
        domains: names.map(|name| name.to_ascii_lowercase()).collect(),
        addresses,
        any_address,
        notify,
        resolved,
        forms: Forms { widest, ranges: agent.rsip_form == RsipForm::Ranges },
        ranges: agent.ranges,
        same_content: interop.duplicates == Duplicates::SameContent,
        refuse_while_restarting: agent.restart_pending == RestartPending::Refuse,
        max_response: agent.max_response as usize,
        pad_responses: agent.pad_responses,
        delete_on_failure: agent.dlcx_on_failure,
        admission_code: agent.admission_code,
        manners: manners(&interop),
    }
}

/// Interop settings in the words of the machines.
fn manners(interop: &config::Interop) -> Manners {
    Manners {
        version: match interop.version {
            config::Version::Mgcp => Version::Mgcp,
            config::Version::Tgcp => Version::Tgcp,
            config::Version::Any => Version::Any,
        },
        piggyback: interop.piggyback,
        provisional: match interop.provisional {
            config::Provisional::Confirmed => Provisional::Confirmed,
            config::Provisional::Plain => Provisional::Plain,
            config::Provisional::Off => Provisional::Off,
        },
        full_descriptions: interop.descriptions == Descriptions::Full,
        ignores_options: interop.unknown_options == UnknownOptions::Ignore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_default_to_what_the_built_in_file_says() {
        let of_file = settings(&Config::default_embedded(), &Known::new());
        let plain = Settings::new(of_file.agents.clone());
        let timers = Timers { max_waiting_delay: of_file.timers.max_waiting_delay, ..plain.timers };
        assert_eq!(of_file, Settings { timers, ..plain });
    }
}
