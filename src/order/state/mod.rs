//! The saved position of a run in an order: less than 1 KiB as JSON ([`json`]), or 4 KiB with buckets and for
//! a mix.

#[cfg(feature = "json")]
mod json;

use super::digest::{digest, hex};
use super::epoch::Order;
use super::source::{OrderSource, SourceKind};
use super::spec::{Component, MixSpec, MixStart, MixStop, Spec};
use crate::error::{Error, OrderError, Result};
use std::fmt;

/// Maximum number of weights that a state lists. For more weights it contains their digest.
const LISTED: usize = 16;

/// The saved position of a run: all data-loading state that a checkpoint needs.
///
/// It consists of six numbers and names, the same on all ranks. Resuming from it costs nothing: there is no
/// generator to advance and no buffer to refill. A state of other records, another kind of order or another
/// algorithm is refused.
///
/// ```
/// use tfseek::order::{Order, Spec, State};
/// # let fingerprint = "99aa06d3014798d86001c324468d497f";
/// let order = Order::new(&Spec::Global, 1000, 42, 3)?;
/// let saved = State::new(&order, 640, fingerprint)?.to_json();
///
/// let state = State::from_json(&saved)?;
/// let again = state.resume(&Spec::Global, 1000, fingerprint)?;
/// assert_eq!(again.get(state.position)?, order.get(640)?);
/// let refused = state.resume(&Spec::Global, 1001, fingerprint).unwrap_err();
/// assert_eq!(refused.to_string(), "the saved state is of another dataset: expected 1001 records, found 1000");
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    order: SpecSummary,
    seed: u64,
    /// The epoch.
    pub epoch: u64,
    /// The number of positions of the epoch that were delivered. With buckets, the number of steps.
    pub position: u64,
    n: u64,
    fingerprint: String,
    /// The start of a mix's cycles.
    mix: Option<MixStart>,
}

