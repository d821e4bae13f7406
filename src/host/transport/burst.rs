//! Datagrams received several at a time from any socket, into memory of its own: for sockets that are looked at when it is time, such as
//! those of a card, instead of being waited for.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::socket::{CONTROL_SIZE, RawAddress, receive_timestamp};

/// The most datagrams of one call.
pub const BURST: usize = 16;

/// Room for some datagrams.
pub struct Burst {
    octets: Box<[u8]>,
    /// Octets for each.
    size: usize,
    heads: [Head; BURST],
    count: usize,
}

/// What the kernel said of a datagram.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Head {
    name: [u8; 32],
    control: [u8; CONTROL_SIZE],
    name_length: u32,
    control_length: u32,
    length: u32,
    cut: bool,
}

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// When it arrived, in nanoseconds since 1970, if the socket notes that.
    pub arrival: Option<u64>,
    /// What it says.
    pub octets: &'a [u8],
}

impl Burst {
    /// For datagrams of at most `size` octets; longer ones are dropped.
    pub fn new(size: usize) -> Burst {
        let head = Head { name: [0; 32], control: [0; CONTROL_SIZE], name_length: 0, control_length: 0, length: 0, cut: false };
        Burst { octets: vec![0; size * BURST].into(), size, heads: [head; BURST], count: 0 }
    }

    /// Takes what has arrived at `socket`, [`BURST`] datagrams at most, in place of those of the last call. Says how many; fewer than
    /// [`BURST`]: the socket is empty.
    ///
    /// # Errors
    /// What the socket says but that nothing has arrived.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: all zero is a valid `mmsghdr`: null pointers and lengths of zero.
        let mut headers: [libc::mmsghdr; BURST] = unsafe { mem::zeroed() };
        let mut places = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BURST];
        let parts = headers.iter_mut().zip(&mut places).zip(&mut self.heads).zip(self.octets.chunks_exact_mut(self.size));
        for (((header, place), head), octets) in parts {
            *place = libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() };
            let header = &mut header.msg_hdr;
            header.msg_name = head.name.as_mut_ptr().cast();
            header.msg_namelen = RawAddress::SIZE as u32;
            header.msg_iov = place;
            header.msg_iovlen = 1;
            header.msg_control = head.control.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_SIZE;
        }
        // SAFETY: each of the headers points to a name, a control block, an iovec and octets of its own with the lengths it says, all alive
        // and borrowed by this call alone.
        let result = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), BURST as u32, libc::MSG_DONTWAIT as _, std::ptr::null_mut())
        };
        let count = match usize::try_from(result) {
            Ok(count) => count,
            Err(_) => {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
            }
        };
        for (header, head) in headers.iter().zip(&mut self.heads).take(count) {
            head.name_length = header.msg_hdr.msg_namelen;
            head.control_length = header.msg_hdr.msg_controllen as u32;
            head.length = header.msg_len;
            head.cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        }
        self.count = count;
        Ok(count)
    }

    /// The datagram number `place` of the last call; `None` when it was too long or has no sender, and beyond the last.
    pub fn get(&self, place: usize) -> Option<Received<'_>> {
        let head = self.heads.get(place).filter(|head| place < self.count && !head.cut)?;
        let from = RawAddress::parse(head.name.get(..head.name_length as usize)?)?;
        let arrival = head.control.get(..head.control_length as usize).and_then(receive_timestamp);
        let start = place * self.size;
        let octets = self.octets.get(start..start + (head.length as usize).min(self.size))?;
        Some(Received { from, arrival, octets })
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::{SocketSettings, bind};
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_arrived_is_taken_at_once_with_sender_and_time() {
        let socket = bind(&["127.0.0.1:0".parse().unwrap()], &SocketSettings::default()).unwrap().remove(0);
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut burst = Burst::new(64);
        assert_eq!(burst.receive(socket.as_fd()).unwrap(), 0);
        let to = socket.local_addr().unwrap();
        for length in [1, 64, 65, 0].into_iter().chain([3; 20]) {
            peer.send_to(&vec![length as u8; length], to).unwrap();
        }
        assert_eq!(burst.receive(socket.as_fd()).unwrap(), BURST);
        let first = burst.get(0).unwrap();
        assert_eq!((first.octets, first.from), (&[1u8][..], peer.local_addr().unwrap()));
        assert!(first.arrival.is_some());
        assert_eq!(burst.get(1).map(|received| received.octets.len()), Some(64));
        assert!(burst.get(2).is_none() && burst.get(3).is_some_and(|received| received.octets.is_empty()));
        assert_eq!(burst.receive(socket.as_fd()).unwrap(), 8);
        assert!(burst.get(7).is_some() && burst.get(8).is_none());
    }
}
