use super::*;

const ENDPOINT: &str = "ds/ds1-1/1@tgw.example.net";

fn fault(message: &str) -> Option<Fault> {
    Command::parse(message.as_bytes()).err().map(|refusal| refusal.fault)
}

fn with(verb: &str, lines: &str) -> String {
    format!("{verb} 1 {ENDPOINT} MGCP 1.0\r\n{lines}")
}

/// A value that the grammar allows for `code`.
fn value(code: Code) -> &'static str {
    match code {
        Code::M => "recvonly",
        Code::Q => "loop",
        Code::RM => "restart",
        Code::N => "ca@x",
        Code::Z | Code::Z2 => "ds/1@x",
        Code::E => "900",
        Code::F => "A",
        _ => "1",
    }
}

/// Table M-1 (RFC 3435 3.2.2) as the specification prints it: the columns EPCF CRCX MDCX DLCX RQNT AUEP AUCX.
const TABLE_M1: [(Code, &str); 28] = [
    (Code::B, "OOOOOFF"),
    (Code::C, "FMMOFFF"),
    (Code::A, "FFFFFFF"),
    (Code::I, "FFMOFFM"),
    (Code::M, "FMOFFFF"),
    (Code::P, "FFFFFFF"),
    (Code::T, "FOOOOFF"),
    (Code::BPr, "FOOOOFF"),
    (Code::D, "FOOOOFF"),
    (Code::ES, "FFFFFFF"),
    (Code::L, "FOOFFFF"),
    (Code::MD, "FFFFFFF"),
    (Code::N, "FOOOOFF"),
    (Code::O, "FFFFFFF"),
    (Code::PL, "FFFFFFF"),
    (Code::Q, "FOOOOFF"),
    (Code::E, "FFFOFFF"),
    (Code::R, "FOOOOFF"),
    (Code::X, "FOOOMFF"),
    // F of AUCX is mandatory in the table, but its absence is an existence check (G-AUC-01).
    (Code::F, "FFFFFOO"),
    (Code::K, "OOOOOOO"),
    (Code::RD, "FFFFFFF"),
    (Code::RM, "FFFFFFF"),
    (Code::I2, "FFFFFFF"),
    (Code::Z2, "FOFFFFF"),
    (Code::S, "FOOOOFF"),
    (Code::Z, "FFFFFFF"),
    (Code::BNs, "FFFFFFF"),
];

const RECEIVED: [Verb; 7] = [Verb::Epcf, Verb::Crcx, Verb::Mdcx, Verb::Dlcx, Verb::Rqnt, Verb::Auep, Verb::Aucx];

#[test]
fn table_m1_holds_for_every_verb_and_code() {
    // G-PAR-01, G-PAR-06
    for (column, verb) in RECEIVED.into_iter().enumerate() {
        let level = |code: Code| TABLE_M1.iter().find(|(row, _)| *row == code).map_or('F', |(_, levels)| levels.as_bytes()[column] as char);
        // What makes the command complete whichever code is tried: the mandatory ones, and those the notes demand.
        let mut base: Vec<Code> = TABLE_M1.iter().map(|(code, _)| *code).filter(|code| level(*code) == 'M').collect();
        match verb {
            Verb::Epcf => base.push(Code::B),
            Verb::Crcx | Verb::Mdcx => base.push(Code::X),
            Verb::Dlcx => base.extend([Code::X, Code::C]),
            _ => {}
        }
        let lines = |codes: &[Code]| codes.iter().map(|code| format!("{}: {}\r\n", code.name(), value(*code))).collect::<String>();
        assert_eq!(fault(&with(verb.name(), &lines(&base))), None, "{verb:?}");
        for &code in Code::ALL {
            let with_code: Vec<Code> = base.iter().copied().filter(|&c| c != code).chain([code]).collect();
            let expected = if level(code) == 'F' { Some(Fault::Forbidden(code)) } else { None };
            assert_eq!(fault(&with(verb.name(), &lines(&with_code))), expected, "{verb:?} with {code:?}");
            let without: Vec<Code> = base.iter().copied().filter(|&c| c != code).collect();
            if level(code) == 'M' {
                assert_eq!(fault(&with(verb.name(), &lines(&without))), Some(Fault::Missing(code)), "{verb:?} without {code:?}");
            }
            // G-PAR-02
            if level(code) != 'F' {
                let twice: Vec<Code> = with_code.iter().copied().chain([code]).collect();
                assert_eq!(fault(&with(verb.name(), &lines(&twice))), Some(Fault::Repeated(code)), "{verb:?} with {code:?} twice");
            }
        }
    }
}

