//! `tfseek.image_shape`: the shape of a picture, from its header.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tfseek::filter::image_format;
use tfseek_image::PictureForm;

/// Returns height, width and channels of a JPEG or PNG.
#[pyfunction]
pub(crate) fn image_shape(image: &[u8]) -> PyResult<(usize, usize, usize)> {
    let shape = match image_format(image) {
        Some("jpeg" | "png") => PictureForm::default().shape(image).map_err(|e| e.to_string()),
        other => Err(format!("found {}", other.unwrap_or("other bytes"))),
    };
    shape.map(|shape| (shape.height, shape.width, shape.channels)).map_err(|reason| {
        PyValueError::new_err(format!("image: expected a JPEG or PNG with a size: {reason}"))
    })
}
