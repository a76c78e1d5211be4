//! The order of an epoch as arithmetic: which record comes at which position.
//!
//! An order is a function `record = order(seed, epoch, position)`. Nothing is drawn beforehand and nothing is kept: no table of n
//! numbers, no shuffle buffer, no state of a generator. So any position of a billion can be asked for at once, a run is resumed
//! at its position, and every machine, rank, thread and worker gets the same answer. `docs/order.md` defines it to the bit, for a
//! second implementation, and says why it may be trusted.
//!
//! ```
//! use tfseek::order::{LastBatch, Order, Spec, RankShare};
//!
//! // Epoch 3 of a billion records.
//! let order = Order::new(&Spec::Global, 1_000_000_000, 42, 3)?;
//! assert_eq!(order.get(0)?, 36_767_572);
//! assert_eq!(order.position_of(36_767_572)?, Some(0));
//!
//! // What rank 2 of 8 trains on in step 1000, 256 samples a global batch.
//! let share = RankShare::new(order.len(), 256, 2, 8, LastBatch::Pad)?;
//! let mut records = vec![0; 32];
//! for run in share.step(1000).into_iter().flatten() {
//!     order.fill(run.start, &mut records[..run.len as usize])?;
//! }
//! assert_eq!(records[0], order.get(1000 * 256 + 2 * 32)?);
//! # Ok::<(), tfseek::Error>(())
//! ```
//!
//! # Which order do I want?
//!
//! | | |
//! | --- | --- |
//! | records as they lie | [`Spec::Sequential`] |
//! | a true shuffle | [`Spec::Global`]: as good as any, every position reads somewhere else |
//! | a shuffle from disks that seek, or over a network | [`Spec::Block`]: reads blocks of neighbours; `docs/order.md` has the design effect |
//! | some of the records | [`Spec::Filtered`], over a [`Subset`] |
//! | several sources in fixed proportions | [`Spec::Mixture`] of [`Component`]s |
//! | as many samples of each class | [`Spec::balanced`] |
//! | records by weight, with replacement | [`Spec::Weighted`], by [`Weights`] |
//!
//! An [`Order`] is one of these, made for a number of records, a seed and an epoch. [`RankShare`] cuts its positions into steps
//! and ranks, a [`Cursor`] is the place of a run in its epochs, [`State`] is what a checkpoint keeps. [`Order::samples`] tells what
//! a step had, [`Order::rows_of`] where a record was. A shuffle of other things than records is a [`Permutation`].
//!
//! **Cost.** A record of a global order takes about 30 ns, filled in batches about half; see `docs/performance.md`.
//! Making an order takes well under a microsecond, whatever n is, but for the tables of weights and filters.

mod block;
mod cursor;
mod digest;
mod epoch;
mod lookup;
mod mixture;
mod part;
mod prp;
mod share;
mod spec;
mod state;
mod subset;
mod weighted;

pub(crate) use block::check_memory;
pub use cursor::Cursor;
pub(crate) use cursor::{Position, following_epoch};
pub use epoch::Order;
pub use lookup::Sample;
pub use mixture::mixture_weights;
pub use prp::Permutation;
pub use share::{LastBatch, RankShare, Run, StepRow};
pub use spec::{Component, Spec};
pub use state::State;
pub use subset::Subset;
pub use weighted::Weights;

use crate::error::{OrderError, Result};

/// The seed that a number of 64 bits names, signed or not: a negative one is the number with the same bits.
///
/// ```
/// assert_eq!(tfseek::order::seed_of(-1)?, u64::MAX);
/// assert!(tfseek::order::seed_of(1 << 64).is_err());
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`OrderError::Refused`] below -2^63 and above 2^64 - 1.
pub fn seed_of(number: i128) -> Result<u64> {
    let negative = || i64::try_from(number).ok().map(i64::cast_unsigned);
    u64::try_from(number).ok().or_else(negative).ok_or_else(|| {
        let reason = format!("a seed is a number from -2^63 to 2^64 - 1, found {number}");
        OrderError::Refused { reason: reason.into() }.into()
    })
}

/// The seed for the augmentation of the sample at a position: the same whatever rank, worker or thread makes it, and after
/// every resume.
///
/// ```
/// assert_eq!(tfseek::order::augmentation_seed(42, 7, 1000), 0xc6f9_4087_67b7_785b);
/// ```
pub fn augmentation_seed(seed: u64, epoch: u64, position: u64) -> u64 {
    prp::absorb([u64::from_be_bytes(*b"TFRDAUG1"), seed, epoch, position])
}
