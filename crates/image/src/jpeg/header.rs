//! The segments of a JPEG file before and between the scans.

use super::huffman::{Definition, Definitions};
use super::per_component::PerComponent;
use crate::error::PictureFault;
use crate::exif::Orientation;

/// Order of the coefficients in a file: position in the block of the k-th.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// A component of the picture: its samples form a plane.
#[derive(Clone, Copy, Default)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks per unit of an interleaved scan, in a row and in a column.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Number of its quantization table.
    pub(super) table: usize,
    /// Samples of a block in a row and in a column: 8, and 4, 2 or 1 if it is reduced.
    pub(super) size: usize,
    /// Samples of the picture in a row and in a column.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Pixels per sample in a row and in a column.
    pub(super) across: usize,
    pub(super) down: usize,
    /// Blocks in a row and in a column, with those that fill up the last units.
    pub(super) blocks_across: usize,
    pub(super) blocks_down: usize,
}

impl Component {
    /// Returns the numbers of blocks in a row and in a column that have samples of the picture.
    pub(super) fn blocks(&self) -> [usize; 2] {
        [self.width.div_ceil(self.size), self.height.div_ceil(self.size)]
    }

    /// Returns the number of blocks, with the blocks that fill up the last units.
    pub(super) fn padded_blocks(&self) -> usize {
        self.blocks_across * self.blocks_down
    }

    /// Returns the distance between the rows of samples. Blocks are transformed in pairs, so there is place
    /// for one behind the last.
    pub(super) fn stride(&self) -> usize {
        self.blocks_across * self.size + 8
    }
}

/// The frame header.
pub(super) struct Frame {
    /// Pixels of a block of the largest `h` and `v`, in a row and in a column: 8, 4, 2 or 1.
    pub(super) size: usize,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) progressive: bool,
    pub(super) components: PerComponent<Component>,
    /// The largest `h` and `v`.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Units of interleaved scans in a row and in a column.
    pub(super) units_across: usize,
    pub(super) units_down: usize,
}

impl Frame {
    /// Reduces 1, 2, 4 or 8 pixels in each dimension to one. A component with fewer samples is reduced less, as in
    /// libjpeg, as long as a sample has a whole number of pixels in both dimensions.
    pub(super) fn reduce(&mut self, reduction: usize) {
        self.size = 8 / reduction;
        let [h, v] = [self.h * self.size, self.v * self.size];
        for component in &mut self.components[..] {
            let is_factor =
                |size: usize| h.is_multiple_of(component.h * size) && v.is_multiple_of(component.v * size);
            let mut size = self.size;
            while size < 8 && is_factor(size * 2) {
                size *= 2;
            }
            component.size = size;
            component.across = h / (component.h * size);
            component.down = v / (component.v * size);
            component.width = (self.width * component.h * size).div_ceil(self.h * 8);
            component.height = (self.height * component.v * size).div_ceil(self.v * 8);
        }
        self.width = self.width.div_ceil(reduction);
        self.height = self.height.div_ceil(reduction);
    }

    /// Returns the number of blocks that have samples of the picture.
    pub(super) fn blocks(&self) -> usize {
        self.components.iter().map(|component| component.blocks().iter().product::<usize>()).sum()
    }
}

/// A component in a scan, with its Huffman tables.
#[derive(Clone, Copy, Default)]
pub(super) struct Selected {
    pub(super) component: usize,
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// The scan header.
pub(super) struct Scan {
    pub(super) selected: PerComponent<Selected>,
    /// The first and the last coefficient.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The bit that earlier scans have reached, or 0, and the one that this scan reaches.
    pub(super) high: u32,
    pub(super) low: u32,
}

impl Scan {
    /// Returns the number of units in a row and in a column. A scan of one component has no units: it has the
    /// blocks of the picture only.
    pub(super) fn units(&self, frame: &Frame) -> [usize; 2] {
        match &self.selected[..] {
            [one] => frame.components[one.component].blocks(),
            _ => [frame.units_across, frame.units_down],
        }
    }

    /// Returns the number of blocks that the scan reads.
    pub(super) fn blocks(&self, frame: &Frame) -> usize {
        let components = self.selected.iter().filter_map(|one| frame.components.get(one.component));
        match self.selected.len() {
            1 => components.map(|one| one.blocks().iter().product::<usize>()).sum(),
            _ => components.map(|one| frame.units_across * frame.units_down * one.h * one.v).sum(),
        }
    }
}

/// How the components are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Grey,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// A segment.
#[expect(clippy::large_enum_variant, reason = "taken apart where it is returned, and a box is an allocation")]
pub(super) enum Segment {
    /// A frame or a scan, or tables, which are in `SegmentTables` now.
    Frame(Frame),
    Scan(Scan),
    Other,
    End,
}

/// The bytes before EXIF data.
const EXIF: &[u8] = b"Exif\0\0";

/// Definitions of segments for the scans behind them.
#[derive(Default)]
pub(super) struct SegmentTables<'a> {
    pub(super) quantization: [Option<[u16; 64]>; 4],
    pub(super) huffman: Definitions<'a>,
    /// Units between restart markers, or 0.
    pub(super) restart: usize,
    jfif: bool,
    /// The transform in Adobe's marker.
    pub(super) adobe: Option<u8>,
    /// The orientation in the first EXIF data.
    pub(super) exif: Option<Orientation>,
}

