//! The system calls of AF_XDP, bpf(2) and ethtool that nobody wraps: each one as a safe function.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Attributes of a bpf(2) call: as much of `union bpf_attr` as any of the commands used here reads.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct BpfAttributes(pub [u32; 32]);

impl BpfAttributes {
    /// All zero, with some words set.
    pub fn new(words: &[(usize, u32)]) -> BpfAttributes {
        let mut attributes = BpfAttributes([0; 32]);
        words.iter().for_each(|&(place, word)| attributes.0[place] = word);
        attributes
    }

    /// Sets the 64-bit word that begins at word `place` (even).
    pub fn set_long(&mut self, place: usize, value: u64) {
        let [low, high] = if cfg!(target_endian = "little") { [0, 32] } else { [32, 0] };
        self.0[place] = (value >> low) as u32;
        self.0[place + 1] = (value >> high) as u32;
    }
}

/// bpf(2) with a command that reads what `attributes` point to, and writes nothing but its own program log.
///
/// # Safety
/// Every address in `attributes` must be valid for what the command does with it, during the call.
unsafe fn bpf(command: u32, attributes: &BpfAttributes) -> io::Result<i32> {
    let size = mem::size_of::<BpfAttributes>();
    // SAFETY: `attributes` lives through the call and has the length given; addresses in it are the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attributes), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: only called with a descriptor the kernel just made for us, which nobody else knows.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_MAP_DELETE_ELEM: u32 = 3;
const BPF_PROG_LOAD: u32 = 5;
const BPF_LINK_CREATE: u32 = 28;

/// A map from `KEY` to `VALUE` bytes.
pub struct Map<const KEY: usize, const VALUE: usize>(OwnedFd);

impl<const KEY: usize, const VALUE: usize> Map<KEY, VALUE> {
    /// A new one, of a kind of the kernel's.
    pub fn new(kind: u32, entries: u32) -> io::Result<Map<KEY, VALUE>> {
        let attributes = BpfAttributes::new(&[(0, kind), (1, KEY as u32), (2, VALUE as u32), (3, entries)]);
        // SAFETY: the attributes of BPF_MAP_CREATE set here hold no address.
        unsafe { bpf(BPF_MAP_CREATE, &attributes) }.map(|fd| Map(owned(fd)))
    }

    /// Sets an entry.
    pub fn set(&self, key: &[u8; KEY], value: &[u8; VALUE]) -> io::Result<()> {
        let mut attributes = BpfAttributes::new(&[(0, self.number())]);
        attributes.set_long(2, key.as_ptr() as u64);
        attributes.set_long(4, value.as_ptr() as u64);
        // SAFETY: key and value live through the call; the kernel only reads them, as many bytes as the map was made with.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }

    /// Removes an entry.
    pub fn remove(&self, key: &[u8; KEY]) -> io::Result<()> {
        let mut attributes = BpfAttributes::new(&[(0, self.number())]);
        attributes.set_long(2, key.as_ptr() as u64);
        // SAFETY: the key lives through the call and is only read, as many bytes as the map was made with.
        unsafe { bpf(BPF_MAP_DELETE_ELEM, &attributes) }.map(drop)
    }

    /// The number a program names it by.
    pub fn number(&self) -> u32 {
        self.0.as_raw_fd() as u32
    }
}

/// Loads an XDP program, each instruction 8 bytes. The kernel checks it; what it has to say against it goes into `log`.
pub fn program_load(instructions: &[u64], license: &std::ffi::CStr, attach: u32, log: &mut [u8]) -> io::Result<OwnedFd> {
    const BPF_PROG_TYPE_XDP: u32 = 6;
    let mut attributes = BpfAttributes::new(&[(0, BPF_PROG_TYPE_XDP), (1, instructions.len() as u32), (17, attach)]);
    attributes.set_long(2, instructions.as_ptr() as u64);
    attributes.set_long(4, license.as_ptr() as u64);
    if !log.is_empty() {
        (attributes.0[6], attributes.0[7]) = (1, log.len() as u32);
        attributes.set_long(8, log.as_mut_ptr() as u64);
    }
    // SAFETY: instructions and license are only read, the log is written within the length given; all three live through the call.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }.map(owned)
}

/// Attaches a program to an interface; it stays attached as long as the descriptor is open.
pub fn link_create(program: BorrowedFd<'_>, interface: u32, attach: u32, flags: u32) -> io::Result<OwnedFd> {
    let attributes = BpfAttributes::new(&[(0, program.as_raw_fd() as u32), (1, interface), (2, attach), (3, flags)]);
    // SAFETY: the attributes of BPF_LINK_CREATE set here hold no address.
    unsafe { bpf(BPF_LINK_CREATE, &attributes) }.map(owned)
}

/// A new AF_XDP socket.
pub fn socket() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(owned(fd)) }
}

/// Registers memory that both sides use.
///
/// # Safety
/// The memory must stay mapped until the socket is closed, and be accessed as the rings say: a chunk is ours or the kernel's.
pub unsafe fn register_memory(socket: BorrowedFd<'_>, memory: (*mut u8, usize), chunk: u32) -> io::Result<()> {
    let (addr, len) = (memory.0 as u64, memory.1 as u64);
    let registration = libc::xdp_umem_reg { addr, len, chunk_size: chunk, headroom: 0, flags: 0, tx_metadata_len: 0 };
    set(socket, libc::XDP_UMEM_REG, &registration)
}

