"""An extension of griffe for the reference of the Python package.

Classes and functions of the compiled module have their docstrings in its Rust source; the stub has the signatures. All docstrings are written for
``help()``. Here they become Markdown: roles become links, and lines such as ``name: text`` a list.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|attr|mod):`([^`]+)`")
#: A line of a list of arguments, and the lines that continue it.
ARGUMENT = re.compile(r"^(\w+(?:, \w+)*): (?=\S)(.*(?:\n {2,}.*)*)", re.M)
DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?:\.\.\. .*)\n?)*)+", re.M)
RUST_ITEM = re.compile(
    r"(?P<doc>(?:^ *///.*\n)*)(?P<attributes>(?:^ *#\[(?s:.*?)\]\n)*)"
    r"^ *(?:pub(?:\([a-z]+\))? )?(?:(?P<kind>struct|fn) (?P<name>\w+)|impl(?:<[^>]*>)? (?P<impl>\w+)[^\n]*\{)",
    re.M,
)


def rust_docstrings(folder: Path) -> dict[str, str]:
    """Returns the docstrings of the classes, methods and functions in the Rust source, by their names in Python."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.rs")):
        classes: dict[str, str] = {}
        inside: str | None = None
        for item in RUST_ITEM.finditer(path.read_text()):
            attributes, doc = item["attributes"], "\n".join(re.findall(r"^ */// ?(.*)$", item["doc"], re.M))
            given = re.search(r'name = "(\w+)"', attributes)
            if item["impl"]:
                inside = classes.get(item["impl"]) if "#[pymethods]" in attributes else None
            elif item["kind"] == "struct":
                if "#[pyclass" in attributes:
                    classes[item["name"]] = given[1] if given else item["name"]
                    found[classes[item["name"]]] = doc
            else:
                name = given[1] if given else item["name"]
                if "#[pyfunction" in attributes:
                    found[name] = doc
                elif inside is not None:
                    found[f"{inside}.{name}"] = doc
    return {name: doc for name, doc in found.items() if doc}


def markdown(text: str, package: griffe.Module) -> str:
    """Returns the Markdown of a docstring."""

    exports = {str(name) for name in package.exports or ()}

    def link(match: re.Match[str]) -> str:
        parts = match[1].split(".")
        is_item = len(parts) > 1 and parts[0] == package.name and parts[1] in exports
        return f"[`{match[1]}`][{match[1]}]" if is_item else f"`{match[1]}`"

    text = DOCTEST.sub(lambda match: f"\n```pycon\n{match[0].rstrip()}\n```\n", text)
    text = ARGUMENT.sub(lambda match: f"* `{match[1]}`: " + re.sub(r"\n\s*", "\n    ", match[2]), text)
    return ROLE.sub(link, text)


def says_nothing(member: griffe.Object) -> bool:
    """Returns true for code such as ``self.ds = ds``, and for special methods other than the constructor."""
    if member.is_attribute and str(member.value) == member.name:
        return True
    return member.name.startswith("__") and member.name != "__init__"


class Docstrings(griffe.Extension):
    """Completes and converts the docstrings of a package when it is loaded."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        assert isinstance(pkg.filepath, Path)
        rust = rust_docstrings(pkg.filepath.parent.parent / "src")
        self._walk(pkg, pkg, rust)

    def _walk(self, obj: griffe.Object | griffe.Alias, package: griffe.Module, rust: dict[str, str]) -> None:
        # A stub has no implementation of a function with overloads, which stands for them here.
        known = obj.overloads if obj.is_class or obj.is_module else {}
        for name, overloads in known.items():
            if name not in obj.members and overloads:
                obj.set_member(name, overloads[0])
        for member in list(obj.members.values()):
            if member.is_alias:
                continue
            native = member.path.removeprefix(f"{package.name}._tfseek.")
            if native != member.path and native in rust and not member.docstring:
                member.docstring = griffe.Docstring(rust[native], parent=member)
            if not member.docstring and says_nothing(member):
                obj.del_member(member.name)
                continue
            if member.docstring:
                member.docstring.value = markdown(member.docstring.value, package)
            self._walk(member, package, rust)
