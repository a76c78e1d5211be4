//! Folders: TFRecord files with other names, and what `unpack` writes.

use crate::common::*;
use std::fs;

const OTHERS: &str =
    "2 files have other names but are TFRecord files and were not opened: a.bin, part-0; name them";

#[test]
fn tfrecord_files_with_other_names_are_warnings() {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for name in ["data/x.tfrecord", "data/a.bin", "data/part-0"] {
        dir.shard(name, labels(0..3));
    }
    fs::write(dir.path("data/notes.txt"), "nothing").unwrap();
    for verb in [
        "index",
        "info",
        "head",
        "tail",
        "cat",
        "digest",
        "verify",
        "schema",
        "sample",
        "epoch -b 2",
        "order -b 2 --describe",
    ] {
        let args: Vec<_> = verb.split(' ').chain(["data"]).collect();
        let ran = dir.run(&args);
        assert_eq!(ran.code, 0, "{verb}: {}", ran.err);
        assert_eq!(ran.err.matches(OTHERS).count(), 1, "{verb}: {}", ran.err);
        let quiet = dir.run(&[&["-q"], &args[..]].concat());
        assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "{verb}");
    }
    let ran = dir.run(&["epoch", "-b", "2", "--json", "data"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["warnings"][0]["kind"], "other_names", "{report}");
    assert_eq!(dir.run(&["head", "data/*"]).err.matches(OTHERS).count(), 0);

    // Without the extension the names do not matter.
    fs::remove_file(dir.path("data/x.tfrecord")).unwrap();
    for args in [&["head", "data"][..], &["get", "data", "0"], &["index", "data"], &["info", "data/**"]] {
        let ran = dir.run(args);
        assert_eq!((ran.code, ran.err.matches("other names").count()), (0, 0), "{args:?}: {}", ran.err);
    }
    fs::create_dir(dir.path("above")).unwrap();
    fs::rename(dir.path("data"), dir.path("above/data")).unwrap();
    dir.run(&["head", "above"]).fails(3, &["no file matches above/*.{tfrecord", ", but there is above/**"]);
    assert_eq!(dir.run(&["cat", "-f", "json", "above/**"]).out.lines().count(), 6);
}

#[test]
fn a_data_set_that_is_there_twice_is_refused() {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for name in ["data/x.tfrecord", "data/x.tfrecord.gz"] {
        dir.shard(name, labels(0..3));
    }
    for args in [&["cat", "data"][..], &["verify", "data/*"], &["index", "data"], &["get", "data/**", "0"]] {
        dir.run(args)
            .fails(2, &["expected each data set once, found data/x.tfrecord and data/x.tfrecord.gz"]);
    }
    assert_eq!(
        dir.run(&["cat", "-f", "json", "data/x.tfrecord", "data/x.tfrecord.gz"]).out.lines().count(),
        6
    );
}

#[test]
fn verify_goes_on_where_a_set_lacks_a_shard() {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for name in ["a-0-of-2", "b-0-of-1", "c-1-of-3"] {
        dir.shard(&format!("data/{name}.tfrecord"), labels(0..3));
    }
    for path in ["data", "data/*"] {
        let ran = dir.run(&["verify", path]);
        assert!(ran.out.contains("3 of 3 files sound: 9 records"), "{}", ran.out);
        let told: Vec<_> = ran.err.lines().collect();
        assert_eq!((ran.code, told.len()), (1, 2), "{}", ran.err);
        assert!(
            told[0].contains("a-?-of-2.tfrecord: 1 of 2 shards is missing: ")
                && told[1].contains("c-?-of-3.tfrecord: 2 of 3 "),
            "{}",
            ran.err
        );
        assert_eq!(dir.run(&["verify", "--json", path]).out.lines().count(), 3);
    }
    let ran = dir.run(&["verify", "data/{b-0-of-1,d}.tfrecord"]);
    assert!(ran.code == 1 && ran.err.contains("1 of 2 shards is missing: data/d.tfrecord"), "{}", ran.err);
    assert_eq!(dir.run(&["verify", "--allow-missing", "data"]).code, 0);
}

#[test]
fn what_unpack_writes_opens_as_a_folder() {
    let dir = Folder::new();
    fs::create_dir(dir.path("packed")).unwrap();
    let mut names =
        vec!["x.tfrecord.gz", "part-00000-of-00002.gz", "part-00001-of-00002.gz", "weird.gz", "y.bin.zz"];
    names.extend(["old.tfrecord-00000-of-00001.gz", "z.gz.zz"]);
    for (k, name) in names.iter().enumerate() {
        dir.shard(&format!("packed/{name}"), labels(10 * k as i64..10 * k as i64 + 2));
    }
    assert_eq!(dir.run(&["unpack", "packed/*", "-o", "plain"]).code, 0);
    let ran = dir.run(&["cat", "-f", "json", "plain"]);
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (0, "", 2 * names.len()));
    assert_eq!(dir.run(&["get", "plain", "0", "-1"]).code, 0);
    for name in
        ["part-00000-of-00002.tfrecord", "weird.tfrecord", "y.bin.tfrecord", "old.tfrecord-00000-of-00001"]
    {
        assert!(dir.path("plain").join(name).is_file(), "{name}");
    }
    assert_eq!(dir.run(&["get", "plain/part@2.tfrecord", "3"]).code, 0);
}

