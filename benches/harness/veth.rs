//! Two network namespaces joined by a veth pair instead of loopback: the server's side is the process's, the client's the far one.
//!
//! A veth pair has no hardware: the sender's CPU carries a datagram through the far side's network stack, as over loopback, so a
//! server pays for what its client's kernel receives, whatever it sends with.

use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;

use super::pair::Pair;
use tollgate::config::XdpMode;
use tollgate::host::transport::xdp::{BypassSettings, SourceList};

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

/// A socket on the client's side.
pub fn socket() -> UdpSocket {
    let pair = PAIR.get().expect("the pair was made");
    pair.within(|| UdpSocket::bind(SocketAddr::from((CLIENT, 0))).expect("a port"))
}

/// How AF_XDP serves the pair.
pub fn bypass(listen: SocketAddr) -> BypassSettings {
    let sources = SourceList { anybody: false, addresses: [CLIENT.into()].into() };
    BypassSettings { mode: XdpMode::Native, ..BypassSettings::new(vec![listen], sources) }
}
