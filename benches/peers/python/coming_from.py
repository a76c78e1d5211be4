"""Compares the loops of docs/coming-from.md: those of other readers, and those of tfseek over the same data, in one process and in turn.

    TFSEEK_PEERS_SCALE=0.5 python corpora.py --corpora tabular,tokens,embedding --formats tfrecord,array_record
    TFSEEK_PEERS_SCALE=0.2 python corpora.py --corpora image --formats tfrecord,array_record
    python coming_from.py SECTION [--rounds 7]

Answers are compared first: a hash of all values of each row, in any order. Then each round times both loops, and reads all values. Prints the medians and
their ratio. Sections need the packages that they import. tfds.py and rlds.py in benches/ have the loops of TensorFlow Datasets and of RLDS.
"""
from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

import epochs  # noqa: F401
from corpora import DATA, SCHEMA, files
from process import warm
from registry import BATCH, PEERS
from schemas import spec
from sums import Sums, row_hashes


def timed(loop) -> float:
    """Returns the seconds of an epoch in which all values are read."""
    start, sums = time.perf_counter(), None
    for batch in loop():
        sums = sums or Sums(batch)
        sums(batch)
    return time.perf_counter() - start


def compare(name: str, theirs, ours, rounds: int, unit: str = "records") -> None:
    """Compares the rows of both loops, then times them in turn. A loop returns an iterator of batches."""
    found = [np.sort(np.concatenate([row_hashes(batch) for batch in loop()])) for loop in (theirs, ours)]
    assert np.array_equal(*found), f"{name}: {len(found[0])} and {len(found[1])} rows, which differ"
    times = np.array([[timed(theirs), timed(ours)] for _ in range(rounds)])
    show(name, len(found[0]), times, unit)


def show(name: str, count: int, times: np.ndarray, unit: str = "records") -> None:
    """Prints the medians of both columns of seconds, and the ratio of each round."""
    theirs, ours = np.median(times, 0)
    ratios = " ".join(f"{ratio:.1f}" for ratio in sorted(times[:, 0] / times[:, 1]))
    print(f"{name}: {count / theirs:,.0f} and {count / ours:,.0f} {unit}/s, ratio {theirs / ours:.2f} (rounds: {ratios})", flush=True)


def loader(corpus: str, **options):
    return lambda: epochs.tfseek_loader(corpus, once=True, **options)


def numpy(batch: dict) -> dict:
    """Returns the columns of a batch of tensors as arrays."""
    return {key: column.numpy() if hasattr(column, "numpy") else column for key, column in batch.items()}


def tf_data(rounds: int) -> None:
    """A shuffle buffer of 10,000 records over interleaved files, and a Loader."""
    for corpus in ("tabular", "image"):
        theirs = PEERS["shuffled", "tf.data, shuffle(10,000), interleaved"]
        compare(f"tf.data, {corpus}", lambda: theirs.make(corpus, once=True), loader(corpus), rounds)


def tfrecord(rounds: int) -> None:
    """MultiTFRecordDataset of the package tfrecord and tfseek.torch.IterableDataset, in a DataLoader."""
    from tfrecord.torch.dataset import MultiTFRecordDataset
    from torch.utils.data import DataLoader

    import tfseek
    import tfseek.torch

    def theirs():
        pattern = os.path.join(DATA, corpus, "tfrecord", "{}")
        names = [os.path.basename(path) for path in files(corpus)]
        description = {key: kind.replace("bytes", "byte") for key, (kind, _) in SCHEMA[corpus].items()}
        made = MultiTFRecordDataset(pattern, None, dict.fromkeys(names, 1 / len(names)), description, shuffle_queue_size=1024, infinite=False)
        return map(numpy, DataLoader(made, batch_size=BATCH))

    def ours():
        made = tfseek.torch.IterableDataset(tfseek.open(files(corpus)), spec(corpus), batch_size=BATCH, shuffle=True, seed=1)
        return map(numpy, DataLoader(made, batch_size=None))

    for corpus in ("tokens", "embedding"):
        compare(f"tfrecord, {corpus}", theirs, ours, rounds)


