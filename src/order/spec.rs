//! The specification of an order, independent of seed and epoch.

use super::block::{block_records, default_window};
use super::buckets::Buckets;
use super::classes::Classes;
use super::subset::Subset;
use super::weighted::Weights;
use std::ops::Range;

/// The kind of an order and its parameters, without a seed and an epoch. [`Order::new`](super::Order::new)
/// creates an order from it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Stored order: position t is record t.
    Sequential,
    /// A permutation of all records.
    Global,
    /// A shuffle that reads in blocks of adjacent records. Records come from `window` blocks at a time, and
    /// each block is read once per epoch. It is for slow disks and networks, where a global shuffle would
    /// cost one seek per record. About two windows must fit into memory.
    /// [`Order::describe`](super::Order::describe) reports the design effect (deff): how much worse than a
    /// global shuffle it can be. If one window would contain all records, `Global` shuffles equally well at
    /// lower cost.
    Block {
        /// Number of records per block.
        block: u64,
        /// Number of blocks per window.
        window: u64,
    },
    /// Equal classes in a block order: a window has as many samples as records, and each class that it has
    /// gives equally many of them. A record repeats only after all of its class in the window. A class
    /// without a record in a window has no sample there.
    BalancedBlock {
        /// The class of each record.
        classes: Classes,
        /// Number of records per block.
        block: u64,
        /// Number of blocks per window.
        window: u64,
    },
    /// Draws with replacement, with one weight per record. An epoch has the same number of draws as there are
    /// records.
    Weighted(Weights),
    /// Batches of records of like length. An epoch has each record once, and as many positions as there are
    /// records. [`Order::bucket_share`](super::Order::bucket_share) divides it into steps.
    Buckets(Buckets),
    /// A subset of the records. `order` yields an index at position t, and the record is the survivor with
    /// that index.
    Filtered {
        /// The surviving records.
        subset: Subset,
        /// The order of the survivors, defined as if there were no other records. It must not be a mixture or
        /// filtered itself.
        order: Box<Spec>,
    },
    /// Several sources in fixed proportions. With the weights q and their sum P, each cycle of P positions
    /// contains exactly q\[c\] samples of component c. The length of an epoch is the number of records of all
    /// components together, unless the mix has another [end](MixSpec::stop). If the proportions differ from
    /// the sizes' proportions, an epoch contains some records several times and others not at all. The next
    /// epoch continues each component at the position where the last one ended.
    ///
    /// What a component has given is always the beginning of its own order, without repetition. Each cycle
    /// needs a table of P entries, which is made when an order enters the cycle. So P is at most 2^20, unless
    /// all weights are 1.
    ///
    /// A cycle takes at least 4 us, which is 400 ns per position at P = 10. Weights with a common factor mix
    /// in the same proportions over longer, faster cycles.
    Mix(MixSpec),
}

/// A source of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Number of its samples per cycle.
    pub(super) weight: u64,
    /// Its records. `None`: all records of the dataset.
    pub(super) records: Option<Range<u64>>,
    pub(super) order: Spec,
}

/// The end of an epoch of a mix. The stream of samples goes on in the next epoch in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MixStop {
    /// An epoch has the number of samples of all sources together.
    #[default]
    Never,
    /// Epoch 0 ends with the sample that completes the first source. All epochs have its length.
    First,
    /// Epoch 0 ends with the sample that completes the last source. All epochs have its length.
    All,
}

/// Components in proportions, with options: whole batches, and other ends of an epoch.
///
/// ```
/// use tfseek::order::{Component, MixSpec, MixStop, Order, Spec};
/// let (web, books) = (Component::new(7, Spec::Global).over(0..700), Component::new(3, Spec::Global).over(700..800));
/// let mix = MixSpec::new(vec![web, books]).stop(MixStop::First);
/// let order = Order::new(&Spec::Mix(mix), 800, 42, 0)?;
/// // The 100 books are complete within 34 cycles of ten samples.
/// assert_eq!(order.len().div_ceil(10), 34);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixSpec {
    pub(super) components: Vec<Component>,
    /// Number of samples of a batch, if whole batches are mixed.
    pub(super) batch: Option<u64>,
    pub(super) stop: MixStop,
    /// The start of the cycles after a change of weights, and the length of an epoch. `None`: a new run.
    pub(super) start: Option<MixStart>,
}

