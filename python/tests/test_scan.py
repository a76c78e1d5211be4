"""``Dataset.scan`` and ``tfseek.scan``: streams of Arrow record batches, and the libraries that read them."""

from __future__ import annotations

import gc
import os
import pathlib
import pickle
import threading
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from conftest import flip, run_python, write_records, written

import tfseek

pa = pytest.importorskip("pyarrow")

SPEC = {
    "label": tfseek.Optional("int64"),
    "name": tfseek.FixedLenFeature([], "string"),
    "vec": tfseek.FixedLenFeature([2, 2], "float32"),
    "tokens": tfseek.RaggedFeature("int64"),
    "blob": tfseek.FixedLenFeature([], "string"),
}


def row(i: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": b"row %d" % i,
        "vec": np.arange(4, dtype=np.float32) + i,
        "tokens": np.arange(i % 4),
        "blob": bytes([i % 256]) * (20_000 if i % 10 == 0 else i % 30),
    }
    return values if i % 7 == 3 else {"label": i % 5, **values}


def expected(numbers: Any) -> list[dict[str, Any]]:
    return [
        {
            "label": row(i).get("label"),
            "vec": row(i)["vec"].reshape(2, 2).tolist(),
            "tokens": row(i)["tokens"].tolist(),
            "name": row(i)["name"].decode(),
            "blob": row(i)["blob"],
        }
        for i in numbers
    ]


@pytest.fixture
def ds(tmp_path: pathlib.Path) -> tfseek.Dataset[tfseek.Example]:
    """Two hundred records in a plain, an empty, a gzip and a plain file."""
    for name, numbers in (("a", range(80)), ("b", range(0)), ("c.gz", range(80, 120)), ("d", range(120, 200))):
        compression = "gzip" if name == "c.gz" else "none"
        write_records(tmp_path / f"{name}.tfrecord", (tfseek.Example(row(i)) for i in numbers), compression=compression)
    return tfseek.open([str(path) for path in sorted(tmp_path.iterdir())], index="memory")


def rows(table: Any) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_values(ds: tfseek.Dataset[tfseek.Example]) -> None:
    for bytes in ("view", "copy"):
        for batch_rows in (None, 1, 7):
            scan = ds.scan(spec=SPEC, text=["name"], bytes=bytes, batch_rows=batch_rows)
            assert rows(pa.table(scan)) == expected(range(200))
            assert scan.columns == pa.table(scan).column_names == ["label", "vec", "tokens", "blob", "name"]
    assert pa.schema(scan) == pa.table(scan).schema
    assert scan.schema == tfseek.Schema(SPEC)


def test_lists_of_strings_in_pandas(tmp_path: pathlib.Path) -> None:
    pd = pytest.importorskip("pandas")
    ds = written(tmp_path / "a.tfrecord", [tfseek.Example({"s": [b"a", b"bb"], "t": b"long enough for a view"})], index="memory")
    spec = {"s": tfseek.VarLenFeature("string"), "t": tfseek.FixedLenFeature([], "string")}
    for text in ([], ["s"]):
        scan = ds.scan(spec=spec, text=text)
        frames = [scan.to_pandas(), scan.to_arrow().to_pandas(), ds.scan(spec=spec, text=text, bytes="view").to_pandas()]
        if hasattr(pd.DataFrame, "from_arrow"):
            frames.append(pd.DataFrame.from_arrow(scan))
        for frame in frames:
            assert frame["s"][0].tolist() == (["a", "bb"] if text else [b"a", b"bb"])
    table = pa.schema(scan)
    assert (table.field("t").type, table.field("s").type.value_type) == (pa.binary_view(), pa.string())
    assert pa.schema(ds.scan(spec=table)) == table and pa.schema(ds.scan(spec=table, bytes="copy")).field("t").type == pa.binary()
    views = pa.schema(ds.scan(spec=spec, bytes="view"))
    assert views.field("s").type.value_type == pa.binary_view() and pa.schema(ds.scan(spec=views)) == views


