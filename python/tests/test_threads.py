"""Objects that C code reads, called from four threads at once."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
from conftest import SPEC, in_threads

import tfseek


def array_of(column: Any) -> Any:
    return column.data if isinstance(column, tfseek.Bytes) else column.values if isinstance(column, tfseek.Column) else column


def test_four_threads_use_each_object_that_c_code_reads(ds: tfseek.Dataset) -> None:
    """Arrays, their memory, byte strings, records, capsules and shared iterators, 10,000 times each."""
    batch = tfseek.parse_example(ds[:50], {name: spec for name, spec in SPEC.items() if name != "tokens"}, bytes_as="offsets")
    want = {name: np.asarray(array_of(column)).copy() for name, column in batch.items()}
    scan, record, parser = ds.scan(["label"]), ds[0], tfseek.Schema({"label": SPEC["label"]})
    text, few = record.to_bytes(), ds[:3]
    loader = tfseek.Loader(ds, parser, batch_size=100, seed=1, repeat=True, threads=1)
    stream = iter(tfseek.stream([ds.shards[0]] * 20))
    start, failed = threading.Barrier(4), []

    def work() -> None:
        start.wait()
        try:
            for k in range(2_500):
                for name, column in batch.items():
                    array = array_of(column)
                    interface = array.base.__array_interface__
                    assert interface["shape"] == array.shape and np.asarray(array.base)[-1:].tobytes() == want[name][-1:].tobytes()
                    writable = array.base.writable
                    assert writable is None or writable.ctypes.data == array.ctypes.data
                scan.__arrow_c_schema__()
                assert record.to_bytes() == text and len(few[k % 3].keys()) > 0
                if k % 50 == 0:
                    scan.__arrow_c_stream__()
                    assert len(next(loader)["label"]) == 100 and len(tfseek.parse_example(few, parser)["label"]) == 3
                    assert loader.state_dict()["n"] == len(ds) and len(loader.ids) == 100
                with contextlib.suppress(RuntimeError):  # it is in use by another thread
                    next(stream, None)
        except BaseException as e:
            failed.append(e)

    in_threads(lambda _: work(), range(4))
    loader.close()
    assert not failed, failed
    assert all(np.array_equal(array_of(column), want[name]) for name, column in batch.items())
