//! Bytes to borrowed messages and back. No state, no time, no allocation.
//!
//! The reader is lenient, the writer strict (RFC 3435 3.1, appendix A and its robustness remarks): what we read may end its lines
//! either way, carry extra blanks, any letter case and any parameter order; what we write has CR LF, canonical names and one space.
//! Everything a parser returns borrows from the receive frame.
//!
//! * [`scan`]: lines, blanks, quotes, bounded numbers.
//! * [`peek`]: splits a datagram at its `.` lines and tells command from response, with the transaction identifier.
//! * [`mgcp`]: the MGCP 1.0 grammar: [`mgcp::Command`], [`mgcp::Response`], typed values, [`mgcp::Writer`].
//! * [`sdp`]: session descriptions.
//! * [`h248`]: the text encoding of H.248.1: [`h248::Message`], its descriptors, [`h248::Writer`].
//! * [`exercise`]: all of it driven by arbitrary bytes, for fuzzers, property tests and benches.
//!
//! Not here: what a name, a package or a value means to this gateway. The codec says what was written and refuses what the grammar
//! and the command tables refuse, with the return code to answer ([`mgcp::Refusal`]).
//!
//! Invariants: no input panics or allocates; time is linear in the datagram; nesting is bounded ([`mgcp::NESTING_MAX`]).

pub mod exercise;
pub mod h248;
pub mod mgcp;
pub mod peek;
pub mod scan;
pub mod sdp;
