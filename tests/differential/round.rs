//! Many payloads of one schema: decoded and parsed by both libraries, and compared.

use crate::columns::columns;
use crate::departures::{Case, Columns, explain};
use crate::tally::Tally;
use crate::worker::Worker;
use serde_json::Value;
use tfseek::Error;
use tfseek::batch::{Batch, BatchParser};
use tfseek::error::Category;
use tfseek::schema::Schema;
use tfseek_testkit::hex::hex;
use tfseek_testkit::rng::Rng;

pub(crate) struct Round<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) tally: &'a mut Tally,
    pub(crate) schema: Schema,
    pub(crate) spec: Value,
    pub(crate) parser: BatchParser,
    /// A parser with `contiguous_bytes`.
    contiguous: BatchParser,
    /// Name printed with a disagreement.
    pub(crate) name: String,
}

/// A payload that protobuf accepts, and its canonical form.
pub(crate) struct Accepted {
    pub(crate) raw: Vec<u8>,
    pub(crate) canonical: Vec<u8>,
    /// True if tfseek refuses the payload as a single record. A batch with it must then fail with its row.
    pub(crate) faulty: bool,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        worker: &'a mut Worker,
        tally: &'a mut Tally,
        schema: Schema,
        name: String,
    ) -> Round<'a> {
        let json = schema.to_json();
        assert_eq!(Schema::from_json(&json).unwrap(), schema, "{json}");
        let spec = serde_json::from_str(&json).unwrap();
        let parser = BatchParser::new(&schema);
        let contiguous = BatchParser::new(&schema).contiguous_bytes(true);
        Round { worker, tally, schema, spec, parser, contiguous, name }
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.schema.is_sequence() { "sequence" } else { "example" }
    }

    /// Checks random payloads: each alone, valid ones in batches, and sometimes a batch with an invalid one.
    pub(crate) fn payloads(&mut self, rng: &mut Rng, payloads: Vec<Vec<u8>>) {
        let mut accepted = self.decode(payloads);
        let alike = self.alone(&mut accepted);
        let both = |k: &usize| alike[*k] && !accepted[*k].faulty;
        let (good, bad): (Vec<_>, Vec<_>) = (0..accepted.len()).partition(both);
        let mut good = good.into_iter().map(|k| &accepted[k]).peekable();
        let mut bad = bad.into_iter().map(|k| &accepted[k]);
        // A batch of no rows is included.
        let mut batches: Vec<Vec<&Accepted>> = vec![Vec::new()];
        while good.peek().is_some() {
            let size = rng.pick(&[1, 2, 3, 7, 16, 64]);
            let mut batch: Vec<_> = good.by_ref().take(size).collect();
            if rng.chance(30)
                && let Some(bad) = bad.next()
            {
                batch.insert(rng.below(batch.len() + 1), bad);
            }
            batches.push(batch);
        }
        // The faults of two rows may cancel each other, and TensorFlow then reports no error.
        let rest: Vec<_> = bad.collect();
        batches.extend(rest.chunks(2).take(16).map(<[_]>::to_vec));
        self.parse(&batches, false);
    }

    /// Checks all records of a file, alone and in batches of these sizes.
    pub(crate) fn corpus(&mut self, payloads: Vec<Vec<u8>>, sizes: &[usize]) {
        let mut accepted = self.decode(payloads);
        self.alone(&mut accepted);
        for &size in sizes {
            let batches: Vec<Vec<_>> = accepted.chunks(size).map(|batch| batch.iter().collect()).collect();
            self.parse(&batches, false);
        }
    }

    /// Parses each payload alone, marks the faulty ones, and returns which ones TensorFlow accepts.
    fn alone(&mut self, accepted: &mut [Accepted]) -> Vec<bool> {
        let results = self.parse(&accepted.iter().map(|one| vec![one]).collect::<Vec<_>>(), true);
        for (one, (ours, _)) in accepted.iter_mut().zip(&results) {
            one.faulty = !ours;
        }
        results.into_iter().map(|(_, theirs)| theirs).collect()
    }

    /// Parses each batch, or each payload alone, with both libraries. Returns which ones gave columns in
    /// tfseek and in TensorFlow.
    fn parse(&mut self, batches: &[Vec<&Accepted>], single: bool) -> Vec<(bool, bool)> {
        let canonical: Vec<Vec<&[u8]>> =
            batches.iter().map(|batch| batch.iter().map(|one| one.canonical.as_slice()).collect()).collect();
        let answers = self.worker.parse(self.kind(), &self.spec, &canonical, single);
        let mut taken = Vec::new();
        for ((batch, payloads), theirs) in batches.iter().zip(&canonical).zip(answers) {
            let rows: Vec<&[u8]> = batch.iter().map(|one| one.raw.as_slice()).collect();
            let ours = self.ours(&self.parser, &rows, single);
            self.tally.count(if single { "parsed alone" } else { "batches parsed" }, 1);
            if let (Ok(ours), Ok(_)) = (&ours, &theirs) {
                self.tally.count("columns compared", ours.len());
            }
            let case = Case { schema: &self.schema, single, payloads };
            let explained = explain(&case, &ours, &theirs).and_then(|names| {
                self.check_options(&rows, single, &ours)?;
                check_row_of_error(batch, single, &ours)?;
                Ok(names)
            });
            taken.push((ours.is_ok(), theirs.is_ok()));
            match explained {
                Ok(names) => {
                    if let (Err(ours), Err(theirs)) = (&ours, &theirs) {
                        let same = category(theirs).is_some_and(|theirs| Some(theirs) == ours.category());
                        let reason = if same { "the same" } else { "another" };
                        self.tally.count(format!("both refuse, for {reason} reason"), 1);
                    }
                    let both = if ours.is_ok() { "gave columns" } else { "refused" };
                    self.tally.count(format!("{} {both}", if single { "alone:" } else { "batches:" }), 1);
                    for name in names {
                        self.tally.count(format!("departure: {name}"), 1);
                    }
                }
                Err(why) => {
                    let raw: Vec<_> = rows.iter().map(|row| hex(row)).collect();
                    let form = if single { "single" } else { "batch" };
                    self.tally.disagree(format!(
                        "{} {form}\n spec {}\n payloads {raw:?}\n {why}",
                        self.name, self.spec
                    ));
                }
            }
        }
        taken
    }

    fn ours(&self, parser: &BatchParser, rows: &[&[u8]], single: bool) -> Result<Columns, Error> {
        let batch: Batch = if single { parser.parse_single(rows[0]) } else { parser.parse(rows) }?;
        Ok(columns(&batch, single))
    }

    /// Checks that `contiguous_bytes` does not change the result.
    fn check_options(
        &self,
        rows: &[&[u8]],
        single: bool,
        ours: &Result<Columns, Error>,
    ) -> Result<(), String> {
        match (self.ours(&self.contiguous, rows, single), ours) {
            (Ok(found), Ok(ours)) if found == *ours => Ok(()),
            (Err(_), Err(_)) => Ok(()),
            (found, _) => Err(format!("expected {ours:?} with contiguous_bytes, found {found:?}")),
        }
    }
}

