"""Scans that read what an engine asks for: some columns, and the records that meet a predicate that the engine itself evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, Generic, Optional, TypeVar

from ._scan import Scan
from ._tfseek import ScanCore

Frame = TypeVar("Frame")

#: Records that are read together have about this number of bytes, and at most this number.
_BYTES = 128 << 20
_RECORDS = 1 << 18
#: Number of values of a column file that are read together.
_VALUES = 1 << 20
#: Mean bytes of a record that are assumed if the sizes of the shards are not known.
_UNKNOWN = 8 << 10


class Predicate(Generic[Frame]):
    """A predicate of an engine.

    columns: the columns that it needs.
    kept: returns the rows of a frame that meet it.
    """

    def __init__(self, columns: list[str], kept: Callable[[Frame], Frame]) -> None:
        self.columns = columns
        self.kept = kept


class PrunedScan(Generic[Frame]):
    """Reads frames of the columns and records that are asked for.

    scan: the scan of all columns, without a condition.
    read: returns a frame of all records of a scan.
    numbers: returns a column of record numbers as a NumPy array.
    """

    def __init__(self, scan: Scan, read: Callable[[ScanCore], Frame], numbers: Callable[[Frame, str], Any]) -> None:
        self.columns = scan.columns
        arguments = scan._arguments
        self.record = arguments["record"]
        if self.record is None:
            self.record = "record"
            while self.record in self.columns:
                self.record = "_" + self.record
        self._core = ScanCore({**arguments, "record": self.record})
        # Without numbers that were not asked for. They take half of the time of a scan of column files.
        self._plain = scan._core
        self._read, self._numbers = read, numbers

    @property
    def rows(self) -> int:
        """Number of records."""
        rows = self._core.rows
        assert rows is not None, "only parts may not know their number of records"
        return rows

    def part(self, start: int, stop: int) -> PrunedScan[Frame]:
        """Returns the scan of the records at these positions."""
        part: PrunedScan[Frame] = object.__new__(PrunedScan)
        part.__dict__.update(self.__dict__)
        part._core, part._plain = self._core.slice(start, stop), self._plain.slice(start, stop)
        return part

    def frames(self, columns: list[str], predicate: Optional[Predicate[Frame]] = None) -> Iterator[Frame]:
        """Yields frames of the records that meet the predicate. They have these columns, those of the predicate, and maybe the record number,
        which frames without other columns always have.

        If all columns of the predicate have column files, they decide, and only the records that pass are read. If all columns that are
        asked for have them, no record is read. Otherwise the columns of the predicate are parsed first, and the others for the
        records that passed, unless half of them do.
        """
        if predicate is None:
            core = self._project(columns)
            saved = self._saved(columns)
            yield from self._slices(core) if saved is None else self._slices(saved, _VALUES)
            return
        tested, wanted = self._project(predicate.columns), self._project([*columns, *predicate.columns])
        saved = self._saved([*columns, *predicate.columns])
        if saved is not None:
            for frame in self._slices(saved, _VALUES):
                yield predicate.kept(frame)
            return
        saved = tested.over_columns()
        if saved is not None:
            for frame in self._slices(saved, _VALUES):
                yield from self._numbered(wanted, predicate.kept(frame))
            return
        has_all = set(columns) <= {*predicate.columns, self.record}
        passes_half = has_all
        rows, step = self.rows, self._step(tested)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            if not passes_half:
                kept = predicate.kept(self._read(tested.slice(start, stop)))
                passes_half = 2 * _len(kept) >= stop - start
                if not passes_half:
                    yield from self._numbered(wanted, kept)
                    continue
            kept = predicate.kept(self._read(wanted.slice(start, stop)))
            passes_half = has_all or 2 * _len(kept) >= stop - start
            yield kept

    def _saved(self, columns: list[str]) -> Optional[ScanCore]:
        """Returns the scan of the column files of these columns, if they have one each."""
        names = [name for name in self.columns if name in columns and name != self.record]
        return (self._plain if names else self._core).project(names).over_columns()

    def _project(self, columns: list[str]) -> ScanCore:
        return self._core.project([name for name in self.columns if name in columns and name != self.record])

    def _step(self, core: ScanCore) -> int:
        """Returns the number of records that are read together."""
        mean = core.record_bytes
        return max(1, min(_RECORDS, _BYTES // max(1, _UNKNOWN if mean is None else mean)))

    def _slices(self, core: ScanCore, step: Optional[int] = None) -> Iterator[Frame]:
        """Reads all records of a scan, in frames of at most this number of rows."""
        rows, step = core.rows or 0, step or self._step(core)
        for start in range(0, rows, step):
            yield self._read(core.slice(start, min(start + step, rows)))

    def _numbered(self, wanted: ScanCore, kept: Frame) -> Iterator[Frame]:
        """Reads the records whose numbers a frame has."""
        if _len(kept) > 0:
            numbers = self._numbers(kept, self.record)
            yield from self._slices(wanted.numbered(numbers.astype("<u8").tobytes()))


def _len(frame: Any) -> int:
    return len(frame)
