//! Properties: what is written reads back the same, and nothing from outside panics, differs between runs or takes long.

use proptest::prelude::*;
use tollgate::proto::base::HexId;
use tollgate::proto::codec::mgcp::{
    Action, ActionSet, Code, Command, ConnectionParameters, ConnectionRef, EventList, EventName, ListKind, PackageRef, Parameter,
    ParameterList, Response, Verb, Writer,
};
use tollgate::proto::codec::sdp::{self, Address, Description, Payload, Session};
use tollgate::proto::codec::{exercise, peek};

use crate::files;

/// A parameter of an event, as a test makes it up.
#[derive(Clone, Debug, PartialEq)]
enum ParameterModel {
    Value(Vec<u8>),
    Named(String, Vec<ParameterModel>),
}

/// An event, as a test makes it up.
#[derive(Clone, Debug, PartialEq)]
struct EventModel {
    name: String,
    connection: Option<String>,
    actions: Vec<ActionModel>,
    parameters: Vec<ParameterModel>,
}

/// An action, as a test makes it up.
#[derive(Clone, Debug, PartialEq)]
enum ActionModel {
    Base(char),
    Embedded { requested: Vec<EventModel>, signals: Vec<EventModel>, map: Option<String> },
}

fn parameter_models() -> impl Strategy<Value = Vec<ParameterModel>> {
    let value = prop::collection::vec(any::<u8>(), 0..12).prop_map(ParameterModel::Value);
    let one = value.prop_recursive(4, 12, 3, |inner| {
        ("[a-z!+-]{1,6}", prop::collection::vec(inner, 1..4)).prop_map(|(name, list)| ParameterModel::Named(name, list))
    });
    prop::collection::vec(one, 0..4)
}

fn names() -> impl Strategy<Value = String> {
    ("([A-Za-z][A-Za-z0-9]{0,3}/)?", "([a-z][a-z0-9]{1,5}|[0-9]|[*#])").prop_map(|(package, name)| package + &name)
}

fn connections() -> impl Strategy<Value = Option<String>> {
    prop::option::of("([0-9A-F]{1,32}|[$]|[*])")
}

fn signals() -> impl Strategy<Value = EventModel> {
    (names(), connections(), parameter_models()).prop_map(|(name, connection, parameters)| EventModel {
        name,
        connection,
        actions: Vec::new(),
        parameters,
    })
}

fn maps() -> impl Strategy<Value = String> {
    "(([0-9xXT*#]\\.?|\\[[0-9#]{1,3}\\]){1,5}|\\(([0-9xT]{1,4}\\|){1,3}[0-9xT]{1,4}\\))"
}

/// Requested events; those that may hold embedded requests when `outer`.
fn requested(outer: bool) -> BoxedStrategy<EventModel> {
    let base = |set: &'static str| Just(set.chars().map(ActionModel::Base).collect::<Vec<_>>()).boxed();
    let mut actions = vec![base(""), base("N"), base("A"), base("I"), base("AK"), base("DK"), base("NS")];
    if outer {
        let lists = (prop::collection::vec(requested(false), 0..3), prop::collection::vec(signals(), 1..3), prop::option::of(maps()));
        let embedded = lists.prop_map(|(requested, signals, map)| {
            vec![ActionModel::Base('A'), ActionModel::Embedded { requested, signals, map }, ActionModel::Base('K')]
        });
        actions.push(embedded.boxed());
    }
    let with_actions = (names(), connections(), prop::strategy::Union::new(actions), parameter_models());
    with_actions
        .prop_map(|(name, connection, actions, parameters)| {
            // Parameters need actions before them.
            let parameters = if actions.is_empty() { Vec::new() } else { parameters };
            EventModel { name, connection, actions, parameters }
        })
        .boxed()
}

fn write_parameters(writer: &mut Writer<'_>, list: &[ParameterModel]) {
    writer.byte(b'(');
    for (n, parameter) in list.iter().enumerate() {
        if n > 0 {
            writer.byte(b',');
        }
        match parameter {
            ParameterModel::Value(value) => writer.event_value(value),
            ParameterModel::Named(name, inner) => {
                writer.text(name);
                write_parameters(writer, inner);
            }
        }
    }
    writer.byte(b')');
}

