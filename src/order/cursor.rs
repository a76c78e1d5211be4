//! The current position of a run: the start of each iteration, and the end of each epoch.

use super::epoch::Order;
use super::share::RankShare;
use super::spec::Spec;
use super::state::State;
use crate::error::{Error, Result};

/// An epoch, and the number of its positions that all ranks together have delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    pub(crate) position: u64,
}

/// The current position of a run: an epoch, a position in it, and the start of the next iteration.
///
/// It follows the rules of `docs/shuffling.md`, "Epochs and iterators". An epoch that was left early begins
/// again. An epoch that was delivered completely is followed by the next one. A position that was set
/// explicitly is kept until an iteration enters it.
///
/// A [`Loader`](crate::Loader) contains one. Code that reads records by other means can use its own. It holds
/// no records and no threads, and a clone is cheap.
///
/// ```
/// use tfseek::order::{Cursor, LastBatch, Order, RankShare, Spec};
/// let order = Order::new(&Spec::Global, 100, 42, 0)?;
/// let share = RankShare::new(order.len(), 10, 0, 1, LastBatch::Short)?;
/// let mut cursor = Cursor::new(order, share)?;
/// cursor.begin()?;
/// cursor.enter()?; // the first step is requested
/// cursor.advance(3)?; // three steps are delivered
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (0, 7));
///
/// cursor.begin()?; // left early: the epoch begins again
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (0, 10));
/// cursor.enter()?;
/// cursor.advance(10)?;
/// cursor.begin()?; // delivered completely: the next epoch begins
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (1, 10));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor {
    /// Order of the epoch to which the cursor was last moved.
    order: Order,
    /// Share of an epoch from position 0 on.
    share: RankShare,
    repeats: bool,
    skips_ends: bool,
    /// Position after the last batch, delivered or failed: the run continues here.
    next: Position,
    phase: Phase,
}

/// The part of an iteration that a cursor is in. `start` is the position at which the epoch begins again if
/// it is left early.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No step was requested at the current position. `chosen`: `set_epoch` or `reset` set it.
    Fresh { start: Position, chosen: bool },
    /// Steps of `epoch` were requested. `delivered` is the position after the last delivered batch.
    Entered { epoch: u64, start: Position, delivered: Position },
    /// The last epoch has ended.
    Exhausted,
}

impl Cursor {
    /// Creates a cursor at position 0 of the order's epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if share and order have different numbers of positions.
    pub fn new(order: Order, share: RankShare) -> Result<Cursor> {
        if share.len != order.steps() || share.has_buckets() != order.has_buckets() {
            let reason = format!("expected a share of {} positions, found {}", order.steps(), share.len);
            return Err(Error::order(reason));
        }
        let share = share.starting_at(0)?;
        let start = start_of(&order);
        let phase = Phase::Fresh { start, chosen: false };
        Ok(Cursor { order, share, repeats: false, skips_ends: false, next: start, phase })
    }

    /// Makes iterations continue with the next epoch instead of ending. Off by default.
    #[must_use]
    pub(crate) fn repeat(mut self, repeat: bool) -> Cursor {
        self.repeats = repeat;
        self
    }

    /// Makes [`begin`](Cursor::begin) go to the next epoch after a saved state at the end of an epoch was
    /// loaded, unless [`set_epoch`](Cursor::set_epoch) set that epoch. Off by default: the iteration is then
    /// empty.
    #[must_use]
    pub fn skip_ends(mut self, skip: bool) -> Cursor {
        self.skips_ends = skip;
        self
    }

    /// Returns the order of the epoch to which the cursor was last moved.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Returns the rank's share of the epoch from the current position on.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the order has no such epoch.
    pub fn share(&self) -> Result<RankShare> {
        let order = self.order.at_epoch(self.next.epoch)?;
        order.share_of(self.share.clone())?.starting_at(self.next.position)
    }

