//! `tollgate nic IF`: in which ways AF_XDP works on a network card, and an echo by the best of them. `tollgate nic --ask A:P`, on
//! another host, is who the echo is for. What both print is meant to be sent along with a question about a card.
//!
//! Nothing of a gateway is involved: the port is none of its, and only datagrams that begin with a word of its own are answered, as long as
//! they came, so that nobody gets more than he sent.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hdrhistogram::Histogram;

use super::clock::Clock;
use super::transport::xdp::{BypassSettings, Lone, Netlink, SourceList, interface};
use super::transport::{BATCH, Kind, Transport, TransportSettings};
use crate::config::{XdpCopy, XdpMode};
use crate::proto::base::Time;

/// How an echo request begins; a number of eight octets follows.
const MAGIC: &[u8] = b"tollgate-echo ";
/// Octets of a request: about a CreateConnection.
const REQUEST: usize = 200;
/// Requests under way.
const WINDOW: u64 = 16;
/// After so long without any answer what is under way counts as lost.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// Chunks to receive into.
const FRAMES: u32 = 1024;
/// Where the echo listens unless told otherwise: no gateway's port, so that none is disturbed.
const PORT: u16 = 12427;

/// The ways to try, the best first.
const WAYS: [(XdpMode, XdpCopy, &str); 3] = [
    (XdpMode::Native, XdpCopy::ZeroCopy, "native, zero-copy"),
    (XdpMode::Native, XdpCopy::Copy, "native, copy"),
    (XdpMode::Generic, XdpCopy::Copy, "generic, copy"),
];

/// Arguments of `tollgate nic`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The interface to bring up.
    #[arg(value_name = "IF", required_unless_present = "ask", conflicts_with = "ask")]
    pub interface: Option<String>,
    /// Where the echo listens; else the interface's first address, port 12427.
    #[arg(long, value_name = "A:P", conflicts_with = "ask")]
    pub listen: Option<SocketAddr>,
    /// Packet filters of this host may be passed by.
    #[arg(long, conflicts_with = "ask")]
    pub bypass_firewall: bool,
    /// Ask the echo of another host instead, by this host's kernel.
    #[arg(long, value_name = "A:P")]
    pub ask: Option<SocketAddr>,
    /// How long to echo or to ask.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub seconds: u64,
}

/// Does what the arguments say and tells of it. The exit code is 0 when AF_XDP works in one way at least; of `--ask`, when there was an
/// answer.
///
/// # Errors
/// When nothing can be tried at all.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let length = Duration::from_secs(args.seconds);
    match (&args.interface, args.ask) {
        (_, Some(to)) => ask(to, length, out),
        (Some(name), None) => bring_up(name, args, length, out),
        (None, None) => bail!("an interface, or --ask"),
    }
}

