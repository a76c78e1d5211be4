//! From the features of a data set of TensorFlow Datasets to the columns of its record batches.

use crate::arrays::{dense_array, ragged_array, with_nulls};
use crate::error::{Error, Result};
use crate::options::{ByteStrings, ClassLabels, Options, Tensors};
use crate::plan::{Level, array_type, has_byte_strings, nested, no_type, string_type};
use crate::tensor;
use arrow_array::{ArrayRef, StringArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tfseek::TensorDType;
use tfseek::batch::{Batch, BatchParser, Column};
use tfseek::schema::Schema;
use tfseek_tfds::{DecodeOptions, Decoder, Features, Labels, LeafClass, LeafFeature, Node};

/// Key of the metadata of files.
const STORED: &str = "tfseek.stored";

/// The columns of a data set, one for each feature of its outermost dict.
#[derive(Clone, Debug)]
pub(crate) struct FeatureColumns {
    features: Arc<Features>,
    decode: DecodeOptions,
    options: Options,
    decoder: Decoder,
    parser: BatchParser,
    columns: Vec<FeatureColumn>,
}

/// A column, or a field of a struct.
#[derive(Clone, Debug)]
struct FeatureColumn {
    field: FieldRef,
    values: FeatureValues,
}

#[derive(Clone, Debug)]
enum FeatureValues {
    Struct(Vec<FeatureColumn>),
    Leaf(LeafValues),
}

/// The values of a leaf.
#[derive(Clone, Debug)]
struct LeafValues {
    /// The column of the batch.
    path: Box<str>,
    /// Number of dimensions, without the dimension of the rows.
    dims: usize,
    /// The names of labels.
    names: Option<ArrayRef>,
}

/// A planner of the fields of leaves.
struct FieldPlanner<'a> {
    /// The features by their paths, as they are declared.
    declared: BTreeMap<String, &'a LeafFeature>,
    decoder: &'a Decoder,
    options: &'a Options,
    text: BTreeSet<&'a str>,
}

impl FeatureColumns {
    /// Plans the columns of the selected features.
    pub(crate) fn new(
        features: &Arc<Features>,
        decode: &DecodeOptions,
        options: &Options,
    ) -> Result<FeatureColumns> {
        if let Some((name, _)) = options.renamed.iter().chain(&options.renamed_lists).next() {
            let reason = "expected no `rename` for a data set, whose columns have the names of its features";
            return Err(Error::schema(name, reason));
        }
        let mut selected = decode.select.iter().flatten();
        if let Some(unknown) = selected.find(|path| features.root.get(path).is_none()) {
            return Err(Error::schema(unknown, "expected a feature of the data set, found no such feature"));
        }
        let decoder = Decoder::new(features, decode).map_err(Error::no_schema)?;
        let leaves = (0..).map_while(|number| decoder.leaf(number));
        if let Some((path, feature)) =
            leaves.into_iter().find(|(_, feature)| matches!(feature.class, LeafClass::Unknown(_)))
        {
            let reason =
                format!("expected a feature of a known class, found {feature}: choose other features");
            return Err(Error::schema(path, reason));
        }
        let parser = decoder.parser().map_err(Error::no_schema)?;
        let planner = FieldPlanner {
            declared: features.root.leaves().into_iter().collect(),
            decoder: &decoder,
            options,
            text: options.text.iter().map(String::as_str).collect(),
        };
        if let Some(unknown) = planner.text.iter().find(|path| !planner.declared.contains_key(**path)) {
            return Err(Error::schema(unknown, "expected a feature for `text`, found no such feature"));
        }
        let columns = match decoder.root() {
            Node::Dict(nodes) => planner.fields(nodes)?,
            other => planner.field("", other)?.into_iter().collect(),
        };
        let parser = parser.contiguous_bytes(options.bytes == ByteStrings::Copy);
        let features = Arc::clone(features);
        let decode = decode.clone();
        let options = options.clone();
        Ok(FeatureColumns { features, decode, options, decoder, parser, columns })
    }

    /// Returns the columns with these names, which exist, in their order.
    pub(crate) fn project(&self, names: &[&str]) -> Result<FeatureColumns> {
        let kept = self.columns.iter().filter(|column| names.contains(&column.field.name().as_str()));
        let select = kept.flat_map(FeatureColumn::leaves).map(|(_, leaf)| leaf.path.to_string());
        let decode = DecodeOptions { select: Some(select.collect()), ..self.decode.clone() };
        let mut projected = FeatureColumns::new(&self.features, &decode, &self.options)?;
        projected.columns.sort_by_key(|column| names.iter().position(|name| column.field.name() == name));
        Ok(projected)
    }

