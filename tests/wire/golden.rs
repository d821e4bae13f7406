//! Golden datagrams: what is read from each file of `tests/data/wire`, compared with the file beside it.
//!
//! After a wanted change, `WIRE_UPDATE=1 cargo test --test wire golden` writes the expectations anew; read the difference before keeping it.

use std::fmt::Write as _;

use tollgate::proto::codec::mgcp::{
    Action, Command, CommandLine, DigitMap, Event, EventList, Extension, Parameter, ParameterList, Refusal, Response,
};
use tollgate::proto::codec::peek::{self, Peek};
use tollgate::proto::codec::sdp::Session;

use crate::{data, files};

#[test]
fn datagrams_read_as_expected() {
    let update = std::env::var_os("WIRE_UPDATE").is_some();
    for (name, bytes) in files("wire", ".txt") {
        let found = datagram(&bytes);
        let path = data("wire").join(name.replace(".txt", ".expect"));
        if update {
            std::fs::write(&path, &found).expect("the expectation can be written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(found, expected, "{name}");
    }
}

fn show(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn datagram(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (range, peek) in peek::split(bytes) {
        let message = &bytes[range.clone()];
        writeln!(out, "message {range:?}").unwrap();
        match peek {
            Peek::Command(CommandLine { verb, id, endpoint, .. }) => {
                writeln!(out, "  command {verb:?} {id} {}", show(endpoint)).unwrap();
                match Command::parse(message).or_else(|refusal| Command::parse_at_agent(message).map_err(|_| refusal)) {
                    Ok(read) => command(&read, &mut out),
                    Err(refused) => refusal(refused, &mut out),
                }
            }
            Peek::Response { code, id } => {
                writeln!(out, "  response {code} {id}").unwrap();
                match Response::parse(message) {
                    Ok(read) => response(&read, &mut out),
                    Err(refused) => refusal(refused, &mut out),
                }
            }
            Peek::Unreadable => writeln!(out, "  unreadable").unwrap(),
        }
    }
    out
}

fn refusal(refusal: Refusal, out: &mut String) {
    writeln!(out, "  refused {} at {}: {}", refusal.code(), refusal.offset, refusal.text()).unwrap();
}

fn value<T: std::fmt::Debug>(name: &str, read: Result<Option<T>, Refusal>, out: &mut String) {
    match read {
        Ok(Some(read)) => writeln!(out, "  {name} = {read:?}").unwrap(),
        Ok(None) => {}
        Err(refused) => refusal(refused, out),
    }
}

fn command(command: &Command<'_>, out: &mut String) {
    for code in command.codes().iter() {
        writeln!(out, "  {}: {}", code.name(), show(command.get(code).unwrap_or_default())).unwrap();
    }
    for Extension { package, name, value } in command.extensions() {
        writeln!(out, "  extension {} {} {}", show(package), show(name), show(value)).unwrap();
    }
    value("mode", command.mode(), out);
    value("restart method", command.restart_method().map(|method| method.map(|m| show(m.name()))), out);
    match command.options() {
        Ok(options) if options != Default::default() => {
            let codecs: Vec<String> = options.codecs.iter().flat_map(|list| list.iter()).map(show).collect();
            writeln!(out, "  options codecs {} period {:?} gain {:?}", codecs.join(" "), options.period_ms, options.gain).unwrap();
            for option in options.packages() {
                writeln!(out, "  option {} {} {}", show(option.package), show(option.name), show(option.value)).unwrap();
            }
        }
        Ok(_) => {}
        Err(refused) => refusal(refused, out),
    }
    match command.notified_entity() {
        Ok(Some(Some(entity))) => writeln!(out, "  notified entity {:?} port {}", entity.domain, entity.port).unwrap(),
        Ok(Some(None)) => writeln!(out, "  notified entity cleared").unwrap(),
        Ok(None) => {}
        Err(refused) => refusal(refused, out),
    }
    let lists = [
        ("requested", command.requested_events()),
        ("signals", command.signals()),
        ("detected", command.detect_events()),
        ("persistent", command.persistent_events()),
        ("observed", command.observed_events()),
    ];
    for (name, list) in lists {
        match list {
            Ok(Some(list)) => events(name, list, 2, out),
            Ok(None) => {}
            Err(refused) => refusal(refused, out),
        }
    }
    match command.digit_map() {
        Ok(Some(Some(map))) => digit_map(map, 2, out),
        Ok(_) => {}
        Err(refused) => refusal(refused, out),
    }
    command.description.into_iter().for_each(|text| session(text, out));
}

fn response(response: &Response<'_>, out: &mut String) {
    writeln!(out, "  text {} package {:?}", show(response.text), response.package.map(show)).unwrap();
    for code in response.codes().iter() {
        let values: Vec<String> = response.values(code).map(show).collect();
        writeln!(out, "  {}: {}", code.name(), values.join(" ")).unwrap();
    }
    response.descriptions.into_iter().flatten().for_each(|text| session(text, out));
}

fn session(text: &[u8], out: &mut String) {
    match Session::parse(text) {
        Ok(session) => {
            writeln!(out, "  session {:?} port {} {:?} ptime {:?}", session.address, session.port, session.direction, session.ptime_ms)
                .unwrap();
            for format in session.formats() {
                let encoding = format.encoding.map(|e| format!("{}/{}", e.name.escape_ascii(), e.clock_rate));
                writeln!(out, "    payload {} {encoding:?} {:?}", format.payload_type, format.parameters.map(show)).unwrap();
            }
        }
        Err(refused) => refusal(refused, out),
    }
}

fn events(name: &str, list: EventList<'_>, indent: usize, out: &mut String) {
    writeln!(out, "{:indent$}{name}", "").unwrap();
    for event in list.iter() {
        one_event(&event, indent + 2, out);
    }
}

fn one_event(event: &Event<'_>, indent: usize, out: &mut String) {
    writeln!(out, "{:indent$}event {} connection {:?}", "", show(event.raw), event.connection).unwrap();
    for action in event.actions.iter().flat_map(|actions| actions.iter()) {
        match action {
            Action::Base(set) => writeln!(out, "{:indent$}  action {set:?}", "").unwrap(),
            Action::Package { package, name, parameters: list } => {
                writeln!(out, "{:indent$}  action {} {}", "", show(package), show(name)).unwrap();
                list.into_iter().for_each(|list| parameters(list, indent + 4, out));
            }
            Action::Embedded(embedded) => {
                embedded.requested.into_iter().for_each(|list| events("embedded requested", list, indent + 2, out));
                embedded.signals.into_iter().for_each(|list| events("embedded signals", list, indent + 2, out));
                embedded.digit_map.into_iter().for_each(|map| digit_map(map, indent + 2, out));
            }
        }
    }
    event.parameters.into_iter().for_each(|list| parameters(list, indent + 2, out));
}

fn parameters(list: ParameterList<'_>, indent: usize, out: &mut String) {
    for parameter in list.iter() {
        match parameter {
            Parameter::Value(value) => writeln!(out, "{:indent$}value {}", "", show(&value.bytes().collect::<Vec<_>>())).unwrap(),
            Parameter::Named { name, values } => {
                writeln!(out, "{:indent$}named {}", "", show(name)).unwrap();
                parameters(values, indent + 2, out);
            }
        }
    }
}

fn digit_map(map: DigitMap<'_>, indent: usize, out: &mut String) {
    writeln!(out, "{:indent$}digit map {}", "", show(map.as_bytes())).unwrap();
    for string in map.strings() {
        let positions: Vec<String> = string
            .map(|position| {
                let symbols: Vec<u8> = position.symbols.iter().collect();
                format!("{}{}", symbols.escape_ascii(), if position.repeated { "." } else { "" })
            })
            .collect();
        writeln!(out, "{:indent$}  {}", "", positions.join(" ")).unwrap();
    }
}
