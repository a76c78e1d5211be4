"""The features of a data set of ``tfseek.tfds``: a tree that can be read, printed and displayed."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterator, Mapping
from typing import Any, Optional, Union

import numpy as np

from ._choices import StoredDType
from ._errors import SpecError
from ._features import FixedLenFeature, FixedLenSequenceFeature
from ._show import _table
from ._tfseek import TfdsFeatures, no_such_name

#: Features in a display, and names of classes.
_NAMES, _CLASSES = 100, 20

Spec = Union[FixedLenFeature, FixedLenSequenceFeature]


class Leaf:
    """A feature with values.

    kind: the name of its class, such as ``"Image"``, ``"ClassLabel"``, ``"Tensor"`` or ``"BBoxFeature"``; of another class the whole name.
    dtype, shape: those of the values. ``None`` in a shape is any size, and the dtype of byte strings is ``"string"``.
    encoding: ``"none"``, ``"bytes"`` or ``"zlib"``: how numbers are stored.
    optional: true if records may lack it.
    description: what the data set says of it, such as the meaning of each value. ``""`` if it says nothing.
    num_classes: number of classes of a label, or ``None``.
    box_format, sample_rate: of boxes (``"REL_YXYX"``) and of audio.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.kind: str = fields["kind"]
        self.dtype: str = fields["dtype"]
        self.shape: tuple[Optional[int], ...] = fields["shape"]
        self.encoding: str = fields["encoding"]
        self.optional: bool = fields["optional"]
        self.description: str = fields["description"]
        self.num_classes: Optional[int] = fields["num_classes"]
        self.box_format: Optional[str] = fields["box_format"]
        self.sample_rate: Optional[int] = fields["sample_rate"]
        self._text: str = fields["text"]
        self._names: Optional[list[str]] = fields["names"]
        self._is_known: bool = fields["is_known"]
        self._is_file: bool = self.kind in ("Image", "LabeledImage") or fields["lazy"]

    @property
    def names(self) -> Optional[list[str]]:
        """Names of the classes of a label, or ``None``. Without a file of names they are numbers."""
        if self._names is not None or self.num_classes is None:
            return None if self._names is None else list(self._names)
        return [str(number) for number in range(self.num_classes)]

    def __repr__(self) -> str:
        return self._text


class Sequence:
    """Any number of items of one feature, or ``length`` of them. ``steps``: they are the steps of an episode."""

    def __init__(self, feature: Feature, length: Optional[int], steps: bool) -> None:
        self.feature = feature
        self.length = length
        self.steps = steps

    def __getitem__(self, name: str) -> Any:
        """Returns the feature ``name`` of the items, which are dicts."""
        if isinstance(self.feature, Leaf):
            raise KeyError(name)
        return self.feature[name]

    def __repr__(self) -> str:
        return _text(self, "")


class FeaturesDict(Mapping[str, Any]):
    """Features by name. ``features["objects"]["bbox"]`` is a feature of the items of a sequence."""

    def __init__(self, features: dict[str, Feature]) -> None:
        self._features = features

    def __getitem__(self, name: str) -> Any:
        try:
            return self._features[name]
        except KeyError:
            raise KeyError(no_such_name("feature", str(name), list(self._features))) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return _text(self, "")

    def _repr_html_(self) -> str:
        return features_html(self)


Feature = Union[FeaturesDict, Sequence, Leaf]


def features_html(feature: Feature) -> str:
    """Returns a table of the leaves."""

    def line(path: str, levels: tuple[Sequence, ...], leaf: Leaf) -> list[str]:
        inner = "".join(f"{_sequence(level)}(" for level in levels) + repr(leaf) + ")" * len(levels)
        names = leaf._names or []
        cells = (path, inner, ", ".join(names[:_CLASSES]) + (", .." if len(names) > _CLASSES else ""), leaf.description)
        return [html.escape(cell) for cell in cells]

    lines = [line(*each) for each in leaves(feature)]
    return _table(["feature", "type", "names", "description"], lines[:_NAMES], len(lines) - _NAMES)


@functools.lru_cache(maxsize=16)
def features_of(native: TfdsFeatures) -> Feature:
    """Returns the tree of features. It is kept, because it may have many names."""
    return _feature(native.tree())


def _feature(tree: Any) -> Feature:
    kind, *parts = tree
    if kind == "dict":
        return FeaturesDict({name: _feature(part) for name, part in parts[0]})
    if kind == "sequence":
        return Sequence(_feature(parts[0]), parts[1], parts[2])
    return Leaf(parts[0])


