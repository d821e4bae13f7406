//! Sleeping on sockets and on the core's waker together: epoll, by mio. For the transports that have no ring of their own to sleep in.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::{Sleeper, Waker};

/// How long a core with unsent datagrams sleeps before it tries again to send them.
pub const SEND_RETRY: Duration = Duration::from_millis(1);

/// The event token of the waker; sockets have the numbers they were given.
const WAKE: Token = Token(usize::MAX);
/// Of what is watched besides: nobody asks for its number.
const OTHER: Token = Token(usize::MAX - 1);

/// What a core sleeps on.
pub struct Watch {
    poll: Poll,
    events: Events,
    sleeper: Sleeper,
}

impl Watch {
    /// Of these sockets, each with its number, and the waker. Epoll reports arrivals, not contents: look into a socket until it is empty
    /// before sleeping.
    ///
    /// # Errors
    /// When epoll refuses.
    pub fn new(sockets: &[(RawFd, usize)], sleeper: Sleeper) -> io::Result<Watch> {
        let poll = Poll::new()?;
        for (fd, number) in sockets {
            poll.registry().register(&mut SourceFd(fd), Token(*number), Interest::READABLE)?;
        }
        poll.registry().register(&mut SourceFd(&sleeper.event().as_raw_fd()), WAKE, Interest::READABLE)?;
        Ok(Watch { poll, events: Events::with_capacity(sockets.len() + 1), sleeper })
    }

    /// Another descriptor besides: the sleep ends when it becomes readable.
    ///
    /// # Errors
    /// When epoll refuses.
    pub fn add(&mut self, fd: RawFd) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&fd), OTHER, Interest::READABLE)
    }

    /// Sleeps until something arrives, the waker is called or `timeout` has passed, a short time only while there is something `unsent`;
    /// not at all when `idle` says that there is work. `ready` is told the numbers of sockets with arrivals. Whether the waker ended it.
    pub fn sleep(&mut self, timeout: Option<Duration>, unsent: bool, idle: &mut dyn FnMut() -> bool, mut ready: impl FnMut(usize)) -> bool {
        let timeout = if unsent { Some(timeout.unwrap_or(SEND_RETRY).min(SEND_RETRY)) } else { timeout };
        let mut woken = false;
        self.sleeper.announce();
        if idle() {
            // An interrupted poll is a short sleep; any other error would be a fault in our own registrations.
            let result = self.poll.poll(&mut self.events, timeout);
            debug_assert!(result.as_ref().is_ok() || result.as_ref().is_err_and(|e| e.kind() == ErrorKind::Interrupted));
            for event in &self.events {
                match event.token() {
                    WAKE => woken |= self.sleeper.drain(),
                    OTHER => {}
                    Token(number) => ready(number),
                }
            }
            self.events.clear();
        }
        self.sleeper.awake();
        woken
    }

    /// The waker's other half.
    pub fn waker(&self) -> Waker {
        self.sleeper.waker()
    }
}
