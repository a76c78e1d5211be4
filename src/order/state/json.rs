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
//!        {"algo": "prp1", "kind": "mix", "weights": [..], "unit": "row" | "batch", "batch": B, "stop": "never" | "first" | "all",
//!         "b": [..], "W": [..], "parts": D}
//!        with "batch" for the unit batch only, and "b" and "W" if a component has a block order
//!        any kind except mixture and mix may have a filter, and then has "ids": D
//! mix    {"from": 0, "given": [..], "E": 1281167} beside `order`, for the kind mix only
//! D      32 hex digits: XXH3-128 of u64 words, little-endian. Up to 16 weights are a list, more are D.
//! ids    digest of the filter's survivors
//! lengths  digest of the bucket number of each row, in the order of the rows
//! parts  digest of nine words per component: kind (0 none, 1 global, 2 block, 3 weighted), b, W, first record, positions per
//!        epoch, digest of the survivors (high half, low half), digest of the weights (high half, low half). Absent values are 0.
//!        The parts of the kind mix have no b and no W.
//! ```

use super::{
    LISTED, MixStart, MixSummary, STOPS, SpecSummary, State, SummaryBuckets, SummaryKind, SummaryWeights,
    is_digest, refused, stop_name,
};
use crate::error::Result;
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
            ("order", Value::Object(self.order.to_json())),
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
        let json = serde_json::from_str(text).map_err(|e| refused("json", "a saved state", e))?;
        let Value::Object(mut fields) = json else { return Err(refused("json", "an object", json)) };
        // The version is checked first, because the meaning of all other fields depends on it.
        let version = number(&mut fields, "v")?;
        if version != VERSION {
            return Err(refused("v", VERSION, version));
        }
        let order = match fields.remove("order") {
            Some(Value::Object(order)) => SpecSummary::from_json(&order)?,
            other => return Err(refused("order", "an object", other.unwrap_or(Value::Null))),
        };
        let position = number(&mut fields, "pos")?;
        let position =
            position.checked_mul(order.unit()).ok_or_else(|| refused("pos", "a smaller number", position))?;
        let state = State {
            mix: match (&order.kind, fields.remove("mix")) {
                (SummaryKind::Mix(summary), Some(Value::Object(mix))) => Some(mix_start(mix, summary)?),
                (SummaryKind::Mix(_), other) => {
                    return Err(refused("mix", "an object", other.unwrap_or(Value::Null)));
                }
                (_, None) => None,
                (_, Some(_)) => return Err(refused("json", "no other fields", "mix")),
            },
            order,
            seed: number(&mut fields, "seed")?,
            epoch: number(&mut fields, "epoch")?,
            position,
            n: number(&mut fields, "n")?,
            fingerprint: match fields.remove("fp") {
                Some(Value::String(fp)) if is_digest(&fp) => fp,
                other => return Err(refused("fp", "32 hex digits", other.unwrap_or(Value::Null))),
            },
        };
        match fields.keys().next() {
            Some(other) => Err(refused("json", "no other fields", other)),
            None => Ok(state),
        }
    }
}

