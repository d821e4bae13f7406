//! Admission of terminations, with the bank of a gateway that stands alone, or a node of a cluster that a test plays.

use super::*;
use crate::proto::cac::asker::{Asker, Call, FromLink, ToLink};
use crate::proto::cac::desk::Desk;
use crate::proto::cac::share::Bank;
use crate::proto::cac::{Amount, Amounts, Cause, Charge, Class, Denial, Direction, Kind, Prefix, Rate, Scope, ScopeId, Tree};
use crate::proto::cac::{Limits as Allowed, UNLIMITED};
use crate::proto::plan::Admission;

const POOL: ScopeId = ScopeId(0);
const NORTH: ScopeId = ScopeId(1);
const ZONE: ScopeId = ScopeId(3);
const NONE: Allowed = Allowed::NONE;
const RTP: &str = "A=${M{L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}}}";

fn remote(address: &str) -> String {
    format!("R{{\nv=0\nc=IN IP4 {address}\nm=audio 5004 RTP/AVP 0\n}}")
}

fn calls(limit: u32) -> Allowed {
    Allowed::of_calls(limit)
}

/// A gateway whose T1 3 is a trunk group and T1 4 another one, under one pool, with a zone in the network.
struct Admitting {
    bench: Bench,
    /// Of a gateway that stands alone.
    bank: Option<Bank>,
}

impl Admitting {
    fn with(limits: [Allowed; 4], cluster: bool, change: impl Fn(&mut [Scope])) -> Admitting {
        Admitting::speaking(MessageEncoding::Compact, limits, cluster, change)
    }

    fn speaking(encoding: MessageEncoding, limits: [Allowed; 4], cluster: bool, change: impl Fn(&mut [Scope])) -> Admitting {
        let mut plan = plan(1);
        plan.gateways[0].encoding = encoding;
        let zone = vec![Prefix::parse("198.51.100.0/24").unwrap()];
        let mut scopes = vec![
            Scope::new(Kind::Pool, "carrier"),
            Scope::new(Kind::TrunkGroup, "north").under(POOL),
            Scope::new(Kind::TrunkGroup, "south").under(POOL),
            Scope { prefixes: zone, ..Scope::new(Kind::Zone, "core") },
        ];
        change(&mut scopes);
        let group = |endpoint: u32| match endpoint / 24 {
            2 => NORTH,
            3 => ScopeId(2),
            _ => ScopeId::NONE,
        };
        plan.admission = Some(Admission {
            tree: Tree::new(scopes).unwrap(),
            groups: (0..96).map(group).collect(),
            decide_within: 250 * MS,
            cluster,
            open: vec![true, true, false, true],
        });
        let mut bench = Bench::with(plan);
        bench.run(3 * S);
        bench.accept(controller(1));
        let desk_limits = if cluster { [NONE; 4] } else { limits };
        let mut desk = Desk::new(&desk_limits, 1, 10);
        bench.gateway.set_first_slot(desk.grow(bench.gateway.slots()));
        desk.asker = cluster.then(|| Asker::new(0, desk.slots(), 4, 64));
        bench.gateway.calls.desk = Some(Box::new(desk));
        Admitting { bench, bank: (!cluster).then(|| Bank::new(&limits, 1)) }
    }

    fn under(limits: [Allowed; 4]) -> Admitting {
        Admitting::with(limits, false, |_| {})
    }

    fn in_cluster() -> Admitting {
        Admitting::with([NONE; 4], true, |_| {})
    }

    fn desk(&mut self) -> &mut Desk {
        self.bench.gateway.calls.desk.as_mut().unwrap()
    }

    /// What the core and the bank say to each other, until nobody has anything to say.
    fn settle(&mut self) {
        let Some(bank) = &mut self.bank else { return };
        let Bench { gateway, now, sent, encoding, .. } = &mut self.bench;
        loop {
            if let Some(message) = gateway.calls.desk.as_mut().unwrap().holder.poll() {
                bank.handle(*now, 0, message);
            } else if let Some((_, message)) = bank.poll() {
                let Some((ticket, charge, result)) = gateway.calls.desk.as_mut().unwrap().holder.handle(message) else { continue };
                gateway.claim_answered(*now, ticket, result, &mut |to, bytes| {
                    sent.push((to, text(*encoding, bytes)));
                });
                gateway.calls.desk.as_mut().unwrap().holder.settle(&charge);
            } else {
                break;
            }
        }
        self.bench.turn();
    }

