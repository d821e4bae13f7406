//! What is in a packet of a pseudowire (RFC 4553 4.2 and 4.3, RFC 5086 4 and 5; SAT-02..08, CES-01..13).
//!
//! Over UDP the RTP header, when one is used, comes before the control word. Both ends agree on everything a [`Layout`] holds before the
//! first packet: a packet that does not fit is malformed, never negotiated.

/// Octets of the control word.
const CONTROL_WORD: usize = 4;
/// Octets of 193 bits of an octet-aligned T1.
pub const GROUP: usize = 25;
/// Octets of an RTP header without options (RFC 3550 5.1).
const RTP_HEADER: usize = 12;
/// Lengths below this are told in LEN, because the network may pad such packets (RFC 4553 4.3.1).
const LEN_BELOW: usize = 64;
/// The longest payload of a layout: what fits into 1,500 octets beside IPv6, UDP, RTP and the control word.
const PAYLOAD_MAX: usize = 1500 - 40 - 8 - RTP_HEADER - CONTROL_WORD;

/// What one packet carries of the trunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// The bits of the trunk, not aligned to its frames; so many octets a packet.
    Bits(u16),
    /// The bits of a T1 in groups of 193 with seven bits of padding, not aligned to its frames either; so many groups a packet (octet-aligned
    /// T1, SAT-08).
    Groups(u16),
    /// Whole frames of so many channels, without framing: `channels` octets each (CES-05).
    Frames {
        /// Channels, 1 to 31.
        channels: u8,
        /// Frames in a packet.
        frames: u16,
    },
    /// The same with signalling: multiframes of 24 (T1) or 16 (E1) frames, ABCD of each channel after the last of them (CES-11, CES-12).
    Signalled {
        /// Channels, 1 to 30.
        channels: u8,
        /// Frames in a multiframe.
        multiframe: u8,
        /// Frames in a packet; it divides the multiframe.
        frames: u8,
    },
}

/// The use of RTP headers, the same in every packet of a direction (SAT-04).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSettings {
    /// Payload type, 96 to 127.
    pub payload_type: u8,
    /// Synchronization source: what goes out has this one, and what comes must have it. `None`: 0 goes out, and any may come.
    pub ssrc: Option<u32>,
}

/// What both ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    structure: Structure,
    rtp: Option<RtpSettings>,
}

