//! Crops, turns, mirrors, colours and numbers of pictures, beside a twin that is written from the definition.

use png::ColorType;
use std::{fmt::Debug, fs};
use tfseek::tensor::TensorDType::{BFloat16, Float16, Float32, UInt8, UInt16};
use tfseek_image::{Crop, Decoder, Image, ImageError, ImageSpec, PixelsMut, Resize};
use tfseek_testkit::rng::Rng;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// The operations, in the order of their draws.
const OPERATIONS: [&str; 4] = ["brightness", "contrast", "saturation", "hue"];

/// Ranges of factors, and of shifts of the hue. The first ones are usual.
const FACTORS: &[[f64; 2]] = &[[0.6, 1.4], [1.0; 2], [0.0; 2], [0.0, 2.0], [3.0, 50.0], [1e6; 2]];
const SHIFTS: &[[f64; 2]] = &[[-0.1, 0.1], [0.0; 2], [0.5; 2], [-0.5; 2], [-0.5, 0.5], [-1e-9, 0.0]];

/// The bits of decoded numbers.
type Bits = Result<Vec<u32>, ImageError>;

fn picture(name: &str) -> Vec<u8> {
    fs::read(format!("{DATA}/{name}")).unwrap()
}

/// Returns the pictures of the folder without the widest one, and some of few colours, with their names.
fn pictures() -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(DATA).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".png") || name.ends_with(".jpg") && name != "wide.jpg");
    let mut pictures: Vec<_> = names.map(|name| (name.clone(), picture(&name))).collect();
    // The largest of the channels is one, two or all of them, and not always 255.
    let mixed = [[255_u8, 0, 0], [0, 255, 0], [0, 0, 255], [0, 255, 255], [1, 0, 0], [254, 255, 255]];
    for colours in [&mixed[..], &[[0; 3]], &[[255; 3]], &[[100; 3]]] {
        let pixels = colours.as_flattened().iter().copied().cycle().take(7 * 5 * 3).collect();
        let file = png_of(&Image { height: 5, width: 7, channels: 3, pixels });
        pictures.push((format!("{colours:?}.png"), file));
    }
    pictures.sort();
    pictures
}

/// Returns a PNG of 8 bits with these pixels. Its orientation has no effect.
fn png_of(image: &Image<u8>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width as u32, image.height as u32);
    // Of 1, 3 or 4 channels.
    encoder.set_color([ColorType::Grayscale, ColorType::Rgb, ColorType::Rgba][image.channels / 2]);
    let mut writer = encoder.write_header().unwrap();
    writer.write_chunk(png::chunk::eXIf, &exif(true, 3, 1, 6)[6..]).unwrap();
    writer.write_image_data(&image.pixels).unwrap();
    drop(writer);
    file
}

fn widen<T: Copy + Into<u32>>(values: &[T]) -> Vec<u32> {
    values.iter().map(|&value| value.into()).collect()
}

/// Decodes a picture of a given size, in memory that has other values before.
fn decode_bits(decoder: &mut Decoder, file: &[u8], spec: &ImageSpec, g: u64) -> Bits {
    let [h, w] = spec.size.unwrap();
    let values = (h * w) as usize * usize::from(spec.channels);
    let mut bytes = vec![0xa5_u8; values];
    let mut words = vec![0xa5a5_u16; values];
    let mut floats = vec![0xa5a5_a5a5_u32; values];
    let out = match spec.dtype {
        UInt8 => PixelsMut::U8(&mut bytes),
        Float32 => PixelsMut::F32(&mut floats),
        _ => PixelsMut::U16(&mut words),
    };
    decoder.decode_into(file, spec, g, out)?;
    Ok(match spec.dtype {
        UInt8 => widen(&bytes),
        Float32 => floats,
        _ => widen(&words),
    })
}

#[track_caller]
fn assert_same(found: &Bits, want: &Bits, what: impl Debug) {
    let (Ok(found), Ok(want)) = (found, want) else { return assert_eq!(found, want, "{what:?}") };
    assert_eq!(found.len(), want.len(), "{what:?}");
    let differs = (0..want.len()).find(|&k| found[k] != want[k]);
    assert_eq!(differs.map(|k| (k, found[k])), differs.map(|k| (k, want[k])), "{what:?}");
}

