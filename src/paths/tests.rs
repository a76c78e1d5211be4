use super::*;
use crate::ErrorKind;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::fs;
use tempfile::TempDir;

/// Creates a folder with empty files of these names, and their parent folders.
fn folder_with(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    dir
}

/// Returns the paths that the patterns match in `dir`, relative to `dir` and joined by spaces, or the message
/// of the error.
fn resolved(dir: &TempDir, patterns: &[&str], allow_missing: bool) -> String {
    let prefix = dir.path();
    let patterns = patterns.iter().map(|p| prefix.join(p)).collect::<Vec<_>>();
    match resolve(patterns, allow_missing) {
        Ok(paths) => {
            let names =
                paths.iter().map(|p| p.strip_prefix(prefix).unwrap().to_str().unwrap().replace('\\', "/"));
            names.collect::<Vec<_>>().join(" ")
        }
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::Paths(_) | ErrorKind::Io(_)));
            let text = format!("error: {e}")
                .replace(&format!("{}{}", prefix.display(), std::path::MAIN_SEPARATOR), "");
            if cfg!(windows) { text.replace('\\', "/") } else { text }
        }
    }
}

fn resolved_one(dir: &TempDir, pattern: &str) -> String {
    resolved(dir, &[pattern], false)
}

fn is_error(text: &str, part: &str) {
    assert!(text.starts_with("error: ") && text.contains(part), "{text:?} lacks {part:?}");
}

#[test]
fn files_and_lists() {
    let dir = folder_with(&["b.tfrecord", "a.bin", "sub/c.tfrecord"]);
    assert_eq!(resolved_one(&dir, "a.bin"), "a.bin");
    assert_eq!(
        resolved(&dir, &["sub/c.tfrecord", "b.tfrecord", "b.tfrecord"], false),
        "sub/c.tfrecord b.tfrecord b.tfrecord"
    );
    is_error(&resolved_one(&dir, "none.tfrecord"), "none.tfrecord: no such file or directory");
    is_error(&resolved(&dir, &["b.tfrecord", "none"], true), "none: ");
    assert!(matches!(resolve(dir.path().join("none"), false).unwrap_err().kind(), ErrorKind::Io(_)));
    let e = resolve(Vec::<PathBuf>::new(), false).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NoMatch { .. })));
}

#[test]
#[allow(clippy::needless_borrows_for_generic_args)] // The types are the test.
fn every_type_of_path() {
    let dir = folder_with(&["a"]);
    let path = dir.path().join("a");
    let s = path.to_str().unwrap();
    let expected = vec![path.clone()];
    assert_eq!(resolve(s, false).unwrap(), expected);
    assert_eq!(resolve(s.to_string(), false).unwrap(), expected);
    assert_eq!(resolve(path.as_path(), false).unwrap(), expected);
    assert_eq!(resolve(&path, false).unwrap(), expected);
    assert_eq!(resolve(path.clone(), false).unwrap(), expected);
    assert_eq!(resolve(path.as_os_str(), false).unwrap(), expected);
    assert_eq!(resolve([s], false).unwrap(), expected);
    assert_eq!(resolve(&[s], false).unwrap(), expected);
    assert_eq!(resolve([s].as_slice(), false).unwrap(), expected);
    assert_eq!(resolve(vec![path.clone()], false).unwrap(), expected);
    assert_eq!(resolve(&vec![s.to_string()], false).unwrap(), expected);
}

