//! The rules that a schema of tfseek implies.

use super::{FeatureRule, GroupRule, TfxSchema, ValueDomain};
use tfseek::example::DType;
use tfseek::{FeatureSpec, Schema};

impl From<&Schema> for TfxSchema {
    fn from(schema: &Schema) -> TfxSchema {
        let mut rules = TfxSchema::default();
        for (name, spec) in schema.features() {
            add(name, spec, false, &mut rules);
        }
        for (name, spec) in schema.feature_lists() {
            add(name, spec, true, &mut rules);
        }
        rules
    }
}

fn add(name: &str, spec: &FeatureSpec, list: bool, schema: &mut TfxSchema) {
    let mut rule = FeatureRule { min_domain_mass: 1.0, ..FeatureRule::default() };
    let mut key = name;
    let require = |rule: &mut FeatureRule| (rule.min_fraction, rule.min_count) = (1.0, 1);
    let product = |shape: &[usize]| shape.iter().try_fold(1u64, |all, &n| all.checked_mul(n as u64));
    let mut unchecked = |what: &str| schema.unchecked.insert((what.to_owned(), Some(name.to_owned())));
    let several = matches!(spec, FeatureSpec::Several(_));
    match spec.of_string() {
        FeatureSpec::FixedLen { shape, dtype, default } => {
            rule.kind = Some(*dtype);
            match (default, product(shape)) {
                (None, Some(n)) => {
                    require(&mut rule);
                    rule.fixed = Some(n);
                }
                (_, n) => rule.counts = n.map(|n| (n, Some(n))),
            }
        }
        FeatureSpec::Optional { dtype, .. } => {
            rule.kind = Some(*dtype);
            rule.counts = Some((0, Some(1)));
        }
        FeatureSpec::VarLen { dtype } => rule.kind = Some(*dtype),
        // A schema has no several of several.
        FeatureSpec::Several(_) => {}
        FeatureSpec::Stack { keys, dtype, default } => {
            let one = FeatureSpec::FixedLen { shape: Vec::new(), dtype: *dtype, default: default.clone() };
            return keys.iter().for_each(|key| add(key, &one, list, schema));
        }
        FeatureSpec::Label { vocabulary, unknown } => {
            rule.kind = Some(spec.dtype());
            if list {
                rule.step_counts = Some((1, Some(1)));
            } else if !several {
                require(&mut rule);
                rule.fixed = Some(1);
            }
            if unknown.is_none() {
                rule.domain = ValueDomain::Strings(vocabulary.iter().map(|word| word.to_vec()).collect());
            }
        }
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Image(_) if list || several => {
            rule.kind = Some(spec.dtype());
            rule.step_counts = list.then_some((1, Some(1)));
            unchecked("arrays and pictures in byte strings");
        }
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Image(_) => {
            rule.kind = Some(spec.dtype());
            if matches!(spec, FeatureSpec::Image(image) if image.missing.is_some()) {
                rule.counts = Some((0, Some(1)));
            } else {
                require(&mut rule);
                rule.fixed = Some(1);
            }
            unchecked("arrays and pictures in byte strings");
        }
        FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, .. } => {
            rule.kind = Some(*dtype);
            if list {
                if !allow_missing {
                    require(&mut rule);
                }
                rule.step_counts = product(shape).map(|n| (n, Some(n)));
            } else if product(shape) != Some(1) {
                unchecked("blocks of several values");
            }
        }
        FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
            rule.kind = Some(*dtype);
            key = value_key.as_deref().unwrap_or(name);
            if !partitions.is_empty() {
                unchecked("partitions");
            }
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, .. } => {
            rule.kind = Some(*dtype);
            key = value_key;
            add_sparse(name, index_keys, value_key, schema);
        }
    }
    // Of two columns from one feature, the first one's rule is kept: their kinds are equal.
    let rules = if list { &mut schema.lists } else { &mut schema.features };
    rules.entry(key.to_owned()).or_insert(rule);
}

/// Adds the group of a sparse column, and the rules of its indices.
fn add_sparse(name: &str, index_keys: &[String], value_key: &str, schema: &mut TfxSchema) {
    let kind = Some(DType::Int64);
    for index in index_keys {
        let rule = FeatureRule { kind, min_domain_mass: 1.0, ..FeatureRule::default() };
        schema.features.entry(index.clone()).or_insert(rule);
    }
    schema.groups.push(GroupRule {
        name: name.to_owned(),
        values: value_key.to_owned(),
        others: index_keys.to_vec(),
        weighted: false,
    });
}
