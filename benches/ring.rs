//! Which ring between cores? One of our own, `rtrb`, crossbeam's `ArrayQueue`: entries of one cache line, one by one and in batches.
//!
//! `cargo bench --bench ring`. The result and the choice are in docs/decisions/rings.md. Needs two CPUs to say anything about two cores;
//! on one CPU only the first group runs.
#![allow(missing_docs, reason = "a program")]

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crossbeam::queue::ArrayQueue;
use tollgate::host::{cpu, ring};

/// What travels: one cache line.
type Entry = [u64; 8];
/// Room in each ring.
const CAPACITY: usize = 1024;
/// Entries per batch: a turn of the loop.
const BATCH: usize = 64;

/// The sending half under test.
trait Sending: Send + 'static {
    /// Sends all of `entries`, waiting for room.
    fn send_all(&mut self, entries: &[Entry]);
}

/// The receiving half under test.
trait Receiving: Send + 'static {
    /// Gives `handle` up to `limit` entries; says how many.
    fn receive(&mut self, limit: usize, handle: &mut dyn FnMut(&Entry)) -> usize;
}

/// One by one through `try_send`.
struct OneByOne<F>(F);

impl<F: FnMut(Entry) -> bool + Send + 'static> Sending for OneByOne<F> {
    fn send_all(&mut self, entries: &[Entry]) {
        for entry in entries {
            while !(self.0)(*entry) {
                spin_loop();
            }
        }
    }
}

impl<F: FnMut() -> Option<Entry> + Send + 'static> Receiving for OneByOne<F> {
    fn receive(&mut self, limit: usize, handle: &mut dyn FnMut(&Entry)) -> usize {
        for count in 0..limit {
            match (self.0)() {
                Some(entry) => handle(&entry),
                None => return count,
            }
        }
        limit
    }
}

/// `host::ring` with its batch operations.
struct Batched<T>(T);

impl Sending for Batched<ring::Sender<Entry>> {
    fn send_all(&mut self, mut entries: &[Entry]) {
        while !entries.is_empty() {
            entries = &entries[self.0.send_batch(entries)..];
        }
    }
}

impl Receiving for Batched<ring::Receiver<Entry>> {
    fn receive(&mut self, limit: usize, handle: &mut dyn FnMut(&Entry)) -> usize {
        self.0.receive_batch(limit, |entry| handle(&entry))
    }
}

/// Both halves of a ring under test.
struct Pair(Box<dyn Sending>, Box<dyn Receiving>);

fn rtrb_pair() -> Pair {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    Pair(Box::new(OneByOne(move |entry| producer.push(entry).is_ok())), Box::new(OneByOne(move || consumer.pop().ok())))
}

fn host_batched() -> Pair {
    let (sender, receiver) = ring::pair(CAPACITY);
    Pair(Box::new(Batched(sender)), Box::new(Batched(receiver)))
}

fn crossbeam_pair() -> Pair {
    let queue = Arc::new(ArrayQueue::new(CAPACITY));
    let other = Arc::clone(&queue);
    Pair(Box::new(OneByOne(move |entry| queue.push(entry).is_ok())), Box::new(OneByOne(move || other.pop())))
}

fn own_pair() -> Pair {
    let (mut sender, mut receiver) = own::pair(CAPACITY);
    Pair(Box::new(OneByOne(move |entry| sender.send(entry))), Box::new(OneByOne(move || receiver.receive())))
}

/// A name and how to make a ring.
type Contender = (&'static str, fn() -> Pair);

const CONTENDERS: [Contender; 4] =
    [("own", own_pair), ("rtrb", rtrb_pair), ("rtrb batched (host::ring)", host_batched), ("crossbeam ArrayQueue", crossbeam_pair)];

/// Send a batch, receive it, on one core: the instructions alone.
fn one_core(c: &mut Criterion) {
    let mut group = c.benchmark_group("one core, batch of 64");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, pair) in CONTENDERS {
        let Pair(mut sender, mut receiver) = pair();
        let batch = [[7; 8]; BATCH];
        group.bench_function(name, |b| {
            b.iter(|| {
                sender.send_all(black_box(&batch));
                assert_eq!(receiver.receive(BATCH, &mut |entry| _ = black_box(entry[0])), BATCH);
            });
        });
    }
}

/// Entries per second from one pinned core to another that does nothing else.
fn two_cores(c: &mut Criterion) {
    let Some((here, there)) = two_cpus() else { return };
    let mut group = c.benchmark_group("two cores, stream");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, pair) in CONTENDERS {
        group.bench_function(name, |b| {
            b.iter_custom(|batches| {
                let (Pair(mut sender, mut receiver), total) = (pair(), batches * BATCH as u64);
                let receiving = on(there, move || {
                    let mut received = 0;
                    while received < total {
                        received += receiver.receive(BATCH, &mut |entry| _ = black_box(entry[0])) as u64;
                    }
                });
                let batch = [[7; 8]; BATCH];
                let sending = on(here, move || {
                    let start = now();
                    (0..batches).for_each(|_| sender.send_all(&batch));
                    receiving.join().expect("received");
                    start.elapsed()
                });
                sending.join().expect("sent")
            });
        });
    }
}