impl Layout {
    /// A layout.
    ///
    /// # Errors
    /// What cannot be, in words for who configures it.
    pub fn new(structure: Structure, rtp: Option<RtpSettings>) -> Result<Layout, &'static str> {
        match structure {
            Structure::Bits(0) | Structure::Groups(0) | Structure::Frames { frames: 0, .. } | Structure::Signalled { frames: 0, .. } => {
                return Err("a packet carries nothing");
            }
            Structure::Frames { channels, .. } if !(1..=31).contains(&channels) => return Err("1 to 31 channels"),
            Structure::Signalled { channels, .. } if !(1..=30).contains(&channels) => return Err("1 to 30 channels with signalling"),
            Structure::Signalled { multiframe, frames, .. } if !matches!(multiframe, 16 | 24) || !multiframe.is_multiple_of(frames) => {
                return Err("the frames of a packet divide the multiframe, which has 24 (T1) or 16 (E1)");
            }
            _ => {}
        }
        if rtp.is_some_and(|rtp| !(96..128).contains(&rtp.payload_type)) {
            return Err("RTP payload types of pseudowires are dynamic: 96 to 127");
        }
        let layout = Layout { structure, rtp };
        if layout.data_octets() + layout.signalling_octets() > PAYLOAD_MAX {
            return Err("the packet does not fit into 1500 octets");
        }
        Ok(layout)
    }

    /// What a packet carries.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// Whether the trunk is carried bit by bit (SAToP), with its framing.
    pub fn is_bits(&self) -> bool {
        matches!(self.structure, Structure::Bits(_) | Structure::Groups(_))
    }

    /// Octets of trunk data in each packet.
    pub fn data_octets(&self) -> usize {
        match self.structure {
            Structure::Bits(octets) => octets.into(),
            Structure::Groups(groups) => GROUP * usize::from(groups),
            Structure::Frames { channels, frames } => usize::from(channels) * usize::from(frames),
            Structure::Signalled { channels, frames, .. } => usize::from(channels) * usize::from(frames),
        }
    }

    /// Octets of signalling in a packet that ends a multiframe: four bits a channel, padded to whole octets.
    pub fn signalling_octets(&self) -> usize {
        match self.structure {
            Structure::Signalled { channels, .. } => usize::from(channels).div_ceil(2),
            Structure::Bits(_) | Structure::Groups(_) | Structure::Frames { .. } => 0,
        }
    }

    /// Frames of a block whose errors are counted as one (G.826): a multiframe of a T1, half of one of an E1.
    pub fn block_frames(&self) -> usize {
        match self.structure {
            Structure::Frames { channels: 25.., .. } | Structure::Signalled { multiframe: 16, .. } => 8,
            Structure::Bits(_) | Structure::Groups(_) | Structure::Frames { .. } | Structure::Signalled { .. } => 24,
        }
    }

    /// Packets that make one multiframe; 1 without signalling.
    pub fn fragments(&self) -> u8 {
        match self.structure {
            Structure::Signalled { multiframe, frames, .. } => multiframe / frames,
            Structure::Bits(_) | Structure::Groups(_) | Structure::Frames { .. } => 1,
        }
    }

    /// The longest packet.
    pub fn packet_octets(&self) -> usize {
        self.header_octets() + self.data_octets() + self.signalling_octets()
    }

    fn header_octets(&self) -> usize {
        CONTROL_WORD + if self.rtp.is_some() { RTP_HEADER } else { 0 }
    }

    /// Reads a packet that came for this pseudowire.
    ///
    /// # Errors
    /// Why it is none of this pseudowire, or malformed; it counts as not received (SAT-14).
    pub fn read<'a>(&self, octets: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let (timestamp, octets) = match self.rtp {
            None => (None, octets),
            Some(rtp) => {
                let (timestamp, rest) = read_rtp(octets, rtp)?;
                (Some(timestamp), rest)
            }
        };
        let (word, rest) = octets.split_first_chunk::<CONTROL_WORD>().ok_or(Malformed::Short)?;
        let [flags, length, high, low] = *word;
        if flags >> 4 != 0 {
            return Err(Malformed::ControlWord);
        }
        let sequence = u16::from_be_bytes([high, low]);
        let header = Header {
            local_fault: flags & 0x08 != 0,
            remote_loss: flags & 0x04 != 0,
            remote_defect: flags & 0x03 == 0x02 && !self.is_bits(),
            sequence,
        };
        self.check_modifier(flags)?;
        let rest = self.trim(rest, usize::from(length & 0x3F))?;
        if header.local_fault && rest.is_empty() {
            return Ok(Packet { header, timestamp, fragment: Fragment::Whole, data: &[], signalling: &[] });
        }
        let fragment = self.read_fragment(length >> 6)?;
        let (data, signalling) = rest.split_at_checked(self.data_octets()).ok_or(Malformed::Length)?;
        let expected = if fragment.ends() { self.signalling_octets() } else { 0 };
        if signalling.len() != expected {
            return Err(Malformed::Length);
        }
        Ok(Packet { header, timestamp, fragment, data, signalling })
    }

    /// L and M together (CES-03): reserved values are dropped. SAToP has no M and ignores its bits.
    fn check_modifier(&self, flags: u8) -> Result<(), Malformed> {
        if self.is_bits() {
            return Ok(());
        }
        match (flags & 0x08 != 0, flags & 0x03) {
            (false, 0b00 | 0b10) | (true, 0b00) => Ok(()),
            (false, 0b11) => Err(Malformed::SignallingPacket),
            _ => Err(Malformed::Reserved),
        }
    }

    /// What LEN says of the octets behind the control word, without the padding of the network.
    fn trim<'a>(&self, rest: &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
        if length == 0 {
            return Ok(rest);
        }
        let after = length.checked_sub(self.header_octets()).ok_or(Malformed::Length)?;
        rest.get(..after).ok_or(Malformed::Length)
    }

    fn read_fragment(&self, bits: u8) -> Result<Fragment, Malformed> {
        let fragment = Fragment::of(bits);
        match self.structure {
            // RFC 4553 4.3.1: ignored.
            Structure::Bits(_) | Structure::Groups(_) => Ok(Fragment::Whole),
            Structure::Frames { .. } if fragment != Fragment::Whole => Err(Malformed::Fragment),
            Structure::Signalled { .. } if (fragment == Fragment::Whole) != (self.fragments() == 1) => Err(Malformed::Fragment),
            Structure::Frames { .. } | Structure::Signalled { .. } => Ok(fragment),
        }
    }

    /// Writes a packet and gives its length; `None` when `out` is too short or `packet` is none of this layout. Data of a packet with
    /// [`Header::local_fault`] may be left out.
    pub fn write(&self, packet: &Packet<'_>, out: &mut [u8]) -> Option<usize> {
        let empty = packet.data.is_empty() && packet.signalling.is_empty();
        let signalling = if packet.fragment.ends() { self.signalling_octets() } else { 0 };
        let whole = packet.data.len() == self.data_octets() && packet.signalling.len() == signalling;
        if !whole && (!empty || !packet.header.local_fault) {
            return None;
        }
        let length = self.header_octets() + packet.data.len() + packet.signalling.len();
        let mut rest = out.get_mut(..length)?;
        if let Some(rtp) = self.rtp {
            let (header, behind) = rest.split_first_chunk_mut::<RTP_HEADER>()?;
            let [s0, s1] = packet.header.sequence.to_be_bytes();
            let [t0, t1, t2, t3] = packet.timestamp.unwrap_or_default().to_be_bytes();
            let [i0, i1, i2, i3] = rtp.ssrc.unwrap_or_default().to_be_bytes();
            *header = [0x80, rtp.payload_type, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3];
            rest = behind;
        }
        let (word, rest) = rest.split_first_chunk_mut::<CONTROL_WORD>()?;
        let header = &packet.header;
        let defect = header.remote_defect && !self.is_bits() && !header.local_fault;
        let flags = u8::from(header.local_fault) << 3 | u8::from(header.remote_loss) << 2 | u8::from(defect) << 1;
        let told = if length < LEN_BELOW { length as u8 } else { 0 };
        let [high, low] = header.sequence.to_be_bytes();
        *word = [flags, packet.fragment.bits() << 6 | told, high, low];
        let (data, nibbles) = rest.split_at_mut_checked(packet.data.len())?;
        data.copy_from_slice(packet.data);
        nibbles.copy_from_slice(packet.signalling);
        Some(length)
    }
}

