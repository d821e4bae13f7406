//! The thread that knows how destinations are reached: by the kernel's routes and neighbours, told to the cores.
//!
//! The kernel stays the authority. A destination a core asks for is looked up (route, then the neighbour of its next hop); from then
//! on changes of links, routes and neighbours make it be looked up again, and every core that asked is told. A next hop in use is
//! reported to the kernel as such now and then, so that it keeps making sure of it as it would if it sent the datagrams itself. A
//! destination is forgotten after a while, and asked for again if it is still needed. Beside it, the thread watches for IPsec
//! policies and packet filters that come after the start: then everything goes by the kernel until they are gone.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::bypass::{BypassSettings, Shared};
use super::netlink::{Link, Netlink, address, attribute, links, neighbour, route, use_neighbour};
use super::packet::Path;
use super::paths::{Answer, News, PATHS_MAX, Want};
use super::policy;
use crate::host::clock::Clock;
use crate::host::ring::{Receiver, Sender};
use crate::host::transport::Sleeper;
use crate::proto::base::Time;

/// How often times are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often the kernel hears that a next hop is in use: it asks one it has not heard of for 30 s (base_reachable_time).
const USE_EVERY: Duration = Duration::from_secs(10);
/// How often everything is looked up again, whatever was told.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long a destination is watched after it was asked for.
const KEEP: Duration = Duration::from_secs(300);
/// How often policies and filters are looked at.
const POLICY_EVERY: Duration = Duration::from_secs(2);

const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_NEIGH: u32 = 3;
const RTNLGRP_IPV4_IFADDR: u32 = 5;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_IFADDR: u32 = 9;
const RTNLGRP_IPV6_ROUTE: u32 = 11;

/// The resolver, to be run on a thread of its own.
pub struct Resolver {
    shared: Arc<Shared>,
    settings: BypassSettings,
    /// To and from the cores.
    boxes: Vec<(Receiver<Want>, Sender<Answer>)>,
    known: BTreeMap<(u8, IpAddr), Known>,
    changes: Netlink,
    questions: Netlink,
    links: Vec<Link>,
    /// Why everything goes by the kernel at present.
    suspended: Option<String>,
    sleeper: Sleeper,
    poll: Poll,
    clock: Clock,
}

/// A destination somebody asked for.
struct Known {
    news: News,
    /// Its next hop: interface and address.
    hop: Option<(u32, IpAddr)>,
    asked: Time,
    /// The cores that asked.
    cores: u64,
    /// Those of them that have not been told yet.
    untold: u64,
}

