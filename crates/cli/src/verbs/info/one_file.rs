//! A file that is read several times by its path, and may be replaced meanwhile.

use crate::records;
use std::path::Path;
use tfseek::io::Output;

/// Number of times that a file is read which is replaced meanwhile.
const READS: usize = 3;

/// Returns what `read` read of a path, once the path is one file's all the time. A file that grows is the
/// same one. `None` if the file is replaced each time.
pub(super) fn of_one_file<T>(path: &Path, mut read: impl FnMut() -> T) -> Option<T> {
    // A pipe must not be asked for: it may be standard input. An object has a version, which its store
    // compares.
    let state = || {
        records::is_regular(path)
            .then(|| (Output::key(path).ok(), std::fs::metadata(path).map_or(0, |found| found.len())))
    };
    let mut before = state();
    for _ in 0..READS {
        let found = read();
        let after = state();
        let is_same = match (&before, &after) {
            (Some((file, len)), Some((now, now_len))) => file == now && len <= now_len,
            (before, after) => before.is_none() && after.is_none(),
        };
        if is_same {
            return Some(found);
        }
        before = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let replace = |text: &str| {
            std::fs::write(dir.path().join("new"), text).unwrap();
            std::fs::rename(dir.path().join("new"), &path).unwrap();
        };
        replace("1");
        // One replacement, a file that grows, and one that is replaced each time.
        let mut reads = 0;
        let text = || std::fs::read_to_string(&path).unwrap();
        let found = of_one_file(&path, || {
            reads += 1;
            let first = text();
            if reads == 1 {
                replace("23");
            }
            (first, text())
        });
        assert_eq!((found, reads), (Some(("23".into(), "23".into())), 2));
        assert_eq!(of_one_file(&path, || std::fs::write(&path, "234").unwrap()), Some(()));
        assert_eq!(of_one_file(&path, || replace("5")), None);
        assert_eq!(of_one_file(Path::new("-"), || 1), Some(1));
        assert_eq!(of_one_file(&dir.path().join("none"), || 1), Some(1));
    }
}