#[test]
fn folders() {
    let dir = folder_with(&[
        "a10.tfrecord",
        "a9.tfrecords",
        "b.tfrec.gz",
        "c.record.zz",
        "d.tfr",
        "e.tfrecord-00000-of-00001",
        "f.tfrecord-00000-of-00001.gz",
        "g.tfrecord.gz-0-of-1",
        "h-00000-of-00001.tfrecord",
        // Not shards.
        ".hidden.tfrecord",
        ".tfseek/a10.tfrecord",
        "sub/x.tfrecord",
        "i.txt",
        "j.tfrecord.idx",
        "k-00000-of-00001",
        "l.tfrecord.tfri",
        "folder.tfrecord/x",
    ]);
    let expected = "a9.tfrecords a10.tfrecord b.tfrec.gz c.record.zz d.tfr e.tfrecord-00000-of-00001 \
                f.tfrecord-00000-of-00001.gz g.tfrecord.gz-0-of-1 h-00000-of-00001.tfrecord";
    assert_eq!(resolved_one(&dir, ""), expected);
    assert_eq!(resolved_one(&dir, "sub"), "sub/x.tfrecord");
    is_error(&resolved_one(&dir, "folder.tfrecord"), "no file matches");
    let gap = folder_with(&["x-0-of-2.tfrecord"]);
    is_error(&resolved_one(&gap, ""), "x-?-of-2.tfrecord: 1 of 2 shards is missing: x-1-of-2.tfrecord");
}

