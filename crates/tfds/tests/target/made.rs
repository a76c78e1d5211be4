//! Features and payloads that are made of the bytes of a fuzzer.

use serde_json::{Value, json};
use tfseek::schema::{DType, FeatureSpec, Partition};
use tfseek::{ExampleBuilder, FeatureBuf};
use tfseek_tfds::{Decoder, Features};

/// Bytes that are read one by one. After the last one follow zeros.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() % n
    }

    fn choice<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const DTYPES: [&str; 14] = [
    "int64", "float32", "string", "uint8", "bool", "float64", "float16", "bfloat16", "int8", "int32",
    "uint16", "uint32", "uint64", "int16",
];

/// Returns features of random classes.
pub(crate) fn features(bytes: &mut Bytes<'_>, depth: usize) -> Features {
    let text = dict(bytes, depth).to_string();
    Features::parse(text.as_bytes()).unwrap()
}

fn class(name: &str) -> String {
    format!("tensorflow_datasets.core.features.{name}")
}

fn dict(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    let names = ["a", "b", "c/d", "value"];
    let n = 1 + bytes.below(names.len());
    let features: serde_json::Map<String, Value> =
        names[..n].iter().map(|name| ((*name).to_owned(), feature(bytes, depth))).collect();
    json!({"pythonClassName": class("features_dict.FeaturesDict"), "featuresDict": {"features": features}})
}

fn feature(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    let length = ["-1", "-1", "2", "1", "3"];
    match bytes.below(if depth < 3 { 14 } else { 9 }) {
        0..=2 => tensor(bytes, false),
        3 => tensor(bytes, true),
        4 => {
            json!({"pythonClassName": class("class_label_feature.ClassLabel"), "classLabel": {"numClasses": "3"}})
        }
        5 => json!({"pythonClassName": class("text_feature.Text"), "text": {}}),
        6 => {
            let side = |bytes: &mut Bytes<'_>| bytes.choice(&["-1", "1", "2"]);
            let dimensions = [side(bytes), side(bytes), bytes.choice(&["3", "1", "4", "-1"])];
            let image = json!({"shape": {"dimensions": dimensions}, "dtype": bytes.choice(&["uint8", "uint8", "uint16"])});
            json!({"pythonClassName": class("image_feature.Image"), "image": image})
        }
        7 => {
            let optional = json!({"shape": {}, "dtype": bytes.choice(&DTYPES), "optional": true});
            json!({"pythonClassName": class("tensor_feature.Tensor"), "tensor": optional})
        }
        8 => json!({"pythonClassName": class("bounding_boxes.BBoxFeature"), "boundingBox": {}}),
        9 => dict(bytes, depth + 1),
        10 => {
            let sequence = json!({"feature": feature(bytes, depth + 1), "length": bytes.choice(&length)});
            json!({"pythonClassName": class("dataset_feature.Dataset"), "sequence": sequence})
        }
        _ => {
            let sequence = json!({"feature": feature(bytes, depth + 1), "length": bytes.choice(&length)});
            json!({"pythonClassName": class("sequence_feature.Sequence"), "sequence": sequence})
        }
    }
}

fn tensor(bytes: &mut Bytes<'_>, encoded: bool) -> Value {
    let rank = bytes.below(4);
    let sizes = if encoded { ["2", "-1", "1", "0"] } else { ["2", "1", "-1", "0"] };
    let dimensions: Vec<&str> = (0..rank).map(|_| bytes.choice(&sizes)).collect();
    let encoding = if encoded { bytes.choice(&["bytes", "zlib"]) } else { "none" };
    let mut dtype = bytes.choice(&DTYPES);
    if encoded && dtype == "string" {
        dtype = "complex64";
    }
    let tensor = json!({"shape": {"dimensions": dimensions}, "dtype": dtype, "encoding": encoding});
    json!({"pythonClassName": class("tensor_feature.Tensor"), "tensor": tensor})
}

