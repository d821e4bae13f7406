//! RTP packets (RFC 3550 5.1): header and payload, without any state.

/// Octets of a header without contributing sources and extension.
pub const HEADER: usize = 12;

/// What is in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// M: the first of a talkspurt, or of an event.
    pub marker: bool,
    /// 0..=127.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp, in octets of a 64 kbit/s channel.
    pub timestamp: u32,
    /// The source.
    pub ssrc: u32,
    /// Payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet; contributing sources, an extension and padding are passed over. `None` when it is none.
    pub fn read(octets: &'a [u8]) -> Option<Packet<'a>> {
        let mut payload = octets.get(payload_at(octets)?..)?;
        let (&first, &second) = (octets.first()?, octets.get(1)?);
        if first & 0x20 != 0 {
            let padding = usize::from(*payload.last()?);
            payload = payload.get(..payload.len().checked_sub(padding)?).filter(|_| padding > 0)?;
        }
        Some(Packet {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: u16::from_be_bytes(array(octets, 2)?),
            timestamp: u32::from_be_bytes(array(octets, 4)?),
            ssrc: u32::from_be_bytes(array(octets, 8)?),
            payload,
        })
    }

    /// The header of this packet, for a payload that follows it.
    pub fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = 0x80;
        header[1] = self.payload_type & 0x7f | if self.marker { 0x80 } else { 0 };
        header[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        header[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        header[8..].copy_from_slice(&self.ssrc.to_be_bytes());
        header
    }
}

/// Where the payload of a packet begins: behind its header, contributing sources and extension. `None` when it is none.
pub(super) fn payload_at(octets: &[u8]) -> Option<usize> {
    let first = *octets.first()?;
    let sources = HEADER + usize::from(first & 15) * 4;
    let at = match first & 0x10 {
        0 => sources,
        _ => sources + 4 + usize::from(u16::from_be_bytes(array(octets, sources + 2)?)) * 4,
    };
    (first >> 6 == 2 && octets.len() >= at).then_some(at)
}

/// `N` octets of `octets` from `at`.
pub(super) fn array<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Packet<'_> =
        Packet { marker: true, payload_type: 8, sequence: 0xfffe, timestamp: 0x8000_0001, ssrc: 0xdead_beef, payload: &[1, 2, 3] };

    fn written(packet: &Packet<'_>) -> Vec<u8> {
        [&packet.header()[..], packet.payload].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(written(&PACKET)[..4], [0x80, 0x88, 0xff, 0xfe]);
        assert_eq!(Packet::read(&written(&PACKET)), Some(PACKET));
    }

    /// Two contributing sources, an extension of one word and three octets of padding.
    #[test]
    fn what_we_do_not_use_is_passed_over() {
        let mut octets = PACKET.header().to_vec();
        octets[0] = 0xb2;
        octets.extend([0; 8]);
        octets.extend([0xbe, 0xde, 0, 1, 9, 9, 9, 9]);
        octets.extend([1, 2, 3, 0, 0, 3]);
        assert_eq!(Packet::read(&octets), Some(PACKET));
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let good = written(&PACKET);
        for length in 0..HEADER {
            assert_eq!(Packet::read(&good[..length]), None);
        }
        let with = |at: usize, octet: u8| {
            let mut octets = good.clone();
            octets[at] = octet;
            octets
        };
        assert_eq!(Packet::read(&with(0, 0x40)), None, "version 1");
        assert_eq!(Packet::read(&with(0, 0x8f)), None, "15 sources that are not there");
        assert_eq!(Packet::read(&with(0, 0x90)), None, "an extension that is not there");
        let mut padded = with(0, 0xa0);
        for padding in [0, 4, 255] {
            *padded.last_mut().unwrap() = padding;
            assert_eq!(Packet::read(&padded), None, "{padding} octets of padding");
        }
    }
}
