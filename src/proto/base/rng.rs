//! Seeded randomness: one seed per core at boot, forked by label (xoshiro256**; not for keys).

use std::time::Duration;

/// A small, fast, seeded generator. Two generators forked with different labels are independent (RFC 3435 4.4.6, G-SEC-05).
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// A generator whose whole future is decided by `seed`.
    pub fn new(seed: u64) -> Rng {
        let mut state = seed;
        Rng([(); 4].map(|()| splitmix(&mut state)))
    }

    /// An independent generator for one purpose.
    pub fn fork(&mut self, label: &str) -> Rng {
        let mut seed = self.next();
        for byte in label.bytes() {
            seed = (seed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Rng::new(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    pub fn duration(&mut self, low: Duration, high: Duration) -> Duration {
        let width = high.saturating_sub(low).as_nanos() as u64;
        low + Duration::from_nanos(self.below(width.saturating_add(1)))
    }

    /// True with probability `parts_per_million` / 1,000,000.
    pub fn chance(&mut self, parts_per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(parts_per_million)
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_future_and_forks_differ() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert_eq!(a.next(), b.next());
        let (mut x, mut y) = (a.fork("restart"), b.fork("backoff"));
        assert_ne!(x.next(), y.next());
    }

    #[test]
    fn below_and_duration_keep_their_bounds() {
        let mut rng = Rng::new(1);
        for _ in 0..10_000 {
            assert!(rng.below(7) < 7);
            let d = rng.duration(Duration::from_secs(1), Duration::from_secs(2));
            assert!(d >= Duration::from_secs(1) && d <= Duration::from_secs(2));
        }
        assert_eq!(rng.below(0), 0);
    }
}
