"""Shuffled epochs in parsed batches of 256. Each function takes a corpus and returns an iterator of batches, endless or of one epoch.

A batch is a dict of the peer's own arrays: numbers as NumPy arrays, byte strings as object arrays or lists.
"""
from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from typing import NamedTuple

import numpy as np

from corpora import CORPORA, DATA, FORMATS, SCHEMA, files, meta, pack
from diy import Maps
from registry import BATCH, CORES, peer
from schemas import spec

# ---- tfseek


def tfseek_loader(corpus, once=False, paths=None, **how):
    import tfseek

    ds = tfseek.open(files(corpus) if paths is None else paths(corpus))
    return tfseek.Loader(ds, spec(corpus), batch_size=BATCH, shuffle=True, seed=1, repeat=not once, **how)


def ours(task, setting, **arguments):
    peer(task, "tfseek", setting, imports=["tfseek"], **arguments)(tfseek_loader)


ours(["shuffled", "first_batch"], "payload", corpora=CORPORA)
ours("shuffled", "payload, threads=0", threads=0)
ours("shuffled", "payload, threads=1", threads=1)
ours("shuffled", "header", verify="header")
ours("shuffled", "payload, offsets", bytes_as="offsets")
ours("shuffled", "header, offsets", verify="header", bytes_as="offsets")
ours("shuffled", "payload, views", corpora=["image"], bytes_as="views")
for n in (1, 2, 4, 8, 16):
    if n <= 2 * CORES:
        ours("scaling", f"payload, threads={n}", threads=n)
        ours("scaling", f"payload, offsets, threads={n}", threads=n, bytes_as="offsets")
ours("first_batch", "pack", corpora=["many"], paths=pack)


@peer("sums", "tfseek", "objects", imports=["tfseek"])
@peer("sums", "tfseek", "offsets", imports=["tfseek"], bytes_as="offsets")
def _(corpus, **how):
    """Repeats the same sixteen batches, to measure the cost of summing."""
    return itertools.cycle(list(itertools.islice(tfseek_loader(corpus, **how), 16)))


# ---- TensorFlow

TF = ("tensorflow",)


def tf_spec(corpus):
    import tensorflow as tf

    dtype = {"int": tf.int64, "float": tf.float32, "bytes": tf.string}
    return {key: tf.io.FixedLenFeature([] if n == 1 else [n], dtype[kind]) for key, (kind, n) in SCHEMA[corpus].items()}


def tf_parser(corpus):
    """Returns a function from a list of payloads to a batch. Numeric tensors become arrays without a copy."""
    import tensorflow as tf

    features = tf_spec(corpus)
    parse = tf.function(lambda payloads: tf.io.parse_example(payloads, features), input_signature=[tf.TensorSpec([None], tf.string)])

    def parser(payloads):
        return {key: t.numpy() if t.dtype == tf.string else np.asarray(memoryview(t))
                for key, t in parse(tf.constant(payloads)).items()}

    return parser


@peer("shuffled", "tf.data, shuffle(10,000)", "files in turn", imports=TF, cycle=1)
@peer(["shuffled", "first_batch"], "tf.data, shuffle(10,000)", "interleaved", corpora=CORPORA, imports=TF)
@peer("shuffled", "tf.data, shuffle(10,000)", "interleaved, batched in parallel", imports=TF, batching=True)
@peer("shuffled", "tf.data, shuffle(10,000)", "interleaved, own pool", imports=TF, pool=CORES)
@peer("shuffled", "tf.data, shuffle(10,000)", "interleaved, own pool, not deterministic", imports=TF, pool=CORES, deterministic=False)
@peer("shuffled", "tf.data, shuffle(10,000)", "files in turn, own pool, not deterministic", imports=TF, cycle=1, pool=CORES,
      deterministic=False)
