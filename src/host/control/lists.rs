//! `show`: asks the cores and makes rows of what they say.

use super::names::{self, endpoint_name, facility_name};
use super::protocol::{Failure, FailureKind, What};
use super::view::{
    AgentRow, Body, ConnectionRow, CoreLoad, CoreRow, CounterRow, Counters, EndpointRow, EventsRow, HistoryRow, InteropRow, List, OwnRow,
    Quantiles, Row, SpanRow, SpanUsage, TimesRow, Transactions,
};
use super::{Gateway, lead};
use crate::config::{self, Sources};
use crate::host::inside::{Inside, Part};
use crate::proto::base::counters::RESPONSE_CODES;
use crate::proto::base::{CoreId, Counter, EndpointIndex};
use crate::proto::core::{
    Answer, Ask, ConnectionView, EndpointView, FacilitiesView, OwnCommand, PeerView, SpanView, StateFilter, Tally, Work,
};
use crate::proto::endpoint::{Announcement, Law, Remote};
use crate::proto::mgcp::event::{EventsView, State};
use crate::proto::plan::AgentSettings;
use crate::proto::plan::Plan;
use crate::proto::restart::{self, Admin};
use crate::proto::transaction::round_trip::loss_ppm;
use crate::proto::trunk::{Facility, FacilityKind, Selection, SpanIndex};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

impl Gateway {
    /// The list of `what`, or one endpoint.
    pub(super) fn show(&self, what: What, name: Option<&str>, state: Option<&str>, silent: &mut Vec<u8>) -> Result<Body, Failure> {
        if let Some(pattern) = name {
            self.check_pattern(what, pattern)?;
        }
        Ok(match what {
            What::Cores => Body::Cores(pick(self.core_rows(silent), name, state)?),
            What::Spans => Body::Spans(pick(self.span_rows(silent), name, state)?),
            What::Span => Body::Span(Box::new(self.span_page(name, silent)?)),
            What::Alarms => {
                let now = self.clock.now();
                Body::Alarms(pick(self.conditions(silent).iter().map(|condition| condition.row(now)).collect(), name, state)?)
            }
            What::History => Body::History(pick(self.history.rows(), name, state)?),
            What::Endpoints => Body::Endpoints(self.endpoints(name, state, silent)?),
            What::Endpoint => Body::Endpoint(Box::new(self.with_card(self.endpoint(name, silent)?))),
            What::Connections => Body::Connections(self.connections(name, state, silent)?),
            What::Agents => Body::Agents(pick(self.agent_rows(silent), name, state)?),
            What::Gateways => Body::Gateways(pick(self.gateway_rows(silent), name, state)?),
            What::Transactions => Body::Transactions(self.transactions(name, state, silent)?),
            What::Cac if name.is_some_and(|name| crate::host::cluster::view::guid(name).is_some()) => Body::Ccbs(self.ccbs(name, state)?),
            What::Cac => Body::Cac(Box::new(self.admission(name, state, silent)?)),
            What::Ccbs => Body::Ccbs(self.ccbs(name, state)?),
            What::Counters => Body::Counters(self.counters(name, state)?),
        })
    }

    /// Refuses a pattern that fits nothing there could be, so that an empty list means that nothing is in that state.
    fn check_pattern(&self, what: What, pattern: &str) -> Result<(), Failure> {
        let (plan, config) = (&self.cores.plan, self.config());
        let fits = |name: &str| names::fits(pattern, name);
        let facility = || plan.topology.facilities().any(|facility| fits(&facility_name(&plan.topology, facility)));
        let core = |name: fn(u8) -> String| self.cores.ports.iter().any(|port| fits(&name(port.core.0)));
        let agent = || config.agents.iter().any(|agent| fits(&agent.name));
        let gateway = || plan.gateways.iter().any(|gateway| fits(&gateway.name));
        let (known, one) = match what {
            What::Cores => (core(|core| core.to_string()), "core"),
            What::Spans => (facility(), "facility"),
            What::Alarms => (facility() || core(|core| format!("core {core}")) || agent() || gateway(), "facility, core, agent or gateway"),
            // Of the past, anything may be.
            What::History => (true, "alarm"),
            What::Agents => (agent(), "agent"),
            What::Gateways => (gateway(), "H.248 gateway"),
            What::Transactions => (agent() || gateway(), "agent or H.248 gateway"),
            What::Counters => {
                let code = || (0..RESPONSE_CODES).any(|code| fits(&code.to_string()));
                let mut counters =
                    Counter::ALL.iter().map(|counter| counter.name()).chain(self.names.counters.all().map(|(name, ..)| name));
                (counters.any(fits) || code(), "counter or return code")
            }
            What::Cac if crate::host::cluster::view::guid(pattern).is_some() => return Ok(()),
            What::Cac => {
                let tree = plan.admission.as_ref().map(|admission| &admission.tree);
                (tree.is_some_and(|tree| tree.iter().any(|(_, scope)| fits(&scope.name))), "scope")
            }
            What::Endpoints | What::Connections => {
                let (_, pattern) = self.wanted(Some(pattern))?;
                let endpoint = |endpoint| fits(&endpoint_name(&plan.topology, endpoint));
                (pattern.is_none() || plan.topology.endpoints().iter().any(endpoint), "endpoint")
            }
            // Which calls there are, the link to the central node knows.
            What::Ccbs => return Ok(()),
            What::Endpoint | What::Span => return Ok(()),
        };
        let none = || Failure::new(FailureKind::Unknown, format!("{pattern}: no {one} has such a name (`*` stands for any text)"));
        known.then_some(()).ok_or_else(none)
    }

