//! BMP, GIF and WebP as specs decode them: the first frame, in every number of channels and type.

use crate::{Case, cases, decode, mutate, mutations, named, spec, with};
use tfseek::tensor::TensorDType;
use tfseek_image::{Crop, Decoder, ImageError, ImageSpec, PictureForm, PixelsMut};
use tfseek_testkit::alloc::during;
use tfseek_testkit::rng::Rng;

/// Returns brightness, as libpng computes it of 8 bits.
fn grey(rgb: &[u8]) -> u8 {
    let [r, g, b] = [rgb[0], rgb[1], rgb[2]].map(u32::from);
    ((9797 * r + 19234 * g + 3737 * b) >> 15) as u8
}

/// Compares the pixels of a file in all channels and types with these, which have alpha.
fn compare(name: &str, file: &[u8], rgba: &[u8]) {
    let rgb: Vec<u8> = rgba.chunks(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    let y: Vec<u8> = rgba.chunks(4).map(grey).collect();
    for (channels, want) in [(1, &y[..]), (3, &rgb), (4, rgba)] {
        assert!(decode::<u8>(file, channels).unwrap() == want, "{name}, {channels} channels");
        // All values of 16 bits, to the largest.
        let words = decode::<u16>(file, channels).unwrap();
        let wide: Vec<u16> = want.iter().map(|&byte| u16::from_be_bytes([byte, byte])).collect();
        assert!(words == wide, "{name}, {channels} channels of 16 bits");
        let image = Decoder::default().decode::<u8>(file, &spec(channels), 0).unwrap();
        let size = Some([image.height as u32, image.width as u32]);
        let floats = ImageSpec { size, dtype: TensorDType::Float32, ..spec(channels) };
        let mut bits = vec![0; want.len()];
        Decoder::default().decode_into(file, &floats, 0, PixelsMut::F32(&mut bits)).unwrap();
        let exact = |(&bits, &byte): (&u32, &u8)| f32::from_bits(bits) == f32::from(byte) / 255.0;
        assert!(bits.iter().zip(want).all(exact), "{name}, {channels} channels of floats");
    }
}

#[test]
fn bmps_have_the_colours_of_their_palette() {
    for Case { name, file, want } in cases("bmp") {
        let (rgb, rgba) = want.split_at(want.len() / 7 * 3);
        if name != "bmp8" {
            compare(&name, &file, rgba);
            continue;
        }
        // What is declared has the numbers of the colours, as in TensorFlow.
        let colour = |number: &[u8]| {
            let [b, g, r, _] = *file[54 + 4 * usize::from(number[0])..].first_chunk().unwrap();
            [r, g, b, 255]
        };
        compare(&name, &file, rgb.chunks(3).flat_map(colour).collect::<Vec<u8>>().as_slice());
        // Fewer colours, of which one is missing, and none, which are greys.
        let most = rgb.iter().copied().max().unwrap();
        let few = with(&file, 46, &(u32::from(most) + 1).to_le_bytes());
        assert_eq!(decode::<u8>(&few, 3), decode(&file, 3));
        let fewer = with(&file, 46, &u32::from(most).to_le_bytes());
        assert_eq!(decode::<u8>(&fewer, 3).unwrap_err().to_string(), "BMP: invalid number of a colour");
        // Also where it is outside of the crop.
        let size = Some([1, 1]);
        let part = ImageSpec { size, resize: None, crop: Some(Crop::Center), ..ImageSpec::default() };
        let e = Decoder::default().decode::<u8>(&fewer, &part, 0).unwrap_err();
        assert_eq!(e.to_string(), "BMP: invalid number of a colour");
        let mut none = with(&file, 10, &54_u32.to_le_bytes());
        none.drain(54..54 + 1024);
        compare(&name, &none, rgba);
    }
}

#[test]
fn gifs_have_their_first_frame() {
    let cases = cases("gif");
    for Case { name, file, want } in &cases {
        let form = PictureForm { frames: Some(None), ..PictureForm::default() };
        let shape = form.shape(file).unwrap();
        let first = &want[..shape.height * shape.width * 3];
        assert!(decode::<u8>(file, 3).unwrap() == first, "{name}");
        // A pixel without alpha is black.
        let rgba = decode::<u8>(file, 4).unwrap();
        compare(name, file, &rgba);
        assert!(rgba.chunks(4).zip(first.chunks(3)).all(|(pixel, rgb)| match pixel[3] {
            0 => rgb == [0; 3],
            alpha => alpha == 255,
        }));
        let clear = rgba.chunks(4).filter(|pixel| pixel[3] == 0).count();
        // The first frame of one file has a transparent number, and of one a part of the canvas.
        assert_eq!(clear > 0, ["gif-clear", "gif-parts"].contains(&name.as_str()), "{name}: {clear}");
    }
}

/// The frames after the first one are not decoded, but their sizes are read, because the largest is the canvas.
#[test]
fn damage_after_the_first_frame_of_a_gif_is_found_by_strict_decoders() {
    let mut strict = Decoder::default();
    strict.strict = true;
    let file = named("gif", "gif-black-white");
    let whole = decode::<u8>(&file, 3).unwrap();
    assert_eq!(strict.decode::<u8>(&file, &spec(3), 0).unwrap().pixels, whole);
    let last = file.iter().rposition(|&byte| byte == 0x2c).unwrap();
    // The lowest number of bits of a code, the number of bytes, and codes.
    let damaged = with(&file, last + 12, &[0xff; 3]);
    assert_eq!(decode::<u8>(&damaged, 3).unwrap(), whole);
    let e = strict.decode::<u8>(&damaged, &spec(3), 0).unwrap_err().to_string();
    assert!(e.starts_with("GIF: "), "{e}");
    for n in 0..file.len() {
        assert!(decode::<u8>(&file[..n], 3).is_err(), "{n}");
    }
}

#[test]
fn webps_have_the_pixels_of_libwebp() {
    let cases = cases("webp");
    assert_eq!(cases.len(), 11);
    for Case { name, file, want } in &cases {
        compare(name, file, want);
        let shape = PictureForm::default().shape(file).unwrap();
        let has_alpha = name.contains("alpha") || name == "webp-one";
        assert_eq!(shape.channels, if has_alpha { 4 } else { 3 }, "{name}");
        assert_eq!(shape.height * shape.width * 4, want.len(), "{name}");
    }
}

/// What follows the first picture may be missing: a second frame, or metadata.
#[test]
fn every_truncation_of_a_webp_is_an_error() {
    let mut strict = Decoder::default();
    strict.strict = true;
    for Case { name, file, .. } in cases("webp") {
        let whole = decode::<u8>(&file, 4).unwrap();
        let length = |at: usize| u32::from_le_bytes(*file[at + 4..].first_chunk().unwrap()) as usize;
        let at = file.windows(4).position(|tag| [b"VP8 ", b"VP8L"].contains(&tag.first_chunk().unwrap()));
        let end = at.unwrap() + 8 + length(at.unwrap());
        assert!(end == file.len() || end == file.len() - 1 || name == "webp-exif" || name.contains("frames"));
        for n in 0..file.len() {
            let found = decode::<u8>(&file[..n], 4);
            if n < end {
                assert!(found.is_err(), "{name}: {n} of {}", file.len());
            } else {
                assert!(found.unwrap() == whole, "{name}: {n} of {}", file.len());
            }
            assert!(strict.decode::<u8>(&file[..n], &spec(4), 0).is_err(), "{name}: {n}");
        }
        let longer = [&file, &b"more"[..]].concat();
        assert!(strict.decode::<u8>(&longer, &spec(4), 0).unwrap().pixels == whole, "{name}");
    }
}

#[test]
fn webps_that_contradict_themselves_are_errors() {
    let file = named("webp", "webp-lossy");
    let frames = named("webp", "webp-frames");
    let exif = named("webp", "webp-exif");
    let lossless = named("webp", "webp-lossless");
    let place = frames.windows(4).position(|tag| tag == b"ANMF").unwrap() + 8;
    for (file, expected) in [
        (with(&file, 26, &[0, 0]), "WebP: invalid size"),
        (with(&exif, 24, &[7]), "WebP: invalid size"),
        // The canvas has 8 x 15 pixels, and the frame 6 x 9 at 2 x 4.
        (with(&frames, place, &[4]), "WebP: invalid size"),
        (with(&frames, place + 3, &[2]), "WebP: invalid size"),
        (with(&frames, place, &[0xff; 6]), "WebP: invalid size"),
        (with(&file, 23, &[0]), "WebP: invalid data of the pixels"),
        (with(&lossless, 20, &[0]), "WebP: invalid data of the pixels"),
        (with(&file, 12, b"JUNK"), "WebP: the data end before all pixels"),
        (with(&file, 16, &[0xff; 4]), "WebP: the data end before all pixels"),
        (with(&file, 22, &[0xff]), "WebP: the data end before all pixels"),
    ] {
        assert_eq!(decode::<u8>(&file, 3).unwrap_err().to_string(), expected);
    }
}

#[test]
fn sizes_of_a_webp_are_refused_before_memory_is_taken() {
    let large = with(&named("webp", "webp-lossy"), 26, &[0x11, 0x27, 0x10, 0x27]);
    let canvas = with(&named("webp", "webp-frames"), 24, &[0xff; 6]);
    for (file, expected) in [
        (large, "expected at most 100000000 pixels, found 10000 x 10001"),
        (canvas, "expected at most 100000000 pixels, found 16777216 x 16777216"),
    ] {
        let (result, requests) = during(|| decode::<u8>(&file, 3));
        assert_eq!(result.unwrap_err().to_string(), expected);
        assert!(requests.bytes < 10_000, "{requests:?}");
    }
}

/// Lengths of codes that are no tree make the crate `image-webp` 0.2.4 index out of bounds: twice as many codes
/// as there are, so that their sum has no bit of 16.
#[test]
fn codes_of_a_webp_that_are_no_tree_are_an_error() {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |number: u32, n: u32| bits.extend((0..n).map(|bit| u64::from(number) >> bit & 1 == 1));
    // 16 x 16 pixels without alpha, transforms, a cache and groups of codes.
    for (number, n) in [(0x2f, 8), (15, 14), (15, 14), (0, 1), (0, 3), (0, 1), (0, 1), (0, 1)] {
        put(number, n);
    }
    // The lengths 0 to 15 have codes of 4 bits, behind the three that repeat.
    put(0, 1);
    put(15, 4);
    for symbol in [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        put(if symbol < 16 { 4 } else { 0 }, 3);
    }
    put(0, 1);
    let lengths = [1_u32, 1, 1].into_iter().chain(2..=15).chain([15]).chain([0; 262]);
    for length in lengths.clone() {
        // The first bit of a code is its highest.
        put(length.reverse_bits() >> 28, 4);
    }
    assert_eq!(lengths.count(), 280);
    for _ in 0..4 {
        put(1, 4);
    }
    for _ in 0..32 {
        put(0, 32);
    }
    let content: Vec<u8> = bits
        .chunks(8)
        .map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit)))
        .collect();
    let length = (content.len() as u32).to_le_bytes();
    let file = [&b"RIFF\0\x10\0\0WEBPVP8L"[..], &length, &content, &[0]].concat();
    assert_eq!(decode::<u8>(&file, 3).unwrap_err().to_string(), "WebP: invalid data of the pixels");
}

