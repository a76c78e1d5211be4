//! The head of a request.

use std::ops::Range;

/// A request that can be answered: GET or HEAD of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The path, percent-decoded.
    pub(crate) path: String,
    /// The parameters of the query, percent-decoded, in order.
    pub(crate) query: Vec<(String, String)>,
    /// The response has no body.
    pub(crate) is_head: bool,
    /// `Range: bytes=..`.
    pub(crate) range: Option<String>,
    /// `If-None-Match`.
    pub(crate) if_none_match: Option<String>,
}

impl Request {
    /// Returns the first parameter of a name.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the requested range of a body of `len` bytes. `None`: the whole body. `Some(None)`: no byte of it.
    pub(crate) fn range(&self, len: u64) -> Option<Option<Range<u64>>> {
        let range = self.range.as_deref()?.strip_prefix("bytes=")?;
        let (from, to) = range.split_once('-')?;
        let range = match (from, to) {
            ("", suffix) => len.saturating_sub(suffix.parse().ok()?)..len,
            (from, "") => from.parse().ok()?..len,
            (from, to) => from.parse().ok()?..to.parse::<u64>().ok()?.saturating_add(1).min(len),
        };
        Some(Some(range).filter(|range| range.start < range.end))
    }
}
