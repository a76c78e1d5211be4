"""Generates the corpora from a seed: TFRecord files by tfseek, and the same records as ArrayRecord, Bagz and Lance by their own writers.

    python corpora.py [--corpora tabular,tokens] [--formats tfrecord,array_record,array_record_64,bag,lance,lance_packed]

TFSEEK_PEERS_DATA is the folder (default: tfseek-peers). TFSEEK_PEERS_SCALE multiplies the numbers of records (default: 1).
`rows.npy` next to the files contains a hash of each record's values as read by protobuf. The batches of every peer are compared with it.
"""
from __future__ import annotations

import glob
import itertools
import json
import mmap
import os
import time

import numpy as np

from schemas import SCHEMA, spec

DATA = os.environ.get("TFSEEK_PEERS_DATA", "tfseek-peers")
SCALE = float(os.environ.get("TFSEEK_PEERS_SCALE", "1"))

CORPORA = list(SCHEMA)
COUNT = {"tabular": 2_000_000, "wide": 100_000, "tokens": 200_000, "embedding": 200_000, "image": 20_000, "wide_own": 100_000,
         "many": 200_000}
SHARDS = {corpus: {"image": 8, "many": 10_000}.get(corpus, 4) for corpus in CORPORA}
# An integer feature per corpus, for the tasks that read a single feature.
LABEL = {"tabular": "feature1", "many": "feature1", "wide": "i040", "wide_own": "i040", "tokens": "label", "embedding": "label",
         "image": "image/label"}
# The cost of an ArrayRecordDataSource read grows with the shard, so there is also a variant with many shards for small records.
# Lance stores columns, which have no order of features in a record. Its packed form stores all features of a row together.
FORMATS = {"tfrecord": CORPORA, "array_record": CORPORA[:-1], "array_record_64": ["tabular"], "bag": CORPORA[:-1],
           "lance": ["tabular", "wide", "tokens", "embedding", "image"], "lance_packed": ["tabular", "wide"]}
WORDS = [b"cat", b"dog", b"chicken", b"horse", b"goat"]


def files(corpus: str, form: str = "tfrecord") -> list[str]:
    names = "data/*.lance" if form.startswith("lance") else "part-*." + form
    found = sorted(glob.glob(os.path.join(DATA, corpus, form, names)))
    if not found:
        raise FileNotFoundError(f"{corpus} is not there as {form}: python corpora.py makes it")
    return found


def meta(corpus: str) -> dict:
    with open(os.path.join(DATA, corpus, "meta.json")) as f:
        return json.load(f)


def expected(corpus: str) -> np.ndarray:
    return np.load(os.path.join(DATA, corpus, "rows.npy"))


def payloads(path: str):
    """Returns the payloads of a TFRecord file without verifying checksums."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        at = 0
        while at < len(m):
            size = int.from_bytes(m[at:at + 8], "little")
            yield m[at + 12:at + 12 + size]
            at += 16 + size


def rows(corpus: str, n: int, rng: np.random.Generator):
    """Yields the values of n records in the order of the schema."""
    if corpus in ("tabular", "many"):
        words = rng.integers(0, 5, n).tolist()
        return zip(rng.integers(0, 2, n).tolist(), words, [WORDS[w] for w in words], rng.standard_normal(n).tolist())
    if corpus in ("wide", "wide_own"):
        floats = rng.standard_normal((n, 100)).tolist()
        ints = rng.integers(0, 10 ** rng.integers(1, 7, (n, 80))).tolist()
        strings = [[s.tobytes() for s in row] for row in rng.integers(97, 123, (n, 20, 6), dtype=np.uint8)]
        return (f + i + s for f, i, s in zip(floats, ints, strings))
    labels = rng.integers(0, 1000, n).tolist()
    if corpus == "tokens":  # log-uniform like ranks in Zipf's law: varints of one, two and three bytes
        ids = np.minimum(np.exp(rng.random((n, 512)) * np.log(50_000)).astype(np.int64), 49_999).tolist()
        return zip(ids, labels, rng.random(n).tolist())
    names = rng.integers(0, 10**12, n).tolist()
    if corpus == "embedding":
        return zip(rng.standard_normal((n, 1024), dtype=np.float32).tolist(), labels, (b"doc-%012d" % name for name in names))
    sizes, height, width = rng.integers(80_000, 120_000, n).tolist(), *rng.integers(200, 600, (2, n)).tolist()
    return zip((rng.bytes(size) for size in sizes), height, width, labels, (b"img-%012d.jpg" % name for name in names))


def serialized(corpus: str, n: int, shard: int):
    """Yields the payloads of a shard with sorted keys, like `deterministic=True`. Reuses one message."""
    from proto import FIELD, example_class

    rng = np.random.default_rng([CORPORA.index(corpus), shard])
    example, lists = example_class()(), []
    for key, (kind, size) in SCHEMA[corpus].items():
        values = getattr(example.features.feature[key], FIELD[kind]).value
        values.extend([b"" if kind == "bytes" else 0] * size)
        lists.append((values, size == 1))
    for start in range(0, n, 1000):
        for row in rows(corpus, min(1000, n - start), rng):
            for (values, one), value in zip(lists, row):
                if one:
                    values[0] = value
                else:
                    values[:] = value
            payload = example.SerializeToString(deterministic=True)
            yield shuffled_keys(payload, rng) if corpus == "wide_own" else payload


def shuffled_keys(payload: bytes, rng: np.random.Generator) -> bytes:
    """Returns the Example with its features in another order. All tags and lengths of features have one byte."""
    start = next(i for i in range(1, 11) if payload[i] < 128) + 1
    entries, at = [], start
    while at < len(payload):
        end = at + 2 + payload[at + 1]
        entries.append(payload[at:end])
        at = end
    return payload[:start] + b"".join([entries[i] for i in rng.permutation(len(entries)).tolist()])


def write_tfrecord(corpus: str) -> None:
    import subprocess
    import sys

    import tfseek

    total, k, size = COUNT[corpus] if corpus == "many" else int(COUNT[corpus] * SCALE), SHARDS[corpus], 0
    for i in range(k):
        with tfseek.Writer(shard_path(corpus, "tfrecord", i, k), index=True) as writer:
            for payload in serialized(corpus, total // k + (i < total % k), i):
                writer.write(payload)
                size += len(payload)
    with open(os.path.join(DATA, corpus, "meta.json"), "w") as f:
        json.dump({"records": total, "shards": k, "payload_bytes": size, "scale": SCALE}, f)
    np.save(os.path.join(DATA, corpus, "rows.npy"), hashes(corpus))
    if corpus == "many":
        subprocess.run([sys.executable, "-m", "tfseek", "--quiet", "index", "--pack", "many", os.path.join(DATA, corpus, "tfrecord")],
                       check=True)


def pack(corpus: str) -> str:
    return os.path.join(DATA, corpus, "tfrecord", ".tfseek", corpus + ".tfrp")


def hashes(corpus: str) -> np.ndarray:
    """Returns the sorted hashes of all records' values as read by protobuf."""
    from proto import batch_parser
    from sums import row_hashes

    parse, records, out = batch_parser(corpus), itertools.chain.from_iterable(map(payloads, files(corpus))), []
    while batch := list(itertools.islice(records, 256)):
        out.append(row_hashes(parse(batch)))
    return np.sort(np.concatenate(out))


