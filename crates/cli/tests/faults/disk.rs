//! A real full disk, lost permissions, and files that change under open readers.

use crate::common::*;
use crate::support::*;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tfseek::{Dataset, DatasetOptions, IndexMode};

/// A mounted file system in memory.
struct Mount(PathBuf);

impl Mount {
    /// Mounts a file system of 1 MiB. `None` if this process may not mount.
    fn new(at: PathBuf) -> Option<Mount> {
        fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&at).output();
        mounted.is_ok_and(|done| done.status.success()).then_some(Mount(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Bytes of a block of the file system.
const PAGE: usize = 4096;

/// Writes a file of `len` bytes, or of fewer if the disk is full. The system may count blocks of removed
/// files for a moment.
fn fill(path: &Path, len: usize) {
    let mut file = File::create(path).unwrap();
    for _ in 0..len / PAGE {
        match file.write_all(&[0; PAGE]) {
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => return,
            written => written.unwrap(),
        }
    }
}

#[test]
fn a_real_full_disk() {
    let dir = Folder::new();
    let Some(mount) = Mount::new(dir.path("disk")) else {
        tfseek_testkit::skipped("a user who may mount a file system");
        return;
    };
    // A folder that others may write to is refused for indexes.
    fs::set_permissions(dir.path("disk"), fs::Permissions::from_mode(0o755)).unwrap();
    dir.shard("a", labels(0..3000));
    dir.shard("u.gz", labels(0..3000));
    let mut seen = [0; 2];
    for (args, output) in [
        ("unpack --force u.gz -o disk/u", "u"),
        ("salvage --force a disk/s", "s"),
        ("reshard --force --shuffle a --out disk/r", "r"),
        ("reshard --force --shuffle a --memory 60kB --out disk/r", "r"),
        ("reshard --force --shuffle a --memory 60kB --out disk/r.gz", "r.gz"),
        ("stats --force a --save disk/st", "st"),
        ("stats --force a --tfdv disk/t", "t"),
        ("index --rebuild --index-dir disk a", "a.tfri"),
        ("index --rebuild --index-dir disk --column label a", "a.label.tfrc"),
        ("index --format dali --index-dir disk a", "a.idx"),
        ("epoch -b 64 --json --state-out disk/state a", "state"),
    ] {
        for room in [0usize, 4, 8, 16, 32, 64, 96, 128, 512] {
            fs::write(mount.0.join(output), OLD).unwrap();
            fill(&mount.0.join("filler"), (1 << 20) - (room << 10) - PAGE);
            let mut command = dir.command(&args.split(' ').collect::<Vec<_>>());
            command.env("XDG_CACHE_HOME", dir.path("cache"));
            let ran = Ran::limited(command, &dir);
            let context = format!("`{args}`, {room} KiB: {} {}", ran.code, ran.err);
            assert!(!ran.err.contains("panicked"), "{context}");
            let now = files(&mount.0);
            let content = &now[Path::new(output)];
            if ran.code == 0 {
                assert!(content != OLD, "{context}");
            } else {
                assert!(
                    ran.code == 3 && ran.err.contains("disk") && ran.err.contains("No space"),
                    "{context}"
                );
                // The size of uncompressed records is known before anything is written.
                let is_known = args.starts_with("reshard") && output == "r";
                assert!(!is_known || ran.err.contains("free bytes, found"), "{context}");
                // A run that ends with an error saves its state if there is room.
                assert!(content == OLD || output == "state", "{context}");
            }
            // The sidecar of a column is complete before the column is written.
            let known =
                |path: &PathBuf| ["filler", output, "a.tfri"].iter().any(|name| path == Path::new(name));
            assert!(now.keys().all(known), "{:?}: {context}", now.keys());
            seen[usize::from(ran.code != 0)] += 1;
            now.keys().for_each(|path| fs::remove_file(mount.0.join(path)).unwrap());
        }
    }
    println!("a full disk of 1 MiB: {seen:?} succeeded and errors");
    assert!(seen[0] > 0 && seen[1] > 0);
}

/// Runs the command as a user who may not read the files of root.
fn as_other_user(dir: &Folder, args: &[&str]) -> Ran {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    // The folder of the build may be closed to other users, so the test copies the command.
    command.arg(dir.path("tfseek")).args(args).current_dir(dir.path(""));
    command.env("XDG_CACHE_HOME", dir.path("cache")).env_remove("TFSEEK_INDEX_DIR");
    Ran::limited(command, dir)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn without_permissions() {
    let dir = Folder::new();
    fs::copy(env!("CARGO_BIN_EXE_tfseek"), dir.path("tfseek")).unwrap();
    fs::create_dir(dir.path("data")).unwrap();
    fs::create_dir(dir.path("closed")).unwrap();
    fs::create_dir(dir.path("open")).unwrap();
    for name in ["data/x-0.tfrecord", "data/x-1.tfrecord", "closed/y.tfrecord", "open/y.tfrecord"] {
        dir.shard(name, labels(0..50));
    }
    set_mode(&dir.path(""), 0o755);
    for path in ["stdout", "stderr"] {
        File::create(dir.path(path)).unwrap();
        set_mode(&dir.path(path), 0o666);
    }
    let ran = as_other_user(&dir, &["get", "data", "77"]);
    if ran.code != 0 {
        tfseek_testkit::skipped("setpriv");
        return;
    }
    // The cache cannot be created, so the index stays in memory.
    assert!(ran.err.contains("could not be saved"), "{}", ran.err);
    set_mode(&dir.path("data/x-1.tfrecord"), 0);
    set_mode(&dir.path("closed"), 0);
    let verbs: [&[&str]; 14] = [
        &["get", "data", "77"],
        &["get", "data/x-*", "77", "--io", "pread"],
        &["epoch", "data", "-b", "10"],
        &["head", "data/x-1.tfrecord"],
        &["verify", "data"],
        &["info", "data/x-1.tfrecord"],
        &["index", "data"],
        &["sample", "data"],
        &["get", "closed", "1"],
        &["get", "closed/*", "1"],
        &["get", "closed/y.tfrecord", "1"],
        // A name after a wildcard.
        &["get", "*/y.tfrecord", "1"],
        &["get", "*/y*", "1"],
        &["index", "--column", "label", "closed/y.tfrecord"],
    ];
    for args in verbs {
        let ran = as_other_user(&dir, args);
        assert_eq!(ran.code, 3, "{args:?}: {ran:?}");
        assert!(
            ran.err.contains("Permission denied") && ran.err.contains("data") | ran.err.contains("closed"),
            "{args:?}: {ran:?}"
        );
    }
    // A folder whose files may be named but not listed, and one that may not be written to.
    set_mode(&dir.path("closed"), 0o711);
    assert_eq!(as_other_user(&dir, &["get", "closed/y.tfrecord", "1"]).code, 0);
    assert_eq!(as_other_user(&dir, &["get", "closed", "1"]).code, 3);
    assert_eq!(as_other_user(&dir, &["get", "closed/*", "1"]).code, 3);
    let ran = as_other_user(&dir, &["index", "closed/y.tfrecord"]);
    assert!(ran.code == 3 && ran.err.contains("closed/.tfseek"), "{ran:?}");
    set_mode(&dir.path("closed"), 0o755);
    println!("permissions: {} runs", verbs.len() + 6);
}

type Change = fn(&Path);

/// With positional reads, each record of a file that changed is the old one or an error.
#[test]
fn files_that_change_under_positional_reads() {
    let changes: [(&str, Change); 6] = [
        ("cut", |path| File::options().write(true).open(path).unwrap().set_len(20_000).unwrap()),
        ("emptied", |path| drop(File::create(path).unwrap())),
        ("grown", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, [&bytes[..], &bytes[..77]].concat()).unwrap();
        }),
        ("zeroed", |path| {
            let len = fs::metadata(path).unwrap().len();
            File::options().write(true).open(path).unwrap().write_all_at(&vec![0; len as usize], 0).unwrap();
        }),
        ("replaced", |path| {
            fs::write(path.with_extension("new"), fs::read(path).unwrap().repeat(2)).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    let mut counts = [0; 2];
    for name in ["a", "a.gz"] {
        for (what, change) in changes {
            for touched in [false, true] {
                let dir = Folder::new();
                let path = dir.shard(name, labels(0..3000));
                let ds: Dataset = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
                let mut buf = Vec::new();
                if touched {
                    ds.read(1, &mut buf).unwrap();
                }
                change(&path);
                for i in 0..3000 {
                    match ds.read(i, &mut buf) {
                        Ok(record) => {
                            assert!(record.payload() == label(i as i64), "{name} {what}: record {i}");
                            counts[0] += 1;
                        }
                        Err(e) => {
                            assert!(e.location().path.is_some(), "{name} {what}: {e}");
                            counts[1] += 1;
                        }
                    }
                }
            }
        }
    }
    println!("changed files: {counts:?} records and errors");
}
