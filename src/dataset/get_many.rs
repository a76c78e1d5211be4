//! Records by number, with read-ahead for those that come next.

use super::prefetch;
use super::shards::{RecordLocation, ShardSet};
use crate::error::Result;
use crate::io::read_ahead::WINDOW;
use crate::io::{Announced, ReadAhead};
use crate::record::Record;

/// Records in the order of a list of numbers; see [`Mapped::get_many`](super::Mapped::get_many).
///
/// The numbers go through two windows of 32. A window is looked up in the index in one loop, then its records are touched in
/// one loop: loads that do not depend on each other, so the processor overlaps their cache misses. While records are cold, a
/// window is announced to the system as soon as it was looked up, one window early.
#[derive(Debug)]
pub(super) struct GetMany<'a> {
    set: &'a ShardSet,
    ids: &'a [u64],
    /// Numbers before this one have been looked up.
    located: usize,
    now: FetchWindow,
    next: FetchWindow,
    /// The record of `now` whose turn it is.
    turn: usize,
    ahead: ReadAhead,
}

/// Records that are looked up together.
#[derive(Debug)]
struct FetchWindow {
    /// `None`: the look-up failed, and will say why when the record's turn comes.
    records: [Option<RecordLocation>; WINDOW],
    len: usize,
    announced: Announced,
    /// The records must be fetched.
    cold: bool,
}

impl FetchWindow {
    const EMPTY: FetchWindow =
        FetchWindow { records: [None; WINDOW], len: 0, announced: Announced::Nothing, cold: false };

    fn records(&self) -> &[Option<RecordLocation>] {
        self.records.get(..self.len).unwrap_or_default()
    }
}

impl<'a> GetMany<'a> {
    pub(super) fn new(set: &'a ShardSet, ids: &'a [u64]) -> GetMany<'a> {
        let mut this = GetMany {
            set,
            ids,
            located: 0,
            now: FetchWindow::EMPTY,
            next: FetchWindow::EMPTY,
            turn: WINDOW,
            ahead: ReadAhead::default(),
        };
        this.look_up();
        this
    }

    /// Fills `next`.
    fn look_up(&mut self) {
        let ids = self.ids.get(self.located..).unwrap_or_default();
        let ids = ids.get(..WINDOW).unwrap_or(ids);
        let mut next = self.next.records.iter_mut();
        self.set.locate_all(ids, |found| {
            if let Some(to) = next.next() {
                *to = found.ok();
            }
        });
        self.next.len = ids.len();
        self.located += ids.len();
        self.next.announced = prefetch::announce(self.set, &self.ahead, self.next.records());
    }

    #[cold]
    fn turn_over(&mut self) {
        self.now = std::mem::replace(&mut self.next, FetchWindow::EMPTY);
        self.turn = 0;
        self.look_up();
        self.now.cold = prefetch::is_cold(self.set, &self.ahead, self.now.announced, self.now.records());
    }

    #[cold]
    fn fetch(&self, at: &RecordLocation) -> Result<Record<'a>> {
        prefetch::fetch(self.set, at)?;
        self.set.lend(at, self.set.verify())
    }
}

impl<'a> Iterator for GetMany<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record<'a>>> {
        let (&id, rest) = self.ids.split_first()?;
        if self.turn == WINDOW {
            self.turn_over();
        }
        let at = &self.now.records[self.turn];
        self.turn += 1;
        self.ids = rest;
        self.located = self.located.saturating_sub(1);
        Some(match at {
            Some(at) if self.now.cold => self.fetch(at),
            Some(at) => self.set.lend(at, self.set.verify()),
            None => self.set.get(id),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ids.len(), Some(self.ids.len()))
    }
}

impl ExactSizeIterator for GetMany<'_> {}
impl std::iter::FusedIterator for GetMany<'_> {}