/// The i-th number of 0 to 1 of `g`.
fn u(g: u64, i: u64) -> f64 {
    let mut z = g.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 * 2_f64.powi(-53)
}

/// Returns what the definition makes of the pixels after the resize.
fn twin(decoder: &mut Decoder, file: &[u8], spec: &ImageSpec, g: u64) -> Bits {
    let is_float = ![UInt8, UInt16].contains(&spec.dtype);
    let wide = spec.dtype == UInt16 || is_float && file.starts_with(b"\x89PNG") && file[24] == 16;
    let dtype = if wide { UInt16 } else { UInt8 };
    let plain = ImageSpec { flip: 0.0, jitter: Vec::new(), normalize: None, dtype, ..spec.clone() };
    let plain = ImageSpec { channels_first: false, ..plain };
    let pixels = decode_bits(decoder, file, &plain, g)?;
    let mut values: Vec<f32> = pixels.into_iter().map(|value| value as f32).collect();
    let neutral = |name: &str| if name == "hue" { [0.0; 2] } else { [1.0; 2] };
    let applied: Vec<_> = spec.jitter.iter().filter(|(name, range)| *range != neutral(name)).collect();
    let mut most: f32 = if wide { 65535.0 } else { 255.0 };
    if wide && is_float && (spec.normalize.is_some() || !applied.is_empty()) {
        values.iter_mut().for_each(|value| *value /= 257.0);
        most = 255.0;
    }
    let c = usize::from(spec.channels);
    for (name, [low, high]) in applied {
        let draw = OPERATIONS.iter().position(|operation| operation == name).unwrap() as u64;
        apply(&mut values, c, name, low + u(g, 42 + draw) * (high - low));
    }
    let [h, w] = spec.size.unwrap().map(|side| side as usize);
    let mirrored = u(g, 41) < spec.flip;
    let mut out = vec![0; values.len()];
    for (from, &value) in values.iter().enumerate() {
        let [y, x, k] = [from / c / w, from / c % w, from % c];
        let x = if mirrored { w - 1 - x } else { x };
        let to = if spec.channels_first { (k * h + y) * w + x } else { (y * w + x) * c + k };
        let number = match &spec.normalize {
            Some([mean, std]) => value * (1.0 / (255.0 * std[k])) as f32 + (-mean[k] / std[k]) as f32,
            None => value / most,
        };
        out[to] = match spec.dtype {
            UInt8 | UInt16 => value.round_ties_even() as u32,
            Float32 => number.to_bits(),
            Float16 => nearest(number, 5, 10),
            _ => nearest(number, 8, 7),
        };
    }
    Ok(out)
}

fn apply(values: &mut [f32], channels: usize, operation: &str, factor: f64) {
    let f = factor as f32;
    let rest = (1.0 - factor) as f32;
    let sum_of = |k: usize| {
        let parts = values.iter().skip(k).step_by(channels).map(|x| (4096.0 * *x).round_ties_even() as u64);
        parts.sum::<u64>() as f64 / 4096.0
    };
    let [r, g, b] = [0, 1, 2].map(sum_of);
    let sum = if channels == 1 { r } else { 0.2989 * r + 0.587 * g + 0.114 * b };
    let mean = (sum / (values.len() / channels) as f64) as f32;
    for pixel in values.chunks_exact_mut(channels) {
        let colours = &mut pixel[..channels.min(3)];
        let luma = if let [r, g, b] = *colours { 0.2989 * r + 0.587 * g + 0.114 * b } else { colours[0] };
        match operation {
            "brightness" => colours.iter_mut().for_each(|x| *x *= f),
            "contrast" => colours.iter_mut().for_each(|x| *x = f * *x + rest * mean),
            "saturation" => colours.iter_mut().for_each(|x| *x = f * *x + rest * luma),
            _ => shift_hue(colours, f),
        }
        colours.iter_mut().for_each(|x| *x = x.clamp(0.0, 255.0));
    }
}

