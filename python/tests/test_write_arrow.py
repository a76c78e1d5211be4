"""``tfseek.write``: tables, data frames and streams of other libraries, written and read back."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import pytest
from conftest import in_threads, run_python, write_records

import tfseek
from tfseek import _tasks

pa = pytest.importorskip("pyarrow")

N = 50


def row(i: int) -> dict[str, Any]:
    """The features of a row: absent ones, empty lists, short and long strings."""
    values: dict[str, Any] = {
        "blob": bytes([i]) * (i * 7 % 40),
        "flag": [i % 2],
        "name": f"row {i} é",
        "score": np.array([i / 4], dtype=np.float32),
        "tokens": np.arange(i % 4),
    }
    return values if i % 5 == 3 else {"label": [i * 1000], **values}


def payloads() -> list[bytes]:
    return [tfseek.Example(row(i)).to_bytes() for i in range(N)]


def columns() -> dict[str, list[Any]]:
    """The same rows as columns."""
    return {
        "label": [None if i % 5 == 3 else i * 1000 for i in range(N)],
        "blob": [row(i)["blob"] for i in range(N)],
        "flag": [i % 2 == 1 for i in range(N)],
        "name": [row(i)["name"] for i in range(N)],
        "score": [i / 4 for i in range(N)],
        "tokens": [list(range(i % 4)) for i in range(N)],
    }


def table() -> Any:
    return pa.table(columns())


def found(path: Any) -> list[bytes]:
    return [bytes(record) for record in tfseek.stream(path, kind="bytes")]


def files(folder: pathlib.Path) -> list[str]:
    return sorted(os.listdir(folder))


def of_pyarrow() -> Any:
    return table()


def of_pyarrow_reader() -> Any:
    return pa.RecordBatchReader.from_batches(table().schema, table().to_batches(max_chunksize=7))


def of_pyarrow_dictionaries() -> Any:
    encoded = table()
    for name in ("name", "label", "blob"):
        at = encoded.schema.get_field_index(name)
        encoded = encoded.set_column(at, name, encoded[name].dictionary_encode())
    return encoded


def of_polars() -> Any:
    pl = pytest.importorskip("polars")
    return pl.DataFrame(columns()).with_columns(pl.col("name").cast(pl.Categorical))


def of_duckdb() -> Any:
    duckdb = pytest.importorskip("duckdb")
    rows = table()
    assert rows.num_rows == N
    return duckdb.sql("select * from rows")


def of_pandas() -> Any:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(columns())
    return frame.astype({"label": "Int64", "name": "category"})


def of_nanoarrow() -> Any:
    na = pytest.importorskip("nanoarrow")
    return na.ArrayStream(table())


def of_scan(tmp_path: pathlib.Path) -> Any:
    write_records(tmp_path / "scanned.tfrecord", payloads())
    return tfseek.open(tmp_path / "scanned.tfrecord", index="memory").scan()


OTHERS: list[Callable[[], Any]] = [
    of_pyarrow,
    of_pyarrow_reader,
    of_pyarrow_dictionaries,
    of_polars,
    of_duckdb,
    of_pandas,
    of_nanoarrow,
]


@pytest.mark.parametrize("make", OTHERS, ids=lambda make: make.__name__)
def test_streams_of_other_libraries(make: Callable[[], Any], tmp_path: pathlib.Path) -> None:
    written = tfseek.write(make(), tmp_path / "a.tfrecord")
    assert found(written.path) == payloads()
    assert (written.records, written.shards) == (N, [str(tmp_path / "a.tfrecord")])
    assert written.bytes == os.path.getsize(written.path)
    written = tfseek.write(make(), tmp_path / "out" / "train.tfrecord", shards=8, index=True)
    assert written.path == str(tmp_path / "out" / "train@8.tfrecord")
    assert [bytes(record) for record in tfseek.open(written.path, index="require")] == payloads()
    assert [len(found(shard)) for shard in written.shards] == [6, 6, 6, 7, 6, 6, 6, 7]


def test_a_scan_there_and_back(tmp_path: pathlib.Path) -> None:
    scan = of_scan(tmp_path)
    assert found(tfseek.write(scan, tmp_path / "a.tfrecord").path) == payloads()
    spec = {"tokens": tfseek.RaggedFeature("int64"), "label": tfseek.Optional("int64")}
    some = tfseek.open(tmp_path / "scanned.tfrecord", index="memory").scan(spec=spec, where="label > 10000")
    want = [tfseek.Example({k: row(i)[k] for k in spec}).to_bytes() for i in range(11, N) if i % 5 != 3]
    assert found(tfseek.write(some, tmp_path / "b.tfrecord").path) == want


def test_a_scan_with_a_damaged_record(tmp_path: pathlib.Path) -> None:
    scan = of_scan(tmp_path)
    path = tmp_path / "scanned.tfrecord"
    data = bytearray(path.read_bytes())
    data[data.index("row 30 é".encode())] ^= 1
    path.write_bytes(data)  # the scan has the file open
    with pytest.raises(tfseek.Error, match="stream: .*scanned.tfrecord: record 30 at byte .*crc32c"):
        tfseek.write(scan, tmp_path / "a@3")
    assert files(tmp_path) == ["scanned.tfrecord"]


def test_types(tmp_path: pathlib.Path) -> None:
    ints = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.bool_()]
    floats = [pa.float16(), pa.float32(), pa.float64()]
    strings = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(1)]
    one, half = pa.array([1, None]), pa.array([np.float16(0.5), None])
    data = {f"i {t}": one.cast(t) for t in ints}
    data.update({f"f {t}": half.cast(t) for t in floats})
    data.update({f"s {t}": pa.array([b"x", None]).cast(t) for t in strings})
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    data["tensor"] = pa.ExtensionArray.from_storage(tensor, pa.array([[1, 2, 3, 4], None], pa.list_(pa.float32(), 4)))
    data["nested"] = pa.array([[[1, 2], [3, 4]], None], pa.list_(pa.list_(pa.int8(), 2)))
    data["view"] = pa.array([[1, 2], None], pa.list_view(pa.int64()))
    data["null"] = pa.nulls(2)
    first, second = tfseek.stream(tfseek.write(pa.table(data), tmp_path / "a").path, kind="example")
    assert second.keys() == []
    assert set(first.keys()) == set(data) - {"null"}
    for name, values in first.items():
        if name[:2] in ("i ", "f ", "s "):
            assert values.tolist() == [{"i": 1, "f": 0.5, "s": b"x"}[name[0]]], name
    assert first["tensor"].tolist() == first["nested"].tolist() == [1, 2, 3, 4]
    assert first["view"].tolist() == [1, 2]


def test_float64(tmp_path: pathlib.Path) -> None:
    data = pa.table({"f": [0.5, 0.1], "l": [[], [1e-50, np.nan]]})
    with pytest.raises(tfseek.DataError, match=r'row 1: column "f": .*found 0.1 \(float64="round" stores the nearest float32\)'):
        tfseek.write(data, tmp_path / "a")
    first, second = tfseek.stream(tfseek.write(data, tmp_path / "a", float64="round").path)
    assert second["f"].tolist() == [np.float32(0.1)] and second["l"][0] == 0 and np.isnan(second["l"][1])
    for value in (1e39, -1e300):
        with pytest.raises(tfseek.DataError, match=f"to 3.4028235e38, found {value:.0e}".replace("+", "")):
            tfseek.write(pa.table({"f": [value]}), tmp_path / "a", float64="round", force=True)
    with pytest.raises(ValueError, match="float64: expected"):
        tfseek.write(data, tmp_path / "b", float64="cast")  # type: ignore[call-overload]
    job = _tasks.begin(tmp_path / "t", float64="round")
    _tasks.finish(job, [_tasks.write_stream(job, 0, data)])
    assert [row["f"].tolist() for row in tfseek.open(tmp_path / "t@1.tfrecord")] == [[0.5], [np.float32(0.1)]]


def test_feature_lists_and_names(tmp_path: pathlib.Path) -> None:
    data = pa.table({"id": [1, 2], "steps": [[[1, 2], [], None], None], "frames": [["a", "b"], []]})
    written = tfseek.write(data, tmp_path / "a", feature_lists=["steps", "frames"], rename={"steps": "id", "id": "x"})
    first, second = tfseek.stream(written.path, kind="sequence_example")
    assert first.context["x"].tolist() == [1]
    assert [step if step is None else step.tolist() for step in first.feature_lists["id"]] == [[1, 2], [], None]
    assert [step.tolist() for step in first.feature_lists["frames"]] == [[b"a"], [b"b"]]
    assert second.feature_lists.to_dict() == {"frames": []}
    assert found(tfseek.write(data, tmp_path / "b", feature_lists="steps", rename={}).path)


def struct_rows() -> Any:
    """Rows with a struct, with lists of structs of each type of lists, and with a list of lists in one."""
    thing = pa.struct([("label", pa.int64()), ("name", pa.string())])
    step = pa.struct([("frame", pa.list_(pa.int64())), ("at", pa.struct([("x", pa.float32())]))])
    kinds = {"meta": thing, "things": pa.list_(thing), "large": pa.large_list(thing), "pair": pa.list_(thing, 2), "steps": pa.list_(step)}
    rows = []
    for i in range(9):
        things = [{"label": 10 * i + k, "name": f"{i}.{k}"} for k in range(i % 3)]
        steps = [{"frame": list(range(k)), "at": {"x": k / 2}} for k in range(i % 4)]
        rows.append({"id": i, "meta": {"label": i, "name": None}, "things": things, "large": things, "pair": things * (2 // max(i % 3, 1)), "steps": steps})
        if i % 3 == 0:
            rows[i].update(meta=None, things=None, large=None, pair=None)
    return pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), *kinds.items()]))


def fields_of(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a row of ``struct_rows``, without absent ones."""
    found = {"id": row["id"], "steps/frame": [step["frame"] for step in row["steps"]], "steps/at/x": [step["at"]["x"] for step in row["steps"]]}
    if row["meta"]:
        found["meta/label"] = row["meta"]["label"]
    for name in ("things", "large", "pair"):
        for field in ("label", "name") if row[name] is not None else ():
            found[f"{name}/{field}"] = [item[field] for item in row[name]]
    return found


