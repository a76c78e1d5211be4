"""Hugging Face: prepared and streamed sets, their cache, and streams that resume."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import pathlib
import signal
from typing import Any, Callable, Optional

import numpy as np
import pytest
from conftest import write_records
from harness import RECORDS, SPEC, Pair, Suite, copy, digest, messages, pairs_of, paths, urls, want
from prepared import write_bridge, write_mnist
from tiny_images import png

import tfseek

datasets = pytest.importorskip("datasets", minversion="5.2")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("PIL")

from datasets.distributed import split_dataset_by_node  # noqa: E402

from tfseek.huggingface import TFRecord, TFRecordConfig, load, register  # noqa: E402

__all__ = ["copy", "paths", "urls", "want"]

#: Starts processes anew, as in a later run.
SPAWN = multiprocessing.get_context("spawn")


def follow(paths: list[str], shares: int, die: str) -> None:
    """Appends the pairs of a stream to a file, from its saved state. The first process is killed, with more rows in the file than in the state."""
    ds = load(paths, SPEC, record="n", shares=shares, streaming=True)
    saved = pathlib.Path(die + ".state")
    size, state = json.loads(saved.read_text()) if os.path.exists(die) else (0, None)
    if state:
        ds.load_state_dict(state)
    with open(die + ".rows", "a") as rows:
        rows.truncate(size)
        for k, row in enumerate(ds):
            rows.write(json.dumps([row["n"], digest(row["id"], row["text"], row["values"] or [])]) + "\n")
            if k % 700 == 699:
                rows.flush()
                saved.write_text(json.dumps([os.path.getsize(rows.name), ds.state_dict()]))
            if k == 4321 and not os.path.exists(die):
                rows.flush()
                pathlib.Path(die).touch()
                os.kill(os.getpid(), signal.SIGKILL)


def read(paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None) -> list[Pair]:
    if die:
        for code in (-signal.SIGKILL, 0):
            process = SPAWN.Process(target=follow, args=(paths, shares, die))
            process.start()
            process.join()
            assert process.exitcode == code
        return [(n, found) for n, found in map(json.loads, open(die + ".rows"))]
    ds = load(paths, SPEC, record="n", shares=shares, streaming=True)
    if planned:
        planned()
    return [pair for table in ds.with_format("arrow").iter(batch_size=1000) for pair in pairs_of(table)]


class TestHuggingFace(Suite):
    read = staticmethod(read)


def rows_of(ds: Any) -> list[Any]:
    """Returns the rows with the bytes of pictures."""
    pictures = [name for name, feature in ds.features.items() if feature == datasets.Image()]
    rows = [row for table in ds.with_format("arrow").iter(batch_size=1000) for row in table.to_pylist()]
    return [{**row, **{name: row[name]["bytes"] for name in pictures}} for row in rows]


NUMBER = tfseek.FixedLenFeature([], "int64")
STEPS = tfseek.Schema(context_features={"a": NUMBER}, sequence_features={"steps": tfseek.VarLenFeature("int64")})
#: A record of each kind, and the options of its scan.
ROWS: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "scalars": (lambda i: {"a": i, "b": i / 4, "c": None if i % 3 else i}, {}),
    "ragged": (lambda i: {"a": np.arange(i % 4), "b": np.ones(6)}, {"spec": {"a": "int64", "b": tfseek.FixedLenFeature([2, 3], "float32")}}),
    "strings": (lambda i: {"a": f"row {i}", "b": b"\xff" * i, "c": ["x", "y", "z"][: i % 3 + 1]}, {"text": ["a", "c"], "record": "n"}),
    "sequences": (lambda i: tfseek.SequenceExample({"a": [i]}, {"steps": [[k, i] for k in range(i % 3)]}), {"spec": STEPS}),
    "pictures": (lambda i: {"image": png(3 + i, 4, 2), "b": b"none", "label": i}, {"where": "label > 4", "columns": ["label", "image", "b"]}),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_those_of_to_arrow(name: str, tmp_path: pathlib.Path) -> None:
    row, options = ROWS[name]
    write_records(tmp_path / "a", map(row, range(50)), shards=3, compression="gzip")
    tfseek.Writer(tmp_path / "a-empty.tfrecord").close()
    table = tfseek.open(tmp_path).to_arrow(**options)
    prepared = load(tmp_path, **options, cache_dir=str(tmp_path / "cache"))
    streamed = load(tmp_path, **options, streaming=True)
    assert rows_of(prepared) == rows_of(streamed) == table.to_pylist() and table.num_rows > 40
    assert streamed.num_shards == 3 and prepared.features == streamed.features
    if name == "pictures":
        assert list(prepared.features.values()) == [datasets.Value("int64"), datasets.Image(), datasets.Value("binary")]
        assert prepared[0]["image"].size == (9, 4)


def test_sets_of_tfds(tmp_path: pathlib.Path) -> None:
    write_mnist(tmp_path / "mnist")
    folder = tmp_path / "mnist" / "3.0.1"
    (folder / "label.labels.txt").write_text("\n".join(f"digit {k}" for k in range(10)))
    builder = tfseek.tfds.open(folder)
    cache = str(tmp_path / "cache")
    found = load(builder, cache_dir=cache)
    label = found["train"].features["label"]
    assert label == datasets.ClassLabel(names=[f"digit {k}" for k in range(10)]) and found["train"].features["image"] == datasets.Image()
    for split, rows in found.items():
        want = builder[split].to_arrow().to_pylist()
        assert [(row["image"], label.int2str(row["label"])) for row in rows_of(rows)] == [(row["image"], row["label"]) for row in want]
        assert rows_of(load(builder, streaming=True)[split]) == rows_of(rows)
    assert load(builder, split="test[:30%]", cache_dir=cache).num_rows == 3
    register()
    options = {"data_files": str(folder / "*-train*"), "spec": tfseek.NestedSpec(folder), "split": "train", "cache_dir": cache}
    again = datasets.load_dataset("tfrecord", **options)
    assert rows_of(again) == rows_of(found["train"]) and again.features == found["train"].features
    # Other names are another key of the cache.
    (folder / "label.labels.txt").write_text("\n".join(f"number {k}" for k in range(10)))
    assert datasets.load_dataset("tfrecord", **{**options, "spec": tfseek.NestedSpec(folder)}).features["label"].int2str(3) == "number 3"
    write_bridge(tmp_path / "bridge")
    bridge = load(tfseek.tfds.open(tmp_path / "bridge"), streaming=True, split="train")
    assert bridge.features["steps"]["observation"]["image_0"] == datasets.LargeList(datasets.Image())
    assert next(iter(bridge))["steps"]["observation"]["image_0"][9].size == (8, 8)


def test_shards_of_nodes_and_processes(paths: list[str], want: list[Pair], tmp_path: pathlib.Path) -> None:
    def ids(ds: Any) -> list[int]:
        return [row["n"] for row in ds]

    stream = load(paths, SPEC, ["id"], record="n", streaming=True)
    assert stream.num_shards == 6 and stream.reshard().num_shards >= 6 and ids(stream.reshard()) == list(range(RECORDS))
    for ds in (stream, load(paths, SPEC, ["id"], record="n", streaming=True, shares=4)):
        for nodes in (2, 3):
            found = [ids(split_dataset_by_node(ds, rank, nodes)) for rank in range(nodes)]
            assert sorted(sum(found, [])) == list(range(RECORDS)) and all(found)
    prepared = load(paths, SPEC, record="n", num_proc=2, cache_dir=str(tmp_path))
    assert pairs_of(prepared.with_format("arrow")[:]) == want


def test_features(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", ({"label": i % 3, "name": f"row {i}", "tokens": np.arange(i), "x": 0.5} for i in range(9)))
    value = datasets.Value
    label = datasets.ClassLabel(names=["a", "b", "c"])
    features = {"x": value("float64"), "label": label, "tokens": datasets.List(value("uint8")), "name": value("string")}
    found = load(tmp_path, features=datasets.Features(features), cache_dir=str(tmp_path / "cache"))
    assert found.features == features and found[4] == {"x": 0.5, "label": 1, "tokens": [0, 1, 2, 3], "name": "row 4"}
    wrong = datasets.Features({"lable": value("int64")})
    with pytest.raises(tfseek.SpecError, match='no feature of the first records "lable"; the nearest name is "label"'):
        load(tmp_path, features=wrong, streaming=True)
    with pytest.raises(tfseek.SpecError, match=r"expected those of the columns \['name'\], found \['lable'\]"):
        load(tmp_path, {"name": tfseek.FixedLenFeature([], "string")}, features=wrong, streaming=True)
    with pytest.raises(pa.ArrowInvalid, match='a.tfrecord: record 0 at byte 0: .*feature "label": expected bytes, found int64'):
        list(load(tmp_path, features=datasets.Features({"label": value("string")}), streaming=True))
    renamed = {"name": value("int64"), "label": value("string"), "n": value("int32")}
    options = {"features": datasets.Features(renamed), "rename": {"label": "name", "name": "label"}, "record": "n"}
    assert next(iter(load(tmp_path, **options, streaming=True))) == {"name": 0, "label": "row 0", "n": 0}
    for name, text in (("label", r"expected those of the columns \['class'\]"), ("name", 'column "label": expected a feature for `rename`')):
        with pytest.raises(tfseek.SpecError, match=text):
            load(tmp_path, features=datasets.Features({name: value("string")}), rename={"label": "class"}, streaming=True)


@pytest.mark.parametrize(
    "name, feature, text",
    [
        ("label", datasets.Value("uint8"), "Integer value 260 not in range: 0 to 255"),
        ("label", datasets.ClassLabel(num_classes=260), "Class label 260 greater than configured num_classes 260"),
        ("name", datasets.Value("string"), "Invalid UTF8 payload"),
        ("tokens", datasets.List(datasets.Value("int8")), "Integer value 260 not in range: -128 to 127"),
    ],
)
@pytest.mark.parametrize("record", [None, "n"])
def test_a_value_that_does_not_fit(name: str, feature: Any, text: str, record: Optional[str], tmp_path: pathlib.Path) -> None:
    rows = [{"label": i, "name": "x", "tokens": [1] * (i % 3 + 1)} for i in range(20)]
    rows[13] = {"label": 260, "name": b"\xff", "tokens": [0, 260]}
    write_records(tmp_path / "a", rows, shards=2)
    features = datasets.Features({"other": feature, **({record: datasets.Value("int64")} if record else {})})
    options = {"features": features, "rename": {name: "other"}, "record": record, "where": "label > 10"}
    with pytest.raises(tfseek.DataError, match=f'00001-of-00002.tfrecord: record 6: column "other": {text}') as found:
        list(load(tmp_path, **options, streaming=True))
    assert (found.value.path, found.value.record) == (str(tmp_path / "a-00001-of-00002.tfrecord"), 6)
    with pytest.raises(datasets.exceptions.DatasetGenerationError) as raised:
        load(tmp_path, **options, cache_dir=str(tmp_path / "cache"), shares=1)
    assert f"{found.value}" in messages(raised.value)


def test_the_cache(tmp_path: pathlib.Path) -> None:
    register()
    files = {"data_files": str(tmp_path / "*.tfrecord"), "split": "train"}
    options: list[dict[str, Any]] = [{}, {"where": "id > 1"}, {"text": "name"}, {"columns": ["name"]}, {"record": "n"}, {"rename": {"name": "id2"}}]
    options += [{"spec": {"id": each}} for each in (NUMBER, tfseek.VarLenFeature("int64"))]
    options.append({"features": datasets.Features({"id": datasets.Value("int32")})})
    for k, call in enumerate((functools.partial(datasets.load_dataset, "tfrecord", **files), functools.partial(load, tmp_path))):
        write_records(tmp_path / "a.tfrecord", ({"id": i, "name": "x"} for i in range(3)))
        runs = []
        for _ in range(2):
            found = [call(**each, cache_dir=str(tmp_path / f"cache {k}")) for each in options]
            runs.append([(ds._fingerprint, os.stat(ds.cache_files[0]["filename"]).st_mtime_ns) for ds in found])
        assert runs[0] == runs[1] and len({fingerprint for fingerprint, _ in runs[0]}) == len(options)
        write_records(tmp_path / "a.tfrecord", ({"id": i, "name": "x"} for i in range(5)))
        assert [len(call(**each, cache_dir=str(tmp_path / f"cache {k}"))) for each in options[:2]] == [5, 3]


def prepare(path: str, cache: str) -> tuple[list[int], Any]:
    ds = load(path, cache_dir=cache)
    return list(ds["id"]), ds.cache_files


def test_processes_prepare_at_once(paths: list[str], tmp_path: pathlib.Path) -> None:
    with SPAWN.Pool(3) as pool:
        found = pool.starmap(prepare, [(paths[0], str(tmp_path))] * 3, chunksize=1)
    assert found[0] == found[1] == found[2] and found[0][0] == list(range(3000))
    assert len(list(tmp_path.rglob("*.arrow"))) == 1


def test_no_records_and_no_splits(tmp_path: pathlib.Path) -> None:
    empty = str(tmp_path / "empty.tfrecord")
    tfseek.Writer(empty).close()
    cache = str(tmp_path / "cache")
    with pytest.raises(tfseek.SpecError, match="expected at least one record to infer a schema from"):
        load(empty, streaming=True)
    assert list(load(empty, SPEC, streaming=True)) == [] and load(empty, SPEC, cache_dir=cache).num_rows == 0
    write_records(tmp_path / "some.tfrecord", [{"id": 1}])
    found = load({"test": empty, "train": tmp_path / "some.tfrecord"}, cache_dir=cache)
    assert {name: list(ds["id"]) for name, ds in found.items()} == {"test": [], "train": [1]}
    with pytest.raises(ValueError, match="source: expected at least one split"):
        load({})


def test_the_builder_refuses_what_others_refuse(copy: list[str], tmp_path: pathlib.Path) -> None:
    for options in ({"name": "a*"}, {"data_files": "a"}, {"data_files": ["a"]}):
        with pytest.raises(ValueError, match="Bad characters|Expected a DataFilesDict"):
            TFRecordConfig(**options)
    with pytest.raises(ValueError, match="data_files: expected at least one file"):
        TFRecord(cache_dir=str(tmp_path)).as_streaming_dataset()
    builder = TFRecord(cache_dir=str(tmp_path), data_files={"train": copy[:1], "test": copy[4:5]}, spec=SPEC)
    train, test = builder._split_generators(datasets.StreamingDownloadManager())
    assert (train.name, test.name) == ("train", "test")
    assert list(builder._generate_shards(**test.gen_kwargs)) == [copy[4]]
    assert sum(len(table) for _, table in builder._generate_tables(**train.gen_kwargs)) == 3000
    for path, at in ((copy[4], 0), (copy[0], -1)):
        damaged = bytearray(pathlib.Path(path).read_bytes())
        damaged[at] ^= 1
        pathlib.Path(path).write_bytes(damaged)
    with pytest.raises(tfseek.DataError, match="odd-4.tfrecord: record 0 at byte 0: length crc32c"):
        load(copy[4], SPEC)
    with pytest.raises(datasets.exceptions.DatasetGenerationError) as raised:
        load(copy[0], SPEC, cache_dir=str(tmp_path / "cache"))
    assert f"{copy[0]}: record 2999 at byte" in messages(raised.value)
