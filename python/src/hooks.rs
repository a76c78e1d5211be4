//! The Python functions and classes that Rust calls. All of them are in `tfseek/_rust.py`, and each is looked
//! up once.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

macro_rules! hooks {
    ($($name:ident = $attribute:literal;)*) => {$(
        pub(crate) fn $name<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
            static FOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            FOUND.import(py, "tfseek._rust", $attribute)
        }
    )*};
}

hooks! {
    sparse = "Sparse";
    ragged = "Ragged";
    pictures = "pictures";
    bfloat16 = "bfloat16";
    byte_buffer = "byte_buffer";
    bytes = "Bytes";
    dataset_html = "dataset_html";
    example_html = "example_html";
    sequence_html = "sequence_html";
    feature_column = "Column";
    features = "features";
    feature_lists = "feature_lists";
    positions = "positions";
    filesystem = "filesystem_of";
    features_again = "features_again";
    progress_of = "progress_of";
    reopen = "reopen";
    scan_dataset = "scan_dataset";
    to_json = "to_json";
}