/// Checks that the error of a batch names the first row that is refused as a single record.
fn check_row_of_error(
    batch: &[&Accepted],
    single: bool,
    ours: &Result<Columns, Error>,
) -> Result<(), String> {
    let faulty = batch.iter().position(|one| one.faulty);
    match ours {
        _ if single => Ok(()),
        Ok(_) if faulty.is_none() => Ok(()),
        Err(e) if e.location().row == faulty => Ok(()),
        Ok(_) => Err(format!("row {faulty:?} is refused alone and accepted in a batch")),
        Err(e) => Err(format!(
            "row {faulty:?} is refused alone, the batch is refused for row {:?}: {e}",
            e.location().row
        )),
    }
}

/// Returns the category of TensorFlow's message. If a record has several faults, TensorFlow reports any of
/// them.
fn category(message: &str) -> Option<Category> {
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    Some(match () {
        () if has(&["Data types don't match"]) => Category::KindMismatch,
        () if has(&["is required but could not be found"]) => Category::MissingFeature,
        () if has(&[
            "expected.",
            "stride length",
            "slice was not parsed",
            "number of elements",
            "number of values",
            "Parsing bytes_list",
        ]) =>
        {
            Category::CountMismatch
        }
        () if has(&["Dimensions ", "ConcatOp"]) => Category::BadSparseIndex,
        () if has(&["Shapes ", "reshape", "form a valid", "non-negative", "slice index 0"]) => {
            Category::BadPartition
        }
        () => return None,
    })
}
