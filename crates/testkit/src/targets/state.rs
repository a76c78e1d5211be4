//! Saved states of orders and cursors.

use super::script::Script;
use tfseek::ErrorKind;
use tfseek::order::{
    Component, Cursor, LastBatch, MixSpec, MixStop, Order, RankShare, Spec, State, Subset, Weights,
};

const FINGERPRINT: &str = "99aa06d3014798d86001c324468d497f";

/// Tests saved states. After a first byte 0 the rest is a state as JSON. Otherwise the rest selects an order,
/// a position and a share, and edits the state.
///
/// A text that is accepted is printed, and parsed to the same state. A run that resumes from it stays inside
/// the epoch.
pub fn state(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    if mode == 0 {
        if let Some(state) = parsed(rest) {
            let _ = state.resume(&Spec::Global, 1000, FINGERPRINT);
        }
        return;
    }
    let mut script = Script(rest);
    let run = RankRun::new(mode, &mut script);
    let Ok(order) = Order::new(&run.spec, run.n, run.seed, run.epoch) else { return };
    let position = script.u64().checked_rem(order.len().saturating_add(1)).unwrap_or(0);
    let state = State::new(&order, position, FINGERPRINT).unwrap();
    let resumed = state.resume(&run.spec, run.n, FINGERPRINT).unwrap();
    for at in [0, position, order.len() / 2] {
        assert_eq!(resumed.get(at).ok(), order.get(at).ok());
    }
    run.check(&order, &state);

    let mut text = state.to_json().into_bytes();
    assert_eq!(parsed(&text).as_ref(), Some(&state));
    script.edit(&mut text);
    if let Some(changed) = parsed(&text)
        && let Ok(resumed) = changed.resume(&run.spec, run.n, FINGERPRINT)
    {
        assert!(changed.position <= resumed.len() && resumed.epoch() == changed.epoch);
        run.check(&resumed, &changed);
    }
}

/// Parses a state, and checks that its text parses to an equal one.
fn parsed(text: &[u8]) -> Option<State> {
    match State::from_json(std::str::from_utf8(text).ok()?) {
        Ok(state) => {
            let printed = state.to_json();
            // Buckets list their boundaries and sizes, and a mix its weights.
            let long =
                ["buckets", "mix"].iter().any(|kind| printed.contains(&format!("\"kind\":\"{kind}\"")));
            assert!(printed.len() < if long { 4096 } else { 1024 } || printed.contains("buckets"));
            assert_eq!(State::from_json(&printed).unwrap(), state);
            Some(state)
        }
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::Order(_)), "{e:?}");
            None
        }
    }
}

/// An order of records, and a rank's share of it.
struct RankRun {
    spec: Spec,
    n: u64,
    seed: u64,
    epoch: u64,
    batch: u64,
    rank: u64,
    ranks: u64,
    last: LastBatch,
}

impl RankRun {
    fn new(mode: u8, script: &mut Script<'_>) -> RankRun {
        let n = match script.u8() {
            n @ 0..240 => u64::from(n),
            n => [1 << 20, 1 << 40, u64::MAX - 1, u64::MAX][usize::from(n % 4)],
        };
        let spec = spec(mode, n, script, true);
        let number = |byte: u8, script: &mut Script<'_>| if byte < 200 { byte.into() } else { script.u64() };
        let (seed, epoch) = (script.u64(), number(script.u8(), script));
        let ranks = 1 + u64::from(script.u8() % 5);
        RankRun {
            spec,
            n,
            seed,
            epoch,
            batch: ranks * (1 + u64::from(script.u8() % 40)),
            rank: u64::from(script.u8()) % ranks,
            ranks,
            last: [LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous]
                [usize::from(mode >> 4 & 3)],
        }
    }

    /// Checks a run that resumes from a state: its steps, and the states after some and after all of them.
    fn check(&self, order: &Order, state: &State) {
        // The end of epoch 0 may depend on the seed.
        let start = Order::new(&self.spec, self.n, 0, 0).unwrap();
        let share = RankShare::new(start.len(), self.batch, self.rank, self.ranks, self.last).unwrap();
        let mut cursor = Cursor::new(start, share).unwrap();
        cursor.seek(state, FINGERPRINT).unwrap();
        assert_eq!((cursor.epoch(), cursor.position()), (state.epoch, state.position));
        let saved = cursor.state(FINGERPRINT).unwrap();
        // Edited weights of a mix are a change of weights.
        if !matches!(self.spec, Spec::Mix(_)) {
            assert_eq!(saved, *state);
        }
        cursor.begin().unwrap();
        cursor.enter().unwrap();
        let (len, position) = (order.len(), state.position);
        let left = len - position;
        let steps = match self.last {
            LastBatch::Drop => left / self.batch,
            _ => left.div_ceil(self.batch),
        };
        assert_eq!(cursor.steps_left().unwrap(), steps);
        if let (Some(more), false) = (steps.checked_add(1), self.last == LastBatch::Continuous) {
            assert!(cursor.clone().advance(more).is_err());
        }
        // No epoch follows the last one.
        let is_last = state.epoch.checked_add(1).is_none_or(|next| order.at_epoch(next).is_err());
        for steps_made in [0, 1, steps / 2, steps] {
            if steps_made > steps {
                continue;
            }
            let end = u128::from(position) + u128::from(steps_made) * u128::from(self.batch);
            let (epochs, position) = match self.last {
                _ if steps_made == 0 => (0, position),
                LastBatch::Continuous => (end / u128::from(len), (end % u128::from(len)) as u64),
                _ if steps_made == steps && is_last => (0, len),
                _ if steps_made == steps => (1, 0),
                _ => (0, end as u64),
            };
            let epoch = u128::from(state.epoch) + epochs;
            let mut cursor = cursor.clone();
            if let Err(e) = cursor.advance(steps_made) {
                assert!(epoch > u64::MAX.into(), "{e}");
                continue;
            }
            // The epochs of a mixture end where its positions exceed u64.
            let Ok(after) = cursor.state(FINGERPRINT) else {
                assert!(matches!(self.spec, Spec::Mix(_)) && epochs > 0);
                continue;
            };
            assert_eq!(
                (u128::from(after.epoch), after.position),
                (epoch, position),
                "{steps_made} of {steps}"
            );
            assert_eq!(parsed(after.to_json().as_bytes()), Some(after));
        }
    }
}

fn spec(kind: u8, n: u64, script: &mut Script<'_>, mixed: bool) -> Spec {
    match kind % 8 {
        0 | 1 => Spec::Sequential,
        2 | 3 => Spec::Global,
        4 => Spec::Block { block: 1 + script.u16() as u64, window: 1 + u64::from(script.u8()) },
        5 if n < 240 => {
            let weights: Vec<u32> = (0..n).map(|_| script.u8().into()).collect();
            Weights::new(weights).map_or(Spec::Sequential, Spec::Weighted)
        }
        6 if n < 240 => {
            let kept: u64 = script.u64() | 1;
            let inner = spec(script.u8() % 5, n, script, false);
            inner.filtered(Subset::from_fn(n, |i| kept >> (i % 64) & 1 == 1))
        }
        7 if mixed => {
            let components = (0..1 + script.u8() % 20).map(|_| {
                let (weight, inner) = (u64::from(script.u8()), spec(script.u8(), n, script, false));
                Component::new(weight, inner)
            });
            let mix = MixSpec::new(components.collect());
            Spec::Mix(match script.u8() % 4 {
                0 => mix.stop(MixStop::First),
                1 => mix.stop(MixStop::All),
                _ => mix,
            })
        }
        _ => Spec::Global,
    }
}
