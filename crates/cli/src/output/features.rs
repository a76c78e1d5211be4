//! The features that `--features` selects.

use crate::args::{PayloadKind, PrintArgs, RecordFormat};
use crate::bytes::Key;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::text;
use clap::ValueEnum;
use std::cell::RefCell;
use tfseek_tools::{Content, FeatureSelection};

/// The features to print.
pub(super) struct PrintedFeatures(RefCell<FeatureSelection>);

impl PrintedFeatures {
    /// Returns the patterns of the arguments, if there are any. Formats of payloads have no features to
    /// select.
    pub(super) fn new(args: &PrintArgs) -> Outcome<Option<PrintedFeatures>> {
        if args.features.is_empty() {
            return Ok(None);
        }
        if matches!(args.format, RecordFormat::Raw | RecordFormat::Tfrecord) {
            let format = args.format.to_possible_value();
            let format = format.as_ref().map_or("", |value| value.get_name());
            return Err(Failure::usage(format!(
                "--features: expected the format human, json or proto-json, found {format}, which prints whole payloads"
            )));
        }
        if args.payload.kind == PayloadKind::Raw {
            return Err(Failure::usage("--features: expected records with features, found --kind bytes"));
        }
        Ok(Some(PrintedFeatures(RefCell::new(FeatureSelection::new(&args.features)))))
    }

    /// Removes the other features of a record.
    pub(super) fn select(&self, content: &mut Content<'_>) {
        self.0.borrow_mut().select(content);
    }

    /// Prints a message for each name that no printed record has. A pattern with wildcards may match nothing.
    pub(super) fn report_missing(&self, console: &mut Console) {
        let is_name = |pattern: &str| !pattern.contains(['*', '?']);
        for (name, near) in self.0.borrow().unmatched().filter(|(pattern, _)| is_name(pattern)) {
            let near = text::nearest(near);
            console.note(format_args!(
                "tfseek: --features: no printed record has the feature {}{near}",
                Key(name)
            ));
        }
    }
}
