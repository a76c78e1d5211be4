"""Data sets that TensorFlow Datasets prepared: the folder, its splits, and records as nested values."""

from __future__ import annotations

import html
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union, cast

import numpy as np
import numpy.typing as npt

from ._choices import Labels, MissingValue, Rounding
from ._errors import SpecError
from ._features import Image, schema_of
from ._ids import seeds_of
from ._fsspec import Filesystem
from ._open import ShardOptions, native_options
from ._progress import Progress
from ._scan import Scan, Spec, listed_names
from ._show import record_html
from ._tfds_features import FeaturesDict, features_html, features_of, names_of, specs_of
from ._tfseek import Dataset as Records
from ._tfseek import Schema, TfdsBuilder, TfdsDecoder, TfdsFeatures
from ._warnings import Warning, raise_all, warning_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._scan import ScanOptions

    class OpenOptions(ShardOptions, total=False):
        """The options of :func:`open`."""

        config: Optional[str]
        version: Optional[str]
        decode: Decode
        optional: MissingValue

    class NestedScanOptions(ScanOptions, total=False):
        """The options of :meth:`Dataset.scan`."""

        labels: Labels


#: Pictures: decoded, left as the bytes of their files, or made by a spec.
Decode = Union[bool, Mapping[str, Union[bool, Image]]]
#: Whether all pictures are left encoded, the paths of single ones, and the specs of others.
Pictures = tuple[bool, list[str], Optional[Schema]]
#: What a loader parses records with. ``None``: nothing.
Parser = Union[Schema, TfdsDecoder, None]


class Split(NamedTuple):
    """A split of a data set."""

    name: str
    """Name of the split."""
    records: Optional[int]
    """Number of records. ``None`` if ``dataset_info.json`` does not have it."""
    shard_lengths: Optional[list[int]]
    """Number of records of each shard, or ``None``."""
    shards: list[str]
    """Paths of the shards, in the order of the records."""