    /// What stands in the braces of the reply to these actions.
    #[track_caller]
    fn ask(&mut self, actions: &str) -> String {
        self.bench.next += 1;
        let id = self.bench.next;
        self.bench.sent.clear();
        self.bench.say(&format!("T={id}{{{actions}}}"));
        self.settle();
        let head = format!("!/1 [192.0.2.10]:2944\nP={id}{{");
        let reply = self.bench.sent.iter().find_map(|(_, text)| text.strip_prefix(&head)?.strip_suffix('}').map(str::to_owned));
        reply.unwrap_or_else(|| panic!("{actions}: {:?}", self.bench.sent))
    }

    fn used(&mut self, scope: ScopeId) -> Amounts {
        self.desk().holder.used(scope)
    }

    fn in_use(&mut self, scope: ScopeId) -> u32 {
        self.used(scope).get(Amount::Calls)
    }

    #[track_caller]
    fn assert_nothing_in_use(&mut self) {
        for scope in (0..4).map(ScopeId) {
            assert!(self.used(scope).is_zero(), "{scope:?}: {:?}", self.used(scope));
        }
        assert_eq!(self.bench.gateway.contexts(), 0);
    }

    /// The questions and reports for the node since it was looked at last.
    fn told(&mut self) -> Vec<ToLink> {
        let asker = self.desk().asker.as_mut().unwrap();
        std::iter::from_fn(|| asker.first().inspect(|_| asker.sent())).collect()
    }

    fn node_says(&mut self, message: FromLink) {
        let Bench { gateway, now, sent, encoding, .. } = &mut self.bench;
        let answered = gateway.calls.desk.as_mut().unwrap().asker.as_mut().unwrap().handle(message);
        if let Some((ticket, _, result)) = answered {
            gateway.claim_answered(*now, ticket, result, &mut |to, bytes| {
                sent.push((to, text(*encoding, bytes)));
            });
            gateway.calls.desk.as_mut().unwrap().asker.as_mut().unwrap().settle();
        }
        self.bench.turn();
    }
}

