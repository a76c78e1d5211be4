//! The tables of episodes that were used last.

use crate::table::EpisodeTable;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the tables that are kept.
const BYTES: usize = 32 << 20;
/// Number of locks. Threads rarely want the same one.
const PARTS: usize = 16;

/// The tables of episodes that were used last, up to 32 MiB.
#[derive(Default)]
pub(crate) struct TableCache {
    parts: [Mutex<CachePart>; PARTS],
}

/// The tables since the last change of generations, and the tables of the generation before.
#[derive(Default)]
struct CachePart {
    young: HashMap<u64, Arc<EpisodeTable>>,
    old: HashMap<u64, Arc<EpisodeTable>>,
    bytes: usize,
}

impl CachePart {
    fn put(&mut self, episode: u64, table: Arc<EpisodeTable>) {
        self.bytes += table.as_ref().as_ref().len() + 256;
        self.young.insert(episode, table);
        if self.bytes > BYTES / PARTS / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}

impl TableCache {
    fn part(&self, episode: u64) -> Option<MutexGuard<'_, CachePart>> {
        let part = self.parts.get((episode % PARTS as u64) as usize)?;
        Some(part.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get(&self, episode: u64) -> Option<Arc<EpisodeTable>> {
        let mut part = self.part(episode)?;
        if let Some(table) = part.young.get(&episode) {
            return Some(Arc::clone(table));
        }
        let table = part.old.remove(&episode)?;
        part.put(episode, Arc::clone(&table));
        Some(table)
    }

    pub(crate) fn put(&self, episode: u64, table: Arc<EpisodeTable>) {
        if let Some(mut part) = self.part(episode) {
            part.put(episode, table);
        }
    }
}
