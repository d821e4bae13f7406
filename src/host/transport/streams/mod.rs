//! Streams beside datagrams: H.248 over TCP, each message in a TPKT (RFC 3525 D.2).
//!
//! [`Streams`] is a transport around another one. What comes on a stream goes into a frame of the other one and looks like a datagram
//! whose listen address has the bit [`STREAM`]; what is sent from such an address leaves on the stream towards its destination. Nothing
//! else of a core knows of streams. Readiness comes through what the other transport sleeps on (with io_uring: through its ring).
//!
//! A stream is opened when there is something to send to a controller and none is there, or by the controller; only addresses of controllers
//! are taken. Each has bounded buffers, and there are [`PER_LINE`] of them for each listen address, shared evenly by the hosts of its
//! controllers: one that comes again and again without ending its streams takes no place of another.
//!
//! Invariant: a core reads no more from streams than it has frames and send slots for; the rest waits at the other side.

mod connection;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::socket::explain_bind;
use super::{Slot, Stats, Stray, Transport, Waker, reports, sys};
use crate::host::clock::{Clock, WallClock};
use crate::proto::base::{FrameRef, Time};
use crate::proto::plan::STREAM;
use connection::{Connection, End, Next, PATIENCE, is_passing};

/// Streams of one listen address at a time.
pub const PER_LINE: usize = crate::config::STREAMS_EACH;
/// Octets a stream has at most, for the bound on memory: what waits to be sent.
pub const OUTPUT: usize = connection::OUTPUT;
/// How often what waits is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// After a stream to an address was begun none is begun to the same one for so long, whatever became of it.
const PAUSE: Duration = Duration::from_millis(500);
/// A stream that says nothing is asked whether it is there after so long, and so often.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// A listen address with streams.
#[derive(Clone, Debug)]
pub struct StreamLine {
    /// Its place among the listen addresses, with [`STREAM`].
    pub local: u8,
    /// The address.
    pub listen: SocketAddr,
    /// Who may be at the other end, and where streams are opened to.
    pub controllers: Vec<SocketAddr>,
}

/// Binds the listen address of a line; streams from there on come to whoever takes the socket.
///
/// # Errors
/// Why it could not be bound.
pub fn listen(line: &StreamLine, dscp: u8) -> io::Result<std::net::TcpListener> {
    let about =
        |error: io::Error| io::Error::new(error.kind(), format!("h248 listen address {} (TCP): {}", line.listen, explain_bind(error)));
    let bind = || {
        let socket = new_socket(line.listen, dscp)?;
        socket.set_reuse_address(true)?;
        socket.bind(&line.listen.into())?;
        socket.listen(PER_LINE as i32)?;
        Ok(socket.into())
    };
    bind().map_err(about)
}

fn new_socket(address: SocketAddr, dscp: u8) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    let traffic_class = u32::from(dscp & 63) << 2;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
        socket.set_tclass_v6(traffic_class)?;
    } else {
        socket.set_tos_v4(traffic_class)?;
    }
    Ok(socket)
}

/// How soon a stream notices that the other side is gone. What is missing of this makes it slower to, no more.
fn set_options(socket: SockRef<'_>) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4).with_retries(3);
    let _ = socket.set_tcp_keepalive(&keepalive);
    // Nobody is asked while something waits to be acknowledged, and the kernel would repeat that for a quarter of an hour.
    let _ = socket.set_tcp_user_timeout(Some(PATIENCE));
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_send_buffer_size(OUTPUT / 2);
}

/// Streams that each host among these may have: as there is always a place for the first one of a host, the gateway can open it.
fn share(controllers: &[SocketAddr]) -> usize {
    let hosts = controllers.iter().map(SocketAddr::ip).collect::<HashSet<_>>().len();
    (PER_LINE / hosts.max(1)).max(1)
}

