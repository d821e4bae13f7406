//! From bits to frames.
//!
//! A [`Deframer`] always gives as many frames as bits have come, whether it knows where they begin or not, so that who plays them keeps
//! its clock: frames that did not come, or that nobody can tell apart, have no octets. They wait in an elastic store of a frame or
//! two, because the frames it finds begin elsewhere than those that are sent.
//!
//! Bits that were lost on the way (a packet of a pseudowire) are no errors: the frames go on beneath them, and only what was in them is
//! missing. Where frames begin is looked for anew after two wrong framing bits of the last six (T1A-01). Wrong CRCs alone take no frames
//! away, for a line with errors has hardly a right one; but after many in a row it is looked whether frames begin elsewhere.

use super::bits::BitQueue;
use super::multiframe::{Multiframe, Passed};
use super::remote::Remote;
use super::search::{Found, Search};
use super::{CHANNELS, FRAME_BITS, FRAMES, Format, Frame, robbed};
use std::collections::VecDeque;

/// What is wrong with what comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Defects {
    /// OOF: where frames begin is not known.
    pub out_of_frame: bool,
    /// AIS: ones only, without framing.
    pub ais: bool,
    /// LOS: zeros only.
    pub no_signal: bool,
    /// RAI: the far end does not hear us.
    pub remote_alarm: bool,
}

/// What was counted; saturating.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// PCV: of ESF multiframes with a wrong CRC or framing bit, and those with a lost packet; of D4 wrong framing bits (RFC 4805 3.4.1).
    pub violations: u64,
    /// Times the alignment was lost.
    pub frame_losses: u64,
}

/// The receiving half of a T1.
#[derive(Debug)]
pub struct Deframer {
    format: Format,
    signalled: bool,
    bits: BitQueue,
    /// Bits of the queue behind its first that did not come: from, to.
    lost: (usize, usize),
    aligned: Option<Aligned>,
    /// Whether it was lost since somebody asked.
    was_lost: bool,
    /// While it is not aligned, or its alignment is in doubt.
    search: Search,
    signal: Signal,
    remote: Remote,
    /// Frames that wait; `None` has no octets.
    store: VecDeque<Option<Frame>>,
    counted: Counted,
}

/// An alignment that holds.
#[derive(Debug)]
struct Aligned {
    multiframe: Multiframe,
    /// The framing bits that came last, the newest the lowest: 1 was wrong.
    wrong: u8,
    /// Whether the robbed bits of this multiframe are not to be trusted, and whether it is a violation.
    doubtful: bool,
    violated: bool,
    /// CRCs in a row that were wrong.
    bad_checks: u8,
    /// Robbed bits of each channel as far as they have come.
    abcd: Frame,
}

/// Whether it is a signal at all, while its frames are not found.
#[derive(Clone, Copy, Debug, Default)]
struct Signal {
    ais: bool,
    no_signal: bool,
    rows: u8,
    zeros: u32,
}

/// Two of so many framing bits in a row are wrong: out of frame. 3 ms of ESF, 0.75 ms of D4.
const WATCHED: u8 = 0x3F;
const WRONG_MAX: u32 = 1;
/// So many CRCs in a row are wrong: it may be aligned to something that only looks like framing bits.
const BAD_CHECKS: u8 = 32;
/// AIS is looked for in so many rows (3 ms), which have so many zeros at most: 99.9 % are ones (T1A-02).
const AIS_ROWS: u8 = 24;
const AIS_ZEROS: u32 = 4;
/// A signal again has 12.5 % ones (T1A-03).
const ONES_MIN: u32 = 25;
/// Bits that are needed to look for frames: a row, and a frame that begins at its end.
const LOOK_BITS: usize = 2 * FRAME_BITS;
/// Frames that may wait beyond those that are taken.
const STORE_MAX: usize = 3;

impl Deframer {
    /// One that has seen nothing. At most `bits_max` bits come at a time. With `signalled` bits are robbed from the octets.
    pub fn new(format: Format, signalled: bool, bits_max: usize) -> Deframer {
        Deframer {
            format,
            signalled,
            bits: BitQueue::new(bits_max + LOOK_BITS),
            lost: (0, 0),
            aligned: None,
            was_lost: false,
            search: Search::new(format, None),
            signal: Signal::default(),
            remote: Remote::default(),
            store: VecDeque::with_capacity(bits_max / FRAME_BITS + 2 * STORE_MAX + usize::from(FRAMES)),
            counted: Counted::default(),
        }
    }

