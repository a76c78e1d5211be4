//! One schema and many payloads: decoded and parsed here and by TensorFlow, and compared.

use crate::columns::columns;
use crate::common::hex::hex;
use crate::common::rng::Rng;
use crate::common::twin::{self, Rules};
use crate::departures::{Case, Columns, explain};
use crate::tally::Tally;
use crate::worker::Worker;
use serde_json::Value;
use std::collections::BTreeMap;
use tfseek::batch::{Batch, BatchParser};
use tfseek::error::{Category, WireErrorKind};
use tfseek::example::FeatureBuf;
use tfseek::schema::{FeatureSpec, Partition, Schema};
use tfseek::{Error, ErrorKind, Example, ExampleBuf, SequenceExample, SequenceExampleBuf};

/// TensorFlow allocates as many rows as this number says. Ours are not asked for more either.
const MOST_ROWS: i64 = 1 << 16;

pub(crate) struct Round<'a> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) tally: &'a mut Tally,
    pub(crate) schema: Schema,
    spec: Value,
    parser: BatchParser,
    /// One that looks at everything, and copies strings.
    full: BatchParser,
    lenient: BatchParser,
    /// To be named in a disagreement.
    pub(crate) name: String,
}

/// A payload that protobuf accepts, and its canonical form.
struct Accepted {
    raw: Vec<u8>,
    canonical: Vec<u8>,
    /// Our parser refused it alone, so a batch with it is refused, and names this row.
    faulty: bool,
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
        let full = BatchParser::new(&schema).validate_full(true).contiguous_bytes(true);
        let lenient = BatchParser::new(&schema).lenient_sparse_index(true);
        Round { worker, tally, schema, spec, parser, full, lenient, name }
    }

    fn kind(&self) -> &'static str {
        if self.schema.is_sequence() { "sequence" } else { "example" }
    }

    /// Random payloads: what is good alone is parsed again in batches, and now and then with one that is not.
    pub(crate) fn payloads(&mut self, rng: &mut Rng, payloads: Vec<Vec<u8>>) {
        let mut accepted = self.decode(payloads);
        let alike = self.alone(&mut accepted);
        let both = |k: &usize| alike[*k] && !accepted[*k].faulty;
        let (good, bad): (Vec<_>, Vec<_>) = (0..accepted.len()).partition(both);
        let mut good = good.into_iter().map(|k| &accepted[k]).peekable();
        let mut bad = bad.into_iter().map(|k| &accepted[k]);
        // A batch of no rows, too.
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
        // What is wrong in each may come out even over both, and then TensorFlow sees nothing.
        let rest: Vec<_> = bad.collect();
        batches.extend(rest.chunks(2).take(16).map(<[_]>::to_vec));
        self.parse(&batches, false);
    }

    /// All records of a file, alone and in batches of these sizes.
    pub(crate) fn corpus(&mut self, payloads: Vec<Vec<u8>>, sizes: &[usize]) {
        let mut accepted = self.decode(payloads);
        self.alone(&mut accepted);
        for &size in sizes {
            let batches: Vec<Vec<_>> = accepted.chunks(size).map(|batch| batch.iter().collect()).collect();
            self.parse(&batches, false);
        }
    }

    /// What protobuf accepts; our decoder must say the same, and make the same bytes of it.
    fn decode(&mut self, payloads: Vec<Vec<u8>>) -> Vec<Accepted> {
        self.tally.count("payloads", payloads.len());
        let mut accepted = Vec::new();
        let (mut lazy, mut lazily) = (Vec::new(), Vec::new());
        for (raw, theirs) in payloads.iter().zip(self.worker.decode(self.kind(), &payloads)) {
            let ours = match self.schema.is_sequence() {
                true => SequenceExample::new(raw).to_buf().and_then(|m| m.encode()),
                false => Example::new(raw).to_buf().and_then(|m| m.encode()),
            };
            let unknown = |e: &Error| matches!(e.kind(), ErrorKind::Wire(e) if e.kind == WireErrorKind::MapEntryUnknownField);
            match (ours, theirs) {
                (Ok(ours), Some(theirs)) if ours == theirs.canonical && !theirs.dropped => {
                    accepted.push(Accepted { raw: raw.clone(), canonical: ours, faulty: false });
                }
                (Err(ours), Some(theirs)) if theirs.dropped && unknown(&ours) => {
                    self.tally.count("departure: map entry with an unknown field refused (R6)", 1);
                    self.refused(raw, &mut lazy, &mut lazily);
                }
                (Err(_), None) => {
                    self.tally.count("payloads that protobuf refuses", 1);
                    self.refused(raw, &mut lazy, &mut lazily);
                }
                (ours, theirs) => {
                    let (ours, theirs) =
                        (ours.map(|m| hex(&m)), theirs.map(|m| (hex(&m.canonical), m.dropped)));
                    self.tally.disagree(format!(
                        "{} decode {}\n ours   {ours:?}\n theirs {theirs:?}",
                        self.name,
                        hex(raw)
                    ));
                }
            }
        }
        self.lazily(&lazy, &lazily);
        self.tally.count("payloads that protobuf accepts", accepted.len());
        let all = accepted.len();
        accepted.retain(|one| !self.too_many_rows(&one.canonical));
        self.tally.count("not parsed: value_rowids that TensorFlow would allocate for", all - accepted.len());
        accepted
    }

    /// What protobuf refuses, a parser refuses too, unless the fault lies in what the schema does not ask for (R4). Then
    /// the naive decoder, asked for each key alone, says what is there.
    fn refused(&mut self, raw: &[u8], lazy: &mut Vec<Vec<u8>>, lazily: &mut Vec<Columns>) {
        if self.full.parse_single(raw).is_ok() {
            self.tally.disagree(format!("{}: accepted by validate_full: {}", self.name, hex(raw)));
        }
        let Ok(batch) = self.parser.parse_single(raw) else { return };
        let Some(asked_for) = self.asked_for(raw) else {
            return self.tally.disagree(format!("{} {}: accepted: {}", self.name, self.spec, hex(raw)));
        };
        lazy.push(asked_for);
        lazily.push(columns(&batch, true));
    }

    /// A message of only what the schema asks for, if that much of the payload is sound.
    fn asked_for(&self, raw: &[u8]) -> Option<Vec<u8>> {
        fn rules(key: &str) -> Rules<'_> {
            Rules { lenient: false, only: Some(key.as_bytes()) }
        }
        let keys = |columns: &BTreeMap<String, FeatureSpec>| -> Vec<String> {
            columns.iter().flat_map(|(name, spec)| source_keys(name, spec)).collect()
        };
        let mut context = BTreeMap::new();
        for key in keys(self.schema.features()) {
            let mut found = twin::example(raw, rules(&key)).ok()?.map;
            if let Some(feature) = found.remove(key.as_bytes()) {
                context.insert(key, feature_buf(feature));
            }
        }
        if !self.schema.is_sequence() {
            return ExampleBuf { features: context, has_features: true }.encode().ok();
        }
        let mut lists = BTreeMap::new();
        for key in keys(self.schema.feature_lists()) {
            let mut found = twin::feature_lists(raw, rules(&key)).ok()?.map;
            if let Some(steps) = found.remove(key.as_bytes()) {
                lists.insert(key, steps.into_iter().map(feature_buf).collect());
            }
        }
        let message =
            SequenceExampleBuf { context, feature_lists: lists, has_context: true, has_feature_lists: true };
        message.encode().ok()
    }

    /// What was parsed though protobuf refuses it is what TensorFlow makes of the part that was asked for.
    fn lazily(&mut self, payloads: &[Vec<u8>], ours: &[Columns]) {
        if payloads.is_empty() {
            return;
        }
        let batches: Vec<_> = payloads.iter().map(|p| vec![p.as_slice()]).collect();
        let answers = self.worker.parse(self.kind(), &self.spec, &batches, true);
        for ((payloads, ours), theirs) in batches.iter().zip(ours).zip(answers) {
            let case = Case { schema: &self.schema, single: true, payloads };
            match explain(&case, &Ok(ours.clone()), &theirs) {
                Ok(_) => self.tally.count("departure: fault in a feature that nobody asks for (R4)", 1),
                Err(why) => {
                    let asked_for = hex(payloads[0]);
                    self.tally.disagree(format!(
                        "{} lazy\n spec {}\n asked for {asked_for}\n {why}",
                        self.name, self.spec
                    ));
                }
            }
        }
    }

    /// Parses each payload alone, marks the faulty ones, and returns which ones TensorFlow takes.
    fn alone(&mut self, accepted: &mut [Accepted]) -> Vec<bool> {
        let results = self.parse(&accepted.iter().map(|one| vec![one]).collect::<Vec<_>>(), true);
        for (one, (ours, _)) in accepted.iter_mut().zip(&results) {
            one.faulty = !ours;
        }
        results.into_iter().map(|(_, theirs)| theirs).collect()
    }

    /// Parses each batch (or each payload alone) here and there; returns which ones gave columns here, and there.
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
                self.variants(&rows, single, &ours)?;
                self.outside(&case, &rows, &ours, &theirs)?;
                names_the_row(batch, single, &ours)?;
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

    /// A parser that looks at everything, or copies strings, gives the same; so do the records in their canonical form.
    fn variants(&self, rows: &[&[u8]], single: bool, ours: &Result<Columns, Error>) -> Result<(), String> {
        match (self.ours(&self.full, rows, single), ours) {
            (Ok(full), Ok(ours)) if full == *ours => Ok(()),
            (Err(_), Err(_)) => Ok(()),
            (full, _) => Err(format!("validate_full and contiguous_bytes make {full:?} of {ours:?}")),
        }
    }

    /// What we refuse for an index outside, a lenient parser takes as TensorFlow does.
    fn outside(
        &self,
        case: &Case<'_>,
        rows: &[&[u8]],
        ours: &Result<Columns, Error>,
        theirs: &crate::worker::Answer,
    ) -> Result<(), String> {
        use tfseek::error::FeatureError::SparseIndex;
        match ours {
            Err(e) if theirs.is_ok() && matches!(e.kind(), ErrorKind::Feature(SparseIndex { .. })) => {
                explain(case, &self.ours(&self.lenient, rows, case.single), theirs).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Whether TensorFlow would be made to allocate rows that no values are in.
    fn too_many_rows(&self, canonical: &[u8]) -> bool {
        let row_ids = |columns: &BTreeMap<String, FeatureSpec>| -> Vec<String> {
            let keys = columns.values().filter_map(|spec| match spec {
                FeatureSpec::Ragged { partitions, .. } => Some(partitions.iter()),
                _ => None,
            });
            let ids = keys.flatten().filter(|p| matches!(p, Partition::ValueRowIds(_)));
            ids.filter_map(Partition::key).map(str::to_owned).collect()
        };
        let many = |f: &FeatureBuf| matches!(f, FeatureBuf::Int64(v) if v.iter().any(|&v| v >= MOST_ROWS));
        let context = row_ids(self.schema.features());
        if !self.schema.is_sequence() {
            let message = Example::new(canonical).to_buf().unwrap();
            return context.iter().any(|key| message.features.get(key).is_some_and(many));
        }
        let message = SequenceExample::new(canonical).to_buf().unwrap();
        let lists = row_ids(self.schema.feature_lists());
        context.iter().any(|key| message.context.get(key).is_some_and(many))
            || lists
                .iter()
                .any(|key| message.feature_lists.get(key).is_some_and(|steps| steps.iter().any(many)))
    }
}

/// A batch is refused for its first row that is refused alone, and says so.
fn names_the_row(batch: &[&Accepted], single: bool, ours: &Result<Columns, Error>) -> Result<(), String> {
    let faulty = batch.iter().position(|one| one.faulty);
    match ours {
        _ if single => Ok(()),
        Ok(_) if faulty.is_none() => Ok(()),
        Err(e) if e.place().row == faulty => Ok(()),
        Ok(_) => Err(format!("row {faulty:?} is refused alone, and taken in a batch")),
        Err(e) => Err(format!(
            "row {faulty:?} is refused alone, the batch is refused for row {:?}: {e}",
            e.place().row
        )),
    }
}

/// What TensorFlow's message complains about. Of several faults in a record it names any.
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

/// The features that a column is made from.
fn source_keys(name: &str, spec: &FeatureSpec) -> Vec<String> {
    match spec {
        FeatureSpec::Ragged { value_key, partitions, .. } => {
            let keys = partitions.iter().filter_map(Partition::key);
            keys.chain([value_key.as_deref().unwrap_or(name)]).map(str::to_owned).collect()
        }
        FeatureSpec::Sparse { index_keys, value_key, .. } => {
            index_keys.iter().chain([value_key]).cloned().collect()
        }
        _ => vec![name.to_owned()],
    }
}

fn feature_buf(feature: twin::Feature) -> FeatureBuf {
    match feature {
        twin::Feature::None => FeatureBuf::None,
        twin::Feature::Bytes(values) => FeatureBuf::Bytes(values),
        twin::Feature::Float(bits) => FeatureBuf::Float(bits.into_iter().map(f32::from_bits).collect()),
        twin::Feature::Int64(values) => FeatureBuf::Int64(values),
    }
}
