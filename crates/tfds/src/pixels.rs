//! Pixels of pictures.

use crate::array::Numbers;
use crate::compile::Leaf;
use tfseek::Result;

/// Decoders of pictures, for the threads that read.
#[derive(Default)]
pub(crate) struct PictureDecoders {}

impl PictureDecoders {
    /// Decodes a picture to the end of `out`, and returns its shape.
    pub(crate) fn decode(&self, _leaf: &Leaf, _file: &[u8], _out: &mut Numbers) -> Result<Vec<usize>> {
        Err(crate::item::wrong("pictures"))
    }
}
