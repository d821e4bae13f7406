//! The binary encoding (RFC 3525 Annex A: BER), on the way in and out of the text encoding.
//!
//! One tree for both: what a controller sends in octets becomes the compact text of the same meaning, which the machines read as ever, and
//! what they write becomes octets. So nothing that a gateway does depends on the encoding, and what is remembered, compared and kept is the
//! same. Both ways are one pass into the caller's buffer, without allocation; what nests deeper, is longer than its place or ends amid an
//! element is refused whole.
//!
//! Names of terminations and digit maps are numbers here: [`termination`](self) says how names are laid out in them.

mod ber;
mod media;
mod names;
mod read;
mod service;
mod termination;
mod text;
mod value;
mod watch;
mod write;

use super::{Fault, Message, Refusal, Shape};
use ber::{Element, Elements};
use text::Text;

/// Writes the text of the message `octets` into `buffer`: its length, or `None` when they are none, or its text does not fit.
pub fn to_text(octets: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let mut text = Text::new(buffer);
    read::message(octets, &mut text).ok()?;
    text.finish()
}

/// Writes the text of its header alone: whoever answers that the rest is malformed needs to know that there is one.
pub fn header_to_text(octets: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let mut text = Text::new(buffer);
    // Its end must be there: what is cut short has no header that could be believed.
    let whole: Element<'_> = Elements::of(octets).next()?.ok()?;
    read::header(&whole, &mut text).ok()?;
    text.finish()
}

/// Writes the octets of the message `text` into `buffer`: their length. A text that has no place in this encoding, or does not fit, is
/// refused.
pub fn from_text(text: &[u8], shape: &mut Shape, buffer: &mut [u8]) -> Result<usize, Refusal> {
    let message = Message::parse(text, shape)?;
    let mut w = ber::Writer::new(buffer);
    write::message(&message, &mut w)?;
    w.finish().ok_or(Refusal::new(Fault::TooLong, 0))
}
