//! Message syntax (SYN).

use super::{S, SDP, audit, code, connection, create, each_layout, fresh_id, raw};
use tollgate::proto::base::Counter;
use tollgate::sim::{Reply, World};

/// The one final answer to a message; its id, 7, is replaced by one that was not used before.
fn one(w: &mut World, text: &str) -> Reply {
    let text = text.replacen('7', &fresh_id(w).to_string(), 1);
    let mut finals: Vec<Reply> = raw(w, text.as_bytes()).into_iter().filter(Reply::is_final).collect();
    assert_eq!(finals.len(), 1, "{text:?}: {finals:?}");
    finals.remove(0)
}

/// G-SYN-01: lines end in CR LF, in LF, or in both kinds; ours in CR LF (checked for every datagram by the simulation).
#[test]
fn lines_end_in_either_way() {
    each_layout(|w| {
        let lines = ["RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0", "X: 5", "Q: loop"];
        for ends in [["\r\n"; 3], ["\n"; 3], ["\n", "\r\n", "\n"], ["\r\n", "\n", "\r\n"]] {
            let text: String = lines.iter().zip(ends).map(|(line, end)| format!("{line}{end}")).collect();
            assert_eq!(one(w, &text).code, Some(200), "{text:?}");
            assert_eq!((audit(w, "ds/ds1-2/1", "X"), audit(w, "ds/ds1-2/1", "Q")), ("5".into(), "loop,process".into()));
            assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1"]), 200);
        }
    });
}

/// G-SYN-02, G-SYN-06: any number of spaces and tabs between words, and around separators.
#[test]
fn blanks_are_tolerated() {
    each_layout(|w| {
        assert_eq!(one(w, "AUEP\t 7   ds/ds1-2/1@tgw.example.net \t MGCP  1.0\r\n").code, Some(200));
        let reply = one(w, "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0  \r\nX :  5  \r\nQ: loop ,  discard\t\r\nB : e : A \r\n");
        assert_eq!(reply.code, Some(200), "{reply:?}");
        let got = ["X", "Q", "B"].map(|info| audit(w, "ds/ds1-2/1", info));
        assert_eq!(got, ["5", "loop,discard", "e:A"]);
        let crcx = one(w, "CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC : A1\r\nM: recvonly  \r\nL: p : 10 , a : PCMU ; PCMA\r\n");
        assert!(crcx.code == Some(200) && crcx.description.contains("a=ptime:10"), "{crcx:?}");
        assert_eq!(one(w, "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nR : L/hu (N) , L/hd\r\n").code, Some(518));
    });
}

/// G-SYN-03: nothing outside descriptions knows letter case.
#[test]
fn letter_case_does_not_matter() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "fa1");
        let sdp = SDP[1..].join("\r\n");
        let text = format!(
            "mdcx 7 DS/DS1-2/1@TGW.EXAMPLE.NET mgcp 1.0\r\nc: FA1\r\ni: {}\r\nm: SendRecv\r\nl: A:pcmu, P:10\r\nx: aB\r\nq: LOOP\r\n\r\n{sdp}\r\n",
            id.to_lowercase()
        );
        let reply = one(w, &text);
        assert_eq!(reply.code, Some(200), "{reply:?}");
        let audited = w.ask("AUCX", "ds/ds1-2/1", &[&format!("I: {id}"), "f: m,l"]);
        assert_eq!((audited.get("M"), audited.get("L")), (Some("sendrecv"), Some("p:10, a:PCMU")));
    });
}

