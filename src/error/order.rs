//! What is refused of orders, shares and saved states.

use std::fmt;

/// Why an order, a share of it or a saved state is refused.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// There is no such position.
    Position {
        /// The position that was asked for.
        position: u64,
        /// Positions of the epoch.
        len: u64,
    },
    /// A global batch that cannot be shared.
    Batch {
        /// Samples of the batch.
        batch: u64,
        /// The ranks.
        ranks: u64,
    },
    /// There is no such rank.
    Rank {
        /// The rank.
        rank: u64,
        /// How many there are.
        ranks: u64,
    },
    /// A weight that is none.
    Weight {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A block order of more windows than have streams.
    Windows {
        /// How many it would have.
        found: u64,
        /// How many it may have.
        limit: u64,
    },
    /// Two windows of a block order do not fit into memory.
    Memory {
        /// Bytes that they take.
        need: u64,
        /// Bytes that they may take.
        budget: u64,
        /// The largest window, in blocks, that does fit; 0 if not even one block does.
        largest_window: u64,
    },
    /// A saved state that does not belong here, or is none.
    State {
        /// The field that says so.
        field: Box<str>,
        /// What was expected.
        expected: Box<str>,
        /// What stands there.
        found: Box<str>,
    },
    /// An order that makes no sense, in words.
    Refused {
        /// Why.
        reason: Box<str>,
    },
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderError::Position { position, len } => {
                write!(f, "no position {position}, the epoch has {len}")
            }
            OrderError::Batch { batch, ranks } => {
                write!(f, "a global batch of {batch} cannot be shared evenly by {ranks} ranks")
            }
            OrderError::Rank { rank, ranks } => write!(f, "no rank {rank}: there are {ranks}"),
            OrderError::Weight { index, reason } => write!(f, "weight {index} {reason}"),
            OrderError::Windows { found, limit } => {
                write!(
                    f,
                    "a block order of {found} windows, there can be {limit}: make blocks or windows larger"
                )
            }
            OrderError::Memory { need, budget, largest_window: 0 } => {
                write!(f, "two windows take {need} bytes, the budget is {budget}: make blocks smaller")
            }
            OrderError::Memory { need, budget, largest_window } => write!(
                f,
                "two windows take {need} bytes, the budget is {budget}: windows of {largest_window} blocks fit"
            ),
            OrderError::State { field, expected, found } => {
                write!(f, "saved state refused: {field}: expected {expected}, found {found}")
            }
            OrderError::Refused { reason } => write!(f, "order refused: {reason}"),
        }
    }
}
