//! The plan: which core runs on which CPU, in which role, owning which spans, with how much memory. Pure: the CPUs are handed in.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::defaults::{CORES_MAX, Cores};
use super::error::{ConfigError, Errors};
use super::types::{Bearer, BusyPoll, Card, SpanKind, Steering, TransportKind};
use super::valid::{Config, Layout, Line};
use super::value::{Auto, Bytes, Written, duration_text, words};
use crate::proto::base::CoreId;
use crate::proto::core::Missed;
use crate::proto::endpoint::{Blobs, Endpoints, PoolLimits};
use crate::proto::h248;
use crate::proto::mgcp::event::Watches;
use crate::proto::transaction::history::index_bytes;
use crate::proto::trunk::Performance;
use crate::proto::voice;

/// Streams of an H.248 gateway at a time.
pub const STREAMS_EACH: usize = 16;
/// Octets that wait to be sent on one of them, at most.
pub const STREAM_OUTPUT: usize = 128 * 1024;
/// Entries of the ring between two cores.
pub const RING_ENTRIES: usize = 1024;
/// Commands that wait on a core at a time: for a card, another core, an announcement.
pub const WAITING: u16 = 4096;
/// Received frames of a core that may stay in hand, for messages other cores have or that wait for each other; those of
/// `transport.receive_frames` are there beside them. Of two cores the other one has half of them at the most.
const IN_HAND: u16 = 2 * IN_HAND_EACH;
/// How many a shard has at the most of those of a `transport` core: what the ring to it has room for, beside other entries.
const IN_HAND_EACH: u16 = (RING_ENTRIES * 3 / 4) as u16;
/// As many cores as that can be behind and take nothing from each other.
const SHARERS: u16 = crate::proto::core::SHARERS as u16;
/// One entry is a cache line.
const RING_ENTRY_BYTES: usize = 64;

/// With AF_XDP: a frame, or a part of a send slot.
pub const XDP_CHUNK: usize = 4096;
/// With AF_XDP: room for headers in front of what is sent.
pub const XDP_SLOT_HEAD: usize = 128;
/// Room in a send slot for a RestartInProgress in front of the largest response.
const ANNOUNCEMENT_ROOM: u32 = 512;
/// The longest UDP payload over IPv4.
const DATAGRAM_MAX: u32 = 65_507;

/// What the plan needs to know about the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuFacts {
    /// Each CPU the process may use, with its NUMA node. At least one.
    pub cpus: Vec<(u16, u16)>,
}

impl FromIterator<(usize, usize)> for CpuFacts {
    /// From pairs of CPU and NUMA node; numbers beyond 65,535, which no kernel has, are left out.
    fn from_iter<I: IntoIterator<Item = (usize, usize)>>(cpus: I) -> CpuFacts {
        let narrow = |(cpu, node)| Some((u16::try_from(cpu).ok()?, u16::try_from(node).ok()?));
        CpuFacts { cpus: cpus.into_iter().filter_map(narrow).collect() }
    }
}

words! {
    /// What a core does.
    Role {
        /// Receives, runs its endpoints, sends.
        Both = "both",
        /// Receives and sends for the shards.
        Transport = "transport",
        /// Runs its endpoints.
        Shard = "shard",
    }
}

/// Memory set aside for one core at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Endpoints with their events and signals, and room for all their connections.
    pub endpoints: u64,
    /// The media of channels on real cards. What the kernel keeps for RTP while connections are up comes on top.
    pub media: u64,
    /// Descriptions, lists of events and digit maps of agents.
    pub texts: u64,
    /// Kept responses, rate x T-HIST x bytes, with their index.
    pub history: u64,
    /// Receive and send frames, with AF_XDP those shared with the card too.
    pub frames: u64,
    /// What streams of H.248 hold at most.
    pub streams: u64,
    /// Rings to the other cores.
    pub rings: u64,
    /// Receive buffers of its sockets, in the kernel.
    pub sockets: u64,
}

impl Memory {
    fn total(self) -> u64 {
        [self.endpoints, self.media, self.texts, self.history, self.frames, self.streams, self.rings, self.sockets]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// One core of the plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CorePlan {
    /// Its place among all cores.
    pub core: CoreId,
    /// What it does.
    pub role: Role,
    /// The CPU it is pinned to.
    pub cpu: u16,
    /// The NUMA node of that CPU.
    pub node: u16,
    /// The T1 and E1 it owns.
    pub lines: Vec<Line>,
    /// The endpoints on them.
    pub endpoints: u32,
    /// Connections it can hold.
    pub connections: u32,
    /// Blocks for texts of agents.
    pub text_blocks: u32,
    /// Memory set aside for it.
    pub memory: Memory,
}

/// How the history is sized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct History {
    /// Responses a second.
    pub rate: u32,
    /// How long each is kept.
    pub t_hist: Duration,
    /// Mean octets of one.
    pub bytes: u32,
}

