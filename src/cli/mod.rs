//! The command line: what can be typed, and where it goes. It does nothing itself.

mod admission;
mod ask;
mod calls;
mod cluster;
mod far;
mod pcapng;
mod render;
mod span;
mod table;
mod trace;

use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::config::{self, CacMode, Config, CpuFacts};
use tollgate::host::cluster::keys as cluster_keys;
use tollgate::host::control::protocol::{Behaviour, CacOrder, Echo, Far, How, Request, Sim, What};
use tollgate::host::control::{log, socket};
use tollgate::host::{self, cpu};
use tollgate::load;

/// A trunking gateway's control plane: MGCP call control for T1/T3 trunks.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    /// The operator socket; else the one of the tuning file.
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The tuning file; else the built-in one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is logged, such as "info" or "info,tollgate::host=debug"; else RUST_LOG, else the tuning file's log.level.
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::filter)]
    log: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the gateway.
    Run,
    /// Check a tuning file: the plan (exit 0), or everything that is wrong with it (exit 2).
    Check {
        /// The tuning file.
        file: PathBuf,
        /// Plan for another machine: its CPUs by NUMA node, such as "0-7" or "0-31/32-63".
        #[arg(long, value_name = "CPUS")]
        cpus: Option<String>,
    },
    /// Play the call agent against a gateway and measure it.
    Load(Box<load::Args>),
    /// Play the far end of a T1 or E1 in a pseudowire (CESoPSN, SAToP): tones, patterns and CAS bits, and what comes back.
    FarEnd(load::far_end::Args),
    /// Try AF_XDP on a network card and echo by it, or ask the echo of another host.
    Nic(host::nic::Args),
    /// Tell what this machine lacks of what the tuning file's cards need (those of the kernel's driver, DAHDI); exit 1 when something is missing.
    Probe,
    /// Show what a running gateway does.
    Show {
        /// What to show.
        #[arg(value_enum)]
        what: What,
        /// Of endpoints and connections: an endpoint, a facility (all below it), or a pattern with `*`. Of the others: the name in the
        /// first column (of transactions: the agent), or a pattern with `*`.
        name: Option<String>,
        /// Only what is in this state (idle, busy, out, blocked, leaving, down, ...; a wrong word lists them), or in each of several:
        /// `blocked,down`.
        #[arg(long)]
        state: Option<String>,
        /// Print the gateway's answer as one line of JSON.
        #[arg(long)]
        json: bool,
        /// Of one span: each 15-minute interval of the last 24 hours (JSON has them anyway).
        #[arg(long, conflicts_with = "json")]
        history: bool,
    },
    /// Take endpoints out of service; calls that are up stay until they end, unless an option says otherwise.
    Block {
        /// An endpoint, a facility, or a name with `*` or ranges such as `[1-12]`.
        name: String,
        /// After so many seconds, with the calls that are still up then; at once if none is up now.
        #[arg(long, value_name = "SECONDS", conflicts_with = "force")]
        graceful: Option<u32>,
        /// At once; calls are lost.
        #[arg(long)]
        force: bool,
    },
    /// Give endpoints back to service.
    Unblock {
        /// As for `block`.
        name: String,
    },
    /// Clear one stuck endpoint: its connections end, its request is forgotten.
    Free {
        /// The endpoint.
        name: String,
    },
    /// Send what a span receives back to its far end, for a test of the line; its endpoints are out of service meanwhile.
    Loop {
        /// Such as `ds/ds1-5` or `ds/ds3-1/ds1-5`.
        name: String,
        /// No more.
        #[arg(long)]
        off: bool,
    },
    /// Send AIS to the far end of a span, which takes the trunk out of use there; its endpoints are out of service meanwhile.
    Ais {
        /// Such as `ds/ds1-5` or `ds/ds3-1/ds1-5`.
        name: String,
        /// No more.
        #[arg(long)]
        off: bool,
    },
    /// Take no new calls anywhere.
    Drain {
        /// Take them again.
        #[arg(long)]
        off: bool,
    },
    /// Run the central node of a cluster (a tuning file with cac.mode = "central"), or order it something.
    Cac {
        /// An order to a running one; without, run it.
        #[command(subcommand)]
        order: Option<CacVerb>,
    },
    /// Write a new pair of keys for a cluster into a file, and print the public one.
    CacKey {
        /// The file, which must not be there yet.
        file: PathBuf,
    },
    /// Order something of simulated cards.
    #[command(subcommand)]
    Sim(SimVerb),
    /// Print what is received and sent, or write it to a capture file.
    Trace(trace::Args),
    /// Take over what changed in the tuning file, without touching a call.
    Reload {
        /// Only print the difference; exit 1 when the reload would be refused.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Subcommand)]
enum SimVerb {
    /// A defect of a line begins; `clear` ends all of them.
    Alarm {
        /// Such as `ds/ds3-1` or `ds/ds3-1/ds1-5`.
        facility: String,
        /// los, lof, ais, rai, loopback, equipment, packet-loss, ais-sent or clear.
        defect: String,
        /// Without the integration times.
        #[arg(long)]
        now: bool,
    },
    /// Orders to cards take so many milliseconds.
    Delay {
        /// 0 for none.
        ms: u32,
    },
    /// Cards do not answer any more, until `delay`.
    Hang,
    /// The card of each core refuses so many orders.
    Refuse {
        /// How many.
        orders: u32,
    },
    /// Packets are lost on their way here.
    Loss {
        /// So many of a million.
        ppm: u32,
    },
    /// The far end of a channel seizes it, and sends digits when it may.
    Seize {
        /// The endpoint.
        endpoint: String,
        /// Such as 5551234# or, on an MF trunk, k0,5,5,5,s0.
        #[arg(default_value = "")]
        digits: String,
    },
    /// The far end goes off-hook.
    Answer {
        /// The endpoint.
        endpoint: String,
    },
    /// The far end goes on-hook.
    Release {
        /// The endpoint.
        endpoint: String,
    },
    /// The far end winks.
    Wink {
        /// The endpoint.
        endpoint: String,
    },
    /// The far end goes on-hook for a moment.
    Flash {
        /// The endpoint.
        endpoint: String,
    },
    /// The far end sends digits.
    Digits {
        /// The endpoint.
        endpoint: String,
        /// As for `seize`.
        digits: String,
    },
    /// The far end holds a key of a telephone down.
    Hold {
        /// The endpoint.
        endpoint: String,
        /// 0 to 9, A to D, * or #.
        key: char,
        /// For so long, in ms.
        ms: u32,
    },
    /// What the far end does of its own accord from now on.
    Far {
        /// The endpoint; `*` for all that are not told by themselves.
        endpoint: String,
        /// What it does.
        #[arg(value_enum)]
        behaviour: Behaviour,
    },
    /// What the far end does with continuity tones from now on.
    Echo {
        /// The endpoint.
        endpoint: String,
        /// What it does.
        #[arg(value_enum)]
        echo: Echo,
    },
    /// A core stands still.
    Stall {
        /// Its number.
        core: u8,
        /// For so many milliseconds.
        ms: u32,
    },
}

/// What there is to do with a cluster.
#[derive(clap::Subcommand)]
enum CacVerb {
    #[command(flatten)]
    Order(CacOrder),
    /// Print the calls of a gateway as JSON, for `restore`.
    Dump {
        /// Of the central node: whose calls.
        #[arg(long)]
        node: Option<u32>,
    },
    /// Have calls that were dumped count in the next life of their gateway, at its next start (`--config`, its file).
    Restore {
        /// What `dump` printed.
        file: PathBuf,
        /// So many seconds; 0: until `cac release`.
        #[arg(long = "for", value_name = "SECONDS", default_value_t = 60)]
        seconds: u64,
    },
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let path = cli.config.as_deref();
    match cli.verb {
        Verb::Run => report(run(path, cli.socket, cli.log)),
        Verb::Check { file, cpus } => report(check(&file, cpus.as_deref())),
        Verb::Load(arguments) => report(run_load(*arguments, path, cli.socket)),
        Verb::FarEnd(arguments) => report(load::far_end::run(&arguments)),
        Verb::Cac { order: None } => report(run_central(path, cli.socket, cli.log)),
        Verb::Cac { order: Some(CacVerb::Dump { node }) } => {
            report(socket_path(path, cli.socket).and_then(|socket| calls::dump(&socket, node)))
        }
        Verb::Cac { order: Some(CacVerb::Restore { file, seconds }) } => report(calls::restore(path, cli.socket, &file, seconds)),
        Verb::CacKey { file } => report(cluster_keys::make(&file).and_then(|public| print(&public)).map(|()| ExitCode::SUCCESS)),
        Verb::Nic(arguments) => report(host::nic::run(&arguments, &mut std::io::stdout())),
        Verb::Probe => report(read(path).and_then(|config| host::probe::run(&config, &mut std::io::stdout()))),
        Verb::Show { what, history: true, .. } if what != What::Span => {
            report(Err(anyhow!("--history is of one facility: show span NAME")))
        }
        Verb::Show { what, name, state, json, history } => {
            let form = match (json, history) {
                (true, _) => ask::Form::Json,
                (false, true) => ask::Form::History,
                (false, false) => ask::Form::Text,
            };
            ask(path, cli.socket, &Request::Show { what, name, state }, form)
        }
        Verb::Trace(arguments) => {
            let form = if arguments.json { ask::Form::Json } else { ask::Form::Text };
            let trace = |socket: PathBuf| trace::run(&socket, &arguments.request(), form, arguments.pcap.as_deref());
            report(socket_path(path, cli.socket).and_then(trace))
        }
        verb => ask(path, cli.socket, &order(verb), ask::Form::Text),
    }
}

/// The request a verb stands for; those that are none were told apart before.
fn run_load(arguments: load::Args, config: Option<&Path>, socket: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    if arguments.cluster {
        return load::cluster::run(&arguments, &read_and_log(config, None)?);
    }
    let far: Arc<dyn load::FarEnds> = match arguments.far_ends {
        true => Arc::new(far::Here::play(config, arguments.voice.trunk_loss / 100.0)?),
        false => Arc::new(far::Operator::new(config, socket)),
    };
    load::run(arguments, far)
}

fn order(verb: Verb) -> Request {
    match verb {
        Verb::Block { name, graceful, force } => {
            let how = match (graceful, force) {
                (_, true) => How::Force,
                (Some(seconds), _) => How::Graceful(seconds),
                (None, false) => How::Idle,
            };
            Request::Block { name, how }
        }
        Verb::Unblock { name } => Request::Unblock { name },
        Verb::Free { name } => Request::Free { name },
        Verb::Loop { name, off } => Request::Loop { name, on: !off },
        Verb::Ais { name, off } => Request::Ais { name, on: !off },
        Verb::Drain { off } => Request::Drain { on: !off },
        Verb::Reload { dry_run } => Request::Reload { dry_run },
        Verb::Sim(SimVerb::Alarm { facility, defect, now }) => Request::Sim(Sim::Alarm { facility, defect, now }),
        Verb::Sim(SimVerb::Delay { ms }) => Request::Sim(Sim::Delay { ms }),
        Verb::Sim(SimVerb::Hang) => Request::Sim(Sim::Hang),
        Verb::Sim(SimVerb::Refuse { orders }) => Request::Sim(Sim::Refuse { orders }),
        Verb::Sim(SimVerb::Loss { ppm }) => Request::Sim(Sim::Loss { ppm }),
        Verb::Sim(SimVerb::Seize { endpoint, digits }) => far(endpoint, Far::Seize { digits }),
        Verb::Sim(SimVerb::Answer { endpoint }) => far(endpoint, Far::Answer),
        Verb::Sim(SimVerb::Release { endpoint }) => far(endpoint, Far::Release),
        Verb::Sim(SimVerb::Wink { endpoint }) => far(endpoint, Far::Wink),
        Verb::Sim(SimVerb::Flash { endpoint }) => far(endpoint, Far::Flash),
        Verb::Sim(SimVerb::Digits { endpoint, digits }) => far(endpoint, Far::Digits { digits }),
        Verb::Sim(SimVerb::Hold { endpoint, key, ms }) => far(endpoint, Far::Hold { key, ms }),
        Verb::Sim(SimVerb::Far { endpoint, behaviour }) if endpoint == "*" => Request::Sim(Sim::Behave { behaviour }),
        Verb::Sim(SimVerb::Far { endpoint, behaviour }) => far(endpoint, Far::Behave { behaviour }),
        Verb::Sim(SimVerb::Echo { endpoint, echo }) => far(endpoint, Far::Echo { echo }),
        Verb::Sim(SimVerb::Stall { core, ms }) => Request::Sim(Sim::Stall { core, ms }),
        Verb::Show { what, name, state, .. } => Request::Show { what, name, state },
        Verb::Trace(arguments) => arguments.request(),
        Verb::Cac { order: Some(CacVerb::Order(order)) } => Request::Cac(order),
        Verb::Run
        | Verb::Check { .. }
        | Verb::Load(_)
        | Verb::FarEnd(_)
        | Verb::Probe
        | Verb::Nic(_)
        | Verb::Cac { order: None | Some(CacVerb::Dump { .. } | CacVerb::Restore { .. }) }
        | Verb::CacKey { .. } => {
            unreachable!("done by main")
        }
    }
}

fn far(endpoint: String, order: Far) -> Request {
    Request::Sim(Sim::Far { endpoint, order })
}

fn read_and_log(path: Option<&Path>, log: Option<String>) -> anyhow::Result<Config> {
    let config = read(path)?;
    let given = log.or_else(|| std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty()));
    log::start(given.as_deref(), &config.log.level)?;
    Ok(config)
}

