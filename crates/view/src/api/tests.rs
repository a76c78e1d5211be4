use super::find;
use super::routes::Api;
use crate::fed::FedPictures;
use crate::http::{Answers, Request};
use crate::set::ViewSet;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::batch::{Column, Values};
use tfseek::index::IndexOptions;
use tfseek::loader::Shuffle;
use tfseek::schema::{Crop, DType, ImageSpec};
use tfseek::{
    BatchParser, Damage, DatasetOptions, ExampleBuilder, FeatureBuf, FeatureSpec, Schema,
    SequenceExampleBuilder, TensorDType, Writer,
};
use tfseek_image::{Decoder, DecoderPool};

pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";

pub(super) fn write(path: &Path, payloads: impl IntoIterator<Item = Vec<u8>>) -> PathBuf {
    let mut writer = Writer::create(path).unwrap();
    payloads.into_iter().for_each(|payload| writer.write(&payload).unwrap());
    writer.close().unwrap();
    path.to_path_buf()
}

fn image(i: i64) -> Vec<u8> {
    ExampleBuilder::new()
        .bytes("image/encoded", [PNG])
        .int64("label", [i % 10])
        .float("image/object/bbox/xmin", [0.25, 0.5])
        .float("image/object/bbox/xmax", [0.5, 1.0])
        .float("image/object/bbox/ymin", [0.25, 0.5])
        .float("image/object/bbox/ymax", [0.5, f32::NAN])
        .bytes("image/object/class/text", [b"cat", b"dog"])
        .int64("big", [i64::MAX])
        .encode()
        .unwrap()
}

pub(super) fn api(paths: &[PathBuf]) -> Api {
    let options = DatasetOptions::new().index(IndexOptions::new().damage(Damage::Skip));
    let set = ViewSet::new(options.open(paths).unwrap(), "images").unwrap();
    Api::new(vec![set], &Map::new(), None, 2).unwrap()
}

pub(super) fn request(target: &str) -> Request {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(key, value)| (key.to_owned(), value.replace('+', " "))).collect();
    Request { path: format!("/api/{path}"), query, ..Request::default() }
}

/// Returns the JSON of an answer, which must have this status.
pub(super) fn ask(api: &Api, status: u16, target: &str) -> Value {
    let response = api.answer(&request(target));
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, status, "{target}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{target}: {e}: {text}"))
}

/// Asks until the work is done.
fn ask_until_done(api: &Api, target: &str) -> Value {
    for _ in 0..6000 {
        let answer = ask(api, 200, target);
        if answer["done"] == json!(true) {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{target} does not end");
}

#[test]
fn a_set_of_images() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("a.tfrecord"), (0..1000).map(image));
    let api = api(&[path]);

    let dataset = ask(&api, 200, "dataset");
    assert_eq!(
        (&dataset["records"], &dataset["kind"], &dataset["shards"]),
        (&json!(1000), &json!("example"), &json!(1))
    );
    let roles = &dataset["roles"];
    assert_eq!((&roles["image"], &roles["label"]), (&json!("image/encoded"), &json!("label")));
    assert_eq!(roles["boxes"]["text"], json!("image/object/class/text"));

    let records = ask(&api, 200, "records?from=998&n=60");
    assert_eq!(records["records"].as_array().unwrap().len(), 2);
    let features = &records["records"][1]["features"];
    assert_eq!(
        features["image/encoded"]["bytes"][0],
        json!({"bytes": 29, "type": "image/png", "width": 320, "height": 240})
    );
    assert_eq!(features["label"], json!({"int64": [9], "n": 1}));
    assert_eq!(features["big"]["int64"], json!(["9223372036854775807"]));
    assert_eq!(features["image/object/bbox/ymax"]["float"], json!([0.5, "NaN"]));
    let records = ask(&api, 200, "records?ids=7,3&features=lab*");
    let ids: Vec<_> =
        records["records"].as_array().unwrap().iter().map(|record| record["id"].clone()).collect();
    assert_eq!(
        (ids, &records["records"][0]["features"]),
        (vec![json!(7), json!(3)], &json!({"label": {"int64": [7], "n": 1}}))
    );

    assert_eq!(ask(&api, 200, "record/7")["shard"], json!("a.tfrecord"));
    assert_eq!(ask(&api, 404, "record/1000")["error"], json!("there is no record 1,000: there are 1,000"));
    assert_eq!(ask(&api, 200, "json/7")["features"]["label"], json!([7]));
    ask(&api, 400, "record/x");
    ask(&api, 404, "records?set=1");
    ask(&api, 404, "nothing");
    ask(&api, 400, "records?n=501");

    let sample = ask(&api, 200, "sample?n=5&seed=7");
    assert_eq!(sample, ask(&api, 200, "sample?n=5&seed=7"));
    let step = ask(&api, 200, "step?batch=400&epoch=3&seed=1&step=2");
    assert_eq!((step["ids"].as_array().unwrap().len(), &step["steps"]), (200, &json!(3)));
    ask(&api, 404, "step?batch=400&step=3");
    ask(&api, 400, "step?batch=400&shuffle=x");
    ask(&api, 400, "step?batch=0");
    assert_eq!(dataset["fed"], json!([]));
    let refused = ask(&api, 404, "fed/7?draw=1&name=image/encoded");
    assert_eq!(refused["error"], json!("there is no schema with pictures: `tfseek view --schema FILE`"));
}

