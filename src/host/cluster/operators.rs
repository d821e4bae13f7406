//! What operators ask of the central node, and what it does for them.

use super::central::Process;
use super::view::{self, ClusterView, Cursor, NodeRow, OffenderRow, Page, QuotaRow, Which};
use crate::config::{self, Config};
use crate::host::clock::Clock;
use crate::host::control::lists::pick;
use crate::host::control::protocol::{CacOrder, Failure, FailureKind, GatewayView, Request, What};
use crate::host::control::server::Answers;
use crate::host::control::socket;
use crate::host::control::view::{Body, ChangeRow, DenialRow, Reload};
use crate::host::transport::Waker;
use crate::proto::base::Time;
use crate::proto::cac::central::{Event, Offender, Reach, Refused, Who};
use crate::proto::cac::message::LOAD_MAX;
use crate::proto::cac::{Amount, ScId, ScopeId};
use crossbeam::channel::{Sender, bounded};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long the central node may take to answer an operator.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Offenders shown, of those that are counted.
const OFFENDERS_SHOWN: usize = 20;

/// What is wanted of the central node's thread, and where the answer goes.
pub(super) enum Order {
    /// A request.
    Request(Request, Sender<Result<Body, Failure>>),
    /// Some of the calls.
    Page(Which, Option<Cursor>, Sender<Page>),
}

/// Where operators come in.
pub(super) struct Desk {
    orders: Sender<Order>,
    waker: Waker,
    clock: Clock,
    started: Time,
    owner: u32,
    listen: String,
}

impl Desk {
    pub fn new(orders: Sender<Order>, waker: Waker, clock: Clock, listen: String) -> Desk {
        Desk { orders, waker, clock, started: clock.now(), owner: socket::user(), listen }
    }

    fn order<A>(&self, order: impl FnOnce(Sender<A>) -> Order) -> Result<A, Failure> {
        let (reply, answer) = bounded(1);
        let taken = self.orders.try_send(order(reply)).is_ok();
        self.waker.wake();
        let silent = || Failure::new(FailureKind::Silent, "the central node does not answer");
        if taken { answer.recv_timeout(ANSWER_WITHIN).map_err(|_| silent()) } else { Err(silent()) }
    }
}

impl Answers for Desk {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn owner(&self) -> u32 {
        self.owner
    }

    fn view(&self) -> GatewayView {
        GatewayView {
            domain: format!("central node {}", self.listen),
            version: env!("CARGO_PKG_VERSION").into(),
            simulated: false,
            mixed: false,
            uptime_s: self.clock.now().since(self.started).as_secs(),
        }
    }

    fn answer(&self, request: Request, _silent: &mut Vec<u8>) -> Result<Body, Failure> {
        let is_call = |name: &Option<String>| name.as_deref().and_then(view::guid).is_some();
        match request {
            // Page by page, as calls wait meanwhile; those of other nodes than `name` says are not looked at.
            Request::Show { what, name, state } if what == What::Ccbs || what == What::Cac && is_call(&name) => {
                let which = Which::of(name.as_deref());
                let page = |after| self.order(|reply| Order::Page(which, after, reply));
                view::list(name.as_deref(), state.as_deref(), page).map(Body::Ccbs)
            }
            Request::Calls { node, after } => self.order(|reply| Order::Page(Which::Node(ScId(node)), after, reply)).map(Body::Calls),
            request => self.order(|reply| Order::Request(request, reply))?,
        }
    }

    fn trace(&self, _stream: &UnixStream, _request: &Request, _begin: &mut dyn FnMut(String)) -> Result<(), Failure> {
        Err(not_here())
    }
}

fn not_here() -> Failure {
    Failure::new(FailureKind::Refused, "this is the central node of admission: it has `show cac`, `show ccbs`, `cac ...` and `reload`")
}

impl Process {
    /// Does what an operator wants. Who asked may have gone.
    pub(super) fn obey(&mut self, now: Time, order: Order) {
        let (request, reply) = match order {
            Order::Request(request, reply) => (request, reply),
            Order::Page(which, after, reply) => return drop(reply.send(view::page(now, self.central.authority(), which, after))),
        };
        let done = match request {
            Request::Show { what: What::Cac, name, state } => self.view(now, name.as_deref(), state.as_deref()),
            Request::Cac(order) => self.order(now, &order).map(Body::Done),
            Request::Reload { dry_run } => self.reload(dry_run).map(Body::Reload),
            _ => Err(not_here()),
        };
        let _ = reply.send(done);
    }

