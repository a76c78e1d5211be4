//! Pictures of all kinds, with the pixels that libjpeg-turbo and libpng decode. `data/make.py` makes them.

mod declared;
mod formats;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};
use tfseek::TensorDType;
use tfseek_image::{Crop, Decoder, ImageError, ImageSpec, PixelsMut, Resize, Sample};
use tfseek_testkit::alloc::{Counting, during};
use tfseek_testkit::rng::Rng;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A picture of the folder.
struct Case {
    name: String,
    file: Vec<u8>,
    /// Its pixels, as `data/make.py` writes them.
    want: Vec<u8>,
}

fn cases(suffix: &str) -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == suffix));
    paths.sort();
    let case = |path: &PathBuf| Case {
        name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        file: fs::read(path).unwrap(),
        want: fs::read(path.with_extension("want")).unwrap(),
    };
    paths.iter().map(case).collect()
}

fn spec(channels: u8) -> ImageSpec {
    ImageSpec { channels, ..ImageSpec::default() }
}

fn decode<T: Sample>(file: &[u8], channels: u8) -> Result<Vec<T>, ImageError> {
    Decoder::default().decode(file, &spec(channels), 0).map(|image| image.pixels)
}

#[test]
fn jpegs_have_the_pixels_of_libjpeg() {
    let cases = cases("jpg");
    assert_eq!(cases.len(), 41);
    let mut decoder = Decoder::default();
    for case in &cases {
        let image = decoder.decode::<u8>(&case.file, &spec(3), 0).unwrap();
        assert_eq!(image.pixels.len(), image.height * image.width * 3);
        // A picture of one colour has one pixel in its file.
        let want: Vec<u8> = case.want.iter().copied().cycle().take(image.pixels.len()).collect();
        let off = want.iter().zip(&image.pixels).map(|(&a, &b)| a.abs_diff(b)).max();
        assert_eq!(image.pixels, want, "{}: off by {off:?}", case.name);
        let wide = decoder.decode::<u16>(&case.file, &spec(3), 0).unwrap();
        assert!(wide.pixels.iter().zip(&want).all(|(&wide, &want)| wide == u16::from(want) * 256));
        let grey = decoder.decode::<u8>(&case.file, &spec(1), 0);
        match case.name.as_str() {
            name if name.starts_with("cmyk") || name == "ycck" => {
                let e = grey.unwrap_err().to_string();
                assert_eq!(e, "not supported: 1 channel of a JPEG in CMYK");
            }
            name if name.starts_with("grey") => {
                assert!(grey.unwrap().pixels.iter().zip(want.chunks(3)).all(|(&y, rgb)| rgb == [y; 3]));
            }
            _ => {
                let near = |(&y, rgb): (&u8, &[u8])| {
                    let [r, g, b] = [rgb[0], rgb[1], rgb[2]].map(f64::from);
                    let exact = 0.299 * r + 0.587 * g + 0.114 * b;
                    // A colour that does not exist was cut to the nearest.
                    rgb.iter().any(|c| [0, 255].contains(c)) || (f64::from(y) - exact).abs() <= 1.5
                };
                assert!(grey.unwrap().pixels.iter().zip(want.chunks(3)).all(near), "{}", case.name);
            }
        }
        let e = decoder.decode::<u8>(&case.file, &spec(4), 0).unwrap_err().to_string();
        assert_eq!(e, "not supported: 4 channels of a JPEG, which has no alpha");
    }
}

#[test]
fn pngs_are_exact_in_all_channels_and_depths() {
    let cases = cases("png");
    assert_eq!(cases.len(), 19);
    for case in &cases {
        let bytes = case.want.len() / 3;
        let pixels = bytes / 8;
        let words: Vec<u16> =
            case.want[bytes..].chunks(2).map(|word| u16::from_le_bytes([word[0], word[1]])).collect();
        for (channels, from) in [(1_u8, 0), (3, pixels), (4, 4 * pixels)] {
            let range = from..from + pixels * usize::from(channels);
            let what = format!("{}, {channels} channels", case.name);
            assert_eq!(decode::<u8>(&case.file, channels).unwrap(), case.want[range.clone()], "{what}");
            assert_eq!(decode::<u16>(&case.file, channels).unwrap(), words[range], "{what}");
        }
    }
}

