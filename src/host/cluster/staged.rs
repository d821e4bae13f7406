//! Where the calls for the next life of a gateway lie between `tollgate cac restore` and that start: beside the operator socket that the
//! gateway's file names. They lie there until the gateway is ready, so that a start that fails does not lose them.
//!
//! What is told from there counts for the whole cluster. So it must be a file of root or of the user the gateway runs as, which nobody
//! else may write, and not an old one: calls of last week are in nobody's way any more.

use super::saved::Saved;
use crate::config::Config;
use crate::host::control::socket;
use crate::proto::cac::Tree;
use crate::proto::cac::message::Told;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long calls may wait for the start that tells them.
pub const FRESH_FOR: Duration = Duration::from_secs(3600);
/// The longest file read: more calls than a gateway can have.
const LENGTH_MAX: u64 = 4 << 30;

/// Where the calls for the next start of this gateway lie; `None`: its file does not say where its operator socket is, so that would
/// depend on who starts it.
pub fn place(config: &Config) -> Option<PathBuf> {
    let mut name = config.operator.socket.fixed()?.clone().into_os_string();
    name.push(".calls");
    Some(name.into())
}

/// Puts calls there, for the user whose directory it is.
///
/// # Errors
/// What the system says, or that the directory is not to be trusted.
pub fn put(place: &Path, saved: &Saved) -> Result<()> {
    let about = || format!("{}", place.display());
    socket::prepare_directory(place).with_context(about)?;
    let mut part = place.as_os_str().to_owned();
    part.push(".part");
    let _ = fs::remove_file(&part);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).with_context(about)?;
    file.write_all(&serde_json::to_vec(saved)?).and_then(|()| file.sync_all()).with_context(about)?;
    if socket::user() == 0 {
        let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let owner = fs::metadata(directory).with_context(about)?;
        chown(&part, Some(owner.uid()), Some(owner.gid())).with_context(about)?;
    }
    fs::rename(&part, place).with_context(about)
}

/// What lies there, when it can be trusted. Never waits, whatever it is.
fn open(place: &Path) -> Result<Option<File>> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LENGTH_MAX {
        bail!("it is no file of calls");
    }
    if ![0, socket::user()].contains(&found.uid()) || found.mode() & 0o022 != 0 {
        bail!("it must belong to user {} or to root, and nobody else may write it", socket::user());
    }
    Ok(Some(file))
}

/// The calls that were found at a start, and those for the next one.
#[derive(Debug, Default)]
pub struct Staged {
    place: Option<PathBuf>,
    /// Device and inode of what was found, so that only that is removed.
    found: Option<(u64, u64)>,
}

impl Staged {
    /// The calls for this start, and how long they count. `now`: seconds since 1970.
    ///
    /// # Errors
    /// When there are some and they cannot be read: to begin without them would free their places.
    pub fn find(config: &Config, tree: &Tree, now: u64) -> Result<(Staged, Vec<Told>, Duration)> {
        let Some(place) = place(config) else { return Ok(Default::default()) };
        let about = || format!("calls for this start in {}: put them right (`tollgate cac restore`) or remove the file", place.display());
        let Some(mut file) = open(&place).with_context(about)? else {
            return Ok((Staged { place: Some(place), found: None }, Vec::new(), Duration::ZERO));
        };
        let found = file.metadata().map(|found| (found.dev(), found.ino())).with_context(about)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(about)?;
        let saved: Saved = serde_json::from_str(&text).with_context(about)?;
        let mut told = saved.told(config.cac.node, tree).with_context(about)?;
        let age = Duration::from_secs(now.saturating_sub(saved.put_s));
        if age > FRESH_FOR {
            tracing::warn!(
                "{} calls for this start lie in {} since {} s: too long, they do not count",
                told.len(),
                place.display(),
                age.as_secs()
            );
            told.clear();
        }
        Ok((Staged { place: Some(place), found: Some(found) }, told, Duration::from_secs(saved.for_s)))
    }

    /// The gateway is ready, and has what was found: the start after this one has other calls.
    pub fn taken(&self) {
        let (Some(place), Some(found)) = (&self.place, self.found) else { return };
        let is_it = fs::symlink_metadata(place).is_ok_and(|file| (file.dev(), file.ino()) == found);
        if is_it && let Err(error) = fs::remove_file(place) {
            tracing::error!("{}: these calls count again at the next start: {error}", place.display());
        }
    }

    /// Whether there are calls for the next start: then their places must not be given back at the end of this life.
    pub fn is_for_next(&self) -> bool {
        self.place.as_ref().is_some_and(|place| open(place).is_ok_and(|file| file.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Auto;
    use crate::host::control::tests::{Scratch, text};
    use crate::proto::cac::{Kind, Scope};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn at(path: &Path) -> (Config, Tree) {
        let mut config = Config::parse(&text(1), "test").unwrap();
        config.cac.node = 3;
        config.operator.socket = Auto::Fixed(path.join("tollgate.sock"));
        (config, Tree::new(vec![Scope::new(Kind::Pool, "carrier")]).unwrap())
    }

    /// They are there until they are taken, and for an hour.
    #[test]
    fn calls_lie_there_until_the_gateway_is_ready_and_not_for_ever() {
        let scratch = Scratch::new();
        let (config, tree) = at(scratch.path());
        let place = place(&config).unwrap();
        let find = |now| Staged::find(&config, &tree, now).unwrap();
        assert!(find(1_000).1.is_empty() && !find(1_000).0.is_for_next());
        put(&place, &Saved { put_s: 1_000, ..super::super::saved::tests::saved() }).unwrap();
        assert_eq!((find(1_000).1.len(), find(4_600).1.len(), find(4_601).1.len()), (1, 1, 0));
        let (staged, told, keep) = find(1_001);
        assert_eq!((told.len(), keep, staged.is_for_next()), (1, Duration::from_secs(7), true));
        // Somebody puts others there before it is ready: they are for the next start.
        put(&place, &Saved { put_s: 1_002, ..super::super::saved::tests::saved() }).unwrap();
        staged.taken();
        let (staged, ..) = find(1_003);
        assert!(staged.found.is_some());
        staged.taken();
        assert!(!place.exists() && !staged.is_for_next());
    }

    /// Only a file of the gateway's own is believed, and nothing keeps the start waiting.
    #[test]
    fn what_others_may_have_put_there_is_refused() {
        let scratch = Scratch::new();
        let (config, tree) = at(scratch.path());
        let place = place(&config).unwrap();
        let refused = || format!("{:#}", Staged::find(&config, &tree, 0).err().unwrap());
        put(&place, &super::super::saved::tests::saved()).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o620)).unwrap();
        assert!(refused().contains("nobody else may write it"), "{}", refused());
        let other = scratch.path().join("other");
        fs::rename(&place, &other).unwrap();
        std::os::unix::fs::symlink(&other, &place).unwrap();
        assert!(refused().contains("put them right"), "a link is not followed");
        fs::remove_file(&place).unwrap();
        std::process::Command::new("mkfifo").arg(&place).status().unwrap();
        assert!(refused().contains("no file of calls"), "{}", refused());
        fs::remove_file(&place).unwrap();
        fs::write(&place, "{").unwrap();
        assert!(refused().contains("put them right"));
    }
}