struct Line {
    plan: StreamLine,
    /// Streams that one host has at most.
    share: usize,
    listener: TcpListener,
    /// By controller: no stream is opened to it before.
    not_before: Vec<Time>,
}

/// See the module's page.
pub struct Streams {
    inner: Box<dyn Transport>,
    poll: Poll,
    events: Events,
    lines: Vec<Line>,
    connections: Vec<Option<Connection>>,
    /// The stream that is read first in this turn.
    turn: usize,
    opened: u64,
    ended: VecDeque<(u8, SocketAddr)>,
    /// Something may be read that there was no room for.
    unread: bool,
    longest: usize,
    dscp: u8,
    wall: WallClock,
    now: Time,
    looked: Time,
    stats: Stats,
}

impl Streams {
    /// Around `inner`. `longest`: octets of the longest message that is taken.
    ///
    /// # Errors
    /// When the kernel refuses, or `inner` cannot watch.
    pub fn open(
        mut inner: Box<dyn Transport>,
        lines: Vec<(StreamLine, std::net::TcpListener)>,
        (longest, dscp): (usize, u8),
        clock: &Clock,
    ) -> io::Result<Streams> {
        let poll = Poll::new()?;
        inner.watch(poll.as_raw_fd())?;
        let connections: Vec<_> = (0..lines.len() * PER_LINE).map(|_| None).collect();
        let mut made = Vec::new();
        for (place, (plan, listener)) in lines.into_iter().enumerate() {
            let mut listener = TcpListener::from_std(listener);
            poll.registry().register(&mut listener, Token(connections.len() + place), Interest::READABLE)?;
            made.push(Line { not_before: vec![Time::ZERO; plan.controllers.len()], share: share(&plan.controllers), plan, listener });
        }
        Ok(Streams {
            inner,
            poll,
            events: Events::with_capacity(64),
            lines: made,
            connections,
            turn: 0,
            opened: 0,
            ended: VecDeque::new(),
            unread: false,
            longest,
            dscp,
            wall: WallClock::new(clock),
            now: clock.now(),
            looked: Time::ZERO,
            stats: Stats::default(),
        })
    }

    /// Takes what epoll has to say.
    fn look(&mut self) {
        loop {
            // An interrupted poll is looked at in the next turn.
            if self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err() {
                return;
            }
            let (mut accepts, mut over) = (0u64, Vec::new());
            let mut count = 0;
            for event in &self.events {
                count += 1;
                let Token(place) = event.token();
                if place >= self.connections.len() {
                    accepts |= 1 << (place - self.connections.len()).min(63);
                } else if let Some(Some(connection)) = self.connections.get_mut(place) {
                    let readable = event.is_readable() || event.is_read_closed() || event.is_error();
                    self.unread = true;
                    over.extend(connection.note(readable, event.is_writable()).map(|end| (place, end)));
                }
            }
            over.into_iter().for_each(|(place, end)| self.end(place, end));
            (0..self.lines.len()).filter(|line| accepts & 1 << line != 0).for_each(|line| self.accept(line));
            if count < 64 {
                return;
            }
        }
    }

    fn accept(&mut self, line: usize) {
        loop {
            let Some(own) = self.lines.get(line) else { return };
            let (socket, peer) = match own.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if is_passing(&error) && error.kind() != io::ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            if own.plan.controllers.iter().any(|known| known.ip() == peer.ip()) && self.keep(socket, line, peer, true).is_some() {
                continue;
            }
            self.stats.streams_refused += 1;
        }
    }

    /// Opens a stream to a controller, unless that failed a moment ago.
    fn connect(&mut self, line: usize, peer: SocketAddr) -> Option<usize> {
        let own = self.lines.get_mut(line)?;
        let place = own.plan.controllers.iter().position(|known| *known == peer)?;
        let not_before = own.not_before.get_mut(place).filter(|at| **at <= self.now)?;
        *not_before = self.now + PAUSE;
        let from = SocketAddr::new(own.plan.listen.ip(), 0);
        let connect = || {
            let socket = new_socket(peer, self.dscp)?;
            socket.bind(&from.into())?;
            match socket.connect(&peer.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                _ => Ok(socket),
            }
        };
        let socket: std::net::TcpStream = connect().ok()?.into();
        self.keep(TcpStream::from_std(socket), line, peer, false)
    }

