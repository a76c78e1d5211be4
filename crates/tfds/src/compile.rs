//! The compiled features of a data set: the columns to parse, and the values to make of them.

use crate::error::{Result, refused_option, wrong};
use crate::feature::{Encoding, FeatureTree, Features, LeafClass, LeafFeature, StoredNames, joined};
use crate::grammar::refused;
use std::collections::{BTreeMap, BTreeSet};
use tfseek::schema::{DType, FeatureSpec, ImageSpec, Partition, Schema, SplitsDType};
use tfseek::{FeatureBuf, TensorDType};

/// Maximum number of values of an optional feature. Its default is kept in memory.
const MAX_OPTIONAL: usize = 1 << 24;

/// Options of a [`Decoder`](crate::Decoder).
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// The features to read, by their paths. A path of a dict selects all features below it. `None`: all
    /// features.
    pub select: Option<Vec<String>>,
    /// True if pictures and videos that [`pictures`](Self::pictures) does not name are left as the bytes of
    /// their files.
    pub encoded: bool,
    /// Pictures and videos by their paths: left as the bytes of their files (`None`), or made by a spec, for
    /// pictures of 8 or 16 bits.
    pub pictures: Vec<(String, Option<ImageSpec>)>,
    /// If true, an optional feature that a record lacks has no value. If false it has the value that TFDS
    /// uses: the lowest of the type, `False` or `b""`. Tables have nulls, because such a number would count
    /// in their sums.
    pub missing_none: bool,
    /// If true, batches have the features of steps as features of a sequence, with an item for each step. If
    /// false, batches refuse them. An episode is not a sample of a training run; its windows are.
    pub batch_steps: bool,
}

/// Compiled features.
#[derive(Clone, Debug)]
pub(crate) struct DecodePlan {
    pub(crate) schema: Schema,
    /// Columns with another name than their feature, which is a leaf's feature.
    pub(crate) renamed: Vec<(String, String)>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) root: Node,
    pub(crate) missing_none: bool,
    pub(crate) batch_steps: bool,
    /// Warnings about features whose values are not decoded.
    pub(crate) warnings: Vec<String>,
}

/// A node of the tree of a [`Decoder`](crate::Decoder)'s values. Sequences have no nodes, because the values
/// of their items are arrays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Node {
    /// Values by name.
    Dict(Vec<(Box<str>, Node)>),
    /// The steps of an episode: their path, and the values of one.
    Steps(Box<str>, Box<Node>),
    /// The number of a [leaf](crate::Decoder::leaf).
    Leaf(usize),
}

/// The form of the column that the values of a [leaf](crate::Decoder::leaf) have in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeafColumn {
    /// The sizes of the sequences around the leaf, and then its shape. `None`: any size. The dimension of the
    /// rows is not among them.
    pub shape: Vec<Option<usize>>,
    /// True if a row may have no value: an optional feature, with [`DecodeOptions::missing_none`].
    pub nullable: bool,
    /// The name of the column with the stored shapes of the arrays, one after the other. An array without
    /// values has its sizes only there.
    pub shapes: Option<Box<str>>,
}

/// A leaf of the tree, whose values are in one column.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) path: Box<str>,
    pub(crate) feature: LeafFeature,
    /// The sequences around it, outermost first.
    pub(crate) levels: Vec<SequenceLevel>,
    pub(crate) item: Item,
    /// True if the column has rows of different lengths.
    pub(crate) ragged: bool,
    /// What is made of a picture, if it is not as its feature says.
    pub(crate) image: Option<Box<ImageSpec>>,
}

/// A sequence around a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceLevel {
    pub(crate) length: Option<u64>,
    pub(crate) steps: bool,
}

impl SequenceLevel {
    /// Checks the number of items of a sequence.
    pub(crate) fn check(self, found: usize) -> tfseek::Result<()> {
        match self.length {
            Some(expected) if expected != found as u64 => {
                Err(wrong(format!("expected a sequence of {expected} items, found {found}")))
            }
            _ => Ok(()),
        }
    }
}

/// The stored form of an item.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A list of values, of the shape of the feature.
    List,
    /// A byte string with numbers.
    Packed { zlib: bool },
    /// The same, and the shape of the array in a column of its own.
    Shaped { zlib: bool, shape: Box<str> },
    /// The file of a picture.
    Picture,
    /// The geometry of the picture of the leaf `of`, which the spec names.
    Geometry { of: Box<str>, image: Box<ImageSpec> },
    /// A feature of an unknown class.
    Unknown,
}

