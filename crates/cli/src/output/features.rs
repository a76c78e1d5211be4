//! The features that `--features` selects.

use crate::args::{PayloadKind, PrintArgs, RecordFormat};
use crate::bytes::Key;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use clap::ValueEnum;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tfseek_tools::Content;
use tfseek_tools::wildcards::matches;

/// Patterns of the names of features, and the names that no record has had so far.
pub(super) struct FeaturePatterns {
    patterns: Vec<String>,
    /// Patterns without wildcards that no record has had.
    missing: RefCell<Vec<String>>,
    /// At least one record was printed.
    printed: Cell<bool>,
}

impl FeaturePatterns {
    /// Returns the patterns of the arguments, if there are any. Formats of payloads have no features to select.
    pub(super) fn new(args: &PrintArgs) -> Outcome<Option<FeaturePatterns>> {
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
        let patterns = args.features.clone();
        let names = patterns.iter().filter(|pattern| !pattern.contains(['*', '?']));
        let missing = RefCell::new(names.cloned().collect());
        Ok(Some(FeaturePatterns { patterns, missing, printed: Cell::new(false) }))
    }

    /// Removes the other features of a record. A payload of another type has no features.
    pub(super) fn select(&self, content: &mut Content<'_>) {
        self.printed.set(true);
        match content {
            Content::Example(features) => self.select_in(features),
            Content::Sequence(context, lists) => {
                self.select_in(context);
                self.select_in(lists);
            }
            Content::Raw => *content = Content::Example(BTreeMap::new()),
        }
    }

    fn select_in<V>(&self, map: &mut BTreeMap<&str, V>) {
        self.missing.borrow_mut().retain(|name| !map.contains_key(name.as_str()));
        map.retain(|name, _| self.patterns.iter().any(|pattern| matches(pattern, name)));
    }

    /// Prints a message for each name that no printed record has.
    pub(super) fn report_missing(&self, console: &mut Console) {
        if self.printed.get() {
            for name in self.missing.borrow().iter() {
                console.note(format_args!(
                    "tfseek: --features: no printed record has the feature {}",
                    Key(name)
                ));
            }
        }
    }
}