/// Returns a payload for the stored features of a decoder. Some bytes make counts wrong, leave features out,
/// or change bytes.
pub(crate) fn payload(decoder: &Decoder, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut example = ExampleBuilder::new();
    // Numbers of rows that several features share, so that steps often agree.
    let shared = 1 + bytes.below(3);
    for (name, spec) in decoder.schema().features() {
        match spec {
            FeatureSpec::FixedLen { shape, dtype, default } => {
                let n = shape.iter().product::<usize>();
                if n > 1000 || default.is_some() && bytes.below(2) == 0 {
                    continue;
                }
                if let Some(n) = count(bytes, n) {
                    example = example.feature(name, values(name, *dtype, n, bytes));
                }
            }
            FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
                let mut rows = if bytes.below(4) == 0 { bytes.below(4) } else { shared };
                for partition in partitions {
                    match partition {
                        Partition::RowLengths(key) => {
                            let lengths: Vec<i64> =
                                (0..rows).map(|_| bytes.choice(&[2i64, 2, 0, 1])).collect();
                            rows = lengths.iter().sum::<i64>() as usize;
                            let lengths = if bytes.below(16) == 1 { vec![-1, 2] } else { lengths };
                            example = example.feature(key, FeatureBuf::Int64(lengths));
                        }
                        Partition::UniformRowLength(n) if *n < 100 => rows *= n,
                        _ => return Vec::new(),
                    }
                }
                if let Some(n) = count(bytes, rows) {
                    let key = value_key.as_deref().unwrap_or(name);
                    example = example.feature(key, values(name, *dtype, n, bytes));
                }
            }
            _ => {}
        }
    }
    let mut payload = example.encode().unwrap();
    if bytes.below(8) == 1 && !payload.is_empty() {
        let at = (bytes.next() << 8 | bytes.next()) % payload.len();
        payload[at] = bytes.next() as u8;
    }
    payload
}

/// Returns the number of values, sometimes a wrong one. `None`: the feature is left out.
fn count(bytes: &mut Bytes<'_>, n: usize) -> Option<usize> {
    match bytes.below(24) {
        1 => None,
        2 => Some(n + 1),
        3 => Some(n.saturating_sub(1)),
        _ => Some(n),
    }
}

fn values(name: &str, dtype: DType, n: usize, bytes: &mut Bytes<'_>) -> FeatureBuf {
    match dtype {
        // The stored shapes of arrays are such as fit sometimes.
        DType::Int64 if name.ends_with("shape") => {
            FeatureBuf::Int64((0..n).map(|_| bytes.choice(&[1, 2, 1, 0, -1, i64::MAX])).collect())
        }
        DType::Int64 => {
            FeatureBuf::Int64((0..n).map(|_| (bytes.next() as i64 - 100).wrapping_mul(0x0101_0101)).collect())
        }
        DType::Float32 => {
            FeatureBuf::Float((0..n).map(|_| f32::from_bits((bytes.next() as u32) << 22)).collect())
        }
        DType::Bytes => FeatureBuf::Bytes((0..n).map(|_| string(bytes)).collect()),
    }
}

/// Returns a byte string: a picture, a zlib stream, or plain bytes.
fn string(bytes: &mut Bytes<'_>) -> Vec<u8> {
    /// A grey picture of 1 x 1, and one in RGB of 2 x 1.
    const GIF: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55\x00\x00\x00\x0aIDAT\x78\x9c\x63\x60\x00\x00\x00\x02\x00\x01\x48\xaf\xa4\x71\x00\x00\x00\x00IEND\xae\x42\x60\x82";
    match bytes.below(4) {
        0 => PNG.to_vec(),
        1 => GIF.to_vec(),
        2 => {
            use std::io::Write;
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            let plain: Vec<u8> = (0..bytes.below(17)).map(|_| bytes.next() as u8).collect();
            encoder.write_all(&plain).unwrap();
            let mut stream = encoder.finish().unwrap();
            if bytes.below(8) == 1 {
                stream.pop();
            }
            stream
        }
        _ => (0..bytes.below(17)).map(|_| bytes.next() as u8).collect(),
    }
}
