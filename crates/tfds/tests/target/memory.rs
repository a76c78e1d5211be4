//! Lack of memory, of the calling thread: an error that is no damage, and no abort.

use std::io::Write;
use tfseek::io::Region;
use tfseek::{Error, ErrorKind, ExampleBuilder};
use tfseek_testkit::alloc::most_held;
use tfseek_tfds::{DecodeOptions, Decoder, Encoder, Features, Scalars};

const P: &str = "tensorflow_datasets.core.features.";

fn features(leaf: &str) -> Features {
    let text = format!(
        r#"{{"pythonClassName": "{P}features_dict.FeaturesDict", "featuresDict": {{"features": {{"x": {{"pythonClassName": "{P}{leaf}}}}}}}}}"#
    );
    Features::parse(text.as_bytes()).unwrap()
}

fn bytes_in_zlib() -> Features {
    features(
        r#"tensor_feature.Tensor", "tensor": {"shape": {"dimensions": ["-1"]}, "dtype": "uint8", "encoding": "zlib"}"#,
    )
}

#[track_caller]
fn is_memory(e: &Error) {
    let found = matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory);
    assert!(found && !e.is_data(), "{e}");
}

/// Reads a value one by one and in a batch, with and without the memory for it.
#[track_caller]
fn decode(features: &Features, file: &[u8], limit: usize) {
    let decoder = Decoder::new(features, &DecodeOptions::default()).unwrap();
    let parser = decoder.parser().unwrap();
    let row = Region::new(ExampleBuilder::new().bytes("x", [file]).encode().unwrap());
    let batch = || parser.parse(std::slice::from_ref(&row)).map(drop);
    let record = || decoder.record(&row)?.get("x").map(drop);
    is_memory(&most_held(limit, batch).0.unwrap_err());
    is_memory(&most_held(limit, record).0.unwrap_err());
    batch().unwrap();
    record().unwrap();
}

#[test]
fn arrays_in_zlib() {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&vec![0; 8 << 20]).unwrap();
    decode(&bytes_in_zlib(), &zlib.finish().unwrap(), 1 << 20);
}

/// The pixels fit, and the coefficients of a progressive file do not.
#[cfg(feature = "image")]
#[test]
fn pictures() {
    let segment = |marker: u8, body: &[u8]| {
        [&[0xff, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat()
    };
    let [high, low] = 2000u16.to_be_bytes();
    let file = [
        b"\xff\xd8".to_vec(),
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(0xc2, &[8, high, low, high, low, 1, 1, 0x11, 0]),
        segment(0xc4, &[&[0, 1][..], &[0; 15], &[0]].concat()),
        segment(0xda, &[1, 1, 0, 0, 0, 0]),
        vec![0; 250 * 250 / 8 + 1],
        b"\xff\xd9".to_vec(),
    ];
    let image = features(
        r#"image_feature.Image", "image": {"shape": {"dimensions": ["-1", "-1", "1"]}, "dtype": "uint8"}"#,
    );
    decode(&image, &file.concat(), 6 << 20);
}

/// A number takes the memory that it is stored in, whatever it was given as.
#[test]
fn values_that_are_written() {
    let mut encoder = Encoder::new(&bytes_in_zlib()).unwrap();
    let n = 4 << 20;
    let mut set = || encoder.set(0, &[vec![n]], Scalars::Integers(&mut (0..n).map(|k| k as i128 & 1)));
    is_memory(&most_held(1 << 20, &mut set).0.unwrap_err());
    let (done, held) = most_held(usize::MAX, set);
    done.unwrap();
    assert!(held < 3 * n as u64, "{held}");
    assert!(most_held(1 << 20, || encoder.finish()).0.unwrap().len() < n / 100);
}
