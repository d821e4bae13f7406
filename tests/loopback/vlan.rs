//! AF_XDP on a VLAN. The kernel of a test machine may have no VLAN interfaces, so the listen address lies on the card itself here, and
//! that its frames carry tags is told to the bypass directly; the other side writes and reads frames byte by byte.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use tollgate::config::{XdpCopy, XdpMode};
use tollgate::host::clock::Clock;
use tollgate::host::frame::{FrameLayout, FrameTable};
use tollgate::host::transport::xdp::{Bypass, BypassSettings, Netlink, SourceList, interface, umem};
use tollgate::host::transport::{BATCH, Kind, SocketSettings, TransportSettings, bind, wake};

use crate::pair::{FAR, NEAR, Pair, ip};

const VLAN: u16 = 100;
const PORT: u16 = 2427;

/// A socket that sends and receives whole frames.
struct Raw(OwnedFd);

impl Raw {
    fn new() -> Raw {
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, all) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the kernel just made it, nobody else knows it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let on = 1i32;
        // SAFETY: the option's value lives through the call and has the length given.
        let done = unsafe { libc::setsockopt(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, (&raw const on).cast(), 4) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        Raw(socket)
    }

    fn send(&self, interface: &str, frame: &[u8]) {
        let name = std::ffi::CString::new(interface).unwrap();
        // SAFETY: a text that ends with zero, alive through the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        // SAFETY: all zero is a valid address of this kind.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        (to.sll_family, to.sll_ifindex, to.sll_halen) = (libc::AF_PACKET as u16, index as i32, 6);
        let (at, size) = ((&raw const to).cast(), size_of_val(&to) as u32);
        // SAFETY: frame and address live through the call and have the lengths given.
        let sent = unsafe { libc::sendto(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, at, size) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// The next frame, its tag taken out by the kernel, and the VLAN the tag named.
    fn receive(&self) -> Option<(u16, Vec<u8>)> {
        let (mut frame, mut control) = (vec![0u8; 2048], [0u64; 16]);
        let mut place = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: all zero is a valid header.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        (header.msg_iov, header.msg_iovlen) = (&raw mut place, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
        // SAFETY: the header points to buffers that live through the call, with their lengths.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, 0) };
        frame.truncate(usize::try_from(length).ok()?);
        // Behind the control message's header: status, three sizes, the tag.
        let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let tag = u16::from_ne_bytes([bytes[16 + 16], bytes[16 + 17]]);
        Some((tag & 0x0fff, frame))
    }
}

fn mac(interface: &str) -> [u8; 6] {
    let shown = std::process::Command::new("ip").args(["-oneline", "link", "show", interface]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    let mac = text.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap().to_owned();
    let octets: Vec<u8> = mac.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    octets.try_into().unwrap()
}

/// UDP from 10.0.0.6:2727 to 10.0.0.4:2427, without a UDP checksum, with these tags.
fn frame(to: [u8; 6], from: [u8; 6], tags: &[u16], text: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    tags.iter().for_each(|tag| frame.extend([[0x81, 0x00], tag.to_be_bytes()].concat()));
    frame.extend([0x08, 0x00]);
    let mut header = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 6, 10, 0, 0, 4];
    header[2..4].copy_from_slice(&(28 + text.len() as u16).to_be_bytes());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    header[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend(header);
    for word in [2727, PORT, 8 + text.len() as u16, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(text);
    frame
}

#[test]
fn a_vlan_is_served_by_its_tags_and_no_other() {
    let test = || {
        let pair = match Kind::Xdp.probe().and_then(|()| Pair::new("1")) {
            Ok(pair) => pair,
            Err(reason) => return eprintln!("skipped: a_vlan_is_served_by_its_tags_and_no_other: {reason}"),
        };
        for (mode, vlan) in [(XdpMode::Native, VLAN), (XdpMode::Generic, VLAN), (XdpMode::Native, 0)] {
            serve(&pair, mode, vlan);
        }
    };
    std::thread::spawn(test).join().unwrap();
}

fn serve(pair: &Pair, mode: XdpMode, vlan: u16) {
    let near = mac(NEAR);
    let (raw, far) = pair.within(|| (Raw::new(), mac(FAR)));
    let text: String = far.map(|octet| format!("{octet:02x}")).join(":");
    ip(&["neighbour", "replace", "10.0.0.6", "lladdr", &text, "dev", NEAR, "nud", "permanent"]);
    let listen = vec![format!("10.0.0.4:{PORT}").parse().unwrap()];
    let mut places = interface::places(&mut Netlink::new(libc::NETLINK_ROUTE).unwrap(), &listen, None).unwrap();
    places[0].vlan = vlan;
    let sources = SourceList { anybody: true, ..SourceList::default() };
    let settings = BypassSettings { mode, copy: XdpCopy::Copy, ..BypassSettings::new(listen.clone(), sources) };
    let bypass = Bypass::over(&settings, places).unwrap();
    let chunks = [umem::layout(64, 32, 2048)];
    let (table, mut pools) = FrameTable::with_chunks(&[FrameLayout { frames: 64, size: 2048 }], &chunks).unwrap();
    let (_, sleeper) = wake::pair().unwrap();
    let clock = Clock::new();
    let sockets = bind(&listen, &SocketSettings::default()).unwrap();
    let settings = TransportSettings { send_slots: 32, slot_size: 2048, bypass: bypass.seat(0), ..TransportSettings::default() };
    let mut transport = Kind::Xdp.open(sockets, pools.remove(0), sleeper, clock, &settings).unwrap();
    let end = clock.now() + Duration::from_secs(10);
    // What the far side sent comes, by which way is said by the counter; the answer's tag is read.
    let mut ask = |tags: &[u16], to: [u8; 6]| {
        pair.within(|| raw.send(FAR, &frame(to, far, tags, b"AUEP 1 x MGCP 1.0")));
        let before = transport.stats();
        let mut frames = Vec::new();
        let quiet = clock.now() + Duration::from_millis(20);
        while frames.is_empty() && clock.now() < quiet {
            transport.receive(BATCH, &mut frames);
        }
        for frame in frames {
            let (from, local) = table.read(frame).map(|datagram| (datagram.meta().from, datagram.meta().local)).unwrap();
            assert_eq!(&*table.read(frame).unwrap(), b"AUEP 1 x MGCP 1.0");
            let slot = transport.reserve().unwrap();
            transport.buffer(&slot)[..6].copy_from_slice(b"200 1 ");
            transport.send(slot, 6, from, local);
            transport.release(frame);
        }
        transport.flush();
        let after = transport.stats();
        (after.received - before.received, after.bypass_received - before.bypass_received, after.bypass_sent - before.bypass_sent)
    };
    // The kernel takes what is untagged or has a priority only, and drops the tags it has no interface for.
    let own: &[u16] = if vlan == 0 { &[0x6000] } else { &[VLAN | 0x6000] };
    while ask(own, near).2 == 0 {
        assert!(clock.now() < end, "no answer past the kernel");
    }
    while raw.receive().is_some() {}
    assert_eq!(ask(own, near), (1, 1, 1), "{mode:?} {vlan}");
    assert_eq!(ask(&[], near), if vlan == 0 { (1, 1, 1) } else { (1, 0, 1) }, "{mode:?} {vlan}: untagged");
    for foreign in [99, 0x0fff, VLAN | 0x0800] {
        assert_eq!(ask(&[foreign], near), (0, 0, 0), "{mode:?} {vlan}: {foreign}");
    }
    if vlan == 0 {
        assert_eq!(ask(&[VLAN], near), (0, 0, 0), "{mode:?}: tagged");
    }
    // The kernel may take two tags that are only priorities.
    let (_, taken, sent) = ask(&[own[0], own[0]], near);
    assert_eq!(taken, 0, "{mode:?} {vlan}: two tags");
    assert_eq!(ask(own, [2, 0, 0, 0, 0, 9]).1, 0, "{mode:?} {vlan}: another's MAC address");
    let mut answers = 0;
    while let Some((tag, frame)) = raw.receive() {
        // Ours are UDP from the listen port; the rest is the kernel's.
        if frame.get(12..14) == Some(&[0x08, 0x00]) && frame.get(34..36) == Some(&PORT.to_be_bytes()) && frame.ends_with(b"200 1 ") {
            assert_eq!((tag, &frame[..6], &frame[6..12]), (vlan, far.as_slice(), near.as_slice()), "{mode:?}");
            answers += 1;
        }
    }
    assert_eq!(answers, 2 + sent, "{mode:?} {vlan}");
}
