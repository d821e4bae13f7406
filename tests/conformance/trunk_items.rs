//! Every item of the packages of trunks and lines that signal, from the request to the Notify (MS, DT, MD, MO, BL): the dialogues of
//! trunk_items.txt, one or more for each row.
//!
//! `## MS DT`: the packages of what follows. `[ans] words`: a dialogue for this item. Then its lines: `> R: .. | S: ..` a
//! NotificationRequest (quarantine `loop` unless it says otherwise) that is done, `! 401 ..` one that is refused; `< ..` the events told
//! since the last such line, and no other; `wait` so many milliseconds; `S ..` the signals of an audit, `ES ..` its event state, `line ..` what its
//! machine waits for; `locked n` how many channels the alarm of its span counts; `far on | off | wink | flash | silent | no-answer | manual | hangs` the far end's hook or manners; `seize` with the usual digits, `nothing` or
//! these, `digits`; `at in | out | ground` a trunk for calls in, out, a line with ground start; `refuse n` signals fail.

use super::{LAYOUTS, MS, S, code, notified, setup};
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate::proto::base::EndpointIndex;
use tollgate::proto::cas::{Direction, Signalling, State};
use tollgate::proto::core::{Answer, Ask, StateFilter};
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::package::{ChannelKind, default_package};
use tollgate::proto::trunk::{Behaviour, CardOrder, DigitKind, FarOrder, Hook};
use tollgate::sim::World;

const TEXT: &str = include_str!("trunk_items.txt");
/// Of states of lines instead of items: each is reached, and ends by itself.
const GUARDS: &str = include_str!("trunk_guards.txt");

/// One dialogue.
struct Dialogue {
    package: String,
    item: String,
    title: String,
    lines: Vec<String>,
}

/// Those of a package.
fn dialogues(text: &str, package: &str) -> Vec<Dialogue> {
    let mut list: Vec<Dialogue> = Vec::new();
    let mut here = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(packages) = line.strip_prefix("## ") {
            here = packages.split(' ').any(|name| name == package);
        } else if let Some((item, title)) = line.strip_prefix('[').and_then(|line| line.split_once(']')).filter(|_| here) {
            let (item, title) = (item.to_owned(), title.trim().to_owned());
            list.push(Dialogue { package: package.to_owned(), item, title, lines: Vec::new() });
        } else if here {
            let line = line.replace("{up}", "{p}/oc({p}/sup) {answered}").replace("{answered}", answered(package));
            let line = line.replace("{sup}", set_up(package)).replace("{p}", package);
            list.last_mut().expect("a dialogue").lines.push(line);
        }
    }
    list
}

fn set_up(package: &str) -> &'static str {
    match package {
        "MS" => "MS/sup(addr(k0,5,5,5,s0))",
        "DT" => "DT/sup(addr(5,5,5))",
        "MD" => "MD/sup(ct(nda),id(k0,2,s0),addr(k0,1,s0))",
        "MO" => "MO/sup(id(k0,2,s0),addr(k0,9,1,1,s2))",
        _ => "",
    }
}

/// What is told when the far end takes a call.
fn answered(package: &str) -> &'static str {
    if package == "MD" { "MD/awk MD/ans" } else { "{p}/ans" }
}

fn kind(package: &str) -> ChannelKind {
    match package {
        "MS" => ChannelKind::CasMf,
        "DT" => ChannelKind::CasDtmf,
        "MD" => ChannelKind::FeatureGroupD,
        "MO" => ChannelKind::Operator,
        _ => ChannelKind::PbxFxs,
    }
}

/// The trunk of a dialogue: an endpoint of a span for both ways, for calls in, or out (for lines: with ground start).
struct Trunk<'a> {
    w: &'a mut World,
    kind: ChannelKind,
    name: &'static str,
    requests: u32,
}

