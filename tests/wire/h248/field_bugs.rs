//! Faults met in the field, O49 to O59: what the codec has to say about each message.

use tollgate::proto::codec::h248::{
    Action, ActionPart, Command, Content, ContextId, Descriptor, LocalParameter, MediaPart, Message, Shape, Side, StreamPart,
    TerminationId, Transaction, Verb,
};
use tollgate::proto::codec::sdp::Session;

use crate::data;

/// Gives the message of a file to `look`, action by action.
fn actions(name: &str, mut look: impl FnMut(Action<'_>)) -> u16 {
    let text = std::fs::read(data("field-bugs").join(name)).expect(name);
    let text = String::from_utf8(text).expect("text").replace("{SC-tx}", "9001");
    let mut shape = Shape::new();
    let message = match Message::parse(text.as_bytes(), &mut shape) {
        Ok(message) => message,
        Err(refusal) => return refusal.code(),
    };
    let Ok(Content::Transactions(transactions)) = message.content() else { panic!("{name}: no transactions") };
    let mut code = 0;
    for transaction in transactions {
        match transaction {
            Ok(Transaction::Request(request)) => {
                for action in request.actions() {
                    match action {
                        Ok(action) => look(action),
                        Err(refusal) => code = refusal.code(),
                    }
                }
            }
            Ok(_) => {}
            Err(refusal) => code = refusal.code(),
        }
    }
    code
}

/// The first error code that the message is refused with; 0 when there is none.
fn code(name: &str) -> u16 {
    let mut inner = 0;
    let outer = actions(name, |action| {
        for part in action.parts() {
            let refusal = match part {
                Ok(ActionPart::Command(command)) => command.check(Side::Request).err(),
                Ok(_) => None,
                Err(refusal) => Some(refusal),
            };
            if inner == 0 {
                inner = refusal.map_or(0, |refusal| refusal.code());
            }
        }
    });
    if outer != 0 { outer } else { inner }
}

fn commands(name: &str, mut look: impl FnMut(Command<'_>)) {
    actions(name, |action| {
        for part in action.parts() {
            if let Ok(ActionPart::Command(command)) = part {
                look(command);
            }
        }
    });
}

#[test]
fn o49_an_empty_statistics_descriptor_is_read() {
    assert_eq!(code("O49-h248.01.txt"), 447);
    assert_eq!(code("O49-h248.02.txt"), 0);
    commands("O49-h248.02.txt", |command| {
        let (_, descriptor) = command.descriptors().next().unwrap().unwrap();
        assert!(matches!(descriptor, Descriptor::Audit(audit) if audit.is_empty()));
    });
}

#[test]
fn o50_keywords_in_values_are_values() {
    assert_eq!(code("O50-h248.txt"), 0);
    let mut seen = 0;
    commands("O50-h248.txt", |command| {
        let Descriptor::Media(media) = command.descriptors().next().unwrap().unwrap().1 else { panic!("media") };
        for part in media.parts() {
            match part.unwrap() {
                MediaPart::One(StreamPart::Control(control)) => {
                    let Some(Ok(LocalParameter::Property(property))) = control.parameters().nth(1) else { panic!("a property") };
                    assert!(property.name.is("foo", "mode") && property.value.one().unwrap().is("context"));
                    seen += 1;
                }
                MediaPart::One(StreamPart::Local(octets)) => {
                    assert_eq!(Session::parse(octets.descriptions().next().unwrap()).unwrap().port, 40_000);
                    seen += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(seen, 2);
}

#[test]
fn o51_a_parameter_called_ct_is_a_parameter() {
    assert_eq!(code("O51-h248.txt"), 0);
}

#[test]
fn o52_marks_are_read_on_every_command() {
    let mut marks = Vec::new();
    for name in ["O52-h248.01.txt", "O52-h248.02.txt", "O52-h248.03.txt"] {
        commands(name, |command| marks.push((command.verb, command.optional, command.wildcarded)));
    }
    assert_eq!(
        marks,
        [(Verb::AuditValue, false, true), (Verb::Modify, true, false), (Verb::AuditValue, false, false), (Verb::Add, true, true)]
    );
}

#[test]
fn o53_o54_descriptions_with_choices_and_attributes_are_read() {
    assert_eq!(code("O53-h248.txt"), 0);
    assert_eq!(code("O54-h248.txt"), 0);
    commands("O54-h248.txt", |command| {
        let Descriptor::Media(media) = command.descriptors().next().unwrap().unwrap().1 else { panic!("media") };
        let Some(Ok(MediaPart::One(StreamPart::Remote(octets)))) = media.parts().next() else { panic!("remote") };
        let session = Session::parse(octets.descriptions().next().unwrap()).unwrap();
        let dtmf = session.formats().nth(1).unwrap();
        assert_eq!((dtmf.payload_type, dtmf.parameters), (101, Some(&b"0-15,32"[..])));
    });
}

#[test]
fn o55_reserved_context_numbers_are_no_wildcards() {
    assert_eq!(code("O55-h248.01.txt"), 422);
    let mut contexts = Vec::new();
    actions("O55-h248.02.txt", |action| contexts.push(action.context));
    assert_eq!(contexts, [ContextId::Number(99_999)]);
}

#[test]
fn o56_address_and_other_controller_exclude_each_other() {
    let text = std::fs::read_to_string(data("field-bugs").join("O56-h248.txt")).unwrap().replace("{SC-tx}", "9001");
    let refusal = super::transcribed(text.as_bytes(), Default::default()).unwrap_err();
    assert_eq!((refusal.code(), refusal.text()), (442, "address and MgcIdToTry exclude each other"));
}

#[test]
fn o57_large_messages_are_read_to_their_end() {
    assert_eq!(code("O57-h248.01.txt"), 0);
    assert_eq!(code("O57-h248.02.txt"), 0);
    let mut properties = 0;
    commands("O57-h248.02.txt", |command| {
        let Descriptor::Media(media) = command.descriptors().next().unwrap().unwrap().1 else { panic!("media") };
        let Some(Ok(MediaPart::One(StreamPart::Control(control)))) = media.parts().next() else { panic!("control") };
        properties = control.parameters().filter(|parameter| matches!(parameter, Ok(LocalParameter::Property(_)))).count();
    });
    assert!(properties > 3000, "{properties}");
}

#[test]
fn o58_empty_braces_clear_signals() {
    for name in ["O58-h248.01.txt", "O58-h248.02.txt"] {
        assert_eq!(code(name), 0, "{name}");
    }
    commands("O58-h248.02.txt", |command| {
        let (_, descriptor) = command.descriptors().next().unwrap().unwrap();
        assert!(matches!(descriptor, Descriptor::Signals(signals) if signals.is_empty()));
    });
}

#[test]
fn o59_requests_for_what_is_out_of_service_are_read() {
    assert_eq!((code("O59-h248.01.txt"), code("O59-h248.02.txt")), (0, 0));
    let mut names = Vec::new();
    commands("O59-h248.01.txt", |command| names.push(command.termination.chooses()));
    assert_eq!(names, [false, true]);
    assert!(TerminationId::parse(b"ds/ds1-4/1").is_some());
}
