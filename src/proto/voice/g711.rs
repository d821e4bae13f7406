//! G.711: the two laws, their linear values, and octets of one law as octets of the other.
//!
//! Linear values are 16 bits wide for both laws (mu law has 14, A law 13 significant ones). Full scale is +3.17 dBm0 of a sine in mu law
//! and +3.14 dBm0 in A law (G.711 tables 1 and 2), so the same value is 0.07 dB more in A law: [`Law::value_in`].

/// A companding law.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Law {
    /// North America and Japan; payload type 0.
    #[default]
    Mu,
    /// Elsewhere; payload type 8.
    A,
}

impl Law {
    /// The octet of an idle channel: the smallest positive value.
    pub const fn idle(self) -> u8 {
        match self {
            Law::Mu => 0xff,
            Law::A => 0xd5,
        }
    }

    /// The linear value of an octet.
    pub fn decode(self, octet: u8) -> i16 {
        self.values()[usize::from(octet)]
    }

    /// The linear values of all octets.
    pub const fn values(self) -> &'static [i16; 256] {
        match self {
            Law::Mu => &MU_VALUES,
            Law::A => &A_VALUES,
        }
    }

    /// The octet nearest to a linear value, which is cut at full scale.
    pub const fn encode(self, value: i32) -> u8 {
        match self {
            Law::Mu => mu_octet(value),
            Law::A => a_octet(value),
        }
    }

    /// The octets of law `to` for all octets of this one; `None` when they are the same.
    pub const fn conversion(self, to: Law) -> Option<&'static [u8; 256]> {
        match (self, to) {
            (Law::Mu, Law::A) => Some(&MU_TO_A),
            (Law::A, Law::Mu) => Some(&A_TO_MU),
            _ => None,
        }
    }

    /// A value of this law as one of law `to`, at the same level.
    pub const fn value_in(self, to: Law, value: i32) -> i32 {
        match (self, to) {
            (Law::Mu, Law::A) => (value as i64 * ONE_A / ONE_MU) as i32,
            (Law::A, Law::Mu) => (value as i64 * ONE_MU / ONE_A) as i32,
            _ => value,
        }
    }

    /// The amplitude of a sine of so many dBm0.
    pub fn amplitude(self, dbm0: f32) -> f32 {
        let one = if self == Law::Mu { ONE_MU } else { ONE_A };
        one as f32 * 10f32.powf(dbm0 / 20.0)
    }

    /// Whether all of `octets` are so small that a moment more or less of them is not heard: below about -45 dBm0.
    pub fn is_silence(self, octets: &[u8]) -> bool {
        octets.iter().all(|&octet| self.decode(octet).unsigned_abs() < SILENCE)
    }
}

const SILENCE: u16 = 128;

static MU_VALUES: [i16; 256] = mu_values();
static A_VALUES: [i16; 256] = a_values();
static MU_TO_A: [u8; 256] = convert(Law::Mu, Law::A);
static A_TO_MU: [u8; 256] = convert(Law::A, Law::Mu);

/// The amplitudes of a sine of 0 dBm0.
const ONE_MU: i64 = 22_657;
const ONE_A: i64 = 22_827;

const BIAS: i32 = 33 << 2;

const fn mu_values() -> [i16; 256] {
    let mut values = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let code = !(octet as i32);
        let magnitude = ((((code & 15) << 3) + BIAS) << ((code >> 4) & 7)) - BIAS;
        values[octet] = if code & 0x80 != 0 { -magnitude } else { magnitude } as i16;
        octet += 1;
    }
    values
}

const fn a_values() -> [i16; 256] {
    let mut values = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let code = octet as i32 ^ 0x55;
        let (segment, step) = ((code >> 4) & 7, code & 15);
        let magnitude = match segment {
            0 => (step << 4) + 8,
            _ => ((step << 4) + 0x108) << (segment - 1),
        };
        values[octet] = if code & 0x80 != 0 { magnitude } else { -magnitude } as i16;
        octet += 1;
    }
    values
}

