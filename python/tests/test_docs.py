"""Runs the Python code on the pages."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tfseek

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["docs/python.md", "README.md", "python/PACKAGE.md"]


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the Python blocks of a page, each with the word after ``python``: a required module, or ``not-run``."""
    found = re.findall(r"^```python(?: (\S+))?\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    return [(word, block) for word, block in found if word != "not-run"]


def write_training_data() -> None:
    pathlib.Path("data").mkdir()
    with tfseek.Writer("data/train", shards=4) as writer:
        for i in range(1000):
            tokens = np.arange(i % 7, dtype=np.int64)
            writer.write(tfseek.Example({"label": i % 10, "tokens": tokens, "image": bytes([i % 256]) * (i % 50)}))


@pytest.mark.parametrize(
    "page, module", [(page, module) for page in PAGES for module in sorted({word for word, _ in blocks(page)} | {""})]
)
def test_page_runs(page: str, module: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the blocks that need no module. With ``module``, also those that need it."""
    if module:
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    if page == "README.md":
        subprocess.run([sys.executable, "-m", "tfseek", "demo", "--keep", "data"], check=True, capture_output=True)
    else:
        write_training_data()
    run = [block for word, block in blocks(page) if word in ("", module)]
    assert run
    names: dict[str, Any] = {}
    for block in run:
        # The pages use record numbers of a larger dataset.
        exec(compile(block.replace("123_456", "640"), page, "exec"), names)
