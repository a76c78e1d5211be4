//! Objects that are read in order, with announcements ahead.

use super::source::{Fetched, Source};
use super::{Region, Stamp};
use crate::error::Result;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most bytes that are announced ahead of a read, and those of a range that will be read to its end.
pub(crate) const AHEAD: u64 = 32 << 20;
/// Bytes that are announced ahead of the first read of a scan, which skips large records.
pub(crate) const AHEAD_OF_SCAN: u64 = 1 << 20;
/// Bytes that are announced ahead of the first read, if the reader may stop soon.
pub(crate) const AHEAD_OF_FIRST: u64 = 256 << 10;
/// The most bytes of an announcement.
const STEP: u64 = 2 << 20;
/// Bytes that a reader reads which will probably read the rest. [`GROWTH`] times as many bytes as it has read are then announced ahead: each answer
/// takes the latency of the store, however many bytes it has.
const SURE: u64 = 1 << 20;
const GROWTH: u64 = 8;
/// Reads at larger distances do not follow one another.
const NEAR: u64 = 1 << 20;

/// A source that is mostly read in order, by [`Read`] or at offsets. The bytes after a read are announced.
#[derive(Debug)]
pub(crate) struct Sequential {
    source: Arc<dyn Source>,
    /// Offset of the next byte of [`Read`].
    at: u64,
    /// Offset after the last byte that is announced.
    end: u64,
    /// The least number of bytes that are announced ahead.
    least: u64,
    /// Offset of the first of the reads that follow one another.
    first: AtomicU64,
    /// Offset after the last read.
    read: AtomicU64,
    /// Offset after the bytes that were announced.
    wanted: AtomicU64,
}

impl Sequential {
    /// Returns a reader of a range of the source, and, if more is read, of what follows. As many bytes are announced ahead as were read, from a MiB on
    /// eight times as many, and at least `least`.
    pub(crate) fn new(source: Arc<dyn Source>, range: Range<u64>, least: u64) -> Sequential {
        let Range { start: at, end } = range;
        let end = end.min(source.len());
        let [first, read, wanted] = [at; 3].map(AtomicU64::new);
        Sequential { source, at, end, least, first, read, wanted }
    }

    /// Announces the bytes after a read, if the reads before it were near.
    fn announce(&self, read: Range<u64>) {
        let before = self.read.swap(read.end, Relaxed);
        // A store does not keep skipped bytes.
        let skipped = before..read.start.min(self.wanted.load(Relaxed));
        if skipped.start < skipped.end {
            self.source.forget(std::slice::from_ref(&skipped));
        }
        if read.start.abs_diff(before) > NEAR {
            self.first.store(read.start, Relaxed);
            return;
        }
        let done = read.end.saturating_sub(self.first.load(Relaxed));
        let ahead = if done < SURE { done } else { done.saturating_mul(GROWTH) };
        let ahead = ahead.clamp(self.least, AHEAD);
        let from = self.wanted.load(Relaxed).max(read.start);
        let mut until = read.end.saturating_add(ahead).min(self.end);
        if until < self.end {
            // Whole steps: a request for the rest of one takes as long.
            let (step, more) = (STEP.min(ahead / 2).max(1), until.saturating_sub(from));
            until = from.saturating_add(more.saturating_sub(more % step));
        }
        if from >= until {
            return;
        }
        let starts = (0..).map(|k: u64| from.saturating_add(k.saturating_mul(STEP)));
        let starts = starts.take_while(|start| *start < until);
        // One by one: ranges that are announced together may be one request, which is slower than several.
        for piece in starts.map(|start| start..start.saturating_add(STEP).min(until)) {
            self.source.want(std::slice::from_ref(&piece));
        }
        self.wanted.store(until, Relaxed);
    }
}

impl Source for Sequential {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.source.len()
    }

    fn stamp(&self) -> Result<Stamp> {
        self.source.stamp()
    }

    fn whole(&self) -> Option<&Region> {
        self.source.whole()
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.source.want(ranges);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.announce(range.clone());
        self.source.fetch(range, buf)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.announce(offset..offset.saturating_add(buf.len() as u64));
        self.source.read_at(buf, offset)
    }
}

