//! Lists of events as they are kept: in canonical form, that is, each event with its package, `@$` replaced by the connection it meant,
//! and no blanks (G-EVT-07, G-EVT-08). An audit shows this text, and it is read again when an event has to be looked up.

use super::watch::{Occurrence, Place};
use crate::proto::base::HexId;
use crate::proto::codec::mgcp::{
    Action, ActionSet, ConnectionRef, Embedded, Event, EventList, EventName, ListKind, PackageRef, ParameterList, SymbolSet, Writer,
};
use crate::proto::endpoint::{Blob, Blobs, ConnectionId};
use crate::proto::package::{ChannelKind, EventId, EventParameters, PackageId, default_package, find_item, find_package, packages};
use crate::proto::trunk::Sounds;

/// The longest list that is kept, in bytes of its canonical form.
pub const LIST_MAX: usize = 4096;

/// Room for one list.
pub type Room = [u8; LIST_MAX];

/// No list yet.
pub const ROOM: Room = [0; LIST_MAX];

/// A kept list, copied into `room`; `None` when it is empty.
pub fn kept<'a>(blobs: &Blobs, blob: Blob, room: &'a mut Room, kind: ListKind) -> Option<EventList<'a>> {
    if blob.is_empty() {
        return None;
    }
    // It was found good when it came.
    Some(EventList::accepted(text(blobs, blob, room), kind))
}

/// A kept text, copied into `room`.
pub fn text<'a>(blobs: &Blobs, blob: Blob, room: &'a mut Room) -> &'a [u8] {
    let mut length = 0;
    for piece in blobs.pieces(blob) {
        if let Some(place) = room.get_mut(length..length + piece.len()) {
            place.copy_from_slice(piece);
            length += piece.len();
        }
    }
    room.get(..length).unwrap_or_default()
}

/// What the name of an event in a list means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning<'a> {
    /// One event.
    One(EventId),
    /// Keys: of this package (G-EVT-04).
    Keys(PackageId, SymbolSet),
    /// Every event of this package, or of all of them (G-EVT-03).
    All(Option<PackageId>),
    /// The event of this name in whatever package.
    Named(&'a [u8]),
}

/// Why a name means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// There is no such package.
    Package,
    /// The package has no such event or signal.
    Item,
}

/// What `event` means on a channel of this kind; whether the channel has the package is not looked at.
pub fn meaning<'a>(event: &Event<'a>, kind: ChannelKind) -> Result<Meaning<'a>, Unknown> {
    let package = match event.package {
        PackageRef::Default => Some(default_package(kind)),
        PackageRef::Named(name) => Some(find_package(name).ok_or(Unknown::Package)?),
        PackageRef::All => None,
    };
    let name: &[u8] = match event.name {
        EventName::All => return Ok(Meaning::All(package)),
        EventName::Range { symbols, .. } => {
            let package = package.ok_or(Unknown::Item)?;
            let all = symbols.iter().all(|symbol| find_item(package, &[symbol]).is_some());
            return if all { Ok(Meaning::Keys(package, symbols)) } else { Err(Unknown::Item) };
        }
        EventName::Id(name) => name,
        EventName::Star => b"*",
        EventName::Hash => b"#",
    };
    match package {
        None => Ok(Meaning::Named(name)),
        Some(package) => {
            let item = find_item(package, name).ok_or(Unknown::Item)?;
            // X is any of the ten digits, and is reported as the digit it was.
            let any_digit = item.event().is_some() && name.eq_ignore_ascii_case(b"x");
            Ok(if any_digit { Meaning::Keys(package, SymbolSet::DIGITS) } else { Meaning::One(item) })
        }
    }
}

impl Meaning<'_> {
    /// The sounds of what is meant on a channel of this kind.
    fn sounds(&self, kind: ChannelKind) -> Sounds {
        match *self {
            Meaning::One(event) => Sounds::of(event),
            Meaning::Keys(PackageId::D, _) => Sounds::KEYS,
            Meaning::Keys(..) => Sounds::NONE,
            Meaning::All(_) | Meaning::Named(_) => {
                let all = packages(kind).iter().flat_map(|package| package.items());
                all.filter(|event| self.has(*event)).map(Sounds::of).collect()
            }
        }
    }

    /// Whether `event` is meant.
    pub fn has(&self, event: EventId) -> bool {
        match *self {
            Meaning::One(one) => one == event,
            Meaning::Keys(package, symbols) => event.package() == package && event.symbol().is_some_and(|symbol| symbols.has(symbol)),
            Meaning::All(package) => package.is_none_or(|package| package == event.package()),
            Meaning::Named(name) => event.item().name.as_bytes().eq_ignore_ascii_case(name),
        }
    }
}