/// Writes a file with one record.
fn write_shard(path: &Path) {
    let mut bytes = Vec::new();
    crate::frame::put_record(&mut bytes, b"payload").unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn tfrecord_files_with_other_names() {
    let dir = folder_with(&["a.tfrecord", "notes.txt", "sub/x", "empty"]);
    let at = |name: &str| dir.path().join(name);
    let warnings = |paths: &[PathBuf]| resolve_in_store(None, paths, false).unwrap().1;
    fs::write(at("zeros"), [0; 64]).unwrap();
    assert_eq!(warnings(&[at("")]), []);
    for name in ["part-10", "part-9", ".hidden", "sub/y.bin"] {
        write_shard(&at(name));
    }
    let [warning] = &warnings(&[at(""), at("")])[..] else { panic!() };
    assert_eq!((warning.kind(), warning.path()), ("other_names", Some(&*at(""))));
    let text = warning.to_string();
    assert!(
        text.ends_with(
            ": 2 files have other names but are TFRecord files and were not opened: part-9, part-10; name them, or use a pattern"
        ),
        "{text}"
    );
    // A file that is also given by name is opened.
    let text = warnings(&[at(""), at("part-9")])[0].to_string();
    let one = ": 1 file has another name but is a TFRecord file and was not opened: part-10; name it, or use a pattern";
    assert!(text.ends_with(one), "{text}");
    assert_eq!(warnings(&[at("a.tfrecord"), at("part-*")]), []);
    assert_eq!(resolved_one(&dir, ""), "a.tfrecord");

    // Without extensions the names do not matter, and none is left out.
    assert_eq!(resolved_one(&dir, "sub"), "sub/y.bin");
    assert_eq!(warnings(&[at("sub")]), []);
}

/// TFX names its files `data_tfrecord-00000-of-00002.gz`.
#[test]
fn compressed_files_with_other_names_in_a_folder() {
    use crate::io::Compression;
    let dir = folder_with(&[]);
    let at = |name: &str| dir.path().join(name);
    let write = |name: &str, compression, payloads: &[&[u8]]| {
        let options = crate::writer::WriterOptions { compression, ..Default::default() };
        let mut writer = options.create(at(name)).unwrap();
        payloads.iter().for_each(|payload| writer.write(payload).unwrap());
        writer.close().unwrap();
    };
    write("data_tfrecord-00000-of-00002.gz", Compression::Gzip, &[b"a"]);
    write("data_tfrecord-00001-of-00002.gz", Compression::Gzip, &[&[7; 100_000]]);
    write("z", Compression::Zlib, &[b"a"]);
    write("without-records.gz", Compression::Gzip, &[]);
    let text = flate2::Compression::fast();
    let mut log = flate2::write::GzEncoder::new(fs::File::create(at("log.gz")).unwrap(), text);
    std::io::Write::write_all(&mut log, b"a line of a log\n").unwrap();
    log.finish().unwrap();
    let both = "data_tfrecord-00000-of-00002.gz data_tfrecord-00001-of-00002.gz";
    assert_eq!(resolved_one(&dir, ""), format!("{both} z"));
    // A shard that is missing, and one without a record.
    fs::remove_file(at("data_tfrecord-00001-of-00002.gz")).unwrap();
    is_error(&resolved_one(&dir, ""), "1 of 2 shards is missing: data_tfrecord-00001-of-00002.gz");
    write("data_tfrecord-00001-of-00002.gz", Compression::Gzip, &[]);
    assert_eq!(resolved_one(&dir, ""), format!("{both} z"));
}

/// Partitions of Spark, the splits of TFX, and shards without an extension, in folders of folders.
#[test]
fn folders_below_a_folder() {
    let dir = folder_with(&[
        "spark/dt=1/_SUCCESS",
        "spark/dt=2/part-00000-c3",
        "spark/dt=2/part-00001-c3",
        "spark/dt=2/.part-00001-c3.crc",
        "tfx/Split-eval/x",
        "imagenet/notes.txt",
        "mixed/a.tfrecord",
        "mixed/logs/.hidden/b.tfrecord",
        "empty/deep/x",
    ]);
    let at = |name: &str| dir.path().join(name);
    for name in [
        "spark/dt=1/part-00000-c3",
        "spark/dt=2/part-00000-c3",
        "mixed/logs/events.out.1",
        "tfx/Split-eval/data_tfrecord-0-of-1",
    ] {
        write_shard(&at(name));
    }
    (0..16).for_each(|k| write_shard(&at(&format!("imagenet/train-{k:05}-of-00016"))));
    let parts = "spark/dt=1/part-00000-c3 spark/dt=2/part-00000-c3 spark/dt=2/part-00001-c3";
    for pattern in ["spark/**", "sp*/**", "**/spark/**"] {
        assert_eq!(resolved_one(&dir, pattern), parts, "{pattern}");
    }
    assert_eq!(resolved_one(&dir, "spark/dt=2"), "spark/dt=2/part-00000-c3 spark/dt=2/part-00001-c3");
    assert_eq!(resolved_one(&dir, "imagenet").split(' ').count(), 16);
    assert_eq!(resolved_one(&dir, "tfx/**"), "tfx/Split-eval/data_tfrecord-0-of-1");
    // Where a file has an extension, the others are left out and told.
    assert_eq!(resolved_one(&dir, "mixed/**"), "mixed/a.tfrecord");
    let (_, warnings) = resolve_in_store(None, at("mixed/**"), false).unwrap();
    assert!(
        matches!(&warnings[..], [Warning::OtherNames { found, .. }] if *found == [at("mixed/logs/events.out.1")])
    );
    is_error(&resolved_one(&dir, "spark"), "record,tfr}, but there is spark/**");
    is_error(&resolved_one(&dir, "tfx"), "but there is tfx/**");
    for nothing in ["empty", "empty/**", "none/**"] {
        is_error(&resolved_one(&dir, nothing), "no file matches ");
        assert!(!resolved_one(&dir, nothing).contains("but there is"));
    }
    is_error(&resolved(&dir, &["empty/**"], true), "no file matches empty/**");
}

#[test]
fn a_data_set_is_there_once() {
    for (files, sets) in [
        (&["a.tfrecord", "a.tfrecord.gz", "b.tfrecord"][..], ["a.tfrecord", "a.tfrecord.gz"]),
        (&["a.tfrecord.gz", "a.tfrecord.zz"], ["a.tfrecord.gz", "a.tfrecord.zz"]),
        (
            &["t-0-of-2.tfr", "t-1-of-2.tfr", "t-0-of-3.tfr", "t-1-of-3.tfr", "t-2-of-3.tfr"],
            ["t@2.tfr", "t@3.tfr"],
        ),
        (&["t.tfr-0-of-1", "t.tfr-0-of-1.gz"], ["t.tfr@1", "t.tfr@1.gz"]),
        (&["t.tfr.gz-0-of-1", "t.tfr-0-of-1"], ["t.tfr@1", "t.tfr.gz@1"]),
        (&["t-0-of-1.tfr", "t-00-of-1.tfr"], ["t-00-of-1.tfr", "t-0-of-1.tfr"]),
    ] {
        let dir = folder_with(files);
        for pattern in ["", "*", "**", "**/*.t*"] {
            for allow_missing in [false, true] {
                let text = resolved(&dir, &[pattern], allow_missing);
                is_error(&text, "each data set once");
                assert!(sets.iter().all(|set| text.contains(set)), "{pattern}: {text}");
            }
        }
        // Both are read if both are named.
        let named: Vec<_> = files.to_vec();
        assert_eq!(resolved(&dir, &named, false).split(' ').count(), files.len());
        if !sets.iter().any(|set| set.contains("-of-")) {
            assert!(resolved(&dir, &sets, false).split(' ').count() >= 2);
        }
    }
    let other = [
        "a.tfrecord",
        "b.tfrecord.gz",
        "sub/a.tfrecord.gz",
        "c-0-of-1.tfr",
        "c.tfr",
        "d-0-of-1.tfr",
        "e-0-of-1.tfr",
    ];
    assert_eq!(resolved_one(&folder_with(&other), "**").split(' ').count(), other.len());
}

/// Only regular files are examined, so that none blocks. Files that cannot be read are left out.
#[cfg(unix)]
#[test]
fn special_files_in_a_folder() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = folder_with(&["a.tfrecord"]);
    let at = |name: &str| dir.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (link, target) in
        [("device", "/dev/zero"), ("to-fifo", "fifo"), ("dangling", "none"), ("linked", "real")]
    {
        symlink(target, at(link)).unwrap();
    }
    for name in ["real", "unreadable"] {
        write_shard(&at(name));
    }
    fs::set_permissions(at("unreadable"), fs::Permissions::from_mode(0o000)).unwrap();
    let readable = fs::File::open(at("unreadable")).is_ok();
    let (paths, warnings) = resolve_in_store(None, at(""), false).unwrap();
    assert_eq!(paths, [at("a.tfrecord")]);
    let [Warning::OtherNames { found, .. }] = &warnings[..] else { panic!("{warnings:?}") };
    // A privileged user can read every file.
    let names = if readable { vec!["linked", "real", "unreadable"] } else { vec!["linked", "real"] };
    assert_eq!(*found, names.into_iter().map(at).collect::<Vec<_>>());
    fs::remove_file(at("a.tfrecord")).unwrap();
    assert!(resolved_one(&dir, "").starts_with("linked real"));
}

