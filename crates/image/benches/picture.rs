//! Decoding and resizing JPEGs: `picture/SIZE/WORK`.
//!
//! The pictures are made here, by an encoder of baseline JPEG in 4:2:0 with one set of tables. `decode` gives
//! all pixels, `resize` those of 224 x 224, and `crop` those of a random rectangle, which `scaled` decodes to
//! fewer. Before the timing, the
//! pixels are compared with the waves that were encoded. `tensor` is a `crop` that is mirrored, jittered in
//! four ways and normalized, as floats.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tfseek::batch::{Column, Values};
use tfseek::{BatchParser, ExampleBuilder, FeatureSpec, Mapped, Schema, TensorDType};
use tfseek_image::{Crop, Decoder, DecoderPool, ImageSpec, PixelsMut};

fn pictures(c: &mut Criterion) {
    for [height, width] in [[375_u32, 500], [1200, 1600]] {
        let file = jpeg::encode(height as usize, width as usize);
        let whole = ImageSpec { size: Some([height, width]), ..ImageSpec::default() };
        let small = ImageSpec { size: Some([224, 224]), ..ImageSpec::default() };
        let random = ImageSpec { crop: Some(Crop::RandomResized), ..small.clone() };
        let mut decoder = Decoder::default();
        let mut pixels = vec![0_u8; (height * width * 3) as usize];
        decoder.decode_into(&file, &whole, 0, PixelsMut::U8(&mut pixels)).unwrap();
        let off = pixels.chunks(3).enumerate().map(|(k, rgb)| {
            let y = jpeg::wave(k / width as usize, k % width as usize);
            rgb.iter().map(|&sample| (f64::from(sample) - y).abs()).fold(0.0, f64::max)
        });
        assert!(off.sum::<f64>() / f64::from(height * width) < 4.0);
        let mut group = c.benchmark_group(format!("picture/{width}x{height}"));
        group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: file.len() as u64 });
        let mut out = vec![0_u8; 224 * 224 * 3];
        group.bench_function("decode", |b| {
            b.iter(|| decoder.decode_into(&file, &whole, 0, PixelsMut::U8(&mut pixels)).unwrap())
        });
        group.bench_function("resize", |b| {
            b.iter(|| decoder.decode_into(&file, &small, 0, PixelsMut::U8(&mut out)).unwrap())
        });
        let mut draw = 0;
        group.bench_function("crop", |b| {
            b.iter(|| {
                draw += 1;
                decoder.decode_into(black_box(&file), &random, draw, PixelsMut::U8(&mut out)).unwrap();
            });
        });
        let scaled = ImageSpec { scaled: true, ..random.clone() };
        group.bench_function("scaled", |b| {
            b.iter(|| {
                draw += 1;
                decoder.decode_into(black_box(&file), &scaled, draw, PixelsMut::U8(&mut out)).unwrap();
            });
        });
        let jitter = ["brightness", "contrast", "saturation", "hue"];
        let tensor = ImageSpec {
            flip: 0.5,
            jitter: jitter.map(|name| (name.to_owned(), [0.1, 0.4])).into(),
            normalize: Some([vec![0.5; 3], vec![0.25; 3]]),
            dtype: TensorDType::Float32,
            channels_first: true,
            ..random.clone()
        };
        let mut floats = vec![0_u32; out.len()];
        group.bench_function("tensor", |b| {
            b.iter(|| {
                draw += 1;
                decoder.decode_into(black_box(&file), &tensor, draw, PixelsMut::F32(&mut floats)).unwrap();
            });
        });
        group.finish();
        loader(c, &file, [height, width], &small);
    }
}

/// Pictures in a loader beside a bare loop of the decoder over the same records, on one thread:
/// `loader/SIZE/WAY`.
fn loader(c: &mut Criterion, file: &[u8], [height, width]: [u32; 2], spec: &ImageSpec) {
    const PICTURES: u64 = 64;
    const PIXELS: usize = 224 * 224 * 3;
    let mut records = Vec::new();
    let payload = ExampleBuilder::new().bytes("image", [file]).encode().unwrap();
    (0..PICTURES).for_each(|_| tfseek::frame::put_record(&mut records, &payload).unwrap());
    let mapped = Mapped::from_bytes(records).unwrap();
    let schema = Schema::example().feature("image", FeatureSpec::Image(spec.clone())).build().unwrap();
    let parser = BatchParser::new(&schema).decoder(Arc::new(DecoderPool::default()));
    let options = mapped.dataset().loader(&schema).batch_size(16).parser(parser);
    let (mut decoder, mut out) = (Decoder::default(), vec![0_u8; 16 * PIXELS]);
    decoder.decode_into(file, spec, 0, PixelsMut::U8(&mut out[..PIXELS])).unwrap();
    let wanted = out[..PIXELS].to_vec();
    let mut group = c.benchmark_group(format!("loader/{width}x{height}"));
    group.throughput(Throughput::Elements(PICTURES)).sample_size(10);
    group.bench_function("bare", |b| {
        b.iter(|| {
            for k in 0..PICTURES as usize {
                let out = &mut out[k % 16 * PIXELS..][..PIXELS];
                decoder.decode_into(black_box(file), spec, 0, PixelsMut::U8(out)).unwrap();
            }
        });
    });
    for threads in [1, 2] {
        let mut loader = options.clone().threads(threads).build().unwrap();
        let step = loader.next().unwrap().unwrap();
        let Some(Column::Dense(images)) = step.batch().unwrap().get("image") else { panic!("no pictures") };
        let Values::Array(pixels) = &images.values else { panic!("no arrays") };
        assert!(pixels.as_slice::<u8>().unwrap().chunks(PIXELS).all(|picture| picture == wanted));
        drop(step);
        group.bench_function(format!("threads-{threads}"), |b| {
            b.iter(|| {
                loader.begin().unwrap();
                assert_eq!(
                    loader.by_ref().map(|step| step.unwrap().ids.len()).sum::<usize>(),
                    PICTURES as usize
                );
            });
        });
    }
    group.finish();
}