    /// A new stream gets a place, if there is one and its host has not as many as it may.
    fn keep(&mut self, socket: TcpStream, line: usize, peer: SocketAddr, open: bool) -> Option<usize> {
        let places = line * PER_LINE..(line + 1) * PER_LINE;
        let own = self.connections.get(places.clone())?;
        if own.iter().flatten().filter(|other| other.peer.ip() == peer.ip()).count() >= self.lines.get(line)?.share {
            return None;
        }
        let place = places.zip(own).find_map(|(place, connection)| connection.is_none().then_some(place))?;
        set_options(SockRef::from(&socket));
        let fd = socket.as_raw_fd();
        sys::stamp_arrivals(socket.as_fd());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&fd), Token(place), interest).ok()?;
        self.opened += 1;
        self.stats.streams_opened += 1;
        self.unread |= open;
        let made = Connection::new(socket, (line, peer), (self.opened, open), self.longest, self.now);
        *self.connections.get_mut(place)? = Some(made);
        Some(place)
    }

    /// The stream from `local` towards `to`: the one there, the latest with that host, or a new one. One that is not open yet may never be,
    /// so any that is open comes first.
    fn towards(&mut self, local: u8, to: SocketAddr) -> Option<usize> {
        let line = self.lines.iter().position(|line| line.plan.local == local)?;
        let of_line = |place: &(usize, &Option<Connection>)| place.0 / PER_LINE == line;
        let there = self.connections.iter().enumerate().filter(of_line);
        let there = there.filter_map(|(place, connection)| connection.as_ref().map(|connection| (place, connection)));
        let there = there.filter(|(_, connection)| connection.peer.ip() == to.ip());
        let best = there.max_by_key(|(_, connection)| (connection.open, connection.peer == to, connection.number));
        best.map(|(place, _)| place).or_else(|| self.connect(line, to))
    }

    fn end(&mut self, place: usize, end: End) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::take) else { return };
        let _ = self.poll.registry().deregister(&mut SourceFd(&connection.fd()));
        self.stats.streams_ended += 1;
        self.stats.streams_malformed += u64::from(end == End::Malformed);
        let Some(line) = self.lines.get(connection.line) else { return };
        let other = |other: &Connection| other.line == connection.line && other.open && other.peer.ip() == connection.peer.ip();
        if connection.open && !self.connections.iter().flatten().any(other) && self.ended.len() < self.connections.len() {
            self.ended.push_back((line.plan.local, connection.peer));
        }
    }

    /// Messages that have come, into frames, at most `room` of them.
    fn read(&mut self, mut room: usize, into: &mut Vec<FrameRef>) {
        self.unread = false;
        self.wall.refresh(self.now);
        self.turn = self.turn.wrapping_add(1);
        let count = self.connections.len();
        for step in 0..count {
            let place = (self.turn + step) % count;
            let over = loop {
                let Streams { connections, lines, inner, stats, wall, now, .. } = self;
                let Some(Some(connection)) = connections.get_mut(place) else { break None };
                if !connection.open {
                    break None;
                }
                if room == 0 {
                    self.unread |= connection.has_more();
                    break None;
                }
                let (from, local) = (connection.peer, lines.get(connection.line).map_or(0, |line| line.plan.local));
                match connection.next(wall, *now) {
                    Next::Message(bytes, arrival) => {
                        let Some(frame) = inner.adopt(&Stray { from, local, arrival, bytes }) else {
                            self.unread = true;
                            break None;
                        };
                        into.push(frame);
                        connection.taken();
                        stats.received += 1;
                        room -= 1;
                    }
                    Next::Nothing => break None,
                    Next::End(end) => break Some(end),
                }
            };
            if let Some(end) = over {
                self.end(place, end);
            }
        }
    }

    /// Streams that have waited for too long end.
    fn expire(&mut self) {
        self.looked = self.now;
        for place in 0..self.connections.len() {
            let overdue = self.connections.get(place).and_then(Option::as_ref).and_then(|connection| connection.overdue(self.now));
            if let Some(end) = overdue {
                self.end(place, end);
            }
        }
    }
}

