//! Numbers as text.

/// Returns an integer with commas between groups of three digits.
pub fn thousands(n: impl Into<i128>) -> String {
    let n = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut text = if n < 0 { "-".to_owned() } else { String::new() };
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number as a person would write it: integers whole, others with four digits or more.
///
/// ```
/// let texts = [1e6, 1234.5678, 0.12345, 0.5, 0.000012].map(tfseek_tools::brief);
/// assert_eq!(texts, ["1,000,000", "1,234.57", "0.1235", "0.5", "1.2e-5"]);
/// ```
pub fn brief(value: f64) -> String {
    let size = value.abs();
    // The shortest text of a number that was rounded to some digits.
    let rounded = |digits: usize| scientific(value, digits).parse().unwrap_or(value);
    if !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && size < 1e15 {
        return thousands(value as i64);
    }
    match size {
        _ if !(1e-3..1e15).contains(&size) => {
            let text = scientific(value, 4);
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ if size >= 1e6 => thousands(value.round() as i64),
        _ if size >= 1e3 => {
            let text = rounded(6).to_string();
            let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
            let whole = thousands(whole.parse::<i64>().unwrap_or(0));
            if part.is_empty() { whole } else { format!("{whole}.{part}") }
        }
        _ => rounded(4).to_string(),
    }
}

/// Returns a number with this many digits. A half is rounded up, as browsers do, and not to the even digit.
fn scientific(value: f64, digits: usize) -> String {
    let exact = format!("{:.60e}", value.abs());
    let rest = exact.split('e').next().and_then(|text| text.get(digits + 1..)).unwrap_or_default();
    let is_half = rest.starts_with('5') && rest.bytes().skip(1).all(|digit| digit == b'0');
    let above = if is_half { f64::from_bits(value.to_bits() + 1) } else { value };
    format!("{above:.*e}", digits - 1)
}

/// Returns a share, as terminal, page and report write it. All and none are whole, and what is close to them
/// is not rounded to them.
///
/// ```
/// let texts = [1.0, 0.0, 8.35, 99.99, 100.0].map(|part| tfseek_tools::percent(part, 100.0));
/// assert_eq!(texts, ["1.0 %", "0 %", "8.4 %", "> 99.9 %", "100 %"]);
/// ```
pub fn percent(part: f64, all: f64) -> String {
    let share = if all > 0.0 { 100.0 * part / all } else { 0.0 };
    match share {
        _ if part > 0.0 && share < 0.1 => "< 0.1 %".to_owned(),
        _ if part < all && share > 99.9 => "> 99.9 %".to_owned(),
        0.0 | 100.0 => format!("{share:.0} %"),
        _ => format!("{:.1} %", (share * 10.0).round() / 10.0),
    }
}

/// Returns a number of things: `1 value`, `2 values`.
pub(crate) fn counted(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [2.0625, 1234.125, -33.0 / 16.0, 1.000_5e-4].map(brief),
            ["2.063", "1,234.13", "-2.063", "1.001e-4"]
        );
        let texts = [0.0, 37.0, 38.5, 13.591, 0.123_45, 1234.56, 1e-5, 2.5e20, -1_234_567.8, 9e15].map(brief);
        let expected =
            ["0", "37", "38.5", "13.59", "0.1235", "1,234.56", "1e-5", "2.5e20", "-1,234,568", "9e15"];
        assert_eq!(texts, expected);
        assert_eq!([f64::NAN, f64::NEG_INFINITY, 999.96, -0.25].map(brief), ["NaN", "-inf", "1000", "-0.25"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([i64::MIN, -1].map(thousands), ["-9,223,372,036,854,775,808", "-1"]);
    }
}
