//! Two network namespaces joined by a veth pair: the calling thread's own, where a gateway is to run, and a far one for its agents.
//!
//! Nothing is left behind: namespaces and interfaces go with the process. Threads and children of a thread are in its namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

/// The interface on this side.
pub const NEAR: &str = "gw0";
/// The interface on the far side.
pub const FAR: &str = "ca0";

/// The far namespace, and the way back.
pub struct Pair {
    near: File,
    far: File,
}

impl Pair {
    /// Moves the calling thread into a namespace of its own and makes the pair, with so many queues each way ("1": what a virtual
    /// machine's card often has). On this side 10.0.0.4 and .5 and fd00::4, on the far side 10.0.0.6 and .7 and fd00::6. The reason when
    /// that is not allowed here.
    pub fn new(queues: &str) -> Result<Pair, String> {
        let far = std::thread::spawn(leave).join().map_err(|_| "a thread ended".to_owned())?;
        let pair = far.and_then(|far| Ok(Pair { far, near: leave()? }));
        let pair = pair.map_err(|error| format!("no network namespace can be made here: {error}"))?;
        let far = format!("/proc/{}/fd/{}", std::process::id(), pair.far.as_raw_fd());
        let made = Command::new("ip")
            .args(["link", "add", NEAR, "numtxqueues", queues, "numrxqueues", queues, "type", "veth"])
            .args(["peer", "name", FAR, "netns", &far, "numtxqueues", queues, "numrxqueues", queues])
            .output();
        match made {
            Ok(made) if made.status.success() => {}
            other => return Err(format!("no veth pair can be made here: {other:?}")),
        }
        pair.within(|| {
            ip(&["link", "set", "lo", "up"]);
            ip(&["link", "set", FAR, "up"]);
            for address in ["10.0.0.6/24", "10.0.0.7/24"] {
                ip(&["address", "add", address, "dev", FAR]);
            }
            ip(&["address", "add", "fd00::6/64", "dev", FAR, "nodad"]);
        });
        ip(&["link", "set", "lo", "up"]);
        ip(&["link", "set", NEAR, "up"]);
        for address in ["10.0.0.4/24", "10.0.0.5/24"] {
            ip(&["address", "add", address, "dev", NEAR]);
        }
        ip(&["address", "add", "fd00::4/64", "dev", NEAR, "nodad"]);
        Ok(pair)
    }

    /// Does something in the far namespace. Sockets made there stay there.
    pub fn within<T>(&self, body: impl FnOnce() -> T) -> T {
        enter(&self.far);
        let result = body();
        enter(&self.near);
        result
    }
}

/// Makes the interface's senders complete their checksums, and so send each datagram for itself: they leave both to hardware
/// otherwise, which a veth pair does not have (`ethtool -K FAR tx off`).
pub fn complete_checksums(interface: &str) {
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        data: *const [u32; 2],
        rest: [u64; 2],
    }
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const STXCSUM: u32 = 0x17;
    let off = [STXCSUM, 0];
    let mut request = Request { name: [0; libc::IFNAMSIZ], data: &raw const off, rest: [0; 2] };
    request.name[..interface.len()].copy_from_slice(interface.as_bytes());
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // SAFETY: the request and the two words it points to live through the call, which reads them.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw const request) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// Moves the calling thread into a new namespace.
fn leave() -> io::Result<File> {
    // SAFETY: touches no memory of ours.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    File::open("/proc/thread-self/ns/net")
}

fn enter(namespace: &File) {
    // SAFETY: touches no memory of ours.
    let done = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// Orders something of the calling thread's network.
pub fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
}