fn shift_hue(pixel: &mut [f32], f: f32) {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]];
    let v = r.max(g).max(b);
    let d = v - r.min(g).min(b);
    if d == 0.0 {
        return;
    }
    let sixths = match v {
        _ if v == r => (g - b) / d,
        _ if v == g => 2.0 + (b - r) / d,
        _ => 4.0 + (r - g) / d,
    };
    let turned = sixths / 6.0 + f;
    let h = turned - turned.floor();
    let i = (6.0 * h).floor();
    let e = 6.0 * h - i;
    let s = d / v;
    let p = v * (1.0 - s);
    let q = v * (1.0 - s * e);
    let t = v * (1.0 - s * (1.0 - e));
    let colours = [[v, t, p], [q, v, p], [p, v, t], [p, q, v], [t, p, v], [v, p, q]];
    pixel.copy_from_slice(&colours[i as usize % 6]);
}

/// Returns the bits of the nearest number of a format of 16 bits. Of two, it is the even one.
fn nearest(value: f32, exponent_bits: i32, fraction_bits: i32) -> u32 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let x = f64::from(value.abs()).min(2_f64.powi(128));
    let exponent = ((x.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    let units = (x * 2_f64.powi(fraction_bits - exponent)).round_ties_even() as i32;
    let bits = units + ((exponent + bias - 1) << fraction_bits);
    bits.min((2 * bias + 1) << fraction_bits) as u32 | (value.to_bits() >> 31) << 15
}

/// Returns a spec whose jitter has order `k` of the 24, without some of the operations.
fn random_spec(rng: &mut Rng, channels: &[u8], mut k: usize) -> ImageSpec {
    let mut spec = ImageSpec {
        size: Some([1 + rng.below(40) as u32, 1 + rng.below(33) as u32]),
        channels: rng.pick(channels),
        resize: Some(rng.pick(&[Resize::Bilinear, Resize::Area])),
        crop: rng.pick(&[None, Some(Crop::Center), Some(Crop::RandomResized)]),
        flip: rng.pick(&[0.0, 0.5, 1.0]),
        dtype: rng.pick(&[UInt8, UInt8, UInt16, Float32, Float16, BFloat16]),
        channels_first: rng.chance(128),
        exif: rng.chance(128),
        ..ImageSpec::default()
    };
    if spec.crop == Some(Crop::Center) && rng.chance(64) {
        spec.resize = None;
        spec.size = Some([1 + rng.below(5) as u32, 1 + rng.below(3) as u32]);
    } else if spec.crop == Some(Crop::Center) {
        spec.fraction = rng.pick(&[1.0, 0.875, 0.3, 0.01]);
    } else if spec.crop == Some(Crop::RandomResized) {
        spec.scale = rng.pick(&[[0.08, 1.0], [0.5, 0.5], [1.0, 1.0], [0.01, 0.2]]);
        spec.ratio = rng.pick(&[[0.75, 4.0 / 3.0], [1.0, 1.0], [0.1, 0.2], [5.0, 6.0], [0.5, 2.0]]);
    }
    let mut left = OPERATIONS.to_vec();
    while !left.is_empty() && spec.dtype != UInt16 {
        let n = left.len();
        let name = left.remove(k % n);
        k /= n;
        let ranges = if name == "hue" { SHIFTS } else { FACTORS };
        let range = if rng.chance(128) { ranges[0] } else { rng.pick(ranges) };
        let needs_colours = ["saturation", "hue"].contains(&name);
        if rng.chance(200) && !(needs_colours && spec.channels == 1) {
            spec.jitter.push((name.to_owned(), range));
        }
    }
    if ![UInt8, UInt16].contains(&spec.dtype) && rng.chance(128) {
        let mean = (0..spec.channels).map(|_| rng.below(1001) as f64 / 1000.0).collect();
        let std = (0..spec.channels).map(|_| rng.pick(&[1.0, 0.229, 0.3, 1e-3, 1e-5, 1e6])).collect();
        spec.normalize = Some([mean, std]);
    }
    spec
}

#[test]
fn all_specs_have_the_bits_of_the_definition() {
    let pictures = pictures();
    let mut rng = Rng::new(1);
    let mut decoder = Decoder::default();
    let mut decoded = 0;
    for k in 0..1_600 {
        let (name, file) = &pictures[rng.below(pictures.len())];
        // A JPEG does not have 4 channels, which is an error here as there.
        let spec = ImageSpec { scaled: rng.chance(128), ..random_spec(&mut rng, &[1, 3, 4], k) };
        let g = rng.u64();
        let found = decode_bits(&mut decoder, file, &spec, g);
        assert_same(&found, &twin(&mut Decoder::default(), file, &spec, g), (name, &spec, g));
        decoded += usize::from(found.is_ok());
    }
    assert!(decoded > 1_000, "{decoded}");
}

fn whole(file: &[u8], channels: u8, exif: bool) -> Image<u8> {
    Decoder::default().decode(file, &ImageSpec { channels, exif, ..ImageSpec::default() }, 0).unwrap()
}

#[test]
fn neutral_operations_and_two_mirrors_leave_the_bits() {
    let mut decoder = Decoder::default();
    for (name, file) in pictures() {
        for channels in [1, 3, 4] {
            let plain = ImageSpec { channels, flip: 0.0, ..ImageSpec::default() };
            let Ok(image) = decoder.decode::<u8>(&file, &plain, 0) else { continue };
            let size = Some([image.height as u32, image.width as u32]);
            let mut jitter = OPERATIONS.map(|name| (name.to_owned(), [1.0; 2])).to_vec();
            jitter[3].1 = [0.0; 2];
            jitter.truncate(if channels == 1 { 2 } else { 4 });
            let bytes = ImageSpec { size, jitter, ..plain.clone() };
            let words = ImageSpec { size, dtype: UInt16, ..plain.clone() };
            let wide = decoder.decode::<u16>(&file, &ImageSpec { size: None, ..words.clone() }, 0).unwrap();
            for (spec, want) in [(bytes, widen(&image.pixels)), (words, widen(&wide.pixels))] {
                assert_same(&decode_bits(&mut decoder, &file, &spec, 7), &Ok(want), &name);
            }
            let flip = ImageSpec { flip: 1.0, ..plain };
            let mirrored = decoder.decode::<u8>(&file, &flip, 3).unwrap();
            assert_eq!(mirrored, turned(&image, 2), "{name}");
            assert_eq!(decoder.decode::<u8>(&png_of(&mirrored), &flip, 4), Ok(image), "{name}");
        }
    }
}

#[test]
fn contradictions_and_memory_of_another_type_or_length_are_refused() {
    let file = picture("rgb8.png");
    let all = ImageSpec { size: Some([3, 2]), ..ImageSpec::default() };
    let jitter = |name: &str, range| ImageSpec { jitter: vec![(name.to_owned(), range)], ..all.clone() };
    for spec in [
        ImageSpec { channels: 1, ..jitter("saturation", [0.0, 1.0]) },
        ImageSpec { dtype: UInt16, ..jitter("contrast", [0.5, 1.0]) },
        ImageSpec { normalize: Some([vec![0.5; 3], vec![0.0; 3]]), dtype: Float16, ..all.clone() },
    ] {
        let found = decode_bits(&mut Decoder::default(), &file, &spec, 0);
        assert!(matches!(found, Err(ImageError::Spec(_))), "{spec:?}: {found:?}");
    }
    let mut bytes = [0_u8; 19];
    let mut words = [0_u16; 19];
    let mut floats = [0_u32; 19];
    for (dtype, bits) in [(UInt8, 8), (UInt16, 16), (Float16, 16), (BFloat16, 16), (Float32, 32)] {
        let spec = ImageSpec { dtype, ..all.clone() };
        for n in [0, 17, 18, 19] {
            let bytes = PixelsMut::U8(&mut bytes[..n]);
            let words = PixelsMut::U16(&mut words[..n]);
            for (given, out) in [(8, bytes), (16, words), (32, PixelsMut::F32(&mut floats[..n]))] {
                let found = Decoder::default().decode_into(&file, &spec, 0, out);
                let is_right = given == bits && n == 18;
                assert!(found.is_ok() == is_right, "{dtype:?}: {n} values of {given} bits");
                assert!(is_right || matches!(found, Err(ImageError::Spec(_))), "{found:?}");
            }
        }
    }
}

/// It is a picture of this value in all channels, without a mirror and changes of colours.
#[test]
fn a_value_takes_the_place_of_a_missing_picture() {
    let pictures = pictures();
    let mut rng = Rng::new(4);
    let mut decoder = Decoder::default();
    for k in 0..400 {
        let spec = random_spec(&mut rng, &[1, 3, 4], k);
        let value = rng.pick(&[0, 1, 114, 128, 255]);
        let filled = ImageSpec { missing: Some(value), ..spec.clone() };
        let [height, width] = spec.size.unwrap().map(|side| side as usize);
        let channels = usize::from(spec.channels);
        let pixels = vec![value; height * width * channels];
        let one = png_of(&Image { height, width, channels, pixels });
        let ImageSpec { size, channels, ref normalize, dtype, channels_first, .. } = spec;
        let normalize = normalize.clone();
        let plain = ImageSpec { size, channels, normalize, dtype, channels_first, ..ImageSpec::default() };
        let g = rng.u64();
        let found = decode_bits(&mut decoder, b"", &filled, g);
        assert_same(&found, &twin(&mut Decoder::default(), &one, &plain, g), (&filled, g));
        assert!(found.is_ok() && decode_bits(&mut decoder, b"", &spec, g).is_err());
        // Any other file is what it was.
        let (name, file) = &pictures[rng.below(pictures.len())];
        let want = decode_bits(&mut decoder, file, &spec, g);
        assert_same(&decode_bits(&mut decoder, file, &filled, g), &want, (name, &filled, g));
        for damaged in [&b"\0"[..], &file[..file.len() / 2]] {
            assert!(decode_bits(&mut decoder, damaged, &filled, g).is_err(), "{name}");
        }
    }
    let filled = ImageSpec { size: Some([2, 3]), missing: Some(9), ..ImageSpec::default() };
    let image = decoder.decode::<u16>(b"", &filled, 0).unwrap();
    assert_eq!(image, Image { height: 2, width: 3, channels: 3, pixels: vec![9 * 257; 18] });
}

/// Compares a crop with a resized PNG of its rectangle: top, left, height and width.
fn assert_cut(file: &[u8], spec: &ImageSpec, g: u64, [top, left, height, width]: [usize; 4]) {
    let image = whole(file, 3, false);
    let rows = (top..top + height).flat_map(|y| &image.pixels[(y * image.width + left) * 3..][..width * 3]);
    let cut = Image { height, width, channels: 3, pixels: rows.copied().collect() };
    let plain = ImageSpec { size: spec.size, resize: spec.resize, ..ImageSpec::default() };
    let want = decode_bits(&mut Decoder::default(), &png_of(&cut), &plain, g);
    assert_same(&decode_bits(&mut Decoder::default(), file, spec, g), &want, (spec, g));
}

fn centred([height, width]: [usize; 2], h: usize, w: usize) -> [usize; 4] {
    [(height - h) / 2, (width - w) / 2, h, w]
}

/// Returns a part of the largest centred rectangle with the ratio of h and w.
fn center([height, width]: [usize; 2], [h, w]: [usize; 2], fraction: f64) -> [usize; 4] {
    let side = |exact: f64, most: usize| (exact.round_ties_even() as usize).clamp(1, most);
    let is_flat = width * h > w * height;
    let down = if is_flat { height } else { side((width * h) as f64 / w as f64, height) };
    let across = if is_flat { side((height * w) as f64 / h as f64, width) } else { width };
    centred([height, width], side(down as f64 * fraction, height), side(across as f64 * fraction, width))
}

#[test]
fn fractions_shrink_the_centred_rectangle() {
    assert_eq!(center([13, 21], [4, 4], 0.875), [1, 5, 11, 11]);
    assert_eq!(center([13, 21], [4, 4], 0.5), [3, 7, 6, 6]);
    for name in ["yuv420.jpg", "restart-rows.jpg", "restart-many.jpg", "rgb8.png", "one.jpg"] {
        let file = picture(name);
        let image = whole(&file, 3, false);
        for size in [[1_u32, 1], [7, 5], [5, 7], [11, 11], [3, 40], [33, 2]] {
            for fraction in [1.0, 0.875, 0.5, 0.3, 0.01] {
                let crop = Some(Crop::Center);
                let spec = ImageSpec { size: Some(size), crop, fraction, ..ImageSpec::default() };
                let rect = center([image.height, image.width], size.map(|side| side as usize), fraction);
                assert_cut(&file, &spec, 0, rect);
            }
        }
    }
}

/// Draws the rectangle of a random crop.
fn drawn([height, width]: [usize; 2], spec: &ImageSpec, g: u64) -> [usize; 4] {
    let [h, w] = [height as f64, width as f64];
    let [s0, s1] = spec.scale;
    let [r0, r1] = spec.ratio;
    for k in 0..10 {
        let area = h * w * (s0 + (s1 - s0) * u(g, 4 * k + 1));
        let ratio = libm::exp(libm::log(r0) + u(g, 4 * k + 2) * (libm::log(r1) - libm::log(r0)));
        let across = (area * ratio).sqrt().round_ties_even();
        let down = (area / ratio).sqrt().round_ties_even();
        if across > 0.0 && across <= w && down > 0.0 && down <= h {
            let top = (u(g, 4 * k + 3) * (h - down + 1.0)).floor();
            let left = (u(g, 4 * k + 4) * (w - across + 1.0)).floor();
            return [top, left, down, across].map(|side| side as usize);
        }
    }
    let side = |exact: f64| (exact.round_ties_even() as usize).max(1);
    let down = if w / h < r0 { side(w / r0) } else { height };
    let across = if w / h > r1 { side(h * r1) } else { width };
    centred([height, width], down, across)
}

#[test]
fn random_rectangles_have_the_scale_and_the_ratio_of_the_spec() {
    let mut rng = Rng::new(2);
    for _ in 0..400 {
        let ImageSpec { scale, ratio, .. } = random_spec(&mut rng, &[3], 0);
        let spec = ImageSpec { crop: Some(Crop::RandomResized), scale, ratio, ..ImageSpec::default() };
        let file = picture(rng.pick(&["yuv420.jpg", "restart-rows.jpg", "restart-many.jpg", "rgb8.png"]));
        let image = whole(&file, 3, false);
        let g = rng.u64();
        let rect = drawn([image.height, image.width], &spec, g);
        // Without a resize, and with one.
        for size in [[rect[2] as u32, rect[3] as u32], [1 + rng.below(40) as u32, 9]] {
            assert_cut(&file, &ImageSpec { size: Some(size), ..spec.clone() }, g, rect);
        }
    }
}

/// Returns a picture as an orientation of EXIF shows it.
fn turned(image: &Image<u8>, orientation: u32) -> Image<u8> {
    let [h, w, c] = [image.height, image.width, image.channels];
    let [height, width] = if orientation > 4 { [w, h] } else { [h, w] };
    let mut pixels = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let [row, column] = if orientation > 4 { [x, y] } else { [y, x] };
        let row = if [3, 4, 6, 7].contains(&orientation) { h - 1 - row } else { row };
        let column = if [2, 3, 7, 8].contains(&orientation) { w - 1 - column } else { column };
        pixels.extend_from_slice(&image.pixels[(row * w + column) * c..][..c]);
    }
    Image { height, width, channels: c, pixels }
}