class Dataset:
    """The records of a data set as nested values. ``builder["train[:80%]"]`` makes one.

    ``ds[i]`` is record ``i`` as nested dicts. ``ds[10:20]``, ``ds[[4, 2, 10]]`` and ``ds[mask]`` are Datasets of those records, and copy nothing.
    :meth:`get_many` returns the values of several records in one call. A value is a scalar of NumPy, ``bytes``, a read-only array (of objects for
    byte strings), a :class:`tfseek.Ragged`, a list of arrays of different shapes, :class:`Steps`, or ``None`` with ``optional="none"``.

    ``tfseek.Loader(ds, batch_size=64)`` makes batches of nested dicts; ``Loader(ds, ["image", "objects"], ..)`` reads only these features.

    A Dataset can be used by several threads and after a fork, and it can be pickled. An unpickled copy opens the files again, and raises an error if
    their content has changed.
    """

    __slots__ = ("_decoder", "_features", "_name", "_seeds", "records")

    #: The same records as a :class:`tfseek.Dataset`, with the same numbers.
    records: Records[Any]
    #: The seed and the epoch of random pictures.
    _seeds: tuple[int, int]

    def __init__(self, records: Records[Any], decoder: TfdsDecoder, features: TfdsFeatures, name: str, seeds: tuple[int, int] = (0, 0)) -> None:
        self.records, self._decoder, self._features, self._name = records, decoder, features, name
        self._seeds = seeds

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, key: Any) -> Any:
        try:
            i = operator.index(key)
        except TypeError:
            return self._view(self.records[key])
        return self._decoder.record(self.records, i, self._seeds)

    def __iter__(self) -> Iterator[Any]:
        return self._decoder.iterate(self.records, self._seeds)

    def get_many(self, ids: Union[Iterable[int], npt.NDArray[Any]], *, progress: Progress = None) -> list[Any]:
        """Returns the values of the records with these numbers, in the given order. They are read and decoded together, without the GIL.

        ``progress`` counts records; :func:`tfseek.open` describes it.
        """
        return self._decoder.records(self.records, ids, self._seeds, progress)

    def __getitems__(self, ids: Iterable[int]) -> list[Any]:
        """Does the same as :meth:`get_many`. PyTorch's ``DataLoader`` calls it for a batch."""
        return self._decoder.records(self.records, ids, self._seeds)

    def set_epoch(self, epoch: int, seed: Optional[int] = None) -> None:
        """Sets what random crops and colours of single records are drawn from, with the number of each in the whole data set. Both begin with 0."""
        self._seeds = seeds_of(self._seeds[0] if seed is None else seed, epoch)

    def filter(self, condition: str, *, progress: Progress = None) -> Dataset:
        """Returns the records that satisfy a condition on the stored features, such as ``"label == 'horse'"``. See :meth:`tfseek.Dataset.filter`."""
        return self._view(self._features.filter(self.records, condition, progress))

    def scan(
        self,
        columns: Optional[Iterable[str]] = None,
        spec: Optional[Spec] = None,
        *,
        labels: Labels = "names",
        **options: Unpack[ScanOptions],
    ) -> Scan:
        """Returns the records as a stream of Arrow record batches with nested columns, for data frames and engines. The page "engines" of the documentation has the types.

        columns: features, or paths such as ``"objects/bbox"``; by default all. Other features are not read.
        spec: a :class:`tfseek.NestedSpec` or other spec; by default that of the columns.
        labels: ``"names"`` or ``"numbers"``, without a spec.
        options: the other options of :meth:`tfseek.Dataset.scan`, such as ``record``, or ``text=False`` for bytes in place of strings.

        Pictures are the bytes of their files, missing values are null, and steps are lists.
        """
        if spec is None:
            # Features without an Arrow type can be left out.
            select = None if columns is None else listed_names("columns", columns)
            columns, spec = None, self._features._spec(select, labels)
        return self.records.scan(columns, spec, **options)

    def to_arrow(self, columns: Optional[Iterable[str]] = None, spec: Optional[Spec] = None, **options: Unpack[NestedScanOptions]) -> Any:
        """Returns a ``pyarrow.Table`` of all records. The arguments are those of :meth:`scan`."""
        return self.scan(columns, spec, **options).to_arrow()

    def to_pandas(self, columns: Optional[Iterable[str]] = None, spec: Optional[Spec] = None, **options: Unpack[NestedScanOptions]) -> Any:
        """Returns a ``pandas.DataFrame`` of all records. The arguments are those of :meth:`scan`."""
        return self.scan(columns, spec, **options).to_pandas()

    def to_polars(self, columns: Optional[Iterable[str]] = None, spec: Optional[Spec] = None, **options: Unpack[NestedScanOptions]) -> Any:
        """Returns a ``polars.DataFrame`` of all records. The arguments are those of :meth:`scan`."""
        return self.scan(columns, spec, **options).to_polars()

    @property
    def folder(self) -> str:
        """Path of the folder of the version."""
        return os.fspath(self._features.folder)

    @property
    def features(self) -> FeaturesDict:
        """The features, as a tree: ``features["objects"]["bbox"]``."""
        return cast(FeaturesDict, features_of(self._features))

    @property
    def spec(self) -> dict[str, Any]:
        """The specs of the stored features, by their flat names: the ``tf_example_spec`` of TFDS. ``tfseek.Loader(ds.records, ds.spec, ..)`` uses them."""
        return dict(specs_of(self.features))

    def names(self, path: str) -> list[str]:
        """Returns the names of the classes of a label, such as ``"objects/label"``."""
        return names_of(self.features, path)

    def _view(self, records: Records[Any]) -> Dataset:
        return Dataset(records, self._decoder, self._features, self._name, self._seeds)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dataset, (self.records, self._decoder, self._features, self._name, self._seeds))

    def __repr__(self) -> str:
        return f"tfseek.tfds.Dataset({self._name}, records={len(self)})"

    def _repr_html_(self) -> str:
        title = repr(self)
        if len(self) == 0:
            return f"<p>{html.escape(title)}</p>"
        # Displays contain the files of pictures.
        shown = self._decoder._encoded()
        return record_html(lambda: shown.record(self.records, 0, self._seeds), f"{title}: first record")


