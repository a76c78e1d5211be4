//! Records by number, with a look at those that come next.

use super::Mapped;
use crate::error::Result;
use crate::index::Span;
use crate::record::Record;
use std::time::{Duration, Instant};

/// Records a window holds.
const WINDOW: usize = 32;
/// A record that takes longer to touch waits for a disk: a warm one takes 0.2 us, the slowest disk's cache 20.
pub(crate) const COLD: Duration = Duration::from_micros(10);
/// Windows for which advice is given once one was cold; then it is tried without.
const ADVISED: u32 = 64;

/// A record that was found in the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    pub(super) shard: u32,
    pub(super) i: u64,
    pub(super) span: Span,
}

impl Located {
    /// Bytes of its payload, by the index.
    pub(crate) fn payload_len(&self) -> u64 {
        self.span.payload_len
    }

    /// A place as large as a record without a payload.
    pub(crate) fn header(&self) -> Located {
        Located { span: Span { payload_len: 0, ..self.span }, ..*self }
    }
}

/// Records in the order of a list of numbers; see [`Mapped::get_many`].
///
/// The numbers go through two windows of 32. A window is looked up in the index in one loop, then its records are touched in
/// one loop: loads that do not depend on each other, so the processor overlaps their cache misses. Advice to the system
/// (`madvise`) costs more than a warm record, so it is given only after a window that was slow, and then for the window
/// after the next.
#[derive(Debug)]
pub struct GetMany<'a> {
    ds: &'a Mapped,
    ids: &'a [u64],
    /// Numbers before this one have been looked up.
    located: usize,
    now: Window,
    next: Window,
    /// The record of `now` whose turn it is.
    turn: usize,
    advised: u32,
}

/// `None`: the look-up failed, and will say why when the record's turn comes.
type Window = [Option<Located>; WINDOW];

impl<'a> GetMany<'a> {
    pub(super) fn new(ds: &'a Mapped, ids: &'a [u64]) -> GetMany<'a> {
        let mut this = GetMany {
            ds,
            ids,
            located: 0,
            now: [None; WINDOW],
            next: [None; WINDOW],
            turn: WINDOW,
            advised: 0,
        };
        this.look_up();
        this
    }

    /// Fills `next`.
    fn look_up(&mut self) {
        let ids = self.ids.get(self.located..).unwrap_or_default();
        let ids = ids.get(..WINDOW).unwrap_or(ids);
        let mut next = self.next.iter_mut();
        self.ds.locate_all(ids, |found| {
            if let Some(to) = next.next() {
                *to = found.ok();
            }
        });
        self.located += ids.len();
    }

    #[cold]
    fn turn_over(&mut self) {
        self.now = std::mem::replace(&mut self.next, [None; WINDOW]);
        self.turn = 0;
        self.look_up();
        if self.advised > 0 {
            self.advised -= 1;
            self.next.iter().flatten().for_each(|at| self.ds.will_need(at));
        } else {
            let start = Instant::now();
            self.ds.touch_all(self.now.iter().flatten());
            if start.elapsed() > COLD * WINDOW as u32 {
                self.advised = ADVISED;
            }
        }
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
        let at = self.now[self.turn];
        self.turn += 1;
        self.ids = rest;
        self.located = self.located.saturating_sub(1);
        Some(match at {
            Some(at) => self.ds.lend(at),
            None => self.ds.get(id),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ids.len(), Some(self.ids.len()))
    }
}

impl ExactSizeIterator for GetMany<'_> {}
impl std::iter::FusedIterator for GetMany<'_> {}
