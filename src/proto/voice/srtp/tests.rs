//! Packets as another implementation protects them (libsrtp 2, by pylibsrtp), and what must not be let in.

use super::*;
use crate::proto::base::srtp::{Crypto, LIFETIME, MasterKey, Suite};
use crate::proto::voice::rtp::Packet;

/// Octets in hexadecimal.
pub fn octets(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|place| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).unwrap()).collect()
}

/// The master key of RFC 3711 appendix B.3.
fn document() -> MasterKey {
    MasterKey::new(octets("E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6").try_into().unwrap())
}

fn crypto(suite: Suite, key: MasterKey) -> Crypto {
    Crypto { tag: 1, suite, key, lifetime: LIFETIME }
}

fn other(octet: u8) -> MasterKey {
    MasterKey::new([octet; MasterKey::OCTETS])
}

/// One that sends by `local` and receives by `remote`.
fn guard(local: &Crypto, remote: &Crypto) -> Box<Guard> {
    Guard::new(&MediaKeys { local: Some(local.clone()), remote: Some(remote.clone()) }).unwrap()
}

/// Two that hear each other.
fn pair(suite: Suite) -> [Box<Guard>; 2] {
    let (one, two) = (crypto(suite, other(1)), crypto(suite, other(2)));
    [guard(&one, &two), guard(&two, &one)]
}

fn packet(ssrc: u32, sequence: u16) -> Vec<u8> {
    let head = Packet { marker: false, payload_type: 0, sequence, timestamp: 7, ssrc, payload: &[] }.header();
    [&head[..], &[sequence as u8; 160]].concat()
}

fn sent(guard: &mut Guard, ssrc: u32, sequence: u16) -> Vec<u8> {
    guard.protect(Kind::Rtp, &packet(ssrc, sequence)).unwrap().to_vec()
}

/// Whether it is let in, as it was.
fn takes(guard: &mut Guard, datagram: &[u8], packet: &[u8]) -> Result<(), Rejected> {
    guard.unprotect(Kind::Rtp, datagram).map(|read| assert_eq!(read, packet))
}

/// With the roll-over counter at 1 from the third packet on.
const PROTECTED: [&str; 4] = [
    "800ffffedecafbadcafebabedae8b0de83c8b04e96f24a2425bce81efd162555e37f4389d3a4",
    "800fffffdecafbadcafebabef36e96fc87ac01758cea5f94ba171db81149c9c49efa93c1b483",
    "800f0000decafbadcafebabe24ecf92d9c97bf2ac679b796fdfd365a267beecdc56456590e62",
    "800f0001decafbadcafebabeb6f1f0a458a238ac3d2f55ac6566b25c051f89495037505c44c7",
];
/// A contributing source, an extension and padding.
const EXTENDED: [&str; 2] = [
    "b180000200000005cafebabe11111111bede000199999999010203000003",
    "b180000200000005cafebabe11111111bede000199999999c976daed97df0dc73dbfb73e896ae8ec",
];
/// The first one that libsrtp sends has index 1.
const CONTROL: [&str; 2] = [
    "81c8000bcafebabe7128035be487b9bdbef89041f977a5a880000001993e08cd54d6c1230798",
    "81c8000bcafebabe621934ea9f788cdad295b3a512d8bc5f80000002c8dc9c552c823658cdac",
];

#[test]
fn packets_are_those_of_another_implementation() {
    for suite in Suite::ALL {
        let ours = crypto(suite, document());
        let (mut sender, mut receiver) = (guard(&ours, &ours), guard(&ours, &ours));
        let cut = |text: &str| octets(&text[..text.len() - 2 * (10 - suite.tag_octets())]);
        for (protected, sequence) in PROTECTED.into_iter().zip([0xfffe, 0xffff, 0, 1]) {
            let head =
                Packet { marker: false, payload_type: 15, sequence, timestamp: 0xdeca_fbad, ssrc: 0xcafe_babe, payload: &[] }.header();
            let plain = [&head[..], &[0xab; 16]].concat();
            assert_eq!(sender.protect(Kind::Rtp, &plain), Some(&cut(protected)[..]), "{suite:?} {sequence}");
            takes(&mut receiver, &cut(protected), &plain).unwrap();
        }
        let [plain, protected] = EXTENDED;
        assert_eq!(sender.protect(Kind::Rtp, &octets(plain)), Some(&cut(protected)[..]), "{suite:?}");
        takes(&mut receiver, &cut(protected), &octets(plain)).unwrap();
        let report = octets(&format!("81c8000bcafebabe{}", "ab".repeat(16)));
        for protected in CONTROL {
            assert_eq!(receiver.unprotect(Kind::Rtcp, &octets(protected)), Ok(&report[..]), "{suite:?}");
        }
        let ours: Vec<Vec<u8>> = (0..3).map(|_| sender.protect(Kind::Rtcp, &report).unwrap().to_vec()).collect();
        assert_eq!([&ours[1], &ours[2]], [&octets(CONTROL[0]), &octets(CONTROL[1])], "{suite:?}");
        assert_eq!(ours[0][24..28], [0x80, 0, 0, 0], "the first index is 0 (RFC 3711 3.4)");
    }
}

