//! Cards of the kernel's telephony driver (DAHDI): its files, how spans of them are found and held, and how their channels are worked.
//!
//! What things mean is [`crate::proto::dahdi`]'s; here are system calls. [`Device`] is the driver; the real one is [`Kernel`].
//!
//! Invariants: nothing blocks, but for one call when a device is pulled out, which the driver makes last 5 ms; events go before octets.

mod find;
mod line;
mod sys;

#[cfg(test)]
pub(in crate::host) mod fake;
#[cfg(test)]
mod tests;

pub use find::{Channels, Wanted, find, status};
pub(super) use line::{Carry, Line, LineSettings};
pub use sys::Kernel;

use crate::proto::dahdi::abi::Request;
use std::io;

/// Files of a card: channels of a span, one behind the other.
pub const PLACES: usize = 32;

/// The driver, as a card holds it: a control file, and one for each channel in use, which has a place.
pub trait Device: Send {
    /// A request to the driver as a whole. The argument has as many octets as the request says.
    ///
    /// # Errors
    /// What the driver says.
    fn control(&mut self, request: Request, argument: &mut [u8]) -> io::Result<()>;

    /// Takes a channel, which nobody else may have, into a place that is empty.
    ///
    /// # Errors
    /// What the driver says.
    fn open(&mut self, place: usize, channel: u16) -> io::Result<()>;

    /// Gives the channel in a place back, if there is one.
    fn close(&mut self, place: usize);

    /// A request about the channel in a place.
    ///
    /// # Errors
    /// What the driver says; [`io::ErrorKind::NotFound`] when there is none.
    fn order(&mut self, place: usize, request: Request, argument: &mut [u8]) -> io::Result<()>;

    /// Takes a block that came, without waiting for one.
    ///
    /// # Errors
    /// As [`Device::order`]; [`io::ErrorKind::WouldBlock`] when there is none.
    fn read(&mut self, place: usize, octets: &mut [u8]) -> io::Result<usize>;

    /// Gives a block to send, without waiting for room.
    ///
    /// # Errors
    /// As [`Device::order`]; [`io::ErrorKind::WouldBlock`] when there is no room.
    fn write(&mut self, place: usize, octets: &[u8]) -> io::Result<usize>;

    /// What has become ready since the last look: place, whether an event waits, and whether a block has come.
    fn look(&mut self, seen: &mut dyn FnMut(usize, bool, bool));
}

/// Why a channel could not be taken or told something, in words.
pub(super) fn reason(error: &io::Error) -> String {
    let words = match error.raw_os_error() {
        Some(libc::ENXIO) => "it is not configured in the driver (dahdi_cfg)",
        Some(libc::EBUSY) => "somebody else has it: another gateway, Asterisk, or it is a slave, a cross connect or a network device",
        Some(libc::EINVAL) => "the driver knows no such channel, or not what was asked of it",
        Some(libc::ENODEV) => "its device is gone",
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open (ulimit -n)",
        Some(libc::EACCES | libc::EPERM) => "this user may not use it",
        _ => return error.to_string(),
    };
    format!("{words} ({error})")
}