impl Leaf {
    /// Returns the shape of an item.
    pub(crate) fn shape(&self) -> &[Option<usize>] {
        &self.feature.shape
    }

    /// Returns the number of values of an item, without its open dimension.
    pub(crate) fn values_of_item(&self) -> usize {
        self.shape().iter().flatten().fold(1, |all, size| usize::saturating_mul(all, *size))
    }

    /// Returns true if a record that lacks the leaf has no value, and not a default, where missing values are
    /// none.
    pub(crate) fn may_be_none(&self) -> bool {
        self.feature.optional && self.levels.is_empty()
    }

    /// Returns true if a row tells the number of items by its values.
    pub(crate) fn counts_items(&self) -> bool {
        match self.item {
            Item::Unknown => false,
            Item::List => self.values_of_item() > 0,
            _ => true,
        }
    }

    /// Returns true if an item is made of one byte string.
    pub(crate) fn is_decoded(&self) -> bool {
        !matches!(self.item, Item::List | Item::Unknown)
    }

    /// Returns true if items depend on what is drawn for their rows.
    pub(crate) fn draws(&self) -> bool {
        self.image.is_some() || matches!(self.item, Item::Geometry { .. })
    }

    /// Returns the column with the stored values.
    pub(crate) fn source(&self) -> &str {
        match &self.item {
            Item::Geometry { of, .. } => of,
            _ => &self.path,
        }
    }

    /// Returns the type of the stored values.
    pub(crate) fn stored(&self) -> DType {
        if !matches!(self.item, Item::List) {
            return DType::Bytes;
        }
        match self.feature.dtype {
            TensorDType::String => DType::Bytes,
            TensorDType::Float16 | TensorDType::BFloat16 | TensorDType::Float32 | TensorDType::Float64 => {
                DType::Float32
            }
            _ => DType::Int64,
        }
    }
}

/// The builder of a plan.
struct Compiler<'a> {
    options: &'a DecodeOptions,
    plan: DecodePlan,
    columns: BTreeMap<String, FeatureSpec>,
    /// The paths of all leaves.
    paths: BTreeSet<String>,
    /// The paths of the selection and of the pictures that were found.
    found: Vec<&'a str>,
    /// Pictures whose geometries are not yet in the dict of their path.
    geometries: Vec<(String, Leaf)>,
}

impl DecodePlan {
    /// Compiles features.
    pub(crate) fn new(features: &Features, options: &DecodeOptions) -> Result<DecodePlan> {
        let plan = DecodePlan {
            schema: Schema::example().build()?,
            renamed: Vec::new(),
            leaves: Vec::new(),
            root: Node::Dict(Vec::new()),
            missing_none: options.missing_none,
            batch_steps: options.batch_steps,
            warnings: Vec::new(),
        };
        let mut compiler = Compiler {
            options,
            plan,
            columns: BTreeMap::new(),
            paths: BTreeSet::new(),
            found: Vec::new(),
            geometries: Vec::new(),
        };
        let root = compiler.node(&features.root, "", &[], options.select.is_none())?;
        let selected = options.select.iter().flatten().map(|path| (path, "a feature"));
        let pictures = options.pictures.iter().map(|(path, _)| (path, "the feature of a picture"));
        for (path, what) in pictures.chain(selected) {
            if !compiler.found.contains(&path.as_str()) {
                return Err(refused_option(format!("expected {what} of the data set, found {path:?}")));
            }
        }
        check_together(&options.pictures)?;
        let Compiler { mut plan, columns, .. } = compiler;
        plan.root = root.unwrap_or(Node::Dict(Vec::new()));
        let schema =
            columns.into_iter().fold(Schema::example(), |schema, (name, spec)| schema.feature(name, spec));
        plan.schema = schema.build().map_err(|e| refused("", e.to_string()))?;
        Ok(plan)
    }

    /// Returns the first leaf that is in steps.
    pub(crate) fn steps(&self) -> Option<&Leaf> {
        self.leaves.iter().find(|leaf| leaf.levels.iter().any(|level| level.steps))
    }
}

