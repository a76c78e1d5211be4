"""Tasks of a first hour with tfseek, in the spelling that a data scientist tries first."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest
from conftest import flip, write_records

import tfseek

WORDS = ["goat", "dog", "cat"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder ``data`` with 60 records in two shards. Every fifth record has no score; record ``i`` has ``i % 4`` tokens."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("data").mkdir()
    for shard in range(2):
        with tfseek.Writer(f"data/train-{shard:05}-of-00002.tfrecord") as writer:
            for i in range(30 * shard, 30 * shard + 30):
                record: dict[str, Any] = {"id": i, "label": i % 3, "word": WORDS[i % 3], "tokens": np.arange(i % 4)}
                if i % 5:
                    record["score"] = i / 2
                writer.write(record)


@pytest.fixture
def ds() -> Any:
    return tfseek.open("data")


SPEC = {
    "id": tfseek.FixedLenFeature([], "int64"),
    "score": tfseek.FixedLenFeature([], "float32", default_value=float("nan")),
    "word": tfseek.FixedLenFeature([], "string"),
}


def test_01_a_folder_a_file_a_pattern_and_a_list_are_opened() -> None:
    first = "data/train-00000-of-00002.tfrecord"
    assert len(tfseek.open("data")) == len(tfseek.open(pathlib.Path("data"))) == 60
    assert len(tfseek.open(first)) == 30 and len(tfseek.open([first])) == 30
    assert len(tfseek.open("data/train-*.tfrecord")) == len(tfseek.open("data/*")) == 60


def test_02_one_record_is_looked_at(ds: Any) -> None:
    record = ds[7]
    assert record["label"] == 1 and record["word"][0] == b"dog" and record["score"].item() == 3.5
    assert "score" in record and "score" not in ds[5] and ds[5].get("score") is None
    assert dict(record)["tokens"].tolist() == [0, 1, 2]


def test_03_the_repr_has_names_and_values(ds: Any) -> None:
    assert "60" in repr(ds) and "data" in repr(ds)
    text = repr(ds[7])
    assert all(part in text for part in ("label", "word", "dog", "3.5"))
    assert "<table" in ds._repr_html_() and "<table" in ds[7]._repr_html_()


def test_04_names_of_features_schema_and_info(ds: Any) -> None:
    names = ["id", "label", "score", "tokens", "word"]
    # Record 0 has no score, but others do.
    assert ds[1].keys() == list(ds[1]) == ds[1:].features == ds.schema.features == names
    assert "score" in repr(ds.schema) and json.loads(ds.schema.to_json())["features"]["word"]["dtype"] == "string"
    info = ds.info()
    assert info["records"] == 60 and info["shards"] == 2 and info["bytes"] > 0


def test_05_records_are_counted_by_label(ds: Any) -> None:
    from collections import Counter

    labels = ds.column("label")
    assert np.bincount(labels).tolist() == [20, 20, 20] and labels.present.all()
    assert np.unique(ds.column("word").values, return_counts=True)[1].tolist() == [20, 20, 20]
    assert Counter(record["label"].item() for record in ds) == {0: 20, 1: 20, 2: 20}


def test_06_records_are_filtered(ds: Any) -> None:
    goats = ds.filter("word == 'goat' and score > 20")
    assert len(goats) > 0 and all(record["word"][0] == b"goat" for record in goats)
    assert ds.filter("absent(score)").ids.tolist() == list(range(0, 60, 5))
    with pytest.raises(tfseek.SpecError, match="label"):
        ds.filter("labels == 3")
    labels = ds.column("label").values
    assert len(ds[labels == 2]) == len(ds[np.flatnonzero(labels == 2)]) == 20


def test_10_a_frame_of_a_batch_with_missing_values(ds: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(tfseek.parse_example(ds, SPEC))
    assert frame.shape == (60, 3) and frame["score"].isna().sum() == 12
    assert frame.groupby("word")["id"].count().tolist() == [20, 20, 20]
    frame["score"] = frame["score"].fillna(0)
    frame.loc[0, "id"] = 100


def test_11_a_frame_of_columns(ds: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: ds.column(name) for name in ("label", "score")})
    assert frame["score"].isna().sum() == 12 and frame.groupby("label").size().tolist() == [20, 20, 20]


def test_12_batches(ds: Any) -> None:
    batches = list(tfseek.Loader(ds, SPEC, batch_size=25))
    assert [len(batch["id"]) for batch in batches] == [25, 25, 10] and batches[0]["id"].tolist() == list(range(25))
    assert [len(batch["id"]) for batch in tfseek.Loader(ds, ds.schema, batch_size=25, drop_last=True)] == [25, 25]
    assert sorted(next(iter(tfseek.Loader(ds, ds.schema, batch_size=8)))) == ["id", "label", "score", "tokens", "word"]
    assert sum(len(batch) for batch in tfseek.Loader(ds, batch_size=25)) == 60


def test_14_a_batch_is_peeked_at(ds: Any) -> None:
    loader = tfseek.Loader(ds, SPEC, batch_size=10)
    batch = next(iter(loader))
    assert {name: column.shape for name, column in batch.items()} == {"id": (10,), "score": (10,), "word": (10,)}
    assert "<table" in str(tfseek.show(batch)) and len(list(loader)) == len(loader) == 6


def test_16_a_dict_is_written() -> None:
    with tfseek.Writer("one.tfrecord") as writer:
        writer.write({"label": 3, "name": "Zoë", "weights": [0.5, 1.5], "image": b"\x89PNG"})
        assert writer.records_written == 1
    record = tfseek.open("one.tfrecord")[0]
    assert record["name"][0].decode() == "Zoë" and record["weights"].dtype == np.float32


def test_17_shards_are_written_into_a_new_folder() -> None:
    for shards in (None, 2):
        with pytest.raises(FileNotFoundError, match="^posts: the folder does not exist; os.makedirs creates it$"):
            tfseek.Writer("posts/train", shards=shards)
    os.makedirs("posts")
    write_records("posts/train", ({"id": i} for i in range(10)), shards=2)
    assert os.listdir("posts") and len(tfseek.open("posts")) == 10


def gzip_file(ds: Any) -> str:
    write_records("all.tfrecord.gz", ds, compression="gzip")
    return "all.tfrecord.gz"


def test_18_a_gzip_file_is_sampled_and_read_in_batches(ds: Any) -> None:
    stream = tfseek.stream(gzip_file(ds))
    sample = stream.sample(10, seed=1)
    assert len(sample) == 10 and all(record["word"][0].decode() in WORDS for record in sample)
    assert [len(batch["id"]) for batch in stream.batches(SPEC, 25)] == [25, 25, 10]
    assert sum(1 for _ in stream) == 60


def test_19_a_gzip_file_is_unpacked(ds: Any) -> None:
    packed = tfseek.open(gzip_file(ds))
    assert len(packed) == 60 and packed[59]["id"] == ds[59]["id"]
    (path,) = tfseek.unpack("all.tfrecord.gz", "plain")
    assert len(tfseek.open(path)) == len(tfseek.open("plain")) == 60


def test_20_damage_has_a_file_a_record_and_a_way_on(ds: Any) -> None:
    path = pathlib.Path("data/train-00000-of-00002.tfrecord")
    flip(path, b"cat")
    damaged = tfseek.open("data")
    with pytest.raises(tfseek.DataError, match="train-00000-of-00002.tfrecord: record 2 ") as raised:
        list(damaged)
    assert raised.value.path == str(path) and raised.value.record == 2
    loader = tfseek.Loader(damaged, SPEC, batch_size=10, damage="skip")
    assert sum(len(batch["id"]) for batch in loader) == 59
    found = tfseek.verify("data")
    assert not found.ok and found.records == 29 + 30 and "record 2" in str(found.errors[0])
    assert tfseek.verify("data/train-00001-of-00002.tfrecord").ok


def test_21_progress(ds: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tfseek.open("data", index="rebuild", progress=True)
    ds.column("label", progress=True)
    assert len(capsys.readouterr().err.splitlines()) >= 2


def test_24_parse_example(ds: Any) -> None:
    batch = tfseek.parse_example([bytes(ds[1]), bytes(ds[2])], SPEC)
    assert batch["score"].tolist() == [0.5, 1.0]
    one = tfseek.parse_single_example(ds[1], SPEC)
    assert one["id"] == 1 and one["word"] == b"dog"
    with pytest.raises(tfseek.DataError, match='record 0 .*"score"'):
        tfseek.parse_example(ds[:4], {"score": tfseek.FixedLenFeature([], "float32")})


def test_29_text_is_read_as_str(ds: Any) -> None:
    batch = tfseek.parse_example(ds[:3], SPEC, bytes_as="str")
    assert batch["word"].tolist() == WORDS
    for batch in tfseek.Loader(ds, SPEC, batch_size=30, bytes_as="str"):
        assert batch["word"][0] == "goat"
    assert "&quot;goat&quot;, &quot;dog&quot;" in str(tfseek.show(batch))
    assert next(tfseek.stream("data").batches(SPEC, 3, bytes_as="str"))["word"].tolist() == WORDS


def test_30_missing_values_stay_missing(ds: Any) -> None:
    spec = {"id": tfseek.FixedLenFeature([], "int64"), "score": tfseek.Optional("float32")}
    batch = tfseek.parse_example(ds, spec)
    assert batch["score"][0] is None and batch["score"][1] == 0.5 and batch["score"].present.sum() == 48
    assert tfseek.parse_example(ds, {"score": tfseek.Optional("float32", default=-1)})["score"][0] == -1
    assert "None, 0.5, 1.0" in str(tfseek.show(batch))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(batch)
    assert frame["score"].isna().sum() == 12 and frame["score"].mean() == pytest.approx(ds.column("score").values.sum() / 48)
