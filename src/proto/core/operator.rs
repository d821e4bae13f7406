//! What operators ask of a core, and its answers. The host brings a [`Request`] to each core concerned and takes it back when it is
//! done; a core works on it in slices.

use super::Core;
use super::admission::AdmissionView;
use super::lead::Administration;
use super::lead_view::{FacilitiesView, LossView, ShutdownView};
use super::outside::{Frames, Outside, Turn};
use super::performance::PerformanceView;
use super::tally::Tally;
use crate::proto::base::{AgentId, EndpointIndex, Time};
use crate::proto::cas::State;
use crate::proto::endpoint::{Announcement as Told, Connection, ConnectionSlot, Endpoint, Law, Remote, Service};
use crate::proto::h248::{Gateway, GatewayView};
use crate::proto::mgcp::event::{self, EventsView};
use crate::proto::restart;
use crate::proto::transaction::history;
use crate::proto::transaction::outgoing::Outstanding;
use std::net::IpAddr;
use std::time::Duration;

use crate::proto::trunk::CarrierView;
use crate::proto::trunk::{CardOrder, Counts, Cursor, Facility, MediaReport, Selection, SpanIndex};

/// A question or an order, with the answer as far as it is there.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub ask: Ask,
    /// The answer so far.
    pub answer: Answer,
    pub(super) cursor: Cursor,
    /// The next announcement and endpoint of an answer about facilities.
    pub(super) position: (u32, u32),
}

impl Request {
    /// A request nobody has worked on.
    pub fn new(ask: Ask) -> Request {
        Request { ask, answer: Answer::Done, cursor: Cursor::default(), position: (0, 0) }
    }
}

/// What can be asked of one core.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Its endpoints among these, in this state.
    Endpoints(Selection, StateFilter),
    /// Its connections on these endpoints.
    Connections(Selection),
    /// Its spans.
    Spans,
    /// Its transactions.
    Transactions,
    /// How it is.
    Core,
    /// Its H.248 gateways.
    Gateways,
    /// What admission counts on it.
    Admission,
    /// End the connections, commands and signalling of one endpoint and forget its request.
    Free(EndpointIndex),
    /// An order to its card.
    Card(CardOrder),
    /// The lead core: an order about service states.
    Administer(Administration),
    /// The lead core: how far the shutdown is.
    Shutdown,
    /// The lead core: states of these endpoints.
    States(Selection),
    /// The lead core: facilities, alarms and announcements.
    Facilities,
    /// The pseudowire of one facility, of the core that owns it.
    Carrier(Facility),
    /// The lead core: the performance of one facility.
    Performance(Facility),
    /// The lead core: what the performance of every facility has counted.
    PerformanceTotals,
    /// The lead core: calls that were lost since this was asked last.
    Losses,
}

