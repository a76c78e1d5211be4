//! The text of I/O errors.

use std::fmt;
use std::io;

/// The message of an I/O error: the operating system's for an error number, the inner error's if there is
/// one, and tfseek's own for a bare [`io::ErrorKind`].
pub(super) struct IoMessage<'a>(pub(super) &'a io::Error);

impl fmt::Display for IoMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IoMessage(e) = self;
        if e.raw_os_error().is_none()
            && e.get_ref().is_none()
            && let Some(message) = kind_message(e.kind())
        {
            return f.write_str(message);
        }
        e.fmt(f)
    }
}

/// Returns a message that is more specific about files than the standard library's, if there is one.
fn kind_message(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "no such file or directory",
        io::ErrorKind::AlreadyExists => "already exists",
        io::ErrorKind::IsADirectory => "expected a file, found a folder",
        io::ErrorKind::NotADirectory => "not a folder",
        io::ErrorKind::Unsupported => "expected a regular file",
        io::ErrorKind::UnexpectedEof => "truncated: the file ends too early",
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
    fn messages_of_io_errors() {
        let message = |e: io::Error| Error::from(e).in_file(Path::new("a/b")).to_string();
        assert_eq!(message(io::ErrorKind::NotFound.into()), "a/b: no such file or directory");
        assert_eq!(message(io::ErrorKind::IsADirectory.into()), "a/b: expected a file, found a folder");
        assert_eq!(message(io::ErrorKind::UnexpectedEof.into()), "a/b: truncated: the file ends too early");
        assert_eq!(message(io::ErrorKind::OutOfMemory.into()), "a/b: not enough memory");
        for kind in [io::ErrorKind::Unsupported, io::ErrorKind::AlreadyExists, io::ErrorKind::NotADirectory] {
            assert_ne!(message(kind.into()), format!("a/b: {kind}"));
        }
        // The operating system's message, and the inner error's.
        let missing = std::fs::File::open("/no/such/folder/at all").unwrap_err();
        assert_eq!(
            message(io::Error::from_raw_os_error(missing.raw_os_error().unwrap())),
            format!("a/b: {missing}")
        );
        assert_eq!(message(io::Error::new(io::ErrorKind::NotFound, "no folder")), "a/b: no folder");
        assert_eq!(message(io::ErrorKind::TimedOut.into()), "a/b: timed out");
    }
}