/// The sounds that must be listened for, so that what is in `list` is seen.
pub fn sounds(list: EventList<'_>, kind: ChannelKind) -> Sounds {
    let of = |event: Event<'_>| {
        let meaning = meaning(&event, kind).ok()?;
        let suppressed = match meaning {
            Meaning::One(one) => match one.event_parameters(event.parameters) {
                Ok(EventParameters::ToneDuration { key, suppress: true, .. }) => Sounds::suppressing(|one| super::hold::is_key(key, one)),
                _ => Sounds::NONE,
            },
            _ => Sounds::NONE,
        };
        Some(meaning.sounds(kind).and(suppressed))
    };
    list.iter().filter_map(of).collect()
}

/// Where an event of a kept list is asked for.
pub fn place(connection: Option<ConnectionRef>) -> Option<Place> {
    match connection {
        None => Some(Place::Endpoint),
        Some(ConnectionRef::All) => Some(Place::All),
        Some(ConnectionRef::Id(id)) => ConnectionId::from_hex(&id).map(Place::Connection),
        Some(ConnectionRef::Current) => None,
    }
}

/// What a list says about something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found<'a> {
    /// What to do.
    pub actions: ActionSet,
    /// The request to activate.
    pub embedded: Option<Embedded<'a>>,
}

/// What `list` says about `occurrence`, if it has it.
pub fn find<'a>(list: EventList<'a>, kind: ChannelKind, occurrence: &Occurrence) -> Option<Found<'a>> {
    let event = list.iter().find(|event| fits(event, kind, occurrence))?;
    let actions = event.actions;
    Some(Found {
        actions: actions.map_or(ActionSet::NOTIFY, |actions| actions.set()),
        embedded: actions.and_then(|actions| actions.embedded()),
    })
}

fn fits(event: &Event<'_>, kind: ChannelKind, occurrence: &Occurrence) -> bool {
    let here = match (place(event.connection), occurrence.connection) {
        (Some(Place::Endpoint), None) | (Some(Place::All), Some(_)) => true,
        // Without a connection, what is only detected on connections is meant on all of them.
        (Some(Place::Endpoint), Some(_)) => {
            occurrence.event.event().is_some_and(|event| event.place == crate::proto::package::Place::Connection)
        }
        (Some(Place::Connection(wanted)), Some(connection)) => wanted == connection,
        _ => false,
    };
    here && meaning(event, kind).is_ok_and(|meaning| meaning.has(occurrence.event)) && parameters_fit(event, occurrence)
}

/// A request for one number wants that number (T/sit(N)(2)), and one for a key that key; what else a request says is the card's to look for.
fn parameters_fit(event: &Event<'_>, occurrence: &Occurrence) -> bool {
    use crate::proto::package::EventParameters::{Number, ToneDuration};
    let text = occurrence.parameters.as_bytes();
    match occurrence.event.event_parameters(event.parameters) {
        Ok(ToneDuration { key, .. }) => {
            text.strip_prefix(b"dg=").and_then(|text| text.first()).is_none_or(|&is| super::hold::is_key(key, is))
        }
        Ok(Number(wanted)) if !text.is_empty() => crate::proto::codec::scan::decimal(text, 9).is_none_or(|number| number == wanted),
        _ => true,
    }
}

/// Writes `list` in canonical form; `current` is what `@$` means.
pub fn write(writer: &mut Writer<'_>, list: EventList<'_>, kind: ChannelKind, current: Option<ConnectionId>) {
    for (n, event) in list.iter().enumerate() {
        writer.text(if n == 0 { "" } else { "," });
        write_event(writer, &event, kind, current);
    }
}

fn write_event(writer: &mut Writer<'_>, event: &Event<'_>, kind: ChannelKind, current: Option<ConnectionId>) {
    write_name(writer, event, kind);
    write_connection(writer, event.connection, current);
    if let Some(actions) = event.actions {
        for (n, action) in actions.iter().enumerate() {
            writer.text(if n == 0 { "(" } else { "," });
            write_action(writer, &action, kind, current);
        }
        writer.byte(b')');
    }
    if let Some(parameters) = event.parameters {
        write_parameters(writer, parameters);
    }
}

fn write_name(writer: &mut Writer<'_>, event: &Event<'_>, kind: ChannelKind) {
    match meaning(event, kind) {
        Ok(Meaning::One(one)) => return one.write(writer),
        Ok(Meaning::Keys(package, _) | Meaning::All(Some(package))) => writer.text(package.package().name),
        _ => writer.byte(b'*'),
    }
    writer.byte(b'/');
    match event.name {
        EventName::Id(name) => writer.bytes(name),
        EventName::All => writer.text("all"),
        EventName::Star => writer.byte(b'*'),
        EventName::Hash => writer.byte(b'#'),
        EventName::Range { content, .. } => {
            writer.byte(b'[');
            writer.bytes(content);
            writer.byte(b']');
        }
    }
}

