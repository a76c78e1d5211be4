//! Files that versions of tfseek have written, in `tests/data/formats/`, which every later version reads.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folder of this version's files. If a format changes, it is the next number, and the folders of earlier
/// versions stay.
const WRITTEN: &str = "1";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/formats")
}

/// Writes a file of this version if `TFSEEK_WRITE_FORMATS` is set.
pub fn write(name: &str, bytes: &[u8]) {
    if env::var_os("TFSEEK_WRITE_FORMATS").is_some() {
        let path = root().join(WRITTEN).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Compares bytes that were just written with this version's file of that name.
pub fn compare(name: &str, bytes: &[u8]) {
    write(name, bytes);
    let path = root().join(WRITTEN).join(name);
    let kept = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(bytes == kept, "{name} has other bytes than {}", path.display());
}

/// Returns the folder of this version.
pub fn written() -> PathBuf {
    root().join(WRITTEN)
}

/// Returns the folders of all versions that have a file of this name.
pub fn versions(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root()).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join(name).exists());
    folders.sort();
    assert!(!folders.is_empty(), "no version has {name}");
    folders
}
