"""Robot episodes (RLDS) by step: windows, statistics and mixtures, without TensorFlow. The page "rlds" of the documentation has more.

>>> robot = tfseek.rlds.open("bridge_dataset/1.0.0")
>>> robot.steps[123]["observation"]["state"]
>>> win = robot.windows({"observation/image_0": [-1, 0], "action": range(4), "language_instruction": 0})
>>> for batch in tfseek.Loader(win, batch_size=256, shuffle=True, seed=0): ...
"""

from ._rlds import Episodes, Statistics, Windows, open, statistics

__all__ = ["Episodes", "Statistics", "Windows", "open", "statistics"]
