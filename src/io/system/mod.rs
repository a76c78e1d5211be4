//! All that differs between operating systems.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use other as calls;
#[cfg(unix)]
use unix as calls;

pub(super) use calls::{
    OpenFolder, change_time, create_nameless, device_and_number, is_descriptor, keep_mode, link_nameless,
    map_will_need, may_keep, open_at_once, populate_map, read_at, rename_to_new, who_else_writes, will_need,
};
pub(crate) use calls::{create_own_folder, file_type_name, path_from_bytes, sync_folder};
use std::path::PathBuf;

/// Returns `tfseek/` in the user's cache folder, by the convention of the operating system.
pub(crate) fn user_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        // The XDG base directory specification requires ignoring a relative XDG_CACHE_HOME.
        folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))
    };
    Some(cache?.join("tfseek"))
}

/// Returns true for a byte that separates folders, or a drive, beside `/`. Only Windows has some.
pub(crate) fn is_foreign_separator(byte: u8) -> bool {
    cfg!(windows) && matches!(byte, b'\\' | b':')
}
