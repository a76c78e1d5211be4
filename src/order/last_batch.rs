//! The treatment of the last batch of an epoch, and the largest batch.

/// Largest number of samples in one rank's batch. A larger number is a mistake, and the list of samples alone
/// takes memory.
pub(crate) const MAX_SAMPLES: u64 = 1 << 24;

/// The policy for the last batch of an epoch if the number of positions is not a multiple of the batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastBatch {
    /// The last batch is left out.
    Drop,
    /// The last batch is filled up with the epoch's first positions, which are marked as padding.
    Pad,
    /// The last batch is smaller. Shares of the ranks may differ in size, and may be empty.
    Short,
    /// The last batch continues with the next epoch. No batch is short, and an epoch may begin in the middle
    /// of a step.
    Continuous,
}

impl LastBatch {
    /// Returns the default: `Short` for one rank, and `Pad` for several. No sample is lost, and all ranks
    /// have the same number of steps.
    pub(crate) fn default_for(ranks: u64) -> LastBatch {
        if ranks <= 1 { LastBatch::Short } else { LastBatch::Pad }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_short_for_one_rank_and_pad_for_several() {
        assert_eq!(
            (LastBatch::default_for(1), LastBatch::default_for(8)),
            (LastBatch::Short, LastBatch::Pad)
        );
    }
}
