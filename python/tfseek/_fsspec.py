"""Filesystems of fsspec: the threads that call them, and the names of their objects."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union

from ._errors import Error

if TYPE_CHECKING:
    from ._tfseek import CallQueue

#: Calls at a time through a filesystem.
_THREADS = 4
#: Ranges of one call of an async filesystem, which requests them together. Others request one after the other.
_PARTS = 64
#: Nanoseconds by which the clock of a server may be ahead.
_LATEST = 86_400 * 10**9
#: Seconds after which the version of an object is compared again.
_CHECK = 60.0
#: Fields of an object that differ when it is replaced, in the order of preference.
_VERSIONS = ("ETag", "etag", "generation", "mtime")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "Last-Modified")
#: Fields that the replacement of an object may share. A ``ukey`` of these alone tells nothing.
_SHARED = {"name", "size", "type", "url", "mimetype", "partial"}
#: Filesystems whose ``ukey`` takes files for ones that never change.
_UNCHANGING = {"http", "https"}
#: Filesystems of archives, whose members keep their times in another archive of the same name.
_ARCHIVES = {"tar", "libarchive"}
#: Options that are logins, or that change with each.
_LOGINS = {"secret", "token", "password", "passwd", "passphrase", "pkey", "key_filename", "credential", "sas_token", "account_key"}
#: Filesystems with one connection, whose answers calls from several threads would mix up.
_SERIAL = {"ftp"}

#: Size, time in nanoseconds and version of an object.
Stamp = tuple[int, Optional[int], Optional[str]]


class FsspecFilesystem(Protocol):
    """An ``fsspec.AbstractFileSystem``."""

    def info(self, path: Any, **kwargs: Any) -> Any: ...
    def ls(self, path: Any, detail: Any = True, **kwargs: Any) -> Any: ...
    def find(self, path: Any) -> Any: ...
    def cat_ranges(self, paths: Any, starts: Any, ends: Any) -> Any: ...


class FsspecOpenFile(Protocol):
    """An ``fsspec.core.OpenFile``."""

    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> Any: ...
    @property
    def compression(self) -> Any: ...


#: Names of shards, or files of ``fsspec.open_files``.
OpenFiles = Union[FsspecOpenFile, Iterable[FsspecOpenFile]]


class Filesystem:
    """A filesystem of fsspec, which threads of this class call for Rust. It is in no pickle: its options may be secret."""

    def __init__(self, fs: Any) -> None:
        kind = f"{type(fs).__module__}.{type(fs).__qualname__}"
        if not _is(fs, "fsspec.spec", "AbstractFileSystem"):
            raise TypeError(f"filesystem: expected a filesystem of fsspec, found {kind}")
        if getattr(fs, "asynchronous", False):
            raise ValueError(f"filesystem: expected one made without asynchronous=True, which other threads can call, found {kind}")
        self._fs, self._process = fs, os.getpid()
        self.protocol = "local" if "file" in _protocols(fs) else _protocols(fs)[0]
        #: Ranges of one call.
        self.parts = _PARTS if fs.async_impl else 1
        #: What selects its objects besides their names, such as a host and a user, without secrets.
        self.place = repr(_selecting(fs))
        is_serial = not fs.async_impl and (not fs.cachable or not _SERIAL.isdisjoint(_protocols(fs)))
        self._threads = 1 if is_serial else _THREADS

    def __reduce__(self) -> Any:
        raise TypeError("a filesystem is not pickled, because its options may be secret")

    def url(self, path: Any) -> str:
        """Returns the name of a shard or a pattern as a URL."""
        text = path if isinstance(path, str) else path.__fspath__() if isinstance(path, os.PathLike) else None
        if not isinstance(text, str):
            raise TypeError(f"paths: expected str, os.PathLike or a list of them, found {type(path).__name__}")
        scheme, mark, _ = text.partition("://")
        known = _protocols(self._fs)
        if not mark:
            text = self._fs.unstrip_protocol(text)
            scheme = text.partition("://")[0]
        elif scheme not in known and not self._fs.unstrip_protocol(self._fs._strip_protocol(text)).startswith(f"{scheme}://"):
            raise ValueError(f"paths: expected URLs of the filesystem, {known[0]}://.., found one of {scheme}://")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]+", scheme):
            raise ValueError(f"filesystem: expected a protocol of letters, digits, '+', '-' and '.', found {scheme!r}")
        # `file://` is the address of a file that tfseek opens itself.
        return f"local{text[4:]}" if scheme == "file" else text

    def start(self, queue: CallQueue) -> None:
        """Starts the threads that make calls. Rust calls it once in each process."""
        if self._process != os.getpid():
            # Connections and event loops do not survive a fork.
            old = self._fs
            try:
                self._fs = type(old)(*old.storage_args, **{**old.storage_options, "skip_instance_cache": True})
            except Exception as e:
                _, text = _Calls(old)._failure(e)
                queue.end(f"a forked process could not make the filesystem again: {text}")
                return
            self._process = os.getpid()
        calls = _Calls(self._fs)
        for number in range(self._threads):
            thread = threading.Thread(target=calls.serve, args=(queue, number), name=f"tfseek-fsspec-{number}", daemon=True)
            _running[thread] = queue
            thread.start()


def filesystem_of(given: Union[Filesystem, str]) -> Filesystem:
    """Returns a filesystem, or makes one of the protocol in a pickle, with the login of the environment."""
    if isinstance(given, Filesystem):
        return given
    try:
        import fsspec

        return Filesystem(fsspec.filesystem(given))
    except Exception as e:
        reason = type(e).__name__ if not isinstance(e, ImportError) else f"{type(e).__name__}: {e}"
        raise Error(
            f"a pickle has only the protocol of a filesystem, and fsspec.filesystem({given!r}) failed ({reason}): "
            "open the data set in each process, with filesystem="
        ) from None


def given(paths: Any, filesystem: Any) -> Optional[tuple[list[str], Filesystem]]:
    """Returns the URLs of shards and their filesystem. ``None`` for other names."""
    is_one = isinstance(paths, (str, os.PathLike)) or _is_open_file(paths)
    items: list[Any] = [paths] if is_one or not isinstance(paths, Iterable) else list(paths)
    files = [item for item in items if _is_open_file(item)]
    if not files:
        if filesystem is None:
            return None
        through = Filesystem(filesystem)
        return [through.url(item) for item in items], through
    if len(files) != len(items):
        raise TypeError("paths: expected only files of fsspec.open_files, found others among them")
    fs = files[0].fs if filesystem is None else filesystem
    for file in files:
        if file.compression is not None:
            raise ValueError(
                f"paths: expected files of fsspec.open_files(.., compression=None), found {file.compression!r}: tfseek unpacks shards itself"
            )
        if file.fs is not fs and file.fs != fs:
            raise ValueError("paths: expected files of one filesystem, found several")
    through = Filesystem(fs)
    return [through.url(fs.unstrip_protocol(file.path)) for file in files], through


class _Calls:
    """The calls of one filesystem in one process."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._secrets = sorted(set(_texts((fs.storage_args, fs.storage_options))), key=len, reverse=True)
        #: When the version of an object was last compared.
        self._checked: dict[str, float] = {}

    def serve(self, queue: CallQueue, number: int) -> None:
        """Makes calls until there will be none."""
        try:
            while (call := queue.next(number)) is not None:
                self._answer(queue, *call)
        finally:
            _running.pop(threading.current_thread(), None)

    def _answer(self, queue: CallQueue, number: int, name: str, arguments: Any) -> None:
        try:
            if name == "list":
                queue.listed(number, *self._list(*arguments))
            elif name == "small":
                queue.small(number, self._small(*arguments))
            else:
                queue.read(number, self._read(*arguments))
        except BaseException as e:
            queue.failed(number, *self._failure(e))

    def _list(self, prefix: str, deep: bool) -> tuple[list[tuple[str, Stamp]], list[str]]:
        fs, folder = self._fs, prefix[: prefix.rindex("/") + 1]
        path = fs._strip_protocol(folder)
        root, failure = path.rstrip("/"), None
        entries: list[Any] = []
        self._forget(path)
        try:
            # The name is missing in the details of some.
            found = fs.find(path, detail=True) if deep else {detail["name"]: detail for detail in fs.ls(path, detail=True)}
            entries = list(found.items())
        except (FileNotFoundError, NotADirectoryError):
            pass
        except Exception as e:
            failure = e
        objects: dict[str, Stamp] = {}
        folders = set()
        for name, detail in entries:
            name = name.rstrip("/")
            inside = name.lstrip("/") if not root else name[len(root) + 1 :] if name.startswith(f"{root}/") else ""
            url = folder + inside
            if not inside or not url.startswith(prefix):
                continue
            if detail.get("type") == "directory":
                folders.add(f"{url}/")
            elif deep or "/" not in inside:
                stamp = self._stamp(name, detail)
                if stamp is not None:
                    objects[url] = stamp
        if not prefix.endswith("/") and prefix not in objects and f"{prefix}/" not in folders:
            # Not all filesystems list folders.
            stamp = self._stamp_of(fs._strip_protocol(prefix))
            if stamp is not None:
                objects[prefix] = stamp
        if failure is not None and not objects:
            raise failure
        return list(objects.items()), list(folders)

    def _small(self, url: str, limit: int) -> Optional[tuple[bytes, Stamp]]:
        path = self._fs._strip_protocol(url)
        self._forget(path)
        stamp = self._stamp_of(path)
        if stamp is None:
            return None
        size = stamp[0]
        if size == 0 or size > limit:
            return b"", stamp
        found = self._fs.cat_ranges([path], [0], [size], on_error="return")[0]
        if isinstance(found, BaseException):
            raise found
        if len(found) != size:
            raise OSError(f"expected {size} bytes, found {len(found)}")
        return bytes(found), stamp

    def _read(self, ranges: Sequence[tuple[str, int, int, int, Optional[str]]]) -> list[Union[bytes, tuple[str, str]]]:
        urls, starts, ends, _, _ = (list(column) for column in zip(*ranges))
        paths = [self._fs._strip_protocol(url) for url in urls]
        try:
            found = list(self._fs.cat_ranges(paths, starts, ends, on_error="return"))
        except Exception as e:
            found = [e] * len(paths)
        results: list[Union[bytes, tuple[str, str]]] = []
        for answer, start, end in zip(found, starts, ends):
            if isinstance(answer, BaseException):
                results.append(self._failure(answer))
            elif len(answer) != end - start:
                results.append(("other", f"expected bytes {start} to {end}, found {len(answer)} bytes"))
            else:
                results.append(answer if isinstance(answer, bytes) else bytes(answer))
        # A version is compared after a read: the bytes are then of this version.
        now = time.monotonic()
        failed = {url for url, result in zip(urls, results) if isinstance(result, tuple)}
        replaced: dict[str, Optional[str]] = {}
        for url, path, (_, _, _, size, version) in zip(urls, paths, ranges):
            if url not in replaced and (url in failed or now - self._checked.get(url, -_CHECK) >= _CHECK):
                self._checked[url] = now
                replaced[url] = self._replaced(path, size, version)
        stale = {url: reason for url, reason in replaced.items() if reason is not None}
        return [("stale", stale[url]) if url in stale else result for url, result in zip(urls, results)]

    def _replaced(self, path: str, size: int, version: Optional[str]) -> Optional[str]:
        """Returns how an object differs from the one that was listed. ``None`` if it does not, or if it cannot be compared."""
        self._forget(path)
        try:
            detail = self._fs.info(path)
            found = detail.get("size")
            if found is not None and found != size:
                return f"the object was replaced: it had {size} bytes and has {found}"
            key = (version or "").partition(":")[0]
            now = self._version(path, detail, (key,)) if key else None
        except Exception:
            return None
        return None if now is None or now == version else "the object was replaced: its version is another"

    def _stamp_of(self, path: str) -> Optional[Stamp]:
        """Returns the stamp of an object, if there is one."""
        try:
            detail = self._fs.info(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if detail.get("type") == "directory" else self._stamp(path, detail)

    def _stamp(self, path: str, detail: Mapping[str, Any]) -> Optional[Stamp]:
        """Returns the stamp of an object. ``None`` if its size is unknown."""
        if detail.get("size") is None:
            detail = self._fs.info(path)
        size = detail.get("size")
        if size is None:
            return None
        if _ARCHIVES.intersection(_protocols(self._fs)):
            return int(size), None, None
        return int(size), _nanoseconds(detail), self._version(path, detail, (*_VERSIONS, "ukey"))

    def _version(self, path: str, detail: Mapping[str, Any], keys: Iterable[str]) -> Optional[str]:
        for key in keys:
            value = self._ukey(path, detail) if key == "ukey" else detail.get(key)
            text = "" if value is None else str(value).strip(chr(34))
            # Other bytes may have the same weak tag.
            if text and not text.startswith("W/"):
                # A program may have restored the time of a local file.
                changed = [str(detail[each]) for each in ("created", "ino") if key == "mtime" and each in detail]
                return ":".join([key, text, *changed])
        return None

    def _ukey(self, path: str, detail: Mapping[str, Any]) -> Optional[str]:
        """Returns the name that the filesystem gives to the content of an object, if another content has another one."""
        if _UNCHANGING.intersection(_protocols(self._fs)) or _SHARED.issuperset(detail):
            return None
        key: Optional[str] = self._fs.ukey(path)
        return key

    def _forget(self, path: str) -> None:
        """Drops what the filesystem remembers of a folder or object."""
        for each in (path, self._fs._parent(path)):
            self._fs.invalidate_cache(each)

    def _failure(self, e: BaseException) -> tuple[str, str]:
        """Returns the cause and the text of a failure, without secrets."""
        causes: tuple[tuple[type[BaseException], str], ...] = (
            (FileNotFoundError, "missing"),
            (PermissionError, "denied"),
            (NotImplementedError, "unsupported"),
        )
        cause = next((cause for kind, cause in causes if isinstance(e, kind)), "other")
        text = " ".join(str(e).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = re.sub(r"(\w://[^\s'\"?]*)\?[^\s'\")>]*", r"\1", text)
        text = re.sub(r"(\w://)[^\s/@'\"]*@", r"\1", text)
        return cause, f"{type(e).__name__}: {text[:500]}" if text else type(e).__name__


def _protocols(fs: Any) -> tuple[str, ...]:
    found = fs.protocol
    return (found,) if isinstance(found, str) else tuple(found)


def _nanoseconds(detail: Mapping[str, Any]) -> Optional[int]:
    """Returns the modification time of an object, if it is known."""
    for key in _TIMES:
        value = detail.get(key)
        if key == "Last-Modified" and isinstance(value, str):
            with contextlib.suppress(TypeError, ValueError):
                value = parsedate_to_datetime(value)
        found = None
        if isinstance(value, datetime):
            value = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
            found = round(value.timestamp() * 1e6) * 1000
        elif isinstance(value, (int, float)) and 0 <= value < 2**33:
            found = int(value * 1e9)
        if found is not None:
            # Servers that know no time send 1970, or one that is to come.
            return found if 0 < found < time.time_ns() + _LATEST else None
    return None


def _selecting(value: Any, depth: int = 0) -> Any:
    """Returns the options of a filesystem that may select its objects. Of objects that are no values it has the type."""
    if _is(value, "fsspec.spec", "AbstractFileSystem"):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        return [kind, _selecting(list(value.storage_args), depth + 1), _selecting(value.storage_options, depth + 1)]
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return value
    if depth <= 5 and isinstance(value, Mapping):
        items = ((str(name), each) for name, each in value.items() if str(name).lower() not in _LOGINS)
        return sorted((name, _selecting(each, depth + 1)) for name, each in items)
    if depth <= 5 and isinstance(value, (list, tuple)):
        return [_selecting(each, depth + 1) for each in value]
    return type(value).__qualname__


def _texts(value: Any, depth: int = 0) -> Iterable[str]:
    """Returns the texts in the options of a filesystem. They may be secret."""
    if depth > 5:
        return
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        if len(value) > 3:
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each, depth + 1)
    elif isinstance(value, (list, tuple, set)):
        for each in value:
            yield from _texts(each, depth + 1)
    elif _is(value, "fsspec.spec", "AbstractFileSystem"):
        yield from _texts((value.storage_args, value.storage_options), depth + 1)


def _is(value: Any, module: str, name: str) -> bool:
    """Returns true for an instance of a class of fsspec, which is then imported."""
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and isinstance(value, found)


def _is_open_file(value: Any) -> bool:
    return _is(value, "fsspec.core", "OpenFile")


#: The threads of this process, and the queues that they take calls from.
_running: dict[threading.Thread, CallQueue] = {}


@atexit.register
def _end() -> None:
    """Ends the threads that wait for a call, because they may not wait in Rust when the interpreter ends. Threads that wait for an answer get an error."""
    running = list(_running.items())
    for _, queue in running:
        queue.end("the interpreter ends")
    end = time.monotonic() + 0.5
    for thread, _ in running:
        thread.join(max(0.0, end - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)
