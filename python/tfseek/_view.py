"""``tfseek.view``: records in the browser."""

from __future__ import annotations

import atexit
import html
import json
import os
import shlex
import threading
import webbrowser
from collections.abc import Mapping
from typing import Any, Optional, Union

from . import _tfseek
from ._features import Features, schema_of
from ._open import Paths, open, path_list
from ._tfds import records_of
from ._tfseek import Dataset

#: Shards that a command names. More are abbreviated.
_SHARDS = 20
#: Viewers that were not closed. They end with the process.
_running: list[View] = []


class View:
    """A viewer that :func:`tfseek.view` started. It serves from threads of this process until :meth:`close`."""

    def __init__(self, core: _tfseek.ViewCore) -> None:
        self._core = core
        #: The link to the page. It contains the token that requests need.
        self.url = core.url
        #: The port of 127.0.0.1 that the viewer listens on.
        self.port = core.port
        self._closed = threading.Event()
        _running.append(self)

    def close(self) -> None:
        """Ends the viewer and its threads. The page shows then that the viewer is gone."""
        self._core.close()
        self._closed.set()
        if self in _running:
            _running.remove(self)

    def wait(self) -> None:
        """Waits until the viewer is closed by another thread, or until Ctrl-C, which closes it."""
        try:
            # A wait without a limit cannot be interrupted on all systems.
            while not self._closed.wait(1):
                pass
        finally:
            self.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<View {'closed' if self._closed.is_set() else self.url}>"

    def _repr_html_(self) -> str:
        if self._closed.is_set():
            return "<p>The viewer is closed.</p>"
        link = html.escape(self.url)
        return f'<p><a href="{link}" target="_blank" rel="noreferrer">{link}</a></p>'


def view(
    source: Union[Dataset[Any], Paths],
    *,
    baseline: Union[Dataset[Any], Paths, None] = None,
    where: Optional[str] = None,
    roles: Optional[Mapping[str, Any]] = None,
    spec: Optional[Features] = None,
    port: Optional[int] = None,
    browser: bool = False,
    threads: Optional[int] = None,
    storage_options: Optional[Mapping[str, str]] = None,
) -> View:
    """Shows records in the browser, as the command ``tfseek view`` does, and returns the viewer with its link.

    ``source`` is a dataset, or paths as for :func:`tfseek.open`. The viewer runs in threads of this process, reads only, and listens on 127.0.0.1.

    baseline: second dataset, or its paths, to compare with.
    where: condition of the records that the page begins with.
    roles: roles of features, such as ``{"image": "picture", "label": "y"}``. Other roles are guessed.
    spec: the spec of a :class:`tfseek.Loader` with pictures, which training steps show as they are fed.
    port: port to listen on; 0: any free one. Default: the first free one from 7717 on.
    browser: if true, the page is opened in a browser on this machine.
    threads: number of threads of a search or of statistics. By default one per processor, at most 8.
    storage_options: options of the stores of URLs among the paths, as for :func:`tfseek.open`.
    """
    sets = [_named(source, storage_options)]
    if baseline is not None:
        sets.append(_named(baseline, storage_options))
    core = _tfseek.view(sets, where, None if roles is None else json.dumps(dict(roles)), port, threads, None if spec is None else schema_of(spec).to_json())
    viewer = View(core)
    if browser:
        # Other users of the machine can see the arguments of the browser.
        webbrowser.open(core.one_time_url)
    return viewer


def _named(source: Union[Dataset[Any], Paths], storage: Optional[Mapping[str, str]]) -> tuple[Dataset[Any], str, str]:
    """Returns a dataset, its title, and the paths as words of a shell."""
    source = records_of(source)
    if isinstance(source, Dataset):
        shards = [os.fspath(path) for path in source.shards]
        paths = [str(path) for path in shards[:_SHARDS]]
        more = f" .. ({len(shards)} shards)" if len(shards) > _SHARDS else ""
        first = os.path.basename(paths[0]) if paths else "memory"
        title = first if len(shards) < 2 else f"{first} .. ({len(shards)} shards)"
        return source, title, shlex.join(paths) + more
    paths = path_list(source)
    given = [_tfseek.shown_path(path) for path in paths]
    # One of two sets may be local.
    is_remote = any("://" in path for path in paths)
    return open(paths, storage_options=storage if is_remote else None), " ".join(given), shlex.join(given)


@atexit.register
def _close_all() -> None:
    for viewer in list(_running):
        viewer.close()
