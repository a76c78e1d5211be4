//! The parts that all clones of a decoder share.

use crate::array::NumberPools;
use crate::compile::DecodePlan;
use crate::pixels::PictureDecoders;
use tfseek::BatchParser;

/// The parts of a [`Decoder`](crate::Decoder).
pub(crate) struct DecoderParts {
    pub(crate) plan: DecodePlan,
    /// Finds the stored values of single records.
    pub(crate) records: BatchParser,
    pub(crate) pools: NumberPools,
    pub(crate) pictures: PictureDecoders,
}
