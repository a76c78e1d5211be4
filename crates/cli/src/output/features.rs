//! The features that `--features` selects.

use crate::args::{PayloadKind, PrintArgs, RecordFormat};
use crate::bytes::Key;
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use crate::text;
use clap::ValueEnum;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use tfseek::filter::nearest;
use tfseek_tools::Content;
use tfseek_tools::wildcards::matches;

/// Largest number of names among which the nearest one is searched.
const MAX_SEEN: usize = 4096;

/// Patterns of the names of features, and the names that no record has had so far.
pub(super) struct FeaturePatterns {
    patterns: Vec<String>,
    /// Patterns without wildcards that no record has had.
    missing: RefCell<Vec<String>>,
    /// Names of features of records, as long as a name is missing.
    seen: RefCell<BTreeSet<String>>,
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
        let seen = RefCell::default();
        Ok(Some(FeaturePatterns { patterns, missing, seen, printed: Cell::new(false) }))
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
        let mut missing = self.missing.borrow_mut();
        missing.retain(|name| !map.contains_key(name.as_str()));
        if !missing.is_empty() {
            let mut seen = self.seen.borrow_mut();
            for name in map.keys() {
                if seen.len() < MAX_SEEN && !seen.contains(*name) {
                    seen.insert((*name).to_owned());
                }
            }
        }
        map.retain(|name, _| self.patterns.iter().any(|pattern| matches(pattern, name)));
    }

    /// Prints a message for each name that no printed record has.
    pub(super) fn report_missing(&self, console: &mut Console) {
        if self.printed.get() {
            let seen = self.seen.borrow();
            for name in self.missing.borrow().iter() {
                let near = text::nearest(nearest(name, seen.iter().map(String::as_str)));
                console.note(format_args!(
                    "tfseek: --features: no printed record has the feature {}{near}",
                    Key(name)
                ));
            }
        }
    }
}
