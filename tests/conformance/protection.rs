//! Protected media (SRTP) in descriptions: RFC 4568, as `cards.sim.srtp` and `cards.cesopsn.srtp` say.

use super::{LAYOUTS, S, SDP, code, connection, setup};
use std::collections::BTreeSet;
use tollgate::proto::trunk::Srtp;
use tollgate::sim::{Reply, Setup, World};

const KEYS: [&str; 3] =
    ["WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz", "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR", "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"];

/// The same in every layout, with a card that does this.
fn each_layout(srtp: Srtp, dialogue: impl Fn(&mut World)) {
    for layout in LAYOUTS {
        let mut world = World::new(Setup { srtp, ..setup(layout, 1) }, |_, _| {});
        dialogue(&mut world);
        world.run_for(3 * S);
        world.check_quiet();
    }
}

/// A description with these lines of keys; its last octet, so that addresses differ.
fn offer(host: u8, lines: &[String]) -> Vec<String> {
    let head = [String::new(), "v=0".into(), format!("c=IN IP4 192.0.2.{host}"), "m=audio 40000 RTP/SAVP 0 8".into()];
    head.into_iter().chain(lines.iter().cloned()).collect()
}

fn line(tag: u32, bits: u8, rest: &str) -> String {
    format!("a=crypto:{tag} AES_CM_128_HMAC_SHA1_{bits} inline:{rest}")
}

fn ask(w: &mut World, verb: &str, parameters: &[&str], description: &[String]) -> Reply {
    let all: Vec<&str> = parameters.iter().copied().chain(description.iter().map(String::as_str)).collect();
    w.ask(verb, "ds/ds1-2/1", &all)
}

/// The transport, the tag and suite, and the key of a description; its version.
fn protection(reply: &Reply) -> (String, String, String, u64) {
    let lines: Vec<&str> = reply.description.lines().collect();
    let value = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned();
    let crypto = value("a=crypto:");
    let (suite, key) = crypto.split_once(" inline:").unwrap_or_default();
    let version = value("o=").split(' ').nth(2).and_then(|version| version.parse().ok()).unwrap_or(0);
    assert!(lines.iter().filter(|line| line.starts_with("a=crypto:")).count() < 2, "{lines:?}");
    (value("m=audio ").split(' ').nth(1).unwrap_or_default().to_owned(), suite.to_owned(), key.to_owned(), version)
}

fn clear(w: &mut World) {
    assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
}

/// An answer has the tag and the suite of the first line that can be used, and a key of its own; lines that cannot be used are passed over.
#[test]
fn an_answer_takes_the_first_usable_line() {
    each_layout(Srtp::Accept, |w| {
        let unusable = [
            format!("a=crypto:1 AEAD_AES_256_GCM inline:{}", KEYS[0]),
            line(2, 80, &format!("{} KDR=1", KEYS[0])),
            line(3, 80, &format!("{}|2^20|1:4", KEYS[0])),
            line(4, 80, &format!("{} UNENCRYPTED_SRTP", KEYS[0])),
            line(5, 80, "short"),
        ];
        let mut keys = BTreeSet::new();
        for (usable, suite) in [(line(7, 32, KEYS[1]), "7 AES_CM_128_HMAC_SHA1_32"), (line(8, 80, KEYS[1]), "8 AES_CM_128_HMAC_SHA1_80")] {
            let lines: Vec<String> = unusable.iter().cloned().chain([usable, line(9, 80, KEYS[2])]).collect();
            let made = ask(w, "CRCX", &["C: A1", "M: sendrecv"], &offer(50, &lines));
            let (transport, said, key, _) = protection(&made);
            assert_eq!((made.code, transport.as_str(), said.as_str()), (Some(200), "RTP/SAVP", suite), "{made:?}");
            assert!(key.len() == 40 && keys.insert(key.clone()) && !KEYS.contains(&key.as_str()), "{key}");
            // An audit says the same of both (G-AUC-02, G-AUC-04).
            let id = format!("I: {}", connection(&made));
            let audited = w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: LC,RC"]);
            assert!(audited.description.contains(&key) && audited.description.contains(KEYS[2]), "{audited:?}");
            clear(w);
        }
        let refused = ask(w, "CRCX", &["C: A1", "M: sendrecv"], &offer(50, &unusable));
        assert_eq!(refused.code, Some(505), "{refused:?}");
        assert_eq!(ask(w, "CRCX", &["C: A1", "M: sendrecv"], &offer(50, &[])).code, Some(505));
        // Without protection as without.
        let made = w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: sendrecv"], &SDP[..]].concat());
        assert_eq!((made.code, protection(&made).0.as_str(), protection(&made).1.as_str()), (Some(200), "RTP/AVP", ""));
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A2", "M: recvonly"]);
        assert_eq!((made.code, protection(&made).0.as_str()), (Some(200), "RTP/AVP"), "an offer is plain unless protection is required");
        clear(w);
    });
}

