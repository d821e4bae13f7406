//! Anything as a datagram, a session description and a parameter value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::codec::exercise;

fuzz_target!(|input: &[u8]| {
    exercise::datagram(input);
    exercise::description(input);
    exercise::value(input);
});
