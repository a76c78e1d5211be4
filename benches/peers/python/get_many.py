"""`ds.get_many` in batches of random records, against slices of Python's `mmap` in the same order.

    python get_many.py [--rounds 9] [--seconds 0.3] [--sizes 84,1024,4096,100000] [--json FILE]

Record lengths vary by half of the mean. The maps know all offsets beforehand, as lists, and verify nothing. Each cell runs once per round, in
turn with the others, and the best round counts. `list` keeps the records of a batch, as `get_many` does; `loop` drops each one at
once, as `get_many(out=)` does, whose buffer is used again. All payloads are compared before the first round.
"""
from __future__ import annotations

import argparse
import json
import mmap
import os
import tempfile
import time

import numpy as np

import tfseek

#: Payload bytes of a file, and of a batch at most.
FILE, BATCH_BYTES = 256 << 20, 4 << 20


def make(folder: str, size: int) -> tuple[str, list[int], list[int]]:
    """Writes a file of random records. Returns its path, and starts and ends of the payloads."""
    rng, path, starts, ends, at = np.random.default_rng(size), os.path.join(folder, f"{size}.tfrecord"), [], [], 0
    with tfseek.Writer(path, index=True) as writer:
        for n in rng.integers(size // 2, size + size // 2, max(FILE // size, 1)).tolist():
            writer.write(rng.bytes(n))
            starts.append(at + 12)
            ends.append(at + 12 + n)
            at += n + 16
    return path, starts, ends


def cells(path, starts, ends, size):
    """Returns functions of a batch of record numbers, as an array and as a list. Each returns the number of bytes."""
    with open(path, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    header, payload = (tfseek.open(path, kind="bytes", verify=verify) for verify in ("header", "payload"))
    out = np.zeros(2 * BATCH_BYTES + 2 * size, np.uint8)

    def mmap_list(ids, numbers):
        return sum(map(len, [m[starts[i]:ends[i]] for i in numbers]))

    def mmap_loop(ids, numbers):
        total = 0
        for i in numbers:
            total += len(m[starts[i]:ends[i]])
        return total

    found = {"mmap, list": mmap_list, "mmap, loop": mmap_loop}
    for name, ds in ("header", header), ("payload", payload):
        found[f"get_many, {name}"] = lambda ids, numbers, ds=ds: sum(map(len, ds.get_many(ids)))
        found[f"get_many, out, {name}"] = lambda ids, numbers, ds=ds: int(ds.get_many(ids, out=out)[-1])

    for i in range(0, len(starts), max(len(starts) // 1000, 1)):
        (record,), offsets = payload.get_many([i]), payload.get_many([i], out=out)
        assert record == m[starts[i]:ends[i]] == out[:offsets[1]].tobytes()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="duration of a cell in each round")
    parser.add_argument("--sizes", default="84,1024,4096,100000")
    parser.add_argument("--json")
    args, results = parser.parse_args(), {}
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path, starts, ends = make(folder, size)
            found, n = cells(path, starts, ends, size), len(starts)
            batch = min(256, max(BATCH_BYTES // size, 1))
            order = np.random.default_rng(7).permutation(n)
            batches = [(order[k:k + batch], order[k:k + batch].tolist()) for k in range(0, n - batch + 1, batch)]
            rates = {name: [] for name in found}
            next_batch = dict.fromkeys(found, 0)
            expected = [sum(ends[i] - starts[i] for i in numbers) for _, numbers in batches]
            for _ in range(args.rounds):
                for name, read in found.items():
                    k, records, start = next_batch[name], 0, time.perf_counter()
                    while (now := time.perf_counter() - start) < args.seconds:
                        assert read(*batches[k]) == expected[k]
                        records, k = records + batch, (k + 1) % len(batches)
                    rates[name].append(records / now)
                    next_batch[name] = k
            best = {name: max(all_rates) for name, all_rates in rates.items()}
            results[size] = {"best": best, "median": {name: float(np.median(all_rates)) for name, all_rates in rates.items()}}
            print(f"{size} bytes, batches of {batch}: thousand records per second (ratio to the list, to the loop)")
            for name, rate in best.items():
                ratios = rate / best["mmap, list"], rate / best["mmap, loop"]
                print(f"  {name:24} {rate / 1000:9.1f}  ({ratios[0]:.2f}, {ratios[1]:.2f})")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(results, f)


if __name__ == "__main__":
    main()
