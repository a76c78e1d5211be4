//! The loader: threads that make batches, and an iterator that yields them in order.

use super::plan::{BatchPlanner, StepPlan};
use super::queue::{BoundedQueue, Polled, QueueLimits};
use super::step::{RowLengths, Step};
use super::times::LoaderTimes;
use super::worker::BatchWorker;
use crate::error::{Error, ErrorKind, Result};
use crate::order::{Cursor, Position, State};
use crate::warning::Warning;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// An iterator over the batches of an epoch, in order. Made by [`Dataset::loader`](crate::Dataset::loader).
///
/// Threads start with the first call of `next` and end when the loader is dropped. The batches depend only on the seed, the epoch
/// and the batch size.
///
/// One loader iterates over all epochs. At the end of an epoch it returns `None`, and the next call starts the next epoch.
/// [`begin`](Loader::begin) starts an iteration as `iter(loader)` does in Python:
///
/// * After an epoch that was left early, the same epoch starts again at position 0.
/// * After an epoch that was delivered completely, the next epoch starts.
/// * A position that was set by [`seek`](Loader::seek) or [`set_epoch`](Loader::set_epoch) is kept.
///
/// The section "Epochs and iterators" of `docs/shuffling.md` defines these rules, and [`Cursor`] implements them. Epoch 2^64 - 1 is
/// the last one. After it the loader returns one error and then `None`, also with [`repeat`](super::LoaderOptions::repeat).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
/// # writer.close()?;
/// use tfseek::{DType, FeatureSpec, Schema};
/// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
/// let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
/// let mut loader = ds.loader(&schema).batch_size(64).shuffle(tfseek::loader::Shuffle::Global).seed(42).build()?;
/// let mut seen = 0;
/// for step in loader.by_ref().take(3) {
///     seen += step?.batch().unwrap().rows();
/// }
/// assert_eq!(seen, 192);
///
/// // The state is saved, and the run resumes with other threads and another number of ranks.
/// let saved = loader.state()?.to_json();
/// let mut again = ds.loader(&schema).global_batch_size(64).shuffle(tfseek::loader::Shuffle::Global).seed(42).rank(0, 2).threads(1).build()?;
/// again.seek(&tfseek::order::State::from_json(&saved)?)?;
/// let (here, there) = (loader.next().unwrap()?, again.next().unwrap()?);
/// assert_eq!(here.ids[..32], *there.ids);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Loader {
    worker: Arc<BatchWorker>,
    cursor: Cursor,
    limits: QueueLimits,
    /// Number of worker threads. 0: the calling thread makes the batches.
    threads: usize,
    running: Execution,
    fingerprint: OnceLock<String>,
    warnings: Vec<Warning>,
    /// The cells of all delivered batches that were padded to the longest row, and those of them with values. `None` without buckets.
    cells: Option<[u64; 2]>,
}

/// The state of batch production.
enum Execution {
    /// Not started.
    Idle,
    /// There is no further epoch, and the error that reports it was returned.
    Exhausted,
    /// The calling thread makes the batches.
    Inline(Box<BatchPlanner>),
    Threads(WorkerThreads),
}

/// The result of [`Loader::next_within`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the others are rare, and a box is an allocation")]
pub enum NextStep {
    /// The next step, or its error.
    Ready(Result<Step>),
    /// The epoch has ended. The next call starts the next epoch.
    EpochEnd,
    /// The time has passed, and the step is not ready.
    Timeout,
}

/// A batch, and the run's position after it. `None`: planning failed.
type QueuedStep = (Option<Position>, Result<Step>);

struct WorkerThreads {
    worker: Arc<BatchWorker>,
    queue: Arc<BoundedQueue<Result<StepPlan>, QueuedStep>>,
    handles: Vec<JoinHandle<()>>,
}

impl Drop for WorkerThreads {
    /// Waits for all threads. Each worker finishes its current batch first.
    fn drop(&mut self) {
        let mut left = self.queue.stop();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        // The planner may have added one more plan after the first `stop`.
        left.append(&mut self.queue.stop());
        left.iter().flatten().for_each(|plan| self.worker.forget(plan));
    }
}

