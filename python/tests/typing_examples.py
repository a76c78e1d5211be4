"""The types that editors and type checkers know. mypy and pyright check this file; ``test_types.py`` runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

import numpy as np
import numpy.typing as npt

import tfseek

if sys.version_info >= (3, 11):
    from typing import assert_type
elif TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, _):
        return value


#: Values of a feature. ``None`` is rare, and needs no test.
Values = Union[npt.NDArray[Any], Any]
SPEC = {"label": tfseek.FixedLenFeature([], "int64")}
PICTURE = tfseek.Image(
    (224, 224), crop="random_resized", scale=(0.2, 1), flip=0.5, jitter={"brightness": 0.4, "hue": (-0.1, 0.1)}, mean=[0.5] * 3,
    std=np.full(3, 0.25), dtype="float16", layout="chw", exif=True, scaled=True,
)


def datasets(path: Union[str, PathLike[str]]) -> None:
    ds = tfseek.open(path, io="pread", columns=["label"])
    assert_type(ds, tfseek.Dataset[tfseek.Example])
    assert_type(ds[0], tfseek.Example)
    assert_type(ds[np.int64(0)], tfseek.Example)
    assert_type(ds[2:5], tfseek.Dataset[tfseek.Example])
    assert_type(ds[[1, 2]][0], tfseek.Example)
    assert_type(ds[np.arange(3)], tfseek.Dataset[tfseek.Example])
    assert_type(ds.filter("label == 3")[0], tfseek.Example)
    assert_type(ds.get_many([1, 2]), list[tfseek.Example])
    assert_type(ds.get_many([1, 2], out=bytearray(1 << 20)), npt.NDArray[np.int64])
    assert_type([record for record in ds], list[tfseek.Example])
    assert_type(ds.column("label"), tfseek.Column)
    with tfseek.open(path) as same:
        assert_type(same, tfseek.Dataset[tfseek.Example])


def kinds(examples: str, path: str, kind: Literal["auto", "example", "sequence_example", "bytes"]) -> None:
    assert_type(tfseek.open(examples, kind="example")[0], tfseek.Example)
    assert_type(tfseek.open(path, kind="sequence_example")[0], tfseek.SequenceExample)
    assert_type(tfseek.open(path, kind="bytes")[0], bytes)
    assert_type(tfseek.open(path, kind=kind)[0], Any)
    # For files whose kind the program does not know.
    unknown: tfseek.Dataset[Any] = tfseek.open(path)
    assert_type(unknown[0], Any)
    bare: tfseek.Dataset = unknown
    assert_type(bare[0], Any)
    assert_type(first(tfseek.open(path)), Union[tfseek.Example, bytes])


def first(ds: tfseek.Dataset[Union[tfseek.Example, bytes]]) -> Union[tfseek.Example, bytes]:
    """A dataset of Examples is a dataset of Examples and others."""
    return ds[0]


def examples(path: str) -> None:
    ex = tfseek.open(path)[0]
    assert_type(ex["label"], Values)
    label: int = ex["label"][0]
    text: str = ex["name"][0].decode()
    assert_type(ex.get("label"), Optional[npt.NDArray[Any]])
    assert_type(ex.to_dict(), dict[str, Values])
    assert_type([name for name in ex], list[str])
    for name, values in ex.items():
        assert_type(name, str)
        values.tolist()
    print(label, text)


def sequence_examples(path: str) -> None:
    record = tfseek.open(path, kind="sequence_example")[0]
    assert_type(record.context, tfseek.Example)
    assert_type(record.feature_lists["tokens"], list[Values])
    assert_type(record["tokens"], Any)


def loaders(ds: tfseek.Dataset[tfseek.Example], schema: tfseek.Schema, spec: Optional[tfseek.Schema]) -> None:
    for payloads in tfseek.Loader(ds, batch_size=2):
        assert_type(payloads, list[bytes])
    for batch in tfseek.Loader(ds, SPEC, batch_size=2, shuffle=True, seed=1):
        assert_type(batch, dict[str, Any])
    for batch in tfseek.Loader(ds, schema, batch_size=2):
        # A dict, or a tuple for SequenceExamples.
        assert_type(batch, Any)
    for batch in tfseek.Loader(ds, spec, batch_size=2):
        assert_type(batch, Any)
    loader = tfseek.Loader(ds, SPEC, batch_size=2)
    assert_type(loader, tfseek.Loader[dict[str, Any]])
    assert_type(next(loader), dict[str, Any])
    assert_type(iter(loader), Iterator[dict[str, Any]])
    with loader as same:
        assert_type(same, tfseek.Loader[dict[str, Any]])
    for pair in tfseek.Loader(ds, SPEC, batch_size=2, transform=pair_of):
        assert_type(pair, tuple[npt.NDArray[Any], int])


def maybe_transformed(ds: tfseek.Dataset[tfseek.Example], transform: Optional[Callable[[Any], int]]) -> None:
    loader: tfseek.Loader[Any] = tfseek.Loader(ds, SPEC, batch_size=2, transform=transform)
    assert len(loader) > 0


def pair_of(batch: dict[str, Any]) -> tuple[npt.NDArray[Any], int]:
    return batch["label"], len(batch)


def streams(path: str, schema: tfseek.Schema) -> None:
    stream = tfseek.stream(path, compression="auto")
    assert_type(stream, tfseek.Stream[tfseek.Example])
    assert_type([record for record in stream], list[tfseek.Example])
    assert_type(stream.sample(2), list[tfseek.Example])
    assert_type(next(stream.batches(SPEC, 2)), dict[str, Any])
    assert_type(next(stream.batches(schema, 2)), Any)
    assert_type(next(iter(tfseek.stream(path, kind="sequence_example"))), tfseek.SequenceExample)
    assert_type(next(iter(tfseek.stream(path, kind="bytes"))), bytes)


def statistics(ds: tfseek.Dataset[tfseek.Example], path: str) -> None:
    found = tfseek.stats(ds, features=["label"], by="label", sample=3)
    assert_type(found, tfseek.Stats)
    assert_type(found.feature("label"), tfseek.StatsFields)
    assert_type(tfseek.stats(path, features="label")["records"], Any)
    assert_type(found.records, Any)


def written(path: str, folder: str) -> None:
    found = tfseek.reshard(path, f"{folder}/{{split}}", split={"a": 0.5, "b": 0.5}, shards=2, memory="1GB")
    assert_type(found, tfseek.Resharded)
    assert_type(found.sets, list[tfseek.ReshardedSet])
    assert_type(found.sets[0].shards, list[str])
    assert_type(tfseek.reshard(tfseek.open(path), f"{folder}/all").records, int)


def messages() -> None:
    ex = tfseek.train.Example(features={"feature": {"a": tfseek.train.Feature(int64_list={"value": [1]})}})
    assert_type(ex.features, tfseek.train.Features)
    assert_type(ex.features.feature["a"], tfseek.train.Feature)
    assert_type(ex.features.feature.get("a"), Optional[tfseek.train.Feature])
    assert_type(ex.features.feature["a"].int64_list.value[0], int)
    assert_type(ex.features.feature["a"].bytes_list.value[:], list[bytes])
    assert_type(ex.features.feature["a"].WhichOneof("kind"), Optional[str])
    assert_type(tfseek.train.Example.FromString(ex.SerializeToString()), tfseek.train.Example)
    record = tfseek.train.SequenceExample()
    assert_type(record.feature_lists.feature_list["a"].feature.add(), tfseek.train.Feature)
    spec = {"a": tfseek.io.FixedLenFeature([], tfseek.int64)}
    assert_type(tfseek.io.parse_single_example(ex.SerializeToString(), spec), dict[str, Any])


if TYPE_CHECKING:

    def mistakes(ds: tfseek.Dataset[tfseek.Example]) -> None:
        """Type checkers find each of these: mypy reports a comment that ignores nothing."""
        tfseek.open("a", tail="shrt")  # type: ignore[call-overload]
        tfseek.open("a", kind="exmple")  # type: ignore[call-overload]
        tfseek.stream("a", compression="bz2")  # type: ignore[call-overload]
        tfseek.FixedLenFeature([], "int65")  # type: ignore[arg-type]
        tfseek.Optional("int65")  # type: ignore[arg-type]
        tfseek.Raw("int65", [2])  # type: ignore[arg-type]
        tfseek.Loader(ds, SPEC, batch_sise=2)  # type: ignore[call-overload]
        tfseek.Loader(ds, SPEC, batch_size=2, damage="skpi")  # type: ignore[call-overload]
        tfseek.torch.IterableDataset(ds, SPEC, batch_sise=2)  # type: ignore[call-arg]
        tfseek.torch.IterableDataset(ds, SPEC, batch_size=2, last_batch="pda")  # type: ignore[arg-type]
        tfseek.grain.IterDataset(ds, SPEC, batch_sise=2)  # type: ignore[call-arg]
        tfseek.rlds.open("a", indx="memory")  # type: ignore[call-arg]
        tfseek.tfds.open("a", optional="nul")  # type: ignore[arg-type]
        ds.scan(bytes="viw")  # type: ignore[arg-type]
        ds.to_pandas(wher="a == 1")  # type: ignore[call-arg]
        tfseek.polars.scan("a", verify="heder")  # type: ignore[arg-type]
        tfseek.Writer("a", compression="bz2")  # type: ignore[arg-type]
        tfseek.Mix([(ds, 1)], stop="nevr")  # type: ignore[arg-type]
        # These are none.
        tfseek.FixedLenFeature([2], np.int64), tfseek.FixedLenFeature([], np.dtype("float32")), tfseek.VarLenFeature(bytes)
        tfseek.FixedLenFeature([], tfseek.int64), tfseek.Raw(">i2", [2]), tfseek.Tensor(np.uint8, [None])


def run(examples_path: str, sequences_path: str, folder: str) -> None:
    """Calls everything above, because annotations must also work at run time."""
    ds = tfseek.open(examples_path)
    datasets(examples_path)
    examples(examples_path)
    sequence_examples(sequences_path)
    kinds(examples_path, sequences_path, "auto")
    loaders(ds, ds.schema, None)
    maybe_transformed(ds, None)
    streams(examples_path, ds.schema)
    statistics(ds, examples_path)
    written(examples_path, folder)
    messages()
