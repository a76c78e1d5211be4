//! Pictures in batches of a loader.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tfseek::batch::{Batch, BatchParser, Column, ColumnDecoder, DecodeContext, Row, RowSplits, Values};
use tfseek::loader::{NextStep, Shuffle};
use tfseek::order::augmentation_seed;
use tfseek::schema::{Crop, ImageSpec, Resize};
use tfseek::{
    Damage, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, FeatureBuf, FeatureSpec, IndexMode, Schema,
    SequenceExampleBuilder, TensorDType, Writer,
};
use tfseek_image::{Decoder, DecoderPool, Image};
use tfseek_testkit::alloc::{Counting, most_held};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn picture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

/// Pictures of different sizes and formats.
const NAMES: [&str; 5] = ["yuv420.jpg", "grey.jpg", "restart-rows.jpg", "rgb8.png", "palette8-alpha.png"];

/// Writes records with two pictures each. Record k of `bad` has bytes that are none.
fn dataset(dir: &Path, n: usize, bad: &[usize]) -> (PathBuf, Dataset) {
    let path = dir.join("a.tfrecord");
    let mut writer = Writer::create(&path).unwrap();
    for k in 0..n {
        let image = if bad.contains(&k) { b"none".to_vec() } else { picture(NAMES[k % NAMES.len()]) };
        let record =
            ExampleBuilder::new().bytes("image", [&image]).bytes("mask", [&picture(NAMES[k % NAMES.len()])]);
        writer.write(&record.int64("k", [k as i64]).encode().unwrap()).unwrap();
    }
    writer.close().unwrap();
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
    (path, ds)
}

fn schema(image: &ImageSpec, mask: Option<&ImageSpec>) -> Schema {
    let schema = Schema::example().feature("image", FeatureSpec::Image(image.clone()));
    let schema = schema.feature("k", FeatureSpec::fixed_len(&[], tfseek::DType::Int64));
    match mask {
        Some(mask) => schema.feature("mask", FeatureSpec::Image(mask.clone())),
        None => schema,
    }
    .build()
    .unwrap()
}

/// Returns a parser that decodes pictures.
fn decoding(schema: &Schema) -> BatchParser {
    BatchParser::new(schema).decoder(Arc::new(DecoderPool::default()))
}

fn random(size: [u32; 2]) -> ImageSpec {
    ImageSpec { size: Some(size), crop: Some(Crop::RandomResized), ..ImageSpec::default() }
}

/// Returns shape and values of a column.
fn array<T: tfseek::tensor::Element>(column: Option<&Column>) -> (Vec<usize>, Vec<T>) {
    let Some(Column::Dense(dense)) = column else { panic!("{column:?}") };
    let Values::Array(values) = &dense.values else { panic!("{dense:?}") };
    (dense.shape.clone(), values.as_slice::<T>().unwrap().to_vec())
}

/// The same arithmetic as the order's page, from the constants there.
fn draw(seed: u64, epoch: u64, position: u64, name: &str) -> u64 {
    let mix = |mut z: u64| {
        z ^= z >> 30;
        z = z.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 27;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let absorb =
        |words: &[u64]| words.iter().fold(0, |h, word| mix((h ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15)));
    let seed = absorb(&[u64::from_be_bytes(*b"TFRDAUG1"), seed, epoch, position]);
    absorb(&[seed, xxhash_rust::xxh3::xxh3_64(name.as_bytes())])
}

#[test]
fn batches_have_the_pixels_of_the_decoder_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (_, ds) = dataset(dir.path(), 23, &[]);
    let image = ImageSpec { dtype: TensorDType::UInt16, resize: Some(Resize::Area), ..random([9, 7]) };
    let mask = ImageSpec { crop_with: Some("image".into()), channels: 1, ..random([9, 7]) };
    let schema = schema(&image, Some(&mask));
    let mut first = None;
    for threads in [0, 1, 3] {
        let loader =
            ds.loader(&schema).batch_size(4).seed(5).shuffle(Shuffle::Global).threads(threads).repeat(true);
        let loader = loader.parser(decoding(&schema)).build().unwrap();
        let mut all = Vec::new();
        let mut decoder = Decoder::default();
        for step in loader.take(12) {
            let step = step.unwrap();
            let batch = step.batch().unwrap();
            let (shape, pixels) = array::<u16>(batch.get("image"));
            let (mask_shape, masks) = array::<u8>(batch.get("mask"));
            assert_eq!((&shape[1..], &mask_shape[1..]), (&[9, 7, 3][..], &[9, 7, 1][..]));
            assert_eq!(shape[0], step.ids.len());
            for (row, sample) in step.samples().enumerate() {
                let file = picture(NAMES[sample.record as usize % NAMES.len()]);
                let g = draw(5, sample.epoch, sample.position, "image");
                let want = decoder.decode::<u16>(&file, &image, g).unwrap().pixels;
                assert_eq!(pixels[row * 189..(row + 1) * 189], want, "row {row}");
                let want = decoder.decode::<u8>(&file, &mask, g).unwrap().pixels;
                assert_eq!(masks[row * 63..(row + 1) * 63], want, "row {row}");
            }
            all.extend(pixels);
        }
        assert_eq!(*first.get_or_insert_with(|| all.clone()), all);
    }
}

