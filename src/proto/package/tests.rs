//! The catalogue against the tables of the RFCs, and parameters.

use super::parameters::{Detail, Digits, MfDigit, members, setup};
use super::*;
use crate::proto::codec::mgcp::{ConnectionRef, EventList, ListKind};

/// The tables, a line each: name, R as the RFC writes it (x, P, S, C), S and the duration in ms (- none, ~ ends by itself).
const TABLES: &[(PackageId, u8, &str)] = &[
    (PackageId::G, 1, "cf - BR|cg - TO -|ft x|it - TO -|ld C|mt x|oc x|of x|pat x OO|pt - TO -|rbk - TO 180000|rt - TO,C 180000"),
    (
        PackageId::D,
        1,
        "0 xC BR|1 xC BR|2 xC BR|3 xC BR|4 xC BR|5 xC BR|6 xC BR|7 xC BR|8 xC BR|9 xC BR|# xC BR|* xC BR|A xC BR|B xC BR|C xC BR|D xC BR|DD x TO 3000\
         |DO - OO|L x|oc x|of x|T x TO 16000|X x",
    ),
    (
        PackageId::T,
        1,
        "as x BR|bl - BR|bz - TO 30000|co1 x TO 3000|co2 x TO 3000|ct - OO|lb - OO|nm x TO 3000|mm x TO 3000|oc x|of x|om x TO 3000\
         |pst - TO -|qt - TO -|ro x TO 30000|sit x TO 2000|tl x TO -|tp x TO 3000|zz x TO 2000",
    ),
    (PackageId::R, 1, "co1 C TO,C 3000|co2 C TO,C 3000|iu C|ji C|ma C|oc xC|of xC|pl C|qa C|rto C|sr C|uc C"),
    (
        PackageId::MS,
        0,
        "ans P BR|bl S BR|bz - TO 30000|inf x|oc x|of x|rel P BR|res P BR|rlc PS BR|ro - TO 30000|rt - TO 180000|sup PS TO ~|sus P BR",
    ),
    (
        PackageId::DT,
        0,
        "ans P BR|bl S BR|bz - TO 30000|dl - TO 16000|oc x|of x|rel P BR|res P BR|rlc PS BR|ro - TO 30000|rt - TO 180000|sup PS TO ~|sus P BR",
    ),
    (PackageId::BL, 0, "bz - TO 30000|dl - TO 16000|hd PS|hf P|hu PS|oc x|of x|rel - BR|rg - TO 180000|ro - TO 30000|rt - TO,C 180000"),
    (
        PackageId::MD,
        0,
        "ans P BR|awk P BR|bl S BR|bz - TO 30000|cwk - BR|inf x TO ~|oc x|of x|rel P BR|res P BR|rlc PS BR|ro - TO 30000|rt - TO 180000\
         |sup PS TO ~|sus P BR|swk x",
    ),
    (PackageId::MO, 0, "ans P|oc x|of x|orbk x|rbz PS|rcl - BR|rel P BR|res - BR|rlc PS BR|sup - TO ~|sus - BR|swk x"),
    (PackageId::SL, 0, "oc x|of x|s - TO ~"),
    (PackageId::DM1, 0, ""),
    (PackageId::FM, 0, ""),
    (PackageId::BA, 0, ""),
    (PackageId::B, 0, "enf x|oef x|qbo x"),
    (
        PackageId::CG,
        1,
        "dt x TO 16000|rt x TO 180000|bt x TO 30000|ct x TO 30000|sit x TO 2000|wt x TO 30000|prt x TO 2000|cw x TO 30000|cr x TO 3000",
    ),
];

