"""Markdown tables of the results of bench.py."""
from __future__ import annotations

import json
import statistics

OURS = "tfseek"


def best(cell: dict, name: str = "rate") -> float:
    return max(run[name] for run in cell["runs"])


def median(cell: dict, name: str) -> float:
    return statistics.median(run[name] for run in cell["runs"])


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *("| " + " | ".join(row) + " |" for row in rows), ""]


def against(cells: list[dict]) -> list[str]:
    """Returns the ratios of tfseek's settings to the best setting of each family, by best runs and by medians."""
    families: dict[str, dict] = {}
    for cell in cells:
        if cell["family"] != OURS and (cell["family"] not in families or best(cell) > best(families[cell["family"]])):
            families[cell["family"]] = cell
    rows = []
    for cell in cells:
        if cell["family"] == OURS:
            rows.append([cell["peer"], *(f"{best(cell) / best(f):.1f} ({median(cell, 'rate') / median(f, 'rate'):.1f})"
                                         for f in families.values())])
    return table(["ratio by best runs (by medians)", *families], rows) if families and rows else []


def rates(cells: list[dict], per: str) -> list[str]:
    top = max((best(c) for c in cells if c["family"] != OURS), default=0)
    rows = []
    for cell in sorted(cells, key=best, reverse=True):
        runs = [run["rate"] for run in cell["runs"]]
        rows.append([cell["peer"], str(len(runs)), f"{max(runs):,.0f}", f"{median(cell, 'rate'):,.0f}", f"{min(runs):,.0f}",
                     f"{max(runs) / top:.2f}" if top else "-", number(min(run["cpu"] for run in cell["runs"])),
                     number(median(cell, "peak")), number(median(cell, "anon")), number(median(cell, "faults")),
                     cell.get("addresses") or "-", cell["check"] or "-"])
    return table(["", "runs", "records/s, best", "median", "worst", "ratio to best peer", "CPU s / 10^6", "peak MB", "anonymous MB",
                  f"faults per {per}", "addresses", "checked"], rows)


def head(path: str) -> str:
    """Returns a table of ratios: tfseek's settings over the best setting of all other libraries, and as parts of the machine's limit."""
    with open(path) as f:
        doc = json.load(f)
    tops: dict[tuple[str, str], dict[str, float]] = {}
    for cell in doc["cells"].values():
        if cell["runs"] and "rate" in cell["runs"][0]:
            name = cell["peer"] if cell["family"] == OURS else cell["family"]
            tops.setdefault((cell["task"], cell["corpus"]), {}).setdefault(name, 0)
            tops[cell["task"], cell["corpus"]][name] = max(best(cell), tops[cell["task"], cell["corpus"]][name])
    rows = []
    for (task, corpus), found in tops.items():
        ours = {name: rate for name, rate in found.items() if name.startswith(OURS)}
        others = {name: rate for name, rate in found.items() if name not in ours}
        if task == "limit" or not ours or not others:
            continue
        rival = max(others, key=others.__getitem__)
        limit = max(tops.get(("limit", corpus), {}).values(), default=0)
        for name, rate in ours.items():
            rows.append([f"{task}, {corpus}", name.removeprefix(OURS + ", "), f"{rate / 1e3:,.1f}", f"{rate / others[rival]:.1f}", rival,
                         f"{limit / 1e3:,.1f}" if limit else "-", f"{rate / limit:.2f}" if limit else "-"])
    return "\n".join(table(["path", "tfseek", "thousand records/s", "over the best peer", "the best peer", "the machine's limit", "part of it"],
                           rows))


def first(cells: list[dict]) -> list[str]:
    rows = []
    for cell in sorted(cells, key=lambda c: min(run["total"] for run in c["runs"])):
        total = [run["total"] for run in cell["runs"]]
        rows.append([cell["peer"], str(len(total)), f"{min(total):.3f}", f"{statistics.median(total):.3f}", f"{max(total):.3f}",
                     *(f"{median(cell, name):.3f}" for name in ("interpreter", "numpy", "imports", "batch"))])
    return table(["", "runs", "seconds, best", "median", "worst", "interpreter", "NumPy", "imports", "first batch"], rows)


def report(path: str) -> str:
    with open(path) as f:
        doc = json.load(f)
    out = [", ".join(f"{name} {version}" for name, version in doc["versions"].items()), ""]
    out += table(["corpus", "records", "shards", "bytes per record"],
                 [[name, f"{m['records']:,}", f"{m['shards']:,}", f"{m['payload_bytes'] / m['records']:,.0f}"]
                  for name, m in doc["corpora"].items()])
    groups: dict[tuple[str, str], list[dict]] = {}
    for cell in doc["cells"].values():
        groups.setdefault((cell["task"], cell["corpus"]), []).append(cell)
    for (task, corpus), cells in groups.items():
        ran = [cell for cell in cells if cell["runs"]]
        if ran:
            out += [f"### {task}, {corpus}", ""]
            out += first(ran) if task == "first_batch" else [
                *against(ran), *rates(ran, "record" if task.startswith("rand") else "batch")]
        out += [f"Failed: {cell['peer']}: {cell['errors'][-1].splitlines()[-1]}\n" for cell in cells if cell["errors"]]
    return "\n".join(out)
