//! Anything as an H.248 text message: read whole, written anew in both styles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::codec::h248::{Shape, exercise};

fuzz_target!(|input: &[u8]| {
    exercise::message(input, &mut Shape::new(), &mut vec![0; 200_000]);
});
