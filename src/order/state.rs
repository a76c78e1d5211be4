//! What a checkpoint keeps of an order: under 1 KiB of JSON.
//!
//! ```text
//! {"v": 1, "order": {..}, "seed": 42, "epoch": 3, "pos": 182340, "n": 1281167, "fp": "99aa06d3014798d86001c324468d497f"}
//!
//! order  {"algo": "prp1", "kind": "none" | "global"}
//!        {"algo": "prp1", "kind": "block", "b": 256, "W": 1024}
//!        {"algo": "prp1", "kind": "weighted", "weights": [..] | D}
//!        {"algo": "prp1", "kind": "mixture", "weights": [..] | D, "parts": D}
//!        any but a mixture over a filter: and "ids": D
//! D      32 hex digits: XXH3-128 over u64, little-endian. Weights are a list up to 16 of them.
//! ids    the survivors
//! parts  for each component kind (0 none, 1 global, 2 block, 3 weighted), b, W, first record, positions in an epoch, the ids'
//!        and the weights' digest, high half and low half; 0 for what it does not have
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::digest::{digest, hex};
use super::epoch::Order;
use super::part::{Kind, Part};
use super::spec::Spec;
use crate::error::{Error, OrderError, Result};
use serde_json::{Map, Value};

const VERSION: u64 = 1;
const ALGORITHM: &str = "prp1";
/// As many weights stand in a state as they are; of more their digest.
const LISTED: usize = 16;

/// Where a run stands: all that a checkpoint has to keep of the data.
///
/// Six numbers and names, the same on all ranks. Going on from it costs nothing: there is no generator to wind forward, no buffer
/// to fill. It is refused where it does not belong: other records, another kind of order, another algorithm.
///
/// ```
/// use tfseek::order::{Order, Spec, State};
/// # let fingerprint = "99aa06d3014798d86001c324468d497f";
/// let order = Order::new(&Spec::Global, 1000, 42, 3)?;
/// let saved = State::new(&order, 640, fingerprint)?.to_json();
///
/// let state = State::from_json(&saved)?;
/// let again = state.resume(&Spec::Global, 1000, fingerprint)?;
/// assert_eq!(again.get(state.position())?, order.get(640)?);
/// let refused = state.resume(&Spec::Global, 1001, fingerprint).unwrap_err();
/// assert_eq!(refused.to_string(), "saved state refused: n: expected 1001, found 1000");
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    order: Map<String, Value>,
    seed: u64,
    epoch: u64,
    position: u64,
    n: u64,
    fingerprint: String,
}

impl State {
    /// The state of a run that has delivered the positions below `position` of this order. `fingerprint` is the dataset's.
    ///
    /// # Errors
    /// [`OrderError::Position`] beyond the end of the epoch, and [`OrderError::State`] for what is no fingerprint.
    pub fn new(order: &Order, position: u64, fingerprint: &str) -> Result<State> {
        if position > order.len() {
            return Err(OrderError::Position { position, len: order.len() }.into());
        }
        if !is_digest(fingerprint) {
            return Err(refused("fp", "32 hex digits", format!("{fingerprint:?}")));
        }
        Ok(State {
            order: summary(order.spec(), order.records())?,
            seed: order.seed(),
            epoch: order.epoch(),
            position,
            n: order.records(),
            fingerprint: fingerprint.to_owned(),
        })
    }

    /// The order to go on with: that of the saved seed and epoch, for a run that was asked for `spec` over `n` records with this
    /// fingerprint. The run goes on at [`position`](State::position).
    ///
    /// The sizes of a block order are the state's, not the spec's: what was chosen for one batch size stays when that changes.
    ///
    /// # Errors
    /// [`OrderError::State`] names what the state has other than this run; and those of [`Order::new`].
    pub fn resume(&self, spec: &Spec, n: u64, fingerprint: &str) -> Result<Order> {
        if self.n != n {
            return Err(refused("n", n, self.n));
        }
        if self.fingerprint != fingerprint {
            return Err(refused("fp", fingerprint, &self.fingerprint));
        }
        let spec = self.with_sizes(spec);
        let want = summary(&spec, n)?;
        // The kind first: where it is another, so is all else.
        for field in ["kind", "algo", "b", "W", "weights", "parts", "ids"] {
            let (want, found) = (want.get(field), self.order.get(field));
            if want != found {
                let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
                return Err(refused(field, text(want), text(found)));
            }
        }
        let order = Order::new(&spec, n, self.seed, self.epoch)?;
        if self.position > order.len() {
            return Err(OrderError::Position { position: self.position, len: order.len() }.into());
        }
        Ok(order)
    }