#[test]
fn sets_of_shards() {
    let set = |path: &str| set_of(Path::new(path)).map(|set| set.to_str().unwrap().replace('\\', "/"));
    for (path, expected) in [
        ("d/a-00000-of-00002.tfrecord", Some("d/a@2.tfrecord")),
        ("a.tfrecord-1-of-2.gz", Some("a.tfrecord@2.gz")),
        ("a-0-of-1", Some("a@1")),
        ("a-2-of-2", None),
        ("a-0-of-2x", None),
        ("a.tfrecord", None),
        ("/", None),
    ] {
        assert_eq!(set(path).as_deref(), expected, "{path}");
    }
    let dir = folder_with(&["a-00-of-02.tfr", "a-01-of-02.tfr"]);
    let shards = resolve(dir.path(), false).unwrap();
    assert_eq!(resolve(set_of(&shards[1]).unwrap(), false).unwrap(), shards);
}

#[test]
fn at_most_1000_files_with_other_names_are_examined() {
    let names: Vec<_> = (0..1005).map(|k| format!("f{k}")).collect();
    let dir = folder_with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in ["f3", "f999", "f1000", "a.tfrecord"] {
        write_shard(&dir.path().join(name));
    }
    let (_, warnings) = resolve_in_store(None, dir.path(), false).unwrap();
    assert!(matches!(&warnings[..], [Warning::OtherNames { found, .. }] if found.len() == 2));
    // Names that differ in numbers only are one form, of which a few decide about all.
    fs::remove_file(dir.path().join("a.tfrecord")).unwrap();
    assert_eq!(resolved_one(&dir, "").split(' ').count(), 1005);
}

