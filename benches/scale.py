"""Records per second by the number of threads: the loader over shuffled records, and the scan that builds an index.

Usage: python benches/scale.py [FOLDER] [ROUNDS]

Makes four sets in FOLDER: numbers of 84 bytes, 200 features, JPEG pictures of 500 x 375, and numbers in gzip. The numbers of threads take turns, and the
medians of all rounds are printed, with their ratio to one thread. Needs pillow. The sums of ids of all epochs are compared first.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
from jpegs import jpegs

import tfseek

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
CPUS = len(os.sched_getaffinity(0))
THREADS = [n for n in (1, 2, 4, 8, 16, 32) if n <= CPUS]
rng = np.random.default_rng(0)


def numbers(i):
    return {"id": i, "label": i % 10, "score": i / 7, "word": b"word%d" % (i % 1000)}


def wide(i):
    return {"id": i} | {f"feature{k:03}": float(i % 97 + k) for k in range(200)}


PICTURES = jpegs(rng)[:16]
INT, FLOAT, BYTES = (tfseek.FixedLenFeature([], name) for name in ("int64", "float32", "string"))
SETS = {
    "numbers": (numbers, 2_000_000, {"id": INT, "label": INT, "score": FLOAT, "word": BYTES}, {}),
    "gzip": (numbers, 1_000_000, {"id": INT, "label": INT, "score": FLOAT, "word": BYTES}, {"compression": "gzip"}),
    "wide": (wide, 100_000, {"id": INT} | {f"feature{k:03}": FLOAT for k in range(200)}, {}),
    "pictures": (lambda i: {"id": i, "image": PICTURES[i % 16]}, 8_000, {"id": INT, "image": tfseek.Image(size=[224, 224])}, {}),
}


def epoch(ds, spec, threads, shuffle):
    loader = tfseek.Loader(ds, spec, batch_size=256, shuffle=shuffle, seed=7, threads=threads, bytes_as="offsets")
    start = time.perf_counter()
    ids = sum(int(batch["id"].sum()) for batch in loader)
    return time.perf_counter() - start, ids


def report(name, n, times):
    middle = {threads: statistics.median(of) for threads, of in times.items()}
    words = [f"{threads}: {n / t / 1e3:,.1f} k/s ({middle[1] / t:.1f})" for threads, t in middle.items()]
    print(f"{name:10} {'  '.join(words)}", flush=True)


print(f"{CPUS} processors, tfseek {tfseek.__version__}, medians of {ROUNDS}")
for name, (row, n, spec, options) in SETS.items():
    folder = FOLDER / name
    if not folder.exists():
        folder.mkdir(parents=True)
        with tfseek.Writer(folder / "x", shards=16, **options) as writer:
            for i in range(n):
                writer.write(row(i))
    ds = tfseek.open(folder, index_dir=FOLDER / "index")
    want = n * (n - 1) // 2
    times = {threads: [] for threads in THREADS}
    for k in range(ROUNDS + 1):
        for threads in THREADS:
            taken, ids = epoch(ds, spec, threads, "block" if options else "global")
            assert ids == want, (name, threads, ids, want)
            if k:
                times[threads].append(taken)
    report(name, n, times)
    if name == "numbers":
        for label, call in (
            ("index", lambda threads: tfseek.open(folder, index="memory", threads=threads)),
            ("verify", lambda threads: tfseek.verify(folder, threads=threads)),
        ):
            times = {threads: [] for threads in THREADS}
            for _ in range(ROUNDS):
                for threads in THREADS:
                    start = time.perf_counter()
                    call(threads)
                    times[threads].append(time.perf_counter() - start)
            report(label, n, times)
