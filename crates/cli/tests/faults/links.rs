//! Links, devices and FIFOs under the names of shards, index files and outputs.

use crate::common::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const PRECIOUS: &[u8] = b"precious";

/// Returns a folder with shards, and a file outside of it that no run may change.
fn folder() -> Folder {
    let dir = Folder::new();
    fs::write(dir.path("precious"), PRECIOUS).unwrap();
    fs::create_dir_all(dir.path("shared/.tfseek")).unwrap();
    dir.shard("shared/a", labels(0..50));
    dir.shard("shared/u.gz", labels(0..50));
    dir
}

#[test]
fn index_files_replace_planted_links() {
    let dir = folder();
    let planted = ["a.tfri", "u.gz.tfri", "a.label.tfrc", "p.tfrp"];
    for name in planted {
        symlink("../../precious", dir.path("shared/.tfseek").join(name)).unwrap();
    }
    for args in [
        &["index", "--rebuild", "shared/a", "shared/u.gz", "--column", "label"][..],
        &["index", "--rebuild", "--pack", "p", "shared/a"],
    ] {
        let ran = dir.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    }
    for name in planted {
        assert!(dir.path("shared/.tfseek").join(name).symlink_metadata().unwrap().is_file(), "{name}");
    }
    assert_eq!(fs::read(dir.path("precious")).unwrap(), PRECIOUS);
}

/// Files are written in the folder to which a link leads, but never through a link in it.
#[test]
fn an_index_folder_that_is_a_link() {
    let dir = folder();
    fs::create_dir(dir.path("elsewhere")).unwrap();
    symlink("elsewhere", dir.path("link")).unwrap();
    symlink("../precious", dir.path("elsewhere/a.tfri")).unwrap();
    assert_eq!(dir.run(&["index", "--rebuild", "--index-dir", "link", "shared/a"]).code, 0);
    assert!(dir.path("elsewhere/a.tfri").symlink_metadata().unwrap().is_file());
    assert_eq!(dir.run(&["get", "--index-dir", "link", "shared/a", "7"]).code, 0);
    // A link that leads to no folder.
    symlink("nowhere", dir.path("dangling")).unwrap();
    dir.run(&["index", "--rebuild", "--index-dir", "dangling", "shared/a"]).fails(3, &["dangling"]);
    fs::remove_dir_all(dir.path("shared/.tfseek")).unwrap();
    symlink("../precious", dir.path("shared/.tfseek")).unwrap();
    dir.run(&["index", "--rebuild", "shared/a"]).fails(3, &["shared/.tfseek"]);
    assert_eq!(dir.run(&["get", "shared/a", "7"]).code, 0);
    assert_eq!(fs::read(dir.path("precious")).unwrap(), PRECIOUS);
}

/// Links at old temporary names are removed after a day as links; the files that they lead to stay.
#[test]
fn links_under_temporary_names() {
    let dir = folder();
    let temporary = dir.path("shared/.tfseek/.tmp-0123456789abcdef");
    symlink("../../precious", &temporary).unwrap();
    let touched = Command::new("touch").args(["-h", "-d", "2 days ago"]).arg(&temporary).status();
    if !touched.is_ok_and(|status| status.success()) {
        tfseek_testkit::skipped("`touch -h`");
        return;
    }
    assert_eq!(dir.run(&["index", "--rebuild", "shared/a"]).code, 0);
    assert!(temporary.symlink_metadata().is_err());
    assert_eq!(fs::read(dir.path("precious")).unwrap(), PRECIOUS);
}

/// An output follows links, because the user names it. `--force` is needed to replace the file that the link
/// leads to.
#[test]
fn an_output_that_is_a_link_needs_force() {
    let dir = folder();
    symlink("precious", dir.path("out")).unwrap();
    for args in [&["unpack", "shared/u.gz", "-o", "out"][..], &["salvage", "shared/a", "out"]] {
        dir.run(args).fails(2, &["out: already exists"]);
        assert_eq!(fs::read(dir.path("precious")).unwrap(), PRECIOUS);
    }
    fs::create_dir(dir.path("unpacked")).unwrap();
    symlink("../precious", dir.path("unpacked/u.tfrecord")).unwrap();
    dir.run(&["unpack", "shared/u.gz", "-o", "unpacked"]).fails(2, &["already exists"]);
    assert_eq!(fs::read(dir.path("precious")).unwrap(), PRECIOUS);
}

#[test]
fn fifos_and_devices_never_block() {
    let dir = folder();
    let fifo = |name: &str| Command::new("mkfifo").arg(dir.path(name)).status().is_ok_and(|s| s.success());
    if !fifo("shared/x-0.tfrecord") {
        tfseek_testkit::skipped("mkfifo");
        return;
    }
    dir.shard("shared/x-1.tfrecord", labels(0..5));
    let run = |args: &[&str]| Ran::limited(dir.command(args), &dir);
    for args in [
        &["get", "shared", "1"][..],
        &["get", "shared/x-*", "1"],
        &["epoch", "shared/x-0.tfrecord", "-b", "4"],
        &["index", "shared/x-0.tfrecord"],
        &["index", "--pack", "p", "shared/x-0.tfrecord"],
    ] {
        let ran = run(args);
        assert!(ran.code == 2 && ran.err.contains("found a FIFO"), "{args:?}: {ran:?}");
    }
    fs::remove_file(dir.path("shared/x-0.tfrecord")).unwrap();
    // FIFOs and devices in the places of index files, a pack and a temporary name.
    for name in ["a.tfri", "a.label.tfrc", ".tmp-0123456789abcdef", "p.tfrp"] {
        assert!(fifo(&format!("shared/.tfseek/{name}")));
    }
    symlink("/dev/zero", dir.path("shared/.tfseek/u.gz.tfri")).unwrap();
    assert_eq!(run(&["get", "shared/a", "shared/u.gz", "77"]).code, 0);
    assert_eq!(run(&["epoch", "-b", "4", "--where", "label < 5", "shared/a"]).code, 0);
    let ran = run(&["index", "--column", "label", "--rebuild", "shared/a"]);
    assert!(ran.code == 3 && ran.err.contains("found a FIFO"), "{ran:?}");
    let ran = run(&["get", "shared/.tfseek/p.tfrp", "1"]);
    assert!((1..=4).contains(&ran.code) && ran.err.contains("p.tfrp"), "{ran:?}");
    // An output that is always full.
    let ran = run(&["salvage", "--force", "shared/a", "/dev/full"]);
    assert!(ran.code == 3 && ran.err.contains("/dev/full"), "{ran:?}");
}
