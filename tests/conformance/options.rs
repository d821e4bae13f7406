//! LocalConnectionOptions and the choice of codecs (LCO).

use super::{SDP, code, connection, create, each_layout, each_layout_with};
use tollgate::proto::endpoint::Encoding;
use tollgate::proto::plan::{Plan, Settings};
use tollgate::sim::{Reply, World};

/// A gateway that has G.729 as well.
fn three_codecs(_: &mut Plan, settings: &mut Settings) {
    settings.encodings = [&b"PCMU"[..], b"PCMA", b"G729"].into_iter().filter_map(Encoding::by_name).collect();
}

fn make(w: &mut World, l: &str, description: &[&str]) -> Reply {
    let l = format!("L: {l}");
    let mut parameters = vec!["C: A1", "M: recvonly"];
    if l.len() > 3 {
        parameters.push(&l);
    }
    parameters.extend(description);
    let made = w.ask("CRCX", "ds/ds1-2/1", &parameters);
    assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
    made
}

/// The codecs of a description, and its period.
fn media(reply: &Reply) -> (String, String) {
    let value = |prefix: &str| {
        let line = reply.description.lines().find(|line| line.starts_with(prefix));
        line.map_or(String::new(), |line| line[prefix.len()..].to_owned())
    };
    let list = value("m=audio ").splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
    (list, value("a=ptime:"))
}

fn offer(list: &str) -> Vec<String> {
    ["", "v=0", "c=IN IP4 192.0.2.50"].map(str::to_owned).into_iter().chain([format!("m=audio 40000 RTP/AVP {list}")]).collect()
}

fn lines(offer: &[String]) -> Vec<&str> {
    offer.iter().map(String::as_str).collect()
}

/// FM-01 to FM-04, FM-06, PKG-11: an encoding that must have parameters is not supported, for there are none that could be had; what is
/// optional is ignored; what is asked of an encoding that is not in the list is inconsistent.
#[test]
fn formats_that_must_be_had_are_not_supported() {
    each_layout(|w| {
        for (options, expected) in [
            ("a:PCMU, fmtp:\"PCMU x\"", Err(534)),
            ("a:PCMU;PCMA, fmtp:\"PCMU x\"", Ok("8")),
            ("a:PCMU;PCMA, FMTP:\"pcmu x\", o-fmtp:\"PCMA y\"", Ok("8")),
            ("a:PCMU;PCMA, o-fmtp:\"PCMU x\";\"PCMA y\"", Ok("0 8")),
            ("a:PCMU;PCMA, fmtp:\"PCMU x\";\"PCMA y\"", Err(534)),
            ("a:PCMU;PCMA;PCMU, fmtp:\"PCMU:1 x\"", Ok("8 0")),
            ("a:PCMU;PCMA;PCMU, fmtp:\"PCMU:2 x\"", Ok("0 8")),
            ("a:PCMU;PCMU, fmtp:\"PCMU:3 x\"", Err(524)),
            ("a:PCMU, fmtp:\"PCMU:0 x\"", Err(524)),
            ("a:PCMU, fmtp:\"PCMA x\"", Err(524)),
            ("fmtp:\"PCMU x\"", Err(524)),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 200-210\"", Ok("0")),
            ("a:PCMU;telephone-event, o-fmtp:\"telephone-event 70\", fmtp:\"telephone-event 0-15\"", Ok("0 101")),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 0-16\"", Ok("0")),
            ("a:telephone-event;PCMA, fmtp:\"telephone-event 1,3-5\"", Ok("8 101")),
            ("a:PCMU, fmtp:PCMU", Err(532)),
            ("a:PCMU, fmtp", Err(532)),
            ("a:PCMU, fmtp:\"PCMU\"", Err(532)),
        ] {
            let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", &format!("L: {options}")]);
            let media = made.description.lines().find_map(|line| line.strip_prefix("m=audio ")).unwrap_or_default();
            match expected {
                Ok(list) => {
                    assert_eq!((made.code, media.splitn(3, ' ').nth(2)), (Some(200), Some(list)), "{options}");
                    assert_eq!(made.description.contains("a=fmtp:101 0-15"), list.ends_with("101"), "{options}");
                }
                Err(code) => assert_eq!(made.code, Some(code), "{options}"),
            }
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
        }
    });
}

