//! The reader of `features.json`: one grammar for the three forms that TensorFlow Datasets has written.
//!
//! A node has its class and its *content*. The content is the old form's, or the JSON of a protobuf message,
//! which the levels of one file may have in turn.

use crate::error::{Result, TfdsError, TfdsErrorKind};
use crate::feature::{
    Encoding, FeatureTree, Features, Labels, LeafClass, LeafFeature, SequenceFeature, joined,
};
use crate::json::{field, found};
use crate::set_folder::MAX_BYTES;
use serde_json::{Map, Value};
use tfseek::TensorDType;

/// Maximum number of levels of features. JSON may have 128 levels, which is the limit of its reader.
const MAX_DEPTH: usize = 100;

/// The package with the classes of TensorFlow Datasets.
const CLASSES: &str = "tensorflow_datasets.core.features.";

/// The fields of a protobuf feature that have its content, and their messages.
const CONTENTS: [(&str, &str); 11] = [
    ("featuresDict", "FeaturesDict"),
    ("tensor", "TensorFeature"),
    ("classLabel", "ClassLabel"),
    ("text", "TextFeature"),
    ("image", "ImageFeature"),
    ("video", "VideoFeature"),
    ("audio", "AudioFeature"),
    ("boundingBox", "BoundingBoxFeature"),
    ("translation", "TranslationFeature"),
    ("sequence", "SequenceFeature"),
    ("jsonFeature", "JsonFeature"),
];

impl Features {
    /// Parses a `features.json`. Unknown fields are ignored. The names of labels are in other files.
    ///
    /// ```
    /// use tfseek_tfds::{FeatureTree, Features};
    ///
    /// let text = br#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    ///     "featuresDict": {"features": {"label": {
    ///         "pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "classLabel": {"numClasses": "10"}}}}}"#;
    /// let features = Features::parse(text)?;
    /// let Some(FeatureTree::Leaf(label)) = features.root.get("label") else { panic!() };
    /// assert_eq!(label.to_string(), "ClassLabel(10)");
    /// # Ok::<(), tfseek_tfds::TfdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`TfdsErrorKind::Features`] with the path of the feature.
    pub fn parse(text: &[u8]) -> Result<Features> {
        if text.len() as u64 > MAX_BYTES {
            return Err(refused("", format!("expected at most {MAX_BYTES} bytes, found {}", text.len())));
        }
        let value: Value =
            serde_json::from_slice(text).map_err(|e| refused("", format!("expected JSON, found: {e}")))?;
        Ok(Features { root: feature(&value, "", 0)? })
    }
}

pub(crate) fn refused(feature: &str, reason: impl Into<String>) -> TfdsError {
    TfdsErrorKind::Features { feature: feature.to_owned(), reason: reason.into() }.into()
}

/// The content of a node.
#[derive(Clone, Copy)]
struct Content<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
    /// The field of a protobuf feature that it was in. `None` for the old form.
    message: Option<&'a str>,
    depth: usize,
}

