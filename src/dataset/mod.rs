//! Many shards as one array of records: [`Dataset`] and [`Mapped`].

#[expect(clippy::module_inception, reason = "the file that defines the type `Dataset`")]
mod dataset;
mod derived;
mod get_many;
mod inflated;
mod iter;
mod mapped;
mod open;
mod options;
pub(crate) mod prefetch;
mod ready_segments;
mod refresh;
mod scan;
mod segments;
pub(crate) mod shard;
mod shards;
mod shares;
mod stored;
mod touch;

pub use dataset::{Dataset, ShardEntry};
pub use derived::DerivedRecords;
pub use mapped::Mapped;
pub use options::DatasetOptions;
pub(crate) use scan::{LeftOut, for_each_record};
pub(crate) use segments::INFLATED_BYTES;
pub(crate) use shards::{OrderBlocks, RecordLocation, ShardSet};
pub use stored::StoredRecord;
