//! Streams of Arrow's C interface, whose functions any thread may call at any time.
//!
//! The interface leaves it to the consumer to call one function at a time, and consumers do not: PyArrow
//! calls `get_next` of one reader from several threads. So a struct contains no pointer but a number, and a
//! table of this process has the streams with their numbers. A function that finds no stream of its number
//! returns an error, also while another thread releases the stream, after the release, in a second copy of
//! the struct, and in a forked child, where the stream's threads do not exist.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tfseek::error::catch_panic;
use tfseek::io::PerProcess;

/// `errno` values, equal on all platforms.
const EIO: c_int = 5;
const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;

const CLOSED: &CStr =
    c"expected an open stream of this process, found one that was released or that began before a fork: begin a new stream";

/// Returns a stream of Arrow's C interface with the batches of a reader.
///
/// Its functions may be called by several threads at once. Each batch is returned once, and calls of
/// `get_next` wait for each other. The stream ends after an error. The reader is dropped by `release`, or by
/// the last call that runs meanwhile. Calls after `release` return an error. The text that `get_last_error`
/// returns stays valid while the process lives. It remains the last error when a later call succeeds. The
/// struct itself belongs to the consumer, who must not free it while a call has its address.
///
/// In a forked child each call returns an error, and the reader is never dropped.
pub fn c_stream(reader: impl RecordBatchReader + Send + 'static) -> FFI_ArrowArrayStream {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // Numbers continue in a forked child, so that the numbers of its parent's streams are not used again.
    let number = LAST.fetch_add(1, Relaxed).wrapping_add(1);
    let stream = OpenStream {
        schema: reader.schema(),
        reader: Mutex::new(Some(Box::new(reader))),
        last_error: Mutex::new(None),
    };
    locked(&table().streams).insert(number, Arc::new(stream));
    FFI_ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: ptr::without_provenance_mut(number),
    }
}

/// A stream that was not released.
struct OpenStream {
    schema: SchemaRef,
    /// `None` after an error.
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
    last_error: Mutex<Option<&'static CStr>>,
}

impl OpenStream {
    /// Returns the next batch, or a released array at the end.
    fn next(&self) -> Result<FFI_ArrowArray, ArrowError> {
        let mut reader = locked(&self.reader);
        // An error or a panic drops the reader.
        let Some(mut batches) = reader.take() else { return Ok(FFI_ArrowArray::empty()) };
        let batch = batches.next().transpose()?;
        *reader = Some(batches);
        drop(reader);
        Ok(batch.map_or_else(FFI_ArrowArray::empty, |batch| {
            FFI_ArrowArray::new(&StructArray::from(batch).into_data())
        }))
    }

    /// Calls `f`, and keeps the text of its error. A panic is an error, because it must not reach the
    /// consumer.
    fn call<T>(&self, f: impl FnOnce(&OpenStream) -> Result<T, ArrowError>) -> Result<T, c_int> {
        let result = catch_panic(|| f(self)).unwrap_or_else(|_| {
            Err(ArrowError::CDataInterface("expected the next batch, found a panic".to_owned()))
        });
        result.map_err(|e| {
            let text = match &e {
                // Arrow would write "External error" before it.
                ArrowError::ExternalError(e) => e.to_string(),
                e => e.to_string(),
            };
            *locked(&self.last_error) = Some(table().text(&text));
            match e {
                ArrowError::MemoryError(_) => ENOMEM,
                ArrowError::IoError(..) => EIO,
                _ => EINVAL,
            }
        })
    }
}

/// The streams of a process.
#[derive(Default)]
struct StreamTable {
    streams: Mutex<BTreeMap<usize, Arc<OpenStream>>>,
    /// Each text once. They are never freed, because a thread may read one while another releases its stream.
    texts: Mutex<BTreeSet<&'static CStr>>,
}

/// Returns the table of this process.
fn table() -> &'static StreamTable {
    static TABLE: PerProcess<StreamTable> = PerProcess::new();
    TABLE.own()
}

