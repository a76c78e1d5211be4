"""Compares batches for Arrow: tfseek's scan, its loader, tfx_bsl's decoder, and a protobuf loop.

    python arrow.py [--rounds 7] [--seconds 1] [--core 0] [--corpora tabular,wide,..] [--tasks peers,one,images,memory,where,lance,ray]

Requires the corpora of corpora.py, pyarrow, and for the peers tfx_bsl (`pip install --no-deps tfx-bsl tensorflow-metadata`, and absl-py) and
protobuf. Everything runs in one process on one pinned core, in turn, with batches of 1024 rows. All values of all batches are read.
tfseek's side reads the files and verifies all checksums; tfx_bsl and protobuf start from payloads in memory. Before the timing, the sums of
all sides are compared. Prints the best of all rounds, and ratios of the best.

    peers    batches per second: `loader` is tfseek.Loader with the same spec, the batches of tfseek.parse_example
    one      one feature of the wide corpus, beside all of its 200
    images   a table of the images as views, beside tfseek.verify of the same files
    memory   anonymous memory of a process that scans a corpus with two threads
    where    a condition that 0.1 % of 10^7 records meet, over a column file, by PyArrow. Makes 0.6 GB of data at first
    lance    one feature of the wide corpus, scanned in order and taken in a random order, beside a Lance dataset of the same records
    ray      tfseek.ray.read beside ray.data.read_tfrecords, which requires TensorFlow; one shard, Ray with one CPU
"""
from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import tfseek

from corpora import CORPORA, DATA, files, payloads
from schemas import SCHEMA, spec

ROWS = 1024
PEERS = ["tabular", "wide", "tokens", "embedding", "image"]