/// The pixels are those of a loader whose pictures are bytes.
#[test]
fn a_step_has_its_pictures_as_they_are_fed() {
    let dir = tempfile::tempdir().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/data");
    let files =
        ["yuv420.jpg", "rgb8.png", "exif.jpg"].map(|name| std::fs::read(format!("{data}/{name}")).unwrap());
    let record = |i: usize| ExampleBuilder::new().bytes("image", [&files[i % 3]]).int64("label", [i as i64]);
    let path = write(&dir.path().join("a.tfrecord"), (0..30).map(|i| record(i).encode().unwrap()));
    let dataset = DatasetOptions::new().index(IndexOptions::new()).open(&path).unwrap();
    let bytes = ImageSpec {
        size: Some([9, 7]),
        crop: Some(Crop::RandomResized),
        flip: 0.5,
        jitter: vec![("hue".into(), [-0.5, 0.5]), ("brightness".into(), [0.5, 1.5])],
        ..ImageSpec::default()
    };
    let fed = ImageSpec {
        dtype: TensorDType::Float32,
        normalize: Some([vec![0.5; 3], vec![0.2; 3]]),
        channels_first: true,
        geometry: Some("part".into()),
        ..bytes.clone()
    };
    let label = FeatureSpec::fixed_len(&[], DType::Int64);
    let schema = Schema::example().feature("image", FeatureSpec::Image(fed)).feature("label", label);
    let decoder = || Arc::new(DecoderPool::default());
    let set = ViewSet::new(dataset.clone(), "a").unwrap();
    let fed = FedPictures::new(&schema.build().unwrap(), decoder()).unwrap();
    let api = Api::new(vec![set], &Map::new(), None, 2).unwrap().fed(Some(fed));
    assert_eq!(ask(&api, 200, "dataset")["fed"], json!(["image"]));
    let schema = Schema::example().feature("image", FeatureSpec::Image(bytes)).build().unwrap();
    let parser = BatchParser::new(&schema).decoder(decoder());
    let loader =
        dataset.loader(&schema).parser(parser).batch_size(8).shuffle(Shuffle::Global).seed(5).epoch(2);
    for (k, step) in loader.build().unwrap().enumerate() {
        let step = step.unwrap();
        let Some(Values::Array(pixels)) = step.batch().unwrap().get("image").map(Column::values) else {
            panic!()
        };
        let shown = ask(&api, 200, &format!("step?batch=8&seed=5&epoch=2&step={k}"));
        let rows = shown["ids"].as_array().unwrap().iter().zip(shown["draws"].as_array().unwrap());
        for ((id, draw), pixels) in rows.zip(pixels.as_slice::<u8>().unwrap().chunks(9 * 7 * 3)) {
            let draw = draw.as_str().unwrap();
            let found = api.answer(&request(&format!("fed/{id}?draw={draw}&name=image")));
            let plain = ImageSpec::default();
            let shown = Decoder::default().decode::<u8>(&found.body, &plain, 0).unwrap();
            assert_eq!((shown.height, shown.width, &shown.pixels[..]), (9, 7, pixels));
        }
    }
    ask(&api, 400, "fed/3?name=label");
    ask(&api, 404, "fed/30?name=image");
    let none = Schema::example().build().unwrap();
    let refused = FedPictures::new(&none, decoder()).unwrap_err().to_string();
    assert!(refused.contains("expected a schema with pictures, found none"), "{refused}");
}

