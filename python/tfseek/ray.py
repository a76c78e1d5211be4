"""Ray Data: a datasource and a datasink.

``import tfseek`` does not import this module. It requires the package ``ray[data]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Optional, Union

import pyarrow as pa
import ray.data
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from . import _tasks
from ._choices import Compression
from ._plan import Reading, Source, dataset, share_bytes, share_records
from ._scan import Spec, Text
from ._tfseek import Part, shown_path

__all__ = ["TFRecordSink", "TFRecordSource", "read", "write"]

#: Column that Ray's own readers add to rows without columns, and that Ray hides.
STUB = "__bsp_stub"


def read(
    source: Source,
    spec: Optional[Spec] = None,
    columns: Optional[Sequence[str]] = None,
    where: Optional[str] = None,
    *,
    record: Optional[str] = None,
    text: Text = (),
    rename: Optional[Mapping[str, str]] = None,
    override_num_blocks: Optional[int] = None,
    **options: Any,
) -> ray.data.Dataset:
    """Returns the records as a ``ray.data.Dataset`` with a column per feature.

    The index is used, and built if it does not exist, by this call. Workers need the shards only, under the same paths. They verify
    checksums, and raise an error for a shard that was replaced since.

    source: paths as of :func:`tfseek.open`, or a :class:`tfseek.Dataset`.
    spec, columns, where, record, text, rename: as of :meth:`tfseek.Dataset.scan`. Records that do not meet the condition are read but not parsed.
        Ray's ``select_columns`` has the effect of ``columns``.
    override_num_blocks: number of read tasks; each reads a share of equal size.
    options: options of ``ray.data.read_datasource``, such as ``num_cpus`` and ``concurrency``.
    """
    found = TFRecordSource(source, spec, columns, where, record=record, text=text, rename=rename)
    return ray.data.read_datasource(found, override_num_blocks=override_num_blocks, **options)


class TFRecordSource(Datasource):
    """The datasource of :func:`read`."""

    def __init__(
        self,
        source: Source,
        spec: Optional[Spec] = None,
        columns: Optional[Sequence[str]] = None,
        where: Optional[str] = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._ds = dataset(source)
        self._reading = Reading(self._ds, spec, columns, where=where, tensors="extension", **options)
        # Ray reads this attribute before it has been set.
        self._projection_map: Optional[dict[str, str]] = None
        self._plans: dict[int, list[list[Part]]] = {}
        self._bytes = share_bytes(part for share in self._ds.shares(1) for part in share)

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "TFRecord"

    def estimate_inmemory_data_size(self) -> Optional[int]:
        """Returns the size of the shards."""
        return self._bytes

    def supports_projection_pushdown(self) -> bool:
        """Returns true: other features are not decoded."""
        return True

    def get_read_tasks(self, parallelism: int, per_task_row_limit: Optional[int] = None, data_context: Any = None) -> list[ReadTask]:
        """Returns a task per share. Ray calls this several times for one run, so a plan is kept."""
        if parallelism not in self._plans:
            self._plans[parallelism] = self._ds.shares(max(parallelism, 1))
        names = self._get_data_columns()
        schema = self._reading.schema if names is None else pa.schema([self._reading.schema.field(name) for name in names])
        tasks = []
        for share in self._plans[parallelism] or [[]]:
            # Ray takes a number as exact, and then counts without reading.
            rows = None if self._reading.where else share_records(share)
            paths = tuple(dict.fromkeys(shown_path(part.shard) for part in share))
            metadata = BlockMetadata(num_rows=rows, size_bytes=share_bytes(share), input_files=paths, exec_stats=None)
            task = partial(read_share, self._reading, share, schema)
            tasks.append(ReadTask(task, metadata, schema=schema, per_task_row_limit=per_task_row_limit))
        return tasks


def read_share(reading: Reading, share: list[Part], schema: pa.Schema) -> Iterator[pa.Table]:
    """Returns the records of a share in a worker."""
    for batch in reading.batches(share, schema.names):
        table = pa.Table.from_batches([batch])
        # Ray counts the rows of a query without columns, and forgets those of a table that has none.
        yield table if schema.names else table.append_column(STUB, pa.nulls(table.num_rows))


def write(
    ds: ray.data.Dataset,
    path: Union[str, "os.PathLike[str]"],
    *,
    shards: Optional[int] = None,
    compression: Compression = "none",
    feature_lists: Iterable[str] = (),
    rename: Optional[Mapping[str, str]] = None,
    force: bool = False,
    **options: Any,
) -> list[str]:
    """Writes a ``ray.data.Dataset`` as a set of shards ``PATH-00000-of-N.tfrecord``, with indexes, and returns their paths.

    Each write task makes a shard. The files get their names when all of them are complete. A task that ran twice counts once, and a job that
    fails leaves no visible file.

    path: folder and name of the set, such as ``"out/train"``, on storage that all workers have.
    shards: number of shards with an equal number of rows. By default each write task makes one.
    compression: ``"none"``, ``"gzip"`` or ``"zlib"``.
    feature_lists, rename: as of :func:`tfseek.write`, which describes the types of columns.
    force: replaces a set of that name. By default it is an error.
    options: options of ``ray.data.Dataset.write_datasink``, such as ``concurrency``.
    """
    sink = TFRecordSink(path, compression=compression, feature_lists=feature_lists, rename=rename, force=force)
    if shards is not None:
        ds = ds.repartition(shards)
    ds.write_datasink(sink, **options)
    return sink.paths


class TFRecordSink(Datasink[_tasks.TaskFile]):
    """The datasink of :func:`write`."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        compression: Compression = "none",
        feature_lists: Iterable[str] = (),
        rename: Optional[Mapping[str, str]] = None,
        force: bool = False,
    ) -> None:
        self._job = _tasks.begin(path, compression, force, feature_lists=list(feature_lists), rename=dict(rename or {}))
        #: paths of the shards, after writing
        self.paths: list[str] = []

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "TFRecord"

    def write(self, blocks: Iterable[Any], ctx: Any) -> _tasks.TaskFile:
        """Writes the file of a task."""
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return _tasks.write_rows(self._job, ctx.task_idx, (batch for table in tables for batch in table.to_batches()))

    def on_write_complete(self, write_result: Any) -> None:
        """Makes the set visible."""
        self.paths = _tasks.finish(self._job, write_result.write_returns)

    def on_write_failed(self, error: Exception) -> None:
        """Removes all files."""
        _tasks.cancel(self._job)
