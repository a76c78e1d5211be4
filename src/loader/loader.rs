//! The loader: threads that make batches, and an iterator that hands them out in order.

use super::pipe::Pipe;
use super::plan::{Cursor, Planned, Sharing, Source, epochs_behind};
use super::queue::{Answer, Limits};
use super::step::Step;
use super::worker::Workshop;
use crate::error::{Error, ErrorKind, OrderError, Result};
use crate::order::{LastBatch, Order, State};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// What goes to the consumer.
type Made = Result<Step>;

/// Batches of an epoch, in order: an iterator. Made by [`Dataset::loader`](crate::Dataset::loader).
///
/// Threads start when the first batch is asked for, and end with the loader. What comes out depends on the seed, the epoch and the
/// batch size, and on nothing else.
///
/// The loader is one iterator over all epochs: at the end of an epoch it gives `None`, and asked again it goes on with the next
/// epoch. [`begin`](Loader::begin) starts an iteration as `iter(loader)` does in Python: an epoch that was left early begins again
/// at position 0, one that was handed out whole is followed by the next, and a place that [`seek`](Loader::seek) or
/// [`set_epoch`](Loader::set_epoch) chose is kept. `docs/shuffling.md` ("Epochs and iterators") defines all of it. Epoch 2^64 - 1
/// is the last one: asked for more, with [`repeat`](super::LoaderOptions::repeat) too, the loader gives one error and then `None`.
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
/// let mut loader = ds.loader(&schema).batch_size(64).shuffle(42).build()?;
/// let mut seen = 0;
/// for step in loader.by_ref().take(3) {
///     seen += step?.batch().unwrap().rows();
/// }
/// assert_eq!(seen, 192);
///
/// // Saved, and gone on with elsewhere: with other threads, and another number of ranks.
/// let saved = loader.state()?.to_json();
/// let mut again = ds.loader(&schema).global_batch_size(64).shuffle(42).rank(0, 2).threads(1).build()?;
/// again.seek(&tfseek::order::State::from_json(&saved)?)?;
/// let (here, there) = (loader.next().unwrap()?, again.next().unwrap()?);
/// assert_eq!(here.ids()[..32], *there.ids());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Loader {
    shop: Arc<Workshop>,
    /// The order of some epoch.
    order: Order,
    settings: Settings,
    /// Behind the batches that were handed out: what is saved.
    delivered: Cursor,
    /// Behind those and the ones that were errors: where it goes on.
    next: Cursor,
    running: Running,
    /// The epoch that is iterated over, once a batch of it was asked for.
    begun: u64,
    /// The place at which that epoch begins again if it is left early.
    start: Cursor,
    /// No batch was asked for since the loader came to its place.
    fresh: bool,
    /// Behind the end of the last epoch that there is.
    exhausted: bool,
    fingerprint: OnceLock<String>,
    warnings: Vec<String>,
}

/// What is said once, for all epochs.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) sharing: Sharing,
    pub(super) limits: Limits,
    /// 0: batches are made by the caller's.
    pub(super) threads: usize,
    /// One epoch follows the other without an end.
    pub(super) repeat: bool,
}

/// How batches are made at the moment.
enum Running {
    /// Not yet.
    No,
    /// Not at all: there is no further epoch, and the error that says so was handed out.
    Over,
    /// By the caller's thread.
    Here(Box<Source>),
    By(Threads),
}

struct Threads {
    shop: Arc<Workshop>,
    pipe: Arc<Pipe<Planned, (Option<Cursor>, Made)>>,
    handles: Vec<JoinHandle<()>>,
}

impl Drop for Threads {
    /// A worker ends with the batch that it is at.
    fn drop(&mut self) {
        let mut left = self.pipe.stop();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        // The planner may have been at one more.
        left.append(&mut self.pipe.stop());
        left.iter().flatten().for_each(|plan| self.shop.forget(plan));
    }
}

