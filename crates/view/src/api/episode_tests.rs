use super::tests::{PNG, api, ask, request, write};
use crate::http::Answers;
use serde_json::{Value, json};
use std::path::Path;
use tfseek::ExampleBuilder;

fn class(name: &str, content: &Value) -> Value {
    json!({ "type": format!("tensorflow_datasets.core.features.{name}"), "content": content })
}

fn tensor(shape: &[u32], dtype: &str) -> Value {
    class("tensor_feature.Tensor", &json!({ "shape": shape, "dtype": dtype, "encoding": "none" }))
}

/// Writes the features of episodes.
fn declare(folder: &Path) {
    let image = json!({ "shape": [null, null, 3], "dtype": "uint8", "encoding_format": "png" });
    let numbers =
        class("sequence_feature.Sequence", &json!({ "feature": tensor(&[], "int64"), "length": null }));
    let step = json!({
        "action": tensor(&[3], "float32"),
        "is_last": class("scalar.Scalar", &json!({ "shape": [], "dtype": "bool", "encoding": "none" })),
        "language_instruction": class("text_feature.Text", &json!({})),
        "observation": class("features_dict.FeaturesDict", &json!({ "image": class("image_feature.Image", &image) })),
        "phase": class("class_label_feature.ClassLabel", &json!({ "num_classes": 2 })),
        "seen": numbers,
    });
    let step = class("features_dict.FeaturesDict", &step);
    let root = json!({
        "file": class("text_feature.Text", &json!({})),
        "steps": class("dataset_feature.Dataset", &json!({ "feature": step, "length": null })),
    });
    let text = class("features_dict.FeaturesDict", &root).to_string();
    std::fs::write(folder.join("features.json"), text).unwrap();
    std::fs::write(folder.join("steps-phase.labels.txt"), "reach\ngrasp\n").unwrap();
}

fn picture(step: i64) -> Vec<u8> {
    [PNG, &step.to_le_bytes()].concat()
}

/// An episode whose instruction changes at step 3. The flags are given, and the pictures may be of another
/// number.
fn record(steps: i64, pictures: i64, flag: impl Fn(i64) -> bool, text: impl Fn(i64) -> String) -> Vec<u8> {
    ExampleBuilder::new()
        .bytes("file", ["a/b.h5"])
        .float("steps/action", (0..3 * steps).map(|k| k as f32 / 8.0).collect::<Vec<_>>())
        .int64("steps/is_last", (0..steps).map(|step| i64::from(flag(step))).collect::<Vec<_>>())
        .bytes("steps/language_instruction", (0..steps).map(text).collect::<Vec<_>>())
        .bytes("steps/observation/image", (0..pictures).map(picture).collect::<Vec<_>>())
        .int64("steps/phase", (0..steps).map(|step| step % 2).collect::<Vec<_>>())
        .int64("steps/seen/ragged_flat_values", [7, 8])
        .int64(
            "steps/seen/ragged_row_lengths_0",
            (0..steps).map(|step| i64::from(step == 0) * 2).collect::<Vec<_>>(),
        )
        .encode()
        .unwrap()
}

fn instruction(step: i64) -> String {
    if step < 3 { "open the drawer".into() } else { "<b>close</b> it".into() }
}

/// Returns the value of steps with a name.
fn value<'v>(answer: &'v Value, name: &str) -> &'v Value {
    answer["values"].as_array().unwrap().iter().find(|value| value["name"] == name).unwrap()
}

