//! Digests of lists that are too long to store in a saved state.

use xxhash_rust::xxh3::Xxh3;

/// Computes the XXH3-128 of the words, each as eight little-endian bytes.
pub(super) fn digest(words: impl IntoIterator<Item = u64>) -> u128 {
    let mut hash = Xxh3::new();
    for word in words {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

/// Formats a digest as 32 hex digits, as in a state.
pub(super) fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}
