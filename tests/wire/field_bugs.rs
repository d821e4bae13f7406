//! Faults met in the field: what the codec has to say about each datagram. What the rest of the gateway owes is replayed elsewhere.

use tollgate::proto::base::HexId;
use tollgate::proto::codec::mgcp::{Code, Command, InfoCode, Mode, Range, Response, Verb, Writer};
use tollgate::proto::codec::peek::{self, Peek};
use tollgate::proto::codec::sdp::{self, Address, Description, Payload, Session};

use crate::data;

/// The input, with what an earlier answer would have supplied filled in.
fn input(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(data("field-bugs").join(name)).expect(name);
    let mut text: String = bytes.iter().map(|&b| char::from(b)).collect();
    for (placeholder, value) in [("{I1}", "C0FFEE"), ("{I2}", "C0FFEF"), ("{NTFY-tx}", "1234")] {
        text = text.replace(placeholder, value);
    }
    text.chars().map(|c| c as u8).collect()
}

/// The return code the codec refuses with: of the command itself, its values, or its session description; 200 when there is none.
fn code(name: &str) -> u16 {
    let bytes = input(name);
    let refusal = Command::parse(&bytes).and_then(|command| {
        command.call()?;
        command.connection()?;
        command.request()?;
        command.mode()?;
        command.options()?;
        command.requested_events()?;
        command.signals()?;
        command.description.map(Session::parse).transpose()
    });
    refusal.err().map_or(200, |refusal| refusal.code())
}

#[test]
fn o01_short_datagrams_are_read_to_their_end_only() {
    let peeked = |name| peek::split(&input(name)).map(|(_, peek)| matches!(peek, Peek::Unreadable)).collect::<Vec<_>>();
    assert_eq!(peeked("O01-mgcp-parse.01.txt"), [false]);
    assert_eq!(code("O01-mgcp-parse.01.txt"), 510);
    assert_eq!(peeked("O01-mgcp-parse.02.txt"), [true]);
    assert_eq!(peeked("O01-mgcp-parse.04.txt"), [true]);
}

#[test]
fn o02_any_empty_line_precedes_the_description() {
    for name in ["O02-mgcp-parse.01.txt", "O02-mgcp-parse.02.txt"] {
        let bytes = input(name);
        let command = Command::parse(&bytes).unwrap();
        assert_eq!(Session::parse(command.description.unwrap()).unwrap().port, 40000, "{name}");
    }
}

#[test]
fn o03_every_line_written_ends_in_cr_lf() {
    let bytes = input("O03-mgcp-encode.txt");
    let command = Command::parse(&bytes).unwrap();
    let payloads = [Payload { payload_type: 0, attributes: "" }];
    let description = Description {
        session_id: 1,
        version: 1,
        address: Address::Ip4([192, 0, 2, 10].into()),
        port: 40_000,
        payloads: &payloads,
        ptime_ms: command.options().unwrap().period_ms.map(|range| range.low),
        connection: None,
        crypto: None,
    };
    let mut buffer = [0; 1000];
    let mut writer = Writer::new(&mut buffer);
    writer.response(200, command.id, None, "OK");
    writer.parameter_hex_id(Code::I, HexId::from_u64(1, 8));
    sdp::write(&mut writer, &description);
    writer.separator();
    writer.command(Verb::Ntfy, 9, command.endpoint.local, command.endpoint.domain);
    writer.parameter(Code::O, b"T/co1");
    sdp::write_raw(&mut writer, b"v=0\nc=IN IP4 192.0.2.50\n");
    let length = writer.finish().unwrap();
    let text = std::str::from_utf8(&buffer[..length]).unwrap();
    assert!(text.ends_with("\r\n") && text.split("\r\n").all(|line| !line.contains(['\r', '\n'])));
}

#[test]
fn o04_letter_case_does_not_matter() {
    let bytes = input("O04-mgcp-parse.01.txt");
    let command = Command::parse(&bytes).unwrap();
    assert_eq!((command.verb, command.id, command.mode()), (Verb::Crcx, 1061, Ok(Some(Mode::RecvOnly))));
    assert_eq!(command.call().unwrap(), HexId::parse(b"A6"));
    assert_eq!(command.options().unwrap().period_ms, Some(Range { low: 20, high: 20 }));
    assert_eq!(code("O04-mgcp-parse.02.txt"), 200);
}

#[test]
fn o05_identifiers_of_33_digits_are_refused() {
    assert_eq!(code("O05-mgcp-parse.txt"), 510);
}

