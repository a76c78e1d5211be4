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

pub(crate) fn head_count(text: &str) -> Result<HeadCount, String> {
    match text.strip_prefix('-') {
        Some(last) => number(last, text).map(HeadCount::AllBut),
        None => number(text.strip_prefix('+').unwrap_or(text), text).map(HeadCount::First),
    }
}

pub(crate) fn tail_count(text: &str) -> Result<TailCount, String> {
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
