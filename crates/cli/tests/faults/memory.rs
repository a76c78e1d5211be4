//! A large request of memory fails, or all that are larger than a limit: an error, or the result of a run
//! with enough memory.

use crate::common::*;
use crate::support::*;
use std::fs;
use std::sync::Mutex;
use tfseek::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

/// Bytes of the smallest request that fails. Smaller ones are those of buffers and structures whose sizes do
/// not come from files.
const LARGE: usize = (1 << 20) + 1;

/// Verbs for each file, which is `X`. The files that they write begin with `out`. `convert` to Parquet is not
/// among them: its library ends the process without memory.
const VERBS: &[&str] = &[
    "head -n 4 -f json X",
    "cat X",
    "cat -f fields X",
    "tail -n 4 X",
    "get X 2 0 --io pread",
    "sample -n 3 --seed 1 X",
    "info --json X",
    "digest X",
    "verify X -j 2",
    "index --rebuild --dir outdir X",
    "grep -c any(x)>=0 X",
    "grep -c -F zzz X",
    "schema --json X",
    "stats --json X -j 2",
    "validate --json -s schema X",
    "parse -b 2 -s schema X",
    "salvage X out",
    "reshard --shuffle --out out X",
    "reshard --shuffle --memory 100kB --out out@2 X",
    "convert X out.jsonl",
    "convert X out.arrow",
    "epoch -b 2 --threads 0 --json X",
    "epoch -b 2 --threads 2 --json -s schema X --io pread",
];

/// Files with a record that needs much memory.
const FILES: [&str; 5] = ["numbers", "strings", "long", "zeros.gz", "steps"];

/// Makes all files, and a schema of each, which cases copy.
fn folder(scale: usize) -> Folder {
    let dir = Folder::new();
    let around = |large: Vec<u8>, small: Vec<u8>| [small.clone(), small.clone(), large, small];
    let small = ExampleBuilder::new().int64("x", [1]).encode().unwrap();
    let text = ExampleBuilder::new().bytes("x", ["a"]).encode().unwrap();
    let numbers = ExampleBuilder::new().int64("x", (0..scale as i64).map(|k| k % 100)).encode().unwrap();
    dir.shard("numbers", around(numbers, small));
    let strings = ExampleBuilder::new().bytes("x", (0..scale / 2).map(|_| b"")).encode().unwrap();
    dir.shard("strings", around(strings, text.clone()));
    let long = |len: usize| ExampleBuilder::new().bytes("x", [vec![0u8; len]]).encode().unwrap();
    dir.shard("long", around(long(2 * scale), text.clone()));
    dir.shard("zeros.gz", around(long(8 * scale), text));
    let steps = |n: usize| {
        let steps = vec![FeatureBuf::Int64(vec![1, 2]); n];
        SequenceExampleBuilder::new().feature_list("x", steps).encode().unwrap()
    };
    dir.shard("steps", around(steps(scale / 8), steps(1)));
    for file in FILES {
        let schema = dir.run(&["schema", "--json", file]).out;
        fs::write(dir.path(&format!("{file}.schema")), schema).unwrap();
    }
    dir
}

fn words<'a>(verb: &'a str, file: &'a str) -> Vec<&'a str> {
    verb.split(' ').map(|word| if word == "X" { file } else { word }).collect()
}

/// A verb and a file, with what the run gives without a fault.
struct Case<'a> {
    verb: &'a str,
    file: &'a str,
    dir: Folder,
    before: Files,
    after: Files,
    whole: Ran,
}