fn bring_up(name: &str, args: &Args, length: Duration, out: &mut dyn Write) -> Result<ExitCode> {
    Kind::Xdp.probe().map_err(|reason| anyhow!(reason))?;
    let listen = match args.listen {
        Some(listen) => listen,
        None => (first_address(name)?, PORT).into(),
    };
    let settings = |mode, copy| BypassSettings {
        interface: Some(name.to_owned()),
        mode,
        copy,
        bypass_firewall: args.bypass_firewall,
        ..BypassSettings::new(vec![listen], SourceList { anybody: true, ..SourceList::default() })
    };
    let clock = Clock::new();
    let open = |mode, copy| Lone::open(&settings(mode, copy), FRAMES, clock, &TransportSettings::default());
    let mut best = None;
    for (mode, copy, words) in WAYS {
        match open(mode, copy) {
            Ok(lone) => {
                writeln!(out, "AF_XDP {words}: works on {}", lone.bypass)?;
                best = best.or(Some((mode, copy, words)));
            }
            Err(reason) => writeln!(out, "AF_XDP {words}: no: {reason}")?,
        }
    }
    let Some((mode, copy, words)) = best else { return Ok(ExitCode::FAILURE) };
    let mut lone = open(mode, copy).map_err(|reason| anyhow!(reason))?;
    writeln!(out, "echo at {listen} for {} s, {words}; on another host: tollgate nic --ask {listen}", length.as_secs())?;
    let (echoed, foreign) = echo(&mut lone, clock, length);
    let stats = lone.transport.stats();
    let (received, taken, sent) = (stats.received, stats.bypass_received, stats.bypass_sent);
    writeln!(out, "received {received} ({taken} past the kernel), echoed {echoed} ({sent} past the kernel), no echo requests {foreign}")?;
    let (dropped, invalid) = (stats.kernel_drops, stats.bypass_invalid);
    writeln!(out, "dropped by the kernel {dropped}, wrong headers or checksums {invalid}, send errors {}", stats.send_errors)?;
    if echoed == 0 {
        writeln!(out, "nobody asked: that the card takes and sends frames is not shown")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The address an interface listens at when none is given: its first one, of IPv4 if it has one.
fn first_address(name: &str) -> Result<IpAddr> {
    let mut netlink = Netlink::new(libc::NETLINK_ROUTE).context("netlink")?;
    let mut addresses = interface::addresses(&mut netlink, name).map_err(|reason| anyhow!(reason))?;
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().with_context(|| format!("{name} has no address; --listen gives one"))
}

/// Echoes for so long: how many, and how many datagrams were no requests.
fn echo(lone: &mut Lone, clock: Clock, length: Duration) -> (u64, u64) {
    let Lone { transport, table, .. } = lone;
    let (end, mut frames) = (clock.now() + length, Vec::with_capacity(BATCH));
    let (mut echoed, mut foreign) = (0, 0);
    while clock.now() < end {
        transport.receive(BATCH, &mut frames);
        if frames.is_empty() {
            transport.sleep(Some(Duration::from_millis(10)), &mut || true);
        }
        for frame in frames.drain(..) {
            if let Some(datagram) = table.read(frame).filter(|datagram| datagram.starts_with(MAGIC)) {
                if let Some(slot) = transport.reserve() {
                    transport.buffer(&slot)[..datagram.len()].copy_from_slice(&datagram);
                    transport.send(slot, datagram.len(), datagram.meta().from, datagram.meta().local);
                    echoed += 1;
                }
            } else {
                foreign += 1;
            }
            transport.release(frame);
        }
        transport.flush();
    }
    (echoed, foreign)
}

/// Asks for so long, and tells how long answers took.
fn ask(to: SocketAddr, length: Duration, out: &mut dyn Write) -> Result<ExitCode> {
    let from: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0; 8], 0).into() };
    let socket = UdpSocket::bind(from).context("a socket")?;
    socket.connect(to).with_context(|| format!("--ask {to}"))?;
    socket.set_read_timeout(Some(Duration::from_millis(1))).context("a socket")?;
    let clock = Clock::new();
    let end = clock.now() + length;
    let mut times = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).context("a histogram")?;
    // The requests under way, by number; 0: none.
    let mut sent = [(0, Time::ZERO); WINDOW as usize];
    let (mut next, mut under_way, mut lost) = (1, 0, 0);
    let (mut heard, mut request, mut answer) = (clock.now(), [b' '; REQUEST], [0; 2 * REQUEST]);
    request[..MAGIC.len()].copy_from_slice(MAGIC);
    while clock.now() < end {
        while under_way < WINDOW {
            let Some(free) = sent.iter_mut().find(|(number, _)| *number == 0) else { break };
            request[MAGIC.len()..MAGIC.len() + 8].copy_from_slice(&u64::to_be_bytes(next));
            if socket.send(&request).is_err() {
                // Nobody listens yet, or the kernel has no room: after a look at what came.
                break;
            }
            *free = (next, clock.now());
            (next, under_way) = (next + 1, under_way + 1);
        }
        let now = match socket.recv(&mut answer) {
            Ok(length) => {
                let now = clock.now();
                let number =
                    answer[..length].get(MAGIC.len()..).and_then(|rest| rest.first_chunk()).map(|octets| u64::from_be_bytes(*octets));
                if let Some(place) = sent.iter_mut().find(|(of, _)| *of != 0 && Some(*of) == number) {
                    times.saturating_record(now.since(place.1).as_nanos() as u64);
                    (place.0, under_way, heard) = (0, under_way - 1, now);
                }
                now
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused) => clock.now(),
            Err(error) => return Err(error).with_context(|| format!("--ask {to}")),
        };
        if now.since(heard) > LOST_AFTER {
            (lost, under_way, heard) = (lost + under_way, 0, now);
            sent.iter_mut().for_each(|place| place.0 = 0);
        }
    }
    let micros = |nanos: u64| nanos as f64 / 1e3;
    writeln!(
        out,
        "{to}: asked {}, answered {} ({:.0}/s), lost {lost}; round trip us: p50 {:.1}, p99 {:.1}, longest {:.1}",
        next - 1,
        times.len(),
        times.len() as f64 / length.as_secs_f64().max(1e-9),
        micros(times.value_at_quantile(0.5)),
        micros(times.value_at_quantile(0.99)),
        micros(times.max()),
    )?;
    Ok(if times.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