impl Resolver {
    /// Listens for changes from now on.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(
        shared: Arc<Shared>,
        settings: &BypassSettings,
        boxes: Vec<(Receiver<Want>, Sender<Answer>)>,
        sleeper: Sleeper,
    ) -> io::Result<Resolver> {
        let groups = [RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE];
        let changes = Netlink::listening(libc::NETLINK_ROUTE, &groups)?;
        let mut questions = Netlink::new(libc::NETLINK_ROUTE)?;
        let links = links(&mut questions)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut SourceFd(&changes.fd()), Token(0), Interest::READABLE)?;
        poll.registry().register(&mut SourceFd(&sleeper.event().as_raw_fd()), Token(1), Interest::READABLE)?;
        let (settings, clock) = (settings.clone(), Clock::new());
        let known = BTreeMap::new();
        Ok(Resolver { shared, settings, boxes, known, changes, questions, links, suspended: None, sleeper, poll, clock })
    }

    /// Until the bypass is over.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(4);
        let [mut used, mut looked, mut examined] = [self.clock.now(); 3];
        while !self.shared.over.load(Ordering::Acquire) {
            self.sleeper.announce();
            if self.boxes.iter().all(|(asked, _)| asked.is_empty()) && !self.shared.over.load(Ordering::Acquire) {
                // Interrupted: a short sleep.
                let _ = self.poll.poll(&mut events, Some(TICK));
            }
            self.sleeper.awake();
            self.sleeper.drain();
            let now = self.clock.now();
            let due = |last: &mut Time, every: Duration| {
                let due = now.since(*last) >= every;
                if due {
                    *last = now;
                }
                due
            };
            if due(&mut examined, POLICY_EVERY) {
                self.examine();
            }
            if self.has_changed() || due(&mut looked, LOOK_EVERY) {
                self.look_at_all();
            }
            self.take_wants(now);
            if due(&mut used, USE_EVERY) {
                self.use_hops();
            }
            self.forget(now);
            self.tell();
        }
    }

    /// Whether anything that was told may change a path. Links are read again then.
    fn has_changed(&mut self) -> bool {
        const NEIGHBOUR: std::ops::RangeInclusive<u16> = libc::RTM_NEWNEIGH..=libc::RTM_GETNEIGH;
        const LINK: std::ops::RangeInclusive<u16> = libc::RTM_NEWLINK..=libc::RTM_GETLINK;
        let messages = self.changes.changes();
        let of_link = messages.as_ref().is_none_or(|messages| messages.iter().any(|(kind, _)| LINK.contains(kind)));
        if of_link && let Ok(links) = links(&mut self.questions) {
            self.check_cards(&links);
            self.links = links;
        }
        messages.is_none_or(|messages| {
            messages.iter().any(|(kind, message)| !NEIGHBOUR.contains(kind) || neighbour_of(message).is_some_and(|hop| self.uses(hop)))
        })
    }

    fn uses(&self, hop: (u32, IpAddr)) -> bool {
        self.known.values().any(|known| known.hop == Some(hop))
    }

    /// The program compares MAC addresses: it must know a new one.
    fn check_cards(&self, links: &[Link]) {
        for (place, card) in self.shared.cards.iter().enumerate() {
            let find = |links: &[Link]| links.iter().find(|link| link.index == card.index).map(|link| link.mac);
            match (find(links), find(&self.links)) {
                (Some(mac), _) => {
                    if let Err(error) = self.shared.set_mac(place, mac) {
                        tracing::error!("xdp: {}: BPF map: {error}", card.name);
                    }
                }
                (None, Some(_)) => tracing::error!("xdp: {} is gone; the gateway must be started anew to use another", card.name),
                (None, None) => {}
            }
        }
    }

    fn take_wants(&mut self, now: Time) {
        for core in 0..self.boxes.len() {
            while let Some(want) = self.boxes[core].0.receive() {
                let key = (want.line, want.to);
                if !self.known.contains_key(&key) {
                    if self.known.len() >= PATHS_MAX {
                        // It goes by the kernel, and is asked for again when the core's own table is emptied.
                        continue;
                    }
                    let (news, hop) = self.look(want);
                    self.known.insert(key, Known { news, hop, asked: now, cores: 0, untold: 0 });
                }
                if let Some(known) = self.known.get_mut(&key) {
                    known.cores |= 1 << core;
                    known.untold |= 1 << core;
                }
            }
        }
    }

    fn look_at_all(&mut self) {
        let keys: Vec<(u8, IpAddr)> = self.known.keys().copied().collect();
        for (line, to) in keys {
            let (news, hop) = self.look(Want { line, to });
            if let Some(known) = self.known.get_mut(&(line, to)) {
                known.hop = hop;
                if known.news != news {
                    known.news = news;
                    known.untold = known.cores;
                }
            }
        }
    }

    /// How a destination is reached now.
    fn look(&mut self, want: Want) -> (News, Option<(u32, IpAddr)>) {
        let by_kernel = (News::ByKernel, None);
        let Some(line) = self.shared.lines.get(usize::from(want.line)) else { return by_kernel };
        let place = &line.place;
        if self.suspended.is_some() || line.sender.address.is_ipv4() != want.to.is_ipv4() {
            return by_kernel;
        }
        let up = |index: u32| self.links.iter().find(|link| link.index == index).filter(|link| link.is_up());
        let (Some(link), Some(_)) = (up(place.logical), up(place.card.index)) else { return by_kernel };
        let route = route(&mut self.questions, line.sender.address.ip(), want.to);
        let Some(route) = route.filter(|route| route.interface == place.logical) else { return by_kernel };
        let hop = Some((route.interface, route.hop));
        match neighbour(&mut self.questions, route.interface, route.hop) {
            Some(mac) => {
                let mtu = link.mtu.min(route.mtu.unwrap_or(u32::MAX)).min(u16::MAX.into()) as u16;
                (News::Direct(Path { to: mac, from: link.mac, vlan: place.vlan, mtu }), hop)
            }
            // The datagram that the kernel sends meanwhile makes it look for the neighbour.
            None => (News::ByKernel, hop),
        }
    }

    fn use_hops(&mut self) {
        let mut hops: Vec<(u32, IpAddr)> =
            self.known.values().filter(|known| known.news != News::ByKernel).filter_map(|known| known.hop).collect();
        hops.sort_unstable();
        hops.dedup();
        for (interface, hop) in hops {
            // A hop that is gone is told as a change.
            let _ = use_neighbour(&mut self.questions, interface, hop);
        }
    }

    fn forget(&mut self, now: Time) {
        for known in self.known.values_mut().filter(|known| now.since(known.asked) >= KEEP && known.news != News::Forgotten) {
            known.news = News::Forgotten;
            known.untold = known.cores;
        }
    }

    /// Tells the cores what they do not know yet; a core whose ring is full later.
    fn tell(&mut self) {
        for (&(line, to), known) in &mut self.known {
            for (core, (_, told)) in self.boxes.iter_mut().enumerate() {
                if known.untold & 1 << core != 0 && told.send(Answer { want: Want { line, to }, news: known.news }).is_ok() {
                    known.untold &= !(1 << core);
                }
            }
        }
        self.known.retain(|_, known| known.news != News::Forgotten || known.untold != 0);
    }

    /// Whether the bypass may go on.
    fn examine(&mut self) {
        let listen = &self.settings.listen;
        let filters = if self.settings.bypass_firewall { Vec::new() } else { policy::filters() };
        let reason = match policy::ipsec(listen) {
            Ok(None) if filters.is_empty() => None,
            Ok(None) => Some(format!("{} may match (xdp.bypass_firewall = false)", filters.join(", "))),
            Ok(policy) => policy,
            Err(reason) => Some(reason),
        };
        if reason.is_some() == self.suspended.is_some() {
            return;
        }
        match &reason {
            Some(reason) => tracing::error!("xdp: {reason}: everything goes by the kernel from now on"),
            None => tracing::warn!("xdp: nothing is in the way any more: agents are served by AF_XDP again"),
        }
        if let Err(error) = self.shared.listen(reason.is_none()) {
            tracing::error!("xdp: {error}");
        }
        self.suspended = reason;
        self.look_at_all();
    }
}

/// The neighbour a change is about: interface and address.
fn neighbour_of(message: &[u8]) -> Option<(u32, IpAddr)> {
    const NDA_DST: u16 = 1;
    let interface = message.get(4..8).and_then(super::netlink::word)?;
    Some((interface, attribute(message.get(12..)?, NDA_DST).and_then(address)?))
}
