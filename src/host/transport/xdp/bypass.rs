//! What the cores share of the bypass: the XDP program on each card, who may send, and the thread that resolves paths.
//!
//! [`Bypass::start`] looks whether AF_XDP may be used for every listen address, refuses by name where it may not, attaches the program and
//! hands each core its [`Seat`]: which queues of which cards it serves. Queues go round the cores, so one core can have several, and
//! a core without any sends by its kernel sockets. The program is detached when the last holder of a seat is gone, or dies.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::interface::{self, Place};
use super::netlink::Netlink;
use super::packet::{Mac, Sender};
use super::paths::{Answer, Desk, PATHS_MAX, Want};
use super::policy;
use super::program::{Program, QUEUES_MAX};
use super::resolver::Resolver;
use crate::config::{XdpCopy, XdpMode};
use crate::host::ring::{self, Receiver};
use crate::host::transport::{Waker, wake};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct BypassSettings {
    /// The listen addresses, as every core has them.
    pub listen: Vec<SocketAddr>,
    /// The interface of all of them, where it is not the one that has the address.
    pub interface: Option<String>,
    /// How many queues of each card; `None`: all.
    pub queues: Option<u8>,
    /// Where the program is attached.
    pub mode: XdpMode,
    /// Whether frames are copied.
    pub copy: XdpCopy,
    /// Drivers sleep until woken.
    pub need_wakeup: bool,
    /// How long a receive call polls the driver.
    pub busy_poll: Option<Duration>,
    /// Packet filters may be passed by.
    pub bypass_firewall: bool,
    /// Shifted to its place.
    pub traffic_class: u8,
    /// Who may send.
    pub sources: SourceList,
    /// Cores with sockets.
    pub cores: usize,
}

impl BypassSettings {
    /// For one core, everything as the card can do it.
    pub fn new(listen: Vec<SocketAddr>, sources: SourceList) -> BypassSettings {
        BypassSettings {
            listen,
            interface: None,
            queues: None,
            mode: XdpMode::Auto,
            copy: XdpCopy::Auto,
            need_wakeup: true,
            busy_poll: None,
            bypass_firewall: false,
            traffic_class: 0,
            sources,
            cores: 1,
        }
    }
}

/// Who may send.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceList {
    /// Everybody.
    pub anybody: bool,
    /// These.
    pub addresses: BTreeSet<IpAddr>,
}

/// The running bypass. Ends with the last seat.
pub struct Bypass {
    seats: Vec<Arc<Seat>>,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What one core serves.
pub struct Seat {
    pub(super) shared: Arc<Shared>,
    pub(super) queues: Vec<Queue>,
    /// Taken by the transport that sits down.
    pub(super) desk: Mutex<Option<Desk>>,
    pub(super) settings: BypassSettings,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("queues", &self.queues).finish_non_exhaustive()
    }
}

/// A queue of a card.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The card's place in the list.
    pub card: usize,
    /// The queue's number.
    pub number: u32,
}

/// What everybody shares.
pub(super) struct Shared {
    pub(super) cards: Vec<Card>,
    pub(super) lines: Vec<Line>,
    told: Mutex<Told>,
    /// The resolver is to end.
    pub(super) over: AtomicBool,
}

/// What the programs have been told.
#[derive(Default)]
struct Told {
    sources: SourceList,
    /// By card.
    macs: Vec<Mac>,
}

/// A card with the program on it.
pub(super) struct Card {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) program: Program,
    mode: XdpMode,
    queues: u32,
}

/// A listen address.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    /// Its card's place in the list.
    pub(super) card: usize,
    pub(super) sender: Sender,
}

impl Bypass {
    /// Checks, attaches, and starts to resolve. Cores have yet to bind their sockets; until then everything passes.
    ///
    /// # Errors
    /// Why not, naming address, interface or policy.
    pub fn start(settings: &BypassSettings) -> Result<Bypass, String> {
        if let Some(policy) = policy::ipsec(&settings.listen)? {
            return Err(format!("{policy}, which AF_XDP would bypass: use another transport"));
        }
        let filters = policy::filters();
        if !filters.is_empty() {
            if !settings.bypass_firewall {
                let list = filters.join(", ");
                let meant = "xdp.bypass_firewall = true (load, nic: --bypass-firewall) says that this is meant";
                return Err(format!("{list} may match, and AF_XDP bypasses it: {meant}"));
            }
            tracing::warn!("xdp: packet filters do not see what agents send: {} (xdp.bypass_firewall = true)", filters.join(", "));
        }
        let mut netlink = Netlink::new(libc::NETLINK_ROUTE).map_err(|error| format!("netlink: {error}"))?;
        let places = interface::places(&mut netlink, &settings.listen, settings.interface.as_deref())?;
        Bypass::over(settings, places)
    }

