//! Saved states: small, equal on all ranks, and refused for another dataset or order.

use tfseek::error::OrderError;
use tfseek::order::{Component, MixSpec, Spec, State, Subset, Weights};
use tfseek::{ErrorKind, Order};

const FP: &str = "99aa06d3014798d86001c324468d497f";

fn refused(e: tfseek::Error) -> String {
    let text = e.to_string();
    match e.into_kind() {
        ErrorKind::Order(OrderError::State { field, .. }) => field.into(),
        ErrorKind::Order(OrderError::OtherState { field, .. }) => field.into(),
        _ => panic!("{text}"),
    }
}

fn every_third(n: u64) -> Subset {
    Subset::from_fn(n, |i| i % 3 == 0)
}

/// Returns all kinds of orders over 1000 records, with the largest numbers that fit.
fn specs() -> Vec<Spec> {
    let large = |count: u64| {
        let component = |c| {
            let order = Spec::Block { block: c + 1, window: u64::MAX }.filtered(every_third(900));
            Component::new((1 << 20) / 17 - c, order).over(c..1000)
        };
        Spec::Mix(MixSpec::new((0..count).map(component).collect()))
    };
    let weights =
        |n: u32| Spec::Weighted(Weights::new((0..n).map(|i| u32::MAX - i).collect::<Vec<_>>()).unwrap());
    vec![
        Spec::Sequential,
        Spec::Global,
        Spec::Block { block: u64::MAX, window: u64::MAX },
        weights(1000),
        Spec::Sequential.filtered(every_third(1000)),
        Spec::Global.filtered(every_third(1000)),
        Spec::Block { block: 256, window: 4 }.filtered(every_third(1000)),
        weights(16).filtered(Subset::from_fn(16, |_| true)),
        weights(17).filtered(Subset::from_fn(17, |_| true)),
        large(3),
        large(16),
        large(17),
        tfseek_testkit::order_twin::balanced((0..100).map(|c| Subset::from_fn(1000, |i| i % 100 == c))),
    ]
}

#[test]
fn states_are_small_and_round_trip() {
    for (at, spec) in specs().into_iter().enumerate() {
        let epoch = if matches!(spec, Spec::Mix(_)) { 1 << 40 } else { u64::MAX };
        let order = Order::new(&spec, 1000, u64::MAX, epoch).unwrap();
        let position = order.len();
        let state = State::new(&order, position, FP).unwrap();
        let json = state.to_json();
        let limit = if json.contains("\"kind\":\"mix\"") { 4096 } else { 1024 };
        assert!(json.len() < limit, "{}: {json}", json.len());
        let back = State::from_json(&json).unwrap();
        assert_eq!(back, state);
        assert_eq!((back.epoch, back.position), (epoch, position));
        let again = back.resume(&spec, 1000, FP).unwrap();
        assert_eq!(again.get(position / 2).unwrap(), order.get(position / 2).unwrap());
        // A state of another order is refused.
        for (other_at, other) in specs().iter().enumerate().filter(|(other_at, _)| *other_at != at) {
            let e = back.resume(other, 1000, FP).unwrap_err();
            assert!(!refused(e).is_empty(), "{at} {other_at}");
        }
    }
}

