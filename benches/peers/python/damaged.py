"""Counts the records that tfseek, tf.data and tfrecord read from damaged files.

    python damaged.py [--copies 1000] [--flips 1]

A file of 200 records of 100 KB gets --flips random bit flips, --copies times. Columns: records that came out whole, records that came out
damaged, copies from which all undamaged records came out. tfseek opens with damage="skip". tf.data ignores errors, which ends the file at the first
one. tfrecord verifies no checksums. Each library runs in a process of its own. Packages that are missing are skipped.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import random
import subprocess
import sys
import tempfile

RECORDS, LENGTH = 200, 100_000
SIZE = LENGTH + 16


def with_tfseek(path: str) -> list[bytes]:
    import tfseek

    try:
        return [bytes(record) for record in tfseek.open(path, damage="skip", index="memory", kind="bytes")]
    except tfseek.Error:
        return []


def with_tensorflow(path: str) -> list[bytes]:
    import tensorflow as tf

    return list(tf.data.TFRecordDataset(path).ignore_errors().as_numpy_iterator())


def with_tfrecord(path: str) -> list[bytes]:
    from tfrecord import reader

    found = []
    try:
        for record in reader.tfrecord_iterator(path):
            found.append(bytes(record))
    except Exception:  # A wrong length ends the file with one of several errors.
        pass
    return found


PEERS = {"tfseek": ("tfseek", with_tfseek), "tf.data": ("tensorflow", with_tensorflow), "tfrecord": ("tfrecord", with_tfrecord)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--flips", type=int, default=1)
    parser.add_argument("--library", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library is None:
        print(f"{args.copies} copies of {RECORDS} records with {args.flips} flipped bits each\n")
        print("| Library | Whole records per copy | Damaged records | Copies with all undamaged records |\n| --- | --- | --- | --- |", flush=True)
        for name, (package, _) in PEERS.items():
            if importlib.util.find_spec(package):
                command = [sys.executable, __file__, "--copies", str(args.copies), "--flips", str(args.flips), "--library", name]
                subprocess.run(command, check=True)
            else:
                print(f"skipped: {package} is not installed", file=sys.stderr)
        return
    read = PEERS[args.library][1]
    import tfseek

    rng = random.Random(15)
    payloads = [rng.randbytes(LENGTH) for _ in range(RECORDS)]
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    path = f"{folder}/a.tfrecord"
    with tfseek.Writer(path) as writer:
        for payload in payloads:
            writer.write(payload)
    known = {payload: i for i, payload in enumerate(payloads)}
    whole = damaged = complete = 0
    for _ in range(args.copies):
        flips = rng.sample(range(RECORDS * SIZE * 8), args.flips)
        with open(path, "r+b") as f:
            def flip() -> None:
                for bit in flips:
                    f.seek(bit // 8)
                    byte = f.read(1)[0] ^ 1 << bit % 8
                    f.seek(bit // 8)
                    f.write(bytes([byte]))
                f.flush()

            flip()
            undamaged = set(range(RECORDS)) - {bit // 8 // SIZE for bit in flips}
            found = [known.get(record) for record in read(path)]
            # A damaged checksum spoils a payload that is whole.
            right = {i for i in found if i is not None}
            whole, damaged, complete = whole + len(right), damaged + found.count(None), complete + (right >= undamaged)
            if args.library == "tfseek":
                assert right == undamaged and len(found) == len(right), (flips, len(right))
            flip()
    os.remove(path)
    os.rmdir(folder)
    print(f"| {args.library} | {whole / args.copies:.2f} | {damaged} | {complete} |")


if __name__ == "__main__":
    main()
