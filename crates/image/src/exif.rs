//! The orientation of a JPEG, from its EXIF data.

use crate::crop::{Rect, Span};

/// The way from stored pixels to those that are seen: the axes are exchanged, then rows and columns are read
/// backwards. The default changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orientation {
    transposed: bool,
    /// The stored rows are read from the last to the first.
    rows_reversed: bool,
    columns_reversed: bool,
}

impl Orientation {
    /// Reads the orientation in EXIF data. Without a valid one it is the default.
    pub(crate) fn of_exif(data: &[u8]) -> Orientation {
        // The eight numbers of EXIF 2.3, table 8.
        let [transposed, rows_reversed, columns_reversed] = match tag(data) {
            Some(2) => [false, false, true],
            Some(3) => [false, true, true],
            Some(4) => [false, true, false],
            Some(5) => [true, false, false],
            Some(6) => [true, true, false],
            Some(7) => [true, true, true],
            Some(8) => [true, false, true],
            _ => [false; 3],
        };
        Orientation { transposed, rows_reversed, columns_reversed }
    }

    /// Returns the size that is seen, or the stored size of a seen one.
    pub(crate) fn size(self, [height, width]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [width, height] } else { [height, width] }
    }

    /// Returns the sides of a rectangle as they are seen, of its stored ones.
    pub(crate) fn sides(self, [rows, columns]: [Span; 2]) -> [Span; 2] {
        let turn = |span: Span, reversed: bool| {
            let Span { len, from, to } = span;
            let side = len as f64;
            if reversed { Span { len, from: side - to, to: side - from } } else { span }
        };
        let [rows, columns] = [turn(rows, self.rows_reversed), turn(columns, self.columns_reversed)];
        if self.transposed { [columns, rows] } else { [rows, columns] }
    }

    /// Returns the stored rectangle of one that is seen, in a picture of this stored size.
    pub(crate) fn stored(self, rect: Rect, [height, width]: [usize; 2]) -> Rect {
        let Rect { top, left, .. } = rect;
        let [h, w] = self.size([rect.height, rect.width]);
        let [top, left] = if self.transposed { [left, top] } else { [top, left] };
        Rect {
            top: if self.rows_reversed { height - top - h } else { top },
            left: if self.columns_reversed { width - left - w } else { left },
            height: h,
            width: w,
        }
    }

    /// Writes the pixels that are seen, of stored ones of the size `[height, width]`.
    pub(crate) fn turn<T: Copy>(
        self,
        stored: &[T],
        [height, width]: [usize; 2],
        channels: usize,
        out: &mut [T],
    ) {
        let [h, w] = self.size([height, width]);
        for y in 0..h {
            for x in 0..w {
                let [row, column] = if self.transposed { [x, y] } else { [y, x] };
                let row = if self.rows_reversed { height - 1 - row } else { row };
                let column = if self.columns_reversed { width - 1 - column } else { column };
                let from = (row * width + column) * channels;
                let to = (y * w + x) * channels;
                out[to..to + channels].copy_from_slice(&stored[from..from + channels]);
            }
        }
    }
}

/// Returns the tag of the orientation, one SHORT in the first directory of EXIF data.
fn tag(data: &[u8]) -> Option<u16> {
    const ORIENTATION: u16 = 0x0112;
    const SHORT: u16 = 3;
    let little = match data.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let word = |at: usize| {
        let bytes = *data.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes = *data.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = long(4)? as usize;
    let entries = usize::from(word(directory)?).min(data.len() / 12);
    let mut places = (0..entries).map(|k| directory + 2 + 12 * k);
    let entry = places.find(|&at| word(at) == Some(ORIENTATION))?;
    let is_short = word(entry + 2)? == SHORT && long(entry + 4)? == 1;
    // A value has four bytes, whatever it needs.
    long(entry + 8)?;
    if is_short { word(entry + 8) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each orientation of a picture whose pixels are numbered, by the words of the standard: where row 0 and
    /// column 0 are seen.
    #[test]
    fn orientations_are_those_of_the_standard() {
        let stored: Vec<u8> = (0..6).collect();
        let cases: [(u16, &[u8]); 8] = [
            (1, &[0, 1, 2, 3, 4, 5]),
            (2, &[2, 1, 0, 5, 4, 3]),
            (3, &[5, 4, 3, 2, 1, 0]),
            (4, &[3, 4, 5, 0, 1, 2]),
            (5, &[0, 3, 1, 4, 2, 5]),
            (6, &[3, 0, 4, 1, 5, 2]),
            (7, &[5, 2, 4, 1, 3, 0]),
            (8, &[2, 5, 1, 4, 0, 3]),
        ];
        for (number, want) in cases {
            let mut data = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
            data.extend(number.to_be_bytes());
            data.extend(b"\0\0\0\0\0\0");
            let orientation = Orientation::of_exif(&data);
            let mut seen = vec![9; 6];
            orientation.turn(&stored, [2, 3], 1, &mut seen);
            assert_eq!(seen, want, "{number}");
            // A part is turned as the whole.
            let [h, w] = orientation.size([2, 3]);
            for (top, left) in (0..h).flat_map(|top| (0..w).map(move |left| (top, left))) {
                let rect = Rect { top, left, height: 1, width: 1 };
                let Rect { top: row, left: column, .. } = orientation.stored(rect, [2, 3]);
                assert_eq!(stored[row * 3 + column], want[top * w + left], "{number}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_orientation_change_nothing() {
        let data = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let upright = Orientation::default();
        assert_ne!(Orientation::of_exif(data), upright);
        for len in 0..data.len() - 4 {
            assert_eq!(Orientation::of_exif(&data[..len]), upright, "{len}");
        }
    }
}
