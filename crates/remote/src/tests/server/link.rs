//! The rate of a link, and of each connection.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are sent together.
const CHUNK: usize = 64 << 10;

/// Rates in bytes per second. 0: without a limit.
#[derive(Default)]
pub(super) struct Link {
    all: AtomicU64,
    one: AtomicU64,
    /// When the bytes that were sent so far will have passed.
    free: Mutex<Option<Instant>>,
}

impl Link {
    pub(super) fn set(&self, all: u64, one: u64) {
        self.all.store(all, Relaxed);
        self.one.store(one, Relaxed);
    }

    /// Returns true if bytes take time.
    pub(super) fn is_limited(&self) -> bool {
        self.all.load(Relaxed) > 0 || self.one.load(Relaxed) > 0
    }

    /// Sends bytes, as fast as they pass. `None` if the client is gone.
    pub(super) fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
        let (all, one) = (self.all.load(Relaxed), self.one.load(Relaxed));
        if all == 0 && one == 0 {
            return stream.write_all(bytes).ok();
        }
        let mut own = Instant::now();
        for chunk in bytes.chunks(CHUNK) {
            stream.write_all(chunk).ok()?;
            let time = |rate: u64| Duration::from_nanos(chunk.len() as u64 * 1_000_000_000 / rate.max(1));
            let mut passed = own;
            if all > 0 {
                let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
                let until = free.unwrap_or(own).max(own) + time(all);
                (*free, passed) = (Some(until), until);
            }
            if one > 0 {
                own += time(one);
                passed = passed.max(own);
            }
            thread::sleep(passed.saturating_duration_since(Instant::now()));
            own = own.max(passed);
        }
        Some(())
    }
}