    fn core_rows(&self, silent: &mut Vec<u8>) -> Vec<CoreRow> {
        let all: Vec<CoreId> = self.cores.ports.iter().map(|port| port.core).collect();
        let loads = self.core_loads(&all, silent);
        let signs = self.signs().zip(&self.cores.ports).zip(&self.layout.cores);
        let row = |((sign, port), plan): ((super::Sign, &crate::host::cores::CorePort), &config::CorePlan)| {
            let state = match sign.ended {
                true => "ended",
                false if silent.contains(&sign.core.0) => "silent",
                false => "up",
            };
            CoreRow {
                core: sign.core.0.to_string(),
                role: plan.role.word().into(),
                cpu: plan.cpu,
                node: plan.node,
                state: state.into(),
                steering: port.steering.into(),
                beat_age_ms: self.clock.now().since(sign.beat).as_millis() as u64,
                turns: port.pulse.turns.load(Ordering::Relaxed),
                load: loads.iter().find(|(core, _)| *core == sign.core).map(|(_, load)| *load),
                times: times(&port.inside),
            }
        };
        signs.map(row).collect()
    }

    /// What these cores say of themselves.
    pub(super) fn core_loads(&self, cores: &[CoreId], silent: &mut Vec<u8>) -> Vec<(CoreId, CoreLoad)> {
        let load = |(core, answer)| match answer {
            Answer::Core(view) => {
                let sojourn_us = view.sojourn_ns / 1000;
                let (endpoints, connections, waiting, datagrams) = (view.endpoints, view.connections, view.waiting, view.datagrams);
                let (overloaded, draining) = (view.overloaded, view.draining);
                let (used, kept, texts) = view.texts;
                let texts_per_mille = (u64::from(used + kept) * 1000 / u64::from(texts.max(1))) as u32;
                let busy_per_mille = view.busy_per_mille;
                let load = CoreLoad {
                    endpoints,
                    connections,
                    sojourn_us,
                    busy_per_mille,
                    overloaded,
                    draining,
                    waiting,
                    datagrams,
                    texts_per_mille,
                };
                Some((core, load))
            }
            _ => None,
        };
        self.ask(cores, &Ask::Core, silent).into_iter().filter_map(load).collect()
    }

    pub(super) fn span_rows(&self, silent: &mut Vec<u8>) -> Vec<SpanRow> {
        let plan = &self.cores.plan;
        let mut usage: Vec<Option<SpanUsage>> = vec![None; plan.topology.spans().len()];
        for (_, answer) in self.ask_owners(&Ask::Spans, silent) {
            let Answer::Spans(list) = answer else { continue };
            for SpanView { span, in_service, busy, connections, .. } in list {
                if let Some(place) = usage.get_mut(usize::from(span.0)) {
                    *place = Some(SpanUsage { in_service, busy, connections });
                }
            }
        }
        let states = self.states(plan.topology.select_all(), silent);
        let facilities = self.facilities(silent);
        let row = |facility| {
            let usage = match facility {
                Facility::Span(span) => usage.get(usize::from(span.0)).copied().flatten(),
                Facility::T3(t3) => {
                    let spans = plan.topology.t3_spans(t3).map(|span| usage.get(usize::from(span)).copied().flatten());
                    spans.reduce(|a, b| Some(sum(a?, b?))).flatten()
                }
            };
            span_row(plan, facility, usage, &states, facilities.as_ref())
        };
        in_order(plan).into_iter().map(row).collect()
    }

