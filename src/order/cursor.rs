//! The place of a run in its epochs: where an iteration begins, and how epochs end.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::epoch::Order;
use super::share::RankShare;
use super::state::State;
use crate::error::{OrderError, Result};

/// An epoch, and the number of its positions that were handed out over all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) epoch: u64,
    pub(crate) position: u64,
}

impl Position {
    fn start_of(epoch: u64) -> Position {
        Position { epoch, position: 0 }
    }
}

/// The place of a run: an epoch, a position in it, and where the next iteration begins.
///
/// It follows the rules of `docs/shuffling.md`, "Epochs and iterators": an epoch that was left early begins again, one that was
/// handed out whole is followed by the next, and a chosen place is kept until it is entered. A [`Loader`](crate::Loader) moves
/// one; those who read records by other means can have their own. It holds no records and no threads, and a clone is cheap.
///
/// ```
/// use tfseek::order::{Cursor, LastBatch, Order, RankShare, Spec};
/// let order = Order::new(&Spec::Global, 100, 42, 0)?;
/// let share = RankShare::new(order.len(), 10, 0, 1, LastBatch::Short)?;
/// let mut cursor = Cursor::new(order, share)?;
/// cursor.begin()?;
/// cursor.enter()?; // a step is asked for
/// cursor.advance(3)?; // and two more
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (0, 7));
///
/// cursor.begin()?; // left early: the epoch begins again
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (0, 10));
/// cursor.enter()?;
/// cursor.advance(10)?;
/// cursor.begin()?; // handed out whole: the next one
/// assert_eq!((cursor.epoch(), cursor.steps_left()?), (1, 10));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor {
    /// The order of the epoch in which the cursor was last placed.
    order: Order,
    /// From position 0.
    share: RankShare,
    repeats: bool,
    skips_ends: bool,
    /// Behind the batches that were handed out: saved in states.
    delivered: Position,
    /// Behind those and the ones that were errors: where the run goes on.
    next: Position,
    /// The epoch that is iterated over, once it was entered.
    begun: u64,
    /// The place at which that epoch begins again if it is left early.
    start: Position,
    /// Nothing was asked for since the cursor was placed.
    fresh: bool,
    /// Behind the end of the last epoch.
    exhausted: bool,
    /// The place was chosen by `set_epoch` or `reset`.
    chosen: bool,
}

impl Cursor {
    /// A cursor at position 0 of the order's epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the share is not of as many positions as the order has.
    pub fn new(order: Order, share: RankShare) -> Result<Cursor> {
        if share.positions() != order.len() {
            let reason =
                format!("a share of {} positions for an order of {}", share.positions(), order.len());
            return Err(OrderError::Refused { reason: reason.into() }.into());
        }
        let (share, start) = (share.starting_at(0)?, Position::start_of(order.epoch()));
        Ok(Cursor {
            begun: order.epoch(),
            order,
            share,
            repeats: false,
            skips_ends: false,
            delivered: start,
            next: start,
            start,
            fresh: true,
            exhausted: false,
            chosen: false,
        })
    }

    /// Joins the epochs: an iteration goes on with the next one. Off by default.
    #[must_use]
    pub(crate) fn repeat(mut self, repeat: bool) -> Cursor {
        self.repeats = repeat;
        self
    }

    /// Makes [`begin`](Cursor::begin) go to the next epoch from a saved state at the end of one, unless
    /// [`set_epoch`](Cursor::set_epoch) chose that epoch. Off by default: such an iteration is empty.
    #[must_use]
    pub fn skip_ends(mut self, skip: bool) -> Cursor {
        self.skips_ends = skip;
        self
    }

    /// The order, in the epoch in which the cursor was last placed.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The share of the epoch from here on.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the order has no such epoch.
    pub fn share(&self) -> Result<RankShare> {
        self.order.at_epoch(self.next.epoch)?;
        self.share.clone().starting_at(self.next.position)
    }

    /// The epoch of the next step; after the last step of an epoch still that epoch, until its end was handed out.
    pub fn epoch(&self) -> u64 {
        if self.fresh { self.next.epoch } else { self.begun }
    }

    /// The position of the next step in its epoch.
    pub fn position(&self) -> u64 {
        self.next.position
    }

    /// Returns true if nothing was asked for at this place: the next iteration begins here.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Steps of the current epoch that are left, the same number on all ranks.
    ///
    /// # Errors
    /// As [`share`](Cursor::share).
    pub fn steps_left(&self) -> Result<u64> {
        if self.has_crossed() { Ok(0) } else { Ok(self.share()?.steps()) }
    }

