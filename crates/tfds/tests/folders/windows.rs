//! Windows over steps that have lists of pictures.

use std::io::Write;
use tfseek::batch::Values;
use tfseek::frame::put_record;
use tfseek::io::Region;
use tfseek::schema::ImageSpec;
use tfseek::{DatasetOptions, ExampleBuilder, IndexMode};
use tfseek_rlds::{EpisodeOptions, Pad};
use tfseek_tfds::{DecodeOptions, Decoder, Episodes, Features, Offsets, RecordValue, WindowOptions};

const FEATURES: &str = r#"{"pythonClassName": "Pfeatures_dict.FeaturesDict", "featuresDict": {"features": {
    "steps": {"pythonClassName": "Pdataset_feature.Dataset", "sequence": {"length": "-1", "feature": {
        "pythonClassName": "Pfeatures_dict.FeaturesDict", "featuresDict": {"features": {
            "x": {"pythonClassName": "Ptensor_feature.Tensor", "tensor": {"shape": {}, "dtype": "float32", "encoding": "none"}},
            "pictures": {"pythonClassName": "Psequence_feature.Sequence", "sequence": {"length": "-1", "feature": {
                "pythonClassName": "Pimage_feature.Image", "image": {"shape": {"dimensions": ["2", "3", "1"]}, "dtype": "uint8", "encodingFormat": "png"}}}}
    }}}}}}}}"#;

fn features() -> Features {
    let text = FEATURES.replace("\"P", "\"tensorflow_datasets.core.features.");
    Features::parse(text.as_bytes()).unwrap()
}

/// Returns a PNG file of 2 rows of 3 pixels of one gray.
fn png(gray: u8) -> Vec<u8> {
    let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    stream.write_all(&[0, gray, gray, gray, 0, gray, gray, gray]).unwrap();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let head = [0, 0, 0, 3, 0, 0, 0, 2, 8, 0, 0, 0, 0];
    for (name, bytes) in [(b"IHDR", &head[..]), (b"IDAT", &stream.finish().unwrap()), (b"IEND", &[])] {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(bytes);
        file.extend((bytes.len() as u32).to_be_bytes());
        file.extend(name);
        file.extend(bytes);
        file.extend(crc.sum().to_be_bytes());
    }
    file
}

/// A step has several pictures, so padding has as many as the first step: black if they are decoded, empty
/// files otherwise.
#[test]
fn padding_of_lists_of_pictures_is_black() {
    let features = features();
    let payload = ExampleBuilder::new()
        .float("steps/x", [1.0, 2.0])
        .bytes("steps/pictures/ragged_flat_values", [png(10), png(20), png(30)])
        .int64("steps/pictures/ragged_row_lengths_0", [2, 1])
        .encode()
        .unwrap();
    let mut shard = Vec::new();
    put_record(&mut shard, &payload).unwrap();
    let memory = DatasetOptions::new().index(IndexMode::Memory);
    let ds = memory.open_regions([Region::from(shard)]).unwrap().dataset().clone();
    let robot = Episodes::new(&ds, &features, None, &EpisodeOptions::default()).unwrap();
    for encoded in [false, true] {
        let decoded = !encoded;
        let options = WindowOptions { pad: Pad::Zero, encoded, ..WindowOptions::default() };
        let keys = [("pictures", Offsets::Many(vec![-1, 0])), ("x", Offsets::One(0))];
        let windows = robot.windows(keys, &options).unwrap();
        let decoder = Decoder::new(windows.features(), windows.decode()).unwrap();
        let mut buf = Vec::new();
        let row = windows.windows().dataset().read(0, &mut buf).unwrap();
        let record = decoder.record(&row).unwrap();
        let value = record.get("pictures").unwrap().unwrap();
        // Two steps of two pictures: the padding, and the first step.
        if decoded {
            let RecordValue::Ragged { values, row_splits } = value else {
                panic!("expected ragged pictures")
            };
            assert_eq!((values.shape(), &*row_splits), (&[4, 2, 3, 1][..], &[vec![0, 2, 4]][..]));
            let (Values::Array(pixels), 0) = values.values() else { panic!("expected pixels") };
            assert_eq!(pixels.as_slice::<u8>().unwrap(), [[0; 6], [0; 6], [10; 6], [20; 6]].concat());
        } else {
            let found: Vec<Vec<u8>> = row
                .example()
                .bytes("pictures/ragged_flat_values")
                .unwrap()
                .iter()
                .map(<[u8]>::to_vec)
                .collect();
            assert!(found[..2].iter().all(Vec::is_empty) && found[2..] == [png(10), png(20)]);
        }
    }
}

#[test]
fn sizes_that_no_picture_has_are_refused() {
    let features = features();
    let resized = |size| {
        let image = ImageSpec { size: Some(size), ..ImageSpec::default() };
        let pictures = vec![("steps/pictures".to_owned(), Some(image))];
        Decoder::new(&features, &DecodeOptions { pictures, ..DecodeOptions::default() })
    };
    assert!(resized([2, 3]).is_ok());
    for [h, w] in [[0, 5], [u32::MAX, u32::MAX]] {
        let e = resized([h, w]).err().unwrap().to_string();
        assert!(e.contains(&format!("size: expected 1 to 100000000 pixels, found {h} x {w}")), "{e}");
    }
}