def _sequence(sequence: Sequence) -> str:
    name = "Dataset" if sequence.steps else "Sequence"
    return name if sequence.length is None else f"{name}[{sequence.length}]"


def _text(feature: Feature, indent: str) -> str:
    if isinstance(feature, Leaf):
        return repr(feature)
    if isinstance(feature, Sequence):
        return f"{_sequence(feature)}({_text(feature.feature, indent)})"
    if not feature:
        return "FeaturesDict({})"
    names = list(feature)
    lines = [f"{indent}    {name!r}: {_text(feature[name], indent + '    ')},\n" for name in names[:_NAMES]]
    more = f"{indent}    .. ({len(names) - _NAMES} more)\n" if len(names) > _NAMES else ""
    return "FeaturesDict({\n" + "".join(lines) + more + indent + "})"


def leaves(feature: Feature, path: str = "", levels: tuple[Sequence, ...] = ()) -> Iterator[tuple[str, tuple[Sequence, ...], Leaf]]:
    """Yields the path of each leaf, the sequences around it, outermost first, and the leaf."""
    if isinstance(feature, Leaf):
        yield path, levels, feature
    elif isinstance(feature, Sequence):
        yield from leaves(feature.feature, path, (*levels, feature))
    else:
        for name, inner in feature.items():
            yield from leaves(inner, f"{path}/{name}" if path else name, levels)


def names_of(feature: Feature, path: str) -> list[str]:
    """Returns the names of the classes of a label."""
    found = {leaf_path: leaf for leaf_path, _, leaf in leaves(feature)}
    names = found[path].names if path in found else None
    if names is None:
        labels = [label for label, leaf in found.items() if leaf.num_classes is not None]
        message = f"names: expected the path of a class label ({', '.join(labels) or 'there are none'}), found {path!r}"
        error = SpecError(message)
        error.feature = path if path in found else None
        raise error
    return names


def specs_of(feature: Feature) -> dict[str, Spec]:
    """Returns the specs of the stored features, as ``tf_example_spec`` of TFDS has them."""
    specs: dict[str, Spec] = {}
    for path, levels, leaf in leaves(feature):
        specs.update(_specs(path, [level.length for level in levels], leaf))
    return specs


def _specs(path: str, lengths: list[Optional[int]], leaf: Leaf) -> Iterator[tuple[str, Spec]]:
    shape = list(leaf.shape)
    dtype = _stored(leaf.dtype)
    if leaf.kind == "Video":
        lengths, shape = [*lengths, shape[0]], shape[1:]
    if leaf._is_file or leaf.kind == "Video":
        yield from _levels(path, lengths, [], "string", None)
    elif leaf.encoding == "none":
        yield from _levels(path, lengths, shape, dtype, _default(leaf) if leaf.optional else None)
    elif shape.count(None) > 1:
        yield from _levels(f"{path}/shape", lengths, [len(shape)], "int64", None)
        yield from _levels(f"{path}/value", lengths, [], "string", None)
    else:
        yield from _levels(path, lengths, [], "string", None)


def _levels(path: str, lengths: list[Optional[int]], shape: list[Optional[int]], dtype: StoredDType, default: Any) -> Iterator[tuple[str, Spec]]:
    if len(lengths) > 1:
        yield f"{path}/ragged_flat_values", FixedLenSequenceFeature(shape, dtype, allow_missing=True)
        for k in range(len(lengths) - 1):
            yield f"{path}/ragged_row_lengths_{k}", FixedLenSequenceFeature([], "int64", allow_missing=True)
        return
    sizes = [*lengths, *shape]
    if None in sizes:
        yield path, FixedLenSequenceFeature([size for size in sizes if size is not None], dtype, allow_missing=True)
    else:
        yield path, FixedLenFeature(sizes, dtype, default_value=default)


def _stored(dtype: str) -> StoredDType:
    return "string" if dtype == "string" else "float32" if "float" in dtype else "int64"


def _default(leaf: Leaf) -> Any:
    """Returns the values of an optional feature that a record does not have, as TFDS stores them: the lowest of the type."""
    shape = [size for size in leaf.shape if size is not None]
    if leaf.dtype == "string":
        return np.full(shape, b"", dtype=object)
    if leaf.dtype == "float64":
        return np.full(shape, -np.inf, dtype=np.float32)
    lowest = {"bool": 0, "bfloat16": -3.3895314e38, "float16": -65504.0, "float32": np.finfo(np.float32).min}.get(leaf.dtype)
    if lowest is None:
        # Lists have no unsigned numbers. The lowest of them is 0.
        lowest = np.iinfo(leaf.dtype).min
    return np.full(shape, lowest, dtype=_stored(leaf.dtype))