#[test]
fn wildcards() {
    let dir = folder_with(&["t-10", "t-9", ".t-1", "sub/t-7", "sub/deep/t-8", "t-dir/x", ".tfseek/t-3"]);
    assert_eq!(resolved_one(&dir, "t-*"), "t-9 t-10");
    assert_eq!(resolved_one(&dir, "t-[0-9]"), "t-9");
    assert_eq!(resolved_one(&dir, "t-??"), "t-10");
    assert_eq!(resolved_one(&dir, "*/t-*"), "sub/t-7");
    assert_eq!(resolved_one(&dir, "**/t-*"), "sub/deep/t-8 sub/t-7 t-9 t-10");
    assert_eq!(resolved(&dir, &["t-10", "t-*"], false), "t-10 t-9 t-10");
    is_error(&resolved_one(&dir, "u-*"), "no file matches u-*");
    is_error(&resolved(&dir, &["u-*"], true), "no file matches u-*");
    is_error(&resolved_one(&dir, "t-[0"), "t-[0: invalid pattern: ");
}

#[test]
fn names_that_look_like_patterns() {
    let dir = folder_with(&[
        "a[1]",
        "a1",
        "b{1,2}",
        "b1",
        "c@2",
        "c-0-of-2",
        "[x]/d1",
        "[x]/d2",
        "x/d3",
        "{y}/e@1/f-0-of-1",
    ]);
    assert_eq!(resolved_one(&dir, "a[1]"), "a[1]");
    assert_eq!(resolved_one(&dir, "b{1,2}"), "b{1,2}");
    assert_eq!(resolved_one(&dir, "c@2"), "c@2");
    assert_eq!(resolved_one(&dir, "[x]/d*"), "[x]/d1 [x]/d2");
    assert_eq!(resolved_one(&dir, "[x]/d{1..2}"), "[x]/d1 [x]/d2");
    assert_eq!(resolved_one(&dir, "{y}/e@1/f@1"), "{y}/e@1/f-0-of-1");
    // Not a set, not a wildcard: a file that is not there.
    assert!(matches!(resolve(dir.path().join("user@host"), false).unwrap_err().kind(), ErrorKind::Io(_)));
}

#[test]
fn names_in_braces_must_exist() {
    let dir = folder_with(&["x-00", "x-01", "x-02", "a-0-of-3", "a-1-of-3", "s@1/y", "t-0-of-1"]);
    assert_eq!(resolved_one(&dir, "x-{02..00}"), "x-00 x-01 x-02");
    assert_eq!(resolved_one(&dir, "x-{00,00,{00..01}}"), "x-00 x-01");
    is_error(&resolved_one(&dir, "x-{00..05}"), "x-{00..05}: 3 of 6 shards are missing: x-03 x-04 x-05");
    assert_eq!(resolved(&dir, &["x-{00..05}"], true), "x-00 x-01 x-02");
    is_error(&resolved(&dir, &["y-{0..5}"], true), "no file matches y-{0..5}");
    // Part of a set, named in braces: as in a list, it may be incomplete.
    assert_eq!(resolved_one(&dir, "a-{0..1}-of-3"), "a-0-of-3 a-1-of-3");
    // Braces around other forms.
    assert_eq!(resolved_one(&dir, "{x-0?,t@1}"), "t-0-of-1 x-00 x-01 x-02");
    is_error(&resolved_one(&dir, "{x,z}-*"), "no file matches z-*");
    assert_eq!(resolved(&dir, &["{x,z}-*"], true), "x-00 x-01 x-02");
    is_error(&resolved_one(&dir, "{a-{0..1}-of-3,a-?-of-3}"), "a-2-of-3");
    is_error(&resolved_one(&dir, "x-{0..1000000000000}"), "at most 1000000 names");
}

