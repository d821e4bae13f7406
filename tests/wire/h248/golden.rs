//! Golden messages: each file of `tests/data/h248` written anew, compact and pretty, compared with the file beside it; or why not.
//!
//! After a wanted change, `WIRE_UPDATE=1 cargo test --test wire h248` writes the expectations anew; read the difference before keeping it.

use std::fmt::Write as _;

use tollgate::proto::codec::h248::{
    ActionPart, Content, Descriptor, MediaPart, Message, Refusal, ReplyPart, Shape, Side, StreamPart, Style, Transaction, Transactions,
};

use super::transcribed;
use crate::{data, files};

#[test]
fn messages_are_read_and_written_as_expected() {
    let update = std::env::var_os("WIRE_UPDATE").is_some();
    for (name, message) in files("h248", ".txt") {
        let found = told(&message);
        let path = data("h248").join(name.replace(".txt", ".expect"));
        if update {
            std::fs::write(&path, &found).expect("the expectation can be written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn session_descriptions_behind_each_other_are_alternatives() {
    // LR-04, LR-07: in order of preference, lines ended by CR LF or by CR alone (TXT-13)
    let text = std::fs::read(data("h248").join("alternatives.txt")).unwrap();
    let mut shape = Shape::new();
    let Ok(Content::Transactions(mut list)) = Message::parse(&text, &mut shape).and_then(|message| message.content()) else { panic!() };
    let Some(Ok(Transaction::Request(request))) = list.next() else { panic!() };
    let Some(Ok(ActionPart::Command(command))) = request.actions().next().unwrap().unwrap().parts().next() else { panic!() };
    let Some(Ok((_, Descriptor::Media(media)))) = command.descriptors().next() else { panic!() };
    let descriptions: Vec<Vec<&[u8]>> = media
        .parts()
        .map(|part| match part.unwrap() {
            MediaPart::One(StreamPart::Local(octets) | StreamPart::Remote(octets)) => octets.descriptions().collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(descriptions.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    assert!(descriptions[0][0].ends_with(b"RTP/AVP 0") && descriptions[0][1].ends_with(b"RTP/AVP 8"));
    assert!(descriptions[0].iter().all(|text| text.starts_with(b"v=0")));
}

fn told(message: &[u8]) -> String {
    let mut out = String::new();
    match (transcribed(message, Style::Compact), transcribed(message, Style::Pretty)) {
        (Ok(compact), Ok(pretty)) => {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is written is text");
            write!(out, "{}\n----\n{}", text(compact), text(pretty)).unwrap();
        }
        (compact, pretty) => {
            assert_eq!(compact, pretty);
            faults(message, &mut out);
        }
    }
    out
}

fn refused(what: &str, refusal: Refusal, out: &mut String) {
    writeln!(out, "{what} refused {} at {}: {}", refusal.code(), refusal.offset, refusal.text()).unwrap();
}

/// Each part of a message, and what is wrong with it.
fn faults(text: &[u8], out: &mut String) {
    let mut shape = Shape::new();
    match Message::parse(text, &mut shape).and_then(|message| message.content()) {
        Ok(Content::Transactions(list)) => transactions(list, out),
        Ok(Content::Error(error)) => writeln!(out, "error {}", error.code).unwrap(),
        Err(refusal) => refused("message", refusal, out),
    }
}

fn transactions(list: Transactions<'_>, out: &mut String) {
    for transaction in list {
        match transaction {
            Ok(Transaction::Request(request)) => {
                writeln!(out, "request {}", request.id).unwrap();
                for action in request.actions() {
                    match action {
                        Ok(action) => parts(&action, Side::Request, out),
                        Err(refusal) => refused(" action", refusal, out),
                    }
                }
            }
            Ok(Transaction::Reply(reply)) => {
                writeln!(out, "reply {}", reply.id).unwrap();
                for part in reply.actions() {
                    match part {
                        Ok(ReplyPart::Action(action)) => parts(&action, Side::Reply, out),
                        Ok(ReplyPart::Error(error)) => writeln!(out, " error {}", error.code).unwrap(),
                        Err(refusal) => refused(" action", refusal, out),
                    }
                }
            }
            Ok(other) => writeln!(out, "{other:?}").unwrap(),
            Err(refusal) => refused("transaction", refusal, out),
        }
    }
}

fn parts(action: &tollgate::proto::codec::h248::Action<'_>, side: Side, out: &mut String) {
    writeln!(out, " context {:?}", action.context).unwrap();
    for part in action.parts() {
        match part {
            Ok(ActionPart::Command(command)) => {
                let name = String::from_utf8_lossy(command.termination.text()).into_owned();
                writeln!(out, "  {:?} {name}", command.verb).unwrap();
                if let Err(refusal) = command.check(side) {
                    refused("  ", refusal, out);
                }
            }
            Ok(other) => writeln!(out, "  {other:?}").unwrap(),
            Err(refusal) => refused("  command", refusal, out),
        }
    }
}
