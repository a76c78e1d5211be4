"""The licences of the crates that wheels and commands contain, each text once."""

from __future__ import annotations

import json
import pathlib
import subprocess


def packages(root: pathlib.Path, cargo: str) -> list[dict[str, str]]:
    """Returns the packages of the registry that the Python package or the command is linked with, by name."""
    command = [cargo, "metadata", "--format-version", "1", "--locked", "--features", "tfseek-cli/remote,tfseek-python/remote"]
    metadata = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    by_id = {package["id"]: package for package in metadata["packages"]}
    todo = [package["id"] for package in metadata["packages"] if package["name"] in ("tfseek-cli", "tfseek-python")]
    seen = set(todo)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    linked = [by_id[one] for one in seen if by_id[one]["source"] is not None]
    return sorted(linked, key=lambda package: (package["name"], package["version"]))


def text(root: pathlib.Path, cargo: str) -> str:
    """Returns a list of the crates with their licences, followed by the texts of these.

    Raises:
        SystemExit: a crate names no licence.
    """
    lines = ["tfseek contains these crates, each under its licence:", ""]
    texts: dict[str, list[str]] = {}
    for package in packages(root, cargo):
        name = f"{package['name']} {package['version']}"
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(
            path
            for path in folder.iterdir()
            if path.is_file() and path.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "UNLICENSE"))
        )
        if not package["license"] and not files:
            raise SystemExit(f"{name}: expected a licence")
        lines.append(f"{name}: {package['license'] or 'see below'} ({package['repository'] or 'no repository'})")
        for path in files:
            texts.setdefault(path.read_text(errors="replace").strip(), []).append(f"{name} ({path.name})")
    for body, names in texts.items():
        lines += ["", "-" * 80, *names, "", body]
    return "\n".join(lines) + "\n"
