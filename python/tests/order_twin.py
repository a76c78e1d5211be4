"""The draws and permutations of ``docs/order.md``, written a second time for tests."""

from __future__ import annotations

import functools

import numpy as np

M = 2**64
G, C1, C2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(z: int) -> int:
    z = (z ^ z >> 30) * C1 % M
    z = (z ^ z >> 27) * C2 % M
    return z ^ z >> 31


def absorb(*words: int) -> int:
    h = 0
    for word in words:
        h = mix(((h ^ word % M) + G) % M)
    return h


def tag(text: bytes) -> int:
    return int.from_bytes(text, "big")


@functools.lru_cache(maxsize=None)
def permutation(n: int, seed: int, epoch: int, stream: int) -> list[int]:
    """Returns PRP1: all numbers below ``n``, in their order. All numbers of the domain are computed together."""
    if n == 0:
        return []
    h = absorb(tag(b"TFRDPRP1"), seed, epoch, stream, n)
    bits = max(10, (n - 1).bit_length())
    wl, wr = bits // 2, bits - bits // 2
    x = np.arange(2**bits, dtype=np.uint64)
    left, right = x >> np.uint64(wr), x & np.uint64(2**wr - 1)
    with np.errstate(over="ignore"):
        for j in range(8):
            source, width = (right, wl) if j % 2 == 0 else (left, wr)
            z = (source ^ np.uint64(mix((h + (j + 1) * G) % M))) * np.uint64(C1)
            z = (z ^ z >> np.uint64(32)) * np.uint64(C2) >> np.uint64(64 - width)
            left, right = (left ^ z, right) if j % 2 == 0 else (left, right ^ z)
    step = (left << np.uint64(wr) | right).tolist()
    result = []
    for i in range(n):
        i = step[i]
        while i >= n:
            i = step[i]
        result.append(i)
    return result
