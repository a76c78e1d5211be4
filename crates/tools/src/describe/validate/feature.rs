//! The checks of one feature.

use super::divergence::NumberShares;
use super::tally::{DistinctValues, Shares, Tallies, Tally, quoted};
use crate::describe::tfx::{AnomalyKind, FeatureRule, ValueDomain};
use crate::digits::counted;
use tfseek::example::DType;
use tfseek::filter::image_format;
use tfseek::{Feature, FeatureList};

/// The state of the checks of one feature over some records.
#[derive(Clone, Debug, Default)]
pub(super) struct FeatureChecks {
    /// Records that have the key.
    pub(super) seen: u64,
    /// Records that have the feature with a kind.
    pub(super) present: u64,
    /// Records without the feature.
    absent: Tally,
    /// Number of records that are counted. Those after them do not have the key.
    counted: u64,
    /// Values that were compared with the domain.
    pub(super) compared: u64,
    pub(super) tallies: Tallies,
    pub(super) distinct: DistinctValues,
    pub(super) shares: Shares,
    pub(super) numbers: NumberShares,
}

impl FeatureChecks {
    /// Counts the records before `record` that are not counted, which do not have the key.
    pub(super) fn count_absent(&mut self, record: u64) {
        self.absent.record_all(self.counted..record);
        self.counted = self.counted.max(record);
    }

    /// Returns the tally of the records without the feature, of `records` records in all.
    pub(super) fn absent(&self, records: u64) -> Tally {
        let mut absent = self.absent.clone();
        absent.record_all(self.counted..records);
        absent
    }

    /// Returns true if this record was counted.
    pub(super) fn has_counted(&self, record: u64) -> bool {
        self.counted > record
    }

    fn begin(&mut self, record: u64) {
        self.count_absent(record);
        self.counted = record + 1;
        self.seen += 1;
    }

    /// Adds the feature of a record.
    pub(super) fn add(&mut self, record: u64, feature: Feature<'_>, rule: &FeatureRule) {
        self.begin(record);
        let Some(kind) = feature.kind() else { return self.absent.record(record) };
        self.present += 1;
        let len = feature.len() as u64;
        self.count(record, len, rule.counts);
        if rule.fixed.is_some_and(|n| n != len) {
            self.tally(AnomalyKind::InvalidFeatureShape).add(record, || counted(len, "value"));
        }
        self.values(record, feature, kind, rule);
    }

    /// Adds the feature list of a record.
    pub(super) fn add_list(&mut self, record: u64, list: FeatureList<'_>, rule: &FeatureRule) {
        self.begin(record);
        self.present += 1;
        self.count(record, list.len() as u64, rule.counts);
        for step in list.iter() {
            // TensorFlow takes a step without a kind as empty, and its number of values is not checked.
            let Some(kind) = step.kind() else { continue };
            self.count(record, step.len() as u64, rule.step_counts);
            self.values(record, step, kind, rule);
        }
    }

    fn tally(&mut self, anomaly: AnomalyKind) -> &mut Tally {
        self.tallies.entry(anomaly).or_default()
    }

    fn count(&mut self, record: u64, len: u64, range: Option<(u64, Option<u64>)>) {
        let Some((min, max)) = range else { return };
        if len < min {
            self.tally(AnomalyKind::FeatureTypeLowNumberValues).add(record, || counted(len, "value"));
        }
        if max.is_some_and(|max| len > max) {
            self.tally(AnomalyKind::FeatureTypeHighNumberValues).add(record, || counted(len, "value"));
        }
    }

    fn values(&mut self, record: u64, feature: Feature<'_>, kind: DType, rule: &FeatureRule) {
        if rule.kind.is_some_and(|want| want != kind) {
            self.tally(AnomalyKind::UnexpectedDataType).add(record, || kind.list_name().to_owned());
            return;
        }
        let count_values =
            rule.unique.is_some() || rule.infinity_norm.is_some() || rule.jensen_shannon.is_some();
        if rule.domain == ValueDomain::Any && !count_values {
            return;
        }
        self.compared += feature.len() as u64;
        match feature {
            Feature::Int64(list) => {
                for value in list {
                    self.int(record, value, &rule.domain);
                    self.shown(&value.to_le_bytes(), rule);
                    if rule.jensen_shannon.is_some() {
                        self.numbers.add_int(value);
                    }
                }
            }
            Feature::Float(list) => {
                for value in list {
                    self.float(record, value, &rule.domain);
                    self.shown(&value.to_le_bytes(), rule);
                    if rule.jensen_shannon.is_some() {
                        self.numbers.add_float(value);
                    }
                }
            }
            Feature::Bytes(list) => {
                for value in list {
                    self.string(record, value, &rule.domain);
                    self.shown(value, rule);
                }
            }
            _ => {}
        }
    }