const fn mu_octet(value: i32) -> u8 {
    let magnitude = if value < 0 { -value } else { value };
    let magnitude = (if magnitude > 32_635 { 32_635 } else { magnitude }) + BIAS;
    // The highest bit of a biased value is bit 7 in the lowest segment and bit 14 in the highest.
    let segment = 24 - magnitude.leading_zeros() as i32;
    let code = (segment << 4) | ((magnitude >> (segment + 3)) & 15);
    !(code | if value < 0 { 0x80 } else { 0 }) as u8
}

const fn a_octet(value: i32) -> u8 {
    // Negative values are mirrored on the border between the smallest values.
    let magnitude = if value < 0 { -value - 1 } else { value };
    let magnitude = if magnitude > 32_767 { 32_767 } else { magnitude };
    let code = if magnitude < 256 {
        magnitude >> 4
    } else {
        let segment = 24 - magnitude.leading_zeros() as i32;
        (segment << 4) | ((magnitude >> (segment + 3)) & 15)
    };
    (code ^ 0x55 | if value < 0 { 0 } else { 0x80 }) as u8
}

const fn convert(from: Law, to: Law) -> [u8; 256] {
    let mut octets = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        octets[octet] = to.encode(from.value_in(to, from.values()[octet] as i32));
        octet += 1;
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of G.711 tables 1 and 2, scaled to 16 bits.
    #[test]
    fn octets_have_the_values_of_the_tables() {
        let mu = |octet| Law::Mu.decode(octet);
        assert_eq!((mu(0x00), mu(0x80), mu(0xff), mu(0x7f), mu(0xfe), mu(0xf0)), (-32_124, 32_124, 0, 0, 8, 120));
        let a = |octet| Law::A.decode(octet);
        assert_eq!((a(0xd5), a(0x55), a(0xaa), a(0x2a), a(0x80)), (8, -8, 32_256, -32_256, 5_504));
    }

    #[test]
    fn every_octet_comes_back_but_the_second_zero_of_mu_law() {
        for law in [Law::Mu, Law::A] {
            for octet in 0..=255 {
                let back = law.encode(law.decode(octet).into());
                let expected = if (law, octet) == (Law::Mu, 0x7f) { 0xff } else { octet };
                assert_eq!(back, expected, "{law:?} {octet:#x}");
            }
        }
    }

    /// The error is half a step at most, and what is too large is cut.
    #[test]
    fn the_nearest_octet_is_taken() {
        for law in [Law::Mu, Law::A] {
            for value in -33_000..33_000 {
                let error = (i32::from(law.decode(law.encode(value))) - value).abs();
                let cut = if value.abs() > 32_124 { 900 } else { (value.abs() / 32).max(8) + 8 };
                assert!(error <= cut, "{law:?} {value}: {error}");
            }
        }
    }

    /// G-EPC-01: each octet of a law has the nearest one of the other, 0.4 dB off at most where it can be heard.
    #[test]
    fn laws_convert() {
        assert!((Law::Mu.amplitude(3.17) - 32_636.0).abs() < 2.0 && (Law::A.amplitude(0.14) - 32_768.0 / 10f32.powf(0.15)).abs() < 2.0);
        for (from, to) in [(Law::Mu, Law::A), (Law::A, Law::Mu)] {
            let table = from.conversion(to).unwrap();
            for octet in 0..=255u8 {
                let (before, after) = (f32::from(from.decode(octet)), f32::from(to.decode(table[usize::from(octet)])));
                assert!(before.abs() < 256.0 || (after / before - 1.0).abs() < 0.04, "{octet:#x}: {before} {after}");
            }
            assert!(from.conversion(from).is_none());
        }
    }

    /// As G.711 wants of its tables 3 and 4: where steps are as wide in both laws, an octet that was converted comes back.
    #[test]
    fn conversion_there_and_back_changes_nothing_where_steps_are_as_wide() {
        let (there, back) = (Law::Mu.conversion(Law::A).unwrap(), Law::A.conversion(Law::Mu).unwrap());
        for octet in (0..=255u8).filter(|&octet| Law::Mu.decode(octet).unsigned_abs() > 1_000) {
            assert_eq!(back[usize::from(there[usize::from(octet)])], octet, "{octet:#x}");
        }
    }

    #[test]
    fn idle_channels_are_silent() {
        for law in [Law::Mu, Law::A] {
            assert!(law.is_silence(&[law.idle(); 8]) && !law.is_silence(&[law.idle(), law.encode(2_000)]));
        }
    }
}
