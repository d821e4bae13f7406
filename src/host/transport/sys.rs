//! The few system calls the host needs that neither `std` nor `socket2` wraps.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::socket::{CONTROL_SIZE, RawAddress, receive_timestamp};
use super::steer::Instruction;

const _: () = assert!(mem::size_of::<Instruction>() == mem::size_of::<libc::sock_filter>());

/// Sets an integer socket option.
pub(super) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` lives through the call and the length given is its own; the kernel checks level and name.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), mem::size_of::<i32>() as u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel notes from now on when what is read came. Where it does not, the time of reading stands for it.
pub(super) fn stamp_arrivals(socket: BorrowedFd<'_>) {
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

/// Reads from a stream: how many octets, and when the last of them came, in nanoseconds since 1970.
pub(super) fn receive_stream(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    #[repr(C, align(8))]
    struct Control([u8; CONTROL_SIZE]);
    let mut control = Control([0; CONTROL_SIZE]);
    let mut place = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all zero is a valid `msghdr`: null pointers and lengths of zero.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut place;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: the header points to an iovec over `into` and a control block of the lengths it says, all alive through the call.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let octets = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    Ok((octets, control.0.get(..header.msg_controllen).and_then(receive_timestamp)))
}

/// Datagrams the kernel dropped at this socket so far because its receive buffer was full; 0 when the kernel does not say.
pub(super) fn dropped(socket: BorrowedFd<'_>) -> u32 {
    let mut values = [0u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut length = mem::size_of_val(&values) as libc::socklen_t;
    let place = values.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes to `values`, both alive through the call; it checks the rest.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, place, &mut length) };
    if result == 0 { values[libc::SK_MEMINFO_DROPS as usize] } else { 0 }
}

/// Bytes of a datagram that an error report has at most: enough for the first line of a command.
pub(super) const REPORT: usize = 512;

/// The next report on the socket's error queue that a datagram could not be delivered: where it was sent, and how it began; the number
/// of bytes in `sent`, and the code of ICMP that says why. `Some(None)`: a report about something else. `None`: no more.
pub(super) fn undelivered(socket: BorrowedFd<'_>, sent: &mut [u8; REPORT]) -> Option<Option<(SocketAddr, usize, u8)>> {
    #[repr(C, align(8))]
    struct Control([u8; 256]);
    let (mut name, mut control) = ([0u8; RawAddress::SIZE], Control([0; 256]));
    let mut place = libc::iovec { iov_base: sent.as_mut_ptr().cast(), iov_len: REPORT };
    // SAFETY: all zero is a valid `msghdr`: null pointers and lengths of zero.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = RawAddress::SIZE as u32;
    header.msg_iov = &raw mut place;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: the header points to a name, an iovec and a control block of the lengths it says, all alive through the call.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    let length = usize::try_from(result).ok()?;
    let control = control.0.get(..header.msg_controllen)?;
    let to = RawAddress::parse(name.get(..header.msg_namelen as usize)?);
    Some(unreachable_code(control).and_then(|code| Some((to?, length, code))))
}

/// The code of ICMP, when the control messages of a report are about a network (0), host (1), protocol (2) or port (3) that cannot be
/// reached; those of ICMPv6 in the numbers of ICMP.
fn unreachable_code(mut control: &[u8]) -> Option<u8> {
    const HEADER: usize = 16;
    while let Some(length) = control.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)) {
        let word = |at: usize| control.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes));
        let of_v4 = (word(8), word(12)) == (Some(libc::IPPROTO_IP), Some(libc::IP_RECVERR));
        let of_v6 = (word(8), word(12)) == (Some(libc::IPPROTO_IPV6), Some(libc::IPV6_RECVERR));
        // `sock_extended_err`: the error number, then origin, type and code in a byte each.
        let report = control.get(HEADER + 4..).and_then(|rest| rest.first_chunk::<3>());
        match report {
            Some(&[libc::SO_EE_ORIGIN_ICMP, 3, code]) if of_v4 => return (code <= 3).then_some(code),
            Some(&[libc::SO_EE_ORIGIN_ICMP6, 1, code]) if of_v6 => {
                return [(0, 0), (3, 1), (4, 3)].into_iter().find(|(v6, _)| *v6 == code).map(|(_, v4)| v4);
            }
            _ => {}
        }
        match control.get(length.max(HEADER).next_multiple_of(8)..) {
            Some(rest) => control = rest,
            None => return None,
        }
    }
    None
}

/// Lets receives poll the network card's queue for so long instead of waiting for its interrupt.
pub(super) fn busy_poll(socket: BorrowedFd<'_>, time: Duration) -> io::Result<()> {
    /// What a poll takes at most: the value AF_XDP drivers are run with.
    const BUDGET: i32 = 64;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, i32::try_from(time.as_micros()).unwrap_or(i32::MAX))?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, BUDGET)
}

/// Attaches a classic BPF program that chooses among the sockets of the group `socket` belongs to.
pub(super) fn attach_steering(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut().cast() };
    let size = mem::size_of_val(&program) as u32;
    let place = (&raw const program).cast();
    // SAFETY: `program` and the `len` instructions it points to, which have the layout of `sock_filter`, live through the call; the
    // kernel copies and checks them.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, place, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Detaches the program that chooses among the sockets of the group `socket` belongs to; there may be none.
pub(super) fn detach_steering(socket: BorrowedFd<'_>) -> io::Result<()> {
    match set_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_REUSEPORT_BPF, 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}

/// A new event counter, non-blocking.
pub(super) fn event() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor the kernel just made and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The user a Unix socket's peer ran as when it connected (SO_PEERCRED).
pub(in crate::host) fn peer_user(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = mem::size_of_val(&peer) as libc::socklen_t;
    let place = (&raw mut peer).cast();
    // SAFETY: the kernel writes at most `length` bytes to `peer`, both alive through the call; it checks the rest.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut length) };
    if result == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
}

/// Lets this process have so many open files if it may (RLIMIT_NOFILE); how many it may have now.
pub(in crate::host) fn allow_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit` to `limit`, which is alive through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let raised = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), ..limit };
    // SAFETY: the kernel reads one `rlimit` from `raised`, which is alive through the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(raised.rlim_cur)
}

/// CLOCK_BOOTTIME in nanoseconds: it never goes back, and goes on while the machine is suspended.
#[inline]
pub(in crate::host) fn boot_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` to `time`, which is alive through the call; it cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The user this process acts as.
pub(in crate::host) fn effective_user() -> u32 {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::geteuid() }
}
