//! Loaders of the ranks of a run, which are killed and resumed from saved states.

use crate::disk::Disk;
use crate::sets::{OpenSet, View};
use crate::{attempt, seen};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tfseek::loader::{Mix, NextStep, Shuffle, Step};
use tfseek::order::{LastBatch, MixStop, Sample, Spec, State, Subset};
use tfseek::{Damage, Loader, LoaderOptions, Result};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::run_order::{Position, RunOrder, SourceOrder};
use tfseek_testkit::worlds::{Class, class};

/// The options of a run, and its order.
#[derive(Clone)]
struct Plan {
    order: RunOrder,
    batch: u64,
    ranks: u64,
    threads: usize,
    last: LastBatch,
    damage: Damage,
    repeat: bool,
    subsets: Vec<Option<Subset>>,
    stop: MixStop,
}

impl Plan {
    fn draw(rng: &mut Rng, sets: &[Rc<OpenSet>]) -> Plan {
        let is_mix = sets.len() > 1;
        let block = SourceOrder::Block(1 + rng.below_u64(5), 1 + rng.below_u64(3));
        let kind =
            [SourceOrder::Sequential, SourceOrder::Global, block][rng.below(if is_mix { 2 } else { 3 })];
        let subset = |set: &Rc<OpenSet>| {
            let some = Subset::from_fn(set.view.len(), |_| rng.chance(128));
            (!some.is_empty() && rng.chance(96)).then_some(some)
        };
        let subsets: Vec<Option<Subset>> = sets.iter().map(subset).collect();
        let mut base = 0;
        let records = |(set, subset): (&Rc<OpenSet>, &Option<Subset>)| {
            let all = base..base + set.view.len();
            let is_chosen = |i: &u64| subset.as_ref().is_none_or(|some| some.rank(i - all.start).is_some());
            base = all.end;
            all.clone().filter(is_chosen).collect()
        };
        let sources = sets.iter().zip(&subsets).map(records).collect();
        let order = RunOrder::new(rng.u64(), sources, kind);
        let batch = rng.pick(&[6, 12]);
        let stop = rng.pick(&[MixStop::Never, MixStop::First, MixStop::All]);
        let rows = if rng.chance(80) { batch } else { 1 };
        let order = if is_mix { order.mixed(weights(rng, sets.len()), rows, stop) } else { order };
        let skips = !is_mix && rng.chance(128);
        let damage = if skips { Damage::Skip } else { Damage::Raise };
        let last = match () {
            () if skips => LastBatch::Short,
            () if is_mix && stop == MixStop::Never => LastBatch::Continuous,
            () if is_mix => rng.pick(&[LastBatch::Drop, LastBatch::Pad, LastBatch::Short]),
            () => rng.pick(&[LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous]),
        };
        let repeat = !skips && rng.chance(96);
        Plan { order, batch, ranks: 1, threads: 0, last, damage, repeat, subsets, stop }.on_other_ranks(rng)
    }

    /// Returns the same run with other numbers of ranks and threads. One that leaves out damage has one rank.
    fn on_other_ranks(self, rng: &mut Rng) -> Plan {
        let ranks = if self.damage == Damage::Skip { 1 } else { rng.pick(&[1, 2, 3]) };
        let threads = if self.damage == Damage::Raise && rng.chance(48) { 2 } else { 0 };
        Plan { ranks, threads, ..self }
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
            let mix = Mix::new(sources.into_iter().zip(self.order.weights()));
            mix.stop(self.stop).whole_batches(self.order.rows > 1).loader()?
        };
        let shuffle = match self.order.kind {
            SourceOrder::Sequential => Shuffle::None,
            SourceOrder::Global => Shuffle::Global,
            SourceOrder::Block(block, window) => Shuffle::Order(Spec::Block { block, window }),
        };
        let options = options.global_batch_size(self.batch).rank(rank, self.ranks).threads(self.threads);
        let options = options.shuffle(shuffle).seed(self.order.seed).last_batch(self.last);
        options.damage(self.damage).repeat(self.repeat).build()
    }
}