fn write_events(writer: &mut Writer<'_>, events: &[EventModel]) {
    for (n, event) in events.iter().enumerate() {
        writer.text(if n > 0 { "," } else { "" });
        writer.text(&event.name);
        if let Some(connection) = &event.connection {
            writer.byte(b'@');
            writer.text(connection);
        }
        for (n, action) in event.actions.iter().enumerate() {
            writer.byte(if n > 0 { b',' } else { b'(' });
            match action {
                ActionModel::Base(letter) => writer.byte(*letter as u8),
                ActionModel::Embedded { requested, signals, map } => {
                    writer.text("E(R(");
                    write_events(writer, requested);
                    writer.text("),S(");
                    write_events(writer, signals);
                    if let Some(map) = map {
                        writer.text("),D(");
                        writer.text(map);
                    }
                    writer.text("))");
                }
            }
        }
        if !event.actions.is_empty() {
            writer.byte(b')');
        }
        if !event.parameters.is_empty() {
            write_parameters(writer, &event.parameters);
        }
    }
}

fn read_parameters(list: Option<ParameterList<'_>>) -> Vec<ParameterModel> {
    let one = |parameter| match parameter {
        Parameter::Value(value) => ParameterModel::Value(value.bytes().collect()),
        Parameter::Named { name, values } => {
            ParameterModel::Named(String::from_utf8(name.to_vec()).unwrap(), read_parameters(Some(values)))
        }
    };
    list.iter().flat_map(|list| list.iter()).map(one).collect()
}

fn read_events(list: EventList<'_>) -> Vec<EventModel> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let events = list.iter().map(|event| EventModel {
        name: match (event.package, event.name) {
            (PackageRef::Named(package), name) => format!("{}/{}", text(package), read_name(name)),
            (PackageRef::Default, name) => read_name(name),
            (PackageRef::All, name) => format!("*/{}", read_name(name)),
        },
        connection: event.connection.map(|connection| match connection {
            ConnectionRef::Current => "$".to_string(),
            ConnectionRef::All => "*".to_string(),
            ConnectionRef::Id(id) => id.to_string(),
        }),
        actions: event.actions.iter().flat_map(|actions| actions.iter()).map(read_action).collect(),
        parameters: read_parameters(event.parameters),
    });
    events.collect()
}

fn read_name(name: EventName<'_>) -> String {
    match name {
        EventName::Id(id) => String::from_utf8(id.to_vec()).unwrap(),
        EventName::All => "all".to_string(),
        EventName::Star => "*".to_string(),
        EventName::Hash => "#".to_string(),
        EventName::Range { content, .. } => format!("[{}]", String::from_utf8(content.to_vec()).unwrap()),
    }
}

fn read_action(action: Action<'_>) -> ActionModel {
    match action {
        Action::Base(set) => {
            let letters = [
                (ActionSet::NOTIFY, 'N'),
                (ActionSet::ACCUMULATE, 'A'),
                (ActionSet::DIGIT_MAP, 'D'),
                (ActionSet::SWAP, 'S'),
                (ActionSet::IGNORE, 'I'),
                (ActionSet::KEEP_SIGNALS, 'K'),
            ];
            ActionModel::Base(letters.into_iter().find(|(one, _)| *one == set).unwrap().1)
        }
        Action::Embedded(embedded) => ActionModel::Embedded {
            requested: embedded.requested.map(read_events).unwrap_or_default(),
            signals: embedded.signals.map(read_events).unwrap_or_default(),
            map: embedded.digit_map.map(|map| String::from_utf8(map.as_bytes().to_vec()).unwrap()),
        },
        Action::Package { .. } => panic!("none was written"),
    }
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 65_507];
    let mut writer = Writer::new(&mut buffer);
    write(&mut writer);
    let length = writer.finish().expect("it fits");
    buffer.truncate(length);
    buffer
}

