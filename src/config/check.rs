//! From raw to valid: what values must be to each other. Single values were examined by `file` already.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::admission;
use super::dahdi;
use super::defaults::*;
use super::file::{Findings, Raw};
use super::h248;
use super::plan::{CpuFacts, History, cpu_faults};
use super::pseudowire;
use super::types::{CacMode, Card, Direction, Law, RsipForm, Signalling, Sources, SpanKind, TransportKind};
use super::valid::{Config, Layout, Span};
use super::value::{Auto, Bytes, duration_text};

/// The largest history of a core: far beyond any use, it catches slips.
const HISTORY_MAX: Bytes = Bytes(16 << 30);
/// The propagation delay T-HIST must leave room for beyond T-MAX (RFC 3435 4.3).
const PROPAGATION: Duration = Duration::from_secs(10);

/// Checks everything against everything and reports to `findings`; the result is valid when nothing was found.
pub(super) fn check(raw: Raw, facts: Option<&CpuFacts>, findings: &mut Findings<'_>) -> Config {
    // The central node of a cluster has neither agents nor channels, and reads nothing else of its file.
    let spans = if raw.cac.mode == CacMode::Central { Vec::new() } else { check_for_calls(&raw, facts, findings) };
    admission::check(&raw, &spans, findings);
    h248::check(&raw, findings);
    Config {
        gateway: raw.gateway,
        agents: raw.agents.into_iter().map(|(_, agent)| agent).collect(),
        dns: raw.dns,
        cores: raw.cores,
        transport: raw.transport,
        xdp: raw.xdp,
        sim: raw.sim,
        cesopsn: raw.cesopsn,
        dahdi: raw.dahdi,
        spans,
        h248: raw.h248.into_iter().map(|(_, gateway)| gateway).collect(),
        cas: raw.cas,
        timers: raw.timers,
        limits: raw.limits,
        overload: raw.overload,
        load_control: raw.load_control,
        cac: raw.cac,
        scopes: raw.scopes.into_iter().map(|(_, scope)| scope).collect(),
        operator: raw.operator,
        metrics: raw.metrics,
        log: raw.log,
    }
}

/// All but admission.
fn check_for_calls(raw: &Raw, facts: Option<&CpuFacts>, findings: &mut Findings<'_>) -> Vec<Span> {
    check_gateway(raw, findings);
    check_agents(raw, findings);
    check_timers(raw, findings);
    check_load_control(&raw.load_control, findings);
    check_order(raw, findings);
    check_transport(raw, findings);
    check_media(raw, findings);
    check_limits(raw, findings);
    let spans = check_spans(raw, findings);
    pseudowire::check(raw, &spans, findings);
    dahdi::check(raw, &spans, findings);
    check_cores(&raw.cores, &spans, facts, findings);
    spans
}

fn check_gateway(raw: &Raw, findings: &mut Findings<'_>) {
    let gateway = &raw.gateway;
    let simulated = raw.spans.iter().any(|(_, span)| span.card == Card::Sim);
    for (i, address) in gateway.listen.iter().enumerate() {
        let key = format!("gateway.listen[{}]", i + 1);
        if let Some(problem) = unfit(address.ip()) {
            findings.cross(&key, &["gateway.listen"], address, problem);
        } else if simulated && !raw.sim.allow_network && !address.ip().is_loopback() {
            let problem = "must be a loopback address (127.0.0.0/8 or ::1) with simulated cards, unless cards.sim.allow_network = true";
            findings.cross(&key, &["gateway.listen", "cards.sim.allow_network"], address, problem);
        }
    }
    let mut known = BTreeSet::from([gateway.domain.to_ascii_lowercase()]);
    for (i, alias) in gateway.aliases.iter().enumerate() {
        if !known.insert(alias.to_ascii_lowercase()) {
            let key = format!("gateway.aliases[{}]", i + 1);
            findings.cross(&key, &["gateway.aliases", "gateway.domain"], alias, "must differ from the domain and the other aliases");
        }
    }
}

