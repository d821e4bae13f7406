//! The codec allocates nothing: a counting allocator watches it read and write.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tollgate::proto::codec::{exercise, h248};

use crate::files;

thread_local! {
    /// Allocations of this thread; other tests run beside it.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about `layout` is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` through `alloc` with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated() {
    let inputs = [files("field-bugs", ".txt"), files("wire", ".txt")].concat();
    let hostile: Vec<Vec<u8>> = exercise::HOSTILE_UNITS.iter().map(|(_, unit)| exercise::hostile(unit)).collect();
    let messages = [files("h248", ".txt"), files("field-bugs", ".txt")].concat();
    let (mut shape, mut buffer) = (h248::Shape::new(), vec![0; 100_000]);
    let before = COUNT.with(Cell::get);
    for (_, message) in &messages {
        h248::exercise::message(message, &mut shape, &mut buffer);
    }
    for datagram in inputs.iter().map(|(_, bytes)| bytes).chain(&hostile) {
        exercise::datagram(datagram);
        exercise::description(datagram);
        exercise::value(datagram);
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0);
    // The counter counts.
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(COUNT.with(Cell::get) - before, 1);
}
