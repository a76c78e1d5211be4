"""``tfseek.fetch``: shards copied from a bucket, a web server or the hub."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional, Union

from . import _tfseek
from ._errors import DataError, Error
from ._open import options_of_storage
from ._progress import Progress


@dataclass(frozen=True)
class Fetched:
    """The result of :func:`tfseek.fetch`."""

    #: number of files of the fetch that are in the folder
    files: int
    #: number of records in them
    records: int
    #: size of the files in bytes
    bytes: int
    #: bytes that this call requested
    fetched_bytes: int
    #: number of requests for them
    requests: int
    #: bytes that earlier calls had requested
    found_bytes: int
    #: names of files that began again, because their objects were replaced
    begun_again: list[str]
    #: files of an earlier call whose objects are no longer there
    left: list[str]
    #: damage of shards that were taken as they are
    kept: list[str]


def fetch(
    url: str,
    folder: Union[str, "os.PathLike[str]"],
    *,
    split: Optional[str] = None,
    where: Optional[str] = None,
    keep_damaged: bool = False,
    storage_options: Optional[Mapping[str, str]] = None,
    progress: Progress = None,
) -> Fetched:
    """Copies shards to a folder, as the command ``tfseek fetch`` does.

    ``url`` is a URL, a pattern such as ``gs://bucket/train-*``, a folder of shards, or the folder of a data set that TensorFlow Datasets prepared. ``folder`` is
    new, empty, or that of an earlier call with the same arguments: pieces that are there are not requested again. The checksums of all
    records are verified; a damaged record is requested once more.

    split: a split of a prepared data set, for example ``"train[:5%]"``. The folder becomes such a data set.
    where: a condition as for ``ds.filter``. The folder gets a new set of the records that meet it; whole shards are read.
    keep_damaged: takes shards as they are that are damaged in the store too. By default they are an error, after all others were fetched.
    storage_options: logins and addresses of the store; :func:`tfseek.open` describes them.
    progress: display of the bytes; :func:`tfseek.open` describes it.

    Raises :class:`ValueError` for invalid arguments, and :class:`tfseek.Error` for damage, a folder with other files or of another fetch, another process that
    fetches into it, the network and a full disk. What arrived stays for the next call.
    """
    # The first statement: the local variables are the arguments.
    arguments = dict(locals())
    fetching = getattr(_tfseek, "fetch", None)
    if fetching is None:
        raise Error("tfseek.fetch: this tfseek was built without the feature `remote`")
    arguments.update(url=os.fspath(url), folder=os.fspath(folder), keep_damaged=bool(keep_damaged))
    arguments["storage_options"] = options_of_storage(storage_options)
    report = fetching(arguments, progress)
    for feature in report.pop("unseen"):
        warnings.warn(f"no record has the feature {feature!r} of the condition", stacklevel=2)
    damaged = report.pop("damaged")
    if damaged:
        more = f", and {len(damaged) - 1} more" if damaged[1:] else ""
        raise DataError(f"{damaged[0]}{more} (not complete; keep_damaged=True takes shards as they are)")
    return Fetched(**report)