    /// What is wrong.
    pub fn defects(&self) -> Defects {
        let out_of_frame = self.aligned.is_none();
        let Signal { ais, no_signal, .. } = self.signal;
        Defects { out_of_frame, ais, no_signal, remote_alarm: !out_of_frame && self.remote.is_alarm() }
    }

    /// What is wrong, or was for a moment since this was asked: frames may be lost and found between two packets.
    pub fn take_defects(&mut self) -> Defects {
        let was_lost = std::mem::take(&mut self.was_lost);
        let defects = self.defects();
        Defects { out_of_frame: defects.out_of_frame || was_lost, ..defects }
    }

    /// What was counted.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// The first `count` bits of `octets` came. `robbed` gets the ABCD bits of each channel at the end of a multiframe without an error.
    pub fn take(&mut self, octets: &[u8], count: usize, robbed: &mut impl FnMut(&Frame)) {
        self.bits.push(octets, count);
        self.work(robbed);
    }

    /// So many bits did not come. With `error` that is one of the line (RFC 4553 6.4); else nobody sent them.
    pub fn lose(&mut self, count: usize, error: bool, robbed: &mut impl FnMut(&Frame)) {
        if let Some(aligned) = &mut self.aligned {
            aligned.violated |= error;
        }
        const ONES: [u8; 24] = [0xFF; 24];
        let mut left = count;
        while left > 0 {
            let some = left.min(ONES.len() * 8);
            let from = if self.lost.0 < self.lost.1 { self.lost.0 } else { self.bits.len() };
            self.bits.push(&ONES, some);
            self.lost = (from, self.bits.len());
            self.work(robbed);
            left -= some;
        }
    }

    /// What comes next is so many bits further on in the stream than what was expected, or with less than 0 before it: no frames come of the
    /// difference, and they begin where they did.
    pub fn jump(&mut self, bits: i64) {
        let before = self.store.len();
        // A multiframe further on all is the same.
        self.lose(bits.rem_euclid((FRAME_BITS * usize::from(FRAMES)) as i64) as usize, false, &mut |_| {});
        self.store.truncate(before);
    }

    /// The next frame for who plays one of `wanted` now; `None` when it has no octets.
    pub fn frame(&mut self, wanted: usize) -> Option<Frame> {
        while self.store.len() >= wanted + STORE_MAX {
            self.store.pop_front();
        }
        self.store.pop_front().flatten()
    }

    fn work(&mut self, robbed: &mut impl FnMut(&Frame)) {
        loop {
            let is_sure = self.aligned.as_ref().is_some_and(|aligned| aligned.bad_checks < BAD_CHECKS);
            if self.bits.len() < if is_sure { FRAME_BITS } else { LOOK_BITS } {
                return;
            }
            let elsewhere = if is_sure { None } else { self.search() };
            if self.aligned.is_some() {
                self.deframe(robbed);
            } else {
                self.store.push_back(None);
                self.skip(FRAME_BITS);
            }
            if let Some(found) = elsewhere {
                self.align(found);
            }
        }
    }

    fn skip(&mut self, bits: usize) {
        self.bits.skip(bits);
        let (from, to) = self.lost;
        self.lost = (from.saturating_sub(bits), to.saturating_sub(bits));
    }

    /// Whether the first `bits` bits came.
    fn is_known(&self, bits: usize) -> bool {
        let (from, to) = self.lost;
        from >= bits || to <= from
    }

    /// Looks at a row without an alignment, or with one that is in doubt; what it found other than this.
    fn search(&mut self) -> Option<Found> {
        let known = self.is_known(LOOK_BITS);
        if known && self.aligned.is_none() {
            self.signal.look(&self.bits.row());
        }
        let found = self.search.look(&self.bits, known)?;
        let next = self.aligned.as_ref().map(|aligned| (aligned.multiframe.next() + 1) % FRAMES);
        let is_here = found.place == 0 && next == Some(found.multiframe.next());
        Some(found).filter(|_| !is_here)
    }

