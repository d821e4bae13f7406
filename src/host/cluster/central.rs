//! The central node's process (`tollgate cac`): one thread that moves messages, time and orders into the [`Central`] machine and what
//! comes out back. It keeps nothing on disk: gateways tell it what is up (R32).

use super::inbox::{INBOX_MAX, Inbox};
use super::keys;
use super::metrics::Metrics;
use super::operators::{Desk, Order};
use super::pair::{self, Pair};
use super::said::Said;
use super::socket;
use super::view::EventLine;
use super::zap::Doorman;
use crate::config::{self, CacMode, Config};
use crate::host::clock::{self, Clock};
use crate::host::control::Events;
use crate::host::control::metrics;
use crate::host::control::server::{Answers, Server};
use crate::host::control::socket as operator_socket;
use crate::host::transport::Waker;
use crate::host::transport::wake::{self, Sleeper};
use crate::proto::base::Time;
use crate::proto::cac::central::{Action, Central, Event, LinkId, Note, Settings};
use crate::proto::cac::message::{Framed, ToCentral, ToNode};
use crate::proto::cac::{ScId, Tree, lease, wire};
use anyhow::{Context, Result, bail};
use crossbeam::channel::{Receiver, bounded};
use signal_hook::consts::SIGHUP;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

/// Messages done per turn.
const PER_TURN: usize = 256;
/// The longest sleep: signals are looked at so often.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Orders of operators that wait.
const ORDERS: usize = 64;
/// Events remembered for operators.
const EVENTS_MAX: usize = 100;

/// The running central node.
pub(super) struct Process {
    pub config: Config,
    pub path: Option<PathBuf>,
    pub clock: Clock,
    pub central: Central,
    pub doorman: Doorman,
    said: Said,
    pub unreadable: u64,
    pub events: VecDeque<(Time, String)>,
    pub pair: Option<Pair>,
    tree: Arc<Tree>,
    router: zmq::Socket,
    has_keys: bool,
    /// The machine's connections, by what ZeroMQ calls them, and back.
    links: BTreeMap<Vec<u8>, LinkId>,
    names: BTreeMap<LinkId, Vec<u8>>,
    last_link: u64,
    octets: Vec<u8>,
    inbox: Inbox<Letter>,
    /// Connections that take nothing, or are gone: their sessions end behind all that had come by them, the last words of who is gone
    /// among it. Whether all of that has been taken.
    down: BTreeMap<LinkId, bool>,
    /// Messages of connections that send more than their part.
    pub overrun: u64,
}

/// Runs the central node until a signal ends it. `path` is the file of `config`, to be read again by a reload; `socket` goes before
/// `operator.socket`.
///
/// # Errors
/// What the machine refused, naming the setting it is about.
pub fn run(config: Config, path: Option<PathBuf>, socket: Option<PathBuf>) -> Result<ExitCode> {
    if config.cac.mode != CacMode::Central {
        bail!("cac.mode is not \"central\": this is the file of a gateway, which `tollgate run` runs");
    }
    let events = Events::catch().context("signals")?;
    let clock = Clock::new();
    let (waker, sleeper) = wake::pair().context("an event to wake the central node")?;
    let (mut process, _context) = Process::new(config, path, clock, waker.clone())?;
    let (orders, receiver) = bounded(ORDERS);
    let bound = operator_socket::Bound::new(&socket.unwrap_or_else(|| operator_socket::path(&process.config)))?;
    let listen: Vec<String> = process.config.cac.listen.iter().map(ToString::to_string).collect();
    let desk = Arc::new(Desk::new(orders, waker, clock, listen.join(" ")));
    let server = Server::start(desk.clone(), bound)?;
    let (metrics, measured) = measured(&process.config, desk);
    let ready = format!(
        "tollgate {} ready: central node of admission on {}, {} scopes, {} gateways expected, {}, operators {}{measured}; try: tollgate --socket {} show cac",
        env!("CARGO_PKG_VERSION"),
        listen.join(" "),
        process.tree.len(),
        process.config.cac.nodes.len(),
        if process.pair.is_some() { "one of a pair".into() } else { format!("epoch {}", process.central.epoch()) },
        server.path().display(),
        server.path().display(),
    );
    tracing::info!("{ready}");
    if let Err(error) = writeln!(std::io::stdout(), "{ready}") {
        tracing::warn!("the central node is ready, and standard output does not take the line that says so: {error}");
    }
    while process.turn(&events, &receiver, &sleeper) {}
    drop(metrics);
    process.leave(clock.now());
    Ok(ExitCode::SUCCESS)
}

