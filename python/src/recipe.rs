//! What a loader was asked to be: enough to make it again, in a forked child.

use crate::columns::BytesAs;
use crate::dataset::Dataset;
use crate::failure::{Failure, Result};
use crate::ids::Ids;
use crate::schema::Schema;
use crate::wait::Meter;
use crate::words::{Name, Seed, Word, asked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tfseek::column::ColumnOptions;
use tfseek::loader::{ErrorPolicy, LoaderVerify, Shuffle};
use tfseek::order::LastBatch;
use tfseek::{BatchParser, Verify};

/// The arguments of `tfseek.Loader`.
pub(crate) struct Asked {
    batch_size: Option<u64>,
    global_batch_size: Option<u64>,
    shuffle: Option<String>,
    balance: Option<Name>,
    seed: u64,
    epoch: u64,
    rank: u64,
    world_size: u64,
    worker: u64,
    workers: u64,
    tail: Option<LastBatch>,
    threads: Option<usize>,
    batches_ahead: Option<usize>,
    memory: Option<u64>,
    look_ahead: Option<u64>,
    verify: Option<String>,
    errors: String,
    repeat: bool,
}

impl Asked {
    /// Of a dict that has all of them.
    pub(crate) fn of(arguments: &Bound<'_, PyDict>) -> PyResult<Asked> {
        Ok(Asked {
            batch_size: asked(arguments, "batch_size")?,
            global_batch_size: asked(arguments, "global_batch_size")?,
            shuffle: asked(arguments, "shuffle")?,
            balance: asked(arguments, "balance")?,
            seed: asked::<Seed>(arguments, "seed")?.0,
            epoch: asked(arguments, "epoch")?,
            rank: asked(arguments, "rank")?,
            world_size: asked(arguments, "world_size")?,
            worker: asked(arguments, "worker")?,
            workers: asked(arguments, "workers")?,
            tail: asked::<Option<Word<_>>>(arguments, "tail")?.map(|Word(tail)| tail),
            threads: asked(arguments, "threads")?,
            batches_ahead: asked(arguments, "batches_ahead")?,
            memory: asked(arguments, "memory")?,
            look_ahead: asked(arguments, "look_ahead")?,
            verify: asked(arguments, "verify")?,
            errors: asked(arguments, "errors")?,
            repeat: asked(arguments, "repeat")?,
        })
    }
}

/// Bytes of a record that are copied twice without harm.
const SMALL: u64 = 16 << 10;

/// A loader to be, as often as need be.
pub(crate) struct Recipe {
    dataset: tfseek::Dataset,
    ids: Option<Ids>,
    schema: Option<tfseek::Schema>,
    bytes_as: BytesAs,
    asked: Asked,
}

impl Recipe {
    pub(crate) fn new(dataset: &Dataset, schema: Option<&Schema>, bytes_as: BytesAs, asked: Asked) -> Recipe {
        Recipe {
            dataset: dataset.shared.dataset.clone(),
            ids: dataset.view_ids(),
            schema: schema.map(|schema| schema.schema().clone()),
            bytes_as,
            asked,
        }
    }

    pub(crate) fn is_sequence(&self) -> bool {
        self.schema.as_ref().is_some_and(tfseek::Schema::is_sequence)
    }

    pub(crate) fn bytes_as(&self) -> BytesAs {
        self.bytes_as
    }

    /// Whether byte strings are better copied together by the threads that parse, while records are in the cache, than looked for
    /// in the records by the thread that makes objects of them.
    fn has_small_records(&self) -> bool {
        self.dataset.known_bytes().is_some_and(|bytes| bytes / self.dataset.len().max(1) < SMALL)
    }

    pub(crate) fn dataset(&self) -> &tfseek::Dataset {
        &self.dataset
    }

    /// Takes long where a column has to be built.
    pub(crate) fn build(&self, meter: &Arc<Meter>) -> Result<tfseek::Loader> {
        let asked = &self.asked;
        let mut options = match &self.schema {
            Some(schema) => {
                let contiguous = self.bytes_as == BytesAs::Offsets || self.has_small_records();
                self.dataset.loader(schema).parser(BatchParser::new(schema).contiguous_bytes(contiguous))
            }
            None => self.dataset.record_loader(),
        };
        options = match (asked.batch_size, asked.global_batch_size) {
            (Some(samples), None) => options.batch_size(samples),
            (None, Some(samples)) => options.global_batch_size(samples),
            _ => return Err(value_error("a loader takes batch_size or global_batch_size, one of them")),
        };
        if let Some(ids) = &self.ids {
            options = options.subset(ids.subset()?);
        }
        if let Some(feature) = &asked.balance {
            meter.expect(self.dataset.known_bytes());
            let columns = ColumnOptions::new().progress(meter.callback());
            options = options.balance(&self.dataset.column_with(feature, &columns)?.classes()?);
        }
        options = options
            .order(shuffle(asked.shuffle.as_deref())?)
            .seed(asked.seed)
            .epoch(asked.epoch)
            .rank(asked.rank, asked.world_size)
            .worker(asked.worker, asked.workers)
            .repeat(asked.repeat)
            .errors(match asked.errors.as_str() {
                "raise" => ErrorPolicy::Raise,
                "skip" => ErrorPolicy::Skip,
                other => {
                    return Err(value_error(format!(
                        "errors: expected \"raise\" or \"skip\", found {other:?}"
                    )));
                }
            });
        if let Some(tail) = asked.tail {
            options = options.last_batch(tail);
        }
        if let Some(threads) = asked.threads {
            options = options.threads(threads);
        }
        if let Some(batches) = asked.batches_ahead {
            options = options.batches_ahead(batches);
        }
        if let Some(bytes) = asked.memory {
            options = options.memory(bytes);
        }
        if let Some(bytes) = asked.look_ahead {
            options = options.look_ahead(bytes);
        }
        if let Some(verify) = &asked.verify {
            options = options.verify(match verify.as_str() {
                "payload" => LoaderVerify::Always(Verify::Payload),
                "header" => LoaderVerify::Always(Verify::Header),
                "first_epoch" => LoaderVerify::FirstEpoch,
                other => {
                    let message = format!(
                        "verify: expected \"payload\", \"header\" or \"first_epoch\", found {other:?}"
                    );
                    return Err(value_error(message));
                }
            });
        }
        Ok(options.build()?)
    }
}

/// The order that a word names.
pub(crate) fn shuffle(word: Option<&str>) -> Result<Shuffle> {
    match word {
        None => Ok(Shuffle::None),
        Some("global") => Ok(Shuffle::Global),
        Some("block") => Ok(Shuffle::Block),
        Some(other) => {
            let message = format!("shuffle: expected a bool, \"global\" or \"block\", found {other:?}");
            Err(value_error(message))
        }
    }
}

pub(crate) fn value_error(message: impl Into<String>) -> Failure {
    Failure::Python(PyValueError::new_err(message.into()))
}