/// G-SYN-04: transaction ids are numbers of one to nine digits.
#[test]
fn transaction_ids_are_numbers() {
    each_layout(|w| {
        let first = raw(w, b"CRCX 0012 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
        assert!(first[0].line.starts_with("200 12 "), "{first:?}");
        let again = raw(w, b"CRCX 12 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: recvonly\r\n");
        assert_eq!(first, again);
        assert_eq!(w.connections().len(), 1);
        assert_eq!(raw(w, b"AUEP 999999999 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n")[0].code, Some(200));
        // Nothing to answer to.
        for bad in ["AUEP 1000000000", "AUEP -1", "AUEP x", "AUEP"] {
            assert_eq!(raw(w, format!("{bad} ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n").as_bytes()), [], "{bad}");
        }
        // Open point O-3: 0 is taken.
        assert_eq!(raw(w, b"AUEP 0 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\n")[0].code, Some(200));
    });
}

/// G-SYN-05: version 1.0 and no profile.
#[test]
fn versions() {
    each_layout(|w| {
        for (version, code) in [
            ("MGCP 1.0", 200),
            ("mgcp\t1.0", 200),
            ("MGCP 01.00", 200),
            ("MGCP 2.0", 528),
            ("MGCP 1.1", 528),
            ("MGCP 1.0 NCS 1.0", 528),
            ("SGCP 1.0", 528),
            ("MGCP", 528),
        ] {
            assert_eq!(one(w, &format!("AUEP 7 ds/ds1-2/1@tgw.example.net {version}\r\n")).code, Some(code), "{version}");
        }
        assert_eq!(one(w, "AUEP 7 ds/ds1-2/1@tgw.example.net\r\n").code, Some(510));
    });
}

/// G-SYN-07: quoted strings hold separators, quotes and line ends.
#[test]
fn quoted_strings_hold_anything() {
    each_layout(|w| {
        for list in ["A/ann(\"a\"\"b,(c)\")", "A/ann(\"two\r\nlines\")", "A/ann(\"\u{e4}\u{f6}\",3)"] {
            let text = format!("RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nS: {list}\r\nX: 5\r\n");
            assert_eq!(one(w, &text).code, Some(518), "{list}");
        }
        for list in ["A/ann(\"a\"b\")", "A/ann(\"a)"] {
            let text = format!("RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nS: {list}\r\n");
            assert_eq!(one(w, &text).code, Some(510), "{list}");
        }
        let options = "L: p:10, x-q:\"a,b\", a:PCMU";
        assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly", options]), 200);
    });
}

/// G-SYN-08: header lines are not folded, neither theirs nor ours.
#[test]
fn header_lines_are_not_folded() {
    each_layout(|w| {
        assert_eq!(one(w, "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nQ: loop,\r\n discard\r\n").code, Some(510));
        let audited = w.ask("AUEP", "ds/ds1-2/1", &["F: A"]);
        assert!(audited.values("A")[0].len() > 100);
    });
}

/// G-SYN-09: an empty line and nothing after it is legal; a command has one description at most.
#[test]
fn empty_lines_and_descriptions() {
    each_layout(|w| {
        assert_eq!(one(w, "RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n\r\n").code, Some(200));
        let sdp = SDP[1..].join("\r\n");
        let crcx = "CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nC: A1\r\nM: sendrecv\r\n";
        assert_eq!(one(w, &format!("{crcx}\r\n{sdp}\r\n\r\n{sdp}\r\n")).code, Some(510));
        assert_eq!(one(w, &format!("{crcx}\r\n{sdp}\r\n")).code, Some(200));
        // A verb that has none.
        assert_eq!(one(w, &format!("RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\n\r\n{sdp}\r\n")).code, Some(539));
    });
}

/// G-SYN-10: lengths.
#[test]
fn lengths_are_bounded() {
    each_layout(|w| {
        for (digits, accepted) in [(1, true), (32, true), (33, false)] {
            let id = "A".repeat(digits);
            assert_eq!(code(w, "CRCX", "ds/ds1-2/1", &[&format!("C: {id}"), "M: recvonly"]) == 200, accepted);
            assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &[&format!("X: {id}")]) == 200, accepted);
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &["C: 1", &format!("I: {id}")]), if accepted { 515 } else { 510 });
            assert_eq!(code(w, "DLCX", "ds/ds1-2/1", &[]), 250);
        }
        let name = |n: usize| format!("zz/{}: 1", "x".repeat(n));
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", &name(32)]), 518);
        assert_eq!(code(w, "RQNT", "ds/ds1-2/1", &["X: 1", &name(33)]), 510);
    });
}

/// G-SYN-11: what cannot be read is 510 with words when the id is readable, and nothing when not.
#[test]
fn what_cannot_be_read() {
    each_layout(|w| {
        for bad in ["CRCX 7 bad\r\n", "CRCX 7\r\n", "CRCX 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nnonsense\r\n"] {
            let reply = one(w, bad);
            assert_eq!(reply.code, Some(510), "{bad:?}");
            assert!(reply.line.len() > "510 7 ".len());
        }
        let before = w.counter(Counter::DroppedUnreadable);
        for garbage in [&b"\x00\x01\x02\xff"[..], b"\r\n\r\n", b"hello", b"", b"\xc3\x28 1 2"] {
            assert_eq!(raw(w, garbage), [], "{garbage:?}");
        }
        assert!(w.counter(Counter::DroppedUnreadable) >= before + 3);
    });
}

/// G-SYN-12: three digits begin a response, and one that nobody waits for is ignored.
#[test]
fn stray_responses_are_ignored() {
    each_layout(|w| {
        let id = create(w, "ds/ds1-2/1", "A1");
        for stray in ["200 55 OK\r\n", "999 55\r\n", "100 55\r\n", "521 55 x\r\nN: ca2@ca2.example.net\r\n"] {
            assert_eq!(raw(w, stray.as_bytes()), [], "{stray}");
        }
        assert_eq!(audit(w, "ds/ds1-2/1", "I"), id);
        assert_eq!(audit(w, "ds/ds1-2/1", "N"), "ca1@[192.0.2.1]:2727");
    });
}

/// G-SYN-13: depth and sizes are bounded, and no byte does harm.
#[test]
fn depth_and_sizes_are_bounded() {
    each_layout(|w| {
        let deep = format!("RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nR: L/hd({})\r\n", "E(R(".repeat(900));
        assert!(one(w, &deep).code >= Some(500));
        let parentheses = format!("RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nS: L/hd({}\r\n", "(".repeat(3900));
        assert!(one(w, &parentheses).code >= Some(500));
        let mut bytes = *b"RQNT 7 ds/ds1-2/1@tgw.example.net MGCP 1.0\r\nX: 5\r\nD: (0|\x00\xff)\r\n";
        // One id for different commands: not what the journal expects of an agent.
        w.without_journal();
        for place in [5, 10, 40, 46, 50, 55] {
            bytes[place] = 0;
            raw(w, &bytes);
            w.run_for(31 * S);
        }
        let made = w.ask("CRCX", "ds/ds1-2/1", &["C: A1", "M: recvonly"]);
        assert_eq!(connection(&made).len(), 8);
    });
}
