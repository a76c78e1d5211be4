//! Options of a conversion.

/// Options of an Arrow schema. The options of `default()` copy as little as possible.
///
/// Columns are named as in the Arrow schema, so after [`rename`](Options::rename).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The type of byte strings. Default: [`ByteStrings::View`].
    pub bytes: ByteStrings,
    /// The type of `FixedLen` columns of numbers that are no scalars. Default: [`Tensors::Lists`].
    pub tensors: Tensors,
    /// The columns of byte strings that are columns of text. Each of their strings must be UTF-8.
    pub text: Vec<String>,
    /// If true, `Text` features of a data set of TensorFlow Datasets are columns of text. Default: true.
    pub text_features: bool,
    /// The type of class labels of such a data set. Default: [`ClassLabels::Names`].
    pub labels: ClassLabels,
    /// If true, a record with a feature or a list that the schema does not name is refused
    /// ([`BatchParser::deny_unknown`](tfseek::BatchParser::deny_unknown)), unless the columns are projected.
    /// Default: false.
    pub deny_unknown: bool,
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) renamed_lists: Vec<(String, String)>,
}

/// The Arrow type of byte strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteStrings {
    /// `BinaryView`, or `Utf8View` for text. Strings of up to 12 bytes lie in the array itself. See the
    /// [crate](crate) for the others.
    #[default]
    View,
    /// `View` outside of lists, and `Copy` in lists. PyArrow, and with it pandas, does not convert lists of
    /// views.
    Auto,
    /// `Binary`, or `Utf8` for text: one buffer per column. Prefer it where batches are serialized.
    Copy,
}

/// The Arrow type of `FixedLen` columns of numbers that are no scalars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tensors {
    /// A `FixedSizeList` per dimension.
    #[default]
    Lists,
    /// The extension type `arrow.fixed_shape_tensor`: one `FixedSizeList` with the shape in the metadata of
    /// its field.
    Extension,
}

/// The Arrow type of class labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassLabels {
    /// A `Dictionary` of the names, whose keys are the numbers. -1, which is no label, is null. Labels
    /// without names, and labels of which two have one name, are numbers.
    #[default]
    Names,
    /// `Int64`. The names are in the metadata of the field.
    Numbers,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bytes: ByteStrings::default(),
            tensors: Tensors::default(),
            text: Vec::new(),
            text_features: true,
            labels: ClassLabels::default(),
            deny_unknown: false,
            renamed: Vec::new(),
            renamed_lists: Vec::new(),
        }
    }
}

impl Options {
    /// Returns the default options.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the type of byte strings. Default: [`ByteStrings::View`].
    #[must_use]
    pub fn bytes(self, bytes: ByteStrings) -> Options {
        Options { bytes, ..self }
    }

    /// Sets the type of `FixedLen` columns of numbers that are no scalars. Default: [`Tensors::Lists`].
    #[must_use]
    pub fn tensors(self, tensors: Tensors) -> Options {
        Options { tensors, ..self }
    }

    /// Makes a column of byte strings a column of text. Each of its strings must be UTF-8.
    #[must_use]
    pub fn text(mut self, column: impl Into<String>) -> Options {
        self.text.push(column.into());
        self
    }

    /// Gives the column of a feature of an Example or of a context another name.
    #[must_use]
    pub fn rename(mut self, feature: impl Into<String>, column: impl Into<String>) -> Options {
        self.renamed.push((feature.into(), column.into()));
        self
    }

    /// Gives the column of a feature list another name.
    #[must_use]
    pub fn rename_list(mut self, list: impl Into<String>, column: impl Into<String>) -> Options {
        self.renamed_lists.push((list.into(), column.into()));
        self
    }
}
