//! Digests of lists that are too long for a saved state.

use xxhash_rust::xxh3::Xxh3;

/// XXH3-128 over the words, each as eight bytes, little-endian.
pub(super) fn digest(words: impl IntoIterator<Item = u64>) -> u128 {
    let mut hash = Xxh3::new();
    for word in words {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

/// The text of a digest in a state: 32 hex digits.
pub(super) fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}
