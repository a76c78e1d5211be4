//! Natural order: `shard-9` before `shard-10`.

use std::cmp::Ordering;
use std::path::Path;

/// Natural order of two paths: runs of ASCII digits compare as numbers, all else as bytes; of two that are equal so,
/// as `a1` and `a01`, the bytes decide.
///
/// `part-9` is below `part-10`, and `a01` below `a1`.
pub(super) fn natural_cmp(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_encoded_bytes(), b.as_os_str().as_encoded_bytes());
    by_tokens(a, b).then_with(|| a.cmp(b))
}

/// A path is a row of tokens, each a byte or a number; rows compare as words do. A number stands against a byte as
/// each of its digits does, since no other byte lies between `0` and `9`: that makes the order total.
pub(super) fn by_tokens(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        let (x, y) = (digits(a), digits(b));
        let order = if !x.is_empty() && !y.is_empty() {
            let (number, other) = (without_zeros(x), without_zeros(y));
            // Without leading zeros the longer number is the larger. It may be of any length: nothing is parsed.
            number.len().cmp(&other.len()).then_with(|| number.cmp(other))
        } else {
            match (a.first(), b.first()) {
                (None, None) => return Ordering::Equal,
                (x, y) => x.cmp(&y),
            }
        };
        if order.is_ne() {
            return order;
        }
        a = a.get(x.len().max(1)..).unwrap_or_default();
        b = b.get(y.len().max(1)..).unwrap_or_default();
    }
}

fn digits(s: &[u8]) -> &[u8] {
    let end = s.iter().position(|c| !c.is_ascii_digit()).unwrap_or(s.len());
    s.get(..end).unwrap_or_default()
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&c| c == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}