impl<'a> Compiler<'a> {
    /// Compiles a feature. `None` if nothing of it is selected.
    fn node(
        &mut self,
        feature: &FeatureTree,
        path: &str,
        levels: &[SequenceLevel],
        mut selected: bool,
    ) -> Result<Option<Node>> {
        let chosen = self.options.select.iter().flatten().find(|chosen| *chosen == path);
        if let Some(chosen) = chosen.filter(|_| !path.is_empty()) {
            self.found.push(chosen);
            selected = true;
        }
        match feature {
            FeatureTree::Dict(features) => {
                let mut nodes = Vec::with_capacity(features.len());
                for (name, feature) in features {
                    if let Some(node) = self.node(feature, &joined(path, name), levels, selected)? {
                        nodes.push((name.clone(), node));
                    }
                    for (name, picture) in std::mem::take(&mut self.geometries) {
                        if features.iter().any(|(known, _)| **known == *name) {
                            let path = &picture.path;
                            return Err(refused_option(format!(
                                "feature {path:?}: geometry: expected the name of no other feature, found {name:?}"
                            )));
                        }
                        let node = self.geometry(picture, joined(path, &name))?;
                        nodes.push((name.into(), node));
                    }
                }
                Ok((selected || !nodes.is_empty()).then_some(Node::Dict(nodes)))
            }
            FeatureTree::Sequence(sequence) => {
                // The items of a sequence have no steps of their own.
                let steps = sequence.steps && levels.iter().all(|level| level.steps);
                let levels = [levels, &[SequenceLevel { length: sequence.length, steps }]].concat();
                let node = self.node(&sequence.feature, path, &levels, selected)?;
                Ok(match node {
                    Some(node) if steps => Some(Node::Steps(path.into(), Box::new(node))),
                    node => node,
                })
            }
            FeatureTree::Leaf(leaf) => {
                let pictures: &'a [(String, Option<ImageSpec>)] = &self.options.pictures;
                let is_picture = matches!(leaf.class, LeafClass::Image(_) | LeafClass::Video);
                let named = pictures.iter().find(|(known, _)| is_picture && known == path);
                self.found.extend(named.map(|(known, _)| known.as_str()));
                let image = named.and_then(|(_, image)| image.as_ref());
                let encoded = named.map_or(is_picture && self.options.encoded, |_| image.is_none());
                if selected { self.leaf(leaf, path, levels, encoded, image).map(Some) } else { Ok(None) }
            }
        }
    }

    fn leaf(
        &mut self,
        feature: &LeafFeature,
        path: &str,
        levels: &[SequenceLevel],
        encoded: bool,
        image: Option<&ImageSpec>,
    ) -> Result<Node> {
        let mut feature = feature.clone();
        let mut levels = levels.to_vec();
        let item = match &feature.class {
            LeafClass::Unknown(class) => {
                self.warn(path, format!("the class {class:?} is not known: its stored values are returned"));
                Item::Unknown
            }
            LeafClass::Video => {
                let frames = feature.shape.first().copied().flatten();
                levels.push(SequenceLevel { length: frames.map(|n| n as u64), steps: false });
                feature.shape.remove(0);
                Item::Picture
            }
            LeafClass::Image(_) => Item::Picture,
            LeafClass::Audio { lazy: true, .. } => {
                self.warn(path, "the audio of its files is not decoded".to_owned());
                (feature.dtype, feature.shape) = (TensorDType::String, Vec::new());
                Item::List
            }
            _ => item_of_array(&feature, &levels, path)?,
        };
        // A sequence of a stated length is a dimension.
        if let (Item::List, [SequenceLevel { length: Some(length), steps: false }]) = (&item, &*levels)
            && feature.shape.contains(&None)
        {
            feature.shape.insert(0, Some(usize::try_from(*length).unwrap_or(usize::MAX)));
            levels.clear();
        }
        let item = match item {
            Item::Picture if encoded => {
                (feature.dtype, feature.shape) = (TensorDType::String, Vec::new());
                Item::List
            }
            Item::Picture if !cfg!(feature = "image") => {
                let reason = "pictures are not decoded by this build: expected them to be left encoded";
                return Err(refused(path, reason));
            }
            item => item,
        };
        if let Some(image) = image {
            made_by(image, &mut feature)
                .map_err(|reason| refused_option(format!("feature {path:?}: {reason}")))?;
        }
        let image = image.cloned().map(Box::new);
        self.insert_path(path)?;
        let mut leaf = Leaf { path: path.into(), feature, levels, item, ragged: false, image };
        if !matches!(leaf.item, Item::Unknown) {
            leaf.ragged = self.columns_of(&leaf)?;
        }
        if let Some(name) = leaf.image.as_ref().and_then(|image| image.geometry.clone()) {
            self.geometries.push((name, leaf.clone()));
        }
        self.plan.leaves.push(leaf);
        Ok(Node::Leaf(self.plan.leaves.len() - 1))
    }