def web_dataset(rounds: int) -> None:
    """Tars of WebDataset with a shuffle buffer, and the same pictures in TFRecord files."""
    import webdataset as wds

    shards = os.path.join(DATA, "image", "webdataset")
    if not os.path.exists(shards):
        os.makedirs(shards)
        with wds.ShardWriter(os.path.join(shards, "train-%06d.tar"), maxcount=500, verbose=0) as sink:
            for i, (image, label) in enumerate(pictures()):
                sink.write({"__key__": f"{i:06d}", "jpg": image, "cls": label})
    urls = sorted(os.path.join(shards, name) for name in os.listdir(shards))
    warm(urls)

    def theirs():
        samples = wds.WebDataset(urls, shardshuffle=len(urls), seed=1, empty_check=False).shuffle(1000).to_tuple("jpg", "cls")
        for images, labels in samples.batched(BATCH):
            yield {"image/encoded": images, "image/label": np.array(list(map(int, labels)))}

    compare("WebDataset, image", theirs, two_columns(), rounds)
    compare("WebDataset, image as views", theirs, two_columns(bytes_as="views"), rounds)


def mds(rounds: int) -> None:
    """A StreamingDataset of local MDS shards in a DataLoader, and the same pictures in TFRecord files."""
    from streaming import MDSWriter, StreamingDataset
    from torch.utils.data import DataLoader

    shards = os.path.join(DATA, "image", "mds")
    if not os.path.exists(shards):
        with MDSWriter(out=shards, columns={"image": "bytes", "label": "int"}) as writer:
            for image, label in pictures():
                writer.write({"image": image, "label": label})
    made = StreamingDataset(local=shards, shuffle=True, batch_size=BATCH)

    def theirs():
        for rows in DataLoader(made, batch_size=BATCH, collate_fn=list):
            yield {"image/encoded": [row["image"] for row in rows], "image/label": np.array([row["label"] for row in rows])}

    compare("MDS, image", theirs, two_columns(), rounds)


def pictures():
    """Yields the bytes and the label of each picture."""
    import tfseek

    for record in tfseek.open(files("image")):
        yield record["image/encoded"][0], int(record["image/label"][0])


def two_columns(**options):
    """A loop over the bytes and the labels of pictures."""
    import tfseek

    features = {key: spec("image")[key] for key in ("image/encoded", "image/label")}
    return lambda: iter(tfseek.Loader(tfseek.open(files("image")), features, batch_size=BATCH, shuffle=True, seed=1, **options))


def array_record(rounds: int) -> None:
    """Grain over array_record, and tfseek.grain.IterDataset."""
    import tfseek
    import tfseek.grain

    theirs = PEERS["shuffled", "grain + array_record, upb, 0 workers"]
    for corpus in ("tokens", "image"):
        ds = tfseek.open(files(corpus))

        def ours():
            return iter(tfseek.grain.IterDataset(ds, spec(corpus), batch_size=BATCH, shuffle=True, seed=1))

        compare(f"Grain and array_record, {corpus}", lambda: theirs.make(corpus, once=True), ours, rounds)


def maxtext(rounds: int) -> None:
    """MaxText's pipeline of Grain up to the batches: files in turn through a window of records, beside a global shuffle of the same files."""
    import grain

    import tfseek
    import tfseek.grain
    from proto import row_parser, stack

    corpus, parse = "tokens", row_parser("tokens")

    def theirs():
        data = grain.MapDataset.source(files(corpus)).shuffle(seed=0).map(grain.experimental.TFRecordIterDataset)
        data = grain.experimental.InterleaveIterDataset(data, cycle_length=4)
        data = grain.experimental.WindowShuffleIterDataset(data, window_size=1000, seed=0)
        return iter(data.map(parse).batch(BATCH, batch_fn=stack))

    def ours():
        data = grain.MapDataset.source(tfseek.grain.source(tfseek.open(files(corpus)))).shuffle(seed=0)
        data = data.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
        return iter(data.map(parse).batch(BATCH, batch_fn=stack))

    compare("MaxText, the source", theirs, ours, rounds)


def deepvariant(rounds: int) -> None:
    """DeepVariant's shuffle_tfrecords_beam.py on the DirectRunner, whose path is in SHUFFLE, and tfseek.reshard. Files of examples in gzip."""
    import subprocess

    import tfseek

    folder = os.path.join(DATA, "deepvariant")
    made, count = os.path.join(folder, "examples"), 2000
    if not os.path.exists(folder):
        os.makedirs(folder)
        rng = np.random.default_rng(1)
        with tfseek.Writer(made, shards=4, compression="gzip") as writer:
            for i in range(count):
                image = rng.integers(0, 5, (100, 56, 7), np.uint8).repeat(4, 1)[:, :221] * 50
                writer.write({"image/encoded": image.tobytes(), "image/shape": [100, 221, 7], "label": i % 3, "locus": f"chr1:{i}-{i + 1}"})

    def theirs():
        options = [f"--input_pattern_list={made}-*", f"--output_pattern_prefix={folder}/beam", "--output_dataset_name=x", "--runner=DirectRunner"]
        command = [sys.executable, os.environ["SHUFFLE"], *options, f"--output_dataset_config_pbtxt={folder}/beam.pbtxt", "--direct_num_workers=0"]
        subprocess.run(command, check=True, capture_output=True)
        return f"{folder}/beam-*"

    def ours():
        command = [sys.executable, "-m", "tfseek", "reshard", f"{made}-*", "--out", f"{folder}/ours@4.tfrecord.gz", "--shuffle", "--force"]
        subprocess.run(command, check=True, capture_output=True)
        return f"{folder}/ours-*"

    found = [sorted(map(hash, map(bytes, tfseek.stream(shuffle())))) for shuffle in (theirs, ours)]
    assert found[0] == found[1] and len(found[0]) == count
    times = np.empty((rounds, 2))
    for i in range(rounds):
        for k, shuffle in enumerate((theirs, ours)):
            start = time.perf_counter()
            shuffle()
            times[i, k] = time.perf_counter() - start
    show("DeepVariant, shuffle", count, times)


