//! Memory maps of files.

#![allow(unsafe_code)]

use super::system;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

/// A file mapped for reading.
///
/// # Contract
/// *No process overwrites or truncates the file while it is mapped. Appending to it is allowed*: the map has
/// the length that the file had. *Replacing it by a rename is allowed*: the map keeps the old file. If the
/// file is truncated, an access to its missing pages raises SIGBUS. Bytes that change under a `&[u8]` are
/// undefined behaviour by the rules of Rust. No unsafe code of tfseek relies on reading the same byte twice
/// with the same result, and tfseek replaces its own files by renames.
///
/// Page tables take about 2 MB for each GiB that has been accessed.
#[derive(Debug)]
pub(crate) struct Map(memmap2::Mmap);

/// A token for the guarantee that the contract of [`Map`] holds for every file that is mapped with it. The
/// unsafe function that opens a dataset creates it and passes it to the code that creates the maps. So
/// `unsafe` does not pass through five layers, and maps are made in one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise(());

impl Promise {
    /// Creates the token.
    ///
    /// # Safety
    /// No process may overwrite or truncate a file while a map of it that was created with this token exists.
    /// Appending is allowed.
    pub(crate) const unsafe fn new() -> Promise {
        Promise(())
    }
}

impl Map {
    /// Maps all bytes of `file`, which may be empty.
    ///
    /// # Errors
    /// I/O errors of `mmap`; a file larger than the address space.
    pub(crate) fn open(file: &File, promise: Promise) -> io::Result<Map> {
        let Promise(()) = promise;
        let len = usize::try_from(file.metadata()?.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::OutOfMemory, "the file is larger than the address space")
        })?;
        // SAFETY: memmap2 requires that the mapped bytes neither change nor disappear while they are mapped.
        // A `Promise` can only be created by an unsafe function, whose caller guarantees that the file is
        // neither overwritten nor truncated. `len` is the length of the file now, so bytes that are appended
        // later are outside the map.
        unsafe { memmap2::MmapOptions::new().len(len).map(file) }.map(Map)
    }

    /// Advises the system to start reading these bytes, and returns immediately. A range outside the map, a
    /// refusal by the system, and a system without this call are not errors.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if let Some(len) = self.clip(&range) {
            system::map_will_need(&self.0, range.start, len);
        }
    }

    /// Makes these bytes resident before it returns, so that a failing disk is an error here and not a signal
    /// later.
    ///
    /// On a system without this call it reads one byte of each page.
    ///
    /// # Errors
    /// I/O errors of the disk, on systems that report them.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Some(len) = self.clip(&range) else { return Ok(()) };
        if let Some(done) = system::populate_map(&self.0, range.start, len) {
            return done;
        }
        self.touch(range.start..range.start + len);
        Ok(())
    }

    /// Reads one byte of each page: the portable form of `populate`.
    fn touch(&self, range: Range<usize>) {
        let mut sum = 0u8;
        for byte in self.get(range).unwrap_or_default().iter().step_by(4096) {
            sum ^= byte;
        }
        std::hint::black_box(sum);
    }

    fn clip(&self, range: &Range<usize>) -> Option<usize> {
        let end = range.end.min(self.len());
        end.checked_sub(range.start).filter(|&len| len > 0)
    }

    /// Returns the number of maps that a dataset may create: half of the system's limit for this process.
    pub(crate) fn budget() -> usize {
        let system = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
        system.and_then(|s| s.trim().parse::<usize>().ok()).unwrap_or(65_530) / 2
    }
}

impl Deref for Map {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_map_has_the_bytes_of_the_file() {
        for len in [0usize, 1, 4096, 10_000] {
            let mut file = tempfile::tempfile().unwrap();
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            file.write_all(&bytes).unwrap();
            // SAFETY: an anonymous file that no other process can open.
            let map = Map::open(&file, unsafe { Promise::new() }).unwrap();
            assert_eq!(&*map, bytes);
            map.will_need(0..len + 5);
            map.will_need(len + 1..len + 2);
            map.populate(0..usize::MAX).unwrap();
            map.populate(len / 2..len).unwrap();
            map.touch(0..len);
        }
    }

    #[test]
    fn the_budget_is_positive() {
        assert!(Map::budget() > 100);
    }
}