/// Says how many entries a ring has.
pub fn size_ring(socket: BorrowedFd<'_>, ring: i32, entries: u32) -> io::Result<()> {
    set(socket, ring, &entries)
}

fn set<T>(socket: BorrowedFd<'_>, name: i32, value: &T) -> io::Result<()> {
    let size = mem::size_of::<T>() as u32;
    // SAFETY: `value` lives through the call and the length given is its own; the kernel only reads it.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, name, ptr::from_ref(value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get<T>(socket: BorrowedFd<'_>, name: i32, mut value: T) -> io::Result<T> {
    let mut size = mem::size_of::<T>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `size` bytes to `value`; only called with structures of integers, valid whatever is in them.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, name, place, &mut size) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Where the parts of the rings are in their mappings.
pub fn ring_offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    let none = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    get(socket, libc::XDP_MMAP_OFFSETS, libc::xdp_mmap_offsets { rx: none(), tx: none(), fr: none(), cr: none() })
}

/// What the kernel counted.
pub fn statistics(socket: BorrowedFd<'_>) -> libc::xdp_statistics {
    let zero = || libc::xdp_statistics {
        rx_dropped: 0,
        rx_invalid_descs: 0,
        tx_invalid_descs: 0,
        rx_ring_full: 0,
        rx_fill_ring_empty_descs: 0,
        tx_ring_empty_descs: 0,
    };
    get(socket, libc::XDP_STATISTICS, zero()).unwrap_or_else(|_| zero())
}

/// Whether a bound socket works without copies.
pub fn is_zero_copy(socket: BorrowedFd<'_>) -> bool {
    get(socket, libc::XDP_OPTIONS, libc::xdp_options { flags: 0 }).is_ok_and(|options| options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// How many datagrams one send call copies (XDP_MAX_TX_SKB_BUDGET); an old kernel does not know it and copies 32.
pub fn set_send_budget(socket: BorrowedFd<'_>, budget: u32) {
    const XDP_MAX_TX_SKB_BUDGET: i32 = 9;
    let _ = set(socket, XDP_MAX_TX_SKB_BUDGET, &budget);
}

/// Binds to a queue of an interface.
pub fn bind(socket: BorrowedFd<'_>, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let size = mem::size_of_val(&address) as u32;
    // SAFETY: `address` lives through the call and the length given is its own.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells the kernel to send what is in the send ring.
pub fn kick_send(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no buffer and no address are passed.
    let result = unsafe { libc::sendto(socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the driver receive: busy polls where that is set, wakes it up where it asks for it.
pub fn kick_receive(socket: BorrowedFd<'_>) {
    // SAFETY: no buffer and no address are passed. The result says nothing about arrivals.
    unsafe { libc::recvfrom(socket.as_raw_fd(), ptr::null_mut(), 0, libc::MSG_DONTWAIT, ptr::null_mut(), ptr::null_mut()) };
}

/// A mapping of one of a socket's rings.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` bytes of the socket from `offset` on.
    pub fn new(socket: BorrowedFd<'_>, offset: i64, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, socket.as_raw_fd(), offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of `offset`, where `bytes` bytes must lie inside the mapping.
    pub fn address(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "inside the mapping");
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; the ring that holds addresses into it owns it and goes with it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: an address range; the ring that owns it decides who touches it.
unsafe impl Send for Mapping {}

/// An ethtool request whose structure is `words`, command first; `None` when the driver does not know it.
fn ethtool(socket: BorrowedFd<'_>, interface: &str, words: &mut [u32; 16]) -> Option<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    /// `struct ifreq` with its address.
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        data: *mut u32,
        rest: [u64; 2],
    }
    let mut request = Request { name: [0; libc::IFNAMSIZ], data: words.as_mut_ptr(), rest: [0; 2] };
    request.name.get_mut(..interface.len()).filter(|name| name.len() < libc::IFNAMSIZ)?.copy_from_slice(interface.as_bytes());
    // SAFETY: `request` and the words it points to live through the call; the two commands used below have structures of at most 36
    // bytes, less than the words' 64.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    (result == 0).then_some(())
}

/// How many receive queues are in use (ETHTOOL_GCHANNELS); one where the driver does not say.
pub fn queues(socket: BorrowedFd<'_>, interface: &str) -> u32 {
    const GCHANNELS: u32 = 0x3c;
    // cmd, max_rx, max_tx, max_other, max_combined, rx, tx, other, combined
    let mut words = [0; 16];
    words[0] = GCHANNELS;
    ethtool(socket, interface, &mut words).map_or(1, |()| (words[5] + words[8]).max(1))
}

/// Whether the interface takes VLAN tags out of frames before anybody sees them (ETHTOOL_GFLAGS).
pub fn strips_tags(socket: BorrowedFd<'_>, interface: &str) -> bool {
    const GFLAGS: u32 = 0x25;
    const RX_VLAN: u32 = 1 << 8;
    let mut words = [0; 16];
    words[0] = GFLAGS;
    ethtool(socket, interface, &mut words).is_some_and(|()| words[1] & RX_VLAN != 0)
}
