//! The fuzz target of pictures. `fuzz/` runs it under libFuzzer, and the test next to it over its corpus.

use tfseek::tensor::TensorDType;
use tfseek_image::{Crop, Decoder, ImageError, ImageSpec, PictureForm, PictureShape, PixelsMut, Resize};

/// Tests decoding. The first byte selects a spec and a form, the others are the file.
///
/// A picture has the pixels of its size or an error. It has the same pixels at a second time, in a used
/// decoder, in `u16`, and as a training tensor, whose values are 0 to 1. A crop has the pixels of the whole picture. Without its last bytes a picture has
/// the same pixels or an error. A scaled picture is refused as the whole one is.
#[allow(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
pub fn image(data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else { return };
    // A few bytes of a WebP are a large picture, which would take most of the time.
    if PictureForm::default().shape(file).is_ok_and(|shape| shape.values() > 1 << 22) {
        return;
    }
    let choose = |k: u8, n: u8| usize::from(choice >> k) % usize::from(n);
    declared(
        PictureForm {
            frames: if file.starts_with(b"GIF") {
                [Some(None), Some(Some(2)), Some(None), None][choose(0, 4)]
            } else {
                None
            },
            channels: [None, Some(1), Some(3), Some(4)][choose(2, 4)],
            dtype: [TensorDType::UInt8, TensorDType::UInt16, TensorDType::Float32][choose(4, 3)],
            ..PictureForm::default()
        },
        file,
    );
    let spec = ImageSpec {
        size: [None, Some([7, 5]), Some([1, 9]), Some([16, 16])][choose(0, 4)],
        channels: [1, 3, 4, 3][choose(2, 4)],
        resize: [Some(Resize::Bilinear), Some(Resize::Area)][choose(4, 2)],
        crop: [None, Some(Crop::Center), Some(Crop::RandomResized), None][choose(5, 4)],
        scaled: choice > 127,
        ..ImageSpec::default()
    };
    if spec.check().is_err() {
        return;
    }
    let mut decoder = Decoder::default();
    let decode = |decoder: &mut Decoder, file: &[u8], spec: &ImageSpec| decoder.decode::<u8>(file, spec, 5);
    let first = decode(&mut decoder, file, &spec);
    assert_eq!(decode(&mut decoder, file, &spec), first);
    let unscaled = decode(&mut decoder, file, &ImageSpec { scaled: false, ..spec.clone() });
    assert_eq!(unscaled.err().as_ref(), first.as_ref().err());
    let image = match first {
        Ok(image) => image,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    assert_eq!(image.pixels.len(), image.height * image.width * image.channels);
    let words = decoder.decode::<u16>(file, &spec, 5).unwrap();
    assert_eq!(words.pixels.len(), image.pixels.len());
    tensor(&mut decoder, file, &spec);
    if file.len() < 2000 {
        for n in [1, 2, 3, 9, 30] {
            match decode(&mut decoder, &file[..file.len().saturating_sub(n)], &spec) {
                Ok(cut) => assert_eq!(cut, image),
                Err(ImageError::Spec(reason)) => panic!("{reason}"),
                Err(_) => {}
            }
        }
    }
    let whole = ImageSpec { channels: spec.channels, ..ImageSpec::default() };
    let whole = decode(&mut decoder, file, &whole).unwrap();
    if whole.height < 3 || whole.width < 3 {
        return;
    }
    let (h, w) = (whole.height / 3, whole.width / 2);
    let part = ImageSpec {
        size: Some([h as u32, w as u32]),
        channels: spec.channels,
        resize: None,
        crop: Some(Crop::Center),
        ..ImageSpec::default()
    };
    let part = decode(&mut decoder, file, &part).unwrap();
    let (top, left) = ((whole.height - h) / 2, (whole.width - w) / 2);
    for (y, row) in part.pixels.chunks(w * part.channels).enumerate() {
        let from = ((top + y) * whole.width + left) * part.channels;
        assert_eq!(row, &whole.pixels[from..from + row.len()]);
    }
}

/// Tests the training tensor of a picture that has pixels, in the orientation that it states.
fn tensor(decoder: &mut Decoder, file: &[u8], spec: &ImageSpec) {
    let size = spec.size.unwrap_or([6, 10]);
    let names = ["hue", "brightness", "contrast", "saturation"];
    let names = if spec.channels == 1 { &names[1..3] } else { &names[..] };
    let spec = ImageSpec {
        size: Some(size),
        flip: 0.5,
        jitter: names.iter().map(|&name| (name.to_owned(), [0.1, 0.5])).collect(),
        dtype: TensorDType::Float32,
        channels_first: true,
        exif: true,
        ..spec.clone()
    };
    let mut decode = || {
        let mut bits = vec![9; size[0] as usize * size[1] as usize * usize::from(spec.channels)];
        decoder.decode_into(file, &spec, 5, PixelsMut::F32(&mut bits)).unwrap();
        bits
    };
    let first = decode();
    assert_eq!(decode(), first);
    assert!(first.iter().all(|&bits| (0.0..=1.0).contains(&f32::from_bits(bits))));
}

/// Tests the decoding of a declared picture.
///
/// It has pixels of its shape or an error, the same at a second time. Its shape is also a form that it has.
/// Without its last bytes it has the same pixels or an error. Its first frame has the pixels of a spec, unless
/// only a spec has the colours of a palette.
fn declared(form: PictureForm, file: &[u8]) {
    let mut decoder = Decoder::default();
    let first = values(&mut decoder, file, &form);
    assert_eq!(values(&mut decoder, file, &form), first);
    let (shape, found) = match first {
        Ok(Some(picture)) => picture,
        Ok(None) => return,
        Err(e) => return assert!(!e.to_string().is_empty()),
    };
    let exact = PictureForm {
        frames: shape.frames.map(|frames| Some(frames as u32)),
        height: Some(shape.height as u32),
        width: Some(shape.width as u32),
        ..form
    };
    assert_eq!(exact.shape(file), Ok(shape));
    if file.len() < 2000 {
        for n in [1, 2, 3, 9, 30] {
            match values(&mut decoder, &file[..file.len().saturating_sub(n)], &form) {
                Ok(cut) => assert_eq!(cut, Some((shape, found.clone()))),
                Err(ImageError::Spec(reason)) => panic!("{reason}"),
                Err(_) => {}
            }
        }
    }
    let (Some(channels), TensorDType::UInt8) = (form.channels, form.dtype) else { return };
    let has_palette = file.starts_with(b"BM") && file.get(28) == Some(&8);
    if !has_palette {
        let spec = ImageSpec { channels, ..ImageSpec::default() };
        let pixels = decoder.decode::<u8>(file, &spec, 0).unwrap().pixels;
        assert_eq!(pixels, found[..pixels.len()]);
    }
}

/// Returns the shape of a picture, and its values as bytes. `None` for large ones, which would take most of
/// the time.
fn values(
    decoder: &mut Decoder,
    file: &[u8],
    form: &PictureForm,
) -> Result<Option<(PictureShape, Vec<u8>)>, ImageError> {
    let shape = form.shape(file)?;
    let n = shape.values();
    if n > 1 << 20 {
        return Ok(None);
    }
    let values = match form.dtype {
        TensorDType::UInt8 => {
            let mut out = vec![9; n];
            decoder.decode_to(file, form, PixelsMut::U8(&mut out))?;
            out
        }
        TensorDType::UInt16 => {
            let mut out = vec![9; n];
            decoder.decode_to(file, form, PixelsMut::U16(&mut out))?;
            out.iter().flat_map(|value: &u16| value.to_le_bytes()).collect()
        }
        _ => {
            let mut out = vec![9; n];
            decoder.decode_to(file, form, PixelsMut::F32(&mut out))?;
            out.iter().flat_map(|value: &u32| value.to_le_bytes()).collect()
        }
    };
    Ok(Some((shape, values)))
}
