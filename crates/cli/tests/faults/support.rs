//! The preloaded library, and the content of a folder before and after a run.

use crate::common::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Content of an output file before a run.
pub(crate) const OLD: &[u8] = b"old";

pub(crate) const ENOENT: i32 = 2;
pub(crate) const EINTR: i32 = 4;
pub(crate) const EIO: i32 = 5;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSPC: i32 = 28;
/// Not an error of the call: the process is killed before it.
pub(crate) const KILL: i32 = -9;

/// The library that makes calls fail (`shim.c`).
pub(crate) struct Shim(PathBuf);

impl Shim {
    /// Compiles the library. Returns `None` and prints the reason if there is no C compiler or the library is
    /// not loaded.
    pub(crate) fn new(name: &str) -> Option<Shim> {
        let shim = Shim::compiled(name, "shim.c")?;
        let dir = Folder::new();
        dir.shard("a.gz", labels(0..3));
        let fails = shim.failing(&dir, &["unpack", "a.gz"], "open", 1, EIO);
        if fails.is_none() {
            tfseek_testkit::skipped("a command that honours LD_PRELOAD");
        }
        fails.map(|_| shim)
    }

    /// Compiles the library that writes down the calls of a run (`recorder.c`).
    pub(crate) fn recorder(name: &str) -> Option<Shim> {
        Shim::compiled(name, "recorder.c")
    }

    fn compiled(name: &str, source: &str) -> Option<Shim> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults").join(source);
        let shim = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&shim, &source])
            .arg("-ldl")
            .output();
        match compiled {
            Ok(done) if done.status.success() => Some(Shim(shim)),
            Ok(done) => panic!("{}", String::from_utf8_lossy(&done.stderr)),
            Err(_) => {
                tfseek_testkit::skipped("a C compiler (cc)");
                None
            }
        }
    }

    /// Preloads the library into a command, with these variables.
    pub(crate) fn preload(&self, command: &mut Command, variables: &[(&str, String)]) {
        command.env("LD_PRELOAD", &self.0).envs(variables.iter().map(|(name, value)| (name, value)));
    }

    /// Runs the command with the library preloaded and these variables set.
    #[track_caller]
    pub(crate) fn run(&self, dir: &Folder, args: &[&str], variables: &[(&str, String)]) -> Ran {
        let mut command = dir.command(args);
        self.preload(&mut command, variables);
        Ran::limited(command, dir)
    }

    /// Runs the command with the n-th `call` failing. Returns `None` if the run makes fewer calls.
    #[track_caller]
    pub(crate) fn failing(
        &self,
        dir: &Folder,
        args: &[&str],
        call: &str,
        n: usize,
        errno: i32,
    ) -> Option<Ran> {
        self.fired(dir, args, vec![("TFSEEK_FAIL", format!("{call}:{n}:{errno}"))])
    }

    /// Runs the command with the n-th request of at least `large` bytes of memory failing. Returns `None` if
    /// the run makes fewer requests.
    #[track_caller]
    pub(crate) fn without_memory(&self, dir: &Folder, args: &[&str], n: usize, large: usize) -> Option<Ran> {
        let fail = format!("alloc:{n}:{ENOMEM}");
        self.fired(dir, args, vec![("TFSEEK_FAIL", fail), ("TFSEEK_LARGE", large.to_string())])
    }

    /// Runs the command with these variables. Returns `None` if no call failed.
    #[track_caller]
    fn fired(&self, dir: &Folder, args: &[&str], mut variables: Vec<(&str, String)>) -> Option<Ran> {
        let fired = dir.path("fired");
        let _ = fs::remove_file(&fired);
        variables.push(("TFSEEK_FIRED", fired.display().to_string()));
        let ran = self.run(dir, args, &variables);
        fs::remove_file(fired).is_ok().then_some(ran)
    }
}

/// The calls before which a run is killed: those that change a folder, and the waits for the disk between
/// them.
pub(crate) const STEPS: [&str; 5] = ["fsync", "link", "mkdir", "rename", "unlink"];

/// The hidden folder with the old files of sets that are being replaced.
pub(crate) const REPLACED: &str = ".tfseek-replaced";

/// Moves the old files of a run that was interrupted back, as the documentation says.
pub(crate) fn put_back(folder: &Path) {
    for entry in fs::read_dir(folder.join(REPLACED)).unwrap().map(Result::unwrap) {
        fs::rename(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

/// The content of each file of a folder, by relative path. A link counts as a file with the path of its
/// target.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Returns the files of a folder, without the outputs of a run.
pub(crate) fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    add_files(dir, dir, &mut found);
    for name in ["stdout", "stderr", "fired"] {
        found.remove(Path::new(name));
    }
    found
}

fn add_files(root: &Path, dir: &Path, found: &mut Files) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            add_files(root, &path, found);
        } else {
            let bytes = if kind.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path.strip_prefix(root).unwrap().to_path_buf(), bytes);
        }
    }
}

/// Changes the files of a folder to these. Files that are the same are not written. Folders without files
/// are removed.
pub(crate) fn restore(dir: &Path, wanted: &Files) {
    let found = files(dir);
    for path in found.keys().filter(|path| !wanted.contains_key(*path)) {
        fs::remove_file(dir.join(path)).unwrap();
        let folders = path.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
        folders.for_each(|folder| drop(fs::remove_dir(dir.join(folder))));
    }
    for (path, bytes) in wanted.iter().filter(|&(path, bytes)| found.get(path) != Some(bytes)) {
        fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        fs::write(dir.join(path), bytes).unwrap();
    }
}

/// Returns the paths of temporary files.
pub(crate) fn temporary_files(dir: &Path) -> Vec<PathBuf> {
    let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".tmp-");
    files(dir).into_keys().filter(is_temporary).map(|path| dir.join(path)).collect()
}
