//! The contract of `Transport`, run on every transport there is and on the deferring one.
//!
//! Each check opens the transport on a thread of its own choice: the test's. What a machine does not allow is skipped with a printed reason.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use tollgate::config::{XdpCopy, XdpMode};
use tollgate::host::clock::Clock;
use tollgate::host::frame::{FrameLayout, FrameTable, HEADROOM};
use tollgate::host::ring;
use tollgate::host::transport::xdp::{Bypass, BypassSettings, SourceList, umem};
use tollgate::host::transport::{BATCH, Kind, SocketSettings, Transport, TransportSettings, Waker, bind, wake};
use tollgate::proto::base::{FrameRef, Time};

use crate::deferred::Deferred;
use crate::pair::{FAR, Pair, complete_checksums};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// A transport under test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Registered(Kind),
    /// io_uring with a submission thread of the kernel.
    Submitting,
    Deferred,
    /// AF_XDP over a veth pair, the program attached like this.
    Bypass(XdpMode),
}

thread_local! {
    /// Where this thread runs a transport that needs more than loopback, and its clients on the other side.
    static PAIR: RefCell<Option<Pair>> = const { RefCell::new(None) };
}

fn subjects() -> Vec<Subject> {
    let mut subjects = vec![Subject::Deferred];
    for &kind in Kind::ALL {
        let pair = || std::thread::spawn(|| Pair::new("1").map(drop)).join().expect("no panic");
        match kind.probe().and_then(|()| if kind == Kind::Xdp { pair() } else { Ok(()) }) {
            Ok(()) if kind == Kind::Xdp => subjects.extend([XdpMode::Native, XdpMode::Generic].map(Subject::Bypass)),
            Ok(()) => subjects.push(Subject::Registered(kind)),
            Err(reason) => eprintln!("skipped: transport {}: {reason}", kind.name()),
        }
    }
    if Kind::Uring.probe().is_ok() {
        subjects.push(Subject::Submitting);
    }
    subjects
}

/// Those that receive from sockets alone: what lies in a socket waits for a frame, what comes by AF_XDP needs one at once.
fn socket_subjects() -> impl Iterator<Item = Subject> {
    subjects().into_iter().filter(|subject| !matches!(subject, Subject::Bypass(_)))
}

/// Sizes for one check.
#[derive(Clone, Copy)]
struct Sizes {
    frames: u32,
    frame_size: u32,
    slots: u32,
    slot_size: u32,
    provided: u32,
    coalesce: bool,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { frames: 128, frame_size: 4608, slots: 64, slot_size: 4096, provided: 64, coalesce: true }
    }
}

/// A transport with its surroundings: the gateway's side of a check.
struct Bed {
    transport: Box<dyn Transport>,
    _bypass: Option<Bypass>,
    table: Arc<FrameTable>,
    addresses: Vec<SocketAddr>,
    clock: Clock,
    subject: Subject,
}

impl Bed {
    fn new(subject: Subject, sizes: Sizes, listen: &[&str]) -> Bed {
        let mut listen = listen.to_vec();
        if let Subject::Bypass(mode) = subject {
            let pair = Pair::new("1").expect("it could be made before");
            if mode == XdpMode::Generic {
                // Else all goes by the kernel.
                pair.within(|| complete_checksums(FAR));
            }
            PAIR.set(Some(pair));
            listen.iter_mut().for_each(|text| *text = if text.starts_with('[') { "[fd00::4]:0" } else { "10.0.0.4:0" });
        }
        let addresses: Vec<SocketAddr> = listen.iter().map(|text| text.parse().expect("an address")).collect();
        let sockets = bind(&addresses, &SocketSettings::default()).expect("loopback can be bound");
        Bed::over(subject, sizes, sockets)
    }

