"""``tfseek.scan`` and ``Dataset.scan``: records as Arrow record batches, for data frames and engines."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union, cast

from . import _tfseek
from ._choices import ArrowBytes, Tensors, Verify
from ._errors import SpecError
from ._features import Features, schema_of
from ._open import options_of_storage
from ._tfseek import Dataset, NestedSpec, Part, ScanCore, Schema

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import TypedDict

    class ScanOptions(TypedDict, total=False):
        """The options of ``Dataset.scan``."""

        where: Optional[str]
        text: Text
        record: Optional[str]
        rename: Optional[Mapping[str, str]]
        bytes: ArrowBytes
        tensors: Tensors
        batch_rows: Optional[int]
        threads: Optional[int]
        verify: Optional[Verify]


class ArrowSchema(Protocol):
    """A schema of Arrow's C interface, such as a ``pyarrow.Schema``."""

    def __arrow_c_schema__(self) -> object: ...


#: What a scan reads: specs, a schema of Arrow, or the features of a data set of TensorFlow Datasets.
Spec = Union[Features, ArrowSchema, NestedSpec]

#: Number of records that ``Dataset.schema`` is inferred from.
INFERRED_RECORDS = 1000

#: Columns of byte strings that become strings: names, patterns, or all of them.
Text = Union[bool, str, Iterable[str]]


