//! Which folder is opened, and what is checked then.

use crate::made::{FEATURES, Made, info, selected, shard, write_shards};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use tfseek_tfds::{Builder, BuilderOptions, TfdsErrorKind};

const TRAIN: &[(&str, &[u64])] = &[("train", &[2, 1]), ("test", &[4])];

fn with(made: &Made, config: Option<&str>, version: Option<&str>) -> BuilderOptions {
    let own = |text: Option<&str>| text.map(str::to_owned);
    BuilderOptions { config: own(config), version: own(version), ..made.options() }
}

#[test]
fn the_folder_of_a_version() {
    let made = Made::new();
    let keys = r#""version": "1.2.0", "configName": "en", "supervisedKeys": {"input": "x", "output": "y"},"#;
    made.write("tiny/en/1.2.0", keys, TRAIN);
    let tiny = made.open("tiny/en/1.2.0").unwrap();
    assert_eq!((tiny.name(), tiny.version(), tiny.config()), ("tiny", Some("1.2.0"), Some("en")));
    assert_eq!(tiny.supervised_keys().unwrap(), ["x", "y"]);
    assert!(tiny.warnings().is_empty() && tiny.folder() == made.path("tiny/en/1.2.0"));
    let [train, test] = tiny.splits() else { panic!("{tiny:?}") };
    assert_eq!((train.name.as_str(), train.records(), train.shards.len()), ("train", Some(3), 2));
    assert_eq!(test.shards, [made.path("tiny/en/1.2.0").join(shard("test", 0, 1))]);
    assert_eq!(tiny.select("test").unwrap().dataset.len(), 4);
    assert!(tiny.select("nope").unwrap_err().to_string().contains("The splits are train, test"));
}

