"""The test suite in an environment for each set of releases, from the oldest to the newest.

    python bench/platforms/versions.py                           every set, every test
    python bench/platforms/versions.py --sets oldest newest -- -k estimators

For each set HEAD is cloned into a folder of its own and tested there by the README's command, with
the set's interpreter in the place of python3 and pip held to its constraints; what follows ``--``
goes to pytest. Interpreters are looked for on PATH, in pyenv and in the folders of ``--look-in``; a
set whose interpreter is not here is told of and counts as no failure.

Exit code 1 if an environment cannot be made, a test fails or a free-threaded set gets its GIL back.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import ROOT, Absent, Table, arguments, note, run, write_results


@dataclass(frozen=True)
class Releases:
    """A set of releases that are tested together."""

    python: str  # a t at the end: free-threaded
    constraints: tuple[str, ...] = ()  # as pip takes them; without any, the newest of everything
    extra: str = "test"  # of pyproject.toml, what the tests need


OLDEST = tuple((ROOT / ".ci" / "oldest.txt").read_text().splitlines())
SETS = {
    "oldest": Releases("3.11", OLDEST),
    "sklearn-1.6": Releases("3.12", ("scikit-learn==1.6.*", "numpy==1.26.*")),
    "sklearn-1.7": Releases("3.12", ("scikit-learn==1.7.*",)),
    "sklearn-1.8": Releases("3.13", ("scikit-learn==1.8.*",)),
    "sklearn-1.9": Releases("3.11", ("scikit-learn==1.9.*",)),
    "newest": Releases("3.13"),
    "newest-3.14": Releases("3.14"),
    "free-threaded-3.13": Releases("3.13t"),
    "free-threaded-3.14": Releases("3.14t"),
}
SHOWN = ("numpy", "scipy", "scikit-learn")
KINDS = ("passed", "skipped", "xfailed", "failed", "errors")
NAME = (
    "import sys, sysconfig; print('%d.%d' % sys.version_info[:2]"
    " + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
)
FACTS = (
    "import json, sys, importlib.metadata as found, dpsvm;"
    "print(json.dumps({'python': sys.version.split()[0],"
    " 'gil': getattr(sys, '_is_gil_enabled', lambda: True)(),"
    f" **{{name: found.version(name) for name in {SHOWN}}}}}))"
)


def interpreter(python: str, folders: Sequence[Path]) -> str | None:
    """The path of a CPython of this version that runs, None if there is none."""
    for folder in folders:
        program = shutil.which(f"python{python}", path=folder)
        if program is None:
            continue
        asked = subprocess.run([program, "-c", NAME], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == python:
            return program
    return None


def folders_of_interpreters(more: Sequence[Path]) -> list[Path]:
    """Where to look: the folders given, PATH, then pyenv's versions, the newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    path = map(Path, filter(None, os.environ["PATH"].split(os.pathsep)))
    return [*more, *path, *sorted(pyenv.glob("*/bin"), reverse=True)]


def readme_command(readme: str, program: str, extra: str, words: Sequence[str]) -> str:
    """The README's command for the tests, with this interpreter, extra and these words for pytest.

    >>> readme = "python3 -m venv .venv && pip install -e '.[test]' && python -m pytest"
    >>> readme_command(readme, "/a b/python3.12", "test", ["-k", "import"])
    "'/a b/python3.12' -m venv .venv && pip install -e '.[test]' && python -m pytest -k import"
    """
    [line] = [line for line in readme.splitlines() if line.endswith("python -m pytest")]
    line = line.replace("python3", shlex.quote(program), 1).replace("[test]", f"[{extra}]")
    return " ".join([line, *map(shlex.quote, words)])


