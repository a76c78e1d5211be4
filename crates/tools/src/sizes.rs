//! Sizes in bytes as text.

/// Factors of the units. `k` is 1000 and `Ki` 1024.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Parses a size: `1000`, `200MB`, `1.5 GiB`. A part of a byte is dropped.
///
/// ```
/// assert_eq!(tfseek_tools::sizes::parse("1.5kB"), Ok(1500));
/// ```
///
/// # Errors
/// The message of a text that is not a size.
pub fn parse(text: &str) -> Result<u64, String> {
    let refused = || format!("expected a size in bytes such as 1000, 200MB or 1.5GiB, found {text}");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split).ok_or_else(refused)?;
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(refused)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || part.is_empty() || part.len() > 9 {
        return Err(refused());
    }
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(*factor)).ok_or_else(refused)?;
    let part = part.parse::<u64>().map_err(|_| refused())? as u128 * u128::from(*factor)
        / 10u128.pow(part.len().try_into().unwrap_or(0));
    u64::try_from(part).ok().and_then(|part| whole.checked_add(part)).ok_or_else(refused)
}

/// Returns a size with a decimal unit and three digits: `73 B`, `1.2 kB`, `17.1 kB`, `901 kB`.
pub fn text(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        // 999.5 kB would round to 1000 kB.
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1e3, larger);
    }
    let digits = if unit == "B" || value >= 99.5 { 0 } else { 2 - usize::from(value >= 9.95) };
    // A half is rounded up, as on the page.
    let scale = 10_f64.powi(digits as i32);
    let number = format!("{:.digits$}", (value * scale).round() / scale);
    let number = if digits > 0 { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{parse, text};

    #[test]
    fn texts_have_three_digits() {
        let sizes = [0, 999, 1000, 1125, 1234, 9_949, 9_950, 17_123, 99_949, 999_499, 999_500, u64::MAX];
        let texts = [
            "0 B", "999 B", "1 kB", "1.13 kB", "1.23 kB", "9.95 kB", "10 kB", "17.1 kB", "100 kB", "999 kB",
            "1 MB", "18.4 EB",
        ];
        assert_eq!(sizes.map(text), texts);
    }

    #[test]
    fn sizes() {
        for (text, size) in [
            ("0", 0),
            ("7B", 7),
            ("200MB", 200_000_000),
            ("256 MiB", 256 << 20),
            ("1.5GiB", 3 << 29),
            ("0.0001kB", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "MB",
            "1.",
            ".5",
            "1.2.3MB",
            "-1",
            "1mb",
            "18446744073709551616",
            "20000000TB",
            "1.0000000001GB",
            "1 M",
        ] {
            assert!(parse(text).unwrap_err().contains(&format!("found {text}")), "{text}");
        }
    }
}