def read(array: pa.Array) -> float:
    """Reads all values of an array and returns their sum. Of byte strings, all bytes are read."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return read(array.flatten())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        offsets = np.frombuffer(array.buffers()[1], np.int64 if pa.types.is_large_binary(kind) else np.int32)
        first, last = offsets[array.offset], offsets[array.offset + len(array)]
        return float(last - first) + summed(np.frombuffer(array.buffers()[2], np.uint8)[first:last])
    numbers = np.frombuffer(array.buffers()[1], np.int64 if pa.types.is_int64(kind) else np.float32)
    return summed(numbers[array.offset:array.offset + len(array)])


def summed(values: np.ndarray) -> float:
    if values.dtype == np.uint8:  # eight bytes at a time: the sum of words depends on the alignment, their XOR of bytes does not
        words = values[:len(values) // 8 * 8].view(np.uint64)
        word = int(np.bitwise_xor.reduce(words)) if len(words) else 0
        return float(sum(word.to_bytes(8, "little")))
    return float(values.sum(dtype=np.float64 if values.dtype == np.float32 else values.dtype))


def scanned(corpus: str):
    """Yields the batches of a scan, again and again."""
    ds = tfseek.open(files(corpus))
    scan = ds.scan(spec=spec(corpus), bytes="copy", batch_rows=ROWS, threads=0)
    while True:
        for batch in pa.RecordBatchReader.from_stream(scan):
            yield batch


def loaded(corpus: str):
    loader = tfseek.Loader(tfseek.open(files(corpus)), spec(corpus), batch_size=ROWS, shuffle=False, threads=0, bytes_as="offsets")
    while True:
        for batch in loader:
            yield batch


def kept(corpus: str) -> list[list[bytes]]:
    """Returns payloads in batches: about 256 MB of them."""
    records, out, size = itertools.chain.from_iterable(map(payloads, files(corpus))), [], 0
    while size < 256 << 20 and (batch := list(itertools.islice(records, ROWS))):
        size += sum(map(len, batch))
        out.append(batch)
    return out


def decoded(corpus: str):
    from decoder import decoder

    decode = decoder(corpus)
    batches = kept(corpus)
    while True:
        for batch in batches:
            yield decode(batch)


def looped(corpus: str):
    from proto import FIELD, example_class

    plan = [(key, FIELD[kind], size, {"int": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}[kind])
            for key, (kind, size) in SCHEMA[corpus].items()]
    example, batches = example_class()(), kept(corpus)
    while True:
        for batch in batches:
            columns: dict[str, list] = {key: [] for key, *_ in plan}
            for payload in batch:
                example.ParseFromString(payload)
                features = example.features.feature
                for key, field, size, _ in plan:
                    value = getattr(features[key], field).value
                    columns[key].append(value[0] if size == 1 else list(value))
            arrays = [pa.array(columns[key], of if size == 1 else pa.list_(of)) for key, _, size, of in plan]
            yield pa.record_batch(arrays, names=list(columns))


def total(batch) -> dict[str, float]:
    if isinstance(batch, dict):
        return {key: total_of(column) for key, column in batch.items()}
    return {name: read(column) for name, column in zip(batch.schema.names, batch.columns)}


def total_of(column) -> float:
    if isinstance(column, tfseek.Bytes):
        return float(len(column.data)) + summed(np.asarray(column.data))
    return summed(column)


def rate(batches, seconds: float) -> float:
    """Returns rows per second, with all values read."""
    rows, start = 0, time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        batch = next(batches)
        total(batch)
        rows += ROWS
    return rows / (now - start)


def peers(corpora: list[str], rounds: int, seconds: float) -> None:
    sides = {"scan": scanned, "loader": loaded, "tfx_bsl": decoded, "protobuf": looped}
    print("| corpus | scan, rows/s | over the loader | over tfx_bsl | over protobuf |\n| --- | --- | --- | --- | --- |")
    for corpus in corpora:
        running = {}
        for name, make in sides.items():
            try:
                running[name] = make(corpus)
                next(running[name])
            except ImportError as e:
                print(f"skipped: {name}: {e}", file=sys.stderr)
                running.pop(name, None)
        firsts = {name: total(next(make(corpus))) for name, make in sides.items() if name in running}
        for name, found in firsts.items():
            for key, value in firsts["scan"].items():
                assert np.isclose(found[key], value, rtol=1e-5), (corpus, name, key, found[key], value)
        best = dict.fromkeys(running, 0.0)
        for _ in range(rounds):
            for name, batches in running.items():
                best[name] = max(best[name], rate(batches, seconds))
        over = [f"{best['scan'] / best[name]:.2f}" if name in best else "-" for name in ("loader", "tfx_bsl", "protobuf")]
        print(f"| {corpus} | {best['scan']:,.0f} | " + " | ".join(over) + " |", flush=True)


def one(rounds: int) -> None:
    ds, best = tfseek.open(files("wide")), {}
    for _ in range(rounds):
        for name, columns in (("one", ["i040"]), ("all", None)):
            start = time.perf_counter()
            rows = sum(len(batch) for batch in pa.RecordBatchReader.from_stream(ds.scan(columns, spec("wide"), threads=0)) if total_views(batch))
            assert rows == len(ds)
            best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
    print(f"one of 200 features {best['one']:.3f} s, all {best['all']:.3f} s: {best['all'] / best['one']:.1f} times")


def total_views(batch: pa.RecordBatch) -> bool:
    """Reads all numbers, and the views of byte strings."""
    for column in batch.columns:
        if column.type == pa.binary_view():
            np.frombuffer(column.buffers()[1], np.uint64).sum()
        else:
            read(column)
    return True


def images(rounds: int) -> None:
    paths, best = files("image"), {}
    ds = tfseek.open(paths)
    size = sum(map(os.path.getsize, paths))
    for _ in range(rounds):
        start = time.perf_counter()
        assert not tfseek.verify(paths, threads=1).errors
        best["verify"] = min(best.get("verify", 1e9), time.perf_counter() - start)
        start = time.perf_counter()
        assert pa.table(ds.scan(spec=spec("image"), threads=0)).num_rows == len(ds)
        best["table"] = min(best.get("table", 1e9), time.perf_counter() - start)
    print(f"images: verify {size / best['verify'] / 1e9:.2f} GB/s, table {size / best['table'] / 1e9:.2f} GB/s: "
          f"{best['verify'] / best['table']:.2f}")


MEMORY = """
import sys, threading, time
import pyarrow as pa, tfseek
from arrow import spec, files
corpus, most, done = sys.argv[1], 0, False
def watch():
    global most
    while not done:
        with open("/proc/self/status") as f:
            most = max(most, next(int(line.split()[1]) for line in f if line.startswith("RssAnon")))
        time.sleep(0.002)
