//! Test files, and runs of the command on them.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod robot;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

/// Time limit of a run. Only a run that hangs takes this long, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A temporary folder per test. The command runs in it, and its cache folder is in it.
pub(crate) struct Folder(TempDir);

/// The result of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes records, compressed according to the extension of `name`.
    pub(crate) fn shard<P: AsRef<[u8]>>(&self, name: &str, payloads: impl IntoIterator<Item = P>) -> PathBuf {
        let compression = match name {
            _ if name.ends_with(".gz") => Compression::Gzip,
            _ if name.ends_with(".zz") => Compression::Zlib,
            _ => Compression::None,
        };
        let path = self.path(name);
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        for payload in payloads {
            writer.write(payload.as_ref()).unwrap();
        }
        writer.close().unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tfseek"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("TFSEEK_INDEX_DIR")
            .env_remove("NO_COLOR");
        command
    }

    /// Returns a command that SIGINT ends, also where the tests ignore it, as a script's `&` makes them do.
    /// Children inherit that.
    pub(crate) fn interruptible(&self, args: &[&str]) -> Command {
        let command = self.command(args);
        if !resets_signals() {
            return command;
        }
        let mut reset = Command::new("env");
        reset.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
        reset.current_dir(self.0.path()).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => reset.env(name, value),
                None => reset.env_remove(name),
            };
        }
        reset
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(output_of(self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    /// Runs the command with these bytes on standard input.
    pub(crate) fn run_on(&self, stdin: &[u8], args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.to_vec();
        // The command may stop reading before the end.
        let feeder = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        let output = output_of(child);
        feeder.join().unwrap();
        Ran::of(output)
    }
}

/// Returns true if `env` can reset a signal, as that of GNU coreutils since 8.31.
pub(crate) fn resets_signals() -> bool {
    static RESETS: OnceLock<bool> = OnceLock::new();
    *RESETS.get_or_init(|| {
        let tried = Command::new("env").args(["--default-signal=INT", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// Waits for the end of a process. One that hangs is killed and fails the test.
#[track_caller]
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if start.elapsed() > TIMEOUT => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the process {} hangs", child.id());
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Waits for the end of a process with pipes, and reads them. One that hangs is killed and fails the test.
#[track_caller]
pub(crate) fn output_of(mut child: Child) -> Output {
    let (stdout, stderr) = (rest_of(child.stdout.take()), rest_of(child.stderr.take()));
    let status = ended(&mut child);
    Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Reads a pipe to its end.
fn rest_of(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        bytes
    })
}

impl Ran {
    /// Runs a command with its outputs in two files of the folder, `stdout` and `stderr`. A run that hangs is
    /// killed and fails the test.
    ///
    /// Without backtraces: Rust's runtime waits for itself if memory ends while it prints one (seen in 1.95).
    #[track_caller]
    pub(crate) fn limited(mut command: Command, dir: &Folder) -> Ran {
        let (out, err) = (dir.path("stdout"), dir.path("stderr"));
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let status = ended(&mut command.spawn().unwrap());
        Ran {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8(fs::read(out).unwrap()).unwrap(),
            err: String::from_utf8(fs::read(err).unwrap()).unwrap(),
        }
    }

    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts success, this standard output, and an empty standard error.
    #[track_caller]
    pub(crate) fn prints(&self, out: &str) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        assert_eq!(self.out, out);
    }

    /// Asserts this exit code, an empty standard output, and each of these words on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {:?}", self.err);
        }
    }
}

pub(crate) fn label(i: i64) -> Vec<u8> {
    ExampleBuilder::new().int64("label", [i]).encode().unwrap()
}

pub(crate) fn labels(range: std::ops::Range<i64>) -> Vec<Vec<u8>> {
    range.map(label).collect()
}

/// Returns an Example with features of every kind, with values that are hard to print.
pub(crate) fn rich() -> Vec<u8> {
    ExampleBuilder::new()
        .bytes("word", ["goat"])
        .bytes("größe", ["it's \"ü\"\n".as_bytes(), &[0xff, 0, 1, 2, 3, 4], &[7]])
        .float("floats", [0.1f32, 1.0, f32::NAN, f32::NEG_INFINITY, 1e-45, 1e16])
        .int64("many", 0..20i64)
        .int64("min", [i64::MIN])
        .int64("no values", [0i64; 0])
        .feature("unset", tfseek::FeatureBuf::None)
        .encode()
        .unwrap()
}

pub(crate) fn sequence() -> Vec<u8> {
    SequenceExampleBuilder::new()
        .int64("id", [5])
        .feature_list("frames", [FeatureBuf::Float(vec![0.5, 2.0]), FeatureBuf::Float(vec![1.5, 3.0])])
        .feature_list("mixed", [FeatureBuf::Int64(vec![1]), FeatureBuf::None])
        .feature_list("nothing", [])
        .encode()
        .unwrap()
}

pub(crate) fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Returns the digests of the records of a file.
pub(crate) fn digests(dir: &Folder, kind: &str, name: &str) -> Vec<serde_json::Value> {
    let ran = dir.run(&["digest", "--kind", kind, name]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line["digest"].clone()).collect()
}

#[track_caller]
pub(crate) fn same_digests(dir: &Folder, kind: &str, names: [&str; 2]) {
    let [a, b] = names.map(|name| digests(dir, kind, name));
    assert!(!a.is_empty() && a.iter().all(serde_json::Value::is_string));
    assert_eq!(a, b);
}

#[track_caller]
pub(crate) fn convert(dir: &Folder, args: &[&str]) {
    let ran = dir.run(&[&["convert", "-q", "--force"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
}
