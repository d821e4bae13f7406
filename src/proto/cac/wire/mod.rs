//! The messages of the cluster as octets: a fixed header of 48 octets, little endian, then a protobuf body (docs/decisions/cluster.md).
//!
//! | octets | field |
//! |---|---|
//! | 0..2 | magic 0x4754 ("TG") |
//! | 2, 3 | major and minor version: another major one is refused, another minor one is understood |
//! | 4..6 | type of the message |
//! | 6..8 | flags, 0 |
//! | 8..12 | octets of the body |
//! | 12..16 | node |
//! | 16..24 | its life (incarnation) |
//! | 24..32 | life of the central node (epoch) |
//! | 32..40 | session |
//! | 40..48 | number in the session |
//!
//! A field or a value that is not known is passed over where the message means something without it, and the message refused where it
//! does not (R43). Bounds: a chunk has at most [`CALLS_MAX`] calls, a message at most [`MESSAGE_MAX`] octets.

mod body;

use super::charge::ScId;
use super::message::{Framed, Header, ToCentral, ToNode};
use prost::Message;

/// "TG".
const MAGIC: u16 = 0x4754;
/// What cannot be understood by others.
const MAJOR: u8 = 1;
/// What others pass over.
const MINOR: u8 = 2;
/// Octets in front of a body.
pub const HEADER: usize = 48;
/// Calls in one message; more are refused.
pub const CALLS_MAX: usize = 65_536;
/// Octets of one message; more are refused, and never read from a socket.
pub const MESSAGE_MAX: usize = 8 * 1024 * 1024;

/// Why octets are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Shorter than a header, or than its body.
    Short,
    /// Not of this protocol.
    Magic,
    /// Of another major version.
    Version(u8),
    /// A type this end does not know, from a later minor version.
    Type(u16),
    /// Longer than a message may be.
    Long,
    /// The body is not what its type says.
    Body,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::Short => f.write_str("the message is cut"),
            WireError::Magic => f.write_str("not a message of this protocol"),
            WireError::Version(major) => write!(f, "protocol version {major}, this end speaks {MAJOR}"),
            WireError::Type(kind) => write!(f, "message type {kind} is not known"),
            WireError::Long => f.write_str("the message is too long"),
            WireError::Body => f.write_str("the body of the message is not what its type says"),
        }
    }
}

/// A message that has a body of its own type.
trait Wire: Sized {
    /// Its type, and its body behind the header.
    fn put(&self, out: &mut Vec<u8>) -> u16;
    /// The message of this type with this body.
    fn get(kind: u16, body: &[u8]) -> Result<Self, WireError>;
}

/// Writes a message of a gateway node behind what is in `out`.
pub fn put_to_central(framed: &Framed<ToCentral>, out: &mut Vec<u8>) {
    put(framed, out);
}

/// Writes a message of the central node behind what is in `out`.
pub fn put_to_node(framed: &Framed<ToNode>, out: &mut Vec<u8>) {
    put(framed, out);
}

/// Reads a message of a gateway node.
///
/// # Errors
/// Whatever is wrong with it.
pub fn get_to_central(bytes: &[u8]) -> Result<Framed<ToCentral>, WireError> {
    get(bytes)
}

/// Reads a message of the central node.
///
/// # Errors
/// Whatever is wrong with it.
pub fn get_to_node(bytes: &[u8]) -> Result<Framed<ToNode>, WireError> {
    get(bytes)
}

fn put<M: Wire>(framed: &Framed<M>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + HEADER, 0);
    let kind = framed.message.put(out);
    let length = (out.len() - start - HEADER) as u32;
    let Header { sc, incarnation, epoch, session, number } = framed.header;
    let Some(header) = out.get_mut(start..start + HEADER) else { return };
    let mut at = 0;
    let mut word = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    word(&MAGIC.to_le_bytes());
    word(&[MAJOR, MINOR]);
    word(&kind.to_le_bytes());
    word(&[0, 0]);
    word(&length.to_le_bytes());
    word(&sc.0.to_le_bytes());
    word(&u64::from(incarnation).to_le_bytes());
    word(&epoch.to_le_bytes());
    word(&session.to_le_bytes());
    word(&number.to_le_bytes());
}

fn get<M: Wire>(bytes: &[u8]) -> Result<Framed<M>, WireError> {
    if bytes.len() > MESSAGE_MAX {
        return Err(WireError::Long);
    }
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(WireError::Short)?;
    let word = |at: usize, octets: usize| header[at..at + octets].iter().rev().fold(0u64, |word, octet| word << 8 | u64::from(*octet));
    if word(0, 2) != u64::from(MAGIC) {
        return Err(WireError::Magic);
    }
    if header[2] != MAJOR {
        return Err(WireError::Version(header[2]));
    }
    let body = body.get(..word(8, 4) as usize).ok_or(WireError::Short)?;
    let message = M::get(word(4, 2) as u16, body)?;
    // Lives are counted in 32 bits here; the room beyond is for others.
    let header = Header {
        sc: ScId(word(12, 4) as u32),
        incarnation: word(16, 8) as u32,
        epoch: word(24, 8),
        session: word(32, 8),
        number: word(40, 8),
    };
    Ok(Framed { header, message })
}

/// Appends a body; memory is all it could lack.
fn append(body: &impl Message, out: &mut Vec<u8>) {
    let encoded = body.encode(out);
    debug_assert!(encoded.is_ok(), "a vector grows");
}

fn read<B: Message + Default>(body: &[u8]) -> Result<B, WireError> {
    B::decode(body).map_err(|_| WireError::Body)
}

/// The library function behind the fuzz target `cluster`: whatever comes is read or refused, and what was read is read again the same.
pub fn exercise(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(framed) = get_to_central(bytes) {
        put_to_central(&framed, &mut again);
        assert_eq!(get_to_central(&again), Ok(framed));
    }
    again.clear();
    if let Ok(framed) = get_to_node(bytes) {
        put_to_node(&framed, &mut again);
        assert_eq!(get_to_node(&again), Ok(framed));
    }
}

#[cfg(test)]
mod tests;