    /// Frames are found behind the row that was looked at.
    fn align(&mut self, found: Found) {
        if self.aligned.is_some() {
            self.counted.frame_losses = self.counted.frame_losses.saturating_add(1);
            self.was_lost = true;
        }
        self.skip(found.place);
        self.signal = Signal::default();
        self.remote = Remote::default();
        let multiframe = found.multiframe;
        let doubtful = multiframe.next() != 0;
        self.aligned = Some(Aligned { multiframe, wrong: 0, doubtful, violated: false, bad_checks: 0, abcd: [0; CHANNELS] });
    }

    fn deframe(&mut self, out: &mut impl FnMut(&Frame)) {
        let known = self.is_known(FRAME_BITS);
        let Some(aligned) = &mut self.aligned else { return };
        let (bit, octets) = self.bits.frame(0);
        let passed = aligned.multiframe.pass(known.then_some((bit, &octets)));
        if known {
            self.remote.frame(self.format, &octets);
            if let Some(bit) = passed.link {
                self.remote.link(bit);
            }
        }
        aligned.note(self.format, &passed, known, &mut self.counted);
        if self.signalled {
            aligned.rob(&passed, &octets, out);
        }
        aligned.end(self.format, &passed, &mut self.counted);
        if aligned.bad_checks == BAD_CHECKS && passed.check == Some(false) {
            self.search = Search::new(self.format, None);
        }
        let is_lost = aligned.is_lost();
        let next = aligned.multiframe.next();
        self.store.push_back(known.then_some(octets));
        self.skip(FRAME_BITS);
        if is_lost {
            self.counted.frame_losses = self.counted.frame_losses.saturating_add(1);
            (self.aligned, self.was_lost) = (None, true);
            self.search = Search::new(self.format, Some(next));
        }
    }
}

impl Aligned {
    /// A framing bit that is wrong, a frame that is missing.
    fn note(&mut self, format: Format, passed: &Passed, known: bool, counted: &mut Counted) {
        self.doubtful |= !known;
        let Some(wrong) = passed.wrong else { return };
        self.wrong = self.wrong << 1 | u8::from(wrong);
        self.doubtful |= wrong;
        self.violated |= wrong;
        if wrong && format == Format::D4 {
            counted.violations = counted.violations.saturating_add(1);
        }
    }

    /// Collects robbed bits; those of a multiframe with a wrong framing bit, or that is not whole, count for nothing.
    fn rob(&mut self, passed: &Passed, octets: &Frame, out: &mut impl FnMut(&Frame)) {
        if robbed(passed.frame).is_none() {
            return;
        }
        for (bits, octet) in self.abcd.iter_mut().zip(octets) {
            *bits = (*bits << 1 | octet & 1) & 0x0F;
        }
        if passed.frame + 1 == FRAMES && !self.doubtful {
            out(&self.abcd);
        }
    }

    /// The end of a multiframe, if it is one.
    fn end(&mut self, format: Format, passed: &Passed, counted: &mut Counted) {
        if passed.frame + 1 != FRAMES {
            return;
        }
        match passed.check {
            Some(true) => self.bad_checks = 0,
            Some(false) => self.bad_checks = self.bad_checks.saturating_add(1),
            None => {}
        }
        if format == Format::Esf && (self.violated || passed.check == Some(false)) {
            counted.violations = counted.violations.saturating_add(1);
        }
        (self.doubtful, self.violated) = (false, false);
    }

    fn is_lost(&self) -> bool {
        (self.wrong & WATCHED).count_ones() > WRONG_MAX
    }
}

impl Signal {
    /// A row came that is in no frame.
    fn look(&mut self, row: &[u64; 4]) {
        let ones: u32 = row.iter().map(|bits| bits.count_ones()).sum();
        match ones {
            0 => self.no_signal = true,
            ONES_MIN.. => self.no_signal = false,
            _ => {}
        }
        self.zeros += FRAME_BITS as u32 - ones;
        self.rows += 1;
        if self.rows == AIS_ROWS {
            self.ais = self.zeros <= AIS_ZEROS;
            (self.rows, self.zeros) = (0, 0);
        }
    }
}