fn write_connection(writer: &mut Writer<'_>, connection: Option<ConnectionRef>, current: Option<ConnectionId>) {
    let id: HexId = match (connection, current) {
        (None, _) => return,
        (Some(ConnectionRef::Id(id)), _) => id,
        (Some(ConnectionRef::Current), Some(current)) => current.hex(),
        (Some(ConnectionRef::All), _) => return writer.text("@*"),
        (Some(ConnectionRef::Current), None) => return writer.text("@$"),
    };
    writer.byte(b'@');
    writer.hex_id(id);
}

fn write_action(writer: &mut Writer<'_>, action: &Action<'_>, kind: ChannelKind, current: Option<ConnectionId>) {
    match *action {
        Action::Base(one) => {
            const NAMES: [(ActionSet, &str); 6] = [
                (ActionSet::NOTIFY, "N"),
                (ActionSet::ACCUMULATE, "A"),
                (ActionSet::DIGIT_MAP, "D"),
                (ActionSet::SWAP, "S"),
                (ActionSet::IGNORE, "I"),
                (ActionSet::KEEP_SIGNALS, "K"),
            ];
            let name = NAMES.into_iter().find(|&(set, _)| set == one);
            writer.text(name.map_or("", |(_, name)| name));
        }
        Action::Embedded(Embedded { requested, signals, digit_map }) => {
            // In the order R, S, D (G-REQ-14).
            writer.text("E(");
            let mut separator = "";
            for (name, list) in [("R(", requested), ("S(", signals)] {
                if let Some(list) = list {
                    writer.text(std::mem::replace(&mut separator, ","));
                    writer.text(name);
                    write(writer, list, kind, current);
                    writer.byte(b')');
                }
            }
            if let Some(map) = digit_map {
                writer.text(separator);
                writer.text("D(");
                writer.bytes(map.as_bytes());
                writer.byte(b')');
            }
            writer.byte(b')');
        }
        // Refused before it gets here: no package has actions.
        Action::Package { .. } => {}
    }
}

fn write_parameters(writer: &mut Writer<'_>, parameters: ParameterList<'_>) {
    writer.byte(b'(');
    writer.bytes(parameters.as_bytes());
    writer.byte(b')');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::trunk::EventText;

    fn canonical(list: &str, kind: ListKind, current: Option<ConnectionId>) -> String {
        let list = EventList::parse(list.as_bytes(), kind).unwrap();
        let mut room = ROOM;
        let mut writer = Writer::new(&mut room);
        write(&mut writer, list, ChannelKind::Clear, current);
        let length = writer.finish().unwrap();
        String::from_utf8(room[..length].to_vec()).unwrap()
    }

    /// G-EVT-07, G-EVT-08, G-REQ-14: what is kept says the same again when it is read.
    #[test]
    fn kept_lists_have_one_form() {
        let id = ConnectionId(0x00c7);
        let cases = [
            ("co1", "T/co1"),
            ("t/CO1 ( n , K ) , d/[0-9#]( D )", "T/co1(N,K),D/[0-9#](D)"),
            ("R/qa@$(N), r/qa@*(A)", "R/qa@000000C7(N),R/qa@*(A)"),
            ("T/sit(N)(2)", "T/sit(N)(2)"),
            ("*/all, T/all(I), */co1", "*/all,T/all(I),*/co1"),
            ("D/x(A), d/*", "D/x(A),D/*"),
            ("co2(E(S(bz(to=5)),D((1|2x)),R(G/rt@$(N))))", "T/co2(E(R(G/rt@000000C7(N)),S(T/bz(to=5)),D((1|2x))))"),
            ("", ""),
        ];
        for (given, kept) in cases {
            assert_eq!(canonical(given, ListKind::Requested, Some(id)), kept, "{given}");
            assert_eq!(canonical(kept, ListKind::Requested, None), kept);
        }
    }

    #[test]
    fn the_first_entry_that_fits_counts() {
        let list = EventList::parse(b"T/co1(A),R/qa@0000000A(I),R/qa@*(N),T/sit(N)(2),T/all(K,N)", ListKind::Requested).unwrap();
        let found = |event: &str, connection: Option<u32>, parameters: &str| {
            let (package, name) = event.split_once('/').unwrap();
            let event = find_item(find_package(package.as_bytes()).unwrap(), name.as_bytes()).unwrap();
            let parameters = EventText::new(parameters.as_bytes());
            let occurrence = Occurrence { event, connection: connection.map(ConnectionId), parameters };
            find(list, ChannelKind::Clear, &occurrence).map(|found| found.actions)
        };
        assert_eq!(found("T/co1", None, ""), Some(ActionSet::ACCUMULATE));
        assert_eq!(found("R/qa", Some(10), ""), Some(ActionSet::IGNORE));
        assert_eq!(found("R/qa", Some(11), ""), Some(ActionSet::NOTIFY));
        assert_eq!(found("T/sit", None, "2"), Some(ActionSet::NOTIFY));
        assert!(found("T/sit", None, "3").unwrap().has(ActionSet::KEEP_SIGNALS));
        assert_eq!((found("G/ft", None, ""), found("T/co1", Some(10), "")), (None, None));
    }
}