impl History {
    /// Responses held at once.
    pub fn responses(&self) -> u64 {
        let held = u128::from(self.rate) * self.t_hist.as_micros() / 1_000_000;
        u64::try_from(held).unwrap_or(u64::MAX)
    }

    /// Octets of them.
    pub fn octets(&self) -> u64 {
        self.responses().saturating_mul(self.bytes.into())
    }
}

/// What follows from the settings on one machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The cores in order; with a split layout the transport cores come first.
    pub cores: Vec<CorePlan>,
    /// The CPU of the control loop; `None`: not pinned.
    pub housekeeping_cpu: Option<u16>,
    /// How datagrams move.
    pub transport: TransportKind,
    /// How datagrams find their core.
    pub steering: Steering,
    /// How idle cores wait.
    pub busy_poll: BusyPoll,
    /// How the history of a core is sized.
    pub history: History,
    /// What an operator should know before starting; not wrong.
    pub notes: Vec<String>,
}

/// Why settings do not fit the CPUs of this machine.
pub(super) struct CpuFault {
    pub key: String,
    pub value: String,
    pub problem: String,
}

/// The plan of `config` on a machine with these CPUs, or every way in which they do not fit. (`check_file` gives the lines too.)
pub fn plan(config: &Config, facts: &CpuFacts) -> Result<Plan, Errors> {
    refuse(cpu_faults(&config.cores, facts))?;
    let lines: Vec<Line> = config.lines().collect();
    let facilities = (lines.len() + config.spans.iter().filter(|span| span.kind == SpanKind::T3).count()) as u64;
    let pool = pool(&config.cores, facts);
    let roles = roles(&config.cores, pool.len(), lines.len());
    let cpus = place(&config.cores, &pool, roles.len());
    refuse(submission_faults(&config.transport.sqpoll_cpus, &roles, &cpus, facts))?;
    let history = History { rate: config.limits.history_rate, t_hist: config.timers.t_hist, bytes: config.limits.history_bytes };

    let mut cores: Vec<CorePlan> = Vec::with_capacity(roles.len());
    for (i, (role, (cpu, node))) in roles.iter().zip(cpus).enumerate() {
        let core = CoreId(i as u8);
        let memory = Memory::default();
        cores.push(CorePlan { core, role: *role, cpu, node, lines: Vec::new(), endpoints: 0, connections: 0, text_blocks: 0, memory });
    }
    let owners = roles.iter().filter(|role| **role != Role::Transport).count();
    for line in lines {
        let owner = home(&line, owners);
        if let Some(core) = cores.iter_mut().filter(|core| core.role != Role::Transport).nth(owner) {
            core.endpoints += line.endpoints;
            core.lines.push(line);
        }
    }
    for core in cores.iter_mut().filter(|core| core.role != Role::Transport) {
        let every = core.endpoints.saturating_mul(config.limits.connections_per_endpoint.into());
        core.connections = config.limits.connections.fixed().copied().unwrap_or(every);
        core.text_blocks = match &config.limits.text_memory {
            Auto::Fixed(memory) => Blobs::blocks_in(memory.0),
            Auto::Auto => text_blocks(core.connections, core.endpoints),
        };
    }
    let others = cores.len() as u64 - 1;
    // Queues of the card go round the cores with sockets, which come first.
    let queues = if config.transport.kind == TransportKind::Xdp { config.xdp.queues.fixed().map_or(usize::MAX, |&n| n.into()) } else { 0 };
    let media: Vec<u64> = (0..owners).map(|owner| media(config, owner, owners)).collect();
    let mut media = media.into_iter();
    for (place, core) in cores.iter_mut().enumerate() {
        let media = if core.role == Role::Transport { 0 } else { media.next().unwrap_or(0) };
        core.memory = memory(config, core, (media, others), &history);
        if place < queues && core.role != Role::Shard {
            core.memory.frames += xdp_bytes(config);
        }
    }
    let (endpoints, spans) =
        cores.iter().fold((0, 0), |(endpoints, spans), core| (endpoints + u64::from(core.endpoints), spans + core.lines.len() as u64));
    if let Some(lead) = cores.iter_mut().find(|core| core.endpoints > 0) {
        lead.memory.endpoints += Performance::BYTES * facilities;
        // What other cores have not heard while their rings are full.
        lead.memory.endpoints += Missed::memory(endpoints, spans);
    }
    let notes = notes(config, facts, &cores);
    let (transport, steering, busy_poll) = (config.transport.kind, config.transport.steering, config.cores.busy_poll);
    Ok(Plan { cores, housekeeping_cpu: config.cores.housekeeping_cpu, transport, steering, busy_poll, history, notes })
}

fn refuse(faults: Vec<CpuFault>) -> Result<(), Errors> {
    let error = |f: CpuFault| ConfigError { file: "settings".into(), line: None, key: f.key, value: Some(f.value), problem: f.problem };
    if faults.is_empty() { Ok(()) } else { Err(Errors(faults.into_iter().map(error).collect())) }
}

