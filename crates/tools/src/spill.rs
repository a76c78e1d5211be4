//! Byte sequences of unknown length that grow at the same time, in memory and in a temporary file.

use crate::memory::append;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Byte sequences that grow by appending. When their buffers exceed a budget, all are appended to one temporary file.
///
/// The file has no name (on Windows it is deleted when it is closed), so nothing remains of it, whatever ends the process. It is created
/// when the budget is first exceeded.
pub(crate) struct Spill {
    sequences: Vec<Sequence>,
    /// Total length of the buffers.
    buffered: usize,
    budget: usize,
    file: Option<File>,
    /// Length of the file.
    file_len: u64,
    /// Folder of the file. `None`: the system's folder for temporary files.
    folder: Option<PathBuf>,
}

#[derive(Default)]
struct Sequence {
    /// Parts in the file: offset and length.
    parts: Vec<(u64, u64)>,
    /// The bytes after these parts.
    buffer: Vec<u8>,
    len: u64,
}

/// The number of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceId(usize);

impl Spill {
    /// Maximum total length of the buffers in bytes, except while bytes are appended.
    pub(crate) const BUDGET: usize = 32 << 20;

    pub(crate) fn new(folder: Option<PathBuf>, budget: usize) -> Spill {
        Spill { sequences: Vec::new(), buffered: 0, budget, file: None, file_len: 0, folder }
    }

    /// Adds an empty sequence.
    pub(crate) fn add(&mut self) -> SequenceId {
        self.sequences.push(Sequence::default());
        SequenceId(self.sequences.len() - 1)
    }

    /// Appends bytes to a sequence.
    pub(crate) fn append(&mut self, id: SequenceId, bytes: &[u8]) -> io::Result<()> {
        if let Some(sequence) = self.sequences.get_mut(id.0) {
            append(&mut sequence.buffer, bytes)?;
            sequence.len += bytes.len() as u64;
            self.buffered += bytes.len();
        }
        if self.buffered > self.budget { self.write_buffers() } else { Ok(()) }
    }

    fn write_buffers(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(match &self.folder {
                Some(folder) => tempfile::tempfile_in(folder)?,
                None => tempfile::tempfile()?,
            }),
        };
        for sequence in self.sequences.iter_mut().filter(|sequence| !sequence.buffer.is_empty()) {
            // The memory of the buffer is freed. Otherwise it could add up to the budget for each sequence.
            let bytes = std::mem::take(&mut sequence.buffer);
            file.write_all(&bytes)?;
            sequence.parts.push((self.file_len, bytes.len() as u64));
            self.file_len += bytes.len() as u64;
        }
        self.buffered = 0;
        Ok(())
    }

    /// Returns the length of a sequence in bytes.
    pub(crate) fn len(&self, id: SequenceId) -> u64 {
        self.sequences.get(id.0).map_or(0, |sequence| sequence.len)
    }

    /// Returns the length of all sequences in bytes.
    pub(crate) fn total(&self) -> u64 {
        self.file_len + self.buffered as u64
    }

    /// Returns a reader of a sequence. Several readers can be used alternately.
    pub(crate) fn reader(&self, id: SequenceId) -> SequenceReader<'_> {
        let (parts, buffer): (&[_], &[u8]) = match self.sequences.get(id.0) {
            Some(sequence) => (&sequence.parts, &sequence.buffer),
            None => (&[], &[]),
        };
        SequenceReader { file: self.file.as_ref(), parts: parts.iter(), part: (0, 0), buffer }
    }
}

/// A reader of one sequence.
pub(crate) struct SequenceReader<'a> {
    file: Option<&'a File>,
    parts: std::slice::Iter<'a, (u64, u64)>,
    /// Offset and length of the rest of the current part.
    part: (u64, u64),
    buffer: &'a [u8],
}

impl Read for SequenceReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.part.1 == 0 {
            match self.parts.next() {
                Some(&part) => self.part = part,
                None => return self.buffer.read(buf),
            }
        }
        let (offset, len) = self.part;
        let end = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
        let (Some(mut file), Some(buf)) = (self.file, buf.get_mut(..end)) else { return Ok(0) };
        // Other readers have moved the position of the file.
        file.seek(SeekFrom::Start(offset))?;
        let n = file.read(buf)?;
        if n == 0 && end > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.part = (offset + n as u64, len - n as u64);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_read_as_they_were_appended() {
        let dir = tempfile::tempdir().unwrap();
        for budget in [0, 1, 10, 100, 10_000] {
            let mut spill = Spill::new(Some(dir.path().into()), budget);
            let ids = [spill.add(), spill.add(), spill.add()];
            let mut want = [const { Vec::new() }; 3];
            for k in 0..200u8 {
                let s = usize::from(k % 2);
                let bytes = vec![k; usize::from(k % 7)];
                spill.append(ids[s], &bytes).unwrap();
                want[s].extend(bytes);
                assert!(spill.buffered <= budget);
            }
            assert_eq!(spill.file.is_some(), budget < 500, "{budget}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
            // Alternately, in small pieces.
            let mut readers = ids.map(|id| spill.reader(id));
            let mut found = [const { Vec::new() }; 3];
            for _ in 0..600 {
                for (reader, found) in readers.iter_mut().zip(&mut found) {
                    let mut piece = [0; 3];
                    let n = reader.read(&mut piece).unwrap();
                    found.extend_from_slice(&piece[..n]);
                }
            }
            assert_eq!(found, want, "{budget}");
            assert_eq!(ids.map(|id| spill.len(id)), want.map(|want| want.len() as u64));
        }
    }
}