def _(corpus, once=False, cycle=8, batching=False, pool=None, deterministic=True):
    import tensorflow as tf

    features, auto = tf_spec(corpus), tf.data.AUTOTUNE
    ds = tf.data.Dataset.from_tensor_slices(files(corpus)).shuffle(64, seed=1)
    if not once:
        ds = ds.repeat()
    if cycle == 1:
        ds = tf.data.TFRecordDataset(ds)
    else:
        ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=cycle, num_parallel_calls=auto)
    ds = ds.shuffle(10_000, seed=1).batch(BATCH, num_parallel_calls=auto if batching else None)
    ds = ds.map(lambda payloads: tf.io.parse_example(payloads, features), num_parallel_calls=auto).prefetch(auto)
    options = tf.data.Options()
    options.deterministic = deterministic
    if pool:
        options.threading.private_threadpool_size = pool
        options.threading.max_intra_op_parallelism = 1
    return ds.with_options(options).as_numpy_iterator()


# ---- by hand


def id_batches(n, once, size=BATCH):
    """Yields batches of one permutation after another."""
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(n)
        for i in range(0, n, size):
            yield order[i:i + size]
        if once:
            return


@peer(["shuffled", "first_batch"], "diy mmap + tf.io.parse_example", imports=TF)
def _(corpus, once=False):
    source, parse = Maps(corpus), tf_parser(corpus)
    return (parse(source.many(ids)) for ids in id_batches(len(source), once))


@peer("shuffled", "diy mmap + tf.io.parse_example", f"{CORES} threads ahead", imports=TF)
def _(corpus, once=False):
    source, parse = Maps(corpus), tf_parser(corpus)
    return parallel_map(lambda ids: parse(source.many(ids)), id_batches(len(source), once))


