//! Frames that are made and found again, over a line with errors.

use super::*;
use crate::proto::base::Rng;
use std::collections::VecDeque;

mod bad_lines;
mod golden;

/// A line: what is sent on it in packets of 192 octets, and what comes out of it.
struct Line {
    framer: Framer,
    deframer: Deframer,
    rng: Rng,
    /// What the channels send; `None`: anything.
    says: Option<fn(u64, u8) -> u8>,
    bits: [u8; CHANNELS],
    sent: VecDeque<Frame>,
    frames: u64,
    /// Bits that came, and frames taken for them.
    came: usize,
    taken: usize,
    found: Found,
}

/// What came out.
#[derive(Default, Debug)]
struct Found {
    /// Frames with octets, and those of them that are not what was sent.
    frames: u64,
    wrong: u64,
    /// Frames without.
    missing: u64,
    bits: Vec<Frame>,
}

/// Octets of a packet.
const OCTETS: usize = 192;

impl Line {
    fn new(format: Format, seed: u64) -> Line {
        let mut line = Line {
            framer: Framer::new(format, true, OCTETS * 8),
            deframer: Deframer::new(format, true, OCTETS * 8),
            rng: Rng::new(seed),
            says: None,
            bits: std::array::from_fn(|channel| [0b0000, 0b0101, 0b1010, 0b1111, 0b0110][channel % 5]),
            sent: VecDeque::new(),
            frames: 0,
            came: 0,
            taken: 0,
            found: Found::default(),
        };
        // Frames begin anywhere in what comes.
        let before = line.rng.below(1_000) as usize;
        line.deframer.take(&[0x55; 125], before, &mut |_| {});
        line.came = before;
        line
    }

    /// The next packet.
    fn packet(&mut self) -> [u8; OCTETS] {
        for _ in 0..self.framer.frames_for(OCTETS * 8) {
            let octets = std::array::from_fn(|channel| match self.says {
                Some(says) => says(self.frames, channel as u8),
                None => self.rng.below(256) as u8,
            });
            if self.framer.wants_bits() {
                self.framer.give_bits(&self.bits);
            }
            self.framer.push(octets);
            self.sent.push_back(octets);
            self.frames += 1;
        }
        let mut packet = [0; OCTETS];
        assert!(self.framer.take(&mut packet));
        packet
    }

    fn deliver(&mut self, octets: &[u8], bits: usize) {
        let Line { deframer, found, .. } = self;
        deframer.take(octets, bits, &mut |bits| found.bits.push(*bits));
        self.came += bits;
        self.collect();
    }

    fn lose(&mut self) {
        self.packet();
        let Line { deframer, found, .. } = self;
        deframer.lose(OCTETS * 8, true, &mut |bits| found.bits.push(*bits));
        self.came += OCTETS * 8;
        self.collect();
    }

    /// Takes a frame for each 193 bits. Those of a search come later, and a bit that slipped makes one less.
    fn collect(&mut self) {
        // Robbed bits differ.
        let same = |a: &Frame, b: &Frame| a.iter().zip(b).all(|(a, b)| a & 0xFE == b & 0xFE);
        while self.taken < self.came / FRAME_BITS {
            let wanted = self.came / FRAME_BITS - self.taken;
            self.taken += 1;
            let Some(frame) = self.deframer.frame(wanted) else {
                self.found.missing += 1;
                continue;
            };
            self.found.frames += 1;
            match self.sent.iter().position(|sent| same(sent, &frame)) {
                Some(place) => drop(self.sent.drain(..=place)),
                None => self.found.wrong += 1,
            }
        }
    }

    /// So many packets, each as `disturb` makes it.
    fn run(&mut self, packets: usize, mut disturb: impl FnMut(&mut Rng, &mut [u8; OCTETS])) {
        for _ in 0..packets {
            let mut packet = self.packet();
            disturb(&mut self.rng, &mut packet);
            self.deliver(&packet, OCTETS * 8);
        }
    }

    /// Until frames are found; after how many packets.
    fn align(&mut self) -> usize {
        for packets in 1..1_000 {
            self.run(1, |_, _| {});
            if !self.deframer.defects().out_of_frame {
                return packets;
            }
        }
        panic!("not found in a second");
    }

    fn defects(&self) -> Defects {
        self.deframer.defects()
    }
}

