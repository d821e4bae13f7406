//! An agent that does everything at random: creates, modifies, deletes and audits on endpoints that other agents use too, with
//! wildcards, pairs, several messages in a datagram, repeats, confirmations and rubbish. It repeats as RFC 3435 asks, answers the
//! gateway's commands, and checks that each response makes sense for its command.

use super::actor::{Actor, Mail, Outbound};
use super::reply::Reply;
use crate::proto::base::{Rng, Time};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// Nothing is repeated later (RFC 3435 4.3).
const T_MAX: Duration = Duration::from_secs(20);

/// What an agent is to do.
#[derive(Clone, Debug)]
pub struct RandomPlan {
    /// Its address.
    pub address: IpAddr,
    /// Other addresses of its: machines that take over from each other, and answer what comes to them.
    pub others: Vec<IpAddr>,
    /// The T1s it uses, by their unit numbers.
    pub spans: Vec<u32>,
    /// Channels of each T1 it uses, so that commands meet.
    pub channels: u32,
    /// Transactions at a time.
    pub window: usize,
    /// Mean time between new transactions.
    pub pause: Duration,
    /// Whether it commands the whole gateway by `*` and `$`.
    pub everything: bool,
    /// Whether commands may fail because of faults beyond the network: cards, stalls, alarms.
    pub trouble: bool,
}

/// What a command was, as far as its response must fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Create,
    CreateAny,
    CreatePair,
    Modify,
    Delete,
    DeleteMany,
    Audit,
    AuditConnection,
    AuditMany,
    Change,
    ChangeMany,
    Wrong,
}

struct Transaction {
    kind: Kind,
    endpoint: String,
    call: String,
    second: Option<String>,
    message: Vec<u8>,
    /// The machine that sends it.
    from: IpAddr,
    first_sent: Time,
    next: Time,
    timer: Duration,
}

#[derive(Clone, Debug)]
struct Connection {
    endpoint: String,
    id: String,
    call: String,
}

/// The agent. See the module's page.
pub struct RandomAgent {
    plan: RandomPlan,
    rng: Rng,
    /// The machine that sends new commands.
    active: IpAddr,
    next_id: u32,
    outstanding: BTreeMap<u32, Transaction>,
    /// Finals by transaction, to compare repeats with.
    finals: HashMap<u32, Vec<u8>>,
    unconfirmed: Vec<u32>,
    connections: Vec<Connection>,
    next_start: Time,
    winding_down: bool,
    /// From then on every command must get its final.
    healed: Option<Time>,
    lost: usize,
    done: usize,
    codes: BTreeMap<u16, usize>,
}

