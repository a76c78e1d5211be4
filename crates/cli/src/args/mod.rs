//! What can be typed.

mod epoch;

pub(crate) use epoch::{Epoch, Order, Share};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::num::{NonZeroUsize, ParseIntError};
use std::path::PathBuf;
use tfseek::DatasetOptions;
use tfseek::stream::StreamOptions;

/// Random access to the TFRecord files you already have.
#[derive(Debug, Parser)]
#[command(name = "tfseek", version, propagate_version = true, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const AFTER: &str = "\
PATHS are files, folders, patterns in quotes ('train-*.tfrecord', 'x-{00000..00009}'), or sets ('train@10.tfrecord').
`-` is standard input, for the verbs that read in order: head, tail, cat, schema, parse, digest, verify,
info, unpack. Only local files are read, no gs:// or s3:// addresses.

Exit status: 0 all well, 1 a problem in the data, 2 usage, 3 input and output, 4 not a TFRecord file.";

/// Options of every verb.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Colours; `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(crate) color: ColorChoice,
    /// Say nothing but errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Show progress even if standard error is no terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) progress: bool,
    /// Sizes in bytes, exact
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) bytes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a small dataset, and show on it what tfseek does
    Demo(Demo),
    /// Index shards: a small file for each, in `.tfseek/` beside it
    Index(Index),
    /// Records, bytes, compression, index and features of files
    Info(Info),
    /// Print the first records
    Head(Head),
    /// Print the last records
    Tail(Tail),
    /// Print all records
    Cat(Cat),
    /// Print records by number, counted over all files
    Get(Get),
    /// Print records drawn at random, none twice
    Sample(Sample),
    /// What features records have, and a schema that takes them
    Schema(Schema),
    /// Records to arrays by a schema, as TensorFlow's parsers would: to an .npz file, or printed
    Parse(Parse),
    /// Run through an epoch as a training loop does, and say what it took
    #[command(after_help = epoch::AFTER_EPOCH)]
    Epoch(Epoch),
    /// Print which records a step of an epoch has, or which steps have a record; nothing is read but the index
    Order(Order),
    /// Print a digest of each record's content, equal for equal content whatever its encoding
    Digest(Digest),
    /// Check every checksum, and name each damaged file
    Verify(Verify),
    /// Inflate gzip and zlib files to plain TFRecord files, which can be read at random
    Unpack(Unpack),
    /// Print a script that completes the command in a shell
    Completions(Completions),
}

/// Which files.
#[derive(Debug, Args)]
pub(crate) struct Paths {
    /// Files, folders, patterns, or sets
    #[arg(required = true, value_name = "PATHS")]
    pub(crate) paths: Vec<PathBuf>,
    /// Go on where shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
}

/// How records are printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct Print {
    /// For people, one JSON object a line (`index` is the number over all files, which `get` takes, or null where it is not known;
    /// `record` the number in the file), protobuf's JSON mapping, the payloads as they are, or records with their
    /// framing (`tfseek sample -n 100 -f tfrecord x > small.tfrecord`)
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) kind: KindArg,
    /// Shorten nothing
    #[arg(long)]
    pub(crate) full: bool,
}

/// The kind of payloads, and a limit on their length.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct KindArg {
    /// What payloads are; `auto` looks at the first records of each file
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(crate) kind: KindChoice,
    #[command(flatten)]
    pub(crate) limit: Limit,
}

/// A limit on the length of records, for every verb that reads them.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Limit {
    /// Payload bytes of a record, at most: a longer one is an error before memory is allocated for it [default: 2147483647]
    #[arg(long, value_name = "BYTES")]
    max_record: Option<u64>,
}

impl Limit {
    /// Options of a stream with this limit.
    pub(crate) fn stream(self) -> StreamOptions {
        self.max_record.map_or(StreamOptions::new(), |bytes| StreamOptions::new().max_record(bytes))
    }

