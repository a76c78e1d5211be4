"""Compares tfseek from Python with other libraries: one fresh process per run, all cells in turn, for several rounds.

    python bench.py run [--rounds 7] [--tasks shuffled,..] [--corpora tabular,..] [--peers tfseek,DALI] [--json peers.json]
    python bench.py report [--json peers.json]          # tables in Markdown
    python bench.py head [--json peers.json]            # the table of ratios in docs/performance.md
    python bench.py list

Each cell is checked before it is timed. A timed run warms up and then runs for --seconds. Settings that are far slower than the best
of their family after two rounds are dropped (--keep). README.md describes the measurements; corpora.py generates the data.
"""
from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import time
from collections import deque

import numpy as np

import epochs  # noqa: F401
import records  # noqa: F401
from corpora import DATA, LABEL, expected, files, meta
from process import environment, kill, memory, spent, tree, warm
from registry import CORES, MAIN, PEERS, Peer
from report import head, report
from sums import Sums, row_hashes

TASKS = ["rand_raw", "rand_example", "shuffled", "sums", "scaling", "limit", "disk", "first_batch"]
PACKAGES = ["tfseek", "numpy", "tensorflow-cpu", "tensorflow", "array_record", "grain", "nvidia-dali-cuda120", "bagz", "protobuf", "tfx-bsl", "pylance"]


def rows(batch: dict, corpus: str) -> int:
    return len(batch[LABEL[corpus]])


# ---- in the process of a cell


def address(batch: dict) -> int:
    """Returns the address of the largest array of a batch."""
    columns = [np.asarray(c.data) if hasattr(c, "offsets") else c for c in batch.values() if not isinstance(c, list)]
    return max((c for c in columns if c.dtype.kind != "O"), key=lambda c: c.nbytes).__array_interface__["data"][0]


def check_epoch(peer: Peer, corpus: str, seconds: float) -> dict:
    """Compares each row of an epoch, or of the part that fits into `seconds`, with the values that protobuf reads. Each batch is
    checked after three more were made, so that reuse of its memory is detected. `addresses` is the number of addresses of the
    largest column and the number of batches; few addresses mean that memory is reused."""
    found, kept, start, whole, addresses, batches = [], deque(), time.perf_counter(), True, set(), 0
    for batch in peer.make(corpus, once=True):
        addresses.add(address(batch))
        batches += 1
        kept.append(batch)
        if len(kept) > 3:
            found.append(row_hashes(kept.popleft()))
        if time.perf_counter() - start > seconds:
            whole = False
            break
    found = np.sort(np.concatenate([*found, *map(row_hashes, kept)]))
    right = expected(corpus)
    if whole and peer.whole:
        assert np.array_equal(found, right), f"{len(found)} rows differ from the {len(right)} rows of the corpus"
        return {"check": "epoch", "addresses": f"{len(addresses)} of {batches}"}
    assert np.isin(found, right).all(), "found rows that are not in the corpus"
    if peer.whole:
        count, of = np.unique(found, return_counts=True)[1], np.unique(right, return_counts=True)
        assert (count <= of[1][np.searchsorted(of[0], np.unique(found))]).all(), "found duplicate rows"
    return {"check": f"{len(found):,} rows", "addresses": f"{len(addresses)} of {batches}"}


