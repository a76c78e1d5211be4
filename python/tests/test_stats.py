"""``tfseek.stats``, compared with NumPy on the tests' records and on real files."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import math
import os
import pathlib
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from conftest import RECORDS, features, flip, write_records

import tfseek

QUANTILES = {"p1": 0.01, "p5": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def same_sizes(found: Any, values: list[int]) -> None:
    """Compares a distribution of sizes with its values."""
    if not values:
        assert found is None
        return
    assert (found.min, found.max) == (min(values), max(values))
    assert math.isclose(found.mean, np.mean(values), rel_tol=1e-12)
    same_quantiles(found.quantiles, np.array(values, dtype=np.float64))


def same_quantiles(found: Any, values: Any, exact: float = 256) -> None:
    """Compares quantiles. Whole numbers from 0 to ``exact`` have no error, and no numbers if it is infinite."""
    for name, part in QUANTILES.items():
        expected = float(np.quantile(values, part, method="inverted_cdf"))
        error = 0.0 if 0 <= expected < exact or exact == math.inf else abs(expected) / 256 + 2.0**-133
        assert abs(float(found[name]) - expected) <= error * (1 + 1e-6) + abs(expected) * 1e-7, (name, found[name], expected)


def same_counts(found: Any, values: list[Any]) -> None:
    """Compares distinct and frequent values. Byte strings of more than 256 bytes have no value."""
    counts = Counter(values)
    assert found.distinct.exact and found.distinct["count"] == len(counts)
    assert found.top_error == 0
    assert [entry["count"] for entry in found.top] == sorted(counts.values(), reverse=True)[:20]
    for entry in found.top:
        value = entry.get("value")
        if value is not None:
            value = value.encode() if isinstance(value, str) else value
            value = float(np.float32(value)) if isinstance(value, float) else value
            assert counts[value] == entry["count"]


def same_feature(found: Any, columns: list[Any]) -> None:
    """Compares a feature with its lists: arrays or lists of bytes, ``None`` without a kind."""
    lists = [column for column in columns if column is not None]
    assert found.kindless == len(columns) - len(lists)
    assert found.empty == sum(len(column) == 0 for column in lists)
    assert found.present == sum(len(column) > 0 for column in lists)
    same_sizes(found.lengths, [len(column) for column in lists])
    ints = [c for c in lists if isinstance(c, np.ndarray) and c.dtype == np.int64]
    floats = [c for c in lists if isinstance(c, np.ndarray) and c.dtype == np.float32]
    texts = [c for c in lists if not (isinstance(c, np.ndarray) and c.dtype in (np.int64, np.float32))]
    assert dict(found.kinds) == {"int64": len(ints), "float": len(floats), "bytes": len(texts)}
    if sum(map(len, ints)):
        values = np.concatenate(ints)
        stats = found.int64
        assert (stats["values"], stats.zeros) == (len(values), int((values == 0).sum()))
        assert (stats.min, stats.max) == (int(values.min()), int(values.max()))
        same_moments(stats, values.astype(np.float64))
        same_quantiles(stats.quantiles, values, math.inf if stats.distinct.exact else 65536)
        same_counts(stats, values.tolist())
        same_histogram(stats.histogram, values)
        same_bars(stats.bars, values)
    if sum(map(len, floats)):
        every = np.concatenate(floats)
        values = every[np.isfinite(every)]
        stats = found["float"]
        assert stats["values"] == len(every) and stats.zeros == (values == 0).sum()
        assert (stats.nan, stats.positive_infinity, stats.negative_infinity) == (
            np.isnan(every).sum(),
            np.isposinf(every).sum(),
            np.isneginf(every).sum(),
        )
        if len(values):
            assert (np.float32(stats.min), np.float32(stats.max)) == (values.min(), values.max())
            same_moments(stats, values.astype(np.float64))
            same_quantiles(stats.quantiles, values, math.inf if stats.distinct.exact else 0)
            same_counts(stats, [float(v) + 0.0 for v in values])
            assert sum(bucket["count"] for bucket in stats.histogram) == len(values)
    if sum(map(len, texts)):
        strings = [bytes(value) for column in texts for value in column]
        stats = found.bytes
        assert stats["values"] == len(strings)
        same_sizes(stats.lengths, list(map(len, strings)))
        assert stats.not_utf8 == sum(not is_utf8(value) for value in strings)
        same_counts(stats, strings)


def is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def same_moments(found: Any, values: Any) -> None:
    assert math.isclose(found.mean, values.mean(), rel_tol=1e-9, abs_tol=1e-9 * float(np.abs(values).max()) + 1e-30)
    assert math.isclose(found.std, values.std(), rel_tol=1e-6, abs_tol=1e-6 * float(np.abs(values).max()) + 1e-30)


def same_histogram(found: Any, values: Any) -> None:
    assert sum(bucket["count"] for bucket in found) == len(values)
    if values.min() < values.max() and values.min() >= 0 and values.max() < 65536:
        width = (int(values.max()) - int(values.min())) / 20
        places = np.minimum((values - values.min()) / width, 19).astype(int)
        # A value on a border may be in either bucket.
        inside = [abs((v - values.min()) / width % 1) > 1e-9 for v in values]
        if all(inside):
            assert [bucket["count"] for bucket in found] == np.bincount(places, minlength=20).tolist()


def same_bars(found: Any, values: Any) -> None:
    """Compares the bars of integers, which have whole borders on both sides and no gaps."""
    buckets = found.buckets
    assert found.scale in ("linear", "log") and 1 <= len(buckets) <= 20
    assert (buckets[0]["low"], buckets[-1]["high"]) == (int(values.min()), int(values.max()))
    assert all(a["high"] + 1 == b["low"] for a, b in zip(buckets, buckets[1:]))
    assert sum(b["count"] for b in buckets) == len(values)
    if values.min() >= 0 and values.max() < 65536:
        for bucket in buckets:
            assert bucket["count"] == int(((values >= bucket["low"]) & (values <= bucket["high"])).sum())


def test_integers_are_exact(tmp_path: pathlib.Path) -> None:
    values = [2**53 + 1, 2**53 + 3, -(2**62) - 1, 2**63 - 1, 2**53 + 1]
    path = tmp_path / "wide.tfrecord"
    write_records(path, ({"wide": value} for value in values))
    found = tfseek.stats(path).feature("wide").int64
    expected = sorted(values)
    parts = [found.quantiles[name] for name in ("p1", "p10", "p25", "p50", "p75", "p90", "p99")]
    assert parts == [expected[k] for k in (0, 0, 1, 2, 3, 4, 4)]
    assert (found.bars.buckets[0]["low"], found.bars.buckets[-1]["high"]) == (-(2**62) - 1, 2**63 - 1)
    html = tfseek.stats(path)._repr_html_()
    assert "9,007,199,254,740,993" in html and html.count("<rect") >= 2 and "<script" not in html


def compare(paths: Any) -> int:
    """Compares the statistics of Examples with those of the records. Returns the number of features."""
    records = list(tfseek.stream(paths, kind="example"))
    found = tfseek.stats(paths, kind="example")
    assert found.records == found.kinds.example == len(records)
    payloads = [record.raw.tobytes() for record in records]
    same_sizes(found.sizes, list(map(len, payloads)))
    assert found.payload_bytes == sum(map(len, payloads))
    assert found.distinct_payloads["count"] == len(set(payloads))
    names = sorted({name for record in records for name in record}, key=str.encode)
    assert [feature.name for feature in found.features] == names
    for feature in found.features:
        columns = [record[feature.name] for record in records if feature.name in record]
        assert feature.absent == len(records) - len(columns)
        same_feature(feature, columns)
    return len(names)


def test_numbers_are_those_of_numpy(shards: str) -> None:
    assert compare(shards) == 4


def test_real_files() -> None:
    folder = os.environ.get("TFSEEK_REAL_DATA")
    if not folder:
        pytest.skip("TFSEEK_REAL_DATA is not set: the folder of the real files")
    files = compared = 0
    for golden in sorted(pathlib.Path(folder, "golden").glob("*.json")):
        description = json.loads(golden.read_text())
        if description["kind"] == "Example" and description["framing"] == "ok":
            compared += compare(os.path.join(folder, description["file"]))
            files += 1
    print(f"{files} files, {compared} features")
    assert files > 20


def test_datasets_and_views(shards: str, ds: tfseek.Dataset, labels: list[int]) -> None:
    found = tfseek.stats(ds)
    assert found == tfseek.stats(shards) and found.records == RECORDS
    assert found.feature("label").int64.mean == 499.5
    assert found["features"][0]["name"] == "emb"
    with pytest.raises(KeyError):
        found.feature("none")
    with pytest.raises(AttributeError, match="no field 'none'; fields: shards, records"):
        found.none  # noqa: B018
    part = tfseek.stats(ds[10:20]).feature("label").int64
    assert (part.min, part.max) == (min(labels[10:20]), max(labels[10:20]))
    sample = tfseek.stats(ds, sample=7, seed=3)
    assert (sample.records, sample.sampled_from) == (7, RECORDS)
    assert sample == tfseek.stats(shards, sample=7, seed=3)
    assert pickle.loads(pickle.dumps(found)) == found


def test_options(shards: str, tmp_path: pathlib.Path) -> None:
    found = tfseek.stats(shards, features="n*", threads=1)
    assert [feature.name for feature in found.features] == ["name"]
    path = tmp_path / "few.tfrecord"
    write_records(path, ({"label": i % 3, "text": b"\xff" if i else "<b>&"} for i in range(12)))
    found = tfseek.stats(path, by="label")
    assert [(part.value, part.records) for part in found.slices] == [(0, 4), (1, 4), (2, 4)]
    assert found.feature("text").bytes.top[0]["value"] == b"\xff"
    assert found.feature("text").bytes.top[1]["value"] == "<b>&"
    assert repr(found).startswith("12 Examples, 2 features; every value seen")
    assert "&lt;b&gt;&amp;" in found._repr_html_() and "<b>" not in found._repr_html_()
    with pytest.raises(tfseek.Error, match='no record has the feature "none"'):
        tfseek.stats(path, by="none")
    saved = tmp_path / "s.json"
    found.save(saved)
    assert json.loads(saved.read_text())["tfseek_stats"] == 1
    again = pickle.loads(pickle.dumps(found))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()
    assert again._repr_html_() == found._repr_html_()


def plain(value: Any) -> Any:
    """Returns statistics in the form of the command's JSON."""
    if isinstance(value, tfseek.StatsFields):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def test_values_are_those_of_the_command(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mixed.tfrecord"
    with tfseek.Writer(path) as writer:
        for i in range(60):
            numbers = np.array([i / 7, 1e-30, 3e38, 1e13, -0.0, np.nan, np.inf], np.float32)
            part = np.array([(i % 3) / 10], np.float32)
            writer.write({"wide": 2**62 + i, "numbers": numbers, "part": part, "text": b"\xff" * (i % 3), "long": b"x" * (1000 + i)})
    for by in ["part", "text", "wide"]:
        command = [sys.executable, "-m", "tfseek", "stats", "-q", "--json", str(path), "--by", by]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        # Texts tell integers from floats, and the signs of zeros.
        assert repr(plain(tfseek.stats(path, by=by))) == repr(json.loads(text))


def test_saved_statistics_are_whole(shards: str, tmp_path: pathlib.Path) -> None:
    small = tmp_path / "small.tfrecord"
    write_records(small, [{"label": 1}])
    both = [tfseek.stats(small), tfseek.stats(shards)]
    texts = []
    for k, found in enumerate(both):
        found.save(tmp_path / f"{k}.json")
        texts.append((tmp_path / f"{k}.json").read_text())
    # Threads of one process that save to one path.
    path = tmp_path / "s.json"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        saves = [pool.submit(both[k % 2].save, path) for k in range(200)]
        for save in saves:
            save.result()
            assert path.read_text() in texts
    # A link under a name that could be foreseen.
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f"s.json.tmp-{os.getpid()}").symlink_to(victim)
    path.chmod(0o640)
    both[0].save(path)
    assert (victim.read_text(), path.read_text(), path.stat().st_mode & 0o777) == ("precious", texts[0], 0o640)
    # As the command does, the user's own link is followed.
    link = tmp_path / "link.json"
    link.symlink_to(path.name)
    both[1].save(link)
    assert link.is_symlink() and path.read_text() == texts[1]
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".tmp-")]
    with pytest.raises(tfseek.Error, match="expected a local path"):
        both[0].save("s3://bucket/s.json")
    with pytest.raises(tfseek.NotFoundError):
        both[0].save(tmp_path / "none" / "s.json")