/// Serves metrics, and says where. The address may be that of a gateway on this machine, whose metrics matter more: then there are none.
fn measured(config: &Config, desk: Arc<Desk>) -> (Option<metrics::Server>, String) {
    let Some(address) = config.metrics.address else { return (None, String::new()) };
    match metrics::Server::start_with(desk.clock(), Box::new(Metrics(desk)), address) {
        Ok(server) => {
            let at = server.address();
            (Some(server), format!(", metrics http://{at}/metrics"))
        }
        Err(error) => {
            tracing::warn!("no metrics of the central node: {error:#}");
            (None, ", no metrics (the log says why)".into())
        }
    }
}

impl Process {
    /// Bound and ready. The context must outlive it.
    fn new(config: Config, path: Option<PathBuf>, clock: Clock, waker: Waker) -> Result<(Process, zmq::Context)> {
        let tree = Arc::new(config::tree(&config).context("the central node has no [[scope]] to count in")?);
        let keys = keys::of(&config)?;
        let known = config.cac.node_keys.iter().zip(&config.cac.nodes);
        let known = known.filter_map(|(key, &node)| Some((keys::decode(key)?, node))).collect::<BTreeMap<_, _>>();
        if keys.is_some() && known.len() != config.cac.nodes.len() {
            bail!("cac.node_keys: each node must have a key of its own");
        }
        let context = zmq::Context::new();
        let doorman = Doorman::new(&context, known).context("no place for ZeroMQ to ask who connects")?;
        let router = socket::router(&context, &config.cac.listen, keys.as_ref())?;
        let pair = Pair::of(&config, clock.now(), waker)?;
        let decide_within = config.cac.decide_within;
        // One of a pair begins as standby.
        let epoch = if pair.is_some() { 0 } else { self::epoch(&clock) };
        let process = Process {
            central: machine(&config, &tree, epoch, clock.now()),
            config,
            path,
            clock,
            doorman,
            said: Said::start()?,
            unreadable: 0,
            events: VecDeque::new(),
            pair,
            tree,
            router,
            has_keys: keys.is_some(),
            links: BTreeMap::new(),
            names: BTreeMap::new(),
            last_link: 0,
            octets: Vec::new(),
            inbox: Inbox::new(decide_within),
            down: BTreeMap::new(),
            overrun: 0,
        };
        Ok((process, context))
    }

    /// Once round; false when the process is to end.
    fn turn(&mut self, events: &Events, orders: &Receiver<Order>, sleeper: &Sleeper) -> bool {
        match events.signal() {
            Some(SIGHUP) => match self.reload(false) {
                Ok(changed) => self.said.say(Level::INFO, format!("reload: {} settings changed", changed.changes.len())),
                Err(failure) => self.said.say(Level::ERROR, format!("reload: {}", failure.message)),
            },
            Some(signal) => {
                self.said.say(Level::INFO, format!("signal {signal}: the central node ends; gateways go on by cac.disconnected"));
                return false;
            }
            None => {}
        }
        self.doorman.serve();
        let now = self.clock.now();
        let mut worked = self.keep_lease(now);
        worked |= self.receive(now);
        while let Ok(order) = orders.try_recv() {
            worked = true;
            self.obey(now, order);
        }
        if self.central.deadline() <= now {
            worked = true;
            self.step(now, Event::Time);
        }
        if !worked {
            self.sleep(now, orders, sleeper);
        }
        true
    }

    fn deadline(&self) -> Time {
        self.pair.as_ref().map_or(Time::NEVER, Pair::deadline).min(self.central.deadline())
    }

    fn sleep(&self, now: Time, orders: &Receiver<Order>, sleeper: &Sleeper) {
        sleeper.announce();
        if orders.is_empty() {
            let until = self.deadline().since(now).min(SLEEP_MAX);
            let timeout = until.as_micros().div_ceil(1_000) as i64;
            let event = zmq::PollItem::from_fd(sleeper.event().as_raw_fd(), zmq::POLLIN);
            let mut items = [event, self.router.as_poll_item(zmq::POLLIN), self.doorman.item()];
            // Interrupted: the next turn looks again.
            let _ = zmq::poll(&mut items, timeout);
        }
        sleeper.awake();
        sleeper.drain();
    }

