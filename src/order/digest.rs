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

/// Returns the fingerprint of several datasets: the digest of the high half and the low half of each
/// fingerprint, and its number of records.
pub(crate) fn joined_fingerprint(parts: &[(String, u64)]) -> String {
    let words = parts.iter().flat_map(|(fingerprint, len)| {
        // A fingerprint is 32 hex digits.
        let bits = u128::from_str_radix(fingerprint, 16).unwrap_or_default();
        [(bits >> 64) as u64, bits as u64, *len]
    });
    hex(digest(words))
}

/// Formats a digest as 32 hex digits, as in a state.
pub(super) fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}