    /// Returns the paths of the features of byte strings that are neither text nor files.
    pub(crate) fn byte_strings(&self) -> Vec<&str> {
        let has_strings =
            |field: &Field| !field.metadata().contains_key(STORED) && has_byte_strings(field.data_type());
        let leaves = self.columns.iter().flat_map(FeatureColumn::leaves);
        leaves.filter(|(field, _)| has_strings(field)).map(|(_, leaf)| &*leaf.path).collect()
    }

    /// Returns the fields of the columns.
    pub(crate) fn fields(&self) -> Vec<FieldRef> {
        self.columns.iter().map(|column| Arc::clone(&column.field)).collect()
    }

    /// Returns the specs of the stored features.
    pub(crate) fn schema(&self) -> &Schema {
        self.decoder.schema()
    }

    /// Returns a parser of batches with decoded columns.
    pub(crate) fn parser(&self) -> BatchParser {
        self.parser.clone()
    }

    /// Returns the columns of a batch.
    pub(crate) fn arrays(&self, batch: &Batch) -> Result<Vec<ArrayRef>> {
        self.columns.iter().map(|column| column.array(batch)).collect()
    }
}

impl FieldPlanner<'_> {
    /// Returns the fields of a dict. A dict without features has none. A sequence of dicts is a struct of
    /// lists, as TFDS returns it: a list of structs has no room for features with other numbers of items.
    fn fields(&self, nodes: &[(Box<str>, Node)]) -> Result<Vec<FeatureColumn>> {
        let fields = nodes.iter().map(|(name, node)| self.field(name, node));
        fields.filter_map(Result::transpose).collect()
    }

    fn field(&self, name: &str, node: &Node) -> Result<Option<FeatureColumn>> {
        match node {
            Node::Dict(nodes) => {
                let columns = self.fields(nodes)?;
                let fields: Fields = columns.iter().map(|column| Arc::clone(&column.field)).collect();
                let field = Arc::new(Field::new(name, DataType::Struct(fields), false));
                Ok((!columns.is_empty())
                    .then_some(FeatureColumn { field, values: FeatureValues::Struct(columns) }))
            }
            // The items of steps are the items of sequences. A table is read as a whole, so steps are lists.
            Node::Steps(_, node) => self.field(name, node),
            Node::Leaf(number) => self.leaf(name, *number).map(Some),
            _ => Err(Error::schema(name, "expected a dict, steps or a leaf, found another feature")),
        }
    }

    fn leaf(&self, name: &str, number: usize) -> Result<FeatureColumn> {
        let (Some((path, feature)), Some(column)) = (self.decoder.leaf(number), self.decoder.column(number))
        else {
            return Err(Error::schema(name, "expected a feature of the data set, found none"));
        };
        let is_string = feature.dtype == TensorDType::String;
        let is_text = self.text.contains(path);
        if is_text && !is_string {
            let reason = format!("expected byte strings for `text`, found {feature}");
            return Err(Error::schema(path, reason));
        }
        let names = match &feature.class {
            LeafClass::Label(labels) if self.options.labels == ClassLabels::Names => names(labels),
            _ => None,
        };
        let (value, names) = match array_type(feature.dtype) {
            _ if is_string => {
                let declared = self.options.text_features && feature.class == LeafClass::Text;
                (string_type(self.options.bytes, is_text || declared, !column.shape.is_empty()), None)
            }
            Some(DataType::Int64) if names.is_some() => {
                (DataType::Dictionary(Box::new(DataType::Int64), Box::new(DataType::Utf8)), names)
            }
            Some(other) => (other, None),
            None => return Err(no_type(path, feature.dtype)),
        };
        let (sizes, dims): (Option<Vec<usize>>, usize) =
            (column.shape.iter().copied().collect(), column.shape.len());
        let is_tensor = self.options.tensors == Tensors::Extension && (value.is_numeric() && dims > 0);
        let mut metadata = self.metadata(path, feature, names.is_some());
        let levels = match sizes.filter(|_| is_tensor) {
            Some(sizes) => {
                metadata.extend(tensor::metadata(&sizes));
                let count = sizes.iter().try_fold(1usize, |product, &len| product.checked_mul(len));
                vec![Level::Fixed(count.unwrap_or(usize::MAX))]
            }
            None => column.shape.iter().map(|size| size.map_or(Level::LargeList, Level::Fixed)).collect(),
        };
        let nullable = column.nullable || (names.is_some() && levels.is_empty());
        let data_type = nested(&levels, value).map_err(|e| e.column_named(path))?;
        let field = Arc::new(Field::new(name, data_type, nullable).with_metadata(metadata));
        Ok(FeatureColumn {
            field,
            values: FeatureValues::Leaf(LeafValues { path: path.into(), dims, names }),
        })
    }

    /// Returns what the type of a leaf does not tell.
    fn metadata(&self, path: &str, feature: &LeafFeature, is_named: bool) -> HashMap<String, String> {
        let declared = self.declared.get(path).copied().unwrap_or(feature);
        let shape: serde_json::Value = declared.shape.clone().into();
        let mut metadata = HashMap::from([
            ("tfseek.class".to_owned(), declared.class.name().to_owned()),
            ("tfseek.dtype".to_owned(), declared.dtype.to_string()),
            ("tfseek.shape".to_owned(), shape.to_string()),
        ]);
        let is_file = declared.dtype != TensorDType::String && feature.dtype == TensorDType::String;
        if is_file {
            metadata.insert(STORED.to_owned(), "file".to_owned());
        }
        let labels = match &declared.class {
            LeafClass::Label(labels) | LeafClass::Image(Some(labels)) => Some(labels),
            _ => None,
        };
        if let Some(names) = labels.and_then(|labels| labels.names.as_ref()).filter(|_| !is_named) {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            metadata.insert("tfseek.labels".to_owned(), serde_json::Value::from(names).to_string());
        }
        metadata
    }
}

