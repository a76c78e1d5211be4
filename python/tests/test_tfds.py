"""``tfseek.tfds``: data sets that TensorFlow Datasets prepared."""

from __future__ import annotations

import json
import pathlib
import pickle
import subprocess
import sys
import warnings
from typing import Any, Optional

import numpy as np
import pytest
import tfds_cases as cases
from tiny_images import png
from conftest import write_records

import tfseek

CORE = "tensorflow_datasets.core.features."
TENSOR, IMAGE, LABEL = CORE + "tensor_feature.Tensor", CORE + "image_feature.Image", CORE + "class_label_feature.ClassLabel"
DICT, BOX, TEXT = CORE + "features_dict.FeaturesDict", CORE + "bounding_boxes.BBoxFeature", CORE + "text_feature.Text"


def tensor(dtype: str, shape: tuple[Optional[int], ...] = (), **more: Any) -> dict[str, Any]:
    dimensions = [str(-1 if size is None else size) for size in shape]
    return {"pythonClassName": TENSOR, "tensor": {"shape": {"dimensions": dimensions}, "dtype": dtype, "encoding": "none", **more}}


def image(*shape: Optional[int]) -> dict[str, Any]:
    dimensions = [str(-1 if size is None else size) for size in shape]
    return {"pythonClassName": IMAGE, "image": {"shape": {"dimensions": dimensions}, "dtype": "uint8", "encodingFormat": "png"}}


def label(n: int) -> dict[str, Any]:
    return {"pythonClassName": LABEL, "classLabel": {"numClasses": str(n)}}


def features(**inner: Any) -> dict[str, Any]:
    return {"pythonClassName": DICT, "featuresDict": {"features": inner}}


def sequence(inner: Any, kind: str = "sequence_feature.Sequence", length: int = -1) -> dict[str, Any]:
    return {"pythonClassName": CORE + kind, "sequence": {"feature": inner, "length": str(length)}}


BOXES = {"pythonClassName": BOX, "boundingBox": {"shape": {"dimensions": ["4"]}, "dtype": "float32"}}


def prepare(folder: pathlib.Path, root: dict[str, Any], splits: dict[str, list[list[dict[str, Any]]]], **info: Any) -> pathlib.Path:
    """Writes a prepared data set ``toy``. A split is a list of shards."""
    folder.mkdir(parents=True)
    fields = []
    for split, shards in splits.items():
        for k, records in enumerate(shards):
            write_records(folder / f"toy-{split}.tfrecord-{k:05}-of-{len(shards):05}", records)
        fields.append({"name": split, "shardLengths": [str(len(shard)) for shard in shards]})
    text = {"name": "toy", "version": folder.name, "fileFormat": "tfrecord", "splits": fields, **info}
    (folder / "dataset_info.json").write_text(json.dumps(text))
    (folder / "features.json").write_text(json.dumps(root))
    return folder


def boxes(i: int) -> np.ndarray[Any, Any]:
    return np.arange(4 * (i % 3), dtype=np.float32) + i


def toy_record(i: int) -> dict[str, Any]:
    return {
        "image": png(3, 2, 2),
        "any": png(1 + i % 2, 2, 2),
        "label": i % 3,
        "text": f"record {i}",
        "pose": np.arange(3, dtype=np.float32) + i,
        "objects/bbox": boxes(i),
        "objects/label": np.arange(i % 3),
        "tags": np.array([f"tag {k}" for k in range(i % 2)], dtype=object),
    }


TOY = features(
    image=image(2, 3, 3),
    any=image(None, None, 3),
    label=label(3),
    text={"pythonClassName": TEXT, "text": {}},
    pose={**tensor("float64", (3,)), "description": "x, y & z"},
    objects=sequence(features(bbox=BOXES, label=label(2))),
    tags=sequence({"pythonClassName": TEXT, "text": {}}),
)


NAMES = ["any", "image", "label", "objects", "pose", "tags", "text"]


@pytest.fixture
def toy(tmp_path: pathlib.Path) -> pathlib.Path:
    shards = [[toy_record(i) for i in range(start, end)] for start, end in ((0, 4), (4, 10))]
    folder = prepare(tmp_path / "toy" / "1.0.0", TOY, {"train": shards, "test": [[toy_record(i) for i in range(10, 13)]]})
    (folder / "label.labels.txt").write_text("cat\ndog\nbird\n")
    return folder


