//! The keyed hash of an endpoint name as written, case-folded: half of the key that recognises a repeated command.

/// Hashes names case-insensitively under a secret drawn at boot, so that nobody outside can choose two names that collide.
#[derive(Clone, Copy, Debug)]
pub struct NameKey {
    secret: [u64; 2],
}

impl NameKey {
    /// A hash under this secret.
    pub fn new(secret: [u64; 2]) -> NameKey {
        NameKey { secret }
    }

    /// 64 bits of `name`, ASCII letter case ignored.
    pub fn fold(&self, name: &[u8]) -> u64 {
        self.mix(name, |word| {
            // Set bit 5 of every byte that is an upper-case ASCII letter: `A..=Z` in each lane at once.
            let heptets = word & 0x7f7f_7f7f_7f7f_7f7f;
            let at_least_a = heptets + 0x3f3f_3f3f_3f3f_3f3f;
            let beyond_z = heptets + 0x2525_2525_2525_2525;
            let ascii = !word & 0x8080_8080_8080_8080;
            word | ((at_least_a & !beyond_z & ascii) >> 2)
        })
    }

    /// 64 bits of `bytes` as they are.
    pub fn exact(&self, bytes: &[u8]) -> u64 {
        self.mix(bytes, |word| word)
    }

    #[inline(always)]
    fn mix(&self, bytes: &[u8], fold: impl Fn(u64) -> u64) -> u64 {
        let mut hash = self.secret[0] ^ bytes.len() as u64;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            hash = multiply(hash ^ fold(u64::from_le_bytes(*word)), self.secret[1]);
        }
        let last = match bytes.last_chunk::<8>() {
            // The last word again, without what was read.
            Some(last) => u64::from_le_bytes(*last).checked_shr(64 - 8 * rest.len() as u32).unwrap_or(0),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        multiply(multiply(hash ^ fold(last), self.secret[1]), self.secret[0] | 1)
    }
}

/// The 128-bit product, folded: every input bit reaches every output bit.
#[inline(always)]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_case_does_not_matter_and_everything_else_does() {
        let key = NameKey::new([0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d]);
        let name = b"ds/ds3-1/DS1-28/24@Tgw.Example.NET";
        assert_eq!(key.fold(name), key.fold(&name.to_ascii_lowercase()));
        assert_eq!(key.fold(name), key.fold(&name.to_ascii_uppercase()));
        assert_ne!(key.exact(name), key.exact(&name.to_ascii_lowercase()));
        for byte in 0..=255u8 {
            let folded = key.fold(&[byte]);
            for other in 0..=255u8 {
                assert_eq!(folded == key.fold(&[other]), byte.eq_ignore_ascii_case(&other), "{byte} {other}");
            }
        }
    }

    #[test]
    fn neighbouring_names_do_not_collide() {
        let key = NameKey::new([11, 29]);
        let mut seen = std::collections::HashSet::new();
        for span in 1..=28 {
            for slot in 1..=24 {
                assert!(seen.insert(key.fold(format!("ds/ds3-1/ds1-{span}/{slot}@tgw").as_bytes())));
            }
        }
    }
}