    /// Takes all that has come, so that it is known how long it waits, and does some of it.
    fn receive(&mut self, now: Time) -> bool {
        if self.take_in(now) {
            self.down.values_mut().for_each(|taken| *taken = true);
        }
        let mut worked = false;
        for _ in 0..PER_TURN {
            let Some((name, Letter { user, framed }, load)) = self.inbox.pop(now) else { break };
            worked = true;
            self.central.set_load(load);
            self.received(now, name, user, framed);
        }
        self.end_links(now);
        worked
    }

    /// Takes what has come; false when there is more.
    fn take_in(&mut self, now: Time) -> bool {
        for _ in 0..INBOX_MAX {
            if self.inbox.is_full() {
                return false;
            }
            let Ok(name) = self.router.recv_bytes(zmq::DONTWAIT) else { return true };
            let Ok(mut message) = self.router.recv_msg(zmq::DONTWAIT) else { return true };
            // One part for the name, one for the message; what is behind them is no message of ours.
            let mut more = message.get_more();
            let is_whole = !more;
            while more {
                more = self.router.recv_msg(zmq::DONTWAIT).is_ok_and(|part| part.get_more());
            }
            let user = if self.has_keys { message.gets("User-Id").and_then(|user| user.parse().ok()) } else { None };
            match wire::get_to_central(&message) {
                Ok(framed) if is_whole && user.is_some() == self.has_keys => {
                    let is_taken = self.inbox.push(now, name, message.len(), Letter { user, framed });
                    self.overrun += u64::from(!is_taken);
                }
                _ => self.unreadable += 1,
            }
        }
        false
    }

    /// Ends the sessions of connections that took nothing, behind what had come by them.
    fn end_links(&mut self, now: Time) {
        let is_done = |link: &LinkId| self.names.get(link).is_none_or(|name| !self.inbox.has(name));
        let gone: Vec<LinkId> = self.down.iter().filter(|(link, taken)| **taken && is_done(link)).map(|(link, _)| *link).collect();
        for link in gone {
            self.down.remove(&link);
            self.link_down(now, link);
        }
    }

    fn received(&mut self, now: Time, name: Vec<u8>, user: Option<u32>, framed: Framed<ToCentral>) {
        let link = match self.links.get(&name) {
            Some(&link) => link,
            // Only a hello makes a connection one: whoever was sent away may still be talking.
            None if matches!(framed.message, ToCentral::Hello { .. }) => self.link_up(now, name, user.map_or(framed.header.sc, ScId)),
            None => return,
        };
        self.step(now, Event::Received(link, framed));
    }

    fn link_up(&mut self, now: Time, name: Vec<u8>, sc: ScId) -> LinkId {
        self.last_link += 1;
        let link = LinkId(self.last_link);
        self.links.insert(name.clone(), link);
        self.names.insert(link, name);
        self.step(now, Event::LinkUp(link, sc));
        link
    }

    fn unlink(&mut self, link: LinkId) -> bool {
        let Some(name) = self.names.remove(&link) else { return false };
        self.links.remove(&name).is_some()
    }

    fn link_down(&mut self, now: Time, link: LinkId) {
        if self.unlink(link) {
            self.step(now, Event::LinkDown(link));
        }
    }

    /// One event, and everything that comes of it.
    pub fn step(&mut self, now: Time, event: Event) {
        self.central.step(now, event);
        while let Some(action) = self.central.poll() {
            match action {
                Action::Send(link, framed) => {
                    if !self.send(link, &framed) {
                        self.down.entry(link).or_insert(false);
                    }
                }
                Action::Close(link) => {
                    self.unlink(link);
                }
                Action::Note(note) => self.note(now, note),
            }
        }
    }

    /// False when the peer is gone, or takes nothing: its session ends, and the next one tells all (R38).
    fn send(&mut self, link: LinkId, framed: &Framed<ToNode>) -> bool {
        let Some(name) = self.names.get(&link) else { return true };
        self.octets.clear();
        wire::put_to_node(framed, &mut self.octets);
        self.router.send_multipart([&name[..], &self.octets], zmq::DONTWAIT).is_ok()
    }

