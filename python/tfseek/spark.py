"""Spark: a data source to read and write TFRecord files.

``import tfseek`` does not import this module. It requires the package ``pyspark[sql]``, 4.1 or later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, InputPartition, WriterCommitMessage
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from . import _tasks
from ._plan import Reading, dataset
from ._tfseek import Part, Schema

__all__ = ["Source"]

#: Size of a partition, unless the option ``shares`` is given.
PARTITION_BYTES = 64 << 20


class Source(DataSource):
    """The format ``"tfseek"``, registered by ``spark.dataSource.register(tfseek.spark.Source)``.

    Options of ``spark.read.format("tfseek")``; a path is as of :func:`tfseek.open`:

    columns: names of the columns to read, with commas. Spark does not pass on which columns a query needs.
    where: a condition on records, such as ``"label == 3"``.
    spec: a :class:`tfseek.Schema` as JSON (``schema.to_json()``); inferred if it is absent.
    text: names or patterns of columns of byte strings that are text, with commas; ``"*"``: all of them.
    record: name of a column with the number of each record.
    shares: number of partitions; by default one for 64 MiB.
    pushdown: ``"true"`` also skips records by the filters of a query on integers. It requires the setting
        ``spark.sql.python.filterPushdown.enabled``, without which Spark raises an error.

    Options of ``df.write.format("tfseek")``, whose path is the folder and name of a set, such as ``"out/train"``:

    compression: ``"none"``, ``"gzip"`` or ``"zlib"``.
    feature_lists: names of columns of lists that become feature lists, with commas.

    The mode is ``"overwrite"``, or ``"append"`` for a set that does not exist. Each task makes a shard. The files get their names when all of
    them are complete. A task that ran twice counts once, and a job that fails leaves no visible file.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "tfseek"

    def schema(self) -> StructType:
        """Returns the schema of the columns that are read."""
        return spark_schema(self._reading().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of these columns."""
        reading = self._reading()
        shares = self.options.get("shares")
        kind = PushingReader if self.options.get("pushdown", "false").lower() == "true" else Reader
        return kind(self._paths(), reading, schema, None if shares is None else int(shares))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Returns a writer of a set."""
        (path,) = self._paths()
        compression, lists = self.options.get("compression", "none"), _names(self.options.get("feature_lists"))
        return ArrowWriter(_tasks.begin(path, compression, overwrite, feature_lists=lists))

    def _paths(self) -> list[str]:
        # Several paths are JSON.
        if "paths" in self.options:
            return list(json.loads(self.options["paths"]))
        if "path" not in self.options:
            raise ValueError("path: expected a path in load() or save(), found none")
        return [self.options["path"]]

    def _reading(self) -> Reading:
        spec = self.options.get("spec")
        return Reading(
            dataset(self._paths()),
            None if spec is None else Schema.from_json(spec),
            _names(self.options.get("columns")) or None,
            where=self.options.get("where"),
            text=_names(self.options.get("text")),
            record=self.options.get("record"),
        )


def _names(option: Optional[str]) -> list[str]:
    return [name.strip() for name in (option or "").split(",") if name.strip()]


def spark_schema(schema: pa.Schema) -> StructType:
    """Returns the Spark schema of a scan. Lists of fixed size are arrays."""
    return from_arrow_schema(pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema]))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type), kind.value_field.nullable))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type), field.nullable) for field in kind])
    return kind


class Reader(DataSourceReader):
    """Reads the shares of a dataset."""

    def __init__(self, paths: list[str], reading: Reading, schema: StructType, shares: Optional[int]) -> None:
        self._paths = paths
        self._reading = reading
        self._schema = schema
        self._shares = shares

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the shares."""
        ds = dataset(self._paths)
        shares = ds.shares_of(PARTITION_BYTES) if self._shares is None else ds.shares(self._shares)
        return [InputPartition([part.to_json() for part in share]) for share in shares or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the records of a share. Spark requires exactly its own schema."""
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in self._reading.batches(map(Part, partition.value), self._schema.names):
            yield batch.cast(schema)


class PushingReader(Reader):
    """Skips records that a query's filters on integers exclude."""

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:
        """Uses the filters, and returns all of them: Spark evaluates them again."""
        conditions = [found for found in (_condition(each, self._reading) for each in filters) if found]
        self._reading = self._reading.where_also(conditions)
        return filters


_COMPARISONS = {
    datasource.EqualTo: "==",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
}


def _condition(of: datasource.Filter, reading: Reading) -> Optional[str]:
    """Returns a condition that every record meets which meets a filter, or ``None``."""
    path: tuple[str, ...] = getattr(of, "attribute", ())
    if len(path) != 1 or path[0] not in reading.integers():
        return None
    name = reading.quoted(path[0])
    if isinstance(of, datasource.IsNotNull):
        return f"present({name})"
    if isinstance(of, datasource.In) and all(type(value) is int for value in of.value):
        return f"{name} in {', '.join(map(str, of.value))}"
    operator = _COMPARISONS.get(type(of))
    return f"{name} {operator} {of.value}" if operator and type(of.value) is int else None


@dataclass
class Message(WriterCommitMessage):
    """The file of a task."""

    file: _tasks.TaskFile


class ArrowWriter(DataSourceArrowWriter):
    """Writes a set of shards, one per task."""

    def __init__(self, job: _tasks.Job) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Writes the file of a task."""
        context = TaskContext.get()
        assert context is not None
        return Message(_tasks.write_rows(self._job, context.partitionId(), iterator))

    def commit(self, messages: list[Optional[WriterCommitMessage]]) -> None:
        """Makes the set visible."""
        _tasks.finish(self._job, [message.file for message in messages if isinstance(message, Message)])

    def abort(self, messages: list[Optional[WriterCommitMessage]]) -> None:
        """Removes all files."""
        _tasks.cancel(self._job)
