"""Episodes with the items of a ``LeRobotDataset``, for its policies and training scripts.

``import tfseek`` does not import this module. It requires the package ``torch``, and not ``lerobot``.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
import torch
import torch.utils.data

from ._errors import SpecError
from ._features import Image
from ._rlds import Episodes, Windows
from .torch import as_tensors

__all__ = ["Dataset", "Meta"]

#: Largest difference in seconds between a delta and a whole number of frames.
_TOLERANCE = 1e-4
#: Keys of pictures begin with it.
_PICTURES = "observation.images."
#: Names of an item that no key may have.
_OWN = ("timestamp", "frame_index", "episode_index", "index", "task_index", "task")
#: Episodes whose tasks are read together.
_TASKS = 1024


class Meta(NamedTuple):
    """The attributes of a data set that training scripts read."""

    fps: float
    """Frames per second."""
    features: dict[str, dict[str, Any]]
    """``dtype``, ``shape`` and ``names`` of each key. Those of a picture are ``[height, width, channels]``."""
    stats: dict[str, dict[str, Any]]
    """``mean``, ``std``, ``min``, ``max``, ``q01``, ``q99`` and ``count`` of each key with numbers, as arrays; of pictures those of ImageNet."""
    episodes: dict[str, list[int]]
    """``dataset_from_index`` and ``dataset_to_index`` of each episode."""
    tasks: list[str]
    """The texts of the tasks, by ``task_index``."""


class Dataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset whose items are those of a ``LeRobotDataset``, made of the steps of :func:`tfseek.rlds.open`.

    >>> data = tfseek.lerobot.Dataset(
    ...     robot,
    ...     {"observation.images.wrist": "observation/wrist_image_left", "observation.state": ["observation/joint_position", "observation/gripper_position"],
    ...      "action": "action"},
    ...     fps=15, delta_timestamps={"action": [k / 15 for k in range(16)]})

    robot: the episodes.
    names: the path of a value for each key, or a list of paths whose vectors are joined. Keys of pictures begin with ``observation.images.``.
    fps: frames per second.
    delta_timestamps: seconds relative to a frame, for keys with several values: whole frames, within 1e-4 s.
    task: path of the text of a step or an episode that is its task.
    drop_n_first_frames, drop_n_last_frames: frames of each episode that are no items.
    where: a condition on episodes, as for :meth:`tfseek.rlds.Episodes.windows`.
    image_transforms: called with each picture, a float tensor ``(C, H, W)``.
    decode: a :class:`tfseek.Image` for a key of pictures or for a path, such as ``{"observation.images.wrist": tfseek.Image((224, 224), flip=0.5)}``.
        Crops and colours are drawn once for an item, by :meth:`set_epoch`.

    An item has tensors: vectors float32, pictures float32 ``(C, H, W)`` from 0 to 1, single numbers without a dimension. A key with deltas has one more
    leading dimension, and ``KEY_is_pad``, bool. ``timestamp`` is float32; ``frame_index``, ``episode_index``, ``index`` and ``task_index`` are
    int64; ``task`` is a ``str``.

    It can be pickled, for the workers of a ``DataLoader``.
    """

    def __init__(
        self,
        robot: Episodes,
        names: Mapping[str, Union[str, Sequence[str]]],
        fps: float,
        *,
        delta_timestamps: Optional[Mapping[str, Sequence[float]]] = None,
        task: str = "language_instruction",
        drop_n_first_frames: int = 0,
        drop_n_last_frames: int = 0,
        where: Optional[str] = None,
        image_transforms: Optional[Callable[[torch.Tensor], torch.Tensor]] = None,
        decode: Optional[Mapping[str, Image]] = None,
    ) -> None:
        if not fps > 0:
            raise ValueError(f"fps: expected a positive number, found {fps!r}")
        first, last = operator.index(drop_n_first_frames), operator.index(drop_n_last_frames)
        if first < 0 or last < 0:
            raise ValueError(f"expected numbers of frames to drop, found {first} and {last}")
        self._paths = {key: [paths] if isinstance(paths, str) else list(paths) for key, paths in names.items()}
        for key, paths in self._paths.items():
            if key in _OWN or not paths:
                raise SpecError(f"names: {key!r}: expected a key with a path that is no own name of items ({', '.join(_OWN)})")
        deltas = {key: _frames(key, seconds, fps) for key, seconds in (delta_timestamps or {}).items()}
        for key in deltas:
            if key not in self._paths:
                raise SpecError(f"delta_timestamps: expected a key of names, found {key!r}")
        self.fps, self._robot, self._task, self._deltas = fps, robot, task, deltas
        self._transforms = image_transforms
        self._images = {path: self._image(name, image) for name, image in (decode or {}).items() for path in self._paths.get(name, [name])}
        keys = {path: deltas.get(key, 0) for key, paths in self._paths.items() for path in paths}
        for key, paths in self._paths.items():
            if any(keys[path] != deltas.get(key, 0) for path in paths):
                raise SpecError(f"names: {key!r}: expected a path with one list of deltas, found one with two")
        lengths = robot.lengths
        anchors = None
        if first or last:
            anchors = {e: [[first, max(int(n) - last, 0)]] for e, n in enumerate(lengths)}
        self._win: Windows = robot.windows({**keys, task: 0}, anchors=anchors, where=where, decode=self._images)
        self._starts = np.concatenate(([0], np.cumsum(lengths)))
        self._numbers: Optional[dict[str, int]] = None
        self._meta: Optional[Meta] = None

    def set_epoch(self, epoch: int, seed: Optional[int] = None) -> None:
        """Sets what random crops and colours are drawn from, with the number of the item. Both begin with 0. Workers that are kept do not learn of it."""
        self._win.set_epoch(epoch, seed)

    def __len__(self) -> int:
        return len(self._win)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._item(self._win[operator.index(index)])

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Returns several items, whose records are read together. PyTorch's ``DataLoader`` calls it for a batch."""
        return [self._item(window) for window in self._win.get_many([operator.index(index) for index in indices])]

    def _image(self, name: str, image: Image) -> Image:
        """Returns a spec with the path of the picture that it is cut as."""
        if not isinstance(image, Image) or image.mean is not None or image.geometry is not None:
            raise TypeError(f"decode: {name}: expected a tfseek.Image without mean and std, which policies apply, and without geometry, found {image!r}")
        return dataclasses.replace(image, crop_with=self._paths.get(image.crop_with or "", [image.crop_with])[0])

    def _item(self, window: dict[str, Any]) -> dict[str, Any]:
        item: dict[str, Any] = {}
        for key, paths in self._paths.items():
            values = [_tensor(window[path], key, key in self._deltas, self._images.get(path)) for path in paths]
            value = values[0] if len(values) == 1 else torch.cat([_vector(value, key in self._deltas) for value in values], -1)
            if key.startswith(_PICTURES) and self._transforms is not None:
                value = torch.stack([self._transforms(picture) for picture in value]) if key in self._deltas else self._transforms(value)
            item[key] = value
            if key in self._deltas:
                item[f"{key}_is_pad"] = torch.from_numpy(np.array(window[f"{paths[0]}_is_pad"]))
        episode, frame = int(window["_episode"]), int(window["_step"])
        task = _text(window[self._task])
        item["timestamp"] = torch.tensor(frame / self.fps, dtype=torch.float32)
        item["frame_index"] = torch.tensor(frame)
        item["episode_index"] = torch.tensor(episode)
        item["index"] = torch.tensor(int(self._starts[episode]) + frame)
        item["task_index"] = torch.tensor(self._task_numbers().get(task, -1))
        item["task"] = task
        return item

    def _task_numbers(self) -> dict[str, int]:
        """Returns the numbers of tasks, in the order of the episodes whose first step has them."""
        if self._numbers is None:
            firsts = {e: [[0, 1]] for e in range(len(self._robot))}
            texts = self._robot.windows({self._task: 0}, anchors=firsts)
            found: dict[str, int] = {}
            for start in range(0, len(texts), _TASKS):
                for window in texts.get_many(range(start, min(start + _TASKS, len(texts)))):
                    found.setdefault(_text(window[self._task]), len(found))
            self._numbers = found
        return self._numbers

    @property
    def num_frames(self) -> int:
        """Number of items."""
        return len(self)

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return len(self._robot)

    @property
    def features(self) -> dict[str, dict[str, Any]]:
        """``dtype``, ``shape`` and ``names`` of each key."""
        return self.meta.features

    @property
    def meta(self) -> Meta:
        """The attributes that training scripts read. The first access computes the statistics."""
        if self._meta is None:
            features, stats = self._facts()
            ends = self._starts.tolist()
            episodes = {"dataset_from_index": ends[:-1], "dataset_to_index": ends[1:]}
            self._meta = Meta(self.fps, features, stats, episodes, list(self._task_numbers()))
        return self._meta

    def _facts(self) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Returns the features and the statistics of all keys."""
        features: dict[str, dict[str, Any]] = {}
        stats: dict[str, dict[str, Any]] = {}
        pictures = {key for key in self._paths if key.startswith(_PICTURES)}
        numbers = [path for key, paths in self._paths.items() if key not in pictures for path in paths]
        plain = self._robot.windows({path: 0 for paths in self._paths.values() for path in paths}, decode=self._images)
        if len(plain) == 0:
            raise SpecError("expected episodes with steps, found none")
        sample = plain[0]
        numbers = [path for path in numbers if np.asarray(sample[path]).dtype.kind in "biuf"]
        found = self._robot.statistics(numbers) if numbers else None
        for key, paths in self._paths.items():
            value = _tensor(sample[paths[0]], key, False, self._images.get(paths[0]))
            if key in pictures:
                channels, height, width = value.shape
                features[key] = {"dtype": "image", "shape": (height, width, channels), "names": ["height", "width", "channels"]}
                ones = np.ones((channels, 1, 1))
                mean, std = _IMAGENET
                stats[key] = {"mean": np.array(mean)[:, None, None], "std": np.array(std)[:, None, None], "min": 0 * ones, "max": ones, "count": np.array([len(plain)])}
                continue
            if isinstance(value, str):
                features[key] = {"dtype": "string", "shape": (1,), "names": None}
                continue
            width = sum(int(np.prod(np.shape(sample[path]), dtype=int)) for path in paths)
            dtype = "bool" if value.dtype == torch.bool else "int64" if value.dtype == torch.int64 else "float32"
            features[key] = {"dtype": dtype, "shape": (width,), "names": None}
            if found is not None:
                parts = [found[path] for path in paths]
                stats[key] = {name: np.concatenate([part[name] for part in parts]) for name in ("mean", "std", "min", "max", "q01", "q99")}
                stats[key]["count"] = np.array([found.num_transitions])
        return features, stats

    def __repr__(self) -> str:
        return f"tfseek.lerobot.Dataset({self.num_frames} frames, {self.num_episodes} episodes, {list(self._paths)})"


#: Mean and standard deviation of ImageNet's channels.
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def _frames(key: str, seconds: Sequence[float], fps: float) -> list[int]:
    """Returns deltas in frames."""
    frames = [round(delta * fps) for delta in seconds]
    for delta, frame in zip(seconds, frames):
        if abs(delta - frame / fps) > _TOLERANCE:
            raise ValueError(f"delta_timestamps: {key}: expected whole frames of {1 / fps:.6g} s, found {delta!r} s")
    if not frames:
        raise ValueError(f"delta_timestamps: {key}: expected deltas, found none")
    return frames


def _tensor(value: Any, key: str, has_deltas: bool, image: Optional[Image] = None) -> Any:
    """Returns a value in the form that items have."""
    if isinstance(value, bytes):
        return _text(value)
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return [_text(text) for text in array.reshape(-1).tolist()]
    if key.startswith(_PICTURES):
        if array.ndim != 3 + has_deltas or (image is None and array.dtype != np.uint8):
            raise SpecError(f"{key}: expected pictures of uint8, found {array.dtype} of shape {array.shape}")
        pixels = as_tensors(array)
        if image is None or image.layout == "hwc":
            pixels = pixels.movedim(-1, -3).contiguous()
        most = {np.uint8: 255, np.uint16: 65535}.get(array.dtype.type)
        return pixels.to(torch.float32) if most is None else pixels.to(torch.float32) / most
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind in "iu":
        array = array.astype(np.int64)
    if array.ndim > has_deltas and array.shape[has_deltas:] == (1,):
        array = array[..., 0]
    return torch.from_numpy(np.array(array))


def _vector(value: torch.Tensor, has_deltas: bool) -> torch.Tensor:
    """Returns a value with a last dimension, as float32."""
    found = value.to(torch.float32)
    return found[..., None] if found.ndim == has_deltas else found


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
