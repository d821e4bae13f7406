//! What the client asks and listens by.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::SEGMENTS;
use tollgate::load::line::{BypassLine, Line};

/// A way to a subject.
pub trait Wire {
    /// Sends requests, equally long, one behind the other: all of them or none.
    fn send(&mut self, requests: &[u8], length: usize) -> bool;

    /// Hands at most one batch of responses to `take`; how many there were.
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> usize;
}

/// A kernel socket. It sends with UDP_SEGMENT, and knows nothing of what is merged in what it gets.
pub struct Kernel {
    socket: UdpSocket,
    /// Length of the requests in one call of the kernel.
    segment: usize,
    response: Vec<u8>,
}

impl Kernel {
    /// From a bound socket.
    pub fn new(socket: UdpSocket, to: SocketAddr) -> Kernel {
        socket.connect(to).expect("connected");
        socket.set_nonblocking(true).expect("non-blocking");
        socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("a receive buffer");
        Kernel { socket, segment: 0, response: vec![0; 65_536] }
    }
}

/// A socket on the loopback interface.
pub fn loopback(to: SocketAddr) -> Box<dyn Wire> {
    Box::new(Kernel::new(UdpSocket::bind("127.0.0.1:0").expect("a port"), to))
}

impl Wire for Kernel {
    fn send(&mut self, requests: &[u8], length: usize) -> bool {
        if length != self.segment {
            set_option(&self.socket, libc::SOL_UDP, libc::UDP_SEGMENT, length as i32).expect("UDP_SEGMENT (Linux 4.18)");
            self.segment = length;
        }
        match self.socket.send(requests) {
            Ok(_) => true,
            // Full buffers and refusals from before the server listened.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => false,
            Err(error) => panic!("send: {error}"),
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < SEGMENTS {
            match self.socket.recv(&mut self.response) {
                Ok(length) => {
                    count += 1;
                    take(&self.response[..length]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => break,
                Err(error) => panic!("recv: {error}"),
            }
        }
        count
    }
}

/// Past the kernel at the client's side too, as `tollgate load --xdp` does.
pub struct Past {
    line: BypassLine,
    to: SocketAddr,
}

impl Past {
    /// At an open line.
    pub fn new(line: BypassLine, to: SocketAddr) -> Past {
        Past { line, to }
    }
}

impl Wire for Past {
    fn send(&mut self, requests: &[u8], length: usize) -> bool {
        match self.line.send_run(self.to, requests, length) {
            Ok(taken) => {
                assert_eq!(taken, requests.len(), "there are more slots than requests under way");
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("send: {error}"),
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> usize {
        self.line.receive(&mut |_, response| take(response)).unwrap_or(0)
    }
}

fn set_option(socket: &UdpSocket, level: i32, name: i32, value: i32) -> std::io::Result<()> {
    // SAFETY: `value` lives through the call and the length is its own.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size_of::<i32>() as u32) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