/// Endpoints in which state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateFilter {
    /// Any.
    All,
    /// In service without a connection, and nobody uses or holds the line.
    Idle,
    /// With a connection, or with a call on the line.
    Busy,
    /// Out of service.
    Out,
}

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// Done, nothing to tell.
    Done,
    /// An endpoint was cleared: connections that ended.
    Freed(u32),
    /// It cannot be done, in words.
    Refused(&'static str),
    /// Endpoints.
    Endpoints(Vec<EndpointView>),
    /// Connections.
    Connections(Vec<ConnectionView>),
    /// Spans, in the order of the topology.
    Spans(Vec<SpanView>),
    /// Transactions.
    Transactions(TransactionsView),
    /// The core.
    Core(CoreView),
    /// H.248 gateways.
    Gateways(Vec<GatewayView>),
    /// Admission.
    Admission(AdmissionView),
    /// How far the shutdown is.
    Shutdown(ShutdownView),
    /// States of endpoints.
    States(Vec<(EndpointIndex, restart::EndpointView)>),
    /// Facilities.
    Facilities(FacilitiesView),
    /// A pseudowire; `None`: the facility has none.
    Carrier(Option<CarrierView>),
    /// Performance of a facility.
    Performance(Box<PerformanceView>),
    /// Performance of all: counted since the start.
    PerformanceTotals(Vec<(Facility, Counts)>),
    /// Lost calls.
    Losses(Vec<LossView>),
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct EndpointView {
    /// Which.
    pub endpoint: EndpointIndex,
    /// Service state.
    pub service: Service,
    /// Whether the agent knows of it.
    pub announcement: Told,
    /// Whether its agent did not answer.
    pub disconnected: bool,
    /// Notified entity as written; empty after it was cleared.
    pub entity: String,
    /// Identifier of the latest request; empty when there is none.
    pub request: String,
    /// Line coding.
    pub law: Law,
    /// What its signalling waits for; `None` without channel associated signalling.
    pub line: Option<&'static str>,
    /// How long that may last; `None`: as long as it likes.
    pub line_left: Option<Duration>,
    /// Its events and signals; only where it was asked for by itself, and something was asked of it.
    pub events: Option<EventsView>,
    /// Its connections.
    pub connections: Vec<ConnectionView>,
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView {
    /// It.
    pub connection: Connection,
    /// What the card knows it by.
    pub slot: ConnectionSlot,
    /// What the card counted so far.
    pub report: MediaReport,
    /// How long it is up, in nanoseconds.
    pub age_ns: u64,
}

/// One span: its endpoints, counted by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanView {
    /// Which.
    pub span: SpanIndex,
    /// Its endpoints.
    pub endpoints: u32,
    /// Those in service, the leaving ones included.
    pub in_service: u32,
    /// Those with a connection.
    pub busy: u32,
    /// Their connections.
    pub connections: u32,
}

/// Transactions of one core.
#[derive(Clone, Debug)]
pub struct TransactionsView {
    /// Commands received.
    pub history: history::Stats,
    /// Commands that wait for something.
    pub waiting: usize,
    /// Commands of ours that are not answered.
    pub own: Vec<OwnCommand>,
    /// What is known of each agent, in the order of the settings.
    pub peers: Vec<PeerView>,
}

/// A command of ours that is not answered.
#[derive(Clone, Debug)]
pub struct OwnCommand {
    /// How it stands.
    pub outstanding: Outstanding,
    /// Its verb and the local name it is about.
    pub text: String,
}

impl OwnCommand {
    fn new(outstanding: Outstanding, body: &[u8]) -> OwnCommand {
        let line = body.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (verb, name) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        let local = name.split('@').next().unwrap_or_default();
        OwnCommand { outstanding, text: format!("{verb} {local}") }
    }
}

/// What a core knows of an agent from the commands it sent there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerView {
    /// Average time to the first response.
    pub response: Option<Duration>,
    /// Commands sent that were answered, and copies of them sent again: of late.
    pub sent: u32,
    /// See `sent`.
    pub repeated: u32,
    /// New commands it may get in a second; `None`: no limit.
    pub rate: Option<u64>,
    /// The address that was heard from last.
    pub heard: Option<IpAddr>,
    /// What became of commands.
    pub tally: Tally,
}

/// How a core is.
#[derive(Clone, Copy, Debug)]
pub struct CoreView {
    /// Endpoints it owns.
    pub endpoints: u32,
    /// Connections up.
    pub connections: u32,
    /// Whether it refuses new calls because the operator says so.
    pub draining: bool,
    /// Whether it refuses new calls because it is overloaded.
    pub overloaded: bool,
    /// Smoothed time from arrival to handling, in nanoseconds.
    pub sojourn_ns: u64,
    /// Thousandths of the latest `overload.busy_over` in which it had work.
    pub busy_per_mille: u16,
    /// Commands that wait for something.
    pub waiting: usize,
    /// Datagrams of several messages in hand.
    pub datagrams: usize,
    /// Received frames in hand, for other cores and for what waits here in a datagram of several messages.
    pub frames: u32,
    /// Memory for texts of agents: blocks in use, kept free for commands that wait, and in all.
    pub texts: (u32, u32, u32),
}

