//! Fuzz input as numbers and edits, and files for targets that need some.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that are read as numbers and edits. After their end all numbers are 0.
pub(super) struct Script<'a>(pub(super) &'a [u8]);

impl<'a> Script<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub(super) fn u16(&mut self) -> usize {
        usize::from(u16::from_le_bytes([self.u8(), self.u8()]))
    }

    pub(super) fn u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let taken = self.take(8);
        bytes[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(bytes)
    }

    /// Applies edits of five bytes each until the end of the script. Returns `None` if nothing was changed,
    /// and `Some(true)` if at most one byte was changed.
    pub(super) fn edit(&mut self, file: &mut Vec<u8>) -> Option<bool> {
        let mut edited = None;
        while !self.0.is_empty() {
            let (op, at, value) = (self.u8(), self.u16(), self.take(2));
            let at = at % (file.len() + 1);
            match op % 6 {
                0 if at < file.len() => file[at] ^= 1 << (op >> 5),
                1 if at < file.len() => file[at] = value.first().copied().unwrap_or(0),
                2 => drop(file.splice(at..(at + value.len()).min(file.len()), value.iter().copied())),
                3 => file.truncate(at),
                4 => file.insert(at, value.first().copied().unwrap_or(0)),
                5 if at < file.len() => drop(file.remove(at)),
                _ => continue,
            }
            edited = Some(edited.is_none() && op % 6 < 2);
        }
        edited
    }
}

/// An empty folder, which is removed with this value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tfseek-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// Writes a file, and returns its path.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
