"""Hooks of MkDocs: what differs between the pages in the repository and on the site."""

from __future__ import annotations

import ast
import itertools
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Link, Navigation, Section
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks")

#: The sections of the reference of Python, and their items in order. Each public name is in one of them.
SECTIONS = {
    "Open and read": "open Dataset Example SequenceExample FeatureLists stream Stream Part build_index unpack fetch Fetched",
    "Train": "Loader Mix StepInfo Report Traffic",
    "Parse": "parse_example parse_single_example parse_sequence_example parse_single_sequence_example Schema infer_schema FixedLenFeature "
    "FixedLenSequenceFeature Optional VarLenFeature RaggedFeature RowSplits RowLengths RowStarts RowLimits ValueRowIds UniformRowLength "
    "SparseFeature Image Raw Tensor NestedSpec Ragged Sparse Column Bytes parse_tensor serialize_tensor image_shape",
    "Inspect": "stats Stats StatsFields verify Verification show view View",
    "Write": "Writer write WrittenSet reshard Resharded ReshardedSet",
    "Arrow": "scan Scan",
    "Errors and warnings": "Error DataError IoError NotFoundError SpecError OrderError SidecarError OutOfRangeError Warning Gap",
}
#: Public names without an entry: modules, which are on a page of their own, and constants.
OTHERS = {"io", "rlds", "tfds", "train", "__version__", "int64", "float32", "string"}
MODULES = ("tfds", "rlds", "lerobot", "torch", "jax", "grain", "polars", "arrow", "ray", "beam", "spark", "huggingface", "io", "train")
PACKAGE = "python/tfseek/__init__.py"

#: Pages that are in the menu if they exist, and their menu.
OPTIONAL = {"Contribute": ("contributing.md", "decisions/*.md")}


def on_config(config: MkDocsConfig) -> None:
    docs = Path(config.docs_dir)
    for group in config.nav or []:
        for title, pages in group.items():
            for pattern in OPTIONAL.get(title, ()):
                pages += sorted(path.relative_to(docs).as_posix() for path in docs.glob(pattern))


def public_names(path: Path) -> set[str]:
    """Returns the names in ``__all__``."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def references(config: MkDocsConfig) -> dict[str, str]:
    """Returns the pages of the reference of Python, which mkdocstrings fills with signatures and docstrings."""
    listed = {name for names in SECTIONS.values() for name in names.split()}
    public = public_names(Path(config.config_file_path).parent / PACKAGE) - OTHERS
    if listed != public:
        log.warning("the reference of Python differs from __all__: %s", sorted(listed ^ public))
    items = "\n\n".join(
        f"## {title}\n\n" + "\n".join(f"::: tfseek.{name}" for name in names.split()) for title, names in SECTIONS.items()
    )
    modules = "\n".join(f"::: tfseek.{name}" for name in MODULES)
    return {
        "reference.md": "# The Python package, item by item\n\nThe signatures and docstrings of the package. "
        f"[python.md](python.md) describes how the parts fit together.\n\n{items}\n",
        "reference-adapters.md": "# The modules, item by item\n\nA module for a library needs that library, and `import tfseek` imports "
        f"none of them but `io`, `rlds`, `tfds` and `train`. [python.md](python.md) and [engines.md](engines.md) describe their use.\n\n{modules}\n",
    }


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Makes README.md the home page. The page index.md is about index files, so it gets another address."""
    table = files.get_file_from_path("index.md")
    assert table is not None
    for name, value in {"name": "index-files", "dest_uri": "index-files/index.html", "url": "index-files/"}.items():
        setattr(table, name, value)
    table.abs_dest_path = posixpath.join(config.site_dir, table.dest_uri)
    home = File(
        "README.md", config.docs_dir, config.site_dir, config.use_directory_urls, inclusion=InclusionLevel.INCLUDED
    )
    files.append(home)
    for name, text in references(config).items():
        files.append(File.generated(config, name, content=text))


def on_nav(nav: Navigation, **_: Any) -> None:
    """Adds the reference of the crates, which `make site` copies."""
    reference = next(item for item in nav.items if isinstance(item, Section) and item.title == "Reference")
    reference.children.append(Link("Rust", "rust/tfseek/index.html"))


def titles(config: MkDocsConfig) -> dict[str, str]:
    """Returns the titles in the menu by the paths of the pages."""
    pages = [page for group in config.nav or [] for value in group.values() for page in (value if isinstance(value, list) else [group])]
    return {path: title for page in pages if isinstance(page, dict) for title, path in page.items()}


def description(file: Path) -> str:
    """Returns the first sentence of the documentation of a Rust file."""
    lines = itertools.dropwhile(lambda line: not line.startswith("//! "), file.read_text().splitlines())
    text = " ".join(line[4:] for line in itertools.takewhile(lambda line: line.startswith("//! "), lines))
    sentence = text.partition(". ")[0].removesuffix(".")
    return re.sub(r"\[(`[^]]*`)\](\([^)]*\))?", r"\1", sentence).replace("`", "")


def described(section: re.Match[str], root: Path) -> str:
    """Adds the descriptions of modules and of their files to the list of a section of layers.md."""
    lines = []
    for name in section["list"].splitlines():
        module = root / section["folder"] / name
        if not name or not module.exists():
            lines.append(name)
        elif module.is_file():
            lines.append(f"{name:<26}{description(module)}")
        else:
            lines.append(f"{name:<26}{description(module / 'mod.rs')}")
            files = [file for file in sorted(module.rglob("*.rs")) if not file.name.endswith("tests.rs")]
            lines += [f"  {file.relative_to(module)!s:<24}{description(file)}" for file in files if file != module / "mod.rs"]
    return section["head"] + "\n".join(lines) + "\n```"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    if page.file.src_uri == "layers.md":
        root = Path(config.config_file_path).parent
        listed = r"^(?P<head>## `(?P<folder>[^`]+)/`\n[^#]*?```text\n)(?P<list>.*?)\n```$"
        markdown = re.sub(listed, lambda section: described(section, root), markdown, flags=re.M | re.S)
    # A word after the language is for the tests of the pages.
    markdown = re.sub(r"^```(\w+) \S+$", r"```\1", markdown, flags=re.M)
    # A link whose text is the name of a file gets the title of the page.
    known = titles(config)
    markdown = re.sub(r"\[([\w-]+\.md)\]\(", lambda match: f"[{known.get(match[1], match[1])}](", markdown)
    folder = posixpath.dirname(page.file.src_uri)

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        return match[0] if path.startswith("docs/") else f"]({config.extra['repository']}/blob/main/{path})"

    return re.sub(r"\]\((\.\./[^)\s]*)\)", link, markdown)
