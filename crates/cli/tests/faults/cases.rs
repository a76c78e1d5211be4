//! Verbs with their inputs, and the rules for a run with a fault.

use crate::common::*;
use crate::support::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A verb that is run with faults.
pub(crate) struct Case {
    /// The arguments, separated by spaces. `+` in an argument is a space.
    pub(crate) args: &'static str,
    /// The end of the path of the file that the verb writes. It exists before each run with the content
    /// [`OLD`].
    pub(crate) target: Option<&'static str>,
    /// True if there are no index files before a run.
    pub(crate) cold: bool,
    /// The exit status of a run without a fault.
    pub(crate) code: i32,
}

const fn writes(args: &'static str, target: &'static str) -> Case {
    Case { args, target: Some(target), cold: true, code: 0 }
}

const fn warm(args: &'static str) -> Case {
    Case { args, target: None, cold: false, code: 0 }
}

const fn cold(args: &'static str) -> Case {
    Case { args, target: None, cold: true, code: 0 }
}

/// Verbs that write a file.
pub(crate) const WRITERS: &[Case] = &[
    writes("index --rebuild a", "a.tfri"),
    writes("index --rebuild u.gz", "u.gz.tfri"),
    writes("index --rebuild data -j 2", "00001-of-00003.tfrecord.tfri"),
    writes("index --rebuild --column label a", ".tfrc"),
    writes("index --pack p a b", "p.tfrp"),
    Case { args: "index --format dali a", target: Some("a.idx"), cold: false, code: 0 },
    writes("unpack --force u.gz", "u"),
    Case {
        args: "epoch -b 64 --threads 0 --json --state-out state a",
        target: Some("state"),
        cold: false,
        code: 0,
    },
    writes("salvage --force a s", "s"),
    writes("convert --force -s schema r.jsonl enc.tfrecord.gz", "enc.tfrecord.gz"),
    writes("convert --force --bare bare enc.tfrecord", "enc.tfrecord"),
    Case { args: "convert --force a c.parquet", target: Some("c.parquet"), cold: false, code: 0 },
    Case { args: "convert --force a c.arrow", target: Some("c.arrow"), cold: false, code: 0 },
    Case { args: "convert --force a c.jsonl", target: Some("c.jsonl"), cold: false, code: 0 },
    Case { args: "reshard --force --shuffle a --out r", target: Some("r"), cold: false, code: 0 },
    Case {
        args: "reshard --force --shuffle --memory 5kB a u.gz --out r",
        target: Some("r"),
        cold: false,
        code: 0,
    },
    Case {
        args: "reshard --force --features label a --out r.gz",
        target: Some("r.gz"),
        cold: false,
        code: 0,
    },
    Case { args: "stats --force --save st a u.gz -j 3", target: Some("st"), cold: true, code: 0 },
    Case {
        args: "stats --force --json --tfdv t.tfrecord a",
        target: Some("t.tfrecord"),
        cold: true,
        code: 0,
    },
    Case { args: "salvage --force bad s --rest rest", target: Some("s"), cold: true, code: 1 },
];

/// Verbs that read. Their index files are complete or missing before a run.
pub(crate) const READERS: &[Case] = &[
    warm("head -n 3 -f json data/x-*"),
    warm("cat u.gz"),
    // Names that are patterns of the names next to them.
    warm("cat odd-[1]"),
    warm("cat [d]/*"),
    warm("tail -n 2 a"),
    warm("info --json a u.gz"),
    warm("digest data a"),
    warm("schema --json a"),
    warm("schema --tfdv a"),
    warm("grep -f json label+<+7 a"),
    warm("grep --ids label+in+40..60 data u.gz -j 3"),
    warm("grep -c -v label+==+3 u.gz data"),
    warm("stats --json data u.gz -j 3"),
    warm("stats --json --sample 20 data"),
    warm("validate -s schema --json data u.gz -j 3"),
    warm("validate -s tfx a --baseline b"),
    warm("verify data -j 1"),
    warm("verify data a u.gz -j 3"),
    warm("parse -s schema -b 64 a"),
    warm("get data/x-* 5 77 120"),
    warm("get data/x-0000{0..2}-of-00003.tfrecord 5 77 120 --io pread"),
    warm("get data/x@3.tfrecord -2 --io pread"),
    warm("get data 149"),
    warm("get u.gz 250 3"),
    warm("get u.gz 250 3 --io pread"),
    warm("get .tfseek/p.tfrp 305"),
    cold("get data/x@*.tfrecord 5 77 120"),
    cold("get data 149 --io pread"),
    cold("get u.gz 250"),
    warm("sample -n 5 --seed 1 data"),
    warm("epoch -b 64 --threads 0 --json data"),
    warm("epoch -b 64 --threads 0 --json -s schema --io pread data"),
    warm("epoch -b 16 --threads 3 --json -s schema data"),
    warm("epoch -b 16 --threads 3 --json --io pread data u.gz"),
    warm("epoch -b 16 --threads 2 --json --where label+<+20 a"),
    cold("epoch -b 16 --threads 2 --json --where label+<+20 a"),
    cold("epoch -b 16 --threads 2 --json --shuffle block u.gz"),
];

