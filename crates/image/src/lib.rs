//! Pictures in byte strings as arrays of pixels: decoded, cropped and resized, for training.
//!
//! [`Decoder`] reads JPEG and PNG, which it tells apart by their first bytes. An [`ImageSpec`] states the size, the channels, the crop and the
//! resize; the type of the values is that of the memory: `u8` or `u16`.
//!
//! | File | 3 channels | 1 channel | 4 channels |
//! | --- | --- | --- | --- |
//! | PNG, grey | repeated | as it is | repeated, and alpha |
//! | PNG, RGB or palette | as it is | (9797 r + 19234 g + 3737 b) >> 15 | RGB and alpha |
//! | PNG with alpha | alpha is dropped | alpha is dropped, then as above | as it is |
//! | JPEG, grey or YCbCr | grey is repeated | brightness | error |
//! | JPEG, CMYK or YCCK | the inks on white | error | error |
//!
//! Alpha is that of the file, of its transparent colour, or full. 16 bits become 8 by `>> 8`. 8 bits become 16 by `* 257`, or `* 256` if they
//! are those of a JPEG. The orientation in EXIF data is ignored.
//!
//! **Pixels of a JPEG** are those of libjpeg-turbo with its accurate transform and smooth upsampling, which Pillow and OpenCV use, bit by bit.
//! **Damage** is an error as soon as data of a pixel are missing: only the marker at the end may be.
//! **Memory** is taken after the header was checked: at most 100 million pixels, and not more than the data can fill. It is kept for the next picture.
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

mod cpu;
mod crop;
mod decoder;
mod error;
mod jpeg;
mod memory;
mod png;
mod pool;
mod resize;
mod sample;
mod spec;

pub use decoder::{Decoder, Image};
pub use error::ImageError;
pub use pool::DecoderPool;
pub use sample::Sample;
pub use tfseek::schema::{Crop, ImageSpec, Resize};