#[test]
fn byte_strings_have_types_ranges_and_tags() {
    let dir = tempfile::tempdir().unwrap();
    let svg = b"<svg onload='alert(1)'/>".as_slice();
    let payload =
        ExampleBuilder::new().bytes("f", [PNG, svg]).float("x", [1.0, 2.0]).int64("i", [3]).encode().unwrap();
    let api = api(&[write(&dir.path().join("a.tfrecord"), [payload])]);
    let answer = |target: &str, range: Option<&str>| {
        let request = Request { range: range.map(Into::into), ..request(target) };
        api.answer(&request)
    };
    let whole = answer("bytes/0?feature=f", None);
    assert_eq!((whole.status, whole.content_type, whole.body.as_slice()), (200, "image/png", PNG));
    let part = answer("bytes/0?feature=f", Some("bytes=1-3"));
    assert_eq!((part.status, part.body.as_slice()), (206, b"PNG".as_slice()));
    let svg = answer("bytes/0?feature=f&value=1", None);
    assert_eq!((svg.status, svg.content_type), (200, "application/octet-stream"));
    assert_eq!(answer("bytes/0?feature=f&value=2", None).status, 404);
    assert_eq!(answer("bytes/0?feature=g", None).status, 404);
    assert_eq!(answer("bytes/0", None).content_type, "application/octet-stream");
    assert_eq!(answer("values/0?feature=x", None).body, [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
    assert_eq!(answer("values/0?feature=i", None).body, 3f64.to_le_bytes());
    assert_eq!(answer("values/0?feature=f", None).status, 400);
    assert_eq!(answer("values/0", None).status, 400);
}

#[test]
fn searches_and_statistics_come_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let label = |i: i64| ExampleBuilder::new().int64("label", [i % 10]).encode().unwrap();
    let paths = [
        write(&dir.path().join("a.tfrecord"), (0..70_000).map(label)),
        write(&dir.path().join("b.tfrecord.gz"), (0..10_000).map(label)),
    ];
    let api = api(&paths);
    let found = ask_until_done(&api, "find?where=label+==+3+and+record+>=+60000");
    assert_eq!(
        (&found["found"], &found["searched"], &found["matches"][0]),
        (&json!(2000), &json!(80_000), &json!(60_003))
    );
    assert_eq!(found["matches"].as_array().unwrap().last(), Some(&json!(79_993)));
    let rest = ask(&api, 200, "find?where=label+==+3+and+record+>=+60000&after=1999");
    assert_eq!(rest["matches"], json!([79_993]));
    let misspelt = ask_until_done(&api, "find?where=lable+==+3");
    assert_eq!(misspelt["unseen"], json!(["lable"]));
    assert!(misspelt["nearest"].as_str().unwrap().ends_with("the nearest name is \"label\""), "{misspelt}");
    assert!(ask(&api, 400, "find?where=label+=")["error"].as_str().unwrap().contains("expected"));
    ask(&api, 400, "find");

    // As `tfseek stats` computes them.
    ask_until_done(&api, "stats?after=1000");
    let stats = ask(&api, 200, "stats?after=0");
    let options = tfseek_tools::stats::StatsOptions::default();
    let dataset = tfseek::Dataset::open(&paths[..]).unwrap();
    let expected = options.run_dataset(&dataset, None, None, &|_| Ok(())).unwrap();
    let expected = expected.browser_report().to_string();
    assert_eq!(stats["stats"], serde_json::from_str::<Value>(&expected).unwrap());
    let version = &stats["version"];
    assert_eq!(ask(&api, 200, &format!("stats?after={version}"))["stats"], Value::Null);
    ask_until_done(&api, "stats?where=label+==+3&after=1000");
    assert_eq!(ask(&api, 200, "stats?where=label+==+3")["stats"]["records"], json!(8000));
    assert_eq!(ask(&api, 200, "schema")["features"][0]["spec"], json!("fixed []"));
    api.stop();
}

#[test]
fn work_ends_when_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let label = |i: i64| ExampleBuilder::new().int64("label", [i % 10]).encode().unwrap();
    let api = api(&[write(&dir.path().join("a.tfrecord"), (0..1000).map(label))]);
    let state = &api.sets[0];
    let request = request("find?where=label+==+3");
    find::find(&state.set, &state.found, &request, 1).unwrap();
    let job = state.found.ask("label == 3", |_| panic!("it runs already"), |_, _| ());
    api.stop();
    while !job.has_ended() {
        std::thread::yield_now();
    }
}