    fn over(subject: Subject, sizes: Sizes, sockets: Vec<UdpSocket>) -> Bed {
        let addresses: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_addr().expect("bound")).collect();
        let bypass = match subject {
            Subject::Bypass(mode) => Some(Bypass::start(&bypass_settings(mode, &addresses)).expect("the probe succeeded")),
            _ => None,
        };
        let chunks = umem::layout(sizes.frames, sizes.slots, sizes.slot_size);
        let layout = FrameLayout { frames: sizes.frames, size: sizes.frame_size };
        let (table, mut pools) =
            FrameTable::with_chunks(&[layout], if bypass.is_some() { std::slice::from_ref(&chunks) } else { &[] }).expect("frames");
        let (pool, clock) = (pools.remove(0), Clock::new());
        let (_, sleeper) = wake::pair().expect("an event");
        let seat = bypass.as_ref().and_then(|bypass| bypass.seat(0));
        let settings = TransportSettings {
            send_slots: sizes.slots,
            slot_size: sizes.slot_size,
            provided_frames: sizes.provided,
            coalesce: sizes.coalesce,
            sqpoll_cpu: (subject == Subject::Submitting).then_some(0),
            napi_busy_poll: None,
            bypass: seat,
        };
        let transport: Box<dyn Transport> = match subject {
            Subject::Registered(kind) => kind.open(sockets, pool, sleeper, clock, &settings).expect("the probe succeeded"),
            Subject::Submitting => Kind::Uring.open(sockets, pool, sleeper, clock, &settings).expect("the probe succeeded"),
            Subject::Bypass(_) => Kind::Xdp.open(sockets, pool, sleeper, clock, &settings).expect("the probe succeeded"),
            Subject::Deferred => Box::new(Deferred::open(sockets, pool, sleeper, clock, &settings)),
        };
        Bed { transport, _bypass: bypass, table, addresses, clock, subject }
    }

    /// Receives until `count` frames are there; fails when it takes too long.
    fn receive(&mut self, count: usize) -> Vec<FrameRef> {
        let mut frames = Vec::new();
        let end = self.clock.now() + PATIENCE;
        while frames.len() < count {
            let now = self.transport.receive(count - frames.len(), &mut frames);
            assert!(now < end, "{:?}: {} of {count} datagrams, {:?}", self.subject, frames.len(), self.transport.stats());
            self.transport.flush();
        }
        frames
    }

    fn text(&self, frame: FrameRef) -> Vec<u8> {
        self.table.read(frame).expect("held").to_vec()
    }

    /// Answers a frame with its own bytes and releases it; `false` when no slot is free.
    fn echo(&mut self, frame: FrameRef) -> bool {
        let Some(slot) = self.transport.reserve() else { return false };
        let (len, to, local) = {
            let datagram = self.table.read(frame).expect("held");
            self.transport.buffer(&slot)[..datagram.len()].copy_from_slice(&datagram);
            (datagram.len(), datagram.meta().from, datagram.meta().local)
        };
        self.transport.send(slot, len, to, local);
        self.transport.release(frame);
        true
    }

    /// Waits until everything is sent.
    fn settle(&mut self, slots: usize) {
        let end = self.clock.now() + PATIENCE;
        while self.transport.free_slots() < slots {
            assert!(self.clock.now() < end, "{:?}: {} of {slots} slots are free", self.subject, self.transport.free_slots());
            self.transport.flush();
        }
    }

    fn no_faults(&mut self) {
        let stats = self.transport.stats();
        assert_eq!((stats.release_refused, stats.send_errors, stats.kernel_drops), (0, 0, 0), "{:?}: {stats:?}", self.subject);
    }
}

fn bypass_settings(mode: XdpMode, listen: &[SocketAddr]) -> BypassSettings {
    let addresses = ["10.0.0.6", "fd00::6"].map(|text| text.parse().expect("an address"));
    BypassSettings {
        listen: listen.to_vec(),
        interface: None,
        queues: None,
        mode,
        copy: XdpCopy::Auto,
        need_wakeup: true,
        busy_poll: None,
        bypass_firewall: false,
        traffic_class: 0,
        sources: SourceList { anybody: false, addresses: addresses.into() },
        cores: 1,
    }
}

/// The other side: a plain socket.
fn client(to: SocketAddr) -> UdpSocket {
    let far = !to.ip().is_loopback();
    let any: SocketAddr = match (to.is_ipv4(), far) {
        (true, false) => "127.0.0.1:0",
        (false, false) => "[::1]:0",
        (true, true) => "10.0.0.6:0",
        (false, true) => "[fd00::6]:0",
    }
    .parse()
    .expect("an address");
    let bind = || UdpSocket::bind(any).expect("loopback can be bound");
    let socket = PAIR.with_borrow(|pair| if far { pair.as_ref().expect("a far side").within(bind) } else { bind() });
    socket.connect(to).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

fn put(socket: &UdpSocket, bytes: &[u8]) {
    assert_eq!(socket.send(bytes).expect("sent"), bytes.len());
}

fn answer(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 70_000];
    // Closing another test's io_uring may interrupt this thread.
    let len = loop {
        match socket.recv(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => break result.expect("an answer in time"),
        }
    };
    bytes.truncate(len);
    bytes
}

