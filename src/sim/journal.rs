//! What goes in and out at the gateway's boundary, and what must hold of it whoever drives the agents.
//!
//! A command takes effect at some time between its first arrival and the first sending of its final. From these intervals follows what
//! certainly exists and what certainly does not, however commands overlap.

use super::notified::Notified;
use super::reply::Reply;
use super::told::Told;
use crate::proto::base::{CoreId, EndpointIndex, Time};
use crate::proto::codec::mgcp::{CommandLine, Verb};
use crate::proto::codec::peek::{self, Peek};
use crate::proto::plan::{Plan, Settings};
use crate::proto::trunk::Selection;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The time on the way to a core and back, generously.
const WAY: Duration = Duration::from_millis(15);

/// One command as the journal knows it.
struct Transaction {
    verb: Option<Verb>,
    /// Local name as written.
    local: String,
    text: String,
    /// The event in which it came first.
    received: u64,
    /// The event in which its final was sent first, and the final.
    ended: Option<(u64, Vec<u8>)>,
    code: u16,
    provisional: bool,
    /// The datagram it came in first, and its place among the commands there.
    datagram: (u64, usize),
}

/// What a DeleteConnection names.
struct Deletion {
    command: (IpAddr, u32),
    /// Its endpoints when they are many.
    selection: Option<Selection>,
    call: Option<String>,
    connection: Option<String>,
}

/// A connection that a final has named.
#[derive(Clone, Debug)]
struct Created {
    endpoint: EndpointIndex,
    call: String,
    received: u64,
    ended: u64,
}

/// The journal. See the module's page.
pub struct Journal {
    plan: Arc<Plan>,
    settings: Arc<Settings>,
    /// Counts what is noted.
    event: u64,
    transactions: HashMap<(IpAddr, u32), Transaction>,
    /// Commands that were done.
    pub(super) done: u64,
    /// Commands by the datagram they came in first.
    datagrams: HashMap<u64, Vec<(IpAddr, u32)>>,
    created: BTreeMap<String, Created>,
    /// The connections of each endpoint.
    at: HashMap<EndpointIndex, Vec<String>>,
    /// Deletions of one endpoint, and of many.
    deletions: HashMap<EndpointIndex, Vec<Deletion>>,
    wide_deletions: Vec<Deletion>,
    own: HashSet<u32>,
    /// Connections the gateway said it deleted.
    lost: HashSet<String>,
    /// When an operator cleared an endpoint.
    freed: HashMap<EndpointIndex, Vec<u64>>,
    /// No RestartInProgress was answered yet.
    restarting: bool,
    own_text: HashMap<u32, Vec<u8>>,
    /// What was said of service states.
    told: Told,
    /// What was said of the lines' events.
    pub(super) notified: Notified,
    /// Identifiers of requests for many endpoints that were refused: they must be in place nowhere.
    refused: HashSet<String>,
    /// Whether messages of a datagram must be answered in order: not when some are dropped on the way.
    pub in_order: bool,
    /// The shortest vote deadline so far.
    vote_min: Duration,
}

impl Journal {
    /// Nothing noted yet.
    pub fn new(plan: Arc<Plan>, settings: Arc<Settings>) -> Journal {
        Journal {
            told: Told::new(plan.clone()),
            vote_min: settings.timers.vote,
            plan,
            settings,
            event: 0,
            transactions: HashMap::new(),
            datagrams: HashMap::new(),
            created: BTreeMap::new(),
            at: HashMap::new(),
            deletions: HashMap::new(),
            wide_deletions: Vec::new(),
            own: HashSet::new(),
            lost: HashSet::new(),
            freed: HashMap::new(),
            done: 0,
            restarting: true,
            own_text: HashMap::new(),
            notified: Notified::default(),
            refused: HashSet::new(),
            in_order: true,
        }
    }

