//! What is refused, with which error code, and how much of a message is lost by it (RFC 3525 8.2.2).

use tollgate::proto::codec::h248::{Header, MESSAGE_MAX, MessageId, Style, Writer};

use super::transcribed;

/// The error code that a message is refused with; 0 when there is none.
fn code(message: &str) -> u16 {
    transcribed(message.as_bytes(), Style::Compact).map_or_else(|refusal| refusal.code(), |_| 0)
}

/// The same for one command on context 1.
fn command(text: &str) -> u16 {
    code(&format!("!/1 <a> T=1{{C=1{{{text}}}}}"))
}

#[test]
fn the_level_of_a_fault_decides_its_code() {
    // TXN-07 to TXN-12, MSG-04, MSG-05
    for (message, expected) in [
        ("", 400),
        ("!/1", 400),
        ("!/1 <a>", 400),
        ("!/0 <a> T=1{C=1{S=a}}", 406),
        ("!/4 <a> T=1{C=1{S=a}}", 406),
        ("!/123 <a> T=1{C=1{S=a}}", 400),
        ("!/1 <a> X=1{C=1{S=a}}", 403),
        ("!/1 <a> T{C=1{S=a}}", 403),
        ("!/1 <a> T=4294967296{C=1{S=a}}", 403),
        ("!/1 <a> T=1", 403),
        ("!/1 <a> T=1{C=1{S=a}", 403),
        ("!/1 <a> T=1{}", 422),
        ("!/1 <a> T=1{X=1{S=a}}", 422),
        ("!/1 <a> T=1{C=1{}}", 422),
        ("!/1 <a> T=1{C=x{S=a}}", 422),
        ("!/1 <a> T=1{C=1*{S=a}}", 422),
        ("!/1 <a> T=1{C=0{S=a}}", 422),
        ("!/1 <a> T=1{C=4294967294{S=a}}", 422),
        ("!/1 <a> T=1{C=1{S=a}}}", 400),
        ("!/1 <a> PN=1{x}", 403),
        ("!/1 <a> K{}", 403),
        ("!/1 <a> K{1-x}", 403),
        ("!/1 <a> ER=12345{}", 442),
        ("!/2 <a> SM=1/1{}", 501),
        ("!/3 <a> T=1{C=1{CT{x/y=1}}}", 501),
        ("!/2 <a> T=1{C=1{EG=OFF,S=a}}", 501),
    ] {
        assert_eq!(code(message), expected, "{message}");
    }
}

#[test]
fn commands_are_refused_as_their_fault_says() {
    for (text, expected) in [
        ("A=a", 0),
        ("BAR=a", 443),
        ("S", 442),
        ("A=9", 442),
        ("A=a{", 442),
        // Descriptors: unknown, not legal here, twice, missing (TXT-27, PAR-06).
        ("A=a{FOO{}}", 444),
        ("S=a{M{}}", 447),
        ("MF=a{SA}", 447),
        ("MF=a{OE=1{a/b}}", 447),
        ("MF=a{SG{},SG{}}", 448),
        ("AV=a", 442),
        ("AV=a{}", 442),
        ("AV=a{AT{XX}}", 444),
        ("AV=a{AT{M,M}}", 448),
        ("AV=a{AT{M{L}}}", 501),
        // Media (MED-01, LC-01).
        ("MF=a{M{O{MO=XX}}}", 517),
        ("MF=a{M{O{XX=1}}}", 446),
        ("MF=a{M{O{RV=maybe}}}", 442),
        ("MF=a{M{ST=1{O{MO=SR}},L{}}}", 442),
        ("MF=a{M{ST=1{L{}},ST=1{L{}}}}", 448),
        ("MF=a{M{L{},L{}}}", 448),
        ("MF=a{M{TS{SI=XX}}}", 442),
        ("MF=a{M{ST=1{SA{}}}}", 501),
        ("MF=a{M{O{nt/jit=[1,{2}]}}}", 442),
        ("MF=a{M{O{nt/jit=>1}}}", 442),
        // Events and signals (EVT-01, EVT-06, EVT-07, SIG-05).
        ("MF=a{E{a/b}}", 442),
        ("MF=a{E=1{a}}", 442),
        ("MF=a{E=1{a/b{KA,KA}}}", 456),
        ("MF=a{E=1{a/b{ST=1,ST=2}}}", 456),
        ("MF=a{E=1{a/b{KA,EM{SG{c/d}}}}}", 442),
        ("MF=a{E=1{a/b{EM{E=2{a/b{EM{E=3{a/b}}}}}}}}", 442),
        ("MF=a{E=1{a/b{EM{E=2{a/b{EM{SG{a/b}}}}}}}}", 0),
        ("MF=a{EB{a/b{KA}}}", 446),
        ("MF=a{SG{cg/*}}", 442),
        ("MF=a{SG{cg/dt{DR=65536}}}", 442),
        ("MF=a{SG{cg/dt{NC={XX}}}}", 442),
        ("MF=a{SG{SL=1{SL=2{a/b}}}}", 442),
        ("MF=a{DM={1|}}", 442),
        ("MF=a{DM={(1}}", 442),
        ("MF=a{DM={T:100,(1)}}", 442),
        ("MF=a{DM=x{}}", 0),
        ("N=a{OE=1{20260101T0000000:a/b}}", 442),
        ("N=a", 442),
        // Service changes (SC-01, SC-02).
        ("SC=a{SV{MT=RS}}", 442),
        ("SC=a{SV{RE=\"900\"}}", 442),
        ("SC=a{SV{MT=RS,RE=\"x\"}}", 442),
        ("SC=a{SV{MT=RS,MT=RS,RE=\"900\"}}", 456),
        ("SC=a{SV{MT=RS,RE=\"900\",AD=1,MG=<a>}}", 442),
        ("SC=a{SV{MT=RS,RE=\"900\",PF=a/1,PF=b/1}}", 456),
        ("SC=a{SV{MT=RS,RE=\"900\",SIC}}", 501),
        // Properties of the context (CA-02, CTX-05).
        ("PR=16,S=a", 442),
        ("PR=1,PR=2", 422),
        ("S=a,PR=1", 422),
        ("EG", 0),
        ("TP{a,b}", 442),
        ("TP{a,b,XX}", 442),
    ] {
        assert_eq!(command(text), expected, "{text}");
    }
}