fn feature(value: &Value, path: &str, depth: usize) -> Result<FeatureTree> {
    if depth >= MAX_DEPTH {
        return Err(refused(path, format!("expected at most {MAX_DEPTH} levels of features, found more")));
    }
    let Value::Object(node) = value else {
        return Err(refused(path, format!("expected a feature, found {}", found(value))));
    };
    if let Some(class) = field(node, "pythonClassName") {
        let Value::String(class) = class else {
            return Err(refused(path, format!("expected the name of a class, found {}", found(class))));
        };
        let mut contents = CONTENTS.iter().filter_map(|(name, _)| Some((*name, field(node, name)?)));
        let (message, content) = match (contents.next(), contents.next()) {
            (Some(one), None) => one,
            (None, _) => return Err(refused(path, "expected the content of a feature, found none")),
            (Some((one, _)), Some((other, _))) => {
                return Err(refused(path, format!("expected one content, found {one} and {other}")));
            }
        };
        let mut feature = of_message(class, message, content, path, depth)?;
        if let (FeatureTree::Leaf(leaf), Some(Value::String(text))) =
            (&mut feature, field(node, "description"))
        {
            leaf.description = text.as_str().into();
        }
        return Ok(feature);
    }
    let class = match node.get("type") {
        Some(Value::String(class)) => class,
        Some(other) => {
            return Err(refused(path, format!("expected the name of a class, found {}", found(other))));
        }
        None => return Err(refused(path, "expected a feature, found an object without a class")),
    };
    let content = node.get("content").unwrap_or(&Value::Null);
    match field(node, "protoCls") {
        None => of_old(class, content, path, depth),
        Some(Value::String(proto)) if proto.is_empty() => of_old(class, content, path, depth),
        Some(proto) => {
            let name = proto.as_str().and_then(|name| name.strip_prefix("tensorflow_datasets."));
            let Some((message, _)) = CONTENTS.iter().find(|(_, message)| Some(*message) == name) else {
                let reason = format!("expected the name of a message of TFDS, found {}", found(proto));
                return Err(refused(path, reason));
            };
            // The message may be a text of JSON.
            match content {
                Value::String(text) => of_message(class, message, &json(text, path)?, path, depth),
                content => of_message(class, message, content, path, depth),
            }
        }
    }
}

/// Reads a node with the JSON of a message.
fn of_message(class: &str, message: &str, content: &Value, path: &str, depth: usize) -> Result<FeatureTree> {
    let Value::Object(fields) = content else {
        return Err(refused(path, format!("{message}: expected an object, found {}", found(content))));
    };
    if message == "jsonFeature" {
        let text = match field(fields, "json") {
            Some(Value::String(text)) => text,
            Some(other) => {
                return Err(refused(path, format!("jsonFeature: expected a text, found {}", found(other))));
            }
            None => return Err(refused(path, "jsonFeature: expected a text, found none")),
        };
        return of_old(class, &json(text, path)?, path, depth);
    }
    of_content(class, Content { path, fields, message: Some(message), depth })
}

/// Reads a node with content in the old form.
fn of_old(class: &str, content: &Value, path: &str, depth: usize) -> Result<FeatureTree> {
    let none = Map::new();
    let fields = match content {
        Value::Null => &none,
        Value::Object(fields) => fields,
        other => return Err(refused(path, format!("content: expected an object, found {}", found(other)))),
    };
    of_content(class, Content { path, fields, message: None, depth })
}

fn json(text: &str, path: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|e| refused(path, format!("expected JSON in a text, found: {e}")))
}

fn of_content(class: &str, content: Content<'_>) -> Result<FeatureTree> {
    if class.is_empty() {
        return Err(content.refused("expected the name of a class, found \"\""));
    }
    let known = class.strip_prefix(CLASSES).unwrap_or_default();
    let messages = messages_of(known);
    if let (Some(expected), Some(found)) = (messages.first(), content.message)
        && !messages.contains(&found)
    {
        return Err(content.refused(format!("expected {expected} for {class}, found {found}")));
    }
    match known {
        "features_dict.FeaturesDict" => content.dict(),
        "sequence_feature.Sequence" => content.sequence(false),
        "dataset_feature.Dataset" => content.sequence(true),
        "translation_feature.Translation" => content.translation(false),
        "translation_feature.TranslationVariableLanguages" => content.translation(true),
        "tensor_feature.Tensor" | "feature.Tensor" => content.tensor(LeafClass::Tensor),
        "scalar.Scalar" => content.tensor(LeafClass::Scalar),
        "class_label_feature.ClassLabel" => {
            let class = LeafClass::Label(content.labels("numClasses")?);
            content.plain(class, TensorDType::Int64, Vec::new())
        }
        "text_feature.Text" => {
            if content.message.is_none() && content.fields.contains_key("use_encoder") {
                let reason = "texts with an encoder, which TFDS had before version 4, are not supported";
                return Err(content.refused(reason));
            }
            content.plain(LeafClass::Text, TensorDType::String, Vec::new())
        }
        "image_feature.Image" => content.image(None),
        "labeled_image.LabeledImage" => content.image(Some(content.picture_labels()?)),
        "video_feature.Video" => {
            let dtype = content.dtype(Some(TensorDType::UInt8))?;
            content.plain(LeafClass::Video, dtype, content.shape(&[])?)
        }
        "audio_feature.Audio" => content.audio(),
        "bounding_boxes.BBoxFeature" => {
            let format = content.text("bboxFormat")?.unwrap_or_default();
            content.plain(LeafClass::Box(format.into()), TensorDType::Float32, vec![Some(4)])
        }
        // The children of other classes are read, and other content is not guessed.
        _ => match content.message {
            Some("featuresDict") => content.dict(),
            Some("sequence") => content.sequence(false),
            _ => content.plain(LeafClass::Unknown(class.into()), TensorDType::String, Vec::new()),
        },
    }
}