/// RFC 3711 3.4: an RTCP packet says itself whether it is encrypted; its tag is right all the same.
#[test]
fn a_report_in_the_clear_is_read_when_its_tag_is_right() {
    let key = other(2);
    let mut guard = guard(&crypto(Suite::Tag80, other(1)), &crypto(Suite::Tag80, key.clone()));
    let report = [0x80, 201, 0, 1, 0, 0, 0, 7, 1, 2, 3, 4];
    let session = session::Session::control(&key).unwrap();
    let plain = |index: u32| {
        let octets = [&report[..], &index.to_be_bytes()].concat();
        [&octets[..], &session.tag(&octets, &[])[..CONTROL_TAG]].concat()
    };
    assert_eq!(guard.unprotect(Kind::Rtcp, &plain(5)), Ok(&report[..]));
    assert_eq!(guard.unprotect(Kind::Rtcp, &plain(5)), Err(Rejected::Replayed));
    let mut encrypted = plain(6);
    encrypted[12] |= 0x80;
    assert_eq!(guard.unprotect(Kind::Rtcp, &encrypted), Err(Rejected::Unauthentic), "E is under the tag");
}

/// RFC 3711 3.3.2: a packet is taken once, also out of order, as long as it is among the last 64.
#[test]
fn a_packet_is_taken_once() {
    let [mut one, mut two] = pair(Suite::Tag80);
    let all: Vec<Vec<u8>> = (0..100).map(|sequence| sent(&mut one, 7, sequence)).collect();
    for (sequence, expected) in [
        (0, Ok(())),
        (0, Err(Rejected::Replayed)),
        (2, Ok(())),
        (1, Ok(())),
        (1, Err(Rejected::Replayed)),
        (70, Ok(())),
        (6, Err(Rejected::Replayed)),
        (7, Ok(())),
        (7, Err(Rejected::Replayed)),
        (2, Err(Rejected::Replayed)),
        (99, Ok(())),
        (70, Err(Rejected::Replayed)),
    ] {
        assert_eq!(takes(&mut two, &all[usize::from(sequence)], &packet(7, sequence)), expected, "{sequence}");
    }
    let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
    let control: Vec<Vec<u8>> = (0..70).map(|_| one.protect(Kind::Rtcp, &report).unwrap().to_vec()).collect();
    for (index, taken) in [(3, true), (3, false), (0, true), (69, true), (0, false), (68, true), (5, false)] {
        assert_eq!(two.unprotect(Kind::Rtcp, &control[index]).is_ok(), taken, "{index}");
    }
}

/// Any bit that is changed on the way, anything that is cut, another key, no protection at all; and what was refused is no replay when it comes
/// as it was sent.
#[test]
fn what_the_far_end_did_not_make_is_refused() {
    for suite in Suite::ALL {
        let [mut one, mut two] = pair(suite);
        let good = sent(&mut one, 7, 5);
        let report = one.protect(Kind::Rtcp, &[0x80, 201, 0, 1, 0, 0, 0, 7]).unwrap().to_vec();
        for (kind, good) in [(Kind::Rtp, &good), (Kind::Rtcp, &report)] {
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(two.unprotect(kind, &bad), Err(Rejected::Unauthentic), "{suite:?} {kind:?} {bit}");
            }
            for length in 0..good.len() {
                assert!(two.unprotect(kind, &good[..length]).is_err(), "{suite:?} {kind:?} {length}");
            }
            assert!(two.unprotect(kind, &[&good[..], &[0]].concat()).is_err() && two.unprotect(kind, &[0x80; 4_000]).is_err());
        }
        assert!(takes(&mut two, &packet(7, 5), &[]).is_err(), "without protection");
        let stranger = crypto(suite, other(3));
        assert!(takes(&mut two, &sent(&mut guard(&stranger, &stranger), 7, 5), &[]).is_err());
        takes(&mut two, &good, &packet(7, 5)).unwrap();
        assert!(two.unprotect(Kind::Rtcp, &report).is_ok());
    }
}

/// RFC 3711 3.3.1: the roll-over counter is guessed right with packets lost, late and doubled around each wrap, twice.
#[test]
fn the_index_is_found_across_wraps_with_loss() {
    let [mut one, mut two] = pair(Suite::Tag32);
    let mut rng = crate::proto::base::Rng::new(1);
    let mut late: Option<(u16, Vec<u8>)> = None;
    let (mut taken, mut lost) = (0, 0);
    for number in 0x7ff0..0x2_1000u32 {
        let sequence = number as u16;
        let near_wrap = !(0x100..0xff00).contains(&sequence);
        if !near_wrap && number % 500 != 0 {
            continue;
        }
        let protected = sent(&mut one, 7, sequence);
        if rng.chance(200_000) {
            lost += 1;
            continue;
        }
        // Late by what the window remembers at the most.
        let kept = late.take().filter(|(before, _)| sequence.wrapping_sub(*before) < 60);
        if let Some((before, datagram)) = kept {
            takes(&mut two, &protected, &packet(7, sequence)).unwrap();
            takes(&mut two, &datagram, &packet(7, before)).unwrap();
            assert_eq!(takes(&mut two, &datagram, &[]), Err(Rejected::Replayed));
            taken += 2;
        } else if rng.chance(200_000) {
            late = Some((sequence, protected));
        } else {
            takes(&mut two, &protected, &packet(7, sequence)).unwrap();
            taken += 1;
        }
    }
    assert!(taken > 800 && lost > 200, "{taken} {lost}");
}

