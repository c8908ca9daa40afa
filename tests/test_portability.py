"""The core built by other compilers, and what would be published."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

import pytest
from benches import report_of, run_bench
from commands import python


@pytest.mark.parametrize("target", ["clang, libc++", "64-bit ARM", "Windows, MinGW"])
def test_numbers_are_read_and_written_alike_by_every_compiler(target: str) -> None:
    done = run_bench("platforms/portability.py", "--quick", "--only", target)
    if "is absent" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3  2 of 2" in done.stdout


@pytest.mark.skipif(
    find_spec("build") is None or find_spec("build.__main__") is None,
    reason="the package build is not installed",
)
@pytest.mark.skipif(
    find_spec("Cython") is None or int(version("setuptools").partition(".")[0]) < 77,
    reason="what builds the package is not installed",
)
def test_the_source_distribution_has_the_same_bytes_twice() -> None:
    report_of("platforms/wheel.py", "--quick")


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    code = "from dpsvm._core import cpu_level; cpu_level()"
    done = python("-c", code, DPSVM_CPU="sse9")
    assert "DPSVM_CPU=sse9 is not a level this processor runs (portable" in done.stderr
