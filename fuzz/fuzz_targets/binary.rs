//! Anything as an H.248 message in BER: its text is read whole and written anew, and becomes octets again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::codec::h248::{Shape, exercise};

fuzz_target!(|input: &[u8]| {
    exercise::octets(input, &mut Shape::new(), [&mut vec![0; 70_000], &mut vec![0; 200_000]]);
});