/// Why an address can be neither the gateway's nor an agent's.
pub fn unfit(address: IpAddr) -> Option<&'static str> {
    let mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    match address {
        _ if address.is_unspecified() => Some("must be the address of one interface, not the wildcard"),
        _ if address.is_multicast() || broadcast => Some("must be the address of one machine"),
        _ if mapped => Some("must be written as the IPv4 address it stands for"),
        _ => None,
    }
}

fn check_agents(raw: &Raw, findings: &mut Findings<'_>) {
    let all_h248 = !raw.spans.is_empty() && raw.spans.iter().all(|(_, span)| span.h248 != Auto::Auto);
    if raw.agents.is_empty() && !all_h248 && !findings.stands("agent[1]") && !findings.at_fault("agent") {
        findings.table("agent", "is missing; at least one [[agent]] must say who may command the gateway");
    }
    let mut names = BTreeMap::new();
    let mut known_as = BTreeMap::new();
    let mut sources = BTreeMap::new();
    let mut anybody = None;
    for (path, agent) in &raw.agents {
        let key = |setting: &str| format!("{path}.{setting}");
        if let Some(first) = names.insert(agent.name.to_ascii_lowercase(), path) {
            findings.cross(&key("name"), &[], &agent.name, format!("must differ from the name of {first}"));
        }
        for (i, domain) in agent.known_as.iter().enumerate() {
            if let Some(first) = known_as.insert(domain.to_ascii_lowercase(), path) {
                let problem = format!("must be a name of one agent only; {first} has it");
                findings.cross(&key(&format!("known_as[{}]", i + 1)), &[&key("known_as")], domain, problem);
            }
        }
        for (i, host) in agent.hosts.iter().enumerate() {
            if let Some(first) = known_as.insert(host.name.clone(), path).filter(|first| *first != path) {
                let problem = format!("must be a name of one agent only; {first} has it");
                findings.cross(&key(&format!("hosts[{}]", i + 1)), &[&key("hosts")], host, problem);
            }
        }
        if agent.hosts.is_empty() && agent.notify.is_empty() {
            findings.cross(&key("notify"), &[&key("hosts")], &agent.notify, "must have an address unless there are hosts");
        }
        if agent.hosts.is_empty() && agent.addresses == Sources::Only(Vec::new()) {
            findings.cross(&key("addresses"), &[&key("hosts")], &agent.addresses, "must have an address unless there are hosts");
        }
        match &agent.addresses {
            Sources::Any => {
                if let Some(first) = anybody.replace(path) {
                    findings.cross(&key("addresses"), &[], &agent.addresses, format!("must be a list; {first} is \"any\" already"));
                }
            }
            Sources::Only(addresses) => {
                for (i, address) in addresses.iter().enumerate() {
                    let item = key(&format!("addresses[{}]", i + 1));
                    if let Some(problem) = unfit(*address) {
                        findings.cross(&item, &[], address, problem);
                    } else if let Some(first) = sources.insert(*address, path) {
                        let problem = format!("must be an address of one agent only, commands come from any port; {first} has it");
                        findings.cross(&item, &[], address, problem);
                    }
                }
            }
        }
        for (i, address) in agent.notify.iter().enumerate() {
            let item = key(&format!("notify[{}]", i + 1));
            if let Some(problem) = unfit_notify(address, agent, &raw.gateway) {
                findings.cross(&item, &["gateway.listen"], address, problem);
            }
        }
        if agent.rsip_form == RsipForm::Ranges && !agent.ranges {
            findings.cross(&key("rsip_form"), &[&key("ranges")], &agent.rsip_form, "must be another form unless ranges = true");
        }
        if agent.max_response > raw.transport.send_frame_bytes {
            let problem = format!("must be at most transport.send_frame_bytes = {}", raw.transport.send_frame_bytes);
            findings.cross(&key("max_response"), &["transport.send_frame_bytes"], &agent.max_response, problem);
        }
    }
}