/// A packet as read or to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The control word.
    pub header: Header,
    /// The RTP timestamp, when the layout has RTP.
    pub timestamp: Option<u32>,
    /// Which part of a multiframe it is.
    pub fragment: Fragment,
    /// Octets of the trunk; none in a packet with [`Header::local_fault`] that leaves them out.
    pub data: &'a [u8],
    /// ABCD of the channels, two to an octet, the lower channel in the higher half; only at the end of a multiframe.
    pub signalling: &'a [u8],
}

impl Packet<'_> {
    /// ABCD of a channel, counted from 0: A is bit 8.
    pub fn abcd(&self, channel: usize) -> Option<u8> {
        let octet = self.signalling.get(channel / 2)?;
        Some(if channel.is_multiple_of(2) { octet >> 4 } else { octet & 0x0F })
    }
}

/// The control word, but for LEN and FRG.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// L: the trunk at the far end is bad, the data is not valid.
    pub local_fault: bool,
    /// R: the far end loses our packets.
    pub remote_loss: bool,
    /// M = 10: the trunk at the far end is told by its own far end that it is bad (RDI). CESoPSN only.
    pub remote_defect: bool,
    /// Number of the packet, modulo 65,536.
    pub sequence: u16,
}

/// Which part of a multiframe a packet carries (RFC 4623 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fragment {
    /// All of it, or the pseudowire has none.
    #[default]
    Whole,
    /// Its beginning.
    First,
    /// Its end, with the signalling.
    Last,
    /// Neither.
    Middle,
}

