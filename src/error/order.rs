//! Errors about orders, ranks' shares and saved states.

use std::fmt;

/// The reason why an order, a rank's share or a saved state is refused.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// A position is not below the length of the epoch.
    Position {
        /// Requested position.
        position: u64,
        /// Number of positions in the epoch.
        len: u64,
    },
    /// A global batch size is 0, or not a multiple of the number of ranks.
    Batch {
        /// Size of the global batch in samples.
        batch: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// A rank is not below the number of ranks.
    Rank {
        /// Requested rank.
        rank: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// A weight of a mixture is invalid.
    Weight {
        /// Index of the weight, counted from 0.
        index: usize,
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// A block order has more windows than there are random streams.
    Windows {
        /// Number of windows.
        found: u64,
        /// Limit of the number.
        limit: u64,
    },
    /// Two windows of a block order exceed the memory budget.
    Memory {
        /// Number of bytes of two windows.
        need: u64,
        /// Memory budget in bytes.
        budget: u64,
        /// Largest window that fits, in blocks. 0 if not even one block fits.
        largest_window: u64,
    },
    /// A saved state is invalid.
    State {
        /// Name of the field.
        field: Box<str>,
        /// Expected value.
        expected: Box<str>,
        /// Found value.
        found: Box<str>,
    },
    /// A saved state belongs to another dataset or to another order.
    OtherState {
        /// Name of the field that differs.
        field: &'static str,
        /// Value of this run, as in JSON. `None` if it has no such field.
        expected: Option<Box<str>>,
        /// Value of the state, as in JSON. `None` if it has no such field.
        found: Option<Box<str>>,
    },
    /// The options of an order are invalid.
    Refused {
        /// Reason for the refusal.
        reason: Box<str>,
    },
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderError::Position { position, len } => {
                write!(f, "no position {position}: there are {len}")
            }
            OrderError::Batch { batch: 0, .. } => f.write_str("expected a batch size of at least 1, found 0"),
            OrderError::Batch { batch, ranks } => {
                write!(f, "expected a global batch size that is a multiple of {ranks} ranks, found {batch}")
            }
            OrderError::Rank { rank, ranks: 1 } => write!(f, "no rank {rank}: there is 1"),
            OrderError::Rank { rank, ranks } => write!(f, "no rank {rank}: there are {ranks}"),
            OrderError::Weight { index, reason } => write!(f, "weight {index} {reason}"),
            OrderError::Windows { found, limit } => {
                write!(
                    f,
                    "expected at most {limit} windows in a block order, found {found}: use larger blocks or windows"
                )
            }
            OrderError::Memory { need, budget, largest_window: 0 } => {
                write!(f, "expected two windows of at most {budget} bytes, found {need}: use smaller blocks")
            }
            OrderError::Memory { need, budget, largest_window } => write!(
                f,
                "expected two windows of at most {budget} bytes, found {need}: windows of {largest_window} blocks fit"
            ),
            OrderError::State { field, expected, found } => {
                write!(f, "invalid saved state: {field}: expected {expected}, found {found}")
            }
            OrderError::OtherState { field, expected, found } => {
                other_state(f, field, expected.as_deref(), found.as_deref())
            }
            OrderError::Refused { reason } => write!(f, "invalid order: {reason}"),
        }
    }
}

/// Writes what differs between a run and the saved state of another one.
fn other_state(
    f: &mut fmt::Formatter<'_>,
    field: &str,
    expected: Option<&str>,
    found: Option<&str>,
) -> fmt::Result {
    let run = expected.unwrap_or("none");
    let state = found.unwrap_or("none");
    f.write_str("the saved state is of another ")?;
    match field {
        "n" => write!(f, "dataset: expected {run} records, found {state}"),
        "fp" => write!(
            f,
            "dataset, with as many records in other shards: expected fingerprint {run}, found {state}"
        ),
        "kind" => write!(f, "order: expected {}, found {}", order_name(run), order_name(state)),
        "ids" if expected.is_none() => {
            f.write_str("order: expected all records, found those that a filter selected")
        }
        "ids" if found.is_none() => {
            f.write_str("order: expected the records that a filter selects, found all")
        }
        "ids" => f.write_str("order: a filter selected other records"),
        "weights" => write!(f, "order: expected the weights {run}, found {state}"),
        "parts" => f.write_str("order: the parts of the mixture have other records or orders"),
        "classes" => f.write_str("order: records have other classes"),
        "lengths" => f.write_str("order: records have lengths of other buckets"),
        "drop" => {
            let word = |drops: &str| if drops == "true" { "drops" } else { "keeps" };
            let run = word(run);
            let state = word(state);
            write!(f, "order: expected one that {run} incomplete batches, found one that {state} them")
        }
        field => write!(f, "order: {field}: expected {run}, found {state}"),
    }
}

/// Returns the words for the kind of an order in a saved state.
fn order_name(kind: &str) -> &str {
    match kind {
        "\"none\"" => "file order (no shuffling)",
        "\"global\"" => "a global shuffle",
        "\"block\"" => "a block shuffle",
        "\"balanced\"" => "balanced classes in blocks",
        "\"weighted\"" => "a weighted draw",
        "\"mixture\"" => "a mixture",
        "\"buckets\"" => "buckets of like length",
        "\"mix\"" => "a mix",
        kind => kind,
    }
}