fn run_central(path: Option<&Path>, socket: Option<PathBuf>, log: Option<String>) -> anyhow::Result<ExitCode> {
    host::cluster::central::run(read_and_log(path, log)?, path.map(Path::to_owned), socket)
}

fn run(path: Option<&Path>, socket: Option<PathBuf>, log: Option<String>) -> anyhow::Result<ExitCode> {
    let config = read_and_log(path, log)?;
    if config.cac.mode == CacMode::Central {
        return Err(anyhow!("cac.mode is \"central\": this is the file of a central node, which `tollgate cac` runs"));
    }
    host::run::run(config, path.map(Path::to_owned), socket)
}

fn check(file: &Path, cpus: Option<&str>) -> anyhow::Result<ExitCode> {
    let cpus = match cpus {
        Some(text) => cpu::described(text).with_context(|| format!("--cpus {text}: wants CPU lists by node, such as 0-7 or 0-31/32-63"))?,
        None => cpu::allowed(),
    };
    let facts: CpuFacts = cpus.into_iter().map(|cpu| (cpu.id, cpu.node)).collect();
    if let Ok(config) = Config::load(file)
        && config.cac.mode == CacMode::Central
    {
        let (scopes, nodes) = (config.scopes.len(), config.cac.nodes.len());
        let note = config::idle_note(&config.cac).map_or(String::new(), |note| format!("\nnote: {note}"));
        print(&format!("a central node of admission: {scopes} scopes, {nodes} gateways expected{note}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    match config::check_file(file, &facts) {
        Ok((_, plan)) => {
            print(&plan.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(errors) => {
            complain(&errors);
            Ok(ExitCode::from(2))
        }
    }
}

fn ask(path: Option<&Path>, socket: Option<PathBuf>, request: &Request, form: ask::Form) -> ExitCode {
    report(socket_path(path, socket).and_then(|socket| ask::ask(&socket, request, form)))
}

/// The operator socket that is meant.
fn socket_path(path: Option<&Path>, socket: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match socket {
        Some(socket) => Ok(socket),
        None => read(path).map(|config| socket::path(&config)),
    }
}

fn read(path: Option<&Path>) -> anyhow::Result<Config> {
    Ok(match path {
        Some(path) => Config::load(path)?,
        None => Config::default_embedded(),
    })
}

/// What went wrong, on standard error.
fn report(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        complain(format_args!("tollgate: {error:#}"));
        ExitCode::FAILURE
    })
}

/// A text on standard output. Whoever reads may have seen enough (`| head`): no error then.
fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

/// A line on standard error; without anybody who reads it the exit code says enough.
fn complain(what: impl Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        Cli::try_parse_from(line.split(' ')).map(|cli| order(cli.verb)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_words_are_the_contract() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        let name = || "ds/ds3-1/*".to_owned();
        for (line, expected) in [
            ("tollgate show cores", Request::Show { what: What::Cores, name: None, state: None }),
            (
                "tollgate show endpoints ds/ds3-1/* --state busy --json",
                Request::Show { what: What::Endpoints, name: Some(name()), state: Some("busy".into()) },
            ),
            ("tollgate show endpoint x --socket /s", Request::Show { what: What::Endpoint, name: Some("x".into()), state: None }),
            ("tollgate block ds/ds3-1/*", Request::Block { name: name(), how: How::Idle }),
            ("tollgate block ds/ds3-1/* --graceful 30", Request::Block { name: name(), how: How::Graceful(30) }),
            ("tollgate block ds/ds3-1/* --force", Request::Block { name: name(), how: How::Force }),
            ("tollgate unblock ds/ds3-1/*", Request::Unblock { name: name() }),
            ("tollgate free x", Request::Free { name: "x".into() }),
            ("tollgate loop x", Request::Loop { name: "x".into(), on: true }),
            ("tollgate loop x --off", Request::Loop { name: "x".into(), on: false }),
            ("tollgate ais x", Request::Ais { name: "x".into(), on: true }),
            ("tollgate ais x --off", Request::Ais { name: "x".into(), on: false }),
            ("tollgate drain", Request::Drain { on: true }),
            ("tollgate drain --off", Request::Drain { on: false }),
            ("tollgate reload --dry-run", Request::Reload { dry_run: true }),
            (
                "tollgate sim alarm ds/ds3-1 los --now",
                Request::Sim(Sim::Alarm { facility: "ds/ds3-1".into(), defect: "los".into(), now: true }),
            ),
            ("tollgate sim delay 5", Request::Sim(Sim::Delay { ms: 5 })),
            ("tollgate sim hang", Request::Sim(Sim::Hang)),
            ("tollgate sim refuse 2", Request::Sim(Sim::Refuse { orders: 2 })),
            ("tollgate sim seize x k0,1,s0", far("x".into(), Far::Seize { digits: "k0,1,s0".into() })),
            ("tollgate sim seize x", far("x".into(), Far::Seize { digits: String::new() })),
            ("tollgate sim answer x", far("x".into(), Far::Answer)),
            ("tollgate sim hold x # 2500", far("x".into(), Far::Hold { key: '#', ms: 2500 })),
            ("tollgate sim far x no-answer", far("x".into(), Far::Behave { behaviour: Behaviour::NoAnswer })),
            ("tollgate sim far * hangs", Request::Sim(Sim::Behave { behaviour: Behaviour::Hangs })),
            ("tollgate sim echo x stuck", far("x".into(), Far::Echo { echo: Echo::Stuck })),
            ("tollgate cac drain 2 --off", Request::Cac(CacOrder::Drain { node: 2, off: true })),
            ("tollgate cac forget 2", Request::Cac(CacOrder::Forget { node: 2 })),
            ("tollgate cac release", Request::Cac(CacOrder::Release { guid: None })),
            ("tollgate cac resync", Request::Cac(CacOrder::Resync { node: None })),
            ("tollgate cac dry-run", Request::Cac(CacOrder::DryRun { off: false })),
            ("tollgate sim loss 100", Request::Sim(Sim::Loss { ppm: 100 })),
        ] {
            assert_eq!(request(line), Ok(expected), "{line}");
        }
        for what in ["cores", "spans", "alarms", "endpoints", "connections", "agents", "transactions", "cac", "ccbs", "counters"] {
            assert!(request(&format!("tollgate show {what}")).is_ok(), "{what}");
        }
        for bad in
            ["tollgate show", "tollgate show secrets", "tollgate block x --force --graceful 3", "tollgate sim loss -1", "tollgate free"]
        {
            assert!(request(bad).is_err(), "{bad}");
        }
    }
}
