//! Arguments of the command. Their doc comments are the help texts.

mod convert;
mod count;
mod epoch;
mod reshard;
#[cfg(feature = "view")]
mod view;
mod words;

pub(crate) use convert::{ConvertArgs, JsonFormChoice};
pub(crate) use count::{HeadCount, TailCount};
pub(crate) use epoch::{EpochArgs, OrderArgs, ShareArgs};
pub(crate) use reshard::ReshardArgs;
#[cfg(feature = "view")]
pub(crate) use view::ViewArgs;
pub(crate) use words::{prepare, unmarked};

use crate::exit::{Failure, Outcome};
use crate::kept;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::num::{NonZeroUsize, ParseIntError};
use std::path::PathBuf;
use tfseek::follow::FollowOptions;
use tfseek::index::IndexOptions;
use tfseek::stream::StreamOptions;
use tfseek::{Damage, DatasetOptions, Filter, Tail};

/// Random access to the TFRecord files you already have.
#[derive(Debug, Parser)]
#[command(name = "tfseek", version, propagate_version = true, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const AFTER: &str = "\
PATHS are files, folders, quoted patterns ('train-*.tfrecord', 'x-{00000..00009}') or sets \
('train@10.tfrecord'). `-` is standard input, for the verbs that read in file order: head, tail, cat, sample, grep, schema, \
stats, parse, digest, verify, validate, info, unpack. Only local files are read, not gs:// or s3:// addresses.

Exit status: 0 success, 1 a problem in the data, 2 a usage error, 3 an I/O error, 4 not a TFRecord file.";

/// Options of every verb.
#[derive(Clone, Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Use colours; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "MODE", default_value = "auto", help_heading = "Global options")]
    pub(crate) color: ColorChoice,
    /// Print only errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) progress: bool,
    /// Print sizes as exact numbers of bytes
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
    /// Make a small dataset and demonstrate tfseek on it
    Demo(DemoArgs),
    /// Build a small index file per shard, by default in `.tfseek/` next to the shards
    Index(IndexArgs),
    /// Show records, bytes, compression, index and features of files
    Info(InfoArgs),
    /// Print the first records of each file
    Head(HeadArgs),
    /// Print the last records of each file
    Tail(TailArgs),
    /// Print all records
    Cat(CatArgs),
    /// Print records by number, counted over all files
    Get(GetArgs),
    /// Print records drawn at random, without replacement; compressed files and standard input are read once, in order
    Sample(SampleArgs),
    /// Print the records that meet a condition or contain a text; exit status 1 if there is none
    Grep(GrepArgs),
    /// Show the features of the records and infer a schema that parses them
    Schema(SchemaArgs),
    /// Print statistics of the features: presence, values, quantiles, distinct values; one pass over all records
    Stats(StatsArgs),
    /// Parse records into arrays by a schema, as TensorFlow's parsers do; print them or write an .npz file
    Parse(ParseArgs),
    /// Run through an epoch as a training loop does, and report time, throughput, stalls and memory
    #[command(after_help = epoch::AFTER_EPOCH)]
    Epoch(EpochArgs),
    /// Print the records of a step of an epoch, or the steps that contain a record; only the index is read
    Order(OrderArgs),
    /// Print a digest of each record's content; equal content has equal digests, whatever its encoding
    Digest(DigestArgs),
    /// Verify all checksums, name each damaged file and list its damaged ranges
    Verify(VerifyArgs),
    /// Compare records with a schema; print each anomaly and the first records that have it
    Validate(ValidateArgs),
    /// Write a dataset again: in other shards, shuffled, sorted, split into parts, or with fewer features
    #[command(after_help = reshard::AFTER_RESHARD)]
    Reshard(ReshardArgs),
    /// Copy the sound records of a damaged file to a new one
    Salvage(SalvageArgs),
    /// Convert TFRecords to another format, or files of another format to TFRecords: JSON lines, Parquet, Arrow, and payloads that follow their length
    #[command(after_help = convert::AFTER_CONVERT, override_usage = "tfseek convert [OPTIONS] <IN>... <OUT>")]
    Convert(ConvertArgs),
    /// Decompress gzip and zlib files to plain TFRecord files, which allow random access
    Unpack(UnpackArgs),
    /// Show the records in the browser: a grid, a table, each record, statistics, searches
    #[cfg(feature = "view")]
    #[command(after_help = view::AFTER_VIEW, mut_arg("damage", |arg| arg.default_value("skip")))]
    View(ViewArgs),
    /// Print a shell script that completes the arguments of this command
    Completions(CompletionsArgs),
}

