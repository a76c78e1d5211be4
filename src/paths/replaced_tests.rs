use super::replaced::Replacement;
use super::resolve;
use crate::ErrorKind;
use crate::error::{PathsError, Remedy};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HIDDEN: &str = ".tfseek-replaced";

fn put(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Returns the names and contents of the files of a folder.
fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<String> = files
        .map(|path| format!("{}={}", path.file_name().unwrap().display(), fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The sets of two files each: `a` is complete, the last shard of `b` and the file `c.tfrecord` are aside.
fn interrupted() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a-00000-of-00002.tfrecord", "a-00001-of-00002.tfrecord", "b-00000-of-00002.tfrecord"] {
        put(dir.path(), name, "new");
    }
    for name in ["a-00001-of-00002.tfrecord", "b-00001-of-00002.tfrecord", "c.tfrecord"] {
        put(&dir.path().join(HIDDEN), name, "old");
    }
    dir
}

#[test]
fn each_form_of_a_path_of_an_interrupted_set_is_refused() {
    let dir = interrupted();
    let at = |pattern: &str| dir.path().join(pattern);
    for allow_missing in [false, true] {
        for pattern in [
            "b@2.tfrecord",
            "b@*.tfrecord",
            "b@7.tfrecord",
            "b-*",
            "b*",
            "*.tfrecord",
            "**/b-*",
            "?-00001-of-00002.tfrecord",
            "",
            "b-00001-of-00002.tfrecord",
            "b-0000{0,1}-of-00002.tfrecord",
        ] {
            let e = resolve(at(pattern), allow_missing).unwrap_err();
            let ErrorKind::Paths(PathsError::Interrupted { set, folder, files: 1 }) = e.kind() else {
                panic!("{pattern}: {e}")
            };
            assert_eq!((&**set, &**folder), (&*at("b@2.tfrecord"), &*at(HIDDEN)), "{pattern}");
            assert_eq!(e.kind().remedy(), Some(Remedy::PutBack(&at(HIDDEN))));
            let text = e.to_string();
            assert!(text.contains("interrupted, or is still at work; 1 old file is in "), "{text}");
        }
        for pattern in ["c.tfrecord", "c*", "{c,d}.tfrecord"] {
            let text = resolve(at(pattern), allow_missing).unwrap_err().to_string();
            assert!(text.starts_with(&at("c.tfrecord: a run").display().to_string()), "{text}");
        }
    }
    // Other sets, a complete set with old files, a file of the set by its name, and other errors.
    assert_eq!(resolve(at("a-*"), false).unwrap().len(), 2);
    assert_eq!(resolve(at("a@2.tfrecord"), false).unwrap().len(), 2);
    assert_eq!(resolve(at("b-00000-of-00002.tfrecord"), false).unwrap().len(), 1);
    fs::remove_file(at("a-00000-of-00002.tfrecord")).unwrap();
    for pattern in ["a-*", "d*", "d.tfrecord", "d@*"] {
        let e = resolve(at(pattern), false).unwrap_err();
        assert!(!matches!(e.kind(), ErrorKind::Paths(PathsError::Interrupted { .. })), "{e}");
    }
    // The files are put back.
    for name in ["b-00001-of-00002.tfrecord", "c.tfrecord"] {
        fs::rename(at(HIDDEN).join(name), at(name)).unwrap();
    }
    assert_eq!(resolve(at("b@2.tfrecord"), false).unwrap().len(), 2);
}

#[test]
#[cfg(unix)]
fn the_target_of_a_link_is_aside_in_its_own_folder() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let first = put(dir.path(), "a-00000-of-00002.tfrecord", "x");
    put(dir.path(), "blobs/one", "old");
    put(dir.path(), "blobs/two", "x");
    let link = at("a-00001-of-00002.tfrecord");
    symlink("blobs/one", &link).unwrap();
    let outputs = [first, link.clone()];
    let mut replacement = Replacement::lock(outputs.iter().map(PathBuf::as_path));
    replacement.set_aside(&outputs).unwrap();
    assert_eq!(files(&at("blobs").join(HIDDEN)), ["one=old"]);
    assert_eq!(files(&at(HIDDEN)), ["a-00000-of-00002.tfrecord=x"]);
    for error in [
        resolve(&link, false).unwrap_err(),
        resolve(dir.path(), false).unwrap_err(),
        crate::Dataset::open(at("a@2.tfrecord")).unwrap_err(),
    ] {
        assert!(error.to_string().contains("old file is in"), "{error}");
    }
    put(dir.path(), "blobs/one", "new");
    replacement.end(&outputs).unwrap();
    assert!(!at("blobs").join(HIDDEN).exists() && !at(HIDDEN).exists());
    assert_eq!(files(&at("blobs")), ["one=new", "two=x"]);
}

