"""Spark: the data source."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

import numpy as np
import pytest
from harness import SPEC, Pair, Suite, assert_written, copy, die_once, pairs_of, paths, urls, want

import tfseek

pyspark = pytest.importorskip("pyspark", minversion="4.1")
pa = pytest.importorskip("pyarrow")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark requires Java", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

import tfseek.spark  # noqa: E402

__all__ = ["copy", "paths", "urls", "want"]


class Odd(tfseek.spark.Source):
    """The source of the tests: its workers die once, and it waits after planning. Both options are paths of files."""

    @classmethod
    def name(cls) -> str:
        return "odd"

    def reader(self, schema: Any) -> Any:
        reader: Any = super().reader(schema)
        reader.__class__ = OddReader
        reader.die, reader.planned = self.options.get("die"), self.options.get("planned")
        return reader


    def writer(self, schema: Any, overwrite: bool) -> Any:
        writer: Any = super().writer(schema, overwrite)
        writer.__class__ = OddWriter
        writer.die = self.options.get("die")
        return writer


class OddWriter(tfseek.spark.ArrowWriter):
    die: Optional[str]

    def write(self, iterator: Iterator[Any]) -> Any:
        def passed_on() -> Iterator[Any]:
            for batch in iterator:
                yield batch
                die_once(self.die)

        return super().write(passed_on())


class OddReader(tfseek.spark.Reader):
    die: Optional[str]
    planned: Optional[str]

    def partitions(self) -> Any:
        found = super().partitions()
        if self.planned:
            pathlib.Path(self.planned).touch()
            while os.path.exists(self.planned):
                time.sleep(0.05)
        return found

    def read(self, partition: Any) -> Iterator[Any]:
        for batch in super().read(partition):
            yield batch
            die_once(self.die)


@pytest.fixture(scope="module")
def spark(urls: list[str]) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        # Workers must be this interpreter, and import the harness.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)
        builder = SparkSession.builder.master("local[2,4]").appName("tfseek").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.python.filterPushdown.enabled", "true").config("spark.driver.host", "localhost")
        session = builder.config("spark.driver.memory", "2g").getOrCreate()
        session.dataSource.register(tfseek.spark.Source)
        session.dataSource.register(Odd)
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def read(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    session = SparkSession.getActiveSession()
    options = {"shares": shares, "record": "n", "spec": tfseek.Schema(SPEC).to_json()}
    with tempfile.TemporaryDirectory() as folder:
        signal = pathlib.Path(folder, "planned")

        def wait() -> None:
            while not signal.exists():
                time.sleep(0.05)
            assert planned
            planned()
            signal.unlink()

        if planned:
            options["planned"] = str(signal)
            threading.Thread(target=wait, daemon=True).start()
        if die:
            options["die"] = die
        return pairs_of(session.read.format("odd").options(**options).load(paths).toArrow())


@pytest.mark.usefixtures("spark")
class TestSpark(Suite):
    read = staticmethod(read)


@pytest.fixture
def small(tmp_path: pathlib.Path) -> str:
    """A hundred records. Those with a multiple of 3 have no size."""
    (tmp_path / "in").mkdir()
    with tfseek.Writer(tmp_path / "in" / "a.tfrecord") as writer:
        for i in range(100):
            size = {"size": i % 10} if i % 3 else {}
            writer.write({"id": i, "emb": np.arange(4, dtype=np.float32) + i, "name": f"record {i}", "tags": [b"a", b"b"][: i % 3] or None, **size})
    return str(tmp_path / "in")


def test_values(spark: Any, small: str) -> None:
    spec = {
        "id": tfseek.FixedLenFeature([], "int64"),
        "emb": tfseek.FixedLenFeature([2, 2], "float32"),
        "name": tfseek.FixedLenFeature([], "string"),
        "tags": tfseek.VarLenFeature("string"),
        "size": tfseek.Optional("int64"),
    }
    options = {"spec": tfseek.Schema(spec).to_json(), "text": "na*", "shares": 3}
    df = spark.read.format("tfseek").options(**options).load(small)
    assert sorted(df.columns) == sorted(spec)
    rows = df.orderBy("id").collect()
    assert len(rows) == 100 and rows[0]["size"] is None and rows[1]["size"] == 1
    assert rows[5]["emb"] == [[5.0, 6.0], [7.0, 8.0]] and rows[5]["name"] == "record 5"
    assert [bytes(tag) for tag in rows[5]["tags"]] == [b"a", b"b"]
    assert df.where("size is null").count() == 34 and df.agg({"id": "sum"}).first()[0] == 4950
    some = spark.read.format("tfseek").options(columns="id, name", where="id in 10..20").load(small)
    assert sorted(some.columns) == ["id", "name"] and some.count() == 10
    mine = spark.read.format("tfseek").schema("id bigint").load([small + "/a.tfrecord", small + "/a.tfrecord"])
    assert mine.columns == ["id"] and mine.count() == 200


def test_pushdown(spark: Any, small: str) -> None:
    plain = spark.read.format("tfseek").load(small)
    pushed = spark.read.format("tfseek").options(pushdown="true", record="n").load(small)
    conditions = ["id > 90", "id = 5", "id in (1, 2, 300)", "id >= 10 and id < 20 and n < 15", "size is not null", "id <> 3", "name = 'x'"]
    for condition in conditions:
        if " n " not in condition:
            assert pushed.where(condition).count() == plain.where(condition).count(), condition
    assert pushed.where("id >= 10 and id < 20 and n < 15").count() == 5
    # A default is a value for Spark, and not for a condition.
    spec = tfseek.Schema({"size": tfseek.FixedLenFeature([], "int64", default_value=7)}).to_json()
    assert spark.read.format("tfseek").options(pushdown="true", spec=spec).load(small).where("size = 7").count() == 34 + 7
    # A reader that is given the filters reads fewer records.
    source = tfseek.spark.Source({"path": small, "pushdown": "true", "record": "n"})
    reader = source.reader(source.schema())
    from pyspark.sql.datasource import GreaterThan, In, IsNotNull, LessThan, Not

    filters = [GreaterThan(("id",), 90), In(("id",), (91, 92, 3)), LessThan(("n",), 95), IsNotNull(("size",)), Not(In(("id",), (91,)))]
    assert list(reader.pushFilters(filters)) == filters
    assert [batch.num_rows for batch in reader.read(reader.partitions()[0])] == [2]


def test_what_was_written_reads_back(spark: Any, paths: list[str], want: list[Pair], tmp_path: pathlib.Path) -> None:
    source = spark.read.format("tfseek").options(spec=tfseek.Schema(SPEC).to_json(), shares=4).load(paths)
    out = str(tmp_path / "out" / "train")
    # A task that runs twice counts once.
    source.write.format("odd").option("die", str(tmp_path / "died")).mode("append").save(out)
    assert (tmp_path / "died").exists() and len(list((tmp_path / "out").glob("train-*"))) > 1
    assert_written(tmp_path / "out", want)
    with pytest.raises(Exception, match="already exists"):
        source.write.format("tfseek").mode("append").save(out)
    source.where("id < 10").coalesce(1).write.format("tfseek").mode("overwrite").save(out)
    assert [path.name for path in (tmp_path / "out").glob("train-*")] == ["train-00000-of-00001.tfrecord"]
    assert_written(tmp_path / "out", want[:10])


def test_a_job_that_fails_leaves_no_set(spark: Any, small: str, tmp_path: pathlib.Path) -> None:
    source = spark.read.format("tfseek").option("shares", 3).load(small)
    with pytest.raises(Exception, match="expected"):
        # A double that is no float.
        source.selectExpr("id", "if(id = 90, 0.1D, 0.5D) as x").write.format("tfseek").mode("append").save(str(tmp_path / "out" / "x"))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