impl Core {
    /// Works on `request`; true when it is done.
    pub fn handle_request<F: Frames, O: Outside>(&mut self, turn: &mut Turn<'_, F, O>, request: &mut Request) -> bool {
        let done = match &request.ask {
            Ask::Endpoints(selection, state) => {
                let (selection, state) = (*selection, *state);
                let mut list = match std::mem::replace(&mut request.answer, Answer::Done) {
                    Answer::Endpoints(list) => list,
                    _ => Vec::new(),
                };
                let single = selection.single(&self.plan.topology);
                let done = self.each(&selection, &mut request.cursor, |core, endpoint, view| {
                    if state.holds(view, core.calls_of(endpoint).card.line_state(endpoint)) {
                        let events = single.and_then(|_| event::view(core.calls_of(endpoint), endpoint));
                        list.push(EndpointView { events, ..core.view(turn.now, endpoint, view) });
                    }
                });
                request.answer = Answer::Endpoints(list);
                done
            }
            Ask::Connections(selection) => {
                let selection = *selection;
                let mut list = match std::mem::replace(&mut request.answer, Answer::Done) {
                    Answer::Connections(list) => list,
                    _ => Vec::new(),
                };
                let done = self.each(&selection, &mut request.cursor, |core, endpoint, view| {
                    list.extend(core.connection_views(turn.now, endpoint, view));
                });
                request.answer = Answer::Connections(list);
                done
            }
            Ask::Spans => {
                let mut list = match std::mem::replace(&mut request.answer, Answer::Done) {
                    Answer::Spans(list) => list,
                    _ => Vec::new(),
                };
                let all = self.plan.topology.select_all();
                let done = self.each(&all, &mut request.cursor, |core, endpoint, view| {
                    if let Some(span) = core.plan.topology.span_of(endpoint) {
                        SpanView::count(&mut list, span, view);
                    }
                });
                request.answer = Answer::Spans(list);
                done
            }
            Ask::Transactions => {
                let body = |own: &Outstanding| self.outgoing.body(own.id).unwrap_or_default();
                let own = self.outgoing.iter().map(|own| OwnCommand::new(own, body(&own))).collect();
                let peer = |place: usize| {
                    let agent = AgentId(place as u8);
                    let trip = self.outgoing.round_trip(agent);
                    let (sent, repeated) = trip.copies();
                    let (rate, heard) = (self.outgoing.rate(turn.now, agent), self.outgoing.preferred(agent));
                    PeerView { response: trip.average(), sent, repeated, rate, heard, tally: self.tallies.get(agent) }
                };
                let peers = (0..self.settings.agents.len()).map(peer).collect();
                let (history, waiting) = (self.history.stats(), self.jobs.len());
                request.answer = Answer::Transactions(TransactionsView { history, waiting, own, peers });
                true
            }
            Ask::Core => {
                request.answer = Answer::Core(self.core_view());
                true
            }
            Ask::Gateways => {
                request.answer = Answer::Gateways(self.gateways.iter().map(Gateway::view).collect());
                true
            }
            Ask::Admission => {
                request.answer = Answer::Admission(self.admission_view());
                true
            }
            Ask::Free(endpoint) => {
                request.answer = Answer::Freed(self.free(turn, *endpoint));
                true
            }
            Ask::Card(order) => {
                if let Err(why) = self.operate_cards(turn.now, order) {
                    request.answer = Answer::Refused(why);
                }
                true
            }
            Ask::Carrier(facility) => {
                request.answer = Answer::Carrier(self.carrier(*facility));
                true
            }
            Ask::Administer(order) => {
                let order = *order;
                self.administer(turn, order);
                true
            }
            Ask::Losses => {
                request.answer = Answer::Losses(self.lead.as_mut().map(|lead| lead.take_losses()).unwrap_or_default());
                true
            }
            Ask::Shutdown | Ask::States(_) | Ask::Facilities => self.lead_answer(request),
            Ask::Performance(_) | Ask::PerformanceTotals => self.performance_answer(turn.now, request),
        };
        self.deliver(turn);
        done
    }

    /// Calls `visit` for the next slice of this core's endpoints among `selection`; true at the end.
    fn each(&self, selection: &Selection, cursor: &mut Cursor, mut visit: impl FnMut(&Core, EndpointIndex, &Endpoint)) -> bool {
        match selection.next(&self.plan.topology, cursor, self.plan.limits.slice.max(1)) {
            Some(range) => {
                for endpoint in range.iter() {
                    if let Some(state) = self.calls_of(endpoint).endpoints.get(endpoint) {
                        visit(self, endpoint, state);
                    }
                }
                false
            }
            None => true,
        }
    }

