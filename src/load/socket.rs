//! The load generator's UDP socket: runs of equal-length datagrams in one call (UDP_SEGMENT), batches of datagrams in (recvmmsg, UDP_GRO).
//!
//! The only file of `load` with `unsafe`: the system calls that neither `std` nor `socket2` offer. Where the kernel refuses
//! UDP_SEGMENT, sendmmsg is used from then on. Unreachable peers are learned from the socket's error queue (IP_RECVERR).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr, timespec};
use socket2::{Domain, MsgHdr, MsgHdrMut, Protocol, SockAddr, SockAddrStorage, Socket, Type};

/// Datagrams (or merged runs of them) received by one call.
const RECEIVE_BATCH: usize = 32;
/// Bytes of a receive buffer: a merged run has at most this many.
const RECEIVE_BYTES: usize = 65_536;
/// Bytes of control messages for each received datagram.
const CONTROL_BYTES: usize = 64;
/// The most datagrams of one UDP_SEGMENT send that every kernel with UDP_SEGMENT takes.
pub const SEGMENTS_MAX: usize = 64;
/// The most bytes of one UDP_SEGMENT send.
pub const RUN_BYTES_MAX: usize = 65_000;
/// Socket option: the length that one send is cut into (linux/udp.h).
const UDP_SEGMENT: c_int = 103;
/// Socket option: datagrams of equal length are received merged (linux/udp.h).
const UDP_GRO: c_int = 104;
/// Asked of the kernel for each direction; it may grant less.
const SOCKET_BUFFER_BYTES: usize = 8 << 20;

/// A bound socket with its receive buffers.
pub struct LoadSocket {
    socket: Socket,
    segment: bool,
    buffers: Vec<u8>,
    controls: Vec<[u64; CONTROL_BYTES / 8]>,
    names: Vec<SockAddrStorage>,
}

