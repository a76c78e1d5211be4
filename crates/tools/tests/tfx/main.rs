//! Runs the fuzz target of the reader of `schema.pbtxt` over its corpus, and over generated inputs, on a
//! stable compiler.
//!
//! `TFSEEK_WRITE_SEEDS=1` rewrites the seeds.

mod target;

use target::tfx;
use tfseek_testkit::corpus;
use tfseek_testkit::rng::Rng;

/// Texts of all forms.
const TEXTS: &[&str] = &[
    "feature { name: 'a0' type: INT int_domain { min: -5 max: 0x1F } presence { min_count: 1 min_fraction: 1 } }",
    "feature < name: \"c0\", type: BYTES; string_domain { value: ['x', 'y' \"z\"] } distribution_constraints { min_domain_mass: .5 } >",
    "feature { name: 'b0' type: FLOAT float_domain { min: -1e-3 max: inf disallow_nan: true } unique_constraints { max: 2 } }",
    "string_domain { name: 'd' value: '\\101\\x42\\n\\u00e9' } feature { name: 'c0' type: BYTES domain: 'd' value_count { min: 1 max: 1 } }",
    "feature { name: 'a0' type: INT drift_comparator { infinity_norm { threshold: 0.01 } jensen_shannon_divergence { threshold: 0.1f } } }",
    "sparse_feature { name: 's' index_feature { name: 'a0' } value_feature { name: 'b0' } }\nweighted_feature { name: 'w' feature { step: 'a0' } weight_feature { step: 'b0' } }",
    "feature { name: '##SEQUENCE##' type: STRUCT struct_domain { feature { name: 'f' value_counts { value_count { min: 1 } value_count { max: 3 } } } } }",
    "dataset_constraints { min_examples_count: 1 num_examples_drift_comparator { min_fraction_threshold: 0.5 max_fraction_threshold: 2 } }",
    "default_environment: 'T' default_environment: 'S' feature { name: 'a0' not_in_environment: 'S' annotation { [a.b/c.D] { x: 1 } } }",
    "feature { name: 'c0' type: BYTES image_domain { minimum_supported_image_fraction: 0.9 max_image_byte_size: 99 } }",
    "feature { name: 'c0' type: BYTES bool_domain { true_value: 'y' false_value: 'n' } natural_language_domain {} }",
    "feature { name: 'a0' shape { dim { size: 4 } dim { name: 'x' size: 2 } } lifecycle_stage: PLANNED }",
    "a: [1, 2",
    "feature { name: 'open",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let scripts = (0..20).map(|_| {
        let len = rng.below(120);
        [vec![1], rng.bytes(len)].concat()
    });
    let scripts: Vec<_> = scripts.collect();
    scripts.into_iter().chain(TEXTS.iter().map(|text| [&[0], text.as_bytes()].concat())).collect()
}

#[test]
fn every_seed_passes() {
    corpus::replay("tfx", &corpus::numbered(seeds()), tfx);
    tfx(&[&[0], &include_bytes!("../schema.pbtxt")[..]].concat());
}

#[test]
fn generated_inputs_pass() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let len = rng.below(150);
        tfx(&[vec![1], rng.bytes(len)].concat());
    }
}