/// A case with its folder.
pub(crate) struct Prepared<'a> {
    pub(crate) case: &'a Case,
    pub(crate) dir: Folder,
    args: Vec<String>,
    pub(crate) before: Files,
    pub(crate) after: Files,
    out: String,
}

impl Case {
    /// Makes a folder in which the verb can run, and runs it once without a fault.
    pub(crate) fn prepare(&self) -> Prepared<'_> {
        let dir = Folder::new();
        fs::create_dir(dir.path("data")).unwrap();
        for s in 0..3 {
            dir.shard(&format!("data/x-{s:05}-of-00003.tfrecord"), labels(50 * s..50 * s + 50));
        }
        dir.shard("a", labels(0..300));
        dir.shard("b", labels(300..310));
        dir.shard("u.gz", labels(0..300));
        for (folder, start) in [("d", 0), ("[d]", 5)] {
            fs::create_dir(dir.path(folder)).unwrap();
            dir.shard(&format!("{folder}/x"), labels(start..start + 3));
        }
        if self.args.contains("robot") {
            dir.robot(&[&robot::episodes(0, &[3, 1, 4]), &robot::episodes(3, &[5, 2])]);
        }
        dir.shard("odd-1", labels(0..3));
        dir.shard("odd-[1]", labels(5..8));
        damage(&dir.shard("bad", labels(0..300)), 34 * 7 + 20);
        fs::write(dir.path("schema"), dir.run(&["schema", "--json", "a"]).out).unwrap();
        fs::write(dir.path("tfx"), dir.run(&["schema", "--tfdv", "a"]).out).unwrap();
        fs::write(dir.path("r.jsonl"), dir.run(&["cat", "-f", "json", "a"]).out).unwrap();
        let bare = dir.command(&["cat", "--bare", "a"]).output().unwrap().stdout;
        fs::write(dir.path("bare"), bare).unwrap();
        if !self.cold {
            assert_eq!(dir.run(&["index", "data", "a", "b", "u.gz", "--column", "label"]).code, 0);
            assert_eq!(dir.run(&["index", "--pack", "p", "a", "b"]).code, 0);
        }
        let mut before = files(&dir.path(""));
        let args: Vec<String> = self.args.split(' ').map(|word| word.replace('+', " ")).collect();
        let ran = dir.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, self.code, "{}: {}", self.args, ran.err);
        let after = files(&dir.path(""));
        if let Some(target) = self.target {
            let targets: Vec<_> = after.keys().filter(|path| is(path, target)).cloned().collect();
            assert!(!targets.is_empty(), "{} does not write {target}", self.args);
            before.extend(targets.into_iter().map(|path| (path, OLD.to_vec())));
        }
        let mut prepared = Prepared { case: self, dir, args, before, after, out: String::new() };
        prepared.out = prepared.normal(&ran.out);
        prepared
    }
}

fn is(path: &Path, ending: &str) -> bool {
    path.to_str().unwrap().ends_with(ending)
}

/// The result of a run that follows the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The output and the files of a run without a fault.
    Success,
    /// An error.
    Error,
}

