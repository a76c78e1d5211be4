"""The messages of ``tf.train``: Example, SequenceExample and their parts, without TensorFlow and protobuf.

>>> example = tfseek.train.Example()
>>> example.features.feature["label"].int64_list.value.append(7)
>>> payload = example.SerializeToString()

They have the manners of protobuf's Python classes. :class:`tfseek.Example` is faster for reading: it is a view of a record's bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from ._messages.maps import MessageMap
from ._messages.message import ListField, MapField, Message, MessageField, ScalarField
from ._messages.repeated import RepeatedMessage, RepeatedScalar
from ._messages.scalars import BYTES, FLOATS, INT64S

if TYPE_CHECKING:
    # The fields of a message may be given as a dict, also in other dicts and lists.
    Fields = dict[str, Any]

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "Message",
    "MessageMap",
    "RepeatedMessage",
    "RepeatedScalar",
    "SequenceExample",
]


class BytesList(Message):
    """A list of byte strings. ``str`` is refused, as in protobuf."""

    __slots__ = ()
    value = ScalarField(1, BYTES)

    if TYPE_CHECKING:

        def __init__(self, *, value: Optional[Iterable[bytes]] = None) -> None: ...


class FloatList(Message):
    """A list of float32 values. Others are rounded."""

    __slots__ = ()
    value = ScalarField(1, FLOATS)

    if TYPE_CHECKING:

        def __init__(self, *, value: Optional[Iterable[Any]] = None) -> None: ...


class Int64List(Message):
    """A list of int64 values. Bools become 0 and 1, and floats raise ``TypeError``."""

    __slots__ = ()
    value = ScalarField(1, INT64S)

    if TYPE_CHECKING:

        def __init__(self, *, value: Optional[Iterable[Any]] = None) -> None: ...


class Feature(Message):
    """A list of one kind: ``WhichOneof("kind")`` is the name of the list, or ``None``."""

    __slots__ = ()
    bytes_list = MessageField(1, BytesList, "kind")
    float_list = MessageField(2, FloatList, "kind")
    int64_list = MessageField(3, Int64List, "kind")

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            bytes_list: Optional[Union[BytesList, Fields]] = None,
            float_list: Optional[Union[FloatList, Fields]] = None,
            int64_list: Optional[Union[Int64List, Fields]] = None,
        ) -> None: ...


class Features(Message):
    """Features by name."""

    __slots__ = ()
    feature = MapField(1, Feature)

    if TYPE_CHECKING:

        def __init__(self, *, feature: Optional[Mapping[str, Union[Feature, Fields]]] = None) -> None: ...


class Example(Message):
    """A record of named features."""

    __slots__ = ()
    features = MessageField(1, Features)

    if TYPE_CHECKING:

        def __init__(self, *, features: Optional[Union[Features, Fields]] = None) -> None: ...


class FeatureList(Message):
    """The features of one name, one per step."""

    __slots__ = ()
    feature = ListField(1, Feature)

    if TYPE_CHECKING:

        def __init__(self, *, feature: Optional[Iterable[Union[Feature, Fields]]] = None) -> None: ...


class FeatureLists(Message):
    """Feature lists by name."""

    __slots__ = ()
    feature_list = MapField(1, FeatureList)

    if TYPE_CHECKING:

        def __init__(self, *, feature_list: Optional[Mapping[str, Union[FeatureList, Fields]]] = None) -> None: ...


class SequenceExample(Message):
    """A record of named features and feature lists."""

    __slots__ = ()
    context = MessageField(1, Features)
    feature_lists = MessageField(2, FeatureLists)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            context: Optional[Union[Features, Fields]] = None,
            feature_lists: Optional[Union[FeatureLists, Fields]] = None,
        ) -> None: ...
