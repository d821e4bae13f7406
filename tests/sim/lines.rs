//! Channels with channel associated signalling on real cores: what far ends do, alarms and operators in between (RFC 3064; CAS rows).
//! Nobody asks for events here: the lines work by themselves.

use super::{MS, S};
use std::time::Duration;
use tollgate::proto::base::{EndpointIndex, Rng};
use tollgate::proto::cas::{Direction, Signalling};
use tollgate::proto::core::{Answer, Ask, StateFilter};
use tollgate::proto::package::ChannelKind;
use tollgate::proto::package::parameters::{Digits, MfDigit};
use tollgate::proto::trunk::{CardOrder, Defect, DigitKind, FarOrder, Hook};
use tollgate::sim::{Layout, Setup, World};

/// Eight T1s, of the kinds of channels in turn.
fn world(layout: Layout, seed: u64) -> World {
    World::new(Setup::new(layout, seed), |plan, _| {
        let kinds = [ChannelKind::CasMf, ChannelKind::CasDtmf, ChannelKind::PbxFxs, ChannelKind::FeatureGroupD];
        for (n, span) in plan.spans.iter_mut().enumerate() {
            let kind = kinds[n % kinds.len()];
            let direction = if n >= kinds.len() { Direction::Incoming } else { Direction::Both };
            span.signalling = Signalling { kind, wink_start: n % 3 != 1, direction, ..Signalling::default() };
        }
    })
}

pub fn far(w: &mut World, endpoint: EndpointIndex, order: FarOrder) {
    let core = w.plan.owner(endpoint);
    w.ask_core(core, Ask::Card(CardOrder::Far(endpoint, order)));
}

/// What the signalling of an endpoint waits for.
pub fn line(w: &mut World, endpoint: EndpointIndex) -> &'static str {
    let (core, selection) = (w.plan.owner(endpoint), w.plan.topology.select_all());
    let Answer::Endpoints(views) = w.ask_core(core, Ask::Endpoints(selection, StateFilter::All)) else { panic!("no endpoints") };
    views.iter().find(|view| view.endpoint == endpoint).and_then(|view| view.line).expect("it has a line")
}

pub fn endpoint(w: &World, name: &str) -> EndpointIndex {
    w.plan.topology.lookup(name.as_bytes()).expect("an endpoint")
}

/// C1 to C5, C10: a call comes in without any agent; the wink and the digits need none; an alarm ends it, and so does an operator.
#[test]
fn a_call_comes_in_and_ends_with_its_span_or_by_the_operator() {
    for layout in Layout::ALL {
        let mut w = world(layout, 1);
        w.run_for(S);
        let e = endpoint(&w, "ds/ds1-1/5");
        let mut digits = Digits::NONE;
        for symbol in [MfDigit::KP, b'5', b'5', MfDigit::ST] {
            assert!(digits.push(symbol));
        }
        let seize = FarOrder::Seize(DigitKind::Mf, digits);
        assert_eq!(line(&mut w, e), "idle");
        far(&mut w, e, seize);
        w.run_for(300 * MS);
        assert_eq!(line(&mut w, e), "winks");
        w.run_for(2 * S);
        assert_eq!(line(&mut w, e), "awaits-agent");
        let facility = w.facility("ds/ds1-1");
        let alarm = |present| CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true };
        w.order_cards(alarm(true));
        w.run_for(S);
        assert_eq!(line(&mut w, e), "out");
        // The far end is off-hook still when the span is back: no call, and none can be made.
        w.order_cards(alarm(false));
        w.run_for(S);
        assert_eq!(line(&mut w, e), "releases");
        w.run_for(31 * S);
        assert_eq!(line(&mut w, e), "lockout");
        far(&mut w, e, FarOrder::Show(Hook::On));
        w.run_for(S);
        assert_eq!(line(&mut w, e), "idle");
        far(&mut w, e, seize);
        w.run_for(2 * S);
        far(&mut w, e, FarOrder::Show(Hook::On));
        w.run_for(S);
        assert_eq!(line(&mut w, e), "awaits-release");
        w.free(e);
        assert_eq!(line(&mut w, e), "idle");
    }
}

/// Whatever far ends, alarms and operators do under seed, every line comes to rest when they stop.
#[test]
fn no_line_stays_stuck_under_seeds() {
    let seeds: u64 = std::env::var("TOLLGATE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    for seed in 0..seeds.div_ceil(4) {
        let layout = Layout::ALL[seed as usize % Layout::ALL.len()];
        let mut w = world(layout, seed);
        w.without_journal();
        let mut rng = Rng::new(seed);
        let endpoints = w.plan.topology.len();
        for _ in 0..150 {
            let e = EndpointIndex(rng.below(endpoints.into()) as u32);
            let mut digits = Digits::NONE;
            for symbol in [MfDigit::KP, b'1', MfDigit::ST].iter().take(1 + rng.below(3) as usize) {
                digits.push(*symbol);
            }
            let kind = if rng.below(2) == 0 { DigitKind::Mf } else { DigitKind::Dtmf };
            match rng.below(10) {
                0..=3 => far(&mut w, e, FarOrder::Seize(kind, digits)),
                4 => far(&mut w, e, FarOrder::Show(Hook::On)),
                5 => far(&mut w, e, FarOrder::Wink),
                6 => far(&mut w, e, FarOrder::Flash),
                7 => far(&mut w, e, FarOrder::Digits(kind, digits)),
                8 => w.free(e),
                _ => {
                    let facility = w.facility(&format!("ds/ds1-{}", 1 + rng.below(8)));
                    let present = rng.below(3) == 0;
                    w.order_cards(CardOrder::Defect { facility, defect: Defect::LossOfSignal, present, at_once: true });
                }
            }
            w.run_for(Duration::from_millis(rng.below(700)));
        }
        for n in 1..=8 {
            let facility = w.facility(&format!("ds/ds1-{n}"));
            w.order_cards(CardOrder::Clear { facility, at_once: true });
        }
        for e in 0..endpoints {
            far(&mut w, EndpointIndex(e), FarOrder::Show(Hook::On));
        }
        w.run_for(400 * S);
        for core in w.plan.owners.clone() {
            let selection = w.plan.topology.select_all();
            let Answer::Endpoints(views) = w.ask_core(core, Ask::Endpoints(selection, StateFilter::All)) else { panic!("no endpoints") };
            for view in views {
                assert_eq!(view.line, Some("idle"), "seed {seed}, {layout:?}, endpoint {}", view.endpoint.0);
            }
        }
    }
}
