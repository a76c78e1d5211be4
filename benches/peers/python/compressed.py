"""Compares random reads and shuffled epochs of gzip shards: tfseek, indexed_gzip, tf.data. All run in turn, each in a new process.

    python compressed.py FOLDER [--shards 16] [--mib 256] [--rounds 5] [--reads 200] [--seconds 20]

Makes gzip shards of records of 6 KB in FOLDER, with --mib MiB of records each, and their indexes with checkpoints every MiB. Prints the
median and the range of

    random    milliseconds per random read of a record, of all shards. indexed_gzip reads at the known offsets of payloads, and its
              indexes are built before with the same spacing. Every tenth payload is compared with the one that was written.
    epoch     MB of records per second of CPU time in a shuffled epoch that is stopped after --seconds: tfseek's block order with
              windows of 64 blocks, and tf.data with a buffer of as many records. `in order` is the rate without a shuffle.

The limit of memory is that of the caller, such as a container. Packages that are missing are skipped.
"""
from __future__ import annotations

import argparse
import glob
import importlib.util
import json
import os
import random
import resource
import subprocess
import sys
import time

SPACING = 1 << 20
# The window of a block order depends on the batch: 64 blocks of a MiB for batches of at most 16.
BATCH, BLOCK, WINDOW = 16, 1 << 20, 64


def payload(i: int) -> bytes:
    rng = random.Random(i)
    words = payload.words = getattr(payload, "words", None) or [random.Random(-k).randbytes(3 + k % 7) for k in range(1, 3000)]
    return b" ".join(rng.choices(words, k=730)) + rng.randbytes(800)


def make(folder: str, shards: int, mib: int) -> None:
    import tfseek

    os.makedirs(folder, exist_ok=True)
    i = 0
    for s in range(shards):
        path = f"{folder}/s-{s:05}-of-{shards:05}.tfrecord.gz"
        done, first = 0, i
        with open(os.devnull) if os.path.exists(path) else tfseek.Writer(path, compression="gzip") as writer:
            while done < mib << 20:
                record = payload(i)
                if not os.path.exists(path):
                    writer.write(record)
                done, i = done + len(record) + 16, i + 1
        print(f"{path}: {i - first} records", file=sys.stderr)
    tfseek.build_index(f"{folder}/*.gz", index_dir=f"{folder}/index")
    if importlib.util.find_spec("indexed_gzip"):
        import indexed_gzip

        for path in paths(folder):
            if not os.path.exists(path + "idx"):
                with indexed_gzip.IndexedGzipFile(path, spacing=SPACING) as f:
                    f.build_full_index()
                    f.export_index(path + "idx")


def paths(folder: str) -> list[str]:
    return sorted(glob.glob(f"{folder}/*.gz"))


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def open_tfseek(folder: str):
    import tfseek

    return tfseek.open(f"{folder}/*.gz", index="require", index_dir=f"{folder}/index", kind="bytes")


