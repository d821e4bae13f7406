//! What a request asks for, against the catalogue and the endpoint: it can be done, or it is refused and nothing has changed
//! (RFC 3435 2.3.3, 4.4.2, RFC 3661 2.2; G-EVT-06..15, G-SIG-03..14, G-REQ-02..12, G-QUA-22).

use super::list::{self, Meaning, Unknown};
use super::playing::{Ending, SIGNALS_MAX};
use super::sequence;
use super::signals;
use super::watch::{Place, Watch};
use crate::proto::base::EndpointIndex;
use crate::proto::codec::mgcp::{
    Action, ActionSet, ConnectionRef, DigitMap, Event, EventList, EventName, ListKind, ParameterList, SymbolSet,
};
use crate::proto::endpoint::{ConnectionId, Remote};
use crate::proto::mgcp::{self, Calls, Refused};
use crate::proto::package::parameters::members;
use crate::proto::package::{ChannelKind, EventId, PackageId, Place as Allowed, SignalParameters, find_item, packages};
use crate::proto::trunk::CardFault;

/// The most events of one list.
const EVENTS_MAX: usize = 64;

/// The lists of a request, as they came.
#[derive(Clone, Copy, Default)]
pub struct Lists<'a> {
    /// `R:`.
    pub requested: Option<EventList<'a>>,
    /// `S:`.
    pub signals: Option<EventList<'a>>,
    /// `T:`.
    pub detected: Option<EventList<'a>>,
    /// `B/PR:`.
    pub persistent: Option<EventList<'a>>,
    /// `D:`; `Some(None)`: an empty one.
    pub digit_map: Option<Option<DigitMap<'a>>>,
    /// `Q: loop`.
    pub looping: bool,
}

impl Lists<'_> {
    /// Whether there is nothing to check beside what the endpoint has already.
    pub fn is_empty(&self) -> bool {
        let lists = [self.requested, self.signals, self.detected, self.persistent];
        lists.into_iter().flatten().all(|list| list.is_empty()) && self.digit_map.is_none()
    }
}

/// The connection of the command that carries a request: what `@$` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// None: NotificationRequest.
    None,
    /// One that is being created; whether it has a remote description.
    New(bool),
    /// One that is there; whether the command gives it a remote description.
    Known(ConnectionId, bool),
    /// One that is deleted by the command.
    Gone(ConnectionId),
}

impl Carrier {
    /// The identifier behind `@$`.
    pub fn current(self) -> Option<ConnectionId> {
        match self {
            Carrier::Known(id, _) => Some(id),
            _ => None,
        }
    }
}

/// What a list is for, as far as its check differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Requested { embedded: bool },
    Persistent,
    Detected,
}

/// One endpoint's view of a request.
pub struct Check<'c> {
    calls: &'c Calls,
    endpoint: EndpointIndex,
    watch: Option<&'c Watch>,
    kind: ChannelKind,
    carrier: Carrier,
    /// The digit maps were found good on another channel of this kind.
    maps_are_good: bool,
}

impl<'c> Check<'c> {
    /// For `endpoint`.
    pub fn new(calls: &'c Calls, endpoint: EndpointIndex, carrier: Carrier) -> Check<'c> {
        let (watch, kind) = (calls.watch(endpoint), calls.channel_kind(endpoint));
        Check { calls, endpoint, watch, kind, carrier, maps_are_good: false }
    }

    /// For one of many of its kind: the digit maps of the request were found good on another.
    pub fn with_good_maps(self, good: bool) -> Check<'c> {
        Check { maps_are_good: good, ..self }
    }

    fn digit_map(&self, map: DigitMap<'_>) -> Result<(), Refused> {
        if self.maps_are_good { Ok(()) } else { super::dial::check(map, self.kind) }
    }

    /// Everything a request says.
    pub fn request(&self, lists: &Lists<'_>) -> Result<(), Refused> {
        let map = match lists.digit_map {
            Some(given) => given.is_some(),
            None => self.watch.is_some_and(|watch| !watch.digit_map.is_empty()),
        };
        if let Some(Some(map)) = lists.digit_map {
            self.digit_map(map)?;
        }
        if let Some(list) = lists.requested {
            self.events(list, For::Requested { embedded: false }, map, lists.looping)?;
        }
        if let Some(list) = lists.signals {
            self.signals(list, false)?;
        }
        if let Some(list) = lists.detected {
            self.events(list, For::Detected, true, true)?;
        }
        match lists.persistent {
            Some(list) => self.events(list, For::Persistent, map, lists.looping),
            None => self.kept_persistent(),
        }
    }

