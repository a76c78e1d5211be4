//! Loaders of the ranks of a run, which are killed and resumed from saved states.

use crate::disk::Disk;
use crate::sets::{Class, OpenSet, View, class};
use crate::{attempt, seen};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tfseek::loader::{Mix, NextStep, Shuffle, Step};
use tfseek::order::{LastBatch, MixStop, Sample, Spec, State, Subset};
use tfseek::{Damage, Loader, LoaderOptions, Result};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::run_order::{Kind, Position, RunOrder};

/// The options of a run, and its order.
#[derive(Clone)]
struct Plan {
    order: RunOrder,
    kind: Kind,
    seed: u64,
    batch: u64,
    ranks: u64,
    threads: usize,
    last: LastBatch,
    damage: Damage,
    repeat: bool,
    subsets: Vec<Option<Subset>>,
    weights: Vec<u64>,
    /// Batches of a mix are of one source each.
    whole: bool,
    stop: MixStop,
}

impl Plan {
    fn draw(rng: &mut Rng, sets: &[Rc<OpenSet>]) -> Plan {
        let is_mix = sets.len() > 1;
        let block = Kind::Block(1 + rng.below_u64(5), 1 + rng.below_u64(3));
        let kind = [Kind::Sequential, Kind::Global, block][rng.below(if is_mix { 2 } else { 3 })];
        let subset = |set: &Rc<OpenSet>| {
            let some = Subset::from_fn(set.view.len(), |_| rng.chance(128));
            (!some.is_empty() && rng.chance(96)).then_some(some)
        };
        let subsets: Vec<Option<Subset>> = sets.iter().map(subset).collect();
        let mut base = 0;
        let records = |(set, subset): (&Rc<OpenSet>, &Option<Subset>)| {
            let all = base..base + set.view.len();
            let is_chosen =
                |i: &u64| subset.as_ref().is_none_or(|subset| subset.rank(i - all.start).is_some());
            base = all.end;
            all.clone().filter(is_chosen).collect()
        };
        let sources = sets.iter().zip(&subsets).map(records).collect();
        let seed = rng.u64();
        let batch = rng.pick(&[6, 12]);
        let weights: Vec<u64> = sets.iter().map(|_| 1 + rng.below_u64(4)).collect();
        let whole = is_mix && rng.chance(80);
        let stop = rng.pick(&[MixStop::Never, MixStop::First, MixStop::All]);
        let order = RunOrder::new(seed, sources, kind);
        let rows = if whole { batch } else { 1 };
        let order = if is_mix { order.mixed(weights.clone(), rows, stop) } else { order };
        // Of several ranks and in a mix, a record that is left out is replaced by another row of the batch.
        let skips = !is_mix && rng.chance(128);
        let damage = if skips { Damage::Skip } else { Damage::Raise };
        let last = match () {
            () if skips => LastBatch::Short,
            () if is_mix && stop == MixStop::Never => LastBatch::Continuous,
            () if is_mix => rng.pick(&[LastBatch::Drop, LastBatch::Pad, LastBatch::Short]),
            () => rng.pick(&[LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous]),
        };
        let repeat = !skips && rng.chance(96);
        let plan = Plan {
            order,
            kind,
            seed,
            batch,
            ranks: 1,
            threads: 0,
            last,
            damage,
            repeat,
            subsets,
            weights,
            whole,
            stop,
        };
        plan.on_other_ranks(rng)
    }

    /// Returns the same run with other numbers of ranks and threads.
    fn on_other_ranks(self, rng: &mut Rng) -> Plan {
        if self.damage == Damage::Skip {
            return self;
        }
        Plan { ranks: rng.pick(&[1, 2, 3]), threads: if rng.chance(48) { 2 } else { 0 }, ..self }
    }