    /// The endpoints a name stands for, or those whose names fit a pattern.
    fn endpoints(&self, name: Option<&str>, state: Option<&str>, silent: &mut Vec<u8>) -> Result<List<EndpointRow>, Failure> {
        let (selection, pattern) = self.wanted(name)?;
        // What the cores can leave out they need not send.
        let known = |state| match state {
            "idle" => Some(StateFilter::Idle),
            "busy" => Some(StateFilter::Busy),
            "out" => Some(StateFilter::Out),
            _ => None,
        };
        let filter = words(state).find_map(known).unwrap_or(StateFilter::All);
        let mut views = Vec::new();
        for (core, answer) in self.ask_owners(&Ask::Endpoints(selection, filter), silent) {
            if let Answer::Endpoints(list) = answer {
                views.extend(list.into_iter().map(|view| (core, view)));
            }
        }
        views.sort_by_key(|(_, view)| view.endpoint);
        let states = self.states(selection, silent);
        let rows = views.iter().map(|(core, view)| self.endpoint_row(*core, view, states.get(&view.endpoint))).collect();
        pick(rows, pattern, state)
    }

    fn with_card(&self, row: EndpointRow) -> EndpointRow {
        let topology = &self.cores.plan.topology;
        let span = topology.span_of(EndpointIndex(row.index));
        let card = span.map(|span| crate::host::card::kind(&self.config(), topology, Facility::Span(span)).to_owned());
        EndpointRow { card, ..row }
    }

    fn endpoint(&self, name: Option<&str>, silent: &mut Vec<u8>) -> Result<EndpointRow, Failure> {
        let plan = &self.cores.plan;
        let name = name.ok_or_else(|| Failure::new(FailureKind::BadRequest, "which endpoint?"))?;
        let endpoint = names::endpoint(plan, name)?;
        let core = plan.owner(endpoint);
        let unanswered = || Failure::new(FailureKind::Silent, format!("core {}, which owns {name}, does not answer", core.0));
        let selection = plan.topology.selection_of(endpoint).ok_or_else(unanswered)?;
        let answer = self.ask(&[core], &Ask::Endpoints(selection, StateFilter::All), silent).pop();
        let Some((core, Answer::Endpoints(views))) = answer else { return Err(unanswered()) };
        let states = self.states(selection, silent);
        views.first().map(|view| self.endpoint_row(core, view, states.get(&endpoint))).ok_or_else(unanswered)
    }

    fn connections(&self, name: Option<&str>, state: Option<&str>, silent: &mut Vec<u8>) -> Result<List<ConnectionRow>, Failure> {
        let (selection, pattern) = self.wanted(name)?;
        let mut views = Vec::new();
        for (_, answer) in self.ask_owners(&Ask::Connections(selection), silent) {
            if let Answer::Connections(list) = answer {
                views.extend(list);
            }
        }
        views.sort_by_key(|view| view.connection.endpoint);
        pick(views.iter().map(|view| connection_row(&self.cores.plan, view)).collect(), pattern, state)
    }

    fn agent_rows(&self, silent: &mut Vec<u8>) -> Vec<AgentRow> {
        let (_, own, peers) = self.own_and_history(silent);
        let (config, now) = (self.config(), self.clock.now());
        // With what the names have for addresses now.
        let settings = (self.settings)(&config, &self.known());
        let announcements = self.facilities(silent).map(|view| view.announcements).unwrap_or_default();
        let row = |(place, (agent, effective)): (usize, (&config::Agent, &AgentSettings))| {
            let peers = || peers.iter().filter_map(|peers| peers.get(place));
            let (sent, repeated) = peers().fold((0u32, 0u32), |(sent, repeated), peer| (sent + peer.sent, repeated + peer.repeated));
            let told = announcements.iter().filter(|(_, to, _)| usize::from(to.0) == place);
            let tally = peers().fold(Tally::default(), |tally, peer| tally.plus(peer.tally));
            let mine = || own.iter().filter(|own| own.agent == agent.name);
            AgentRow {
                name: agent.name.clone(),
                addresses: match &agent.addresses {
                    Sources::Any => vec!["any".into()],
                    Sources::Only(_) => effective.addresses.iter().map(ToString::to_string).collect(),
                },
                notify: effective.notify.iter().map(ToString::to_string).collect(),
                hosts: agent.hosts.iter().map(|host| host.name.clone()).collect(),
                response_ms: peers().filter_map(|peer| peer.response).max().map(|response| response.as_millis() as u64),
                loss_ppm: loss_ppm(sent, repeated),
                rate: peers().filter_map(|peer| peer.rate).min(),
                commands_done: tally.done,
                commands_refused: tally.refused,
                own_done: tally.own_done,
                own_refused: tally.own_refused,
                own_lost: tally.own_lost,
                heard_ms: tally.heard.map(|heard| now.since(heard).as_millis() as u64),
                profile: agent.profile.word().into(),
                interop: interop_row(&agent.interop()),
                duplicates: agent.interop().duplicates.word().into(),
                ranges: agent.ranges,
                unanswered: mine().count() as u32,
                copies_max: mine().map(|own| own.copies).max().unwrap_or(0),
                oldest_ms: mine().filter_map(|own| own.age_ms).max().unwrap_or(0),
                restarts: told.map(|(view, _, port)| lead::restart_row(&self.cores.plan, now, view, *port)).collect(),
            }
        };
        config.agents.iter().zip(&settings.agents).enumerate().map(row).collect()
    }

