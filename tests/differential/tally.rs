//! Counts of a run, and its disagreements.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of disagreements printed in full.
const SHOWN: u64 = 10;

#[derive(Default)]
pub(crate) struct Tally {
    counts: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, what: impl Into<String>, n: usize) {
        *self.counts.entry(what.into()).or_default() += n as u64;
    }

    pub(crate) fn disagree(&mut self, case: impl fmt::Display) {
        self.count("disagreements", 1);
        if self.get("disagreements") <= SHOWN {
            eprintln!("disagreement: {case}");
        }
    }

    pub(crate) fn get(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Prints the counts, and panics if there was a disagreement.
    pub(crate) fn finish(mut self) {
        self.count("disagreements", 0);
        eprintln!("{self}");
        assert_eq!(self.get("disagreements"), 0, "printed above");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | count |\n| --- | ---: |")?;
        self.counts.iter().try_for_each(|(what, n)| writeln!(f, "| {what} | {n} |"))
    }
}
