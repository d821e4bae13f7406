//! What is told of service states in the fewest names, while notified entities change (G-RSI-08, 4.4.6).

use super::{MS, S, rsips};
use tollgate::proto::core::Administration;
use tollgate::proto::restart::BlockHow;
use tollgate::sim::{Layout, Setup, World};

/// A T1 comes back whose channels notified several agents before. Back in service they have their provisioned one (G-RST-12), which
/// the coordinator may learn when it has ordered the announcement already: it is one agent's T1, told in one name. (Seeds 934, 1674,
/// 2394 and 3112 of the random worlds.)
#[test]
fn a_span_that_comes_back_to_its_provisioned_agent_is_told_in_one_name() {
    for (layout, slice) in Layout::ALL.into_iter().flat_map(|layout| [3, 16, 200].map(|slice| (layout, slice))) {
        let mut w = World::new(Setup::new(layout, 1), |plan, _| plan.limits.slice = slice);
        for channel in [1, 7] {
            let other = w.ask("RQNT", &format!("ds/ds1-4/{channel}"), &["X: 1", "N: ca2@ca2.example.net:2727"]);
            assert_eq!(other.code, Some(200));
        }
        let span = w.plan.topology.resolve(b"ds/ds1-4/*", false).unwrap();
        w.administer(Administration::Block(span, BlockHow::Force));
        w.run_for(2 * S);
        w.take_mail();
        w.administer(Administration::Unblock(span));
        w.run_for(200 * MS);
        let names: Vec<String> = rsips(&w).iter().map(|rsip| rsip.line.split([' ', '@']).nth(2).unwrap().to_owned()).collect();
        assert_eq!(names, ["ds/ds1-4/*"], "{layout:?}, slices of {slice}");
        w.run_for(2 * S);
        w.check_quiet();
    }
}
