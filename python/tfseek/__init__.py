"""Random access, true shuffles and TensorFlow-exact batches for the TFRecord files you already have.

>>> ds = tfseek.open("data/train-*.tfrecord")
>>> ds[123_456]["label"]
>>> for batch in tfseek.Loader(ds, spec, batch_size=256, seed=42): ...

Arrays are always read-only. Records are decoded as TensorFlow decodes them, bit for bit, with a few documented exceptions.
"""

import typing as _typing
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import Final as _Final

from . import _rust as _rust
from . import io, rlds, tfds, train
from ._columns import Bytes, Column, Ragged, Sparse
from ._errors import DataError, Error, IoError, NotFoundError, OrderError, OutOfRangeError, SidecarError, SpecError
from ._features import (
    FixedLenFeature, FixedLenSequenceFeature, Image, Label, Optional, RaggedFeature, Raw, RowLengths, RowLimits, RowSplits, RowStarts,
    SparseFeature, Stack, Tensor, UniformRowLength, ValueRowIds, VarLenFeature,
)
from ._fetch import Fetched, fetch
from ._images import image_shape
from ._loader import Loader
from ._mix import Mix
from ._open import build_index, open
from ._parse import parse_example, parse_sequence_example, parse_single_example, parse_single_sequence_example
from ._report import Report, Traffic
from ._reshard import Resharded, ReshardedSet, reshard
from ._scan import Scan, scan
from ._show import show
from ._stats import Stats, StatsFields, stats
from ._stream import Stream, Verification, stream, unpack, verify
from ._tensor import parse_tensor, serialize_tensor
from ._tfseek import (
    Dataset, Example, FeatureLists, NestedSpec, Part, Schema, SequenceExample, StepInfo, Writer, __version__, infer_schema,
)
from ._view import View, view
from ._warnings import Gap, Warning
from ._write_arrow import WrittenSet, write

#: Names of dtypes, so that feature specs written for ``tf.io`` work.
int64: _Final = "int64"
float32: _Final = "float32"
string: _Final = "string"

_Sequence.register(tfds.Steps)  # pyright: ignore[reportAttributeAccessIssue]
_Sequence.register(Dataset)  # pyright: ignore[reportAttributeAccessIssue]
_Mapping.register(Example)  # pyright: ignore[reportAttributeAccessIssue]
_Mapping.register(FeatureLists)  # pyright: ignore[reportAttributeAccessIssue]

if _typing.TYPE_CHECKING:
    from . import arrow as arrow
    from . import beam as beam
    from . import grain as grain
    from . import huggingface as huggingface
    from . import jax as jax
    from . import lerobot as lerobot
    from . import polars as polars
    from . import ray as ray
    from . import spark as spark
    from . import torch as torch
else:

    def __getattr__(name):
        """Imports an adapter, such as ``tfseek.polars``, at its first use: each needs a package that is not a dependency."""
        if name not in ("arrow", "beam", "grain", "huggingface", "jax", "lerobot", "polars", "ray", "spark", "torch"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.{name}")


__all__ = [
    "Bytes", "Column", "DataError", "Dataset", "Error", "Example", "FeatureLists", "Fetched", "FixedLenFeature",
    "FixedLenSequenceFeature", "Gap", "Image", "IoError", "Label", "Loader", "Mix", "NestedSpec", "NotFoundError", "Optional",
    "OrderError", "OutOfRangeError", "Part", "Ragged", "RaggedFeature", "Raw", "Report", "Resharded", "ReshardedSet",
    "RowLengths", "RowLimits", "RowSplits", "RowStarts", "Scan", "Schema", "SequenceExample", "SidecarError", "Sparse",
    "SparseFeature", "SpecError", "Stack", "Stats", "StatsFields", "StepInfo", "Stream", "Tensor", "Traffic", "UniformRowLength",
    "ValueRowIds", "VarLenFeature", "Verification", "View", "Warning", "Writer", "WrittenSet", "__version__", "build_index",
    "fetch", "float32", "image_shape", "infer_schema", "int64", "io", "open", "parse_example", "parse_sequence_example",
    "parse_single_example", "parse_single_sequence_example", "parse_tensor", "reshard", "rlds", "scan", "serialize_tensor",
    "show", "stats", "stream", "string", "tfds", "train", "unpack", "verify", "view", "write",
]
