//! The loop of a core with nothing in it: receive a batch, answer each datagram in a send slot, flush once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::veth;
use tollgate::host::clock::Clock;
use tollgate::host::frame::{FrameLayout, FrameTable};
use tollgate::host::transport::xdp::{Bypass, Lone};
use tollgate::host::transport::{BATCH, Kind, SocketSettings, Transport, TransportSettings, bind, wake};

/// What differs between runs of one transport.
#[derive(Clone, Copy)]
pub struct Variant {
    /// The kernel notes when datagrams arrive.
    pub timestamps: bool,
    /// Responses of equal length leave in one send (UDP_SEGMENT).
    pub coalesce: bool,
}

/// A transport of one socket with frames of its own.
pub struct Opened {
    pub table: Arc<FrameTable>,
    pub transport: Box<dyn Transport>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Ends after the transport.
    pub bypass: Option<Bypass>,
}

/// Opens a transport on the calling thread, over the veth pair where there is one.
pub fn open(kind: Kind, clock: Clock, variant: Variant) -> Opened {
    let Variant { timestamps, coalesce } = variant;
    let listen = veth::listen().unwrap_or(([127, 0, 0, 1], 0).into());
    let settings = TransportSettings { coalesce, ..TransportSettings::default() };
    if kind == Kind::Xdp {
        let Lone { transport, table, bypass } = Lone::open(&veth::bypass(listen), veth::FRAMES, clock, &settings).expect("probed");
        return Opened { table, transport: Box::new(transport), address: listen, bypass: Some(bypass) };
    }
    let sockets = bind(&[listen], &SocketSettings { timestamps, ..SocketSettings::default() }).expect("a port");
    let address = sockets[0].local_addr().expect("bound");
    let (table, mut pools) = FrameTable::new(&[FrameLayout::default()]).expect("frames");
    let mut pool = pools.remove(0);
    pool.touch();
    let (_, sleeper) = wake::pair().expect("an event");
    let transport = kind.open(sockets, pool, sleeper, clock, &settings).expect("probed");
    Opened { table, transport, address, bypass: None }
}

/// Answers every datagram with what `respond` makes of it, until `stop`.
pub fn serve(
    kind: Kind,
    clock: Clock,
    variant: Variant,
    respond: impl Fn(&[u8], &mut [u8]) -> usize,
    ready: &dyn Fn(SocketAddr),
    idle_turns: &AtomicU64,
    stop: &AtomicBool,
) {
    let Opened { table, mut transport, address, bypass: _bypass } = open(kind, clock, variant);
    ready(address);
    let mut frames = Vec::with_capacity(BATCH);
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        transport.receive(BATCH, &mut frames);
        if frames.is_empty() {
            idle += 1;
            idle_turns.store(idle, Ordering::Relaxed);
            continue;
        }
        for frame in frames.drain(..) {
            let slot = transport.reserve().expect("no more datagrams than slots");
            let datagram = table.read(frame).expect("held");
            let (to, local) = (datagram.meta().from, datagram.meta().local);
            let length = respond(&datagram, transport.buffer(&slot));
            drop(datagram);
            transport.send(slot, length, to, local);
            transport.release(frame);
        }
        transport.flush();
    }
    if kind == Kind::Xdp {
        veth::check(&transport.stats());
    }
}