/// The bytes stored in checkpoints. If this test fails, the version must change.
#[test]
fn the_json_of_a_state() {
    let saved = |spec: &Spec, n, seed, epoch, position| {
        State::new(&Order::new(spec, n, seed, epoch).unwrap(), position, FP).unwrap().to_json()
    };
    let block = Spec::Block { block: 256, window: 1024 };
    assert_eq!(
        saved(&block, 1_281_167, 42, 3, 182_340),
        r#"{"epoch":3,"fp":"99aa06d3014798d86001c324468d497f","n":1281167,"order":{"W":1024,"algo":"prp1","b":256,"#
            .to_owned()
            + r#""kind":"block"},"pos":182340,"seed":42,"v":1}"#
    );
    let order = |spec: &Spec| {
        let json = saved(spec, 10, 0, 0, 0);
        json[json.find("\"order\":").unwrap() + 8..json.find(",\"pos\"").unwrap()].to_owned()
    };
    let ids = Subset::from_ids([1, 2, 7]).unwrap();
    let mixture = Spec::Mix(MixSpec::new(vec![
        Component::new(5, Spec::Global).over(0..4),
        Component::new(2, Spec::Block { block: 2, window: 1 }).over(4..10),
        Component::new(1, Spec::Weighted(Weights::new([1, 2, 3]).unwrap()).filtered(ids.clone())),
    ]));
    for (spec, want) in [
        (Spec::Sequential, r#"{"algo":"prp1","kind":"none"}"#),
        (Spec::Global, r#"{"algo":"prp1","kind":"global"}"#),
        (Spec::Global.filtered(ids), r#"{"algo":"prp1","ids":"IDS","kind":"global"}"#),
        (
            Spec::Weighted(Weights::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap()),
            r#"{"algo":"prp1","kind":"weighted","weights":[0,1,2,3,4,5,6,7,8,9]}"#,
        ),
        (
            mixture,
            r#"{"W":[0,1,0],"algo":"prp1","b":[0,2,0],"kind":"mix","parts":"PARTS","stop":"never","unit":"row","weights":[5,2,1]}"#,
        ),
        (
            tfseek_testkit::order_twin::balanced([Subset::from_ids([1, 2, 7]).unwrap()]),
            r#"{"algo":"prp1","kind":"mixture","parts":"CLASS","weights":[1]}"#,
        ),
    ] {
        let hash = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            xxhash_rust::xxh3::xxh3_128(&bytes)
        };
        let (ids, weights) = (hash(&[1, 2, 7]), hash(&[1, 2, 3]));
        let high = |digest: u128| (digest >> 64) as u64;
        #[rustfmt::skip]
        let parts = hash(&[
            1, 0, 4, 0, 0, 0, 0,
            2, 4, 6, 0, 0, 0, 0,
            3, 0, 3, high(ids), ids as u64, high(weights), weights as u64,
        ]);
        let class = hash(&[1, 0, 0, 0, 3, high(ids), ids as u64, 0, 0]);
        let want = want.replace("CLASS", &format!("{class:032x}"));
        let want = want.replace("IDS", &format!("{ids:032x}")).replace("PARTS", &format!("{parts:032x}"));
        assert_eq!(order(&spec), want);
    }
}

#[test]
fn block_sizes_come_from_the_state() {
    let saved = Order::new(&Spec::Block { block: 16, window: 4 }, 1003, 9, 0).unwrap();
    let state = State::new(&saved, 100, FP).unwrap();
    // The batch size differs, and so would the default window.
    let order = state.resume(&Spec::Block { block: 16, window: 8 }, 1003, FP).unwrap();
    assert_eq!(order.spec(), &Spec::Block { block: 16, window: 4 });
    assert_eq!(order.get(100).unwrap(), saved.get(100).unwrap());
    let filter = Subset::from_fn(1003, |i| i != 5);
    let saved =
        Order::new(&Spec::Block { block: 16, window: 4 }.filtered(filter.clone()), 1003, 9, 0).unwrap();
    let state = State::new(&saved, 100, FP).unwrap();
    let order = state.resume(&Spec::Block { block: 1, window: 8 }.filtered(filter), 1003, FP).unwrap();
    assert_eq!(order.get(100).unwrap(), saved.get(100).unwrap());
}

#[test]
fn states_of_other_datasets_and_orders_are_refused() {
    let order = Order::new(&Spec::Global, 1000, 42, 3).unwrap();
    let state = State::new(&order, 640, FP).unwrap();
    let why = |e: tfseek::Error| e.to_string();
    assert_eq!(
        why(state.resume(&Spec::Global, 1001, FP).unwrap_err()),
        "the saved state is of another dataset: expected 1001 records, found 1000"
    );
    let other = "00aa06d3014798d86001c324468d497f";
    assert_eq!(
        why(state.resume(&Spec::Global, 1000, other).unwrap_err()),
        format!(
            "the saved state is of another dataset, with as many records in other shards: expected fingerprint {other}, found {FP}"
        )
    );
    assert_eq!(
        why(state.resume(&Spec::Sequential, 1000, FP).unwrap_err()),
        "the saved state is of another order: expected file order (no shuffling), found a global shuffle"
    );
    let filtered = Spec::Global.filtered(every_third(1000));
    assert_eq!(refused(state.resume(&filtered, 1000, FP).unwrap_err()), "ids");
    assert_eq!(
        why(state.resume(&filtered, 1000, FP).unwrap_err()),
        "the saved state is of another order: expected the records that a filter selects, found all"
    );
    // Mixtures of the same weights, of other parts.
    let mixture = |part: Spec| {
        Spec::Mix(MixSpec::new(vec![
            Component::new(1, part).over(0..600),
            Component::new(1, Spec::Global).over(600..1000),
        ]))
    };
    let mixed = Order::new(&mixture(Spec::Global), 1000, 42, 3).unwrap();
    let e = State::new(&mixed, 7, FP).unwrap().resume(&mixture(Spec::Sequential), 1000, FP).unwrap_err();
    assert_eq!(refused(e), "parts");
    assert!(State::new(&order, 1001, FP).is_err());
    assert_eq!(refused(State::new(&order, 0, "no digest").unwrap_err()), "fp");

    let good = state.to_json();
    for (find, put, field) in [
        ("\"v\":1", "\"v\":2", "v"),
        ("\"v\":1", "\"w\":1", "v"),
        ("\"v\":1", "\"v\":1,\"more\":0", "json"),
        ("prp1", "prp2", "algo"),
        ("global", "globular", "kind"),
        ("\"kind\":\"global\"", "\"kind\":\"block\"", "b"),
        ("\"kind\":\"global\"", "\"kind\":\"block\",\"b\":0,\"W\":1", "b"),
        ("\"kind\":\"global\"", "\"kind\":\"block\",\"b\":1", "W"),
        ("\"kind\":\"global\"", "\"kind\":\"weighted\",\"weights\":[-1]", "weights"),
        ("\"kind\":\"global\"", "\"kind\":\"weighted\",\"weights\":\"x\"", "weights"),
        (
            "\"kind\":\"global\"",
            &format!("\"kind\":\"weighted\",\"weights\":[{}1]", "1,".repeat(1000)),
            "weights",
        ),
        ("\"kind\":\"global\"", "\"kind\":\"mixture\",\"weights\":[1]", "parts"),
        ("\"kind\":\"global\"", "\"kind\":\"global\",\"b\":1", "order"),
        ("\"kind\":\"global\"", "\"kind\":\"global\",\"ids\":1", "order"),
        ("\"seed\":42", "\"seed\":-42", "seed"),
        ("\"seed\":42", "\"seed\":18446744073709551616", "seed"),
        ("\"epoch\":3", "\"epoch\":3.5", "epoch"),
        ("\"pos\":640", "\"pos\":\"640\"", "pos"),
        ("\"n\":1000", "\"n\":null", "n"),
        (FP, "99AA06D3014798D86001C324468D497F", "fp"),
        ("{", "[", "json"),
        ("\"order\"", "\"ordre\"", "order"),
        ("\"algo\"", "\"algorithm\"", "algo"),
        ("\"global\"", "7", "kind"),
    ] {
        assert!(good.contains(find), "{find}");
        let e = State::from_json(&good.replacen(find, put, 1)).unwrap_err();
        assert_eq!(refused(e), field, "{put}");
    }
    for bad in ["", "null", "[]", "{}", "7", &"[".repeat(100_000)] {
        assert!(State::from_json(bad).is_err());
    }
    // A position beyond the end, as in a state written by hand.
    let far = State::from_json(&good.replace("\"pos\":640", "\"pos\":1001")).unwrap();
    assert_eq!(why(far.resume(&Spec::Global, 1000, FP).unwrap_err()), "no position 1001: there are 1000");
}