def check_records(peer: Peer, corpus: str) -> dict:
    """Compares a sum over all records with the same sum from the files or from protobuf."""
    read, n = peer.make(corpus)
    some = list(range(0, n, max(1, n // 20_000)))
    from diy import Maps

    source = Maps(corpus)
    assert n == len(source)
    if peer.task == "rand_raw":
        right = sum(map(len, source.many(np.array(some))))
    else:
        from proto import example_class

        parse = example_class().FromString
        right = sum(parse(p).features.feature[LABEL[corpus]].int64_list.value[0] for p in source.many(np.array(some)))
    assert read(some) == right
    return {"check": f"{len(some):,} records"}


def time_epoch(peer: Peer, corpus: str, seconds: float, warm_up: float) -> dict:
    batches, kept = iter(peer.make(corpus)), deque(maxlen=4)
    sums = Sums(next(batches))

    def measure(seconds: float) -> tuple[int, int, float]:
        n = steps = 0
        start = time.perf_counter()
        while (took := time.perf_counter() - start) < seconds:
            batch = next(batches)
            kept.append(batch)
            sums(batch)
            n += rows(batch, corpus)
            steps += 1
        return n, steps, took

    measure(warm_up)
    before = spent(os.getpid())
    n, steps, took = measure(seconds)
    after = spent(os.getpid())
    return {"rate": n / took, "cpu": (after[0] - before[0]) / n * 1e6, "faults": (after[1] - before[1]) / steps}


def time_records(peer: Peer, corpus: str, seconds: float, warm_up: float) -> dict:
    read, total = peer.make(corpus)
    rng = np.random.default_rng(1)
    parts = itertools.chain.from_iterable(np.array_split(rng.permutation(total), total // 256 + 1) for _ in itertools.count())
    ids = (part.tolist() for part in parts)

    def measure(seconds: float) -> tuple[int, float]:
        n, took = 0, 0.0
        while took < seconds:
            part = next(ids)
            start = time.perf_counter()
            read(part)
            took += time.perf_counter() - start
            n += len(part)
        return n, took

    measure(warm_up)
    before = spent(os.getpid())
    n, took = measure(seconds)
    after = spent(os.getpid())
    return {"rate": n / took, "cpu": (after[0] - before[0]) / n * 1e6, "faults": (after[1] - before[1]) / n}


def cell(args: argparse.Namespace) -> None:
    peer = PEERS[args.task, args.peer]
    missing = peer.missing()
    if missing:
        out = {"missing": missing}
    else:
        warm(files(args.corpus, peer.form))
        alone = args.task.startswith("rand")
        if args.check:
            out = check_records(peer, args.corpus) if alone else check_epoch(peer, args.corpus, args.check_seconds)
        else:
            out = (time_records if alone else time_epoch)(peer, args.corpus, args.seconds, args.warm_up)
            out["peak"] = memory(os.getpid())[0]
    print("\n" + json.dumps(out), flush=True)
    kill([pid for pid in tree(os.getpid()) if pid != os.getpid()])
    os._exit(0)  # some peers hang in their exit handlers


# ---- the driver


def start(arguments: list[str], timeout: float) -> dict:
    """Runs a script of this folder. Returns the JSON of its last output line and its peak anonymous memory."""
    here = os.path.dirname(os.path.abspath(__file__))
    began = time.monotonic()
    child = subprocess.Popen([sys.executable, os.path.join(here, arguments[0]), *arguments[1:]], env=environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    anon = 0.0
    while True:
        try:
            out, err = child.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            anon = max(anon, memory(child.pid)[1])
            if time.monotonic() - began > timeout:
                kill(tree(child.pid))
                child.communicate()
                return {"error": f"not finished after {timeout:.0f} s"}
    try:
        found = json.loads(out.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"error": err.decode(errors="replace").strip()[-800:] or f"exit status {child.returncode}"}
    return {**found, "anon": anon, "began": began}


def parts(found: dict) -> dict:
    """Returns the seconds of each part of the time to the first batch."""
    stamps = found.get("stamps")
    if stamps is None:
        return found
    ends = dict(zip(stamps, [found["began"], *stamps.values()]))
    names = {"began": "interpreter", "numpy": "numpy", "harness": "harness", "imports": "imports", "batch": "batch"}
    return {**{names[end]: at - ends[end] for end, at in stamps.items()}, "total": stamps["batch"] - found["began"]}


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0], "cores": str(CORES)}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def save(doc: dict, path: str) -> None:
    with open(path + ".tmp", "w") as f:
        json.dump(doc, f, indent=1)
    os.replace(path + ".tmp", path)


def is_dropped(doc: dict, peer: Peer, corpus: str, keep: float) -> bool:
    """Tests whether a setting had two runs whose best is below `keep` times its family's best. tfseek's settings are always kept."""
    if peer.task in ("first_batch", "limit", "disk"):
        return False
    best = {c["peer"]: (max(r["rate"] for r in c["runs"]), len(c["runs"])) for c in doc["cells"].values()
            if (c["corpus"], c["task"], c["family"]) == (corpus, peer.task, peer.family) and c["runs"]}
    rate, runs = best.get(peer.name, (0, 0))
    return runs >= 2 and peer.family != "tfseek" and rate < keep * max(b[0] for b in best.values())


def run(args: argparse.Namespace) -> None:
    doc: dict = {"cells": {}}
    if os.path.exists(args.json):
        with open(args.json) as f:
            doc = json.load(f)
    doc["versions"] = versions()
    doc["corpora"] = {c: meta(c) for c in args.corpora if os.path.exists(os.path.join(DATA, c, "meta.json"))}
    missing: set[str] = set()
    for turn, task, corpus in itertools.product(range(args.rounds), args.tasks, args.corpora):
        for peer in [p for p in PEERS.values() if p.task == task and corpus in p.corpora]:
            if peer.name in missing or (args.peers and not any(p in peer.name for p in args.peers)):
                continue
            key = f"{corpus}/{task}/{peer.name}"
            one = doc["cells"].setdefault(key, {"corpus": corpus, "task": task, "peer": peer.name, "family": peer.family,
                                                "check": None, "runs": [], "errors": []})
            if len(one["errors"]) > 1 or is_dropped(doc, peer, corpus, args.keep):
                continue
            arguments = ["bench.py", "cell", task, corpus, peer.name, "--seconds", str(args.seconds), "--warm-up", str(args.warm_up),
                         "--check-seconds", str(args.check_seconds)]
            if task == "first_batch":
                warm(files(corpus, peer.form) if turn == 0 else [])
                found = parts(start(["first_batch.py", corpus, peer.name], args.timeout))
            elif task == "limit":
                warm(files(corpus) if turn == 0 else [])
                found = start(["limit.py", corpus, str(CORES), str(args.seconds)], args.timeout)
            elif task == "disk":
                found = start(["disk.py", peer.family, corpus, str(args.seconds)], args.timeout)
            else:
                if one["check"] is None and task != "sums":
                    checked = start([*arguments, "--check"], args.timeout)
                    one["check"], one["addresses"] = checked.get("check"), checked.get("addresses")
                    if "check" not in checked and "missing" not in checked:
                        one["errors"].append(checked.get("error", "check failed"))
                        print(f"{key}: {one['errors'][-1]}", flush=True)
                        continue
                found = start(arguments, args.timeout)
            if "missing" in found:
                print(f"skipped: {peer.name}: {found['missing']}", flush=True)
                missing.add(peer.name)
                continue
            if "error" in found:
                one["errors"].append(found["error"])
            else:
                one["runs"].append(found)
            save(doc, args.json)
            print(f"{turn + 1} {key:90} " + (found.get("error") or ", ".join(
                f"{name} {value:,.3g}" if value < 1000 else f"{name} {value:,.0f}" for name, value in found.items()
                if isinstance(value, (int, float)) and name != "began")), flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    one, many, tell, top = (commands.add_parser(name) for name in ("cell", "run", "report", "head"))
    commands.add_parser("list")
    for name in ("task", "corpus", "peer"):
        one.add_argument(name)
    one.add_argument("--check", action="store_true")
    for each in (one, many):
        each.add_argument("--seconds", type=float, default=2, help="seconds of a timed run")
        each.add_argument("--warm-up", type=float, default=0.5)
        each.add_argument("--check-seconds", type=float, default=20, help="maximum seconds for the check of a cell")
    many.add_argument("--rounds", type=int, default=7)
    many.add_argument("--tasks", type=lambda text: text.split(","), default=TASKS)
    many.add_argument("--corpora", type=lambda text: text.split(","), default=[*MAIN, "many"])
    many.add_argument("--peers", type=lambda text: text.split(","), default=[], help="substrings of names")
    many.add_argument("--keep", type=float, default=0.7, help="fraction of its family's best that a setting must reach")
    many.add_argument("--timeout", type=float, default=240)
    for each in (many, tell, top):
        each.add_argument("--json", default="peers.json")
    args = p.parse_args()
    if args.command == "cell":
        cell(args)
    elif args.command == "run":
        run(args)
    elif args.command == "report":
        print(report(args.json))
    elif args.command == "head":
        print(head(args.json))
    else:
        for peer in PEERS.values():
            print(f"{peer.task:14} {peer.name:75} {', '.join(peer.corpora)}")


if __name__ == "__main__":
    main()