    /// The same spec with the saved sizes of blocks and windows.
    fn with_sizes(&self, spec: &Spec) -> Spec {
        let saved = |field: &str| self.order.get(field).and_then(Value::as_u64);
        match (spec, saved("b"), saved("W")) {
            (Spec::Block { .. }, Some(block), Some(window)) => Spec::Block { block, window },
            (Spec::Filtered { subset, order }, ..) => self.with_sizes(order).filtered(subset.clone()),
            (spec, ..) => spec.clone(),
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Positions of the epoch that were delivered.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Records of the dataset.
    pub fn records(&self) -> u64 {
        self.n
    }

    /// The dataset's fingerprint.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// As JSON, less than 1 KiB.
    pub fn to_json(&self) -> String {
        let number = Value::from;
        let fields = [
            ("v", number(VERSION)),
            ("order", Value::Object(self.order.clone())),
            ("seed", number(self.seed)),
            ("epoch", number(self.epoch)),
            ("pos", number(self.position)),
            ("n", number(self.n)),
            ("fp", Value::from(self.fingerprint.as_str())),
        ];
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()).to_string()
    }

    /// From JSON.
    ///
    /// # Errors
    /// [`OrderError::State`] for what is no state, or of another version or algorithm. Nothing unknown is passed over: it may
    /// be what makes the order another.
    pub fn from_json(text: &str) -> Result<State> {
        let json = serde_json::from_str(text).map_err(|e| refused("json", "a saved state", e))?;
        let Value::Object(mut fields) = json else { return Err(refused("json", "an object", json)) };
        // The version first: it says what the rest means.
        let version = number(&mut fields, "v")?;
        if version != VERSION {
            return Err(refused("v", VERSION, version));
        }
        let order = match fields.remove("order") {
            Some(Value::Object(order)) => order,
            other => return Err(refused("order", "an object", other.unwrap_or_default())),
        };
        check(&order)?;
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

/// An order object that some spec may have: kind, algorithm, and fields that go with them.
fn check(order: &Map<String, Value>) -> Result<()> {
    let text = |field| match order.get(field) {
        Some(Value::String(text)) => Ok(text.as_str()),
        other => Err(refused(field, "a string", other.cloned().unwrap_or_default())),
    };
    let algorithm = text("algo")?;
    if algorithm != ALGORITHM {
        return Err(refused("algo", ALGORITHM, algorithm));
    }
    let (needed, optional): (&[&str], &[&str]) = match text("kind")? {
        "none" | "global" => (&[], &["ids"]),
        "block" => (&["b", "W"], &["ids"]),
        "weighted" => (&["weights"], &["ids"]),
        "mixture" => (&["weights", "parts"], &[]),
        other => return Err(refused("kind", "none, global, block, weighted or mixture", other)),
    };
    for field in needed {
        let value = order.get(*field).unwrap_or(&Value::Null);
        let (good, what) = match *field {
            "b" | "W" => (value.as_u64().is_some_and(|size| size > 0), "a size"),
            "parts" => (value.as_str().is_some_and(is_digest), "32 hex digits"),
            _ => (is_weights(value), "a list of up to 16 weights, or 32 hex digits"),
        };
        if !good {
            return Err(refused(field, what, value));
        }
    }
    for (field, value) in order {
        let known = ["algo", "kind"].contains(&field.as_str()) || needed.contains(&field.as_str());
        let ids = optional.contains(&field.as_str()) && value.as_str().is_some_and(is_digest);
        if !known && !ids {
            return Err(refused("order", "no other fields", field));
        }
    }
    Ok(())
}

fn is_weights(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.len() <= LISTED && list.iter().all(Value::is_u64),
        Value::String(text) => is_digest(text),
        _ => false,
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// What stands in a state for a spec over `n` records.
fn summary(spec: &Spec, n: u64) -> Result<Map<String, Value>> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("algo", ALGORITHM.into());
    if let Spec::Mixture(components) = spec {
        put("kind", "mixture".into());
        put("weights", listed(components.iter().map(|component| component.weight)));
        let mut words = Vec::with_capacity(9 * components.len());
        for component in components {
            words.extend(words_of(&Part::new(&component.order, component.records.clone().unwrap_or(0..n))?));
        }
        put("parts", hex(digest(words)).into());
        return Ok(fields);
    }
    let part = Part::new(spec, 0..n)?;
    match &part.kind {
        Kind::Sequential => put("kind", "none".into()),
        Kind::Global => put("kind", "global".into()),
        &Kind::Block { block, window } => {
            put("kind", "block".into());
            put("b", block.into());
            put("W", window.into())
        }
        Kind::Weighted(weights) => {
            put("kind", "weighted".into());
            put(
                "weights",
                match weights.as_slice() {
                    few if few.len() <= LISTED => listed(few.iter().map(|weight| u64::from(*weight))),
                    _ => hex(weights.digest()).into(),
                },
            )
        }
    };
    if let Some(filter) = &part.filter {
        put("ids", hex(filter.digest()).into());
    }
    Ok(fields)
}

fn words_of(part: &Part) -> [u64; 9] {
    let (kind, block, window, weights) = match &part.kind {
        Kind::Sequential => (0, 0, 0, 0),
        Kind::Global => (1, 0, 0, 0),
        &Kind::Block { block, window } => (2, block, window, 0),
        Kind::Weighted(weights) => (3, 0, 0, weights.digest()),
    };
    let ids = part.filter.as_ref().map_or(0, |filter| filter.digest());
    let halves = |digest: u128| ((digest >> 64) as u64, digest as u64);
    let ((ids, ids_low), (weights, weights_low)) = (halves(ids), halves(weights));
    [kind, block, window, part.first, part.len, ids, ids_low, weights, weights_low]
}

fn listed(weights: impl ExactSizeIterator<Item = u64>) -> Value {
    if weights.len() <= LISTED { weights.collect() } else { hex(digest(weights)).into() }
}

fn number(fields: &mut Map<String, Value>, name: &'static str) -> Result<u64> {
    let value = fields.remove(name).unwrap_or_default();
    value.as_u64().ok_or_else(|| refused(name, "a number from 0 to 2^64 - 1", value))
}

#[cold]
fn refused(field: &str, expected: impl ToString, found: impl ToString) -> Error {
    let (expected, found) = (expected.to_string().into(), found.to_string().into());
    OrderError::State { field: field.into(), expected, found }.into()
}
