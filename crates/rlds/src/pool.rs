//! Whole episodes of a store, for those without a stored table: each is read once while its steps are in use.

use crate::table::EpisodeTable;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tfseek::error::{ErrorKind, Result};
use tfseek::io::is_interrupted;

/// Bytes of the episodes that are kept.
const BYTES: u64 = 256 << 20;
/// Bytes of the episodes that are requested ahead. One is always allowed.
const BYTES_AHEAD: u64 = 128 << 20;

/// An episode whose record was read and verified, and its table, made of the payload.
#[derive(Debug)]
pub(crate) struct WholeEpisode {
    pub(crate) payload: Vec<u8>,
    pub(crate) table: Arc<EpisodeTable>,
}

/// The episodes that were read last, and those that were announced.
#[derive(Default)]
pub(crate) struct EpisodePool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    episodes: HashMap<u64, PoolEntry>,
    /// Bytes of the episodes that are here, and of those that were announced.
    bytes: u64,
    ahead: u64,
    /// Number of accesses so far.
    clock: u64,
}

enum PoolEntry {
    /// It was announced for this number of windows, and is not read yet.
    Wanted {
        windows: u64,
        bytes: u64,
        /// A thread announces it just now.
        announcing: bool,
    },
    /// A thread reads it.
    Reading,
    Here {
        episode: Arc<WholeEpisode>,
        used: u64,
    },
}

impl PoolState {
    /// Returns an episode that is here, and notes the access.
    fn here(&mut self, number: u64) -> Option<Arc<WholeEpisode>> {
        self.clock += 1;
        match self.episodes.get_mut(&number)? {
            PoolEntry::Here { episode, used } => {
                *used = self.clock;
                Some(Arc::clone(episode))
            }
            _ => None,
        }
    }

    fn remove(&mut self, number: u64) {
        match self.episodes.remove(&number) {
            Some(PoolEntry::Here { episode, .. }) => {
                self.bytes -= episode.payload.len() as u64;
            }
            Some(PoolEntry::Wanted { bytes, .. }) => self.ahead -= bytes,
            Some(PoolEntry::Reading) | None => {}
        }
    }

    /// Adds an episode, and drops those that were not used for the longest time if there are too many bytes.
    fn add(&mut self, number: u64, episode: Arc<WholeEpisode>) {
        self.remove(number);
        self.bytes += episode.payload.len() as u64;
        while self.bytes > BYTES {
            let uses = self.episodes.iter().filter_map(|(number, entry)| match entry {
                PoolEntry::Here { used, .. } => Some((*used, *number)),
                _ => None,
            });
            let Some((_, oldest)) = uses.min() else { break };
            self.remove(oldest);
        }
        self.clock += 1;
        self.episodes.insert(number, PoolEntry::Here { episode, used: self.clock });
    }
}

/// Ends the read of an episode, also after an error.
struct Read<'p> {
    pool: &'p EpisodePool,
    number: u64,
    episode: Option<Arc<WholeEpisode>>,
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.episode.take() {
            Some(episode) => state.add(self.number, episode),
            None => state.remove(self.number),
        }
        drop(state);
        self.pool.changed.notify_all();
    }
}

impl EpisodePool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an episode if it is here.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<WholeEpisode>> {
        self.lock().here(number)
    }

    /// Returns an episode, which one thread reads if it is not here.
    ///
    /// # Errors
    /// Errors of `read`. The next access reads again.
    pub(crate) fn get_or_read(
        &self,
        number: u64,
        read: impl FnOnce() -> Result<WholeEpisode>,
    ) -> Result<Arc<WholeEpisode>> {
        let mut state = self.lock();
        loop {
            if let Some(episode) = state.here(number) {
                return Ok(episode);
            }
            match state.episodes.get(&number) {
                // Announced after it was read, it would be requested twice.
                Some(PoolEntry::Reading | PoolEntry::Wanted { announcing: true, .. }) => {
                    // The other thread may be another loader's.
                    if is_interrupted() {
                        return Err(ErrorKind::Cancelled.into());
                    }
                    let waited = self.changed.wait_timeout(state, Duration::from_millis(20));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                _ => break,
            }
        }
        state.remove(number);
        state.episodes.insert(number, PoolEntry::Reading);
        drop(state);
        let mut reading = Read { pool: self, number, episode: None };
        let episode = Arc::new(read()?);
        reading.episode = Some(Arc::clone(&episode));
        Ok(episode)
    }

    /// Notes that a window needs an episode of this many bytes, and calls `announce` if it is the first one.
    /// The episode is read after that.
    pub(crate) fn want(&self, number: u64, bytes: u64, announce: impl FnOnce()) {
        let mut state = self.lock();
        let ahead = state.ahead.saturating_add(bytes);
        if let Some(known) = state.episodes.get_mut(&number) {
            if let PoolEntry::Wanted { windows, .. } = known {
                *windows += 1;
            }
            return;
        }
        if state.ahead > 0 && ahead > BYTES_AHEAD {
            return;
        }
        state.ahead = ahead;
        state.episodes.insert(number, PoolEntry::Wanted { windows: 1, bytes, announcing: true });
        drop(state);
        announce();
        if let Some(PoolEntry::Wanted { announcing, .. }) = self.lock().episodes.get_mut(&number) {
            *announcing = false;
        }
        self.changed.notify_all();
    }

    /// Takes the need of a window back. Returns true if the announcement has to be taken back, because no
    /// other window needs the episode.
    pub(crate) fn forget(&self, number: u64) -> bool {
        let mut state = self.lock();
        match state.episodes.get_mut(&number) {
            Some(PoolEntry::Wanted { windows, .. }) if *windows > 1 => {
                *windows -= 1;
                false
            }
            Some(PoolEntry::Wanted { .. }) => {
                state.remove(number);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn an_episode_is_read_after_it_was_announced() {
        let pool = EpisodePool::default();
        let (events, seen) = mpsc::channel();
        let reads = events.clone();
        thread::scope(|scope| {
            let pool = &pool;
            let mut reader = None;
            pool.want(3, 10, || {
                let read = move || {
                    reads.send("read").unwrap();
                    Err(tfseek::ErrorKind::Io(std::io::ErrorKind::NotFound.into()).into())
                };
                reader = Some(scope.spawn(move || pool.get_or_read(3, read).is_err()));
                thread::sleep(Duration::from_millis(50));
                // Another window is counted meanwhile.
                let mut twice = false;
                pool.want(3, 10, || twice = true);
                assert!(!twice);
                events.send("announced").unwrap();
            });
            assert!(reader.unwrap().join().unwrap());
        });
        drop(events);
        assert_eq!(seen.iter().collect::<Vec<_>>(), ["announced", "read"]);
        // After a failure it is wanted anew.
        let mut announced = false;
        pool.want(3, 10, || announced = true);
        assert!(announced && pool.forget(3));
    }
}
