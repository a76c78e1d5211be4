"""Compares shuffled reads of single records over HTTP: the loader of tfseek; ranges of fsspec, one a record; and raw objects of litdata.

    TFSEEK_SERVE=1 TFSEEK_LATENCIES=20 cargo bench -p tfseek-remote --bench remote     # prints URL
    python remote.py URL [--rounds 3] [--batches 60]

The object has records of 100 KB. All ways read the same records in batches of 32, in turn, and their bytes are compared. fsspec reads the ranges of a
batch in one call, `cat_ranges`, which requests them at a time, or one after the other, `cat_file`, for the first two batches. It knows the ranges before.
litdata reads no records of a file, so it reads an object for each record, in an order of its own, with each number of workers. It is left out where it is not
installed. The time to the first batch counts, the listing of the objects does not. Prints the medians of MB/s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

BATCH, RECORD, FRAME = 32, 100_000, 100_016


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4], help="processes of litdata")
    arguments = parser.parse_args()
    import fsspec

    import tfseek

    url = arguments.url + "/bucket/serve.tfrecord"
    options = {"aws_endpoint": arguments.url, "aws_allow_http": "true", "aws_skip_signature": "true"}
    ds = tfseek.open("s3://bucket/serve.tfrecord", storage_options=options, kind="bytes")
    steps: list[list[int]] = []
    rates: dict[str, list[float]] = {"tfseek": [], "cat_ranges": [], "cat_file": []}
    raw = raw_objects(arguments.url)
    for _ in range(arguments.rounds):
        with tfseek.Loader(ds, batch_size=BATCH, shuffle=True, seed=1) as loader:
            start, read = time.perf_counter(), 0
            steps.clear()
            for records in loader:
                steps.append([int(i) for i in loader.ids])
                read += sum(len(record) for record in records)
                if len(steps) == arguments.batches:
                    break
            rates["tfseek"].append(read / (time.perf_counter() - start) / 1e6)
        assert read == len(steps) * BATCH * RECORD
        fs = fsspec.filesystem("http", skip_instance_cache=True)
        start, read = time.perf_counter(), 0
        for ids in steps:
            starts = [i * FRAME + 12 for i in ids]
            found = fs.cat_ranges([url] * len(ids), starts, [at + RECORD for at in starts])
            read += sum(len(record) for record in found)
        rates["cat_ranges"].append(read / (time.perf_counter() - start) / 1e6)
        assert read == len(steps) * BATCH * RECORD and found[-1] == ds[steps[-1][-1]]
        start, read = time.perf_counter(), 0
        for i in steps[0] + steps[1]:
            at = i * FRAME + 12
            read += len(fs.cat_file(url, at, at + RECORD))
        rates["cat_file"].append(read / (time.perf_counter() - start) / 1e6)
        for workers in arguments.workers if raw is not None else []:
            way = f"litdata, {workers} workers"
            rates.setdefault(way, []).append(read_raw(raw, workers, arguments.batches))
    medians = {way: statistics.median(of) for way, of in rates.items()}
    for way, median in medians.items():
        print(f"{way:18} {median:7.1f} MB/s ({min(rates[way]):.1f} to {max(rates[way]):.1f}), {medians['tfseek'] / median:.2f}")


def raw_objects(url: str) -> object | None:
    """Returns the objects with one record each, listed. ``None`` without litdata."""
    try:
        from litdata import StreamingRawDataset
        from litdata.raw.indexer import FileIndexer
        from litdata.streaming import downloader
    except ImportError as error:
        print(f"litdata is left out: {error}")
        return None
    os.environ.update(AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_REGION="us-east-1")
    # Its clients refuse a server without TLS.
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True


    class Indexer(FileIndexer):
        def _upload_to_cloud(self, *arguments: object) -> None:
            """Keeps the listing here, as without the right to write."""
            raise PermissionError

    return StreamingRawDataset("s3://bucket/raw", cache_dir=tempfile.mkdtemp(), indexer=Indexer(), cache_files=False)


def read_raw(raw: object, workers: int, batches: int) -> float:
    """Reads batches of whole objects in a random order. Returns MB/s."""
    from torch.utils.data import DataLoader

    loader = DataLoader(raw, batch_size=BATCH, shuffle=True, num_workers=workers, collate_fn=list)
    start, read = time.perf_counter(), 0
    for step, objects in enumerate(loader):
        read += sum(len(each) for each in objects)
        if step + 1 == batches:
            break
    seconds = time.perf_counter() - start
    assert read == batches * BATCH * RECORD
    return read / seconds / 1e6


if __name__ == "__main__":
    main()
