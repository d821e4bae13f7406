//! Datagrams as a capture file (pcapng), which Wireshark and tshark read: a section, an interface, a block for each packet.
//!
//! The packets have the headers they had on the way, but for the MAC addresses, which the gateway does not know. Three kinds of blocks
//! are all there is to it; the crates that write them bring more than they save.

use std::io::{self, Write};
use std::net::SocketAddr;
use tollgate::host::transport::xdp::packet::{self, Path, Sender};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
/// Room for the headers of a packet.
const HEAD: usize = 128;

/// A capture file.
pub struct Capture<W: Write> {
    out: W,
    packets: u16,
}

impl<W: Write> Capture<W> {
    /// With its beginning written.
    pub fn new(mut out: W) -> io::Result<Capture<W>> {
        // Byte order, version 1.0, a section of unknown length.
        block(&mut out, SECTION, &[&0x1a2b_3c4du32.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8]])?;
        // No snap length; time in microseconds, which is the default.
        block(&mut out, INTERFACE, &[&ETHERNET.to_le_bytes(), &[0; 6]])?;
        out.flush()?;
        Ok(Capture { out, packets: 0 })
    }

    /// Writes one datagram; false for one that no packet can hold.
    pub fn write(&mut self, at_us: u64, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> io::Result<bool> {
        let mut head = [0; HEAD];
        let path = Path { to: [2, 0, 0, 0, 0, 2], from: [2, 0, 0, 0, 0, 1], vlan: 0, mtu: u16::MAX };
        self.packets = self.packets.wrapping_add(1);
        let sender = Sender { address: from, traffic_class: 0 };
        let Some(length) = packet::build(&mut head, datagram, &path, &sender, to, self.packets) else { return Ok(false) };
        let head = head.get(HEAD - length..).unwrap_or_default();
        let size = ((length + datagram.len()) as u32).to_le_bytes();
        let (high, low) = ((at_us >> 32) as u32, at_us as u32);
        block(&mut self.out, PACKET, &[&[0; 4], &high.to_le_bytes(), &low.to_le_bytes(), &size, &size, head, datagram])?;
        // Who reads along sees it at once.
        self.out.flush()?;
        Ok(true)
    }
}

/// A block: kind, length, body filled up to a multiple of four, length again.
fn block(out: &mut impl Write, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    let filler = body.next_multiple_of(4) - body;
    let length = ((12 + body + filler) as u32).to_le_bytes();
    out.write_all(&[&kind.to_le_bytes()[..], &length, &parts.concat(), &[0; 3][..filler], &length].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_and_packets_can_be_found_in_them() {
        let mut bytes = Vec::new();
        let mut capture = Capture::new(&mut bytes).unwrap();
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let datagram = b"AUEP 1 ds/ds1-1/1@gw MGCP 1.0\r\n";
        assert!(capture.write(0x1_0000_0002, address("192.0.2.1:2727"), address("192.0.2.2:2427"), datagram).unwrap());
        assert!(capture.write(3, address("[::1]:2727"), address("[::1]:2427"), b"200 1 OK\r\n").unwrap());
        assert!(!capture.write(3, address("[::1]:1"), address("127.0.0.1:1"), b"x").unwrap());
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            if word(at) == PACKET {
                let size = word(at + 20) as usize;
                let found = packet::parse(&bytes[at + 28..at + 28 + size]).expect("with headers that are right");
                kinds.push((word(at), found.from.port(), word(at + 12)));
            } else {
                kinds.push((word(at), 0, 0));
            }
            at += length;
        }
        assert_eq!(kinds, [(SECTION, 0, 0), (INTERFACE, 0, 0), (PACKET, 2727, 1), (PACKET, 2727, 0)], "with the upper half of the time");
    }
}
