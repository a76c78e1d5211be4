//! Mixes: several sources in proportions, as one stream of rows or of batches, with epochs that end where a
//! source is complete.

#![expect(clippy::indexing_slicing, reason = "a mix has a source for each component")]

use super::mixture::{self, ComponentPositions, Mixture};
use super::source::{OrderSource, SourceKey};
use super::spec::{Component, MixSpec, MixStart, MixStop};
use crate::error::{Count, Error, ErrorKind, OrderError, Result};

/// Number of components with cached keys in `fill`, and with a line in `describe`.
const FIRST_COMPONENTS: usize = 16;

/// The sources of a mix and their mixture. Positions of the mixture are *turns*: rows, or whole batches.
pub(super) struct Mix {
    mixture: Mixture,
    sources: Vec<OrderSource>,
    /// Number of rows per turn.
    pub(super) rows: u64,
    /// Number of samples per epoch, before it is rounded to whole turns.
    samples: u64,
    /// Number of positions per epoch.
    pub(super) len: u64,
}

impl Mix {
    /// Creates a mix over `n` records.
    ///
    /// # Errors
    /// [`OrderError`] if the components do not match the records, or an epoch has too many positions.
    pub(super) fn new(spec: &MixSpec, n: u64, seed: u64) -> Result<Mix> {
        let mixture = Mixture::new(spec.weights(), seed)?;
        let (sources, total) = sources(&spec.components, n)?;
        let rows = spec.batch.unwrap_or(1);
        if rows == 0 {
            return Err(OrderError::Batch { batch: 0, ranks: 1 }.into());
        }
        let mut mix = Mix { mixture, sources, rows, samples: total, len: 0 };
        mix.samples = match (&spec.start, spec.stop) {
            (Some(start), _) => start.samples,
            (None, MixStop::Never) => total,
            (None, stop) => mix.end(stop).ok_or_else(too_long)?,
        };
        if let Some(start) = &spec.start {
            if spec.stop == MixStop::Never && start.samples != total {
                return Err(Error::state("E", total, start.samples));
            }
            mix.mixture = mix.mixture.starting_at(start.from, start.given.clone())?;
        }
        mix.len = mix.samples.div_ceil(rows).checked_mul(rows).ok_or_else(too_long)?;
        Ok(mix)
    }

    /// Returns the number of samples up to the one that completes the first or the last source.
    fn end(&self, stop: MixStop) -> Option<u64> {
        let end_of = |(c, source): (usize, &OrderSource)| {
            let turn = (source.len - 1) / self.rows;
            let row = (source.len - 1) % self.rows;
            let t = self.mixture.inverse(c, turn, &mut ComponentPositions::default())?;
            t.checked_mul(self.rows)?.checked_add(row + 1)
        };
        let mut ends = self.sources.iter().enumerate().map(end_of);
        match stop {
            MixStop::First => ends.flatten().min(),
            MixStop::Never | MixStop::All => ends.try_fold(0, |last, end| Some(end?.max(last))),
        }
    }

    /// Returns the number of turns before an epoch.
    ///
    /// # Errors
    /// [`OrderError::Refused`] if positions up to its end are beyond u64, or if the cycles begin after it.
    pub(super) fn first_turn(&self, epoch: u64) -> Result<u64> {
        let end = epoch.checked_add(1).and_then(|epochs| epochs.checked_mul(self.len));
        let reason = match end.map(|end| end / self.rows) {
            Some(end) if end >= self.mixture.from => return Ok(end - self.len / self.rows),
            Some(end) => format!(
                "the weights of the mix were changed at {}: the order of epoch {epoch}, which ends at {end}, is not known",
                self.mixture.from
            ),
            None => {
                format!("expected global positions below 2^64, found epoch {epoch} of {} positions", self.len)
            }
        };
        Err(Error::order(reason))
    }

    /// Returns the first position with a sample of the epoch that begins at turn `first`.
    pub(super) fn start(&self, first: u64) -> u64 {
        // At most `len`, because the epoch does not end before it.
        self.mixture.from.saturating_sub(first) * self.rows
    }

    /// Returns the start of the cycles. Of a new run it is 0.
    pub(super) fn started(&self) -> MixStart {
        let given = self.mixture.given_before(self.mixture.from);
        MixStart { from: self.mixture.from, given, samples: self.samples }
    }

    /// Returns the start of cycles with other weights at turn `t`.
    ///
    /// # Errors
    /// [`OrderError::State`] for a turn before the current cycles.
    pub(super) fn restarted(&self, t: u64) -> Result<MixStart> {
        if t < self.mixture.from {
            return Err(Error::state("from", t, self.mixture.from));
        }
        Ok(MixStart { from: t, given: self.mixture.given_before(t), samples: self.samples })
    }

