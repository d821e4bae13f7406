//! What system calls cost a card that has a socket for each call: a turn of a T3 of calls sends and receives some 70 packets in a
//! millisecond, no two of them on one socket (`cargo bench --bench sockets`). recvmmsg and sendmmsg take many packets of one socket, and
//! UDP_SEGMENT many to one address: neither has anything to batch here. io_uring has: all sockets in one call.
//!
//! Both ends of each socket are in this thread; what a send costs has the way through loopback in it, the same for all.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use io_uring::{IoUring, opcode, types::Fd};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use tollgate::host::transport::burst::Burst;

/// Calls of a T3, and packets of a turn of one millisecond: 672 calls, 50 packets a second each way.
const CALLS: usize = 672;
const PACKETS: usize = 70;
const PACKET: [u8; 172] = [0x80; 172];

/// Sockets of one end, and where each of the other end is.
struct Side {
    sockets: Vec<UdpSocket>,
    others: Vec<SocketAddr>,
}

fn sides() -> io::Result<[Side; 2]> {
    let bind = || -> io::Result<Vec<UdpSocket>> {
        let socket = |_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        (0..CALLS).map(socket).collect()
    };
    let addresses = |sockets: &[UdpSocket]| sockets.iter().map(|socket| socket.local_addr().expect("bound")).collect();
    let (one, two) = (bind()?, bind()?);
    let (of_one, of_two) = (addresses(&one), addresses(&two));
    Ok([Side { sockets: one, others: of_two }, Side { sockets: two, others: of_one }])
}

/// The calls of a turn.
fn turn(number: usize) -> impl Iterator<Item = usize> {
    (0..PACKETS).map(move |n| (number * PACKETS + n) % CALLS)
}

/// As the card of a core does: a send for each packet; sockets that are ready by epoll, and a recvmmsg for each.
fn calls_each(near: &Side, far: &Side, poll: &mut Poll, events: &mut Events, burst: &mut Burst, number: usize) -> usize {
    for call in turn(number) {
        let _ = near.sockets[call].send_to(&PACKET, near.others[call]);
    }
    poll.poll(events, Some(Duration::ZERO)).expect("epoll");
    events.iter().map(|event| burst.receive(far.sockets[event.token().0].as_fd()).unwrap_or(0)).sum()
}

/// All sends in one call of io_uring, and all receives in another.
fn one_call(near: &Side, far: &Side, ring: &mut IoUring, room: &mut [[u8; 256]], number: usize) -> usize {
    for call in turn(number) {
        let send = opcode::Send::new(Fd(near.sockets[call].as_raw_fd()), PACKET.as_ptr(), PACKET.len() as u32).build();
        // SAFETY: the octets are constant, and the socket is open until the completion was taken below.
        unsafe { ring.submission().push(&send) }.expect("room");
    }
    ring.submit_and_wait(PACKETS).expect("io_uring");
    ring.completion().for_each(drop);
    for (call, room) in turn(number).zip(room) {
        let receive = opcode::Recv::new(Fd(far.sockets[call].as_raw_fd()), room.as_mut_ptr(), room.len() as u32).build();
        // SAFETY: the room is borrowed by this call, which takes the completion; the socket is open as long.
        unsafe { ring.submission().push(&receive) }.expect("room");
    }
    ring.submit_and_wait(PACKETS).expect("io_uring");
    ring.completion().filter(|done| done.result() == PACKET.len() as i32).count()
}

fn sockets(c: &mut Criterion) {
    let mut group = c.benchmark_group("sockets");
    group.throughput(Throughput::Elements(PACKETS as u64));
    let [near, far] = match sides() {
        Ok(sides) => sides,
        // `ulimit -n` is often 1024.
        Err(error) => return println!("skipped: {} sockets: {error}", 2 * CALLS),
    };
    let mut number = 0;
    {
        let mut poll = Poll::new().expect("epoll");
        for (place, socket) in far.sockets.iter().enumerate() {
            poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(place), Interest::READABLE).expect("epoll");
        }
        let (mut events, mut burst) = (Events::with_capacity(1024), Burst::new(256));
        group.bench_function(BenchmarkId::new("70 packets", "a call for each"), |b| {
            b.iter(|| {
                number += 1;
                assert_eq!(calls_each(&near, &far, &mut poll, &mut events, &mut burst, number), PACKETS);
            });
        });
    }
    // The same, with a receive by itself in place of epoll and recvmmsg.
    group.bench_function(BenchmarkId::new("70 packets", "a call for each, received one by one"), |b| {
        b.iter(|| {
            number += 1;
            let mut octets = [0; 256];
            turn(number).for_each(|call| drop(near.sockets[call].send_to(&PACKET, near.others[call])));
            assert_eq!(turn(number).filter(|&call| far.sockets[call].recv(&mut octets).is_ok()).count(), PACKETS);
        });
    });
    for (side, socket) in near.sockets.iter().enumerate() {
        socket.connect(near.others[side]).expect("connected");
    }
    match IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(256) {
        Err(error) => println!("skipped: io_uring: {error}"),
        Ok(mut ring) => {
            let mut room = vec![[0; 256]; PACKETS];
            group.bench_function(BenchmarkId::new("70 packets", "io_uring, one call for all"), |b| {
                b.iter(|| {
                    number += 1;
                    assert_eq!(one_call(&near, &far, &mut ring, &mut room, number), PACKETS);
                });
            });
        }
    }
    // What a connected socket saves besides.
    group.bench_function(BenchmarkId::new("70 packets", "a call for each, received one by one, connected"), |b| {
        b.iter(|| {
            number += 1;
            let mut octets = [0; 256];
            turn(number).for_each(|call| drop(near.sockets[call].send(&PACKET)));
            assert_eq!(turn(number).filter(|&call| far.sockets[call].recv(&mut octets).is_ok()).count(), PACKETS);
        });
    });
}

criterion_group!(benches, sockets);
criterion_main!(benches);