    fn transactions(&self, name: Option<&str>, state: Option<&str>, silent: &mut Vec<u8>) -> Result<Transactions, Failure> {
        let (cores, mut own, _) = self.own_and_history(silent);
        own.extend(self.gateway_requests(silent));
        own.sort_by_key(|own| std::cmp::Reverse(own.age_ms));
        Ok(Transactions { cores, own: pick(own, name, state)? })
    }

    /// Histories of the cores, commands of ours that are not answered, oldest first, and what each core knows of the agents.
    pub(super) fn own_and_history(&self, silent: &mut Vec<u8>) -> (Vec<HistoryRow>, Vec<OwnRow>, Vec<Vec<PeerView>>) {
        let (mut cores, mut own, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        let answers = self.ask_owners(&Ask::Transactions, silent);
        let (config, now) = (self.config(), self.clock.now());
        for (core, answer) in answers {
            let Answer::Transactions(view) = answer else { continue };
            let stats = view.history;
            cores.push(HistoryRow {
                core: core.0,
                running: stats.running,
                waiting: view.waiting,
                entries: stats.entries,
                entries_max: stats.entries_max,
                entries_limit: stats.entries_limit,
                bytes: stats.bytes,
                bytes_limit: stats.bytes_limit,
                oldest_ms: stats.oldest.map(|oldest| now.since(oldest).as_millis() as u64),
            });
            own.extend(view.own.iter().map(|OwnCommand { outstanding: own, text }| OwnRow {
                core: core.0,
                id: own.id,
                command: text.clone(),
                agent: config.agents.get(usize::from(own.agent.0)).map_or(String::new(), |agent| agent.name.clone()),
                to: own.to.to_string(),
                copies: own.copies,
                age_ms: own.first_sent.map(|sent| now.since(sent).as_millis() as u64),
                provisional: own.provisional,
            }));
            peers.push(view.peers);
        }
        own.sort_by_key(|own| std::cmp::Reverse(own.age_ms));
        (cores, own, peers)
    }

    fn counters(&self, name: Option<&str>, state: Option<&str>) -> Result<Counters, Failure> {
        let ports = &self.cores.ports;
        let row = |name: String, help: &str, by_core: Vec<u64>| {
            let total = by_core.iter().fold(0u64, |total, value| total.wrapping_add(*value));
            CounterRow { name, help: help.into(), total, by_core }
        };
        let counter =
            |counter: &Counter| row(counter.name().into(), counter.help(), ports.iter().map(|port| port.counters.get(*counter)).collect());
        let code = |code: u16| row(code.to_string(), "", ports.iter().map(|port| port.counters.responses(code)).collect());
        let lookup = |(name, help, total): (&str, &str, u64)| CounterRow { total, ..row(name.into(), help, Vec::new()) };
        let counters = Counter::ALL.iter().map(counter).chain(self.names.counters.all().map(lookup)).collect();
        let responses = (0..RESPONSE_CODES as u16).map(code).filter(|row| row.total > 0).collect();
        Ok(Counters {
            cores: ports.iter().map(|port| port.core.0).collect(),
            counters: pick(counters, name, state)?.rows,
            responses: pick(responses, name, state)?.rows,
        })
    }

    fn endpoint_row(&self, core: CoreId, view: &EndpointView, state: Option<&restart::EndpointView>) -> EndpointRow {
        let plan = &self.cores.plan;
        let failure = state.and_then(|state| state.failure).map(|failure| failure.name().to_owned());
        let operational = match (state, &failure) {
            (None, _) => UNKNOWN,
            (_, None) => "up",
            (_, Some(_)) => "down",
        };
        let restart = state.and_then(|state| state.announcement.as_ref());
        EndpointRow {
            name: endpoint_name(&plan.topology, view.endpoint),
            index: view.endpoint.0,
            card: None,
            core: core.0,
            administrative: state.map_or(UNKNOWN, |state| lead::admin_word(state.admin)).into(),
            operational: operational.into(),
            failure,
            in_service: view.service.in_service,
            refusal: (!view.service.in_service).then_some(view.service.refusal),
            method: view.service.method.keyword().into(),
            reason: view.service.reason,
            announcement: match view.announcement {
                _ if view.disconnected => "disconnected".into(),
                Announcement::Waiting => "waiting".into(),
                Announcement::Outstanding(_) => "sent".into(),
                Announcement::Done => "told".into(),
            },
            restart: restart.map(|view| lead::restart_row(plan, self.clock.now(), view, 0)),
            entity: view.entity.clone(),
            request: view.request.clone(),
            line: view.line.map(str::to_owned),
            line_left_ms: view.line_left.map(|left| left.as_millis() as u64),
            events: view.events.as_ref().map(events_row),
            law: match view.law {
                Law::Mu => "mu".into(),
                Law::A => "A".into(),
            },
            connections: view.connections.iter().map(|view| connection_row(plan, view)).collect(),
        }
    }

    /// What endpoints a list is about: those a name stands for, or all, to be held against a pattern.
    fn wanted<'a>(&self, name: Option<&'a str>) -> Result<(Selection, Option<&'a str>), Failure> {
        let plan = &self.cores.plan;
        match name.map(|name| (name, names::select(plan, name))) {
            None => Ok((plan.topology.select_all(), None)),
            Some((_, Ok(selection))) => Ok((selection, None)),
            Some((name, Err(_))) if name.contains('*') => Ok((plan.topology.select_all(), Some(name))),
            Some((_, Err(failure))) => Err(failure),
        }
    }
}

