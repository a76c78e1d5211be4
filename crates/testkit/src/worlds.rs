//! Simulated worlds: many events that are drawn from a seed, which is all that is needed to make them again.
//!
//! An event is a number. A world makes of it what its state allows, so any part of a list of events is a list
//! of events too. A list that fails is shrunk: events are left out as long as it still fails.

use super::rng::Rng;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use tfseek::{Error, ErrorKind};

/// The number of times that each outcome was seen.
pub type Counts = BTreeMap<&'static str, u64>;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static COUNTS: RefCell<Counts> = const { RefCell::new(BTreeMap::new()) };
    static EVENT: Cell<usize> = const { Cell::new(0) };
    /// The message of the last panic in a world of this thread. `None` outside of worlds.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Adds to the line about the current event.
pub fn note(text: &str) {
    LOG.with_borrow_mut(|log| log.last_mut().expect("an event").push_str(text));
}

/// Counts an outcome.
pub fn seen(outcome: &'static str) {
    COUNTS.with_borrow_mut(|counts| *counts.entry(outcome).or_default() += 1);
}

fn begin(event: usize) {
    EVENT.set(event);
    LOG.with_borrow_mut(|log| log.push(format!("{event:4} ")));
}

/// The kinds of errors that files which change may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Damage,
    /// Other content than was opened, or an index that is required and missing.
    Refused,
    Missing,
    Memory,
}

/// Returns the class of an error. Panics for one of another kind.
pub fn class(e: &Error) -> Class {
    match e.kind() {
        ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::OutOfMemory => Class::Memory,
        ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => Class::Missing,
        ErrorKind::Paths(_) => Class::Missing,
        _ if e.is_data() => Class::Damage,
        ErrorKind::Index(_) | ErrorKind::Order(_) => Class::Refused,
        ErrorKind::Renumbered { .. } | ErrorKind::Changed { .. } => Class::Refused,
        // All records of a data set that leaves out damage were damaged since.
        ErrorKind::UnknownFeature { .. } => Class::Refused,
        _ => panic!("an error of no documented kind: {e}"),
    }
}

/// A list of events that ended in a panic.
struct FailedWorld {
    /// The number of the last event.
    event: usize,
    message: String,
    log: Vec<String>,
}

/// Keeps the messages of panics in worlds, and lets others print theirs.
fn keep_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let is_kept = PANIC.with_borrow_mut(|kept| kept.as_mut().map(|kept| *kept = info.to_string()));
            if is_kept.is_none() {
                print(info);
            }
        }));
    });
}

/// Makes the events of a world.
fn attempt(seed: u64, events: &[u64], make: &impl Fn(u64, &[u64])) -> Result<(), FailedWorld> {
    keep_messages();
    LOG.take();
    PANIC.set(Some(String::new()));
    let made = catch_unwind(AssertUnwindSafe(|| make(seed, events)));
    let message = PANIC.take().unwrap_or_default();
    // A panic leaves the limit of `most_held` as it was.
    super::alloc::most_held(usize::MAX, || ());
    made.map_err(|_| FailedWorld { event: EVENT.get(), message, log: LOG.take() })
}

/// Returns the events of a seed.
fn events(seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed ^ 0x776f_726c_6473);
    (0..40 + rng.below(80)).map(|_| rng.u64()).collect()
}

/// Leaves events out, half of them first, as long as `fails` returns the number of the event that fails.
pub fn shrunk(mut events: Vec<u64>, fails: impl Fn(&[u64]) -> Option<usize>) -> Vec<u64> {
    let mut part = events.len();
    while part > 0 {
        let mut start = 0;
        while start < events.len() {
            let mut fewer = events.clone();
            fewer.drain(start..events.len().min(start + part));
            match fails(&fewer) {
                Some(last) => {
                    fewer.truncate(last + 1);
                    events = fewer;
                }
                None => start += part,
            }
        }
        part /= 2;
    }
    events
}

/// Makes the worlds of these seeds: `new` of the seed, and `event` for each number. `TFSEEK_WORLDS` is
/// another number of worlds, and `TFSEEK_WORLD` the only seed, whose events are printed. Returns what was
/// seen, if there were as many worlds. Panics with the seed, the events, and the fewest of them that fail.
pub fn run<W>(
    test: &str,
    seeds: Range<u64>,
    new: impl Fn(u64) -> W,
    event: impl Fn(&mut W, u64),
) -> Option<Counts> {
    let make = |seed, events: &[u64]| {
        let mut world = new(seed);
        for (k, &draw) in events.iter().enumerate() {
            begin(k);
            event(&mut world, draw);
        }
    };
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let only: Option<u64> = number("TFSEEK_WORLD");
    let least = seeds.end;
    let seeds = match (only, number("TFSEEK_WORLDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(count)) => seeds.start..count,
        _ => seeds,
    };
    let end = seeds.end;
    COUNTS.take();
    for seed in seeds {
        let events = events(seed);
        if let Err(failure) = attempt(seed, &events, &make) {
            fail(test, seed, events, failure, &make);
        }
        if only.is_some() {
            println!("{}", LOG.take().join("\n"));
        }
    }
    let counts = COUNTS.take();
    println!("{counts:?}");
    (only.is_none() && end >= least).then_some(counts)
}

fn fail(test: &str, seed: u64, mut events: Vec<u64>, first: FailedWorld, make: &impl Fn(u64, &[u64])) -> ! {
    events.truncate(first.event + 1);
    let fails = |events: &[u64]| attempt(seed, events, make).err().map(|failure| failure.event);
    let fewest = shrunk(events, fails);
    let last = attempt(seed, &fewest, make).err();
    let shown = |failure: &FailedWorld| format!("{}\n{}", failure.log.join("\n"), failure.message);
    let shortest = last.as_ref().map_or_else(|| "it does not fail again".to_owned(), shown);
    panic!(
        "seed {seed}, event {}: {}\n\n{} events are enough:\n{shortest}\n\nreplay: TFSEEK_WORLD={seed} cargo test --test {test}",
        first.event,
        shown(&first),
        fewest.len(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_shrunk_to_the_events_that_fail_together() {
        // It fails at 7, if a 3 came before.
        let fails = |events: &[u64]| {
            let three = events.iter().position(|&event| event == 3)?;
            events.iter().skip(three).position(|&event| event == 7).map(|at| at + three)
        };
        assert_eq!(shrunk((0..90).collect(), fails), [3, 7]);
    }
}
