"""Builds the two extension modules; everything else is declared in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FILE_SOURCES = ["csrc/reader.cpp", "csrc/writer.cpp"]
CORE_SOURCES = sorted({str(path) for path in Path("csrc").glob("*.cpp")} - set(FILE_SOURCES))
HEADERS = [str(path) for path in Path("csrc").glob("*.hpp")]
BINDINGS = [str(path) for path in Path("dpsvm").glob("*.pyx")]

# -ffp-contract=off: LIBSVM's iteration path is reproduced to the bit, and fused multiply-add would
# leave it.
BUILD = {
    "include_dirs": ["csrc"],
    "depends": HEADERS + BINDINGS,  # named here so that a source distribution holds them
    "language": "c++",
    "extra_compile_args": [
        *("-std=c++17", "-O3", "-ffp-contract=off"),
        *("-Wno-psabi", "-g0", "-pthread"),
    ],
    "extra_link_args": ["-pthread"],
}

setup(
    ext_modules=cythonize(
        [
            Extension("dpsvm._core", ["dpsvm/_core.pyx", *CORE_SOURCES], **BUILD),
            Extension("dpsvm._files", ["dpsvm/_files.pyx", *FILE_SOURCES], **BUILD),
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "freethreading_compatible": True,  # no state is shared: all of it belongs to the call
        },
    )
)
