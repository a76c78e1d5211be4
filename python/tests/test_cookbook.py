"""Runs the Python of the tutorial and the cookbook, and compares the output with the pages."""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple, Optional

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: A block of Python, the module that it needs, and its expected output: the block of text below it.
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)

#: In place of a module: the block is a file of its own.
SCRIPT = "script"

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")


class Block(NamedTuple):
    module: str
    code: str
    output: Optional[str]


def sections(page: str) -> list[tuple[str, list[Block]]]:
    """Returns the title and the blocks of each section. The first section is the text above the first title."""
    parts = re.split(r"^## ", (ROOT / "docs" / page).read_text(), flags=re.M)
    return [(part.split("\n", 1)[0], [Block(*found) for found in BLOCK.findall(part)]) for part in parts]


def run(block: Block, names: dict[str, Any]) -> None:
    """Runs a block and compares its output with the text below it, or with the comments of its ``print`` lines."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, "<page>", "exec"), names)
    expected = block.output or "".join(f"{line}\n" for line in re.findall(r"^ *print\(.*\)  +# (.*)$", block.code, re.M))
    if expected or "print(" in block.code:
        assert printed.getvalue() == expected, block.code


@pytest.fixture
def _demo_data(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creates a folder with the dataset of ``tfseek demo`` and a pack of its indexes for each test."""
    monkeypatch.chdir(tmp_path)
    for arguments in (["demo", "--out", "data"], ["index", "--pack", "all", "data"]):
        subprocess.run([sys.executable, "-m", "tfseek", *arguments], check=True, capture_output=True)


def modules(page: str) -> list[str]:
    """Returns the modules that blocks of a page need, and ``""`` for the blocks that need none."""
    return sorted({block.module for _, blocks in sections(page) for block in blocks} - {SCRIPT})


@pytest.mark.usefixtures("_demo_data")
@pytest.mark.parametrize("module", modules("tutorial.md"))
def test_tutorial(module: str) -> None:
    """The blocks of the tutorial share their names. The blocks that need a module also need the blocks above them."""
    if module:
        pytest.importorskip(module)
    names: dict[str, Any] = {}
    for _, blocks in sections("tutorial.md"):
        for block in blocks:
            if block.module in ("", module):
                run(block, names)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_the_script_of_the_tutorial_survives_kills(tmp_path: pathlib.Path) -> None:
    """It prints the same loss after three kills, and when it is started again after its end. The section before it leaves a checkpoint."""
    for module in ("torch", "PIL"):
        pytest.importorskip(module)
    (code,) = (block.code for _, blocks in sections("tutorial.md") for block in blocks if block.module == SCRIPT)
    printed = []
    for kills in (0, 3):
        folder = tmp_path / str(kills)
        folder.mkdir()
        (folder / "train_pictures.py").write_text(code)
        (folder / "checkpoint.pt").write_bytes(b"of the section before")
        command, checkpoint = [sys.executable, "train_pictures.py"], folder / "pictures.pt"
        for _ in range(kills):
            job = subprocess.Popen(command, cwd=folder)
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            while job.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
                time.sleep(0.001)
            time.sleep(random.random() * 0.05)
            job.kill()
            assert job.wait() == -signal.SIGKILL
        for _ in range(2):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            printed.append(done.stdout)
    assert len(set(printed)) == 1
    assert re.fullmatch(r"step 80, loss 0\.[0-9]+\n", printed[0])


@pytest.mark.usefixtures("_demo_data")
@pytest.mark.parametrize("module", modules("cookbook.md"))
def test_cookbook(module: str) -> None:
    """Recipes share their files, and the names of the first section only."""
    if module:
        pytest.importorskip(module)
    (_, first), *recipes = sections("cookbook.md")
    shared: dict[str, Any] = {}
    for block in first:
        run(block, shared)
    for _, blocks in recipes:
        names = dict(shared)
        for block in blocks:
            if block.module in ("", module):
                run(block, names)


def test_recipes_are_short() -> None:
    """Each recipe has at most ten lines per language."""
    first, *recipes = re.split(r"^## ", (ROOT / "docs" / "cookbook.md").read_text(), flags=re.M)
    assert len(recipes) > 20
    for recipe in recipes:
        blocks = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", recipe, re.M | re.S)
        assert blocks, recipe
        for language, code in blocks:
            lines = [line for line in code.splitlines() if language != "console" or line.startswith("$ ")]
            assert language == "text" or len(lines) <= 10, code
