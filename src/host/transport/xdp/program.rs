//! The XDP program, in source: what it takes out of an interface's traffic for us, and what it leaves to the kernel.
//!
//! It takes exactly UDP over IPv4 without options and not fragmented, or over IPv6 without extension headers, with at most one VLAN
//! tag, to the interface's own MAC address, to one of our addresses and ports on the right VLAN, from the address of a listed agent,
//! short enough for a chunk; and only while a socket of ours is bound to the queue it came by. Everything else goes on to the kernel:
//! ARP, ICMP, fragments, encrypted packets, strangers. Behind the driver (generic) it also leaves what has the bare sum of the pseudo
//! header for a checksum: there that can be several datagrams in one (GSO, GRO), which only the kernel can take apart; in the driver there are
//! none. In front of what it takes it writes the time of arrival, so that waiting in the
//! receive ring counts.
//!
//! No compiler is needed to build this: [`assemble`] writes the instructions (RFC 9669) one by one, and the kernel checks them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use super::packet::{Mac, PACKET_HEADERS_MAX};
use super::sys::{self, Map};
use crate::config::XdpMode;
use crate::host::frame::CHUNK;

/// What the kernel keeps free in front of a packet in a chunk.
const KERNEL_HEADROOM: usize = 256;
/// The longest IP packet taken.
pub const PACKET_MAX: usize = CHUNK - KERNEL_HEADROOM - 18;
/// Bytes in front of what is taken: when it arrived, in nanoseconds of CLOCK_BOOTTIME.
pub const STAMP: usize = 8;
/// The most sources: far more than agents can have.
const SOURCES_MAX: u32 = 65_536;
/// The most listen addresses.
const LISTEN_MAX: u32 = 64;
/// The most queues of an interface.
pub const QUEUES_MAX: u32 = 64;

/// An address and port of ours, as the program compares it: the address (IPv4 mapped), the port and the VLAN as on the wire.
type ListenKey = [u8; 20];
/// The interface's MAC address, two octets of nothing, and two words: whether everybody may send, and whether bare sums are left.
type Settings = [u8; 16];

/// The kernel's kinds of map.
mod kind {
    pub const HASH: u32 = 1;
    pub const ARRAY: u32 = 2;
    pub const SOCKETS: u32 = 17;
}

/// BPF_XDP: where a link attaches the program.
const ATTACH_XDP: u32 = 37;
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;

/// The program on one interface, with its maps. It is detached with the last descriptor, so also when the process dies.
pub struct Program {
    listen: Map<20, 4>,
    sources: Map<16, 4>,
    settings: Map<4, 16>,
    sockets: Map<4, 4>,
    program: OwnedFd,
    /// Where it is attached, and the link that keeps it there.
    link: Option<(XdpMode, OwnedFd)>,
}

