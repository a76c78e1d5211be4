//! The weights of one dimension of a resize: as floats, and as whole numbers.

use crate::crop::Span;
use std::ops::Range;
use tfseek::schema::Resize;

/// The most bits behind the point of weights down and across. Down, of [`MOST_WEIGHTS`] none has more in 16
/// bits. Across, sums have 32 bits.
pub(super) const MOST_BITS: [u32; 2] = [19, 17];
/// Bits behind the point of the mean of rows, of which 128 is subtracted.
pub(super) const MEAN_BITS: u32 = 7;
/// The most weights of a result.
const MOST_WEIGHTS: usize = 32;
/// The most that a pixel is off before it is rounded: 0.02, less the rounding of `f32`.
const MOST_ERROR: f32 = 0.01996;

/// The weights of one dimension.
#[derive(Default)]
pub(super) struct Axis {
    /// The source, the result and the filter that they belong to.
    of: Option<(Span, usize, Resize)>,
    /// For each result: the first value of the source, and the weights of this one and those behind it.
    pub(super) starts: Vec<(usize, Range<usize>)>,
    pub(super) weights: Vec<f32>,
    /// The weights of a result before their sum is known.
    exact: Vec<f64>,
    /// The weights as whole numbers, where they are few.
    pub(super) fixed: FixedWeights,
}

impl Axis {
    /// Computes the weights, unless they are there. Whole numbers have at most `most_bits` bits.
    pub(super) fn prepare(&mut self, source: Span, result: usize, filter: Resize, most_bits: u32) {
        let of = Some((source, result, filter));
        if self.of == of {
            return;
        }
        self.of = of;
        self.starts.clear();
        self.weights.clear();
        let Span { len, from, to } = source;
        let scale = (to - from) / result as f64;
        // A filter reaches over the values that a result covers, and at least over its neighbours.
        let reach = match filter {
            Resize::Bilinear => scale.max(1.0),
            Resize::Area => scale / 2.0,
        };
        for i in 0..result {
            let center = from + (i as f64 + 0.5) * scale;
            let first = (center - reach).max(0.0) as usize;
            let end = ((center + reach) as usize + 1).min(len);
            let weight = |k: usize| {
                // The part of the pixel in the span.
                let start = (k as f64).max(from);
                let end = (k as f64 + 1.0).min(to);
                match filter {
                    Resize::Bilinear => {
                        let near = 1.0 - (((start + end) / 2.0 - center) / reach).abs();
                        near.max(0.0) * (end - start)
                    }
                    Resize::Area => (end.min(center + reach) - start.max(center - reach)).max(0.0),
                }
            };
            self.exact.clear();
            self.exact.extend((first..end).map(weight));
            let sum: f64 = self.exact.iter().sum();
            let begin = self.weights.len();
            self.weights.extend(self.exact.iter().map(|weight| (weight / sum) as f32));
            // Weights of 0 at the ends cost time only.
            while self.weights.len() > begin + 1 && self.weights.last() == Some(&0.0) {
                self.weights.pop();
            }
            let zeros = self.weights[begin..].iter().take_while(|&&weight| weight == 0.0).count();
            self.starts.push((first + zeros, begin + zeros..self.weights.len()));
        }
        self.fixed.prepare(&self.starts, &self.weights, most_bits);
    }
}

/// The weights of one dimension as whole numbers.
#[derive(Default)]
pub(super) struct FixedWeights {
    /// Two weights beside each other, below 0, so that -1 in 15 bits has 16 with its sign.
    pairs: Vec<[i16; 2]>,
    /// The pairs of each result, of which the last may be 0. There are none if there are too many.
    pub(super) per_result: usize,
    /// Bits behind the point.
    pub(super) bits: u32,
    /// The most that a mean is off by these weights.
    error: f32,
}

