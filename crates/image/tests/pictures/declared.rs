//! Pictures of a declared form, with the pixels that TensorFlow decodes. Of JPEG, those of its accurate
//! transform.

use crate::{Case, cases, decode, mutate, named, repair, with};
use std::fmt::Debug;
use tfseek::tensor::TensorDType;
use tfseek_image::{Decoder, ImageError, PictureForm, PictureShape, PixelsMut};
use tfseek_testkit::alloc::during;
use tfseek_testkit::rng::Rng;

/// Frames of a GIF, of any size and number.
const FRAMES: PictureForm = form(Some(None), None, TensorDType::UInt8);

const fn form(frames: Option<Option<u32>>, channels: Option<u8>, dtype: TensorDType) -> PictureForm {
    PictureForm { frames, height: None, width: None, channels, dtype }
}

/// A picture with these channels, in 8 bits.
fn bytes(channels: impl Into<Option<u8>>) -> PictureForm {
    form(None, channels.into(), TensorDType::UInt8)
}

/// Returns the values of a picture, each in 32 bits.
fn values(
    decoder: &mut Decoder,
    file: &[u8],
    form: &PictureForm,
) -> Result<(PictureShape, Vec<u32>), ImageError> {
    let shape = form.shape(file)?;
    let n = shape.values();
    let values = match form.dtype {
        TensorDType::UInt8 => {
            let mut out = vec![9_u8; n];
            decoder.decode_to(file, form, PixelsMut::U8(&mut out))?;
            out.into_iter().map(u32::from).collect()
        }
        TensorDType::UInt16 => {
            let mut out = vec![9_u16; n];
            decoder.decode_to(file, form, PixelsMut::U16(&mut out))?;
            out.into_iter().map(u32::from).collect()
        }
        _ => {
            let mut out = vec![9_u32; n];
            decoder.decode_to(file, form, PixelsMut::F32(&mut out))?;
            out
        }
    };
    Ok((shape, values))
}

fn wide<T: Copy + Into<u32>>(values: &[T]) -> Vec<u32> {
    values.iter().map(|&value| value.into()).collect()
}

fn all_of(suffixes: &[&str]) -> Vec<Case> {
    suffixes.iter().flat_map(|suffix| cases(suffix)).collect()
}

/// JPEG and PNG have the pixels of a spec, in every number of channels and both types, or the error.
#[test]
fn declared_channels_are_those_of_a_spec() {
    let mut decoder = Decoder::default();
    for case in all_of(&["jpg", "png"]) {
        for channels in [1, 3, 4] {
            let found = values(&mut decoder, &case.file, &bytes(channels)).map(|(_, values)| values);
            assert_eq!(
                found,
                decode::<u8>(&case.file, channels).map(|v| wide(&v)),
                "{}: {channels}",
                case.name
            );
            let words = form(None, Some(channels), TensorDType::UInt16);
            let found = values(&mut decoder, &case.file, &words).map(|(_, values)| values);
            assert_eq!(
                found,
                decode::<u16>(&case.file, channels).map(|v| wide(&v)),
                "{}: {channels}",
                case.name
            );
        }
    }
}

#[test]
fn channels_are_those_of_the_file() {
    let mut decoder = Decoder::default();
    for case in all_of(&["jpg", "png", "bmp"]) {
        let expected = match case.name.as_str() {
            "grey-alpha8" | "grey-alpha16" => 2,
            "palette8-alpha" | "rgba8" | "rgba16" | "bmp32" | "bmp32-down" | "bmp32-masks" => 4,
            // A transparent colour makes a channel only in a palette.
            name if name.starts_with("grey") => 1,
            "bmp8" => 1,
            _ => 3,
        };
        for dtype in [TensorDType::UInt8, TensorDType::UInt16] {
            let (shape, found) = values(&mut decoder, &case.file, &form(None, None, dtype)).unwrap();
            assert_eq!(shape.channels, expected, "{}", case.name);
            if expected == 2 {
                let all = values(&mut decoder, &case.file, &form(None, Some(4), dtype)).unwrap().1;
                let pairs: Vec<u32> = all.chunks(4).flat_map(|pixel| [pixel[0], pixel[3]]).collect();
                assert_eq!(found, pairs, "{}", case.name);
            } else if case.name == "bmp8" {
                let all = values(&mut decoder, &case.file, &form(None, Some(3), dtype)).unwrap().1;
                assert_eq!(found, all.iter().step_by(3).copied().collect::<Vec<_>>());
            } else {
                let declared = form(None, Some(expected as u8), dtype);
                assert_eq!(found, values(&mut decoder, &case.file, &declared).unwrap().1, "{}", case.name);
            }
        }
    }
}

