//! Statistics of the byte strings of a feature.

use super::frequent::FEW;
use super::sizes::SizeCounters;
use super::texts::{KEPT, TextFrequencies};
use std::collections::BTreeMap;
use tfseek::List;
use tfseek::filter::{image_format, image_size};

/// Statistics of byte strings.
#[derive(Clone, Default)]
#[repr(C)]
pub(crate) struct ByteStats {
    pub(crate) frequencies: TextFrequencies,
    pub(crate) lengths: SizeCounters,
    pub(crate) not_utf8: u64,
    pub(crate) images: Option<Box<ImageStats>>,
}

/// Statistics of images.
#[derive(Clone, Default)]
pub(crate) struct ImageStats {
    /// Numbers of images by format.
    pub(crate) formats: BTreeMap<String, u64>,
    pub(crate) widths: SizeCounters,
    pub(crate) heights: SizeCounters,
    pub(crate) undecodable: u64,
}

impl ByteStats {
    #[inline]
    pub(crate) fn add_list<'a>(&mut self, list: List<'a, &'a [u8]>) {
        match list.len() {
            1 => list.first().into_iter().for_each(|value| self.add(value)),
            _ => list.iter().for_each(|value| self.add(value)),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, value: &[u8]) {
        if self.frequencies.add(value) {
            self.flush();
        }
        if value.len() > KEPT {
            self.inspect(value, 1);
        }
    }

    /// Adds length, encoding and image format of a value that was added `n` times.
    fn inspect(&mut self, value: &[u8], n: u64) {
        self.lengths.add_many(value.len(), n);
        if !value.is_ascii() && std::str::from_utf8(value).is_err() {
            self.not_utf8 += n;
        }
        if let Some(format) = image_format(value) {
            let images = self.images.get_or_insert_default();
            match images.formats.get_mut(format) {
                Some(images) => *images += n,
                None => {
                    images.formats.insert(format.to_owned(), n);
                }
            }
            match image_size(value) {
                Some((width, height)) => {
                    images.widths.add_many(width, n);
                    images.heights.add_many(height, n);
                }
                None => images.undecodable += n,
            }
        }
    }

    /// Returns the number of values without a complete header, in a feature that has pictures: cut ones, and
    /// other values than pictures if there are no more of them than of pictures.
    pub(crate) fn without_header(&self) -> u64 {
        let Some(images) = &self.images else { return 0 };
        let pictures = images.formats.values().sum();
        let others = self.lengths.n.checked_sub(pictures).filter(|others| *others <= pictures);
        others.map_or(images.undecodable, |others| images.undecodable + others)
    }

    pub(crate) fn flush(&mut self) {
        let mut frequencies = std::mem::take(&mut self.frequencies);
        frequencies.flush(|value, n| self.inspect(value, n));
        self.frequencies = frequencies;
    }

    /// Ends exact counting, to save memory.
    pub(crate) fn approximate(&mut self) {
        self.flush();
        self.frequencies.approximate(FEW);
    }

    pub(crate) fn merge(&mut self, other: &ByteStats) {
        self.lengths.merge(&other.lengths);
        self.not_utf8 += other.not_utf8;
        self.frequencies.merge(&other.frequencies);
        if let Some(theirs) = &other.images {
            let images = self.images.get_or_insert_default();
            for (format, n) in &theirs.formats {
                *images.formats.entry(format.clone()).or_default() += n;
            }
            images.widths.merge(&theirs.widths);
            images.heights.merge(&theirs.heights);
            images.undecodable += theirs.undecodable;
        }
    }

    /// Returns the number of distinct values, and true if it is exact. An estimate is at most the number of
    /// values.
    pub(crate) fn distinct(&self) -> (u64, bool) {
        match &self.frequencies.distinct {
            Some(distinct) => (distinct.estimate().min(self.lengths.n), false),
            None => (self.frequencies.len() as u64, true),
        }
    }

    pub(crate) fn exact_bytes(&self) -> u64 {
        if self.frequencies.keep == FEW { 0 } else { self.frequencies.memory() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let images = self.images.as_ref();
        let images =
            images.map_or(0, |images| images.widths.counters.bytes() + images.heights.counters.bytes());
        self.frequencies.memory() + self.lengths.counters.bytes() + images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_file_need_not_agree() {
        let formats = [("gif", 5), ("png", 1)].map(|(format, n)| (format.to_owned(), n)).into();
        let images = ImageStats { formats, undecodable: 3, ..ImageStats::default() };
        let stats = ByteStats { images: Some(Box::new(images)), ..ByteStats::default() };
        assert_eq!(stats.without_header(), 3);
    }
}