    fn build(&self, sets: &[Rc<OpenSet>], rank: u64) -> Result<Loader> {
        let source = |(set, subset): (&Rc<OpenSet>, &Option<Subset>)| match subset {
            Some(subset) => set.ds.record_loader().select(subset.clone()),
            None => set.ds.record_loader(),
        };
        let mut sources: Vec<LoaderOptions> = sets.iter().zip(&self.subsets).map(source).collect();
        let options = if sources.len() == 1 {
            sources.remove(0)
        } else {
            let mix = Mix::new(sources.into_iter().zip(self.weights.clone()));
            mix.stop(self.stop).whole_batches(self.whole).loader()?
        };
        let shuffle = match self.kind {
            Kind::Sequential => Shuffle::None,
            Kind::Global => Shuffle::Global,
            Kind::Block(block, window) => Shuffle::Order(Spec::Block { block, window }),
        };
        let options = options.global_batch_size(self.batch).rank(rank, self.ranks).threads(self.threads);
        let options = options.shuffle(shuffle).seed(self.seed).last_batch(self.last);
        options.damage(self.damage).repeat(self.repeat).build()
    }
}

/// The loader of one rank, in a process of its own.
struct Rank {
    loader: Loader,
    /// The position of the next step, and the epoch of the iteration.
    at: Position,
    epoch: u64,
    /// The position after the last batch that was returned.
    delivered: Position,
}

pub(crate) struct Job {
    sets: Vec<Rc<OpenSet>>,
    view: Rc<View>,
    plan: Plan,
    ranks: Vec<Rank>,
    /// The records at all positions of epochs that some rank has not ended.
    records: BTreeMap<Position, u64>,
    /// No batch was an error, and none was lost by a resume.
    complete: bool,
    /// The first epoch that some rank has not ended.
    open: u64,
}

/// A saved state, with what it belongs to.
pub(crate) struct Saved {
    json: String,
    at: Position,
    sets: Vec<Rc<OpenSet>>,
    plan: Plan,
    records: BTreeMap<Position, u64>,
    complete: bool,
}

/// What a step should return.
enum Expected {
    End,
    /// The rows, and the records that were left out.
    Batch(Vec<Sample>, Vec<u64>),
    Error,
    Unsure,
}

impl Job {
    /// Starts a run of data sets whose shards were accessed. `None`: a mix would open other files.
    pub(crate) fn start(disk: &Disk, rng: &mut Rng, sets: Vec<Rc<OpenSet>>) -> Option<Job> {
        let plan = Plan::draw(rng, &sets);
        Job::run(disk, plan, sets, None).map(Result::unwrap)
    }

    fn run(disk: &Disk, plan: Plan, sets: Vec<Rc<OpenSet>>, saved: Option<&Saved>) -> Option<Result<Job>> {
        let view = Rc::new(View::joined(sets.iter().map(|set| &*set.view)));
        // Threads read ahead, and a mix opens the shards of its sources again.
        if (plan.threads > 0 || sets.len() > 1) && !view.is_current(disk) {
            return None;
        }
        let at = saved.map_or((0, 0), |saved| saved.at);
        let rank = |r| {
            let mut loader = plan.build(&sets, r)?;
            saved.map_or(Ok(()), |saved| loader.seek(&State::from_json(&saved.json)?))?;
            Ok(Rank { loader, at, epoch: at.0, delivered: at })
        };
        let ranks = (0..plan.ranks).map(rank).collect::<Result<_>>();
        let records = saved.map_or_else(BTreeMap::new, |saved| saved.records.clone());
        let complete = saved.is_none_or(|saved| saved.complete);
        Some(ranks.map(|ranks| Job { sets, view, plan, ranks, records, complete, open: at.0 }))
    }

