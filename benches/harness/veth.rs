//! Two network namespaces joined by a veth pair instead of loopback: the server's side is the process's, the client's the far one.
//!
//! A veth pair has no hardware: the sender's CPU carries a datagram through the far side's receive path, as over loopback, so a server
//! pays for that too, whatever it sends with: for a whole network stack when the client has a kernel socket, for an XDP program and a
//! copy when the client is past its kernel as well.

use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;

use super::pair::{FAR, Pair};
use super::wire::{Kernel, Past, Wire};
use tollgate::config::XdpMode;
use tollgate::host::transport::Stats;
use tollgate::host::transport::xdp::{BypassSettings, SourceList};
use tollgate::load::line::BypassLine;

/// Chunks to receive into: as many as a gateway has by default.
pub const FRAMES: u32 = 2048;
/// The client's address.
pub const CLIENT: [u8; 4] = [10, 0, 0, 6];
const SERVER: [u8; 4] = [10, 0, 0, 4];

static PAIR: OnceLock<Pair> = OnceLock::new();

/// Makes the pair. From here on the calling thread and those it starts are on the server's side, and so are subjects.
pub fn start() -> Result<(), String> {
    let pair = Pair::new("1")?;
    let _ = PAIR.set(pair);
    Ok(())
}

/// Where subjects listen, when there is a pair.
pub fn listen() -> Option<SocketAddr> {
    PAIR.get().map(|_| (SERVER, 2427).into())
}

/// A kernel socket on the client's side.
pub fn kernel(to: SocketAddr) -> Box<dyn Wire> {
    let pair = PAIR.get().expect("the pair was made");
    let socket = pair.within(|| UdpSocket::bind(SocketAddr::from((CLIENT, 0))).expect("a port"));
    Box::new(Kernel::new(socket, to))
}

/// AF_XDP on the client's side.
pub fn past(to: SocketAddr) -> Box<dyn Wire> {
    let pair = PAIR.get().expect("the pair was made");
    let line = pair.within(|| BypassLine::open(FAR, (CLIENT, 2727).into(), &[to], false));
    Box::new(Past::new(line.expect("AF_XDP on the far side"), to))
}

/// Says so when a subject did not work past the kernel: what it cost is no measure of AF_XDP then.
pub fn check(stats: &Stats) {
    if stats.bypass_sent * 100 < stats.sent * 95 {
        println!("only {} of {} datagrams were sent past the kernel: no measurement of AF_XDP", stats.bypass_sent, stats.sent);
    }
}

/// How AF_XDP serves the pair.
pub fn bypass(listen: SocketAddr) -> BypassSettings {
    let sources = SourceList { anybody: false, addresses: [CLIENT.into()].into() };
    BypassSettings { mode: XdpMode::Native, ..BypassSettings::new(vec![listen], sources) }
}
