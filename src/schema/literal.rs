//! Formatting of values, shared by JSON, Python and Rust.

use std::fmt;

/// Formats a finite float as a decimal that parses to the same float, also when it is parsed as a double and
/// then rounded.
///
/// The result is the shortest decimal, unless double rounding would change the float. It is `None` if the
/// float is not finite.
pub(super) fn decimal(value: f32) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let short = format!("{value:?}");
    match short.parse::<f64>() {
        Ok(double) if (double as f32).to_bits() == value.to_bits() => Some(short),
        _ => Some(format!("{:?}", f64::from(value))),
    }
}

/// Writes a list, `[a, b]`.
pub(super) fn list<T>(
    f: &mut fmt::Formatter<'_>,
    values: impl IntoIterator<Item = T>,
    mut one: impl FnMut(T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (k, value) in values.into_iter().enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        one(value, f)?;
    }
    f.write_str("]")
}

/// Writes values as lists nested like `shape`. A scalar is written without a list.
///
/// The schema is valid, so the number of values matches the shape.
pub(super) fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    values: &[T],
    shape: &[usize],
    one: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let Some((&dim, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| one(value, f));
    };
    let chunk_len = values.len().checked_div(dim).unwrap_or(0).max(1);
    list(f, values.chunks(chunk_len), |chunk, f| nested(f, chunk, inner, one))
}

/// A value whose `Display` implementation is a function.
pub(super) struct FormatFn<F>(pub(super) F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for FormatFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}
