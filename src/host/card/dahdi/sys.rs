//! The kernel's driver by its files in `/dev/dahdi`.

use super::{Device, PLACES};
use crate::proto::dahdi::abi::{self, Request};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Where its files are.
const FOLDER: &str = "/dev/dahdi";
/// What is taken of one look: the rest is there at the next.
const READY: usize = 1024;

/// The kernel's driver.
pub struct Kernel {
    control: File,
    poll: Poll,
    events: Events,
    files: Box<[Option<File>]>,
}

impl Kernel {
    /// Its control file, and room for the channels of so many spans.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn new(spans: usize) -> Result<Kernel, String> {
        let path = Path::new(FOLDER).join("ctl");
        let control = OpenOptions::new().read(true).write(true).open(&path).map_err(|error| missing(&path, &error))?;
        let poll = Poll::new().map_err(|error| format!("an event queue for {FOLDER}: {error}"))?;
        Ok(Kernel { control, poll, events: Events::with_capacity(READY), files: (0..spans * PLACES).map(|_| None).collect() })
    }

    fn file(&self, place: usize) -> io::Result<&File> {
        self.files.get(place).and_then(Option::as_ref).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Why there is no control file.
fn missing(path: &Path, error: &io::Error) -> String {
    let is_loaded = Path::new("/sys/module/dahdi").exists();
    let why = match error.raw_os_error() {
        Some(libc::ENOENT) if is_loaded => "the driver is loaded, but has no files: udev has not made them",
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "the driver is not there: load the module dahdi and the one of the card (modprobe), then configure it (dahdi_cfg)"
        }
        Some(libc::EACCES | libc::EPERM) => "this user may not use the driver: its group is that of the files in the folder",
        _ => "it cannot be opened",
    };
    format!("{}: {why} ({error})", path.display())
}

/// One request. The driver reads and writes no more than the request says.
fn request(file: &File, request: Request, argument: &mut [u8]) -> io::Result<()> {
    if argument.len() != request.octets() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the kernel reads and writes at most the octets that the request's number names, which are those of `argument`; it is
    // alive through the call, and any octets are valid in it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request.0 as libc::Ioctl, argument.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Device for Kernel {
    fn control(&mut self, number: Request, argument: &mut [u8]) -> io::Result<()> {
        request(&self.control, number, argument)
    }

    fn open(&mut self, place: usize, channel: u16) -> io::Result<()> {
        let path = Path::new(FOLDER).join("channel");
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        request(&file, abi::SPECIFY, &mut abi::number(channel.into()))?;
        let slot = self.files.get_mut(place).filter(|slot| slot.is_none()).ok_or(io::ErrorKind::AlreadyExists)?;
        self.poll.registry().register(&mut SourceFd(&file.as_raw_fd()), Token(place), Interest::READABLE | Interest::PRIORITY)?;
        *slot = Some(file);
        Ok(())
    }

    fn close(&mut self, place: usize) {
        if let Some(slot) = self.files.get_mut(place) {
            *slot = None;
        }
    }

    fn order(&mut self, place: usize, number: Request, argument: &mut [u8]) -> io::Result<()> {
        request(self.file(place)?, number, argument)
    }

    fn read(&mut self, place: usize, octets: &mut [u8]) -> io::Result<usize> {
        self.file(place)?.read(octets)
    }

    fn write(&mut self, place: usize, octets: &[u8]) -> io::Result<usize> {
        self.file(place)?.write(octets)
    }

    fn look(&mut self, seen: &mut dyn FnMut(usize, bool, bool)) {
        // An interrupted look is made up for at the next one.
        if self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err() {
            return;
        }
        for event in &self.events {
            let is_over = event.is_error() || event.is_read_closed() || event.is_write_closed();
            seen(event.token().0, event.is_priority() || is_over, event.is_readable());
        }
    }
}
