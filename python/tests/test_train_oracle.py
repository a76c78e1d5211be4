"""Comparison of ``tfseek.train`` with protobuf's own classes, where protobuf is installed: random programs, run on both.

A program keeps the objects that it has read and calls their methods, with valid and with invalid arguments. Each call must return the
same value or raise the same exception, and in the end all objects must be equal in bytes and in text. ``TFSEEK_SLOW=1`` runs 100,000
programs.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import struct
import warnings
from types import SimpleNamespace
from typing import Any, Callable, Optional

import numpy as np
import pytest

import tfseek.train

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format  # noqa: E402

PROGRAMS = 100_000 if os.environ.get("TFSEEK_SLOW") else 500
FIELD = descriptor_pb2.FieldDescriptorProto


def protobuf_classes() -> SimpleNamespace:
    """Builds protobuf's classes in a pool of their own, so that TensorFlow may be imported too."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")

    def field(message: Any, name: str, number: int, label: Any, kind: Any, type_name: str = "") -> Any:
        return message.field.add(name=name, number=number, label=label, type=kind, type_name=type_name or None)

    def message(name: str) -> Any:
        return file.message_type.add(name=name)

    def map_field(owner: Any, name: str, type_name: str) -> None:
        entry = owner.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        field(entry, "key", 1, FIELD.LABEL_OPTIONAL, FIELD.TYPE_STRING)
        field(entry, "value", 2, FIELD.LABEL_OPTIONAL, FIELD.TYPE_MESSAGE, f".tensorflow.{type_name}")
        field(owner, name, 1, FIELD.LABEL_REPEATED, FIELD.TYPE_MESSAGE, f".tensorflow.{owner.name}.{entry.name}")

    for name, kind in (("BytesList", FIELD.TYPE_BYTES), ("FloatList", FIELD.TYPE_FLOAT), ("Int64List", FIELD.TYPE_INT64)):
        value = field(message(name), "value", 1, FIELD.LABEL_REPEATED, kind)
        if name != "BytesList":
            value.options.packed = True
    feature = message("Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(["bytes_list", "float_list", "int64_list"], 1):
        type_name = "." + "tensorflow." + name.title().replace("_", "")
        field(feature, name, number, FIELD.LABEL_OPTIONAL, FIELD.TYPE_MESSAGE, type_name).oneof_index = 0
    map_field(message("Features"), "feature", "Feature")
    field(message("FeatureList"), "feature", 1, FIELD.LABEL_REPEATED, FIELD.TYPE_MESSAGE, ".tensorflow.Feature")
    map_field(message("FeatureLists"), "feature_list", "FeatureList")
    field(message("Example"), "features", 1, FIELD.LABEL_OPTIONAL, FIELD.TYPE_MESSAGE, ".tensorflow.Features")
    sequence = message("SequenceExample")
    field(sequence, "context", 1, FIELD.LABEL_OPTIONAL, FIELD.TYPE_MESSAGE, ".tensorflow.Features")
    field(sequence, "feature_lists", 2, FIELD.LABEL_OPTIONAL, FIELD.TYPE_MESSAGE, ".tensorflow.FeatureLists")

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = [message.name for message in file.message_type]
    return SimpleNamespace(
        **{name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tensorflow.{name}")) for name in names}
    )


OURS: Any = tfseek.train
THEIRS: Any = protobuf_classes()

#: For each message, its fields: the kind of the field, and the type of its messages.
FIELDS: dict[str, dict[str, tuple[str, str]]] = {
    "BytesList": {"value": ("values", "BytesList")},
    "FloatList": {"value": ("values", "FloatList")},
    "Int64List": {"value": ("values", "Int64List")},
    "Feature": {"bytes_list": ("one", "BytesList"), "float_list": ("one", "FloatList"), "int64_list": ("one", "Int64List")},
    "Features": {"feature": ("map", "Feature")},
    "FeatureList": {"feature": ("list", "Feature")},
    "FeatureLists": {"feature_list": ("map", "FeatureList")},
    "Example": {"features": ("one", "Features")},
    "SequenceExample": {"context": ("one", "Features"), "feature_lists": ("one", "FeatureLists")},
}
TYPES = sorted(FIELDS)

#: A value that is made for either side.
Recipe = Callable[[Any], Any]


def constant(value: Any) -> Recipe:
    return lambda side: value


class Draw:
    """Random arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def some(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self.one(0, 0, 1, 1, 2, 3, 5))]

    def value(self, kind: str, bad: float = 0.0) -> Any:
        """Returns a value of a list, which is invalid with the probability ``bad``."""
        if self.chance(bad):
            return {
                "Int64List": self.one(1.0, "1", None, 2**63, -(2**63) - 1, b"1", np.float32(1), np.uint64(2**63), [1], 1j),
                "FloatList": self.one("1", None, 1j, b"1", np.array([1.5]), np.array(1.0), [1.0], 10**400),
                "BytesList": self.one("a", 1, None, bytearray(b"a"), memoryview(b"a"), "\ud800", np.str_("a")),
            }[kind]
        if kind == "Int64List":
            edge = self.one(0, 1, 127, 128, 2**31, 2**63 - 1, -1, -(2**63), np.int64(-5), np.uint8(200), np.int32(7))
            return self.one(edge, self.random.randrange(128), self.random.getrandbits(64) - 2**63)
        if kind == "FloatList":
            edge = self.one(0.0, -0.0, 1, True, 0.1, 1e40, -1e40, 1e-45, 1e-50, float("nan"), float("inf"), 16777217, 2**80)
            bits = struct.unpack("<f", struct.pack("<I", self.random.getrandbits(32)))[0]
            return self.one(edge, bits, self.random.gauss(0, 1), np.float16(0.1), np.float64(3.3), np.float32(0.7), np.bool_(True))
        return self.one(b"", b"a", b"\x00\xff", b"\"'\\\n\r\t\x7f", "\u00e9".encode(), np.bytes_(b"b"), self.random.randbytes(self.one(3, 130)))

    def values(self, kind: str, bad: float = 0.0) -> Any:
        """Returns an argument of ``extend``."""
        if self.chance(bad):
            return self.one(5, None, "ab", [1.5, "a", None])
        found = self.some(lambda: self.value(kind, bad / 2))
        if self.chance(0.1) and kind == "Int64List":
            return self.one(np.arange(3), np.arange(3, dtype=np.uint8), range(2), self.one(np.array([1.5]), np.zeros((2, 2), np.int64)) if bad else [])
        if self.chance(0.1) and kind == "FloatList":
            return self.one(np.arange(3), np.array([1e40, 0.1, np.nan]), np.array([0.1], np.float16), np.zeros((2, 2), np.float32) if bad else [])
        return self.one(found, tuple(found))

    def key(self, bad: float = 0.0) -> Any:
        if self.chance(bad):
            return self.one(1, None, b"\xff", "\ud800", 1.5)
        return self.one("a", "a", "b", "c", "", "\u00e9\n", b"a", "key of more bytes", "\U0001f600\"'")

    def index(self) -> int:
        return int(self.one(0, 0, 1, -1, 2, -2, 7, -7))

    def slice(self) -> slice:
        edges = (None, None, 0, 1, 2, -1, 5)
        return slice(self.one(*edges), self.one(*edges), self.one(None, None, 1, 2, -1))

    def message(self, kind: str, bad: float = 0.0, depth: int = 0) -> Recipe:
        """Returns a recipe of a message: its constructor, with messages or dicts as arguments."""
        fields = self.fields(kind, bad)
        return lambda side: getattr(side, kind)(**{name: make(side) for name, make in fields.items()})

    def nested(self, kind: str, bad: float) -> Recipe:
        """Returns a recipe of a message, or of a dict of its fields."""
        if self.chance(bad / 4):
            wrong: Recipe = self.one(constant(1), constant([1]), constant("a"), self.message(self.one(*TYPES)))
            return wrong
        if self.chance(0.5):
            return self.message(kind, bad)
        fields = self.fields(kind, bad)
        return lambda side: {name: make(side) for name, make in fields.items()}

    def fields(self, kind: str, bad: float) -> dict[str, Recipe]:
        found: dict[str, Recipe] = {}
        for name, (sort, inner) in self.random.sample(sorted(FIELDS[kind].items()), len(FIELDS[kind])):
            if not self.chance(0.75 if kind != "Feature" else 0.45):
                continue
            if self.chance(0.03):
                found[name] = constant(None)
            elif sort == "values":
                found[name] = constant(self.values(kind, bad))
            elif sort == "one":
                found[name] = self.nested(inner, bad)
            elif sort == "list":
                items = self.some(lambda: self.nested(inner, bad))
                found[name] = lambda side, items=items: [make(side) for make in items]  # type: ignore[misc]
            else:
                entries = {self.key(bad / 4): self.nested(inner, bad) for _ in range(self.one(0, 1, 2, 3))}
                found[name] = lambda side, entries=entries: {key: make(side) for key, make in entries.items()}  # type: ignore[misc]
        if self.chance(bad / 4):
            found[self.one("valu", "kind", "ByteSize")] = constant(1)
        return found

    def serialized(self, kind: str, corrupt: bool) -> bytes:
        """Returns the bytes of a message, with unknown and repeated fields, and damaged if ``corrupt``."""
        data: bytes = b""
        for _ in range(self.one(1, 1, 2)):
            data += self.message(kind)(THEIRS).SerializeToString(deterministic=True)
            if self.chance(0.3):
                data += self.one(*UNKNOWN)
        if kind in ("Int64List", "FloatList") and self.chance(0.3):
            data += b"\x08\x05" if kind == "Int64List" else b"\x0d\x00\x00\xc0\x7f"
        if kind in ("Features", "FeatureLists") and self.chance(0.3):
            entry = b"".join(self.random.sample([b"\x0a\x01a", b"\x0a\x01b", b"\x12\x00", self.one(*UNKNOWN)], self.one(0, 1, 2, 3)))
            data += b"\x0a" + bytes([len(entry)]) + entry
        if not corrupt:
            return data
        damaged = bytearray(data)
        for _ in range(self.one(1, 1, 2)):
            at = self.random.randrange(len(damaged) + 1)
            change = self.one("flip", "flip", "cut", "insert", "byte")
            if change == "cut":
                del damaged[at : at + self.one(1, 2, 100)]
            elif change == "insert":
                damaged[at:at] = self.one(b"\x80", b"\xff", b"\x00", b"\x0b", b"\x0c", b"\x0a", *UNKNOWN)
            elif at < len(damaged):
                damaged[at] = damaged[at] ^ 1 << self.random.randrange(8) if change == "flip" else self.random.getrandbits(8)
        return bytes(damaged)


#: Unknown fields: of each wire type, groups, and known numbers with other wire types.
UNKNOWN = [
    b"\x20\x01",
    b"\x22\x01x",
    b"\x25\x01\x02\x03\x04",
    b"\x21\x01\x02\x03\x04\x05\x06\x07\x08",
    b"\x23\x24",
    b"\x23\x28\x01\x2b\x2c\x24",
    b"\x0b\x0c",
    b"\x09\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\xa0\x80\x00\x01",
    b"\xf8\xff\xff\xff\x0f\x01",
    b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x22\x81\x00x",
]


class Both:
    """An object of each side, and its sort: ``message``, ``values``, ``list`` or ``map``, and the type of its messages.

    ``parent`` is the object that it was read from, by the field ``name`` if that is a message.
    """

    def __init__(self, sort: str, kind: str, ours: Any, theirs: Any, parent: Optional[Both] = None, name: str = "") -> None:
        self.sort, self.kind, self.ours, self.theirs = sort, kind, ours, theirs
        self.parent, self.name = parent, name

    def is_within(self, other: Both) -> bool:
        """Returns true if the object was read from ``other``, or from a part of it."""
        return self.parent is not None and (self.parent is other or self.parent.is_within(other))

    def is_absent(self) -> bool:
        if self.sort == "message":
            return bool(self.name) and self.parent is not None and not self.parent.theirs.HasField(self.name)
        return len(self.theirs) == 0


def plain(value: Any) -> Any:
    """Returns a value in a form that both sides share."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return ("float", struct.pack("<d", value) if value == value else "nan")
    if isinstance(value, int):
        return ("int", value)
    if isinstance(value, bytes):
        return ("bytes", value)
    if hasattr(value, "SerializeToString"):
        return (type(value).__name__, value.SerializeToString(deterministic=True))
    if hasattr(value, "get_or_create"):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, plain(value.tolist()))
    return [plain(item) for item in value]


#: Exceptions of protobuf with other names here.
NAMES = {"DecodeError": "DataError"}


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return ("value", call())
    except Exception as e:
        return ("error", NAMES.get(type(e).__name__, type(e).__name__))


class Program:
    """A random sequence of calls on both sides."""

    def __init__(self, seed: int) -> None:
        self.draw = Draw(seed)
        self.objects: list[Both] = []
        self.log: list[str] = []

    def run(self) -> None:
        self.make()
        for _ in range(self.draw.one(3, 8, 15)):
            found = self.draw.one(*self.objects, *self.objects[-3:])
            if not getattr(self, f"step_{found.sort}")(found):
                return
        for found in self.objects:
            self.compare(found)

    def call(self, text: str, found: Both, call: Callable[[Any, Any], Any], keep: tuple[str, ...] = ()) -> bool:
        """Calls both sides, compares the outcomes, and keeps the returned objects. Returns false after an error in parsing."""
        self.log.append(f"{found.kind} {found.sort} {self.objects.index(found) if found in self.objects else '-'}: {text}")
        ours, theirs = outcome(lambda: call(found.ours, OURS)), outcome(lambda: call(found.theirs, THEIRS))
        assert ours[0] == theirs[0], (text, ours, theirs)
        if ours[0] == "error":
            assert ours == theirs, (text, ours, theirs)
            # Parts may have been merged.
            return bool(ours[1] != "DataError")
        if keep:
            same = [other for other in self.objects if other.theirs is theirs[1]]
            assert [other.ours is ours[1] for other in same] == [True] * len(same), text
            assert bool(same) == any(other.ours is ours[1] for other in self.objects), text
            if not same:
                parent = found if found in self.objects else None
                self.objects.append(Both(keep[0], keep[1], ours[1], theirs[1], parent, *keep[2:]))
        else:
            assert plain(ours[1]) == plain(theirs[1]), (text, ours[1], theirs[1])
        return True

    def merge(self, text: str, found: Both, call: Callable[[Any, Any], Any]) -> bool:
        """Calls a method that merges a message. Absent objects inside parts of the message are dropped before.

        protobuf no longer connects them with their message when the merge makes it present.
        """
        self.forget([o for o in self.objects if o.is_within(found) and o.parent is not found and o.is_absent()])
        # protobuf disconnects only one of the objects that were read and are absent. If the bytes have several fields of a oneof, it
        # connects the last one only.
        absent = [o for o in self.objects if o.parent is found and o.is_absent()]
        self.forget(absent if found.kind == "Feature" else absent[1:])
        return self.call(text, found, call)

    def forget(self, objects: list[Both]) -> None:
        """Drops objects, and those that were read from them."""
        self.objects = [o for o in self.objects if o not in objects and not any(o.is_within(other) for other in objects)]

    def make(self) -> None:
        draw = self.draw
        kind = draw.one(*TYPES, "Example", "Example", "Feature", "Features")
        start = Both("message", kind, None, None)
        if draw.chance(0.3):
            data = draw.serialized(kind, False)
            self.call(f"FromString({data!r})", start, lambda _, side: getattr(side, kind).FromString(data), ("message", kind))
        else:
            recipe = draw.message(kind)
            self.call("constructor", start, lambda _, side: recipe(side), ("message", kind))

    def argument(self, kind: str) -> Recipe:
        """Returns a recipe of a message of a kind, sometimes one of the objects, or of another type."""
        known = [found for found in self.objects if found.sort == "message" and found.kind == kind]
        if known and self.draw.chance(0.4):
            found = self.draw.one(*known)
            return lambda side: found.ours if side is OURS else found.theirs
        return self.draw.message(kind if self.draw.chance(0.95) else self.draw.one(*TYPES))

    def step_message(self, found: Both) -> bool:
        draw, kind = self.draw, found.kind
        fields = FIELDS[kind]
        name = draw.one(*fields) if draw.chance(0.9) else draw.one("kind", "no", b"feature", 1, None, *fields)
        do = draw.random.randrange(26)
        if do < 9:
            name = draw.one(*fields)
            sort, inner = fields[name]
            return self.call(f".{name}", found, lambda m, _: getattr(m, name), ("message" if sort == "one" else sort, inner, name))
        if do == 9:
            bad = draw.message(kind, 0.2)
            return self.call("constructor", found, lambda m, side: bad(side))
        if do == 10:
            return self.call(f"HasField({name!r})", found, lambda m, _: m.HasField(name))
        if do == 11:
            # protobuf makes an absent message present first, if it was read before, and so clears the others of its oneof.
            self.forget([o for o in self.objects if o.parent is found and o.name == name and o.is_absent()])
            return self.call(f"ClearField({name!r})", found, lambda m, _: m.ClearField(name))
        if do == 12:
            return self.call(f"WhichOneof({name!r})", found, lambda m, _: m.WhichOneof(draw_or(name)))
        if do == 13:
            return self.merge("Clear", found, lambda m, _: m.Clear()) if draw.chance(0.5) else True
        if do == 14:
            other = self.argument(kind)
            return self.merge("MergeFrom", found, lambda m, side: m.MergeFrom(other(side)))
        if do == 15:
            other = self.argument(kind)
            # Empty containers that have been changed are no longer connected in protobuf.
            self.forget([o for o in self.objects if o.parent is found and o.sort != "message" and o.is_absent()])
            return self.merge("CopyFrom", found, lambda m, side: m.CopyFrom(other(side)))
        if do in (16, 17):
            data = draw.serialized(kind, draw.chance(0.3))
            method = draw.one("ParseFromString", "MergeFromString")
            return self.merge(f"{method}({data!r})", found, lambda m, _: getattr(m, method)(draw_or(data)))
        if do == 18:
            data = draw.one("", None, 1, bytearray(b""), memoryview(b""))
            method = draw.one("ParseFromString", "MergeFromString", "FromString")
            return self.merge(f"{method}({data!r})", found, lambda m, _: getattr(m, method)(data))
        if do in (19, 20):
            data = draw.serialized(kind, draw.chance(0.7))
            self.call(f"FromString({data!r})", found, lambda m, side: getattr(side, kind).FromString(data))
            return True
        if do == 21:
            other = self.argument(kind)
            return self.call("==", found, lambda m, side: (m == other(side), m != other(side), m == 1))
        if do == 22:
            return self.call("SetInParent", found, lambda m, _: m.SetInParent())
        if do == 23:
            read = draw.one(
                lambda m, _: [m.ByteSize(), m.IsInitialized(), m.SerializePartialToString(deterministic=True)],
                lambda m, _: [(field.name, field.number, value) for field, value in m.ListFields()],
                lambda m, _: copy.deepcopy(m),
                lambda m, _: copy.copy(m),
                lambda m, _: hash(m),
                lambda m, _: m.DiscardUnknownFields(),
            )
            return self.call("read", found, read)
        if do == 24:
            change = draw.one(
                lambda m, _: setattr(m, draw_or(next(iter(fields))), 1),
                lambda m, _: setattr(m, "no", 1),
                lambda m, _: m.no,
                lambda m, _: m.kind,
                lambda m, _: delattr(m, next(iter(fields))),
                lambda m, _: pickle.loads(pickle.dumps(list(m.ListFields()) and m.__getstate__())),
            )
            return self.call("attribute", found, change)
        data = draw.serialized(kind, False)
        again = draw.serialized(kind, False)
        return self.call(
            f"== {data!r} {again!r}", found, lambda m, side: getattr(side, kind).FromString(data) == getattr(side, kind).FromString(again)
        )

    def step_values(self, found: Both) -> bool:
        draw, kind = self.draw, found.kind
        value, values, index, part = draw.value(kind, 0.15), draw.values(kind, 0.1), draw.index(), draw.slice()
        good = draw.some(lambda: draw.value(kind))
        n = len(found.theirs)
        # protobuf deletes a value for a slice of no values with a step.
        cut = part if len(range(*part.indices(n))) else slice(None)
        inside = index if -n <= index < n or n == 0 else -1
        calls: list[tuple[str, Callable[[Any, Any], Any]]] = [
            ("append", lambda v, _: v.append(value)),
            ("append", lambda v, _: v.append(value)),
            ("extend", lambda v, _: v.extend(values)),
            ("extend", lambda v, _: v.extend(iter(good))),
            ("extend itself", lambda v, _: v.extend(list(v))),
            ("insert", lambda v, _: v.insert(index, value)),
            ("pop", lambda v, _: v.pop(inside)),
            ("pop", lambda v, _: v.pop()),
            ("remove", lambda v, _: v.remove(value)),
            ("remove", lambda v, _: v.remove(v[0])),
            ("v[i]", lambda v, _: v[index]),
            ("v[a:b]", lambda v, _: v[part]),
            ("v[i] = x", lambda v, _: v.__setitem__(index, value)),
            # protobuf accepts no values for a slice of any step.
            ("v[a:b] = xs", lambda v, _: v.__setitem__(part, good) if good or part.step in (1, None) else None),
            ("v[a:b] = xs", lambda v, _: v.__setitem__(slice(None), good)),
            ("del v[i]", lambda v, _: v.__delitem__(index)),
            ("del v[a:b]", lambda v, _: v.__delitem__(cut)),
            ("v['a']", lambda v, _: v["a"]),
            ("v['a'] = x", lambda v, _: v.__setitem__("a", 1)),
            ("sort", lambda v, _: v.sort()),
            ("sort", lambda v, _: v.sort(reverse=True)),
            ("sort", lambda v, _: v.sort(key=repr)),
            ("sort", lambda v, _: v.sort(5) if len(v) else None),
            ("reverse", lambda v, _: v.reverse()),
            ("clear", lambda v, _: v.clear()),
            ("MergeFrom", lambda v, side: v.MergeFrom(getattr(side, kind)(value=good).value)),
            ("==", lambda v, _: (v == good, v == tuple(good), v == list(v), v != good, list(v) == v, v == 1, v == v)),
            ("== container", lambda v, side: v == getattr(side, kind)(value=good).value),
            ("in", lambda v, _: value in v),
            ("len", lambda v, _: (len(v), bool(v), list(v), list(reversed(v)))),
            ("repr", lambda v, _: (repr(v), str(v))),
            ("deepcopy", lambda v, _: copy.deepcopy(v)),
            ("pickle", lambda v, _: pickle.dumps(v)),
            ("array", lambda v, _: np.array(v, dtype=None if kind != "BytesList" else object)),
            ("hash", lambda v, _: hash(v)),
        ]
        text, call = draw.one(*calls)
        return self.call(f"{text} {value!r} {values!r} {index} {part} {good!r}", found, call)

    def step_list(self, found: Both) -> bool:
        draw = self.draw
        message, index, part = self.argument("Feature"), draw.index(), draw.slice()
        if message(OURS).__class__.__name__ != "Feature":
            # protobuf appends an empty message before it raises.
            message = draw.message("Feature")
        fields = draw.fields("Feature", 0.1)
        n = len(found.theirs)
        cut = part if len(range(*part.indices(n))) else slice(None)
        inside = index if -n <= index < n or n == 0 else -1
        several = [self.draw.message("Feature") for _ in range(2)]
        do = draw.random.randrange(22)
        if do < 3:
            return self.call("add", found, lambda v, side: v.add(**{k: make(side) for k, make in fields.items()}), ("message", "Feature"))
        if do < 6 and n:
            return self.call(f"[{inside}]", found, lambda v, _: v[inside], ("message", "Feature"))
        if do == 6 and n:
            return self.call(f"pop({inside})", found, lambda v, _: v.pop(inside), ("message", "Feature"))
        calls: list[tuple[str, Callable[[Any, Any], Any]]] = [
            # protobuf returns the message.
            ("append", lambda v, side: v.append(message(side)) and None),
            ("append", lambda v, side: v.append(draw_or(None))),
            ("extend", lambda v, side: v.extend([make(side) for make in several])),
            ("extend", lambda v, side: v.extend([message(side), 1])),
            ("extend", lambda v, side: v.extend(draw_or(5))),
            ("extend", lambda v, side: v.extend([])),
            ("insert", lambda v, side: v.insert(index, message(side))),
            ("pop", lambda v, _: v.pop(inside)),
            ("remove", lambda v, side: v.remove(message(side))),
            ("remove", lambda v, _: v.remove(1)),
            ("v[i]", lambda v, _: v[index]),
            ("v[a:b]", lambda v, _: v[part]),
            ("v[i] = x", lambda v, side: v.__setitem__(index, message(side))),
            ("del v[i]", lambda v, _: v.__delitem__(index)),
            ("del v[a:b]", lambda v, _: v.__delitem__(cut)),
            ("sort", lambda v, _: v.sort(key=lambda m: m.SerializeToString(deterministic=True))),
            ("sort", lambda v, _: v.sort()),
            ("reverse", lambda v, _: v.reverse()),
            ("clear", lambda v, _: v.clear()),
            ("MergeFrom", lambda v, side: v.MergeFrom(side.FeatureList(feature=[make(side) for make in several]).feature)),
            ("==", lambda v, side: (v == [message(side)], v == list(v), v != [], v == 1, v == v)),
            ("in", lambda v, side: message(side) in v),
            ("len", lambda v, _: (len(v), bool(v), list(v), list(reversed(v)))),
            ("pickle", lambda v, _: pickle.dumps(v)),
            ("add", lambda v, _: v.add(1)),
            ("hash", lambda v, _: hash(v)),
        ]
        text, call = draw.one(*calls)
        return self.call(f"{text} {index} {part}", found, call)

    def step_map(self, found: Both) -> bool:
        draw, kind = self.draw, found.kind
        owner = "Features" if kind == "Feature" else "FeatureLists"
        key, other = draw.key(0.1), draw.message(owner)
        name = next(iter(FIELDS[owner]))
        do = draw.random.randrange(20)
        if do < 7:
            good = draw.key()
            return self.call(f"[{good!r}]", found, lambda v, _: v[good], ("message", kind))
        if do == 7:
            good = draw.key()
            return self.call(f"get_or_create({good!r})", found, lambda v, _: v.get_or_create(good), ("message", kind))
        if do == 8:
            return self.call(f"pop({key!r})", found, lambda v, _: v.pop(key), ("message", kind))
        calls: list[tuple[str, Callable[[Any, Any], Any]]] = [
            ("[key]", lambda v, _: v[key]),
            ("get", lambda v, _: (v.get(key), v.get(key, 5))),
            # protobuf does not check names before the first message exists.
            ("in", lambda v, _: key in v if len(v) else None),
            ("del", lambda v, _: v.__delitem__(key)),
            ("pop", lambda v, _: v.pop(key, 5)),
            ("popitem", lambda v, _: v.popitem() if len(v) == 1 else None),
            ("clear", lambda v, _: v.clear()),
            ("len", lambda v, _: (len(v), bool(v), sorted(v), sorted(v.keys()), sorted((k, plain(m)) for k, m in v.items()))),
            ("values", lambda v, _: sorted(m.SerializeToString(deterministic=True) for m in v.values())),
            ("MergeFrom", lambda v, side: v.MergeFrom(getattr(other(side), name))),
            ("MergeFrom", lambda v, _: v.MergeFrom(draw_or({}))),
            ("MergeFrom", lambda v, _: v.MergeFrom(draw_or(None))),
            ("v[key] = x", lambda v, side: v.__setitem__("a", getattr(side, kind)())),
            ("setdefault", lambda v, _: v.setdefault("a")),
            ("update", lambda v, side: v.update({"a": getattr(side, kind)()})),
            ("update", lambda v, _: v.update({})),
            ("==", lambda v, side: (v == dict(v), v == {}, v == getattr(other(side), name), v == 1, v == v, v != {})),
            ("pickle", lambda v, _: pickle.dumps(v)),
        ]
        text, call = draw.one(*calls)
        return (self.merge if text == "MergeFrom" else self.call)(f"{text} {key!r}", found, call)

    def compare(self, found: Both) -> None:
        """Compares an object that a program has left."""
        ours, theirs = found.ours, found.theirs
        self.log.append(f"compare object {self.objects.index(found)}")
        assert plain(ours) == plain(theirs)
        if found.sort == "message":
            assert ours.ByteSize() == theirs.ByteSize()
            assert repr(ours) == str(ours)
            theirs_known = copy.deepcopy(theirs)
            theirs_known.DiscardUnknownFields()
            # As a number of Python, a signalling NaN is another one.
            if "nan" not in str(ours):
                assert plain(getattr(OURS, found.kind)(**ours.to_dict())) == plain(theirs_known)
            if str(ours) != str(theirs):
                # The entries of protobuf's maps are in no fixed sequence.
                assert sorted(str(ours).splitlines()) == sorted(str(theirs).splitlines())
                parsed = text_format.Parse(str(ours), getattr(THEIRS, found.kind)())
                assert parsed == theirs_known or "nan" in str(ours)


def draw_or(value: Any) -> Any:
    """Returns the value. Calls of it keep lambdas from being constant."""
    return value


@pytest.mark.filterwarnings("ignore")
def test_random_programs() -> None:
    first = int(os.environ.get("TFSEEK_SEED", 0))
    calls = 0
    for seed in range(first, first + PROGRAMS):
        program = Program(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.run()
        except Exception as e:
            raise AssertionError(f"TFSEEK_SEED={seed}:\n" + "\n".join(program.log)) from e
        calls += len(program.log)
    print(f"{PROGRAMS} programs, {calls} calls and comparisons")
