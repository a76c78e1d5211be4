//! Global batches are the same for every number of ranks and threads, also after stopping at any step and
//! resuming with others.

use super::*;
use tfseek::order::{LastBatch, Sample, State};

const GLOBAL: u64 = 12;
const RANKS: [u64; 6] = [1, 2, 3, 4, 6, 12];
const LAST: [LastBatch; 4] = [LastBatch::Drop, LastBatch::Pad, LastBatch::Short, LastBatch::Continuous];

/// The samples of all ranks per step.
type Batches = Vec<Vec<Sample>>;

/// Runs all ranks from `state` on and returns their combined samples.
fn run(
    ds: &Dataset,
    (order, last): (&Shuffle, LastBatch),
    (global, ranks, threads): (u64, u64, usize),
    state: Option<&State>,
    steps: usize,
) -> (Batches, State) {
    let loader = |rank| {
        let options = ds.loader(&schema()).global_batch_size(global).rank(rank, ranks).threads(threads);
        let mut loader = options.shuffle(order.clone()).seed(5).last_batch(last).build().unwrap();
        state.map_or(Ok(()), |state| loader.seek(state)).unwrap();
        loader
    };
    let mut loaders: Vec<_> = (0..ranks).map(loader).collect();
    let mut batches = Vec::new();
    while batches.len() < steps {
        let shares: Vec<_> = loaders.iter_mut().map(|loader| loader.next().transpose().unwrap()).collect();
        if shares[0].is_none() {
            assert!(shares.iter().all(Option::is_none), "all ranks have the same number of steps");
            break;
        }
        let samples = |step: Step| {
            check(&step);
            step.samples().collect::<Vec<_>>()
        };
        batches.push(shares.into_iter().flatten().flat_map(samples).collect());
    }
    let states: Vec<State> = loaders.iter().map(|loader| loader.state().unwrap()).collect();
    let json = states[0].to_json();
    assert!(
        json.len() < 1024 && states.iter().all(|state| state.to_json() == json),
        "one state for all ranks"
    );
    (batches, State::from_json(&json).unwrap())
}

#[test]
fn global_batches_do_not_depend_on_ranks_or_threads() {
    for n in [103, 96, 107] {
        let ds = memory(n);
        for order in &orders(n) {
            for last in LAST {
                let (want, _) = run(&ds, (order, last), (GLOBAL, 1, 0), None, usize::MAX);
                assert!(!want.is_empty());
                for ranks in RANKS {
                    // Tests each number of threads with each number of ranks once per set of orders, and all
                    // pairs over the whole test.
                    for threads in [1, 2, 8] {
                        let (found, _) = run(&ds, (order, last), (GLOBAL, ranks, threads), None, usize::MAX);
                        assert_eq!(found, want, "{n} {order:?} {last:?}, {ranks} ranks, {threads} threads");
                    }
                }
            }
        }
    }
}

#[test]
fn stopped_at_every_step_and_resumed_with_other_ranks() {
    let n = 103;
    let ds = memory(n);
    let mut case = 0;
    for order in &orders(n) {
        for last in LAST {
            let (whole, _) = run(&ds, (order, last), (GLOBAL, 1, 0), None, usize::MAX);
            let (all, _) = run(&ds, (order, LastBatch::Short), (GLOBAL, 1, 0), None, usize::MAX);
            let want: Vec<(u64, u64)> =
                all.iter().flatten().map(|sample| (sample.position, sample.record)).collect();
            assert!(want.iter().map(|(position, _)| *position).eq(0..want.len() as u64));
            for stop in 0..whole.len() {
                // Resumes with other ranks and other batch sizes: a divisor, a multiple, and one that is
                // neither.
                for global in [GLOBAL, 6, 24, 30] {
                    case += 1;
                    let (before, after) = (RANKS[case % 6], RANKS[case / 6 % 6]);
                    let after = if global.is_multiple_of(after) { after } else { 2 };
                    let (first, state) = run(&ds, (order, last), (GLOBAL, before, case % 3), None, stop);
                    let (rest, _) =
                        run(&ds, (order, last), (global, after, case % 2), Some(&state), usize::MAX);
                    let what = format!(
                        "{order:?} {last:?}, {before} ranks, {stop} steps, {after} ranks of {global}"
                    );
                    assert_eq!(first, whole[..stop], "{what}");
                    if global == GLOBAL && last != LastBatch::Pad {
                        assert_eq!(rest, whole[stop..], "{what}");
                    }
                    // Nothing is repeated or lost, and the order is kept. The last batch drops less than a
                    // batch.
                    let all: Vec<Sample> = first.iter().chain(&rest).flatten().copied().collect();
                    let of_epoch = all.iter().filter(|sample| sample.epoch == 0 && !sample.padding);
                    let found: Vec<(u64, u64)> =
                        of_epoch.map(|sample| (sample.position, sample.record)).collect();
                    assert!(found.len() <= want.len() && found == want[..found.len()], "{what}");
                    let dropped = want.len() - found.len();
                    assert!(dropped == 0 || (last == LastBatch::Drop && dropped < global as usize), "{what}");
                }
            }
        }
    }
}