    /// Begins an iteration: with the epoch of the cursor, from its start, if that was left early; with the next one, if all
    /// of it was handed out. A place that was chosen, and at which nothing was asked for yet, stays.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) after the last epoch.
    pub fn begin(&mut self) -> Result<()> {
        let skips = self.skips_ends && self.fresh && !self.chosen && self.next.position > 0;
        if skips && self.share()?.steps() == 0 {
            let next = self.following()?;
            return self.place_at(next, next);
        }
        let (place, start) = self.upcoming()?;
        self.place_at(place, start)
    }

    /// Goes to the start of an epoch, also of the current one. A place in that epoch which is about to begin is kept: a saved
    /// position, or the position behind what the epoch before took of it ([`LastBatch::Continuous`](super::LastBatch)).
    /// [`reset`](Cursor::reset) goes to position 0.
    ///
    /// # Errors
    /// For a mixture whose positions up to that epoch are beyond 2^64.
    pub fn set_epoch(&mut self, epoch: u64) -> Result<()> {
        match self.upcoming() {
            Ok((place, start)) if place.epoch == epoch && (self.fresh || self.is_over()) => {
                self.place_at(place, start)?;
            }
            _ => self.go_to_start(epoch)?,
        }
        self.chosen = true;
        Ok(())
    }

    /// Goes to position 0 of the current epoch.
    ///
    /// # Errors
    /// As [`set_epoch`](Cursor::set_epoch).
    pub fn reset(&mut self) -> Result<()> {
        self.go_to_start(self.epoch())?;
        self.chosen = true;
        Ok(())
    }

    /// Goes to a saved place: its seed, epoch and position. `fingerprint` is the dataset's. If the iteration there is left early,
    /// the next one begins the epoch at position 0.
    ///
    /// # Errors
    /// Those of [`State::resume`]. The cursor stays where it was.
    pub fn seek(&mut self, state: &State, fingerprint: &str) -> Result<()> {
        let order = state.resume(self.order.spec(), self.order.records(), fingerprint)?;
        let place = Position { epoch: state.epoch(), position: state.position() };
        (self.order, self.chosen) = (order, false);
        self.place_at(place, Position::start_of(place.epoch))
    }

    /// The state that a checkpoint keeps: the same on all ranks. It counts what was handed out; of an epoch that was handed out
    /// whole it is the start of the next one.
    ///
    /// # Errors
    /// [`OrderError::State`] for an invalid fingerprint.
    pub fn state(&self, fingerprint: &str) -> Result<State> {
        self.state_at(self.delivered, fingerprint)
    }

    /// The same state, but the end of an epoch that was handed out whole is that end until the iteration has
    /// ended. A run that goes on from it has nothing left of this epoch.
    ///
    /// # Errors
    /// As [`state`](Cursor::state).
    pub fn state_in_epoch(&self, fingerprint: &str) -> Result<State> {
        if self.delivered.epoch > self.epoch() && !self.share.is_continuous() {
            return self.state_at(Position { epoch: self.epoch(), position: self.order.len() }, fingerprint);
        }
        self.state(fingerprint)
    }

    fn state_at(&self, at: Position, fingerprint: &str) -> Result<State> {
        State::new(&self.order.at_epoch(at.epoch)?, at.position, fingerprint)
    }

    /// Enters the iteration that begins here. Called when its first step is asked for; again it changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) after the last epoch.
    pub fn enter(&mut self) -> Result<()> {
        if self.exhausted {
            self.following()?;
        }
        if self.fresh {
            (self.begun, self.fresh, self.chosen) = (self.next.epoch, false, false);
        }
        Ok(())
    }

    /// Counts `steps` more steps of the current epoch as handed out.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if there are not as many.
    pub fn advance(&mut self, steps: u64) -> Result<()> {
        let Some(last) = steps.checked_sub(1) else { return Ok(()) };
        let Some((epochs, position)) = self.share()?.after(last) else {
            let reason = format!("{steps} steps behind position {} of the epoch", self.next.position);
            return Err(OrderError::Refused { reason: reason.into() }.into());
        };
        let after = Position { epoch: following_epoch(self.next.epoch, epochs)?, position };
        self.pass(after, true);
        Ok(())
    }

