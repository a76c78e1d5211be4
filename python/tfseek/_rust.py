"""The Python functions and classes that the native module calls. It imports no other module of the package."""

from ._arrays import byte_buffer
from ._columns import Bytes, Column, Ragged, Sparse, pictures
from ._encode import feature_lists, features
from ._errors import DataError, Error, IoError, NotFoundError, OrderError, OutOfRangeError, SidecarError, SpecError
from ._features import to_json
from ._fsspec import filesystem_of
from ._ids import positions
from ._open import features_again, reopen
from ._progress import progress_of
from ._scan import scan_dataset
from ._show import dataset_html, example_html, sequence_html
from ._tensor import bfloat16
from ._warnings import warning_of
