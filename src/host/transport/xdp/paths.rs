//! A core's own knowledge of how destinations are reached without the kernel: asked of the resolver, kept here, never waited for.
//!
//! What is not known, or not reachable that way, is sent by the kernel's socket, which is always right and makes the kernel look for
//! the neighbour. Bounded: a full table is emptied and the resolver asked anew.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use super::packet::Path;
use crate::host::ring::{Receiver, Sender};
use crate::host::transport::Waker;

/// The most destinations a core knows.
pub const PATHS_MAX: usize = 1024;

/// A question of a core: how does one get from a listen address (its place in the list) to a destination?
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// The listen address.
    pub line: u8,
    /// The destination.
    pub to: IpAddr,
}

/// What the resolver tells a core, asked or not.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Which path.
    pub want: Want,
    /// How it goes.
    pub news: News,
}

/// How a destination is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Like this.
    Direct(Path),
    /// By the kernel only, until told otherwise.
    ByKernel,
    /// The resolver watches it no longer: ask again.
    Forgotten,
}

/// A core's half of its connection with the resolver.
pub struct Desk {
    /// Towards it.
    pub wants: Sender<Want>,
    /// From it.
    pub answers: Receiver<Answer>,
    /// Ends its sleep.
    pub waker: Waker,
}

/// The paths a core knows.
pub struct Paths {
    known: HashMap<(IpAddr, u8), Option<Path>, BuildHasherDefault<Mix>>,
    desk: Desk,
}

impl Paths {
    /// None yet.
    pub fn new(desk: Desk) -> Paths {
        Paths { known: HashMap::with_capacity_and_hasher(PATHS_MAX, BuildHasherDefault::default()), desk }
    }

    /// The path from a listen address to a destination. Asks the resolver when it knows nothing.
    #[inline]
    pub fn find(&mut self, line: u8, to: IpAddr) -> Option<Path> {
        match self.known.get(&(to, line)) {
            Some(path) => *path,
            None => {
                self.ask(line, to);
                None
            }
        }
    }

    #[cold]
    fn ask(&mut self, line: u8, to: IpAddr) {
        if self.known.len() >= PATHS_MAX {
            self.known.clear();
        }
        // A full ring: the next datagram asks again.
        if self.desk.wants.send(Want { line, to }).is_ok() {
            self.known.insert((to, line), None);
            self.desk.waker.wake();
        }
    }

    /// Takes note of what the resolver says.
    #[inline]
    pub fn listen(&mut self) {
        while let Some(Answer { want, news }) = self.desk.answers.receive() {
            let key = (want.to, want.line);
            match news {
                News::Forgotten => drop(self.known.remove(&key)),
                // Of one that was emptied out of the table meanwhile: it is asked for again when it is needed.
                _ => {
                    if let Some(path) = self.known.get_mut(&key) {
                        *path = if let News::Direct(path) = news { Some(path) } else { None };
                    }
                }
            }
        }
    }
}

/// A hash of few octets: addresses are those of agents, nobody else's, and the table is bounded.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ring;
    use crate::host::transport::wake;

    #[test]
    fn a_path_is_asked_for_once_and_kept_until_forgotten() {
        let (wants, mut asked) = ring::pair(4);
        let (mut told, answers) = ring::pair(4);
        let (waker, _sleeper) = wake::pair().expect("an event");
        let mut paths = Paths::new(Desk { wants, answers, waker });
        let to = IpAddr::from([192, 0, 2, 9]);
        assert_eq!((paths.find(1, to), paths.find(1, to)), (None, None));
        let want = asked.receive().expect("asked");
        assert!((want.line, want.to) == (1, to) && asked.receive().is_none());
        let path = Path { to: [1; 6], from: [2; 6], vlan: 0, mtu: 1500 };
        for (news, expected) in [(News::Direct(path), Some(path)), (News::ByKernel, None), (News::Direct(path), Some(path))] {
            told.send(Answer { want, news }).expect("room");
            paths.listen();
            assert_eq!((paths.find(1, to), paths.find(2, to)), (expected, None));
        }
        assert_eq!(asked.receive().map(|want| want.line), Some(2));
        told.send(Answer { want, news: News::Forgotten }).expect("room");
        paths.listen();
        assert_eq!((paths.find(1, to), asked.receive().map(|want| want.line)), (None, Some(1)));
    }

    #[test]
    fn the_table_is_bounded_and_a_full_ring_is_asked_again() {
        let (wants, mut asked) = ring::pair(2);
        let (_told, answers) = ring::pair(2);
        let (waker, _sleeper) = wake::pair().expect("an event");
        let mut paths = Paths::new(Desk { wants, answers, waker });
        for n in 0..3 * PATHS_MAX as u32 {
            assert_eq!(paths.find(0, IpAddr::from(n.to_be_bytes())), None);
            if n % 2 == 1 {
                while asked.receive().is_some() {}
            }
        }
        assert!(paths.known.len() <= PATHS_MAX);
        let (one, two, three) = (IpAddr::from([1; 4]), IpAddr::from([2; 4]), IpAddr::from([3; 4]));
        paths.find(0, one);
        paths.find(0, two);
        paths.find(0, three);
        while asked.receive().is_some() {}
        paths.find(0, three);
        assert_eq!(asked.receive().map(|want| want.to), Some(three));
    }
}
