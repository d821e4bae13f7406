//! A gateway for tests of the agent and the load generator: it does what a gateway must, at once, and wrong where its script says so.

use std::collections::HashMap;

use crate::proto::base::{HexId, Time};
use crate::proto::codec::mgcp::{Code, Command, Verb};
use crate::proto::codec::peek::{self, Peek};

/// What the scripted gateway does wrong, or differently.
#[derive(Clone, Copy, Default)]
pub struct Script {
    /// Every n-th CRCX is answered 100 first, its final with `K:` comes a second later.
    pub slow_every: u64,
    /// Every n-th repeat gets other bytes.
    pub vary_repeats: bool,
    /// Keeps every connection but says that it was deleted.
    pub keep_connections: bool,
    /// Leaves `P:` out.
    pub no_parameters: bool,
    /// Uses one connection identifier for all.
    pub same_identifier: bool,
    /// Answers so many DLCX with wildcards 400.
    pub busy_clearing: u64,
    /// Answers CRCX with this code.
    pub refuse: Option<u16>,
    /// So many Notify commands for each CreateConnection with a request, one for each request.
    pub notifies: u32,
    /// Sends a forced RSIP and drops all connections at this time.
    pub restart_at: Option<Time>,
}

pub struct Gateway {
    pub script: Script,
    pub connections: HashMap<String, Vec<String>>,
    /// The call of each connection.
    calls: HashMap<String, String>,
    responses: HashMap<u32, String>,
    pub confirmed: Vec<(u32, u32)>,
    pub executed: u64,
    pub created: u64,
    /// CreateConnections, refused ones too.
    pub created_tried: u64,
    /// The most endpoints with a connection at a time.
    pub most_outstanding: usize,
    notifies: HashMap<String, u32>,
    next_notify: u32,
    pub largest: usize,
    restart_id: u32,
    restart_answered: bool,
}

impl Gateway {
    pub fn new(script: Script) -> Gateway {
        Gateway {
            script,
            connections: HashMap::new(),
            calls: HashMap::new(),
            responses: HashMap::new(),
            confirmed: Vec::new(),
            executed: 0,
            created: 0,
            created_tried: 0,
            most_outstanding: 0,
            notifies: HashMap::new(),
            next_notify: 5_000_000,
            largest: 0,
            restart_id: 777,
            restart_answered: false,
        }
    }

    /// The answers to `datagram` with their delay in ms.
    pub fn handle(&mut self, datagram: &[u8]) -> Vec<(u64, String)> {
        let mut answers = Vec::new();
        for (range, peek) in peek::split(datagram) {
            match peek {
                Peek::Command(line) => self.command(line.id, &datagram[range], &mut answers),
                Peek::Response { code, id } => {
                    self.restart_answered |= code == 200 && id == self.restart_id;
                    let of_notify = (5_000_001..=self.next_notify).contains(&id);
                    assert!(!of_notify || matches!(code, 0 | 200), "a Notify is answered with success");
                }
                Peek::Unreadable => panic!("unreadable: {}", String::from_utf8_lossy(datagram)),
            }
        }
        // The restart comes first until it is answered.
        if !self.restart_answered {
            for (_, text) in &mut answers {
                *text = format!("RSIP {} *@gw MGCP 1.0\r\nRM: restart\r\n.\r\n{text}", self.restart_id);
            }
        }
        answers
    }