    /// Counts a value, if the rule needs the numbers of values.
    fn shown(&mut self, value: &[u8], rule: &FeatureRule) {
        if rule.unique.is_some() {
            self.distinct.add(value);
        }
        // The divergence of numbers is their histograms' divergence.
        let of_strings = rule.jensen_shannon.is_some() && rule.kind == Some(DType::Bytes);
        if rule.infinity_norm.is_some() || of_strings {
            self.shares.add(value);
        }
    }

    fn int(&mut self, record: u64, value: i64, domain: &ValueDomain) {
        let anomaly = match *domain {
            ValueDomain::Ints(min, _) if value < min => AnomalyKind::IntTypeSmallInt,
            ValueDomain::Ints(_, max) if value > max => AnomalyKind::IntTypeBigInt,
            ValueDomain::Bools(..) if value < 0 => AnomalyKind::BoolTypeSmallInt,
            ValueDomain::Bools(..) if value > 1 => AnomalyKind::BoolTypeBigInt,
            _ => return,
        };
        self.tally(anomaly).add(record, || value.to_string());
    }

    fn float(&mut self, record: u64, value: f32, domain: &ValueDomain) {
        let anomaly = match *domain {
            ValueDomain::Floats { no_nan: true, .. } if value.is_nan() => AnomalyKind::FloatTypeHasNan,
            ValueDomain::Floats { no_inf: true, .. } if value.is_infinite() => AnomalyKind::FloatTypeHasInf,
            ValueDomain::Floats { min, .. } if value < min => AnomalyKind::FloatTypeSmallFloat,
            ValueDomain::Floats { max, .. } if value > max => AnomalyKind::FloatTypeBigFloat,
            ValueDomain::Bools(..) if value != 0.0 && value != 1.0 => AnomalyKind::BoolTypeUnexpectedFloat,
            _ => return,
        };
        self.tally(anomaly).add(record, || value.to_string());
    }

    fn string(&mut self, record: u64, value: &[u8], domain: &ValueDomain) {
        let text = || std::str::from_utf8(value).ok();
        let anomaly = match domain {
            ValueDomain::Any => return,
            ValueDomain::Strings(values) if values.contains(value) => return,
            ValueDomain::Strings(_) if text().is_none() => AnomalyKind::EnumTypeInvalidUtf8,
            ValueDomain::Strings(_) => AnomalyKind::EnumTypeUnexpectedStringValues,
            ValueDomain::Bools(yes, no) if value == yes || value == no => return,
            ValueDomain::Bools(..) => AnomalyKind::BoolTypeUnexpectedString,
            ValueDomain::Ints(..) => match text().and_then(|text| text.parse().ok()) {
                Some(value) => return self.int(record, value, domain),
                None => AnomalyKind::IntTypeNotIntString,
            },
            ValueDomain::Floats { .. } => match text().and_then(|text| text.parse().ok()) {
                Some(value) => return self.float(record, value, domain),
                None => AnomalyKind::FloatTypeStringNotFloat,
            },
            ValueDomain::Images(_, most) => {
                if most.is_some_and(|most| value.len() as u64 > most) {
                    let size = || counted(value.len() as u64, "byte");
                    self.tally(AnomalyKind::MaxImageByteSizeExceeded).add(record, size);
                }
                if is_supported_image(value) {
                    return;
                }
                AnomalyKind::LowSupportedImageFraction
            }
        };
        self.tally(anomaly).add(record, || quoted(value));
    }

    /// Adds the checks of later records, whose numbers are `before` higher.
    pub(super) fn append(&mut self, mut later: FeatureChecks, before: u64, records: u64) {
        self.count_absent(before);
        later.count_absent(records);
        self.counted = before + records;
        self.seen += later.seen;
        self.present += later.present;
        self.compared += later.compared;
        self.absent.append(later.absent, before);
        for (anomaly, tally) in later.tallies {
            self.tally(anomaly).append(tally, before);
        }
        self.distinct.append(later.distinct);
        self.shares.append(later.shares);
        self.numbers.append(later.numbers);
    }
}

/// Returns true for the formats that TensorFlow decodes: JPEG, PNG, GIF and BMP.
fn is_supported_image(bytes: &[u8]) -> bool {
    matches!(image_format(bytes), Some("jpeg" | "png" | "gif" | "bmp"))
}
