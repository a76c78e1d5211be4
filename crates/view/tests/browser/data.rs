//! Data sets of the tests, written when they are needed.

use crate::png::{png, tone, wav};
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::Compression;
use tfseek::example::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;

/// Strings that run something if they are taken for HTML, for a URL, or for a path of an object.
pub(crate) const HOSTILE: [&str; 6] = [
    "<img src=x onerror=\"window.ran='img'\">",
    "\"><script>window.ran='script'</script>",
    "javascript:window.ran='url'",
    "<svg xmlns='http://www.w3.org/2000/svg' onload=\"window.ran='svg'\"><script>window.ran='svg script'</script></svg>",
    "__proto__",
    "' onmouseover='window.ran=1' data-test='card",
];

/// The classes of the image sets.
pub(crate) const CLASSES: [&str; 4] = ["salmon roll", "tuna", "unagi", "tamago"];

fn write(path: PathBuf, options: &WriterOptions, payloads: impl IntoIterator<Item = Vec<u8>>) -> PathBuf {
    let mut writer = options.create(&path).unwrap();
    for payload in payloads {
        writer.write(&payload).unwrap();
    }
    writer.close().unwrap();
    path
}

fn indexed() -> WriterOptions {
    WriterOptions { index: Some(IndexOptions::new()), ..WriterOptions::default() }
}

/// A shard of one record.
pub(crate) fn one(folder: &Path, record: Vec<u8>) -> Vec<PathBuf> {
    several(folder, [record])
}

/// A shard of some records.
pub(crate) fn several(folder: &Path, records: impl IntoIterator<Item = Vec<u8>>) -> Vec<PathBuf> {
    vec![write(folder.join("one.tfrecord"), &indexed(), records)]
}