impl Fragment {
    /// Part `place` of `of`.
    pub fn at(place: u8, of: u8) -> Fragment {
        match (place, of) {
            (_, 0 | 1) => Fragment::Whole,
            (0, _) => Fragment::First,
            (place, of) if place + 1 >= of => Fragment::Last,
            _ => Fragment::Middle,
        }
    }

    /// Whether signalling follows.
    pub fn ends(self) -> bool {
        matches!(self, Fragment::Whole | Fragment::Last)
    }

    fn of(bits: u8) -> Fragment {
        match bits & 3 {
            0 => Fragment::Whole,
            1 => Fragment::First,
            2 => Fragment::Last,
            _ => Fragment::Middle,
        }
    }

    fn bits(self) -> u8 {
        match self {
            Fragment::Whole => 0,
            Fragment::First => 1,
            Fragment::Last => 2,
            Fragment::Middle => 3,
        }
    }
}

/// Why octets are no packet of a pseudowire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Shorter than its headers.
    Short,
    /// The RTP header has another version, an extension, contributors, padding, or a marker.
    Rtp,
    /// The RTP header is that of another stream.
    Stray,
    /// The first four bits of the control word are not 0: no data.
    ControlWord,
    /// L and M together are reserved.
    Reserved,
    /// A signalling packet of RFC 5086 5.3, which has a pseudowire of its own.
    SignallingPacket,
    /// FRG does not fit what was agreed.
    Fragment,
    /// Not as long as was agreed, or as LEN says.
    Length,
}

