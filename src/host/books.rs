//! The books of all cores about commands over many endpoints, as the cores share them.

use super::entropy;
use crate::proto::base::CoreId;
use crate::proto::core::{Case, Verdicts};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// A book for each core. A mutex each: the owner takes its own for commands over many endpoints, others only while the owner stands still.
#[derive(Clone, Default)]
pub struct Books(Arc<[Mutex<Verdicts>]>);

impl Books {
    /// Books for so many cores.
    ///
    /// # Errors
    /// When the kernel has no randomness.
    pub fn new(cores: usize) -> io::Result<Books> {
        let books = (0..cores).map(|_| Ok(Mutex::new(Verdicts::new(entropy::seed()?))));
        Ok(Books(books.collect::<io::Result<_>>()?))
    }

    /// `core` begins a command, unless it was refused in its place.
    pub fn begin(&self, core: CoreId, case: &Case<'_>) -> bool {
        let book = self.0.get(usize::from(core.0));
        // A holder that panicked left a whole book.
        book.is_none_or(|book| book.lock().unwrap_or_else(PoisonError::into_inner).begin(case))
    }

    /// Whether a command is refused in place of `home`.
    pub fn refuse_for(&self, home: CoreId, case: &Case<'_>) -> bool {
        match self.0.get(usize::from(home.0)).map(Mutex::try_lock) {
            Some(Ok(mut book)) => book.refuse(case),
            Some(Err(TryLockError::Poisoned(book))) => book.into_inner().refuse(case),
            // It may have stopped while it held it.
            Some(Err(TryLockError::WouldBlock)) | None => false,
        }
    }
}