impl WorkerThreads {
    fn start(
        worker: &Arc<BatchWorker>,
        planner: BatchPlanner,
        limits: QueueLimits,
        threads: usize,
    ) -> Result<WorkerThreads> {
        let queue = Arc::new(BoundedQueue::new(limits));
        let handles = Vec::with_capacity(threads + 1);
        let mut all = WorkerThreads { worker: Arc::clone(worker), queue: Arc::clone(&queue), handles };
        let spawn = |name: String, run: Box<dyn FnOnce() + Send>| {
            let failed = format!("cannot start thread {name} of {threads}");
            let spawned = std::thread::Builder::new().name(name).spawn(run);
            spawned.map_err(|e| Error::from(io::Error::new(e.kind(), format!("{failed}: {e}"))))
        };
        for k in 0..threads {
            let (queue, worker) = (Arc::clone(&queue), Arc::clone(worker));
            let work = move || {
                while let Some((ticket, plan)) = queue.take() {
                    let after = plan.as_ref().ok().map(|plan| plan.after);
                    let made = plan.and_then(|plan| catch_panic(|| worker.make(plan)));
                    queue.put(ticket, (after, made));
                }
            };
            all.handles.push(spawn(format!("tfseek-load-{k}"), Box::new(work))?);
        }
        let worker = Arc::clone(worker);
        let plan = move || {
            let mut planner = planner;
            while queue.wait_to_plan() {
                match catch_panic(|| planner.next().transpose()) {
                    Ok(None) => break,
                    Ok(Some(mut plan)) => {
                        worker.request_ahead(&mut plan);
                        let cost = plan.cost;
                        queue.plan(Ok(plan), cost);
                    }
                    Err(e) => {
                        queue.plan(Err(e), Default::default());
                        break;
                    }
                }
            }
            queue.end_plan();
        };
        all.handles.push(spawn("tfseek-plan".to_owned(), Box::new(plan))?);
        Ok(all)
    }
}

/// Calls `f` and turns a panic into an error. Otherwise the consumer would wait forever for the batch.
fn catch_panic<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(ErrorKind::Panicked { message: text.into() }.into())
    })
}

impl Loader {
    pub(super) fn new(
        worker: BatchWorker,
        cursor: Cursor,
        limits: QueueLimits,
        threads: usize,
        warnings: Vec<Warning>,
    ) -> Loader {
        Loader {
            worker: Arc::new(worker),
            cursor,
            limits,
            threads,
            running: Execution::Idle,
            fingerprint: OnceLock::new(),
            warnings,
            cells: None,
        }
    }

    /// Returns the loader's position in its epochs: the order, the epoch, the number of steps left. A clone of the cursor can compute
    /// the position at which the next iteration would begin.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Returns a readable description of the order and its cost.
    pub fn describe(&self) -> String {
        self.cursor.order().describe(Some(self.cursor.global_batch()))
    }

    /// Returns warnings about the order, for example that it will be slow on this machine.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns how long the loader's threads have worked, since it was made. Times include batches that were not returned yet.
    pub fn times(&self) -> LoaderTimes {
        self.worker.times()
    }

    /// Returns the number of threads that make batches. 0: the calling thread makes them.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the share of padding in all batches that were returned, if each is padded to the longest row of its global batch
    /// ([`RowLengths::longest`]). `None` without [`buckets`](super::LoaderOptions::buckets), and before the
    /// first batch.
    pub fn padding(&self) -> Option<f64> {
        let [cells, values] = self.cells?;
        Some(if cells == 0 { 0.0 } else { 1.0 - values as f64 / cells as f64 })
    }

    /// Counts the cells of a batch that is returned.
    fn count_cells(&mut self, step: &Step) {
        if let Some(RowLengths { longest, rows, sum }) = step.lengths {
            let [cells, values] = self.cells.unwrap_or_default();
            let more = rows.saturating_mul(longest);
            self.cells = Some([cells.saturating_add(more), values.saturating_add(sum)]);
        }
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn bytes_in_flight(&self) -> u64 {
        match &self.running {
            Execution::Threads(threads) => threads.queue.bytes(),
            _ => 0,
        }
    }

    /// Returns the state for a checkpoint: the same on all ranks, and less than 1 KiB as JSON.
    ///
    /// The state counts batches that were returned, not batches that were made ahead. A batch that was an error counts once a later
    /// batch was returned. After the last batch of an epoch the state is the start of the next epoch. With several workers
    /// ([`worker`](super::LoaderOptions::worker)) it is the end of the epoch until that end was returned.
    ///
    /// # Errors
    /// For a dataset opened from a pack: the errors of opening each shard at its first access.
    pub fn state(&self) -> Result<State> {
        self.cursor.state(self.fingerprint()?)
    }

    fn fingerprint(&self) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = self.worker.fingerprint()?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Resumes a saved run with its seed, epoch and position, in O(1). Batch size, ranks and threads remain those of this loader.
    /// If the resumed iteration is left early, the next one starts the epoch again at position 0.
    ///
    /// # Errors
    /// [`ErrorKind::Order`] if the state is of another dataset, another kind of order or another algorithm. The loader then keeps its
    /// position.
    pub fn seek(&mut self, state: &State) -> Result<()> {
        let fingerprint = self.fingerprint()?.to_owned();
        self.move_cursor(|cursor| cursor.seek(state, &fingerprint))
    }

    /// Moves to the start of an epoch, which may be the current one. If the next iteration would start in that epoch anyway, its
    /// position is kept ([`Cursor::set_epoch`]).
    ///
    /// # Errors
    /// [`ErrorKind::Order`] for a mixture whose number of positions up to that epoch exceeds 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        self.move_cursor(|cursor| cursor.set_epoch(epoch))
    }