/// A palette that ends within a colour makes the crate `png` 0.18.1 index out of bounds if it is transparent.
#[test]
fn a_palette_of_a_png_that_ends_within_a_colour_is_an_error() {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 1, 1);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_palette(vec![1, 2, 3, 4]);
    encoder.set_trns(vec![0]);
    encoder.write_header().unwrap().write_image_data(&[0]).unwrap();
    let e = decode::<u8>(&file, 3).unwrap_err().to_string();
    assert!(e.starts_with("PNG: invalid ") && e.contains("palette.rs"), "{e}");
}

/// A mutated file has pixels of its size or an error, also in a used decoder.
#[test]
fn mutations_of_other_formats_have_pixels_or_an_error() {
    let cases: Vec<Case> = ["bmp", "gif", "webp", "webp"].iter().flat_map(|suffix| cases(suffix)).collect();
    let crop = ImageSpec { size: Some([8, 8]), crop: Some(Crop::RandomResized), ..spec(4) };
    let specs = [spec(3), crop, spec(1)];
    let (mut decoded, mut decoder) = (0, Decoder::default());
    for seed in 0..mutations() {
        let mut rng = Rng::new(seed);
        let mut file = cases[rng.below(cases.len())].file.clone();
        mutate(&mut rng, &mut file);
        // Large pictures, which a WebP has in a few bytes, would take most of the time.
        if PictureForm::default().shape(&file).is_ok_and(|shape| shape.values() > 1_000_000) {
            continue;
        }
        match decoder.decode::<u8>(&file, &specs[rng.below(specs.len())], seed) {
            Ok(image) => {
                decoded += 1;
                assert_eq!(image.pixels.len(), image.height * image.width * image.channels);
            }
            Err(e) => assert!(!matches!(e, ImageError::Spec(_))),
        }
    }
    eprintln!("{decoded} of {} mutations have pixels", mutations());
    assert!(decoded > mutations() / 10);
}

/// A BMP takes no memory after the first, and a GIF only the decoder of its codes.
#[test]
fn scratch_memory_of_other_formats_is_kept() {
    for Case { name, file, .. } in cases("bmp").iter().chain(&cases("gif")) {
        let crop = ImageSpec { size: Some([3, 3]), crop: Some(Crop::RandomResized), ..spec(3) };
        let mut decoder = Decoder::default();
        let mut pixels = [0; 27];
        let mut decode = || decoder.decode_into(file, &crop, 7, PixelsMut::U8(&mut pixels)).unwrap();
        decode();
        let ((), requests) = during(decode);
        let most = if name.starts_with("bmp") { 0 } else { 60_000 };
        assert!(requests.bytes <= most, "{name}: {requests:?}");
    }
}
