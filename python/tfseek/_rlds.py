"""Data sets whose records are episodes: their steps, and windows over them."""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, Union, cast

import numpy as np
import numpy.typing as npt

from . import _tfds
from ._choices import Nan, Pad, StatisticsStyle
from ._errors import SpecError
from ._progress import Progress
from ._tfds_features import FeaturesDict, features_of
from ._tfseek import Dataset as Records
from ._tfseek import EpisodesCore, StatisticsCore, TfdsDecoder, TfdsFeatures, WindowsCore, array_statistics, no_such_name
from ._warnings import raise_all

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._tfds import OpenOptions

#: Steps of a value relative to an anchor: one, or several.
Offsets = Union[int, Iterable[int]]
#: Ranges of steps by the number or the name of their episode, a JSON file of them, or a bool for each step.
Anchors = Union[Mapping[Any, Iterable[Sequence[int]]], str, "os.PathLike[str]", npt.NDArray[np.bool_]]

#: Records whose names are read together.
_NAMES = 1024
#: The records of episodes, their features, the path of the steps, and the title.
_Source = tuple[Records[Any], TfdsFeatures, Optional[str], str]


class Windows(_tfds.Dataset):
    """Records with the values of several steps around an anchor, made when they are read. :meth:`Episodes.windows` makes them.

    ``win[i]`` is a flat dict: a value for each key, ``KEY_is_pad`` for each key with several offsets, and ``_episode`` and ``_step``, the numbers of the
    anchor. ``win[10:20]`` and ``win[[4, 2]]`` are Windows. :class:`tfseek.Loader`, :class:`tfseek.Mix`, ``tfseek.torch`` and ``tfseek.grain`` take
    them like other data sets, with all their options.
    """

    __slots__ = ("_core", "_recipe")

    def __init__(
        self,
        parts: tuple[Records[Any], TfdsFeatures, TfdsDecoder, WindowsCore],
        name: str,
        recipe: tuple[Any, ...],
        seeds: tuple[int, int] = (0, 0),
    ) -> None:
        records, features, decoder, core = parts
        super().__init__(records, decoder, features, name, seeds)
        self._core, self._recipe = core, recipe

    def locate(self, i: int) -> tuple[int, int]:
        """Returns the numbers of the episode and of the step in it of the anchor of window ``i``. O(log n)."""
        return self._core.locate(self.records, operator.index(i))

    def filter(self, condition: str, *, progress: Progress = None) -> NoReturn:
        """Raises an error: the argument ``where`` of :meth:`Episodes.windows` selects episodes."""
        raise SpecError("expected a condition on episodes in the argument where of windows(), found filter() of windows")

    def _view(self, records: Records[Any]) -> Windows:
        return Windows((records, self._features, self._decoder, self._core), self._name, self._recipe, self._seeds)

    def _renamed(self, names: Mapping[str, str]) -> Windows:
        """Returns the same windows with other names of keys."""
        make, (source, keys, *rest) = self._recipe
        if make is not _windows_of:
            raise SpecError("rename: expected windows, found the steps of episodes")
        _check_names("rename", "key of the windows", names, [name for _, name, _ in keys])
        renamed = [(path, names.get(name, name), offsets) for path, name, offsets in keys]
        made = make(source, renamed, *rest)
        return made._view(made.records._restore(*self._identity()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_view_again, (self._recipe, *self._identity(), self._seeds))

    def _identity(self) -> tuple[str, Any]:
        """Returns the fingerprint of all windows, and the numbers of these."""
        _, (_, fingerprint, ids, *_) = cast(Any, self.records.__reduce__())
        return fingerprint, ids

    def __repr__(self) -> str:
        return f"tfseek.rlds.Windows({self._name}, windows={len(self)})"


class Episodes:
    """The episodes of a data set, and all their steps as one array. :func:`open` makes them.

    ``robot.episodes[3]`` is a record with its steps, and ``robot.steps[123_456]`` a step, as nested dicts. ``len(robot)`` is the number of episodes.
    """

    __slots__ = ("_core", "_source", "_steps", "episodes", "lengths")

    #: The records, one for each episode.
    episodes: _tfds.Dataset
    #: Number of steps of each episode, an int64 array.
    lengths: npt.NDArray[np.int64]

    def __init__(self, source: _Source, memory: bool = False, progress: Progress = None) -> None:
        records, features, steps, name = source
        self._core = EpisodesCore(records, features, steps, memory, progress)
        self._source: _Source = (records, features, steps, name)
        self._steps: Optional[Windows] = None
        decoder = features.decoder(None, _tfds.pictures_of(True), False)
        self.episodes = _tfds.Dataset(records, decoder, features, name)
        self.lengths = self._core.lengths

    @property
    def steps(self) -> Windows:
        """All steps, in the order of their episodes. A step is a nested dict of its values; only these are read of the record."""
        if self._steps is None:
            self._steps = _steps_of(self._source, self._core)
        return self._steps

    @property
    def features(self) -> FeaturesDict:
        """The features of an episode, as a tree."""
        return cast(FeaturesDict, features_of(self._source[1]))

    @property
    def warnings(self) -> list[Any]:
        """Warnings about tables of steps, each raised once when the data set is opened."""
        return self._core.warnings

    def __len__(self) -> int:
        return len(self._core)

    def locate(self, number: int) -> tuple[int, int]:
        """Returns the episode of a step, and the number of the step in it."""
        return self._core.locate(operator.index(number))

    def number(self, episode: int, step: int) -> int:
        """Returns the number of a step of an episode among all steps."""
        return self._core.number(operator.index(episode), operator.index(step))

    def windows(
        self,
        keys: Mapping[str, Offsets],
        *,
        pad: Pad = "repeat",
        anchors: Optional[Anchors] = None,
        key: Optional[str] = None,
        where: Optional[str] = None,
        decode: _tfds.Decode = True,
        progress: Progress = None,
    ) -> Windows:
        """Returns windows: for each anchor, a step, the values of keys at steps around it.

        >>> win = robot.windows({"observation/image_0": [-1, 0], "action": range(16), "language_instruction": 0})

        keys: offsets of each value. A key is a path in a step, such as ``"observation/state"``, or in the episode, with offset 0. One offset is the value
            of that step. Several are stacked, with a column ``KEY_is_pad``, bool, that is true for steps outside of the episode. They may be any
            integers, in any order.
        pad: values in place of steps outside of the episode: ``"repeat"``, the first or the last step; ``"zero"``, zeros, ``False`` and ``b""``;
            ``"none"``: steps with such a window are no anchors.
        anchors: the steps that have a window, by default all: ``{episode: [[start, end], ..]}``, the path of a JSON file of that form, or a bool array
            with an element for each step. Ranges are cut off at the ends of the episode. Episodes that are not named have no anchors.
        key: the name of an episode in ``anchors``: a text with paths of its values, such as ``"{episode_metadata/file_path}"``. By default its number. A name
            that no episode has is an error. A JSON file may also name episodes of other splits, unless it names none of these.
        where: a condition on the values of episodes, such as ``'episode_metadata/file_path contains "success"'``.
        decode: pictures. ``True``: arrays; ``False``: the bytes of their files; ``{key: False}`` or ``{key: tfseek.Image((224, 224), ..)}`` for single
            keys. What is random is drawn once for all frames of a key in a window, and once for several keys with one ``crop_with``.
        progress: display of a scan for ``where``; :func:`tfseek.open` describes it.

        Raises :class:`tfseek.SpecError` for keys that are no values, and for padding with zeros in place of values of an unknown size.
        """
        given = [(path, path, _offsets(path, offsets)) for path, offsets in keys.items()]
        ranges = self._ranges(anchors, key, where, progress)
        if isinstance(decode, Mapping):
            _check_names("decode", "key of the windows", decode, keys)
        return _windows_of(self._source, given, pad, ranges, _tfds.pictures_of(decode), self._core)

    def statistics(
        self,
        keys: Iterable[str],
        *,
        anchors: Optional[Anchors] = None,
        key: Optional[str] = None,
        where: Optional[str] = None,
        nan: Nan = "raise",
        progress: Progress = None,
    ) -> Statistics:
        """Returns mean, standard deviation (of the population), range, and the quantiles 0.01 and 0.99 of each dimension of values over steps.

        They are exact, in double precision, in memory that does not grow with the number of steps. Only the lists of these values are read.

        keys: paths of numbers in a step.
        anchors, key, where: the steps that count, as for :meth:`windows`.
        nan: ``"raise"``: NaN is an error; ``"skip"``: it is left out.
        progress: display of the number of steps; each is read five times.
        """
        skip_nan = _skips(nan)
        if isinstance(keys, (str, bytes)):
            raise TypeError(f"keys: expected a list of paths, found {keys!r}")
        ranges = self._ranges(anchors, key, where, None)
        return Statistics(self._core.statistics(list(keys), ranges, skip_nan, progress))

    def _ranges(self, anchors: Optional[Anchors], key: Optional[str], where: Optional[str], progress: Progress) -> Optional[list[tuple[int, int, int]]]:
        """Returns ranges of steps as ``(episode, start, end)``, or ``None`` for all steps."""
        if key is not None and (anchors is None or isinstance(anchors, np.ndarray)):
            raise TypeError("key: expected anchors by the names of episodes")
        ranges = None if anchors is None else self._anchored(anchors, key)
        if where is None:
            return ranges
        selected = self._core.select(self._source[1], where, progress)
        if ranges is None:
            return [(int(episode), 0, int(self.lengths[episode])) for episode in selected]
        chosen = set(selected.tolist())
        return [found for found in ranges if found[0] in chosen]

    def _anchored(self, anchors: Anchors, key: Optional[str]) -> list[tuple[int, int, int]]:
        if isinstance(anchors, np.ndarray):
            return self._masked(anchors)
        is_file = isinstance(anchors, (str, os.PathLike))
        if isinstance(anchors, (str, os.PathLike)):
            anchors = json.loads(pathlib.Path(anchors).expanduser().read_text(encoding="utf-8"))
        if not isinstance(anchors, Mapping):
            raise TypeError(f"anchors: expected a dict, the path of a JSON file, or a bool array, found {type(anchors).__name__}")
        if key is None:
            named = [(_episode(name, len(self)), ranges) for name, ranges in anchors.items()]
        else:
            names = self._names(key)
            named = [(episode, anchors[name]) for episode, name in enumerate(names) if name in anchors]
            if not (is_file and named):
                _check_names("anchors", "episode", anchors, names)
        return [(episode, max(start, 0), max(end, 0)) for episode, ranges in named for start, end in map(_range, ranges)]

    def _masked(self, mask: npt.NDArray[Any]) -> list[tuple[int, int, int]]:
        if mask.dtype != np.bool_ or mask.shape != (self._core.steps,):
            raise TypeError(f"anchors: expected a bool for each of {self._core.steps} steps, found {mask.dtype} of shape {mask.shape}")
        ranges, start = [], 0
        for episode, length in enumerate(self.lengths.tolist()):
            inside = np.concatenate(([False], mask[start : start + length], [False]))
            ends = np.flatnonzero(inside[1:] != inside[:-1]).tolist()
            ranges += [(episode, first, last) for first, last in zip(ends[::2], ends[1::2])]
            start += length
        return ranges

    def _names(self, key: str) -> list[Optional[str]]:
        """Returns the name of each episode. ``None`` for those without steps if it has a value of a step."""
        parts = re.split(r"{([^{}]*)}", key)
        paths = parts[1::2]
        names: list[Optional[str]] = [None] * len(self)

        def name(value: Callable[[str], Any]) -> str:
            return "".join(_text(value(part)) if k % 2 else part for k, part in enumerate(parts))

        if not paths:
            raise SpecError(f"key: expected a text with paths of values in braces, found {key!r}")
        # The values of an episode are those of its first step.
        firsts = [(episode, 0, 1) for episode in range(len(self))]
        keys = [(path, path, 0) for path in dict.fromkeys(paths)]
        values = _windows_of(self._source, keys, "repeat", firsts, _tfds.pictures_of(False), self._core)
        for start in range(0, len(values), _NAMES):
            for window in values.get_many(range(start, min(start + _NAMES, len(values)))):
                names[int(window["_episode"])] = name(window.__getitem__)
        empty = np.flatnonzero(self.lengths == 0).tolist()
        for episode, record in zip(empty, self.episodes.get_many(empty)):
            with contextlib.suppress(LookupError, TypeError):
                names[episode] = name(functools.partial(_value_at, record))
        return names

    def __reduce__(self) -> tuple[Any, ...]:
        return (Episodes, (self._source,))

    def __repr__(self) -> str:
        return f"tfseek.rlds.Episodes({self._source[3]}, episodes={len(self)}, steps={self._core.steps})"


class Statistics:
    """Statistics of values over steps: ``found["action"]["mean"]`` is a float64 array with an element for each dimension, in row-major order.

    The names are ``mean``, ``std`` (of the population), ``max``, ``min``, ``q01`` and ``q99`` (linear between neighbours).
    """

    __slots__ = ("_core", "_values")

    def __init__(self, core: StatisticsCore) -> None:
        self._core = core
        names = ("mean", "std", "max", "min", "q01", "q99")
        self._values = {key: {name: np.array(part) for name, part in zip(names, parts)} for key, parts in core.values()}

    def __getitem__(self, key: str) -> dict[str, npt.NDArray[np.float64]]:
        return self._values[key]

    def keys(self) -> list[str]:
        """Returns the names of the values."""
        return list(self._values)

    @property
    def num_transitions(self) -> int:
        """Number of steps."""
        return self._core.transitions

    @property
    def num_trajectories(self) -> int:
        """Number of episodes that have one of the steps. 0 for statistics of arrays."""
        return self._core.trajectories

    def to_json(self, style: StatisticsStyle = "openvla", names: Optional[Mapping[str, str]] = None) -> str:
        """Returns the JSON that ``"openvla"`` (``q01``, ``q99``) or ``"octo"`` (``p01``, ``p99``) reads.

        ``names`` gives values the names that these use: ``{"observation/state": "proprio"}``. For OpenVLA, ``proprio`` is zeros if there is none.
        """
        names = names or {}
        _check_names("names", "value", names, self.keys())
        return self._core.to_json(style, list(names.items()))

    def __repr__(self) -> str:
        return f"tfseek.rlds.Statistics({self.keys()}, transitions={self.num_transitions})"


def open(
    dir: Union[str, "os.PathLike[str]"],
    split: str = "train",
    *,
    steps: Optional[str] = None,
    progress: Progress = None,
    **options: Unpack[OpenOptions],
) -> Episodes:
    """Opens the episodes of a data set that TensorFlow Datasets prepared, such as those of Open X-Embodiment and DROID.

    >>> robot = tfseek.rlds.open("droid/1.0.1", "train[:95%]")

    dir: the folder of a version, or a folder of versions, as for :func:`tfseek.tfds.open`.
    split: a selection such as ``"train[:95%]"``.
    steps: path of the feature whose items are steps, if there are several.
    progress: display of the scan for tables of steps; :func:`tfseek.open` describes it.
    options: ``config``, ``version``, ``index``, ``index_dir``, ``verify``, ``io``, ``damage`` and the others of :func:`tfseek.tfds.open`.

    The first call scans the records once, and saves a table of the steps of each shard. Above the limit of the index, the number of steps is read from the
    heads of the records, and the table of an episode is made when it is first used, with a :class:`tfseek.Warning` that names
    ``tfseek index --steps``. With ``index="memory"`` no table is read or saved.
    """
    if options.setdefault("decode", False) is not False:
        raise TypeError("decode: it is an argument of windows()")
    builder = _tfds.open(dir, **options)
    records = builder.split(split)
    robot = Episodes((records.records, builder._features, steps, records._name), False, progress)
    raise_all(robot.warnings)
    return robot


def statistics(arrays: Mapping[str, Any], *, nan: Nan = "raise") -> Statistics:
    """Returns the statistics of arrays, such as values after a transform. The first dimension of each is the steps.

    >>> tfseek.rlds.statistics({"action": actions}).to_json(style="octo")

    ``nan`` is that of :meth:`Episodes.statistics`.
    """
    skip_nan = _skips(nan)
    rows = []
    for name, array in arrays.items():
        found = np.asarray(array)
        if found.ndim == 0 or found.dtype.kind not in "biuf":
            raise TypeError(f"{name}: expected an array of numbers with a row for each step, found {found.dtype} of shape {found.shape}")
        rows.append((name, np.ascontiguousarray(found.reshape(len(found), -1), dtype=np.float64)))
    return Statistics(array_statistics(rows, skip_nan))


def _windows_of(
    source: _Source,
    keys: list[tuple[str, str, Any]],
    pad: Pad,
    ranges: Optional[list[tuple[int, int, int]]],
    pictures: _tfds.Pictures,
    core: Optional[EpisodesCore] = None,
) -> Windows:
    """Returns windows over the episodes of a source."""
    recipe = (_windows_of, (source, keys, pad, ranges, pictures))
    core = Episodes(source)._core if core is None else core
    return Windows(core.windows(keys, pad, ranges, pictures, recipe), source[3], recipe)


def _steps_of(source: _Source, core: Optional[EpisodesCore] = None) -> Windows:
    """Returns the steps of the episodes of a source."""
    recipe = (_steps_of, (source,))
    core = Episodes(source)._core if core is None else core
    return Windows(core.step_records(recipe), f"{source[3]}, steps", recipe)


def _view_again(recipe: tuple[Any, ...], fingerprint: str, ids: Any, seeds: tuple[int, int]) -> Windows:
    """Returns pickled windows, whose records have not changed."""
    make, arguments = recipe
    made = cast(Windows, make(*arguments))
    made._seeds = seeds
    return made._view(made.records._restore(fingerprint, ids))


def _skips(nan: Nan) -> bool:
    if nan not in ("raise", "skip"):
        raise ValueError(f"nan: expected 'raise' or 'skip', found {nan!r}")
    return nan == "skip"


def _offsets(path: str, offsets: Any) -> Union[int, list[int]]:
    try:
        return operator.index(offsets)
    except TypeError:
        pass
    try:
        found = [operator.index(offset) for offset in offsets]
    except TypeError:
        raise TypeError(f"{path}: expected an offset or several, found {offsets!r}") from None
    if not found:
        raise SpecError(f"{path}: expected offsets, found none")
    return found


def _range(found: Any) -> tuple[int, int]:
    try:
        start, end = found
        return operator.index(start), operator.index(end)
    except (TypeError, ValueError):
        raise SpecError(f"anchors: expected ranges [start, end], found {found!r}") from None


def _check_names(argument: str, what: str, given: Iterable[Any], known: Iterable[Optional[str]]) -> None:
    """Refuses a name that is not known. The error has the nearest one."""
    found = dict.fromkeys(known)
    for name in given:
        if name not in found:
            raise SpecError(f"{argument}: {no_such_name(what, str(name), [each for each in found if each is not None])}")


def _episode(name: Any, episodes: int) -> int:
    """Returns the number of an episode, which JSON has as a text."""
    try:
        number = int(name) if isinstance(name, str) else operator.index(name)
    except (TypeError, ValueError):
        raise SpecError(f"anchors: expected the number of an episode, found {name!r}; names need the argument key") from None
    if not 0 <= number < episodes:
        raise SpecError(f"anchors: expected the number of one of {episodes} episodes, found {number}")
    return number


def _value_at(record: Any, path: str) -> Any:
    return functools.reduce(operator.getitem, path.split("/"), record)


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