#[test]
fn damage_is_left_out_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("a.tfrecord"), (0..100).map(image));
    let mut bytes = std::fs::read(&path).unwrap();
    let size = bytes.len() / 100;
    bytes[40 * size] ^= 1;
    bytes.truncate(99 * size + 5);
    std::fs::write(&path, &bytes).unwrap();
    let api = api(&[path]);
    let dataset = ask(&api, 200, "dataset");
    assert_eq!((&dataset["records"], &dataset["damage"]["ranges"]), (&json!(98), &json!(2)));
    assert_eq!(
        (&dataset["warnings"], &dataset["home"], &dataset["list"]),
        (&json!([]), &json!("grid"), &json!("grid"))
    );
    // The ranges that the index knows, and a verification's ranges.
    let known = ask(&api, 200, "damage?known=1");
    assert_eq!(known["shards"][0]["ranges"], json!([[40 * size, 41 * size], [99 * size, 99 * size + 5]]));
    let damage = ask_until_done(&api, "damage");
    assert_eq!(damage["shards"][0]["ranges"], json!([[40 * size, 41 * size], [99 * size, 99 * size + 5]]));
    assert_eq!(damage["checked"], json!(bytes.len()));
    assert_eq!(ask(&api, 200, "shards")["shards"][0]["damaged"], json!(2));
}

#[test]
fn long_features_come_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let record = SequenceExampleBuilder::new()
        .int64("numbers", (0..5000).collect::<Vec<_>>())
        .feature_list("steps", (0..1500).map(|k| FeatureBuf::from(vec![k; 70])))
        .feature_list("one", [FeatureBuf::from([1_i64])]);
    let api = api(&[write(&dir.path().join("a.tfrecord"), [record.encode().unwrap()])]);
    let part = |query: &str| ask(&api, 200, &format!("record/0?{query}"));
    assert_eq!(part("feature=numbers&from=4998"), json!({"int64": [4998, 4999], "n": 5000}));
    assert_eq!(part("feature=numbers&from=9000"), json!({"int64": [], "n": 5000}));
    let steps = part("feature=steps&from=1400");
    assert_eq!((steps.as_array().unwrap().len(), &steps[99]["int64"][63]), (100, &json!(1499)));
    assert_eq!(part("feature=steps&step=7&from=69"), json!({"int64": [7], "n": 70}));
    assert_eq!(part("feature=one").as_array().unwrap().len(), 1);
    assert_eq!(part("feature=steps&from=9000"), json!([]));
    ask(&api, 404, "record/0?feature=missing");
    ask(&api, 400, "record/0?feature=numbers&from=x");
}

