//! Records that are made when they are read, with estimates of any size.

use super::*;
use std::sync::Arc;
use tfseek::Warning;
use tfseek::dataset::DerivedRecords;
use tfseek::error::{At, Result};
use tfseek::io::Traffic;

/// Empty records.
#[derive(Debug)]
struct Empty {
    count: u64,
    mean: u64,
    objects: bool,
}

impl DerivedRecords for Empty {
    fn noun(&self) -> &'static str {
        "empty records"
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn mean_bytes(&self) -> u64 {
        self.mean
    }

    fn location(&self, _: u64) -> At<'_> {
        At::NOWHERE
    }

    fn append(&self, _: u64, _: Verify, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn announce(&self, _: &[u64], _: bool) {}

    fn has_objects(&self) -> bool {
        self.objects
    }

    fn traffic(&self) -> Option<Traffic> {
        None
    }

    fn scattered(&self) -> Option<Warning> {
        None
    }

    fn identity(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

fn derived(count: u64, mean: u64, objects: bool) -> Dataset {
    Dataset::derived(Arc::new(Empty { count, mean, objects }), &memory(3)).unwrap()
}

#[test]
fn estimates_of_any_size_are_summed() {
    let ds = derived(5, u64::MAX, false);
    for threads in [0, 2] {
        let loader = ds.record_loader().batch_size(2).threads(threads).build().unwrap();
        let steps: Vec<Step> = loader.map(|step| step.unwrap()).collect();
        let found: Vec<(usize, u64)> =
            steps.iter().map(|step| (step.ids.len(), step.payload_bytes)).collect();
        assert_eq!(found, [(2, u64::MAX), (2, u64::MAX), (1, u64::MAX)]);
    }
}

#[test]
fn windows_over_more_than_half_of_the_longest_dataset() {
    let ds = derived(u64::MAX, 0, true);
    let blocks = Shuffle::Order(Spec::Block { block: 1 << 63, window: 2 });
    let loader = ds.record_loader().batch_size(2).shuffle(blocks).build().unwrap();
    assert_eq!(loader.cursor().order().len(), u64::MAX);
}