    /// Returns what the next step of a rank should be, and the position after it.
    fn expected(&mut self, disk: &Disk, r: usize) -> (Expected, Position) {
        let Rank { at, epoch, .. } = self.ranks[r];
        let Plan { order, batch, ranks, last, damage, repeat, .. } = &mut self.plan;
        if at.0 != epoch && !*repeat {
            return (Expected::End, at);
        }
        if *damage == Damage::Skip {
            return self.expected_sound(disk, at);
        }
        let share = (r as u64, *ranks);
        let next = (at.0 + 1, 0);
        let step = order.step(at, *batch, share, *last);
        let step = step.or_else(|| if *repeat { order.step(next, *batch, share, *last) } else { None });
        let Some((samples, after)) = step else { return (Expected::End, next) };
        let is_sound = samples.iter().all(|sample| self.view.sound(disk, sample.record).is_some());
        (if is_sound { Expected::Batch(samples, Vec::new()) } else { Expected::Error }, after)
    }

    /// Returns the batch of a rank that leaves out damage: the next records that are sound.
    fn expected_sound(&mut self, disk: &Disk, (epoch, start): Position) -> (Expected, Position) {
        let Plan { order, batch, .. } = &mut self.plan;
        let mut samples = Vec::new();
        let mut left = Vec::new();
        let mut position = start;
        while (samples.len() as u64) < *batch && position < order.len() {
            let record = order.record((epoch, position));
            match self.view.sound(disk, record) {
                Some(_) => samples.push(Sample { record, epoch, position, padding: false }),
                None if self.view.is_unchanged(disk, record) => left.push(record),
                // The error of a record with other bytes need not be one of damage.
                None => return (Expected::Unsure, (epoch, start)),
            }
            position += 1;
        }
        let after = if position == order.len() { (epoch + 1, 0) } else { (epoch, position) };
        self.complete &= left.is_empty();
        match samples.as_slice() {
            [] if start == 0 => (Expected::Error, after),
            [] => (Expected::End, after),
            _ => (Expected::Batch(samples, left), after),
        }
    }

    fn next(&mut self, r: usize) -> Option<Result<Step>> {
        if self.plan.threads > 0 {
            match self.ranks[r].loader.next_within(Duration::ZERO) {
                // The batch was drawn, and is not delivered yet.
                NextStep::Timeout => self.check_state(r),
                NextStep::Ready(step) => return Some(step),
                NextStep::EpochEnd(_) => return None,
            }
        }
        self.ranks[r].loader.next()
    }

    fn check_state(&self, r: usize) {
        let Rank { loader, delivered, .. } = &self.ranks[r];
        let state = loader.state().unwrap();
        assert_eq!((state.epoch, state.position), *delivered, "the state of rank {r}");
    }

    fn check_step(&mut self, disk: &Disk, step: &Step, samples: &[Sample], left: &[u64]) {
        assert_eq!(step.samples().collect::<Vec<_>>(), samples);
        let skipped: Vec<u64> = step.skipped.iter().map(|(record, _)| *record).collect();
        assert_eq!(skipped, left, "what was left out as damage");
        for (record, sample) in step.records().unwrap().zip(samples) {
            let now = self.view.sound(disk, sample.record).unwrap();
            assert!(record.unwrap().payload() == now.payload(), "record {} has other bytes", sample.record);
            if !sample.padding {
                let twice = self.records.insert((sample.epoch, sample.position), sample.record);
                assert_eq!(twice, None, "{sample:?} was returned before");
            }
        }
        seen(if left.is_empty() { "batch" } else { "batch without damage" });
    }

