//! Comparison of shuffle buffers with orders, on data that is sorted by class.
//!
//! `benches/shuffle.rs` prints the tables, `docs/shuffling.md` contains them, and `tests/order/shuffling.rs`
//! compares the two. Nothing is timed, and all numbers are computed from seeds, so they are the same on every
//! machine.

mod buffer;
mod cost;
mod mixing;

pub use cost::{Cost, cost};
pub use mixing::{Mixing, measure};

use super::rng::Rng;
use buffer::{Buffer, in_file_order, interleaved};
use tfseek::Order;
use tfseek::order::Spec;

/// Number of records of a typical dataset, which is sorted by class.
pub const RECORDS: u64 = 1_000_000;
pub const CLASSES: u64 = 1_000;
pub const SHARDS: u64 = 1_000;
/// Size of a record in bytes: that of an image.
pub const RECORD_BYTES: u64 = 100 << 10;
pub const BATCH: u64 = 256;
/// Number of shards that an interleaved source reads alternately.
pub const AT_ONCE: usize = 16;
const SEED: u64 = 42;
const EPOCHS: u64 = 4;

/// A way to shuffle.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// A buffer of this number of records, filled in file order.
    Buffer(usize),
    /// A buffer of this number of records, filled from 16 shards alternately. The order of the shards is
    /// drawn for each epoch.
    Interleaved(usize),
    Order(Spec),
}

/// Returns the default block order of tfseek for this data.
pub fn block() -> Spec {
    Spec::Block { block: (1 << 20) / RECORD_BYTES, window: 4 * BATCH }
}

/// Size of a buffer that holds as many records as the two windows of the block order.
const TWO_WINDOWS: usize = 20_480;

/// Returns the ways to compare, in the order of the tables. The buffer of all records draws a random
/// permutation and is the reference.
pub fn ways() -> Vec<Way> {
    let sizes = [1_000, 10_000, TWO_WINDOWS, 100_000];
    let mut ways = vec![Way::Order(Spec::Sequential)];
    ways.extend(sizes.map(Way::Buffer));
    ways.extend(sizes.map(Way::Interleaved));
    ways.extend([Way::Buffer(RECORDS as usize), Way::Order(block()), Way::Order(Spec::Global)]);
    ways
}

impl Way {
    pub fn name(&self) -> String {
        match self {
            Way::Buffer(size) if *size as u64 == RECORDS => "buffer of everything".to_owned(),
            Way::Buffer(size) => format!("buffer of {}", grouped(*size as u64)),
            Way::Interleaved(size) => format!("buffer of {}, 16 drawn shards in turn", grouped(*size as u64)),
            Way::Order(Spec::Sequential) => "none, as the records lie".to_owned(),
            Way::Order(Spec::Block { .. }) => "**tfseek, block**".to_owned(),
            Way::Order(_) => "**tfseek, global**".to_owned(),
        }
    }

    /// Returns the records of an epoch, in the order of the epoch.
    fn epoch(&self, epoch: u64) -> Vec<u64> {
        match self {
            Way::Order(_) => {
                let mut records = vec![0; RECORDS as usize];
                self.order(epoch).fill(0, &mut records).unwrap();
                records
            }
            _ => self.buffer(epoch).collect(),
        }
    }

    /// Returns the buffer at the start of an epoch.
    fn buffer(&self, epoch: u64) -> Buffer<Box<dyn Iterator<Item = u64>>> {
        let mut rng = Rng::new(SEED ^ epoch << 32);
        match self {
            Way::Buffer(size) => Buffer::new(Box::new(in_file_order(RECORDS)), *size, rng),
            Way::Interleaved(size) => {
                let source = interleaved(RECORDS, SHARDS, AT_ONCE, &mut rng);
                Buffer::new(Box::new(source), *size, rng)
            }
            Way::Order(_) => panic!("an order has no buffer"),
        }
    }

    fn order(&self, epoch: u64) -> Order {
        match self {
            Way::Order(spec) => Order::new(spec, RECORDS, SEED, epoch).unwrap(),
            _ => panic!("a buffer has no order"),
        }
    }

    pub fn mixing(&self) -> Mixing {
        measure((0..EPOCHS).map(|epoch| self.epoch(epoch)), |record| record * CLASSES / RECORDS, CLASSES)
    }
}

/// The table header for [`quality`].
pub const QUALITY: &str = "\
| Shuffle | deff | classes in a batch | met again | moved |
| --- | --- | --- | --- | --- |";

/// Returns a row of the first table.
pub fn quality(way: &Way, mixing: &Mixing) -> String {
    format!(
        "| {} | {:.2} | {:.0} | {:.2} | {:.2} |",
        way.name(),
        mixing.deff,
        mixing.classes,
        mixing.met_again,
        mixing.moved
    )
}

/// The table header for [`price`].
pub const PRICE: &str = "\
| Shuffle | records held | of 100 KiB | read before the first batch | and after a resume |
| --- | --- | --- | --- | --- |";

/// Returns a row of the second table, or `None` for a way without a result in [`cost()`].
pub fn price(way: &Way) -> Option<String> {
    let cost = cost(way)?;
    let held = match cost.held {
        0 => "none".to_owned(),
        held => format!("{:.1} GB", (held * RECORD_BYTES) as f64 / 1e9),
    };
    let [records, first, resumed] = [cost.held, cost.first, cost.resumed].map(grouped);
    Some(format!("| {} | {records} | {held} | {first} | {resumed} |", way.name()))
}

/// Formats 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}
