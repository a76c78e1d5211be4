"""Measures `tfseek grep` and `tfseek stats` on one thread, beside jq, GNU grep, protobuf in Python and NumPy.

    python benches/ask.py FOLDER target/release/tfseek [--records 1000000] [--rounds 3]

It needs the Python packages tfseek, numpy and protobuf, and the commands jq and grep. FOLDER gets the dataset, in the form of TensorFlow's TFRecord
tutorial, and the same records as JSON lines. Each round runs all ways in turn with a warm page cache; the report has the medians. Answers are compared
before times. The time to make JSON lines is not counted for jq, nor the time to start Python for the Python ways.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import statistics
import struct
import subprocess
import time
from typing import Any, Callable, Iterator

import numpy as np

QUERY = "select(.features.feature1[0] == 4)"


def make(path: pathlib.Path, records: int) -> None:
    import tfseek

    rng = np.random.default_rng(7)
    flags, kinds, scores = rng.random(records) < 0.5, rng.integers(0, 5, records), rng.standard_normal(records).astype(np.float32)
    words = [b"cat", b"dog", b"chicken", b"horse", b"goat"]
    with tfseek.Writer(path) as writer:
        for flag, kind, score in zip(flags.tolist(), kinds.tolist(), scores.tolist()):
            features = {"feature0": np.array([flag], np.int64), "feature1": np.array([kind], np.int64)}
            features["feature2"], features["feature3"] = [words[kind]], np.array([score], np.float32)
            writer.write(features)


def message_class() -> Any:
    """Returns a class for tf.train.Example, without TensorFlow."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="bench_example.proto", package="bench", syntax="proto3")
    lists = {"BytesList": 12, "FloatList": 2, "Int64List": 3}
    for name, kind in lists.items():
        file.message_type.add(name=name).field.add(name="value", number=1, label=3, type=kind)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, field) in enumerate(zip(lists, ["bytes_list", "float_list", "int64_list"]), 1):
        feature.field.add(name=field, number=number, label=1, type=11, type_name=f".bench.{name}", oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".bench.Feature")
    features.field.add(name="feature", number=1, label=3, type=11, type_name=".bench.Features.FeatureEntry")
    file.message_type.add(name="Example").field.add(name="features", number=1, label=1, type=11, type_name=".bench.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Example"))


def payloads(path: pathlib.Path) -> Iterator[bytes]:
    """Reads the payloads of a file in order, without checks."""
    with open(path, "rb", buffering=1 << 20) as file:
        while header := file.read(12):
            yield file.read(struct.unpack_from("<Q", header)[0])
            file.read(4)


def output(command: list[str]) -> str:
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def protobuf_grep(path: pathlib.Path, message: Any) -> int:
    return sum(message.FromString(p).features.feature["feature1"].int64_list.value[0] == 4 for p in payloads(path))


def protobuf_columns(path: pathlib.Path, message: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = collections.defaultdict(list)
    for payload in payloads(path):
        for name, feature in message.FromString(payload).features.feature.items():
            columns[name].extend(getattr(feature, feature.WhichOneof("kind")).value)
    return columns


def tfseek_stats(command: str, path: pathlib.Path) -> dict[str, tuple[int, float]]:
    """Returns distinct values and means, as `numpy_stats` does."""
    found = {}
    for feature in json.loads(output([command, "-q", "stats", "-j", "1", "--json", str(path)]))["features"]:
        values = feature[feature["kind"]]
        found[feature["name"]] = (values["distinct"]["count"], values.get("mean", 0.0))
    return found


def numpy_stats(columns: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """Returns distinct values and means, and computes what else `tfseek stats` prints."""
    found = {}
    for name, values in columns.items():
        values = np.asarray(values)
        distinct, counts = np.unique(values, return_counts=True)
        counts.argsort()[-20:]
        mean = 0.0
        if values.dtype.kind != "S":
            np.quantile(values, [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
            np.histogram(values, 20)
            values.std()
            mean = float(values.mean(dtype=np.float64))
        found[name] = (len(distinct), mean)
    return found


def batches(path: pathlib.Path) -> dict[str, Any]:
    """Returns the columns as tfseek parses them, the fastest way to NumPy."""
    import tfseek

    dtypes = {"feature0": "int64", "feature1": "int64", "feature2": "string", "feature3": "float32"}
    spec = {name: tfseek.FixedLenFeature([], dtype) for name, dtype in dtypes.items()}
    columns = collections.defaultdict(list)
    for batch in tfseek.Loader(tfseek.open(path), spec, batch_size=65_536):
        for name, values in batch.items():
            columns[name].append(np.asarray(values, "S7") if dtypes[name] == "string" else values)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tfseek")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    folder, tfseek_command = arguments.folder, arguments.tfseek
    folder.mkdir(parents=True, exist_ok=True)
    path, lines = folder / f"ask-{arguments.records}.tfrecord", folder / f"ask-{arguments.records}.json"
    if not path.exists():
        make(path, arguments.records)
    if not lines.exists():
        lines.write_text(output([tfseek_command, "cat", "-f", "json", str(path)]))
    message = message_class()
    ways: dict[str, dict[str, Callable[[], Any]]] = {
        "label == 4": {
            "tfseek grep": lambda: int(output([tfseek_command, "-q", "grep", "-j", "1", "-c", "feature1 == 4", str(path)])),
            "jq on JSON lines": lambda: output(["jq", "-c", QUERY, str(lines)]).count("\n"),
            "protobuf in Python": lambda: protobuf_grep(path, message),
        },
        "text": {
            "tfseek grep -F": lambda: int(output([tfseek_command, "-q", "grep", "-j", "1", "-c", "-F", "zebra", str(path)]) or 0),
            "GNU grep -a -F": lambda: int(output(["grep", "-c", "-a", "-F", "zebra", str(path)])),
        },
        "statistics": {
            "tfseek stats": lambda: tfseek_stats(tfseek_command, path),
            "NumPy, columns by protobuf": lambda: numpy_stats(protobuf_columns(path, message)),
            "NumPy, columns by tfseek": lambda: numpy_stats(batches(path)),
        },
    }
    times: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for _ in range(arguments.rounds):
        for question, peers in ways.items():
            expected = None
            for way, run in peers.items():
                start = time.monotonic()
                found = run()
                times[question, way].append(time.monotonic() - start)
                if expected is None:
                    expected = found
                elif isinstance(found, dict):
                    for name, (distinct, mean) in expected.items():
                        # Beyond 65,536 values tfseek's numbers of distinct ones are estimates.
                        assert abs(found[name][0] - distinct) <= (0 if distinct < 65_536 else 0.05 * distinct), (way, name)
                        assert abs(found[name][1] - mean) < 1e-5, (way, name)
                else:
                    assert found == expected, (way, found, expected)
    size = path.stat().st_size
    print(f"{arguments.records:,} records, {size / 1e6:.0f} MB")
    for question, peers in ways.items():
        base = statistics.median(times[question, next(iter(peers))])
        for way in peers:
            seconds = statistics.median(times[question, way])
            rate = f"{arguments.records / seconds / 1e6:6.2f} M records/s {size / seconds / 1e6:7.0f} MB/s"
            print(f"{question:12} {way:28} {seconds:7.2f} s {rate} {seconds / base:7.1f}")


if __name__ == "__main__":
    main()