impl StreamTable {
    fn text(&self, text: &str) -> &'static CStr {
        let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        let mut texts = locked(&self.texts);
        texts.get(&*text).copied().unwrap_or_else(|| {
            let text: &CStr = Box::leak(text.into_boxed_c_str());
            texts.insert(text);
            text
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number in a stream.
///
/// # Safety
/// `stream` is null, or points to a struct that [`c_stream`] returned, or to a copy of one.
#[allow(unsafe_code)]
unsafe fn number(stream: *const FFI_ArrowArrayStream) -> usize {
    // SAFETY: the pointer is not null, so it points to an initialized struct. It is aligned, and lives until
    // the call ends, because C code calls the struct's function with its address. No function of this file
    // writes the field.
    if stream.is_null() { 0 } else { unsafe { (&raw const (*stream).private_data).read().addr() } }
}

fn find(number: usize) -> Option<Arc<OpenStream>> {
    locked(&table().streams).get(&number).cloned()
}

/// Calls `f` with the stream of a number.
fn called<T>(number: usize, f: impl FnOnce(&OpenStream) -> Result<T, ArrowError>) -> Result<T, c_int> {
    find(number).ok_or(EINVAL)?.call(f)
}

/// Moves a value to the memory of the consumer, and returns 0, or the code of the error.
///
/// # Safety
/// `out` is null or valid for writes.
#[allow(unsafe_code)]
unsafe fn give<T>(value: Result<T, c_int>, out: *mut T) -> c_int {
    match value {
        Ok(_) if out.is_null() => EINVAL,
        Ok(value) => {
            // SAFETY: not null, so the memory is valid for writes. What it contains is not dropped: it may be
            // uninitialized.
            unsafe { out.write_unaligned(value) };
            0
        }
        Err(code) => code,
    }
}

/// # Safety
/// By Arrow's C interface, `stream` points to the struct with this function, and `out` to memory for a
/// schema.
#[allow(unsafe_code)]
unsafe extern "C" fn get_schema(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the same conditions.
    unsafe { give(called(number(stream), |found| FFI_ArrowSchema::try_from(&*found.schema)), out) }
}

/// # Safety
/// By Arrow's C interface, `stream` points to the struct with this function, and `out` to memory for an
/// array.
#[allow(unsafe_code)]
unsafe extern "C" fn get_next(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: the same conditions.
    unsafe { give(called(number(stream), OpenStream::next), out) }
}

/// # Safety
/// By Arrow's C interface, `stream` points to the struct with this function.
#[allow(unsafe_code)]
unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the same condition.
    let Some(stream) = find(unsafe { number(stream) }) else { return CLOSED.as_ptr() };
    let text = *locked(&stream.last_error);
    text.map_or(ptr::null(), CStr::as_ptr)
}

/// # Safety
/// By Arrow's C interface, `stream` points to the struct with this function.
#[allow(unsafe_code)]
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the same condition.
    let number = unsafe { number(stream) };
    // The lock of the table is not held while the reader is dropped.
    let found = locked(&table().streams).remove(&number);
    // A panic must not reach the consumer.
    drop(catch_panic(|| drop(found)));
    if !stream.is_null() {
        // SAFETY: the struct is valid, and its functions are pointers, for which null is `None`. The store is
        // atomic, because two threads may release the stream at once. No other function of this file accesses
        // the field.
        let field = unsafe { AtomicPtr::from_ptr((&raw mut (*stream).release).cast::<*mut ()>()) };
        field.store(ptr::null_mut(), Relaxed);
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
    use arrow_schema::{DataType, Field, Schema};
    use std::sync::Barrier;
    use std::thread;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("i", DataType::Int64, false)]))
    }

    /// Batches of 1, 2, .. rows, and then an error if there is a text.
    fn reader(batches: usize, error: Option<&'static str>) -> impl RecordBatchReader + Send + 'static {
        let batch = |rows: usize| {
            let values = Int64Array::from_iter_values(0..rows as i64);
            RecordBatch::try_new(schema(), vec![Arc::new(values)])
        };
        let error = error.map(|text| Err(ArrowError::ComputeError(text.to_owned())));
        RecordBatchIterator::new((1..=batches).map(batch).chain(error), schema())
    }

    /// A stream as C code has it: the functions, and the address of the struct.
    #[derive(Clone, Copy)]
    struct Consumer {
        address: usize,
        get_schema: unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut FFI_ArrowSchema) -> c_int,
        get_next: unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut FFI_ArrowArray) -> c_int,
        get_last_error: unsafe extern "C" fn(*mut FFI_ArrowArrayStream) -> *const c_char,
        release: unsafe extern "C" fn(*mut FFI_ArrowArrayStream),
    }

    impl Consumer {
        fn new(stream: FFI_ArrowArrayStream) -> Consumer {
            Consumer {
                get_schema: stream.get_schema.unwrap(),
                get_next: stream.get_next.unwrap(),
                get_last_error: stream.get_last_error.unwrap(),
                release: stream.release.unwrap(),
                address: Box::into_raw(Box::new(stream)).expose_provenance(),
            }
        }

        fn stream(self) -> *mut FFI_ArrowArrayStream {
            ptr::with_exposed_provenance_mut(self.address)
        }

        fn schema(self) -> Result<FFI_ArrowSchema, c_int> {
            let mut out = FFI_ArrowSchema::empty();
            // SAFETY: the struct and the memory for the schema are valid.
            match unsafe { (self.get_schema)(self.stream(), &mut out) } {
                0 => Ok(out),
                code => Err(code),
            }
        }

        /// Returns the rows of the next batch. 0 at the end.
        fn rows(self) -> Result<usize, c_int> {
            let mut out = FFI_ArrowArray::empty();
            // SAFETY: the struct and the memory for the array are valid.
            match unsafe { (self.get_next)(self.stream(), &mut out) } {
                0 if out.is_released() => Ok(0),
                0 => Ok(out.len()),
                code => Err(code),
            }
        }

        fn error(self) -> String {
            // SAFETY: the struct is valid, and the text is kept while the process lives.
            unsafe {
                let text = (self.get_last_error)(self.stream());
                if text.is_null() { String::new() } else { CStr::from_ptr(text).to_str().unwrap().to_owned() }
            }
        }

        fn release(self) {
            // SAFETY: the struct is valid.
            unsafe { (self.release)(self.stream()) }
        }

        /// Frees the struct, after all calls.
        fn free(self) {
            // SAFETY: the pointer of `Box::into_raw`. No thread uses it any more.
            drop(unsafe { Box::from_raw(self.stream()) });
        }
    }

    #[test]
    fn four_threads_get_each_batch_once() {
        const BATCHES: usize = if cfg!(miri) { 20 } else { 10_000 };
        let consumer = Consumer::new(c_stream(reader(BATCHES, Some("damage"))));
        let read = || {
            let mut found = Vec::new();
            let mut errors = 0;
            loop {
                assert_eq!(consumer.schema().unwrap().format(), "+s");
                match consumer.rows() {
                    Ok(0) => break (found, errors),
                    Ok(rows) => found.push(rows),
                    Err(code) => {
                        assert_eq!((code, consumer.error()), (EINVAL, "Compute error: damage".to_owned()));
                        errors += 1;
                    }
                }
                consumer.error();
            }
        };
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(found.iter().map(|(_, errors)| errors).sum::<usize>(), 1);
        let mut rows: Vec<_> = found.into_iter().flat_map(|(found, _)| found).collect();
        rows.sort_unstable();
        assert_eq!(rows, (1..=BATCHES).collect::<Vec<_>>());
        consumer.release();
        consumer.free();
    }

    #[test]
    fn threads_release_a_stream_while_others_use_it() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 10_000 };
        let consumers: Vec<_> = (0..ROUNDS)
            .map(|k| Consumer::new(c_stream(reader(k % 5, (k % 2 == 0).then_some("damage")))))
            .collect();
        let start = Barrier::new(4);
        let work = |thread: usize| {
            for (round, consumer) in consumers.iter().enumerate() {
                start.wait();
                for call in 0..4 {
                    match (thread + round + call) % 4 {
                        0 => drop(consumer.rows()),
                        1 => drop(consumer.schema()),
                        2 => drop(consumer.error()),
                        _ => consumer.release(),
                    }
                }
                assert_eq!(consumer.rows(), Err(EINVAL), "released by this thread");
                assert!(consumer.error().contains("found one that was released"), "{}", consumer.error());
            }
        };
        thread::scope(|scope| (0..4).for_each(|thread| drop(scope.spawn(move || work(thread)))));
        for consumer in consumers {
            consumer.free();
        }
    }

    #[test]
    fn a_reader_is_dropped_with_its_stream() {
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let batches = std::iter::from_fn(move || {
            let _ = &kept;
            None
        });
        let stream = c_stream(RecordBatchIterator::new(batches, schema()));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(stream);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn errors_and_panics_are_texts() {
        let consumer = Consumer::new(c_stream(reader(0, Some("feature \"a\0b\""))));
        assert_eq!(consumer.error(), "");
        assert_eq!((consumer.rows(), consumer.rows()), (Err(EINVAL), Ok(0)), "a stream ends after an error");
        assert_eq!(consumer.error(), "Compute error: feature \"a\\0b\"");
        consumer.free();

        let panics = std::iter::from_fn(|| panic!("no batch"));
        let consumer = Consumer::new(c_stream(RecordBatchIterator::new(panics, schema())));
        assert_eq!((consumer.rows(), consumer.rows()), (Err(EINVAL), Ok(0)));
        assert_eq!(consumer.error(), "C Data interface error: expected the next batch, found a panic");
        assert!(consumer.schema().is_ok());
        // SAFETY: memory for a result that is null, and a struct that is null, are errors.
        unsafe {
            assert_eq!((consumer.get_schema)(consumer.stream(), ptr::null_mut()), EINVAL);
            assert_eq!((consumer.get_next)(ptr::null_mut(), ptr::null_mut()), EINVAL);
            (consumer.release)(ptr::null_mut());
        }
        consumer.free();
    }
}
