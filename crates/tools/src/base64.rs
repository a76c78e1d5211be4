//! Base64 with padding: byte strings in JSON.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes in base64, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word.iter_mut().skip(1).zip(chunk).for_each(|(to, from)| *to = *from);
        let word = u32::from_be_bytes(word);
        for k in 0..4 {
            let digit = DIGITS.get((word >> (18 - 6 * k) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if k <= chunk.len() { digit as char } else { '=' });
        }
    }
    text
}

/// The numbers of the digits, by their bytes; 64 for other bytes.
const NUMBERS: [u8; 256] = {
    let mut numbers = [64; 256];
    let mut k = 0;
    while k < 64 {
        // Not an index that is out of bounds: a digit is a byte, and `k` is below 64.
        #[allow(clippy::indexing_slicing, reason = "it is evaluated when the crate is compiled")]
        {
            numbers[DIGITS[k] as usize] = k as u8;
        }
        k += 1;
    }
    numbers
};

/// Returns the bytes of base64 with padding, if it is well-formed.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for (k, chunk) in text.chunks(4).enumerate() {
        let padding = chunk.iter().rev().take_while(|c| **c == b'=').count();
        if padding > 2 || (padding > 0 && (k + 1) * 4 != text.len()) {
            return None;
        }
        let mut word = 0u32;
        for &c in chunk.iter().take(4 - padding) {
            let number = NUMBERS.get(usize::from(c)).copied().filter(|number| *number < 64)?;
            word = word << 6 | u32::from(number);
        }
        let word = (word << (6 * padding)).to_be_bytes();
        bytes.extend(word.iter().skip(1).take(3 - padding));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).unwrap(), bytes.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_base64(&base64(&all)).unwrap(), all);
        for text in ["Z", "Zg=", "Z===", "Zg==Zg==", "Zm9*"] {
            assert_eq!(from_base64(text), None, "{text}");
        }
    }
}
