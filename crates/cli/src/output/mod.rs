//! Formats in which records are printed to standard output.

pub(crate) mod arrays;
pub(crate) mod epoch;
mod human;

use crate::args::{PayloadKind, PrintArgs, RecordFormat, value_name};
use crate::bytes::{ByteLimits, Key};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::text;
use human::LabelNames;
pub(crate) use human::shape;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use tfseek::Record;
use tfseek::example::MessageKind;
use tfseek_tfds::FoundFeatures;
use tfseek_tools::proto_json::ProtoJson;
use tfseek_tools::record_json::RecordJson;
use tfseek_tools::{Content, FeatureSelection, bare, proto_json};

/// A record with its number over all files, and the kind that its payload is decoded as.
#[derive(Clone, Copy)]
pub(crate) struct NumberedRecord<'a> {
    pub(crate) record: Record<'a>,
    /// The number over all files, as `get` takes it, if it is known.
    pub(crate) index: Option<u64>,
    pub(crate) kind: MessageKind,
    /// The user specified the kind, so a payload of another kind is an error.
    pub(crate) strict: bool,
    /// Set for a step of an episode, whose record is the episode's.
    pub(crate) step: Option<StepNumber>,
}

/// The numbers of a step.
#[derive(Clone, Copy)]
pub(crate) struct StepNumber {
    /// The number of its episode over all files, if it is known.
    pub(crate) episode: Option<u64>,
    /// Its number in the episode.
    pub(crate) step: u64,
}

impl<'a> NumberedRecord<'a> {
    /// Decodes the payload as a message of `kind`. If the kind was guessed, a payload that does not decode is
    /// returned as raw bytes.
    pub(crate) fn content(&self) -> tfseek::Result<Content<'a>> {
        Content::of_record(self.record, self.kind, self.strict)
    }
}

/// Prints records in one format.
pub(crate) struct Printer {
    format: RecordFormat,
    full: bool,
    /// The features to print. `None`: all.
    features: Option<RefCell<FeatureSelection>>,
    labels: LabelNames,
    /// There are several files, so each record is printed with its file.
    many_files: bool,
}

impl Printer {
    /// Creates the printer for one file. A usage error if the format has no features to select.
    pub(crate) fn new(args: &PrintArgs) -> Outcome<Printer> {
        #[cfg(feature = "tables")]
        if args.format == RecordFormat::Arrow {
            return Err(Failure::usage("-f arrow: expected the verb `cat`"));
        }
        Ok(Printer {
            format: args.format,
            full: args.full,
            features: selection(args)?.map(RefCell::new),
            labels: LabelNames::new(),
            many_files: false,
        })
    }

    /// Sets whether there are several files, and their features. The readable format names class labels.
    pub(crate) fn for_files(self, many_files: bool, features: &FoundFeatures) -> Printer {
        Printer { many_files, labels: features.label_names(), ..self }
    }

    /// Prints the heading of a file, in the readable format if there are several files.
    pub(crate) fn file(&self, console: &mut Console, path: &Path, first: bool) -> Outcome {
        if !self.many_files || self.format != RecordFormat::Human {
            return Ok(());
        }
        let bold = console.style(crate::console::BOLD);
        let gap = if first { "" } else { "\n" };
        console.print(format_args!("{gap}{bold}==> {} <=={bold:#}\n", tfseek::error::printable(path)))
    }

    /// Prints a record.
    pub(crate) fn record(&self, console: &mut Console, item: NumberedRecord<'_>) -> Outcome {
        let payload = item.record.payload();
        match self.format {
            RecordFormat::Raw => console.out().write_all(payload).map_err(Failure::Stdout)?,
            RecordFormat::Tfrecord => {
                tfseek::frame::put_record(console.out(), payload).map_err(Failure::Stdout)?
            }
            // No printer has this format.
            #[cfg(feature = "tables")]
            RecordFormat::Arrow => {}
            RecordFormat::Bare => bare::put(console.out(), payload).map_err(Failure::Stdout)?,
            RecordFormat::Human => {
                let limits = self.limits(console.global.bytes);
                human::print(console, item, &self.content(&item)?, (&self.labels, limits), self.many_files)?;
            }
            RecordFormat::Json => {
                let at = item.record.at();
                let content = self.content(&item)?;
                let file = at.path.filter(|_| self.many_files);
                let step = item.step.map(|step| (step.episode, step.step));
                let index = item.index;
                let line = RecordJson { file, index, record: at.record, step, payload, content: &content };
                serde_json::to_writer(console.out(), &line).map_err(|e| Failure::Stdout(e.into()))?;
                console.out().write_all(b"\n").map_err(Failure::Stdout)?;
            }
            RecordFormat::ProtoJson => {
                let content = self.content(&item)?;
                let record = ProtoJson { payload, content: &content };
                proto_json::print(console.out(), &record).map_err(Failure::Stdout)?;
            }
        }
        console.end_record()
    }

    /// Ends the output of a verb: names the requested features that no printed record has. A pattern with
    /// wildcards may match nothing.
    pub(crate) fn finish(&self, console: &mut Console) {
        let Some(features) = &self.features else { return };
        let is_name = |pattern: &str| !pattern.contains(['*', '?']);
        for (name, near) in features.borrow().unmatched().filter(|(pattern, _)| is_name(pattern)) {
            let near = text::nearest(near);
            console.note(format_args!(
                "tfseek: --features: no printed record has the feature {}{near}",
                Key(name)
            ));
        }
    }

    /// Decodes a record, without the features that are not printed.
    fn content<'a>(&self, item: &NumberedRecord<'a>) -> tfseek::Result<Content<'a>> {
        let mut content = item.content()?;
        if let Some(features) = &self.features {
            features.borrow_mut().select(&mut content);
        }
        Ok(content)
    }

    fn limits(&self, exact: bool) -> human::Limits {
        if self.full {
            let bytes = ByteLimits { text: usize::MAX, hex: usize::MAX, exact };
            human::Limits { values: usize::MAX, bytes }
        } else {
            human::Limits { values: 8, bytes: ByteLimits { text: 72, hex: 16, exact } }
        }
    }
}

/// Returns the features that `--features` selects. Formats of payloads have no features to select.
fn selection(args: &PrintArgs) -> Outcome<Option<FeatureSelection>> {
    if args.features.is_empty() {
        return Ok(None);
    }
    if matches!(args.format, RecordFormat::Raw | RecordFormat::Tfrecord) {
        let format = value_name(args.format);
        return Err(Failure::usage(format!(
            "--features: expected the format human, json or proto-json, found {format}, which prints whole payloads"
        )));
    }
    if args.payload.kind == PayloadKind::Raw {
        return Err(Failure::usage("--features: expected records with features, found --kind bytes"));
    }
    Ok(Some(FeatureSelection::new(&args.features)))
}
