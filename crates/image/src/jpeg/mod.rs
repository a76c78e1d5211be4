//! JPEG: baseline, extended sequential and progressive files of 8 bits with Huffman coding. In the order of
//! the work: header (segments), entropy (bytes of a scan), bits, huffman and pairs (codes), scan (units),
//! then sequential (a picture in one scan), or progressive and coefficients (a picture in several), rows
//! (samples) and emit (pixels).
//!
//! Pixels are the same as from libjpeg-turbo with its accurate transforms and smooth upsampling, bit by bit, of valid files, also
//! where a picture is reduced to a half, a quarter or an eighth.
//! Unlike there, data that end early are an error, not grey.

mod bits;
mod coefficients;
mod emit;
mod entropy;
mod header;
mod huffman;
mod idct;
mod pairs;
mod per_component;
mod progressive;
mod rows;
mod scan;
mod sequential;

use crate::error::{ImageError, MOST_PIXELS, PictureFault};
use crate::format::{DecodeJob, PictureFormat, PictureHeader};
use coefficients::{CoefficientPicture, CoefficientScan, Coefficients};
use emit::Target;
use entropy::EntropyData;
use header::{Colour, Frame, Scan, Segment, SegmentTables};
use huffman::HuffmanTables;
use per_component::PerComponent;
use rows::{PictureRows, RowMemory};
use scan::ScanData;
use sequential::{BlockCodes, Group, SequentialPart, SequentialPicture};
use std::sync::atomic::Ordering;
use tfseek_wire::VectorWork;

// The factor is TensorFlow's also in loaders, which have always had it.
pub(crate) const FORMAT: PictureFormat =
    PictureFormat { name: "JPEG", word: "jpeg", byte_factor: 256, read, decode, decode_words: None };

/// The header of a JPEG file: all before the data of the first scan.
struct Header<'a> {
    data: &'a [u8],
    frame: Frame,
    tables: SegmentTables<'a>,
    scan: Scan,
    colour: Colour,
    /// Position of the first scan's data.
    at: usize,
}

