//! Connection modes (RFC 3435 2.3.1, 3.2.2.6): what the circuit and each connection get, told apart by constant levels that add up.

use super::*;
use std::collections::BTreeMap;

/// The circuit and the far ends of connections 0, 1 and 2.
const LEVELS: [i32; 4] = [1_000, 2_100, 4_200, 8_800];
const CIRCUIT: usize = 0;
const A: usize = 1;
const B: usize = 2;
const C: usize = 3;

/// What a connection sends, or the circuit gets: which of the levels; `None`: nothing at all.
type Mix = Option<Vec<usize>>;

/// Which levels add up to an octet.
fn parts(octet: u8) -> Vec<usize> {
    let value = i32::from(Law::Mu.decode(octet));
    let sum = |set: u32| (0..4).filter(|n| set >> n & 1 == 1).map(|n| LEVELS[n]).sum::<i32>();
    let nearest = (0..16).min_by_key(|&set| (sum(set) - value).abs()).unwrap();
    assert!((sum(nearest) - value).abs() < 350, "{value} is no sum");
    (0..4).filter(|n| nearest >> n & 1 == 1).collect()
}

/// Feeds a DS0 whose connections are in these modes for 200 ms.
fn outcome(modes: &[Mode]) -> (Mix, Vec<Mix>) {
    let mut ds0 = Ds0::new(Settings::default());
    for (n, &mode) in modes.iter().enumerate() {
        assert!(ds0.open(Time::ZERO, n as u32, &media(mode, n as u32), n as u64));
    }
    let mut sent: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut line = 0;
    for step in 0..200 {
        let now = Time::from_millis(step);
        if step % 20 == 0 {
            for n in 0..modes.len() {
                let head = rtp::Packet {
                    marker: false,
                    payload_type: 0,
                    sequence: step as u16 / 20,
                    timestamp: step as u32 * 8,
                    ssrc: n as u32,
                    payload: &[],
                };
                let octets = [&head.header()[..], &[Law::Mu.encode(LEVELS[n + 1]); 160]].concat();
                ds0.packet(now, n as u32, remote(n as u32), Kind::Rtp, &octets);
            }
        }
        let mut octets = [Law::Mu.encode(LEVELS[CIRCUIT]); 8];
        ds0.exchange(now, &mut octets, &mut |connection, to, kind, packet| {
            assert_eq!(to, remote(connection));
            if kind == Kind::Rtp {
                sent.insert(connection, packet.to_vec());
            }
        });
        line = octets[7];
    }
    let mix = |n: u32| sent.get(&n).map(|packet| parts(*packet.last().unwrap()));
    (Some(parts(line)), (0..modes.len() as u32).map(mix).collect())
}

fn is(mode: Mode, (circuit, one, two): (&[usize], &[usize], &[usize]), with: Mode) {
    let expected = |parts: &[usize]| (!parts.is_empty()).then(|| parts.to_vec());
    let (line, sent) = outcome(&[with, mode]);
    assert_eq!((line, sent), (Some(circuit.to_vec()), vec![expected(one), expected(two)]), "A {with:?}, B {mode:?}");
    // The table is symmetric.
    let swap = |parts: &[usize]| {
        let mut parts: Vec<usize> = parts.iter().map(|&part| [CIRCUIT, B, A, C][part]).collect();
        parts.sort_unstable();
        parts
    };
    let (line, sent) = outcome(&[mode, with]);
    let expected = |parts: &[usize]| (!parts.is_empty()).then(|| swap(parts));
    assert_eq!((line, sent), (Some(swap(circuit)), vec![expected(two), expected(one)]), "A {mode:?}, B {with:?}");
}

/// G-MOD-06: the 21 cells of the table of RFC 3435 appendix D; circuit, then Ao, then Bo.
#[test]
fn two_connections_interact_as_in_appendix_d() {
    use Mode::{Conference, Inactive, NetworkLoop, RecvOnly, SendOnly, SendRecv};
    const H: usize = CIRCUIT;
    is(SendOnly, (&[], &[H], &[H]), SendOnly);
    is(SendOnly, (&[A], &[], &[H]), RecvOnly);
    is(SendOnly, (&[A], &[H], &[H]), SendRecv);
    is(SendOnly, (&[A], &[H], &[H]), Conference);
    is(SendOnly, (&[], &[], &[H]), Inactive);
    is(SendOnly, (&[], &[A], &[H]), NetworkLoop);
    is(RecvOnly, (&[A, B], &[], &[]), RecvOnly);
    is(RecvOnly, (&[A, B], &[H], &[]), SendRecv);
    is(RecvOnly, (&[A, B], &[H], &[]), Conference);
    is(RecvOnly, (&[B], &[], &[]), Inactive);
    is(RecvOnly, (&[B], &[A], &[]), NetworkLoop);
    is(SendRecv, (&[A, B], &[H], &[H]), SendRecv);
    is(SendRecv, (&[A, B], &[H], &[H]), Conference);
    is(SendRecv, (&[B], &[], &[H]), Inactive);
    is(SendRecv, (&[B], &[A], &[H]), NetworkLoop);
    is(Conference, (&[A, B], &[H, B], &[H, A]), Conference);
    is(Conference, (&[B], &[], &[H]), Inactive);
    is(Conference, (&[B], &[A], &[H]), NetworkLoop);
    is(Inactive, (&[], &[], &[]), Inactive);
    is(Inactive, (&[], &[A], &[]), NetworkLoop);
    is(NetworkLoop, (&[], &[A], &[B]), NetworkLoop);
}

/// G-MOD-02, G-MOD-03, COT-08: a loop suspends what the circuit has with other connections, not what these have with each other.
#[test]
fn a_loop_leaves_the_conference_alone() {
    let (line, sent) = outcome(&[Mode::Conference, Mode::Conference, Mode::Loopback]);
    assert_eq!((line, sent), (Some(vec![CIRCUIT]), vec![Some(vec![B]), Some(vec![A]), None]));
    let (line, sent) = outcome(&[Mode::SendRecv, Mode::RecvOnly, Mode::Loopback]);
    assert_eq!((line, sent), (Some(vec![CIRCUIT]), vec![None, None, None]));
}

/// Nobody hears himself, and everybody hears all the others.
#[test]
fn three_in_a_conference() {
    let (line, sent) = outcome(&[Mode::Conference; 3]);
    assert_eq!(line, Some(vec![A, B, C]));
    assert_eq!(sent, vec![Some(vec![CIRCUIT, B, C]), Some(vec![CIRCUIT, A, C]), Some(vec![CIRCUIT, A, B])]);
}

/// G-MOD-05, G-DLX-04, COT-09, COT-10: the loop lasts as long as one connection asks for it.
#[test]
fn a_loop_ends_with_the_last_connection_that_asks_for_it() {
    let mut ds0 = Ds0::new(Settings::default());
    for n in 0..2 {
        ds0.open(Time::ZERO, n, &media(Mode::Loopback, n), 1);
    }
    let looped = |ds0: &mut Ds0| {
        let mut octets = [0x42; 8];
        ds0.exchange(Time::ZERO, &mut octets, &mut |_, _, _, _| panic!("nothing is sent"));
        octets == [0x42; 8]
    };
    assert!(looped(&mut ds0));
    ds0.close(Time::ZERO, 0, &mut |_, _, _, _| {});
    assert!(looped(&mut ds0));
    ds0.modify(Time::ZERO, 1, &media(Mode::Inactive, 1));
    assert!(!looped(&mut ds0));
}
