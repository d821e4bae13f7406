//! CRC-6 of an extended superframe (ITU-T G.704 2.1.3.1.2): x^6 + x + 1 over all 4,632 bits, with framing bits taken for 1. Eight octets at a
//! time, by tables.

use super::Frame;

/// The remainder, in the six highest bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Crc(u8);

/// x + 1, beside x^6 which falls out above, in the six highest bits.
const POLYNOMIAL: u8 = 0x03 << 2;

/// `TABLES[n][octet]`: what an octet leaves with `n` octets of 0 behind it.
static TABLES: [[u8; 256]; 8] = tables();

const fn tables() -> [[u8; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut octet = 0;
    while octet < 256 {
        let (mut rest, mut bit) = (octet as u8, 0);
        while bit < 8 {
            rest = if rest & 0x80 != 0 { rest << 1 ^ POLYNOMIAL } else { rest << 1 };
            bit += 1;
        }
        tables[0][octet] = rest;
        octet += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut octet = 0;
        while octet < 256 {
            tables[behind][octet] = tables[0][tables[behind - 1][octet] as usize];
            octet += 1;
        }
        behind += 1;
    }
    tables
}

impl Crc {
    /// With a frame behind, whose framing bit counts as 1.
    pub fn with(self, frame: &Frame) -> Crc {
        let mut rest = if self.0 & 0x80 == 0 { self.0 << 1 ^ POLYNOMIAL } else { self.0 << 1 };
        let (chunks, _) = frame.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in chunks {
            let left = |behind: usize, octet: u8| TABLES[behind][usize::from(octet)];
            rest = left(7, a ^ rest) ^ left(6, *b) ^ left(5, *c) ^ left(4, *d) ^ left(3, *e) ^ left(2, *f) ^ left(1, *g) ^ left(0, *h);
        }
        Crc(rest)
    }

    /// Bit `place` of it, the highest being 0.
    pub fn bit(self, place: u8) -> bool {
        self.0 << place & 0x80 != 0
    }

    /// With bit `place` as it came.
    pub fn with_bit(self, place: u8, is: bool) -> Crc {
        let bit = 0x80 >> place;
        Crc(if is { self.0 | bit } else { self.0 & !bit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    #[test]
    fn tables_do_what_a_division_bit_by_bit_does() {
        let mut rng = Rng::new(1);
        let (mut crc, mut rest) = (Crc::default(), 0u8);
        for _ in 0..200 {
            let frame: Frame = std::array::from_fn(|_| rng.below(256) as u8);
            crc = crc.with(&frame);
            for bit in std::iter::once(true).chain(frame.iter().flat_map(|octet| (0..8).map(move |bit| octet << bit & 0x80 != 0))) {
                let out = rest & 0x20 != 0;
                rest = rest << 1 & 0x3F;
                if out != bit {
                    rest ^= 0x03;
                }
            }
            assert_eq!(crc, Crc(rest << 2));
            assert_eq!((0..6).fold(0, |all, place| all << 1 | u8::from(crc.bit(place))), rest);
        }
    }
}