/// One line of the tables from the catalogue.
fn line(item: &Item) -> String {
    let mut line = item.name.to_owned();
    let events = item.event.map(|event| {
        let flags = [(event.persistent, 'P'), (event.state, 'S'), (event.place == Place::Connection, 'C')];
        let mut flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
        if flags.is_empty() {
            flags = if event.place == Place::Either { "xC" } else { "x" }.to_owned();
        }
        flags
    });
    line += &format!(" {}", events.as_deref().unwrap_or("-"));
    if let Some(signal) = item.signal {
        line += match signal.class {
            SignalClass::OnOff => " OO",
            SignalClass::TimeOut { .. } if signal.place != Place::Endpoint => " TO,C",
            SignalClass::TimeOut { .. } => " TO",
            SignalClass::Brief { .. } => " BR",
        };
        if let SignalClass::TimeOut { default_ms, variable } = signal.class {
            line += &match (default_ms, variable) {
                (Some(ms), false) => format!(" {ms}"),
                (None, true) => " ~".to_owned(),
                _ => " -".to_owned(),
            };
        }
    }
    line
}

/// G.01-12, D.01-23, T.01-19, R.01-12, MS.01-13, DT.01-13, BL.01-11, MD.01-16, MO.01-12, SL.01-03.
#[test]
fn the_catalogue_is_that_of_the_rfcs() {
    assert_eq!(TABLES.len(), PackageId::all().count());
    for (id, version, table) in TABLES {
        let found: Vec<String> = id.package().items.iter().map(line).collect();
        assert_eq!(found.join("|"), *table, "{}", id.package().name);
        assert_eq!(id.package().version, *version);
    }
}

/// PKG-06: any letter case; names and places agree.
#[test]
fn names_are_found_in_any_letter_case() {
    for id in PackageId::all() {
        let name = id.package().name;
        assert_eq!(find_package(name.as_bytes()), Some(id));
        assert_eq!(find_package(name.to_lowercase().as_bytes()), Some(id));
        for event in id.items() {
            let name = event.item().name;
            assert_eq!(find_item(id, name.to_lowercase().as_bytes()), Some(event), "{event:?}");
            assert_eq!(find_item(id, name.to_uppercase().as_bytes()), Some(event), "{event:?}");
            let mut buffer = [0; 20];
            let mut writer = Writer::new(&mut buffer);
            event.write(&mut writer);
            let length = writer.finish().unwrap();
            assert_eq!(&buffer[..length], format!("{event:?}").as_bytes());
        }
    }
    for wrong in ["", "GG", "M", "MT", "ATM", "RES", "L", "H"] {
        assert_eq!(find_package(wrong.as_bytes()), None);
    }
    assert_eq!((find_item(PackageId::T, b"co3"), find_item(PackageId::T, b"")), (None, None));
}

/// PKG-02: whatever has a TO signal can say that it is over.
#[test]
fn packages_with_time_out_signals_own_oc_and_of() {
    // H.248 has g/sc for all of them.
    for id in PackageId::all().filter(|id| *id != PackageId::CG) {
        let timed = id.items().any(|event| event.signal().is_some_and(|signal| matches!(signal.class, SignalClass::TimeOut { .. })));
        for name in ["oc", "of"] {
            let found = find_item(id, name.as_bytes()).is_some_and(|event| event.event().is_some() && event.signal().is_none());
            assert!(found || !timed, "{}/{name}", id.package().name);
        }
    }
}

/// PKG-03, PKG-05: the default package of every kind of channel is the first, and every package stands once.
#[test]
fn every_kind_of_channel_has_its_packages() {
    let table = [
        (ChannelKind::Clear, "T:1,G:1,D:1,R:1,SL:0,DM1:0,FM:0,BA:0,B:0"),
        (ChannelKind::CasMf, "MS:0,T:1,G:1,R:1,SL:0,FM:0,BA:0,B:0"),
        (ChannelKind::CasDtmf, "DT:0,D:1,T:1,G:1,R:1,SL:0,DM1:0,FM:0,BA:0,B:0"),
        (ChannelKind::PbxFxs, "BL:0,D:1,T:1,G:1,R:1,SL:0,DM1:0,FM:0,BA:0,B:0"),
        (ChannelKind::Operator, "MO:0,T:1,G:1,R:1,SL:0,FM:0,BA:0,B:0"),
        (ChannelKind::FeatureGroupD, "MD:0,T:1,G:1,R:1,SL:0,FM:0,BA:0,B:0"),
    ];
    assert_eq!(table.map(|(kind, _)| kind), ChannelKind::ALL);
    for (kind, list) in table {
        let text = |id: &PackageId| format!("{}:{}", id.package().name, id.package().version);
        assert_eq!(packages(kind).iter().map(text).collect::<Vec<_>>().join(","), list);
        assert_eq!(default_package(kind), packages(kind)[0]);
    }
}