    /// Goes to the place of another cursor of the same order, which may have another share.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for an order of other records or positions.
    pub(crate) fn go_to(&mut self, other: &Cursor) -> Result<()> {
        let orders = [&self.order, &other.order].map(|order| (order.len(), order.records()));
        if orders[0] != orders[1] {
            let reason = "the other cursor is of another order".into();
            return Err(OrderError::Refused { reason }.into());
        }
        let Cursor { share, repeats, skips_ends, .. } = self;
        *self = Cursor { share: share.clone(), repeats: *repeats, skips_ends: *skips_ends, ..other.clone() };
        Ok(())
    }

    /// Samples of a batch over all ranks.
    pub(crate) fn global_batch(&self) -> u64 {
        self.share.global_batch()
    }

    /// Returns true if one epoch follows the other without an end.
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    /// Where the run goes on.
    pub(crate) fn place(&self) -> Position {
        self.next
    }

    /// Moves behind a step that ends at `after`. A step that was `made` is handed out; one that was an error counts as handed out
    /// once a later one was.
    pub(crate) fn pass(&mut self, after: Position, made: bool) {
        let after = self.beyond(after);
        self.next = after;
        // Where epochs are joined, an iteration goes on in the next one.
        if self.repeats && after.epoch != self.begun {
            // One of several workers learns of it with its first batch there.
            let start = if self.share.is_continuous() { after } else { Position::start_of(after.epoch) };
            (self.begun, self.start) = (after.epoch, start);
        }
        if made {
            self.delivered = after;
        }
    }

    /// The same place, or the start of the next epoch if nothing is left of this one.
    fn beyond(&self, at: Position) -> Position {
        // Other workers may have steps to deliver still: the epoch is over when there is nothing behind its end.
        if self.share.is_continuous() || self.share.has_workers() || self.steps_at(at.position) > 0 {
            return at;
        }
        // After the last epoch there is none.
        self.epoch_after(at.epoch).unwrap_or(Position { position: self.order.len(), ..at })
    }

    /// Returns true if all of the epoch was handed out and its end was not.
    pub(crate) fn has_crossed(&self) -> bool {
        !self.fresh && self.begun != self.next.epoch
    }

    /// Ends the iteration: the next epoch is about to begin.
    pub(crate) fn end(&mut self) {
        // Where the last batch was dropped, positions are left; and an epoch may have had no steps at all. There are steps left where
        // the plans ended with an error.
        if self.begun != self.next.epoch || self.steps_at(self.next.position) == 0 {
            match self.following() {
                Ok(next) => (self.next, self.start) = (next, next),
                // At the end of the last epoch.
                Err(_) => self.exhausted = true,
            }
            (self.delivered, self.fresh) = (self.next, true);
        }
    }

    /// Steps from a position of any epoch on: all epochs have as many positions.
    fn steps_at(&self, position: u64) -> u64 {
        // No position of the cursor is beyond the end.
        self.share.clone().starting_at(position).map_or(0, |share| share.steps())
    }

    /// Where the next iteration begins, and where it begins again if it is left early.
    fn upcoming(&self) -> Result<(Position, Position)> {
        if self.exhausted || self.is_over() {
            let next = self.following()?;
            return Ok((next, next));
        }
        Ok((if self.fresh { self.next } else { self.start }, self.start))
    }

    /// Returns true if all of the epoch was handed out, its end aside.
    fn is_over(&self) -> bool {
        !self.fresh && (self.begun != self.next.epoch || self.steps_at(self.next.position) == 0)
    }

    /// The start of the epoch after the current one.
    fn following(&self) -> Result<Position> {
        // All of the epoch was handed out.
        if self.has_crossed() { Ok(self.next) } else { self.epoch_after(self.next.epoch) }
    }

    fn epoch_after(&self, epoch: u64) -> Result<Position> {
        let epoch = following_epoch(epoch, 1)?;
        self.order.at_epoch(epoch)?;
        Ok(Position::start_of(epoch))
    }

    fn go_to_start(&mut self, epoch: u64) -> Result<()> {
        let start = Position::start_of(epoch);
        self.place_at(start, start)
    }

    fn place_at(&mut self, place: Position, start: Position) -> Result<()> {
        self.order = self.order.at_epoch(place.epoch)?;
        (self.delivered, self.next, self.start) = (place, place, start);
        (self.fresh, self.exhausted) = (true, false);
        Ok(())
    }
}

/// The epoch that comes `ahead` epochs after this one: 2^64 - 1 is the last.
pub(crate) fn following_epoch(epoch: u64, ahead: u64) -> Result<u64> {
    epoch.checked_add(ahead).ok_or_else(|| {
        let reason = format!("no epoch follows 2^64 - 1: {ahead} after epoch {epoch}");
        OrderError::Refused { reason: reason.into() }.into()
    })
}