/// FM-05, G-LCO-14 to G-LCO-16: telephone events are agreed when `a:` names them and the far end, if it is described, has them; without `a:` when
/// the far end has them.
#[test]
fn telephone_events_are_agreed() {
    each_layout(|w| {
        for (options, types, expected) in [
            ("L: p:20", None, "0 8"),
            ("L: a:PCMU;telephone-event", None, "0 101"),
            ("L: a:PCMU", Some("0 96"), "0"),
            ("L: a:PCMU;telephone-event", Some("0 96"), "0 101"),
            ("L: a:PCMU;telephone-event", Some("0"), "0"),
            ("L: p:20", Some("0 96"), "0 101"),
            ("L: p:20", Some("0"), "0"),
        ] {
            let media = types.map(|types| format!("m=audio 5000 RTP/AVP {types}")).unwrap_or_default();
            let offer =
                ["", "v=0", "o=- 1 1 IN IP4 192.0.2.7", "s=-", "c=IN IP4 192.0.2.7", "t=0 0", &media, "a=rtpmap:96 telephone-event/8000"];
            let described = if types.is_some() { &offer[..] } else { &[] };
            let made = w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: recvonly", options][..], described].concat());
            let media = made.description.lines().find_map(|line| line.strip_prefix("m=audio ")).unwrap_or_default();
            assert_eq!((made.code, media.splitn(3, ' ').nth(2)), (Some(200), Some(expected)), "{options} {types:?}");
            let described = made.description.contains("a=rtpmap:101 telephone-event/8000");
            assert_eq!(described, expected.ends_with("101"), "{options} {types:?}");
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
        }
    });
}

/// COT-14 (RFC 3660 2.10): continuity tones as telephone events are agreed where `fmtp` names them on both sides, and audited; 167 where that is named.
#[test]
fn telephone_events_of_continuity_tones_are_agreed() {
    each_layout(|w| {
        for (options, theirs, ours) in [
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 121\"", None, "0-15,121"),
            ("a:PCMU;telephone-event, o-fmtp:\"telephone-event 0-15,121-122\"", None, "0-15,121,122"),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 167\"", None, "0-15,167"),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 121-122\"", Some("0-15,121"), "0-15,121"),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 121\"", Some("0-15"), "0-15"),
            ("a:PCMU;telephone-event, fmtp:\"telephone-event 121\"", Some("0-15,167"), "0-15"),
            ("a:PCMU;telephone-event", Some("0-15,121"), "0-15"),
            ("p:20", Some("0-15,121,122"), "0-15,121,122"),
            ("p:20", Some("0-16,32-49,167"), "0-15,167"),
        ] {
            let list = theirs.map(|list| format!("a=fmtp:96 {list}")).unwrap_or_default();
            let media = "m=audio 5000 RTP/AVP 0 96";
            let offer = [
                "",
                "v=0",
                "o=- 1 1 IN IP4 192.0.2.7",
                "s=-",
                "c=IN IP4 192.0.2.7",
                "t=0 0",
                media,
                "a=rtpmap:96 telephone-event/8000",
                &list,
            ];
            let described = if theirs.is_some() { &offer[..] } else { &[] };
            let made = w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: recvonly", &format!("L: {options}")][..], described].concat());
            let list = made.description.lines().find_map(|line| line.strip_prefix("a=fmtp:101 "));
            assert_eq!((made.code, list), (Some(200), Some(ours)), "{options} {theirs:?}");
            let audited = w.ask("AUCX", "ds/ds1-2/1", &[&format!("I: {}", connection(&made)), "F: L"]).get("L").unwrap().to_owned();
            let has_format = audited.contains("fmtp:\"telephone-event 0-15,1");
            assert_eq!(has_format, options.contains("telephone-event 1") || options.contains(",121"), "{audited}");
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
        }
    });
}