def test_integers_that_may_be_missing_are_not_rounded(tmp_path: pathlib.Path) -> None:
    pd = pytest.importorskip("pandas")
    values = [2**62 + 1, None, -(2**63)]
    ds = written(tmp_path / "a.tfrecord", (tfseek.Example({"i": value, "f": 0.5, "n": 3}) for value in values), index="memory")
    scan = ds.scan(record="number")
    frames = [scan.to_pandas(), scan.to_arrow().to_pandas(), ds.to_pandas(), tfseek.scan(parts=ds.shares(1)[0], spec=ds.schema).to_pandas()]
    if hasattr(pd.DataFrame, "from_arrow"):
        frames.append(pd.DataFrame.from_arrow(scan))
    for frame in frames:
        assert [None if value is pd.NA else value for value in frame["i"]] == values and str(frame["i"].dtype) == "Int64"
        assert (frame["n"].dtype, frame["f"].dtype) == (np.int64, np.float32)
    # The caller's mapper is the one that counts, and a query that computes another column of the name keeps it.
    assert "double" not in str(scan.to_arrow().to_pandas(types_mapper=pd.ArrowDtype).dtypes["i"])


def test_all_records_of_datasets_and_views(ds: tfseek.Dataset[tfseek.Example]) -> None:
    assert rows(ds[10:20].to_arrow(spec=SPEC, text=["name"])) == expected(range(10, 20))
    assert ds.filter("label == 2").to_arrow(["name"]).column_names == ["name"]
    pytest.importorskip("pandas")
    assert ds[::-1].to_pandas(["name"], SPEC, text=["name"])["name"].tolist() == [row(i)["name"].decode() for i in range(199, -1, -1)]
    pytest.importorskip("polars")
    assert ds[:3].to_polars(spec=SPEC, text=["name"]).to_dicts() == expected(range(3))


def test_text_of_patterns(ds: tfseek.Dataset[tfseek.Example]) -> None:
    def text(spec: Any = SPEC, **options: Any) -> list[str]:
        schema = pa.schema(ds.scan(spec=spec, **options))
        return sorted(field.name for field in schema if field.type in (pa.string_view(), pa.string()))

    assert text(text=True) == text(text="*") == text(text=["na*", "bl?b"]) == ["blob", "name"]
    assert text(text=False) == text() == [] and text(text="name") == text(text=["n*"]) == ["name"]
    of_arrow = pa.schema([("name", pa.string()), ("blob", pa.binary())])
    assert text(of_arrow) == ["name"] and text(of_arrow, text=False) == [] and text(of_arrow, text=["blob"]) == ["blob", "name"]
    assert text(columns=["label"], text=True) == []
    assert text(rename={"name": "title"}, text="ti*") == ["title"]
    assert text(spec={"name": tfseek.VarLenFeature("string")}, text="*") == []
    assert pa.schema(ds.scan(spec={"name": tfseek.VarLenFeature("string")}, text="*")).field("name").type.value_type == pa.string()
    with pytest.raises(tfseek.SpecError, match="text: expected a column of byte strings that matches la[*], found none"):
        text(text="la*")


def test_errors_of_inferred_specs_say_so(tmp_path: pathlib.Path) -> None:
    ds = written(tmp_path / "a.tfrecord", ({"label": i, "name": "x" if i < 1100 else np.zeros(0, dtype=bytes)} for i in range(1200)), index="memory")
    with pytest.raises(pa.lib.ArrowInvalid) as e:
        ds.scan().to_arrow()
    assert "record 1100 at byte" in str(e.value) and "External error" not in str(e.value)
    assert "; the spec was inferred from the first records, and spec=tfseek.infer_schema(ds) infers it from all" in str(e.value)
    assert ds.scan(spec=tfseek.infer_schema(ds)).to_arrow()["name"].null_count == 100
    # No advice where it does not help: for all records, for a given spec, and for damage.
    for scan in (ds[1050:].scan(spec=ds.schema), ds.scan(spec=ds.schema)):
        with pytest.raises(pa.lib.ArrowInvalid, match="record 1100 at byte") as e:
            scan.to_arrow()
        assert "infers it" not in str(e.value)


