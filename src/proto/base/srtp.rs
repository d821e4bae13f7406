//! What a description says of the keys of protected media (RFC 4568): crypto-suite, tag and master key. How packets are protected by them is
//! `proto::voice`'s, how they are written `proto::codec::sdp`'s.
//!
//! Invariants: nothing here shows a key when it is printed; what holds one wipes it when it is dropped, but for a [`Passed`], which the ring
//! between two cores needs as plain octets.

use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// A crypto-suite (RFC 4568 6.2). Both encrypt by AES in counter mode with keys of 128 bits, and protect RTCP by a tag of 80 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Suite {
    /// An authentication tag of 80 bits: the one that everybody has.
    #[default]
    Tag80,
    /// One of 32 bits on RTP packets.
    Tag32,
}

impl Suite {
    /// All there are.
    pub const ALL: [Suite; 2] = [Suite::Tag80, Suite::Tag32];

    /// Its name in `a=crypto`.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Tag80 => "AES_CM_128_HMAC_SHA1_80",
            Suite::Tag32 => "AES_CM_128_HMAC_SHA1_32",
        }
    }

    /// The suite of this name, in any letter case.
    pub fn by_name(name: &[u8]) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Octets of the authentication tag of an RTP packet.
    pub const fn tag_octets(self) -> usize {
        match self {
            Suite::Tag80 => 10,
            Suite::Tag32 => 4,
        }
    }
}

/// A master key of 128 bits and its salt of 112 (RFC 3711 3.2.1). Compared in constant time, printed without a bit of it.
///
/// It lies in a box, so that moving it leaves no copy behind.
#[derive(Clone)]
pub struct MasterKey(Box<[u8; MasterKey::OCTETS]>);

impl MasterKey {
    /// Octets of both.
    pub const OCTETS: usize = 30;

    /// Key and salt behind each other.
    pub fn new(mut octets: [u8; MasterKey::OCTETS]) -> MasterKey {
        let key = MasterKey(Box::new(octets));
        octets.zeroize();
        key
    }

    /// Key and salt behind each other.
    pub fn octets(&self) -> &[u8; MasterKey::OCTETS] {
        &self.0
    }

    /// The key.
    pub fn key(&self) -> &[u8; 16] {
        self.0.first_chunk().unwrap_or(&[0; 16])
    }

    /// The salt.
    pub fn salt(&self) -> &[u8; 14] {
        self.0.last_chunk().unwrap_or(&[0; 14])
    }
}

impl PartialEq for MasterKey {
    fn eq(&self, other: &MasterKey) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }
}

impl Eq for MasterKey {}

impl Drop for MasterKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// What protects one direction of a connection: that of whoever wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crypto {
    /// Tells the lines of an offer apart, 0..=999,999,999; an answer has that of the line it takes.
    pub tag: u32,
    /// How.
    pub suite: Suite,
    /// By which key.
    pub key: MasterKey,
    /// The most RTP packets under this key, at most [`LIFETIME`].
    pub lifetime: u64,
}

/// The most RTP packets that a key is good for (RFC 3711 9.2).
pub const LIFETIME: u64 = 1 << 48;

/// A [`Crypto`] on its way to another core.
#[derive(Clone, Copy)]
pub struct Passed {
    tag: u32,
    suite: Suite,
    octets: [u8; MasterKey::OCTETS],
}

impl Passed {
    /// As it was. Its lifetime is that of one of ours: all there is.
    pub fn arrive(mut self) -> Crypto {
        let key = MasterKey::new(self.octets);
        self.octets.zeroize();
        Crypto { tag: self.tag, suite: self.suite, key, lifetime: LIFETIME }
    }
}

impl From<&Crypto> for Passed {
    fn from(crypto: &Crypto) -> Passed {
        Passed { tag: crypto.tag, suite: crypto.suite, octets: *crypto.key.octets() }
    }
}

impl fmt::Debug for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passed({}, {})", self.tag, self.suite.name())
    }
}

/// What protects a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MediaKeys {
    /// What it sends; `None`: it is not protected at all.
    pub local: Option<Crypto>,
    /// What it receives; `None`: not known yet, so nothing can be read.
    pub remote: Option<Crypto>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed() {
        let key = MasterKey::new(std::array::from_fn(|place| place as u8 + 200));
        let crypto = Crypto { tag: 7, suite: Suite::Tag32, key, lifetime: LIFETIME };
        let keys = MediaKeys { local: Some(crypto.clone()), remote: None };
        let printed = format!("{keys:?} {:?}", Passed::from(&crypto));
        assert!(printed.contains("MasterKey(..)") && !printed.contains("20"), "{printed}");
        assert_eq!(Passed::from(&crypto).arrive(), crypto);
    }

    #[test]
    fn suites_have_their_names_and_tags() {
        for suite in Suite::ALL {
            assert_eq!(Suite::by_name(suite.name().to_lowercase().as_bytes()), Some(suite));
            assert!(suite.name().ends_with(&(suite.tag_octets() * 8).to_string()));
        }
        assert_eq!(Suite::by_name(b"F8_128_HMAC_SHA1_80"), None);
    }

    #[test]
    fn keys_differ_by_any_bit() {
        let one = MasterKey::new([1; 30]);
        let mut octets = [1; 30];
        octets[29] ^= 0x80;
        assert!(one == one.clone() && one != MasterKey::new(octets));
        assert_eq!((one.key().len(), one.salt().len()), (16, 14));
    }
}
