//! Signals, far ends and time for a span with channel associated signalling: see `proto::cas::exercise::lines`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::proto::cas::exercise;

fuzz_target!(|input: &[u8]| {
    if let Some(outcome) = exercise::lines(input) {
        assert_eq!(outcome.stuck, 0, "{outcome:?}");
    }
});
