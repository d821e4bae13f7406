//! Collects datagrams of equal length and destination into runs that leave in one call, and spoils the line on purpose.
//!
//! Losses and duplicates are seeded and counted. Datagrams of different runs may overtake one another, as on any network.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::line::Line;
use super::socket::{RUN_BYTES_MAX, SEGMENTS_MAX};
use crate::proto::base::Rng;

/// Runs collected at a time: one for each length in use.
const RUNS: usize = 8;
/// How long a full send buffer is waited for before its datagrams are dropped.
const PATIENCE: Duration = Duration::from_millis(2);

/// Losses and duplicates of one direction, in millionths.
#[derive(Clone, Debug)]
pub struct Faults {
    loss: u32,
    duplicate: u32,
    rng: Rng,
    /// Datagrams lost on purpose.
    pub lost: u64,
    /// Datagrams doubled on purpose.
    pub duplicated: u64,
}

impl Faults {
    /// Loses and doubles with these probabilities, 0.0 to 1.0.
    pub fn new(loss: f64, duplicate: f64, rng: Rng) -> Faults {
        let parts = |probability: f64| (probability * 1e6).round() as u32;
        Faults { loss: parts(loss), duplicate: parts(duplicate), rng, lost: 0, duplicated: 0 }
    }

    /// How many copies of the next datagram get through: 0, 1 or 2.
    #[inline]
    pub fn copies(&mut self) -> usize {
        if self.loss == 0 && self.duplicate == 0 {
            return 1;
        }
        let mut copies = 1;
        if self.rng.chance(self.duplicate) {
            self.duplicated += 1;
            copies = 2;
        }
        let through = (0..copies).filter(|_| !self.rng.chance(self.loss)).count();
        self.lost += (copies - through) as u64;
        through
    }
}

struct Run {
    to: SocketAddr,
    length: usize,
    bytes: Vec<u8>,
}

/// Datagrams to be sent.
pub struct Sender {
    runs: Vec<Run>,
    faults: Faults,
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// System calls for them.
    pub calls: u64,
    /// Datagrams dropped because the kernel would not take them.
    pub dropped: u64,
    /// The latest address the kernel knew no way to, and what it said; whoever reads it takes it out.
    pub unreachable: Option<(SocketAddr, io::ErrorKind)>,
}

/// Whether an error of the network says that an address cannot be reached.
pub fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}

impl Sender {
    /// Nothing to send yet.
    pub fn new(faults: Faults) -> Sender {
        let run = || Run { to: ([0, 0, 0, 0], 0).into(), length: 0, bytes: Vec::with_capacity(RUN_BYTES_MAX) };
        Sender { runs: (0..RUNS).map(|_| run()).collect(), faults, sent: 0, calls: 0, dropped: 0, unreachable: None }
    }

    /// The faults of this direction.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Queues `datagram`.
    pub fn push(&mut self, line: &mut dyn Line, to: SocketAddr, datagram: &[u8]) {
        for _ in 0..self.faults.copies() {
            self.append(line, to, datagram);
        }
    }

    /// Sends what is queued.
    pub fn flush(&mut self, line: &mut dyn Line) {
        for i in 0..self.runs.len() {
            self.send(line, i);
        }
    }

    fn append(&mut self, line: &mut dyn Line, to: SocketAddr, datagram: &[u8]) {
        let same = self.runs.iter().position(|run| run.length == datagram.len() && run.to == to && !run.bytes.is_empty());
        let place = same.or_else(|| self.runs.iter().position(|run| run.bytes.is_empty())).unwrap_or(0);
        let run = &self.runs[place];
        let full = run.bytes.len() + datagram.len() > RUN_BYTES_MAX || run.bytes.len() >= SEGMENTS_MAX * run.length;
        if !run.bytes.is_empty() && (same.is_none() || full) {
            self.send(line, place);
        }
        let run = &mut self.runs[place];
        (run.to, run.length) = (to, datagram.len());
        run.bytes.extend_from_slice(datagram);
    }

    fn send(&mut self, line: &mut dyn Line, place: usize) {
        let run = &mut self.runs[place];
        let mut at = 0;
        let mut patient = true;
        while at < run.bytes.len() {
            self.calls += 1;
            match line.send_run(run.to, &run.bytes[at..], run.length) {
                Ok(bytes) => {
                    self.sent += bytes.div_ceil(run.length.max(1)) as u64;
                    at += bytes.max(1);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && patient => {
                    line.wait_writable(PATIENCE);
                    patient = false;
                }
                // A pending error of an earlier datagram, to whichever address, is told instead of sending: send again.
                Err(e) if is_unreachable(&e) && patient => patient = false,
                Err(e) => {
                    self.unreachable = is_unreachable(&e).then(|| (run.to, e.kind())).or(self.unreachable);
                    self.dropped += (run.bytes.len() - at).div_ceil(run.length.max(1)) as u64;
                    break;
                }
            }
        }
        run.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::LoadSocket;
    use super::*;

    #[test]
    fn faults_keep_their_rates_and_their_seed() {
        let mut faults = Faults::new(0.1, 0.2, Rng::new(1));
        let copies: usize = (0..100_000).map(|_| faults.copies()).sum();
        assert!((106_000..110_000).contains(&copies), "{copies}");
        let (mut a, mut b) = (Faults::new(0.1, 0.2, Rng::new(2)), Faults::new(0.1, 0.2, Rng::new(2)));
        assert!((0..1000).all(|_| a.copies() == b.copies()));
        assert!((19_000..21_000).contains(&faults.duplicated) && (11_000..13_000).contains(&faults.lost));
        assert_eq!((0..1000).map(|_| Faults::new(0.0, 0.0, Rng::new(3)).copies()).sum::<usize>(), 1000);
    }

    #[test]
    fn runs_of_several_lengths_all_arrive() {
        let mut to = LoadSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let mut from = LoadSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = to.local_address().unwrap();
        let mut sender = Sender::new(Faults::new(0.0, 0.0, Rng::new(1)));
        let mut expected = std::collections::HashMap::new();
        // Ten lengths are more than there are runs, seventy of a length more than fit in one.
        for i in 0..700usize {
            let datagram = vec![i as u8; 100 + i % 10];
            *expected.entry(datagram.clone()).or_insert(0) += 1;
            sender.push(&mut from, address, &datagram);
        }
        sender.flush(&mut from);
        assert_eq!((sender.sent, sender.dropped), (700, 0));
        let mut got = std::collections::HashMap::new();
        let mut count = 0;
        while count < 700 {
            to.wait(Duration::from_secs(2));
            count += to.receive(|_, datagram| *got.entry(datagram.to_vec()).or_insert(0) += 1).expect("all arrive");
        }
        assert_eq!(got, expected);
    }
}
