//! Options of an encoder.

/// Options of an [`Encoder`](crate::Encoder). Columns are named as in the Arrow schema.
#[derive(Clone, Debug, Default)]
pub struct EncoderOptions {
    pub(super) feature_lists: Vec<String>,
    pub(super) renamed: Vec<(String, String)>,
    /// Store the nearest Float32 of each Float64. A number that would become infinite stays an error.
    /// Default: false, so a Float64 that would change is an error.
    pub round_float64: bool,
}

impl EncoderOptions {
    /// Returns the default options: each column is a feature of an Example, with the name of the column.
    pub fn new() -> EncoderOptions {
        EncoderOptions::default()
    }

    /// Makes a column of lists a feature list, with one step per item. The records are then SequenceExamples,
    /// and the other columns are features of the context.
    #[must_use]
    pub fn feature_list(mut self, column: impl Into<String>) -> EncoderOptions {
        self.feature_lists.push(column.into());
        self
    }

    /// Gives the feature or the feature list of a column another name.
    #[must_use]
    pub fn rename(mut self, column: impl Into<String>, feature: impl Into<String>) -> EncoderOptions {
        self.renamed.push((column.into(), feature.into()));
        self
    }
}
