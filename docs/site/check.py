"""Checks a built site: every link leads to a file and an anchor, nothing is loaded from elsewhere, and no private name is in the reference.

    python check.py target/site
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: The reference of the crates comes from rustdoc, which checks its own links.
RUST = "rust"
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "use": "href"}


class PageParser(HTMLParser):
    """Collects the anchors of a page, its links, and the addresses that a browser loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADS and LOADS[tag] in values and values.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(values[LOADS[tag]])


def parse(path: Path) -> PageParser:
    page = PageParser()
    page.feed(path.read_text())
    return page


def problems(site: Path) -> list[str]:
    """Returns what is wrong."""
    pages = {path: parse(path) for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] != RUST}
    found = [] if len(pages) > 20 else [f"only {len(pages)} pages"]
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses are absolute, because it is shown at any address
            continue
        name = path.relative_to(site)
        found += [f"{name}: loads {load}" for load in page.loads if urlsplit(load).netloc]
        found += [f"{name}: private {anchor}" for anchor in page.anchors if re.search(r"^tfseek\.(\w+\.)*_[a-z]", anchor)]
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link} has no such anchor")
    for style in site.rglob("*.css"):
        if style.relative_to(site).parts[0] != RUST and re.search(r"url\(\s*[\"']?(https?:)?//", style.read_text()):
            found.append(f"{style.relative_to(site)}: loads from elsewhere")
    index = json.loads((site / "search/search_index.json").read_text())
    if not any("tfseek.Loader" in doc["location"] for doc in index["docs"]):
        found.append("the search does not know tfseek.Loader")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]).resolve())) or None)