#[test]
fn sets_by_at() {
    let dir = folder_with(&[
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
        "train.tfrecord-00000-of-00002",
        "train.tfrecord-00001-of-00002",
        "old-0-of-3",
        "old-1-of-3",
        "old-0-of-1",
        "w-9-of-11",
        "w-10-of-11",
        "dup-0-of-2",
        "dup-00-of-2",
        "dup-1-of-2",
        "sub/s-0-of-1",
    ]);
    let front = "train-00000-of-00002.tfrecord train-00001-of-00002.tfrecord";
    let back = "train.tfrecord-00000-of-00002 train.tfrecord-00001-of-00002";
    assert_eq!(resolved_one(&dir, "train@2.tfrecord"), front);
    assert_eq!(resolved_one(&dir, "train@00002.tfrecord"), front);
    assert_eq!(resolved_one(&dir, "train@*.tfrecord"), front);
    assert_eq!(resolved_one(&dir, "train.tfrecord@2"), back);
    assert_eq!(resolved_one(&dir, "train.tfrecord@*"), back);
    assert_eq!(resolved_one(&dir, "sub/s@*"), "sub/s-0-of-1");
    assert_eq!(resolved_one(&dir, "old@1"), "old-0-of-1");
    is_error(&resolved_one(&dir, "old@3"), "old-?-of-3: 1 of 3 shards is missing: old-2-of-3");
    is_error(
        &resolved_one(&dir, "old@*"),
        "old@*: invalid pattern: expected one set, found `-of-1` and `-of-3`",
    );
    is_error(&resolved_one(&dir, "dup@2"), "shard 0 exists twice");
    let other = "no file matches train@3.tfrecord, but there is train@2.tfrecord";
    is_error(&resolved_one(&dir, "train@3.tfrecord"), other);
    is_error(&resolved_one(&dir, "train@2"), "no file matches train@2, but there is train@2.tfrecord");
    is_error(&resolved_one(&dir, "old@5"), "no file matches old@5, but there is old@1, old@3");
    is_error(&resolved_one(&dir, "train@0"), "at least one");
    is_error(&resolved_one(&dir, "train@999999999999"), "no file matches");
    is_error(
        &resolved_one(&dir, "train@99999999999999999999999"),
        "the number of shards does not fit into 64 bits",
    );
    is_error(&resolved_one(&dir, "tr*@2.tfrecord"), "wildcards");
    is_error(&resolved_one(&dir, "s*/s@1"), "wildcards");
    is_error(&resolved_one(&dir, "none/s@1"), "no file matches");
    // Natural order, and the width of the existing names.
    assert_eq!(resolved(&dir, &["w@11"], true), "w-9-of-11 w-10-of-11");
    is_error(&resolved_one(&dir, "w@11"), "9 of 11 shards are missing: w-0-of-11 w-1-of-11");
}

