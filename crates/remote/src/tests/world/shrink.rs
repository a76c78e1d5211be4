//! Worlds that fail: their seeds, what of their plans matters, and their logs.

use super::plan::{ProcessPlan, WorldPlan};
use super::{Outcome, run};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Runs the worlds of seeds, and fails with the least plan of the first that fails.
pub(super) fn judge(seeds: Range<u64>) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (mut time, mut requests, mut compared) = (Duration::ZERO, 0, 0);
    let failed = std::thread::scope(|scope| {
        let work = || {
            let mut all = (None, Duration::ZERO, 0, 0);
            loop {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= seeds.end {
                    return all;
                }
                let outcome = run(&WorldPlan::new(seed));
                all = (all.0, all.1 + outcome.time, all.2 + outcome.requests, all.3 + outcome.compared);
                if outcome.failure.is_some() {
                    next.store(seeds.end, Relaxed);
                    all.0 = Some(seed);
                    return all;
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut failed: Option<u64> = None;
        for thread in threads {
            let found = thread.join().unwrap();
            failed = failed.into_iter().chain(found.0).min();
            time += found.1;
            requests += found.2;
            compared += found.3;
        }
        failed
    });
    println!("{seeds:?}: {:.1} hours, {requests} requests, {compared} steps", time.as_secs_f64() / 3600.0);
    if let Some(seed) = failed {
        let plan = least(WorldPlan::new(seed));
        let outcome = run(&WorldPlan { is_shown: true, ..plan.clone() });
        panic!(
            "seed {seed} fails, as TFSEEK_WORLD={seed} shows, with this of its plan:\n{plan:?}\n{}",
            told(&outcome)
        );
    }
}

/// Shows a world.
pub(super) fn show(seed: u64) {
    let plan = WorldPlan { is_shown: true, ..WorldPlan::new(seed) };
    println!("{plan:?}");
    let outcome = run(&plan);
    println!("{}", told(&outcome));
    assert!(outcome.failure.is_none(), "seed {seed} fails");
}

fn told(outcome: &Outcome) -> String {
    let failure = outcome.failure.as_deref().unwrap_or("nothing was wrong");
    format!("{}\n{failure}", outcome.log.join("\n"))
}

/// Leaves out of the plan of a world that fails what it fails without.
fn least(mut plan: WorldPlan) -> WorldPlan {
    let mut is_less = true;
    while is_less {
        is_less = false;
        for k in (0..plan.faults.len()).rev() {
            is_less |= without(&mut plan, |plan| _ = plan.faults.remove(k));
        }
        for k in (0..plan.events.len()).rev() {
            is_less |= without(&mut plan, |plan| _ = plan.events.remove(k));
        }
        for process in 0..plan.processes.len() {
            let threads = plan.processes[process].threads.len();
            for thread in 0..threads {
                for work in (0..plan.processes[process].threads[thread].len()).rev() {
                    is_less |= without(&mut plan, |plan| {
                        _ = works(&mut plan.processes, process, thread).remove(work)
                    });
                }
            }
        }
    }
    plan
}

fn works(processes: &mut [ProcessPlan], process: usize, thread: usize) -> &mut Vec<super::plan::Work> {
    &mut processes[process].threads[thread]
}

/// Changes a plan, if it then still fails.
fn without(plan: &mut WorldPlan, change: impl FnOnce(&mut WorldPlan)) -> bool {
    let mut less = plan.clone();
    change(&mut less);
    let fails = run(&less).failure.is_some();
    if fails {
        *plan = less;
    }
    fails
}