def parallel_map(make, ids):
    """Maps on a thread pool with a few batches in flight."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(CORES) as pool:
        waiting = deque(pool.submit(make, i) for i in itertools.islice(ids, 2 * CORES))
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(make, i) for i in itertools.islice(ids, 1))
            yield done


@peer("shuffled", "diy mmap + upb", imports=["google.protobuf.message_factory"])
def _(corpus, once=False):
    from proto import batch_parser

    source, parse = Maps(corpus), batch_parser(corpus)
    return (parse(source.many(ids)) for ids in id_batches(len(source), once))


class Strings(NamedTuple):
    """Byte strings in one array, as in the columns of tfseek with offsets."""

    data: np.ndarray
    offsets: np.ndarray


def columns(batch):
    """Returns the columns of a record batch of lists or values as arrays, without a copy."""
    found = {}
    for key, column in zip(batch.schema.names, batch.columns):
        values = column.flatten() if hasattr(column, "flatten") else column
        buffers = values.buffers()
        if str(values.type) in ("binary", "large_binary"):
            offsets = np.frombuffer(buffers[1], np.int32 if str(values.type) == "binary" else np.int64)
            offsets = offsets[values.offset:values.offset + len(values) + 1]
            found[key] = Strings(np.frombuffer(buffers[2], np.uint8)[offsets[0]:offsets[-1]], offsets - offsets[0])
        else:
            array = np.frombuffer(buffers[1], np.int64 if str(values.type) == "int64" else np.float32)[values.offset:values.offset + len(values)]
            found[key] = array if len(array) == len(batch) else array.reshape(len(batch), -1)
    return found


@peer("shuffled", "diy mmap + tfx_bsl", "strings as offsets", imports=["tfx_bsl.coders.example_coder"])
def _(corpus, once=False):
    from decoder import decoder

    source, decode = Maps(corpus), decoder(corpus)
    return (columns(decode(source.many(ids))) for ids in id_batches(len(source), once))


# ---- grain and array_record

GRAIN = ("grain", "array_record.python.array_record_data_source")


def data_source(corpus, form):
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    return ArrayRecordDataSource(files(corpus, form))


class ThreadReaders:
    """A source for Grain by `seek` and `read`, which are faster than the data source. Each thread has its own readers."""

    def __init__(self, corpus):
        self.corpus, self.local = corpus, threading.local()
        self.n = meta(corpus)["records"]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        from records import SeekReader

        if not hasattr(self.local, "reader"):
            self.local.reader = SeekReader(self.corpus)
        return self.local.reader[i]


def many_shards(setting, **arguments):
    """Registers the default shards and, for small records, the variant with many shards; the faster one counts."""

    def add(make):
        tasks = ["shuffled"] if "2 workers" in setting else ["shuffled", "first_batch"]
        peer(tasks, "grain + array_record", setting, form="array_record", form_of="array_record", **arguments)(make)
        peer("shuffled", "grain + array_record", setting + ", 64 shards", corpora=["tabular"], form="array_record_64",
             form_of="array_record_64", **arguments)(make)
        return make

    return add


@many_shards("upb, 0 workers", imports=GRAIN, workers=0)
@many_shards("upb, 2 workers", imports=GRAIN, workers=2)
@peer("shuffled", "grain + array_record", "upb, 0 workers, seek and read", form="array_record", imports=GRAIN, workers=0,
      form_of=None)
def _(corpus, form_of, workers, once=False):
    import grain

    from proto import row_parser, stack

    ds = grain.MapDataset.source(data_source(corpus, form_of) if form_of else ThreadReaders(corpus)).seed(1).shuffle()
    ds = (ds if once else ds.repeat()).map(row_parser(corpus)).batch(BATCH, batch_fn=stack).to_iter_dataset()
    if workers:
        ds = ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    return iter(ds)


@many_shards("getitems + tf.io.parse_example, no grain", imports=GRAIN[1:] + TF)
def _(corpus, form_of, once=False):
    source, parse = data_source(corpus, form_of), tf_parser(corpus)
    return (parse(source.__getitems__(ids.tolist())) for ids in id_batches(len(source), once))


@peer("shuffled", "grain + array_record", "seek and read + tf.io.parse_example, no grain", form="array_record", imports=GRAIN[1:] + TF)
def _(corpus, once=False):
    from records import SeekReader

    source, parse = SeekReader(corpus), tf_parser(corpus)
    return (parse([source[i] for i in ids.tolist()]) for ids in id_batches(len(source), once))


@peer("shuffled", "grain + array_record", "tf.io.parse_example, 0 workers", form="array_record", imports=GRAIN + TF)
def _(corpus, once=False):
    import grain

    ds = grain.MapDataset.source(data_source(corpus, "array_record")).seed(1).shuffle()
    return iter((ds if once else ds.repeat()).batch(BATCH, batch_fn=list).map(tf_parser(corpus)).to_iter_dataset())


# ---- Lance


def lance(setting, corpora=FORMATS["lance"], form="lance", **arguments):
    """Registers a way to take rows of a form of the data."""
    peer("shuffled", "Lance", setting, corpora=corpora, form=form, imports=["lance"], form_of=form, **arguments)(lance_epochs)


def lance_epochs(corpus, form_of, once=False, rows=BATCH, ahead=False, sort=False, uring=False):
    """Takes rows, and divides them into batches. `uring` reads with io_uring in the thread that takes, instead of in Lance's pool."""
    import lance
    import pyarrow as pa

    path = os.path.abspath(os.path.join(DATA, corpus, form_of))
    if uring:
        os.environ.update(LANCE_USE_LITE_SCHEDULER="1", LANCE_URING_CURRENT_THREAD="1")
        path = "file+uring://" + path
    ds = lance.dataset(path)

    def take(ids):
        [batch] = ds.take(np.sort(ids) if sort else ids).to_batches()
        return pa.RecordBatch.from_struct_array(batch.column(0)) if form_of == "lance_packed" else batch

    ids = id_batches(ds.count_rows(), once, rows)
    for taken in parallel_map(take, ids) if ahead else map(take, ids):
        for start in range(0, len(taken), BATCH):
            yield columns(taken.slice(start, BATCH))


