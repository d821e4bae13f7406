//! One core alone, driven by bytes from anywhere: what benches, fuzzers and tests of a whole core call.
//!
//! A [`Lone`] core owns its frames and its way out in memory and its time is a number that the caller moves; it is the run loop of a
//! core without IO. [`datagrams`] feeds it whatever comes, and says what became of it.

use super::{Administration, Answer, Ask, Boot, Core, Envelope, Frames, Origin, Outside, Request, Turn};
use crate::proto::base::{CoreId, Counter, Counters, EndpointIndex, FrameRef, Time};
use crate::proto::cac::asker::{FromLink, ToLink};
use crate::proto::cas::{self};
use crate::proto::codec::peek::{self, Peek};
use crate::proto::plan::{AgentSettings, Limits, Plan, Settings, SpanPlan};
use crate::proto::restart::BlockHow;
use crate::proto::trunk::{
    Card, CardOrder, Defect, Facility, FacilityKind, FacilityPlan, SimCard, SimulatedPlan, SpanIndex, T3Index, Topology,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Where the agent of [`settings`] commands from and is notified at.
pub const AGENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 2727);
/// The domain of [`plan`].
pub const DOMAIN: &str = "tgw.example.net";
/// Frames of a [`Lone`] core, and its transmit slots.
pub const FRAMES: usize = 64;
/// Bytes of a frame and of a transmit slot.
const FRAME: usize = 4096;

/// A plan for one core with these facilities, so many connections, and a history of so many responses of `response_bytes` each.
pub fn plan(facilities: &[FacilityPlan], connections: u32, history_entries: u32, response_bytes: u64) -> Option<Plan> {
    let topology = Topology::new(facilities).ok()?;
    Some(Plan {
        spans: vec![SpanPlan::default(); topology.spans().len()],
        domains: vec![DOMAIN.as_bytes().into()],
        listen: vec![SocketAddr::from(([192, 0, 2, 10], 2427))],
        cores: 1,
        owners: vec![CoreId(0)],
        limits: Limits {
            connections,
            connections_per_endpoint: 4,
            blob_blocks: 2 * connections + 64,
            entities: 16,
            jobs: 64,
            datagrams: 32,
            messages_per_datagram: 32,
            slice: 64,
            datagram: FRAME as u16,
            history_entries,
            history_bytes: u64::from(history_entries) * response_bytes,
            own_commands: 64,
        },
        times: cas::Times::default(),
        admission: None,
        gateways: Vec::new(),
        epoch_ms: 0,
        topology: topology.into(),
    })
}

/// Settings with one agent, which does not mind what comes before the restart, and the usual timers.
pub fn settings() -> Settings {
    let mut agent = AgentSettings::at("ca", AGENT);
    agent.domains.push("ca.example.net".into());
    agent.ranges = true;
    let mut settings = Settings::new(vec![agent]);
    settings.timers.max_waiting_delay = Some(Duration::from_millis(60));
    settings
}

/// A simulated card that carries everything in `plan`.
pub fn card(plan: &Plan, address: IpAddr, connections: u32, seed: u64) -> SimCard {
    let facilities: Vec<Facility> = plan.topology.facilities().collect();
    let (topology, kinds) = (&plan.topology, plan.kinds());
    SimCard::new(&SimulatedPlan {
        topology,
        kinds: &kinds,
        facilities: &facilities,
        address,
        ports: 1024..=u16::MAX,
        part: (0, 1),
        connections,
        seed,
    })
}

/// A core and all the world it knows.
pub struct Lone {
    core: Core,
    counters: Arc<Counters>,
    frames: Memory,
    out: Exit,
    now: Time,
}

impl Lone {
    /// A core after a restart, at the time `now`, that nobody was told of.
    pub fn new(plan: Plan, settings: Settings, card: Box<dyn Card + Send>, seed: u64, now: Time) -> Lone {
        let counters = Arc::new(Counters::new());
        let boot = Boot {
            core: CoreId(0),
            plan: plan.into(),
            settings: settings.into(),
            counters: counters.clone(),
            card,
            gateway_cards: Vec::new(),
            seed,
            now,
        };
        let core = Core::new(boot);
        let frames = Memory { bytes: vec![0; FRAMES * FRAME], held: vec![None; FRAMES] };
        let out = Exit { slots: vec![0; FRAMES * FRAME], sent: Vec::with_capacity(FRAMES), released: Vec::with_capacity(FRAMES) };
        Lone { core, counters, frames, out, now }
    }