#[test]
fn sequences_and_other_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let sequence = SequenceExampleBuilder::new()
        .int64("id", [5])
        .feature_list("curve", [vec![0.5f32], vec![1.5, 2.5]].map(FeatureBuf::Float))
        .encode()
        .unwrap();
    let paths = [
        write(&dir.path().join("a.tfrecord"), [sequence]),
        write(&dir.path().join("b.tfrecord"), [b"\x08\x05".to_vec(), Vec::new()]),
        write(&dir.path().join("c.tfrecord"), []),
    ];
    let api = api(&paths);
    assert_eq!(ask(&api, 200, "dataset")["kind"], json!("mixed"));
    let record = ask(&api, 200, "record/0");
    let expected = json!({"kind": "float", "steps": 2, "first": [{"float": [0.5], "n": 1}, {"float": [1.5, 2.5], "n": 2}]});
    assert_eq!(record["lists"]["curve"], expected);
    assert_eq!(api.answer(&request("values/0?feature=curve")).body.len(), 12);
    assert_eq!(api.answer(&request("values/0?feature=curve&step=1")).body.len(), 8);
    let other = ask(&api, 200, "record/1");
    assert_eq!((&other["kind"], &other["fields"][0]["value"]), (&json!("bytes"), &json!(5)));
    assert_eq!(ask(&api, 200, "record/2")["payload"], json!(""));
}

/// The first Example comes with a card, all of them with the page of the record, and each has an address by
/// its place.
#[test]
fn lists_of_examples_have_their_features() {
    let dir = tempfile::tempdir().unwrap();
    let example = |builder: ExampleBuilder| {
        let payload = builder.encode().unwrap();
        (payload.len() as u8, payload)
    };
    let field = |number: u8, (len, payload): (u8, Vec<u8>)| [vec![number << 3 | 2, len], payload].concat();
    let document = |x: i64| example(ExampleBuilder::new().int64("x", [x, 9]).bytes("image", [&PNG[..29]]));
    let context = example(ExampleBuilder::new().bytes("query", ["cats"]));
    let list = [field(1, document(7)), field(1, document(8)), field(2, context)].concat();
    let api = api(&[write(&dir.path().join("a.tfrecord"), [list])]);
    let x = |x: i64| json!({"x": {"int64": [x, 9], "n": 2}, "image": {"bytes": [{"bytes": 29, "type": "image/png", "width": 320, "height": 240}], "n": 1}});
    let query = json!({"query": {"bytes": ["cats"], "n": 1}});
    let all = [
        json!({"name": "context", "place": 2, "features": query}),
        json!({"name": "examples", "place": 0, "features": x(7)}),
        json!({"name": "examples", "place": 1, "features": x(8)}),
    ];
    let record = ask(&api, 200, "record/0");
    assert_eq!((&record["examples"], &record["total"]), (&json!(all), &json!(2)));
    let card = &ask(&api, 200, "records?from=0&n=1")["records"][0];
    assert_eq!((&card["examples"], &card["total"]), (&json!(all[..2]), &json!(2)));
    assert_eq!(ask(&api, 200, "record/0?feature=x&step=1&from=1")["int64"], json!([9]));
    assert_eq!(api.answer(&request("bytes/0?feature=image&step=1")).body, PNG[..29]);
    for missing in ["feature=x", "feature=x&step=3", "feature=y&step=0", "feature=x&step=2"] {
        ask(&api, 404, &format!("record/0?{missing}"));
    }
}

#[test]
fn an_empty_set_has_answers() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(&[write(&dir.path().join("a.tfrecord"), [])]);
    assert_eq!(ask(&api, 200, "dataset")["records"], json!(0));
    assert_eq!(ask(&api, 200, "records"), json!({"records": []}));
    assert_eq!(ask(&api, 200, "sample"), json!({"ids": []}));
    assert_eq!(ask_until_done(&api, "find?where=label+==+3")["found"], json!(0));
    assert_eq!(ask_until_done(&api, "stats")["stats"]["records"], json!(0));
    ask_until_done(&api, "damage");
    ask(&api, 200, "schema");
    ask(&api, 404, "common");
    ask(&api, 404, "compare");
}

