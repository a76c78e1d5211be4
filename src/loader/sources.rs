//! The sources of a mix: several data sets as one, with an order, a parser and a fingerprint for all of them.

use crate::batch::{Batch, BatchParser, MergedRow, Row};
use crate::dataset::{Dataset, OrderBlocks};
use crate::error::{Error, ErrorKind, Result};
use crate::order::{Component, MixSpec, MixStop, Spec, Subset, check_memory, joined_fingerprint};
use crate::warning::Warning;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The sources of a mix, in order.
#[derive(Clone)]
pub(super) struct MixSources {
    sources: Vec<MixSource>,
    /// Number of the first record of each source.
    starts: Vec<u64>,
    /// True if a batch has samples of one source only.
    pub(super) whole_batches: bool,
    pub(super) stop: MixStop,
    /// True if the parser of the first source parses the records of all.
    alike: bool,
}

/// One source of a mix.
#[derive(Clone)]
pub(super) struct MixSource {
    pub(super) dataset: Dataset,
    pub(super) parser: Option<BatchParser>,
    pub(super) subset: Option<Subset>,
    pub(super) weight: u64,
}

impl MixSources {
    /// Creates the sources of a mix, and one dataset of all their records. Their shards are opened again, so
    /// a source and its mix may both hold maps and descriptors. In return a mix plans,
    /// prefetches and reads as one dataset, and a loader of one source is as fast as before.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if batches of rows cannot have the same columns for all sources, or if only some
    /// sources have a schema. [`OrderError`](crate::error::OrderError) for no sources.
    pub(super) fn new(
        sources: Vec<MixSource>,
        whole_batches: bool,
        stop: MixStop,
    ) -> Result<(MixSources, Dataset)> {
        let Some(first) = sources.first() else {
            return Err(Error::order("expected sources of a mix, found none"));
        };
        let dataset = Dataset::joined(sources.iter().map(|source| &source.dataset))?;
        let mut alike = true;
        for (number, source) in sources.iter().enumerate() {
            let same = match (&first.parser, &source.parser) {
                (None, None) => true,
                (Some(one), Some(other)) => {
                    let same = one.is_like(other);
                    if !same && !whole_batches {
                        one.check_columns(other).map_err(|e| source_error(number, e))?;
                    }
                    if one.is_sequence() != other.is_sequence() {
                        let reason = "expected records of one type, found Examples and SequenceExamples";
                        return Err(source_error(number, Error::spec(reason)));
                    }
                    same
                }
                _ => {
                    let reason = "expected a schema for all sources or for none, found one for some";
                    return Err(source_error(number, Error::spec(reason)));
                }
            };
            alike &= same;
        }
        let starts = sources.iter().scan(0u64, |start, source| {
            let this = *start;
            *start += source.dataset.len();
            Some(this)
        });
        let starts = starts.collect();
        Ok((MixSources { sources, starts, whole_batches, stop, alike }, dataset))
    }

    /// Returns the parser of the first source.
    pub(super) fn parser(&self) -> Option<BatchParser> {
        self.sources.first()?.parser.clone()
    }

    /// Returns the sources of a loader, with [its parsers](BatchParser::of_loader).
    pub(super) fn of_loader(mut self, cancelled: &Arc<AtomicBool>) -> MixSources {
        for source in &mut self.sources {
            source.parser = source.parser.take().map(|parser| parser.of_loader(cancelled));
        }
        self
    }

    /// Returns the number of the source of a record.
    fn source_of(&self, record: u64) -> usize {
        self.starts.partition_point(|start| *start <= record) - 1
    }

    /// Returns the order of all sources, in global batches of this size. `order_of` returns the order of one
    /// dataset.
    ///
    /// # Errors
    /// Errors of `order_of`.
    pub(super) fn spec(&self, batch: u64, order_of: impl Fn(&Dataset) -> Result<Spec>) -> Result<Spec> {
        let mut components = Vec::with_capacity(self.sources.len());
        for (source, &start) in self.sources.iter().zip(&self.starts) {
            let order = restricted(order_of(&source.dataset)?, source.subset.as_ref());
            let records = start..start + source.dataset.len();
            components.push(Component::new(source.weight, order).over(records));
        }
        let mix = MixSpec::new(components).stop(self.stop);
        Ok(Spec::Mix(if self.whole_batches { mix.batches(batch) } else { mix }))
    }

    /// Returns the blocks of the block order of each source, and the number of records of all their windows.
    /// Checks that the windows fit into memory together.
    ///
    /// # Errors
    /// [`OrderError::Memory`](crate::error::OrderError::Memory).
    pub(super) fn blocks(&self, spec: &Spec, memory: u64) -> Result<(Vec<Option<OrderBlocks>>, u64)> {
        let mut blocks = Vec::new();
        let mut records = 0u64;
        for ((order, dataset), &first) in self.orders(spec).zip(&self.starts) {
            let (order, filtered) = match order {
                Spec::Filtered { order, .. } => (&**order, true),
                order => (order, false),
            };
            blocks.push(match *order {
                Spec::Block { block, window } => {
                    let share = memory / self.sources.len().max(1) as u64;
                    if let Some(bytes) = dataset.known_bytes() {
                        check_memory(dataset.len(), bytes, block, window, share)?;
                    }
                    records = records.saturating_add(block.saturating_mul(window));
                    // A filtered order has blocks of the records that pass.
                    (!filtered).then_some(OrderBlocks { first, len: block })
                }
                _ => None,
            });
        }
        Ok((blocks, records))
    }