class Scan:
    """The records of a dataset, or of parts of one, as a stream of Arrow record batches: ``ds.scan(..)`` and :func:`tfseek.scan`.

    Nothing is read before a stream begins. Any library that accepts a stream of Arrow's C interface takes it: ``pa.table(scan)``,
    ``pl.DataFrame(scan)``, ``duckdb.sql("select .. from scan")``. Each use is a new stream from the first record.

    Numbers and long byte strings are not copied, so tables may keep the files mapped. An error in a record ends the stream with an
    exception of the library that reads it, whose text has the place.
    """

    def __init__(self, arguments: dict[str, Any], storage: Optional[Mapping[str, str]] = None) -> None:
        self._arguments = arguments
        # The options of stores may be secret: they are in no pickle.
        self._storage = storage
        self._core = ScanCore({**arguments, "storage_options": storage})

    @property
    def schema(self) -> Union[Schema, NestedSpec]:
        """The features that are read, as :class:`tfseek.Schema` or :class:`tfseek.NestedSpec`."""
        schema: Union[Schema, NestedSpec] = self._arguments["schema"]
        return schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the argument ``columns``. Without it narrow columns are first."""
        return self._core.columns

    def take(self, records: Union[Iterable[int], npt.NDArray[Any]]) -> Scan:
        """Returns a scan of the records with these numbers, in this order. They are numbers in the whole dataset."""
        if self._arguments["dataset"] is None:
            raise TypeError("take: expected a scan of a dataset, found a scan of parts")
        return Scan({**self._arguments, "records": records})

    def to_arrow(self) -> Any:
        """Returns a ``pyarrow.Table`` of all records."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """Returns a ``pandas.DataFrame`` of all records, through PyArrow. Integers that may be missing are of pandas' nullable types, such as
        ``Int64``, or objects in lists and structs. Byte strings are copied: PyArrow converts no lists of views.
        """
        return Scan({**self._arguments, "bytes": "copy"}, self._storage).to_arrow().to_pandas(integer_object_nulls=True)

    def to_polars(self) -> Any:
        """Returns a ``polars.DataFrame`` of all records."""
        # A type checker without Polars would take `import polars` for the module beside this one.
        # Polars has lists of views.
        views = Scan({**self._arguments, "bytes": "view"}, self._storage) if self._arguments["bytes"] == "auto" else self
        return import_module("polars").DataFrame(views)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[type[Scan], tuple[dict[str, Any]]]:
        return Scan, (self._arguments,)

    def __repr__(self) -> str:
        return f"tfseek.Scan(columns={self.columns})"


def scan(
    *,
    parts: Union[Part, Iterable[Part]],
    spec: Spec,
    columns: Optional[Iterable[str]] = None,
    where: Optional[str] = None,
    text: Text = (),
    record: Optional[str] = None,
    rename: Optional[Mapping[str, str]] = None,
    bytes: ArrowBytes = "auto",
    tensors: Tensors = "lists",
    batch_rows: Optional[int] = None,
    verify: Optional[Verify] = None,
    storage_options: Optional[Mapping[str, str]] = None,
) -> Scan:
    """Returns the records of parts of a dataset as a stream of Arrow record batches, a :class:`tfseek.Scan`.

    A worker reads a share of :meth:`Dataset.shares` with it, without an index. :meth:`Dataset.scan` has the same arguments for a dataset.

    parts: a :class:`tfseek.Part` or a list of them. Exactly their records are read, in order; anything else is an error.
    spec: a dict of feature specs; a :class:`tfseek.Schema`, which may have feature lists; a :class:`tfseek.NestedSpec`; or an Arrow schema, such as a
        ``pyarrow.Schema``. A nullable value of that is :class:`tfseek.Optional`, a list any number of values, a string text.
    columns: names of features of the spec; by default all of them. Other features are not decoded. Of a ``NestedSpec`` also paths: ``"objects/bbox"``.
    where: a condition as in :meth:`Dataset.filter`. A dataset finds the records first; parts evaluate it on each record.
    text: columns of byte strings that become strings: names, patterns such as ``"caption/*"``, or ``True`` for all of them. ``False``: none of them,
        also of those that are strings by the spec. A value that is not UTF-8 is an error.
    record: name of an additional first column with the number of each record in the dataset.
    rename: new names of columns. Needed if a feature of the context and a feature list have the same name: it renames the feature.
    bytes: ``"view"``: long byte strings are not copied; ``"copy"``: they are copied together; ``"auto"``: only those in lists are copied, because
        PyArrow, and with it pandas, converts no lists of views. Copy them if batches are sent to other processes or written.
    tensors: ``"lists"``: nested lists of fixed lengths for ``FixedLenFeature``; ``"extension"``: the type ``arrow.fixed_shape_tensor``.
    batch_rows: number of rows of a batch; by default as many as have about 32 MiB of records, at most 8192.
    verify: the checksums verified: ``"payload"`` (header and payload), ``"header"`` or ``"none"``. By default those that :func:`tfseek.open` chose.
    storage_options: options of the stores of parts at URLs, as for :func:`tfseek.open`. By default the process logs in by its environment. A pickled
        scan has none of them.

    An absent feature is null for :class:`tfseek.Optional`, the default or an error for ``FixedLenFeature``. Raises
    :class:`tfseek.SpecError`. The page "engines" of the documentation has the types.
    """
    # The first statement: the local variables are the arguments.
    options = {name: value for name, value in locals().items() if name in _DEFAULTS}
    arguments = _arguments(spec, columns, options)
    return Scan({**arguments, "dataset": None, "parts": part_list("parts", parts)}, options_of_storage(storage_options))


#: The options of a scan. Only that of a dataset has ``threads``.
_DEFAULTS: dict[str, Any] = {
    **{name: each.default for name, each in inspect.signature(scan).parameters.items() if name not in ("parts", "spec", "columns", "storage_options")},
    "threads": None,
}


def scan_dataset(
    ds: Dataset[Any],
    columns: Optional[Iterable[str]] = None,
    spec: Optional[Spec] = None,
    **options: Any,
) -> Scan:
    """The method ``Dataset.scan``. The options are those of :func:`scan`."""
    for name in options.keys() - _DEFAULTS.keys():
        raise TypeError(f"scan() got an unexpected keyword argument {name!r}")
    if columns is not None:
        columns = listed_names("columns", columns)
    arguments = _arguments(_schema_of(ds, columns) if spec is None else spec, columns, options)
    arguments["inferred"] = spec is None and len(ds) > INFERRED_RECORDS
    # A later record may have a feature that the first ones lack.
    arguments["complete"] = arguments["inferred"] and columns is None
    return Scan({**arguments, "dataset": ds, "parts": None})


def _schema_of(ds: Dataset[Any], columns: Optional[list[str]]) -> Schema:
    """Returns the inferred schema. That a feature has several kinds matters only if it is a column."""
    try:
        return ds.schema
    except SpecError:
        if columns is None:
            raise
        return ds._schema_of(columns)


def _arguments(spec: Spec, columns: Optional[Iterable[str]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a scan, checked."""
    options = {**_DEFAULTS, **given}
    text = options["text"]
    own_text: list[str] = []
    names: Optional[list[str]] = None
    schema: Union[Schema, NestedSpec]
    if isinstance(spec, (Schema, NestedSpec)):
        schema = spec
    elif hasattr(type(spec), "__arrow_c_schema__"):
        schema, own_text, own_bytes, is_tensor = _tfseek.arrow_spec(spec)
        options["bytes"] = options["bytes"] if options["bytes"] == "copy" else own_bytes
        options["tensors"] = "extension" if is_tensor else options["tensors"]
    else:
        schema = schema_of(cast(Features, spec))
    if columns is not None:
        names = listed_names("columns", columns)
        known = {*schema.features, *schema.feature_lists}
        for name in names:
            # A nested column has names of its own.
            if name not in known and not isinstance(schema, NestedSpec):
                error = SpecError(f"columns: {_tfseek.no_such_name('feature of the spec', name, sorted(known))}")
                error.feature = name
                raise error
        schema = schema._of_columns(names)
        own_text = [name for name in own_text if name in names]
    if options["batch_rows"] is not None and options["batch_rows"] < 1:
        raise ValueError(f"batch_rows: expected at least 1, found {options['batch_rows']}")
    if not isinstance(text, bool):
        text = own_text + ([text] if isinstance(text, str) else list(text))
    elif not text and isinstance(schema, NestedSpec):
        schema = schema._without_text()
    options.update(schema=schema, columns=names, inferred=False, complete=False, records=None, text=text)
    options["rename"] = list((options["rename"] or {}).items())
    return options


def part_list(argument: str, parts: Union[Part, Iterable[Part]]) -> list[Part]:
    """Returns one part or several as a list."""
    listed = [parts] if isinstance(parts, Part) else list(parts)
    for item in listed:
        if not isinstance(item, Part):
            raise TypeError(f"{argument}: expected a tfseek.Part or a list of them, found {type(item).__name__}")
    return listed


def listed_names(argument: str, names: Iterable[str]) -> list[str]:
    """Returns the names as a list. A single string is a mistake of the caller."""
    if isinstance(names, str):
        raise TypeError(f"{argument}: expected a list of names, found the name {names!r}")
    return list(names)