impl Program {
    /// Loads it; it takes nothing yet.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn load() -> Result<Program, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| match error.raw_os_error() {
                Some(libc::EPERM) => format!("{what}: not permitted (needs CAP_BPF and CAP_NET_ADMIN, or root)"),
                Some(libc::ENOSYS | libc::EINVAL) => format!("{what}: {error} (needs a kernel with BPF and XDP sockets)"),
                _ => format!("{what}: {error}"),
            }
        };
        let listen = Map::new(kind::HASH, LISTEN_MAX).map_err(failed("BPF map"))?;
        let sources = Map::new(kind::HASH, SOURCES_MAX).map_err(failed("BPF map"))?;
        let settings = Map::new(kind::ARRAY, 1).map_err(failed("BPF map"))?;
        let sockets = Map::new(kind::SOCKETS, QUEUES_MAX).map_err(failed("map of XDP sockets"))?;
        let code = assemble(&listen, &sources, &settings, &sockets);
        let mut log = vec![0; 1 << 16];
        let loaded = sys::program_load(&code, c"Apache-2.0", ATTACH_XDP, &mut []);
        let program = loaded.map_err(|error| {
            let reason = failed("XDP program")(error);
            // Once more, to hear what the kernel's checker says.
            let _ = sys::program_load(&code, c"Apache-2.0", ATTACH_XDP, &mut log);
            let said = String::from_utf8_lossy(&log);
            let last: Vec<&str> = said.trim_end_matches('\0').lines().rev().take(3).collect();
            format!("{reason} {}", last.join(" / "))
        })?;
        Ok(Program { listen, sources, settings, sockets, program, link: None })
    }

    /// Attaches it to an interface: in its driver, or behind it in the kernel (generic), or whichever is possible. Says which it is.
    ///
    /// # Errors
    /// Why not, for the operator.
    pub fn attach(&mut self, interface: u32, name: &str, mode: XdpMode) -> Result<XdpMode, String> {
        let modes: &[XdpMode] = match mode {
            XdpMode::Auto => &[XdpMode::Native, XdpMode::Generic],
            XdpMode::Native => &[XdpMode::Native],
            XdpMode::Generic => &[XdpMode::Generic],
        };
        let mut reasons = Vec::new();
        for &mode in modes {
            let flag = if mode == XdpMode::Native { FLAG_NATIVE } else { FLAG_GENERIC };
            match sys::link_create(self.program.as_fd(), interface, ATTACH_XDP, flag) {
                Ok(link) => {
                    self.link = Some((mode, link));
                    return Ok(mode);
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => {
                    return Err(format!("{name} carries another XDP program (ip link show {name}); it must be detached first"));
                }
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    return Err(format!("{name}: attaching the XDP program is not permitted (needs CAP_NET_ADMIN)"));
                }
                Err(error) => reasons.push(format!("{}: {error}", mode.word())),
            }
        }
        Err(format!("{name} takes no XDP program: {}", reasons.join(", ")))
    }

    /// Sets the interface's MAC address, and whether everybody may send. Takes nothing before the first time, which must come after
    /// [`Program::attach`].
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn set(&self, mac: Mac, anybody: bool) -> io::Result<()> {
        let generic = self.link.as_ref().is_some_and(|(mode, _)| *mode == XdpMode::Generic);
        let mut value: Settings = [0; 16];
        value[..6].copy_from_slice(&mac);
        value[8..12].copy_from_slice(&u32::from(anybody).to_ne_bytes());
        value[12..].copy_from_slice(&u32::from(generic).to_ne_bytes());
        self.settings.set(&[0; 4], &value)
    }

    /// Begins or ends taking what is sent to an address of ours on a VLAN (0: untagged).
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn listen(&self, address: SocketAddr, vlan: u16, on: bool) -> io::Result<()> {
        let mut key: ListenKey = [0; 20];
        key[..16].copy_from_slice(&octets(address.ip()));
        key[16..18].copy_from_slice(&address.port().to_be_bytes());
        key[18..].copy_from_slice(&vlan.to_ne_bytes());
        if on { self.listen.set(&key, &[1, 0, 0, 0]) } else { absent(self.listen.remove(&key)) }
    }

    /// Begins or ends taking from an address.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn source(&self, address: IpAddr, on: bool) -> io::Result<()> {
        let key = octets(address);
        if on { self.sources.set(&key, &[1, 0, 0, 0]) } else { absent(self.sources.remove(&key)) }
    }

    /// Hands what comes by a queue to a socket.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn socket(&self, queue: u32, socket: u32) -> io::Result<()> {
        self.sockets.set(&queue.to_ne_bytes(), &socket.to_ne_bytes())
    }
}

/// Removing what is not there is no error.
fn absent(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.raw_os_error() == Some(libc::ENOENT) { Ok(()) } else { Err(error) })
}

/// An address in 16 octets, IPv4 mapped.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    Pass,
    Network,
    Ipv4,
    Ipv6,
    Look,
    Listed,
    Take,
    Redirect,
}

