"""``tfseek.stream``, ``tfseek.unpack`` and ``tfseek.verify``: files in order, without an index."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Optional, Union, overload

from . import _tfseek
from ._choices import BytesAs, Damage, Kind, StreamCompression, Tail, Verify
from ._errors import Error
from ._features import Features, schema_of
from ._open import Paths, options_of_storage, path_list
from ._progress import Progress
from ._scan import part_list
from ._tfseek import Example, Part, Schema, SequenceExample, StreamCore
from ._warnings import Warning, raise_all

if TYPE_CHECKING:
    from typing_extensions import TypedDict, TypeVar, Unpack

    Record = TypeVar("Record", covariant=True, default=Any)

    class StreamOptions(TypedDict, total=False):
        """Arguments of :func:`stream` that do not determine the type of its records."""

        compression: StreamCompression
        verify: Verify
        tail: Tail
        damage: Damage
        max_record: Optional[int]
        part: Union[Part, Iterable[Part], None]
        storage_options: Optional[Mapping[str, str]]

else:
    from typing import TypeVar

    Record = TypeVar("Record", covariant=True)


@overload
def stream(paths: Optional[Paths] = None, *, kind: Literal["auto", "example"] = "auto", **options: Unpack[StreamOptions]) -> Stream[Example]: ...
@overload
def stream(paths: Optional[Paths] = None, *, kind: Literal["sequence_example"], **options: Unpack[StreamOptions]) -> Stream[SequenceExample]: ...
@overload
def stream(paths: Optional[Paths] = None, *, kind: Literal["bytes"], **options: Unpack[StreamOptions]) -> Stream[bytes]: ...
@overload
def stream(paths: Optional[Paths] = None, *, kind: Kind, **options: Unpack[StreamOptions]) -> Stream[Any]: ...
def stream(
    paths: Optional[Paths] = None,
    *,
    part: Union[Part, Iterable[Part], None] = None,
    compression: StreamCompression = "auto",
    verify: Verify = "payload",
    kind: Kind = "auto",
    tail: Tail = "strict",
    damage: Damage = "raise",
    max_record: Optional[int] = None,
    storage_options: Optional[Mapping[str, str]] = None,
) -> Stream[Any]:
    """Returns the records of plain, gzip and zlib files in file order, as a :class:`tfseek.Stream`. No index is read or built.

    ``paths`` is a file, a folder, a pattern, a set or a list of them, as for :func:`tfseek.open`, also at URLs. A pipe is read once.

    part: a :class:`tfseek.Part` or a list of them, such as a share of :meth:`Dataset.shares`, instead of ``paths``. Exactly their records
        are read, in order; anything else is an error. A shard that was replaced raises :class:`tfseek.SidecarError`.
    compression: ``"auto"`` detects the compression of each file from its first bytes; with ``"none"``, ``"gzip"`` or ``"zlib"``
        another compression is an error.
    verify: the checksums verified: ``"payload"`` (header and payload), ``"header"``, or ``"none"``, as for :func:`tfseek.open`.
    kind: type of the records: ``"example"``, ``"sequence_example"``, ``"bytes"``, or ``"auto"``, which inspects the first records.
    tail: as for :func:`tfseek.open`, with a :class:`tfseek.Warning` about a torn tail that is tolerated.
    damage: ``"raise"``: damage is an error; ``"skip"``: the sound records are returned, with the numbers that :func:`tfseek.open` gives them with
        ``damage="skip"``, and a :class:`tfseek.Warning` at the end of the file states what was left out. A part is read with the damage that its
        dataset left out, and no other.
    max_record: as for :func:`tfseek.open`.
    storage_options: options of the stores of URLs, also of those in parts, as for :func:`tfseek.open`. A pickled stream has none of them.

    Raises :class:`tfseek.NotFoundError` if a path does not exist. The files are opened by the iteration.
    """
    # The first statement: the local variables are the arguments.
    arguments = dict(locals())
    if (paths is None) == (part is None):
        raise TypeError(f"stream: expected either paths or part, found {'none of them' if part is None else 'both'}")
    # The options of stores may be secret: they are in no pickle.
    del arguments["part"], arguments["storage_options"]
    arguments.update(paths=[] if paths is None else path_list(paths), parts=None if part is None else part_list("part", part))
    opened: Stream[Any] = Stream(arguments, options_of_storage(storage_options))
    raise_all(opened.warnings)
    return opened


class Stream(Generic[Record]):
    """The records of files in file order, made by :func:`tfseek.stream`.

    Each ``iter(stream)`` begins again at the first file. It reads without the GIL, and its memory does not depend on the size of the
    files. An iterator belongs to one thread and one process. Records own their bytes, so they can be kept.

    Damage raises :class:`tfseek.DataError` with ``.path``, ``.record`` and ``.offset``, after the records before it. The iterator has
    then ended. With ``damage="skip"`` it is left out instead.
    """

    def __init__(self, arguments: dict[str, Any], storage: Optional[Mapping[str, str]] = None) -> None:
        self._arguments = arguments
        self._core = StreamCore({**arguments, "storage_options": storage})

    def __iter__(self) -> Iterator[Record]:
        return iter(self._core)

    @overload
    def batches(
        self, spec: Mapping[Any, Any], batch_size: int, *, drop_last: bool = False, bytes_as: BytesAs = "objects"
    ) -> Iterator[dict[str, Any]]: ...
    @overload
    def batches(
        self, spec: Schema, batch_size: int, *, drop_last: bool = False, bytes_as: BytesAs = "objects"
    ) -> Iterator[Any]: ...
    def batches(self, spec: Features, batch_size: int, *, drop_last: bool = False, bytes_as: BytesAs = "objects") -> Iterator[Any]:
        """Returns an iterator over parsed batches of ``batch_size`` records.

        ``spec`` is a dict of specs or a :class:`tfseek.Schema`. A batch is a dict of columns as :func:`tfseek.parse_example` returns it.
        For a schema of SequenceExamples it is ``(context, sequence, lengths)`` as :func:`tfseek.parse_sequence_example` returns it.
        Batches continue over the ends of files. The last one may be smaller; ``drop_last=True`` leaves it out.

        A record that the spec refuses raises :class:`tfseek.DataError` with its location and ``.row``. The next batch begins after the
        refused one. Damage of a file raises after the records before it, which are a smaller batch unless ``drop_last`` is true.
        """
        return self._core.batches(schema_of(spec), batch_size, drop_last, bytes_as)

    def sample(self, n: int, seed: int = 0) -> list[Record]:
        """Draws ``n`` records at random without replacement, in one pass over all files, and returns them in file order.

        If there are fewer records, all are returned. The sample depends on ``n``, ``seed`` and the records only. It holds ``n`` records
        in memory.
        """
        return self._core.sample(n, seed)

    @property
    def paths(self) -> list[str]:
        """Paths of the files, in the order of their records."""
        return self._core.paths

    @property
    def warnings(self) -> list[Warning]:
        """Observations that are not errors: TFRecord files in a folder that were left out because of their names, and what iterations so far have
        left out at the ends of files. Each is raised once, by :func:`stream` or by the first iteration that finds it.
        """
        return self._core.warnings

    def __reduce__(self) -> tuple[Any, ...]:
        for path in self._arguments["paths"]:
            shown = _tfseek.shown_path(path)
            if shown != path:
                raise TypeError(f"{shown}: a URL with a query or a user cannot be pickled, because they may be secret")
        return Stream, (self._arguments,)

    def __repr__(self) -> str:
        names, parts = [_tfseek.shown_path(path) for path in self._arguments["paths"]], self._arguments["parts"]
        if parts is not None:
            return f"tfseek.stream(part={parts[0] if len(parts) == 1 else parts!r})"
        return f"tfseek.stream({names[0]!r})" if len(names) == 1 else f"tfseek.stream({names!r})"


def unpack(
    paths: Paths,
    out: Union[str, "os.PathLike[str]"],
    *,
    force: bool = False,
    storage_options: Optional[Mapping[str, str]] = None,
    progress: Progress = None,
) -> list[str]:
    """Inflates gzip and zlib files to plain ones in ``out``, which allow random access, and returns the paths of the new files.

    It follows the command ``tfseek unpack -o``. A new file has the name of its input without ``.gz``, ``.gzip``, ``.zz``, ``.zlib`` or
    ``.z``, and ends in ``.tfrecord`` if it would have no TFRecord extension. Files that are not compressed are skipped. The folder is
    created if it does not exist. All checksums are verified, and a file gets its name only when it is complete.

    force: replaces existing files. By default an existing file is an error.
    storage_options: options of the stores of URLs among ``paths``, as for :func:`tfseek.open`. ``out`` is a local folder.
    progress: display of the compressed bytes read; :func:`tfseek.open` describes it.

    Raises :class:`tfseek.Error` before anything is written if two files would get the same name, or an output is an input. If a file
    fails, the others are unpacked first, and the first error is raised.
    """
    return _tfseek.unpack(path_list(paths), os.fspath(out), force, options_of_storage(storage_options), progress)


@dataclass(frozen=True)
class Verification:
    """The result of :func:`tfseek.verify`. It is true, like :attr:`ok`, if nothing is damaged."""

    #: number of files
    files: int
    #: number of files without errors
    sound_files: int
    #: number of records with correct checksums, with those after damage
    records: int
    #: payload bytes of these records
    payload_bytes: int
    #: number of these records that do not decode, with ``decode=True``
    malformed: int
    #: for each file the first damage, and the first record that does not decode; each with ``.path``, ``.record`` and ``.offset``
    errors: list[Error]
    #: number of records, by their lengths alone, in files whose writer computed all checksums in another way: ``verify="none"`` reads them
    unverified: int = 0

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        first = f", first error: {self.errors[0]}" if self.errors else ""
        return f"tfseek.Verification({self.sound_files} of {self.files} files sound, {self.records} records{first})"


def verify(
    paths: Paths,
    *,
    decode: bool = False,
    kind: Kind = "auto",
    threads: Optional[int] = None,
    storage_options: Optional[Mapping[str, str]] = None,
    progress: Progress = None,
) -> Verification:
    """Reads all records of all files and verifies all checksums, as the command ``tfseek verify`` does.

    Damage raises no exception: it is in ``errors`` of the result. ``paths`` are plain, gzip or zlib files, as for :func:`tfseek.stream`.

    decode: if true, the payloads are decoded as well, as messages of ``kind``: ``"example"``, ``"sequence_example"``, or ``"auto"``, which
        inspects the first records of each file. Their pictures are decoded, too.
    threads: number of threads, each for one file at a time; 0: the calling thread. By default one per processor.
    storage_options: options of the stores of URLs, as for :func:`tfseek.open`. The damaged ranges of objects are not looked for.
    progress: display of the bytes read; :func:`tfseek.open` describes it.

    Raises :class:`tfseek.NotFoundError` if a path does not exist.
    """
    storage = options_of_storage(storage_options)
    return Verification(*_tfseek.verify(path_list(paths), decode, kind, threads, storage, progress))
