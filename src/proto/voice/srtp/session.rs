//! The keys of a session, derived from a master key (RFC 3711 4.3), and what is done with them: encryption by AES in counter mode (4.1.1), tags by
//! HMAC-SHA1 (4.2.1).

use crate::proto::base::srtp::MasterKey;
use aes::Aes128;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherCoreWrapper};
use ctr::CtrCore;
use ctr::flavors::Ctr128BE;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Octets of the longest tag.
pub(super) const TAG_MAX: usize = 20;

/// Labels of the keys of RTP packets; those of RTCP are three further each.
const CIPHER: u8 = 0;
const TAGS: u8 = 1;
const SALT: u8 = 2;
const CONTROL: u8 = 3;

/// The keys of one kind of packets in one direction.
pub(super) struct Session {
    cipher: Aes128,
    tags: Hmac<Sha1>,
    salt: [u8; 14],
}

impl Session {
    /// Those of RTP packets.
    pub fn media(master: &MasterKey) -> Option<Session> {
        Session::derive(master, 0)
    }

    /// Those of RTCP packets.
    pub fn control(master: &MasterKey) -> Option<Session> {
        Session::derive(master, CONTROL)
    }

    /// The rate of derivation is zero: once for all packets.
    fn derive(master: &MasterKey, first: u8) -> Option<Session> {
        let (mut key, mut tags) = (Zeroizing::new([0; 16]), Zeroizing::new([0; 20]));
        let mut salt = [0; 14];
        derived(master, first + CIPHER, &mut key[..]);
        derived(master, first + TAGS, &mut tags[..]);
        derived(master, first + SALT, &mut salt);
        let cipher = Aes128::new_from_slice(&key[..]).ok()?;
        Some(Session { cipher, tags: Hmac::new_from_slice(&tags[..]).ok()?, salt })
    }

    /// Encrypts, or decrypts, what is in the packet of this source and index.
    pub fn apply(&self, ssrc: u32, index: u64, octets: &mut [u8]) {
        let mut vector = [0; 16];
        vector[..14].copy_from_slice(&self.salt);
        let source = ssrc.to_be_bytes();
        // The index has 48 bits, and stands right before the counter of blocks.
        let [_, _, index @ ..] = index.to_be_bytes();
        vector[4..14].iter_mut().zip(source.iter().chain(&index)).for_each(|(place, octet)| *place ^= octet);
        run(&self.cipher, &vector, octets);
    }

    /// The tag of these octets, one part behind the other.
    pub fn tag(&self, octets: &[u8], behind: &[u8]) -> [u8; TAG_MAX] {
        let mut tags = self.tags.clone();
        tags.update(octets);
        tags.update(behind);
        tags.finalize().into_bytes().into()
    }

    /// Whether that is their tag, or the beginning of it.
    pub fn is_tag(&self, octets: &[u8], behind: &[u8], tag: &[u8]) -> bool {
        let right = self.tag(octets, behind);
        right.get(..tag.len()).is_some_and(|right| !tag.is_empty() && right.ct_eq(tag).into())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The cipher and the tags wipe themselves.
        self.salt.zeroize();
    }
}

/// The key of this label.
fn derived(master: &MasterKey, label: u8, key: &mut [u8]) {
    let mut vector = [0; 16];
    vector[..14].copy_from_slice(master.salt());
    vector[7] ^= label;
    key.fill(0);
    if let Ok(cipher) = Aes128::new_from_slice(master.key()) {
        run(&cipher, &vector, key);
    }
}

/// The key stream that begins at `vector`, over the octets.
fn run(cipher: &Aes128, vector: &[u8; 16], octets: &mut [u8]) {
    let core = CtrCore::<&Aes128, Ctr128BE>::inner_iv_init(cipher, vector.into());
    StreamCipherCoreWrapper::from_core(core).apply_keystream(octets);
}

#[cfg(test)]
mod tests {
    use super::super::tests::octets;
    use super::*;

    /// RFC 3711 appendix B.2.
    #[test]
    fn the_key_stream_is_that_of_the_document() {
        let key: [u8; 16] = octets("2B7E151628AED2A6ABF7158809CF4F3C").try_into().unwrap();
        let (cipher, vector) = (Aes128::new(&key.into()), octets("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000").try_into().unwrap());
        let mut stream = vec![0; 0xff02 * 16];
        run(&cipher, &vector, &mut stream);
        assert_eq!(stream[..16], octets("E03EAD0935C95E80E166B16DD92B4EB4"));
        assert_eq!(stream[16..32], octets("D23513162B02D0F72A43A2FE4A5F97AB"));
        assert_eq!(stream[32..48], octets("41E95B3BB0A2E8DD477901E4FCA894C0"));
        assert_eq!(stream[0xfeff * 16..][..16], octets("EC8CDF7398607CB0F2D21675EA9EA1E4"));
        assert_eq!(stream[0xff00 * 16..][..16], octets("362B7C3C6773516318A077D7FC5073AE"));
        assert_eq!(stream[0xff01 * 16..], octets("6A2CC3787889374FBEB4C81B17BA6C44"));
    }

    /// RFC 3711 appendix B.3.
    #[test]
    fn the_keys_of_a_session_are_those_of_the_document() {
        let master = octets("E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6");
        let master = MasterKey::new(master.try_into().unwrap());
        let key = |label, length| {
            let mut key = vec![0; length];
            derived(&master, label, &mut key);
            key
        };
        assert_eq!(key(CIPHER, 16), octets("C61E7A93744F39EE10734AFE3FF7A087"));
        assert_eq!(key(SALT, 14), octets("30CBBC08863D8C85D49DB34A9AE1"));
        let tags = "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA48F0A0ACF3C34E2359E6CDBCEE049646C43D9327AD175578EF72270986371C10C9A369AC2F94A8C5FBC\
                    DDDC256D6E919A48B610EF17C2041E474035766B68642C59BBFC2F34DB60DBDFB2DC68";
        assert_eq!(key(TAGS, 94), octets(tags)[..94]);
    }
}