/// Instructions so far, and the jumps whose distance is not known yet.
#[derive(Default)]
struct Assembler {
    code: Vec<u64>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

/// Sizes of loads and stores.
const WORD: u8 = 0x00;
const HALF: u8 = 0x08;
const BYTE: u8 = 0x10;
const LONG: u8 = 0x18;
/// Jump conditions: unsigned, or equal.
const EQUAL: u8 = 0x10;
const NOT_EQUAL: u8 = 0x50;
const ABOVE: u8 = 0x20;
/// Arithmetic on 64 bits.
const ADD: u8 = 0x00;
const AND: u8 = 0x50;
const SHIFT_LEFT: u8 = 0x60;
const SHIFT_RIGHT: u8 = 0x70;
const MOVE: u8 = 0xb0;

impl Assembler {
    fn emit(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        // Written as the kernel reads it: two nibbles for the registers, in the machine's bit order.
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let [a, b] = offset.to_ne_bytes();
        let [c, d, e, f] = value.to_ne_bytes();
        self.code.push(u64::from_ne_bytes([code, registers, a, b, c, d, e, f]));
    }

    fn load(&mut self, size: u8, to: u8, from: u8, offset: i16) {
        self.emit(0x61 | size, to, from, offset, 0);
    }

    fn store(&mut self, size: u8, to: u8, offset: i16, from: u8) {
        self.emit(0x63 | size, to, from, offset, 0);
    }

    fn store_value(&mut self, size: u8, to: u8, offset: i16, value: i32) {
        self.emit(0x62 | size, to, 0, offset, value);
    }

    fn compute(&mut self, what: u8, to: u8, value: i32) {
        self.emit(0x07 | what, to, 0, 0, value);
    }

    fn compute_registers(&mut self, what: u8, to: u8, from: u8) {
        self.emit(0x0f | what, to, from, 0, 0);
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.emit(0x0f | MOVE, to, from, 0, 0);
    }

    /// From network byte order, 16 bits.
    fn swap(&mut self, register: u8) {
        self.emit(0xdc, register, 0, 0, 16);
    }

    fn jump(&mut self, condition: u8, left: u8, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05 | condition, left, 0, 0, value);
    }

    fn jump_registers(&mut self, condition: u8, left: u8, right: u8, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x0d | condition, left, right, 0, 0);
    }

    fn go(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05, 0, 0, 0, 0);
    }

    fn call(&mut self, helper: i32) {
        self.emit(0x85, 0, 0, 0, helper);
    }

    fn exit(&mut self) {
        self.emit(0x95, 0, 0, 0, 0);
    }

    /// A map, by its descriptor: two instructions.
    fn map(&mut self, to: u8, number: u32) {
        self.emit(0x18, to, 1, 0, number as i32);
        self.emit(0, 0, 0, 0, 0);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    /// Fills in the distances.
    fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let target = self.labels.iter().find(|(known, _)| *known == label).map_or(at, |(_, target)| *target);
            let mut bytes = self.code[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&((target as i64 - at as i64 - 1) as i16).to_ne_bytes());
            self.code[at] = u64::from_ne_bytes(bytes);
        }
        self.code
    }
}