/// Submission threads need a CPU each that no core has: on a core's they would take turns with it.
fn submission_faults(list: &Vec<u16>, roles: &[Role], cpus: &[(u16, u16)], facts: &CpuFacts) -> Vec<CpuFault> {
    let mut faults = Vec::new();
    let mut fault = |key: String, value: String, problem: String| faults.push(CpuFault { key, value, problem });
    let rings = roles.iter().filter(|role| **role != Role::Shard).count();
    if !list.is_empty() && list.len() != rings {
        let problem = format!("must name a CPU for each of the {rings} cores with sockets, or none");
        fault("transport.sqpoll_cpus".into(), list.show(), problem);
    }
    for (i, cpu) in list.iter().enumerate() {
        let problem = if !facts.cpus.iter().any(|(known, _)| known == cpu) {
            "must be a CPU the process may use"
        } else if cpus.iter().any(|(core, _)| core == cpu) || list.iter().take(i).any(|other| other == cpu) {
            "must be a CPU that neither a core nor another submission thread has"
        } else {
            continue;
        };
        fault(format!("transport.sqpoll_cpus[{}]", i + 1), cpu.to_string(), problem.into());
    }
    faults
}

/// The place, among the cores that own endpoints, of the one that owns a line: the last number of its local name, mod cores. The
/// rule of the design (section 3), the same that routes commands. All lines of an H.248 gateway are on one core.
fn home(line: &Line, owners: usize) -> usize {
    usize::from(line.gateway.map_or(line.unit, u16::from)) % owners.max(1)
}

/// Every way in which the settings do not fit the CPUs.
pub(super) fn cpu_faults(cores: &Cores, facts: &CpuFacts) -> Vec<CpuFault> {
    let mut faults = Vec::new();
    let mut fault = |key: &str, value: String, problem: String| faults.push(CpuFault { key: key.into(), value, problem });
    let known = |cpu: &u16| facts.cpus.iter().any(|(known, _)| known == cpu);
    let all = spans_text(facts.cpus.iter().map(|(cpu, _)| *cpu).collect());
    let fixed = |list: &Auto<Vec<u16>>| list.fixed().cloned().unwrap_or_default();

    for (i, cpu) in fixed(&cores.cpus).iter().enumerate().filter(|(_, cpu)| !known(cpu)) {
        fault(&format!("cores.cpus[{}]", i + 1), cpu.show(), format!("must be a CPU the process may use: {all}"));
    }
    for (i, node) in fixed(&cores.numa_nodes).iter().enumerate() {
        if !facts.cpus.iter().any(|(_, known)| known == node) {
            let nodes = spans_text(facts.cpus.iter().map(|(_, node)| *node).collect());
            fault(&format!("cores.numa_nodes[{}]", i + 1), node.show(), format!("must be a node with CPUs the process may use: {nodes}"));
        }
    }
    if let Some(cpu) = cores.housekeeping_cpu.filter(|cpu| !known(cpu)) {
        fault("cores.housekeeping_cpu", cpu.show(), format!("must be a CPU the process may use: {all}, or \"off\""));
    }
    let pool = pool(cores, facts);
    let needed = match cores.layout() {
        Layout::Both(count) => count.map_or(1, usize::from),
        Layout::Split { transport, shard } => usize::from(transport) + usize::from(shard),
    };
    if pool.is_empty() && faults.is_empty() {
        let (key, value) = match cores.housekeeping_cpu {
            Some(cpu) => ("cores.housekeeping_cpu", cpu.show()),
            None => ("cores.cpus", cores.cpus.show()),
        };
        faults.push(CpuFault { key: key.into(), value, problem: format!("must leave a CPU for the cores; there are: {all}") });
    } else if cores.busy_poll == BusyPoll::Always && needed > pool.len() && faults.is_empty() {
        let problem = format!("must not be \"always\" with {needed} cores on {} CPUs: they would starve each other", pool.len());
        faults.push(CpuFault { key: "cores.busy_poll".into(), value: cores.busy_poll.show(), problem });
    }
    faults
}

/// The CPUs cores may be placed on, best first: as listed, or node by node.
fn pool(cores: &Cores, facts: &CpuFacts) -> Vec<(u16, u16)> {
    let node_of = |cpu: &u16| facts.cpus.iter().find(|(known, _)| known == cpu).copied();
    if let Auto::Fixed(cpus) = &cores.cpus {
        return cpus.iter().filter_map(node_of).collect();
    }
    let mut pool: Vec<(u16, u16)> = match &cores.numa_nodes {
        Auto::Auto => facts.cpus.clone(),
        Auto::Fixed(nodes) => facts.cpus.iter().filter(|(_, node)| nodes.contains(node)).copied().collect(),
    };
    pool.retain(|(cpu, _)| Some(*cpu) != cores.housekeeping_cpu);
    pool.sort_by_key(|(cpu, node)| (*node, *cpu));
    pool
}

