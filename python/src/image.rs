//! `tfseek.image_shape`: the shape of a picture, from its header.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tfseek::filter::image_format;
use tfseek_image::PictureForm;

/// Returns height, width and channels of a picture, of a GIF those of its frames.
#[pyfunction]
pub(crate) fn image_shape(image: &[u8]) -> PyResult<(usize, usize, usize)> {
    let frames = (image_format(image) == Some("gif")).then_some(None);
    let shape = PictureForm { frames, ..PictureForm::default() }.shape(image);
    let shape = shape.map_err(|e| PyValueError::new_err(format!("image: {e}")))?;
    Ok((shape.height, shape.width, shape.channels))
}
