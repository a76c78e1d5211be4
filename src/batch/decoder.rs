//! Decoders of columns: other values than those that the records have, made in the threads that parse them.

use super::column::Values;
use super::output::Batch;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::ImageSpec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A [decoder of columns](super::BatchParser::decoder). It is called for each batch, in the thread that parses
/// the batch.
///
/// ```
/// use std::sync::Arc;
/// use tfseek::batch::{Batch, ColumnDecoder, DecodeContext, Dense, Values};
/// use tfseek::{BatchParser, DType, Error, ExampleBuilder, FeatureSpec, Schema};
///
/// /// Returns the lengths of texts instead of texts.
/// #[derive(Debug)]
/// struct Lengths;
///
/// impl ColumnDecoder for Lengths {
///     fn decode(&self, batch: &mut Batch, _: &DecodeContext<'_>) -> Result<Vec<(usize, Error)>, Error> {
///         let lengths: Vec<i64> = batch.bytes("text")?.iter().map(|text| text.len() as i64).collect();
///         let shape = vec![lengths.len()];
///         batch.set("text", Dense::new(Values::Int64(lengths.into()), shape));
///         Ok(Vec::new())
///     }
///
///     fn signature(&self) -> &str {
///         "the length of text"
///     }
/// }
///
/// let schema = Schema::example().feature("text", FeatureSpec::fixed_len(&[], DType::Bytes)).build()?;
/// let parser = BatchParser::new(&schema).decoder(Arc::new(Lengths));
/// let batch = parser.parse(&[ExampleBuilder::new().bytes("text", ["a", "bc"].map(str::as_bytes).into_iter().take(1)).encode()?])?;
/// assert_eq!(batch.int64("text")?, [1]);
/// # Ok::<(), tfseek::Error>(())
/// ```
pub trait ColumnDecoder: fmt::Debug + Send + Sync {
    /// Decodes columns of a batch in place, by [`Batch::get`] and [`Batch::set`]. Returns refused rows, at
    /// least the lowest one, and their errors. The batch is not used if there is one.
    ///
    /// # Errors
    /// Errors that no single row causes, and [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    fn decode(&self, batch: &mut Batch, context: &DecodeContext<'_>) -> Result<Vec<(usize, Error)>>;

    /// Returns a text that is equal for decoders that make equal columns of equal records: `""` if these follow
    /// from the schema. A mix has rows of several data sets in one batch only if their decoders have one
    /// signature.
    fn signature(&self) -> &str;
}

/// The inputs of a [`ColumnDecoder`] beside the batch.
#[non_exhaustive]
pub struct DecodeContext<'a> {
    /// The names and specs of the columns of pictures, whose values are files: of features, and after them of
    /// feature lists. A missing picture is an empty one. The column of a [geometry](ImageSpec::geometry) has no values before the decoder sets it.
    pub pictures: &'a [(Box<str>, ImageSpec)],
    /// Returns the random word of a row and a name, for pictures.
    pub draw: &'a dyn Fn(usize, &str) -> u64,
    /// Limit on the bytes of a column: the parser's [limit](super::BatchParser::limit).
    pub limit: u64,
    /// True for one row whose columns have no dimension of rows.
    pub single: bool,
    /// Long work ends soon after this is set.
    pub cancelled: &'a Arc<AtomicBool>,
}

impl Batch {
    /// Lets a decoder change the columns. Returns refused rows, ascending, and the first error of each.
    pub(super) fn decode(
        &mut self,
        decoder: &dyn ColumnDecoder,
        context: &DecodeContext<'_>,
    ) -> Result<Vec<(usize, Error)>> {
        let len = self.rows() as u64;
        let mut refused = decoder.decode(self, context)?;
        for (name, _) in context.pictures.iter().filter(|_| refused.is_empty()) {
            let column = self.get(name).or_else(|| self.feature_list(name));
            if column.is_some_and(|column| matches!(column.values(), Values::Bytes(_))) {
                return Err(
                    Error::spec("expected a decoder of pictures, found another one").feature(name.as_bytes())
                );
            }
        }
        refused.sort_by_key(|(row, _)| *row);
        refused.dedup_by_key(|(row, _)| *row);
        match refused.last() {
            Some(&(row, _)) if row as u64 >= len => {
                Err(ErrorKind::OutOfRange { what: "refused row", i: row as i128, len }.into())
            }
            _ => Ok(refused),
        }
    }
}
