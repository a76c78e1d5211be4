"""PyArrow datasets over TFRecords, into which DuckDB, DataFusion, Polars and PyArrow push columns and predicates; scalars of TensorBoard as a table.

``import tfseek`` does not import this module. It requires the package ``pyarrow``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Optional, Union

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from ._choices import Tail, Tensors, Verify
from ._errors import DataError
from ._events import scalars
from ._messages.wire import WireError
from ._open import Paths
from ._plan import Source, source_records
from ._pruning import Predicate, PrunedScan
from ._scan import Scan, Spec, Text
from ._stream import stream
from ._tfds import Dataset as NestedDataset
from ._tfseek import Dataset, ScanCore, raise_if_error, shown_path

__all__ = ["RecordDataset", "RecordFragment", "dataset", "tensorboard"]

#: The columns of :func:`tensorboard`.
_SCALARS = pa.schema({"file": pa.string(), "wall_time": pa.float64(), "step": pa.int64(), "tag": pa.string(), "value": pa.float64()})


def dataset(
    source: Union[Source, NestedDataset],
    columns: Optional[Iterable[str]] = None,
    spec: Optional[Spec] = None,
    *,
    text: Text = (),
    record: Optional[str] = None,
    rename: Optional[Mapping[str, str]] = None,
    tensors: Tensors = "lists",
    threads: Optional[int] = None,
    verify: Optional[Verify] = None,
) -> RecordDataset:
    """Returns the records of a dataset as a ``pyarrow.dataset.Dataset``.

    DuckDB (``from d``), DataFusion (``register_dataset``), Polars (``scan_pyarrow_dataset``) and PyArrow read only the columns that a query
    needs. PyArrow evaluates the predicates: on column files if the dataset has them (``tfseek index --column``), else on the
    predicate's columns of the records. Of the records that pass, the rest is read. Other records are not verified, and cause no errors. A
    query builds no column files.

    source: paths as of :func:`tfseek.open`, a :class:`tfseek.Dataset`, a view of one, or a ``tfseek.tfds.Dataset``.
    columns, spec, text, record, rename, tensors, threads, verify: as for :meth:`Dataset.scan`. Byte strings are copied: PyArrow cannot
        filter views.
    """
    options = {"text": text, "record": record, "rename": rename, "tensors": tensors, "threads": threads, "verify": verify}
    return RecordDataset(source_records(source).scan(columns, spec, bytes="copy", **options))


def tensorboard(paths: Paths, *, tail: Tail = "strict", storage_options: Optional[Mapping[str, str]] = None) -> pa.Table:
    """Returns the scalars of TensorBoard's event files as a table, in the order of the files and of their events.

    The columns are ``file``, ``wall_time`` (seconds since 1970), ``step``, ``tag`` and ``value``, as float64. A scalar is a ``simple_value``, as
    PyTorch writes it, or a tensor of float32 or float64 of the plugin ``scalars``, as TensorFlow writes it. Other summaries are left out.

    paths: files of events, or ``"runs/**"`` for all below a folder: as for :func:`tfseek.stream`.
    tail: ``"tolerate"`` leaves out an event that is still being written, with a :class:`tfseek.Warning`.
    storage_options: options of the stores of URLs, as for :func:`tfseek.open`.

    Raises :class:`tfseek.DataError` with path and record for damaged files and for records that are no events.
    """
    rows: list[tuple[str, float, int, str, float]] = []
    for path in stream(paths, storage_options=storage_options).paths:
        file, plugins = shown_path(path), dict[str, bytes]()
        for record, event in enumerate(stream(path, kind="bytes", tail=tail, storage_options=storage_options)):
            try:
                rows += [(file, *row) for row in scalars(event, plugins)]
            except (DataError, WireError, UnicodeDecodeError) as e:
                error = DataError(f"{file}: record {record}: event: {e.reason if isinstance(e, WireError) else e}")
                error.path, error.record, error.category = file, record, "malformed_proto"
                raise error from None
    return pa.table(list(zip(*rows)) or [()] * len(_SCALARS), _SCALARS)


class _Source:
    """The records of a dataset, or some of them: what a ``Dataset`` and its fragments have in common.

    PyArrow's own objects are empty, so every method of theirs is replaced.
    """

    _scan: PrunedScan[pa.Table]
    _schema: pa.Schema
    _filter: Optional[pc.Expression] = None

    @property
    def partition_expression(self) -> pc.Expression:
        """True: no value is common to all records."""
        return pc.scalar(True)

    def _scanner(self, columns: Any, filter: Optional[pc.Expression], options: dict[str, Any]) -> pads.Scanner:
        """Returns a scanner of the columns and records that are asked for. It can be read once."""
        predicate = self._both(filter)
        names = self._names(columns)
        needed = [] if predicate is None else _columns(predicate, self._schema)
        read = [name for name in self._schema.names if name in names or name in needed]
        # Batches without columns have no number of rows.
        fields = [self._schema.field(name) for name in read] or [pa.field(self._scan.record, pa.int64(), False)]
        schema = pa.schema(fields)
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(schema, predicate, needed))
        columns = list(self._schema.names) if columns is None else columns
        return pads.Scanner.from_batches(reader, columns=columns, filter=predicate, **options)

    def scanner(self, *arguments: Any, **options: Any) -> pads.Scanner:
        raise NotImplementedError

    def to_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Reads the records as batches. The arguments are those of ``scanner``."""
        return iter(self.scanner(*arguments, **options).to_batches())

    def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
        """Reads the records as one table. The arguments are those of ``scanner``."""
        return self.scanner(*arguments, **options).to_table()

    def head(self, num_rows: int, columns: Any = None, filter: Optional[pc.Expression] = None, **options: Any) -> pa.Table:
        """Reads the first rows."""
        return self._scanner(columns, filter, options).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Optional[pc.Expression] = None, **options: Any) -> pa.Table:
        """Reads the rows with these numbers."""
        return self._scanner(columns, filter, options).take(indices)

    def count_rows(self, filter: Optional[pc.Expression] = None, **options: Any) -> int:
        """Counts the records. Without a filter, and with one over column files, it reads none."""
        predicate = self._both(filter)
        if predicate is None:
            return self._scan.rows
        needed = _columns(predicate, self._schema)
        frames = self._scan.frames([], Predicate(needed, _kept(predicate, self._schema)))
        return sum(frame.num_rows for frame in frames)

    def _both(self, filter: Optional[pc.Expression]) -> Optional[pc.Expression]:
        """Returns the filters of the dataset and of a call."""
        filters = [each for each in (self._filter, filter) if each is not None]
        return filters[0] & filters[1] if len(filters) == 2 else next(iter(filters), None)

    def _names(self, columns: Any) -> list[str]:
        """Returns the columns of a projection. Expressions may need all of them."""
        names: list[str] = self._schema.names
        if columns is None or isinstance(columns, dict):
            return names
        listed = list(columns)
        for name in listed:
            if name not in names and not name.startswith("__"):
                raise pa.ArrowInvalid(f"columns: expected names of columns ({', '.join(names)}), found {name!r}")
        return listed

    def _batches(self, schema: pa.Schema, predicate: Optional[pc.Expression], needed: list[str]) -> Iterator[pa.RecordBatch]:
        # Arrow puts the traceback of an exception into its message. An exception that native code raises has none.
        return map(raise_if_error, self._batches_or_error(schema, predicate, needed))

    def _batches_or_error(self, schema: pa.Schema, predicate: Optional[pc.Expression], needed: list[str]) -> Iterator[Union[pa.RecordBatch, Exception]]:
        tested = None if predicate is None else Predicate(needed, _kept(predicate, self._schema))
        try:
            for table in self._scan.frames(schema.names, tested):
                yield from table.select(schema.names).to_batches()
        except Exception as e:
            e.__cause__ = e.__context__ = None
            yield e.with_traceback(None)


