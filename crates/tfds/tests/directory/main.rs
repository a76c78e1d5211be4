//! The fuzz target of `dataset_info.json`, over its corpus and over changed files.

mod target;

use target::dataset_info;
use tfseek_testkit::corpus::{numbered, replay};
use tfseek_testkit::rng::Rng;

fn seeds() -> Vec<Vec<u8>> {
    [
        r#"{"name": "coco", "configName": "2017", "version": "1.1.0", "fileFormat": "tfrecord", "supervisedKeys": {"input": "image", "output": "label"}, "splits": [{"name": "train", "shardLengths": ["3", 0, "4", 5], "numBytes": "408", "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}, {"name": "val-2", "shardLengths": [101]}]}
train[:50%]+val-2[10:-3];all;val-2[99%:]+train[-1shard];train[2shard:]"#,
        r#"{"name": "x", "file_format": "tfrecord", "supervised_keys": {"tuple": {"items": [{"feature_key": "a"}, {"tuple": {}}]}}, "splits": [{"name": "a", "num_shards": 2, "filepath_template": "{SPLIT}/{NUM_SHARDS}/{SHARD_INDEX}"}]}
a"#,
        r#"{"name": "x", "splits": [{"name": "a", "shardLengths": ["18446744073709551615"]}, {"name": "empty", "shardLengths": []}]}
a[33.3%:-1_0];empty[:0];a[:9007199254740993];a[-0:]"#,
        r#"{"name": "x", "splits": [{"name": "a", "shardLengths": ["18446744073709551615", "1"], "filepathTemplate": "{SHARD"}]}
"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

#[test]
fn the_corpus_of_dataset_info() {
    replay("dataset_info", &numbered(seeds()), dataset_info);
    // Every truncation, and changes of a few bytes.
    let mut rng = Rng::new(5);
    let edits = if std::env::var_os("TFSEEK_SLOW").is_some() { 2_000_000 } else { 3000 };
    let characters = b"0123456789-_.%+:[];shard{}\"train, \n";
    for seed in seeds() {
        (0..seed.len()).for_each(|len| dataset_info(&seed[..len]));
        for _ in 0..edits {
            let mut edited = seed.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.below(edited.len());
                match rng.below(4) {
                    0 => edited[at] = rng.u64() as u8,
                    1 => edited[at] = characters[rng.below(characters.len())],
                    2 => edited.insert(at, characters[rng.below(characters.len())]),
                    _ => drop(edited.remove(at)),
                }
            }
            dataset_info(&edited);
        }
    }
}

/// Files of 8 MiB are read in memory and time in proportion to them.
#[test]
fn large_files() {
    let end = |text: &str| format!("{text}\nall;a[:50%];a+a[1shard];{}", "all+".repeat(500) + "all");
    let lengths = format!(
        r#"{{"name": "x", "splits": [{{"name": "a", "shardLengths": [0{}]}}]}}"#,
        ",1".repeat(4_000_000)
    );
    let names: Vec<String> = (0..250_000).map(|k| format!(r#"{{"name":"{k}","shardLengths":[]}}"#)).collect();
    let splits = format!(r#"{{"name": "x", "splits": [{}]}}"#, names.join(","));
    let template = format!(
        r#"{{"name": "{}", "splits": [{{"name": "a", "filepathTemplate": "{}"}}]}}"#,
        "x".repeat(4_000_000),
        "{DATASET}".repeat(400_000)
    );
    for text in [lengths, splits, template, "[".repeat(8_000_000)] {
        dataset_info(end(&text).as_bytes());
    }
}