/// An error in each so many bits, each bit by itself.
fn errors(one_in: u64) -> impl FnMut(&mut Rng, &mut [u8; OCTETS]) {
    let gap = move |rng: &mut Rng| (-((rng.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64).ln() * one_in as f64) as usize;
    let mut next = None;
    move |rng, packet| {
        let mut bit = next.unwrap_or_else(|| gap(rng));
        while bit < OCTETS * 8 {
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            bit += 1 + gap(rng);
        }
        next = Some(bit - OCTETS * 8);
    }
}

const BOTH: [Format; 2] = [Format::D4, Format::Esf];

#[test]
fn frames_and_bits_come_out_as_they_went_in_wherever_they_begin() {
    for format in BOTH {
        for seed in 0..12 {
            let mut line = Line::new(format, seed);
            let packets = line.align();
            // The longest mean time to reframe of ANSI T1.403 is 50 ms.
            assert!(packets <= 40, "{format:?} {seed}: {packets}");
            line.run(100, |_, _| {});
            assert_eq!(line.defects(), Defects::default());
            let Found { frames, wrong, missing, bits } = &line.found;
            assert!(*frames > 790 && *wrong == 0, "{format:?} {seed}: {frames} {wrong} {missing}");
            assert!(bits.len() >= 32, "{format:?} {seed}");
            let twice = |abcd: u8| if format == Format::D4 { abcd & 0b1100 | abcd >> 2 } else { abcd };
            assert!(bits.iter().all(|bits| *bits == line.bits.map(twice)), "{format:?}: {bits:?}");
            assert_eq!(line.deframer.counted(), &receive::Counted::default());
        }
    }
}

#[test]
fn a_line_with_errors_keeps_its_frames_and_counts_them() {
    // Of 4632 bits of an ESF multiframe none is wrong with a probability of 63 %; of 4 million bits of D4 one in 193 is a framing bit.
    for (format, violations) in [(Format::Esf, 300..420), (Format::D4, 1..6)] {
        let mut line = Line::new(format, 4);
        line.align();
        line.run(3_016, errors(10_000));
        let counted = *line.deframer.counted();
        assert!(violations.contains(&counted.violations), "{format:?}: {counted:?}");
        assert_eq!((counted.frame_losses, line.found.missing < 250), (0, true), "{format:?}: {counted:?}");
    }
}

/// Each of 193 bits in a row once: 192 are of the payload, which the CRC sees and a superframe does not, and one is a framing bit.
#[test]
fn one_wrong_bit_is_one_violation() {
    // Framing bits count for 1 in the CRC, so a bit of the data link may be wrong unseen.
    for (format, expected) in [(Format::Esf, 192..=193), (Format::D4, 1..=1)] {
        let mut line = Line::new(format, 7);
        line.align();
        line.run(20, |_, _| {});
        for _ in 0..FRAME_BITS {
            // Eight packets on, it is another bit of the frame.
            line.run(1, |_, packet| packet[50] ^= 0x08);
            line.run(7, |_, _| {});
        }
        let counted = *line.deframer.counted();
        assert!(expected.contains(&counted.violations) && counted.frame_losses == 0, "{format:?}: {counted:?}");
    }
}

#[test]
fn a_bit_that_slips_is_out_of_frame_and_found_again() {
    for format in BOTH {
        for seed in 0..8 {
            let mut line = Line::new(format, 100 + seed);
            line.align();
            line.run(50, |_, _| {});
            let packet = line.packet();
            // One bit less.
            line.deliver(&packet, OCTETS * 8 - 1);
            line.came += 1;
            let mut seen = false;
            for _ in 0..8 {
                line.run(1, |_, _| {});
                seen |= line.defects().out_of_frame;
            }
            assert!(seen, "{format:?} {seed}");
            assert!(line.align() <= 40, "{format:?} {seed}");
            line.found = Found::default();
            line.sent.clear();
            line.run(50, |_, _| {});
            assert!(line.found.frames > 380 && line.found.wrong <= 2, "{format:?} {seed}: {:?}", (line.found.frames, line.found.wrong));
            assert_eq!(line.deframer.counted().frame_losses, 1, "{format:?} {seed}");
        }
    }
}

/// A channel whose fifth bit imitates the framing bits.
fn imitates(format: Format, frame: u64) -> u8 {
    let bit = match format.framing_bit(((frame + 5) % 24) as u8) {
        FramingBit::Alignment(is) => is,
        // As a bad CRC and any data link would.
        _ => frame * 7 % 5 > 1,
    };
    0x90 | u8::from(bit) << 3
}

#[test]
fn an_extended_superframe_is_found_beside_a_payload_that_imitates_framing_bits() {
    for seed in 0..8 {
        let mut line = Line::new(Format::Esf, seed);
        line.says =
            Some(|frame, channel| if channel == 9 { imitates(Format::Esf, frame) } else { (frame as u8).wrapping_mul(29) ^ channel });
        let packets = line.align();
        assert!(packets <= 60, "{seed}: {packets}");
        line.run(200, |_, _| {});
        let counted = *line.deframer.counted();
        assert_eq!((counted.violations, counted.frame_losses), (0, 0), "{seed}: aligned to the right one");
    }
}

#[test]
fn a_superframe_is_not_guessed_while_a_payload_imitates_it_and_the_alignment_before_has_precedence() {
    let mut line = Line::new(Format::D4, 3);
    let imitation: fn(u64, u8) -> u8 = |frame, channel| {
        if channel == 9 { imitates(Format::D4, frame) } else { (frame as u8).wrapping_mul(29) ^ channel.wrapping_mul(17) }
    };
    line.says = Some(imitation);
    line.run(300, |_, _| {});
    assert!(line.defects().out_of_frame, "two look alike");
    line.says = None;
    line.align();
    line.run(50, |_, _| {});
    line.says = Some(imitation);
    line.run(50, |_, _| {});
    // A hit that takes frames away and leaves them where they were.
    line.run(3, |_, packet| packet.iter_mut().for_each(|octet| *octet = 0xFF));
    assert!(line.defects().out_of_frame);
    line.run(100, |_, _| {});
    assert!(!line.defects().out_of_frame, "it is where it was");
    line.found = Found::default();
    line.sent.clear();
    line.run(50, |_, _| {});
    assert!(line.found.frames > 380 && line.deframer.counted().frame_losses == 1, "{:?}", line.deframer.counted());
}

#[test]
fn ones_are_ais_and_zeros_no_signal_until_frames_come_again() {
    for format in BOTH {
        let mut line = Line::new(format, 11);
        line.align();
        for (octet, ais) in [(0xFF, true), (0x00, false)] {
            line.run(20, |_, packet| packet.fill(octet));
            let expected = Defects { out_of_frame: true, ais, no_signal: !ais, remote_alarm: false };
            assert_eq!(line.defects(), expected, "{format:?}");
            // One error in a thousand is AIS all the same.
            line.run(20, |rng, packet| {
                packet.fill(octet);
                packet[rng.below(192) as usize] ^= 0x10;
            });
            assert_eq!(line.defects().ais, ais, "{format:?}");
            assert!(line.align() <= 40);
            assert_eq!(line.defects(), Defects::default(), "{format:?}");
        }
        // Silence on all channels is framed, and so no AIS.
        let mut line = Line::new(format, 12);
        line.says = Some(|_, _| 0xFF);
        for _ in 0..300 {
            line.run(1, |_, _| {});
            assert!(!line.defects().ais, "{format:?}");
        }
        assert!(!line.defects().out_of_frame, "{format:?}");
    }
}

#[test]
fn rai_is_told_by_the_data_link_or_by_the_second_bits() {
    for (format, least, most) in [(Format::Esf, 25, 60), (Format::D4, 335, 360)] {
        let mut line = Line::new(format, 13);
        line.align();
        line.run(50, |_, _| {});
        assert!(!line.defects().remote_alarm);
        line.framer.tell_remote_alarm(true);
        let after = (1..1_000).find(|_| {
            line.run(1, errors(2_000));
            line.defects().remote_alarm
        });
        assert!(after.is_some_and(|ms| (least..most).contains(&ms)), "{format:?}: {after:?}");
        line.run(500, errors(2_000));
        assert!(line.defects().remote_alarm, "{format:?}");
        line.framer.tell_remote_alarm(false);
        let after = (1..1_000).find(|_| {
            line.run(1, |_, _| {});
            !line.defects().remote_alarm
        });
        assert!(after.is_some_and(|ms| ms < 500), "{format:?}: {after:?}");
    }
}

#[test]
fn lost_packets_leave_the_frames_where_they_were() {
    for format in BOTH {
        let mut line = Line::new(format, 17);
        line.align();
        line.found = Found::default();
        for _ in 0..50 {
            line.run(19, |_, _| {});
            line.lose();
        }
        let Found { frames, wrong, missing, ref bits } = line.found;
        // Each takes seven or eight frames, and those at its edges.
        assert!((50 * 8..=50 * 9 + 8).contains(&missing) && wrong == 0 && frames > 7_000, "{format:?}: {frames} {wrong} {missing}");
        assert!(bits.len() > 150, "{format:?}: bits of whole multiframes count");
        let counted = line.deframer.counted();
        assert_eq!(counted.frame_losses, 0, "{format:?}");
        // One multiframe each, the last of which is not over; of a superframe nothing is known to be wrong.
        let expected = if format == Format::Esf { 49..=50 } else { 0..=0 };
        assert!(expected.contains(&counted.violations), "{format:?}: {counted:?}");
    }
}

/// L, and a network that stands still, are no errors of the line (RFC 4553 6.4).
#[test]
fn what_nobody_sent_is_no_violation() {
    let mut line = Line::new(Format::Esf, 19);
    line.align();
    for _ in 0..200 {
        line.packet();
        line.deframer.lose(OCTETS * 8, false, &mut |_| panic!("bits of nothing"));
    }
    line.run(50, |_, _| {});
    assert_eq!(*line.deframer.counted(), receive::Counted::default());
    assert!(!line.defects().out_of_frame);
}

#[test]
fn random_bits_are_no_frames_and_do_no_harm() {
    for format in BOTH {
        let mut line = Line::new(format, 23);
        line.run(2_000, |rng, packet| packet.iter_mut().for_each(|octet| *octet = rng.below(256) as u8));
        assert!(line.defects().out_of_frame && line.found.frames == 0, "{format:?}");
        let mut rng = Rng::new(29);
        for _ in 0..3_000 {
            let octets: Vec<u8> = (0..rng.below(192)).map(|_| rng.below(256) as u8).collect();
            match rng.below(3) {
                0 => line.deframer.lose(rng.below(1_536) as usize, rng.below(2) == 0, &mut |_| {}),
                1 => line.deframer.take(&octets, rng.below(1_600) as usize, &mut |_| {}),
                _ => line.run(1, |_, _| {}),
            }
            line.deframer.frame(rng.below(9) as usize);
        }
    }
}
