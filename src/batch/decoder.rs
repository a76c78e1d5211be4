//! Decoders of columns: other values than those that the records have, made in the threads that parse them.

use super::column::Column;
use super::output::Batch;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A decoder of columns. A [`BatchParser`](super::BatchParser) calls it for each batch, in the thread that
/// parses the batch.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
/// use tfseek::batch::{Batch, ColumnDecoder, Dense, Values};
/// use tfseek::{BatchParser, DType, Error, ExampleBuilder, FeatureSpec, Schema};
///
/// /// Returns the lengths of texts instead of texts.
/// #[derive(Debug)]
/// struct Lengths;
///
/// impl ColumnDecoder for Lengths {
///     fn decode(&self, batch: &mut Batch, _: &Arc<AtomicBool>) -> Result<(), (Option<usize>, Error)> {
///         let texts = batch.bytes("text").map_err(|e| (None, e))?;
///         let lengths: Vec<i64> = texts.iter().map(|text| text.len() as i64).collect();
///         let shape = vec![lengths.len()];
///         batch.set("text", Dense::new(Values::Int64(lengths.into()), shape));
///         Ok(())
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
    /// Decodes columns of a batch in place, by [`Batch::get`] and [`Batch::set`]. Long work ends with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) soon after `cancelled` is set.
    ///
    /// # Errors
    /// The error of the lowest refused row, with its number. `None` for errors that no single row causes.
    fn decode(&self, batch: &mut Batch, cancelled: &Arc<AtomicBool>) -> Result<(), (Option<usize>, Error)>;

    /// Returns a text that is equal for decoders that make equal columns of equal records. A mix has rows of
    /// several data sets in one batch only if their decoders have one signature.
    fn signature(&self) -> &str;
}

impl Batch {
    /// Changes the column `name`. Has no effect if there is no such column.
    pub fn set(&mut self, name: &str, column: impl Into<Column>) {
        if let Some(number) = self.number(name) {
            self.set_column(number, |old| *old = column.into());
        }
    }
}