    fn note(&mut self, now: Time, note: Note) {
        let words = self.words(note);
        self.happened(now, words, !matches!(note, Note::Joined(_) | Note::InSync(..) | Note::Active(0) | Note::Leads(..)));
        if let Note::HigherEpoch(_) = note
            && self.pair.is_some()
        {
            self.lease_event(now, lease::Event::Deposed);
        } else if let Note::HigherEpoch(highest) = note {
            // The wall clock was set back, or another central node was here: this one begins a life above it, and learns anew.
            let epoch = self::epoch(&self.clock).max(highest.saturating_add(1));
            self.central = machine(&self.config, &self.tree, epoch, now);
            self.links.clear();
            self.names.clear();
        }
    }

    /// Something that operators should know.
    pub fn happened(&mut self, now: Time, words: String, is_bad: bool) {
        self.said.say(if is_bad { Level::WARN } else { Level::INFO }, format!("cluster: {words}"));
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back((now, words));
    }

    fn words(&self, note: Note) -> String {
        match note {
            Note::Active(0) => "every expected gateway has told what is up: calls are granted".into(),
            Note::Active(missing) => {
                format!("calls are granted; {missing} expected gateways have not told what is up, their part stays free")
            }
            Note::Joined(sc) => format!("node {} began a session", sc.0),
            Note::InSync(sc, calls, removed) => format!("node {} told {calls} calls, {removed} others were removed", sc.0),
            Note::SyncIncomplete(sc) => format!("node {} told with gaps: all over again", sc.0),
            Note::Orphaned(sc) => format!("node {} is lost: its calls count on", sc.0),
            Note::Forgotten(sc, calls) => format!("node {} ended or was lost for too long: {calls} of its calls no longer count", sc.0),
            Note::DuplicateId(sc) => format!("two nodes say they are {}: the newcomer was refused", sc.0),
            Note::Refused(sc, why) => format!("node {} was refused: {}", sc.0, why.text()),
            Note::Unlisted(sc) => format!("node {} is not in cac.nodes here: nothing is kept for it when it is cut off", sc.0),
            Note::OtherRules(sc) => format!(
                "node {} has another cac.disconnected, cac.nodes, or limits under hold-last or share: alone it may take more than is kept for it",
                sc.0
            ),
            Note::HigherEpoch(epoch) if self.pair.is_some() => {
                format!(
                    "a node has seen epoch {epoch}, above this one's: another one leads, or etcd was set back (then the gateways must be restarted)"
                )
            }
            Note::HigherEpoch(epoch) => format!("a node has seen epoch {epoch}, above this one's: this central node begins anew"),
            Note::Leads(epoch, copies) => {
                format!("this central node leads, epoch {epoch}: it has copies of what {copies} gateways have up")
            }
            Note::SteppedDown => "this central node leads no more: it is the standby".into(),
            Note::Mended(sc, added, removed) => format!("node {} had other calls: {added} added, {removed} removed", sc.0),
            Note::Threshold(scope, crossing) => {
                let name = self.tree.get(scope).map_or("", |scope| &scope.name);
                format!("scope {name}: {crossing}")
            }
            Note::Full(sc) => format!("the table of calls is full: calls of node {} are not counted", sc.0),
        }
    }

    /// What happened last, newest first.
    pub fn event_lines(&self, now: Time) -> Vec<EventLine> {
        self.events.iter().rev().map(|(at, what)| EventLine { age_s: now.since(*at).as_secs(), what: what.clone() }).collect()
    }
}

/// A message that has come; with keys, and of whom.
struct Letter {
    user: Option<u32>,
    framed: Framed<ToCentral>,
}

/// The machine of one life.
fn machine(config: &Config, tree: &Arc<Tree>, epoch: u64, now: Time) -> Central {
    let cac = &config.cac;
    let settings = Settings {
        learn_for: cac.learn_for,
        forget_after: cac.forget_after,
        cluster: pair::cluster(config),
        giving: config::giving(config),
        ..Settings::new(epoch, cac.nodes.iter().copied().map(ScId).collect())
    };
    Central::new(now, settings, tree.clone(), config::limits(config), config::policies(config))
}

/// An epoch: later ones are larger, unless the wall clock was set back.
fn epoch(clock: &Clock) -> u64 {
    clock::wall_us_at_zero(clock) + clock.now().0 / 1_000
}
