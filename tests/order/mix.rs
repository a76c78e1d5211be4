//! Mixes: shares at every prefix, ends of an epoch, whole batches, and changes of weights, compared with a
//! naive twin.

use crate::{all, refused};
use std::ops::Range;
use tfseek::error::OrderError;
use tfseek::order::*;
use tfseek_testkit::order_twin as twin;
use tfseek_testkit::rng::Rng;

const FP: &str = "99aa06d3014798d86001c324468d497f";

/// Returns components of these sizes, one after the other, with some kinds of orders.
fn components(sizes: &[u64], weights: &[u64]) -> (Vec<Component>, u64) {
    let mut base = 0;
    let component = |(c, (&size, &weight)): (usize, (&u64, &u64))| {
        let order = match c % 3 {
            0 => Spec::Global,
            1 => Spec::Sequential,
            _ => Spec::Block { block: 3, window: 2 },
        };
        base += size;
        Component::new(weight, order).over(base - size..base)
    };
    let components = sizes.iter().zip(weights).enumerate().map(component).collect();
    (components, base)
}

/// The record of sample `i` of component `c`, from tables.
fn record(sizes: &[u64], seed: u64, c: usize, i: u64) -> u64 {
    let base: u64 = sizes[..c].iter().sum();
    let (epoch, position, stream) = (i / sizes[c], (i % sizes[c]) as usize, (c as u64 + 1) << 40);
    base + match c % 3 {
        0 => twin::prp(sizes[c], seed, epoch, stream).all()[position],
        1 => position as u64,
        _ => twin::block_order(sizes[c], 3, 2, seed, epoch, stream)[position],
    }
}

/// The turns of a mix, one after the other, as a naive program computes them.
struct Turns {
    weights: Vec<u64>,
    seed: u64,
    given: Vec<u64>,
    cycle: u64,
    ahead: std::collections::VecDeque<usize>,
}

impl Turns {
    fn new(weights: &[u64], seed: u64) -> Turns {
        Turns {
            weights: weights.to_vec(),
            seed,
            given: vec![0; weights.len()],
            cycle: 0,
            ahead: Default::default(),
        }
    }

    fn change(&mut self, weights: &[u64]) {
        (self.weights, self.cycle) = (weights.to_vec(), 0);
        self.ahead.clear();
    }

    fn next(&mut self) -> (usize, u64) {
        if self.ahead.is_empty() {
            let laid_out: Vec<usize> = self
                .weights
                .iter()
                .enumerate()
                .flat_map(|(c, &q)| std::iter::repeat_n(c, q as usize))
                .collect();
            let shuffle = twin::prp(laid_out.len() as u64, self.seed, self.cycle, 3 << 32);
            self.ahead = shuffle.all().into_iter().map(|u| laid_out[u as usize]).collect();
            self.cycle += 1;
        }
        let c = self.ahead.pop_front().unwrap();
        self.given[c] += 1;
        (c, self.given[c] - 1)
    }
}