/// Input files of a verb.
#[derive(Debug, Args)]
pub(crate) struct PathsArgs {
    /// Files, folders, patterns or sets
    #[arg(required = true, value_name = "PATHS")]
    pub(crate) paths: Vec<PathBuf>,
    /// Continue if shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
}

/// Options of the verbs that print records.
#[derive(Clone, Debug, Args)]
pub(crate) struct PrintArgs {
    /// Output format; `human`: readable text, `json`: one object per line (`index` is the record's number over all files, as
    /// `get` takes it, or null if it is not known; `record` is its number in the file), `proto-json`: protobuf's JSON mapping,
    /// `raw`: payloads, `arrow`: an Arrow IPC stream, of `cat` only, `tfrecord`: records with framing (`tfseek sample -n 100 -f tfrecord x > small.tfrecord`)
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RecordFormat,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    /// Print only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable). For the formats
    /// `human`, `json` and `proto-json`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Print all values completely
    #[arg(long)]
    pub(crate) full: bool,
}

/// Condition of the records that a verb prints.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WhereArgs {
    /// Only records that meet this condition, for example 'label in 3, 5..9 and any(scores) > 0.5'; options that count records
    /// count these. docs/filters.md has the grammar
    #[arg(long = "where", value_name = "EXPR", value_parser = filter)]
    pub(crate) condition: Option<Filter>,
}

/// Kind of the payloads, and options for reading them.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PayloadArgs {
    /// Message type of the payloads; `auto`: guessed from the first records of each file, `bytes`: none
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(crate) kind: PayloadKind,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Kind of the payloads, for the verbs that report on damage and have no option for it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct InspectArgs {
    /// Message type of the payloads; `auto`: guessed from the first records of each file, `bytes`: none
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(crate) kind: PayloadKind,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
}

impl InspectArgs {
    /// Returns the options for reading, where damage is an error.
    pub(crate) fn payload(self) -> PayloadArgs {
        PayloadArgs { kind: self.kind, read: self.limit.into() }
    }
}

/// Options for reading records, for every verb that needs the records themselves.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    /// Treatment of damaged records, and of payloads that are not the message that is read; `raise`: an error, `skip`: they are left
    /// out, and the exit status is 1
    #[arg(long, value_name = "MODE", default_value = "raise")]
    damage: DamageChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamageChoice {
    #[default]
    Raise,
    Skip,
}

impl From<LimitArgs> for ReadArgs {
    fn from(limit: LimitArgs) -> ReadArgs {
        ReadArgs { limit, damage: DamageChoice::Raise }
    }
}

impl ReadArgs {
    /// Returns the treatment of damage.
    pub(crate) fn damage(self) -> Damage {
        if self.skips() { Damage::Skip } else { Damage::Raise }
    }

    /// Returns true for `--damage skip`.
    pub(crate) fn skips(self) -> bool {
        self.damage == DamageChoice::Skip
    }

    /// Returns the options of a stream.
    pub(crate) fn stream(self) -> StreamOptions {
        self.limit.stream().damage(self.damage())
    }

    /// Returns the options of indexes.
    pub(crate) fn index(self) -> IndexOptions {
        self.limit.index().damage(self.damage())
    }

    /// Returns the options of a dataset with these options of its indexes.
    pub(crate) fn dataset(self, index: IndexOptions) -> DatasetOptions {
        self.limit.dataset(index.damage(self.damage()))
    }
}

/// Limit on the length of records, and treatment of the end of a file.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LimitArgs {
    /// Maximum payload length of a record in bytes; a longer record is refused before memory is allocated for it [default:
    /// 2147483647]
    #[arg(long, value_name = "BYTES")]
    max_record: Option<u64>,
    /// Treatment of a file that ends inside a record, or of a gzip or zlib file with a cut trailer or other bytes after its end; `strict`:
    /// an error, `tolerate`: the file ends after its last whole record
    #[arg(long, value_name = "MODE", default_value = "strict")]
    tail: TailChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailChoice {
    #[default]
    Strict,
    Tolerate,
}