impl<'a> Header<'a> {
    /// Reads a header. Files that are too short for their pixels are an error here already.
    fn read(data: &'a [u8]) -> Result<Header<'a>, PictureFault> {
        // Behind the marker that begins the file.
        let mut at = 2;
        let mut tables = SegmentTables::default();
        let mut frame = None;
        loop {
            match tables.segment(data, &mut at, frame.as_ref())? {
                Segment::Frame(found) => frame = Some(found),
                Segment::Scan(scan) => {
                    let frame = frame.ok_or(PictureFault::Corrupt("scan before the frame"))?;
                    let colour = tables.colour(&frame)?;
                    // A block has a bit at least for its first coefficient, and one for the end of the
                    // others.
                    let least = if frame.progressive { 1 } else { 2 };
                    let fits = data.len() - at >= (frame.blocks() * least).div_ceil(8);
                    if frame.width * frame.height <= MOST_PIXELS && !fits {
                        return Err(PictureFault::Truncated);
                    }
                    return Ok(Header { data, frame, tables, scan, colour, at });
                }
                Segment::Other => {}
                Segment::End => return Err(PictureFault::Truncated),
            }
        }
    }
}

fn read(data: &[u8]) -> Result<PictureHeader, PictureFault> {
    const ALPHA: (usize, &str) = (4, "4 channels of a JPEG, which has no alpha");
    let Header { frame, tables, colour, .. } = Header::read(data)?;
    let (channels, unsupported): (_, &[_]) = match colour {
        Colour::Grey => (1, &[ALPHA]),
        Colour::YCbCr | Colour::Rgb => (3, &[ALPHA]),
        Colour::Cmyk | Colour::Ycck => (3, &[ALPHA, (1, "1 channel of a JPEG in CMYK")]),
    };
    let size = [frame.height, frame.width];
    let reducible = true;
    let orientation = tables.exif.unwrap_or_default();
    Ok(PictureHeader { size, reducible, orientation, channels, unsupported, ..PictureHeader::default() })
}

fn decode(data: &[u8], job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), ImageError> {
    let kept = job.memory.kept.take().and_then(|kept| kept.downcast::<Jpeg>().ok());
    let mut jpeg = kept.unwrap_or_default();
    let decoded = Header::read(data).and_then(|header| jpeg.decode(header, &job, out));
    job.memory.kept = Some(jpeg);
    decoded.map_err(|fault| fault.of(FORMAT.name))
}

/// Memory of a decoder, for one picture after the other.
#[derive(Default)]
struct Jpeg {
    entropy: EntropyData,
    tables: HuffmanTables,
    /// The coefficients of some units, if they come in one scan.
    group: Group,
    /// All coefficients, if they come in several scans.
    coefficients: Coefficients,
    rows: RowMemory,
}

/// Maximum number of blocks in all scans of a file: 100 scans of a picture of [`MOST_PIXELS`]. A progressive
/// file may have 883 scans of each component, in a few bytes each. The usual encoders write 10, careful ones
/// up to about 100, and libvips refuses more.
const MOST_BLOCKS: usize = MOST_PIXELS / 64 * 100;

/// Bytes between the last block and the marker behind it that strict decoders accept. By ITU T.81 only the last
/// byte is padded, but some encoders write more.
const PADDING: usize = 7;

/// The progress of a component while its data are incomplete.
#[derive(Clone, Copy)]
struct Progress {
    /// The bit that each coefficient has reached: 0 is the last one, and `NONE` is before the first one.
    reached: [u8; 64],
    quantization: [i16; 64],
}

const NONE: u8 = u8::MAX;

impl Progress {
    const NONE: Progress = Progress { reached: [NONE; 64], quantization: [0; 64] };
}

impl Jpeg {
    /// Decodes the pixels of a job to `out`, with one channel or three. It is cancelled between two scans.
    fn decode(
        &mut self,
        header: Header<'_>,
        job: &DecodeJob<'_>,
        out: &mut [u8],
    ) -> Result<(), PictureFault> {
        let Header { data, mut frame, tables, scan, colour, at } = header;
        frame.reduce(job.reduction);
        self.tables.forget();
        let progress = frame.components.try_map(|_| Ok::<_, PictureFault>(Progress::NONE))?;
        let inverted = tables.adobe.is_some();
        let target = Target { colour, inverted, rect: job.rect, channels: job.channels };
        let file = ScanReader { data, at, tables, frame: &frame, progress };
        if frame.progressive || scan.selected.len() < frame.components.len() {
            return self.decode_several_scans(file, scan, job, target, out);
        }
        self.decode_one_scan(file, &scan, job, target, out)
    }

    /// Decodes a sequential file whose components are in one scan. Rows of pixels are written while it is
    /// read.
    fn decode_one_scan(
        &mut self,
        mut file: ScanReader<'_>,
        scan: &Scan,
        job: &DecodeJob<'_>,
        target: Target,
        out: &mut [u8],
    ) -> Result<(), PictureFault> {
        check_cancelled(job)?;
        file.read_scan(scan, &mut self.tables, &mut self.entropy)?;
        let frame = file.frame;
        let parts = scan.selected.try_map(|selected| {
            Ok::<_, PictureFault>(SequentialPart {
                component: &frame.components[selected.component],
                number: selected.component,
                quantization: &file.progress[selected.component].quantization,
                codes: BlockCodes::new(&self.tables, selected)?,
            })
        })?;
        let rows = PictureRows::new(frame, target, out, &mut self.rows)?;
        let scan = ScanData { entropy: &self.entropy, restart: file.tables.restart, frame, scan };
        let unread = SequentialPicture { scan, parts, group: &mut self.group, rows }.run_vectors()?;
        if job.strict { file.check_end(unread) } else { Ok(()) }
    }

