"""``tfseek.reshard``: a dataset written again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _tfseek
from ._choices import Compression, Io, Kind
from ._open import Paths, open, path_list
from ._progress import Progress
from ._tfds import records_of
from ._tfseek import Dataset


@dataclass(frozen=True)
class ReshardedSet:
    """A set of files that :func:`tfseek.reshard` wrote."""

    #: name of the split, or ``None``
    split: Optional[str]
    #: path of the set as :func:`tfseek.open` takes it: ``out/train@8.tfrecord``, or the path of the file. In the folder of a data set it is that folder if
    #: the names of the shards have another form, or there are none
    path: str
    #: paths of the files
    shards: list[str]
    #: number of records
    records: int
    #: size of the files in bytes
    bytes: int


@dataclass(frozen=True)
class Resharded:
    """The result of :func:`tfseek.reshard`."""

    #: the sets, one for each split
    sets: list[ReshardedSet]
    #: ``"direct"``, ``"memory"`` or ``"files"``: the way in which the records were written
    way: str

    @property
    def records(self) -> int:
        """Number of records in all sets."""
        return sum(part.records for part in self.sets)


def reshard(
    dataset: Union[Paths, Dataset[Any]],
    out: Union[str, "os.PathLike[str]"],
    *,
    where: Optional[str] = None,
    shards: Optional[Union[int, str]] = None,
    shuffle: bool = False,
    seed: int = 0,
    sort_by: Optional[str] = None,
    reverse: bool = False,
    split: Optional[Mapping[str, float]] = None,
    split_by: Optional[str] = None,
    missing: Optional[str] = None,
    features: Optional[Union[str, Iterable[str]]] = None,
    drop: Optional[Union[str, Iterable[str]]] = None,
    kind: Kind = "auto",
    compression: Optional[Compression] = None,
    members: Optional[Union[int, str]] = None,
    index: bool = False,
    memory: Optional[Union[int, str]] = None,
    threads: Optional[int] = None,
    force: bool = False,
    allow_missing: bool = False,
    storage_options: Optional[Mapping[str, str]] = None,
    progress: Progress = None,
) -> Resharded:
    """Writes a dataset again, as the command ``tfseek reshard`` does: in other shards, shuffled, sorted, split, or with fewer features.

    ``dataset`` is a :class:`tfseek.Dataset`, of which the records are written, or paths as for :func:`tfseek.open`. Records of a view must ascend. ``out`` is a file
    (``small.tfrecord``) or a set (``out/train@128.tfrecord``); ``{split}`` in it is the name of a split. Records are copied as they are, and
    checksums are verified. All files get their names when all are complete.

    If ``dataset`` is the folder of a data set that TensorFlow Datasets prepared, and ``out`` names no TFRecord file, ``out`` becomes such a folder: each split with its
    own shards, ``dataset_info.json``, and the other files. ``out`` may end in a number of shards of each split (``new/mnist/3.0.1@8``). By default the numbers are kept. ``split``,
    ``features``, ``drop``, ``compression``, ``members`` and ``force`` are refused.

    where: a condition as for ``ds.filter``; other records are left out.
    shards: the number of shards, or their size as text (``"200MB"``), for ``out`` without a number.
    shuffle: the global order of epoch 0 of ``seed``. By default records keep their order.
    sort_by: a feature with at most one value per record, by which the records are sorted. ``reverse`` sorts descending.
    split: names and fractions of splits, for example ``{"train": 0.9, "val": 0.1}``. The hash of the payload, or of the values of the feature
        ``split_by``, decides about each record, with ``seed``. A record without a value is an error, or is in the split ``missing``.
    features, drop: names of features, with the wildcards ``*`` and ``?``. The payloads are then encoded again.
    kind: type of the payloads for ``split_by``, ``features`` and ``drop``: ``"auto"``, ``"example"``, ``"sequence_example"`` or ``"bytes"``.
    compression: ``"none"``, ``"gzip"`` or ``"zlib"``; by default the suffix of ``out`` decides (``.gz``, ``.zz``).
    members: size of the members of gzip files. By default a file has one member.
    index: also writes an index of each file.
    memory: memory in bytes, or as text (``"4GB"``). By default the limit of the system or of the control group. Records in another order
        that take more than 60 % of it are copied twice. The result is the same.
    threads: number of threads; 0: the calling thread. By default one per processor.
    force: replaces existing files. By default an existing file is an error.
    storage_options: options of the stores of URLs among the paths, as for :func:`tfseek.open`. ``out`` is local.
    progress: display of the bytes copied; :func:`tfseek.open` describes it.

    With ``damage="skip"`` of :func:`tfseek.open`, records that do not decode are left out if an option needs their features, with a warning of kind
    ``"payloads_skipped"``.

    Raises :class:`ValueError` for invalid arguments, and :class:`tfseek.Error` for damage, existing outputs, missing values and a full disk. No
    output exists then, unless it existed before.
    """
    # The first statement: the local variables are the arguments.
    arguments = dict(locals())
    if shuffle and sort_by is not None:
        raise ValueError(f"sort_by: expected no feature with shuffle=True, found {sort_by!r}")
    if split is None and (split_by is not None or missing is not None):
        raise ValueError("split_by, missing: expected a split, found split=None")
    dataset = records_of(dataset)
    prepared = None
    if isinstance(dataset, Dataset):
        opened = dataset
    else:
        names = path_list(dataset)
        shards_of_splits = _tfseek.prepared_shards(names, os.fspath(out))
        if shards_of_splits is not None:
            [prepared], names = names, shards_of_splits
        is_remote = storage_options is not None or any("://" in name for name in names)
        # By maps if the files fit into the memory.
        io: Io = "auto" if is_remote or _tfseek.fits_memory(names, allow_missing, memory) else "pread"
        opened = open(names, io=io, allow_missing=allow_missing, threads=threads, storage_options=storage_options)
    if where is not None:
        opened = opened.filter(where)
    arguments.update({name: bool(arguments[name]) for name in ("shuffle", "reverse", "index", "force")})
    arguments.update(out=os.fspath(out), prepared=prepared, features=_names(features), drop=_names(drop))
    arguments["split"] = None if split is None else _fractions(split)
    way, sets = _tfseek.reshard(opened, arguments, progress)
    return Resharded([ReshardedSet(*part) for part in sets], way)


def _fractions(split: Mapping[str, float]) -> list[tuple[str, float]]:
    if not isinstance(split, Mapping):
        raise TypeError(f"split: expected a mapping of names to fractions, found {type(split).__name__}")
    return list(split.items())


def _names(names: Optional[Union[str, Iterable[str]]]) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)
