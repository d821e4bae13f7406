//! What an overloaded gateway tells its controller, and what it refuses.

use super::*;
use crate::proto::base::Counter;
use crate::proto::overload::telling::{Adds, Load, Manner};

impl Bench {
    /// The core has been overloaded, or is not any more.
    fn overloaded(&mut self, sojourn: Duration) {
        self.gateway.set_load(Load { overloaded: !sojourn.is_zero(), sojourn });
    }

    fn manner(&mut self, manner: Manner) {
        let mut settings = Settings::clone(&self.gateway.calls.settings);
        settings.telling = manner;
        self.gateway.set_settings(Arc::new(settings));
    }

    fn count(&self, counter: Counter) -> u64 {
        self.gateway.counters.get(counter)
    }

    /// Notify commands about ROOT since it was looked at last: identifiers and what they say, and whether they are repeats.
    fn told(&mut self) -> Vec<(u32, String)> {
        let of_root = |text: &str| text.contains("N=ROOT{OE=").then(|| (id_of(text), text.split("OE=").nth(1).unwrap().to_owned()));
        std::mem::take(&mut self.sent).iter().filter_map(|(_, text)| of_root(text)).collect()
    }

    fn answer(&mut self, told: &[(u32, String)]) {
        told.iter().for_each(|(id, _)| self.say(&format!("P={id}{{C=-{{N=ROOT}}}}")));
    }
}

#[test]
fn each_add_while_overloaded_is_done_and_told_of_once() {
    // OVL-01, OVL-02, OVL-04
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=77{ocp/mg_overload}}}");
    bench.call(1);
    assert!(bench.told().is_empty(), "not overloaded");
    bench.overloaded(60 * MS);
    let (context, rtp) = bench.call(2);
    let told = bench.told();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|(_, text)| text.starts_with("77{") && text.contains(":ocp/mg_overload}")), "{told:?}");
    bench.answer(&told);
    // Nothing but Adds.
    bench.ask(&format!("C={context}{{MF={rtp}{{M{{O{{MO=IN}}}}}},AV=*{{AT{{}}}},S=*}}"));
    assert!(bench.told().is_empty());
    bench.overloaded(Duration::ZERO);
    bench.call(2);
    assert!(bench.told().is_empty());
    assert_eq!(bench.count(Counter::H248OverloadNotified), 2);
}

#[test]
fn a_controller_that_did_not_ask_is_not_told() {
    // OVL-04
    let mut bench = Bench::registered();
    bench.overloaded(60 * MS);
    bench.call(1);
    bench.ask("C=-{MF=ROOT{E=77{it/ito}}}");
    bench.call(2);
    assert!(bench.told().is_empty());
    bench.ask("C=-{MF=ROOT{E=78{ocp/*}}}");
    bench.call(3);
    assert_eq!(bench.told().len(), 2);
}

#[test]
fn only_the_first_add_of_a_context_is_told_of_when_so_configured() {
    // OVL-03
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=77{ocp/mg_overload}}}");
    bench.overloaded(60 * MS);
    bench.manner(Manner { adds: Adds::First, ..Manner::default() });
    let (context, _) = bench.call(1);
    assert_eq!(bench.told().len(), 1);
    bench.ask(&format!("C={context}{{A=ds/ds1_3/2}}"));
    assert!(bench.told().is_empty());
    bench.manner(Manner { adds: Adds::Off, ..Manner::default() });
    bench.call(3);
    assert!(bench.told().is_empty());
}

#[test]
fn notifications_that_are_too_old_are_dropped_and_counted() {
    // OVL-05
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=77{ocp/mg_overload}}}");
    bench.overloaded(60 * MS);
    bench.call(1);
    let first = bench.told();
    bench.run(900 * MS);
    let repeats = bench.told();
    assert!(!repeats.is_empty() && repeats.iter().all(|(id, _)| first.iter().any(|(known, _)| known == id)));
    bench.run(5 * S);
    let late = bench.told().iter().filter(|(_, text)| text.contains("ocp")).count();
    assert!(late <= 2, "{late} copies after a second");
    assert_eq!(bench.count(Counter::H248OverloadDropped), 2);
    // Nobody failed by not answering what is no news any more.
    bench.run(60 * S);
    assert_eq!((bench.gateway.state(), bench.count(Counter::H248ControllersLost)), (State::Active, 0));
}

#[test]
fn notifications_of_overload_have_room_that_other_requests_do_not_take() {
    // OVL-05: their room is full, and those of events go on; and the other way round.
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=77{ocp/mg_overload}}}");
    bench.overloaded(60 * MS);
    for _ in 0..300 {
        let (context, _) = bench.call(1);
        bench.ask(&format!("C={context}{{S=*{{AT{{}}}}}}"));
    }
    assert_eq!(bench.count(Counter::H248OverloadNotified), 512);
    assert_eq!(bench.count(Counter::H248OverloadDropped), 88);
    bench.ask("C=-{MF=ds/ds1_3/1{E=5{dd/d1}}}");
    bench.sent.clear();
    bench.sees(1, crate::proto::package::PackageId::D, "1");
    assert!(bench.sent.iter().any(|(_, text)| text.contains("OE=5{")), "{:?}", bench.sent.len());
}

#[test]
fn a_share_of_calls_to_block_is_asked_for_while_the_overload_lasts() {
    // OVL-06
    let mut bench = Bench::registered();
    bench.ask("C=-{MF=ROOT{E=9{chp/mgcon}}}");
    bench.overloaded(60 * MS);
    let mut said = Vec::new();
    for second in 0..20 {
        if second == 3 {
            bench.overloaded(Duration::ZERO);
        }
        bench.run(S);
        let mut told = bench.told();
        told.dedup();
        bench.answer(&told);
        said.extend(told.iter().filter_map(|(_, text)| text.split("reduction=").nth(1)?.split('}').next()?.parse::<u8>().ok()));
    }
    assert_eq!(said[..5], [20, 40, 60, 80, 75], "{said:?}");
    assert_eq!((*said.last().unwrap(), bench.gateway.reduction()), (0, 0), "{said:?}");
}

#[test]
fn beyond_a_second_level_new_contexts_are_refused_at_once() {
    // OVL-07
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    bench.overloaded(300 * MS);
    assert_eq!(bench.ask("C=${A=ds/ds1_3/2,A=$}"), "ER=503{\"overloaded, no new contexts now\"}");
    assert_eq!(bench.count(Counter::H248OverloadRefused), 1);
    // What is there goes on and ends; emergencies and priorities pass.
    assert!(bench.ask(&format!("C={context}{{A=ds/ds1_3/3,MF={rtp}{{M{{O{{MO=IN}}}}}}}}")).contains("A=ds/ds1_3/3"));
    assert!(bench.ask("C=${EG,A=ds/ds1_3/4}").contains("A=ds/ds1_3/4"));
    assert!(bench.ask("C=${PR=5,A=ds/ds1_3/5}").contains("A=ds/ds1_3/5"));
    assert!(bench.ask(&format!("C={context}{{S=*}}")).contains("S=ds/ds1_3/1"));
    // A repeat of what was refused gets the same answer.
    bench.sent.clear();
    bench.overloaded(300 * MS);
    bench.say("T=5000{C=${A=ds/ds1_3/9}}");
    bench.overloaded(Duration::ZERO);
    bench.say("T=5000{C=${A=ds/ds1_3/9}}");
    let replies: Vec<&String> = bench.sent.iter().map(|(_, text)| text).filter(|text| text.contains("P=5000{")).collect();
    assert!(replies.len() == 2 && replies[0] == replies[1], "{replies:?}");
}
