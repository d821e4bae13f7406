//! Entropy: the seed of everything random, drawn from the operating system once per core at boot, and keys.

use crate::proto::base::srtp::MasterKey;
use std::fs::File;
use std::io::{self, Read};

/// The operating system's random device.
const DEVICE: &str = "/dev/urandom";

/// 128 bits nobody outside can guess; `proto::base::Rng` grows from it.
///
/// # Errors
/// When the random device cannot be opened or read (a container without `/dev`).
pub fn seed() -> io::Result<[u64; 2]> {
    let value = u128::from_ne_bytes(draw()?);
    Ok([value as u64, (value >> 64) as u64])
}

/// A key for media.
///
/// # Errors
/// As [`seed`].
pub fn key() -> io::Result<MasterKey> {
    draw().map(MasterKey::new)
}

fn draw<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open(DEVICE)
        .and_then(|mut device| device.read_exact(&mut bytes))
        .map_err(|e| io::Error::new(e.kind(), format!("{DEVICE}: {e}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(seed().expect("a random device"), seed().expect("a random device"));
        assert_ne!(key().expect("a random device"), key().expect("a random device"));
    }
}