/// The start of the cycles of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MixStart {
    /// Position at which they begin, in rows or in batches, counted over all epochs.
    pub(super) from: u64,
    /// Number of rows or batches of each component before it.
    pub(super) given: Vec<u64>,
    /// Number of samples per epoch.
    pub(super) samples: u64,
}

impl MixSpec {
    /// Creates a mix of rows that never stops.
    pub fn new(components: Vec<Component>) -> MixSpec {
        MixSpec { components, batch: None, stop: MixStop::default(), start: None }
    }

    /// Mixes whole global batches of this number of samples: all samples of a batch are from one component.
    /// An epoch has whole batches.
    #[must_use]
    pub fn batches(self, samples: u64) -> MixSpec {
        MixSpec { batch: Some(samples), ..self }
    }

    /// Sets the end of an epoch. Default: never.
    #[must_use]
    pub fn stop(self, stop: MixStop) -> MixSpec {
        MixSpec { stop, ..self }
    }

    /// Returns the orders of the components.
    pub(crate) fn orders(&self) -> impl Iterator<Item = &Spec> {
        self.components.iter().map(|component| &component.order)
    }

    pub(super) fn weights(&self) -> Vec<u64> {
        self.components.iter().map(|component| component.weight).collect()
    }

    /// Returns true for balanced classes, as of [`Spec::balanced`]. Their saved states have a kind of their
    /// own.
    pub(crate) fn is_balanced(&self) -> bool {
        let is_class = |component: &Component| {
            let is_filtered =
                matches!(&component.order, Spec::Filtered { order, .. } if **order == Spec::Global);
            component.weight == 1 && component.records.is_none() && is_filtered
        };
        self.batch.is_none() && self.stop == MixStop::Never && self.components.iter().all(is_class)
    }
}

impl Spec {
    /// Returns a block order with blocks of about `bytes`, and windows of four blocks per sample of a global
    /// batch, at least 64 blocks. `stored_bytes` is the size of all `n` records on disk. It stays a block
    /// order if one window holds everything: that depends on the batch size, and a state may be resumed with
    /// another.
    pub(crate) fn block_of(bytes: u64, n: u64, stored_bytes: u64, global_batch: u64) -> Spec {
        let block = block_records(bytes, n, stored_bytes);
        Spec::Block { block, window: default_window(global_batch) }
    }

    /// Returns the block and window sizes of an order that reads in blocks, also of one over the records of a
    /// subset.
    pub(crate) fn block_sizes(&self) -> Option<(u64, u64)> {
        match self {
            Spec::Block { block, window } | Spec::BalancedBlock { block, window, .. } => {
                Some((*block, *window))
            }
            Spec::Filtered { order, .. } => order.block_sizes(),
            _ => None,
        }
    }

    /// Returns true if adjacent positions have records that are far from each other, so that each costs an
    /// access of its own.
    pub(crate) fn is_scattered(&self) -> bool {
        match self {
            Spec::Global | Spec::Weighted(_) | Spec::Buckets(_) => true,
            Spec::Sequential | Spec::Block { .. } | Spec::BalancedBlock { .. } => false,
            Spec::Filtered { order, .. } => order.is_scattered(),
            Spec::Mix(mix) => mix.orders().any(Spec::is_scattered),
        }
    }

    /// Returns a spec of only the records of a subset, in this order.
    #[must_use]
    pub fn filtered(self, subset: Subset) -> Spec {
        Spec::Filtered { subset, order: Box::new(self) }
    }

    /// Returns a mix of classes with the weight 1 each.
    pub(crate) fn balanced(classes: impl IntoIterator<Item = Subset>) -> Spec {
        let class = |filter| Component::new(1, Spec::Global.filtered(filter));
        Spec::Mix(MixSpec::new(classes.into_iter().map(class).collect()))
    }
}

impl Component {
    /// Creates a component of all records in this order, with `weight` samples per cycle. The order must not
    /// be a mixture.
    pub fn new(weight: u64, order: Spec) -> Component {
        Component { weight, records: None, order }
    }

    /// Restricts the component to these records. The order is defined as if there were no other records: the
    /// record numbers of a filter count from the first record of the range.
    #[must_use]
    pub fn over(mut self, records: Range<u64>) -> Component {
        self.records = Some(records);
        self
    }
}
