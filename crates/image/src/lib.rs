//! Internal crate of tfseek: pictures in byte strings as arrays of pixels, decoded, cropped and resized.
//!
//! [`Decoder`] reads JPEG and PNG, which it tells apart by their first bytes. An [`ImageSpec`] states the
//! size, the channels, the crop and the resize; the values have the memory's type: `u8` or `u16`. A
//! [`PictureForm`] is what a data set declares: pictures are decoded as they are, also BMP, and the frames of
//! a GIF.
//!
//! | File | 3 channels | 1 channel | 4 channels | None declared |
//! | --- | --- | --- | --- | --- |
//! | PNG, grey | repeated | as it is | repeated, and alpha | 1 |
//! | PNG, RGB or palette | as it is | (9797 r + 19234 g + 3737 b) >> 15 | RGB and alpha | 3, or 4 for a palette with alpha |
//! | PNG with alpha | alpha is dropped | alpha is dropped, then as above | as it is | 2 or 4 |
//! | JPEG, grey or YCbCr | grey is repeated | brightness | error | 1 or 3 |
//! | JPEG, CMYK or YCCK | the inks on white | error | error | 3 |
//! | BMP of 8 bits, without its palette | repeated | error | repeated, and alpha | 1 |
//! | BMP of 24 or 32 bits | alpha is dropped | error | RGB and alpha | 3 or 4 |
//! | GIF | all frames | error | error | 3 |
//!
//! Alpha comes from the file, from its transparent colour, or is full. 16 bits become 8 by `>> 8`. 8 bits
//! become 16 by `* 257`, or `* 256` if they do not come from a PNG. The orientation in EXIF data is ignored.
//! These are the rules of TensorFlow, except that full alpha is 255 also in a PNG of fewer than 8 bits.
//!
//! **Frames of a GIF** are as large as the largest of them, and black at first. Each is painted over the one
//! before, whatever is to happen with that.
//!
//! **Pixels of a JPEG** are the same as from libjpeg-turbo with its accurate transform and smooth upsampling,
//! which Pillow and OpenCV use, bit by bit. **Damage** is an error as soon as data of a pixel are missing:
//! only the marker at the end may be. A GIF needs it, because frames may precede it. **Memory** is taken
//! after the header was checked: at most 100 million pixels, and not more than the data can fill. It is kept
//! for the next picture. **Time** is bounded too: the scans of a progressive JPEG have at most 156 million
//! blocks in all, which are 100 scans of the largest picture.
//!
//! ```
//! use tfseek_image::{Crop, Decoder, ImageSpec};
//!
//! # fn picture() -> Vec<u8> { std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/yuv420.jpg")).unwrap() }
//! let spec = ImageSpec { size: Some([32, 32]), crop: Some(Crop::RandomResized), ..ImageSpec::default() };
//! let mut pixels = vec![0_u8; 32 * 32 * 3];
//! Decoder::new().decode_into(&picture(), &spec, 7, &mut pixels)?;
//! # Ok::<(), tfseek_image::ImageError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bmp;
mod cpu;
mod crop;
mod declared;
mod decoder;
mod error;
mod form;
mod gif;
mod jpeg;
mod memory;
mod png;
mod pool;
mod resize;
mod sample;
mod spec;

pub use declared::PixelsMut;
pub use decoder::{Decoder, Image};
pub use error::ImageError;
pub use form::{PictureForm, PictureShape};
pub use pool::DecoderPool;
pub use sample::Sample;
pub use tfseek::schema::{Crop, ImageSpec, Resize};
