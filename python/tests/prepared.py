"""Prepared data sets like MNIST and Bridge, with fewer records, as TensorFlow Datasets leaves them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
from tiny_images import png

import tfseek

CLASSES = "tensorflow_datasets.core.features."


def write_mnist(folder: pathlib.Path) -> None:
    """Writes it to a folder of versions."""
    folder = folder / "3.0.1"
    folder.mkdir(parents=True)
    splits = []
    for split, count in (("train", 60), ("test", 10)):
        with tfseek.Writer(folder / f"mnist-{split}.tfrecord-00000-of-00001") as writer:
            for k in range(count):
                writer.write({"image": png(28, 28, 0), "label": k % 10})
        splits.append({"name": split, "shardLengths": [str(count)]})
    keys = {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}}
    info = {"name": "mnist", "version": "3.0.1", "fileFormat": "tfrecord", "splits": splits, "supervisedKeys": keys}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    image = {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8", "encodingFormat": "png"}
    features = {
        "image": {"pythonClassName": f"{CLASSES}image_feature.Image", "image": image},
        "label": {"pythonClassName": f"{CLASSES}class_label_feature.ClassLabel", "classLabel": {"numClasses": "10"}},
    }
    tree = {"pythonClassName": f"{CLASSES}features_dict.FeaturesDict", "featuresDict": {"features": features}}
    (folder / "features.json").write_text(json.dumps(tree))
    (folder / "label.labels.txt").write_text("\n".join(map(str, range(10))))


def write_bridge(folder: pathlib.Path) -> None:
    """Writes a data set of 14 episodes of 10 steps to a folder of versions."""
    folder = folder / "1.0.0"
    folder.mkdir(parents=True)
    with tfseek.Writer(folder / "bridge_dataset-train.tfrecord-00000-of-00001") as writer:
        for k in range(14):
            record = {
                "steps/observation/image_0": np.array([png(8, 8, 2)] * 10, dtype=object),
                "steps/observation/state": np.arange(70, dtype=np.float32) + k,
                "steps/action": np.arange(70, dtype=np.float32) / 70,
                "steps/language_instruction": np.array([b"put the cup %d away" % k] * 10, dtype=object),
                "episode_metadata/file_path": f"/data/{k}",
            }
            writer.write(record)
    info = {"name": "bridge_dataset", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": ["14"]}]}
    (folder / "dataset_info.json").write_text(json.dumps(info))

    def dict_of(**features: Any) -> dict[str, Any]:
        return {"pythonClassName": f"{CLASSES}features_dict.FeaturesDict", "featuresDict": {"features": features}}

    image = {"shape": {"dimensions": ["8", "8", "3"]}, "dtype": "uint8", "encodingFormat": "png"}
    picture = {"pythonClassName": f"{CLASSES}image_feature.Image", "image": image}
    shape = {"shape": {"dimensions": ["7"]}, "dtype": "float32", "encoding": "none"}
    vector = {"pythonClassName": f"{CLASSES}tensor_feature.Tensor", "tensor": shape}
    text = {"pythonClassName": f"{CLASSES}text_feature.Text", "text": {}}
    step = dict_of(observation=dict_of(image_0=picture, state=vector), action=vector, language_instruction=text)
    steps = {"pythonClassName": f"{CLASSES}dataset_feature.Dataset", "sequence": {"feature": step, "length": "-1"}}
    tree = dict_of(steps=steps, episode_metadata=dict_of(file_path=text))
    (folder / "features.json").write_text(json.dumps(tree))
