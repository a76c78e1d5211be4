"""``tfseek.Mix``: several data sets under one order and one state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import numpy as np

from ._choices import MixBy, MixStop, MixUnit
from ._errors import SpecError
from ._features import columns_of
from ._rlds import Windows
from ._tfds import Dataset as TfdsDataset
from ._tfds import Parser, source_of
from ._tfseek import Dataset, TfdsDecoder, mixture_weights

#: Largest sum of integer weights that are not all 1.
_MOST = 2**20

_UNITS, _STOPS = ("row", "batch"), ("never", "first", "all")


class Mix:
    """Several data sets in fixed proportions, as the first argument of :class:`tfseek.Loader`, which then has no ``spec``.

    In each cycle of P samples, each source has exactly its weight, where P is the sum of the weights. What a source has given is always
    the beginning of its own order, so no record repeats before all of its source were given. The page "order" of the documentation, section 5, has all rules.

    >>> mix = tfseek.Mix([((web, spec), 7), ((books, spec), 3)])
    >>> for batch in tfseek.Loader(mix, batch_size=256, seed=42): ...

    sources: pairs of a source and its weight. A source is ``(ds, spec)`` as for a loader, a :class:`tfseek.tfds.Dataset`, or another mix. Integer weights are used as they
        are, and their sum is at most 2^20. With a float among them, all weights become integers with the sum 4096.
    by: ``"weight"``, or ``"size"``: each weight is multiplied by the number of records of its source.
    unit: ``"row"``: each sample has its source, and all sources have the same columns. ``"batch"``: each global batch has one source, and
        the columns may differ.
    stop: the end of an epoch. ``"never"``: after as many samples as all sources have records. ``"first"``, ``"all"``: with the sample that
        completes the first, or the last source. The stream of samples goes on in the next epoch in any case. With ``"never"`` no batch is
        short: the last one continues with the next epoch.
    source: the name of an int64 column to add, with the number of each row's source. Sources of a mix in the mix are numbered one by one.
    rename: new names of columns, ``{number of the source: {key: name}}``, before the columns of the sources are compared.

    Record numbers (``ids``) count over all sources, one after the other. A saved state can be loaded with other weights: each source goes
    on after what it has given. A mix in a mix has the share of its weight, and no ``unit``, ``stop`` and ``source`` of its own.

    Raises :class:`tfseek.SpecError` for weights that are not positive. The loader raises it for columns that differ, and names the first.
    """

    def __init__(
        self,
        sources: Iterable[tuple[Union[tuple[Union[Dataset[Any], TfdsDataset], Any], Dataset[Any], TfdsDataset, Mix], Union[int, float]]],
        by: MixBy = "weight",
        unit: MixUnit = "row",
        stop: MixStop = "never",
        source: Optional[str] = None,
        rename: Optional[Mapping[int, Mapping[str, str]]] = None,
    ) -> None:
        for name, value, choices in (("by", by, ("weight", "size")), ("unit", unit, _UNITS), ("stop", stop, _STOPS)):
            if value not in choices:
                raise ValueError(f"{name}: expected one of {list(choices)}, found {value!r}")
        if source is not None and not isinstance(source, str):
            raise TypeError(f"source: expected the name of a column, found {source!r}")
        given = list(sources)
        if not given:
            raise SpecError("expected sources of a mix, found none")
        names_of = {_number(number, len(given)): dict(names) for number, names in (rename or {}).items()}
        self._unit, self._stop, self._source = unit, stop, source
        self._parts: list[tuple[Dataset[Any], Parser, dict[str, str]]] = []
        weights: list[Union[int, float]] = []
        for number, pair in enumerate(given):
            part, weight = _pair(number, pair)
            names = names_of.get(number, {})
            if names and isinstance(part, Windows):
                part, names = part._renamed(names), {}
            if isinstance(part, Mix):
                weights += part._add_to(self._parts, number, names, weight, by)
                continue
            ds, schema = _source(number, part)
            if names and isinstance(schema, TfdsDecoder):
                raise SpecError(f"rename: source {number}: expected a source of plain records, found a tfseek.tfds.Dataset")
            self._parts.append((ds, schema, names))
            weights.append(weight * len(ds) if by == "size" else weight)
        self._weights = _integers(weights, by)

    def _add_to(
        self,
        parts: list[tuple[Dataset[Any], Parser, dict[str, str]]],
        number: int,
        names: Mapping[str, str],
        weight: Union[int, float],
        by: MixBy,
    ) -> list[float]:
        """Adds the sources of this mix to those of another one, and returns their weights."""
        if (self._unit, self._stop, self._source) != ("row", "never", None):
            raise SpecError(f"source {number}: expected a mix without unit, stop and source, which are those of the outer mix")
        used: set[str] = set()
        for ds, schema, own in self._parts:
            features = () if schema is None else schema.features
            both = {key: names.get(own.get(key, key), own.get(key, key)) for key in features}
            used.update(name for name in names if name in {own.get(key, key) for key in features})
            parts.append((ds, schema, {key: name for key, name in both.items() if key != name}))
        for name in names:
            if name not in used:
                raise SpecError(f"rename: source {number}: expected a column of the mix, found {name!r}")
        rows = sum(len(ds) for ds, _, _ in self._parts) if by == "size" else 1
        total = sum(self._weights)
        return [one / total * (weight * rows) for one in self._weights]

    def _native(self) -> tuple[list[tuple[Dataset[Any], Parser, int, dict[str, str]]], bool, str]:
        """Returns the form that the native loader takes."""
        sources = [(ds, schema, weight, names) for (ds, schema, names), weight in zip(self._parts, self._weights)]
        return sources, self._unit == "batch", self._stop

    @property
    def weights(self) -> list[int]:
        """Integer weight of each source, one by one."""
        return list(self._weights)

    @property
    def _schemas(self) -> list[Parser]:
        return [schema for _, schema, _ in self._parts]

    def _columns(self) -> set[str]:
        """Returns the names of the columns of all sources."""
        parts = ((schema, names) for _, schema, names in self._parts if schema is not None)
        return {names.get(key, key) for schema, names in parts for key in columns_of(schema)}

    def __repr__(self) -> str:
        parts = ", ".join(f"({ds!r}, {weight})" for (ds, _, _), weight in zip(self._parts, self._weights))
        return f"tfseek.Mix([{parts}], unit={self._unit!r}, stop={self._stop!r})"


def _pair(number: int, pair: Any) -> tuple[Any, Union[int, float]]:
    try:
        part, weight = pair
    except (TypeError, ValueError):
        raise TypeError(f"source {number}: expected a pair of a source and its weight, found {pair!r}") from None
    if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, (int, float, np.integer, np.floating)):
        raise SpecError(f"source {number}: expected a number as the weight, found {weight!r}")
    weight = int(weight) if isinstance(weight, (int, np.integer)) else float(weight)
    if not (weight > 0 and math.isfinite(weight)):
        raise SpecError(f"source {number}: expected a positive and finite weight, found {weight!r}")
    return part, weight


def _source(number: int, part: Any) -> tuple[Dataset[Any], Parser]:
    given, spec = part if isinstance(part, tuple) and len(part) == 2 else (part, None)
    ds, parser = source_of(given, spec)
    if not isinstance(ds, Dataset):
        raise TypeError(f"source {number}: expected (ds, spec) or a tfseek.Mix, found {part!r}")
    return ds, parser


def _number(number: Any, count: int) -> int:
    if isinstance(number, (int, np.integer)) and not isinstance(number, bool) and 0 <= number < count:
        return int(number)
    raise SpecError(f"rename: expected the number of one of {count} sources, found {number!r}")


def _integers(weights: list[Union[int, float]], by: MixBy) -> list[int]:
    """Returns integer weights: those that were given, or parts of 4096."""
    if all(isinstance(weight, int) for weight in weights):
        integers = [int(weight) for weight in weights]
        if sum(integers) <= _MOST or all(weight == 1 for weight in integers):
            return integers
        if by == "weight":
            raise SpecError(f"expected integer weights with a sum of at most 2^20, found {sum(integers)}: floats become parts of 4096")
    # Only their ratios count. Numbers of records above 2^1023 would be no floats.
    most = max(weights)
    found: list[int] = mixture_weights([weight / most for weight in weights])
    return found