#[test]
fn gaps_of_sets() {
    let dir = folder_with(&[
        "a/x-00000-of-00003.gz",
        "a/x-00002-of-00003.gz",
        "b/x-00001-of-00003.gz",
        "c/x-00000-of-00001.gz",
        "c/y-0000-of-0002",
        "c/y-0001-of-0002",
        "huge-0-of-1000000000000000000",
        "beyond-5-of-3",
        "late-3-of-4",
    ]);
    // A single shard or a list may be incomplete.
    assert_eq!(resolved_one(&dir, "a/x-00000-of-00003.gz"), "a/x-00000-of-00003.gz");
    resolved(&dir, &["a/x-00000-of-00003.gz", "a/x-00002-of-00003.gz"], false)
        .strip_prefix("a/x-00000")
        .unwrap();
    // A pattern must be complete.
    let gap = "x-00001-of-00003.gz";
    is_error(&resolved_one(&dir, "a/x-*"), &format!("a/x-?-of-00003.gz: 1 of 3 shards is missing: a/{gap}"));
    assert_eq!(resolved(&dir, &["a/x-*"], true), "a/x-00000-of-00003.gz a/x-00002-of-00003.gz");
    // A shard in another folder does not fill the gap.
    is_error(&resolved_one(&dir, "[ab]/x-*"), "a/x-00001-of-00003.gz");
    is_error(&resolved(&dir, &["a/x-*", "b/x-*"], false), "a/x-00001-of-00003.gz");
    // Two sets in two folders, and two in one.
    assert_eq!(resolved_one(&dir, "c/*"), "c/x-00000-of-00001.gz c/y-0000-of-0002 c/y-0001-of-0002");
    // Two patterns share a set.
    assert_eq!(resolved(&dir, &["c/y-0001*", "c/y-0000*"], false), "c/y-0001-of-0002 c/y-0000-of-0002");
    is_error(&resolved(&dir, &["c/y-0001*"], false), "c/y-0000-of-0002");
    // The index is not below the total, so this is not a shard of a set.
    assert_eq!(resolved_one(&dir, "beyond-*"), "beyond-5-of-3");
    is_error(&resolved_one(&dir, "late-*"), "late-0-of-4 late-1-of-4 late-2-of-4");
    let e = resolve(dir.path().join("huge-*"), false).unwrap_err();
    let ErrorKind::Paths(PathsError::MissingShards { total, missing, missing_count, .. }) = e.kind() else {
        panic!("{e}")
    };
    assert_eq!((*total, *missing_count, missing.len()), (10u64.pow(18), 10u64.pow(18) - 1, 1000));
    assert_eq!(missing[0], dir.path().join("huge-1-of-1000000000000000000"));
}

#[test]
fn packs_are_returned_unchanged() {
    let dir = folder_with(&[".tfseek/train.tfrp"]);
    assert_eq!(resolved_one(&dir, ".tfseek/train.tfrp"), ".tfseek/train.tfrp");
    assert!(is_pack(Path::new(".tfseek/train.tfrp")));
    assert!(!is_pack(Path::new("train.tfrecord")));
}

/// An address of a store is detected before any file is opened.
#[test]
fn addresses_are_refused_by_their_scheme() {
    for (address, scheme) in [
        ("gs://bucket/train-00000-of-00010.tfrecord", "gs"),
        ("gs://bucket/train-*", "gs"),
        ("s3://bucket/train@10.tfrecord", "s3"),
        ("hdfs://name:9000/x-{0..9}", "hdfs"),
        ("http://example.org/x.tfrecord", "http"),
        ("HTTPS://example.org/x.tfrecord", "HTTPS"),
        ("abfs://container@account/x", "abfs"),
        // As `pathlib` writes it.
        ("gs:/bucket/train-*", "gs"),
        ("s3:/bucket/x", "s3"),
    ] {
        let e = resolve(address, true).unwrap_err();
        let text = e.to_string();
        assert!(matches!(e.kind(), ErrorKind::Paths(_)), "{text}");
        assert!(
            text.starts_with(&format!("{address}: ")) && text.contains("expected a local path"),
            "{address}: {text}"
        );
        assert!(text.contains(&format!(" {scheme}:// ")), "{address}: {text}");
        let stream = crate::Stream::open(address).unwrap_err().to_string();
        assert!(stream.contains("expected a local path"), "{stream}");
    }
    let text = resolve("file:///data/x.tfrecord", false).unwrap_err().to_string();
    assert!(text.contains("remove the file://"), "{text}");
    if cfg!(windows) {
        return;
    }
    // One letter is a drive. Text that is not a scheme is part of a file name.
    for name in ["c:/none", "c://none", "1a://none", "a b://none", "://none", "none:x", "no/gs://x"] {
        let text = resolve(name, false).unwrap_err().to_string();
        assert!(text.ends_with("no such file or directory"), "{name}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_in_a_folder_named_like_a_scheme_opens_with_a_leading_dot() {
    let dir = folder_with(&["gs:/bucket/a.tfrecord", "gs:/bucket/b.tfrecord"]);
    assert_eq!(resolved_one(&dir, "./gs://bucket/a.tfrecord"), "gs://bucket/a.tfrecord");
    assert_eq!(resolved_one(&dir, "./gs:/bucket/*.tfrecord"), "gs:/bucket/a.tfrecord gs:/bucket/b.tfrecord");
}

#[cfg(unix)]
#[test]
fn links() {
    let dir = folder_with(&["real/a.tfrecord"]);
    std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
    assert_eq!(resolved_one(&dir, "link"), "link/a.tfrecord");
    std::os::unix::fs::symlink("nowhere", dir.path().join("real/b.tfrecord")).unwrap();
    is_error(&resolved_one(&dir, "real"), "real/b.tfrecord: ");
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder_with(&["a.tfrecord"]);
    let odd = dir.path().join(OsStr::from_bytes(b"\xff.tfrecord"));
    fs::write(&odd, "").unwrap();
    assert_eq!(resolve(&odd, false).unwrap(), std::slice::from_ref(&odd));
    assert_eq!(resolve(dir.path(), false).unwrap(), [dir.path().join("a.tfrecord"), odd]);
}

#[test]
fn member_names() {
    let parse = |name| set::ShardName::parse(name).map(|m| [m.stem, m.index, m.total, m.suffix].join("|"));
    assert_eq!(parse("x-1-of-2").unwrap(), "x|1|2|");
    assert_eq!(parse("x-1-of-2-3-of-4.gz").unwrap(), "x-1-of-2|3|4|.gz");
    assert_eq!(parse("x-1-of-2-of-").unwrap(), "x|1|2|-of-");
    assert_eq!(parse("-0-of-1").unwrap(), "|0|1|");
    for name in ["x-of-2", "x1-of-2", "x-1-of-", "x-1-of2", "1-of-2", "", "-of-"] {
        assert_eq!(parse(name), None, "{name}");
    }
}

/// Names of characters that matter to natural order.
fn name() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ab/:.0129é-]{0,8}").unwrap()
}

