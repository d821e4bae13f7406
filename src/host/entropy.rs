//! Entropy: the seed of everything random, drawn from the operating system once per core at boot.

use std::fs::File;
use std::io::{self, Read};

/// The operating system's random device.
const DEVICE: &str = "/dev/urandom";

/// 128 bits nobody outside can guess; `proto::base::Rng` grows from it.
///
/// # Errors
/// When the random device cannot be opened or read (a container without `/dev`).
pub fn seed() -> io::Result<[u64; 2]> {
    let mut bytes = [0; 16];
    File::open(DEVICE)
        .and_then(|mut device| device.read_exact(&mut bytes))
        .map_err(|e| io::Error::new(e.kind(), format!("{DEVICE}: {e}")))?;
    let value = u128::from_ne_bytes(bytes);
    Ok([value as u64, (value >> 64) as u64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(seed().expect("a random device"), seed().expect("a random device"));
    }
}