/// There and back: the latency of a hand-over, twice.
fn ping_pong(c: &mut Criterion) {
    let Some((here, there)) = two_cpus() else { return };
    let mut group = c.benchmark_group("two cores, round trip");
    for (name, pair) in CONTENDERS {
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| {
                let (Pair(mut ping, mut pinged), Pair(mut pong, mut ponged)) = (pair(), pair());
                let done = Arc::new(AtomicBool::new(false));
                let stop = Arc::clone(&done);
                let echo = on(there, move || {
                    while !stop.load(Ordering::Relaxed) {
                        pinged.receive(1, &mut |entry| pong.send_all(std::slice::from_ref(entry)));
                    }
                });
                let asking = on(here, move || {
                    let start = now();
                    for round in 0..rounds {
                        ping.send_all(&[[round; 8]]);
                        while ponged.receive(1, &mut |entry| assert_eq!(entry[7], round)) == 0 {}
                    }
                    start.elapsed()
                });
                let elapsed = asking.join().expect("answered");
                done.store(true, Ordering::Relaxed);
                echo.join().expect("stopped");
                elapsed
            });
        });
    }
}

fn two_cpus() -> Option<(usize, usize)> {
    match cpu::allowed()[..] {
        [first, .., last] => Some((first.id, last.id)),
        _ => None,
    }
}

fn on<T: Send + 'static>(cpu: usize, work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(move || {
        assert!(cpu::pin(cpu), "CPU {cpu} cannot be used");
        work()
    })
}

#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}

/// What a ring of our own would be: two indices on cache lines of their own, each side with a copy of the other's.
mod own {
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Entry;

    #[repr(align(128))]
    struct Index(AtomicUsize);

    struct Shared {
        entries: Box<[UnsafeCell<MaybeUninit<Entry>>]>,
        sent: Index,
        received: Index,
    }

    // SAFETY: an entry belongs to the sender until `sent` passes it and to the receiver until `received` does.
    unsafe impl Sync for Shared {}
    // SAFETY: as above; entries are plain values.
    unsafe impl Send for Shared {}

    pub struct Sender {
        shared: Arc<Shared>,
        sent: usize,
        received_seen: usize,
    }

    pub struct Receiver {
        shared: Arc<Shared>,
        received: usize,
        sent_seen: usize,
    }

    /// `capacity` is a power of two.
    pub fn pair(capacity: usize) -> (Sender, Receiver) {
        assert!(capacity.is_power_of_two());
        let entries = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        let index = || Index(AtomicUsize::new(0));
        let shared = Arc::new(Shared { entries, sent: index(), received: index() });
        (Sender { shared: Arc::clone(&shared), sent: 0, received_seen: 0 }, Receiver { shared, received: 0, sent_seen: 0 })
    }

    impl Sender {
        pub fn send(&mut self, entry: Entry) -> bool {
            let capacity = self.shared.entries.len();
            if self.sent - self.received_seen == capacity {
                self.received_seen = self.shared.received.0.load(Ordering::Acquire);
                if self.sent - self.received_seen == capacity {
                    return false;
                }
            }
            let place = &self.shared.entries[self.sent & (capacity - 1)];
            // SAFETY: fewer than `capacity` entries are under way, so the receiver is done with this one and not told of it yet.
            unsafe { *place.get() = MaybeUninit::new(entry) };
            self.sent += 1;
            self.shared.sent.0.store(self.sent, Ordering::Release);
            true
        }
    }

    impl Receiver {
        pub fn receive(&mut self) -> Option<Entry> {
            if self.received == self.sent_seen {
                self.sent_seen = self.shared.sent.0.load(Ordering::Acquire);
                if self.received == self.sent_seen {
                    return None;
                }
            }
            let place = &self.shared.entries[self.received & (self.shared.entries.len() - 1)];
            // SAFETY: `sent` has passed this entry, so it is written and the sender keeps off until `received` passes it.
            let entry = unsafe { *place.get() };
            // SAFETY: written, as above.
            let entry = unsafe { entry.assume_init() };
            self.received += 1;
            self.shared.received.0.store(self.received, Ordering::Release);
            Some(entry)
        }
    }
}

criterion_group! {
    name = rings;
    config = Criterion::default().sample_size(30).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1500));
    targets = one_core, two_cores, ping_pong
}
criterion_main!(rings);
