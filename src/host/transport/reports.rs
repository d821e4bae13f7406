//! Reports that a datagram could not be delivered (ICMP unreachable), from the error queues of sockets.
//!
//! With reports on, the kernel also lets the next call on the socket fail, whatever it was about: who sees a call fail asks
//! [`Reports::read`] first, and does it again when that found something.

use super::sys::{self, REPORT};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Reports kept until the core takes them; more are dropped: they are hints.
const KEPT: usize = 16;

/// A datagram that was not delivered.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Where it was sent.
    pub to: SocketAddr,
    sent: [u8; REPORT],
    len: usize,
}

impl Report {
    /// How it began.
    pub fn sent(&self) -> &[u8] {
        self.sent.get(..self.len).unwrap_or_default()
    }
}

/// The code of ICMP of the next report on a socket that what it sent cannot be delivered; `Some(None)`: a report about something else.
/// `None`: no more.
pub fn unreachable(socket: BorrowedFd<'_>) -> Option<Option<u8>> {
    let report = sys::undelivered(socket, &mut [0; REPORT])?;
    Some(report.map(|(.., code)| code))
}

/// Reports come from now on, or no more; those that wait go then.
///
/// # Errors
/// What the kernel refused.
pub fn ask(socket: BorrowedFd<'_>, is_v4: bool, on: bool) -> std::io::Result<()> {
    let (level, name) = if is_v4 { (libc::IPPROTO_IP, libc::IP_RECVERR) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) };
    sys::set_option(socket, level, name, on.into())
}

/// Those of one transport.
#[derive(Debug)]
pub struct Reports {
    kept: VecDeque<Report>,
}

impl Reports {
    /// None.
    pub fn new() -> Reports {
        Reports { kept: VecDeque::with_capacity(KEPT) }
    }

    /// Empties the error queue of `socket`, as far as one turn should: whether there was something.
    pub fn read(&mut self, socket: BorrowedFd<'_>) -> bool {
        let mut any = false;
        for _ in 0..KEPT {
            let mut sent = [0; REPORT];
            let Some(report) = sys::undelivered(socket, &mut sent) else { break };
            any = true;
            if let Some((to, len, _)) = report.filter(|_| self.kept.len() < KEPT) {
                self.kept.push_back(Report { to, sent, len });
            }
        }
        any
    }

    /// The oldest.
    pub fn take(&mut self) -> Option<Report> {
        self.kept.pop_front()
    }
}

impl Default for Reports {
    fn default() -> Reports {
        Reports::new()
    }
}

/// Whether a call may have failed with this because of a report that is not about itself.
pub fn may_be_a_report(error: i32) -> bool {
    matches!(
        error,
        libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENOPROTOOPT | libc::EPROTO | libc::EACCES | libc::EHOSTDOWN
    )
}

#[cfg(test)]
mod tests {
    use super::super::{SocketSettings, bind};
    use super::*;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;

    /// G-RTX-13: a closed port is reported with the datagram that was sent there, and the next calls on the socket work again.
    #[test]
    fn a_closed_port_is_reported_with_what_was_sent() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = bind(&[any], &SocketSettings::default()).unwrap().remove(0);
        let closed = std::net::UdpSocket::bind(any).unwrap().local_addr().unwrap();
        let mut reports = Reports::new();
        assert!(!reports.read(socket.as_fd()));
        socket.send_to(b"RSIP 17 *@tgw MGCP 1.0\r\nRM: restart\r\n", closed).unwrap();
        assert!(reports.read(socket.as_fd()) && !reports.read(socket.as_fd()));
        let report = reports.take().unwrap();
        assert_eq!((report.to, report.sent()), (closed, &b"RSIP 17 *@tgw MGCP 1.0\r\nRM: restart\r\n"[..]));
        assert!(reports.take().is_none());
    }
}