def counts(output: str) -> dict[str, int] | None:
    """What pytest's last line counts, None if it has not come to one.

    >>> counts("F...\\n1 failed, 30 passed, 2 warnings, 1 error in 25.10s")
    {'passed': 30, 'skipped': 0, 'xfailed': 0, 'failed': 1, 'errors': 1}
    """
    last = output.rstrip().rpartition("\n")[2]
    found = {kind: int(number) for number, kind in re.findall(r"(\d+) ([a-z]+)", last)}
    found["errors"] = found.pop("error", 0) + found.get("errors", 0)
    if not re.search(r" in [\d.]+s", last):
        return None
    return {kind: found.get(kind, 0) for kind in KINDS}


@dataclass(frozen=True)
class Outcome:
    """What came of a set."""

    name: str
    facts: dict[str, object]  # python, gil, and the releases of SHOWN
    counted: dict[str, int]
    trouble: str = ""

    def row(self) -> list[object]:
        known = [self.facts.get(name) for name in ("python", *SHOWN)]
        return [self.name, *known, *(self.counted.get(kind) for kind in KINDS), self.trouble]


def try_set(name: str, folders: Sequence[Path], words: Sequence[str], folder: Path) -> Outcome:
    """Make the environment of a set in the folder and run the tests there."""
    releases = SETS[name]
    program = interpreter(releases.python, folders)
    if program is None:
        return Outcome(name, {"python": releases.python}, {}, "no such interpreter here")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        raise Absent("the tree is no git repository, or git is not on PATH")
    tree, constraints = folder / "dpsvm", folder / "constraints.txt"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
    constraints.write_text("\n".join([*releases.constraints, ""]))
    command = readme_command((ROOT / "README.md").read_text(), program, releases.extra, words)
    note(f"{name}: {command}")
    variables = {"PIP_CONSTRAINT": str(constraints), "PIP_QUIET": "1"}
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, shell=True, cwd=tree, env=inherited | variables, capture_output=True, text=True
    )
    asked = subprocess.run(
        [tree / ".venv" / "bin" / "python", "-c", FACTS], capture_output=True, text=True, cwd=tree
    )
    counted = counts(done.stdout)
    if asked.returncode or counted is None:
        note((done.stdout + done.stderr + asked.stderr)[-2000:])
        return Outcome(name, {"python": releases.python}, {}, "NO environment: see above")
    note("\n".join(re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.M)))
    facts = json.loads(asked.stdout)
    return Outcome(name, facts, counted, "".join(troubles(releases, facts, done.returncode)))


def troubles(releases: Releases, facts: dict[str, object], code: int) -> Iterator[str]:
    """What is wrong with a set that ran."""
    if code:
        yield f"NO: pytest ended with {code}. "
    if releases.python.endswith("t") and facts["gil"]:
        yield "NO: the GIL is back after `import dpsvm`. "


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--look-in", nargs="+", type=Path, default=[], metavar="FOLDER")
    given = list(sys.argv[1:] if argv is None else argv)
    at = given.index("--") if "--" in given else len(given)
    options, words = parser.parse_args(given[:at]), given[at + 1 :]
    folders = folders_of_interpreters(options.look_in)
    table = Table("Sets of releases", ("set", "Python", *SHOWN, *KINDS, "remark"))
    for name in options.sets:
        with tempfile.TemporaryDirectory() as folder:
            table.rows.append(try_set(name, folders, words, Path(folder)).row())
        print(" ".join(map(str, table.rows[-1])), flush=True)
    print(f"\n{table.text()}\n")
    bad = [str(row[0]) for row in table.rows if str(row[-1]).startswith("NO")]
    absent = [str(row[0]) for row in table.rows if str(row[-1]).startswith("no ")]
    verdicts = [
        f"no failure in any set: {'NO: ' + ', '.join(bad) if bad else 'yes'}",
        f"sets whose interpreter is not here: {', '.join(absent) or 'none'}",
    ]
    print("\n".join(verdicts))
    if not options.quick:
        config = {"sets": " ".join(options.sets), "pytest": shlex.join(words) or "all tests"}
        write_results(options.results, "versions", [table], config=config, verdicts=verdicts)
    return 1 if bad else 0


if __name__ == "__main__":
    run(main)