#: Forms of a table, and the first and last of its rows in them.
FORMS: dict[str, tuple[Callable[[Any], Any], int, int]] = {
    "table": (lambda table: table, 0, 9),
    "chunks": (lambda table: pa.concat_tables([table[:4], table[4:]]), 0, 9),
    "part": (lambda table: table[2:7], 2, 7),
    "batch": (lambda table: table.to_batches()[0], 0, 9),
    "reader": (lambda table: table.to_reader(max_chunksize=2), 0, 9),
}


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_structs(form: str, task: bool, tmp_path: pathlib.Path) -> None:
    make, first, end = FORMS[form]
    stream = make(struct_rows())
    if task:
        job = _tasks.begin(tmp_path / "a", feature_lists=["steps/frame"])
        _tasks.finish(job, [_tasks.write_stream(job, 0, stream)])
    else:
        tfseek.write(stream, tmp_path / "a.tfrecord", feature_lists="steps/frame")
    found = tfseek.open(tmp_path).to_arrow(text=["*name"]).to_pylist()
    want = [fields_of(row) for row in struct_rows().to_pylist()[first:end]]
    assert [{name: value for name, value in row.items() if value is not None} for row in found] == want


def test_structs_with_nulls_and_names_twice(tmp_path: pathlib.Path) -> None:
    for items in ([{"a": 1}, None], [{"a": 1}, {"a": None}]):
        with pytest.raises(tfseek.DataError, match='row 1: column "s/a": expected values in the list, found null') as raised:
            tfseek.write(pa.table({"s": [[{"a": 0}], items]}), tmp_path / "x")
        assert (raised.value.row, raised.value.feature) == (1, "s/a")
    with pytest.raises(tfseek.SpecError, match="expected one column for each feature"):
        tfseek.write(pa.table({"s": [{"a": 1}], "s/a": [2]}), tmp_path / "x")
    tfseek.write(pa.table({"s": [{"a": 1}], "t": [{"a": 2}]}), tmp_path / "x", rename={"s/a": "b"})
    assert {name: value.tolist() for name, value in tfseek.open(tmp_path / "x")[0].to_dict().items()} == {"b": [1], "t/a": [2]}


