//! The saved position of a run in an order: less than 1 KiB as JSON ([`json`]), or 4 KiB with buckets.

#[cfg(feature = "json")]
mod json;

use super::digest::{digest, hex};
use super::epoch::Order;
use super::source::{OrderSource, SourceKind};
use super::spec::Spec;
use crate::error::{Error, OrderError, Result};

/// Maximum number of weights that a state lists. For more weights it contains their digest.
const LISTED: usize = 16;

/// The saved position of a run: all data-loading state that a checkpoint needs.
///
/// It consists of six numbers and names, the same on all ranks. Resuming from it costs nothing: there is no generator to advance and
/// no buffer to refill. A state of other records, another kind of order or another algorithm is refused.
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
    Weighted(SummaryWeights),
    /// Weights, and the digest of the components.
    Mixture(SummaryWeights, u128),
    Buckets(SummaryBuckets),
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum SummaryWeights {
    Listed(Vec<u64>),
    Digest(u128),
}

impl State {
    /// Creates the state of a run that has delivered the positions below `position` of this order. `fingerprint` is the dataset's.
    ///
    /// # Errors
    /// [`OrderError::Position`] if `position` is beyond the end of the epoch, and [`OrderError::State`] for an invalid fingerprint.
    pub fn new(order: &Order, position: u64, fingerprint: &str) -> Result<State> {
        if position > order.steps() {
            return Err(OrderError::Position { position, len: order.steps() }.into());
        }
        if !is_digest(fingerprint) {
            return Err(refused("fp", "32 hex digits", format!("{fingerprint:?}")));
        }
        Ok(State {
            order: SpecSummary::new(order.spec(), order.records())?,
            seed: order.seed(),
            epoch: order.epoch(),
            position,
            n: order.records(),
            fingerprint: fingerprint.to_owned(),
        })
    }

    /// Returns the order of the saved seed and epoch, for a run of `spec` over `n` records with this fingerprint. The run resumes at
    /// [`position`](State#structfield.position).
    ///
    /// The sizes of a block order come from the state, not from the spec. They were chosen for one batch size, and stay the same if
    /// the batch size changes. The batch sizes of buckets come from the state, too.
    ///
    /// # Errors
    /// [`OrderError::OtherState`], with the name of a field in which the state differs from this run, and the errors of [`Order::new`].
    pub fn resume(&self, spec: &Spec, n: u64, fingerprint: &str) -> Result<Order> {
        if self.n != n {
            return Err(other_state("n", Some(n.to_string()), Some(self.n.to_string())));
        }
        if self.fingerprint != fingerprint {
            return Err(other_state("fp", Some(fingerprint.to_owned()), Some(self.fingerprint.clone())));
        }
        let spec = self.with_sizes(spec);
        self.order.check(&SpecSummary::new(&spec, n)?)?;
        let order = Order::new(&spec, n, self.seed, self.epoch)?;
        if self.position > order.steps() {
            return Err(OrderError::Position { position: self.position, len: order.steps() }.into());
        }
        Ok(order)
    }

    /// Returns the spec with the saved block and window sizes, or the saved batch sizes of its buckets.
    fn with_sizes(&self, spec: &Spec) -> Spec {
        match (spec, &self.order.kind) {
            (Spec::Block { .. }, &SummaryKind::Block { block, window }) => Spec::Block { block, window },
            // With other boundaries the states are compared, and differ.
            (Spec::Buckets(buckets), SummaryKind::Buckets(saved))
                if buckets.boundaries() == saved.boundaries =>
            {
                Spec::Buckets(buckets.clone().batch_sizes(saved.sizes.clone()))
            }
            (Spec::Filtered { subset, order }, _) => self.with_sizes(order).filtered(subset.clone()),
            (spec, _) => spec.clone(),
        }
    }
}