/// The role of each core. An automatic count leaves one CPU free unless the operator already said which CPUs to use.
fn roles(cores: &Cores, cpus: usize, lines: usize) -> Vec<Role> {
    match cores.layout() {
        Layout::Split { transport, shard } => {
            let transports = std::iter::repeat_n(Role::Transport, transport.into());
            transports.chain(std::iter::repeat_n(Role::Shard, shard.into())).collect()
        }
        Layout::Both(Some(both)) => vec![Role::Both; both.into()],
        Layout::Both(None) => {
            let chosen = cores.cpus != Auto::Auto || cores.housekeeping_cpu.is_some();
            let free = if chosen { cpus } else { cpus.saturating_sub(1) };
            vec![Role::Both; free.min(lines).clamp(1, CORES_MAX.into())]
        }
    }
}

/// A CPU for each core. The first of an automatic pool is left free while there are more CPUs than cores; with fewer they share.
fn place(cores: &Cores, pool: &[(u16, u16)], count: usize) -> Vec<(u16, u16)> {
    let skip = usize::from(cores.cpus == Auto::Auto && cores.housekeeping_cpu.is_none() && pool.len() > count);
    pool.iter().skip(skip).cycle().take(count).copied().collect()
}

fn memory(config: &Config, core: &CorePlan, (media, others): (u64, u64), history: &History) -> Memory {
    let transport = &config.transport;
    let received = u64::from(transport.receive_frames) + u64::from(in_hand(config));
    let receive = received * u64::from(transport.receive_frame_bytes);
    let waiting = u64::from(WAITING) * u64::from(transport.receive_frame_bytes);
    let send = u64::from(transport.send_frames) * u64::from(transport.send_frame_bytes);
    let sockets = transport.receive_buffer.0.saturating_mul(config.listen().len() as u64);
    let pools = PoolLimits { connections: core.connections, blob_blocks: 0, entities: 0 };
    let rings = others * (RING_ENTRIES * RING_ENTRY_BYTES) as u64;
    let endpoints = Endpoints::memory(core.endpoints, &pools).saturating_add(Watches::memory(core.endpoints));
    let texts = Blobs::memory(core.text_blocks);
    let history = history.octets().saturating_add(index_bytes(history.responses()));
    let gateways = gateways(config, core);
    let endpoints = endpoints.saturating_add(gateways.iter().map(|own| own.tables).fold(0, u64::saturating_add));
    // Each H.248 gateway has a history of its own besides.
    let history = history.saturating_mul(1 + gateways.len() as u64);
    let streams: u64 = gateways.iter().map(|own| own.streams).sum();
    match core.role {
        Role::Both => Memory { endpoints, media, texts, history, frames: receive + waiting + send, streams, rings, sockets },
        Role::Transport => Memory { endpoints: 0, media: 0, texts: 0, history: 0, frames: receive + send, streams: 0, rings, sockets },
        Role::Shard => Memory { endpoints, media, texts, history, frames: waiting + send, streams, rings, sockets: 0 },
    }
}

/// What an H.248 gateway needs besides what its endpoints do.
struct GatewayMemory {
    /// Contexts, terminations, their events and signals.
    tables: u64,
    /// Messages of its streams that come or wait to be sent, when all there may be are full.
    streams: u64,
}

/// The H.248 gateways of a core.
fn gateways(config: &Config, core: &CorePlan) -> Vec<GatewayMemory> {
    let each = config.h248.iter().enumerate().filter_map(|(place, gateway)| {
        let own = core.lines.iter().filter(|line| line.gateway.map(usize::from) == Some(place));
        let endpoints: u32 = own.map(|line| line.endpoints).sum();
        let connections = endpoints.saturating_mul(config.limits.connections_per_endpoint.into());
        let streams = if gateway.transport == Bearer::Tcp {
            STREAMS_EACH * (STREAM_OUTPUT + config.transport.receive_frame_bytes as usize)
        } else {
            0
        };
        let (tables, streams) = (h248::memory(endpoints, connections), streams as u64);
        (endpoints > 0).then_some(GatewayMemory { tables, streams })
    });
    each.collect()
}

/// The place, among the cores that own endpoints, of the one whose card carries a line: the one that owns it, unless its H.248 gateway is
/// spread.
fn carrier(config: &Config, line: &Line, owners: usize) -> usize {
    match line.gateway.and_then(|gateway| config.h248.get(usize::from(gateway))) {
        Some(gateway) if gateway.spread => usize::from(line.unit) % owners.max(1),
        _ => home(line, owners),
    }
}

/// The media of the channels that a core has on real cards, and the jitter buffers of their trunks.
fn media(config: &Config, owner: usize, owners: usize) -> u64 {
    let settings = voice::Settings { connections: config.limits.connections_per_endpoint.into(), ..voice::Settings::default() };
    let of = |line: &Line| u64::from(line.endpoints) * (voice::Ds0::bytes(&settings) + JITTER_BYTES);
    config.lines().filter(|line| line.is_real && carrier(config, line, owners) == owner).map(|line| of(&line)).sum()
}