impl From<TailChoice> for Tail {
    fn from(choice: TailChoice) -> Tail {
        match choice {
            TailChoice::Strict => Tail::Strict,
            TailChoice::Tolerate => Tail::Tolerate,
        }
    }
}

impl LimitArgs {
    /// Returns the maximum payload length of a record.
    pub(crate) fn max_record(self) -> u64 {
        self.max_record.unwrap_or(tfseek_tools::damage::MAX_RECORD)
    }

    /// Returns the maximum payload length, if the user specified it.
    #[cfg(feature = "view")]
    pub(crate) fn given_max_record(self) -> Option<u64> {
        self.max_record
    }

    /// Returns the options of a stream.
    pub(crate) fn stream(self) -> StreamOptions {
        let options = StreamOptions::new().tail(self.tail.into()).on_warning(kept::of_stream);
        match self.max_record {
            Some(bytes) => options.max_record(bytes),
            None => options,
        }
    }

    /// Returns the options for files that are followed.
    pub(crate) fn follow(self) -> FollowOptions {
        let options = FollowOptions::new();
        match self.max_record {
            Some(bytes) => options.max_record(bytes),
            None => options,
        }
    }

    /// Returns true if a file may end inside a record.
    pub(crate) fn tolerates(self) -> bool {
        self.tail == TailChoice::Tolerate
    }

    /// Returns the options of indexes.
    pub(crate) fn index(self) -> IndexOptions {
        IndexOptions::new().tail(self.tail.into())
    }