    fn order(&mut self, now: Time, order: &CacOrder) -> Result<String, Failure> {
        let known = |process: &Process, node: u32| {
            let unknown = || Failure::new(FailureKind::Unknown, format!("there is no node {node}"));
            process.central.nodes().any(|view| view.sc == ScId(node)).then_some(ScId(node)).ok_or_else(unknown)
        };
        match *order {
            CacOrder::Drain { node, off } => {
                let sc = known(self, node)?;
                self.step(now, Event::Drain(sc, !off));
                Ok(format!("node {node} gets {} new calls", if off { "its" } else { "no" }))
            }
            CacOrder::Forget { node } => {
                let sc = known(self, node)?;
                if !self.central.nodes().any(|view| view.sc == sc && matches!(view.reach, Reach::Lost(_))) {
                    let alive = format!("node {node} is connected, and its calls are up: `cac drain {node}` keeps new ones from it");
                    return Err(Failure::new(FailureKind::Refused, alive));
                }
                let calls = self.central.authority().ledger().count_of(sc);
                self.step(now, Event::Forget(sc));
                Ok(format!("node {node} is forgotten: {calls} calls no longer count"))
            }
            CacOrder::Resync { node: Some(node) } => {
                let sc = known(self, node)?;
                self.step(now, Event::Resync(Some(sc)));
                Ok(format!("node {node} tells all again"))
            }
            CacOrder::Release { .. } => {
                let message = "this is the central node: calls of the last life are released at their gateway";
                Err(Failure::new(FailureKind::Refused, message))
            }
            CacOrder::Resync { node: None } => {
                self.step(now, Event::Resync(None));
                Ok("every node tells all again".into())
            }
            CacOrder::DryRun { off } => {
                self.central.set_dry_run(!off);
                Ok(if off { "limits refuse again" } else { "limits count what they would refuse, and refuse nothing" }.into())
            }
        }
    }

    fn view(&self, now: Time, name: Option<&str>, state: Option<&str>) -> Result<Body, Failure> {
        let (central, counts) = (&self.central, self.central.counts());
        let tree = central.authority().tree();
        // A number is that of a node, unless a scope is called so.
        let is_scope = |name: &str| tree.iter().any(|(_, scope)| scope.name == name);
        let only = name.filter(|name| !is_scope(name)).and_then(|name| name.parse().ok()).map(ScId);
        let name = name.filter(|_| only.is_none());
        let is_meant = |sc: ScId| only.is_none_or(|only| only == sc);
        if let Some(ScId(node)) = only.filter(|only| !central.nodes().any(|view| view.sc == *only)) {
            return Err(Failure::new(FailureKind::Unknown, format!("there is no node {node}, and no scope of that name")));
        }
        let nodes = central.nodes().filter(|view| is_meant(view.sc)).map(|view| {
            let (state, lost_s) = match view.reach {
                Reach::InSync => ("in-sync", None),
                Reach::Syncing => ("syncing", None),
                Reach::Lost(since) => ("lost", Some(now.since(since).as_secs())),
            };
            NodeRow {
                node: view.sc.0,
                state: state.into(),
                lost_s,
                incarnation: view.incarnation,
                session: view.session,
                calls: view.calls,
                drained: view.drained,
                lease_ms: Some(view.lease_over.since(now).as_millis() as u64).filter(|left| *left > 0),
                quotas: central.quotas_of(view.sc).map(|(scope, part)| QuotaRow::of(tree, scope, &part)).collect(),
            }
        });
        Ok(Body::Cluster(Box::new(ClusterView {
            epoch: central.epoch(),
            mode: match (central.is_active(), central.leads()) {
                (true, _) => "active",
                (false, true) => "learning",
                (false, false) => "standby",
            }
            .into(),
            etcd: self.pair.as_ref().map(|pair| if pair.store_answers() { "answers" } else { "silent" }.into()),
            dry_run: central.is_dry_run(),
            calls: central.authority().ledger().len(),
            load: central.load(),
            busy: counts.busy,
            granted: counts.granted,
            denied: counts.denied,
            learning: counts.learning,
            facts: counts.facts,
            stale: counts.stale,
            unreadable: self.unreadable,
            differed: counts.differed,
            refused: counts.refused,
            overrun: self.overrun,
            strangers: self.doorman.refused(),
            scopes: pick(view::scopes(central.authority()), name, state)?,
            nodes: nodes.collect(),
            denials: central.denials().filter(|refused| is_meant(refused.sc)).map(|refused| self.denial(now, refused)).rev().collect(),
            offenders: central
                .offenders()
                .iter()
                .filter(|(who, _)| is_meant(who.sc))
                .take(OFFENDERS_SHOWN)
                .map(|(who, offender)| self.offender(now, *who, offender))
                .collect(),
            alarms: self.alarms(now),
            events: self.event_lines(now),
        })))
    }

