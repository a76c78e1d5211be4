"""``tfseek.train``: messages with the manners of protobuf's classes. ``test_train_oracle.py`` compares the two."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tfseek
from tfseek import train


def example() -> train.Example:
    return train.Example(
        features=train.Features(
            feature={
                "label": train.Feature(int64_list=train.Int64List(value=[7])),
                "name": train.Feature(bytes_list={"value": [b"a\n\xff"]}),
                "weights": {"float_list": {"value": [0.1, 2]}},
            }
        )
    )


def test_bytes_are_those_of_the_builder() -> None:
    ours = example().SerializeToString()
    assert ours == bytes(tfseek.Example({"name": b"a\n\xff", "label": 7, "weights": np.array([0.1, 2], np.float32)}))
    assert ours == example().SerializeToString(deterministic=True) == example().SerializePartialToString()
    assert example().ByteSize() == len(ours)
    names = ["", "a", "ab", "abc", "b", "\u00e9"]
    keys = train.Features(feature={name: {} for name in names})
    built = tfseek.Example({name: None for name in names})
    assert train.Example(features=keys).SerializeToString() == bytes(built)


def test_text() -> None:
    assert str(example()) == repr(example()) == (
        'features {\n  feature {\n    key: "label"\n    value {\n      int64_list {\n        value: 7\n      }\n    }\n  }\n'
        '  feature {\n    key: "name"\n    value {\n      bytes_list {\n        value: "a\\n\\377"\n      }\n    }\n  }\n'
        '  feature {\n    key: "weights"\n    value {\n      float_list {\n        value: 0.1\n        value: 2\n      }\n    }\n  }\n}\n'
    )
    assert str(train.Example()) == ""
    floats = train.FloatList(value=[float("nan"), float("-inf"), -0.0, 1e-45, 123456.7, 16777217])
    assert [line.split()[1] for line in str(floats).splitlines()] == ["nan", "-inf", "-0", "1.4013e-45", "123456.703", "16777216"]


def test_reading_does_not_set_and_changing_does() -> None:
    ex = train.Example()
    assert len(ex.features.feature) == 0 and "a" not in ex.features.feature and ex.features.feature.get("a") is None
    assert not ex.HasField("features") and ex.features is ex.features
    ex.features.feature["a"].int64_list.value.append(3)
    assert ex.HasField("features") and ex.features.feature["a"].WhichOneof("kind") == "int64_list"
    ex.features.feature["a"].float_list.SetInParent()
    assert ex.features.feature["a"].WhichOneof("kind") == "float_list"
    assert ex.features.feature["a"].int64_list.value == []
    ex.ClearField("features")
    assert ex == train.Example() and not ex.SerializeToString()


def test_parsing() -> None:
    data = example().SerializeToString()
    ex = train.Example()
    assert ex.ParseFromString(data) == len(data) and ex == example() == train.Example.FromString(memoryview(data))
    assert ex.MergeFromString(data) == len(data) and ex == example()
    lists = train.Int64List.FromString(b"\x08\x01\x0a\x02\x02\x03\x08\x04")
    assert lists.value == [1, 2, 3, 4]
    assert train.Feature.FromString(b"\x1a\x03\x0a\x01\x01\x12\x00").WhichOneof("kind") == "float_list"
    unknown = train.Example.FromString(b"\x20\x01" + data + b"\x23\x24")
    assert unknown.SerializeToString() == data + b"\x20\x01\x23\x24" and unknown != example()
    unknown.DiscardUnknownFields()
    assert unknown == example()


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x02\x0a", b"\x0b", b"\x0c", b"\x00", b"\x0a\x05\x0a\x03\x0a\x01\xff", b"\x0b" * 101 + b"\x0c" * 101])
def test_malformed_bytes(data: bytes) -> None:
    with pytest.raises(tfseek.DataError, match="^Example: byte [0-9]+: expected") as e:
        train.Example.FromString(data)
    assert e.value.category == "malformed_proto"


def test_every_truncation_parses_or_raises() -> None:
    data = example().SerializeToString()
    for n in range(len(data)):
        try:
            assert train.Example.FromString(data[:n]).SerializeToString() is not None
        except tfseek.DataError:
            pass


@pytest.mark.parametrize(
    "message, values, error",
    [
        (train.Int64List, [1.0], TypeError),
        (train.Int64List, ["1"], TypeError),
        (train.Int64List, [2**63], ValueError),
        (train.Int64List, np.array([2**63], np.uint64), ValueError),
        (train.Int64List, np.array([1.0]), TypeError),
        (train.Int64List, 5, TypeError),
        (train.Int64List, np.ma.array([1, 2], mask=[False, True]), ValueError),
        (train.FloatList, ["1"], TypeError),
        (train.FloatList, [np.array([1.0])], TypeError),
        (train.FloatList, [10**400], OverflowError),
        (train.BytesList, ["a"], TypeError),
        (train.BytesList, b"ab", TypeError),
    ],
)
def test_invalid_values(message: Any, values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        message(value=values)


def test_bools_are_ints() -> None:
    assert train.Int64List(value=[True, np.bool_(True), np.int8(-1), False]).value == [1, 1, -1, 0]
    assert train.Int64List(value=np.array([True, False])).value == [1, 0]


def test_numbers_of_arrays_are_those_of_lists() -> None:
    for array in (np.arange(-3, 300), np.array([2**62 + 1, -(2**63)]), np.arange(5, dtype=np.uint8)):
        assert train.Int64List(value=array) == train.Int64List(value=array.tolist())
        assert train.FloatList(value=array) == train.FloatList(value=array.tolist())
    floats = np.array([0.1, 1e300, -0.0, np.inf, 1e-46])
    assert train.FloatList(value=floats) == train.FloatList(value=floats.tolist())
    assert np.array(train.FloatList(value=floats).value).dtype == np.float32
    assert np.array(train.Int64List(value=[1]).value).dtype == np.int64


def test_lists() -> None:
    values = train.Int64List(value=[3, 1, 2]).value
    values.insert(1, 9)
    values.extend(i for i in (5, 6))
    assert values.pop() == 6 and values[1:3] == [9, 1] and values[-1] == 5 and 9 in values
    values[0:2] = [4]
    del values[0]
    values.sort(reverse=True)
    assert values == [5, 2, 1] and copy.deepcopy(values) == values
    with pytest.raises(pickle.PickleError):
        pickle.dumps(values)
    with pytest.raises(TypeError):
        values.extend([1, "a"])
    assert values == [5, 2, 1]
    features = train.FeatureList(feature=[{}]).feature
    features.add(int64_list={"value": [1]}).int64_list.value.append(2)
    with pytest.raises(TypeError):
        features[0] = train.Feature()
    assert copy.deepcopy(features) == features and features[1].int64_list.value == [1, 2]


def test_maps() -> None:
    features = train.Features().feature
    assert features["a"] is features.get_or_create(b"a") and len(features) == 1
    with pytest.raises(ValueError):
        features["a"] = train.Feature()
    with pytest.raises(TypeError):
        features[1]  # type: ignore[index]
    features.MergeFrom(example().features.feature)
    assert sorted(features) == ["a", "label", "name", "weights"] and features == dict(features.items())
    assert features.pop("label").int64_list.value == [7] and "label" not in features
    del features["a"]
    with pytest.raises(KeyError):
        del features["a"]


def test_copies() -> None:
    for other in (copy.copy(example()), copy.deepcopy(example()), pickle.loads(pickle.dumps(example())), train.Example(**example().to_dict())):
        assert other == example()
        other.features.feature["label"].int64_list.value[0] = 8
        assert other != example()
    assert example().to_dict()["features"]["feature"]["label"] == {"int64_list": {"value": [7]}}
    ex = train.Example()
    ex.CopyFrom(example())
    ex.MergeFrom(example())
    assert ex == example()
    label = train.Feature(int64_list={"value": [1]})
    label.MergeFrom(train.Feature(int64_list={"value": [2]}))
    assert label.int64_list.value == [1, 2]


def test_invalid_names() -> None:
    ex: Any = example()
    for call in (
        lambda: ex.HasField("x"),
        lambda: ex.ClearField("x"),
        lambda: ex.WhichOneof("features"),
        lambda: train.Int64List().HasField("value"),
        lambda: train.Int64List(valu=[1]),  # type: ignore[call-arg]
    ):
        with pytest.raises(ValueError):
            call()
    for name in ("features", "x"):
        with pytest.raises(AttributeError):
            setattr(ex, name, 1)
    with pytest.raises(TypeError):
        hash(ex)
    with pytest.raises(TypeError):
        ex.MergeFrom(train.Features())


def test_sequence_examples() -> None:
    record = train.SequenceExample()
    record.context.feature["id"].int64_list.value.append(5)
    for step in (b"a", b"b"):
        record.feature_lists.feature_list["words"].feature.add().bytes_list.value.append(step)
    built = tfseek.SequenceExample({"id": 5}, {"words": [b"a", b"b"]})
    assert record.SerializeToString() == bytes(built)
    assert [name for name, _ in ((field.name, value) for field, value in record.ListFields())] == ["context", "feature_lists"]


def test_an_error_leaves_what_protobuf_leaves() -> None:
    # What TensorFlow 2.21 (upb) has after each error, parsed over a message with the feature z.
    old = b"\x0a\x0c\x0a\x0a\x0a\x01z\x12\x05\x1a\x03\x0a\x01\x09"
    a = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07"
    for data, left in [
        (b"\x0a\x1c\x0a\x07", b"\x0a\x00"),
        (b"\x0a", b"\x0a\x00"),
        (b"\x18\x05\x0e", b"\x18\x05"),
        (b"\x18\x05" + a + b"\x0e", a + b"\x18\x05"),
        (a + b"\x18\x05\x0f", a + b"\x18\x05"),
        (a + b"\x18\x05\x1a\x09", a),
        (a + b"\x0c", a),
        (a + b"\x02\x00", a),
        (a + b"\x0a\x05\x0a", a),
        (b"\x0a\x0e\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07\x0a\x09", a),
    ]:
        ex = train.Example.FromString(old)
        with pytest.raises(tfseek.DataError):
            ex.ParseFromString(data)
        assert ex.SerializeToString() == left, data
    # An element of a list whose length is too large is there.
    lists = train.FeatureList()
    with pytest.raises(tfseek.DataError):
        lists.MergeFromString(b"\x0a\x05\x0a")
    assert lists.SerializeToString() == b"\x0a\x00"
