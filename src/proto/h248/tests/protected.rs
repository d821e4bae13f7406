//! Protected media (SRTP; RFC 4568) in Local and Remote.

use super::*;
use crate::proto::trunk::Srtp;

const KEYS: [&str; 2] = ["WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz", "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"];

/// The gateway's line: tag and suite, and its key.
fn line(reply: &str) -> (String, String) {
    let line = reply.lines().find_map(|line| line.strip_prefix("a=crypto:")).unwrap_or_else(|| panic!("no key: {reply}"));
    let (suite, key) = line.split_once(" inline:").unwrap();
    assert_eq!(key.len(), 40, "{line}");
    (suite.to_owned(), key.to_owned())
}

fn local(transport: &str, more: &str) -> String {
    format!("L{{\nv=0\nc=IN IP4 $\nm=audio $ {transport} 0\n{more}}}")
}

fn remote(transport: &str, more: &str) -> String {
    format!("R{{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 {transport} 0\n{more}}}")
}

fn crypto(tag: u8, bits: u8, key: &str) -> String {
    format!("a=crypto:{tag} AES_CM_128_HMAC_SHA1_{bits} inline:{key}\n")
}

/// Adds an RTP termination: the reply.
fn add(bench: &mut Bench, media: &str) -> String {
    bench.ask(&format!("C=${{A=ds/ds1_3/1,A=${{M{{{media}}}}}}}"))
}

fn drop_all(bench: &mut Bench) {
    bench.say("T=900000{C=*{W-S=*}}");
    bench.now += 40 * S;
    bench.turn();
    assert_eq!(bench.gateway.calls.endpoints.connections.count(), 0);
}

/// What is added, how its card is set, and what comes of it: the gateway's transport with tag and suite, or the error.
#[test]
fn local_and_remote_say_what_is_protected() {
    let (plain, savp) = ("RTP/AVP", "RTP/SAVP");
    let offered = crypto(4, 32, KEYS[0]);
    let ours = "1 AES_CM_128_HMAC_SHA1_80";
    for (srtp, media, expected) in [
        (Srtp::Off, local(plain, ""), Ok("")),
        (Srtp::Off, local(savp, ""), Err(515)),
        (Srtp::Off, local("$", "") + "," + &remote(savp, &offered), Err(515)),
        (Srtp::Accept, local(plain, ""), Ok("")),
        (Srtp::Accept, local("$", ""), Ok("")),
        (Srtp::Accept, local(savp, ""), Ok(ours)),
        (Srtp::Accept, local(savp, &crypto(3, 32, "$")), Ok("3 AES_CM_128_HMAC_SHA1_32")),
        (Srtp::Accept, local(savp, "") + "," + &remote(savp, &offered), Ok("4 AES_CM_128_HMAC_SHA1_32")),
        (Srtp::Accept, local("$", "") + "," + &remote(savp, &offered), Ok("4 AES_CM_128_HMAC_SHA1_32")),
        (Srtp::Accept, local("$", "") + "," + &remote(plain, ""), Ok("")),
        (Srtp::Accept, local(plain, "") + "," + &remote(savp, &offered), Err(515)),
        (Srtp::Accept, local(savp, "") + "," + &remote(plain, ""), Err(515)),
        (Srtp::Accept, local(savp, "") + "," + &remote(savp, ""), Err(515)),
        (Srtp::Accept, local(savp, "") + "," + &remote(savp, &crypto(4, 80, "$")), Err(515)),
        (
            Srtp::Accept,
            local("$", "") + ",R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 1 RTP/SAVP 0\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}",
            Ok(""),
        ),
        (Srtp::Require, local(plain, ""), Err(515)),
        (Srtp::Require, local("$", ""), Ok(ours)),
        (Srtp::Require, local("$", "") + "," + &remote(plain, ""), Err(515)),
        (Srtp::Require, local(savp, "") + "," + &remote(savp, &offered), Ok("4 AES_CM_128_HMAC_SHA1_32")),
    ] {
        let mut bench = Bench::protecting(srtp);
        let reply = add(&mut bench, &media);
        match expected {
            Err(code) => assert!(reply.contains(&format!("ER={code}{{")), "{srtp:?} {media}: {reply}"),
            Ok("") => {
                assert!(reply.contains("RTP/AVP 0\n") && !reply.contains("crypto") && !reply.contains("ER="), "{srtp:?} {media}: {reply}")
            }
            Ok(suite) => {
                assert!(reply.contains("RTP/SAVP 0\n"), "{srtp:?} {media}: {reply}");
                assert_eq!(line(&reply).0, suite, "{srtp:?} {media}");
            }
        }
        drop_all(&mut bench);
    }
    // Without a word about media what is required is offered, too.
    let mut bench = Bench::protecting(Srtp::Require);
    assert!(!bench.ask("C=${A=ds/ds1_3/1,A=$}").contains("ER="));
    let slots = 0..bench.gateway.calls.endpoints.connections.limit();
    let mut there = slots.filter_map(|slot| bench.gateway.calls.endpoints.connections.get(slot));
    assert!(there.next().is_some_and(|connection| connection.local.protected));
    drop_all(&mut bench);
}