impl<'a> SegmentTables<'a> {
    /// Returns how the components of `frame` are colours, by the rules of libjpeg.
    pub(super) fn colour(&self, frame: &Frame) -> Result<Colour, PictureFault> {
        let ids = frame.components.iter().map(|component| component.id);
        Ok(match (frame.components.len(), self.adobe) {
            (1, _) => Colour::Grey,
            (3, _) if self.jfif => Colour::YCbCr,
            (3, Some(0)) => Colour::Rgb,
            (3, None) if ids.eq(*b"RGB") => Colour::Rgb,
            (3, _) => Colour::YCbCr,
            (4, None | Some(0)) => Colour::Cmyk,
            (4, _) => Colour::Ycck,
            _ => return Err(PictureFault::Unsupported("a JPEG of two components")),
        })
    }

    /// Reads the next segment at `at`, and moves `at` behind it. Bytes before its marker are skipped.
    pub(super) fn segment(
        &mut self,
        data: &'a [u8],
        at: &mut usize,
        frame: Option<&Frame>,
    ) -> Result<Segment, PictureFault> {
        let marker = next_marker(data, at)?;
        match marker {
            // Markers of restarts, tests and beginnings have no content.
            0xd0..=0xd8 | 0x01 => return Ok(Segment::Other),
            0xd9 => return Ok(Segment::End),
            _ => {}
        }
        let length = data.get(*at..*at + 2).ok_or(PictureFault::Truncated)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 {
            return Err(PictureFault::Corrupt("length of a segment"));
        }
        let body = data.get(*at + 2..*at + length).ok_or(PictureFault::Truncated)?;
        *at += length;
        let mut body = Body(body);
        match marker {
            0xc4 => self.huffman(&mut body)?,
            0xdb => self.quantization(&mut body)?,
            0xdd => self.restart = body.word()?,
            0xe0 if body.0.starts_with(b"JFIF\0") => self.jfif = true,
            0xe1 if self.exif.is_none() && body.0.starts_with(EXIF) => {
                self.exif = Some(Orientation::of_exif(&body.0[EXIF.len()..]));
            }
            0xee if body.0.starts_with(b"Adobe") => self.adobe = body.0.get(11).copied(),
            0xc0..=0xc2 if frame.is_none() => return Ok(Segment::Frame(body.frame(marker == 0xc2)?)),
            0xc0..=0xc2 => return Err(PictureFault::Corrupt("second frame")),
            0xc3 | 0xcb => return Err(PictureFault::Unsupported("lossless JPEG")),
            0xc9 | 0xca | 0xcc => return Err(PictureFault::Unsupported("JPEG with arithmetic coding")),
            0xc5..=0xcf | 0xde | 0xdf => return Err(PictureFault::Unsupported("hierarchical JPEG")),
            0xdc => return Err(PictureFault::Unsupported("JPEG whose height comes later")),
            0xda => {
                let frame = frame.ok_or(PictureFault::Corrupt("scan before the frame"))?;
                return Ok(Segment::Scan(body.scan(frame)?));
            }
            _ => {}
        }
        Ok(Segment::Other)
    }

    fn quantization(&mut self, body: &mut Body<'_>) -> Result<(), PictureFault> {
        while !body.0.is_empty() {
            let head = body.byte()?;
            let mut table = [0; 64];
            for &k in &ZIGZAG {
                table[usize::from(k)] = match head >> 4 {
                    0 => u16::from(body.byte()?),
                    1 => body.word()? as u16,
                    _ => return Err(PictureFault::Corrupt("quantization table")),
                };
            }
            let slot = self
                .quantization
                .get_mut(usize::from(head & 15))
                .ok_or(PictureFault::Corrupt("quantization table"))?;
            *slot = Some(table);
        }
        Ok(())
    }

    fn huffman(&mut self, body: &mut Body<'a>) -> Result<(), PictureFault> {
        while !body.0.is_empty() {
            let head = body.byte()?;
            let mut counts = [0; 16];
            for count in &mut counts {
                *count = body.byte()?;
            }
            let symbols = body.bytes(counts.iter().map(|&count| usize::from(count)).sum())?;
            let tables = match head >> 4 {
                0 => &mut self.huffman.dc,
                1 => &mut self.huffman.ac,
                _ => return Err(PictureFault::Corrupt("huffman table")),
            };
            let slot =
                tables.get_mut(usize::from(head & 15)).ok_or(PictureFault::Corrupt("huffman table"))?;
            *slot = Some(Definition { counts, symbols });
        }
        Ok(())
    }
}