    /// The same options of a dataset with this limit.
    pub(crate) fn dataset(self, options: DatasetOptions) -> DatasetOptions {
        match self.max_record {
            Some(bytes) => options.max_record(bytes),
            None => options,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Human,
    Json,
    ProtoJson,
    Raw,
    Tfrecord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    Auto,
    Example,
    Sequence,
    Raw,
}

/// How the bytes of shards are reached by number.
#[derive(Clone, Debug, Args)]
pub(crate) struct Access {
    /// Map the files, which nobody may write to or truncate meanwhile, or read at positions
    #[arg(long, value_name = "DOOR", default_value = "map")]
    pub(crate) io: Door,
    /// A folder for index files, looked into and written to first
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    /// Threads that index what has no index yet; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) jobs: usize,
}

/// A number of threads that the library starts.
fn threads(text: &str) -> Result<usize, String> {
    let n = text.parse().map_err(|e: ParseIntError| e.to_string())?;
    tfseek::threads(n).map(|_| n).map_err(|e| e.to_string())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Door {
    Map,
    Pread,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Jobs {
    /// Threads; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) jobs: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the dataset in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Seed of the observations
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Scan again, whatever indexes there are
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Check payloads too, which reads all bytes
    #[arg(long)]
    pub(crate) check: bool,
    /// The form: tfseek's own, or DALI's and tfrecord2idx's text (`SHARD.idx`; with --index-dir there)
    #[arg(long, value_name = "FORM", default_value = "tfri")]
    pub(crate) format: IndexForm,
    /// Keep this feature's values too, for filters and class balance: one value a record, or none (repeat for more)
    #[arg(long, value_name = "FEATURE", conflicts_with = "format")]
    pub(crate) column: Vec<String>,
    /// List the records of each distinct value in column files
    #[arg(long, requires = "column")]
    pub(crate) classes: bool,
    /// With --format dali: only records that meet this, as 'label in 3, 5..9 and present(name)'
    #[arg(long, value_name = "EXPR", requires = "format", conflicts_with = "pack")]
    pub(crate) filter: Option<String>,
    /// One file for all shards: `.tfseek/NAME.tfrp` in their common folder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["format", "index_dir"])]
    pub(crate) pack: Option<String>,
    /// Write here instead of beside the data
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limit: Limit,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IndexForm {
    Tfri,
    Dali,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) kind: KindArg,
    /// One JSON object a file; `error` says what is wrong with it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Head {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Records of each file
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub(crate) n: u64,
    /// Records to leave out first, of each file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    #[command(flatten)]
    pub(crate) print: Print,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Records of each file
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub(crate) n: u64,
    #[command(flatten)]
    pub(crate) print: Print,
}

#[derive(Debug, Args)]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Records to leave out first, of each file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    #[command(flatten)]
    pub(crate) print: Print,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Files, patterns or sets, then numbers: `7`, `-1` for the last, `10..20`, `10..`, `..10`
    #[arg(required = true, value_name = "PATHS.. RECORDS", allow_negative_numbers = true)]
    pub(crate) words: Vec<OsString>,
    /// Go on where shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
    #[command(flatten)]
    pub(crate) print: Print,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct Sample {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Records to draw
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub(crate) n: u64,
    /// The same seed draws the same records
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) print: Print,
    #[command(flatten)]
    pub(crate) access: Access,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Records to look at, spread over the files: of each its first
    #[arg(short = 'n', long = "sample", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: u64,
    /// Look at all records
    #[arg(long, conflicts_with = "sample")]
    pub(crate) all: bool,
    /// Print the schema as JSON, which `tfseek parse --schema` takes
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print it as Python code for TensorFlow
    #[arg(long, group = "form")]
    pub(crate) tf: bool,
    /// Print it as Rust code for the crate tfseek
    #[arg(long, group = "form")]
    pub(crate) rust: bool,
    #[command(flatten)]
    pub(crate) kind: KindArg,
}

#[derive(Debug, Args)]
pub(crate) struct Parse {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) limit: Limit,
    /// The schema, as `tfseek schema --json` prints one
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Records of a batch; the last one may have fewer
    #[arg(short, long, value_name = "N", default_value = "128")]
    pub(crate) batch_size: NonZeroUsize,
    /// Each record by itself, without the dimension of the batch
    #[arg(long, conflicts_with = "batch_size")]
    pub(crate) single: bool,
    /// Records to leave out first, of all files together
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Records to parse, of all files together
    #[arg(short, value_name = "N")]
    pub(crate) n: Option<u64>,
    /// Write a NumPy archive, and not JSON lines to standard output
    #[arg(short, long, value_name = "OUT.npz")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Digest {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) kind: KindArg,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Decode payloads too: as what each file's first records look like, or as --kind says
    #[arg(long)]
    pub(crate) decode: bool,
    #[command(flatten)]
    pub(crate) kind: KindArg,
    /// One JSON object a file; `index` and `record` are the numbers of the record at fault, over all files and in this one
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Debug, Args)]
pub(crate) struct Unpack {
    #[command(flatten)]
    pub(crate) paths: Paths,
    #[command(flatten)]
    pub(crate) limit: Limit,
    /// The file to write, or a folder for several; else beside each, without its .gz or .zz
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    pub(crate) shell: Shell,
}

/// A seed, negative ones too.
fn seed(text: &str) -> Result<u64, String> {
    let outside = || format!("a seed is a number from -2^63 to 2^64 - 1, found {text}");
    let number = text.parse().map_err(|_| outside())?;
    tfseek::order::seed_of(number).map_err(|_| outside())
}
