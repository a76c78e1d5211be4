//! Resizing: each pixel is a weighted mean of the source's pixels, first of rows, then within them.
//!
//! Bytes are within 0.52 of exact weights, samples of 16 bits within 0.6. Sums are of whole numbers, or are
//! added in one order, without fused operations, so that all machines agree.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod axis;
mod fixed;
mod float;

use crate::crop::Span;
use crate::error::PictureFault;
use crate::memory;
use crate::sample::Sample;
use axis::Axis;
use fixed::ResizeBytes;
use float::ResizeRows;
use tfseek::schema::Resize;
use tfseek_wire::VectorWork;

/// Scratch memory of a resize, and the weights of the last one.
#[derive(Default)]
pub(crate) struct Resizer {
    down: Axis,
    across: Axis,
    /// A row of sums in the width of the source.
    sums: Vec<f32>,
    /// The same for bytes: two rows of means.
    means: Vec<i16>,
}

impl Resizer {
    /// Resizes the spans `from` of a picture (height and width) to `to`. Both have pixels of `channels` values.
    pub(crate) fn resize<T: Sample>(
        &mut self,
        source: &[T],
        from: [Span; 2],
        out: &mut [T],
        to: [usize; 2],
        channels: usize,
        filter: Resize,
    ) -> Result<(), PictureFault> {
        let Resizer { down, across, sums, means } = self;
        down.prepare(from[0], to[0], filter, axis::MOST_BITS[0]);
        across.prepare(from[1], to[1], filter, axis::MOST_BITS[1]);
        let row = from[1].len * channels;
        let width = to[1];
        if let Some((source, out)) = T::bytes(source, out)
            && axis::are_exact(down, across)
        {
            let stride = fixed::stride(row, channels, across);
            memory::resize(means, 2 * stride)?;
            match channels {
                1 => resize_bytes(ResizeBytes::<1> { down, across, means, source, row, stride, out, width }),
                3 => resize_bytes(ResizeBytes::<3> { down, across, means, source, row, stride, out, width }),
                _ => resize_bytes(ResizeBytes::<4> { down, across, means, source, row, stride, out, width }),
            }
            return Ok(());
        }
        // Four values are read at each pixel.
        memory::resize(sums, row + 4)?;
        match channels {
            1 => ResizeRows::<T, 1> { down, across, sums, source, row, out, width }.run_vectors(),
            3 => ResizeRows::<T, 3> { down, across, sums, source, row, out, width }.run_vectors(),
            _ => ResizeRows::<T, 4> { down, across, sums, source, row, out, width }.run_vectors(),
        }
        Ok(())
    }
}

