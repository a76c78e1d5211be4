//! The command line: global options and verbs, and words that clap would take for options: `head -5`, and
//! record numbers such as `-3:`.

use crate::args::{GlobalArgs, MARK};
use crate::verbs;
use clap::{ArgAction, Command, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;

/// Random access to the TFRecord files you already have.
#[derive(Debug, Parser)]
#[command(name = "tfseek", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const AFTER: &str = "\
PATHS are files, folders, quoted patterns ('train-*.tfrecord', 'x-{00000..00009}') or sets \
('train@10.tfrecord'). `-` is standard input, for the verbs that read in file order: head, tail, cat, sample, grep, schema, \
stats, parse, digest, verify, validate, info, unpack. With the feature `remote` PATHS can be URLs (s3://, gs://, az://, https://, hf://), \
except for salvage and `tail -F`.

Exit status: 0 success, 1 a problem in the data, 2 a usage error, 3 an I/O error, 4 not a TFRecord file.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a small dataset and demonstrate tfseek on it
    Demo(verbs::demo::DemoArgs),
    /// Build a small index file per shard, by default in `.tfseek/` next to the shards, and for URLs in the
    /// user's cache
    Index(verbs::index::IndexArgs),
    /// Show records, bytes, compression, index and features of files
    Info(verbs::info::InfoArgs),
    /// Print the first records of each file
    Head(verbs::head::HeadArgs),
    /// Print the last records of each file
    Tail(verbs::tail::TailArgs),
    /// Print all records
    Cat(verbs::cat::CatArgs),
    /// Print records by number, counted over all files
    Get(verbs::get::GetArgs),
    /// Print records drawn at random, without replacement; compressed files and standard input are read once,
    /// in order
    Sample(verbs::sample::SampleArgs),
    /// Print the records that meet a condition or contain a text; exit status 1 if there is none
    #[command(after_help = verbs::grep::AFTER_GREP)]
    Grep(verbs::grep::GrepArgs),
    /// Show the features of the records and infer a schema that parses them
    Schema(verbs::schema::SchemaArgs),
    /// Print statistics of the features: presence, values, quantiles, distinct values; one pass over all
    /// records
    Stats(verbs::stats::StatsArgs),
    /// Parse records into arrays by a schema, as TensorFlow's parsers do, and print them
    Parse(verbs::parse::ParseArgs),
    /// Run through an epoch as a training loop does, and report time, throughput, stalls and memory
    #[command(after_help = verbs::epoch::AFTER_EPOCH, mut_arg("threads", |arg| arg.help(verbs::epoch::THREADS)))]
    Epoch(verbs::epoch::EpochArgs),
    /// Print the records of a step of an epoch, or the steps that contain a record; only the index is read
    Order(verbs::order::OrderArgs),
    /// Print a digest of each record's content; equal content has equal digests, whatever its encoding
    Digest(verbs::digest::DigestArgs),
    /// Verify all checksums, name each damaged file and list its damaged ranges
    Verify(verbs::verify::VerifyArgs),
    /// Compare records with a schema; print each anomaly and the first records that have it
    Validate(verbs::validate::ValidateArgs),
    /// Write a dataset again: in other shards, shuffled, sorted, split into parts, or with fewer features
    #[command(after_help = verbs::reshard::AFTER_RESHARD)]
    Reshard(verbs::reshard::ReshardArgs),
    /// Copy the sound records of a damaged file to a new one
    Salvage(verbs::salvage::SalvageArgs),
    /// Convert TFRecords to another format, or files of another format to TFRecords: JSON lines, Parquet,
    /// Arrow, and payloads that follow their length
    #[command(after_help = verbs::convert::AFTER_CONVERT, override_usage = "tfseek convert [OPTIONS] <IN>... <OUT>")]
    Convert(verbs::convert::ConvertArgs),
    /// Decompress gzip and zlib files to plain TFRecord files, which allow random access
    Unpack(verbs::unpack::UnpackArgs),
    /// Copy shards from a bucket, a web server or the Hugging Face hub to a folder; each record is checked
    #[cfg(feature = "remote")]
    #[command(after_help = verbs::fetch::AFTER_FETCH)]
    Fetch(verbs::fetch::FetchArgs),
    /// Show the records in the browser: a grid, a table, each record, statistics, searches
    #[cfg(feature = "view")]
    #[command(after_help = verbs::view::AFTER_VIEW, mut_arg("damage", |arg| arg.default_value("skip")))]
    View(verbs::view::ViewArgs),
    /// Print a shell script that completes the arguments of this command
    Completions(verbs::completions::CompletionsArgs),
}

impl Verb {
    /// Returns true if the verb reads objects of stores.
    pub(crate) fn reads_objects(&self) -> bool {
        match self {
            Verb::Demo(_) | Verb::Salvage(_) | Verb::Completions(_) => false,
            Verb::Tail(args) => !args.follow,
            _ => true,
        }
    }
}

/// Replaces `-5` by `-n 5` in the arguments of `head` and `tail`, and marks the negative record numbers of
/// `get`.
pub(crate) fn prepare(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let cli = Cli::command();
    let mut args = args.into_iter();
    // The program name.
    let mut all: Vec<OsString> = args.next().into_iter().collect();
    let mut verb: Option<&Command> = None;
    // The word before is an option that takes a value.
    let mut value = false;
    for arg in args.by_ref() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" && !value {
            all.push(arg);
            break;
        }
        let digits = text.strip_prefix('-').unwrap_or_default();
        let negative = digits.starts_with(|c: char| c.is_ascii_digit());
        match verb.map(Command::get_name) {
            _ if value => value = false,
            Some("head" | "tail") if negative && digits.bytes().all(|c| c.is_ascii_digit()) => {
                all.extend(["-n".into(), digits.into()]);
                continue;
            }
            Some("get") if negative => {
                all.push(format!("{MARK}{text}").into());
                continue;
            }
            None if !text.starts_with('-') => verb = cli.find_subcommand(text),
            _ => value = takes_value(text, &cli) || verb.is_some_and(|verb| takes_value(text, verb)),
        }
        all.push(arg);
    }
    all.extend(args);
    all
}

