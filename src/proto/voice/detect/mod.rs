//! What is heard: keys and MF digits, and single tones.
//!
//! All of it by the Goertzel algorithm, which is a few multiplications per octet and frequency. A detector runs only while somebody waits for
//! what it hears.

mod bank;
mod digits;
mod progress;
mod single;

pub(super) use digits::{Change, Digits};
pub use progress::Progress;
pub(super) use progress::{Awaited, Progresses};
pub(super) use single::Singles;
pub use single::{SingleTone, SingleTones};