fn ipv6_works() -> bool {
    let works = UdpSocket::bind("[::1]:0").is_ok();
    if !works {
        eprintln!("skipped: IPv6: ::1 cannot be bound");
    }
    works
}

#[test]
fn echoes_in_order_on_every_socket() {
    // Packets that wait for a busy kernel wait on the CPU they were sent from: a sender that moves to another may be overtaken by itself.
    let here = core_affinity::get_core_ids().and_then(|cpus| cpus.first().copied()).expect("a CPU");
    assert!(core_affinity::set_for_current(here));
    for subject in subjects() {
        let listen: &[&str] = if ipv6_works() { &["127.0.0.1:0", "[::1]:0"] } else { &["127.0.0.1:0", "127.0.0.1:0"] };
        let mut bed = Bed::new(subject, Sizes::default(), listen);
        let clients: Vec<UdpSocket> = bed.addresses.iter().map(|&to| client(to)).collect();
        for round in 0..20 {
            for (line, client) in clients.iter().enumerate() {
                (0..30).for_each(|n| put(client, format!("{line} {round} {n}").as_bytes()));
            }
            for _ in 0..2 {
                for frame in bed.receive(30) {
                    let (from, local) = {
                        let datagram = bed.table.read(frame).expect("held");
                        (datagram.meta().from, datagram.meta().local)
                    };
                    assert_eq!(from, clients[usize::from(local)].local_addr().expect("bound"), "{subject:?}");
                    assert!(bed.text(frame).starts_with(format!("{local} ").as_bytes()), "{subject:?}");
                    assert!(bed.echo(frame), "{subject:?}: a slot for every received datagram");
                }
                bed.transport.flush();
            }
            for (line, client) in clients.iter().enumerate() {
                (0..30).for_each(|n| assert_eq!(answer(client), format!("{line} {round} {n}").as_bytes(), "{subject:?}"));
            }
        }
        bed.settle(64);
        assert_eq!((bed.transport.stats().received, bed.transport.stats().sent), (1200, 1200), "{subject:?}");
        bed.no_faults();
    }
}

#[test]
fn what_is_longer_than_a_frame_is_dropped_and_counted_and_nothing_else() {
    for subject in socket_subjects() {
        // The limit is exact, though frames lie 64 bytes apart.
        let sizes = Sizes { frame_size: 1001, ..Sizes::default() };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let room = 1001 - HEADROOM;
        for len in [room, room + 1, 0, 9000, 1] {
            put(&client, &vec![7; len]);
        }
        let lengths: Vec<usize> = bed.receive(3).into_iter().map(|frame| bed.text(frame).len()).collect();
        assert_eq!(lengths, [room, 0, 1], "{subject:?}: an empty datagram is one too");
        assert_eq!(bed.transport.stats().truncated, 2, "{subject:?}");
        put(&client, b"on");
        let frame = bed.receive(1)[0];
        assert_eq!(bed.text(frame), b"on", "{subject:?}");
    }
}

#[test]
fn the_largest_datagram_passes_both_ways() {
    for subject in subjects() {
        let sizes = Sizes { frames: 8, frame_size: 65_507 + HEADROOM as u32, slots: 4, slot_size: 65_507, provided: 8, coalesce: true };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let sent: Vec<u8> = (0..65_507u32).map(|i| (i * 7 % 251) as u8).collect();
        put(&client, &sent);
        let frame = bed.receive(1)[0];
        assert!(bed.text(frame) == sent, "{subject:?}");
        assert!(bed.echo(frame));
        bed.transport.flush();
        assert!(answer(&client) == sent, "{subject:?}");
    }
}