/// Returns true if the next word is the value of this one.
fn takes_value(word: &str, command: &Command) -> bool {
    // A value that follows `=` is in the same word.
    let takes = |arg: &&clap::Arg| {
        matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !arg.is_require_equals_set()
    };
    let options = || command.get_arguments().filter(takes);
    if let Some(long) = word.strip_prefix("--") {
        return options().any(|arg| arg.get_long() == Some(long));
    }
    let Some(shorts) = word.strip_prefix('-') else { return false };
    // In `-fjson` the value follows in the same word.
    let first = shorts.char_indices().find(|&(_, c)| options().any(|arg| arg.get_short() == Some(c)));
    first.is_some_and(|(k, c)| k + c.len_utf8() == shorts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_and_record_numbers_are_replaced() {
        let prepared = |line: &str| {
            let words = prepare(line.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_str().unwrap().replace('\0', "^")).collect::<Vec<_>>().join(" ")
        };
        for (line, want) in [
            ("tfseek head -5 a", "tfseek head -n 5 a"),
            ("tfseek -q --color never tail a -12", "tfseek -q --color never tail a -n 12"),
            ("tfseek head -n -5 a", "tfseek head -n -5 a"),
            ("tfseek head -qn -5 a", "tfseek head -qn -5 a"),
            ("tfseek head -fjson -5 a", "tfseek head -fjson -n 5 a"),
            ("tfseek head -f json -5 a", "tfseek head -f json -n 5 a"),
            ("tfseek head -5x a", "tfseek head -5x a"),
            ("tfseek head -- -5", "tfseek head -- -5"),
            ("tfseek cat -5", "tfseek cat -5"),
            ("tfseek get a -1 -3: -q -2,4", "tfseek get a ^-1 ^-3: -q ^-2,4"),
            ("tfseek head --steps -5 a", "tfseek head --steps -n 5 a"),
            ("tfseek sample a --seed -5", "tfseek sample a --seed -5"),
            ("tfseek", "tfseek"),
        ] {
            assert_eq!(prepared(line), want);
        }
    }
}
