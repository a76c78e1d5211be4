//! The features of a data set: a tree of dicts and sequences, with typed leaves.

use std::fmt;
use std::sync::Arc;
use tfseek::TensorDType;

/// A feature of a data set, as `features.json` describes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FeatureTree {
    /// Features by name: `FeaturesDict`, and `Translation`, whose names are languages.
    Dict(Vec<(Box<str>, FeatureTree)>),
    /// Any number of items: `Sequence`, `Dataset`, and `TranslationVariableLanguages`, whose items are dicts.
    Sequence(Box<SequenceFeature>),
    /// Values.
    Leaf(Box<LeafFeature>),
}

/// A sequence of items of one feature.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SequenceFeature {
    /// The feature of an item.
    pub feature: FeatureTree,
    /// Number of items. `None`: any number.
    pub length: Option<u64>,
    /// True for a `Dataset`, whose items are the steps of an episode.
    pub steps: bool,
}

/// A feature with values of its own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeafFeature {
    /// The class of the feature.
    pub class: LeafClass,
    /// Type of the values that a record has after decoding.
    pub dtype: TensorDType,
    /// Shape of the values. `None`: any size.
    pub shape: Vec<Option<usize>>,
    /// How numbers are stored.
    pub encoding: Encoding,
    /// True if a record may lack the feature.
    pub optional: bool,
    /// The text of the data set on the feature, such as the meaning of each value. May be empty.
    pub description: Box<str>,
}

/// The class of a [`LeafFeature`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LeafClass {
    /// `Tensor`.
    Tensor,
    /// `Scalar`.
    Scalar,
    /// `ClassLabel`: the number of a name.
    Label(Labels),
    /// `Text`: a byte string, which is usually UTF-8.
    Text,
    /// `Image` and `LabeledImage`: a file with a picture. A labelled one has a class for each pixel value.
    Image(Option<Labels>),
    /// `Video`: a file with a picture for each frame.
    Video,
    /// `Audio`.
    Audio {
        /// Samples per second. 0 if it is not stated.
        sample_rate: u64,
        /// True if a record has the bytes of a file instead of samples.
        lazy: bool,
    },
    /// `BBoxFeature`: four floats. The text is the sequence of the sides, such as `REL_YXYX`, and may be
    /// empty.
    Box(Box<str>),
    /// A class that is not known. A record has its stored values. TFDS refuses the whole set, whose other
    /// features are often all that is wanted.
    Unknown(Box<str>),
}

/// The classes of a label.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Labels {
    /// Number of classes. `None` if it is not stated.
    pub classes: Option<u64>,
    /// Names of the classes. `None` if the folder has no file with them.
    pub names: Option<Arc<[Box<str>]>>,
}

/// How the numbers of a tensor are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// As a list of numbers.
    #[default]
    None,
    /// As a byte string with little-endian numbers.
    Bytes,
    /// As such a byte string, compressed with zlib.
    Zlib,
}

/// The features of a data set.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Features {
    /// The feature of a record, usually a [`FeatureTree::Dict`].
    pub root: FeatureTree,
}

impl Labels {
    /// Returns the class of a name, for labels without a file of names: there the name is the number.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        let number: usize = name.parse().ok()?;
        let is_class = self.classes.is_some_and(|n| (number as u64) < n);
        if is_class && number.to_string() == name { i64::try_from(number).ok() } else { None }
    }
}

impl FeatureTree {
    /// Returns the feature at a path, such as `objects/bbox`. Sequences add nothing to a path.
    pub fn get(&self, path: &str) -> Option<&FeatureTree> {
        match self {
            // A name may contain `/`.
            FeatureTree::Dict(features) => features.iter().find_map(|(name, feature)| {
                let rest = path.strip_prefix(&**name)?;
                if rest.is_empty() { Some(feature) } else { feature.get(rest.strip_prefix('/')?) }
            }),
            FeatureTree::Sequence(sequence) => sequence.feature.get(path),
            FeatureTree::Leaf(_) => None,
        }
    }
}