/// A far end may go on as another source; of the one before nothing is taken again.
#[test]
fn sources_change_and_replays_of_the_old_one_stay_refused() {
    let [mut one, mut two] = pair(Suite::Tag80);
    let old = sent(&mut one, 7, 1);
    takes(&mut two, &old, &packet(7, 1)).unwrap();
    let new = sent(&mut one, 8, 40_000);
    takes(&mut two, &new, &packet(8, 40_000)).unwrap();
    assert_eq!((takes(&mut two, &old, &[]), takes(&mut two, &new, &[])), (Err(Rejected::Replayed), Err(Rejected::Replayed)));
    // As many as are told apart; beyond that none more is taken, so that none need be forgotten.
    let taken = (9..100).filter(|ssrc| takes(&mut two, &sent(&mut one, *ssrc, 1), &packet(*ssrc, 1)).is_ok()).count();
    assert_eq!(taken, 30);
    takes(&mut two, &sent(&mut one, 8, 40_001), &packet(8, 40_001)).unwrap();
}

/// RFC 4568 7.1.4: with another key all begins anew, and the same one again changes nothing.
#[test]
fn a_new_key_begins_anew_and_the_same_one_goes_on() {
    let [one, two, three] = [1, 2, 3].map(|octet| crypto(Suite::Tag80, other(octet)));
    let (mut a, mut b) = (guard(&one, &two), guard(&two, &one));
    let first = sent(&mut a, 7, 0xffff);
    takes(&mut b, &first, &packet(7, 0xffff)).unwrap();
    let wrapped = sent(&mut a, 7, 0);
    takes(&mut b, &wrapped, &packet(7, 0)).unwrap();
    let same = MediaKeys { local: Some(one.clone()), remote: Some(two.clone()) };
    a.change(&same);
    b.change(&MediaKeys { local: Some(two.clone()), remote: Some(one.clone()) });
    assert_eq!(takes(&mut b, &wrapped, &[]), Err(Rejected::Replayed));
    takes(&mut b, &sent(&mut a, 7, 1), &packet(7, 1)).unwrap();
    // Both ends have the new key: the counter is at zero.
    a.change(&MediaKeys { local: Some(three.clone()), remote: Some(two.clone()) });
    assert_eq!(takes(&mut b, &sent(&mut a, 7, 2), &[]), Err(Rejected::Unauthentic), "b does not know it yet");
    b.change(&MediaKeys { local: Some(two.clone()), remote: Some(three.clone()) });
    let renewed = sent(&mut a, 7, 3);
    takes(&mut b, &renewed, &packet(7, 3)).unwrap();
    assert_eq!(takes(&mut b, &wrapped, &[]), Err(Rejected::Unauthentic), "of the key before");
    // A far end that counts on (RFC 3711 3.3.1): one that has had the key all along, and wrapped once.
    let mut keeper = guard(&crypto(Suite::Tag80, other(4)), &two);
    sent(&mut keeper, 9, 0xffff);
    let mut c = guard(&two, &one);
    let mut past = guard(&one, &two);
    for sequence in [0xffff, 0] {
        takes(&mut c, &sent(&mut past, 9, sequence), &packet(9, sequence)).unwrap();
    }
    c.change(&MediaKeys { local: Some(two), remote: Some(crypto(Suite::Tag80, other(4))) });
    takes(&mut c, &sent(&mut keeper, 9, 1), &packet(9, 1)).unwrap();
}

/// A key is good for as many packets as it is said to be, and nobody is heard before their key is known.
#[test]
fn without_a_key_or_beyond_its_lifetime_nothing_is_taken() {
    let [one, two] = [1, 2].map(|octet| crypto(Suite::Tag80, other(octet)));
    let mut a = guard(&one, &two);
    let mut b = Guard::new(&MediaKeys { local: Some(two.clone()), remote: None }).unwrap();
    assert_eq!(takes(&mut b, &sent(&mut a, 7, 1), &[]), Err(Rejected::KeyUnknown));
    b.change(&MediaKeys { local: Some(two), remote: Some(Crypto { lifetime: 2, ..one }) });
    takes(&mut b, &sent(&mut a, 7, 2), &packet(7, 2)).unwrap();
    takes(&mut b, &sent(&mut a, 7, 3), &packet(7, 3)).unwrap();
    assert_eq!(takes(&mut b, &sent(&mut a, 7, 4), &[]), Err(Rejected::Unauthentic));
    assert!(Guard::new(&MediaKeys::default()).is_none());
    assert_eq!(a.protect(Kind::Rtp, &packet(7, 4)), None, "never twice under one index");
    assert_eq!(a.protect(Kind::Rtp, &[0x80; 2_000]), None);
}
