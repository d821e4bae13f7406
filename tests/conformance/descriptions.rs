//! Session descriptions (SDP).

use super::{SDP, code, connection, create, each_layout, each_layout_with};
use tollgate::proto::endpoint::Encoding;

/// What a description of ours must look like, line by line (RFC 2327 order).
fn check_strictly(description: &str) {
    let lines: Vec<&str> = description.lines().collect();
    let field = |place: usize, prefix: &str| {
        let line = lines.get(place).unwrap_or_else(|| panic!("too short: {description}"));
        line.strip_prefix(prefix).unwrap_or_else(|| panic!("{prefix} is not line {place}: {description}")).to_owned()
    };
    assert_eq!(field(0, "v="), "0");
    let origin = field(1, "o=- ");
    let words: Vec<&str> = origin.split(' ').collect();
    assert_eq!(words.len(), 5, "{origin}");
    assert!(words[0].parse::<u64>().is_ok() && words[1].parse::<u64>().is_ok(), "{origin}");
    assert_eq!(field(2, "s="), "-");
    let at = field(3, "c=");
    assert_eq!(words[2..].join(" "), at, "o= and c= name the same address");
    assert_eq!(field(4, "t="), "0 0");
    let media = lines.iter().filter(|line| line.starts_with("m=")).count();
    assert_eq!(media, 1, "one audio medium: {description}");
    let rest = &lines[5..];
    assert!(rest.iter().all(|line| line.starts_with("m=audio ") || line.starts_with("a=")), "{description}");
}

/// G-SDP-01, G-SDP-02: what the gateway writes.
#[test]
fn our_descriptions_are_strict() {
    each_layout(|w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        check_strictly(&made.description);
        assert!(made.description.contains("c=IN IP4 192.0.2.20\r\n"));
        let pair = w.ask("CRCX", "ds/ds1-2/2", &["C: A1", "M: inactive", "Z2: ds/ds1-3/2@tgw.example.net"]);
        check_strictly(&pair.description);
        let id = format!("I: {}", connection(&made));
        let changed = w.ask("MDCX", "ds/ds1-2/1", &["C: A1", &id, "L: p:10"]);
        check_strictly(&changed.description);
        let session = |description: &str| description.lines().nth(1).unwrap().split(' ').nth(1).unwrap().to_owned();
        assert_eq!(session(&made.description), session(&changed.description));
        assert_ne!(session(&made.description), session(&pair.description));
    });
}

/// G-SDP-01: what it reads: any conformant description.
#[test]
fn their_descriptions_may_be_anything_conformant() {
    each_layout(|w| {
        let rich = [
            "",
            "v=0",
            "o=- 25678 753849 IN IP4 128.96.41.1",
            "s=A session",
            "i=With information",
            "u=http://www.example.net/",
            "e=a@example.net (A)",
            "p=+1 617 555 6011",
            "c=IN IP4 128.96.41.1",
            "b=AS:128",
            "t=2873397496 2873404696",
            "r=7d 1h 0 25h",
            "k=clear:secret",
            "a=recvonly",
            "a=foo:bar",
            "a=foo:bar",
            "m=audio 3456 RTP/AVP 0 96",
            "i=The audio",
            "b=AS:64",
            "a=rtpmap:96 G726-32/8000",
            "a=ptime:20",
            "m=video 2232 RTP/AVP 31",
        ];
        let made = w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: sendrecv"][..], &rich].concat());
        assert_eq!(made.code, Some(200), "{made:?}");
        // An audit gives it back whole.
        let id = format!("I: {}", connection(&made));
        let audited = w.ask("AUCX", "ds/ds1-2/1", &[&id, "F: RC"]);
        assert_eq!(audited.description.lines().collect::<Vec<_>>(), rich[1..].to_vec());
    });
}