def test_outputs(tmp_path: pathlib.Path) -> None:
    written = tfseek.write(table(), tmp_path / "a@*.tfrecord.gz", shards="1KB", members="1KB", index=True)
    assert len(written.shards) > 2 and [bytes(r) for r in tfseek.open(written.path)] == payloads()
    with pytest.raises(tfseek.Error, match=r"already exists \(force=True replaces it\)"):
        tfseek.write(table(), tmp_path / "a@*.tfrecord.gz", shards=len(written.shards))
    tfseek.write(table(), tmp_path / "a@*.tfrecord.gz", shards=len(written.shards), force=True)
    calls: list[tuple[int, Any]] = []
    tfseek.write(table(), tmp_path / "b", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (N, N)
    # An empty table has shards too.
    assert tfseek.write(table()[:0], tmp_path / "c@2").records == 0
    empty: Any = tfseek.open(tmp_path / "c@2")
    assert len(empty) == 0


def test_bad_values(tmp_path: pathlib.Path) -> None:
    big = pa.chunked_array([pa.array([1, 2], pa.uint64()), pa.array([3, 2**64 - 1], pa.uint64())])
    lists = pa.table({"a": [[1], [2, None]]})
    for data, at, words in [
        (pa.table({"id": range(4), "big": big}), (3, "big"), "row 3: column \"big\": expected an integer up to"),
        (pa.table({"x": [0.5, 0.1]}), (1, "x"), 'found 0.1 .float64="round" stores'),
        (lists, (1, "a"), "row 1: column \"a\": expected values in the list, found null"),
    ]:
        with pytest.raises(tfseek.DataError, match=words) as raised:
            tfseek.write(data, tmp_path / "x@2")
        assert (raised.value.row, raised.value.feature) == at
    for data, words in [
        (pa.table({"t": pa.array([0], pa.timestamp("s"))}), 'column "t": expected numbers, .*, found Timestamp.s.: cast it'),
        (pa.table({"s": pa.array([{"a": 1}], pa.map_(pa.string(), pa.int64()))}), "make a column of each of its fields"),
        (pa.table({"s": [[[{"a": 1}]]]}), 'column "s": '),
        (pa.table({"l": [[[1]]]}), "only a feature list has two"),
        (pa.table([[1], [2]], names=["a", "a"]), "expected one column for each feature"),
    ]:
        with pytest.raises(tfseek.SpecError, match=words):
            tfseek.write(data, tmp_path / "x")
    for arguments, words in [
        ({"rename": {"zz": "y"}}, "expected a column for `rename`"),
        ({"feature_lists": ["zz"]}, "expected a column for `feature_list`"),
        ({"shards": "2 parsec"}, "shards: expected a size"),
        ({"shards": 0}, "found 0"),
        ({"rows": N + 1, "shards": 2}, f"records: expected {N + 1} records, as stated, found {N}"),
        ({"compression": "zip"}, "compression: .*: expected none, gzip or zlib"),
    ]:
        with pytest.raises(ValueError, match=words):
            tfseek.write(table(), tmp_path / "x", **arguments)  # type: ignore[arg-type]
    with pytest.raises(tfseek.NotFoundError):
        tfseek.write(table(), tmp_path / "no" / "folder" / "x")
    assert files(tmp_path) == []


class Once:
    """An object that gives the same capsule again and again."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.capsule


def test_objects_without_a_stream(tmp_path: pathlib.Path) -> None:
    for bad in (3, [table()], "table", columns(), None):
        with pytest.raises(TypeError, match="stream: expected an object with the method __arrow_c_stream__"):
            tfseek.write(bad, tmp_path / "x")
    with pytest.raises(TypeError, match="from Once, found an object of type int"):
        tfseek.write(Once(3), tmp_path / "x")
    with pytest.raises(TypeError, match="from Once, found a capsule of another name"):
        tfseek.write(Once(table().schema.__arrow_c_schema__()), tmp_path / "x")
    # A column alone is no table.
    with pytest.raises(TypeError, match="from ChunkedArray, found an error: "):
        tfseek.write(table()["label"], tmp_path / "x")
    once = Once(table().__arrow_c_stream__())
    assert tfseek.write(once, tmp_path / "a").records == N
    with pytest.raises(TypeError, match="from Once, found an error: .*released"):
        tfseek.write(once, tmp_path / "b")
    assert files(tmp_path) == ["a"]


def reader(batches: Callable[[], Iterator[Any]]) -> Any:
    return pa.RecordBatchReader.from_batches(table().schema, batches())


def test_a_reader_in_python(tmp_path: pathlib.Path) -> None:
    """Its batches are made by Python code, which needs the GIL in the thread that asks for them."""
    threads = set()

    def batches() -> Iterator[Any]:
        for batch in table().to_batches(max_chunksize=9):
            threads.add(threading.get_ident())
            yield batch

    assert found(tfseek.write(reader(batches), tmp_path / "a").path) == payloads()
    assert threading.get_ident() not in threads

    def fails() -> Iterator[Any]:
        yield from table().to_batches(max_chunksize=9)
        raise RuntimeError("no more pages")

    with pytest.raises(tfseek.Error, match="stream: .*no more pages"):
        tfseek.write(reader(fails), tmp_path / "b@3")
    assert files(tmp_path) == ["a"]


def test_interrupts(tmp_path: pathlib.Path) -> None:
    ended = threading.Event()

    def endless() -> Iterator[Any]:
        try:
            while True:
                yield table().to_batches()[0]
        finally:
            ended.set()

    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            tfseek.write(reader(endless), tmp_path / "a@3")
    finally:
        timer.join()

    def stop(done: int, total: Any) -> None:
        if done:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tfseek.write(reader(endless), tmp_path / "b", progress=stop)
    # The stream is released by the thread that read it.
    assert ended.wait(60)
    assert files(tmp_path) == []


def test_threads(tmp_path: pathlib.Path) -> None:
    def run(k: int) -> None:
        make = OTHERS[k % 2]
        tfseek.write(make(), tmp_path / f"{k}@3")

    in_threads(run, range(8))
    assert all([bytes(r) for r in tfseek.open(tmp_path / f"{k}@3", index="memory")] == payloads() for k in range(8))


class CStream(ctypes.Structure):
    """``struct ArrowArrayStream``."""


CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
MESSAGE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CStream))
CStream._fields_ = [
    ("get_schema", CALL),
    ("get_next", CALL),
    ("get_last_error", MESSAGE),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]


def test_a_stream_that_fails_without_a_reason_is_released_once(tmp_path: pathlib.Path, capfd: Any) -> None:
    released = []
    schema = table().schema

    def get_schema(_: Any, out: Any) -> int:
        schema._export_to_c(out)
        return 0

    def release(stream: Any) -> None:
        released.append(threading.get_ident())
        stream.contents.release = RELEASE()

    calls = (CALL(get_schema), CALL(lambda stream, out: 5), MESSAGE(lambda stream: None), RELEASE(release))
    stream = CStream(*calls, None)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.addressof(stream), b"arrow_array_stream", None)
    with pytest.raises(tfseek.Error, match="stream: the stream failed, and stated no reason"):
        tfseek.write(Once(capsule), tmp_path / "a")
    assert len(released) == 1 and files(tmp_path) == []
    with pytest.raises(TypeError, match="released"):
        tfseek.write(Once(capsule), tmp_path / "a")
    assert len(released) == 1


# Ends while a daemon thread writes a stream whose batches need the interpreter, or is in a loop of writes.
DAEMON = """
import pathlib, sys, threading, time, warnings
import pyarrow as pa
import tfseek

warnings.simplefilter("ignore")
out, kind = sys.argv[1:]
schema, begun = pa.schema([("i", pa.int64())]), threading.Event()


def batches():
    for k in range(10 if kind == "loop" else 10**9):
        yield pa.record_batch([pa.array([k])], schema=schema)
        begun.set()
        if kind == "blocked":
            threading.Event().wait()


def write():
    tfseek.write(pa.RecordBatchReader.from_batches(schema, batches()), out, force=True)
    while kind == "loop":
        tfseek.write(pa.RecordBatchReader.from_batches(schema, batches()), out, force=True)


threading.Thread(target=write, daemon=True).start()
begun.wait()
if kind == "fork":
    import os

    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("done", flush=True)
"""


@pytest.mark.parametrize("kind", ["endless", "loop", "blocked", "fork"])
def test_a_daemon_thread_writes_at_exit(tmp_path: pathlib.Path, kind: str) -> None:
    if kind == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork on this platform")
    for k in range(1 if kind == "blocked" else 5):
        assert run_python(DAEMON, tmp_path / "a.tfrecord", kind) == "done\n" * (2 if kind == "fork" else 1), k
    if kind != "blocked":
        # Files are complete or removed.
        assert all(len(tfseek.open(tmp_path / name, index="memory")) == 10 for name in files(tmp_path))
