//! Natural order: `shard-9` before `shard-10`.

use std::cmp::Ordering;
use std::path::Path;

/// Compares two paths in natural order: runs of ASCII digits compare as numbers, other characters as bytes.
/// Paths that are equal by this rule, e.g. `a1` and `a01`, compare as bytes.
///
/// `part-9` is less than `part-10`, and `a01` less than `a1`.
pub(super) fn natural_cmp(a: &Path, b: &Path) -> Ordering {
    let a = a.as_os_str().as_encoded_bytes();
    let b = b.as_os_str().as_encoded_bytes();
    by_tokens(a, b).then_with(|| a.cmp(b))
}

/// Compares two paths as sequences of tokens, in lexicographic order. A token is a byte or a number. A number
/// compares with a byte as each of its digits would, because no other byte is between `0` and `9`. Therefore
/// the order is total.
pub(super) fn by_tokens(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        let x = digits(a);
        let y = digits(b);
        let order = if !x.is_empty() && !y.is_empty() {
            let number = without_zeros(x);
            let other = without_zeros(y);
            // Without leading zeros the longer number is larger. Numbers are not parsed, so they may have any
            // length.
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
        a = a.split_at(x.len().max(1)).1;
        b = b.split_at(y.len().max(1)).1;
    }
}

fn digits(s: &[u8]) -> &[u8] {
    let end = s.iter().position(|c| !c.is_ascii_digit()).unwrap_or(s.len());
    s.split_at(end).0
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&c| c == b'0').count();
    digits.split_at(zeros).1
}
