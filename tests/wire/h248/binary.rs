//! The binary encoding (RFC 3525 Annex A): it says what the text says, both ways; nothing that arrives breaks it; tshark reads what we write.

use tollgate::proto::base::Rng;
use tollgate::proto::codec::h248::{Shape, Style, binary, exercise};

use super::super::tshark::dissect;
use super::messages::MESSAGES;
use super::{corpus, transcribed};
use crate::replay::mutated;

fn text(body: &str) -> Vec<u8> {
    format!("!/1 [192.0.2.1]:2945\n{body}").into_bytes()
}

/// Those messages, and what of the corpus can be said in octets.
fn messages() -> Vec<(String, Vec<u8>)> {
    let own = MESSAGES.iter().map(|(name, body)| ((*name).to_owned(), text(body)));
    own.chain(corpus().into_iter().filter(|(_, message)| octets(message).is_some())).collect()
}

fn octets(text: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let length = binary::from_text(text, &mut Shape::new(), &mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

fn said(octets: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let length = binary::to_text(octets, &mut buffer)?;
    buffer.truncate(length);
    Some(buffer)
}

/// What two texts must have in common: everything but the letter case of names, and how a session description ends.
fn canonical(text: &[u8], name: &str) -> String {
    let compact =
        transcribed(text, Style::Compact).unwrap_or_else(|refusal| panic!("{name}: {refusal:?} {}", String::from_utf8_lossy(text)));
    String::from_utf8_lossy(&compact).replace("\r\n", "\n").replace('\r', "\n").to_ascii_lowercase()
}

#[test]
fn octets_say_what_the_text_says() {
    // BIN-01 to BIN-15
    let messages = messages();
    assert!(messages.len() >= MESSAGES.len() + 12, "{}", messages.len());
    let mut widest = 0.0f64;
    for (name, message) in &messages {
        let octets = octets(message).unwrap_or_else(|| panic!("{name} has no octets"));
        let back = said(&octets).unwrap_or_else(|| panic!("{name}: {octets:02x?}"));
        if !name.starts_with("authenticated") && !name.starts_with("lenient") {
            assert_eq!(canonical(&back, name), canonical(message, name), "{name}");
        }
        assert_eq!(self::octets(&back).as_ref(), Some(&octets), "{name}");
        widest = widest.max(octets.len() as f64 / transcribed(message, Style::Compact).unwrap().len() as f64);
    }
    // A gateway bounds its messages by their text, and has twice as much room for the octets.
    assert!(widest < 2.0, "{widest}");
}

#[test]
fn octets_are_those_of_the_module() {
    // Put together by hand from Annex A: AUTOMATIC TAGS, choices in tags of their own, names in four octets, values wrapped twice.
    let message = octets(b"!/1 [192.0.2.10]:2945\nT=11{C=-{N=ROOT{OE=7{20260101T00000012:chp/mgcon{reduction=20}}}}}").unwrap();
    let expected = [
        "30 6f a1 6d 80 01 01",
        "a1 0c a0 0a 80 04 c0 00 02 0a 81 02 0b 81",
        "a2 5a a1 58 a0 56 80 01 0b a1 51 30 4f 80 01 00 a3 4a 30 48 a0 46 a6 44",
        "a0 0e 30 0c a0 00 81 08 ff ff ff ff ff ff ff ff",
        "a1 32 80 01 07 a1 2d 30 2b",
        "80 04 00 29 00 01",
        "a2 0d 30 0b 80 02 00 01 a1 05 04 03 02 01 14",
        "a3 14 80 08 32 30 32 36 30 31 30 31 81 08 30 30 30 30 30 30 31 32",
    ];
    let expected: Vec<u8> = expected.join(" ").split(' ').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    assert_eq!(message, expected, "{message:02x?}");
}

#[test]
fn what_a_later_version_adds_and_lengths_left_open_are_read() {
    // BIN-01: an unknown component at the end of a request, and every length indefinite.
    let closed = octets(&text("T=1{C=-{AV=ROOT{AT{PG}}}}")).unwrap();
    let open = open_lengths(&closed);
    assert_eq!(said(&open), said(&closed));
    // The audit of a PG: a component with number 5 behind its own, in a descriptor that may grow.
    let at = closed.windows(4).rposition(|four| four[0] == 0xa1 && four[2] == 0x80).unwrap();
    let mut grown = closed[..at].to_vec();
    let inside = &closed[at + 2..];
    grown.extend([0xa1, 0x80]);
    grown.extend(inside);
    grown.extend([0x85, 1, 9, 0x9f, 0x81, 0x02, 1, 7, 0, 0]);
    // The lengths around it are left open, so that they need not be counted.
    assert_eq!(said(&open_lengths_to(&grown, at)), said(&closed));
}

/// The same message with every length of a constructed element left open.
fn open_lengths(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = octets;
    while let [tag, length, behind @ ..] = rest {
        assert!(*length < 0x80, "a short message");
        let (inside, next) = behind.split_at(usize::from(*length));
        if tag & 0x20 != 0 {
            out.extend([*tag, 0x80]);
            out.extend(open_lengths(inside));
            out.extend([0, 0]);
        } else {
            out.extend([*tag, *length]);
            out.extend(inside);
        }
        rest = next;
    }
    out
}

/// The lengths of the elements that are open at `until`, which go to the end of the message, left open.
fn open_lengths_to(octets: &[u8], until: usize) -> Vec<u8> {
    let (mut out, mut at, mut open) = (Vec::new(), 0, 0);
    while at < until {
        let (tag, length) = (octets[at], usize::from(octets[at + 1]));
        if tag & 0x20 != 0 && at + 2 + length > until {
            out.extend([tag, 0x80]);
            open += 1;
            at += 2;
        } else {
            out.extend(&octets[at..at + 2 + length]);
            at += 2 + length;
        }
    }
    out.extend(&octets[until..]);
    out.extend(std::iter::repeat_n(0, 2 * open));
    out
}

#[test]
fn values_are_understood_as_their_text_too() {
    // Controllers that do not wrap values twice (OTP's megaco leaves it to its user).
    let wrapped = octets(&text("T=1{C=7{MF=rtp/1{M{O{tdmc/ec=on,nt/jit=40}}}}}")).unwrap();
    let find = |octets: &[u8], value: &[u8]| octets.windows(value.len()).position(|window| window == value).unwrap();
    let mut bare = wrapped.clone();
    // `02 01 28` and `01 01 ff` of three octets become texts of three.
    for (value, text) in [([4, 3, 2, 1, 40], [4, 3, b'0', b'4', b'0']), ([4, 3, 1, 1, 255], [4, 3, b'o', b'f', b'f'])] {
        let at = find(&bare, &value);
        bare[at..at + 5].copy_from_slice(&text);
    }
    let read = String::from_utf8(said(&bare).unwrap()).unwrap();
    assert!(read.contains("tdmc/ec=off,nt/jit=040"), "{read}");
}

#[test]
fn an_automatic_gain_is_no_gain_of_minus_one() {
    for (gain, value, back) in [("0xffffffff", &[4, 7, 2, 5, 0, 255, 255, 255, 255][..], "4294967295"), ("-1", &[4, 3, 2, 1, 255], "-1")] {
        let octets = octets(&text(&format!("T=1{{C=7{{MF=rtp/1{{M{{O{{tdmc/gain={gain}}}}}}}}}}}"))).unwrap();
        assert!(octets.windows(value.len()).any(|window| window == value), "{octets:02x?}");
        assert!(String::from_utf8(said(&octets).unwrap()).unwrap().contains(&format!("tdmc/gain={back}}}")));
    }
}

#[test]
fn hexadecimal_digits_are_octets() {
    // TXT-22: the first digit is the upper half.
    let message = octets(b"!/1 MTP{1BD8}\nPN=1{}").unwrap();
    let digits = [0x84, 2, 0x1b, 0xd8];
    assert!(message.windows(4).any(|window| window == digits), "{message:02x?}");
    assert!(said(&message).unwrap().starts_with(b"!/1 MTP{1BD8}"));
}

#[test]
fn texts_in_octets_end_nothing() {
    // A string from outside is never taken for the grammar's marks: an error text, a line of a description, a name.
    let message = octets(&text("P=1{C=-{A=rtp/1{M{L{\nv=0\ns=xxxx\n}}},ER=500{\"yyyy\"}}}")).unwrap();
    let mut evil = message.clone();
    for (value, text) in [(b"xxxx", b"}}\n{"), (b"yyyy", b"\"}}T")] {
        let at = evil.windows(4).position(|window| window == value).unwrap();
        evil[at..at + 4].copy_from_slice(text);
    }
    let read = said(&evil).unwrap();
    let read = String::from_utf8(transcribed(&read, Style::Compact).unwrap()).unwrap();
    assert!(read.contains("s=\\}\\} {") && read.contains("ER=500{\"'}}T\"}"), "{read}");
    let mut evil = octets(b"!/1 <aaaa.example.net>:2945\nPN=1{}").unwrap();
    let at = evil.windows(4).position(|window| window == b"aaaa").unwrap();
    evil[at..at + 4].copy_from_slice(b"a> T");
    assert_eq!(said(&evil), None);
}

#[test]
fn mutated_octets_break_nothing() {
    let mut rng = Rng::new(7);
    let (mut read, mut refused) = (0u32, 0u32);
    let (mut shape, mut text, mut buffer) = (Shape::new(), vec![0; 70_000], vec![0; 200_000]);
    for (name, message) in messages() {
        let octets = octets(&message).unwrap();
        for _ in 0..60 {
            // Lengths that are wrong lose the message, so half of the mutants keep theirs.
            let mut mutant = octets.clone();
            if rng.chance(500_000) {
                let at = rng.below(mutant.len() as u64) as usize;
                mutant[at] = if rng.chance(500_000) { mutant[at] ^ 1 << rng.below(8) } else { rng.next() as u8 };
            } else {
                mutant = mutated(std::slice::from_ref(&octets), &mut rng);
            }
            exercise::octets(&mutant, &mut shape, [&mut text, &mut buffer]);
            match said(&mutant) {
                Some(_) => read += 1,
                None => refused += 1,
            }
        }
        // Cut anywhere, it is no message.
        for end in (0..octets.len()).step_by(3) {
            assert_eq!(said(&octets[..end]), None, "{name} up to {end}");
        }
    }
    assert!(read > 300 && refused > 300, "{read} read, {refused} refused");
}

#[test]
fn hostile_octets_are_refused_and_what_is_sound_is_read_however_it_nests() {
    for (unit, length) in
        [(&[0x30, 0x80][..], 60_000), (&[0x30, 0x82, 0xff, 0xf0], 60_000), (&[0xa1, 0], 60_000), (&[0xff; 7], 60_000), (&[0], 60_000)]
    {
        let octets: Vec<u8> = unit.iter().copied().cycle().take(length).collect();
        assert_eq!(said(&octets), None);
    }
    // An extension of thousands of parts, nested as deeply as anything may be, all lengths open.
    let closed = octets(&text("PN=1{}")).unwrap();
    let mut grown = open_lengths(&closed);
    grown.truncate(grown.len() - 2);
    let (open, close) = ([0xa5, 0x80].repeat(20), [0, 0].repeat(20));
    grown.extend([open, [0x80, 0].repeat(20_000), close, vec![0, 0]].concat());
    assert_eq!(said(&grown), said(&closed));
    // As many small parts as fit: each is read once, and what does not fit is refused, not cut.
    let many = format!("T=1{{C=-{{MF=ds/ds1_7/1{{E=1{{{}}}}}}}}}", vec!["dd/d5"; 1500].join(","));
    let many = octets(&text(&many)).unwrap();
    assert!(said(&many).is_some() && binary::to_text(&many, &mut [0; 1000]).is_none());
    assert!(binary::from_text(&said(&many).unwrap(), &mut Shape::new(), &mut [0; 1000]).is_err());
}

#[test]
fn tshark_reads_our_octets() {
    // Its dissector knows fewer packages than there are, and says so; it must find every element where it belongs. Replies to audits in version 1 it
    // takes for those of RFC 3015, which had no choice there.
    let is_audited =
        |text: &[u8]| text.windows(3).any(|three| matches!(three, b"AV=" | b"AC=")) && !text.windows(2).any(|two| two == b"T=");
    let texts = messages().into_iter().map(|(name, text)| (name, transcribed(&text, Style::Compact).unwrap()));
    let messages: Vec<(String, Vec<u8>)> =
        texts.filter(|(_, text)| !is_audited(text)).map(|(name, text)| (name, octets(&text).unwrap())).collect();
    let payloads = messages.iter().map(|(_, message)| message.as_slice());
    let Some(text) = dissect("2945,2945", payloads, &["-d", "udp.port==2945,h248", "-V"]) else { return };
    let frames: Vec<&str> = text.split("\nFrame ").collect();
    assert_eq!(frames.len(), messages.len());
    for (frame, (name, message)) in frames.iter().zip(&messages) {
        assert!(frame.contains("H.248 MEGACO"), "{name}: not taken for H.248\n{message:02x?}\n{frame}");
        for mark in ["Malformed", "BER Error", "Dissector bug"] {
            assert!(!frame.contains(mark), "{name}: {mark}\n{message:02x?}\n{frame}");
        }
    }
}
