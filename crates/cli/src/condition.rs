//! The condition of `--where`: which records a verb prints.

use crate::args::{ReadArgs, WhereArgs};
use crate::console::Console;
use crate::damage::SkippedErrors;
use crate::dataset::Numbered;
use crate::exit::{Failure, Outcome, USAGE};
use crate::output::{NumberedRecord, Printer};
use crate::records::Records;
use tfseek::Filter;
use tfseek::filter::RecordFilter;
use tfseek_tfds::FoundFeatures;

/// Number of records whose names are compared.
const FIRST: u64 = 16;

/// The records of a verb that meet the condition of `--where`, all without one.
pub(crate) struct Condition {
    records: Option<RecordFilter>,
    /// There is one file, so the number of a record in it is its number over all files.
    one_file: bool,
    /// A record was tested.
    tested: bool,
    /// The names were compared with the first records' names.
    checked: bool,
}

impl Condition {
    /// Creates the condition of a verb that reads this number of files, whose features are given. Refuses
    /// names of no class.
    pub(crate) fn new(args: &WhereArgs, files: usize, features: &FoundFeatures) -> Outcome<Condition> {
        let filter = args.condition.as_ref().map(|filter| features.filter(filter)).transpose()?;
        Ok(Condition {
            records: filter.as_ref().map(Filter::for_records),
            one_file: files == 1,
            tested: false,
            checked: false,
        })
    }

    /// Returns true if there is no condition.
    pub(crate) fn is_all(&self) -> bool {
        self.records.is_none()
    }

    /// Compares the names of the condition with the first records' names, unless it is known that records
    /// have them. Nothing is printed before a name that is probably misspelt was refused, and one record may
    /// lack what the others have.
    pub(crate) fn compare_names(&mut self, first: &mut Records) -> Outcome {
        let Some(records) = self.records.as_mut().filter(|_| !self.checked) else { return Ok(()) };
        first.read_ahead();
        for item in first.ahead() {
            if records.knows_names() {
                break;
            }
            // The result, or error, of a record follows when it is its turn.
            let _ = records.accepts(0, item.record.payload(), item.kind);
        }
        // Later files may have what a short one lacks.
        if self.one_file || records.knows_names() {
            return self.check_names();
        }
        Ok(())
    }

    /// Compares the names with the names in the first records of a dataset, which is read by number.
    pub(crate) fn compare_numbered(&mut self, first: &mut Numbered) -> Outcome {
        let Some(records) = self.records.as_mut().filter(|_| !self.checked) else { return Ok(()) };
        for i in 0..first.dataset.len().min(FIRST) {
            if records.knows_names() {
                break;
            }
            if let Ok(item) = first.get(i) {
                let _ = records.accepts(0, item.record.payload(), item.kind);
            }
        }
        let has_all = self.one_file || first.dataset.shards().len() > 1;
        if has_all || records.knows_names() { self.check_names() } else { Ok(()) }
    }

    /// Refuses a name of the condition that is probably misspelt, once the first records, or all of them,
    /// were tested.
    fn check_names(&mut self) -> Outcome {
        if let Some(records) = self.records.as_ref().filter(|_| !self.checked) {
            self.checked = true;
            records.check_names(false)?;
        }
        Ok(())
    }

    /// Returns true if a record meets the condition.
    pub(crate) fn accepts(&mut self, item: &NumberedRecord<'_>) -> Outcome<bool> {
        let Some(records) = &mut self.records else { return Ok(true) };
        let at = item.record.at();
        let number = item.index.or(at.record.filter(|_| self.one_file));
        let number = match number {
            Some(number) => number,
            None if records.filter().uses_numbers() => {
                let path = at.path.map_or_else(String::new, |path| path.display().to_string());
                let message = format!(
                    "{path}: the number of records in the files before it is not known, and the condition tests record \
                     numbers (run `tfseek index` on them)"
                );
                return Err(Failure::Message(USAGE, message));
            }
            None => 0,
        };
        self.tested = true;
        let accepted = records.accepts(number, item.record.payload(), item.kind).map_err(|e| e.at(at))?;
        if records.knows_names() {
            self.check_names()?;
        }
        Ok(accepted)
    }

    /// Ends the output of a verb: names the features of the condition that no record had. Fewer than 16
    /// records were not yet compared.
    pub(crate) fn finish(&self, console: &mut Console) {
        if let (Some(records), true, false) = (&self.records, self.tested, self.checked)
            && let Err(e) = records.check_names(false)
        {
            return console.report(&e.into());
        }
        for records in self.records.iter().filter(|_| self.tested) {
            records.unseen().for_each(|feature| unseen(feature, console));
        }
    }
}

/// The records that a verb prints: their condition, their format, and the errors of those that are left out.
pub(crate) struct RecordOutput<'c> {
    pub(crate) condition: Condition,
    pub(crate) printer: Printer,
    pub(crate) read: ReadArgs,
    pub(crate) skipped: SkippedErrors,
    pub(crate) console: &'c mut Console,
}

impl<'c> RecordOutput<'c> {
    pub(crate) fn new(
        condition: Condition,
        printer: Printer,
        read: ReadArgs,
        console: &'c mut Console,
    ) -> RecordOutput<'c> {
        RecordOutput { condition, printer, read, skipped: SkippedErrors::default(), console }
    }

    /// Returns true if a record meets the condition, and false for one that is left out by `--damage skip`.
    pub(crate) fn accepts(&mut self, item: &NumberedRecord<'_>) -> Outcome<bool> {
        match self.condition.accepts(item) {
            Err(e) => self.skipped.catch(self.read, Err(e)).map(|()| false),
            accepted => accepted,
        }
    }

    /// Prints a record, unless it is left out by `--damage skip`.
    pub(crate) fn print(&mut self, item: NumberedRecord<'_>) -> Outcome {
        self.skipped.catch(self.read, self.printer.record(self.console, item))
    }

    /// Ends the output of the verb.
    pub(crate) fn finish(self) -> Outcome {
        self.condition.finish(self.console);
        self.printer.finish(self.console);
        self.skipped.report(self.console)
    }
}

/// Names a feature of a condition that no record had.
pub(crate) fn unseen(feature: &str, console: &mut Console) {
    console
        .note(format_args!("tfseek: no record that was read has a feature \"{}\"", feature.escape_debug()));
}