    /// Adds the geometry of a picture. Its column is of a feature that no record has, because a parser makes
    /// all columns; its values are made of the picture's file.
    fn geometry(&mut self, picture: Leaf, path: String) -> Result<Node> {
        self.insert_path(&path)?;
        let Leaf { path: of, levels, image, feature: LeafFeature { optional, .. }, .. } = picture;
        let Some(image) = image else { return Ok(Node::Dict(Vec::new())) };
        let stored = StoredNames::geometry_of(&of);
        self.plan.renamed.push((stored.clone(), path.clone()));
        let default = Some(FeatureBuf::Int64(vec![0]));
        let spec = FeatureSpec::FixedLen { dtype: DType::Int64, shape: Vec::new(), default };
        self.column(&path, &stored, spec)?;
        let feature = LeafFeature {
            optional,
            ..LeafFeature::new(LeafClass::Tensor, TensorDType::Int32, vec![Some(5)])
        };
        let item = Item::Geometry { of, image };
        let leaf = Leaf { path: path.into(), feature, levels, item, ragged: picture.ragged, image: None };
        self.plan.leaves.push(leaf);
        Ok(Node::Leaf(self.plan.leaves.len() - 1))
    }

    fn insert_path(&mut self, path: &str) -> Result<()> {
        if self.paths.insert(path.to_owned()) {
            return Ok(());
        }
        Err(refused(path, "expected one feature of this path, found two"))
    }

    fn warn(&mut self, path: &str, text: String) {
        self.plan.warnings.push(format!("feature {path:?}: {text}"));
    }

    /// Adds the columns of a leaf. Returns true if its rows have different lengths.
    fn columns_of(&mut self, leaf: &Leaf) -> Result<bool> {
        let path = &*leaf.path;
        let dtype = leaf.stored();
        if leaf.feature.optional && leaf.values_of_item() > MAX_OPTIONAL {
            let reason = format!("expected at most {MAX_OPTIONAL} values of an optional feature, found more");
            return Err(refused(path, reason));
        }
        let (shape, default) = match leaf.item {
            Item::List => (leaf.shape(), missing(&leaf.feature)),
            _ => (&[][..], None),
        };
        let default = default.filter(|_| leaf.levels.is_empty());
        let column = if let Item::Shaped { shape, .. } = &leaf.item {
            let stored = StoredNames::value_of(path);
            self.plan.renamed.push((stored.clone(), path.to_owned()));
            let rank = [Some(leaf.shape().len())];
            let (spec, _) = spec(shape, &rank, &leaf.levels, DType::Int64, None)?;
            self.column(path, shape, spec)?;
            stored
        } else {
            path.to_owned()
        };
        if leaf.levels.is_empty() && leaf.image.as_ref().is_some_and(|image| image.missing.is_some()) {
            let default = Some(FeatureBuf::Bytes(vec![Vec::new()]));
            self.column(path, &column, FeatureSpec::Optional { dtype, default })?;
            return Ok(false);
        }
        let (spec, ragged) = spec(&column, shape, &leaf.levels, dtype, default)?;
        self.column(path, &column, spec)?;
        Ok(ragged)
    }

    fn column(&mut self, path: &str, name: &str, spec: FeatureSpec) -> Result<()> {
        match self.columns.insert(name.to_owned(), spec) {
            None => Ok(()),
            Some(_) => Err(refused(path, format!("expected one feature stored as {name:?}, found two"))),
        }
    }
}

/// Gives a feature the type and the shape of the pictures that a spec makes.
fn made_by(image: &ImageSpec, feature: &mut LeafFeature) -> std::result::Result<(), String> {
    image.check().map_err(|e| e.to_string())?;
    let is_integer = matches!(feature.dtype, TensorDType::UInt8 | TensorDType::UInt16);
    let [height, width, _] = *feature.shape else {
        return Err(format!("expected a picture, found {feature}"));
    };
    if !is_integer {
        return Err(format!("expected a picture of uint8 or uint16 for a spec of its own, found {feature}"));
    }
    let channels = Some(usize::from(image.channels));
    let [height, width] = match image.size {
        Some(size) => size.map(|side| Some(side as usize)),
        None if image.exif => [None; 2],
        None => [height, width],
    };
    feature.dtype = image.dtype;
    feature.shape =
        if image.channels_first { vec![channels, height, width] } else { vec![height, width, channels] };
    Ok(())
}

