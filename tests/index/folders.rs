//! Folders for index files that others can write to are not used.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use tfseek::column::ColumnOptions;
use tfseek::index::{IndexOptions, write_pack};
use tfseek::{DatasetOptions, ExampleBuilder, IndexMode, Warning};
use tfseek_testkit::shards::{built_beside, names, open, options, records, write};

/// A folder in which others could plant an index file: of a mode, or of another user.
fn untrusted(dir: &Path) -> Vec<PathBuf> {
    let make = |name: &str, mode: u32, owner: Option<u32>| {
        let folder = dir.join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        (owner.is_none() || chown(&folder, owner, owner).is_ok()).then_some(folder)
    };
    let own = fs::metadata(dir).unwrap().gid() == fs::metadata(dir).unwrap().uid();
    let group = if own { None } else { make("group", 0o775, None) };
    let all =
        [make("all", 0o777, None), make("sticky", 0o1777, None), make("other", 0o755, Some(4242)), group];
    let all: Vec<_> = all.into_iter().flatten().collect();
    if all.len() < 3 {
        tfseek_testkit::skipped("root, who makes folders of other users");
    }
    all
}

fn labels() -> Vec<u8> {
    let payloads = (0..9i64).map(|i| ExampleBuilder::new().int64("label", [i % 3]).encode().unwrap());
    let payloads: Vec<_> = payloads.collect();
    records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[test]
fn a_given_folder_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &labels());
    for folder in untrusted(dir.path()) {
        let options = options().index_dir(&folder);
        let failed = |e: tfseek::Error| {
            let text = e.to_string();
            assert!(
                text.starts_with(folder.to_str().unwrap())
                    && text.contains("who may change what is read from it") | text.contains("chmod go-w"),
                "{text}"
            );
        };
        failed(open(&path, &options).unwrap_err());
        failed(open(&path, &options.clone().mode(IndexMode::Require)).unwrap_err());
        failed(built_beside(std::slice::from_ref(&path), &options).unwrap_err());
        let pack =
            write_pack("p", std::slice::from_ref(&path), &tfseek_testkit::shards::options()).unwrap().0;
        failed(DatasetOptions::new().index(options).open(pack).unwrap_err());
        assert!(names(&folder).is_empty());
    }
}

#[test]
fn a_default_folder_is_left_out_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &labels());
    for folder in untrusted(dir.path()) {
        // What is planted there is not read.
        let trusted = dir.path().join("trusted");
        open(&path, &options().default_dirs(Some(trusted.clone()), None)).unwrap();
        assert_eq!(fs::metadata(&trusted).unwrap().mode() & 0o022, 0);
        for name in names(&trusted) {
            fs::write(folder.join(name), b"planted").unwrap();
        }
        let before = names(&folder);
        for (env, cache) in [(Some(&folder), None), (None, Some(&folder))] {
            let index = options().default_dirs(env.cloned(), cache.cloned());
            let ds = DatasetOptions::new().index(index.clone()).open(&path).unwrap();
            let of_folder = |warning: &&Warning| warning.path() == Some(&*folder);
            let refused: Vec<_> = ds.warnings().iter().filter(of_folder).collect();
            let [Warning::FileRefused { reason, .. }] = refused[..] else { panic!("{:?}", ds.warnings()) };
            assert!(reason.contains("folder"), "{reason}");
            let column = ds.column("label", &ColumnOptions::default()).unwrap();
            let kinds: Vec<_> = column.warnings.iter().map(Warning::kind).collect();
            assert_eq!(kinds, ["not_saved"]);
            assert_eq!(names(&folder), before);
            // An index on request is written elsewhere, and one in memory needs no folder.
            let built = built_beside(std::slice::from_ref(&path), &index).unwrap();
            assert_eq!(built.warnings.len(), 1);
            let memory = DatasetOptions::new().index(index.mode(IndexMode::Memory)).open(&path).unwrap();
            assert!(memory.warnings().is_empty());
            fs::remove_dir_all(dir.path().join(".tfseek")).unwrap();
        }
        fs::remove_dir_all(&trusted).unwrap();
    }
}

#[test]
fn folders_of_the_user_and_links_to_them_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &labels());
    let (folder, link) = (dir.path().join("new/folder"), dir.path().join("link"));
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    for used in [&folder, &link] {
        let used: IndexOptions = options().index_dir(used);
        assert!(open(&path, &used).unwrap().warnings.is_empty());
        assert_eq!(names(&folder), ["x.tfri"]);
    }
    assert_eq!(fs::metadata(dir.path().join("new")).unwrap().mode() & 0o022, 0);
}