/// G-LCO-01, G-LCO-11, G-LCO-12, PKG-11: each thing wrong with an option has its code; what package RES (RSVP), which is not done, would have
/// stands without a prefix.
#[test]
fn what_is_wrong_with_options_has_its_code() {
    each_layout(|w| {
        let cases = [
            ("p:10, p:20", 524),
            ("a:PCMU, A:PCMA", 524),
            ("p:30-20", 524),
            ("x+a:1", 525),
            ("r-dir:sendrecv", 541),
            ("R-CNF:none", 541),
            ("r-sh:$", 541),
            ("x-a:1", 200),
            ("x-a", 200),
            ("zz/a:1", 518),
            ("zz/a", 518),
            ("qq:1", 541),
            ("nt:ATM", 532),
            ("nt:foo", 532),
            ("nt:IN", 200),
            ("nt:LOCAL", 200),
            ("k:prompt", 532),
            ("k:clear:secret", 532),
            ("k:base64:AAAA", 532),
            ("k:uri:http", 532),
            ("r:g", 532),
            ("r:cl", 532),
            ("r:be", 200),
            ("r:xx", 532),
            ("e:maybe", 532),
            ("s:1", 532),
            ("gc:+3", 532),
            ("gc:-3", 200),
            ("gc:auto", 200),
            ("t:B8", 200),
            ("t:8", 532),
            ("t:XX", 532),
            ("p:12345", 532),
            ("a:FOO", 534),
            ("p:10 ,  a:pcmu, x-q:\"a,b\"", 200),
            ("p", 532),
        ];
        for (options, code) in cases {
            let made = make(w, options, &[]);
            assert_eq!(made.code, Some(code), "{options}: {made:?}");
        }
    });
}

/// G-LCO-02, G-LCO-14: codecs by name in any case, in the agent's order, as far as the gateway has them.
#[test]
fn codecs_are_chosen_in_the_agents_order() {
    each_layout_with(three_codecs, |w| {
        for (list, chosen) in [("pcma;PCMU", "8 0"), ("PCMU;G729;image/t38", "0 18"), ("G729", "18"), ("FOO;PCMA", "8")] {
            assert_eq!(media(&make(w, &format!("a:{list}"), &[])).0, chosen, "{list}");
        }
        assert_eq!(media(&make(w, "", &[])).0, "0 8 18");
        assert_eq!(make(w, "a:FOO;BAR", &[]).code, Some(534));
        // With the far end's list: both, and no other.
        for (list, offered, chosen) in [("PCMU;PCMA", "8 0", "0 8"), ("", "18 0", "18 0"), ("G729;PCMA", "0 18", "18"), ("", "96 8", "8")] {
            let options = if list.is_empty() { String::new() } else { format!("a:{list}") };
            assert_eq!(media(&make(w, &options, &lines(&offer(offered)))).0, chosen, "{list} with {offered}");
        }
        assert_eq!(make(w, "a:PCMU", &lines(&offer("18"))).code, Some(534));
        assert_eq!(make(w, "", &lines(&offer("99"))).code, Some(534));
    });
}

/// G-LCO-03: the closest period the codec can do.
#[test]
fn periods_are_adapted() {
    each_layout_with(three_codecs, |w| {
        for (options, period) in [("a:G729, p:25", "30"), ("a:G729, p:1", "10"), ("a:PCMU, p:30", "30"), ("a:PCMU, p:10-40", "20")] {
            assert_eq!(media(&make(w, options, &[])).1, period, "{options}");
        }
        assert_eq!(media(&make(w, "a:PCMU, p:30-40", &[])).1, "30");
        assert_eq!(media(&make(w, "", &[])).1, "20");
    });
}

