//! Maps, memory and positional reads give the same steps, as columns and as records.

use super::*;

/// Returns the numbers, payloads and positions of all steps of an epoch.
fn steps(ds: &Dataset, shuffle: &Shuffle, threads: usize) -> Vec<Vec<(u64, Vec<u8>, u64)>> {
    let loader =
        ds.record_loader().batch_size(10).shuffle(shuffle.clone()).seed(3).threads(threads).build().unwrap();
    loader
        .map(|step| {
            let step = step.unwrap();
            let records = step.records().unwrap();
            assert_eq!(records.len(), step.ids.len());
            let payloads: Vec<_> = records.map(|record| record.unwrap().payload().to_vec()).collect();
            assert_eq!(step.payload_bytes, payloads.iter().map(Vec::len).sum::<usize>() as u64);
            let positions = step.samples().map(|sample| sample.position);
            step.ids.iter().copied().zip(payloads).zip(positions).map(|((i, p), t)| (i, p, t)).collect()
        })
        .collect()
}

#[test]
fn every_kind_of_dataset_gives_the_same_steps() {
    let n = 101;
    let dir = tempfile::tempdir().unwrap();
    let all = shards(&[40, 1, 0, 60]);
    let read = files(dir.path(), &all);
    let memory = open(all);
    for shuffle in &orders(n) {
        let want = steps(&memory, shuffle, 0);
        assert!(want.iter().flatten().all(|(i, bytes, _)| *bytes == payload(*i)));
        for threads in [0, 1, 3] {
            for ds in [&memory, &read] {
                assert_eq!(steps(ds, shuffle, threads), want, "{shuffle:?} {threads}");
                let columns =
                    ds.loader(&schema()).batch_size(10).shuffle(shuffle.clone()).seed(3).threads(threads);
                let columns = columns.build().unwrap().map(|step| {
                    let step = step.unwrap();
                    check(&step);
                    step.ids.to_vec()
                });
                assert!(
                    columns.eq(want.iter().map(|step| step.iter().map(|(i, ..)| *i).collect::<Vec<_>>()))
                );
            }
        }
    }
}

/// A batch owns its data or shares it.
#[test]
fn steps_outlive_their_loader_and_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let all = shards(&[30]);
    let read = files(dir.path(), &all);
    let (columns, records): (Vec<Step>, Vec<Step>) = {
        let memory = open(all);
        let all = |ds: &Dataset| {
            let columns = ds
                .loader(&schema())
                .batch_size(7)
                .shuffle(Shuffle::Global)
                .seed(1)
                .threads(2)
                .build()
                .unwrap();
            let records =
                ds.record_loader().batch_size(7).shuffle(Shuffle::Global).seed(1).threads(2).build().unwrap();
            columns.zip(records).map(|(a, b)| (a.unwrap(), b.unwrap())).collect::<Vec<_>>()
        };
        all(&memory).into_iter().chain(all(&read)).unzip()
    };
    drop((read, dir));
    assert_eq!(columns.len(), 10);
    for (columns, records) in columns.iter().zip(&records) {
        check(columns);
        let mut payloads = records.records().unwrap();
        assert!(
            payloads.by_ref().zip(&columns.ids).all(|(record, &i)| record.unwrap().payload() == payload(i))
        );
    }
}

#[test]
fn selected_records_and_balanced_classes() {
    let dir = tempfile::tempdir().unwrap();
    let ds = files(dir.path(), &shards(&[50, 51]));
    let (some, _) = ds.select(&"i in 10..40 or i == 77".parse().unwrap(), &Default::default()).unwrap();
    for threads in [0, 2] {
        let loader = ds
            .loader(&schema())
            .batch_size(8)
            .shuffle(Shuffle::Global)
            .seed(1)
            .select(some.clone())
            .threads(threads)
            .build()
            .unwrap();
        let mut ids: Vec<u64> = loader
            .flat_map(|step| {
                let step = step.unwrap();
                check(&step);
                step.ids.to_vec()
            })
            .collect();
        assert!(!ids.is_sorted());
        ids.sort_unstable();
        assert!(ids.into_iter().eq((10..40).chain([77])));
    }
    // The first values of `x` have one class per record; the strings have fewer classes.
    let column = ds.column("s", &Default::default()).unwrap();
    let classes = column.classes().unwrap();
    let (value, empty) = &classes[0];
    assert_eq!(*value, tfseek::column::Value::Bytes(b""));
    let n = classes.len();
    assert!(empty.len() > 10 && n > 80);
    let all = |options: tfseek::LoaderOptions| {
        let loader = options.batch_size(n as u64).seed(2).threads(1).build().unwrap();
        loader.flat_map(|step| step.unwrap().ids.to_vec()).collect::<Vec<_>>()
    };
    // A cycle has one record of each class.
    let ids = all(ds.record_loader().balance(&column).unwrap());
    assert_eq!(ids[..n].iter().filter(|id| empty.contains(id)).count(), 1);
    // Only selected records.
    let ids = all(ds.record_loader().balance(&column).unwrap().select(some.clone()));
    assert!(!ids.is_empty() && ids.iter().all(|&id| some.rank(id).is_some()));
}

#[test]
fn the_error_for_a_balance_without_classes_names_the_feature() {
    let mut bytes = Vec::new();
    for i in 0..20 {
        let mut example = ExampleBuilder::new();
        example = example.int64("label", (i < 10).then_some(i % 2)).int64("i", [i]);
        put_record(&mut bytes, &example.encode().unwrap()).unwrap();
    }
    let ds = open(vec![bytes]);
    let column = ds.column("label", &Default::default()).unwrap();
    let options = || ds.record_loader().batch_size(2).balance(&column).unwrap();
    let of = |filter: &str| {
        options().select(ds.select(&filter.parse().unwrap(), &Default::default()).unwrap().0).build()
    };
    of("i < 11").unwrap();
    let e = of("i >= 10").unwrap_err();
    assert_eq!(
        e.to_string(),
        "feature \"label\": invalid order: there are no classes to balance: none of the selected records has a value"
    );
    assert_eq!(e.location().feature.as_deref(), Some("label"));
}