#[test]
fn bad_pictures_are_errors_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let bad = [3, 4, 9];
    let (path, ds) = dataset(dir.path(), 12, &bad);
    let schema = schema(&random([4, 4]), None);
    let loader = || ds.loader(&schema).batch_size(4).parser(decoding(&schema));
    let errors: Vec<_> = loader().build().unwrap().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 3);
    let e = &errors[0];
    assert!(e.is_data());
    assert_eq!(e.location().record, Some(3));
    assert_eq!(e.location().feature.as_deref(), Some("image"));
    let text = e.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(
        text.ends_with("feature \"image\": expected a JPEG, PNG, BMP, GIF or WebP picture, found a text"),
        "{text}"
    );

    let (mut ks, mut skipped) = (Vec::new(), Vec::new());
    for step in loader().damage(Damage::Skip).build().unwrap() {
        let step = step.unwrap();
        let batch = step.batch().unwrap();
        let k = batch.int64("k").unwrap();
        assert_eq!(k.iter().map(|&k| k as u64).collect::<Vec<_>>(), step.ids);
        let (shape, pixels) = array::<u8>(batch.get("image"));
        assert_eq!(shape, [k.len(), 4, 4, 3]);
        for ((sample, pixels), &k) in step.samples().zip(pixels.chunks(48)).zip(k) {
            let g = draw(0, sample.epoch, sample.position, "image");
            let file = picture(NAMES[k as usize % NAMES.len()]);
            assert_eq!(Decoder::default().decode::<u8>(&file, &random([4, 4]), g).unwrap().pixels, pixels);
        }
        ks.extend_from_slice(k);
        skipped.extend(step.skipped.iter().map(|(id, _)| *id as usize));
    }
    assert_eq!(ks, (0..12).filter(|k| !bad.contains(&(*k as usize))).collect::<Vec<_>>());
    assert_eq!(skipped, bad);
}

/// A request for the pixels of a large picture fails, in the calling thread.
#[test]
fn a_lack_of_memory_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let (mut large, side) = (Vec::new(), 1500);
    let mut encoder = png::Encoder::new(&mut large, side, side);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&vec![7; (side * side * 3) as usize]).unwrap();
    let mut writer = Writer::create(&path).unwrap();
    for image in [picture("yuv420.jpg"), large, b"none".to_vec()] {
        writer
            .write(&ExampleBuilder::new().bytes("image", [image]).int64("k", [0]).encode().unwrap())
            .unwrap();
    }
    writer.close().unwrap();
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
    for spec in [random([4, 4]), ImageSpec { size: None, ..ImageSpec::default() }] {
        let schema = schema(&spec, None);
        let loader = || {
            let loader = ds.loader(&schema).batch_size(3).threads(0).damage(Damage::Skip);
            loader.parser(decoding(&schema)).build().unwrap().next().unwrap()
        };
        let step = loader().unwrap();
        assert_eq!((step.batch().unwrap().rows(), step.skipped.len()), (2, 1));
        let e = most_held(5 << 20, loader).0.unwrap_err();
        let is_memory = matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory);
        assert!(is_memory && !e.is_data(), "{e}");
    }
}

