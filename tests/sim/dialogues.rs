//! Golden dialogues: what goes to the gateway and what must come back, byte by byte, in `tests/data/dialogues`, the same in every
//! layout.
//!
//! A `>` line is sent, the `<` lines after it are expected in this order; an empty line ends a datagram, `< =====` stands between
//! two that are expected. `{name}` stands for letters and digits: whatever comes when it is met first, the same from then on.

use super::{S, each_layout};
use std::collections::HashMap;
use std::net::SocketAddr;
use tollgate::sim::World;

/// One exchange: what is sent, and the datagrams expected.
struct Exchange {
    sent: String,
    expected: Vec<String>,
}

fn exchanges(text: &str) -> Vec<Exchange> {
    let mut list: Vec<Exchange> = Vec::new();
    for block in text.split("\n\n") {
        let lines = |mark: char| {
            let lines = block.lines().filter_map(move |line| line.strip_prefix(mark));
            lines.map(|line| format!("{}\r\n", line.strip_prefix(' ').unwrap_or(line))).collect::<String>()
        };
        let (sent, expected) = (lines('>'), lines('<'));
        if !sent.is_empty() {
            let expected = expected.split("=====\r\n").filter(|datagram| !datagram.is_empty()).map(str::to_owned).collect();
            list.push(Exchange { sent, expected });
        }
    }
    list
}

/// Whether `actual` is `expected` with something for each name; names get their values.
fn matches(expected: &str, actual: &str, values: &mut HashMap<String, String>) -> bool {
    let Some((before, rest)) = expected.split_once('{') else { return expected == actual };
    let Some(actual) = actual.strip_prefix(before) else { return false };
    let (name, rest) = rest.split_once('}').expect("a name ends in }");
    let length = actual.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(actual.len());
    let (value, actual) = actual.split_at(length);
    let known = values.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    known == value && !value.is_empty() && matches(rest, actual, values)
}

fn play(w: &mut World, name: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialogues").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut values: HashMap<String, String> = HashMap::new();
    for Exchange { mut sent, expected } in exchanges(&text) {
        for (name, value) in &values {
            sent = sent.replace(&format!("{{{name}}}"), value);
        }
        w.send_from(SocketAddr::from(([192, 0, 2, 1], 2727)), 0, sent.as_bytes());
        w.run_for(S);
        let came: Vec<String> = w.take_mail().into_iter().map(|mail| String::from_utf8(mail.bytes).unwrap()).collect();
        let fits = came.len() == expected.len() && expected.iter().zip(&came).all(|(e, a)| matches(e, a, &mut values));
        assert!(fits, "{name}\n\nsent:\n{sent}\nexpected:\n{}\ncame:\n{}", expected.join("=====\n"), came.join("=====\n"));
    }
}

#[test]
fn every_dialogue_is_word_for_word() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialogues");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        each_layout(|w| play(w, &name));
    }
}