#[test]
fn every_prefix_has_its_shares_and_is_a_prefix_of_each_source() {
    let mut rng = Rng::new(3);
    let sizes: Vec<u64> = (0..25).map(|_| 20_000 + rng.u64() % 40_000).collect();
    let weights: Vec<u64> = (0..25).map(|c| 1 + rng.u64() % if c % 5 == 0 { 400 } else { 30 }).collect();
    let total: u64 = weights.iter().sum();
    let mut base = 0;
    let source = |(&size, &weight): (&u64, &u64)| {
        base += size;
        Component::new(weight, Spec::Sequential).over(base - size..base)
    };
    let spec = Spec::Mix(MixSpec::new(sizes.iter().zip(&weights).map(source).collect()));
    let order = Order::new(&spec, base, 11, 0).unwrap();
    let starts: Vec<u64> = sizes.iter().scan(0, |at, size| Some(std::mem::replace(at, *at + size))).collect();
    let mut given = [0; 25];
    let mut t = 0;
    let mut records = vec![0; 997];
    for epoch in 0.. {
        let order = order.at_epoch(epoch).unwrap();
        for start in (0..order.len()).step_by(997) {
            let records = &mut records[..(order.len() - start).min(997) as usize];
            order.fill(start, records).unwrap();
            for id in &*records {
                let c = starts.partition_point(|at| at <= id) - 1;
                // What a source has given is a prefix of its own order.
                assert_eq!(id - starts[c], given[c] % sizes[c]);
                given[c] += 1;
                t += 1;
                let (least, most) = (t / total * weights[c], t.div_ceil(total) * weights[c]);
                assert!((least..=most).contains(&given[c]), "{t} {c}");
                if t % 1000 == 0 {
                    let within =
                        |(given, q): (&u64, &u64)| (t / total * q..=t.div_ceil(total) * q).contains(given);
                    assert!(given.iter().zip(&weights).all(within));
                }
            }
            if t > 1_000_000 {
                return;
            }
        }
    }
}

/// One mix of each unit and end.
fn specs(components: &[Component]) -> Vec<(MixSpec, Option<u64>, MixStop)> {
    let mut specs = Vec::new();
    for batch in [None, Some(4), Some(6)] {
        for stop in [MixStop::Never, MixStop::First, MixStop::All] {
            let spec = MixSpec::new(components.to_vec()).stop(stop);
            specs.push((batch.map_or(spec.clone(), |batch| spec.batches(batch)), batch, stop));
        }
    }
    specs
}

/// Returns the number of samples of an epoch.
fn samples(sizes: &[u64], weights: &[u64], seed: u64, batch: u64, stop: MixStop) -> u64 {
    if stop == MixStop::Never {
        return sizes.iter().sum();
    }
    let (mut turns, mut left) = (Turns::new(weights, seed), sizes.to_vec());
    let mut turn = 0;
    loop {
        let (c, _) = turns.next();
        let taken = left[c].min(batch);
        turn += 1;
        if left[c] == 0 {
            continue;
        }
        left[c] -= taken;
        let (any, every) = (left.contains(&0), left.iter().all(|left| *left == 0));
        if left[c] == 0 && if stop == MixStop::First { any } else { every } {
            return (turn - 1) * batch + taken;
        }
    }
}

#[test]
fn mixes_against_the_naive_twin_through_changes_of_weights() {
    let sizes = [17, 40, 29, 5];
    let mut rng = Rng::new(8);
    for seed in 0..2 {
        let first = [5, 2, 4, 1];
        let (parts, n) = components(&sizes, &first);
        for (spec, batch, stop) in specs(&parts) {
            let rows = batch.unwrap_or(1);
            let samples = samples(&sizes, &first, seed, rows, stop);
            let len = samples.div_ceil(rows) * rows;
            let mut order = Order::new(&Spec::Mix(spec.clone()), n, seed, 0).unwrap();
            let (mut turns, mut weights) = (Turns::new(&first, seed), first.to_vec());
            let mut position = 0;
            for round in 0..25 {
                assert_eq!(order.len(), len, "{batch:?} {stop:?}");
                let step = (rows * (1 + rng.u64() % 9)).min(len - position);
                let mut got = vec![0; step as usize];
                order.fill(position, &mut got).unwrap();
                let mut want = Vec::new();
                for _ in 0..step / rows {
                    let (c, i) = turns.next();
                    want.extend((0..rows).map(|row| record(&sizes, seed, c, i * rows + row)));
                }
                assert_eq!(got, want, "{batch:?} {stop:?} {round}");
                position += step;
                if position == len {
                    (position, order) = (0, order.at_epoch(order.epoch() + 1).unwrap());
                }
                // Stop here, and go on: with the same weights or with others.
                let json = State::new(&order, position, FP).unwrap().to_json();
                let state = State::from_json(&json).unwrap();
                assert_eq!((state.to_json(), state.position), (json, position));
                if round % 3 == 2 {
                    weights = (0..4).map(|_| 1 + rng.u64() % 7).collect();
                    if weights != turns.weights {
                        turns.change(&weights);
                    }
                }
                let (parts, _) = components(&sizes, &weights);
                let run = MixSpec::new(parts).stop(stop);
                let run = batch.map_or(run.clone(), |batch| run.batches(batch));
                order = state.resume(&Spec::Mix(run), n, FP).unwrap();
                check_inverse(&order, n, rows);
            }
        }
    }
}