pa.set_memory_pool(pa.system_memory_pool())
ds = tfseek.open(files(corpus))
threading.Thread(target=watch, daemon=True).start()
time.sleep(0.05)
base = most
rows = sum(len(batch) for batch in pa.RecordBatchReader.from_stream(ds.scan(spec=spec(corpus), bytes=sys.argv[2], threads=2)))
done = True
print(f"| {corpus} | {sys.argv[2]} | {rows:,} | {(most - base) / 1024:.0f} MB |")
"""


def memory(corpora: list[str]) -> None:
    print("| corpus | bytes | rows | memory of a scan |\n| --- | --- | --- | --- |", flush=True)
    for corpus, form in itertools.product(corpora, ("view", "copy")):
        subprocess.run([sys.executable, "-c", MEMORY, corpus, form], check=True, cwd=os.path.dirname(os.path.abspath(__file__)))


def where(rounds: int) -> None:
    import pyarrow.compute as pc
    import tfseek.arrow

    path = os.path.join(DATA, "ten-million.tfrecord")
    if not os.path.exists(path):
        distinct = [tfseek.Example({"label": k, "value": k / 7}).to_bytes() for k in range(1000)]
        with tfseek.Writer(path, index=True) as writer:
            for k in range(10**7):
                writer.write(distinct[k * 7919 % 1000])
        subprocess.run([sys.executable, "-m", "tfseek", "--quiet", "index", "--column", "label", path], check=True)
    ds, best = tfseek.open(path), {}
    columns = {"label": tfseek.FixedLenFeature([], "int64"), "value": tfseek.FixedLenFeature([], "float32")}
    data, is_three = tfseek.arrow.dataset(ds, spec=columns), pc.field("label") == 3
    numbers = ds.filter("label == 3").ids
    rest = ds.scan(["value"], columns)
    for _ in range(rounds):
        for name, run in (
            ("count", lambda: data.count_rows(filter=is_three)),
            ("records", lambda: data.to_table(columns=["value"], filter=is_three).num_rows),
            ("records alone", lambda: rest.take(numbers).to_arrow().num_rows),
        ):
            start = time.perf_counter()
            assert run() == len(numbers) == 10_000
            best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
    print("where: " + ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in best.items()))


def lance_one(rounds: int) -> None:
    import lance

    from epochs import id_batches

    ds, rows, key = tfseek.open(files("wide")), lance.dataset(os.path.join(DATA, "wide", "lance")), "i040"
    of = {key: spec("wide")[key]}
    sides = {
        "scan": lambda: (batch[key] for batch in pa.RecordBatchReader.from_stream(ds.scan([key], spec("wide"), threads=0))),
        "scan of Lance": lambda: (batch[key] for batch in rows.to_batches(columns=[key])),
        "shuffled": lambda: (batch[key] for batch in tfseek.Loader(ds, of, batch_size=256, shuffle=True, seed=1, threads=0)),
        "takes of 256 rows of Lance": lambda: (rows.take(ids, [key])[key] for ids in id_batches(len(ds), True)),
        "takes of 16,384 rows of Lance": lambda: (rows.take(ids, [key])[key] for ids in id_batches(len(ds), True, 16384)),
    }
    best, sums = dict.fromkeys(sides, 1e9), set()
    for _ in range(rounds):
        for name, make in sides.items():
            start = time.perf_counter()
            sums.add(sum(int(np.asarray(column).sum()) for column in make()))
            best[name] = min(best[name], time.perf_counter() - start)
    assert len(sums) == 1, sums
    print("one of 200 features, ns per record: " + ", ".join(f"{name} {seconds / len(ds) * 1e9:,.0f}" for name, seconds in best.items()))


def ray_read(corpora: list[str], rounds: int) -> None:
    import ray
    import tfseek.ray

    ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    print("| corpus | tfseek.ray.read, rows/s | over read_tfrecords |\n| --- | --- | --- |", flush=True)
    for corpus in corpora:
        path = files(corpus)[0]
        rows = len(tfseek.open(path))
        sides = {"tfseek": lambda: tfseek.ray.read(path, spec(corpus)), "ray": lambda: ray.data.read_tfrecords(path)}
        best = dict.fromkeys(sides, 1e9)
        for _ in range(rounds):
            for name, make in sides.items():
                start, found = time.perf_counter(), 0
                for table in make().iter_batches(batch_size=ROWS, batch_format="pyarrow"):
                    found += table.num_rows
                    for column in table.columns:
                        for chunk in column.chunks:
                            read(chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk)
                assert found == rows, (name, found, rows)
                best[name] = min(best[name], time.perf_counter() - start)
        print(f"| {corpus} | {rows / best['tfseek']:,.0f} | {best['ray'] / best['tfseek']:.1f} |", flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--core", type=int, default=0)
    p.add_argument("--corpora", default=",".join(PEERS))
    p.add_argument("--tasks", default="peers,one,images,memory,where")
    args = p.parse_args()
    corpora, tasks = args.corpora.split(","), args.tasks.split(",")
    assert set(corpora) <= set(CORPORA)
    if "memory" in tasks:
        memory(corpora)
    if hasattr(os, "sched_setaffinity") and "ray" not in tasks:
        os.sched_setaffinity(0, {args.core})
    if "peers" in tasks:
        peers(corpora, args.rounds, args.seconds)
    if "ray" in tasks:
        ray_read(corpora, rounds=min(args.rounds, 3))
    if "where" in tasks:
        where(args.rounds)
    if "one" in tasks:
        one(args.rounds)
    if "lance" in tasks:
        lance_one(args.rounds)
    if "images" in tasks:
        images(args.rounds)


if __name__ == "__main__":
    main()
