//! What the twin has in place of the crate around the decoder.

/// The most pixels of a picture.
pub(super) const MOST_PIXELS: usize = 100_000_000;

/// A rectangle of pixels.
#[derive(Clone, Copy)]
pub(super) struct Rect {
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) height: usize,
    pub(super) width: usize,
}

/// A fault of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureFault {
    Truncated,
    Corrupt(&'static str),
    Unsupported(&'static str),
}

/// A part of the work.
pub(super) trait TwinWork {
    type Output;

    fn run(self) -> Self::Output;
}

/// Does the work, compiled for any processor.
pub(super) fn with_vectors<W: TwinWork>(work: W) -> W::Output {
    work.run()
}

/// Makes a vector of `len` values. Those that were there keep their values.
pub(super) fn resize<T: Clone + Default>(values: &mut Vec<T>, len: usize) -> Result<(), PictureFault> {
    values.resize(len, T::default());
    Ok(())
}
