"""Map fields: messages by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, NoReturn, Optional, TypeVar, Union, overload

from .repeated import AnyMessage, Container

M = TypeVar("M", bound=AnyMessage)
D = TypeVar("D")
Key = Union[str, bytes]


class MessageMap(Container, MutableMapping[str, M], Generic[M]):
    """Messages by name. ``map[name]`` creates a missing message, as in protobuf; ``get`` and ``in`` do not.

    So ``pop`` of a missing name returns a new message, and never its default. Messages cannot be assigned:
    ``map[name].CopyFrom(message)`` copies one.
    """

    __slots__ = ("_items", "_type")

    def __init__(self, type: type[M], owner: Optional[AnyMessage] = None) -> None:
        self._type = type
        self._owner = owner
        self._items: dict[str, M] = {}

    def __getitem__(self, key: Key) -> M:
        name = name_of(key)
        found = self._items.get(name)
        if found is None:
            self._set()
            found = self._items[name] = self._type()
        return found

    def get_or_create(self, key: Key) -> M:
        """Returns ``map[key]``."""
        return self[key]

    @overload
    def get(self, key: Key, default: None = None) -> Optional[M]: ...
    @overload
    def get(self, key: Key, default: M) -> M: ...
    @overload
    def get(self, key: Key, default: D) -> Union[M, D]: ...
    def get(self, key: Key, default: Any = None) -> Any:
        """Returns the message of a name, or ``default``."""
        return self._items.get(name_of(key), default)

    def __setitem__(self, key: Key, value: Any) -> NoReturn:
        self._set()
        raise ValueError("messages cannot be assigned: use map[name].CopyFrom(message)")

    def setdefault(self, key: Key, default: Any = None) -> NoReturn:
        """Raises ``NotImplementedError``, as in protobuf. ``map[key]`` creates a missing message."""
        raise NotImplementedError("messages cannot be assigned: map[name] creates a missing one")

    def __delitem__(self, key: Key) -> None:
        self._set()
        name = name_of(key)
        if name not in self._items:
            raise KeyError(name)
        del self._items[name]

    def clear(self) -> None:
        """Removes all messages."""
        self._set()
        self._items.clear()

    def __contains__(self, key: object) -> bool:
        return name_of(key) in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def MergeFrom(self, other: MessageMap[M]) -> None:
        """Copies the messages of another map. Those of the same names become copies of them."""
        self._set()
        if not isinstance(other, MessageMap):
            raise (AttributeError if isinstance(other, Mapping) else TypeError)(f"expected a map of messages, found {type(other).__name__}")
        # If the other map is this one, nothing changes.
        for name, message in other._items.items():
            self[name].CopyFrom(message)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a map cannot be pickled or copied: pickle or copy its message")

    def __repr__(self) -> str:
        return repr(self._items)


def name_of(key: Any) -> str:
    """Returns a name as ``str``. It must have a form in UTF-8."""
    if isinstance(key, bytes):
        return key.decode()
    if not isinstance(key, str):
        raise TypeError(f"expected str or bytes as a name, found {type(key).__name__}")
    key.encode()
    return key