impl Threads {
    fn start(shop: &Arc<Workshop>, source: Source, limits: Limits, threads: usize) -> Result<Threads> {
        let pipe = Arc::new(Pipe::new(limits));
        let handles = Vec::with_capacity(threads + 1);
        let mut all = Threads { shop: Arc::clone(shop), pipe: Arc::clone(&pipe), handles };
        let spawn = |name: String, run: Box<dyn FnOnce() + Send>| {
            let failed = format!("thread {name} of {threads} of the loader cannot be started");
            let spawned = std::thread::Builder::new().name(name).spawn(run);
            spawned.map_err(|e| Error::from(io::Error::new(e.kind(), format!("{failed}: {e}"))))
        };
        for k in 0..threads {
            let (pipe, shop) = (Arc::clone(&pipe), Arc::clone(shop));
            let work = move || {
                while let Some((ticket, plan)) = pipe.take() {
                    let after = plan.as_ref().ok().map(|plan| plan.after);
                    let made = plan.and_then(|plan| guarded(|| shop.make(plan)));
                    pipe.put(ticket, (after, made));
                }
            };
            all.handles.push(spawn(format!("tfseek-load-{k}"), Box::new(work))?);
        }
        let shop = Arc::clone(shop);
        let plan = move || {
            let mut source = source;
            while pipe.wait_to_plan() {
                match guarded(|| source.next().transpose()) {
                    Ok(None) => break,
                    Ok(Some(mut plan)) => {
                        shop.announce(&mut plan);
                        let cost = plan.cost;
                        pipe.plan(Ok(plan), cost);
                    }
                    Err(e) => {
                        pipe.plan(Err(e), Default::default());
                        break;
                    }
                }
            }
            pipe.end_plan();
        };
        all.handles.push(spawn("tfseek-plan".to_owned(), Box::new(plan))?);
        Ok(all)
    }
}

/// A panic becomes an error: the consumer must not wait for a batch that nobody makes.
fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(ErrorKind::Panicked { message: text.into() }.into())
    })
}

impl Loader {
    pub(super) fn new(
        shop: Workshop,
        order: Order,
        settings: Settings,
        cursor: Cursor,
        warnings: Vec<String>,
    ) -> Loader {
        Loader {
            shop: Arc::new(shop),
            order,
            settings,
            delivered: cursor,
            next: cursor,
            running: Running::No,
            begun: cursor.epoch,
            start: cursor,
            fresh: true,
            exhausted: false,
            fingerprint: OnceLock::new(),
            warnings,
        }
    }

    /// Steps of the current epoch that are left, the same number on all ranks; of one worker, if this is one of several.
    pub fn steps_left(&self) -> u64 {
        if self.epoch() == self.next.epoch { self.steps_from(self.next) } else { 0 }
    }

    /// The epoch of the next step; after the last step of an epoch still that epoch, until its end was handed out.
    pub fn epoch(&self) -> u64 {
        if self.fresh { self.next.epoch } else { self.begun }
    }

    /// True if no batch was asked for at this place: the next iteration begins here.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Steps of the cursor's epoch that are left there.
    fn steps_from(&self, cursor: Cursor) -> u64 {
        let sharing = &self.settings.sharing;
        let order = self.order.at_epoch(cursor.epoch);
        order.and_then(|order| sharing.share(&order, cursor)).map_or(0, |share| sharing.steps(&share))
    }

    /// The order, for questions such as which record comes where.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// What the order is and what it costs, for people.
    pub fn describe(&self) -> String {
        self.order.describe(self.settings.sharing.global_batch)
    }

    /// What was noticed while the loader was made and is no error.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Payload bytes of the batches that are being made, or are made and wait.
    pub fn bytes_under_way(&self) -> u64 {
        match &self.running {
            Running::By(threads) => threads.pipe.bytes(),
            _ => 0,
        }
    }