/// The program. Registers: 6 the context, 7 the frame, 8 its end, 9 the IP header; 1 to 5 are lost in calls. On the stack, below
/// register 10: the listen key at -24 (port at -8, VLAN at -6), the source at -40, the key of the settings at -44, "anybody" at -48,
/// length and checksum of the datagram at -50 and -52, "leave bare sums" at -56.
fn assemble(listen: &Map<20, 4>, sources: &Map<16, 4>, settings: &Map<4, 16>, sockets: &Map<4, 4>) -> Vec<u64> {
    const LOOKUP: i32 = 1;
    const TIME: i32 = 125;
    const CHECKSUM: i32 = 28;
    const REDIRECT_MAP: i32 = 51;
    const ADJUST_META: i32 = 54;
    const PASS: i32 = 2;
    let wire = |value: u16| i32::from(value.to_be());
    let mut a = Assembler::default();
    a.copy(6, 1);
    a.load(WORD, 7, 6, 0);
    a.load(WORD, 8, 6, 4);
    // Room for the Ethernet header.
    a.copy(2, 7);
    a.compute(ADD, 2, 14);
    a.jump_registers(ABOVE, 2, 8, Label::Pass);
    // To our own MAC address: others' frames are here when the card listens to everything.
    a.store_value(WORD, 10, -44, 0);
    a.map(1, settings.number());
    a.copy(2, 10);
    a.compute(ADD, 2, -44);
    a.call(LOOKUP);
    a.jump(EQUAL, 0, 0, Label::Pass);
    for (size, offset) in [(WORD, 0), (HALF, 4)] {
        a.load(size, 1, 7, offset);
        a.load(size, 2, 0, offset);
        a.jump_registers(NOT_EQUAL, 1, 2, Label::Pass);
    }
    a.load(WORD, 1, 0, 8);
    a.store(WORD, 10, -48, 1);
    a.load(WORD, 1, 0, 12);
    a.store(WORD, 10, -56, 1);
    // One tag may be there.
    a.copy(9, 7);
    a.compute(ADD, 9, 14);
    a.store_value(HALF, 10, -6, 0);
    a.load(HALF, 1, 7, 12);
    a.jump(NOT_EQUAL, 1, wire(0x8100), Label::Network);
    a.copy(9, 7);
    a.compute(ADD, 9, 18);
    a.jump_registers(ABOVE, 9, 8, Label::Pass);
    a.load(HALF, 1, 7, 14);
    a.swap(1);
    a.compute(AND, 1, 0x0fff);
    a.store(HALF, 10, -6, 1);
    a.load(HALF, 1, 7, 16);
    a.label(Label::Network);
    a.jump(EQUAL, 1, wire(0x0800), Label::Ipv4);
    a.jump(EQUAL, 1, wire(0x86dd), Label::Ipv6);
    a.go(Label::Pass);

    a.label(Label::Ipv4);
    a.copy(2, 9);
    a.compute(ADD, 2, 28);
    a.jump_registers(ABOVE, 2, 8, Label::Pass);
    a.load(BYTE, 1, 9, 0);
    a.jump(NOT_EQUAL, 1, 0x45, Label::Pass);
    a.load(HALF, 1, 9, 6);
    a.compute(AND, 1, wire(0x3fff));
    a.jump(NOT_EQUAL, 1, 0, Label::Pass);
    a.load(BYTE, 1, 9, 9);
    a.jump(NOT_EQUAL, 1, 17, Label::Pass);
    a.load(HALF, 1, 9, 2);
    a.swap(1);
    a.jump(ABOVE, 1, PACKET_MAX as i32, Label::Pass);
    // The datagram fills the packet.
    a.load(HALF, 2, 9, 24);
    a.store(HALF, 10, -50, 2);
    a.swap(2);
    a.compute(ADD, 2, 20);
    a.jump_registers(NOT_EQUAL, 1, 2, Label::Pass);
    for (key, address) in [(-24, 16), (-40, 12)] {
        a.store_value(LONG, 10, key, 0);
        a.store_value(HALF, 10, key + 8, 0);
        a.store_value(HALF, 10, key + 10, 0xffff);
        a.load(WORD, 1, 9, address);
        a.store(WORD, 10, key + 12, 1);
    }
    a.load(HALF, 1, 9, 22);
    a.store(HALF, 10, -8, 1);
    a.load(HALF, 1, 9, 26);
    a.store(HALF, 10, -52, 1);
    a.go(Label::Look);

    a.label(Label::Ipv6);
    a.copy(2, 9);
    a.compute(ADD, 2, 48);
    a.jump_registers(ABOVE, 2, 8, Label::Pass);
    a.load(BYTE, 1, 9, 0);
    a.compute(SHIFT_RIGHT, 1, 4);
    a.jump(NOT_EQUAL, 1, 6, Label::Pass);
    a.load(BYTE, 1, 9, 6);
    a.jump(NOT_EQUAL, 1, 17, Label::Pass);
    a.load(HALF, 1, 9, 4);
    a.swap(1);
    a.jump(ABOVE, 1, PACKET_MAX as i32 - 40, Label::Pass);
    a.load(HALF, 2, 9, 44);
    a.store(HALF, 10, -50, 2);
    a.swap(2);
    a.jump_registers(NOT_EQUAL, 1, 2, Label::Pass);
    for (key, address) in [(-24, 24), (-40, 8)] {
        for word in [0, 4, 8, 12] {
            a.load(WORD, 1, 9, address + word);
            a.store(WORD, 10, key + word, 1);
        }
    }
    a.load(HALF, 1, 9, 42);
    a.store(HALF, 10, -8, 1);
    a.load(HALF, 1, 9, 46);
    a.store(HALF, 10, -52, 1);

    a.label(Label::Look);
    a.map(1, listen.number());
    a.copy(2, 10);
    a.compute(ADD, 2, -24);
    a.call(LOOKUP);
    a.jump(EQUAL, 0, 0, Label::Pass);
    a.load(WORD, 1, 10, -48);
    a.jump(NOT_EQUAL, 1, 0, Label::Listed);
    a.map(1, sources.number());
    a.copy(2, 10);
    a.compute(ADD, 2, -40);
    a.call(LOOKUP);
    a.jump(EQUAL, 0, 0, Label::Pass);

    a.label(Label::Listed);
    a.load(WORD, 1, 10, -56);
    a.jump(EQUAL, 1, 0, Label::Take);
    // The bare sum: of both addresses as they stand on the stack (what makes them IPv4 mapped adds nothing to a ones' complement
    // sum), protocol and length.
    a.load(HALF, 5, 10, -50);
    a.compute(ADD, 5, wire(17));
    a.compute(MOVE, 1, 0);
    a.compute(MOVE, 2, 0);
    a.copy(3, 10);
    a.compute(ADD, 3, -40);
    a.compute(MOVE, 4, 32);
    a.call(CHECKSUM);
    // A failure would be a negative number; this keeps the sum's 32 bits.
    a.compute(SHIFT_LEFT, 0, 32);
    a.compute(SHIFT_RIGHT, 0, 32);
    for _ in 0..2 {
        a.copy(1, 0);
        a.compute(SHIFT_RIGHT, 1, 16);
        a.compute(AND, 0, 0xffff);
        a.compute_registers(ADD, 0, 1);
    }
    a.load(HALF, 1, 10, -52);
    a.jump_registers(EQUAL, 0, 1, Label::Pass);

    a.label(Label::Take);
    a.call(TIME);
    a.copy(7, 0);
    a.copy(1, 6);
    a.compute(MOVE, 2, -(STAMP as i32));
    a.call(ADJUST_META);
    // A driver without room in front: then without the time.
    a.jump(NOT_EQUAL, 0, 0, Label::Redirect);
    a.load(WORD, 1, 6, 8);
    a.load(WORD, 2, 6, 0);
    a.copy(3, 1);
    a.compute(ADD, 3, STAMP as i32);
    a.jump_registers(ABOVE, 3, 2, Label::Redirect);
    a.store(LONG, 1, 0, 7);
    a.label(Label::Redirect);
    a.map(1, sockets.number());
    a.load(WORD, 2, 6, 16);
    a.compute(MOVE, 3, PASS);
    a.call(REDIRECT_MAP);
    a.exit();

    a.label(Label::Pass);
    a.compute(MOVE, 0, PASS);
    a.exit();
    a.finish()
}

const _: () = assert!(PACKET_MAX > PACKET_HEADERS_MAX && PACKET_MAX <= i32::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_reach_their_labels() {
        let mut a = Assembler::default();
        a.label(Label::Take);
        a.jump(EQUAL, 1, 5, Label::Pass);
        a.go(Label::Take);
        a.label(Label::Pass);
        a.exit();
        let offset = |word: u64| i16::from_ne_bytes([word.to_ne_bytes()[2], word.to_ne_bytes()[3]]);
        let code = a.finish();
        assert_eq!((code.len(), offset(code[0]), offset(code[1])), (3, 1, -2));
    }

    /// The kernel's checker accepts it, where the machine lets us ask.
    #[test]
    fn the_kernel_accepts_the_program() {
        match Program::load() {
            Ok(program) => {
                program.set([2, 0, 0, 0, 0, 1], false).expect("set");
                let address: SocketAddr = "192.0.2.1:2427".parse().expect("an address");
                for on in [true, true, false, false] {
                    program.listen(address, 100, on).expect("set");
                    program.source(address.ip(), on).expect("set");
                }
            }
            Err(reason) if reason.contains("not permitted") => eprintln!("skipped: {reason}"),
            Err(reason) => panic!("{reason}"),
        }
    }
}