#[test]
fn notes_of_table_m1() {
    // Note a (G-EPC-03), note b, open point O-12.
    assert_eq!(fault(&with("EPCF", "")), Some(Fault::Missing(Code::B)));
    assert_eq!(fault(&with("EPCF", "X-foo: 1\n")), None);
    for code in ["R", "S", "D", "Q", "T"] {
        let line = format!("C: 1\nM: recvonly\n{code}: loop\n");
        assert_eq!(fault(&with("CRCX", &line)), Some(Fault::RequestIdMissing));
        assert_eq!(fault(&with("CRCX", &format!("{line}X: 1\n"))), None);
    }
    assert_eq!(fault(&with("DLCX", "I: 1\n")), Some(Fault::CallIdMissing));
    assert_eq!(fault(&with("DLCX", "")), None);
    assert_eq!(fault(&with("DLCX", "P: PS=1\n")), Some(Fault::Forbidden(Code::P)));
}

#[test]
fn verbs() {
    // G-MSG-03: what only gateways send is not known here, and the other way round.
    for verb in ["XPER", "FOOO", "CRX", "NTFY", "RSIP", "MESG"] {
        assert_eq!(fault(&with(verb, "")), Some(Fault::VerbUnknown), "{verb}");
    }
    let agent = |message: String| Command::parse_at_agent(message.as_bytes()).map(|command| command.verb).map_err(|refusal| refusal.fault);
    assert_eq!(agent(with("NTFY", "X: 1\nO: T/co1\n")), Ok(Verb::Ntfy));
    assert_eq!(agent(with("RSIP", "RM: restart\nRD: 0\n")), Ok(Verb::Rsip));
    assert_eq!(agent(with("DLCX", "C: 1\nI: 2\nE: 900\nP: PS=1\n")), Ok(Verb::Dlcx));
    assert_eq!(agent(with("MESG", "X-a: b\nzz/y: 1\n")), Ok(Verb::Mesg));
    assert_eq!(agent(with("NTFY", "X: 1\n")), Err(Fault::Missing(Code::O)));
    assert_eq!(agent(with("RSIP", "RM: restart\nN: x\n")), Err(Fault::Forbidden(Code::N)));
    assert_eq!(agent(with("CRCX", "")), Err(Fault::VerbUnknown));
}

#[test]
fn versions() {
    // G-SYN-05, field bug O08
    let version = |text: &str| fault(&format!("AUEP 1 {ENDPOINT} {text}\r\n"));
    for good in ["MGCP 1.0", "mgcp  1.0 ", "MGCP\t1.00", "MGCP 01.0"] {
        assert_eq!(version(good), None, "{good}");
    }
    assert_eq!(version(""), Some(Fault::VersionMissing));
    // A profile is for who knows the agent to judge.
    assert_eq!(version("MGCP 1.0 NCS 1.0"), None);
    let profile = |version: &str| {
        let text = format!("AUEP 1 a@b {version}\r\n");
        String::from_utf8_lossy(Command::parse(text.as_bytes()).unwrap().profile).into_owned()
    };
    assert_eq!(profile("MGCP 1.0"), "");
    assert_eq!(profile("MGCP 1.0  "), "");
    assert_eq!(profile("mgcp  1.0  TGCP 1.0 "), "TGCP 1.0");
    for bad in ["MGCP 0.1", "MGCP 2.7", "SGCP 1.1", "MGCP", "MGCP 1", "MGCP 1.0.0", "MGCP x.y", "MGCP1.0"] {
        assert_eq!(version(bad), Some(Fault::VersionUnsupported), "{bad}");
    }
}