    fn offender(&self, now: Time, who: Who, offender: &Offender) -> OffenderRow {
        let scope = self.central.authority().tree().get(who.scope);
        OffenderRow {
            node: who.sc.0,
            scope: scope.map_or(String::new(), |scope| scope.name.clone()),
            refused_in: offender.refused[0],
            refused_out: offender.refused[1],
            first_s: now.since(offender.first).as_secs(),
            last_s: now.since(offender.last).as_secs(),
        }
    }

    /// What is wrong now, in words (R45).
    fn alarms(&self, now: Time) -> Vec<String> {
        let (central, mut alarms) = (&self.central, Vec::new());
        if self.pair.as_ref().is_some_and(|pair| !pair.store_answers()) {
            alarms.push("etcd is silent".to_owned());
        }
        if central.leads() && !central.is_active() {
            alarms.push(format!("learning: {} gateways have not told what is up", central.missing()));
        }
        if central.load() >= LOAD_MAX {
            alarms.push("too much to do: gateways decide alone".into());
        }
        for view in central.nodes() {
            if let Reach::Lost(since) = view.reach {
                let (node, seconds) = (view.sc.0, now.since(since).as_secs());
                alarms.push(format!("node {node} is lost since {seconds} s, {} of its calls count on", view.calls));
            }
        }
        let authority = central.authority();
        for (id, scope) in authority.tree().iter() {
            let (calls, limit) = (authority.ledger().used(id).get(Amount::Calls), authority.limits(id).calls);
            if calls > limit {
                alarms.push(format!("scope {}: {calls} calls, {} above the limit", scope.name, calls - limit));
            } else if calls == limit {
                alarms.push(format!("scope {}: all {limit} calls are up", scope.name));
            }
        }
        alarms
    }

    fn denial(&self, now: Time, refused: &Refused) -> DenialRow {
        let tree = self.central.authority().tree();
        let name = |scope: ScopeId| tree.get(scope).map_or(String::new(), |scope| scope.name.clone());
        DenialRow {
            age_s: now.since(refused.at).as_secs(),
            endpoint: format!("node {}", refused.sc.0),
            call: refused.guid.to_string(),
            direction: refused.charge.direction.name().into(),
            class: refused.charge.class.name().into(),
            kbits: refused.charge.kbits,
            scope: name(refused.denial.scope),
            why: refused.denial.cause.text().into(),
            used: refused.denial.used,
            limit: refused.denial.limit,
        }
    }

    /// Takes over what changed in the file: limits only, the rest needs a restart (R21).
    pub(super) fn reload(&mut self, dry_run: bool) -> Result<Reload, Failure> {
        let refused = |message: String| Failure::new(FailureKind::Refused, message);
        let path = self.path.as_deref().ok_or_else(|| refused("the central node has no file to read again".into()))?;
        let new = Config::load(path).map_err(|errors| refused(errors.to_string()))?;
        let changes = config::diff(&self.config, &new);
        let rows = changes.iter().map(|change| ChangeRow {
            key: change.key.clone(),
            old: change.old.clone(),
            new: change.new.clone(),
            needs_restart: !change.reloadable,
        });
        let reload = Reload { done: !dry_run, changes: rows.collect(), notes: Vec::new() };
        if dry_run {
            return Ok(reload);
        }
        let fixed: Vec<_> = changes.iter().filter(|change| !change.reloadable).map(ToString::to_string).collect();
        if !fixed.is_empty() {
            return Err(refused(format!("nothing was changed, for this needs a restart:\n{}", fixed.join("\n"))));
        }
        self.central.set_giving(&config::giving(&new));
        self.central.set_limits(config::limits(&new));
        // Gateways are told of other quotas now, not with the next message.
        self.step(self.clock.now(), Event::Time);
        self.config = new;
        Ok(reload)
    }
}