#[test]
fn held_frames_stay_unchanged_while_others_pass() {
    for subject in subjects() {
        let sizes = Sizes { frames: 24, provided: 16, ..Sizes::default() };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        (0..8).for_each(|n| put(&client, format!("held {n}").as_bytes()));
        let held = bed.receive(8);
        for n in 0..200 {
            put(&client, format!("passing {n}").as_bytes());
            let frame = bed.receive(1)[0];
            assert_eq!(bed.text(frame), format!("passing {n}").as_bytes(), "{subject:?}");
            assert!(!held.contains(&frame));
            bed.transport.release(frame);
        }
        for (n, &frame) in held.iter().enumerate() {
            assert_eq!(bed.text(frame), format!("held {n}").as_bytes(), "{subject:?}");
            bed.transport.release(frame);
        }
        bed.no_faults();
        bed.transport.release(held[0]);
        assert_eq!(bed.transport.stats().release_refused, 1, "{subject:?}: released twice");
    }
}

#[test]
fn receiving_pauses_without_frames_and_goes_on_with_them() {
    for subject in socket_subjects() {
        let sizes = Sizes { frames: 8, provided: 8, ..Sizes::default() };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        (0..100u8).for_each(|n| put(&client, &[n]));
        let mut held: VecDeque<FrameRef> = bed.receive(8).into();
        for _ in 0..3 {
            let mut more = Vec::new();
            bed.transport.receive(BATCH, &mut more);
            assert!(more.is_empty(), "{subject:?}: all frames are held");
        }
        assert!(bed.transport.stats().starved > 0, "{subject:?}");
        let mut seen = Vec::new();
        for _ in 0..100 {
            let frame = held.pop_front().unwrap_or_else(|| bed.receive(1)[0]);
            seen.extend(bed.text(frame));
            bed.transport.release(frame);
        }
        assert_eq!(seen, (0..100).collect::<Vec<u8>>(), "{subject:?}: nothing was lost");
        bed.no_faults();
    }
}

/// With two frames at the kernel, receives end and are armed again all the time.
#[test]
fn few_provided_frames_lose_nothing() {
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes { provided: 2, ..Sizes::default() }, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        for round in 0..20u8 {
            (0..50u8).for_each(|n| put(&client, &[round, n]));
            for (n, frame) in bed.receive(50).into_iter().enumerate() {
                assert_eq!(bed.text(frame), [round, n as u8], "{subject:?}");
                bed.transport.release(frame);
            }
        }
        bed.no_faults();
    }
}

/// A connected socket is told of ICMP errors: the receive under way ends with an error, and the next must follow.
#[test]
fn an_error_of_the_socket_does_not_end_receiving() {
    for subject in socket_subjects() {
        // An address of its own, so that no other test takes the port while it is closed.
        let peer = UdpSocket::bind("127.77.0.3:0").expect("loopback can be bound");
        let to = peer.local_addr().expect("bound");
        let own = UdpSocket::bind("127.0.0.1:0").expect("loopback can be bound");
        own.set_nonblocking(true).expect("non-blocking");
        own.connect(to).expect("connected");
        let address = own.local_addr().expect("bound");
        let mut bed = Bed::over(subject, Sizes::default(), vec![own]);
        drop(peer);
        let end = bed.clock.now() + PATIENCE;
        // Whoever looks first takes a report: a send may, and then there is none to receive.
        while bed.transport.stats().receive_errors == 0 {
            if let Some(slot) = bed.transport.reserve() {
                bed.transport.send(slot, 1, to, 0);
                bed.transport.flush();
            }
            bed.transport.receive(BATCH, &mut Vec::new());
            assert!(bed.transport.receive(BATCH, &mut Vec::new()) < end, "{subject:?}: {:?}", bed.transport.stats());
        }
        let peer = UdpSocket::bind(to).expect("the port is still free");
        for n in 0..10u8 {
            assert_eq!(peer.send_to(&[n], address).expect("sent"), 1);
            let frame = bed.receive(1)[0];
            assert_eq!(bed.text(frame), [n], "{subject:?}");
            bed.transport.release(frame);
        }
    }
}