/// Waits until it is cancelled.
#[derive(Debug)]
struct Waiting(Mutex<mpsc::Sender<()>>);

impl ColumnDecoder for Waiting {
    fn decode(
        &self,
        _: &mut Batch,
        context: &DecodeContext<'_>,
    ) -> tfseek::Result<Vec<(usize, tfseek::Error)>> {
        self.0.lock().unwrap().send(()).unwrap();
        while !context.cancelled.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Err(ErrorKind::Cancelled.into())
    }

    fn signature(&self) -> &str {
        ""
    }
}

#[test]
fn a_loader_that_is_dropped_cancels_its_decoders() {
    let dir = tempfile::tempdir().unwrap();
    let (_, ds) = dataset(dir.path(), 8, &[]);
    let numbers =
        Schema::example().feature("k", FeatureSpec::fixed_len(&[], tfseek::DType::Int64)).build().unwrap();
    for of_columns in [false, true] {
        let (begun, begins) = mpsc::channel();
        let waiting = Arc::new(Waiting(Mutex::new(begun)));
        let schema = if of_columns { numbers.clone() } else { schema(&random([4, 4]), None) };
        let loader = ds.loader(&schema).parser(BatchParser::new(&schema).decoder(waiting));
        let mut loader = loader.batch_size(2).threads(2).build().unwrap();
        assert!(matches!(loader.next_within(Duration::ZERO), NextStep::Timeout));
        begins.recv().unwrap();
        // Waits for the threads.
        drop(loader);
    }
}

/// A row with a seed of its own.
struct Seeded(Vec<u8>, u64);

impl Row for Seeded {
    fn payload(&self) -> &[u8] {
        &self.0
    }

    fn augmentation_seed(&self) -> Option<u64> {
        Some(self.1)
    }
}

/// A parser draws with the places of rows, or with their seeds, and a single record has no dimension of rows.
#[test]
fn a_parser_decodes_pictures() {
    let schema = schema(&random([9, 7]), None);
    let parser = decoding(&schema);
    let file = picture("yuv420.jpg");
    let payload = ExampleBuilder::new().bytes("image", [&file]).int64("k", [1]).encode().unwrap();
    let made = |draw| Decoder::default().decode::<u8>(&file, &random([9, 7]), draw).unwrap().pixels;
    let places: Vec<u8> = (0..3).flat_map(|row| made(draw(0, 0, row, "image"))).collect();
    let batch = parser.parse(&vec![payload.clone(); 3]).unwrap();
    assert_eq!(array(batch.get("image")), (vec![3, 9, 7, 3], places));
    let seeded = [7, 4].map(|position| Seeded(payload.clone(), augmentation_seed(5, 2, position)));
    let drawn: Vec<u8> = [7, 4].into_iter().flat_map(|row| made(draw(5, 2, row, "image"))).collect();
    assert_eq!(array(parser.parse(&seeded).unwrap().get("image")), (vec![2, 9, 7, 3], drawn));
    let single = parser.parse_single(&seeded[1]).unwrap();
    assert_eq!(array(single.get("image")), (vec![9, 7, 3], made(draw(5, 2, 4, "image"))));

    let bad = ExampleBuilder::new().bytes("image", [b"none"]).int64("k", [1]).encode().unwrap();
    let e = parser.parse(&[payload.clone(), bad.clone()]).unwrap_err().to_string();
    assert!(e.starts_with("row 1 of the batch: feature \"image\": "), "{e}");
    assert!(parser.parse_single(&bad).unwrap_err().to_string().starts_with("feature \"image\": "));

    // Without a size, a single picture has the file's, and several are ragged.
    let open = ImageSpec::default();
    let schema = Schema::example().feature("image", FeatureSpec::Image(open.clone())).build().unwrap();
    let found = Decoder::default().decode::<u8>(&file, &open, 0).unwrap();
    let single = decoding(&schema).parse_single(&payload).unwrap();
    assert_eq!(array(single.get("image")), (vec![found.height, found.width, 3], found.pixels));
}