    /// Makes a step of one rank. Returns false if the run was killed.
    pub(crate) fn step(&mut self, disk: &Disk, rng: &mut Rng, scarce: bool) -> (String, bool) {
        if (self.plan.threads > 0 || self.sets.len() > 1) && !self.view.is_current(disk) {
            return ("killed, because it may open a file again that was changed".to_owned(), false);
        }
        let r = rng.below(self.ranks.len());
        let text = format!("rank {r} at {:?}: ", self.ranks[r].at);
        let (expected, after) = self.expected(disk, r);
        if let Expected::Unsure = expected {
            return (text + "killed", false);
        }
        let found = attempt(scarce, || self.next(r));
        let end = match (expected, found.as_ref().map(|found| found.as_ref().map_err(class))) {
            (_, Some(Err(Class::Memory))) if scarce && self.plan.threads == 0 && self.view.has_large() => {
                self.check_state(r);
                seen("no memory");
                return (text + "killed without memory", false);
            }
            (Expected::End, None) => {
                let rank = &mut self.ranks[r];
                (rank.epoch, rank.delivered) = (after.0, after);
                "end"
            }
            (Expected::Batch(samples, left), Some(Ok(step))) => {
                self.check_step(disk, step, &samples, &left);
                self.ranks[r].delivered = after;
                "a batch"
            }
            (Expected::Error, Some(Err(Class::Damage | Class::Refused))) => {
                self.complete = false;
                seen("batch refused");
                "an error"
            }
            (_, found) => panic!("{text}{found:?}"),
        };
        self.ranks[r].at = after;
        self.check_state(r);
        self.check_epochs();
        (text + end, true)
    }

    /// Checks the epochs that all ranks have ended: each record was returned once.
    fn check_epochs(&mut self) {
        while self.ranks.iter().all(|rank| rank.at.0 > self.open) {
            let later = self.records.split_off(&(self.open + 1, 0));
            let mut found: Vec<u64> = std::mem::replace(&mut self.records, later).into_values().collect();
            found.sort_unstable();
            if self.sets.len() == 1 && self.complete && self.plan.last != LastBatch::Drop {
                assert_eq!(found, self.plan.order.sources[0], "the records of epoch {}", self.open);
                seen("epoch");
            }
            self.open += 1;
        }
    }

    pub(crate) fn save(&self, rng: &mut Rng) -> Saved {
        let Rank { loader, delivered: at, .. } = &self.ranks[rng.below(self.ranks.len())];
        let records = self.records.iter().filter(|(position, _)| *position < at);
        let aligned = self.ranks.iter().all(|rank| rank.delivered == *at && rank.at == *at);
        Saved {
            json: loader.state().unwrap().to_json(),
            at: *at,
            sets: self.sets.clone(),
            plan: self.plan.clone(),
            records: records.map(|(position, record)| (*position, *record)).collect(),
            complete: self.complete && aligned,
        }
    }
}

impl Saved {
    /// Resumes the run: with other ranks, threads, batches and weights, in the same process or in a new one.
    pub(crate) fn resume(&self, disk: &Disk, rng: &mut Rng) -> (String, Option<Job>) {
        let mut plan = self.plan.clone().on_other_ranks(rng);
        plan.batch = if plan.whole { plan.batch } else { rng.pick(&[6, 12, 18]) };
        let weights: Vec<u64> = self.sets.iter().map(|_| 1 + rng.below_u64(4)).collect();
        if self.sets.len() > 1 && rng.chance(128) && weights != plan.weights {
            plan.order.change(weights.clone(), self.at);
            plan.weights = weights;
            seen("other weights");
        }
        let mut sets = self.sets.clone();
        if rng.chance(128) {
            let again = sets.iter().map(|set| OpenSet::open(disk, set.options, false).ok());
            let again = again.map(|set| set.filter(|set| set.bind(disk)).map(Rc::new));
            let Some(again) = again.collect() else { return ("no data set to resume with".to_owned(), None) };
            sets = again;
        }
        let is_same =
            sets.iter().zip(&self.sets).all(|(now, then)| now.view.identity() == then.view.identity());
        let text = format!("at {:?} with {} ranks", self.at, plan.ranks);
        match Job::run(disk, plan, sets, Some(self)) {
            None => (text + ": files were changed", None),
            Some(Ok(job)) => {
                assert!(is_same, "the state belongs to other records");
                seen("resumed");
                (text, Some(job))
            }
            Some(Err(e)) => {
                assert!(!is_same && class(&e) == Class::Refused, "{e}");
                seen("resume refused");
                (text + ": refused", None)
            }
        }
    }
}
