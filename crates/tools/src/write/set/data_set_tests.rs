use super::*;
use crate::error::{OptionsReason, OutputConflict, SplitReason, ToolsError};
use crate::write::reshard::{ReshardSet, ShardCount};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use tempfile::TempDir;
use tfseek::{Compression, DatasetOptions, ExampleBuilder, IndexMode};
use tfseek_testkit::shards::names;
use tfseek_tfds::{Builder, BuilderOptions, SetMetadata};

const FEATURES: &str = r#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {"features": {"id": {
    "pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor", "tensor": {"shape": {}, "dtype": "int64"}}}}}"#;

/// A data set without shards.
fn source() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("old");
    fs::create_dir_all(folder.join("more")).unwrap();
    let info = r#"{"name": "tiny", "version": "2.0.0", "description": "d", "splits": [{"name": "train", "shardLengths": ["9"], "numBytes": "1"}]}"#;
    let files =
        [("dataset_info.json", info), ("features.json", FEATURES), ("a.labels.txt", "x\n"), ("more/b", "")];
    files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    dir
}

/// Writes splits of these numbers of records, with changed options.
fn written(
    dir: &Path,
    splits: &[(&str, i64)],
    change: impl FnOnce(&mut SetOptions),
) -> Result<Vec<ReshardSet>, ToolsError> {
    let mut options = SetOptions::new(dir.join("new"));
    change(&mut options);
    let mut writer = DataSetWriter::new(SetMetadata::find(&dir.join("old"), None).unwrap(), &options)?;
    for &(name, records) in splits {
        let known = (records % 2 == 0).then_some(records as u64);
        writer.split(name, known, &|_| ControlFlow::Continue(()), |split| -> Result<(), ToolsError> {
            for id in 0..records {
                split.write(&ExampleBuilder::new().int64("id", [id]).encode()?)?;
            }
            Ok(())
        })?;
    }
    writer.close()
}

#[test]
fn a_data_set_has_splits_with_their_records_in_order() {
    for (shards, index) in
        [(None, false), (Some(ShardCount::Count(3)), true), (Some(ShardCount::Size(60)), false)]
    {
        let dir = source();
        let splits = [("train", 7), ("test", 4), ("none", 0)];
        let sets = written(dir.path(), &splits, |o| (o.shards, o.index) = (shards, index)).unwrap();
        let new = dir.path().join("new");
        let builder = Builder::open(&new, &BuilderOptions::default()).unwrap();
        assert_eq!((builder.name(), builder.version()), ("tiny", Some("2.0.0")));
        assert_eq!(
            builder.splits().iter().map(|split| split.records()).collect::<Vec<_>>(),
            [7, 4, 0].map(Some)
        );
        assert_eq!(builder.splits()[0].shards.len() > 1, shards.is_some());
        assert_eq!(new.join(".tfseek").is_dir(), index);
        for (set, split) in sets.iter().zip(builder.splits()) {
            assert_eq!((set.split.as_ref(), &set.shards), (Some(&split.name), &split.shards));
            let ds = DatasetOptions::new().index(if index { IndexMode::Require } else { IndexMode::Memory });
            let ds = ds.open(&set.path).unwrap();
            let mut buf = Vec::new();
            let ids: Vec<i64> = (0..ds.len())
                .map(|i| ds.read(i, &mut buf).unwrap().example().int64("id").unwrap().get(0).unwrap())
                .collect();
            assert_eq!(ids, (0..set.records as i64).collect::<Vec<_>>());
            let shards = split.shards.iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>();
            assert_eq!(set.bytes, shards);
        }
        for file in ["features.json", "a.labels.txt", "more/b"] {
            assert_eq!(
                fs::read(new.join(file)).unwrap(),
                fs::read(dir.path().join("old").join(file)).unwrap()
            );
        }
        assert_eq!(names(dir.path()), ["new", "old"]);
    }
}

#[test]
fn nothing_is_left_of_a_data_set_that_is_refused() {
    let dir = source();
    type Check = fn(&ToolsError) -> bool;
    let refused = |splits: &[(&str, i64)], change: &dyn Fn(&mut SetOptions), check: Check| {
        let e = written(dir.path(), splits, |options| change(options)).unwrap_err();
        assert!(check(&e), "{e}");
        assert_eq!(names(dir.path()), ["old"], "{e}");
    };
    let train = [("train", 1)];
    let option: Check = |e| matches!(e, ToolsError::Options(OptionsReason::Prepared { .. }));
    refused(&train, &|options| options.force = true, option);
    refused(&train, &|options| options.members = Some(1), option);
    refused(&train, &|options| options.compression = Some(Compression::Gzip), option);
    refused(&[], &|_| {}, |e| matches!(e, ToolsError::Split(SplitReason::Count { found: 0, .. })));
    refused(&[("a", 1), ("a", 1)], &|_| {}, |e| matches!(e, ToolsError::Split(SplitReason::Twice(_))));
    refused(&[("a", 1), ("a/b", 1)], &|_| {}, |e| matches!(e, ToolsError::Tfds(_)));
    let old = dir.path().join("old");
    refused(&train, &|options| options.out = old.join("new"), |e| {
        matches!(e, ToolsError::Conflict(OutputConflict::Inside { .. }))
    });
    refused(&train, &|options| options.out = old.clone(), |e| {
        matches!(e, ToolsError::Conflict(OutputConflict::Folder(_)))
    });
}

/// Another number of records than was stated, and an error of the caller.
#[test]
fn nothing_is_left_of_a_split_that_fails() {
    let dir = source();
    let options = SetOptions::new(dir.path().join("deep/new@2"));
    for stated in [Some(2), None] {
        let mut writer =
            DataSetWriter::new(SetMetadata::find(&dir.path().join("old"), None).unwrap(), &options).unwrap();
        let advance = |_| ControlFlow::Continue(());
        let failed = writer.split("a", stated, &advance, |split| -> Result<(), ToolsError> {
            split.write(b"")?;
            if stated.is_none() { Err(std::io::Error::other("own").into()) } else { Ok(()) }
        });
        let e = failed.unwrap_err();
        assert!(matches!(e, ToolsError::Records { expected: 2, found: 1 } | ToolsError::Io(_)), "{e}");
        drop(writer);
        assert_eq!(names(dir.path()), ["old"]);
    }
}
