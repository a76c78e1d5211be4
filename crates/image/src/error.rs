//! `ImageError`: the reason why a picture has no pixels.

use crate::form::{PictureForm, PictureShape};
use std::collections::TryReserveError;
use std::fmt;
use tfseek::ErrorKind;
pub(crate) use tfseek::schema::MOST_PIXELS;

/// The reason why a picture has no pixels.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The spec contradicts itself, or the memory for the pixels.
    Spec(String),
    /// The bytes are no picture of a known format.
    Format {
        /// The formats that are read.
        expected: String,
        /// The kind of the bytes.
        found: String,
    },
    /// The file ends before all pixels.
    Truncated {
        /// Format of the file.
        format: &'static str,
    },
    /// The file contradicts its format.
    Corrupt {
        /// Format of the file.
        format: &'static str,
        /// The part that is wrong.
        what: String,
    },
    /// The file is of a kind that is not read.
    Unsupported {
        /// The kind.
        what: &'static str,
    },
    /// The picture has too many pixels.
    TooLarge {
        /// The number of frames, of a GIF.
        frames: Option<usize>,
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
    },
    /// The picture does not have the size of the spec, or is smaller than its crop.
    Size {
        /// Height and width of the picture.
        found: [usize; 2],
        /// Height and width of the spec.
        expected: [u32; 2],
        /// True if a larger picture is cropped.
        crop: bool,
    },
    /// The picture does not have the declared form.
    Shape {
        /// Shape of the picture.
        found: PictureShape,
        /// The declared form.
        expected: PictureForm,
    },
    /// Memory for the pixels could not be allocated.
    Memory,
    /// [`Decoder::cancelled`](crate::Decoder::cancelled) was set.
    Cancelled,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::Spec(reason) => f.write_str(reason),
            ImageError::Format { expected, found } => write!(f, "expected {expected}, found {found}"),
            ImageError::Truncated { format } => write!(f, "{format}: the data end before all pixels"),
            ImageError::Corrupt { format, what } => write!(f, "{format}: invalid {what}"),
            ImageError::Unsupported { what } => write!(f, "not supported: {what}"),
            ImageError::TooLarge { frames, height, width } => {
                let frames = frames.map_or(String::new(), |frames| format!("{frames} x "));
                write!(f, "expected at most {MOST_PIXELS} pixels, found {frames}{height} x {width}")
            }
            ImageError::Size { found: [height, width], expected: [h, w], crop } => {
                let least = if *crop { "at least " } else { "" };
                write!(f, "expected {least}{h} x {w} pixels (height x width), found {height} x {width}")
            }
            ImageError::Shape { found, expected } => {
                write!(f, "expected a picture of the shape {expected}, found {found}")
            }
            ImageError::Memory => f.write_str("no memory for the pixels"),
            ImageError::Cancelled => f.write_str("cancelled by the caller"),
        }
    }
}

impl std::error::Error for ImageError {}

/// A fault of a file of a known format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFault {
    Truncated,
    Corrupt(&'static str),
    Unsupported(&'static str),
    Memory,
    Cancelled,
}

impl PictureFault {
    /// Returns the error of a file of this format.
    #[cold]
    pub(crate) fn of(self, format: &'static str) -> ImageError {
        match self {
            PictureFault::Truncated => ImageError::Truncated { format },
            PictureFault::Corrupt(what) => ImageError::Corrupt { format, what: what.to_owned() },
            PictureFault::Unsupported(what) => ImageError::Unsupported { what },
            PictureFault::Memory => ImageError::Memory,
            PictureFault::Cancelled => ImageError::Cancelled,
        }
    }
}

impl From<ImageError> for tfseek::Error {
    /// Returns [`ErrorKind::Picture`] for what is wrong with the bytes, and for nothing else: loaders may
    /// leave out such records.
    #[cold]
    fn from(e: ImageError) -> tfseek::Error {
        match e {
            ImageError::Memory => std::io::Error::from(std::io::ErrorKind::OutOfMemory).into(),
            ImageError::Cancelled => ErrorKind::Cancelled.into(),
            ImageError::Spec(reason) => ErrorKind::Spec(reason.into()).into(),
            e => ErrorKind::Picture { reason: e.to_string().into() }.into(),
        }
    }
}

impl ImageError {
    /// Returns the error of an invalid spec.
    pub(crate) fn of_spec(e: tfseek::Error) -> ImageError {
        match e.into_kind() {
            ErrorKind::Spec(reason) => ImageError::Spec(reason.into()),
            other => ImageError::Spec(other.to_string()),
        }
    }
}

impl From<TryReserveError> for PictureFault {
    fn from(_: TryReserveError) -> PictureFault {
        PictureFault::Memory
    }
}
