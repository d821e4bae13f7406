//! Past cores that stand still: what comes for them is received by the others (G-SHD-03).
//!
//! While a core is silent the kernel gives its socket nothing (see [`steer`](super::transport::steer)), and what lies there already is
//! taken out and handed to the core that receives instead. That one refuses commands over many endpoints and hands the rest over as ever,
//! within the silent core's share. So an agent hears what there is to say, and whatever the silent core has in its hands it finds when
//! it goes on. With AF_XDP everything comes by the kernel meanwhile.
//!
//! Datagrams for H.248 gateways stay where they are: each is one core's as a whole, and nobody can answer for it.

use super::clock::Clock;
use super::cores::Cores;
use super::steered::attach;
use super::transport::steer::{Passing, Steered};
use super::transport::xdp::Bypass;
use super::transport::{BATCH, DATAGRAM_MAX, Stray};
use crate::proto::base::CoreId;
use crate::proto::plan::Plan;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::Arc;

/// Batches taken from one core's sockets at a time: what a second of a busy core is.
const BATCHES: usize = 256;

/// The way past silent cores.
pub struct Detour {
    plan: Arc<Plan>,
    /// How datagrams find their core while all go round.
    steered: Steered,
    /// The cores with sockets, in the order in which those were bound.
    members: Vec<(CoreId, Vec<UdpSocket>)>,
    silent: BTreeSet<CoreId>,
    buffer: Box<[u8]>,
}

impl Detour {
    /// Over these sockets, by core and listen address; they stay in use by their cores.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn new(plan: Arc<Plan>, steered: Steered, sockets: &[Vec<UdpSocket>]) -> io::Result<Detour> {
        let mut members = Vec::new();
        for (core, sockets) in sockets.iter().enumerate().filter(|(_, sockets)| !sockets.is_empty()) {
            let sockets = sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<_>>()?;
            members.push((CoreId(core as u8), sockets));
        }
        Ok(Detour { plan, steered, members, silent: BTreeSet::new(), buffer: vec![0; DATAGRAM_MAX].into() })
    }

    /// A core is silent, or goes round again.
    pub fn set(&mut self, core: CoreId, silent: bool, bypass: Option<&Bypass>) {
        let before = self.passing(false).silent;
        if silent {
            self.silent.insert(core);
        } else {
            self.silent.remove(&core);
        }
        let passing = self.passing(false);
        if self.members.len() < 2 || passing.silent == before {
            return;
        }
        if let Err(error) = self.lead() {
            tracing::error!("core {}: what comes for it is not led past it: {error}", core.0);
        }
        if let Some(bypass) = bypass
            && let Err(error) = bypass.listen(passing.is_nobody())
        {
            tracing::error!("core {}: xdp: {error}", core.0);
        }
    }

    /// Takes what lies in the sockets of silent cores and hands it to those that receive instead.
    pub fn collect(&mut self, cores: &Cores, clock: &Clock) {
        let passing = self.passing(false);
        if passing.is_nobody() {
            return;
        }
        for &silent in &passing.silent {
            let Some(receiver) = passing.instead_of(silent).and_then(|member| self.members.get(member as usize)).map(|(core, _)| *core)
            else {
                return;
            };
            for _ in 0..BATCHES {
                // What its inbox has no room for stays in the socket.
                if !cores.takes_strays(receiver) {
                    break;
                }
                let strays = self.take(silent, clock);
                if strays.is_empty() {
                    break;
                }
                cores.hand_strays(receiver, strays);
            }
        }
    }

    fn take(&mut self, member: u32, clock: &Clock) -> Vec<Stray> {
        let Detour { plan, members, buffer, .. } = self;
        let Some((_, sockets)) = members.get(member as usize) else { return Vec::new() };
        let mut strays = Vec::new();
        for (local, socket) in sockets.iter().enumerate().filter(|(local, _)| plan.gateway_at(*local as u8).is_none()) {
            for _ in strays.len()..BATCH {
                match socket.recv_from(buffer) {
                    Ok((length, from)) => {
                        let bytes = buffer.get(..length).unwrap_or_default().into();
                        strays.push(Stray { from, local: local as u8, arrival: clock.now(), bytes });
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // A report about something sent earlier: the core's affair, and gone with this call.
                    Err(_) => continue,
                }
            }
        }
        strays
    }

    /// Tells the kernel whom to give what.
    fn lead(&self) -> Result<(), String> {
        let Some((_, first)) = self.members.first() else { return Ok(()) };
        for (place, socket) in first.iter().enumerate() {
            let passing = self.passing(self.plan.listen.get(place).is_some_and(|address| address.is_ipv6()));
            attach(&self.plan, &self.steered, place as u8, socket, &passing)?;
        }
        Ok(())
    }

    fn passing(&self, ipv6: bool) -> Passing {
        let silent = self.members.iter().enumerate().filter(|(_, (core, _))| self.silent.contains(core)).map(|(place, _)| place as u32);
        Passing { members: self.members.len() as u32, silent: silent.collect(), ipv6 }
    }
}
