//! Numbers of records, as `head` and `tail` of coreutils take them.

/// The records that `head` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadCount {
    /// The first records.
    First(u64),
    /// All records but the last ones.
    AllBut(u64),
}

/// The records that `tail` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailCount {
    /// The last records.
    Last(u64),
    /// All records after these first ones.
    After(u64),
}

pub(super) fn head(text: &str) -> Result<HeadCount, String> {
    match text.strip_prefix('-') {
        Some(last) => number(last, text).map(HeadCount::AllBut),
        None => number(text.strip_prefix('+').unwrap_or(text), text).map(HeadCount::First),
    }
}

pub(super) fn tail(text: &str) -> Result<TailCount, String> {
    match text.strip_prefix('+') {
        // `+1` is the first record, and `+0` too.
        Some(from) => number(from, text).map(|from| TailCount::After(from.saturating_sub(1))),
        None => number(text.strip_prefix('-').unwrap_or(text), text).map(TailCount::Last),
    }
}

fn number(digits: &str, text: &str) -> Result<u64, String> {
    let plain = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    digits.parse().ok().filter(|_| plain).ok_or_else(|| format!("expected a number of records, found {text}"))
}

/// Parses a number of bytes: `1000000`, `256MB`, `2GiB`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1_000),
        "m" | "mb" => Some(1_000_000),
        "g" | "gb" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = digits.parse().ok().zip(unit).and_then(|(n, unit): (u64, u64)| n.checked_mul(unit));
    bytes.ok_or_else(|| format!("expected a number of bytes, as 256MB, found {text}"))
}
