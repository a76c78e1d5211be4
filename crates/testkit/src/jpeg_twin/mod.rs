//! The JPEG decoder before it was made faster, as the twin of the new one: one block at a time, whole planes,
//! each bit counted, and no vectors by hand. It goes when the new decoder has had a release.

mod bits;
mod emit;
mod header;
mod huffman;
mod idct;
mod scan;
mod support;

use bits::{TwinBits, TwinStop};
use header::{Colour, TwinComponent, TwinFrame, TwinScan, TwinSegment};
use scan::{BlockPosition, Blocks, Memory, ScanData, walk};
use std::ops::Range;
use support::{MOST_PIXELS, PictureFault, Rect, TwinWork, resize, with_vectors};

/// Decodes a picture to `channels`, 1 or 3, or of it a rectangle: top, left, height and width. Returns height,
/// width and pixels, or why the file is refused.
pub fn decode(
    file: &[u8],
    rect: Option<[usize; 4]>,
    channels: usize,
) -> Result<(usize, usize, Vec<u8>), String> {
    let decoded = || {
        let header = Header::read(file)?;
        let [height, width] = [header.frame.height, header.frame.width];
        if height * width > MOST_PIXELS {
            return Err(PictureFault::Unsupported("so many pixels"));
        }
        if channels == 1 && matches!(header.colour, Colour::Cmyk | Colour::Ycck) {
            return Err(PictureFault::Unsupported("1 channel of a JPEG in CMYK"));
        }
        let [top, left, height, width] = rect.unwrap_or([0, 0, height, width]);
        let rect = Rect { top, left, height, width };
        let mut pixels = vec![0; height * width * channels];
        Jpeg::default().decode(file, header, rect, channels, &mut pixels)?;
        Ok((height, width, pixels))
    };
    if !file.starts_with(b"\xff\xd8\xff") {
        return Err("no JPEG".to_owned());
    }
    decoded().map_err(|fault| format!("{fault:?}"))
}

/// The header of a JPEG file: all before the data of the first scan.
struct Header {
    frame: TwinFrame,
    tables: header::SegmentTables,
    scan: TwinScan,
    colour: Colour,
    /// Position of the first scan's data.
    at: usize,
}

impl Header {
    /// Reads a header. Files that are too short for their pixels are an error here already.
    fn read(data: &[u8]) -> Result<Header, PictureFault> {
        // Behind the marker that begins the file.
        let mut at = 2;
        let mut tables = header::SegmentTables::default();
        let mut frame = None;
        loop {
            match tables.segment(data, &mut at, frame.as_ref())? {
                TwinSegment::TwinFrame(found) => frame = Some(found),
                TwinSegment::TwinScan(scan) => {
                    let frame = frame.ok_or(PictureFault::Corrupt("scan before the frame"))?;
                    let colour = tables.colour(&frame)?;
                    // A block has a bit at least for its first coefficient, and one for the end of the
                    // others.
                    let least = if frame.progressive { 1 } else { 2 };
                    let fits = data.len() - at >= (frame.blocks() * least).div_ceil(8);
                    if frame.width * frame.height <= MOST_PIXELS && !fits {
                        return Err(PictureFault::Truncated);
                    }
                    return Ok(Header { frame, tables, scan, colour, at });
                }
                TwinSegment::Other => {}
                TwinSegment::End => return Err(PictureFault::Truncated),
            }
        }
    }
}

/// Memory of a decoder, for one picture after the other.
#[derive(Default)]
struct Jpeg {
    /// The samples of all components, one plane after the other.
    planes: Vec<u8>,
    /// The coefficients of all components, if they come in several scans.
    coefficients: Vec<i16>,
    tables: huffman::HuffmanTables,
    rows: emit::ScratchRows,
}

/// Maximum number of blocks in all scans of a file: 100 scans of a picture of [`MOST_PIXELS`]. A progressive
/// file may have 883 scans of each component, in a few bytes each. The usual encoders write 10, careful ones
/// up to about 100, and libvips refuses more.
const MOST_BLOCKS: usize = MOST_PIXELS / 64 * 100;

/// The progress of a component while its data are incomplete.
struct TwinProgress {
    /// Position of its plane among the planes of all components, and of its coefficients.
    start: usize,
    /// The blocks whose samples are needed.
    across: Range<usize>,
    down: Range<usize>,
    /// The bit that each coefficient has reached: 0 is the last one, and `NONE` is before the first one.
    reached: [u8; 64],
    quantization: [i16; 64],
}

const NONE: u8 = u8::MAX;

/// A scan to be read, with what it needs.
struct Pass<'a> {
    data: ScanData<'a>,
    tables: &'a huffman::HuffmanTables,
    progress: &'a [TwinProgress],
}