    /// The same over places that are found already, without a look at policies and filters.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn over(settings: &BypassSettings, places: Vec<Place>) -> Result<Bypass, String> {
        let (mut cards, mut macs): (Vec<Card>, Vec<Mac>) = Default::default();
        let mut lines = Vec::new();
        for (place, &address) in places.into_iter().zip(&settings.listen) {
            let card = match cards.iter().position(|card| card.index == place.card.index) {
                Some(card) => card,
                None => {
                    cards.push(Card::attach(&place, settings)?);
                    macs.push(place.card.mac);
                    cards.len() - 1
                }
            };
            lines.push(Line { place, card, sender: Sender { address, traffic_class: settings.traffic_class } });
        }
        let told = Told { sources: SourceList::default(), macs };
        let shared = Arc::new(Shared { cards, lines, told: Mutex::new(told), over: AtomicBool::new(false) });
        shared.set_sources(&settings.sources)?;
        shared.listen(true)?;
        let queues = shared.cards.iter().enumerate().flat_map(|(card, known)| (0..known.queues).map(move |number| Queue { card, number }));
        let queues: Vec<Queue> = queues.collect();
        let (waker, sleeper) = wake::pair().map_err(|error| format!("an event: {error}"))?;
        let (mut seats, mut boxes) = (Vec::new(), Vec::new());
        for core in 0..settings.cores {
            let (wants, asked) = ring::pair::<Want>(PATHS_MAX);
            let (told, answers) = ring::pair::<Answer>(2 * PATHS_MAX);
            let desk = Mutex::new(Some(Desk { wants, answers, waker: waker.clone() }));
            boxes.push((asked, told) as (Receiver<Want>, ring::Sender<Answer>));
            let queues = queues.iter().copied().skip(core).step_by(settings.cores.max(1)).collect();
            seats.push(Arc::new(Seat { shared: shared.clone(), queues, desk, settings: settings.clone() }));
        }
        let resolver = Resolver::new(shared.clone(), settings, boxes, sleeper).map_err(|error| format!("netlink: {error}"))?;
        let thread = std::thread::Builder::new().name("xdp-paths".into()).spawn(|| resolver.run());
        let thread = Some(thread.map_err(|error| format!("no thread to resolve paths: {error}"))?);
        Ok(Bypass { seats, shared, waker, thread })
    }

    /// The seat of one of the cores with sockets.
    pub fn seat(&self, nth: usize) -> Option<Arc<Seat>> {
        self.seats.get(nth).cloned()
    }

    /// Begins or ends taking what is sent to the listen addresses; what is not taken comes by the kernel.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn listen(&self, on: bool) -> Result<(), String> {
        self.shared.listen(on)
    }

    /// Changes who may send.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn set_sources(&self, sources: &SourceList) -> Result<(), String> {
        self.shared.set_sources(sources)
    }
}

/// Cards, modes and queues.
impl std::fmt::Display for Bypass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (nth, card) in self.shared.cards.iter().enumerate() {
            let (join, plural) = (if nth == 0 { "" } else { ", " }, if card.queues == 1 { "" } else { "s" });
            write!(f, "{join}{} {} {} queue{plural}", card.name, card.mode.word(), card.queues)?;
        }
        Ok(())
    }
}

impl Drop for Bypass {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It cannot panic worth telling: what it does is looked at by nobody any more.
            let _ = thread.join();
        }
    }
}

impl Card {
    fn attach(place: &Place, settings: &BypassSettings) -> Result<Card, String> {
        let link = &place.card;
        let there = interface::queues(link).min(QUEUES_MAX);
        let queues = settings.queues.map_or(there, u32::from);
        if queues > there {
            return Err(format!("xdp.queues = {queues}: {} has {there} (ethtool -l {})", link.name, link.name));
        }
        let mut program = Program::load()?;
        let mode = program.attach(link.index, &link.name, settings.mode)?;
        program.set(link.mac, false).map_err(|error| format!("BPF map: {error}"))?;
        Ok(Card { index: link.index, name: link.name.clone(), program, mode, queues })
    }
}

impl Shared {
    /// Begins or ends taking what is sent to the listen addresses.
    pub(super) fn listen(&self, on: bool) -> Result<(), String> {
        self.lines.iter().try_for_each(|line| {
            let program = &self.cards[line.card].program;
            program.listen(line.sender.address, line.place.vlan, on).map_err(|error| format!("BPF map: {error}"))
        })
    }

    fn set_sources(&self, new: &SourceList) -> Result<(), String> {
        // A panic of a holder leaves a list whose entries are set at worst once more.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let old = &told.sources;
        let tell = |(card, mac): (&Card, &Mac)| -> std::io::Result<()> {
            for address in new.addresses.difference(&old.addresses) {
                card.program.source(*address, true)?;
            }
            for address in old.addresses.difference(&new.addresses) {
                card.program.source(*address, false)?;
            }
            card.program.set(*mac, new.anybody)
        };
        self.cards.iter().zip(&told.macs).try_for_each(tell).map_err(|error| format!("BPF map of agents: {error}"))?;
        told.sources = new.clone();
        Ok(())
    }

    /// Takes note of a card's MAC address, which can change.
    pub(super) fn set_mac(&self, card: usize, mac: Mac) -> std::io::Result<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let anybody = told.sources.anybody;
        match told.macs.get_mut(card).filter(|old| **old != mac) {
            None => Ok(()),
            Some(old) => {
                *old = mac;
                self.cards[card].program.set(mac, anybody)
            }
        }
    }
}