class Builder:
    """A data set that TensorFlow Datasets prepared, opened by :func:`open`. ``builder["train[:80%]"]`` is a :class:`Dataset` of some of its records.

    Opening checks that all shards exist, and that those with an index have as many records as ``dataset_info.json`` states. Shards are opened when
    their split is first selected. Those of a URL are compared then. The page "tfds" of the documentation has the grammar of selections.
    """

    def __init__(self, core: TfdsBuilder, features: TfdsFeatures, decoder: TfdsDecoder) -> None:
        self._core, self._features, self._decoder = core, features, decoder
        self._seen: set[Warning] = set()
        texts = [*core.warnings, *features.warnings, *decoder.warnings]
        #: Name of the data set.
        self.name: str = core.name
        #: Version of the data set.
        self.version: Optional[str] = core.version
        #: Name of the configuration, or ``None``.
        self.config: Optional[str] = core.config
        #: Path of the folder of the version.
        self.folder: str = core.folder
        #: The features that a model takes and predicts, or ``None``.
        self.supervised_keys: Optional[tuple[str, ...]] = core.supervised_keys
        #: Warnings about the folder and its features, each raised once when the folder is opened.
        self.warnings: list[Warning] = [warning_of({"kind": "tfds", "message": text}) for text in texts]

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name: number of records, and the number of each shard."""
        return {split[0]: Split(*split) for split in self._core.splits}

    @property
    def features(self) -> FeaturesDict:
        """The features, as a tree: ``features["objects"]["bbox"]``."""
        return cast(FeaturesDict, features_of(self._features))

    def names(self, path: str) -> list[str]:
        """Returns the names of the classes of a label, such as ``"objects/label"``. Without a file of names they are numbers."""
        return names_of(self.features, path)

    def split(self, spec: str, *, rounding: Rounding = "closest", progress: Progress = None) -> Dataset:
        """Returns the records that a selection such as ``"train[:80%]+test"`` names. ``builder[spec]`` is the same.

        rounding: percents of records become the nearest number (``"closest"``), or as many times one percent, rounded down
            (``"pct1_dropremainder"``), as TFDS names it.
        progress: display of the scan of shards without an index; :func:`tfseek.open` describes it.

        Raises :class:`tfseek.SpecError` for another grammar and unknown splits, and the errors of :func:`tfseek.open`.
        """
        if not isinstance(spec, str):
            raise TypeError(f"split: expected a text such as 'train[:80%]', found {spec!r}")
        return self._dataset(self._core.select(spec, rounding, progress), spec)

    def __getitem__(self, spec: str) -> Dataset:
        return self.split(spec)

    def even_splits(self, spec: str, n: int, *, drop_remainder: bool = False) -> list[Dataset]:
        """Divides the selected records into ``n`` parts of equal size, each part of the selection by itself.

        The first parts get one record more each if there is a remainder, which ``drop_remainder`` leaves out.
        """
        parts = self._core.even_splits(spec, operator.index(n), bool(drop_remainder))
        return [self._dataset(part, f"{spec}, part {k} of {n}") for k, part in enumerate(parts)]

    def _dataset(self, records: Records[Any], spec: str) -> Dataset:
        new = [warning for warning in records.warnings if warning not in self._seen]
        self._seen.update(new)
        raise_all(new, 2)
        return Dataset(records, self._decoder, self._features, f"{self._title()}, {spec!r}")

    def _title(self) -> str:
        parts = (self.name, self.config, self.version)
        return repr("/".join(part for part in parts if part))

    def __repr__(self) -> str:
        splits = ", ".join(f"{name}={split.records}" for name, split in self.splits.items())
        return f"tfseek.tfds.Builder({self._title()}, {splits or 'no splits'})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{features_html(self.features)}"


def open(
    dir: Union[str, "os.PathLike[str]"],
    *,
    config: Optional[str] = None,
    version: Optional[str] = None,
    decode: Decode = True,
    optional: MissingValue = "default",
    **options: Unpack[ShardOptions],
) -> Builder:
    """Opens a data set that TensorFlow Datasets prepared. TensorFlow is not needed.

    >>> builder = tfseek.tfds.open("tensorflow_datasets/coco/2017")
    >>> ds = builder["train[:80%]"]
    >>> ds[7]["objects"]["bbox"]

    dir: the folder of a version, or a folder of versions, or of configurations. In a build with the feature ``remote`` also a URL of such a folder:
        ``"gs://bucket/coco/2017"``. A web server needs the folder of a version.
    config: the configuration, for a folder of several.
    version: the version, for a folder of several. By default the highest.
    decode: false: pictures and videos are the bytes of their files. A dict such as ``{"image": False}`` says so for single features, and
        ``{"image": tfseek.Image((224, 224), crop="random_resized")}`` makes pictures of 8 or 16 bits by a spec.
    optional: value of an optional feature that a record does not have: ``"default"``, the value that TFDS uses, or ``"none"``: ``None``, and a
        :class:`tfseek.Column` in batches.
    options: ``index``, ``index_dir``, ``verify``, ``io``, ``tail``, ``damage``, ``rest``, ``max_record``, ``threads``, ``storage_options``,
        ``cache_dir``, ``cache_bytes`` and ``filesystem`` of :func:`tfseek.open`, whose rule about files in maps holds for the shards, too.

    Raises :class:`tfseek.Error` for a folder without a data set or with several, :class:`tfseek.DataError` for files with another content than
    expected, and :class:`tfseek.SpecError` for paths in ``decode`` that are no pictures.
    """
    if optional not in ("default", "none"):
        raise ValueError(f"optional: expected 'default' or 'none', found {optional!r}")
    for name in options.keys() - ShardOptions.__annotations__.keys():
        raise TypeError(f"open() got an unexpected keyword argument {name!r}")
    filesystem = options.get("filesystem")
    through = None if filesystem is None else Filesystem(filesystem)
    folder = os.path.expanduser(os.fspath(dir)) if through is None else through.url(dir)
    core = TfdsBuilder(folder, config, version, {**native_options(options, through), "kind": "example"})
    features = core.features()
    decoder = features.decoder(None, pictures_of(decode), optional == "none")
    builder = Builder(core, features, decoder)
    raise_all(builder.warnings)
    return builder


def pictures_of(decode: Decode) -> Pictures:
    """Returns the form of pictures."""
    if isinstance(decode, (bool, np.bool_)):
        return not decode, [], None
    if not isinstance(decode, Mapping):
        raise TypeError(f"decode: expected True, False, or a dict such as {{'image': False}}, found {decode!r}")
    for path, form in decode.items():
        if not isinstance(form, (bool, np.bool_, Image)):
            raise TypeError(f"decode: {path}: expected True, False or a tfseek.Image, found {form!r}")
    made = {path: form for path, form in decode.items() if isinstance(form, Image)}
    return False, [path for path, form in decode.items() if not form], schema_of(made) if made else None


def source_of(ds: Any, spec: Any) -> tuple[Any, Parser]:
    """Returns the records and the parser of an argument ``ds`` and its ``spec``, which are names of features if ``ds`` is a :class:`Dataset`."""
    if not isinstance(ds, Dataset):
        return ds, spec if isinstance(spec, TfdsDecoder) or spec is None else schema_of(spec)
    if spec is None or isinstance(spec, TfdsDecoder):
        return ds.records, ds._decoder if spec is None else spec
    if isinstance(spec, (str, bytes, Schema, Mapping)) or not isinstance(spec, Iterable):
        found = type(spec).__name__
        raise TypeError(f"spec: expected a list of features of the data set, found {found}; ds.records takes specs")
    names = list(spec)
    if not names or not all(isinstance(name, str) for name in names):
        raise SpecError(f"spec: expected the names of at least one feature, found {names!r}")
    return ds.records, ds._decoder._select(names)


def records_of(source: Any) -> Any:
    """Returns the plain records of a :class:`Dataset`, and everything else unchanged."""
    return source.records if isinstance(source, Dataset) else source