    /// What it counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The core, to be run by another loop.
    pub fn into_core(self) -> Core {
        self.core
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// In a cluster: the node of the gateway says this to the core.
    pub fn hear(&mut self, message: FromLink) {
        self.core.handle_node(&mut Turn { now: self.now, frames: &self.frames, out: &mut self.out }, message);
    }

    /// In a cluster: takes the next message that the core has for the node.
    #[inline]
    pub fn take_for_node(&mut self) -> Option<ToLink> {
        let message = self.core.for_node()?;
        self.core.sent_to_node();
        Some(message)
    }

    /// Moves time on; nothing happens by itself.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// A datagram from the agent arrives: `write` fills the frame and says how many bytes. `None`: every frame is held.
    pub fn receive(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> Option<FrameRef> {
        let index = self.frames.held.iter().position(Option::is_none)?;
        let room = self.frames.bytes.chunks_exact_mut(FRAME).nth(index)?;
        let length = write(room).min(FRAME);
        *self.frames.held.get_mut(index)? = Some((length, self.now));
        Some(FrameRef { core: CoreId(0), index: index as u32 })
    }

    /// The core reads ahead for what it will be given.
    #[inline]
    pub fn read_ahead(&self, batch: &[FrameRef]) {
        self.core.read_ahead(&self.frames, batch);
    }

    /// The core handles what has arrived.
    #[inline]
    pub fn handle(&mut self, frame: FrameRef) {
        self.core.handle_datagram(&mut Turn { now: self.now, frames: &self.frames, out: &mut self.out }, frame);
    }

    /// The core does what is due.
    #[inline]
    pub fn handle_time(&mut self) {
        self.core.handle_time(&mut Turn { now: self.now, frames: &self.frames, out: &mut self.out });
    }

    /// Asks the core, until it is done; `None` when it goes on and on.
    pub fn ask(&mut self, ask: Ask) -> Option<Answer> {
        let mut request = Request::new(ask);
        for _ in 0..=self.frames.held.len() * FRAME {
            let mut turn = Turn { now: self.now, frames: &self.frames, out: &mut self.out };
            if self.core.handle_request(&mut turn, &mut request) {
                return Some(request.answer);
            }
        }
        None
    }

    /// When [`Lone::handle_time`] is due.
    pub fn deadline(&self) -> Time {
        self.core.deadline()
    }

    /// What was sent since [`Lone::end_turn`], in order.
    pub fn sent(&self) -> impl Iterator<Item = &[u8]> {
        self.out.slots.chunks_exact(FRAME).zip(&self.out.sent).map(|(slot, &length)| slot.get(..length).unwrap_or_default())
    }

    /// Ends a turn: transmit slots and released frames are free again. The number of frames that were released and not held.
    pub fn end_turn(&mut self) -> usize {
        self.out.sent.clear();
        let mut wrong = 0;
        for frame in self.out.released.drain(..) {
            wrong += usize::from(self.frames.held.get_mut(frame.index as usize).and_then(Option::take).is_none());
        }
        wrong
    }

    /// Frames that the core holds.
    pub fn held(&self) -> usize {
        self.frames.held.iter().flatten().count()
    }

    /// Lets the core tell its restart and agrees; false when it does not come to that.
    pub fn restart(&mut self) -> bool {
        for _ in 0..RESTART_TURNS {
            self.handle_time();
            let asked: Vec<u32> = self.sent().filter_map(command_id).collect();
            self.end_turn();
            for id in asked {
                let response = format!("200 {id} OK\r\n");
                let frame = self.receive(|room| copy(response.as_bytes(), room));
                frame.into_iter().for_each(|frame| self.handle(frame));
                self.handle_time();
                self.end_turn();
            }
            if self.counters.get(Counter::ResponsesMatched) > 0 && self.deadline() > self.now {
                return true;
            }
            self.now = self.deadline().clamp(self.now + Duration::from_millis(1), self.now + Duration::from_secs(10));
        }
        false
    }
}

/// Turns in which a restart of 200,000 endpoints is told: they are worked through in slices.
const RESTART_TURNS: usize = 40_000;

/// The transaction of a command at the beginning of a datagram.
fn command_id(datagram: &[u8]) -> Option<u32> {
    match peek::split(datagram).next()?.1 {
        Peek::Command(line) => Some(line.id),
        Peek::Response { .. } | Peek::Unreadable => None,
    }
}

/// Copies as much as there is room for.
fn copy(from: &[u8], room: &mut [u8]) -> usize {
    let length = from.len().min(room.len());
    room.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
    length
}

/// Received frames.
struct Memory {
    bytes: Vec<u8>,
    /// Length and arrival of what is in a frame.
    held: Vec<Option<(usize, Time)>>,
}

impl Frames for Memory {
    type Datagram<'a> = &'a [u8];

    #[inline]
    fn read(&self, frame: FrameRef) -> Option<(&[u8], Origin)> {
        let (length, arrival) = (*self.held.get(frame.index as usize)?)?;
        let start = frame.index as usize * FRAME;
        Some((self.bytes.get(start..start + length)?, Origin { from: AGENT, local: 0, arrival }))
    }
}

/// The way out.
struct Exit {
    slots: Vec<u8>,
    /// Length of what is in each slot in use.
    sent: Vec<usize>,
    released: Vec<FrameRef>,
}

impl Outside for Exit {
    #[inline]
    fn transmit(&mut self, _: SocketAddr, _: u8, write: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let start = self.sent.len() * FRAME;
        let Some(slot) = self.slots.get_mut(start..start + FRAME) else { return false };
        self.sent.push(write(slot));
        true
    }

    fn forward(&mut self, _: CoreId, _: Envelope) -> bool {
        false
    }

    #[inline]
    fn release(&mut self, frame: FrameRef) {
        self.released.push(frame);
    }
}

/// What became of an input of [`datagrams`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Datagrams the core was given.
    pub received: usize,
    /// Datagrams it sent.
    pub sent: usize,
    /// Datagrams it sent that no agent could read.
    pub unreadable: usize,
    /// Frames it released that it did not hold.
    pub released_twice: usize,
    /// Frames it still held when everything was over.
    pub held: usize,
    /// Commands that still waited then.
    pub waiting: usize,
}

impl Outcome {
    /// Whether the core gave every frame back once, ended every command and wrote nothing unreadable.
    pub fn is_sound(&self) -> bool {
        (self.unreadable, self.released_twice, self.held, self.waiting) == (0, 0, 0, 0)
    }
}

/// Ends a datagram in the input of [`datagrams`].
pub const SEPARATOR: u8 = 0x1e;

/// Feeds a core the datagrams in `input`, each ended by [`SEPARATOR`]. In front of a datagram, `!` and a letter say what happens before
/// it (see `Trial::happen`): time passes, the agent answers, the card is slow, refuses or fails, an operator blocks. Afterwards the card
/// works and time passes until nothing is left to be done.
pub fn datagrams(input: &[u8]) -> Outcome {
    let Some(mut trial) = Trial::new() else { return Outcome::default() };
    for mut datagram in input.split(|&byte| byte == SEPARATOR) {
        while let [b'!', letter, rest @ ..] = datagram {
            trial.happen(*letter);
            datagram = rest;
        }
        trial.receive(datagram);
    }
    [b'n', b'c'].into_iter().for_each(|letter| trial.happen(letter));
    trial.lone.ask(Ask::Card(CardOrder::Refuse(0)));
    (0..SETTLING).for_each(|_| trial.happen(b'T'));
    trial.outcome.held = trial.lone.held();
    if let Some(Answer::Transactions(view)) = trial.lone.ask(Ask::Transactions) {
        trial.outcome.waiting = view.waiting;
    }
    trial.outcome
}

/// Seconds after which every command has ended.
const SETTLING: usize = 40;
/// Turns in a row that the core can have for work on all its endpoints.
const TURNS: usize = 64;
/// Commands of the core that the agent can answer later.
const ASKED: usize = 8;

/// A core under [`datagrams`].
struct Trial {
    lone: Lone,
    outcome: Outcome,
    /// The latest commands of the core.
    asked: Vec<u32>,
    topology: Arc<Topology>,
}

impl Trial {
    fn new() -> Option<Trial> {
        let spans = [(FacilityKind::T3, 1), (FacilityKind::T1, 1), (FacilityKind::E1, 1)];
        let facilities = spans.map(|(kind, unit)| FacilityPlan { kind, unit, common_channel: false });
        let plan = plan(&facilities, 64, 256, 512)?;
        let topology = plan.topology.clone();
        let card = card(&plan, [192, 0, 2, 20].into(), 64, 1);
        let lone = Lone::new(plan, settings(), Box::new(card), 1, Time::from_millis(1000));
        Some(Trial { lone, outcome: Outcome::default(), asked: Vec::new(), topology })
    }