class RecordFragment(_Source, pads.Fragment):
    """The records of a part of a dataset."""

    def __init__(self, scan: PrunedScan[pa.Table], schema: pa.Schema, filter: Optional[pc.Expression]) -> None:
        self._scan, self._schema, self._filter = scan, schema, filter

    @property
    def physical_schema(self) -> pa.Schema:
        """The schema of the records."""
        return self._schema

    def scanner(self, schema: Optional[pa.Schema] = None, columns: Any = None, filter: Optional[pc.Expression] = None, **options: Any) -> pads.Scanner:
        """Returns a scanner, as that of a dataset. The schema is the one of the records."""
        return self._scanner(columns, filter, options)

    def __repr__(self) -> str:
        return f"tfseek.arrow.RecordFragment({self._scan.rows} records)"

    def __reduce__(self) -> Any:
        raise TypeError("expected a dataset to pickle, found a fragment of one")


class RecordDataset(_Source, pads.Dataset):
    """The records of a dataset, made by :func:`dataset`. It can be pickled."""

    def __init__(self, scan: Scan, filter: Optional[pc.Expression] = None) -> None:
        self._source = scan
        self._scan = PrunedScan(scan, _read, _numbers)
        schema = pa.schema(scan)
        # DataFusion refuses a schema with metadata that batches do not have.
        self._schema, self._metadata = schema.remove_metadata(), schema.metadata
        self._filter = filter

    @property
    def schema(self) -> pa.Schema:
        """The schema of all columns."""
        return self._schema

    def scanner(self, columns: Any = None, filter: Optional[pc.Expression] = None, **options: Any) -> pads.Scanner:
        """Returns a scanner of the columns and records that are asked for. It can be read once.

        columns: names, or new names with expressions of columns.
        filter: an expression. Of the records that do not meet it, at most its columns are read.
        options: those of ``pyarrow.dataset.Scanner.from_batches``.
        """
        return self._scanner(columns, filter, options)

    def to_table(self, columns: Any = None, filter: Optional[pc.Expression] = None, **options: Any) -> pa.Table:
        """Reads the records as one table. The arguments are those of :meth:`scanner`."""
        table = self._scanner(columns, filter, options).to_table()
        # A table without columns would lose its rows.
        keep = isinstance(columns, dict) or not table.column_names
        return table if keep else table.replace_schema_metadata(self._metadata)

    def get_fragments(self, filter: Optional[pc.Expression] = None) -> Iterator[RecordFragment]:
        """Yields one fragment for each part of the records. Its records meet the filters of the dataset and of this call."""
        predicate = self._both(filter)
        for start, stop in _parts(self._source._arguments["dataset"], self._scan.rows):
            yield RecordFragment(self._scan.part(start, stop), self._schema, predicate)

    def filter(self, expression: pc.Expression) -> RecordDataset:
        """Returns the dataset of the records that meet the expression too."""
        return RecordDataset(self._source, self._both(expression))

    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:
        """Reads the records and sorts them."""
        return pads.InMemoryDataset(self.to_table(**options).sort_by(sorting))

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """Reads the records and joins them, as ``pyarrow.Table.join`` does."""
        right = right_dataset.to_table() if isinstance(right_dataset, pads.Dataset) else right_dataset
        return pads.InMemoryDataset(self.to_table().join(right, *arguments, **options))

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """Reads the records and joins them, as ``pyarrow.Table.join_asof`` does."""
        right = right_dataset.to_table() if isinstance(right_dataset, pads.Dataset) else right_dataset
        return pads.InMemoryDataset(self.to_table().join_asof(right, *arguments, **options))

    def replace_schema(self, schema: pa.Schema) -> RecordDataset:
        """Refuses another schema: the spec decides about the types."""
        if schema != self._schema:
            raise TypeError(
                "replace_schema: expected the schema of the dataset, found another one (see spec= of tfseek.arrow.dataset)"
            )
        return self

    def __repr__(self) -> str:
        return f"tfseek.arrow.RecordDataset({self._scan.rows} records, columns={self._schema.names})"

    def __reduce__(self) -> Any:
        return RecordDataset, (self._source, self._filter)


