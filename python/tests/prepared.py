"""A prepared data set like MNIST, with fewer records, as TensorFlow Datasets leaves it."""

from __future__ import annotations

import json
import pathlib

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
