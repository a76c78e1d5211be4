"""Random access to gzip and zlib shards, alone and mixed with plain ones."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import pathlib
import pickle
import random
import threading
import zlib
from typing import Any

import numpy as np
import pytest
from conftest import write_records

import tfseek

RECORDS = 600


def features(i: int) -> dict[str, Any]:
    return {"label": i % 5, "id": i, "noise": random.Random(i).randbytes(i % 400)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("compressed")
    for s in range(4):
        write_records(folder / f"{s}.tfrecord", (features(i) for i in range(s * 150, s * 150 + 150)))
    plain = [(folder / f"{s}.tfrecord").read_bytes() for s in range(4)]
    (folder / "1.tfrecord").write_bytes(gzip.compress(plain[1]))
    # Several members, cut inside records.
    (folder / "2.tfrecord").write_bytes(b"".join(gzip.compress(plain[2][k : k + 7001]) for k in range(0, len(plain[2]), 7001)))
    (folder / "3.tfrecord").write_bytes(zlib.compress(plain[3]))
    return folder


@pytest.fixture(params=["auto", "map", "pread"])
def ds(folder: pathlib.Path, request: pytest.FixtureRequest) -> tfseek.Dataset[tfseek.Example]:
    return tfseek.open(folder, io=request.param)


def ids(records: Any) -> list[int]:
    return [int(record["id"][0]) for record in records]


def test_records_in_any_order(ds: tfseek.Dataset[tfseek.Example]) -> None:
    assert len(ds) == RECORDS and ids(ds) == list(range(RECORDS))
    order = random.Random(1).sample(range(RECORDS), RECORDS)
    assert ids(ds[i] for i in order) == order == ids(ds.get_many(order)) == ids(ds[order])
    assert all(bytes(ds[i]["noise"][0]) == features(i)["noise"] for i in order)
    assert ids(ds[::-7]) == list(range(RECORDS))[::-7]


def test_columns_filters_batches(ds: tfseek.Dataset[tfseek.Example]) -> None:
    assert ds.column("label").to_list() == [i % 5 for i in range(RECORDS)]
    assert ids(ds.filter("label == 3 and id > 400")) == [i for i in range(401, RECORDS) if i % 5 == 3]
    spec = {"id": tfseek.FixedLenFeature([], "int64"), "noise": tfseek.FixedLenFeature([], "string")}
    for shuffle in (False, True, "block"):
        seen: list[int] = []
        for batch in tfseek.Loader(ds, spec, batch_size=32, shuffle=shuffle, threads=3):
            seen += batch["id"].tolist()
            assert [features(i)["noise"] for i in batch["id"].tolist()] == batch["noise"].tolist()
        assert sorted(seen) == list(range(RECORDS)) and (seen == sorted(seen)) == (shuffle is False)
    loader = tfseek.Loader(ds, spec, batch_size=32, shuffle=True, seed=5)
    first = [next(loader)["id"] for _ in range(4)]
    other = tfseek.Loader(tfseek.open(ds.shards, index="memory"), spec, batch_size=32, shuffle=True, seed=5)
    other.load_state_dict(loader.state_dict())
    assert np.array_equal(next(other)["id"], next(loader)["id"]) and len(first) == 4


def test_views_are_pickled(ds: tfseek.Dataset[tfseek.Example]) -> None:
    copy = pickle.loads(pickle.dumps(ds[10:500:7]))
    assert ids(copy) == list(range(10, 500, 7))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires fork")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent(folder: pathlib.Path) -> None:
    ds = tfseek.open(folder)
    stop = threading.Event()

    def work(seed: int) -> None:
        order = random.Random(seed)
        while not stop.is_set():
            i = order.randrange(RECORDS)
            assert int(ds[i]["id"][0]) == i

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        fork = multiprocessing.get_context("fork")
        for _ in range(5):
            child = fork.Process(target=child_reads, args=(ds,))
            child.start()
            child.join(60)
            assert child.exitcode == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def child_reads(ds: tfseek.Dataset[tfseek.Example]) -> None:
    assert ids(ds[i] for i in range(0, RECORDS, 13)) == list(range(0, RECORDS, 13))


def test_indexes_are_kept(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tfseek.build_index(folder, index_dir=tmp_path)
    ds = tfseek.open(folder, index="require", index_dir=tmp_path)
    assert ids(ds[[599, 3, 200]]) == [599, 3, 200]
    # A shard that changed is scanned again.
    path = folder / "1.tfrecord"
    before = path.read_bytes()
    try:
        path.write_bytes(gzip.compress(gzip.decompress(before), 1))
        with pytest.raises(tfseek.SidecarError):
            tfseek.open(path, index="require", index_dir=tmp_path)
        assert ids(tfseek.open(path, index_dir=tmp_path)) == list(range(150, 300))
    finally:
        path.write_bytes(before)


def test_a_pack_of_mixed_shards(folder: pathlib.Path) -> None:
    assert tfseek.build_index(folder, pack="mixed") == RECORDS
    for io in ("auto", "pread"):
        ds = tfseek.open(folder / ".tfseek" / "mixed.tfrp", io=io)
        assert [int(ex["id"][0]) for ex in ds] == list(range(RECORDS))
        assert int(ds[450]["id"][0]) == 450
    (folder / ".tfseek" / "mixed.tfrp").unlink()


def test_a_gzip_file_grows_by_members(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.tfrecord.gz"
    parts = []
    for k in range(3):
        write_records(tmp_path / "part", (features(i) for i in range(k * 100, k * 100 + 100)), compression="gzip")
        parts.append((tmp_path / "part").read_bytes())
    path.write_bytes(parts[0])
    ds = tfseek.open(path)
    for part in parts[1:]:
        with open(path, "ab") as file:
            file.write(part)
        before, ds = len(ds), ds.refresh()
        assert len(ds) == before + 100
        assert [int(ex["id"][0]) for ex in ds] == list(range(len(ds)))
    with open(path, "ab") as file:
        file.write(parts[0][:50])
    with pytest.raises(tfseek.DataError, match="ends inside its gzip stream"):
        ds.refresh()
    assert int(ds[299]["id"][0]) == 299