/// Digits of maps are events of D; the wildcard and the long digit are none.
#[test]
fn digit_events_have_a_symbol() {
    let symbols = |package: PackageId| package.items().filter_map(EventId::symbol).map(char::from).collect::<String>();
    assert_eq!(symbols(PackageId::D), "0123456789#*ABCDT");
    assert_eq!(symbols(PackageId::T), "");
}

fn signal(text: &str) -> Result<SignalParameters, BadParameters> {
    let list = EventList::parse(text.as_bytes(), ListKind::Signals).unwrap();
    let event = list.iter().next().unwrap();
    let (package, name) = text.split('(').next().unwrap().split_once('/').unwrap();
    let id = find_item(find_package(package.as_bytes()).unwrap(), name.as_bytes()).unwrap();
    id.signal_parameters(event.parameters, ChannelKind::CasDtmf)
}

fn event(text: &str) -> Result<EventParameters, BadParameters> {
    let list = EventList::parse(text.as_bytes(), ListKind::Requested).unwrap();
    let event = list.iter().next().unwrap();
    let (package, name) = text.split('(').next().unwrap().split_once('/').unwrap();
    let id = find_item(find_package(package.as_bytes()).unwrap(), name.as_bytes()).unwrap();
    id.event_parameters(event.parameters)
}

/// SIG-01, SIG-06, SIG-08: signs belong to OO signals, `to` to TO signals of packages that allow it.
#[test]
fn signs_and_time_outs_stand_where_they_may() {
    let plain = |on, time_out_ms| Ok(SignalParameters { on, time_out_ms, detail: Detail::None });
    assert_eq!(signal("t/lb"), plain(true, None));
    assert_eq!(signal("t/lb()"), plain(true, None));
    assert_eq!(signal("t/lb(+)"), plain(true, None));
    assert_eq!(signal("t/lb(-)"), plain(false, None));
    assert_eq!(signal("t/bl(-)"), plain(false, None));
    assert_eq!(signal("t/bz(to=5000)"), plain(true, Some(5000)));
    assert_eq!(signal("t/bz(TO=0)"), plain(true, Some(0)));
    assert_eq!(signal("t/co1(to(9000))"), plain(true, Some(9000)));
    assert_eq!(signal("t/sit(4,to=1500)"), Ok(SignalParameters { on: true, time_out_ms: Some(1500), detail: Detail::Number(4) }));
    for wrong in [
        "t/lb(+,-)",
        "t/lb(to=1)",
        "t/lb(x)",
        "t/bz(+)",
        "t/bz(5000)",
        "t/bz(to=)",
        "t/bz(to=1,to=2)",
        "t/bz(to=-1)",
        "t/bz(to=1s)",
        "ms/rt(to=5000)",
        "ms/bz(to=1)",
        "ms/ans(+)",
        "sl/s(t/bz,to=1)",
        "d/1(to=1)",
        "t/bz(to=9999999999)",
    ] {
        if EventList::parse(wrong.as_bytes(), ListKind::Signals).is_ok() {
            assert_eq!(signal(wrong), Err(BadParameters), "{wrong}");
        }
    }
}