/// Compares the rows of each record with the positions that have it.
fn check_inverse(order: &Order, n: u64, rows: u64) {
    let share = RankShare::new(order.len(), rows, 0, 1, LastBatch::Short).unwrap();
    let records = all(order);
    let mut found = vec![None; records.len()];
    for record in 0..n {
        for row in order.rows_of(record, &share).unwrap() {
            let position = (row.step * rows + row.row) as usize;
            assert_eq!(found[position].replace(record), None);
        }
    }
    // Positions before a change of weights are in no step of the run.
    let known = found.iter().position(Option::is_some).unwrap_or(found.len());
    for (found, record) in found.iter().zip(&records).skip(known) {
        assert_eq!(*found, Some(*record));
    }
    if !State::new(order, 0, FP).unwrap().to_json().contains("\"from\":0") {
        return;
    }
    assert_eq!(known, 0);
}

#[test]
fn ranks_divide_the_same_global_batches() {
    let (components, n) = components(&[300, 500, 200], &[7, 2, 1]);
    for (spec, batch, _) in
        specs(&components).into_iter().filter(|(_, batch, _)| batch.is_none_or(|b| b == 4))
    {
        let spec = if batch.is_some() { spec.batches(64) } else { spec };
        let order = Order::new(&Spec::Mix(spec), n, 5, 0).unwrap();
        let batch = |ranks: u64, step| -> Vec<u64> {
            let share = |rank| RankShare::new(order.len(), 64, rank, ranks, LastBatch::Continuous).unwrap();
            let samples = (0..ranks).map(|rank| order.samples(share(rank).step(step).unwrap()).unwrap());
            samples.flatten().map(|sample| sample.record).collect()
        };
        for step in 0..30 {
            let one = batch(1, step);
            for ranks in [2, 4, 8, 16, 32, 64] {
                assert_eq!(batch(ranks, step), one);
            }
        }
    }
}

fn saved(spec: &Spec, n: u64, position: u64) -> String {
    State::new(&Order::new(spec, n, 1, 0).unwrap(), position, FP).unwrap().to_json()
}