def test_a_builder_describes_the_folder(toy: pathlib.Path) -> None:
    b = tfseek.tfds.open(toy.parent)
    assert (b.name, b.version, b.config, b.folder) == ("toy", "1.0.0", None, str(toy))
    assert b.supervised_keys is None and b.warnings == []
    assert list(b.splits) == ["train", "test"]
    assert (b.splits["train"].records, b.splits["train"].shard_lengths) == (10, [4, 6])
    assert b.names("label") == ["cat", "dog", "bird"] and b.names("objects/label") == ["0", "1"]
    with pytest.raises(tfseek.SpecError, match="names: expected the path of a class label .*, found 'image'"):
        b.names("image")
    found = b.features
    assert isinstance(found, tfseek.tfds.FeaturesDict)
    assert found["objects"]["bbox"].shape == (4,) and found["image"].shape == (2, 3, 3)
    assert "'objects': Sequence(FeaturesDict({" in repr(found) and "'label': ClassLabel(3)" in repr(found)
    assert (found["pose"].description, found["label"].description) == ("x, y & z", "") and "x, y &amp; z" in found._repr_html_()
    assert "<td" in found._repr_html_() and "cat, dog, bird" in found._repr_html_()
    assert repr(b) == "tfseek.tfds.Builder('toy/1.0.0', train=10, test=3)"
    assert "objects/bbox" in b._repr_html_()


def test_records_are_nested_values(toy: pathlib.Path) -> None:
    b = tfseek.tfds.open(str(toy))
    ds = b["train[:80%]+test"]
    assert len(ds) == 11 and repr(ds) == "tfseek.tfds.Dataset('toy/1.0.0', 'train[:80%]+test', records=11)"
    for i, record in enumerate(ds):
        n = i if i < 8 else i + 2
        assert list(record) == NAMES
        assert record["image"].shape == (2, 3, 3) and record["image"].dtype == np.uint8
        assert record["any"].shape == (2, 1 + n % 2, 3)
        assert type(record["label"]) is np.int64 and record["label"] == n % 3
        assert record["text"] == f"record {n}".encode()
        assert record["pose"].dtype == np.float64 and record["pose"].tolist() == [n, n + 1, n + 2]
        assert record["objects"]["bbox"].tolist() == boxes(n).reshape(-1, 4).tolist()
        assert record["objects"]["label"].tolist() == list(range(n % 3))
        assert record["tags"].dtype == object and len(record["tags"]) == n % 2
        assert not record["image"].flags.writeable and not record["pose"].flags.writeable
        assert cases.plain(ds[i]["objects"]["bbox"]) == cases.plain(record["objects"]["bbox"])
    assert ds[-1]["text"] == b"record 12" and ds[np.int64(2)]["text"] == b"record 2"
    with pytest.raises(tfseek.OutOfRangeError):
        ds[11]
    for key in (slice(2, 5), [4, 2], np.array([1, 9]), np.arange(11) % 2 == 0):
        part = ds[key]
        assert [record["text"] for record in part] == [ds[int(i)]["text"] for i in np.arange(11)[key]]
        assert [record["text"] for record in part.records.get_many(range(len(part)))] == [[record["text"]] for record in part]
    many = ds.get_many([3, -1, 3])
    assert [record["text"] for record in many] == [b"record 3", b"record 12", b"record 3"]
    assert [record["text"] for record in ds.filter("label == 1")] == [b"record 1", b"record 4", b"record 7", b"record 10"]
    assert ds.names("label") == ["cat", "dog", "bird"]
    assert ds.spec["objects/bbox"] == tfseek.FixedLenSequenceFeature([4], "float32", allow_missing=True)
    assert ds.spec["label"] == tfseek.FixedLenFeature([], "int64")
    copy = pickle.loads(pickle.dumps(ds[3:5]))
    assert [record["text"] for record in copy] == [b"record 3", b"record 4"]
    (toy / "features.json").write_text(json.dumps(features(label=label(3))))
    with pytest.raises(tfseek.Error, match="the features have changed since they were pickled"):
        pickle.loads(pickle.dumps(ds))


def test_pictures_may_stay_encoded(toy: pathlib.Path) -> None:
    ds = tfseek.tfds.open(toy, decode=False)["train"]
    assert ds[0]["image"] == png(3, 2, 2) and ds[0]["any"] == png(1, 2, 2)
    batch = next(tfseek.Loader(ds, ["image"], batch_size=4))
    assert batch["image"].dtype == object and batch["image"][3] == png(3, 2, 2)
    ds = tfseek.tfds.open(toy, decode={"image": False, "any": True})["train"]
    assert ds[0]["image"] == png(3, 2, 2) and ds[0]["any"].shape == (2, 1, 3)
    with pytest.raises(tfseek.SpecError, match="expected the feature of a picture of the data set, found \"label\""):
        tfseek.tfds.open(toy, decode={"label": False})
    with pytest.raises(TypeError, match="decode: expected True, False, or a dict"):
        tfseek.tfds.open(toy, decode="no")


