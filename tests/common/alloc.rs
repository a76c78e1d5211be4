//! An allocator that counts what this thread asks for. For `tests/*.rs` that take it as their own:
//! `#[path = "common/alloc.rs"] mod alloc;`.

#![allow(unsafe_code, dead_code, unreachable_pub)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // `const`, and without a destructor: touching it allocates nothing.
    static ASKED: Cell<Asked> = const { Cell::new(Asked { times: 0, bytes: 0 }) };
}

/// What was asked for: growing counts as asking for all of the new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub times: u64,
    pub bytes: u64,
}

fn count(bytes: usize) {
    ASKED.with(|asked| {
        let Asked { times, bytes: before } = asked.get();
        asked.set(Asked { times: times + 1, bytes: before.saturating_add(bytes as u64) });
    });
}

// SAFETY: each call goes to `System` as it came, so its promises are `System`'s. `count` does not allocate and does
// not unwind: it adds to a constant-initialised thread local.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `ptr` came from `System`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `ptr` came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// What `f` gives, and what this thread asked for meanwhile.
pub fn during<T>(f: impl FnOnce() -> T) -> (T, Asked) {
    let before = ASKED.get();
    let value = f();
    let after = ASKED.get();
    (value, Asked { times: after.times - before.times, bytes: after.bytes - before.bytes })
}

/// What `f` gives; it must not allocate.
#[track_caller]
pub fn none<T>(f: impl FnOnce() -> T) -> T {
    let (value, asked) = during(f);
    assert_eq!(asked, Asked { times: 0, bytes: 0 });
    value
}
