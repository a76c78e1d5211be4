//! Compares the decoders before anything is parsed.

use crate::columns::columns;
use crate::departures::{Case, Columns, explain};
use crate::round::{Accepted, Round};
use std::collections::BTreeMap;
use tfseek::error::WireError;
use tfseek::example::FeatureBuf;
use tfseek::schema::{FeatureSpec, Partition};
use tfseek::{Error, ErrorKind, Example, ExampleBuf, SequenceExample, SequenceExampleBuf};
use tfseek_testkit::hex::hex;
use tfseek_testkit::twin::{self, Rules};

/// Row numbers from this limit on are not passed to TensorFlow, which allocates that number of rows, nor to
/// tfseek.
const MOST_ROWS: i64 = 1 << 16;

impl Round<'_> {
    /// Returns the payloads that protobuf accepts. tfseek's decoder must accept the same ones with the same
    /// canonical bytes.
    pub(crate) fn decode(&mut self, payloads: Vec<Vec<u8>>) -> Vec<Accepted> {
        self.tally.count("payloads", payloads.len());
        let mut accepted = Vec::new();
        let (mut lazy, mut lazily) = (Vec::new(), Vec::new());
        for (raw, theirs) in payloads.iter().zip(self.worker.decode(self.kind(), &payloads)) {
            let ours = self.canonical(raw);
            let unknown = |e: &Error| {
                matches!(e.kind(), ErrorKind::Wire { reason: WireError::MapEntryUnknownField, .. })
            };
            match (ours, theirs) {
                (Ok(ours), Some(theirs)) if ours == theirs.canonical && !theirs.dropped => {
                    accepted.push(Accepted { raw: raw.clone(), canonical: ours, faulty: false });
                }
                (Err(ours), Some(theirs)) if theirs.dropped && unknown(&ours) => {
                    self.tally.count("departure: map entry with an unknown field refused (R6)", 1);
                    self.refused(raw, &mut lazy, &mut lazily);
                }
                (Err(_), Some(theirs)) if self.numbered(raw).as_ref() == Some(&theirs.canonical) => {
                    self.tally.count("departure: field number 0 in an unknown group refused", 1);
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

    fn canonical(&self, raw: &[u8]) -> Result<Vec<u8>, Error> {
        if self.schema.is_sequence() {
            SequenceExampleBuf::try_from(SequenceExample::new(raw))?.encode()
        } else {
            ExampleBuf::try_from(Example::new(raw))?.encode()
        }
    }

    /// Returns the canonical bytes with every field number 0 replaced by another one, or `None` without such
    /// fields. Python's protobuf ignores the numbers inside unknown groups; C++ protobuf refuses them.
    fn numbered(&self, raw: &[u8]) -> Option<Vec<u8>> {
        let mut raw = raw.to_vec();
        for changed in 0..=raw.len() {
            match self.canonical(&raw) {
                Ok(canonical) => return (changed > 0).then_some(canonical),
                Err(e) => match e.kind() {
                    ErrorKind::Wire { reason: WireError::FieldZero, offset } => raw[*offset] |= 15 << 3,
                    _ => return None,
                },
            }
        }
        None
    }

    /// Checks a payload that protobuf refuses: the decoder must refuse it too, and a parser unless the fault is
    /// outside the schema (R4). In that case the naive decoder is run for each key of the schema.
    fn refused(&mut self, raw: &[u8], lazy: &mut Vec<Vec<u8>>, lazily: &mut Vec<Columns>) {
        if self.canonical(raw).is_ok() {
            self.tally.disagree(format!("{}: accepted as a whole: {}", self.name, hex(raw)));
        }
        let Ok(batch) = self.parser.parse_single(raw) else { return };
        let Some(reduced) = self.reduced(raw) else {
            return self.tally.disagree(format!("{} {}: accepted: {}", self.name, self.spec, hex(raw)));
        };
        lazy.push(reduced);
        lazily.push(columns(&batch, true));
    }

    /// Returns a message with the features of the schema only, if that part of the payload is valid.
    fn reduced(&self, raw: &[u8]) -> Option<Vec<u8>> {
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

    /// Checks payloads that protobuf refuses and tfseek parses: TensorFlow must give the same columns for the
    /// reduced message.
    fn lazily(&mut self, payloads: &[Vec<u8>], ours: &[Columns]) {
        if payloads.is_empty() {
            return;
        }
        let batches: Vec<_> = payloads.iter().map(|p| vec![p.as_slice()]).collect();
        let answers = self.worker.parse(self.kind(), &self.spec, &batches, true);
        for ((payloads, ours), theirs) in batches.iter().zip(ours).zip(answers) {
            let case = Case { schema: &self.schema, single: true, payloads };
            match explain(&case, &Ok(ours.clone()), &theirs) {
                Ok(_) => self.tally.count("departure: fault in a feature outside the schema (R4)", 1),
                Err(why) => {
                    let reduced = hex(payloads[0]);
                    self.tally.disagree(format!(
                        "{} lazy\n spec {}\n reduced to {reduced}\n {why}",
                        self.name, self.spec
                    ));
                }
            }
        }
    }

    /// Tests whether TensorFlow would allocate a large number of rows without values.
    fn too_many_rows(&self, canonical: &[u8]) -> bool {
        let row_ids = |columns: &BTreeMap<String, FeatureSpec>| -> Vec<String> {
            let keys = columns.values().filter_map(|spec| match spec {
                FeatureSpec::Ragged { partitions, .. } => Some(partitions.iter()),
                _ => None,
            });
            let ids = keys.flatten().filter(|p| matches!(p, Partition::ValueRowIds(_)));
            ids.filter_map(tfseek_testkit::twin_parse::partition_key).map(str::to_owned).collect()
        };
        let many = |f: &FeatureBuf| matches!(f, FeatureBuf::Int64(v) if v.iter().any(|&v| v >= MOST_ROWS));
        let context = row_ids(self.schema.features());
        if !self.schema.is_sequence() {
            let message = ExampleBuf::try_from(Example::new(canonical)).unwrap();
            return context.iter().any(|key| message.features.get(key).is_some_and(many));
        }
        let message = SequenceExampleBuf::try_from(SequenceExample::new(canonical)).unwrap();
        let lists = row_ids(self.schema.feature_lists());
        context.iter().any(|key| message.context.get(key).is_some_and(many))
            || lists
                .iter()
                .any(|key| message.feature_lists.get(key).is_some_and(|steps| steps.iter().any(many)))
    }
}

/// Returns the keys of the features that a column is made from.
fn source_keys(name: &str, spec: &FeatureSpec) -> Vec<String> {
    match spec {
        FeatureSpec::Ragged { value_key, partitions, .. } => {
            let keys = partitions.iter().filter_map(tfseek_testkit::twin_parse::partition_key);
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
