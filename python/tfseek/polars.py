"""Polars over TFRecords: a LazyFrame that reads the columns and the records that a query needs.

``import tfseek`` does not import this module. It requires the package ``polars``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, Union

import polars as pl
from polars.io.plugins import register_io_source

from ._choices import Verify
from ._plan import Source, source_records
from ._pruning import Predicate, PrunedScan
from ._scan import Spec, Text
from ._tfds import Dataset as NestedDataset
from ._tfseek import ScanCore

__all__ = ["scan"]


def scan(
    source: Union[Source, NestedDataset],
    columns: Optional[Iterable[str]] = None,
    spec: Optional[Spec] = None,
    *,
    text: Text = (),
    record: Optional[str] = None,
    rename: Optional[Mapping[str, str]] = None,
    threads: Optional[int] = None,
    verify: Optional[Verify] = None,
) -> pl.LazyFrame:
    """Returns the records of a dataset as a ``polars.LazyFrame``.

    A query reads only the columns that it needs, and Polars evaluates its predicates, as PyArrow does those of :func:`tfseek.arrow.dataset`.

    source: paths as of :func:`tfseek.open`, a :class:`tfseek.Dataset`, a view of one, or a ``tfseek.tfds.Dataset``.
    columns, spec, text, record, rename, threads, verify: as for :meth:`Dataset.scan`.
    """
    # Polars has lists of views.
    records = source_records(source).scan(columns, spec, text=text, record=record, rename=rename, bytes="view", threads=threads, verify=verify)
    pruned: PrunedScan[pl.DataFrame] = PrunedScan(records, _read, _numbers)
    schema = pl.DataFrame(records.take([])).schema

    def frames(
        with_columns: Optional[list[str]],
        predicate: Optional[pl.Expr],
        n_rows: Optional[int],
        batch_size: Optional[int],
    ) -> Iterator[pl.DataFrame]:
        names = list(schema) if with_columns is None else with_columns
        chosen = pruned if n_rows is None else pruned.part(0, n_rows)
        if predicate is None:
            for frame in chosen.frames(names):
                yield frame.select(names)
            return
        needed = [name for name in predicate.meta.root_names() if name in schema]
        for frame in chosen.frames(names, Predicate(needed, lambda frame: frame.filter(predicate))):
            yield frame.filter(predicate).select(names)

    return register_io_source(frames, schema=schema, is_pure=True)


def _read(core: ScanCore) -> pl.DataFrame:
    return pl.DataFrame(core)


def _numbers(frame: pl.DataFrame, record: str) -> Any:
    return frame[record].to_numpy()
