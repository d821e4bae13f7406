//! Several frequencies over one block of octets.

use std::f32::consts::TAU;

/// Goertzel filters for `N` frequencies, and the energy of all.
#[derive(Clone, Copy, Debug)]
pub struct Bank<const N: usize> {
    factors: [f32; N],
    /// The last two states of each.
    states: [[f32; N]; 2],
    energy: f32,
}

impl<const N: usize> Bank<N> {
    pub fn new(hz: &[f32; N]) -> Bank<N> {
        Bank { factors: hz.map(|hz| 2.0 * (hz / 8_000.0 * TAU).cos()), states: [[0.0; N]; 2], energy: 0.0 }
    }

    pub fn push(&mut self, values: &[f32]) {
        let [last, before] = &mut self.states;
        for &value in values {
            for n in 0..N {
                let next = value + self.factors[n] * last[n] - before[n];
                before[n] = last[n];
                last[n] = next;
            }
            self.energy += value * value;
        }
    }

    /// The squares of the amplitudes of the frequencies over `length` values, and the mean square of all; a new block begins.
    pub fn take(&mut self, length: usize) -> Found<N> {
        let [last, before] = self.states;
        let scale = 2.0 / length as f32;
        let power = |n: usize| (last[n] * last[n] + before[n] * before[n] - self.factors[n] * last[n] * before[n]) * scale * scale;
        let result = (std::array::from_fn(power), self.energy / length as f32);
        (self.states, self.energy) = ([[0.0; N]; 2], 0.0);
        result
    }
}

/// What a bank found in a block: the squares of the amplitudes, and the mean square of all.
pub type Found<const N: usize> = ([f32; N], f32);

/// Two banks, each half a block behind the other, so that blocks overlap.
#[derive(Clone, Copy, Debug)]
pub struct Overlapping<const N: usize> {
    banks: [Bank<N>; 2],
    /// Octets of a block, and how many are in each bank's.
    length: usize,
    filled: [usize; 2],
}

impl<const N: usize> Overlapping<N> {
    pub fn new(hz: &[f32; N], length: usize) -> Overlapping<N> {
        Overlapping { banks: [Bank::new(hz); 2], length, filled: [0, length / 2] }
    }

    /// Takes values, and tells what was found in each block that is complete.
    pub fn push(&mut self, mut values: &[f32], found: &mut impl FnMut(Found<N>)) {
        while !values.is_empty() {
            let room = self.length - self.filled.into_iter().max().unwrap_or_default();
            let (part, rest) = values.split_at(values.len().min(room));
            for (bank, filled) in self.banks.iter_mut().zip(&mut self.filled) {
                bank.push(part);
                *filled += part.len();
                if *filled >= self.length {
                    *filled = 0;
                    found(bank.take(self.length));
                }
            }
            values = rest;
        }
    }
}
