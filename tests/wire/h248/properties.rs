//! What holds for every message: writing is stable, white space does not matter, nothing that arrives breaks the reader.

use std::fmt::Write as _;

use tollgate::proto::base::Rng;
use tollgate::proto::codec::h248::{Shape, Style, exercise};

use super::{corpus, transcribed};
use crate::replay::{inputs, mutated, seeds};

#[test]
fn what_is_written_is_read_as_the_same() {
    for (name, message) in corpus() {
        let compact = transcribed(&message, Style::Compact).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        let pretty = transcribed(&message, Style::Pretty).unwrap();
        for written in [&compact, &pretty] {
            assert_eq!(transcribed(written, Style::Compact).as_ref(), Ok(&compact), "{name}");
            assert_eq!(transcribed(written, Style::Pretty).as_ref(), Ok(&pretty), "{name}");
        }
    }
}

/// White space and comments put around every mark that may have them, outside quotes and octets (TXT-03, TXT-04, TXT-05).
fn spaced(compact: &str, rng: &mut Rng) -> String {
    const SPACES: [&str; 8] = [" ", "\t", "\r", "\n", "\r\n", "; a \"comment\" {\n", ";}\r", "\t ;\r\n"];
    let (mut out, mut quoted, mut octets) = (String::new(), false, false);
    let (head, body) = compact.split_once('\n').unwrap();
    out.push_str(head);
    out.push('\n');
    for (at, c) in body.char_indices() {
        let starts_octets = c == '{' && ["L{\n", "R{\n"].iter().any(|mark| body.get(at - 1..at + 2) == Some(mark));
        let inside = octets;
        octets = (octets && (c != '}' || body[..at].ends_with('\\'))) || starts_octets;
        quoted ^= c == '"' && !octets;
        let around = !quoted && !octets && "={},".contains(c);
        let space = |rng: &mut Rng| SPACES[rng.below(SPACES.len() as u64) as usize];
        if around && !inside && rng.chance(500_000) {
            out.push_str(space(rng));
        }
        out.push(c);
        if around && rng.chance(500_000) {
            out.push_str(space(rng));
        }
    }
    out
}

#[test]
fn white_space_and_comments_change_nothing() {
    let mut rng = Rng::new(5);
    for (name, message) in corpus() {
        let compact = String::from_utf8(transcribed(&message, Style::Compact).unwrap()).unwrap();
        // A digit map is text of its own, in which a comment would be none.
        if compact.contains("DM=") {
            continue;
        }
        for _ in 0..40 {
            let text = spaced(&compact, &mut rng);
            let again = transcribed(text.as_bytes(), Style::Compact).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(again.as_ref(), Ok(&compact), "{name}: {text}");
        }
    }
}

#[test]
fn letter_case_of_keywords_does_not_matter() {
    for (name, message) in corpus().into_iter().filter(|(name, _)| name.starts_with("call-")) {
        let pretty = String::from_utf8(transcribed(&message, Style::Pretty).unwrap()).unwrap();
        let octets = |line: &str| line.as_bytes().get(1) == Some(&b'=');
        let mut folded = String::new();
        for line in pretty.lines() {
            writeln!(folded, "{}", if octets(line) { line.to_owned() } else { line.to_uppercase() }).unwrap();
        }
        let again = String::from_utf8(transcribed(folded.as_bytes(), Style::Pretty).unwrap()).unwrap();
        assert!(again.eq_ignore_ascii_case(&pretty), "{name}: {again}");
    }
}

#[test]
fn hostile_messages_are_read_in_time_that_follows_their_size() {
    let mut buffer = vec![0; 400_000];
    let mut shape = Shape::new();
    for (_, unit) in exercise::HOSTILE_UNITS {
        for place in 0..exercise::PLACES.len() {
            exercise::message(&exercise::hostile(unit, place, 16_384), &mut shape, &mut buffer);
        }
    }
}

#[test]
fn mutated_messages_break_nothing() {
    let seeds = seeds("h248");
    let mut buffer = vec![0; 200_000];
    let mut shape = Shape::new();
    let mut rng = Rng::new(248);
    let mut read = 0;
    for _ in 0..inputs(5_000) {
        let input = mutated(&seeds, &mut rng);
        let first = exercise::message(&input, &mut shape, &mut buffer);
        assert_eq!(first, exercise::message(&input, &mut shape, &mut buffer), "{}", input.escape_ascii());
        // What could be written is read as the same again.
        if let Ok(written) = transcribed(&input, Style::Compact) {
            read += 1;
            assert_eq!(transcribed(&written, Style::Compact).as_ref(), Ok(&written), "{}", input.escape_ascii());
        }
    }
    assert!(read > 100, "{read} of the mutations were messages");
}

#[test]
fn every_cut_of_a_message_is_read_or_refused() {
    let mut buffer = vec![0; 20_000];
    let mut shape = Shape::new();
    for (_, message) in corpus() {
        for end in 0..message.len() {
            exercise::message(&message[..end], &mut shape, &mut buffer);
        }
    }
}