impl LoadSocket {
    /// A non-blocking socket bound to `listen`.
    pub fn bind(listen: SocketAddr) -> io::Result<LoadSocket> {
        let socket = Socket::new(Domain::for_address(listen), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        socket.set_nonblocking(true)?;
        socket.bind(&listen.into())?;
        // Old kernels refuse; then every datagram comes by itself.
        let _ = set_option(&socket, libc::SOL_UDP, UDP_GRO, 1);
        match listen {
            SocketAddr::V4(_) => set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?,
            SocketAddr::V6(_) => set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?,
        }
        Ok(LoadSocket {
            socket,
            segment: true,
            buffers: vec![0; RECEIVE_BATCH * RECEIVE_BYTES],
            controls: vec![[0; CONTROL_BYTES / 8]; RECEIVE_BATCH],
            names: (0..RECEIVE_BATCH).map(|_| SockAddrStorage::zeroed()).collect(),
        })
    }

    /// The address it is bound to.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Whether runs still go out as one UDP_SEGMENT send.
    pub fn segments(&self) -> bool {
        self.segment
    }

    /// Sends `run`, datagrams of `length` bytes each (the last may be shorter), at most [`SEGMENTS_MAX`] of them. Gives how many
    /// bytes the kernel took; less than all with `WouldBlock` when its buffer is full.
    pub fn send_run(&mut self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize> {
        if run.len() <= length {
            return self.socket.send_to(run, &to.into());
        }
        if self.segment {
            match self.send_segments(to, run, length) {
                Err(e) if matches!(e.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::ENOPROTOOPT | libc::EMSGSIZE)) => {
                    self.segment = false;
                }
                other => return other,
            }
        }
        self.send_each(to, run, length)
    }

    fn send_segments(&self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize> {
        let control = segment_control(length as u16);
        let to = SockAddr::from(to);
        let buffers = [io::IoSlice::new(run)];
        self.socket.sendmsg(&MsgHdr::new().with_addr(&to).with_buffers(&buffers).with_control(&control), 0)
    }

    fn send_each(&self, to: SocketAddr, run: &[u8], length: usize) -> io::Result<usize> {
        let to = SockAddr::from(to);
        let mut vectors = [iovec { iov_base: ptr::null_mut(), iov_len: 0 }; SEGMENTS_MAX];
        let mut headers = [mmsghdr { msg_hdr: header(ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut(), 0), msg_len: 0 }; SEGMENTS_MAX];
        let mut count = 0;
        for ((vector, slot), datagram) in vectors.iter_mut().zip(&mut headers).zip(run.chunks(length.max(1))) {
            *vector = iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
            slot.msg_hdr = header(to.as_ptr().cast_mut().cast(), to.len(), vector, ptr::null_mut(), 0);
            count += 1;
        }
        // SAFETY: the first `count` headers point to one initialised vector each, into `run`, and to the address `to`; all of them
        // outlive the call, and sendmmsg only reads what they point to.
        let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr(), count, 0) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(run.len().min(sent * length))
    }

    /// Receives at most one batch and hands each datagram to `take`; gives how many there were.
    pub fn receive(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) -> io::Result<usize> {
        let mut vectors = [iovec { iov_base: ptr::null_mut(), iov_len: 0 }; RECEIVE_BATCH];
        let mut headers = [mmsghdr { msg_hdr: header(ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut(), 0), msg_len: 0 }; RECEIVE_BATCH];
        let memory = self.buffers.chunks_exact_mut(RECEIVE_BYTES).zip(&mut self.names).zip(&mut self.controls);
        for ((vector, slot), ((buffer, name), control)) in vectors.iter_mut().zip(&mut headers).zip(memory) {
            *vector = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let name_length = size_of::<SockAddrStorage>() as libc::socklen_t;
            slot.msg_hdr = header((&raw mut *name).cast(), name_length, vector, control.as_mut_ptr().cast(), CONTROL_BYTES);
        }
        let fd = self.socket.as_raw_fd();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: each header points to its own name, vector and control buffer, all of the lengths given and alive until the
        // call returns; a null timeout is allowed.
        let received = unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), RECEIVE_BATCH as c_uint, flags, ptr::null_mut()) };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        let mut count = 0;
        for (i, header) in headers.iter().enumerate().take(received) {
            // SAFETY: the kernel wrote a whole address of `msg_namelen` bytes into this zeroed storage.
            let name =
                unsafe { SockAddr::new(std::mem::replace(&mut self.names[i], SockAddrStorage::zeroed()), header.msg_hdr.msg_namelen) };
            let Some(from) = name.as_socket() else { continue };
            let bytes = &self.buffers[i * RECEIVE_BYTES..][..(header.msg_len as usize).min(RECEIVE_BYTES)];
            let segment = merged_length(&self.controls[i], header.msg_hdr.msg_controllen).unwrap_or(bytes.len());
            for datagram in bytes.chunks(segment.max(1)) {
                take(from, datagram);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Takes an address off the error queue that the network reported as unreachable.
    pub fn take_unreachable(&self) -> Option<SocketAddr> {
        let mut address = SockAddr::from(SocketAddr::from(([0, 0, 0, 0], 0)));
        let mut control = [std::mem::MaybeUninit::uninit(); 512];
        let mut message = MsgHdrMut::new().with_addr(&mut address).with_control(&mut control);
        self.socket.recvmsg(&mut message, libc::MSG_ERRQUEUE).ok()?;
        address.as_socket()
    }

    /// Sleeps until a datagram is there or `timeout` has passed.
    pub fn wait(&self, timeout: Duration) {
        self.poll(libc::POLLIN, timeout);
    }

    /// Sleeps until the kernel has room to send or `timeout` has passed.
    pub fn wait_writable(&self, timeout: Duration) {
        self.poll(libc::POLLOUT, timeout);
    }

    fn poll(&self, events: i16, timeout: Duration) {
        let mut descriptor = libc::pollfd { fd: self.socket.as_raw_fd(), events, revents: 0 };
        let timeout = timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos().into() };
        // SAFETY: one pollfd and a timespec that outlive the call; a null signal mask changes nothing. An error only ends the sleep.
        unsafe { libc::ppoll(&mut descriptor, 1, &timeout, ptr::null()) };
    }
}

