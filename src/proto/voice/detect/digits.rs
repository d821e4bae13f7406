//! Keys of telephones (Q.24) and MF digits.
//!
//! Blocks overlap by half. A digit is reported when four in a row are of it and nothing else: a tone of 40 ms always holds as many, one of
//! 20 ms never does, and talk nearly never. It is over when four in a row are not, so that an interruption of 10 ms does not make two of
//! one.

use super::bank::{Found, Overlapping};
use crate::proto::trunk::DigitKind;
use crate::proto::voice::g711::Law;
use crate::proto::voice::leg::BLOCK;
use crate::proto::voice::tone::{COLUMNS, KEYPAD, MF_HZ, MF_SYMBOLS, ROWS};

/// Octets of a block: 12.75 ms, as long as the frequencies of keys are far apart.
const KEY_BLOCK: usize = 102;
/// 15 ms: frequencies of MF are 200 Hz apart.
const MF_BLOCK: usize = 120;
/// A frequency is stronger than any other of its group by so much: 8 dB.
const STANDS_OUT: f32 = 6.3;
/// The upper frequency may be stronger by 4 dB, the lower one by 8.
const UPPER_MOST: f32 = 2.51;
const LOWER_MOST: f32 = 6.31;
/// The frequencies of MF differ by 6 dB at most.
const MF_MOST: f32 = 3.98;
/// So much of all energy is in the two frequencies: the guard against talk.
const SHARE: f32 = 0.72;
/// So many blocks in a row begin a digit, or end it.
const IN_A_ROW: u8 = 4;
/// The weakest frequency that counts, in dBm0.
const WEAKEST_DBM0: f32 = -36.0;

/// A change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A digit began.
    Began(u8),
    /// It is over.
    Ended(u8),
}

/// Listens for one kind of digits.
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    filters: Filters,
    law: Law,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum Filters {
    Keys(Overlapping<8>),
    Mf(Overlapping<6>),
}

#[derive(Clone, Copy, Debug)]
struct State {
    weakest: f32,
    /// What the last block was, and how many in a row.
    last: Option<u8>,
    run: u8,
    /// What is on.
    on: Option<u8>,
}

impl Digits {
    /// `None` for dial pulses, which are no sound.
    pub fn new(kind: DigitKind, law: Law) -> Option<Digits> {
        let [a, b, c, d] = ROWS;
        let [e, f, g, h] = COLUMNS;
        let filters = match kind {
            DigitKind::Dtmf => Filters::Keys(Overlapping::new(&[a, b, c, d, e, f, g, h], KEY_BLOCK)),
            DigitKind::Mf => Filters::Mf(Overlapping::new(&MF_HZ, MF_BLOCK)),
            DigitKind::Pulse => return None,
        };
        let weakest = law.amplitude(WEAKEST_DBM0).powi(2);
        Some(Digits { filters, law, state: State { weakest, last: None, run: 0, on: None } })
    }

    /// Hears octets, at most [`BLOCK`] of them.
    pub fn push(&mut self, octets: &[u8], tell: &mut impl FnMut(Change)) {
        let mut values = [0.0; BLOCK];
        values.iter_mut().zip(octets).for_each(|(value, &octet)| *value = f32::from(self.law.decode(octet)));
        let Some(values) = values.get(..octets.len()) else { return };
        let state = &mut self.state;
        match &mut self.filters {
            Filters::Keys(banks) => banks.push(values, &mut |found| state.note(key(found, state.weakest), tell)),
            Filters::Mf(banks) => banks.push(values, &mut |found| state.note(mf(found, state.weakest), tell)),
        }
    }
}

impl State {
    fn note(&mut self, block: Option<u8>, tell: &mut impl FnMut(Change)) {
        self.run = if block == self.last { self.run.saturating_add(1) } else { 1 };
        self.last = block;
        if self.run < IN_A_ROW || block == self.on {
            return;
        }
        if let Some(digit) = self.on.take() {
            tell(Change::Ended(digit));
        }
        if let Some(digit) = block {
            tell(Change::Began(digit));
        }
        self.on = block;
    }
}

/// The strongest of a group; none when another one is nearly as strong.
fn strongest(powers: &[f32]) -> Option<(usize, f32)> {
    let (best, &power) = powers.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let alone = powers.iter().enumerate().all(|(n, &other)| n == best || other * STANDS_OUT < power);
    alone.then_some((best, power))
}

fn key((powers, energy): Found<8>, weakest: f32) -> Option<u8> {
    let (rows, columns) = powers.split_at(4);
    let ((row, low), (column, high)) = (strongest(rows)?, strongest(columns)?);
    let level = low > weakest && high > weakest && high < low * UPPER_MOST && low < high * LOWER_MOST;
    (level && (low + high) / 2.0 > energy * SHARE).then(|| KEYPAD.get(row * 4 + column).copied())?
}

fn mf((powers, energy): Found<6>, weakest: f32) -> Option<u8> {
    let mut order: [usize; 6] = std::array::from_fn(|n| n);
    order.sort_unstable_by(|&a, &b| powers[b].total_cmp(&powers[a]));
    let [one, two, third, ..] = order;
    let (more, less) = (powers[one], powers[two]);
    let level = less > weakest && more < less * MF_MOST && powers[third] * STANDS_OUT < less;
    if !level || (more + less) / 2.0 < energy * SHARE {
        return None;
    }
    let pair = (one.min(two), one.max(two));
    MF_SYMBOLS.iter().find(|(_, low, high)| (*low, *high) == pair).map(|(symbol, _, _)| *symbol)
}
