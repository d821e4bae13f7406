//! What the load generator sends and receives by: a kernel socket, or AF_XDP past the kernel's network stack (`--xdp`).

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use super::socket::LoadSocket;
use crate::host::clock::Clock;
use crate::host::frame::CHUNK;
use crate::host::transport::xdp::{BypassSettings, Lone, SourceList, umem};
use crate::host::transport::{BATCH, Transport, TransportSettings};
use crate::proto::base::FrameRef;

/// A way to the gateway.
pub trait Line {
    /// Sends `run`, datagrams of `length` bytes each (the last may be shorter). Gives how many bytes were taken; less than all when
    /// there is no more room.
    ///
    /// # Errors
    /// `WouldBlock` without any room, else what the network said.
    fn send_run(&mut self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize>;

    /// Receives at most one batch and hands each datagram to `take`; gives how many there were.
    ///
    /// # Errors
    /// `WouldBlock` when there are none, else what the network said.
    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &[u8])) -> io::Result<usize>;

    /// An address that the network reported as unreachable.
    fn take_unreachable(&mut self) -> Option<SocketAddr>;

    /// Sleeps until a datagram is there or `timeout` has passed; may return earlier.
    fn wait(&mut self, timeout: Duration);

    /// Sleeps until there is room to send or `timeout` has passed.
    fn wait_writable(&mut self, timeout: Duration);

    /// How datagrams leave, for the report.
    fn how(&mut self) -> String;
}

impl Line for LoadSocket {
    fn send_run(&mut self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize> {
        LoadSocket::send_run(self, to, run, length)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &[u8])) -> io::Result<usize> {
        LoadSocket::receive(self, take)
    }

    fn take_unreachable(&mut self) -> Option<SocketAddr> {
        LoadSocket::take_unreachable(self)
    }

    fn wait(&mut self, timeout: Duration) {
        LoadSocket::wait(self, timeout);
    }

    fn wait_writable(&mut self, timeout: Duration) {
        LoadSocket::wait_writable(self, timeout);
    }

    fn how(&mut self) -> String {
        if self.segments() { "UDP_SEGMENT" } else { "sendmmsg" }.to_owned()
    }
}

/// Chunks to receive into, and slots to send from: a window of a thousand commands and the gateway's own beside it.
const FRAMES: u32 = 4096;
const SLOTS: u32 = 2048;
/// The bytes of a slot: one chunk each.
const SLOT_BYTES: u32 = (CHUNK - umem::SLOT_HEAD) as u32;
/// Sleeps of the transport end on whole milliseconds: shorter waits are spun through.
const SLEEP_MIN: Duration = Duration::from_millis(2);

/// AF_XDP on one interface.
pub struct BypassLine {
    lone: Lone,
    clock: Clock,
    frames: Vec<FrameRef>,
    unreachable: Option<SocketAddr>,
}

impl BypassLine {
    /// Takes what `targets` send to `listen` from the card.
    ///
    /// # Errors
    /// Why AF_XDP cannot be used there.
    pub fn open(interface: &str, listen: SocketAddr, targets: &[SocketAddr], bypass_firewall: bool) -> Result<BypassLine, String> {
        let sources = SourceList { anybody: false, addresses: targets.iter().map(SocketAddr::ip).collect() };
        let bypass =
            BypassSettings { interface: Some(interface.to_owned()), bypass_firewall, ..BypassSettings::new(vec![listen], sources) };
        let transport = TransportSettings { send_slots: SLOTS, slot_size: SLOT_BYTES, ..TransportSettings::default() };
        let clock = Clock::new();
        let lone = Lone::open(&bypass, FRAMES, clock, &transport)?;
        Ok(BypassLine { lone, clock, frames: Vec::with_capacity(BATCH), unreachable: None })
    }
}

impl Line for BypassLine {
    fn send_run(&mut self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize> {
        if length > SLOT_BYTES as usize {
            return Err(ErrorKind::InvalidInput.into());
        }
        let transport = &mut self.lone.transport;
        let mut taken = 0;
        for datagram in run.chunks(length.max(1)) {
            let Some(slot) = transport.reserve() else { break };
            transport.buffer(&slot)[..datagram.len()].copy_from_slice(datagram);
            transport.send(slot, datagram.len(), to, 0);
            taken += datagram.len();
        }
        transport.flush();
        if taken == 0 && !run.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, &[u8])) -> io::Result<usize> {
        let Lone { transport, table, .. } = &mut self.lone;
        transport.receive(BATCH, &mut self.frames);
        let count = self.frames.len();
        for frame in self.frames.drain(..) {
            if let Some(datagram) = table.read(frame) {
                take(datagram.meta().from, &datagram);
            }
            transport.release(frame);
        }
        self.unreachable = self.unreachable.or_else(|| transport.take_report().map(|report| report.to));
        match (count, self.unreachable) {
            (0, Some(_)) => Err(ErrorKind::ConnectionRefused.into()),
            (0, None) => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(count),
        }
    }

    fn take_unreachable(&mut self) -> Option<SocketAddr> {
        self.unreachable.take()
    }

    fn wait(&mut self, timeout: Duration) {
        if timeout > SLEEP_MIN {
            self.lone.transport.sleep(Some(timeout - SLEEP_MIN), &mut || true);
        }
    }

    fn wait_writable(&mut self, timeout: Duration) {
        let end = self.clock.now() + timeout;
        while self.lone.transport.free_slots() == 0 && self.clock.now() < end {
            self.lone.transport.flush();
        }
    }

    fn how(&mut self) -> String {
        let stats = self.lone.transport.stats();
        let share = |bypass: u64, all: u64| bypass as f64 / all.max(1) as f64 * 100.0;
        format!(
            "AF_XDP on {}, past the kernel {:.1}% out and {:.1}% in",
            self.lone.bypass,
            share(stats.bypass_sent, stats.sent),
            share(stats.bypass_received, stats.received)
        )
    }
}
