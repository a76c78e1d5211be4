"""Batches per second of a loader whose ``transform`` releases the GIL, with 0, 1 and 2 threads of ``transform``.

Usage: python benches/transform.py [ROUNDS]

The transform compresses each row, about 7 ms per batch, so that the cores are left to it. The result of each run is compared with that of the first one before its time counts. The
medians of all rounds are printed, and their ratio to one thread.
"""

import pathlib
import statistics
import sys
import tempfile
import time
import zlib

import numpy as np

import tfseek

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SPEC = {"emb": tfseek.FixedLenFeature([2_048], "float32")}


def compressed(batch):
    return [zlib.crc32(zlib.compress(row)) for row in batch["emb"]]


def epoch(ds, threads):
    loader = tfseek.Loader(ds, SPEC, batch_size=64, seed=1, threads=1, transform=compressed, transform_threads=threads)
    start = time.perf_counter()
    found = list(loader)
    seconds = time.perf_counter() - start
    loader.close()
    return len(found) / seconds, found


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "train.tfrecord")
        rng = np.random.default_rng(1)
        with tfseek.Writer(path) as writer:
            for _ in range(6_400):
                writer.write({"emb": rng.random(2_048, np.float32)})
        ds = tfseek.open(path, index="memory")
        speeds = {threads: [] for threads in (0, 1, 2)}
        wanted = epoch(ds, 0)[1]
        for _ in range(ROUNDS):
            for threads, found in speeds.items():
                speed, results = epoch(ds, threads)
                assert results == wanted
                found.append(speed)
        one = statistics.median(speeds[1])
        for threads, found in speeds.items():
            speed = statistics.median(found)
            print(f"transform_threads={threads}: {speed:.1f} batches/s, {speed / one:.2f} of one thread")


main()
