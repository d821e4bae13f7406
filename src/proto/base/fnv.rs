//! A hash that is the same in every process: FNV-1a over numbers. For fingerprints that ends compare, not for tables that others fill.

/// What it begins with.
pub const BEGIN: u64 = 0xcbf2_9ce4_8422_2325;

/// With `value` mixed in.
pub const fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3)
}
