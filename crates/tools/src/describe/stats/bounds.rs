//! The smallest and the largest of values.

/// The smallest and the largest value, if there is one.
pub(crate) type Bounds<T> = Option<(T, T)>;

/// Returns the bounds of the values of both.
#[inline]
pub(crate) fn joined<T: PartialOrd + Copy>(a: Bounds<T>, b: Bounds<T>) -> Bounds<T> {
    match (a, b) {
        (Some((low, high)), Some((other_low, other_high))) => Some((
            if other_low < low { other_low } else { low },
            if other_high > high { other_high } else { high },
        )),
        (bounds, None) | (None, bounds) => bounds,
    }
}

/// Returns the bounds with one more value.
#[inline]
pub(crate) fn widened<T: PartialOrd + Copy>(bounds: Bounds<T>, value: T) -> Bounds<T> {
    joined(bounds, Some((value, value)))
}
