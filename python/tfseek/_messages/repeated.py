"""Repeated fields: lists of values, and lists of messages."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any, Callable, NoReturn, Optional, Protocol, TypeVar, Union, overload

import numpy as np
import numpy.typing as npt

from .scalars import Kind


class AnyMessage(Protocol):
    """The methods of messages that containers call."""

    def __init__(self, *args: Any, **fields: Any) -> None: ...
    def SetInParent(self) -> None: ...
    def CopyFrom(self, other: Any) -> None: ...


T = TypeVar("T")
M = TypeVar("M", bound=AnyMessage)


class Container:
    """The part of a container that makes its message present.

    ``_owner`` is a message that is not yet a part of its parent. It becomes one when the container changes.
    """

    __slots__ = ("_owner",)

    _owner: Optional[AnyMessage]

    def _set(self) -> None:
        """Makes the message present, before a change."""
        if self._owner is not None:
            self._owner.SetInParent()


class Repeated(Container, MutableSequence[T]):
    """Methods that both kinds of repeated fields share."""

    __slots__ = ("_items",)
    __hash__ = None  # type: ignore[assignment]

    _items: Any

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    @overload
    def __getitem__(self, key: int) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> list[T]: ...
    def __getitem__(self, key: Union[int, slice]) -> Union[T, list[T]]:
        found = self._items[_key(key)]
        return list(found) if isinstance(key, slice) else found

    def __delitem__(self, key: Union[int, slice]) -> None:
        self._set()
        del self._items[_key(key)]

    def pop(self, index: int = -1) -> T:
        """Removes the value at ``index`` and returns it."""
        self._set()
        value: T = self._items.pop(index)
        return value

    def remove(self, value: Any) -> None:
        """Removes the first value equal to ``value``, or raises ``ValueError``."""
        self._set()
        self._items.remove(value)

    def clear(self) -> None:
        """Removes all values."""
        if self._items:
            del self[:]

    def reverse(self) -> None:
        """Reverses the sequence of the values."""
        self._set()
        self._items.reverse()

    def MergeFrom(self, values: Iterable[Any]) -> None:
        """Appends the values of another container, or copies of its messages."""
        self.extend(values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (type(self), list)):
            return list(self) == list(other)
        return NotImplemented

    def __repr__(self) -> str:
        return repr(list(self._items))


class RepeatedScalar(Repeated[T]):
    """A list of numbers or byte strings. Values are converted as protobuf converts them; others raise ``TypeError`` or ``ValueError``."""

    __slots__ = ("_kind",)

    def __init__(self, kind: Kind[T], owner: Optional[AnyMessage] = None) -> None:
        self._kind = kind
        self._owner = owner
        self._items = kind.storage(())

    def append(self, value: Any) -> None:
        """Appends a value."""
        self._set()
        self._items.append(self._kind.checked(value))

    def insert(self, index: int, value: Any) -> None:
        """Inserts a value before ``index``."""
        self._set()
        self._items.insert(operator.index(index), self._kind.checked(value))

    def extend(self, values: Iterable[Any]) -> None:
        """Appends values. If one of them is invalid, none is appended."""
        self._set()
        found = self._kind.storage(values)
        self._items.extend(found)

    def __setitem__(self, key: Union[int, slice], value: Any) -> None:
        self._set()
        key = _key(key)
        # Raises for an index that does not exist, before the value is checked.
        self._items[key]
        self._items[key] = self._kind.storage(value) if isinstance(key, slice) else self._kind.checked(value)

    def sort(self, *, key: Optional[Callable[[T], Any]] = None, reverse: bool = False) -> None:
        """Sorts the values in place. The sort is stable."""
        if self._items:
            self[:] = sorted(self._items, key=key, reverse=reverse)

    def __array__(self, dtype: Optional[npt.DTypeLike] = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("values of a message are always copied to an array")
        return np.array(list(self._items) if isinstance(self._items, list) else self._items, dtype=dtype)

    def __reduce__(self) -> NoReturn:
        raise pickle.PickleError("a repeated field cannot be pickled: convert it to a list, or pickle its message")

    def __deepcopy__(self, memo: Any) -> RepeatedScalar[T]:
        copy = RepeatedScalar(self._kind)
        copy.extend(self)
        return copy


class RepeatedMessage(Repeated[M]):
    """A list of messages. Messages are copied into it, and cannot be assigned."""

    __slots__ = ("_type",)

    def __init__(self, type: type[M], owner: Optional[AnyMessage] = None) -> None:
        self._type = type
        self._owner = owner
        self._items = []

    def add(self, *args: Any, **fields: Any) -> M:
        """Appends a new message with ``fields``, and returns it."""
        message = self._type(*args, **fields)
        self._set()
        self._items.append(message)
        return message

    def append(self, value: M) -> None:
        """Appends a copy of a message."""
        copy = self._copy(value)
        self._set()
        self._items.append(copy)

    def insert(self, index: int, value: M) -> None:
        """Inserts a copy of a message before ``index``."""
        copy = self._copy(value)
        self._set()
        self._items.insert(operator.index(index), copy)

    def extend(self, values: Iterable[M]) -> None:
        """Appends copies of messages. Those before an invalid one are appended."""
        # A list of them first, because the container may be extended by itself.
        found = list(values)
        self._set()
        for value in found:
            self._items.append(self._copy(value))

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._set()
        self._items[_key(key)]
        raise TypeError("messages cannot be assigned: use add, append or CopyFrom")

    def sort(self, *, key: Optional[Callable[[M], Any]] = None, reverse: bool = False) -> None:
        """Sorts the messages in place by ``key``. The sort is stable."""
        if self._items:
            self._items.sort(key=key, reverse=reverse)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a repeated field cannot be pickled: pickle its message")

    def __deepcopy__(self, memo: Any) -> RepeatedMessage[M]:
        copy = RepeatedMessage(self._type)
        copy.extend(self)
        return copy

    def _copy(self, value: Any) -> M:
        copy = self._type()
        copy.CopyFrom(value)
        return copy


def _key(key: Any) -> Any:
    """Returns an index or a slice, or raises ``TypeError``."""
    if isinstance(key, slice):
        return key
    try:
        return operator.index(key)
    except TypeError:
        raise TypeError(f"expected an integer or a slice as the index, found {type(key).__name__}") from None
