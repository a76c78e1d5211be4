//! The loader: threads that make batches, and an iterator that hands them out in order.

use super::plan::{BatchPlanner, StepPlan};
use super::queue::{BoundedQueue, Polled, QueueLimits};
use super::step::Step;
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

/// Batches of an epoch, in order: an iterator. Made by [`Dataset::loader`](crate::Dataset::loader).
///
/// Threads start when the first batch is asked for, and end with the loader. The batches depend on the seed, the epoch and the
/// batch size, and on nothing else.
///
/// The loader is one iterator over all epochs: at the end of an epoch it gives `None`, and asked again it goes on with the next
/// epoch. [`begin`](Loader::begin) starts an iteration as `iter(loader)` does in Python: an epoch that was left early begins again
/// at position 0, one that was handed out whole is followed by the next, and a place that [`seek`](Loader::seek) or
/// [`set_epoch`](Loader::set_epoch) chose is kept. `docs/shuffling.md` ("Epochs and iterators") defines all of it; the rules are
/// those of [`Cursor`], which the loader moves. Epoch 2^64 - 1 is the last one: asked for more, with
/// [`repeat`](super::LoaderOptions::repeat) too, the loader gives one error and then `None`.
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
/// let mut loader = ds.loader(&schema).batch_size(64).order(tfseek::loader::Shuffle::Global).seed(42).build()?;
/// let mut seen = 0;
/// for step in loader.by_ref().take(3) {
///     seen += step?.batch().unwrap().rows();
/// }
/// assert_eq!(seen, 192);
///
/// // Saved, and gone on with elsewhere: with other threads, and another number of ranks.
/// let saved = loader.state()?.to_json();
/// let mut again = ds.loader(&schema).global_batch_size(64).order(tfseek::loader::Shuffle::Global).seed(42).rank(0, 2).threads(1).build()?;
/// again.seek(&tfseek::order::State::from_json(&saved)?)?;
/// let (here, there) = (loader.next().unwrap()?, again.next().unwrap()?);
/// assert_eq!(here.ids()[..32], *there.ids());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Loader {
    worker: Arc<BatchWorker>,
    cursor: Cursor,
    limits: QueueLimits,
    /// 0: batches are made by the caller's thread.
    threads: usize,
    running: Execution,
    fingerprint: OnceLock<String>,
    warnings: Vec<Warning>,
}

/// The making of batches at the moment.
enum Execution {
    /// Not started.
    Idle,
    /// There is no further epoch, and the error that says so was handed out.
    Exhausted,
    /// In the caller's thread.
    Inline(Box<BatchPlanner>),
    Threads(WorkerThreads),
}

/// A batch, and the place of the run after it unless planning failed.
type PlacedStep = (Option<Position>, Result<Step>);

struct WorkerThreads {
    worker: Arc<BatchWorker>,
    queue: Arc<BoundedQueue<Result<StepPlan>, PlacedStep>>,
    handles: Vec<JoinHandle<()>>,
}

impl Drop for WorkerThreads {
    /// A worker ends with its current batch.
    fn drop(&mut self) {
        let mut left = self.queue.stop();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        // The planner may have been at one more.
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
            let failed = format!("thread {name} of {threads} of the loader cannot be started");
            let spawned = std::thread::Builder::new().name(name).spawn(run);
            spawned.map_err(|e| Error::from(io::Error::new(e.kind(), format!("{failed}: {e}"))))
        };
        for k in 0..threads {
            let (queue, worker) = (Arc::clone(&queue), Arc::clone(worker));
            let work = move || {
                while let Some((ticket, plan)) = queue.take() {
                    let after = plan.as_ref().ok().map(|plan| plan.after);
                    let made = plan.and_then(|plan| guarded(|| worker.make(plan)));
                    queue.put(ticket, (after, made));
                }
            };
            all.handles.push(spawn(format!("tfseek-load-{k}"), Box::new(work))?);
        }
        let worker = Arc::clone(worker);
        let plan = move || {
            let mut planner = planner;
            while queue.wait_to_plan() {
                match guarded(|| planner.next().transpose()) {
                    Ok(None) => break,
                    Ok(Some(mut plan)) => {
                        worker.announce(&mut plan);
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

/// Turns a panic into an error: the consumer must not wait for a batch that never comes.
fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
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
        }
    }

    /// The place of the loader in its epochs: the order, the epoch, the steps that are left. A clone of it says where an
    /// iteration would begin.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// A description of the order and its cost, for people.
    pub fn describe(&self) -> String {
        self.cursor.order().describe(self.cursor.global_batch())
    }

    /// Warnings about the order: that it will be slow here, say.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Payload bytes of the batches that are being made, or are made and wait.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn bytes_under_way(&self) -> u64 {
        match &self.running {
            Execution::Threads(threads) => threads.queue.bytes(),
            _ => 0,
        }
    }

    /// The state that a checkpoint keeps: the same on all ranks, and less than 1 KiB as JSON. It counts the batches that were handed
    /// out, not those that were made ahead; a batch that was an error counts once a later one was handed out. After the last batch of
    /// an epoch it is where the next epoch begins; of one of several workers, the epoch's end, until that was handed out.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn state(&self) -> Result<State> {
        self.cursor.state(self.fingerprint()?)
    }