impl FixedWeights {
    /// Makes whole numbers of weights. Those of a result have the sum 1.
    pub(super) fn prepare(&mut self, results: &[(usize, Range<usize>)], weights: &[f32], most_bits: u32) {
        let longest = results.iter().map(|(_, weights)| weights.len()).max().unwrap_or(0);
        self.pairs.clear();
        self.per_result = 0;
        if longest > MOST_WEIGHTS {
            return;
        }
        self.per_result = longest.div_ceil(2);
        let largest = weights.iter().copied().fold(0.0, f32::max);
        self.bits = (15..most_bits).find(|&bits| largest * unit(bits + 1) > 32_767.0).unwrap_or(most_bits);
        // Errors of weights have the sum 0, so samples count by their distance from 127.5. Those of `f32` add
        // less than a thousandth, which `MOST_ERROR` allows for.
        self.error = 127.5 * 0.5 * longest as f32 / unit(self.bits);
        for (_, range) in results {
            let mut whole = [0_i16; MOST_WEIGHTS];
            negated(&weights[range.clone()], self.bits, &mut whole);
            let (pairs, _) = whole.as_chunks();
            self.pairs.extend_from_slice(&pairs[..self.per_result]);
        }
    }

    /// Returns the pairs of a result.
    pub(super) fn of_result(&self, i: usize) -> &[[i16; 2]] {
        &self.pairs[i * self.per_result..][..self.per_result]
    }
}

fn unit(bits: u32) -> f32 {
    (1_u32 << bits) as f32
}

/// Rounds weights down, and those up that lose most, so that the sum is 1. Each is off by less than 1, and all
/// together by half of their number.
fn negated(weights: &[f32], bits: u32, whole: &mut [i16; MOST_WEIGHTS]) {
    let mut lost = [0.0; MOST_WEIGHTS];
    let mut missing = 1 << bits;
    for ((&weight, whole), lost) in weights.iter().zip(&mut *whole).zip(&mut lost) {
        let exact = weight * unit(bits);
        let floor = exact as i32;
        *whole = -floor as i16;
        *lost = exact - floor as f32;
        missing -= floor;
    }
    for _ in 0..missing {
        let most = (0..weights.len()).max_by(|&a, &b| lost[a].total_cmp(&lost[b]));
        if let Some(k) = most {
            whole[k] -= 1;
            lost[k] = 0.0;
        }
    }
}

/// Returns true if pixels are as close to exact weights as promised.
pub(super) fn are_exact(down: &Axis, across: &Axis) -> bool {
    let down = &down.fixed;
    let across = &across.fixed;
    let rounding = 0.5 / unit(MEAN_BITS);
    down.per_result > 0 && across.per_result > 0 && down.error + across.error + rounding < MOST_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    /// Weights have the sum 1, and each is off by less than its last bit.
    #[test]
    fn weights_are_rounded_to_the_sum_1() {
        let mut rng = Rng::new(3);
        for _ in 0..if cfg!(miri) { 10 } else { 2_000 } {
            let n = 1 + rng.below(MOST_WEIGHTS);
            let parts: Vec<f64> = (0..n).map(|_| rng.below(1_000) as f64 + 0.001).collect();
            let sum: f64 = parts.iter().sum();
            let weights: Vec<f32> = parts.iter().map(|part| (part / sum) as f32).collect();
            let mut fixed = FixedWeights::default();
            fixed.prepare(&[(0, 0..n)], &weights, MOST_BITS[0]);
            let whole = &fixed.of_result(0).as_flattened()[..n];
            assert_eq!(whole.iter().map(|&w| -i64::from(w)).sum::<i64>(), 1 << fixed.bits);
            let errors = whole.iter().zip(&weights).map(|(&w, &weight)| {
                (-f64::from(w) - f64::from(weight) * 2_f64.powi(fixed.bits as i32)).abs()
            });
            let errors: Vec<f64> = errors.collect();
            assert!(errors.iter().all(|&error| error < 1.01), "{errors:?}");
            assert!(errors.iter().sum::<f64>() < n as f64 / 2.0 + 0.1, "{errors:?}");
        }
    }
}
