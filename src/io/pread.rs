//! Reads at a position, without a cursor: safe to share between threads.

use std::fs::File;
use std::io;

/// Bytes that can be read at a position.
pub trait ReadAt {
    /// Bytes there are now.
    ///
    /// # Errors
    /// Those of the system.
    fn size(&self) -> io::Result<u64>;

    /// Reads some bytes at `offset`; 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` where the bytes end before.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    let more = || io::Error::other("more bytes were read than there is room for");
                    buf = buf.get_mut(n..).ok_or_else(more)?;
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // Moves the cursor as well, which nothing here looks at.
        std::os::windows::fs::FileExt::seek_read(self, buf, offset)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|o| self.get(o..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_and_a_slice_read_alike() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for source in [&file as &dyn ReadAt, &bytes.as_slice() as &dyn ReadAt] {
            assert_eq!(source.size().unwrap(), 256);
            let mut buf = [0; 16];
            source.read_exact_at(&mut buf, 240).unwrap();
            assert_eq!(buf, bytes[240..]);
            assert_eq!(source.read_exact_at(&mut buf, 241).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert_eq!(source.read_at(&mut buf, 256).unwrap(), 0);
        }
    }

    impl ReadAt for &[u8] {
        fn size(&self) -> io::Result<u64> {
            (**self).size()
        }
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            (**self).read_at(buf, offset)
        }
    }
}
