//! Large tables on huge pages, where the host gives them to who asks (`madvise` in /sys/kernel/mm/transparent_hugepage/enabled, the
//! default of most distributions).
//!
//! The history of a core remembers hundreds of thousands of responses and is read at random places: on pages of 4 KiB nearly every
//! look is a miss of the TLB, which costs a walk through two page tables in a virtual machine. The allocator of the system does not ask.
//! Each page is still touched first by the core it belongs to, and lies on its NUMA node.

use super::frame::HUGE;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

const PAGE: usize = 4096;

/// The allocator of the system, but for what takes 2 MiB and more: that is mapped by itself, on huge pages when there are any.
#[derive(Clone, Copy, Debug)]
pub struct LargeTables;

fn is_large(layout: &Layout) -> bool {
    layout.size() >= HUGE && layout.align() <= PAGE
}

/// Whole huge pages: the kernel puts such mappings at their boundaries. `None`: more than an address space.
fn pages(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE)
}

/// Zeroed; null when there is no room.
fn map(size: usize) -> *mut u8 {
    let Some(size) = pages(size) else { return ptr::null_mut() };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    // SAFETY: the range is the mapping just made. A kernel that knows no huge pages says no, and small ones it is.
    unsafe { libc::madvise(start, size, libc::MADV_HUGEPAGE) };
    start.cast()
}

// SAFETY: what is large by its layout comes from `map` and goes back to the kernel, everything else is the system's from beginning to
// end; which one it is follows from the layout alone, and that is the same when memory is given back. A mapping has the size asked for
// at least, is zeroed, and is aligned to a page, which is all that a large layout asks.
unsafe impl GlobalAlloc for LargeTables {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout has a size.
        if is_large(&layout) { map(layout.size()) } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout has a size.
        if is_large(&layout) { map(layout.size()) } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if is_large(&layout) {
            // SAFETY: `map` made this mapping for a layout of this size; nobody refers to it any more, says the caller.
            unsafe { libc::munmap(place.cast(), pages(layout.size()).expect("it was mapped")) };
        } else {
            // SAFETY: it came from the system with this layout.
            unsafe { System.dealloc(place, layout) };
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller has seen to it that `size` makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(&layout) && !is_large(&new) {
            // SAFETY: it came from the system with this layout.
            return unsafe { System.realloc(place, layout, size) };
        }
        // SAFETY: the new layout has a size, as the caller has seen to.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both are as long as what is copied, and apart.
            unsafe { ptr::copy_nonoverlapping(place, moved, layout.size().min(size)) };
            // SAFETY: it came from here with this layout, and nobody uses it after this call.
            unsafe { self.dealloc(place, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_grows_large_and_small_again_keeps_its_content() {
        let sizes = [HUGE / 2, HUGE, HUGE + 1, 3 * HUGE - 1, HUGE - 1, 100];
        let layout = |size| Layout::from_size_align(size, 64).expect("a layout");
        // SAFETY: the layout has a size.
        let mut place = unsafe { LargeTables.alloc_zeroed(layout(sizes[0])) };
        // SAFETY: the place is so large.
        unsafe { ptr::write_bytes(place, 7, 100) };
        for pair in sizes.windows(2) {
            // SAFETY: it has the layout of the first of the two sizes.
            place = unsafe { LargeTables.realloc(place, layout(pair[0]), pair[1]) };
            // SAFETY: each place has 100 bytes, written before.
            let kept = unsafe { std::slice::from_raw_parts(place, 100) };
            assert!(kept.iter().all(|&byte| byte == 7), "from {} to {} bytes", pair[0], pair[1]);
            // SAFETY: the place has the new size.
            let whole = unsafe { std::slice::from_raw_parts_mut(place, pair[1]) };
            whole[pair[1] - 1] = 7;
        }
        // SAFETY: it has the last layout.
        unsafe { LargeTables.dealloc(place, layout(100)) };
    }

    #[test]
    fn large_memory_is_zeroed_and_comes_at_any_alignment() {
        for align in [1, PAGE, HUGE] {
            let layout = Layout::from_size_align(2 * HUGE, align).expect("a layout");
            // SAFETY: the layout has a size.
            let place = unsafe { LargeTables.alloc_zeroed(layout) };
            assert!(place.addr().is_multiple_of(align));
            // SAFETY: the place is so large, and zeroed says the one who gave it.
            assert!(unsafe { std::slice::from_raw_parts(place, 2 * HUGE) }.iter().all(|&byte| byte == 0));
            // SAFETY: it came with this layout.
            unsafe { LargeTables.dealloc(place, layout) };
        }
    }

    #[test]
    fn more_than_there_is_gets_nothing() {
        let layout = Layout::from_size_align(isize::MAX as usize - PAGE, 1).expect("a layout");
        // SAFETY: the layout has a size.
        assert!(unsafe { LargeTables.alloc(layout) }.is_null());
    }
}