fn check_load_control(control: &LoadControl, findings: &mut Findings<'_>) {
    let key = |setting: &str| format!("load_control.{setting}");
    if control.rate_max != 0 && control.rate_min > control.rate_max {
        findings.cross(&key("rate_min"), &[&key("rate_max")], &control.rate_min, "must be at most load_control.rate_max");
    }
    if control.queue_low >= control.queue_high {
        findings.cross(&key("queue_low"), &[&key("queue_high")], &control.queue_low, "must be below load_control.queue_high");
    }
}

/// Why notifications cannot go to `address`.
fn unfit_notify(address: &SocketAddr, agent: &Agent, gateway: &Gateway) -> Option<String> {
    if let Some(problem) = unfit(address.ip()) {
        return Some(problem.into());
    }
    if !agent.addresses.contain(address.ip()) {
        return Some("must be among the agent's addresses: its responses come from there".into());
    }
    if gateway.listen.contains(address) {
        return Some("must not be a listen address of the gateway itself".into());
    }
    if !gateway.listen.iter().any(|listen| listen.is_ipv4() == address.is_ipv4()) {
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        return Some(format!("must be of the family of a listen address; gateway.listen has no {family} one to send from"));
    }
    None
}

fn check_timers(raw: &Raw, findings: &mut Findings<'_>) {
    let t = &raw.timers;
    let most = t.t_hist.saturating_sub(PROPAGATION);
    if t.t_max > most {
        let problem = format!("must be 1s..={}: timers.t_hist less 10 s of propagation (RFC 3435 4.3)", duration_text(most));
        findings.cross("timers.t_max", &["timers.t_hist"], &t.t_max, problem);
    }
    if t.max2 <= t.max1 {
        findings.cross("timers.max2", &["timers.max1"], &t.max2, format!("must be above timers.max1 = {} (RFC 3435 4.3)", t.max1));
    }
    let t3 = raw.spans.iter().any(|(_, span)| span.kind == SpanKind::T3);
    if t3 && t.alarm_clear < PROPAGATION {
        findings.cross("timers.alarm_clear", &[], &t.alarm_clear, "must be 10s..=20s with a T3 (RFC 3896 2.4.3)");
    }
}

fn check_transport(raw: &Raw, findings: &mut Findings<'_>) {
    let frames = raw.transport.receive_frames;
    if !frames.is_power_of_two() {
        findings.cross("transport.receive_frames", &[], &frames, "must be a power of two in 16..=32768: the kernel takes no other ring");
    }
    if raw.transport.kind == TransportKind::Mio && !raw.transport.sqpoll_cpus.is_empty() {
        let problem = "must be empty with transport.kind = \"mio\": submission threads are io_uring's";
        findings.cross("transport.sqpoll_cpus", &["transport.kind"], &raw.transport.sqpoll_cpus, problem);
    }
    if raw.transport.kind == TransportKind::Xdp
        && let Some(listen) = raw.gateway.listen.iter().find(|listen| listen.ip().is_loopback())
    {
        let problem = format!("must be another one with gateway.listen {listen}: AF_XDP works with network cards, not on loopback");
        findings.cross("transport.kind", &["gateway.listen"], &raw.transport.kind, problem);
    }
    let room = u64::from(raw.transport.receive_frame_bytes) * 4;
    if raw.transport.receive_buffer.0 < room {
        let problem = format!("must be at least {}: four times transport.receive_frame_bytes", Bytes(room));
        findings.cross("transport.receive_buffer", &["transport.receive_frame_bytes"], &raw.transport.receive_buffer, problem);
    }
}

fn check_media(raw: &Raw, findings: &mut Findings<'_>) {
    if let Some(problem) = unfit(raw.sim.media_address) {
        findings.cross("cards.sim.media_address", &[], &raw.sim.media_address, problem);
    }
    for (i, listen) in raw.gateway.listen.iter().enumerate() {
        if listen.ip() == raw.sim.media_address && raw.sim.media_ports.contains(listen.port()) {
            let problem = format!("must not hold port {} of gateway.listen[{}], {listen}", listen.port(), i + 1);
            let others = ["gateway.listen", "cards.sim.media_address"];
            findings.cross("cards.sim.media_ports", &others, &raw.sim.media_ports, problem);
        }
    }
}