#[test]
fn extensions() {
    // G-PAR-03, G-PAR-04, G-PKG-04
    let audit = |lines: &str| fault(&with("AUEP", lines));
    assert_eq!(audit("X-Flower: Daisy\nX-muchlongerthansix: 1\nx-flower: again\n"), None);
    assert_eq!(audit("X+foo: 1\n"), Some(Fault::CriticalExtension));
    assert_eq!(audit("QQ: 1\n"), Some(Fault::ParameterUnknown));
    assert_eq!(audit("q q: 1\n"), Some(Fault::ParameterName));
    assert_eq!(audit(": 1\n"), Some(Fault::ParameterName));
    assert_eq!(audit("/foo: 1\n"), Some(Fault::ParameterName));
    assert_eq!(audit("zz/: 1\n"), Some(Fault::ParameterName));
    assert_eq!(audit(&format!("zz/{}: 1\n", "a".repeat(32))), None);
    assert_eq!(audit(&format!("zz/{}: 1\n", "a".repeat(33))), Some(Fault::ParameterName));
    assert_eq!(audit("zz/foo: 1\nZZ/FOO: 2\n"), Some(Fault::ExtensionRepeated));
    let many = |n: usize| (0..n).map(|i| format!("zz/f{i}: {i}\n")).collect::<String>();
    assert_eq!(audit(&many(EXTENSIONS_MAX)), None);
    assert_eq!(audit(&many(EXTENSIONS_MAX + 1)), Some(Fault::TooManyExtensions));
    let message = with("AUEP", "x-foo/Bar: \"a\nb\"\nBA/F:\n");
    let command = Command::parse(message.as_bytes()).unwrap();
    let found: Vec<Extension<'_>> = command.extensions().collect();
    assert_eq!(found[0], Extension { package: b"x-foo", name: b"Bar", value: b"\"a\nb\"" });
    assert_eq!(found[1], Extension { package: b"BA", name: b"F", value: b"" });
}

#[test]
fn broken_lines() {
    // G-SYN-08, G-SYN-11
    assert_eq!(fault("CRCX 77 bad"), Some(Fault::VersionMissing));
    assert_eq!(fault("CRCX 77"), Some(Fault::VersionMissing));
    assert_eq!(fault("CRCX x"), Some(Fault::CommandLine));
    assert_eq!(fault("AUEP 1 bad MGCP 1.0"), Some(Fault::EndpointIncomplete));
    assert_eq!(fault("AUEP 1 a//b@x MGCP 1.0"), Some(Fault::EndpointMalformed));
    assert_eq!(fault(&with("RQNT", "X: 1\r\nR: a(N),\r\n b(N)\r\n")), Some(Fault::HeaderFolded));
    assert_eq!(fault(&with("RQNT", "X: 1\r\nnonsense\r\n")), Some(Fault::HeaderLine));
    let refusal = Command::parse(b"AUEP 1 a//b@x MGCP 1.0").unwrap_err();
    assert_eq!((refusal.code(), refusal.offset), (500, 9));
}

#[test]
fn emptiness() {
    // G-PAR-07
    assert_eq!(fault(&with("CRCX", "C: 1\nM:\n")), Some(Fault::Empty(Code::M)));
    assert_eq!(fault(&with("CRCX", "C: \nM: recvonly\n")), Some(Fault::Empty(Code::C)));
    assert_eq!(fault(&with("RQNT", "X:\n")), Some(Fault::Empty(Code::X)));
    assert_eq!(fault(&with("MDCX", "C: 1\nI:\n")), Some(Fault::Empty(Code::I)));
    let message = with("RQNT", "X: 1\nS:  \nR:\nN:\nD:\nT:\nB:\nK:\n");
    let command = Command::parse(message.as_bytes()).unwrap();
    assert!(command.signals().unwrap().unwrap().is_empty() && command.requested_events().unwrap().unwrap().is_empty());
    assert_eq!((command.notified_entity(), command.digit_map()), (Ok(Some(None)), Ok(Some(None))));
    assert_eq!(command.quarantine(), Ok(Quarantine::default()));
}

#[test]
fn descriptions_of_a_command() {
    // G-SYN-09, field bug O02
    for ends in ["\r\n\r\nv=0\r\nc=x", "\n\nv=0\r\nc=x", "\r\n\nv=0\r\nc=x", "\n\r\nv=0\r\nc=x", "\n \t\nv=0\r\nc=x"] {
        let message = with("CRCX", &format!("C: 1\r\nM: recvonly{ends}"));
        assert_eq!(Command::parse(message.as_bytes()).unwrap().description, Some(&b"v=0\r\nc=x"[..]), "{ends:?}");
    }
    assert_eq!(fault(&with("RQNT", "X: 1\r\n\r\n")), None);
    assert_eq!(fault(&with("RQNT", "X: 1\r\n\r\nv=0\r\n")), Some(Fault::Forbidden(Code::RC)));
    assert_eq!(fault(&with("CRCX", "C: 1\nM: recvonly\n\nv=0\n\nv=0\n")), Some(Fault::TwoDescriptions));
    assert_eq!(fault(&with("CRCX", "C: 1\nM: recvonly\nRC: x\n")), Some(Fault::Forbidden(Code::RC)));
}

