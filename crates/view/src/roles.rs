//! Roles of features: image, label, boxes and others, guessed from a few records.
//!
//! Magic bytes come first, then names. docs/view.md has the table.

use crate::media::{decoded, is_one_array, payload_type};
use crate::set::ViewSet;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tfseek::{DType, Feature};
use tfseek_tools::Content;

/// Number of records from which roles are guessed.
pub(crate) const RECORDS: u64 = 16;
/// Number of values of a feature that is shown as a curve.
const LONG: usize = 64;
/// Most lines of an array that is drawn as lines. A picture has more rows and columns.
pub(crate) const FEW: usize = 8;
/// Number of features that are considered.
const MAX_FEATURES: usize = 1000;

const IMAGES: [&str; 7] = ["image/encoded", "image", "image_raw", "encoded", "jpeg", "img", "frame"];
const LABELS: [&str; 6] =
    ["image/class/text", "image/class/label", "label", "class", "target", "image/object/class/text"];
const NAMES: [&str; 6] = ["image/filename", "image/source_id", "filename", "file_name", "id", "key"];
const HEIGHTS: [&str; 3] = ["image/height", "height", "rows"];
const WIDTHS: [&str; 3] = ["image/width", "width", "cols"];
const DEPTHS: [&str; 4] = ["image/channels", "depth", "channels", "image/depth"];
const RATES: [&str; 4] = ["sample_rate", "rate", "audio/sample_rate", "sampling_rate"];
const MASKS: [&str; 2] = ["image/segmentation/class/encoded", "image/object/mask"];
const BOXES: [[&str; 2]; 3] = [["objects/bbox", "objects/label"], ["bbox", "label"], ["boxes", "labels"]];

/// Observations of one feature.
#[derive(Debug, Default)]
pub(crate) struct SeenFeature {
    pub(crate) kind: Option<DType>,
    /// Records with the feature.
    pub(crate) records: u64,
    pub(crate) is_list: bool,
    /// A value, for examples of conditions: the first number or short text.
    pub(crate) example: Option<Value>,
    /// The most values of a record.
    pub(crate) most: usize,
    /// The type of the first value, from its first bytes.
    media: Option<&'static str>,
    /// Number of values in each record, if it is always the same.
    values: Option<usize>,
    /// Number of bytes of the first value, if it is always the same.
    bytes: Option<usize>,
    all_fours: bool,
    /// An int64 or float value, if it is always the same.
    number: Option<f64>,
    /// One to eight int64 values, if they are always the same.
    shape: Option<Vec<i64>>,
    /// A record has one to eight int64 values.
    has_shape: bool,
}

/// The features of some records.
#[derive(Debug, Default)]
pub(crate) struct SeenFeatures {
    pub(crate) features: BTreeMap<String, SeenFeature>,
    pub(crate) lists: BTreeMap<String, SeenFeature>,
}

impl SeenFeatures {
    /// Reads records that are spread over a set. Records that cannot be read are left out.
    pub(crate) fn of(set: &ViewSet) -> SeenFeatures {
        let mut seen = SeenFeatures::default();
        for i in set.spread(RECORDS) {
            // The page of the record has the error.
            let _ = set.with_content(i, |content, _| seen.add(content));
        }
        seen
    }

    fn add(&mut self, content: &Content<'_>) {
        match content {
            Content::Example(features) => {
                features.iter().for_each(|(name, feature)| add(&mut self.features, name, *feature, false));
            }
            Content::Sequence(context, lists) => {
                context.iter().for_each(|(name, feature)| add(&mut self.features, name, *feature, false));
                for (name, list) in lists {
                    let step = list.iter().find(|step| step.kind().is_some()).unwrap_or(Feature::None);
                    add(&mut self.lists, name, step, true);
                }
            }
            Content::Raw => {}
        }
    }

    fn has(&self, name: &str, kind: DType) -> bool {
        self.features.get(name).is_some_and(|seen| seen.kind == Some(kind))
    }