/// Moves `at` behind the next marker, and returns it. Fill bytes and other bytes before it are skipped.
pub(super) fn next_marker(data: &[u8], at: &mut usize) -> Result<u8, PictureFault> {
    loop {
        let rest = data.get(*at..).ok_or(PictureFault::Truncated)?;
        let found = rest.iter().position(|&byte| byte == 0xff).ok_or(PictureFault::Truncated)?;
        let code =
            rest[found..].iter().position(|&byte| byte != 0xff).ok_or(PictureFault::Truncated)? + found;
        *at += code + 1;
        // A stuffed byte is no marker.
        if rest[code] != 0 {
            return Ok(rest[code]);
        }
    }
}

/// The content of a segment that is left.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8], PictureFault> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(PictureFault::Corrupt("length of a segment"))?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, PictureFault> {
        Ok(self.bytes(1)?[0])
    }

    fn word(&mut self) -> Result<usize, PictureFault> {
        let bytes = self.bytes(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    fn frame(&mut self, progressive: bool) -> Result<Frame, PictureFault> {
        if self.byte()? != 8 {
            return Err(PictureFault::Unsupported("JPEG of more than 8 bits"));
        }
        let height = self.word()?;
        let width = self.word()?;
        let count = self.byte()?;
        if height == 0 {
            return Err(PictureFault::Unsupported("JPEG whose height comes later"));
        }
        if width == 0 || !(1..=4).contains(&count) {
            return Err(PictureFault::Corrupt("frame header"));
        }
        let mut components = PerComponent::<Component>::default();
        for _ in 0..count {
            let id = self.byte()?;
            let sampling = self.byte()?;
            let table = self.byte()?;
            let h = usize::from(sampling >> 4);
            let v = usize::from(sampling & 15);
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) || table > 3 {
                return Err(PictureFault::Corrupt("frame header"));
            }
            components.push(Component { id, h, v, table: usize::from(table), ..Component::default() });
        }
        // The factors of a single component mean nothing.
        if let [component] = &mut components[..] {
            (component.h, component.v) = (1, 1);
        }
        let h = components.iter().map(|component| component.h).max().unwrap_or(1);
        let v = components.iter().map(|component| component.v).max().unwrap_or(1);
        if components.iter().any(|component| h % component.h != 0 || v % component.v != 0) {
            return Err(PictureFault::Unsupported("JPEG with sampling in fractions"));
        }
        let units_across = width.div_ceil(8 * h);
        let units_down = height.div_ceil(8 * v);
        for component in &mut components[..] {
            component.blocks_across = units_across * component.h;
            component.blocks_down = units_down * component.v;
        }
        let mut frame =
            Frame { size: 8, width, height, progressive, components, h, v, units_across, units_down };
        frame.reduce(1);
        Ok(frame)
    }

    fn scan(&mut self, frame: &Frame) -> Result<Scan, PictureFault> {
        const CORRUPT: PictureFault = PictureFault::Corrupt("scan header");
        let count = self.byte()?;
        let mut selected = PerComponent::<Selected>::default();
        for _ in 0..count {
            let id = self.byte()?;
            let tables = self.byte()?;
            let component =
                frame.components.iter().position(|component| component.id == id).ok_or(CORRUPT)?;
            if selected.iter().any(|other| other.component == component) {
                return Err(CORRUPT);
            }
            let dc = usize::from(tables >> 4);
            let ac = usize::from(tables & 15);
            if dc > 3 || ac > 3 {
                return Err(CORRUPT);
            }
            selected.push(Selected { component, dc, ac });
        }
        let (from, to, bits) = (usize::from(self.byte()?), usize::from(self.byte()?), self.byte()?);
        let high = u32::from(bits >> 4);
        let low = u32::from(bits & 15);
        let units: usize =
            selected.iter().filter_map(|one| frame.components.get(one.component)).map(|c| c.h * c.v).sum();
        // Baseline files have these bytes, and other decoders do not look at them.
        let valid = !frame.progressive
            || if from == 0 { to == 0 } else { from <= to && to < 64 && selected.len() == 1 };
        if !valid || selected.is_empty() || low > 13 || (frame.progressive && high != 0 && high != low + 1) {
            return Err(CORRUPT);
        }
        if selected.len() > 1 && units > 10 {
            return Err(CORRUPT);
        }
        Ok(if frame.progressive {
            Scan { selected, from, to, high, low }
        } else {
            Scan { selected, from: 0, to: 63, high: 0, low: 0 }
        })
    }
}
