//! The rectangles of crops.

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) top: usize,
    pub(crate) left: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl Rect {
    /// Returns the centred rectangle of this size.
    fn centred([height, width]: [usize; 2], h: usize, w: usize) -> Rect {
        Rect { top: (height - h) / 2, left: (width - w) / 2, height: h, width: w }
    }
}

/// Returns the largest centred rectangle with the ratio of `size`.
pub(crate) fn center(found: [usize; 2], [h, w]: [usize; 2]) -> Rect {
    let [height, width] = found;
    // Sides have at most 32 bits, so the products fit.
    let side = |of: usize, times: usize, by: usize, most: usize| {
        let exact = of as f64 * times as f64 / by as f64;
        (exact.round_ties_even() as usize).clamp(1, most)
    };
    if width as u64 * h as u64 > w as u64 * height as u64 {
        Rect::centred(found, height, side(height, w, h, width))
    } else {
        Rect::centred(found, side(width, h, w, height), width)
    }
}

/// Draws the rectangle of `random_resized` with the random word `g`. All machines draw the same.
pub(crate) fn random_resized(found: [usize; 2], g: u64) -> Rect {
    let [height, width] = found;
    let h = height as f64;
    let w = width as f64;
    let u = |i: u64| (nth(g, i) >> 11) as f64 * 2_f64.powi(-53);
    let low = libm::log(3.0 / 4.0);
    let high = libm::log(4.0 / 3.0);
    for k in 0..10 {
        let area = h * w * (0.08 + 0.92 * u(4 * k + 1));
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
    if w / h < 3.0 / 4.0 {
        Rect::centred(found, (w / (3.0 / 4.0)).round_ties_even() as usize, width)
    } else if w / h > 4.0 / 3.0 {
        Rect::centred(found, height, (h * (4.0 / 3.0)).round_ties_even() as usize)
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
        assert_eq!(center([375, 500], [224, 224]), rect(0, 62, 375, 375));
        assert_eq!(center([500, 375], [224, 224]), rect(62, 0, 375, 375));
        assert_eq!(center([10, 10], [2, 3]), rect(1, 0, 7, 10));
        assert_eq!(center([4, 4], [1, 1000]), rect(1, 0, 1, 4));
        assert_eq!(center([1, 1], [7, 3]), rect(0, 0, 1, 1));
        // Halves become even: 2.5 and 3.5.
        assert_eq!(center([5, 9], [2, 1]), rect(0, 3, 5, 2));
        assert_eq!(center([9, 7], [1, 2]), rect(2, 0, 4, 7));
    }

    /// The rectangles of a program in Python, written from the definition.
    #[test]
    fn random_rectangles_are_those_of_the_definition() {
        let table = include_str!("../tests/data/crops.tsv");
        let mut smaller = 0;
        for line in table.lines().skip(1) {
            let row: Vec<u64> = line.split('\t').map(|word| word.parse().unwrap()).collect();
            let side = |k: usize| row[k] as usize;
            let found = random_resized([side(0), side(1)], row[2]);
            assert_eq!(found, rect(side(3), side(4), side(5), side(6)), "{line}");
            smaller += usize::from(found.height < side(0) && found.width < side(1));
        }
        assert_eq!(table.lines().count(), 301);
        assert!(smaller > 100);
    }
}