fn check_limits(raw: &Raw, findings: &mut Findings<'_>) {
    let limits = &raw.limits;
    let history = History { rate: limits.history_rate, t_hist: raw.timers.t_hist, bytes: limits.history_bytes };
    if history.octets() > HISTORY_MAX.0 {
        let one = History { rate: 1, ..history }.octets().max(1);
        let problem = format!("must be at most {}: {HISTORY_MAX} of history a core, rate x t_hist x history_bytes", HISTORY_MAX.0 / one);
        findings.cross("limits.history_rate", &["timers.t_hist", "limits.history_bytes"], &limits.history_rate, problem);
    }
}

/// Times of which one must be shorter than another.
fn check_order(raw: &Raw, findings: &mut Findings<'_>) {
    let (t, limits, overload, cas) = (&raw.timers, &raw.limits, &raw.overload, &raw.cas);
    let (below, up_to) = (true, false);
    let pairs = [
        ("timers.transaction_limit", t.transaction_limit, below, "timers.t_hist", t.t_hist),
        ("timers.longtran", t.longtran, below, "timers.t_hist", t.t_hist),
        ("timers.provisional_after", t.provisional_after, below, "timers.transaction_limit", t.transaction_limit),
        ("timers.vote_deadline", t.vote_deadline, below, "timers.transaction_limit", t.transaction_limit),
        ("timers.rto_min", t.rto_min, up_to, "timers.rto_initial", t.rto_initial),
        ("timers.rto_initial", t.rto_initial, up_to, "timers.rto_max", t.rto_max),
        ("timers.tdinit", t.tdinit, up_to, "timers.tdmax", t.tdmax),
        ("timers.tdmin", t.tdmin, up_to, "timers.tdmax", t.tdmax),
        ("cas.wink_min", cas.wink_min, below, "cas.wink_max", cas.wink_max),
        ("cas.hook_min", cas.hook_min, up_to, "cas.wink_min", cas.wink_min),
        ("cas.wink", cas.wink, up_to, "cas.wink_max", cas.wink_max),
        ("cas.release_min", cas.release_min, up_to, "cas.flash_min", cas.flash_min),
        ("cas.flash_min", cas.flash_min, below, "cas.flash_max", cas.flash_max),
        ("limits.stall_alarm", limits.stall_alarm, below, "limits.stall_exit", limits.stall_exit),
        ("overload.leave", overload.leave, below, "overload.enter", overload.enter),
    ];
    if overload.busy_leave >= overload.busy_enter {
        let problem = format!("must be below overload.busy_enter = {}", overload.busy_enter);
        findings.cross("overload.busy_leave", &["overload.busy_enter"], &overload.busy_leave, problem);
    }
    for (key, value, strictly, other, bound) in pairs {
        if value > bound || (strictly && value == bound) {
            let relation = if strictly { "below" } else { "at most" };
            findings.cross(key, &[other], &value, format!("must be {relation} {other} = {}", duration_text(bound)));
        }
    }
}