impl SpecSummary {
    /// Creates the summary of a spec over `n` records.
    fn new(spec: &Spec, n: u64) -> Result<SpecSummary> {
        if let Spec::Mixture(components) = spec {
            let weights =
                SummaryWeights::new(components.len(), components.iter().map(|component| component.weight));
            let mut words = Vec::with_capacity(9 * components.len());
            for component in components {
                words.extend(words_of(&OrderSource::component(
                    &component.order,
                    component.records.clone().unwrap_or(0..n),
                )?));
            }
            return Ok(SpecSummary { kind: SummaryKind::Mixture(weights, digest(words)), ids: None });
        }
        let source = OrderSource::new(spec, 0..n)?;
        let kind = match &source.kind {
            SourceKind::Sequential => SummaryKind::Sequential,
            SourceKind::Global => SummaryKind::Global,
            &SourceKind::Block { block, window } => SummaryKind::Block { block, window },
            SourceKind::Weighted(weights) => SummaryKind::Weighted(match weights.as_slice() {
                few if few.len() <= LISTED => {
                    SummaryWeights::Listed(few.iter().map(|w| u64::from(*w)).collect())
                }
                _ => SummaryWeights::Digest(weights.digest()),
            }),
            SourceKind::Buckets(order) => {
                let buckets = order.buckets();
                SummaryKind::Buckets(SummaryBuckets {
                    boundaries: buckets.boundaries().to_vec(),
                    sizes: buckets.sizes().to_vec(),
                    shuffle: buckets.is_shuffled(),
                    drop: buckets.drops(),
                    lengths: buckets.digest(),
                })
            }
        };
        Ok(SpecSummary { kind, ids: source.filter.as_ref().map(|filter| filter.digest()) })
    }

    /// Compares this saved summary with that of a run.
    fn check(&self, expected: &SpecSummary) -> Result<()> {
        // The kind is compared first, because the other fields differ whenever the kind does.
        let fields = [
            "kind",
            "b",
            "W",
            "weights",
            "parts",
            "ids",
            "boundaries",
            "shuffle",
            "drop",
            "lengths",
            "sizes",
        ];
        for field in fields {
            let (expected, found) = (expected.field(field), self.field(field));
            if expected != found {
                return Err(other_state(field, expected, found));
            }
        }
        Ok(())
    }

    /// Returns the text of a field as in JSON.
    fn field(&self, name: &str) -> Option<String> {
        let quoted = |text: &str| format!("\"{text}\"");
        let list =
            |list: &[u64]| format!("[{}]", list.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
        match (name, &self.kind) {
            ("kind", kind) => Some(quoted(kind.name())),
            ("b", SummaryKind::Block { block, .. }) => Some(block.to_string()),
            ("W", SummaryKind::Block { window, .. }) => Some(window.to_string()),
            ("weights", SummaryKind::Weighted(weights) | SummaryKind::Mixture(weights, _)) => {
                Some(match weights {
                    SummaryWeights::Listed(weights) => list(weights),
                    SummaryWeights::Digest(digest) => quoted(&hex(*digest)),
                })
            }
            ("parts", SummaryKind::Mixture(_, parts)) => Some(quoted(&hex(*parts))),
            ("boundaries", SummaryKind::Buckets(buckets)) => Some(list(&buckets.boundaries)),
            ("sizes", SummaryKind::Buckets(buckets)) => Some(list(&buckets.sizes)),
            ("shuffle", SummaryKind::Buckets(buckets)) => Some(buckets.shuffle.to_string()),
            ("drop", SummaryKind::Buckets(buckets)) => Some(buckets.drop.to_string()),
            ("lengths", SummaryKind::Buckets(buckets)) => Some(quoted(&hex(buckets.lengths))),
            ("ids", _) => self.ids.map(|ids| quoted(&hex(ids))),
            _ => None,
        }
    }
}

impl SummaryKind {
    fn name(&self) -> &'static str {
        match self {
            SummaryKind::Sequential => "none",
            SummaryKind::Global => "global",
            SummaryKind::Block { .. } => "block",
            SummaryKind::Weighted(_) => "weighted",
            SummaryKind::Mixture(..) => "mixture",
            SummaryKind::Buckets(_) => "buckets",
        }
    }
}

impl SummaryWeights {
    fn new(count: usize, weights: impl Iterator<Item = u64>) -> SummaryWeights {
        if count <= LISTED {
            SummaryWeights::Listed(weights.collect())
        } else {
            SummaryWeights::Digest(digest(weights))
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
        // A component has no buckets: `OrderSource::component` refuses them.
        SourceKind::Buckets(_) => (4, 0, 0, 0),
    };
    let ids = source.filter.as_ref().map_or(0, |filter| filter.digest());
    let halves = |digest: u128| ((digest >> 64) as u64, digest as u64);
    let ((ids, ids_low), (weights, weights_low)) = (halves(ids), halves(weights));
    [kind, block, window, source.first, source.len, ids, ids_low, weights, weights_low]
}

#[cold]
fn other_state(field: &'static str, expected: Option<String>, found: Option<String>) -> Error {
    let (expected, found) = (expected.map(Box::from), found.map(Box::from));
    OrderError::OtherState { field, expected, found }.into()
}

#[cold]
fn refused(field: &str, expected: impl ToString, found: impl ToString) -> Error {
    let (expected, found) = (expected.to_string().into(), found.to_string().into());
    OrderError::State { field: field.into(), expected, found }.into()
}
