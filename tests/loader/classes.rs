//! Balanced classes in a block order: equal numbers in each window, on any ranks and after a resume, and the
//! orders that cannot be balanced.

use super::*;
use tfseek::LoaderOptions;
use tfseek::column::DatasetColumn;
use tfseek::order::{Order, State};
use tfseek_testkit::order_twin as twin;

/// Returns `n` records with these labels. A label of `None` is no class.
fn labelled(n: u64, label: impl Fn(u64) -> Option<i64>) -> (Dataset, DatasetColumn) {
    let mut bytes = Vec::new();
    for i in 0..n {
        let example = ExampleBuilder::new().int64("label", label(i)).int64("i", [i as i64]);
        put_record(&mut bytes, &example.encode().unwrap()).unwrap();
    }
    let ds = open(vec![bytes]);
    let column = ds.column("label", &Default::default()).unwrap();
    (ds, column)
}

fn blocks(block: u64, window: u64) -> Shuffle {
    Shuffle::Order(Spec::Block { block, window })
}

fn balanced((ds, column): &(Dataset, DatasetColumn), shuffle: Shuffle) -> LoaderOptions {
    ds.record_loader().batch_size(12).shuffle(shuffle).seed(9).balance(column).unwrap()
}

fn all(order: &Order) -> Vec<u64> {
    let mut records = vec![0; order.len() as usize];
    order.fill(0, &mut records).unwrap();
    records
}

/// Sorted, mixed, rare and missing classes.
fn labels(i: u64) -> [Option<i64>; 4] {
    let mixed = (i * 7 % 11) as i64;
    [Some(i as i64 / 50), Some(mixed), Some(i64::from(i == 3)), (i % 4 != 1).then_some(mixed % 3)]
}

#[test]
fn the_order_of_balanced_blocks_is_that_of_the_twin() {
    for (n, block, window) in [(203, 16, 3), (64, 8, 2), (7, 10, 4), (500, 1, 9)] {
        for kind in 0..4 {
            let set = labelled(n, |i| labels(i)[kind]);
            let cursor = balanced(&set, blocks(block, window)).to_cursor().unwrap();
            let with_class: Vec<u64> = (0..n).filter(|i| labels(*i)[kind].is_some()).collect();
            let classes: Vec<i64> = with_class.iter().map(|i| labels(*i)[kind].unwrap()).collect();
            for epoch in [0, 1, 5] {
                let order = cursor.order().at_epoch(epoch).unwrap();
                let twin = twin::balanced_blocks(&classes, block, window, 9, epoch);
                let want: Vec<u64> = twin.into_iter().map(|u| with_class[u as usize]).collect();
                assert_eq!(all(&order), want, "{n} {block} {window} {kind} {epoch}");
                assert!((0..order.len()).all(|t| order.get(t).unwrap() == want[t as usize]));
                for record in 0..n {
                    let share = cursor.share().unwrap();
                    let rows = order.rows_of(record, &share).unwrap();
                    let found: Vec<u64> = rows.iter().map(|row| row.step * 12 + row.row).collect();
                    let places = (0..order.len()).filter(|t| want[*t as usize] == record);
                    assert_eq!(found, places.collect::<Vec<_>>(), "record {record}");
                }
            }
        }
    }
}

/// In a window the counts of its classes differ by one at most, and its records come from its blocks.
#[test]
fn classes_of_a_window_have_equally_many_samples() {
    let set = labelled(960, |i| Some(i64::from(i % 8 == 0)));
    let order = balanced(&set, blocks(16, 6)).to_cursor().unwrap().order().clone();
    for window in all(&order).chunks(96) {
        let rare = window.iter().filter(|record| **record % 8 == 0).count();
        assert_eq!(rare, 48);
        let mut read: Vec<u64> = window.iter().map(|record| record / 16).collect();
        read.sort_unstable();
        read.dedup();
        assert!(read.len() <= 6);
    }
}

#[test]
fn balanced_blocks_resume_on_other_ranks() {
    let set = labelled(203, |i| labels(i)[1]);
    let whole = all(balanced(&set, blocks(16, 3)).to_cursor().unwrap().order());
    let mut first = balanced(&set, blocks(16, 3)).threads(2).build().unwrap();
    let ids: Vec<u64> = first.by_ref().take(5).flat_map(|step| step.unwrap().ids).collect();
    assert_eq!(ids, whole[..60]);
    let state = first.state().unwrap().to_json();
    assert!(
        state.contains("\"kind\":\"balanced\"") && state.contains("\"b\":16") && state.contains("\"W\":3"),
        "{state}"
    );
    let state = State::from_json(&state).unwrap();
    let mut parts: Vec<Vec<Vec<u64>>> = Vec::new();
    for rank in 0..2 {
        // The sizes are those of the state.
        let options = balanced(&set, blocks(5, 2)).global_batch_size(12).rank(rank, 2).threads(rank as usize);
        let mut rest = options.build().unwrap();
        rest.seek(&state).unwrap();
        parts.push(rest.map(|step| step.unwrap().ids).collect());
    }
    let both: Vec<u64> =
        parts[0].iter().zip(&parts[1]).flat_map(|(a, b)| a.iter().chain(b)).copied().collect();
    assert_eq!(both[..143], whole[60..]);
    let other = labelled(203, |i| labels(i)[0]);
    let e = balanced(&other, blocks(16, 3)).build().unwrap().seek(&state).unwrap_err();
    assert!(e.to_string().contains("of another"), "{e}");
}

#[test]
fn an_order_that_cannot_be_balanced_is_refused_and_one_with_rare_classes_warned_of() {
    let set = labelled(203, |i| labels(i)[2]);
    let refused = "feature \"label\": invalid order: balanced classes are shuffled: expected a global or a block shuffle, found another order";
    for shuffle in [Shuffle::None, Shuffle::Order(Spec::Sequential), Shuffle::Order(Spec::Global)] {
        let e = balanced(&set, shuffle).build().unwrap_err();
        assert_eq!(e.to_string(), refused);
    }
    for shuffle in [Shuffle::Global, Shuffle::Block] {
        assert!(balanced(&set, shuffle).build().unwrap().warnings().is_empty());
    }
    // Classes of another dataset, which is longer.
    let few = (labelled(5, |_| Some(0)).0, set.1.clone());
    let e = balanced(&few, blocks(2, 2)).build().unwrap_err();
    assert!(e.to_string().contains("expected classes of records below 5, found record 202"), "{e}");
    let loader = balanced(&set, blocks(8, 4)).build().unwrap();
    let mut order = loader.cursor().order().spec();
    while let Spec::Filtered { order: inner, .. } = order {
        order = inner;
    }
    let e = Order::new(order, 5, 0, 0).unwrap_err();
    assert!(e.to_string().contains("expected the classes of 5 records"), "{e}");
    let [warning] = loader.warnings() else { panic!("{:?}", loader.warnings()) };
    assert_eq!(warning.kind(), "rare_class");
    assert!(warning.to_string().contains("one class is in 1 block for 7 windows"), "{warning}");
}
