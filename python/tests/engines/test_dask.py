"""Dask: the recipe of docs/engines.md."""

from __future__ import annotations

from typing import Any, Callable, Optional

import pytest
from harness import SPEC, Pair, Suite, copy, die_once, pairs_of, paths, urls, want

import tfseek

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

__all__ = ["copy", "paths", "urls", "want"]


def read_share(texts: list[str], die: Optional[str] = None) -> Any:
    scan = tfseek.scan(parts=map(tfseek.Part, texts), spec=SPEC, record="n", bytes="copy")
    batches = []
    for batch in pa.RecordBatchReader.from_stream(scan):
        batches.append(batch)
        die_once(die)
    return frame(pa.Table.from_batches(batches))


def frame(table: Any) -> Any:
    # Without these types Dask makes strings of byte strings and of lists.
    return table.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.fixture(scope="module")
def client(urls: list[str]) -> Any:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            client.upload_file(__file__.replace("test_dask", "harness"))
            client.upload_file(__file__)
            yield client


def read(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    ds = tfseek.open(paths)
    plan = [[part.to_json() for part in share] for share in ds.shares(shares)]
    if planned:
        planned()
    meta = frame(pa.table(ds.scan(spec=SPEC, record="n", bytes="copy").take([])))
    found = dd.from_map(read_share, plan, die=die, meta=meta).compute()
    return pairs_of(pa.Table.from_pandas(found, preserve_index=False))


@pytest.mark.usefixtures("client")
class TestDask(Suite):
    read = staticmethod(read)
