//! A small data set of episodes, as robots have (RLDS).

use super::Folder;
use std::fs;
use tfseek::ExampleBuilder;

const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
    "episode_metadata": {"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
        "file_path": {"type": "tensorflow_datasets.core.features.text_feature.Text", "content": {}}}},
    "steps": {"type": "tensorflow_datasets.core.features.dataset_feature.Dataset", "content": {"length": null, "feature":
        {"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
            "action": {"type": "tensorflow_datasets.core.features.tensor_feature.Tensor",
                "content": {"shape": [2], "dtype": "float32", "encoding": "none"}},
            "image": {"type": "tensorflow_datasets.core.features.image_feature.Image",
                "content": {"shape": [2, 2, 3], "dtype": "uint8", "encodingFormat": "png"}},
            "is_first": {"type": "tensorflow_datasets.core.features.scalar.Scalar", "content": {"shape": [], "dtype": "bool"}},
            "is_last": {"type": "tensorflow_datasets.core.features.scalar.Scalar", "content": {"shape": [], "dtype": "bool"}},
            "mode": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 2}}
        }}}}}}"#;

/// A picture of 2 x 2 pixels, and one that is 3 pixels wide.
pub(crate) const SQUARE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0\xfd\xd4\x9a\x73\0\0\0\x10IDAT\
    \x78\xda\x63\x38\xc1\x25\x07\x44\x0c\x10\x0a\0\x1c\xf6\x03\xc1\x0c\xd9\xe9\xc4\0\0\0\0IEND\xae\x42\x60\x82";
pub(crate) const WIDE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0\x12\x16\xf1\x4d\0\0\0\x10IDAT\
    \x78\xda\x63\x38\xc1\x25\x07\x41\x0c\x70\x16\0\x3c\x50\x05\xa1\xdf\xc3\x6a\xbc\0\0\0\0IEND\xae\x42\x60\x82";

/// The values of an episode.
pub(crate) struct Episode {
    pub(crate) actions: Vec<f32>,
    pub(crate) images: Vec<Vec<u8>>,
    pub(crate) first: Vec<i64>,
    pub(crate) last: Vec<i64>,
}

impl Episode {
    /// Returns a sound episode of this number of steps. Action `t` of episode `e` is `[e, t]`.
    pub(crate) fn new(number: usize, steps: usize) -> Episode {
        let flags = |at: Option<usize>| (0..steps).map(|t| i64::from(Some(t) == at)).collect();
        Episode {
            actions: (0..steps).flat_map(|t| [number as f32, t as f32]).collect(),
            images: vec![SQUARE.to_vec(); steps],
            first: flags(Some(0)),
            last: flags(steps.checked_sub(1)),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let modes = self.first.iter().map(|first| 1 - first);
        let example = ExampleBuilder::new().float("steps/action", self.actions.clone());
        let example = example.bytes("steps/image", self.images.clone());
        let example = example.int64("steps/is_first", self.first.clone());
        let example = example.int64("steps/is_last", self.last.clone());
        let example = example.int64("steps/mode", modes);
        example.bytes("episode_metadata/file_path", ["a.h5"]).encode().unwrap()
    }
}

impl Folder {
    /// Writes the data set `robot` with the split `train`, each list of episodes a shard.
    pub(crate) fn robot(&self, shards: &[&[Vec<u8>]]) {
        fs::create_dir_all(self.path("robot")).unwrap();
        fs::write(self.path("robot/features.json"), FEATURES).unwrap();
        fs::write(self.path("robot/steps-mode.labels.txt"), "still\nmoving\n").unwrap();
        let lengths: Vec<_> = shards.iter().map(|shard| shard.len().to_string()).collect();
        let info = serde_json::json!({
            "name": "robot", "version": "1.0.0", "fileFormat": "tfrecord",
            "splits": [{"name": "train", "shardLengths": lengths,
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}],
        });
        fs::write(self.path("robot/dataset_info.json"), info.to_string()).unwrap();
        for (k, episodes) in shards.iter().enumerate() {
            self.shard(&format!("robot/robot-train.tfrecord-{k:05}-of-{:05}", shards.len()), *episodes);
        }
    }
}

/// Returns sound episodes with these numbers of steps, numbered from `first` on.
pub(crate) fn episodes(first: usize, steps: &[usize]) -> Vec<Vec<u8>> {
    steps.iter().enumerate().map(|(k, steps)| Episode::new(first + k, *steps).encode()).collect()
}
