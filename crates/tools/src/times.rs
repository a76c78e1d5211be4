//! Numbers that are times.

/// Words in the names of times, and last words of such names.
const PARTS: [&str; 3] = ["time", "date", "stamp"];
const LAST: [&str; 4] = ["ts", "epoch", "created", "updated"];
/// Seconds from 1970 to 1980 and to 2103: a number outside of them is a duration, or something else.
const RANGE: (f64, f64) = (3.2e8, 4.2e9);

/// Returns the time that a number of seconds since 1970, or of thousandths, millionths or billionths of them,
/// is under this name: `2019-10-18 21:27:47 UTC`.
///
/// ```
/// assert_eq!(tfseek_tools::times::time_of("created_at", 1_571_434_067_250.0).unwrap(), "2019-10-18 21:27:47.25 UTC");
/// assert!(tfseek_tools::times::time_of("label", 1_571_434_067.0).is_none());
/// ```
pub fn time_of(name: &str, value: f64) -> Option<String> {
    let name = name.to_lowercase();
    let last = name.rsplit_once(['_', '/']).map_or(&*name, |(_, last)| last);
    let is_time =
        PARTS.iter().any(|part| name.contains(part)) || LAST.contains(&last) || name.ends_with("_at");
    let seconds = [1.0, 1e3, 1e6, 1e9].map(|unit| value / unit);
    let seconds = seconds.into_iter().find(|seconds| (RANGE.0..RANGE.1).contains(seconds))?;
    is_time.then(|| utc(seconds))
}

/// Returns a time in UTC, with thousandths of a second if there are any.
fn utc(seconds: f64) -> String {
    let thousandths = (seconds * 1e3).round() as u64;
    let seconds = thousandths / 1000;
    let part = thousandths % 1000;
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    let (year, month, day) = date(seconds / 86_400);
    let part = if part == 0 { String::new() } else { format!(".{part:03}").trim_end_matches('0').to_owned() };
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{part} UTC")
}

/// Returns the date of a day since 1970, by the algorithm of H. Hinnant ("chrono-Compatible Low-Level Date
/// Algorithms").
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_names_and_ranges() {
        let cases = [
            ("wall_time", 1_571_434_067.5, "2019-10-18 21:27:47.5 UTC"),
            ("Date", 951_782_400.0, "2000-02-29 00:00:00 UTC"),
            ("event/ts", 4_107_542_399_999.0, "2100-02-28 23:59:59.999 UTC"),
            ("updated_at", 1_709_251_199_000_000_000.0, "2024-02-29 23:59:59 UTC"),
        ];
        for (name, value, time) in cases {
            assert_eq!(time_of(name, value).as_deref(), Some(time), "{name}");
        }
        for (name, value) in
            [("points", 1.5e9), ("time", 17.0), ("time", -1.5e9), ("time", f64::NAN), ("format", 1.5e9)]
        {
            assert_eq!(time_of(name, value), None, "{name} {value}");
        }
    }

    /// Each day follows the one before, for 150 years.
    #[test]
    fn days_follow_each_other() {
        let mut last = (1970, 1, 1);
        for day in 1..55_000 {
            let (y, m, d) = date(day);
            let leap = last.0 % 4 == 0 && (last.0 % 100 != 0 || last.0 % 400 == 0);
            let days =
                [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][last.1 as usize - 1];
            let next = match last {
                (y, 12, 31) => (y + 1, 1, 1),
                (y, m, d) if d == days => (y, m + 1, 1),
                (y, m, d) => (y, m, d + 1),
            };
            assert_eq!((y, m, d), next);
            last = next;
        }
    }
}