    fn command(&mut self, id: u32, message: &[u8], answers: &mut Vec<(u64, String)>) {
        let command = Command::parse(message).unwrap_or_else(|r| panic!("{r:?}: {}", String::from_utf8_lossy(message)));
        if let Some(known) = self.responses.get(&id) {
            let text = if self.script.vary_repeats { format!("{known}X-a: 1\r\n") } else { known.clone() };
            answers.push((1, text));
            return;
        }
        self.executed += 1;
        self.most_outstanding = self.most_outstanding.max(self.connections.values().filter(|up| !up.is_empty()).count());
        for (low, high) in command.confirmed() {
            assert!(self.confirmed.iter().all(|(l, h)| high < *l || *h < low), "confirmed twice");
            assert!((low..=high).all(|id| self.responses.contains_key(&id)), "confirmed without a response");
            self.confirmed.push((low, high));
        }
        let request = command.get(Code::X).map(|x| String::from_utf8(x.to_vec()).unwrap());
        let name = String::from_utf8(command.endpoint.local.to_vec()).unwrap();
        let identifier = |id: Result<Option<HexId>, _>| id.unwrap().unwrap().to_string();
        let full = name.clone();
        let mut slow = false;
        let body = match command.verb {
            Verb::Rqnt | Verb::Epcf => format!("200 {id} OK\r\n"),
            Verb::Crcx if self.script.refuse.is_some() => {
                self.created_tried += 1;
                format!("{} {id} no\r\n", self.script.refuse.unwrap())
            }
            Verb::Crcx => {
                self.created += 1;
                self.created_tried += 1;
                self.notifies.insert(name.clone(), self.script.notifies);
                slow = self.script.slow_every > 0 && self.created.is_multiple_of(self.script.slow_every);
                let connection = if self.script.same_identifier { "AB".into() } else { format!("{:08X}", self.created) };
                self.calls.insert(connection.clone(), identifier(command.call()));
                let up = self.connections.entry(name).or_default();
                up.push(connection.clone());
                self.largest = self.largest.max(up.len());
                let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
                let text = format!("{id} OK\r\nI: {connection}\r\n");
                if slow {
                    answers.push((1, format!("100 {text}\r\n{sdp}")));
                    format!("200 {text}K:\r\n\r\n{sdp}")
                } else {
                    format!("200 {text}\r\n{sdp}")
                }
            }
            Verb::Mdcx => {
                let connection = identifier(command.connection());
                let up = self.connections.get(&name).is_some_and(|up| up.contains(&connection));
                if up { format!("200 {id} OK\r\n") } else { format!("515 {id} unknown\r\n") }
            }
            Verb::Dlcx if command.get(Code::I).is_some() => {
                let connection = identifier(command.connection());
                let up = self.connections.entry(name).or_default();
                if up.contains(&connection) {
                    if !self.script.keep_connections {
                        up.retain(|c| *c != connection);
                    }
                    let parameters = if self.script.no_parameters { "" } else { "P: PS=1, OS=2, PR=3, OR=4, PL=0, JI=1, LA=1\r\n" };
                    format!("250 {id} OK\r\n{parameters}")
                } else {
                    format!("515 {id} unknown\r\n")
                }
            }
            Verb::Dlcx if self.script.busy_clearing > 0 && name.ends_with('*') => {
                self.script.busy_clearing -= 1;
                format!("400 {id} busy\r\n")
            }
            Verb::Dlcx => {
                let all = name.strip_suffix('*').map(str::to_string);
                self.connections.retain(|known, _| match &all {
                    Some(prefix) => !known.starts_with(prefix.as_str()),
                    None => *known != name,
                });
                format!("250 {id} OK\r\n")
            }
            Verb::Auep => format!("200 {id} OK\r\nI: {}\r\n", self.connections.get(&name).map(|c| c.join(", ")).unwrap_or_default()),
            Verb::Aucx => format!("200 {id} OK\r\nC: {}\r\nM: sendrecv\r\n", self.calls[&identifier(command.connection())]),
            other => panic!("{other:?}"),
        };
        self.responses.insert(id, body.clone());
        answers.push((if slow { 1000 } else { 1 }, body));
        if let (Some(x), Some(left)) = (request, self.notifies.get_mut(&full).filter(|left| **left > 0)) {
            *left -= 1;
            self.next_notify += 1;
            let notify = format!("NTFY {} {full}@gw MGCP 1.0\r\nX: {x}\r\nO: D/1\r\n", self.next_notify);
            answers.push((3, notify));
        }
    }
}