#[test]
fn states_of_other_mixes_are_refused_and_other_weights_are_not() {
    let (components, n) = components(&[30, 50, 20], &[7, 2, 1]);
    let spec = |spec: MixSpec| Spec::Mix(spec);
    let mix = || MixSpec::new(components.clone());
    let state = |json: &str| State::from_json(json).unwrap();
    let e = |json: &str, run: Spec| state(json).resume(&run, n, FP).unwrap_err().to_string();
    let rows = saved(&spec(mix()), n, 40);
    for (run, why) in [
        (mix().batches(10), "unit: expected \"batch\", found \"row\""),
        (mix().stop(MixStop::First), "stop: expected \"first\", found \"never\""),
    ] {
        let e = e(&rows, spec(run));
        assert!(e.contains(why), "{e}");
    }
    let batches = saved(&spec(mix().batches(10)), n, 40);
    assert!(batches.contains("\"pos\":4,"), "{batches}");
    assert_eq!(state(&batches).position, 40);
    let batched = Order::new(&spec(mix().batches(10)), n, 1, 0).unwrap();
    let e_inside = State::new(&batched, 41, FP).unwrap_err().to_string();
    assert!(e_inside.contains("a position after whole batches of 10, found 41"), "{e_inside}");
    assert!(e(&batches, spec(mix().batches(20))).contains("batch: expected 20, found 10"));
    let others = |c: usize, order: Spec| {
        let mut changed = components.clone();
        changed[c] = Component::new(7, order).over(0..30);
        spec(MixSpec::new(changed))
    };
    assert!(e(&rows, others(0, Spec::Sequential)).contains("other records or orders"));
    assert!(e(&rows, Spec::Global).contains("expected a global shuffle, found a mix"));
    for records in [Range { start: 30, end: 0 }, 0..n + 1] {
        let mut outside = components.clone();
        outside[0] = Component::new(7, Spec::Global).over(records.clone());
        let why = format!("expected records within 0..{n}, found {records:?}");
        let e = e(&rows, spec(MixSpec::new(outside)));
        assert!(e.contains(&why), "{e}");
    }
    // Sizes of blocks come from the state.
    let mut sized = components.clone();
    sized[2] = Component::new(1, Spec::Block { block: 8, window: 9 }).over(80..100);
    let resumed = state(&rows).resume(&spec(MixSpec::new(sized)), n, FP).unwrap();
    assert_eq!(all(&resumed), all(&Order::new(&spec(mix()), n, 1, 0).unwrap()));

    // Equal weights change nothing, and others begin at the position.
    assert_eq!(saved(resumed.spec(), n, 40), rows);
    let (changed, _) = self::components(&[30, 50, 20], &[1, 1, 3]);
    let changed = state(&rows).resume(&spec(MixSpec::new(changed)), n, FP).unwrap();
    assert!(saved(changed.spec(), n, 41).contains("\"mix\":{\"E\":100,\"from\":40,\"given\":[28,8,4]}"));
    // The epochs before the change are not known, and the positions before it are not in any step.
    let later = state(&rows.replace("\"epoch\":0", "\"epoch\":3"));
    let (again, _) = self::components(&[30, 50, 20], &[1, 1, 3]);
    let later = later.resume(&spec(MixSpec::new(again)), n, FP).unwrap();
    assert!(
        later.at_epoch(2).unwrap_err().to_string().contains("the weights of the mix were changed at 340")
    );
    assert_eq!(later.get(0).unwrap(), later.get(40).unwrap());
    let share = RankShare::new(n, 10, 0, 1, LastBatch::Pad).unwrap();
    let mut cursor = Cursor::new(later, share).unwrap();
    assert_eq!((cursor.epoch(), cursor.position()), (3, 40));
    assert!(cursor.set_epoch(2).is_err());
    cursor.enter().unwrap();
    cursor.advance(2).unwrap();
    cursor.begin().unwrap();
    assert_eq!((cursor.epoch(), cursor.position()), (3, 40));
    // Weights that were changed at the end of an epoch leave nothing of it.
    let (last, _) = self::components(&[30, 50, 20], &[1, 1, 3]);
    let at = |pos: u64| rows.replace("\"pos\":40", &format!("\"pos\":{pos}"));
    let ended = state(&at(100)).resume(&spec(MixSpec::new(last)), n, FP).unwrap();
    assert!(matches!(refused(ended.get(0).unwrap_err()), OrderError::Position { position: 0, len: 0 }));
    assert_eq!(ended.rows_of(0, &RankShare::new(n, 10, 0, 1, LastBatch::Pad).unwrap()).unwrap(), []);
    // States that were changed by hand.
    for (json, why) in [
        (at(101), "no position 101: there are 100"),
        (rows.replace("[7,2,1]", "[7,2]").replace("[0,0,", "[0,"), "found [7, 2]"),
    ] {
        for weights in [[9, 9, 9], [7, 2, 1]] {
            let e = e(&json, spec(MixSpec::new(self::components(&[30, 50, 20], &weights).0)));
            assert!(e.contains(why), "{e}");
        }
    }

    for (find, put, field) in [
        ("\"mix\":{\"E\":100", "\"mix\":{\"E\":0", "E"),
        ("\"mix\":{\"E\":100", "\"mix\":{\"x\":100", "E"),
        ("\"from\":0", "\"from\":0,\"more\":1", "mix"),
        ("\"mix\":{", "\"mixed\":{", "mix"),
        ("\"given\":[0,0,0]", "\"given\":[0,0]", "given"),
        ("\"stop\":\"never\"", "\"stop\":\"now\"", "stop"),
        ("\"unit\":\"row\"", "\"unit\":\"batch\"", "batch"),
        ("\"unit\":\"row\"", "\"unit\":\"row\",\"batch\":3", "order"),
        ("\"weights\":[7,2,1]", "\"weights\":[7,0,1]", "weights"),
        ("\"weights\":[7,2,1]", "\"weights\":[]", "weights"),
        ("\"b\":[0,0,3]", "\"b\":[0,3]", "b"),
        ("\"W\":[0,0,2],", "", "W"),
        ("\"b\":[0,0,3],", "", "order"),
    ] {
        assert!(rows.contains(find), "{find} {rows}");
        match refused(State::from_json(&rows.replacen(find, put, 1)).unwrap_err()) {
            OrderError::State { field: found, .. } => assert_eq!(&*found, field, "{put}"),
            other => panic!("{other:?}"),
        }
    }
    for (find, put) in [
        ("\"mix\":{\"E\":100", "\"mix\":{\"E\":101"),
        ("\"from\":0", "\"from\":1"),
        ("\"given\":[0,0,0]", "\"given\":[18446744073709551615,1,0]"),
        ("\"weights\":[7,2,1]", "\"weights\":[7,2]"),
        ("\"weights\":[7,2,1]", "\"weights\":[1048576,1,1]"),
        ("\"from\":0,\"given\":[0,0,0]", "\"from\":60,\"given\":[60,0,0]"),
    ] {
        assert!(rows.contains(find), "{find} {rows}");
        let parsed = State::from_json(&rows.replacen(find, put, 1));
        let Ok(state) = parsed else { continue };
        for weights in [[9, 9, 9], [7, 2, 1]] {
            let (run, _) = self::components(&[30, 50, 20], &weights);
            let mixed = state.resume(&spec(MixSpec::new(run)), n, FP);
            assert!(mixed.is_err(), "{put}: {mixed:?}");
        }
    }
}

