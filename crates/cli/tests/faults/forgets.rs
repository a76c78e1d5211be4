//! Runs of verbs that a power failure ends at any moment, on a disk that forgets.

use crate::cases::*;
use crate::common::*;
use crate::power::{Recording, digest};
use crate::sets::{SETS, args, check_states, two_shards};
use crate::support::*;
use crate::writer::{KINDS, Target};
use std::collections::BTreeSet;
use std::path::Path;

/// Questions whose answers do not depend on index files. Those that fit a verb are asked after a failure.
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
    torn: Vec<Files>,
    /// The first state that is not allowed.
    wrong: Option<String>,
}

fn is_cache(path: &Path) -> bool {
    path.starts_with("cache") || path.extension().is_some_and(|end| end == "tfri" || end == "tfrc")
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with(".tmp-")
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

    /// Looks at all states of a run, at most at `most` of each moment.
    fn judge(&self, recording: &Recording, most: usize) -> Found {
        let mut found = Found { moments: recording.moments(), ..Found::default() };
        found.states = each_state(recording, most, |state, is_end| match self.is_torn(&state, is_end) {
            Ok(true) => found.torn.push(state),
            Ok(false) => {}
            Err(reason) => {
                found.wrong.get_or_insert(reason);
            }
        });
        found
    }

    /// Returns true if an index file is neither the old nor the new one. An output is one of them, and after
    /// the run the new one.
    fn is_torn(&self, state: &Files, is_end: bool) -> Result<bool, String> {
        let mut torn = false;
        for (path, bytes) in state {
            if [self.before.get(path), self.after.get(path)].contains(&Some(bytes)) {
                continue;
            }
            if !is_cache(path) {
                return Err(format!("{} is neither old nor new", path.display()));
            }
            torn = true;
        }
        for path in self.before.keys() {
            if !is_cache(path) && !state.contains_key(path) {
                return Err(format!("{} is lost", path.display()));
            }
        }
        for (path, bytes) in self.after.iter().filter(|(path, _)| is_end && !is_cache(path)) {
            if state.get(path) != Some(bytes) {
                return Err(format!("{} is not there after the run", path.display()));
            }
        }
        Ok(torn)
    }

    /// Asks questions in states with torn index files: the answers are right. The verb then succeeds.
    fn ask(&self, states: &[Files]) {
        let root = self.dir.path("");
        let questions: Vec<Vec<String>> = QUESTIONS
            .iter()
            .map(|question| question.split(' ').map(|word| word.replace('+', " ")).collect())
            .collect();
        let answers = || -> Vec<String> {
            let answer = |words: &Vec<String>| {
                let ran = self.dir.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(ran.code, 0, "`{}`, then `{}`: {}", self.case.args, words.join(" "), ran.err);
                ran.out.split("\"seconds\"").next().unwrap().to_owned()
            };
            questions.iter().map(answer).collect()
        };
        restore(&root, &self.before);
        let wanted = answers();
        for state in states {
            restore(&root, state);
            assert_eq!(answers(), wanted, "{}", self.case.args);
            restore(&root, state);
            let ran = self.dir.run(&self.args());
            assert_eq!(ran.code, self.case.code, "{}: {}", self.case.args, ran.err);
            assert_eq!(files(&root), self.after, "{}", self.case.args);
        }
    }
}

/// Looks at `most` states of each moment of all verbs that write, and asks questions in `asked` of them.
fn check_verbs(name: &str, most: usize, asked: usize) {
    let Some(recorder) = Shim::recorder(name) else { return };
    for case in WRITERS {
        let prepared = case.prepare();
        let recording = prepared.record(&recorder);
        let found = prepared.judge(&recording, most);
        assert_eq!(found.wrong, None, "{}", case.args);
        let step = found.torn.len().div_ceil(asked).max(1);
        let torn: Vec<Files> = found.torn.iter().step_by(step).cloned().collect();
        prepared.ask(&torn);
        // A run without one of its waits for the disk is found. Index files need none.
        let is_needless =
            |sync: &Vec<usize>| prepared.judge(&recording.clone().without(sync), most).wrong.is_none();
        let needless: Vec<_> = recording.syncs().into_iter().filter(is_needless).collect();
        let writes_index =
            prepared.after.keys().any(|path| is_cache(path) && !prepared.before.contains_key(path))
                || case.target.is_some_and(|target| is_cache(Path::new(target)));
        // Of two outputs in one folder, the second sync of the folder serves both.
        let most_needless = if writes_index { usize::MAX } else { usize::from(case.args.contains("--rest")) };
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

/// Calls `check` with each state of a run once, and whether it is one after the run.
fn each_state(recording: &Recording, most: usize, mut check: impl FnMut(Files, bool)) -> usize {
    let mut seen = BTreeSet::new();
    for moment in 0..recording.moments() {
        let is_end = moment + 1 == recording.moments();
        recording.states(moment, most, moment as u64, |mut state| {
            for name in ["stdout", "stderr"] {
                state.remove(Path::new(name));
            }
            state.retain(|path, _| !is_temporary(path));
            if seen.insert((digest(&state), is_end)) {
                check(state, is_end);
            }
        });
    }
    seen.len()
}

/// Runs that write two sets of shards, in place of old ones or not: each set is then missing, the old one, the
/// new one, or refused.
fn check_sets(name: &str, most: usize) {
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
            let states = each_state(&recording, most, |state, is_end| {
                let context = format!("{out}, {} old files, end {is_end}", before.len());
                restore(&folder, &state);
                let found = check_states(&dir, sets, before, &old, &new, &context);
                assert!(!is_end || found == [2, 2], "{found:?} {context}");
                found.into_iter().for_each(|state| seen[state] += 1);
            });
            println!("`{out}`: {states} states, {seen:?} missing, old, new and refused");
        }
    }
}

/// Runs of `Writer`.
fn check_writers(name: &str, most: usize) {
    let Some(recorder) = Shim::recorder(name) else { return };
    for kind in KINDS.into_iter().chain(["tasks"]) {
        let target = Target::new(kind);
        let folder = target.dir.path("");
        restore(&folder, &target.old);
        let recording = Recording::of(&folder, |variables| {
            let mut command = target.child();
            recorder.preload(&mut command, variables);
            assert_eq!(Ran::limited(command, &target.dir).code, 0);
        });
        let mut new = 0;
        let states = each_state(&recording, most, |state, is_end| {
            restore(&folder, &state);
            let is_new = target.check(&format!("{kind}, end {is_end}"));
            assert!(is_new || !is_end, "{kind}: not there after the run");
            new += usize::from(is_new);
        });
        println!("writer of {kind}: {} moments, {states} states, {new} new", recording.moments());
    }
}

#[test]
fn a_power_failure_leaves_old_or_new_outputs() {
    check_verbs("power", 300, 3);
}

#[test]
fn a_power_failure_leaves_no_mixture_of_sets() {
    check_sets("power-sets", 40);
}

#[test]
fn a_power_failure_leaves_the_old_file_of_a_writer_or_the_new_one() {
    check_writers("power-writers", 20);
}
