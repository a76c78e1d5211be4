//! Objects that are read in order, with announcements ahead.

use super::source::{Fetched, Source, in_steps};
use super::{Region, Stamp};
use crate::error::Result;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most bytes of an announcement, and those while few bytes are announced ahead.
const STEP: u64 = 8 << 20;
const FIRST_STEP: u64 = 2 << 20;
/// Number of announcements that are ahead of a read. A link is full if enough requests are under way: one of
/// 200 MB/s has 54 MB of requests for 4 MiB under way, at a latency of 100 ms and 25 MB/s for each. A plain
/// client has 16 requests of 8 MiB under way; 32 of 4 MiB make up for the first and last ones.
const STEPS: u64 = 32;
/// Bytes that a reader reads which will probably read the rest.
const SURE: u64 = 1 << 20;
/// Reads at larger distances do not follow one another.
const NEAR: u64 = 1 << 20;
/// The most bytes that are announced ahead by all scans of a set together.
const AHEAD_OF_SCANS: u64 = 256 << 20;

/// How far ahead of its reads a reader announces. From [`SURE`] on it announces some times as many bytes as
/// it has read: each answer takes the latency of the store, however many bytes it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Bytes that are announced ahead of the first read.
    least: u64,
    growth: u64,
    most: u64,
}

impl Ahead {
    /// Of a reader that may stop soon.
    pub(crate) const OF_FIRST: Ahead = Ahead { least: 256 << 10, growth: 8, most: 128 << 20 };
    /// Of a scan, which reads all bytes or skips large records.
    pub(crate) const OF_SCAN: Ahead = Ahead { least: 1 << 20, growth: 32, most: 128 << 20 };
    /// Of a range that will be read to its end, perhaps with others at a time.
    pub(crate) const OF_RANGE: Ahead = Ahead { least: 32 << 20, growth: 8, most: 32 << 20 };
}

/// The number of scans at a time, which share what is announced.
#[derive(Debug, Default)]
pub(crate) struct Scans(AtomicU64);

/// A source that is mostly read in order, by [`Read`] or at offsets. The bytes after a read are announced.
#[derive(Debug)]
pub(crate) struct Sequential {
    source: Arc<dyn Source>,
    /// Offset of the next byte of [`Read`].
    at: u64,
    /// Offset after the last byte that is announced.
    end: u64,
    ahead: Ahead,
    scans: Option<Arc<Scans>>,
    /// Offset of the first of the reads that follow one another.
    first: AtomicU64,
    /// Offset after the last read.
    read: AtomicU64,
    /// Offset after the bytes that were announced.
    wanted: AtomicU64,
}

impl Sequential {
    /// Returns a reader of a range of the source, and, if more is read, of what follows.
    pub(crate) fn new(source: Arc<dyn Source>, range: Range<u64>, ahead: Ahead) -> Sequential {
        let Range { start: at, end } = range;
        let end = end.min(source.len());
        let [first, read, wanted] = [at; 3].map(AtomicU64::new);
        Sequential { source, at, end, ahead, scans: None, first, read, wanted }
    }

