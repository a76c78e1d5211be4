//! The rectangles of crops, and the spans of their sides.

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
}

/// A part of a side of some pixels, from the first to the last, which may be in it only partly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// The number of pixels of the side.
    pub(crate) len: usize,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Rect {
    /// Returns the centred rectangle of this size.
    fn centred([height, width]: [usize; 2], h: usize, w: usize) -> Rect {
        Rect { top: (height - h) / 2, left: (width - w) / 2, height: h, width: w }
    }
}

/// Returns the largest centred rectangle with the ratio of `size`, or this fraction of its sides.
pub(crate) fn center(found: [usize; 2], [h, w]: [usize; 2], fraction: f64) -> Rect {
    let [height, width] = found;
    // Sides have at most 32 bits, so the products fit.
    let side = |of: usize, times: usize, by: usize, most: usize| {
        let exact = of as f64 * times as f64 / by as f64;
        (exact.round_ties_even() as usize).clamp(1, most)
    };
    let [across, down] = if width as u64 * h as u64 > w as u64 * height as u64 {
        [side(height, w, h, width), height]
    } else {
        [width, side(width, h, w, height)]
    };
    let part = |side: usize| ((side as f64 * fraction).round_ties_even() as usize).max(1);
    Rect::centred(found, part(down), part(across))
}

/// Returns a number of 0 to 1, without 1: the i-th of the sequence of `g`.
pub(crate) fn unit(g: u64, i: u64) -> f64 {
    (nth(g, i) >> 11) as f64 * 2_f64.powi(-53)
}

/// Draws the rectangle of `random_resized` with the random word `g`. All machines draw the same.
pub(crate) fn random_resized(found: [usize; 2], scale: [f64; 2], ratio: [f64; 2], g: u64) -> Rect {
    let [height, width] = found;
    let h = height as f64;
    let w = width as f64;
    let u = |i: u64| unit(g, i);
    let [smallest, largest] = scale;
    let [narrowest, widest] = ratio;
    let [low, high] = ratio.map(libm::log);
    for k in 0..10 {
        let area = h * w * (smallest + (largest - smallest) * u(4 * k + 1));
        let ratio = libm::exp(low + u(4 * k + 2) * (high - low));
        let (across, down) =
            ((area * ratio).sqrt().round_ties_even(), (area / ratio).sqrt().round_ties_even());
        if 0.0 < across && across <= w && 0.0 < down && down <= h {
            return Rect {
                top: (u(4 * k + 3) * (h - down + 1.0)).floor() as usize,
                left: (u(4 * k + 4) * (w - across + 1.0)).floor() as usize,
                height: down as usize,
                width: across as usize,
            };
        }
    }
    let side = |exact: f64| (exact.round_ties_even() as usize).max(1);
    if w / h < narrowest {
        Rect::centred(found, side(w / narrowest), width)
    } else if w / h > widest {
        Rect::centred(found, height, side(h * widest))
    } else {
        Rect { top: 0, left: 0, height, width }
    }
}

/// Returns the i-th word of the sequence of `g`, as in docs/order.md.
fn nth(g: u64, i: u64) -> u64 {
    let mut z = g.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z ^= z >> 30;
    z = z.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect(top: usize, left: usize, height: usize, width: usize) -> Rect {
        Rect { top, left, height, width }
    }

    #[test]
    fn a_centred_rectangle_has_the_ratio_of_the_size() {
        assert_eq!(center([375, 500], [224, 224], 1.0), rect(0, 62, 375, 375));
        assert_eq!(center([500, 375], [224, 224], 1.0), rect(62, 0, 375, 375));
        assert_eq!(center([10, 10], [2, 3], 1.0), rect(1, 0, 7, 10));
        assert_eq!(center([4, 4], [1, 1000], 1.0), rect(1, 0, 1, 4));
        assert_eq!(center([1, 1], [7, 3], 1.0), rect(0, 0, 1, 1));
        // Halves become even: 2.5 and 3.5.
        assert_eq!(center([5, 9], [2, 1], 1.0), rect(0, 3, 5, 2));
        assert_eq!(center([9, 7], [1, 2], 1.0), rect(2, 0, 4, 7));
        // A part of both sides: 256 to 224, and at least a pixel.
        assert_eq!(center([256, 300], [224, 224], 0.875), rect(16, 38, 224, 224));
        assert_eq!(center([10, 10], [2, 3], 0.5), rect(3, 2, 4, 5));
        assert_eq!(center([10, 10], [2, 3], 1e-9), rect(4, 4, 1, 1));
    }

    /// The rectangles of a program in Python, written from the definition.
    #[test]
    fn random_rectangles_are_those_of_the_definition() {
        let table = include_str!("../tests/data/crops.tsv");
        let mut smaller = 0;
        for line in table.lines().skip(1) {
            let row: Vec<u64> = line.split('\t').map(|word| word.parse().unwrap()).collect();
            let side = |k: usize| row[k] as usize;
            let found = random_resized([side(0), side(1)], [0.08, 1.0], [3.0 / 4.0, 4.0 / 3.0], row[2]);
            assert_eq!(found, rect(side(3), side(4), side(5), side(6)), "{line}");
            smaller += usize::from(found.height < side(0) && found.width < side(1));
        }
        assert_eq!(table.lines().count(), 301);
        assert!(smaller > 100);
    }

    /// If no rectangle fits, the centred one has the nearest ratio, and at least a pixel.
    #[test]
    fn rectangles_of_extreme_ratios_are_in_the_picture() {
        let whole = [1.0, 1.0];
        assert_eq!(random_resized([4, 9], whole, [1e-300, 1e-299], 7), rect(0, 4, 4, 1));
        assert_eq!(random_resized([4, 9], whole, [1e299, 1e300], 7), rect(1, 0, 1, 9));
        assert_eq!(random_resized([4, 9], whole, [2.25, 2.25], 7), rect(0, 0, 4, 9));
    }
}