/// Returns the payload of an EXIF segment whose only tag is the orientation.
fn exif(big: bool, kind: u32, count: u32, value: u32) -> Vec<u8> {
    let mut payload = if big { b"Exif\0\0MM".to_vec() } else { b"Exif\0\0II".to_vec() };
    // 42, the offset and the number of the tags; the tag; the offset of more tags.
    let fields = [(2, 42), (4, 8), (2, 1), (2, 0x0112), (2, kind), (4, count), (2, value), (2, 0), (4, 0)];
    for (bytes, number) in fields {
        let mut number = number.to_be_bytes()[4 - bytes..].to_vec();
        if !big {
            number.reverse();
        }
        payload.extend(number);
    }
    payload
}

/// Returns a JPEG with APP1 segments before all others.
fn with_segments(jpeg: &[u8], payloads: &[&[u8]]) -> Vec<u8> {
    let segment = |payload: &&[u8]| {
        let length = (payload.len() as u16 + 2).to_be_bytes();
        [&[0xff, 0xe1][..], &length, *payload].concat()
    };
    let segments: Vec<u8> = payloads.iter().flat_map(segment).collect();
    [&jpeg[..2], &segments[..], &jpeg[2..]].concat()
}

#[test]
fn an_orientation_turns_the_picture_before_all_else() {
    let small = Image { height: 2, width: 3, channels: 1, pixels: vec![1, 2, 3, 4, 5, 6] };
    assert_eq!(turned(&small, 6).pixels, [4, 1, 5, 2, 6, 3]);
    let mut rng = Rng::new(3);
    let names = ["yuv420.jpg", "restart-rows.jpg", "grey-progressive.jpg"];
    for (k, name) in names.into_iter().cycle().take(48).enumerate() {
        let orientation = 1 + k as u32 % 8;
        let jpeg = picture(name);
        let file = with_segments(&jpeg, &[&exif(k % 16 < 8, 3, 1, orientation)]);
        let image = whole(&jpeg, 3, false);
        assert_eq!(whole(&file, 3, false), image, "{name}: {orientation}");
        let image = turned(&image, orientation);
        assert_eq!(whole(&file, 3, true), image, "{name}: {orientation}");
        for order in 0..24 {
            let mut spec = random_spec(&mut rng, &[3], order);
            if order % 2 == 0 {
                let size = Some([1 + rng.below(image.height) as u32, 1 + rng.below(image.width) as u32]);
                spec = ImageSpec { size, crop: Some(Crop::Center), resize: None, ..ImageSpec::default() };
            }
            spec.exif = true;
            // The factor of words is 256 for a JPEG, and 257 for a PNG.
            spec.dtype = if spec.dtype == UInt16 { UInt8 } else { spec.dtype };
            let found = decode_bits(&mut Decoder::default(), &file, &spec, order as u64);
            let want = decode_bits(&mut Decoder::default(), &png_of(&image), &spec, order as u64);
            assert_same(&found, &want, (name, orientation, &spec));
        }
    }
}