fn events_row(view: &EventsView) -> EventsRow {
    let state = match view.state {
        _ if view.cut_off => "held",
        State::Normal => "detected",
        State::Lockstep | State::Notification => "quarantined",
    };
    EventsRow {
        audit: view.lines.iter().cloned().collect(),
        state: state.into(),
        quarantined: view.quarantined,
        unanswered: view.unanswered,
    }
}

/// The words of a state filter: all of them must hold.
fn words(state: Option<&str>) -> impl Iterator<Item = &str> {
    state.into_iter().flat_map(|words| words.split(',')).map(str::trim)
}

/// The rows with fitting names in the state asked for, or in all of several: `blocked,down`.
pub(in crate::host) fn pick<R: Row>(mut rows: Vec<R>, name: Option<&str>, state: Option<&str>) -> Result<List<R>, Failure> {
    let states = R::states();
    if let Some(state) = words(state).find(|state| !states.contains(state)) {
        let message = format!("{state}: no such state here; there are {}", states.join(", "));
        return Err(Failure::new(FailureKind::Unknown, message));
    }
    rows.retain(|row| name.is_none_or(|pattern| names::fits(pattern, row.name())) && words(state).all(|state| row.is(state)));
    Ok(List::new(rows))
}

/// Each T3 before its T1s, then what stands alone.
fn in_order(plan: &Plan) -> Vec<Facility> {
    let mut order = Vec::new();
    for (place, span) in plan.topology.spans().iter().enumerate() {
        if let Some(t3) = span.t3
            && plan.topology.t3_spans(t3).start == place as u16
        {
            order.push(Facility::T3(t3));
        }
        order.push(Facility::Span(SpanIndex(place as u16)));
    }
    order
}

/// The kinds of work there was on one core.
fn times(inside: &Inside) -> Vec<TimesRow> {
    let quantiles = |work, part| {
        let times = inside.times(work, part);
        let (p50_ns, p99_ns, max_ns) = (times.quantile_ns(0.5), times.quantile_ns(0.99), times.max_ns());
        (times.count() > 0).then(|| Quantiles { count: times.count(), p50_ns, p99_ns, max_ns })
    };
    let row = |work: Work| {
        let [waiting, hop, service] = Part::ALL.map(|part| quantiles(work, part));
        service.is_some().then(|| TimesRow { work: work.name().into(), waiting, hop, service })
    };
    Work::all().filter_map(row).collect()
}

