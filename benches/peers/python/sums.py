"""Reads all values of all columns of a batch and sums them, with the same code for every peer.

A batch is a dict of columns: an array of numbers; byte strings as an object array, a list, an array of padded bytes, or an
object with `data` and `offsets`, such as `tfseek.Bytes`.
"""
from __future__ import annotations

import zlib
from typing import Any

import numpy as np

add = np.add.reduce
# Size in bytes. Smaller columns are concatenated before summing, because the calls would cost more than the values.
SMALL = 1 << 16


class Sums:
    """Sums a batch: integers, floats, and byte strings as words of eight bytes. The first batch determines the method."""

    def __init__(self, batch: dict) -> None:
        self.offsets = [key for key, column in batch.items() if hasattr(column, "offsets")]
        self.padded, self.lists, self.objects, self.large, small = [], [], [], [], {}
        for key, column in batch.items():
            if key in self.offsets:
                continue
            if isinstance(column, list):
                self.lists.append(key)
            elif column.dtype.kind == "O":
                self.objects.append(key)
            elif column.dtype.kind == "u":
                self.padded.append(key)
            elif column.nbytes >= SMALL:
                self.large.append(key)
            else:
                small.setdefault(column.dtype, []).append(key)
        self.small = list(small.values())

    def __call__(self, batch: dict) -> float:
        total = 0.0
        for keys in self.small:
            total += add(np.concatenate([batch[key] for key in keys], axis=None) if len(keys) > 1 else batch[keys[0]], axis=None)
        for key in self.large:
            total += add(batch[key], axis=None)
        words, small = 0, []
        for key in self.objects + self.lists:
            strings = batch[key]
            if isinstance(strings, np.ndarray):
                strings = strings.tolist()
            if len(strings[0]) < SMALL // 16:
                small += strings
            else:
                words += sum(map(word_sum, strings))
        if small:
            words += word_sum(b"".join(small))
        for key in self.padded:
            words += word_sum(batch[key].ravel())
        for key in self.offsets:
            words += word_sum(batch[key].data) + int(add(batch[key].offsets))
        return total + words


def word_sum(data: Any) -> int:
    """Sums a buffer eight bytes at a time, and its remaining bytes one by one."""
    n = len(data) // 8
    return int(add(np.frombuffer(data, np.uint64, n))) + sum(memoryview(data)[n * 8:])


def row_hashes(batch: dict) -> np.ndarray:
    """Returns a hash of all values per row, to compare the rows of an epoch in any order. Not timed."""
    with np.errstate(over="ignore"):
        total = np.uint64(0)
        for k, name in enumerate(sorted(batch)):
            column = batch[name]
            if hasattr(column, "offsets"):
                at = column.offsets.tolist()
                column = [column.data[a:b] for a, b in zip(at, at[1:])]
            elif isinstance(column, np.ndarray) and column.dtype.kind == "u":
                column = [row.tobytes().rstrip(b"\0") for row in column]
            if isinstance(column, np.ndarray) and column.dtype.kind in "if":
                bits = column.view(np.uint64 if column.itemsize == 8 else np.uint32).reshape(len(column), -1)
                factors = mix(np.arange(1, bits.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
                values = (bits * factors).sum(1, dtype=np.uint64)
            else:
                values = np.array([zlib.crc32(s) for s in column], np.uint64)
            total = total + mix(values + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))
        return mix(total)


def mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