impl Trunk<'_> {
    fn request(&mut self, text: &str) -> u16 {
        self.requests += 1;
        let id = format!("X: {:X}", self.requests);
        let mut lines: Vec<&str> = std::iter::once(id.as_str()).chain(text.split(" | ")).collect();
        if !text.contains("Q: ") {
            lines.push("Q: loop");
        }
        code(self.w, "RQNT", self.name, &lines)
    }

    fn far(&mut self, order: FarOrder) {
        let endpoint = self.endpoint();
        let core = self.w.plan.owner(endpoint);
        self.w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
    }

    /// The digits a far end sends here, in words.
    fn digits(&self, words: &str) -> (DigitKind, Digits) {
        let keys = matches!(self.kind, ChannelKind::CasDtmf);
        let how = if keys { DigitKind::Dtmf } else { DigitKind::Mf };
        let text = match (words, keys) {
            ("nothing", _) => "",
            ("", true) => "5,5,5",
            ("", false) if self.kind == ChannelKind::FeatureGroupD => "k0,2,s0,k0,5,5,5,s0",
            ("", false) => "k0,5,5,5,s0",
            (words, _) => words.trim_start_matches("mf "),
        };
        let mut digits = Digits::NONE;
        for symbol in text.split(',').filter(|symbol| !symbol.is_empty()) {
            let value = match symbol.as_bytes() {
                [b'k', n] => MfDigit::KP + n - b'0',
                [b's', n] => MfDigit::ST + n - b'0',
                [key] => *key,
                _ => panic!("{symbol}"),
            };
            assert!(digits.push(value));
        }
        (how, digits)
    }

    fn endpoint(&self) -> EndpointIndex {
        self.w.plan.topology.lookup(self.name.as_bytes()).unwrap()
    }

    /// Channels that `show alarms` says are locked out: none, or some of this span.
    fn lockouts(&mut self) -> u32 {
        let span = self.w.plan.topology.span_of(self.endpoint()).unwrap();
        let Answer::Facilities(view) = self.w.ask_core(self.w.plan.lead(), Ask::Facilities) else { panic!("the lead core knows") };
        assert!(view.lockouts.iter().all(|lockout| lockout.span == span && lockout.endpoints == 24), "{:?}", view.lockouts);
        view.lockouts.iter().map(|lockout| lockout.locked).sum()
    }

    fn line(&mut self) -> &'static str {
        let endpoint = self.endpoint();
        let one = self.w.plan.topology.selection_of(endpoint).unwrap();
        let Answer::Endpoints(views) = self.w.ask_core(self.w.plan.owner(endpoint), Ask::Endpoints(one, StateFilter::All)) else {
            return "";
        };
        views[0].line.unwrap_or_default()
    }

    /// One line of a dialogue; what is wrong.
    fn step(&mut self, line: &str) -> Option<String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (expected, got) = match verb {
            ">" => ("200".to_owned(), self.request(rest).to_string()),
            "!" => {
                let (code, text) = rest.split_once(' ').expect("a code and a request");
                (code.to_owned(), self.request(text).to_string())
            }
            "<" => {
                let told = notified(self.w).into_iter().map(|(_, events)| events).collect::<Vec<_>>().join(" ");
                (rest.to_owned(), told)
            }
            "S" | "ES" => (rest.to_owned(), super::audit(self.w, self.name, verb)),
            "line" => (rest.to_owned(), self.line().to_owned()),
            "locked" => (rest.to_owned(), self.lockouts().to_string()),
            _ => {
                self.act(verb, rest);
                return None;
            }
        };
        (expected != got).then(|| format!("{got:?} at `{line}`"))
    }

    fn act(&mut self, verb: &str, rest: &str) {
        match (verb, rest) {
            ("wait", millis) => self.w.run_for(MS * millis.parse().expect("milliseconds")),
            ("far", "on") => self.far(FarOrder::Show(Hook::On)),
            ("far", "off") => self.far(FarOrder::Show(Hook::Off)),
            ("far", "silent") => self.far(FarOrder::Behave(Behaviour::Silent)),
            ("far", "manual") => self.far(FarOrder::Behave(Behaviour::Manual)),
            ("far", "no-answer") => self.far(FarOrder::Behave(Behaviour::NoAnswer)),
            ("far", "flash") => self.far(FarOrder::Flash),
            ("far", "wink") => self.far(FarOrder::Wink),
            ("far", "hangs") => self.far(FarOrder::Behave(Behaviour::Hangs)),
            ("seize", words) => {
                let (how, digits) = self.digits(words);
                self.far(FarOrder::Seize(how, digits));
            }
            ("digits", words) => {
                let (how, digits) = self.digits(words);
                self.far(FarOrder::Digits(how, digits));
            }
            ("at", "in") => self.name = "ds/ds1-2/1",
            ("at", "out" | "ground") => self.name = "ds/ds1-3/1",
            ("refuse", count) => self.w.order_cards(CardOrder::Refuse(count.parse().expect("a number"))),
            _ => panic!("{verb} {rest}"),
        }
    }
}

/// Spans of a kind: for both ways, for calls in, and out (for lines: with ground start).
fn world(place: usize, kind: ChannelKind, sending: Option<Duration>) -> World {
    World::new(setup(LAYOUTS[place % 3], 1), |plan, _| {
        plan.times.sending = sending.unwrap_or(plan.times.sending);
        let base = Signalling { kind, wink_start: kind != ChannelKind::PbxFxs, ..Signalling::default() };
        for (place, span) in plan.spans.iter_mut().enumerate() {
            let direction = match (kind, place) {
                (ChannelKind::PbxFxs, _) => Direction::Both,
                (ChannelKind::Operator, _) | (_, 2) => Direction::Outgoing,
                (_, 1) => Direction::Incoming,
                _ => Direction::Both,
            };
            span.signalling = Signalling { direction, ground_start: kind == ChannelKind::PbxFxs && place == 2, ..base };
        }
    })
}

