//! Runs of verbs that a power failure ends at any moment, on a disk that forgets.

use crate::cases::*;
use crate::common::*;
use crate::power::{Recording, State, Tries};
use crate::sets::{SETS, args, check_states, two_shards};
use crate::support::*;
use crate::writer::{KINDS, Target};
use std::path::Path;

/// Runs that write indexes to the cache, tables of steps, and into new folders. Each has the number of waits
/// for the disk that another one makes needless.
const MORE: [(Case, usize); 5] = [
    (Case { args: "get data u.gz 149 --io pread", target: None, cold: true, code: 0 }, usize::MAX),
    (Case { args: "index --steps --rebuild robot", target: Some(".tfrs"), cold: true, code: 0 }, usize::MAX),
    (Case { args: "reshard --shuffle a --out new/x@3.tfrecord", target: None, cold: false, code: 0 }, 2),
    (Case { args: "reshard robot --out new", target: None, cold: false, code: 0 }, 2),
    (Case { args: "unpack u.gz a --out new", target: None, cold: false, code: 0 }, 0),
];

/// Questions whose answers do not depend on index files. They are asked after a failure.
const QUESTIONS: [&str; 5] = [
    "get a 5 250 -f json",
    "get u.gz 250 3 -f json",
    "get data 149 5 -f json",
    "grep -c label+<+7 a",
    "epoch -b 16 --threads 0 --json --where label+<+20 a",
];

/// The states of a run, and what was found.
#[derive(Default)]
struct Found {
    moments: usize,
    states: usize,
    /// States with an index file that is neither the old nor the new one.
    torn: Vec<State>,
    /// The first state that is not allowed.
    wrong: Option<String>,
}

fn is_cache(path: &Path) -> bool {
    let is_index = |end: &std::ffi::OsStr| ["tfri", "tfrc", "tfrs"].iter().any(|index| end == *index);
    path.starts_with("cache") || path.extension().is_some_and(is_index)
}

impl Prepared<'_> {
    fn record(&self, recorder: &Shim) -> Recording {
        self.restore();
        let root = self.dir.path("");
        let recording = Recording::of(&root, |variables| {
            let ran = recorder.run(&self.dir, &self.args(), variables);
            assert_eq!(ran.code, self.case.code, "{}", ran.err);
        });
        assert_eq!(files(&root), self.after, "{}", self.case.args);
        recording
    }

    /// Looks at states of a run.
    fn judge(&self, recording: &Recording, tries: Tries) -> Found {
        let mut found = Found { moments: recording.moments(), ..Found::default() };
        found.states = recording.each_state(tries, |state| match self.is_torn(&state) {
            Ok(true) => found.torn.push(state),
            Ok(false) => {}
            Err(reason) => {
                found.wrong.get_or_insert(format!("{reason}: {}", state.origin));
            }
        });
        found
    }

    /// Returns true if an index file is neither the old nor the new one. An output is one of them, and after
    /// the run the new one.
    fn is_torn(&self, state: &State) -> Result<bool, String> {
        let State { files, is_end, .. } = state;
        let mut torn = false;
        for (path, bytes) in files {
            if [self.before.get(path), self.after.get(path)].contains(&Some(bytes)) {
                continue;
            }
            if !is_cache(path) {
                return Err(format!("{} is neither old nor new", path.display()));
            }
            torn = true;
        }
        for path in self.before.keys() {
            if !is_cache(path) && !files.contains_key(path) {
                return Err(format!("{} is lost", path.display()));
            }
        }
        for (path, bytes) in self.after.iter().filter(|(path, _)| *is_end && !is_cache(path)) {
            if files.get(path) != Some(bytes) {
                return Err(format!("{} is not there after the run", path.display()));
            }
        }
        Ok(torn)
    }

    /// Asks questions in states with torn index files: the answers are right. The verb then succeeds.
    fn ask(&self, states: &[&State]) {
        let root = self.dir.path("");
        let of_steps = self.case.args.contains("--steps").then_some("head --steps -n 9 -f json robot");
        let questions: Vec<Vec<String>> = QUESTIONS
            .into_iter()
            .chain(of_steps)
            .map(|question| question.split(' ').map(|word| word.replace('+', " ")).collect())
            .collect();
        let answers = |origin: &str| -> Vec<String> {
            let answer = |words: &Vec<String>| {
                let ran = self.dir.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
                let question = words.join(" ");
                assert_eq!(ran.code, 0, "`{}`, {origin}, then `{question}`: {}", self.case.args, ran.err);
                if words[0] != "epoch" {
                    return ran.out;
                }
                let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
                ["records", "examples", "sum"].map(|name| report[name].to_string()).join(" ")
            };
            questions.iter().map(answer).collect()
        };
        restore(&root, &self.before);
        let wanted = answers("before");
        for state in states {
            restore(&root, &state.files);
            assert_eq!(answers(&state.origin), wanted, "{}, {}", self.case.args, state.origin);
            // A new output is not replaced.
            let is_new = |path: &&std::path::PathBuf| !is_cache(path) && !self.before.contains_key(*path);
            if self.after.keys().filter(is_new).any(|path| state.files.contains_key(path)) {
                continue;
            }
            restore(&root, &state.files);
            let ran = self.dir.run(&self.args());
            assert_eq!(ran.code, self.case.code, "{}: {}", self.case.args, ran.err);
            assert_eq!(files(&root), self.after, "{}", self.case.args);
        }
    }
}