impl Prepared<'_> {
    pub(crate) fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    /// Returns the number of bytes that a run writes into files, at most.
    pub(crate) fn written(&self) -> usize {
        let new = self.after.iter().filter(|&(path, bytes)| self.before.get(path) != Some(bytes));
        // `unpack`, `salvage` and `parse` may write the bytes of an output twice.
        2 * new.map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Returns the part of an output that does not depend on time.
    fn normal(&self, out: &str) -> String {
        if ["head -n 3 -f json", "info", "digest"].iter().any(|verb| self.case.args.starts_with(verb)) {
            // These are null after a file or an index that cannot be read.
            let without_index = |line: &str| {
                let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
                let of_index = ["index", "inflated", "checkpoint", "size"];
                line.as_object_mut()
                    .unwrap()
                    .retain(|name, _| !of_index.iter().any(|of| name.starts_with(of)));
                format!("{line}\n")
            };
            return out.lines().map(without_index).collect();
        }
        if !self.case.args.starts_with("epoch") || out.is_empty() {
            return out.into();
        }
        let report: serde_json::Value = serde_json::from_str(out).unwrap();
        ["records", "steps", "examples", "skipped", "sum"]
            .map(|name| format!("{name} {}\n", report[name]))
            .concat()
    }

    /// Runs the verb on inputs that changed, as its new result. Returns the time that it took.
    pub(crate) fn run_again(&mut self) -> Duration {
        let targets: Files = self
            .before
            .iter()
            .filter(|(_, bytes)| *bytes == OLD)
            .map(|(p, b)| (p.clone(), b.clone()))
            .collect();
        self.before = files(&self.dir.path(""));
        self.before.extend(targets);
        self.restore();
        let start = Instant::now();
        let ran = self.dir.run(&self.args());
        assert_eq!(ran.code, self.case.code, "{}: {}", self.case.args, ran.err);
        self.after = files(&self.dir.path(""));
        self.out = self.normal(&ran.out);
        start.elapsed()
    }

    /// Checks that each file is the old one or the complete new one. Returns true if all are new.
    #[track_caller]
    pub(crate) fn check_old_or_new(&self) -> bool {
        let found = files(&self.dir.path(""));
        for (path, bytes) in &found {
            let is_old_or_new = [self.before.get(path), self.after.get(path)].contains(&Some(bytes));
            assert!(is_old_or_new, "{}: {} is neither old nor new", self.case.args, path.display());
        }
        assert!(self.before.keys().all(|path| found.contains_key(path)), "{}", self.case.args);
        found == self.after
    }

    /// Makes each old target as long as the new one.
    pub(crate) fn lengthen(&mut self) {
        for (path, bytes) in &mut self.before {
            if bytes == OLD {
                *bytes = vec![b'x'; self.after[path].len()];
            }
        }
        self.restore();
    }

    /// Checks that the last run changed no file.
    #[track_caller]
    pub(crate) fn check_unchanged(&self) {
        assert!(files(&self.dir.path("")) == self.before, "{}", self.case.args);
    }

    /// Removes the effects of the last run.
    pub(crate) fn restore(&self) {
        restore(&self.dir.path(""), &self.before);
    }

    /// Checks a run with a fault. The output and the files are those of a run without it, or there is an
    /// error that names its place. Each file is the old one or the complete new one, and no other file is
    /// left.
    #[track_caller]
    pub(crate) fn check(&self, ran: &Ran, fault: &str) -> Seen {
        let Prepared { case, before, after, .. } = self;
        let context = format!("`{}`, {fault}: {} {}", case.args, ran.code, ran.err);
        assert!(!ran.err.contains("panicked"), "{context}");
        let found = files(&self.dir.path(""));
        for (path, bytes) in &found {
            let path_of = path.display();
            // An index file that cannot be read is built again, in the cache.
            let is_rebuilt = path.starts_with("cache") && after.values().any(|other| other == bytes);
            let is_known = before.contains_key(path) || after.contains_key(path) || is_rebuilt;
            assert!(is_known, "{path_of} is left: {context}");
            let is_old_or_new = is_rebuilt || [before.get(path), after.get(path)].contains(&Some(bytes));
            // A run that ends with an error still saves its state.
            let is_state = case.target == Some("state") && is(path, "state");
            let is_state = is_state && serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
            assert!(is_old_or_new || is_state, "{path_of} is neither old nor new: {context}");
        }
        for path in before.keys() {
            assert!(found.contains_key(path), "{} is lost: {context}", path.display());
        }
        let out = self.normal(&ran.out);
        let is_written = |target: &str| after.iter().all(|(p, b)| !is(p, target) || found.get(p) == Some(b));
        if ran.code == case.code && out == self.out && case.target.is_none_or(is_written) {
            // Other files are indexes, which the run may fail to save, with a warning.
            let is_saved = after.keys().all(|path| found.contains_key(path))
                || ran.err.contains("could not be saved")
                || ran.err.contains("is not saved");
            assert!(is_saved, "the index is not saved, without a warning: {context}");
            return Seen::Success;
        }
        assert!((1..=4).contains(&ran.code) && ran.err.contains("tfseek: "), "{context}\n{}", ran.out);
        let names = [
            ".",
            "[d]",
            "odd-[1]",
            "a",
            "a.idx",
            "b",
            "u.gz",
            "u",
            "bad",
            "c.arrow",
            "c.jsonl",
            "c.parquet",
            "data",
            "schema",
            "state",
            "s",
            "rest",
            "p.tfrp",
            "r",
            "r.gz",
            "st",
            "t.tfrecord",
            "tfx",
            "r.jsonl",
            "bare",
            "enc.tfrecord",
            "enc.tfrecord.gz",
        ];
        let is_name = |word: &str| {
            let word = word.trim_matches([':', '(', ')', ',']);
            names.contains(&word) || word.contains('/') || word.ends_with(".tfri")
        };
        let names_place = ran.err.split_whitespace().any(is_name) || ran.err.contains("thread");
        assert!(names_place, "the message names no file: {context}");
        // The state is that of the part of the epoch before the error.
        if let Some(target) = case.target.filter(|&target| target != "state" && !case.args.contains("--rest"))
        {
            let reported = ran.err.contains("the file is complete and renamed");
            // Of several shards, those before the error are indexed.
            let is_one = !case.args.contains("data");
            let is_new = found.iter().any(|(path, bytes)| is(path, target) && after.get(path) == Some(bytes));
            assert!(!is_one || !is_new || reported, "new, but not reported: {context}");
        }
        // The output before the error is correct. `grep -c` counts the matches in the other files.
        let is_of_files = ["verify", "info", "grep -c"].iter().any(|verb| case.args.starts_with(verb));
        if !is_of_files {
            let mut wanted = self.out.lines();
            let is_part = out.lines().all(|line| wanted.any(|other| other == line));
            assert!(is_part, "another output: {context}\n{}", ran.out);
        }
        Seen::Error
    }
}