#[test]
fn an_episode_has_its_steps_by_the_features() {
    let dir = tempfile::tempdir().unwrap();
    declare(dir.path());
    let records = [
        record(5, 5, |step| step == 4, instruction),
        record(5, 4, |_| false, instruction),
        record(0, 0, |_| false, instruction),
    ];
    let api = api(&[write(&dir.path().join("a.tfrecord"), records)]);
    assert_eq!(ask(&api, 200, "dataset")["episodes"], "steps");
    let episode = ask(&api, 200, "episode/0");
    assert_eq!(
        (&episode["steps"], &episode["path"], &episode["shard"]),
        (&json!(5), &json!("steps"), &json!("a.tfrecord"))
    );
    assert_eq!(episode["features"], json!({ "file": { "bytes": ["a/b.h5"], "n": 1 } }));
    let roles = episode["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| (value["name"].as_str().unwrap(), value["role"].as_str().unwrap()));
    let expected = [
        ("action", "numbers"),
        ("is_last", "flag"),
        ("language_instruction", "text"),
        ("observation/image", "picture"),
        ("phase", "numbers"),
        ("seen", "other"),
    ];
    assert_eq!(roles.collect::<std::collections::BTreeMap<_, _>>(), expected.into());
    let action = value(&episode, "action");
    assert_eq!(
        (&action["width"], &action["kind"], &action["feature"]),
        (&json!(3), &json!("float"), &json!("steps/action"))
    );
    assert_eq!(value(&episode, "is_last")["runs"], json!([[4, 5]]));
    assert_eq!(
        value(&episode, "language_instruction")["runs"],
        json!([{ "from": 0, "text": "open the drawer" }, { "from": 3, "text": "<b>close</b> it" }])
    );
    let image = value(&episode, "observation/image");
    assert_eq!((&image["picture"], &image["media"]), (&json!([320, 240]), &json!("image/png")));

    // The features of the other record do not agree. They are named, and the rest is shown.
    let uneven = ask(&api, 200, "episode/1");
    assert_eq!(uneven["steps"], 5);
    assert_eq!(value(&uneven, "observation/image")["problem"], "expected 5 values for 5 steps, found 4");
    assert_eq!(
        (&value(&uneven, "observation/image")["role"], &value(&uneven, "action")["role"]),
        (&json!("other"), &json!("numbers"))
    );
    assert_eq!(ask(&api, 200, "episode/2")["steps"], 0);
    ask(&api, 404, "episode/3");
    ask(&api, 400, "episode/x");
}

/// The values of steps on the page are those in the record.
#[test]
fn steps_are_those_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    declare(dir.path());
    let path = write(
        &dir.path().join("a.tfrecord"),
        [record(2, 2, |_| false, instruction), record(6, 6, |step| step == 0, instruction)],
    );
    let api = api(&[path]);
    for (episode, steps) in [2i64, 6].into_iter().enumerate() {
        let answer = ask(&api, 200, &format!("episode/{episode}"));
        assert_eq!(answer["steps"], steps);
        let bytes = |name: &str, rest: &str| {
            let feature = value(&answer, name)["feature"].as_str().unwrap();
            let response = api.answer(&request(&format!(
                "{}/{episode}?feature={feature}{rest}",
                if rest.is_empty() { "values" } else { "bytes" }
            )));
            assert_eq!(response.status, 200);
            response.body
        };
        let actions = bytes("action", "");
        for step in 0..steps {
            let found = bytes("observation/image", &format!("&value={step}"));
            assert_eq!(found, picture(step));
            let action: Vec<u8> =
                (3 * step..3 * step + 3).flat_map(|k| (k as f32 / 8.0).to_le_bytes()).collect();
            assert_eq!(actions[step as usize * 12..][..12], action[..]);
            let runs = value(&answer, "language_instruction")["runs"].as_array().unwrap();
            let run = runs.iter().rfind(|run| run["from"].as_i64().unwrap() <= step).unwrap();
            assert_eq!(run["text"].as_str().unwrap(), instruction(step));
        }
    }
}

#[test]
fn answers_about_long_episodes_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    declare(dir.path());
    let long = record(5000, 5000, |step| step % 2 == 0, |step| format!("{step} {}", "x".repeat(3000)));
    let api = api(&[write(&dir.path().join("a.tfrecord"), [long])]);
    let episode = ask(&api, 200, "episode/0");
    assert_eq!(episode["steps"], 5000);
    let flag = value(&episode, "is_last");
    let text = value(&episode, "language_instruction");
    assert_eq!((flag["runs"].as_array().unwrap().len(), &flag["until"]), (1000, &json!(2000)));
    assert_eq!((text["runs"].as_array().unwrap().len(), &text["until"]), (1000, &json!(1000)));
    let bytes = api.answer(&request("episode/0")).body.len();
    assert!(bytes < 400_000, "{bytes} bytes");
}

#[test]
fn other_records_are_no_episodes() {
    let dir = tempfile::tempdir().unwrap();
    let record = ExampleBuilder::new().int64("label", [1]).encode().unwrap();
    let plain = api(&[write(&dir.path().join("a.tfrecord"), [record])]);
    assert_eq!(ask(&plain, 200, "dataset")["episodes"], Value::Null);
    let refused = ask(&plain, 404, "episode/0");
    assert!(refused["error"].as_str().unwrap().contains("features.json"), "{refused}");

    // A payload that is no message, among declared episodes.
    let dir = tempfile::tempdir().unwrap();
    declare(dir.path());
    let other = api(&[write(&dir.path().join("a.tfrecord"), [b"a line of text".to_vec()])]);
    let refused = ask(&other, 422, "episode/0");
    assert!(refused["error"].as_str().unwrap().contains("record 0: expected an Example"), "{refused}");
}