fn weights(rng: &mut Rng, sources: usize) -> Vec<u64> {
    (0..sources).map(|_| 1 + rng.below_u64(4)).collect()
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

/// What the processes of a run have in common.
#[derive(Clone)]
struct Run {
    sets: Vec<Rc<OpenSet>>,
    plan: Plan,
    /// The records at all positions of epochs that some rank has not ended.
    records: BTreeMap<Position, u64>,
    /// No batch was an error, and none was lost by a resume.
    complete: bool,
}

impl Run {
    /// Returns true if files are read ahead by threads, or opened again by a mix.
    fn opens_late(&self) -> bool {
        self.plan.threads > 0 || self.sets.len() > 1
    }
}

pub(crate) struct Job {
    run: Run,
    view: Rc<View>,
    ranks: Vec<Rank>,
    /// The first epoch that some rank has not ended.
    open: u64,
}

/// A saved state.
pub(crate) struct Saved {
    json: String,
    at: Position,
    run: Run,
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
    pub(crate) fn start(disk: &Disk, rng: &mut Rng, sets: Vec<Rc<OpenSet>>) -> Option<Job> {
        let plan = Plan::draw(rng, &sets);
        let run = Run { sets, plan, records: BTreeMap::new(), complete: true };
        Job::begin(disk, run, None).map(Result::unwrap)
    }

    /// Begins a run of data sets whose shards were accessed. `None`: its processes would open other files.
    fn begin(disk: &Disk, run: Run, saved: Option<&Saved>) -> Option<Result<Job>> {
        let view = Rc::new(View::joined(run.sets.iter().map(|set| &*set.view)));
        if run.opens_late() && !view.is_current(disk) {
            return None;
        }
        let at = saved.map_or((0, 0), |saved| saved.at);
        let rank = |r| {
            let mut loader = run.plan.build(&run.sets, r)?;
            saved.map_or(Ok(()), |saved| loader.seek(&State::from_json(&saved.json)?))?;
            Ok(Rank { loader, at, epoch: at.0, delivered: at })
        };
        let ranks = (0..run.plan.ranks).map(rank).collect::<Result<_>>();
        Some(ranks.map(|ranks| Job { run, view, ranks, open: at.0 }))
    }

    /// Returns what the next step of a rank should be, and the position after it.
    fn expected(&mut self, disk: &Disk, r: usize) -> (Expected, Position) {
        let Rank { at, epoch, .. } = self.ranks[r];
        let Plan { order, batch, ranks, last, damage, repeat, .. } = &mut self.run.plan;
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
        let Plan { order, batch, .. } = &mut self.run.plan;
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
        self.run.complete &= left.is_empty();
        match samples.as_slice() {
            [] if start == 0 => (Expected::Error, after),
            [] => (Expected::End, after),
            _ => (Expected::Batch(samples, left), after),
        }
    }

    fn next(&mut self, r: usize) -> Option<Result<Step>> {
        if self.run.plan.threads > 0 {
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
                let twice = self.run.records.insert((sample.epoch, sample.position), sample.record);
                assert_eq!(twice, None, "{sample:?} was returned before");
            }
        }
        seen(if left.is_empty() { "batch" } else { "batch without damage" });
    }

    /// Makes a step of one rank. Returns false if the run was killed.
    pub(crate) fn step(&mut self, disk: &Disk, rng: &mut Rng, scarce: bool) -> (String, bool) {
        if self.run.opens_late() && !self.view.is_current(disk) {
            return ("killed, because it may open a file again that was changed".to_owned(), false);
        }
        let r = rng.below(self.ranks.len());
        let text = format!("rank {r} at {:?}: ", self.ranks[r].at);
        let (expected, after) = self.expected(disk, r);
        if let Expected::Unsure = expected {
            return (text + "killed", false);
        }
        let found = attempt(scarce, || self.next(r));
        let is_scarce = scarce && self.run.plan.threads == 0 && self.view.has_large();
        let end = match (expected, found.as_ref().map(|found| found.as_ref().map_err(class))) {
            (_, Some(Err(Class::Memory))) if is_scarce => {
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
                self.run.complete = false;
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
            let later = self.run.records.split_off(&(self.open + 1, 0));
            let mut found: Vec<u64> = std::mem::replace(&mut self.run.records, later).into_values().collect();
            found.sort_unstable();
            if self.run.sets.len() == 1 && self.run.complete && self.run.plan.last != LastBatch::Drop {
                assert_eq!(found, self.run.plan.order.sources[0], "the records of epoch {}", self.open);
                seen("epoch");
            }
            self.open += 1;
        }
    }

    pub(crate) fn save(&self, rng: &mut Rng) -> Saved {
        let Rank { loader, delivered: at, .. } = &self.ranks[rng.below(self.ranks.len())];
        let mut run = self.run.clone();
        run.records.retain(|position, _| position < at);
        run.complete &= self.ranks.iter().all(|rank| rank.delivered == *at && rank.at == *at);
        Saved { json: loader.state().unwrap().to_json(), at: *at, run }
    }
}

impl Saved {
    /// Resumes the run: with other ranks, threads, batches and weights, in the same process or in a new one.
    pub(crate) fn resume(&self, disk: &Disk, rng: &mut Rng) -> (String, Option<Job>) {
        let Run { sets: before, plan, records, complete } = self.run.clone();
        let mut plan = plan.on_other_ranks(rng);
        plan.batch = if plan.order.rows > 1 { plan.batch } else { rng.pick(&[6, 12, 18]) };
        let weights = weights(rng, before.len());
        if before.len() > 1 && rng.chance(128) && weights != plan.order.weights() {
            plan.order.change(weights, self.at);
            seen("other weights");
        }
        let mut sets = before.clone();
        if rng.chance(128) {
            let again = sets.iter().map(|set| OpenSet::open(disk, set.options, false).ok());
            let again = again.map(|set| set.filter(|set| set.bind(disk)).map(Rc::new));
            let Some(again) = again.collect() else { return ("no data set to resume with".to_owned(), None) };
            sets = again;
        }
        let is_same = sets.iter().zip(&before).all(|(now, then)| now.view.identity() == then.view.identity());
        let text = format!("at {:?} with {} ranks", self.at, plan.ranks);
        match Job::begin(disk, Run { sets, plan, records, complete }, Some(self)) {
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