/// A channel's part of the largest jitter buffer there is: 200 ms twice.
const JITTER_BYTES: u64 = 2 * 200 * 8;

/// The longest datagram a core can send, in octets: the largest response any agent takes behind a restart.
pub fn send_slot_bytes(config: &Config) -> u32 {
    let largest = config.agents.iter().map(|agent| agent.max_response).max().unwrap_or(0);
    config.transport.send_frame_bytes.max(largest + ANNOUNCEMENT_ROOM).min(DATAGRAM_MAX)
}

/// Received frames of a core that may stay in hand: of those lent to a network card no more than half.
pub fn in_hand(config: &Config) -> u16 {
    let frames = match config.cores.layout() {
        Layout::Split { shard, .. } => IN_HAND_EACH * (1 + u16::from(shard).clamp(1, SHARERS)),
        Layout::Both(_) => IN_HAND,
    };
    if config.transport.kind == TransportKind::Xdp { frames.min(config.xdp.frames / 2) } else { frames }
}

/// What a core shares with the card when its transport is AF_XDP, in octets: frames, and whole chunks for each send slot.
pub fn xdp_bytes(config: &Config) -> u64 {
    let slot = (XDP_SLOT_HEAD + send_slot_bytes(config) as usize).div_ceil(XDP_CHUNK) as u64;
    (u64::from(config.xdp.frames) + u64::from(config.transport.send_frames) * slot) * XDP_CHUNK as u64
}

/// Blocks for the texts of so many connections and endpoints: a remote description each, and the longest usual digit map and three lists;
/// and for notified entities.
fn text_blocks(connections: u32, endpoints: u32) -> u32 {
    let each = Blobs::blocks_for(2048) + 3;
    connections.saturating_mul(Blobs::blocks_for(400)).saturating_add(endpoints.saturating_mul(each)).saturating_add(1024)
}

fn notes(config: &Config, facts: &CpuFacts, cores: &[CorePlan]) -> Vec<String> {
    let mut notes: Vec<String> = super::cluster::idle_note(&config.cac).into_iter().collect();
    let mut on_cpu: BTreeMap<u16, usize> = BTreeMap::new();
    for core in cores {
        *on_cpu.entry(core.cpu).or_default() += 1;
    }
    if on_cpu.len() < cores.len() {
        notes.push(format!("{} cores share {} CPUs: expect waits of a scheduler's slice", cores.len(), on_cpu.len()));
    } else if on_cpu.len() == facts.cpus.len() && config.cores.busy_poll == BusyPoll::Always {
        notes.push("every CPU has a spinning core: nothing is left for the rest of the machine".into());
    }
    let idle: Vec<u16> = cores.iter().filter(|c| c.role != Role::Transport && c.endpoints == 0).map(|c| c.core.0.into()).collect();
    if !idle.is_empty() {
        notes.push(format!("core {} owns no endpoint: the last number of a span's name, mod cores, decides", spans_text(idle)));
    }
    let simulated = config.spans.iter().any(|span| span.card == Card::Sim);
    if simulated {
        let all = config.spans.iter().all(|span| span.card == Card::Sim);
        notes.push(if all { "the trunk cards are simulated: no voice" } else { "some spans are simulated: no voice on them" }.into());
        let connections = cores.iter().map(|core| u64::from(core.connections)).sum::<u64>();
        let pairs = config.sim.media_ports.pairs();
        if connections > u64::from(pairs) {
            notes.push(format!("cards.sim.media_ports has room for {pairs} connections at once, limits for {connections}"));
        }
        for agent in config.agents.iter().filter(|agent| agent.admission_code.is_some_and(|code| code >= 500)) {
            notes.push(format!("agent {}: admission_code is 500 or more: many agents take an endpoint out of use for that", agent.name));
        }
    }
    notes
}

/// Numbers in order, runs as `first-last`: `0-3,7`.
fn spans_text(mut numbers: Vec<u16>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The lines of a core in few words: `ds/ds3-1/ds1-1,3,5-7`; T3s of which it owns the same T1 together: `ds/ds3-1-9/ds1-1,3,5-7`.
fn lines_text(lines: &[Line]) -> String {
    let mut groups: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for line in lines {
        let stem = line.name.rsplit_once('-').map_or("", |(stem, _)| stem);
        groups.entry(stem).or_default().push(line.unit);
    }
    let mut alike: BTreeMap<(&str, &str, String), Vec<u16>> = BTreeMap::new();
    for (stem, units) in groups {
        let (parent, leaf) = stem.rsplit_once('/').unwrap_or(("", stem));
        let (parent, number) = parent.rsplit_once('-').map_or((parent, None), |(head, number)| (head, number.parse::<u16>().ok()));
        alike.entry((parent, leaf, spans_text(units))).or_default().extend(number);
    }
    let text = |((parent, leaf, units), numbers): ((&str, &str, String), Vec<u16>)| {
        let dash = if numbers.is_empty() { "" } else { "-" };
        format!("{parent}{dash}{}/{leaf}-{units}", spans_text(numbers))
    };
    if alike.is_empty() { "-".into() } else { alike.into_iter().map(text).collect::<Vec<_>>().join(" ") }
}

/// Octets in MiB, one decimal.
fn mib(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / f64::from(1 << 20))
}

