//! RTCP packets (RFC 3550 6): reports, source descriptions and goodbyes, without any state.

use super::rtp::array;
use super::statistics::Block;

/// The longest datagram that is written.
pub(super) const OCTETS_MAX: usize = 28 + 24 + 8 + 2 + CNAME + 2 + 8;
/// Octets of a canonical name: 96 random bits in hexadecimal (RFC 7022).
const CNAME: usize = 24;

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const BYE: u8 = 203;

/// What is said of what we sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// NTP time of the report.
    pub ntp: u64,
    /// The timestamp of the same moment.
    pub timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

/// A report about a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Report {
    pub block: Block,
    /// The middle of the NTP time of its last sender report; 0: none came.
    pub last_report: u32,
    /// How long ago that was, in 1/65536 s.
    pub delay: u32,
}

/// What a datagram says, as far as it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Heard {
    /// The middle of the NTP time of a sender report.
    pub sender_report: Option<u32>,
    /// What is said of us: last report and delay since then; zero for none.
    pub about_us: Option<(u32, u32)>,
    pub bye: bool,
}

/// Writes a datagram into `room`: a report of the kind that is due, the canonical name, and goodbye if it is the last one.
pub(super) fn write<'r>(
    room: &'r mut [u8; OCTETS_MAX],
    ssrc: u32,
    name: &[u8; 12],
    sent: Option<Sent>,
    report: Option<Report>,
    bye: bool,
) -> &'r [u8] {
    let mut writer = Writer { room, at: 0 };
    let blocks = u8::from(report.is_some());
    match sent {
        Some(sent) => {
            writer.begin(blocks, SENDER_REPORT, 6 + 6 * u16::from(blocks));
            writer.words(&[ssrc, (sent.ntp >> 32) as u32, sent.ntp as u32, sent.timestamp, sent.packets, sent.octets]);
        }
        None => {
            writer.begin(blocks, RECEIVER_REPORT, 1 + 6 * u16::from(blocks));
            writer.words(&[ssrc]);
        }
    }
    if let Some(Report { block, last_report, delay }) = report {
        let lost = u32::from(block.fraction_lost) << 24 | block.lost as u32 & 0xff_ffff;
        writer.words(&[block.ssrc, lost, block.highest, block.jitter, last_report, delay]);
    }
    // Source, item 1 with its length and text, and the end: a multiple of four.
    writer.begin(1, DESCRIPTION, ((4 + 2 + CNAME + 2) / 4) as u16);
    writer.words(&[ssrc]);
    writer.octets(&[1, CNAME as u8]);
    name.iter().for_each(|octet| writer.octets(&[HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]));
    writer.octets(&[0, 0]);
    if bye {
        writer.begin(1, BYE, 1);
        writer.words(&[ssrc]);
    }
    let Writer { room, at } = writer;
    room.get(..at).unwrap_or_default()
}

const HEX: &[u8; 16] = b"0123456789abcdef";

struct Writer<'r> {
    room: &'r mut [u8; OCTETS_MAX],
    at: usize,
}

impl Writer<'_> {
    fn octets(&mut self, octets: &[u8]) {
        if let Some(place) = self.room.get_mut(self.at..self.at + octets.len()) {
            place.copy_from_slice(octets);
            self.at += octets.len();
        }
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.octets(&word.to_be_bytes()));
    }

    /// A packet of so many words behind its first one.
    fn begin(&mut self, count: u8, kind: u8, words: u16) {
        let [high, low] = words.to_be_bytes();
        self.octets(&[0x80 | count, kind, high, low]);
    }
}

/// Reads a datagram; `us` is our source. `None` when it is none (RFC 3550 appendix A.2).
pub(super) fn read(octets: &[u8], us: u32) -> Option<Heard> {
    let mut heard = Heard::default();
    let mut rest = octets;
    let mut first = true;
    while !rest.is_empty() {
        let [flags, kind, high, low] = array(rest, 0)?;
        let length = 4 + 4 * usize::from(u16::from_be_bytes([high, low]));
        let (packet, behind) = rest.split_at_checked(length)?;
        if flags >> 6 != 2 || first && !matches!(kind, SENDER_REPORT | RECEIVER_REPORT) {
            return None;
        }
        let count = usize::from(flags & 31);
        match kind {
            SENDER_REPORT => {
                let (high, low) = (array::<4>(packet, 8)?, array::<4>(packet, 12)?);
                heard.sender_report = Some((u32::from_be_bytes(high) << 16) | (u32::from_be_bytes(low) >> 16));
                heard.about_us = blocks(packet.get(28..)?, count, us).or(heard.about_us);
            }
            RECEIVER_REPORT => heard.about_us = blocks(packet.get(8..)?, count, us).or(heard.about_us),
            BYE => heard.bye = true,
            _ => {}
        }
        (rest, first) = (behind, false);
    }
    (!first).then_some(heard)
}

/// The report about us among these.
fn blocks(octets: &[u8], count: usize, us: u32) -> Option<(u32, u32)> {
    let word = |block: &[u8], at| array(block, at).map_or(0, u32::from_be_bytes);
    let block = octets.chunks_exact(24).take(count).find(|block| word(block, 0) == us)?;
    Some((word(block, 16), word(block, 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Sent = Sent { ntp: 0x1111_2222_3333_4444, timestamp: 160, packets: 3, octets: 480 };
    const BLOCK: Block = Block { ssrc: 9, fraction_lost: 25, lost: -2, highest: 0x1_0005, jitter: 7 };

    #[test]
    fn what_is_written_is_read() {
        let mut room = [0; OCTETS_MAX];
        let report = Report { block: BLOCK, last_report: 0xaaaa_bbbb, delay: 65_536 };
        let octets = write(&mut room, 8, &[0xab; 12], Some(SENT), Some(report), true);
        assert_eq!(octets.len() % 4, 0);
        let heard = Heard { sender_report: Some(0x2222_3333), about_us: Some((0xaaaa_bbbb, 65_536)), bye: true };
        assert_eq!(read(octets, 9), Some(heard));
        assert_eq!(read(octets, 7), Some(Heard { about_us: None, ..heard }));
        let mut room = [0; OCTETS_MAX];
        let octets = write(&mut room, 8, &[0; 12], None, None, false);
        assert_eq!(read(octets, 9), Some(Heard::default()));
    }

    #[test]
    fn what_is_cut_is_refused_or_says_less() {
        let mut room = [0; OCTETS_MAX];
        let report = Report { block: BLOCK, last_report: 1, delay: 2 };
        let octets = write(&mut room, 8, &[1; 12], Some(SENT), Some(report), true).to_vec();
        let whole = [52, 52 + 36, 52 + 36 + 8];
        for length in 0..=octets.len() {
            assert_eq!(read(&octets[..length], 9).is_some(), whole.contains(&length), "{length}");
        }
        let mut other = octets.clone();
        other[1] = 202;
        assert_eq!(read(&other, 9), None, "no report in front");
        other[1] = 200;
        other[3] = 200;
        assert_eq!(read(&other, 9), None, "longer than it is");
    }
}