    /// The kept B/PR may name a connection that is gone (G-PER-06).
    fn kept_persistent(&self) -> Result<(), Refused> {
        let Some(watch) = self.watch.filter(|watch| !watch.persistent.is_empty()) else { return Ok(()) };
        let mut room = list::ROOM;
        let kept = list::kept(&self.calls.endpoints.blobs, watch.persistent, &mut room, ListKind::Requested);
        kept.into_iter().flat_map(|list| list.iter()).try_for_each(|event| self.connection(event.connection).map(drop))
    }

    fn events(&self, list: EventList<'_>, purpose: For, map: bool, looping: bool) -> Result<(), Refused> {
        let mut seen = Seen::default();
        for (n, event) in list.iter().enumerate() {
            if n >= EVENTS_MAX {
                return Err(mgcp::TOO_MANY_EVENTS);
            }
            let meaning = self.meaning(&event)?;
            self.event(&event, meaning, purpose)?;
            if let Some(actions) = event.actions {
                self.actions(actions.set(), actions.iter(), map, looping)?;
            }
            let place = self.connection(event.connection)?;
            if !seen.add(meaning, place) {
                return Err(mgcp::LISTED_TWICE);
            }
        }
        Ok(())
    }

    /// Package, then name (G-EVT-14).
    fn meaning<'a>(&self, event: &Event<'a>) -> Result<Meaning<'a>, Refused> {
        let meaning = list::meaning(event, self.kind).map_err(|unknown| match unknown {
            Unknown::Package => mgcp::PACKAGE_UNKNOWN,
            Unknown::Item => mgcp::EVENT_UNKNOWN,
        })?;
        let package = match meaning {
            Meaning::One(one) => Some(one.package()),
            Meaning::Keys(package, _) => Some(package),
            Meaning::All(package) => package,
            Meaning::Named(_) => None,
        };
        match package {
            Some(package) if !packages(self.kind).contains(&package) => Err(mgcp::PACKAGE_UNKNOWN),
            _ => Ok(meaning),
        }
    }

    fn event(&self, event: &Event<'_>, meaning: Meaning<'_>, purpose: For) -> Result<(), Refused> {
        let bound = event.connection.is_some();
        match meaning {
            Meaning::One(one) => {
                let traits = one.event().ok_or(mgcp::EVENT_UNKNOWN)?;
                if bound && traits.place == Allowed::Endpoint {
                    return Err(mgcp::NOT_ON_CONNECTIONS);
                }
                // What must be said to have an event notified need not be said to have it detected.
                if purpose != For::Detected || event.parameters.is_some() {
                    one.event_parameters(event.parameters).map_err(|_| mgcp::EVENT_PARAMETER)?;
                }
                let ignored = event.actions.is_some_and(|actions| actions.set().has(ActionSet::IGNORE));
                if purpose == (For::Requested { embedded: false }) && !bound && !ignored {
                    self.calls.card.check_event(self.endpoint, one).map_err(refusal)?;
                }
                Ok(())
            }
            Meaning::Keys(..) | Meaning::All(_) | Meaning::Named(_) => {
                if event.parameters.is_some_and(|parameters| !parameters.as_bytes().is_empty()) {
                    return Err(mgcp::EVENT_PARAMETER);
                }
                // Keys are heard on connections as telephone events, but no timer runs there.
                let on_the_line = match (event.name, meaning) {
                    (_, Meaning::Keys(package, symbols)) => symbols.iter().any(|symbol| {
                        find_item(package, &[symbol]).and_then(EventId::event).is_none_or(|traits| traits.place == Allowed::Endpoint)
                    }),
                    (EventName::Range { .. }, _) => true,
                    _ => false,
                };
                if bound && on_the_line { Err(mgcp::NOT_ON_CONNECTIONS) } else { Ok(()) }
            }
        }
    }

    fn actions<'a>(&self, set: ActionSet, all: impl Iterator<Item = Action<'a>>, map: bool, looping: bool) -> Result<(), Refused> {
        if set.has(ActionSet::SWAP) {
            return Err(mgcp::ACTION_UNSUPPORTED);
        }
        if set.has(ActionSet::NOTIFY) && set.has(ActionSet::EMBEDDED) && !looping {
            return Err(mgcp::NEEDS_LOOP);
        }
        if set.has(ActionSet::DIGIT_MAP) && !map {
            return Err(mgcp::NO_DIGIT_MAP);
        }
        for action in all {
            match action {
                Action::Base(_) => {}
                Action::Package { .. } => return Err(mgcp::ACTION_UNSUPPORTED),
                Action::Embedded(embedded) => {
                    if let Some(map) = embedded.digit_map {
                        self.digit_map(map)?;
                    }
                    let map = map || embedded.digit_map.is_some();
                    if let Some(list) = embedded.requested {
                        self.events(list, For::Requested { embedded: true }, map, looping)?;
                    }
                    if let Some(list) = embedded.signals {
                        self.signals(list, true)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The signals of a list. What depends on the state of hook and connections counts for `embedded` ones when they are activated.
    fn signals(&self, list: EventList<'_>, embedded: bool) -> Result<(), Refused> {
        let mut seen = Seen::default();
        let mut more = 0;
        for event in list.iter() {
            let Meaning::One(signal) = self.meaning(&event)? else { return Err(mgcp::EVENT_UNKNOWN) };
            let traits = signal.signal().ok_or(mgcp::EVENT_UNKNOWN)?;
            let bound = event.connection.is_some();
            if (bound && traits.place == Allowed::Endpoint) || (!bound && traits.place == Allowed::Connection) {
                return Err(mgcp::NOT_ON_CONNECTIONS);
            }
            let parameters = self.signal_parameters(signal, event.parameters)?;
            let connection = signals::connection_of(&event, &parameters);
            let bound = connection.is_some();
            let place = self.connection(connection)?;
            if !seen.add(Meaning::One(signal), place) {
                return Err(mgcp::LISTED_TWICE);
            }
            if embedded {
                continue;
            }
            if bound {
                self.remote_described(connection)?;
            } else if parameters.on && !self.is_on(signal, place) {
                // What is on already goes on as it is (G-SIG-02), so the line need not be ready for it again.
                self.line_can(signal, event.parameters)?;
            }
            more += usize::from(parameters.on && !self.kept(signal, place));
        }
        if !embedded && more + self.lasting() > SIGNALS_MAX { Err(mgcp::TOO_MANY_SIGNALS) } else { Ok(()) }
    }

    /// Whether the line can do it now; of a signal list, all of it.
    fn line_can(&self, signal: EventId, parameters: Option<ParameterList<'_>>) -> Result<(), Refused> {
        let can = |signal, text: &[u8]| self.calls.card.check_signal(self.endpoint, None, signal, text).map_err(refusal);
        match parameters {
            Some(list) if sequence::is(signal) => members(list, self.kind).try_for_each(|(member, _, text)| can(member, text)),
            _ => can(signal, parameters.map_or(&[][..], |parameters| parameters.as_bytes())),
        }
    }

    fn signal_parameters(&self, signal: EventId, parameters: Option<ParameterList<'_>>) -> Result<SignalParameters, Refused> {
        signal.signal_parameters(parameters, self.kind).map_err(|_| mgcp::EVENT_PARAMETER)
    }

    /// Whether an on/off signal is on already, so that it takes no room.
    fn kept(&self, signal: EventId, place: Option<Place>) -> bool {
        let mut signals = self.watch.into_iter().flat_map(|watch| watch.signals.iter());
        signals.any(|one| one.signal == signal && Some(one.place) == place && one.ending == Ending::Order)
    }

    /// Whether a signal that lasts is on there.
    fn is_on(&self, signal: EventId, place: Option<Place>) -> bool {
        let mut signals = self.watch.into_iter().flat_map(|watch| watch.signals.iter());
        let lasts = |ending| matches!(ending, Ending::Order | Ending::TimeOut(_));
        signals.any(|one| one.signal == signal && Some(one.place) == place && lasts(one.ending))
    }

    /// Signals that a new list does not end.
    fn lasting(&self) -> usize {
        let lasts = |ending| matches!(ending, Ending::Order | Ending::Brief(_));
        self.watch.map_or(0, |watch| watch.signals.iter().filter(|signal| lasts(signal.ending)).count())
    }

    /// Where an event is asked for: 515 for a connection that is not there (G-EVT-06). `None`: on the one that is being created.
    fn connection(&self, connection: Option<ConnectionRef>) -> Result<Option<Place>, Refused> {
        let unknown = Err(mgcp::CONNECTION_UNKNOWN);
        match (connection, self.carrier) {
            (None, _) => Ok(Some(Place::Endpoint)),
            (Some(ConnectionRef::All), _) => Ok(Some(Place::All)),
            (Some(ConnectionRef::Current), Carrier::New(_)) => Ok(None),
            (Some(ConnectionRef::Current), Carrier::Known(id, _)) => Ok(Some(Place::Connection(id))),
            (Some(ConnectionRef::Current), Carrier::None | Carrier::Gone(_)) => Err(mgcp::NO_CURRENT_CONNECTION),
            (Some(ConnectionRef::Id(id)), carrier) => match ConnectionId::from_hex(&id) {
                Some(id) if carrier == Carrier::Gone(id) => unknown,
                Some(id) if self.calls.endpoints.find(self.endpoint, id).is_some() => Ok(Some(Place::Connection(id))),
                _ => unknown,
            },
        }
    }

    /// A signal on a connection needs a remote description there (G-SIG-13; O-17: on all that are there).
    fn remote_described(&self, connection: Option<ConnectionRef>) -> Result<(), Refused> {
        let described = |id| {
            let given = matches!(self.carrier, Carrier::Known(carrier, true) if carrier == id);
            given || self.calls.endpoints.find(self.endpoint, id).is_some_and(|(_, found)| found.remote != Remote::Unknown)
        };
        let all_described = match (connection, self.carrier) {
            (Some(ConnectionRef::Current), Carrier::New(described)) => described,
            (Some(ConnectionRef::Current), Carrier::Known(id, _)) => described(id),
            (Some(ConnectionRef::Id(id)), _) => ConnectionId::from_hex(&id).is_some_and(described),
            (Some(ConnectionRef::All), _) => self.calls.connections_of(self.endpoint).all(|(_, connection)| described(connection.id)),
            _ => true,
        };
        if all_described { Ok(()) } else { Err(mgcp::REMOTE_MISSING) }
    }
}

/// Why the line cannot do what is asked for now (G-QUA-22, G-SIG-14; RFC 3661 2.2).
fn refusal(fault: CardFault) -> Refused {
    match fault {
        CardFault::OffHook => mgcp::OFF_HOOK,
        CardFault::OnHook => mgcp::ON_HOOK,
        CardFault::State => mgcp::LINE_STATE,
        CardFault::Exhausted | CardFault::Broken => mgcp::NO_MEDIA,
    }
}

/// The events of a list so far.
struct Seen {
    events: [Option<(Keys, Option<Place>)>; EVENTS_MAX],
    count: usize,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { events: [None; EVENTS_MAX], count: 0 }
    }
}

/// An event or keys, comparable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    One(EventId),
    Keys(PackageId, SymbolSet),
}

impl Seen {
    /// False when it is there already.
    fn add(&mut self, meaning: Meaning<'_>, place: Option<Place>) -> bool {
        let keys = match meaning {
            Meaning::One(one) => match one.symbol().and_then(SymbolSet::of) {
                Some(symbol) => Keys::Keys(one.package(), symbol),
                None => Keys::One(one),
            },
            Meaning::Keys(package, symbols) => Keys::Keys(package, symbols),
            // Groups overlap by nature.
            Meaning::All(_) | Meaning::Named(_) => return true,
        };
        let meets = |other: &Keys| match (keys, *other) {
            (Keys::One(one), Keys::One(other)) => one == other,
            (Keys::Keys(package, symbols), Keys::Keys(other, others)) => package == other && symbols.meets(others),
            _ => false,
        };
        if self.events.iter().flatten().any(|(other, at)| *at == place && meets(other)) {
            return false;
        }
        if let Some(free) = self.events.get_mut(self.count) {
            *free = Some((keys, place));
            self.count += 1;
        }
        true
    }
}