fn sum(a: SpanUsage, b: SpanUsage) -> SpanUsage {
    SpanUsage { in_service: a.in_service + b.in_service, busy: a.busy + b.busy, connections: a.connections + b.connections }
}

fn span_row(
    plan: &Plan,
    facility: Facility,
    usage: Option<SpanUsage>,
    states: &BTreeMap<EndpointIndex, restart::EndpointView>,
    facilities: Option<&FacilitiesView>,
) -> SpanRow {
    let range = plan.topology.endpoints_of(facility);
    let first = EndpointIndex(range.first);
    let (kind, core) = match facility {
        Facility::T3(_) => ("t3", None),
        Facility::Span(span) => match plan.topology.span(span).map(|span| span.kind) {
            Some(FacilityKind::E1) => ("e1", Some(plan.carrier(first).0)),
            _ => ("t1", Some(plan.carrier(first).0)),
        },
    };
    let failed = |which: Facility| facilities.and_then(|view| view.alarms.iter().find(|alarm| alarm.facility == which));
    let above = match facility {
        Facility::Span(span) => plan.topology.span(span).and_then(|span| span.t3).map(Facility::T3),
        Facility::T3(_) => None,
    };
    let failure = above.and_then(failed).or(failed(facility)).map(|alarm| alarm.failure.name().to_owned());
    let operational = match (facilities, &failure) {
        (None, _) => "unknown",
        (_, None) => "up",
        (_, Some(_)) => "down",
    };
    let status = facilities.and_then(|view| view.facilities.iter().find(|(which, _)| *which == facility));
    SpanRow {
        name: facility_name(&plan.topology, facility),
        kind: kind.into(),
        core,
        administrative: administrative(range.iter().map(|endpoint| states.get(&endpoint).map(|state| state.admin))).into(),
        operational: operational.into(),
        failure,
        line_status: status.map_or(0, |(_, word)| *word),
        endpoints: range.count,
        usage,
    }
}

fn interop_row(interop: &config::Interop) -> InteropRow {
    InteropRow {
        version: interop.version.word().into(),
        piggyback: interop.piggyback,
        provisional: interop.provisional.word().into(),
        descriptions: interop.descriptions.word().into(),
        unknown_options: interop.unknown_options.word().into(),
    }
}

/// The one state all endpoints are in, or that there are several.
fn administrative(endpoints: impl Iterator<Item = Option<Admin>>) -> &'static str {
    let mut words = endpoints.map(|admin| admin.map_or(UNKNOWN, lead::admin_word));
    let first = words.next().unwrap_or(UNKNOWN);
    if words.all(|word| word == first) { first } else { "mixed" }
}

/// A state nobody could be asked for.
const UNKNOWN: &str = "unknown";

fn connection_row(plan: &Plan, view: &ConnectionView) -> ConnectionRow {
    let (connection, report) = (&view.connection, &view.report);
    let local = match connection.local.port {
        0 => "inside".into(),
        port => std::net::SocketAddr::new(connection.local.address, port).to_string(),
    };
    let remote = match connection.remote {
        Remote::Unknown => "-".into(),
        Remote::Rtp(address, port) => std::net::SocketAddr::from((address, port)).to_string(),
        Remote::Local(endpoint, id) => format!("{} {}", endpoint_name(&plan.topology, endpoint), id.hex()),
    };
    ConnectionRow {
        endpoint: endpoint_name(&plan.topology, connection.endpoint),
        connection: connection.id.hex().to_string(),
        call: connection.call.to_string(),
        mode: connection.mode.keyword().into(),
        local,
        remote,
        encodings: connection.local.encodings.iter().map(|encoding| encoding.facts().name.to_owned()).collect(),
        period_ms: connection.local.period_ms,
        pending: connection.pending,
        age_s: view.age_ns / 1_000_000_000,
        packets_sent: report.packets_sent,
        octets_sent: report.octets_sent,
        packets_received: report.packets_received,
        octets_received: report.octets_received,
        packets_lost: report.packets_lost,
        jitter_ms: report.jitter_ms,
        latency_ms: report.latency_ms,
        late: report.late,
        concealed_octets: report.concealed_octets,
        slips: report.slips,
        protected: connection.local.protected,
        replayed: report.replayed,
        unauthentic: report.unauthentic,
    }
}