/// The summary of a spec in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SpecSummary {
    kind: SummaryKind,
    /// Digest of a filter's survivors.
    ids: Option<u128>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SummaryKind {
    Sequential,
    Global,
    Block {
        block: u64,
        window: u64,
    },
    /// Balanced classes in blocks: the sizes, and the digest of the records' classes.
    BalancedBlock {
        block: u64,
        window: u64,
        classes: u128,
    },
    Weighted(SummaryWeights),
    /// A mix of balanced classes: the weights, which are 1, and the digest of the components.
    Mixture(SummaryWeights, u128),
    Buckets(SummaryBuckets),
    Mix(MixSummary),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SummaryBuckets {
    boundaries: Vec<u64>,
    sizes: Vec<u64>,
    shuffle: bool,
    drop: bool,
    /// Digest of the rows' bucket numbers.
    lengths: u128,
}

/// The summary of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MixSummary {
    weights: Vec<u64>,
    /// Digest of the components, without the sizes of block orders.
    parts: u128,
    /// Number of samples of a batch, if whole batches are mixed.
    batch: Option<u64>,
    stop: MixStop,
    /// Sizes of the block order of each component, or 0. Empty if no component has one.
    blocks: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SummaryWeights {
    Listed(Vec<u64>),
    Digest(u128),
}

impl State {
    /// Creates the state of a run that has delivered the positions below `position` of this order.
    /// `fingerprint` is the dataset's.
    ///
    /// # Errors
    /// [`OrderError::Position`] if `position` is beyond the end of the epoch, and [`OrderError::State`] for
    /// an invalid fingerprint.
    pub fn new(order: &Order, position: u64, fingerprint: &str) -> Result<State> {
        if position > order.steps() {
            return Err(OrderError::Position { position, len: order.steps() }.into());
        }
        if !position.is_multiple_of(order.unit()) {
            let reason =
                format!("expected a position after whole batches of {}, found {position}", order.unit());
            return Err(Error::order(reason));
        }
        if !is_digest(fingerprint) {
            return Err(Error::state("fp", "32 hex digits", format!("{fingerprint:?}")));
        }
        let summary = SpecSummary::new(order.spec(), order.records())?;
        let is_mix = matches!(summary.kind, SummaryKind::Mix(_));
        Ok(State {
            order: summary,
            seed: order.seed(),
            epoch: order.epoch(),
            position,
            n: order.records(),
            fingerprint: fingerprint.to_owned(),
            mix: if is_mix { order.mix_start() } else { None },
        })
    }

    /// Returns the order of the saved seed and epoch, for a run of `spec` over `n` records with this
    /// fingerprint. The run resumes at [`position`](State#structfield.position).
    ///
    /// The sizes of a block order come from the state, not from the spec. They were chosen for one batch
    /// size, and stay the same if the batch size changes. The batch sizes of buckets come from the state,
    /// too.
    ///
    /// A mix may have other weights. Its cycles begin anew at the position of the state then, and each
    /// component goes on after what it has given. The length of its epochs comes from the state. A list of
    /// all changes of weights would grow, and tell only of what is past.
    ///
    /// # Errors
    /// [`OrderError::OtherState`], with the name of a field in which the state differs from this run, and the
    /// errors of [`Order::new`].
    pub fn resume(&self, spec: &Spec, n: u64, fingerprint: &str) -> Result<Order> {
        if self.n != n {
            return Err(other_state("n", Some(n.to_string()), Some(self.n.to_string())));
        }
        if self.fingerprint != fingerprint {
            return Err(other_state("fp", Some(fingerprint.to_owned()), Some(self.fingerprint.clone())));
        }
        let spec = self.with_sizes(spec);
        let expected = SpecSummary::new(&spec, n)?;
        self.order.check(&expected)?;
        let order = match (&self.order.kind, &spec) {
            (SummaryKind::Mix(saved), Spec::Mix(mix)) => self.resume_mix(saved, mix, n)?,
            _ => Order::new(&spec, n, self.seed, self.epoch)?,
        };
        if self.position > order.steps() {
            return Err(OrderError::Position { position: self.position, len: order.steps() }.into());
        }
        if self.position < order.start() {
            let expected = format!("at least {} in this epoch, where the weights changed", order.start());
            return Err(Error::state("pos", expected, self.position));
        }
        Ok(order)
    }

    /// Returns the order of a mix that goes on, possibly with other weights from this position on.
    fn resume_mix(&self, saved: &MixSummary, mix: &MixSpec, n: u64) -> Result<Order> {
        let weights = mix.weights();
        if saved.weights.len() != weights.len() {
            let list = |weights: &[u64]| Some(format!("{weights:?}"));
            return Err(other_state("weights", list(&weights), list(&saved.weights)));
        }
        let weighted = |(component, &weight): (&Component, &u64)| Component { weight, ..component.clone() };
        let components = mix.components.iter().zip(&saved.weights).map(weighted).collect();
        let old = MixSpec { components, start: self.mix.clone(), ..mix.clone() };
        let before = Order::new(&Spec::Mix(old), n, self.seed, self.epoch)?;
        if saved.weights == weights {
            return Ok(before);
        }
        if self.position > before.len() {
            return Err(OrderError::Position { position: self.position, len: before.len() }.into());
        }
        let start = before.mix_restart(self.position)?;
        Order::new(&Spec::Mix(MixSpec { start, ..mix.clone() }), n, self.seed, self.epoch)
    }

    /// Returns the spec with the saved block and window sizes, or the saved batch sizes of its buckets.
    fn with_sizes(&self, spec: &Spec) -> Spec {
        match (spec, &self.order.kind) {
            (Spec::Block { .. }, &SummaryKind::Block { block, window }) => Spec::Block { block, window },
            (Spec::BalancedBlock { classes, .. }, &SummaryKind::BalancedBlock { block, window, .. }) => {
                Spec::BalancedBlock { classes: classes.clone(), block, window }
            }
            // With other boundaries the states are compared, and differ.
            (Spec::Buckets(buckets), SummaryKind::Buckets(saved))
                if buckets.boundaries() == saved.boundaries =>
            {
                Spec::Buckets(buckets.clone().batch_sizes(saved.sizes.clone()))
            }
            (Spec::Filtered { subset, order }, _) => self.with_sizes(order).filtered(subset.clone()),
            (Spec::Mix(mix), SummaryKind::Mix(saved)) => {
                let sized = |(component, &(block, window)): (&Component, _)| Component {
                    order: with_blocks(&component.order, block, window),
                    ..component.clone()
                };
                let sizes = saved.blocks.iter().chain(std::iter::repeat(&(0, 0)));
                let components = mix.components.iter().zip(sizes).map(sized).collect();
                Spec::Mix(MixSpec { components, ..mix.clone() })
            }
            (spec, _) => spec.clone(),
        }
    }
}

/// Returns a block order with other sizes. Other orders stay, and sizes of 0 change nothing.
fn with_blocks(spec: &Spec, block: u64, window: u64) -> Spec {
    match spec {
        Spec::Block { .. } if block > 0 => Spec::Block { block, window },
        Spec::Filtered { subset, order } => with_blocks(order, block, window).filtered(subset.clone()),
        spec => spec.clone(),
    }
}

impl SpecSummary {
    /// Creates the summary of a spec over `n` records.
    fn new(spec: &Spec, n: u64) -> Result<SpecSummary> {
        if let Spec::Mix(mix) = spec {
            let kind = if mix.is_balanced() {
                SummaryKind::Mixture(SummaryWeights::new(mix.weights()), class_parts(&mix.components, n)?)
            } else {
                SummaryKind::Mix(MixSummary::new(mix, n)?)
            };
            return Ok(SpecSummary { kind, ids: None });
        }
        let source = OrderSource::new(spec, 0..n)?;
        let kind = match &source.kind {
            SourceKind::Sequential => SummaryKind::Sequential,
            SourceKind::Global => SummaryKind::Global,
            &SourceKind::Block { block, window } => SummaryKind::Block { block, window },
            SourceKind::Balanced(balanced) => SummaryKind::BalancedBlock {
                block: balanced.block,
                window: balanced.window,
                classes: balanced.classes.digest(),
            },
            SourceKind::Weighted(weights) => SummaryKind::Weighted(match weights.as_slice() {
                few if few.len() <= LISTED => {
                    SummaryWeights::Listed(few.iter().map(|w| u64::from(*w)).collect())
                }
                _ => SummaryWeights::Digest(weights.digest()),
            }),
            SourceKind::Buckets(order) => {
                let buckets = &order.buckets;
                SummaryKind::Buckets(SummaryBuckets {
                    boundaries: buckets.boundaries().to_vec(),
                    sizes: buckets.sizes.to_vec(),
                    shuffle: buckets.shuffle,
                    drop: buckets.drops(),
                    lengths: buckets.digest(),
                })
            }
        };
        Ok(SpecSummary { kind, ids: source.filter.as_ref().map(|filter| filter.digest()) })
    }

    /// Compares this saved summary with the summary of a run.
    fn check(&self, expected: &SpecSummary) -> Result<()> {
        let saved = self.fields();
        let run = expected.fields();
        for name in COMPARED {
            // Weights of a mix may change, and its sizes come from the state.
            if matches!(self.kind, SummaryKind::Mix(_)) && ["b", "W", "weights"].contains(&name) {
                continue;
            }
            let field = |fields: &[(&str, FieldValue)]| {
                fields.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string())
            };
            let expected = field(&run);
            let found = field(&saved);
            if expected != found {
                return Err(other_state(name, expected, found));
            }
        }
        Ok(())
    }

    /// Returns the fields besides the algorithm, with their names in JSON.
    fn fields(&self) -> Vec<(&'static str, FieldValue)> {
        let mut fields = vec![("kind", FieldValue::Name(self.kind.name()))];
        match &self.kind {
            SummaryKind::Sequential | SummaryKind::Global => {}
            SummaryKind::Block { block, window } => {
                fields.extend([("b", FieldValue::Number(*block)), ("W", FieldValue::Number(*window))]);
            }
            SummaryKind::BalancedBlock { block, window, classes } => fields.extend([
                ("b", FieldValue::Number(*block)),
                ("W", FieldValue::Number(*window)),
                ("classes", FieldValue::Digest(*classes)),
            ]),
            SummaryKind::Weighted(weights) => fields.push(("weights", weights.field())),
            SummaryKind::Mixture(weights, parts) => {
                fields.extend([("weights", weights.field()), ("parts", FieldValue::Digest(*parts))]);
            }
            SummaryKind::Buckets(buckets) => fields.extend([
                ("boundaries", FieldValue::List(buckets.boundaries.clone())),
                ("sizes", FieldValue::List(buckets.sizes.clone())),
                ("shuffle", FieldValue::Flag(buckets.shuffle)),
                ("drop", FieldValue::Flag(buckets.drop)),
                ("lengths", FieldValue::Digest(buckets.lengths)),
            ]),
            SummaryKind::Mix(mix) => fields.extend(mix.fields()),
        }
        fields.extend(self.ids.map(|ids| ("ids", FieldValue::Digest(ids))));
        fields
    }
}