#[test]
fn the_highest_version_is_opened() {
    let made = Made::new();
    for version in ["1.9.0", "1.10.0", "0.11.0"] {
        made.write(&format!("tiny/{version}"), &format!(r#""version": "{version}","#), TRAIN);
    }
    fs::create_dir(made.path("tiny/2.0.0.incompleteABC")).unwrap();
    fs::create_dir(made.path("tiny/3.0")).unwrap();
    let version = |options: &BuilderOptions| {
        Builder::open(made.path("tiny"), options).unwrap().version().unwrap().to_owned()
    };
    assert_eq!(version(&made.options()), "1.10.0");
    assert_eq!(version(&with(&made, None, Some("0.11.0"))), "0.11.0");
    // A star is any number, and the highest version is meant.
    for (pattern, expected) in
        [("1.*.*", "1.10.0"), ("*.*.*", "1.10.0"), ("0.*.0", "0.11.0"), ("1.9.*", "1.9.0")]
    {
        assert_eq!(version(&with(&made, None, Some(pattern))), expected, "{pattern}");
    }
    for pattern in ["2.*.*", "1.*", "*", "1.**.0", "1.*.*.*"] {
        let refused = made.refused("tiny", &with(&made, None, Some(pattern)));
        let expected = format!(r#"tiny: expected version "{pattern}", found 1.10.0, 1.9.0, 0.11.0"#);
        assert_eq!(refused, expected);
    }
    let refused = made.refused("tiny", &with(&made, None, Some("2.0.0")));
    assert_eq!(refused, r#"tiny: expected version "2.0.0", found 1.10.0, 1.9.0, 0.11.0"#);
    // The folder of another version.
    let refused = made.refused("tiny/1.9.0", &with(&made, None, Some("1.10.0")));
    assert_eq!(refused, r#"tiny/1.9.0/dataset_info.json: version: expected "1.10.0", found "1.9.0""#);
}

#[test]
fn one_of_several_configurations_is_named() {
    let made = Made::new();
    for (config, version) in [("fr", "1.0.0"), ("en", "1.9.0"), ("en", "1.10.0")] {
        let fields = format!(r#""version": "{version}", "configName": "{config}","#);
        made.write(&format!("tiny/{config}/{version}"), &fields, TRAIN);
    }
    fs::create_dir(made.path("tiny/downloads")).unwrap();
    let refused = made.refused("tiny", &made.options());
    assert_eq!(refused, "tiny: expected one data set, found several configurations: en, fr");
    let refused = made.refused("tiny", &with(&made, Some("de"), None));
    assert_eq!(refused, r#"tiny: expected configuration "de", found en, fr"#);
    let en = Builder::open(made.path("tiny"), &with(&made, Some("en"), None)).unwrap();
    assert_eq!((en.config(), en.version()), (Some("en"), Some("1.10.0")));
    // The configuration is also checked where the path has it.
    assert!(Builder::open(made.path("tiny/en"), &with(&made, Some("en"), Some("1.9.0"))).is_ok());
    let refused = made.refused("tiny/fr/1.0.0", &with(&made, Some("en"), None));
    assert_eq!(refused, r#"tiny/fr/1.0.0/dataset_info.json: configName: expected "en", found "fr""#);
}

#[test]
fn folders_that_are_not_complete_are_refused() {
    let made = Made::new();
    let refused = |folder: &str, message: &str| {
        assert_eq!(made.refused(folder, &made.options()), message);
    };
    let e = made.open("nothing").unwrap_err();
    assert!(matches!(e.kind(), TfdsErrorKind::Io(_)) && e.path() == Some(&*made.path("nothing")), "{e}");
    fs::create_dir_all(made.path("tiny/1.0.0.incompleteABC")).unwrap();
    let no = "expected dataset_info.json, or versions such as 1.0.0 with one, found";
    refused("tiny", &format!("tiny: {no} 1.0.0.incompleteABC, which is being written or was interrupted"));
    // A version without its description, beside a whole one.
    made.write("tiny/1.0.0", "", TRAIN);
    write_shards(&made.path("tiny/2.0.0"), TRAIN);
    refused("tiny", &format!("tiny/2.0.0: {no} 3 files; other versions: 1.0.0"));
    assert!(Builder::open(made.path("tiny"), &with(&made, None, Some("1.0.0"))).is_ok());
    fs::create_dir(made.path("tiny/2.0.0/plain")).unwrap();
    refused("tiny/2.0.0", &format!("tiny/2.0.0: {no} 3 files, and the folders plain"));
    fs::create_dir(made.path("empty")).unwrap();
    refused("empty", &format!("empty: {no} an empty folder"));
    refused(
        "tiny/1.0.0/features.json",
        "tiny/1.0.0/features.json: expected the folder of a data set, found a file",
    );

    fs::remove_file(made.path("tiny/1.0.0").join(shard("train", 1, 2))).unwrap();
    let e = made.refused("tiny/1.0.0", &made.options());
    let name = shard("train", 1, 2);
    assert!(e.starts_with("tiny/1.0.0/dataset_info.json: 1 of 2 shards of split train is missing: "), "{e}");
    assert!(e.ends_with(&name), "{e}");
    fs::create_dir(made.path("tiny/1.0.0").join(&name)).unwrap();
    refused("tiny/1.0.0", &format!("tiny/1.0.0/{name}: expected a shard, found a folder"));
}

#[test]
fn files_with_other_content_are_refused() {
    let made = Made::new();
    let folder = made.write("tiny", "", TRAIN);
    let refused = |fields: &str, splits: &[(&str, &[u64])], message: &str| {
        fs::write(folder.join("dataset_info.json"), info(fields, splits)).unwrap();
        assert_eq!(made.refused("tiny", &made.options()), format!("tiny/dataset_info.json: {message}"));
    };
    let format = r#"fileFormat: expected the format tfrecord, found "array_record""#;
    refused(r#""fileFormat": "array_record","#, TRAIN, format);
    let twice = r#"splits[1].name: expected another name than those before, found "train""#;
    refused("", &[("train", &[2, 1]), ("train", &[2, 1])], twice);
    let many = "splits[0].shardLengths: expected fewer than 2^64 records, found more";
    refused("", &[("train", &[u64::MAX, 1])], many);
    refused(r#""name": 3,"#, TRAIN, "name: expected a string, found 3");
    let text = |split: &str| format!(r#"{{"name": "tiny", "splits": [{split}]}}"#);
    for (split, message) in [
        (
            r#"{"name": "train", "shardLengths": [2, 1], "filepathTemplate": "{SPLIT}"}"#,
            "splits[0].filepathTemplate: expected the number of a shard in the names of 2 shards, found none",
        ),
        (
            r#"{"name": "train", "numShards": "99999999999999"}"#,
            "splits[0].numShards: expected at most 4194304 shards, found 99999999999999",
        ),
        (
            r#"{"name": "train", "filepathTemplate": "{SHARD_INDEX}/x"}"#,
            "splits[0].shardLengths: expected numbers of records for shards in several folders, found none",
        ),
        (
            r#"{"name": "other", "numBytes": "1"}"#,
            "expected shards of split \"other\" such as tiny-other.tfrecord-00000-of-00001, found none",
        ),
    ] {
        fs::write(folder.join("dataset_info.json"), text(split)).unwrap();
        assert_eq!(made.refused("tiny", &made.options()), format!("tiny/dataset_info.json: {message}"));
    }

    fs::write(folder.join("dataset_info.json"), info("", TRAIN)).unwrap();
    fs::remove_file(folder.join("features.json")).unwrap();
    let none = "tiny: expected features.json, which TFDS writes since its version 4, found none";
    assert_eq!(made.refused("tiny", &made.options()), none);
    // The records do not need it.
    let records = Builder::open_records(&folder, &made.options()).unwrap();
    assert_eq!(selected(&records, "train").unwrap(), ["train 0", "train 1", "train 2"]);
}

/// The records of a shard are counted when it is opened if it has an index, and when its split is selected
/// otherwise.
#[test]
fn numbers_of_records_are_checked() {
    let made = Made::new();
    let folder = made.write("tiny", "", TRAIN);
    fs::write(folder.join("dataset_info.json"), info("", &[("train", &[2, 2]), ("test", &[4])])).unwrap();
    let wrong = format!(
        "tiny/{}: expected 2 records, found 1 (shard 1 of split train), by tiny/dataset_info.json",
        shard("train", 1, 2)
    );
    let tiny = made.open("tiny").unwrap();
    assert_eq!(selected(&tiny, "test[1:]").unwrap().len(), 3);
    let e = tiny.select("train[:1]").unwrap_err();
    assert!(matches!(e.kind(), TfdsErrorKind::Info { .. }), "{e}");
    // Selecting has left an index.
    assert_eq!(made.refused("tiny", &made.options()), wrong);
    // An index of one shard only.
    let other = Made::new();
    write_shards(&other.path("tiny"), TRAIN);
    fs::write(other.path("tiny/features.json"), FEATURES).unwrap();
    fs::write(other.path("tiny/dataset_info.json"), info("", &[("train", &[2, 2])])).unwrap();
    tfseek::index::build_beside(&[other.path("tiny").join(shard("train", 1, 2))], &Default::default())
        .unwrap();
    assert_eq!(other.refused("tiny", &other.options()), wrong);
}

/// A shard may have fewer records if the caller has allowed it, and a warning says so.
#[test]
fn records_that_are_left_out_are_not_expected() {
    let made = Made::new();
    let folder = made.write("tiny", "", &[("train", &[3, 2])]);
    let first = folder.join(shard("train", 0, 2));
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, &bytes[..bytes.len() - 1]).unwrap();
    let tiny = made.open("tiny").unwrap();
    let e = tiny.select("train").unwrap_err();
    assert!(matches!(e.kind(), TfdsErrorKind::Error(_)), "{e}");
    let index = made.options().dataset.index_options().clone().tail(tfseek::Tail::Tolerate);
    let dataset = tfseek::DatasetOptions::new().index(index);
    let tiny = Builder::open(&folder, &BuilderOptions { dataset, ..made.options() });
    // The strict selection has left an index that has one record less.
    let tiny = tiny.unwrap();
    let all = tiny.select("train").unwrap();
    assert_eq!(all.dataset.warnings().len(), 1);
    assert_eq!(selected(&tiny, "train[1:]").unwrap(), ["train 1", "train 3", "train 4"]);
}

#[test]
fn shards_without_numbers_of_records_are_counted() {
    let made = Made::new();
    let folder = made.write("tiny", "", &[("train", &[2, 0, 1])]);
    let text = |split: &str| {
        format!(r#"{{"name": "tiny", "splits": [{{"name": "train"{split}}}, {{"name": "none"}}]}}"#)
    };
    for fields in ["", r#", "numShards": "3""#] {
        fs::write(folder.join("dataset_info.json"), text(fields)).unwrap();
        let tiny = made.open("tiny").unwrap();
        assert_eq!((tiny.splits()[0].shards.len(), tiny.splits()[0].records()), (3, None));
        assert_eq!(selected(&tiny, "train[-2:]+none").unwrap(), ["train 1", "train 2"]);
    }
    fs::remove_file(folder.join(shard("train", 1, 3))).unwrap();
    fs::write(folder.join("dataset_info.json"), text("")).unwrap();
    let e = made.refused("tiny", &made.options());
    assert!(e.contains("2 of 2 shards of split train are missing"), "{e}");
}

#[test]
fn nested_supervised_keys_are_a_warning() {
    let made = Made::new();
    let keys = r#""supervisedKeys": {"tuple": {"items": [{"dict": {}}, {"featureKey": "y"}]}},"#;
    made.write("tiny", keys, TRAIN);
    let tiny = made.open("tiny").unwrap();
    let [warning] = tiny.warnings() else { panic!("{tiny:?}") };
    assert!(warning.ends_with("dataset_info.json: supervisedKeys are nested, and are left out"), "{warning}");
    assert_eq!(tiny.supervised_keys(), None);
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A set that is written again while it is opened: each time it is the old one, the new one, or an error.
#[test]
fn a_set_that_is_being_written() {
    let made = Made::new();
    let sets: [&[(&str, &[u64])]; 2] = [&[("train", &[2, 1, 3])], &[("train", &[1, 4])]];
    let folder = made.write("tiny", "", sets[0]);
    let done = AtomicBool::new(false);
    let (mut whole, mut refused) = ([0, 0], 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let splits = sets[turn % 2];
                let temporary = made.path("temporary");
                write_shards(&temporary, splits);
                let lengths = splits[0].1;
                for k in 0..lengths.len() {
                    let name = shard("train", k, lengths.len());
                    fs::rename(temporary.join(&name), folder.join(&name)).unwrap();
                }
                fs::write(temporary.join("info"), info("", splits)).unwrap();
                fs::rename(temporary.join("info"), folder.join("dataset_info.json")).unwrap();
                let others = sets[(turn + 1) % 2][0].1.len();
                (0..others).for_each(|k| drop(fs::remove_file(folder.join(shard("train", k, others)))));
            }
        });
        // The writer also ends if an assertion fails.
        let _end = End(&done);
        for _ in 0..200 {
            match made.open("tiny").and_then(|tiny| selected(&tiny, "train")) {
                Ok(found) => {
                    let which = [6, 5].iter().position(|n| *n == found.len()).unwrap();
                    let all: Vec<String> = (0..found.len()).map(|i| format!("train {i}")).collect();
                    assert_eq!(found, all);
                    whole[which] += 1;
                }
                Err(e) => {
                    let e = e.to_string();
                    let known = ["missing", "found", "replaced", "no such file", "No such file", "changed"];
                    assert!(known.iter().any(|word| e.contains(word)), "{e}");
                    refused += 1;
                }
            }
        }
    });
    eprintln!("opened {whole:?}, refused {refused}");
    assert!(whole.iter().sum::<i32>() > 0);
}