impl Read for Sequential {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(buf, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Drop for Sequential {
    fn drop(&mut self) {
        let (read, wanted) = (self.read.load(Relaxed), self.wanted.load(Relaxed));
        if read < wanted {
            self.source.forget(std::slice::from_ref(&(read..wanted)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Zeros that note what is announced.
    #[derive(Debug, Default)]
    struct Noting(u64, Mutex<Vec<Range<u64>>>, Mutex<Vec<Range<u64>>>);

    impl Source for Noting {
        fn name(&self) -> &str {
            "noting"
        }

        fn len(&self) -> u64 {
            self.0
        }

        fn stamp(&self) -> Result<Stamp> {
            Ok(Stamp::new(self.0))
        }

        fn want(&self, ranges: &[Range<u64>]) {
            self.1.lock().unwrap().extend_from_slice(ranges);
        }

        fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
            buf.resize(buf.len() + (range.end - range.start) as usize, 0);
            Ok(Fetched::Appended)
        }

        fn forget(&self, ranges: &[Range<u64>]) {
            self.2.lock().unwrap().extend_from_slice(ranges);
        }
    }

    #[test]
    fn all_bytes_are_announced_once_before_they_are_read() {
        [AHEAD_OF_FIRST, AHEAD_OF_SCAN, AHEAD].into_iter().for_each(all_are_announced);
    }

    fn all_are_announced(least: u64) {
        let len = 3 * AHEAD + 12_345;
        let source = Arc::new(Noting(len, Mutex::default(), Mutex::default()));
        let mut reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 0..u64::MAX, least);
        let mut buf = vec![0; 256 << 10];
        let mut at = 0;
        loop {
            let n = reader.read(&mut buf).unwrap() as u64;
            if n == 0 {
                break;
            }
            at += n;
            if at == n {
                let wanted = source.1.lock().unwrap().last().unwrap().end;
                assert!(wanted > n + least / 2 && wanted <= n + least, "{wanted}");
            }
            let wanted = source.1.lock().unwrap().last().unwrap().end;
            assert!(wanted >= at && wanted <= at + AHEAD, "{wanted} at {at}");
            // Few bytes are asked for in vain by a reader that stops soon, and few answers are waited for by another.
            assert!(at >= SURE || wanted <= at + least.max(at), "{wanted} at {at}");
            assert!(at < SURE || wanted >= len.min(at + 4 * at.min(AHEAD / GROWTH)), "{wanted} at {at}");
        }
        assert_eq!(at, len);
        let wanted = source.1.lock().unwrap().clone();
        assert_eq!((wanted[0].start, wanted.last().unwrap().end), (0, len));
        assert!(wanted.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(wanted.iter().all(|range| range.end - range.start <= STEP));
        let short = wanted.iter().filter(|range| range.end - range.start < STEP);
        assert!(short.count() < 10);
    }

    #[test]
    fn what_is_skipped_is_forgotten_once() {
        let source = Arc::new(Noting(1 << 30, Mutex::default(), Mutex::default()));
        let reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 0..u64::MAX, AHEAD_OF_SCAN);
        for k in 0..10 {
            reader.read_at(&mut [0; 100], k * 1000).unwrap();
        }
        let forgotten = source.2.lock().unwrap().clone();
        assert_eq!(forgotten, (1..10).map(|k| k * 1000 - 900..k * 1000).collect::<Vec<_>>());
        drop(reader);
        assert_eq!(source.2.lock().unwrap().last(), Some(&(9100..AHEAD_OF_SCAN)));
    }

    #[test]
    fn hops_announce_nothing_and_what_is_left_is_forgotten() {
        let source = Arc::new(Noting(1 << 30, Mutex::default(), Mutex::default()));
        let reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 5..u64::MAX, AHEAD_OF_SCAN);
        for k in 1..10 {
            assert_eq!(reader.read_at(&mut [0; 12], k * 20 * STEP).unwrap(), 12);
        }
        assert!(source.1.lock().unwrap().is_empty());
        reader.read_at(&mut [0; 12], 9 * 20 * STEP + 12).unwrap();
        drop(reader);
        assert_eq!(source.2.lock().unwrap().len(), 1);
    }
}