#[test]
fn without_slots_nothing_is_received_and_nothing_is_lost() {
    for subject in subjects() {
        let sizes = Sizes { slots: 4, ..Sizes::default() };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let slots: Vec<_> = (0..4).map(|_| bed.transport.reserve().expect("a free slot")).collect();
        assert!(bed.transport.reserve().is_none() && bed.transport.free_slots() == 0);
        (0..50u8).for_each(|n| put(&client, &[n]));
        let mut frames = Vec::new();
        for _ in 0..5 {
            bed.transport.receive(BATCH, &mut frames);
            bed.transport.flush();
        }
        assert!(frames.is_empty(), "{subject:?}: back-pressure");
        slots.into_iter().for_each(|slot| bed.transport.abandon(slot));
        let (mut seen, end) = (Vec::new(), bed.clock.now() + PATIENCE);
        while seen.len() < 50 {
            assert!(bed.transport.receive(BATCH, &mut frames) < end, "{subject:?}");
            assert!(frames.len() <= 4, "{subject:?}: never more than there are slots");
            for frame in frames.drain(..) {
                seen.extend(bed.text(frame));
                assert!(bed.echo(frame), "{subject:?}");
            }
            bed.transport.flush();
        }
        assert_eq!(seen, (0..50).collect::<Vec<u8>>(), "{subject:?}");
        (0..50u8).for_each(|n| assert_eq!(answer(&client), [n], "{subject:?}"));
        bed.no_faults();
    }
}

#[test]
fn more_is_sent_in_one_batch_than_there_are_slots_by_flushing_in_between() {
    for subject in subjects() {
        let sizes = Sizes { slots: 8, ..Sizes::default() };
        let mut bed = Bed::new(subject, sizes, &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let to = client.local_addr().expect("bound");
        for n in 0..100u8 {
            let slot = loop {
                match bed.transport.reserve() {
                    Some(slot) => break slot,
                    None => bed.transport.flush(),
                }
            };
            bed.transport.buffer(&slot)[0] = n;
            bed.transport.send(slot, 1, to, 0);
        }
        bed.transport.flush();
        (0..100u8).for_each(|n| assert_eq!(answer(&client), [n], "{subject:?}"));
        bed.no_faults();
    }
}

#[test]
fn a_dead_destination_stops_neither_sending_nor_receiving() {
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        // No other test binds this address, so the kernel answers each datagram with ICMP port unreachable.
        let dead: SocketAddr = "127.77.0.1:2727".parse().expect("an address");
        let mut reports = 0;
        for n in 0..50u8 {
            put(&client, &[n]);
            let slot = bed.transport.reserve().expect("a free slot");
            bed.transport.buffer(&slot)[..10].copy_from_slice(b"NTFY 17 x\n");
            bed.transport.send(slot, 10, dead, 0);
            bed.transport.flush();
            let frame = bed.receive(1)[0];
            assert!(bed.echo(frame));
            // A send that fails by a report about another is tried again when the loop looks again.
            let (mut bytes, end) = ([0; 16], bed.clock.now() + PATIENCE);
            client.set_nonblocking(true).expect("a socket");
            let len = loop {
                bed.transport.flush();
                match client.recv(&mut bytes) {
                    Err(_) if bed.clock.now() < end => {}
                    result => break result.expect("an answer in time"),
                }
            };
            assert_eq!(bytes[..len], [n], "{subject:?}");
            while let Some(report) = bed.transport.take_report() {
                assert_eq!((report.to, report.sent()), (dead, &b"NTFY 17 x\n"[..]), "{subject:?}");
                reports += 1;
            }
        }
        bed.no_faults();
        // G-RTX-13: it is told, too.
        assert!(reports >= 40 || subject == Subject::Deferred, "{subject:?}: {reports}");
    }
}

#[test]
fn a_refused_datagram_is_counted_and_the_others_go_out() {
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let good = client.local_addr().expect("bound");
        // A destination of the other family is refused by the kernel, each time.
        let bad: SocketAddr = "[::1]:9".parse().expect("an address");
        for n in 0..20u8 {
            let slot = bed.transport.reserve().expect("a free slot");
            bed.transport.buffer(&slot)[0] = n;
            bed.transport.send(slot, 1, if n % 3 == 1 { bad } else { good }, 0);
        }
        bed.transport.flush();
        for n in (0..20u8).filter(|n| n % 3 != 1) {
            assert_eq!(answer(&client), [n], "{subject:?}");
        }
        bed.settle(64);
        let stats = bed.transport.stats();
        assert_eq!((stats.sent, stats.send_errors), (13, 7), "{subject:?}");
    }
}

