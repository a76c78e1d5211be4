//! Saved states as JSON.
//!
//! ```text
//! {"v": 1, "order": {..}, "seed": 42, "epoch": 3, "pos": 182340, "n": 1281167, "fp": "99aa06d3014798d86001c324468d497f"}
//!
//! order  {"algo": "prp1", "kind": "none" | "global"}
//!        {"algo": "prp1", "kind": "block", "b": 256, "W": 1024}
//!        {"algo": "prp1", "kind": "weighted", "weights": [..] | D}
//!        {"algo": "prp1", "kind": "mixture", "weights": [..] | D, "parts": D}
//!        {"algo": "prp1", "kind": "buckets", "boundaries": [..], "sizes": [..], "shuffle": true, "drop": false, "lengths": D}
//!        any kind except mixture may have a filter, and then has "ids": D
//! D      32 hex digits: XXH3-128 of u64 words, little-endian. Up to 16 weights are a list, more are D.
//! ids    digest of the filter's survivors
//! lengths  digest of the bucket number of each row, in the order of the rows
//! parts  digest of nine words per component: kind (0 none, 1 global, 2 block, 3 weighted), b, W, first record, positions per
//!        epoch, digest of the survivors (high half, low half), digest of the weights (high half, low half). Absent values are 0.
//! ```

use super::{LISTED, SpecSummary, State, SummaryBuckets, SummaryKind, SummaryWeights, is_digest, refused};
use crate::error::Result;
use crate::order::digest::hex;
use serde_json::{Map, Value};

const VERSION: u64 = 1;
const ALGORITHM: &str = "prp1";

impl State {
    /// Returns the state as JSON, less than 1 KiB, or 4 KiB with buckets.
    pub fn to_json(&self) -> String {
        let number = Value::from;
        let fields = [
            ("v", number(VERSION)),
            ("order", Value::Object(self.order.to_json())),
            ("seed", number(self.seed)),
            ("epoch", number(self.epoch)),
            ("pos", number(self.position)),
            ("n", number(self.n)),
            ("fp", Value::from(self.fingerprint.as_str())),
        ];
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()).to_string()
    }

    /// Parses a state from JSON.
    ///
    /// # Errors
    /// [`OrderError::State`](crate::error::OrderError::State) if the text is not a state of this version and algorithm. Unknown fields
    /// are refused, because they may mean a different order.
    pub fn from_json(text: &str) -> Result<State> {
        let json = serde_json::from_str(text).map_err(|e| refused("json", "a saved state", e))?;
        let Value::Object(mut fields) = json else { return Err(refused("json", "an object", json)) };
        // The version is checked first, because the meaning of all other fields depends on it.
        let version = number(&mut fields, "v")?;
        if version != VERSION {
            return Err(refused("v", VERSION, version));
        }
        let order = match fields.remove("order") {
            Some(Value::Object(order)) => SpecSummary::from_json(&order)?,
            other => return Err(refused("order", "an object", other.unwrap_or_default())),
        };
        let state = State {
            order,
            seed: number(&mut fields, "seed")?,
            epoch: number(&mut fields, "epoch")?,
            position: number(&mut fields, "pos")?,
            n: number(&mut fields, "n")?,
            fingerprint: match fields.remove("fp") {
                Some(Value::String(fp)) if is_digest(&fp) => fp,
                other => return Err(refused("fp", "32 hex digits", other.unwrap_or_default())),
            },
        };
        match fields.keys().next() {
            Some(other) => Err(refused("json", "no other fields", other)),
            None => Ok(state),
        }
    }
}

impl SpecSummary {
    fn to_json(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("algo", ALGORITHM.into());
        put("kind", self.kind.name().into());
        match &self.kind {
            SummaryKind::Sequential | SummaryKind::Global => {}
            SummaryKind::Block { block, window } => {
                put("b", (*block).into());
                put("W", (*window).into());
            }
            SummaryKind::Weighted(weights) => {
                put("weights", weights.to_json());
            }
            SummaryKind::Mixture(weights, parts) => {
                put("weights", weights.to_json());
                put("parts", hex(*parts).into());
            }
            SummaryKind::Buckets(SummaryBuckets { boundaries, sizes, shuffle, drop, lengths }) => {
                put("boundaries", boundaries.clone().into());
                put("sizes", sizes.clone().into());
                put("shuffle", (*shuffle).into());
                put("drop", (*drop).into());
                put("lengths", hex(*lengths).into());
            }
        }
        if let Some(ids) = self.ids {
            put("ids", hex(ids).into());
        }
        fields
    }