    fn first<'n>(&self, names: &[&'n str], fits: impl Fn(&SeenFeature) -> bool) -> Option<&'n str> {
        names.iter().copied().find(|name| self.features.get(*name).is_some_and(&fits))
    }

    fn find(&self, fits: impl Fn(&SeenFeature) -> bool) -> Option<&str> {
        self.features.iter().find(|(_, seen)| fits(seen)).map(|(name, _)| name.as_str())
    }

    fn media(&self, prefix: &str) -> Option<&str> {
        self.find(|seen| seen.media.is_some_and(|media| media.starts_with(prefix)))
    }

    /// Returns the roles as the page takes them.
    pub(crate) fn roles(&self) -> Map<String, Value> {
        let is_image = |seen: &SeenFeature| seen.media.is_some_and(|media| media.starts_with("image/"));
        let masks: Vec<_> = MASKS.into_iter().filter(|name| self.has(name, DType::Bytes)).collect();
        let image = self.first(&IMAGES, is_image).or_else(|| {
            self.features
                .iter()
                .find(|(name, seen)| is_image(seen) && !masks.contains(&name.as_str()))
                .map(|(name, _)| name.as_str())
        });
        let is_one_number = |seen: &SeenFeature| seen.kind == Some(DType::Int64);
        let height = self.first(&HEIGHTS, is_one_number);
        let width = self.first(&WIDTHS, is_one_number);
        let is_label = |seen: &SeenFeature| seen.kind.is_some() && seen.media.is_none();
        let name_fits = |seen: &SeenFeature| {
            matches!(seen.kind, Some(DType::Bytes | DType::Int64)) && seen.media.is_none()
        };
        let audio = self.media("audio/").or_else(|| {
            let is_long = |seen: &SeenFeature| {
                matches!(seen.kind, Some(DType::Float32 | DType::Int64))
                    && seen.values.is_some_and(|n| n >= 1000)
            };
            self.first(&["audio", "speech", "waveform"], is_long)
        });
        let rate = self.first(&RATES, |seen| matches!(seen.kind, Some(DType::Int64 | DType::Float32)));
        let pixels = if image.is_none() { self.pixels(height, width, audio) } else { None };
        let json = json!({
            "image": image,
            "pixels": pixels,
            "arrays": self.arrays(),
            "label": self.first(&LABELS, is_label),
            "name": self.first(&NAMES, name_fits),
            "boxes": self.boxes(),
            "mask": masks,
            "points": self.points(),
            "height": height,
            "width": width,
            "audio": audio,
            "rate": rate,
            "video": self.media("video/"),
            "sequence": self.lists.keys().take(MAX_FEATURES).collect::<Vec<_>>(),
        });
        match json {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Returns whether cards have something to show besides values: pictures, sound, film, or curves.
    pub(crate) fn has_cards(&self, roles: &Map<String, Value>) -> bool {
        let shown = ["image", "pixels", "boxes", "points", "audio", "video"];
        // Arrays of one dimension are curves.
        let is_line = |array: &Value| match &array["shape"] {
            Value::String(name) => self.features.get(name).is_some_and(|shape| shape.values == Some(1)),
            sides => sides.as_array().is_some_and(|sides| sides.len() == 1),
        };
        let arrays = roles.get("arrays").and_then(Value::as_object);
        let is_curve = |seen: &SeenFeature| {
            let is_number = matches!(seen.kind, Some(DType::Float32 | DType::Int64));
            is_number && seen.is_list || seen.kind == Some(DType::Float32) && seen.most >= LONG
        };
        shown.iter().any(|role| roles.get(*role).is_some_and(|role| !role.is_null()))
            || arrays.is_some_and(|arrays| arrays.values().any(is_line))
            || self.lists.values().any(|seen| seen.media.is_some())
            || self.features.values().chain(self.lists.values()).any(is_curve)
    }

    fn boxes(&self) -> Option<Value> {
        let side = |name: &str| format!("image/object/bbox/{name}");
        if ["xmin", "ymin", "xmax", "ymax"].iter().all(|name| self.features.contains_key(&side(name))) {
            let text = ["image/object/class/text", "image/object/class/label"];
            let text = self.first(&text, |seen| seen.kind.is_some());
            return Some(json!({
                "xmin": side("xmin"), "ymin": side("ymin"), "xmax": side("xmax"), "ymax": side("ymax"), "text": text,
            }));
        }
        let (feature, text) = BOXES.into_iter().find_map(|[feature, text]| {
            let seen = self.features.get(feature)?;
            (seen.kind == Some(DType::Float32) && seen.all_fours).then_some((feature, text))
        })?;
        let text = self.features.contains_key(text).then_some(text);
        Some(json!({ "feature": feature, "order": "yxyx", "text": text }))
    }

    fn points(&self) -> Option<Value> {
        let [x, y] = ["image/object/keypoint/x", "image/object/keypoint/y"];
        (self.has(x, DType::Float32) && self.has(y, DType::Float32)).then(|| json!({ "x": x, "y": y }))
    }

    /// Returns the feature whose values are pixels: of height x width x depth values by the features of these
    /// names, or by its own name, as a square with 1, 3 or 4 channels.
    fn pixels(&self, height: Option<&str>, width: Option<&str>, audio: Option<&str>) -> Option<Value> {
        let count = |seen: &SeenFeature| match seen.kind {
            Some(DType::Bytes) if seen.media.is_none() => seen.bytes,
            Some(DType::Float32 | DType::Int64) => seen.values,
            _ => None,
        };
        if let Some(pixels) = self.features.iter().find_map(|(name, seen)| self.shaped(name, seen)) {
            return Some(pixels);
        }
        let depth = self.first(&DEPTHS, |seen| seen.kind == Some(DType::Int64));
        let number = |name: Option<&str>| name.and_then(|name| self.features.get(name)?.number);
        let candidates = IMAGES.iter().copied().filter(|name| self.features.contains_key(*name));
        let all = self.features.keys().map(String::as_str);
        for name in candidates.chain(all).filter(|name| Some(*name) != audio) {
            let Some(seen) = self.features.get(name) else { continue };
            if let (Some(height), Some(width)) = (height, width) {
                let sides = number(Some(height)).zip(number(Some(width)));
                let is_named = IMAGES.contains(&name);
                let fits = match (sides, count(seen)) {
                    (Some((h, w)), Some(n)) => {
                        let n = n as f64;
                        h * w > 0.0 && [1.0, 3.0, 4.0].contains(&(n / (h * w)))
                    }
                    // Sizes that differ between records.
                    _ => is_named && seen.media.is_none() && seen.kind.is_some(),
                };
                if fits {
                    return Some(
                        json!({ "feature": name, "height": height, "width": width, "depth": depth }),
                    );
                }
            } else if let Some((side, depth)) =
                count(seen).filter(|_| sounds_like_an_image(name)).and_then(square)
            {
                return Some(json!({ "feature": name, "height": side, "width": side, "depth": depth }));
            }
        }
        None
    }
}

impl SeenFeatures {
    /// Returns the pixels of raw bytes that have a shape beside them.
    fn shaped(&self, name: &str, seen: &SeenFeature) -> Option<Value> {
        let bytes = seen.bytes?;
        let sides = self.shape_of(name, seen)?.1.shape.as_deref()?;
        let (n, sides) = product(sides)?;
        let is_array = bytes.is_multiple_of(n) && [1, 2, 4].contains(&(bytes / n));
        let (height, width, depth) = match sides[..] {
            [height, width] => (height, width, 1),
            [height, width, depth @ (1 | 3 | 4)] | [1, height, width, depth @ (1 | 3 | 4)] => {
                (height, width, depth)
            }
            _ => return None,
        };
        let is_picture = is_array && height.min(width) > FEW;
        is_picture.then(|| json!({ "feature": name, "height": height, "width": width, "depth": depth }))
    }

    /// Returns the feature beside raw bytes that has their shape, such as `frames/shape` for
    /// `frames/encoded`, or `x_shape` for `x`.
    fn shape_of(&self, name: &str, seen: &SeenFeature) -> Option<(String, &SeenFeature)> {
        (seen.kind == Some(DType::Bytes) && seen.media.is_none()).then_some(())?;
        let dir = name.rsplit_once('/').map_or("shape".to_owned(), |(dir, _)| format!("{dir}/shape"));
        [format!("{name}_shape"), format!("{name}/shape"), dir].into_iter().find_map(|beside| {
            let shape = self.features.get(&beside).filter(|seen| seen.has_shape)?;
            Some((beside, shape))
        })
    }

    /// Returns the shapes of raw bytes, each as numbers, or as the name of the feature that has it. Bytes
    /// that do not fit their shape are left out.
    fn arrays(&self) -> Map<String, Value> {
        let array = |(name, seen): (&String, &SeenFeature)| {
            let (beside, shape) = self.shape_of(name, seen)?;
            let fits = match (&shape.shape, seen.bytes) {
                (Some(sides), Some(bytes)) => {
                    let (n, _) = product(sides)?;
                    bytes.is_multiple_of(n) && [1, 2, 4, 8].contains(&(bytes / n))
                }
                // A folder may have texts of any length beside its shape.
                _ => beside.starts_with(name.as_str()),
            };
            fits.then(|| (name.clone(), json!({ "shape": beside })))
        };
        self.features.iter().filter_map(array).collect()
    }
}

/// Returns the number of values of a shape, and its sides. `None` if a side is not positive.
fn product(sides: &[i64]) -> Option<(usize, Vec<usize>)> {
    let sides: Vec<usize> = sides.iter().map(|side| usize::try_from(*side).ok()).collect::<Option<_>>()?;
    let n = sides.iter().try_fold(1_usize, |n, side| n.checked_mul(*side)).filter(|n| *n > 0)?;
    Some((n, sides))
}

/// Returns true for names of images. Embeddings and token ids often have a square number of values too.
fn sounds_like_an_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["image", "img", "pixel", "picture", "photo", "frame", "digit"].iter().any(|word| name.contains(word))
}

