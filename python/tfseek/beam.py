"""Apache Beam: sources that can be split while they are read, and a sink.

``import tfseek`` does not import this module. It requires the package ``apache-beam``.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.io import iobase
from apache_beam.io.range_trackers import OffsetRangeTracker

from . import _tasks
from ._choices import Compression
from ._plan import Reading, Source, dataset, part_bytes, pieces, share_bytes
from ._scan import Spec, Text
from ._stream import stream
from ._tfseek import Part

__all__ = ["Read", "ReadBytes", "WriteExamples"]


class Read(beam.PTransform):
    """The records as ``pyarrow.RecordBatch``, with a column per feature.

    The index is used, and built if it does not exist, when the pipeline is made. Workers need the shards only, under the same paths.

    source: paths as of :func:`tfseek.open`, or a :class:`tfseek.Dataset`.
    spec, columns, where, record, text, rename: as of :meth:`tfseek.Dataset.scan`. Records that do not meet the condition are read but not parsed.

    A worker claims pieces of about 8 MiB, or of a 10,000th of the dataset if that is more. So an idle worker takes over pieces that another
    one has not read yet, also within one shard. A gzip or zlib shard is one piece.
    """

    def __init__(
        self,
        source: Source,
        spec: Optional[Spec] = None,
        columns: Optional[Sequence[str]] = None,
        where: Optional[str] = None,
        *,
        record: Optional[str] = None,
        text: Text = (),
        rename: Optional[Mapping[str, str]] = None,
    ) -> None:
        super().__init__()
        ds = dataset(source)
        reading = Reading(ds, spec, columns, where=where, text=text, record=record, rename=rename)
        self._source = BatchesSource(pieces(ds), reading)

    def expand(self, pbegin: Any) -> Any:
        return pbegin | beam.io.Read(self._source)


class ReadBytes(beam.PTransform):
    """The payloads of all records, as ``bytes``.

    source: as for :class:`Read`.

    A worker claims each record by its number before it yields the record, so an idle worker takes over the second half of what another one
    has not read yet, also within one shard. It finds the first record of such a range from the nearest border of the plan, which has
    a border every 8 MiB, and at most 10,000 of them.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = BytesSource(pieces(dataset(source)))

    def expand(self, pbegin: Any) -> Any:
        return pbegin | beam.io.Read(self._source)


class WriteExamples(beam.PTransform):
    """Writes a PCollection as a set of shards ``PATH-00000-of-N.tfrecord``, with indexes, and returns the paths.

    Elements are :class:`tfseek.Example`, :class:`tfseek.SequenceExample`, dicts of features, or payloads as ``bytes``. The files get their
    names when all of them are complete. A bundle that ran twice counts once, and a pipeline that fails leaves no visible file.

    path: folder and name of the set, such as ``"out/train"``, on storage that all workers have.
    shards: number of shards. By default each bundle makes one, which costs no shuffle.
    compression: ``"none"``, ``"gzip"`` or ``"zlib"``.
    force: replaces a set of that name. By default it is an error.
    """

    def __init__(
        self, path: Union[str, "os.PathLike[str]"], *, shards: Optional[int] = None, compression: Compression = "none", force: bool = False
    ) -> None:
        super().__init__()
        # Checks the arguments, and that there is no such set.
        _tasks.begin(path, compression, force)
        self._sink = ExamplesSink(os.path.abspath(os.fspath(path)), shards, compression, force)

    def expand(self, pcoll: Any) -> Any:
        return pcoll | beam.io.Write(self._sink)


class PartsSource(iobase.BoundedSource):
    """Consecutive parts of a dataset. Positions are record numbers, and each part begins at one."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = list(parts)
        self._firsts = [part.first for part in self._parts]

    def _range(self, start: Optional[int], stop: Optional[int]) -> tuple[int, int]:
        if not self._parts:
            return 0, 0
        last = self._parts[-1]
        end = last.first + (last.records or 0)
        return self._firsts[0] if start is None else start, end if stop is None else stop

    def _between(self, start: int, stop: int) -> list[Part]:
        """Returns the parts with records in a range."""
        return self._parts[max(bisect.bisect_right(self._firsts, start) - 1, 0) : bisect.bisect_left(self._firsts, stop)]

    def estimate_size(self) -> int:
        return share_bytes(self._parts)

    def get_range_tracker(self, start_position: Optional[int], stop_position: Optional[int]) -> Any:
        return OffsetRangeTracker(*self._range(start_position, stop_position))

    def split(self, desired_bundle_size: int, start_position: Optional[int] = None, stop_position: Optional[int] = None) -> Iterator[Any]:
        start, stop = self._range(start_position, stop_position)
        bundle: list[Part] = []
        parts = self._between(start, stop)
        for part in parts:
            bundle.append(part)
            if part is parts[-1] or share_bytes(bundle) + part_bytes(part) // 2 >= desired_bundle_size:
                end = stop if part is parts[-1] else part.first + (part.records or 0)
                yield iobase.SourceBundle(share_bytes(bundle), self._of(bundle), start, end)
                start, bundle = end, []

    def _of(self, parts: Sequence[Part]) -> PartsSource:
        """Returns a source of other parts with the same options."""
        return type(self)(parts)

    def read(self, range_tracker: Any) -> Iterator[Any]:
        raise NotImplementedError


class BytesSource(PartsSource):
    """The payloads of the records of parts."""

    def default_output_coder(self) -> Any:
        return BytesCoder()

    def read(self, range_tracker: Any) -> Iterator[bytes]:
        start = range_tracker.start_position()
        for part in self._between(start, range_tracker.stop_position()):
            for number, payload in enumerate(stream(part=part, kind="bytes"), part.first):
                if number >= start:
                    if not range_tracker.try_claim(number):
                        return
                    yield payload


class BatchesSource(PartsSource):
    """The record batches of parts."""

    def __init__(self, parts: Sequence[Part], reading: Reading) -> None:
        super().__init__(parts)
        self._reading = reading

    def _of(self, parts: Sequence[Part]) -> PartsSource:
        return BatchesSource(parts, self._reading)

    def read(self, range_tracker: Any) -> Iterator[Any]:
        start = range_tracker.start_position()
        # A part belongs to the range that has its first record.
        for part in self._between(start, range_tracker.stop_position()):
            if part.first >= start:
                if not range_tracker.try_claim(part.first):
                    return
                yield from self._reading.batches([part])


class ExamplesSink(iobase.Sink):
    """The sink of :class:`WriteExamples`."""

    def __init__(self, path: str, shards: Optional[int], compression: Compression, force: bool) -> None:
        self.num_shards = shards or 0
        self._arguments = path, compression, force

    def initialize_write(self) -> _tasks.Job:
        return _tasks.begin(*self._arguments)

    def open_writer(self, init_result: _tasks.Job, uid: str) -> Any:
        return BundleWriter(init_result, uid)

    def pre_finalize(self, init_result: _tasks.Job, writer_results: Any) -> list[Any]:
        # Beam makes a singleton of this list.
        return [None]

    def finalize_write(self, init_result: _tasks.Job, writer_results: Any, pre_finalize_result: Any) -> list[str]:
        return _tasks.finish(init_result, writer_results)


class BundleWriter(iobase.Writer):
    """Writes a bundle."""

    def __init__(self, of: _tasks.Job, uid: str) -> None:
        # The id of a bundle is a UUID.
        self._writer = _tasks.RecordWriter(of, uid.replace("-", ""))

    def write(self, value: _tasks.Record) -> None:
        self._writer.write(value)

    def close(self) -> _tasks.TaskFile:
        return self._writer.close()
