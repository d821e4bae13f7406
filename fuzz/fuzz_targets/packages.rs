//! Digit maps, names and parameters: see `proto::package::exercise::catalogue`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::package::exercise;

fuzz_target!(|input: &[u8]| {
    exercise::catalogue(input);
});