    /// Decodes a file whose coefficients come in several scans.
    fn decode_several_scans(
        &mut self,
        mut file: ScanReader<'_>,
        mut scan: Scan,
        job: &DecodeJob<'_>,
        mut target: Target,
        out: &mut [u8],
    ) -> Result<(), PictureFault> {
        let frame = file.frame;
        if frame.progressive {
            file.check_scans(&scan)?;
        }
        self.coefficients.clear(&frame.components)?;
        let unread = loop {
            check_cancelled(job)?;
            file.read_scan(&scan, &mut self.tables, &mut self.entropy)?;
            let data = ScanData { entropy: &self.entropy, restart: file.tables.restart, frame, scan: &scan };
            let coefficients = &mut self.coefficients;
            let unread = CoefficientScan::new(data, &self.tables, coefficients)?.run_vectors()?;
            let next = if file.is_complete() { None } else { file.next_scan()? };
            match next {
                Some(next) => scan = next,
                None => break unread,
            }
        };
        // Files may leave out the last bits, but not a component.
        if file.progress.iter().any(|progress| progress.reached[0] == NONE) {
            return Err(PictureFault::Truncated);
        }
        if job.strict {
            file.check_end(unread)?;
        }
        // Adobe's marker may also be between scans.
        target.inverted = file.tables.adobe.is_some();
        let rows = PictureRows::new(frame, target, out, &mut self.rows)?;
        let tables = file.progress.try_map(|progress| Ok::<_, PictureFault>(progress.quantization))?;
        CoefficientPicture { tables, coefficients: &self.coefficients, rows }.run_vectors();
        Ok(())
    }
}

fn check_cancelled(job: &DecodeJob<'_>) -> Result<(), PictureFault> {
    let cancelled = job.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed));
    if cancelled { Err(PictureFault::Cancelled) } else { Ok(()) }
}

/// A reader of one scan after the other.
struct ScanReader<'a> {
    /// The file.
    data: &'a [u8],
    /// Position behind the last header, or behind the last scan.
    at: usize,
    tables: SegmentTables<'a>,
    frame: &'a Frame,
    progress: PerComponent<Progress>,
}

impl ScanReader<'_> {
    /// Refuses a progressive file whose scans have too many blocks, before one of them is decoded. Other
    /// faults are found when the scans are decoded.
    fn check_scans(&self, first: &Scan) -> Result<(), PictureFault> {
        let mut rest = ScanReader { tables: SegmentTables::default(), ..*self };
        let mut blocks = first.blocks(self.frame);
        while let Ok(Some(scan)) = rest.next_scan() {
            blocks += scan.blocks(self.frame);
            if blocks > MOST_BLOCKS {
                return Err(PictureFault::Unsupported("JPEG with too many scans for its size"));
            }
        }
        Ok(())
    }

    /// Reads a scan's data, prepares its tables, and notes what it brings.
    fn read_scan(
        &mut self,
        scan: &Scan,
        tables: &mut HuffmanTables,
        entropy: &mut EntropyData,
    ) -> Result<(), PictureFault> {
        self.note_progress(scan)?;
        tables.define(&mut self.tables.huffman)?;
        if !self.frame.progressive {
            scan.selected.iter().for_each(|selected| tables.prepare_pairs(selected.ac));
        }
        let units: usize = scan.units(self.frame).iter().product();
        let parts = if self.tables.restart == 0 { 1 } else { units.div_ceil(self.tables.restart) };
        self.at = entropy.read(self.data, self.at, parts)?;
        Ok(())
    }

    /// Notes what a scan brings, and keeps the quantization tables of its components.
    fn note_progress(&mut self, scan: &Scan) -> Result<(), PictureFault> {
        for selected in scan.selected.iter() {
            let progress = &mut self.progress[selected.component];
            if progress.reached == [NONE; 64] {
                let number = self.frame.components[selected.component].table;
                let table = self.tables.quantization[number].as_ref();
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

    /// Returns true if all bits of all coefficients were read.
    fn is_complete(&self) -> bool {
        self.progress.iter().all(|progress| progress.reached == [0; 64])
    }

    /// Returns the header of the next scan. `None` at the end of the picture.
    fn next_scan(&mut self) -> Result<Option<Scan>, PictureFault> {
        loop {
            match self.tables.segment(self.data, &mut self.at, Some(self.frame))? {
                Segment::Scan(scan) => return Ok(Some(scan)),
                Segment::End => return Ok(None),
                Segment::Frame(_) | Segment::Other => {}
            }
        }
    }

    /// Refuses a file that does not end after its last scan, which has `unread` bytes behind its last block.
    /// Overwritten data end too early or too late. A progressive file without its last bits has been read up
    /// to its end, and is refused because there is no other one.
    fn check_end(&mut self, unread: usize) -> Result<(), PictureFault> {
        let rest = &self.data[self.at..];
        if unread > PADDING || rest.first().is_some_and(|byte| *byte != 0xff) || rest.starts_with(&[0xff, 0])
        {
            return Err(PictureFault::Corrupt("data after the pixels"));
        }
        match self.next_scan()? {
            Some(_) => Err(PictureFault::Corrupt("scan after the pixels")),
            None => Ok(()),
        }
    }
}
