"""Files of `tfseek convert` and `tfseek cat -f arrow`, as other engines read them."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_records

import tfseek

ROWS: list[dict[str, Any]] = [
    {"label": 3, "score": 0.5, "ids": [1, 2, -(2**63)], "name": b"ant", "maybe": 7},
    {"label": 4, "score": math.inf, "ids": [], "name": "größe".encode(), "maybe": None},
    {"label": 5, "score": -0.5, "ids": None, "name": b"", "maybe": None},
]


def run(*arguments: str | Path) -> bytes:
    command = [sys.executable, "-m", "tfseek", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def fails(*arguments: str | Path, code: int = 1) -> bytes:
    done = subprocess.run([sys.executable, "-m", "tfseek", *map(str, arguments)], capture_output=True)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture
def data(tmp_path: Path) -> Path:
    if b" convert " not in run("help"):
        pytest.skip("SKIPPED: the command of this package has no verb convert")
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for row in ROWS:
            ids = {} if row["ids"] is None else {"ids": np.array(row["ids"], np.int64)}
            maybe = {} if row["maybe"] is None else {"maybe": row["maybe"]}
            writer.write({"label": row["label"], "score": row["score"], "name": row["name"], **ids, **maybe})
    for name in ("a.parquet", "a.arrow", "a.arrows"):
        run("convert", tmp_path / "a.tfrecord", tmp_path / name, "--text", "name")
    return tmp_path


def rows(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows with the values of `ROWS`."""
    return [{**row, "name": row["name"].encode()} for row in found]


def digests(path: Path) -> list[str]:
    return run("digest", path).decode().splitlines()


def test_pyarrow(data: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    tables = [
        pytest.importorskip("pyarrow.parquet").read_table(data / "a.parquet"),
        pa.ipc.open_file(data / "a.arrow").read_all(),
        pa.ipc.open_stream(data / "a.arrows").read_all(),
        pytest.importorskip("pyarrow.feather").read_table(data / "a.arrow"),
    ]
    for table in tables:
        table.validate(full=True)
        assert table.schema.field("label").type == pa.int64() and not table.schema.field("label").nullable
        assert table.schema.field("name").type == pa.string()
        assert rows(table.to_pylist()) == ROWS
    table = pa.ipc.open_stream(io.BytesIO(run("cat", "-f", "arrow", data / "a.tfrecord"))).read_all()
    assert table.column("name").to_pylist() == [row["name"] for row in ROWS]


def test_duckdb(data: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select * from '{data / 'a.parquet'}' order by label")
    names = [column[0] for column in found.description]
    assert rows([dict(zip(names, row)) for row in found.fetchall()]) == ROWS


def test_polars(data: Path) -> None:
    pl = pytest.importorskip("polars")
    frames = [pl.read_parquet(data / "a.parquet"), pl.read_ipc(data / "a.arrow"), pl.read_ipc_stream(data / "a.arrows")]
    for frame in frames:
        assert rows(frame.to_dicts()) == ROWS


def test_files_of_pyarrow_and_polars(data: Path) -> None:
    """Files that other libraries write, with their default compressions, become equal records."""
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    feather = pytest.importorskip("pyarrow.feather")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(data / "a.parquet")
    frame = pl.read_parquet(data / "a.parquet")
    want = digests(data / "a.tfrecord")

    feather.write_feather(table, data / "b.feather")
    parquet.write_table(table, data / "b.parquet", compression="gzip")
    with pa.ipc.new_stream(data / "b.arrows", table.schema) as writer:
        writer.write_table(table)
    # A stream under the name of a file, as the library `datasets` of Hugging Face writes.
    (data / "c.arrow").write_bytes((data / "b.arrows").read_bytes())
    frame.write_parquet(data / "p.parquet", compression="snappy")
    frame.write_ipc(data / "p.arrow")
    frame.write_ipc(data / "q.arrow", compression="lz4")
    frame.write_ipc_stream(data / "p.arrows")
    frame.write_parquet(data / "z.parquet", compression="zstd")
    frame.write_ipc(data / "z.arrow", compression="zstd")
    # The format of a stream before 0.15, and streams that end without a mark.
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(data / "l.arrows", table.schema, options=options) as writer:
        writer.write_table(table)
    (data / "m.arrows").write_bytes((data / "b.arrows").read_bytes()[:-8])
    (data / "n.arrows").write_bytes((data / "l.arrows").read_bytes()[:-4])
    names = ["b.feather", "b.parquet", "b.arrows", "c.arrow", "p.parquet", "p.arrow", "q.arrow", "p.arrows", "z.parquet", "z.arrow"]
    for name in [*names, "l.arrows", "m.arrows", "n.arrows"]:
        run("convert", data / name, data / "back.tfrecord", "--force")
        assert digests(data / "back.tfrecord") == want, name

    parquet.write_table(table, data / "r.parquet", compression="brotli")
    assert b"reads no Brotli: write the file with zstd" in fails("convert", data / "r.parquet", data / "r.tfrecord")
    assert not (data / "r.tfrecord").exists()


def test_float64_columns(data: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    out = data / "d.tfrecord"
    parquet.write_table(pa.table({"f": [0.5, 0.1], "l": [[0.1], [0.2, math.inf]]}), data / "d.parquet")
    assert b"found 0.1 (`--float64 round` stores the nearest float32)" in fails("convert", data / "d.parquet", out)
    run("convert", data / "d.parquet", out, "--float64", "round")
    first, second = tfseek.open(out)
    assert second["f"].tolist() == [np.float32(0.1)] and second["l"].tolist() == [np.float32(0.2), math.inf]
    assert first["f"].tolist() == [0.5]
    for options in ((), ("--float64", "round")):
        parquet.write_table(pa.table({"f": [0.5, 1e39]}), data / "d.parquet")
        found = fails("convert", data / "d.parquet", out, "--force", *options)
        assert b'row 1 of the batch: column "f"' in found and b"from -3.4028235e38 to 3.4028235e38, found 1e39" in found
    (data / "d.jsonl").write_text('{"f": 1e39}\n')
    assert b"from -3.4028235e38 to 3.4028235e38, found 1e39" in fails("convert", data / "d.jsonl", out, "--force")
    assert b"--float64: expected Parquet or Arrow" in fails("convert", data / "d.jsonl", out, "--float64", "round", code=2)
    assert b"--float64: expected Parquet or Arrow" in fails("convert", data / "a.tfrecord", data / "x.jsonl", "--float64", "round", code=2)


def test_pandas_rounds_no_integers(data: Path) -> None:
    pandas = pytest.importorskip("pandas")
    big = 2**62 + 1
    write_records(data / "b.tfrecord", [{"i": big}, {}])
    run("convert", data / "b.tfrecord", data / "b.parquet")
    found = pandas.read_parquet(data / "b.parquet")["i"]
    assert found[0] == big and found.isna().tolist() == [False, True]
