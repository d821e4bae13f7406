//! The gateway over AF_XDP, in two network namespaces joined by a veth pair. Agents have ordinary sockets, so the kernel on their side
//! checks every header and checksum we write.

mod calls;
mod network;
mod nftables;
mod refusals;

use super::agent::Agent;
use super::gateway::{Addresses, Gateway, SOON, Tuning, eventually, pause};
use super::pair::Pair;
use std::net::Ipv4Addr;
use std::time::Duration;
use tollgate::host::transport::Kind;

/// The first address on the gateway's side; the others follow.
const BASE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);

/// Runs a test in a pair of namespaces, on a thread of its own. Where that, or AF_XDP, is not allowed the test is skipped and says so.
fn in_a_pair(test: &str, body: impl FnOnce(&Pair) + Send) {
    in_a_pair_of(test, "1", body);
}

/// The same with so many queues each way.
fn in_a_pair_of(test: &str, queues: &str, body: impl FnOnce(&Pair) + Send) {
    let allowed = Kind::Xdp.probe();
    let result = std::thread::scope(|scope| {
        let run = || match allowed.and_then(|()| Pair::new(queues)) {
            Ok(pair) => body(&pair),
            Err(reason) => eprintln!("skipped: {test}: {reason}"),
        };
        scope.spawn(run).join()
    });
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// A tuning file for the pair.
fn tuning() -> Tuning {
    Tuning::at(Addresses::from(BASE))
        .set("transport.kind", "\"xdp\"")
        .set("cards.sim.allow_network", "true")
        .set("cards.sim.media_address", "\"10.0.0.4\"")
}

/// Asks so long that the path to the agent is known, so that answers go past the kernel. Repeats what gets no answer: while a neighbour
/// moves or a link comes up datagrams are lost.
fn warm_up(gateway: &Gateway, agent: &mut Agent) {
    let sent = gateway.counter("bypass_sent");
    eventually("an answer goes past the kernel", SOON, || {
        let text = Agent::text("AUEP", Agent::id(), "ds/ds3-1/ds1-1/1", &[]);
        let before = agent.mail.len();
        eventually("an answer", SOON, || {
            agent.send(&text);
            agent.listen(Duration::from_millis(50));
            (agent.mail.len() > before).then_some(())
        });
        (counter(gateway, "bypass_sent") > sent).then_some(())
    });
}

/// A counter of the transport, which is published a few times a second.
fn counter(gateway: &Gateway, name: &str) -> u64 {
    pause(Duration::from_millis(300));
    gateway.counter(name)
}
