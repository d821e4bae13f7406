use super::*;
use crate::proto::codec::mgcp::Fault;
use crate::proto::codec::mgcp::digit_map::READ;

fn list(text: &str, kind: ListKind) -> Result<Vec<Event<'_>>, Fault> {
    EventList::parse(text.as_bytes(), kind).map(|list| list.iter().collect()).map_err(|refusal| refusal.fault)
}

fn requested(text: &str) -> Result<Vec<Event<'_>>, Fault> {
    list(text, ListKind::Requested)
}

fn values(parameters: ParameterList<'_>) -> Vec<String> {
    let show = |parameter| match parameter {
        Parameter::Value(value) => String::from_utf8_lossy(&value.bytes().collect::<Vec<_>>()).into_owned(),
        Parameter::Named { name, values: list } => format!("{}{:?}", String::from_utf8_lossy(name), values(list)),
    };
    parameters.iter().map(show).collect()
}

#[test]
fn names() {
    // G-EVT-01, G-EVT-03, G-EVT-05
    let events = requested("d/A@0a3f58, co1, *, #, D/*, */all@$, t/ALL@*, */*, x-foo/bar, 5, X").unwrap();
    let id = HexId::parse(b"0A3F58").unwrap();
    assert_eq!((events[0].package, events[0].name), (PackageRef::Named(b"d"), EventName::Id(b"A")));
    assert_eq!(events[0].connection, Some(ConnectionRef::Id(id)));
    assert_eq!((events[1].package, events[1].name), (PackageRef::Default, EventName::Id(b"co1")));
    assert_eq!((events[2].name, events[3].name), (EventName::Star, EventName::Hash));
    assert_eq!((events[4].package, events[4].name), (PackageRef::Named(b"D"), EventName::Star));
    assert_eq!((events[5].package, events[5].name, events[5].connection), (PackageRef::All, EventName::All, Some(ConnectionRef::Current)));
    assert_eq!((events[6].name, events[6].connection), (EventName::All, Some(ConnectionRef::All)));
    assert_eq!((events[7].package, events[7].name), (PackageRef::All, EventName::Star));
    assert_eq!(events[8].package, PackageRef::Named(b"x-foo"));
    assert_eq!(events[10].name, EventName::Id(b"X"));
    for bad in ["-a", "a-", "/a", "a/", "a//b", "a b", "a,", ",a", "a/-b", "-t/x", "é", "a@", "a@x", "a@12 3", "D/[", "D/[]", "D/[9-1]"] {
        assert!(requested(bad).is_err(), "{bad}");
    }
    assert_eq!(requested(&format!("a@{}", "1".repeat(33))), Err(Fault::EventConnection));
    assert!(requested(&format!("a@{}", "1".repeat(32))).is_ok());
}

#[test]
fn ranges_only_where_events_are_detected() {
    // G-EVT-04
    for kind in [ListKind::Requested, ListKind::Detected] {
        let events = list("D/[0-9#A-D]", kind).unwrap();
        assert!(matches!(events[0].name, EventName::Range { symbols, .. } if symbols.len() == 15));
    }
    for kind in [ListKind::Signals, ListKind::Observed, ListKind::States] {
        assert_eq!(list("D/[0-9]", kind), Err(Fault::EventRange));
    }
}

#[test]
fn blanks_are_tolerated() {
    // G-SYN-06
    let spaced = requested(" L/hu (N) , L/hd ( A , K ) ( p = 2 ) ").unwrap();
    assert_eq!(spaced[0].raw, b"L/hu (N)");
    assert_eq!(spaced[1].actions.unwrap().iter().count(), 2);
    assert_eq!(values(spaced[1].parameters.unwrap()), ["p[\"2\"]"]);
    assert_eq!(requested("  ").unwrap(), []);
}

#[test]
fn action_combinations_follow_table_m4() {
    // G-REQ-04: every pair of base actions, in both orders.
    let legal = ["NS", "NK", "NE", "AS", "AK", "AE", "DK", "KE", "KI", "SI"];
    let written = |action: char| if action == 'E' { "E(S(dl))".to_string() } else { action.to_string() };
    for a in "NADSIKE".chars() {
        assert!(requested(&format!("x({})", written(a))).is_ok());
        for b in "NADSIKE".chars() {
            let expected = legal.iter().any(|pair| pair.contains(a) && pair.contains(b) && a != b);
            let text = format!("x({},{})", written(a), written(b));
            let found = requested(&text);
            assert_eq!(found.is_ok(), expected, "{a},{b}");
            assert!(expected || found == Err(Fault::ActionCombination));
        }
    }
    assert!(requested("x(N,K,E(S(dl)))").is_ok() && requested("x(k,a,e(s(dl)))").is_ok());
    assert_eq!(requested("x(N,S,I)"), Err(Fault::ActionCombination));
}

#[test]
fn actions_that_are_none() {
    // G-REQ-16, field bug O38
    for bad in ["T/as(Z)", "ev(p=2)", "ev(NN)", "ev(N A)", "ev(,N)", "ev()", "ev(zz/)", "ev(N,)"] {
        assert_eq!(requested(bad), Err(Fault::ActionUnknown), "{bad}");
    }
    for open in ["ev(", "ev(N", "ev(N,", "ev(N)("] {
        assert!(requested(open).is_err(), "{open}");
    }
    let events = requested("ev(zz/go(a(b)))").unwrap();
    let action = events[0].actions.unwrap().iter().next().unwrap();
    assert!(matches!(action, Action::Package { package: b"zz", name: b"go", parameters: Some(list) } if values(list) == ["a[\"b\"]"]));
}