/// Returns the names of labels as an array, if each class has one of its own. A dictionary would merge
/// classes of one name, and pandas refuses it.
fn names(labels: &Labels) -> Option<ArrayRef> {
    let names = labels.names.as_ref()?;
    let distinct: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
    let are_distinct = distinct.len() == names.len();
    are_distinct.then(|| Arc::new(StringArray::from_iter_values(names.iter())) as ArrayRef)
}

impl FeatureColumn {
    /// Returns the leaves of the column, each with its field.
    fn leaves(&self) -> Vec<(&Field, &LeafValues)> {
        match &self.values {
            FeatureValues::Struct(columns) => columns.iter().flat_map(FeatureColumn::leaves).collect(),
            FeatureValues::Leaf(leaf) => vec![(&*self.field, leaf)],
        }
    }

    fn array(&self, batch: &Batch) -> Result<ArrayRef> {
        match (&self.values, self.field.data_type()) {
            (FeatureValues::Struct(columns), DataType::Struct(fields)) => {
                let arrays = columns.iter().map(|column| column.array(batch)).collect::<Result<_>>()?;
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, None, batch.rows())?))
            }
            (FeatureValues::Leaf(leaf), data_type) => {
                let array = leaf.array(batch, data_type).map_err(|e| e.column_named(&leaf.path))?;
                // A label that is missing is null already.
                let may_be_null = leaf.names.is_none() && self.field.is_nullable();
                match batch.presence(&leaf.path).filter(|present| may_be_null && present.contains(&0)) {
                    None => Ok(array),
                    Some(present) => with_nulls(&array, |row| present.get(row) == Some(&0)),
                }
            }
            _ => Err(Error::batch("expected the type of a dict")),
        }
    }
}

impl LeafValues {
    fn array(&self, batch: &Batch, data_type: &DataType) -> Result<ArrayRef> {
        let rows = batch.rows();
        let names = self.names.as_ref();
        let is_whole = |shape: &[usize]| shape.len() == self.dims + 1 && shape.first() == Some(&rows);
        match batch.get(&self.path) {
            Some(Column::Dense(dense)) if is_whole(&dense.shape) => {
                dense_array(data_type, &dense.values, &dense.shape, names)
            }
            Some(Column::Optional(optional)) if is_whole(&optional.shape) => {
                dense_array(data_type, &optional.values, &optional.shape, names)
            }
            Some(Column::Ragged(ragged)) if ragged.row_splits.len() + ragged.shape.len() == self.dims + 1 => {
                ragged_array(data_type, ragged, names)
            }
            Some(_) => {
                Err(Error::batch("expected a batch of `Converter::parser`, found a column of another form"))
            }
            None => Err(Error::batch("expected a batch of `Converter::parser`, found no such column")),
        }
    }
}
