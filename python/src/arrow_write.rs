//! `tfseek.write`: record batches of any library as records, in files or as a data set.

use crate::error::{BindingError, Result};
use crate::exit;
use crate::foreign::ForeignStream;
use crate::options::{Choice, Float64, argument};
use crate::reshard::{ShardsOption, size_argument};
use crate::wait::{self, Progress, Unit};
use arrow_schema::Schema as ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tfseek::{Compression, ErrorKind};
use tfseek_arrow::{Encoder, EncoderOptions};
use tfseek_tfds::{Features, SetMetadata, TfdsError};
use tfseek_tools::reshard::ReshardSet;
use tfseek_tools::set::{DataSetWriter, SetOptions, SetWriter};

/// A set that was written: its path, its shards, and the numbers of records and bytes.
pub(crate) type Written = (OsString, Vec<OsString>, u64, u64);

/// Returns the error of a batch. `before` is the number of rows before it, and `part` a text before the
/// message.
fn row_error(e: tfseek_arrow::Error, before: u64, part: &str) -> BindingError {
    let e = match e.into_record_error() {
        Ok(e) => return e.into(),
        Err(e) => e,
    };
    let row = e.row.map(|row| before + row as u64);
    let column = e.column.as_deref().map_or_else(String::new, |column| format!("column {column:?}: "));
    let row_text = row.map_or_else(String::new, |row| format!("row {row}: "));
    let hint = match e.kind {
        tfseek_arrow::ErrorKind::Inexact(_) => " (float64=\"round\" stores the nearest float32)",
        _ => "",
    };
    BindingError::Value(format!("{part}{row_text}{column}{}{hint}", e.kind), row, e.column)
}

/// A stream with the encoder of its rows.
pub(crate) struct StreamRows {
    stream: ForeignStream,
    encoder: Encoder,
    /// A text before the messages of errors, which names the part of a set.
    part: String,
}

impl StreamRows {
    pub(crate) fn new(
        py: Python<'_>,
        stream: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyDict>,
    ) -> Result<StreamRows> {
        let mut options = EncoderOptions::new();
        for column in argument::<Vec<String>>(arguments, "feature_lists")? {
            options = options.feature_list(column);
        }
        for (column, feature) in argument::<Vec<(String, String)>>(arguments, "rename")? {
            options = options.rename(column, feature);
        }
        options.round_float64 = rounds(arguments)?;
        StreamRows::encoded(py, stream, String::new(), |schema| Encoder::new(schema, &options))
    }

    /// Begins a stream, whose rows the encoder of its schema makes records.
    fn encoded(
        py: Python<'_>,
        stream: &Bound<'_, PyAny>,
        part: String,
        encoder: impl FnOnce(&ArrowSchema) -> Result<Encoder, tfseek_arrow::Error>,
    ) -> Result<StreamRows> {
        let stream = ForeignStream::begin(stream)?;
        match encoder(&stream.schema()) {
            Ok(encoder) => Ok(StreamRows { stream, encoder, part }),
            Err(e) => {
                // Its functions may wait for a thread that needs the GIL.
                py.detach(|| drop(stream));
                Err(e.into())
            }
        }
    }

    /// Calls `write` with the payload of each row. `advance` is called with the number of rows, and may end
    /// the work.
    pub(crate) fn write(
        &mut self,
        advance: &dyn Fn(u64) -> ControlFlow<()>,
        mut write: impl FnMut(&[u8]) -> tfseek::Result<()>,
    ) -> Result<()> {
        let mut before = 0u64;
        let StreamRows { stream, encoder, part } = self;
        let failed = |text: String| BindingError::Text(format!("{part}stream: {text}"));
        while let Some(batch) = stream.next().map_err(failed)? {
            let encoded = encoder.encode(&batch, |payload| {
                write(payload)?;
                if advance(1).is_break() || stream.is_cancelled() {
                    return Err(ErrorKind::Cancelled.into());
                }
                Ok(())
            });
            encoded.map_err(|e| row_error(e, before, part))?;
            before += batch.num_rows() as u64;
            if advance(0).is_break() || stream.is_cancelled() {
                return Err(ErrorKind::Cancelled.into());
            }
        }
        Ok(())
    }
}