/// PKG-08, G.09, G.11, D.17, D.18, T.06, T.16, T.18.
#[test]
fn parameters_of_signals() {
    let detail = |text: &str| signal(text).map(|parameters| parameters.detail);
    assert_eq!(detail("t/sit(2)"), Ok(Detail::Number(2)));
    assert_eq!(detail("t/tp"), Ok(Detail::Number(95)));
    assert_eq!(detail("t/tp(255)"), Ok(Detail::Number(255)));
    assert_eq!(detail("t/ct(in=co1,out=co2,+)"), Ok(Detail::Transponder { co1_in: true }));
    assert_eq!(detail("t/ct(-,out=CO1,in=co2)"), Ok(Detail::Transponder { co1_in: false }));
    assert_eq!(detail("d/do(dg=#,-)"), Ok(Detail::Tone(b'#')));
    assert_eq!(detail("d/dd(dg=a,to=60000)"), Ok(Detail::Tone(b'A')));
    assert_eq!(detail("g/rbk(*)"), Ok(Detail::Connection(ConnectionRef::All)));
    assert_eq!(detail("g/rbk($,to=5)"), Ok(Detail::Connection(ConnectionRef::Current)));
    assert!(matches!(detail("g/rbk(A1F)"), Ok(Detail::Connection(ConnectionRef::Id(id))) if id.to_string() == "A1F"));
    for wrong in [
        "t/sit",
        "t/sit(0)",
        "t/sit(8)",
        "t/sit(9)",
        "t/sit(1,2)",
        "t/tp(256)",
        "g/pat",
        "g/pat(999,+)",
        "t/ct(in=co1,out=co1)",
        "t/ct(in=co1)",
        "t/ct",
        "t/ct(in=co1,out=co3)",
        "t/ct(in=co1,in=co2)",
        "d/do(+)",
        "d/do(dg=X)",
        "d/do(dg=12)",
        "d/dd(dg=1,to=49)",
        "d/dd(to=100)",
        "d/dd(dg=1,su=true)",
        "g/rbk",
        "g/rbk(xyz)",
        "g/rbk(A,B)",
    ] {
        assert_eq!(signal(wrong), Err(BadParameters), "{wrong}");
    }
}

/// EVT-09, EVT-10, D.17, R.03, R.08, R.10.
#[test]
fn parameters_of_events() {
    assert_eq!(event("t/sit(N)(2)"), Ok(EventParameters::Number(2)));
    assert_eq!(event("t/tp(N)"), Ok(EventParameters::Number(95)));
    assert_eq!(event("r/iu(N)"), Ok(EventParameters::Number(3)));
    assert_eq!(event("r/pl(N)(100000)"), Ok(EventParameters::Number(100_000)));
    assert_eq!(event("r/rto(N)"), Ok(EventParameters::Silence { seconds: 60, after_report: false }));
    assert_eq!(event("r/rto(N)(st=ra,120)"), Ok(EventParameters::Silence { seconds: 120, after_report: true }));
    assert_eq!(event("d/dd(N)"), Ok(EventParameters::ToneDuration { key: None, ms: None, suppress: false }));
    assert_eq!(
        event("d/dd(N)(su=TRUE,dg=x,to=2000)"),
        Ok(EventParameters::ToneDuration { key: Some(b'X'), ms: Some(2000), suppress: true })
    );
    assert_eq!(event("t/co1(N)"), Ok(EventParameters::None));
    for wrong in [
        "t/co1(N)(to=5)",
        "t/sit(N)",
        "t/sit(N)(8)",
        "r/pl(N)",
        "r/pl(N)(0)",
        "r/iu(N)(256)",
        "r/rto(N)(0)",
        "r/rto(N)(1,2)",
        "r/rto(N)(st=xx)",
        "d/dd(N)(to=39)",
        "d/dd(N)(to=60001)",
        "d/dd(N)(dg=1,dg=2)",
        "d/dd(N)(su=1)",
        "d/1(N)(to=5)",
        "ms/oc(N)(ms/sup)",
    ] {
        assert_eq!(event(wrong), Err(BadParameters), "{wrong}");
    }
}

