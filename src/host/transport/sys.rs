//! The few system calls the host needs that neither `std` nor `socket2` wraps.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::steer::Instruction;

const _: () = assert!(mem::size_of::<Instruction>() == mem::size_of::<libc::sock_filter>());

/// Sets an integer socket option.
pub(super) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` lives through the call and the length given is its own; the kernel checks level and name.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), mem::size_of::<i32>() as u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// The user this process acts as.
pub(in crate::host) fn effective_user() -> u32 {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::geteuid() }
}