def test_displays_have_the_pictures(toy: pathlib.Path) -> None:
    b = tfseek.tfds.open(toy)
    ds = b["train"]
    shown = ds._repr_html_()
    assert shown.count("<img ") == 2 and "objects/bbox" in shown and "first record" in shown
    assert "objects/bbox" in str(tfseek.show(next(tfseek.Loader(ds, batch_size=4))))
    assert str(tfseek.show(ds)) == shown and "<p>" in b["train[:0]"]._repr_html_()


def test_batches_are_nested(toy: pathlib.Path) -> None:
    ds = tfseek.tfds.open(toy)["train"]
    for options in ({}, {"shuffle": True, "seed": 3}, {"shuffle": "block", "seed": 1}, {"threads": 0}, {"threads": 4, "seed": 2}):
        loader: Any = tfseek.Loader(ds, batch_size=4, **options)
        seen = []
        for batch in loader:
            assert list(batch) == NAMES
            assert batch["image"].shape == (len(loader.ids), 2, 3, 3) and batch["image"].dtype == np.uint8
            assert isinstance(batch["any"], list) and isinstance(batch["objects"]["bbox"], tfseek.Ragged)
            for row, i in enumerate(loader.ids):
                assert cases.same_row(cases.without_rows(batch, row), ds[int(i)]) is None
            seen.extend(loader.ids.tolist())
        assert sorted(seen) == list(range(10))
    batch = next(tfseek.Loader(ds, ["objects/bbox", "label"], batch_size=2, ids="id"))
    assert list(batch) == ["label", "objects", "id"] and list(batch["objects"]) == ["bbox"]
    assert list(next(tfseek.Loader(ds, ["objects"], batch_size=2))["objects"]) == ["bbox", "label"]
    with pytest.raises(tfseek.SpecError, match='expected a feature of the data set, found "nothing"'):
        tfseek.Loader(ds, ["nothing"], batch_size=2)
    with pytest.raises(TypeError, match="spec: expected a list of features of the data set, found dict; ds.records takes specs"):
        tfseek.Loader(ds, {"label": tfseek.FixedLenFeature([], "int64")}, batch_size=2)
    with pytest.raises(ValueError, match="the column 'objects' exists already"):
        tfseek.Loader(ds, batch_size=2, ids="objects")
    flat = next(tfseek.Loader(ds.records, {"label": ds.spec["label"]}, batch_size=3))
    assert flat["label"].tolist() == [0, 1, 2]


def test_a_loader_has_all_its_options(toy: pathlib.Path) -> None:
    ds = tfseek.tfds.open(toy)["train"]

    def transform(batch: Any) -> Any:
        return batch["objects"]["label"].row_lengths().tolist()

    expected = [[i % 3 for i in range(start, start + 4)] for start in (0, 4)]
    loader: Any = tfseek.Loader(ds, batch_size=4, drop_last=True, transform=transform, transform_threads=2)
    assert list(loader) == expected and loader.report().rows == 8
    balanced = tfseek.Loader(ds, batch_size=5, balance="label", seed=0)
    assert sum(len(batch["label"]) for batch in balanced) >= 10
    buckets: Any = tfseek.Loader(ds, bucket_by="objects/bbox", boundaries=[0, 4], batch_size=[4, 3, 2], seed=1, padded=True)
    for batch in buckets:
        values, mask = batch["objects"]["bbox"]
        assert len({int(n) % 3 for n in buckets.ids}) == 1
        assert mask.shape == (len(buckets.ids), int(buckets.ids[0]) % 3) and values.shape == (*mask.shape, 4)
    loader = tfseek.Loader(ds[2:9], batch_size=2, seed=5)
    first = [next(loader)["text"].tolist() for _ in range(2)]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch["text"].tolist() for batch in loader]
    resumed: Any = tfseek.Loader(ds[2:9], ["text"], batch_size=2, seed=5)
    resumed.load_state_dict(state)
    assert [batch["text"].tolist() for batch in resumed] == rest[len(first) :] or rest == [batch["text"].tolist() for batch in resumed]
    assert next(tfseek.Loader(ds, ["text"], batch_size=2, bytes_as="str"))["text"].tolist() == ["record 0", "record 1"]
    assert isinstance(next(tfseek.Loader(ds, ["text"], batch_size=2, bytes_as="offsets"))["text"], tfseek.Bytes)