/// CAS-03, CAS-04: what `sup` and `inf` must, may and may not carry (RFC 3064 table 13).
#[test]
fn parameters_of_setups() {
    let ok = [
        "ms/sup(addr(k0,5,5,5,1,2,3,4,s0))",
        "MS/SUP(ADDR(K0, 9, 1, 1, S0))",
        "dt/sup(addr(1,*,#,a,D))",
        "md/sup(ct(nda),id(k0,5,s0),addr(k0,1,s0))",
        "md/sup(id(k0,5,s0),ct(nta),ca(k0,1,s0))",
        "md/sup(ct(NTA),id(5))",
        "mo/sup(id(k0,1,s0),addr(k0,9,1,1,s2))",
        "md/inf(k0,5,s0)",
    ];
    for text in ok {
        assert_eq!(signal(text).map(|parameters| parameters.detail), Ok(Detail::Digits), "{text}");
    }
    let long = format!("ms/sup(addr(k0{}))", ",1".repeat(40));
    let wrong = [
        "ms/sup",
        "ms/sup()",
        "ms/sup(addr())",
        "ms/sup(id(1),addr(1))",
        "ms/sup(addr(1),addr(2))",
        "ms/sup(addr(*))",
        "ms/sup(addr(ko))",
        "ms/sup(addr(k3))",
        "ms/sup(addr(s4))",
        "ms/sup(k0,1,s0)",
        "ms/sup(addr(1),to=5)",
        "dt/sup(addr(k0,1,s0))",
        "dt/sup(addr(11))",
        "md/sup(addr(1))",
        "md/sup(ct(nda))",
        "md/sup(ct(xxx),id(1))",
        "md/sup(ct(nda,nta),id(1))",
        "mo/sup(addr(1))",
        "mo/sup(id(1))",
        "mo/sup(ct(nda),id(1),addr(1))",
        "md/inf",
        "md/inf(A)",
        &long,
    ];
    for text in wrong {
        assert_eq!(signal(text), Err(BadParameters), "{text}");
    }
    let list = EventList::parse(b"md/sup(addr(K0,7,S1), id(k1,5,s3), ct(nta))", ListKind::Signals).unwrap();
    let read = setup(list.iter().next().unwrap().parameters.unwrap(), false).unwrap();
    assert_eq!((read.tandem, read.country), (Some(true), Digits::NONE));
    let names = |digits: &Digits| digits.as_slice().iter().map(|&symbol| MfDigit::name(symbol)).collect::<Vec<_>>().join(",");
    assert_eq!((names(&read.address), names(&read.identity)), ("k0,7,s1".to_owned(), "k1,5,s3".to_owned()));
    assert!(MfDigit::is_st(read.address.as_slice()[2]) && MfDigit::is_kp(read.address.as_slice()[0]));
}

/// SL.01: brief and time-out signals of packages the channel has; no OO, no list in a list.
#[test]
fn a_signal_list_has_only_signals_that_end() {
    let list = EventList::parse(b"sl/s(d/1, d/2, t/bz(to=2000), G/rt)", ListKind::Signals).unwrap();
    let parameters = list.iter().next().unwrap().parameters;
    let found: Vec<String> = members(parameters.unwrap(), ChannelKind::CasDtmf).map(|(event, ..)| format!("{event:?}")).collect();
    assert_eq!(found, ["D/1", "D/2", "T/bz", "G/rt"]);
    assert_eq!(signal("sl/s(d/1)").map(|parameters| parameters.detail), Ok(Detail::List));
    let long = format!("sl/s(d/1{})", ",d/1".repeat(32));
    for wrong in
        ["sl/s", "sl/s()", "sl/s(t/lb)", "sl/s(sl/s(d/1))", "sl/s(d/1,zz/1)", "sl/s(1)", "sl/s(ms/rt)", "sl/s(r/co1)", "sl/s(t/oc)", &long]
    {
        assert_eq!(signal(wrong), Err(BadParameters), "{wrong}");
    }
}
