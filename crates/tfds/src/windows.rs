//! `EpisodeWindows`: windows over the steps of episodes, with the features of their values.

use crate::blank::{black_png, zeros, zlib_zeros};
use crate::compile::{DecodeOptions, Item};
use crate::episodes::{EpisodeLeaf, Episodes, StoredColumn};
use crate::error::{Result, refused_option};
use crate::feature::{FeatureTree, Features, LeafClass, LeafFeature, SequenceFeature, StoredNames};
use std::ops::Range;
use tfseek::column::ColumnOptions;
use tfseek::example::MessageKind;
use tfseek::schema::{DType, ImageSpec};
use tfseek::{Filter, TensorDType};
use tfseek_rlds::{Pad, PadRow, Windows, WindowsBuilder};

/// The steps of a value in a window, relative to its anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// One step. The value has the shape that it has in a step.
    One(i64),
    /// Steps in this order. Their number is the first dimension, and a column `KEY_is_pad` tells which are
    /// outside of the episode.
    Many(Vec<i64>),
}

/// Options of [`Episodes::windows`].
#[derive(Clone, Debug, Default)]
pub struct WindowOptions {
    /// Values in place of steps outside of the episode. Default: the first or the last step.
    pub pad: Pad,
    /// Ranges of steps of episodes, which are the anchors. `None`: all steps.
    pub anchors: Option<Vec<(u64, Range<u64>)>>,
    /// True if pictures that [`pictures`](Self::pictures) does not name are left as the bytes of their files.
    pub encoded: bool,
    /// Pictures by the keys of the window, as in [`DecodeOptions::pictures`].
    pub pictures: Vec<(String, Option<ImageSpec>)>,
    /// Names of keys in the window, where they differ.
    pub names: Vec<(String, String)>,
}

impl WindowOptions {
    /// Returns the name of a key in the window.
    fn name<'n>(&'n self, key: &'n str) -> &'n str {
        self.names.iter().find(|(from, _)| from == key).map_or(key, |(_, to)| to)
    }
}

/// Windows over the steps of episodes: records with the values of several steps.
#[derive(Clone, Debug)]
pub struct EpisodeWindows {
    windows: Windows,
    features: Features,
    decode: DecodeOptions,
}

impl EpisodeWindows {
    /// Returns the windows, and the dataset of their records.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Returns the features of a record.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the options for a decoder of the records.
    pub fn decode(&self) -> &DecodeOptions {
        &self.decode
    }
}

fn tensor(dtype: TensorDType, shape: Vec<Option<usize>>) -> FeatureTree {
    FeatureTree::Leaf(Box::new(LeafFeature::new(LeafClass::Tensor, dtype, shape)))
}

/// Returns the feature of a leaf in sequences with these stated numbers of items.
fn in_sequences(leaf: &LeafFeature, lengths: &[Option<u64>]) -> FeatureTree {
    let item = FeatureTree::Leaf(Box::new(leaf.clone()));
    lengths.iter().rev().fold(item, |feature, length| {
        FeatureTree::Sequence(Box::new(SequenceFeature { feature, length: *length, steps: false }))
    })
}

