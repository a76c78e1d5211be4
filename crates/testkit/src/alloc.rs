//! An allocator that counts the requests and the allocated bytes of each thread, and refuses requests above a
//! limit.
//!
//! A test binary that measures allocations installs it:
//! `#[global_allocator] static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;`.
//! All counts and the limit belong to the calling thread, so the tests of one binary do not affect each
//! other.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system allocator with counts per thread.
pub struct Counting;

thread_local! {
    // The thread locals are `const` and have no destructor, so an access allocates nothing.
    static REQUESTS: Cell<Requests> = const { Cell::new(Requests { times: 0, bytes: 0 }) };
    // Bytes that this thread allocated minus the bytes that it freed. Below 0 if it freed memory of other
    // threads.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST_HELD: Cell<i64> = const { Cell::new(0) };
    static LONGEST: Cell<usize> = const { Cell::new(0) };
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of requests and their total size. A reallocation counts with its whole new size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    pub times: u64,
    pub bytes: u64,
}

fn count(bytes: usize) {
    LONGEST.set(LONGEST.get().max(bytes));
    REQUESTS.with(|requests| {
        let Requests { times, bytes: before } = requests.get();
        requests.set(Requests { times: times + 1, bytes: before.saturating_add(bytes as u64) });
    });
    HELD.set(HELD.get().saturating_add(bytes as i64));
    MOST_HELD.set(MOST_HELD.get().max(HELD.get()));
}

fn count_freed(bytes: usize) {
    HELD.set(HELD.get().saturating_sub(bytes as i64));
}

/// Returns true for a request above the limit, which fails like a request without enough memory.
fn exceeds_limit(bytes: usize) -> bool {
    bytes > LIMIT.get()
}

// SAFETY: each call is passed on to `System` unchanged, so `System` keeps the contract of `GlobalAlloc`. The
// counting functions neither allocate nor unwind, because they only use constant-initialised thread locals.
// The contract allows a null pointer as a result.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if exceeds_limit(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if exceeds_limit(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if exceeds_limit(new_size) {
            return std::ptr::null_mut();
        }
        // The new size is counted first, because both blocks may exist for a short time.
        count(new_size);
        count_freed(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `ptr` came from `System`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `ptr` came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Calls `f`. Returns its result and the requests that this thread made during the call.
pub fn during<T>(f: impl FnOnce() -> T) -> (T, Requests) {
    let before = REQUESTS.get();
    let value = f();
    let after = REQUESTS.get();
    (value, Requests { times: after.times - before.times, bytes: after.bytes - before.bytes })
}

/// Calls `f`, which must not allocate, and returns its result.
#[track_caller]
pub fn none<T>(f: impl FnOnce() -> T) -> T {
    let (value, requests) = during(f);
    assert_eq!(requests, Requests { times: 0, bytes: 0 });
    value
}

/// Calls `f`. Returns its result and the size of the largest request that this thread made during the call.
pub fn longest<T>(f: impl FnOnce() -> T) -> (T, usize) {
    LONGEST.set(0);
    let value = f();
    (value, LONGEST.get())
}

/// Calls `f`. Returns its result and the peak of the bytes that this thread held during the call, minus the
/// bytes it held before.
///
/// A single request of more than `limit` bytes ends the process, like a request without enough memory.
pub fn most_held<T>(limit: usize, f: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    MOST_HELD.set(before);
    LIMIT.set(limit);
    let value = f();
    LIMIT.set(usize::MAX);
    (value, (MOST_HELD.get() - before).max(0) as u64)
}
