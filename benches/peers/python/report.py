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


def limits(cells: list[dict]) -> list[str]:
    """Returns the rates of programs of which nothing else is measured."""
    rows = [[cell["peer"], str(len(cell["runs"])), f"{best(cell):,.0f}", f"{median(cell, 'rate'):,.0f}"] for cell in cells]
    return table(["", "runs", "records/s, best", "median"], rows)


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
    """Returns a table of ratios: tfseek over the best setting of all other libraries, and as a part of the machine's limit.

    For shuffled epochs it has a row for each form of byte strings, with the best setting that verifies payloads."""
    with open(path) as f:
        doc = json.load(f)
    tops: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for cell in doc["cells"].values():
        if cell["runs"] and "rate" in cell["runs"][0]:
            ours = cell["family"] == OURS
            setting = cell["peer"].removeprefix(OURS + ", ") if ours else cell["family"]
            parts = setting.split(", ")
            if ours and cell["task"] == "shuffled" and "header" in parts:
                continue
            form = next((part for part in parts if part in ("offsets", "views")), "bytes")
            if ours:
                setting = ", ".join(part for part in parts if part != form)
            found = tops.setdefault((cell["task"], cell["corpus"]), {}).setdefault(form if ours else "", {})
            found[setting] = max(best(cell), found.get(setting, 0))
    rows = []
    for (task, corpus), forms in tops.items():
        others = forms.pop("", {})
        if task == "limit" or not forms or not others:
            continue
        rival = max(others, key=others.__getitem__)
        limit = max(tops.get(("limit", corpus), {}).get("", {}).values(), default=0)
        for form, settings in forms.items():
            setting = max(settings, key=settings.__getitem__)
            rate = settings[setting]
            rows.append([f"{task}, {corpus}", form, setting, f"{rate / 1e3:,.1f}", f"{rate / others[rival]:.1f}", rival,
                         f"{limit / 1e3:,.1f}" if limit else "-", f"{rate / limit:.2f}" if limit else "-"])
    return "\n".join(table(["path", "byte strings", "setting", "thousand records/s", "over the best peer", "the best peer", "the machine's limit",
                            "part of it"], rows))


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
            if task == "first_batch":
                out += first(ran)
            elif task in ("limit", "disk"):
                out += limits(ran)
            else:
                out += [*against(ran), *rates(ran, "record" if task.startswith("rand") else "batch")]
        out += [f"Failed: {cell['peer']}: {cell['errors'][-1].splitlines()[-1]}\n" for cell in cells if cell["errors"]]
    return "\n".join(out)