impl Episodes {
    /// Returns windows with these values. A key is the path of a value of steps, or of the episode with
    /// offset 0.
    ///
    /// A window is a record of flat features: a value for each key, `KEY_is_pad` for each key with several
    /// offsets, and the numbers `_episode` and `_step` of its anchor. With [`Pad::Zero`] pictures that are
    /// decoded must have a known size.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for keys that are no values, for offsets of
    /// values of the episode, and for values without zeros of a known size.
    pub fn windows(
        &self,
        keys: impl IntoIterator<Item = (impl AsRef<str>, Offsets)>,
        options: &WindowOptions,
    ) -> Result<EpisodeWindows> {
        let mut builder = self.steps().windows().pad(options.pad);
        let mut root: Vec<(Box<str>, FeatureTree)> = Vec::new();
        for (key, offsets) in keys {
            let key = key.as_ref();
            let name = options.name(key);
            let leaf = self.parts.leaf(key).ok_or_else(|| self.unknown(key))?;
            if matches!(leaf.item, Item::Unknown) {
                return Err(refused_option(format!(
                    "feature {key:?} is of an unknown class: choose other features"
                )));
            }
            let feature =
                LeafFeature { optional: leaf.feature.optional && !leaf.of_steps, ..leaf.feature.clone() };
            let tree = match (&offsets, leaf.of_steps) {
                (Offsets::One(0), false) => {
                    builder = of_episode(builder, leaf, name);
                    in_sequences(&feature, &leaf.inner)
                }
                (_, false) => {
                    return Err(refused_option(format!(
                        "feature {key:?}: expected offset 0 of a value of episodes, found {offsets:?}"
                    )));
                }
                (Offsets::One(offset), true) => {
                    builder = of_steps(builder, leaf, key, &[*offset], true, options)?;
                    in_sequences(&feature, &leaf.inner)
                }
                (Offsets::Many(offsets), true) => {
                    let len = offsets.len();
                    builder = of_steps(builder, leaf, key, offsets, false, options)?;
                    let flags = format!("{name}_is_pad");
                    builder = builder.flags(&flags, offsets);
                    root.push((flags.into(), tensor(TensorDType::Bool, vec![Some(len)])));
                    in_sequences(&feature, &[&[Some(len as u64)], &*leaf.inner].concat())
                }
            };
            root.push((name.into(), tree));
        }
        if root.is_empty() {
            return Err(refused_option("expected keys of a window, found none"));
        }
        builder = builder.numbers("_episode", "_step");
        root.push(("_episode".into(), tensor(TensorDType::Int64, Vec::new())));
        root.push(("_step".into(), tensor(TensorDType::Int64, Vec::new())));
        if let Some(anchors) = &options.anchors {
            builder = builder.anchors(anchors.iter().cloned());
        }
        let features = Features { root: FeatureTree::Dict(root) };
        let pictures = options.pictures.iter().map(|(key, image)| {
            let image = image.clone().map(|image| ImageSpec {
                crop_with: image.crop_with.map(|key| options.name(&key).to_owned()),
                ..image
            });
            (options.name(key).to_owned(), image)
        });
        let decode = DecodeOptions {
            encoded: options.encoded,
            pictures: pictures.collect(),
            ..DecodeOptions::default()
        };
        Ok(EpisodeWindows { windows: builder.build()?, features, decode })
    }

    /// Returns each step as a record of its own, with the features of a step.
    ///
    /// # Errors
    /// Features of unknown classes.
    pub fn step_records(&self) -> Result<EpisodeWindows> {
        let mut builder = self.steps().windows();
        let options = WindowOptions { encoded: true, ..WindowOptions::default() };
        for leaf in self.parts.leaves.iter().filter(|leaf| leaf.of_steps) {
            builder = of_steps(builder, leaf, self.parts.name(leaf), &[0], true, &options)?;
        }
        let features = Features { root: self.parts.step.clone() };
        let decode = DecodeOptions::default();
        Ok(EpisodeWindows { windows: builder.build()?, features, decode })
    }

    /// Returns the episodes with steps that satisfy a condition, ascending. If it compares values of episodes
    /// only, nothing else is read of them.
    ///
    /// # Errors
    /// Errors of the condition, as of [`Dataset::select`](tfseek::Dataset::select), and of reading.
    pub fn select(&self, condition: &Filter) -> Result<Vec<u64>> {
        let dataset = self.steps().dataset();
        let has_steps = |episode: &u64| self.steps().length(*episode).is_ok_and(|steps| steps > 0);
        let of_episodes = |name: &&str| {
            let leaf = self.parts.leaves.iter().find(|leaf| leaf.path == **name);
            leaf.is_some_and(|leaf| {
                !leaf.of_steps && leaf.columns.iter().all(|column| column.values() == **name)
            })
        };
        let names = condition.features();
        if names.is_empty() || !names.iter().all(of_episodes) {
            let (selected, _) = dataset.select(condition, &ColumnOptions::default())?;
            return Ok(selected.iter().filter(has_steps).collect());
        }
        let anchors = (0..dataset.len()).map(|episode| (episode, 0..1)).collect();
        let options = WindowOptions { anchors: Some(anchors), encoded: true, ..WindowOptions::default() };
        let windows = self.windows(names.iter().map(|name| (*name, Offsets::One(0))), &options)?;
        let windows = windows.windows();
        let mut filter = condition.for_records();
        let mut selected = Vec::new();
        let mut next = 0u64;
        let ids: Vec<u64> = (0..windows.dataset().len()).collect();
        windows.dataset().read_many(&ids, |record| {
            let (episode, _) = windows.locate(next)?;
            next += 1;
            if filter
                .accepts(episode, record.payload(), MessageKind::Example)
                .map_err(|e| e.at(record.at()))?
            {
                selected.push(episode);
            }
            Ok(())
        })?;
        filter.check_names(true)?;
        Ok(selected)
    }

    fn unknown(&self, key: &str) -> crate::TfdsError {
        let names = || self.parts.leaves.iter().map(|leaf| self.parts.name(leaf));
        let hint = match crate::splits::nearest(key, names()) {
            Some(near) => format!("; the nearest name is {near:?}"),
            None => format!("; the names are {}", names().take(20).collect::<Vec<_>>().join(", ")),
        };
        refused_option(format!("expected a value of steps or episodes, found {key:?}{hint}"))
    }
}

