"""``tfseek.open`` and ``tfseek.build_index``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union, cast, overload

from . import _fsspec, _tfseek
from ._choices import Damage, IndexMode, Io, Kind, Tail, Verify
from ._errors import Error
from ._fsspec import FsspecFilesystem, OpenFiles
from ._progress import Progress, when_slow
from ._tfseek import Dataset, Example, SequenceExample
from ._warnings import raise_all

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ShardOptions(TypedDict, total=False):
    """Arguments of :func:`open` that ``tfseek.tfds.open`` has, too."""

    index: IndexMode
    index_dir: Optional[Union[str, os.PathLike[str]]]
    verify: Verify
    io: Io
    tail: Tail
    damage: Damage
    rest: Optional[Union[str, "os.PathLike[str]"]]
    max_record: Optional[int]
    threads: Optional[int]
    storage_options: Optional[Mapping[str, str]]
    cache_dir: Optional[Union[str, "os.PathLike[str]"]]
    cache_bytes: Optional[int]
    filesystem: Optional[FsspecFilesystem]


class OpenOptions(ShardOptions, total=False):
    """Arguments of :func:`open` that do not determine the type of its records."""

    columns: Union[str, Iterable[str]]
    allow_missing: bool
    progress: Progress


Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


# With `kind="auto"` the type is that of nearly all files, so that editors know the methods of a record.
@overload
def open(paths: Union[Paths, OpenFiles], *, kind: Literal["auto", "example"] = "auto", **options: Unpack[OpenOptions]) -> Dataset[Example]: ...
@overload
def open(paths: Union[Paths, OpenFiles], *, kind: Literal["sequence_example"], **options: Unpack[OpenOptions]) -> Dataset[SequenceExample]: ...
@overload
def open(paths: Union[Paths, OpenFiles], *, kind: Literal["bytes"], **options: Unpack[OpenOptions]) -> Dataset[bytes]: ...
@overload
def open(paths: Union[Paths, OpenFiles], *, kind: Kind, **options: Unpack[OpenOptions]) -> Dataset[Any]: ...
def open(
    paths: Union[Paths, OpenFiles],
    *,
    index: IndexMode = "auto",
    index_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    verify: Verify = "payload",
    io: Io = "auto",
    columns: Union[str, Iterable[str]] = (),
    kind: Kind = "auto",
    tail: Tail = "strict",
    damage: Damage = "raise",
    rest: Optional[Union[str, "os.PathLike[str]"]] = None,
    allow_missing: bool = False,
    max_record: Optional[int] = None,
    threads: Optional[int] = None,
    storage_options: Optional[Mapping[str, str]] = None,
    cache_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    cache_bytes: Optional[int] = None,
    filesystem: Optional[FsspecFilesystem] = None,
    progress: Progress = None,
) -> Dataset[Any]:
    """Opens shards as one sequence of records.

    ``paths`` is a file, a folder, a pattern (``train-*.tfrecord``), a set (``train@10.tfrecord``) or a list of them. In a build with the
    feature ``remote`` it may also be such a name at ``s3://``, ``gs://``, ``az://``, ``https://`` or ``hf://``; the page "python" of the documentation has
    the rules.

    **No process may overwrite or truncate the files while the dataset, or an array made from it, exists.** They are mapped into
    memory. A violation can kill the process or change its data. Appending to a file and replacing it by rename are safe.
    ``io="pread"`` reads the files without maps and has no such rule. ``ds.refresh()`` returns a dataset with the records that were
    appended.

    index: ``"auto"`` uses existing indexes and builds missing ones; ``"require"`` builds none; ``"memory"`` neither reads nor writes
        index files; ``"rebuild"`` scans all shards again.
    index_dir: a folder for index files. It is searched first, and new index files are written to it.
    verify: the checksums verified on each access: ``"payload"`` (header and payload, as TensorFlow), ``"header"``, or ``"none"``, for the files of a
        writer whose checksums are wrong. Damage is then not noticed, and each open scans all lengths, as no index file is read or written.
    io: ``"auto"`` uses maps, or positional reads if the process cannot have enough maps; ``"map"``; ``"pread"`` (positional reads).
    columns: features whose columns are loaded now, for ``ds.column(feature)`` and ``ds.filter(condition)``. Missing column files are
        built in one scan. By default a column is loaded at its first use.
    kind: type of ``ds[i]``: ``"example"``, ``"sequence_example"``, ``"bytes"``, or ``"auto"``, which inspects the first records. Type
        checkers take the records for Examples unless another kind is given.
    tail: ``"strict"``: a torn tail is an error; ``"tolerate"``: the shard ends at its last whole record, as a
        file that is being written does. A cut trailer of a gzip or zlib file, and other bytes after its end, are a torn tail too.
    damage: ``"raise"``: a damaged length is an error when its shard is scanned, a damaged payload when its record is read; ``"skip"``:
        damaged records and a torn tail are left out, and ``ds.warnings`` has one warning per damaged shard, of the kind
        ``"damage_skipped"``. A shard without any sound record is an error.
    rest: with ``damage="skip"``, a folder for the damaged bytes, one file ``NAME.rest`` for each damaged shard.
    allow_missing: if true, shards of a set may be missing. Record numbers then count the existing shards only.
    max_record: largest payload of a record in bytes; by default 2**31 - 1, the longest message that protobuf parses. Access to a longer
        record raises :class:`tfseek.DataError` before memory is allocated. Other records stay readable.
    threads: number of threads that scan shards without an index; 0: the calling thread. By default one per processor.
    storage_options: options of the stores of URLs, a dict of strings such as ``{"aws_region": "eu-west-1"}``. They precede variables of the
        environment. They are in no message, and not in pickles: a process that opens a pickled dataset needs its own login, from variables. A forked
        process has them.
    cache_dir, cache_bytes: a folder on disk for bytes of URLs, and its largest number of bytes. All processes of the machine share it, and the next epoch
        makes no request for what is in it. By default the variables ``TFSEEK_CACHE_DIR`` and ``TFSEEK_CACHE_BYTES``, or no cache.
    filesystem: a filesystem of fsspec that the shards are read through, for places without a store of their own; it is slower. ``paths`` are then URLs or
        paths of it. They may also be the result of ``fsspec.open_files``, without this argument. Pickles have the protocol of the filesystem and not its
        options: a process that opens one calls ``fsspec.filesystem(protocol)``, with its own login. A forked process makes the filesystem again.
    progress: display of the scan for indexes and columns. ``None``: a line on a terminal after a second; ``False``: nothing.
        ``True``: a bar of ``tqdm`` if it is installed, otherwise a line on standard error. Also a bar or class like those of ``tqdm``, or a callable ``f(done, total)``. The thread that called ``open`` calls it
        at the start, about every 50 ms, and at the end. ``done`` is the number of bytes scanned, ``total`` the size of all shards or
        ``None`` if unknown, as for URLs. Shards that need no scan do not count as done. An exception of the callable ends the work. A pickled
        copy has no progress display.

    Raises :class:`tfseek.NotFoundError`, :class:`tfseek.IoError`, :class:`tfseek.SidecarError`, and :class:`tfseek.DataError` for the
    first damage in a shard that is scanned.
    """
    # The first statement: the local variables are the arguments.
    options = dict(locals())
    if isinstance(paths, Iterator):
        paths = cast(Paths, list(paths))
    through = _fsspec.given(paths, filesystem)
    names, fs = (path_list(paths), None) if through is None else through
    opened = _tfseek.open({**native_options(options, fs), "paths": names}, when_slow(progress, "opening"))
    raise_all(opened.warnings)
    return opened


def native_options(options: Mapping[str, Any], fs: Optional[_fsspec.Filesystem]) -> dict[str, Any]:
    """Returns arguments of :func:`open` in the form of native functions. Those that are not given have its defaults."""
    found = {name: options.get(name, default) for name, default in _DEFAULTS.items()}
    if fs is not None and found["storage_options"] is not None:
        raise ValueError("storage_options: expected those of the filesystem, given to fsspec, found others beside it")
    if fs is not None and (found["cache_dir"] is not None or found["cache_bytes"] is not None):
        raise ValueError("cache_dir: expected a URL of a store of tfseek, found a filesystem, which has caches of its own")
    columns = found["columns"]
    for name in ("index_dir", "cache_dir"):
        found[name] = None if found[name] is None else os.fspath(found[name])
    return {
        **found,
        "columns": [columns] if isinstance(columns, str) else list(columns),
        "rest": rest_folder(found["rest"], found["damage"]),
        "storage_options": options_of_storage(found["storage_options"]),
        "filesystem": fs,
    }


_DEFAULTS = {name: each.default for name, each in inspect.signature(open).parameters.items() if name not in ("paths", "progress")}


def reopen(arguments: Any, fingerprint: str, ids: Any, storage: Sequence[str] = ()) -> Dataset[Any]:
    """Opens a pickled Dataset. ``arguments`` may be a function with its arguments, which make its records of others. ``storage`` are the names of its
    storage options."""
    try:
        if isinstance(arguments, tuple):
            make, given = arguments
            made: Dataset[Any] = make(*given).records._restore(fingerprint, ids)
            return made
        return _tfseek.open(arguments)._restore(fingerprint, ids)
    except Error as e:
        if storage:
            names = ", ".join(storage)
            e.args = (f"{e} (a pickle has no storage_options, here {names}: set the variables of the environment for them)", *e.args[1:])
        elif isinstance(arguments, dict) and arguments.get("filesystem"):
            hint = f"a pickle has only the protocol of a filesystem: fsspec.filesystem({arguments['filesystem']!r}) was used"
            e.args = (f"{e} ({hint})", *e.args[1:])
        raise


def features_again(recipe: tuple[Any, ...]) -> Any:
    """Returns the pickled features of records that a function makes."""
    make, given = recipe
    return make(*given)._features


def options_of_storage(options: Optional[Mapping[str, str]]) -> Optional[dict[str, str]]:
    """Returns a copy of the options. No error has a value."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise TypeError(f"storage_options: expected a dict of str, found {type(options).__name__}")
    for name, value in options.items():
        if not isinstance(name, str):
            raise TypeError(f"storage_options: expected names of type str, found {type(name).__name__}")
        if not isinstance(value, str):
            raise TypeError(f"storage_options: expected a str for {name!r}, found {type(value).__name__}")
    return dict(options)