/// Writes the rows of a stream to a file or a set of shards. `tfseek.write` calls it and has the
/// documentation.
#[pyfunction]
pub(crate) fn write_stream(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Written> {
    let options = set_options(arguments)?;
    let progress = Progress::new(py, progress, "writing", Unit::Records)?;
    let mut rows = StreamRows::new(py, stream, arguments)?;
    let written = wait::run(py, progress, false, move |call| {
        call.expect(options.records);
        let advance = call.callback();
        let mut writer = SetWriter::new(&options)?;
        rows.write(&advance, |payload| writer.write(payload))?;
        Ok(writer.close(&|_| advance(0))?)
    });
    exit::stop_at_exit(py);
    Ok(of_set(written?))
}

/// Writes streams as the splits of a data set with the features of a folder. `tfseek.write` calls it and has
/// the documentation.
#[pyfunction]
pub(crate) fn write_data_set(
    py: Python<'_>,
    splits: Vec<(String, Bound<'_, PyAny>, Option<u64>)>,
    features: PathBuf,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Vec<Written>> {
    let options = set_options(arguments)?;
    let mut encoding = EncoderOptions::new();
    encoding.round_float64 = rounds(arguments)?;
    let progress = Progress::new(py, progress, "writing", Unit::Records)?;
    let (metadata, features) = py.detach(|| -> Result<_, TfdsError> {
        let metadata = SetMetadata::find(&features, None)?;
        let (features, _) = Features::read(metadata.folder(), None)?;
        Ok((metadata, features))
    })?;
    let mut rows = Vec::new();
    for (name, stream, records) in splits {
        let encoder = |schema: &ArrowSchema| Encoder::of_features(&features, schema, &encoding);
        let part = format!("split {name:?}: ");
        let stream = StreamRows::encoded(py, &stream, part, encoder)?;
        rows.push((name, stream, records));
    }
    let written = wait::run(py, progress, false, move |call| {
        call.expect(rows.iter().try_fold(0u64, |sum, (_, _, records)| sum.checked_add((*records)?)));
        let advance = call.callback();
        let mut writer = DataSetWriter::new(metadata, &options)?;
        for (name, mut rows, records) in rows {
            writer.split(&name, records, &|_| advance(0), |split| {
                rows.write(&advance, |payload| split.write(payload))
            })?;
        }
        Ok(writer.close()?)
    });
    exit::stop_at_exit(py);
    Ok(written?.into_iter().map(of_set).collect())
}

/// Returns true if numbers of float64 columns are rounded.
fn rounds(arguments: &Bound<'_, PyDict>) -> Result<bool> {
    let Choice::<Float64>(float64) = argument(arguments, "float64")?;
    Ok(float64 == Float64::Round)
}

/// Returns the options of `tfseek.write`.
fn set_options(arguments: &Bound<'_, PyDict>) -> Result<SetOptions> {
    let mut options = SetOptions::new(argument::<PathBuf>(arguments, "out")?);
    options.shards = argument::<Option<ShardsOption>>(arguments, "shards")?.map(|shards| shards.0);
    options.records = argument(arguments, "rows")?;
    let compression: Option<Choice<Compression>> = argument(arguments, "compression")?;
    options.compression = compression.map(|choice| choice.0);
    options.members = size_argument(arguments, "members")?;
    options.index = argument(arguments, "index")?;
    options.force = argument(arguments, "force")?;
    Ok(options)
}

/// Returns a set for Python.
pub(crate) fn of_set(set: ReshardSet) -> Written {
    (set.path.into(), set.shards.into_iter().map(OsString::from).collect(), set.records, set.bytes)
}
