//! Arguments that several verbs have. Their doc comments are the help texts.

mod count;
mod share;
mod words;

pub(crate) use count::{HeadCount, TailCount, head_count, tail_count};
pub(crate) use share::{LastBatchChoice, ShareArgs, ShuffleChoice};
pub(crate) use words::{MARK, unmarked};

use crate::kept;
use crate::store;
use clap::{Args, ColorChoice, ValueEnum};
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;
use tfseek::follow::FollowOptions;
use tfseek::index::IndexOptions;
use tfseek::stream::StreamOptions;
use tfseek::{Damage, DatasetOptions, Filter, Tail, Verify};
use tfseek_tools::sizes;

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

/// Input files of a verb.
#[derive(Clone, Debug, Args)]
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
    /// Output format; `human`: readable text, `json`: one object per line (`index` is the record's number
    /// over all files, as `get` takes it, or null if it is not known; `record` is its number in the file),
    /// `proto-json`: protobuf's JSON mapping, `raw`: payloads, `arrow`: an Arrow IPC stream, of `cat` only,
    /// `tfrecord`: records with framing (`tfseek sample -n 100 -f tfrecord x > small.tfrecord`)
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RecordFormat,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    /// Print only the features of these names: `label,image/*` (`*` and `?` are wildcards, also for a comma
    /// in a name; repeatable). For the formats `human`, `json` and `proto-json`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Print all values completely
    #[arg(long)]
    pub(crate) full: bool,
}

impl PrintArgs {
    /// Returns the options of the payloads. Those that are printed as bytes, without a condition, need no
    /// guess of their kind, which reads the first records.
    pub(crate) fn payload_of(&self, select: &WhereArgs) -> PayloadArgs {
        let is_bytes = matches!(self.format, RecordFormat::Raw | RecordFormat::Tfrecord | RecordFormat::Bare);
        if is_bytes && select.condition.is_none() && self.payload.kind == PayloadKind::Auto {
            return PayloadArgs { kind: PayloadKind::Raw, ..self.payload };
        }
        self.payload
    }
}

/// Condition of the records that a verb prints.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WhereArgs {
    /// Only records that meet this condition, for example 'label in 3, 5..9 and any(scores) > 0.5'; options
    /// that count records count these. `tfseek help grep` has the grammar
    #[arg(long = "where", value_name = "EXPR", value_parser = filter)]
    pub(crate) condition: Option<Filter>,
}

/// Steps of episodes in place of records.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StepsArgs {
    /// Print the steps of episodes as records of their own, of data sets with a features.json (RLDS); options
    /// that count records count steps. FEATURE names the feature with the steps, if there are several
    // The name follows an equals sign, so that the path after it stays a path.
    #[arg(long, value_name = "FEATURE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    steps: Option<String>,
}

impl StepsArgs {
    /// Returns true if steps are requested.
    pub(crate) fn is_set(&self) -> bool {
        self.steps.is_some()
    }

    /// Returns the feature with the steps, if the user named it.
    pub(crate) fn feature(&self) -> Option<&str> {
        named_feature(self.steps.as_deref())
    }
}

/// Returns the value of an option `--steps`, if it has one.
pub(crate) fn named_feature(steps: Option<&str>) -> Option<&str> {
    steps.filter(|name| !name.is_empty())
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
    /// Treatment of damaged records, and of payloads that are not the message that is read; `raise`: an
    /// error, `skip`: they are left out, and the exit status is 1
    #[arg(long, value_name = "MODE", default_value = "raise")]
    damage: DamageChoice,
    /// Checksums to verify; `payload`: all, `header`: those of lengths, `first-epoch`: of `epoch` payloads in
    /// epoch 0 and lengths later, `none`: none, for the files of a writer whose checksums are wrong. Damage
    /// is then not noticed, and no index file is read or written
    #[arg(long, value_name = "MODE", default_value = "payload")]
    pub(crate) verify: VerifyChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    Header,
    #[default]
    Payload,
    #[value(alias = "first_epoch")]
    FirstEpoch,
    None,
}

