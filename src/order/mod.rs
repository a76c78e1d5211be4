//! The order of an epoch, computed: the record at each position.
//!
//! An order is a function `record = order(seed, epoch, position)`. It needs no table of n numbers, no shuffle
//! buffer and no generator state. Any position of a billion can be computed directly, and a run resumes at
//! its position. Every machine, rank, thread and worker gets the same result. `docs/order.md` defines the
//! function bit by bit, for other implementations, and reports the tests of its quality.
//!
//! ```
//! use tfseek::order::{LastBatch, Order, Spec, RankShare};
//!
//! // Epoch 3 of a billion records.
//! let order = Order::new(&Spec::Global, 1_000_000_000, 42, 3)?;
//! assert_eq!(order.get(0)?, 36_767_572);
//! assert_eq!(order.position_of(36_767_572)?, Some(0));
//!
//! // The records of rank 2 of 8 in step 1000, with 256 samples per global batch.
//! let share = RankShare::new(order.len(), 256, 2, 8, LastBatch::Pad)?;
//! let mut records = vec![0; 32];
//! for run in share.step(1000).into_iter().flatten() {
//!     order.fill(run.start, &mut records[..run.len as usize])?;
//! }
//! assert_eq!(records[0], order.get(1000 * 256 + 2 * 32)?);
//! # Ok::<(), tfseek::Error>(())
//! ```
//!
//! # Choosing an order
//!
//! | | |
//! | --- | --- |
//! | records in stored order | [`Spec::Sequential`] |
//! | a full shuffle | [`Spec::Global`]: statistically as good as a random permutation; reads are scattered over the dataset |
//! | a shuffle for disks that seek, or for a network | [`Spec::Block`]: reads blocks of adjacent records; `docs/order.md` gives the design effect |
//! | a subset of the records | [`Spec::Filtered`], over a [`Subset`] |
//! | several sources in fixed proportions | [`Spec::Mix`] of [`Component`]s |
//! | the same number of samples of each class | [`Spec::Mix`] of classes with weights 1; [`Spec::BalancedBlock`] in blocks |
//! | records drawn by weight, with replacement | [`Spec::Weighted`], with [`Weights`] |
//! | batches of records of like length | [`Spec::Buckets`], with [`Buckets`] |
//!
//! An [`Order`] is a spec applied to a number of records, a seed and an epoch. [`RankShare`] divides its
//! positions into steps and ranks. A [`Cursor`] is the current position of a run, and [`State`] is its saved
//! form. [`Order::samples`] lists the samples of a step; [`Order::rows_of`] lists the steps and batch rows of
//! a record. A [`Split`] divides records into parts by a hash.
//!
//! **Cost.** A record of a global order takes about 30 ns, or about half of that when filled in batches; see
//! `docs/performance.md`. Creating an order takes well under a microsecond for any n, except for the tables
//! of weights and filters.

mod block;
mod buckets;
mod classes;
mod cursor;
mod digest;
mod epoch;
mod last_batch;
mod lookup;
mod mix;
mod mixture;
mod prp;
mod share;
mod source;
mod spec;
mod split;
mod state;
mod subset;
mod weighted;

pub(crate) use block::{BLOCK_BYTES, block_records, check_memory};
pub use buckets::Buckets;
pub use classes::Classes;
pub use cursor::Cursor;
pub(crate) use cursor::{Position, following_epoch};
pub(crate) use digest::joined_fingerprint;
pub use epoch::Order;
pub use last_batch::LastBatch;
pub(crate) use last_batch::MAX_SAMPLES;
pub use lookup::Sample;
pub use mixture::mixture_weights;
pub use share::{RankShare, Run, StepRow};
pub use spec::{Component, MixSpec, MixStop, Spec};
pub(crate) use split::FRACTION;
pub use split::Split;
pub use state::State;
pub use subset::Subset;
pub use weighted::Weights;

use crate::error::{Error, Result};

/// Converts a signed or unsigned 64-bit integer to a seed. A negative number becomes the unsigned number with
/// the same bits.
///
/// ```
/// assert_eq!(tfseek::order::seed_of(-1)?, u64::MAX);
/// assert!(tfseek::order::seed_of(1 << 64).is_err());
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`OrderError::Refused`](crate::error::OrderError::Refused) for a number below -2^63 or above 2^64 - 1.
pub fn seed_of(number: i128) -> Result<u64> {
    let negative = || i64::try_from(number).ok().map(i64::cast_unsigned);
    u64::try_from(number).ok().or_else(negative).ok_or_else(|| {
        Error::order(format!("seed: expected a number from -2^63 to 2^64 - 1, found {number}"))
    })
}

/// Returns the seed for augmenting the sample at a position. It is the same on every rank, worker and thread,
/// and after a resume.
///
/// ```
/// assert_eq!(tfseek::order::augmentation_seed(42, 7, 1000), 0xc6f9_4087_67b7_785b);
/// ```
pub fn augmentation_seed(seed: u64, epoch: u64, position: u64) -> u64 {
    prp::absorb([u64::from_be_bytes(*b"TFRDAUG1"), seed, epoch, position])
}

/// Returns the random word of the sample with this augmentation seed, for what has a name, such as a picture.
///
/// ```
/// assert_eq!(tfseek::order::named_draw(0xc6f9_4087_67b7_785b, "image"), 0x2e86_0761_d679_ae0d);
/// ```
pub fn named_draw(augmentation_seed: u64, name: &str) -> u64 {
    prp::absorb([augmentation_seed, xxhash_rust::xxh3::xxh3_64(name.as_bytes())])
}