    fn view(&self, now: Time, endpoint: EndpointIndex, state: &Endpoint) -> EndpointView {
        let gateway = self.gateway_of(endpoint);
        let card = &self.calls_of(endpoint).card;
        let entity = match self.calls.endpoints.entities.get(state.entity) {
            _ if gateway.is_some() => gateway.and_then(Gateway::controller).map_or(String::new(), |controller| controller.to_string()),
            Some((_, _, text)) => {
                String::from_utf8_lossy(&self.calls.endpoints.blobs.pieces(text).collect::<Vec<_>>().concat()).into_owned()
            }
            None if state.entity == crate::proto::endpoint::EntityId::SOURCE => String::new(),
            None => self.settings.agent(state.provisioned).map_or(String::new(), |agent| agent.entity.clone()),
        };
        EndpointView {
            endpoint,
            service: state.service,
            announcement: state.announcement,
            disconnected: state.disconnected,
            entity,
            request: self.calls.watch(endpoint).map_or(String::new(), |watch| watch.request.to_string()),
            law: state.law,
            line: card.line_state(endpoint),
            line_left: Some(card.line_limit(endpoint)).filter(|limit| *limit != Time::NEVER).map(|limit| limit.since(now)),
            events: None,
            connections: self.connection_views(now, endpoint, state).collect(),
        }
    }

    fn connection_views<'a>(
        &'a self,
        now: Time,
        endpoint: EndpointIndex,
        state: &Endpoint,
    ) -> impl Iterator<Item = ConnectionView> + use<'a> {
        let calls = self.calls_of(endpoint);
        state.connection_slots().filter_map(move |slot| {
            let connection = *calls.endpoints.connections.get(slot)?;
            let age_ns = now.since(connection.created).as_nanos() as u64;
            Some(ConnectionView { connection, slot, report: calls.card.report(now, slot), age_ns })
        })
    }

    fn core_view(&self) -> CoreView {
        CoreView {
            endpoints: self.gateways.iter().fold(self.calls.endpoints.count(), |sum, gateway| sum + gateway.calls.endpoints.count()),
            connections: self.connections_up(),
            draining: self.draining,
            overloaded: self.detector.refuse_new(),
            sojourn_ns: self.detector.sojourn().as_nanos() as u64,
            busy_per_mille: self.detector.busy_per_mille(),
            waiting: self.jobs.len(),
            datagrams: self.datagrams.len(),
            frames: self.in_hand.total(),
            texts: self.calls.endpoints.blobs.usage(),
        }
    }
}

impl SpanView {
    /// Counts an endpoint of `span`, which is the last of the list or comes next.
    fn count(list: &mut Vec<SpanView>, span: SpanIndex, endpoint: &Endpoint) {
        if list.last().is_none_or(|last| last.span != span) {
            list.push(SpanView { span, endpoints: 0, in_service: 0, busy: 0, connections: 0 });
        }
        let Some(view) = list.last_mut() else { return };
        let connections = endpoint.connection_count() as u32;
        view.endpoints += 1;
        view.in_service += u32::from(endpoint.service.in_service);
        view.busy += u32::from(connections > 0);
        view.connections += connections;
    }
}

impl StateFilter {
    /// `line` is what the signalling of the endpoint waits for.
    fn holds(self, endpoint: &Endpoint, line: Option<&str>) -> bool {
        let line = line.and_then(State::by_name);
        let busy = endpoint.connection_slots().next().is_some() || line.is_some_and(State::is_busy);
        match self {
            StateFilter::All => true,
            StateFilter::Idle => endpoint.service.in_service && !busy && !line.is_some_and(State::is_held),
            StateFilter::Busy => busy,
            StateFilter::Out => !endpoint.service.in_service,
        }
    }
}

impl ConnectionView {
    /// The far end, in words.
    pub fn far_end(&self) -> String {
        match self.connection.remote {
            Remote::Unknown => "-".into(),
            Remote::Rtp(address, port) => std::net::SocketAddr::from((address, port)).to_string(),
            Remote::Local(endpoint, id) => format!("endpoint {} connection {}", endpoint.0, id.hex()),
        }
    }
}
