//! Saved states as JSON.
//!
//! ```text
//! {"v": 1, "order": {..}, "seed": 42, "epoch": 3, "pos": 182340, "n": 1281167, "fp": "99aa06d3014798d86001c324468d497f"}
//!
//! order  {"algo": "prp1", "kind": "none" | "global"}
//!        {"algo": "prp1", "kind": "block", "b": 256, "W": 1024}
//!        {"algo": "prp1", "kind": "balanced", "classes": D, "b": 256, "W": 1024}
//!        {"algo": "prp1", "kind": "weighted", "weights": [..] | D}
//!        {"algo": "prp1", "kind": "mixture", "weights": [..] | D, "parts": D}
//!        {"algo": "prp1", "kind": "buckets", "boundaries": [..], "sizes": [..], "shuffle": true, "drop": false, "lengths": D}
//!        {"algo": "prp1", "kind": "mix", "weights": [..], "unit": "row" | "batch", "batch": B, "stop": "never" | "first" | "all",
//!         "b": [..], "W": [..], "parts": D}
//!        with "batch" for the unit batch only, and "b" and "W" if a component has a block order
//!        any kind except mixture and mix may have a filter, and then has "ids": D
//! mix    {"from": 0, "given": [..], "E": 1281167} beside `order`, for the kind mix only
//! D      32 hex digits: XXH3-128 of u64 words, little-endian. Up to 16 weights are a list, more are D.
//! ids    digest of the filter's survivors
//! classes  digest of the records' classes
//! lengths  digest of the bucket number of each row, in the order of the rows
//! parts  digest of nine words per component: kind (0 none, 1 global, 2 block, 3 weighted), b, W, first record, positions per
//!        epoch, digest of the survivors (high half, low half), digest of the weights (high half, low half). Absent values are 0.
//!        The parts of the kind mix have no b and no W.
//! ```

use super::{
    FieldValue, LISTED, MixStart, MixSummary, STOPS, SpecSummary, State, SummaryBuckets, SummaryKind,
    SummaryWeights, is_digest,
};
use crate::error::{Error, Result};
use crate::order::digest::hex;
use serde_json::{Map, Value};

const VERSION: u64 = 1;
const ALGORITHM: &str = "prp1";

impl State {
    /// Returns the state as JSON, less than 1 KiB, or 4 KiB with buckets and for a mix of up to 50 sources.
    pub fn to_json(&self) -> String {
        let number = Value::from;
        let mut fields = vec![
            ("v", number(VERSION)),
            ("order", self.order.to_json()),
            ("seed", number(self.seed)),
            ("epoch", number(self.epoch)),
            ("pos", number(self.position / self.order.unit())),
            ("n", number(self.n)),
            ("fp", Value::from(self.fingerprint.as_str())),
        ];
        if let Some(MixStart { from, given, samples }) = &self.mix {
            let mix =
                [("from", number(*from)), ("given", Value::from(given.clone())), ("E", number(*samples))];
            fields.push(("mix", object(mix)));
        }
        object(fields).to_string()
    }

    /// Parses a state from JSON.
    ///
    /// # Errors
    /// [`OrderError::State`](crate::error::OrderError::State) if the text is not a state of this version and
    /// algorithm. Unknown fields are refused, because they may mean a different order.
    pub fn from_json(text: &str) -> Result<State> {
        let json = serde_json::from_str(text).map_err(|e| Error::state("json", "a saved state", e))?;
        let Value::Object(fields) = json else { return Err(Error::state("json", "an object", json)) };
        let mut fields = Fields(fields);
        // The version is checked first, because the meaning of all other fields depends on it.
        let version = fields.number("v")?;
        if version != VERSION {
            return Err(Error::state("v", VERSION, version));
        }
        let order = SpecSummary::from_json(fields.object("order")?)?;
        let saved = fields.number("pos")?;
        let position = saved.checked_mul(order.unit());
        let position = position.ok_or_else(|| Error::state("pos", "a smaller number", saved))?;
        let mix = match &order.kind {
            SummaryKind::Mix(summary) => Some(mix_start(fields.object("mix")?, summary)?),
            _ => None,
        };
        let state = State {
            order,
            seed: fields.number("seed")?,
            epoch: fields.number("epoch")?,
            position,
            n: fields.number("n")?,
            fingerprint: fields.take("fp", "32 hex digits", |value| {
                value.as_str().filter(|text| is_digest(text)).map(str::to_owned)
            })?,
            mix,
        };
        fields.end("json")?;
        Ok(state)
    }
}

/// Parses the object `mix`.
fn mix_start(mut fields: Fields, summary: &MixSummary) -> Result<MixStart> {
    let start = MixStart {
        from: fields.number("from")?,
        given: fields.take("given", "a list of one number per component", |value| {
            numbers(value).filter(|given| given.len() == summary.weights.len())
        })?,
        samples: fields.size("E")?,
    };
    fields.end("mix")?;
    Ok(start)
}

/// The fields of an object that are not parsed yet.
struct Fields(Map<String, Value>);

impl Fields {
    /// Takes a field, whose value `parse` must accept. A missing field is null.
    fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T> {
        let value = self.0.remove(name).unwrap_or(Value::Null);
        parse(&value).ok_or_else(|| Error::state(name, expected, value))
    }

    fn object(&mut self, name: &'static str) -> Result<Fields> {
        self.take(name, "an object", |value| value.as_object().cloned().map(Fields))
    }

