//! Anomalies by the names of TensorFlow Data Validation (TFDV).

macro_rules! anomalies {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of an anomaly. Kinds are ordered by their names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum AnomalyKind {
            $($(#[$doc])* $kind,)*
        }

        impl AnomalyKind {
            /// Returns TFDV's name, such as `INT_TYPE_BIG_INT`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(AnomalyKind::$kind => $name,)*
                }
            }

            /// Returns true for anomalies of records that fit the features of the schema: there are more
            /// features, or values are distributed otherwise than before.
            pub const fn is_warning(self) -> bool {
                matches!(
                    self,
                    AnomalyKind::SchemaNewColumn
                        | AnomalyKind::ComparatorControlDataMissing
                        | AnomalyKind::ComparatorHighNumExamples
                        | AnomalyKind::ComparatorLowNumExamples
                        | AnomalyKind::ComparatorJensenShannonDivergenceHigh
                        | AnomalyKind::ComparatorLInftyHigh
                        | AnomalyKind::FeatureTypeHighUnique
                        | AnomalyKind::FeatureTypeLowUnique
                )
            }

            #[cfg(test)]
            const ALL: &[AnomalyKind] = &[$(AnomalyKind::$kind),*];
        }
    };
}

anomalies! {
    /// An integer above 1.
    BoolTypeBigInt = "BOOL_TYPE_BIG_INT",
    /// An integer below 0, of a feature with 0 and 1.
    BoolTypeSmallInt = "BOOL_TYPE_SMALL_INT",
    /// A float that is neither 0 nor 1.
    BoolTypeUnexpectedFloat = "BOOL_TYPE_UNEXPECTED_FLOAT",
    /// A string that is neither of the two of the domain.
    BoolTypeUnexpectedString = "BOOL_TYPE_UNEXPECTED_STRING",
    /// The baseline does not have the feature.
    ComparatorControlDataMissing = "COMPARATOR_CONTROL_DATA_MISSING",
    /// Too many records, compared with the baseline.
    ComparatorHighNumExamples = "COMPARATOR_HIGH_NUM_EXAMPLES",
    /// The divergence of the distributions is too large.
    ComparatorJensenShannonDivergenceHigh = "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH",
    /// Too few records, compared with the baseline.
    ComparatorLowNumExamples = "COMPARATOR_LOW_NUM_EXAMPLES",
    /// The share of a value differs too much.
    ComparatorLInftyHigh = "COMPARATOR_L_INFTY_HIGH",
    /// Too many records.
    DatasetHighNumExamples = "DATASET_HIGH_NUM_EXAMPLES",
    /// Too few records.
    DatasetLowNumExamples = "DATASET_LOW_NUM_EXAMPLES",
    /// The domain of the schema does not fit the type.
    DomainInvalidForType = "DOMAIN_INVALID_FOR_TYPE",
    /// A byte string that is not UTF-8.
    EnumTypeInvalidUtf8 = "ENUM_TYPE_INVALID_UTF8",
    /// Strings outside the domain.
    EnumTypeUnexpectedStringValues = "ENUM_TYPE_UNEXPECTED_STRING_VALUES",
    /// The schema has a feature without a name.
    FeatureMissingName = "FEATURE_MISSING_NAME",
    /// Too many values.
    FeatureTypeHighNumberValues = "FEATURE_TYPE_HIGH_NUMBER_VALUES",
    /// Too many distinct values.
    FeatureTypeHighUnique = "FEATURE_TYPE_HIGH_UNIQUE",
    /// Too small a fraction of the records has the feature.
    FeatureTypeLowFractionPresent = "FEATURE_TYPE_LOW_FRACTION_PRESENT",
    /// Too few records have the feature.
    FeatureTypeLowNumberPresent = "FEATURE_TYPE_LOW_NUMBER_PRESENT",
    /// Too few values.
    FeatureTypeLowNumberValues = "FEATURE_TYPE_LOW_NUMBER_VALUES",
    /// Too few distinct values.
    FeatureTypeLowUnique = "FEATURE_TYPE_LOW_UNIQUE",
    /// No record has the feature with a kind.
    FeatureTypeNotPresent = "FEATURE_TYPE_NOT_PRESENT",
    /// A float above the maximum.
    FloatTypeBigFloat = "FLOAT_TYPE_BIG_FLOAT",
    /// An infinity.
    FloatTypeHasInf = "FLOAT_TYPE_HAS_INF",
    /// A NaN.
    FloatTypeHasNan = "FLOAT_TYPE_HAS_NAN",
    /// A float below the minimum.
    FloatTypeSmallFloat = "FLOAT_TYPE_SMALL_FLOAT",
    /// A string that is no float.
    FloatTypeStringNotFloat = "FLOAT_TYPE_STRING_NOT_FLOAT",
    /// An integer above the maximum.
    IntTypeBigInt = "INT_TYPE_BIG_INT",
    /// A string that is no integer.
    IntTypeNotIntString = "INT_TYPE_NOT_INT_STRING",
    /// An integer below the minimum.
    IntTypeSmallInt = "INT_TYPE_SMALL_INT",
    /// A domain of the schema is invalid.
    InvalidDomainSpecification = "INVALID_DOMAIN_SPECIFICATION",
    /// Another number of values than the shape has.
    InvalidFeatureShape = "INVALID_FEATURE_SHAPE",
    /// A constraint of the schema is invalid.
    InvalidSchemaSpecification = "INVALID_SCHEMA_SPECIFICATION",
    /// Too few images in formats that TensorFlow decodes.
    LowSupportedImageFraction = "LOW_SUPPORTED_IMAGE_FRACTION",
    /// An image of too many bytes.
    MaxImageByteSizeExceeded = "MAX_IMAGE_BYTE_SIZE_EXCEEDED",
    /// No record has the feature.
    SchemaMissingColumn = "SCHEMA_MISSING_COLUMN",
    /// The schema has no such feature.
    SchemaNewColumn = "SCHEMA_NEW_COLUMN",
    /// Indices and values of a sparse feature differ in number.
    SparseFeatureLengthMismatch = "SPARSE_FEATURE_LENGTH_MISMATCH",
    /// A sparse feature has no indices.
    SparseFeatureMissingIndex = "SPARSE_FEATURE_MISSING_INDEX",
    /// A sparse feature has no values.
    SparseFeatureMissingValue = "SPARSE_FEATURE_MISSING_VALUE",
    /// A sparse feature of the schema has the name of a feature.
    SparseFeatureNameCollision = "SPARSE_FEATURE_NAME_COLLISION",
    /// Values of another kind.
    UnexpectedDataType = "UNEXPECTED_DATA_TYPE",
    /// Weights and values of a weighted feature differ in number.
    WeightedFeatureLengthMismatch = "WEIGHTED_FEATURE_LENGTH_MISMATCH",
    /// A weighted feature has no values.
    WeightedFeatureMissingValue = "WEIGHTED_FEATURE_MISSING_VALUE",
    /// A weighted feature has no weights.
    WeightedFeatureMissingWeight = "WEIGHTED_FEATURE_MISSING_WEIGHT",
    /// A weighted feature of the schema has the name of a feature.
    WeightedFeatureNameCollision = "WEIGHTED_FEATURE_NAME_COLLISION",
}

/// A fault of a schema itself, and its description.
pub(crate) type SchemaFault = (AnomalyKind, &'static str);

#[cfg(test)]
mod tests {
    use super::AnomalyKind;

    /// Reports are ordered by kind, and readers expect the order of the names.
    #[test]
    fn kinds_are_in_the_order_of_their_names() {
        assert!(AnomalyKind::ALL.is_sorted_by(|a, b| a < b && a.name() < b.name()));
    }
}
