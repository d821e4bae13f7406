//! A gateway whose first T1 is on another core: what passes between the two, step by step.

use super::*;
use crate::proto::base::Counter;
use crate::proto::trunk::{Part, PartAnswer, PartOrder};

const THERE: CoreId = CoreId(1);
const STREAM: &str = "A=${M{O{MO=SR},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}}";

/// T1 3 is on the other core, 4 here.
fn bench() -> (Bench, Part) {
    let mut plan = plan(1);
    (plan.cores, plan.owners, plan.gateways[0].spread) = (2, vec![CoreId(0), THERE], true);
    let card = SimCard::new(&SimulatedPlan {
        topology: &plan.topology,
        kinds: &[ChannelKind::default(); 4],
        facilities: &[Facility::Span(SpanIndex(2))],
        address: [192, 0, 2, 10].into(),
        ports: 20_000..=20_999,
        part: (0, 1),
        connections: 48,
        seed: 2,
    });
    let mut bench = Bench::with(plan);
    bench.run(3 * S);
    bench.accept(controller(1));
    bench.sent.clear();
    (bench, Part::new(Box::new(card), 48))
}

impl Bench {
    /// What the other core is sent.
    fn orders(&mut self) -> Vec<PartOrder> {
        let mut orders = Vec::new();
        let apart = self.gateway.calls.card.apart().expect("a card that is apart");
        apart.send(|core, order| {
            assert_eq!(core, THERE);
            orders.push(order);
            true
        });
        orders
    }

    /// The other core does what it is sent until both have nothing to say; `overloaded`: it is.
    fn settle(&mut self, part: &mut Part, overloaded: bool) {
        loop {
            let orders = self.orders();
            orders.iter().for_each(|order| part.handle(self.now, *order));
            let mut answers: Vec<PartAnswer> = Vec::new();
            part.send(|answer| {
                answers.push(answer);
                true
            });
            if orders.is_empty() && answers.is_empty() {
                return;
            }
            let apart = self.gateway.calls.card.apart().expect("a card that is apart");
            answers.iter().for_each(|answer| apart.handle(THERE, overloaded, *answer));
            self.run(Duration::ZERO);
        }
    }

    fn silent(&mut self, silent: bool) {
        self.gateway.calls.card.apart().expect("a card that is apart").set_silent(|_| silent);
    }

    fn replies(&mut self) -> String {
        std::mem::take(&mut self.sent).into_iter().map(|(_, text)| text).collect()
    }
}

#[test]
fn an_add_is_told_of_when_a_core_that_did_a_part_of_it_is_overloaded() {
    // OVL-01, OVL-22: one notification for each such Add.
    for overloaded in [false, true] {
        let (mut bench, mut part) = bench();
        bench.ask("C=-{MF=ROOT{E=77{ocp/mg_overload}}}");
        bench.sent.clear();
        bench.say(&format!("T=900{{C=${{A=ds/ds1_3/1,{STREAM},A=ds/ds1_4/1}}}}"));
        bench.settle(&mut part, overloaded);
        let said = bench.replies();
        assert!(said.contains("P=900{C=") && said.matches("A=").count() == 3 && !said.contains("ER="), "{said}");
        // The stream, and the pair of the second channel with the first.
        assert_eq!(said.matches("ocp/mg_overload").count(), if overloaded { 2 } else { 0 }, "{said}");
        assert_eq!(bench.gateway.counters.get(Counter::H248Adds), 3);
    }
}

#[test]
fn a_subtract_tells_what_the_other_core_has_counted_or_does_not_wait_for_it() {
    // SUB-01, STA-01
    for silent in [false, true] {
        let (mut bench, mut part) = bench();
        bench.say(&format!("T=900{{C=${{A=ds/ds1_3/1,{STREAM}}}}}"));
        bench.settle(&mut part, false);
        bench.say("T=901{C=*{MF=rtp/*{M{R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}}}}}");
        bench.settle(&mut part, false);
        bench.run(S);
        bench.sent.clear();
        bench.say("T=902{C=*{S=rtp/*,S=ds/ds1_3/1}}");
        assert!(bench.replies().is_empty(), "it waits for the other core");
        bench.silent(silent);
        if silent {
            bench.run(20 * MS);
        } else {
            bench.settle(&mut part, false);
        }
        let said = bench.replies();
        assert!(said.contains("P=902{C=") && said.contains("S=ds/ds1_3/1") && !said.contains("ER="), "{said}");
        assert_eq!(said.contains("rtp/ps=5"), !silent, "{said}");
        bench.silent(false);
        bench.settle(&mut part, false);
        assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (0, 0));
    }
}

#[test]
fn what_is_added_on_two_cores_is_there_when_both_have_opened_it() {
    // TXN-03: nothing is answered before, and whoever subtracts it meanwhile ends the wait.
    let (mut bench, mut part) = bench();
    bench.say("T=900{C=${A=ds/ds1_4/1,A=ds/ds1_3/1}}");
    assert!(bench.replies().is_empty());
    bench.say("T=901{C=*{S=ds/ds1_3/1}}");
    let said = bench.replies();
    assert!(said.contains("P=901{") && said.contains("P=900{") && said.contains("A=ds/ds1_3/1{ER=435{"), "{said}");
    bench.settle(&mut part, false);
    assert_eq!((bench.gateway.contexts(), bench.gateway.calls.endpoints.connections.count()), (1, 0));
    // The one it was to be joined with goes: it is in the context all the same.
    bench.say("T=903{C=${A=ds/ds1_4/2,A=ds/ds1_3/3}}");
    bench.say("T=904{C=*{S=ds/ds1_4/2}}");
    let said = bench.replies();
    assert!(said.contains("P=904{") && said.contains("P=903{") && said.contains("A=ds/ds1_3/3}") && !said.contains("ER="), "{said}");
    bench.settle(&mut part, false);
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 0);
}
