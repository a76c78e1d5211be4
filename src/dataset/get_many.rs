//! Records by number, with prefetching.

use super::prefetch;
use super::shards::{RecordLocation, ShardSet};
use crate::cache;
use crate::error::Result;
use crate::io::read_ahead::WINDOW;
use crate::io::{ReadAhead, Requested};
use crate::record::Record;

/// Maximum number of bytes of a later record that are prefetched. Records of 1.4 KB take 0.82 to 0.87 of the
/// time that they take without, and records of 4 KB the same; with 4 or 8 KiB they take 1.03 to 1.06 of it
/// (Xeon with AMX).
const FIRST_BYTES: usize = 2048;

/// An iterator over records in the order of a list of record numbers. See
/// [`Mapped::get_many`](super::Mapped::get_many).
///
/// The numbers pass through two windows of 32. The records of a window are located in one loop, and touched
/// in another. The loads of a loop do not depend on each other, so the processor overlaps their cache misses.
/// While records are cold, a window is requested to the system as soon as its records are located, one window
/// ahead of its use.
#[derive(Debug)]
pub(super) struct GetMany<'a> {
    set: &'a ShardSet,
    /// Numbers of the records that are not returned yet.
    ids: &'a [u64],
    /// Length of the prefix of `ids` that is already located.
    located: usize,
    current: FetchWindow,
    next: FetchWindow,
    /// Position of the next record in `current`.
    position: usize,
    ahead: ReadAhead,
}

/// A window: records that are located together.
#[derive(Debug)]
struct FetchWindow {
    /// Locations of the records. `None`: the lookup failed, and is repeated to return its error in order.
    records: [Option<RecordLocation>; WINDOW],
    len: usize,
    requested: Requested,
    /// True if the records must be fetched first.
    cold: bool,
}

impl FetchWindow {
    const EMPTY: FetchWindow =
        FetchWindow { records: [None; WINDOW], len: 0, requested: Requested::Nothing, cold: false };

    #[expect(clippy::indexing_slicing, reason = "`len` is at most `WINDOW`")]
    fn records(&self) -> &[Option<RecordLocation>] {
        &self.records[..self.len]
    }
}

impl<'a> GetMany<'a> {
    pub(super) fn new(set: &'a ShardSet, ids: &'a [u64]) -> GetMany<'a> {
        let mut this = GetMany {
            set,
            ids,
            located: 0,
            current: FetchWindow::EMPTY,
            next: FetchWindow::EMPTY,
            position: WINDOW,
            ahead: ReadAhead::default(),
        };
        this.fill_next();
        this
    }

    /// Locates the records of the window `next`.
    #[expect(clippy::indexing_slicing, reason = "a prefix of `ids` is located")]
    fn fill_next(&mut self) {
        let ids = &self.ids[self.located..];
        let ids = ids.get(..WINDOW).unwrap_or(ids);
        let mut next = self.next.records.iter_mut();
        self.set.locate_all(ids, |found| {
            if let Some(to) = next.next() {
                *to = found.ok();
            }
        });
        self.next.len = ids.len();
        self.located += ids.len();
        self.next.requested = prefetch::request_ahead(self.set, &self.ahead, self.next.records());
    }

    #[cold]
    fn next_window(&mut self) {
        self.current = std::mem::replace(&mut self.next, FetchWindow::EMPTY);
        self.position = 0;
        self.fill_next();
        let window = &self.current;
        self.current.cold = prefetch::is_cold(self.set, &self.ahead, window.requested, window.records());
    }

    /// Starts to load the record that is returned a few records later, if it is a long one.
    #[inline]
    fn prefetch_later(&self) {
        let later = self.position + cache::FAR;
        let (window, number) = match later.checked_sub(WINDOW) {
            None => (&self.current, later),
            Some(number) => (&self.next, number),
        };
        if let Some(Some(at)) = window.records().get(number)
            && let Ok(len) = usize::try_from(at.payload_len())
            && cache::is_far(len)
            && let Ok(bytes) = self.set.file_of(at).bytes()
            && let Some(bytes) = usize::try_from(at.span.offset).ok().and_then(|start| bytes.get(start..))
        {
            cache::prefetch_record(bytes.get(..len.min(FIRST_BYTES)).unwrap_or(bytes));
        }
    }

    #[cold]
    fn fetch(&self, at: &RecordLocation) -> Result<Record<'a>> {
        prefetch::fetch(self.set, at)?;
        self.set.borrow(at, self.set.verify())
    }
}

impl<'a> Iterator for GetMany<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a window has `WINDOW` records")]
    fn next(&mut self) -> Option<Result<Record<'a>>> {
        let (&id, rest) = self.ids.split_first()?;
        if self.position == WINDOW {
            self.next_window();
        }
        self.prefetch_later();
        let at = &self.current.records[self.position];
        self.position += 1;
        self.ids = rest;
        self.located -= 1;
        Some(match at {
            Some(at) if self.current.cold => self.fetch(at),
            Some(at) => self.set.borrow(at, self.set.verify()),
            None => self.set.get_slow(id),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ids.len(), Some(self.ids.len()))
    }
}

impl ExactSizeIterator for GetMany<'_> {}
impl std::iter::FusedIterator for GetMany<'_> {}