/// Resizes bytes by the vectors that the processor has.
fn resize_bytes<const C: usize>(work: ResizeBytes<'_, C>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only that the processor has AVX2, which was detected.
        return unsafe { avx2::resize(work) };
    }
    fixed::resize(work);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    fn whole([height, width]: [usize; 2]) -> [Span; 2] {
        [height, width].map(|len| Span { len, from: 0.0, to: len as f64 })
    }

    /// One dimension by its definition, in `f64`: sums of weights over all values.
    fn exact(values: &[f64], Span { from, to, .. }: Span, result: usize, filter: Resize) -> Vec<f64> {
        let scale = (to - from) / result as f64;
        let mean = |i: usize| {
            let begin = from + i as f64 * scale;
            let weight = |k: usize| {
                // What the span has of a value.
                let [first, last] = [k as f64, k as f64 + 1.0].map(|end| end.clamp(from, to));
                match filter {
                    Resize::Bilinear => {
                        let away = first.midpoint(last) - (begin + scale / 2.0);
                        (last - first) * (1.0 - away.abs() / scale.max(1.0)).max(0.0)
                    }
                    Resize::Area => (last.min(begin + scale) - first.max(begin)).max(0.0),
                }
            };
            let sum: f64 = values.iter().enumerate().map(|(k, value)| weight(k) * value).sum();
            sum / (0..values.len()).map(weight).sum::<f64>()
        };
        (0..result).map(mean).collect()
    }

    /// Both dimensions, first the columns.
    fn exact_picture(values: &[f64], spans: [Span; 2], to: [usize; 2], c: usize, filter: Resize) -> Vec<f64> {
        let from = spans.map(|span| span.len);
        let mut out = vec![0.0; to[0] * to[1] * c];
        let mut rows = vec![0.0; to[0] * from[1] * c];
        for x in 0..from[1] * c {
            let column: Vec<f64> = (0..from[0]).map(|y| values[y * from[1] * c + x]).collect();
            for (y, value) in exact(&column, spans[0], to[0], filter).into_iter().enumerate() {
                rows[y * from[1] * c + x] = value;
            }
        }
        for y in 0..to[0] {
            for k in 0..c {
                let row: Vec<f64> = (0..from[1]).map(|x| rows[(y * from[1] + x) * c + k]).collect();
                for (x, value) in exact(&row, spans[1], to[1], filter).into_iter().enumerate() {
                    out[(y * to[1] + x) * c + k] = value;
                }
            }
        }
        out
    }

    fn compare<T: Sample + Into<f64>>(
        next: &mut impl FnMut() -> T,
        from: [Span; 2],
        to: [usize; 2],
        c: usize,
    ) {
        let source: Vec<T> = (0..from[0].len * from[1].len * c).map(|_| next()).collect();
        let values: Vec<f64> = source.iter().map(|&value| value.into()).collect();
        for filter in [Resize::Bilinear, Resize::Area] {
            let mut found = vec![T::default(); to[0] * to[1] * c];
            Resizer::default().resize(&source, from, &mut found, to, c, filter).unwrap();
            let want = exact_picture(&values, from, to, c, filter);
            for (&found, want) in found.iter().zip(want) {
                let off = (found.into() - want).abs();
                assert!(off < 0.52, "{from:?} to {to:?}, {c} channels, {filter:?}: {off} from {want}");
            }
        }
    }

    #[test]
    fn pixels_are_those_of_exact_weights() {
        let mut state = 7_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u16
        };
        let sizes = [
            ([1, 1], [5, 4]),
            ([3, 5], [7, 11]),
            ([40, 30], [7, 9]),
            ([40, 30], [40, 9]),
            ([9, 50], [20, 3]),
            ([17, 13], [16, 12]),
            ([64, 64], [1, 1]),
            ([5, 2000], [2, 3]),
            // As many weights as whole numbers have, and more.
            ([9, 150], [8, 15]),
            ([9, 190], [8, 15]),
            ([150, 9], [11, 8]),
            ([220, 40], [11, 30]),
        ];
        for (from, to) in sizes.into_iter().take(if cfg!(miri) { 1 } else { sizes.len() }) {
            for c in [1, 3, 4] {
                let spans = whole(from);
                // As of pictures that are reduced to an eighth.
                let parts = spans.map(|span| Span { from: 0.125, to: span.to - 0.625, ..span });
                for spans in [spans, [spans[0], parts[1]], parts] {
                    compare(&mut next, spans, to, c);
                    compare(&mut || next() as u8, spans, to, c);
                    compare(&mut || if next() % 2 == 0 { 0_u8 } else { u8::MAX }, spans, to, c);
                    // Extremes stay in range.
                    compare(&mut || u8::MAX, spans, to, c);
                    compare(&mut || u16::MAX, spans, to, c);
                }
            }
        }
    }

    /// Long sums stay within 1 of exact weights, too.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn rows_of_65500_pixels_are_resized() {
        compare(&mut || u16::MAX - 3, whole([1, 65_500]), [1, 2], 1);
        compare(&mut || u8::MAX, whole([65_500, 1]), [3, 1], 3);
    }

    /// Resizes by vectors and by portable code. Returns the number of pairs across, or `None` if weights are
    /// too many.
    fn made_twice<const C: usize>(
        source: &[u8],
        spans: [Span; 2],
        to: [usize; 2],
        filter: Resize,
        rng: &mut Rng,
    ) -> Option<usize> {
        let mut down = Axis::default();
        let mut across = Axis::default();
        down.prepare(spans[0], to[0], filter, axis::MOST_BITS[0]);
        across.prepare(spans[1], to[1], filter, axis::MOST_BITS[1]);
        let per_result = across.fixed.per_result;
        if per_result == 0 || down.fixed.per_result == 0 {
            return None;
        }
        let row = spans[1].len * C;
        let stride = fixed::stride(row, C, &across);
        let mut made = [vec![0; to[0] * to[1] * C], vec![0; to[0] * to[1] * C]];
        for (out, resize) in made.iter_mut().zip([resize_bytes, fixed::resize]) {
            // What is behind a row does not matter.
            let means: &mut [i16] = &mut (0..2 * stride).map(|_| rng.u64() as i16).collect::<Vec<_>>();
            let width = to[1];
            resize(ResizeBytes::<C> { down: &down, across: &across, means, source, row, stride, out, width });
        }
        assert_eq!(made[0], made[1], "{spans:?} to {to:?} of {C}");
        let same = |value: u8| source.iter().all(|&sample| sample == value);
        assert!(!same(0) || made[0].iter().all(|&sample| sample == 0));
        assert!(!same(255) || made[0].iter().all(|&sample| sample == 255));
        Some(per_result)
    }

    /// Vectors make the bytes of the portable code, also of the lowest and the highest sums.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn vectors_resize_as_portable_code_does() {
        let mut rng = Rng::new(7);
        let mut seen = [0; 17];
        for round in 0..600 {
            let most = [8, 40, 130, 260][round % 4];
            let from = [1 + rng.below(most), 1 + rng.below(most)];
            let to = [1 + rng.below(most.min(90)), 1 + rng.below(most.min(90))];
            let spans = from.map(|len| {
                let cut = if rng.chance(128) { 0.0 } else { 0.375 };
                Span { len, from: cut / 2.0, to: len as f64 - cut }
            });
            let filter = rng.pick(&[Resize::Bilinear, Resize::Area]);
            let mut source = rng.bytes(from[0] * from[1] * 4);
            let extreme = rng.pick(&[0, 0, 1, 2, 3]);
            for value in &mut source {
                *value = match extreme {
                    0 => *value,
                    1 if *value < 128 => 0,
                    2 => 0,
                    _ => 255,
                };
            }
            let area = from[0] * from[1];
            made_twice::<1>(&source[..area], spans, to, filter, &mut rng);
            made_twice::<3>(&source[..area * 3], spans, to, filter, &mut rng);
            if let Some(pairs) = made_twice::<4>(&source, spans, to, filter, &mut rng) {
                seen[pairs] += 1;
            }
        }
        assert!(seen[1..=8].iter().all(|&count| count > 0), "{seen:?}");
        assert!(seen.iter().sum::<usize>() > 400, "{seen:?}");
    }

    /// The usual sizes are resized in whole numbers.
    #[test]
    fn whole_numbers_are_exact_enough() {
        for (from, to, exact) in
            [(375, 224, true), (1200, 224, true), (128, 224, true), (224, 224, true), (6000, 224, false)]
        {
            let mut axes = [Axis::default(), Axis::default()];
            for (axis, bits) in axes.iter_mut().zip(axis::MOST_BITS) {
                axis.prepare(Span { len: from, from: 0.0, to: from as f64 }, to, Resize::Bilinear, bits);
            }
            assert_eq!(axis::are_exact(&axes[0], &axes[1]), exact, "{from} to {to}");
        }
    }
}
