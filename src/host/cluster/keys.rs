//! Key files of a cluster: CURVE keys in Z85, one pair in a file that only its owner may read.

use crate::config::Config;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A pair of keys.
#[derive(Clone)]
pub struct Keys {
    pub(super) secret: Vec<u8>,
    pub(super) public: Vec<u8>,
}

/// Writes a new pair of keys into `path`, which must not be there yet: the public one, as others are told it.
///
/// # Errors
/// When ZeroMQ has no CURVE, or the file cannot be made.
pub fn make(path: &Path) -> Result<String> {
    check_available()?;
    let pair = zmq::CurveKeyPair::new().context("no keys from ZeroMQ")?;
    let text = |key: &[u8]| zmq::z85_encode(key).context("a key cannot be written");
    let (public, secret) = (text(&pair.public_key)?, text(&pair.secret_key)?);
    let about = || path.display().to_string();
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).with_context(about)?;
    writeln!(file, "{secret}\n{public}").with_context(about)?;
    Ok(public)
}

/// The keys of `cac.secret_key`; `None` without one.
///
/// # Errors
/// When the file is not what [`make`] writes, or others may read it, or ZeroMQ has no CURVE.
pub fn of(config: &Config) -> Result<Option<Keys>> {
    let Some(path) = &config.cac.secret_key else { return Ok(None) };
    check_available()?;
    let about = || format!("cac.secret_key {}", path.display());
    let mode = fs::metadata(path).with_context(about)?.mode();
    if mode & 0o077 != 0 {
        bail!("{}: others than its owner may read it (mode {:o})", about(), mode & 0o777);
    }
    let text = fs::read_to_string(path).with_context(about)?;
    let mut lines = text.lines();
    let mut key = || lines.next().and_then(|line| decode(line.trim()));
    match (key(), key()) {
        (Some(secret), Some(public)) => Ok(Some(Keys { secret, public })),
        _ => bail!("{}: not two keys, one on each line, as `tollgate cac-key FILE` writes them", about()),
    }
}

/// The octets of a key.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    zmq::z85_decode(text).ok().filter(|key| key.len() == 32)
}

fn check_available() -> Result<()> {
    if zmq::has("curve") == Some(true) {
        return Ok(());
    }
    bail!(
        "keys need a ZeroMQ with CURVE, and this program was built with its own copy, which has none: build it with the system's \
         (libzmq3-dev; docs/decisions/cluster.md says how)"
    )
}
