//! The kind of an order, given once for all epochs.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::block::{default_block, default_window};
use super::subset::Subset;
use super::weighted::Weights;
use std::ops::Range;

/// Which kind of order, without a seed and an epoch. [`Order::new`](super::Order::new) makes an order of it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// As the records lie: position t is record t.
    Sequential,
    /// A permutation of all records.
    Global,
    /// A shuffle that reads in blocks of neighbours: records come from `window` blocks at a time, and each block is read once an
    /// epoch. For data on slow disks or behind a network, where a global shuffle would pay a seek for every record. About two windows
    /// are in memory. [`Order::describe`](super::Order::describe) states its design effect (deff): how much worse than a global shuffle it can be. Where one window would hold
    /// everything, `Global` shuffles as well and costs less.
    Block {
        /// Records of a block.
        block: u64,
        /// Blocks of a window.
        window: u64,
    },
    /// Drawn with replacement, one weight for each record. An epoch is as many draws as there are records.
    Weighted(Weights),
    /// Only some records: position t is the survivor whose index among them `order` gives.
    Filtered {
        /// The records.
        subset: Subset,
        /// The order of the survivors, as if they were all there is; no mixture, and not filtered again.
        order: Box<Spec>,
    },
    /// Several sources in fixed proportions: with the weights q and their sum P, each cycle of P positions holds exactly q\[c\]
    /// samples of component c. An epoch is as many positions as the components have records in all; where the proportions are
    /// others, some are seen more than once in it and some not at all, and the next epoch goes on where this one ended.
    ///
    /// A position costs one number of a permutation of P, so a small P is slow: 300 ns at 100, 10 us at 2. Weights with a common
    /// factor mix in the same proportions over longer, faster cycles.
    Mixture(Vec<Component>),
}

/// A source of a mixture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its samples in each cycle.
    pub(super) weight: u64,
    /// Its records, of all; `None` for all of them.
    pub(super) records: Option<Range<u64>>,
    pub(super) order: Spec,
}

impl Spec {
    /// The default block order: blocks of about 1 MiB, four blocks in a window for each sample of a
    /// global batch. `stored_bytes` are the bytes of all `n` records.
    pub fn block_for(n: u64, stored_bytes: u64, global_batch: u64) -> Spec {
        Spec::Block { block: default_block(n, stored_bytes), window: default_window(global_batch) }
    }

    /// The records of a subset in this order.
    #[must_use]
    pub fn filtered(self, subset: Subset) -> Spec {
        Spec::Filtered { subset, order: Box::new(self) }
    }

    /// Class balance: as many positions have as many samples of each class, whatever their sizes. A mixture with one sample of
    /// each class in every cycle, and no record of a class twice before all of it were seen.
    ///
    /// ```
    /// use tfseek::order::{Subset, Order, Spec};
    /// let labels = [0, 0, 0, 0, 0, 1, 0, 0];
    /// let class = |c| Subset::from_fn(8, |i| labels[i as usize] == c);
    /// let order = Order::new(&Spec::balanced([class(0), class(1)]), 8, 0, 0)?;
    /// let ones = (0..8).filter(|t| order.get(*t).unwrap() == 5).count();
    /// assert_eq!(ones, 4);
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// With few classes a cycle is short, and a position takes microseconds ([`Mixture`](Spec::Mixture) says why).
    pub fn balanced(classes: impl IntoIterator<Item = Subset>) -> Spec {
        let class = |filter| Component::new(1, Spec::Global.filtered(filter));
        Spec::Mixture(classes.into_iter().map(class).collect())
    }
}

impl Component {
    /// All records in this order, `weight` samples in each cycle. Not a mixture.
    pub fn new(weight: u64, order: Spec) -> Component {
        Component { weight, records: None, order }
    }

    /// The same with these records only. The order is over them as if they were all there is: a filter's numbers count from the
    /// first of them.
    #[must_use]
    pub fn over(mut self, records: Range<u64>) -> Component {
        self.records = Some(records);
        self
    }
}
