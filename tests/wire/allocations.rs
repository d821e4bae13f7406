//! The codec allocates nothing: a counting allocator watches it read and write.

#[path = "../counting/mod.rs"]
mod counting;

use tollgate::proto::codec::{exercise, h248};

use crate::files;

use counting::allocations;

#[test]
fn nothing_is_allocated() {
    let inputs = [files("field-bugs", ".txt"), files("wire", ".txt")].concat();
    let hostile: Vec<Vec<u8>> = exercise::HOSTILE_UNITS.iter().map(|(_, unit)| exercise::hostile(unit)).collect();
    let messages = [files("h248", ".txt"), files("field-bugs", ".txt")].concat();
    let (mut shape, mut buffer) = (h248::Shape::new(), vec![0; 100_000]);
    let before = allocations();
    for (_, message) in &messages {
        h248::exercise::message(message, &mut shape, &mut buffer);
    }
    for datagram in inputs.iter().map(|(_, bytes)| bytes).chain(&hostile) {
        exercise::datagram(datagram);
        exercise::description(datagram);
        exercise::value(datagram);
    }
    assert_eq!(allocations() - before, 0);
    // The counter counts.
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(allocations() - before, 1);
}