#[test]
fn the_first_exif_segment_of_a_jpeg_counts_wherever_its_tag_is() {
    let jpeg = picture("yuv420.jpg");
    let image = whole(&jpeg, 3, false);
    assert_eq!(whole(&picture("exif.jpg"), 3, true), turned(&whole(&picture("exif.jpg"), 3, false), 6));
    // Another tag before the orientation, and four bytes before the tags.
    let mut payload = exif(true, 3, 1, 6);
    payload[15] = 2;
    payload.splice(16..16, *b"\x01\x0e\0\x02\0\0\0\x04abc\0");
    payload[13] = 12;
    payload.splice(14..14, [9; 4]);
    let xmp = b"http://ns.adobe.com/xap/1.0/\0<x/>";
    let file = with_segments(&jpeg, &[xmp, &payload, &exif(false, 3, 1, 3)]);
    assert_eq!(whole(&file, 3, true), turned(&image, 6));
    assert_eq!(whole(&with_segments(&jpeg, &[&exif(true, 3, 1, 9), &payload]), 3, true), image);
}

#[test]
fn damaged_orientations_are_ignored() {
    let jpeg = picture("yuv420.jpg");
    let image = whole(&jpeg, 3, false);
    for big in [false, true] {
        let sound = exif(big, 3, 1, 6);
        // The last four bytes are the offset of more tags.
        let mut damaged: Vec<Vec<u8>> = (0..sound.len() - 4).map(|n| sound[..n].to_vec()).collect();
        let tags = [[1, 1, 6], [4, 1, 6], [3, 0, 6], [3, 2, 6], [3, 1, 0], [3, 1, 9], [3, 1, 0x600]];
        damaged.extend(tags.map(|[kind, count, value]| exif(big, kind, count, value)));
        // The order of bytes, 42, the offset and the number of the tags, the tag.
        let changes = [(6, &b"XX"[..]), (6, b"MI"), (8, b"\0\0"), (10, &[0x7f; 4]), (10, &[0xff; 4])];
        for (at, bytes) in changes.into_iter().chain([(14, &b"\0\0"[..]), (16, b"\x13\x13")]) {
            let mut payload = sound.clone();
            payload[at..at + bytes.len()].copy_from_slice(bytes);
            damaged.push(payload);
        }
        for payload in damaged {
            assert_eq!(whole(&with_segments(&jpeg, &[&payload]), 3, true), image, "{payload:x?}");
        }
    }
}
