//! An allocator that counts what each thread requests and holds, and refuses requests above a cap.
//!
//! A test binary that measures installs it:
//! `#[global_allocator] static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;`.
//! All counts and the cap are those of the calling thread, so tests of one binary do not disturb each other.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted per thread.
pub struct Counting;

thread_local! {
    // `const`, and without a destructor: touching it allocates nothing.
    static ASKED: Cell<Asked> = const { Cell::new(Asked { times: 0, bytes: 0 }) };
    // Bytes held, of those asked for by this thread: below 0 if it freed what others had asked for.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST_HELD: Cell<i64> = const { Cell::new(0) };
    static LONGEST: Cell<usize> = const { Cell::new(0) };
    static CAP: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// What was asked for: growing counts as asking for all of the new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub times: u64,
    pub bytes: u64,
}

fn count(bytes: usize) {
    LONGEST.set(LONGEST.get().max(bytes));
    ASKED.with(|asked| {
        let Asked { times, bytes: before } = asked.get();
        asked.set(Asked { times: times + 1, bytes: before.saturating_add(bytes as u64) });
    });
    HELD.set(HELD.get().saturating_add(bytes as i64));
    MOST_HELD.set(MOST_HELD.get().max(HELD.get()));
}

fn give_back(bytes: usize) {
    HELD.set(HELD.get().saturating_sub(bytes as i64));
}

/// Whether a request is refused, as memory that there is not.
fn refused(bytes: usize) -> bool {
    bytes > CAP.get()
}

// SAFETY: each call goes to `System` as it came, so its promises are `System`'s. `count` does not allocate and does
// not unwind: it adds to constant-initialised thread locals. A null pointer is an answer that the contract allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if refused(new_size) {
            return std::ptr::null_mut();
        }
        // For a moment both may be held.
        count(new_size);
        give_back(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `ptr` came from `System`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        give_back(layout.size());
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

/// Returns what `f` returns, and the size of the largest request that this thread made meanwhile.
pub fn longest<T>(f: impl FnOnce() -> T) -> (T, usize) {
    LONGEST.set(0);
    let value = f();
    (value, LONGEST.get())
}

/// What `f` gives, and the most bytes that this thread held meanwhile on top of what it held before. A single request of
/// more than `cap` bytes ends the process, as one that cannot be met does.
pub fn most_held<T>(cap: usize, f: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    MOST_HELD.set(before);
    CAP.set(cap);
    let value = f();
    CAP.set(usize::MAX);
    (value, (MOST_HELD.get() - before).max(0) as u64)
}