/// Returns the fields of a protobuf feature that may have the content of a class. Empty for unknown classes.
fn messages_of(class: &str) -> &'static [&'static str] {
    match class {
        "features_dict.FeaturesDict" => &["featuresDict"],
        "sequence_feature.Sequence" | "dataset_feature.Dataset" => &["sequence"],
        "translation_feature.Translation" | "translation_feature.TranslationVariableLanguages" => {
            &["translation"]
        }
        "tensor_feature.Tensor" | "feature.Tensor" | "scalar.Scalar" => &["tensor"],
        "class_label_feature.ClassLabel" => &["classLabel"],
        "text_feature.Text" => &["text", "tensor"],
        "image_feature.Image" | "labeled_image.LabeledImage" => &["image"],
        "video_feature.Video" => &["video"],
        "audio_feature.Audio" => &["audio"],
        "bounding_boxes.BBoxFeature" => &["boundingBox", "tensor"],
        _ => &[],
    }
}

impl<'a> Content<'a> {
    fn refused(&self, reason: impl Into<String>) -> TfdsError {
        refused(self.path, reason)
    }

    /// Returns a field by the name that it has in messages. `null` is absent.
    fn field(&self, name: &str) -> Option<&'a Value> {
        field(self.fields, name)
    }

    fn wrong(&self, name: &str, expected: &str, value: &Value) -> TfdsError {
        self.refused(format!("{name}: expected {expected}, found {}", found(value)))
    }

    fn dict(&self) -> Result<FeatureTree> {
        let none = Map::new();
        let features = match (self.message, self.field("features")) {
            (None, _) => self.fields,
            (Some(_), Some(Value::Object(features))) => features,
            (Some(_), Some(other)) => return Err(self.wrong("features", "an object", other)),
            (Some(_), None) => &none,
        };
        let child = |(name, value): (&String, &Value)| {
            Ok((name.as_str().into(), feature(value, &joined(self.path, name), self.depth + 1)?))
        };
        features.iter().map(child).collect::<Result<_>>().map(FeatureTree::Dict)
    }

    fn sequence(&self, steps: bool) -> Result<FeatureTree> {
        let Some(item) = self.field("feature") else {
            return Err(self.refused("feature: expected the feature of an item, found none"));
        };
        let length = match self.field("length") {
            // The default of a message is 0.
            None => self.message.map(|_| 0),
            Some(value) => match integer(value) {
                Some(-1) if self.message.is_some() => None,
                Some(length) if length >= 0 => Some(length as u64),
                _ => return Err(self.wrong("length", "a number of items", value)),
            },
        };
        let feature = feature(item, self.path, self.depth + 1)?;
        Ok(FeatureTree::Sequence(Box::new(SequenceFeature { feature, length, steps })))
    }

    fn translation(&self, variable: bool) -> Result<FeatureTree> {
        let text = || {
            FeatureTree::Leaf(Box::new(LeafFeature::new(LeafClass::Text, TensorDType::String, Vec::new())))
        };
        if variable {
            let fields = ["language", "translation"].map(|name| (name.into(), text()));
            let feature = FeatureTree::Dict(fields.into());
            let sequence = SequenceFeature { feature, length: None, steps: false };
            return Ok(FeatureTree::Sequence(Box::new(sequence)));
        }
        let languages = match self.field("languages") {
            None => &[][..],
            Some(Value::Array(languages)) => languages,
            Some(other) => return Err(self.wrong("languages", "a list", other)),
        };
        let language = |value: &Value| match value {
            Value::String(name) => Ok((name.as_str().into(), text())),
            other => Err(self.wrong("languages", "texts", other)),
        };
        languages.iter().map(language).collect::<Result<_>>().map(FeatureTree::Dict)
    }

    fn tensor(&self, class: LeafClass) -> Result<FeatureTree> {
        let shape = if matches!(class, LeafClass::Scalar) { Vec::new() } else { self.shape(&[])? };
        let encoding = self.encoding()?;
        let dtype = self.dtype(None)?;
        let optional = self.flag("optional")?;
        self.leaf(LeafFeature { encoding, optional, ..LeafFeature::new(class, dtype, shape) })
    }

    fn image(&self, labels: Option<Labels>) -> Result<FeatureTree> {
        let shape = self.shape(&[None, None, Some(3)])?;
        self.plain(LeafClass::Image(labels), self.dtype(Some(TensorDType::UInt8))?, shape)
    }

    fn audio(&self) -> Result<FeatureTree> {
        let lazy = self.flag("lazyDecode")?;
        let sample_rate = self.number("sampleRate")?.unwrap_or(0);
        let shape = self.shape(&[None])?;
        let dtype = self.dtype(self.message.is_none().then_some(TensorDType::Int64))?;
        let encoding = self.encoding()?;
        let class = LeafClass::Audio { sample_rate, lazy };
        self.leaf(LeafFeature { encoding, ..LeafFeature::new(class, dtype, shape) })
    }

    /// Returns a leaf whose numbers are stored as a list.
    fn plain(&self, class: LeafClass, dtype: TensorDType, shape: Vec<Option<usize>>) -> Result<FeatureTree> {
        self.leaf(LeafFeature::new(class, dtype, shape))
    }

    /// Checks a leaf.
    fn leaf(&self, leaf: LeafFeature) -> Result<FeatureTree> {
        let wrong = |expected: &str| Err(self.refused(format!("expected {expected}, found {leaf}")));
        let rank = leaf.shape.len();
        let mut sizes = leaf.shape.iter().map(|size| size.unwrap_or(1));
        if sizes.try_fold(1usize, |all, size| all.checked_mul(size)).is_none() {
            return wrong("a shape of at most 2^64 values");
        }
        match leaf.class {
            LeafClass::Image(_) => {
                let of_type = matches!(leaf.dtype, TensorDType::UInt8 | TensorDType::UInt16)
                    || leaf.dtype == TensorDType::Float32 && leaf.shape.last() == Some(&Some(1));
                let channels = matches!(leaf.shape.last(), Some(None | Some(1 | 3 | 4)));
                if !matches!(rank, 3 | 4) || !channels {
                    return wrong("a shape of height, width and channels");
                }
                if !of_type {
                    return wrong("uint8, uint16, or float32 with one channel");
                }
            }
            LeafClass::Video if rank != 4 || leaf.dtype != TensorDType::UInt8 => {
                return wrong("uint8 and a shape of frames, height, width and channels");
            }
            LeafClass::Video if !matches!(leaf.shape.last(), Some(None | Some(1 | 3 | 4))) => {
                return wrong("1, 3 or 4 channels");
            }
            _ => {}
        }
        if leaf.encoding != Encoding::None && leaf.dtype == TensorDType::String {
            return wrong("numbers");
        }
        let complex = matches!(leaf.dtype, TensorDType::Complex64 | TensorDType::Complex128);
        if leaf.encoding == Encoding::None && complex {
            return wrong("complex numbers with the encoding bytes or zlib");
        }
        Ok(FeatureTree::Leaf(Box::new(leaf)))
    }

    /// Returns a shape: of a message an object with dimensions, where -1 is any size, and else a list, where
    /// null is any size. Without one, the old form has the shape `old`, and a message an empty one.
    fn shape(&self, old: &[Option<usize>]) -> Result<Vec<Option<usize>>> {
        let Some(shape) = self.field("shape") else {
            return Ok(if self.message.is_none() { old.to_vec() } else { Vec::new() });
        };
        let sizes = match shape {
            Value::Array(sizes) => sizes.as_slice(),
            Value::Object(fields) => match field(fields, "dimensions") {
                None => &[][..],
                Some(Value::Array(sizes)) => sizes,
                Some(other) => return Err(self.wrong("shape", "a list of dimensions", other)),
            },
            other => return Err(self.wrong("shape", "a shape", other)),
        };
        let size = |value: &Value| match value {
            Value::Null => Ok(None),
            value => match integer(value) {
                Some(-1) => Ok(None),
                Some(size) if size >= 0 => usize::try_from(size).map(Some).map_err(|_| ()),
                _ => Err(()),
            }
            .map_err(|()| self.wrong("shape", "sizes", value)),
        };
        sizes.iter().map(size).collect()
    }

    fn dtype(&self, default: Option<TensorDType>) -> Result<TensorDType> {
        let name = self.text("dtype")?.filter(|name| !name.is_empty());
        let Some(name) = name else {
            return default.ok_or_else(|| self.refused("dtype: expected the name of a type, found none"));
        };
        match name {
            "object" | "str" | "bytes" => Ok(TensorDType::String),
            name => name.parse().map_err(|_| self.refused(format!("dtype: expected a type, found {name:?}"))),
        }
    }

    fn encoding(&self) -> Result<Encoding> {
        let name = self.text("encoding")?.unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "" | "none" => Ok(Encoding::None),
            "bytes" => Ok(Encoding::Bytes),
            "zlib" => Ok(Encoding::Zlib),
            _ => Err(self.refused(format!("encoding: expected none, bytes or zlib, found {name:?}"))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.field(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a text", other)),
        }
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.field(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(name, "true or false", other)),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.field(name) else { return Ok(None) };
        // Older files have a float here.
        let number = integer(value).or_else(|| value.as_f64().map(|float| float as i64));
        let number = number.and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.wrong(name, "a number", value))
    }

    fn labels(&self, name: &str) -> Result<Labels> {
        let classes = match self.number(name)? {
            // The default of a message.
            Some(0) | None => None,
            classes => classes,
        };
        Ok(Labels { classes, names: None })
    }

    /// Returns the labels of the pixels of a picture: a message has a class label, and the old form a number
    /// or the names.
    fn picture_labels(&self) -> Result<Labels> {
        match self.field(if self.message.is_some() { "label" } else { "labels" }) {
            None => Ok(Labels { classes: None, names: None }),
            Some(Value::Object(fields)) => Content { fields, ..*self }.labels("numClasses"),
            Some(Value::Array(names)) => {
                let name = |value: &Value| match value {
                    Value::String(name) => Ok(name.as_str().into()),
                    other => Err(self.wrong("labels", "texts", other)),
                };
                let names = names.iter().map(name).collect::<Result<Vec<Box<str>>>>()?;
                Ok(Labels { classes: Some(names.len() as u64), names: Some(names.into()) })
            }
            Some(_) => self.labels("labels"),
        }
    }
}

/// Reads an integer, which the JSON of messages may have as a text.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    }
}