    /// What a checkpoint keeps: the same on all ranks, and less than 1 KiB as JSON. It counts the batches that were handed out,
    /// not those that were made ahead; a batch that was an error counts once a later one was handed out. After the last batch of
    /// an epoch it is where the next epoch begins; of one of several workers, the epoch's end, until that was handed out.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn state(&self) -> Result<State> {
        self.state_at(self.delivered)
    }

    fn state_at(&self, cursor: Cursor) -> Result<State> {
        State::new(&self.order.at_epoch(cursor.epoch)?, cursor.position, self.fingerprint()?)
    }

    fn fingerprint(&self) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = self.shop.dataset.fingerprint()?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Goes on where a run was saved: with its seed, epoch and position. O(1). Batch size, ranks and threads are this loader's.
    /// If that iteration is left early, the next one begins the epoch at its position 0.
    ///
    /// # Errors
    /// [`ErrorKind::Order`]: another dataset, another kind of order, another algorithm. The loader stays where it was.
    pub fn seek(&mut self, state: &State) -> Result<()> {
        let order = state.resume(self.order.spec(), self.shop.dataset.len(), self.fingerprint()?)?;
        let cursor = Cursor { epoch: state.epoch(), position: state.position() };
        self.settings.sharing.share(&order, cursor)?;
        self.order = order;
        self.go_to(cursor, Cursor { epoch: cursor.epoch, position: 0 })
    }

    /// Goes to the start of an epoch, also of the one that it is in. One that is about to begin stays as it is, if it is this one:
    /// at the position that [`seek`](Loader::seek) chose, or behind what the epoch before took of it
    /// ([`LastBatch::Continuous`](crate::order::LastBatch)); [`reset`](Loader::reset) goes to its position 0.
    ///
    /// # Errors
    /// Of a mixture whose positions up to that epoch are beyond 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        match self.upcoming() {
            Ok((place, start)) if place.epoch == epoch && (self.fresh || self.is_over()) => {
                self.go_to(place, start)
            }
            _ => self.go_to_start(epoch),
        }
    }

    /// Goes to position 0 of the epoch that it is in.
    ///
    /// # Errors
    /// As [`set_epoch`](Loader::set_epoch).
    pub fn reset(&mut self) -> Result<()> {
        self.go_to_start(self.epoch())
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
    /// let mut loader = ds.record_loader().batch_size(64).shuffle(42).build()?;
    /// let first = loader.next().unwrap()?.ids().to_vec(); // a look at the first batch
    /// loader.begin()?;
    /// assert_eq!(loader.next().unwrap()?.ids(), first); // costs the epoch nothing
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Order`] behind the last epoch that there is.
    pub fn begin(&mut self) -> Result<()> {
        let (place, start) = self.upcoming()?;
        self.go_to(place, start)
    }

    /// The state in which [`begin`](Loader::begin) would leave the loader.
    ///
    /// # Errors
    /// As [`begin`](Loader::begin) and [`state`](Loader::state).
    pub fn upcoming_state(&self) -> Result<State> {
        self.state_at(self.upcoming()?.0)
    }

    /// Stands where `other` stands, a loader of the same dataset and order: for a child process, in which the threads of
    /// `other` are not.
    ///
    /// # Errors
    /// [`ErrorKind::Order`] for another number of positions, or a place that this loader cannot share.
    pub fn go_on_from(&mut self, other: &Loader) -> Result<()> {
        if other.order.len() != self.order.len() || other.order.records() != self.order.records() {
            let reason = "the other loader has another order".into();
            return Err(OrderError::Refused { reason }.into());
        }
        self.settings.sharing.share(&other.order, other.next)?;
        self.order = other.order.clone();
        self.running = Running::No;
        (self.delivered, self.next, self.start) = (other.delivered, other.next, other.start);
        (self.begun, self.fresh, self.exhausted) = (other.begun, other.fresh, other.exhausted);
        Ok(())
    }

    /// Where the next iteration begins, and where it begins again if it is left early.
    fn upcoming(&self) -> Result<(Cursor, Cursor)> {
        if self.exhausted || self.is_over() {
            let next = self.following()?;
            return Ok((next, next));
        }
        Ok((if self.fresh { self.next } else { self.start }, self.start))
    }

    /// Whether all of the epoch was handed out, its end aside.
    fn is_over(&self) -> bool {
        let left = || self.begun == self.next.epoch && self.steps_from(self.next) > 0;
        !self.fresh && !left()
    }

    /// Where the epoch behind this one begins.
    fn following(&self) -> Result<Cursor> {
        // All of the epoch was handed out.
        if !self.fresh && self.begun != self.next.epoch {
            return Ok(self.next);
        }
        let epoch = epochs_behind(self.next.epoch, 1)?;
        self.order.at_epoch(epoch)?;
        Ok(Cursor { epoch, position: 0 })
    }

    fn go_to_start(&mut self, epoch: u64) -> Result<()> {
        let start = Cursor { epoch, position: 0 };
        self.go_to(start, start)
    }

    fn go_to(&mut self, place: Cursor, start: Cursor) -> Result<()> {
        self.order = self.order.at_epoch(place.epoch)?;
        self.running = Running::No;
        (self.delivered, self.next, self.start) = (place, place, start);
        (self.fresh, self.exhausted) = (true, false);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        if self.exhausted {
            self.running = Running::Over;
            self.following()?;
        }
        let dataset = self.shop.dataset.clone();
        let source =
            Source::new(dataset, &self.order, self.settings.sharing, self.next, self.settings.repeat)?;
        if self.fresh {
            (self.begun, self.fresh) = (self.next.epoch, false);
        }
        self.running = match self.settings.threads {
            0 => Running::Here(Box::new(source)),
            threads => Running::By(Threads::start(&self.shop, source, self.settings.limits, threads)?),
        };
        Ok(())
    }

    /// The next step, if it comes within this time. `None`: not yet. The inner `None` is the end of an epoch.
    ///
    /// For callers who have to look after something else meanwhile: signals, say.
    pub fn next_within(&mut self, patience: Duration) -> Option<Option<Made>> {
        self.advance(Some(patience))
    }

    fn advance(&mut self, patience: Option<Duration>) -> Option<Option<Made>> {
        // All of an epoch was handed out, but its end was not.
        if matches!(self.running, Running::No) && !self.fresh && self.begun != self.next.epoch {
            return Some(self.end_epoch());
        }
        if let Running::No = self.running
            && let Err(e) = self.start()
        {
            return Some(Some(Err(e)));
        }
        let (after, made) = match &mut self.running {
            Running::No | Running::Over => {
                self.running = Running::No;
                return Some(None);
            }
            Running::Here(source) => match source.next() {
                None => return Some(self.end_epoch()),
                Some(Err(e)) => (None, Err(e)),
                Some(Ok(mut plan)) => {
                    self.shop.announce(&mut plan);
                    (Some(plan.after), guarded(|| self.shop.make(plan)))
                }
            },
            Running::By(threads) => match threads.pipe.next(patience) {
                Answer::Wait => return None,
                Answer::Over => return Some(self.end_epoch()),
                Answer::Here(made) => made,
            },
        };
        if let Some(after) = after {
            self.next = after;
            // Where epochs are joined, an iteration goes on in the next one.
            if self.settings.repeat && after.epoch != self.begun {
                // One of several workers learns of it with its first batch there.
                let start = Cursor { epoch: after.epoch, position: 0 };
                let joined = self.settings.sharing.last == LastBatch::Continuous;
                (self.begun, self.start) = (after.epoch, if joined { after } else { start });
            }
            if made.is_ok() {
                self.delivered = after;
            }
        }
        Some(Some(made))
    }

    /// `None`, and the next epoch begins.
    fn end_epoch<T>(&mut self) -> Option<T> {
        self.running = Running::No;
        // Where the last batch was dropped, positions are left; and an epoch may have had no steps at all. There are steps left where
        // the plans ended with an error.
        if self.begun != self.next.epoch || self.steps_from(self.next) == 0 {
            match self.following() {
                Ok(next) => (self.next, self.start) = (next, next),
                // At the end of the last epoch that there is.
                Err(_) => self.exhausted = true,
            }
            self.delivered = self.next;
            self.fresh = true;
        }
        None
    }
}

impl Iterator for Loader {
    type Item = Made;

    fn next(&mut self) -> Option<Made> {
        self.advance(None).flatten()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.shop.dataset)
            .field("order", &self.order)
            .field("sharing", &self.settings.sharing)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
