//! Parts of messages: counted things, and file names.

use std::fmt;
use std::path::PathBuf;

/// Maximum number of file names in a message.
const MAX_NAMES: usize = 8;

/// A number of things, e.g. `1 record` or `2 records`.
pub(crate) struct Count(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// The names of files of one folder: `a.bin, b.bin`, and ` ..` if there are more than eight.
pub(crate) struct FileNames<'a>(pub(crate) &'a [PathBuf]);

impl fmt::Display for FileNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, path) in self.0.iter().take(MAX_NAMES).enumerate() {
            let name = path.file_name().unwrap_or(path.as_os_str());
            write!(f, "{}{}", if k == 0 { "" } else { ", " }, name.display())?;
        }
        if self.0.len() > MAX_NAMES { f.write_str(", ..") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_names() {
        assert_eq!([0, 1, 2].map(|n| Count(n, "record").to_string()), ["0 records", "1 record", "2 records"]);
        let paths: Vec<_> = (0..9).map(|k| PathBuf::from(format!("a/{k}"))).collect();
        assert_eq!(FileNames(&paths[..2]).to_string(), "0, 1");
        assert_eq!(FileNames(&paths).to_string(), "0, 1, 2, 3, 4, 5, 6, 7, ..");
    }
}