def test_damage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_records(path, (features(i) for i in range(10)))
    flip(path, b"record 5")
    with pytest.raises(tfseek.DataError) as e:
        tfseek.stats(path)
    assert e.value.record == 5
    with pytest.warns(tfseek.Warning, match="1 damaged range is left out"):
        found = tfseek.stats(path, damage="skip")
    assert (found.records, found.skipped, found.damaged_ranges) == (9, 0, 1)
    with pytest.warns(tfseek.Warning, match="1 damaged range is left out"):
        assert tfseek.stats(path, damage="skip", sample=20).records == 9
    write_records(tmp_path / "b.tfrecord", [features(0), b"\x0a\x7f", features(2)])
    found = tfseek.stats(tmp_path / "b.tfrecord", damage="skip", kind="example")
    assert (found.records, found.skipped, found.damaged_ranges) == (2, 1, 0)


def test_tensorflow_metadata_reads_the_statistics(shards: str, tmp_path: pathlib.Path) -> None:
    statistics_pb2 = pytest.importorskip("tensorflow_metadata.proto.v0.statistics_pb2", reason="tensorflow-metadata is not installed")
    raw = tmp_path / "s.pb"
    subprocess.run([sys.executable, "-m", "tfseek", "stats", "-q", "--json", shards, "--tfdv", str(raw)], check=True, stdout=subprocess.DEVNULL)
    read = statistics_pb2.DatasetFeatureStatisticsList.FromString(raw.read_bytes())
    (dataset,) = read.datasets
    assert dataset.num_examples == RECORDS
    by_name = {feature.name: feature for feature in dataset.features}
    assert sorted(by_name) == ["emb", "label", "name", "tokens"]
    label = by_name["label"]
    assert (label.type, label.num_stats.mean, label.num_stats.max, label.num_stats.num_zeros) == (0, 499.5, 999, 1)
    assert label.num_stats.std_dev == pytest.approx(np.arange(RECORDS).std())
    standard, quantiles = label.num_stats.histograms
    assert (standard.type, len(standard.buckets), quantiles.type, len(quantiles.buckets)) == (0, 10, 1, 10)
    assert [bucket.sample_count for bucket in standard.buckets] == [100] * 10
    assert quantiles.buckets[9].high_value == 999 and quantiles.buckets[0].sample_count == 100
    common = by_name["tokens"].num_stats.common_stats
    assert (common.num_non_missing, common.min_num_values, common.max_num_values, common.tot_num_values) == (RECORDS, 0, 4, 2000)
    name = by_name["name"].string_stats
    assert (name.unique, len(name.top_values), len(name.rank_histogram.buckets)) == (RECORDS, 20, 1000)
    assert name.top_values[0].value.startswith("record ") and name.top_values[0].frequency == 1