#[test]
fn o06_malformed_media_lines_are_refused() {
    assert_eq!(code("O06-mgcp-parse.01.txt"), 509);
    assert_eq!(code("O06-mgcp-parse.02.txt"), 509);
}

#[test]
fn o07_responses_need_no_commentary() {
    for name in ["O07-mgcp-parse.01.txt", "O07-mgcp-parse.02.txt"] {
        let bytes = input(name);
        let response = Response::parse(&bytes).unwrap();
        assert_eq!((response.code, response.id, response.text), (200, 1234, &b""[..]), "{name}");
    }
}

#[test]
fn o08_versions_are_numbers() {
    assert_eq!(code("O08-mgcp-version.01.txt"), 528);
    assert_eq!(code("O08-mgcp-version.02.txt"), 200);
    assert_eq!(code("O08-mgcp-version.03.txt"), 528);
}

#[test]
fn o09_lists_of_blanks_are_empty_lists() {
    for name in ["O09-mgcp-parse.01.txt", "O09-mgcp-parse.02.txt"] {
        let bytes = input(name);
        assert!(Command::parse(&bytes).unwrap().signals().unwrap().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn o10_codec_lists_keep_their_order() {
    let bytes = input("O10-mgcp-lco.txt");
    let options = Command::parse(&bytes).unwrap().options().unwrap();
    assert_eq!(options.codecs.unwrap().iter().collect::<Vec<_>>(), [&b"PCMA"[..], b"PCMU", b"G729"]);
}

#[test]
fn o11_options_are_compared_without_case() {
    assert_eq!(code("O11-mgcp-lco.txt"), 524);
}

#[test]
fn o12_options_left_out_are_absent() {
    let bytes = input("O12-mgcp-lco.02.txt");
    let command = Command::parse(&bytes).unwrap();
    assert_eq!((command.get(Code::L), command.options()), (None, Ok(Default::default())));
    let bytes = input("O12-mgcp-lco.03.txt");
    let asked: Vec<InfoCode<'_>> = Command::parse(&bytes).unwrap().requested_info().collect();
    assert_eq!(asked, [InfoCode::Code(Code::L), InfoCode::Code(Code::M)]);
}

#[test]
fn o14_o15_descriptions_may_be_terse() {
    assert_eq!(code("O14-mgcp-sdp.txt"), 200);
    assert_eq!(code("O15-mgcp-sdp.txt"), 200);
    let bytes = input("O14-mgcp-sdp.txt");
    let session = Session::parse(Command::parse(&bytes).unwrap().description.unwrap()).unwrap();
    let g729 = session.formats().nth(1).unwrap();
    assert_eq!((g729.payload_type, g729.encoding.unwrap().name, g729.parameters), (18, &b"G729"[..], Some(&b"annexb=no"[..])));
}

#[test]
fn o16_o19_o20_each_fault_has_its_code() {
    for (name, expected) in [
        ("O16-mgcp-ext.txt", 511),
        ("O19-mgcp-errors.01.txt", 510),
        ("O19-mgcp-errors.02.txt", 517),
        ("O19-mgcp-errors.03.txt", 504),
        ("O19-mgcp-errors.04.txt", 200),
        ("O20-mgcp-errors.01.txt", 504),
        ("O20-mgcp-errors.02.txt", 504),
        ("O20-mgcp-errors.03.txt", 500),
    ] {
        assert_eq!(code(name), expected, "{name}");
    }
}

#[test]
fn o33_o34_names_that_are_none() {
    assert_eq!(code("O33-mgcp-wild.01.txt"), 500);
    assert_eq!(code("O33-mgcp-wild.02.txt"), 200);
    assert_eq!(code("O34-mgcp-endpoint.txt"), 500);
}

#[test]
fn o36_o37_o38_events() {
    for (name, expected) in [
        ("O36-mgcp-events.01.txt", 200),
        ("O36-mgcp-events.02.txt", 200),
        ("O36-mgcp-events.03.txt", 510),
        ("O37-mgcp-events.01.txt", 200),
        ("O37-mgcp-events.02.txt", 200),
        ("O38-mgcp-events.01.txt", 200),
        ("O38-mgcp-events.02.txt", 523),
        ("O38-mgcp-events.03.txt", 523),
    ] {
        assert_eq!(code(name), expected, "{name}");
    }
}

#[test]
fn o48_many_messages_are_cut_off_at_the_limit() {
    let bytes = input("O48-mgcp-security.03.txt");
    let mut messages = peek::split(&bytes);
    assert_eq!(messages.by_ref().count(), peek::MESSAGES_MAX);
    assert!(messages.overflowed());
    assert_eq!(code("O48-mgcp-security.02.txt"), 500);
}
