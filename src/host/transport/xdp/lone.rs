//! An AF_XDP transport for one thread that is no gateway: the load generator, the bring-up test of a card, benches.

use std::io;
use std::sync::Arc;

use super::{Bypass, BypassSettings, Xdp, umem};
use crate::host::clock::Clock;
use crate::host::frame::{FrameLayout, FrameTable};
use crate::host::transport::{SocketSettings, TransportSettings, bind, wake};

/// Transport, frames, and the program on the card: it goes with this.
pub struct Lone {
    /// Moves the datagrams. Goes before the bypass.
    pub transport: Xdp,
    /// Where received datagrams are read.
    pub table: Arc<FrameTable>,
    /// The program on the card.
    pub bypass: Bypass,
}

impl Lone {
    /// Opens it on the calling thread: checks, attaches the program, binds all queues asked for, with `frames` chunks to receive into.
    ///
    /// # Errors
    /// Why not, naming address, interface or policy.
    pub fn open(settings: &BypassSettings, frames: u32, clock: Clock, transport: &TransportSettings) -> Result<Lone, String> {
        let settings = BypassSettings { cores: 1, ..settings.clone() };
        let words = |error: io::Error| error.to_string();
        let bypass = Bypass::start(&settings)?;
        let chunks = [umem::layout(frames, transport.send_slots, transport.slot_size)];
        let (table, mut pools) = FrameTable::with_chunks(&[FrameLayout::default()], &chunks).map_err(words)?;
        let mut pool = pools.pop().ok_or("no frames")?;
        pool.touch();
        let sockets = bind(&settings.listen, &SocketSettings::default()).map_err(words)?;
        let (_, sleeper) = wake::pair().map_err(words)?;
        let transport = TransportSettings { bypass: bypass.seat(0), ..transport.clone() };
        let transport = Xdp::open(sockets, pool, sleeper, clock, &transport).map_err(words)?;
        Ok(Lone { transport, table, bypass })
    }
}
