//! The socket of a pseudowire, and how it is worked: what has arrived goes in at its time, what is due is played and sent.

use crate::host::clock::WallClock;
use crate::host::transport::burst::{BURST, Burst};
use crate::host::transport::{SocketSettings, bind};
use crate::proto::base::Time;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Its buffers, in octets: some tenths of a second, for a core that stands still.
const BUFFER: usize = 512 << 10;
/// Bursts taken in one turn: more would be a flood, and waits.
const BURSTS: usize = 2;

/// What plays packets by a clock of its own.
pub trait Paced {
    /// When the period that runs ends.
    fn due(&self) -> Time;

    /// Leaves out what is too far behind `now`.
    fn catch_up(&mut self, now: Time);

    /// A packet came from the far end at `arrival`; everything due before is played.
    fn receive(&mut self, arrival: Time, octets: &[u8]);

    /// One came from somebody else.
    fn note_stray(&mut self);

    /// Ends a period; the packet to send, if any.
    fn play(&mut self) -> Option<&[u8]>;
}

/// The socket.
#[derive(Debug)]
pub struct WireSocket {
    socket: UdpSocket,
    peer: SocketAddr,
}

impl WireSocket {
    /// At `local`, with the far end at `peer`. Packets are not fragmented (SAT-01) and marked `dscp`.
    ///
    /// # Errors
    /// The address, and why it could not be bound.
    pub fn bind(local: SocketAddr, peer: SocketAddr, dscp: u8) -> io::Result<WireSocket> {
        let settings = SocketSettings { receive_buffer: BUFFER, send_buffer: BUFFER, dscp, ..SocketSettings::media() };
        let socket = bind(&[local], &settings)?.pop().ok_or(io::ErrorKind::NotFound)?;
        Ok(WireSocket { socket, peer })
    }

    /// Takes what has arrived and plays what is due, `budget` periods at the most. Does not block.
    pub fn work(&self, now: Time, paced: &mut impl Paced, burst: &mut Burst, wall: &WallClock, budget: &mut usize) {
        paced.catch_up(now);
        for _ in 0..BURSTS {
            // An error is about an earlier packet (the far end is not there): what comes, or does not, says the same.
            let count = burst.receive(self.socket.as_fd()).unwrap_or(0);
            for place in 0..count {
                let Some(received) = burst.get(place).filter(|received| received.from == self.peer) else {
                    paced.note_stray();
                    continue;
                };
                let arrival = received.arrival.map_or(now, |at| wall.time(at, now));
                self.play(arrival, paced, budget);
                paced.receive(arrival, received.octets);
            }
            if count < BURST {
                break;
            }
        }
        self.play(now, paced, budget);
    }

    fn play(&self, until: Time, paced: &mut impl Paced, budget: &mut usize) {
        while paced.due() <= until && *budget > 0 {
            *budget -= 1;
            // What the kernel refuses is lost on the way, as far as the far end can see.
            let _ = paced.play().map(|packet| self.socket.send_to(packet, self.peer));
        }
    }
}