# A batch is a set of rows, so its numbers may be sorted. Those of larger takes may not, because batches of them would have neighbours.
# Takes of images are 26 MB with 256 rows. Lance cannot read version 2.0 of its format with io_uring.
AHEAD, NUMBERS = f"{CORES} threads ahead", ["tabular", "wide", "tokens", "embedding"]
lance("take")
lance(f"take, sorted, {AHEAD}", sort=True, ahead=True)
lance(f"take, sorted, io_uring, {AHEAD}", NUMBERS, sort=True, ahead=True, uring=True)
lance(f"takes of 4,096 rows, io_uring, {AHEAD}", NUMBERS, rows=4096, ahead=True, uring=True)
lance(f"takes of 16,384 rows, io_uring, {AHEAD}", ["tabular", "wide"], rows=16384, ahead=True, uring=True)
lance(f"packed, take, sorted, io_uring, {AHEAD}", FORMATS["lance_packed"], "lance_packed", sort=True, ahead=True, uring=True)
lance(f"packed, takes of 16,384 rows, io_uring, {AHEAD}", FORMATS["lance_packed"], "lance_packed", rows=16384, ahead=True, uring=True)


# ---- DALI


def dali_index(corpus):
    """Writes the files of tfrecord2idx: start and length of each record including header and footer."""
    out = [os.path.join(DATA, corpus, os.path.basename(path) + ".idx") for path in files(corpus)]
    if not os.path.exists(out[-1]):
        source = Maps(corpus)
        for shard, path in enumerate(out):
            of = source.shard == shard
            np.savetxt(path, np.stack([source.start[of] - 12, source.end[of] - source.start[of] + 16], 1), fmt="%d")
    return out


@peer(["shuffled", "first_batch"], "DALI on CPU, initial_fill=10,000", "mapped", imports=["nvidia.dali.tfrecord"], whole=False)
@peer("shuffled", "DALI on CPU, initial_fill=10,000", "mapped, strings padded", imports=["nvidia.dali.tfrecord"], whole=False,
      pad=True)
@peer("shuffled", "DALI on CPU, initial_fill=10,000", "read ahead, strings padded", imports=["nvidia.dali.tfrecord"], whole=False,
      read_ahead=True, queue=8, pad=True)
@peer("shuffled", "DALI on CPU, initial_fill=10,000", "no map", imports=["nvidia.dali.tfrecord"], whole=False,
      dont_use_mmap=True, queue=4)
def _(corpus, once=False, queue=2, pad=False, **reading):
    import nvidia.dali.tfrecord as tfrec
    from nvidia.dali import fn, pipeline_def

    dtype = {"int": (tfrec.int64, 0), "float": (tfrec.float32, 0.0), "bytes": (tfrec.string, "")}
    features = {key: tfrec.FixedLenFeature([] if n == 1 else [n], *dtype[kind]) for key, (kind, n) in SCHEMA[corpus].items()}
    records = meta(corpus)["records"]
    strings = {key for key, (kind, _) in SCHEMA[corpus].items() if kind == "bytes"}
    padded = strings - {"image/encoded"} if pad else set()

    @pipeline_def(batch_size=BATCH, num_threads=CORES, device_id=None, prefetch_queue_depth=queue, exec_dynamic=True, seed=1)
    def pipeline():
        columns = fn.readers.tfrecord(path=files(corpus), index_path=dali_index(corpus), features=features, random_shuffle=True,
                                      initial_fill=min(10_000, records), prefetch_queue_depth=queue, **reading)
        return tuple(fn.pad(columns[key]) if key in padded else columns[key] for key in features)

    made = pipeline()
    made.build()
    for _ in range(records // BATCH) if once else itertools.count():
        # Strings of different lengths do not fit into one array, so each has its own.
        yield {key: [out.at(i) for i in range(BATCH)] if key in strings - padded else out.as_array()
               for key, out in zip(SCHEMA[corpus], made.run())}


# ---- the machine


@peer("limit", "limit", f"all bytes read in random order by {CORES} threads")
def _(corpus):
    """Not called: limit.py runs a program."""


# ---- the disk


@peer("disk", "cp", "of the files, warm page cache")
@peer("disk", "fio", "random reads of 8 KB, depth 64, not cached")
def _(corpus):
    """Not called: disk.py runs a program."""
