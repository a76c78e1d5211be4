"""Epochs over URLs: the cache on disk, the report, and workers."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from object_server import ObjectServer
from test_remote import needs_remote, no_secret, options

import tfseek

from conftest import SPEC, write_records

pytestmark = needs_remote


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ObjectServer]:
    """A server with 4,000 records of about 1 KB in two shards."""
    with ObjectServer() as server:
        for k in range(2):
            path = tmp_path / f"train-{k}.tfrecord"
            write_records(path, ({"label": i, "text": b"x" * 1000} for i in range(k * 2000, (k + 1) * 2000)))
            server.objects[f"bucket/data/{path.name}"] = path.read_bytes()
        yield server


def opened(server: ObjectServer, **arguments: Any) -> tfseek.Dataset[Any]:
    return tfseek.open("s3://bucket/data/train-*", storage_options=options(server), **arguments)


def labels(loader: tfseek.Loader) -> list[list[int]]:
    return [np.asarray(batch["label"]).tolist() for batch in loader]


def gets(server: ObjectServer) -> int:
    return sum("list-type" not in request for request in server.requests)


def test_the_second_epoch_comes_from_the_cache(server: ObjectServer, tmp_path: pathlib.Path) -> None:
    opened(server)
    cache = tmp_path / "cache"
    ds = opened(server, cache_dir=cache, cache_bytes=100_000_000)
    loader = tfseek.Loader(ds, {"label": SPEC["label"]}, batch_size=64, shuffle="block", seed=3)
    server.requests.clear()
    first = labels(loader)
    assert 2 <= gets(server) <= 8
    report = loader.report()
    assert report.traffic is not None and "requests of" in str(report) and '"traffic": {"requests":' in report.to_json()
    assert report.traffic.requests == gets(server) and report.traffic.cached == 0 and report.traffic.bytes >= 4_000_000
    assert 0 < report.traffic.latency_p50_s <= report.traffic.latency_p99_s
    tries = 0
    while not (found := list(cache.glob("objects/*/*"))) or any(path.suffix for path in found):
        tries += 1
        assert tries < 1000
    # A pickle has the cache, and no login.
    pickled = pickle.dumps(ds)
    no_secret(pickled, repr(ds))
    assert str(cache).encode() in pickled
    server.requests.clear()
    second = tfseek.Loader(opened(server, cache_dir=cache, cache_bytes=100_000_000), {"label": SPEC["label"]}, batch_size=64, shuffle="block", seed=3)
    assert labels(second) == first and gets(server) == 0
    traffic = second.report().traffic
    assert traffic is not None and traffic.cached >= 2 and traffic.requests == 0 and "from the cache" in str(traffic)


def test_variables_name_a_cache(server: ObjectServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFSEEK_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(tfseek.Error, match="TFSEEK_CACHE_BYTES"):
        opened(server)
    monkeypatch.setenv("TFSEEK_CACHE_BYTES", "1000000000")
    labels(tfseek.Loader(opened(server), {"label": SPEC["label"]}, batch_size=64, shuffle="block"))
    assert (tmp_path / "cache" / "objects").exists()


def test_a_cache_is_checked(server: ObjectServer, tmp_path: pathlib.Path) -> None:
    with pytest.raises(tfseek.Error, match="expected cache_bytes"):
        opened(server, cache_dir=tmp_path)
    with pytest.raises(tfseek.Error, match="expected cache_dir"):
        opened(server, cache_bytes=5)
    with pytest.raises(ValueError, match="cache_bytes: expected a number of bytes, found many"):
        opened(server, cache_dir=tmp_path, cache_bytes="many")
    with pytest.raises(ValueError, match="cache_dir: expected a URL .* found local paths"):
        tfseek.open(tmp_path / "train-0.tfrecord", cache_dir=tmp_path, cache_bytes=5)


def test_files_have_no_traffic(tmp_path: pathlib.Path, server: ObjectServer) -> None:
    loader = tfseek.Loader(tfseek.open(tmp_path / "train-0.tfrecord"), {"label": SPEC["label"]}, batch_size=64)
    labels(loader)
    assert loader.report().traffic is None


def test_a_global_order_over_small_records_is_warned_of(server: ObjectServer) -> None:
    path = "bucket/data/train-0.tfrecord"
    server.objects[path] = server.objects[path] * 10
    with pytest.warns(tfseek.Warning, match="each takes a request of its own") as warned:
        loader = tfseek.Loader(opened(server), {"label": SPEC["label"]}, batch_size=64, shuffle=True)
    warning = warned[0].message
    assert isinstance(warning, tfseek.Warning)
    assert (warning.kind, warning.records) == ("scattered_requests", 22_000) and 1000 < (warning.record_bytes or 0) < 1100
    assert loader.warnings == [warning]