/// G-SDP-03: descriptions know letter case; unknown attributes do no harm.
#[test]
fn descriptions_know_letter_case() {
    each_layout(|w| {
        let with = |lines: [&'static str; 3]| [&["C: A1", "M: sendrecv", ""][..], &lines].concat();
        let ask = |w: &mut tollgate::sim::World, lines| code(w, "CRCX", "ds/ds1-2/1", &with(lines));
        assert_eq!(ask(w, ["v=0", "c=IN IP4 192.0.2.50", "M=audio 40000 RTP/AVP 0"]), 509);
        assert_eq!(ask(w, ["v=0", "C=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"]), 509);
        assert_eq!(ask(w, ["V=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"]), 509);
        assert_eq!(w.connections().len(), 0);
        assert_eq!(ask(w, ["v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 0"]), 200);
    });
}

/// G-SDP-04: a dynamic payload type is explained by an rtpmap; theirs are understood by theirs.
#[test]
fn dynamic_payload_types_are_explained() {
    let dynamic = |_: &mut _, settings: &mut tollgate::proto::plan::Settings| {
        settings.encodings = [&b"G726-32"[..], b"PCMU"].into_iter().filter_map(Encoding::by_name).collect();
    };
    each_layout_with(dynamic, |w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", "L: a:G726-32"]);
        let media = made.description.lines().find(|line| line.starts_with("m=")).unwrap().to_owned();
        let payload_type: u8 = media.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((96..=127).contains(&payload_type), "{media}");
        assert!(made.description.contains(&format!("a=rtpmap:{payload_type} G726-32/8000\r\n")), "{made:?}");
        let far = ["", "v=0", "c=IN IP4 192.0.2.50", "m=audio 40000 RTP/AVP 111", "a=rtpmap:111 G726-32/8000"];
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &[&["C: A1", "M: recvonly"][..], &far].concat()), 200);
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &[&["C: A1", "M: recvonly"][..], &far[..4]].concat()), 534);
    });
}

/// G-SDP-05: inside the gateway.
#[test]
fn the_local_form() {
    each_layout(|w| {
        let pair = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: sendrecv", "Z2: ds/ds1-3/1@tgw.example.net"]);
        let one = connection(&pair);
        for line in ["c=LOCAL EPN ds/ds1-2/1\r\n", "m=audio 0 LOCAL ", &format!("a=MGCPlocalcx:{one}\r\n")] {
            assert!(pair.description.contains(line), "{line}: {pair:?}");
        }
        assert_eq!(code(w, "DLCX", "*", &[]), 250);
        // The agent joins two connections by itself.
        let other = w.ask("CRCX", "ds/ds1-3/2", &["C: A1", "M: recvonly", "L: nt:LOCAL"]);
        assert!(other.description.contains("c=LOCAL EPN ds/ds1-3/2\r\n"), "before anybody is at the other end: {other:?}");
        let id = format!("I: {}", create(w, "ds/ds1-2/2", "A1"));
        let local =
            ["", "v=0", "c=LOCAL EPN DS/ds1-3/2", &format!("a=mgcplocalcx:{}", connection(&other).to_lowercase()), "m=audio 0 LOCAL 0"];
        assert_eq!(code(w, "MDCX", "ds/ds1-2/2", &[&["C: A1", &id, "M: sendrecv"][..], &local].concat()), 200);
        assert!(w.ask("AUCX", "ds/ds1-2/2", &[&id, "F: RC"]).description.contains("EPN DS/ds1-3/2"));
        let made = w.ask("CRCX", "ds/ds1-1/2", &[&["C: A1", "M: sendrecv"][..], &local].concat());
        assert!(made.code == Some(200) && made.description.contains("c=LOCAL EPN ds/ds1-1/2\r\n"), "{made:?}");
    });
}

/// G-SDP-06, G-AUC-04: two descriptions stand apart by an empty line, ours first.
#[test]
fn two_descriptions_stand_apart() {
    each_layout(|w| {
        let made = w.ask("CRCX", "ds/ds1-2/1", &[&["C: A1", "M: sendrecv"][..], &SDP].concat());
        let id = format!("I: {}", connection(&made));
        for order in ["F: RC,LC", "F: LC,RC"] {
            let audited = w.ask("AUCX", "ds/ds1-2/1", &[&id, order]);
            let (ours, theirs) = audited.description.split_once("\r\n\r\n").expect("an empty line");
            assert_eq!(format!("{ours}\r\n"), made.description);
            assert!(theirs.starts_with("v=0\r\nc=IN IP4 192.0.2.50\r\n"), "{theirs}");
        }
    });
}