impl Jpeg {
    /// Decodes the pixels in `rect` of a picture to `out`, with one channel or three.
    fn decode(
        &mut self,
        data: &[u8],
        header: Header,
        rect: Rect,
        channels: usize,
        out: &mut [u8],
    ) -> Result<(), PictureFault> {
        let Header { frame, mut tables, mut scan, colour, mut at } = header;
        if frame.progressive {
            check_scans(data, at, &frame, scan.blocks(&frame))?;
        }
        let mut progress = self.prepare(&frame, rect)?;
        loop {
            begin(&frame, &scan, &tables, &mut progress)?;
            self.tables.define(&mut tables.huffman)?;
            let scan_data = ScanData { data, at, restart: tables.restart, frame: &frame, scan: &scan };
            let pass = Pass { data: scan_data, tables: &self.tables, progress: &progress };
            at = if frame.progressive {
                with_vectors(ProgressiveScan { pass, coefficients: &mut self.coefficients })?
            } else {
                with_vectors(SequentialScan { pass, planes: &mut self.planes })?
            };
            if progress.iter().all(|progress| progress.reached == [0; 64]) {
                break;
            }
            match next_scan(data, &mut at, &mut tables, &frame)? {
                Some(next) => scan = next,
                // Files may leave out the last bits, but not a component.
                None if progress.iter().all(|progress| progress.reached[0] != NONE) => break,
                None => return Err(PictureFault::Truncated),
            }
        }
        if frame.progressive {
            let coefficients = &self.coefficients[..];
            let planes = &mut self.planes[..];
            with_vectors(Transform { frame: &frame, progress: &progress, coefficients, planes });
        }
        let planes: Vec<&[u8]> = progress.iter().map(|progress| &self.planes[progress.start..]).collect();
        let picture =
            emit::Picture { frame: &frame, colour, inverted: tables.adobe.is_some(), planes: &planes };
        with_vectors(emit::Emit { picture, rect, channels, rows: &mut self.rows, out });
        Ok(())
    }

    /// Takes the memory for a picture.
    fn prepare(&mut self, frame: &TwinFrame, rect: Rect) -> Result<Vec<TwinProgress>, PictureFault> {
        let mut samples = 0;
        let mut progress = Vec::with_capacity(frame.components.len());
        for component in &frame.components {
            progress.push(TwinProgress {
                start: samples,
                across: needed(rect.left, rect.width, frame.h * 8, component.h, component.blocks_across),
                down: needed(rect.top, rect.height, frame.v * 8, component.v, component.blocks_down),
                reached: [NONE; 64],
                quantization: [0; 64],
            });
            samples += component.blocks_across * component.blocks_down * 64;
        }
        resize(&mut self.planes, samples)?;
        if frame.progressive {
            resize(&mut self.coefficients, samples)?;
            self.coefficients.fill(0);
        }
        self.tables.forget();
        Ok(progress)
    }
}

/// Refuses a progressive file whose scans have too many blocks, before one of them is decoded. The first
/// scan, whose data begin at `at`, has `blocks` of them. Other faults are found when the scans are decoded.
fn check_scans(data: &[u8], mut at: usize, frame: &TwinFrame, mut blocks: usize) -> Result<(), PictureFault> {
    let mut tables = header::SegmentTables::default();
    while let Ok(Some(scan)) = next_scan(data, &mut at, &mut tables, frame) {
        blocks += scan.blocks(frame);
        if blocks > MOST_BLOCKS {
            return Err(PictureFault::Unsupported("JPEG with too many scans for its size"));
        }
    }
    Ok(())
}

/// Notes what a scan brings, and keeps the quantization tables of its components.
fn begin(
    frame: &TwinFrame,
    scan: &TwinScan,
    tables: &header::SegmentTables,
    progress: &mut [TwinProgress],
) -> Result<(), PictureFault> {
    for selected in &scan.selected {
        let progress = &mut progress[selected.component];
        if progress.reached == [NONE; 64] {
            let table = tables.quantization[frame.components[selected.component].table].as_ref();
            progress.quantization =
                table.ok_or(PictureFault::Corrupt("missing quantization table"))?.map(|step| step as i16);
        }
        // The bits of a coefficient come in order, and once.
        let before = if scan.high == 0 { NONE } else { scan.high as u8 };
        for reached in &mut progress.reached[scan.from..=scan.to] {
            if *reached != before {
                return Err(PictureFault::Corrupt("order of scans"));
            }
            *reached = scan.low as u8;
        }
    }
    Ok(())
}

/// Reads a scan of a sequential file into the planes. Returns the position behind it.
struct SequentialScan<'a> {
    pass: Pass<'a>,
    planes: &'a mut [u8],
}

impl TwinWork for SequentialScan<'_> {
    type Output = Result<usize, PictureFault>;

    #[inline(always)]
    fn run(self) -> Result<usize, PictureFault> {
        let pass = &self.pass;
        let mut parts = Vec::with_capacity(4);
        for selected in &pass.data.scan.selected {
            let dc = pass.tables.dc(selected.dc)?;
            let ac = pass.tables.ac(selected.ac)?;
            parts.push((
                &pass.data.frame.components[selected.component],
                &pass.progress[selected.component],
                dc,
                ac,
            ));
        }
        let mut blocks = SequentialBlocks { parts, planes: self.planes, block: [0; 64] };
        walk(&pass.data, &mut blocks)
    }
}

