"""Compares tf.io.parse_example with tfseek: same payloads, batches of 256, one pinned core each, runs in turn.

    python parse_example.py PROGRAM [--shapes ..] [--orders ..] [--runs 7] [--seconds 0.4] [--core N]

PROGRAM is `parse` of this package in a release build; it generates the data. Both sides start from serialized records in memory
(TensorFlow: string tensors made before; tfseek: records of a file in memory) and end with columns. `parse` measures only this. In
`parse + sum` every column of every batch is also read: integers and the bits of floats are summed; strings are summed by length,
and read by a hash (TensorFlow) or a sum (tfseek). Before the timing, all values of both sides, including the bytes of strings, are
summed exactly and must agree.

TensorFlow has one thread and runs in three ways: eager, as a tf.function, and as a tf.data pipeline whose map parses. The ratios use
the way with the best run. Prints a table of nanoseconds per example, best and median of the runs.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

SHAPES = ["tutorial", "wide", "tokens", "embedding", "image"]
BATCH = 256


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--shapes", default=",".join(SHAPES))
    p.add_argument("--orders", default="same,own")
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.4)
    p.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    p.add_argument("--no-tensorflow", action="store_true", help="measure tfseek only")
    return p.parse_args()


def payloads(path):
    """Returns the payloads of a TFRecord file without verifying checksums, because reading the file is not measured."""
    data = open(path, "rb").read()
    at, out = 0, []
    while at < len(data):
        size = int.from_bytes(data[at:at + 8], "little")
        out.append(data[at + 12:at + 12 + size])
        at += 16 + size
    return out


def timed(seconds, one_pass):
    """Returns the seconds of a pass: the mean of the passes within the given time, after a warm-up pass."""
    one_pass()
    start, passes = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        one_pass()
        passes += 1
    return (time.perf_counter() - start) / passes


def drain(batches):
    """Iterates over the batches without keeping them, so that at most two are alive."""
    for _ in batches:
        pass


class TensorFlow:
    """TensorFlow's ways to parse the records of one file."""

    def __init__(self, tf, records, spec, seconds):
        dtypes = {"int64": tf.int64, "float32": tf.float32, "string": tf.string}
        self.tf, self.n, self.seconds = tf, len(records), seconds
        self.spec = {key: tf.io.FixedLenFeature(f["shape"], dtypes[f["dtype"]])
                     for key, f in spec["features"].items()}
        rows = [records[i:i + BATCH] for i in range(0, self.n, BATCH)]
        self.batches = [tf.constant(r) for r in rows]
        shape = tf.TensorSpec([None], tf.string)
        parse = lambda b: tf.io.parse_example(b, self.spec)
        self.parse = {"eager": parse, "function": tf.function(parse, input_signature=[shape])}
        self.sums = tf.function(self.sums_of)
        self.parse_sum = {
            "eager": lambda b: self.sums(parse(b)),
            "function": tf.function(lambda b: self.sums_of(parse(b)), input_signature=[shape]),
        }
        stacked = tf.data.Dataset.from_tensor_slices(tf.stack(self.batches))
        self.datasets = {"parse": stacked.map(parse), "parse_sum": stacked.map(lambda b: self.sums_of(parse(b)))}

    def sums_of(self, columns):
        """Returns the sum of all columns, with one or two operations per column."""
        tf, sums = self.tf, []
        for c in columns.values():
            if c.dtype == tf.int64:
                sums.append(tf.reduce_sum(c))
            elif c.dtype == tf.float32:
                sums.append(tf.reduce_sum(tf.cast(tf.bitcast(c, tf.uint32), tf.int64)))
            else:
                sums.append(tf.reduce_sum(tf.cast(tf.strings.length(c), tf.int64)))
                sums.append(tf.reduce_sum(tf.strings.to_hash_bucket_fast(c, 1 << 60)))
        return tf.add_n(sums)

    def exact(self, np):
        """Returns the exact sums of all values of all columns, as the program computes them."""
        out, mask = {"ints": 0, "floats": 0, "lens": 0, "bytes": 0}, (1 << 64) - 1
        for b in self.batches:
            for c in self.parse["function"](b).values():
                a = c.numpy()
                if a.dtype == np.int64:
                    out["ints"] += int(a.view(np.uint64).sum(dtype=np.uint64))
                elif a.dtype == np.float32:
                    out["floats"] += int(a.view(np.uint32).sum(dtype=np.uint64))
                else:
                    data = np.frombuffer(b"".join(a.ravel().tolist()), np.uint8)
                    out["lens"] += data.size
                    out["bytes"] += int(data.sum(dtype=np.uint64))
        return {k: v & mask for k, v in out.items()}

    def run(self):
        """Returns {(way, what): seconds per example}."""
        out = {}
        for what, ways in (("parse", self.parse), ("parse_sum", self.parse_sum)):
            for way, f in ways.items():
                out[way, what] = timed(self.seconds, lambda: drain(map(f, self.batches))) / self.n
            out["dataset", what] = timed(self.seconds, lambda: drain(self.datasets[what])) / self.n
        return out


