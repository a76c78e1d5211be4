"""``tfseek.reshard`` of data sets that TensorFlow Datasets prepared, read with its own code where it is installed."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import tfseek

CLASSES = "tensorflow_datasets.core.features."
TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


def feature(name: str, **content: Any) -> dict[str, Any]:
    return {"pythonClassName": CLASSES + name, **content}


@pytest.fixture
def prepared(tmp_path: pathlib.Path) -> pathlib.Path:
    """A data set as TensorFlow Datasets writes it: 7 records in two shards, and 3 in one."""
    folder = tmp_path / "data" / "tiny" / "1.0.0"
    folder.mkdir(parents=True)
    splits = []
    for name, lengths in [("train", [5, 2]), ("test", [3])]:
        size, i = 0, 0
        for shard, length in enumerate(lengths):
            with tfseek.Writer(folder / f"tiny-{name}.tfrecord-{shard:05}-of-{len(lengths):05}") as writer:
                for _ in range(length):
                    writer.write({"label": i % 2, "text": f"{name} {i}", "boxes": np.full(4 * i, i, np.float32)})
                    i += 1
        for path in folder.glob(f"tiny-{name}*"):
            size += path.stat().st_size
        size -= 16 * sum(lengths)
        splits.append({"name": name, "shardLengths": [str(n) for n in lengths], "numBytes": str(size), "filepathTemplate": TEMPLATE})
    info = {"name": "tiny", "version": "1.0.0", "fileFormat": "tfrecord", "moduleName": "tiny", "description": "Made \N{SNOWMAN}", "splits": splits}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    boxes = feature("bounding_boxes.BBoxFeature", boundingBox={"shape": {"dimensions": ["4"]}, "dtype": "float32"})
    features = {
        "label": feature("class_label_feature.ClassLabel", classLabel={"numClasses": "2"}),
        "text": feature("text_feature.Text", text={}),
        "boxes": feature("sequence_feature.Sequence", sequence={"feature": boxes, "length": "-1"}),
    }
    (folder / "features.json").write_text(json.dumps(feature("features_dict.FeaturesDict", featuresDict={"features": features})))
    (folder / "label.labels.txt").write_text("cat\ndog\n")
    return folder


def texts(folder: pathlib.Path, split: str) -> list[str]:
    return [record["text"][0].decode() for path in sorted(folder.glob(f"tiny-{split}*")) for record in tfseek.stream(path)]


def test_a_copy_has_its_splits_and_files(prepared: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "new" / "tiny" / "1.0.0"
    found = tfseek.reshard(prepared, f"{out}@3", where="label == 1 or record in 0..3")
    assert [(part.split, part.path, len(part.shards)) for part in found.sets] == [
        ("train", str(out / "tiny-train.tfrecord@3"), 3),
        ("test", str(out / "tiny-test.tfrecord@3"), 3),
    ]
    assert texts(out, "train") == [f"train {i}" for i in (0, 1, 2, 3, 5)]
    assert texts(out, "test") == ["test 1"]
    for name in ["features.json", "label.labels.txt"]:
        assert (out / name).read_bytes() == (prepared / name).read_bytes()
    info = json.loads((out / "dataset_info.json").read_text())
    old = json.loads((prepared / "dataset_info.json").read_text())
    assert {**info, "splits": 0} == {**old, "splits": 0}
    assert [split["shardLengths"] for split in info["splits"]][1] == ["0", "0", "1"]
    assert os.listdir(tmp_path / "new" / "tiny") == ["1.0.0"]


def test_refused_options_and_outputs(prepared: pathlib.Path, tmp_path: pathlib.Path) -> None:
    refused: list[dict[str, Any]] = [{"split": {"a": 1.0}}, {"drop": "text"}, {"compression": "gzip"}, {"force": True}]
    for options in refused:
        with pytest.raises(ValueError, match="not for the folder of a data set"):
            tfseek.reshard(prepared, tmp_path / "new", **options)
    with pytest.raises(tfseek.Error, match="expected a new or an empty folder"):
        tfseek.reshard(prepared, prepared)
    (prepared / "tiny-train.tfrecord-00000-of-00002").unlink()
    with pytest.raises(tfseek.Error, match="1 of 2 shards of split train is missing: .*tiny-train.tfrecord-00000-of-00002"):
        tfseek.reshard(prepared, tmp_path / "new")
    assert sorted(os.listdir(tmp_path)) == ["data"]
    # Names of files are files, as for any other folder.
    assert tfseek.reshard(prepared, tmp_path / "plain.tfrecord", allow_missing=True).records == 5


def test_tensorflow_datasets_reads_a_copy(prepared: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tfds = pytest.importorskip("tensorflow_datasets", reason="tensorflow-datasets is not installed")
    out = tmp_path / "new"
    tfseek.reshard(prepared, out, shuffle=True, seed=3, shards="100B")
    builder, old = tfds.builder_from_directory(str(out)), tfds.builder_from_directory(str(prepared))
    assert (builder.info.full_name, builder.info.description) == ("tiny/1.0.0", "Made \N{SNOWMAN}")
    for name in ["train", "test"]:
        split = builder.info.splits[name]
        assert split.num_examples == old.info.splits[name].num_examples
        assert split.num_bytes == old.info.splits[name].num_bytes
        assert split.num_shards > 2
        paths = [os.fspath(path) for path in split.filepaths]
        assert [sum(1 for _ in tfseek.stream(path)) for path in paths] == split.shard_lengths
        found, expected = ({str(row["text"]): row for path in of for row in decoded(builder, path)} for of in [paths, prepared.glob(f"tiny-{name}*")])
        assert found.keys() == expected.keys() and len(found) == split.num_examples
        for text, row in found.items():
            assert row["label"] == expected[text]["label"]
            np.testing.assert_array_equal(row["boxes"], expected[text]["boxes"])
    assert builder.info.features["label"].names == ["cat", "dog"]
    assert "tensorflow" not in sys.modules


def decoded(builder: Any, path: Any) -> list[dict[str, Any]]:
    """Returns the records of a file, decoded by TensorFlow Datasets without TensorFlow."""
    return [builder.info.features.deserialize_example_np(record.to_bytes()) for record in tfseek.stream(path)]