#[test]
fn records_in_both_sets_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let set = |name: &str, range: std::ops::Range<i64>| {
        let path = write(
            &dir.path().join(name),
            range.map(|i| ExampleBuilder::new().int64("i", [i]).encode().unwrap()),
        );
        ViewSet::new(tfseek::Dataset::open(&path).unwrap(), name).unwrap()
    };
    let api = Api::new(vec![set("a", 0..100), set("b", 90..200)], &Map::new(), None, 2).unwrap();
    let common = ask_until_done(&api, "common");
    assert_eq!((&common["common"], &common["pairs"][0]), (&json!(10), &json!([90, 0])));
    assert_eq!(ask(&api, 200, "dataset")["against"], json!("b"));

    // Statistics are compared when both are known.
    assert_eq!(ask(&api, 200, "compare?where=i+==+500"), json!({"features": []}));
    ask_until_done(&api, "stats?after=1000");
    ask_until_done(&api, "stats?set=1&after=1000");
    let feature = &ask(&api, 200, "compare")["features"][0];
    assert_eq!((&feature["name"], &feature["by"]), (&json!("i"), &json!("range")));
    assert!(feature["distance"].as_f64() > feature["chance"].as_f64(), "{feature}");
    let sum = |side: &str| {
        feature["bars"].as_array().unwrap().iter().map(|bar| bar[side].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("a"), sum("b")), (100, 110));
    assert_eq!(ask(&api, 200, "dataset?set=1")["against"], json!("a"));
}

/// Writes a `features.json` with these features, each a class and its content.
fn declare(folder: &Path, features: &[(&str, &str, Value)]) {
    let class = |name: &str| format!("tensorflow_datasets.core.features.{name}");
    let leaf = |(name, of, content): &(&str, &str, Value)| {
        let mut leaf = json!({ "type": class(of), "content": content });
        if let Some(name) = name.strip_prefix("things/") {
            leaf = json!({ "type": class("features_dict.FeaturesDict"), "content": { name: leaf } });
        }
        (name.split('/').next().unwrap().to_owned(), leaf)
    };
    let mut all: Map<String, Value> = Map::new();
    for (name, leaf) in features.iter().map(leaf) {
        let inner = leaf["content"].as_object().filter(|_| name == "things");
        match (all.get_mut(&name), inner) {
            (Some(known), Some(inner)) => known["content"].as_object_mut().unwrap().extend(inner.clone()),
            _ => drop(all.insert(name, leaf)),
        }
    }
    if let Some(things) = all.get_mut("things") {
        let content = json!({ "feature": things, "length": null });
        *things = json!({ "type": class("sequence_feature.Sequence"), "content": content });
    }
    let root = json!({ "type": class("features_dict.FeaturesDict"), "content": all });
    std::fs::write(folder.join("features.json"), root.to_string()).unwrap();
}

