//! Payloads that imitate framing, and lines with more errors than a good one ever has.

use super::*;

/// An octet that is all ones or all zeros in step with the framing bits `shift` frames on, so each of its bits imitates them.
fn in_step(format: Format, frame: u64, shift: u64) -> u8 {
    match format.framing_bit(((frame + shift) % 24) as u8) {
        FramingBit::Alignment(true) => 0xFF,
        FramingBit::Alignment(false) => 0,
        _ => (frame * 7 % 256) as u8,
    }
}

/// A payload of no meaning that is the same each time.
fn any(frame: u64, channel: u8) -> u8 {
    (frame as u8).wrapping_mul(29) ^ channel.wrapping_mul(17)
}

/// Eight imitators come before the right place in nearly all phases: none may starve it, and none be taken for it.
#[test]
fn an_extended_superframe_is_found_beside_clear_channels_in_step_with_its_framing() {
    let one: fn(u64, u8) -> u8 = |frame, channel| if channel == 3 { in_step(Format::Esf, frame, 1) } else { any(frame, channel) };
    let many: fn(u64, u8) -> u8 =
        |frame, channel| if channel < 6 { in_step(Format::Esf, frame, 1 + u64::from(channel)) } else { any(frame, channel) };
    for (says, most) in [(one, 60), (many, 150)] {
        for seed in 0..24 {
            let mut line = Line::new(Format::Esf, seed);
            line.framer = Framer::new(Format::Esf, false, OCTETS * 8);
            line.says = Some(says);
            let packets = line.align();
            assert!(packets <= most, "{seed}: {packets}");
            line.run(100, |_, _| {});
            let counted = *line.deframer.counted();
            assert_eq!((counted.violations, counted.frame_losses), (0, 0), "{seed}: aligned to the right one");
        }
    }
}

/// A slip of one bit puts an imitation in the place of the framing bits: wrong CRCs tell, and the right place is found beneath.
#[test]
fn an_extended_superframe_that_is_aligned_to_an_imitation_is_found_again_by_its_crc() {
    for seed in 0..4 {
        let mut line = Line::new(Format::Esf, seed);
        line.says = Some(|frame, channel| if channel == 0 { in_step(Format::Esf, frame, 0) & 0x80 } else { any(frame, channel) });
        line.align();
        line.run(20, |_, _| {});
        let packet = line.packet();
        line.deliver(&packet, OCTETS * 8 - 1);
        line.came += 1;
        line.run(50, |_, _| {});
        assert!(line.deframer.counted().violations > 10 && !line.defects().out_of_frame, "{seed}: aligned to the wrong one");
        line.run(600, |_, _| {});
        let before = *line.deframer.counted();
        line.run(100, |_, _| {});
        assert_eq!(*line.deframer.counted(), before, "{seed}: aligned to the right one");
        assert_eq!(before.frame_losses, 1, "{seed}");
    }
}

/// At 5e-4 nine multiframes of ten have a wrong CRC, at 1e-3 ninety-nine of a hundred; two wrong framing bits of six come every few minutes.
#[test]
fn wrong_crcs_alone_take_no_frames_away() {
    for (one_in, violated) in [(2_000, 85..95), (1_000, 95..100)] {
        let mut line = Line::new(Format::Esf, 5);
        line.align();
        line.found = Found::default();
        line.run(6_031, errors(one_in));
        let counted = *line.deframer.counted();
        assert!(violated.contains(&(counted.violations / 20)), "{one_in}: {counted:?}");
        // What a reframing leaves out is no more than some 20 ms.
        let Found { frames, missing, .. } = line.found;
        assert!(missing <= 170 * counted.frame_losses + 8 && counted.frame_losses <= 1, "{one_in}: {counted:?} {frames} {missing}");
    }
}

/// Two of six framing bits are hit: the frames are where they were, though no CRC says so.
#[test]
fn frames_that_errors_took_away_are_found_where_they_were_without_a_right_crc() {
    for seed in 0..4 {
        let mut line = Line::new(Format::Esf, seed);
        line.align();
        line.run(50, |_, _| {});
        line.run(3, |_, packet| packet.fill(0xFF));
        assert!(line.defects().out_of_frame, "{seed}");
        let mut bad = errors(1_000);
        let found = (1..200).find(|_| {
            line.run(1, &mut bad);
            !line.defects().out_of_frame
        });
        assert!(found.is_some_and(|packets| packets <= 50), "{seed}: {found:?}");
        line.found = Found::default();
        line.sent.clear();
        line.run(50, |_, _| {});
        assert!(line.found.frames > 380 && line.found.wrong <= 2, "{seed}: {:?}", (line.found.frames, line.found.wrong));
    }
}

/// A bit error strikes out one of two that look alike, half the time the right one: that alone decides nothing.
#[test]
fn a_bit_error_does_not_decide_between_a_superframe_and_its_imitation() {
    let says: fn(u64, u8) -> u8 = |frame, channel| if channel == 9 { imitates(Format::D4, frame) } else { any(frame, channel) };
    for seed in 0..4 {
        let mut line = Line::new(Format::D4, seed);
        line.says = Some(says);
        line.run(1_500, errors(10_000));
        assert!(line.defects().out_of_frame, "{seed}: two look alike");
        // Where it was before is known, and is taken.
        line.says = None;
        line.align();
        for _ in 0..5 {
            line.says = None;
            line.run(50, |_, _| {});
            line.says = Some(says);
            line.run(3, |_, packet| packet.fill(0xFF));
            assert!(line.defects().out_of_frame, "{seed}");
            line.run(100, errors(4_000));
            line.found = Found::default();
            line.sent.clear();
            line.run(20, |_, _| {});
            let Found { frames, wrong, .. } = line.found;
            assert!(frames > 140 && wrong <= 8, "{seed}: {frames} {wrong}");
        }
    }
}
