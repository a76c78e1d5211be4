//! Records, their record batches, and the records of these batches have equal features.

use arrow_schema::Schema as ArrowSchema;
use std::collections::BTreeMap;
use tfseek::example::{Example, ExampleBuf, Feature, FeatureBuf, SequenceExample, SequenceExampleBuf};
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek_arrow::{ByteStrings, Converter, Encoder, EncoderOptions, Options, Tensors};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shaped::{self, DTYPES, Style};

/// Returns a spec whose column has all values of its feature.
fn spec(rng: &mut Rng, sequence: bool, is_list: bool) -> FeatureSpec {
    let dtype = rng.pick(&DTYPES);
    let shape: Vec<usize> = (0..rng.below(3)).map(|_| 1 + rng.below(3)).collect();
    match rng.below(5) {
        0 if !is_list => FeatureSpec::FixedLen { shape, dtype, default: None },
        1 if !is_list => FeatureSpec::optional(dtype),
        2 if is_list || !sequence => {
            FeatureSpec::FixedLenSequence { shape, dtype, allow_missing: true, default: None }
        }
        3 if !is_list => FeatureSpec::Ragged {
            dtype,
            value_key: None,
            partitions: shape.into_iter().map(Partition::UniformRowLength).collect(),
            row_splits_dtype: rng.pick(&[SplitsDType::Int32, SplitsDType::Int64]),
            validate: true,
        },
        _ => FeatureSpec::var_len(dtype),
    }
}

fn schema(rng: &mut Rng, sequence: bool) -> Schema {
    let mut builder = if sequence { Schema::sequence_example() } else { Schema::example() };
    for k in 0..1 + rng.below(5) {
        builder = builder.feature(format!("{}{k}", rng.pick(&["", "a", "ab"])), spec(rng, sequence, false));
    }
    for k in 0..if sequence { 1 + rng.below(3) } else { 0 } {
        builder = builder.feature_list(format!("{}{k}", rng.pick(&["", "a", "ab"])), spec(rng, true, true));
    }
    builder.build().unwrap()
}

fn dtype(spec: &FeatureSpec) -> DType {
    match spec {
        FeatureSpec::FixedLen { dtype, .. }
        | FeatureSpec::Optional { dtype, .. }
        | FeatureSpec::FixedLenSequence { dtype, .. }
        | FeatureSpec::VarLen { dtype }
        | FeatureSpec::Ragged { dtype, .. } => *dtype,
        other => panic!("{other:?}"),
    }
}

fn empty(spec: &FeatureSpec) -> FeatureBuf {
    match dtype(spec) {
        DType::Int64 => FeatureBuf::Int64(vec![]),
        DType::Float32 => FeatureBuf::Float(vec![]),
        DType::Bytes => FeatureBuf::Bytes(vec![]),
    }
}

fn copy(feature: Feature<'_>) -> FeatureBuf {
    FeatureBuf::try_from(feature).unwrap()
}

fn is_empty(feature: &FeatureBuf) -> bool {
    match feature {
        FeatureBuf::None => true,
        FeatureBuf::Int64(v) => v.is_empty(),
        FeatureBuf::Float(v) => v.is_empty(),
        FeatureBuf::Bytes(v) => v.is_empty(),
    }
}

/// Returns the features of the schema as a record batch has them: an absent list is empty, unless its column
/// is nullable.
fn features(
    found: Example<'_>,
    specs: &BTreeMap<String, FeatureSpec>,
    arrow: &ArrowSchema,
) -> BTreeMap<String, FeatureBuf> {
    let mut all = BTreeMap::new();
    for (name, spec) in specs {
        let nullable = arrow.field_with_name(name).unwrap().is_nullable();
        match found.get(name).unwrap().map(copy).unwrap_or_default() {
            // A scalar has no empty form.
            feature if matches!(spec, FeatureSpec::Optional { .. }) && is_empty(&feature) => {}
            FeatureBuf::None if nullable => {}
            FeatureBuf::None => drop(all.insert(name.clone(), empty(spec))),
            feature => drop(all.insert(name.clone(), feature)),
        }
    }
    all
}

/// Returns the feature lists of the schema. A step without a kind is an empty step.
fn feature_lists(
    found: SequenceExample<'_>,
    schema: &Schema,
    arrow: &ArrowSchema,
) -> BTreeMap<String, Vec<FeatureBuf>> {
    let mut all = BTreeMap::new();
    for (name, spec) in schema.feature_lists() {
        let nullable = arrow.field_with_name(&list_column(name)).unwrap().is_nullable();
        let step = |step: FeatureBuf| if is_empty(&step) { empty(spec) } else { step };
        match found.feature_list(name).unwrap() {
            None if nullable => {}
            list => {
                let steps =
                    list.into_iter().flat_map(|list| list.iter().map(copy).map(step).collect::<Vec<_>>());
                all.insert(name.clone(), steps.collect());
            }
        }
    }
    all
}

fn list_column(name: &str) -> String {
    format!("list {name}")
}

fn inverse(sequence: bool) {
    let (mut good, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let schema = schema(&mut rng, sequence);
        let style = Style { odd: rng.pick(&[0, 20]), own_order: rng.chance(100), ..Style::default() };
        let payloads: Vec<Vec<u8>> =
            (0..rng.pick(&[0, 1, 7, 65])).map(|_| shaped::payload(&mut rng, &schema, style)).collect();
        let mut options = Options::new()
            .bytes(rng.pick(&[ByteStrings::View, ByteStrings::Copy]))
            .tensors(rng.pick(&[Tensors::Lists, Tensors::Extension]));
        let mut encoder_options = EncoderOptions::new();
        for name in schema.feature_lists().keys() {
            options = options.rename_list(name, list_column(name));
            encoder_options = encoder_options.feature_list(list_column(name)).rename(list_column(name), name);
        }
        let converter = Converter::new(&schema, &options).unwrap();
        let Ok(batch) = converter.parser().parse(&payloads) else {
            refused += 1;
            continue;
        };
        let batch = converter.record_batch(&batch).unwrap();
        let arrow = batch.schema();
        let mut encoder = Encoder::new(&arrow, &encoder_options).unwrap();
        let mut row = 0;
        encoder
            .encode(&batch, |payload| {
                let original = &payloads[row];
                let want = if sequence {
                    let found = SequenceExample::new(original);
                    let want = SequenceExampleBuf {
                        context: features(found.context(), schema.features(), &arrow),
                        feature_lists: feature_lists(found, &schema, &arrow),
                        ..SequenceExampleBuf::default()
                    };
                    want.encode()?
                } else {
                    let features = features(Example::new(original), schema.features(), &arrow);
                    ExampleBuf { features, has_features: true }.encode()?
                };
                assert_eq!(payload, want, "seed {seed}, row {row}: {schema:?}");
                row += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(row, payloads.len());
        good += 1;
    }
    println!("{good} batches, {refused} refused");
    assert!(good > 300, "{good} {refused}");
}

#[test]
fn examples() {
    inverse(false);
}

#[test]
fn sequence_examples() {
    inverse(true);
}