impl<'a> Case<'a> {
    fn new(verb: &'a str, file: &'a str, all: &Folder) -> Case<'a> {
        let dir = Folder::new();
        fs::copy(all.path(file), dir.path(file)).unwrap();
        fs::copy(all.path(&format!("{file}.schema")), dir.path("schema")).unwrap();
        dir.run(&["index", file]);
        let before = files(&dir.path(""));
        let whole = dir.run(&words(verb, file));
        let after = files(&dir.path(""));
        Case { verb, file, dir, before, after, whole }
    }

    /// Returns the arguments, after the effects of the last run are removed.
    fn prepare(&self) -> Vec<&str> {
        restore(&self.dir.path(""), &self.before);
        let _ = fs::remove_dir_all(self.dir.path("outdir"));
        words(self.verb, self.file)
    }

    /// Returns true if the run gave the whole result. Otherwise it has ended with an error, and has left no
    /// file. Returns a text if neither holds.
    fn check(&self, ran: &Ran, fault: &str) -> Result<bool, String> {
        let found = files(&self.dir.path(""));
        let is_same = |a: &str, b: &str| {
            if self.verb.starts_with("epoch") {
                // A report has times.
                a.is_empty() == b.is_empty()
            } else {
                a == b
            }
        };
        // An index in the cache may stay unsaved.
        let of_verb = |files: &Files| -> Files {
            files
                .iter()
                .filter(|(p, _)| !p.starts_with("cache"))
                .map(|(p, b)| (p.clone(), b.clone()))
                .collect()
        };
        let is_whole = ran.code == self.whole.code && is_same(&ran.out, &self.whole.out);
        let left: Vec<_> = found.keys().filter(|path| !self.after.contains_key(*path)).collect();
        let rules = [
            ("a panic", !ran.err.contains("panicked")),
            ("no error", is_whole || (1..=4).contains(&ran.code) && ran.err.contains("tfseek: ")),
            ("other files", !is_whole || of_verb(&found) == of_verb(&self.after)),
            ("a changed file", self.before.iter().all(|(path, bytes)| found.get(path) == Some(bytes))),
            ("a file is left", is_whole || left.is_empty()),
        ];
        match rules.iter().find(|(_, holds)| !holds) {
            Some((broken, _)) => {
                let out: String = ran.out.chars().take(100).collect();
                Err(format!(
                    "`{}` of {}, {fault}: {broken}: {} {out} {} {left:?}",
                    self.verb, self.file, ran.code, ran.err
                ))
            }
            None => Ok(is_whole),
        }
    }
}

/// Makes the n-th large request fail for n = 1, `next(1)`, `next(next(1))`, .. until the run makes fewer
/// requests.
fn check_large_requests(name: &str, next: fn(usize) -> usize) {
    let Some(shim) = Shim::new(name) else { return };
    let left = Mutex::new(VERBS.iter().flat_map(|verb| FILES.iter().map(move |file| (verb, file))));
    let (seen, broken) = (Mutex::new([0; 2]), Mutex::new(Vec::new()));
    let all = folder(2 << 20);
    let check = |verb, file| {
        let case = Case::new(verb, file, &all);
        let mut n = 1;
        loop {
            let args = case.prepare();
            let Some(ran) = shim.without_memory(&case.dir, &args, n, LARGE) else { return };
            match case.check(&ran, &format!("request {n}")) {
                Ok(is_whole) => seen.lock().unwrap()[usize::from(!is_whole)] += 1,
                Err(reason) => broken.lock().unwrap().push(reason),
            }
            n = next(n);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((verb, file)) = left.lock().unwrap().next() else { return };
                    check(verb, file);
                }
            });
        }
    });
    let (seen, broken) = (seen.into_inner().unwrap(), broken.into_inner().unwrap());
    println!("large requests of memory that fail: {seen:?} succeeded and errors");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(seen[1] > 100);
}

#[test]
fn some_large_requests_of_memory() {
    check_large_requests("some_large_requests", |n| 3 * n);
}

#[test]
#[ignore = "takes minutes: `make test-slow`"]
fn every_large_request_of_memory() {
    check_large_requests("every_large_request", |n| n + 1);
}

/// A limit of the address space: an error below the memory that the records need.
#[test]
#[ignore = "takes two minutes: `make test-slow`"]
fn little_address_space_for_large_records() {
    let mut seen = [0; 2];
    let all = folder(8 << 20);
    for (verb, file) in VERBS.iter().flat_map(|verb| FILES.iter().map(move |file| (verb, file))) {
        let case = Case::new(verb, file, &all);
        for mib in (64..=640).step_by(32) {
            let ran = crate::limits::limited(&case.dir, &format!("ulimit -v {}", mib << 10), &case.prepare());
            let is_whole = case.check(&ran, &format!("{mib} MiB")).unwrap();
            seen[usize::from(!is_whole)] += 1;
            if is_whole {
                break;
            }
        }
    }
    println!("address space for large records: {seen:?} succeeded and errors");
    assert!(seen[0] == VERBS.len() * FILES.len() && seen[1] > 0);
}
