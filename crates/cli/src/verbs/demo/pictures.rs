//! Pictures of the demo's records: the head of the animal that `feature2` names, by day or by night, above a
//! bar.

use super::WORDS;
use png::{BitDepth, ColorType, DeflateCompression, Encoder, EncodingError};

/// Width and height of a picture in pixels.
const SIDE: u32 = 24;
/// Width and height in cells of 2 x 2 pixels.
const CELLS: usize = 12;

/// Left halves of the heads, in the order of the words. The right halves mirror them. The letters are the
/// entries of a palette.
const HEADS: [[&[u8; CELLS / 2]; WORDS.len()]; CELLS - 1] = [
    [b".o....", b"......", b"....xx", b"..o...", b".x...."],
    [b".oo...", b"..oooo", b"...xxx", b"..oo.x", b".xx..."],
    [b".oxo..", b".xoooo", b"...ooo", b"..ooxx", b"..x..."],
    [b".ooooo", b"xxoooo", b"..oooo", b"...oxx", b"..xooo"],
    [b".ooooo", b"xxo#oo", b"..oooo", b"...oox", b".ooooo"],
    [b".oo#oo", b"xxoooo", b"..o#oo", b"...#oo", b"oo.ooo"],
    [b".ooooo", b"xxoooo", b"..oooo", b"...ooo", b"...#oo"],
    [b"##ooox", b".xooo#", b"..ooox", b"...ooo", b"...ooo"],
    [b"..oooo", b"..ooo#", b"...oxx", b"..oooo", b"...oo#"],
    [b"##ooo#", b"...ooo", b"...oox", b"..o#oo", b"....oo"],
    [b"...ooo", b"....ox", b"....oo", b"...ooo", b".....x"],
];
const LETTERS: &[u8; 4] = b".ox#";
/// Night and day.
const SKIES: [[u8; 3]; 2] = [[0x34, 0x47, 0x7f], [0xbf, 0xe3, 0xf5]];
/// Fur or feathers, and what stands out from them, in the order of the words.
const COATS: [[[u8; 3]; 2]; WORDS.len()] = [
    [[0xe8, 0x94, 0x3a], [0xf7, 0xb7, 0xa3]],
    [[0xd9, 0xb3, 0x82], [0x7a, 0x4b, 0x2a]],
    [[0xff, 0xff, 0xff], [0xd9, 0x3a, 0x2b]],
    [[0xa8, 0x65, 0x2f], [0x4a, 0x2a, 0x1a]],
    [[0xdd, 0xd8, 0xca], [0x8a, 0x7f, 0x6d]],
];
const EYES: [u8; 3] = [0x20, 0x20, 0x20];

/// All pictures, as PNG files. There are 130, so that each is drawn once.
pub(super) struct Pictures(Vec<Vec<u8>>);

impl Pictures {
    pub(super) fn draw() -> Result<Self, EncodingError> {
        let mut all = Vec::new();
        for sky in SKIES {
            for (word, [coat, mark]) in COATS.into_iter().enumerate() {
                let palette = [sky, coat, mark, EYES].concat();
                let head: Vec<u8> =
                    HEADS.iter().filter_map(|row| row.get(word)).flat_map(|half| mirrored(*half)).collect();
                for bar in 0..=CELLS {
                    let last = (0..CELLS).map(|x| if x < bar { 2 } else { 0 });
                    let cells: Vec<u8> = head.iter().copied().chain(last).collect();
                    all.push(encoded(&palette, &cells)?);
                }
            }
        }
        Ok(Pictures(all))
    }

    /// Returns the picture of a record: its sky follows from `feature0`, its animal from `feature1`, and its
    /// bar from `feature3`. The bar is empty at -3 and full at 3.
    pub(super) fn get(&self, day: bool, word: usize, float: f32) -> Option<&Vec<u8>> {
        let bar = ((float + 3.0) * CELLS as f32 / 6.0).round().clamp(0.0, CELLS as f32) as usize;
        self.0.get((usize::from(day) * WORDS.len() + word) * (CELLS + 1) + bar)
    }
}

/// Returns a row of cells, as entries of the palette.
fn mirrored(half: &[u8]) -> impl Iterator<Item = u8> {
    let entry = |letter| LETTERS.iter().position(|known| known == letter).unwrap_or(0) as u8;
    half.iter().chain(half.iter().rev()).map(entry)
}

fn encoded(palette: &[u8], cells: &[u8]) -> Result<Vec<u8>, EncodingError> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Two);
    encoder.set_palette(palette);
    // Its bytes remain the same, while the bytes of the compression levels may change with a release of the
    // crates.
    encoder.set_deflate_compression(DeflateCompression::FdeflateUltraFast);
    let mut writer = encoder.write_header()?;
    // A cell is two pixels wide and high, and a pixel two bits.
    let packed = |pair: &[u8]| pair.iter().fold(0, |byte, cell| (byte << 4) | (cell * 0b0101));
    let rows = cells.chunks(CELLS).map(|row| row.chunks(2).map(packed).collect::<Vec<u8>>());
    let pixels: Vec<u8> = rows.flat_map(|row| row.repeat(2)).collect();
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}