def main():
    args = arguments()
    os.sched_setaffinity(0, {args.core})  # before TensorFlow starts threads; PROGRAM inherits it
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    tf = np = None
    if not args.no_tensorflow:
        import numpy as np
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        print(f"TensorFlow {tf.__version__}, batches of {BATCH}, {args.runs} runs of {args.seconds} s per cell, "
              "record headers verified\n")
    print("ns per example: best (median) | parse | ratio | parse + sum | ratio")
    print("--- | --- | --- | --- | ---")
    with tempfile.TemporaryDirectory() as data:
        subprocess.run([args.program, "make", data], check=True)
        for shape in args.shapes.split(","):
            for order in args.orders.split(","):
                measure(tf, np, args, data, shape, order)


def measure(tf, np, args, data, shape, order):
    def ours(layout):
        out = subprocess.run([args.program, "run", data, shape, order, layout, str(args.seconds)],
                             check=True, stdout=subprocess.PIPE).stdout
        return json.loads(out)

    layouts = ["spans", "contiguous"] + (["copy"] if shape in ("embedding", "image") else [])
    theirs = None
    if tf:
        with open(os.path.join(data, f"{shape}.json")) as f:
            spec = json.load(f)
        theirs = TensorFlow(tf, payloads(os.path.join(data, f"{shape}-{order}.tfrecord")), spec, args.seconds)
        exact = theirs.exact(np)
        for layout in layouts[:2]:
            found = ours(layout)["sum"]
            assert found == exact, f"{shape} {order} {layout}: {found}, expected TensorFlow's {exact}"
    times = {}
    for _ in range(args.runs):
        for key, t in theirs.run().items() if theirs else ():
            times.setdefault(key, []).append(t)
        for layout in layouts:
            for what, t in ours(layout).items():
                if what != "sum":
                    times.setdefault((layout, what), []).append(t)

    # The best way of TensorFlow for each of the two measurements.
    base = {}
    for what in ("parse", "parse_sum"):
        ways = [k for k in times if k[1] == what and k[0] in ("eager", "function", "dataset")]
        if ways:
            base[what] = times[min(ways, key=lambda k: min(times[k]))]

    def cells(name):
        out = []
        for what in ("parse", "parse_sum"):
            t = times.get((name, what))
            if not t:
                out += ["-", "-"]
                continue
            b, m = min(t), statistics.median(t)
            out.append(f"{b * 1e9:,.0f} ({m * 1e9:,.0f})")
            ref = base.get(what)
            out.append(f"{min(ref) / b:.1f} ({statistics.median(ref) / m:.1f})" if ref else "-")
        return out
    for name in dict.fromkeys(k[0] for k in times):
        label = f"tfseek, {name}" if name in layouts[:2] else "plain copy" if name == "copy" else f"TensorFlow, {name}"
        print(f"{shape}/{order}: {label} | " + " | ".join(cells(name)), flush=True)


if __name__ == "__main__":
    main()
