//! Datagrams and events for a whole core: see `proto::core::exercise::datagrams`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::core::exercise;

fuzz_target!(|input: &[u8]| {
    let outcome = exercise::datagrams(input);
    assert!(outcome.is_sound(), "{outcome:?}");
});