/// Only what follows the pixels may be missing: the marker at the end, a comment or a text. What follows the
/// marker is not read.
#[test]
fn every_truncation_is_an_error() {
    for case in cases("jpg").iter().chain(&cases("png")) {
        let whole = decode::<u8>(&case.file, 3).unwrap();
        let end = match case.name.as_str() {
            "filled" => 10,
            _ if case.file.starts_with(b"\xff\xd8") => 2,
            _ => 27,
        };
        let mut decoder = Decoder::default();
        for n in 0..case.file.len() {
            let cut = decoder.decode::<u8>(&case.file[..n], &spec(3), 0);
            if n + end < case.file.len() {
                // The marker at the end of the file does not make it complete.
                let e = cut.expect_err(&format!("{}: {n} of {}", case.name, case.file.len()));
                assert!(!e.to_string().is_empty());
                if case.name.contains("progressive") || case.name == "many-scans" || end == 27 {
                    continue;
                }
                let marked = [&case.file[..n], b"\xff\xd9"].concat();
                assert!(
                    decoder.decode::<u8>(&marked, &spec(3), 0).is_err(),
                    "{}: {n} and the end",
                    case.name
                );
            } else {
                let cut = cut.unwrap_or_else(|e| panic!("{}: {n} of {}: {e}", case.name, case.file.len()));
                assert_eq!(cut.pixels, whole, "{}: {n}", case.name);
            }
        }
        assert_eq!(decode::<u8>(&[&case.file, &b"more"[..]].concat(), 3).unwrap(), whole);
    }
}

fn named(suffix: &str, name: &str) -> Vec<u8> {
    cases(suffix).into_iter().find(|case| case.name == name).unwrap().file
}

/// Puts bytes into a copy of a file.
fn with(file: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

/// Changes some bytes of a file, or moves, removes and repeats some.
fn mutate(rng: &mut Rng, file: &mut Vec<u8>) {
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(file.len());
        let n = 1 + rng.below(16.min(file.len() - at));
        match rng.below(6) {
            0 => file[at] = rng.u64() as u8,
            1 => file[at] ^= 1 << rng.below(8),
            2 => file[at] = rng.pick(&[0, 1, 0x7f, 0x80, 0xff, 0xd0, 0xd9, 0xda, 0xc0, 0xc2, 0xc4]),
            3 if file.len() > n + 1 => drop(file.drain(at..at + n)),
            4 => {
                let part = file[at..at + n].to_vec();
                let to = rng.below(file.len());
                file.splice(to..to, part);
            }
            _ => {
                let other = rng.below(file.len());
                file.swap(at, other);
            }
        }
    }
}

/// Returns the number of mutated files, which `TFSEEK_MUTATIONS` sets.
fn mutations() -> u64 {
    env::var("TFSEEK_MUTATIONS").map_or(20_000, |number| number.parse().unwrap())
}

/// A mutated file has pixels or an error, and takes no more memory than its size permits.
#[test]
fn mutations_have_pixels_or_an_error() {
    let cases: Vec<Case> =
        cases("jpg").into_iter().chain(cases("png")).filter(|case| case.name != "wide").collect();
    let specs = [
        spec(3),
        ImageSpec {
            size: Some([8, 8]),
            channels: 1,
            crop: Some(Crop::RandomResized),
            ..ImageSpec::default()
        },
        ImageSpec { size: Some([9, 7]), channels: 4, resize: Some(Resize::Area), ..ImageSpec::default() },
    ];
    let (mut decoded, mut decoder) = (0, Decoder::default());
    for seed in 0..mutations() {
        let mut rng = Rng::new(seed);
        let case = &cases[rng.below(cases.len())];
        let mut file = case.file.clone();
        mutate(&mut rng, &mut file);
        if file.starts_with(b"\x89PNG") && rng.chance(128) {
            repair(&mut file);
        }
        let spec = &specs[rng.below(specs.len())];
        let result = decoder.decode::<u8>(&file, spec, seed);
        if let Ok(image) = result {
            decoded += 1;
            assert_eq!(image.pixels.len(), image.height * image.width * image.channels);
            assert!(spec.size.is_none_or(|[h, w]| [image.height, image.width] == [h as usize, w as usize]));
        }
    }
    eprintln!("{decoded} of {} mutations have pixels", mutations());
    assert!(decoded > mutations() / 50);
}

