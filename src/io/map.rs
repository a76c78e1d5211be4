//! Memory maps: files as slices.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};

/// A file mapped for reading.
///
/// # Contract
/// *Nobody writes to or truncates the file while it is mapped. Replacing it by rename is fine*: the map keeps
/// the old file. A truncated file makes the next access to its missing pages a SIGBUS, and bytes that change
/// under a `&[u8]` are undefined behaviour in the language's terms. No unsafe code of tfseek relies on a byte
/// being the same the second time it is read, and what tfseek itself writes goes through a rename.
///
/// Page tables cost about 2 MB for each GiB that has been touched.
#[derive(Debug)]
pub(crate) struct Map(memmap2::Mmap);

/// A token for the promise that the contract of [`Map`] holds for every file that is mapped with it. The unsafe function that opens a
/// dataset makes it, and passes it to the code that makes the maps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise(());

impl Promise {
    /// Makes the token.
    ///
    /// # Safety
    /// For as long as a map made with this promise lives, nobody writes to its file or truncates it.
    pub(crate) const unsafe fn new() -> Promise {
        Promise(())
    }
}

impl Map {
    /// Maps the whole of `file`, which may be empty.
    ///
    /// # Errors
    /// Those of `mmap`; a file larger than the address space.
    pub(crate) fn open(file: &File, promise: Promise) -> io::Result<Map> {
        let Promise(()) = promise;
        let len = usize::try_from(file.metadata()?.len())
            .map_err(|_| io::Error::new(io::ErrorKind::OutOfMemory, "file larger than the address space"))?;
        // SAFETY: memmap2 demands that the file is neither written to nor truncated while it is mapped. A `Promise`
        // is made only by an unsafe function whose caller vouches for just that. `len` is the file's own.
        unsafe { memmap2::MmapOptions::new().len(len).map(file) }.map(Map)
    }

    /// Asks the system to start reading these bytes in; returns at once. Advice only: a range outside the map, a
    /// refusal, and a system without the call are no errors.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Some(len) = self.clip(&range) {
            let _ = self.0.advise_range(memmap2::Advice::WillNeed, range.start, len);
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Reads these bytes in before it returns, so that a failing disk is an error here and no signal later.
    ///
    /// On a system without such a call it touches a byte of each page.
    ///
    /// # Errors
    /// Those of the disk, where the system can tell.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Some(len) = self.clip(&range) else { return Ok(()) };
        #[cfg(target_os = "linux")]
        match self.0.advise_range(memmap2::Advice::PopulateRead, range.start, len) {
            // EINVAL: a kernel before 5.14.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {}
            done => return done,
        }
        self.touch(range.start..range.start + len);
        Ok(())
    }

    /// Does portably what `populate` does.
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

    /// Returns the number of maps that a dataset may make: half of what the system allows this process.
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

impl AsRef<[u8]> for Map {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn maps_what_the_file_holds() {
        for len in [0usize, 1, 4096, 10_000] {
            let mut file = tempfile::tempfile().unwrap();
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            file.write_all(&bytes).unwrap();
            // SAFETY: an anonymous file that nobody else can reach.
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
    fn the_budget_is_a_number() {
        assert!(Map::budget() > 100);
    }
}