/// Natural order by its definition: tokens, compared one by one.
fn naive(a: &str, b: &str) -> Ordering {
    fn tokens(s: &str) -> Vec<(u8, Option<u64>)> {
        let mut tokens = Vec::<(u8, Option<u64>)>::new();
        let mut number: Option<u64> = None;
        for c in s.bytes() {
            if c.is_ascii_digit() {
                number = Some(number.unwrap_or(0) * 10 + u64::from(c - b'0'));
                continue;
            }
            // A number sorts among the bytes where its digits do.
            tokens.extend(number.take().map(|n| (b'0', Some(n))));
            tokens.push((c, None));
        }
        tokens.extend(number.map(|n| (b'0', Some(n))));
        tokens
    }
    tokens(a).cmp(&tokens(b)).then_with(|| a.cmp(b))
}

proptest! {
    #[test]
    fn natural_order_is_total(a in name(), b in name(), c in name()) {
        let cmp = |a: &str, b: &str| natural_cmp(Path::new(a), Path::new(b));
        prop_assert_eq!(cmp(&a, &b), naive(&a, &b));
        prop_assert_eq!(cmp(&a, &b), cmp(&b, &a).reverse());
        prop_assert_eq!(cmp(&a, &b) == Ordering::Equal, a == b);
        if cmp(&a, &b).is_le() && cmp(&b, &c).is_le() {
            prop_assert!(cmp(&a, &c).is_le());
        }
    }

    #[test]
    fn numbers_of_any_length(a in "[0-9]{1,60}", b in "[0-9]{1,60}") {
        let width = 60;
        let expected = format!("{a:0>width$}").cmp(&format!("{b:0>width$}"));
        prop_assert_eq!(natural::by_tokens(a.as_bytes(), b.as_bytes()), expected);
    }

    #[test]
    fn any_text_resolves_or_is_an_error(text in "[ab{},.0-9@*?\\[\\]-]{0,24}") {
        let dir = folder_with(&["a", "b", "a-0-of-1", "0"]);
        if let Ok(paths) = resolve(dir.path().join(text), false) {
            prop_assert!(!paths.is_empty());
        }
    }
}