/// Looks at states of all verbs that write, and asks questions in `asked` of those of a verb.
fn check_verbs(name: &str, tries: Tries, asked: usize) {
    let Some(recorder) = Shim::recorder(name) else { return };
    // Of two outputs in one folder, the second sync of the folder serves both.
    let writers = WRITERS.iter().map(|case| (case, usize::from(case.args.contains("--rest"))));
    for (case, needless_here) in writers.chain(MORE.iter().map(|(case, needless)| (case, *needless))) {
        let prepared = case.prepare();
        let recording = prepared.record(&recorder);
        let found = prepared.judge(&recording, tries);
        assert_eq!(found.wrong, None, "{}", case.args);
        let step = found.torn.len().div_ceil(asked).max(1);
        let torn: Vec<&State> = found.torn.iter().step_by(step).collect();
        prepared.ask(&torn);
        // A run without one of its waits for the disk is found. Index files need none.
        let is_needless = |sync: &Vec<usize>| {
            let without = Tries { of_moment: 12, seeds: 0 };
            prepared.judge(&recording.clone().without(sync), without).wrong.is_none()
        };
        let needless: Vec<_> = recording.syncs().into_iter().filter(is_needless).collect();
        let writes_index =
            prepared.after.keys().any(|path| is_cache(path) && !prepared.before.contains_key(path))
                || case.target.is_some_and(|target| is_cache(Path::new(target)));
        let most_needless = if writes_index { usize::MAX } else { needless_here };
        assert!(needless.len() <= most_needless, "{}: {needless:?}", case.args);
        println!(
            "`{}`: {} moments, {} states, {} torn; {} syncs, needless {needless:?}",
            case.args,
            found.moments,
            found.states,
            found.torn.len(),
            recording.syncs().len()
        );
    }
}

/// Runs that write two sets of shards, in place of old ones or not: each set is then missing, the old one,
/// the new one, or refused.
fn check_sets(name: &str, tries: Tries) {
    let Some(recorder) = Shim::recorder(name) else { return };
    let dir = two_shards();
    for (out, sets) in [("out/{split}@5.tfrecord", &SETS[..2]), ("one/{split}.tfrecord", &SETS[2..])] {
        let folder = dir.path(out.split_once('/').unwrap().0);
        let content = |seed: &str| {
            let ran = dir.run(&args(out, seed, "1GB"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            files(&folder)
        };
        let old = content("1");
        let new = content("2");
        for before in [&Files::new(), &old] {
            restore(&folder, before);
            let recording = Recording::of(&folder, |variables| {
                assert_eq!(recorder.run(&dir, &args(out, "2", "1GB"), variables).code, 0);
            });
            let mut seen = [0; 4];
            let states = recording.each_state(tries, |State { files, is_end, origin, .. }| {
                let context = format!("{out}, {} old files, end {is_end}, {origin}", before.len());
                restore(&folder, &files);
                let found = check_states(&dir, sets, before, &old, &new, &context);
                assert!(!is_end || found == [2, 2], "{found:?} {context}");
                found.into_iter().for_each(|state| seen[state] += 1);
            });
            println!("`{out}`: {states} states, {seen:?} missing, old, new and refused");
        }
    }
}

/// Runs of `Writer`, and of the writers of sets in `tfseek-tools`.
fn check_writers(name: &str, tries: Tries) {
    let Some(recorder) = Shim::recorder(name) else { return };
    for kind in KINDS.into_iter().chain(["tasks", "in-order"]) {
        let target = Target::new(kind);
        let folder = target.dir.path("");
        restore(&folder, &target.old);
        let recording = Recording::of(&folder, |variables| {
            let mut command = target.child();
            recorder.preload(&mut command, variables);
            assert_eq!(Ran::limited(command, &target.dir).code, 0);
        });
        let mut new = 0;
        let states = recording.each_state(tries, |State { files, is_end, origin, .. }| {
            restore(&folder, &files);
            let is_new = target.check(&format!("{kind}, end {is_end}, {origin}"));
            assert!(is_new || !is_end, "{kind}: not there after the run: {origin}");
            new += usize::from(is_new);
        });
        println!("writer of {kind}: {} moments, {states} states, {new} new", recording.moments());
    }
}

#[test]
fn a_power_failure_leaves_old_or_new_outputs() {
    check_verbs("power", Tries { of_moment: 20, seeds: 100 }, 3);
}

#[test]
fn a_power_failure_leaves_no_mixture_of_sets() {
    check_sets("power-sets", Tries { of_moment: 40, seeds: 200 });
}

#[test]
fn a_power_failure_leaves_the_old_file_of_a_writer_or_the_new_one() {
    check_writers("power-writers", Tries { of_moment: 20, seeds: 60 });
}

#[test]
#[ignore = "a hundred thousand states: `make test-slow`"]
fn a_hundred_thousand_power_failures() {
    check_verbs("powers", Tries { of_moment: 100, seeds: 1000 }, 10);
    check_sets("powers-sets", Tries { of_moment: 40, seeds: 10_000 });
    check_writers("powers-writers", Tries { of_moment: 20, seeds: 4000 });
}