#[test]
fn typed_values() {
    // G-SYN-03, G-SYN-10, G-PAR-07: any case, any order.
    let message = "crcx 0012 DS/DS1-1/4@TGW mgcp 1.0\n\
        l: P:20, A:pcmu\nm: RecvOnly\nx : 00ff\nn: ca@[192.0.2.1]:2727\nc: a6\nq: Loop\nr: D/[0-9](D)\ns: G/rt\nt: G/ft\n\
        d: (1|2x)\nb: e:a\nb/pr: L/hd(N)\nz2: $@tgw\nk: 1-5,7\n";
    let command = Command::parse(message.as_bytes()).unwrap();
    assert_eq!((command.verb, command.id, command.endpoint.local), (Verb::Crcx, 12, &b"DS/DS1-1/4"[..]));
    assert_eq!(command.call().unwrap(), HexId::parse(b"A6"));
    assert_eq!(command.request().unwrap(), HexId::parse(b"00FF"));
    assert_eq!(command.connection(), Ok(None));
    assert_eq!(command.mode(), Ok(Some(Mode::RecvOnly)));
    assert_eq!(command.options().unwrap().period_ms.unwrap().low, 20);
    assert_eq!(command.notified_entity().unwrap().unwrap().unwrap().port, 2727);
    assert!(command.quarantine().unwrap().looping);
    for list in [command.requested_events(), command.signals(), command.detect_events(), command.persistent_events()] {
        assert_eq!(list.unwrap().unwrap().iter().count(), 1);
    }
    assert_eq!(command.digit_map().unwrap().unwrap().unwrap().strings().count(), 2);
    assert!(command.bearer().unwrap().unwrap().encoding.is_some());
    assert_eq!(command.second_endpoint().unwrap().unwrap().local, b"$");
    assert_eq!(command.confirmed().collect::<Vec<_>>(), [(1, 5), (7, 7)]);
}

#[test]
fn identifiers_have_32_digits_at_most() {
    // G-SYN-10, field bug O05
    let call = |digits: usize| {
        let message = with("CRCX", &format!("C: {}\nM: recvonly\n", "1".repeat(digits)));
        Command::parse(message.as_bytes()).unwrap().call().map(|id| id.is_some()).map_err(|refusal| refusal.fault)
    };
    assert_eq!((call(32), call(33)), (Ok(true), Err(Fault::Malformed(Code::C))));
    let message = with("MDCX", "C: 1\nI: A,B\n");
    let refusal = Command::parse(message.as_bytes()).unwrap().connection().unwrap_err();
    assert_eq!((refusal.code(), refusal.offset), (510, message.find("A,B").unwrap()));
}

#[test]
fn what_an_agent_reads() {
    let message = with("RSIP", "RM: graceful\nRD: 300\nE: 905 T1 failed\n");
    let command = Command::parse_at_agent(message.as_bytes()).unwrap();
    assert_eq!(command.restart_method(), Ok(Some(RestartMethod::Graceful)));
    assert_eq!((command.restart_delay(), command.reason().unwrap().unwrap().code), (Ok(300), 905));
    let message = with("RSIP", "RM: soft\nRD: 1234567\n");
    let command = Command::parse_at_agent(message.as_bytes()).unwrap();
    assert_eq!(command.restart_method().unwrap_err().code(), 536);
    assert_eq!(command.restart_delay().unwrap_err().fault, Fault::Malformed(Code::RD));
    let message = with("NTFY", "X: 1\nO: D/1,D/#,G/oc(G/rt@C7)\n");
    assert_eq!(Command::parse_at_agent(message.as_bytes()).unwrap().observed_events().unwrap().unwrap().iter().count(), 3);
    let message = with("DLCX", "C: 1\nI: 2\nP: PS=5\n");
    let command = Command::parse_at_agent(message.as_bytes()).unwrap();
    assert_eq!(command.connection_parameters().unwrap().unwrap().packets_sent, Some(5));
}