/// Datagrams to cut and flip: everything in the data directories.
fn corpus() -> Vec<Vec<u8>> {
    [files("wire", ".txt"), files("field-bugs", ".txt")].concat().into_iter().map(|(_, bytes)| bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requested_events_read_back(events in prop::collection::vec(requested(true), 0..4)) {
        let text = written(|w| write_events(w, &events));
        let list = EventList::parse(&text, ListKind::Requested);
        prop_assert_eq!(list.map(read_events), Ok(events), "{}", text.escape_ascii());
    }

    #[test]
    fn signals_read_back_through_a_command(events in prop::collection::vec(signals(), 0..5), id in 1u32..=999_999_999) {
        let message = written(|w| {
            w.command(Verb::Rqnt, id, b"ds/ds1-1/1", b"tgw");
            w.parameter(Code::X, b"1");
            w.begin(Code::S);
            write_events(w, &events);
            w.end_line();
        });
        // Also when piggybacked: quoted strings may hold line ends and dot lines.
        let datagram = [&message[..], b".\r\n", &message[..]].concat();
        let ranges: Vec<_> = peek::split(&datagram).map(|(range, _)| range).collect();
        prop_assert_eq!(ranges.len(), 2, "{}", datagram.escape_ascii());
        for range in ranges {
            let command = Command::parse(&datagram[range]).unwrap();
            prop_assert_eq!(command.id, id);
            prop_assert_eq!(read_events(command.signals().unwrap().unwrap()), &events[..]);
        }
    }

    #[test]
    fn commands_read_back(
        verb in prop::sample::select(Verb::ALL.to_vec()), id in 1u32..=999_999_999, local in "[a-z0-9+#-]{1,8}(/[a-z0-9-]{1,8}){0,3}",
        domain in "[a-z0-9.-]{1,20}", call in "[0-9A-F]{1,32}", ranges in prop::collection::vec((0u32..1000, 0u32..1000), 0..5),
    ) {
        let ranges: Vec<(u32, u32)> = ranges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
        let identifiers: &[Code] = match verb {
            Verb::Crcx => &[Code::C],
            Verb::Mdcx | Verb::Dlcx => &[Code::C, Code::I],
            Verb::Rqnt | Verb::Ntfy => &[Code::X],
            Verb::Aucx => &[Code::I],
            Verb::Epcf | Verb::Auep | Verb::Rsip | Verb::Mesg => &[],
        };
        let message = written(|w| {
            w.command(verb, id, local.as_bytes(), domain.as_bytes());
            w.parameter_confirmed(ranges.iter().copied());
            for &code in identifiers {
                w.parameter_hex_id(code, HexId::parse(call.as_bytes()).unwrap());
            }
            match verb {
                Verb::Crcx => w.parameter(Code::M, b"inactive"),
                Verb::Epcf => w.parameter(Code::B, b"e:A"),
                Verb::Ntfy => w.parameter(Code::O, b"T/co1"),
                Verb::Rsip => w.parameter(Code::RM, b"restart"),
                _ => {}
            }
            w.extension(b"zz/foo", b"bar");
        });
        let at_gateway = Command::parse(&message);
        let command = if matches!(verb, Verb::Ntfy | Verb::Rsip | Verb::Mesg) { Command::parse_at_agent(&message) } else { at_gateway };
        let command = command.unwrap();
        prop_assert_eq!((command.verb, command.id), (verb, id));
        prop_assert_eq!((command.endpoint.local, command.endpoint.domain), (local.as_bytes(), domain.as_bytes()));
        prop_assert_eq!(command.confirmed().collect::<Vec<_>>(), ranges);
        for &code in identifiers {
            prop_assert_eq!(command.get(code), Some(call.as_bytes()));
        }
        prop_assert_eq!(command.extensions().map(|e| e.value).collect::<Vec<_>>(), [b"bar"]);
    }

    #[test]
    fn responses_and_descriptions_read_back(
        code in 0u16..1000, id in 1u32..=999_999_999, text in "[!-~]([ -~]{0,20}[!-~])?", numbers in prop::collection::vec(prop::option::of(0u32..=999_999_999), 7),
        port: u16, ptime in prop::option::of(1u16..1000), ip: u32, types in prop::collection::hash_set(0u8..128, 1..10), session_id: u64,
    ) {
        let counters = ConnectionParameters {
            packets_sent: numbers[0], octets_sent: numbers[1], packets_received: numbers[2], octets_received: numbers[3],
            packets_lost: numbers[4], jitter_ms: numbers[5], latency_ms: numbers[6],
        };
        let lines = |payload_type| format!("a=rtpmap:{payload_type} x-codec/8000\r\na=fmtp:{payload_type} a=b\r\n");
        let lines: Vec<(u8, String)> = types.iter().map(|&payload_type| (payload_type, lines(payload_type))).collect();
        let payloads: Vec<Payload<'_>> = lines.iter().map(|(payload_type, attributes)| Payload { payload_type: *payload_type, attributes }).collect();
        let description = Description {
            session_id, version: 1, address: Address::Ip4(ip.into()), port, payloads: &payloads, ptime_ms: ptime, connection: None, crypto: None,
        };
        let message = written(|w| {
            w.response(code, id, None, &text);
            w.parameter_counters(&counters);
            sdp::write(w, &description);
            sdp::write_absent(w);
        });
        let response = Response::parse(&message).unwrap();
        prop_assert_eq!((response.code, response.id), (code, id));
        // A text that looks like a package is one, behind an 8xx code.
        prop_assert!(response.text == text.as_bytes() || (text.starts_with('/') && code / 100 == 8));
        prop_assert_eq!(response.connection_parameters(), Some(counters));
        let session = Session::parse(response.descriptions[0].unwrap()).unwrap();
        prop_assert_eq!((session.address, session.port, session.ptime_ms), (Address::Ip4(ip.into()), port, ptime));
        for (format, payload) in session.formats().zip(&payloads) {
            prop_assert_eq!((format.payload_type, format.parameters), (payload.payload_type, Some(&b"a=b"[..])));
            prop_assert_eq!(format.encoding.map(|e| (e.name, e.clock_rate)), Some((&b"x-codec"[..], 8000)));
        }
        prop_assert!(sdp::is_absent(response.descriptions[1].unwrap()));
    }

    #[test]
    fn flipped_bytes_do_no_harm(pick: prop::sample::Index, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let corpus = corpus();
        let mut bytes = pick.get(&corpus).clone();
        for (at, byte) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        prop_assert_eq!(exercise::datagram(&bytes), exercise::datagram(&bytes));
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise::datagram(&bytes);
        exercise::description(&bytes);
        exercise::value(&bytes);
    }

    #[test]
    fn soup_of_tokens_does_no_harm(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..80)) {
        let text = tokens.concat();
        exercise::value(text.as_bytes());
        exercise::description(format!("v=0\r\n{text}").as_bytes());
        for verb in ["RQNT 1 a@b MGCP 1.0\nX: 1\n", "CRCX 1 a@b MGCP 1.0\n", "200 1 ", "AUEP 1 ", ""] {
            exercise::datagram(format!("{verb}{text}").as_bytes());
        }
    }
}

