//! `tfseek.image_shape`: the shape of a picture, from its header.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tfseek::filter::image_format;
use tfseek_image::{ImageSpec, PictureForm, picture_geometry};

/// Returns height, width and channels of a picture, of a GIF those of its frames. With `exif`, of a JPEG as it
/// is seen.
#[pyfunction]
pub(crate) fn image_shape(image: &[u8], exif: bool) -> PyResult<(usize, usize, usize)> {
    let format = image_format(image);
    let frames = (format == Some("gif")).then_some(None);
    let refused = |e| PyValueError::new_err(format!("image: {e}"));
    let shape = PictureForm { frames, ..PictureForm::default() }.shape(image).map_err(refused)?;
    if exif && format == Some("jpeg") {
        let spec = ImageSpec { exif, ..ImageSpec::default() };
        let [_, _, height, width, _] = picture_geometry(image, &spec, 0).map_err(refused)?;
        return Ok((height as usize, width as usize, shape.channels));
    }
    Ok((shape.height, shape.width, shape.channels))
}
