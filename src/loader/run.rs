//! The loader: threads that make batches, and an iterator that hands them out in order.

use super::gate::{Answer, Limits};
use super::pipe::Pipe;
use super::source::{Cursor, Planned, Sharing, Source};
use super::step::Step;
use super::work::Workshop;
use crate::error::{Error, ErrorKind, Result};
use crate::order::{Order, State};
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
/// Threads start when the first batch is asked for, and end with the loader. At the end of an epoch the iterator gives `None`;
/// asked again, it goes on with the next epoch. What comes out depends on the seed, the epoch and the batch size, and on nothing
/// else.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i]).encode()?)?; }
/// # writer.close()?;
/// use tfseek::{DType, FeatureSpec, Schema};
/// # let ds = tfseek::Options::new().index(tfseek::IndexMode::Memory).open(&path)?;
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
    /// The epoch whose steps are running.
    begun: u64,
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
    /// By the caller's thread.
    Here(Box<Source>),
    By(Threads),
}

struct Threads {
    pipe: Arc<Pipe<Planned, (Option<Cursor>, Made)>>,
    handles: Vec<JoinHandle<()>>,
}

impl Drop for Threads {
    /// A worker ends with the batch that it is at.
    fn drop(&mut self) {
        self.pipe.stop();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

impl Threads {
    fn start(shop: &Arc<Workshop>, source: Source, limits: Limits, threads: usize) -> Result<Threads> {
        let pipe = Arc::new(Pipe::new(limits));
        let mut all = Threads { pipe: Arc::clone(&pipe), handles: Vec::with_capacity(threads + 1) };
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
                        shop.advice.ahead(&shop.dataset, &mut plan);
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
        Err(ErrorKind::Unsupported(format!("a thread of the loader panicked: {text}").into()).into())
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
            fingerprint: OnceLock::new(),
            warnings,
        }
    }

    /// Steps of the current epoch that are left, the same number on all ranks; of one worker, if this is one of several.
    pub fn steps_left(&self) -> u64 {
        let sharing = &self.settings.sharing;
        sharing.share(&self.order, self.next).map_or(0, |share| sharing.steps(&share))
    }

    /// The epoch of the next step.
    pub fn epoch(&self) -> u64 {
        self.next.epoch
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
    /// not those that were made ahead; a batch that was an error counts once a later one was handed out.
    ///
    /// # Errors
    /// For a dataset opened from a pack, those of each shard's first touch.
    pub fn state(&self) -> Result<State> {
        State::new(&self.order.at_epoch(self.delivered.epoch)?, self.delivered.position, self.fingerprint()?)
    }

    fn fingerprint(&self) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = self.shop.dataset.fingerprint()?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }

    /// Goes on where a run was saved: with its seed, epoch and position. O(1). Batch size, ranks and threads are this loader's.
    ///
    /// # Errors
    /// [`ErrorKind::Order`]: another dataset, another kind of order, another algorithm. The loader stays where it was.
    pub fn seek(&mut self, state: &State) -> Result<()> {
        let order = state.resume(self.order.spec(), self.shop.dataset.len(), self.fingerprint()?)?;
        let cursor = Cursor { epoch: state.epoch(), position: state.position() };
        self.settings.sharing.share(&order, cursor)?;
        self.order = order;
        self.go_to(cursor)
    }

    /// Goes to the start of an epoch, unless this is the one it is in already.
    ///
    /// # Errors
    /// Of a mixture whose positions up to that epoch are beyond 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        if epoch != self.next.epoch {
            return self.go_to(Cursor { epoch, position: 0 });
        }
        // The last step of the epoch before was handed out, and its end was not: nobody asks for that any more.
        if self.begun != epoch && !self.settings.repeat {
            self.running = Running::No;
        }
        Ok(())
    }

    fn go_to(&mut self, cursor: Cursor) -> Result<()> {
        self.order = self.order.at_epoch(cursor.epoch)?;
        self.running = Running::No;
        (self.delivered, self.next) = (cursor, cursor);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let dataset = self.shop.dataset.clone();
        self.begun = self.next.epoch;
        let source =
            Source::new(dataset, &self.order, self.settings.sharing, self.next, self.settings.repeat)?;
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
        if let Running::No = self.running
            && let Err(e) = self.start()
        {
            return Some(Some(Err(e)));
        }
        let (after, made) = match &mut self.running {
            Running::No => return Some(None),
            Running::Here(source) => match source.next() {
                None => return Some(self.end_epoch()),
                Some(Err(e)) => (None, Err(e)),
                Some(Ok(mut plan)) => {
                    self.shop.advice.ahead(&self.shop.dataset, &mut plan);
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
            if made.is_ok() {
                self.delivered = after;
            }
        }
        Some(Some(made))
    }

    /// `None`, and the next epoch begins.
    fn end_epoch<T>(&mut self) -> Option<T> {
        self.running = Running::No;
        let steps = self
            .order
            .at_epoch(self.next.epoch)
            .and_then(|order| self.settings.sharing.share(&order, self.next))
            .map(|share| self.settings.sharing.steps(&share));
        // Where the last batch was dropped, positions are left; and an epoch may have had no steps at all.
        if steps.is_ok_and(|steps| steps == 0) {
            self.next = Cursor { epoch: self.next.epoch + 1, position: 0 };
            self.delivered = self.next;
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