    fn receive(&mut self, datagram: &[u8]) {
        if let Some(frame) = self.lone.receive(|room| copy(datagram, room)) {
            self.outcome.received += 1;
            self.lone.handle(frame);
        }
        self.turn();
    }

    fn turn(&mut self) {
        self.lone.pass(Duration::from_micros(100));
        for _ in 0..TURNS {
            self.lone.handle_time();
            if self.lone.deadline() > self.lone.now() {
                break;
            }
        }
        for datagram in self.lone.sent() {
            self.outcome.sent += 1;
            self.outcome.unreadable += usize::from(peek::split(datagram).any(|(_, message)| message == Peek::Unreadable));
            self.asked.extend(command_id(datagram).filter(|id| !self.asked.contains(id)));
        }
        self.asked.drain(..self.asked.len().saturating_sub(ASKED));
        self.outcome.released_twice += self.lone.end_turn();
    }

    fn happen(&mut self, letter: u8) {
        let span = Facility::Span(SpanIndex(0));
        let t3 = Facility::T3(T3Index(0));
        let defect = |facility, defect, at_once| Ask::Card(CardOrder::Defect { facility, defect, present: true, at_once });
        let all = || self.topology.resolve(b"*", false).ok();
        let ask = match letter {
            b't' => return self.pass(Duration::from_millis(10)),
            b'T' => return self.pass(Duration::from_secs(1)),
            // The agent answers the latest command of the core, with success or not.
            b'a' => return self.answer(200),
            b'e' => return self.answer(405),
            b'd' => Ask::Card(CardOrder::Delay(50)),
            b'D' => Ask::Card(CardOrder::Delay(u32::MAX)),
            b'n' => Ask::Card(CardOrder::Delay(0)),
            b'r' => Ask::Card(CardOrder::Refuse(1)),
            b'l' => defect(span, Defect::LossOfSignal, true),
            b'L' => defect(t3, Defect::LossOfSignal, false),
            b'f' => defect(span, Defect::Equipment, true),
            b'c' => {
                self.lone.ask(Ask::Card(CardOrder::Clear { facility: t3, at_once: true }));
                Ask::Card(CardOrder::Clear { facility: span, at_once: true })
            }
            b'x' => Ask::Free(EndpointIndex(0)),
            b'b' | b'B' | b'u' => {
                let Some(selection) = all() else { return };
                Ask::Administer(match letter {
                    b'b' => Administration::Block(selection, BlockHow::Graceful(Duration::from_secs(2))),
                    b'B' => Administration::Block(selection, BlockHow::Force),
                    _ => Administration::Unblock(selection),
                })
            }
            _ => return,
        };
        self.lone.ask(ask);
        self.turn();
    }