struct SequentialBlocks<'a> {
    parts: Vec<(&'a TwinComponent, &'a TwinProgress, &'a huffman::HuffmanTable, &'a huffman::HuffmanTable)>,
    planes: &'a mut [u8],
    /// Zeros, between blocks.
    block: [i16; 64],
}

impl Blocks for SequentialBlocks<'_> {
    #[inline(always)]
    fn read(
        &mut self,
        bits: &mut TwinBits<'_>,
        memory: &mut Memory,
        place: BlockPosition,
    ) -> Result<(), TwinStop> {
        let (component, progress, dc, ac) = &self.parts[place.selected];
        let more = scan::sequential(bits, memory, place.selected, dc, ac, &mut self.block)?;
        if progress.across.contains(&place.across) && progress.down.contains(&place.down) {
            let stride = component.stride();
            let out = &mut self.planes[progress.start + place.down * 8 * stride + place.across * 8..];
            if more {
                idct::write_block(&self.block, &progress.quantization, out, stride);
            } else {
                idct::write_flat(self.block[0], &progress.quantization, out, stride);
            }
        }
        if more {
            self.block = [0; 64];
        }
        Ok(())
    }
}

/// Reads a scan of a progressive file into the coefficients. Returns the position behind it.
struct ProgressiveScan<'a> {
    pass: Pass<'a>,
    coefficients: &'a mut [i16],
}

impl TwinWork for ProgressiveScan<'_> {
    type Output = Result<usize, PictureFault>;

    #[inline(always)]
    fn run(self) -> Result<usize, PictureFault> {
        let pass = &self.pass;
        let mut parts = Vec::with_capacity(4);
        for selected in &pass.data.scan.selected {
            let table = if pass.data.scan.from > 0 {
                Some(pass.tables.ac(selected.ac)?)
            } else if pass.data.scan.high == 0 {
                Some(pass.tables.dc(selected.dc)?)
            } else {
                None
            };
            parts.push((
                &pass.data.frame.components[selected.component],
                &pass.progress[selected.component],
                table,
            ));
        }
        let mut blocks = ProgressiveBlocks { parts, scan: pass.data.scan, coefficients: self.coefficients };
        walk(&pass.data, &mut blocks)
    }
}

struct ProgressiveBlocks<'a> {
    parts: Vec<(&'a TwinComponent, &'a TwinProgress, Option<&'a huffman::HuffmanTable>)>,
    scan: &'a TwinScan,
    coefficients: &'a mut [i16],
}

impl Blocks for ProgressiveBlocks<'_> {
    #[inline(always)]
    fn read(
        &mut self,
        bits: &mut TwinBits<'_>,
        memory: &mut Memory,
        place: BlockPosition,
    ) -> Result<(), TwinStop> {
        let (component, progress, table) = &self.parts[place.selected];
        let at = progress.start + (place.down * component.blocks_across + place.across) * 64;
        let block = self.coefficients[at..].first_chunk_mut().ok_or(TwinStop::Count)?;
        scan::progressive(bits, memory, place.selected, self.scan, *table, block)
    }
}

/// Computes the planes of a progressive file.
struct Transform<'a> {
    frame: &'a TwinFrame,
    progress: &'a [TwinProgress],
    coefficients: &'a [i16],
    planes: &'a mut [u8],
}

impl TwinWork for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (component, progress) in self.frame.components.iter().zip(self.progress) {
            let stride = component.stride();
            let blocks = self.coefficients[progress.start..].as_chunks::<64>().0;
            for down in progress.down.clone() {
                for across in progress.across.clone() {
                    let block = &blocks[down * component.blocks_across + across];
                    let out = &mut self.planes[progress.start + down * 8 * stride + across * 8..];
                    idct::write_block(block, &progress.quantization, out, stride);
                }
            }
        }
    }
}

/// Returns the header of the next scan. `None` at the end of the picture.
fn next_scan(
    data: &[u8],
    at: &mut usize,
    tables: &mut header::SegmentTables,
    frame: &TwinFrame,
) -> Result<Option<TwinScan>, PictureFault> {
    loop {
        match tables.segment(data, at, Some(frame))? {
            TwinSegment::TwinScan(scan) => return Ok(Some(scan)),
            TwinSegment::End => return Ok(None),
            TwinSegment::TwinFrame(_) | TwinSegment::Other => {}
        }
    }
}

/// Returns the blocks that `n` pixels from `from` on need, of `blocks` blocks that have `per_unit` in a unit
/// of `size` pixels. The neighbours of their units are needed for upsampling.
fn needed(from: usize, n: usize, size: usize, per_unit: usize, blocks: usize) -> Range<usize> {
    let first = (from / size).saturating_sub(1) * per_unit;
    first..(((from + n - 1) / size + 2) * per_unit).min(blocks)
}
