//! Dimensions and formats of encoded images, from their headers.

use super::condition::Quantity;
use super::value::Value;
use imagesize::ImageType;

/// Returns the format of an image. `None` for other bytes, and for formats without an unambiguous signature.
fn format(bytes: &[u8]) -> Option<&'static str> {
    Some(match imagesize::image_type(bytes).ok()? {
        ImageType::Jpeg => "jpeg",
        ImageType::Png => "png",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
        ImageType::Tiff => "tiff",
        ImageType::Heif(_) => "heif",
        ImageType::Jxl => "jxl",
        ImageType::Qoi => "qoi",
        _ => return None,
    })
}

/// Returns a property of an image. `None` if the bytes are no image.
pub(super) fn property(bytes: &[u8], quantity: Quantity) -> Option<Value<'static>> {
    let format = format(bytes)?;
    if quantity == Quantity::Format {
        return Some(Value::Bytes(format.as_bytes()));
    }
    let size = imagesize::blob_size(bytes).ok()?;
    let pixels = if quantity == Quantity::Width { size.width } else { size.height };
    Some(Value::Int(i64::try_from(pixels).ok()?))
}