impl Transport for Streams {
    fn receive(&mut self, budget: usize, into: &mut Vec<FrameRef>) -> Time {
        let before = into.len();
        self.now = self.inner.receive(budget, into);
        if self.inner.watched_is_ready() {
            self.look();
        }
        if self.unread {
            let taken = into.len() - before;
            self.read(budget.min(self.inner.free_slots()).saturating_sub(taken), into);
        }
        if self.now.since(self.looked) >= LOOK {
            self.expire();
        }
        self.now
    }

    fn adopt(&mut self, stray: &Stray<&[u8]>) -> Option<FrameRef> {
        self.inner.adopt(stray)
    }

    fn release(&mut self, frame: FrameRef) {
        self.inner.release(frame);
    }

    fn reserve(&mut self) -> Option<Slot> {
        self.inner.reserve()
    }

    fn buffer(&mut self, slot: &Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }

    fn send(&mut self, slot: Slot, len: usize, to: SocketAddr, local: u8) {
        if local & STREAM == 0 {
            return self.inner.send(slot, len, to, local);
        }
        let sent = match self.towards(local, to) {
            Some(place) => {
                let message = self.inner.buffer(&slot).get(..len).unwrap_or_default();
                let connection = self.connections.get_mut(place).and_then(Option::as_mut);
                connection.is_some_and(|connection| connection.queue(message, self.now))
            }
            None => false,
        };
        self.stats.sent += u64::from(sent);
        self.stats.streams_full += u64::from(!sent);
        self.inner.abandon(slot);
    }

    fn abandon(&mut self, slot: Slot) {
        self.inner.abandon(slot);
    }

    fn free_slots(&self) -> usize {
        self.inner.free_slots()
    }

    fn flush(&mut self) {
        self.inner.flush();
        for place in 0..self.connections.len() {
            let now = self.now;
            if let Some(end) = self.connections.get_mut(place).and_then(Option::as_mut).and_then(|connection| connection.flush(now)) {
                self.end(place, end);
            }
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>, idle: &mut dyn FnMut() -> bool) {
        self.flush();
        if !self.unread || self.inner.free_slots() == 0 {
            self.inner.sleep(timeout, idle);
        }
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn watch(&mut self, fd: RawFd) -> io::Result<()> {
        self.inner.watch(fd)
    }

    fn watched_is_ready(&mut self) -> bool {
        self.inner.watched_is_ready()
    }

    fn take_ended(&mut self) -> Option<(u8, SocketAddr)> {
        self.ended.pop_front()
    }

    fn take_report(&mut self) -> Option<reports::Report> {
        self.inner.take_report()
    }

    fn stats(&mut self) -> Stats {
        self.inner.stats().plus(&self.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_whose_data_is_not_acknowledged_ends_as_soon_as_one_that_is_not_read() {
        let socket = new_socket(([127, 0, 0, 1], 0).into(), 0).unwrap();
        set_options(SockRef::from(&socket));
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(PATIENCE));
    }

    #[test]
    fn the_places_of_a_listen_address_are_enough_for_the_share_of_each_host() {
        let hosts = |count: u8| (1..=count).flat_map(|host| [2944, 2945].map(|port| ([192, 0, 2, host], port).into())).collect::<Vec<_>>();
        assert_eq!([1, 2, 3, 8].map(|count| share(&hosts(count))), [16, 8, 5, 2]);
    }
}