    /// Parses the `order` object. It accepts the fields of the given kind, and no others.
    fn from_json(order: &Map<String, Value>) -> Result<SpecSummary> {
        let text = |field| match order.get(field) {
            Some(Value::String(text)) => Ok(text.as_str()),
            other => Err(refused(field, "a string", other.cloned().unwrap_or_default())),
        };
        let algorithm = text("algo")?;
        if algorithm != ALGORITHM {
            return Err(refused("algo", ALGORITHM, algorithm));
        }
        let value = |field| order.get(field).unwrap_or(&Value::Null);
        let bad = |field, expected| refused(field, expected, value(field));
        let size = |field| {
            value(field).as_u64().filter(|size| *size > 0).ok_or_else(|| bad(field, "a number above 0"))
        };
        let weights = || {
            SummaryWeights::from_json(value("weights"))
                .ok_or_else(|| bad("weights", "a list of up to 16 weights, or 32 hex digits"))
        };
        let (kind, needed): (_, &[&str]) = match text("kind")? {
            "none" => (SummaryKind::Sequential, &[]),
            "global" => (SummaryKind::Global, &[]),
            "block" => (SummaryKind::Block { block: size("b")?, window: size("W")? }, &["b", "W"]),
            "weighted" => (SummaryKind::Weighted(weights()?), &["weights"]),
            "mixture" => {
                let parts = digest(value("parts")).ok_or_else(|| bad("parts", "32 hex digits"));
                (SummaryKind::Mixture(weights()?, parts?), &["weights", "parts"])
            }
            "buckets" => (
                SummaryKind::Buckets(SummaryBuckets::from_json(&value)?),
                &["boundaries", "sizes", "shuffle", "drop", "lengths"],
            ),
            other => return Err(refused("kind", "none, global, block, weighted, mixture or buckets", other)),
        };
        let mut ids = None;
        for (field, value) in order {
            if ["algo", "kind"].contains(&field.as_str()) || needed.contains(&field.as_str()) {
                continue;
            }
            ids = digest(value).filter(|_| field == "ids" && !matches!(kind, SummaryKind::Mixture(..)));
            if ids.is_none() {
                return Err(refused("order", "no other fields", field));
            }
        }
        Ok(SpecSummary { kind, ids })
    }
}

impl SummaryBuckets {
    /// Parses the fields of buckets. `value` returns the field with a name.
    fn from_json<'a>(value: &impl Fn(&'static str) -> &'a Value) -> Result<SummaryBuckets> {
        let bad = |field, expected| refused(field, expected, value(field));
        let list = |field| {
            let numbers = value(field).as_array()?.iter().map(Value::as_u64);
            numbers.collect::<Option<Vec<u64>>>()
        };
        let flag = |field| value(field).as_bool().ok_or_else(|| bad(field, "true or false"));
        let ascends = |list: &Vec<u64>| list.is_sorted_by(|a, b| a < b);
        let boundaries = list("boundaries").filter(ascends);
        let boundaries = boundaries.ok_or_else(|| bad("boundaries", "an ascending list of numbers"))?;
        let sizes = list("sizes").filter(|sizes| sizes.len() == boundaries.len() + 1 && !sizes.contains(&0));
        let sizes = sizes.ok_or_else(|| bad("sizes", "a number above 0 for each bucket"))?;
        let lengths = digest(value("lengths")).ok_or_else(|| bad("lengths", "32 hex digits"))?;
        Ok(SummaryBuckets { boundaries, sizes, shuffle: flag("shuffle")?, drop: flag("drop")?, lengths })
    }
}

impl SummaryWeights {
    fn to_json(&self) -> Value {
        match self {
            SummaryWeights::Listed(list) => list.clone().into(),
            SummaryWeights::Digest(digest) => hex(*digest).into(),
        }
    }

    fn from_json(value: &Value) -> Option<SummaryWeights> {
        match value {
            Value::Array(list) if list.len() <= LISTED => {
                list.iter().map(Value::as_u64).collect::<Option<_>>().map(SummaryWeights::Listed)
            }
            value => digest(value).map(SummaryWeights::Digest),
        }
    }
}

/// Parses a digest from 32 hex digits.
fn digest(value: &Value) -> Option<u128> {
    let text = value.as_str().filter(|text| is_digest(text))?;
    u128::from_str_radix(text, 16).ok()
}

fn number(fields: &mut Map<String, Value>, name: &'static str) -> Result<u64> {
    let value = fields.remove(name).unwrap_or_default();
    value.as_u64().ok_or_else(|| refused(name, "a number from 0 to 2^64 - 1", value))
}