    /// Returns the epoch of the next step. After the last step of an epoch this is still that epoch, until
    /// its end is delivered.
    pub fn epoch(&self) -> u64 {
        match self.phase {
            Phase::Entered { epoch, .. } => epoch,
            Phase::Fresh { .. } | Phase::Exhausted => self.next.epoch,
        }
    }

    /// Returns the position of the next step in its epoch.
    pub fn position(&self) -> u64 {
        self.next.position
    }

    /// Returns true if no step was requested at this position. The next iteration then begins here.
    pub fn is_fresh(&self) -> bool {
        !matches!(self.phase, Phase::Entered { .. })
    }

    /// Returns the number of steps left in the current epoch. It is the same on all ranks.
    ///
    /// # Errors
    /// The errors of [`share`](Cursor::share).
    pub fn steps_left(&self) -> Result<u64> {
        if self.has_crossed() { Ok(0) } else { Ok(self.share()?.steps()) }
    }

    /// Begins an iteration. If the current epoch was left early, it begins again from its start. If it was
    /// delivered completely, the next epoch begins. A position at which no step was requested yet is kept.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) after the last epoch.
    pub fn begin(&mut self) -> Result<()> {
        let chosen = matches!(self.phase, Phase::Fresh { chosen: true, .. });
        let skips = self.skips_ends && self.is_fresh() && !chosen && self.next.position > 0;
        if skips && self.share()?.steps() == 0 {
            let next = self.next_epoch_start()?;
            return self.move_to(next, next, chosen);
        }
        let (position, start) = self.upcoming()?;
        self.move_to(position, start, chosen)
    }

