//! Golden dialogues: what goes to the gateway and what must come back, byte by byte, in `tests/data/dialogues`, the same in every
//! layout.
//!
//! A `>` line is sent, the `<` lines after it are expected in this order; an empty line ends a datagram, `< =====` stands between
//! two that are expected. `{name}` stands for letters and digits: whatever comes when it is met first, the same from then on. A repeated
//! command of the gateway is not expected again.
//!
//! A `!` line is what happens before: `occur ENDPOINT EVENT` on the card; `off-hook`, `on-hook`, `digits ... 123` at the far end; `silent`,
//! `answering`: whether the gateway's commands are answered; `wait SECONDS`; `until VERB`: until such a command comes from the gateway;
//! `graceful ENDPOINT SECONDS`, `unblock ENDPOINT`: the operator; `broken SPAN`: its part of the card fails; `delay MS`: how long the
//! card takes from now on. A dialogue that begins with `! restart` begins with a gateway that has just started; one with `! one-span`
//! has one span only.
//!
//! Spans 7 and 8 are lines of a PBX, and so is the one of `! one-span`.

use super::{MS, S};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use tollgate::proto::core::{Administration, Ask};
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::Digits;
use tollgate::proto::restart::BlockHow;
use tollgate::proto::trunk::{CardOrder, Defect, DigitKind, FarOrder, Hook, Selection};
use tollgate::sim::{Layout, Setup, World};

/// One exchange: what happens and is sent, and the datagrams expected.
struct Exchange {
    happens: Vec<String>,
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
        let happens: Vec<String> = block.lines().filter_map(|line| line.strip_prefix("! ")).map(str::to_owned).collect();
        if !sent.is_empty() || !happens.is_empty() {
            let expected = expected.split("=====\r\n").filter(|datagram| !datagram.is_empty()).map(str::to_owned).collect();
            list.push(Exchange { happens, sent, expected });
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

/// Does what a `!` line says.
fn happen(w: &mut World, line: &str) {
    let mut words = line.split(' ');
    let (what, endpoint) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let order = match (what, words.next()) {
        ("silent" | "answering", _) => return w.answer_own(what == "answering"),
        ("restart" | "one-span", _) => return,
        ("delay", _) => return w.order_cards(CardOrder::Delay(endpoint.parse().expect("milliseconds"))),
        ("wait", _) => return w.run_for(S * endpoint.parse().expect("seconds")),
        ("graceful", Some(seconds)) => {
            let how = BlockHow::Graceful(S * seconds.parse().expect("seconds"));
            return w.administer(Administration::Block(selected(w, endpoint), how));
        }
        ("unblock", _) => return w.administer(Administration::Unblock(selected(w, endpoint))),
        ("broken", _) => {
            // The journal only knows deletions that an agent ordered.
            w.without_journal();
            let facility = w.facility(endpoint);
            return w.order_cards(CardOrder::Defect { facility, defect: Defect::Equipment, present: true, at_once: true });
        }
        ("occur", Some(event)) => return w.occur(endpoint, event, None),
        ("off-hook", _) => FarOrder::Show(Hook::Off),
        ("on-hook", _) => FarOrder::Show(Hook::On),
        ("digits", Some(text)) => {
            let mut digits = Digits::NONE;
            assert!(text.bytes().all(|digit| digits.push(digit)));
            FarOrder::Digits(DigitKind::Dtmf, digits)
        }
        _ => panic!("{line}"),
    };
    let endpoint = w.plan.topology.lookup(endpoint.as_bytes()).expect("an endpoint");
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
}

/// Waits for a command of the gateway that has not come before.
fn wait_for(w: &mut World, verb: &str, seen: &HashSet<String>) {
    let is_new = |datagram: &[u8]| std::str::from_utf8(datagram).is_ok_and(|text| text.starts_with(verb) && !seen.contains(text));
    let end = w.now + 200 * S;
    while !w.mail().iter().any(|mail| is_new(&mail.bytes)) {
        assert!(w.now < end, "no {verb} comes");
        w.run_for(100 * MS);
    }
}

fn selected(w: &World, endpoint: &str) -> Selection {
    let topology = &w.plan.topology;
    topology.lookup(endpoint.as_bytes()).and_then(|endpoint| topology.selection_of(endpoint)).expect("an endpoint")
}

/// Whether a datagram has nothing but commands of the gateway.
fn is_own(datagram: &str) -> bool {
    let last = datagram.rsplit("\r\n.\r\n").next().unwrap_or_default();
    ["NTFY ", "RSIP ", "DLCX "].iter().any(|verb| last.starts_with(verb))
}

fn play(w: &mut World, name: &str, text: &str) {
    let mut values: HashMap<String, String> = HashMap::new();
    let mut seen = HashSet::new();
    for Exchange { happens, mut sent, expected } in exchanges(text) {
        for (name, value) in &values {
            sent = sent.replace(&format!("{{{name}}}"), value);
        }
        for line in &happens {
            match line.strip_prefix("until ") {
                Some(verb) => wait_for(w, verb, &seen),
                None => happen(w, line),
            }
        }
        if !sent.is_empty() {
            w.send_from(SocketAddr::from(([192, 0, 2, 1], 2727)), 0, sent.as_bytes());
        }
        // Long enough for digits and for an on-hook that might be a flash.
        w.run_for(if happens.is_empty() { S } else { 2 * S });
        let mail = w.take_mail().into_iter().map(|mail| String::from_utf8(mail.bytes).unwrap());
        let came: Vec<String> = mail.filter(|datagram| seen.insert(datagram.clone()) || !is_own(datagram)).collect();
        let fits = came.len() == expected.len() && expected.iter().zip(&came).all(|(e, a)| matches(e, a, &mut values));
        let happened = happens.join("\n");
        assert!(fits, "{name}\n\n{happened}\nsent:\n{sent}\nexpected:\n{}\ncame:\n{}", expected.join("=====\n"), came.join("=====\n"));
    }
}

#[test]
fn every_dialogue_is_word_for_word() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialogues");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (told, one_span) = (!text.contains("\n! restart\n"), text.contains("\n! one-span\n"));
        for layout in Layout::ALL {
            let mut setup = Setup { told, ..Setup::new(layout, 1) };
            let (trunks, lines) = if one_span { (0, 1) } else { (6, 2) };
            setup.facilities.truncate(trunks + lines);
            let mut w = World::new(setup, |plan, _| {
                plan.spans[trunks..].iter_mut().for_each(|span| span.signalling.kind = ChannelKind::PbxFxs);
            });
            play(&mut w, &name, &text);
            w.run_for(2 * S + MS);
            w.check_quiet();
        }
    }
}
