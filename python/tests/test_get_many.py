"""``ds.get_many``: records by number, as a list or in a buffer."""

from __future__ import annotations

import mmap
import pathlib
from array import array
from typing import Any

import numpy as np
import pytest
from conftest import flip, write_records

import tfseek

#: Small and large records: a group ends by its number of records, or by its bytes.
SIZES = [0, 1, 84, 300] * 300 + [200_000, 70_000, 3, 3_000_000, 5]


def payloads() -> list[bytes]:
    rng = np.random.default_rng(3)
    return [rng.bytes(size) for size in SIZES]


PAYLOADS = payloads()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("get_many")
    third = len(PAYLOADS) // 3
    for shard in range(3):
        write_records(folder / f"{shard}.tfrecord", PAYLOADS[shard * third : (shard + 1) * third if shard < 2 else None])
    return str(folder)


@pytest.fixture(params=["map", "pread"])
def raw(path: str, request: pytest.FixtureRequest) -> tfseek.Dataset[bytes]:
    return tfseek.open(path, io=request.param, kind="bytes")


ORDER = np.random.default_rng(4).permutation(len(PAYLOADS)).tolist()
TOTAL = sum(SIZES)


def test_a_list(raw: Any) -> None:
    want = [PAYLOADS[i] for i in ORDER]
    negative = [i - len(PAYLOADS) for i in ORDER]
    keys: list[Any] = [ORDER, tuple(ORDER), np.array(ORDER), np.array(ORDER, np.uint16), np.array(ORDER * 2)[: len(ORDER)], negative]
    keys += [[np.int64(i) for i in ORDER], np.repeat(ORDER, 2)[::2]]
    for key in keys:
        assert raw.get_many(key) == want
    assert raw.get_many([]) == [] == raw.get_many(np.array([], np.int64))
    assert raw.get_many([7, 7, 7]) == [PAYLOADS[7]] * 3
    mask = [i % 3 == 0 for i in range(len(raw))]
    assert raw.get_many(mask) == PAYLOADS[::3] == raw.get_many(np.array(mask))
    assert raw[::-1].get_many([0, 1]) == PAYLOADS[:-3:-1]


def test_numbers_that_are_refused(raw: Any) -> None:
    n = len(raw)
    keys: list[tuple[Any, type[Exception]]] = [([n], IndexError), ([-n - 1], IndexError), (np.array([n]), IndexError)]
    keys += [([2**63], (IndexError)), ([1.0], TypeError), (["a"], TypeError), ([[1]], TypeError), (np.array([1.5]), TypeError)]
    keys += [([True], IndexError), (np.ma.masked_array([1, 2], [True, False]), ValueError), (3, TypeError)]
    for key, kind in keys:
        for out in (None, bytearray(10)):
            with pytest.raises(kind):
                raw.get_many(key, out=out)


def test_out(raw: Any, tmp_path: pathlib.Path) -> None:
    want = b"".join(PAYLOADS[i] for i in ORDER)
    ends = np.cumsum([0] + [SIZES[i] for i in ORDER])
    with open(tmp_path / "out", "wb") as file:
        file.truncate(TOTAL + 7)
    with open(tmp_path / "out", "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    buffers: list[Any] = [np.full(TOTAL, 9, np.uint8), np.full(TOTAL + 7, 9, np.uint8), bytearray(b"\x09" * (TOTAL + 7))]
    buffers += [memoryview(bytearray(b"\x09" * (TOTAL + 7))), mapped]
    for out in buffers:
        for _ in range(2):
            offsets = raw.get_many(np.array(ORDER), out=out)
            assert offsets.dtype == np.int64 and not offsets.flags.writeable
            assert offsets.tolist() == ends.tolist() and bytes(out[:TOTAL]) == want
        if len(out) > TOTAL and out is not mapped:
            assert bytes(out[TOTAL:]) == b"\x09" * 7
    assert raw.get_many([], out=bytearray()).tolist() == [0]
    assert raw.get_many([0], out=np.empty(0, np.uint8)).tolist() == [0, 0]


def test_out_of_examples(shards: str) -> None:
    ds = tfseek.open(shards)
    out = bytearray(1 << 20)
    offsets = ds.get_many([5, 3], out=out).tolist()
    assert [bytes(out[a:b]) for a, b in zip(offsets, offsets[1:])] == [bytes(ds[5]), bytes(ds[3])]
    assert [bytes(ex) for ex in ds.get_many([5, 3])] == [bytes(ds[5]), bytes(ds[3])]


def test_a_buffer_that_is_too_small(raw: Any) -> None:
    for size in (0, 10, TOTAL - 1):
        with pytest.raises(ValueError, match=f"out: expected at least {TOTAL} bytes for these {len(ORDER)} records, found {size}$"):
            raw.get_many(ORDER, out=np.zeros(size, np.uint8))
    buffer = bytearray(100)
    with pytest.raises(ValueError, match="found 100$"):
        raw.get_many(ORDER, out=buffer)
    # The error has released the buffer.
    buffer.extend(b"more")


def test_buffers_that_are_refused(raw: Any) -> None:
    read_only = np.zeros(100, np.uint8)
    read_only.setflags(write=False)
    for out in (b"a" * 100, memoryview(b"a" * 100), read_only):
        with pytest.raises(ValueError, match="out: expected a writable buffer of bytes.*found a read-only"):
            raw.get_many([1], out=out)
    others = (np.zeros(100), np.zeros(100, np.int8), np.zeros((10, 10), np.uint8), np.zeros(100, np.uint8)[::2], "text", 3, [0] * 10)
    for other in others:
        with pytest.raises(TypeError, match="out: expected a writable buffer of bytes"):
            raw.get_many([1], out=other)
    words = array("i", [0] * 100)
    raw.get_many([2], out=words)
    assert words.tobytes()[:84] == PAYLOADS[2]


def test_damage(tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "a.tfrecord", (b"payload %d" % k for k in range(1000)), index=True)
    (tmp_path / "a.tfrecord").rename(tmp_path / "b.tfrecord")
    flip(tmp_path / "b.tfrecord", b"payload 700")
    for mode in ("map", "pread"):
        ds = tfseek.open(tmp_path / "b.tfrecord", io=mode, kind="bytes")
        for out in (None, bytearray(100_000)):
            with pytest.raises(tfseek.DataError) as e:
                ds.get_many(range(1000), out=out)
            assert e.value.record == 700
        assert ds.get_many([699, 701]) == [b"payload 699", b"payload 701"]
        headers = tfseek.open(tmp_path / "b.tfrecord", io=mode, kind="bytes", verify="header")
        assert headers.get_many([699, 701]) == [b"payload 699", b"payload 701"]


def test_progress(raw: Any) -> None:
    for out in (None, bytearray(TOTAL)):
        calls: list[tuple[int, Any]] = []
        raw.get_many(ORDER, out=out, progress=lambda done, total, calls=calls: calls.append((done, total)))
        assert calls[0] == (0, len(ORDER)) and calls[-1] == (len(ORDER), len(ORDER))
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)