    fn pass(&mut self, time: Duration) {
        self.lone.pass(time);
        self.turn();
    }

    fn answer(&mut self, code: u16) {
        if let Some(id) = self.asked.pop() {
            self.receive(format!("{code} {id} x\r\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::cac::{self, Kind, Scope, ScopeId, Tree};
    use crate::proto::plan::Admission;

    #[test]
    fn a_call_is_set_up_and_taken_down() {
        let facility = FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false };
        let plan = plan(&[facility], 8, 64, 512).unwrap();
        let card = card(&plan, [192, 0, 2, 20].into(), 8, 1);
        let mut lone = Lone::new(plan, settings(), Box::new(card), 1, Time::from_millis(1000));
        assert!(lone.restart());
        for (text, code) in [
            ("CRCX 1 ds/ds1-1/5@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n", "200 1"),
            ("DLCX 2 ds/ds1-1/5@tgw.example.net MGCP 1.0\r\n", "250 2"),
        ] {
            let frame = lone.receive(|room| copy(text.as_bytes(), room)).unwrap();
            lone.handle(frame);
            assert!(lone.sent().next().unwrap().starts_with(code.as_bytes()));
            assert_eq!((lone.end_turn(), lone.held()), (0, 0));
        }
        assert_eq!(lone.counters().get(Counter::DlcxDone), 1);
    }

    /// A T1 in service whose first `counted` channels are a trunk group of a cluster; `open`: what the node does not decide is admitted.
    fn in_a_cluster(counted: u32, open: bool) -> Lone {
        let facility = FacilityPlan { kind: FacilityKind::T1, unit: 1, common_channel: false };
        let mut plan = plan(&[facility], 8, 64, 512).unwrap();
        let tree = Tree::new(vec![Scope::new(Kind::TrunkGroup, "north")]).unwrap();
        let group = |endpoint| if endpoint < counted { ScopeId(0) } else { ScopeId::NONE };
        let groups = (0..plan.topology.len()).map(group).collect();
        let decide_within = Duration::from_millis(250);
        plan.admission = Some(Admission { tree, groups, decide_within, cluster: true, open: vec![open] });
        let settings = Settings { admission: vec![cac::Limits::NONE], ..settings() };
        let card = card(&plan, [192, 0, 2, 20].into(), 8, 1);
        let mut lone = Lone::new(plan, settings, Box::new(card), 1, Time::from_millis(1000));
        assert!(lone.restart());
        lone
    }

    fn command(lone: &mut Lone, text: &str) {
        let frame = lone.receive(|room| copy(text.as_bytes(), room)).unwrap();
        lone.handle(frame);
    }

    /// R39: the node stands still, link thread and all. By `cac.disconnected = "open"` a call is admitted when its time is over, by any
    /// other rule it is refused; what the node says about it afterwards changes nothing.
    #[test]
    fn no_call_waits_for_a_node_that_stands_still() {
        for (open, code) in [(true, "200 1"), (false, "403 1")] {
            let mut lone = in_a_cluster(24, open);
            command(&mut lone, "CRCX 1 ds/ds1-1/5@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n");
            let mut codes = Vec::new();
            for _ in 0..31 {
                lone.pass(Duration::from_millis(10));
                lone.handle_time();
                codes.extend(lone.sent().map(|sent| String::from_utf8_lossy(&sent[..5]).into_owned()));
                lone.end_turn();
            }
            assert_eq!(codes, ["100 1", code]);
            let mut told = Vec::new();
            while let Some(message) = lone.take_for_node() {
                told.push(message);
            }
            let Some(&ToLink::Ask(call, charge)) = told.first() else { panic!("{told:?}") };
            let denial = cac::Denial { scope: ScopeId(0), cause: cac::Cause::Calls, used: 1, limit: 1 };
            assert_eq!(told[1..], if open { vec![ToLink::Alone(call, charge)] } else { vec![] });
            // The next one does not wait at all, as long as nothing is heard of the node.
            let at_once = |lone: &mut Lone, id: u32| {
                command(lone, &format!("CRCX {id} ds/ds1-1/{id}@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\n"));
                lone.handle_time();
                let codes: Vec<String> = lone.sent().map(|sent| String::from_utf8_lossy(&sent[..5]).into_owned()).collect();
                lone.end_turn();
                while lone.take_for_node().is_some() {}
                codes
            };
            assert_eq!(at_once(&mut lone, 7), [code.replace(" 1", " 7")]);
            lone.hear(FromLink::Decided(call, Err(denial)));
            command(&mut lone, "DLCX 2 ds/ds1-1/5@tgw.example.net MGCP 1.0\r\n");
            assert_eq!(lone.take_for_node(), open.then_some(ToLink::End(call)));
            lone.end_turn();
            assert_eq!(at_once(&mut lone, 8), [""; 0], "it is asked again");
        }
    }

    /// A pair in a cluster: one question for both halves; granted, both begin; refused, none; whatever ends a half tells its call.
    #[test]
    fn both_halves_of_a_pair_are_asked_for_in_one_question() {
        // The last twelve channels count nowhere.
        let mut lone = in_a_cluster(12, true);
        let codes = |lone: &mut Lone| -> Vec<String> {
            lone.handle_time();
            let codes = lone.sent().map(|sent| String::from_utf8_lossy(&sent[..5]).into_owned()).collect();
            lone.end_turn();
            codes
        };
        let told = |lone: &mut Lone| std::iter::from_fn(|| lone.take_for_node()).collect::<Vec<_>>();
        let pair = "ds/ds1-1/1@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\nZ2: ds/ds1-1/2@tgw.example.net\r\n";
        command(&mut lone, &format!("CRCX 1 {pair}"));
        let [ToLink::AskBoth((second, outbound), (first, inbound))] = told(&mut lone)[..] else { panic!("not one question") };
        assert_eq!((outbound.direction, inbound.direction), (cac::Direction::Outbound, cac::Direction::Inbound));
        lone.hear(FromLink::Decided(second, Ok(())));
        assert_eq!((codes(&mut lone), told(&mut lone)), (vec!["200 1".into()], vec![]));
        command(&mut lone, "DLCX 2 ds/ds1-1/1@tgw.example.net MGCP 1.0\r\n");
        assert_eq!((codes(&mut lone), told(&mut lone)), (vec!["250 2".into()], vec![ToLink::End(first)]));
        command(&mut lone, "DLCX 3 ds/ds1-1/2@tgw.example.net MGCP 1.0\r\n");
        assert_eq!((codes(&mut lone), told(&mut lone)), (vec!["250 3".into()], vec![ToLink::End(second)]));
        // Refused: nothing is there, and nothing has to be told.
        command(&mut lone, &format!("CRCX 4 {pair}"));
        let [ToLink::AskBoth((second, _), _)] = told(&mut lone)[..] else { panic!("not one question") };
        let denial = cac::Denial { scope: ScopeId(0), cause: cac::Cause::Calls, used: 1, limit: 1 };
        lone.hear(FromLink::Decided(second, Err(denial)));
        assert_eq!((codes(&mut lone), told(&mut lone)), (vec!["403 4".into()], vec![]));
        // The second half is granted and its card refuses: the first one's call is over too.
        command(&mut lone, &format!("CRCX 5 {pair}"));
        let [ToLink::AskBoth((second, _), (first, _))] = told(&mut lone)[..] else { panic!("not one question") };
        lone.ask(Ask::Card(CardOrder::Refuse(1)));
        lone.hear(FromLink::Decided(second, Ok(())));
        let mut ends = told(&mut lone);
        ends.sort_by_key(|end| if *end == ToLink::End(first) { 0 } else { 1 });
        assert_eq!((codes(&mut lone).len(), ends), (1, vec![ToLink::End(first), ToLink::End(second)]));
        assert_eq!(lone.held(), 0);
        // Nobody answers: both begin alone, and the node hears of both.
        command(&mut lone, &format!("CRCX 6 {pair}"));
        let [ToLink::AskBoth((second, outbound), (first, inbound))] = told(&mut lone)[..] else { panic!("not one question") };
        for _ in 0..31 {
            lone.pass(Duration::from_millis(10));
            lone.handle_time();
        }
        assert_eq!(codes(&mut lone), ["100 6", "200 6"]);
        assert_eq!(told(&mut lone), [ToLink::Alone(second, outbound), ToLink::Alone(first, inbound)]);
        // A second half that counts nowhere: the first one asks for itself, and does not wait. It has its time to be joined all the same.
        command(&mut lone, "CRCX 7 ds/ds1-1/3@tgw.example.net MGCP 1.0\r\nC: 1\r\nM: recvonly\r\nZ2: ds/ds1-1/20@tgw.example.net\r\n");
        assert_eq!(codes(&mut lone), ["200 7"]);
        let told = told(&mut lone);
        assert!(matches!(told[..], [ToLink::Ask(asked, _), ToLink::Alone(alone, _)] if asked == alone), "{told:?}");
    }

    #[test]
    fn an_input_is_taken_apart_and_settles() {
        let input = b"!T!aCRCX 1 ds/ds1-1/5@tgw.example.net MGCP 1.0\nC: 1\nM: recvonly\n\x1e!D\
            CRCX 2 ds/ds1-1/6@tgw.example.net MGCP 1.0\nC: 1\nM: recvonly\n\x1e!TDLCX 3 *@tgw.example.net MGCP 1.0\n\x1egarbage";
        let outcome = datagrams(input);
        // The answer to the restart is one of them.
        assert_eq!(outcome.received, 5);
        assert!(outcome.sent >= 5 && outcome.is_sound(), "{outcome:?}");
    }
}