def test_features_that_begin_after_the_first_records_are_not_left_out(tmp_path: pathlib.Path) -> None:
    late = {
        "feature": tfseek.Example({"id": 1500, "other": 1, "late": 1}),
        "list": tfseek.SequenceExample({"id": 1500, "other": 1}, {"frames": [[1], [2]]}),
    }
    for name, record in late.items():
        path = tmp_path / f"{name}.tfrecord"
        write_records(path, (record if i == 1500 else tfseek.Example({"id": i, "other": 1}) for i in range(1600)))
        ds = tfseek.open(path, kind="example" if name == "feature" else "sequence_example")
        feature = "late" if name == "feature" else "frames"
        found = f'record 1500.*"{feature}".*expected a spec of each feature of the record, found none; the spec was inferred from the first'
        for scan in (ds.scan(), ds.scan().take(range(1599, 1490, -1)), ds.scan(where="id > 1400")):
            with pytest.raises(Exception, match=found):
                scan.to_arrow()
        for read in (ds.to_pandas, tfseek.arrow.dataset(ds).to_table):
            with pytest.raises(Exception, match=found):
                read()
        # Whoever names the columns wants no others.
        assert ds.scan(["id"]).to_arrow().num_rows == ds.scan(spec={"id": tfseek.FixedLenFeature([], "int64")}).to_arrow().num_rows == 1600
        assert tfseek.arrow.dataset(ds).to_table(columns=["id"]).num_rows == 1600
        assert ds[:1500].scan().to_arrow().num_rows == 1500
        whole = ds.scan(spec=tfseek.infer_schema(ds)).to_arrow()[feature]
        assert whole[1500].as_py() in (1, [1, 2]) and whole[0].as_py() in (None, [])


def test_columns_and_conditions(ds: tfseek.Dataset[tfseek.Example]) -> None:
    table = ds.scan(["label", "name"], SPEC, where="label in 1, 3..5", text=["name"], record="number").to_arrow()
    numbers = [i for i in range(200) if row(i).get("label") in (1, 3, 4)]
    assert table.column_names == ["number", "label", "name"] and table["number"].to_pylist() == numbers
    assert table["name"].to_pylist() == [f"row {i}" for i in numbers]

    # Inferred specs: the tokens are lists, the label is missing in some records.
    inferred = ds.scan(["label", "tokens"]).to_arrow()
    assert inferred["label"].to_pylist() == [row(i).get("label") for i in range(200)]
    assert inferred["tokens"].to_pylist() == [row(i)["tokens"].tolist() for i in range(200)]
    assert ds.scan(["label"], SPEC, rename={"label": "class"}).columns == ["class"]
    assert ds.scan([], SPEC).to_arrow().num_rows == 200
    tensor = pa.schema(ds.scan(["vec"], SPEC, tensors="extension")).field("vec").type
    assert tensor == pa.fixed_shape_tensor(pa.float32(), (2, 2))


def test_arrow_schemas_as_specs(ds: tfseek.Dataset[tfseek.Example]) -> None:
    scan = ds.scan(spec=SPEC, text=["name"])
    again = ds.scan(spec=pa.schema(scan))
    assert pa.schema(again) == pa.schema(scan)
    assert rows(again.to_arrow()) == expected(range(200))
    fields = pa.schema({"label": pa.int64(), "name": pa.string(), "tokens": pa.list_(pa.int64())})
    table = ds.scan(spec=fields).to_arrow()
    assert table.schema.field("name").type == pa.string()
    assert table["label"].to_pylist() == [row(i).get("label") for i in range(200)]
    assert ds.scan(["label"], fields).columns == ["label"]
    tensors = ds.scan(["vec"], SPEC, tensors="extension")
    assert pa.schema(ds.scan(spec=pa.schema(tensors))) == pa.schema(tensors)
    with pytest.raises(tfseek.SpecError, match='column "label": expected int64, float32, .* found Float64'):
        ds.scan(spec=pa.schema({"label": pa.float64()}))
    with pytest.raises(TypeError, match="spec: expected the schema of a table"):
        ds.scan(spec=pa.int64())