/// States of balanced classes have a kind of their own, which a mix of sources refuses. So it refuses all
/// mixtures of version 0.1.
#[test]
fn states_of_balanced_classes_and_of_mixes_refuse_each_other() {
    let (ones, n) = components(&[30, 50, 20], &[1, 1, 1]);
    let mix = Spec::Mix(MixSpec::new(ones));
    let balanced = twin::balanced((0..3).map(|c| Subset::from_fn(n, |i| i % 3 == c)));
    let of_mix = saved(&mix, n, 40);
    let of_classes = saved(&balanced, n, 40);
    assert!(of_mix.contains("\"kind\":\"mix\"") && of_mix.contains("\"weights\":[1,1,1]"));
    assert!(of_classes.contains("\"kind\":\"mixture\"") && !of_classes.contains("\"mix\":"));
    let resumed = |json: &str, run: &Spec| State::from_json(json).unwrap().resume(run, n, FP);
    assert_eq!(all(&resumed(&of_classes, &balanced).unwrap()), all(&Order::new(&balanced, n, 1, 0).unwrap()));
    let e = resumed(&of_classes, &mix).unwrap_err().to_string();
    assert!(e.contains("expected a mix, found a mixture"), "{e}");
    let e = resumed(&of_mix, &balanced).unwrap_err().to_string();
    assert!(e.contains("expected a mixture, found a mix"), "{e}");
    let e = resumed(&of_classes.replace("[1,1,1]", "[1,2,1]"), &balanced).unwrap_err().to_string();
    assert!(e.contains("weights"), "{e}");
}