def test_a_mix_has_nested_batches(toy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    b = tfseek.tfds.open(toy)
    mix = tfseek.Mix([(b["train"], 1), ((b["test"], None), 1)], source="from")
    loader: Any = tfseek.Loader(mix, batch_size=4, seed=0)
    for batch in loader:
        assert list(batch) == [*NAMES, "from"]
        for row, (i, source) in enumerate(zip(loader.ids, batch["from"])):
            record = (b["train"], b["test"])[source][int(i) - 10 * int(source)]
            assert cases.same_row(cases.without_rows({k: v for k, v in batch.items() if k != "from"}, row), record) is None
    mix = tfseek.Mix([((b["train"], ["label"]), 1), ((b["test"], ["label"]), 1)])
    assert list(next(tfseek.Loader(mix, batch_size=4))) == ["label"]
    with pytest.raises(tfseek.SpecError, match="rename: source 0: .*found a tfseek.tfds.Dataset"):
        tfseek.Mix([(b["train"], 1)], rename={0: {"label": "class"}})
    # The same path in other dicts.
    flat = {"objects/label": label(2)}
    other = prepare(tmp_path / "flat" / "1.0.0", features(**flat), {"train": [[{"objects/label": 1}]]})
    names = (["objects/label"], ["objects/label"])
    mix = tfseek.Mix([((b["train"], names[0]), 1), ((tfseek.tfds.open(other)["train"], names[1]), 1)], unit="batch")
    with pytest.raises(tfseek.SpecError, match='feature "objects/label": expected the same dicts'):
        tfseek.Loader(mix, batch_size=1)


def test_optional_features_may_be_none(tmp_path: pathlib.Path) -> None:
    root = features(a=tensor("int32", optional=True), b=tensor("float32", (2,), optional=True), s=tensor("string", optional=True))
    records: list[dict[str, Any]] = [{"a": 3, "b": [1.0, 2.0], "s": "x"}, {}, {"a": 5}]
    folder = prepare(tmp_path / "1.0.0", root, {"train": [records]})
    ds = tfseek.tfds.open(folder)["train"]
    assert ds[1]["a"] == np.iinfo(np.int32).min and ds[1]["s"] == b"" and ds[1]["b"].tolist() == [np.finfo(np.float32).min] * 2
    batch = next(tfseek.Loader(ds, batch_size=3))
    assert batch["a"].dtype == np.int32 and batch["a"].tolist() == [3, -(2**31), 5]
    ds = tfseek.tfds.open(folder, optional="none")["train"]
    assert ds[1] == {"a": None, "b": None, "s": None} and ds[2]["a"] == 5
    batch = next(tfseek.Loader(ds, batch_size=3))
    assert isinstance(batch["a"], tfseek.Column) and batch["a"].to_list() == [3, None, 5]
    assert batch["s"].to_list() == [b"x", None, None] and batch["b"].present.tolist() == [True, False, False]
    assert batch["b"][0].tolist() == [1, 2] and batch["b"][1] is None
    assert np.isnan(np.asarray(batch["b"])).tolist() == [[False] * 2, [True] * 2, [True] * 2]
    assert ds.spec["a"] == tfseek.FixedLenFeature([], "int64", np.full((), -(2**31)))
    flat = tfseek.parse_example(list(ds.records), ds.spec)
    assert flat["a"].tolist() == [3, -(2**31), 5] and flat["s"].tolist() == [b"x", b"", b""] and flat["b"].shape == (3, 2)
    with pytest.raises(ValueError, match="optional: expected 'default' or 'none', found 'null'"):
        tfseek.tfds.open(folder, optional="null")


@pytest.fixture
def episodes(tmp_path: pathlib.Path) -> pathlib.Path:
    step = features(observation=features(image=image(2, 3, 3)), action=tensor("float32", (2,)), words=sequence(tensor("int64")))
    root = features(steps=sequence(step, "dataset_feature.Dataset"), id=tensor("int64"))
    records = []
    for i in range(3):
        n = i + 1
        records.append(
            {
                "id": i,
                "steps/observation/image": [png(3, 2, 2)] * n,
                "steps/action": np.arange(2 * n, dtype=np.float32),
                "steps/words/ragged_flat_values": np.arange(2 * n),
                "steps/words/ragged_row_lengths_0": [2] * n,
            }
        )
    return prepare(tmp_path / "1.0.0", root, {"train": [records]})


def test_steps_are_decoded_when_asked_for(episodes: pathlib.Path) -> None:
    ds = tfseek.tfds.open(episodes)["train"]
    steps = ds[2]["steps"]
    assert isinstance(steps, tfseek.tfds.Steps) and len(steps) == 3 and repr(steps) == 'tfseek.tfds.Steps(3 steps of "steps")'
    assert steps[1]["action"].tolist() == [2, 3] and steps[-1]["action"].tolist() == [4, 5]
    assert steps[0]["observation"]["image"].shape == (2, 3, 3) and steps[1]["words"].tolist() == [2, 3]
    assert not steps[1]["action"].flags.writeable
    assert [step["action"][0] for step in steps] == [0, 2, 4]
    part = steps[1:]
    assert isinstance(part, tfseek.tfds.Steps) and len(part) == 2 and part[-1]["action"].tolist() == [4, 5]
    assert [step["action"][0] for step in steps[::-2]] == [4, 0] and len(steps[5:]) == 0
    with pytest.raises(tfseek.OutOfRangeError, match="step"):
        steps[3]
    with pytest.raises(TypeError, match="steps cannot be pickled"):
        pickle.dumps(steps)
    with pytest.raises(tfseek.SpecError, match='feature "steps/.*steps of episodes.*choose other features'):
        tfseek.Loader(ds, batch_size=2)
    assert next(tfseek.Loader(ds, ["id"], batch_size=3))["id"].tolist() == [0, 1, 2]
    del ds
    assert steps[2]["words"].tolist() == [4, 5]


def test_errors_name_file_record_and_feature(toy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    records = [toy_record(0), {**toy_record(1), "image": b"no picture"}, {**toy_record(2), "objects/bbox": [1.0]}]
    folder = prepare(tmp_path / "bad" / "1.0.0", TOY, {"train": [records]})
    ds = tfseek.tfds.open(folder)["train"]
    for i, feature in ((1, "image"), (2, "objects/bbox")):
        for read in (lambda i=i: ds[i], lambda i=i: ds.get_many([0, i]), lambda i=i: list(ds[i:]), lambda i=i: next(tfseek.Loader(ds[i:], batch_size=1))):
            with pytest.raises(tfseek.DataError) as caught:
                read()
            assert (caught.value.record, caught.value.feature) == (i, feature)
            assert caught.value.path == str(folder / "toy-train.tfrecord-00000-of-00001")
    loader: Any = tfseek.Loader(ds, batch_size=3, damage="skip")
    assert [len(batch["label"]) for batch in loader] == [1] and loader.skipped_total == 2
    iterator = iter(ds)
    assert next(iterator)["text"] == b"record 0"
    with pytest.raises(tfseek.DataError):
        next(iterator)


def test_errors_of_folders_and_selections(toy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(tfseek.Error) as folder_error:
        tfseek.tfds.open(tmp_path)
    assert folder_error.value.path is not None
    with pytest.raises(tfseek.NotFoundError):
        tfseek.tfds.open(tmp_path / "nothing")
    with pytest.raises(tfseek.NotFoundError, match=r"tfseek\.tfds\.open\(.*toy\"\) opens its newest version"):
        tfseek.open(toy.parent)
    b = tfseek.tfds.open(toy)
    with pytest.raises(tfseek.SpecError, match="split \"valid\": .*train"):
        b["valid"]
    with pytest.raises(tfseek.SpecError):
        b["train[3]"]
    with pytest.raises(TypeError, match="split: expected a text such as"):
        b[3]  # type: ignore[index]
    with pytest.raises(ValueError, match="rounding"):
        b.split("train", rounding="up")
    (toy / "features.json").write_text(json.dumps(features(x=tensor("int99"))))
    with pytest.raises(tfseek.Error) as refused:
        tfseek.tfds.open(toy)
    assert (refused.value.feature, refused.value.path) == ("x", str(toy / "features.json"))
    (toy / "features.json").write_text(json.dumps(features(y=tensor("int64", (None, None)))))
    with pytest.raises(tfseek.DataError, match="features.json: feature \"y\": expected an encoding") as refused:
        tfseek.tfds.open(toy)
    assert (refused.value.feature, refused.value.path) == ("y", str(toy / "features.json"))


def test_warnings_are_raised_once(tmp_path: pathlib.Path) -> None:
    unknown = {"pythonClassName": "my.Feature", "tensor": {"shape": {}, "dtype": "int64"}}
    folder = prepare(tmp_path / "1.0.0", features(x=unknown, y=tensor("int64")), {"train": [[{"x": [1, 2], "y": 3}]]})
    with pytest.warns(tfseek.Warning, match='feature "x": the class "my.Feature" is not known') as found:
        b = tfseek.tfds.open(folder)
    assert len(found) == 1 and found[0].filename == __file__ and [warning.kind for warning in b.warnings] == ["tfds"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = b["train"]
        assert ds[0]["x"].tolist() == [1, 2] and ds[0]["y"] == 3
        with pytest.raises(tfseek.SpecError, match='feature "x" is of an unknown class: choose other features'):
            tfseek.Loader(ds, batch_size=1)
        assert next(tfseek.Loader(ds, ["y"], batch_size=1))["y"].tolist() == [3]


def test_splits_are_divided_evenly(toy: pathlib.Path) -> None:
    b = tfseek.tfds.open(toy, io="pread", index="memory", threads=1)
    parts = b.even_splits("train", 3)
    assert [len(part) for part in parts] == [4, 3, 3] and parts[1][0]["text"] == b"record 4"
    assert [len(part) for part in b.even_splits("train", 3, drop_remainder=True)] == [3, 3, 3]
    done = []
    assert len(b.split("all", progress=lambda done_bytes, total: done.append(done_bytes))) == 13 and done
    assert [record["text"] for record in b["test[1:]+train[:1]"]] == [b"record 11", b"record 12", b"record 0"]
    empty = b["train[:0]"]
    assert len(empty) == 0 and list(empty) == []
    for read in (b["train"][5], b["train"].get_many([5])[0], list(b["train"])[5]):
        assert read["text"] == b"record 5"


def test_other_functions_take_the_records(toy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ds = tfseek.tfds.open(toy)["train"]
    anything: Any = tfseek
    assert anything.stats(ds).records == 10
    anything.reshard(ds[:3], tmp_path / "three.tfrecord")
    assert len(tfseek.open(tmp_path / "three.tfrecord")) == 3


def test_torch_has_nested_tensors(toy: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    import tfseek.torch

    ds = tfseek.tfds.open(toy)["train"]
    d: Any = tfseek.torch.Dataset(ds)
    assert len(d) == 10 and d[3]["image"].shape == (2, 3, 3) and d[3]["label"].item() == 0
    assert d[1]["objects"]["bbox"].shape == (1, 4) and d[1]["text"] == b"record 1" and d[1]["tags"] == [b"tag 0"]
    d = tfseek.torch.Dataset(ds, ["image", "label", "pose"])
    for batch in torch.utils.data.DataLoader(d, batch_size=5):
        assert batch["image"].shape == (5, 2, 3, 3) and batch["label"].dtype == torch.int64 and batch["pose"].dtype == torch.float64
    assert d[[3, 1]]["label"].tolist() == [0, 1]
    iterable: Any = tfseek.torch.IterableDataset(ds, batch_size=5, seed=0)
    for batch in torch.utils.data.DataLoader(iterable, batch_size=None):
        assert isinstance(batch["objects"]["bbox"].values, torch.Tensor) and isinstance(batch["any"][0], torch.Tensor)
    assert len(list(tfseek.torch.Sampler(ds))) == 10
    assert pickle.loads(pickle.dumps(d))[2]["label"].item() == 2


def test_grain_and_jax_have_nested_items(toy: pathlib.Path) -> None:
    pytest.importorskip("grain")
    import tfseek.grain

    ds = tfseek.tfds.open(toy)["train"]
    source: Any = tfseek.grain.source(ds)
    assert len(source) == 10 and source[4]["text"] == b"record 4" and source[4]["objects"]["bbox"].shape == (1, 4)
    assert [item["label"] for item in source.__getitems__([2, 0])] == [2, 0]
    batches: Any = tfseek.grain.IterDataset(ds, ["label", "objects"], batch_size=5)
    assert [sorted(batch) for batch in batches] == [["label", "objects"]] * 2


def test_jax_has_nested_arrays(toy: pathlib.Path) -> None:
    jax = pytest.importorskip("jax")
    import tfseek.jax

    ds = tfseek.tfds.open(toy)["train"]
    batch: Any = next(tfseek.Loader(ds, batch_size=5, transform=tfseek.jax.as_arrays))
    assert isinstance(batch["image"], jax.Array) and isinstance(batch["objects"]["bbox"].values, jax.Array)
    assert isinstance(batch["any"][0], jax.Array)


def test_nothing_else_is_imported(toy: pathlib.Path) -> None:
    code = """
import sys, tfseek
ds = tfseek.tfds.open(sys.argv[1])["train"]
ds[0]; list(ds); ds.spec; ds.features; ds._repr_html_()
list(tfseek.Loader(ds, batch_size=4, shuffle=True))
names = ("tensorflow", "tensorflow_datasets", "google.protobuf", "PIL", "cv2")
assert not [name for name in names if name in sys.modules], sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(toy)], check=True)


recorded = pytest.mark.skipif(cases.FOLDER is None, reason="TFSEEK_TFDS_CASES does not name the folder with recorded data sets")


def open_quietly(folder: pathlib.Path, **options: Any) -> tfseek.tfds.Builder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfseek.Warning)
        return tfseek.tfds.open(folder, **options)


@recorded
def test_recorded_data_sets_have_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    """All records have the values of TensorFlow Datasets, array for array and dtype for dtype, and errors where it has them."""
    counts = dict.fromkeys(("sets", "records", "errors", "refused", "encoded", "none"), 0)
    faults: list[Optional[str]] = []
    for golden in cases.goldens():
        counts["sets"] += 1
        if golden.truth == "error":
            with pytest.raises(tfseek.Error):
                b = open_quietly(golden.folder)
                for split in b.splits:
                    for record in b[split]:
                        cases.touch(record)
            counts["refused"] += 1
            continue
        b = open_quietly(golden.folder)
        encoded, none = open_quietly(golden.folder, decode=False), open_quietly(golden.folder, optional="none")
        # What TFDS cannot read is stored in another form than its specs have.
        if golden.spec is not None and golden.truth == "tf":
            faults.append(different_specs(golden, b))
        for split, records in golden.splits.items():
            ds = b[split]
            assert len(ds) == len(records), (golden.name, split)
            for i, expected in enumerate(records):
                at = f"{golden.name} {split}[{i}]"
                counts["records"] += 1
                node = expected.get("v")
                try:
                    found = ds[i]
                    if node is None:
                        cases.touch(found)
                        faults.append(f"{at}: found values, expected an error")
                        continue
                except tfseek.DataError as e:
                    counts["errors"] += 1
                    assert e.path is not None and e.record is not None, at
                    if node is not None and "or_error" not in expected:
                        faults.append(f"{at}: {e}")
                    continue
                faults.append(cases.difference(found, node, golden, at))
                if "stored" in expected:
                    counts["encoded"] += 1
                    faults.append(different_stored(encoded[split][i], expected["stored"], golden, at))
                for path in expected.get("none", ()):
                    counts["none"] += 1
                    value = none[split][i]
                    for name in path.split("/"):
                        value = value[name]
                    faults.append(None if value is None else f"{at}: {path}: found {value!r}")
            many = [i for i, expected in enumerate(records) if "v" in expected and "or_error" not in expected]
            for i, found in zip(many, ds.get_many(many)):
                faults.append(cases.difference(found, records[i]["v"], golden, f"{golden.name} {split} many[{i}]"))
    faults = [fault for fault in faults if fault is not None]
    with capsys.disabled():
        print(f"\n{counts}, {len(faults)} differences")
    assert not faults, "\n".join(str(fault) for fault in faults[:40])


def different_specs(golden: cases.Golden, b: tfseek.tfds.Builder) -> Optional[str]:
    found: dict[str, Any] = {}
    ds: Any = tfseek.tfds.Dataset(None, None, b._features, "")
    for name, spec in ds.spec.items():
        kind = "fixed" if isinstance(spec, tfseek.FixedLenFeature) else "fixed_sequence"
        found[name] = {"type": kind, "dtype": spec.dtype, "shape": list(spec.shape)}
        if kind == "fixed_sequence":
            found[name]["allow_missing"] = spec.allow_missing
    expected = {name: {k: v for k, v in spec.items() if k != "has_default"} for name, spec in (golden.spec or {}).items()}
    return None if found == expected else f"{golden.name}: " + str([(n, found.get(n), expected.get(n)) for n in {**found, **expected} if found.get(n) != expected.get(n)])


def different_stored(found: Any, stored: dict[str, Any], golden: cases.Golden, at: str) -> Optional[str]:
    for path, leaf in stored.items():
        values = [found]
        for name in path.split("/"):
            values = [inner[name] for value in values for inner in (value if isinstance(value, tfseek.tfds.Steps) else [value])]
        files = [file for value in values for file in (value if isinstance(value, np.ndarray) else [value])]
        expected = golden.leaf(leaf)[1].reshape(-1).tolist()
        if files != expected:
            return f"{at}: {path}: {len(files)} stored files, expected {len(expected)}"
    return None


@recorded
def test_recorded_batches_have_the_values_of_records(capsys: pytest.CaptureFixture[str]) -> None:
    """Loaders in each order and with any number of threads have the values that the records have one by one."""
    counts = dict.fromkeys(("sets", "rows", "refused"), 0)
    for golden in cases.goldens():
        if golden.truth == "error":
            continue
        for optional in ("default", "none"):
            b = open_quietly(golden.folder, optional=optional)
            for split, records in golden.splits.items():
                ds = b[split]
                good = [i for i, expected in enumerate(records) if "v" in expected and "or_error" not in expected]
                if not good:
                    continue
                ds = ds[good]
                expected = dict(zip(good, ds.get_many(range(len(good)))))
                for threads in (1, 2, 4):
                    for order in ({"shuffle": False}, {"shuffle": True, "seed": 1}, {"shuffle": "block", "seed": 1}):
                        options: Any = {**order, "threads": threads, "batch_size": 3}
                        try:
                            loader: Any = tfseek.Loader(ds, **options)
                        except tfseek.SpecError as e:
                            assert "choose other features" in str(e), e
                            counts["refused"] += threads == 1 and order["shuffle"] is False and optional == "default"
                            break
                        seen = []
                        for batch in loader:
                            for row, i in enumerate(loader.ids.tolist()):
                                fault = cases.same_row(cases.without_rows(batch, row), expected[i], f"{golden.name} {split}[{i}] {options}")
                                assert fault is None, fault
                                counts["rows"] += 1
                            seen.extend(loader.ids.tolist())
                        assert sorted(seen) == good
                    else:
                        continue
                    break
        counts["sets"] += 1
    with capsys.disabled():
        print(f"\n{counts}")


@recorded
def test_recorded_selections(capsys: pytest.CaptureFixture[str]) -> None:
    """Selections of splits have the records that TensorFlow Datasets selects, or its errors."""
    assert cases.FOLDER is not None
    fields = json.loads(pathlib.Path(cases.FOLDER, "cases", "splits.json").read_text())
    (golden,) = (golden for golden in cases.goldens() if golden.name == "splits")
    b = open_quietly(golden.folder)
    texts = [case.get("spec", case.get("even_splits")) for case in fields["cases"]]
    for case, text in zip(fields["cases"], texts):
        options = {"rounding": case["rounding"]} if case.get("rounding") else {}

        def select() -> Any:
            if "even_splits" in case:
                return [rows(part) for part in b.even_splits(text, case["n"], drop_remainder=case["drop_remainder"])]
            return rows(b.split(text, **options))

        if "error" in case and "either" not in case:
            with pytest.raises(tfseek.SpecError):
                select()
            continue
        expected = [listed(part) for part in case["ranges"]] if "even_splits" in case else listed(case.get("ranges", []))
        assert "either" in case or select() == expected, case
    with capsys.disabled():
        print(f"\n{len(texts)} selections")


def rows(ds: tfseek.tfds.Dataset) -> list[tuple[str, int]]:
    return [(record["split"].decode(), int(record["i"])) for record in ds]


def listed(ranges: Any) -> list[tuple[str, int]]:
    return [(split, i) for split, start, end in ranges for i in range(start, end)]


@pytest.mark.parametrize("nested", [False, True])
def test_arrays_without_elements_keep_their_shape_in_batches(tmp_path: pathlib.Path, nested: bool) -> None:
    inner = tensor("uint8", (None, None, None), encoding="bytes")
    shapes = [(0, 1, 1), (2, 1, 3), (1, 0, 4), (0, 0, 0)]
    values = [bytes(int(np.prod(shape))) for shape in shapes]
    records: list[dict[str, Any]] = [{"x/shape": np.array(shape), "x/value": value} for shape, value in zip(shapes, values)]
    if nested:
        records = [{"x/shape": np.array(shapes).ravel(), "x/value": np.array(values, dtype=object)}]
    data = prepare(tmp_path / "1.0.0", features(x=sequence(inner) if nested else inner), {"train": [records]})
    train = tfseek.tfds.open(data)["train"]
    (batch,) = tfseek.Loader(train, batch_size=len(records))
    arrays = batch["x"][0] if nested else batch["x"]
    assert [array.shape for array in arrays] == shapes
    if not nested:
        assert [record["x"].shape for record in train] == shapes