/// Adds the stored features of a value of episodes.
fn of_episode(mut builder: WindowsBuilder, leaf: &EpisodeLeaf, key: &str) -> WindowsBuilder {
    for column in &leaf.columns {
        let to = StoredColumn { name: renamed(&column.name, &leaf.path, key), ..column.clone() };
        builder = builder.episode(&column.values(), &to.values());
        for (from, to) in column.lengths().iter().zip(to.lengths()) {
            builder = builder.episode(from, &to);
        }
    }
    builder
}

/// Returns the name of a column of the leaf `path` in a window, where the leaf is `key`.
fn renamed(column: &str, path: &str, key: &str) -> String {
    format!("{key}{}", column.strip_prefix(path).unwrap_or_default())
}

/// Adds the stored features of a value of steps. With `single`, it has one step and no dimension of steps.
fn of_steps(
    mut builder: WindowsBuilder,
    leaf: &EpisodeLeaf,
    key: &str,
    offsets: &[i64],
    single: bool,
    options: &WindowOptions,
) -> Result<WindowsBuilder> {
    for column in &leaf.columns {
        let levels = column.levels.saturating_sub(usize::from(single));
        let name = renamed(&column.name, &leaf.path, options.name(key));
        let to = StoredNames::new(&name, levels);
        let pad = match options.pad {
            // Lists have as many items as the first step's lists.
            Pad::Zero if column.levels > 1 && matches!(leaf.item, Item::Shaped { .. }) => {
                PadRow::ZerosOfFirst
            }
            Pad::Zero => match zero_row(leaf, key, column, options)? {
                PadRow::Zeros if column.levels > 1 => PadRow::ZerosOfFirst,
                row => row,
            },
            _ => PadRow::Zeros,
        };
        builder = builder.rows(&column.values(), &to.values(), offsets, pad);
        // Without the dimension of steps, the numbers of items of the first level are the numbers of all
        // items.
        let skipped = usize::from(single);
        for (level, from) in column.lengths().iter().enumerate().skip(skipped) {
            builder = builder.rows(from, &to.row_lengths(level - skipped), offsets, PadRow::First);
        }
    }
    Ok(builder)
}

/// Returns the stored form of zeros.
fn zero_row(leaf: &EpisodeLeaf, key: &str, column: &StoredColumn, options: &WindowOptions) -> Result<PadRow> {
    let open = || {
        refused_option(format!(
            "feature {key:?}: expected a value of a known size for zeros in its place, found {}",
            leaf.feature
        ))
    };
    let size = || {
        let values = leaf.feature.shape.iter().try_fold(1usize, |all, size| all.checked_mul((*size)?));
        let bytes = leaf.feature.dtype.size().unwrap_or(1);
        values.and_then(|values| values.checked_mul(bytes)).ok_or_else(open)
    };
    if column.kind != DType::Bytes {
        return Ok(PadRow::Zeros);
    }
    Ok(match &leaf.item {
        Item::Packed { zlib: false } => PadRow::String(zeros(key, size()?)?),
        Item::Packed { zlib: true } => PadRow::String(zlib_zeros(key, size()?)?),
        Item::Shaped { .. } => return Err(open()),
        _ if !matches!(leaf.feature.class, LeafClass::Image(_) | LeafClass::Video) => PadRow::Zeros,
        _ => {
            let named = options.pictures.iter().find(|(path, _)| path == key);
            let image = named.and_then(|(_, image)| image.as_ref());
            let encoded = named.map_or(options.encoded, |_| image.is_none());
            let resized = image.and_then(|image| image.size);
            match (&leaf.feature.class, &*leaf.feature.shape) {
                _ if encoded => PadRow::Zeros,
                (LeafClass::Image(_), &[height, width, channels]) => {
                    let made = image.map(|image| usize::from(image.channels));
                    let channels = channels.or(made).ok_or_else(open)?;
                    let side = |of: usize, stated: Option<usize>| {
                        resized
                            .and_then(|size| size.get(of).map(|side| *side as usize))
                            .or(stated)
                            .ok_or_else(open)
                    };
                    let size = [side(0, height)?, side(1, width)?];
                    let (channels, bits) = match leaf.feature.dtype {
                        TensorDType::UInt16 => (channels, 16),
                        // Four channels are the bytes of a float.
                        TensorDType::Float32 => (4, 8),
                        _ => (channels, 8),
                    };
                    PadRow::String(black_png(key, size, channels, bits)?)
                }
                _ => return Err(open()),
            }
        }
    })
}
