"""Plans: parts of a dataset for the workers of an engine."""

from __future__ import annotations

import builtins
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from ._choices import Tensors
from ._open import Paths, open
from ._scan import Scan, Spec, Text, scan
from ._tfds import Dataset as TfdsDataset
from ._tfds import records_of
from ._tfseek import Dataset, NestedSpec, Part

#: What an engine reads: paths as of :func:`tfseek.open`, or an open dataset.
Source = Union[Paths, Dataset]

#: Pieces of a dataset that is read by claims are about this large, or larger if there would be more than ``MAX_PIECES``.
PIECE_BYTES = 8 << 20
MAX_PIECES = 10_000


def source_records(source: Union[Source, TfdsDataset]) -> Any:
    """Returns an open dataset, also one of TensorFlow Datasets. The index of paths is built if it does not exist."""
    return source if isinstance(source, (Dataset, TfdsDataset)) else open(source)


def dataset(source: Union[Source, TfdsDataset]) -> Dataset:
    """Returns an open dataset of plain records."""
    found: Dataset = records_of(source_records(source))
    return found


def part_bytes(part: Part) -> int:
    """Returns the number of bytes of a part in its file."""
    start, end = part.bytes
    return end - start


def share_bytes(share: Iterable[Part]) -> int:
    """Returns the number of bytes of several parts in their files."""
    return builtins.sum(map(part_bytes, share))


def share_records(share: Iterable[Part]) -> Optional[int]:
    """Returns the number of records of several parts, or ``None`` if it is not known."""
    found = 0
    for part in share:
        if part.records is None:
            return None
        found += part.records
    return found


def pieces(ds: Dataset) -> list[Part]:
    """Divides a dataset into small parts, in order. Shards are at least one part each, unless they have no records."""
    whole = ds.shares(1)
    size = share_bytes(part for share in whole for part in share)
    shares: Sequence[Sequence[Part]] = ds.shares_of(max(PIECE_BYTES, size // MAX_PIECES)) if size else whole
    return [part for share in shares for part in share]


class Reading:
    """The columns that workers read of parts, and the condition on records. It can be pickled, and needs no dataset afterwards.

    The arguments are those of :meth:`tfseek.Dataset.scan`. Names in ``text`` are those of columns, as everywhere in this class.
    """

    def __init__(
        self,
        ds: Dataset,
        spec: Optional[Spec] = None,
        columns: Optional[Iterable[str]] = None,
        *,
        where: Optional[str] = None,
        text: Text = (),
        record: Optional[str] = None,
        rename: Optional[Mapping[str, str]] = None,
        tensors: Tensors = "lists",
    ) -> None:
        import pyarrow

        # Batches are sent to other processes: byte strings without a copy would be sent with all bytes around them.
        if where is not None:
            # Workers see some of the records each, so none of them can tell that a name occurs nowhere.
            for name in ds._check_names(where):
                message = f"none of the first records has the feature {name!r} of the condition, so each of them fails its comparisons"
                warnings.warn(message, stacklevel=3)
        self._options: dict[str, Any] = {"where": where, "text": text, "bytes": "copy", "tensors": tensors}
        found = ds.scan(columns, spec, record=record, rename=rename, **self._options)
        # The names of the columns, of patterns.
        self._options["text"] = found._core.text
        self._inferred: bool = found._arguments["inferred"]
        self._complete: bool = found._arguments["complete"]
        self.record = record
        #: the ``pyarrow.Schema`` of the batches
        self.schema = pyarrow.schema(found)
        self._spec = found.schema
        renamed = dict(rename or {})
        features = self._spec.features
        self._feature_of = {renamed.get(name, name): name for name in features}
        # If a feature has the name of a list, the feature is renamed, and both are read if one is.
        self._feature_of.update({name if name in features else renamed.get(name, name): name for name in self._spec.feature_lists})
        self._renamed = renamed

    def integers(self) -> set[str]:
        """Returns the columns of integers whose values a condition compares as they are read: those without a default."""
        import pyarrow

        if isinstance(self._spec, NestedSpec):
            return set()
        spec = json.loads(self._spec.to_json())
        found = set()
        for name, feature in (spec.get("features") or spec.get("context") or {}).items():
            column = self._renamed.get(name, name)
            kind = self.schema.field(column).type
            if kind == pyarrow.int64() and feature.get("default") is None and feature.get("type") in ("fixed", "optional"):
                found.add(column)
        return found

    def quoted(self, column: str) -> str:
        """Returns the name of a column's feature as conditions quote it."""
        name = self._feature_of[column].replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"'

    @property
    def where(self) -> Optional[str]:
        """The condition on records."""
        found: Optional[str] = self._options["where"]
        return found

    def where_also(self, conditions: Iterable[str]) -> Reading:
        """Returns a reading of the records that also meet these conditions."""
        both = [f"({each})" for each in (self.where, *conditions) if each]
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._options = {**self._options, "where": " and ".join(both) or None}
        return new

    def batches(self, parts: Iterable[Part], names: Optional[Sequence[str]] = None, batch_rows: Optional[int] = None) -> Iterator[Any]:
        """Returns the records of parts as ``pyarrow.RecordBatch``, with the columns ``names``: all by default, and possibly none."""
        import pyarrow

        names = self.schema.names if names is None else list(names)
        # Without columns there are still rows. The first column is the narrowest one.
        read = [name for name in names if name != self.record] or [
            next(name for name in self.schema.names if name != self.record)
        ]
        columns = [self._feature_of[name] for name in read]
        options = {
            **self._options,
            "text": [name for name in self._options["text"] if name in read],
            "rename": {old: new for old, new in self._renamed.items() if old in columns},
            "record": self.record if self.record in names else None,
            "batch_rows": batch_rows,
        }
        found = scan(parts=parts, spec=self._spec, columns=dict.fromkeys(columns), **options)
        complete = self._complete and set(columns) == set(self._feature_of.values())
        found = Scan({**found._arguments, "inferred": self._inferred, "complete": complete})
        for batch in pyarrow.RecordBatchReader.from_stream(found):
            yield batch.select(names)
