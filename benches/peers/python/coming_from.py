"""Compares the loops of docs/coming-from.md: those of other readers, and those of tfseek over the same data, in one process and in turn.

    TFSEEK_PEERS_SCALE=0.1 python corpora.py --corpora tabular,tokens,image --formats tfrecord,array_record
    TFSEEK_PEERS_SCALE=0.1 python coming_from.py SECTION [--rounds 7]

Answers are compared first: a hash of all values of each row, in any order. Then each round times both loops, and reads all values. Prints the medians and
their ratio. Sections need the packages that they import. tfds.py and rlds.py in benches/ have the loops of TensorFlow Datasets and of RLDS.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import numpy as np

import epochs  # noqa: F401
from corpora import DATA, LABEL, SCHEMA, files, meta
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


def show(name: str, count: int, times: np.ndarray, unit: str) -> None:
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


SECTIONS = {made.__name__: made for made in (tf_data, tfrecord, web_dataset, mds, array_record)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    SECTIONS[args.section](args.rounds)


if __name__ == "__main__":
    main()