    /// Begins an iteration: at the start of the current epoch if it was left early, and at the start of the next one if the current
    /// epoch was delivered completely. A position that was set is kept if no batch was requested from it yet.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for _ in 0..1000 { writer.write(b"")?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let mut loader = ds.record_loader().batch_size(64).shuffle(tfseek::loader::Shuffle::Global).seed(42).build()?;
    /// let first = loader.next().unwrap()?.ids.to_vec(); // reads only the first batch
    /// loader.begin()?;
    /// assert_eq!(loader.next().unwrap()?.ids, first); // the epoch starts again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Order`] if the last epoch has ended.
    pub fn begin(&mut self) -> Result<()> {
        self.move_cursor(Cursor::begin)
    }

    /// Moves to the position of a cursor: a modified clone of this loader's cursor, or the cursor of another loader of the same
    /// dataset and order. A forked child, which lacks the parent's threads, builds a new loader and continues at the parent's position
    /// with this method.
    ///
    /// # Errors
    /// [`ErrorKind::Order`] if the cursor's order has other records or positions.
    pub fn go_to(&mut self, cursor: &Cursor) -> Result<()> {
        self.move_cursor(|own| own.go_to(cursor))
    }

    /// Stops the threads once the cursor has moved. After an error the loader is unchanged.
    fn move_cursor(&mut self, to: impl FnOnce(&mut Cursor) -> Result<()>) -> Result<()> {
        to(&mut self.cursor)?;
        self.running = Execution::Idle;
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let mut cursor = self.cursor.clone();
        if let Err(e) = cursor.enter() {
            self.running = Execution::Exhausted;
            return Err(e);
        }
        let planner = BatchPlanner::new(self.worker.dataset.clone(), &cursor)?;
        self.cursor = cursor;
        self.running = match self.threads {
            0 => Execution::Inline(Box::new(planner)),
            threads => Execution::Threads(WorkerThreads::start(&self.worker, planner, self.limits, threads)?),
        };
        Ok(())
    }

    /// Waits for the next step for at most `timeout`.
    ///
    /// This serves callers that must do other work while they wait, for example check for signals.
    pub fn next_within(&mut self, timeout: Duration) -> NextStep {
        self.advance(Some(timeout))
    }

    fn advance(&mut self, timeout: Option<Duration>) -> NextStep {
        // All batches of the epoch were returned, but its end was not.
        if matches!(self.running, Execution::Idle) && self.cursor.has_crossed() {
            return self.end_epoch();
        }
        if let Execution::Idle = self.running
            && let Err(e) = self.start()
        {
            return NextStep::Ready(Err(e));
        }
        let (after, made) = match &mut self.running {
            Execution::Idle | Execution::Exhausted => {
                self.running = Execution::Idle;
                return NextStep::EpochEnd;
            }
            Execution::Inline(planner) => match planner.next() {
                None => return self.end_epoch(),
                Some(Err(e)) => (None, Err(e)),
                Some(Ok(mut plan)) => {
                    self.worker.request_ahead(&mut plan);
                    (Some(plan.after), catch_panic(|| self.worker.make(plan)))
                }
            },
            Execution::Threads(threads) => match threads.queue.next(timeout) {
                Polled::Pending => return NextStep::Timeout,
                Polled::Closed => return self.end_epoch(),
                Polled::Ready(made) => made,
            },
        };
        if let Some(after) = after {
            self.cursor.move_past(after, made.is_ok());
        }
        if let Ok(step) = &made {
            self.count_cells(step);
        }
        NextStep::Ready(made)
    }

    /// Ends the epoch. The next call starts the next epoch.
    fn end_epoch(&mut self) -> NextStep {
        self.running = Execution::Idle;
        self.cursor.end();
        NextStep::EpochEnd
    }
}

impl Iterator for Loader {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        match self.advance(None) {
            NextStep::Ready(step) => Some(step),
            NextStep::EpochEnd | NextStep::Timeout => None,
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.worker.dataset)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}
