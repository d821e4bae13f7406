//! Multiframes as the standards write them down, by hand: what framer and deframer agree on could be wrong in both.

use super::*;

/// ITU-T G.704 table 1: the framing bits of frames 4, 8, ... 24 of an extended superframe are 001011; bits C1 to C6 are those of frames
/// 2, 6, ... 22. Here with the CRC of a multiframe of this octet alone, divided bit by bit.
const ESF: [(u8, &str); 3] = [(0xFF, "010011"), (0x00, "000010"), (0x55, "001101")];
/// Frames 1 to 12 of a superframe: Ft 101010 between Fs 001110.
const D4: &str = "100011011100";

/// The framing bits of this many frames of one octet.
fn framing_bits(format: Format, octet: u8, frames: usize) -> String {
    let mut framer = Framer::new(format, false, 25 * 8);
    let bit = |_| {
        let mut frame = [0; 25];
        framer.push([octet; CHANNELS]);
        assert!(framer.take_padded(&mut frame));
        assert!(frame[1..24].iter().all(|came| *came == octet.rotate_right(1)), "{frame:x?}");
        if frame[0] & 0x80 == 0 { '0' } else { '1' }
    };
    (0..frames).map(bit).collect()
}

#[test]
fn an_extended_superframe_is_that_of_the_standard() {
    for (octet, crc) in ESF {
        let bits = framing_bits(Format::Esf, octet, 48);
        let (_, second) = bits.split_at(24);
        let every_fourth = |from: usize| second.chars().skip(from).step_by(4).collect::<String>();
        assert_eq!(every_fourth(3), "001011", "{octet:x}");
        assert_eq!(every_fourth(1), crc, "{octet:x}");
        // The data link is idle: flags, 01111110, of which a multiframe has one and a half.
        let link: String = second.chars().step_by(2).collect();
        assert!("0111111001111110011111100".contains(&link), "{link}");
    }
}

#[test]
fn a_superframe_is_that_of_the_standard() {
    assert_eq!(framing_bits(Format::D4, 0x5A, 24), D4.repeat(2));
}

#[test]
fn a_multiframe_written_by_hand_is_read() {
    for (octet, crc) in ESF {
        let mut deframer = Deframer::new(Format::Esf, false, 25 * 8);
        let mut crc = crc.chars().cycle();
        let mut fps = "001011".chars().cycle();
        for frame in 0..24 * 20 {
            let bit = match frame % 4 {
                1 => crc.next(),
                3 => fps.next(),
                _ => Some(if frame / 2 % 5 > 1 { '1' } else { '0' }),
            };
            deframer.take(&[if bit == Some('1') { 0x80 } else { 0 }], 1, &mut |_| {});
            deframer.take(&[octet; CHANNELS], CHANNELS * 8, &mut |_| {});
        }
        assert!(!deframer.defects().out_of_frame, "{octet:x}");
        assert_eq!(deframer.counted(), &receive::Counted::default(), "{octet:x}");
        while let Some(frame) = deframer.frame(1) {
            assert_eq!(frame, [octet; CHANNELS]);
        }
    }
}