fn context(reply: &str) -> u32 {
    reply.strip_prefix("C=").and_then(|rest| rest.split('{').next()?.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
}

#[track_caller]
fn refused(reply: &str) {
    assert!(reply.contains("ER=510{\"admission: "), "{reply}");
}

#[track_caller]
fn done(reply: &str) {
    assert!(!reply.contains("ER="), "{reply}");
}

/// How the call of a context may end.
type End = (&'static str, fn(&mut Admitting, u32));

/// An Add asks, as CRCX does; what ends a termination frees its place, whatever it is.
#[test]
fn every_add_takes_a_place_and_every_end_frees_it() {
    let ends: [End; 7] = [
        ("Subtract of each", |admitting, context| done(&admitting.ask(&format!("C={context}{{S=ds/ds1_3/1,S=rtp/*}}")))),
        ("Subtract, the other way round", |admitting, context| done(&admitting.ask(&format!("C={context}{{S=rtp/*,S=ds/ds1_3/1}}")))),
        ("Subtract of all", |admitting, context| done(&admitting.ask(&format!("C={context}{{W-S=*}}")))),
        ("Subtract of all contexts", |admitting, _| done(&admitting.ask("C=*{W-S=*}"))),
        ("a Move, then Subtract", |admitting, _| {
            done(&admitting.ask("C=${MV=ds/ds1_3/1}"));
            assert_eq!((admitting.in_use(NORTH), admitting.in_use(ZONE)), (1, 1));
            done(&admitting.ask("C=*{W-S=*}"));
        }),
        ("an operator", |admitting, _| {
            let endpoint = admitting.bench.gateway.ranges().next().unwrap().iter().next().unwrap();
            admitting.bench.gateway.free(admitting.bench.now, endpoint);
        }),
        ("a forced end of service", |admitting, _| {
            admitting.bench.service(0, false, 905);
            admitting.bench.service(0, true, 900);
            admitting.ask("C=*{W-S=*}");
        }),
    ];
    for (end, act) in ends {
        let mut admitting = Admitting::under([NONE, calls(1), NONE, calls(1)]);
        // Again and again: places come back whole.
        for round in 0..3 {
            let rtp = format!("A=${{M{{L{{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0\n}},{}}}}}", remote("198.51.100.7"));
            let reply = admitting.ask(&format!("C=${{A=ds/ds1_3/1,{rtp}}}"));
            done(&reply);
            assert_eq!((admitting.in_use(POOL), admitting.in_use(NORTH), admitting.in_use(ZONE)), (1, 1, 1), "{end}");
            refused(&admitting.ask("C=${A=ds/ds1_3/2}"));
            done(&admitting.ask("C=${A=ds/ds1_4/2}"));
            done(&admitting.ask("C=*{S=ds/ds1_4/2}"));
            act(&mut admitting, context(&reply));
            admitting.settle();
            assert_eq!((admitting.in_use(POOL), admitting.in_use(NORTH), admitting.in_use(ZONE)), (0, 0, 0), "{end}, {round}");
        }
        admitting.assert_nothing_in_use();
    }
}

/// A refusal is 510 in the place of the command; nothing that stands behind it is executed, and no context is left.
#[test]
fn a_refused_add_leaves_nothing_behind() {
    let mut admitting = Admitting::under([calls(1), NONE, NONE, NONE]);
    done(&admitting.ask("C=${A=ds/ds1_3/1}"));
    let reply = admitting.ask(&format!("C=${{A=ds/ds1_4/1,{RTP}}}"));
    assert!(reply.ends_with("{A=ds/ds1_4/1{ER=510{\"admission: limit reached\"}}}") && !reply.contains("rtp"), "{reply}");
    assert_eq!((admitting.bench.gateway.contexts(), admitting.in_use(POOL)), (1, 1));
    // An optional one is passed over.
    let reply = admitting.ask(&format!("C=${{O-A=ds/ds1_4/1,{RTP}}}"));
    assert!(reply.contains("ER=510{") && reply.contains("A=rtp/"), "{reply}");
    // Of several those that fit are added, and each of the others is refused.
    done(&admitting.ask("C=*{W-S=*}"));
    let reply = admitting.ask("C=${A=ds/ds1_4/*}");
    assert_eq!((reply.matches("A=ds/ds1_4/").count(), reply.matches("ER=510{").count()), (24, 23), "{reply}");
    assert_eq!(admitting.in_use(POOL), 1);
    done(&admitting.ask("C=*{W-S=*}"));
    admitting.assert_nothing_in_use();
}

/// `$` means the same channel when its claim is granted as when it was made.
#[test]
fn a_channel_that_is_chosen_is_asked_for_once() {
    let mut admitting = Admitting::under([calls(4), NONE, NONE, NONE]);
    for channel in [1, 2, 3, 4] {
        let reply = admitting.ask("C=${A=ds/ds1_3/$}");
        assert!(reply.contains(&format!("{{A=ds/ds1_3/{channel}}}")), "{reply}");
    }
    refused(&admitting.ask("C=${A=ds/ds1_3/$}"));
    assert_eq!(admitting.in_use(POOL), 4);
}

/// Emergencies pass, and contexts with priority have its head room; so have those of a trunk group of such calls.
#[test]
fn emergency_and_priority_of_a_context_pass() {
    let mut admitting = Admitting::under([Allowed { priority_percent: 100, ..calls(1) }, NONE, NONE, NONE]);
    done(&admitting.ask("C=${A=ds/ds1_3/1}"));
    refused(&admitting.ask("C=${A=ds/ds1_3/2}"));
    done(&admitting.ask("C=${PR=5,A=ds/ds1_3/2}"));
    refused(&admitting.ask("C=${PR=5,A=ds/ds1_3/3}"));
    for channel in 3..6 {
        done(&admitting.ask(&format!("C=${{EG,A=ds/ds1_3/{channel},{RTP}}}")));
    }
    assert_eq!(admitting.in_use(POOL), 5);
    done(&admitting.ask("C=*{W-S=*}"));
    admitting.assert_nothing_in_use();
    let mut admitting = Admitting::with([calls(0), NONE, NONE, NONE], false, |scopes| scopes[1].class = Class::Emergency);
    done(&admitting.ask("C=${A=ds/ds1_3/1}"));
    refused(&admitting.ask("C=${A=ds/ds1_4/1}"));
}

/// A call goes the way its trunk group goes, to the trunk where it comes with a far end or meets another channel, else from it.
#[test]
fn the_direction_is_that_of_the_group_or_of_what_is_added() {
    let ways = |admitting: &mut Admitting, actions: &str| {
        done(&admitting.ask(actions));
        let used = admitting.used(POOL);
        done(&admitting.ask("C=*{W-S=*}"));
        admitting.assert_nothing_in_use();
        (used.get(Amount::Inbound), used.get(Amount::Outbound))
    };
    let far = format!("A=${{M{{{}}}}}", remote("203.0.113.1"));
    let mut admitting = Admitting::under([NONE; 4]);
    assert_eq!(ways(&mut admitting, &format!("C=${{A=ds/ds1_3/1,{RTP}}}")), (1, 0));
    assert_eq!(ways(&mut admitting, &format!("C=${{A=ds/ds1_3/1,{far}}}")), (0, 1));
    assert_eq!(ways(&mut admitting, &format!("C=${{{far},A=ds/ds1_3/1}}")), (0, 1));
    assert_eq!(ways(&mut admitting, "C=${A=ds/ds1_3/1,A=ds/ds1_4/1}"), (1, 1));
    let mut admitting = Admitting::with([NONE; 4], false, |scopes| scopes[1].one_way = Some(Direction::Inbound));
    assert_eq!(ways(&mut admitting, &format!("C=${{A=ds/ds1_3/1,{far}}}")), (1, 0));
    let mut admitting = Admitting::with([NONE; 4], false, |scopes| scopes[1].undescribed = Direction::Outbound);
    assert_eq!(ways(&mut admitting, &format!("C=${{A=ds/ds1_3/1,{RTP}}}")), (0, 1));
}

/// Where the far end is, is known when it is described: then the termination asks, and stays as it was when that is refused (R23).
#[test]
fn zones_are_asked_when_the_far_end_is_known() {
    let mut admitting = Admitting::under([NONE, NONE, NONE, calls(1)]);
    let call = |admitting: &mut Admitting, channel: u32| {
        let reply = admitting.ask(&format!("C=${{A=ds/ds1_3/{channel},{RTP}}}"));
        (context(&reply), reply.split("A=").nth(2).unwrap().split('{').next().unwrap().to_owned())
    };
    let ((first, one), (second, two)) = (call(&mut admitting, 1), call(&mut admitting, 2));
    assert_eq!(admitting.in_use(ZONE), 0);
    let tell = |admitting: &mut Admitting, context: u32, name: &str, address: &str| {
        admitting.ask(&format!("C={context}{{MF={name}{{M{{{}}}}}}}", remote(address)))
    };
    done(&tell(&mut admitting, first, &one, "198.51.100.7"));
    assert_eq!(admitting.in_use(ZONE), 1);
    refused(&tell(&mut admitting, second, &two, "198.51.100.8"));
    assert!(!admitting.ask(&format!("C={second}{{AV={two}{{AT{{M}}}}}}")).contains("198.51.100.8"));
    done(&tell(&mut admitting, second, &two, "203.0.113.1"));
    done(&tell(&mut admitting, first, &one, "203.0.113.2"));
    assert_eq!(admitting.in_use(ZONE), 0);
    done(&tell(&mut admitting, second, &two, "198.51.100.8"));
    assert_eq!((admitting.in_use(ZONE), admitting.used(ZONE).get(Amount::Kbits)), (1, 80));
    // A card that refuses the change gives the place back.
    for delay in [0, 50] {
        done(&tell(&mut admitting, second, &two, "203.0.113.1"));
        admitting.bench.card(CardOrder::Delay(delay));
        admitting.bench.card(CardOrder::Refuse(1));
        admitting.bench.say(&format!("T=9{delay}00{{C={second}{{MF={two}{{M{{{}}}}}}}}}", remote("198.51.100.8")));
        admitting.settle();
        admitting.bench.run(100 * MS);
        assert_eq!(admitting.in_use(ZONE), 0, "{delay}");
        admitting.bench.card(CardOrder::Delay(0));
    }
    done(&admitting.ask("C=*{W-S=*}"));
    admitting.assert_nothing_in_use();
}

/// A channel counts the bandwidth of one stream of the first codec, an ephemeral termination that of its own; rates are of Adds.
#[test]
fn bandwidth_and_rates_are_limited_too() {
    let mut admitting = Admitting::under([Allowed { kbits: 100, ..NONE }, NONE, NONE, NONE]);
    done(&admitting.ask("C=${A=ds/ds1_3/1}"));
    let reply = admitting.ask("C=${A=ds/ds1_3/2}");
    assert!(reply.contains("ER=510{\"admission: bandwidth limit reached\"}"), "{reply}");
    let rate = Some(Rate { per_second: 1, burst: 2 });
    let mut admitting = Admitting::under([NONE, Allowed { calls: UNLIMITED, inbound_rate: rate, ..NONE }, NONE, NONE]);
    done(&admitting.ask("C=${A=ds/ds1_3/1}"));
    done(&admitting.ask("C=${A=ds/ds1_3/2}"));
    refused(&admitting.ask("C=${A=ds/ds1_3/3}"));
    admitting.bench.run(S);
    done(&admitting.ask("C=${A=ds/ds1_3/3}"));
}

fn begun(told: &[ToLink]) -> (Call, Charge) {
    match told {
        [ToLink::Ask(call, charge)] => (*call, *charge),
        other => panic!("{other:?}"),
    }
}

const FULL: Denial = Denial { scope: POOL, cause: Cause::Calls, used: 1, limit: 1 };

/// In a cluster the command waits for the node: its controller hears that it is being worked on, then what the node says.
#[test]
fn in_a_cluster_a_command_waits_for_the_node() {
    let mut admitting = Admitting::in_cluster();
    admitting.bench.say(&format!("T=700{{C=${{A=ds/ds1_3/1,{RTP}}}}}"));
    let (call, charge) = begun(&admitting.told());
    assert_eq!(charge.scopes().collect::<Vec<_>>(), [NORTH, POOL]);
    admitting.bench.run(210 * MS);
    assert!(admitting.bench.sent.iter().any(|(_, text)| text.contains("PN=700")), "{:?}", admitting.bench.sent);
    admitting.bench.sent.clear();
    admitting.node_says(FromLink::Decided(call, Ok(())));
    let reply = &admitting.bench.sent[0].1;
    assert!(reply.contains("A=ds/ds1_3/1,A=rtp/") && !reply.contains("ER="), "{reply}");
    assert_eq!((admitting.in_use(NORTH), admitting.told()), (1, vec![]));
    // The next one is refused.
    admitting.bench.sent.clear();
    admitting.bench.say("T=701{C=${A=ds/ds1_3/2}}");
    let (second, _) = begun(&admitting.told());
    admitting.node_says(FromLink::Decided(second, Err(FULL)));
    refused(&admitting.bench.sent[0].1);
    // The end is told.
    admitting.bench.say("T=702{C=*{W-S=*}}");
    assert_eq!(admitting.told(), [ToLink::End(call)]);
    admitting.assert_nothing_in_use();
    // Emergencies do not wait.
    admitting.bench.sent.clear();
    admitting.bench.say("T=703{C=${EG,A=ds/ds1_3/2}}");
    assert!(admitting.bench.sent[0].1.contains("A=ds/ds1_3/2}"), "{:?}", admitting.bench.sent);
    assert_eq!(begun(&admitting.told()).1.class, Class::Emergency);
}

/// The same in octets.
#[test]
fn a_reply_that_waited_for_the_node_is_in_the_encoding_of_the_gateway() {
    let mut admitting = Admitting::speaking(MessageEncoding::Binary, [NONE; 4], true, |_| {});
    for (id, answer, wanted) in [(700, Ok(()), "A=ds/ds1_3/1}"), (701, Err(FULL), "ER=510{")] {
        admitting.bench.sent.clear();
        admitting.bench.say(&format!("T={id}{{C=${{A=ds/ds1_3/{}}}}}", id - 699));
        let (call, _) = begun(&admitting.told());
        admitting.node_says(FromLink::Decided(call, answer));
        assert!(admitting.bench.sent[0].1.contains(wanted), "{:?}", admitting.bench.sent);
    }
}

/// R39, R40: a node that stands still keeps no command waiting for longer than its time; then the policy decides. An answer that comes
/// after all frees what nobody wants.
#[test]
fn a_node_that_stands_still_keeps_no_command_waiting() {
    let mut admitting = Admitting::in_cluster();
    for (actions, wanted) in [("C=${A=ds/ds1_3/1}", "{A=ds/ds1_3/1}"), ("C=${A=ds/ds1_4/1}", "ER=510{\"admission: nobody")] {
        admitting.bench.next += 1;
        admitting.bench.sent.clear();
        admitting.bench.say(&format!("T={}{{{actions}}}", admitting.bench.next));
        admitting.bench.run(310 * MS);
        let last = admitting.bench.sent.last().unwrap();
        assert!(last.1.contains(wanted), "{actions}: {last:?}");
    }
    let told = admitting.told();
    let [ToLink::Ask(first, _), ToLink::Alone(alone, _), ToLink::Ask(second, _)] = told[..] else { panic!("{told:?}") };
    assert_eq!((first, admitting.in_use(NORTH), admitting.in_use(POOL)), (alone, 1, 1));
    admitting.node_says(FromLink::Decided(second, Ok(())));
    assert_eq!(admitting.told(), [ToLink::End(second)]);
    assert_eq!(admitting.in_use(POOL), 1);
}
