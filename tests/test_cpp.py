"""The C++ test programs of tests/cpp, built with the address and undefined behaviour sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted((ROOT / "tests" / "cpp").glob("test_*.cpp"))
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
FLAGS = [
    "-std=c++17",
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-ffp-contract=off",
    "-Wno-psabi",
    "-pthread",
    f"-I{ROOT / 'csrc'}",
]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def compile_with_sanitizers(*arguments: str | Path) -> None:
    command = [str(COMPILER), *FLAGS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def core_objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The objects of csrc, compiled once."""
    folder = tmp_path_factory.mktemp("csrc")
    objects = {
        source: folder / f"{source.stem}.o" for source in sorted((ROOT / "csrc").glob("*.cpp"))
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = [
            pool.submit(compile_with_sanitizers, "-c", source, "-o", target)
            for source, target in objects.items()
        ]
        for job in compiled:
            job.result()
    return list(objects.values())


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_the_program_passes_its_checks_under_sanitizers(
    source: Path, core_objects: list[Path], tmp_path: Path
) -> None:
    program = tmp_path / source.stem
    compile_with_sanitizers(source, *core_objects, "-o", program)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