#[test]
fn embedded_requests() {
    // G-REQ-12, G-REQ-14: any order, one level, a group once.
    let events = requested("hd(A,E(S(dl,ms/rt(to=5)),R(D/[0-9](D), hu(N)),D((0T|[1-7]xxx))))").unwrap();
    let embedded = events[0].actions.unwrap().embedded().unwrap();
    assert_eq!(embedded.signals.unwrap().iter().count(), 2);
    assert_eq!(embedded.requested.unwrap().iter().count(), 2);
    assert_eq!(embedded.digit_map.unwrap().as_bytes(), b"(0T|[1-7]xxx)");
    let inner = embedded.requested.unwrap().iter().next().unwrap();
    assert!(inner.actions.unwrap().set().has(ActionSet::DIGIT_MAP));
    assert_eq!(requested("hd(E(R(hf(E(S(dl))))))"), Err(Fault::EmbeddedDepth));
    assert!(requested("hd(E(D(xx))),hu(E(R()))").is_ok());
    for bad in ["hd(E)", "hd(E())", "hd(E(R(a),R(b)))", "hd(E(Q(a)))", "hd(E(R(a)", "hd(E(D()))", "hd(E(D(xx))", "hd(E(R(a) S(b)))"] {
        assert!(requested(bad).is_err(), "{bad}");
    }
}

#[test]
fn parameters() {
    // G-EVT-12, G-SYN-07
    let signals =
        list("A/ann(\"a,b)c\",3), G/oc(G/rt@C7),x(to=6000,to(6000)), a(b=c=d,!,+,-), s(\"a\"\"b,(c)\"), e()", ListKind::Signals).unwrap();
    let shown: Vec<Vec<String>> = signals.iter().map(|event| values(event.parameters.unwrap())).collect();
    assert_eq!(shown[0], ["a,b)c", "3"]);
    assert_eq!(shown[1], ["G/rt@C7"]);
    assert_eq!(shown[2], ["to[\"6000\"]", "to[\"6000\"]"]);
    assert_eq!(shown[3], ["b[\"c[\\\"d\\\"]\"]", "!", "+", "-"]);
    assert_eq!(shown[4], ["a\"b,(c)"]);
    assert!(shown[5].is_empty());
    for bad in ["T/tp(", "a(b", "a(b c)", "a(,)", "a(b,)", "a(=b)", "a(b=)", "a(\"x)", "a(b))", "a(b)(c)", "a(\u{e9})"] {
        assert!(list(bad, ListKind::Signals).is_err(), "{bad}");
    }
    let value = |text| match list(text, ListKind::Signals).unwrap()[0].parameters.unwrap().iter().next().unwrap() {
        Parameter::Value(value) => value,
        named => panic!("{named:?}"),
    };
    assert!(value("a(\"Foo\")").is(b"fOO") && value("a(foo)").is(b"fOO") && !value("a(foo)").is(b"fo"));
    assert_eq!((value("a(\"17\")").decimal(), value("a(17x)").decimal()), (Some(17), None));
}

#[test]
fn detected_events_have_parameters_not_actions() {
    // G-EVT-15
    let events = list("D/[0-9](N)", ListKind::Detected).unwrap();
    assert!(events[0].actions.is_none() && values(events[0].parameters.unwrap()) == ["N"]);
}

#[test]
fn nesting_is_bounded() {
    // G-SYN-13
    let nested = |depth: usize| format!("a{}{}", "(b".repeat(depth), ")".repeat(depth));
    assert!(list(&nested(NESTING_MAX), ListKind::Signals).is_ok());
    assert_eq!(list(&nested(NESTING_MAX + 1), ListKind::Signals), Err(Fault::NestingTooDeep));
    assert!(list(&format!("a({})", "b=".repeat(10_000)), ListKind::Signals).is_err());
    assert!(requested(&"a(E(R(".repeat(10_000)).is_err());
    assert!(requested(&format!("a(N){}", "(".repeat(10_000))).is_err());
}

/// An embedded digit map is read when its list comes, however often the list is gone through for the endpoints it is for (G-REQ-11).
#[test]
fn embedded_digit_maps_are_read_once() {
    let read = || READ.with(std::cell::Cell::get);
    let before = read();
    let map = "(1[2-9]xx|0T)";
    let text = format!("L/hd(E(R(D/[0-9](D)),D( {map} ))), D/#(N)");
    let list = EventList::parse(text.as_bytes(), ListKind::Requested).unwrap();
    for _ in 0..100 {
        let embedded = list.iter().find_map(|event| event.actions?.embedded()).unwrap();
        let (kept, alone) = (embedded.digit_map.unwrap(), DigitMap::read_before(map.as_bytes()));
        assert_eq!((kept, kept.symbols()), (alone, alone.symbols()));
        assert_eq!(list.iter().count(), 2);
    }
    assert_eq!(read() - before, 1);
    assert!(EventList::parse(b"L/hd(E(D((1|))))", ListKind::Requested).is_err());
}