impl fmt::Display for Plan {
    /// What `tollgate check` prints: a table of the cores, then the sizes and the notes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "core  cpu  node  role       endpoints  connections      memory  spans")?;
        for c in &self.cores {
            let (role, memory, spans) = (c.role.word(), mib(c.memory.total()), lines_text(&c.lines));
            let (core, cpu, node, endpoints, connections) = (c.core.0, c.cpu, c.node, c.endpoints, c.connections);
            writeln!(f, "{core:>4}  {cpu:>3}  {node:>4}  {role:<9}  {endpoints:>9}  {connections:>11}  {memory:>10}  {spans}")?;
        }
        match self.housekeeping_cpu {
            Some(cpu) => writeln!(f, "housekeeping on CPU {cpu}")?,
            None => writeln!(f, "housekeeping not pinned")?,
        }
        let (transport, steering, busy_poll) = (self.transport.word(), self.steering.word(), self.busy_poll.show());
        writeln!(f, "transport {transport}, steering {steering}, busy_poll {}", busy_poll.trim_matches('"'))?;
        let (rate, t_hist, bytes) = (self.history.rate, duration_text(self.history.t_hist), Bytes(self.history.bytes.into()));
        writeln!(f, "history {rate}/s x {t_hist} x {bytes} = {} for each core with endpoints", mib(self.history.octets()))?;
        let total = self.cores.iter().map(|core| core.memory);
        let sum = |part: fn(Memory) -> u64| mib(total.clone().fold(0, |sum, memory| sum.saturating_add(part(memory))));
        let (all, endpoints, texts, history) = (sum(Memory::total), sum(|m| m.endpoints), sum(|m| m.texts), sum(|m| m.history));
        let (frames, rings, sockets) = (sum(|m| m.frames), sum(|m| m.rings), sum(|m| m.sockets));
        let media = if total.clone().any(|m| m.media > 0) { format!("media {}, ", sum(|m| m.media)) } else { String::new() };
        let streams = if total.clone().any(|m| m.streams > 0) { format!("streams {}, ", sum(|m| m.streams)) } else { String::new() };
        write!(f, "memory {all}: endpoints {endpoints}, {media}texts of agents {texts}, history {history}, ")?;
        writeln!(f, "frames {frames}, {streams}rings {rings}, socket buffers {sockets}")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check_text;

    fn facts(nodes: &[u16]) -> CpuFacts {
        nodes.iter().map(|node| usize::from(*node)).enumerate().collect()
    }

    fn planned(change: impl FnOnce(&mut Config), nodes: &[u16]) -> Plan {
        let mut config = Config::default_embedded();
        change(&mut config);
        plan(&config, &facts(nodes)).unwrap()
    }

    fn cpus(plan: &Plan) -> Vec<u16> {
        plan.cores.iter().map(|core| core.cpu).collect()
    }