impl VerifyChoice {
    /// Returns the checksums of epoch 0, which all verbs but `epoch` use, and of later epochs.
    pub(crate) fn of_epochs(self) -> (Verify, Verify) {
        match self {
            VerifyChoice::Header => (Verify::Header, Verify::Header),
            VerifyChoice::Payload => (Verify::Payload, Verify::Payload),
            VerifyChoice::FirstEpoch => (Verify::Payload, Verify::Header),
            VerifyChoice::None => (Verify::None, Verify::None),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamageChoice {
    #[default]
    Raise,
    Skip,
}

impl From<LimitArgs> for ReadArgs {
    fn from(limit: LimitArgs) -> ReadArgs {
        ReadArgs { limit, ..ReadArgs::default() }
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
        let (verify, _) = self.verify.of_epochs();
        StreamOptions { verify, damage: self.damage(), ..self.limit.stream() }
    }

    /// Returns the options for files that are followed.
    pub(crate) fn follow(self) -> FollowOptions {
        let default = FollowOptions::default();
        let (verify, _) = self.verify.of_epochs();
        FollowOptions { verify, max_record: self.limit.max_record.unwrap_or(default.max_record), ..default }
    }

    /// Returns the options of indexes.
    pub(crate) fn index(self) -> IndexOptions {
        self.limit.index().damage(self.damage())
    }

    /// Returns the options of a dataset with these options of its indexes.
    pub(crate) fn dataset(self, index: IndexOptions) -> DatasetOptions {
        let (verify, _) = self.verify.of_epochs();
        self.limit.dataset(index.damage(self.damage())).verify(verify)
    }
}

/// Limit on the length of records, and treatment of the end of a file.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LimitArgs {
    /// Maximum payload length of a record, for example 4GiB; a longer record is refused before memory is
    /// allocated for it [default: 2147483647]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    pub(crate) max_record: Option<u64>,
    /// Treatment of a file that ends inside a record, or of a gzip or zlib file with a cut trailer or other
    /// bytes after its end; `strict`: an error, `tolerate`: the file ends after its last whole record
    #[arg(long, value_name = "MODE", default_value = "strict")]
    tail: TailChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailChoice {
    #[default]
    Strict,
    Tolerate,
}

impl LimitArgs {
    /// Returns the maximum payload length of a record.
    pub(crate) fn max_record(self) -> u64 {
        self.max_record.unwrap_or(tfseek_tools::damage::MAX_RECORD)
    }

    /// Returns the options of a stream.
    pub(crate) fn stream(self) -> StreamOptions {
        let default = StreamOptions::default();
        let max_record = self.max_record.unwrap_or(default.max_record);
        StreamOptions {
            tail: self.tail(),
            on_warning: Some(kept::of_stream),
            max_record,
            store: store::store(),
            ..default
        }
    }

    fn tail(self) -> Tail {
        if self.tolerates() { Tail::Tolerate } else { Tail::Strict }
    }

    /// Returns true if a file may end inside a record.
    pub(crate) fn tolerates(self) -> bool {
        self.tail == TailChoice::Tolerate
    }

    /// Returns the options of indexes.
    pub(crate) fn index(self) -> IndexOptions {
        let options = IndexOptions::new().tail(self.tail());
        match store::store() {
            Some(store) => options.store(store),
            None => options,
        }
    }

    /// Returns the options of a dataset with these options of its indexes.
    pub(crate) fn dataset(self, index: IndexOptions) -> DatasetOptions {
        let options = DatasetOptions::new().index(index.tail(self.tail()));
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
    /// Access to the files; `map`: memory maps, `pread`: reads at offsets. No process may overwrite or
    /// truncate a mapped file
    #[arg(long, value_name = "MODE", default_value = "map")]
    pub(crate) io: IoMode,
    /// Folder for index files: searched first, and new index files are written to it
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoMode {
    Map,
    Pread,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ThreadsArgs {
    /// Number of threads; 0: the main thread does all work [default: one per processor]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

/// Returns the name of a value on the command line.
pub(crate) fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Parses a number of threads that the library may start.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    let n = text.parse().map_err(|e: ParseIntError| e.to_string())?;
    tfseek::threads(Some(n)).map(|_| n).map_err(|e| e.to_string())
}

/// Parses a condition. The error shows where it is wrong.
pub(crate) fn filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|e| crate::exit::message(&e))
}

/// Parses a number of at least 1.
pub(crate) fn positive<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// Parses a seed, which may be negative.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let outside = || format!("seed: expected a number from -2^63 to 2^64 - 1, found {text}");
    let number = text.parse().map_err(|_| outside())?;
    tfseek::order::seed_of(number).map_err(|_| outside())
}