    fn fingerprint(&self) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = self.worker.dataset.fingerprint()?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Goes on where a run was saved: with its seed, epoch and position. O(1). Batch size, ranks and threads are this loader's.
    /// If that iteration is left early, the next one begins the epoch at its position 0.
    ///
    /// # Errors
    /// [`ErrorKind::Order`]: another dataset, another kind of order, another algorithm. The loader stays where it was.
    pub fn seek(&mut self, state: &State) -> Result<()> {
        let fingerprint = self.fingerprint()?.to_owned();
        self.move_cursor(|cursor| cursor.seek(state, &fingerprint))
    }

    /// Goes to the start of an epoch, also of the one that it is in. A place in that epoch which is about to begin is kept
    /// ([`Cursor::set_epoch`]).
    ///
    /// # Errors
    /// For a mixture whose positions up to that epoch are beyond 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        self.move_cursor(|cursor| cursor.set_epoch(epoch))
    }

    /// Begins an iteration: with the epoch that it is in, from its start, if that was left early; with the next one, if all
    /// of it was handed out. A place that was chosen, and of which no batch was asked for yet, stays.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for _ in 0..1000 { writer.write(b"")?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let mut loader = ds.record_loader().batch_size(64).order(tfseek::loader::Shuffle::Global).seed(42).build()?;
    /// let first = loader.next().unwrap()?.ids().to_vec(); // a look at the first batch
    /// loader.begin()?;
    /// assert_eq!(loader.next().unwrap()?.ids(), first); // costs the epoch nothing
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Order`] after the last epoch.
    pub fn begin(&mut self) -> Result<()> {
        self.move_cursor(Cursor::begin)
    }

    /// Goes to the place of a cursor: this loader's, moved, or that of another loader of the same dataset and order. A loader in a
    /// forked child goes on in this way where the parent's is, whose threads are not there.
    ///
    /// # Errors
    /// [`ErrorKind::Order`] for an order of other records or positions.
    pub fn go_to(&mut self, cursor: &Cursor) -> Result<()> {
        self.move_cursor(|own| own.go_to(cursor))
    }

    /// Stops the threads once the cursor has moved; on an error all stays as it was.
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

    /// Waits for the next step, at most for `patience`: `None` if it has not come by then. The inner `None` is the end of an epoch.
    ///
    /// For callers with other work to do meanwhile, such as signals.
    pub fn next_within(&mut self, patience: Duration) -> Option<Option<Result<Step>>> {
        self.advance(Some(patience))
    }

    fn advance(&mut self, patience: Option<Duration>) -> Option<Option<Result<Step>>> {
        // All of an epoch was handed out, but its end was not.
        if matches!(self.running, Execution::Idle) && self.cursor.has_crossed() {
            return Some(self.end_epoch());
        }
        if let Execution::Idle = self.running
            && let Err(e) = self.start()
        {
            return Some(Some(Err(e)));
        }
        let (after, made) = match &mut self.running {
            Execution::Idle | Execution::Exhausted => {
                self.running = Execution::Idle;
                return Some(None);
            }
            Execution::Inline(planner) => match planner.next() {
                None => return Some(self.end_epoch()),
                Some(Err(e)) => (None, Err(e)),
                Some(Ok(mut plan)) => {
                    self.worker.announce(&mut plan);
                    (Some(plan.after), guarded(|| self.worker.make(plan)))
                }
            },
            Execution::Threads(threads) => match threads.queue.next(patience) {
                Polled::Pending => return None,
                Polled::Closed => return Some(self.end_epoch()),
                Polled::Ready(made) => made,
            },
        };
        if let Some(after) = after {
            self.cursor.pass(after, made.is_ok());
        }
        Some(Some(made))
    }

    /// Returns `None`, and the next epoch begins.
    fn end_epoch<T>(&mut self) -> Option<T> {
        self.running = Execution::Idle;
        self.cursor.end();
        None
    }
}

impl Iterator for Loader {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        self.advance(None).flatten()
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