/// One [`Span`] for each unit of each entry. Units up to 999 of three kinds bound the gateway to 726,273 endpoints.
fn check_spans(raw: &Raw, findings: &mut Findings<'_>) -> Vec<Span> {
    if raw.spans.is_empty() && !findings.stands("span[1]") && !findings.at_fault("span") {
        findings.table("span", "is missing; at least one [[span]] must say what the gateway serves");
    }
    let first_agent = raw.agents.first().map(|(_, agent)| agent.name.clone()).unwrap_or_default();
    let mut spans: Vec<Span> = Vec::new();
    let mut taken: BTreeMap<(SpanKind, u16), &str> = BTreeMap::new();
    for (path, entry) in &raw.spans {
        let law = if entry.kind == SpanKind::E1 { Law::A } else { Law::Mu };
        let agent = entry.agent.fixed().unwrap_or(&first_agent);
        if !raw.agents.iter().any(|(_, known)| known.name == *agent) && entry.agent != Auto::Auto && !findings.any_fault_below("agent[") {
            findings.cross(&format!("{path}.agent"), &["agent"], &entry.agent, "must be \"auto\" or the name of an [[agent]]");
        }
        if entry.signalling == Signalling::Operator && entry.direction == Direction::Incoming {
            let problem = "must not be \"incoming\" with signalling = \"operator\": such trunks are outgoing only";
            findings.cross(&format!("{path}.direction"), &[], &entry.direction, problem);
        }
        let mut clash = None;
        for unit in entry.unit.first..=entry.unit.last {
            if let Some(other) = taken.get(&(entry.kind, unit)) {
                clash = clash.or(Some((unit, *other)));
                continue;
            }
            taken.insert((entry.kind, unit), path);
            spans.push(Span {
                kind: entry.kind,
                unit,
                card: entry.card,
                wire: pseudowire::wire(entry, usize::from(unit - entry.unit.first)),
                dahdi: dahdi::driver_span(entry, usize::from(unit - entry.unit.first)),
                common_channel: entry.common_channel,
                law: entry.law.fixed().copied().unwrap_or(law),
                signalling: entry.signalling,
                direction: entry.direction,
                yields: entry.yields,
                agent: agent.clone(),
                h248: entry.h248.fixed().cloned(),
            });
        }
        if let Some((unit, other)) = clash {
            let problem = format!("must not overlap another [[span]]: {other} has {} {unit}", entry.kind.word());
            findings.cross(&format!("{path}.unit"), &[], &entry.unit, problem);
        }
    }
    spans
}

