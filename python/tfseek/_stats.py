"""``tfseek.stats``: statistics of records and features."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from . import _tfseek
from ._choices import Damage, Kind
from ._open import Paths, options_of_storage, path_list
from ._progress import Progress
from ._tfds import records_of
from ._tfseek import Dataset


class StatsFields(Mapping[str, Any]):
    """Fields of statistics, as attributes (``f.int64.mean``) and as items (``f["int64"]["mean"]``).

    The page statistics.md lists them. Byte strings that are not UTF-8 are ``bytes``, all others ``str``.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"no field {name!r}; fields: {', '.join(self._fields)}") from None

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"StatsFields({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._fields,)


class Stats(StatsFields):
    """The result of :func:`tfseek.stats`. ``print`` shows a table; notebooks display it as HTML."""

    __slots__ = ("_found", "_table")

    def __init__(self, fields: dict[str, Any], table: str, found: _tfseek.FoundStatistics) -> None:
        super().__init__(fields)
        self._table = table
        self._found = found

    def feature(self, name: str) -> StatsFields:
        """Returns the statistics of the feature or feature list ``name``, or raises ``KeyError``."""
        features = [*self["features"], *self["feature_lists"]]
        for feature in features:
            if feature["name"] == name:
                found: StatsFields = feature
                return found
        raise KeyError(_tfseek.no_such_name("feature", name, [feature["name"] for feature in features]))

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the statistics to a file, which ``tfseek stats --merge`` reads. An existing file is replaced."""
        self._found.save(os.fspath(path))

    def __repr__(self) -> str:
        return self._table.rstrip("\n")

    def _repr_html_(self) -> str:
        return self._found.html()

    def __reduce__(self) -> tuple[Any, ...]:
        return Stats, (self._fields, self._table, self._found)


def stats(
    source: Union[Dataset[Any], Paths],
    *,
    features: Union[str, Sequence[str], None] = None,
    by: Optional[str] = None,
    sample: Optional[int] = None,
    seed: int = 0,
    kind: Kind = "auto",
    damage: Damage = "raise",
    memory: Optional[int] = None,
    threads: Optional[int] = None,
    storage_options: Optional[Mapping[str, str]] = None,
    progress: Progress = None,
) -> Stats:
    """Reads all records once and returns statistics of their features, as the command ``tfseek stats`` does.

    ``source`` is a dataset, or paths of plain, gzip or zlib files as for :func:`tfseek.open`. The result does not depend on ``threads``.

    features: patterns of the names of features, such as ``"image/*"``. A name that no record has is a :class:`tfseek.Warning`. Default: all features.
    by: a feature with at most 1000 values. ``slices`` of the result has the statistics of the records with each value.
    sample: number of records to read, drawn at random with ``seed``. Default: all records.
    kind: ``"example"``, ``"sequence_example"``, ``"bytes"``, or ``"auto"``, which inspects the first records of each file.
    damage: ``"raise"``: damage is an error; ``"skip"``: damaged and malformed records are left out. ``skipped`` is the number of malformed ones;
        ``damaged_ranges`` and ``damaged_bytes`` are those of the damage, and a :class:`tfseek.Warning` for each file says where it is.
    memory: limit on the memory of the sketches in bytes. Beyond it, values are not counted exactly any more; ``limited`` names the features.
    threads: number of threads; 0: the calling thread. By default one per processor.
    storage_options: options of the stores of URLs among the paths, as for :func:`tfseek.open`.
    progress: display of the bytes or records read; :func:`tfseek.open` describes it.

    Raises :class:`tfseek.DataError` for damage, and :class:`tfseek.NotFoundError` if a path does not exist.
    """
    # The first statement: the local variables are the arguments.
    arguments = dict(locals())
    arguments["features"] = [features] if isinstance(features, str) else list(features or [])
    arguments["storage_options"] = options_of_storage(storage_options)
    source = records_of(source)
    records = source if isinstance(source, Dataset) else path_list(source)
    table, found = _tfseek.stats(records, arguments, progress)
    return Stats(found.fields(StatsFields)._fields, table, found)