    /// Moves to the start of an epoch, which may be the current one. If the next iteration would begin inside
    /// that epoch anyway, its position is kept: a saved position, or with
    /// [`LastBatch::Continuous`](super::LastBatch) the position after the samples that the previous epoch's
    /// last batch took. [`reset`](Cursor::reset) moves to position 0. If it were not kept, a loop that sets
    /// each epoch before it begins would silently lose a loaded state.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for a mixture whose positions up to that epoch are
    /// beyond 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        match self.upcoming() {
            Ok((position, start)) if position.epoch == epoch && (self.is_fresh() || self.is_over()) => {
                self.move_to(position, start, true)
            }
            _ => self.choose_start(epoch),
        }
    }

    /// Moves to position 0 of the current epoch.
    ///
    /// # Errors
    /// The errors of [`set_epoch`](Cursor::set_epoch).
    pub fn reset(&mut self) -> Result<()> {
        self.choose_start(self.epoch())
    }

    /// Moves to a saved state: its seed, epoch and position. `fingerprint` is the dataset's. If the iteration
    /// that begins there is left early, the next one begins at position 0 of the epoch.
    ///
    /// # Errors
    /// The errors of [`State::resume`]. The cursor is not moved then.
    pub fn seek(&mut self, state: &State, fingerprint: &str) -> Result<()> {
        let order = state.resume(self.order.spec(), self.order.records(), fingerprint)?;
        // Buckets have the batch sizes of the state.
        self.share = order.share_of(self.share.clone())?;
        self.order = order;
        let position = Position { epoch: state.epoch, position: state.position };
        self.move_to(position, start_of(&self.order), false)
    }

    /// Returns the state to save in a checkpoint. It is the same on all ranks, and counts delivered batches
    /// only. After all of an epoch was delivered it is the start of the next epoch.
    ///
    /// # Errors
    /// [`OrderError::State`](crate::error::OrderError::State) for an invalid fingerprint.
    pub fn state(&self, fingerprint: &str) -> Result<State> {
        self.state_at(self.delivered(), fingerprint)
    }

    /// Returns the state to save in a checkpoint, as [`state`](Cursor::state) does, with one difference.
    /// After all of an epoch was delivered it is the end of that epoch, until the iteration has ended. A run
    /// resumed from it has no steps left in the epoch.
    ///
    /// # Errors
    /// The errors of [`state`](Cursor::state).
    pub fn state_in_epoch(&self, fingerprint: &str) -> Result<State> {
        if self.delivered().epoch > self.epoch() && !self.share.is_continuous() {
            return self
                .state_at(Position { epoch: self.epoch(), position: self.order.steps() }, fingerprint);
        }
        self.state(fingerprint)
    }

    /// Returns the position after the last delivered batch: the one that states contain.
    fn delivered(&self) -> Position {
        match self.phase {
            Phase::Entered { delivered, .. } => delivered,
            Phase::Fresh { .. } | Phase::Exhausted => self.next,
        }
    }

    fn state_at(&self, at: Position, fingerprint: &str) -> Result<State> {
        State::new(&self.order.at_epoch(at.epoch)?, at.position, fingerprint)
    }

    /// Enters the iteration that begins here. Call it when the first step is requested. Further calls have no
    /// effect.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) after the last epoch.
    pub fn enter(&mut self) -> Result<()> {
        match self.phase {
            Phase::Fresh { start, .. } => {
                self.phase = Phase::Entered { epoch: self.next.epoch, start, delivered: self.next };
                Ok(())
            }
            Phase::Entered { .. } => Ok(()),
            Phase::Exhausted => self.next_epoch_start().map(drop),
        }
    }

    /// Counts `steps` more steps of the current epoch as delivered.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if fewer steps are left.
    pub fn advance(&mut self, steps: u64) -> Result<()> {
        let Some(last) = steps.checked_sub(1) else { return Ok(()) };
        let Some((epochs, position)) = self.share()?.after(last) else {
            let reason = format!("fewer than {steps} steps follow position {}", self.next.position);
            return Err(Error::order(reason));
        };
        let after = Position { epoch: following_epoch(self.next.epoch, epochs)?, position };
        self.move_past(after, true);
        Ok(())
    }

    /// Moves to the position of another cursor of the same order. The share may be different.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the two orders differ in their number of records or
    /// positions.
    pub(crate) fn go_to(&mut self, other: &Cursor) -> Result<()> {
        // The epochs of a mix have the length of epoch 0 of the run that was resumed.
        let may_differ = |spec: &Spec| matches!(spec, Spec::Mix(mix) if !mix.is_balanced());
        let len = |order: &Order| (!may_differ(order.spec())).then_some(order.len());
        let orders = [&self.order, &other.order].map(|order| (len(order), order.records()));
        if orders[0] != orders[1] {
            return Err(Error::order("the other cursor has a different order"));
        }
        let share = other.order.share_of(self.share.clone())?;
        let Cursor { repeats, skips_ends, .. } = *self;
        *self = Cursor { share, repeats, skips_ends, ..other.clone() };
        Ok(())
    }

    /// Returns the number of samples per batch over all ranks.
    pub(crate) fn global_batch(&self) -> u64 {
        self.share.batch
    }

    /// Returns true if iterations continue with the next epoch instead of ending.
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    /// Returns the position at which the run continues.
    pub(crate) fn next_position(&self) -> Position {
        self.next
    }

    /// Moves past a step that ends at `after`. `delivered` is false for a step that failed; it counts as
    /// delivered once a later step is delivered.
    pub(crate) fn move_past(&mut self, after: Position, delivered: bool) {
        let after = self.skip_epoch_end(after);
        // A repeating iteration continues in the next epoch.
        let crosses = self.repeats && after.epoch != self.epoch();
        // One of several workers enters the next epoch with its first batch there, so `after` may be past the
        // start.
        let next_start = if self.share.is_continuous() { after } else { Position { position: 0, ..after } };
        self.next = after;
        match &mut self.phase {
            Phase::Fresh { start, .. } if crosses => *start = next_start,
            Phase::Entered { epoch, start, delivered: last } => {
                if crosses {
                    (*epoch, *start) = (after.epoch, next_start);
                }
                if delivered {
                    *last = after;
                }
            }
            Phase::Fresh { .. } | Phase::Exhausted => {}
        }
    }

    /// Returns the same position, or the start of the next epoch if no steps are left in this one.
    fn skip_epoch_end(&self, at: Position) -> Position {
        // Other workers may still have steps to deliver, so with workers only the end of the iteration ends
        // the epoch.
        if self.share.is_continuous() || self.share.workers > 1 || self.steps_at(at.position) > 0 {
            return at;
        }
        // No epoch follows the last one.
        self.epoch_after(at.epoch).unwrap_or(Position { position: self.order.steps(), ..at })
    }

    /// Returns true if all steps of the epoch were delivered but its end was not.
    pub(crate) fn has_crossed(&self) -> bool {
        self.epoch() != self.next.epoch
    }

    /// Ends the iteration. The next iteration begins with the next epoch.
    pub(crate) fn end(&mut self) {
        // A dropped last batch leaves positions but no steps, and an epoch may have no steps at all. Steps
        // are left only if the iteration ended with an error.
        if self.is_over() {
            self.phase = match self.next_epoch_start() {
                Ok(start) => {
                    self.next = start;
                    Phase::Fresh { start, chosen: false }
                }
                Err(_) => Phase::Exhausted,
            };
        }
    }

    /// Returns the number of steps from a position on. It is the same in every epoch, because all epochs have
    /// the same length.
    fn steps_at(&self, position: u64) -> u64 {
        // Positions of the cursor are never past the end, so `starting_at` does not fail.
        self.share.clone().starting_at(position).map_or(0, |share| share.steps())
    }

    /// Returns the position at which the next iteration begins, and the one at which its epoch begins again
    /// if it is left early.
    fn upcoming(&self) -> Result<(Position, Position)> {
        match self.phase {
            Phase::Fresh { start, .. } => Ok((self.next, start)),
            Phase::Entered { start, .. } if !self.is_over() => Ok((start, start)),
            Phase::Entered { .. } | Phase::Exhausted => self.next_epoch_start().map(|next| (next, next)),
        }
    }

    /// Returns true if all steps of the current epoch were delivered. Its end may not have been delivered
    /// yet.
    fn is_over(&self) -> bool {
        self.has_crossed() || self.steps_at(self.next.position) == 0
    }

    /// Returns the start of the epoch after the current one.
    fn next_epoch_start(&self) -> Result<Position> {
        // If the cursor has crossed, `next` is in the next epoch already.
        if self.has_crossed() { Ok(self.next) } else { self.epoch_after(self.next.epoch) }
    }

    fn epoch_after(&self, epoch: u64) -> Result<Position> {
        let epoch = following_epoch(epoch, 1)?;
        Ok(start_of(&self.order.at_epoch(epoch)?))
    }

    fn choose_start(&mut self, epoch: u64) -> Result<()> {
        let start = start_of(&self.order.at_epoch(epoch)?);
        self.move_to(start, start, true)
    }

    fn move_to(&mut self, position: Position, start: Position, chosen: bool) -> Result<()> {
        self.order = self.order.at_epoch(position.epoch)?;
        self.next = position;
        self.phase = Phase::Fresh { start, chosen };
        Ok(())
    }
}

/// Returns the first position of an epoch that has a record.
fn start_of(order: &Order) -> Position {
    Position { epoch: order.epoch(), position: order.start() }
}

/// Returns the epoch that is `ahead` epochs after this one.
///
/// # Errors
/// [`OrderError::Refused`](crate::error::OrderError::Refused) if it is above 2^64 - 1, the last epoch.
pub(crate) fn following_epoch(epoch: u64, ahead: u64) -> Result<u64> {
    epoch.checked_add(ahead).ok_or_else(|| {
        Error::order(format!("expected an epoch below 2^64, found {ahead} after epoch {epoch}"))
    })
}
