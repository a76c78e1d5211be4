//! Orders of an epoch: test vectors, completeness, and agreement with docs/order.md.

mod block;
mod buckets;
mod cursor;
mod lookup;
mod mix;
mod mixture;
mod order_quality;
mod order_share;
mod order_state;
mod permutation;
mod python;
mod shuffling;
mod subset;
mod text;
mod whole;

use tfseek::error::OrderError;
use tfseek::order::{Order, Spec};
use tfseek::{Error, ErrorKind};

/// Returns the design effect of a block order by the formula of docs/order.md.
fn deff(rho: f64, batch: u64, window: u64) -> f64 {
    1.0 + rho * (batch - 1) as f64 / window as f64
}

fn refused(e: Error) -> OrderError {
    match e.into_kind() {
        ErrorKind::Order(e) => e,
        other => panic!("{other:?}"),
    }
}

/// Checks that every record occurs exactly once.
fn is_permutation(order: &[u64]) -> bool {
    let mut seen = vec![false; order.len()];
    order
        .iter()
        .all(|record| seen.get_mut(*record as usize).is_some_and(|seen| !std::mem::replace(seen, true)))
}

fn all(order: &Order) -> Vec<u64> {
    let mut records = vec![0; order.len() as usize];
    order.fill(0, &mut records).unwrap();
    records
}

fn permuted(n: u64, seed: u64, epoch: u64) -> Vec<u64> {
    all(&Order::new(&Spec::Global, n, seed, epoch).unwrap())
}
