//! The loader: threads that make batches, and an iterator that yields them in order.

use super::left_out::LeftOut;
use super::pace::{Pace, WINDOW};
use super::plan::{BatchTickets, StepPlan, Ticket, catch_panic};
use super::queue::{BoundedQueue, Done, Job, Planned, Polled, QueueLimits};
use super::step::Step;
use super::times::LoaderTimes;
use super::worker::BatchWorker;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Interrupt, Traffic};
use crate::order::{Cursor, Position, State};
use crate::warning::Warning;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An iterator over the batches of an epoch, in order. Made by [`Dataset::loader`](crate::Dataset::loader).
///
/// Threads start with the first call of `next` and end when the loader is dropped. The batches depend only on
/// the seed, the epoch and the batch size.
///
/// One loader iterates over all epochs. At the end of an epoch it returns `None`, and the next call starts
/// the next epoch. [`begin`](Loader::begin) starts an iteration as `iter(loader)` does in Python:
///
/// * After an epoch that was left early, the same epoch starts again at position 0.
/// * After an epoch that was delivered completely, the next epoch starts.
/// * A position that was set by [`seek`](Loader::seek) or [`set_epoch`](Loader::set_epoch) is kept.
///
/// The section "Epochs and iterators" of `docs/shuffling.md` defines these rules, and [`Cursor`] implements
/// them. Epoch 2^64 - 1 is the last one. After it the loader returns one error and then `None`, also with
/// [`repeat`](super::LoaderOptions::repeat).
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
    threads: ThreadNumber,
    running: Execution,
    fingerprint: OnceLock<String>,
    warnings: Vec<Warning>,
    /// The requests of the store before the loader was made.
    before: Option<Traffic>,
    /// Records that were left out ahead of the run's position.
    left_out: LeftOut,
    /// The next step is the first of an iteration.
    begins: bool,
}

/// The number of threads that make batches.
pub(super) enum ThreadNumber {
    /// 0: the calling thread makes the batches.
    Fixed(usize),
    Chosen(Pace),
}

impl ThreadNumber {
    fn get(&self) -> usize {
        match self {
            ThreadNumber::Fixed(threads) => *threads,
            ThreadNumber::Chosen(pace) => pace.threads(),
        }
    }
}

/// The state of batch production.
enum Execution {
    /// Not started.
    Idle,
    /// There is no further epoch, and the error that reports it was returned.
    Exhausted,
    /// The calling thread makes the batches.
    Inline(Box<InlineBatches>),
    Threads(WorkerThreads),
}

/// The batches of a loader without threads.
struct InlineBatches {
    tickets: BatchTickets,
    late: Option<LateBatch>,
}