/// Roles, types and names of classes come from the `features.json`, where the guess would be another.
#[test]
fn a_set_with_declared_features() {
    let dir = tempfile::tempdir().unwrap();
    let labels = json!({ "num_classes": 3 });
    declare(
        dir.path(),
        &[
            (
                "a_mask",
                "labeled_image.LabeledImage",
                json!({ "shape": [null, null, 1], "dtype": "uint8", "encoding_format": "png", "labels": 2 }),
            ),
            (
                "picture",
                "image_feature.Image",
                json!({ "shape": [null, null, 3], "dtype": "uint8", "encoding_format": "png" }),
            ),
            ("label", "tensor_feature.Tensor", json!({ "shape": [], "dtype": "int64" })),
            ("sort", "class_label_feature.ClassLabel", labels.clone()),
            (
                "sound",
                "audio_feature.Audio",
                json!({ "shape": [null], "dtype": "int64", "sample_rate": 8000, "file_format": null }),
            ),
            ("things/box", "bounding_boxes.BBoxFeature", json!({ "bbox_format": "REL_XYXY" })),
            ("things/kind", "class_label_feature.ClassLabel", labels),
        ],
    );
    std::fs::write(dir.path().join("sort.labels.txt"), "cat\ndog\n<b>horse</b>\n").unwrap();
    std::fs::write(dir.path().join("things-kind.labels.txt"), "cat\ndog\nhorse\n").unwrap();
    let record = |i: i64| {
        let record = ExampleBuilder::new().bytes("a_mask", [PNG]).bytes("picture", [PNG]).int64("label", [i]);
        let record = record.int64("sort", [i % 4]).int64("sound", [1, 2, 3]);
        record.float("things/box", [0.1, 0.2, 0.3, 0.4]).int64("things/kind", [1]).encode().unwrap()
    };
    let path = write(&dir.path().join("a.tfrecord"), (0..8).map(record));
    let api = api(std::slice::from_ref(&path));
    let dataset = ask(&api, 200, "dataset");
    let roles = &dataset["roles"];
    assert_eq!(roles["image"], "picture");
    assert_eq!((&roles["label"], &roles["mask"]), (&json!("sort"), &json!(["a_mask"])));
    assert_eq!((&roles["audio"], &roles["rate"]), (&json!("sound"), &json!(8000)));
    assert_eq!(roles["boxes"], json!({ "feature": "things/box", "order": "xyxy", "text": "things/kind" }));
    assert_eq!(dataset["declared"]["things/kind"], "Sequence(ClassLabel(3))");
    assert_eq!(dataset["labels"]["things/kind"], json!(["cat", "dog", "horse"]));

    let found = ask_until_done(&api, "find?where=sort+==+'dog'+and+any(things/kind)+!=+'cat'");
    assert_eq!(found["matches"], json!([1, 5]));
    let refused = ask(&api, 400, "find?where=sort+==+'dgo'");
    assert!(refused["error"].as_str().unwrap().contains("the nearest name is \"dog\""), "{refused}");
    let stats = ask_until_done(&api, "stats?where=sort+in+'dog',+3");
    let features = stats["stats"]["features"].as_array().unwrap();
    let sort = features.iter().find(|feature| feature["name"] == "sort").unwrap();
    let top = json!([{"value": 1, "name": "dog", "count": 2}, {"value": 3, "name": null, "count": 2}]);
    assert_eq!(sort["int64"]["top"], top);

    let set = ViewSet::new(DatasetOptions::new().open(&path).unwrap(), "declared").unwrap();
    let condition = "sort == '<b>horse</b>'".parse().unwrap();
    let page = crate::report(set, Some(&condition), &crate::ViewOptions::default(), &|_| Ok(())).unwrap();
    assert!(
        page.contains("<strong>2 &quot;&lt;b&gt;horse&lt;/b&gt;&quot;</strong>")
            && page.contains("(2 records)"),
        "{page}"
    );
    assert!(page.contains("<title>2 &quot;&lt;b&gt;horse&lt;/b&gt;&quot;: 2, 100 %</title>"), "{page}");
}

/// A tensor in bytes is drawn by its declared shape.
#[test]
fn a_set_with_declared_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let tensor = |shape: Value, dtype: &str| json!({ "shape": shape, "dtype": dtype, "encoding": "zlib" });
    let class = "tensor_feature.Tensor";
    declare(
        dir.path(),
        &[
            ("a", class, tensor(json!([15, 17, 2]), "uint8")),
            ("b", class, tensor(json!([15, 17]), "float32")),
            ("c", class, tensor(json!([null, 3]), "int64")),
            ("d", class, json!({ "shape": [2, 3], "dtype": "string", "encoding": "none" })),
            ("e", class, json!({ "shape": [null, 3], "dtype": "float32", "encoding": "none" })),
            ("f", class, json!({ "shape": [3], "dtype": "float32", "encoding": "none" })),
        ],
    );
    let record = ExampleBuilder::new().bytes("a", [[1; 510]]).bytes("b", [[1; 1020]]).encode().unwrap();
    let api = api(&[write(&dir.path().join("a.tfrecord"), [record])]);
    let arrays = json!({
        "a": { "shape": [15, 17, 2], "dtype": "uint8", "zlib": true },
        "b": { "shape": [15, 17], "dtype": "float32", "zlib": true },
        "c": { "shape": [null, 3], "dtype": "int64", "zlib": true },
        "e": { "shape": [null, 3], "dtype": "float32", "zlib": false },
    });
    assert_eq!(ask(&api, 200, "dataset")["roles"]["arrays"], arrays);
    let pixels = json!({ "feature": "b", "height": 15, "width": 17, "depth": 1 });
    assert_eq!(ask(&api, 200, "dataset")["roles"]["pixels"], pixels);
}