    /// New settings; names are understood by them.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        self.vote_min = self.vote_min.min(settings.timers.vote);
        self.settings = settings;
    }

    /// A core stands still from `since` to `until`. A RestartInProgress waits half of the vote deadline for its owners.
    pub fn stands_still(&mut self, core: CoreId, since: Time, until: Time) {
        if until.since(since) + WAY >= self.vote_min / 2 {
            self.told.stands_still(core, until);
        }
    }

    /// The gateway takes in a datagram.
    pub fn received(&mut self, (from, local): (SocketAddr, u8), bytes: &[u8]) {
        // It knows MGCP only.
        if self.plan.gateway_at(local).is_some() {
            return;
        }
        self.event += 1;
        if self.settings.agent_at(from.ip()).is_none() {
            // A stranger's: nothing comes of it.
            return;
        }
        let datagram = self.event;
        let mut fresh = Vec::new();
        let mut all_fresh = true;
        for (range, peeked) in peek::split(bytes) {
            if let Peek::Response { code: 200..=299, id } = peeked {
                self.restarting &= !self.own.contains(&id);
                self.told.confirmed(id);
            }
            if let Peek::Response { code: 200.., id } = peeked {
                self.notified.answered(id);
            }
            let Peek::Command(CommandLine { verb, id, endpoint, .. }) = peeked else { continue };
            let key = (from.ip(), id);
            if let Some(known) = self.transactions.get(&key) {
                // A repeat by itself may be answered before its turn in the first datagram comes.
                self.datagrams.remove(&known.datagram.0);
                all_fresh = false;
                continue;
            }
            let name = String::from_utf8_lossy(endpoint).into_owned();
            let local = name.rsplit_once('@').map_or(name.as_str(), |(local, _)| local).to_owned();
            let text = String::from_utf8_lossy(&bytes[range]).into_owned();
            let place = (datagram, fresh.len());
            fresh.push(key);
            let transaction =
                Transaction { verb, local, text, received: datagram, ended: None, code: 0, provisional: false, datagram: place };
            if verb == Some(Verb::Dlcx) {
                self.note_deletion(key, &transaction);
            }
            self.transactions.insert(key, transaction);
        }
        if all_fresh && fresh.len() > 1 {
            self.datagrams.insert(datagram, fresh);
        }
    }

    /// Core `core` sends a datagram at `at`.
    ///
    /// # Panics
    /// When it breaks a rule.
    pub fn sent(&mut self, core: CoreId, at: Time, (to, local): (SocketAddr, u8), bytes: &[u8]) {
        if self.plan.gateway_at(local).is_some() {
            return;
        }
        self.event += 1;
        let agent = self.settings.agent_at(to.ip()).unwrap_or_else(|| panic!("a datagram to {to}, who is no agent"));
        let largest = self.settings.agent(agent).map_or(4000, |agent| agent.max_response);
        let forms = self.settings.agent(agent).map_or_else(Default::default, |agent| agent.forms);
        let replies = Reply::all(bytes);
        self.check_restart_first(to, &replies);
        for (place, reply) in replies.iter().enumerate() {
            assert!(reply.bytes.len() <= largest, "a message of {} bytes, the agent takes {largest}", reply.bytes.len());
            match reply.code {
                None => {
                    let endpoint = reply.line.split([' ', '@']).nth(2).and_then(|name| self.plan.topology.lookup(name.as_bytes()));
                    let fresh = !self.own.contains(&reply.id);
                    if let Some(endpoint) = endpoint.filter(|_| fresh && !reply.line.starts_with("RSIP ")) {
                        self.told.says(at, endpoint, &replies[..place], reply);
                    }
                    if let Some(endpoint) = endpoint.filter(|_| fresh && reply.line.starts_with("NTFY ")) {
                        self.notified.sent(at, endpoint, &replies[..place], reply);
                    }
                    self.own_command(core, replies.len() > 1, reply);
                    self.told.sent(self.event, at, to, forms, reply);
                }
                Some(0) => {}
                Some(code) => {
                    self.check_told(core, at, to, code, reply, &replies[..place]);
                    self.response(to, code, reply);
                }
            }
        }
    }

    /// G-RST-03: nothing but audits, 405, 501 and 520 is seen of an endpoint before its restart.
    fn check_restart_first(&self, to: SocketAddr, replies: &[Reply]) {
        let Some(first) = replies.first().filter(|_| self.restarting) else { return };
        let Some(code) = first.code.filter(|code| !matches!(code, 0 | 405 | 501 | 520)) else { return };
        let Some(transaction) = self.transactions.get(&(to.ip(), first.id)) else { return };
        let audit = matches!(transaction.verb, None | Some(Verb::Auep | Verb::Aucx));
        let plain = self.plan.topology.lookup(transaction.local.as_bytes()).is_some();
        assert!(audit || !plain || code == 500, "{} before the restart, to {}", first.line, transaction.text);
    }

    /// A final against what was said of the service of its endpoint, also a repeat; for many endpoints the first success.
    fn check_told(&self, core: CoreId, at: Time, to: SocketAddr, code: u16, reply: &Reply, front: &[Reply]) {
        let Some(transaction) = self.transactions.get(&(to.ip(), reply.id)).filter(|_| code >= 200) else { return };
        if matches!(transaction.verb, None | Some(Verb::Auep | Verb::Aucx)) || code == 500 {
            return;
        }
        let (topology, text) = (&self.plan.topology, &transaction.text);
        let executed = transaction.ended.is_none().then_some(transaction.received);
        if let Some(endpoint) = topology.lookup(transaction.local.as_bytes()) {
            return self.told.answered(at, endpoint, code, executed, front, text);
        }
        if code >= 400 {
            return;
        }
        let chosen = reply.get("Z").and_then(|name| topology.lookup(name.split('@').next()?.as_bytes()));
        let selection = match chosen {
            Some(endpoint) => topology.selection_of(endpoint),
            None => topology.resolve(transaction.local.as_bytes(), true).ok(),
        };
        if let Some(selection) = selection {
            self.told.answered_for_many(at, core, selection, front, text);
        }
    }

    /// G-TRX-01, G-TRX-07, G-SHD-02: own ids are unique and tell their core; a repeat is the same bytes.
    fn own_command(&mut self, core: CoreId, in_front: bool, command: &Reply) {
        let id = command.id;
        assert!((1..=999_999_999).contains(&id), "own transaction id {id}");
        let sender = self.plan.sender(id);
        assert!(in_front || sender == core, "core {core:?} sent id {id}, which belongs to {sender:?}");
        let same = self.own_text.entry(id).or_insert_with(|| command.bytes.clone());
        assert_eq!(String::from_utf8_lossy(same), String::from_utf8_lossy(&command.bytes), "own command {id} changed");
        self.own.insert(id);
        if command.line.starts_with("DLCX")
            && let Some(connection) = command.get("I")
        {
            self.lost.insert(connection.to_owned());
        }
    }

    fn response(&mut self, to: SocketAddr, code: u16, reply: &Reply) {
        let key = (to.ip(), reply.id);
        let event = self.event;
        let transaction = self.transactions.get_mut(&key).unwrap_or_else(|| panic!("answers a command nobody sent: {}", reply.line));
        if code < 200 {
            // G-PRV-06.
            assert!(transaction.ended.is_none(), "{} after the final of {}", reply.line, transaction.text);
            transaction.provisional = true;
            return;
        }
        if let Some((_, first)) = &transaction.ended {
            // G-TRX-03: the stored response, byte for byte.
            let (first, again) = (String::from_utf8_lossy(first), String::from_utf8_lossy(&reply.bytes));
            assert_eq!(first, again, "two finals for {}", transaction.text);
            return;
        }
        let datagram = transaction.datagram;
        if code != 409 {
            // G-ACK-06.
            let (asks, provisional) = (reply.get("K").is_some(), transaction.provisional);
            assert_eq!(asks, provisional, "empty K: exactly when a provisional went before: {} for {}", reply.line, transaction.text);
            transaction.ended = Some((event, reply.bytes.clone()));
        }
        transaction.code = code;
        self.done += u64::from(code < 400);
        // What is refused for now (405, 409) may be asked for again under the same identifier; 407 ends what may have begun.
        let is_request = transaction.verb == Some(Verb::Rqnt) && transaction.local.ends_with('*');
        if is_request && code >= 400 && !matches!(code, 405 | 407 | 409) {
            let parameters = Reply::parameters_of(&transaction.text);
            self.refused.extend(parameters.into_iter().filter(|(name, _)| name == "X").map(|(_, value)| value.to_ascii_uppercase()));
        }
        self.check_order(key, datagram);
        if code == 200 && self.transactions.get(&key).is_some_and(|t| t.verb == Some(Verb::Crcx)) {
            self.note_created(key, reply);
        }
    }

    /// G-PIG-02, G-SHD-05.
    fn check_order(&self, key: (IpAddr, u32), (datagram, place): (u64, usize)) {
        let Some(commands) = self.datagrams.get(&datagram).filter(|_| self.in_order) else { return };
        for before in commands.iter().take(place) {
            let done = self.transactions.get(before).is_some_and(|t| t.code != 0);
            assert!(done, "{key:?} was answered before {before:?}, which stands before it in the datagram");
        }
    }

    fn note_created(&mut self, key: (IpAddr, u32), reply: &Reply) {
        let Some(transaction) = self.transactions.get(&key) else { return };
        let text = Reply::parameters_of(&transaction.text);
        let find = |name: &str| text.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
        let (received, ended) = (transaction.received, self.event);
        let call = find("C").unwrap_or_default();
        let place = |name: &str| {
            let local = name.rsplit_once('@').map_or(name, |(local, _)| local);
            self.plan.topology.lookup(local.as_bytes()).unwrap_or_else(|| panic!("{name} is no endpoint: {}", reply.line))
        };
        let any_of = transaction.local.contains('$');
        // G-CRX-04: Z only, and always, for an any-of name.
        assert_eq!(reply.get("Z").is_some(), any_of, "Z: in the answer to {}", transaction.text);
        let endpoint = match reply.get("Z") {
            Some(name) => {
                let ranges = self.settings.agents.iter().any(|agent| agent.ranges);
                let selection = self.plan.topology.resolve(transaction.local.as_bytes(), ranges).expect("it was accepted");
                let chosen = place(name);
                assert!(selection.contains(&self.plan.topology, chosen), "{name} is not among {}", transaction.local);
                self.check_was_free(chosen, received, &transaction.text);
                chosen
            }
            None => place(&transaction.local),
        };
        let mut made = vec![(reply.get("I").unwrap_or_else(|| panic!("no I: {}", reply.line)).to_owned(), endpoint)];
        if let Some(second) = find("Z2") {
            let other = place(reply.get("Z2").unwrap_or(&second));
            assert_eq!(reply.get("Z2").is_some(), second.contains('$'), "Z2: in the answer to {}", transaction.text);
            made.push((reply.get("I2").unwrap_or_else(|| panic!("no I2: {}", reply.line)).to_owned(), other));
        }
        for (id, endpoint) in made {
            let created = Created { endpoint, call: call.clone(), received, ended };
            self.at.entry(endpoint).or_default().push(id.clone());
            assert!(self.created.insert(id.clone(), created).is_none(), "connection {id} was created twice");
        }
    }

    /// G-CRX-04, G-SHD-04: an endpoint chosen for `$` has no connection.
    fn check_was_free(&self, endpoint: EndpointIndex, asked: u64, text: &str) {
        let there = self.at.get(&endpoint).into_iter().flatten().filter_map(|id| Some((id, self.created.get(id)?)));
        for (id, other) in there.filter(|(_, other)| other.ended <= asked) {
            let gone = self.lost.contains(id) || self.may_be_freed(other) || self.deletions_of(id, other).next().is_some();
            assert!(gone, "an endpoint with connection {id} was chosen for {text}");
        }
    }

    fn note_deletion(&mut self, command: (IpAddr, u32), transaction: &Transaction) {
        let text = Reply::parameters_of(&transaction.text);
        let find = |name: &str| text.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_ascii_uppercase());
        let topology = &self.plan.topology;
        let one = topology.lookup(transaction.local.as_bytes());
        let selection = topology.resolve(transaction.local.as_bytes(), false).ok().filter(|_| one.is_none());
        let deletion = Deletion { command, selection, call: find("C"), connection: find("I") };
        match one {
            Some(endpoint) => self.deletions.entry(endpoint).or_default().push(deletion),
            None => self.wide_deletions.push(deletion),
        }
    }

    /// DeleteConnection commands that name a connection and were not refused, answered or not.
    fn deletions_of(&self, id: &str, created: &Created) -> impl Iterator<Item = &Transaction> {
        let topology = &self.plan.topology;
        let wide = self.wide_deletions.iter().filter(|d| d.selection.is_some_and(|all| all.contains(topology, created.endpoint)));
        let named = self.deletions.get(&created.endpoint).into_iter().flatten().chain(wide).filter(move |deletion| {
            deletion.call.as_ref().is_none_or(|call| call.eq_ignore_ascii_case(&created.call))
                && deletion.connection.as_ref().is_none_or(|named| named.eq_ignore_ascii_case(id))
        });
        let commands = named.filter_map(|deletion| self.transactions.get(&deletion.command));
        commands.filter(|command| matches!(command.code, 0 | 200..=299))
    }

    /// What may and what must be connected now that all is quiet, against what is.
    ///
    /// # Panics
    /// When a connection nobody was told of is there, one that was deleted, or one is missing.
    pub fn check_connections(&self, present: &[(String, EndpointIndex)]) {
        let present: BTreeMap<&str, EndpointIndex> = present.iter().map(|(id, endpoint)| (id.as_str(), *endpoint)).collect();
        for (&id, &endpoint) in &present {
            let created = self.created.get(id).unwrap_or_else(|| panic!("connection {id} on {endpoint:?} was told to nobody"));
            assert_eq!(created.endpoint, endpoint, "connection {id} is on another endpoint");
        }
        for (id, created) in &self.created {
            let covering = self.deletions_of(id, created).filter(|deletion| deletion.ended.is_some());
            let (mut must_not, mut may_not) = (None, self.lost.contains(id));
            if may_not {
                assert!(!present.contains_key(id.as_str()), "connection {id} is there though the gateway deleted it");
            }
            may_not |= self.may_be_freed(created);
            for deletion in covering {
                if created.ended <= deletion.received {
                    must_not = Some(&deletion.text);
                }
                may_not |= deletion.ended.as_ref().is_none_or(|&(ended, _)| ended > created.received);
            }
            match (present.contains_key(id.as_str()), must_not) {
                (true, Some(text)) => panic!("connection {id} is still there after {text}"),
                (false, None) if !may_not => panic!("connection {id} of call {} on {:?} is gone", created.call, created.endpoint),
                _ => {}
            }
        }
    }

    /// The final of a command, if one was sent: its code.
    pub fn code(&self, agent: IpAddr, id: u32) -> Option<u16> {
        self.transactions.get(&(agent, id)).map(|t| t.code).filter(|&code| code != 0)
    }

    /// Whether a request for many endpoints was refused at all.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Whether a request for many endpoints with this identifier was refused.
    pub fn is_refused(&self, request: &str) -> bool {
        self.refused.contains(&request.to_ascii_uppercase())
    }

    /// How many commands came in, and how many of our own went out.
    pub fn counts(&self) -> (usize, usize) {
        (self.transactions.len(), self.own.len())
    }

    /// The operator cleared an endpoint: its connections may be gone.
    pub fn freed(&mut self, endpoint: EndpointIndex) {
        self.event += 1;
        self.freed.entry(endpoint).or_default().push(self.event);
    }

    /// Whether an operator may have taken a connection away.
    fn may_be_freed(&self, created: &Created) -> bool {
        self.freed.get(&created.endpoint).is_some_and(|events| events.iter().any(|&event| event > created.received))
    }

    /// Commands that have no final yet.
    pub fn unanswered(&self) -> usize {
        self.transactions.values().filter(|t| t.code == 0).count()
    }
}

impl Reply {
    /// The parameters of a command as an agent wrote it.
    fn parameters_of(text: &str) -> Vec<(String, String)> {
        let lines = text.lines().skip(1).take_while(|line| !line.trim().is_empty());
        let parameter = |line: &str| line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        lines.filter_map(parameter).collect()
    }
}