/// What grammars are made of: mutations of these reach deeper than random bytes.
const TOKENS: &[&str] = &[
    "\r\n",
    "\n",
    ".",
    "\n.\n",
    " ",
    "\t",
    ",",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "\"\"",
    "=",
    ":",
    ";",
    "/",
    "@",
    "$",
    "*",
    "#",
    "-",
    "|",
    "x",
    "1",
    "9",
    "N",
    "A",
    "D",
    "E(",
    "R(",
    "S(",
    "D(",
    "R: ",
    "S: ",
    "L: ",
    "D: ",
    "K: ",
    "N: ",
    "B/PR: ",
    "X-a: ",
    "X+b: ",
    "zz/y",
    "a:PCMU",
    "p:20",
    "k:clear:",
    "m=audio 1 RTP/AVP 0",
    "c=IN IP4 1.1.1.1",
    "a=rtpmap:0 PCMU/8000",
    "v=0",
    "\0",
    "\u{fe}",
    "\r",
    "1-9",
    "A-D",
    "all",
    "co1",
];

#[test]
fn every_cut_does_no_harm() {
    for bytes in corpus() {
        for end in 0..=bytes.len().min(1000) {
            exercise::datagram(&bytes[..end]);
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods)]
fn hostile_datagrams_take_bounded_time() {
    // G-SYN-13. They take under 2 ms in a release build; a quadratic walk over 65,507 bytes takes seconds. Counted is this thread's
    // time on a processor, so that a busy machine changes nothing.
    for (name, unit) in exercise::HOSTILE_UNITS {
        let datagram = exercise::hostile(unit);
        let plain = unit.repeat(exercise::DATAGRAM_MAX / unit.len());
        let start = on_processor();
        exercise::datagram(&datagram);
        exercise::datagram(format!("RQNT 1 a@b MGCP 1.0\nX: 1\nS: {plain}").as_bytes());
        exercise::description(plain.as_bytes());
        exercise::value(plain.as_bytes());
        let taken = on_processor() - start;
        assert!(taken.as_millis() < 1000, "{name}: {taken:?}");
    }
}

/// How long this thread has run on a processor.
fn on_processor() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    std::time::Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}