/// The answer keeps our key, an audit says it, the same Local again changes nothing, and a controller may choose it itself; without the far
/// end our key stays.
#[test]
fn a_termination_is_keyed_anew() {
    let mut bench = Bench::protecting(Srtp::Require);
    let reply = add(&mut bench, &local("$", ""));
    let (_, key) = line(&reply);
    let name = reply.split("A=").nth(2).unwrap().split('{').next().unwrap().to_owned();
    let mut modify = |media: &str| bench.ask(&format!("C=*{{MF={name}{{M{{{media}}}}}}}"));
    let answered = modify(&remote("RTP/SAVP", &crypto(1, 80, KEYS[0])));
    assert!(!answered.contains("ER="), "{answered}");
    let again = modify(&local("RTP/SAVP", &crypto(1, 80, &key)));
    assert_eq!(line(&again), ("1 AES_CM_128_HMAC_SHA1_80".into(), key.clone()));
    assert!(modify(&local("RTP/AVP", "")).contains("ER=515{"));
    let given = modify(&local("RTP/SAVP", &crypto(1, 80, KEYS[1])));
    assert_eq!(line(&given).1, KEYS[1], "{given}");
    let freed = modify("R{}");
    assert!(!freed.contains("ER="), "{freed}");
    let audited = bench.ask(&format!("C=*{{AV={name}{{AT{{M}}}}}}"));
    assert_eq!(line(&audited).1, KEYS[1], "{audited}");
    let other = bench.ask(&format!("C=*{{MF={name}{{M{{{},{}}}}}}}", local("$", ""), remote("RTP/SAVP", &crypto(6, 32, KEYS[0]))));
    let (suite, fresh) = line(&other);
    assert!(suite == "6 AES_CM_128_HMAC_SHA1_32" && fresh != key && fresh != KEYS[1], "{other}");
    drop_all(&mut bench);
}

/// A card that takes its time, and one that refuses: keys are there when it has agreed, and as before when it has not.
#[test]
fn keys_hold_when_the_card_has_agreed() {
    let mut bench = Bench::protecting(Srtp::Require);
    bench.card(CardOrder::Delay(50));
    bench.sent.clear();
    bench.say(&format!("T=77{{C=${{A=ds/ds1_3/1,A=${{M{{{}}}}}}}}}", local("$", "")));
    bench.run(S);
    let reply = bench.sent.iter().map(|(_, text)| text.clone()).find(|text| text.contains("P=77")).unwrap();
    let (_, key) = line(&reply);
    let name = reply.split("A=").nth(2).unwrap().split('{').next().unwrap().to_owned();
    bench.card(CardOrder::Delay(0));
    bench.card(CardOrder::Refuse(1));
    let change = format!("C=*{{MF={name}{{M{{{},{}}}}}}}", local("$", ""), remote("RTP/SAVP", &crypto(6, 32, KEYS[0])));
    assert!(bench.ask(&change).contains("ER=510{"));
    let audited = bench.ask(&format!("C=*{{AV={name}{{AT{{M}}}}}}"));
    assert_eq!(line(&audited), ("1 AES_CM_128_HMAC_SHA1_80".into(), key));
    assert!(!bench.ask(&change).contains("ER="));
    drop_all(&mut bench);
}
