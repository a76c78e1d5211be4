//! Values as JSON, Python and Rust write them.

use std::fmt;

/// A finite float in decimals that a reader of doubles, rounding once more, takes for the same float: the shortest ones, unless
/// that second rounding goes wrong.
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

/// `[a, b]`.
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

/// Values in lists nested as the shape is; a scalar is bare. A schema was built, so there are as many as the shape has.
pub(super) fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    values: &[T],
    shape: &[usize],
    one: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let Some((&dim, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| one(value, f));
    };
    let of_one = values.len().checked_div(dim).unwrap_or(0).max(1);
    list(f, values.chunks(of_one), |part, f| nested(f, part, inner, one))
}

/// Something that knows how to be written.
pub(super) struct Shown<F>(pub(super) F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Shown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}