#[test]
fn info_sums_each_set_and_names_folders() {
    let dir = Folder::new();
    fs::create_dir_all(dir.path("data/val/deep")).unwrap();
    fs::create_dir_all(dir.path("data/.tfseek")).unwrap();
    for (k, name) in
        ["train-0-of-2.tfrecord", "train-1-of-2.tfrecord", "test-0-of-1.tfrecord"].iter().enumerate()
    {
        dir.shard(&format!("data/{name}"), labels(0..10 + k as i64));
    }
    let ran = dir.run(&["info", "data"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "tfseek: data: 1 folder in it left out: val\n"));
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let ends = |k: usize| [rows[k][0], &rows[k][3..].join(" ")].join(" ");
    assert_eq!(rows.len(), 7, "{}", ran.out);
    assert_eq!(ends(4), "12 data/test@1.tfrecord (1 file)");
    assert_eq!(ends(5), "21 data/train@2.tfrecord (2 files)");
    assert_eq!(ends(6), "33 3 files");
    // The printed name of a set is a dataset.
    assert_eq!(dir.run(&["get", "data/train@2.tfrecord", "20"]).code, 0);
    let ran = dir.run(&["info", "--json", "data"]);
    let first: serde_json::Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["set"], "data/test@1.tfrecord");
    // One set is the total.
    assert_eq!(dir.run(&["info", "data/train-*"]).out.lines().count(), 4);

    // A shell expands `data/*` to the folder as well.
    let ran = dir.run(&["info", "data/train-0-of-2.tfrecord", "data/test-0-of-1.tfrecord", "data/val"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("tfseek: data/val: a folder without TFRecord files, left out\n"), "{}", ran.err);
    assert!(ran.out.ends_with("2 files\n"), "{}", ran.out);
    dir.run(&["info", "data/val"])
        .fails(3, &["data/val: 1 folder in it left out: deep", "no file matches data/val"]);
}

#[test]
fn info_shows_the_whole_sets_of_a_folder() {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    for name in ["a-0-of-2", "a-1-of-2", "b-0-of-3", "b-2-of-3", "c"] {
        dir.shard(&format!("data/{name}.tfrecord"), labels(0..3));
    }
    let ran = dir.run(&["info", "--json", "data"]);
    let lacks = "data/b-?-of-3.tfrecord: 1 of 3 shards is missing: data/b-1-of-3.tfrecord";
    assert!(ran.code == 1 && ran.err.contains(lacks), "{}", ran.err);
    let lines = ran.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let files: Vec<_> = lines.map(|line| (line["file"].clone(), line["records"].clone())).collect();
    let whole = |name: &str| (format!("data/{name}.tfrecord").into(), 3.into());
    let lacks = ("data/b@3.tfrecord".into(), serde_json::Value::Null);
    assert_eq!(files, [whole("a-0-of-2"), whole("a-1-of-2"), lacks, whole("c")]);
    // A folder whose only set lacks a shard has nothing to show.
    for name in ["a-0-of-2", "a-1-of-2", "c"] {
        fs::remove_file(dir.path(&format!("data/{name}.tfrecord"))).unwrap();
    }
    dir.run(&["info", "data"]).fails(1, &["1 of 3 shards is missing"]);
}

#[test]
fn all_verbs_read_packs() {
    let dir = Folder::new();
    dir.shard("x-0-of-2.tfrecord", labels(0..3));
    dir.shard("x-1-of-2.tfrecord.gz", labels(3..7));
    let files = ["./x-0-of-2.tfrecord", "./x-1-of-2.tfrecord.gz"];
    assert_eq!(dir.run(&["index", "-q", "--pack", "all", files[0], files[1]]).code, 0);
    let pack = ".tfseek/all.tfrp";
    for verb in
        ["cat -f json", "head -n 1 -f json", "grep -F label -v -f json", "digest", "stats --json", "verify"]
    {
        let words: Vec<_> = verb.split(' ').collect();
        let want = dir.run(&[&words[..], &files].concat());
        dir.run(&[&words[..], &[pack]].concat()).prints(&want.out);
    }
    let shards = |ran: &Ran| -> Vec<_> {
        let lines = ran.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| (line["records"].as_u64(), line["index_file"].as_str().map(str::to_owned))).collect()
    };
    let fresh = Some(format!("fresh {pack}"));
    let ran = dir.run(&["info", "--json", pack]);
    assert_eq!((ran.code, shards(&ran)), (0, vec![(Some(3), fresh.clone()), (Some(4), fresh.clone())]));
    // A shard that has changed since.
    dir.shard(files[0], labels(0..5));
    let ran = dir.run(&["info", "--json", pack]);
    let stale = "x-0-of-2.tfrecord: stale index in the pack .tfseek/all.tfrp";
    assert!(ran.code == 1 && ran.err.contains(stale), "{}", ran.err);
    assert_eq!(shards(&ran), [(None, None), (Some(4), fresh)]);
    fs::write(dir.path("no.tfrp"), "text").unwrap();
    assert_eq!(dir.run(&["info", "no.tfrp"]).code, 1);
}