/// A small encoder.
mod jpeg {
    use std::f64::consts::PI;

    /// Brightness of a pixel: waves, with noise that does not repeat.
    pub(super) fn wave(y: usize, x: usize) -> f64 {
        let (y, x) = (y as f64, x as f64);
        let noise = ((x * 12.9898 + y * 78.233).sin() * 43758.5453).fract() * 12.0;
        128.0 + 60.0 * (x / 17.0).sin() + 40.0 * (y / 11.0 + x / 60.0).cos() + noise
    }

    /// Number of codes of each length, and all their symbols: first coefficients have 4 bits, the others 8.
    fn symbols(ac: bool) -> (usize, Vec<u8>) {
        if !ac {
            return (4, (0..12).collect());
        }
        let runs = (0..16_u8).flat_map(|run| (1..=10_u8).map(move |size| run << 4 | size));
        (8, [0, 0xf0].into_iter().chain(runs).collect())
    }

    struct Bits {
        out: Vec<u8>,
        window: u32,
        have: u32,
    }

    impl Bits {
        fn put(&mut self, value: u32, n: u32) {
            self.window = self.window << n | value;
            self.have += n;
            while self.have >= 8 {
                self.have -= 8;
                let byte = (self.window >> self.have) as u8;
                self.out.push(byte);
                if byte == 0xff {
                    self.out.push(0);
                }
                self.window &= (1 << self.have) - 1;
            }
        }

        fn code(&mut self, ac: bool, symbol: u8) {
            let (length, symbols) = symbols(ac);
            let code = symbols.iter().position(|&other| other == symbol).unwrap();
            self.put(code as u32, length as u32);
        }

        /// Puts a symbol of `run` zeros, and a value.
        fn value(&mut self, ac: bool, run: u8, value: i32) {
            let size = 32 - value.unsigned_abs().leading_zeros();
            self.code(ac, run << 4 | size as u8);
            let bits = if value < 0 { value - 1 } else { value } as u32;
            self.put(bits & ((1 << size) - 1), size);
        }
    }

    const STEP: f64 = 10.0;

    pub(super) fn encode(height: usize, width: usize) -> Vec<u8> {
        let mut out = vec![0xff, 0xd8];
        let mut segment = |marker: u8, body: &[u8]| {
            out.extend_from_slice(&[0xff, marker]);
            out.extend_from_slice(&(body.len() as u16 + 2).to_be_bytes());
            out.extend_from_slice(body);
        };
        segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        segment(0xdb, &[&[0][..], &[STEP as u8; 64]].concat());
        let ([h0, h1], [w0, w1]) = ((height as u16).to_be_bytes(), (width as u16).to_be_bytes());
        segment(0xc0, &[8, h0, h1, w0, w1, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]);
        for ac in [false, true] {
            let (length, symbols) = symbols(ac);
            let mut counts = [0; 16];
            counts[length - 1] = symbols.len() as u8;
            segment(0xc4, &[&[u8::from(ac) << 4][..], &counts, &symbols].concat());
        }
        segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
        let mut bits = Bits { out, window: 0, have: 0 };
        let cosines: Vec<f64> =
            (0..64).map(|k| ((2 * (k % 8) + 1) as f64 * (k / 8) as f64 * PI / 16.0).cos()).collect();
        let mut last = 0;
        for y in (0..height).step_by(16) {
            for x in (0..width).step_by(16) {
                for (dy, dx) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                    let first = block(&mut bits, &cosines, y + dy, x + dx, last);
                    last = first;
                }
                // Grey: the differences of colours are 0.
                for _ in 0..2 {
                    bits.code(false, 0);
                    bits.code(true, 0);
                }
            }
        }
        bits.put(0x7f, 7);
        bits.out.extend_from_slice(&[0xff, 0xd9]);
        bits.out
    }

    /// Encodes a block. Returns its first coefficient.
    fn block(bits: &mut Bits, cosines: &[f64], y: usize, x: usize, last: i32) -> i32 {
        let mut samples = [0.0; 64];
        for (k, sample) in samples.iter_mut().enumerate() {
            *sample = wave(y + k / 8, x + k % 8) - 128.0;
        }
        // In the order of the diagonals, every other one upwards.
        let mut places: Vec<(usize, usize)> = (0..64).map(|k| (k / 8, k % 8)).collect();
        places.sort_by_key(|&(v, u)| (v + u, if (v + u) % 2 == 0 { u } else { v }));
        let (mut first, mut run) = (0, 0);
        for (k, &(v, u)) in places.iter().enumerate() {
            let sum: f64 =
                (0..64).map(|k| samples[k] * cosines[v * 8 + k / 8] * cosines[u * 8 + k % 8]).sum();
            let scale = |k: usize| if k == 0 { 0.5_f64.sqrt() } else { 1.0 };
            let value = (sum * scale(u) * scale(v) / 4.0 / STEP).round() as i32;
            if k == 0 {
                first = value;
                bits.value(false, 0, value - last);
                continue;
            }
            if value == 0 {
                run += 1;
                continue;
            }
            while run > 15 {
                bits.code(true, 0xf0);
                run -= 16;
            }
            bits.value(true, run, value);
            run = 0;
        }
        if run > 0 {
            bits.code(true, 0);
        }
        first
    }
}

criterion_group! {
    name = benches;
    config = tfseek_testkit::bench::short();
    targets = pictures
}
criterion_main!(benches);