def test_views_and_numbers(ds: tfseek.Dataset[tfseek.Example]) -> None:
    for view, numbers in (
        (ds[10:20], range(10, 20)),
        (ds[::-1], range(199, -1, -1)),
        (ds[[5, 3, 3, 130]], [5, 3, 3, 130]),
        (ds.filter("label == 2"), [i for i in range(200) if row(i).get("label") == 2]),
    ):
        assert rows(view.scan(spec=SPEC, text=["name"]).to_arrow()) == expected(numbers)
    scan = ds.scan(spec=SPEC, text=["name"])
    assert rows(scan.take(np.array([7, 0, 150, -1])).to_arrow()) == expected([7, 0, 150, 199])
    with pytest.raises(tfseek.OutOfRangeError):
        scan.take([200])


def test_parts(ds: tfseek.Dataset[tfseek.Example]) -> None:
    for n in (1, 2, 5, 8):
        found: list[dict[str, Any]] = []
        for share in ds.shares(n):
            scan = tfseek.scan(parts=share, spec=SPEC, text=["name"])
            assert rows(pickle.loads(pickle.dumps(scan)).to_arrow()) == rows(scan.to_arrow())
            found += rows(scan.to_arrow())
        assert found == expected(range(200))
    share = ds.shares(2)[1]
    scan = tfseek.scan(parts=share, spec=SPEC, where="label == 2", record="number", columns=[])
    first = share[0].first
    assert scan.to_arrow()["number"].to_pylist() == [i for i in range(first, 200) if row(i).get("label") == 2]
    assert rows(pickle.loads(pickle.dumps(ds.scan(spec=SPEC, text=["name"]))).to_arrow()) == expected(range(200))


def test_wrong_arguments(ds: tfseek.Dataset[tfseek.Example]) -> None:
    for error, message, call in (
        (tfseek.SpecError, 'columns: no feature of the spec "lable"; the nearest name is "label"', lambda: ds.scan(["lable"], SPEC)),
        (TypeError, "columns: expected a list of names, found the name 'label'", lambda: ds.scan("label", SPEC)),
        (tfseek.SpecError, "expected byte strings", lambda: ds.scan(spec=SPEC, text=["label"])),
        (tfseek.SpecError, "another name for the column", lambda: ds.scan(spec=SPEC, record="label")),
        (ValueError, "bytes: expected one of", lambda: ds.scan(spec=SPEC, bytes="borrow")),
        (ValueError, "batch_rows: expected at least 1, found 0", lambda: ds.scan(spec=SPEC, batch_rows=0)),
        (TypeError, "parts: expected a tfseek.Part", lambda: tfseek.scan(parts=["a"], spec=SPEC)),  # type: ignore[list-item]
        (TypeError, "found a scan of parts", lambda: tfseek.scan(parts=ds.shares(1)[0], spec=SPEC).take([1])),
        (tfseek.SpecError, "nosuch", lambda: pa.table(ds.scan(spec=SPEC, where="nosuch == 1"))),
    ):
        with pytest.raises(error, match=message):
            call()


def test_errors_have_the_place(ds: tfseek.Dataset[tfseek.Example]) -> None:
    strict = {**SPEC, "label": tfseek.FixedLenFeature([], "int64")}
    with pytest.raises(pa.lib.ArrowInvalid, match=r"a\.tfrecord: record 3 at byte .*label"):
        pa.table(ds.scan(spec=strict))
    # Batches before the error are valid.
    stream = pa.RecordBatchReader.from_stream(ds.scan(spec=strict, batch_rows=1))
    assert [stream.read_next_batch().num_rows for _ in range(3)] == [1, 1, 1]
    with pytest.raises(pa.lib.ArrowInvalid, match="record 3"):
        stream.read_next_batch()
    text = ds.scan(["blob"], SPEC, text=["blob"])
    with pytest.raises(pa.lib.ArrowInvalid, match="record 128 of the dataset.*blob.*UTF-8"):
        pa.table(text)