def shard_path(corpus: str, form: str, i: int, k: int) -> str:
    return os.path.join(DATA, corpus, form, f"part-{i:05d}-of-{k:05d}.{form}")


def write_array_record(corpus: str, form: str = "array_record", split: int = 1) -> None:
    """Writes uncompressed records with a group size of one, the fastest layout for random access."""
    from array_record.python.array_record_module import ArrayRecordWriter

    k = SHARDS[corpus] * split
    for i, path in enumerate(files(corpus)):
        writers = [ArrayRecordWriter(shard_path(corpus, form, i * split + j, k), "group_size:1,uncompressed") for j in range(split)]
        for payload, writer in zip(payloads(path), itertools.cycle(writers)):
            writer.write(payload)
        for writer in writers:
            writer.close()


def write_array_record_64(corpus: str) -> None:
    write_array_record(corpus, "array_record_64", 64 // SHARDS[corpus])


def write_bag(corpus: str) -> None:
    import bagz

    for i, path in enumerate(files(corpus)):  # `.bag` is not compressed, `.bagz` would be
        with bagz.Writer(shard_path(corpus, "bag", i, SHARDS[corpus])) as writer:
            for payload in payloads(path):
                writer.write(payload)


def write_lance(corpus: str, packed: bool = False) -> None:
    """Writes a dataset with a column per feature, or with one packed struct of all features. Version 2.0 of the format returns images
    faster than later ones. Integers are in lists of variable length, whose values are packed in bits, unlike those of fixed lists."""
    import lance
    import pyarrow as pa
    import tfseek

    types, fields = {"int": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}, []
    for key, (kind, size) in SCHEMA[corpus].items():
        of = types[kind]
        fields.append(pa.field(key, of if size == 1 else pa.list_(of) if kind == "int" else pa.list_(of, size), nullable=False))
    schema = pa.schema(fields)
    if packed:
        schema = pa.schema([pa.field("packed", pa.struct(fields), nullable=False, metadata={"lance-encoding:packed": "true"})])

    def batches():
        scan = tfseek.open(files(corpus)).scan(spec=spec(corpus), bytes="copy", batch_rows=1024)
        for batch in pa.RecordBatchReader.from_stream(scan):
            arrays = [batch.column(field.name).cast(field.type) for field in fields]
            yield pa.record_batch([pa.StructArray.from_arrays(arrays, fields=fields)] if packed else arrays, schema=schema)

    lance.write_dataset(batches(), os.path.join(DATA, corpus, "lance_packed" if packed else "lance"), schema=schema,
                        data_storage_version="2.0" if corpus == "image" else "2.2")


def write_lance_packed(corpus: str) -> None:
    write_lance(corpus, packed=True)


def main() -> None:
    import argparse
    import shutil

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpora", default=",".join(CORPORA))
    p.add_argument("--formats", default=",".join(FORMATS))
    args = p.parse_args()
    for corpus, form in itertools.product(args.corpora.split(","), args.formats.split(",")):
        if corpus not in FORMATS[form]:
            continue
        folder, start = os.path.join(DATA, corpus, form), time.perf_counter()
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            globals()["write_" + form](corpus)
        except ImportError as e:
            os.rmdir(folder)
            print(f"skipped: {corpus} as {form}: {e}")
            continue
        size = sum(map(os.path.getsize, files(corpus, form)))
        print(f"{corpus:10} {form:16} {size / 1e6:9.1f} MB {time.perf_counter() - start:7.1f} s", flush=True)


if __name__ == "__main__":
    main()