/// Repairs the checksums of a PNG, as an attacker could.
fn repair(file: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(end) = at.checked_add(8 + length) else { return };
        let Some(body) = file.get(at + 4..end) else { return };
        let crc = body.iter().fold(!0_u32, |mut crc, &byte| {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            }
            crc
        });
        let Some(place) = file.get_mut(end..end + 4) else { return };
        place.copy_from_slice(&(!crc).to_be_bytes());
        at = end + 4;
    }
}

#[test]
fn sizes_are_refused_before_memory_is_taken() {
    let cases = cases("jpg");
    let jpeg = &cases.iter().find(|case| case.name == "yuv420").unwrap().file;
    let at = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    let sized = |height: u16, width: u16| {
        let mut file = jpeg.clone();
        file[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
        file[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
        file
    };
    let png = self::cases("png").into_iter().find(|case| case.name == "rgb8").unwrap().file;
    let mut large = png.clone();
    large[16..24].copy_from_slice(&[0, 0, 0x27, 0x10, 0, 0, 0x27, 0x11]);
    repair(&mut large);
    let mut full = large.clone();
    full[23] = 0x10;
    repair(&mut full);
    for (file, expected) in [
        (sized(20_000, 5_001), "expected at most 100000000 pixels, found 20000 x 5001"),
        // These have no data for so many pixels.
        (sized(10_000, 10_000), "JPEG: the data end before all pixels"),
        (full, "PNG: the data end before all pixels"),
        (large, "expected at most 100000000 pixels, found 10001 x 10000"),
    ] {
        let (result, requests) = during(|| decode::<u8>(&file, 3));
        assert_eq!(result.unwrap_err().to_string(), expected);
        assert!(requests.bytes < 100_000, "{requests:?}");
    }
}

#[test]
fn other_bytes_are_named() {
    for (file, expected) in [
        (&b""[..], "expected a JPEG, PNG, BMP, GIF or WebP picture, found no bytes"),
        (b"II*\0\x08\0\0\0\0\0\0\0", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a TIFF"),
        (b"\0\0\0\x14ftypheic\0\0\0\0mif1", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a HEIC"),
        (b"\0\0\0\x14ftypavif\0\0\0\0mif1", "expected a JPEG, PNG, BMP, GIF or WebP picture, found an AVIF"),
        (&[0; 40], "expected a JPEG, PNG, BMP, GIF or WebP picture, found zeros"),
        (b"\x80\x04\x95", "expected a JPEG, PNG, BMP, GIF or WebP picture, found other bytes"),
        (b"text", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a text"),
        (b" <!DOCTYPE html><html>", "expected a JPEG, PNG, BMP, GIF or WebP picture, found an HTML page"),
        (b"http://a.b/c.jpg", "expected a JPEG, PNG, BMP, GIF or WebP picture, found a URL"),
        (
            b"/data/1.JPG",
            "expected a JPEG, PNG, BMP, GIF or WebP picture, found the path of a file, not its bytes",
        ),
        (
            b"b'\\xff\\xd8\\xff'",
            "expected a JPEG, PNG, BMP, GIF or WebP picture, found the text of a Python bytes object, as str() writes it",
        ),
        (
            b"/9j/4AAQSkZJRgAB+/8=\n",
            "expected a JPEG, PNG, BMP, GIF or WebP picture, found a picture in base64, which is to be decoded before it is written",
        ),
        (b"\x89PN", "expected a JPEG, PNG, BMP, GIF or WebP picture, found other bytes"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01", "JPEG: the data end before all pixels"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\r", "PNG: the data end before all pixels"),
        (b"GIF89a..", "GIF: the data end before all pixels"),
        (b"BM............\x28\0\0\0....", "BMP: the data end before all pixels"),
        (b"RIFF....WEBPVP8 ", "WebP: the data end before all pixels"),
    ] {
        assert_eq!(decode::<u8>(file, 3).unwrap_err().to_string(), expected);
    }
    // An arithmetic, a lossless and a hierarchical frame.
    let jpeg = cases("jpg").into_iter().find(|case| case.name == "yuv444").unwrap().file;
    let at = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 1;
    for (frame, expected) in
        [(0xc9, "JPEG with arithmetic coding"), (0xc3, "lossless JPEG"), (0xc5, "hierarchical JPEG")]
    {
        let mut file = jpeg.clone();
        file[at] = frame;
        assert_eq!(decode::<u8>(&file, 3).unwrap_err().to_string(), format!("not supported: {expected}"));
    }
}

/// Returns a grey progressive picture that has each bit of each coefficient in a scan of its own: 883 scans
/// of a few bytes. All its pixels are grey.
fn scans(side: u16) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        [&[0xff, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat()
    };
    let [high, low] = side.to_be_bytes();
    let mut file = b"\xff\xd8".to_vec();
    file.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    file.extend(segment(0xc2, &[8, high, low, high, low, 1, 1, 0x11, 0]));
    // One code of one bit: no difference, and 2^14 blocks or more that end.
    let one = [&[1][..], &[0; 15]].concat();
    file.extend(segment(0xc4, &[&[0][..], &one, &[0]].concat()));
    file.extend(segment(0xc4, &[&[0x10][..], &one, &[0xe0]].concat()));
    let blocks = usize::from(side).div_ceil(8).pow(2);
    file.extend(segment(0xda, &[1, 1, 0, 0, 0, 0]));
    file.extend(vec![0; blocks.div_ceil(8)]);
    let mut bits = Vec::new();
    let mut left = blocks;
    while left > 0 {
        let run = left.min(32767);
        bits.push(false);
        bits.extend((0..14).rev().map(|bit| (run - 16384) >> bit & 1 == 1));
        left -= run;
    }
    bits.resize(bits.len().next_multiple_of(8), true);
    let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    let data: Vec<u8> =
        bits.chunks(8).map(byte).flat_map(|b| if b == 0xff { vec![b, 0] } else { vec![b] }).collect();
    for bit in (0..14).rev() {
        let bits = if bit == 13 { bit } else { (bit + 1) << 4 | bit };
        for k in 1..64 {
            file.extend(segment(0xda, &[1, 1, 0, k, k, bits]));
            file.extend(&data);
        }
    }
    file.extend(b"\xff\xd9");
    file
}

/// 100 scans of the largest picture are the limit, whatever the file: 883 of a smaller one are fewer blocks.
#[test]
fn scans_are_bounded_by_the_blocks_that_they_read() {
    let small = decode::<u8>(&scans(1024), 1).unwrap();
    assert!(small.iter().all(|&value| value == 128));
    let large = scans(10_000);
    assert!(large.len() < 400_000);
    let e = decode::<u8>(&large, 1).unwrap_err();
    assert_eq!(e, ImageError::Unsupported { what: "JPEG with too many scans for its size" });
}

#[test]
fn a_cancelled_decoder_ends_before_the_next_scan() {
    let file = scans(1024);
    let mut decoder = Decoder::default();
    let cancelled = Arc::new(AtomicBool::new(true));
    decoder.cancelled = Some(Arc::clone(&cancelled));
    assert_eq!(decoder.decode::<u8>(&file, &spec(1), 0), Err(ImageError::Cancelled));
    cancelled.store(false, Ordering::Relaxed);
    assert!(decoder.decode::<u8>(&file, &spec(1), 0).is_ok());
}

/// A file that is whole ends after its pixels. What a decoder forgives is damage: a cut end, and data that no
/// pixel has.
#[test]
fn strict_decoders_refuse_files_that_do_not_end_after_their_pixels() {
    let mut strict = Decoder::default();
    strict.strict = true;
    let mut zeroed = 0;
    for case in cases("jpg").iter().chain(&cases("png")) {
        let mut refused = |file: &[u8], what: &str| {
            assert!(strict.decode::<u8>(file, &spec(3), 0).is_err(), "{}: {what}", case.name);
        };
        refused(&case.file[..case.file.len() - 2], "cut");
        if case.file.len() > 1200 {
            let half = case.file.len() / 2;
            refused(&[&case.file[..half], &vec![0; case.file.len() - half][..]].concat(), "a zeroed half");
            zeroed += 1;
        }
        assert_eq!(
            strict.decode::<u8>(&case.file, &spec(3), 0),
            Decoder::default().decode(&case.file, &spec(3), 0)
        );
    }
    assert!(zeroed > 2, "{zeroed}");
}

#[test]
fn contradictions_of_a_spec_are_errors() {
    let all = ImageSpec { size: Some([2, 2]), ..ImageSpec::default() };
    for (spec, expected) in [
        (ImageSpec { channels: 2, ..all.clone() }, "channels: expected 1, 3 or 4, found 2"),
        (
            ImageSpec { size: Some([0, 5]), ..all.clone() },
            "size: expected 1 to 100000000 pixels, found 0 x 5",
        ),
        (
            ImageSpec { size: Some([u32::MAX; 2]), ..all.clone() },
            "size: expected 1 to 100000000 pixels, found 4294967295 x 4294967295",
        ),
        (ImageSpec { size: None, crop: Some(Crop::Center), ..all.clone() }, "crop: a crop requires a size"),
        (
            ImageSpec { crop: Some(Crop::RandomResized), resize: None, ..all.clone() },
            "crop: random_resized requires a resize",
        ),
    ] {
        assert_eq!(spec.check().unwrap_err().to_string(), format!("invalid schema: {expected}"));
        assert!(Decoder::default().decode::<u8>(b"", &spec, 0).is_err());
    }
    let file = &cases("png")[0].file;
    let e = Decoder::default().decode_into(file, &all, 0, PixelsMut::U8(&mut [0; 11])).unwrap_err();
    assert_eq!(e.to_string(), "expected memory for 12 values of uint8, found 11 of 8 bits");
    let e = Decoder::default().decode_into(file, &spec(3), 0, PixelsMut::U8(&mut [])).unwrap_err();
    assert_eq!(e.to_string(), "size: expected height and width, found none");
}

/// The same pixels come from the middle of a picture as from all of it, in every kind of file.
#[test]
fn a_crop_has_the_pixels_of_the_whole() {
    let cases = ["jpg", "png", "bmp", "gif", "webp"].iter().flat_map(|suffix| cases(suffix));
    for case in cases.filter(|case| case.name != "wide" && case.name != "gif-codes") {
        let mut decoder = Decoder::default();
        let whole = decoder.decode::<u8>(&case.file, &spec(3), 0).unwrap();
        for h in 1..=whole.height {
            for w in 1..=whole.width {
                let size = Some([h as u32, w as u32]);
                let spec = ImageSpec { size, crop: Some(Crop::Center), resize: None, ..ImageSpec::default() };
                let part = decoder.decode::<u8>(&case.file, &spec, 0).unwrap();
                let (top, left) = ((whole.height - h) / 2, (whole.width - w) / 2);
                for (y, row) in part.pixels.chunks(w * 3).enumerate() {
                    let from = ((top + y) * whole.width + left) * 3;
                    assert_eq!(row, &whole.pixels[from..from + w * 3], "{}: {h} x {w}", case.name);
                }
            }
        }
        let spec = ImageSpec {
            size: Some([whole.height as u32 + 1, 1]),
            crop: Some(Crop::Center),
            resize: None,
            ..ImageSpec::default()
        };
        let e = decoder.decode::<u8>(&case.file, &spec, 0).unwrap_err().to_string();
        let (h, w) = (whole.height, whole.width);
        assert_eq!(e, format!("expected at least {} x 1 pixels (height x width), found {h} x {w}", h + 1));
        let spec = ImageSpec { crop: None, ..spec };
        let e = decoder.decode::<u8>(&case.file, &spec, 0).unwrap_err().to_string();
        assert_eq!(e, format!("expected {} x 1 pixels (height x width), found {h} x {w}", h + 1));
    }
}

/// A scaled picture is read as a whole one is, and refused for the same reason.
#[test]
fn scaled_pictures_are_refused_as_whole_ones_are() {
    let whole = ImageSpec { size: Some([2, 3]), ..spec(3) };
    let scaled = ImageSpec { scaled: true, ..whole.clone() };
    let cases: Vec<Case> = cases("jpg").into_iter().filter(|case| case.name != "wide").collect();
    let mut decoders = [Decoder::default(), Decoder::default()];
    decoders[1].strict = true;
    let mut compare = |file: &[u8], what: &str| {
        for decoder in &mut decoders {
            let whole = decoder.decode::<u8>(file, &whole, 0).map(|image| image.pixels.len());
            let scaled = decoder.decode::<u8>(file, &scaled, 0).map(|image| image.pixels.len());
            assert_eq!(scaled, whole, "{what}");
        }
    };
    for case in &cases {
        for n in 0..=case.file.len() {
            compare(&case.file[..n], &case.name);
        }
    }
    for seed in 0..mutations() / 4 {
        let mut rng = Rng::new(seed);
        let mut file = cases[rng.below(cases.len())].file.clone();
        mutate(&mut rng, &mut file);
        compare(&file, &seed.to_string());
    }
}

/// After the first picture no memory is requested, whether its scan has a crop, all pixels, fewer or a resize,
/// or becomes a training tensor, also after a missing one.
#[test]
fn decoder_memory_is_kept() {
    let crop = ImageSpec { size: Some([10, 10]), crop: Some(Crop::Center), ..ImageSpec::default() };
    let resize = ImageSpec { size: Some([10, 10]), ..ImageSpec::default() };
    let jitter = ["brightness", "contrast", "saturation", "hue"].map(|name| (name.to_owned(), [0.1, 0.4]));
    let normalize = Some([vec![0.5; 3], vec![0.2; 3]]);
    // A quarter of each side.
    let scaled = ImageSpec { size: Some([3, 3]), scaled: true, ..spec(3) };
    let tensor = ImageSpec { flip: 1.0, jitter: jitter.into(), normalize, ..crop.clone() };
    let tensor = ImageSpec { dtype: TensorDType::Float32, channels_first: true, exif: true, ..tensor };
    let tensor = ImageSpec { missing: Some(3), ..tensor };
    for mut case in cases("jpg") {
        // Turned by a quarter.
        let segment =
            b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        case.file.splice(2..2, *segment);
        let mut decoder = Decoder::default();
        let image = decoder.decode::<u8>(&case.file, &spec(3), 0).unwrap();
        let whole = ImageSpec { size: Some([image.height as u32, image.width as u32]), ..spec(3) };
        for spec in [&crop, &resize, &whole, &scaled, &tensor] {
            let [h, w] = spec.size.unwrap();
            let values = (h * w * 3) as usize;
            let mut decode = |file: &[u8], bytes: &mut [u8], floats: &mut [u32]| {
                let is_float = spec.dtype == TensorDType::Float32;
                let out = if is_float { PixelsMut::F32(floats) } else { PixelsMut::U8(bytes) };
                decoder.decode_into(file, spec, 0, out).unwrap();
            };
            let [mut first, mut bytes] = [(); 2].map(|()| vec![0_u8; values]);
            let [mut first_floats, mut floats] = [(); 2].map(|()| vec![0_u32; values]);
            decode(&case.file, &mut first, &mut first_floats);
            let ((), requests) = during(|| {
                if spec.missing.is_some() {
                    decode(b"", &mut bytes, &mut floats);
                }
                decode(&case.file, &mut bytes, &mut floats);
            });
            assert_eq!((bytes, floats), (first, first_floats));
            assert_eq!(requests.times, 0, "{}: {requests:?}", case.name);
        }
    }
}