def test_every_library_reads_the_same_values(ds: tfseek.Dataset[tfseek.Example]) -> None:
    scan = ds.scan(spec=SPEC, text=["name"], batch_rows=60)
    want = expected(range(200))
    seen = [name for name in ("polars", "duckdb", "pandas", "nanoarrow", "datafusion") if find_spec(name)]
    if "polars" in seen:
        import polars as pl

        frame = pl.DataFrame(scan)
        assert frame.to_dicts() == want and scan.to_polars().equals(frame)
    if "duckdb" in seen:
        import duckdb

        found = duckdb.sql("select * from scan").fetchall()
        found_rows = [dict(zip(scan.columns, values)) for values in found]
        assert [{**row, "vec": [list(inner) for inner in row["vec"]]} for row in found_rows] == want
        (counts,) = duckdb.sql("select count(*), sum(label) from scan").fetchall()
        assert counts == (200, sum(row["label"] or 0 for row in want))
    if "pandas" in seen:
        import pandas as pd

        assert scan.to_pandas()["name"].tolist() == [row["name"] for row in want]
        if hasattr(pd.DataFrame, "from_arrow"):
            assert pd.DataFrame.from_arrow(scan)["blob"].tolist() == [row["blob"] for row in want]
    if "nanoarrow" in seen:
        import nanoarrow

        # Version 0.9 crashes on views of byte strings, also on those that PyArrow makes.
        copied = ds.scan(spec=SPEC, text=["name"], batch_rows=60, bytes="copy")
        assert [dict(r) for r in nanoarrow.ArrayStream(copied).read_all().to_pylist()] == want
    if "datafusion" in seen:
        import datafusion

        frame = datafusion.SessionContext().from_arrow(scan)
        assert frame.to_pylist() == want
    print("read by pyarrow", *seen)
    if not seen:
        pytest.skip("no library but PyArrow is installed")


def threads() -> int:
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()


def test_streams_that_are_left_early_end_their_threads(ds: tfseek.Dataset[tfseek.Example]) -> None:
    scan = ds.scan(spec=SPEC, batch_rows=2, threads=2)
    before = threads()
    readers = [pa.RecordBatchReader.from_stream(scan) for _ in range(5)]
    for reader in readers:
        reader.read_next_batch()
    assert threads() > before or not os.path.isdir("/proc/self/task")
    del readers, reader
    gc.collect()
    # A thread of an earlier test may end as well.
    assert threads() <= before


def test_streams_leak_nothing(ds: tfseek.Dataset[tfseek.Example]) -> None:
    resource = pytest.importorskip("resource")
    scan = ds.scan(spec=SPEC, batch_rows=50)

    def once(k: int) -> None:
        scan.__arrow_c_schema__()
        reader = pa.RecordBatchReader.from_stream(scan)
        for _ in range(k % 5):
            reader.read_next_batch()
        del reader
        scan.__arrow_c_stream__()

    for k in range(100):
        once(k)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(1000):
        once(k)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB for 1000 streams"


def test_a_stream_outlives_its_dataset_and_moves_between_threads(ds: tfseek.Dataset[tfseek.Example]) -> None:
    reader = pa.RecordBatchReader.from_stream(ds[:150].scan(spec=SPEC, text=["name"], batch_rows=9))
    del ds
    gc.collect()
    found: list[Any] = []

    def read(batches: int) -> None:
        found.extend(reader.read_next_batch() for _ in range(batches))

    for batches in (3, 6, 8):
        worker = threading.Thread(target=read, args=(batches,))
        worker.start()
        worker.join()
    table = pa.Table.from_batches(found)
    assert rows(table) == expected(range(150))


PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
import pyarrow as pa
import tfseek