    /// Returns the options of a dataset with these options of its indexes.
    pub(crate) fn dataset(self, index: IndexOptions) -> DatasetOptions {
        let options = DatasetOptions::new().index(index.tail(self.tail.into()));
        match self.max_record {
            Some(bytes) => options.max_record(bytes),
            None => options,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    Human,
    Json,
    ProtoJson,
    Raw,
    Tfrecord,
    /// An Arrow IPC stream, of `cat` only.
    #[cfg(feature = "tables")]
    Arrow,
    /// `cat --bare`.
    #[value(skip)]
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PayloadKind {
    Auto,
    Example,
    #[value(name = "sequence-example", aliases = ["sequence_example", "sequence"])]
    Sequence,
    #[value(name = "bytes", alias = "raw")]
    Raw,
}

/// Options of the verbs that access records by number.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessArgs {
    /// Access to the files; `map`: memory maps, `pread`: reads at offsets. No process may overwrite or truncate a mapped file
    #[arg(long, value_name = "MODE", default_value = "map")]
    pub(crate) io: IoMode,
    /// Folder for index files: searched first, and new index files are written to it
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rest: RestArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// Destination of damaged bytes, for the verbs that use indexes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RestArgs {
    /// With --damage skip: write the damaged bytes of each file to `DIR/FILE.rest`
    #[arg(long, value_name = "DIR")]
    rest: Option<PathBuf>,
}

impl RestArgs {
    /// Returns true if damaged bytes are written.
    pub(crate) fn is_given(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns the options of indexes with this destination.
    ///
    /// # Errors
    /// `--rest` without `--damage skip`.
    pub(crate) fn index(&self, read: ReadArgs) -> Outcome<IndexOptions> {
        match &self.rest {
            None => Ok(read.index()),
            Some(dir) if read.skips() => Ok(read.index().rest(dir)),
            Some(_) => Err(Failure::usage("--rest requires --damage skip")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoMode {
    Map,
    Pread,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JobsArgs {
    /// Number of threads that scan files; 0: one per processor
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) jobs: usize,
}

/// Parses a number of threads that the library may start.
fn threads(text: &str) -> Result<usize, String> {
    let n = text.parse().map_err(|e: ParseIntError| e.to_string())?;
    tfseek::threads(n).map(|_| n).map_err(|e| e.to_string())
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the dataset in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Random seed; the same seed gives the same records in the same order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Scan all shards again and replace existing index files
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Also verify payload checksums, which reads all bytes
    #[arg(long)]
    pub(crate) check: bool,
    /// Index format; `tfri`: tfseek's own, `dali`: the text format of DALI and tfrecord2idx (`SHARD.idx` next to the shard, or
    /// in --index-dir)
    #[arg(long, value_name = "FORMAT", default_value = "tfri")]
    pub(crate) format: IndexFormat,
    /// Also store the values of this feature, for filters and class balance: at most one value per record (repeatable)
    #[arg(long, value_name = "FEATURE", conflicts_with = "format")]
    pub(crate) column: Vec<String>,
    /// With --column: also list the records of each distinct value
    #[arg(long, requires = "column")]
    pub(crate) classes: bool,
    /// With --format dali: only records that meet this condition, for example 'label in 3, 5..9 and present(name)'
    #[arg(long, value_name = "EXPR", requires = "format", conflicts_with = "pack")]
    pub(crate) filter: Option<String>,
    /// Write one file for all shards: `.tfseek/NAME.tfrp` in their common folder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["format", "index_dir"])]
    pub(crate) pack: Option<String>,
    /// Decompressed bytes between two checkpoints of a compressed file: fewer make random access faster and the index larger
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, conflicts_with_all = ["format", "pack"])]
    pub(crate) checkpoint_every: u64,
    /// Folder for index files: searched first, and new index files are written to it
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) rest: RestArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IndexFormat {
    Tfri,
    Dali,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
    /// Print one JSON object per file; `error` is the problem with the file, or null
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to print, per file; `-N`: all but the last N. `-5` is short for `-n 5`
    #[arg(short, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = count::head)]
    pub(crate) n: HeadCount,
    /// Number of records to skip first, per file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to print, per file; `+N`: from the Nth record on. `-5` is short for `-n 5`
    #[arg(short, value_name = "N", default_value = "10", allow_hyphen_values = true, value_parser = count::tail)]
    pub(crate) n: TailCount,
    /// Print new records until interrupted, as the last file is written, and then those of later files of the pattern. N counts
    /// in the last file; `+N`: in the first file, whose later records and files are all printed
    #[arg(short = 'F', long)]
    pub(crate) follow: bool,
    /// With --follow: save the position here once per second, and continue at the saved position
    #[arg(long, value_name = "FILE", requires = "follow")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to skip first, per file
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Print payloads that each follow their length as a varint, without framing and checksums, as protobuf's streams of messages
    #[arg(long, conflicts_with_all = ["format", "features"])]
    pub(crate) bare: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Files, folders, patterns or sets, then record numbers: `7`, `-1` for the last, `3,7`, `10:20` or `10..20` (20 excluded),
    /// `10:`, `:10`
    #[arg(required = true, value_name = "PATHS.. RECORDS", allow_negative_numbers = true)]
    pub(crate) words: Vec<OsString>,
    /// Continue if shards of a set are missing
    #[arg(long)]
    pub(crate) allow_missing: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to draw, over all files
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub(crate) n: u64,
    /// Random seed; the same seed gives the same records in the same order
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GrepArgs {
    /// Condition, for example 'label == 7 and len(objects) > 20' (docs/filters.md has the grammar), or a text with -F
    #[arg(value_name = "EXPR")]
    pub(crate) expr: String,
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// EXPR is a text: find records with a value of a bytes feature, also in feature lists, that contains it
    #[arg(short = 'F', long)]
    pub(crate) text: bool,
    /// Find the records that do not match
    #[arg(short = 'v', long)]
    pub(crate) invert: bool,
    /// Print the number of matching records only
    #[arg(short, long, group = "what")]
    pub(crate) count: bool,
    /// Print the paths of files with a matching record only
    #[arg(short = 'l', long, group = "what")]
    pub(crate) shards: bool,
    /// Print the numbers of matching records only, one per line, as `get` takes them
    #[arg(long, group = "what")]
    pub(crate) ids: bool,
    /// With `-f raw`: print the number of a record before it (`7:`), and a line end after it; `human` and `json` have the number
    /// anyway
    #[arg(short, long)]
    pub(crate) number: bool,
    /// Stop after this number of matches, over all files
    #[arg(short = 'm', long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// With --count: print one JSON object per file, with the numbers of its records, matches and skipped records. `-f json`
    /// prints the records as JSON
    #[arg(long, requires = "count")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Number of records to read: the first records of each file, spread over the files
    #[arg(short = 'n', long = "sample", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: u64,
    /// Read all records
    #[arg(long, conflicts_with = "sample")]
    pub(crate) all: bool,
    /// Print the schema as JSON, for `tfseek parse --schema`
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print the schema as Python code for TensorFlow
    #[arg(long, group = "form")]
    pub(crate) tf: bool,
    /// Print the schema as schema.pbtxt, for TensorFlow Data Validation and `tfseek validate`
    #[arg(long, group = "form")]
    pub(crate) tfdv: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    /// Only records that meet this condition, for example 'label in 3, 5..9'; docs/filters.md has the grammar
    #[arg(long = "where", value_name = "EXPR", value_parser = filter, conflicts_with_all = ["sample", "merge"])]
    pub(crate) condition: Option<Filter>,
    /// Only the features of these names: `label,image/*` (`*` and `?` are wildcards; repeatable)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Also print the statistics of each slice: the records with one value of this feature, which has at most 1000 values
    #[arg(long, value_name = "FEATURE")]
    pub(crate) by: Option<String>,
    /// Read only N records, drawn at random over all files, which are read by number
    #[arg(long, value_name = "N", conflicts_with = "merge")]
    pub(crate) sample: Option<u64>,
    /// Random seed of the sample
    #[arg(long, value_name = "S", default_value_t = 0, allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,
    /// Limit on the memory of the statistics: bytes, or `256MB`. Beyond it values are not counted exactly any more
    #[arg(long, value_name = "BYTES", value_parser = tfseek_tools::sizes::parse)]
    pub(crate) memory: Option<u64>,
    /// Print the statistics as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Save the statistics in a file, for --merge
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Read statistics that --save wrote, and merge them: PATHS are their files
    #[arg(long, conflicts_with_all = ["features", "by"])]
    pub(crate) merge: bool,
    /// Write the statistics for TensorFlow Data Validation, TFX and Facets: a `DatasetFeatureStatisticsList`, in one record if the name ends
    /// in .tfrecord
    #[arg(long, value_name = "FILE")]
    pub(crate) tfdv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Schema file, as `tfseek schema --json` prints it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Number of records per batch; the last batch may have fewer. With --out it has no effect, except with --batches
    #[arg(short, long, value_name = "N", default_value = "128")]
    pub(crate) batch_size: NonZeroUsize,
    /// Parse each record separately, without the batch dimension
    #[arg(long, conflicts_with = "batch_size")]
    pub(crate) single: bool,
    /// Number of records to skip first, over all files
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Number of records to parse, over all files [default: all]
    #[arg(short, value_name = "N")]
    pub(crate) n: Option<u64>,
    /// Write a NumPy archive instead of JSON lines to standard output, with one array per feature over all records
    #[arg(short, long, value_name = "OUT.npz")]
    pub(crate) out: Option<PathBuf>,
    /// With --out: write the arrays of each batch (`b0::NAME`, `b1::NAME`, ..) or, with --single, of each record
    #[arg(long, requires = "out")]
    pub(crate) batches: bool,
    /// Replace existing files
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DigestArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Also decode the payloads, as the message type of --kind
    #[arg(long)]
    pub(crate) decode: bool,
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,
    /// Print one JSON object per file; `index` and `record` are the numbers of the faulty record, over all files and in the
    /// file, and `gaps` are the damaged ranges
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Schema: JSON as `tfseek schema --json` prints it, or a schema.pbtxt of TFX
    #[arg(short, long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Environment whose features are required, such as `serving` [default: all features]
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Earlier records to compare with, for drift and skew comparators; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) baseline: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// Damaged file, which is only read: plain, gzip or zlib
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// New file for the sound records, uncompressed
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Also write the bytes of the damaged ranges to this file; those of a compressed file are inflated
    #[arg(long, value_name = "FILE")]
    pub(crate) rest: Option<PathBuf>,
    /// Maximum payload length of a record in bytes; a longer record counts as damage [default: 2147483647]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_record: Option<u64>,
    /// Output format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: SalvageFormat,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SalvageFormat {
    Human,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct UnpackArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Output file, or output folder for several files, where names without a TFRecord extension get `.tfrecord` [default: next to
    /// each input, without .gz or .zz]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    pub(crate) shell: Shell,
}

/// Parses a condition. The error shows where it is wrong.
fn filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|e| crate::exit::message(&e))
}

/// Parses a seed, which may be negative.
fn seed(text: &str) -> Result<u64, String> {
    let outside = || format!("seed: expected a number from -2^63 to 2^64 - 1, found {text}");
    let number = text.parse().map_err(|_| outside())?;
    tfseek::order::seed_of(number).map_err(|_| outside())
}
