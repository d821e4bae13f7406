//! The life of a gateway process: cores, control loop, the line that says it is ready, and the end.

use super::boot::{self, Gateway};
use super::clock::Clock;
use super::control::{Control, Events, Setup, hosts};
use super::cpu;
use super::transport::steer::Steered;
use crate::config::{self, Card, Config, CpuFacts};
use anyhow::{Context, Result, anyhow};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the gateway until a signal or a fault ends it. `path` is the file of `config`, to be read again by a reload; `socket` goes
/// before `operator.socket`.
///
/// # Errors
/// What the machine refused, naming the setting it is about.
pub fn run(config: Config, path: Option<PathBuf>, socket: Option<PathBuf>) -> Result<ExitCode> {
    let events = Events::catch().context("signals")?;
    // Before anything is pinned: a thread inherits the CPUs of the one that starts it.
    let facts: CpuFacts = cpu::allowed().into_iter().map(|cpu| (cpu.id, cpu.node)).collect();
    let layout = config::plan(&config, &facts).map_err(|errors| anyhow!("{errors}"))?;
    let clock = Clock::new();
    let names = hosts::first(&config, clock.now()).context("dns")?;
    let mut gateway = Gateway::start_knowing(&config, &names.known(), clock)?;
    let bypass = gateway.bypass.clone();
    let transport = bypass.as_ref().map_or_else(|| gateway.transport.to_string(), |bypass| format!("{} on {bypass}", gateway.transport));
    let transport = match &gateway.steered {
        Steered::Single => transport,
        steered => format!("{transport}, {steered}"),
    };
    let cores = gateway.cores.clone();
    let setup = Setup {
        cores,
        config: config.clone(),
        config_path: path,
        socket,
        facts,
        layout,
        settings: boot::settings,
        names,
        bypass,
        cluster: gateway.cluster.clone(),
        clock,
    };
    let control = Control::new(setup)?;
    if let Some(cluster) = &gateway.cluster {
        cluster.ready();
    }
    tracing::info!("{}", started(&config, &gateway, &transport));
    if let Err(error) = writeln!(std::io::stdout(), "{}", ready(&config, &gateway, &transport, &control)) {
        tracing::warn!("the gateway is ready, and standard output does not take the line that says so: {error}");
    }
    let end = control.run(events, &mut gateway.detour)?;
    let cluster = gateway.cluster.clone();
    let hanging = gateway.stop();
    if let Some(cluster) = cluster {
        cluster.leave();
    }
    for core in &hanging {
        tracing::error!("core {}: does not end: the process ends without it", core.0);
    }
    Ok(end.exit_code(&hanging))
}

/// The first line of the log: what runs, and for whom.
fn started(config: &Config, gateway: &Gateway, transport: &str) -> String {
    let plan = &gateway.cores.plan;
    let listen: Vec<_> = plan.listen.iter().map(ToString::to_string).collect();
    let agents = config.agents.iter().map(|agent| {
        let notify: Vec<_> = agent.notify.iter().map(ToString::to_string).collect();
        format!("{} ({})", agent.name, notify.join(" "))
    });
    format!(
        "tollgate {} started: {} on {}, agents {}, {} endpoints, {} cores of which {} own endpoints, {transport}",
        env!("CARGO_PKG_VERSION"),
        config.gateway.domain,
        listen.join(" "),
        agents.collect::<Vec<_>>().join(", "),
        plan.topology.len(),
        plan.cores,
        plan.owners.len(),
    )
}

/// Which protocol is served where: the first addresses are those of MGCP, the others each of an H.248 gateway.
fn served(listen: &[SocketAddr], mgcp: usize) -> String {
    let text = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match listen.split_at_checked(mgcp) {
        Some((first, rest)) if !rest.is_empty() => format!("MGCP on {}, H.248 on {}", text(first), text(rest)),
        _ => format!("MGCP on {}", text(listen)),
    }
}

/// One line: what runs where, and what to try next.
fn ready(config: &Config, gateway: &Gateway, transport: &str, control: &Control) -> String {
    let plan = &gateway.cores.plan;
    let served = served(&plan.listen, config.gateway.listen.len());
    let count = config.spans.iter().filter(|span| span.card == Card::Sim).count();
    let simulated = match count {
        0 => "",
        _ if count == config.spans.len() => " on simulated cards (no voice)",
        _ => ", some on simulated cards (no voice)",
    };
    let cores = gateway.cores.ports.len();
    let metrics = control.metrics().map_or(String::new(), |address| format!(", metrics http://{address}/metrics"));
    format!(
        "tollgate {} ready: {served}, {} endpoints{simulated}, {cores} {} ({transport}), operators {}{metrics}; try: tollgate show cores",
        env!("CARGO_PKG_VERSION"),
        plan.topology.len(),
        if cores == 1 { "core" } else { "cores" },
        control.socket().display(),
    )
}