/// A batch that is made by a thread while the caller waits for a time: bytes of objects may be late, and a
/// signal has to end the wait.
struct LateBatch {
    made: Receiver<Option<QueuedStep>>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LateBatch {
    fn drop(&mut self) {
        self.interrupt.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl InlineBatches {
    /// Returns the next batch. `None` after the last one.
    fn next(&mut self, worker: &Arc<BatchWorker>, timeout: Option<Duration>) -> Polled<QueuedStep> {
        let late = match self.late.take() {
            Some(late) => late,
            None => match self.tickets.next() {
                None => return Polled::Closed,
                Some(Err(e)) => return Polled::Ready((None, Err(e))),
                Some(Ok(ticket)) if timeout.is_some() && worker.dataset.set().has_objects() => {
                    match LateBatch::start(worker, ticket) {
                        Ok(late) => late,
                        Err(e) => return Polled::Ready((None, Err(e))),
                    }
                }
                Some(Ok(ticket)) => return self.made(make(worker, &ticket)),
            },
        };
        let made = match timeout {
            Some(timeout) => late.made.recv_timeout(timeout),
            None => late.made.recv().map_err(RecvTimeoutError::from),
        };
        match made {
            Err(RecvTimeoutError::Timeout) => {
                self.late = Some(late);
                Polled::Pending
            }
            // The thread catches panics.
            Err(RecvTimeoutError::Disconnected) => Polled::Ready((None, Err(ErrorKind::Cancelled.into()))),
            Ok(made) => self.made(made),
        }
    }

    /// Notes if a batch is the last one.
    fn made(&mut self, made: Option<QueuedStep>) -> Polled<QueuedStep> {
        if made.as_ref().is_none_or(|(after, _)| after.is_none()) {
            self.tickets.end();
        }
        made.map_or(Polled::Closed, Polled::Ready)
    }
}

impl LateBatch {
    fn start(worker: &Arc<BatchWorker>, ticket: Ticket) -> Result<LateBatch> {
        let (send, made) = sync_channel(1);
        let worker = Arc::clone(worker);
        let interrupt = Interrupt::default();
        let of_thread = interrupt.clone();
        let run = move || {
            let made = of_thread.during(|| make(&worker, &ticket));
            // A dropped loader receives nothing.
            let _ = send.send(made);
        };
        let name = "tfseek-load-0";
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = spawned.map_err(|e| cannot_start(name, &e))?;
        Ok(LateBatch { made, interrupt, thread: Some(thread) })
    }
}

/// Plans and makes the batch of a ticket. `None` if there is none.
fn make(worker: &BatchWorker, ticket: &Ticket) -> Option<QueuedStep> {
    let plan = catch_panic(|| ticket.plan(&worker.dataset)).transpose()?;
    Some(match plan {
        Err(e) => (None, Err(e)),
        Ok(mut plan) => {
            worker.request_ahead(&mut plan);
            (Some(plan.after), catch_panic(|| worker.make(plan, || ())))
        }
    })
}

#[cold]
fn cannot_start(thread: &str, e: &io::Error) -> Error {
    io::Error::new(e.kind(), format!("cannot start thread {thread}: {e}")).into()
}

/// The result of [`Loader::next_within`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the others are rare, and a box is an allocation")]
pub enum NextStep {
    /// The next step, or its error.
    Ready(Result<Step>),
    /// The epoch has ended. The next call starts the next epoch. Has the records that were left out after the
    /// last step: their numbers, and the reasons.
    EpochEnd(Vec<(u64, Error)>),
    /// The time has passed, and the step is not ready.
    Timeout,
}

/// A batch, and the run's position after it. `None`: planning failed. A step of `None` must be planned anew.
type QueuedStep = (Option<Position>, Result<Option<Step>>);

/// The threads of a running loader. They are plain threads: they block, which threads of a pool must not.
struct WorkerThreads {
    pool: Arc<Pool>,
    /// Number of workers that were started, and of those that work.
    started: usize,
    working: usize,
    /// When the last batch was returned. Not measured for a fixed number of threads.
    returned: Option<Instant>,
}

/// State shared by the threads.
struct Pool {
    worker: Arc<BatchWorker>,
    queue: BoundedQueue<BatchTickets, Result<StepPlan>, QueuedStep>,
    handles: Mutex<Vec<JoinHandle<()>>>,
    interrupt: Interrupt,
    /// The planner was started. It is the only one that requests records ahead.
    plans: AtomicBool,
}

impl Drop for WorkerThreads {
    /// Waits for all threads. Each worker finishes its current batch first, or gives it up at its next
    /// picture or if it waits for a request.
    fn drop(&mut self) {
        let Pool { worker, queue, interrupt, .. } = &*self.pool;
        worker.cancelled.store(true, Ordering::Relaxed);
        let mut left = queue.stop();
        interrupt.set();
        // A worker may start the planner before it ends itself.
        while let Some(handle) = { self.pool.handles().pop() } {
            let _ = handle.join();
        }
        // Plans that were being made at the time of the first `stop`.
        left.append(&mut queue.stop());
        left.iter().flatten().for_each(|plan| worker.forget(plan));
        worker.cancelled.store(false, Ordering::Relaxed);
    }
}

impl WorkerThreads {
    fn start(
        worker: &Arc<BatchWorker>,
        tickets: BatchTickets,
        limits: QueueLimits,
        threads: usize,
    ) -> Result<WorkerThreads> {
        let pool = Pool {
            worker: Arc::clone(worker),
            queue: BoundedQueue::new(limits, tickets, threads),
            handles: Mutex::default(),
            interrupt: Interrupt::default(),
            plans: AtomicBool::new(false),
        };
        let mut all = WorkerThreads { pool: Arc::new(pool), started: 0, working: threads, returned: None };
        if worker.looks_ahead() {
            all.pool.look_ahead()?;
        }
        all.start_workers(threads)?;
        Ok(all)
    }

    /// Starts workers until there are this many.
    fn start_workers(&mut self, threads: usize) -> Result<()> {
        while self.started < threads {
            let k = self.started;
            self.pool.spawn(format!("tfseek-load-{k}"), move |pool| pool.work(k))?;
            self.started += 1;
        }
        Ok(())
    }

    /// Waits for the next step for at most `timeout`. Chooses the number of threads meanwhile.
    fn next(&mut self, timeout: Option<Duration>, pace: &mut Pace) -> Polled<QueuedStep> {
        let mut since = Instant::now();
        let deadline = timeout.and_then(|timeout| since.checked_add(timeout));
        let mut worked = self.returned.take().map_or(Duration::ZERO, |returned| since - returned);
        loop {
            let left = deadline.map_or(WINDOW, |deadline| deadline.saturating_duration_since(since));
            let next = self.pool.queue.next(Some(left.min(WINDOW)));
            let now = Instant::now();
            let batches = u64::from(matches!(next, Polled::Ready(_)));
            pace.count(std::mem::take(&mut worked), now - since, batches);
            since = now;
            self.returned = Some(now);
            if pace.threads() != self.working {
                // If no more threads can be started, those that exist go on.
                if self.start_workers(pace.threads()).is_err() {
                    pace.limit(self.started);
                }
                self.working = pace.threads();
                self.pool.queue.set_working(self.working);
            }
            match next {
                Polled::Pending if deadline.is_none_or(|end| now < end) => {}
                next => return next,
            }
        }
    }
}

impl Pool {
    fn handles(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Pool>, name: String, run: impl FnOnce(&Arc<Pool>) + Send + 'static) -> Result<()> {
        let pool = Arc::clone(self);
        let run = move || pool.interrupt.during(|| run(&pool));
        let spawned = std::thread::Builder::new().name(name.clone()).spawn(run);
        let handle = spawned.map_err(|e| cannot_start(&name, &e))?;
        self.handles().push(handle);
        Ok(())
    }

    /// Makes batches until the queue is closed.
    fn work(self: &Arc<Pool>, number: usize) {
        let mut done = None;
        while let Some(job) = self.queue.work(number, done) {
            done = Some(match job {
                Job::Plan(ticket, drawn) => Done::Planned(ticket, self.plan(drawn, |_| ())),
                Job::Make(ticket, plan) => {
                    let after = plan.as_ref().ok().map(|plan| plan.after);
                    // Without a planner, records are requested when their batch is made.
                    let cold = || _ = self.look_ahead();
                    let made = plan.and_then(|plan| catch_panic(|| self.worker.make(plan, cold)));
                    if !self.worker.looks_ahead() {
                        self.queue.look_ahead(false);
                    }
                    Done::Made(ticket, (after, made))
                }
            });
        }
    }

    /// Lets the planner plan all further batches, and request their records.
    fn look_ahead(self: &Arc<Pool>) -> Result<()> {
        if !self.plans.swap(true, Ordering::Relaxed) {
            self.spawn("tfseek-plan".to_owned(), Pool::plan_ahead)?;
        }
        self.queue.look_ahead(true);
        Ok(())
    }

    /// Plans batches ahead of the workers until the queue is closed.
    fn plan_ahead(self: &Arc<Pool>) {
        let mut planned = None;
        while let Some((ticket, drawn)) = self.queue.draw(planned) {
            planned = Some((ticket, self.plan(drawn, |plan| self.worker.request_ahead(plan))));
        }
    }

    /// Plans the batch of a ticket.
    fn plan(&self, drawn: Result<Ticket>, then: impl FnOnce(&mut StepPlan)) -> Planned<Result<StepPlan>> {
        let plan = drawn.and_then(|ticket| {
            catch_panic(|| {
                let mut plan = ticket.plan(&self.worker.dataset)?;
                plan.as_mut().map(then);
                Ok(plan)
            })
        });
        match plan {
            Ok(Some(plan)) => {
                let cost = plan.cost;
                Planned::Batch(Ok(plan), cost)
            }
            Ok(None) => Planned::End,
            Err(e) => Planned::Last(Err(e)),
        }
    }
}

impl Loader {
    pub(super) fn new(
        worker: BatchWorker,
        cursor: Cursor,
        limits: QueueLimits,
        threads: ThreadNumber,
        warnings: Vec<Warning>,
    ) -> Loader {
        Loader {
            before: worker.dataset.traffic(),
            worker: Arc::new(worker),
            cursor,
            limits,
            threads,
            running: Execution::Idle,
            fingerprint: OnceLock::new(),
            warnings,
            left_out: LeftOut::default(),
            begins: true,
        }
    }

    /// Returns what the store of the objects has read since the loader was made, also for others that share
    /// it. `None` for files.
    pub fn traffic(&self) -> Option<Traffic> {
        let now = self.worker.dataset.traffic()?;
        Some(now.since(&self.before.unwrap_or_default()))
    }

    /// Returns the loader's position in its epochs: the order, the epoch, the number of steps left. A clone
    /// of the cursor can compute the position at which the next iteration would begin.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Returns a readable description of the order and its cost.
    pub fn describe(&self) -> String {
        self.cursor.order().describe(Some(self.cursor.global_batch()))
    }

    /// Returns warnings about the order, for example that it will be slow on this machine. Also returns the
    /// warnings of [`BatchParser::unknown_names`](crate::BatchParser::unknown_names) once the first batch was
    /// returned.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns how long the loader's threads have worked, since it was made. Times include batches that were
    /// not returned yet.
    pub fn times(&self) -> LoaderTimes {
        self.worker.times()
    }

    /// Returns the number of threads that make batches. 0: the calling thread makes them. Unless it was
    /// [set](super::LoaderOptions::threads), it is the number chosen so far.
    pub fn threads(&self) -> usize {
        self.threads.get()
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(test)]
    pub(super) fn bytes_in_flight(&self) -> u64 {
        match &self.running {
            Execution::Threads(threads) => threads.pool.queue.bytes(),
            _ => 0,
        }
    }

    /// Returns the state for a checkpoint: the same on all ranks, and less than 1 KiB as JSON.
    ///
    /// The state counts batches that were returned, not batches that were made ahead. A batch that was an
    /// error counts once a later batch was returned. After the last batch of an epoch the state is the start
    /// of the next epoch. With several workers ([`worker`](super::LoaderOptions::worker)) it is the end of
    /// the epoch until that end was returned.
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

    /// Resumes a saved run with its seed, epoch and position, in O(1). This loader keeps its batch size,
    /// ranks and threads. If the resumed iteration is left early, the next one starts the epoch again at
    /// position 0.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the state is of another dataset, another kind of
    /// order or another algorithm. The loader then keeps its position.
    pub fn seek(&mut self, state: &State) -> Result<()> {
        let fingerprint = self.fingerprint()?.to_owned();
        self.move_cursor(|cursor| cursor.seek(state, &fingerprint))
    }

    /// Moves to the start of an epoch, which may be the current one. If the next iteration would start in
    /// that epoch anyway, its position is kept ([`Cursor::set_epoch`]).
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for a mixture whose number of positions up to that epoch
    /// exceeds 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        self.move_cursor(|cursor| cursor.set_epoch(epoch))
    }

    /// Begins an iteration: at the start of the current epoch if it was left early, and at the start of the
    /// next one if the current epoch was delivered completely. A position that was set is kept if no batch
    /// was requested from it yet.
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
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the last epoch has ended.
    pub fn begin(&mut self) -> Result<()> {
        self.move_cursor(Cursor::begin)
    }

    /// Moves to the position of a cursor: a modified clone of this loader's cursor, or the cursor of another
    /// loader of the same dataset and order. A forked child, which lacks the parent's threads, builds a new
    /// loader and continues at the parent's position with this method.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the cursor's order has other records or positions.
    pub fn go_to(&mut self, cursor: &Cursor) -> Result<()> {
        self.move_cursor(|own| own.go_to(cursor))
    }

    /// Stops the threads once the cursor has moved. After an error the loader is unchanged.
    fn move_cursor(&mut self, to: impl FnOnce(&mut Cursor) -> Result<()>) -> Result<()> {
        to(&mut self.cursor)?;
        self.stop();
        self.left_out = LeftOut::default();
        Ok(())
    }

    /// Starts an iteration, or the rest of one.
    fn start(&mut self) -> Result<()> {
        let mut cursor = self.cursor.clone();
        if let Err(e) = cursor.enter() {
            self.running = Execution::Exhausted;
            return Err(e);
        }
        self.worker.take_left_out();
        let tickets = BatchTickets::new(&cursor, &self.left_out, self.begins)?;
        self.cursor = cursor;
        self.running = Execution::Idle;
        self.worker.begin(&tickets);
        self.running = match self.threads.get() {
            0 => Execution::Inline(Box::new(InlineBatches { tickets, late: None })),
            threads => Execution::Threads(WorkerThreads::start(&self.worker, tickets, self.limits, threads)?),
        };
        Ok(())
    }

    /// Waits for the next step for at most `timeout`.
    ///
    /// This serves callers that must do other work while they wait, for example check for signals. Without
    /// threads, a batch of objects of a store is then made by a thread of its own; a batch of files is
    /// complete when this returns.
    pub fn next_within(&mut self, timeout: Duration) -> NextStep {
        self.advance(Some(timeout))
    }

    fn advance(&mut self, timeout: Option<Duration>) -> NextStep {
        loop {
            match (self.next_made(timeout), timeout) {
                (Some(next), _) => return next,
                (None, Some(_)) => return NextStep::Timeout,
                (None, None) => {}
            }
        }
    }

    /// Waits for the next step. `None`: records of it were left out, and it is made again.
    fn next_made(&mut self, timeout: Option<Duration>) -> Option<NextStep> {
        if let Execution::Idle = self.running {
            // All batches of the epoch were returned, but its end was not.
            if self.cursor.has_crossed() {
                return Some(self.end_epoch());
            }
            self.begins = true;
            if let Err(e) = self.start() {
                return Some(NextStep::Ready(Err(e)));
            }
        }
        let next = match &mut self.running {
            Execution::Idle | Execution::Exhausted => {
                self.running = Execution::Idle;
                return Some(NextStep::EpochEnd(Vec::new()));
            }
            Execution::Inline(batches) => batches.next(&self.worker, timeout),
            Execution::Threads(threads) => match &mut self.threads {
                ThreadNumber::Fixed(_) => threads.pool.queue.next(timeout),
                ThreadNumber::Chosen(pace) => threads.next(timeout, pace),
            },
        };
        let (after, made) = match next {
            Polled::Pending => return Some(NextStep::Timeout),
            Polled::Closed => return Some(self.end_epoch()),
            Polled::Ready(made) => made,
        };
        let Some(mut made) = made.transpose() else { return self.plan_anew() };
        self.begins = false;
        if let Some(after) = after {
            self.cursor.move_past(after, made.is_ok());
            if let Ok(step) = &mut made {
                step.skipped.append(&mut self.left_out.take_before(after));
            }
        }
        if let Ok(step) = &mut made {
            self.warnings.append(&mut step.warnings);
        }
        Some(NextStep::Ready(made))
    }

    /// Plans the next step and those after it without the records that were left out of them.
    fn plan_anew(&mut self) -> Option<NextStep> {
        self.stop();
        self.left_out.add(self.worker.take_left_out());
        let start = self.cursor.next_position();
        let len = self.cursor.order().len();
        if self.left_out.is_hopeless(start, len, self.cursor.global_batch())
            && let Some((after, e)) = self.left_out.take_error()
        {
            self.cursor.move_past(after, false);
            return Some(NextStep::Ready(Err(e)));
        }
        self.start().err().map(|e| NextStep::Ready(Err(e)))
    }

    /// Ends the threads, and drops what was requested for them.
    fn stop(&mut self) {
        self.running = Execution::Idle;
        self.worker.end();
    }

    /// Ends the epoch. The next call starts the next epoch.
    fn end_epoch(&mut self) -> NextStep {
        self.stop();
        if !self.left_out.is_empty() && !self.cursor.has_crossed() {
            // The rest of the epoch has no batch.
            let Position { epoch, position } = self.cursor.next_position();
            let end = Position { epoch, position: self.cursor.order().len() };
            if position == 0
                && let Some((_, e)) = self.left_out.take_error()
            {
                self.cursor.move_past(end, false);
                return NextStep::Ready(Err(e));
            }
            self.cursor.move_past(end, true);
        }
        let skipped = self.left_out.take_all();
        self.cursor.end();
        NextStep::EpochEnd(skipped)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Iterator for Loader {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        match self.advance(None) {
            NextStep::Ready(step) => Some(step),
            NextStep::EpochEnd(skipped) => {
                let count = skipped.len() as u64;
                let warning = skipped.first().map(|(_, first)| Warning::payloads_skipped(first, count));
                self.warnings.extend(warning);
                None
            }
            NextStep::Timeout => None,
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
