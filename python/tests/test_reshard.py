"""``tfseek.reshard``: the same files as the command, arguments, errors, progress and interrupts."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
from typing import Any

import pytest
from conftest import write_records

import tfseek


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_records(folder / "x", ({"id": i, "group": f"g{i % 7}", "v": [i % 5]} for i in range(300)), shards=3)
    return folder


def ids(path: str) -> list[int]:
    return [int(record["id"][0]) for record in tfseek.stream(path)]


def test_a_shuffle_is_the_order_of_the_loader(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = tfseek.reshard(data, tmp_path / "s@4.tfrecord", shuffle=True, seed=7)
    assert (found.records, found.way) == (300, "direct")
    (only,) = found.sets
    assert (only.split, only.path, len(only.shards), only.records) == (None, str(tmp_path / "s@4.tfrecord"), 4, 300)
    assert only.bytes == sum(os.path.getsize(path) for path in only.shards)
    ds = tfseek.open(data)
    loader = tfseek.Loader(ds, {"id": tfseek.FixedLenFeature([], "int64")}, batch_size=300, shuffle=True, seed=7)
    assert ids(only.path) == next(iter(loader))["id"].tolist()
    again = tfseek.reshard(ds, tmp_path / "t.tfrecord", shards=4, shuffle=True, seed=7, memory="20kB", threads=1)
    assert again.way == "files"
    for one, other in zip(only.shards, again.sets[0].shards):
        assert pathlib.Path(one).read_bytes() == pathlib.Path(other).read_bytes()


def test_split_sort_and_features(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = tfseek.reshard(
        str(data), tmp_path / "{split}.tfrecord.gz", split={"train": 0.7, "val": 0.3}, split_by="group", features=["id", "gr*"], sort_by="id", reverse=True
    )
    train, val = ([int(i) for i in ids(part.path)] for part in found.sets)
    assert sorted(train + val) == list(range(300)) and train == sorted(train, reverse=True)
    assert not {i % 7 for i in train} & {i % 7 for i in val}
    assert set(next(iter(tfseek.stream(found.sets[0].path))).keys()) == {"id", "group"}
    assert tfseek.stream(found.sets[0].path, compression="gzip").sample(1)


def test_some_of_the_records(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    wanted = [i for i in ids(str(data)) if i % 5 == 3]
    found = tfseek.reshard(data, tmp_path / "w@2", where="v == 3")
    assert [i for path in found.sets[0].shards for i in ids(path)] == wanted
    ds = tfseek.open(data)
    assert ids(tfseek.reshard(ds.filter("v == 3"), tmp_path / "f").sets[0].path) == wanted
    assert ids(tfseek.reshard(ds[10:20], tmp_path / "g").sets[0].path) == ids(str(data))[10:20]
    with pytest.raises(tfseek.Error, match="filter"):
        tfseek.reshard(data, tmp_path / "h", where="v ==")


def test_errors(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "o.tfrecord"
    anything: Any = tfseek.reshard
    cases: list[tuple[dict[str, Any], str]] = [
        ({"split": {"a": 0.5}}, "expected {split} in the path"),
        ({"shuffle": True, "sort_by": "id"}, "sort_by: "),
        ({"split_by": "id"}, "expected a split"),
        ({"memory": "1 parsec"}, "memory: expected a size"),
        ({"shards": "x"}, "shards: expected a size"),
        ({"shards": 0}, "found 0"),
        ({"features": "labl"}, 'no record has a feature "labl"'),
        ({"compression": "zip"}, "compression: .*: expected none, gzip or zlib"),
        ({"kind": "x"}, "kind: expected one of"),
    ]
    for arguments, words in cases:
        with pytest.raises(ValueError, match=words):
            anything(data, out, **arguments)
        assert not out.exists()
    with pytest.raises(tfseek.OrderError, match="expected ascending ids"):
        tfseek.reshard(tfseek.open(data)[[5, 4]], out)
    with pytest.raises(TypeError, match="paths: "):
        anything(3, out)
    with pytest.raises(TypeError, match="split: expected a mapping .* found str"):
        anything(data, tmp_path / "{split}", split="train")
    with pytest.raises(tfseek.Error, match="record 0: feature \"nope\".*missing=SPLIT"):
        tfseek.reshard(data, tmp_path / "{split}", split={"a": 0.5, "b": 0.5}, split_by="nope")
    tfseek.reshard(data, out)
    with pytest.raises(tfseek.Error, match=r"already exists \(force=True replaces it\)"):
        tfseek.reshard(data, out)
    tfseek.reshard(data, out, force=True, index=True)
    assert (tmp_path / ".tfseek" / "o.tfrecord.tfri").exists()


def test_progress_and_interrupts(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    calls: list[tuple[int, Any]] = []
    tfseek.reshard(data, tmp_path / "a", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] == sum(path.stat().st_size for path in data.iterdir() if path.is_file())

    def stop(done: int, total: Any) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tfseek.reshard(data, tmp_path / "b", progress=stop)
    # A signal during the call, if it lasts long enough.
    write_records(tmp_path / "large.tfrecord", (bytes(1 << 20) for _ in range(200)))
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for k in range(1000):
                tfseek.reshard(tmp_path / "large.tfrecord", tmp_path / "c@3", shuffle=True, force=True)
    finally:
        timer.join()
    assert not (tmp_path / "b").exists()
    assert not list(tmp_path.glob(".tmp-*"))