/// G-LCO-04: bandwidth restricts the choice only without a list, and counts the packets' headers.
#[test]
fn bandwidth_restricts_only_without_a_list() {
    each_layout_with(three_codecs, |w| {
        assert_eq!(media(&make(w, "a:PCMU, b:32", &[])).0, "0");
        for options in ["b:32", "b:8-32", "b:24"] {
            assert_eq!(media(&make(w, options, &[])).0, "18", "{options}");
        }
        // 64 kbit/s and 50 packets of 40 bytes more are 80; at 10 ms they are 96.
        assert_eq!(media(&make(w, "b:80", &[])).0, "0 8 18");
        assert_eq!(media(&make(w, "b:80, p:10", &[])).0, "18");
        assert_eq!(make(w, "b:5", &[]).code, Some(534));
        // The same when a connection is modified: the present codecs are no list.
        let id = format!("I: {}", create(w, "ds/ds1-2/1", "A1"));
        assert_eq!(media(&w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: b:32"])).0, "18");
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: b:5"]), 534);
    });
}

/// G-LCO-10, G-LCO-12: what an audit does not offer is not to be had, and the other way round.
#[test]
fn capabilities_say_what_options_can_be_had() {
    each_layout(|w| {
        let audited = w.ask("AUEP", "ds/ds1-2/1", &["F: A"]);
        for line in audited.values("A") {
            assert!(line.contains("r:be") && line.contains("nt:IN;LOCAL") && !line.contains("k:"), "{line}");
        }
    });
}

/// G-LCO-13, G-LCO-15, G-MDX-02: what a modification does not name stays, but takes no part in the choice of codecs.
#[test]
fn a_modification_keeps_what_it_does_not_name() {
    each_layout_with(three_codecs, |w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", "L: p:10, a:PCMU"]);
        let id = format!("I: {}", connection(&made));
        assert_eq!(media(&made), ("0".into(), "10".into()));
        let kept = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: e:off"]);
        assert_eq!((kept.code, kept.description.as_str()), (Some(200), ""));
        assert_eq!(w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: L"]).get("L"), Some("p:10, a:PCMU, e:off"));
        // G.729 in the far end's list alone: the earlier a:PCMU does not count, the earlier period still does.
        let changed = w.ask("MDCX", "ds/ds1-2/1", &[&["C: A1", id.as_str()][..], &lines(&offer("18"))].concat());
        assert_eq!((changed.code, media(&changed)), (Some(200), ("18".into(), "10".into())));
        // A list alone: the far end's earlier one does not count.
        let changed = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: a:PCMA;PCMU"]);
        assert_eq!(media(&changed).0, "8 0");
        // Both together bind, in the order of L.
        let changed = w.ask("MDCX", "ds/ds1-2/1", &[&["C: A1", &id, "L: a:PCMU;G729"][..], &lines(&offer("18 0"))].concat());
        assert_eq!(media(&changed).0, "0 18");
        assert_eq!(code(w, "MDCX", "ds/ds1-2/1", &[&["C: A1", &id, "L: a:PCMU"][..], &lines(&offer("18"))].concat()), 534);
        // A period alone chooses no codec anew.
        let changed = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: p:40"]);
        assert_eq!(media(&changed), ("0 18".into(), "40".into()));
    });
}

/// G-LCO-18: what is wrong with the far end's description.
#[test]
fn descriptions_and_options_must_agree() {
    each_layout(|w| {
        for (options, description, code) in [
            ("", &["", "v=0", "m=audio 40000 RTP/AVP 0"][..], 509),
            ("", &["", "v=0", "c=IN IP4 192.0.2.50"], 509),
            ("", &["", "v=0", "c=IN IP4 192.0.2.50", "m=audio x RTP/AVP 0"], 509),
            ("", &["", "c=IN IP4 192.0.2.50"], 509),
            ("", &["", "v=0", "c=ATM NSAP 47", "m=audio 40000 RTP/AVP 0"], 505),
            ("", &["", "v=0", "c=IN IP4 192.0.2.50", "m=video 40000 RTP/AVP 31"], 505),
            ("", &["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/SAVP 0"], 505),
            ("", &["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 UDP/TLS/RTP/SAVP 0"], 505),
            ("nt:LOCAL", &SDP, 506),
            ("nt:IN", &["", "v=0", "c=LOCAL EPN ds/ds1-3/1", "m=audio 0 LOCAL 0"], 506),
            ("", &["", "v=0", "c=LOCAL EPN ds/ds1-99/1", "m=audio 0 LOCAL 0"], 505),
            ("nt:IN", &SDP, 200),
        ] {
            assert_eq!(make(w, options, description).code, Some(code), "{options} {description:?}");
        }
        assert_eq!(w.connections().len(), 0);
    });
}