fn check_cores(cores: &Cores, spans: &[Span], facts: Option<&CpuFacts>, findings: &mut Findings<'_>) {
    let together = ["cores.both", "cores.transport", "cores.shard"];
    match (cores.transport, cores.shard) {
        (0, 0) => {}
        (0, shard) => findings.cross("cores.shard", &together, &shard, "must be 0 unless cores.transport is at least 1"),
        (transport, 0) => findings.cross("cores.transport", &together, &transport, "must be 0 unless cores.shard is at least 1"),
        _ if cores.both.fixed().is_some() => {
            findings.cross("cores.both", &together, &cores.both, "must be \"auto\" with cores.transport and cores.shard");
        }
        (transport, shard) if transport.saturating_add(shard) > CORES_MAX => {
            let problem = format!("must be at most {}: {CORES_MAX} cores in all", CORES_MAX - transport.min(CORES_MAX));
            findings.cross("cores.shard", &together, &shard, problem);
        }
        _ => {}
    }
    let lines = spans.iter().map(|span| span.lines().count()).sum::<usize>();
    let (key, owners, count) = match cores.layout() {
        Layout::Both(None) => ("cores.both", 0, 1),
        Layout::Both(Some(both)) => ("cores.both", both, both),
        Layout::Split { transport, shard } => ("cores.shard", shard, transport.saturating_add(shard)),
    };
    if lines > 0 && usize::from(owners) > lines && !findings.any_fault_below("span") {
        findings.cross(key, &together, &owners, format!("must be at most {lines}: a core owns whole T1 or E1, and there are {lines}"));
    }
    if let Auto::Fixed(cpus) = &cores.cpus {
        if cpus.len() < usize::from(count) {
            let problem = format!("must name {count} CPUs, one for each core; \"auto\" lets cores share them");
            findings.cross("cores.cpus", &together, &cores.cpus, problem);
        }
        if cores.numa_nodes != Auto::Auto {
            findings.cross("cores.numa_nodes", &["cores.cpus"], &cores.numa_nodes, "must be \"auto\" when cores.cpus names the CPUs");
        }
        if let Some(cpu) = cores.housekeeping_cpu.filter(|cpu| cpus.contains(cpu)) {
            findings.cross("cores.housekeeping_cpu", &["cores.cpus"], &cores.housekeeping_cpu, format!("must not be {cpu}, a core has it"));
        }
    }
    for fault in facts.map(|facts| cpu_faults(cores, facts)).unwrap_or_default() {
        findings.cross_text(&fault.key, &["cores.cpus", "cores.numa_nodes"], fault.value, fault.problem);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    /// The built-in file with some lines replaced, each `old -> new`; the first line that begins with `old`.
    fn edited(edits: &[(&str, &str)]) -> String {
        let mut text = EMBEDDED.to_owned();
        for (old, new) in edits {
            let at = text.find(&format!("\n{old}")).unwrap_or_else(|| panic!("no line {old}")) + 1;
            let end = at + text[at..].find('\n').unwrap();
            text.replace_range(at..end, new);
        }
        text
    }

    /// The errors of an edited built-in file, each without the file name.
    fn errors(edits: &[(&str, &str)]) -> Vec<String> {
        match Config::parse(&edited(edits), "f") {
            Ok(_) => Vec::new(),
            Err(errors) => errors.to_string().lines().map(|line| line[1..].to_owned()).collect(),
        }
    }

    /// One edit must give exactly one error, which holds `wanted` and the line of the edit.
    #[track_caller]
    fn refused(edits: &[(&str, &str)], wanted: &str) {
        let text = edited(edits);
        let found = errors(edits);
        assert_eq!(found.len(), 1, "{edits:?}\n{found:#?}");
        assert!(found[0].contains(wanted), "{edits:?}\n{found:#?}\nwanted {wanted}");
        let key_line = |(_, new): &(&str, &str)| text.lines().position(|line| line == new.lines().last().unwrap_or_default());
        let lines: Vec<_> = edits.iter().filter_map(key_line).map(|at| format!(":{}: ", at + 1)).collect();
        assert!(lines.iter().any(|line| found[0].starts_with(line)), "{edits:?}\n{found:#?}\n{lines:?}");
    }

    /// G-TRX-05, G-RTX-08.
    #[test]
    fn timers_fit_each_other() {
        assert_eq!(errors(&[]), [""; 0]);
        refused(&[("t_max", "t_max = \"25s\"")], "timers.t_max = \"25s\": must be 1s..=20s: timers.t_hist less 10 s");
        refused(&[("max2", "max2 = 5")], "timers.max2 = 5: must be above timers.max1 = 5");
        refused(&[("transaction_limit", "transaction_limit = \"30s\"")], "must be below timers.t_hist = 30s");
        refused(&[("longtran", "longtran = \"60s\"")], "must be below timers.t_hist = 30s");
        refused(&[("provisional_after", "provisional_after = \"10s\"")], "must be below timers.transaction_limit = 10s");
        refused(&[("vote_deadline", "vote_deadline = \"10s\"")], "must be below timers.transaction_limit = 10s");
        refused(&[("rto_min", "rto_min = \"300ms\"")], "timers.rto_min = \"300ms\": must be at most timers.rto_initial = 200ms");
        refused(&[("rto_max", "rto_max = \"150ms\""), ("rto_initial", "rto_initial = \"160ms\"")], "must be at most timers.rto_max");
        refused(
            &[("tdmin", "tdmin = \"300s\""), ("tdmax", "tdmax = \"200s\"")],
            "timers.tdmin = \"300s\": must be at most timers.tdmax = 200s",
        );
        refused(&[("alarm_clear", "alarm_clear = \"5s\"")], "must be 10s..=20s with a T3");
        assert_eq!(errors(&[("alarm_clear", "alarm_clear = \"5s\""), ("kind = \"t3\"", "kind = \"t1\"")]), [""; 0]);
    }

    #[test]
    fn simulated_cards_stay_on_loopback_unless_allowed() {
        let beyond = ("listen", "listen = [\"127.0.0.1\", \"192.0.2.1\"]");
        refused(&[beyond], "gateway.listen[2] = \"192.0.2.1\": must be a loopback address");
        assert_eq!(errors(&[beyond, ("allow_network", "allow_network = true")]), [""; 0]);
        refused(&[("listen", "listen = [\"0.0.0.0:2427\"]")], "must be the address of one interface, not the wildcard");
        refused(&[("listen", "listen = [\"224.0.0.1\"]")], "must be the address of one machine");
        assert_eq!(errors(&[("listen", "listen = [\"[::1]:2427\", \"127.0.0.1\"]")]), [""; 0]);
        refused(&[("aliases", "aliases = [\"TGW.example.NET\"]")], "must differ from the domain");
    }

    #[test]
    fn agents_can_be_told_apart_and_reached() {
        let second = "[[agent]]\nname = \"b\"\naddresses = [\"127.0.0.2\"]\nnotify = [\"127.0.0.2\"]\n";
        let with = |old: &str, new: &str| {
            let text = EMBEDDED.replacen("\n[[agent]]", &format!("\n{}[[agent]]", second.replace(old, new)), 1);
            Config::parse(&text, "f").map(|config| config.agents.len()).map_err(|errors| errors.to_string())
        };
        assert_eq!(with("\"b\"", "\"b\""), Ok(2));
        let cases = [
            ("name = \"b\"", "name = \"CA\"", "agent[2].name = \"ca\": must differ from the name of agent[1]"),
            (
                "[\"127.0.0.2\"]\nnotify",
                "[\"127.0.0.2\", \"127.0.0.1\"]\nnotify",
                "agent[2].addresses[1] = \"127.0.0.1\": must be an address of one",
            ),
            (
                "notify = [\"127.0.0.2\"]",
                "notify = [\"127.0.0.3\"]",
                "agent[1].notify[1] = \"127.0.0.3\": must be among the agent's addresses",
            ),
            ("[\"127.0.0.2\"]\nnotify = [\"127.0.0.2\"]", "\"any\"\nnotify = [\"::1\"]", "gateway.listen has no IPv6 one"),
            ("[\"127.0.0.2\"]\nnotify = [\"127.0.0.2\"]", "\"any\"\nnotify = [\"127.0.0.1:2427\"]", "must not be a listen address"),
            ("name = \"b\"", "name = \"b\"\nrsip_form = \"ranges\"", "must be another form unless ranges = true"),
            ("name = \"b\"", "name = \"b\"\nmax_response = 5000", "must be at most transport.send_frame_bytes = 4096"),
            ("name = \"b\"\n", "", "agent[1].name: is missing"),
        ];
        for (old, new, wanted) in cases {
            let found = with(old, new).unwrap_err();
            assert!(found.contains(wanted) && found.lines().count() == 1, "{new}\n{found}");
        }
        refused(&[("known_as", "known_as = [\"a.net\", \"A.net\"]")], "must be a name of one agent only");
        let none = EMBEDDED.split("\n[[agent]]").next().unwrap().to_owned() + "\n[[span]]\nkind = \"t1\"\nunit = 1\n";
        let found = Config::parse(&none, "f").unwrap_err().to_string();
        assert_eq!(found, "f: agent: is missing; at least one [[agent]] must say who may command the gateway");
    }

    #[test]
    fn spans_do_not_overlap_and_name_their_agent() {
        let more = |table: &str| Config::parse(&format!("{EMBEDDED}\n{table}"), "f").map_err(|errors| errors.to_string());
        let config = more("[[span]]\nkind = \"t1\"\nunit = \"1-3\"\nagent = \"ca\"\n[[span]]\nkind = \"e1\"\nunit = 1\n").unwrap();
        let names: Vec<_> = config.spans.iter().map(|span| span.name()).collect();
        assert_eq!(names, ["ds/ds3-1", "ds/ds1-1", "ds/ds1-2", "ds/ds1-3", "ds/e1-1"]);
        assert_eq!((config.spans[4].law.word(), config.agent_of(&config.spans[1]).0), ("A", 0));
        let overlap = more("[[span]]\nkind = \"t3\"\nunit = \"1-2\"\n").unwrap_err();
        assert!(overlap.contains("span[2].unit = \"1-2\": must not overlap another [[span]]: span[1] has t3 1"), "{overlap}");
        let nobody = more("[[span]]\nkind = \"t1\"\nunit = 1\nagent = \"cb\"\n").unwrap_err();
        assert!(nobody.contains("span[2].agent = \"cb\": must be \"auto\" or the name of an [[agent]]"), "{nobody}");
        assert_eq!(more("[[span]]\nkind = \"t3\"\nunit = \"2-999\"\n").unwrap().spans.len(), 999);
        let rest = ["t1", "e1"].map(|kind| format!("[[span]]\nkind = \"{kind}\"\nunit = \"1-999\"\n")).concat();
        let most = more(&format!("[[span]]\nkind = \"t3\"\nunit = \"2-999\"\n{rest}")).unwrap();
        assert_eq!(most.lines().map(|line| line.endpoints).sum::<u32>(), 726_273);
    }

    #[test]
    fn cores_fit_the_spans_and_their_cpus() {
        refused(&[("both", "both = 29")], "cores.both = 29: must be at most 28");
        refused(&[("transport", "transport = 1")], "cores.transport = 1: must be 0 unless cores.shard is at least 1");
        refused(&[("shard", "shard = 1")], "cores.shard = 1: must be 0 unless cores.transport is at least 1");
        let split = [("both", "both = 2"), ("transport", "transport = 1"), ("shard", "shard = 1")];
        refused(&split, "cores.both = 2: must be \"auto\"");
        assert_eq!(errors(&split[1..]), [""; 0]);
        refused(&[("both", "both = 3"), ("cpus", "cpus = [0, 1]")], "cores.cpus = [0, 1]: must name 3 CPUs");
        refused(&[("numa_nodes", "numa_nodes = [0]"), ("cpus", "cpus = [0, 1]")], "must be \"auto\" when cores.cpus names the CPUs");
        refused(&[("housekeeping_cpu", "housekeeping_cpu = 1"), ("cpus", "cpus = [0, 1]")], "must not be 1, a core has it");
    }

    #[test]
    fn buffers_ports_and_levels_fit() {
        refused(&[("receive_frames", "receive_frames = 300")], "must be a power of two");
        let small = [("receive_buffer", "receive_buffer = \"64KiB\""), ("receive_frame_bytes", "receive_frame_bytes = 65536")];
        refused(&small, "must be at least 256KiB");
        refused(&[("media_ports", "media_ports = \"2000-2999\"")], "must not hold port 2427");
        refused(
            &[("stall_exit", "stall_exit = \"1s\""), ("stall_alarm", "stall_alarm = \"2s\"")],
            "limits.stall_alarm = \"2s\": must be below limits.stall_exit = 1s",
        );
        refused(&[("kind = \"auto\"", "kind = \"xdp\"")], "transport.kind = \"xdp\": must be another one with gateway.listen 127.0.0.1");
        let slip = ("history_rate", "history_rate = 500000");
        refused(&[slip, ("history_bytes", "history_bytes = 4096")], "must be at most 139810: 16GiB of history a core");
        refused(&[("leave", "leave = \"50ms\"")], "must be below overload.enter = 50ms");
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let found = errors(&[
            ("domain", "domain = 5"),
            ("t_max", "t_max = \"40s\""),
            ("max1", "max1 = 0"),
            ("busy_poll", "busy_pol = \"off\""),
            ("leave", "leave = \"1s\""),
        ]);
        let keys: Vec<_> = found.iter().filter_map(|line| line.split(": ").nth(1)).collect();
        let wanted = ["gateway.domain = 5", "cores.busy_pol", "timers.t_max = \"40s\"", "timers.max1 = 0", "overload.leave = \"1s\""];
        assert_eq!(keys, wanted, "{found:#?}");
    }
}
