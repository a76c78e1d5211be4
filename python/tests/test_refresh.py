"""``Dataset.refresh``: files that grow while they are open."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import pytest
from conftest import write_records

import tfseek


def framed(folder: pathlib.Path, ids: range) -> bytes:
    """Returns the bytes of a file of records."""
    write_records(folder / "part", ({"label": i} for i in ids))
    return (folder / "part").read_bytes()


def labels(ds: tfseek.Dataset[Any]) -> list[int]:
    return [int(ex["label"][0]) for ex in ds]


def append(path: pathlib.Path, content: bytes) -> None:
    with open(path, "ab") as file:
        file.write(content)


@pytest.mark.parametrize("io", ["auto", "pread"])
def test_appended_records_and_new_shards(tmp_path: pathlib.Path, io: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    append(data / "a.tfrecord", framed(tmp_path, range(10)))
    ds = tfseek.open(data, io=io, columns=["label"])
    loader = tfseek.Loader(ds, batch_size=4)
    iterator = iter(ds)
    next(iterator)
    append(data / "a.tfrecord", framed(tmp_path, range(10, 13)))
    append(data / "b.tfrecord", framed(tmp_path, range(13, 20)))

    new = ds.refresh()
    assert labels(new) == list(range(20)) and new.ids.tolist() == list(range(20))
    assert len(ds) == 10 and len(list(iterator)) == 9 and sum(len(batch) for batch in loader) == 10
    assert new.column("label").to_list() == list(range(20)) and ds.column("label").to_list() == list(range(10))
    assert new.shards == [str(data / "a.tfrecord"), str(data / "b.tfrecord")]
    assert labels(pickle.loads(pickle.dumps(new))) == list(range(20))
    assert len(new.refresh()) == 20


def test_a_view_keeps_its_records(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.tfrecord"
    append(path, framed(tmp_path, range(10)))
    ds = tfseek.open(path)
    odd, part, everything = ds.filter("label in 1, 3, 5, 7, 9, 11"), ds[8:2:-2], ds[:]
    append(path, framed(tmp_path, range(10, 13)))
    assert labels(odd.refresh()) == [1, 3, 5, 7, 9]
    assert labels(part.refresh()) == [8, 6, 4]
    assert len(everything.refresh()) == 13
    assert labels(ds.refresh().filter("label in 1, 11")) == [1, 11]


def test_a_file_that_is_being_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.tfrecord"
    whole = framed(tmp_path, range(3))
    record = len(whole) // 3
    append(path, whole[: record + 5])
    with pytest.raises(tfseek.DataError, match='tail="tolerate"'):
        tfseek.open(path)
    ds = tfseek.open(path, tail="tolerate")
    assert len(ds) == 1
    append(path, whole[record + 5 : -1])
    assert labels(ds.refresh()) == [0, 1]
    append(path, whole[-1:])
    assert labels(ds.refresh()) == [0, 1, 2]
    strict = tfseek.open(path)
    append(path, whole[:20])
    with pytest.raises(tfseek.DataError, match='tail="tolerate"'):
        strict.refresh()


def test_other_changes_name_a_shard(tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("b", "c"):
        append(data / f"{name}.tfrecord", framed(tmp_path, range(5)))
    ds = tfseek.open(data)
    append(data / "b.tfrecord", framed(tmp_path, range(1)))
    with pytest.raises(tfseek.Error, match="expected 5 records before the next shard, found 6 records") as raised:
        ds.refresh()
    assert raised.value.path == str(data / "b.tfrecord")
    append(data / "a.tfrecord", framed(tmp_path, range(1)))
    with pytest.raises(tfseek.Error, match="expected no shard before") as raised:
        ds.refresh()
    assert raised.value.path == str(data / "a.tfrecord")


def test_progress(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.tfrecord"
    append(path, framed(tmp_path, range(10)))
    ds = tfseek.open(path)
    append(path, framed(tmp_path, range(5)))
    calls: list[tuple[int, Any]] = []
    assert len(ds.refresh(progress=lambda done, total: calls.append((done, total)))) == 15
    assert calls[-1][0] == path.stat().st_size // 3 and calls[-1][1] == path.stat().st_size

    def stop(done: int, total: Any) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        ds.refresh(progress=stop)
