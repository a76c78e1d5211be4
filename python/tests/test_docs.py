"""The Python on the pages runs."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest

import tfseek

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "python/README.md"])
def test_page_runs(page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with tfseek.Writer("data/train", shards=4) as writer:
        for i in range(1000):
            tokens = np.arange(i % 7, dtype=np.int64)
            writer.write(tfseek.Example({"label": i % 10, "tokens": tokens, "image": bytes([i % 256]) * (i % 50)}))
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        # The pages name records that only a large dataset has.
        exec(compile(block.replace("123_456", "640"), page, "exec"), names)
