"""Records per second of Grain pipelines in batches: sources of tfseek and array_record, beside a source of constants.

Usage: python benches/grain_sources.py [ROUNDS] [RECORDS]. Needs grain, array_record, pillow, and jax as most users of Grain have it.

A step of a pipeline is asked for one batch of 256 after the other, shuffled by Grain, without threads. Records have 84 bytes; pictures are JPEGs of 500 x 375, cropped at random to
224 x 224, in batches of 64. The batches of all peers are compared before the first round. The peers take turns; printed are medians of processor time, all threads included, and their
ratios to the constants of the same column. The constants of the first rows are Grain's own cost of one element after the other, those of the second rows of whole batches.
"""

import itertools
import pathlib
import statistics
import sys
import tempfile
import time
import zlib

import grain
import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter
from jpegs import jpegs

import tfseek
import tfseek.grain

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
RECORDS = int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
BATCH, BATCHES, WORDS = 256, 50, [b"cat", b"dog", b"chicken", b"horse", b"goat"]
SPEC = {f"feature{k}": tfseek.FixedLenFeature([], dtype) for k, dtype in enumerate(("int64", "int64", "string", "float32"))}
SCHEMA = tfseek.Schema(SPEC)
PICTURES, PICTURE_BATCH = 1_280, 64
PICTURE = {"image": tfseek.Image((224, 224), crop="random_resized", flip=0.5)}


class Constants:
    """A source of one item, which stands for a whole batch if Grain asks for one."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        return self.item

    def _getitems(self, ids):
        return [self.item]


def first(elements):
    return elements[0]


def shuffled(source):
    return grain.MapDataset.source(source).shuffle(seed=1)


def write(folder):
    rng = np.random.default_rng(1)
    words, labels, floats = rng.integers(0, 5, RECORDS).tolist(), rng.integers(0, 2, RECORDS).tolist(), rng.standard_normal(RECORDS).tolist()
    with tfseek.Writer(folder / "a.tfrecord") as writer:
        for word, label, number in zip(words, labels, floats):
            writer.write({"feature0": label, "feature1": word, "feature2": WORDS[word], "feature3": number})
    copy = ArrayRecordWriter(str(folder / "a.array_record"), "group_size:1")
    for payload in tfseek.open(folder / "a.tfrecord", kind="bytes"):
        copy.write(payload)
    copy.close()
    with tfseek.Writer(folder / "pictures.tfrecord") as writer:
        for image in itertools.islice(itertools.cycle(jpegs(rng)), PICTURES):
            writer.write({"image": image})


def peers(folder):
    """Returns functions of a number of a batch, by the group and the name of a peer. The first of a group is Grain's own cost."""
    ds, own = tfseek.open(folder / "a.tfrecord"), tfseek.grain.BatchMapDataset
    parsed, raw = tfseek.grain.source(ds, SPEC), tfseek.grain.source(tfseek.open(folder / "a.tfrecord", kind="bytes"))
    array_record = grain.sources.ArrayRecordDataSource(str(folder / "a.array_record"))
    order = shuffled(range(RECORDS))
    ids = [[order[i] for i in range(k * BATCH, (k + 1) * BATCH)] for k in range(BATCHES)]

    def parse(payload):
        return tfseek.parse_single_example(payload, SCHEMA)

    steps = {
        ("parsed, one by one", "constants"): shuffled(Constants(parsed[0])).batch(BATCH),
        ("parsed, one by one", "tfseek.grain.source"): shuffled(parsed).batch(BATCH),
        ("parsed, one by one", "array_record, parse_single_example in map"): shuffled(array_record).map(parse).batch(BATCH),
        ("bytes, one by one", "constants"): shuffled(Constants(raw[0])).batch(BATCH, batch_fn=list),
        ("bytes, one by one", "tfseek.grain.source"): shuffled(raw).batch(BATCH, batch_fn=list),
        ("bytes, one by one", "array_record"): shuffled(array_record).batch(BATCH, batch_fn=list),
        ("parsed, whole batches", "constants"): own(shuffled(Constants(0)), BATCH),
        ("parsed, whole batches", "BatchMapDataset"): own(shuffled(parsed), BATCH),
    }
    found = {name: step.__getitem__ for name, step in steps.items()}
    found["parsed, whole batches", "get_many and parse_example"] = lambda k: tfseek.parse_example(ds.get_many(ids[k]), SCHEMA)
    for (group, name), peer in found.items():
        if name == "constants":
            continue
        for k in range(BATCHES):
            batch, want = peer(k), ds.get_many(ids[k])
            if group.startswith("bytes"):
                assert batch == [bytes(record) for record in want], name
            else:
                want = tfseek.parse_example(want, SCHEMA)
                assert batch.keys() == want.keys() and all(np.array_equal(np.asarray(batch[key], want[key].dtype), want[key]) for key in want), name
    return found


def epoch(folder):
    with tfseek.Loader(tfseek.open(folder / "a.tfrecord"), SPEC, batch_size=BATCH, seed=1, threads=1) as batches:
        return sum(len(batch["feature0"]) for batch in batches)


def pictures(folder):
    """Returns functions that return an iterator of batches of pictures, by their names."""
    ds, options = tfseek.open(folder / "pictures.tfrecord"), grain.ReadOptions(num_threads=2, prefetch_buffer_size=4)
    source = tfseek.grain.source(ds, PICTURE, seed=1)

    def ways(step, shuffle):
        return {
            "Loader, 2 threads": lambda: tfseek.Loader(ds, PICTURE, batch_size=PICTURE_BATCH, seed=1, shuffle=shuffle, threads=2),
            "source, batch, 2 threads of Grain": lambda: iter(step.batch(PICTURE_BATCH).to_iter_dataset(options)),
            "BatchMapDataset, 2 threads of Grain": lambda: iter(step.pipe(tfseek.grain.BatchMapDataset, PICTURE_BATCH).to_iter_dataset(options)),
        }

    # In order, position and number of a record are the same, by which the random crops are drawn.
    digests = [[zlib.crc32(batch["image"]) for batch in make()] for make in ways(grain.MapDataset.source(source), False).values()]
    assert len(digests[0]) == PICTURES // PICTURE_BATCH and digests[0] == digests[1] == digests[2]
    return ways(shuffled(source), True)


def show(title, rows, of):
    print(title)
    for name, costs in rows.items():
        cost, ratio = statistics.median(costs), statistics.median(base / cost for base, cost in zip(rows[of], costs))
        print(f"  {name:45} {1 / cost:12,.0f} records/s  {ratio:6.2f}")


def timed(pull, clock):
    start = clock()
    rows = pull()
    return (clock() - start) / rows


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write(folder)
        found, images, groups = peers(folder), pictures(folder), {}

        def add(group, name, pull, clock):
            groups.setdefault(group, {}).setdefault(name, []).append(timed(pull, clock))

        for _ in range(ROUNDS):
            for (group, name), peer in found.items():
                add(group, name, lambda peer=peer: sum(BATCH for k in range(BATCHES) if peer(k) is not None), time.process_time)
            add("parsed, whole batches", "Loader", lambda: epoch(folder), time.process_time)
            for name, make in images.items():
                for clock in (time.process_time, time.perf_counter):
                    add(f"pictures, {clock.__name__}", name, lambda make=make: sum(len(batch["image"]) for batch in make()), clock)
        for group, rows in groups.items():
            show(group, rows, next(iter(rows)))


main()