/// Returns the side and the channels of `n` values that are a square image of at least 8 x 8 pixels.
fn square(n: usize) -> Option<(usize, usize)> {
    [1, 3, 4].into_iter().find_map(|depth| {
        let side = (n / depth).isqrt();
        (side >= 8 && side.checked_mul(side)?.checked_mul(depth)? == n).then_some((side, depth))
    })
}

fn add(seen: &mut BTreeMap<String, SeenFeature>, name: &str, feature: Feature<'_>, is_list: bool) {
    if seen.len() >= MAX_FEATURES && !seen.contains_key(name) {
        return;
    }
    let seen = seen.entry(name.to_owned()).or_default();
    let first = seen.records == 0;
    seen.records += 1;
    seen.is_list = is_list;
    if seen.kind.is_none() {
        seen.kind = feature.kind();
    }
    let n = feature.len();
    seen.most = seen.most.max(n);
    if seen.example.is_none() {
        seen.example = example(feature);
    }
    same(&mut seen.values, n, first);
    seen.all_fours = (first || seen.all_fours) && n.is_multiple_of(4);
    match feature {
        Feature::Bytes(list) => {
            let value = list.first().unwrap_or_default();
            if seen.media.is_none() {
                seen.media = payload_type(&decoded(value));
            }
            let len = if is_one_array(list) { n } else { value.len() };
            same(&mut seen.bytes, len, first);
        }
        Feature::Int64(list) if (1..=8).contains(&n) => {
            seen.has_shape = true;
            same(&mut seen.shape, list.iter().collect(), first);
            if n == 1 {
                same(&mut seen.number, list.first().unwrap_or(0) as f64, first);
            }
        }
        Feature::Float(list) if n == 1 => {
            same(&mut seen.number, list.first().unwrap_or(0.0).into(), first);
        }
        _ => {}
    }
}

