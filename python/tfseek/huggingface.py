"""Hugging Face: a builder of the package ``datasets``.

``import tfseek`` does not import this module. It requires the packages ``datasets``, 5.2 or later, and ``pyarrow``.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union, cast

import datasets
import pyarrow as pa
from datasets import packaged_modules
from datasets.builder import Key
from datasets.fingerprint import Hasher
from datasets.table import cast_array_to_feature, cast_table_to_features

from ._errors import DataError, SpecError
from ._features import schema_of
from ._images import image_shape
from ._plan import Reading, Source, dataset
from ._scan import Spec, Text
from ._tfds import Builder as TfdsBuilder
from ._tfds import Dataset as TfdsDataset
from ._tfseek import Dataset, NestedSpec, Part, __version__, no_such_name

__all__ = ["TFRecord", "TFRecordConfig", "load", "register"]

#: What :func:`load` reads as one split.
Split = Union[Source, TfdsDataset]
#: How records are read, the types of their columns, and the shards of each split: lists of parts in JSON.
Plan = tuple[Reading, datasets.Features, dict[str, list[list[str]]]]

#: Bytes of a part of a file, which ``IterableDataset.reshard()`` makes a shard.
PART_BYTES = 64 << 20
#: Number of records that tell whether byte strings are pictures.
LOOKED_AT = 16
#: The version of this code in the name of a prepared set.
_HASH = Hasher.hash((__version__, inspect.getsource(sys.modules[__name__])))


def load(
    source: Union[Split, Mapping[str, Split], TfdsBuilder],
    spec: Optional[Spec] = None,
    columns: Optional[Iterable[str]] = None,
    where: Optional[str] = None,
    *,
    features: Optional[datasets.Features] = None,
    text: Text = (),
    record: Optional[str] = None,
    rename: Optional[Mapping[str, str]] = None,
    shares: Optional[int] = None,
    split: Optional[str] = None,
    streaming: bool = False,
    cache_dir: Optional[str] = None,
    num_proc: Optional[int] = None,
) -> Any:
    """Returns the records as a ``datasets.Dataset``, or as a ``datasets.IterableDataset``.

    The index is used, and built if it does not exist, by this call. A ``Dataset`` is prepared in the cache of ``datasets``, and prepared again
    if a shard, the spec or an option changes.

    source: paths as of :func:`tfseek.open`, a :class:`tfseek.Dataset` or a ``tfseek.tfds.Dataset``, but no view of one. Also a dict of these by the
        names of splits, or the result of ``tfseek.tfds.open``: then the result is a dict of all splits, unless ``split`` is given.
    spec, columns, where, text, record, rename: as of :meth:`tfseek.Dataset.scan`.
    features: types of the columns. Without a spec their names are the features that are read, or the names that ``rename`` gives these. A value
        that does not fit is an error with its path and record. By default the types are those of the scan: a label with names is a ``ClassLabel``,
        and byte strings are an ``Image`` if those of the first records are pictures.
    shares: number of shards of each split, of equal size; by default one per file.
    split: the split to return. A single source is ``"train"``, of which a ``Dataset`` may be a part: ``"train[:80%]"``.
    streaming: if true, nothing is prepared, and each loop reads the shards.
    cache_dir, num_proc: as of ``datasets.load_dataset``.
    """
    if isinstance(source, TfdsBuilder):
        source = {name: source[name] for name in source.splits}
    if not isinstance(source, Mapping):
        source, split = {"train": source}, split or "train"
    sources = cast(Mapping[str, Split], source)
    first = next(iter(sources.values()), None)
    if first is None:
        raise ValueError("source: expected at least one split, found none")
    if isinstance(first, TfdsDataset) and spec is None:
        columns, spec = None, first.scan(columns, labels="numbers").schema
    options = TFRecordConfig(
        features=features, spec=spec, columns=columns, where=where, text=text, record=record, rename=rename, shares=shares
    )
    plan = _plan({name: dataset(each) for name, each in sources.items()}, options)
    builder = TFRecord(cache_dir=cache_dir, dataset_name="tfrecord", hash=_HASH, plan=plan)
    if streaming:
        return builder.as_streaming_dataset(split=split)
    builder.download_and_prepare(num_proc=num_proc)
    return builder.as_dataset(split=split)


def register() -> None:
    """Makes ``datasets.load_dataset("tfrecord", data_files=..)`` read TFRecords in this process, with the options of :class:`TFRecordConfig`."""
    packaged_modules._PACKAGED_DATASETS_MODULES["tfrecord"] = (__name__, _HASH)


@dataclass
class TFRecordConfig(datasets.BuilderConfig):
    """The options of ``datasets.load_dataset("tfrecord", ..)``: those of :func:`load`. ``plan`` is what that function has made of them."""

    features: Optional[datasets.Features] = None
    spec: Optional[Spec] = None
    columns: Optional[Iterable[str]] = None
    where: Optional[str] = None
    text: Text = ()
    record: Optional[str] = None
    rename: Optional[Mapping[str, str]] = None
    shares: Optional[int] = None
    plan: Optional[Plan] = None

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: Optional[datasets.Features] = None) -> str:
        """Returns the name of the options in the cache."""
        spec = config_kwargs.get("spec")
        if isinstance(spec, Mapping):
            # The pickle of a feature spec changes at its first use.
            config_kwargs = {**config_kwargs, "spec": schema_of(spec)}
        return cast(str, super().create_config_id(config_kwargs, custom_features))


class TFRecord(datasets.ArrowBasedBuilder):
    """The builder of :func:`load`, and of ``datasets.load_dataset("tfrecord", ..)`` after :func:`register`."""

    BUILDER_CONFIG_CLASS = TFRecordConfig
    _reading: Reading

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=self.config.features)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        files, plan = self.config.data_files, self.config.plan
        if plan is None:
            if not files:
                raise ValueError(f"data_files: expected at least one file, found {files}")
            plan = _plan({name: dataset(list(paths)) for name, paths in dl_manager.download(files).items()}, self.config)
        self._reading, self.info.features, shards = plan
        return [datasets.SplitGenerator(name=name, gen_kwargs={"shards": each}) for name, each in shards.items()]

    def _generate_shards(self, shards: list[list[str]]) -> Iterator[str]:
        for shard in shards:
            yield " ".join(dict.fromkeys(Part(part).shard for part in shard))

    def _generate_more_gen_kwargs(self, shards: list[list[str]]) -> Iterator[dict[str, Any]]:
        for shard in shards:
            yield {"shards": [[part] for part in shard]}

    def _generate_tables(self, shards: list[list[str]]) -> Iterator[tuple[Key, pa.Table]]:
        for number, shard in enumerate(shards):
            for k, batch in enumerate(self._reading.batches(map(Part, shard))):
                try:
                    table = cast_table_to_features(pa.Table.from_batches([batch]), self.info.features)
                except (ValueError, TypeError) as error:
                    raise self._misfit(shard, error) from error
                yield Key(number, k), table

    def _misfit(self, shard: list[str], error: Exception) -> Exception:
        """Returns the error of the first value of a shard that does not fit its feature: the shard is read again, with the numbers of its records."""
        names = self._reading.schema.names
        reading = copy.copy(self._reading)
        reading.record = reading.record or "record of " + " and ".join(names)
        for part in map(Part, shard):
            for batch in reading.batches([part], list(dict.fromkeys([*names, reading.record]))):
                for (k, number), name in itertools.product(enumerate(batch.column(reading.record).to_pylist()), names):
                    try:
                        cast_array_to_feature(batch.column(name).take(pa.array([k])), self.info.features[name])
                    except (ValueError, TypeError) as found:
                        record = number - part.first + part.ordinal
                        misfit = DataError(f"{part.shard}: record {record}: column {json.dumps(name)}: {found}")
                        misfit.path, misfit.record = part.shard, record
                        return misfit
        return error

    def _as_dataset(self, split: Any, in_memory: bool = False) -> datasets.Dataset:
        # The package itself has no Dataset without records.
        info = self.info.splits.get(str(split))
        if info is None or info.num_examples:
            return super()._as_dataset(split, in_memory)
        return datasets.Dataset.from_dict({name: [] for name in self.info.features}, self.info.features, split=split)


def _plan(opened: Mapping[str, Dataset], config: TFRecordConfig) -> Plan:
    """Returns the plan of splits. One without records decides nothing."""
    ds = next((ds for ds in opened.values() if len(ds) > 0), next(iter(opened.values())))
    spec, features = config.spec, config.features
    if isinstance(spec, NestedSpec):
        # A `ClassLabel` is a number.
        read, (folder, digest, select, _, *others) = cast(Any, spec.__reduce__())
        spec = read(folder, digest, select, "numbers", *others)
    elif spec is None and features is not None:
        stored = {name: feature for feature, name in (config.rename or {}).items()}
        spec = _spec_of(ds, {stored.get(name, name): each for name, each in features.items() if name != config.record})
    reading = Reading(
        ds, spec, config.columns, where=config.where, text=config.text, record=config.record, rename=config.rename
    )
    if features is None:
        features = _features_of(ds, reading)
    elif set(features) != set(reading.schema.names):
        raise SpecError(f"features: expected those of the columns {reading.schema.names}, found {list(features)}")
    return reading, features, {name: _shards(each, config.shares) for name, each in opened.items()}


def _shards(ds: Dataset, shares: Optional[int]) -> list[list[str]]:
    parts = (part for share in ds.shares_of(PART_BYTES) for part in share)
    files = (list(file) for _, file in itertools.groupby(parts, lambda part: part.shard))
    return [[part.to_json() for part in shard] for shard in (files if shares is None else ds.shares(shares))]


def _spec_of(ds: Dataset, features: Mapping[str, Any]) -> pa.Schema:
    """Returns the schema of the stored values of features, by their stored names. Texts are read as bytes, and checked when they are cast."""
    for name in features:
        if len(ds) > 0 and name not in ds.features:
            raise SpecError(f"features: {no_such_name('feature of the first records', name, ds.features)}")
    return pa.schema([pa.field(field.name, _stored(field.type)) for field in datasets.Features(features).arrow_schema])


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_stored(kind.value_type), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_stored(kind.value_type))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.int64()
    if kind in (pa.string(), pa.large_string(), datasets.Image.pa_type):
        return pa.binary()
    return pa.float32() if pa.types.is_floating(kind) else kind


def _features_of(ds: Dataset, reading: Reading) -> datasets.Features:
    """Returns the types of the columns of a reading."""
    batches = reading.batches((part for share in ds.shares(1) for part in share), batch_rows=LOOKED_AT)
    first = next((batch for batch in batches if batch.num_rows > 0), pa.RecordBatch.from_pylist([], reading.schema))
    found = {field.name: _feature(field.type, field.metadata or {}, first.column(field.name)) for field in reading.schema}
    return datasets.Features(found)


def _feature(kind: pa.DataType, metadata: Mapping[bytes, bytes], values: pa.Array) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type, field.metadata or {}, values.field(field.name)) for field in kind}
    if pa.types.is_nested(kind):
        inner = _feature(kind.value_type, metadata, values.flatten())
        if pa.types.is_large_list(kind):
            return datasets.LargeList(inner)
        return datasets.List(inner, length=kind.list_size if pa.types.is_fixed_size_list(kind) else -1)
    names = json.loads(metadata.get(b"tfseek.labels", b"[]"))
    declared = metadata.get(b"tfseek.class")
    if _are_pictures(values) if declared is None else declared in (b"Image", b"LabeledImage", b"Video") and pa.types.is_binary(kind):
        return datasets.Image()
    if names and len(set(names)) == len(names):
        return datasets.ClassLabel(names=names)
    return datasets.Features.from_arrow_schema(pa.schema([("values", kind)]))["values"]


def _are_pictures(values: pa.Array) -> bool:
    """Returns true if there are byte strings, and all of them are pictures."""
    found = [value for value in values.to_pylist() if value] if pa.types.is_binary(values.type) else []
    try:
        return bool(found) and all(image_shape(value) for value in found)
    except ValueError:
        return False