def _read(core: ScanCore) -> pa.Table:
    return pa.table(core)


def _numbers(table: pa.Table, record: str) -> Any:
    return table[record].to_numpy()


def _kept(predicate: pc.Expression, schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    def kept(table: pa.Table) -> pa.Table:
        # Positions of columns are those of the schema, without the column of record numbers.
        names = [name for name in schema.names if name in table.column_names]
        return table.select([*names, *(name for name in table.column_names if name not in names)]).filter(predicate)

    return kept


def _parts(ds: Dataset[Any], rows: int) -> Iterator[tuple[int, int]]:
    """Yields the positions of the parts of a dataset, or of equal pieces of a view."""
    count = max(1, os.cpu_count() or 1)
    try:
        parts = [part for share in ds.shares(count) for part in share]
        bounds = [(part.first, part.first + part.records) for part in parts if part.records is not None]
        if sum(stop - start for start, stop in bounds) == rows:
            yield from bounds
            return
    except (TypeError, ValueError):
        pass
    step = max(1, -(-rows // count))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def _columns(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Returns the columns that an expression needs.

    PyArrow does not tell them. But an expression can be evaluated on a table without rows only if the table has all of its columns.
    """
    names: list[str] = schema.names
    if "FieldPath(" in str(expression):
        # A column by its position: without the others it would be another one.
        return names

    def suffices(names: list[str]) -> bool:
        fields = pa.schema([schema.field(name) for name in names])
        try:
            fields.empty_table().filter(expression)
        except pa.ArrowException:
            return False
        return True

    needed: list[str] = []
    left = names
    if not suffices(names):
        return names
    while not suffices(needed):
        # The shortest start of the other columns that suffices ends with a needed one.
        low, high = 1, len(left)
        while low < high:
            middle = (low + high) // 2
            if suffices([*needed, *left[:middle]]):
                high = middle
            else:
                low = middle + 1
        needed.append(left[low - 1])
        left = left[: low - 1]
    return needed