#[test]
fn bmps_have_all_channels() {
    let cases = cases("bmp");
    assert_eq!(cases.len(), 6);
    let mut decoder = Decoder::default();
    for Case { name, file, want } in &cases {
        for (channels, want) in [(3, &want[..105]), (4, &want[105..])] {
            let (shape, found) = values(&mut decoder, file, &bytes(channels)).unwrap();
            assert_eq!(shape.to_string(), format!("(5, 7, {channels})"));
            assert_eq!(found, wide(want), "{name}, {channels} channels");
            let words = form(None, Some(channels), TensorDType::UInt16);
            let words = values(&mut decoder, file, &words).unwrap().1;
            assert!(words.iter().zip(want).all(|(&word, &byte)| word == u32::from(byte) * 256), "{name}");
        }
        // Brightness as of a PNG. TensorFlow refuses one channel.
        let found = values(&mut decoder, file, &bytes(1)).unwrap().1;
        let [r, g, b] = [0, 1, 2].map(|c| want[..105].iter().skip(c).step_by(3).map(|&c| u32::from(c)));
        let grey = r.zip(g).zip(b).map(|((r, g), b)| (9797 * r + 19234 * g + 3737 * b) >> 15);
        assert!(found.into_iter().eq(grey), "{name}");
    }
}

#[test]
fn gifs_have_all_frames() {
    let cases = cases("gif");
    let shapes = ["2, 8, 9", "1, 5, 7", "2, 80, 80", "4, 13, 6", "2, 4, 5", "5, 6, 9", "1, 5, 7"];
    assert_eq!(cases.len(), shapes.len());
    let mut decoder = Decoder::default();
    for (Case { name, file, want }, expected) in cases.iter().zip(shapes) {
        let (shape, found) = values(&mut decoder, file, &FRAMES).unwrap();
        assert_eq!(shape.to_string(), format!("({expected}, 3)"), "{name}");
        assert!(found == wide(want), "{name}");
        let words = form(Some(None), Some(3), TensorDType::UInt16);
        let words = values(&mut decoder, file, &words).unwrap().1;
        assert!(words.iter().zip(want).all(|(&word, &byte)| word == u32::from(byte) * 256), "{name}");
        let declared = PictureForm { frames: Some(shape.frames.map(|n| n as u32)), ..FRAMES };
        assert_eq!(declared.shape(file), Ok(shape));
        // Full alpha where a frame has painted.
        let alpha = form(Some(None), Some(4), TensorDType::UInt8);
        let found = values(&mut decoder, file, &alpha).unwrap().1;
        for (pixel, rgb) in found.chunks(4).zip(want.chunks(3)) {
            assert_eq!(pixel[..3], wide(rgb));
            assert!(pixel[3] == 255 || pixel == [0; 4]);
        }
    }
}

/// Four channels of 8 bits are the bytes of a float.
#[test]
fn floats_are_the_bytes_of_four_channels() {
    let floats = form(None, Some(1), TensorDType::Float32);
    let mut decoder = Decoder::default();
    for case in all_of(&["png", "bmp"]) {
        let (shape, found) = values(&mut decoder, &case.file, &floats).unwrap();
        assert_eq!(shape.to_string(), "(5, 7, 1)");
        let four = values(&mut decoder, &case.file, &bytes(4)).unwrap().1;
        let bits = |bytes: &[u32]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | byte);
        assert_eq!(found, four.chunks(4).map(bits).collect::<Vec<_>>(), "{}", case.name);
    }
    let e = floats.shape(&cases("jpg")[0].file).unwrap_err().to_string();
    assert_eq!(e, "not supported: 4 channels of a JPEG, which has no alpha");
}

