//! `DataSetWriter`: a data set of TensorFlow Datasets from records in order, split by split.

use super::writer::{SetOptions, SetWriter};
use crate::error::{PathReason, SplitReason, ToolsError};
use crate::write::reshard::names::OutPattern;
use crate::write::reshard::new_folder::{NewFolder, check_plain, folder_of};
use crate::write::reshard::{ReshardSet, ShardCount};
use std::ops::ControlFlow;
use tfseek::Compression;
use tfseek_tfds::SetMetadata;

/// Maximum number of splits.
const MAX_SPLITS: usize = 10_000;

/// A writer of the folder of a data set that TensorFlow Datasets reads, with the features and the description
/// of another one.
///
/// Shards have the names that TensorFlow Datasets gives by default. The folder gets its name by
/// [`close`](DataSetWriter::close). A writer that is dropped before leaves nothing.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let source = dir.path().join("old");
/// # std::fs::create_dir(&source)?;
/// # std::fs::write(source.join("dataset_info.json"), r#"{"name": "tiny"}"#)?;
/// use std::ops::ControlFlow;
/// use tfseek_tfds::SetMetadata;
/// use tfseek_tools::ToolsError;
/// use tfseek_tools::set::{DataSetWriter, SetOptions};
/// let options = SetOptions::new(dir.path().join("new@2"));
/// let mut writer = DataSetWriter::new(SetMetadata::find(&source, None)?, &options)?;
/// writer.split("train", None, &|_| ControlFlow::Continue(()), |train| {
///     [[0u8], [1], [2]].iter().try_for_each(|payload| train.write(payload)).map_err(ToolsError::from)
/// })?;
/// let sets = writer.close()?;
/// assert_eq!((sets[0].records, sets[0].shards.len()), (3, 2));
/// assert!(dir.path().join("new/tiny-train.tfrecord-00001-of-00002").is_file());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataSetWriter {
    metadata: SetMetadata,
    folder: NewFolder,
    /// Name of the folder as text, which the paths of the shards begin with.
    below: String,
    shards: ShardCount,
    index: bool,
    sets: Vec<ReshardSet>,
}

impl DataSetWriter {
    /// Creates a writer. The options are for each split: `out` is the folder, which is new or empty, and may
    /// end in `@` and the number of shards. Without one, a split has one shard.
    ///
    /// # Errors
    /// [`ToolsError`] for an existing folder, and for options that such a folder cannot have: compression,
    /// members, and force.
    pub fn new(metadata: SetMetadata, options: &SetOptions) -> Result<DataSetWriter, ToolsError> {
        check_plain(options.compression, options.members, options.force)?;
        let (out, shards) = folder_of(&options.out, options.shards)?;
        let folder = NewFolder::create(out, &metadata)?;
        let below = folder
            .path()
            .to_str()
            .map(|path| format!("{path}/"))
            .ok_or_else(|| ToolsError::Path { path: options.out.clone(), reason: PathReason::NotUtf8 })?;
        let shards = shards.unwrap_or(ShardCount::Count(1));
        Ok(DataSetWriter { metadata, folder, below, shards, index: options.index, sets: Vec::new() })
    }

    /// Writes a split: `write` writes its records, whose number is `records` if it is known. `advance` is
    /// called with numbers of bytes copied, and may end the work.
    ///
    /// # Errors
    /// Errors of `write`, and [`ToolsError`]: another split has the name, no split can have it, and errors of
    /// a [`SetWriter`].
    pub fn split<E: From<ToolsError>>(
        &mut self,
        name: &str,
        records: Option<u64>,
        advance: &dyn Fn(u64) -> ControlFlow<()>,
        write: impl FnOnce(&mut SetWriter) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.sets.iter().any(|set| set.split.as_deref() == Some(name)) {
            return Err(ToolsError::Split(SplitReason::Twice(name.to_owned())).into());
        }
        if self.sets.len() >= MAX_SPLITS {
            let found = self.sets.len() + 1;
            return Err(ToolsError::Split(SplitReason::Count { limit: MAX_SPLITS, found }).into());
        }
        let stem = self.metadata.shard_stem(name).map_err(ToolsError::from)?;
        let pattern = OutPattern::of_stem(&self.below, &stem, self.shards);
        let mut options = SetOptions::new(self.folder.path().join(&stem));
        (options.records, options.index) = (records, self.index);
        options.compression = Some(Compression::None);
        let mut writer = SetWriter::of_pattern(pattern, &options)?;
        write(&mut writer)?;
        let mut set = writer.close(advance)?;
        set.split = Some(name.to_owned());
        self.sets.push(set);
        Ok(())
    }

    /// Writes the other files, and gives the folder its name.
    ///
    /// # Errors
    /// [`ToolsError`]: no split was written, another process wrote the folder, and I/O errors.
    pub fn close(self) -> Result<Vec<ReshardSet>, ToolsError> {
        if self.sets.is_empty() {
            return Err(ToolsError::Split(SplitReason::Count { limit: MAX_SPLITS, found: 0 }));
        }
        let DataSetWriter { metadata, folder, mut sets, .. } = self;
        folder.publish(&metadata, &mut sets, |splits| metadata.info_text(splits))?;
        Ok(sets)
    }
}