/// The fields that are compared. The kind is the first, because the other fields differ whenever it does.
const COMPARED: [&str; 15] = [
    "kind",
    "b",
    "W",
    "unit",
    "batch",
    "stop",
    "weights",
    "parts",
    "ids",
    "classes",
    "boundaries",
    "shuffle",
    "drop",
    "lengths",
    "sizes",
];

/// The value of a field. Its text is JSON.
enum FieldValue {
    Name(&'static str),
    Digest(u128),
    Number(u64),
    Flag(bool),
    List(Vec<u64>),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Name(name) => write!(f, "\"{name}\""),
            FieldValue::Digest(digest) => write!(f, "\"{}\"", hex(*digest)),
            FieldValue::Number(number) => write!(f, "{number}"),
            FieldValue::Flag(flag) => write!(f, "{flag}"),
            FieldValue::List(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                write!(f, "[{}]", numbers.join(","))
            }
        }
    }
}

impl SummaryKind {
    fn name(&self) -> &'static str {
        match self {
            SummaryKind::Sequential => "none",
            SummaryKind::Global => "global",
            SummaryKind::Block { .. } => "block",
            SummaryKind::BalancedBlock { .. } => "balanced",
            SummaryKind::Weighted(_) => "weighted",
            SummaryKind::Mixture(..) => "mixture",
            SummaryKind::Buckets(_) => "buckets",
            SummaryKind::Mix(_) => "mix",
        }
    }
}