    /// Fills `out` with the records at the positions from `start` on, in the epoch that begins at turn
    /// `first`. The keys of the cycle and of the first components are derived only when they change.
    pub(super) fn fill(&self, seed: u64, first: u64, start: u64, out: &mut [u64]) -> Result<()> {
        let begin = self.start(first);
        if start < begin && begin >= self.len {
            return Err(OrderError::Position { position: start, len: 0 }.into());
        }
        // Positions before a change of weights occur only as padding. They repeat those after it.
        let turn = |position: u64| {
            let position = if position < begin { begin + position % (self.len - begin) } else { position };
            (first + position / self.rows, position % self.rows)
        };
        let mut cycle = self.mixture.cycle(turn(start).0);
        let mut keys: [Option<(u64, SourceKey)>; FIRST_COMPONENTS] = [const { None }; FIRST_COMPONENTS];
        let mut last = None;
        // The open range is second, so that it does not step beyond the last position.
        for (out, position) in out.iter_mut().zip(start..) {
            let (t, row) = turn(position);
            let (c, batch) = match last {
                Some((same, found)) if same == t => found,
                _ => self.mixture.get_by(&mut cycle, t),
            };
            last = Some((t, (c, batch)));
            let source = &self.sources[c];
            let index = batch * self.rows + row;
            let epoch = index / source.len;
            let position = index % source.len;
            *out = match keys.get_mut(c) {
                Some(Some((cached, key))) if *cached == epoch => source.get(key, position),
                Some(slot) => {
                    let (_, key) = slot.insert((epoch, self.key(seed, c, epoch)));
                    source.get(key, position)
                }
                None => source.get(&self.key(seed, c, epoch), position),
            };
        }
        Ok(())
    }

    /// Calls `found` with each position of a record in the epoch that begins at turn `first`.
    pub(super) fn positions(&self, seed: u64, first: u64, record: u64, mut found: impl FnMut(u64)) {
        // An epoch may begin and end in the middle of a cycle, and in the middle of a component's own epochs.
        let begin = first.max(self.mixture.from);
        let Some(last) = (first + self.len / self.rows).checked_sub(1).filter(|last| *last >= begin) else {
            return;
        };
        for (c, source) in self.sources.iter().enumerate() {
            let turns = self.mixture.samples(c, begin, last);
            let samples = turns.start() * self.rows
                ..=turns.end().saturating_mul(self.rows).saturating_add(self.rows - 1);
            let mut own = ComponentPositions::default();
            for epoch in samples.start() / source.len..=samples.end() / source.len {
                let before = epoch * source.len;
                source.positions(&self.key(seed, c, epoch), record, |position| {
                    let Some(index) = before.checked_add(position).filter(|index| samples.contains(index))
                    else {
                        return;
                    };
                    let t = self.mixture.inverse(c, index / self.rows, &mut own);
                    if let Some(t) = t.filter(|t| (begin..=last).contains(t)) {
                        found((t - first) * self.rows + index % self.rows);
                    }
                });
            }
        }
    }

    /// Returns the key of component `c` in one of its epochs.
    fn key(&self, seed: u64, c: usize, epoch: u64) -> SourceKey {
        self.sources[c].key(seed, epoch, mixture::stream(c))
    }

    /// Describes the mix as text for users.
    pub(super) fn describe(&self, global_batch: Option<u64>) -> String {
        let sources = &self.sources;
        let weights = &self.mixture.weights;
        let turns = if self.rows == 1 { String::new() } else { format!(" batches of {}", self.rows) };
        let mut text = format!(
            "{} in a mixture of {}, cycles of {}{turns}",
            Count(self.len, "position"),
            Count(sources.len() as u64, "component"),
            self.mixture.cycle_len()
        );
        if self.mixture.from > 0 {
            text += &format!(", with these weights since {}", self.mixture.from);
        }
        for (c, (source, weight)) in sources.iter().zip(weights).enumerate().take(FIRST_COMPONENTS) {
            text += &format!("\n  {c}: {weight} per cycle from {}", source.describe(global_batch));
        }
        if sources.len() > FIRST_COMPONENTS {
            text += &format!("\n  and {} more", sources.len() - FIRST_COMPONENTS);
        }
        text
    }
}

/// Returns the sources of components over `n` records, and the number of their positions per epoch.
fn sources(components: &[Component], n: u64) -> Result<(Vec<OrderSource>, u64)> {
    let mut sources = Vec::with_capacity(components.len());
    let mut len = 0u64;
    for (c, component) in components.iter().enumerate() {
        let refused = |reason: String| Error::order(format!("component {c}: {reason}"));
        let source = OrderSource::component(component, n).map_err(|e| match e.into_kind() {
            // Keeps the reason and adds the component, without repeating "order refused".
            ErrorKind::Order(OrderError::Refused { reason }) => refused(reason.into()),
            other => refused(other.to_string()),
        })?;
        if source.len == 0 {
            return Err(refused("no records".to_owned()));
        }
        len = len
            .checked_add(source.len)
            .ok_or_else(|| refused("expected at most 2^64 - 1 positions in total, found more".to_owned()))?;
        sources.push(source);
    }
    Ok((sources, len))
}

#[cold]
fn too_long() -> Error {
    Error::order("expected an epoch of at most 2^64 - 1 positions, found more")
}