#[test]
fn a_sleeper_wakes_for_a_datagram_and_for_a_waker() {
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        let mut none = Vec::new();
        bed.transport.receive(BATCH, &mut none);

        let before = bed.clock.now();
        bed.transport.sleep(None, &mut || false);
        assert!(bed.clock.now().since(before) < PATIENCE, "{subject:?}: not idle, no sleep");

        for round in 0..3 {
            let sender = client.try_clone().expect("a second handle");
            let sending = std::thread::spawn(move || {
                std::thread::park_timeout(Duration::from_millis(5));
                put(&sender, &[round]);
            });
            let frame = sleep_until_received(&mut bed);
            assert_eq!(bed.text(frame), [round], "{subject:?}");
            bed.transport.release(frame);
            sending.join().expect("sent");

            let (waker, wakes) = (bed.transport.waker(), bed.transport.stats().wakes);
            let waking = std::thread::spawn(move || wake_until_asleep(&waker));
            let end = bed.clock.now() + PATIENCE;
            while bed.transport.stats().wakes == wakes {
                assert!(bed.clock.now() < end, "{subject:?}: not woken");
                bed.transport.receive(BATCH, &mut none);
                bed.transport.sleep(Some(PATIENCE), &mut || true);
            }
            waking.join().expect("woken");
        }
        assert!(none.is_empty());
    }
}

fn sleep_until_received(bed: &mut Bed) -> FrameRef {
    let (mut frames, end) = (Vec::new(), bed.clock.now() + PATIENCE);
    while frames.is_empty() {
        bed.transport.sleep(Some(PATIENCE), &mut || true);
        assert!(bed.transport.receive(1, &mut frames) < end, "{:?}: slept through a datagram", bed.subject);
    }
    frames[0]
}

fn wake_until_asleep(waker: &Waker) {
    while !waker.wake() {
        std::thread::yield_now();
    }
}

/// The timeout ends a sleep and little else does (a signal may: closing an io_uring interrupts its thread once more).
#[test]
fn a_sleeping_core_sleeps() {
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        put(&client, b"x");
        let frame = bed.receive(1)[0];
        bed.transport.release(frame);
        bed.transport.receive(BATCH, &mut Vec::new());
        let (mut sleeps, end) = (0, bed.clock.now() + Duration::from_millis(100));
        while bed.clock.now() < end {
            bed.transport.sleep(Some(end.since(bed.clock.now())), &mut || true);
            sleeps += 1;
        }
        assert!(sleeps <= 5, "{subject:?}: {sleeps} sleeps in 100 ms");
    }
}