impl From<LoadSocket> for UdpSocket {
    fn from(socket: LoadSocket) -> UdpSocket {
        socket.socket.into()
    }
}

fn set_option(socket: &Socket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: `value` is an int that outlives the call, and its length is given.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast::<c_void>(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn header(name: *mut c_void, name_length: libc::socklen_t, vector: *mut iovec, control: *mut c_void, control_length: usize) -> msghdr {
    // SAFETY: all zeros is a valid msghdr; its padding on some C libraries has no names.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name;
    header.msg_namelen = name_length;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = control_length as _;
    header
}

/// Length of a control message's header, and so where its data starts.
const CONTROL_HEADER: usize = 16;

/// The control message that asks for segments of `length` bytes: `cmsghdr` {length, level, type} and a u16, filled up to 8 bytes.
fn segment_control(length: u16) -> [u8; CONTROL_HEADER + 8] {
    let mut control = [0; CONTROL_HEADER + 8];
    control[0..8].copy_from_slice(&(CONTROL_HEADER + 2).to_ne_bytes());
    control[8..12].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control[12..16].copy_from_slice(&UDP_SEGMENT.to_ne_bytes());
    control[16..18].copy_from_slice(&length.to_ne_bytes());
    control
}

/// The length of the datagrams that UDP_GRO merged, from the first control message; `None` when nothing was merged.
fn merged_length(control: &[u64; CONTROL_BYTES / 8], control_length: usize) -> Option<usize> {
    let kind = u64::from(libc::SOL_UDP as u32) | u64::from(UDP_GRO as u32) << 32;
    let kind = if cfg!(target_endian = "big") { kind.rotate_left(32) } else { kind };
    if control_length < CONTROL_HEADER + size_of::<c_int>() || control[1] != kind {
        return None;
    }
    let data = control[2].to_ne_bytes();
    Some(c_int::from_ne_bytes([data[0], data[1], data[2], data[3]]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (LoadSocket, LoadSocket, SocketAddr, SocketAddr) {
        let bind = || LoadSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let (a, b) = (bind(), bind());
        let (at_a, at_b) = (a.local_address().unwrap(), b.local_address().unwrap());
        (a, b, at_a, at_b)
    }

    fn receive_all(socket: &mut LoadSocket, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut got = Vec::new();
        for _ in 0..1000 {
            match socket.receive(|from, datagram| got.push((from, datagram.to_vec()))) {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
            }
            if got.len() >= count {
                break;
            }
            socket.wait(Duration::from_millis(5));
        }
        got
    }

    #[test]
    fn runs_arrive_as_single_datagrams_segmented_or_not() {
        for segment in [true, false] {
            let (mut a, mut b, at_a, at_b) = pair();
            a.segment = segment;
            let run: Vec<u8> = (0..10u8).flat_map(|i| [b'a' + i; 32]).take(9 * 32 + 7).collect();
            assert_eq!(a.send_run(at_b, &run, 32).unwrap(), run.len());
            let got = receive_all(&mut b, 10);
            assert_eq!(got.iter().map(|g| g.1.clone()).collect::<Vec<_>>(), run.chunks(32).map(<[u8]>::to_vec).collect::<Vec<_>>());
            assert!(got.iter().all(|g| g.0 == at_a));
        }
    }

    #[test]
    fn a_refusing_port_is_reported() {
        let (mut a, b, _, at_b) = pair();
        drop(UdpSocket::from(b));
        a.send_run(at_b, b"x", 1).unwrap();
        let reported = (0..200).find_map(|_| {
            a.wait(Duration::from_millis(1));
            a.take_unreachable()
        });
        assert_eq!(reported, Some(at_b));
    }

    #[test]
    fn nothing_received_would_block() {
        let (mut a, ..) = pair();
        assert_eq!(a.receive(|_, _| ()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