#[test]
fn other_forms_are_errors() {
    let (png, gif, bmp) = (named("png", "rgb8"), named("gif", "gif-parts"), named("bmp", "bmp24"));
    let sized = PictureForm { height: Some(5), width: Some(7), ..bytes(3) };
    for file in [&png, &bmp] {
        assert!(sized.shape(file).is_ok());
        for (form, expected) in [
            (PictureForm { height: Some(4), ..sized }, "(4, 7, 3), found (5, 7, 3)"),
            (PictureForm { width: Some(u32::MAX), ..sized }, "(5, 4294967295, 3), found (5, 7, 3)"),
            (
                PictureForm { width: Some(0), height: None, channels: None, ..sized },
                "(None, 0, None), found (5, 7, 3)",
            ),
            (PictureForm { frames: Some(Some(1)), ..sized }, "(1, 5, 7, 3), found (5, 7, 3)"),
            (FRAMES, "(None, None, None, None), found (5, 7, 3)"),
        ] {
            let e = form.shape(file).unwrap_err().to_string();
            assert_eq!(e, format!("expected a picture of the shape {expected}"));
            let e = Decoder::default()
                .decode_to(file, &form, PixelsMut::U8(&mut [0; 105]))
                .unwrap_err()
                .to_string();
            assert_eq!(e, format!("expected a picture of the shape {expected}"));
        }
    }
    for (form, expected) in [
        (bytes(3), "(None, None, 3), found (5, 6, 9, 3)"),
        (PictureForm { frames: Some(Some(4)), ..FRAMES }, "(4, None, None, None), found (5, 6, 9, 3)"),
        (PictureForm { height: Some(9), ..FRAMES }, "(None, 9, None, None), found (5, 6, 9, 3)"),
    ] {
        let e = form.shape(&gif).unwrap_err().to_string();
        assert_eq!(e, format!("expected a picture of the shape {expected}"));
    }
    for (form, expected) in [
        (bytes(2), "channels: expected 1, 3 or 4, found 2"),
        (form(None, Some(3), TensorDType::Float32), "channels: expected 1 for float32"),
        (form(None, None, TensorDType::Float32), "channels: expected 1 for float32"),
        (form(None, None, TensorDType::Int64), "dtype: expected uint8, uint16 or float32, found int64"),
    ] {
        assert_eq!(form.shape(&png).unwrap_err().to_string(), expected);
    }
    for (memory, expected) in [
        (PixelsMut::U8(&mut [0; 104]), "expected memory for 105 values of uint8, found 104 of uint8"),
        (PixelsMut::U16(&mut [0; 105]), "expected memory for 105 values of uint8, found 105 of uint16"),
        (PixelsMut::F32(&mut []), "expected memory for 105 values of uint8, found 0 of float32"),
    ] {
        assert_eq!(Decoder::default().decode_to(&png, &bytes(3), memory).unwrap_err().to_string(), expected);
    }
    for (file, expected) in [
        (&b""[..], "expected a JPEG, PNG, BMP, GIF or WebP picture, found no bytes"),
        (b"II*\0\x08\0\0\0\0\0\0\0", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a TIFF"),
        (b"text", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a text"),
        (b"\x89PN", "expected a JPEG, PNG, BMP, GIF or WebP picture, found other bytes"),
        (b"GIF89a", "GIF: the data end before all pixels"),
        (b"BM............\x28\0\0\0", "BMP: the data end before all pixels"),
    ] {
        assert_eq!(bytes(3).shape(file).unwrap_err().to_string(), expected);
    }
}

#[test]
fn bmps_of_other_kinds_are_errors() {
    let (bmp, masks) = (named("bmp", "bmp24"), named("bmp", "bmp32-masks"));
    for (file, expected) in [
        (with(&bmp, 14, &[12]), "not supported: BMP with a header of OS/2"),
        (with(&bmp, 28, &[4]), "not supported: BMP of other than 8, 24 and 32 bits"),
        (with(&bmp, 28, &[25]), "not supported: BMP of other than 8, 24 and 32 bits"),
        (with(&bmp, 30, &[1]), "not supported: BMP with compression"),
        (with(&bmp, 30, &[3]), "not supported: BMP with compression"),
        (with(&masks, 54, &[0xff, 0, 0]), "not supported: BMP with other masks of colours"),
        (with(&bmp, 18, &[0]), "BMP: invalid size"),
        (with(&bmp, 18, &[0, 0, 0, 0x80]), "BMP: invalid size"),
        (with(&bmp, 22, &[0]), "BMP: invalid size"),
        (with(&bmp, 10, &[53]), "BMP: invalid offset of the pixels"),
        (with(&bmp, 14, &[124]), "BMP: invalid offset of the pixels"),
        (with(&bmp, 14, &[0xff; 4]), "expected a JPEG, PNG, BMP, GIF or WebP picture, found other bytes"),
        (with(&bmp, 10, &[55]), "BMP: the data end before all pixels"),
        (with(&bmp, 10, &[0xff; 4]), "BMP: the data end before all pixels"),
        (with(&bmp, 22, &[0, 0, 0, 0x80]), "BMP: the data end before all pixels"),
        (
            with(&bmp, 18, &[0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f]),
            "BMP: the data end before all pixels",
        ),
    ] {
        assert_eq!(bytes(3).shape(&file).unwrap_err().to_string(), expected);
    }
}

#[test]
fn gifs_that_are_damaged_are_errors() {
    let gif = named("gif", "gif-still");
    // A palette of 16 colours, a frame, its codes.
    let frame = 13 + 48;
    assert_eq!((gif[frame], gif[frame + 10]), (0x2c, 4));
    let mut empty = gif[..frame].to_vec();
    empty.push(0x3b);
    let mut bare = with(&gif, 10, &[0]);
    bare.drain(13..frame);
    for (file, expected) in [
        (empty, "GIF: invalid file without a frame"),
        (bare, "GIF: invalid frame without a palette"),
        (with(&gif, frame, &[0]), "GIF: invalid block"),
        (with(&gif, frame + 5, &[0]), "GIF: invalid size of a frame"),
        (with(&gif, frame + 7, &[0]), "GIF: invalid size of a frame"),
        (with(&gif, frame + 10, &[0]), "GIF: invalid number of bits of a code"),
        (with(&gif, frame + 10, &[9]), "GIF: invalid number of bits of a code"),
        // The codes end before the pixels, and a code that comes too early.
        (with(&gif, frame + 7, &[6]), "GIF: the data end before all pixels"),
        (with(&gif, frame + 12, &[0xf0, 0xff]), "GIF: invalid code of a pixel"),
        // The palette has half the colours.
        ([&with(&gif, 10, &[0x82])[..37], &gif[frame..]].concat(), "GIF: invalid number of a colour"),
    ] {
        let found = values(&mut Decoder::default(), &file, &FRAMES);
        assert_eq!(found.map(|(shape, _)| shape).unwrap_err().to_string(), expected);
    }
}

/// A GIF needs its last byte, because frames may precede it. Bytes behind a picture are not read.
#[test]
fn every_truncation_of_a_bmp_or_gif_is_an_error() {
    let mut decoder = Decoder::default();
    for Case { name, file, .. } in all_of(&["bmp", "gif"]).iter().filter(|case| case.file.len() < 2_000) {
        let form = if file.starts_with(b"GIF") { FRAMES } else { bytes(None) };
        for n in 0..file.len() {
            let e = form.shape(&file[..n]).expect_err(&format!("{name}: {n} of {}", file.len()));
            assert!(!e.to_string().is_empty());
        }
        let whole = values(&mut decoder, file, &form).unwrap();
        assert_eq!(values(&mut decoder, &[file, &b"more"[..]].concat(), &form).unwrap(), whole);
    }
}

/// Returns the error of a shape that takes no memory for pixels.
fn refused<T: Debug>(shape: impl FnOnce() -> Result<T, ImageError>) -> String {
    let (result, requests) = during(shape);
    assert!(requests.bytes < 100_000, "{requests:?}");
    result.unwrap_err().to_string()
}

#[test]
fn frames_are_refused_before_memory_is_taken() {
    let gif = named("gif", "gif-still");
    let frame = 13 + 48;
    let large = with(&gif, frame + 5, &[0x10, 0x27, 0x10, 0x27]);
    assert_eq!(refused(|| FRAMES.shape(&large)), "GIF: the data end before all pixels");
    let larger = with(&gif, frame + 5, &[0xff; 4]);
    assert_eq!(
        refused(|| FRAMES.shape(&larger)),
        "expected at most 100000000 pixels, found 1 x 65535 x 65535"
    );
    // Codes of one large frame, and many small ones on its canvas.
    let codes = [&[255; 256][..]; 40].concat();
    let mut many = [&with(&gif, frame + 5, &[0xe8, 3, 0xe8, 3])[..frame + 11], &codes, &[0]].concat();
    for _ in 0..100 {
        many.extend_from_slice(&gif[frame..gif.len() - 1]);
    }
    many.push(0x3b);
    assert_eq!(refused(|| FRAMES.shape(&many)), "expected at most 100000000 pixels, found 101 x 1000 x 1000");
}

/// A mutated file has pixels of its shape or an error, also in a used decoder.
#[test]
fn mutations_have_a_shape_and_pixels_or_an_error() {
    let mutations = std::env::var("TFSEEK_MUTATIONS").map_or(20_000, |number| number.parse().unwrap());
    let cases: Vec<Case> = all_of(&["gif", "gif", "bmp", "bmp", "png", "jpg"])
        .into_iter()
        .filter(|case| case.file.len() < 2_000 && case.name != "wide")
        .collect();
    let forms = [
        FRAMES,
        form(Some(None), Some(3), TensorDType::UInt16),
        bytes(None),
        bytes(3),
        form(None, Some(4), TensorDType::UInt16),
        form(None, Some(1), TensorDType::Float32),
    ];
    let (mut decoded, mut decoder) = (0, Decoder::default());
    for seed in 0..mutations {
        let mut rng = Rng::new(seed);
        let mut file = cases[rng.below(cases.len())].file.clone();
        mutate(&mut rng, &mut file);
        if file.starts_with(b"\x89PNG") && rng.chance(128) {
            repair(&mut file);
        }
        let form = if file.starts_with(b"GIF") { forms[rng.below(2)] } else { forms[rng.below(forms.len())] };
        let (shape, requests) = during(|| form.shape(&file));
        assert!(requests.bytes < 100_000, "{requests:?}");
        // Large pictures would take most of the time.
        if shape.as_ref().is_ok_and(|shape| shape.values() > 10_000_000) {
            continue;
        }
        if let Ok((shape, values)) = values(&mut decoder, &file, &form) {
            decoded += 1;
            assert_eq!(values.len(), shape.values());
        }
    }
    eprintln!("{decoded} of {mutations} mutations have pixels");
    assert!(decoded > mutations / 50);
}

/// After the first picture, memory is not requested for pixels again.
#[test]
fn scratch_memory_of_declared_pictures_is_kept() {
    for case in all_of(&["jpg", "png"]).iter().filter(|case| case.name != "wide") {
        for (dtype, channels) in
            [(TensorDType::UInt8, 3), (TensorDType::UInt16, 3), (TensorDType::Float32, 1)]
        {
            let form = form(None, Some(channels), dtype);
            let Ok(shape) = form.shape(&case.file) else { continue };
            let mut decoder = Decoder::default();
            let (mut bytes, mut words, mut floats) =
                (vec![0; shape.values()], vec![0; shape.values()], vec![0; shape.values()]);
            let mut decode = || {
                let out = match dtype {
                    TensorDType::UInt8 => PixelsMut::U8(&mut bytes),
                    TensorDType::UInt16 => PixelsMut::U16(&mut words),
                    _ => PixelsMut::F32(&mut floats),
                };
                during(|| decoder.decode_to(&case.file, &form, out).unwrap()).1
            };
            let (first, second) = (decode(), decode());
            assert!(second.bytes <= first.bytes, "{}: {first:?}, {second:?}", case.name);
            // The crate `png` takes the memory of its rows and of inflate for each picture.
            let most = if case.file.starts_with(b"\xff\xd8") { 8_000 } else { 200_000 };
            assert!(second.bytes < most, "{}: {second:?}", case.name);
        }
    }
}