/// Entries sent through a ring with a wake after each: none may be slept through, whatever the interleaving.
#[test]
fn no_entry_is_slept_through() {
    const ENTRIES: u64 = 3_000;
    for subject in subjects() {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let (mut sender, mut inbox) = ring::pair::<u64>(8);
        let waker = bed.transport.waker();
        let sending = std::thread::spawn(move || {
            for entry in 0..ENTRIES {
                while sender.send(entry).is_err() {
                    std::thread::yield_now();
                }
                waker.wake();
                (0..entry % 50 * 20).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut expected = 0;
        while expected < ENTRIES {
            let before = bed.clock.now();
            bed.transport.sleep(Some(PATIENCE), &mut || inbox.is_empty());
            assert!(bed.clock.now().since(before) < PATIENCE, "{subject:?}: slept through entry {expected}");
            while let Some(entry) = inbox.receive() {
                assert_eq!(entry, expected);
                expected += 1;
            }
        }
        sending.join().expect("all sent");
    }
}

#[test]
fn arrival_counts_the_wait_in_the_socket() {
    for subject in subjects().into_iter().filter(|&subject| subject != Subject::Deferred) {
        let mut bed = Bed::new(subject, Sizes::default(), &["127.0.0.1:0"]);
        let client = client(bed.addresses[0]);
        bed.transport.receive(BATCH, &mut Vec::new());
        // The kernel begins to stamp some time after the first socket asked for it, as soon as a worker of its gets round to it.
        let end = bed.clock.now() + PATIENCE;
        loop {
            let sent = bed.clock.now();
            put(&client, b"early");
            std::thread::park_timeout(Duration::from_millis(30));
            let late = bed.clock.now();
            let frame = bed.receive(1)[0];
            let arrival = bed.table.read(frame).expect("held").meta().arrival;
            bed.transport.release(frame);
            let sending = late.since(sent) / 2;
            if late.since(sent) >= Duration::from_millis(30) && arrival < sent + sending && Time(arrival.0 + 2_000_000) > sent {
                break;
            }
            assert!(late < end, "{subject:?}: sent {sent:?}, arrived {arrival:?}");
        }
    }
}

#[test]
fn what_overflows_the_socket_is_counted() {
    for subject in socket_subjects().filter(|&subject| subject != Subject::Deferred) {
        let settings = SocketSettings { receive_buffer: 4096, ..SocketSettings::default() };
        let sockets = bind(&["127.0.0.1:0".parse().expect("an address")], &settings).expect("bound");
        let mut bed = Bed::over(subject, Sizes { frames: 4, provided: 4, ..Sizes::default() }, sockets);
        let client = client(bed.addresses[0]);
        (0..200u8).for_each(|n| put(&client, &[n; 500]));
        let (mut frames, mut seen) = (Vec::new(), BTreeSet::new());
        let end = bed.clock.now() + PATIENCE;
        while seen.len() as u64 + bed.transport.stats().kernel_drops < 200 {
            assert!(bed.transport.receive(BATCH, &mut frames) < end, "{subject:?}: {:?}", bed.transport.stats());
            for frame in frames.drain(..) {
                assert!(seen.insert(bed.text(frame)), "{subject:?}: twice");
                bed.transport.release(frame);
            }
        }
        let stats = bed.transport.stats();
        assert!(stats.kernel_drops > 0, "{subject:?}");
        assert_eq!(seen.len() as u64 + stats.kernel_drops, 200, "{subject:?}: {stats:?}");
    }
}

#[test]
fn cores_share_a_port_and_each_has_its_own_socket() {
    let settings = SocketSettings { shared: true, ..SocketSettings::default() };
    let first = bind(&["127.0.0.1:0".parse().expect("an address")], &settings).expect("bound");
    let address = first[0].local_addr().expect("bound");
    let second = bind(&[address], &settings).expect("bound a second time");
    assert!(bind(&[address], &SocketSettings::default()).is_err_and(|e| e.to_string().contains(&address.to_string())));
    let mut beds = [first, second].map(|sockets| Bed::over(Subject::Registered(Kind::Mmsg), Sizes::default(), sockets));
    let clients: Vec<UdpSocket> = (0..40).map(|_| client(address)).collect();
    clients.iter().for_each(|client| put(client, b"x"));
    let counts = beds.each_mut().map(|bed| {
        let mut frames = Vec::new();
        bed.transport.receive(BATCH, &mut frames);
        frames.len()
    });
    assert_eq!(counts[0] + counts[1], 40);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
}

#[test]
fn a_closed_transport_frees_its_address_and_leaves_its_held_frames_readable() {
    for subject in subjects() {
        // An address of its own: what is sent after closing must not meet another test's socket.
        let mut bed = Bed::new(subject, Sizes::default(), &["127.77.0.2:0"]);
        let client = client(bed.addresses[0]);
        put(&client, b"kept");
        let frame = bed.receive(1)[0];
        let (table, transport, end) = (bed.table, bed.transport, bed.clock.now() + PATIENCE);
        drop(transport);
        // At once; but a submission thread ends by and by, and another test may be starting a program just now, which has all descriptors
        // until it runs.
        let again = loop {
            match UdpSocket::bind(bed.addresses[0]) {
                Ok(socket) => break socket,
                Err(error) => assert!(bed.clock.now() < end, "{subject:?}: the address is free again: {error}"),
            }
        };
        (0..20).for_each(|_| drop(client.send(b"after")));
        assert_eq!(&*table.read(frame).expect("held"), b"kept", "{subject:?}");
        drop(again);
    }
}

/// Sends one datagram of `length` bytes that begins with its number.
fn send_numbered(bed: &mut Bed, number: u8, length: usize, to: SocketAddr) {
    let slot = bed.transport.reserve().expect("a free slot");
    bed.transport.buffer(&slot)[..length].fill(number);
    bed.transport.send(slot, length, to, 0);
}

/// Runs of equal lengths, a shorter end, a longer one, a single one, mixed over two receivers that know nothing of it.
#[test]
fn what_leaves_in_one_send_comes_as_it_was_queued() {
    for subject in subjects() {
        for coalesce in [true, false] {
            let mut bed = Bed::new(subject, Sizes { coalesce, ..Sizes::default() }, &["127.0.0.1:0"]);
            let clients = [client(bed.addresses[0]), client(bed.addresses[0])];
            let to = clients.each_ref().map(|client| client.local_addr().expect("bound"));
            let lengths = [145usize, 145, 63, 145, 145, 145, 300, 300, 1300, 1300, 7, 0, 9, 1232, 1232];
            for round in 0..5 {
                for (n, &length) in lengths.iter().enumerate() {
                    send_numbered(&mut bed, n as u8, length, to[0]);
                    if n % 2 == 0 {
                        send_numbered(&mut bed, n as u8, 100, to[1]);
                    }
                }
                bed.transport.flush();
                for (n, &length) in lengths.iter().enumerate() {
                    assert_eq!(answer(&clients[0]), vec![n as u8; length], "{subject:?} {round}");
                    if n % 2 == 0 {
                        assert_eq!(answer(&clients[1]), vec![n as u8; 100], "{subject:?} {round}");
                    }
                }
                bed.settle(64);
            }
            bed.no_faults();
            let stats = bed.transport.stats();
            // Of the first receiver 3, 3, 2 and 2 datagrams run, of the second all 8.
            let coalesced = if coalesce && subject != Subject::Deferred { 5 * 18 } else { 0 };
            assert_eq!((stats.sent, stats.sent_coalesced, stats.coalesce_refused), (5 * 23, coalesced, 0), "{subject:?}");
        }
    }
}

/// A socket that sends no checksums cannot have datagrams cut: like a path without checksum offload it refuses.
#[test]
fn a_path_that_takes_no_runs_gets_its_datagrams_one_by_one() {
    for subject in socket_subjects().filter(|&subject| subject != Subject::Deferred) {
        let sockets = bind(&["127.0.0.1:0".parse().expect("an address")], &SocketSettings::default()).expect("bound");
        no_checksums(&sockets[0]);
        let mut bed = Bed::over(subject, Sizes::default(), sockets);
        let client = client(bed.addresses[0]);
        let to = client.local_addr().expect("bound");
        for round in 0..5 {
            (0..10).for_each(|n| send_numbered(&mut bed, n, 50, to));
            bed.transport.flush();
            // Refused sends go again with the next flush.
            bed.settle(64);
            (0..10).for_each(|n| assert_eq!(answer(&client), [n; 50], "{subject:?} {round}"));
        }
        bed.no_faults();
        let stats = bed.transport.stats();
        assert_eq!((stats.sent, stats.sent_coalesced, stats.coalesce_refused), (50, 0, 1), "{subject:?}: it is remembered");
    }
}

fn no_checksums(socket: &UdpSocket) {
    let on = 1i32;
    // SAFETY: `on` lives through the call and the length given is its own.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), size_of_val(&on) as u32)
    };
    assert_eq!(result, 0);
}

/// Busy polling of the card's queue works or is refused with its name; loopback has no such queue, so it changes nothing here.
#[test]
fn busy_polling_works_or_says_what_it_needs() {
    for &kind in Kind::AUTO.iter().filter(|kind| kind.probe().is_ok()) {
        let sockets = bind(&["127.0.0.1:0".parse().expect("an address")], &SocketSettings::default()).expect("bound");
        let to = sockets[0].local_addr().expect("bound");
        let (table, mut pools) = FrameTable::new(&[FrameLayout { frames: 16, size: 4608 }]).expect("frames");
        let (_, sleeper) = wake::pair().expect("an event");
        let settings = TransportSettings { napi_busy_poll: Some(Duration::from_micros(50)), ..TransportSettings::default() };
        match kind.open(sockets, pools.remove(0), sleeper, Clock::new(), &settings) {
            Ok(transport) => {
                let clock = Clock::new();
                let mut bed = Bed { transport, _bypass: None, table, addresses: vec![to], clock, subject: Subject::Registered(kind) };
                let client = client(to);
                put(&client, b"x");
                let frame = sleep_until_received(&mut bed);
                assert!(bed.echo(frame));
                bed.transport.flush();
                assert_eq!(answer(&client), b"x");
            }
            Err(error) => assert!(error.to_string().contains("_NAPI") || error.to_string().contains("CAP_NET_ADMIN"), "{error}"),
        }
    }
}
