#!/usr/bin/env python3
"""Plants faults in a copy of the last commit, one after the other, and expects the test that each patch names to find it.

    python3 tests/planted/judge.py [NUMBER ..]

The text before the diff of a patch has the lines `finds: COMMAND` and, if it needs variables, `env: NAME=VALUE ..`. The command must pass
without the fault, and with it fail and name a seed or a test. A patch that no longer applies counts as not found. What the commands print is
in `target/planted`."""
import os, pathlib, re, shlex, subprocess, sys, tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
# A copy has a folder of its own for what is built: cargo would take it for what was built of this tree.
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute() / "planted"
LIMIT = 3600


def git(*args, cwd=ROOT):
    return subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True)


def lines(text, name):
    return re.findall(rf"(?m)^{name}: (.*)$", text.split("\ndiff --git ")[0])


def run(copy, finds, env):
    """The exit status of a command in the copy, and its output. A command that takes too long has no status."""
    command = [os.environ.get("CARGO", "cargo") if word == "cargo" else word for word in shlex.split(finds)]
    variables = dict(word.split("=", 1) for word in env.split())
    target = {"CARGO_TARGET_DIR": str(TARGET / "build")}
    try:
        made = subprocess.run(command, cwd=copy, env={**os.environ, **target, **variables}, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        return None, ""
    return made.returncode, made.stdout


def judge(copy, patch, sound):
    """The command that finds the fault, and the seed or the test that it names. Without the latter, the reason."""
    text = patch.read_text()
    finds, env = lines(text, "finds"), lines(text, "env") or [""]
    if not finds:
        return "", None, "names no command"
    key = finds[0], env[0]
    if key not in sound:
        sound[key] = run(copy, *key)[0] == 0
    if not sound[key]:
        return finds[0], None, "fails without the fault"
    applied = git("apply", str(patch), cwd=copy)
    if applied.returncode:
        return finds[0], None, "does not apply: " + applied.stderr.strip()
    status, output = run(copy, *key)
    git("checkout", "--quiet", ".", cwd=copy)
    (TARGET / f"{patch.stem}.txt").write_text(output)
    if status == 0 or status is None:
        return finds[0], None, "is not found" if status == 0 else "takes too long"
    if "could not compile" in output:
        return finds[0], None, "does not compile"
    named = re.search(r"\bseed \d+", output) or re.search(r"(?m)(?<=^test )\S+(?= \.\.\. FAILED)", output)
    return finds[0], named and named[0], "names neither a seed nor a test"


def main():
    patches = [p for p in sorted(FOLDER.glob("*.patch")) if not sys.argv[1:] or p.name.split("-")[0] in sys.argv[1:]]
    sound, found = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        if git("clone", "--quiet", "--shared", str(ROOT), copy).returncode:
            sys.exit("git cannot copy the tree")
        for patch in patches:
            finds, named, reason = judge(copy, patch, sound)
            found += named is not None
            number, name = patch.stem.split("-", 1)
            print(f"{number}  {name:24}  {finds:44}  {named or 'NOT FOUND: it ' + reason}", flush=True)
    print(f"{found} of {len(patches)} planted faults are found")
    sys.exit(found < len(patches) or not patches)


main()