ds = tfseek.open(sys.argv[1], index="memory")
scan = ds.scan(["label"], batch_rows=3, threads=2)
reader = pa.RecordBatchReader.from_stream(scan)
first = reader.read_next_batch()
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        try:
            reader.read_next_batch()
        except pa.lib.ArrowInvalid as e:
            assert "began before a fork" in str(e), e
            # A stream that begins in the child is complete.
            assert pa.table(ds.scan(["label"], threads=0)).num_rows == len(ds)
            del reader
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert sum(len(batch) for batch in reader) == len(ds) - 3
elif sys.argv[2] == "exit":
    keep = [pa.RecordBatchReader.from_stream(scan) for _ in range(3)]
    [one.read_next_batch() for one in keep]
    sys.modules["kept"] = (keep, reader)  # released when the interpreter ends
print("done")
"""


@pytest.mark.parametrize("end", ["fork", "exit"])
def test_streams_at_exit_and_after_a_fork(ds: tfseek.Dataset[tfseek.Example], end: str) -> None:
    if not hasattr(os, "fork") and end == "fork":
        pytest.skip("no fork on this platform")
    assert run_python(PROGRAM, ds.shards[0], end) == "done\n"


# Four threads share each reader. Some readers are closed while threads read, and damage ends others with an error.
THREADS = """
import sys, threading
import pyarrow as pa
import tfseek

spec = {"name": tfseek.FixedLenFeature([], "string")}
whole = tfseek.open(sys.argv[1], index="memory")
sound = whole.scan(spec=spec, record="i", batch_rows=3, threads=2)
damaged = tfseek.open(sys.argv[2], index="memory").scan(spec=spec, record="i", batch_rows=3, threads=2)
sys.setswitchinterval(1e-5)


def four(work):
    start, failed = threading.Barrier(4), []

    def run():
        start.wait()
        try:
            work()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


want = list(range(len(whole)))
for k in range(int(sys.argv[3])):
    reader, found = pa.RecordBatchReader.from_stream(sound), []
    failed = four(lambda: [found.extend(batch["i"].to_pylist()) for batch in reader])
    assert not failed and sorted(found) == want, (failed, sorted(found))

    reader, found = pa.RecordBatchReader.from_stream(damaged), []
    failed = four(lambda: [found.extend(batch["i"].to_pylist()) for batch in reader])
    assert [str(e).count("crc32c") for e in failed] == [1], failed
    assert len(set(found)) == len(found) < len(want), found

    reader, found = pa.RecordBatchReader.from_stream(damaged if k % 2 else sound), []

    def read_and_close():
        found.extend(batch["i"].to_pylist() for batch, _ in zip(reader, range(k % 9)))
        reader.close()

    four(read_and_close)
