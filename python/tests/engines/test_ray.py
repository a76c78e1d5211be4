"""Ray Data: the datasource and the datasink."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Callable, Optional

import numpy as np
import pytest
from harness import RECORDS, SPEC, Pair, Suite, assert_written, copy, die_once, pairs_of, paths, urls, want

import tfseek

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")

import tfseek.ray  # noqa: E402

__all__ = ["copy", "paths", "urls", "want"]


@pytest.fixture(scope="module", autouse=True)
def cluster(urls: list[str]) -> Iterator[None]:
    environment = {"env_vars": {"PYTHONPATH": os.path.dirname(__file__)}}
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False, runtime_env=environment)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def pass_on(table: Any, die: Optional[str]) -> Any:
    die_once(die)
    return table


def read(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    ds = tfseek.ray.read(paths, SPEC, record="n", override_num_blocks=shares)
    if planned:
        planned()
    # Runs in the process that reads, after its first batch.
    ds = ds.map_batches(partial(pass_on, die=die), batch_format="pyarrow", batch_size=500)
    return [pair for batch in ds.iter_batches(batch_format="pyarrow", batch_size=None) for pair in pairs_of(batch)]


class TestRay(Suite):
    read = staticmethod(read)


def test_plans(paths: list[str]) -> None:
    source = tfseek.ray.TFRecordSource(paths, SPEC)
    tasks = source.get_read_tasks(5)
    assert len(tasks) == len(tfseek.open(paths).shares(5)) > 2
    assert sum(task.metadata.num_rows or 0 for task in tasks) == RECORDS
    assert source.get_read_tasks(1)[0].metadata.num_rows == RECORDS
    assert [task.metadata for task in source.get_read_tasks(5)] == [task.metadata for task in tasks]
    where = tfseek.ray.TFRecordSource(paths, SPEC, where="id < 10")
    assert [task.metadata.num_rows for task in where.get_read_tasks(2)] == [None] * len(where.get_read_tasks(2))
    assert (source.estimate_inmemory_data_size() or 0) > 30_000_000


def test_pushdown(paths: list[str]) -> None:
    col = ray.data.expressions.col
    ds = tfseek.ray.read(paths, SPEC, record="n", override_num_blocks=3)
    assert ds.count() == RECORDS
    assert ds.schema().names == ["n", "id", "values", "text"]
    some = ds.select_columns(["id"])
    assert some.schema().names == ["id"] and some.take(2) == [{"id": 0}, {"id": 1}]
    assert some.count() == RECORDS
    assert ds.select_columns(["n"]).sum("n") == RECORDS * (RECORDS - 1) // 2
    # Filters of Ray are evaluated by Ray, and give the right number of rows also without columns.
    few = ds.filter(expr=col("id") < 10)
    assert few.count() == 10 and few.select_columns(["n"]).count() == 10
    assert ds.select_columns(["id"]).filter(expr=col("id") >= 9_990).count() == 10
    mine = tfseek.ray.read(paths, SPEC, where="id in 5..25", override_num_blocks=3)
    assert mine.count() == 20 and mine.select_columns(["id"]).count() == 20
    assert [row["id"] for row in mine.select_columns(["id"]).take_all()] == list(range(5, 25))
    assert mine.select_columns([]).count() == 20 and ds.select_columns([]).count() == RECORDS
    assert tfseek.ray.read(paths, columns=["id"], where="id == 5").take_all() == [{"id": 5}]


def test_the_stub_column_is_that_of_ray() -> None:
    from ray.data._internal import arrow_block

    assert arrow_block._BATCH_SIZE_PRESERVING_STUB_COL_NAME == tfseek.ray.STUB


def test_tensors(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(10):
            writer.write({"emb": np.arange(4, dtype=np.float32) + i, "label": i})
    spec = {"emb": tfseek.FixedLenFeature([2, 2], "float32"), "label": tfseek.FixedLenFeature([], "int64")}
    (batch,) = tfseek.ray.read(tmp_path, spec, override_num_blocks=1).iter_batches(batch_size=10)
    assert batch["emb"].shape == (10, 2, 2) and batch["emb"].dtype == np.float32 and batch["emb"][3, 1, 1] == 6.0


def test_what_was_written_reads_back(paths: list[str], want: list[Pair], tmp_path: pathlib.Path) -> None:
    ds = tfseek.ray.read(paths, SPEC, override_num_blocks=4)
    out = tfseek.ray.write(ds, tmp_path / "out" / "train")
    assert len(out) > 1 and out == sorted(map(str, (tmp_path / "out").glob("train-*")))
    assert_written(tmp_path / "out", want)
    with pytest.raises(tfseek.Error, match="already exists"):
        tfseek.ray.write(ds, tmp_path / "out" / "train")
    few = tfseek.ray.read(paths, SPEC, where="id < 10", override_num_blocks=2)
    (shard,) = tfseek.ray.write(few, tmp_path / "out" / "train", force=True, compression="none")
    assert os.path.basename(shard) == "train-00000-of-00001.tfrecord"
    assert_written(tmp_path / "out", want[:10])
    for shards in (1, 3):
        assert len(tfseek.ray.write(ds, tmp_path / "out" / "train", shards=shards, force=True)) == shards
        assert_written(tmp_path / "out", want)


def test_text_and_integers_that_may_be_missing(tmp_path: pathlib.Path) -> None:
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(4):
            writer.write({"name": f"row {i}", "code": b"\xff", "big": 2**62 + 1 if i else None})
    ds = tfseek.ray.read(tmp_path, text="na*", override_num_blocks=1)
    frame = ds.to_pandas()
    assert sorted(frame["name"]) == [f"row {i}" for i in range(4)] and set(frame["code"]) == {b"\xff"}
    assert frame["big"].dropna().tolist() == [2**62 + 1] * 3 and len(frame) == 4


def test_a_task_that_runs_twice_counts_once(paths: list[str], want: list[Pair], tmp_path: pathlib.Path) -> None:
    ds = tfseek.ray.read(paths, SPEC, override_num_blocks=3)
    ds = ds.map_batches(partial(pass_on, die=str(tmp_path / "died")), batch_format="pyarrow", batch_size=500)
    tfseek.ray.write(ds, tmp_path / "out" / "train")
    assert (tmp_path / "died").exists()
    assert_written(tmp_path / "out", want)


def refuse(table: Any) -> Any:
    if 9_000 in table["id"].to_pylist():
        raise ValueError("refused")
    return table


def test_a_job_that_fails_leaves_no_set(paths: list[str], tmp_path: pathlib.Path) -> None:
    ds = tfseek.ray.read(paths, SPEC, override_num_blocks=3).map_batches(refuse, batch_format="pyarrow", batch_size=500)
    with pytest.raises(Exception, match="refused"):
        tfseek.ray.write(ds, tmp_path / "train")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
