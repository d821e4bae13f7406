//! One stream: messages in TPKTs (RFC 1006: version 3, a zero, the length with its four octets, then the message) both ways.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use mio::net::TcpStream;

use crate::host::clock::WallClock;
use crate::host::transport::sys;
use crate::proto::base::Time;

/// Octets in front of a message.
const HEAD: usize = 4;
/// Octets that may wait to be sent on one stream.
pub const OUTPUT: usize = crate::config::STREAM_OUTPUT;
/// So long may the other side take to open a stream, to finish a message it has begun, to acknowledge, or to read what waits for it.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Why a stream is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The other side ended it, or the network.
    Ended,
    /// What came is no TPKT, or is longer than any message may be.
    Malformed,
    /// The other side does not read.
    Stuck,
}

/// What comes next on a stream.
pub enum Next<'a> {
    /// A message, and when it came.
    Message(&'a [u8], Time),
    /// Nothing yet.
    Nothing,
    /// It is over.
    End(End),
}

/// See the module's page.
pub struct Connection {
    pub socket: TcpStream,
    /// Which listen address it belongs to, by place.
    pub line: usize,
    pub peer: SocketAddr,
    /// Streams opened later have greater numbers.
    pub number: u64,
    /// Both sides have agreed on it.
    pub open: bool,
    input: Box<[u8]>,
    read: usize,
    filled: usize,
    /// When what was read last came.
    arrival: Time,
    readable: bool,
    output: Vec<u8>,
    written: usize,
    writable: bool,
    made: Time,
    /// Since when the rest of a message is missing.
    half_since: Option<Time>,
    /// Since when nothing of what waits to be sent was taken.
    stuck_since: Option<Time>,
}

impl Connection {
    /// `longest`: octets of the longest message that is taken.
    pub fn new(socket: TcpStream, (line, peer): (usize, SocketAddr), (number, open): (u64, bool), longest: usize, now: Time) -> Connection {
        Connection {
            socket,
            line,
            peer,
            number,
            open,
            input: vec![0; longest + HEAD].into(),
            read: 0,
            filled: 0,
            arrival: now,
            readable: open,
            output: Vec::new(),
            written: 0,
            writable: open,
            made: now,
            half_since: None,
            stuck_since: None,
        }
    }

    /// What epoll says of it.
    pub fn note(&mut self, readable: bool, writable: bool) -> Option<End> {
        self.readable |= readable;
        if writable && !self.open {
            if self.socket.take_error().is_ok_and(|error| error.is_some()) {
                return Some(End::Ended);
            }
            // Else it is not connected yet, and epoll will say so again.
            self.open = self.socket.peer_addr().is_ok();
        }
        self.writable |= writable && self.open;
        None
    }

    /// Whether there may be more to read.
    pub fn has_more(&self) -> bool {
        self.readable || self.filled - self.read >= HEAD
    }

    /// The next message; it is seen again until [`Connection::taken`].
    pub fn next(&mut self, wall: &WallClock, now: Time) -> Next<'_> {
        loop {
            match length(self.input.get(self.read..self.filled).unwrap_or_default(), self.input.len()) {
                Err(end) => return Next::End(end),
                Ok(Some(length)) if self.filled - self.read >= length => break,
                Ok(_) => {}
            }
            if !self.readable {
                self.half_since = (self.filled > self.read).then(|| self.half_since.unwrap_or(now));
                return Next::Nothing;
            }
            self.input.copy_within(self.read..self.filled, 0);
            (self.read, self.filled) = (0, self.filled - self.read);
            match sys::receive_stream(self.socket.as_fd(), self.input.get_mut(self.filled..).unwrap_or_default()) {
                Ok((0, _)) => return Next::End(End::Ended),
                Ok((octets, stamp)) => {
                    self.filled += octets;
                    self.arrival = stamp.map_or(now, |stamp| wall.time(stamp, now));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::End(End::Ended),
            }
        }
        let end = self.read + usize::from(u16::from_be_bytes([self.input[self.read + 2], self.input[self.read + 3]]));
        Next::Message(self.input.get(self.read + HEAD..end).unwrap_or_default(), self.arrival)
    }

    /// The message that [`Connection::next`] said is done with.
    pub fn taken(&mut self) {
        if let Ok(Some(length)) = length(self.input.get(self.read..self.filled).unwrap_or_default(), self.input.len()) {
            self.read = (self.read + length).min(self.filled);
            self.half_since = None;
        }
    }

    fn has_unsent(&self) -> bool {
        self.written < self.output.len()
    }

    /// Puts a message behind what waits to be sent; false when there is no room.
    pub fn queue(&mut self, message: &[u8], now: Time) -> bool {
        let Ok(length) = u16::try_from(message.len() + HEAD) else { return false };
        if self.output.len() - self.written + usize::from(length) > OUTPUT {
            return false;
        }
        if self.written > 0 && self.output.len() + usize::from(length) > OUTPUT {
            self.output.drain(..self.written);
            self.written = 0;
        }
        let [high, low] = length.to_be_bytes();
        self.output.extend_from_slice(&[3, 0, high, low]);
        self.output.extend_from_slice(message);
        self.stuck_since = self.stuck_since.or(Some(now));
        true
    }

    /// Sends what the kernel takes.
    pub fn flush(&mut self, now: Time) -> Option<End> {
        while self.writable && self.has_unsent() {
            match self.socket.write(self.output.get(self.written..).unwrap_or_default()) {
                Ok(octets) => {
                    self.written += octets;
                    self.stuck_since = Some(now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(End::Ended),
            }
        }
        if !self.has_unsent() && !self.output.is_empty() {
            self.output.clear();
            (self.written, self.stuck_since) = (0, None);
        }
        None
    }

    /// Whether it has waited for too long, and for what.
    pub fn overdue(&self, now: Time) -> Option<End> {
        let long = |since: Option<Time>| since.is_some_and(|since| now.since(since) >= PATIENCE);
        if !self.open {
            return long(Some(self.made)).then_some(End::Ended);
        }
        if long(self.stuck_since) { Some(End::Stuck) } else { long(self.half_since).then_some(End::Malformed) }
    }

    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The length of the TPKT that begins here, head included; `None`: more of it must come first.
fn length(input: &[u8], longest: usize) -> Result<Option<usize>, End> {
    if input.first().is_some_and(|version| *version != 3) {
        return Err(End::Malformed);
    }
    let Some(&[_, _, high, low]) = input.first_chunk::<HEAD>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length < HEAD || length > longest { Err(End::Malformed) } else { Ok(Some(length)) }
}

/// An error of the kernel's that means nothing of a stream's own.
pub fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