#[test]
fn a_schema_with_pictures_needs_a_decoder() {
    let dir = tempfile::tempdir().unwrap();
    let (_, ds) = dataset(dir.path(), 2, &[]);
    let schema = schema(&random([4, 4]), None);
    let refused = "feature \"image\": invalid schema: pictures are decoded by loaders and by parsers with a decoder, and this one has none";
    let row = ExampleBuilder::new().bytes("image", [b"x"]).int64("k", [1]).encode().unwrap();
    assert_eq!(BatchParser::new(&schema).parse(&[row]).unwrap_err().to_string(), refused);
    let mut loader = ds.loader(&schema).batch_size(1).build().unwrap();
    assert_eq!(loader.next().unwrap().unwrap_err().to_string(), refused);
}

/// Pictures without a common size are the lines and pixels of a ragged column, also beside bad ones, which
/// are left out.
#[test]
fn pictures_without_a_size_are_those_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let bad = [2, 7];
    let (_, ds) = dataset(dir.path(), 11, &bad);
    for (dtype, channels) in [(TensorDType::UInt8, 3), (TensorDType::UInt16, 1)] {
        let spec = ImageSpec { dtype, channels, ..ImageSpec::default() };
        for threads in [0, 2] {
            let schema = schema(&spec, None);
            let options = ds.loader(&schema).batch_size(4).damage(Damage::Skip).threads(threads);
            let mut rows = 0;
            for step in options.parser(decoding(&schema)).build().unwrap() {
                let step = step.unwrap();
                let batch = step.batch().unwrap();
                let Some(Column::Ragged(ragged)) = batch.get("image") else { panic!("{batch:?}") };
                let [RowSplits::Int64(lines), RowSplits::Int64(pixels)] = &ragged.row_splits[..] else {
                    panic!("{ragged:?}")
                };
                let Values::Array(values) = &ragged.values else { panic!("{ragged:?}") };
                assert_eq!(ragged.shape, [values.len() / channels as usize, channels as usize]);
                for (row, &k) in batch.int64("k").unwrap().iter().enumerate() {
                    let file = picture(NAMES[k as usize % NAMES.len()]);
                    let [from, to] = [row, row + 1].map(|row| pixels[lines[row] as usize] as usize);
                    let of = |values: usize| values * channels as usize;
                    let (height, width) = match dtype {
                        TensorDType::UInt8 => {
                            let want = Decoder::default().decode::<u8>(&file, &spec, 0).unwrap();
                            assert_eq!(values.as_slice::<u8>().unwrap()[of(from)..of(to)], want.pixels);
                            (want.height, want.width)
                        }
                        _ => {
                            let want = Decoder::default().decode::<u16>(&file, &spec, 0).unwrap();
                            assert_eq!(values.as_slice::<u16>().unwrap()[of(from)..of(to)], want.pixels);
                            (want.height, want.width)
                        }
                    };
                    assert_eq!((lines[row + 1] - lines[row]) as usize, height);
                    let widths = pixels[lines[row] as usize..=lines[row + 1] as usize].windows(2);
                    assert!(widths.map(|ends| ends[1] - ends[0]).all(|found| found == width as i64));
                    rows += 1;
                }
            }
            assert_eq!(rows, 9);
        }
    }
    // The parser's limit holds for them.
    let schema = schema(&ImageSpec::default(), None);
    let mut loader = ds.loader(&schema).parser(decoding(&schema).limit(1000)).batch_size(2).build().unwrap();
    let e = loader.next().unwrap().unwrap_err().to_string();
    assert!(e.contains("image") && e.contains("1000"), "{e}");
}

/// Returns a part of a picture as a PNG: top, left, height and width.
fn cut(image: &Image<u8>, [top, left, height, width]: [usize; 4]) -> Vec<u8> {
    let rows = (top..top + height).flat_map(|y| &image.pixels[(y * image.width + left) * 3..][..width * 3]);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&rows.copied().collect::<Vec<u8>>()).unwrap();
    file
}