/// Returns the first value of a feature if it is a finite number or a short text.
fn example(feature: Feature<'_>) -> Option<Value> {
    match feature {
        Feature::Int64(list) => list.first().filter(|x| x.unsigned_abs() <= 1 << 53).map(Value::from),
        Feature::Float(list) => list
            .first()
            .filter(|x| x.is_finite())
            .and_then(|x| x.to_string().parse::<f64>().ok())
            .map(Value::from),
        Feature::Bytes(list) => {
            let text = str::from_utf8(list.first()?).ok()?;
            let is_short = (1..=24).contains(&text.len()) && !text.chars().any(char::is_control);
            is_short.then(|| text.into())
        }
        Feature::None => None,
    }
}

/// Sets `value` while it is the same for each record, and to `None` afterwards.
fn same<T: PartialEq>(value: &mut Option<T>, next: T, first: bool) {
    if first {
        *value = Some(next);
    } else if value.as_ref() != Some(&next) {
        *value = None;
    }
}

/// Returns the given roles, and the guessed ones for the others.
///
/// # Errors
/// The name of a role that does not exist.
pub(crate) fn with_given(
    mut guessed: Map<String, Value>,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    for (role, value) in given {
        match guessed.get_mut(role) {
            Some(slot) => *slot = value.clone(),
            None => {
                let roles: Vec<_> = guessed.keys().map(String::as_str).collect();
                return Err(format!(
                    "expected a role ({}), found \"{}\"",
                    roles.join(", "),
                    role.escape_debug()
                ));
            }
        }
    }
    Ok(guessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_have_one_three_or_four_channels() {
        assert_eq!(
            [784, 3072, 4096, 785, 0, 48].map(square),
            [Some((28, 1)), Some((32, 3)), Some((64, 1)), None, None, None]
        );
    }

    #[test]
    fn only_names_of_images_make_a_square_an_image() {
        let pixels = |name: &str| {
            let values: Vec<_> = (0..784).collect();
            let payload = tfseek::ExampleBuilder::new().int64(name, values).encode().unwrap();
            let mut seen = SeenFeatures::default();
            seen.add(&Content::decode(&payload, tfseek::example::MessageKind::Example).unwrap());
            seen.roles()["pixels"]["height"].as_u64()
        };
        assert_eq!(["image_floats", "Images", "raw_pixels"].map(pixels), [Some(28); 3]);
        assert_eq!(["embedding", "ids", "label/encoded", "sequence"].map(pixels), [None; 4]);
    }

    #[test]
    fn raw_bytes_with_a_shape_beside_them_are_pixels() {
        let pixels = |shape_name: &str, shape: &[i64]| {
            let example = tfseek::ExampleBuilder::new().bytes("reads/encoded", [vec![1; 480]]);
            let payload = example.int64(shape_name, shape.to_vec()).encode().unwrap();
            let mut seen = SeenFeatures::default();
            seen.add(&Content::decode(&payload, tfseek::example::MessageKind::Example).unwrap());
            seen.roles()["pixels"].clone()
        };
        let expected =
            |depth: u32| json!({ "feature": "reads/encoded", "height": 12, "width": 10, "depth": depth });
        assert_eq!(pixels("reads/shape", &[12, 10, 1]), expected(1), "float32");
        assert_eq!(pixels("reads/encoded_shape", &[12, 10, 4]), expected(4), "uint8");
        assert_eq!(pixels("reads/shape", &[12, 11, 1]), Value::Null);
        assert_eq!(pixels("reads/shape", &[-12, 10]), Value::Null);
        assert_eq!(pixels("other/shape", &[12, 10, 1]), Value::Null);
    }

    #[test]
    fn other_bytes_with_a_shape_are_arrays() {
        let seen_of = |records: &[(usize, &[i64])]| {
            let mut seen = SeenFeatures::default();
            for (bytes, shape) in records {
                let example = tfseek::ExampleBuilder::new().bytes("x", [vec![1; *bytes]]);
                let payload = example.int64("x_shape", shape.to_vec()).encode().unwrap();
                seen.add(&Content::decode(&payload, tfseek::example::MessageKind::Example).unwrap());
            }
            seen
        };
        let found = |records: &[(usize, &[i64])]| {
            let seen = seen_of(records);
            let roles = seen.roles();
            (roles["arrays"].get("x").is_some(), roles["pixels"].is_object(), seen.has_cards(&roles))
        };
        assert_eq!(found(&[(80, &[20])]), (true, false, true), "a curve");
        assert_eq!(found(&[(80, &[20]), (40, &[10])]), (true, false, true), "curves of other lengths");
        assert_eq!(found(&[(600, &[50, 3])]), (true, false, false), "three lines");
        assert_eq!(found(&[(4800, &[5, 12, 20])]), (true, false, false), "slices");
        assert_eq!(found(&[(960, &[12, 20])]), (true, true, true), "a picture");
        let example =
            |n| tfseek::ExampleBuilder::new().bytes("x/name", [vec![b'a'; n]]).int64("x/shape", [20]);
        let mut texts = SeenFeatures::default();
        for payload in [5, 7].map(|n| example(n).encode().unwrap()) {
            texts.add(&Content::decode(&payload, tfseek::example::MessageKind::Example).unwrap());
        }
        assert_eq!(texts.roles()["arrays"], json!({}));
        assert_eq!(found(&[(81, &[20])]), (false, false, false), "no whole values");
        assert_eq!(found(&[(80, &[-20])]), (false, false, false), "no shape");
        assert_eq!(seen_of(&[(80, &[20])]).roles()["arrays"], json!({ "x": { "shape": "x_shape" } }));
    }

    #[test]
    fn unknown_roles_are_named() {
        let guessed = || SeenFeatures::default().roles();
        let given = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let roles = with_given(guessed(), &given(r#"{"label": "y"}"#)).unwrap();
        assert_eq!(roles.get("label"), Some(&json!("y")));
        assert!(with_given(guessed(), &given(r#"{"lable": "y"}"#)).unwrap_err().contains("found \"lable\""));
    }
}
