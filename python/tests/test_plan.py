"""Plans of engines: what a worker reads of the parts of a dataset."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import write_records

import tfseek
from tfseek import _plan

pa = pytest.importorskip("pyarrow")


def table(reading: _plan.Reading, ds: tfseek.Dataset, *names: Any) -> Any:
    # As in a worker: without the dataset.
    copy = pickle.loads(pickle.dumps(reading))
    parts = [part for share in ds.shares(3) for part in share]
    batches = list(copy.batches(parts, *names))
    return pa.Table.from_batches(batches) if batches else pa.table({})


@pytest.fixture
def ds(tmp_path: pathlib.Path) -> tfseek.Dataset:
    """Fifty records. Every fifth has no size."""
    with tfseek.Writer(tmp_path / "train", shards=2) as writer:
        for i in range(50):
            writer.write({"id": i, "name": f"n{i}", "emb": np.arange(4.0, dtype=np.float32) + i, "size": i if i % 5 else None})
    return tfseek.open(tmp_path, index="memory")


def test_columns_and_conditions(ds: tfseek.Dataset) -> None:
    reading = _plan.Reading(ds, where="id >= 10", text=["title"], record="number", rename={"name": "title"})
    assert reading.schema.names == ["number", "id", "size", "emb", "title"]
    found = table(reading, ds)
    assert found.schema.equals(reading.schema) and found.num_rows == 40
    assert found["number"].to_pylist() == [i for i, ex in enumerate(ds) if ex["id"][0] >= 10]
    assert sorted(found["title"].to_pylist()) == sorted(f"n{i}" for i in range(10, 50))
    assert found["size"].null_count == 8
    for names in (["title"], ["title", "id"], ["number"], ["id", "number"]):
        assert table(reading, ds, names).equals(found.select(names))
    assert table(reading, ds, []).num_rows == 40 and table(reading, ds, []).num_columns == 0
    fewer = reading.where_also(["id < 12 or id == 20", "present(size)"])
    assert sorted(table(fewer, ds, ["id"])["id"].to_pylist()) == [11] and reading.where == "id >= 10"
    assert _plan.Reading(ds).where_also([]).where is None
    assert reading.integers() == {"id", "size"} and reading.quoted("title") == '"name"'
    spec = {"id": tfseek.FixedLenFeature([], "int64", default_value=3), "size": tfseek.VarLenFeature("int64")}
    assert _plan.Reading(ds, spec).integers() == set()


def test_lists_and_a_context(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", (tfseek.SequenceExample({"x": i, "y": i}, {"x": [[i], [i + 1]]}) for i in range(6)))
    ds = tfseek.open(tmp_path, index="memory")
    reading = _plan.Reading(ds, rename={"x": "context x"})
    found = table(reading, ds)
    assert sorted(found.column_names) == ["context x", "x", "y"]
    assert found["context x"].to_pylist() == list(range(6))
    for names in (["x"], ["context x"], ["y", "context x"], ["context x", "x"]):
        assert table(reading, ds, names).equals(found.select(names)), names


def test_pieces(ds: tfseek.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [part for share in ds.shares(1) for part in share]
    assert _plan.pieces(ds) == whole and _plan.share_records(whole) == 50
    monkeypatch.setattr(_plan, "PIECE_BYTES", 1000)
    found = _plan.pieces(ds)
    assert len(found) > 4 and _plan.share_bytes(found) == _plan.share_bytes(whole)
    monkeypatch.setattr(_plan, "MAX_PIECES", 2)
    assert len(_plan.pieces(ds)) <= 4
    assert _plan.share_records([tfseek.Part.of_shard(whole[0].shard)]) is None


def test_names_that_conditions_quote(tmp_path: pathlib.Path) -> None:
    odd = 'a "b" \\c'
    write_records(tmp_path / "a.tfrecord", ({odd: i} for i in range(6)))
    ds = tfseek.open(tmp_path, index="memory")
    reading = _plan.Reading(ds)
    assert table(reading.where_also([f"{reading.quoted(odd)} > 3"]), ds)[odd].to_pylist() == [4, 5]


def test_a_misspelt_name_is_told_by_the_planner(ds: tfseek.Dataset) -> None:
    with pytest.raises(tfseek.Error, match='nearest name is "size"'):
        _plan.Reading(ds, where="not sise > 3")
    with pytest.warns(UserWarning, match="none of the first records has the feature 'label'"):
        reading = _plan.Reading(ds, where="label == 3")
    assert table(reading, ds).num_rows == 0
