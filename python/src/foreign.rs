//! Streams of record batches, and schemas, that other libraries make.

use crate::error::{BindingError, Result};
use crate::exit::StreamCall;
use crate::rows::type_name;
use crate::wait::locked;
use arrow_array::RecordBatch;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::{ArrowError, Schema as ArrowSchema, SchemaRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Mutex;
use tfseek::error::catch_panic;

/// A stream of another library, or of a [`Scan`](tfseek_arrow::Scan). It is read and dropped in any thread,
/// without the GIL: a library whose functions need the GIL takes it itself.
pub(crate) struct ForeignStream {
    reader: ArrowArrayStreamReader,
    /// Ends after the stream is released: fields are dropped in this order.
    call: StreamCall,
}

impl ForeignStream {
    /// Begins a stream of an object that has the method `__arrow_c_stream__`.
    pub(crate) fn begin(object: &Bound<'_, PyAny>) -> Result<ForeignStream> {
        let py = object.py();
        let found = type_name(object);
        let method = object.getattr_opt(intern!(py, "__arrow_c_stream__"))?.ok_or_else(|| {
            BindingError::type_error(format!(
                "stream: expected an object with the method __arrow_c_stream__, such as a table or a data frame, found {found}"
            ))
        })?;
        let call = StreamCall::begin(py);
        let capsule = method.call0()?;
        let not_a_stream = |what: String| {
            BindingError::type_error(format!(
                "stream: expected a stream of record batches from {found}, found {what}"
            ))
        };
        let capsule = capsule
            .cast::<PyCapsule>()
            .map_err(|_| not_a_stream(format!("an object of type {}", type_name(&capsule))))?;
        let stream = taken(capsule).map_err(|_| not_a_stream("a capsule of another name".to_owned()))?;
        // The stream may wait for a thread that needs the GIL. It may be in its last state, or fail to state
        // its schema.
        match py.detach(|| guarded(|| ArrowArrayStreamReader::try_new(stream))) {
            Ok(reader) => Ok(ForeignStream { reader, call }),
            Err(e) => Err(not_a_stream(format!("an error: {}", text(e)))),
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        arrow_array::RecordBatchReader::schema(&self.reader)
    }

    /// Returns true if no further batch is needed because the interpreter ends.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Returns the next record batch. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        guarded(|| self.reader.next().transpose()).map_err(text)
    }
}

/// Returns the Arrow schema of an object that has the method `__arrow_c_schema__`.
pub(crate) fn arrow_schema(object: &Bound<'_, PyAny>) -> Result<ArrowSchema> {
    let capsule = object.call_method0(intern!(object.py(), "__arrow_c_schema__"))?;
    let refused = |what: &str| {
        let found = type_name(object);
        BindingError::type_error(format!("spec: expected the schema of a table from {found}, found {what}"))
    };
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| refused("another object"))?;
    let schema = converted(capsule).map_err(|_| refused("a capsule of another name"))?;
    schema.map_err(|e| refused(&text(e)))
}

/// Converts the schema in a capsule.
#[allow(unsafe_code)]
fn converted(capsule: &Bound<'_, PyCapsule>) -> PyResult<Result<ArrowSchema, ArrowError>> {
    let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: by Arrow's PyCapsule interface, a capsule of this name holds a pointer to an initialized and
    // aligned ArrowSchema, which lives as long as the capsule. The capsule is alive until this function
    // returns, and was returned to this thread for this call, so nothing changes the schema meanwhile. It is
    // only read: the capsule releases it.
    let schema = unsafe { pointer.as_ref() };
    Ok(guarded(|| ArrowSchema::try_from(schema)))
}

/// Takes the stream out of a capsule. One thread does so at a time, because two may have the same capsule in
/// an interpreter without the GIL.
#[allow(unsafe_code)]
fn taken(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    static TAKING: Mutex<()> = Mutex::new(());
    let _taking = locked(&TAKING);
    let mut pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by Arrow's PyCapsule interface, a capsule of this name holds a pointer to an initialized and
    // aligned ArrowArrayStream, which lives as long as the capsule, and one consumer takes it. The capsule is
    // alive here, and this function is not run by two threads at once. The stream is moved out, and the one
    // in the capsule is marked as released, so the capsule does not release it a second time.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_mut()) })
}

/// Calls `f`, which panics for a stream that fails without a message, and for a schema without a format.
fn guarded<T>(f: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_panic(f).unwrap_or_else(|_| {
        Err(ArrowError::CDataInterface("the stream failed, and stated no reason".to_owned()))
    })
}

/// Returns the message of an error, without the name of the interface.
fn text(e: ArrowError) -> String {
    match e {
        ArrowError::CDataInterface(text) => text,
        e => e.to_string(),
    }
}