/// Batches continue across the ends of epochs: all positions of all epochs in order, for every stop and every
/// rank.
#[test]
fn continuous_batches_lose_nothing_over_epochs() {
    let (n, epochs) = (31, 5);
    let ds = memory(n);
    for ranks in [1, 2, 3] {
        let mut loaders: Vec<_> = (0..ranks)
            .map(|rank| {
                let options = ds
                    .loader(&schema())
                    .global_batch_size(6)
                    .rank(rank, ranks)
                    .shuffle(Shuffle::Global)
                    .seed(9)
                    .threads(2);
                options.last_batch(LastBatch::Continuous).repeat(true).build().unwrap()
            })
            .collect();
        let mut found = Vec::new();
        while (found.len() as u64) < n * epochs {
            for loader in &mut loaders {
                let step = loader.next().unwrap().unwrap();
                assert_eq!(step.ids.len() as u64 * ranks, 6);
                found.extend(step.samples().map(|sample| (sample.epoch, sample.position)));
            }
            if found.len() % 4 == 0 {
                let state = loaders[0].state().unwrap();
                loaders.iter_mut().for_each(|loader| loader.seek(&state).unwrap());
            }
        }
        let want = (0..epochs + 1).flat_map(|epoch| (0..n).map(move |position| (epoch, position)));
        assert!(found.iter().copied().eq(want.take(found.len())), "{ranks} ranks: {found:?}");
    }
}

#[test]
fn the_size_of_blocks_is_the_same_on_all_ranks_and_in_the_state() {
    let ds = memory(1000);
    let mean = ds.known_bytes().unwrap() as f64 / 1000.0;
    let options = || ds.record_loader().global_batch_size(20).shuffle(Shuffle::Block).seed(3);
    let sized = |records: u64| options().block_bytes((mean * records as f64).ceil() as u64);
    let ids = |loader: Loader| -> Vec<u64> { loader.flat_map(|step| step.unwrap().ids.to_vec()).collect() };
    for records in [1, 7, 40] {
        let spec = Spec::Block { block: records, window: 80 };
        let loader = sized(records).build().unwrap();
        assert_eq!(*loader.cursor().order().spec(), spec);
        let whole = ids(loader);
        assert_eq!(whole, ids(options().shuffle(Shuffle::Order(spec)).build().unwrap()));
        let ranks: Vec<_> = (0..4).map(|rank| ids(sized(records).rank(rank, 4).build().unwrap())).collect();
        let joined: Vec<u64> =
            (0..50).flat_map(|k| ranks.iter().flat_map(move |ids| ids[k * 5..][..5].to_vec())).collect();
        assert_eq!(joined, whole);
    }
    // A run goes on with the blocks of its state, whatever the option is now, and as before without the
    // option.
    let mut loader = sized(7).build().unwrap();
    let before: Vec<u64> = loader.by_ref().take(10).flat_map(|step| step.unwrap().ids.to_vec()).collect();
    let state = loader.state().unwrap();
    assert!(state.to_json().contains(r#""W":80,"algo":"prp1","b":7"#), "{}", state.to_json());
    for other in [options(), sized(40)] {
        let mut resumed = other.build().unwrap();
        resumed.seek(&state).unwrap();
        assert_eq!([&before[..], &ids(resumed)[..]].concat(), ids(sized(7).build().unwrap()));
    }
    assert_eq!(
        *options().build().unwrap().cursor().order().spec(),
        Spec::Block { block: (1000 << 20) / ds.known_bytes().unwrap(), window: 80 }
    );
    for (options, reason) in [
        (options().block_bytes(0), "block_bytes: expected at least 1, found 0"),
        (options().shuffle(Shuffle::Global).block_bytes(7), "block_bytes: expected a block shuffle"),
        (options().shuffle(Shuffle::None).block_bytes(7), "block_bytes: expected a block shuffle"),
    ] {
        let e = options.build().unwrap_err().to_string();
        assert!(e.contains(reason), "{e}");
    }
}