/// Records of pictures, of which one is turned; of no picture in three ways; and of bad ones.
fn incomplete(dir: &Path, n: usize) -> (Vec<Option<Vec<u8>>>, Dataset) {
    let path = dir.join("incomplete.tfrecord");
    let mut writer = Writer::create(&path).unwrap();
    let mut files = Vec::new();
    for k in 0..n {
        let file = picture(["exif.jpg", "yuv420.jpg", "rgb8.png", "restart-rows.jpg"][k % 4]);
        let record = ExampleBuilder::new().int64("k", [k as i64]);
        let (record, file) = match k % 11 {
            3 => (record, None),
            5 => (record.bytes("image", [b""; 0]), None),
            7 => (record.bytes("image", [b""]), None),
            9 => (record.bytes("image", [b"\0"]), Some(b"\0".to_vec())),
            _ => (record.bytes("image", [&file]), Some(file)),
        };
        writer.write(&record.encode().unwrap()).unwrap();
        files.push(file);
    }
    writer.close().unwrap();
    (files, DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap())
}

/// The part of the whole picture, resized and mirrored as the column says, has the pixels of the row.
#[test]
fn a_geometry_is_the_part_that_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let (files, ds) = incomplete(dir.path(), 66);
    let size = Some([9, 7]);
    let plain = ImageSpec { size, exif: true, ..ImageSpec::default() };
    let base = ImageSpec { flip: 0.5, missing: Some(77), geometry: Some("a part".into()), ..plain.clone() };
    for (crop, fraction, threads) in
        [(None, 1.0, 0), (Some(Crop::Center), 0.5, 2), (Some(Crop::RandomResized), 1.0, 3)]
    {
        let spec = ImageSpec { crop, fraction, ..base.clone() };
        let schema = schema(&spec, None);
        let loader = ds.loader(&schema).batch_size(8).seed(3).shuffle(Shuffle::Global);
        let loader = loader.threads(threads).damage(Damage::Skip).parser(decoding(&schema));
        let mut seen = [0; 3];
        for step in loader.build().unwrap() {
            let step = step.unwrap();
            let batch = step.batch().unwrap();
            let names: Vec<_> = batch.columns().map(|(name, _)| name).collect();
            assert_eq!(names, ["a part", "image", "k"]);
            let (_, pixels) = array::<u8>(batch.get("image"));
            let (shape, parts) = array::<i32>(batch.get("a part"));
            assert_eq!(shape, [batch.rows(), 5]);
            for ((pixels, part), &k) in pixels.chunks(189).zip(parts.chunks(5)).zip(batch.int64("k").unwrap())
            {
                let Some(file) = &files[k as usize] else {
                    assert!(part == [0; 5] && pixels == [77; 189], "record {k}: {part:?}");
                    seen[2] += 1;
                    continue;
                };
                let all = ImageSpec { exif: true, ..ImageSpec::default() };
                let whole = Decoder::default().decode::<u8>(file, &all, 0).unwrap();
                let [top, left, height, width, mirrored] = <[i32; 5]>::try_from(part).unwrap();
                let part = cut(&whole, [top, left, height, width].map(|side| side as usize));
                let flip = f64::from(mirrored);
                let want =
                    Decoder::default().decode::<u8>(&part, &ImageSpec { flip, ..plain.clone() }, 0).unwrap();
                assert_eq!(want.pixels, pixels, "record {k}");
                seen[mirrored as usize] += 1;
            }
        }
        assert_eq!(seen[2], 18);
        assert!(seen[0] + seen[1] == 42 && seen[0].min(seen[1]) > 10, "{seen:?}");
    }
}