impl LeafClass {
    /// Returns the name of the class in Python, without its module if it is known.
    pub fn name(&self) -> &str {
        match self {
            LeafClass::Tensor => "Tensor",
            LeafClass::Scalar => "Scalar",
            LeafClass::Label(_) => "ClassLabel",
            LeafClass::Text => "Text",
            LeafClass::Image(None) => "Image",
            LeafClass::Image(Some(_)) => "LabeledImage",
            LeafClass::Video => "Video",
            LeafClass::Audio { .. } => "Audio",
            LeafClass::Box(_) => "BBoxFeature",
            LeafClass::Unknown(class) => class,
        }
    }
}

impl LeafFeature {
    /// Returns a feature whose numbers are stored as a list.
    pub(crate) fn new(class: LeafClass, dtype: TensorDType, shape: Vec<Option<usize>>) -> LeafFeature {
        let encoding = Encoding::None;
        let description = Box::default();
        LeafFeature { class, dtype, shape, encoding, optional: false, description }
    }

    /// Returns the labels of a class label.
    pub fn labels(&self) -> Option<&Labels> {
        match &self.class {
            LeafClass::Label(labels) => Some(labels),
            _ => None,
        }
    }
}

/// The names under which records store the values of a leaf.
#[derive(Clone, Copy)]
pub(crate) struct StoredNames<'a> {
    path: &'a str,
    /// True if the values are in sequences of sequences.
    is_nested: bool,
}

impl<'a> StoredNames<'a> {
    /// Returns the names of a value, or of a part of it, in this number of sequences.
    pub(crate) fn new(path: &'a str, sequences: usize) -> StoredNames<'a> {
        StoredNames { path, is_nested: sequences > 1 }
    }

    /// Returns the name of the shapes of a leaf whose arrays have several open dimensions.
    pub(crate) fn shape_of(path: &str) -> String {
        joined(path, "shape")
    }

    /// Returns the name of the bytes of such a leaf.
    pub(crate) fn value_of(path: &str) -> String {
        joined(path, "value")
    }

    /// Returns the name of a column for the geometry of a picture. No record has such a feature.
    pub(crate) fn geometry_of(path: &str) -> String {
        joined(path, "geometry")
    }

    /// Returns the name of the values.
    pub(crate) fn values(self) -> String {
        if self.is_nested { format!("{}/ragged_flat_values", self.path) } else { self.path.to_owned() }
    }

    /// Returns the name of the lengths of the sequences at level `level + 1`, from outside.
    pub(crate) fn row_lengths(self, level: usize) -> String {
        format!("{}/ragged_row_lengths_{level}", self.path)
    }
}

/// Returns the path of a feature in a dict.
pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::None => "none",
            Encoding::Bytes => "bytes",
            Encoding::Zlib => "zlib",
        })
    }
}

/// Prints the class, the type and the shape: `Tensor(float32, [2, None])`.
impl fmt::Display for LeafFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.class.name();
        if matches!(self.class, LeafClass::Text | LeafClass::Unknown(_)) {
            return write!(f, "{}", name.escape_debug());
        }
        if let LeafClass::Label(labels) = &self.class {
            return match labels.classes {
                Some(n) => write!(f, "{name}({n})"),
                None => f.write_str(name),
            };
        }
        write!(f, "{name}({}", self.dtype)?;
        if !matches!(self.class, LeafClass::Scalar) {
            f.write_str(", [")?;
            for (k, size) in self.shape.iter().enumerate() {
                f.write_str(if k == 0 { "" } else { ", " })?;
                match size {
                    Some(size) => write!(f, "{size}")?,
                    None => f.write_str("None")?,
                }
            }
            f.write_str("]")?;
        }
        if self.encoding != Encoding::None {
            write!(f, ", {}", self.encoding)?;
        }
        f.write_str(if self.optional { ", optional)" } else { ")" })
    }
}