def earth_engine(rounds: int) -> None:
    """Patches of 256 x 256 with seven bands in gzip, as Earth Engine exports them: tf.data and a Loader."""
    import tensorflow as tf

    import tfseek

    bands = ["B2", "B3", "B4", "B5", "B6", "B7", "landcover"]
    folder = os.path.join(DATA, "earth_engine")
    if not os.path.exists(folder):
        os.makedirs(folder)
        rng = np.random.default_rng(1)
        with tfseek.Writer(os.path.join(folder, "patches"), shards=4, compression="gzip") as writer:
            for _ in range(240):
                writer.write({band: (rng.integers(0, 3000, 256 * 256) / 10_000).astype(np.float32) for band in bands})
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".gz"))

    def theirs():
        features = {band: tf.io.FixedLenFeature([256, 256], tf.float32) for band in bands}
        data = tf.data.TFRecordDataset(paths, compression_type="GZIP").map(lambda x: tf.io.parse_single_example(x, features), num_parallel_calls=5)
        return map(numpy, data.shuffle(64).batch(16))

    def ours(paths, **options):
        features = {band: tfseek.FixedLenFeature([256, 256], "float32") for band in bands}
        return iter(tfseek.Loader(tfseek.open(paths), features, batch_size=16, seed=1, **options))

    compare("Earth Engine, gzip", theirs, lambda: ours(paths, shuffle="block", block_bytes=8 << 20), rounds)
    plain = os.path.join(folder, "plain")
    if not os.path.exists(plain):
        tfseek.unpack(paths, plain)
    compare("Earth Engine, unpacked", theirs, lambda: ours(plain, shuffle=True), rounds)


def waymo(rounds: int) -> None:
    """Frames of Waymo in order, and by number: copies of the frame in the file WAYMO, such as pvps_data_one_frame.tfrecord of Waymo's repository."""
    import tensorflow as tf
    from waymo_open_dataset import dataset_pb2

    import tfseek

    path, count = os.path.join(DATA, "waymo.tfrecord"), 100
    if not os.path.exists(path):
        frame = dataset_pb2.Frame.FromString(bytes(tfseek.open(os.environ["WAYMO"], kind="bytes")[0]))
        with tfseek.Writer(path) as writer:
            for i in range(count):
                frame.timestamp_micros = i
                writer.write(frame.SerializeToString())
    ds = tfseek.open(path, kind="bytes")

    def columns(frames):
        for frame in frames:
            yield {"time": np.array([frame.timestamp_micros]), "image": [image.image for image in frame.images][:1]}

    def parsed(data):
        frame = dataset_pb2.Frame()
        frame.ParseFromString(bytearray(data.numpy()))
        return frame

    def theirs(numbers=None):
        frames = tf.data.TFRecordDataset(path, compression_type="")
        if numbers is None:
            return columns(map(parsed, frames))
        return columns(parsed(next(iter(frames.skip(number).take(1)))) for number in numbers)

    def ours(numbers=None):
        return columns(map(dataset_pb2.Frame.FromString, ds if numbers is None else (ds[number] for number in numbers)))

    some = np.random.default_rng(1).permutation(count)[:20].tolist()
    compare("Waymo, all frames", theirs, ours, rounds, "frames")
    compare("Waymo, frames by number", lambda: theirs(some), lambda: ours(some), rounds, "frames")


SECTIONS = {made.__name__: made for made in (tf_data, tfrecord, web_dataset, mds, array_record, maxtext, deepvariant, earth_engine, waymo)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    SECTIONS[args.section](args.rounds)


if __name__ == "__main__":
    main()