/// The pictures of [`prepared`] with the `dataset_info.json` of their split.
pub(crate) fn split(folder: &Path) -> Vec<PathBuf> {
    let info = r#"{"name": "prepared", "version": "1.0.0", "fileFormat": "tfrecord",
        "splits": [{"name": "train", "shardLengths": ["20"], "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}]}"#;
    let paths = prepared(folder)[..1].to_vec();
    fs::write(paths[0].with_file_name("dataset_info.json"), info).unwrap();
    paths
}

/// Returns an image whose colours say which it is: blue is `i`, and red and green rise to the right and
/// downwards.
pub(crate) fn image(i: u32, width: u32, height: u32) -> Vec<u8> {
    png(width, height, |x, y| [(x * 255 / width) as u8, (y * 255 / height) as u8, (i * 40) as u8])
}

/// Two shards of `n` images each, with boxes as TensorFlow's object detection writes them, captions and a
/// mask.
///
/// Every fifth image has no box. `image/class/label` is the number of the record modulo 4.
pub(crate) fn detection(folder: &Path, n: u32) -> Vec<PathBuf> {
    let record = |i: u32| {
        let boxes = if i % 5 == 4 { 0 } else { i % 3 + 1 };
        let some = |at: f32| (0..boxes).map(move |b| at + b as f32 * 0.1).collect::<Vec<_>>();
        let class = CLASSES[i as usize % 4];
        ExampleBuilder::new()
            .bytes("image/encoded", [image(i, 64 + i % 3 * 32, 64)])
            .bytes("image/filename", [format!("photo {i}.png")])
            .int64("image/height", [64])
            .int64("image/width", [64 + i % 3 * 32])
            .int64("image/class/label", [i % 4])
            .bytes("image/class/text", [class])
            .float("image/object/bbox/xmin", some(0.1))
            .float("image/object/bbox/ymin", some(0.2))
            .float("image/object/bbox/xmax", some(0.5))
            .float("image/object/bbox/ymax", some(0.7))
            .bytes("image/object/class/text", vec![class; boxes as usize])
            .bytes("image/segmentation/class/encoded", [png(64, 64, |x, _| [(x / 32) as u8 * 255; 3])])
            .encode()
            .unwrap()
    };
    let shard = |s: u32| {
        let path = folder.join(format!("train-{s:05}-of-00002.tfrecord"));
        write(path, &indexed(), (s * n..(s + 1) * n).map(record))
    };
    vec![shard(0), shard(1)]
}

/// Images as TensorFlow Datasets writes them: `image`, `label`, and boxes of four floats each.
pub(crate) fn tfds(folder: &Path, n: u32) -> Vec<PathBuf> {
    let record = |i: u32| {
        ExampleBuilder::new()
            .bytes("image", [image(i, 48, 48)])
            .int64("label", [i % 10])
            .float("objects/bbox", [0.25_f32, 0.25, 0.75, 0.75, 0.0, 0.0, 0.5, 0.5])
            .int64("objects/label", [i % 10, 7])
            .encode()
            .unwrap()
    };
    vec![write(folder.join("tfds-train.tfrecord-00000-of-00001"), &indexed(), (0..n).map(record))]
}

/// Images and arrays that TensorFlow Datasets prepared, with a `features.json`: labels have names, boxes
/// another order, and the pixels of the second shard are compressed.
pub(crate) fn prepared(folder: &Path) -> Vec<PathBuf> {
    let of = |class: &str, content: &str| {
        format!(r#"{{"type": "tensorflow_datasets.core.features.{class}", "content": {content}}}"#)
    };
    let label = of("class_label_feature.ClassLabel", r#"{"num_classes": 4}"#);
    let tensor = of("tensor_feature.Tensor", r#"{"shape": [20, 30], "dtype": "uint16", "encoding": "zlib"}"#);
    let image = of(
        "image_feature.Image",
        r#"{"shape": [null, null, 3], "dtype": "uint8", "encoding_format": "png"}"#,
    );
    let boxes = of("bounding_boxes.BBoxFeature", r#"{"bbox_format": "REL_XYXY"}"#);
    let objects = of("features_dict.FeaturesDict", &format!(r#"{{"bbox": {boxes}, "label": {label}}}"#));
    let objects = of("sequence_feature.Sequence", &format!(r#"{{"feature": {objects}, "length": null}}"#));
    let write_features = |name: &str, features: String| {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("features.json"), of("features_dict.FeaturesDict", &features)).unwrap();
        for labels in ["label.labels.txt", "objects-label.labels.txt"] {
            fs::write(folder.join(labels), CLASSES.join("\n")).unwrap();
        }
        folder.join("prepared-train.tfrecord-00000-of-00001")
    };
    let pictures = |i: u32| {
        let record = ExampleBuilder::new().bytes("image", [self::image(i, 48, 48)]).int64("label", [i % 5]);
        let record = record.float("objects/bbox", [0.1_f32, 0.2, 0.3, 0.8]).int64("objects/label", [2]);
        record.encode().unwrap()
    };
    let arrays = |i: u32| {
        let values: Vec<u8> = (0..600u16).flat_map(|at| (at * 64 + i as u16).to_le_bytes()).collect();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut zlib, &values).unwrap();
        ExampleBuilder::new()
            .bytes("depth", [zlib.finish().unwrap()])
            .int64("label", [i % 5])
            .encode()
            .unwrap()
    };
    let first = write_features(
        "pictures",
        format!(r#"{{"image": {image}, "label": {label}, "objects": {objects}}}"#),
    );
    let second = write_features("arrays", format!(r#"{{"depth": {tensor}, "label": {label}}}"#));
    vec![write(first, &indexed(), (0..20).map(pictures)), write(second, &indexed(), (0..20).map(arrays))]
}

/// Arrays with a `features.json`: `wave` of any length in compressed bytes, and `few` of four half floats,
/// compressed to the size of floats, `path` of 60 x 4 and `matrix` of 9 x 16 in lists. The matrix of the
/// second record has five values.
pub(crate) fn declared_arrays(folder: &Path) -> Vec<PathBuf> {
    let tensor = |name: &str, shape: &str, dtype: &str, encoding: &str| {
        format!(
            r#""{name}": {{"type": "tensorflow_datasets.core.features.tensor_feature.Tensor", "content": {{"shape": {shape}, "dtype": "{dtype}", "encoding": "{encoding}"}}}}"#
        )
    };
    let features = [
        tensor("wave", "[null]", "int64", "zlib"),
        tensor("few", "[4]", "float16", "zlib"),
        tensor("path", "[60, 4]", "float32", "none"),
        tensor("matrix", "[9, 16]", "float32", "none"),
    ];
    let root = format!(
        r#"{{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {{{}}}}}"#,
        features.join(", ")
    );
    fs::write(folder.join("features.json"), root).unwrap();
    // 0, 0.5, 1 and 2 as half floats, in 16 compressed bytes.
    let few = b"\x78\x9c\x63\x60\x60\xb0\x60\xb0\x61\x70\0\0\x02\x14\0\xb5";
    let record = |i: usize| {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let wave: Vec<u8> = (-150..150_i64).flat_map(i64::to_le_bytes).collect();
        std::io::Write::write_all(&mut zlib, &wave).unwrap();
        ExampleBuilder::new()
            .bytes("wave", [zlib.finish().unwrap()])
            .bytes("few", [few])
            .float("path", (0..240).map(|k| (k / 4 * (k % 4)) as f32).collect::<Vec<_>>())
            .float("matrix", (0..[144, 5][i]).map(|k| k as f32).collect::<Vec<_>>())
            .encode()
            .unwrap()
    };
    vec![write(folder.join("arrays-train.tfrecord-00000-of-00001"), &indexed(), (0..2).map(record))]
}

/// Three robot episodes of 40, 50 and 0 steps that TensorFlow Datasets prepared: two cameras, actions of
/// seven dimensions, and an instruction that changes at step 20. `action` has the value step + dimension /
/// 10. The pictures of the camera `wrist` of episode 1 are no pictures, and it lacks the last reward.
pub(crate) fn episodes(folder: &Path) -> Vec<PathBuf> {
    let of = |class: &str, content: &str| {
        format!(r#"{{"type": "tensorflow_datasets.core.features.{class}", "content": {content}}}"#)
    };
    let dict = |features: &[(&str, String)]| {
        let all: Vec<_> = features.iter().map(|(name, feature)| format!("\"{name}\": {feature}")).collect();
        of("features_dict.FeaturesDict", &format!("{{{}}}", all.join(", ")))
    };
    let tensor = |shape: &str, dtype: &str| {
        of(
            "tensor_feature.Tensor",
            &format!(r#"{{"shape": {shape}, "dtype": "{dtype}", "encoding": "none"}}"#),
        )
    };
    let image =
        of("image_feature.Image", r#"{"shape": [48, 64, 3], "dtype": "uint8", "encoding_format": "png"}"#);
    let text = of("text_feature.Text", "{}");
    let action = r#"{"pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor", "tensor": {"shape": {"dimensions": ["7"]}, "dtype": "float32", "encoding": "none"}, "description": "joints <b>, gripper last"}"#;
    let step = dict(&[
        ("action", action.to_owned()),
        ("discount", tensor("[]", "float32")),
        ("embedding", tensor("[64]", "float32")),
        ("is_first", tensor("[]", "bool")),
        ("is_last", tensor("[]", "bool")),
        ("language_instruction", text.clone()),
        ("observation", dict(&[("image", image.clone()), ("wrist", image)])),
        ("reward", tensor("[]", "float32")),
    ]);
    let steps = of("dataset_feature.Dataset", &format!(r#"{{"feature": {step}, "length": null}}"#));
    let root = dict(&[("episode_metadata", dict(&[("file_path", text)])), ("steps", steps)]);
    fs::write(folder.join("features.json"), root).unwrap();
    let record = |e: u32| {
        let steps = [40, 50, 0][e as usize];
        let floats = |of: fn(u32) -> f32| (0..steps).map(of).collect::<Vec<_>>();
        let rewards = |n: u32| (0..n).map(|step| if step == 39 { 1.0_f32 } else { 0.0 }).collect::<Vec<_>>();
        let flags = |at: u32| (0..steps).map(|step| i64::from(step == at)).collect::<Vec<_>>();
        let wrist = |step| if e == 1 { b"no picture".to_vec() } else { image_of(step, 2) };
        let said = |step| if step < 20 { "open the drawer" } else { "close <b>it</b>" };
        let action = (0..steps * 7).map(|k| (k / 7) as f32 + (k % 7) as f32 / 10.0);
        ExampleBuilder::new()
            .bytes("episode_metadata/file_path", [format!("episode {e}")])
            .float("steps/action", action.collect::<Vec<_>>())
            .float("steps/discount", floats(|_| 1.0))
            .float("steps/embedding", vec![0.5_f32; steps as usize * 64])
            .int64("steps/is_first", flags(0))
            .int64("steps/is_last", flags(steps.saturating_sub(1)))
            .bytes("steps/language_instruction", (0..steps).map(said).collect::<Vec<_>>())
            .bytes("steps/observation/image", (0..steps).map(|step| image_of(step, 5)).collect::<Vec<_>>())
            .bytes("steps/observation/wrist", (0..steps).map(wrist).collect::<Vec<_>>())
            .float("steps/reward", rewards(steps - u32::from(e == 1)))
            .encode()
            .unwrap()
    };
    vec![write(folder.join("robot-train.tfrecord-00000-of-00001"), &indexed(), (0..3).map(record))]
}

/// Returns the picture of a step.
fn image_of(step: u32, shade: u32) -> Vec<u8> {
    png(64, 48, |x, y| [(x * 4) as u8, (y * shade) as u8, (step * 5) as u8])
}

/// Returns bytes in base64, without padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let all = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(|k| char::from(all[(bits >> (18 - 6 * k)) as usize & 63])).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// Returns the bytes of a field of a message: its number, and bytes.
pub(crate) fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = value.len();
    while len > 127 {
        out.push(len as u8 | 128);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(value);
    out
}

/// Lists of three Examples with a context: queries and their documents. The second document has 100 tokens.
pub(crate) fn queries(folder: &Path) -> Vec<PathBuf> {
    let record = |i: u8| {
        let document = |k: u8| {
            let tokens = if k == 1 { 100 } else { 2 };
            ExampleBuilder::new()
                .bytes("title", [format!("document {i}.{k}")])
                .float("relevance", [f32::from(k) / 2.0])
                .int64("tokens", (0..tokens).map(i64::from).collect::<Vec<_>>())
                .encode()
                .unwrap()
        };
        let context = ExampleBuilder::new().bytes("query", [format!("query {i}")]).int64("user", [i]);
        let documents = (0..3).map(|k| field(1, &document(k)));
        documents.chain([field(2, &context.encode().unwrap())]).flatten().collect::<Vec<u8>>()
    };
    several(folder, (0..9).map(record))
}

/// Images of 50 kB.
pub(crate) fn thumbnails(folder: &Path, n: u32) -> Vec<PathBuf> {
    let record = |i: u32| {
        let image = png(128, 130, |x, y| [(x * y + i) as u8, (x ^ y) as u8, (i * 7) as u8]);
        ExampleBuilder::new().bytes("image", [image]).int64("label", [i]).encode().unwrap()
    };
    vec![write(folder.join("thumbnails.tfrecord"), &indexed(), (0..n).map(record))]
}

/// Images of 28 x 28 floats, of ints, and of raw bytes with their height and width.
pub(crate) fn pixels(folder: &Path) -> Vec<PathBuf> {
    let value = |i: u32, at: u32| (at % 28 * 9 + i * 20) % 256;
    let floats = |i: u32| {
        let all: Vec<f32> = (0..784).map(|at| value(i, at) as f32 / 255.0).collect();
        ExampleBuilder::new().float("image_raw", all).int64("label", [i]).encode().unwrap()
    };
    let raw = |i: u32| {
        let all: Vec<u8> = (0..32 * 20 * 3).map(|at| value(i, at) as u8).collect();
        ExampleBuilder::new()
            .bytes("image_raw", [all])
            .int64("height", [20])
            .int64("width", [32])
            .int64("depth", [3])
            .encode()
            .unwrap()
    };
    vec![
        write(folder.join("floats.tfrecord"), &indexed(), (0..10).map(floats)),
        write(folder.join("raw.tfrecord"), &indexed(), (0..10).map(raw)),
    ]
}

/// Sequences: frames, numbers and tokens, of different lengths.
pub(crate) fn sequences(folder: &Path) -> Vec<PathBuf> {
    let record = |i: u32| {
        let steps = 5 + i;
        let number =
            |step: u32| FeatureBuf::from(vec![(f64::from(step) * 0.7).sin() as f32, step as f32 / 10.0]);
        SequenceExampleBuilder::new()
            .bytes("speaker", ["anna"])
            .int64("label", [i])
            .feature_list("frames", (0..steps).map(|step| FeatureBuf::from([image(step * 5, 40, 30)])))
            .feature_list("force", (0..steps).map(number))
            .feature_list("tokens", (0..steps).map(|step| FeatureBuf::from(vec![i64::from(step); 2])))
            .encode()
            .unwrap()
    };
    vec![write(folder.join("sequences.tfrecord"), &indexed(), (0..8).map(record))]
}

/// WAV files, and samples as integers with their rate.
pub(crate) fn audio(folder: &Path) -> Vec<PathBuf> {
    let record = |i: u32| {
        let samples = tone(8000, 220.0 * f64::from(i + 1), 4000);
        ExampleBuilder::new()
            .bytes("audio", [wav(8000, &samples)])
            .bytes("label", [format!("tone {i}")])
            .encode()
            .unwrap()
    };
    let numbers = |i: u32| {
        let samples = tone(8000, 220.0 * f64::from(i + 1), 4000);
        ExampleBuilder::new().int64("speech", samples).int64("sample_rate", [8000]).encode().unwrap()
    };
    vec![
        write(folder.join("wav.tfrecord"), &indexed(), (0..4).map(record)),
        write(folder.join("samples.tfrecord"), &indexed(), (0..4).map(numbers)),
    ]
}

/// The first shard of [`detection`] in gzip, with checkpoints in its index.
pub(crate) fn gzip(folder: &Path, n: u32) -> Vec<PathBuf> {
    let options = WriterOptions { compression: Compression::Gzip, ..indexed() };
    let record = |i: u32| {
        ExampleBuilder::new().bytes("image", [image(i, 48, 48)]).int64("label", [i % 10]).encode().unwrap()
    };
    vec![write(folder.join("images.tfrecord.gz"), &options, (0..n).map(record))]
}

pub(crate) fn empty(folder: &Path) -> Vec<PathBuf> {
    let path = folder.join("empty.tfrecord");
    fs::write(&path, b"").unwrap();
    vec![path]
}

/// Records that are no messages: text, a protobuf message of other fields, zero bytes, random bytes.
pub(crate) fn bytes(folder: &Path) -> Vec<PathBuf> {
    let payloads: [&[u8]; 4] =
        [b"a line of text", b"\x08\x96\x01\x12\x03abc", b"", b"\xff\x00\x80\x7f\xc3\x28"];
    vec![write(folder.join("bytes.tfrecord"), &indexed(), payloads.map(<[u8]>::to_vec))]
}

/// 50 records: the length of record 20 is damaged, and so is a byte of the payload of record 30; the last
/// record is torn.
pub(crate) fn damaged(folder: &Path) -> Vec<PathBuf> {
    let mut file = Vec::new();
    let mut starts = Vec::new();
    for i in 0..50 {
        starts.push(file.len());
        let payload = ExampleBuilder::new()
            .int64("label", [i])
            .bytes("text", [format!("record {i}")])
            .encode()
            .unwrap();
        put_record(&mut file, &payload).unwrap();
    }
    file[starts[20]] ^= 0x40;
    file[starts[30] + 20] ^= 1;
    file.truncate(file.len() - 7);
    let path = folder.join("damaged.tfrecord");
    fs::write(&path, file).unwrap();
    vec![path]
}

/// Records whose names and values are [`HOSTILE`].
pub(crate) fn hostile(folder: &Path) -> Vec<PathBuf> {
    let plain = |i: usize| {
        let mut example = ExampleBuilder::new()
            .bytes("image/filename", [HOSTILE[i]])
            .bytes("label", [HOSTILE[i]])
            .bytes("image/encoded", [HOSTILE[3]])
            .float("odd", [f32::NAN, f32::INFINITY, -0.0])
            .int64("big", [i64::MAX, i64::MIN]);
        for (k, text) in HOSTILE.iter().enumerate() {
            example = example.bytes(*text, [HOSTILE[(k + i) % 6]]);
        }
        example.encode().unwrap()
    };
    let sequence = |i: usize| {
        SequenceExampleBuilder::new()
            .bytes(HOSTILE[i], [HOSTILE[0]])
            .feature_list(HOSTILE[i], HOSTILE.map(|text| FeatureBuf::from([text])))
            .encode()
            .unwrap()
    };
    vec![
        write(folder.join("<img src=x onerror=alert(1)>.tfrecord"), &indexed(), (0..6).map(plain)),
        write(folder.join("'$(touch x)'.tfrecord"), &indexed(), (0..6).map(sequence)),
    ]
}

/// `n` records of one label and their number, in one shard.
pub(crate) fn many(folder: &Path, n: u64) -> Vec<PathBuf> {
    let record =
        |i: u64| ExampleBuilder::new().int64("label", [i % 10]).int64("number", [i]).encode().unwrap();
    vec![write(folder.join("many.tfrecord"), &indexed(), (0..n).map(record))]
}

/// `n` records of numbers: evenly spread, constant, rare, over many powers of ten, beyond 2^53, of 17 values.
/// Of 10 records of a `side` other than 0, 9 are those of side 0. Those that are not are drawn anew, and
/// `moved` is higher.
pub(crate) fn numbers(folder: &Path, name: &str, n: u64, side: u64) -> Vec<PathBuf> {
    let record = |i: u64| {
        let own = if side > 0 && i.is_multiple_of(10) { side * 1_000_000 } else { 0 };
        // A multiplication mixes the bits of the number.
        let draw = |k: u64| {
            ((i + own) * 8 + k)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(31)
                .wrapping_mul(0xd6e8_feb8_6659_fd93)
                >> 40
        };
        let part = |k: u64| draw(k) as f32 / (1 << 24) as f32;
        ExampleBuilder::new()
            .int64("flat", [(i % 31) as i64])
            .int64("constant", [7])
            .int64("rare", [i64::from(i == 77)])
            .float("tail", [(part(1) * 16.0).exp()])
            .int64("wide", [(1 << 53) + 1 + (i % 1000 * 1024) as i64])
            .int64("seventeen", [(draw(2) % 17) as i64])
            .float("seventeen/float", [(draw(2) % 17) as f32 / 8.0])
            .float("moved", [part(3) + if own > 0 { 3.0 } else { 0.0 }])
            .encode()
            .unwrap()
    };
    vec![write(folder.join(format!("{name}.tfrecord")), &indexed(), (0..n).map(record))]
}

/// Gives a shard and its index `n` names each: a set of `n` times as many records, with the space of one.
pub(crate) fn repeated(shard: &Path, n: usize) -> Vec<PathBuf> {
    let (folder, name) = (shard.parent().unwrap(), shard.file_name().unwrap().to_str().unwrap());
    let indexes = folder.join(".tfseek");
    let index =
        fs::read_dir(&indexes).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let index = index.filter(|index| index.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(index.len(), 1, "{index:?}");
    let link = |i: usize| {
        let new = format!("part-{i:05}-of-{n:05}");
        let path = folder.join(&new);
        fs::hard_link(shard, &path).unwrap();
        fs::hard_link(indexes.join(&index[0]), indexes.join(index[0].replace(name, &new))).unwrap();
        path
    };
    (0..n).map(link).collect()
}