impl RandomAgent {
    /// An agent that begins at `now`.
    pub fn new(plan: RandomPlan, now: Time, mut rng: Rng) -> RandomAgent {
        let next_id = 1 + rng.below(900_000_000) as u32;
        RandomAgent {
            active: plan.address,
            plan,
            rng,
            next_id,
            outstanding: BTreeMap::new(),
            finals: HashMap::new(),
            unconfirmed: Vec::new(),
            connections: Vec::new(),
            next_start: now,
            winding_down: false,
            healed: None,
            lost: 0,
            done: 0,
            codes: BTreeMap::new(),
        }
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.rng.below(list.len() as u64) as usize]
    }

    fn endpoint(&mut self) -> String {
        let spans = self.plan.spans.clone();
        let span = *self.pick(&spans);
        format!("ds/ds1-{span}/{}", 1 + self.rng.below(u64::from(self.plan.channels)))
    }

    fn many(&mut self, wildcard: &str) -> String {
        if self.plan.everything && self.rng.chance(200_000) {
            return wildcard.to_owned();
        }
        let spans = self.plan.spans.clone();
        let span = *self.pick(&spans);
        format!("ds/ds1-{span}/{wildcard}")
    }

    /// A connection it knows, as likely as not.
    fn connection(&mut self) -> Connection {
        if self.connections.is_empty() || self.rng.chance(50_000) {
            return Connection { endpoint: self.endpoint(), id: format!("{:08X}", self.rng.next() as u32), call: "F00".into() };
        }
        let connections = std::mem::take(&mut self.connections);
        let chosen = self.pick(&connections).clone();
        self.connections = connections;
        chosen
    }

    fn description(&mut self) -> Vec<String> {
        let port = 10_000 + 2 * self.rng.below(20_000);
        let format = *self.pick(&["0", "8", "8 0", "0 8 101"]);
        ["", "v=0", "o=- 1 1 IN IP4 192.0.2.50", "s=-", "c=IN IP4 192.0.2.50", "t=0 0"]
            .into_iter()
            .map(str::to_owned)
            .chain([format!("m=audio {port} RTP/AVP {format}")])
            .collect()
    }

    /// A new command, noted as outstanding: its text.
    fn command(&mut self, now: Time) -> Vec<u8> {
        let id = self.next_id;
        self.next_id = self.next_id % 999_999_999 + 1;
        let call = format!("{:X}", 1 + self.rng.below(12));
        let (mut endpoint, mut second) = (self.endpoint(), None);
        let (kind, verb, mut lines): (Kind, &str, Vec<String>) = match self.rng.below(100) {
            0..20 => (Kind::Create, "CRCX", vec![format!("C: {call}"), self.receiving()]),
            20..28 => {
                endpoint = self.many("$");
                (Kind::CreateAny, "CRCX", vec![format!("C: {call}"), self.receiving()])
            }
            28..34 => {
                let other = if self.rng.chance(300_000) { self.many("$") } else { self.endpoint() };
                second = Some(other.clone());
                (Kind::CreatePair, "CRCX", vec![format!("C: {call}"), "M: sendrecv".into(), format!("Z2: {other}@tgw.example.net")])
            }
            34..48 => {
                let connection = self.connection();
                endpoint = connection.endpoint;
                let mut lines = vec![format!("C: {}", connection.call), format!("I: {}", connection.id)];
                lines.push(self.receiving());
                if self.rng.chance(500_000) {
                    lines.pop();
                    lines.push("M: sendrecv".into());
                    lines.extend(self.description());
                }
                (Kind::Modify, "MDCX", lines)
            }
            48..62 => {
                let connection = self.connection();
                endpoint = connection.endpoint;
                (Kind::Delete, "DLCX", vec![format!("C: {}", connection.call), format!("I: {}", connection.id)])
            }
            62..66 => (Kind::Delete, "DLCX", if self.rng.chance(500_000) { vec![format!("C: {call}")] } else { Vec::new() }),
            66..69 => {
                endpoint = self.many("*");
                (Kind::DeleteMany, "DLCX", if self.rng.chance(500_000) { vec![format!("C: {call}")] } else { Vec::new() })
            }
            69..77 => (Kind::Audit, "AUEP", vec!["F: I,X,N,D,RM".into()]),
            77..82 => {
                let connection = self.connection();
                endpoint = connection.endpoint;
                (Kind::AuditConnection, "AUCX", vec![format!("I: {}", connection.id), "F: C,M,L,LC,RC,P".into()])
            }
            82..84 => {
                endpoint = self.many("*");
                (Kind::AuditMany, "AUEP", Vec::new())
            }
            84..90 => (Kind::Change, "RQNT", self.request()),
            90..92 => (Kind::Change, "EPCF", vec!["B: e:A".into()]),
            92..95 => {
                endpoint = self.many("*");
                (Kind::ChangeMany, "RQNT", self.request())
            }
            95..97 => {
                endpoint = self.many("*");
                (Kind::ChangeMany, "EPCF", vec![(*self.pick(&["B: e:A", "B: e:mu"])).to_owned()])
            }
            _ => {
                let wrong = [
                    ("CRCX", vec!["M: recvonly"]),
                    ("CRCX", vec!["C: A1", "M: sendrecv"]),
                    ("CRCX", vec!["C: A1", "M: recvonly", "X+CRITICAL: 1"]),
                    ("RQNT", vec!["X: 1", "R: L/hd(N)"]),
                    ("MDCX", vec!["C: A1"]),
                    ("ZZZZ", vec![]),
                    ("AUCX", vec!["I: xyz"]),
                ];
                let (verb, lines) = self.pick(&wrong).clone();
                (Kind::Wrong, verb, lines.into_iter().map(str::to_owned).collect())
            }
        };
        if self.unconfirmed.len() > 6 && self.rng.chance(300_000) && !lines.iter().any(String::is_empty) {
            lines.push(format!("K: {}", confirmed(&mut self.unconfirmed)));
        }
        let domain = if self.rng.chance(100_000) { "[192.0.2.10]" } else { "tgw.example.net" };
        let mut text = format!("{verb} {id} {endpoint}@{domain} MGCP 1.0\r\n");
        for line in &lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        let timer = 200 * MS;
        let message = text.into_bytes();
        let transaction = Transaction {
            kind,
            endpoint,
            call,
            second,
            message: message.clone(),
            from: self.active,
            first_sent: now,
            next: now + timer,
            timer,
        };
        self.outstanding.insert(id, transaction);
        message
    }

    fn receiving(&mut self) -> String {
        (*self.pick(&["M: recvonly", "M: inactive", "M: recvonly\r\nL: p:10, a:PCMA;PCMU", "M: recvonly\r\nL: a:PCMU, e:off"])).to_owned()
    }

    fn request(&mut self) -> Vec<String> {
        let mut lines = vec![format!("X: {:X}", 1 + self.rng.below(1 << 32))];
        // Every request wants the numbered events of the line.
        lines.push((*self.pick(&["R: T/oc(N)", "R: T/oc(N),T/co1(I)", "Q: loop\r\nR: T/oc(N)", "R: T/oc(A),T/co1(N)"])).to_owned());
        match self.rng.below(4) {
            0 => lines.push("D: (xx|[0-7]xxx|11)".into()),
            // Whatever stands before the @, it must be one of the two agents.
            2 => lines.push(format!("N: ca{}@ca{}.example.net:2727", 1 + self.rng.below(2), 1 + self.rng.below(2))),
            _ => {}
        }
        lines
    }

    fn send(&mut self, from: IpAddr, bytes: Vec<u8>, out: &mut Vec<Outbound>) {
        let port = if self.rng.chance(100_000) { 40_000 + self.rng.below(3) as u16 } else { 2727 };
        out.push(Outbound { from: SocketAddr::new(from, port), local: 0, bytes });
    }

    /// Another machine goes on, now and then: it knows all the calls, and takes its ids from the same numbers.
    fn fail_over(&mut self) {
        if !self.plan.others.is_empty() && self.rng.chance(10_000) {
            let mut all = self.plan.others.clone();
            all.push(self.plan.address);
            self.active = *self.pick(&all);
        }
    }

    fn response(&mut self, now: Time, code: u16, reply: &Reply, out: &mut Vec<Outbound>) {
        if code < 200 {
            if let Some(transaction) = self.outstanding.get_mut(&reply.id) {
                // LONGTRAN would be 5 s; shorter here, so that more repeats meet a running command.
                transaction.timer = 1500 * MS;
                transaction.next = now + transaction.timer;
            }
            return;
        }
        if reply.get("K").is_some() {
            let from = self.active;
            self.send(from, format!("000 {}\r\n", reply.id).into_bytes(), out);
        }
        if let Some(first) = self.finals.get(&reply.id) {
            let (first, again) = (String::from_utf8_lossy(first), String::from_utf8_lossy(&reply.bytes));
            assert!(first == again || first.starts_with("409") || again.starts_with("409"), "two finals: {first} {again}");
            return;
        }
        let Some(transaction) = self.outstanding.remove(&reply.id) else {
            assert!(self.lost > 0, "a response to nothing: {}", reply.line);
            return;
        };
        self.finals.insert(reply.id, reply.bytes.clone());
        self.unconfirmed.push(reply.id);
        self.done += 1;
        *self.codes.entry(code).or_default() += 1;
        self.check(&transaction, code, reply);
        self.learn(transaction, code, reply);
    }

    /// The code must be one that the command can get.
    fn check(&self, transaction: &Transaction, code: u16, reply: &Reply) {
        use Kind::*;
        let fits = match transaction.kind {
            Create => matches!(code, 200 | 407 | 540),
            CreateAny => matches!(code, 200 | 407 | 410),
            CreatePair => matches!(code, 200 | 407 | 410 | 503 | 540),
            // 403: a half of a pair has no port for media from outside.
            Modify => matches!(code, 200 | 403 | 407 | 515),
            Delete => matches!(code, 250 | 515),
            DeleteMany => matches!(code, 250 | 400),
            Audit => code == 200,
            AuditConnection => matches!(code, 200 | 515),
            AuditMany => matches!(code, 200 | 533),
            Change => code == 200,
            ChangeMany => matches!(code, 200 | 400),
            Wrong => code >= 500,
        };
        // Restart, resources, time limits, overload, lines that are down.
        let trouble = matches!(code, 400 | 403 | 405 | 406 | 409 | 501 | 531) && self.plan.trouble;
        assert!(fits || trouble, "{} for {}", reply.line, String::from_utf8_lossy(&transaction.message));
    }

    fn learn(&mut self, transaction: Transaction, code: u16, reply: &Reply) {
        let Transaction { kind, endpoint, call, second, message, .. } = transaction;
        let local = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
        match (kind, code) {
            (Kind::Create | Kind::CreateAny | Kind::CreatePair, 200) => {
                let at = reply.get("Z").map_or(endpoint, local);
                let id = reply.get("I").unwrap_or_else(|| panic!("no connection: {}", reply.line)).to_owned();
                assert!(reply.description.contains("m=audio "), "no description: {}", reply.line);
                self.connections.push(Connection { endpoint: at, id, call: call.clone() });
                if let (Some(id), Some(other)) = (reply.get("I2"), reply.get("Z2").map(local).or(second)) {
                    self.connections.push(Connection { endpoint: other, id: id.to_owned(), call });
                }
            }
            (Kind::Delete, 250 | 515) | (Kind::Modify | Kind::AuditConnection, 515) => {
                let text = String::from_utf8_lossy(&message).into_owned();
                self.connections.retain(|connection| !text.contains(&format!("I: {}", connection.id)));
            }
            _ => {}
        }
        if self.connections.len() > 60 {
            self.connections.remove(0);
        }
    }
}