    /// Returns a reader for a scan of the source.
    pub(crate) fn scan(source: Arc<dyn Source>, scans: &Arc<Scans>) -> Sequential {
        scans.0.fetch_add(1, Relaxed);
        let mut reader = Sequential::new(source, 0..u64::MAX, Ahead::OF_SCAN);
        reader.scans = Some(Arc::clone(scans));
        reader
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
        let Ahead { least, growth, most } = self.ahead;
        let scans = self.scans.as_ref().map_or(1, |scans| scans.0.load(Relaxed).max(1));
        let most = most.min(AHEAD_OF_SCANS / scans).max(least);
        let done = read.end.saturating_sub(self.first.load(Relaxed));
        let ahead = if done < SURE { done } else { done.min(most) * growth };
        let ahead = ahead.clamp(least, most);
        let step = (ahead / STEPS).clamp(FIRST_STEP, STEP).min(ahead / 2).max(1);
        let from = self.wanted.load(Relaxed).max(read.start);
        let mut until = read.end.saturating_add(ahead).min(self.end);
        if from < until && until < self.end {
            // Whole steps: a request for the rest of one takes as long.
            until -= (until - from) % step;
        }
        if from >= until {
            return;
        }
        // One by one: ranges that are announced together may be one request, which is slower than several.
        in_steps(from..until, step).for_each(|piece| self.source.want(&[piece]));
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

    fn distrust(&self, range: &Range<u64>) -> bool {
        self.source.distrust(range)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.announce(offset..offset + buf.len() as u64);
        self.source.read_at(buf, offset)
    }
}

impl Read for Sequential {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Drop for Sequential {
    fn drop(&mut self) {
        let read = self.read.load(Relaxed);
        let wanted = self.wanted.load(Relaxed);
        if read < wanted {
            self.source.forget(std::slice::from_ref(&(read..wanted)));
        }
        if let Some(scans) = &self.scans {
            scans.0.fetch_sub(1, Relaxed);
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
        [Ahead::OF_FIRST, Ahead::OF_SCAN, Ahead::OF_RANGE].into_iter().for_each(all_are_announced);
    }

    fn all_are_announced(ahead: Ahead) {
        let Ahead { least, growth, most } = ahead;
        let len = 3 * most + 12_345;
        let source = Arc::new(Noting(len, Mutex::default(), Mutex::default()));
        let mut reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 0..u64::MAX, ahead);
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
            assert!(wanted >= at && wanted <= at + most, "{wanted} at {at}");
            // Few bytes are asked for in vain by a reader that stops soon, and few answers are waited for by
            // another.
            assert!(at >= SURE || wanted <= at + least.max(at), "{wanted} at {at}");
            assert!(
                at < SURE || wanted >= len.min(at + growth / 2 * at.min(most / growth)),
                "{wanted} at {at}"
            );
        }
        assert_eq!(at, len);
        let wanted = source.1.lock().unwrap().clone();
        assert_eq!((wanted[0].start, wanted.last().unwrap().end), (0, len));
        assert!(wanted.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(wanted.iter().all(|range| range.end - range.start <= STEP));
        let short = wanted.iter().filter(|range| range.end - range.start < FIRST_STEP);
        assert!(short.count() < 10);
        // Far ahead, there are few requests.
        let far = wanted.iter().filter(|range| range.start > most);
        assert!(far.clone().count() as u64 <= 2 * STEPS + 2 && far.count() as u64 > STEPS / 2);
    }

    #[test]
    fn what_is_skipped_is_forgotten_once() {
        let source = Arc::new(Noting(1 << 30, Mutex::default(), Mutex::default()));
        let reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 0..u64::MAX, Ahead::OF_SCAN);
        for k in 0..10 {
            reader.read_at(&mut [0; 100], k * 1000).unwrap();
        }
        let forgotten = source.2.lock().unwrap().clone();
        assert_eq!(forgotten, (1..10).map(|k| k * 1000 - 900..k * 1000).collect::<Vec<_>>());
        drop(reader);
        assert_eq!(source.2.lock().unwrap().last(), Some(&(9100..Ahead::OF_SCAN.least)));
    }

    #[test]
    fn hops_announce_nothing_and_what_is_left_is_forgotten() {
        let source = Arc::new(Noting(1 << 30, Mutex::default(), Mutex::default()));
        let reader = Sequential::new(Arc::clone(&source) as Arc<dyn Source>, 5..u64::MAX, Ahead::OF_SCAN);
        for k in 1..10 {
            assert_eq!(reader.read_at(&mut [0; 12], k * 20 * FIRST_STEP).unwrap(), 12);
        }
        assert!(source.1.lock().unwrap().is_empty());
        reader.read_at(&mut [0; 12], 9 * 20 * FIRST_STEP + 12).unwrap();
        drop(reader);
        assert_eq!(source.2.lock().unwrap().len(), 1);
    }
    #[test]
    fn scans_share_what_is_announced() {
        let scans = Arc::new(Scans::default());
        let sources: Vec<_> =
            (0..20).map(|_| Arc::new(Noting(1 << 30, Mutex::default(), Mutex::default()))).collect();
        let readers =
            sources.iter().map(|source| Sequential::scan(Arc::clone(source) as Arc<dyn Source>, &scans));
        let mut readers: Vec<Sequential> = readers.collect();
        for reader in &mut readers {
            for _ in 0..64 {
                assert_eq!(reader.read(&mut [0; 256 << 10]).unwrap(), 256 << 10);
            }
        }
        let ahead = |source: &Arc<Noting>| source.1.lock().unwrap().last().unwrap().end - (16 << 20);
        assert!(sources.iter().map(ahead).sum::<u64>() <= AHEAD_OF_SCANS);
        readers.truncate(1);
        assert_eq!(readers[0].read(&mut [0; 4]).unwrap(), 4);
        assert!(ahead(&sources[0]) > AHEAD_OF_SCANS / 4);
    }
}