/// Runs the dialogues of a package, in one layout or another; every item of it must have one.
fn run(package: &str) {
    let kind = kind(package);
    let all = dialogues(TEXT, package);
    let mut wrong = Vec::new();
    for (place, Dialogue { package, item, title, lines }) in all.iter().enumerate() {
        let mut w = world(place, kind, None);
        let mut trunk = Trunk { w: &mut w, kind, name: "ds/ds1-1/1", requests: 0 };
        if let Some(found) = lines.iter().find_map(|line| trunk.step(line)) {
            wrong.push(format!("{package}/{item}, {title}: {found}"));
        }
        w.run_for(3 * S);
        w.check_quiet();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let shown: BTreeSet<&str> = all.iter().map(|dialogue| dialogue.item.as_str()).collect();
    let names = default_package(kind).items().map(|item| format!("{item:?}").split_once('/').expect("package/item").1.to_owned());
    let missing: Vec<String> = names.filter(|name| !shown.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{package}: no dialogue for {missing:?}");
}

/// Whether a state may last for ever: no call, one that is up, or somebody who holds the line on purpose or by a fault.
fn rests(state: State) -> bool {
    use State::{Answered, Blocked, Blocking, Idle, Lockout, OffHook, Out, Talking};
    matches!(state, Idle | Answered | Talking | Lockout | Blocking | Blocked | OffHook | Out)
}

/// A5 to A11, C5, C15, E2, E5, RFC 3064 4.1: no channel stays stuck. Whatever a channel waits for has an end; what it waits for is what
/// `show` says, `free` ends it at once, and a far end that holds the line after all is an alarm for as long as it does.
#[test]
fn every_transient_state_has_a_guard_a_name_and_a_way_out() {
    let mut wrong = Vec::new();
    let mut shown = BTreeSet::new();
    for package in ["MS", "DT", "MD", "MO", "BL"] {
        for (place, Dialogue { item, title, lines, .. }) in dialogues(GUARDS, package).iter().enumerate() {
            let sending = (item == "sends-digits").then(|| MS * 300);
            let reached = lines.iter().position(|line| *line == format!("line {item}")).expect("the state is shown");
            // To its end by itself.
            let mut w = world(place, kind(package), sending);
            let mut trunk = Trunk { w: &mut w, kind: kind(package), name: "ds/ds1-1/1", requests: 0 };
            if let Some(found) = lines.iter().find_map(|line| trunk.step(line)) {
                wrong.push(format!("{package}, {item}, {title}: {found}"));
            }
            w.run_for(3 * S);
            w.check_quiet();
            // And by an operator.
            let mut w = world(place + 1, kind(package), sending);
            let mut trunk = Trunk { w: &mut w, kind: kind(package), name: "ds/ds1-1/1", requests: 0 };
            let found = lines[..=reached].iter().find_map(|line| trunk.step(line));
            let endpoint = trunk.endpoint();
            trunk.w.free(endpoint);
            trunk.act("far", "manual");
            trunk.act("far", "on");
            trunk.act("wait", "1500");
            if found.is_some() || trunk.line() != "idle" || trunk.lockouts() != 0 {
                wrong.push(format!("{package}, {item}, {title}, freed: {found:?}, {}", trunk.line()));
            }
            w.run_for(3 * S);
            w.check_quiet();
            shown.insert(item.clone());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let missing: Vec<&str> = State::ALL.iter().filter(|&&state| !rests(state)).map(|state| state.name()).collect();
    let missing: Vec<&&str> = missing.iter().filter(|name| !shown.contains(**name)).collect();
    assert!(missing.is_empty(), "no dialogue ends {missing:?}");
}

/// MS.01 to MS.13.
#[test]
fn each_item_of_mf_trunks_does_what_it_says() {
    run("MS");
}

/// DT.01 to DT.13.
#[test]
fn each_item_of_dtmf_trunks_does_what_it_says() {
    run("DT");
}

/// MD.01 to MD.16.
#[test]
fn each_item_of_feature_group_d_does_what_it_says() {
    run("MD");
}

/// MO.01 to MO.12.
#[test]
fn each_item_of_operator_trunks_does_what_it_says() {
    run("MO");
}

/// BL.01 to BL.11.
#[test]
fn each_item_of_lines_of_a_pbx_does_what_it_says() {
    run("BL");
}