def rest_folder(rest: Optional[Union[str, "os.PathLike[str]"]], damage: Damage) -> Optional[str]:
    """Returns the argument ``rest`` as a path."""
    if rest is not None and damage == "raise":
        raise ValueError(f"rest: expected damage='skip', found damage={damage!r}")
    return None if rest is None else os.fspath(rest)


def build_index(
    paths: Paths,
    *,
    threads: Optional[int] = None,
    progress: Progress = None,
    index_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    rebuild: bool = False,
    allow_missing: bool = False,
    pack: Optional[str] = None,
    damage: Damage = "raise",
    rest: Optional[Union[str, "os.PathLike[str]"]] = None,
    storage_options: Optional[Mapping[str, str]] = None,
) -> int:
    """Builds missing indexes, in ``.tfseek/`` in the shards' folder or in ``index_dir``, and returns the number of records. Those of URLs are in the user's
    cache, and only a pack is written beside the objects.

    ``progress`` counts the bytes scanned; :func:`tfseek.open` describes it.

    pack: the name of a pack. One file ``.tfseek/NAME.tfrp`` in the common folder of the shards then contains all indexes, and no others are
        written. ``tfseek.open`` opens it by its path, which is fast for thousands of shards. An existing pack is replaced.
    storage_options: as for :func:`tfseek.open`.
    damage, rest: as for :func:`tfseek.open`. Indexes that skip damage are used only by calls with ``damage="skip"``.

    Raises :class:`tfseek.DataError` for damage, after it has indexed the intact shards. A pack is written only if all shards are intact,
    or with ``damage="skip"``.
    If the call is interrupted, complete indexes are kept, and the next call builds the others.
    """
    if pack is not None and index_dir is not None:
        raise ValueError(f"pack: expected no index_dir, because a pack is in the folder of the shards, found index_dir={index_dir!r}")
    return _tfseek.build_index(
        path_list(paths),
        threads,
        None if index_dir is None else os.fspath(index_dir),
        rebuild,
        allow_missing,
        pack,
        damage,
        rest_folder(rest, damage),
        options_of_storage(storage_options),
        progress,
    )


def path_list(paths: Any) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return [_path(paths)]
    if isinstance(paths, (bytes, bytearray)) or not isinstance(paths, Iterable):
        return [_path(paths)]
    return [_path(path) for path in paths]


def _path(path: Any) -> str:
    """Returns a path as ``str``, or raises ``TypeError``."""
    found = path if isinstance(path, str) else path.__fspath__() if isinstance(path, os.PathLike) else path
    if isinstance(found, str):
        return found
    hint = "; os.fsdecode(path) converts it" if isinstance(found, (bytes, bytearray)) else ""
    raise TypeError(f"paths: expected str, os.PathLike or a list of them, found {short(path)}{hint}")


def short(value: Any) -> str:
    """Returns the ``repr`` of a value, cut after 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}.."