/// Takes most of the ids: ranges and single ones, the latest first.
fn confirmed(ids: &mut Vec<u32>) -> String {
    let mut taken = ids.split_off(ids.len() / 4);
    taken.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in taken {
        match ranges.last_mut() {
            Some((low, _)) if *low == id + 1 => *low = id,
            _ => ranges.push((id, id)),
        }
    }
    let range = |(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

impl Actor for RandomAgent {
    fn owns(&self, address: IpAddr) -> bool {
        address == self.plan.address || self.plan.others.contains(&address)
    }

    fn handle(&mut self, now: Time, mail: &Mail, out: &mut Vec<Outbound>) {
        for reply in Reply::all(&mail.bytes) {
            match reply.code {
                Some(0) => {}
                Some(code) => self.response(now, code, &reply, out),
                None => {
                    let code = if reply.line.starts_with("DLCX") { 250 } else { 200 };
                    out.push(Outbound { from: mail.to, local: mail.local, bytes: format!("{code} {} OK\r\n", reply.id).into_bytes() });
                }
            }
        }
    }

    fn poll(&mut self, now: Time, out: &mut Vec<Outbound>) {
        let due: Vec<u32> = self.outstanding.iter().filter(|(_, t)| t.next <= now).map(|(&id, _)| id).collect();
        for id in due {
            let Some(transaction) = self.outstanding.get_mut(&id) else { continue };
            if now.since(transaction.first_sent) > T_MAX {
                let text = String::from_utf8_lossy(&transaction.message).into_owned();
                assert!(self.healed.is_none_or(|at| transaction.first_sent < at), "no final for {text}");
                self.outstanding.remove(&id);
                self.lost += 1;
                continue;
            }
            transaction.timer = (transaction.timer * 2).min(4000 * MS);
            transaction.next = now + transaction.timer;
            let (from, bytes) = (transaction.from, transaction.message.clone());
            self.send(from, bytes, out);
        }
        if self.winding_down || now < self.next_start {
            return;
        }
        self.fail_over();
        let (from, pause) = (self.active, self.plan.pause);
        self.next_start = now + self.rng.duration(Duration::ZERO, pause * 2);
        let count = if self.rng.chance(150_000) { 2 + self.rng.below(4) as usize } else { 1 };
        let room = self.plan.window.saturating_sub(self.outstanding.len());
        let messages: Vec<Vec<u8>> = (0..count.min(room)).map(|_| self.command(now)).collect();
        if !messages.is_empty() {
            self.send(from, messages.join(&b".\r\n"[..]), out);
        }
        if self.rng.chance(20_000) {
            let rubbish = ["200 77 OK\r\n", "000 5\r\n", "CRCX\r\n", "\u{1}\u{2}", "200 1 OK\r\n.\r\n.\r\nAUEP\r\n"];
            let bytes = self.pick(&rubbish).as_bytes().to_vec();
            self.send(from, bytes, out);
        }
    }

    fn deadline(&self) -> Time {
        let repeats = self.outstanding.values().map(|t| t.next).min().unwrap_or(Time::NEVER);
        if self.winding_down { repeats } else { repeats.min(self.next_start) }
    }

    fn wind_down(&mut self, now: Time) {
        self.winding_down = true;
        self.healed = Some(now);
    }

    fn is_done(&self) -> bool {
        self.winding_down && self.outstanding.is_empty()
    }

    fn pending(&self) -> String {
        let lines = self.outstanding.values().map(|t| String::from_utf8_lossy(&t.message).lines().next().unwrap_or_default().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn summary(&self) -> String {
        format!("{}: {} ended, {} lost, codes {:?}", self.plan.address, self.done, self.lost, self.codes)
    }
}
