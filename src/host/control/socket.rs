//! The operator socket in the file system: where it is, who may use it, what becomes of one that was left behind.
//!
//! Mode 0660: the owner's group may ask; changes are for the owner alone, whom the server tells by the peer's credentials. A directory
//! made here has mode 0700. A socket file is replaced only when nobody answers on it.

use anyhow::{Context, Result, bail};
use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::host::transport::sys;

/// Where the operator socket of a gateway with these settings is.
pub fn path(config: &Config) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    config.operator_socket(runtime.as_deref(), user())
}

/// The user this process acts as.
pub fn user() -> u32 {
    sys::effective_user()
}

/// The user on the other side.
pub(super) fn peer(stream: &UnixStream) -> std::io::Result<u32> {
    sys::peer_user(stream.as_fd())
}

/// A bound operator socket; its file goes with it.
pub struct Bound {
    /// Where operators come in.
    pub listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, so that only our own is removed.
    identity: (u64, u64),
}

impl Bound {
    /// Binds `path`.
    ///
    /// # Errors
    /// When a gateway answers there, when something other than a socket is there, when the directory is not to be trusted, or what the
    /// system says.
    pub fn new(path: &Path) -> Result<Bound> {
        let about = || format!("operator.socket {}", path.display());
        prepare_directory(path).with_context(about)?;
        remove_stale(path).with_context(about)?;
        let listener = UnixListener::bind(path).with_context(about)?;
        fs::set_permissions(path, Permissions::from_mode(0o660)).with_context(about)?;
        let file = fs::symlink_metadata(path).with_context(about)?;
        Ok(Bound { listener, path: path.to_owned(), identity: (file.dev(), file.ino()) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.identity);
        if ours {
            // Left behind it does no harm: the next start finds that nobody answers.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the directory when it is missing. One in a place where everybody may make some, such as `/tmp`, must be the user's own.
pub(in crate::host) fn prepare_directory(path: &Path) -> Result<()> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(()) };
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("directory {}", directory.display())),
    }
    let shared = directory.parent().and_then(|parent| fs::metadata(parent).ok()).is_some_and(|parent| parent.mode() & 0o002 != 0);
    let found = fs::symlink_metadata(directory)?;
    if shared && !(found.is_dir() && found.uid() == user() && found.mode() & 0o022 == 0) {
        bail!("{} must be a directory that belongs to user {} and nobody else may write", directory.display(), user());
    }
    Ok(())
}

/// Removes a socket nobody answers on.
fn remove_stale(path: &Path) -> Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        bail!("there is something else than a socket; it is left alone");
    }
    match UnixStream::connect(path) {
        Ok(_) => bail!("a running gateway answers there"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) => Err(error).context("cannot tell whether a gateway answers there"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Scratch;
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_socket_has_its_directory_its_mode_and_its_end() {
        let scratch = Scratch::new();
        let path = scratch.path().join("run").join("tollgate.sock");
        let bound = Bound::new(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o660, 0o700));
        let again = format!("{:#}", Bound::new(&path).err().unwrap());
        assert!(again.contains("a running gateway answers there") && again.contains("tollgate.sock"), "{again}");
        drop(bound);
        assert!(!path.exists());
    }

    #[test]
    fn only_what_nobody_answers_on_is_replaced() {
        let scratch = Scratch::new();
        let path = scratch.path().join("tollgate.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let bound = Bound::new(&path).unwrap();
        // Somebody else put another one there: it is not ours to remove.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(bound);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert!(format!("{:#}", Bound::new(&path).err().unwrap()).contains("something else than a socket"));
    }

    #[test]
    fn a_directory_in_a_shared_place_must_be_the_users_own() {
        let scratch = Scratch::new();
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
        let directory = scratch.path().join("tollgate-0");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o775)).unwrap();
        let path = directory.join("tollgate.sock");
        assert!(format!("{:#}", Bound::new(&path).err().unwrap()).contains("nobody else may write"));
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        assert!(Bound::new(&path).is_ok());
        fs::remove_dir(&directory).unwrap();
        std::os::unix::fs::symlink("/", &directory).unwrap();
        assert!(format!("{:#}", Bound::new(&path).err().unwrap()).contains("nobody else may write"), "a link is not followed");
    }

    #[test]
    fn the_peer_of_a_local_stream_is_this_user() {
        let (a, _b) = UnixStream::pair().unwrap();
        assert_eq!(peer(&a).unwrap(), user());
    }
}