#[test]
fn a_fault_leaves_what_stands_before_and_behind_it() {
    // TXN-11: the second transaction is read although the first is none.
    use tollgate::proto::codec::h248::{Content, Message, Shape, Transaction};
    let text = b"!/1 <a> X=1{C=1{S=a}} T=2{C=1{S=a}} T={} T=3{C=1{S=b}";
    let mut shape = Shape::new();
    let Ok(Content::Transactions(transactions)) = Message::parse(text, &mut shape).unwrap().content() else { panic!() };
    let read: Vec<Result<u32, u16>> = transactions
        .map(|transaction| match transaction {
            Ok(Transaction::Request(request)) => Ok(request.id),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.code()),
        })
        .collect();
    assert_eq!(read, [Err(403), Ok(2), Err(403), Ok(3)]);
}

#[test]
fn the_header_is_read_also_when_the_rest_is_not() {
    let header = Header::parse(b"MEGACO/7 <mgc.example.net>:2944 }}}").unwrap();
    assert_eq!((header.version, header.from), (7, MessageId::Domain(b"mgc.example.net", Some(2944))));
    assert_eq!(code(&format!("!/1 <a> {}", " ".repeat(MESSAGE_MAX))), 400);
}

#[test]
fn the_writer_refuses_what_is_no_message() {
    let write = |room: usize, f: &dyn Fn(&mut Writer<'_>)| {
        let mut buffer = vec![0; room];
        let mut writer = Writer::new(&mut buffer, Style::Compact);
        f(&mut writer);
        writer.finish()
    };
    use tollgate::proto::codec::h248::{TerminationId, Token, Verb};
    assert_eq!(write(100, &|writer| writer.pending(2)), Some("PN=2{}".len()));
    assert_eq!(write(5, &|writer| writer.pending(2)), None);
    assert_eq!(write(100, &|writer| writer.request(2)), None, "a level is open");
    assert_eq!(write(100, &|writer| writer.end()), None, "no level is open");
    assert_eq!(write(100, &|writer| writer.name(b"a b")), None);
    assert_eq!(write(100, &|writer| writer.octets(Token::Local, b"a=x:}")), None);
    assert_eq!(write(100, &|writer| writer.octets(Token::Local, b"a=x:\\}")), Some(11));
    // A quote in a text would end it for every reader (and fails in OTP's own encoder).
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer, Style::Compact);
    writer.command(Verb::Add, TerminationId::Root);
    let mark = writer.mark();
    writer.name(b"");
    assert!(writer.failed());
    writer.rewind(mark);
    writer.error(400, b"before \"bogus\"\n");
    writer.end();
    let length = writer.finish().unwrap();
    assert_eq!(&buffer[..length], b"A=ROOT{ER=400{\"before 'bogus' \"}}");
}