    #[test]
    fn the_default_leaves_the_first_cpu_free_and_runs_on_a_single_one() {
        let plan = planned(|_| (), &[0, 0]);
        assert_eq!((cpus(&plan), plan.cores[0].endpoints, plan.cores[0].connections), (vec![1], 672, 2688));
        assert_eq!(cpus(&planned(|_| (), &[0])), [0]);
        assert_eq!(cpus(&planned(|_| (), &[0; 8])), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(planned(|_| (), &[0; 200]).cores.len(), 28, "no more cores than T1");
    }

    #[test]
    fn spans_spread_evenly_and_every_endpoint_has_one_home() {
        for count in [1, 2, 4, 7, 28] {
            let plan = planned(|c| c.cores.both = Auto::Fixed(count), &[0; 32]);
            assert_eq!(plan.cores.len(), usize::from(count));
            assert!(plan.cores.iter().all(|core| core.endpoints == 672 / u32::from(count)), "{count}\n{plan}");
            for core in &plan.cores {
                assert!(core.lines.iter().all(|line| line.unit % u16::from(count) == u16::from(core.core.0)));
            }
        }
    }

    #[test]
    fn shards_follow_transport_cores_and_own_everything() {
        let plan = planned(|c| (c.cores.transport, c.cores.shard) = (1, 3), &[0, 0]);
        let roles: Vec<_> = plan.cores.iter().map(|core| (core.role, core.endpoints > 0, core.memory.history > 0)).collect();
        let shard = (Role::Shard, true, true);
        assert_eq!(roles, [(Role::Transport, false, false), shard, shard, shard]);
        assert_eq!(cpus(&plan), [0, 1, 0, 1]);
        assert!(plan.notes.iter().any(|note| note.contains("share")), "{plan}");
    }

    #[test]
    fn nodes_are_filled_one_after_the_other() {
        let interleaved = [0, 1, 0, 1, 0, 1];
        assert_eq!(cpus(&planned(|c| c.cores.both = Auto::Fixed(4), &interleaved)), [2, 4, 1, 3]);
        assert_eq!(cpus(&planned(|c| c.cores.numa_nodes = Auto::Fixed(vec![1]), &interleaved)), [3, 5]);
        assert_eq!(cpus(&planned(|c| c.cores.cpus = Auto::Fixed(vec![5, 0]), &interleaved)), [5, 0]);
        assert_eq!(cpus(&planned(|c| c.cores.housekeeping_cpu = Some(4), &interleaved)), [0, 2, 1, 3, 5]);
    }

    #[test]
    fn what_does_not_fit_the_machine_is_refused_with_key_and_line() {
        let error = |table: &str| {
            let text = crate::config::EMBEDDED.replace("\n[cores]\n", &format!("\n[cores]\n{table}\n"));
            let keys: Vec<_> = table.lines().filter_map(|line| line.split_once(" =")).map(|(key, _)| format!("\n{key} = ")).collect();
            let (head, tail) = text.split_at(text.find("\n[cores]\n").unwrap() + 10 + table.len());
            let mut tail = tail.to_owned();
            for key in keys {
                let at = tail.find(&key).unwrap();
                let end = at + 1 + tail[at + 1..].find('\n').unwrap();
                tail.replace_range(at..end, "\n");
            }
            check_text(&format!("{head}{tail}"), "t", &facts(&[0, 0, 1, 1])).map(|_| ()).unwrap_err().to_string()
        };
        let cases = [
            ("cpus = [1, 9]", "cores.cpus[2] = 9: must be a CPU the process may use: 0-3"),
            ("numa_nodes = [2]", "cores.numa_nodes[1] = 2: must be a node with CPUs the process may use: 0-1"),
            ("housekeeping_cpu = 4", "cores.housekeeping_cpu = 4: must be a CPU the process may use: 0-3, or \"off\""),
            ("numa_nodes = [1]\nhousekeeping_cpu = 1\nboth = 3\nbusy_poll = \"always\"", "with 3 cores on 2 CPUs"),
            ("both = 5\nbusy_poll = \"always\"", "cores.busy_poll = \"always\": must not be \"always\" with 5 cores on 4 CPUs"),
        ];
        for (table, wanted) in cases {
            let text = error(table);
            assert!(text.contains(wanted) && text.starts_with("t:"), "{table}\n{text}");
        }
    }

    #[test]
    fn submission_threads_need_cpus_of_their_own() {
        let planned = |list: &[u16]| {
            let mut config = Config::default_embedded();
            (config.cores.both, config.cores.cpus) = (Auto::Fixed(2), Auto::Fixed(vec![0, 1]));
            config.transport.sqpoll_cpus = list.to_vec();
            plan(&config, &facts(&[0; 4])).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!((planned(&[2, 3]), planned(&[])), (Ok(()), Ok(())));
        for (list, wanted) in [
            (&[2][..], "transport.sqpoll_cpus = [2]: must name a CPU for each of the 2 cores with sockets"),
            (&[2, 9], "transport.sqpoll_cpus[2] = 9: must be a CPU the process may use"),
            (&[1, 2], "transport.sqpoll_cpus[1] = 1: must be a CPU that neither a core"),
            (&[3, 3], "transport.sqpoll_cpus[2] = 3: must be a CPU that neither a core"),
        ] {
            assert!(planned(list).is_err_and(|error| error.contains(wanted)), "{list:?}: {:?}", planned(list));
        }
    }

    #[test]
    fn a_machine_without_cpus_for_the_cores_is_refused() {
        let mut config = Config::default_embedded();
        assert!(plan(&config, &facts(&[])).unwrap_err().to_string().contains("cores.cpus = \"auto\": must leave a CPU"));
        config.cores.housekeeping_cpu = Some(0);
        assert!(plan(&config, &facts(&[0])).unwrap_err().to_string().contains("cores.housekeeping_cpu = 0: must leave a CPU"));
    }

    #[test]
    fn the_history_is_rate_times_time_times_size() {
        let history = History { rate: 20_000, t_hist: Duration::from_millis(30_500), bytes: 256 };
        assert_eq!((history.responses(), history.octets()), (610_000, 156_160_000));
        let huge = History { rate: u32::MAX, t_hist: Duration::MAX, bytes: u32::MAX };
        assert_eq!(huge.octets(), u64::MAX);
    }

    #[test]
    fn lines_are_named_in_few_words() {
        let spans =
            "\n[[span]]\nkind = \"t3\"\nunit = \"2-9\"\n[[span]]\nkind = \"t1\"\nunit = \"1-4\"\n[[span]]\nkind = \"e1\"\nunit = 7\n";
        let mut config = Config::parse(&format!("{}{spans}", crate::config::EMBEDDED), "t").unwrap();
        config.cores.both = Auto::Fixed(14);
        let plan = plan(&config, &facts(&[0])).unwrap();
        let text = |core: usize| lines_text(&plan.cores[core].lines);
        assert_eq!((text(3), text(7)), ("ds/ds1-3 ds/ds3-1-9/ds1-3,17".into(), "ds/e1-7 ds/ds3-1-9/ds1-7,21".into()));
        assert_eq!(lines_text(&[]), "-");
    }

    #[test]
    fn media_of_real_spans_is_in_the_memory() {
        let real =
            "\n[[span]]\nkind = \"t1\"\nunit = \"1-4\"\ncard = \"cesopsn\"\nlocal = \"127.0.0.1:50000\"\npeer = \"127.0.0.2:50100\"\n";
        let text = crate::config::EMBEDDED.replacen("media_ports = \"16384-32767\"", "media_ports = \"14000-16383\"", 1);
        let plan = |text: &str| plan(&Config::parse(text, "f").unwrap(), &facts(&[0; 4])).unwrap();
        let (without, with) = (plan(&text), plan(&format!("{text}{real}")));
        let media = |plan: &Plan| plan.cores.iter().map(|core| core.memory.media).sum::<u64>();
        assert_eq!(media(&without), 0);
        // 96 channels with four connections each, whose rings have 4096 octets.
        assert!((96 * 5 * 4_096..96 * 60_000).contains(&media(&with)), "{}", media(&with));
        assert!(with.to_string().contains("media ") && !without.to_string().contains("media "));
    }

    #[test]
    fn gateways_of_h248_and_their_streams_are_in_the_memory() {
        let plan = |transport: &str, span: &str| {
            let own =
                format!("\n[[h248]]\nname = \"a\"\nlisten = \"127.0.0.1\"\ncontrollers = [\"127.0.0.2\"]\ntransport = \"{transport}\"\n");
            let text = format!("{}{own}\n[[span]]\nkind = \"t1\"\nunit = 7\n{span}\n", crate::config::EMBEDDED);
            plan(&Config::parse(&text, "f").unwrap(), &facts(&[0])).unwrap()
        };
        let memory = |plan: &Plan| plan.cores[0].memory;
        let (datagrams, streams) = (plan("udp", "h248 = \"a\""), plan("tcp", "h248 = \"a\""));
        let alone = planned(|c| c.cores.both = Auto::Fixed(1), &[0]).cores[0].memory;
        // 24 channels and 96 connections, each with a watch, and a history.
        assert!(memory(&datagrams).endpoints > alone.endpoints + 120 * 300 && memory(&datagrams).history == 2 * alone.history);
        assert_eq!((memory(&datagrams).streams, memory(&streams).streams > 16 * 128 * 1024), (0, true));
        assert!(streams.to_string().contains("streams ") && !datagrams.to_string().contains("streams "));
    }

    #[test]
    fn memory_grows_with_endpoints_connections_and_cores() {
        let of = |change: fn(&mut Config)| planned(change, &[0; 4]).cores[0].memory;
        let one = of(|c| c.cores.both = Auto::Fixed(1));
        assert!(one.endpoints > 672 * 500 + 2688 * 100 && one.texts > 672 * 2048 + 2688 * 400 && one.rings == 0, "{one:?}");
        assert!(of(|c| (c.cores.both, c.limits.connections_per_endpoint) = (Auto::Fixed(1), 1)).endpoints < one.endpoints);
        let texts = of(|c| (c.cores.both, c.limits.text_memory) = (Auto::Fixed(1), Auto::Fixed(Bytes(1 << 20)))).texts;
        assert!((1 << 20) - 244 < texts && texts <= 1 << 20, "{texts}");
        let four = of(|c| c.cores.both = Auto::Fixed(4));
        assert_eq!((four.rings, four.frames, four.history), (3 * 65_536, one.frames, one.history));
        assert!(one.history > 20_000 * 30 * 256, "with the index");
        // 2048 frames and 512 slots of two chunks, of 4 KiB each; a core without a queue of the card has none.
        let xdp = |queues| {
            let mut config = Config::default_embedded();
            (config.transport.kind, config.xdp.queues, config.cores.both) = (TransportKind::Xdp, queues, Auto::Fixed(2));
            let plan = plan(&config, &facts(&[0; 4])).unwrap();
            let in_hand = u64::from(in_hand(&Config::default_embedded()) - in_hand(&config)) * 4096;
            [0, 1].map(|core| plan.cores[core].memory.frames + in_hand - one.frames)
        };
        assert_eq!(xdp(Auto::Auto), [3072 * 4096; 2]);
        assert_eq!(xdp(Auto::Fixed(1)), [3072 * 4096, 0]);
    }

    #[test]
    fn the_printed_plan_names_cores_memory_and_history() {
        let text = planned(|c| c.cores.both = Auto::Fixed(2), &[0, 0, 0]).to_string();
        for part in ["ds/ds3-1/ds1-2,4,6", "history 20000/s x 30s x 256B = 146.5 MiB", "housekeeping not pinned", "simulated"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
