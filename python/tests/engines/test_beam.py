"""Apache Beam: sources that are split while they are read, and sinks."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from typing import Any, Callable, Optional

import pytest
from harness import SPEC, Pair, Suite, assert_written, copy, die_once, digest_of, pairs_of, paths, urls, want

import tfseek

beam = pytest.importorskip("apache_beam")

from apache_beam.io import iobase, source_test_utils  # noqa: E402
from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # noqa: E402

import apache_beam.testing.util  # noqa: E402

import tfseek.beam  # noqa: E402
from tfseek import _plan  # noqa: E402

__all__ = ["copy", "paths", "urls", "want"]


def sources(source: Any, size: int, *positions: int) -> list[tuple[Any, Any, Any]]:
    return [(bundle.source, bundle.start_position, bundle.stop_position) for bundle in source.split(size, *positions)]


def write(path: pathlib.Path, records: int) -> str:
    with tfseek.Writer(path) as writer:
        for i in range(records):
            writer.write(b"record %d" % i)
    return str(path)


@pytest.fixture
def small(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A source of 12 records in three shards, in pieces of a few records."""
    monkeypatch.setattr(_plan, "PIECE_BYTES", 100)
    paths = [write(tmp_path / "a.tfrecord", 7), write(tmp_path / "b.tfrecord", 0), write(tmp_path / "c.tfrecord", 5)]
    return tfseek.beam.BytesSource(_plan.pieces(tfseek.open(paths, index="memory", kind="bytes")))


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes import this file and the harness."""
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)


def test_bytes_of_a_source(small: Any) -> None:
    want = [b"record %d" % i for shard in (7, 5) for i in range(shard)]
    assert source_test_utils.read_from_source(small) == want
    assert len(small._parts) > 3 and small.estimate_size() > 12 * 16
    for size in (1, 100, 1 << 30):
        found = sources(small, size)
        assert (len(found) == 1) == (size == 1 << 30)
        source_test_utils.assert_sources_equal_reference_source((small, None, None), found)
    some = sources(small, 100, 3, 9)
    assert (some[0][1], some[-1][2]) == (3, 9)
    assert sum((source_test_utils.read_from_source(*each) for each in some), []) == want[3:9]


def test_splits_while_it_is_read(small: Any) -> None:
    source_test_utils.assert_reentrant_reads_succeed((small, None, None))
    source_test_utils.assert_split_at_fraction_exhaustive(small)


def test_a_source_without_records(tmp_path: pathlib.Path) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        found = pipeline | tfseek.beam.ReadBytes(write(tmp_path / "empty.tfrecord", 0)) | beam.combiners.Count.Globally()
        beam.testing.util.assert_that(found, beam.testing.util.equal_to([0]))


class Shares(tfseek.beam.BytesSource):
    """Is split into a given number of bundles."""

    def __init__(self, parts: Any, shares: int) -> None:
        super().__init__(parts)
        self.shares = shares

    def split(self, desired_bundle_size: int, *positions: Optional[int]) -> Any:
        return super().split(-(-self.estimate_size() // self.shares), *positions)

    def _of(self, parts: Any) -> Any:
        return Shares(parts, self.shares)


def pair(payload: bytes, die: Optional[str]) -> str:
    example = tfseek.Example.from_bytes(payload)
    if (number := int(example["id"][0])) == 2500:
        die_once(die)
    return json.dumps([number, digest_of(example)])


def run(make: Callable[[], Any], die: Optional[str]) -> list[Pair]:
    """Runs a pipeline of lines of JSON. The local runner gives up if a worker dies, so the pipeline is then run again, as others do."""
    # Workers are threads of this process, or processes if one of them dies.
    mode = "multi_processing" if die else "in_memory"
    options = beam.options.pipeline_options.PipelineOptions(direct_running_mode=mode, direct_num_workers=2 if die else 1)
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(2):
            try:
                with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
                    pipeline | make() | beam.io.WriteToText(os.path.join(folder, "out"))  # noqa: B018
            except RuntimeError as error:
                if attempt or not die or "Channel closed" not in str(error):
                    raise
                assert not list(pathlib.Path(folder).glob("out*"))
            else:
                break
        lines = [line for path in pathlib.Path(folder).glob("out*") for line in path.read_text().splitlines()]
    return [(number, digest) for number, digest in map(json.loads, lines)]


def read_bytes(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    source = Shares(_plan.pieces(_plan.dataset(paths)), shares)
    if planned:
        planned()
    return run(lambda: beam.io.Read(source) | beam.Map(pair, die), die)


@pytest.mark.usefixtures("imported")
class TestReadBytes(Suite):
    read = staticmethod(read_bytes)


class BatchShares(tfseek.beam.BatchesSource):
    """Is split into a given number of bundles."""

    def __init__(self, parts: Any, reading: Any, shares: int) -> None:
        super().__init__(parts, reading)
        self.shares = shares

    def split(self, desired_bundle_size: int, *positions: Optional[int]) -> Any:
        return super().split(-(-self.estimate_size() // self.shares), *positions)

    def _of(self, parts: Any) -> Any:
        return BatchShares(parts, self._reading, self.shares)


def lines(batch: Any, die: Optional[str]) -> list[str]:
    found = pairs_of(batch)
    if found[0][0] > 3100:
        die_once(die)
    return [json.dumps(pair) for pair in found]


def read_batches(
    paths: list[str], shares: int, die: Optional[str] = None, planned: Optional[Callable[[], None]] = None
) -> list[Pair]:
    ds = _plan.dataset(paths)
    source = BatchShares(_plan.pieces(ds), _plan.Reading(ds, SPEC, record="n"), shares)
    if planned:
        planned()
    return run(lambda: beam.io.Read(source) | beam.FlatMap(lines, die), die)


@pytest.mark.usefixtures("imported")
class TestRead(Suite):
    read = staticmethod(read_batches)

    @pytest.fixture(autouse=True)
    def small_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_plan, "PIECE_BYTES", 20_000)


def test_batches_are_split_while_they_are_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tfseek.Writer(tmp_path / "a.tfrecord") as writer:
        for i in range(40):
            writer.write({"id": i, "text": b"x" * (i % 7)})
    monkeypatch.setattr(_plan, "PIECE_BYTES", 500)
    ds = tfseek.open(tmp_path, index="memory")
    reading = _plan.Reading(ds, None, ["id"], where="id != 7", record="n")
    source = tfseek.beam.BatchesSource(_plan.pieces(ds), reading)
    assert 3 < len(source._parts) < 10
    numbers = [n for batch in source_test_utils.read_from_source(source) for n in batch.column("n").to_pylist()]
    assert numbers == [n for n in range(40) if n != 7]
    for size in (1, 1200):
        source_test_utils.assert_sources_equal_reference_source((source, None, None), sources(source, size))
    source_test_utils.assert_reentrant_reads_succeed((source, None, None))
    source_test_utils.assert_split_at_fraction_exhaustive(source)


def refuse(example: tfseek.Example) -> tfseek.Example:
    if int(example["id"][0]) == 2500:
        raise ValueError("refused")
    return example


@pytest.mark.parametrize("shards", [None, 3])
def test_what_was_written_reads_back(paths: list[str], want: list[Pair], tmp_path: pathlib.Path, shards: Optional[int]) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        read = pipeline | beam.io.Read(Shares(_plan.pieces(_plan.dataset(paths)), 4)) | beam.Map(tfseek.Example.from_bytes)
        read | tfseek.beam.WriteExamples(tmp_path / "out" / "train", shards=shards)  # noqa: B018
    out = sorted((tmp_path / "out").glob("train*"))
    assert len(out) == shards if shards else out
    assert out[0].name == f"train-00000-of-{len(out):05}.tfrecord"
    assert_written(tmp_path / "out", want)
    with pytest.raises(tfseek.Error, match="already exists"):
        tfseek.beam.WriteExamples(tmp_path / "out" / "train")


def test_a_pipeline_that_fails_leaves_no_set(paths: list[str], tmp_path: pathlib.Path) -> None:
    with pytest.raises(Exception, match="refused"):
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            read = pipeline | tfseek.beam.ReadBytes(paths) | beam.Map(tfseek.Example.from_bytes)
            read | beam.Map(refuse) | tfseek.beam.WriteExamples(tmp_path / "train")  # noqa: B018
    with pytest.raises(tfseek.NotFoundError):
        tfseek.open(tmp_path)
    assert all(path.name.startswith(".") for path in tmp_path.iterdir())
