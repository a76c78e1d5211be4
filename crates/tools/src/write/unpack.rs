//! Decompression of files, which can only be read in order, to plain files.

use super::sync::sync_name;
use std::path::{Path, PathBuf};
use tfseek::io::Existing;
use tfseek::paths::has_extension;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Result, Stream};

/// Destination of plain files.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// The folder of each input.
    NextToInput,
    /// One folder for all files.
    Folder(&'a Path),
    /// The path of the only file.
    File(&'a Path),
}

impl Destination<'_> {
    /// Returns the path of the plain file: the given path, or the input's name without the suffix of its
    /// compression. In another folder a file without such a suffix keeps its name, and a name that does not
    /// count as a shard's name there gets the extension `.tfrecord`. `None` if the file needs a name. Next to
    /// its input a file keeps the name that `gunzip` gives it.
    pub fn target(self, input: &Path) -> Option<PathBuf> {
        if let Destination::File(out) = self {
            return Some(out.to_path_buf());
        }
        let name = input.file_name().and_then(|name| name.to_str());
        let plain = name.and_then(|name| {
            let (compression, plain) = Compression::of_name(name);
            (compression != Compression::None && !plain.is_empty()).then_some(plain)
        });
        match (self, plain, name) {
            (Destination::NextToInput, Some(plain), _) => Some(input.with_file_name(plain)),
            (Destination::Folder(dir), Some(name), _) | (Destination::Folder(dir), None, Some(name)) => {
                let counts = name.starts_with('.') || has_extension(name);
                Some(dir.join(if counts { name.to_owned() } else { format!("{name}.tfrecord") }))
            }
            _ => None,
        }
    }
}

/// Number of inputs that are kept open until their turn.
const KEPT: usize = 128;

/// An input. Whether it is compressed decides about its output before any file is unpacked. So regular files
/// are opened once, up to a number, and the open file is read: another file may get the name meanwhile.
#[non_exhaustive]
pub struct UnpackInput<'p> {
    /// The path.
    pub path: &'p Path,
    opened: Option<Result<Stream>>,
}

impl<'p> UnpackInput<'p> {
    /// Opens the first regular files. Pipes and further files are opened at their turn.
    pub fn open_all(paths: &'p [PathBuf], open: impl Fn(&Path) -> Result<Stream>) -> Vec<UnpackInput<'p>> {
        let opened = |(k, path): (usize, &'p PathBuf)| {
            let opened = (k < KEPT && path.is_file()).then(|| open(path));
            UnpackInput { path, opened }
        };
        paths.iter().enumerate().map(opened).collect()
    }

    /// Returns true for a file that must be unpacked or cannot be opened. A pipe counts as compressed,
    /// because its bytes can be read only once.
    pub fn is_compressed(&self) -> bool {
        match &self.opened {
            Some(stream) => !stream.as_ref().is_ok_and(|stream| stream.compression() == Compression::None),
            None => is_compressed(self.path),
        }
    }

    /// Returns the records, from the file that was opened before or, for other inputs, by `open`.
    ///
    /// # Errors
    /// Errors of `open`.
    pub fn stream(self, open: impl FnOnce(&Path) -> Result<Stream>) -> Result<Stream> {
        self.opened.unwrap_or_else(|| open(self.path))
    }
}

/// Returns true for a file that must be unpacked. A pipe counts as compressed, because its bytes can be read
/// only once.
pub(crate) fn is_compressed(path: &Path) -> bool {
    let plain = || Stream::open(path).is_ok_and(|stream| stream.compression() == Compression::None);
    !(path.is_file() && plain())
}

/// Writes the records of a stream to a plain file, verifies their checksums, and returns their number. The
/// file gets its name only when it is complete, so a damaged input produces no file.
///
/// `progress` is called with the payload length of each record.
///
/// # Errors
/// Damage of the stream, I/O errors.
pub fn unpack(
    stream: &mut Stream,
    target: &Path,
    existing: Existing,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    let mut writer = WriterOptions { existing, ..WriterOptions::default() }.create(target)?;
    while let Some(record) = stream.next()? {
        writer.write(record.payload())?;
        progress(record.payload().len() as u64);
    }
    writer.close()?;
    // The folder may be new. It is no error if the user cannot read the one around it.
    let _ = target.parent().map(sync_name);
    Ok(stream.records_read())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::writer::WriterOptions;

    #[test]
    fn names() {
        let folder = Destination::Folder(Path::new("out"));
        for (input, beside, in_folder) in [
            ("in/a.tfrecord.gz", Some("in/a.tfrecord"), Some("out/a.tfrecord")),
            ("in/a.zlib", Some("in/a"), Some("out/a.tfrecord")),
            ("in/a-00000-of-00002.gz", Some("in/a-00000-of-00002"), Some("out/a-00000-of-00002.tfrecord")),
            ("in/a.tfrecord-0-of-2.gz", Some("in/a.tfrecord-0-of-2"), Some("out/a.tfrecord-0-of-2")),
            ("in/weird", None, Some("out/weird.tfrecord")),
            ("in/a.tfrecord", None, Some("out/a.tfrecord")),
            ("in/.gz", None, Some("out/.gz")),
            ("/", None, None),
        ] {
            let input = Path::new(input);
            assert_eq!(Destination::NextToInput.target(input), beside.map(PathBuf::from));
            assert_eq!(folder.target(input), in_folder.map(PathBuf::from));
            assert_eq!(Destination::File(Path::new("x")).target(input), Some("x".into()));
        }
    }

    #[test]
    fn a_damaged_input_produces_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let packed = dir.path().join("a.gz");
        let plain = dir.path().join("a");
        let mut writer = WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }
            .create(&packed)
            .unwrap();
        for payload in [&b"one"[..], b"two"] {
            writer.write(payload).unwrap();
        }
        writer.close().unwrap();
        assert!(is_compressed(&packed));
        let mut bytes = 0;
        assert_eq!(
            unpack(&mut Stream::open(&packed).unwrap(), &plain, Existing::Keep, |len| bytes += len).unwrap(),
            2
        );
        assert!(!is_compressed(&plain) && bytes == 6);
        let whole = std::fs::read(&packed).unwrap();
        std::fs::write(&packed, &whole[..whole.len() / 2]).unwrap();
        let other = dir.path().join("b");
        unpack(&mut Stream::open(&packed).unwrap(), &other, Existing::Keep, |_| {}).unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
