//! The JSON form of an image.

use super::super::image::layout_name;
use super::super::{Crop, ImageSpec, Resize};
use super::fields::{JsonFields, array_dtype, boolean, expected, integer, list, number, one_of, text};
use super::value::Json;
use crate::error::{Error, Result};

/// The fields of an image.
pub(super) const IMAGE_FIELDS: [&str; 18] = [
    "size",
    "channels",
    "resize",
    "crop",
    "crop_with",
    "dtype",
    "fraction",
    "scale",
    "ratio",
    "flip",
    "jitter",
    "mean",
    "std",
    "layout",
    "exif",
    "missing",
    "geometry",
    "scaled",
];

pub(super) fn image(fields: &mut JsonFields) -> Result<ImageSpec> {
    let default = ImageSpec::default();
    // Without a field the default holds, and null is no resize.
    let resize =
        if fields.0.contains_key("resize") { fields.optional("resize", resize)? } else { default.resize };
    let numbers = |json| list(json, number);
    let normalize = match (fields.optional("mean", numbers)?, fields.optional("std", numbers)?) {
        (None, None) => None,
        (Some(mean), Some(std)) => Some([mean, std]),
        _ => return Err(Error::spec("mean and std: expected both or none, found one")),
    };
    Ok(ImageSpec {
        size: fields.optional("size", size)?,
        channels: fields.optional("channels", integer)?.unwrap_or(default.channels),
        resize,
        crop: fields.optional("crop", crop)?,
        crop_with: fields.optional("crop_with", text)?,
        dtype: fields.optional("dtype", array_dtype)?.unwrap_or(default.dtype),
        fraction: fields.optional("fraction", number)?.unwrap_or(default.fraction),
        scale: fields.optional("scale", range)?.unwrap_or(default.scale),
        ratio: fields.optional("ratio", range)?.unwrap_or(default.ratio),
        flip: fields.optional("flip", number)?.unwrap_or(default.flip),
        jitter: fields.optional("jitter", |json| list(json, jitter))?.unwrap_or(default.jitter),
        normalize,
        channels_first: fields.optional("layout", channels_first)?.unwrap_or(default.channels_first),
        exif: fields.optional("exif", boolean)?.unwrap_or(default.exif),
        missing: fields.optional("missing", byte)?,
        geometry: fields.optional("geometry", text)?,
        scaled: fields.optional("scaled", boolean)?.unwrap_or(default.scaled),
    })
}

fn size(json: Json) -> Result<[u32; 2], String> {
    let sides = list(json, integer)?;
    sides.try_into().map_err(|sides: Vec<u32>| format!("expected height and width, found {sides:?}"))
}

fn byte(json: Json) -> Result<u8, String> {
    match json {
        Json::Integer(value @ 0..=255) => Ok(value as u8),
        other => expected("an integer of 0 to 255", &other),
    }
}

fn range(json: Json) -> Result<[f64; 2], String> {
    let ends = list(json, number)?;
    ends.try_into().map_err(|ends: Vec<f64>| format!("expected two numbers, found {}", ends.len()))
}

/// Reads an operation on colours and its factors. One number is the distance from no change.
fn jitter(json: Json) -> Result<(String, [f64; 2]), String> {
    let Json::List(pair) = json else { return expected("a name and numbers", &json) };
    let Ok([name, factors]) = <[Json; 2]>::try_from(pair) else {
        return Err("expected a name and numbers".to_owned());
    };
    let name = text(name)?;
    let factors = match factors {
        Json::List(_) => range(factors).map_err(|reason| format!("{name}: {reason}"))?,
        one => {
            let distance = number(one)?;
            if distance < 0.0 {
                return Err(format!("{name}: expected at least 0, found {distance:?}"));
            }
            if name == "hue" {
                [0.0 - distance, distance]
            } else {
                [(1.0 - distance).max(0.0), 1.0 + distance]
            }
        }
    };
    Ok((name, factors))
}

fn resize(json: Json) -> Result<Resize, String> {
    one_of(json, [Resize::Bilinear, Resize::Area], Resize::name)
}

fn crop(json: Json) -> Result<Crop, String> {
    one_of(json, [Crop::Center, Crop::RandomResized], Crop::name)
}

fn channels_first(json: Json) -> Result<bool, String> {
    one_of(json, [false, true], layout_name)
}
