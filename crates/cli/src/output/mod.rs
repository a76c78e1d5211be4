//! Records on stdout: for people, as JSON, as protobuf's JSON, or as they are.

pub(crate) mod arrays;
pub(crate) mod epoch;
mod human;
mod json;
mod proto_json;

use crate::args::{Format, Global};
use crate::bytes::Shown;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use std::io::Write;
use std::path::Path;
use tfseek::Record;
use tfseek::example::MessageKind;
use tfseek_tools::Content;

/// A record, which knows its number in its file; its number over all files, and what its file is taken for.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) record: Record<'a>,
    /// The number over all files, which `get` takes, if it is known.
    pub(crate) index: Option<u64>,
    pub(crate) kind: MessageKind,
    /// The user named the kind: a payload of another one is then an error.
    pub(crate) strict: bool,
}

impl<'a> Item<'a> {
    /// Decodes the payload as what it is taken for.
    pub(crate) fn content(&self) -> tfseek::Result<Content<'a>> {
        let decoded = match self.kind {
            MessageKind::Other => Ok(Content::Raw),
            MessageKind::Example => Content::example(self.record.example()),
            MessageKind::SequenceExample => Content::sequence(self.record.sequence_example()),
        };
        match decoded {
            Err(_) if !self.strict => Ok(Content::Raw),
            decoded => decoded,
        }
    }
}

/// Prints records in one format.
pub(crate) struct Printer {
    format: Format,
    full: bool,
    exact: bool,
    /// Several files: each record says which.
    many: bool,
}

impl Printer {
    pub(crate) fn new(format: Format, full: bool, global: &Global, many: bool) -> Printer {
        Printer { format, full, exact: global.bytes, many }
    }

    /// Announces a file, to people, if there are several.
    pub(crate) fn file(&self, console: &mut Console, path: &Path, first: bool) -> Outcome {
        if !self.many || self.format != Format::Human {
            return Ok(());
        }
        let bold = console.style(crate::console::BOLD);
        let gap = if first { "" } else { "\n" };
        console.print(format_args!("{gap}{bold}==> {} <=={bold:#}\n", path.display()))
    }

    /// Prints a record.
    pub(crate) fn record(&self, console: &mut Console, item: Item<'_>) -> Outcome {
        let payload = item.record.payload();
        match self.format {
            Format::Raw => console.out().write_all(payload).map_err(Failure::Stdout)?,
            Format::Tfrecord => tfseek::frame::put_record(console.out(), payload).map_err(Failure::Stdout)?,
            Format::Human => human::print(console, item, &item.content()?, self.shown(), self.many)?,
            Format::Json => {
                let file = item.record.at().path.filter(|_| self.many);
                json::print(console.out(), item, &item.content()?, file).map_err(Failure::Stdout)?;
            }
            Format::ProtoJson => {
                proto_json::print(console.out(), payload, &item.content()?).map_err(Failure::Stdout)?;
            }
        }
        console.settle()
    }

    fn shown(&self) -> human::Limits {
        let exact = self.exact;
        match self.full {
            true => {
                human::Limits { values: usize::MAX, one: Shown { text: usize::MAX, hex: usize::MAX, exact } }
            }
            false => human::Limits { values: 8, one: Shown { text: 72, hex: 16, exact } },
        }
    }
}
