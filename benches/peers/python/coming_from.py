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


SECTIONS = {made.__name__: made for made in (tf_data, tfrecord)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=SECTIONS)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    SECTIONS[args.section](args.rounds)


if __name__ == "__main__":
    main()