/// Parses the object `mix`.
fn mix_start(mut mix: Map<String, Value>, summary: &MixSummary) -> Result<MixStart> {
    let given = mix.remove("given").unwrap_or(Value::Null);
    let expected = || refused("given", "a list of one number per component", &given);
    let start = MixStart {
        from: number(&mut mix, "from")?,
        given: numbers(&given).filter(|given| given.len() == summary.weights.len()).ok_or_else(expected)?,
        samples: match number(&mut mix, "E")? {
            0 => return Err(refused("E", "a number above 0", 0)),
            samples => samples,
        },
    };
    match mix.keys().next() {
        Some(other) => Err(refused("mix", "no other fields", other)),
        None => Ok(start),
    }
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

impl SpecSummary {
    /// Returns the number of positions that a state counts as one.
    fn unit(&self) -> u64 {
        match &self.kind {
            SummaryKind::Mix(MixSummary { batch: Some(batch), .. }) => (*batch).max(1),
            _ => 1,
        }
    }

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
            SummaryKind::BalancedBlock { block, window, classes } => {
                put("b", (*block).into());
                put("W", (*window).into());
                put("classes", hex(*classes).into());
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
            SummaryKind::Mix(mix) => {
                put("weights", mix.weights.clone().into());
                put("parts", hex(mix.parts).into());
                put("unit", mix.unit().into());
                put("stop", stop_name(mix.stop).into());
                if let Some(batch) = mix.batch {
                    put("batch", batch.into());
                }
                if !mix.blocks.is_empty() {
                    put("b", mix.blocks.iter().map(|(block, _)| *block).collect());
                    put("W", mix.blocks.iter().map(|(_, window)| *window).collect());
                }
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
            other => Err(refused(field, "a string", other.cloned().unwrap_or(Value::Null))),
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
        let parts = || digest(value("parts")).ok_or_else(|| bad("parts", "32 hex digits"));
        let (kind, needed): (_, &[&str]) = match text("kind")? {
            "none" => (SummaryKind::Sequential, &[]),
            "global" => (SummaryKind::Global, &[]),
            "block" => (SummaryKind::Block { block: size("b")?, window: size("W")? }, &["b", "W"]),
            "balanced" => {
                let classes = digest(value("classes")).ok_or_else(|| bad("classes", "32 hex digits"))?;
                let block = size("b")?;
                let window = size("W")?;
                (SummaryKind::BalancedBlock { block, window, classes }, &["b", "W", "classes"])
            }
            "weighted" => (SummaryKind::Weighted(weights()?), &["weights"]),
            "mixture" => (SummaryKind::Mixture(weights()?, parts()?), &["weights", "parts"]),
            "mix" => {
                let weights = numbers(value("weights")).filter(|list| !list.is_empty() && !list.contains(&0));
                let weights = weights.ok_or_else(|| bad("weights", "a list of weights"))?;
                let stop = STOPS.iter().find(|(name, _)| Some(*name) == value("stop").as_str());
                let (_, stop) = *stop.ok_or_else(|| bad("stop", "never, first or all"))?;
                let batch = match value("unit").as_str() {
                    Some("row") => None,
                    Some("batch") => Some(size("batch")?),
                    _ => return Err(bad("unit", "row or batch")),
                };
                let sizes = |field| {
                    let sizes = numbers(value(field)).filter(|sizes| sizes.len() == weights.len());
                    sizes.ok_or_else(|| bad(field, "a list of one number per component"))
                };
                let has_blocks = order.contains_key("b") || order.contains_key("W");
                let blocks =
                    if has_blocks { sizes("b")?.into_iter().zip(sizes("W")?).collect() } else { Vec::new() };
                let needed: &[&str] = match batch {
                    None => &["weights", "parts", "unit", "stop", "b", "W"],
                    Some(_) => &["weights", "parts", "unit", "stop", "b", "W", "batch"],
                };
                (SummaryKind::Mix(MixSummary { weights, parts: parts()?, batch, stop, blocks }), needed)
            }
            "buckets" => (
                SummaryKind::Buckets(SummaryBuckets::from_json(&value)?),
                &["boundaries", "sizes", "shuffle", "drop", "lengths"],
            ),
            other => {
                return Err(refused(
                    "kind",
                    "none, global, block, balanced, weighted, mixture, mix or buckets",
                    other,
                ));
            }
        };
        let mut ids = None;
        for (field, value) in order {
            if ["algo", "kind"].contains(&field.as_str()) || needed.contains(&field.as_str()) {
                continue;
            }
            ids = digest(value).filter(|_| {
                field == "ids" && !matches!(kind, SummaryKind::Mixture(..) | SummaryKind::Mix(_))
            });
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
    let value = fields.remove(name).unwrap_or(Value::Null);
    value.as_u64().ok_or_else(|| refused(name, "a number from 0 to 2^64 - 1", value))
}