impl MixSummary {
    fn new(mix: &MixSpec, n: u64) -> Result<MixSummary> {
        let mut words = Vec::with_capacity(7 * mix.components.len());
        let mut blocks = Vec::new();
        for component in &mix.components {
            let [kind, block, window, rest @ ..] = words_of(&OrderSource::component(component, n)?);
            words.push(kind);
            words.extend(rest);
            blocks.push((block, window));
        }
        if blocks.iter().all(|(block, _)| *block == 0) {
            blocks.clear();
        }
        let weights = mix.weights();
        let parts = digest(words);
        Ok(MixSummary { weights, parts, batch: mix.batch, stop: mix.stop, blocks })
    }

    fn fields(&self) -> Vec<(&'static str, FieldValue)> {
        let mut fields = vec![
            ("weights", FieldValue::List(self.weights.clone())),
            ("parts", FieldValue::Digest(self.parts)),
            ("unit", FieldValue::Name(if self.batch.is_some() { "batch" } else { "row" })),
            ("stop", FieldValue::Name(stop_name(self.stop))),
        ];
        fields.extend(self.batch.map(|batch| ("batch", FieldValue::Number(batch))));
        if !self.blocks.is_empty() {
            let blocks = self.blocks.iter().map(|(block, _)| *block).collect();
            let windows = self.blocks.iter().map(|(_, window)| *window).collect();
            fields.extend([("b", FieldValue::List(blocks)), ("W", FieldValue::List(windows))]);
        }
        fields
    }
}

/// Names of the ends of an epoch in states.
const STOPS: [(&str, MixStop); 3] =
    [("never", MixStop::Never), ("first", MixStop::First), ("all", MixStop::All)];

fn stop_name(stop: MixStop) -> &'static str {
    STOPS.iter().find(|(_, of)| *of == stop).map_or("", |(name, _)| name)
}

/// Returns the digest of the components of balanced classes.
fn class_parts(components: &[Component], n: u64) -> Result<u128> {
    let mut words = Vec::with_capacity(9 * components.len());
    for component in components {
        words.extend(words_of(&OrderSource::component(component, n)?));
    }
    Ok(digest(words))
}

impl SummaryWeights {
    fn new(weights: Vec<u64>) -> SummaryWeights {
        if weights.len() <= LISTED {
            SummaryWeights::Listed(weights)
        } else {
            SummaryWeights::Digest(digest(weights))
        }
    }

    fn field(&self) -> FieldValue {
        match self {
            SummaryWeights::Listed(weights) => FieldValue::List(weights.clone()),
            SummaryWeights::Digest(digest) => FieldValue::Digest(*digest),
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Returns the words of a component for the digest `parts`.
fn words_of(source: &OrderSource) -> [u64; 9] {
    let (kind, block, window, weights) = match &source.kind {
        SourceKind::Sequential => (0, 0, 0, 0),
        SourceKind::Global => (1, 0, 0, 0),
        &SourceKind::Block { block, window } => (2, block, window, 0),
        SourceKind::Weighted(weights) => (3, 0, 0, weights.digest()),
        // A component has neither of these: `OrderSource::component` refuses them.
        SourceKind::Buckets(_) => (4, 0, 0, 0),
        SourceKind::Balanced(balanced) => (5, balanced.block, balanced.window, balanced.classes.digest()),
    };
    let ids = source.filter.as_ref().map_or(0, |filter| filter.digest());
    let halves = |digest: u128| ((digest >> 64) as u64, digest as u64);
    let ((ids, ids_low), (weights, weights_low)) = (halves(ids), halves(weights));
    [kind, block, window, source.first, source.len, ids, ids_low, weights, weights_low]
}

#[cold]
fn other_state(field: &'static str, expected: Option<String>, found: Option<String>) -> Error {
    let expected = expected.map(Box::from);
    let found = found.map(Box::from);
    OrderError::OtherState { field, expected, found }.into()
}