/// Where protection is required it is offered, and nothing else is taken; inside the gateway there is none.
#[test]
fn what_is_required_is_offered_and_what_is_not_protected_is_refused() {
    each_layout(Srtp::Require, |w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        let (transport, suite, key, version) = protection(&made);
        assert_eq!((transport.as_str(), suite.as_str(), key.len()), ("RTP/SAVP", "1 AES_CM_128_HMAC_SHA1_80", 40), "{made:?}");
        let id = format!("I: {}", connection(&made));
        let plain = w.ask("MDCX", "ds/ds1-2/1", &[&["C: A1", &id, "M: sendrecv"], &SDP[..]].concat());
        assert_eq!(plain.code, Some(505), "{plain:?}");
        // A command without a description changes nothing of it.
        let same = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "M: inactive"]);
        assert_eq!((same.code, same.description.as_str()), (Some(200), ""));
        // The answer to our offer: our own line stays, and so is not told again.
        let answered = ask(w, "MDCX", &["C: A1", &id, "M: sendrecv"], &offer(50, &[line(1, 80, KEYS[0])]));
        assert_eq!((answered.code, answered.description.as_str()), (Some(200), ""), "{answered:?}");
        let audited = w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: LC"]);
        assert_eq!(protection(&audited), (transport, suite, key, version));
        clear(w);
        assert_eq!(w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: sendrecv"], &SDP[..]].concat()).code, Some(505));
        let pair = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-3/1@tgw.example.net"]);
        assert_eq!((pair.code, pair.description.contains("crypto")), (Some(200), false), "{pair:?}");
        assert_eq!(code(w, "DLCX", "ds/ds1-3/1", &[]), 250);
        clear(w);
        let local = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", "L: nt:LOCAL"]);
        assert!(local.code == Some(200) && !local.description.contains("crypto"), "{local:?}");
        // What leaves the gateway after all is offered with a key.
        let id = format!("I: {}", connection(&local));
        let outside = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: nt:IN"]);
        assert_eq!(protection(&outside).0, "RTP/SAVP", "{outside:?}");
        clear(w);
    });
}

/// RFC 4568 7.1.4: the far end takes another key, address, suite, or none; ours changes with the suite only, and each change is told.
#[test]
fn a_connection_is_keyed_anew() {
    each_layout(Srtp::Accept, |w| {
        let made = ask(w, "CRCX", &["C: A1", "M: sendrecv"], &offer(50, &[line(1, 80, KEYS[0])]));
        let first = protection(&made);
        let id = format!("I: {}", connection(&made));
        let mut change = |description: &[String]| {
            let changed = ask(w, "MDCX", &["C: A1", &id], description);
            assert_eq!(changed.code, Some(200), "{changed:?}");
            changed
        };
        assert_eq!(change(&offer(50, &[line(1, 80, KEYS[1])])).description, "", "another key of the far end");
        assert_eq!(change(&offer(51, &[line(1, 80, KEYS[1])])).description, "", "another address");
        let retagged = protection(&change(&offer(51, &[line(2, 80, KEYS[1])])));
        assert_eq!((&*retagged.1, &retagged.2), ("2 AES_CM_128_HMAC_SHA1_80", &first.2), "an answer has the tag of the offer");
        let other = protection(&change(&offer(51, &[line(2, 32, KEYS[1])])));
        assert_eq!(other.1, "2 AES_CM_128_HMAC_SHA1_32");
        assert!(other.2 != first.2 && other.3 > retagged.3 && retagged.3 > first.3, "{first:?} {retagged:?} {other:?}");
        let plain = change(&SDP.map(str::to_owned));
        assert_eq!((protection(&plain).0.as_str(), plain.description.contains("crypto")), ("RTP/AVP", false));
        let again = protection(&change(&offer(50, &[line(1, 32, KEYS[2])])));
        assert!(again.0 == "RTP/SAVP" && again.2 != other.2, "a key is not used again: {again:?}");
        clear(w);
    });
}

/// An endpoint that is chosen may be another core's than the one that answers: its key is in the answer all the same.
#[test]
fn an_endpoint_of_another_core_answers_with_its_key() {
    each_layout(Srtp::Require, |w| {
        let mut keys = BTreeSet::new();
        for n in 0..16 {
            let call = format!("C: {n:X}");
            let made = w.ask("CRCX", "ds/$/1", &[&call, "M: recvonly"]);
            if made.code != Some(200) {
                assert_eq!((made.code, n), (Some(410), 8), "{made:?}");
                break;
            }
            let (transport, suite, key, _) = protection(&made);
            assert_eq!((transport.as_str(), suite.as_str(), key.len()), ("RTP/SAVP", "1 AES_CM_128_HMAC_SHA1_80", 40), "{made:?}");
            assert!(keys.insert(key));
        }
        assert!(keys.len() == 8, "{}", keys.len());
        assert_eq!(code(w, "DLCX", "*", &[]), 250);
    });
}

/// Off: what is to be protected is refused, and nothing is offered.
#[test]
fn without_protection_what_is_to_be_protected_is_refused() {
    each_layout(Srtp::Off, |w| {
        let refused = ask(w, "CRCX", &["C: A1", "M: sendrecv"], &offer(50, &[line(1, 80, KEYS[0])]));
        assert_eq!(refused.code, Some(505), "{refused:?}");
        assert!(refused.line.contains("RTP/SAVP is not supported"), "{refused:?}");
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        assert_eq!(protection(&made).0, "RTP/AVP");
        clear(w);
    });
}