    fn text(&mut self, name: &'static str) -> Result<String> {
        self.take(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn number(&mut self, name: &'static str) -> Result<u64> {
        self.take(name, "a number from 0 to 2^64 - 1", Value::as_u64)
    }

    fn size(&mut self, name: &'static str) -> Result<u64> {
        self.take(name, "a number above 0", |value| value.as_u64().filter(|size| *size > 0))
    }

    fn flag(&mut self, name: &'static str) -> Result<bool> {
        self.take(name, "true or false", Value::as_bool)
    }

    fn digest(&mut self, name: &'static str) -> Result<u128> {
        self.take(name, "32 hex digits", digest)
    }

    fn weights(&mut self) -> Result<SummaryWeights> {
        self.take("weights", "a list of up to 16 weights, or 32 hex digits", SummaryWeights::parse)
    }

    /// Checks that no field of the object with this name is left.
    fn end(self, object: &str) -> Result<()> {
        match self.0.keys().next() {
            Some(other) => Err(Error::state(object, "no other fields", other)),
            None => Ok(()),
        }
    }
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

/// Parses a digest from 32 hex digits.
fn digest(value: &Value) -> Option<u128> {
    let text = value.as_str().filter(|text| is_digest(text))?;
    u128::from_str_radix(text, 16).ok()
}

impl From<FieldValue> for Value {
    fn from(value: FieldValue) -> Value {
        match value {
            FieldValue::Name(name) => name.into(),
            FieldValue::Digest(digest) => hex(digest).into(),
            FieldValue::Number(number) => number.into(),
            FieldValue::Flag(flag) => flag.into(),
            FieldValue::List(numbers) => numbers.into(),
        }
    }
}

impl SpecSummary {
    /// Returns the number of positions that a state counts as one.
    fn unit(&self) -> u64 {
        match &self.kind {
            SummaryKind::Mix(MixSummary { batch: Some(batch), .. }) => (*batch).max(1),
            _ => 1,
        }
    }

    fn to_json(&self) -> Value {
        let fields = self.fields().into_iter().map(|(name, value)| (name, value.into()));
        object([("algo", ALGORITHM.into())].into_iter().chain(fields))
    }

    /// Parses the `order` object. It accepts the fields of the given kind, and no others.
    fn from_json(mut fields: Fields) -> Result<SpecSummary> {
        let algorithm = fields.text("algo")?;
        if algorithm != ALGORITHM {
            return Err(Error::state("algo", ALGORITHM, algorithm));
        }
        let kind = match fields.text("kind")?.as_str() {
            "none" => SummaryKind::Sequential,
            "global" => SummaryKind::Global,
            "block" => SummaryKind::Block { block: fields.size("b")?, window: fields.size("W")? },
            "balanced" => SummaryKind::BalancedBlock {
                classes: fields.digest("classes")?,
                block: fields.size("b")?,
                window: fields.size("W")?,
            },
            "weighted" => SummaryKind::Weighted(fields.weights()?),
            "mixture" => SummaryKind::Mixture(fields.weights()?, fields.digest("parts")?),
            "mix" => SummaryKind::Mix(MixSummary::from_json(&mut fields)?),
            "buckets" => SummaryKind::Buckets(SummaryBuckets::from_json(&mut fields)?),
            other => {
                return Err(Error::state(
                    "kind",
                    "none, global, block, balanced, weighted, mixture, mix or buckets",
                    other,
                ));
            }
        };
        let may_have_filter = !matches!(kind, SummaryKind::Mixture(..) | SummaryKind::Mix(_));
        let ids = fields.0.get("ids").filter(|_| may_have_filter).and_then(digest);
        if ids.is_some() {
            fields.0.remove("ids");
        }
        fields.end("order")?;
        Ok(SpecSummary { kind, ids })
    }
}

impl MixSummary {
    fn from_json(fields: &mut Fields) -> Result<MixSummary> {
        let weights = fields.take("weights", "a list of weights", |value| {
            numbers(value).filter(|list| !list.is_empty() && !list.contains(&0))
        })?;
        let stop = fields.take("stop", "never, first or all", |value| {
            STOPS.iter().find(|(name, _)| Some(*name) == value.as_str()).map(|(_, stop)| *stop)
        })?;
        let unit = fields.take("unit", "row or batch", |value| {
            value.as_str().filter(|unit| ["row", "batch"].contains(unit)).map(str::to_owned)
        })?;
        let batch = if unit == "batch" { Some(fields.size("batch")?) } else { None };
        let mut blocks = Vec::new();
        if fields.0.contains_key("b") {
            let mut sizes = |name| {
                fields.take(name, "a list of one number per component", |value| {
                    numbers(value).filter(|sizes| sizes.len() == weights.len())
                })
            };
            blocks = sizes("b")?.into_iter().zip(sizes("W")?).collect();
        }
        Ok(MixSummary { weights, parts: fields.digest("parts")?, batch, stop, blocks })
    }
}

impl SummaryBuckets {
    fn from_json(fields: &mut Fields) -> Result<SummaryBuckets> {
        let boundaries = fields.take("boundaries", "an ascending list of numbers", |value| {
            numbers(value).filter(|list| list.is_sorted_by(|a, b| a < b))
        })?;
        let sizes = fields.take("sizes", "a number above 0 for each bucket", |value| {
            numbers(value).filter(|sizes| sizes.len() == boundaries.len() + 1 && !sizes.contains(&0))
        })?;
        Ok(SummaryBuckets {
            boundaries,
            sizes,
            lengths: fields.digest("lengths")?,
            shuffle: fields.flag("shuffle")?,
            drop: fields.flag("drop")?,
        })
    }
}

impl SummaryWeights {
    fn parse(value: &Value) -> Option<SummaryWeights> {
        match value {
            Value::Array(list) if list.len() <= LISTED => numbers(value).map(SummaryWeights::Listed),
            value => digest(value).map(SummaryWeights::Digest),
        }
    }
}