print("done")
"""


def test_threads_share_a_stream(ds: tfseek.Dataset[tfseek.Example], tmp_path: pathlib.Path) -> None:
    damaged = tmp_path / "damaged.tfrecord"
    damaged.write_bytes(pathlib.Path(ds.shards[0]).read_bytes())
    flip(damaged, -40)
    assert run_python(THREADS, ds.shards[0], damaged, 200) == "done\n"


def test_sequences(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "s.tfrecord", (tfseek.SequenceExample({"id": i, "tokens": [i]}, {"tokens": [[1], [2, i]]}) for i in range(10)))
    ds = tfseek.open(tmp_path / "s.tfrecord", index="memory")
    with pytest.raises(tfseek.SpecError, match="rename"):
        ds.scan()
    table = ds.scan(rename={"tokens": "context tokens"}).to_arrow()
    assert set(table.column_names) == {"id", "context tokens", "tokens"}
    assert table["tokens"].to_pylist() == [[[1], [2, i]] for i in range(10)]


def test_real_files() -> None:
    """Every file with Examples or SequenceExamples: the values of all records, through PyArrow, Polars and DuckDB."""
    folder = os.environ.get("TFSEEK_REAL_DATA")
    if folder is None:
        pytest.skip("TFSEEK_REAL_DATA is not set: the folder of the real files")
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    checked = records = 0
    for path in sorted(pathlib.Path(folder).iterdir()):
        if not path.is_file() or path.suffix in (".py", ".md", ".tsv"):
            continue
        try:
            ds = tfseek.open(path, index="memory")
            if len(ds) == 0 or ds.kind == "bytes":
                continue
            schema = tfseek.infer_schema(list(ds))
        except tfseek.Error as e:
            print(f"not scanned: {path.name}: {e}")
            continue
        if not schema.features and not schema.feature_lists:
            continue
        both = set(schema.features) & set(schema.feature_lists)
        scan = ds.scan(spec=schema, rename={name: f"context {name}" for name in both}, batch_rows=100)
        table = scan.to_arrow()
        table.validate(full=True)
        columns = {name: table[name].to_pylist() for name in table.column_names}
        for k, record in enumerate(ds):
            context = record.context if isinstance(record, tfseek.SequenceExample) else record
            for name in schema.features:
                same(columns[f"context {name}" if name in both else name][k], context.get(name), f"{path.name} {k} {name}")
            for name in schema.feature_lists:
                steps = record.feature_lists.get(name)  # type: ignore[attr-defined]
                cell = columns[name][k]
                assert len(cell or []) == len(steps or [])
                for step, values in zip(cell or [], steps or []):
                    same(step, values, f"{path.name} {k} {name}")
        texts = {name: repr(values) for name, values in columns.items()}
        frame = pl.DataFrame(scan)
        assert {name: repr(frame[name].to_list()) for name in texts} == texts, path.name
        found = duckdb.sql("select * from scan").arrow()
        found = found.read_all() if hasattr(found, "read_all") else found
        assert {name: repr(found[name].to_pylist()) for name in texts} == texts, path.name
        checked, records = checked + 1, records + len(ds)
    print(f"{checked} files, {records} records")
    assert checked > 50


def same(cell: Any, values: Any, place: str) -> None:
    """Compares a cell with the values of a feature, to the bit."""
    if values is None or len(values) == 0:
        assert cell in (None, []), place
        return
    flat = [cell]
    while any(isinstance(value, list) for value in flat):
        flat = [inner for value in flat for inner in value]
    if values.dtype == object:
        assert flat == list(values), place
    else:
        assert np.array(flat, values.dtype).tobytes() == values.tobytes(), place


def test_columns_keep_the_order_that_was_asked_for(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "x.tfrecord"
    ds = written(path, ({"a": i, "b": [0.5, 1.5], "c": "x", "d": [i, i]} for i in range(3)))
    for columns in (["c", "a"], ["b", "d", "a", "c"], ["a", "c"], ["d", "a", "d"]):
        expected = list(dict.fromkeys(columns))
        scan = ds.scan(columns)
        table = pa.table(scan)
        assert scan.columns == table.column_names == expected
        assert pickle.loads(pickle.dumps(scan)).columns == expected
        assert table.to_pydict()["a" if "a" in columns else "c"] == ([0, 1, 2] if "a" in columns else [b"x"] * 3)
    assert ds.scan(["c", "a"], record="n", rename={"c": "z"}).columns == ["n", "z", "a"]
    parts = tfseek.scan(parts=ds.shares(1)[0], spec=ds.schema, columns=["c", "b"])
    assert parts.columns == pa.table(parts).column_names == ["c", "b"]
    with pytest.raises(tfseek.SpecError, match='columns: no feature of the spec "bb"; the nearest name is "b"'):
        ds.scan(["bb"])


def test_a_feature_of_two_kinds_matters_only_if_it_is_a_column(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.tfrecord"
    ds = written(path, [{"id": 1, "mixed": 1}, {"id": 2, "mixed": 1.5}])
    pytest.importorskip("pyarrow")
    assert ds.scan(["id"]).to_arrow().to_pydict() == {"id": [1, 2]}
    for columns in (["mixed"], ["id", "mixed"], None):
        with pytest.raises(tfseek.SpecError, match='feature "mixed": .*expected one kind'):
            ds.scan(columns)