#[test]
fn a_geometry_is_a_column_of_any_batch_with_the_picture() {
    let dir = tempfile::tempdir().unwrap();
    let (_, ds) = dataset(dir.path(), 5, &[]);
    // Without a size it is that of the file.
    let spec = ImageSpec { geometry: Some("part".into()), ..ImageSpec::default() };
    let schema = schema(&spec, None);
    let parser = decoding(&schema).presence(true).rename([("image", "picture")]).unwrap();
    let loader = ds.loader(&schema).parser(parser).batch_size(5);
    let step = loader.build().unwrap().next().unwrap().unwrap();
    let batch = step.batch().unwrap();
    assert_eq!(batch.columns().map(|(name, _)| name).collect::<Vec<_>>(), ["k", "part", "picture"]);
    let want = NAMES.iter().flat_map(|name| {
        let image = Decoder::default().decode::<u8>(&picture(name), &spec, 0).unwrap();
        [0, 0, image.height as i32, image.width as i32, 0]
    });
    assert_eq!(array::<i32>(batch.get("part")), (vec![5, 5], want.collect()));
    assert_eq!(batch.presence("part"), batch.presence("picture"));
    // The spec has its name.
    let rename = |from, to| BatchParser::new(&schema).rename([(from, to)]).unwrap_err().to_string();
    assert!(rename("part", "place").contains("is renamed and is not in the schema"));
    assert!(rename("image", "part").contains("is the name of two columns"));
    // A file that is not decoded has none.
    assert!(ds.loader(&schema).batch_size(1).build().unwrap().next().unwrap().is_err());
}

/// Several pictures of a feature, and those of a feature list, are a ragged column. All of a record have one
/// draw, so the frames of a film have one crop.
#[test]
fn several_pictures_of_a_record() {
    let spec = ImageSpec { flip: 0.5, ..random([5, 4]) };
    let frames = |row: usize| (0..[2, 0, 3, 1][row]).map(move |k| picture(NAMES[(row + k) % NAMES.len()]));
    let of = || FeatureSpec::Image(spec.clone());
    let several = Schema::example().feature("film", FeatureSpec::Several(Box::new(of()))).build().unwrap();
    let listed = Schema::sequence_example().feature_list("film", of()).build().unwrap();
    let example = |row| {
        let frames: Vec<_> = frames(row).collect();
        ExampleBuilder::new().bytes("film", &frames).encode().unwrap()
    };
    let sequence = |row| {
        let steps = frames(row).map(|frame| FeatureBuf::Bytes(vec![frame]));
        SequenceExampleBuilder::new().feature_list("film", steps).encode().unwrap()
    };
    let mut decoder = Decoder::default();
    for (schema, rows) in [(several, [0, 1, 2, 3].map(example)), (listed, [0, 1, 2, 3].map(sequence))] {
        let parser = decoding(&schema);
        let batch = parser.parse(&rows).unwrap();
        let column = batch.get("film").or(batch.feature_list("film"));
        let Some(Column::Ragged(film)) = column else { panic!("{column:?}") };
        assert_eq!((&*film.shape, film.row_splits.len()), (&[6, 5, 4, 3][..], 1));
        assert_eq!(film.row_splits[0], RowSplits::Int64(vec![0, 2, 2, 5, 6].into()));
        let Values::Array(pixels) = &film.values else { panic!("{film:?}") };
        let mut want = Vec::new();
        for row in 0..4 {
            let seed = draw(0, 0, row as u64, "film");
            for frame in frames(row) {
                want.extend(decoder.decode::<u8>(&frame, &spec, seed).unwrap().pixels);
            }
        }
        assert!(pixels.as_slice::<u8>().unwrap() == want, "{schema:?}");
        let single = parser.parse_single(&rows[2]).unwrap();
        let (shape, pixels) = array::<u8>(single.get("film").or(single.feature_list("film")));
        assert_eq!((&*shape, pixels.len()), (&[3, 5, 4, 3][..], 180));
    }
    let none = ExampleBuilder::new().bytes("film", [&picture(NAMES[0]), &b"none".to_vec()]).encode().unwrap();
    let several = Schema::example().feature("film", FeatureSpec::Several(Box::new(of()))).build().unwrap();
    let e = decoding(&several).parse(&[example(0), none]).unwrap_err();
    assert_eq!((e.location().row, e.location().step), (Some(1), Some(1)), "{e}");
    assert_eq!(e.location().feature.as_deref(), Some("film"));
}
