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
    /// A global batch size is not a multiple of the number of ranks.
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
    /// A saved state is invalid, or belongs to another order.
    State {
        /// Name of the field.
        field: Box<str>,
        /// Expected value.
        expected: Box<str>,
        /// Found value.
        found: Box<str>,
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
            OrderError::Refused { reason } => write!(f, "invalid order: {reason}"),
        }
    }
}