/// Checks what specs say about each other, as in a schema.
fn check_together(pictures: &[(String, Option<ImageSpec>)]) -> Result<()> {
    let specs = pictures.iter().filter_map(|(path, image)| Some((path, image.clone()?)));
    let schema = specs
        .fold(Schema::example(), |schema, (path, image)| schema.feature(path, FeatureSpec::Image(image)));
    schema.build().map(|_| ()).map_err(|e| refused_option(e.to_string()))
}

/// Returns the stored form of an array.
fn item_of_array(feature: &LeafFeature, levels: &[SequenceLevel], path: &str) -> Result<Item> {
    let open = feature.shape.iter().filter(|size| size.is_none()).count();
    // Arrays in these sequences have one dimension more, or none.
    let is_dimension = matches!(levels, [] | [SequenceLevel { length: Some(_), steps: false }]);
    let zlib = feature.encoding == Encoding::Zlib;
    match feature.encoding {
        Encoding::None if open > 1 || open == 1 && !is_dimension => {
            let reason = "expected an encoding for an array with several dimensions of any size, found none";
            Err(refused(path, reason))
        }
        Encoding::None => Ok(Item::List),
        _ if open > 1 => Ok(Item::Shaped { zlib, shape: StoredNames::shape_of(path).into() }),
        _ => Ok(Item::Packed { zlib }),
    }
}

/// Returns the spec of a column of items of this shape in sequences, and true if its rows have different
/// lengths. A column of arrays with one open dimension is not padded, because padding looks like values.
fn spec(
    name: &str,
    shape: &[Option<usize>],
    levels: &[SequenceLevel],
    dtype: DType,
    default: Option<FeatureBuf>,
) -> Result<(FeatureSpec, bool)> {
    let sizes: Vec<usize> = shape.iter().copied().flatten().collect();
    let values = sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let values = values.ok_or_else(|| refused(name, "expected at most 2^64 values"))?;
    let open = sizes.len() < shape.len();
    let fixed = match levels {
        [] if !open => Some(sizes),
        [SequenceLevel { length: Some(length), steps: false }] => {
            let length = usize::try_from(*length).map_err(|_| refused(name, "expected fewer items"))?;
            Some([&[length], &*sizes].concat())
        }
        _ => None,
    };
    if let Some(sizes) = fixed {
        let total = sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
        if total.is_none() {
            return Err(refused(name, "expected at most 2^64 values"));
        }
        let spec = FeatureSpec::fixed_len(&sizes, dtype);
        return Ok((default.into_iter().fold(spec, FeatureSpec::with_default), false));
    }
    if values == 0 && levels.len() > 1 {
        return Err(refused(name, "expected items with values in nested sequences, found a shape with 0"));
    }
    let names = StoredNames::new(name, levels.len());
    let lengths = (1..levels.len()).map(|k| Partition::RowLengths(names.row_lengths(k - 1)));
    let items = (values > 1).then_some(Partition::UniformRowLength(values));
    let spec = FeatureSpec::Ragged {
        dtype,
        value_key: (levels.len() > 1).then(|| names.values()),
        partitions: lengths.chain(items).collect(),
        row_splits_dtype: SplitsDType::Int64,
        validate: true,
    };
    Ok((spec, true))
}

/// Returns the values of an optional feature that a record lacks, as they would be stored: the lowest of its
/// type.
fn missing(feature: &LeafFeature) -> Option<FeatureBuf> {
    use TensorDType as T;
    if !feature.optional {
        return None;
    }
    let values = feature.shape.iter().copied().product::<Option<usize>>()?;
    let floats = |value: f32| FeatureBuf::Float(vec![value; values]);
    let integers = |value: i64| FeatureBuf::Int64(vec![value; values]);
    Some(match feature.dtype {
        T::String => FeatureBuf::Bytes(vec![Vec::new(); values]),
        T::Float16 => floats(half::f16::MIN.to_f32()),
        T::BFloat16 => floats(half::bf16::MIN.to_f32()),
        T::Float32 => floats(f32::MIN),
        T::Float64 => floats(f32::NEG_INFINITY),
        T::Int8 => integers(i8::MIN.into()),
        T::Int16 => integers(i16::MIN.into()),
        T::Int32 => integers(i32::MIN.into()),
        T::Int64 => integers(i64::MIN),
        _ => integers(0),
    })
}
