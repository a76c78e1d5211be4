//! Shuffle buffers compared with orders: mixing of records that are sorted by class, and records read to get
//! there. Prints the tables of docs/shuffling.md.
//!
//! The numbers are not timings. They follow from seeds and are the same on every machine.

use tfseek_testkit::shuffles::*;

fn main() {
    println!(
        "{RECORDS} records sorted by {CLASSES} classes, in {SHARDS} shards; batches of {BATCH}\n\n{QUALITY}"
    );
    let ways = ways();
    ways.iter().for_each(|way| println!("{}", quality(way, &way.mixing())));
    println!("\n{PRICE}");
    ways.iter().filter_map(price).for_each(|row| println!("{row}"));
}
