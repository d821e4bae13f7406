//! What both ends of a link must agree about, octet by octet.

use super::super::charge::{Charge, Class, Direction, Guid, KBITS_MAX, Leg};
use super::super::ledger::{Admission, BUCKETS, Digest};
use super::super::limits::{Cause, Denial};
use super::super::message::{Answer, Handle, Quota, QuotaUse, Refusal, Report, Request, Span, Told};
use super::super::scope::ScopeId;
use super::*;
use crate::proto::base::Rng;
use std::time::Duration;

fn charge() -> Charge {
    let mut charge = Charge::new(Direction::Outbound, Class::Priority, 80);
    charge.add(ScopeId(0));
    charge.add(ScopeId(300));
    charge
}

fn told(number: u64) -> Told {
    let guid = Guid { sc: 7, incarnation: 3, number };
    Told { guid, leg: Leg::Egress, charge: charge(), admission: Admission::Learning }
}

fn header() -> Header {
    Header { sc: ScId(7), incarnation: 3, epoch: 9, session: 11, number: 13 }
}

fn all_to_central() -> Vec<ToCentral> {
    let Told { guid, leg, charge, .. } = told(5);
    let request = Request { handle: Handle { slot: 1, generation: 2 }, guid, leg, charge };
    let mut digests = Box::new([Digest::default(); BUCKETS]);
    digests[255] = Digest { count: 1, sum: u64::MAX };
    vec![
        ToCentral::Hello { version: 1, attempt: 2, fingerprint: 3, highest_epoch: 4, features: 1, rules: 5, cluster: 6 },
        ToCentral::Ask(request),
        ToCentral::Ask(Request { leg: Leg::Ingress, ..request }),
        ToCentral::AskBoth(request, Request { leg: Leg::Ingress, ..request }),
        ToCentral::Modify(request),
        ToCentral::Report { number: 1, report: Report::Fact(told(6)) },
        ToCentral::Report { number: 2, report: Report::Release(guid, Leg::Ingress) },
        ToCentral::SyncBegin { generation: 1 },
        ToCentral::SyncChunk { generation: 1, index: 0, calls: (0..512).map(told).collect() },
        ToCentral::SyncEnd { generation: 1, chunks: 1 },
        ToCentral::Compare(digests),
        ToCentral::Bucket { bucket: 255, span: Span::default(), calls: vec![told(8)], asked: vec![(guid, leg)] },
        ToCentral::Bucket {
            bucket: 0,
            span: Span { after: Some((guid, Leg::Ingress)), upto: Some((guid, leg)) },
            calls: vec![],
            asked: vec![],
        },
        ToCentral::Report {
            number: 3,
            report: Report::Fact(Told { charge: told(6).charge.lease(ScopeId(300)), admission: Admission::Lease, ..told(6) }),
        },
        ToCentral::QuotaReport { number: 9, seen: 8, scopes: vec![QuotaUse { scope: ScopeId(0), live: 1, bound: u32::MAX, want: 3 }] },
        ToCentral::Heartbeat { rules: 0x0123_4567_89ab_cdef },
        ToCentral::Heartbeat { rules: 0 },
        ToCentral::Goodbye,
    ]
}

fn all_to_node() -> Vec<ToNode> {
    let Told { guid, leg, .. } = told(5);
    let reply = |answer| ToNode::Reply { handle: Handle { slot: 1, generation: 2 }, guid, leg, answer };
    let denial = |cause| reply(Answer::Denied(Denial { scope: ScopeId(0), cause, used: 10, limit: 10 }));
    let mut all = vec![
        ToNode::Welcome { attempt: 1, credit: 16, leads: false, features: 1, cluster: 7 },
        reply(Answer::Granted),
        reply(Answer::Learning),
        reply(Answer::Busy),
        ToNode::QuotaGrant {
            number: 1,
            answers: 0,
            lease: Duration::from_secs(10),
            quotas: vec![Quota { scope: ScopeId(4095), calls: 12 }],
        },
        ToNode::ReportAck { number: 9, gap: 0 },
        ToNode::ReportAck { number: 9, gap: 12 },
        ToNode::SyncCredit { generation: 1, chunks: 17 },
        ToNode::SyncResult { generation: 1, ok: true },
        ToNode::Differ(vec![0, 255]),
        ToNode::Heartbeat { load: 0 },
        ToNode::Heartbeat { load: 3 },
        ToNode::Resync,
        ToNode::Lead { epoch: 1 << 40 },
        ToNode::Goodbye,
    ];
    all.extend(Cause::ALL.map(denial));
    let refusals =
        [Refusal::Version, Refusal::Configuration, Refusal::DuplicateId, Refusal::Full, Refusal::NotLeader, Refusal::OtherCluster];
    all.extend(refusals.map(|why| ToNode::Refused { attempt: 1, why }));
    all
}

fn written(message: &ToCentral) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_to_central(&Framed { header: header(), message: message.clone() }, &mut bytes);
    bytes
}