    /// Returns the order of each source, and its dataset.
    pub(super) fn orders<'a>(&'a self, spec: &'a Spec) -> impl Iterator<Item = (&'a Spec, &'a Dataset)> {
        let orders = if let Spec::Mix(mix) = spec { mix.orders().collect() } else { Vec::new() };
        orders.into_iter().zip(self.sources.iter().map(|source| &source.dataset))
    }

    /// Returns the blocks of a record's source, from the blocks of all sources.
    pub(super) fn blocks_of(&self, blocks: &[Option<OrderBlocks>], record: u64) -> Option<OrderBlocks> {
        blocks.get(self.source_of(record)).copied().flatten()
    }

    /// Returns the fingerprint of all sources.
    ///
    /// # Errors
    /// For a dataset opened from a pack: the errors of opening each shard.
    pub(super) fn fingerprint(&self) -> Result<String> {
        let each =
            self.sources.iter().map(|source| Ok((source.dataset.fingerprint()?, source.dataset.len())));
        Ok(joined_fingerprint(&each.collect::<Result<Vec<_>>>()?))
    }

    /// Returns the parser for all rows of a batch that has these records. `None` if the rows need several.
    pub(super) fn parser_of(&self, ids: &[u64]) -> Option<&BatchParser> {
        let number = match ids.first() {
            Some(id) if !self.alike && self.whole_batches => self.source_of(*id),
            _ if self.alike => 0,
            _ => return None,
        };
        self.sources.get(number)?.parser.as_ref()
    }

    /// Returns true if rows of one batch could stand in another one: with whole batches, rows of one source.
    pub(super) fn have_like_columns(&self, ids: &[u64], others: &[u64]) -> bool {
        let source = |ids: &[u64]| ids.first().map(|&id| self.source_of(id));
        !self.whole_batches || source(ids) == source(others)
    }

    /// Parses rows with the parsers of their sources, and merges the batches. `id_of` returns the record of a
    /// row. `skip` is called with the number and the error of each refused row, if refused rows are left out.
    /// Adds warnings about unknown names to `names`.
    ///
    /// # Errors
    /// Errors of the parsers and of `skip`.
    #[expect(clippy::indexing_slicing, reason = "a row belongs to one of the sources")]
    pub(super) fn parse<R: Row>(
        &self,
        rows: &[R],
        id_of: impl Fn(usize) -> u64,
        mut skip: Option<impl FnMut(usize, Error) -> Result<()>>,
        mut names: Option<&mut Vec<Warning>>,
    ) -> Result<Batch> {
        let len = rows.len();
        let mut own: Vec<(Vec<&R>, Vec<u32>)> = self.sources.iter().map(|_| Default::default()).collect();
        for (row, parsed) in rows.iter().enumerate() {
            let (rows, numbers) = &mut own[self.source_of(id_of(row))];
            rows.push(parsed);
            numbers.push(row as u32);
        }
        let mut merged: Vec<Option<MergedRow>> = vec![None; len];
        let mut parts = Vec::with_capacity(own.len());
        for (source, (rows, numbers)) in self.sources.iter().zip(&own) {
            let Some(parser) = source.parser.as_ref().filter(|_| !rows.is_empty()) else { continue };
            let mut refused = Vec::new();
            if let Some(names) = &mut names {
                names.extend(parser.unknown_names(rows).map_err(|e| e.row_of(numbers))?);
            }
            let batch = match &mut skip {
                None => parser.parse(rows).map_err(|e| e.row_of(numbers))?,
                Some(skip) => parser.parse_skipping(rows, |row, error| {
                    refused.push(row);
                    skip(numbers[row] as usize, error.row_of(numbers))
                })?,
            };
            refused.sort_unstable();
            let kept = numbers.iter().enumerate().filter(|(row, _)| refused.binary_search(row).is_err());
            for (row, (_, number)) in kept.enumerate() {
                merged[*number as usize] = Some((parts.len() as u32, row as u32));
            }
            if batch.rows() > 0 {
                parts.push(batch);
            }
        }
        let rows: Vec<MergedRow> = merged.into_iter().flatten().collect();
        match self.parser() {
            Some(parser) if rows.is_empty() => parser.parse::<&[u8]>(&[]),
            Some(parser) => parser.merge(&parts, &rows),
            None => Err(Error::order("the sources have no schema")),
        }
    }
}

/// Returns an order of only these records. `None`: of all records.
pub(super) fn restricted(order: Spec, subset: Option<&Subset>) -> Spec {
    match subset {
        Some(subset) => order.filtered(subset.clone()),
        None => order,
    }
}

#[cold]
fn source_error(number: usize, e: Error) -> Error {
    match e.kind() {
        ErrorKind::Spec(reason) => {
            let located = Error::spec(format!("source {number} of the mix: {reason}"));
            match &e.location().feature {
                Some(feature) => located.feature(feature.as_bytes()),
                None => located,
            }
        }
        _ => e,
    }
}
