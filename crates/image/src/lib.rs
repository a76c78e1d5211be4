//! Internal crate of tfseek: pictures in byte strings as arrays of pixels, decoded, cropped, resized and augmented.
//!
//! A [`Decoder`] recognizes files by their first bytes. An [`ImageSpec`] states all from the crop to the
//! numbers of a training tensor: integers, or floats as their bits. A [`PictureForm`] is what a data
//! set declares: pictures are decoded as they are, and with several frames.
//!
//! The formats, and the rules of TensorFlow for their channels and depths, are in tfseek's `docs/tfds.md`.
//! Full alpha is 255 also in a PNG of fewer than 8 bits, unlike there.
//!
//! **Frames of a GIF** are as large as the largest of them, and black at first. Each is painted over the one
//! before, whatever is to happen with that. A spec has the first one, which is decoded alone.
//!
//! **Pixels of a JPEG** are the same as from libjpeg-turbo with its accurate transform and smooth upsampling,
//! which Pillow and OpenCV use, bit by bit. **Damage** is an error as soon as data of a pixel are missing:
//! only the marker at the end may be. A GIF needs it, because frames may precede it. **Memory** is taken
//! after the header was checked: at most 100 million pixels, and not more than the data can fill, of which a
//! WebP of one colour has hardly any. It is kept for the next picture, but a WebP takes more for itself:
//! up to 7 bytes per pixel, and tables. **Time** is bounded too: the scans of a progressive JPEG have at most
//! 156 million blocks in all, which are 100 scans of the largest picture.
//!
//! ```
//! use tfseek_image::{Crop, Decoder, ImageSpec, PixelsMut};
//!
//! # fn picture() -> Vec<u8> { std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/yuv420.jpg")).unwrap() }
//! let spec = ImageSpec { size: Some([32, 32]), crop: Some(Crop::RandomResized), ..ImageSpec::default() };
//! let mut pixels = vec![0_u8; 32 * 32 * 3];
//! Decoder::default().decode_into(&picture(), &spec, 7, PixelsMut::U8(&mut pixels))?;
//! # Ok::<(), tfseek_image::ImageError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod augment;
mod bmp;
mod crop;
mod declared;
mod decoder;
mod error;
mod exif;
mod form;
mod format;
mod gif;
mod jpeg;
mod memory;
mod png;
mod pool;
mod resize;
mod row;
mod sample;
mod spec;
mod webp;

pub use decoder::{Decoder, Image, picture_geometry};
pub use error::ImageError;
pub use form::{PictureForm, PictureShape};
pub use pool::DecoderPool;
pub use sample::{PixelsMut, Sample};
pub use spec::Draws;
pub use tfseek::schema::{Crop, ImageSpec, Resize};