fn read_rtp(octets: &[u8], expected: RtpSettings) -> Result<(u32, &[u8]), Malformed> {
    let (header, rest) = octets.split_first_chunk::<RTP_HEADER>().ok_or(Malformed::Short)?;
    let [first, second, _, _, t0, t1, t2, t3, s0, s1, s2, s3] = *header;
    if first != 0x80 || second & 0x80 != 0 {
        return Err(Malformed::Rtp);
    }
    let other_source = expected.ssrc.is_some_and(|ssrc| u32::from_be_bytes([s0, s1, s2, s3]) != ssrc);
    if second != expected.payload_type || other_source {
        return Err(Malformed::Stray);
    }
    Ok((u32::from_be_bytes([t0, t1, t2, t3]), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    fn bits(octets: u16, rtp: Option<RtpSettings>) -> Layout {
        Layout::new(Structure::Bits(octets), rtp).unwrap()
    }

    fn word(header: Header, layout: &Layout) -> [u8; 4] {
        let data = vec![0; layout.data_octets()];
        let signalling = vec![0; layout.signalling_octets()];
        let packet = Packet { header, timestamp: None, fragment: Fragment::Whole, data: &data, signalling: &signalling };
        let mut out = [0; 1500];
        layout.write(&packet, &mut out).unwrap();
        *out.first_chunk().unwrap()
    }

    #[test]
    fn control_words_are_those_of_the_documents() {
        // SAT: samples of the trunk facts; CES-03
        let header = Header { sequence: 0x1234, ..Header::default() };
        let satop = bits(192, None);
        assert_eq!(word(header, &satop), [0x00, 0x00, 0x12, 0x34]);
        assert_eq!(word(Header { local_fault: true, ..header }, &satop), [0x08, 0x00, 0x12, 0x34]);
        assert_eq!(word(Header { remote_loss: true, ..header }, &satop), [0x04, 0x00, 0x12, 0x34]);
        let mut out = [0; 8];
        let none = Packet {
            header: Header { local_fault: true, ..header },
            timestamp: None,
            fragment: Fragment::Whole,
            data: &[],
            signalling: &[],
        };
        assert_eq!(satop.write(&none, &mut out), Some(4));
        assert_eq!(out[..4], [0x08, 0x04, 0x12, 0x34]);
        let frames = Layout::new(Structure::Frames { channels: 24, frames: 8 }, None).unwrap();
        assert_eq!(word(Header { remote_defect: true, sequence: 1, ..Header::default() }, &frames), [0x02, 0x00, 0x00, 0x01]);
    }

    #[test]
    fn sizes_are_those_of_the_documents() {
        // SAT-07, CES-06, CES-07, CES-11, CES-12
        let frames = |channels, frames| Layout::new(Structure::Frames { channels, frames }, None).unwrap();
        assert_eq!(frames(24, 8).data_octets(), 192);
        assert_eq!(frames(24, 12).data_octets(), 288);
        let signalled = |channels, multiframe, frames| Layout::new(Structure::Signalled { channels, multiframe, frames }, None).unwrap();
        assert_eq!((signalled(24, 24, 24).packet_octets(), signalled(24, 24, 24).fragments()), (4 + 588, 1));
        assert_eq!(signalled(30, 16, 16).packet_octets(), 4 + 16 * 30 + 15);
        assert_eq!(signalled(5, 24, 8).signalling_octets(), 3, "an odd number of channels is padded");
        assert_eq!(signalled(24, 24, 8).fragments(), 3);
        assert!(Layout::new(Structure::Signalled { channels: 24, multiframe: 24, frames: 7 }, None).is_err());
        assert!(Layout::new(Structure::Bits(1500), None).is_err());
        assert!(Layout::new(Structure::Bits(192), Some(RtpSettings { payload_type: 8, ssrc: None })).is_err());
    }

    #[test]
    fn rtp_comes_before_the_control_word_and_belongs_to_the_stream() {
        // SAT-02, SAT-04, SAT-14
        let rtp = RtpSettings { payload_type: 100, ssrc: Some(0xDEAD_BEEF) };
        let layout = bits(2, Some(rtp));
        let header = Header { sequence: 7, ..Header::default() };
        let packet = Packet { header, timestamp: Some(0x0102_0304), fragment: Fragment::Whole, data: &[0xAA, 0x55], signalling: &[] };
        let mut out = [0; 32];
        let length = layout.write(&packet, &mut out).unwrap();
        assert_eq!(out[..length], [0x80, 100, 0, 7, 1, 2, 3, 4, 0xDE, 0xAD, 0xBE, 0xEF, 0, 18, 0, 7, 0xAA, 0x55]);
        assert_eq!(layout.read(&out[..length]), Ok(packet));
        let other = bits(2, Some(RtpSettings { ssrc: Some(1), ..rtp }));
        assert_eq!(other.read(&out[..length]), Err(Malformed::Stray));
        out[0] = 0x90;
        assert_eq!(layout.read(&out[..length]), Err(Malformed::Rtp));
    }

    #[test]
    fn padding_of_the_network_is_taken_off_and_wrong_lengths_are_malformed() {
        // SAT-03
        let layout = bits(2, None);
        let read = |octets: &[u8]| layout.read(octets).map(|packet| packet.data.to_vec());
        assert_eq!(read(&[0, 6, 0, 1, 8, 9, 0, 0, 0]), Ok(vec![8, 9]));
        assert_eq!(read(&[0, 0, 0, 1, 8, 9]), Ok(vec![8, 9]));
        for wrong in [&[0, 0, 0, 1, 8][..], &[0, 0, 0, 1, 8, 9, 9], &[0, 7, 0, 1, 8, 9], &[0, 3, 0, 1, 8, 9], &[0, 5, 0, 1, 8, 9]] {
            assert_eq!(read(wrong), Err(Malformed::Length), "{wrong:?}");
        }
        assert_eq!(read(&[0x10, 0, 0, 1, 8, 9]), Err(Malformed::ControlWord));
        assert_eq!(read(&[0, 0, 0]), Err(Malformed::Short));
    }

    #[test]
    fn reserved_points_of_l_and_m_are_dropped() {
        // CES-03, CES-09
        let layout = Layout::new(Structure::Frames { channels: 1, frames: 1 }, None).unwrap();
        let read = |flags: u8| layout.read(&[flags, 5, 0, 1, 9]).map(|packet| (packet.header.local_fault, packet.header.remote_defect));
        assert_eq!([0x00, 0x02, 0x08].map(read), [Ok((false, false)), Ok((false, true)), Ok((true, false))]);
        assert_eq!(read(0x03), Err(Malformed::SignallingPacket));
        assert_eq!([0x01, 0x09, 0x0A, 0x0B].map(read), [Err(Malformed::Reserved); 4]);
        assert_eq!(layout.read(&[0x08, 4, 0, 1]).map(|packet| packet.data.len()), Ok(0), "CES-08");
        assert_eq!(layout.read(&[0x00, 4, 0, 1]).unwrap_err(), Malformed::Length);
    }

    #[test]
    fn signalling_comes_with_the_last_fragment_alone() {
        // CES-11, CES-12
        let layout = Layout::new(Structure::Signalled { channels: 3, multiframe: 24, frames: 8 }, None).unwrap();
        let data = [1; 24];
        let mut out = [0; 64];
        for (place, first) in [(0, 0x40), (1, 0xC0), (2, 0x80)] {
            let fragment = Fragment::at(place, layout.fragments());
            let signalling: &[u8] = if fragment.ends() { &[0xF1, 0x20] } else { &[] };
            let packet = Packet { header: Header::default(), timestamp: None, fragment, data: &data, signalling };
            let length = layout.write(&packet, &mut out).unwrap();
            assert_eq!(out[1] & 0xC0, first);
            let read = layout.read(&out[..length]).unwrap();
            assert_eq!(read, packet);
            if fragment.ends() {
                assert_eq!([0, 1, 2, 3].map(|channel| read.abcd(channel)), [Some(0xF), Some(0x1), Some(0x2), Some(0)]);
            }
        }
        assert_eq!(layout.read(&[0; 28]), Err(Malformed::Fragment), "a whole multiframe was not agreed");
    }

    #[test]
    fn any_octets_are_read_or_refused_and_what_is_read_writes_the_same() {
        let rtp = Some(RtpSettings { payload_type: 96, ssrc: Some(0) });
        let layouts = [
            bits(3, None),
            bits(3, rtp),
            Layout::new(Structure::Frames { channels: 3, frames: 1 }, None).unwrap(),
            Layout::new(Structure::Signalled { channels: 1, multiframe: 24, frames: 3 }, None).unwrap(),
        ];
        let mut rng = Rng::new(5);
        let mut read = 0;
        for _ in 0..60_000 {
            let mut octets: Vec<u8> = (0..rng.below(24)).map(|_| rng.below(256) as u8).collect();
            for (place, value) in [(0, 0x0Fu8), (1, 0xC7)] {
                if let Some(octet) = octets.get_mut(place) {
                    *octet &= value;
                }
            }
            for layout in &layouts {
                let Ok(packet) = layout.read(&octets) else { continue };
                read += 1;
                let mut out = [0; 64];
                let length = layout.write(&packet, &mut out).unwrap();
                assert_eq!(layout.read(&out[..length]).unwrap(), packet);
            }
        }
        assert!(read > 100, "{read}");
    }
}