/// Runs that are interrupted one after the other leave the shards of the last set that was complete.
#[test]
fn a_later_run_keeps_the_old_set_of_an_interrupted_one() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let shards: Vec<PathBuf> = (0..3).map(|s| at(&format!("a-{s:05}-of-00003"))).collect();
    let names = |text: &str| -> Vec<String> { (0..3).map(|s| format!("a-{s:05}-of-00003={text}")).collect() };
    shards.iter().for_each(|path| fs::write(path, "old").unwrap());
    put(dir.path(), "other", "x");
    for run in ["one", "two"] {
        let mut replacement = Replacement::lock(shards.iter().map(PathBuf::as_path));
        replacement.set_aside(&shards).unwrap();
        drop(replacement);
        assert_eq!(files(&at(HIDDEN)), names("old"), "{run}");
        assert!(!shards[2].exists());
        // As an output does: by a rename.
        fs::rename(put(dir.path(), "new", run), &shards[0]).unwrap();
        assert!(resolve(at("a@3"), false).unwrap_err().to_string().contains("3 old files are in"));
    }
    // A run completes the set, and is killed before it removes the old files.
    for path in &shards {
        fs::rename(put(dir.path(), "new", "three"), path).unwrap();
    }
    assert_eq!(resolve(at("a@3"), false).unwrap(), shards);
    // Files of other names are left.
    put(&at(HIDDEN), "theirs", "x");
    let mut replacement = Replacement::lock([]);
    replacement.set_aside(&shards).unwrap();
    assert_eq!(files(&at(HIDDEN)), [names("three"), vec!["theirs=x".into()]].concat());
    shards.iter().for_each(|path| drop(fs::remove_file(path)));
    shards.iter().for_each(|path| fs::write(path, "four").unwrap());
    replacement.end(&shards).unwrap();
    assert_eq!(files(&at(HIDDEN)), ["theirs=x"]);
    assert_eq!(files(dir.path()), [names("four"), vec!["other=x".into()]].concat());
}

#[test]
fn files_that_cannot_be_set_aside_keep_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let shards: Vec<PathBuf> = (0..2).map(|s| at(&format!("a-{s:05}-of-00002"))).collect();
    shards.iter().for_each(|path| fs::write(path, "old").unwrap());
    // A folder has the name of the last shard.
    fs::create_dir_all(at(HIDDEN).join("a-00001-of-00002")).unwrap();
    Replacement::lock([]).set_aside(&shards).unwrap_err();
    assert_eq!(files(dir.path()), ["a-00000-of-00002=old", "a-00001-of-00002=old"]);
    fs::remove_dir_all(at(HIDDEN)).unwrap();
    // A link to a folder elsewhere, with shards of the same names and of another number, is not followed.
    #[cfg(unix)]
    {
        let theirs =
            ["a-00000-of-00002", "a-00002-of-00003", "notes"].map(|name| put(&at("elsewhere"), name, "mine"));
        std::os::unix::fs::symlink("elsewhere", at(HIDDEN)).unwrap();
        let e = Replacement::lock([]).set_aside(&shards).unwrap_err();
        assert!(e.to_string().contains(HIDDEN) && e.to_string().contains("found a link"), "{e}");
        Replacement::lock([]).end(&shards).unwrap();
        assert!(theirs.iter().all(|path| fs::read_to_string(path).unwrap() == "mine"));
        assert_eq!((files(dir.path()).len(), files(&at("elsewhere")).len()), (2, 3));
        assert_eq!(resolve(at("a@2"), false).unwrap(), shards);
    }
}
