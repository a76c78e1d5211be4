"""The base class of messages, and the fields that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Optional, TypeVar, Union, overload

from .._errors import DataError
from . import text, wire
from .maps import MessageMap
from .repeated import RepeatedMessage, RepeatedScalar
from .scalars import Kind

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
V = TypeVar("V")
M = TypeVar("M", bound="Message")


class Field(Generic[V]):
    """A field, as an attribute of its message."""

    #: the group of fields of which at most one is present
    oneof: Optional[str] = None
    #: true for a single message, which is present or absent
    has_presence = False

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = ""

    def __set_name__(self, owner: type[Message], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, message: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, message: Message, owner: Any) -> V: ...
    def __get__(self, message: Optional[Message], owner: Any) -> Union[Self, V]:
        return self if message is None else self.value(message)

    def __set__(self, message: Message, value: Any) -> NoReturn:
        raise AttributeError(f"field {self.name!r} cannot be assigned: change its value, or use CopyFrom")

    def value(self, message: Message) -> V:
        """Returns the container or the message of the field."""
        found: Optional[V] = message._values.get(self.name)
        if found is None:
            # A message that is no part of its parent yet becomes one when the container changes.
            found = message._values[self.name] = self.empty(message if message._link else None)
        return found

    def empty(self, owner: Optional[Message]) -> V:
        """Returns an empty container."""
        raise NotImplementedError

    def init(self, message: Message, value: Any) -> None:
        """Sets the field from an argument of the constructor."""
        raise NotImplementedError

    def merge(self, message: Message, other: V) -> None:
        """Merges a value of another message."""
        raise NotImplementedError

    def accepts(self, wire_type: int) -> bool:
        """Returns true for the wire types of the field."""
        return wire_type == wire.BYTES

    def decode(self, message: Message, data: bytes, pos: int, end: int, wire_type: int, depth: int) -> int:
        """Merges the field whose tag ends at ``pos``, and returns the position after it."""
        raise NotImplementedError

    def encode(self, value: V) -> bytes:
        """Returns the bytes of a value that is not empty."""
        raise NotImplementedError

    def lines(self, value: V, indent: str) -> Iterable[str]:
        """Returns the lines of a value in text format."""
        raise NotImplementedError

    def same(self, a: V, b: V) -> bool:
        """Returns true if two values are equal. NaNs are equal to NaNs of the same bits, and 0.0 differs from -0.0."""
        return bool(a == b)

    def plain(self, value: V) -> Any:
        """Returns the value as lists and dicts."""
        raise NotImplementedError


class ScalarField(Field[RepeatedScalar[T]]):
    """A list of values."""

    def __init__(self, number: int, kind: Kind[T]) -> None:
        super().__init__(number)
        self.kind = kind

    def empty(self, owner: Optional[Message]) -> RepeatedScalar[T]:
        return RepeatedScalar(self.kind, owner)

    def init(self, message: Message, value: Any) -> None:
        self.value(message).extend(value)

    def merge(self, message: Message, other: RepeatedScalar[T]) -> None:
        self.value(message)._items.extend(other._items[:])

    def accepts(self, wire_type: int) -> bool:
        return self.kind.accepts(wire_type)

    def decode(self, message: Message, data: bytes, pos: int, end: int, wire_type: int, depth: int) -> int:
        return self.kind.decode(self.value(message)._items, data, pos, end, wire_type)

    def encode(self, value: RepeatedScalar[T]) -> bytes:
        return self.kind.encode(value._items, self.number)

    def lines(self, value: RepeatedScalar[T], indent: str) -> Iterable[str]:
        return (f"{indent}{self.name}: {text.scalar(item)}" for item in value)

    def same(self, a: RepeatedScalar[T], b: RepeatedScalar[T]) -> bool:
        x, y = a._items, b._items
        return bool(x == y if isinstance(x, list) else x.tobytes() == y.tobytes())

    def plain(self, value: RepeatedScalar[T]) -> list[T]:
        return list(value)


class ListField(Field[RepeatedMessage[M]]):
    """A list of messages."""

    def __init__(self, number: int, type: type[M]) -> None:
        super().__init__(number)
        self.type = type

    def empty(self, owner: Optional[Message]) -> RepeatedMessage[M]:
        return RepeatedMessage(self.type, owner)

    def init(self, message: Message, value: Any) -> None:
        for item in value:
            _fill(self.value(message).add(), item)

    def merge(self, message: Message, other: RepeatedMessage[M]) -> None:
        self.value(message).extend(other)

    def decode(self, message: Message, data: bytes, pos: int, end: int, wire_type: int, depth: int) -> int:
        # As in protobuf, a message whose length is wrong is there, and empty.
        item = self.value(message).add()
        start, after = wire.read_length(data, pos, end)
        item._decode(data, start, after, depth + 1)
        return after

    def encode(self, value: RepeatedMessage[M]) -> bytes:
        return b"".join(wire.delimited(self.number, item._encoded()) for item in value)

    def lines(self, value: RepeatedMessage[M], indent: str) -> Iterable[str]:
        for item in value:
            yield from _block(self.name, item, indent)

    def plain(self, value: RepeatedMessage[M]) -> list[Any]:
        return [item.to_dict() for item in value]


class MapField(Field[MessageMap[M]]):
    """Messages by name. On the wire it is a list of messages with the fields ``key`` and ``value``."""

    def __init__(self, number: int, type: type[M]) -> None:
        super().__init__(number)
        self.type = type

    def empty(self, owner: Optional[Message]) -> MessageMap[M]:
        return MessageMap(self.type, owner)

    def init(self, message: Message, value: Any) -> None:
        found = self.value(message)
        for key in value:
            _fill(found[key], value[key])

    def merge(self, message: Message, other: MessageMap[M]) -> None:
        found = self.value(message)
        # Unlike `MessageMap.MergeFrom`, as in protobuf: objects that were read from the map before keep their values.
        found._items.update((name, item._copied()) for name, item in other._items.items())

    def decode(self, message: Message, data: bytes, pos: int, end: int, wire_type: int, depth: int) -> int:
        start, after = wire.read_length(data, pos, end)
        key, item, unknown = b"", None, b""
        if depth >= wire.MAX_DEPTH:
            raise wire.WireError(start, f"expected at most {wire.MAX_DEPTH} nested messages and groups")
        pos = start
        while pos < after:
            begin = pos
            number, wire_type, pos = wire.read_tag(data, pos, after)
            wire.check_number(number, begin)
            if number == 1 and wire_type == wire.BYTES:
                at, pos = wire.read_length(data, pos, after)
                key = data[at:pos]
                _decoded(key, at)
            elif number == 2 and wire_type == wire.BYTES:
                at, pos = wire.read_length(data, pos, after)
                item = item or self.type()
                item._decode(data, at, pos, depth + 2)
            else:
                pos = wire.skip(data, pos, after, number, wire_type, depth + 1)
                unknown += data[begin:pos]
        if unknown:
            # protobuf keeps an entry with unknown fields as one unknown field.
            message._unknown += wire.delimited(self.number, _entry(key, item, unknown))
        else:
            self.value(message)._items[key.decode()] = item or self.type()
        return after

    def encode(self, value: MessageMap[M]) -> bytes:
        # The order of protobuf in Python (docs/format.md): a name comes after the names that it is a prefix of. UTF-8 has no byte 255.
        names = sorted(value._items, key=lambda name: name.encode() + b"\xff")
        return b"".join(wire.delimited(self.number, _entry(name.encode(), value._items[name], b"")) for name in names)

    def lines(self, value: MessageMap[M], indent: str) -> Iterable[str]:
        for name in sorted(value._items):
            yield f"{indent}{self.name} {{"
            yield f"{indent}  key: {text.quoted(name)}"
            yield from _block("value", value._items[name], indent + "  ")
            yield f"{indent}}}"

    def same(self, a: MessageMap[M], b: MessageMap[M]) -> bool:
        return a._items == b._items

    def plain(self, value: MessageMap[M]) -> dict[str, Any]:
        return {name: item.to_dict() for name, item in value._items.items()}


class MessageField(Field[M]):
    """One message, which may be absent."""

    has_presence = True

    def __init__(self, number: int, type: type[M], oneof: Optional[str] = None) -> None:
        super().__init__(number)
        self.type = type
        self.oneof = oneof

    def value(self, message: Message) -> M:
        found: Optional[M] = message._values.get(self.name) or message._absent.get(self.name)
        if found is None:
            found = message._absent[self.name] = self.type()
            found._link = (message, self)
        return found

    def present(self, message: Message) -> M:
        """Returns the message, which is present afterwards."""
        found = self.value(message)
        found.SetInParent()
        return found

    def init(self, message: Message, value: Any) -> None:
        if isinstance(value, dict):
            self.present(message)._init(value)
        elif isinstance(value, self.type):
            self.present(message).MergeFrom(value)
        else:
            raise TypeError(f"field {self.name!r}: expected {self.type.__name__} or a dict, found {type(value).__name__}")

    def merge(self, message: Message, other: M) -> None:
        self.present(message).MergeFrom(other)

    def decode(self, message: Message, data: bytes, pos: int, end: int, wire_type: int, depth: int) -> int:
        # As in protobuf, a message whose length is wrong is there.
        found = self.present(message)
        start, after = wire.read_length(data, pos, end)
        found._decode(data, start, after, depth + 1)
        return after

    def encode(self, value: M) -> bytes:
        return wire.delimited(self.number, value._encoded())

    def lines(self, value: M, indent: str) -> Iterable[str]:
        return _block(self.name, value, indent)

    def plain(self, value: M) -> Any:
        return value.to_dict()


class Message:
    """A mutable message with the methods of protobuf's Python classes.

    Reading an absent message returns an empty one, which becomes present when it is changed. Unknown fields are kept when a message is
    parsed and serialized again.
    """

    __slots__ = ("__weakref__", "_absent", "_link", "_unknown", "_values")
    __hash__ = None  # type: ignore[assignment]

    _fields: ClassVar[tuple[Field[Any], ...]] = ()
    _by_name: ClassVar[dict[str, Field[Any]]] = {}
    _by_number: ClassVar[dict[int, Field[Any]]] = {}
    _oneofs: ClassVar[dict[str, list[str]]] = {}

    #: containers, and messages that are present
    _values: dict[str, Any]
    #: messages that were read and are absent
    _absent: dict[str, Any]
    #: for an absent message, its parent and its field there
    _link: Optional[tuple[Message, MessageField[Any]]]
    _unknown: bytes

    def __init_subclass__(cls) -> None:
        found = [field for field in vars(cls).values() if isinstance(field, Field)]
        cls._fields = tuple(sorted(found, key=lambda field: field.number))
        cls._by_name = {field.name: field for field in found}
        cls._by_number = {field.number: field for field in found}
        oneofs = {field.oneof for field in found if field.oneof}
        cls._oneofs = {oneof: [field.name for field in found if field.oneof == oneof] for oneof in oneofs}

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args:
            raise TypeError("expected no positional arguments")
        self._values = {}
        self._absent = {}
        self._link = None
        self._unknown = b""
        self._init(fields)

    def _init(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            field = self._by_name.get(name)
            if field is None:
                raise ValueError(f"expected a field of {type(self).__name__}, found {name!r}")
            if value is not None:
                field.init(self, value)

    # Presence.

    def SetInParent(self) -> None:
        """Makes the message a present part of its parent. Changes do this by themselves."""
        if self._link is None:
            return
        parent, field = self._link
        self._unlink()
        parent.SetInParent()
        for name in self_and_others(parent, field):
            parent._values.pop(name, None)
        parent._absent.pop(field.name, None)
        parent._values[field.name] = self

    def _unlink(self) -> None:
        """Ends the relation of an absent message to its parent."""
        self._link = None
        # All values of an absent message are containers.
        for container in self._values.values():
            container._owner = None

    def HasField(self, field_name: Union[str, bytes]) -> bool:
        """Returns true if a message, or one of the fields of a oneof, is present. Lists and maps raise ``ValueError``."""
        name = self._name(field_name)
        if name in self._oneofs:
            return self.WhichOneof(name) is not None
        if not self._by_name[name].has_presence:
            raise ValueError(f"expected a field with presence, found the repeated field {name!r}")
        return name in self._values

    def WhichOneof(self, oneof_group: Union[str, bytes]) -> Optional[str]:
        """Returns the name of the present field of a oneof, or ``None``."""
        name = self._name(oneof_group)
        if name not in self._oneofs:
            raise ValueError(f"expected the name of a oneof of {type(self).__name__}, found the field {name!r}")
        return next((field for field in self._oneofs[name] if field in self._values), None)

    def ClearField(self, field_name: Union[str, bytes]) -> None:
        """Removes the values of a field, or of a oneof. Objects that were read from it keep theirs."""
        self.SetInParent()
        name = self._name(field_name)
        if name in self._oneofs:
            present = self.WhichOneof(name)
            if present is None:
                return
            name = present
        self._values.pop(name, None)
        absent = self._absent.pop(name, None)
        if absent is not None:
            absent._unlink()

    def Clear(self) -> None:
        """Removes all values. Objects that were read from the message keep theirs."""
        self.SetInParent()
        for absent in self._absent.values():
            absent._unlink()
        self._values = {}
        self._absent = {}
        self._unknown = b""

    def _name(self, name: Any) -> str:
        """Returns the name of a field or oneof."""
        if isinstance(name, bytes):
            name = name.decode()
        if not isinstance(name, str) or (name not in self._by_name and name not in self._oneofs):
            raise ValueError(f"expected the name of a field of {type(self).__name__}, found {name!r}")
        return name

    def ListFields(self) -> list[tuple[Field[Any], Any]]:
        """Returns the present fields with their values, ordered by number. A field has a ``name`` and a ``number``."""
        values = self._values
        return [
            (field, values[field.name])
            for field in self._fields
            if field.name in values and (field.has_presence or len(values[field.name]))
        ]

    # Merging and copying.

    def MergeFrom(self, other: Self) -> None:
        """Merges a message of the same type: lists are appended, and messages of a map replaced."""
        self._check(other)
        self.SetInParent()
        if other is self:
            other = self._copied()
        for field, value in other.ListFields():
            field.merge(self, value)
        self._unknown += other._unknown

    def CopyFrom(self, other: Self) -> None:
        """Becomes a copy of a message of the same type."""
        self._check(other)
        if other is self:
            return
        self.SetInParent()
        # Messages that were read and are absent, and empty containers, stay parts of the message.
        for field, _ in self.ListFields():
            del self._values[field.name]
        self._unknown = b""
        self.MergeFrom(other)

    def _check(self, other: Any) -> None:
        if type(other) is not type(self):
            raise TypeError(f"expected a message of the type {type(self).__name__}, found {type(other).__name__}")

    def _copied(self) -> Self:
        copy = type(self)()
        copy.MergeFrom(self)
        return copy

    def __deepcopy__(self, memo: Any) -> Self:
        return self._copied()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), {"serialized": self.SerializePartialToString()}

    def __getstate__(self) -> dict[str, bytes]:
        return {"serialized": self.SerializePartialToString()}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.ParseFromString(state["serialized"])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if other is self:
            return True
        ours, theirs = self.ListFields(), other.ListFields()
        return (
            [field for field, _ in ours] == [field for field, _ in theirs]
            and all(field.same(a, b) for (field, a), (_, b) in zip(ours, theirs))
            and wire.same_unknown(self._unknown, other._unknown)
        )

    # Bytes.

    @classmethod
    def FromString(cls, serialized: Union[bytes, bytearray, memoryview]) -> Self:
        """Returns the message of serialized bytes. Raises :class:`tfseek.DataError` if they are malformed."""
        message = cls()
        message.MergeFromString(serialized)
        return message

    def ParseFromString(self, serialized: Union[bytes, bytearray, memoryview]) -> int:
        """Replaces the message by serialized bytes, and returns their length."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: Union[bytes, bytearray, memoryview]) -> int:
        """Merges serialized bytes, and returns their length. After an error a part may have been merged."""
        self.SetInParent()
        if not isinstance(serialized, (bytes, bytearray, memoryview)):
            raise TypeError(f"expected bytes, found {type(serialized).__name__}")
        data = bytes(serialized)
        try:
            self._decode(data, 0, len(data), 0)
        except wire.WireError as e:
            raise self._error(f"byte {e.offset}: {e.reason}", "malformed_proto") from None
        return len(data)

    def _decode(self, data: bytes, pos: int, end: int, depth: int) -> None:
        if depth > wire.MAX_DEPTH:
            raise wire.WireError(pos, f"expected at most {wire.MAX_DEPTH} nested messages and groups")
        # As in protobuf, unknown fields are kept once another field follows them, or the end, so an error inside an unknown field loses those
        # before it.
        unknown = pos
        while pos < end:
            begin = pos
            number, wire_type, pos = wire.read_tag(data, pos, end)
            wire.check_number(number, begin)
            field = self._by_number.get(number)
            if field is not None and field.accepts(wire_type):
                self._unknown += data[unknown:begin]
                unknown = pos = field.decode(self, data, pos, end, wire_type, depth)
            else:
                if wire_type == wire.END_GROUP or wire_type > wire.FIXED32:
                    self._unknown += data[unknown:begin]
                pos = wire.skip(data, pos, end, number, wire_type, depth)
        self._unknown += data[unknown:end]

    def SerializeToString(self, *, deterministic: Optional[bool] = None) -> bytes:
        """Returns the bytes of the message. They are always deterministic: maps are ordered by name."""
        encoded = self._encoded()
        if len(encoded) > wire.MAX_SIZE:
            raise self._error(f"expected at most {wire.MAX_SIZE} serialized bytes, found {len(encoded)}", "too_large")
        return encoded

    def SerializePartialToString(self, *, deterministic: Optional[bool] = None) -> bytes:
        """Returns the bytes of the message. No fields are required, so it is the same as :meth:`SerializeToString`."""
        return self.SerializeToString()

    def _encoded(self) -> bytes:
        return b"".join([field.encode(value) for field, value in self.ListFields()] + [self._unknown])

    def ByteSize(self) -> int:
        """Returns the number of serialized bytes."""
        return len(self._encoded())

    def IsInitialized(self, errors: Optional[list[str]] = None) -> bool:
        """Returns true, because no fields are required."""
        return True

    def DiscardUnknownFields(self) -> None:
        """Removes the unknown fields of the message and of those inside it."""
        self.SetInParent()
        self._discard_unknown()

    def _discard_unknown(self) -> None:
        self._unknown = b""
        for field, value in self.ListFields():
            if field.has_presence:
                value._discard_unknown()
            elif not isinstance(value, RepeatedScalar):
                for item in list(value.values() if isinstance(value, MessageMap) else value):
                    item._discard_unknown()

    def _error(self, reason: str, category: str) -> DataError:
        error = DataError(f"{type(self).__name__}: {reason}")
        error.category = category
        return error

    # Text.

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines(""))

    __repr__ = __str__

    def _lines(self, indent: str) -> Iterable[str]:
        for field, value in self.ListFields():
            yield from field.lines(value, indent)

    def to_dict(self) -> dict[str, Any]:
        """Returns the present fields as dicts and lists, which the constructor accepts: ``Example(**example.to_dict())``."""
        return {field.name: field.plain(value) for field, value in self.ListFields()}


def self_and_others(message: Message, field: Field[Any]) -> list[str]:
    """Returns the names of the fields that cannot be present together with ``field``, and its own."""
    return [field.name] if field.oneof is None else message._oneofs[field.oneof]


def _fill(message: Message, value: Any) -> None:
    """Sets the fields of a new message, from a dict or a message."""
    if isinstance(value, dict):
        message._init(value)
    else:
        message.CopyFrom(value)


def _block(name: str, message: Message, indent: str) -> Iterable[str]:
    yield f"{indent}{name} {{"
    yield from message._lines(indent + "  ")
    yield f"{indent}}}"


def _decoded(key: bytes, at: int) -> None:
    """Raises ``WireError`` for a name that is not UTF-8."""
    try:
        key.decode()
    except UnicodeDecodeError:
        raise wire.WireError(at, f"expected a name in UTF-8, found {key!r}") from None


def _entry(key: bytes, item: Optional[Message], unknown: bytes) -> bytes:
    """Returns an entry of a map."""
    encoded = wire.delimited(1, key) if key or not unknown else b""
    return encoded + (wire.delimited(2, item._encoded()) if item else b"") + unknown
