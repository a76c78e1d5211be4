"""Data sets that TensorFlow Datasets prepared, without TensorFlow. The page "tfds" of the documentation has more.

>>> ds = tfseek.tfds.open("tensorflow_datasets/mnist")["train[:80%]"]
>>> ds[7]["label"]
>>> for batch in tfseek.Loader(ds, batch_size=64, shuffle=True): ...
"""

from ._tfds import Builder, Dataset, Split, open
from ._tfds_features import FeaturesDict, Leaf, Sequence
from ._tfseek import Steps

__all__ = ["Builder", "Dataset", "FeaturesDict", "Leaf", "Sequence", "Split", "Steps", "open"]
