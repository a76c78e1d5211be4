//! Names of options and of Python's parameters: one name for one meaning. `drop_last` stays beside
//! `last_batch`, for users of PyTorch.

use crate::cli::Cli;
use clap::{Arg, Command, CommandFactory};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Largest number of verbs. A verb that is added is argued for here.
///
/// `fetch` copies objects, with a journal: no verb that reads or writes local files does this.
const VERBS: usize = 24;
/// Largest number of options of a verb, with the global ones and `--help`.
const OPTIONS: usize = 30;

/// Names that gave way to another one: of these meanings `threads`, `damage`, `where`, `out`, `features`,
/// `baseline` and `last_batch`.
const GONE: [&str; 9] =
    ["jobs", "errors", "skip_errors", "filter", "output", "out_dir", "keep", "against", "drop_remainder"];

/// Options that take a value in one verb and none in another: `reshard --shuffle` knows the global order
/// only, and `schema --tfdv` prints what `stats --tfdv` writes to a file.
const TWO_FORMS: [&str; 2] = ["shuffle", "tfdv"];

fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn verbs(command: &Command) -> Vec<&Command> {
    command.get_subcommands().filter(|verb| verb.get_name() != "help").collect()
}

fn options(verb: &Command) -> impl Iterator<Item = &Arg> {
    verb.get_arguments().filter(|arg| !arg.is_positional())
}

/// The long names of a verb, as parameters of Python.
fn names(verb: &Command) -> BTreeSet<String> {
    let long = |arg: &Arg| arg.get_long().map(|name| name.replace('-', "_"));
    let global = ["help", "color", "quiet", "bytes"];
    options(verb).filter_map(long).filter(|name| !global.contains(&name.as_str())).collect()
}

/// The parameters of the function of this name in a file of the Python package that has the most, `self` left
/// out. Overloads have fewer.
fn parameters(file: &str, function: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tfseek").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let begin = format!("def {function}(");
    let all = text.split(&begin).skip(1).map(parameters_of);
    all.max_by_key(BTreeSet::len).unwrap()
}

/// The parameters at the start of a text, up to the parenthesis after them.
fn parameters_of(text: &str) -> BTreeSet<String> {
    // Annotations have brackets of their own.
    let mut depth = 0;
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    words.push(word);
    let name = |word: &String| word.split([':', '=']).next().unwrap().trim().to_owned();
    words.iter().map(name).filter(|name| !["", "*", "/", "self"].contains(&name.as_str())).collect()
}

#[test]
fn options_are_consistent_and_few() {
    let command = command();
    Cli::command().debug_assert();
    let verbs = verbs(&command);
    assert!(verbs.len() <= VERBS, "{} verbs", verbs.len());
    for verb in verbs {
        let count = options(verb).count();
        assert!(count <= OPTIONS, "{}: {count} options", verb.get_name());
    }
}

#[test]
fn an_option_has_one_form() {
    let command = command();
    let mut forms: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
    for option in verbs(&command).into_iter().flat_map(options) {
        let Some(name) = option.get_long() else { continue };
        forms.entry(name).or_default().insert(option.get_action().takes_values());
    }
    let two: Vec<_> = forms.into_iter().filter(|(_, forms)| forms.len() > 1).map(|(name, _)| name).collect();
    assert_eq!(two, TWO_FORMS);
}

/// What only one side has is named here, so that another spelling of a shared meaning is found.
#[test]
fn options_and_parameters_have_the_same_names() {
    let command = command();
    let read = "allow_missing max_record tail damage";
    for (verb, file, function, only_command, only_python) in [
        (
            "index",
            "_open.py",
            "build_index",
            "check checkpoint_every classes column format json max_record progress steps tail verify".into(),
            "paths progress storage_options",
        ),
        ("stats", "_stats.py", "stats", "allow_missing force json max_record merge progress save steps style tail tfdv verify where".into(), "progress source storage_options"),
        ("verify", "_stream.py", "verify", "allow_missing json max_record progress tail".into(), "paths progress storage_options"),
        #[cfg(feature = "remote")]
        ("fetch", "_fetch.py", "fetch", "dry_run json max_record progress".into(), "folder split storage_options url"),
        ("unpack", "_stream.py", "unpack", format!("{read} progress verify"), "paths progress storage_options"),
        (
            "reshard",
            "_reshard.py",
            "reshard",
            // Python opens the dataset before.
            "damage index_dir io json max_record progress shard_size tail verify".into(),
            "compression dataset index progress shards storage_options",
        ),
        (
            "view",
            "_view.py",
            "view",
            format!("allow_host force host html index_dir io kind no_open progress schema stay verify {read}"),
            "browser source spec storage_options",
        ),
        (
            "epoch",
            "_loader.py",
            "__init__",
            "allow_missing describe index_dir io json max_record progress resume schema state_out steps tail where".into(),
            "augmentation_seed batches_ahead boundaries bucket_by bytes_as drop_last ds ids look_ahead mask memory padded progress repeat spec tokens_per_batch transform transform_threads weights worker workers",
        ),
        (
            "get",
            "_open.py",
            "open",
            "features format full progress steps where".into(),
            "cache_bytes cache_dir columns filesystem index paths progress rest storage_options",
        ),
        ("cat", "_stream.py", "stream", "allow_missing bare features format full progress skip where".into(), "compression part paths storage_options"),
    ] {
        let found = command.find_subcommand(verb).unwrap();
        let command = names(found);
        let python = parameters(file, function);
        let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
            these.difference(those).cloned().collect::<Vec<_>>().join(" ")
        };
        let sorted = |names: &str| {
            let names: BTreeSet<&str> = names.split_whitespace().filter(|name| *name != "progress").collect();
            names.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sorted(&only(&command, &python)), sorted(&only_command), "`{verb}` only");
        assert_eq!(sorted(&only(&python, &command)), sorted(only_python), "{function} only");
    }
}

#[test]
fn names_that_gave_way_are_gone() {
    let command = command();
    for verb in verbs(&command) {
        let found: Vec<_> = names(verb).into_iter().filter(|name| GONE.contains(&name.as_str())).collect();
        assert!(found.is_empty(), "{}: {found:?}", verb.get_name());
    }
    for (file, function) in [
        ("_open.py", "open"),
        ("_open.py", "build_index"),
        ("_loader.py", "__init__"),
        ("_stream.py", "stream"),
        ("_stream.py", "verify"),
        ("_stream.py", "unpack"),
        ("_fetch.py", "fetch"),
        ("_stats.py", "stats"),
        ("_reshard.py", "reshard"),
        ("_scan.py", "scan"),
        ("_view.py", "view"),
        ("_write_arrow.py", "write"),
    ] {
        let found: Vec<_> =
            parameters(file, function).into_iter().filter(|name| GONE.contains(&name.as_str())).collect();
        assert!(found.is_empty(), "{function}: {found:?}");
    }
    assert!(!parameters("_loader.py", "__init__").contains("tail"));
}
