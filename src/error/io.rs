//! The text of I/O errors.

use std::fmt;
use std::io;

/// An I/O error in words: the system's where it has a number, its maker's where there are any, and ours for a bare kind.
pub(super) struct Words<'a>(pub(super) &'a io::Error);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Words(e) = self;
        match e.raw_os_error().is_none() && e.get_ref().is_none() {
            true => match of_kind(e.kind()) {
                Some(words) => f.write_str(words),
                None => e.fmt(f),
            },
            false => e.fmt(f),
        }
    }
}

/// In place of the standard library's words for a kind, where those say little of files.
fn of_kind(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "no such file or directory",
        io::ErrorKind::AlreadyExists => "the file exists already",
        io::ErrorKind::IsADirectory => "is a directory, expected a file",
        io::ErrorKind::NotADirectory => "is not a directory",
        io::ErrorKind::Unsupported => "not a regular file, which is all that can be read here",
        io::ErrorKind::UnexpectedEof => "the file ends too early",
        io::ErrorKind::OutOfMemory => "not enough memory",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use std::io;
    use std::path::Path;

    #[test]
    fn io_errors_say_what_is_wrong_with_the_file() {
        let said = |e: io::Error| Error::from(e).in_file(Path::new("a/b")).to_string();
        assert_eq!(said(io::ErrorKind::NotFound.into()), "a/b: no such file or directory");
        assert_eq!(said(io::ErrorKind::IsADirectory.into()), "a/b: is a directory, expected a file");
        assert_eq!(said(io::ErrorKind::UnexpectedEof.into()), "a/b: the file ends too early");
        assert_eq!(said(io::ErrorKind::OutOfMemory.into()), "a/b: not enough memory");
        for kind in [io::ErrorKind::Unsupported, io::ErrorKind::AlreadyExists, io::ErrorKind::NotADirectory] {
            assert_ne!(said(kind.into()), format!("a/b: {kind}"));
        }
        // The system's own words, and those of whoever made the error.
        let missing = std::fs::File::open("/no/such/folder/at all").unwrap_err();
        assert_eq!(
            said(io::Error::from_raw_os_error(missing.raw_os_error().unwrap())),
            format!("a/b: {missing}")
        );
        assert_eq!(said(io::Error::new(io::ErrorKind::NotFound, "no folder")), "a/b: no folder");
        assert_eq!(said(io::ErrorKind::TimedOut.into()), "a/b: timed out");
    }
}