def random_reads(peer: str, folder: str, reads: int, seed: int) -> dict:
    ds = open_tfseek(folder)
    ids = random.Random(seed).sample(range(len(ds)), reads)
    if peer == "tfseek":
        def read(i):
            return ds[i]
        [ds[len(ds) * s // 16] for s in range(16)]
    else:
        import indexed_gzip

        files = [indexed_gzip.IndexedGzipFile(path, index_file=path + "idx") for path in paths(folder)]
        where = locate(folder, ids)

        def read(i):
            s, offset, length = where[i]
            files[s].seek(offset)
            return files[s].read(length)
    start, found = time.perf_counter(), []
    for i in ids:
        found.append(bytes(read(i)))
    seconds = time.perf_counter() - start
    assert all(record == payload(i) for i, record in zip(ids[::10], found[::10])), "found another payload"
    return {"random": seconds / reads * 1e3}


def locate(folder: str, ids: list[int]) -> dict:
    """Returns shard, offset of the payload and its length of each record, from the lengths of all payloads."""
    table = f"{folder}/lengths.json"
    if not os.path.exists(table):
        import tfseek

        lengths = [[len(bytes(r)) for r in tfseek.stream(path, kind="bytes")] for path in paths(folder)]
        with open(table, "w") as f:
            json.dump(lengths, f)
    with open(table) as f:
        lengths = json.load(f)
    wanted, out, i = set(ids), {}, 0
    for s, shard in enumerate(lengths):
        offset = 12
        for length in shard:
            if i in wanted:
                out[i] = (s, offset, length)
            offset, i = offset + length + 16, i + 1
    return out


def epoch(peer: str, folder: str, seconds: float, seed: int) -> dict:
    done = 0
    if peer.startswith("tfseek"):
        import tfseek

        if peer == "tfseek in order":
            start = cpu()
            for record in tfseek.stream(paths(folder), kind="bytes"):
                done += len(record) + 16
                if cpu() - start > seconds:
                    break
        else:
            ds = open_tfseek(folder)
            [ds[len(ds) * s // 16] for s in range(16)]
            start = cpu()
            for batch in tfseek.Loader(ds, batch_size=BATCH, shuffle="block", seed=seed):
                done += sum(len(record) + 16 for record in batch)
                if cpu() - start > seconds:
                    break
    else:
        import tensorflow as tf

        data = tf.data.TFRecordDataset(paths(folder), compression_type="GZIP")
        if peer == "tf.data":
            data = data.shuffle(BLOCK // 6000 * WINDOW, seed=seed)
        start = cpu()
        for batch in data.batch(BATCH).prefetch(2):
            done += sum(len(record) + 16 for record in batch.numpy())
            if cpu() - start > seconds:
                break
    return {"epoch": done / 1e6 / (cpu() - start)}


CELLS = [("random", "tfseek"), ("random", "indexed_gzip"), ("epoch", "tfseek"), ("epoch", "tfseek in order"), ("epoch", "tf.data"),
         ("epoch", "tf.data in order")]
NEEDS = {"indexed_gzip": "indexed_gzip", "tf.data": "tensorflow", "tf.data in order": "tensorflow"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    for name, default in [("shards", 16), ("mib", 256), ("rounds", 5), ("reads", 200), ("seconds", 20)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cell:
        task, peer, seed = json.loads(args.cell)
        run = random_reads if task == "random" else epoch
        print(json.dumps(run(peer, args.folder, args.reads if task == "random" else args.seconds, seed)))
        return
    make(args.folder, args.shards, args.mib)
    data, index = (sum(map(os.path.getsize, glob.glob(f"{args.folder}/{p}"))) for p in ("*.gz", "index/*"))
    print(f"{data / 1e9:.2f} GB compressed, {args.shards * args.mib / 1024:.1f} GiB of records; index {index / data * 100:.1f} %")
    results: dict = {}
    for round in range(args.rounds):
        for task, peer in CELLS:
            if peer in NEEDS and not importlib.util.find_spec(NEEDS[peer]):
                print(f"skipped: {NEEDS[peer]} is not installed", file=sys.stderr)
                continue
            command = [sys.executable, __file__, args.folder, "--reads", str(args.reads), "--seconds", str(args.seconds)]
            done = subprocess.run([*command, "--cell", json.dumps([task, peer, round])], capture_output=True, text=True)
            if done.returncode:
                print(f"{task}, {peer}: exit code {done.returncode}: {done.stderr[-500:]}", file=sys.stderr)
                continue
            results.setdefault((task, peer), []).append(json.loads(done.stdout.splitlines()[-1])[task])
    print("| Task | Library | Median | Range |\n| --- | --- | --- | --- |")
    for (task, peer), found in results.items():
        unit = "ms per read" if task == "random" else "MB/s of a core"
        found.sort()
        print(f"| {task} | {peer} | {found[len(found) // 2]:.3f} {unit} | {found[0]:.3f} to {found[-1]:.3f} |")


if __name__ == "__main__":
    main()
