//! Roles of features by a `features.json`, instead of those that are guessed from records.

use crate::roles::{FEW, SeenFeatures, with_given};
use crate::set::ViewSet;
use serde_json::{Map, Value, json};
use tfseek::TensorDType;
use tfseek_tfds::{Encoding, FoundFeatures, LeafClass, LeafFeature, StoredFeature};

/// Returns the roles of a set's features: the given ones, and for the others the declared or guessed ones.
///
/// # Errors
/// The name of a given role that does not exist.
pub(crate) fn roles(
    set: &ViewSet,
    seen: &SeenFeatures,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut roles = seen.roles();
    add_to(&mut roles, &set.features);
    with_given(roles, given)
}

/// Replaces guessed roles by the roles of declared features. A guess stays if its feature is declared as fit
/// for the role, or if no other is.
fn add_to(roles: &mut Map<String, Value>, found: &FoundFeatures) {
    let Some(features) = &found.features else { return };
    let stored = features.stored();
    // The fewest sequences first: the feature of a record before its objects' features.
    let of_class = |fits: &dyn Fn(&LeafClass) -> bool| {
        let mut fit: Vec<_> = stored.iter().filter(|one| fits(&one.leaf.class)).collect();
        fit.sort_by_key(|one| one.sequences.len());
        fit
    };
    let masks = of_class(&|class| matches!(class, LeafClass::Image(Some(_))));
    let pictures = of_class(&|class| matches!(class, LeafClass::Image(None) | LeafClass::Video));
    choose(roles, "image", if pictures.is_empty() { &masks } else { &pictures });
    let image = roles.get("image").cloned().unwrap_or_default();
    let masks: Vec<_> = masks.iter().map(|one| &one.name).filter(|name| image != name.as_str()).collect();
    if !masks.is_empty() {
        roles.insert("mask".into(), json!(masks));
    }
    let mut labels = of_class(&|class| matches!(class, LeafClass::Label(_)));
    labels.retain(|one| one.sequences.is_empty());
    choose(roles, "label", &labels);
    if let Some(boxes) =
        of_class(&|class| matches!(class, LeafClass::Box(_))).into_iter().find_map(|one| boxes(one, &stored))
    {
        roles.insert("boxes".into(), boxes);
    }
    // The samples of several channels are interleaved, which the player does not know.
    let mut audio = of_class(&|class| matches!(class, LeafClass::Audio { .. }));
    audio.retain(|one| one.sequences.is_empty() && one.leaf.shape.len() <= 1);
    choose(roles, "audio", &audio);
    let rate = audio.iter().find(|one| roles.get("audio").is_some_and(|name| *name == one.name.as_str()));
    if let Some(LeafClass::Audio { sample_rate: rate @ 1.., .. }) = rate.map(|one| &one.leaf.class) {
        roles.insert("rate".into(), json!(rate));
    }
    if image.is_null()
        && let Some(pixels) = stored.iter().find_map(pixels)
    {
        roles.insert("pixels".into(), pixels);
    }
    let arrays = stored.iter().filter_map(|one| Some((one.name.clone(), array(one)?)));
    if let Some(Value::Object(all)) = roles.get_mut("arrays") {
        all.extend(arrays);
    }
}

/// Sets a role to the first of these features, unless it is one of them.
fn choose(roles: &mut Map<String, Value>, role: &str, fit: &[&StoredFeature<'_>]) {
    let guess = roles.get(role).and_then(Value::as_str);
    if let Some(first) = fit.first().filter(|_| !fit.iter().any(|one| Some(&*one.name) == guess)) {
        roles.insert(role.to_owned(), first.name.as_str().into());
    }
}

/// Returns the role of boxes, with the label beside them. `None` for an order of sides that the page does not
/// draw.
fn boxes(one: &StoredFeature<'_>, stored: &[StoredFeature<'_>]) -> Option<Value> {
    let LeafClass::Box(order) = &one.leaf.class else { return None };
    let order = match order.strip_prefix("REL_").unwrap_or(order) {
        "" | "YXYX" => "yxyx",
        "XYXY" => "xyxy",
        "XYWH" => "xywh",
        _ => return None,
    };
    let dict = |path: &str| path.rsplit_once('/').map_or(String::new(), |(dict, _)| dict.to_owned());
    let is_beside = |other: &&StoredFeature<'_>| {
        other.leaf.labels().is_some()
            && other.sequences.len() == one.sequences.len()
            && dict(&other.path) == dict(&one.path)
    };
    let text = stored.iter().find(is_beside).map(|label| &label.name);
    Some(json!({ "feature": one.name, "order": order, "text": text }))
}

/// Returns the role of pixels for a tensor of their shape that is stored as bytes.
fn pixels(one: &StoredFeature<'_>) -> Option<Value> {
    let is_drawn = matches!(one.leaf.dtype, TensorDType::UInt8 | TensorDType::UInt16 | TensorDType::Float32);
    if one.leaf.encoding == Encoding::None || !is_drawn || !one.sequences.is_empty() {
        return None;
    }
    let (height, width, depth) = match *one.leaf.shape {
        [Some(height), Some(width)] if height.min(width) > FEW => (height, width, 1),
        [Some(height), Some(width), Some(depth @ (1 | 3 | 4))] => (height, width, depth),
        _ => return None,
    };
    Some(json!({ "feature": one.name, "height": height, "width": width, "depth": depth }))
}

/// Returns the shape and the type of a tensor that is stored as bytes, or as the numbers of several
/// dimensions. A side that varies is null.
fn array(one: &StoredFeature<'_>) -> Option<Value> {
    let LeafFeature { class: LeafClass::Tensor, dtype, shape, encoding, .. } = one.leaf else { return None };
    let is_bytes = *encoding != Encoding::None;
    let mut sides = shape.to_vec();
    match one.sequences.len() {
        0 => {}
        // Byte strings of a sequence are an array each.
        1 if !is_bytes => sides.insert(0, None),
        _ => return None,
    }
    let is_number = !matches!(
        dtype,
        TensorDType::String | TensorDType::Complex64 | TensorDType::Complex128 | TensorDType::BFloat16
    );
    let unknown = sides.iter().filter(|side| side.is_none()).count();
    // Numbers of one dimension are drawn without a shape.
    let is_drawn = is_number && unknown < 2 && sides.len() > usize::from(!is_bytes);
    is_drawn
        .then(|| json!({ "shape": sides, "dtype": dtype.to_string(), "zlib": *encoding == Encoding::Zlib }))
}