#[test]
fn every_message_is_read_as_it_was_written() {
    for message in all_to_central() {
        assert_eq!(get_to_central(&written(&message)), Ok(Framed { header: header(), message }));
    }
    for message in all_to_node() {
        let framed = Framed { header: header(), message };
        let mut bytes = Vec::new();
        put_to_node(&framed, &mut bytes);
        assert_eq!(get_to_node(&bytes), Ok(framed));
    }
}

/// R43: what version 1.0 wrote; an end of any later minor version must read these octets as that one did.
#[test]
fn the_octets_of_version_one_are_read_for_ever() {
    let golden = "54470100050000002f000000070000000300000000000000090000000000000\
                  00b000000000000000d00000000000000\
                  0903000000070000001105000000000000001802220300ac0228023002385048015002";
    let bytes = written(&all_to_central()[1]);
    let hex: String = bytes.iter().map(|octet| format!("{octet:02x}")).collect();
    let golden = golden.replacen("2f000000", &format!("{:02x}000000", bytes.len() - HEADER), 1);
    // But for the minor version this end says it has.
    assert_eq!(hex, golden.replacen("54470100", "54470102", 1));
    // A hello and a welcome without what later versions say: of a gateway that keeps no copies, and of a central node that leads.
    let old = |kind: u8, body: &[u8]| {
        let mut bytes = written(&ToCentral::Heartbeat { rules: 0 });
        (bytes[3], bytes[4], bytes[8]) = (0, kind, body.len() as u8);
        bytes.extend(body);
        bytes
    };
    let hello = old(1, &[0x08, 1, 0x10, 2, 0x19, 3, 0, 0, 0, 0, 0, 0, 0, 0x20, 4]);
    let read = ToCentral::Hello { version: 1, attempt: 2, fingerprint: 3, highest_epoch: 4, features: 0, rules: 0, cluster: 0 };
    assert_eq!(get_to_central(&hello).map(|framed| framed.message), Ok(read));
    let read = ToNode::Welcome { attempt: 1, credit: 16, leads: true, features: 0, cluster: 0 };
    assert_eq!(get_to_node(&old(2, &[0x08, 1, 0x10, 16])).map(|framed| framed.message), Ok(read));
}

/// R30: a chunk of a sync stays small enough for every queue on its way.
#[test]
fn a_chunk_has_at_most_32_kib() {
    let length = written(&all_to_central()[7]).len();
    assert!(length <= 32 * 1024, "{length}");
}

/// R43, I17: what a later minor version adds changes nothing; what it means nothing without is told apart from rubbish.
#[test]
fn what_a_later_minor_version_adds_is_passed_over() {
    let message = ToCentral::SyncBegin { generation: 1 };
    let mut bytes = written(&message);
    // Field 99, a string.
    bytes.extend([0x9a, 0x06, 0x02, b'h', b'i']);
    bytes[8] += 5;
    bytes[3] = 7;
    assert_eq!(get_to_central(&bytes).map(|framed| framed.message), Ok(message));
    bytes[4..6].copy_from_slice(&999u16.to_le_bytes());
    assert_eq!(get_to_central(&bytes).map(|framed| framed.message), Err(WireError::Type(999)));
    bytes[2] = 2;
    assert_eq!(get_to_central(&bytes).map(|framed| framed.message), Err(WireError::Version(2)));
}

/// Whatever comes from a network is read or refused, and never more.
#[test]
fn cut_and_flipped_octets_are_read_or_refused() {
    let mut rng = Rng::new(11);
    for message in all_to_central() {
        let bytes = written(&message);
        for cut in 0..bytes.len().min(200) {
            assert!(get_to_central(&bytes[..cut]).is_err(), "cut at {cut}");
            exercise(&bytes[..cut]);
        }
        for _ in 0..200 {
            let mut flipped = bytes.clone();
            let at = rng.below(flipped.len().min(400) as u64) as usize;
            flipped[at] ^= 1 << rng.below(8);
            exercise(&flipped);
        }
    }
    assert_eq!(get_to_node(&[0; 48]), Err(WireError::Magic));
    assert_eq!(get_to_node(&[]), Err(WireError::Short));
}

/// I7: what no call can be charged is not taken from a gateway that went wrong.
#[test]
fn bandwidth_beyond_that_of_a_call_is_unreadable() {
    let mut charge = Charge::new(Direction::Inbound, Class::Normal, u32::MAX);
    charge.add(ScopeId(0));
    assert_eq!(charge.kbits, KBITS_MAX);
    let fact = |kbits| {
        let mut charge = charge;
        charge.kbits = kbits;
        let told = Told { guid: Guid::default(), leg: Leg::Ingress, charge, admission: Admission::Granted };
        let message = ToCentral::Report { number: 1, report: Report::Fact(told) };
        let mut bytes = Vec::new();
        put_to_central(&Framed { header: Header::default(), message }, &mut bytes);
        get_to_central(&bytes).map(drop)
    };
    assert_eq!((fact(KBITS_MAX), fact(KBITS_MAX + 1), fact(u32::MAX)), (Ok(()), Err(WireError::Body), Err(WireError::Body)));
}
