//! The order of a run as a naive program computes it: from tables, for one data set or a mix of several.

use super::order_twin as twin;
use std::collections::BTreeMap;
use tfseek::order::{LastBatch, MixStop, Sample};

/// An epoch, and a position in it.
pub type Position = (u64, u64);

/// The order of one data set, with the records of a block and the blocks of a window.
#[derive(Clone, Copy, Debug)]
pub enum SourceOrder {
    Sequential,
    Global,
    Block(u64, u64),
}

/// The cycles of a mix since its weights were changed.
#[derive(Clone)]
struct Cycles {
    weights: Vec<u64>,
    from: u64,
    given: Vec<u64>,
    turns: Vec<(usize, u64)>,
}

/// The order of all epochs of a run.
#[derive(Clone)]
pub struct RunOrder {
    pub seed: u64,
    /// The records of each source, ascending.
    pub sources: Vec<Vec<u64>>,
    pub kind: SourceOrder,
    mix: Option<Cycles>,
    /// Rows of a turn: of a batch, if whole batches are mixed.
    pub rows: u64,
    /// Positions of an epoch.
    len: u64,
    tables: BTreeMap<(usize, u64), Vec<u64>>,
}

impl RunOrder {
    /// Returns the order of one data set, or of several that [`mixed`](RunOrder::mixed) mixes. `sources`: the
    /// records of each, ascending.
    pub fn new(seed: u64, sources: Vec<Vec<u64>>, kind: SourceOrder) -> RunOrder {
        let len = sources.iter().map(Vec::len).sum::<usize>() as u64;
        RunOrder { seed, sources, kind, mix: None, rows: 1, len, tables: BTreeMap::new() }
    }

    /// Mixes the sources by turns of this number of rows.
    pub fn mixed(mut self, weights: Vec<u64>, rows: u64, stop: MixStop) -> RunOrder {
        let given = vec![0; weights.len()];
        self.mix = Some(Cycles { weights, from: 0, given, turns: Vec::new() });
        self.rows = rows;
        let ends: Vec<u64> = (0..self.sources.len()).map(|c| self.end_of(c)).collect();
        let samples = match stop {
            MixStop::Never => self.len,
            MixStop::First => *ends.iter().min().unwrap(),
            MixStop::All => *ends.iter().max().unwrap(),
        };
        self.len = samples.div_ceil(rows) * rows;
        self
    }

    /// Returns the weights of a mix.
    pub fn weights(&self) -> Vec<u64> {
        self.mix.as_ref().map_or_else(Vec::new, |cycles| cycles.weights.clone())
    }

    /// Returns the number of samples up to the one that completes a source.
    fn end_of(&mut self, c: usize) -> u64 {
        let last = self.sources[c].len() as u64 - 1;
        let turn = (0..).find(|&t| self.turn(t) == (c, last / self.rows)).unwrap();
        turn * self.rows + last % self.rows + 1
    }

    /// Goes on with other weights at a position.
    pub fn change(&mut self, weights: Vec<u64>, (epoch, position): Position) {
        let at = (epoch * self.len + position) / self.rows;
        let mut cycles = self.mix.clone().unwrap();
        (cycles.from..at).for_each(|t| cycles.given[self.turn(t).0] += 1);
        self.mix = Some(Cycles { weights, from: at, given: cycles.given, turns: Vec::new() });
    }

    /// Returns the source at a turn, counted over all epochs, and the number of its turn.
    fn turn(&mut self, t: u64) -> (usize, u64) {
        let Cycles { weights, from, given, turns } = self.mix.as_mut().unwrap();
        let ahead = (t - *from) as usize;
        if ahead >= turns.len() {
            let cycles = 2 + 2 * ahead as u64 / weights.iter().sum::<u64>();
            *turns = twin::mixture_after(&mut given.clone(), weights, self.seed, cycles);
        }
        turns[ahead]
    }

    /// Returns the records of a source in one of its passes.
    fn table(&mut self, c: usize, pass: u64) -> &[u64] {
        let RunOrder { seed, sources, kind, mix, tables, .. } = self;
        let stream = if mix.is_some() { (c as u64 + 1) << 40 } else { 0 };
        tables.entry((c, pass)).or_insert_with(|| {
            let n = sources[c].len() as u64;
            let order = match *kind {
                SourceOrder::Sequential => (0..n).collect(),
                SourceOrder::Global => twin::prp(n, *seed, pass, stream).all(),
                SourceOrder::Block(block, window) => twin::block_order(n, block, window, *seed, pass, stream),
            };
            order.into_iter().map(|u| sources[c][u as usize]).collect()
        })
    }

    pub fn record(&mut self, (epoch, position): Position) -> u64 {
        let Some(cycles) = &self.mix else { return self.table(0, epoch)[position as usize] };
        // Positions before a change of weights repeat those after it.
        let first = epoch * self.len;
        let begin = (cycles.from * self.rows).max(first) - first;
        let p = if position < begin { begin + position % (self.len - begin) } else { position };
        let (c, turn) = self.turn((first + p) / self.rows);
        let sample = turn * self.rows + p % self.rows;
        let n = self.sources[c].len() as u64;
        self.table(c, sample / n)[(sample % n) as usize]
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns what a rank gets in the step at a position, and the position after the step. `None`: the epoch
    /// has no further step.
    pub fn step(
        &mut self,
        (epoch, start): Position,
        batch: u64,
        (rank, ranks): (u64, u64),
        last: LastBatch,
    ) -> Option<(Vec<Sample>, Position)> {
        let n = self.len;
        let left = n - start;
        if left == 0 || (last == LastBatch::Drop && left < batch) {
            return None;
        }
        let size = if last == LastBatch::Short { left.min(batch) } else { batch };
        let own = start + size * rank / ranks..start + size * (rank + 1) / ranks;
        let sample = |p: u64| {
            let padding = last == LastBatch::Pad && p >= n;
            let epoch = if padding { epoch } else { epoch + p / n };
            let position = p % n;
            Sample { record: self.record((epoch, position)), epoch, position, padding }
        };
        let samples = own.map(sample).collect();
        let end = start + batch;
        let after = match last {
            LastBatch::Continuous => (epoch + end / n, end % n),
            LastBatch::Drop if n - end.min(n) < batch => (epoch + 1, 0),
            _ if end >= n => (epoch + 1, 0),
            _ => (epoch, end),
        };
        Some((samples, after))
    }
}
